//! Results moved to a neighbour, as a driver may that contracts, regroups or approximates.

use std::cmp::Ordering;

use naga::MathFunction as F;

use crate::layout::Kind;
use crate::numbers::{
    binary, float_function, function_of_three, function_of_two, is_float, ternary, unary, widen,
};
use crate::program::{Binary, Ternary, Unary};

/// Moves inexact results, always the same ones for the same operands: threads that compute something twice agree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn hash(self, words: [u32; 3]) -> u64 {
        let [a, b, c] = words.map(u64::from);
        let mixed = self.0 ^ a ^ (b << 32) ^ c.wrapping_mul(0x0100_0000_01b3_0100);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29
    }

    /// `result`, or a neighbour of it on the side of `exact`; for a function that drivers approximate, on either side.
    fn move_result(self, kind: Kind, result: u32, exact: f64, rough: bool, words: [u32; 3]) -> u32 {
        let value = widen(kind, result);
        if !value.is_finite() || !exact.is_finite() || value == exact || value == 0.0 {
            return result;
        }
        let hash = self.hash(words);
        if rough {
            return match hash % 5 {
                0 => neighbour(kind, result, true),
                1 => neighbour(kind, result, false),
                2 => neighbour(kind, neighbour(kind, result, true), true),
                3 => neighbour(kind, neighbour(kind, result, false), false),
                _ => result,
            };
        }
        if hash & 1 == 0 { result } else { neighbour(kind, result, exact > value) }
    }
}

/// The next number above or below one that is finite; 0 stays.
fn neighbour(kind: Kind, bits: u32, above: bool) -> u32 {
    if widen(kind, bits) == 0.0 {
        return bits;
    }
    let negative = bits >> if kind == Kind::F16 { 15 } else { 31 } == 1;
    let moved = if above != negative { bits + 1 } else { bits - 1 };
    // Infinity is no rounding of a finite number that has one.
    if widen(kind, moved).is_finite() { moved } else { bits }
}

/// Functions whose error on real drivers is larger than half a unit of the last digit.
fn is_rough(fun: F) -> bool {
    !matches!(
        fun,
        F::Abs
            | F::Min
            | F::Max
            | F::Clamp
            | F::Saturate
            | F::Ceil
            | F::Floor
            | F::Round
            | F::Trunc
            | F::Sign
            | F::Step
            | F::Ldexp
            | F::QuantizeToF16
            | F::Fma
    )
}

impl Noise {
    pub(crate) fn unary(self, pc: u32, op: Unary, kind: Kind, a: u32) -> u32 {
        let result = unary(op, kind, a);
        match op {
            Unary::Math(fun) if is_float(kind) && is_rough(fun) => {
                let exact = float_function(fun, widen(kind, a));
                self.move_result(kind, result, exact, fun != F::Fract, [pc, a, 0])
            }
            _ => result,
        }
    }

    pub(crate) fn binary(self, pc: u32, op: Binary, kind: Kind, a: u32, b: u32) -> u32 {
        if kind == Kind::F32 {
            match op {
                Binary::Add => return self.sum(pc, a, b),
                Binary::Subtract => return self.sum(pc, a, b ^ 0x8000_0000),
                Binary::Multiply => return self.product(pc, a, b),
                _ => {}
            }
        }
        let result = binary(op, kind, a, b);
        if !is_float(kind) {
            return result;
        }
        let (x, y) = (widen(kind, a), widen(kind, b));
        let (exact, rough) = match op {
            Binary::Add => (side(result, kind, |r| two_sum(x, y, r)), false),
            Binary::Subtract => (side(result, kind, |r| two_sum(x, -y, r)), false),
            Binary::Multiply => (x * y, false),
            Binary::Divide => (x / y, true),
            Binary::Math(fun) if is_rough(fun) => (function_of_two(fun, x, y), true),
            _ => return result,
        };
        self.move_result(kind, result, exact, rough, [pc, a, b])
    }

