//! Values that the host receives in packs, while the device computes later ones.

use std::sync::Arc;

use super::Device;
use super::flush::{ReadValues, never_ran};
use crate::device::{Buffer, Staging};
use crate::error::Result;
use crate::graph::{Spec, Value, ValueState, outside_its_trace};
use crate::plan::PackPlace;

/// The values of a pack, in the memory into which the device has copied them. Dropped, this memory serves later packs.
pub(crate) struct PackView {
    device: Device,
    /// The staging buffer, and the view of it. `None` only while this is dropped.
    mapped: Option<(Staging, wgpu::BufferView)>,
}

impl AsRef<[f32]> for PackView {
    fn as_ref(&self) -> &[f32] {
        let Some((staging, view)) = &self.mapped else { return &[] };
        // wgpu aligns what it maps to eight bytes.
        bytemuck::cast_slice(&view[..staging.bytes()])
    }
}

impl Drop for PackView {
    fn drop(&mut self) {
        if let Some((staging, view)) = self.mapped.take() {
            drop(view);
            self.device.0.gpu.end_read(staging);
        }
    }
}

/// A pack of values on its way to the host.
pub(crate) struct Pack {
    device: Device,
    staging: Staging,
    submitted: wgpu::SubmissionIndex,
}

impl Pack {
    /// Waits for the values, which are one after another, and returns them where they are.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is lost.
    pub(crate) fn view(self) -> Result<PackView> {
        let view = self.device.0.gpu.view(&self.staging, self.submitted)?;
        Ok(PackView { device: self.device, mapped: Some((self.staging, view)) })
    }
}

impl Device {
    /// Submits all waiting work, and the copies of values to the host, each pack behind the work that computes it. All values are on
    /// this device and have elements of four bytes.
    ///
    /// # Errors
    /// As [`Device::flush`]; that of a value that has failed.
    pub(crate) fn start_packs(&self, packs: &[Vec<Arc<Value>>]) -> Result<Vec<Pack>> {
        let gpu = &self.0.gpu;
        gpu.check_thread()?;
        let mut state = self.state();
        self.flush_reports(&mut state);
        let mut staging = Vec::with_capacity(packs.len());
        let mut values = Vec::new();
        for (pack, members) in packs.iter().enumerate() {
            let mut at = 0;
            for value in members {
                let bytes = (value.spec.dtype.size() * value.spec.elements()) as u64;
                let bytes = bytes.next_multiple_of(4);
                values.push((value.clone(), PackPlace { pack, at, bytes }));
                at += bytes;
            }
            staging.push(gpu.staging(at as usize)?);
        }
        let mut submitted = Vec::new();
        let waits = |value: &Arc<Value>| matches!(value.state(), ValueState::Waiting(_));
        // A plan copies what it computes; otherwise everything is computed first.
        if values.iter().all(|(value, _)| waits(value)) {
            let (values, packs) = (&values[..], &staging[..]);
            let reads = ReadValues::Early { values, packs, submitted: &mut submitted };
            let flushed = self.flush_locked(&mut state, reads, &[]);
            flushed.map_err(|error| self.reported(&mut state, error))?;
        } else if values.iter().any(|(value, _)| waits(value)) {
            let flushed = self.flush_locked(&mut state, ReadValues::None, &[]);
            flushed.map_err(|error| self.reported(&mut state, error))?;
        }
        if submitted.len() < packs.len() {
            submitted.clear();
            for (members, staging) in packs.iter().zip(&staging) {
                let mut parts = Vec::with_capacity(members.len());
                for value in members {
                    let buffer = match value.state() {
                        ValueState::Ready(buffer) => buffer,
                        ValueState::Failed(error) => return Err(self.reported(&mut state, error)),
                        ValueState::Traced(_) => return Err(outside_its_trace(value)),
                        ValueState::Waiting(_) => return Err(never_ran()),
                    };
                    self.land(&mut state, &buffer)?;
                    let bytes = (value.spec.dtype.size() * value.spec.elements()) as u64;
                    parts.push((buffer, bytes.next_multiple_of(4)));
                }
                submitted.push(gpu.gather(&parts, staging)?);
            }
        }
        let pack = |(staging, submitted)| Pack { device: self.clone(), staging, submitted };
        Ok(staging.into_iter().zip(submitted).map(pack).collect())
    }

