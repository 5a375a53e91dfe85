//! Reuses device buffers: a freed buffer waits here for the next value of its size class.
//!
//! Reuse needs no waiting: all work goes through one queue, so work that still reads a freed buffer was submitted
//! before the work that writes it next.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::board::{Board, PLACE};
use super::faults::{Faults, out_of_memory};
use super::platform;
use super::safely_dropped::SafelyDropped;
use super::stats::DeviceStats;
use crate::dtype::DType;
use crate::error::{DeviceFault, Error, Result, message};
use crate::shape::Shape;

/// A device buffer; it returns to its pool when the last holder drops it.
pub(crate) struct Buffer {
    raw: wgpu::Buffer,
    id: u64,
    /// The bytes that the pool counts for it; for an application's buffer, its size.
    bytes: u64,
    home: Home,
    /// What the bytes are, if they are so many that an error should name them.
    contents: Option<Arc<Mutex<Contents>>>,
}

/// What a large buffer holds, for the error when memory runs out.
#[derive(Clone, Default)]
struct Contents {
    /// The op that made the tensor; empty while a plan computes in the buffer.
    op: &'static str,
    dtype: &'static str,
    shape: Option<Shape>,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Some(shape) => write!(f, "{} {} made by {}", self.dtype, shape, self.op),
            None => f.write_str("a value of the running plan"),
        }
    }
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
        let (id, bytes) = (super::fresh_id(), raw.size());
        Buffer { raw, id, bytes, home: Home::Application, contents: None }
    }

    /// A place on a board.
    pub(super) fn placed(board: Arc<Board>, place: u32) -> Self {
        let raw = board.raw.clone();
        let (id, home) = (super::fresh_id(), Home::Board(board, place));
        Buffer { raw, id, bytes: PLACE, home, contents: None }
    }

    /// True if plans may write into it. They may not write into an application's buffer, which only the application
    /// writes, or into a place on a board, because other places may be read at the same time.
    pub(crate) fn is_pooled(&self) -> bool {
        matches!(self.home, Home::Pool(_))
    }

    /// Records that the buffer now holds a tensor that `op` made.
    pub(crate) fn holds(&self, op: &'static str, dtype: DType, shape: &Shape) {
        if let Some(contents) = &self.contents {
            let now = Contents { op, dtype: dtype.name(), shape: Some(shape.clone()) };
            *contents.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
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
                let idle = Idle { raw: self.raw.clone(), id: self.id };
                pool.release(idle, self.bytes, self.contents.is_some());
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
    /// The most live bytes since the program last reset it.
    live_peak: u64,
    /// While work has yet to be sent, which may use freed buffers: those to destroy afterwards.
    condemned: Option<Vec<wgpu::Buffer>>,
    /// The large live buffers, by id.
    large: HashMap<u64, (u64, Arc<Mutex<Contents>>)>,
}

/// The pool releases freed memory that exceeds the live memory by more than this.
const SPARE_BYTES: u64 = 256 << 20;

/// Whether errors name what holds the memory. A page does not load the code for it.
const NAMES_HOLDERS: bool = platform::MAY_BLOCK;

/// The pool knows the contents of buffers of at least this many bytes, and an error names this many of them.
const LARGE: u64 = 64 << 10;
const NAMED: usize = 10;

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
        state.live_peak = state.live_peak.max(state.live);
        let home = Home::Pool(self.clone());
        let known = NAMES_HOLDERS && class >= LARGE;
        let contents: Option<Arc<Mutex<Contents>>> = known.then(Arc::default);
        if let Some(contents) = &contents {
            state.large.insert(idle.id, (class, contents.clone()));
        }
        Ok(Arc::new(Buffer { raw: idle.raw, id: idle.id, bytes: class, home, contents }))
    }

    /// Returns freed buffers to the driver. Returns how many bytes were freed.
    pub(crate) fn trim(&self) -> u64 {
        self.lock().trim_to(0)
    }

    /// Limits the bytes of live and pooled buffers together; an error if the live ones alone are more.
    pub(crate) fn set_limit(&self, limit: Option<u64>) -> Result<()> {
        let mut state = self.lock();
        if let Some(bytes) = limit.filter(|&bytes| bytes < state.live) {
            return Err(Error::Device(
                DeviceFault::OutOfMemory,
                message!(
                    "Device: a memory limit of {bytes} bytes is less than the {} bytes in use{}. Drop tensors first, \
                     or set a limit of at least {} bytes; the limit is as before.",
                    state.live,
                    state.holders(),
                    state.live
                ),
            ));
        }
        state.limit = limit;
        if let Some(bytes) = limit {
            let room = bytes - state.live;
            state.trim_to(room);
        }
        Ok(())
    }

    /// The live bytes now, and the most since the last reset.
    pub(crate) fn live(&self) -> [u64; 2] {
        let state = self.lock();
        [state.live, state.live_peak]
    }

    /// Work that has yet to be sent may use freed buffers: none is destroyed until this is called with `false`.
    pub(super) fn keep_freed_buffers(&self, keep: bool) {
        let mut state = self.lock();
        if keep {
            state.condemned.get_or_insert_default();
        } else {
            state.condemned.take().into_iter().flatten().for_each(|raw| raw.destroy());
        }
    }

    /// Makes the present live bytes the most that there were.
    pub(crate) fn reset_peak(&self) {
        let mut state = self.lock();
        state.live_peak = state.live;
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
                    "{class} bytes are requested, {} are in use and the limit is {limit}{}",
                    state.live,
                    state.holders()
                )));
            }
            state.trim_to(room - class);
        }
        let raw = match self.try_create(class) {
            Ok(raw) => raw,
            Err(error) if error.is_out_of_memory() && state.trim_to(0) > 0 => {
                // The driver reclaims the memory when the work that uses it is done.
                let _ = self.owned.faults.poll(wgpu::PollType::wait_indefinitely());
                self.try_create(class).map_err(|error| state.explained(error, class))?
            }
            Err(error) => return Err(state.explained(error, class)),
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

    fn release(&self, idle: Idle, class: u64, large: bool) {
        let mut state = self.lock();
        if large {
            state.large.remove(&idle.id);
        }
        state.live -= class;
        state.pooled += class;
        match state.class(class) {
            Ok(at) => state.idle[at].1.push(idle),
            Err(at) => state.idle.insert(at, (class, vec![idle])),
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

    /// What holds the memory, for an error: the largest buffers, the largest first, equal ones together.
    fn holders(&self) -> String {
        if !NAMES_HOLDERS {
            return String::new();
        }
        let mut held = Vec::with_capacity(self.large.len());
        for (bytes, contents) in self.large.values() {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            // Buffers of one size hold tensors of different sizes.
            let elements: usize = contents.shape.as_ref().map_or(0, |shape| shape.iter().product());
            held.push((Reverse(*bytes), Reverse(elements), contents.to_string()));
        }
        held.sort_unstable();
        let mut groups: Vec<(usize, u64, &String)> = Vec::new();
        for (bytes, _, contents) in held.iter().take(NAMED) {
            match groups.last_mut() {
                Some((count, same, last)) if (*same, *last) == (bytes.0, contents) => *count += 1,
                _ => groups.push((1, bytes.0, contents)),
            }
        }
        let words: Vec<String> = groups
            .into_iter()
            .map(|(count, bytes, contents)| match count {
                1 => format!("{bytes} bytes: {contents}"),
                _ => format!("{count} times {bytes} bytes: {contents}"),
            })
            .collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("; the largest tensors are {}", words.join("; ")),
        }
    }

    /// The driver's error, with what holds the memory.
    fn explained(&self, error: Error, bytes: u64) -> Error {
        if !error.is_out_of_memory() {
            return error;
        }
        out_of_memory(&format!(
            "the driver refuses {bytes} bytes, and {} are in use{}",
            self.live,
            self.holders()
        ))
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
                match &mut self.condemned {
                    Some(condemned) => condemned.push(idle.raw),
                    None => idle.raw.destroy(),
                }
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
