//! What a hostile driver may do to results (`portability/hostile`, `cargo xtask hostile`): `WGRAD_HOSTILE` names its latitudes.

// Every integration test compiles its own copy of this module and uses only a part of it.
#![allow(dead_code)]

/// The sign of a zero may be lost.
const SIGN_OF_ZERO: [&str; 4] =
    ["zeros-positive", "zeros-negative", "flush-to-positive", "flush-bitcasts"];
/// Sums and products are not rounded to the nearest number, all of them perhaps in one direction.
const DIRECTED: [&str; 5] =
    ["round-up", "round-down", "round-to-zero", "round-far", "round-by-hash"];
/// Roots are as far off as quotients of inexact roots.
const FUNCTIONS: [&str; 3] = ["functions-up", "functions-down", "functions-by-hash"];

/// Whether kernels go through a rewriter.
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

/// Numbers below 2^-126 are 0 also where a kernel looks at their bits.
pub fn flushes_bitcasts() -> bool {
    has(&["flush-bitcasts"])
}

/// What depends on NaN may come out as if it were a number.
pub fn takes_nan_for_numbers() -> bool {
    has(&["compare-nan", "tests-of-bits"])
}

pub fn rounds_in_one_direction() -> bool {
    has(&DIRECTED)
}

/// How many times as far off one result may be as on other drivers: sums and products are off by one unit of the last digit where
/// others are off by half of one, quotients by 2.5, and roots by more.
pub fn looser() -> f64 {
    match (is_hostile(), has(&FUNCTIONS)) {
        (true, true) => 8.0,
        (true, false) => 4.0,
        (false, _) => 1.0,
    }
}

/// As [`looser`] for sums of thousands: errors of one direction add up, where others cancel.
pub fn looser_sums() -> f64 {
    if rounds_in_one_direction() { 16.0 } else { looser() }
}

/// As [`looser`] for products of thousands, each of which is off by a part of itself.
pub fn looser_products() -> f64 {
    if rounds_in_one_direction() { 128.0 } else { looser() }
}

/// Whether `got` is `want` to the bit, and on a hostile driver within four units of its last digit. There a NaN, which WGSL does
/// not promise, may be any number, and the sign of a zero, or of the infinity that it makes, may be lost.
pub fn same(got: f32, want: f32) -> bool {
    if got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() {
        return true;
    }
    let sign = loses_signs_of_zeros() && (got == want || got.is_infinite() && got == -want);
    let near = want.is_finite() && (got - want).abs() <= 4.0 * f32::EPSILON * want.abs();
    is_hostile() && (want.is_nan() || sign || near && (got != 0.0 || want != 0.0))
}
