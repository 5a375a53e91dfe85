//! The example's flags, without a crate for parsing: it is the first program that a newcomer compiles.

use std::path::PathBuf;
use std::str::FromStr;

pub const HELP: &str = "\
Train a network on MNIST on the GPU.

Usage: mnist [OPTIONS]

Options:
  --model <MODEL>      The network: mlp (784-100-10) or cnn (two convolutions and two dense layers) [default: mlp]
  --epochs <EPOCHS>    Times through the training images [default: 1]
  --steps <STEPS>      Stop after this many steps
  --batch <BATCH>      Images a step [default: 50]
  --lr <LR>            Learning rate of Adam [default: 0.001]
  --seed <SEED>        Seed of the random numbers [default: 1]
  --adapter <ADAPTER>  A part of the adapter's name, or its index
  --data <DATA>        Folder of the four MNIST files
  --test <TEST>        Test images to look at in the end [default: 10000]
  --out <OUT>          Folder for the pictures [default: out]
  --json <JSON>        Write the run's figures to this file
  --log-dir <LOG-DIR>  Folder for what TensorBoard shows
  -h, --help           Print this
";

pub struct Flags {
    pub model: Model,
    pub epochs: usize,
    pub steps: Option<usize>,
    pub batch: usize,
    pub lr: f32,
    pub seed: u64,
    pub adapter: Option<String>,
    pub data: Option<PathBuf>,
    pub test: usize,
    pub out: PathBuf,
    pub json: Option<PathBuf>,
    pub log_dir: Option<PathBuf>,
}

#[derive(Clone, Copy)]
pub enum Model {
    Mlp,
    Cnn,
}

impl Flags {
    /// Reads `--name value` and `--name=value`; `None` if help was requested.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Flags>, String> {
        let mut flags = Flags {
            model: Model::Mlp,
            epochs: 1,
            steps: None,
            batch: 50,
            lr: 1e-3,
            seed: 1,
            adapter: None,
            data: None,
            test: 10_000,
            out: "out".into(),
            json: None,
            log_dir: None,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (word.as_str(), None),
            };
            if matches!(name, "-h" | "--help") {
                return Ok(None);
            }
            let known = HELP.lines().any(|line| line.split_whitespace().next() == Some(name));
            if !known {
                return Err(format!("unexpected argument '{word}' found"));
            }
            let value = value.or_else(|| words.next());
            let value =
                value.ok_or_else(|| format!("a value is required for '{}'", shown(name)))?;
            match name {
                "--model" => flags.model = model(name, &value)?,
                "--epochs" => flags.epochs = count(name, &value)?,
                "--steps" => flags.steps = Some(count(name, &value)?),
                "--batch" => flags.batch = count(name, &value)?,
                "--lr" => flags.lr = rate(name, &value)?,
                "--seed" => {
                    flags.seed = number(name, &value, |_| true, "a whole number is needed")?;
                }
                "--adapter" => flags.adapter = Some(value),
                "--data" => flags.data = Some(value.into()),
                "--test" => flags.test = count(name, &value)?,
                "--out" => flags.out = value.into(),
                "--log-dir" => flags.log_dir = Some(value.into()),
                _ => flags.json = Some(value.into()),
            }
        }
        Ok(Some(flags))
    }
}

fn model(name: &str, value: &str) -> Result<Model, String> {
    match value {
        "mlp" => Ok(Model::Mlp),
        "cnn" => Ok(Model::Cnn),
        _ => Err(invalid(name, value, "mlp or cnn is needed")),
    }
}

/// A number that must not be 0.
fn count(name: &str, value: &str) -> Result<usize, String> {
    number(name, value, |count| *count > 0, "a whole number from 1 on is needed")
}

fn rate(name: &str, value: &str) -> Result<f32, String> {
    let usable = |rate: &f32| *rate > 0.0 && rate.is_finite();
    number(name, value, usable, "a number above 0 is needed, such as 0.001")
}

fn number<T: FromStr>(
    name: &str,
    value: &str,
    usable: impl Fn(&T) -> bool,
    needed: &str,
) -> Result<T, String> {
    value.parse().ok().filter(usable).ok_or_else(|| invalid(name, value, needed))
}

fn invalid(name: &str, value: &str, needed: &str) -> String {
    format!("invalid value '{value}' for '{}': {needed}", shown(name))
}

/// `--steps` as `--steps <STEPS>`.
fn shown(name: &str) -> String {
    format!("{name} <{}>", name.trim_start_matches('-').to_uppercase())
}
