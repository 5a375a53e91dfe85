//! The permitted deviations of a hostile driver (`portability/hostile`, `cargo xtask hostile`): `WGRAD_HOSTILE` names its
//! latitudes.

// Every integration test compiles its own copy of this module and uses only a part of it.
#![allow(dead_code)]

/// The sign of a zero may change.
const SIGN_OF_ZERO: [&str; 4] =
    ["zeros-positive", "zeros-negative", "flush-to-positive", "flush-bitcasts"];
/// Sums and products are not rounded to nearest, and possibly all in the same direction.
const DIRECTED: [&str; 5] =
    ["round-up", "round-down", "round-to-zero", "round-far", "round-by-hash"];
/// Roots have as large errors as quotients of inexact roots.
const FUNCTIONS: [&str; 3] = ["functions-up", "functions-down", "functions-by-hash"];

/// Whether kernels are rewritten.
pub fn is_hostile() -> bool {
    std::env::var_os("WGRAD_KERNEL_REWRITER").is_some()
}

/// Whether the driver has one of these latitudes.
pub fn has(latitudes: &[&str]) -> bool {
    let driver = std::env::var("WGRAD_HOSTILE").unwrap_or_default();
    is_hostile() && driver.split('+').any(|name| latitudes.contains(&name))
}

pub fn loses_signs_of_zeros() -> bool {
    has(&SIGN_OF_ZERO)
}

/// Numbers below 2^-126 are 0 even for a kernel that reads their bits.
pub fn flushes_bitcasts() -> bool {
    has(&["flush-bitcasts"])
}

/// Results that depend on NaN may be computed as if it were a number.
pub fn takes_nan_for_numbers() -> bool {
    has(&["compare-nan", "tests-of-bits"])
}

pub fn rounds_in_one_direction() -> bool {
    has(&DIRECTED)
}

/// The factor by which the error of one result may be larger than on other drivers: sums and products have errors of one unit
/// in the last place instead of half a unit, quotients of 2.5, and roots of more.
pub fn looser() -> f64 {
    match (is_hostile(), has(&FUNCTIONS)) {
        (true, true) => 8.0,
        (true, false) => 4.0,
        (false, _) => 1.0,
    }
}

/// Like [`looser`] for sums of thousands of terms: errors in one direction add up instead of cancelling.
pub fn looser_sums() -> f64 {
    if rounds_in_one_direction() { 16.0 } else { looser() }
}

/// Like [`looser`] for products of thousands of factors, each with a relative error.
pub fn looser_products() -> f64 {
    if rounds_in_one_direction() { 128.0 } else { looser() }
}

/// Whether `got` equals `want` bit by bit, or on a hostile driver within four units in the last place. There a NaN, which WGSL
/// does not guarantee, may be any number, and the sign of a zero, or of the infinity computed from it, may change.
pub fn same(got: f32, want: f32) -> bool {
    if got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() {
        return true;
    }
    let sign = loses_signs_of_zeros() && (got == want || got.is_infinite() && got == -want);
    let near = want.is_finite() && (got - want).abs() <= 4.0 * f32::EPSILON * want.abs();
    is_hostile() && (want.is_nan() || sign || near && (got != 0.0 || want != 0.0))
}
