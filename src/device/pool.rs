//! Reuses device buffers: a freed buffer waits here for the next value of its size class.
//!
//! Reuse needs no waiting: all work goes through one queue, so work that still reads a freed buffer was submitted
//! before the work that writes it next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::board::{Board, PLACE};
use super::faults::{Faults, out_of_memory};
use super::platform::keeps_what_wgpu_needs;
use super::safely_dropped::SafelyDropped;
use super::stats::DeviceStats;
use crate::error::Result;

/// A device buffer; it returns to its pool when the last holder drops it.
pub(crate) struct Buffer {
    raw: wgpu::Buffer,
    id: u64,
    /// The bytes that the pool counts for it; for an application's buffer, its size.
    bytes: u64,
    home: Home,
}

/// The owner of a buffer.
enum Home {
    Pool(Arc<Pool>),
    /// A place on a board of the shelf.
    Board(Arc<Board>, u32),
    Application,
}

impl Buffer {
    /// Wraps an application's buffer, which no pool may reuse.
    pub(crate) fn foreign(raw: wgpu::Buffer) -> Self {
        Buffer { bytes: raw.size(), raw, id: super::fresh_id(), home: Home::Application }
    }

    /// A place on a board.
    pub(super) fn placed(board: Arc<Board>, place: u32) -> Self {
        let raw = board.raw.clone();
        Buffer { raw, id: super::fresh_id(), bytes: PLACE, home: Home::Board(board, place) }
    }

    /// True if plans may write into it. They may not write into an application's buffer, which only the application
    /// writes, or into a place on a board, because other places may be read at the same time.
    pub(crate) fn is_pooled(&self) -> bool {
        matches!(self.home, Home::Pool(_))
    }

    /// True for a place on a board.
    pub(crate) fn is_placed(&self) -> bool {
        matches!(self.home, Home::Board(..))
    }

    /// True for a buffer of the pool that is small enough for a place.
    pub(crate) fn fits_a_place(&self) -> bool {
        self.is_pooled() && self.bytes == PLACE
    }

    /// Where its bytes begin in [`Buffer::raw`].
    pub(crate) fn offset(&self) -> u64 {
        match self.home {
            Home::Board(_, place) => Board::offset(place),
            _ => 0,
        }
    }

    pub(crate) fn raw(&self) -> &wgpu::Buffer {
        &self.raw
    }

    /// Identifies the buffer in caches: no other buffer ever gets this number, and it stays the same when the buffer is
    /// reused.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.home {
            Home::Pool(pool) => {
                pool.release(Idle { raw: self.raw.clone(), id: self.id }, self.bytes);
            }
            Home::Board(board, place) => board.give_back(*place),
            Home::Application => {}
        }
    }
}

struct Idle {
    raw: wgpu::Buffer,
    id: u64,
}

pub(crate) struct Pool {
    /// Buffers may outlive the other handles to their device.
    owned: SafelyDropped<Owned>,
    /// The largest buffer of the adapter, in whole vectors.
    largest: u64,
}

/// What the last handle releases.
struct Owned {
    device: wgpu::Device,
    faults: Arc<Faults>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Size classes, the smallest first, and the buffers of each, the most recently freed last.
    idle: Vec<(u64, Vec<Idle>)>,
    limit: Option<u64>,
    created: u64,
    live: u64,
    pooled: u64,
    peak: u64,
}

/// The pool releases freed memory that exceeds the live memory by more than this.
const SPARE_BYTES: u64 = 256 << 20;

impl Pool {
    pub(super) fn new(device: wgpu::Device, faults: Arc<Faults>, limit: Option<u64>) -> Self {
        let largest = device.limits().max_buffer_size & !15;
        let state = Mutex::new(State { limit, ..State::default() });
        Pool { owned: SafelyDropped::new(Owned { device, faults, state }), largest }
    }

    /// A buffer of at least `bytes`, preferably one with an id of `prefer`.
    pub(crate) fn acquire(self: &Arc<Self>, bytes: u64, prefer: &[u64]) -> Result<Arc<Buffer>> {
        self.take(&mut self.lock(), bytes, prefer)
    }

    /// Appends to `taken` a buffer for each of `wanted`: of at least that many bytes, preferably one with these ids. A
    /// plan that gets the same buffers again can reuse its bind groups.
    pub(crate) fn acquire_all<'a>(
        self: &Arc<Self>,
        wanted: impl Iterator<Item = (u64, &'a [u64])>,
        taken: &mut Vec<Arc<Buffer>>,
    ) -> Result<()> {
        // After an error the caller drops the buffers that it has taken; dropping them here would lock the pool twice.
        let mut state = self.lock();
        for (bytes, prefer) in wanted {
            taken.push(self.take(&mut state, bytes, prefer)?);
        }
        Ok(())
    }

