//! The single entry point: every op, forward or backward, eager or traced, is called through [`dispatch`] or
//! [`create`].
//!
//! It checks the call, appends a node to the device's stream, or to a trace (`eager/sink.rs`), and notifies the
//! observers; it never launches a kernel.
//! Reads and assignments of variables go through here, too, so that an [`Observer`] sees the whole program in order: a
//! tape records what gradients need, and an observer that traces can run the program again.

#[cfg(not(target_family = "wasm"))]
mod replica;
mod sink;
#[cfg(not(target_family = "wasm"))]
mod workers;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::{Op, RuntimeScalars, Spec, Value};
use crate::ops::{Operation, Results, Rule};
use crate::runtime::{Device, Mark};
use crate::tensor::Tensor;
use crate::variable::Variable;
#[cfg(not(target_family = "wasm"))]
pub(crate) use replica::{
    Replica, Replicas, ScopeTime, enter_scope_of, in_scope_of, index_in, outside_replicas, replica,
    replicas, run_replicas, updates_replicas,
};
#[cfg(not(target_family = "wasm"))]
pub(crate) use sink::forget_assigned;
pub(crate) use sink::{
    assign_in_trace, branch, in_trace, lifted, placeholder, placeholder_on, release, traced,
    traced_function, traces_function, value_in_trace, variable_made,
};
#[cfg(not(target_family = "wasm"))]
pub(crate) use workers::{Floats, PendingSum, Workers};

/// Calls `op` on tensors of one device.
pub(crate) fn dispatch(op: impl Operation, inputs: &[&Tensor]) -> Result<Tensor> {
    call(Arc::new(op), inputs)
}

/// As [`dispatch`], for an op whose runtime scalars differ from run to run; `owner` returns those of the next run.
pub(crate) fn dispatch_varying(
    op: impl Operation,
    inputs: &[&Tensor],
    owner: Option<Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    call_varying(Arc::new(op), inputs, owner.as_ref())
}

/// As [`dispatch_varying`], but compiled once, not for each type of op.
fn call_varying(
    op: Arc<dyn Operation>,
    inputs: &[&Tensor],
    owner: Option<&Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    let output = call_with(op, inputs, owner.is_some())?;
    if let Some(owner) = owner {
        each_observer(|observer| observer.varies(&output, owner));
    }
    Ok(output)
}

/// As [`dispatch`], but compiled once, not for each type of op.
pub(crate) fn call(op: Arc<dyn Operation>, inputs: &[&Tensor]) -> Result<Tensor> {
    call_with(op, inputs, false)
}

/// As [`call`], for an op whose runtime scalars may vary from run to run.
fn call_with(op: Arc<dyn Operation>, inputs: &[&Tensor], varies: bool) -> Result<Tensor> {
    let device = common_device(op.name(), inputs)?;
    let specs: SmallVec<[&Spec; 3]> = inputs.iter().map(|x| x.spec()).collect();
    let spec = op.infer(&specs)?;
    let values: SmallVec<[_; 3]> = inputs.iter().map(|x| x.value()).collect();
    let value = push(&device, op.clone(), &values, spec, varies)?;
    let output = Tensor::new(device, value);
    each_observer(|observer| observer.called(&op, inputs, &output));
    Ok(output)
}

/// Appends a call to the trace of this thread or to the device's stream.
fn push(
    device: &Device,
    op: Arc<dyn Operation>,
    inputs: &[&Arc<Value>],
    spec: Spec,
    varies: bool,
) -> Result<Arc<Value>> {
    let op: Arc<dyn Op> = op;
    if let Some(value) = sink::record(device, &op, inputs, &spec, varies) {
        return value;
    }
    mark_turn(device);
    #[cfg(not(target_family = "wasm"))]
    crate::runtime::context::log_placement(op.name(), device);
    device.push(op, inputs, spec)
}

/// Notifies the observers of an op that made `output` from `input` outside of a stream.
pub(crate) fn notify(op: impl Operation, input: &Tensor, output: &Tensor) {
    let op: Arc<dyn Operation> = Arc::new(op);
    each_observer(|observer| observer.called(&op, &[input], output));
}

/// Calls an op that has no inputs on the current device, or on `device`. `owner` returns the op's runtime scalars for
/// the next run if they differ from run to run.
pub(crate) fn create(
    op: impl Operation,
    device: Option<&Device>,
    owner: Option<Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    let device = match device {
        Some(device) => device.clone(),
        None => Device::current()?,
    };
    create_on(device, Arc::new(op), owner)
}

