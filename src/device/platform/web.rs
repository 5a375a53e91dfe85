//! WebGPU in a browser: no thread may block, and there are neither files nor environment variables.

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Duration;

use js_sys::{Array, Function, Object, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};

/// Whether a thread may wait for the device.
pub(crate) const MAY_BLOCK: bool = false;
/// Whether files persist between runs of the program.
pub(crate) const HAS_FILES: bool = false;
/// Whether there may be several adapters, including some that lack what WebGPU guarantees.
pub(crate) const SHOWS_ALL_ADAPTERS: bool = false;
/// Whether the device's timestamps are fine enough to time a single kernel: browsers reduce their resolution.
pub(crate) const TIMESTAMPS_ARE_FINE: bool = false;

/// The tuner repeats a short kernel for about this long per measurement: a browser's round trip alone takes about a
/// millisecond.
pub(crate) const TUNER_TURN: Duration = Duration::from_millis(20);
/// The tuner runs a kernel at most this many times per measurement.
pub(crate) const TUNER_RUNS: u32 = 100;

pub(crate) const NO_ADAPTER: &str = "Device: the browser has WebGPU and offers no adapter. Turn on hardware \
acceleration in its settings and bring the graphics driver up to date; Chrome on Linux may need \
--enable-unsafe-webgpu and --enable-features=Vulkan. chrome://gpu or about:support shows what is blocked.";
pub(crate) const TRY_ANOTHER_ADAPTER: &str =
    "Load the page again; if that does not help, restart the browser.";
/// How a program opens another device after a loss.
pub(crate) const OPEN_ANOTHER_DEVICE: &str = "Device.open";

/// There are no environment variables.
pub(crate) fn env_var(_: &str) -> Option<String> {
    None
}

/// Prints a line for the user.
pub(crate) fn say(text: &str) {
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

/// A browser exposes one adapter, and only on request.
pub(crate) async fn adapters(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    let options = wgpu::RequestAdapterOptions::default();
    watch_the_next_request();
    instance.request_adapter(&options).await.into_iter().collect()
}

/// What the most recent adapter reported.
#[derive(Default)]
struct Shown {
    /// Vendor, architecture and any other information that it reports; empty if none.
    name: String,
    /// Whether its devices are opened with subgroups.
    subgroups: bool,
}

thread_local! {
    static SHOWN: RefCell<Shown> = RefCell::default();
}

/// wgpu neither reports an adapter's name nor requests subgroups from a browser (gfx-rs/wgpu#5555). So this intercepts
/// the next call of `requestAdapter` to inspect the adapter, whose `requestDevice` then also requests subgroups if it
/// has them.
fn watch_the_next_request() {
    SHOWN.take();
    let gpu = get(&get(&js_sys::global(), "navigator"), "gpu");
    replace_once(&gpu, "requestAdapter", |request, options| {
        let promise = request(options);
        // wgpu adds its callback later, so this one runs first.
        let seen = Closure::once_into_js(|adapter: JsValue| look_at(&adapter));
        if let Ok(then) = get(&promise, "then").dyn_into::<Function>() {
            let _ = then.call1(&promise, &seen);
        }
        promise
    });
}

fn look_at(adapter: &JsValue) {
    let info = get(adapter, "info");
    let words =
        ["vendor", "architecture", "device", "description"].map(|key| get(&info, key).as_string());
    let words: Vec<String> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    let feature = JsValue::from("subgroups");
    let features = get(adapter, "features");
    let has = get(&features, "has").dyn_into::<Function>();
    let subgroups = has.and_then(|has| has.call1(&features, &feature));
    let subgroups = subgroups.is_ok_and(|has| has.is_truthy());
    SHOWN.set(Shown { name: words.join(" "), subgroups });
    if subgroups {
        replace_once(adapter, "requestDevice", move |request, options| {
            let wanted = get(&options, "requiredFeatures");
            wanted.unchecked_ref::<Array>().push(&feature);
            request(options)
        });
    }
}

/// Makes `f` handle the next call of a method with one argument; `f` receives the method and the argument.
fn replace_once(
    object: &JsValue,
    method: &str,
    f: impl FnOnce(&dyn Fn(JsValue) -> JsValue, JsValue) -> JsValue + 'static,
) {
    let key = JsValue::from(method);
    let Ok(original) = Reflect::get(object, &key).and_then(JsCast::dyn_into::<Function>) else {
        return;
    };
    let (this, name) = (object.clone(), key.clone());
    // Usually the method belongs to the prototype.
    let own = Object::has_own(object.unchecked_ref::<Object>(), &key);
    let replaced = Closure::once_into_js(move |argument: JsValue| {
        let _ = match own {
            true => Reflect::set(&this, &name, &original),
            false => Reflect::delete_property(this.unchecked_ref::<Object>(), &name),
        };
        let call = |argument: JsValue| original.call1(&this, &argument).unwrap_or_default();
        f(&call, argument)
    });
    let _ = Reflect::set(object, &key, &replaced);
}

fn get(object: &JsValue, key: &str) -> JsValue {
    Reflect::get(object, &key.into()).unwrap_or_default()
}

/// What the most recent adapter reports about itself; empty if nothing.
pub(crate) fn adapter_name() -> String {
    SHOWN.with_borrow(|shown| shown.name.clone())
}

/// Whether kernels may use subgroups on the device that was just opened. True at most once per opened device: a device
/// that an application opened itself has none.
pub(crate) fn has_subgroups(_: &wgpu::Device) -> bool {
    SHOWN.with_borrow_mut(|shown| std::mem::take(&mut shown.subgroups))
}

/// The text for a browser: the standard requires an `enable` line that naga does not need.
pub(crate) fn standard(wgsl: &str) -> Cow<'_, str> {
    match wgsl.contains("subgroup") {
        true => format!("enable subgroups;\n{wgsl}").into(),
        false => wgsl.into(),
    }
}

/// Calls `f` for each of `items`, in order: a browser compiles in separate processes, and the call returns before that
/// is done.
pub(crate) fn map_on_threads<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(f).collect()
}

/// The browser reports a loss itself, and nothing polls.
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

/// The page's one thread does not end.
pub(crate) fn keeps_thread_locals(_: impl FnOnce()) -> bool {
    true
}

/// The page's one thread does not end.
pub(crate) fn keeps_what_wgpu_needs() -> bool {
    true
}

/// There is one thread, which drops everything.
pub(crate) trait MayChangeThread {}

impl<T> MayChangeThread for T {}

pub(crate) fn drop_where_whole<T: MayChangeThread>(value: T) {
    drop(value);
}

/// The page ends without waiting for the device.
pub(crate) fn wait_at_thread_end(_: fn()) {}
