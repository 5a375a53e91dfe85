//! [`Repeated`]: a step of a library loop, which a function runs as long as the step does the same each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::nest::{Nest, Signature};
use super::traces::{Key, TRACES, Traced, device_of, record, trace};
use crate::eager;
use crate::error::{Error, Result};
use crate::warnings::warn_user;

/// Runs the same code again and again, by a trace for each signature. It traces again at runs 1, 2, 4, 8 and so on and compares
/// the programs. Code that does something else than before, or that cannot be traced, stays eager. Where a pass begins, the code
/// may have changed: then the new trace stays.
pub(crate) struct Repeated<R> {
    /// The call that warnings name.
    call: &'static str,
    state: Mutex<State<R>>,
}

struct State<R> {
    known: HashMap<Key, Known<R>>,
    /// The code stays eager.
    eager: bool,
}

struct Known<R> {
    traced: Arc<Traced<R>>,
    runs: u64,
    /// No call of this pass has run it.
    first_of_pass: bool,
}

/// What a call does.
enum Way<R> {
    Eager,
    Trace,
    Run(Arc<Traced<R>>),
    /// As `Run`, after a comparison with a new trace, which replaces a different one if this is true.
    Compare(Arc<Traced<R>>, bool),
}

impl<R: Nest> Repeated<R> {
    pub(crate) fn new(call: &'static str) -> Self {
        Repeated { call, state: Mutex::new(State { known: HashMap::new(), eager: false }) }
    }

    /// Begins a pass: what the code does may have changed.
    pub(crate) fn begin(&self) {
        self.lock().known.values_mut().for_each(|known| known.first_of_pass = true);
    }

    /// Runs `body`, or what it did.
    ///
    /// # Errors
    /// Those of `body`, and those of the device.
    pub(crate) fn call<A: Nest>(&self, arguments: A, body: &dyn Fn(A) -> Result<R>) -> Result<R> {
        let mut tensors = Vec::new();
        arguments.map_tensors(&mut |tensor| {
            tensors.push(tensor.clone());
            tensor.clone()
        });
        let device = device_of(&tensors)?;
        // Tapes record each call, and a check of numbers names the call that failed.
        if eager::in_trace() || eager::observed() || device.checks_numerics() {
            return body(arguments);
        }
        let mut signature = Signature::default();
        arguments.write_signature(&mut signature);
        let key = (device.number(), signature);
        let way = self.way(&key, device.checks_traces());
        let traced = match &way {
            Way::Eager => return body(arguments),
            Way::Run(traced) => Ok(traced.clone()),
            Way::Trace => trace(&device, &arguments, body).map(|traced| self.keep(key, traced)),
            Way::Compare(traced, may_change) => {
                record(&device, &arguments, body).and_then(|(program, result)| {
                    match traced.concrete.difference(&program)? {
                        None => Ok(traced.clone()),
                        Some(_) if *may_change => Ok(self.keep(key, Traced::new(program, result))),
                        Some(difference) => Err(Error::Trace(difference.into())),
                    }
                })
            }
        };
        let traced = match traced {
            Ok(traced) => traced,
            Err(reason) => {
                // An error of the code is an error of its eager call, too.
                let result = body(arguments)?;
                self.stay_eager(&reason);
                return Ok(result);
            }
        };
        traced.run(&tensors)
    }

    /// `always` compares at each call.
    fn way(&self, key: &Key, always: bool) -> Way<R> {
        let mut state = self.lock();
        if state.eager {
            return Way::Eager;
        }
        let Some(Known { traced, runs, first_of_pass }) = state.known.get_mut(key) else {
            // Shapes that do not come back: the plans are dropped, too.
            if state.known.len() >= TRACES {
                state.known.clear();
            }
            return Way::Trace;
        };
        *runs += 1;
        let may_change = std::mem::take(first_of_pass);
        match always || may_change || runs.is_power_of_two() {
            true => Way::Compare(traced.clone(), may_change),
            false => Way::Run(traced.clone()),
        }
    }

    fn keep(&self, key: Key, traced: Traced<R>) -> Arc<Traced<R>> {
        let traced = Arc::new(traced);
        let known = Known { traced: traced.clone(), runs: 0, first_of_pass: false };
        self.lock().known.insert(key, known);
        traced
    }

    fn stay_eager(&self, reason: &Error) {
        let mut state = self.lock();
        state.known.clear();
        if !std::mem::replace(&mut state.eager, true) {
            warn_user!(
                "{}: the model's step runs eagerly, which is slower, because a function cannot repeat it. {reason} If the \
                 model is to stay as it is, CompileOptions::run_eagerly(true) removes this warning.",
                self.call
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
