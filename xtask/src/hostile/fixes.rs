//! Removes workarounds for real drivers from kernels: a test on a driver that needs the workaround must fail.
//! `portability/hostile/tests/prelude.rs` does the same for single functions.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::course::{Expected, Run};
use crate::run::workspace_root;

/// Functions that replace those of the same names in `shaders/prelude.wgsl`.
#[derive(Clone, Debug)]
pub struct Functions {
    pub what: &'static str,
    wgsl: &'static str,
}

impl Functions {
    /// Writes them to a file for the rewriter.
    pub fn write(&self) -> Result<PathBuf> {
        let folder = workspace_root().join("target/hostile");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let file = folder.join(format!("{}.wgsl", self.what.replace(' ', "-")));
        std::fs::write(&file, self.wgsl)
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }
}

/// A fix: the functions without it, a driver that needs it, and the tests that must fail.
struct Fix {
    without: Functions,
    driver: &'static str,
    program: &'static str,
    tests: &'static [&'static str],
    expected: Expected,
}

const FIXES: &[Fix] = &[
    Fix {
        without: Functions {
            what: "quotients without scale",
            wgsl: "fn divide_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return a / b; }\n",
        },
        driver: "quotient-by-reciprocal",
        program: "ops",
        tests: &["edges::large_divisors_are_no_infinities"],
        expected: Expected::Notice,
    },
    Fix {
        without: Functions {
            what: "tanh without bound",
            wgsl: "fn tanh_4(x: vec4<f32>) -> vec4<f32> {\n    \
                   let q = quarter_expm1_4(2.0 * abs(x));\n    \
                   return unless_tiny_4(signed_4(min(q / (q + 0.5), vec4<f32>(1.0)), x), x);\n}\n",
        },
        driver: "quotient-by-reciprocal",
        program: "ops",
        tests: &["edges::large_divisors_are_no_infinities"],
        expected: Expected::Notice,
    },
    Fix {
        without: Functions {
            what: "halves there and back",
            wgsl: "fn narrow_4(x: vec4<f32>) -> vec4<f32> { return vec4<f32>(vec4<f16>(x)); }\n",
        },
        driver: "halves-elided",
        program: "ops",
        tests: &["edges::a_narrow_dtype_between_two_ops_narrows"],
        expected: Expected::Notice,
    },
    Fix {
        without: Functions {
            what: "halves by quantizeToF16",
            wgsl: "fn narrow_4(x: vec4<f32>) -> vec4<f32> { return quantizeToF16(x); }\n",
        },
        driver: "quantize-wild",
        program: "ops",
        tests: &["edges::a_narrow_dtype_between_two_ops_narrows"],
        expected: Expected::Notice,
    },
    // The H100 returned 0 for 0 / 0, so the mean of no elements does not divide.
    Fix {
        without: Functions {
            what: "zero by zero is zero",
            wgsl: "fn divide_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {\n    \
                   return select(a / b, vec4<f32>(0.0), (a == vec4<f32>(0.0)) & (b == vec4<f32>(0.0)));\n}\n",
        },
        driver: "none",
        program: "ops",
        tests: &["edges::means_of_nothing_are_nan"],
        expected: Expected::Pass,
    },
];

/// A run for each fix.
pub fn runs() -> impl Iterator<Item = Run> {
    FIXES.iter().map(|fix| Run {
        functions: Some(fix.without.clone()),
        expected: fix.expected,
        ..Run::new(fix.program, fix.driver).tests(fix.tests)
    })
}
