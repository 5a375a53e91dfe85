//! Ops that combine elements along axes.

use super::call::{Call, Entry, Results, any, many};
use super::host;
use super::on_host;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::ops::{BincountOptions, CumsumOptions};
use crate::saved_model::graph_def::value::Value;
use crate::saved_model::waiting::wait;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// The number of segments is a value of the last identifier.
macro_rules! segments {
    ($call:ident, $method:ident) => {{
        let (x, ids) = ($call.tensor(0)?, $call.tensor(1)?);
        let own = ids.clone();
        let results = wait(&ids, async move { Ok(vec![Value::Tensor(x.$method(&own).await?)]) });
        Ok(results?.into())
    }};
}

pub(super) static OPS: &[Entry] = &[
    any("All", |call| reduce(call, |x, axes| x.reduce_all(axes))),
    any("Any", |call| reduce(call, |x, axes| x.reduce_any(axes))),
    any("EuclideanNorm", |call| reduce(call, |x, axes| x.reduce_euclidean_norm(axes))),
    any("Max", |call| reduce(call, |x, axes| x.reduce_max(axes))),
    any("Mean", |call| reduce(call, |x, axes| x.reduce_mean(axes))),
    any("Min", |call| reduce(call, |x, axes| x.reduce_min(axes))),
    any("Prod", |call| reduce(call, |x, axes| x.reduce_prod(axes))),
    any("Sum", |call| reduce(call, |x, axes| x.reduce_sum(axes))),
    any("AddN", |call| Ok(Value::Tensor(crate::ops::add_n(call.tensors(0, call.inputs.len())?)?))),
    any("ArgMax", |call| Ok(Value::Tensor(call.tensor(0)?.argmax(axis(call, 0)?)?))),
    any("ArgMin", |call| Ok(Value::Tensor(call.tensor(0)?.argmin(axis(call, 0)?)?))),
    many("Bincount", &[], |call| bincount(call, false)),
    any("Cumprod", |call| cumulate(call, Tensor::cumprod_with)),
    any("Cumsum", |call| cumulate(call, Tensor::cumsum_with)),
    any("CumulativeLogsumexp", |call| cumulate(call, Tensor::cumulative_logsumexp_with)),
    many("DenseBincount", &[], |call| bincount(call, call.attr_bool("binary_output", false))),
    any("L2Loss", |call| Ok(Value::Tensor(crate::ops::l2_loss(&call.tensor(0)?)?))),
    any("LogSoftmax", |call| Ok(Value::Tensor(call.tensor(0)?.log_softmax(-1)?))),
    many("SegmentMax", &[], |call| segments!(call, segment_max_async)),
    many("SegmentMean", &[], |call| segments!(call, segment_mean_async)),
    many("SegmentMin", &[], |call| segments!(call, segment_min_async)),
    many("SegmentProd", &[], |call| segments!(call, segment_prod_async)),
    many("SegmentSum", &[], |call| segments!(call, segment_sum_async)),
    any("Softmax", |call| Ok(Value::Tensor(call.tensor(0)?.softmax(-1)?))),
    any("UnsortedSegmentMax", |call| unsorted(call, Tensor::unsorted_segment_max)),
    any("UnsortedSegmentMin", |call| unsorted(call, Tensor::unsorted_segment_min)),
    any("UnsortedSegmentProd", |call| unsorted(call, Tensor::unsorted_segment_prod)),
    any("UnsortedSegmentSum", |call| unsorted(call, Tensor::unsorted_segment_sum)),
    many("TopKV2", &["values", "indices"], |call| {
        let (values, indices) = call.tensor(0)?.top_k(call.size(1)?)?;
        Ok(Results::from_iter([Value::Tensor(values), Value::Tensor(indices)]))
    }),
    any("InTopKV2", |call| {
        // The classes are the receiver, as in TensorFlow's own call.
        let (predictions, targets) = (call.tensor(0)?, call.tensor(1)?);
        Ok(Value::Tensor(targets.in_top_k(&predictions, call.size(2)?)?))
    }),
];

fn reduce(call: &Call<'_>, f: fn(&Tensor, Axes) -> Result<Tensor>) -> Result<Value> {
    let axes = call.ints(1)?;
    let keepdims = call.attr_bool("keep_dims", false);
    if let Some(x) = on_host(call.input(0)?) {
        let rank = x.shape().len();
        let wrapped = axes.iter().map(|axis| wrap(*axis, rank)).collect::<Result<Vec<_>>>()?;
        if let Some(result) = host::reduce(&call.node.op, x, &wrapped, keepdims) {
            return Ok(Value::host(result));
        }
    }
    let x = call.tensor(0)?;
    // Of no axes, each element is its own result.
    if axes.is_empty() {
        return Ok(Value::Tensor(x));
    }
    Ok(Value::Tensor(f(&x, Axes::from(axes).keepdims(keepdims))?))
}

/// The axis of this number, which may count from the end.
pub(super) fn wrap(axis: i64, rank: usize) -> Result<usize> {
    let wrapped = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let wrapped = wrapped.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
    wrapped.ok_or_else(|| {
        Error::Index(message!("the axis {axis} is out of range for a tensor of {rank} axes."))
    })
}

/// The axis in input 1, or `default` if there is none.
fn axis(call: &Call<'_>, default: i64) -> Result<i64> {
    if call.inputs.len() > 1 { call.int(1) } else { Ok(default) }
}

fn cumulate(
    call: &Call<'_>,
    f: fn(&Tensor, i64, CumsumOptions) -> Result<Tensor>,
) -> Result<Value> {
    let options = CumsumOptions::new()
        .exclusive(call.attr_bool("exclusive", false))
        .reverse(call.attr_bool("reverse", false));
    Ok(Value::Tensor(f(&call.tensor(0)?, call.int(1)?, options)?))
}

fn unsorted(call: &Call<'_>, f: fn(&Tensor, &Tensor, usize) -> Result<Tensor>) -> Result<Value> {
    Ok(Value::Tensor(f(&call.tensor(0)?, &call.tensor(1)?, call.size(2)?)?))
}

/// How often each number below `size` occurs, along the last axis.
fn bincount(call: &Call<'_>, binary: bool) -> Result<Results> {
    let (x, size) = (call.tensor(0)?, call.size(1)?);
    let dtype = call.attr_type("T", HostDType::F32).tensor_dtype().unwrap_or(x.dtype());
    let weighted = call.shape_of(2)?.iter().product::<usize>() > 0;
    if x.rank() == 1 && !binary {
        let mut options = BincountOptions::new().minlength(size).maxlength(size);
        if weighted {
            options = options.weights(call.tensor(2)?);
        }
        let own = x.clone();
        let results = wait(&x, async move {
            Ok(vec![Value::Tensor(own.bincount_async(options).await?.cast(dtype)?)])
        });
        return Ok(results?.into());
    }
    // A row of the one-hot form for each number; numbers from `size` on have none.
    let ones = crate::ops::one_hot(&x, size)?;
    let ones = match weighted {
        true => ones.multiply(call.tensor(2)?.expand_dims(-1)?)?,
        false => ones,
    };
    let counts = if binary { ones.reduce_max(-2)? } else { ones.reduce_sum(-2)? };
    Ok(Results::from_iter([Value::Tensor(counts.cast(dtype)?)]))
}
