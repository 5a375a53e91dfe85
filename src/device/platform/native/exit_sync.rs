//! The wait for the default device at the end of a program.
//!
//! That device is never dropped, and a driver that still works for it while the process takes its libraries down
//! may crash (seen with lavapipe, which compiles kernels when they first run). Thread-local values are dropped before
//! that, so one in each thread that uses the default device waits. As the thread has lost others of its
//! thread-local values by then, which wgpu needs, a thread of its own does the polling.

use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::Duration;

/// Waits that were asked for and those that were done.
struct Waits {
    asked: u64,
    done: u64,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { asked: 0, done: 0 });
static CHANGED: Condvar = Condvar::new();

/// A device that hangs does not keep the program from ending.
const LONGEST: Duration = Duration::from_secs(10);

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        waits.asked += 1;
        let mine = waits.asked;
        CHANGED.notify_all();
        // Whether it came to pass or the time ran out, there is nothing else to be done.
        drop(CHANGED.wait_timeout_while(waits, LONGEST, |waits| waits.done < mine));
    }
}

/// Has `idle`, which blocks until the device is idle, called when this thread ends.
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
        // A thread that is ending already needs no guard.
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
