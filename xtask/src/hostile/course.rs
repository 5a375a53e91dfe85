//! Which tests run on which drivers.

use std::fmt;

use anyhow::Result;

use super::fixes::{self, Functions};

/// TensorFlow's cases: values, gradients, layers, losses, optimizers and trainings of 20 steps.
const ORACLE: &str = "oracle";
/// Errors compared with `f64`.
const ACCURACY: &str = "accuracy";
/// Ops beyond TensorFlow's cases.
const OPS: &str = "ops";
/// The part of them that runs: values at the edges of functions' domains.
const EDGES: [&str; 1] = ["edges::"];
/// Tests of plans.
const FUSION: &str = "fusion";
/// The part of them that runs: random programs, fused and op by op.
const RANDOM: [&str; 1] = ["random_programs::"];

/// Tests of the functions that kernels share.
const PRELUDE: &str = "prelude";

/// The tests of accuracy that run kernels.
const MEASURED: [&str; 3] =
    ["are_within_their_bounds", "powers_at_the_edges", "remainders_are_exact"];

/// No hardware does this, and users rely on NaN and infinities. They run only if they are named.
const NOBODY_HAS: [&str; 2] = ["nans-lost", "infinities-lost"];

/// The number of randomly combined drivers in a full run.
const DRAWN: u64 = 16;

/// The sizes of subgroups of real GPUs.
const SIZES: [u32; 6] = [4, 8, 16, 32, 64, 128];
/// Families of the oracle whose kernels use subgroup operations on a processor.
const WITH_SUBGROUPS: [&str; 4] = ["matmul", "reduction", "rnn", "softmax"];
/// Random programs whose kernels do so.
const RANDOM_WITH_SUBGROUPS: [&str; 4] = [
    "random_programs::reductions",
    "random_programs::long_rows",
    "random_programs::products",
    "random_programs::recurrences",
];

/// The expected result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Pass,
    /// A fix is removed, and a test must fail.
    Notice,
}

/// Tests of a program on a driver.
#[derive(Clone, Debug)]
pub struct Run {
    pub program: String,
    /// In the notation of `wgrad-hostile`.
    pub driver: String,
    /// Parts of names; all tests if there are none.
    pub tests: Vec<String>,
    /// The subgroup sizes that the adapter reports, if they differ from the real ones.
    pub subgroups: Option<String>,
    /// Replacements of functions in kernels.
    pub functions: Option<Functions>,
    pub expected: Expected,
}

impl Run {
    pub fn new(program: &str, driver: &str) -> Self {
        Self {
            program: program.to_owned(),
            driver: driver.to_owned(),
            tests: Vec::new(),
            subgroups: subgroups_of(driver).map(|size| format!("{size},{size}")),
            functions: None,
            expected: Expected::Pass,
        }
    }

    pub fn tests(self, tests: &[&str]) -> Self {
        Self { tests: tests.iter().map(|test| (*test).to_owned()).collect(), ..self }
    }

    /// The command that repeats this run alone.
    pub fn again(&self) -> String {
        format!("cargo xtask hostile --driver {} --program {}", self.driver, self.program)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.program, self.driver)?;
        if let Some(sizes) = self.subgroups.as_ref().filter(|sizes| sizes.as_str() == "8,32") {
            write!(f, " of {sizes}")?;
        }
        if let Some(functions) = &self.functions {
            write!(f, ", {}", functions.what)?;
        }
        Ok(())
    }
}

/// The test files to compile.
pub fn programs(named: &[String]) -> Vec<&str> {
    match named.is_empty() {
        true => vec![ORACLE, ACCURACY, OPS, FUSION, PRELUDE],
        false => named.iter().map(String::as_str).collect(),
    }
}

/// All tests on a driver.
pub fn on(driver: &str) -> Vec<Run> {
    vec![
        Run::new(ORACLE, driver),
        Run::new(ACCURACY, driver).tests(&MEASURED),
        Run::new(OPS, driver).tests(&EDGES),
        Run::new(FUSION, driver).tests(&RANDOM),
    ]
}

