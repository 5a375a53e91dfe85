//! The functions of `shaders/prelude.wgsl`: their costs, the functions that they call, and the linker.

use std::sync::{Arc, OnceLock};

use super::known_texts::KnownTexts;
use super::reader::read;
use super::shader;
use crate::support::sort::sort_by;

/// A function that kernels share.
pub(super) struct Function {
    name: &'static str,
    text: &'static str,
    /// How long a driver takes to compile a call of it, in units of ten microseconds.
    pub(super) cost: usize,
    /// Iterations of its loops and of those in functions that it calls.
    pub(super) iterations: usize,
    /// The functions that it calls, by their indices in the list.
    calls: Vec<usize>,
}

/// How long llvmpipe (Mesa 22.3.6, LLVM 15) takes to compile a call of these, in units of ten microseconds, from chains
/// of 1 and of 17 or 48 calls in one kernel. An addition takes 5 units, a whole kernel of one op 1700.
const COSTS: [(&str, usize); 32] = [
    ("acos_4", 350),
    ("acosh_4", 1900),
    ("asin_4", 300),
    ("asinh_4", 1900),
    ("atan2_4", 570),
    ("atan_4", 270),
    ("atanh_4", 2000),
    ("cos_4", 2300),
    ("cosh_4", 300),
    ("divide_4", 40),
    ("erf_4", 1100),
    ("erfc_4", 700),
    ("exp_4", 250),
    ("expm1_4", 250),
    ("floordiv_4", 1500),
    ("floormod_4", 1300),
    ("is_inf_4", 40),
    ("is_nan_4", 40),
    ("is_negative_4", 40),
    ("log1p_4", 1000),
    ("log_4", 600),
    ("max_4", 55),
    ("min_4", 55),
    ("philox", 900),
    ("pow_4", 2000),
    ("sigmoid_4", 280),
    ("sin_4", 2300),
    ("sinh_4", 350),
    ("softplus_4", 2100),
    ("sqrt_4", 45),
    ("tan_4", 1900),
    ("tanh_4", 400),
];

/// The cost of functions of vectors (their names end in `_4`) without a measurement.
const VECTORS: usize = 120;

/// All functions, in the order of their names. Blank lines separate them in the file.
fn functions() -> &'static [Function] {
    static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let blocks = shader!(include_str!("../../shaders/prelude.wgsl")).split("\n\n");
        let named = blocks.filter_map(|text| Some((name_of(text)?, text.trim_end())));
        let mut named: Vec<(&str, &str)> = named.collect();
        sort_by(&mut named, |(a, _), (b, _)| a.cmp(b));
        let functions = named.iter().map(|&(name, text)| {
            let measured = COSTS.iter().find(|(known, _)| *known == name);
            let unmeasured = if name.ends_with("_4") { VECTORS } else { 0 };
            let read = read(text, &|called| iterations(&named, called));
            let calls = read.calls.iter().filter_map(|name| place(&named, name)).collect();
            Function {
                name,
                text,
                cost: measured.map_or(unmeasured, |(_, cost)| *cost),
                iterations: read.iterations,
                calls,
            }
        });
        functions.collect()
    })
}

/// The name of the function in a text.
fn name_of(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("fn "))?;
    line["fn ".len()..].split('(').next()
}

fn place(named: &[(&str, &str)], name: &str) -> Option<usize> {
    named.binary_search_by_key(&name, |(known, _)| known).ok()
}

fn iterations(named: &[(&str, &str)], name: &str) -> usize {
    let Some(at) = place(named, name) else { return 0 };
    read(named[at].1, &|called| iterations(named, called)).iterations
}

fn find(name: &str) -> Option<usize> {
    functions().binary_search_by_key(&name, |function| function.name).ok()
}

/// The function of this name.
pub(super) fn function(name: &str) -> Option<&'static Function> {
    find(name).map(|at| &functions()[at])
}

/// The module with the functions that it calls, directly and indirectly.
pub(crate) fn link(module: String) -> Arc<str> {
    static LINKED: KnownTexts = KnownTexts::new();
    LINKED.get(&module, || {
        let mut linked = module.clone();
        append_called(&mut linked);
        linked
    })
}

/// Appends the functions that a module calls, directly and indirectly.
fn append_called(module: &mut String) {
    let mut linked: Vec<usize> = Vec::new();
    let add = |at, linked: &mut Vec<usize>| {
        if !linked.contains(&at) {
            linked.push(at);
        }
    };
    called(module).filter_map(find).for_each(|at| add(at, &mut linked));
    // The loop appends to the list while iterating over it.
    let mut next = 0;
    while let Some(&at) = linked.get(next) {
        functions()[at].calls.iter().for_each(|&at| add(at, &mut linked));
        next += 1;
    }
    for at in linked {
        module.push_str("\n\n");
        module.push_str(functions()[at].text);
        module.push('\n');
    }
}

/// The names before an opening parenthesis.
fn called(module: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = module.match_indices('(').map(|(at, _)| &module[..at]);
    before.map(move |text| text.rsplit(|c| !word(c)).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_linked_by_need() {
        let mut wgsl = String::from("fn f(x: vec4<f32>) -> vec4<f32> { return erf_4(x); }");
        append_called(&mut wgsl);
        // erf_4 calls erfc_4, which calls is_nan_4.
        for name in ["erf_4", "erfc_4", "is_nan_4"] {
            assert_eq!(wgsl.matches(&format!("fn {name}(")).count(), 1, "{name}");
        }
        assert!(!wgsl.contains("fn philox"));
        let mut none = String::from("fn my_erf_4() {}");
        append_called(&mut none);
        assert_eq!(none, "fn my_erf_4() {}");
    }

    #[test]
    fn every_function_is_known_with_its_cost_and_its_loops() {
        let text = include_str!("../../shaders/prelude.wgsl");
        let count = text.lines().filter(|line| line.starts_with("fn ")).count();
        assert!(count > 50 && functions().len() == count, "{count}");
        for (name, cost) in COSTS {
            assert_eq!(function(name).expect(name).cost, cost);
        }
        let cost = |name| function(name).map(|function| function.cost);
        assert_eq!([cost("signed_4"), cost("advance"), cost("select")], [Some(120), Some(0), None]);
        // These loops walk the lanes of large angles, and the digits of a quotient.
        let made = |name| function(name).map(|function| function.iterations);
        assert_eq!(
            [made("sin_4"), made("floormod_4"), made("exp_4")],
            [Some(4), Some(35), Some(0)]
        );
    }
}
