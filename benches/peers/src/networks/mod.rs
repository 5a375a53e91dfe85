//! `wgrad-peers networks`: known networks, their speed and memory, in wgrad, Burn, candle and PyTorch.
//!
//! Each measurement is a process of its own with empty caches, so that its first result is a cold one. wgrad, candle and PyTorch
//! load the same weights, which `networks.py` writes, and their results are compared; Burn draws its own, and the number of its
//! parameters is compared.

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "candle")]
mod candle;
mod child;
mod wgrad;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::Result;
use crate::harness::{empty_caches, load_average, repository};
use crate::report::{Setting, digits};

const HELP: &str = "Usage: cargo xtask bench networks FOLDER [OPTIONS]
       cargo xtask bench networks profile CASE FOLDER    prints wgrad's kernels and their times

Measures ResNet50, GPT-2 and BERT in wgrad, Burn, candle and PyTorch. FOLDER has the weights; networks.py writes them
(`networks.py weights FOLDER`), which the run does if they are missing.

Options:
  --python PROGRAM   the Python that has torch, torchvision, transformers and safetensors (python3)
  --only LIST        cases, or the beginnings of their names
  --engines LIST     of wgrad,burn,candle,torch; all that are there by default
  --seconds N        how long later runs are timed, three at least (10)
  --limit N          seconds after which a process is stopped (600)
  --without-burn     do not build Burn
";

/// The step of the training cases.
pub const RATE: f32 = 0.01;

/// GPT-2's own 50,257 tokens of 768 floats are more than the 128 MiB that lavapipe binds to a kernel at once.
pub const VOCABULARY: usize = 40_000;

/// The tokens of a generation after the first.
pub const NEW_TOKENS: usize = 64;

const ENGINES: [&str; 4] = ["wgrad", "burn", "candle", "torch"];

#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    title: &'static str,
    pub work: Work,
}

#[derive(Clone, Copy)]
pub enum Work {
    ResNet {
        batch: usize,
        train: bool,
    },
    Bert {
        length: usize,
        train: bool,
    },
    /// A prompt, to the first token.
    Prefill {
        length: usize,
    },
    /// The tokens after a prompt.
    Generate {
        length: usize,
    },
}

pub fn cases() -> [Case; 7] {
    let case = |name, title, work| Case { name, title, work };
    let resnet = |batch, train| Work::ResNet { batch, train };
    [
        case("resnet50_1", "ResNet50, batch 1", resnet(1, false)),
        case("resnet50_8", "ResNet50, batch 8", resnet(8, false)),
        case("resnet50_train", "ResNet50, a training step, batch 4", resnet(4, true)),
        case("gpt2_prefill", "GPT-2 small, a prompt of 128 tokens", Work::Prefill { length: 128 }),
        case("gpt2_generate", "GPT-2 small, a token after it", Work::Generate { length: 128 }),
        case("bert", "BERT-base, 128 tokens", Work::Bert { length: 128, train: false }),
        case("bert_train", "BERT-base, a training step", Work::Bert { length: 128, train: true }),
    ]
}

fn find(name: &str) -> Result<Case> {
    let case = cases().into_iter().find(|known| known.name == name);
    case.ok_or_else(|| format!("there is no case `{name}`").into())
}

impl Case {
    /// The name of the file of weights.
    pub fn weights(&self) -> &'static str {
        match self.work {
            Work::ResNet { .. } => "resnet50",
            Work::Bert { .. } => "bert",
            Work::Prefill { .. } | Work::Generate { .. } => "gpt2",
        }
    }

    pub fn trains(&self) -> bool {
        matches!(self.work, Work::ResNet { train: true, .. } | Work::Bert { train: true, .. })
    }

    /// Whether the values of a run are tokens.
    fn words(&self) -> bool {
        matches!(self.work, Work::Prefill { .. } | Work::Generate { .. })
    }

    /// The number of tokens over which a run's time is divided.
    pub fn tokens(&self) -> usize {
        if matches!(self.work, Work::Generate { .. }) { NEW_TOKENS } else { 1 }
    }

    /// How often a run calls the network.
    pub fn calls(&self) -> usize {
        if matches!(self.work, Work::Generate { .. }) { NEW_TOKENS + 1 } else { 1 }
    }
}

/// Numbers from -1 to 1 that every library can compute exactly: the pixels of images, the features to learn.
pub fn wave(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919) % 2001) as f32 / 1000.0 - 1.0).collect()
}

pub fn tokens(len: usize) -> Vec<i32> {
    (0..len).map(|i| ((i * 7919 + 13) % 30_000) as i32).collect()
}

pub fn labels(len: usize) -> Vec<i32> {
    (0..len).map(|i| ((i * 397) % 1000) as i32).collect()
}

struct Options {
    folder: PathBuf,
    python: String,
    only: Vec<String>,
    engines: Vec<String>,
    seconds: f64,
    limit: Duration,
}

