//! Errors: few variants, whose messages say what happened and what to do.
//!
//! A message names the op as TensorFlow does, the rule that the call broke, the values that broke it and a remedy. This
//! file knows no tensors: the modules above write their own messages.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call or a device failed. The text is for people to read.
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
    /// Shapes, ranks, axes or sizes do not fit the op.
    #[error("{0}")]
    Shape(Message),
    /// An element type does not fit the op, or the adapter lacks it.
    #[error("{0}")]
    DType(Message),
    /// An index or a range lies outside its tensor.
    #[error("{0}")]
    Index(Message),
    /// The adapter, the device or its memory; [`DeviceFault`] says which.
    #[error("{1}")]
    Device(DeviceFault, Message),
    /// A program asked a tape for something that it did not record.
    #[error("{0}")]
    Gradient(Message),
    /// Saved values do not fit the variables that a program restores.
    #[error("{0}")]
    Checkpoint(Message),
    /// A data file's contents are broken, or are not what the program asked for.
    #[error("{0}")]
    Data(Message),
    /// Values are not what the program says: [`debugging`](crate::debugging).
    #[error("{0}")]
    Check(Message),
    /// The operating system refused a file operation. A browser has no files, so there is no such error.
    #[error(transparent)]
    Io(Arc<IoError>),
}

/// What an [`Error`] says; reads as a `str`.
///
/// It is one pointer wide: every call returns room for an error, most return none, and in a browser's build room is
/// code.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::box_collection)] // A `Box<str>` is two pointers wide.
pub struct Message(Box<String>);

impl Message {
    /// The compiler must not inline this, as there are hundreds of messages.
    #[inline(never)]
    pub(crate) fn of(text: fmt::Arguments<'_>) -> Self {
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
        $crate::error::Message::of(format_args!($($text)*))
    };
}
pub(crate) use message;

/// A file operation that the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct IoError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: std::io::Error,
    /// Both as text. Made with the error, so that a page, which has no files, does not load the words for each.
    text: Message,
}

/// The fault of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceFault {
    /// There is no adapter, or none fits the request.
    NoAdapter,
    /// The device is lost (driver reset, unplugged, destroyed). Make a new one and go on from host values.
    Lost,
    /// The memory limit or the adapter's memory is used up.
    OutOfMemory,
    /// The tensor or kernel is beyond a limit of the adapter.
    Limit,
    /// Tensors of two devices met in one call.
    Mismatch,
    /// The calling thread is ending, in the `Drop` of a thread-local value, and can no longer reach the device.
    Thread,
    /// An application's buffer cannot be used, or cannot be given back: [`TensorExt::from_buffer`] tells what it must be.
    ///
    /// [`TensorExt::from_buffer`]: crate::interop::TensorExt::from_buffer
    Buffer,
    /// The driver or its validation refused a command: a defect in wgrad or in the driver.
    Validation,
}

impl Error {
    /// True if the device is lost and the program must make a new one.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Error::Device(DeviceFault::Lost, _))
    }

    /// True if memory ran out; the device itself goes on working.
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
            | Error::Checkpoint(text)
            | Error::Data(text)
            | Error::Check(text) => *text = words(text),
            Error::Io(_) => {}
        }
        self
    }
}
