//! Sums over replicas: of the devices of this process, and then of all processes.

use super::signature::hash_of_tensors;
use crate::dtype::DType;
use crate::eager::{PendingSum, Replicas, Workers};
use crate::error::{Error, Result, message};
use crate::ops::concat;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// The gradients of one bucket are copied together; it has at most this many bytes, or one tensor.
const BUCKET_BYTES: usize = 32 << 20;

/// The sum of each tensor over all replicas, on the device of each replica. `tensors` has a list for each replica; what is `None`
/// in all of them stays `None`.
///
/// The replicas' values are added in the order of the replicas, so the sum does not depend on which is ready first. With several
/// processes, `agreed` is the signature of the call, on which they agree before they exchange anything. Only the first `wanted` devices
/// receive the sums.
///
/// # Errors
/// [`Error::Shape`] if the lists do not fit together; those of the copies, and of [`Workers`].
pub(crate) fn all_reduce(
    what: &str,
    replicas: &Replicas,
    tensors: Vec<Vec<Option<Tensor>>>,
    agreed: u64,
    wanted: usize,
) -> Result<Vec<Vec<Option<Tensor>>>> {
    let devices = replicas.devices();
    check(what, &tensors)?;
    let Some(workers) = replicas.workers() else {
        return sum_of_devices(devices, tensors, wanted);
    };
    let sums = sum_of_devices(devices, tensors, 1)?;
    let all = of_workers(what, &**workers, &devices[0], &sums[0], agreed)?;
    let on = |device: &Device| {
        let copy = |sum: &Option<Tensor>| sum.as_ref().map(|sum| sum.to(device)).transpose();
        all.iter().map(copy).collect()
    };
    devices.iter().take(wanted).map(on).collect()
}

/// The sum of each tensor over all processes, on `device`, where the tensors are. `agreed` as in [`all_reduce`].
///
/// # Errors
/// Those of [`Workers`]; that of a tensor that has failed.
pub(super) fn of_workers(
    what: &str,
    workers: &dyn Workers,
    device: &Device,
    tensors: &[Option<Tensor>],
    agreed: u64,
) -> Result<Vec<Option<Tensor>>> {
    workers.agree(what, hash_of_tensors(tensors, agreed), false)?;
    // The others wait for this process from now on.
    sum_of_workers(workers, device, tensors).inspect_err(|error| workers.fail(error))
}

/// The sum of each tensor over all processes, which have agreed on the call. The last tensors are sent first: a backward pass
/// computes them first, and their sums are on their way while the device computes the others.
fn sum_of_workers(
    workers: &dyn Workers,
    device: &Device,
    tensors: &[Option<Tensor>],
) -> Result<Vec<Option<Tensor>>> {
    let mut sums: Vec<Option<Tensor>> = vec![None; tensors.len()];
    // Integers are summed exactly, so they are gathered instead.
    let is_float = |tensor: &Tensor| matches!(tensor.dtype(), DType::F32 | DType::F16);
    for (at, tensor) in tensors.iter().enumerate() {
        if let Some(tensor) = tensor.as_ref().filter(|tensor| !is_float(tensor)) {
            sums[at] = Some(sum_of_integers(workers, device, tensor)?);
        }
    }
    let mut packs: Vec<Vec<(usize, Tensor)>> = Vec::new();
    let mut bytes = 0;
    for (at, tensor) in tensors.iter().enumerate().rev() {
        let Some(tensor) = tensor.as_ref().filter(|tensor| is_float(tensor)) else { continue };
        let own = tensor.spec().elements().saturating_mul(4);
        let tensor = tensor.stop_gradient().cast(DType::F32)?;
        match packs.last_mut().filter(|_| bytes + own <= workers.bytes_per_pack()) {
            Some(pack) => pack.push((at, tensor)),
            None => {
                packs.push(vec![(at, tensor)]);
                bytes = 0;
            }
        }
        bytes += own;
    }
    let values = |pack: &Vec<(usize, Tensor)>| {
        pack.iter().map(|(_, tensor)| tensor.value().clone()).collect::<Vec<_>>()
    };
    let reads = device.start_packs(&packs.iter().map(values).collect::<Vec<_>>())?;
    let mut pending: Vec<PendingSum> = Vec::with_capacity(packs.len());
    for read in reads {
        pending.push(workers.start_sum(Box::new(read.view()?))?);
    }
    for (pack, pending) in packs.into_iter().zip(pending) {
        let sum = pending()?;
        let specs = pack.iter().map(|(_, tensor)| tensor.spec().clone()).collect();
        let values = device.upload_pack(specs, (*sum).as_ref())?;
        for ((at, _), value) in pack.into_iter().zip(values) {
            let sum = Tensor::new(device.clone(), value);
            let dtype = tensors[at].as_ref().map_or(DType::F32, Tensor::dtype);
            sums[at] = Some(sum.cast(dtype)?);
        }
    }
    Ok(sums)
}

/// The sum of integers over all processes; it wraps, as sums on a device do.
fn sum_of_integers(workers: &dyn Workers, device: &Device, tensor: &Tensor) -> Result<Tensor> {
    let words = |bytes: &[u8]| -> Vec<u32> {
        let word = |word: &[u8]| u32::from_ne_bytes(word.try_into().unwrap_or_default());
        bytes.chunks_exact(4).map(word).collect()
    };
    if !matches!(tensor.dtype(), DType::I32 | DType::U32) {
        return Err(Error::DType(message!(
            "all_reduce: {} values cannot be added up. Cast them to int32 or float32.",
            tensor.dtype()
        )));
    }
    let mut sum = vec![0u32; tensor.spec().elements()];
    for bytes in workers.gather(tensor.to_bytes()?)? {
        for (sum, word) in sum.iter_mut().zip(words(&bytes)) {
            *sum = sum.wrapping_add(word);
        }
    }
    device.scope(|| match tensor.dtype() {
        DType::I32 => {
            let sum: Vec<i32> = sum.iter().map(|word| *word as i32).collect();
            Tensor::from_slice(&sum, tensor.shape())
        }
        _ => Tensor::from_slice(&sum, tensor.shape()),
    })
}

/// As [`all_reduce`], over the devices of this process.
fn sum_of_devices(
    devices: &[Device],
    tensors: Vec<Vec<Option<Tensor>>>,
    wanted: usize,
) -> Result<Vec<Vec<Option<Tensor>>>> {
    if devices.len() == 1 {
        return Ok(tensors);
    }
    let mut sums: Vec<Vec<Option<Tensor>>> = vec![vec![None; tensors[0].len()]; wanted];
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
        for (replica, device) in devices.iter().take(wanted).enumerate() {
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
