//! Scaled dot-product attention: `y = softmax(scale q k^T + mask) v`.
//!
//! `scores.rs` computes it with the matrix of scores, `flash.rs` with kernels that never write it. This file checks a
//! call, converts its inputs to the form that both expect, and chooses one of them.

pub(super) mod flash;
mod scores;

use self::scores::{LOW, Layout};
use super::inventory::{ANY, Entry, Make, OpKind, one};
use super::{FLOATS, expect_dtype, fill, same_dtype, select};
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::shape::{Axis, Shape, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;

use super::{Backward, Grads, Keep, Operation, no_grads};

options! {
    /// Options of [`scaled_dot_product_attention`].
    #[derive(Debug, Clone)]
    pub struct AttentionOptions {
        /// Which keys each query attends to: `bool`, true for keys that it attends to, or floats that are added to the scores;
        /// broadcast to `[.., H, T, S]`. By default each query attends to all keys.
        mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Whether query `t` attends only to the keys 0 to `t`; `false` by default.
        is_causal: bool = false,
        /// The scale of the scores; `1 / sqrt(D)` by default.
        scale: Option<f32> as impl Into<Option<f32>> = None,
        /// The dropout probability of an attention weight; the remaining weights are scaled by `1 / (1 - rate)`; 0 by default.
        dropout_rate: f32 = 0.0,
        /// The seed alone determines which weights are dropped, so each step needs a different one; `[0, 0]` by default.
        seed: [i32; 2] = [0, 0],
    }
}

const OP: &str = "ScaledDotProductAttention";

/// Larger matrices of scores are never stored. Without a matrix, with gradients, each weight is computed four times,
/// and there are ten products of the head's size instead of six, so up to this size the matrix is faster; beyond it,
/// the matrix and its gradients would take memory that the model needs.
const LARGE: u64 = 64 << 20;
/// The same if kernels run on a CPU: Mesa's llvmpipe reads a key separately for each of eight queries, and takes seven
/// times as long as with a matrix (8 heads of 64, 2048 keys, forward: 16 s and 2.3 s on a loaded machine of two cores).
const LARGE_ON_CPU: u64 = 128 << 20;

/// Whether scores of `bytes` bytes are too large to be stored on this adapter.
fn too_large(bytes: u64, caps: &Caps) -> bool {
    bytes > caps.binding_bytes.min(if caps.cpu { LARGE_ON_CPU } else { LARGE })
}

/// Computes `softmax(scale query key^T + mask) value` along the keys: query `[.., H, T, D]`, key `[.., H, S, D]`, value
/// `[.., H, S, E]`, result `[.., H, T, E]`. This is PyTorch's order of axes; `keras.ops.dot_product_attention` uses
/// `[B, T, H, D]`, which `transpose([0, 2, 1, 3])` converts to this order.
///
/// Key and value may have fewer heads than the query; each of their heads then serves a group of consecutive query heads
/// (grouped-query attention). A query that attends to no key returns zeros. Mask values below -5e37 count as negative infinity.
/// Scores and weights are `f32`, even for `f16` inputs.
///
/// If the scores would take more than 64 MiB (128 MiB if kernels run on a CPU), they are never stored: the kernels iterate over
/// the keys, and the gradients recompute the weights. This needs heads of up to 128 elements (on a GPU up to 256, in multiples
/// of 32) and eight storage buffers. Otherwise, and for gradients of a mask and second-order gradients, the matrix of scores is
/// stored.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let q = tf::constant([[[1.0, 0.0], [0.0, 1.0]]])?;
/// let v = tf::constant([[[1.0], [2.0]]])?;
/// let causal = tf::AttentionOptions::new().is_causal(true);
/// let y = tf::scaled_dot_product_attention(&q, &q, &v, causal)?.to_vec::<f32>()?;
/// let weight = 1.0 / (1.0 + (1.0 / 2f32.sqrt()).exp());
/// assert!((y[0] - 1.0).abs() < 1e-6 && (y[1] - (2.0 - weight)).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes are incompatible; [`Error::DType`] if the dtypes differ or are not float, or the mask is
/// neither `bool` nor float; [`Error::Index`] if the dropout rate is not in the range [0, 1).
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    options: AttentionOptions,
) -> Result<Tensor> {
    attend([query, key, value], &options, None)
}

