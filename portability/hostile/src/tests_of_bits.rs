//! Finds tests of a float's bits for NaN and infinity, as compilers recognise them.

use naga::{BinaryOperator, Expression, Handle, Literal, ScalarKind};

use crate::builder::Builder;
use crate::rules::Rules;

type One = Handle<Expression>;

/// All bits but the sign's, and those of infinity.
const SIZE: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;

/// True if this comparison can only hold for an infinity or NaN, and `x`, whose bits it looks at, is a computed number.
pub(crate) fn is_one(
    rules: &Rules,
    build: &Builder,
    op: BinaryOperator,
    left: One,
    right: One,
) -> bool {
    let Some(Literal::U32(bound)) = rules.literal(build, right) else { return false };
    let special = match op {
        BinaryOperator::Greater => bound >= INFINITY - 1,
        BinaryOperator::GreaterEqual | BinaryOperator::Equal => bound >= INFINITY,
        _ => false,
    };
    let masked = match build.expression(left) {
        &Expression::Binary { op: BinaryOperator::And, left, right } => {
            [(left, right), (right, left)].into_iter().find_map(|(bits, mask)| {
                (rules.literal(build, mask) == Some(Literal::U32(SIZE))).then_some(bits)
            })
        }
        _ => None,
    };
    let float = masked.and_then(|bits| match build.expression(bits) {
        &Expression::As { expr, kind: ScalarKind::Uint, convert: None } => Some(expr),
        _ => None,
    });
    special && float.is_some_and(|x| build.floats(x).is_some() && rules.known.is_computed(x))
}
