//! Tensors of host memory, and their values.

use std::ffi::{c_char, c_void};

use wgrad::{Device, HostArray, HostDType, HostOptions, Tensor};

use crate::arguments::{Out, on, out, shape, slice, slice_mut};
use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::{free, get};
use crate::status::{Failure, Result, wgrad_status};

/// A tensor. Its value never changes.
#[derive(Debug)]
pub struct wgrad_tensor {
    _private: (),
}

/// Element types, by TensorFlow's numbers. Tensors have `WGRAD_FLOAT32`, `WGRAD_FLOAT16`, `WGRAD_INT32`, `WGRAD_UINT32`, `WGRAD_UINT8`
/// and `WGRAD_BOOL`; host memory of the others is converted.
#[repr(i32)]
#[derive(Debug, Clone, Copy)]
pub enum wgrad_dtype {
    /// 32 bits.
    WGRAD_FLOAT32 = 1,
    /// On the host only; tensors have the nearest `WGRAD_FLOAT32`.
    WGRAD_FLOAT64 = 2,
    /// 32 bits.
    WGRAD_INT32 = 3,
    /// A byte.
    WGRAD_UINT8 = 4,
    /// On the host only; tensors have `WGRAD_INT32`.
    WGRAD_INT16 = 5,
    /// On the host only; tensors have `WGRAD_INT32`.
    WGRAD_INT8 = 6,
    /// On the host only; tensors have `WGRAD_INT32`, and values that do not fit are an error.
    WGRAD_INT64 = 9,
    /// A byte, 0 or 1.
    WGRAD_BOOL = 10,
    /// On the host only; tensors have `WGRAD_FLOAT32`.
    WGRAD_BFLOAT16 = 14,
    /// On the host only; tensors have `WGRAD_INT32`.
    WGRAD_UINT16 = 17,
    /// 16 bits, where the adapter has them.
    WGRAD_FLOAT16 = 19,
    /// 32 bits.
    WGRAD_UINT32 = 22,
    /// On the host only; tensors have `WGRAD_INT32`, and values that do not fit are an error.
    WGRAD_UINT64 = 23,
}

/// The tensor of an array on the host.
pub(crate) fn of_host(dtype: HostDType, shape: Vec<usize>, bytes: &[u8]) -> Result<Tensor> {
    let array = HostArray::new(dtype, shape, bytes)?;
    let Some(wanted) = dtype.tensor_dtype() else {
        return Err(Failure::argument(format!("tensors have no elements of the dtype {dtype}.")));
    };
    Ok(array.to_tensor_of(wanted, HostOptions::new().rounding(true))?)
}

/// Makes a tensor with a copy of `bytes` bytes at `data`: the elements in row-major order in this machine's byte order. A null
/// `device` is the default device; a `rank` of 0 is a scalar.
///
/// # Safety
/// `shape` has `rank` sizes, `data` has `bytes` bytes, `tensor` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_from_data(
    device: *const wgrad_device,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
    tensor: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(tensor, "tensor") }?;
        let shape = unsafe { self::shape(shape, rank) }?;
        let bytes = unsafe { slice(data.cast::<u8>(), bytes, "data") }?;
        place.put(on(device, || of_host(HostDType::from_number(dtype), shape, bytes))?)
    })
}

/// Stores the dtype, a `wgrad_dtype`.
///
/// # Safety
/// `dtype` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_dtype(
    tensor: *const wgrad_tensor,
    dtype: *mut i32,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(dtype, 0, "dtype") }?;
        place.set(HostDType::from(get::<Tensor>(tensor, "tensor")?.dtype()).number());
        Ok(())
    })
}

/// Stores the sizes of the axes in `shape`, which has room for `capacity`, and their number in `rank`. If there is not enough
/// room, nothing but the number is stored, and the status is `WGRAD_TOO_SMALL`.
///
/// # Safety
/// `shape` has `capacity` places, `rank` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_shape(
    tensor: *const wgrad_tensor,
    shape: *mut i64,
    capacity: usize,
    rank: *mut usize,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(rank, 0, "rank") }?;
        let tensor = get::<Tensor>(tensor, "tensor")?;
        let sizes = tensor.shape();
        place.set(sizes.len());
        if sizes.len() > capacity {
            return Err(Failure::new(
                wgrad_status::WGRAD_TOO_SMALL,
                format!("the tensor has {} axes, and there is room for {capacity}.", sizes.len()),
            ));
        }
        let places = unsafe { slice_mut(shape, sizes.len(), "shape") }?;
        for (place, size) in places.iter_mut().zip(sizes) {
            *place = *size as i64;
        }
        Ok(())
    })
}

/// Stores the bytes that `wgrad_tensor_read` writes: the number of elements times the size of one.
///
/// # Safety
/// `bytes` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_bytes(
    tensor: *const wgrad_tensor,
    bytes: *mut usize,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(bytes, 0, "bytes") }?;
        let tensor = get::<Tensor>(tensor, "tensor")?;
        let size = HostDType::from(tensor.dtype()).size().unwrap_or(0);
        place.set(tensor.len() * size);
        Ok(())
    })
}

/// Runs what is waiting, waits for the value, and copies it to `data`, in row-major order. `bytes` is exactly that of
/// `wgrad_tensor_bytes`.
///
/// # Safety
/// `data` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_read(
    tensor: *const wgrad_tensor,
    data: *mut c_void,
    bytes: usize,
) -> wgrad_status {
    call(|| {
        let tensor = get::<Tensor>(tensor, "tensor")?;
        let size = HostDType::from(tensor.dtype()).size().unwrap_or(0);
        if bytes != tensor.len() * size {
            return Err(Failure::argument(format!(
                "a {} tensor of shape {:?} has {} bytes, and {bytes} were requested.",
                tensor.dtype(),
                tensor.shape(),
                tensor.len() * size
            )));
        }
        let place = unsafe { slice_mut(data.cast::<u8>(), bytes, "data") }?;
        place.copy_from_slice(HostArray::from_tensor(&tensor)?.bytes());
        Ok(())
    })
}

/// Stores the tensor as a text, with its values; free it with `wgrad_string_free`.
///
/// # Safety
/// `text` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_to_string(
    tensor: *const wgrad_tensor,
    text: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(text, "text") }?;
        place.text(&get::<Tensor>(tensor, "tensor")?.to_string());
        Ok(())
    })
}

/// Makes another handle of the same tensor. Nothing is copied.
///
/// # Safety
/// `copy` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_clone(
    tensor: *const wgrad_tensor,
    copy: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| unsafe { out(copy, "copy") }?.put(get::<Tensor>(tensor, "tensor")?))
}

/// Copies the tensor to a device; on its own device, it is a clone.
///
/// # Safety
/// `copy` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_to_device(
    tensor: *const wgrad_tensor,
    device: *const wgrad_device,
    copy: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(copy, "copy") }?;
        let device = get::<Device>(device, "device")?;
        place.put(get::<Tensor>(tensor, "tensor")?.to(&device)?)
    })
}

/// Stores a handle of the tensor's device.
///
/// # Safety
/// `device` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_device(
    tensor: *const wgrad_tensor,
    device: *mut *mut wgrad_device,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(device, "device") }?;
        place.put(get::<Tensor>(tensor, "tensor")?.device().clone())
    })
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_tensor_free(tensor: *mut wgrad_tensor) -> wgrad_status {
    free::<Tensor>(tensor)
}