    /// Values of `f32`, which are one after another in `floats`.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub(crate) fn upload_pack(&self, specs: Vec<Spec>, floats: &[f32]) -> Result<Vec<Arc<Value>>> {
        let gpu = &self.0.gpu;
        gpu.check_thread()?;
        let mut state = self.state();
        let mut buffers = Vec::with_capacity(specs.len());
        for spec in &specs {
            self.check_size("Const", spec)?;
            buffers.push((self.room_for(&mut state, spec)?, spec.elements() as u64 * 4));
        }
        gpu.scatter(bytemuck::cast_slice(floats), &buffers)?;
        let value = |(spec, (buffer, _)): (Spec, (Arc<Buffer>, u64))| {
            let value = Value::new("Const", spec, ValueState::Ready(buffer.clone()));
            buffer.holds(value.op, value.spec.dtype, &value.spec.shape);
            state.kept.note(&value, &buffer);
            value
        };
        Ok(specs.into_iter().zip(buffers).map(value).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::device::DeviceOptions;
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::graph::Spec;
    use crate::runtime::Device;
    use crate::tensor::{Tensor, constant};

    fn read(device: &Device, packs: &[Vec<&Tensor>]) -> Result<(Vec<Vec<f32>>, u64)> {
        let values: Vec<Vec<_>> =
            packs.iter().map(|pack| pack.iter().map(|x| x.value().clone()).collect()).collect();
        let before = device.stats().submits;
        let packs = device.start_packs(&values)?;
        let submits = device.stats().submits - before;
        let all = packs
            .into_iter()
            .map(|pack| pack.view().map(|view| view.as_ref().to_vec()))
            .collect::<Result<_>>()?;
        Ok((all, submits))
    }

    #[test]
    fn packs_are_uploaded_in_one_submission() {
        let device = Device::open(&DeviceOptions::default()).unwrap();
        let test = || -> Result<()> {
            // Larger than what one submission carries, and again, so that memory is used again.
            for large in [5usize << 20, 5 << 20, 3, 5 << 20] {
                let shapes = [vec![2, 3], vec![0], vec![], vec![large]];
                let specs: Vec<Spec> =
                    shapes.iter().map(|s| Spec::new(&s[..], DType::F32)).collect();
                let floats: Vec<f32> = (0..7 + large).map(|at| at as f32 + large as f32).collect();
                let before = device.stats().submits;
                let values = device.upload_pack(specs, &floats)?;
                assert_eq!(device.stats().submits - before, if large > 3 { 3 } else { 1 });
                let mut rest = &floats[..];
                for (value, shape) in values.into_iter().zip(&shapes) {
                    let tensor = Tensor::new(device.clone(), value);
                    assert_eq!(tensor.shape(), shape);
                    let (own, later) = rest.split_at(shape.iter().product());
                    rest = later;
                    assert!(tensor.add(1.0)?.subtract(1.0)?.to_vec::<f32>()? == own);
                }
            }
            Ok(())
        };
        device.scope(test).unwrap();
    }

    #[test]
    fn packs_are_submitted_where_they_are_computed() {
        let device = Device::open(&DeviceOptions::default()).unwrap();
        let test = || -> Result<()> {
            let x = constant([[1.0, 2.0], [3.0, 4.0]])?;
            // Products are kernels of their own, each of the one before.
            let first = x.matmul(&x)?;
            let second = first.matmul(&x)?;
            let third = second.matmul(&x)?;
            let (all, submits) = read(&device, &[vec![&first], vec![&third, &second]])?;
            assert_eq!(all[0], [7.0, 10.0, 15.0, 22.0]);
            assert_eq!(all[1], [199.0, 290.0, 435.0, 634.0, 37.0, 54.0, 81.0, 118.0]);
            // One for each pack, and the end of the plan.
            assert_eq!(submits, 3);

            // Some are computed already, and some occur twice.
            let fourth = third.add(&first)?;
            let (all, _) = read(&device, &[vec![&fourth, &first], vec![&first], vec![]])?;
            assert_eq!(all[0], [206.0, 300.0, 450.0, 656.0, 7.0, 10.0, 15.0, 22.0]);
            assert_eq!(all[1], [7.0, 10.0, 15.0, 22.0]);
            assert!(all[2].is_empty());
            let fifth = fourth.add(&first)?;
            let (all, _) = read(&device, &[vec![&fifth], vec![&fifth]])?;
            assert_eq!(all[0], all[1]);
            assert_eq!(all[0], [213.0, 310.0, 465.0, 678.0]);
            Ok(())
        };
        device.scope(test).unwrap();
    }
}
