//! WebGPU in a browser: no thread may block, and there are neither files nor environment variables.

use std::time::Duration;

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// Whether a thread may wait for the device.
pub(crate) const MAY_BLOCK: bool = false;
/// Whether the program keeps files from one run to the next.
pub(crate) const HAS_FILES: bool = false;
/// Whether there may be several adapters, and some that lack what WebGPU guarantees.
pub(crate) const SHOWS_ALL_ADAPTERS: bool = false;
/// Whether the device's timestamps are fine enough to time a single kernel: browsers make them coarse.
pub(crate) const TIMESTAMPS_ARE_FINE: bool = false;

/// The tuner runs a short kernel several times in a turn, for about this long: a browser takes about a millisecond to
/// answer alone.
pub(crate) const TUNER_TURN: Duration = Duration::from_millis(20);
/// The tuner runs a kernel at most this often in a turn.
pub(crate) const TUNER_RUNS: u32 = 100;

pub(crate) const NO_ADAPTER: &str = "Device: the browser has WebGPU and offers no adapter. Turn on hardware acceleration in its \
settings and bring the graphics driver up to date; Chrome on Linux may need --enable-unsafe-webgpu and \
--enable-features=Vulkan. chrome://gpu or about:support tells what is blocked.";
pub(crate) const TRY_ANOTHER_ADAPTER: &str =
    "Load the page again; if that does not help, restart the browser.";
/// How a program opens the device that it goes on with after a loss.
pub(crate) const OPEN_ANOTHER_DEVICE: &str = "Device.open";

/// There are no environment variables.
pub(crate) fn env_var(_: &str) -> Option<String> {
    None
}

/// Writes a line for the person at the program.
pub(crate) fn say(text: &str) {
    let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into()).unwrap_or_default();
    let console = get(&js_sys::global(), "console");
    if let Ok(log) = get(&console, "log").dyn_into::<Function>() {
        let _ = log.call1(&console, &text.into());
    }
}

pub(crate) fn backends() -> wgpu::Backends {
    wgpu::Backends::BROWSER_WEBGPU
}

pub(crate) fn instance_flags() -> wgpu::InstanceFlags {
    wgpu::InstanceFlags::empty()
}

/// A browser shows one adapter, and only to a request.
pub(crate) async fn adapters(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    let options = wgpu::RequestAdapterOptions::default();
    instance.request_adapter(&options).await.into_iter().collect()
}

/// Vendor, architecture and whatever else the browser tells of the adapter it offers; empty if nothing.
pub(crate) async fn adapter_name() -> String {
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

/// Calls `f` for each of `items`, in order: a browser compiles in processes of its own, and the call returns before that
/// is done.
pub(crate) fn map_on_threads<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(f).collect()
}

/// The browser tells of a loss by itself, and nothing polls.
pub(crate) struct Probe;

impl Probe {
    pub(crate) fn new(_: &wgpu::Device, _: &wgpu::Queue) -> Self {
        Probe
    }

    pub(crate) fn answers(&self) -> bool {
        true
    }

    pub(crate) fn poll(&self, _: wgpu::PollType) -> Result<wgpu::PollStatus, String> {
        Ok(wgpu::PollStatus::Poll)
    }
}

/// The browser runs callbacks without being polled.
pub(crate) struct Poller;

impl Poller {
    pub(crate) fn new(_: impl Fn() + 'static) -> Self {
        Poller
    }

    pub(crate) fn wake(&self) {}
}

/// The page ends without waiting for the device.
pub(crate) fn wait_at_thread_end(_: fn()) {}
