//! The peak memory of a thread. A test program with this module counts all allocations of its threads.

#[path = "counting.rs"]
mod counting;

use std::cell::Cell;

use counting::Counting;

thread_local! {
    /// Bytes that this thread holds, and the maximum so far.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: i64) {
    // Ending threads are not counted.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        held.set((now + bytes, peak.max(now + bytes)));
    });
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// The peak of bytes held while `run` ran, minus those held before.
pub fn peak<T>(run: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = run();
    (result, HELD.get().1 - before)
}