/// `wgrad-peers networks FOLDER ...`.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments.first().map(String::as_str) {
        None | Some("--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some("child") => child::run(&arguments[1..]),
        Some("profile") => match &arguments[1..] {
            [case, folder] => wgrad::profile(find(case)?, Path::new(folder)),
            _ => Err("`networks profile` takes a case and a folder".into()),
        },
        Some(folder) => measure(&parse(folder, &arguments[1..])?),
    }
}

fn parse(folder: &str, rest: &[String]) -> Result<Options> {
    let mut options = Options {
        folder: std::path::absolute(folder)?,
        python: "python3".to_owned(),
        only: Vec::new(),
        engines: Vec::new(),
        seconds: 10.0,
        limit: Duration::from_secs(600),
    };
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    for pair in rest.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("`{}` needs a value behind it", pair[0]).into());
        };
        match name.as_str() {
            "--python" => options.python = value.clone(),
            "--only" => options.only = list(value),
            "--engines" => options.engines = list(value),
            "--seconds" => options.seconds = value.parse()?,
            "--limit" => options.limit = Duration::from_secs(value.parse()?),
            other => return Err(format!("`{other}` is not an option of `networks`").into()),
        }
    }
    Ok(options)
}

/// What a process said, and what went wrong.
struct Said {
    values: Map<String, Value>,
    problem: Option<String>,
}

impl Said {
    fn number(&self, key: &str) -> Option<f64> {
        self.values.get(key)?.as_f64()
    }

    fn cell(&self, key: &str, scale: f64) -> String {
        self.number(key).map(|number| digits(number / scale)).unwrap_or_default()
    }

    fn check(&self) -> Vec<f64> {
        let list = self.values.get("check").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_f64).collect()
    }
}

