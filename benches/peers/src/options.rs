//! The command line of the harness.

use std::path::PathBuf;
use std::time::Duration;

use crate::alone;

/// The options of a run.
#[derive(Debug)]
pub struct Options {
    /// Names of cases, or their beginnings; empty for all.
    pub only: Vec<String>,
    /// Whether these are whole names.
    pub exact: bool,
    /// Where to write the figures as JSON.
    pub json: Option<PathBuf>,
    /// Fewer and shorter repetitions.
    pub quick: bool,
    /// Also the sizes for graphics cards.
    pub gpu: bool,
    /// Engines to measure; empty for all available ones.
    pub engines: Vec<String>,
    /// Where Burn stores its tuning results between runs.
    pub cache: PathBuf,
    /// The Python interpreter that has PyTorch and TensorFlow.
    pub python: String,
    /// Repetitions per case; overrides the default.
    pub repetitions: Option<usize>,
    /// How long an engine may take for an answer, if given.
    pub limit: Option<Duration>,
    /// Whether to rewrite `docs/benchmarks.md`, if given.
    pub docs: Option<bool>,
    /// Whether to plan for the adapter instead of a device that runs nothing.
    pub real: bool,
    /// The number of random recurrences, or of steps of changing lengths; overrides the default.
    pub count: Option<usize>,
}

pub enum Parsed {
    Help,
    Run(Box<Options>),
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Parsed, String> {
        let mut options = Options {
            only: Vec::new(),
            exact: false,
            json: None,
            quick: false,
            gpu: false,
            engines: Vec::new(),
            cache: std::env::temp_dir().join("wgrad-peers"),
            python: "python3".to_owned(),
            repetitions: None,
            limit: None,
            docs: None,
            real: false,
            count: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                rest.next().cloned().ok_or_else(|| format!("`{argument}` needs a value behind it"))
            };
            match argument.as_str() {
                "--only" => options.only.extend(list(&value()?)),
                "--exact" => options.exact = true,
                "--json" => options.json = Some(absolute(&value()?)?),
                "--quick" => options.quick = true,
                "--sizes" => match value()?.as_str() {
                    "gpu" => options.gpu = true,
                    other => return Err(format!("`--sizes` takes `gpu`, not `{other}`")),
                },
                "--engines" => options.engines.extend(list(&value()?)),
                "--cache" => options.cache = absolute(&value()?)?,
                "--python" => options.python = value()?,
                "--repetitions" => options.repetitions = Some(number(&value()?)?),
                "--limit" => options.limit = Some(Duration::from_secs(number(&value()?)? as u64)),
                "--no-docs" => options.docs = Some(false),
                "--docs" => options.docs = Some(true),
                "--real" => options.real = true,
                "--count" => options.count = Some(number(&value()?)?),
                "--help" | "-h" => return Ok(Parsed::Help),
                other => return Err(format!("`{other}` is not an option")),
            }
        }
        let alone = options.only.iter().filter(|name| alone::is_alone(name)).count();
        if alone > 0 && alone < options.only.len() {
            let groups = alone::GROUPS.map(|(name, _)| name).join(", ");
            return Err(format!("cases of {groups} are measured in a run without other cases"));
        }
        // Burn stores its tuning results in the outermost cargo project around its working folder, if there is one.
        if let Some(project) = options.cache.ancestors().find(|f| f.join("Cargo.toml").exists()) {
            let (cache, project) = (options.cache.display(), project.display());
            return Err(format!(
                "`--cache {cache}` is inside the cargo project {project}; name a folder outside"
            ));
        }
        Ok(Parsed::Run(Box::new(options)))
    }

    /// Whether the case of this name is requested.
    pub fn wants(&self, name: &str) -> bool {
        let chosen = |only: &String| {
            let more = |rest: &str| !self.exact && rest.starts_with('_');
            name.strip_prefix(only.as_str()).is_some_and(|rest| rest.is_empty() || more(rest))
        };
        self.only.is_empty() || self.only.iter().any(chosen)
    }

    /// Whether all requested cases measure wgrad alone.
    pub fn alone(&self) -> bool {
        self.only.iter().any(|name| alone::is_alone(name))
    }

    /// Whether this engine may take part.
    pub fn admits(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|e| e == engine)
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is not a whole number from 1 on"))
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("`{path}`: {error}"))
}

