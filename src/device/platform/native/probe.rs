//! Checks whether a device still accepts calls. wgpu has no query for this, and silently ignores most calls on a
//! destroyed device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes deliberate small errors with a buffer: a working device reports them, a lost one ignores them.
pub(crate) struct Probe {
    device: wgpu::Device,
    queue: wgpu::Queue,
    buffer: wgpu::Buffer,
    /// The device was lost from the beginning, so there is no buffer.
    dead: bool,
}

impl Probe {
    pub(crate) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let buffer = small_buffer(device);
        let (device, queue) = (device.clone(), queue.clone());
        let mut probe = Probe { device, queue, buffer, dead: false };
        probe.dead = probe.reports(0);
        probe
    }

    /// False once the device does not accept calls. This does not wait, and takes half a microsecond.
    pub(crate) fn answers(&self) -> bool {
        // The deliberate error is a write beyond the buffer's end.
        !self.dead && if may_use_scopes() { self.reports(8) } else { self.maps() }
    }

    /// Whether wgpu accepts a request to map a buffer; a refusal is immediate. This takes ten times as long. The buffer
    /// is a new one: if another thread's poll were mapping a shared one at that moment, wgpu would consider it mapped
    /// and refuse it.
    fn maps(&self) -> bool {
        let refused = Arc::new(AtomicBool::new(false));
        let reported = refused.clone();
        let buffer = small_buffer(&self.device);
        buffer.slice(..).map_async(wgpu::MapMode::Read, move |mapped| {
            if mapped.is_err() {
                reported.store(true, Ordering::Relaxed);
            }
        });
        // This is read before the buffer is dropped, because the drop also calls the callback with an error.
        let maps = !refused.load(Ordering::Relaxed);
        drop(buffer);
        maps
    }

    /// Whether wgpu reports an error for an empty write at offset `at`.
    fn reports(&self, at: u64) -> bool {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        self.queue.write_buffer(&self.buffer, at, &[]);
        pollster::block_on(scope.pop()).is_some()
    }

    /// As wgpu's `poll`, which panics if the driver loses the device meanwhile; this returns an error instead.
    pub(crate) fn poll(&self, how: wgpu::PollType) -> Result<wgpu::PollStatus, String> {
        guarded(|| self.device.poll(how))
    }
}

fn small_buffer(device: &wgpu::Device) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("wgrad probe"),
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Threads that may open error scopes: for each thread that has opened one, wgpu keeps a list until the device is
/// dropped.
const THREADS: usize = 256;

fn may_use_scopes() -> bool {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MAY: bool = SEEN.fetch_add(1, Ordering::Relaxed) < THREADS;
    }
    // A thread that is ending may have lost its thread-local values.
    MAY.try_with(|may| *may).unwrap_or(false)
}

fn guarded(
    poll: impl FnOnce() -> Result<wgpu::PollStatus, wgpu::PollError>,
) -> Result<wgpu::PollStatus, String> {
    // wgpu panics after its core code has returned and released its locks.
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(polled) => polled.map_err(|error| error.to_string()),
        Err(_) => Err("the driver reports an error".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_ask_know_a_dead_device() {
        use crate::device::{DeviceOptions, Gpu};
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let probe = Probe::new(&gpu.device, &gpu.queue);
        for _ in 0..3 {
            assert!(!probe.dead && probe.reports(8) && probe.maps() && probe.answers());
        }
        gpu.device.destroy();
        assert!(!probe.reports(8) && !probe.maps() && !probe.answers());
        assert!(Probe::new(&gpu.device, &gpu.queue).dead);
    }

    #[test]
    fn a_device_that_others_poll_answers() {
        use crate::device::{DeviceOptions, Gpu};
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let probe = Probe::new(&gpu.device, &gpu.queue);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        probe.poll(wgpu::PollType::Poll).unwrap();
                    }
                });
            }
            let answered = (0..2000).filter(|_| probe.maps()).count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(answered, 2000);
        });
        gpu.check().unwrap();
    }

    #[test]
    fn many_threads_come_and_go() {
        let ask = || std::thread::spawn(may_use_scopes).join().unwrap();
        assert_eq!((0..2 * THREADS).filter(|_| ask()).count().max(THREADS), THREADS);
        assert!(!ask());
    }

    #[test]
    fn a_poll_that_panics_is_an_error() {
        let reported = guarded(|| panic!("Error in Device::poll: Parent device is lost"));
        assert_eq!(reported.unwrap_err(), "the driver reports an error");
        assert_eq!(guarded(|| Ok(wgpu::PollStatus::Poll)), Ok(wgpu::PollStatus::Poll));
    }
}
