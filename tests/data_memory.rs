//! The memory of pipelines: no more after 20 passes than after two, no more prefetched elements than requested, nothing of
//! dropped iterators. An allocator counts the bytes of all threads, so this is a single test.

#![allow(clippy::unwrap_used)]

#[path = "support/counting.rs"]
mod counting;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use counting::Counting;
use wgrad::data::{self, AUTOTUNE, Dataset, InterleaveOptions, MapOptions};

/// Bytes that are allocated, and their peak.
static NOW: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

fn count(bytes: i64) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// An element of the parts below.
const ELEMENT: usize = 64 << 10;
/// The bytes that threads and the pool may retain.
const SLACK: i64 = 128 << 10;

#[test]
fn pipelines_hold_what_they_say() {
    memory_is_flat_over_passes();
    no_more_is_made_ahead_than_was_said();
    dropped_iterators_leave_nothing();
}

/// Decoded, shuffled, padded, on threads: the memory of one pass is freed before the next.
fn pipeline() -> Dataset<ndarray::ArrayD<u8>> {
    let calls = MapOptions::new().num_parallel_calls(AUTOTUNE);
    let turns = InterleaveOptions::new().cycle_length(3).block_length(2).num_parallel_calls(2);
    data::range(0..10)
        .interleave_with(turns, |n| data::range(0..12).map(move |k| 100 * n + k))
        .map_with(calls, |n| vec![n as u8; ELEMENT / 2 + n as usize])
        .shuffle(10)
        .padded_batch(4)
        .prefetch(2)
}

fn memory_is_flat_over_passes() {
    let dataset = pipeline();
    let epoch = || {
        assert_eq!(dataset.iter().map(|batch| batch.unwrap().shape()[0]).sum::<usize>(), 120);
        wait_for_threads();
        NOW.load(Ordering::Relaxed)
    };
    epoch();
    let after_two = epoch();
    PEAK.store(after_two, Ordering::Relaxed);
    for pass in 2..20 {
        let now = epoch();
        assert!(now < after_two + SLACK, "{} bytes more after pass {pass}", now - after_two);
    }
    // 10 elements shuffled, 4 pending batches of 4, each copied once while it is assembled; all are 120.
    let peak = PEAK.load(Ordering::Relaxed) - after_two;
    assert!(peak < 50 * ELEMENT as i64, "{peak} bytes at once");
}

fn no_more_is_made_ahead_than_was_said() {
    let made = Arc::new(AtomicUsize::new(0));
    let counting = |n: i64, made: &Arc<AtomicUsize>| {
        made.fetch_add(1, Ordering::SeqCst);
        n
    };
    for deterministic in [true, false] {
        for limit in [2, 5] {
            made.store(0, Ordering::SeqCst);
            let count = made.clone();
            let options = MapOptions::new().num_parallel_calls(limit).deterministic(deterministic);
            let dataset = data::range(0..200).map_with(options, move |n| counting(n, &count));
            for (given, n) in dataset.iter().enumerate() {
                n.unwrap();
                let ahead = made.load(Ordering::SeqCst) - given - 1;
                assert!(
                    ahead < limit,
                    "{ahead} elements of map are ahead of {given}, with {limit} calls"
                );
            }
            made.store(0, Ordering::SeqCst);
            let count = made.clone();
            let options = InterleaveOptions::new().cycle_length(6).block_length(3);
            let options = options.num_parallel_calls(limit).deterministic(deterministic);
            let inner = move |_| {
                let count = count.clone();
                data::range(0..20).map(move |n| counting(n, &count))
            };
            let dataset = data::range(0..20).interleave_with(options, inner);
            for (given, n) in dataset.iter().enumerate() {
                n.unwrap();
                let ahead = made.load(Ordering::SeqCst) - given - 1;
                assert!(
                    ahead < 3 * limit,
                    "{ahead} elements of interleave are ahead of {given}, with {limit} calls"
                );
            }
        }
    }
}

fn dropped_iterators_leave_nothing() {
    let dataset = pipeline().prefetch(1);
    let round = |count: usize| {
        for begun in 0..count {
            let mut iter = dataset.iter();
            // Most are dropped before the first element, others while threads work.
            for _ in 0..begun % 500 % 3 * usize::from(begun % 100 == 0) {
                iter.next().unwrap().unwrap();
            }
        }
        wait_for_threads();
        NOW.load(Ordering::Relaxed)
    };
    let before = round(500);
    let after = round(10_000);
    assert!(after < before + SLACK, "{} bytes more", after - before);
}

/// Waits until all threads of `prefetch` have ended, including nested ones.
fn wait_for_threads() {
    for _ in 0..2000 {
        if threads() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} threads still run", threads());
}

/// The threads of this process that `prefetch` started; 0 if the system does not report them.
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.flatten().filter_map(name).filter(|name| name.trim() == "wgrad-prefetch").count()
}
