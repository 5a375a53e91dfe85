//! [`function()`]: Rust code that is traced once for each signature and then runs as one plan.
//!
//! `mod.rs` has the public type, `traces.rs` the traces by signature, `nest.rs` what functions take and return,
//! `tensor_spec.rs` what they may demand of tensors, `concrete_function.rs` one trace as a value. `recorder.rs`
//! records a trace as a `program.rs`, `concrete.rs` runs it as a graph and `replay.rs` call by call, with the branches and loops
//! of `replay_control.rs`; `selects.rs` makes graphs of
//! small branches, `forward_backward.rs` runs functions under tapes around them, `taped.rs` gradients of branches and loops, `turns.rs` runs turns of loops as plans; `text.rs` and `drawing.rs` show a
//! program.
//! `op_graph.rs` has a trace as data, for exporters.
//! `control_flow.rs` has branches and loops by values of tensors, `tensor_array.rs` the list that loops fill. `repeated.rs` runs
//! the steps of `fit`, and `difference.rs` checks that they do not change.

mod concrete;
mod concrete_function;
#[cfg(not(target_family = "wasm"))]
mod control_flow;
#[cfg(not(target_family = "wasm"))]
mod difference;
mod drawing;
#[cfg(not(target_family = "wasm"))]
mod forward_backward;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) mod frozen;
mod nest;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) mod op_graph;
mod program;
mod recorder;
#[cfg(not(target_family = "wasm"))]
mod repeated;
mod replay;
#[cfg(not(target_family = "wasm"))]
mod replay_control;
#[cfg(not(target_family = "wasm"))]
mod selects;
#[cfg(not(target_family = "wasm"))]
mod taped;
#[cfg(not(target_family = "wasm"))]
mod tensor_array;
mod tensor_spec;
mod text;
mod traces;
#[cfg(not(target_family = "wasm"))]
mod turns;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use concrete_function::ConcreteFunction;
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
pub use tensor_spec::TensorSpec;
use traces::{Inspect, Traces};
/// Makes a [`Function`] of an `fn`: the item becomes a static of this name, which is called in the same way.
///
/// ```
/// use wgrad as tf;
///
/// #[tf::function]
/// fn add(x: tf::Tensor, y: tf::Tensor) -> tf::Result<tf::Tensor> {
///     println!("traced"); // once
///     x.add(&y)
/// }
///
/// # fn main() -> wgrad::Result<()> {
/// let one = tf::constant(1.0)?;
/// let two = add(one.clone(), one.clone())?;
/// assert_eq!(add(two, one)?.item::<f32>()?, 3.0);
/// assert_eq!(add.tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
pub use wgrad_derive::function;

use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The options of [`function_with`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FunctionOptions {
        /// What the tensors of the arguments must be, in order; default: anything. An open size may vary from call to call,
        /// without a warning; each size is traced, as its kernels have it as a constant.
        input_signature: Option<Vec<TensorSpec>> as impl Into<Option<Vec<TensorSpec>>> = None,
        /// After the first trace, traces a signature only at its second call; default: `false`. The first call runs the closure
        /// without a trace, with the same results. This saves the traces of sizes that occur once. TensorFlow's option traces
        /// for open sizes in its place.
        reduce_retracing: bool = false,
    }
}

impl FunctionOptions {
    /// Compares the tensors of a call with the input signature.
    fn check(&self, tensors: &[Tensor]) -> Result<()> {
        let Some(signature) = &self.input_signature else { return Ok(()) };
        let wanted = || {
            let wanted: Vec<String> = signature.iter().map(TensorSpec::to_string).collect();
            wanted.join(", ")
        };
        if tensors.len() != signature.len() {
            return Err(Error::Shape(message!(
                "function: the arguments have {} tensors, but its input_signature ({}) has {}.",
                tensors.len(),
                wanted(),
                signature.len()
            )));
        }
        let wrong = tensors.iter().zip(signature).position(|(x, spec)| !spec.is_compatible_with(x));
        let Some(at) = wrong else { return Ok(()) };
        let text = message!(
            "function: tensor {at} of the arguments is {}, which does not fit its input_signature ({}). Cast or reshape it, or \
             change the signature.",
            tensors[at].spec(),
            wanted()
        );
        match tensors[at].dtype() == signature[at].dtype() {
            true => Err(Error::Shape(text)),
            false => Err(Error::DType(text)),
        }
    }
}

/// A function that is traced once for each signature, made by [`function()`]. It is called like a closure, also from several
/// threads; a clone shares its traces.
pub struct Function<F: ?Sized> {
    call: Arc<F>,
    concrete: Arc<GetConcrete>,
    traces: Arc<dyn Inspect>,
}

/// Traces a function for arguments of the types that it takes.
type GetConcrete = dyn Fn(&dyn Any) -> Result<ConcreteFunction> + Send + Sync;

