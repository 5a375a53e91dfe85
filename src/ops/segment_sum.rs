//! Sums the rows of each segment, or multiplies them; the sum is the gradient of `gather`.

use super::fold_words::{Fold, Folding, fill};
use super::inventory::{Entry, OpKind, Values, one};
use super::radix::{Give, Keys, Sorting};
use super::{Backward, GatherOptions, Grads, Keep, NUMERIC, Operation, expect_dtype, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Tensor, constant};
use crate::wgsl::{expand, shader};

impl Tensor {
    /// `y[r] = sum of the rows whose id in `ids` is r`. `ids` (`i32`) has the shape of the tensor's leading axes; rows
    /// with an id outside `0..segments` are ignored.
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
        by_segment("UnsortedSegmentSum", self, ids, segments, |rows, ids| {
            let (count, inner) = (ids.len(), rows.shape()[1]);
            let rows = rows.reshape_to([1, count, inner].into())?;
            let ids = ids.reshape_to([1, count].into())?;
            segment_sum(&rows, &ids, segments)?.reshape_to([segments, inner].into())
        })
    }

    /// `y[r] = product of the rows whose id in `ids` is r`; 1 if there are none. Otherwise like
    /// [`Tensor::unsorted_segment_sum`].
    ///
    /// As in TensorFlow, the gradient treats zeros separately: a row that is the only 0 of its segment receives the
    /// product of the others.
    ///
    /// # Errors
    /// As [`Tensor::unsorted_segment_sum`].
    pub fn unsorted_segment_prod(&self, ids: &Tensor, segments: usize) -> Result<Tensor> {
        by_segment("UnsortedSegmentProd", self, ids, segments, |rows, ids| {
            let (count, inner) = (ids.len(), rows.shape()[1]);
            let rows = rows.reshape_to([1, count, inner].into())?;
            let ids = ids.reshape_to([1, count].into())?;
            dispatch(SegmentSum { rows: segments, product: true }, &[&rows, &ids])?
                .reshape_to([segments, inner].into())
        })
    }
}

/// Calls `f` with the rows as `[S, N]` and `ids` as `[S]`, and reshapes its result `[segments, N]` to the tail of the
/// tensor's shape.
pub(super) fn by_segment(
    op: &str,
    x: &Tensor,
    ids: &Tensor,
    segments: usize,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if !x.shape().starts_with(ids.shape()) {
        return Err(Error::Shape(message!(
            "{op}: segment_ids is {:?} and data {:?}; the ids need the shape of data's first axes.",
            ids.shape(),
            x.shape()
        )));
    }
    expect_dtype(&format!("{op} (the ids)"), ids.spec(), &[DType::I32])?;
    let tail = &x.shape()[ids.rank()..];
    let mut sizes = vec![segments];
    sizes.extend_from_slice(tail);
    let rows = x.reshape_to([ids.len(), Shape::new(tail).elements()].into())?;
    f(&rows, &ids.reshape_to([ids.len()].into())?)?.reshape_to(sizes.into())
}

/// `[B, S, N]` by `ids` `[B, S]` to `[B, rows, N]`.
pub(super) fn segment_sum(x: &Tensor, ids: &Tensor, rows: usize) -> Result<Tensor> {
    dispatch(SegmentSum { rows, product: false }, &[x, ids])
}

#[derive(Debug, Attribute)]
#[op("SegmentSum")]
pub(crate) struct SegmentSum {
    pub(super) rows: usize,
    /// Whether rows are multiplied.
    pub(super) product: bool,
}

/// If the number of ids times that of segments is at most this, each segment searches all ids; otherwise the ids are
/// sorted. Sorting takes about ten launches and, once, the time to compile four texts.
const FEW: usize = 1 << 23;
/// For up to this many segments, searching all ids is faster than sorting them.
const HANDFUL: usize = 32;

