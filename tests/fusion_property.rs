//! Random programs of ops, computed fused and one by one, against an evaluation in `f64`.
//!
//! `WGRAD_PROPERTY_CASES=20` tries twenty times as many programs. A failing one is made smaller and printed.

#![allow(clippy::unwrap_used)]

#[path = "support/programs/mod.rs"]
mod programs;

use programs::check::{Promise, cases, check};
use programs::flavours::{
    EMPTY, INDICES, LONG, MIXED, MOTIFS, POINTWISE, PRODUCTS, REDUCES, SMOOTH, SPECIAL, VIEWS, WIDE,
};
use programs::gradients;

#[test]
fn elementwise_programs() {
    check(POINTWISE, 0..cases(12), Promise::Certain);
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
