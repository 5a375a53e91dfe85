//! What becomes of an index beyond the end of an array: another element of it.

use naga::{
    ArraySize, BinaryOperator, Expression, Handle, Literal, MathFunction, ScalarKind, TypeInner,
};

use crate::builder::Builder;
use crate::error::{Error, Result};

type One = Handle<Expression>;

/// How many elements something has that can be indexed.
enum Length {
    Known(u32),
    /// That of an array in a buffer.
    OfBuffer,
}

/// The index, or that of another element if there is none of this index.
pub(crate) fn inside(build: &mut Builder, base: One, index: One) -> Result<One> {
    let length = match length(build, base)? {
        Length::Known(length) => build.literal(Literal::U32(length))?,
        Length::OfBuffer => build.add(Expression::ArrayLength(base))?,
    };
    let unsigned = match build.numbers(index).map(|numbers| numbers.scalar.kind) {
        Some(ScalarKind::Sint) => {
            build.add(Expression::As { expr: index, kind: ScalarKind::Uint, convert: None })?
        }
        _ => index,
    };
    let one = build.literal(Literal::U32(1))?;
    let mut binary = |op, left, right| build.add(Expression::Binary { op, left, right });
    // The first beyond the end is the last, the next one the last but one, and so on.
    let last = binary(BinaryOperator::Subtract, length, one)?;
    let beyond = binary(BinaryOperator::Subtract, unsigned, length)?;
    let is_beyond = binary(BinaryOperator::GreaterEqual, unsigned, length)?;
    let back = build.add(Expression::Math {
        fun: MathFunction::Min,
        arg: beyond,
        arg1: Some(last),
        arg2: None,
        arg3: None,
    })?;
    let other =
        build.add(Expression::Binary { op: BinaryOperator::Subtract, left: last, right: back })?;
    build.add(Expression::Select { condition: is_beyond, accept: other, reject: unsigned })
}

fn length(build: &Builder, base: One) -> Result<Length> {
    let types = &build.module.types;
    let inner = match build.inner(base) {
        TypeInner::Pointer { base, .. } => &types[*base].inner,
        other => other,
    };
    Ok(match *inner {
        TypeInner::Array { size: ArraySize::Constant(length), .. } => Length::Known(length.get()),
        TypeInner::Array { size: ArraySize::Dynamic, .. } => Length::OfBuffer,
        TypeInner::Vector { size, .. } | TypeInner::ValuePointer { size: Some(size), .. } => {
            Length::Known(size as u32)
        }
        TypeInner::Matrix { columns, .. } => Length::Known(columns as u32),
        _ => return Err(Error::new("an index into what has no known length")),
    })
}