impl Op for SegmentSum {
    fn name(&self) -> &'static str {
        if self.product { "UnsortedSegmentProd" } else { "UnsortedSegmentSum" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype(self.name(), inputs[0], NUMERIC)?;
        expect_dtype("UnsortedSegmentSum (the ids)", inputs[1], &[DType::I32])?;
        let shape = &inputs[0].shape;
        Ok(Spec::new([shape[0], self.rows, shape[2]], inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let &[batch, count, inner] = &cx.inputs[0].shape[..] else {
            unreachable!("segment_sum makes three axes");
        };
        let sizes = Sizes { batch, count, inner, rows: self.rows };
        let many =
            batch.saturating_mul(count).saturating_mul(self.rows) > FEW && self.rows > HANDFUL;
        let fits = DType::U32.bytes(2 * batch * count) <= cx.caps.binding_bytes;
        if many && fits {
            let integers = !cx.output.dtype.is_float() && !self.product;
            return if integers { self.folded(sizes, cx) } else { self.sorted(sizes, cx) };
        }
        // A thread reads all ids twice, and may have to sum all rows: for four elements separately if they are not in a
        // vector.
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
    /// Kernels whose threads each iterate over all ids, or over all rows of a segment.
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
            .declare(expand(SUM, &[], &[("LONG", false), ("PROD", self.product)]))
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

    /// Kernels that split the ids, and then the rows, into chunks.
    fn cut(&self, sizes: Sizes, cx: &LoweringContext) -> Lowering {
        let Sizes { batch, count, inner, rows } = sizes;
        let piece = cx.caps.loop_piece();
        let chunk = count.div_ceil(piece).max(piece / 2);
        let chunks = count.div_ceil(chunk);
        let segments = batch * rows;
        let (found, counts, carries) = (Bind::Temp(0), Bind::Temp(1), Bind::Temp(2));
        let ranges = batch * count;
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
        let mut kernels = vec![
            sized(many.write(counts), each).workgroups(groups, chunk),
            sized(spread.read(counts).write(found), each)
                .param("ranges", ranges)
                .workgroups(groups, chunks + chunk),
        ];
        kernels.extend(self.long_sums(sizes, [chunk, chunks], found, carries, cx));
        let words = [ranges + 2 * segments, 2 * segments * chunks, batch * chunks * inner];
        let temps = words.into_iter().map(|words| DType::U32.bytes(words.max(1))).collect();
        Lowering::Kernels(Kernels { temps, kernels })
    }

    /// Kernels that sort the ids. With many ids and many segments, each id is read only a few times in all.
    fn sorted(&self, sizes: Sizes, cx: &LoweringContext) -> Lowering {
        let Sizes { batch, count, inner, rows } = sizes;
        let (segments, ranges) = (batch * rows, batch * count);
        // One thread sums a chunk, another all chunks of a segment that has most rows.
        let chunk = count.div_ceil(cx.caps.loop_piece()).max(count.isqrt()).max(1);
        let chunks = count.div_ceil(chunk);
        let words = [ranges + 2 * segments, batch * chunks * inner, 2 * ranges];
        let mut temps = words.into_iter().map(|words| DType::U32.bytes(words.max(1))).collect();
        let (found, carries, pairs) = (Bind::Temp(0), Bind::Temp(1), Bind::Temp(2));
        let mut kernels = Vec::new();
        let sorting = Sorting { rows: batch, len: count, keys: Keys::Below(rows) };
        sorting.kernels(cx.caps, Give::Pairs, Bind::Input(1), pairs, &mut temps, &mut kernels);
        let find = shader!(include_str!("../../shaders/segment_ranges.wgsl"));
        let find = Kernel::new("segment_ranges", find)
            .constant("WG", 64)
            .read(pairs)
            .write(found)
            .param("count", count)
            .param("rows", rows)
            .param("total", ranges)
            .workgroups(ranges.div_ceil(64), 0);
        kernels.extend([fill(found, ranges + 2 * segments, 0), find]);
        kernels.extend(self.long_sums(sizes, [chunk, chunks], found, carries, cx));
        Lowering::Kernels(Kernels { temps, kernels })
    }

    /// Kernels that add integers with atomics.
    fn folded(&self, sizes: Sizes, cx: &LoweringContext) -> Lowering {
        let Sizes { batch, count, inner, rows } = sizes;
        let folding =
            Folding { batch, count, inner, rows, dtype: cx.output.dtype, fold: Fold::Sum };
        let mut kernels = folding.words(Some(Bind::Input(0)), Bind::Input(1), Bind::Temp(0));
        kernels.push(folding.result(Bind::Temp(0)));
        Lowering::Kernels(Kernels { temps: vec![folding.bytes()], kernels })
    }

    /// The kernels that sum the rows listed in `found`, chunk by chunk and then the rest of each segment.
    fn long_sums(
        &self,
        sizes: Sizes,
        [chunk, chunks]: [usize; 2],
        found: Bind,
        carries: Bind,
        cx: &LoweringContext,
    ) -> [Kernel; 2] {
        let Sizes { batch, count, inner, rows } = sizes;
        let (ranges, total) = (batch * count, cx.output.elements());
        let lanes = if inner.is_multiple_of(4) { 4 } else { 1 };
        let flags = [("LONG", true), ("PROD", self.product)];
        let sum = |label, text: &'static str| {
            let scalar = cx.output.dtype.register().scalar();
            let x = if lanes == 4 { "V" } else { scalar };
            self.sums(label, "", loader(inner, false), cx)
                .declare(format!("alias X = {x};"))
                .constant("LANES", lanes as u32)
                .declare(expand(text, &[], &flags))
                .read(Bind::Input(0))
        };
        let carry = sum("segment_carries", CARRIES)
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
            .workgroups((batch * chunks * inner).div_ceil(64 * lanes), chunk);
        let sums = sum("segment_sum", SUM)
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
            .workgroups(total.div_ceil(64 * lanes), chunk + chunks);
        [carry, sums]
    }

    /// A kernel that sums the rows that `load` reads.
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
const CARRIES: &str = shader!(include_str!("../../shaders/segment_carries.wgsl"));

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
        if self.product { Keep::Both } else { Keep::Inputs }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let batched = GatherOptions::new().batch_dims(1);
        let ids = back.x(1);
        // Every row receives the gradient of its segment; a row without a segment receives 0.
        let of_rows = |y: &Tensor| y.gather_with(ids, 1, batched);
        if !self.product {
            return only(of_rows(back.dy)?);
        }
        // d/dx[s] = dy times the others' product: y / x[s], or, if x[s] is the segment's only 0, the product of the
        // others.
        let x = back.x(0);
        let zero = x.equal(0)?;
        let zeros = segment_sum(&zero.cast(DType::I32)?, ids, self.rows)?;
        let dy = super::select(&zeros.greater(1)?, &back.dy.zeros_like()?, back.dy)?;
        let filled = super::select(&zero, &x.ones_like()?, x)?;
        let others = dispatch(SegmentSum { ..*self }, &[&filled, ids])?;
        let others = of_rows(&others)?;
        let quotient = of_rows(back.y())?.divide(&filled)?;
        only(of_rows(&dy)?.multiply(super::select(&zero, &others, &quotient)?)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "unsorted_segment_sum", &["tf.math.unsorted_segment_sum"], |c| {
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
            make(&[9_000, 3], dtype).unsorted_segment_sum(&make(&[9_000], DType::I32), 1000)?,
            make(&[9_000, 4], dtype).unsorted_segment_sum(&make(&[9_000], DType::I32), 1000)?,
        ])
    }])
    .loops(&[|make, n| {
        let mut sums = Vec::new();
        for (inner, dtype) in [(1, DType::F32), (3, DType::F16), (4, DType::F32), (8, DType::I32)] {
            let (x, ids) = (make(&[n, inner], dtype), make(&[n], DType::I32));
            sums.extend([x.unsorted_segment_sum(&ids, 4)?, x.unsorted_segment_sum(&ids, 1)?]);
        }
        Ok(sums)
    }]),
    Entry::new(OpKind::Kernel, "unsorted_segment_prod", &["tf.math.unsorted_segment_prod"], |c| {
        one(c.x()?.unsorted_segment_prod(c.arg("ids")?, c.size("num_segments")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        let ids = || constant([2, 0, -1, 2]);
        cases.add("unsorted_segment_prod", &[(&[4, 3], Values::Away)], move |x| {
            x[0].unsorted_segment_prod(&ids()?, 4)
        });
        cases.add_first_order(
            "unsorted_segment_prod of zeros",
            &[(&[4, 3], Values::Away)],
            move |x| {
                let mask = constant([[0.0], [1.0], [1.0], [1.0]])?;
                (&x[0] * mask).unsorted_segment_prod(&ids()?, 4)
            },
        );
    })
    .kernels(&[|make, dtype| {
        Ok(vec![
            make(&[6, 3], dtype).unsorted_segment_prod(&make(&[6], DType::I32), 4)?,
            make(&[9_000, 4], dtype).unsorted_segment_prod(&make(&[9_000], DType::I32), 1000)?,
        ])
    }]),
];
