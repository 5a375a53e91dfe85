//! [`function`]: Rust code that is traced once for each signature and then runs as one plan.
//!
//! `mod.rs` has the public type, `traces.rs` the traces by signature, `nest.rs` what functions take and return. `recorder.rs`
//! records a trace as a `program.rs`, `concrete.rs` runs it as a graph and `replay.rs` call by call; `selects.rs` makes graphs of
//! small branches, `taped.rs` gradients of branches and loops; `text.rs` shows a program.
//! `control_flow.rs` has branches and loops by values of tensors, `tensor_array.rs` the list that loops fill. `repeated.rs` runs
//! the steps of `fit`, and `difference.rs` checks that they do not change.

mod concrete;
#[cfg(not(target_family = "wasm"))]
mod control_flow;
#[cfg(not(target_family = "wasm"))]
mod difference;
mod nest;
mod program;
mod recorder;
#[cfg(not(target_family = "wasm"))]
mod repeated;
mod replay;
mod selects;
mod taped;
#[cfg(not(target_family = "wasm"))]
mod tensor_array;
mod text;
mod traces;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
pub use control_flow::{
    Branch, WhileLoopOptions, case, cond, foldl, foldr, host_call, map_fn, scan, switch_case,
    vectorized_map, while_loop, while_loop_with,
};
pub use nest::Nest;
pub(crate) use nest::Signature;
#[cfg(not(target_family = "wasm"))]
pub(crate) use repeated::Repeated;
#[cfg(not(target_family = "wasm"))]
pub use tensor_array::{TensorArray, TensorArrayIndex};
use traces::{Form, Inspect, Traces};

use crate::error::Result;

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
/// A call returns the errors of the closure when it is traced, and later those of the device. [`Error::Trace`](crate::Error::Trace) if the
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
        self.traces.texts(Form::Signatures)
    }

    /// What each trace has recorded: after its signature, a line for each call, read and assignment.
    pub fn graph_text(&self) -> String {
        self.traces.texts(Form::Programs)
    }

    /// What each trace has recorded, as graphs in the language of [Graphviz](https://graphviz.org), one after the other:
    /// `dot -Tsvg` draws them. Branches and loops are boxes.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let f = tf::function(|x: tf::Tensor| x.square()?.add(1.0));
    /// f(tf::constant([1.0, 2.0])?)?;
    /// assert!(f.graphviz().starts_with("digraph \"(f32[2])\" {"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn graphviz(&self) -> String {
        self.traces.texts(Form::Graphviz)
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

#[cfg(test)]
mod tests;
