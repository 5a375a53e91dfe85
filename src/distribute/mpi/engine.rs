//! The thread that makes the calls of MPI.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use half::f16;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::request::{LocalScope, Request, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

use super::heartbeat::{Finding, Heartbeat};
use super::memory::{Memories, Memory};
use super::{Answer, Command, Place, Work};
use crate::distribute::CommunicationOptions;
use crate::distribute::signature::hash;
use crate::error::{Error, Result, message};

/// How long a process whose job has failed may run on, to report the error and to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How long an idle thread sleeps between two looks at the other processes.
const IDLE: Duration = Duration::from_millis(100);
/// How long the thread asks at once whether the others have come to a call; then it pauses in between.
const EAGER: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(50);
/// The bytes with which a process describes its call, or itself.
const WORDS: usize = 256;

struct Engine<'a> {
    world: Rc<SimpleCommunicator>,
    place: Place,
    queue: &'a Receiver<Command>,
    heartbeat: Option<Heartbeat>,
    timeout: Duration,
    bytes_per_message: usize,
    memories: Memories,
    /// How many calls this process has begun.
    calls: u64,
    /// Who waits for the answer to the present call.
    reply: Option<Sender<Result<Answer>>>,
    /// The present call, if all processes must come to it, and when it began.
    meeting: Option<(String, Instant)>,
}

/// Begins MPI, and works until the queue ends.
pub(super) fn serve(
    queue: &Receiver<Command>,
    begun: &Sender<Result<Place>>,
    options: &CommunicationOptions,
) {
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        let _ = begun.send(Err(Error::Unavailable(
            "MultiWorkerMirroredStrategy: MPI has begun in this process before, and cannot begin again. Keep the first strategy until \
             the end of the program, and do not initialize MPI elsewhere."
                .into(),
        )));
        return;
    };
    let world = Rc::new(universe.world().duplicate());
    let (rank, count) = (world.rank() as usize, world.size() as usize);
    if let Some(started) = started_by_another_library().filter(|_| count == 1) {
        let library = mpi::environment::library_version().unwrap_or_default();
        let _ = begun.send(Err(Error::Unavailable(message!(
            "MultiWorkerMirroredStrategy: mpirun has started {started} processes, but the MPI library of this program finds itself alone. \
             Start it with the mpirun of the library that it was compiled with ({}), or compile it with the other one (MPICC).",
            library.split([',', '\n']).next().unwrap_or_default().trim()
        ))));
        return;
    }
    let machine = mpi::environment::processor_name().unwrap_or_else(|_| "unknown".into());
    let local_rank = world.split_shared(world.rank()).rank() as usize;
    let own = words(&format!("{machine}, process {}", std::process::id()));
    let mut all = vec![0; WORDS * count];
    world.all_gather_into(&own[..], &mut all[..]);
    let names = all.chunks_exact(WORDS).map(text).collect();
    let place = Place { rank, local_rank, names };
    let mut engine = Engine {
        world,
        place: place.clone(),
        queue,
        heartbeat: (count > 1).then(|| Heartbeat::new(rank, count)),
        timeout: options.timeout,
        bytes_per_message: options.bytes_per_message,
        memories: Memories::default(),
        calls: 0,
        reply: None,
        meeting: None,
    };
    if begun.send(Ok(place)).is_ok() {
        engine.work();
    }
}

/// How many processes the `mpirun` of Open MPI or of MPICH has started with this one, if there are several.
fn started_by_another_library() -> Option<usize> {
    let number = |name: &&str| std::env::var(name).ok()?.parse().ok();
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().filter_map(number).find(|count| *count > 1)
}

/// A text as bytes of one size.
fn words(text: &str) -> [u8; WORDS] {
    let mut words = [0; WORDS];
    let bytes = &text.as_bytes()[..text.len().min(WORDS)];
    words[..bytes.len()].copy_from_slice(bytes);
    words
}

fn text(words: &[u8]) -> String {
    let len = words.iter().position(|byte| *byte == 0).unwrap_or(words.len());
    String::from_utf8_lossy(&words[..len]).into_owned()
}

