//! Sums over replicas.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::concat;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// The gradients of one bucket are copied together; it has at most this many bytes, or one tensor.
const BUCKET_BYTES: usize = 32 << 20;

/// The sum of each tensor over all replicas, on the device of each replica. `tensors` has a list for each replica; what is `None`
/// in all of them stays `None`.
///
/// The replicas' values are added in the order of the replicas, so the sum does not depend on which is ready first.
///
/// # Errors
/// [`Error::Shape`] if the lists do not fit together; those of the copies.
pub(crate) fn all_reduce(
    what: &str,
    devices: &[Device],
    tensors: Vec<Vec<Option<Tensor>>>,
) -> Result<Vec<Vec<Option<Tensor>>>> {
    check(what, &tensors)?;
    if devices.len() == 1 {
        return Ok(tensors);
    }
    let mut sums: Vec<Vec<Option<Tensor>>> =
        tensors.iter().map(|tensors| vec![None; tensors.len()]).collect();
    for bucket in buckets(&tensors[0]) {
        let flat = |of: &[Option<Tensor>]| -> Result<Tensor> {
            let parts: Vec<&Tensor> = bucket.iter().filter_map(|&at| of[at].as_ref()).collect();
            match parts[..] {
                [one] => one.reshape([one.spec().elements()]),
                _ => {
                    let flat: Vec<Tensor> = parts
                        .iter()
                        .map(|part| part.reshape([part.spec().elements()]))
                        .collect::<Result<_>>()?;
                    concat(&flat, 0)
                }
            }
        };
        let mut total = flat(&tensors[0])?;
        for others in &tensors[1..] {
            total = total.add(flat(others)?.to(&devices[0])?)?;
        }
        for (replica, device) in devices.iter().enumerate() {
            let total = total.to(device)?;
            let mut begin = 0;
            for &at in &bucket {
                let Some(like) = &tensors[replica][at] else { continue };
                let part = match bucket.len() {
                    1 => total.clone(),
                    _ => total.slice(&[begin], &[like.spec().elements() as i64])?,
                };
                begin += like.spec().elements();
                sums[replica][at] = Some(part.reshape(like.shape())?);
            }
        }
    }
    Ok(sums)
}

fn check(what: &str, tensors: &[Vec<Option<Tensor>>]) -> Result<()> {
    let first = &tensors[0];
    for (replica, other) in tensors.iter().enumerate().skip(1) {
        if other.len() != first.len() {
            return Err(Error::Shape(message!(
                "{what}: replica 0 has {} tensors and replica {replica} has {}. All replicas have to give the same ones.",
                first.len(),
                other.len()
            )));
        }
        let spec = |tensor: &Option<Tensor>| tensor.as_ref().map(|tensor| tensor.spec().clone());
        let words =
            |tensor: &Option<Tensor>| spec(tensor).map_or("none".into(), |spec| spec.to_string());
        if let Some(at) = (0..first.len()).find(|&at| spec(&first[at]) != spec(&other[at])) {
            return Err(Error::Shape(message!(
                "{what}: tensor {at} of replica 0 is {}, and that of replica {replica} is {}. All replicas have to give the same \
                 ones; a replica without examples can give zeros.",
                words(&first[at]),
                words(&other[at])
            )));
        }
    }
    Ok(())
}

/// The indices of the tensors of each bucket: neighbours of one dtype.
fn buckets(tensors: &[Option<Tensor>]) -> Vec<Vec<usize>> {
    let mut buckets: Vec<Vec<usize>> = Vec::new();
    let mut last: Option<(DType, usize)> = None;
    for (at, tensor) in tensors.iter().enumerate() {
        let Some(tensor) = tensor else { continue };
        let (dtype, bytes) = (tensor.dtype(), tensor.spec().elements().saturating_mul(4));
        let fits =
            last.is_some_and(|(of, sum)| of == dtype && sum.saturating_add(bytes) <= BUCKET_BYTES);
        match buckets.last_mut().filter(|_| fits) {
            Some(bucket) => bucket.push(at),
            None => buckets.push(vec![at]),
        }
        last = Some((dtype, if fits { last.map_or(0, |(_, sum)| sum) + bytes } else { bytes }));
    }
    buckets
}
