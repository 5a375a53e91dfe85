//! DLPack: arrays on the host that other libraries have made, and tensors as such arrays. The structs are those of `dlpack.h` 1.0.
//!
//! Devices of wgrad have memory of their own, so both directions copy once.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;

use wgrad::{HostArray, HostDType, Tensor};

use crate::arguments::{on, out, shape, slice};
use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::get;
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::{of_host, wgrad_tensor};

/// Memory that the host can read: `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`.
const ON_HOST: [i32; 3] = [1, 3, 11];
const CPU: i32 = 1;
/// The alignment that the specification requires.
const ALIGNMENT: usize = 256;
/// The version whose structs these are; another major version has others.
const VERSION: Version = Version { major: 1, minor: 0 };

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
#[derive(Debug)]
struct Array {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, the struct before version 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    array: Array,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    version: Version,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    array: Array,
}

/// The code and the bits of each dtype; the code of Booleans is 6.
const DTYPES: &[(u8, u8, HostDType)] = &[
    (0, 8, HostDType::I8),
    (0, 16, HostDType::I16),
    (0, 32, HostDType::I32),
    (0, 64, HostDType::I64),
    (1, 8, HostDType::U8),
    (1, 16, HostDType::U16),
    (1, 32, HostDType::U32),
    (1, 64, HostDType::U64),
    (2, 16, HostDType::F16),
    (2, 32, HostDType::F32),
    (2, 64, HostDType::F64),
    (4, 16, HostDType::Bf16),
    (6, 8, HostDType::Bool),
];

impl Array {
    fn dtype(&self) -> Result<HostDType> {
        let DataType { code, bits, lanes } = self.dtype;
        let found = DTYPES.iter().find(|(known, size, _)| (*known, *size) == (code, bits));
        match (found, lanes) {
            (Some((_, _, dtype)), 1) => Ok(*dtype),
            _ => Err(Failure::argument(format!(
                "the DLPack array has the dtype with code {code}, {bits} bits and {lanes} lanes, which tensors do not have."
            ))),
        }
    }

    /// A tensor with a copy of the elements.
    unsafe fn tensor(&self) -> Result<Tensor> {
        if !ON_HOST.contains(&self.device.kind) {
            return Err(Failure::new(
                wgrad_status::WGRAD_UNIMPLEMENTED,
                format!(
                    "the DLPack array is on a device of kind {}, and wgrad reads arrays on the host. Copy it there first.",
                    self.device.kind
                ),
            ));
        }
        let dtype = self.dtype()?;
        let rank = usize::try_from(self.rank).map_err(|_| {
            Failure::argument(format!("the DLPack array has the rank {}.", self.rank))
        })?;
        let shape = unsafe { shape(self.shape, rank) }?;
        let size = dtype.size().unwrap_or(1);
        let count = shape.iter().try_fold(size, |bytes, size| bytes.checked_mul(*size));
        let bytes = count.filter(|bytes| *bytes <= isize::MAX as usize);
        let Some(bytes) = bytes else {
            return Err(Failure::argument(format!(
                "no memory has a DLPack array of shape {shape:?}."
            )));
        };
        if bytes == 0 {
            return of_host(dtype, shape, &[]);
        }
        if self.data.is_null() {
            return Err(Failure::argument("the DLPack array has elements, but its data is null."));
        }
        let offset = usize::try_from(self.byte_offset)
            .map_err(|_| Failure::argument("the byte_offset of the DLPack array is too large."))?;
        // SAFETY: the producer vouches for its own array.
        let start = unsafe { self.data.cast::<u8>().add(offset) };
        match unsafe { self.strides(rank) }? {
            Some(strides) if !row_major(&shape, strides) => {
                let mut packed = Vec::new();
                packed.try_reserve_exact(bytes).map_err(|_| {
                    Failure::new(
                        wgrad_status::WGRAD_OUT_OF_MEMORY,
                        format!("there is no memory for {bytes} bytes of the DLPack array."),
                    )
                })?;
                unsafe { pack(start, &shape, strides, size, &mut packed) };
                of_host(dtype, shape, &packed)
            }
            // SAFETY: as above.
            _ => of_host(dtype, shape, unsafe { std::slice::from_raw_parts(start, bytes) }),
        }
    }

    unsafe fn strides(&self, rank: usize) -> Result<Option<&[i64]>> {
        match self.strides.is_null() {
            true => Ok(None),
            false => unsafe { slice(self.strides.cast_const(), rank, "strides") }.map(Some),
        }
    }
}

/// Whether elements of these strides lie without gaps. The stride of an axis of size 1 does not matter.
fn row_major(shape: &[usize], strides: &[i64]) -> bool {
    let mut wanted = 1;
    for (size, stride) in shape.iter().zip(strides).rev() {
        if *size != 1 && *stride != wanted {
            return false;
        }
        wanted *= *size as i64;
    }
    true
}

