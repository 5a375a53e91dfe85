//! The largest elements of each row, and their indices.

use super::inventory::{Entry, OpKind, Values};
use super::radix::{Keys, Sorting};
use super::{
    Backward, GatherOptions, Grads, Keep, NUMERIC, Operation, PadMode, SortOptions, expect_dtype,
    no_grads,
};
use crate::dtype::{DType, Scalar};
use crate::eager::{self, dispatch};
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

impl Tensor {
    /// The `k` largest elements along the last axis, the largest first, and their indices (`i32`). Equal elements are
    /// in the order of their indices; NaN counts as larger than every number, as in TensorFlow on GPUs.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let (values, indices) = tf::constant([1.0, 4.0, 2.0, 4.0])?.top_k(3)?;
    /// assert_eq!(values.to_vec::<f32>()?, [4.0, 4.0, 2.0]);
    /// assert_eq!(indices.to_vec::<i32>()?, [1, 3, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a scalar, or if the last axis has fewer than `k` elements; [`Error::DType`] if the dtype is
    /// not numeric.
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        expect_dtype("TopKV2", self.spec(), NUMERIC)?;
        let Some((&n, lead)) = self.shape().split_last() else {
            return Err(Error::Shape(
                "TopKV2: the tensor is a scalar; it needs at least one axis.".into(),
            ));
        };
        if k > n {
            return Err(Error::Shape(message!(
                "TopKV2: k is {k} and the last axis of {:?} has {n} elements; k must not be larger.",
                self.shape()
            )));
        }
        let rows = Shape::new(lead).elements();
        let mut sizes = lead.to_vec();
        sizes.push(k);
        let x = self.reshape_to([rows, n].into())?;
        let places = places(&x.stop_gradient(), k)?;
        let values = x.gather_with(&places, 1, GatherOptions::new().batch_dims(1))?;
        Ok((values.reshape_to(sizes.clone().into())?, places.reshape_to(sizes.into())?))
    }

    /// Whether fewer than `k` predictions of a row are larger than that of its target: `y[b] = (how many
    /// predictions[b,c] > predictions[b,targets[b]]) < k`. The tensor holds the targets, a class (`i32`) for each row
    /// of `predictions` `[batch, classes]`. The result is `false` for a row that contains a number that is not finite,
    /// or whose target is not a class.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes are not `[batch]` and `[batch, classes]`; [`Error::DType`] if the targets are not
    /// `i32` or the predictions not float.
    pub fn in_top_k(&self, predictions: &Tensor, k: usize) -> Result<Tensor> {
        expect_dtype("InTopKV2 (the targets)", self.spec(), &[DType::I32])?;
        expect_dtype("InTopKV2 (the predictions)", predictions.spec(), super::FLOATS)?;
        let fits =
            self.rank() == 1 && predictions.rank() == 2 && predictions.shape()[0] == self.len();
        if !fits {
            return Err(Error::Shape(message!(
                "InTopKV2: targets is {:?} and predictions {:?}; they must be [batch] and [batch, classes].",
                self.shape(),
                predictions.shape()
            )));
        }
        let classes = predictions.shape()[1];
        let column = self.expand_dims(-1)?;
        let own = predictions.gather_with(&column, 1, GatherOptions::new().batch_dims(1))?;
        let above = predictions.greater(&own)?.cast(DType::I32)?.reduce_sum(1)?;
        // A tensor cannot have more classes than fit in an i32.
        let (k, classes) = (k.min(i32::MAX as usize), classes.min(i32::MAX as usize));
        let known = self.greater_equal(0)?.logical_and(self.less(classes)?)?;
        above.less(k)?.logical_and(known)?.logical_and(predictions.is_finite()?.reduce_all(1)?)
    }
}

/// The indices of the `k` largest elements of each row of `[rows, n]`, in order.
fn places(x: &Tensor, k: usize) -> Result<Tensor> {
    let (rows, n) = (x.shape()[0], x.shape()[1]);
    if eager::is_composing() {
        return dispatch(TopK { k }, &[x]);
    }
    let cpu = x.device().caps().cpu;
    if cpu && k > SEVERAL && n / k >= 256 {
        return chosen_places(x, k);
    }
    if k <= if cpu { MOST } else { KEPT } {
        return dispatch(TopK { k }, &[x]);
    }
    let down = SortOptions::new().descending(true);
    x.argsort_with(1, down)?.slice(&[0, 0], &[rows as i64, k as i64])
}

