//! The times of a variant, and their evaluation if the clock is coarse: the resolution of a browser's or a driver's
//! clock may be as long as several runs.

use web_time::Duration;

/// The times of one variant's runs.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<Duration>);

/// Fewer times than this do not reveal the resolution of a clock.
const ENOUGH: usize = 8;
/// A clock whose step is a smaller fraction of a time than this counts as fine.
const FINE: u32 = 20;

impl Times {
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Duration>) {
        self.0.extend(more);
    }

    /// How long a run usually takes. That is the median, as another program may hold up some runs. With a coarse clock
    /// a run takes a whole number of steps, one fewer or one more, so the mean is more accurate.
    pub(super) fn usual(&self) -> Option<Duration> {
        let Some(step) = self.coarse() else { return median(&self.0) };
        let most = self.0.iter().min().copied()? + step;
        let sum: Duration = self.0.iter().map(|time| (*time).min(most)).sum();
        Some(sum / self.0.len() as u32)
    }

    /// The shortest time, because disturbances only make times longer; with a coarse clock it is meaningless.
    pub(super) fn shortest(&self) -> Option<Duration> {
        match self.coarse() {
            Some(_) => self.usual(),
            None => self.0.iter().min().copied(),
        }
    }

    /// How far the usual time may be off because the clock is coarse: the mean of n times that are each off by at most a step is
    /// rarely off by more than a step over the root of n.
    pub(super) fn doubt(&self) -> Duration {
        self.coarse().map_or(Duration::ZERO, |step| step.div_f64((self.0.len() as f64).sqrt()))
    }

    /// The step of the clock, if it is long for these times.
    fn coarse(&self) -> Option<Duration> {
        let median = median(&self.0).filter(|_| self.0.len() >= ENOUGH)?;
        let sorted = sorted(&self.0);
        let before = std::iter::once(Duration::ZERO).chain(sorted.iter().copied());
        let gaps = before.zip(&sorted).map(|(before, time)| *time - before);
        let step = gaps.filter(|gap| !gap.is_zero()).min()?;
        (step * FINE > median).then_some(step)
    }
}

fn median(times: &[Duration]) -> Option<Duration> {
    sorted(times).get(times.len() / 2).copied()
}

fn sorted(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times
}

#[cfg(test)]
impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Times(times.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` runs of `nanos`, started at random, with a clock of this step. Another program delays one in ten.
    fn timed(count: usize, nanos: u64, step: u64, seed: u64) -> Times {
        let mut rng = fastrand::Rng::with_seed(seed);
        let run = |_| {
            let held_up = if rng.u8(0..10) == 0 { 20 * nanos } else { 0 };
            let begin = rng.u64(0..1_000_000);
            let end = begin + nanos + rng.u64(0..=nanos / 50) + held_up;
            Duration::from_nanos((end / step - begin / step) * step)
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn a_fine_clock_gives_the_median() {
        for nanos in [3_000, 35_000, 2_000_000] {
            let times = timed(50, nanos, 10, nanos);
            let usual = times.usual().unwrap().as_nanos() as f64;
            assert!((usual / nanos as f64 - 1.0).abs() < 0.05, "{nanos}: {usual}");
            assert_eq!(times.doubt(), Duration::ZERO);
            assert!(times.shortest() <= times.usual());
        }
        let few: Times = [30, 30, 60].map(Duration::from_micros).into_iter().collect();
        assert_eq!(few.usual(), Some(Duration::from_micros(30)));
        assert_eq!((few.doubt(), Times::default().usual()), (Duration::ZERO, None));
    }

    #[test]
    fn a_coarse_clock_gives_the_mean_and_says_how_far_it_may_be_off() {
        // Steps of 100 us, as browsers have; all times are 0 or one step.
        for nanos in [7_000, 30_000, 90_000, 150_000] {
            for seed in 0..20 {
                let times = timed(70, nanos, 100_000, seed);
                let usual = times.usual().unwrap().as_nanos() as f64;
                // One run in ten is delayed, and counts as at most one step more.
                let most = 1.02 * nanos as f64 + 100_000.0 / 10.0;
                let doubt = 2.0 * times.doubt().as_nanos() as f64;
                assert!(doubt > 20_000.0, "{nanos}, {seed}: {doubt}");
                let near = nanos as f64 - doubt..most + doubt;
                assert!(near.contains(&usual), "{nanos}, {seed}: {usual}, {doubt}");
            }
        }
    }
}
