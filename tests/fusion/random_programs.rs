//! Random programs of ops, fused and op by op, compared with an evaluation in `f64`.
//!
//! `WGRAD_PROPERTY_CASES=20` runs twenty times as many programs, 0.25 a quarter. A failing one is shrunk and printed.

use crate::programs::check::{Promise, cases, check};
use crate::programs::flavours::{
    ELEMENTWISE, EMPTY, INDICES, LONG, MIXED, MOTIFS, PRODUCTS, REDUCES, SMOOTH, SPECIAL, VIEWS,
    WIDE,
};
use crate::programs::{gradients, recurrences};
use crate::support::child;

#[test]
fn elementwise_programs() {
    check(ELEMENTWISE, 0..cases(12), Promise::Certain);
}

#[test]
fn views() {
    check(VIEWS, 0..cases(9), Promise::Certain);
}

#[test]
fn reductions() {
    check(REDUCES, 0..cases(12), Promise::Certain);
}

#[test]
fn long_rows_and_columns() {
    check(LONG, 0..cases(9), Promise::Certain);
}

#[test]
fn products_and_images() {
    check(PRODUCTS, 0..cases(9), Promise::Certain);
}

#[test]
fn patterns_of_models() {
    check(MOTIFS, 0..cases(12), Promise::Certain);
}

#[test]
fn integers_truth_and_indices() {
    check(INDICES, 0..cases(9), Promise::Certain);
}

#[test]
fn empty_tensors() {
    check(EMPTY, 0..cases(9), Promise::Certain);
}

#[test]
fn everything_together() {
    check(MIXED, 0..cases(12), Promise::Certain);
}

#[test]
fn wide_graphs() {
    check(WIDE, 0..cases(4), Promise::Certain);
}

#[test]
fn nan_and_infinities() {
    check(SPECIAL, 0..cases(9), Promise::Special);
}

#[test]
fn gradients_of_programs() {
    gradients::check(SMOOTH, 0..cases(12));
}

#[test]
fn recurrences_of_many_turns() {
    recurrences::check(0..cases(24));
}

/// Run by `as_on_any_gpu`.
#[test]
#[ignore = "run by as_on_any_gpu"]
fn portable_kernels() {
    check(REDUCES, 0..cases(9), Promise::Certain);
    check(LONG, 0..cases(9), Promise::Certain);
    check(MOTIFS, 0..cases(9), Promise::Certain);
    gradients::check(SMOOTH, 0..cases(6));
    recurrences::check(0..cases(6));
}

/// A software driver gets special kernels; these are the ones for GPUs and browsers.
#[test]
fn as_on_any_gpu() {
    let output = child::command(module_path!(), "portable_kernels")
        .env("WGRAD_PORTABLE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
