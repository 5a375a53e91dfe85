//! A child process with a time limit; it is ended together with its descendants.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::run::CommandLine;

/// The most lines that are kept of a child's output: the last ones, which include the failure.
const LINES: usize = 4000;
/// How long a killed child may take to close its output.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Normally, with this exit status.
    Exit(i32),
    /// By a crash: a signal, or an error status of Windows.
    Crash(String),
    /// Killed at its limit.
    Late,
}

/// The result of a child process.
#[derive(Debug)]
pub struct Ended {
    pub end: End,
    pub seconds: f64,
    /// The lines that it wrote to standard output and standard error.
    pub output: Vec<String>,
    pub errors: Vec<String>,
}

/// Runs `line` for at most `limit`.
pub fn run(line: &CommandLine, limit: Duration) -> Result<Ended> {
    let began = Instant::now();
    let mut child = line.spawn(Stdio::piped)?;
    let output = reader(child.stdout.take());
    let errors = reader(child.stderr.take());
    let end = wait(&mut child, began + limit)?;
    let seconds = began.elapsed().as_secs_f64();
    let until = Instant::now() + PATIENCE;
    Ok(Ended { end, seconds, output: collect(&output, until), errors: collect(&errors, until) })
}

fn wait(child: &mut Child, until: Instant) -> Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ended(status));
        }
        if Instant::now() >= until {
            end_all(child);
            child.wait()?;
            return Ok(End::Late);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(unix)]
fn ended(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, signal) => End::Crash(format!("signal {}", signal.unwrap_or_default())),
    }
}

#[cfg(not(unix))]
fn ended(status: ExitStatus) -> End {
    match status.code() {
        // Windows' error statuses start here: 0xC0000005 is an access violation.
        Some(code) if code < 0 => End::Crash(format!("status {code:#010x}")),
        Some(code) => End::Exit(code),
        None => End::Crash("no status".to_owned()),
    }
}

/// Kills a child and its descendants, which would otherwise keep using the GPU.
fn end_all(child: &mut Child) {
    if cfg!(windows) {
        let tree = ["/T", "/F", "/PID", &child.id().to_string()];
        CommandLine::new("taskkill").args(tree).probe();
    } else {
        let processes = CommandLine::new("ps").args(["-A", "-o", "pid=,ppid="]).probe();
        for process in descendants(&processes.unwrap_or_default(), child.id()) {
            CommandLine::new("kill").args(["-KILL", &process.to_string()]).probe();
        }
    }
    // It may have ended already.
    let _ = child.kill();
}

/// All descendants of `parent` in a list of pairs: a process and its parent.
fn descendants(list: &str, parent: u32) -> Vec<u32> {
    let pairs: Vec<(u32, u32)> = list
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .collect();
    let mut found = vec![parent];
    let mut at = 0;
    while at < found.len() {
        let children = pairs.iter().filter(|(child, of)| *of == found[at] && child != of);
        let new: Vec<u32> = children.map(|(child, _)| *child).collect();
        found.extend(new.into_iter().filter(|child| *child != parent));
        at += 1;
    }
    found.split_off(1)
}

fn reader(from: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines): (Sender<String>, _) = channel();
    if let Some(from) = from {
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            // Invalid UTF-8 is replaced.
            while from.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
    }
    lines
}

/// All lines until the output is closed or the time is over.
fn collect(lines: &Receiver<String>, until: Instant) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        all.push(line);
    }
    let surplus = all.len().saturating_sub(LINES);
    all.split_off(surplus)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_at_any_depth() {
        let list = "  1     0\n 10 1\n 11 10\n 12 11\n 20 1\n nonsense\n 13 10\n";
        assert_eq!(descendants(list, 10), [11, 13, 12]);
        assert!(descendants(list, 20).is_empty() && descendants("", 1).is_empty());
        // A reused process number may form a cycle.
        assert_eq!(descendants("2 1\n1 2\n", 1), [2]);
    }

    #[cfg(unix)]
    fn shell(script: &str, limit: Duration) -> Ended {
        run(&CommandLine::new("/bin/sh").args(["-c", script]), limit).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn output_and_exit_of_a_child_are_reported() {
        let ended = shell("echo one; echo two >&2; echo three; exit 3", Duration::from_secs(60));
        assert_eq!(ended.end, End::Exit(3));
        assert_eq!(ended.output, ["one", "three"]);
        assert_eq!(ended.errors, ["two"]);
        assert_eq!(
            shell("kill -SEGV $$", Duration::from_secs(60)).end,
            End::Crash("signal 11".into())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_hangs_is_ended_with_its_own_children() {
        let began = Instant::now();
        let ended = shell("echo begun; sleep 60 & echo $!; wait", Duration::from_millis(300));
        assert_eq!(ended.end, End::Late);
        assert!(began.elapsed() < Duration::from_secs(30));
        let [begun, process] = &ended.output[..] else { panic!("{:?}", ended.output) };
        assert_eq!(begun, "begun");
        // The process that adopts an ended process may leave it in the list, as a zombie.
        let state = CommandLine::new("ps").args(["-o", "stat=", "-p", process.as_str()]).probe();
        assert!(
            state.is_none_or(|state| state.trim().starts_with('Z')),
            "process {process} goes on"
        );
    }
}
