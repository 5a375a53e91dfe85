//! Whether the device's results are those of the interpreter.
//!
//! A driver may contract, regroup and approximate, and the interpreter does what another driver would. How far that may
//! carry a result, no fixed tolerance says: it depends on what a plan computes. So a plan runs several times, with inexact
//! results moved to a neighbour at random ([`crate::Settings::noise`]). What stays the same in all runs has no latitude; the
//! rest may differ by some times of how far the runs lie apart.

use half::f16;

/// An element that differs by more than it may.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// The element.
    pub element: usize,
    /// What the device has computed, and what the interpreter has.
    pub device: f64,
    /// See [`Mismatch::device`].
    pub here: f64,
    /// By how much they may differ.
    pub tolerance: f64,
    /// How many elements of the result differ too much.
    pub count: usize,
}

/// A result may differ by so many times the distance between runs.
const TIMES: f64 = 16.0;
/// An inexact result may always differ by so many units of its last digit.
const DIGITS: f64 = 64.0;
/// Below this drivers take numbers for 0.
const TINY: f64 = 1.2e-38;

/// How exact results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// No float was rounded.
    Exact,
    /// Floats were rounded as their type says.
    Rounded,
    /// Factors may have been rounded to f16 on one side only.
    Rough,
}

/// The numbers of a dtype, by wgrad's name for it.
fn numbers(dtype: &str, elements: usize, bytes: &[u8]) -> Option<Vec<f64>> {
    let words = |of: fn(u32) -> f64| {
        let words = bytes.chunks_exact(4).take(elements);
        words.map(|word| of(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))).collect()
    };
    Some(match dtype {
        "f32" => words(|word| f64::from(f32::from_bits(word))),
        "i32" => words(|word| f64::from(word as i32)),
        "u32" | "bool" => words(f64::from),
        "f16" => {
            let halves = bytes.chunks_exact(2).take(elements);
            halves.map(|half| f16::from_le_bytes([half[0], half[1]]).to_f64()).collect()
        }
        "u8" => bytes.iter().take(elements).map(|byte| f64::from(*byte)).collect(),
        _ => return None,
    })
}

/// Compares what the device has computed with the interpreter's runs, the first of which has no noise.
///
/// # Errors
/// If the dtype is not known, or there are too few bytes.
pub fn compare(
    dtype: &str,
    elements: usize,
    device: &[u8],
    runs: &[Vec<u8>],
    exactness: Exactness,
) -> anyhow::Result<Option<Mismatch>> {
    let read = |bytes: &[u8]| {
        let numbers = numbers(dtype, elements, bytes);
        numbers.filter(|numbers| numbers.len() == elements)
    };
    let (Some(device), Some(runs)) =
        (read(device), runs.iter().map(|run| read(run)).collect::<Option<Vec<_>>>())
    else {
        anyhow::bail!("{elements} elements of {dtype} are not in the bytes that were captured");
    };
    let Some((plain, moved)) = runs.split_first() else { return Ok(None) };
    let float = matches!(dtype, "f32" | "f16");
    let spread: Vec<f64> = (0..elements)
        .map(|i| moved.iter().map(|run| distance(run[i], plain[i])).fold(0.0, f64::max))
        .collect();
    let middle = median(&spread);
    let tolerance = |i: usize| match (exactness, float) {
        (Exactness::Exact, _) => 0.0,
        // An integer that no run has moved is what it is.
        (_, false) => {
            if spread[i] == 0.0 {
                0.0
            } else {
                TIMES * spread[i]
            }
        }
        (Exactness::Rounded, true) => {
            TIMES * spread[i].max(middle) + DIGITS * digit(dtype, plain[i]) + TINY
        }
        (Exactness::Rough, true) => {
            TIMES * spread[i].max(middle) + 1e-2 * scale(plain).max(plain[i].abs()) + TINY
        }
    };
    let far = |i: &usize| distance(device[*i], plain[*i]) > tolerance(*i);
    let wrong: Vec<usize> = (0..elements).filter(far).collect();
    // Integers that depend on floats jump where no run has seen it, if others do.
    let jumps = spread.iter().filter(|spread| **spread > 0.0).count();
    if !float && exactness != Exactness::Exact && wrong.len() <= jumps {
        return Ok(None);
    }
    Ok(wrong.first().map(|&element| Mismatch {
        element,
        device: device[element],
        here: plain[element],
        tolerance: tolerance(element),
        count: wrong.len(),
    }))
}

/// How far two results lie apart: NaN is near NaN alone, and infinity near itself.
fn distance(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The unit of the last digit.
fn digit(dtype: &str, x: f64) -> f64 {
    let relative = if dtype == "f16" { 2f64.powi(-10) } else { 2f64.powi(-23) };
    if x.is_finite() { x.abs() * relative } else { 0.0 }
}

/// The size of a result's elements.
fn scale(numbers: &[f64]) -> f64 {
    numbers.iter().filter(|x| x.is_finite()).fold(0.0, |most, x| f64::max(most, x.abs()))
}

fn median(numbers: &[f64]) -> f64 {
    let mut finite: Vec<f64> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    finite.get(finite.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn floats(device: &[f32], runs: &[&[f32]], exactness: Exactness) -> Option<usize> {
        let runs: Vec<Vec<u8>> = runs.iter().map(|run| bytes(run)).collect();
        let found = compare("f32", device.len(), &bytes(device), &runs, exactness).unwrap();
        found.map(|mismatch| mismatch.element)
    }

    #[test]
    fn what_is_exact_has_no_tolerance() {
        let near = f32::from_bits(1f32.to_bits() + 1);
        assert_eq!(floats(&[1.0, 2.0], &[&[1.0, 2.0]], Exactness::Exact), None);
        assert_eq!(floats(&[1.0, near], &[&[1.0, 1.0]], Exactness::Exact), Some(1));
        assert_eq!(floats(&[1.0, near], &[&[1.0, 1.0]], Exactness::Rounded), None);
        assert_eq!(floats(&[0.0], &[&[-0.0]], Exactness::Exact), None);
    }

    #[test]
    fn a_result_differs_as_far_as_runs_do() {
        let runs: [&[f32]; 2] = [&[1.0, 1.0], &[1.001, 1.0]];
        assert_eq!(floats(&[1.005, 1.0], &runs, Exactness::Rounded), None);
        assert_eq!(floats(&[1.03, 1.0], &runs, Exactness::Rounded), Some(0));
        assert_eq!(floats(&[1.0, 1.03], &runs, Exactness::Rounded), Some(1));
    }

    #[test]
    fn nan_and_infinity_are_near_themselves_alone() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(floats(&[nan, inf], &[&[nan, inf]], Exactness::Exact), None);
        assert_eq!(floats(&[1.0, inf], &[&[nan, inf]], Exactness::Rounded), Some(0));
        assert_eq!(floats(&[nan, -inf], &[&[nan, inf]], Exactness::Rounded), Some(1));
    }

    #[test]
    fn integers_may_jump_where_runs_do() {
        let of = |device: [i32; 3], runs: [[i32; 3]; 2], exactness| {
            let bytes = |numbers: [i32; 3]| {
                numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
            };
            compare("i32", 3, &bytes(device), &runs.map(bytes), exactness).unwrap().is_some()
        };
        assert!(!of([1, 2, 3], [[1, 2, 3]; 2], Exactness::Rounded));
        assert!(of([1, 2, 4], [[1, 2, 3]; 2], Exactness::Rounded));
        assert!(!of([1, 2, 4], [[1, 2, 3], [1, 2, 4]], Exactness::Rounded));
    }
}