/// The latitudes with which all tests run.
fn common<'a>(latitudes: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let all = latitudes.into_iter();
    all.filter(|name| !NOBODY_HAS.contains(name)).collect()
}

/// Everything. `drawn` returns the driver of a seed.
pub fn whole(
    seed: u64,
    latitudes: &[String],
    drawn: impl Fn(u64) -> Result<String>,
) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for name in common(latitudes.iter().map(String::as_str)) {
        runs.extend(on(name));
    }
    for i in 0..DRAWN {
        runs.extend(on(&drawn(seed + i)?));
    }
    for size in SIZES {
        runs.extend(subgroups(size, false));
        runs.extend(subgroups(size, true));
    }
    runs.extend(subgroups_of_a_range());
    // It iterates over all drivers itself.
    runs.push(Run::new(PRELUDE, "none"));
    runs.extend(fixes::runs());
    Ok(runs)
}

/// Some minutes of it: one latitude, a driver with several, one subgroup size, and all fixes.
pub fn sample(
    seed: u64,
    latitudes: &[String],
    drawn: impl Fn(u64) -> Result<String>,
) -> Result<Vec<Run>> {
    let pick = |count: usize| (seed % count.max(1) as u64) as usize;
    let common = common(latitudes.iter().map(String::as_str));
    let mut runs = vec![Run::new(ORACLE, &drawn(seed)?)];
    let latitude = common.get(pick(common.len()));
    runs.extend(latitude.map(|name| Run::new(ACCURACY, name).tests(&MEASURED)));
    runs.extend(subgroups(SIZES[pick(SIZES.len())], seed.is_multiple_of(2)));
    runs.extend(fixes::runs());
    Ok(runs)
}

/// Tests whose kernels exchange numbers within subgroups, on an adapter with subgroups of this
/// size.
fn subgroups(size: u32, scattered: bool) -> [Run; 2] {
    let driver = format!("subgroups-{size}{}", if scattered { "-scattered" } else { "" });
    [
        Run::new(ORACLE, &driver).tests(&WITH_SUBGROUPS),
        Run::new(FUSION, &driver).tests(&RANDOM_WITH_SUBGROUPS),
    ]
}

/// Subgroups of 16, while the adapter reports sizes from 8 to 32.
fn subgroups_of_a_range() -> [Run; 2] {
    subgroups(16, false).map(|run| Run { subgroups: Some("8,32".into()), ..run })
}

/// The subgroup size in a driver's name.
fn subgroups_of(driver: &str) -> Option<u32> {
    let name = driver.split('+').find_map(|name| name.strip_prefix("subgroups-"))?;
    name.trim_end_matches("-scattered").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_draws_by_its_seed_and_has_all_fixes() -> Result<()> {
        let latitudes = ["round-up", "contract", "compare-nan", "nans-lost"].map(str::to_owned);
        let drawn = |seed| Ok(format!("regroup+seed-{seed}"));
        let named = |seed| -> Result<Vec<String>> {
            Ok(sample(seed, &latitudes, drawn)?.iter().map(Run::to_string).collect())
        };
        assert_eq!(named(7)?, named(7)?);
        assert_ne!(named(7)?, named(8)?);
        assert!(named(7)?.contains(&"oracle on regroup+seed-7".to_owned()), "{:?}", named(7)?);
        let fixes = fixes::runs().count();
        let sample = sample(7, &latitudes, drawn)?;
        assert_eq!(sample.iter().filter(|run| run.functions.is_some()).count(), fixes);
        assert_eq!(subgroups_of("round-up+subgroups-64-scattered"), Some(64));
        assert_eq!(Run::new(ORACLE, "subgroups-8").subgroups.as_deref(), Some("8,8"));
        let whole = whole(7, &latitudes, drawn)?;
        assert!(whole.len() > 12 + fixes);
        let latitude = |name: &str| whole.iter().any(|run| run.driver == name);
        assert!(latitude("contract") && latitude("compare-nan") && !latitude("nans-lost"));
        Ok(())
    }
}
