//! Picks slices of a tensor by their indices along an axis.

use super::inventory::{Entry, OpKind, one};
use super::segment_sum::segment_sum;
use super::{Backward, Grads, Keep, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, Shape, axis_index};
use crate::support::options::options;
use crate::tensor::{Tensor, constant};
use crate::wgsl::shader;

options! {
    /// Options of [`Tensor::gather_with`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct GatherOptions {
        /// The number of leading batch axes that the tensor and the indices share; the op gathers separately for each of their
        /// positions; 0 by default.
        batch_dims: usize = 0,
    }
}

impl Tensor {
    /// Gathers the slices at `indices` (`i32`, any shape) along `axis`; in the result, the shape of `indices` replaces
    /// the axis. An index outside the axis returns zeros, as in TensorFlow on GPUs: an error would require reading the
    /// values on the host.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let rows = tf::constant([[1, 2], [3, 4], [5, 6]])?;
    /// assert_eq!(rows.gather(&tf::constant([2, 0])?, 0)?.to_vec::<i32>()?, [5, 6, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] if `indices` is not `i32`; [`Error::Index`] if the axis does not exist.
    pub fn gather(&self, indices: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        self.gather_with(indices, axis, GatherOptions::new())
    }

    /// Like [`Tensor::gather`], with options.
    ///
    /// # Errors
    /// As [`Tensor::gather`], and [`Error::Shape`] if the leading axes differ.
    pub fn gather_with(
        &self,
        indices: &Tensor,
        axis: impl Into<Axis>,
        options: GatherOptions,
    ) -> Result<Tensor> {
        let GatherOptions { batch_dims } = options;
        let axis = axis_index("GatherV2", axis, self.rank())?;
        dispatch(Gather { axis, batch_dims }, &[self, indices])
    }
}

/// The dtypes that can be gathered; bytes are stored four per word.
const TAKES: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool];

#[derive(Debug, Attribute)]
#[op("Gather")]
pub(crate) struct Gather {
    pub(super) axis: usize,
    pub(super) batch_dims: usize,
}

impl Gather {
    /// The sizes B, O, R, N of the shader.
    fn sizes(&self, x: &Spec) -> [usize; 4] {
        let product = |range: std::ops::Range<usize>| Shape::new(&x.shape[range]).elements();
        let rank = x.shape.len();
        [
            product(0..self.batch_dims),
            product(self.batch_dims..self.axis),
            x.shape[self.axis],
            product(self.axis + 1..rank),
        ]
    }
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "GatherV2"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (x, indices) = (inputs[0], inputs[1]);
        expect_dtype("GatherV2 (the indices)", indices, &[DType::I32])?;
        expect_dtype("GatherV2", x, TAKES)?;
        let batch = self.batch_dims;
        if batch > indices.shape.len()
            || batch > self.axis
            || x.shape[..batch] != indices.shape[..batch]
        {
            return Err(Error::Shape(message!(
                "GatherV2: with batch_dims {batch} the first {batch} axes of params {} and indices {} must agree, and \
                 the axis ({}) must come after them.",
                x.shape,
                indices.shape,
                self.axis
            )));
        }
        let mut sizes = x.shape[..self.axis].to_vec();
        sizes.extend_from_slice(&indices.shape[batch..]);
        sizes.extend_from_slice(&x.shape[self.axis + 1..]);
        Ok(Spec::new(sizes, x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let [_, outer, rows, inner] = self.sizes(cx.inputs[0]);
        let count: usize = cx.inputs[1].shape[self.batch_dims..].iter().product();
        let total = cx.output.elements();
        Kernel::new("gather", shader!(include_str!("../../shaders/gather.wgsl")))
            .alias("T", cx.output.dtype)
            .constant("WG", 64)
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .param("outer", outer)
            .param("rows", rows)
            .param("count", count)
            .param("inner", inner)
            .param("total", total)
            .workgroups(total.div_ceil(64), 0)
            .into()
    }
}

impl Operation for Gather {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // d/dx[b,o,r,n] = sum over i with index[b,i] = r of dy[b,o,i,n]
        let x = back.spec(0);
        let [batch, outer, rows, inner] = self.sizes(x);
        let count = Shape::new(&back.spec(1).shape[self.batch_dims..]).elements();
        let indices = back.x(1).reshape_to([batch, count].into())?;
        let dy = back.dy.reshape_to([batch, outer, count, inner].into())?;
        // This makes the summed axis the first of a batch's rows.
        let dy = dy.transpose([0, 2, 1, 3])?.reshape_to([batch, count, outer * inner].into())?;
        let dx = segment_sum(&dy, &indices, rows)?;
        let dx = dx.reshape_to([batch, rows, outer, inner].into())?.transpose([0, 2, 1, 3])?;
        only(dx.reshape_to(x.shape.clone())?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "gather", &[], |c| one(c.arg("params")?.gather(c.arg("ids")?, 0)))
        .takes(TAKES)
        .cases(|cases| {
            cases.of_shape("gather of rows", &[4, 3], |x| x.gather(&constant([2, 0, 2, 2])?, 0));
            cases.of_shape("gather of columns", &[3, 4], |x| {
                x.gather(&constant([[3, 0], [0, 1]])?, 1)
            });
            cases.of_shape("gather outside", &[3, 4], |x| x.gather(&constant([1, 7, -1])?, 0));
        }),
    Entry::new(OpKind::Kernel, "gather_with", &["tf.gather"], |c| {
        let batch_dims = c.int("batch_dims")?.unwrap_or(0) as usize;
        let options = GatherOptions::new().batch_dims(batch_dims);
        one(c.arg("params")?.gather_with(c.arg("indices")?, c.axis()?, options))
    })
    .takes(TAKES)
    .cases(|cases| {
        cases.of_shape("gather_with", &[2, 4, 3], |x| {
            x.gather_with(&constant([[3, 0], [1, 1]])?, 1, GatherOptions::new().batch_dims(1))
        });
    }),
];
