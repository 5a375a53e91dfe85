//! Why a text could not be rewritten.

use std::fmt;

/// Why a text could not be rewritten, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// What rewriting returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
