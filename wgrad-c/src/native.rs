//! Vulkan's handles: of devices, of the buffers of tensors, and tensors over buffers of the program, without a copy.

use std::ffi::c_void;

use wgrad::{DType, Device, HostDType, Tensor};

use crate::arguments::{Out, out, shape};
use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::{get, take};
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// The Vulkan objects of a device. They are valid as long as a handle of the device, or of a tensor on it, is open.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct wgrad_vulkan {
    /// `VkInstance`.
    pub instance: *mut c_void,
    /// `VkPhysicalDevice`.
    pub physical_device: *mut c_void,
    /// `VkDevice`.
    pub device: *mut c_void,
    /// `VkQueue`. wgrad submits to it, so a program that does as well must not do so during any call of this library.
    pub queue: *mut c_void,
    /// The family of the queue.
    pub queue_family: u32,
}

const NONE: wgrad_vulkan = wgrad_vulkan {
    instance: std::ptr::null_mut(),
    physical_device: std::ptr::null_mut(),
    device: std::ptr::null_mut(),
    queue: std::ptr::null_mut(),
    queue_family: 0,
};

fn no_vulkan() -> Failure {
    Failure::new(wgrad_status::WGRAD_UNIMPLEMENTED, "the device does not run on Vulkan.")
}

#[cfg(not(target_vendor = "apple"))]
mod vulkan {
    use ash::vk::Handle;
    use wgrad::interop::wgpu::hal::api::Vulkan;
    use wgrad::interop::wgpu::hal::vulkan::Buffer;
    use wgrad::interop::wgpu::{self, BufferUsages};
    use wgrad::interop::{DeviceExt, TensorExt};

    use super::*;

    pub(super) fn objects(device: &Device) -> Result<wgrad_vulkan> {
        let (device, _) = device.wgpu();
        // SAFETY: nothing is destroyed.
        let hal = unsafe { device.as_hal::<Vulkan>() }.ok_or_else(no_vulkan)?;
        let pointer = |raw: u64| raw as usize as *mut c_void;
        Ok(wgrad_vulkan {
            instance: pointer(hal.shared_instance().raw_instance().handle().as_raw()),
            physical_device: pointer(hal.raw_physical_device().as_raw()),
            device: pointer(hal.raw_device().handle().as_raw()),
            queue: pointer(hal.raw_queue().as_raw()),
            queue_family: hal.queue_family_index(),
        })
    }

    pub(super) fn buffer(tensor: &Tensor) -> Result<(u64, u64)> {
        let buffer = tensor.buffer()?;
        // SAFETY: nothing is destroyed.
        let hal = unsafe { buffer.as_hal::<Vulkan>() }.ok_or_else(no_vulkan)?;
        // SAFETY: as above.
        Ok((unsafe { hal.raw_handle() }.as_raw(), buffer.size()))
    }

    /// # Safety
    /// The buffer is of this device, has the size and the usages, and outlives the tensor.
    pub(super) unsafe fn adopt(
        device: &Device,
        raw: u64,
        size: u64,
        shape: Vec<usize>,
        dtype: DType,
    ) -> Result<Tensor> {
        let (own, _) = device.wgpu();
        // SAFETY: nothing is destroyed.
        drop(unsafe { own.as_hal::<Vulkan>() }.ok_or_else(no_vulkan)?);
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let descriptor =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        // SAFETY: as the caller promises.
        let buffer = unsafe {
            let hal =
                Buffer::from_raw_externally_owned(ash::vk::Buffer::from_raw(raw), Box::new(|| ()));
            own.create_buffer_from_hal::<Vulkan>(hal, &descriptor)
        };
        Ok(Tensor::from_buffer(device, buffer, shape, dtype)?)
    }

    pub(super) fn release(tensor: Tensor) -> Result<()> {
        let device = tensor.device().clone();
        drop(tensor.into_buffer()?);
        Ok(device.synchronize()?)
    }
}

