//! [`function`]: Rust code that is traced once for each signature and then runs as one plan.
//!
//! `mod.rs` has the public type and the traces by signature; `nest.rs` what functions take and return; `program.rs` records
//! a trace; `concrete.rs` runs it; `control_flow.rs` has branches and loops by values of tensors.

mod concrete;
#[cfg(not(target_family = "wasm"))]
mod control_flow;
mod nest;
mod program;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concrete::Concrete;
#[cfg(not(target_family = "wasm"))]
pub use control_flow::{
    Branch, WhileLoopOptions, cond, foldl, foldr, map_fn, scan, switch_case, while_loop,
    while_loop_with,
};
pub use nest::Nest;
use nest::Signature;
use program::{Program, Recorder};

use crate::eager;
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// A function that is traced once for each signature, made by [`function`]. It is called like a closure, also from several
/// threads; a clone shares its traces.
pub struct Function<F: ?Sized> {
    call: Arc<F>,
    traces: Arc<dyn Inspect>,
}

/// Makes a function of a closure, which is traced at the first call with each signature: with each shape and dtype of its
/// tensors and each value of its plain arguments ([`Nest`]). Later calls do not run the closure: they run the plan of what
/// it did, with the present values of variables, learning rates and generators. TensorFlow's `tf.function`.
///
/// Tensors that the closure captures are constants of the function. It may assign variables and apply an optimizer's
/// gradients. It may make variables, as a model does in its first call, only in its first trace; as in TensorFlow, the closure
/// is then traced once more. Prints and checks of
/// [`debugging`](crate::debugging) happen at each run.
///
/// A call under an open tape runs the recorded calls one by one, so that the tape records them. Inside another function's
/// trace, the closure runs as a part of that function.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::Variable::new(tf::constant(0.0)?);
/// let g = tf::function({
///     let a = a.clone();
///     move |x: tf::Tensor| {
///         a.assign_add(1.0)?;
///         a.read().multiply(&x)
///     }
/// });
/// let x = tf::constant([1.0, 10.0])?;
/// assert_eq!(g(x.clone())?.to_vec::<f32>()?, [1.0, 10.0]);
/// assert_eq!(g(x.clone())?.to_vec::<f32>()?, [2.0, 20.0]);
/// assert_eq!(g(x)?.to_vec::<f32>()?, [3.0, 30.0]);
/// assert_eq!(g.tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A call returns the errors of the closure when it is traced, and later those of the device. [`Error::Trace`] if the
/// closure reads a value that only a run will have, makes variables in every trace, copies tensors to another device, or
/// calls the function itself.
pub fn function<M, F: IntoFunction<M>>(f: F) -> Function<F::Call> {
    f.into_function()
}

/// A closure of up to six arguments, each a [`Nest`], that returns a [`Result`] of a [`Nest`].
pub trait IntoFunction<M> {
    /// The type of a call.
    type Call: ?Sized;

    #[doc(hidden)]
    fn into_function(self) -> Function<Self::Call>;
}

macro_rules! arities {
    ($(($($part:ident $value:ident),*))*) => {$(
        impl<Closure, Answer, $($part),*> IntoFunction<fn($($part),*) -> Answer> for Closure
        where
            Closure: Fn($($part),*) -> Result<Answer> + Send + Sync + 'static,
            Answer: Nest,
            $($part: Nest),*
        {
            type Call = dyn Fn($($part),*) -> Result<Answer> + Send + Sync;

            fn into_function(self) -> Function<Self::Call> {
                let traces = Arc::new(Traces::<Answer>::default());
                let known = traces.clone();
                let call = move |$($value: $part),*| {
                    known.call(($($value,)*), &|($($value,)*)| self($($value),*))
                };
                Function { call: Arc::new(call), traces }
            }
        }
    )*};
}
arities! {
    () (A a) (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, G g)
}

impl<F: ?Sized> Function<F> {
    /// How many signatures have been traced; TensorFlow's `experimental_get_tracing_count`.
    pub fn tracing_count(&self) -> usize {
        self.traces.count()
    }

