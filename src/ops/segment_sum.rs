//! Sums of rows that belong together; the gradient of `gather`.

use std::hash::{Hash, Hasher};

use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, Site};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

impl Tensor {
    /// `y[r] = sum of the rows whose number in `ids` is r`. `ids` (`i32`) has the shape of the tensor's leading
    /// axes; rows with a number outside `0..segments` are left out.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([1.0, 2.0, 4.0])?.unsorted_segment_sum(&tf::constant([1, 0, 1])?, 3)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if `ids` is not a prefix of the shape; [`Error::DType`] if it is not `i32`.
    pub fn unsorted_segment_sum(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        let lead = ids.rank();
        if !self.shape().starts_with(ids.shape()) {
            return Err(Error::Shape(message!(
                "UnsortedSegmentSum: segment_ids is {:?} and data {:?}; the ids need the shape of data's first axes.",
                ids.shape(),
                self.shape()
            )));
        }
        let tail = &self.shape()[lead..];
        let inner = Shape::new(tail).elements();
        let mut sizes = vec![segments];
        sizes.extend_from_slice(tail);
        let rows = self.reshape_to([1, ids.len(), inner].into())?;
        let sums = segment_sum(&rows, &ids.reshape_to([1, ids.len()].into())?, segments)?;
        sums.reshape_to(sizes.into())
    }
}

/// `[B, S, N]` by `ids` `[B, S]` to `[B, rows, N]`.
pub(super) fn segment_sum(x: &Tensor, ids: &Tensor, rows: usize) -> Result<Tensor> {
    dispatch(SegmentSum { rows }, &[x, ids])
}

#[derive(Debug)]
struct SegmentSum {
    rows: usize,
}

impl Op for SegmentSum {
    fn name(&self) -> &'static str {
        "UnsortedSegmentSum"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype("UnsortedSegmentSum", inputs[0], NUMERIC)?;
        expect_dtype("UnsortedSegmentSum (the ids)", inputs[1], &[DType::I32])?;
        let shape = &inputs[0].shape;
        Ok(Spec::new([shape[0], self.rows, shape[2]], inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.rows.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let &[batch, count, inner] = &site.inputs[0].shape[..] else {
            unreachable!("segment_sum makes three axes");
        };
        let (segments, total) = (batch * self.rows, site.output.elements());
        let dtype = site.output.dtype;
        let (range, places) = (Bind::Temp(0), Bind::Temp(1));
        let find = Kernel::new(
            "segment_places",
            shader!(include_str!("../../shaders/segment_places.wgsl")),
        )
        .constant("WG", 64)
        .read(Bind::Input(1))
        .write(range)
        .write(places)
        .param("count", count)
        .param("rows", self.rows)
        .param("total", segments)
        .groups(segments.div_ceil(64));
        let add = Kernel::new("segment_sum", shader!(include_str!("../../shaders/segment_sum.wgsl")))
            .alias("T", dtype)
            .alias("C", dtype)
            .declare(format!("alias V = vec4<{}>;", dtype.register().scalar()))
            .declare(if inner.is_multiple_of(4) {
                "@group(0) @binding(0) var<storage, read> x: array<vec4<T>>;\n\
                 fn load(at: u32) -> V { return V(x[at / 4u]); }\n\
                 fn four(e: u32) -> V { return segment(e); }"
            } else {
                "@group(0) @binding(0) var<storage, read> x: array<T>;\n\
                 fn load(at: u32) -> V { return V(vec4<T>(x[at])); }\n\
                 fn four(e: u32) -> V {\n    \
                 let last = p.total - 1u;\n    \
                 return V(segment(e).x, segment(min(e + 1u, last)).x, segment(min(e + 2u, last)).x, \
                 segment(min(e + 3u, last)).x);\n}"
            })
            .stores()
            .constant("WG", 64)
            .read(Bind::Input(0))
            .read(range)
            .read(places)
            .write(Bind::Output)
            .param("inner", inner)
            .param("total", total)
            .groups(total.div_ceil(4 * 64));
        let temps = vec![DType::U32.bytes(2 * segments), DType::U32.bytes((batch * count).max(1))];
        Lowering::Kernels(Kernels { temps, kernels: vec![find, add] })
    }
}

impl Operation for SegmentSum {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // Every row gets the gradient of its segment; one that was left out gets 0.
        only(back.dy.gather_batch(back.x(1), 1, 1)?)
    }
}
