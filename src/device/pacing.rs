//! Work that waits for the application to allow it some of the device's time, so that a long step is spread over frames.
//!
//! Held work is a queue: whatever is submitted otherwise goes behind it, so it is sent first, all of it. Only
//! [`Gpu::send_for`] sends a part. How long a kernel takes is measured when it first runs here.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use web_time::{Duration, Instant};

use super::launch::Launch;
use super::pipeline::Pipeline;
use super::stats::Counter;
use super::{Buffer, Gpu, platform};
use crate::error::Result;

#[derive(Default)]
pub(super) struct Pacer {
    /// Whether new work is held.
    on: AtomicBool,
    /// Whether work is held now; every submission looks here.
    holds: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: VecDeque<Item>,
    /// How many of them are kernels.
    kernels: usize,
    /// How many items were ever held, and how many of them were sent.
    pushed: u64,
    popped: u64,
    /// The buffers that held work uses: the value of `pushed` after the work, and the buffers' ids.
    users: VecDeque<(u64, Vec<u64>)>,
    /// Bytes of the uploads among them.
    uploaded: u64,
    times: HashMap<Kind, Measured>,
    /// What submitting nothing and waiting for it takes.
    overhead: Option<Duration>,
    /// The part of its budget that a call leaves unused while the device is behind, in eighths.
    unused: u32,
}

enum Item {
    Kernel(Held),
    Copy { from: wgpu::Buffer, at: u64, to: wgpu::Buffer, to_at: u64, bytes: u64 },
}

/// A [`Launch`] that owns what it names.
struct Held {
    pipeline: Arc<Pipeline>,
    bind_group: wgpu::BindGroup,
    grid: [u32; 3],
    label: Box<str>,
    bytes: u64,
    flops: u64,
}

/// Kernels that should take equally long: the pipeline's address, the grid, and the bytes of the bound storage.
type Kind = (usize, [u32; 3], u64);

/// The shortest of the first times of a kernel: a driver may prepare it when it first runs.
struct Measured {
    shortest: Duration,
    times: u32,
}

/// After this many measurements a kernel's time is known.
const MEASUREMENTS: u32 = 3;
/// More kernels, or more bytes of uploads, are not held: their memory counts, too.
const MOST_KERNELS: usize = 1 << 14;
const MOST_BYTES: u64 = 64 << 20;
/// The table of times begins again at this size.
const MOST_TIMES: usize = 1 << 16;
/// A device that is behind still gets this part of the budget, in eighths.
const LEAST: u32 = 2;

impl Held {
    fn launch(&self) -> Launch<'_> {
        Launch {
            pipeline: &self.pipeline,
            bind_group: &self.bind_group,
            grid: self.grid,
            label: &self.label,
            bytes: self.bytes,
            flops: self.flops,
        }
    }

    fn kind(&self) -> Kind {
        (Arc::as_ptr(&self.pipeline) as usize, self.grid, self.bytes)
    }
}

impl State {
    fn push(&mut self, item: Item) {
        self.kernels += usize::from(matches!(item, Item::Kernel(_)));
        self.pushed += 1;
        self.held.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.held.pop_front()?;
        self.kernels -= usize::from(matches!(item, Item::Kernel(_)));
        self.popped += 1;
        while self.users.front().is_some_and(|(end, _)| *end <= self.popped) {
            self.users.pop_front();
        }
        if self.held.is_empty() {
            self.uploaded = 0;
        }
        Some(item)
    }

    /// What was pushed since the last call uses the buffers with these ids.
    fn used(&mut self, ids: Vec<u64>) {
        self.users.push_back((self.pushed, ids));
    }

    /// The time of the next item, or `None` if it has yet to be measured.
    fn next_time(&self) -> Option<Duration> {
        match self.held.front() {
            Some(Item::Kernel(held)) => {
                let known = self.times.get(&held.kind());
                known.filter(|known| known.times >= MEASUREMENTS).map(|known| known.shortest)
            }
            _ => Some(Duration::ZERO),
        }
    }

    /// Takes the items that are known to fit into `left`, and subtracts their times. `first` is set as long as nothing was
    /// sent: one kernel always fits.
    fn fitting(&mut self, left: &mut Duration, first: &mut bool) -> Vec<Item> {
        let mut fitting = Vec::new();
        while let Some(time) = self.next_time() {
            if time > *left && !*first {
                break;
            }
            let Some(item) = self.pop() else { break };
            *first &= !matches!(item, Item::Kernel(_));
            *left = left.saturating_sub(time);
            fitting.push(item);
        }
        fitting
    }

    fn measured(&mut self, kind: Kind, time: Duration) {
        if self.times.len() >= MOST_TIMES {
            self.times.clear();
        }
        let known = self.times.entry(kind).or_insert(Measured { shortest: time, times: 0 });
        known.shortest = known.shortest.min(time);
        known.times += 1;
    }

