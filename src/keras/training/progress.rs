//! [`Progress`]: what a training prints, as Keras does.

use std::io::{IsTerminal, Write};

use web_time::{Duration, Instant};

use super::logs::Logs;
use super::options::Verbose;

/// Characters of a bar.
const WIDTH: usize = 20;
/// The shortest time between two drawings.
const INTERVAL: Duration = Duration::from_millis(50);

/// Draws a bar or lines for epochs.
pub(crate) struct Progress {
    verbose: Verbose,
    out: Box<dyn Write>,
    /// Whether the bar may use colours and overwrite itself.
    terminal: bool,
    steps: Option<usize>,
    began: Instant,
    after_first: Option<Instant>,
    drawn: Option<Instant>,
    /// Characters of the line as it stands.
    width: usize,
}

impl Progress {
    /// On the standard error output.
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
        Progress {
            verbose,
            out,
            terminal,
            steps: None,
            began,
            after_first: None,
            drawn: None,
            width: 0,
        }
    }

    /// Whether the bar will be drawn again and shows numbers.
    pub(crate) fn draws(&self) -> bool {
        self.verbose == Verbose::Bar && self.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL)
    }

    /// Begins an epoch, from 0, or another pass if there are no epochs.
    pub(crate) fn begin(&mut self, epoch: Option<(usize, usize)>, steps: Option<usize>) {
        self.steps = steps;
        (self.began, self.after_first, self.drawn, self.width) = (Instant::now(), None, None, 0);
        if let Some((epoch, epochs)) = epoch.filter(|(_, epochs)| *epochs > 1) {
            if self.verbose != Verbose::Silent {
                self.say(&format!("Epoch {}/{epochs}\n", epoch + 1));
            }
        }
    }

    /// `done` batches are done.
    pub(crate) fn update(&mut self, done: usize, logs: &Logs) {
        if done >= 1 && self.after_first.is_none() {
            self.after_first = Some(Instant::now());
        }
        if self.draws() {
            self.draw(done, logs, false);
        }
    }

    /// The epoch has ended after `done` batches.
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
        // What the line before had more is blotted out.
        let blanks = " ".repeat(self.width.saturating_sub(visible));
        let (begin, end) = match (self.terminal, last) {
            (true, true) => ("\r", "\n"),
            (true, false) => ("\r", ""),
            (false, _) => ("", "\n"),
        };
        self.width = if self.terminal { visible } else { 0 };
        self.say(&format!("{begin}{line}{blanks}{end}"));
    }

    /// What a step takes; the first, which compiles, counts only as long as it is alone.
    fn seconds_a_step(&self, done: usize) -> f64 {
        match self.after_first {
            Some(first) if done > 1 => first.elapsed().as_secs_f64() / (done - 1) as f64,
            _ => self.began.elapsed().as_secs_f64() / done.max(1) as f64,
        }
    }

    fn step(&self, done: usize) -> String {
        match self.seconds_a_step(done) {
            long if long >= 1.0 => format!("{long:.0}s/step"),
            short if short >= 1e-3 => format!("{:.0}ms/step", short * 1e3),
            shortest => format!("{:.0}us/step", shortest * 1e6),
        }
    }

    /// Who does not listen does not matter: a closed pipe ends no training.
    fn say(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
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
