//! The replica that a thread computes for, while a strategy runs a program on several devices, and the calls in which replicas
//! meet.

use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Workers;
use crate::error::{Error, Result, message};
use crate::runtime::{Device, DeviceScope};
use crate::tensor::Tensor;
use crate::variable::{Variable, WeakVariable};

/// The devices of a strategy in this process, one for each replica, and the other processes that have replicas.
pub(crate) struct Replicas {
    devices: Vec<Device>,
    workers: Option<Arc<dyn Workers>>,
    /// Variables whose values the chief has not sent yet.
    made: Mutex<Vec<WeakVariable>>,
    /// The models that the processes have compared.
    compared: Mutex<Vec<u64>>,
    /// Trainable variables have one value, on the first device.
    central: bool,
    sums: Sums,
}

/// The sum of each tensor over all replicas: of the call, this, a list of each replica of this process, the signature of the call, and the
/// number of devices that receive the sums.
pub(crate) type Sums =
    fn(&str, &Replicas, Vec<Vec<Option<Tensor>>>, u64, usize) -> Result<Vec<Vec<Option<Tensor>>>>;

impl Replicas {
    fn with(devices: Vec<Device>, workers: Option<Arc<dyn Workers>>, sums: Sums) -> Self {
        let (made, compared) = (Mutex::default(), Mutex::default());
        Replicas { devices, workers, made, compared, central: false, sums }
    }

    /// The sum of each tensor over all replicas of all processes, on the first `wanted` devices.
    pub(crate) fn sums(
        &self,
        what: &str,
        tensors: Vec<Vec<Option<Tensor>>>,
        wanted: usize,
    ) -> Result<Vec<Vec<Option<Tensor>>>> {
        (self.sums)(what, self, tensors, 0, wanted)
    }

    /// Replicas whose trainable variables are on the first device alone.
    pub(crate) fn central(devices: Vec<Device>, sums: Sums) -> Arc<Self> {
        Arc::new(Replicas { central: true, ..Replicas::with(devices, None, sums) })
    }

    pub(crate) fn is_central(&self) -> bool {
        self.central
    }

    pub(crate) fn new(devices: Vec<Device>, sums: Sums) -> Arc<Self> {
        Arc::new(Replicas::with(devices, None, sums))
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn of_workers(
        devices: Vec<Device>,
        workers: Arc<dyn Workers>,
        sums: Sums,
    ) -> Arc<Self> {
        Arc::new(Replicas::with(devices, Some(workers), sums))
    }

    /// The processes of the strategy, if there are several.
    pub(crate) fn workers(&self) -> Option<&Arc<dyn Workers>> {
        self.workers.as_ref().filter(|workers| workers.count() > 1)
    }

    /// The number of replicas in all processes.
    pub(crate) fn in_sync(&self) -> usize {
        self.devices.len() * self.workers().map_or(1, |workers| workers.count())
    }

    /// The number, among the replicas of all processes, of the first one of this process.
    pub(crate) fn first(&self) -> usize {
        self.devices.len() * self.workers().map_or(0, |workers| workers.rank())
    }

    /// Records a variable that was made for all replicas. An optimizer's slots need not be sent: each process computes them from
    /// the same weights.
    pub(crate) fn made(&self, variable: &Variable) {
        if self.workers().is_some() && !updates_replicas() {
            self.new_variables().push(variable.downgrade());
        }
    }

    /// The variables that were made since the last call.
    pub(crate) fn take_made(&self) -> Vec<Variable> {
        std::mem::take(&mut *self.new_variables())
            .iter()
            .filter_map(WeakVariable::upgrade)
            .collect()
    }

    /// Whether the processes have to compare this model, because they have not yet.
    pub(crate) fn compares(&self, model: u64) -> bool {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let new = !compared.contains(&model);
        if new {
            compared.push(model);
        }
        new
    }

    fn new_variables(&self) -> MutexGuard<'_, Vec<WeakVariable>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The number of replicas in this process.
    pub(crate) fn count(&self) -> usize {
        self.devices.len()
    }

    /// A replica in a message.
    fn name(&self, index: usize) -> String {
        let device = &self.devices[index];
        let name = device.name().unwrap_or_else(|| device.adapter().to_string());
        format!("replica {index} ({name})")
    }
}

/// The replica of a thread, in one run of a program.
#[derive(Clone)]
pub(crate) struct Replica {
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) index: usize,
    meeting: Arc<Meeting>,
    /// The call updates the variables of all replicas, one replica after another.
    updating: bool,
}

/// What this thread runs for a strategy.
#[derive(Clone)]
enum Context {
    /// The strategy's scope: what is made here is made for all replicas.
    Scope(Arc<Replicas>),
    Replica(Replica),
}

thread_local! {
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

fn context() -> Option<Context> {
    CONTEXT.try_with(|context| context.borrow().clone()).ok().flatten()
}

/// Restores what the thread was in before.
struct Entered(Option<Context>);

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.0.take();
        let _ = CONTEXT.try_with(|context| *context.borrow_mut() = before);
    }
}