    /// The signatures of the present traces, a line each: `(f32[2, 3], 0.5)`.
    pub fn pretty_printed_concrete_signatures(&self) -> String {
        self.traces.texts(false)
    }

    /// What each trace has recorded: after its signature, a line for each call, read and assignment.
    pub fn graph_text(&self) -> String {
        self.traces.texts(true)
    }
}

impl<F: ?Sized> Deref for Function<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.call
    }
}

impl<F: ?Sized> Clone for Function<F> {
    fn clone(&self) -> Self {
        Function { call: self.call.clone(), traces: self.traces.clone() }
    }
}

impl<F: ?Sized> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} traces)", self.tracing_count())
    }
}

/// What a program can learn of a function's traces.
trait Inspect: Send + Sync {
    fn count(&self) -> usize;
    fn texts(&self, with_program: bool) -> String;
}

/// The traces of a function.
struct Traces<R>(Mutex<Known<R>>);

struct Known<R> {
    traced: HashMap<Key, Kept<R>>,
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
type Key = (usize, Signature);

/// A trace that is kept, with the number of its last call.
type Kept<R> = (u64, Arc<Traced<R>>);

/// A trace: the program, and a result whose tensors a call replaces.
struct Traced<R> {
    concrete: Concrete,
    result: R,
}

/// A function keeps this many traces; then the one whose last call is longest ago is dropped.
const TRACES: usize = 128;
/// As in TensorFlow, a function warns when five of the last six calls were traced.
const RECENT: (u32, u32) = (5, 6);

thread_local! {
    /// The functions whose closures run in a trace on this thread, by the addresses of their traces.
    static TRACING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl<R> Default for Traces<R> {
    fn default() -> Self {
        Traces(Mutex::new(Known {
            traced: HashMap::new(),
            count: 0,
            calls: 0,
            recent: 0,
            warned: false,
            last: None,
        }))
    }
}

impl<R: Nest> Traces<R> {
    fn call<A: Nest>(&self, arguments: A, body: &dyn Fn(A) -> Result<R>) -> Result<R> {
        if eager::in_trace() {
            return self.alone(|| body(arguments));
        }
        let mut tensors = Vec::new();
        arguments.map_tensors(&mut |tensor| {
            tensors.push(tensor.clone());
            tensor.clone()
        });
        let device = match tensors.first() {
            Some(tensor) => tensor.device().clone(),
            None => Device::current()?,
        };
        let mut signature = Signature::default();
        arguments.write_signature(&mut signature);
        let key = (device.number(), signature);
        let traced = match self.find(&key) {
            Some(traced) => traced,
            None => {
                let traced = self.alone(|| trace(&device, &arguments, body))?;
                self.add(key, Arc::new(traced))
            }
        };
        let mut outputs = traced.concrete.call(&tensors)?.into_iter();
        let next = &mut |_: &Tensor| outputs.next().expect("as many outputs as the trace had");
        Ok(traced.result.map_tensors(next))
    }

    /// Runs `f`, in which this function may not be called.
    fn alone<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                TRACING.with_borrow_mut(Vec::pop);
            }
        }
        let own = std::ptr::from_ref(&self.0) as usize;
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                 arguments {} and {}. Pass numbers that vary as tensors, and batches of one shape.",
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

    fn texts(&self, with_program: bool) -> String {
        let known = self.lock();
        let mut signatures: Vec<_> = known.traced.iter().collect();
        signatures.sort_by(|(a, _), (b, _)| (a.0, &a.1.0).cmp(&(b.0, &b.1.0)));
        let mut text = String::new();
        for ((_, signature), (_, traced)) in signatures {
            text += &format!("{}\n", signature.0);
            if with_program {
                text += &traced.concrete.text();
            }
        }
        text
    }
}

/// Runs the closure in a trace.
fn trace<A: Nest, R: Nest>(
    device: &Device,
    arguments: &A,
    body: &dyn Fn(A) -> Result<R>,
) -> Result<Traced<R>> {
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
    Ok(Traced { concrete: Concrete::new(program), result })
}

#[cfg(test)]
mod tests;