    fn take(
        self: &Arc<Self>,
        state: &mut State,
        bytes: u64,
        prefer: &[u64],
    ) -> Result<Arc<Buffer>> {
        let class = size_class(bytes).min(self.largest.max(bytes));
        let reused = state.class(class).ok().and_then(|at| {
            let list = &mut state.idle[at].1;
            let known = list.iter().position(|idle| prefer.contains(&idle.id));
            known.map(|i| list.remove(i)).or_else(|| list.pop())
        });
        let (idle, class) = match reused {
            Some(idle) => {
                state.pooled -= class;
                (idle, class)
            }
            None => self.create(state, bytes, class)?,
        };
        state.live += class;
        state.peak = state.peak.max(state.live + state.pooled);
        let home = Home::Pool(self.clone());
        Ok(Arc::new(Buffer { raw: idle.raw, id: idle.id, bytes: class, home }))
    }

    /// Returns freed buffers to the driver. Returns how many bytes were freed.
    pub(crate) fn trim(&self) -> u64 {
        self.lock().trim_to(0)
    }

    /// Limits the bytes of live and pooled buffers together. Live buffers stay.
    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        let mut state = self.lock();
        state.limit = limit;
        state.heed_limit();
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        self.lock().limit
    }

    pub(super) fn read_stats(&self, stats: &mut DeviceStats) {
        let state = self.lock();
        stats.buffers = state.created;
        stats.live_bytes = state.live;
        stats.pooled_bytes = state.pooled;
        stats.peak_bytes = state.peak;
    }

    /// A new buffer of `class` bytes, or of just `bytes` if the limit has no room for the rounding.
    fn create(&self, state: &mut State, bytes: u64, class: u64) -> Result<(Idle, u64)> {
        if state.pooled > state.live + SPARE_BYTES {
            state.trim_to(state.live);
        }
        let mut class = class;
        if let Some(limit) = state.limit {
            let room = limit.saturating_sub(state.live);
            if class > room {
                class = bytes.max(1).next_multiple_of(256);
            }
            if class > room {
                return Err(out_of_memory(&format!(
                    "{class} bytes are requested, {} are in use and the limit is {limit}",
                    state.live
                )));
            }
            state.trim_to(room - class);
        }
        let raw = match self.try_create(class) {
            Ok(raw) => raw,
            Err(error) if error.is_out_of_memory() && state.trim_to(0) > 0 => {
                // The driver reclaims the memory when the work that uses it is done.
                let _ = self.owned.faults.poll(wgpu::PollType::wait_indefinitely());
                self.try_create(class)?
            }
            Err(error) => return Err(error),
        };
        state.created += 1;
        Ok((Idle { raw, id: super::fresh_id() }, class))
    }

    fn try_create(&self, bytes: u64) -> Result<wgpu::Buffer> {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let raw = self.owned.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad tensor"),
            size: bytes,
            usage,
            mapped_at_creation: false,
        });
        // Natively the driver has answered by now; a browser answers at a later call.
        self.owned.faults.check()?;
        Ok(raw)
    }

    fn release(&self, idle: Idle, class: u64) {
        let mut state = self.lock();
        state.live -= class;
        state.pooled += class;
        match state.class(class) {
            Ok(at) => state.idle[at].1.push(idle),
            Err(at) => state.idle.insert(at, (class, vec![idle])),
        }
        // If this thread has lost what wgpu needs, memory over the limit is freed with the next buffer.
        if keeps_what_wgpu_needs() {
            state.heed_limit();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.owned.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Where the buffers of `class` bytes are, or would be.
    fn class(&self, class: u64) -> std::result::Result<usize, usize> {
        self.idle.binary_search_by_key(&class, |(class, _)| *class)
    }

    /// Releases pooled buffers beyond the limit, which may now be lower than the live memory.
    fn heed_limit(&mut self) {
        if let Some(limit) = self.limit {
            self.trim_to(limit.saturating_sub(self.live));
        }
    }

    /// Destroys freed buffers, the largest first, until at most `keep` bytes of them are left.
    fn trim_to(&mut self, keep: u64) -> u64 {
        if self.pooled <= keep {
            return 0;
        }
        let before = self.pooled;
        for (class, list) in self.idle.iter_mut().rev() {
            while self.pooled > keep {
                let Some(idle) = list.pop() else { break };
                // Cached bind groups may still refer to the buffer; its memory is freed nevertheless.
                idle.raw.destroy();
                self.pooled -= *class;
            }
        }
        self.idle.retain(|(_, list)| !list.is_empty());
        before - self.pooled
    }
}

/// Rounds up to an eighth of the next power of two, so that at most an eighth is wasted and sizes that
/// differ a little share their buffers.
fn size_class(bytes: u64) -> u64 {
    let step = (bytes.max(1).next_power_of_two() / 8).max(256);
    bytes.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_little() {
        assert_eq!(size_class(0), 256);
        assert_eq!(size_class(256), 256);
        assert_eq!(size_class(257), 512);
        assert_eq!(size_class(313_600), 327_680);
        for bytes in (1..5_000_000u64).step_by(7919) {
            let class = size_class(bytes);
            assert!(class >= bytes && class - bytes <= (bytes / 4).max(256), "{bytes} -> {class}");
            assert_eq!(size_class(class), class);
        }
    }
}
