//! The processes of an MPI job. A thread of its own makes all calls of MPI: the thread of the program asks it, and computes
//! while sums are on their way.

mod engine;
mod heartbeat;
mod memory;
mod place;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use memory::Memory;
pub(super) use place::Place;

use super::CommunicationOptions;
use crate::eager::{Floats, PendingSum, Workers};
use crate::error::{Error, Result, message};

/// What the thread of MPI does.
enum Work {
    Agree {
        what: String,
        signature: u64,
        flag: bool,
    },
    /// What this process called, after processes have not agreed.
    Compare {
        what: String,
        signature: u64,
    },
    Sum {
        values: Floats,
        compressed: bool,
    },
    Gather(Vec<u8>),
    Broadcast(Vec<u8>),
    Fail(String),
}

enum Answer {
    /// Whether all agree, and whether one has the flag.
    Agreed(bool, bool),
    /// What each process called.
    Calls(Vec<(String, u64)>),
    Sum(Memory),
    Parts(Vec<Vec<u8>>),
    Done,
}

struct Command {
    work: Work,
    reply: Sender<Result<Answer>>,
}

/// The call with which a process ends.
const END: &str = "the end of its strategy";

/// This process of an MPI job.
pub(super) struct Mpi {
    place: Place,
    options: CommunicationOptions,
    /// `None` after the end.
    queue: Mutex<Option<Sender<Command>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Why processes can no longer work together.
    failure: Mutex<Option<Error>>,
    /// MPI itself cannot end in this process, because others no longer answer.
    broken: AtomicBool,
}

/// MPI begins and ends once in a process, so all strategies share it.
static CURRENT: Mutex<Weak<Mpi>> = Mutex::new(Weak::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mpi {
    /// Begins MPI, or returns what has begun already.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if MPI was begun or ended by the program before.
    pub(super) fn begin(options: CommunicationOptions) -> Result<Arc<Self>> {
        let mut current = locked(&CURRENT);
        if let Some(mpi) = current.upgrade() {
            return Ok(mpi);
        }
        let (queue, commands) = mpsc::channel();
        let (begun, place) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("wgrad MPI".into())
            .spawn({
                let options = options.clone();
                move || engine::serve(&commands, &begun, &options)
            })
            .map_err(|error| {
                Error::Unavailable(message!("MPI: the system provides no thread: {error}."))
            })?;
        let place = place.recv().unwrap_or_else(|_| Err(silent()))?;
        let mpi = Arc::new(Mpi {
            place,
            options,
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            failure: Mutex::default(),
            broken: AtomicBool::new(false),
        });
        *current = Arc::downgrade(&mpi);
        Ok(mpi)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn start(&self, work: Work) -> Result<Receiver<Result<Answer>>> {
        if let Some(error) = &*locked(&self.failure) {
            return Err(error.clone());
        }
        let (reply, answer) = mpsc::channel();
        let queue = locked(&self.queue);
        let sent = queue.as_ref().map(|queue| queue.send(Command { work, reply }));
        if sent.is_none_or(|sent| sent.is_err()) {
            return Err(silent());
        }
        Ok(answer)
    }

    fn finish(&self, answer: &Receiver<Result<Answer>>) -> Result<Answer> {
        let answer = answer.recv().unwrap_or_else(|_| Err(silent()));
        answer.inspect_err(|error| {
            self.broken.store(true, Ordering::Relaxed);
            locked(&self.failure).get_or_insert_with(|| error.clone());
        })
    }

    fn ask(&self, work: Work) -> Result<Answer> {
        self.finish(&self.start(work)?)
    }

    /// The error of processes that have made different calls.
    fn disagreement(&self, what: &str, signature: u64) -> Error {
        let work = Work::Compare { what: what.to_string(), signature };
        let calls = match self.ask(work) {
            Ok(Answer::Calls(calls)) => calls,
            Ok(_) => return silent(),
            Err(error) => return error,
        };
        let error = self.place.disagreement(what, signature, &calls);
        locked(&self.failure).get_or_insert(error).clone()
    }
}

/// The error if the thread of MPI has ended.
fn silent() -> Error {
    Error::Unavailable("MPI: the thread that exchanges messages has ended.".into())
}

fn unexpected<T>() -> Result<T> {
    Err(silent())
}

impl Workers for Mpi {
    fn rank(&self) -> usize {
        self.place.rank
    }

    fn count(&self) -> usize {
        self.place.names.len()
    }

    fn agree(&self, what: &str, signature: u64, flag: bool) -> Result<bool> {
        match self.ask(Work::Agree { what: what.to_string(), signature, flag })? {
            Answer::Agreed(true, flag) => Ok(flag),
            Answer::Agreed(false, _) => Err(self.disagreement(what, signature)),
            _ => unexpected(),
        }
    }

    fn start_sum(&self, values: Floats) -> Result<PendingSum> {
        let compressed = self.options.compressed;
        let answer = self.start(Work::Sum { values, compressed })?;
        Ok(Box::new(move || match answer.recv().unwrap_or_else(|_| Err(silent()))? {
            Answer::Sum(sum) => Ok(Box::new(sum) as Floats),
            _ => unexpected(),
        }))
    }

    fn gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        match self.ask(Work::Gather(bytes))? {
            Answer::Parts(parts) => Ok(parts),
            _ => unexpected(),
        }
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match self.ask(Work::Broadcast(bytes))? {
            Answer::Parts(mut parts) => Ok(parts.pop().unwrap_or_default()),
            _ => unexpected(),
        }
    }

    fn fail(&self, error: &Error) {
        // A process alone leaves nobody waiting, and may continue.
        if self.count() == 1 {
            return;
        }
        let words =
            message!("{} cannot take part any longer: {error}", self.place.name(self.place.rank));
        let failure = Error::Unavailable(words.clone());
        let first = locked(&self.failure).replace(failure).is_none();
        self.broken.store(true, Ordering::Relaxed);
        let queue = locked(&self.queue);
        if let Some(queue) = queue.as_ref().filter(|_| first) {
            let (reply, answer) = mpsc::channel();
            if queue.send(Command { work: Work::Fail(words.to_string()), reply }).is_ok() {
                let _ = answer.recv();
            }
        }
    }

    fn bytes_per_pack(&self) -> usize {
        self.options.bytes_per_pack
    }
}

impl Drop for Mpi {
    /// Waits for the other processes, so that MPI ends in all of them together.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail(&Error::Check("it panicked.".into()));
        } else if self.count() > 1 && locked(&self.failure).is_none() {
            // The others receive an error if they are elsewhere.
            if let Err(error) = self.agree(END, 0, false) {
                crate::warnings::warn_user!("MultiWorkerMirroredStrategy: {error}");
            }
        }
        drop(locked(&self.queue).take());
        if self.broken.load(Ordering::Relaxed) {
            // The program can still report its error; the thread ends the job if the program does not end.
            return;
        }
        if let Some(thread) = locked(&self.thread).take() {
            let _ = thread.join();
        }
    }
}