fn enter(context: Option<Context>) -> Entered {
    Entered(CONTEXT.try_with(|own| own.replace(context)).ok().flatten())
}

fn within<R>(context: Option<Context>, f: impl FnOnce() -> R) -> R {
    let _entered = enter(context);
    f()
}

/// The time in which a thread is in the scope of a strategy; empty for a replica of the strategy, which is in it already.
pub(crate) struct ScopeTime {
    // Fields are dropped in this order.
    _device: Option<DeviceScope>,
    _entered: Option<Entered>,
}

/// Enters the scope of `replicas` until the result is dropped.
pub(crate) fn enter_scope_of(replicas: &Arc<Replicas>) -> ScopeTime {
    if index_in(replicas).is_some() {
        return ScopeTime { _device: None, _entered: None };
    }
    let entered = enter(Some(Context::Scope(replicas.clone())));
    ScopeTime { _device: Some(replicas.devices[0].enter()), _entered: Some(entered) }
}

/// Runs `f` in the scope of `replicas`.
pub(crate) fn in_scope_of<R>(replicas: &Arc<Replicas>, f: impl FnOnce() -> R) -> R {
    let _scope = enter_scope_of(replicas);
    f()
}

/// Runs `f` outside of any scope or replica.
pub(crate) fn outside_replicas<R>(f: impl FnOnce() -> R) -> R {
    within(None, f)
}

/// The replicas of the scope or run that this thread is in.
pub(crate) fn replicas() -> Option<Arc<Replicas>> {
    context().map(|context| match context {
        Context::Scope(replicas) => replicas,
        Context::Replica(replica) => replica.replicas,
    })
}

/// The replica that this thread computes for.
pub(crate) fn replica() -> Option<Replica> {
    match context() {
        Some(Context::Replica(replica)) => Some(replica),
        _ => None,
    }
}

/// Which of `replicas` this thread computes for.
pub(crate) fn index_in(replicas: &Arc<Replicas>) -> Option<usize> {
    CONTEXT
        .try_with(|context| match &*context.borrow() {
            Some(Context::Replica(own)) if Arc::ptr_eq(&own.replicas, replicas) => Some(own.index),
            _ => None,
        })
        .ok()
        .flatten()
}

/// Whether the calls of this thread may change a variable of one replica, because all replicas are changed alike.
pub(crate) fn updates_replicas() -> bool {
    replica().is_some_and(|replica| replica.updating)
}

impl Replica {
    /// Runs `f` as the replica of this index, when all replicas have met: what it changes, it changes for each replica.
    pub(crate) fn updating<R>(&self, index: usize, f: impl FnOnce() -> R) -> R {
        let replica = Replica { index, updating: true, ..self.clone() };
        let device = self.replicas.devices[index].clone();
        within(Some(Context::Replica(replica)), || device.scope(f))
    }

    /// The call `what`, which all replicas make: the first one passes the inputs of all to `f`, and each gets its own result.
    ///
    /// # Errors
    /// That of `f`, for all replicas; [`Error::Check`] if a replica ends without making the call, or makes another one.
    pub(crate) fn meet<T: Send + 'static, R: Send + 'static>(
        &self,
        what: &'static str,
        input: T,
        f: impl FnOnce(Vec<T>) -> Result<Vec<R>>,
    ) -> Result<R> {
        if self.updating {
            return Err(Error::Check(message!(
                "{what}: this is called by the step of an optimizer, which runs once for all replicas and cannot wait for them. \
                 Make the call before or after the step."
            )));
        }
        if super::in_trace() {
            return Err(Error::Check(message!(
                "{what}: this needs the values of all replicas, so it cannot be part of a function or of the first call of a \
                 model's layers. Call it outside of them."
            )));
        }
        self.meeting.come(self.index, Arrival { what, input: Box::new(input) });
        if self.index > 0 {
            let result = self.meeting.result(&self.replicas, self.index, what)?;
            return Ok(*result.downcast::<R>().expect("replica 0 made the same call"));
        }
        let all = self.meeting.all(&self.replicas, what);
        let inputs = all.and_then(|all| {
            let same = all.iter().position(|arrival| !arrival.input.is::<T>() || arrival.what != what);
            match same {
                None => Ok(all),
                Some(other) => Err(Error::Check(message!(
                    "{what}: {} called {} meanwhile. All replicas have to make the same calls in the same order.",
                    self.replicas.name(other),
                    all[other].what
                ))),
            }
        });
        let results = inputs.and_then(|all| {
            let input = |arrival: Arrival| *arrival.input.downcast::<T>().expect("it was checked");
            f(all.into_iter().map(input).collect())
        });
        match results {
            Ok(results) => {
                let mut results = results.into_iter();
                let own = results.next().expect("there is a result for each replica");
                self.meeting
                    .give(results.map(|result| Ok(Box::new(result) as Box<dyn Any + Send>)));
                Ok(own)
            }
            Err(error) => {
                let others = self.replicas.count() - 1;
                self.meeting.give((0..others).map(|_| Err(error.clone())));
                Err(error)
            }
        }
    }
}

struct Arrival {
    what: &'static str,
    input: Box<dyn Any + Send>,
}

