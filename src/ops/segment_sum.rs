//! Sums the rows of each segment; the gradient of `gather`.

use super::inventory::{Entry, Kind, one};
use super::{Backward, GatherOptions, Grads, Keep, NUMERIC, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Tensor, constant};
use crate::wgsl::{expand, shader};

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

#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct SegmentSum {
    pub(super) rows: usize,
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

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let &[batch, count, inner] = &cx.inputs[0].shape[..] else {
            unreachable!("segment_sum makes three axes");
        };
        let sizes = Sizes { batch, count, inner, rows: self.rows };
        // A thread reads all ids twice, and may have to add up all rows: for four elements separately where they lie in
        // no vector.
        let lanes = if inner.is_multiple_of(4) { 2 } else { 4 };
        match lanes * count <= cx.caps.loop_iterations {
            true => self.whole(sizes, cx),
            false => self.cut(sizes, cx),
        }
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    count: usize,
    inner: usize,
    rows: usize,
}

impl SegmentSum {
    /// Kernels whose threads each go through all ids, or through all rows of a segment.
    fn whole(&self, sizes: Sizes, cx: &LoweringContext) -> Lowering {
        let Sizes { batch, count, inner, rows } = sizes;
        let (segments, total) = (batch * rows, cx.output.elements());
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
        .param("rows", rows)
        .param("total", segments)
        .workgroups(segments.div_ceil(64), 2 * count);
        let four = if inner.is_multiple_of(4) {
            "fn four(e: u32) -> V { return segment(e); }"
        } else {
            "fn four(e: u32) -> V {\n    \
             let last = p.total - 1u;\n    \
             return V(segment(e).x, segment(min(e + 1u, last)).x, segment(min(e + 2u, last)).x, \
             segment(min(e + 3u, last)).x);\n}"
        };
        let add = self
            .sums("segment_sum", "", loader(inner, true), cx)
            .declare(four)
            .declare(expand(SUM, &[], &[("LONG", false)]))
            .stores()
            .read(Bind::Input(0))
            .read(range)
            .read(places)
            .write(Bind::Output)
            .param("inner", inner)
            .param("total", total)
            .workgroups(
                total.div_ceil(4 * 64),
                if inner.is_multiple_of(4) { count } else { 4 * count },
            );
        let temps = vec![DType::U32.bytes(2 * segments), DType::U32.bytes((batch * count).max(1))];
        Lowering::Kernels(Kernels { temps, kernels: vec![find, add] })
    }

    /// Kernels that cut the ids, and then the rows, into chunks.
    fn cut(&self, sizes: Sizes, cx: &LoweringContext) -> Lowering {
        let Sizes { batch, count, inner, rows } = sizes;
        let piece = cx.caps.loop_piece();
        let chunk = count.div_ceil(piece).max(piece / 2);
        let chunks = count.div_ceil(chunk);
        let (segments, total) = (batch * rows, cx.output.elements());
        let (found, counts, carries) = (Bind::Temp(0), Bind::Temp(1), Bind::Temp(2));
        let ranges = batch * count;
        let lanes = if inner.is_multiple_of(4) { 4 } else { 1 };
        let find = |label, file| Kernel::new(label, file).constant("WG", 64).read(Bind::Input(1));
        let sized = |kernel: Kernel, total: usize| {
            kernel
                .param("count", count)
                .param("rows", rows)
                .param("chunks", chunks)
                .param("chunk", chunk)
                .param("total", total)
        };
        let (each, groups) = (segments * chunks, (segments * chunks).div_ceil(64));
        let many =
            find("segment_counts", shader!(include_str!("../../shaders/segment_counts.wgsl")));
        let spread =
            find("segment_spread", shader!(include_str!("../../shaders/segment_spread.wgsl")));
        let carry = shader!(include_str!("../../shaders/segment_carries.wgsl"));
        let sum = |label, file| {
            let scalar = cx.output.dtype.register().scalar();
            let x = if lanes == 4 { "V" } else { scalar };
            self.sums(label, file, loader(inner, false), cx)
                .declare(format!("alias X = {x};"))
                .constant("LANES", lanes as u32)
                .read(Bind::Input(0))
        };
        let kernels = vec![
            sized(many.write(counts), each).workgroups(groups, chunk),
            sized(spread.read(counts).write(found), each)
                .param("ranges", ranges)
                .workgroups(groups, chunks + chunk),
            sum("segment_carries", carry)
                .read(Bind::Input(1))
                .read(found)
                .write(carries)
                .param("count", count)
                .param("rows", rows)
                .param("chunks", chunks)
                .param("chunk", chunk)
                .param("inner", inner)
                .param("total", batch * chunks * inner)
                .param("ranges", ranges)
                .workgroups((batch * chunks * inner).div_ceil(64 * lanes), chunk),
            sum("segment_sum", "")
                .declare(expand(SUM, &[], &[("LONG", true)]))
                .stores()
                .read(found)
                .read(carries)
                .write(Bind::Output)
                .param("inner", inner)
                .param("total", total)
                .param("count", count)
                .param("rows", rows)
                .param("chunks", chunks)
                .param("chunk", chunk)
                .param("ranges", ranges)
                .workgroups(total.div_ceil(64 * lanes), chunk + chunks),
        ];
        let words = [ranges + 2 * segments, 2 * segments * chunks, batch * chunks * inner];
        let temps = words.into_iter().map(|words| DType::U32.bytes(words.max(1))).collect();
        Lowering::Kernels(Kernels { temps, kernels })
    }