/// As [`create`], but compiled once, not for each type of op.
fn create_on(
    device: Device,
    op: Arc<dyn Operation>,
    owner: Option<Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    let spec = op.infer(&[])?;
    // A tape does not need a value that depends on nothing.
    let traced = tracing().then(|| op.clone());
    let output = Tensor::new(device.clone(), push(&device, op, &[], spec, owner.is_some())?);
    if let Some(op) = traced {
        each_observer(|observer| observer.created(&op, owner.as_ref(), &output));
    }
    Ok(output)
}

/// As [`call`], for an op of a function's program; `owner` as in [`dispatch_varying`].
pub(crate) fn call_again(
    op: Arc<dyn Operation>,
    inputs: &[&Tensor],
    device: &Device,
    owner: Option<&Owner<Result<RuntimeScalars>>>,
) -> Result<Tensor> {
    match inputs.is_empty() {
        true => create_on(device.clone(), op, owner.cloned()),
        false => call_varying(op, inputs, owner),
    }
}

/// Notifies the observers of the rule for the gradients of an op that was called.
pub(crate) fn has_rule(output: &Tensor, results: &Results, rule: &Rule) {
    each_observer(|observer| observer.has_rule(output, results, rule));
}

/// `x` under a new identity: no gradient passes from one to the other.
pub(crate) fn stop_gradient(x: &Tensor) -> Tensor {
    let y = x.detached();
    each_observer(|observer| observer.stopped(x, &y));
    y
}

/// Informs the observers that the program read `variable`; `value` is what it holds.
pub(crate) fn read(variable: &Variable, value: &Tensor) {
    each_observer(|observer| observer.read(variable, value));
}

/// Informs the observers that `variable` now holds `value`.
pub(crate) fn assigned(variable: &Variable, value: &Tensor) {
    each_observer(|observer| observer.assigned(variable, value));
}

/// Notifies the observers that a tape has computed gradients, which the calls that follow use.
pub(crate) fn gradients_end(device: &Device) {
    if traces_function() {
        return each_observer(|observer| observer.gradients_ended());
    }
    device.gradients_end();
}

/// What a program does with values besides computing: it prints or checks them.
pub(crate) type Effect = Arc<dyn Fn(&[&Tensor]) + Send + Sync>;

/// Calls `effect` with `inputs`; in the trace of a function, each run of the function calls it instead.
pub(crate) fn effect(inputs: &[&Tensor], effect: impl Fn(&[&Tensor]) + Send + Sync + 'static) {
    if !traces_function() {
        return effect(inputs);
    }
    let effect: Effect = Arc::new(effect);
    each_observer(|observer| observer.happens(inputs, &effect));
}

/// A number on the host that each run of a program changes: an optimizer's count of steps, a metric's count of examples, the
/// position of a generator that the program makes.
pub(crate) trait RunCounter: Send + Sync {
    /// Changes the number. An optimizer's count of steps returns what it was.
    fn advance(&self) -> Result<Option<u64>>;

    /// Undoes [`RunCounter::advance`], after the run has failed.
    fn step_back(&self);

    /// Whether runs need it, once the closure of the trace has ended.
    fn needed(&self) -> bool {
        true
    }
}

/// In the trace of a function: makes each run of the function advance `counter`.
pub(crate) fn advances(counter: &Arc<dyn RunCounter>) {
    each_observer(|observer| observer.counts(counter));
}

/// Returns the scalars that vary from run to run of a program: a learning rate, the counter of a generator. An eager
/// call has read them already; a traced program reads them again at each run.
pub(crate) type Owner<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// The owner that `make` returns if an observer traces the program; otherwise it is not needed, and `make` is not
/// called.
pub(crate) fn owner<T, F>(make: impl FnOnce() -> F) -> Option<Owner<T>>
where
    F: Fn() -> T + Send + Sync + 'static,
{
    tracing().then(|| Arc::new(make()) as Owner<T>)
}

