//! Vulkan, Metal and DX12 on a desktop, a server or a phone: threads may block, and there are files.

#[cfg(unix)]
mod exit_sync;
mod probe;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use probe::Probe;

/// Whether a thread may wait for the device.
pub(crate) const MAY_BLOCK: bool = true;
/// Whether files persist between runs of the program.
pub(crate) const HAS_FILES: bool = true;
/// Whether there may be several adapters, including some that lack what WebGPU guarantees.
pub(crate) const SHOWS_ALL_ADAPTERS: bool = true;
/// Whether the device's timestamps are fine enough to time a single kernel.
pub(crate) const TIMESTAMPS_ARE_FINE: bool = true;

/// The tuner repeats a short kernel for about this long per measurement.
pub(crate) const TUNER_TURN: Duration = Duration::from_millis(2);
/// The tuner runs a kernel at most this many times per measurement.
pub(crate) const TUNER_RUNS: u32 = 10;

pub(crate) const NO_ADAPTER: &str = "Device: no GPU adapter was found. Install a driver: on Debian and Ubuntu \
`sudo apt install mesa-vulkan-drivers` (it has a software adapter too), on Fedora `sudo dnf install \
mesa-vulkan-drivers vulkan-loader`; on macOS Metal is part of the system (10.13 or newer); on Windows \
install the graphics driver of the GPU's vendor (DX12 or Vulkan; WARP is the software adapter). If WGPU_BACKEND, \
VK_ICD_FILENAMES or VK_DRIVER_FILES is set, check that it names what exists.";
pub(crate) const TRY_ANOTHER_ADAPTER: &str = "Try another one with WGRAD_ADAPTER.";
/// How a program opens another device after a loss.
pub(crate) const OPEN_ANOTHER_DEVICE: &str = "Device::new, give it to Device::set_default";

/// An environment variable.
pub(crate) fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Prints a line for the user.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    // If the stream is closed, the line is dropped.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The backends that `WGPU_BACKEND` names.
pub(crate) fn backends() -> wgpu::Backends {
    wgpu::Backends::from_env().unwrap_or(wgpu::Backends::PRIMARY)
}

pub(crate) fn instance_flags() -> wgpu::InstanceFlags {
    wgpu::InstanceFlags::empty().with_env()
}

/// All adapters that this process can see, in the driver's order.
pub(crate) async fn adapters(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    instance.enumerate_adapters(backends()).await
}

/// The name of an adapter that wgpu has no name for; natively wgpu always has one.
pub(crate) fn adapter_name() -> String {
    String::new()
}

/// Whether kernels may use subgroups on the device.
pub(crate) fn has_subgroups(device: &wgpu::Device) -> bool {
    device.features().contains(wgpu::Features::SUBGROUP)
}

/// The text for naga: unchanged.
pub(crate) fn standard(wgsl: &str) -> Cow<'_, str> {
    wgsl.into()
}

