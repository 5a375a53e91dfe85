//! [`wgrad_status`]: what a function returns, and the message of the last error of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use wgrad::{DeviceFault, Error};

/// What a function returns: 0, or why it failed. `wgrad_last_error` has the message. The values never change; later versions may
/// add others.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum wgrad_status {
    /// The call succeeded.
    WGRAD_OK = 0,
    /// An argument is wrong: a null pointer, a text that is not UTF-8, a shape, a dtype, an index, a name of an argument.
    WGRAD_INVALID_ARGUMENT = 1,
    /// There is no such file, op, function or name.
    WGRAD_NOT_FOUND = 2,
    /// The device or its memory limit has no room.
    WGRAD_OUT_OF_MEMORY = 3,
    /// The device is lost. Open another one.
    WGRAD_DEVICE_LOST = 4,
    /// The operating system rejected a file operation.
    WGRAD_IO = 5,
    /// Another process of a distributed training does not answer.
    WGRAD_UNAVAILABLE = 6,
    /// wgrad has nothing for this.
    WGRAD_UNIMPLEMENTED = 7,
    /// A defect in wgrad or in the driver: a panic, or a command that the driver rejected.
    WGRAD_INTERNAL = 8,
    /// The handle is freed, is of another kind, or never was one.
    WGRAD_INVALID_HANDLE = 9,
    /// A tape was used in another thread than the one that opened it.
    WGRAD_WRONG_THREAD = 10,
    /// The call came at the wrong time: a gradient of something that no tape has recorded, a tape that has been used.
    WGRAD_FAILED_PRECONDITION = 11,
    /// A file, JSON or a batch has other contents than expected; a checkpoint does not fit.
    WGRAD_INVALID_DATA = 12,
    /// There is no adapter, one of its limits is exceeded, or tensors of two devices meet.
    WGRAD_DEVICE = 13,
    /// An array for results has too few elements. The number that is needed has been stored.
    WGRAD_TOO_SMALL = 14,
}
use wgrad_status::*;

/// An error on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: wgrad_status,
    pub(crate) text: String,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(status: wgrad_status, text: impl Into<String>) -> Self {
        Failure { status, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Failure::new(WGRAD_INVALID_ARGUMENT, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Shape(_) | Error::DType(_) | Error::Index(_) => WGRAD_INVALID_ARGUMENT,
            Error::Gradient(_) | Error::Trace(_) => WGRAD_FAILED_PRECONDITION,
            Error::Checkpoint(_) | Error::Data(_) | Error::Check(_) => WGRAD_INVALID_DATA,
            Error::Unavailable(_) => WGRAD_UNAVAILABLE,
            Error::Io(io) if io.source.kind() == std::io::ErrorKind::NotFound => WGRAD_NOT_FOUND,
            Error::Io(_) => WGRAD_IO,
            Error::Device(DeviceFault::Lost, _) => WGRAD_DEVICE_LOST,
            Error::Device(DeviceFault::OutOfMemory, _) => WGRAD_OUT_OF_MEMORY,
            Error::Device(DeviceFault::Validation, _) => WGRAD_INTERNAL,
            Error::Device(..) => WGRAD_DEVICE,
            _ => WGRAD_INTERNAL,
        };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Keeps the message for this thread.
pub(crate) fn remember(text: &str) {
    let text = text.replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    // A thread that is ending may have lost its message.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some(text)));
}

/// The message of the last call that failed in this thread, in English; an empty text if there was none. It is valid until the
/// next call that fails in this thread, or until the thread ends. A call that succeeds does not change it.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_last_error() -> *const c_char {
    const NONE: &CStr = c"";
    let text = LAST.try_with(|last| match last.try_borrow() {
        Ok(last) => last.as_ref().map_or(NONE.as_ptr(), |text| text.as_ptr()),
        Err(_) => NONE.as_ptr(),
    });
    text.unwrap_or(NONE.as_ptr())
}

/// The name of a status, such as `WGRAD_NOT_FOUND`, as a static text; `unknown` for other numbers.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_status_name(status: i32) -> *const c_char {
    let name = match status {
        0 => c"WGRAD_OK",
        1 => c"WGRAD_INVALID_ARGUMENT",
        2 => c"WGRAD_NOT_FOUND",
        3 => c"WGRAD_OUT_OF_MEMORY",
        4 => c"WGRAD_DEVICE_LOST",
        5 => c"WGRAD_IO",
        6 => c"WGRAD_UNAVAILABLE",
        7 => c"WGRAD_UNIMPLEMENTED",
        8 => c"WGRAD_INTERNAL",
        9 => c"WGRAD_INVALID_HANDLE",
        10 => c"WGRAD_WRONG_THREAD",
        11 => c"WGRAD_FAILED_PRECONDITION",
        12 => c"WGRAD_INVALID_DATA",
        13 => c"WGRAD_DEVICE",
        14 => c"WGRAD_TOO_SMALL",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// The version of the library, such as `0.1.0`, as a static text.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