    /// The part of `budget` to use if the device has done all earlier work, or is still at it.
    fn part_of(&mut self, budget: Duration, behind: bool) -> Duration {
        self.unused = match behind {
            true => 8 - ((8 - self.unused) / 2).max(LEAST),
            false => self.unused.saturating_sub(1),
        };
        budget / 8 * (8 - self.unused)
    }
}

impl Pacer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gpu {
    /// Whether work that nobody waits for is held.
    pub(crate) fn is_paced(&self) -> bool {
        platform::MAY_BLOCK && self.pacer.on.load(Ordering::Relaxed) && !self.is_profiling()
    }

    pub(super) fn holds(&self) -> bool {
        // The constant lets the compiler omit this code for browsers.
        platform::MAY_BLOCK && self.pacer.holds.load(Ordering::Relaxed)
    }

    fn note_held(&self, held: bool) {
        self.pacer.holds.store(held, Ordering::Relaxed);
        self.pool.keep_freed_buffers(held);
    }

    /// Holds `launches`, which use the buffers with these ids, for [`Gpu::send_for`].
    pub(crate) fn hold(&self, launches: &[Launch<'_>], buffers: Vec<u64>) -> Result<()> {
        self.ask()?;
        let mut state = self.pacer.lock();
        for launch in launches {
            state.push(Item::Kernel(Held {
                pipeline: launch.pipeline.clone(),
                bind_group: launch.bind_group.clone(),
                grid: launch.grid,
                label: launch.label.into(),
                bytes: launch.bytes,
                flops: launch.flops,
            }));
        }
        state.used(buffers);
        self.note_held(!state.held.is_empty());
        let many = state.kernels > MOST_KERNELS;
        drop(state);
        if many { self.send_held() } else { Ok(()) }
    }

    /// Writes whole words into `buffer`, before all work that is called for later.
    pub(crate) fn write(&self, buffer: &Buffer, at: u64, bytes: &[u8]) -> Result<()> {
        if !self.holds() {
            self.queue.write_buffer(buffer.raw(), at, bytes);
            return Ok(());
        }
        let from = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad upload"),
            size: bytes.len() as u64,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        self.check()?;
        match from.get_mapped_range_mut(..) {
            Ok(mut mapped) => mapped.copy_from_slice(bytes),
            // The device is lost.
            Err(_) => return self.ask(),
        }
        from.unmap();
        let bytes = bytes.len() as u64;
        let mut state = self.pacer.lock();
        state.push(Item::Copy { from, at: 0, to: buffer.raw().clone(), to_at: at, bytes });
        state.used(vec![buffer.id()]);
        state.uploaded += bytes;
        let many = state.uploaded > MOST_BYTES;
        drop(state);
        if many { self.send_held() } else { Ok(()) }
    }

    /// Holds copies of `bytes` from the first buffer of each pair to the second. Returns whether it does: only if work is held.
    pub(super) fn hold_copies<'a>(
        &self,
        buffers: &mut impl Iterator<Item = (&'a Buffer, &'a Buffer)>,
        bytes: u64,
    ) -> bool {
        if !self.holds() {
            return false;
        }
        let mut state = self.pacer.lock();
        for (from, to) in buffers {
            state.push(Item::Copy {
                from: from.raw().clone(),
                at: from.offset(),
                to: to.raw().clone(),
                to_at: to.offset(),
                bytes,
            });
            state.used(vec![from.id(), to.id()]);
        }
        true
    }

    /// Sends all held work if some of it uses `buffer`.
    pub(crate) fn send_held_for(&self, buffer: &Buffer) -> Result<()> {
        let uses = |state: &State| state.users.iter().any(|(_, ids)| ids.contains(&buffer.id()));
        match self.holds() && uses(&self.pacer.lock()) {
            true => self.send_held(),
            false => Ok(()),
        }
    }

    /// Sends all held work.
    pub(crate) fn send_held(&self) -> Result<()> {
        match self.holds() {
            // An empty submission takes it along.
            true => self.submit(&[], None).map(drop),
            false => Ok(()),
        }
    }

    /// The held work as commands, for the submission that follows.
    pub(super) fn held_commands(&self) -> Option<wgpu::CommandBuffer> {
        if !self.holds() {
            return None;
        }
        let items: Vec<Item> = {
            let mut state = self.pacer.lock();
            std::iter::from_fn(|| state.pop()).collect()
        };
        self.note_held(false);
        Some(self.commands(&items))
    }

    fn commands(&self, items: &[Item]) -> wgpu::CommandBuffer {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for part in items.chunk_by(|a, b| matches!((a, b), (Item::Kernel(_), Item::Kernel(_)))) {
            if let Item::Copy { from, at, to, to_at, bytes } = &part[0] {
                encoder.copy_buffer_to_buffer(from, *at, to, *to_at, *bytes);
                continue;
            }
            let launches: Vec<Launch<'_>> = part
                .iter()
                .filter_map(|item| match item {
                    Item::Kernel(held) => Some(held.launch()),
                    Item::Copy { .. } => None,
                })
                .collect();
            super::submit::encode(&mut encoder, &launches);
            self.counters.add(Counter::Kernels, launches.len() as u64);
        }
        encoder.finish()
    }

