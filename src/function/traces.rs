//! [`Traces`]: the traces of a function by their signatures.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::FunctionOptions;
use super::concrete::Concrete;
use super::concrete_function::{ConcreteFunction, Trace};
#[cfg(not(target_family = "wasm"))]
use super::forward_backward::OuterTapes;
use super::nest::{Nest, Signature};
use super::program::Program;
use super::recorder::Recorder;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::support::sort::sort_by;
use crate::tensor::Tensor;

/// What a program can learn of a function's traces. Texts are made by the caller, so that a page that shows none does not load
/// the code that prints the attributes of every op.
pub(super) trait Inspect: Send + Sync {
    fn count(&self) -> usize;

    /// Calls `f` with the signature of each present trace and with the trace, in the signatures' order.
    fn each(&self, f: &mut dyn FnMut(&str, &Concrete));
}

/// The traces of a function.
pub(super) struct Traces<R> {
    options: FunctionOptions,
    known: Mutex<Known<R>>,
}

struct Known<R> {
    traced: HashMap<Key, Kept<R>>,
    /// With `reduce_retracing`, the signatures of calls that ran without a trace.
    untraced: HashSet<Key>,
    /// How many signatures were traced.
    count: usize,
    /// How many calls there were.
    calls: u64,
    /// Which of the last calls were traced, the latest in the lowest bit.
    recent: u32,
    warned: bool,
    last: Option<Signature>,
}

/// What a trace is for: the device's number and the signature.
pub(super) type Key = (usize, Signature);

/// A trace that is kept, with the number of its last call.
type Kept<R> = (u64, Arc<Traced<R>>);

/// A trace: the program, and a result whose tensors a call replaces.
pub(super) struct Traced<R> {
    pub(super) concrete: Concrete,
    #[cfg(not(target_family = "wasm"))]
    outer_tapes: OuterTapes,
    result: R,
}

impl<R: Nest> Traced<R> {
    pub(super) fn new(program: Program, result: R) -> Self {
        Traced {
            concrete: Concrete::new(program),
            #[cfg(not(target_family = "wasm"))]
            outer_tapes: OuterTapes::default(),
            result,
        }
    }

    pub(super) fn run(&self, arguments: &[Tensor]) -> Result<R> {
        let mut outputs = self.call(arguments)?.into_iter();
        let next = &mut |_: &Tensor| outputs.next().expect("as many outputs as the trace had");
        Ok(self.result.map_tensors(next))
    }
}

/// The device on which a function runs with these arguments.
pub(super) fn device_of(arguments: &[Tensor]) -> Result<Device> {
    arguments.first().map_or_else(Device::current, |tensor| Ok(tensor.device().clone()))
}

/// A function keeps this many traces; then the one whose last call is longest ago is dropped.
pub(super) const TRACES: usize = 128;
/// With `reduce_retracing`, a function remembers this many signatures that were called once.
const UNTRACED: usize = 1024;
/// As in TensorFlow, a function warns when five of the last six calls were traced.
const RECENT: (u32, u32) = (5, 6);

thread_local! {
    /// The functions whose closures run in a trace on this thread, by the addresses of their traces.
    static TRACING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl<R: Nest> Trace for Traced<R> {
    fn concrete(&self) -> &Concrete {
        &self.concrete
    }

    #[cfg(not(target_family = "wasm"))]
    fn call(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        self.outer_tapes.call(&self.concrete, arguments)
    }

    // A page needs no second way to compute a gradient.
    #[cfg(target_family = "wasm")]
    fn call(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
        self.concrete.call(arguments)
    }
}

/// The tensors of a function's arguments, in order.
fn tensors_of<A: Nest>(arguments: &A) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    arguments.map_tensors(&mut |tensor| {
        tensors.push(tensor.clone());
        tensor.clone()
    });
    tensors
}

/// The key of a trace for these arguments on the device.
fn key_of<A: Nest>(device: &Device, arguments: &A) -> Key {
    let mut signature = Signature::default();
    arguments.write_signature(&mut signature);
    (device.number(), signature)
}