/// Appends the elements in row-major order.
unsafe fn pack(
    start: *const u8,
    shape: &[usize],
    strides: &[i64],
    size: usize,
    packed: &mut Vec<u8>,
) {
    let Some((axis, rest)) = shape.split_first() else {
        // SAFETY: the producer vouches for its own array.
        packed.extend_from_slice(unsafe { std::slice::from_raw_parts(start, size) });
        return;
    };
    for at in 0..*axis {
        let step = strides[0].wrapping_mul(at as i64).wrapping_mul(size as i64);
        let start = start.wrapping_offset(step as isize);
        unsafe { pack(start, rest, &strides[1..], size, packed) };
    }
}

/// Makes a tensor with a copy of a `DLManagedTensorVersioned` on the host, with any strides. On success, its deleter has been called;
/// after an error, the array stays the caller's.
///
/// # Safety
/// `array` is null or a valid array, `tensor` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_from_dlpack(
    device: *const wgrad_device,
    array: *mut DLManagedTensorVersioned,
    tensor: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(tensor, "tensor") }?;
        let managed = unsafe { slice(array, usize::from(!array.is_null()), "array") }?;
        let [managed] = managed else { return Err(Failure::argument("array is null.")) };
        // All versions begin with their number.
        if managed.version.major != VERSION.major {
            return Err(Failure::new(
                wgrad_status::WGRAD_UNIMPLEMENTED,
                format!(
                    "the DLPack array has version {}.{}; {}.x can be read.",
                    managed.version.major, managed.version.minor, VERSION.major
                ),
            ));
        }
        place.put(on(device, || unsafe { managed.array.tensor() })?)?;
        if let Some(deleter) = managed.deleter {
            // SAFETY: the producer's, called once.
            unsafe { deleter(array) };
        }
        Ok(())
    })
}

/// As `wgrad_tensor_from_dlpack`, for a `DLManagedTensor`, the struct before version 1.0.
///
/// # Safety
/// `array` is null or a valid array, `tensor` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_from_dlpack_unversioned(
    device: *const wgrad_device,
    array: *mut DLManagedTensor,
    tensor: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(tensor, "tensor") }?;
        let managed = unsafe { slice(array, usize::from(!array.is_null()), "array") }?;
        let [managed] = managed else { return Err(Failure::argument("array is null.")) };
        place.put(on(device, || unsafe { managed.array.tensor() })?)?;
        if let Some(deleter) = managed.deleter {
            // SAFETY: the producer's, called once.
            unsafe { deleter(array) };
        }
        Ok(())
    })
}

/// What an exported array owns.
struct Owned {
    data: *mut u8,
    layout: Layout,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `export` has allocated it with this layout.
        unsafe { dealloc(self.data, self.layout) };
    }
}

unsafe extern "C" fn delete(array: *mut DLManagedTensorVersioned) {
    call(|| {
        if !array.is_null() {
            // SAFETY: `export` has made both boxes, and a deleter is called once.
            let managed = unsafe { Box::from_raw(array) };
            drop(unsafe { Box::from_raw(managed.manager.cast::<Owned>()) });
        }
        Ok(())
    });
}

fn export(tensor: &Tensor) -> Result<*mut DLManagedTensorVersioned> {
    let host = HostArray::from_tensor(tensor)?;
    let dtype = host.dtype();
    let Some((code, bits, _)) = DTYPES.iter().find(|(_, _, known)| *known == dtype) else {
        return Err(Failure::argument(format!("DLPack has no dtype {dtype}.")));
    };
    let bytes = host.bytes();
    let layout = Layout::from_size_align(bytes.len().max(1), ALIGNMENT)
        .map_err(|error| Failure::argument(error.to_string()))?;
    // SAFETY: the size is not 0.
    let data = unsafe { alloc(layout) };
    if data.is_null() {
        return Err(Failure::new(
            wgrad_status::WGRAD_OUT_OF_MEMORY,
            format!("there is no memory for {} bytes.", bytes.len()),
        ));
    }
    // SAFETY: both have so many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    let shape: Vec<i64> = host.shape().iter().map(|size| *size as i64).collect();
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut owned = Box::new(Owned { data, layout, shape, strides });
    let array = Array {
        data: owned.data.cast(),
        device: Device { kind: CPU, id: 0 },
        rank: owned.shape.len() as i32,
        dtype: DataType { code: *code, bits: *bits, lanes: 1 },
        shape: owned.shape.as_mut_ptr(),
        strides: owned.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok(Box::into_raw(Box::new(DLManagedTensorVersioned {
        version: VERSION,
        manager: Box::into_raw(owned).cast(),
        deleter: Some(delete),
        flags: 0,
        array,
    })))
}

/// Reads the tensor into a new `DLManagedTensorVersioned` on the host. Its deleter frees it, in any thread.
///
/// # Safety
/// `array` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tensor_to_dlpack(
    tensor: *const wgrad_tensor,
    array: *mut *mut DLManagedTensorVersioned,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(array, "array") }?;
        place.set(export(&get::<Tensor>(tensor, "tensor")?)?);
        Ok(())
    })
}
