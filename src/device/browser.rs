//! What wgpu does not tell of a browser's adapter: its name.

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// Vendor, architecture and whatever else the browser tells of the adapter it offers; empty if nothing.
pub(super) async fn adapter_name() -> String {
    let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into()).unwrap_or_default();
    let gpu = get(&get(&js_sys::global(), "navigator"), "gpu");
    let request = get(&gpu, "requestAdapter").dyn_into::<Function>();
    let Ok(promise) = request.and_then(|request| request.call0(&gpu)) else { return String::new() };
    let Ok(promise) = promise.dyn_into::<Promise>() else { return String::new() };
    let adapter = JsFuture::from(promise).await.unwrap_or_default();
    let info = get(&adapter, "info");
    let words =
        ["vendor", "architecture", "device", "description"].map(|key| get(&info, key).as_string());
    let words: Vec<String> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
