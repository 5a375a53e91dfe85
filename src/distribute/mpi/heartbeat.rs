//! Signs of life: each process sends one to the next process every second, so that a process that hangs is found by the one
//! after it, which informs all others.

use std::time::{Duration, Instant};

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};

const BEAT: i32 = 1;
const FAILURE: i32 = 2;

/// How often a process gives a sign of life.
const EVERY: Duration = Duration::from_secs(1);
/// How long a process may give none.
const SILENCE: Duration = Duration::from_secs(15);
/// If this process itself stood still for so long, it cannot judge others.
const STOOD_STILL: Duration = Duration::from_secs(5);
/// How often a process looks for messages.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct Heartbeat {
    next: i32,
    previous: i32,
    sent: Option<Instant>,
    heard: Instant,
    looked: Instant,
    /// How many calls the previous process has begun, when it gave the last sign.
    calls_of_previous: u64,
}

/// What a process has found out about the others.
pub(super) enum Finding {
    /// The previous process has not answered for so long.
    Silent(Duration),
    /// Another process reports a failure.
    Reported(String),
}

impl Heartbeat {
    pub(super) fn new(rank: usize, count: usize) -> Self {
        let now = Instant::now();
        let (rank, count) = (rank as i32, count as i32);
        Heartbeat {
            next: (rank + 1) % count,
            previous: (rank + count - 1) % count,
            sent: None,
            heard: now,
            looked: now,
            calls_of_previous: 0,
        }
    }

    pub(super) fn previous(&self) -> usize {
        self.previous as usize
    }

    pub(super) fn calls_of_previous(&self) -> u64 {
        self.calls_of_previous
    }

    /// Sends a sign of life if it is time to, and receives those of others.
    pub(super) fn turn(&mut self, world: &SimpleCommunicator, calls: u64) -> Option<Finding> {
        let now = Instant::now();
        if now - self.looked < LOOK {
            return None;
        }
        if now - self.looked > STOOD_STILL {
            self.heard = now;
        }
        self.looked = now;
        if self.sent.is_none_or(|sent| now - sent >= EVERY) {
            world.process_at_rank(self.next).send_with_tag(&calls, BEAT);
            self.sent = Some(now);
        }
        if world.any_process().immediate_probe_with_tag(FAILURE).is_some() {
            let (text, _) = world.any_process().receive_vec_with_tag::<u8>(FAILURE);
            return Some(Finding::Reported(String::from_utf8_lossy(&text).into_owned()));
        }
        let previous = world.process_at_rank(self.previous);
        while previous.immediate_probe_with_tag(BEAT).is_some() {
            (self.calls_of_previous, _) = previous.receive_with_tag(BEAT);
            self.heard = now;
        }
        let silence = now - self.heard;
        (silence > SILENCE).then_some(Finding::Silent(silence))
    }

    /// Informs all processes except for this one and `silent` that they cannot continue.
    pub(super) fn report(world: &SimpleCommunicator, text: &str, silent: Option<usize>) {
        for rank in (0..world.size()).filter(|rank| *rank != world.rank()) {
            if silent != Some(rank as usize) {
                world.process_at_rank(rank).send_with_tag(text.as_bytes(), FAILURE);
            }
        }
    }
}
