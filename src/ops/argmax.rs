//! The place of the largest or smallest element along an axis.

use super::inventory::{Entry, Gradient, KernelCall, Kind, one};
use super::reduce::{Walk, reduced_shape, walk_functions};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, no_grads};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, axis_index};
use crate::tensor::Tensor;
use crate::wgsl::shader;

impl Tensor {
    /// The index of the largest element along `axis`, as `i32`: the first of equal ones. NaN is never the largest.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::Shape`] if it is empty.
    pub fn argmax(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("ArgMax", axis, self.rank())?;
        dispatch(ArgMax { axis, smallest: false }, &[self])
    }

    /// The index of the smallest element along `axis`, as `i32`: the first of equal ones. NaN is never the smallest.
    ///
    /// # Errors
    /// As [`Tensor::argmax`].
    pub fn argmin(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("ArgMin", axis, self.rank())?;
        dispatch(ArgMax { axis, smallest: true }, &[self])
    }
}

#[derive(Debug, Hash, PartialEq, Eq)]
struct ArgMax {
    axis: usize,
    smallest: bool,
}

/// One thread looks through so many elements, or through more where a second thread could not look through all chunks.
const CHUNK: usize = 4096;

impl Op for ArgMax {
    fn name(&self) -> &'static str {
        if self.smallest { "ArgMin" } else { "ArgMax" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        expect_dtype(self.name(), x, NUMERIC)?;
        if x.shape[self.axis] == 0 {
            return Err(Error::Shape(message!(
                "{}: axis {} of {} is empty, so no element is the largest.",
                self.name(),
                self.axis,
                x.shape
            )));
        }
        Ok(Spec::new(reduced_shape(&x.shape, &[self.axis], false), DType::I32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let walk = Walk::new(&cx.inputs[0].shape, &[self.axis]);
        let most = cx.caps.loop_piece();
        let chunks = walk.len.div_ceil(CHUNK.min(most).max(walk.len.div_ceil(most)));
        let dtype = cx.inputs[0].dtype;
        if chunks == 1 {
            return self.kernel(&walk, dtype, 1, None, Bind::Output).into();
        }
        let kernels = vec![
            self.kernel(&walk, dtype, chunks, None, Bind::Temp(0)),
            self.kernel(&walk, dtype, 1, Some((Bind::Temp(0), chunks)), Bind::Output),
        ];
        let temps = vec![DType::I32.bytes(walk.outputs * chunks)];
        Lowering::Kernels(Kernels { temps, kernels })
    }
}

impl ArgMax {
    /// The kernel that looks through all elements, or through the indices that an earlier kernel found.
    fn kernel(
        &self,
        walk: &Walk,
        dtype: DType,
        chunks: usize,
        places: Option<(Bind, usize)>,
        to: Bind,
    ) -> Kernel {
        let len = places.map_or(walk.len, |(_, found)| found);
        let mut kernel = Kernel::new("argmax", shader!(include_str!("../../shaders/argmax.wgsl")))
            .alias("T", dtype)
            .constant("WG", 64)
            .declare(format!(
                "fn better(a: T, b: T) -> bool {{ return a {} b{}; }}",
                if self.smallest { '<' } else { '>' },
                // Any number beats NaN.
                if dtype.is_float() { " || (is_nan(f32(b)) && !is_nan(f32(a)))" } else { "" }
            ))
            .declare("@group(0) @binding(0) var<storage, read> x: array<T>;")
            .read(Bind::Input(0));
        kernel = match places {
            None => kernel.declare(
                "@group(0) @binding(1) var<storage, read_write> y: array<i32>;\n\
                 @group(0) @binding(2) var<uniform> p: Params;\n\
                 fn place(o: u32, r: u32) -> u32 { return r; }",
            ),
            Some((bind, _)) => kernel
                .declare(
                    "@group(0) @binding(1) var<storage, read> places: array<i32>;\n\
                     @group(0) @binding(2) var<storage, read_write> y: array<i32>;\n\
                     @group(0) @binding(3) var<uniform> p: Params;\n\
                     fn place(o: u32, c: u32) -> u32 { return u32(places[o * p.len + c]); }",
                )
                .read(bind),
        };
        kernel = kernel
            .write(to)
            .param("outputs", walk.outputs)
            .param("len", len)
            .param("chunks", chunks)
            .param("chunk", len.div_ceil(chunks));
        walk_functions(kernel, walk)
            .workgroups((walk.outputs * chunks).div_ceil(64), len.div_ceil(chunks))
    }
}

impl Operation for ArgMax {
    fn keep(&self) -> Keep {
        Keep::NoGradient("ArgMax: an index")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

/// Both ops, along axes with neighbours inside and outside, whole and in chunks.
const KERNELS: &[KernelCall] = &[|make, dtype| {
    let cases: [(&[usize], i64); 9] = [
        (&[7], 0),
        (&[1], 0),
        (&[3, 8], 0),
        (&[3, 8], 1),
        (&[2, 3, 4, 5], 2),
        (&[10_000], 0),
        (&[3, 9_000], 1),
        (&[9_000, 3], 0),
        (&[2, 9_000, 2], 1),
    ];
    let mut results = Vec::new();
    for (shape, axis) in cases {
        let x = make(shape, dtype);
        results.extend([x.argmax(axis)?, x.argmin(axis)?]);
    }
    Ok(results)
}];

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Kind::Kernel, "argmax", &["tf.math.argmax"], |c| one(c.x()?.argmax(c.axis()?)))
        .takes(NUMERIC)
        .gradient(Gradient::None("ArgMax: an index"))
        .kernels(KERNELS),
    Entry::new(Kind::Kernel, "argmin", &["tf.math.argmin"], |c| one(c.x()?.argmin(c.axis()?)))
        .takes(NUMERIC)
        .gradient(Gradient::None("ArgMin: an index")),
];
