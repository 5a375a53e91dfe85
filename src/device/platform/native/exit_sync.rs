//! Exit synchronisation: waits for the default device when a thread or the program ends.
//!
//! The default device is never dropped, and a driver that still works for it while the process unloads its libraries
//! may crash (as lavapipe did, which compiles kernels when they first run). Thread-local values are dropped before
//! that, so each thread that uses the default device has one whose drop waits. By then the thread has lost other
//! thread-local values that wgpu needs, so a separate thread polls the device.

use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::Duration;

/// How many waits were requested, and how many are done.
struct Waits {
    asked: u64,
    done: u64,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { asked: 0, done: 0 });
static CHANGED: Condvar = Condvar::new();

/// A device that hangs must not prevent the program from ending.
const LONGEST: Duration = Duration::from_secs(10);

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        waits.asked += 1;
        let mine = waits.asked;
        CHANGED.notify_all();
        // After a timeout there is nothing else to do.
        drop(CHANGED.wait_timeout_while(waits, LONGEST, |waits| waits.done < mine));
    }
}

/// Calls `idle` when this thread ends; `idle` blocks until the device is idle.
pub(crate) fn wait_at_thread_end(idle: fn()) {
    thread_local! {
        static GUARD: Guard = const { Guard };
    }
    static KEEPER: Once = Once::new();
    let mut running = true;
    KEEPER.call_once(|| {
        let thread = std::thread::Builder::new().name("wgrad exit sync".into());
        running = thread.spawn(move || keep(idle)).is_ok();
    });
    if running {
        // A thread that is ending already gets no guard.
        let _ = GUARD.try_with(|_| ());
    }
}

fn keep(idle: fn()) {
    loop {
        let waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = CHANGED.wait_while(waits, |waits| waits.done == waits.asked);
        let asked = waits.unwrap_or_else(PoisonError::into_inner).asked;
        idle();
        WAITS.lock().unwrap_or_else(PoisonError::into_inner).done = asked;
        CHANGED.notify_all();
    }
}