impl Engine<'_> {
    fn work(&mut self) {
        loop {
            match self.queue.recv_timeout(IDLE) {
                Ok(Command { work, reply }) => {
                    self.reply = Some(reply);
                    self.calls += 1;
                    let answer = self.perform(work);
                    if let Some(reply) = self.reply.take() {
                        // Who dropped a sum does not wait for it.
                        let _ = reply.send(Ok(answer));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.turn();
        }
    }

    fn perform(&mut self, work: Work) -> Answer {
        match work {
            Work::Agree { what, signature, flag } => self.agree(&what, signature, flag),
            Work::Compare { what, signature } => self.compare(&what, signature),
            Work::Sum { values, compressed: false } => Answer::Sum(self.sum((*values).as_ref())),
            Work::Sum { values, compressed: true } => {
                Answer::Sum(self.sum_compressed((*values).as_ref()))
            }
            Work::Gather(bytes) => Answer::Parts(self.gather(&bytes)),
            Work::Broadcast(mut bytes) => {
                self.broadcast(&mut bytes);
                Answer::Parts(vec![bytes])
            }
            Work::Fail(text) => {
                Heartbeat::report(&self.world, &text, None);
                self.reply.take().map(|reply| reply.send(Ok(Answer::Done)));
                self.failed(text)
            }
        }
    }

    /// The smallest of each number over all processes tells whether all have the same one.
    fn agree(&mut self, what: &str, signature: u64, flag: bool) -> Answer {
        // The order of calls is part of what must be equal.
        let signature = hash(what.bytes(), signature);
        let own = [signature, !signature, u64::from(!flag)];
        let mut least = [0u64; 3];
        self.meeting = Some((what.to_string(), Instant::now()));
        let world = self.world.clone();
        scope(|scope| {
            let min = SystemOperation::min();
            self.finish(world.immediate_all_reduce_into(scope, &own[..], &mut least[..], min));
        });
        self.meeting = None;
        Answer::Agreed(least[0] == !least[1], least[2] == 0)
    }

    fn compare(&mut self, what: &str, signature: u64) -> Answer {
        let mut own = words(what);
        own[WORDS - 8..].copy_from_slice(&signature.to_le_bytes());
        // The last byte of the words ends them.
        own[WORDS - 9] = 0;
        let mut all = vec![0; WORDS * self.place.names.len()];
        let world = self.world.clone();
        scope(|scope| {
            self.finish(world.immediate_all_gather_into(scope, &own[..], &mut all[..]));
        });
        let call = |words: &[u8]| {
            let signature = words[WORDS - 8..].try_into().unwrap_or_default();
            (text(&words[..WORDS - 8]), u64::from_le_bytes(signature))
        };
        Answer::Calls(all.chunks_exact(WORDS).map(call).collect())
    }

    fn sum(&mut self, values: &[f32]) -> Memory {
        let mut memory = self.memories.take(values.len());
        let sum = memory.floats();
        let world = self.world.clone();
        scope(|scope| {
            let add = SystemOperation::sum();
            self.finish(world.immediate_all_reduce_into(scope, values, sum, add));
        });
        memory
    }

    /// As [`Engine::sum`], with half the bytes: each process receives a part of the values from all others as `f16`, adds them up
    /// as `f32`, and sends the sums as `f16`. A factor keeps large values within the range of `f16`.
    fn sum_compressed(&mut self, values: &[f32]) -> Memory {
        let count = self.place.names.len();
        let world = self.world.clone();
        // Infinite values must not push finite ones out of the range.
        let finite = values.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        let largest = [finite.fold(0f32, f32::max)];
        let mut most = [0f32];
        scope(|scope| {
            let max = SystemOperation::max();
            self.finish(world.immediate_all_reduce_into(scope, &largest[..], &mut most[..], max));
        });
        // The sum of all must fit, too, when each was rounded up. A value that is not finite remains so.
        let room = f16::MAX.to_f32() * 0.999 / count as f32;
        let factor = if most[0] > 0.0 { room / most[0] } else { 1.0 };
        let factor = if factor.is_finite() { factor } else { 1.0 };
        let part = values.len().div_ceil(count);
        let mut own = vec![0u16; part * count];
        for (to, value) in own.iter_mut().zip(values) {
            *to = f16::from_f32(value * factor).to_bits();
        }
        let mut parts = vec![0u16; part * count];
        scope(|scope| {
            self.finish(world.immediate_all_to_all_into(scope, &own[..], &mut parts[..]));
        });
        let mut sums = vec![0f32; part];
        for part in parts.chunks_exact(part.max(1)) {
            for (sum, value) in sums.iter_mut().zip(part) {
                *sum += f16::from_bits(*value).to_f32();
            }
        }
        let sums: Vec<u16> = sums.iter().map(|sum| f16::from_f32(*sum).to_bits()).collect();
        scope(|scope| {
            self.finish(world.immediate_all_gather_into(scope, &sums[..], &mut own[..]));
        });
        let mut memory = self.memories.take(values.len());
        for (to, sum) in memory.floats().iter_mut().zip(own) {
            *to = f16::from_bits(sum).to_f32() / factor;
        }
        memory
    }

    fn gather(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let world = self.world.clone();
        let mut sizes = vec![0u64; self.place.names.len()];
        let own = [bytes.len() as u64];
        scope(|scope| {
            self.finish(world.immediate_all_gather_into(scope, &own[..], &mut sizes[..]));
        });
        let mut parts: Vec<Vec<u8>> = sizes.iter().map(|_| Vec::new()).collect();
        let longest = sizes.iter().max().copied().unwrap_or(0);
        let most = (self.bytes_per_message as u64 / sizes.len() as u64).max(1);
        let mut begin = 0;
        while begin < longest {
            let rest = |size: u64| size.saturating_sub(begin).min(most);
            let counts: Vec<i32> = sizes.iter().map(|size| rest(*size) as i32).collect();
            let begins: Vec<i32> = counts
                .iter()
                .scan(0, |end, count| {
                    *end += count;
                    Some(*end - count)
                })
                .collect();
            let mut all = vec![0u8; counts.iter().sum::<i32>() as usize];
            let from = (begin as usize).min(bytes.len());
            let own = &bytes[from..from + rest(bytes.len() as u64) as usize];
            let mut received = PartitionMut::new(&mut all[..], &counts[..], &begins[..]);
            scope(|scope| {
                self.finish(world.immediate_all_gather_varcount_into(scope, own, &mut received));
            });
            for ((part, at), count) in parts.iter_mut().zip(&begins).zip(&counts) {
                part.extend(&all[*at as usize..(*at + *count) as usize]);
            }
            begin += most;
        }
        parts
    }

    fn broadcast(&mut self, bytes: &mut Vec<u8>) {
        let world = self.world.clone();
        let mut size = [bytes.len() as u64];
        let chief = world.process_at_rank(0);
        scope(|scope| self.finish(chief.immediate_broadcast_into(scope, &mut size[..])));
        bytes.resize(size[0] as usize, 0);
        for part in bytes.chunks_mut(self.bytes_per_message) {
            scope(|scope| self.finish(chief.immediate_broadcast_into(scope, part)));
        }
    }

    /// Waits for a call of MPI.
    fn finish<'a, D: ?Sized>(&mut self, mut request: Request<'a, D, &LocalScope<'a>>) {
        let began = Instant::now();
        let mut turns = 0u32;
        loop {
            request = match request.test() {
                Ok(_) => return,
                Err(again) => again,
            };
            turns += 1;
            if turns < 50 {
                std::hint::spin_loop();
                continue;
            }
            // Other processes may wait for this core. Values move only while this asks, so it pauses only where it waits for others.
            if self.meeting.is_none() || began.elapsed() < EAGER {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
            self.turn();
        }
    }

    /// Looks after the other processes. Does not return if they have failed.
    fn turn(&mut self) {
        let Some(heartbeat) = &mut self.heartbeat else { return };
        let previous = heartbeat.previous();
        match heartbeat.turn(&self.world, self.calls) {
            None => {}
            Some(Finding::Reported(text)) => self.failed(text),
            Some(Finding::Silent(silence)) => {
                let text = format!(
                    "{} has not answered for {} s: it hangs, or its machine is not reached. The other processes end; start the job again, \
                     and BackupAndRestore continues from the last backup.",
                    self.place.name(previous),
                    silence.as_secs()
                );
                Heartbeat::report(&self.world, &text, Some(previous));
                self.failed(text)
            }
        }
        let Some((what, since)) = &self.meeting else { return };
        if since.elapsed() > self.timeout && heartbeat.calls_of_previous() < self.calls {
            let text = format!(
                "{} has not come to the call {what} for {} s, in which the others wait for it. Look at what it does, or raise the timeout \
                 of CommunicationOptions.",
                self.place.name(previous),
                since.elapsed().as_secs()
            );
            Heartbeat::report(&self.world, &text, None);
            self.failed(text)
        }
    }

    /// Returns the error to all who ask. The program can report it and end; if it does not, this ends all processes of the job.
    fn failed(&mut self, text: String) -> ! {
        let error = Error::Unavailable(message!("MultiWorkerMirroredStrategy: {text}"));
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(Err(error.clone()));
        }
        let end = Instant::now() + GRACE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.queue.recv_timeout(left) {
                Ok(command) => drop(command.reply.send(Err(error.clone()))),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(left);
                    break;
                }
            }
        }
        crate::warnings::warn_user!("{error}");
        self.world.abort(1)
    }
}
