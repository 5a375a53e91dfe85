//! The index of the largest or smallest element along an axis.

use super::inventory::{Entry, Gradient, KernelCall, OpKind, one};
use super::reduce::{ReductionAxes, reduced_shape, walk_functions};
use super::{Backward, Grads, Keep, NUMERIC, Operation, expect_dtype, no_grads};
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, axis_index};
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};

impl Tensor {
    /// The index of the largest element along `axis`, as `i32`; the first one in case of ties. NaN is never the largest.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::Shape`] if it is empty.
    pub fn argmax(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("ArgMax", axis, self.rank())?;
        dispatch(ArgMax { axis, smallest: false }, &[self])
    }

    /// The index of the smallest element along `axis`, as `i32`; the first one in case of ties. NaN is never the smallest.
    ///
    /// # Errors
    /// As [`Tensor::argmax`].
    pub fn argmin(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("ArgMin", axis, self.rank())?;
        dispatch(ArgMax { axis, smallest: true }, &[self])
    }
}

#[derive(Debug, Attribute)]
#[op("ArgMax")]
pub(crate) struct ArgMax {
    axis: usize,
    smallest: bool,
}

/// Threads of a workgroup.
const WG: usize = 64;

/// The number of elements that one thread of a CPU searches; more if a second pass by one thread could not search the
/// results of all chunks.
const CHUNK: usize = 4096;

/// The minimum number of elements that each thread of a GPU searches, so that a second kernel is worthwhile.
const LEAST: usize = 32;

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
        let walk = ReductionAxes::new(&cx.inputs[0].shape, &[self.axis]);
        let Schedule { threads, chunks } = Schedule::new(&walk, cx.caps);
        let dtype = cx.inputs[0].dtype;
        if chunks == 1 {
            return self.kernel(&walk, dtype, [threads, 1], None, Bind::Output).into();
        }
        let kernels = vec![
            self.kernel(&walk, dtype, [threads, chunks], None, Bind::Temp(0)),
            self.kernel(&walk, dtype, [1, 1], Some((Bind::Temp(0), chunks)), Bind::Output),
        ];
        let temps = vec![DType::I32.bytes(walk.outputs * chunks)];
        Lowering::Kernels(Kernels { temps, kernels })
    }
}

/// How threads share the elements of each result.
#[derive(Debug, PartialEq)]
struct Schedule {
    /// The number of threads that search a chunk together.
    threads: usize,
    /// The number of chunks whose best elements are found first.
    chunks: usize,
}

impl Schedule {
    fn new(walk: &ReductionAxes, caps: &Caps) -> Self {
        let most = caps.loop_piece();
        if caps.cpu {
            let chunk = CHUNK.min(most).max(walk.len.div_ceil(most));
            return Schedule::choose(1, walk.len, walk.len.div_ceil(chunk));
        }
        // Neighbouring threads read neighbouring elements: of a row, or of several columns.
        let threads = match walk.len {
            256.. if walk.in_rows() => WG,
            64.. if walk.in_rows() => 16,
            _ => 1,
        };
        let turns = walk.len.div_ceil(threads);
        let wanted = caps.threads / (walk.outputs.max(1) * threads).min(caps.threads);
        let chunks = wanted.min(turns / LEAST).min(most).max(turns.div_ceil(most)).max(1);
        Schedule::choose(threads, walk.len, chunks)
    }

    /// At most `chunks` chunks, none of which is empty: an empty one would have no best element.
    fn choose(threads: usize, len: usize, chunks: usize) -> Self {
        Schedule { threads, chunks: len.div_ceil(len.div_ceil(chunks)) }
    }
}

/// Whether an element is better than the best so far. Any number is better than NaN, which is never compared: a driver
/// may treat NaN as a number.
fn better(dtype: DType, smallest: bool) -> String {
    let sign = if smallest { '<' } else { '>' };
    match dtype.is_float() {
        true => format!(
            "fn better(a: T, b: T) -> bool {{ return !is_nan(f32(a)) && (is_nan(f32(b)) || a {sign} b); }}"
        ),
        false => format!("fn better(a: T, b: T) -> bool {{ return a {sign} b; }}"),
    }
}

