//! How much memory a thread holds at most. A test program that has this module counts all that its threads allocate.

#[path = "counting.rs"]
mod counting;

use std::cell::Cell;

use counting::Counting;

thread_local! {
    /// Bytes that this thread holds, and the most that it has held.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: i64) {
    // Threads that end are past counting.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        held.set((now + bytes, peak.max(now + bytes)));
    });
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// The most bytes held while `run` ran, beyond those held before.
pub fn peak<T>(run: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = run();
    (result, HELD.get().1 - before)
}
