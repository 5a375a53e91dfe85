//! Devices.

use std::ffi::c_char;
use std::time::Duration;

use wgrad::{Device, DeviceOptions};

use crate::arguments::{Out, out, text_or_null};
use crate::border::call;
use crate::handles::{free, get};
use crate::status::wgrad_status;

/// A GPU, or the CPU through a software driver.
#[derive(Debug)]
pub struct wgrad_device {
    _private: (),
}

/// Opens an adapter: the one whose name contains `adapter`, or with this index; null opens the fastest. A `memory_limit` of 0 is
/// none; otherwise calls that need more bytes for tensors fail with `WGRAD_OUT_OF_MEMORY`.
///
/// # Safety
/// `adapter` is null or a text, `device` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_open(
    adapter: *const c_char,
    memory_limit: u64,
    device: *mut *mut wgrad_device,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(device, "device") }?;
        let mut options = DeviceOptions::new();
        if let Some(adapter) = unsafe { text_or_null(adapter, "adapter") }? {
            options = options.adapter(adapter);
        }
        if memory_limit > 0 {
            options = options.memory_limit(memory_limit);
        }
        place.put(Device::open(&options)?)
    })
}

/// The default device, where tensors are made if a call names no other. Opens it if there is none yet.
///
/// # Safety
/// `device` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_default(device: *mut *mut wgrad_device) -> wgrad_status {
    call(|| unsafe { out(device, "device") }?.put(Device::current()?))
}

/// Makes `device` the default device of all threads.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_device_set_default(device: *const wgrad_device) -> wgrad_status {
    call(|| {
        Device::set_default(&get::<Device>(device, "device")?);
        Ok(())
    })
}

/// Stores the name of the device's adapter; free it with `wgrad_string_free`.
///
/// # Safety
/// `name` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_name(
    device: *const wgrad_device,
    name: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(name, "name") }?;
        place.text(&get::<Device>(device, "device")?.adapter().to_string());
        Ok(())
    })
}

/// Stores the adapters that `wgrad_device_open` can open, one on each line in the order of their indices; free the text with
/// `wgrad_string_free`.
///
/// # Safety
/// `names` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_adapters(names: *mut *mut c_char) -> wgrad_status {
    call(|| {
        let place = unsafe { out(names, "names") }?;
        let names: Vec<String> = Device::adapters().iter().map(ToString::to_string).collect();
        place.text(&names.join("\n"));
        Ok(())
    })
}

/// Stores the bytes of the device's tensors now, and the most that there were. Either place may be null.
///
/// # Safety
/// `current` and `peak` are null or places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_memory(
    device: *const wgrad_device,
    current: *mut u64,
    peak: *mut u64,
) -> wgrad_status {
    call(|| {
        let info = get::<Device>(device, "device")?.memory_info();
        for (place, bytes) in [(current, info.current), (peak, info.peak)] {
            if !place.is_null() {
                unsafe { Out::new(place, 0, "place") }?.set(bytes);
            }
        }
        Ok(())
    })
}

/// Sends the waiting ops to the device and does not wait for them.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_device_flush(device: *const wgrad_device) -> wgrad_status {
    call(|| Ok(get::<Device>(device, "device")?.flush()?))
}

/// Sends waiting ops to the device, as many kernels as it computes in about `nanoseconds`, and holds the others until the next call.
/// Stores 1 once everything is sent, and 0 before. An application that draws with the same device calls this once a frame, and begins
/// the next step when it stores 1. Reading a value, `wgrad_device_flush` and `wgrad_device_synchronize` send everything at once;
/// with `UINT64_MAX`, this does too, and later work is sent as if this had never been called.
///
/// # Safety
/// `done` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_device_run_for(
    device: *const wgrad_device,
    nanoseconds: u64,
    done: *mut i32,
) -> wgrad_status {
    call(|| {
        let place = unsafe { Out::new(done, 0, "done") }?;
        let budget = match nanoseconds {
            u64::MAX => Duration::MAX,
            nanoseconds => Duration::from_nanos(nanoseconds),
        };
        place.set(get::<Device>(device, "device")?.run_for(budget)?.into());
        Ok(())
    })
}

/// Runs the waiting ops, and waits until the device has finished.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_device_synchronize(device: *const wgrad_device) -> wgrad_status {
    call(|| Ok(get::<Device>(device, "device")?.synchronize()?))
}

/// Destroys the device and frees its memory at once. Later calls with its tensors fail with `WGRAD_DEVICE_LOST`. The handle must
/// still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_device_destroy(device: *const wgrad_device) -> wgrad_status {
    call(|| {
        get::<Device>(device, "device")?.destroy();
        Ok(())
    })
}

/// Frees the handle. The device is closed when its tensors, variables and models are freed, too; the default device stays open.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_device_free(device: *mut wgrad_device) -> wgrad_status {
    free::<Device>(device)
}