    /// A kernel that adds up the rows that `load` reads.
    fn sums(
        &self,
        label: &'static str,
        file: &'static str,
        load: &str,
        cx: &LoweringContext,
    ) -> Kernel {
        let dtype = cx.output.dtype;
        Kernel::new(label, file)
            .alias("T", dtype)
            .alias("C", dtype)
            .declare(format!("alias V = vec4<{}>;", dtype.register().scalar()))
            .declare(load)
            .constant("WG", 64)
    }
}

const SUM: &str = shader!(include_str!("../../shaders/segment_sum.wgsl"));

/// The loader of four elements in a vector, or of one: with `wide` it fills all lanes of a vector with that one.
fn loader(inner: usize, wide: bool) -> &'static str {
    match (inner.is_multiple_of(4), wide) {
        (true, _) => {
            "@group(0) @binding(0) var<storage, read> x: array<vec4<T>>;\n\
             fn load(at: u32) -> V { return V(x[at / 4u]); }"
        }
        (false, true) => {
            "@group(0) @binding(0) var<storage, read> x: array<T>;\n\
             fn load(at: u32) -> V { return V(vec4<T>(x[at])); }"
        }
        (false, false) => {
            "@group(0) @binding(0) var<storage, read> x: array<T>;\n\
             fn load(at: u32) -> X { return X(x[at]); }"
        }
    }
}

impl Operation for SegmentSum {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // Every row gets the gradient of its segment; a row that no segment took gets 0.
        only(back.dy.gather_with(back.x(1), 1, GatherOptions::new().batch_dims(1))?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(Kind::Kernel, "unsorted_segment_sum", &["tf.math.unsorted_segment_sum"], |c| {
        one(c.x()?.unsorted_segment_sum(c.arg("ids")?, c.size("num_segments")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_shape("unsorted_segment_sum", &[4, 3], |x| {
            x.unsorted_segment_sum(&constant([2, 0, -1, 2])?, 4)
        });
    })
    .kernels(&[|make, dtype| {
        Ok(vec![
            make(&[6, 3], dtype).unsorted_segment_sum(&make(&[6], DType::I32), 4)?,
            make(&[6, 8], dtype).unsorted_segment_sum(&make(&[6], DType::I32), 4)?,
        ])
    }])
    .loops(&[|make, n| {
        let mut sums = Vec::new();
        for (inner, dtype) in [(1, DType::F32), (3, DType::F16), (4, DType::F32), (8, DType::I32)] {
            let (x, ids) = (make(&[n, inner], dtype), make(&[n], DType::I32));
            sums.extend([x.unsorted_segment_sum(&ids, 4)?, x.unsorted_segment_sum(&ids, 1)?]);
        }
        Ok(sums)
    }])];