/// Is notified of everything that happens on this thread, in program order.
pub(crate) trait Observer {
    /// The program called an op on tensors.
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor);

    /// The program read a variable; `value` is what it holds.
    fn read(&self, _variable: &Variable, _value: &Tensor) {}

    /// The program called an op without inputs. Observers are notified of this only if one of them traces.
    fn created(
        &self,
        _op: &Arc<dyn Operation>,
        _owner: Option<&Owner<Result<RuntimeScalars>>>,
        _output: &Tensor,
    ) {
    }

    /// The op that made `_output`, which [`Observer::called`] reported, has different runtime scalars in each run.
    fn varies(&self, _output: &Tensor, _owner: &Owner<Result<RuntimeScalars>>) {}

    /// The gradients of `_output`, which [`Observer::called`] reported and which represents these results, are
    /// computed by `_rule`, which may use tensors that are no inputs.
    fn has_rule(&self, _output: &Tensor, _results: &Results, _rule: &Rule) {}

    /// `y` is `x`, and no gradient passes from one to the other.
    fn stopped(&self, _x: &Tensor, _y: &Tensor) {}

    /// A variable now holds `value`.
    fn assigned(&self, _variable: &Variable, _value: &Tensor) {}

    /// A tape has computed gradients.
    fn gradients_ended(&self) {}

    /// The program prints or checks values, at each run.
    fn happens(&self, _inputs: &[&Tensor], _effect: &Effect) {}

    /// Each run advances a number.
    fn counts(&self, _counter: &Arc<dyn RunCounter>) {}

    /// Whether this observer wants gradients of these tensors and variables, if a function of them may be one op for it;
    /// `None` if it must be notified of each call.
    fn wants(&self, _tensors: &[&Tensor], _variables: &[Variable]) -> Option<Vec<bool>> {
        None
    }

    /// True if this observer will run the program again, for which it needs the owners of the scalars that vary.
    fn traces(&self) -> bool {
        false
    }
}

/// An observer in the list of its thread.
struct Listener {
    observer: Rc<dyn Observer>,
    /// While this is not 0, the observer is not notified.
    deaf: Cell<usize>,
}

thread_local! {
    static OBSERVERS: RefCell<Vec<Rc<Listener>>> = const { RefCell::new(Vec::new()) };
    /// An observer has been added on this thread, and no op was called since.
    static TURN: Cell<bool> = const { Cell::new(false) };
}

/// Notifies `observer` of this thread's calls from now on.
pub(crate) fn observe(observer: Rc<dyn Observer>) {
    // A thread that is ending may have lost its list: then the observer is not notified.
    let _ = OBSERVERS.try_with(|observers| {
        let mut observers = observers.borrow_mut();
        // As a rule a program opens its outermost tape where a step begins.
        if observers.is_empty() {
            TURN.set(true);
        }
        observers.push(Rc::new(Listener { observer, deaf: Cell::new(0) }));
    });
}

/// The values after a turn of a loop, from its number, a scalar of `i32`, and the values before it.
pub(crate) type Turn<'a> = &'a dyn Fn(&Tensor, &[Tensor]) -> Result<Vec<Tensor>>;
/// Makes so many turns, from these values.
pub(crate) type Loop = fn(usize, Vec<Tensor>, Turn<'_>) -> Result<Vec<Tensor>>;

/// How calls for another library are made.
#[derive(Clone, Copy)]
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
struct Composing {
    repeat: Option<Loop>,
}

thread_local! {
    /// Whether calls on this thread are for another library.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    static COMPOSING: Cell<Option<Composing>> = const { Cell::new(None) };
}

/// Runs `f`, in which an op whose kernels no other library has is composed of ordinary ones, and of `repeat` if there is one.
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) fn composing<R>(repeat: Option<Loop>, f: impl FnOnce() -> R) -> R {
    struct End(Option<Composing>);
    impl Drop for End {
        fn drop(&mut self) {
            COMPOSING.set(self.0);
        }
    }
    let _end = End(COMPOSING.replace(Some(Composing { repeat })));
    f()
}

/// Whether the calls of this thread are in [`composing`].
pub(crate) fn is_composing() -> bool {
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    return COMPOSING.get().is_some();
    #[cfg(not(all(feature = "saved-model", not(target_family = "wasm"))))]
    return false;
}

/// The loop that [`composing`] has.
pub(crate) fn composed_loop() -> Option<Loop> {
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    return COMPOSING.get().and_then(|composing| composing.repeat);
    #[cfg(not(all(feature = "saved-model", not(target_family = "wasm"))))]
    return None;
}

/// Notifies `observer` of the calls in `f`, which do not begin a new step of the program.
pub(crate) fn observed_by<R>(observer: Rc<dyn Observer>, f: impl FnOnce() -> R) -> R {
    struct Ignore(Rc<dyn Observer>);
    impl Drop for Ignore {
        fn drop(&mut self) {
            ignore(&self.0);
        }
    }
    let turn = TURN.get();
    observe(observer.clone());
    TURN.set(turn);
    let _ignore = Ignore(observer);
    f()
}

/// Runs `f` without notifying `observer` or any observer that was added after it.
pub(crate) fn outside<R>(observer: &dyn Observer, f: impl FnOnce() -> R) -> R {
    let mut inside = false;
    unheard(
        |one| {
            inside |= std::ptr::addr_eq(one, observer);
            inside
        },
        f,
    )
}

/// Runs `f` and notifies only the observers that trace: no tape records it.
pub(crate) fn unrecorded<R>(f: impl FnOnce() -> R) -> R {
    unheard(|observer| !observer.traces(), f)
}

