//! Errors of the crate as Python's exceptions, and exceptions of callbacks on their way through the crate.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use wgrad::{DeviceFault, Error};

use crate::interpreter::attached;

thread_local! {
    /// Exceptions that a Python function raised inside a call of the crate, with the texts that stand for them there.
    static RAISED: RefCell<Vec<(String, PyErr)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an exception of a Python function while the crate returns the error; [`raise`] finds it again.
pub fn keep(raised: PyErr) -> Error {
    let text = attached(|py| format!("{}: {}", raised.get_type(py), raised.value(py)));
    RAISED.with_borrow_mut(|list| {
        // A call that ignores errors leaves them here.
        if list.len() == 16 {
            list.remove(0);
        }
        list.push((text.clone(), raised));
    });
    Error::Data(text.into())
}

/// The exception for an error of the crate.
pub fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    let kept = RAISED.with_borrow_mut(|list| {
        let at = list.iter().rposition(|(kept, _)| text.contains(kept.as_str()));
        at.map(|at| list.swap_remove(at).1)
    });
    if let Some(raised) = kept {
        return raised;
    }
    let class = match &error {
        Error::Shape(_) | Error::Index(_) | Error::Data(_) | Error::Check(_) => {
            "InvalidArgumentError"
        }
        Error::DType(_) => "InvalidTypeError",
        Error::Gradient(_) | Error::Trace(_) | Error::Checkpoint(_) => "FailedPreconditionError",
        Error::Unavailable(_) => "UnavailableError",
        Error::Device(DeviceFault::OutOfMemory, _) => "ResourceExhaustedError",
        Error::Device(DeviceFault::NoAdapter, _) => "NotFoundError",
        Error::Device(..) => "UnavailableError",
        Error::Io(io) => match io.source.kind() {
            std::io::ErrorKind::NotFound => "NotFoundError",
            std::io::ErrorKind::PermissionDenied => "PermissionDeniedError",
            _ => "UnknownError",
        },
        _ => "InternalError",
    };
    attached(|py| match class_named(py, class) {
        Ok(class) => PyErr::from_type(class, (text,)),
        Err(error) => error,
    })
}

/// A class of `wgrad.errors`.
fn class_named<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let errors = ERRORS.get_or_try_init(py, || py.import("wgrad.errors").map(Bound::unbind))?;
    Ok(errors.bind(py).getattr(name)?.cast_into()?)
}

/// An argument that is wrong before the crate is called.
pub fn invalid(text: impl Into<String>) -> PyErr {
    raise(Error::Data(text.into().into()))
}

/// `?` on results of the crate.
pub trait Raise<T> {
    fn raised(self) -> PyResult<T>;
}

impl<T> Raise<T> for wgrad::Result<T> {
    fn raised(self) -> PyResult<T> {
        self.map_err(raise)
    }
}
