//! The one door: every op, forward or backward, eager or traced, is called through [`dispatch`].
//!
//! It checks, puts a node into the device's stream, and tells those who watch (tapes). It never launches.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{DeviceFault, Error, Result, message};
use crate::graph::Spec;
use crate::ops::Operation;
use crate::runtime::{Device, Mark};
use crate::tensor::Tensor;

/// Calls `op` on tensors of one device.
pub(crate) fn dispatch(op: impl Operation, inputs: &[&Tensor]) -> Result<Tensor> {
    call(Arc::new(op), inputs)
}

/// As [`dispatch`], compiled once and not for each type of op.
fn call(op: Arc<dyn Operation>, inputs: &[&Tensor]) -> Result<Tensor> {
    let device = common_device(op.name(), inputs)?;
    let specs: SmallVec<[&Spec; 3]> = inputs.iter().map(|x| x.spec()).collect();
    let spec = op.infer(&specs)?;
    let values: SmallVec<[_; 3]> = inputs.iter().map(|x| x.value()).collect();
    mark_turn(&device);
    let value = device.push(op.clone(), &values, spec)?;
    let output = Tensor::new(device, value);
    each_observer(|observer| observer.called(&op, inputs, &output));
    Ok(output)
}

/// Calls an op that has no inputs on the current device, or on `device`.
pub(crate) fn create(op: impl Operation, device: Option<&Device>) -> Result<Tensor> {
    let device = match device {
        Some(device) => device.clone(),
        None => Device::current()?,
    };
    // No tape cares for a value that depends on nothing.
    let spec = op.infer(&[])?;
    mark_turn(&device);
    let value = device.push(Arc::new(op), &[], spec)?;
    Ok(Tensor::new(device, value))
}

/// What is told of every call on this thread.
pub(crate) trait Observer {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor);

    /// A variable was read; `tensor` is its value.
    fn read(&self, variable: u64, trainable: bool, tensor: &Tensor);
}

thread_local! {
    static OBSERVERS: RefCell<Vec<Rc<dyn Observer>>> = const { RefCell::new(Vec::new()) };
    /// This thread has begun to be observed, and has called nothing since.
    static TURN: Cell<bool> = const { Cell::new(false) };
}

/// Begins to tell `observer` of this thread's calls.
pub(crate) fn observe(observer: Rc<dyn Observer>) {
    OBSERVERS.with_borrow_mut(|observers| {
        // As a rule a program opens its outermost tape where a step begins.
        if observers.is_empty() {
            TURN.set(true);
        }
        observers.push(observer);
    });
}

/// Tells the device of a turn that begins with the call that it is about to get. Not when the tape is opened: which
/// device it is for is known now, and what the turn before has left is dropped by now.
fn mark_turn(device: &Device) {
    if TURN.get() {
        TURN.set(false);
        device.mark(Mark::Turn);
    }
}

/// Stops telling `observer`.
pub(crate) fn ignore(observer: &Rc<dyn Observer>) {
    let _ = OBSERVERS.try_with(|observers| {
        let mut observers = observers.borrow_mut();
        observers.retain(|o| !std::ptr::addr_eq(Rc::as_ptr(o), Rc::as_ptr(observer)));
    });
}

pub(crate) fn variable_read(variable: u64, trainable: bool, tensor: &Tensor) {
    each_observer(|observer| observer.read(variable, trainable, tensor));
}

fn each_observer(f: impl Fn(&dyn Observer)) {
    // While a thread ends, its list may be gone already, and nobody is left to be told.
    let _ = OBSERVERS.try_with(|observers| observers.borrow().iter().for_each(|o| f(&**o)));
}

fn common_device(op: &str, inputs: &[&Tensor]) -> Result<Device> {
    let Some(first) = inputs.first() else { return Device::current() };
    match inputs.iter().find(|x| !x.device().same(first.device())) {
        None => Ok(first.device().clone()),
        Some(other) => Err(Error::Device(
            DeviceFault::Mismatch,
            message!(
                "{op}: one tensor is on {:?} and another on {:?}. Make them on one device (Device::scope, \
                 Device::set_default), or bring one over through the host: to_vec and from_slice.",
                first.device(),
                other.device()
            ),
        )),
    }
}