impl Tensor {
    /// [`Tensor::softmax`] along `axis` over the elements where `mask` (`bool`, broadcast) is true. The other elements are 0;
    /// if the mask is false everywhere, all are.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 5.0, 1.0], [2.0, 3.0, 4.0]])?;
    /// let mask = tf::constant([[true, false, true], [false, false, false]])?;
    /// let y = x.masked_softmax(&mask, -1)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::Shape`] if the shapes cannot be broadcast together;
    /// [`Error::DType`] if the dtype is not float or the mask not `bool`.
    pub fn masked_softmax(&self, mask: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        const OP: &str = "MaskedSoftmax";
        expect_dtype(OP, self.spec(), FLOATS)?;
        expect_dtype("MaskedSoftmax (the mask)", mask.spec(), &[DType::Bool])?;
        let wide = if self.dtype() == DType::F32 { self.clone() } else { self.cast(DType::F32)? };
        let low = fill(self.device(), OP, Default::default(), LOW.into(), DType::F32)?;
        let x = select(mask, &wide, &low)?;
        let axis = axis_index(OP, axis, x.rank())?;
        let y = scores::softmax_of_seen(&x, axis as i64)?;
        if y.dtype() == self.dtype() { Ok(y) } else { y.cast(self.dtype()) }
    }
}

/// Tests set `flash` to choose the method; otherwise it depends on the size of the scores and the adapter.
fn attend(
    [query, key, value]: [&Tensor; 3],
    options: &AttentionOptions,
    flash: Option<bool>,
) -> Result<Tensor> {
    let layout = layout([query, key, value], options)?;
    let [depth, width] = [query, value].map(|x| x.shape()[x.rank() - 1]);
    let mut shape = query.spec().shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = width;
    }
    let mask = match &options.mask {
        Some(mask) => Some(prepared(mask, &shape, &layout)?),
        None => None,
    };
    let lines = |x: &Tensor, count: usize| -> Result<Tensor> {
        let (rows, last) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
        x.reshape_to([count, rows, last].into())
    };
    let count = layout.count();
    let (q, k) = (lines(query, count)?, lines(key, count / layout.group)?);
    let v = lines(value, count / layout.group)?;
    let empty = count * layout.rows * layout.keys == 0;
    let quads = |n: usize| n.next_multiple_of(4);
    let can = !empty
        && !eager::is_composing()
        && flash::fits(&layout, quads(depth), quads(width), query.device().caps());
    let y = if can && flash.unwrap_or(too_large(layout.score_bytes(), query.device().caps())) {
        let fill_up = |x: &Tensor| match quads(x.shape()[2]) - x.shape()[2] {
            0 => Ok(x.clone()),
            more => x.pad(&[(0, 0), (0, 0), (0, more)]),
        };
        let words = match layout.rate {
            Some(_) => Some(eager::create(Words { seed: layout.seed }, Some(q.device()), None)?),
            None => None,
        };
        let more: Vec<&Tensor> = mask.iter().chain(&words).collect();
        let y = flash::attend(layout, [&fill_up(&q)?, &fill_up(&k)?, &fill_up(&v)?], &more)?;
        if y.shape()[2] == width { y } else { y.slice(&[0; 3], &[-1, -1, width as i64])? }
    } else {
        layout.attend([&q, &k, &v], mask.as_ref())?
    };
    let y = if y.dtype() == query.dtype() { y } else { y.cast(query.dtype())? };
    y.reshape_to(shape.into())
}

