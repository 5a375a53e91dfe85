//! Errors in JavaScript: `Error` objects with the message of [`wgrad::Error`] and a name for its kind.

use std::future::Future;

use js_sys::Reflect;
use wasm_bindgen::JsValue;
use wgrad::{DeviceFault, Error};

/// What a call throws.
#[derive(Debug)]
pub struct Thrown(JsValue);

/// The result of a call that may throw.
pub type Result<T, E = Thrown> = std::result::Result<T, E>;

impl From<Error> for Thrown {
    fn from(error: Error) -> Self {
        let (name, fault) = match &error {
            Error::Shape(_) => ("ShapeError", None),
            Error::DType(_) => ("DTypeError", None),
            Error::Index(_) => ("IndexError", None),
            Error::Device(fault, _) => ("DeviceError", Some(fault)),
            Error::Gradient(_) => ("GradientError", None),
            Error::Trace(_) => ("TraceError", None),
            Error::Checkpoint(_) => ("CheckpointError", None),
            Error::Data(_) => ("DataError", None),
            _ => ("Error", None),
        };
        let text = error.to_string();
        // The page has its own messages for its visitors.
        #[cfg(feature = "ops")]
        let text = crate::words::spoken(&text);
        let object = js_sys::Error::new(&text);
        object.set_name(name);
        if let Some(fault) = fault {
            let fault = match fault {
                DeviceFault::NoAdapter => "noAdapter",
                DeviceFault::Lost => "lost",
                DeviceFault::OutOfMemory => "outOfMemory",
                DeviceFault::Limit => "limit",
                DeviceFault::Mismatch => "mismatch",
                _ => "validation",
            };
            // Setting a property of a new object cannot fail.
            let _ = Reflect::set(&object, &"fault".into(), &fault.into());
        }
        Thrown(object.into())
    }
}

impl From<JsValue> for Thrown {
    fn from(value: JsValue) -> Self {
        Thrown(value)
    }
}

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> Self {
        thrown.0
    }
}

/// An error for a call that this API refuses before `wgrad` sees it.
pub(crate) fn bad_type(text: String) -> Thrown {
    Thrown(js_sys::TypeError::new(&text).into())
}

/// A promise of the result of `future`. Boxed, so that the code that polls it is compiled once instead of once per future.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue>> + 'static) -> js_sys::Promise {
    type Boxed = std::pin::Pin<Box<dyn Future<Output = Result<JsValue>>>>;
    fn start(future: Boxed) -> js_sys::Promise {
        #[cfg(feature = "ops")]
        crate::idle::touch();
        wasm_bindgen_futures::future_to_promise(async move {
            let result = future.await;
            #[cfg(feature = "ops")]
            crate::idle::touch();
            Ok(result?)
        })
    }
    start(Box::pin(future))
}
