//! Gradient tapes. A tape records the calls of the thread that opens it, so the thread keeps it, and C's handle only names it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use wgrad::{GradientTape, PersistentTape, Tensor, TensorOrVariable, Variable};

use crate::arguments::{Outs, objects, out};
use crate::border::call;
use crate::handles::{get, take};
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;
use crate::variable::wgrad_variable;

/// A gradient tape. Only the thread that has opened it can use it.
#[derive(Debug)]
pub struct wgrad_tape {
    _private: (),
}

/// What the handle names.
pub(crate) struct Tape {
    number: u64,
    /// Alive as long as its thread.
    thread: Weak<()>,
}

enum Recorder {
    Once(GradientTape),
    Persistent(PersistentTape),
    Used,
}

struct Tapes {
    thread: Arc<()>,
    open: RefCell<HashMap<u64, Recorder>>,
}

thread_local! {
    static TAPES: Tapes = Tapes { thread: Arc::new(()), open: RefCell::default() };
}

static OPENED: AtomicU64 = AtomicU64::new(0);

fn wrong_thread() -> Failure {
    Failure::new(
        wgrad_status::WGRAD_WRONG_THREAD,
        "the tape records the calls of the thread that opened it, and only that thread can use it.",
    )
}

/// Runs `f` with the tapes of this thread, if `tape` is one of them.
fn own<R>(tape: &Tape, f: impl FnOnce(&Tapes) -> Result<R>) -> Result<R> {
    let ran = TAPES.try_with(|tapes| match tape.thread.upgrade() {
        Some(thread) if Arc::ptr_eq(&thread, &tapes.thread) => f(tapes),
        _ => Err(wrong_thread()),
    });
    ran.unwrap_or_else(|_| Err(wrong_thread()))
}

fn used() -> Failure {
    Failure::new(
        wgrad_status::WGRAD_FAILED_PRECONDITION,
        "the tape has been used; open another one, or a persistent one for several gradients.",
    )
}

/// Opens a tape, which records the calls of this thread until its gradient is computed or it is freed. A `persistent` tape can
/// compute several gradients; any other only one. Variables that are trainable are watched by themselves.
///
/// # Safety
/// `tape` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tape_new(
    persistent: i32,
    tape: *mut *mut wgrad_tape,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(tape, "tape") }?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let opened = TAPES.try_with(|tapes| {
            let recorder = match persistent {
                0 => Recorder::Once(GradientTape::new()),
                _ => Recorder::Persistent(GradientTape::persistent()),
            };
            tapes.open.borrow_mut().insert(number, recorder);
            Tape { number, thread: Arc::downgrade(&tapes.thread) }
        });
        let opened = opened.map_err(|_| wrong_thread())?;
        place.put(Arc::new(opened))
    })
}

/// Watches a tensor, so that the tape computes gradients for it. Call it before the tensor is used.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_tape_watch(
    tape: *const wgrad_tape,
    tensor: *const wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let (tape, tensor) = (get::<Arc<Tape>>(tape, "tape")?, get::<Tensor>(tensor, "tensor")?);
        own(&tape, |tapes| match tapes.open.borrow().get(&tape.number) {
            Some(Recorder::Once(open)) => Ok(open.watch(&tensor)?),
            Some(Recorder::Persistent(open)) => Ok(open.watch(&tensor)?),
            _ => Err(used()),
        })
    })
}

fn gradient(
    tape: &Tape,
    target: &Tensor,
    sources: &[TensorOrVariable],
) -> Result<Vec<Option<Tensor>>> {
    own(tape, |tapes| {
        let taken = match tapes.open.borrow_mut().get_mut(&tape.number) {
            Some(kept @ Recorder::Once(_)) => std::mem::replace(kept, Recorder::Used),
            Some(Recorder::Persistent(_)) => Recorder::Used,
            _ => return Err(used()),
        };
        match taken {
            Recorder::Once(open) => Ok(open.gradient(target, sources)?),
            _ => match tapes.open.borrow().get(&tape.number) {
                Some(Recorder::Persistent(open)) => Ok(open.gradient(target, sources)?),
                _ => Err(used()),
            },
        }
    })
}

/// Computes the gradients of `target`, summed over its elements, for `count` sources, and stores them in `gradients`: a null handle
/// where `target` does not depend on a source. A tape that is not persistent is used up, even if the call fails.
///
/// # Safety
/// `sources` has `count` handles, `gradients` as many places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tape_gradient(
    tape: *const wgrad_tape,
    target: *const wgrad_tensor,
    sources: *const *mut wgrad_tensor,
    count: usize,
    gradients: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(gradients, count, std::ptr::null_mut()) }?;
        let (tape, target) = (get::<Arc<Tape>>(tape, "tape")?, get::<Tensor>(target, "target")?);
        let sources = unsafe { objects::<Tensor>(sources, count, "sources") }?;
        let sources: Vec<TensorOrVariable> = sources.iter().map(TensorOrVariable::from).collect();
        outs.put(gradient(&tape, &target, &sources)?)
    })
}

/// As `wgrad_tape_gradient`, for variables.
///
/// # Safety
/// `variables` has `count` handles, `gradients` as many places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_tape_gradient_variables(
    tape: *const wgrad_tape,
    target: *const wgrad_tensor,
    variables: *const *mut wgrad_variable,
    count: usize,
    gradients: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(gradients, count, std::ptr::null_mut()) }?;
        let (tape, target) = (get::<Arc<Tape>>(tape, "tape")?, get::<Tensor>(target, "target")?);
        let variables = unsafe { objects::<Variable>(variables, count, "variables") }?;
        let sources: Vec<TensorOrVariable> = variables.iter().map(TensorOrVariable::from).collect();
        outs.put(gradient(&tape, &target, &sources)?)
    })
}

/// Ends the tape and frees it, in its thread; if that has ended, in any thread. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_tape_free(tape: *mut wgrad_tape) -> wgrad_status {
    call(|| {
        if tape.is_null() {
            return Ok(());
        }
        let named = get::<Arc<Tape>>(tape, "tape")?;
        if named.thread.strong_count() > 0 {
            let removed = own(&named, |tapes| Ok(tapes.open.borrow_mut().remove(&named.number)))?;
            drop(removed);
        }
        take::<Arc<Tape>>(tape, "tape").map(drop)
    })
}