/// Checks the sizes of a call.
fn layout([q, k, v]: [&Tensor; 3], options: &AttentionOptions) -> Result<Layout> {
    expect_dtype(OP, q.spec(), FLOATS)?;
    same_dtype(OP, q.spec(), k.spec())?;
    same_dtype(OP, q.spec(), v.spec())?;
    let wrong = |why: &str| {
        Err(Error::Shape(message!(
            "{OP}: query is {:?}, key {:?} and value {:?}; {why}.",
            q.shape(),
            k.shape(),
            v.shape()
        )))
    };
    let rank = q.rank();
    if rank < 2 || k.rank() != rank || v.rank() != rank {
        return wrong("all three need the same number of axes, two or more: [.., H, T, D]");
    }
    let sizes = |x: &Tensor| (x.shape()[rank - 2], x.shape()[rank - 1]);
    let ((rows, depth), (keys, key_depth), (values, _)) = (sizes(q), sizes(k), sizes(v));
    if depth != key_depth || depth == 0 {
        return wrong("query and key need one last axis, of one element or more");
    }
    if keys != values {
        return wrong("key and value need one second to last axis");
    }
    let heads = |x: &Tensor| if rank > 2 { x.shape()[rank - 3] } else { 1 };
    let before = rank.saturating_sub(3);
    let (own, shared) = (heads(q), heads(k));
    let grouped = shared == own || (shared > 0 && own % shared == 0);
    if k.shape()[..rank - 2] != v.shape()[..rank - 2]
        || q.shape()[..before] != k.shape()[..before]
        || !grouped
    {
        return wrong(
            "the axes before the last two must agree, except for the heads: those of the query may be a multiple of \
             the others'",
        );
    }
    let rate = options.dropout_rate;
    if !(0.0..1.0).contains(&rate) {
        return Err(Error::Index(message!(
            "{OP}: the rate of dropout is {rate}; it must be at least 0 and below 1."
        )));
    }
    let scale = options.scale.unwrap_or(1.0 / (depth as f32).sqrt());
    Ok(Layout {
        batch: Shape::new(&q.shape()[..before]).elements(),
        heads: own,
        group: own.checked_div(shared).unwrap_or(1),
        rows,
        keys,
        scale: scale.to_bits(),
        causal: options.is_causal,
        masked: options.mask.is_some(),
        rate: (rate > 0.0).then(|| rate.to_bits()),
        seed: Runtime(options.seed.map(|word| word as u32)),
    })
}

/// The mask as numbers to add, `f32` and `[B,H,T,S]` or 1 along its axes.
fn prepared(mask: &Tensor, result: &[usize], of: &Layout) -> Result<Tensor> {
    expect_dtype(
        "ScaledDotProductAttention (the mask)",
        mask.spec(),
        &[DType::Bool, DType::F32, DType::F16],
    )?;
    let rank = result.len();
    let mut scores = result.to_vec();
    scores[rank - 1] = of.keys;
    let missing = rank.checked_sub(mask.rank());
    let own: Option<Vec<usize>> =
        missing.map(|n| vec![1; n].into_iter().chain(mask.shape().iter().copied()).collect());
    let fits =
        |own: &Vec<usize>| own.iter().zip(&scores).all(|(&own, &size)| own == size || own == 1);
    let Some(own) = own.filter(fits) else {
        return Err(Error::Shape(message!(
            "{OP}: the mask is {:?} and the scores {scores:?}; the mask must broadcast to them.",
            mask.shape()
        )));
    };
    let number = |v: f32| fill(mask.device(), OP, Default::default(), v.into(), DType::F32);
    let numbers = match mask.dtype() {
        DType::Bool => select(mask, &number(0.0)?, &number(LOW)?)?,
        DType::F16 => mask.cast(DType::F32)?.maximum(LOW)?,
        _ => mask.maximum(LOW)?,
    };
    let before = rank.saturating_sub(3);
    let heads = if rank > 2 { own[rank - 3] } else { 1 };
    // Axes before the heads are merged into one, so either all or none of them are broadcast.
    let spread = own[..before].iter().any(|&size| size != 1) && own[..before] != scores[..before];
    let mut sizes = own.clone();
    let numbers = if spread {
        sizes[..before].copy_from_slice(&scores[..before]);
        numbers.reshape_to(own.into())?.broadcast_to(sizes.clone())?
    } else {
        numbers
    };
    let batch = Shape::new(&sizes[..before]).elements();
    numbers.reshape_to([batch, heads, sizes[rank - 2], sizes[rank - 1]].into())
}

/// The seed as runtime scalars: another seed needs no new plan.
#[derive(Debug, Attribute)]
#[op("DropoutWords")]
pub(crate) struct Words {
    seed: Runtime<[u32; 2]>,
}

impl Op for Words {
    fn name(&self) -> &'static str {
        "AttentionSeed"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new([4], DType::U32))
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        RuntimeScalars::from_slice(&self.seed.0)
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Elementwise::new("attention_seed", "vec4<u32>(a, b, 0u, 0u) + 0u * i")
            .arg("a", Arg::RuntimeScalar(0))
            .arg("b", Arg::RuntimeScalar(1))
            .arg("i", Arg::Quad)
            .into()
    }
}

