//! Pointers as arguments: texts, arrays, and places for results.

use std::ffi::{CStr, CString, c_char};

use serde_json::{Map, Value};
use wgrad::Device;

use crate::border::call;
use crate::device::wgrad_device;
use crate::handles::{Kind, get, get_or_null, put, take};
use crate::status::{Failure, Result, wgrad_status};

/// A text that ends with a zero byte.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    match unsafe { text_or_null(pointer, what) }? {
        Some(text) => Ok(text),
        None => Err(Failure::argument(format!("{what} is null; it must be a text."))),
    }
}

/// As [`text`]; null is `None`.
pub(crate) unsafe fn text_or_null<'a>(
    pointer: *const c_char,
    what: &str,
) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the header requires a text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|error| Failure::argument(format!("{what} is not UTF-8: {error}.")))
}

/// An array of `count` elements.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check::<T>(pointer, count, what)?;
    // SAFETY: the header requires `count` elements there.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// An array of `count` elements to write.
pub(crate) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check::<T>(pointer, count, what)?;
    // SAFETY: the header requires `count` elements there, which nobody else uses during the call.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check<T>(pointer: *const T, count: usize, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is null; it must have {count} elements.")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!(
            "{what} is not aligned to {} bytes.",
            align_of::<T>()
        )));
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    match fits {
        true => Ok(()),
        false => Err(Failure::argument(format!("{what}: no memory has {count} elements."))),
    }
}

/// Sizes: none may be negative.
pub(crate) unsafe fn shape(sizes: *const i64, rank: usize) -> Result<Vec<usize>> {
    const DEEPEST: usize = 64;
    if rank > DEEPEST {
        return Err(Failure::argument(format!("the rank is {rank}; it may be {DEEPEST} at most.")));
    }
    let sizes = unsafe { slice(sizes, rank, "shape") }?;
    let size = |(axis, size): (usize, &i64)| {
        usize::try_from(*size)
            .map_err(|_| Failure::argument(format!("the size of axis {axis} is {size}.")))
    };
    sizes.iter().enumerate().map(size).collect()
}

/// The place for a result. It is set to `empty` first, so that a call that fails stores nothing else.
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) unsafe fn new(pointer: *mut T, empty: T, what: &str) -> Result<Self> {
        if pointer.is_null() {
            return Err(Failure::argument(format!(
                "{what} is null; it must point to the place for the result."
            )));
        }
        if !pointer.is_aligned() {
            return Err(Failure::argument(format!("{what} is not aligned.")));
        }
        // SAFETY: the header requires that a result fits there.
        unsafe { pointer.write(empty) };
        Ok(Out(pointer))
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: as in `new`.
        unsafe { self.0.write(value) };
    }
}

/// The place for a handle.
pub(crate) unsafe fn out<H>(pointer: *mut *mut H, what: &str) -> Result<Out<*mut H>> {
    unsafe { Out::new(pointer, std::ptr::null_mut(), what) }
}

impl<H> Out<*mut H> {
    pub(crate) fn put<K: Kind<Handle = H>>(&self, value: K) -> Result<()> {
        self.set(put(value)?);
        Ok(())
    }
}

impl Out<*mut c_char> {
    /// Stores a text, which `wgrad_string_free` frees.
    pub(crate) fn text(&self, text: &str) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        self.set(text.into_raw());
    }
}

/// Places for the handles of several results, and for their number.
pub(crate) struct Outs<H> {
    handles: *mut *mut H,
    capacity: usize,
    count: Option<Out<usize>>,
}

impl<H> Outs<H> {
    /// `count` may be null.
    pub(crate) unsafe fn new(
        handles: *mut *mut H,
        capacity: usize,
        count: *mut usize,
    ) -> Result<Self> {
        let places = unsafe { slice_mut(handles, capacity, "outputs") }?;
        places.fill(std::ptr::null_mut());
        let count = match count.is_null() {
            true => None,
            false => Some(unsafe { Out::new(count, 0, "count") }?),
        };
        Ok(Outs { handles, capacity, count })
    }

    /// Stores all values, or none if there are too many.
    pub(crate) fn put<K: Kind<Handle = H>>(
        &self,
        values: impl IntoIterator<Item = Option<K>>,
    ) -> Result<()> {
        let values: Vec<Option<K>> = values.into_iter().collect();
        if let Some(count) = &self.count {
            count.set(values.len());
        }
        if values.len() > self.capacity {
            return Err(Failure::new(
                wgrad_status::WGRAD_TOO_SMALL,
                format!(
                    "the call has {} results, and there is room for {}.",
                    values.len(),
                    self.capacity
                ),
            ));
        }
        let mut handles: Vec<*mut H> = Vec::with_capacity(values.len());
        for value in values {
            match value.map_or(Ok(std::ptr::null_mut()), put) {
                Ok(handle) => handles.push(handle),
                Err(failure) => {
                    handles.iter().filter(|handle| !handle.is_null()).for_each(|handle| {
                        // Nobody else knows these handles.
                        let _ = take::<K>(*handle, "result");
                    });
                    return Err(failure);
                }
            }
        }
        for (at, handle) in handles.into_iter().enumerate() {
            // SAFETY: `new` has checked that there are so many places.
            unsafe { self.handles.add(at).write(handle) };
        }
        Ok(())
    }
}

/// The objects of an array of handles.
pub(crate) unsafe fn objects<K: Kind>(
    handles: *const *mut K::Handle,
    count: usize,
    what: &str,
) -> Result<Vec<K>> {
    let handles = unsafe { slice(handles, count, what) }?;
    let one = |(at, handle): (usize, &*mut K::Handle)| get::<K>(*handle, &format!("{what}[{at}]"));
    handles.iter().enumerate().map(one).collect()
}

/// Runs `f` with new tensors on the device; null is the default device.
pub(crate) fn on<R>(device: *const wgrad_device, f: impl FnOnce() -> Result<R>) -> Result<R> {
    match get_or_null::<Device>(device, "device")? {
        Some(device) => device.scope(f),
        None => f(),
    }
}

/// A JSON object; null and an empty text are an empty one.
pub(crate) unsafe fn json_object(pointer: *const c_char, what: &str) -> Result<Map<String, Value>> {
    let text = unsafe { text_or_null(pointer, what) }?.unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::argument(format!("{what} is JSON, but not an object."))),
        Err(error) => Err(Failure::argument(format!("{what} is not valid JSON: {error}."))),
    }
}

/// Frees a text that a function has returned. Null does nothing. Any other text is not allowed.
///
/// # Safety
/// `text` is null or comes from a function of this library that says so, and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_string_free(text: *mut c_char) {
    call(|| {
        if !text.is_null() {
            // SAFETY: as required.
            drop(unsafe { CString::from_raw(text) });
        }
        Ok(())
    });
}
