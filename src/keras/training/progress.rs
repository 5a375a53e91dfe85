//! [`Progress`]: the output of a training, in Keras's format.

use std::io::{IsTerminal, Write};

use web_time::{Duration, Instant};

use super::logs::Logs;
use super::options::Verbose;

/// The width of a bar, in characters.
const WIDTH: usize = 20;
/// The minimum time between two updates.
const INTERVAL: Duration = Duration::from_millis(50);

/// Draws a bar or lines for epochs.
pub(crate) struct Progress {
    verbose: Verbose,
    out: Box<dyn Write>,
    /// Whether the bar may use colours and overwrite itself.
    terminal: bool,
    steps: Option<usize>,
    began: Instant,
    /// The time when the call of the first step, which compiles, returned. Its values arrive later, together with those
    /// of others.
    first: Option<Instant>,
    drawn: Option<Instant>,
    /// The width of the current line, in characters.
    width: usize,
}

impl Progress {
    /// Prints to standard error.
    pub(crate) fn new(verbose: Verbose) -> Self {
        let err = std::io::stderr();
        let terminal = err.is_terminal();
        Progress::to(verbose, Box::new(err), terminal)
    }

    pub(crate) fn to(verbose: Verbose, out: Box<dyn Write>, terminal: bool) -> Self {
        let verbose = match verbose {
            Verbose::Auto if terminal => Verbose::Bar,
            Verbose::Auto => Verbose::Silent,
            other => other,
        };
        let began = Instant::now();
        Progress { verbose, out, terminal, steps: None, began, first: None, drawn: None, width: 0 }
    }

    /// Whether anything is printed.
    pub(crate) fn shows(&self) -> bool {
        matches!(self.verbose, Verbose::Bar | Verbose::Lines)
    }