/// Calls `f` for each of `items`, on as many threads as there are processors, and returns the results in order.
pub(crate) fn map_on_threads<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // Items differ a lot in cost, so each thread takes the next unclaimed one.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            done.push((at, f(item)));
        }
        done
    };
    let mut results = std::thread::scope(|scope| {
        // This thread works too. If the system provides no other thread, it does all the work.
        let others: Vec<_> = (1..threads.min(items.len()))
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut results = work();
        for thread in others {
            match thread.join() {
                Ok(done) => results.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A thread that polls on behalf of asynchronous readers: natively wgpu runs callbacks only while a thread polls.
pub(crate) struct Poller {
    /// Waits until the device has done all submitted work.
    wait: Arc<dyn Fn() + Send + Sync>,
    thread: Mutex<Option<Polling>>,
}

struct Polling {
    wake: Sender<()>,
    thread: JoinHandle<()>,
}

thread_local! {
    /// Whether this thread is a poller's.
    static POLLS: Cell<bool> = const { Cell::new(false) };
}

impl Poller {
    pub(crate) fn new(wait: impl Fn() + Send + Sync + 'static) -> Self {
        Poller { wait: Arc::new(wait), thread: Mutex::new(None) }
    }

    /// Makes the thread poll until the device has done all submitted work. The first call starts the thread; it ends
    /// when the poller is dropped.
    pub(crate) fn wake(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let polling = thread.get_or_insert_with(|| {
            let (wake, receiver) = channel();
            let wait = self.wait.clone();
            let thread = std::thread::spawn(move || {
                POLLS.set(true);
                while receiver.recv().is_ok() {
                    wait();
                }
            });
            Polling { wake, thread }
        });
        let _ = polling.wake.send(());
    }
}

impl Drop for Poller {
    /// Waits for the thread, which may be the last to hold the device: if it destroyed the device on its own, the program
    /// could end meanwhile, and NVIDIA's driver then crashes or hangs (wgpu's issue 8365).
    fn drop(&mut self) {
        let polling = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A drop in a callback on this thread cannot wait for the thread itself.
        let Some(Polling { wake, thread }) = polling.filter(|_| !POLLS.get()) else { return };
        drop(wake);
        let _ = thread.join();
    }
}

/// Whether this thread may call wgpu and pollster. A thread that ends drops its thread-local values, including those of
/// wgpu and pollster, which panic without them; a panic at that time, in the `Drop` of a program's own thread-local
/// value, would end the process. A thread drops its newest values first: `touch` calls wgpu for the first time, so its
/// values are older than ours, and exist as long as ours does.
pub(crate) fn keeps_thread_locals(touch: impl FnOnce()) -> bool {
    if !TOUCHED.get() {
        TOUCHED.set(true);
        pollster::block_on(std::future::ready(()));
        touch();
    }
    WHOLE.try_with(|_| ()).is_ok()
}

struct Whole;

impl Drop for Whole {
    // Only a type with a `Drop` impl is marked as destroyed at the end of the thread.
    fn drop(&mut self) {}
}

thread_local! {
    static TOUCHED: Cell<bool> = const { Cell::new(false) };
    static WHOLE: Whole = const { Whole };
}

/// Whether this thread may drop wgpu's objects: it still has the thread-local values that wgpu needs for that, or has
/// never called wgpu.
pub(crate) fn keeps_what_wgpu_needs() -> bool {
    !TOUCHED.get() || WHOLE.try_with(|_| ()).is_ok()
}

/// A type whose values another thread may drop.
pub(crate) trait MayChangeThread: Send + 'static {}

impl<T: Send + 'static> MayChangeThread for T {}

/// Drops `value`, which contains wgpu objects; in another thread if this one is ending and has lost what wgpu needs.
pub(crate) fn drop_where_whole<T: MayChangeThread>(value: T) {
    if keeps_what_wgpu_needs() {
        return;
    }
    let value = Arc::new(Mutex::new(Some(value)));
    let there = value.clone();
    let run = move || drop(there.lock().unwrap_or_else(PoisonError::into_inner).take());
    // On Windows an ending thread holds a lock that a new thread waits for.
    let thread = if cfg!(unix) { std::thread::Builder::new().spawn(run).ok() } else { None };
    match thread {
        Some(thread) => drop(thread.join()),
        // The object leaks until the program ends.
        None => std::mem::forget(value),
    }
}

/// Calls `idle`, which blocks until the default device is idle, when this thread ends.
pub(crate) fn wait_at_thread_end(idle: fn()) {
    #[cfg(unix)]
    exit_sync::wait_at_thread_end(idle);
    #[cfg(not(unix))]
    let _ = idle;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pollers_thread_holds_nothing_any_more_when_the_poller_is_gone() {
        let device = Arc::new(());
        let held = device.clone();
        let poller = Poller::new(move || {
            let _ = &held;
            std::thread::sleep(Duration::from_millis(20));
        });
        poller.wake();
        drop(poller);
        assert_eq!(Arc::strong_count(&device), 1);
    }

    #[test]
    fn a_poller_may_be_dropped_by_its_own_thread() {
        let place = Arc::new(Mutex::new(None::<Poller>));
        let (sender, dropped) = channel();
        let own = place.clone();
        let poller = Poller::new(move || {
            drop(own.lock().unwrap().take());
            let _ = sender.send(());
        });
        place.lock().unwrap().insert(poller).wake();
        dropped.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