/// As [`places`], for rows of many chunks. The largest elements are in the `k` chunks with the largest maxima: an
/// element of another chunk is not larger than `k` elements of these, nor does it precede those that it is equal to.
fn chosen_places(x: &Tensor, k: usize) -> Result<Tensor> {
    let (rows, n) = (x.shape()[0], x.shape()[1]);
    let batched = GatherOptions::new().batch_dims(1);
    // Chosen so that there are about as many maxima as elements in the chosen chunks.
    let chunk = 1usize << ((n / k).ilog2() / 2);
    let chunks = n.div_ceil(chunk);
    let lowest = match x.dtype() {
        DType::I32 => Scalar::Int(i32::MIN.into()),
        DType::U32 => Scalar::Int(0),
        _ => Scalar::Float(f64::NEG_INFINITY),
    };
    // The padding is at the end, so it is after all elements that it is equal to.
    let x = match chunks * chunk - n {
        0 => x.clone(),
        more => x.pad_with(&[(0, 0), (0, more)], PadMode::Constant(lowest))?,
    };
    let table = x.reshape_to([rows, chunks, chunk].into())?;
    let best = places(&table.reduce_max(2)?, k)?.sort(1)?;
    let few = table.gather_with(&best, 1, batched)?.reshape_to([rows, k * chunk].into())?;
    let at = places(&few, k)?;
    let of = best.gather_with(&at.floordiv(chunk as i64)?, 1, batched)?;
    of.multiply(chunk as i64)?.add(at.floormod(chunk as i64)?)
}

/// If more elements than this are requested, long rows are searched by chunk maxima first: on llvmpipe finding 32 of a
/// million took 34 ms of CPU time without this.
const SEVERAL: usize = 16;

/// On a CPU a workgroup has as many threads as the CPU's vectors have lanes.
const LANES: usize = 8;

/// The most elements that a CPU thread keeps in order; for more, a full sort is used. Each number inserted among them
/// moves those below it.
const MOST: usize = 32;

/// The most elements that a workgroup of a GPU keeps of each chunk that it sorts. A sort of the whole row moves less
/// data than rounds that keep more.
const KEPT: usize = 256;

/// The indices of the `k` largest elements of each row of `[rows, n]`.
#[derive(Debug, Attribute)]
#[op("TopK")]
pub(crate) struct TopK {
    k: usize,
}

impl Op for TopK {
    fn name(&self) -> &'static str {
        "TopKV2"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new([inputs[0].shape[0], self.k], DType::I32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        let (rows, k, caps) = (x.shape[0], self.k, cx.caps);
        let mut work = Kernels::default();
        if !caps.cpu || k > MOST {
            let keys = Keys::Of { dtype: x.dtype, descending: true };
            let Kernels { temps, kernels } = &mut work;
            let sorting = Sorting { rows, len: x.shape[1], keys };
            sorting.first_places(caps, k, [Bind::Input(0), Bind::Output], temps, kernels);
            return Lowering::Kernels(work);
        }
        // An element inserted among the largest moves up to k others.
        let most = (caps.loop_iterations.saturating_sub(k) / (k + 1)).max(1);
        let (mut len, mut from) = (x.shape[1], Bind::Input(0));
        // Every round halves what is left, or more.
        for round in 0..64 {
            let chunk = (rows * len).div_ceil(64).max(64).min(most).max(2 * k).min(len);
            let chunks = len.div_ceil(chunk);
            let last = chunks == 1;
            let to = match last {
                true => Bind::Output,
                false => {
                    work.temps.push(DType::U32.bytes(2 * rows * chunks * k));
                    Bind::Temp(work.temps.len() - 1)
                }
            };
            let sizes = [rows, len, chunk, chunks];
            work.kernels.push(self.round(x.dtype, sizes, (round == 0, from), (last, to)));
            if last {
                break;
            }
            (len, from) = (chunks * k, to);
        }
        Lowering::Kernels(work)
    }
}

impl TopK {
    /// The kernel that finds the largest of each chunk.
    fn round(
        &self,
        dtype: DType,
        [rows, len, chunk, chunks]: [usize; 4],
        (first, from): (bool, Bind),
        (last, to): (bool, Bind),
    ) -> Kernel {
        let keys = Keys::Of { dtype, descending: false };
        let kernel = Kernel::new("top_k", shader!(include_str!("../../shaders/top_k.wgsl")))
            .constant("WG", LANES as u32)
            .constant("MOST", MOST as u32);
        let kernel = keys.place(keys.source(kernel, first, false), first);
        kernel
            .declare("@group(0) @binding(1) var<storage, read_write> y: array<u32>;")
            .read(from)
            .write(to)
            .param("len", len)
            .param("chunk", chunk)
            .param("chunks", chunks)
            .param("total", rows * chunks)
            .param("k", self.k)
            .param("first", usize::from(first))
            .param("step", if first { 1 } else { 2 })
            .param("last", usize::from(last))
            .param("flip", keys.flip())
            .workgroups((rows * chunks).div_ceil(LANES), chunk * (self.k + 1) + self.k)
    }
}