impl Operation for Words {
    fn keep(&self) -> Keep {
        Keep::NoGradient("AttentionSeed: a constant")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}

#[cfg(test)]
mod tests;

/// Calls of the kernels without a matrix of scores.
fn flash_calls(make: Make, dtype: DType) -> Result<Vec<Tensor>> {
    let (q, k, v) =
        (make(&[1, 4, 5, 6], dtype), make(&[1, 2, 7, 6], dtype), make(&[1, 2, 7, 3], dtype));
    let mask = make(&[1, 1, 5, 7], DType::Bool);
    let mut results = Vec::new();
    for options in [
        AttentionOptions::new(),
        AttentionOptions::new().is_causal(true).mask(mask).dropout_rate(0.5),
    ] {
        results.push(attend([&q, &k, &v], &options, Some(true))?);
    }
    // Several threads share a row.
    let (q, k) = (make(&[1, 2, 5, 80], dtype), make(&[1, 2, 7, 80], dtype));
    results.push(attend([&q, &k, &k], &AttentionOptions::new(), Some(true))?);
    Ok(results)
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[MASKED_SOFTMAX, ATTENTION];

const MASKED_SOFTMAX: Entry =
    Entry::new(OpKind::Composed, "masked_softmax", &["keras.layers.Softmax"], |c| {
        one(c.x()?.masked_softmax(c.arg("mask")?, c.int("axis")?.unwrap_or(-1)))
    })
    .cases(|cases| {
        cases.of_shape("masked_softmax", &[3, 4], |x| {
            let mask =
                [true, true, false, true, false, false, false, false, true, false, true, true];
            x.masked_softmax(&Tensor::from_slice(&mask, [3, 4])?, 0)
        });
    });

const ATTENTION: Entry = Entry::new(
    OpKind::Kernel,
    "scaled_dot_product_attention",
    &["keras.ops.dot_product_attention"],
    |c| {
        let options = AttentionOptions::new()
            .is_causal(c.flag("is_causal")?)
            .scale(c.float("scale")?.map(|scale| scale as f32));
        // Keras has the axis of the heads after that of the rows.
        let turned = |name: &str| -> super::inventory::Answer<Tensor> {
            Ok(c.arg(name)?.transpose([0, 2, 1, 3])?)
        };
        let (q, k, v) = (turned("query")?, turned("key")?, turned("value")?);
        one(attend([&q, &k, &v], &options, None).and_then(|y| y.transpose([0, 2, 1, 3])))
    },
)
.cases(|cases| {
    for flash in [false, true] {
        let how = if flash { "without scores" } else { "by scores" };
        let inputs: [super::inventory::Input; 3] =
            [(&[2, 2, 3, 5], ANY), (&[2, 2, 6, 5], ANY), (&[2, 2, 6, 3], ANY)];
        cases.add(format!("scaled_dot_product_attention {how}"), &inputs, move |x| {
            attend([&x[0], &x[1], &x[2]], &AttentionOptions::new(), Some(flash))
        });
        let inputs: [super::inventory::Input; 4] = [
            (&[2, 4, 5, 4], ANY),
            (&[2, 2, 5, 4], ANY),
            (&[2, 2, 5, 4], ANY),
            (&[2, 1, 1, 5], ANY),
        ];
        cases.add(
            format!("scaled_dot_product_attention {how}, grouped, causal, mask"),
            &inputs,
            move |x| {
                let options = AttentionOptions::new().is_causal(true).mask(x[3].clone()).scale(0.7);
                attend([&x[0], &x[1], &x[2]], &options, Some(flash))
            },
        );
        let inputs: [super::inventory::Input; 3] =
            [(&[2, 6, 4], ANY), (&[2, 7, 4], ANY), (&[2, 7, 4], ANY)];
        cases.add(format!("scaled_dot_product_attention {how}, dropout"), &inputs, move |x| {
            let options = AttentionOptions::new().dropout_rate(0.4).seed([3, 4]);
            attend([&x[0], &x[1], &x[2]], &options, Some(flash))
        });
    }
})
.kernels(&[flash_calls])
.loops(&[|make, n| {
    // If the loop would be too long for a driver, the call uses the matrix of scores.
    let n = n.min(700);
    let (q, k) = (make(&[1, 4, 4], DType::F32), make(&[1, n, 4], DType::F32));
    let options = AttentionOptions::new();
    Ok(vec![
        attend([&q, &k, &k], &options, Some(true))?,
        attend([&k, &q, &q], &options, Some(true))?,
    ])
}]);