    /// The sum of two f32, and which side its error lies on (Knuth 1969).
    fn sum(self, pc: u32, a: u32, b: u32) -> u32 {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let sum = x + y;
        let part = sum - x;
        let error = (x - (sum - part)) + (y - part);
        self.rounded(sum, f64::from(error), [pc, a, b])
    }

    fn product(self, pc: u32, a: u32, b: u32) -> u32 {
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        let product = exact as f32;
        self.rounded(product, exact - f64::from(product), [pc, a, b])
    }

    /// A rounded number, or its neighbour on the side of the error.
    fn rounded(self, value: f32, error: f64, words: [u32; 3]) -> u32 {
        let bits = value.to_bits();
        if error == 0.0 || !error.is_finite() || value == 0.0 || self.hash(words) & 1 == 0 {
            return bits;
        }
        neighbour(Kind::F32, bits, error > 0.0)
    }

    pub(crate) fn ternary(self, pc: u32, op: Ternary, kind: Kind, [a, b, c]: [u32; 3]) -> u32 {
        let result = ternary(op, kind, a, b, c);
        let [x, y, z] = [a, b, c].map(|bits| widen(kind, bits));
        match op {
            // A driver may round the product first.
            Ternary::Math(F::Fma) if is_float(kind) && self.hash([pc, a, b ^ c]) & 2 == 0 => {
                let product = self.binary(pc, Binary::Multiply, kind, a, b);
                self.binary(pc, Binary::Add, kind, product, c)
            }
            Ternary::Math(F::Fma) if is_float(kind) => {
                let exact = x.mul_add(y, z);
                self.move_result(kind, result, exact, false, [pc, a, b ^ c])
            }
            Ternary::Math(fun @ (F::Mix | F::SmoothStep)) if is_float(kind) => {
                let exact = function_of_three(fun, x, y, z);
                self.move_result(kind, result, exact, true, [pc, a, b ^ c])
            }
            _ => result,
        }
    }
}

/// A number on the same side of the rounded `result` as the exact one: `error` is what rounding took away.
fn side(result: u32, kind: Kind, error: impl Fn(f64) -> f64) -> f64 {
    let rounded = widen(kind, result);
    match error(rounded).partial_cmp(&0.0) {
        Some(Ordering::Greater) => rounded + rounded.abs().max(f64::MIN_POSITIVE),
        Some(Ordering::Less) => rounded - rounded.abs().max(f64::MIN_POSITIVE),
        _ => rounded,
    }
}

/// What rounding took from the sum of `x` and `y` (Knuth 1969), exact but for the sign of errors below f64's digits.
fn two_sum(x: f64, y: f64, rounded: f64) -> f64 {
    let (large, small) = if x.abs() > y.abs() { (x, y) } else { (y, x) };
    (large - rounded) + small
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: f32) -> u32 {
        x.to_bits()
    }

    #[test]
    fn noise_moves_inexact_results_only_and_by_one_digit() {
        let (mut moved, third) = (0, 1.0f32 / 3.0);
        for seed in 0..64 {
            let noise = Noise(seed * 0x1234_5678_9abc);
            assert_eq!(noise.binary(0, Binary::Add, Kind::F32, f(1.5), f(2.25)), f(3.75));
            assert_eq!(noise.binary(0, Binary::Multiply, Kind::F32, f(3.0), f(0.5)), f(1.5));
            assert_eq!(noise.unary(0, Unary::Math(F::Sqrt), Kind::F32, f(9.0)), f(3.0));
            let sum = noise.binary(0, Binary::Add, Kind::F32, f(third), f(1e-9));
            // The exact sum lies above, so it may be the number above and never the one below.
            assert!(sum == f(third) || sum == f(third) + 1, "{}", f32::from_bits(sum));
            moved += u32::from(sum != f(third));
        }
        assert!((10..54).contains(&moved), "{moved} of 64");
    }

    #[test]
    fn noise_is_the_same_for_the_same_operands() {
        let noise = Noise(42);
        let of = |x: f32| noise.binary(7, Binary::Multiply, Kind::F32, f(x), f(0.1));
        assert_eq!(of(0.3), of(0.3));
    }
}
