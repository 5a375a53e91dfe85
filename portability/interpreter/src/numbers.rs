//! What the functions of single numbers give. A number is a word: the bits of an f32, an f16 in the lower half, an integer,
//! or 0 and 1 for truth.
//!
//! Floats are rounded correctly: sums, products and quotients as IEEE 754 says, other functions from `f64`. `noise.rs` moves them.

use half::f16;
use naga::MathFunction as F;

use crate::layout::Kind;
use crate::program::{Binary, Ternary, Unary};

fn single(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn half(bits: u32) -> f16 {
    f16::from_bits(bits as u16)
}

/// The value of a float.
pub(crate) fn widen(kind: Kind, bits: u32) -> f64 {
    if kind == Kind::F16 { half(bits).to_f64() } else { f64::from(single(bits)) }
}

/// A float rounded to the nearest.
pub(crate) fn narrow(kind: Kind, value: f64) -> u32 {
    if kind == Kind::F16 {
        u32::from(f16::from_f64(value).to_bits())
    } else {
        (value as f32).to_bits()
    }
}

pub(crate) fn is_float(kind: Kind) -> bool {
    matches!(kind, Kind::F32 | Kind::F16)
}

fn truth(yes: bool) -> u32 {
    u32::from(yes)
}

pub(crate) fn unary(op: Unary, kind: Kind, a: u32) -> u32 {
    let sign = if kind == Kind::F16 { 0x8000 } else { 0x8000_0000 };
    match op {
        Unary::Negate if is_float(kind) => a ^ sign,
        Unary::Negate => a.wrapping_neg(),
        Unary::Not if kind == Kind::Bool => a ^ 1,
        Unary::Not => !a,
        Unary::IsNan => truth(widen(kind, a).is_nan()),
        Unary::IsInf => truth(widen(kind, a).is_infinite()),
        Unary::Math(F::Abs) if is_float(kind) => a & !sign,
        Unary::Math(F::QuantizeToF16) => f16::from_f32(single(a)).to_f32().to_bits(),
        Unary::Math(fun) if is_float(kind) => narrow(kind, float_function(fun, widen(kind, a))),
        Unary::Math(fun) => integer_function(fun, kind == Kind::I32, a),
    }
}

pub(crate) fn float_function(fun: F, x: f64) -> f64 {
    match fun {
        F::Saturate => x.clamp(0.0, 1.0),
        F::Ceil => x.ceil(),
        F::Floor => x.floor(),
        F::Round => x.round_ties_even(),
        F::Fract => x - x.floor(),
        F::Trunc => x.trunc(),
        F::Sign if x == 0.0 || x.is_nan() => x,
        F::Sign => x.signum(),
        F::Cos => x.cos(),
        F::Cosh => x.cosh(),
        F::Sin => x.sin(),
        F::Sinh => x.sinh(),
        F::Tan => x.tan(),
        F::Tanh => x.tanh(),
        F::Acos => x.acos(),
        F::Asin => x.asin(),
        F::Atan => x.atan(),
        F::Asinh => x.asinh(),
        F::Acosh => x.acosh(),
        F::Atanh => x.atanh(),
        F::Radians => x.to_radians(),
        F::Degrees => x.to_degrees(),
        F::Exp => x.exp(),
        F::Exp2 => x.exp2(),
        F::Log => x.ln(),
        F::Log2 => x.log2(),
        F::Sqrt => x.sqrt(),
        F::InverseSqrt => 1.0 / x.sqrt(),
        other => unreachable!("{other:?} of one float is refused when the kernel is compiled"),
    }
}

fn integer_function(fun: F, signed: bool, a: u32) -> u32 {
    match fun {
        F::Abs if signed => (a as i32).wrapping_abs() as u32,
        F::Abs => a,
        F::Sign if signed => (a as i32).signum() as u32,
        F::CountOneBits => a.count_ones(),
        F::CountLeadingZeros => a.leading_zeros(),
        F::CountTrailingZeros => a.trailing_zeros(),
        F::ReverseBits => a.reverse_bits(),
        F::FirstTrailingBit if a == 0 => u32::MAX,
        F::FirstTrailingBit => a.trailing_zeros(),
        F::FirstLeadingBit => {
            // Of a negative number the first bit that differs from the sign.
            let bits = if signed && (a as i32) < 0 { !a } else { a };
            31u32.wrapping_sub(bits.leading_zeros())
        }
        other => unreachable!("{other:?} of one integer is refused when the kernel is compiled"),
    }
}

/// Inlined, so that what is known of `op` and `kind` at the call leaves one operation.
#[inline(always)]
pub(crate) fn binary(op: Binary, kind: Kind, a: u32, b: u32) -> u32 {
    match kind {
        Kind::F32 => binary_single(op, a, b),
        Kind::F16 => binary_half(op, a, b),
        Kind::I32 => binary_signed(op, a, b),
        Kind::U32 | Kind::Bool => binary_unsigned(op, a, b),
    }
}

#[inline(always)]
fn binary_single(op: Binary, a: u32, b: u32) -> u32 {
    let (x, y) = (single(a), single(b));
    match op {
        Binary::Add => (x + y).to_bits(),
        Binary::Subtract => (x - y).to_bits(),
        Binary::Multiply => (x * y).to_bits(),
        Binary::Divide => (x / y).to_bits(),
        Binary::Modulo => (x % y).to_bits(),
        Binary::Equal => truth(x == y),
        Binary::NotEqual => truth(x != y),
        Binary::Less => truth(x < y),
        Binary::LessEqual => truth(x <= y),
        Binary::Greater => truth(x > y),
        Binary::GreaterEqual => truth(x >= y),
        Binary::Math(F::Min) => x.min(y).to_bits(),
        Binary::Math(F::Max) => x.max(y).to_bits(),
        Binary::Math(F::Ldexp) => narrow(Kind::F32, f64::from(x) * f64::from(b as i32).exp2()),
        Binary::Math(fun) => narrow(Kind::F32, function_of_two(fun, x.into(), y.into())),
        other => unreachable!("{other:?} of floats is refused by naga"),
    }
}

#[inline(always)]
fn binary_half(op: Binary, a: u32, b: u32) -> u32 {
    // The sum, product or quotient of two f16 has fewer digits than an f32 keeps, so rounding twice changes nothing.
    let (x, y) = (half(a).to_f32(), half(b).to_f32());
    let result = match op {
        Binary::Add => x + y,
        Binary::Subtract => x - y,
        Binary::Multiply => x * y,
        Binary::Divide => x / y,
        Binary::Modulo => x % y,
        Binary::Math(F::Min) => x.min(y),
        Binary::Math(F::Max) => x.max(y),
        Binary::Math(F::Ldexp) => x * (b as i32 as f32).exp2(),
        Binary::Math(fun) => return narrow(Kind::F16, function_of_two(fun, x.into(), y.into())),
        compare => return binary_single(compare, x.to_bits(), y.to_bits()),
    };
    u32::from(f16::from_f32(result).to_bits())
}

pub(crate) fn function_of_two(fun: F, x: f64, y: f64) -> f64 {
    match fun {
        F::Atan2 => x.atan2(y),
        F::Pow => x.powf(y),
        F::Step => f64::from(u8::from(x <= y)),
        other => unreachable!("{other:?} of two floats is refused when the kernel is compiled"),
    }
}

#[inline(always)]
fn binary_signed(op: Binary, a: u32, b: u32) -> u32 {
    let (x, y) = (a as i32, b as i32);
    match op {
        // What wgpu's checks make of a quotient that does not exist.
        Binary::Divide if y == 0 => a,
        Binary::Divide => x.wrapping_div(y) as u32,
        Binary::Modulo if y == 0 => 0,
        Binary::Modulo => x.wrapping_rem(y) as u32,
        Binary::Less => truth(x < y),
        Binary::LessEqual => truth(x <= y),
        Binary::Greater => truth(x > y),
        Binary::GreaterEqual => truth(x >= y),
        Binary::ShiftRight => (x >> (b & 31)) as u32,
        Binary::Math(F::Min) => x.min(y) as u32,
        Binary::Math(F::Max) => x.max(y) as u32,
        other => binary_unsigned(other, a, b),
    }
}

#[inline(always)]
fn binary_unsigned(op: Binary, a: u32, b: u32) -> u32 {
    match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide if b == 0 => a,
        Binary::Divide => a / b,
        Binary::Modulo if b == 0 => 0,
        Binary::Modulo => a % b,
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::ShiftLeft => a << (b & 31),
        Binary::ShiftRight => a >> (b & 31),
        Binary::Math(F::Min) => a.min(b),
        Binary::Math(F::Max) => a.max(b),
        Binary::Math(other) => {
            unreachable!("{other:?} of two integers is refused when the kernel is compiled")
        }
    }
}

