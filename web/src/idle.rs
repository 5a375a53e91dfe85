//! Releases memory that a page holds and does not need. The garbage collector sees small objects instead of large buffers, and
//! a device's pool retains freed buffers for the next step. So this module makes the collector run when many tensors
//! accumulate, and empties the pools once the page has been idle for a while.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Function, Reflect};
use wasm_bindgen::prelude::*;

/// The bytes that tensors may add to what the last collection left before the collector is triggered.
const PILE: usize = 32 << 20;
/// The same once the page is idle.
const IDLE_PILE: usize = 1 << 20;
/// Allocating and dropping a buffer of this size makes the collectors of Chromium, Firefox and Safari run: they count the
/// memory behind their objects. It is never written, so it occupies no memory.
const ASKING: u32 = 64 << 20;
/// Milliseconds between two checks whether the page is idle.
const LOOK: f64 = 1000.0;
/// How often to trigger the collector before the remaining tensors count as needed: a collection may already have been under
/// way.
const ASKS: u32 = 4;
/// The bytes that a pool may retain.
const SPARE: u64 = 4 << 20;

thread_local! {
    /// Bytes of the tensors that JavaScript objects hold.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// `HELD` when the collector was last triggered; lowered as tensors are freed.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    /// `HELD` when triggering was given up on an idle page: the program holds these.
    static NEEDED: Cell<usize> = const { Cell::new(0) };
    /// How often the collector was triggered on this idle page.
    static TRIES: Cell<u32> = const { Cell::new(0) };
    /// When the collector was last triggered.
    static ASKED: Cell<f64> = const { Cell::new(f64::NEG_INFINITY) };
    /// The devices used since the page was last idle, and how much each had done at the last check.
    static USED: RefCell<Vec<(wgrad::Device, u64)>> = const { RefCell::new(Vec::new()) };
    static WAITING: Cell<bool> = const { Cell::new(false) };
    static LOOKING: Closure<dyn FnMut()> = Closure::new(look);
}

/// A tensor that JavaScript holds.
pub(crate) struct Held {
    pub(crate) tensor: wgrad::Tensor,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(tensor: wgrad::Tensor) -> Self {
        let bytes = tensor.len() * tensor.dtype().size();
        let held = HELD.get() + bytes;
        HELD.set(held);
        if held > LEFT.get() + LEFT.get() / 2 + PILE {
            ask(held);
        }
        used(tensor.device());
        Held { tensor, bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The thread locals may be gone while a page is being closed.
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(self.bytes)));
        let left = HELD.try_with(Cell::get).unwrap_or(0);
        for kept in [&LEFT, &NEEDED] {
            let _ = kept.try_with(|before| before.set(before.get().min(left)));
        }
        used(self.tensor.device());
    }
}

/// Records that a device is used.
fn used(device: &wgrad::Device) {
    let _ = USED.try_with(|used| {
        let mut used = used.borrow_mut();
        if !used.iter().any(|(known, _)| known == device) {
            used.push((device.clone(), u64::MAX));
        }
    });
    wait();
}

/// Records a call that waits for the device.
pub(crate) fn touch() {
    if let Ok(device) = wgrad::Device::current() {
        used(&device);
    }
}

/// Schedules the next check.
fn wait() {
    if WAITING.replace(true) {
        return;
    }
    let set = Reflect::get(&js_sys::global(), &"setTimeout".into()).ok();
    let set = set.and_then(|set| set.dyn_into::<Function>().ok());
    // A worklet has no timers; there, nothing is released automatically.
    let Some(set) = set else { return };
    LOOKING.with(|look| {
        let _ = set.call2(&JsValue::UNDEFINED, look.as_ref(), &LOOK.into());
    });
}

/// Triggers the collector, at most four times a second.
fn ask(held: usize) {
    let now = js_sys::Date::now();
    if now - ASKED.get() < 250.0 {
        return;
    }
    ASKED.set(now);
    LEFT.set(held);
    // Collectors that have run lately need more. On a page that is out of memory the allocation fails, which does not matter.
    let size = f64::from(ASKING) * f64::from(1 + TRIES.get());
    let buffer = Reflect::get(&js_sys::global(), &"ArrayBuffer".into()).ok();
    if let Some(buffer) = buffer.and_then(|buffer| buffer.dyn_into::<Function>().ok()) {
        let _ = Reflect::construct(&buffer, &Array::of1(&size.into()));
    }
}

/// Releases unused memory if nothing was done since the last check.
fn look() {
    WAITING.set(false);
    let mut busy = false;
    USED.with_borrow_mut(|used| {
        for (device, before) in used.iter_mut() {
            let stats = device.stats();
            let done = stats.nodes + stats.submits + stats.reads;
            busy |= done != *before;
            *before = done;
        }
    });
    if busy {
        TRIES.set(0);
        return wait();
    }
    USED.with_borrow(|used| {
        for (device, _) in used {
            if device.stats().pooled_bytes > SPARE {
                // A lost device has nothing to release.
                let _ = device.trim();
            }
        }
    });
    let held = HELD.get();
    if held > NEEDED.get() + IDLE_PILE {
        if TRIES.replace(TRIES.get() + 1) < ASKS {
            // Collecting drops tensors, and each drop schedules the next check.
            ask(held);
            return wait();
        }
        NEEDED.set(held);
    }
    TRIES.set(0);
    drop(USED.take());
}