/// Where the replicas of a run meet.
struct Meeting {
    state: Mutex<MeetingState>,
    changed: Condvar,
}

struct MeetingState {
    arrived: Vec<Option<Arrival>>,
    results: Vec<Option<Result<Box<dyn Any + Send>>>>,
    /// The replicas that have ended, with their errors.
    ended: Vec<Option<Option<String>>>,
}

impl Meeting {
    fn new(replicas: usize) -> Arc<Self> {
        let state = MeetingState {
            arrived: (0..replicas).map(|_| None).collect(),
            results: (0..replicas).map(|_| None).collect(),
            ended: vec![None; replicas],
        };
        Arc::new(Meeting { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, MeetingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come(&self, index: usize, arrival: Arrival) {
        self.lock().arrived[index] = Some(arrival);
        self.changed.notify_all();
    }

    /// What all replicas have brought; an error if one has ended.
    fn all(&self, replicas: &Replicas, what: &str) -> Result<Vec<Arrival>> {
        let mut state = self.lock();
        loop {
            let absent = |at: usize| state.arrived[at].is_none();
            if let Some(ended) =
                (0..replicas.count()).find(|&at| absent(at) && state.ended[at].is_some())
            {
                return Err(missing(replicas, ended, state.ended[ended].clone().flatten(), what));
            }
            if !(0..replicas.count()).any(absent) {
                return Ok(state.arrived.iter_mut().filter_map(Option::take).collect());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The results of the other replicas, in order.
    fn give(&self, results: impl Iterator<Item = Result<Box<dyn Any + Send>>>) {
        let mut state = self.lock();
        for (at, result) in (1..).zip(results) {
            // One that has not come is not waiting for a result.
            state.arrived[at] = None;
            state.results[at] = Some(result);
        }
        self.changed.notify_all();
    }

    fn result(&self, replicas: &Replicas, index: usize, what: &str) -> Result<Box<dyn Any + Send>> {
        let mut state = self.lock();
        loop {
            if let Some(result) = state.results[index].take() {
                return result;
            }
            if let Some(error) = state.ended[0].clone() {
                return Err(missing(replicas, 0, error, what));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn missing(replicas: &Replicas, index: usize, error: Option<String>, what: &str) -> Error {
    let why = match error {
        Some(error) => format!("ended before this call: {error}"),
        None => "ended without making this call".to_string(),
    };
    Error::Check(message!(
        "{what}: {} {why} All replicas have to make the same calls in the same order.",
        replicas.name(index)
    ))
}

/// Runs `f` for each replica, each in a thread of its own, on its device. Returns the results in order.
///
/// # Errors
/// The error of the replica that failed first.
pub(crate) fn run_replicas<R: Send>(
    replicas: &Arc<Replicas>,
    f: impl Fn(usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let meeting = Meeting::new(replicas.count());
    let run = |index: usize| {
        let replica = Replica {
            replicas: replicas.clone(),
            index,
            meeting: meeting.clone(),
            updating: false,
        };
        let _ended = Ended { meeting: &meeting, index };
        let device = &replicas.devices[index];
        let result = within(Some(Context::Replica(replica)), || device.scope(|| f(index)));
        if let Err(error) = &result {
            meeting.lock().ended[index] = Some(Some(error.to_string()));
        }
        result
    };
    if replicas.count() == 1 {
        return run(0).map(|result| vec![result]);
    }
    let mut results = Vec::with_capacity(replicas.count());
    let mut panic = None;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..replicas.count())
            .map(|index| {
                let name = format!("wgrad replica {index}");
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || run(index))
            })
            .collect();
        for (index, thread) in threads.into_iter().enumerate() {
            results.push(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|payload| {
                    panic.get_or_insert(payload);
                    Err(Error::Check(message!("{} panicked.", replicas.name(index))))
                }),
                Err(error) => {
                    // The others must not wait for it.
                    drop(Ended { meeting: &meeting, index });
                    Err(Error::Check(message!(
                        "{}: the system provides no thread: {error}.",
                        replicas.name(index)
                    )))
                }
            });
        }
    });
    if let Some(payload) = panic {
        std::panic::resume_unwind(payload);
    }
    // Where replicas wait for one another, the failure of one is the failure of all; its own error names the cause.
    let all: Vec<String> = meeting.lock().ended.iter().flatten().flatten().cloned().collect();
    let is_cause = |error: &Error| {
        let text = error.to_string();
        !all.iter().any(|other| *other != text && text.contains(&**other))
    };
    let mut failed: Vec<Error> = Vec::new();
    let mut done = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(result) => done.push(result),
            Err(error) => failed.push(error),
        }
    }
    match failed.iter().position(is_cause) {
        Some(cause) => Err(failed.swap_remove(cause)),
        None => failed.pop().map_or(Ok(done), Err),
    }
}

/// Records the end of a replica, even if it panics.
struct Ended<'a> {
    meeting: &'a Meeting,
    index: usize,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.meeting.lock().ended[self.index].get_or_insert(None);
        self.meeting.changed.notify_all();
    }
}
