//! The record of a tape: for each differentiable call on something that it watches, the op, the identities of its
//! inputs and its result, and the values that the op's rule needs.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::{Arc, Once};

use smallvec::SmallVec;

use crate::eager::Observer;
use crate::graph::Mixer;
use crate::ops::{Keep, KeptInput, Operation};
use crate::tensor::Tensor;
use crate::variable::Variable;

#[doc(hidden)]
pub struct Recorder {
    state: RefCell<State>,
    paused: Cell<usize>,
    /// Whether it may come to record its own gradients, for which a function must not be one op.
    sees_every_call: Cell<bool>,
    watch_variables: bool,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("watch_variables", &self.watch_variables)
            .finish_non_exhaustive()
    }
}

/// A map from the ids of tensors or variables.
pub(super) type ById<T> = HashMap<u64, T, BuildHasherDefault<Mixer>>;
/// Usually a program reads a variable once while a tape is open.
pub(super) type ReadIds = SmallVec<[u64; 1]>;
pub(super) type Ids = HashSet<u64, BuildHasherDefault<Mixer>>;

#[derive(Default)]
struct State {
    /// Ids of the tensors that the tape watches, and of those that depend on them.
    tracked: Ids,
    entries: Vec<Rc<Entry>>,
    /// The ids under which the program read a variable.
    reads: ById<ReadIds>,
    /// The variables that were read while the tape watched them, in that order.
    variables: Vec<Variable>,
    watched_variables: Ids,
    /// The ops with tracked inputs that pass no gradient on, as in TensorFlow.
    stops: Vec<&'static str>,
}

pub(super) struct Entry {
    pub(super) op: Arc<dyn Operation>,
    pub(super) inputs: SmallVec<[KeptInput; 3]>,
    pub(super) output_id: u64,
    pub(super) output: Option<Tensor>,
}

/// How many of these ops a message names.
const STOPS: usize = 8;
/// A tape with this many calls may have been left open by mistake, so it warns: this is more than four of the longest
/// streams.
const MANY: usize = 1 << 14;

/// Warns once per program; otherwise a loop with such a tape would warn in every iteration.
fn warn_of_many() {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        crate::warnings::warn_user!(
            "GradientTape: a tape has recorded {MANY} calls, and keeps the values that their gradients need. If it is still \
             open by mistake, end it: by gradient, by stop, or with the function of GradientTape::record."
        );
    });
}

impl Recorder {
    pub(super) fn new(watch_variables: bool) -> Self {
        Recorder {
            state: RefCell::default(),
            paused: Cell::new(0),
            sees_every_call: Cell::new(false),
            watch_variables,
        }
    }

    pub(super) fn see_every_call(&self) {
        self.sees_every_call.set(true);
    }

    pub(super) fn watch(&self, tensor: u64) {
        self.state.borrow_mut().tracked.insert(tensor);
    }

    fn watches(&self, state: &State, variable: &Variable) -> bool {
        (variable.trainable() && self.watch_variables)
            || state.watched_variables.contains(&variable.id())
    }

    pub(super) fn watch_variable(&self, variable: u64) {
        self.state.borrow_mut().watched_variables.insert(variable);
    }

    pub(super) fn paused<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Resume<'a>(&'a Cell<usize>);
        impl Drop for Resume<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.paused.set(self.paused.get() + 1);
        let _resume = Resume(&self.paused);
        f()
    }

    /// Records nothing until `resume`, as often as both are called.
    pub(super) fn pause(&self) {
        self.paused.set(self.paused.get() + 1);
    }

    pub(super) fn resume(&self) {
        self.paused.set(self.paused.get().saturating_sub(1));
    }

    /// The entries so far; with `take` they are moved out of the recorder.
    pub(super) fn entries(&self, take: bool) -> Vec<Rc<Entry>> {
        let mut state = self.state.borrow_mut();
        if take { std::mem::take(&mut state.entries) } else { state.entries.clone() }
    }

    /// The ids under which the program read `variable` while the tape watched it.
    pub(super) fn reads_of(&self, variable: u64) -> ReadIds {
        self.state.borrow().reads.get(&variable).cloned().unwrap_or_default()
    }

    pub(super) fn watched_variables(&self) -> Vec<Variable> {
        self.state.borrow().variables.clone()
    }

    pub(super) fn reset(&self) {
        let forgotten = self.state.take();
        drop(forgotten);
    }

    pub(super) fn stops(&self) -> Vec<&'static str> {
        self.state.borrow().stops.clone()
    }
}

impl Observer for Recorder {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        if self.paused.get() > 0 {
            return;
        }
        let mut state = self.state.borrow_mut();
        if !inputs.iter().any(|x| state.tracked.contains(&x.id())) {
            return;
        }
        let keep = op.keep();
        if let Keep::NoGradient(reason) = keep {
            if !state.stops.contains(&reason) && state.stops.len() < STOPS {
                state.stops.push(reason);
            }
            return;
        }
        let kept = matches!(keep, Keep::Inputs | Keep::Both);
        let input = |x: &&Tensor| KeptInput {
            id: x.id(),
            spec: x.spec().clone(),
            kept: kept.then(|| (*x).clone()),
        };
        state.tracked.insert(output.id());
        state.entries.push(Rc::new(Entry {
            op: op.clone(),
            inputs: inputs.iter().map(input).collect(),
            output_id: output.id(),
            output: matches!(keep, Keep::Output | Keep::Both).then(|| output.clone()),
        }));
        let many = state.entries.len() == MANY;
        drop(state);
        if many {
            warn_of_many();
        }
    }

    fn wants(&self, tensors: &[&Tensor], variables: &[Variable]) -> Option<Vec<bool>> {
        if self.sees_every_call.get() {
            return None;
        }
        let records = self.paused.get() == 0;
        let state = self.state.borrow();
        let tracks = |x: &Tensor| x.dtype().is_float() && state.tracked.contains(&x.id());
        let of_tensors = tensors.iter().map(|x| records && tracks(x));
        let of_variables = variables.iter().map(|variable| {
            let watches = self.watches(&state, variable) && variable.dtype().is_float();
            records && (watches || tracks(&variable.peek()))
        });
        Some(of_tensors.chain(of_variables).collect())
    }

    fn read(&self, variable: &Variable, value: &Tensor) {
        if self.paused.get() > 0 {
            return;
        }
        let mut state = self.state.borrow_mut();
        if self.watches(&state, variable)
            && value.dtype().is_float()
            && state.tracked.insert(value.id())
        {
            let State { reads, variables, .. } = &mut *state;
            let ids = reads.entry(variable.id()).or_default();
            if ids.is_empty() {
                variables.push(variable.clone());
            }
            ids.push(value.id());
        }
    }
}