    /// Whether the bar will be drawn again and shows numbers.
    pub(crate) fn draws(&self) -> bool {
        self.verbose == Verbose::Bar && self.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL)
    }

    /// Begins an epoch, counted from 0, or a pass without epochs.
    pub(crate) fn begin(&mut self, epoch: Option<(usize, usize)>, steps: Option<usize>) {
        self.steps = steps;
        (self.began, self.first, self.drawn, self.width) = (Instant::now(), None, None, 0);
        if let Some((epoch, epochs)) = epoch.filter(|(_, epochs)| *epochs > 1) {
            if self.verbose != Verbose::Silent {
                self.say(&format!("Epoch {}/{epochs}\n", epoch + 1));
            }
        }
    }

    /// Records that the first step of an epoch has been called.
    pub(crate) fn called(&mut self) {
        self.first.get_or_insert_with(Instant::now);
    }

    /// Shows that `done` batches are done.
    pub(crate) fn update(&mut self, done: usize, logs: &Logs) {
        if self.draws() {
            self.draw(done, logs, false);
        }
    }

    /// Shows that the epoch has ended after `done` batches.
    pub(crate) fn end(&mut self, done: usize, logs: &Logs) {
        match self.verbose {
            Verbose::Bar => {
                self.steps = Some(self.steps.unwrap_or(done));
                self.draw(done, logs, true);
            }
            Verbose::Lines => {
                let (steps, took) = (self.steps.unwrap_or(done), self.began.elapsed());
                let step = self.step(done);
                let mut line = format!("{done:>width$}/{steps}", width = steps.to_string().len());
                line += &format!(" - {:.0}s - {step}", took.as_secs_f64());
                if !logs.is_empty() {
                    line += &format!(" - {logs}");
                }
                line.push('\n');
                self.say(&line);
            }
            Verbose::Auto | Verbose::Silent => {}
        }
    }

    fn draw(&mut self, done: usize, logs: &Logs, last: bool) {
        self.drawn = Some(Instant::now());
        let (bold, green, grey, plain) = match self.terminal {
            true => ("\x1b[1m", "\x1b[32m", "\x1b[37m", "\x1b[0m"),
            false => ("", "", "", ""),
        };
        let took = self.began.elapsed().as_secs_f64();
        let mut visible = 0;
        let mut line = String::new();
        let mut put = |colour: &str, text: &str| {
            visible += text.chars().count();
            match colour.is_empty() {
                true => line.push_str(text),
                false => line.extend([colour, text, plain]),
            }
        };
        let left = match self.steps.filter(|steps| *steps > 0) {
            Some(steps) => {
                let full = (WIDTH * done.min(steps)) / steps;
                put(bold, &format!("{done:>width$}/{steps}", width = steps.to_string().len()));
                put("", " ");
                put(green, &"━".repeat(full));
                put(grey, &"━".repeat(WIDTH - full));
                let rest = steps.saturating_sub(done) as f64;
                (!last).then(|| rest * self.seconds_a_step(done))
            }
            None => {
                put("", &format!("{done:>7}/Unknown"));
                None
            }
        };
        put("", " ");
        put(bold, &left.map_or_else(|| format!("{took:.0}s"), clock));
        put("", &format!(" {}", self.step(done)));
        if !logs.is_empty() {
            put("", &format!(" - {logs}"));
        }
        // Overwrites the rest of a longer previous line.
        let blanks = " ".repeat(self.width.saturating_sub(visible));
        let (begin, end) = match (self.terminal, last) {
            (true, true) => ("\r", "\n"),
            (true, false) => ("\r", ""),
            (false, _) => ("", "\n"),
        };
        self.width = if self.terminal { visible } else { 0 };
        self.say(&format!("{begin}{line}{blanks}{end}"));
    }

    fn seconds_a_step(&self, done: usize) -> f64 {
        let first = self.first.map(|called| called.duration_since(self.began));
        seconds_a_step(done, self.began.elapsed(), first)
    }

    fn step(&self, done: usize) -> String {
        a_step(self.seconds_a_step(done))
    }

    /// Ignores errors: a closed pipe does not end the training.
    fn say(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// The time of a step, if `done` steps took so long. The first one counts only if it is the only one.
fn seconds_a_step(done: usize, took: Duration, first: Option<Duration>) -> f64 {
    match first {
        Some(first) if done > 1 => took.saturating_sub(first).as_secs_f64() / (done - 1) as f64,
        _ => took.as_secs_f64() / done.max(1) as f64,
    }
}

/// `2s/step`, `15ms/step`, `1us/step`, with Keras's bounds.
fn a_step(seconds: f64) -> String {
    match seconds {
        long if long >= 1.0 || long == 0.0 => format!("{long:.0}s/step"),
        short if short >= 1e-3 => format!("{:.0}ms/step", short * 1e3),
        shortest => format!("{:.0}us/step", shortest * 1e6),
    }
}

/// `1:02:03`, `2:03`, `3s`.
fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match whole {
        3601.. => format!("{hours}:{minutes:02}:{rest:02}"),
        61.. => format!("{minutes}:{rest:02}"),
        _ => format!("{whole}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: f64) -> Duration {
        Duration::from_secs_f64(milliseconds / 1e3)
    }

    #[test]
    fn a_step_takes_what_the_later_ones_took() {
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} is not {want}");
        // As in Keras; the first step compiled for a second.
        near(seconds_a_step(1, ms(1001.0), Some(ms(1000.0))), 1.001);
        near(seconds_a_step(101, ms(1150.0), Some(ms(1000.0))), 1.5e-3);
        near(seconds_a_step(64, ms(96.0), None), 1.5e-3);
        near(seconds_a_step(0, ms(3.0), None), 3e-3);
    }

    // Keras 3.15.1, `Progbar`: f"{x:.0f}s/step" from 1 s on, else "ms" from 1e-3 s on, else "us".
    #[test]
    fn steps_of_every_length_are_written_as_in_keras() {
        let cases = [
            (1e-6, "1us/step"),
            (9.5e-4, "950us/step"),
            (1.5e-3, "2ms/step"),
            (15.4e-3, "15ms/step"),
            (0.6, "600ms/step"),
            (1.0, "1s/step"),
            (2.4, "2s/step"),
            (75.0, "75s/step"),
            (0.0, "0s/step"),
        ];
        for (seconds, text) in cases {
            assert_eq!(a_step(seconds), text);
        }
    }

    // The values of all steps can arrive right before the end; the time of a step must still be right.
    #[test]
    fn an_epoch_that_is_heard_of_at_once_has_its_own_time() {
        let mut bar = Progress::to(Verbose::Silent, Box::new(std::io::sink()), false);
        bar.begin(None, Some(64));
        bar.called();
        std::thread::sleep(Duration::from_millis(20));
        bar.update(64, &Logs::new());
        let took = bar.seconds_a_step(64);
        assert!(took >= 20e-3 / 63.0, "{took}");
        // A second epoch starts the measurement again.
        bar.begin(None, Some(64));
        std::thread::sleep(Duration::from_millis(20));
        bar.update(64, &Logs::new());
        let took = bar.seconds_a_step(64);
        assert!(took >= 20e-3 / 64.0, "{took}");
    }
}