#[inline(always)]
pub(crate) fn ternary(op: Ternary, kind: Kind, a: u32, b: u32, c: u32) -> u32 {
    match (op, kind) {
        (Ternary::Select, _) => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        (Ternary::Math(F::Clamp), _) => {
            let low = binary(Binary::Math(F::Max), kind, a, b);
            binary(Binary::Math(F::Min), kind, low, c)
        }
        (Ternary::Math(F::Fma), Kind::F32) => single(a).mul_add(single(b), single(c)).to_bits(),
        (Ternary::Math(fun), Kind::F32 | Kind::F16) => {
            let [x, y, z] = [a, b, c].map(|bits| widen(kind, bits));
            narrow(kind, function_of_three(fun, x, y, z))
        }
        (Ternary::Math(F::ExtractBits), _) => {
            let (offset, count) = (b.min(32), c.min(32 - b.min(32)));
            if count == 0 {
                return 0;
            }
            let high = a << (32 - count - offset);
            let shift = 32 - count;
            if kind == Kind::I32 { ((high as i32) >> shift) as u32 } else { high >> shift }
        }
        (Ternary::Math(other), _) => {
            unreachable!("{other:?} of three integers is refused when the kernel is compiled")
        }
    }
}

pub(crate) fn function_of_three(fun: F, x: f64, y: f64, z: f64) -> f64 {
    match fun {
        // Exact for f16; for f32 `mul_add` is.
        F::Fma => x.mul_add(y, z),
        F::Mix => x * (1.0 - z) + y * z,
        F::SmoothStep => {
            let t = ((z - x) / (y - x)).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }
        other => unreachable!("{other:?} of three floats is refused when the kernel is compiled"),
    }
}

