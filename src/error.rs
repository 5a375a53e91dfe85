//! Errors: few variants, whose messages state what happened and what to do.
//!
//! A message names the op as TensorFlow does, the rule that the call broke, the values that broke it and a remedy. This
//! file does not depend on tensors: the modules above write their own messages.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call or a device failed. The text is meant for people.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Error, Tensor};
/// let a = Tensor::zeros([2, 3])?;
/// let b = Tensor::zeros([4, 5])?;
/// let error = a.matmul(&b).unwrap_err();
/// assert!(matches!(error, Error::Shape(_)));
/// assert!(error.to_string().starts_with("MatMul: a is [2, 3] and b is [4, 5]"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes, ranks, axes or sizes that are incompatible with the op or with each other.
    #[error("{0}")]
    Shape(Message),
    /// A dtype that the op does not support, or that the adapter lacks.
    #[error("{0}")]
    DType(Message),
    /// An index or a range outside its tensor.
    #[error("{0}")]
    Index(Message),
    /// A problem with the adapter, the device or its memory; [`DeviceFault`] specifies which.
    #[error("{1}")]
    Device(DeviceFault, Message),
    /// A gradient was requested for something that the tape did not record.
    #[error("{0}")]
    Gradient(Message),
    /// A tensor was read or used where it has no value, because the call that makes it was only traced.
    #[error("{0}")]
    Trace(Message),
    /// Saved values do not fit the variables that are being restored.
    #[error("{0}")]
    Checkpoint(Message),
    /// The contents of a data file are corrupt, or not what was requested.
    #[error("{0}")]
    Data(Message),
    /// An assertion about values failed: see [`debugging`](crate::debugging).
    #[error("{0}")]
    Check(Message),
    /// Another process of a distributed training has ended, does not answer, or makes other calls.
    #[error("{0}")]
    Unavailable(Message),
    /// The operating system rejected a file operation. Does not occur in a browser, which has no files.
    #[error(transparent)]
    Io(Arc<IoError>),
}

/// The text of an [`Error`]; dereferences to `str`.
///
/// It is one pointer wide: every call reserves space for an error, most return none, and the space adds to the code size of
/// browser builds.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::box_collection)] // A `Box<str>` is two pointers wide.
pub struct Message(Box<String>);

impl Message {
    /// The compiler must not inline this, as there are hundreds of messages.
    #[inline(never)]
    pub(crate) fn format(text: fmt::Arguments<'_>) -> Self {
        Message(Box::new(fmt::format(text)))
    }
}

impl std::ops::Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message(Box::new(text))
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::from(text.to_string())
    }
}

impl PartialEq<str> for Message {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Message {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// As `format!`, for an [`Error`].
macro_rules! message {
    ($($text:tt)*) => {
        $crate::error::Message::format(format_args!($($text)*))
    };
}
pub(crate) use message;

/// A file operation that the operating system rejected.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct IoError {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: std::io::Error,
    /// Both as text. Formatted where the error is made, so that a web page, which has no files, does not load these words.
    text: Message,
}

/// The kind of a device error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceFault {
    /// There is no adapter, or none fits the request.
    NoAdapter,
    /// The device is lost (driver reset, unplugged, destroyed). Create a new one and continue from values on the host.
    Lost,
    /// The memory limit is reached or the adapter is out of memory.
    OutOfMemory,
    /// The tensor or kernel exceeds a limit of the adapter.
    Limit,
    /// One call received tensors from two devices.
    Mismatch,
    /// The calling thread is exiting, in the `Drop` of a thread-local value, and can no longer reach the device.
    Thread,
    /// An application's buffer cannot be used, or cannot be returned: [`TensorExt::from_buffer`] lists the requirements.
    ///
    /// [`TensorExt::from_buffer`]: crate::interop::TensorExt::from_buffer
    Buffer,
    /// The driver or its validation rejected a command: a bug in wgrad or in the driver.
    Validation,
}

impl Error {
    /// True if the device is lost and the program must create a new one.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Error::Device(DeviceFault::Lost, _))
    }

    /// True if the device ran out of memory; the device itself continues to work.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Error::Device(DeviceFault::OutOfMemory, _))
    }

    pub(crate) fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        let text = message!("{}: {source}", path.display());
        Error::Io(Arc::new(IoError { path, source, text }))
    }

    /// The same kind of error with another text.
    pub(crate) fn reworded(mut self, words: impl FnOnce(&Message) -> Message) -> Self {
        match &mut self {
            Error::Shape(text)
            | Error::DType(text)
            | Error::Index(text)
            | Error::Device(_, text)
            | Error::Gradient(text)
            | Error::Trace(text)
            | Error::Checkpoint(text)
            | Error::Data(text)
            | Error::Check(text)
            | Error::Unavailable(text) => *text = words(text),
            Error::Io(_) => {}
        }
        self
    }
}
