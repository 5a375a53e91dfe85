//! [`Turn`]: lets a page draw between a browser's elements.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_time::Instant;

/// How long a program may hold the page's thread: half of a frame.
const MOST: Duration = Duration::from_millis(8);

/// When the program last gave way.
#[derive(Debug)]
pub(super) struct Turn(Mutex<Instant>);

impl Default for Turn {
    fn default() -> Self {
        Turn(Mutex::new(Instant::now()))
    }
}

impl Turn {
    /// Waits for the page, if it has waited long enough.
    pub(super) async fn give_way(&self) {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.elapsed() >= MOST {
            // Who cannot wait goes on.
            let _ = one_turn().await;
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }
}

/// A message to oneself comes behind what the page has to do. Browsers stretch timers to 4 ms, and to a second in a tab behind
/// others.
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