pub fn help() -> String {
    let mut text = String::from(
        "Usage: cargo xtask bench [OPTIONS]
       cargo xtask bench loading COMMAND FOLDER [OPTIONS]    times ONNX models; `loading --help`
       cargo xtask bench networks FOLDER [OPTIONS]           measures known networks; `networks --help`

Measures wgrad beside Burn on the same adapter, case by case and in turn, and prints ratios. WGRAD_ADAPTER chooses the
adapter of both. A run of all cases also rewrites the adapter's table in docs/benchmarks.md.

Options:
  --only CASE[,CASE]     these cases, or those whose names begin so (`--only matmul`)
  --exact                those of exactly these names
  --json FILE            write the figures to FILE
  --quick                fewer and shorter repetitions; the documentation is left alone
  --sizes gpu            also sizes that only a graphics card does in reasonable time
  --engines LIST         of wgrad,burn,copy,torch,tensorflow; all that are there by default
  --cache DIR            where Burn keeps its tuning between runs; outside of any cargo project
  --python PROGRAM       the Python to look for PyTorch and TensorFlow in (python3)
  --repetitions N        repetitions of a case (7, or 3 with --quick; of the programs in `cold` 1)
  --limit SECONDS        how long an engine may take for one answer (1200; of the groups below 20, 60 and 600)
  --no-docs              leave docs/benchmarks.md alone
  --docs                 write the tables of the groups below into docs/benchmarks.md
  --real                 make plans for the adapter, and run them, rather than for a device that runs nothing
  --count N              random recurrences (200), or steps of changing lengths (500)
  --without-burn         do not build Burn: wgrad's figures alone
  --spirv                build Burn with its own SPIR-V compiler for Vulkan, in place of WGSL; crashes in lavapipe

Cases:
",
    );
    for case in crate::cases::all(true) {
        text.push_str(&format!("  {:<24} {}\n", case.name, case.title));
    }
    for (name, what) in crate::harness::EXTRAS {
        text.push_str(&format!("  {name:<24} {what}\n"));
    }
    text.push_str("\nGroups of wgrad alone, which run only when --only names them, each case in a process of its own:\n");
    for (name, what) in alone::GROUPS {
        text.push_str(&format!("  {name:<24} {what}\n"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Box<Options>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match Options::parse(&words)? {
            Parsed::Run(options) => Ok(options),
            Parsed::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn cases_are_chosen_by_whole_words_of_their_names() {
        let options = parse("--only matmul,cnn").unwrap();
        assert!(options.wants("matmul_256") && options.wants("cnn") && options.wants("cnn_memory"));
        assert!(!options.wants("batched_matmul") && !options.wants("matmuls"));
        assert!(parse("").unwrap().wants("anything"));
        let exact = parse("--only mlp --exact").unwrap();
        assert!(exact.wants("mlp") && !exact.wants("mlp_memory"));
    }

    #[test]
    fn cases_of_wgrad_alone_run_without_others() {
        assert!(parse("--only planning_chain,cold").unwrap().alone());
        assert!(!parse("").unwrap().alone() && !parse("--only matmul").unwrap().alone());
        assert!(parse("--only planning,matmul").unwrap_err().contains("without other cases"));
    }

    #[test]
    fn wrong_lines_are_refused_with_their_reason() {
        for (line, reason) in [
            ("--onyl x", "`--onyl` is not an option"),
            ("--json", "`--json` needs a value behind it"),
            ("--sizes huge", "`--sizes` takes `gpu`, not `huge`"),
            ("--repetitions many", "`many` is not a whole number from 1 on"),
        ] {
            assert_eq!(parse(line).unwrap_err(), reason);
        }
    }

    #[test]
    fn the_cache_stays_outside_of_cargo_projects() {
        let inside = concat!("--cache ", env!("CARGO_MANIFEST_DIR"), "/target/cache");
        assert!(parse(inside).unwrap_err().contains("inside the cargo project"));
    }
}