#[cfg(target_vendor = "apple")]
mod vulkan {
    use super::*;

    pub(super) fn objects(_: &Device) -> Result<wgrad_vulkan> {
        Err(no_vulkan())
    }

    pub(super) fn buffer(_: &Tensor) -> Result<(u64, u64)> {
        Err(no_vulkan())
    }

    pub(super) unsafe fn adopt(
        _: &Device,
        _: u64,
        _: u64,
        _: Vec<usize>,
        _: DType,
    ) -> Result<Tensor> {
        Err(no_vulkan())
    }

    pub(super) fn release(_: Tensor) -> Result<()> {
        Err(no_vulkan())
    }
}

/// Stores the Vulkan objects of a device. `WGRAD_UNIMPLEMENTED` if it does not run on Vulkan.
///
/// # Safety
/// `objects` is a place for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_vulkan(
    device: *const wgrad_device,
    objects: *mut wgrad_vulkan,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(objects, NONE, "objects") }?;
        place.set(vulkan::objects(&get::<Device>(device, "device")?)?);
        Ok(())
    })
}

/// Stores the `VkBuffer` that holds the tensor's value in row-major order from its start, and the buffer's bytes. Runs what is
/// waiting to compute it; what the program submits to the queue after this call finds the value there. The program must not write
/// a buffer that it has not made itself, and may use it as long as a handle of the tensor is open.
///
/// # Safety
/// `buffer` and `size` are places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_vulkan_buffer(
    tensor: *const wgrad_tensor,
    buffer: *mut u64,
    size: *mut u64,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(buffer, 0, "buffer") }?;
        let bytes = unsafe { Out::new(size, 0, "size") }?;
        let (raw, length) = vulkan::buffer(&get::<Tensor>(tensor, "tensor")?)?;
        place.set(raw);
        bytes.set(length);
        Ok(())
    })
}

/// Makes a tensor over a `VkBuffer` of the program, without a copy. The buffer belongs to the device's `VkDevice`, has memory and the
/// usages `STORAGE_BUFFER`, `TRANSFER_SRC` and `TRANSFER_DST`, and holds the elements in row-major order in `size` bytes, a multiple
/// of 16 and at least the tensor's. wgrad only reads it. The program must neither write nor destroy it before
/// `wgrad_tensor_release_vulkan_buffer` has succeeded.
///
/// # Safety
/// As above; `shape` has `rank` sizes, `tensor` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_from_vulkan_buffer(
    device: *const wgrad_device,
    buffer: u64,
    size: u64,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    tensor: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(tensor, "tensor") }?;
        let device = get::<Device>(device, "device")?;
        let shape = unsafe { self::shape(shape, rank) }?;
        let wanted = HostDType::from_number(dtype);
        let found = wanted.tensor_dtype().filter(|found| HostDType::from(*found) == wanted);
        let Some(dtype) = found else {
            return Err(Failure::argument(format!(
                "tensors have no elements of the dtype {wanted}."
            )));
        };
        if buffer == 0 {
            return Err(Failure::argument("buffer is VK_NULL_HANDLE."));
        }
        if size == 0 || !size.is_multiple_of(16) {
            return Err(Failure::argument(format!("size is {size}; it must be a multiple of 16.")));
        }
        place.put(unsafe { vulkan::adopt(&device, buffer, size, shape, dtype) }?)
    })
}

/// Frees the handle of a tensor over a buffer of the program, and waits until the device does not use the buffer any more. If other
/// handles, variables or tapes hold the tensor, the call fails with `WGRAD_DEVICE`, and the handle is freed all the same: the buffer
/// must then live until they are gone and `wgrad_device_synchronize` has succeeded.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_tensor_release_vulkan_buffer(tensor: *mut wgrad_tensor) -> wgrad_status {
    call(|| vulkan::release(take::<Tensor>(tensor, "tensor")?))
}