impl<R: Nest> Traces<R> {
    pub(super) fn new(options: FunctionOptions) -> Self {
        let known = Known {
            traced: HashMap::new(),
            untraced: HashSet::new(),
            count: 0,
            calls: 0,
            recent: 0,
            // Who states that sizes vary knows that each is traced.
            warned: options.input_signature.is_some(),
            last: None,
        };
        Traces { options, known: Mutex::new(known) }
    }

    pub(super) fn call<A: Nest>(&self, arguments: A, body: &dyn Fn(A) -> Result<R>) -> Result<R> {
        let tensors = tensors_of(&arguments);
        self.options.check(&tensors)?;
        if eager::in_trace() {
            return self.alone(|| body(arguments));
        }
        let device = device_of(&tensors)?;
        let key = key_of(&device, &arguments);
        let traced = match self.find(&key) {
            Some(traced) => {
                #[cfg(not(target_family = "wasm"))]
                if device.checks_traces() {
                    self.check(&traced, &device, &arguments, body)?;
                }
                traced
            }
            None if self.waits(&key) => return self.alone(|| body(arguments)),
            None => {
                let traced = self.alone(|| trace(&device, &arguments, body))?;
                self.add(key, Arc::new(traced))
            }
        };
        traced.run(&tensors)
    }

    /// The trace for these arguments.
    pub(super) fn concrete<A: Nest>(
        &self,
        arguments: &A,
        body: &dyn Fn(A) -> Result<R>,
    ) -> Result<ConcreteFunction> {
        if eager::in_trace() {
            return Err(Error::Trace(
                "get_concrete_function: it is called while another function is traced. Call it before, or call the function \
                 itself, which then becomes a part of the other one."
                    .into(),
            ));
        }
        let tensors = tensors_of(arguments);
        self.options.check(&tensors)?;
        let device = device_of(&tensors)?;
        let key = key_of(&device, arguments);
        let signature = key.1.0.clone();
        let trace = match self.find(&key) {
            Some(traced) => traced,
            None => {
                let traced = self.alone(|| trace(&device, arguments, body))?;
                self.add(key, Arc::new(traced))
            }
        };
        Ok(ConcreteFunction { signature, trace })
    }

    /// Whether the next call with this signature is traced, and this one only runs the closure.
    fn waits(&self, key: &Key) -> bool {
        if !self.options.reduce_retracing {
            return false;
        }
        let mut known = self.lock();
        // The first trace shows at once whether the closure can be traced.
        if known.count == 0 || known.untraced.remove(key) {
            return false;
        }
        if known.untraced.len() >= UNTRACED {
            known.untraced.clear();
        }
        known.untraced.insert(key.clone())
    }

    /// Traces the closure again, which must do the same as before.
    #[cfg(not(target_family = "wasm"))]
    fn check<A: Nest>(
        &self,
        traced: &Traced<R>,
        device: &Device,
        arguments: &A,
        body: &dyn Fn(A) -> Result<R>,
    ) -> Result<()> {
        let (program, _) = self.alone(|| record(device, arguments, body))?;
        match traced.concrete.difference(&program)? {
            None => Ok(()),
            Some(difference) => Err(Error::Trace(message!(
                "function: its closure does not do the same at each call, and the function repeats what the first one did: \
                 {difference} Pass what varies as an argument, or keep it in a Variable. (WGRAD_TRACE_CHECK is set, so each \
                 call traces the closure again and compares.)"
            ))),
        }
    }

