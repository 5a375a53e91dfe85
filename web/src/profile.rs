//! [`Profiler`]: the time of every kernel.

use std::cell::RefCell;

use js_sys::{Array, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::{DeviceFault, Error};

use crate::device::object;
use crate::error::promise;

/// A recording started by `Device.profile`.
#[wasm_bindgen]
pub struct Profiler(pub(crate) RefCell<Option<wgrad::Profiler>>);

impl Profiler {
    pub(crate) fn new(profiler: wgrad::Profiler) -> Self {
        Profiler(RefCell::new(Some(profiler)))
    }
}

#[wasm_bindgen]
impl Profiler {
    /// Ends the recording, waits for the device and returns what was recorded.
    #[wasm_bindgen(unchecked_return_type = "Promise<Profile>")]
    pub fn finish(&self) -> Promise {
        let profiler = self.0.borrow_mut().take();
        promise(async move {
            let Some(profiler) = profiler else {
                let text =
                    "Profiler: this recording has ended. Begin another one with Device.profile.";
                return Err(Error::Device(DeviceFault::Limit, text.into()).into());
            };
            let profile = profiler.finish_async().await?;
            let kernel = |kernel: &wgrad::ProfiledKernel| {
                let described = object([
                    ("label", kernel.label.as_str().into()),
                    ("start", (kernel.start.as_secs_f64() * 1e6).into()),
                    ("duration", (kernel.duration.as_secs_f64() * 1e6).into()),
                    ("bytes", (kernel.bytes as f64).into()),
                ]);
                if let Some(flops) = kernel.flops {
                    let _ = Reflect::set(&described, &"flops".into(), &(flops as f64).into());
                }
                JsValue::from(described)
            };
            let kernels: Array = profile.kernels().iter().map(kernel).collect();
            let result = object([("kernels", kernels.into())]);
            #[cfg(feature = "ops")]
            describe(&profile, &result)?;
            Ok(result.into())
        })
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Profiler {
    /// Ends the recording without a result.
    pub fn cancel(&self) {
        self.0.borrow_mut().take();
    }
}

/// Adds to a profile a table of the kernels and a trace for browsers' timeline viewers.
#[cfg(feature = "ops")]
fn describe(profile: &wgrad::Profile, object: &js_sys::Object) -> crate::error::Result<()> {
    Reflect::set(object, &"text".into(), &profile.to_string().into())?;
    Reflect::set(object, &"trace".into(), &profile.chrome_trace().into())?;
    Ok(())
}
