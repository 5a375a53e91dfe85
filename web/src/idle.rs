//! Memory that a page holds and does not need: the garbage collector sees small objects where there are large buffers, and
//! the pool of a device keeps what was freed for the next step. So the collector is asked where tensors pile up, and the
//! pools are emptied once the page has called nothing for a while.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Function, Reflect};
use wasm_bindgen::prelude::*;

/// What tensors may pile up to, beyond what the last collection left, before the collector is asked.
const PILE: usize = 32 << 20;
/// The same once the page is idle.
const IDLE_PILE: usize = 1 << 20;
/// A buffer of this size, let go at once, makes the collectors of Chromium, Firefox and Safari run: they count the memory
/// behind their objects. It is never written, so that it takes none.
const ASKING: u32 = 64 << 20;
/// Milliseconds between two looks at whether the page is idle.
const LOOK: f64 = 1000.0;
/// How often the collector is asked before what is held counts as needed: it may be amid a collection that began too early.
const ASKS: u32 = 4;
/// A pool may keep so much.
const SPARE: u64 = 4 << 20;

thread_local! {
    /// Bytes of the tensors that JavaScript holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// What they were when the collector was asked last; less once it has collected.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    /// What they were when asking was given up on an idle page: the program holds them.
    static NEEDED: Cell<usize> = const { Cell::new(0) };
    /// How often the collector was asked on this idle page.
    static TRIES: Cell<u32> = const { Cell::new(0) };
    /// When the collector was asked last.
    static ASKED: Cell<f64> = const { Cell::new(f64::NEG_INFINITY) };
    /// The devices that were used since the page was idle, and how much each had done at the last look.
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
        // A page that is being closed may have lost the counts.
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(self.bytes)));
        let left = HELD.try_with(Cell::get).unwrap_or(0);
        for kept in [&LEFT, &NEEDED] {
            let _ = kept.try_with(|before| before.set(before.get().min(left)));
        }
        used(self.tensor.device());
    }
}

/// Notes that a device is used.
fn used(device: &wgrad::Device) {
    let _ = USED.try_with(|used| {
        let mut used = used.borrow_mut();
        if !used.iter().any(|(known, _)| known == device) {
            used.push((device.clone(), u64::MAX));
        }
    });
    wait();
}

/// Notes a call that waits for the device.
pub(crate) fn touch() {
    if let Ok(device) = wgrad::Device::current() {
        used(&device);
    }
}

/// Looks again in a while.
fn wait() {
    if WAITING.replace(true) {
        return;
    }
    let set = Reflect::get(&js_sys::global(), &"setTimeout".into()).ok();
    let set = set.and_then(|set| set.dyn_into::<Function>().ok());
    // A worklet has no timers; nothing is given back there by itself.
    let Some(set) = set else { return };
    LOOKING.with(|look| {
        let _ = set.call2(&JsValue::UNDEFINED, look.as_ref(), &LOOK.into());
    });
}

/// Asks the collector to run, not more than a few times a second.
fn ask(held: usize) {
    let now = js_sys::Date::now();
    if now - ASKED.get() < 250.0 {
        return;
    }
    ASKED.set(now);
    LEFT.set(held);
    // Collectors that have run lately want more. A page that is out of memory has none for this, either.
    let size = f64::from(ASKING) * f64::from(1 + TRIES.get());
    let buffer = Reflect::get(&js_sys::global(), &"ArrayBuffer".into()).ok();
    if let Some(buffer) = buffer.and_then(|buffer| buffer.dyn_into::<Function>().ok()) {
        let _ = Reflect::construct(&buffer, &Array::of1(&size.into()));
    }
}

/// Gives back what nobody needs if nothing was done since the last look.
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
                // A device that is lost has nothing to give back.
                let _ = device.trim();
            }
        }
    });
    let held = HELD.get();
    if held > NEEDED.get() + IDLE_PILE {
        if TRIES.replace(TRIES.get() + 1) < ASKS {
            // What is collected comes back here.
            ask(held);
            return wait();
        }
        NEEDED.set(held);
    }
    TRIES.set(0);
    drop(USED.take());
}