impl ArgMax {
    /// The kernel that searches all elements, or the indices that an earlier kernel found.
    fn kernel(
        &self,
        walk: &ReductionAxes,
        dtype: DType,
        [threads, chunks]: [usize; 2],
        places: Option<(Bind, usize)>,
        to: Bind,
    ) -> Kernel {
        let len = places.map_or(walk.len, |(_, found)| found);
        let file = shader!(include_str!("../../shaders/argmax.wgsl"));
        let mut kernel = Kernel::new("argmax", "")
            .declare(expand(file, &[], &[("SHARED", threads > 1)]))
            .alias("T", dtype)
            .constant("WG", WG as u32)
            .constant("THREADS", threads as u32)
            .declare(better(dtype, self.smallest))
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
                     fn place(o: u32, c: u32) -> u32 { return u32(places[c * p.outputs + o]); }",
                )
                .read(bind),
        };
        kernel = kernel
            .write(to)
            .param("outputs", walk.outputs)
            .param("len", len)
            .param("chunks", chunks)
            .param("chunk", len.div_ceil(chunks));
        let groups = (walk.outputs * chunks).div_ceil(WG / threads);
        // A thread searches its part of a chunk, and combines its result with those of the other threads.
        walk_functions(kernel, walk).workgroups(groups, len.div_ceil(chunks * threads) + WG)
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
    let cases: [(&[usize], i64); 12] = [
        (&[7], 0),
        (&[1], 0),
        (&[3, 8], 0),
        (&[3, 8], 1),
        (&[2, 3, 4, 5], 2),
        (&[5, 70], 1),
        (&[2, 300], 1),
        (&[10_000], 0),
        (&[70_000], 0),
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
    Entry::new(OpKind::Kernel, "argmax", &["tf.math.argmax"], |c| one(c.x()?.argmax(c.axis()?)))
        .takes(NUMERIC)
        .gradient(Gradient::None("ArgMax: an index"))
        .kernels(KERNELS),
    Entry::new(OpKind::Kernel, "argmin", &["tf.math.argmin"], |c| one(c.x()?.argmin(c.axis()?)))
        .takes(NUMERIC)
        .gradient(Gradient::None("ArgMin: an index")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn a_gpu_shares_long_rows_and_few_columns() {
        let gpu = Caps::portable();
        let schedule = |shape: [usize; 2], axis, caps: &Caps| {
            let Schedule { threads, chunks } =
                Schedule::new(&ReductionAxes::new(&Shape::from(shape), &[axis]), caps);
            (threads, chunks)
        };
        assert_eq!(schedule([1024, 10], 1, &gpu), (1, 1));
        assert_eq!(schedule([1024, 64], 1, &gpu), (16, 1));
        assert_eq!(schedule([1024, 1024], 1, &gpu), (64, 1));
        // 786 turns of 64 threads, 32 of them in each chunk at least.
        assert_eq!(schedule([1, 50_257], 1, &gpu), (64, 24));
        let small = Caps { threads: 8192, ..Caps::portable() };
        assert_eq!(schedule([64, 50_257], 1, &gpu), (64, 10));
        assert_eq!(schedule([64, 50_257], 1, &small), (64, 2));
        assert_eq!(schedule([1024, 1024], 0, &gpu), (1, 32));
        // 281 chunks would have 33 elements each, and the last eight of them none.
        assert_eq!(schedule([9000, 3], 0, &gpu), (1, 273));
        // The loops of one thread are shorter than any driver's limit.
        let (threads, chunks) = schedule([1 << 22, 20_000], 0, &gpu);
        assert!(threads == 1 && (1 << 22) / chunks <= gpu.loop_piece(), "{chunks}");

        let processor = Caps { cpu: true, ..Caps::portable() };
        assert_eq!(schedule([1024, 1024], 1, &processor), (1, 1));
        assert_eq!(schedule([1, 50_257], 1, &processor), (1, 13));
    }
}
