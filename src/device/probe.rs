//! Whether a device still takes calls. wgpu has no question for it, and answers most calls on a device that was
//! destroyed with silence.

#[cfg(not(target_family = "wasm"))]
pub(super) use native::Probe;
#[cfg(target_family = "wasm")]
pub(super) use web::Probe;

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    /// A device, and a buffer that a mistake can be made with: what a living device reports, a dead one passes over.
    pub(in super::super) struct Probe {
        device: wgpu::Device,
        queue: wgpu::Queue,
        buffer: wgpu::Buffer,
        /// Whether the mapping that is being asked for was refused.
        refused: Mutex<Arc<AtomicBool>>,
        /// The device was gone from the beginning, and there is no buffer.
        dead: bool,
    }

    impl Probe {
        pub(in super::super) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
            let buffer = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgrad probe"),
                size: 4,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let (device, queue) = (device.clone(), queue.clone());
            let mut probe = Probe { device, queue, buffer, refused: Mutex::default(), dead: false };
            probe.dead = probe.reports(0);
            probe
        }

        /// False once the device takes no more calls. Waits for nothing, and takes half a microsecond.
        pub(in super::super) fn answers(&self) -> bool {
            // Behind the buffer's end.
            !self.dead && if may_use_scopes() { self.reports(8) } else { self.maps() }
        }

        /// Whether the buffer can be mapped, whose refusal comes back at once, too. Takes ten times as long.
        fn maps(&self) -> bool {
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.store(false, Ordering::Relaxed);
            let told = refused.clone();
            self.buffer.slice(..).map_async(wgpu::MapMode::Read, move |mapped| {
                if mapped.is_err() {
                    told.store(true, Ordering::Relaxed);
                }
            });
            // Looked at before the mapping is called off, which is an error, too.
            let maps = !refused.load(Ordering::Relaxed);
            if maps {
                self.buffer.unmap();
            }
            maps
        }

        /// Whether wgpu has anything against a write of nothing at this place.
        fn reports(&self, at: u64) -> bool {
            let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
            self.queue.write_buffer(&self.buffer, at, &[]);
            pollster::block_on(scope.pop()).is_some()
        }

        /// As wgpu's `poll`, which panics if the driver loses the device meanwhile.
        pub(in super::super) fn poll(
            &self,
            how: wgpu::PollType,
        ) -> Result<wgpu::PollStatus, String> {
            guarded(|| self.device.poll(how))
        }
    }

    /// Threads that may open error scopes: wgpu keeps a list for each thread that ever had one, until the device is gone.
    const THREADS: usize = 256;

    fn may_use_scopes() -> bool {
        static SEEN: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MAY: bool = SEEN.fetch_add(1, Ordering::Relaxed) < THREADS;
        }
        // Of a thread that is ending there may be nothing left.
        MAY.try_with(|may| *may).unwrap_or(false)
    }

    fn guarded(
        poll: impl FnOnce() -> Result<wgpu::PollStatus, wgpu::PollError>,
    ) -> Result<wgpu::PollStatus, String> {
        // wgpu panics when it has returned from its own code, which has let go of its locks by then.
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
        fn many_threads_come_and_go() {
            let ask = || std::thread::spawn(may_use_scopes).join().unwrap();
            assert_eq!((0..2 * THREADS).filter(|_| ask()).count().max(THREADS), THREADS);
            assert!(!ask());
        }

        #[test]
        fn a_poll_that_panics_is_an_error() {
            let told = guarded(|| panic!("Error in Device::poll: Parent device is lost"));
            assert_eq!(told.unwrap_err(), "the driver reports an error");
            assert_eq!(guarded(|| Ok(wgpu::PollStatus::Poll)), Ok(wgpu::PollStatus::Poll));
        }
    }
}

#[cfg(target_family = "wasm")]
mod web {
    /// A browser tells of a loss by itself, and nothing is polled.
    pub(in super::super) struct Probe;

    impl Probe {
        pub(in super::super) fn new(_: &wgpu::Device, _: &wgpu::Queue) -> Self {
            Probe
        }

        pub(in super::super) fn answers(&self) -> bool {
            true
        }

        pub(in super::super) fn poll(&self, _: wgpu::PollType) -> Result<wgpu::PollStatus, String> {
            Ok(wgpu::PollStatus::Poll)
        }
    }
}
