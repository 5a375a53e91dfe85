//! [`Turn`]: lets a page draw between the elements of a dataset in a browser.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_time::Instant;

/// How long a program may occupy the page's thread: half a frame.
const MOST: Duration = Duration::from_millis(8);

/// When the program last yielded.
#[derive(Debug)]
pub(super) struct Turn(Mutex<Instant>);

impl Default for Turn {
    fn default() -> Self {
        Turn(Mutex::new(Instant::now()))
    }
}

impl Turn {
    /// Yields to the page if enough time has passed.
    pub(super) async fn give_way(&self) {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.elapsed() >= MOST {
            // A caller that cannot wait continues.
            let _ = one_turn().await;
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }
}

/// A message to itself arrives after the page's pending work. Browsers extend timers to 4 ms, and to a second in a background
/// tab.
async fn one_turn() -> Result<(), JsValue> {
    let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into());
    let function =
        |object: &JsValue, key: &str| -> Result<Function, JsValue> { get(object, key)?.dyn_into() };
    let channel =
        Reflect::construct(&function(&js_sys::global(), "MessageChannel")?, &Array::new())?;
    let (here, there) = (get(&channel, "port1")?, get(&channel, "port2")?);
    let came = Promise::new(&mut |resolve, _| {
        let _ = Reflect::set(&here, &"onmessage".into(), &resolve);
    });
    function(&there, "postMessage")?.call1(&there, &JsValue::NULL)?;
    JsFuture::from(came).await?;
    function(&here, "close")?.call0(&here).map(drop)
}
