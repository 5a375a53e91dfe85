//! How long frames took: percentiles, the share that a display of 60 Hz would have shown late, and a histogram as text.

use std::fmt;
use std::time::{Duration, Instant};

/// The time of a frame on a display of 60 Hz.
pub const FRAME_60_HZ: Duration = Duration::from_nanos(16_666_667);

/// Upper bounds of the histogram's rows, in milliseconds; a last row has all longer frames.
const BOUNDS: [f64; 9] = [2.0, 4.0, 8.0, 12.0, 16.7, 25.0, 33.3, 50.0, 100.0];
/// Characters of the longest bar.
const BAR: usize = 40;

/// The times of a program's frames.
#[derive(Clone, Debug, Default)]
pub struct FrameTimes {
    times: Vec<Duration>,
    began: Option<Instant>,
}

impl FrameTimes {
    pub fn new() -> Self {
        Self::default()
    }

    /// Call it where each frame begins: a frame's time is the time until the next one begins.
    pub fn frame(&mut self) {
        let now = Instant::now();
        if let Some(began) = self.began.replace(now) {
            self.record(now - began);
        }
    }

    /// The time until the next frame does not count, as when nothing was drawn in between.
    pub fn pause(&mut self) {
        self.began = None;
    }

    pub fn record(&mut self, time: Duration) {
        self.times.push(time);
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The shortest time that `percent` of the frames did not exceed (the nearest rank); `None` without frames.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// The share of frames that took longer than `limit`, from 0 to 1; 0 without frames.
    pub fn share_above(&self, limit: Duration) -> f64 {
        let late = self.times.iter().filter(|&&time| time > limit).count();
        late as f64 / self.times.len().max(1) as f64
    }

    /// The number of frames in each row of the histogram.
    fn counts(&self) -> [usize; BOUNDS.len() + 1] {
        let mut counts = [0; BOUNDS.len() + 1];
        for time in &self.times {
            counts[BOUNDS.partition_point(|&bound| bound < milliseconds(*time))] += 1;
        }
        counts
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A line with percentiles, then the histogram.
impl fmt::Display for FrameTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |percent| self.percentile(percent).map(milliseconds);
        let (Some(median), Some(most), Some(nearly), Some(longest)) =
            (at(50.0), at(95.0), at(99.0), at(100.0))
        else {
            return write!(f, "no frame was timed");
        };
        write!(
            f,
            "median {median:.1} ms, 95 % within {most:.1}, 99 % within {nearly:.1}, longest {longest:.1}; \
             {:.1} % took more than 16.7 ms",
            100.0 * self.share_above(FRAME_60_HZ)
        )?;
        let counts = self.counts();
        let highest = counts.iter().copied().max().unwrap_or(0).max(1);
        // Rows before the first frame and after the last one say nothing.
        let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
        let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        for (row, &count) in counts.iter().enumerate().take(last + 1).skip(first) {
            let range = match BOUNDS.get(row) {
                Some(bound) => format!("to {bound:5.1} ms"),
                None => "   longer  ".to_owned(),
            };
            // At least one character for one frame.
            let bar = (count * BAR).div_ceil(highest);
            write!(f, "\n  {range}  {:BAR$}  {count}", "#".repeat(bar))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> FrameTimes {
        let mut frames = FrameTimes::new();
        times.iter().for_each(|&time| frames.record(Duration::from_millis(time)));
        frames
    }

    #[test]
    fn percentiles_are_times_of_frames() {
        let frames = of(&[30, 10, 20, 40]);
        let at = |percent| frames.percentile(percent).unwrap().as_millis();
        assert_eq!(
            [0.0, 25.0, 26.0, 50.0, 51.0, 99.0, 100.0].map(at),
            [10, 10, 20, 20, 30, 40, 40]
        );
        assert_eq!([-5.0, 200.0].map(at), [10, 40]);
        assert_eq!(of(&[7]).percentile(99.0), Some(Duration::from_millis(7)));
        assert_eq!(of(&[]).percentile(50.0), None);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(of(&hundred).percentile(95.0), Some(Duration::from_millis(95)));
    }

    #[test]
    fn late_frames_are_those_above_the_limit() {
        let frames = of(&[16, 17, 18, 5]);
        assert_eq!(frames.share_above(FRAME_60_HZ), 0.5);
        assert_eq!(frames.share_above(Duration::from_millis(18)), 0.0);
        assert_eq!(of(&[]).share_above(FRAME_60_HZ), 0.0);
    }

    #[test]
    fn every_frame_is_in_one_row() {
        let frames = of(&[0, 2, 3, 4, 5, 16, 17, 100, 101, 5000]);
        assert_eq!(frames.counts(), [2, 2, 1, 0, 1, 1, 0, 0, 1, 2]);
        assert_eq!(frames.counts().iter().sum::<usize>(), frames.len());
    }

    #[test]
    fn the_text_has_a_row_for_each_range_between_the_shortest_and_the_longest() {
        let mut times = vec![10; 79];
        times.push(30);
        let text = of(&times).to_string();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(
            rows[0],
            "median 10.0 ms, 95 % within 10.0, 99 % within 30.0, longest 30.0; 1.2 % took more than 16.7 ms"
        );
        assert_eq!(rows.len(), 5, "{text}");
        assert_eq!(rows[1], format!("  to  12.0 ms  {}  79", "#".repeat(40)));
        assert!(rows[3].ends_with("  0") && !rows[3].contains('#'), "{text}");
        assert!(rows[4].contains("# ") && rows[4].ends_with("  1"), "{text}");
        assert_eq!(of(&[]).to_string(), "no frame was timed");
    }

    #[test]
    fn a_frame_lasts_until_the_next_begins() {
        let mut frames = FrameTimes::new();
        frames.frame();
        assert!(frames.is_empty());
        std::thread::sleep(Duration::from_millis(5));
        frames.frame();
        assert!(frames.len() == 1 && frames.percentile(50.0).unwrap() >= Duration::from_millis(5));
        frames.pause();
        frames.frame();
        assert_eq!(frames.len(), 1);
    }
}