/// Makes a function of a closure, which is traced at the first call with each signature: with each shape and dtype of its
/// tensors and each value of its plain arguments ([`Nest`]). Later calls do not run the closure: they run the plan of what
/// it did, with the present values of variables, learning rates and generators. TensorFlow's `tf.function`.
///
/// Tensors that the closure captures are constants of the function. It may assign variables and apply an optimizer's
/// gradients. It may make variables, as a model does in its first call, only in its first trace; as in TensorFlow, the closure
/// is then traced once more. Prints and checks of
/// [`debugging`](crate::debugging) happen at each run.
///
/// Under an open tape, too, a call is one plan, and the backward pass another one. Under nested tapes, or if the function is
/// small or has branches, loops or several differentiable results, the recorded calls run one by one, so that the tapes record
/// them. Inside another function's trace, the closure runs as a part of that function.
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
    f.into_function(FunctionOptions::new())
}

/// As [`function()`], with options.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let rows = tf::TensorSpec::new([None, Some(2)], tf::DType::F32);
/// let options = tf::FunctionOptions::new().input_signature(vec![rows]);
/// let sum = tf::function_with(|x: tf::Tensor| x.reduce_sum(1), options);
/// assert_eq!(sum(tf::constant([[1.0, 2.0]])?)?.to_vec::<f32>()?, [3.0]);
/// assert_eq!(sum(tf::constant([[1.0, 2.0], [3.0, 4.0]])?)?.to_vec::<f32>()?, [3.0, 7.0]);
/// let error = sum(tf::constant([1.0, 2.0, 3.0])?).unwrap_err();
/// assert!(error.to_string().contains("f32[3], which does not fit its input_signature (f32[?, 2])"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`function()`]; a call returns [`Error::Shape`] or [`Error::DType`] if its tensors do not fit the
/// [`input_signature`](FunctionOptions::input_signature).
pub fn function_with<M, F: IntoFunction<M>>(f: F, options: FunctionOptions) -> Function<F::Call> {
    f.into_function(options)
}

/// The arguments of a function as a tuple: `(x,)`, `(x, y)`.
pub trait FunctionArguments<Call: ?Sized>: Any {}

/// A closure of up to six arguments, each a [`Nest`], that returns a [`Result`] of a [`Nest`].
pub trait IntoFunction<M> {
    /// The type of a call.
    type Call: ?Sized;

    #[doc(hidden)]
    fn into_function(self, options: FunctionOptions) -> Function<Self::Call>;
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

            fn into_function(self, options: FunctionOptions) -> Function<Self::Call> {
                let traces = Arc::new(Traces::<Answer>::new(options));
                let body = Arc::new(move |($($value,)*): ($($part,)*)| self($($value),*));
                let concrete = {
                    let (traces, body) = (traces.clone(), body.clone());
                    move |arguments: &dyn Any| match arguments.downcast_ref::<($($part,)*)>() {
                        Some(arguments) => traces.concrete(arguments, &*body),
                        None => unreachable!("FunctionArguments has other types than the function"),
                    }
                };
                let known = traces.clone();
                let call = move |$($value: $part),*| known.call(($($value,)*), &*body);
                Function { call: Arc::new(call), concrete: Arc::new(concrete), traces }
            }
        }

        impl<Answer: Nest, $($part: Nest),*>
            FunctionArguments<dyn Fn($($part),*) -> Result<Answer> + Send + Sync> for ($($part,)*)
        {
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

    /// Traces the function for these arguments, unless it has been, and returns the trace. It does not run. TensorFlow's method
    /// of this name.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let f = tf::function(|x: tf::Tensor| x.square());
    /// let concrete = f.get_concrete_function((tf::constant([1.0, 2.0])?,))?;
    /// assert_eq!(concrete.call(&[tf::constant([3.0, 4.0])?])?[0].to_vec::<f32>()?, [9.0, 16.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of a call that traces. [`Error::Trace`] in the trace of another function.
    pub fn get_concrete_function(
        &self,
        arguments: impl FunctionArguments<F>,
    ) -> Result<ConcreteFunction> {
        (self.concrete)(&arguments)
    }

    /// The signatures of the present traces, a line each: `(f32[2, 3], 0.5)`.
    pub fn pretty_printed_concrete_signatures(&self) -> String {
        self.text(|signature, _| format!("{signature}\n"))
    }

    /// What each trace has recorded: after its signature, a line for each call, read and assignment.
    pub fn graph_text(&self) -> String {
        self.text(|signature, trace| format!("{signature}\n{}", trace.text()))
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
        self.text(|signature, trace| trace.graphviz(signature))
    }

    /// The texts of all traces.
    fn text(&self, of: impl Fn(&str, &concrete::Concrete) -> String) -> String {
        let mut text = String::new();
        self.traces.each(&mut |signature, trace| text += &of(signature, trace));
        text
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
        Function {
            call: self.call.clone(),
            concrete: self.concrete.clone(),
            traces: self.traces.clone(),
        }
    }
}

impl<F: ?Sized> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} traces)", self.tracing_count())
    }
}

#[cfg(test)]
mod tests;
