//! Where calls go: to the stream of their device or, while this thread traces, to a trace.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Op, Spec, Value, outside_its_trace};
use crate::runtime::{Device, Trace};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A trace that is open on this thread.
struct Sink {
    trace: RefCell<Trace>,
    /// The values that the traced program has assigned, by their variables. The variables themselves keep theirs.
    assigned: RefCell<HashMap<u64, Tensor>>,
    /// How many calls of [`lifted`] are active inside the trace.
    lifted: Cell<usize>,
    purpose: Purpose,
    /// How many variables the program has made in the trace.
    variables: Cell<usize>,
}

/// What a trace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A trial call, which finds shapes and makes weights.
    Trial,
    /// A function, whose calls run the recorded program.
    Function,
}

thread_local! {
    /// The open traces, the innermost last: there are several only where calls are lifted out of one.
    static SINKS: RefCell<Vec<Rc<Sink>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f`, whose calls are recorded and do not run; assignments change no variable. Values that outlive `f` are then
/// computed, or fail if they depend on a placeholder. Inside another trial, `f` belongs to that trial.
pub(crate) fn traced<R>(f: impl FnOnce() -> R) -> R {
    if open().is_some_and(|sink| sink.purpose == Purpose::Trial) {
        return f();
    }
    trace_for(Purpose::Trial, f)
}

/// As [`traced`], for a function: reads of variables are placeholders, and so are numbers that vary from run to run. Also
/// returns how many variables `f` has made.
pub(crate) fn traced_function<R>(f: impl FnOnce() -> R) -> (R, usize) {
    trace_for(Purpose::Function, || {
        let result = f();
        (result, innermost().map_or(0, |sink| sink.variables.get()))
    })
}

fn trace_for<R>(purpose: Purpose, f: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            let sink = SINKS.try_with(|sinks| sinks.borrow_mut().pop()).ok().flatten();
            // No other handle is left: calls hold one only while they run.
            if let Some(Ok(sink)) = sink.map(Rc::try_unwrap) {
                drop(sink.assigned);
                sink.trace.into_inner().end();
            }
        }
    }
    let sink = Sink {
        trace: RefCell::new(Trace::new()),
        assigned: RefCell::default(),
        lifted: Cell::new(0),
        purpose,
        variables: Cell::new(0),
    };
    // A thread that is ending may have lost its list; then no tensor can be made any more.
    let _ = SINKS.try_with(|sinks| sinks.borrow_mut().push(Rc::new(sink)));
    let _end = End;
    f()
}

/// Whether this thread traces.
pub(crate) fn in_trace() -> bool {
    innermost().is_some()
}

/// Whether this thread records the calls of a function.
pub(crate) fn traces_function() -> bool {
    open().is_some_and(|sink| sink.purpose == Purpose::Function)
}

/// Counts a variable that the program makes, for the function that is being traced around it.
pub(crate) fn variable_made() {
    let count = |sinks: &RefCell<Vec<Rc<Sink>>>| {
        for sink in sinks.borrow().iter().filter(|sink| sink.purpose == Purpose::Function) {
            sink.variables.set(sink.variables.get() + 1);
        }
    };
    let _ = SINKS.try_with(count);
}

/// Runs `f`, whose calls run even if this thread traces: TensorFlow's `init_scope`.
pub(crate) fn lifted<R>(f: impl FnOnce() -> R) -> R {
    struct Lower(Rc<Sink>);
    impl Drop for Lower {
        fn drop(&mut self) {
            self.0.lifted.set(self.0.lifted.get() - 1);
        }
    }
    let _lower = innermost().map(|sink| {
        sink.lifted.set(sink.lifted.get() + 1);
        Lower(sink)
    });
    f()
}

/// A tensor without a value, on which the trace of this thread can call ops.
pub(crate) fn placeholder(spec: Spec) -> Result<Tensor> {
    Ok(placeholder_on(&Device::current()?, spec))
}

/// As [`placeholder`], on `device`.
pub(crate) fn placeholder_on(device: &Device, spec: Spec) -> Tensor {
    let value = match innermost() {
        Some(sink) => sink.trace.borrow().placeholder(spec),
        // Without a trace, every call on it fails.
        None => Trace::new().placeholder(spec),
    };
    Tensor::new(device.clone(), value)
}

/// Records a call if this thread traces.
pub(super) fn record(
    device: &Device,
    op: &Arc<dyn Op>,
    inputs: &[&Arc<Value>],
    spec: &Spec,
    varies: bool,
) -> Option<Result<Arc<Value>>> {
    let sink = open()?;
    // A run of the function computes it with other numbers than the trace.
    let varies = varies && sink.purpose == Purpose::Function;
    let recorded = sink.trace.borrow_mut().push(device, op.clone(), inputs, spec.clone(), varies);
    Some(recorded)
}

/// Before a read of `x`: sends the traced calls that make it to its device.
///
/// # Errors
/// [`Error::Trace`](crate::Error::Trace) if `x` depends on a placeholder.
pub(crate) fn release(x: &Tensor) -> Result<()> {
    if x.value().traced().is_none() {
        return Ok(());
    }
    match innermost() {
        Some(sink) => sink.trace.borrow_mut().release(x.value()),
        None => Err(outside_its_trace(x.value())),
    }
}

/// The value of `variable` in the trace of this thread: what the traced program has assigned to it or, in a function, a
/// placeholder.
pub(crate) fn value_in_trace(variable: &Variable) -> Option<Tensor> {
    let sink = open()?;
    if let Some(value) = sink.assigned.borrow().get(&variable.id()) {
        return Some(value.clone());
    }
    if sink.purpose == Purpose::Trial {
        return None;
    }
    let now = variable.peek();
    let value = sink.trace.borrow().placeholder(now.spec().clone());
    let value = Tensor::new(now.device().clone(), value);
    sink.assigned.borrow_mut().insert(variable.id(), value.clone());
    Some(value)
}

/// Runs `f`, a part of the traced program that a run may skip or repeat: after it, nothing is known of the variables that it
/// has assigned.
pub(crate) fn branch<R>(f: impl FnOnce() -> R) -> R {
    let Some(sink) = open() else { return f() };
    let before = sink.assigned.borrow().clone();
    let result = f();
    let mut assigned = sink.assigned.borrow_mut();
    for (id, value) in assigned.iter_mut() {
        if before.get(id).is_none_or(|old| old.id() != value.id()) {
            let unknown = sink.trace.borrow().placeholder(value.spec().clone());
            *value = Tensor::new(value.device().clone(), unknown);
        }
    }
    result
}

/// Before a part of the traced program that a run repeats: nothing is known in it of the variables that the program has assigned.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn forget_assigned() {
    let Some(sink) = open() else { return };
    for value in sink.assigned.borrow_mut().values_mut() {
        let unknown = sink.trace.borrow().placeholder(value.spec().clone());
        *value = Tensor::new(value.device().clone(), unknown);
    }
}

/// Records an assignment if this thread traces; otherwise returns false.
pub(crate) fn assign_in_trace(variable: &Variable, value: &Tensor) -> bool {
    let Some(sink) = open() else { return false };
    let before = sink.assigned.borrow_mut().insert(variable.id(), value.detached());
    drop(before);
    true
}

fn innermost() -> Option<Rc<Sink>> {
    SINKS.try_with(|sinks| sinks.borrow().last().cloned()).ok().flatten()
}

/// The sink that records the calls of this thread.
fn open() -> Option<Rc<Sink>> {
    innermost().filter(|sink| sink.lifted.get() == 0)
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
