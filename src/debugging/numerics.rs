//! `check_numerics`: reports NaN and infinity in a value, and in its gradient.

use std::panic::Location;
use std::sync::Arc;

use super::report::{aside, at, began, number, report};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Runtime, Spec};
use crate::ops::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, only};
use crate::tensor::Tensor;

/// Returns `x`, and checks it for NaN and infinity: the next read, or the next flush after the result has arrived,
/// returns [`Error::Check`](crate::Error::Check) with `message`, the op that made `x`, and the number of each. As in
/// TensorFlow, the gradient of the result is checked, too, on its way to `x`.
///
/// # Errors
/// [`Error::DType`](crate::Error::DType) if `x` is not a float.
#[track_caller]
pub fn check_numerics(x: &Tensor, message: &str) -> Result<Tensor> {
    expect_dtype("CheckNumerics", x.spec(), FLOATS)?;
    let words = Words { message: message.into(), place: Location::caller() };
    check(x, &words, "")?;
    dispatch(CheckNumerics(Runtime(words)), &[x])
}

/// As [`check_numerics`], without a result (`tf.debugging.assert_all_finite`).
///
/// # Errors
/// As [`check_numerics`].
#[track_caller]
pub fn assert_all_finite(x: &Tensor, message: &str) -> Result<()> {
    expect_dtype("CheckNumerics", x.spec(), FLOATS)?;
    check(x, &Words { message: message.into(), place: Location::caller() }, "")
}

#[derive(Debug, Clone)]
struct Words {
    message: Arc<str>,
    place: &'static Location<'static>,
}

fn check(x: &Tensor, words: &Words, gradient: &'static str) -> Result<()> {
    let (of, words) = (x.value().op, words.clone());
    let (dtype, shape) = (x.dtype(), x.spec().shape.clone());
    let x = aside(x);
    let nan = x.is_nan()?.cast(DType::I32)?.reduce_sum(())?;
    let infinite = x.is_inf()?.cast(DType::I32)?.reduce_sum(())?;
    report(&[&nan, &infinite], move |found| {
        let [nan, infinite] = [found[0], found[1]].map(number::<i32>);
        (nan + infinite != 0).then(|| {
            message!(
                "{}{gradient}{of} gave {nan} NaN and {infinite} infinite numbers, of {} ({dtype} {shape}). {}",
                began("CheckNumerics", &words.message),
                shape.elements(),
                at(words.place)
            )
        })
    });
    Ok(())
}

/// `y = x`; the gradient is checked.
#[derive(Debug, Attribute)]
#[op("CheckNumerics")]
struct CheckNumerics(#[attribute(skip)] Runtime<Words>);

impl Op for CheckNumerics {
    fn name(&self) -> &'static str {
        "CheckNumerics"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for CheckNumerics {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        check(back.dy, &self.0.0, "the gradient: ")?;
        only(dispatch(CheckNumerics(Runtime(self.0.0.clone())), &[back.dy])?)
    }
}
