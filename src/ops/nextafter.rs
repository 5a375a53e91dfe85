//! The `f32` adjacent to another.

use super::inventory::{ANY, Entry, OpKind, one};
use super::{Backward, Grads, Keep, Operation, expect_dtype, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::broadcast;
use crate::tensor::{Operand, Tensor};

impl Tensor {
    /// The next `f32` after each element in the direction of the element of `other`; the element itself if they are equal, NaN
    /// if one is NaN. Drivers may flush the numbers next to 0, which are below 1.2e-38, to 0.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([1.0, 1.0])?.nextafter(&tf::constant([2.0, f32::NEG_INFINITY])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.000_000_1, 0.999_999_94]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast together;
    /// [`Error::DType`](crate::Error::DType) if one dtype is not `f32`.
    pub fn nextafter(&self, other: impl Into<Operand>) -> Result<Tensor> {
        let other = other.into().into_tensor_like("NextAfter", self)?;
        dispatch(NextAfter, &[self, &other])
    }
}

#[derive(Debug, Attribute)]
#[op("NextAfter")]
pub(crate) struct NextAfter;

// Uses the bits: the next number away from 0 has bits larger by one. `a` and `b` are mapped to integers of the same
// order, because drivers may not distinguish small numbers.
const FORMULA: &str = "
    let bits = bitcast<vec4<u32>>(a);
    let size_a = vec4<i32>(bits & vec4<u32>(0x7fffffffu));
    let size_b = vec4<i32>(bitcast<vec4<u32>>(b) & vec4<u32>(0x7fffffffu));
    let place_a = select(size_a, -size_a, is_negative_4(a));
    let place_b = select(size_b, -size_b, is_negative_4(b));
    let next = place_a + select(vec4<i32>(-1), vec4<i32>(1), place_b > place_a);
    let size = vec4<u32>(max(next, -next));
    let moved = bitcast<V>(select(size, size | vec4<u32>(0x80000000u), next < vec4<i32>(0)));
    return select(select(moved, b, place_a == place_b), V(nan()), is_nan_4(a) | is_nan_4(b));";

impl Op for NextAfter {
    fn name(&self) -> &'static str {
        "NextAfter"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (a, b) = (inputs[0], inputs[1]);
        same_dtype("NextAfter", a, b)?;
        expect_dtype("NextAfter", a, &[DType::F32])?;
        Ok(Spec::new(broadcast("NextAfter", &a.shape, &b.shape)?, a.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let view = |i: usize| View::broadcast(cx.inputs[i], cx.output);
        Elementwise::new("nextafter", FORMULA).input("a", 0, view(0)).input("b", 1, view(1)).into()
    }
}

impl Operation for NextAfter {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // As in TensorFlow, the gradient is passed to a.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        back.both(&|| Ok(back.dy.clone()), &|| back.dy.zeros_like())
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "nextafter", &["tf.math.nextafter"], |c| {
        one(c.arg("x1")?.nextafter(c.arg("x2")?))
    })
    .takes(&[DType::F32])
    .cases(|cases| cases.of_two("nextafter", [ANY, ANY], |a, b| a.nextafter(b)))
    .kernels(&[|make, dtype| Ok(vec![make(&[2, 5], dtype).nextafter(make(&[5], dtype))?])])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_numbers_are_the_next() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let cases = [
            (1.0, 2.0, 1.000_000_1),
            (1.0, -1.0, 0.999_999_94),
            (-1.0, 0.5, -0.999_999_94),
            (2.0, 2.0, 2.0),
            (inf, 1.0, f32::MAX),
            (-inf, 1.0, -f32::MAX),
            (f32::MAX, inf, inf),
            (2.0, inf, 2.000_000_2),
            (1.0, nan, nan),
            (nan, 1.0, nan),
            (0.0, -0.0, 0.0),
            (1.5, f32::MIN_POSITIVE, 1.499_999_9),
            (3e38, -3e38, f32::from_bits(3e38f32.to_bits() - 1)),
        ];
        let of = |k: usize| {
            let values = cases.map(|case| [case.0, case.1][k]);
            Tensor::from_slice(&values, [cases.len()]).unwrap()
        };
        let got = of(0).nextafter(of(1)).unwrap().to_vec::<f32>().unwrap();
        for (got, (a, b, want)) in got.into_iter().zip(cases) {
            assert!(
                got == want || got.is_nan() && want.is_nan(),
                "{a} to {b}: {got:e}, not {want:e}"
            );
        }
        // A driver may store the smallest number, or 0 instead.
        let least = Tensor::scalar(0f32).unwrap().nextafter(1.0).unwrap().item::<f32>().unwrap();
        assert!(least == f32::from_bits(1) || least == 0.0);
    }
}