impl Operation for TopK {
    fn keep(&self) -> Keep {
        Keep::NoGradient("TopKV2: an index")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "top_k", &["tf.math.top_k"], |c| {
        // The result is always sorted.
        c.flag("sorted")?;
        let (values, indices) = c.x()?.top_k(c.size("k")?)?;
        Ok(vec![values, indices])
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_one("top_k", Values::Distinct(0.0), |x| Ok(x.top_k(3)?.0));
        cases.add("top_k of many", &[(&[2, 70], Values::Distinct(0.0))], |x| Ok(x[0].top_k(40)?.0));
    })
    .kernels(&[|make, dtype| {
        let mut results = Vec::new();
        for (shape, k) in [(&[9][..], 3), (&[2, 3, 40], 32), (&[100_000], 7), (&[3, 3000], 40)] {
            let (values, indices) = make(shape, dtype).top_k(k)?;
            results.extend([values, indices]);
        }
        Ok(results)
    }])
    .loops(&[|make, n| {
        let (values, indices) = make(&[n], DType::F32).top_k(5)?;
        Ok(vec![values, indices, make(&[2, n], DType::I32).top_k(1)?.0])
    }]),
    Entry::new(OpKind::Composed, "in_top_k", &["tf.math.in_top_k"], |c| {
        Ok(vec![c.arg("targets")?.in_top_k(c.arg("predictions")?, c.size("k")?)?])
    })
    .takes(&[DType::I32])
    .gradient(super::inventory::Gradient::None("InTopKV2: a truth value")),
];

#[cfg(test)]
mod tests {
    use super::super::sort::tests::devices;
    use super::*;
    use crate::tensor::constant;

    #[test]
    fn the_largest_are_found_as_a_sort_finds_them() {
        devices().iter().for_each(|device| device.scope(the_largest));
    }

    fn the_largest() {
        for (rows, n) in [(1, 1), (3, 40), (5, 1000), (2, 2049), (1, 50_021)] {
            let x: Vec<f32> = (0..rows * n).map(|i| ((i * 7919 + i / 13) % 1009) as f32).collect();
            let x = Tensor::from_slice(&x, [rows, n]).unwrap();
            let order = x.argsort_with(1, SortOptions::new().descending(true)).unwrap();
            for k in [0, 1, 5, 32, 33, 256, 257, n].into_iter().filter(|&k| k <= n) {
                let (values, indices) = x.top_k(k).unwrap();
                let want = order.slice(&[0, 0], &[-1, k as i64]).unwrap();
                let got = indices.to_vec::<i32>().unwrap();
                assert_eq!(got, want.to_vec::<i32>().unwrap(), "{k} of {n}");
                let rows_of = x.gather_with(&want, 1, GatherOptions::new().batch_dims(1)).unwrap();
                assert_eq!(values.to_vec::<f32>().unwrap(), rows_of.to_vec::<f32>().unwrap());
            }
        }
    }

    #[test]
    fn zeros_of_a_key_and_nan_have_their_places() {
        let zeros = Tensor::from_slice(&[0u32, 0, 0], [3]).unwrap();
        assert_eq!(zeros.top_k(2).unwrap().1.to_vec::<i32>().unwrap(), [0, 1]);
        let x = constant([1.0, f32::NAN, f32::INFINITY]).unwrap();
        assert_eq!(x.top_k(3).unwrap().1.to_vec::<i32>().unwrap(), [1, 2, 0]);
        let rising: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
        let rising = Tensor::from_slice(&rising, [10_000]).unwrap();
        assert_eq!(rising.top_k(3).unwrap().1.to_vec::<i32>().unwrap(), [9999, 9998, 9997]);
    }

    #[test]
    fn targets_are_among_the_largest_or_not() {
        let predictions =
            constant([[0.1, 0.9, 0.5], [0.3, f32::NAN, 0.2], [0.7, 0.7, 0.1]]).unwrap();
        let hit = |targets: [i32; 3], k| {
            constant(targets).unwrap().in_top_k(&predictions, k).unwrap().to_vec::<bool>().unwrap()
        };
        assert_eq!(hit([1, 0, 1], 1), [true, false, true]);
        assert_eq!(hit([2, 0, 2], 2), [true, false, false]);
        assert_eq!(hit([0, 5, -1], 3), [true, false, false]);
    }
}