    /// Runs `f`, in which this function may not be called.
    fn alone<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                TRACING.with_borrow_mut(Vec::pop);
            }
        }
        let own = std::ptr::from_ref(&self.known) as usize;
        if TRACING.with_borrow(|tracing| tracing.contains(&own)) {
            return Err(Error::Trace(
                "function: it calls itself while it is traced, which would never end: a trace has no values to stop at. \
                 Write the recursion as a loop, or as a plain Rust function that the closure calls."
                    .into(),
            ));
        }
        TRACING.with_borrow_mut(|tracing| tracing.push(own));
        let _end = End;
        f()
    }

    fn lock(&self) -> MutexGuard<'_, Known<R>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Option<Arc<Traced<R>>> {
        let mut known = self.lock();
        known.calls += 1;
        known.recent <<= 1;
        let calls = known.calls;
        let (last, traced) = known.traced.get_mut(key)?;
        *last = calls;
        Some(traced.clone())
    }

    /// Adds a trace, unless another thread has added one for this signature; returns the one that stays.
    fn add(&self, key: Key, traced: Arc<Traced<R>>) -> Arc<Traced<R>> {
        let mut known = self.lock();
        let known = &mut *known;
        if let Some((_, traced)) = known.traced.get(&key) {
            return traced.clone();
        }
        if known.traced.len() >= TRACES {
            let oldest = known.traced.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                known.traced.remove(&oldest);
            }
        }
        known.count += 1;
        known.recent |= 1;
        let before = known.last.replace(key.1.clone());
        let (many, of) = RECENT;
        if !known.warned && (known.recent & ((1 << of) - 1)).count_ones() >= many {
            known.warned = true;
            crate::warnings::warn_user!(
                "function: {many} of the last {of} calls were traced, which costs more than they save: the last two had the \
                 arguments {} and {}. Pass numbers that vary as tensors, and batches of one shape; or set reduce_retracing of \
                 FunctionOptions, with which a signature is traced at its second call.",
                before.as_ref().map_or("", |signature| &signature.0),
                key.1.0
            );
        }
        known.traced.insert(key, (known.calls, traced.clone()));
        traced
    }
}

impl<R: Nest> Inspect for Traces<R> {
    fn count(&self) -> usize {
        self.lock().count
    }

    fn each(&self, f: &mut dyn FnMut(&str, &Concrete)) {
        let known = self.lock();
        let mut signatures: Vec<_> = known.traced.iter().collect();
        sort_by(&mut signatures, |(a, _), (b, _)| (a.0, &a.1.0).cmp(&(b.0, &b.1.0)));
        for ((_, signature), (_, traced)) in signatures {
            f(&signature.0, &traced.concrete);
        }
    }
}

/// Traces the closure.
pub(super) fn trace<A: Nest, R: Nest>(
    device: &Device,
    arguments: &A,
    body: &dyn Fn(A) -> Result<R>,
) -> Result<Traced<R>> {
    record(device, arguments, body).map(|(program, result)| Traced::new(program, result))
}

/// Runs the closure in a trace: the program, and the closure's result.
pub(super) fn record<A: Nest, R: Nest>(
    device: &Device,
    arguments: &A,
    body: &dyn Fn(A) -> Result<R>,
) -> Result<(Program, R)> {
    let run = || -> Result<(R, usize, Program)> {
        let recorder = Rc::new(Recorder::new(device.clone()));
        let record = || -> Result<R> {
            let symbols = arguments.map_tensors(&mut |tensor| {
                let symbol = eager::placeholder_on(tensor.device(), tensor.spec().clone());
                recorder.argument(&symbol);
                symbol
            });
            let result = body(symbols)?;
            Ok(result.map_tensors(&mut |tensor| {
                recorder.output(tensor);
                tensor.clone()
            }))
        };
        // Tapes that are open around the call do not see its trace.
        let (result, variables) = eager::unobserved(|| {
            eager::observed_by(recorder.clone(), || {
                eager::traced_function(|| recorder.recording(|| device.scope(record)))
            })
        });
        Ok((result?, variables, recorder.end()?))
    };
    let (mut result, variables, mut program) = run()?;
    // What the first trace has made, the next one finds.
    if variables > 0 {
        let again: (R, usize, Program) = run()?;
        if again.1 > 0 {
            return Err(Error::Trace(message!(
                "function: the closure makes {} each time that it is traced. Make variables outside of it, or only where \
                 there are none yet, as a layer does in its first call.",
                match again.1 {
                    1 => "a variable".to_string(),
                    count => format!("{count} variables"),
                }
            )));
        }
        (result, program) = (again.0, again.2);
    }
    Ok((program, result))
}