    /// Holds new work from now on, unless the budget is unlimited.
    pub(crate) fn pace(&self, budget: Duration) {
        self.pacer.on.store(budget != Duration::MAX, Ordering::Relaxed);
    }

    /// Sends held work for about `budget` of the device's time, at least one kernel. Returns whether all is sent. Otherwise
    /// as [`Gpu::pace`].
    pub(crate) fn send_for(&self, budget: Duration) -> Result<bool> {
        self.ask()?;
        self.pace(budget);
        if budget == Duration::MAX || self.is_profiling() {
            self.send_held()?;
            return Ok(true);
        }
        if !self.holds() {
            return Ok(true);
        }
        let behind = !self.is_idle();
        let mut left = self.pacer.lock().part_of(budget, behind);
        let mut first = true;
        loop {
            let fitting = self.pacer.lock().fitting(&mut left, &mut first);
            if !fitting.is_empty() {
                let index = self.send_commands([self.commands(&fitting)]);
                self.check()?;
                self.hold_back(index)?;
            }
            let (empty, known) = {
                let state = self.pacer.lock();
                (state.held.is_empty(), state.next_time().is_some())
            };
            if empty || known || (left.is_zero() && !first) {
                self.note_held(!empty);
                return Ok(empty);
            }
            let began = Instant::now();
            self.measure_next()?;
            first = false;
            left = left.saturating_sub(began.elapsed());
        }
    }

    /// Runs the next kernel alone, and notes how long it takes.
    fn measure_next(&self) -> Result<()> {
        // What was sent before would count.
        self.wait(None)?;
        if self.pacer.lock().overhead.is_none() {
            let empty = || {
                let began = Instant::now();
                let commands = self.device.create_command_encoder(&Default::default()).finish();
                let index = self.send_commands([commands]);
                self.wait(Some(index)).map(|()| began.elapsed())
            };
            let shortest = empty()?.min(empty()?).min(empty()?);
            self.pacer.lock().overhead = Some(shortest);
        }
        let Some(item) = self.pacer.lock().pop() else { return Ok(()) };
        let began = Instant::now();
        let index = self.send_commands([self.commands(std::slice::from_ref(&item))]);
        self.wait(Some(index))?;
        let took = began.elapsed();
        if let Item::Kernel(held) = &item {
            let mut state = self.pacer.lock();
            let overhead = state.overhead.unwrap_or_default();
            state.measured(held.kind(), took.saturating_sub(overhead).max(SHORTEST));
        }
        Ok(())
    }
}

/// No kernel counts for less.
const SHORTEST: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_device_that_is_behind_gets_less_and_recovers() {
        let mut state = State::default();
        assert_eq!(state.part_of(8 * MS, false), 8 * MS);
        assert_eq!(state.part_of(8 * MS, true), 4 * MS);
        assert_eq!(state.part_of(8 * MS, true), 2 * MS);
        assert_eq!(state.part_of(8 * MS, true), 2 * MS);
        assert_eq!(state.part_of(8 * MS, false), 3 * MS);
    }

    #[test]
    fn a_time_is_known_after_three_measurements_and_the_shortest_counts() {
        let mut state = State::default();
        let kind = (7, [1, 1, 1], 64);
        for (time, known) in [(9, 1), (2, 2), (5, 3)] {
            state.measured(kind, time * MS);
            assert_eq!((state.times[&kind].times, state.times.len()), (known, 1));
        }
        assert_eq!(state.times[&kind].shortest, 2 * MS);
    }

    /// Copies fit into any budget, in order.
    #[test]
    fn held_writes_and_copies_run_in_order_before_what_follows() {
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let [a, b] = [(); 2].map(|()| gpu.pool.acquire(256, &[]).unwrap());
        let read = |buffer: &Buffer| {
            let staging = gpu.staging(8).unwrap();
            gpu.submit(&[], Some((buffer, &staging))).unwrap();
            pollster::block_on(gpu.read(staging)).unwrap()
        };
        gpu.write(&a, 0, &[1; 8]).unwrap();
        assert!(!gpu.holds(), "nothing is held before anything else is");
        gpu.note_held(true);
        assert!(gpu.hold_copies(&mut [(&*a, &*b)].into_iter(), 8));
        gpu.write(&a, 4, &[2; 4]).unwrap();
        assert!(gpu.holds());
        assert_eq!(read(&b), [1; 8]);
        assert!(!gpu.holds(), "the read has sent them");
        assert_eq!(read(&a), [1, 1, 1, 1, 2, 2, 2, 2]);
    }
}