/// Runs `f` and notifies only the observers that do not trace: the program of a function does not contain it.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn untraced<R>(f: impl FnOnce() -> R) -> R {
    unheard(|observer| observer.traces(), f)
}

/// Whether an observer that does not trace, such as a tape, is notified of calls.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn recorded() -> bool {
    let records = |o: &Rc<Listener>| o.deaf.get() == 0 && !o.observer.traces();
    OBSERVERS.try_with(|o| o.borrow().iter().any(records)).unwrap_or(false)
}

/// Runs `f` without notifying any of the present observers.
pub(crate) fn unobserved<R>(f: impl FnOnce() -> R) -> R {
    unheard(|_| true, f)
}

/// Whether an observer of this thread is notified of calls.
pub(crate) fn observed() -> bool {
    let any = |o: &RefCell<Vec<Rc<Listener>>>| o.borrow().iter().any(|o| o.deaf.get() == 0);
    OBSERVERS.try_with(any).unwrap_or(false)
}

/// What [`Observer::wants`] returns, if only one observer of this thread is notified of calls.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn only_observer_wants(
    tensors: &[&Tensor],
    variables: &[Variable],
) -> Option<Vec<bool>> {
    let only = OBSERVERS.try_with(|observers| {
        let observers = observers.borrow();
        let mut audible = observers.iter().filter(|observer| observer.deaf.get() == 0);
        match (audible.next(), audible.next()) {
            (Some(only), None) => Some(only.observer.clone()),
            _ => None,
        }
    });
    only.ok().flatten()?.wants(tensors, variables)
}

/// Runs `f` without notifying the observers that `which` selects.
fn unheard<R>(mut which: impl FnMut(&dyn Observer) -> bool, f: impl FnOnce() -> R) -> R {
    struct Hear(Vec<Rc<Listener>>);
    impl Drop for Hear {
        fn drop(&mut self) {
            self.0.iter().for_each(|listener| listener.deaf.set(listener.deaf.get() - 1));
        }
    }
    let deaf = OBSERVERS.try_with(|observers| {
        let observers = observers.borrow();
        observers.iter().filter(|listener| which(&*listener.observer)).cloned().collect()
    });
    let deaf: Vec<Rc<Listener>> = deaf.unwrap_or_default();
    deaf.iter().for_each(|listener| listener.deaf.set(listener.deaf.get() + 1));
    let _hear = Hear(deaf);
    f()
}

/// Informs the device that a step begins with the next call. Opening the tape does not inform it: only the call shows
/// which device it is for, and by then the program has dropped the values of the last step.
fn mark_turn(device: &Device) {
    if TURN.get() {
        TURN.set(false);
        device.mark(Mark::Turn);
    }
}

/// Stops notifying `observer`.
pub(crate) fn ignore(observer: &Rc<dyn Observer>) {
    let _ = OBSERVERS.try_with(|observers| {
        let mut observers = observers.borrow_mut();
        observers.retain(|o| !std::ptr::addr_eq(Rc::as_ptr(&o.observer), Rc::as_ptr(observer)));
    });
}

/// True if an observer of this thread traces.
fn tracing() -> bool {
    let traces = |o: &Rc<Listener>| o.deaf.get() == 0 && o.observer.traces();
    OBSERVERS.try_with(|o| o.borrow().iter().any(traces)).unwrap_or(false)
}

fn each_observer(f: impl Fn(&dyn Observer)) {
    // An observer may call ops and open tapes, so the list is not borrowed while one is notified. A thread that is
    // ending may have lost its list; then there is no observer.
    let mut at = 0;
    while let Ok(Some(listener)) = OBSERVERS.try_with(|o| o.borrow().get(at).cloned()) {
        if listener.deaf.get() == 0 {
            f(&*listener.observer);
        }
        at += 1;
    }
}

fn common_device(op: &str, inputs: &[&Tensor]) -> Result<Device> {
    let Some(first) = inputs.first() else { return Device::current() };
    match inputs.iter().position(|x| !x.device().same(first.device())) {
        None => Ok(first.device().clone()),
        Some(at) => Err(Error::Device(
            DeviceFault::Mismatch,
            message!(
                "{op}: input 0, {:?}, is on {}, and input {at}, {:?}, on {}. Make them on one device (Device::scope, \
                 Device::set_default), or copy one of them: x.to(&device).",
                first.shape(),
                first.device().named(),
                inputs[at].shape(),
                inputs[at].device().named()
            ),
        )),
    }
}

#[cfg(test)]
#[path = "eager_tests.rs"]
mod tests;