fn measure(options: &Options) -> Result<()> {
    let script = repository().join("benches/peers/networks.py");
    if cases()
        .iter()
        .any(|case| !options.folder.join(case.weights()).with_extension("safetensors").exists())
    {
        let made = Command::new(&options.python)
            .arg(&script)
            .arg("weights")
            .arg(&options.folder)
            .status()?;
        if !made.success() {
            return Err(format!(
                "`{} {} weights` ended with {made}",
                options.python,
                script.display()
            )
            .into());
        }
    }
    let engines = ENGINES.into_iter().filter(|engine| match *engine {
        "burn" if !cfg!(feature = "burn") => false,
        "candle" if !cfg!(feature = "candle") => false,
        engine => options.engines.is_empty() || options.engines.iter().any(|name| name == engine),
    });
    let engines: Vec<&str> = engines.collect();
    let wants = |case: &Case| {
        options.only.is_empty()
            || options.only.iter().any(|name| case.name.starts_with(name.as_str()))
    };
    let before = load_average();
    let scratch = std::env::temp_dir().join(format!("wgrad-networks-{}", std::process::id()));
    let mut versions = BTreeMap::new();
    let mut adapter = [String::new(), String::new(), String::new()];
    let mut lines = Vec::new();
    for case in cases().into_iter().filter(wants) {
        let mut all: Vec<(&str, Said)> = Vec::new();
        for &engine in &engines {
            let mut command = match engine {
                "torch" => Command::new(&options.python),
                _ => Command::new(std::env::current_exe()?),
            };
            match engine {
                "torch" => command.arg(&script).args(["time", case.name]),
                _ => command.args(["networks", "child", engine, case.name]),
            };
            command.arg(&options.folder).arg(options.seconds.to_string());
            let _ = std::fs::remove_dir_all(&scratch);
            // Burn stores its tuning in the working folder's project.
            let caches = empty_caches(&scratch)?;
            command.envs(caches.iter().map(|(name, value)| (name, value))).current_dir(&scratch);
            // Tests ask Mesa not to optimize.
            command.env_remove("GALLIVM_PERF");
            let said = listen(&mut command, options.limit)?;
            if let Some(version) = said.values.get("version").and_then(Value::as_str) {
                versions.insert(engine, version.to_owned());
            }
            if let Some(named) = said.values.get("adapter") {
                let named: [String; 3] = serde_json::from_value(named.clone())?;
                if !adapter[0].is_empty() && adapter[0] != named[0] {
                    let [wgrad, theirs] = [&adapter[0], &named[0]];
                    return Err(format!(
                        "wgrad took `{wgrad}` and {engine} `{theirs}`: nothing to compare"
                    )
                    .into());
                }
                adapter = named;
            }
            eprintln!(
                "{} {engine}: {} ms, load {}",
                case.name,
                said.cell("milliseconds", 1.0),
                load_average()
            );
            all.push((engine, said));
        }
        lines.extend(rows(&case, &all));
    }
    let _ = std::fs::remove_dir_all(&scratch);
    let [name, driver, api] = &adapter;
    let mut setting = Setting::of_machine(&repository(), name, driver, api);
    setting.versions.extend(
        versions.into_iter().filter(|(engine, _)| *engine != "wgrad").map(|(_, version)| version),
    );
    println!("{setting}; load average {before} before and {} after\n", load_average());
    println!(
        "| case | | ms | wgrad is so many times as fast | first result, s | kernels | pipelines | device, MB | process, MB | \
         difference |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// The lines of a case. Differences are those to PyTorch, or to wgrad without it.
fn rows(case: &Case, all: &[(&str, Said)]) -> Vec<String> {
    let named = |name: &str| all.iter().find(|(engine, _)| *engine == name).map(|(_, said)| said);
    let wgrad = named("wgrad").and_then(|said| said.number("milliseconds"));
    let reference = named("torch").or(named("wgrad")).map(Said::check).unwrap_or_default();
    let parameters = named("wgrad").and_then(|said| said.number("parameters"));
    let line = |(engine, said): &(&str, Said)| {
        let ratio = said.number("milliseconds").zip(wgrad).filter(|_| *engine != "wgrad");
        let ratio = ratio.map(|(theirs, ours)| digits(theirs / ours)).unwrap_or_default();
        let mut cells = vec![
            case.title.to_owned(),
            (*engine).to_owned(),
            said.cell("milliseconds", 1.0),
            ratio,
            said.cell("cold", 1.0),
            said.cell("kernels", 1.0),
            said.cell("pipelines", 1.0),
            said.cell("device", 1e6),
            said.cell("host", 1e6),
            difference(case, &reference, &said.check()),
        ];
        let others =
            said.number("parameters").zip(parameters).filter(|(theirs, ours)| theirs != ours);
        if let Some((theirs, ours)) = others {
            cells.push(format!("{theirs} parameters, wgrad has {ours}"));
        }
        cells.extend(said.problem.clone());
        format!("| {} |", cells.join(" | "))
    };
    all.iter().map(line).collect()
}

/// The largest difference as a part of the largest number; of tokens, how many differ.
fn difference(case: &Case, reference: &[f64], values: &[f64]) -> String {
    // A process that was stopped may have fewer losses.
    let len = if case.trains() { reference.len().min(values.len()) } else { reference.len() };
    if values.is_empty() || (values.len() != len && !case.trains()) {
        return String::new();
    }
    let pairs = || reference.iter().zip(values).take(len);
    if case.words() {
        return format!("{} of {len} tokens", pairs().filter(|(a, b)| a != b).count());
    }
    let largest = reference.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let apart = pairs().fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    format!("{:.0e}", apart / largest)
}

/// Runs a process for `limit` at most, and merges its lines of JSON. "cold" is when the line with its first result came.
fn listen(command: &mut Command, limit: Duration) -> Result<Said> {
    let started = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn()?;
    let (sender, lines) = channel();
    let output = child.stdout.take().ok_or("the process has no output")?;
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            if sender.send((started.elapsed(), line)).is_err() {
                break;
            }
        }
    });
    let mut errors = child.stderr.take().ok_or("the process has no errors")?;
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = errors.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut said = Said { values: Map::new(), problem: None };
    loop {
        match lines.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok((at, line)) => {
                let Ok(Value::Object(values)) = serde_json::from_str(&line) else { continue };
                if values.contains_key("first") {
                    said.values.insert("cold".to_owned(), at.as_secs_f64().into());
                }
                said.values.extend(values);
            }
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                said.problem = Some(format!("stopped after {} s", limit.as_secs()));
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait()?;
    let errors = errors.join().unwrap_or_default();
    if !status.success() && said.problem.is_none() {
        let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(2)..].join(" ").replace('|', "/");
        said.problem = Some(format!("{status}: {last}"));
    }
    Ok(said)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_has_said_what_it_knew() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo '{"first": 2, "check": [1]}'; echo noise; sleep 5"#]);
        let said = listen(&mut command, Duration::from_millis(500)).unwrap();
        assert_eq!((said.number("first"), said.check()), (Some(2.0), vec![1.0]));
        assert!(said.number("cold").unwrap() < 0.5);
        assert_eq!(said.problem.as_deref(), Some("stopped after 0 s"));
    }

    #[test]
    fn differences_are_parts_of_the_largest_number() {
        let [resnet, .., bert_train] = cases();
        assert_eq!(difference(&resnet, &[1.0, -4.0], &[1.02, -4.0]), "5e-3");
        assert_eq!(difference(&resnet, &[1.0, -4.0], &[1.0]), "");
        assert_eq!(difference(&bert_train, &[2.0, 1.0, 0.5], &[2.0, 1.0]), "0e0");
        let generate = cases()[4];
        assert_eq!(difference(&generate, &[5.0, 7.0], &[5.0, 8.0]), "1 of 2 tokens");
    }
}