/// `a` with `count` bits from `offset` on replaced by those of `b`.
pub(crate) fn insert_bits(a: u32, b: u32, offset: u32, count: u32) -> u32 {
    let offset = offset.min(32);
    let count = count.min(32 - offset);
    if count == 0 {
        return a;
    }
    let mask = (u32::MAX >> (32 - count)) << offset;
    (a & !mask) | ((b << offset) & mask)
}

/// Conversions of values; those to integers end at the largest and smallest ones, as WGSL says.
pub(crate) fn convert(from: Kind, to: Kind, a: u32) -> u32 {
    let value = match from {
        Kind::F32 | Kind::F16 => widen(from, a),
        Kind::I32 => f64::from(a as i32),
        Kind::U32 | Kind::Bool => f64::from(a),
    };
    match to {
        Kind::F32 | Kind::F16 => narrow(to, value),
        Kind::Bool => truth(value != 0.0),
        // Between integers the bits stay.
        Kind::I32 | Kind::U32 if !is_float(from) => a,
        Kind::I32 => value as i32 as u32,
        Kind::U32 => value as u32,
    }
}

/// Whether there is a function of so many numbers of this kind.
pub(crate) fn knows(fun: F, arity: usize, kind: Kind) -> bool {
    match (arity, is_float(kind)) {
        (1, true) => matches!(
            fun,
            F::Abs
                | F::Saturate
                | F::Ceil
                | F::Floor
                | F::Round
                | F::Fract
                | F::Trunc
                | F::Sign
                | F::Cos
                | F::Cosh
                | F::Sin
                | F::Sinh
                | F::Tan
                | F::Tanh
                | F::Acos
                | F::Asin
                | F::Atan
                | F::Asinh
                | F::Acosh
                | F::Atanh
                | F::Radians
                | F::Degrees
                | F::Exp
                | F::Exp2
                | F::Log
                | F::Log2
                | F::Sqrt
                | F::InverseSqrt
                | F::QuantizeToF16
        ),
        (1, false) => matches!(
            fun,
            F::Abs
                | F::Sign
                | F::CountOneBits
                | F::CountLeadingZeros
                | F::CountTrailingZeros
                | F::ReverseBits
                | F::FirstTrailingBit
                | F::FirstLeadingBit
        ),
        (2, true) => matches!(fun, F::Min | F::Max | F::Ldexp | F::Atan2 | F::Pow | F::Step),
        (2, false) => matches!(fun, F::Min | F::Max),
        (3, true) => matches!(fun, F::Clamp | F::Fma | F::Mix | F::SmoothStep),
        (3, false) => matches!(fun, F::Clamp | F::ExtractBits),
        (4, false) => fun == F::InsertBits,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: f32) -> u32 {
        x.to_bits()
    }

    fn h(x: f32) -> u32 {
        u32::from(f16::from_f32(x).to_bits())
    }

    #[test]
    fn halves_are_rounded_as_f16() {
        // 2048 and 2050 are neighbours, and 2049 lies between them: to even.
        assert_eq!(binary(Binary::Add, Kind::F16, h(2048.0), h(1.0)), h(2048.0));
        assert_eq!(binary(Binary::Add, Kind::F16, h(2050.0), h(1.0)), h(2052.0));
        assert_eq!(binary(Binary::Multiply, Kind::F16, h(300.0), h(300.0)), h(f32::INFINITY));
        assert_eq!(binary(Binary::Less, Kind::F16, h(-1.0), h(0.5)), 1);
        // 3 * 683 + 1 = 2050 is exact; rounding the product 2049 first would give 2048 + 1.
        assert_eq!(ternary(Ternary::Math(F::Fma), Kind::F16, h(3.0), h(683.0), h(1.0)), h(2050.0));
        assert_eq!(convert(Kind::F32, Kind::F16, f(65520.0)), h(f32::INFINITY));
        assert_eq!(unary(Unary::Math(F::QuantizeToF16), Kind::F32, f(0.1)), f(0.099_975_586));
        assert_eq!(unary(Unary::Negate, Kind::F16, h(1.5)), h(-1.5));
    }

    #[test]
    fn integers_end_as_wgsl_says() {
        let min = i32::MIN as u32;
        assert_eq!(binary(Binary::Divide, Kind::I32, min, -1i32 as u32), min);
        assert_eq!(binary(Binary::Divide, Kind::I32, 7, 0), 7);
        assert_eq!(binary(Binary::Modulo, Kind::U32, 7, 0), 0);
        assert_eq!(binary(Binary::ShiftRight, Kind::I32, -8i32 as u32, 1), -4i32 as u32);
        assert_eq!(convert(Kind::F32, Kind::I32, f(3e9)), i32::MAX as u32);
        assert_eq!(convert(Kind::F32, Kind::U32, f(-1.5)), 0);
        assert_eq!(convert(Kind::F32, Kind::I32, f(-1.5)), -1i32 as u32);
        assert_eq!(convert(Kind::I32, Kind::F32, -3i32 as u32), f(-3.0));
    }

    #[test]
    fn bits_are_extracted_and_inserted() {
        let extract = Ternary::Math(F::ExtractBits);
        assert_eq!(ternary(extract, Kind::U32, 0xabcd_1234, 8, 8), 0x12);
        assert_eq!(ternary(extract, Kind::I32, 0x0000_f000, 12, 4), u32::MAX);
        assert_eq!(ternary(extract, Kind::U32, 7, 32, 8), 0);
        assert_eq!(insert_bits(0xffff_ffff, 0, 4, 8), 0xffff_f00f);
        assert_eq!(unary(Unary::Math(F::FirstLeadingBit), Kind::I32, -8i32 as u32), 2);
        assert_eq!(unary(Unary::Math(F::FirstLeadingBit), Kind::U32, 0), u32::MAX);
    }
}
