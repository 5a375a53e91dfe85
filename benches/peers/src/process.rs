//! A child process that answers lines with JSON: one engine with one case.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;

/// How to start an engine.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name in the output and in JSON.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Its working folder, which also gets its log.
    pub folder: PathBuf,
    pub limit: Duration,
}

/// A running engine.
pub struct Engine {
    pub name: String,
    /// Its first answer.
    pub hello: Value,
    pub started: Instant,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    log: PathBuf,
    limit: Duration,
}

impl Recipe {
    /// Starts the engine with a case and waits until it is ready.
    pub fn start(&self, case: &str, env: &[(String, String)]) -> Result<Engine> {
        std::fs::create_dir_all(&self.folder)?;
        let log = self.folder.join(format!("{}-{case}.log", self.name));
        let started = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .args(["--case", case])
            .envs(self.env.iter().chain(env).map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (sender, answers) = channel();
        let output = child.stdout.take().ok_or("the child has no output")?;
        std::thread::spawn(move || {
            // Libraries may print other lines; an answer is a line with a JSON object.
            let lines = BufReader::new(output).lines().map_while(std::io::Result::ok);
            for line in lines.filter(|line| line.starts_with('{')) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let (name, limit) = (self.name.clone(), self.limit);
        let mut engine =
            Engine { name, hello: Value::Null, started, child, input, answers, log, limit };
        engine.hello = engine.answer()?;
        Ok(engine)
    }
}

impl Engine {
    /// The answer to a line.
    pub fn ask(&mut self, line: &str) -> Result<Value> {
        let input = self.input.as_mut().ok_or("the engine was stopped")?;
        // If the child has ended, `answer` reports its last output.
        let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        self.answer()
    }

    /// The seconds that each of `count` iterations took.
    pub fn run(&mut self, count: usize) -> Result<Vec<f64>> {
        let answer = self.ask(&format!("run {count}"))?;
        numbers(&answer, "seconds")
    }

    fn answer(&mut self) -> Result<Value> {
        match self.answers.recv_timeout(self.limit) {
            Ok(line) => Ok(serde_json::from_str(&line)?),
            Err(RecvTimeoutError::Timeout) => {
                // Its answer is not needed any more, and it would slow down the others.
                let _ = self.child.kill();
                let seconds = self.limit.as_secs();
                Err(format!("{} gave no answer in {seconds} s (--limit)", self.name).into())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait()?;
                let words = last_words(&self.log);
                Err(format!("{} ended with {status}: {words}", self.name).into())
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A child without input ends by itself; one that hangs is killed.
        self.input = None;
        let patience = Instant::now() + Duration::from_secs(10);
        while Instant::now() < patience {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The list of numbers under `key`.
pub fn numbers(answer: &Value, key: &str) -> Result<Vec<f64>> {
    let list = answer[key].as_array().ok_or_else(|| format!("no `{key}` in {answer}"))?;
    Ok(list.iter().filter_map(Value::as_f64).collect())
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // The line of a panic is more informative than the notes after it.
    let ends = ["panicked at", "memory allocation of", "overflowed its stack"];
    let panic = lines.iter().position(|line| ends.iter().any(|end| line.contains(end)));
    let from = panic.unwrap_or(lines.len().saturating_sub(3));
    let words: Vec<&str> = lines[from..].iter().take(3).copied().collect();
    if words.is_empty() { "it said nothing".to_owned() } else { words.join(" | ") }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(script: &str, test: &str) -> Recipe {
        let name = format!("wgrad-peers-{}-{test}", std::process::id());
        Recipe {
            name: "shell".to_owned(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            env: Vec::new(),
            folder: std::env::temp_dir().join(name),
            limit: Duration::from_millis(500),
        }
    }

    fn failure(result: Result<Engine>) -> String {
        match result {
            Ok(_) => panic!("the engine came up"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_engine_answers_and_its_own_words_are_passed_over() {
        let script =
            "echo '{\"adapter\": \"x\"}'; read line; echo noise; echo '{\"seconds\": [0.5, 2]}'";
        let recipe = shell(script, "answers");
        let mut engine = recipe.start("case", &[]).unwrap();
        assert_eq!(engine.hello["adapter"], "x");
        assert_eq!(engine.run(2).unwrap(), [0.5, 2.0]);
        drop(engine);
        std::fs::remove_dir_all(recipe.folder).unwrap();
    }

    #[test]
    fn an_engine_that_fails_is_reported_with_its_last_words() {
        let recipe = shell("echo 'no such device' >&2; exit 3", "fails");
        let failure = failure(recipe.start("case", &[]));
        assert!(failure.contains("exit status: 3: no such device"), "{failure}");
        std::fs::remove_dir_all(recipe.folder).unwrap();
    }

    #[test]
    fn an_engine_that_hangs_is_reported() {
        let recipe = shell("sleep 2", "hangs");
        assert!(failure(recipe.start("case", &[])).contains("gave no answer"));
        std::fs::remove_dir_all(recipe.folder).unwrap();
    }
}
