//! [`ConcreteFunction`]: one trace of a function, called with plain lists of tensors.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::concrete::Concrete;
#[cfg(feature = "summary")]
use super::drawing::GraphNode;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
use super::frozen::{FrozenFunction, Unfreezable};
use super::program::Entry;
use super::tensor_spec::TensorSpec;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::plan::PlanReport;
#[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
use crate::plan::saved;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A trace that is kept.
pub(super) trait Trace: Send + Sync {
    fn concrete(&self) -> &Concrete;

    /// Runs it; tapes record the run.
    fn call(&self, arguments: &[Tensor]) -> Result<Vec<Tensor>>;
}

/// One trace of a [`Function`](crate::Function), from [`get_concrete_function`](crate::Function::get_concrete_function). It takes
/// the tensors of the arguments in order and returns those of the result in order; plain arguments have the values for which it
/// was traced. A clone shares the trace, which lives as long as one of them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let power = tf::function(|x: tf::Tensor, n: i32| x.pow(n));
/// let square = power.get_concrete_function((tf::constant([1.0, 2.0])?, 2))?;
/// assert_eq!(square.pretty_printed_signature(), "(f32[2], 2) -> f32[2]");
/// let results = square.call(&[tf::constant([3.0, 4.0])?])?;
/// assert_eq!(results[0].to_vec::<f32>()?, [9.0, 16.0]);
/// assert!(square.call(&[tf::constant([3.0])?]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConcreteFunction {
    pub(super) signature: String,
    pub(super) trace: Arc<dyn Trace>,
}

impl ConcreteFunction {
    /// Runs the trace on these tensors.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if there are not as many inputs as [`inputs`](Self::inputs), or if one has another shape
    /// or dtype. Those of a call of the function.
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let concrete = self.trace.concrete();
        let wanted = concrete.arguments();
        if inputs.len() != wanted.len() {
            return Err(Error::Shape(message!(
                "ConcreteFunction::call: got {} tensors, but {} takes {}.",
                inputs.len(),
                self.signature,
                wanted.len()
            )));
        }
        for (at, (input, wanted)) in inputs.iter().zip(wanted).enumerate() {
            let text = || {
                message!(
                    "ConcreteFunction::call: input {at} is {}, but the function was traced for {wanted}. Call the Function, which \
                     traces each signature.",
                    input.spec()
                )
            };
            if input.dtype() != wanted.dtype {
                return Err(Error::DType(text()));
            }
            if input.spec() != wanted {
                return Err(Error::Shape(text()));
            }
        }
        if eager::in_trace() && concrete.replays() {
            return Err(Error::Trace(
                "ConcreteFunction::call: a trace with branches or loops cannot become a part of another trace. Call the \
                 Function in its place."
                    .into(),
            ));
        }
        self.trace.call(inputs)
    }

    /// The shapes and dtypes of the tensors that [`call`](Self::call) takes.
    pub fn inputs(&self) -> Vec<TensorSpec> {
        self.trace.concrete().arguments().iter().map(TensorSpec::from).collect()
    }

    /// The shapes and dtypes of the tensors that [`call`](Self::call) returns.
    pub fn outputs(&self) -> Vec<TensorSpec> {
        self.trace.concrete().output_specs().iter().map(TensorSpec::from).collect()
    }

    /// The variables that a run reads or assigns, in the order of their first use.
    pub fn variables(&self) -> Vec<Variable> {
        let concrete = self.trace.concrete();
        let used = |entry: &Entry| match entry {
            Entry::Read(variable) | Entry::Assign { variable, .. } => Some(*variable),
            _ => None,
        };
        let used: BTreeSet<usize> = concrete.all_entries().into_iter().filter_map(used).collect();
        used.into_iter().map(|variable| concrete.variables()[variable].clone()).collect()
    }

    /// The tensors from outside of the function that a run uses; TensorFlow's `captured_inputs`, without the variables.
    pub fn captured_inputs(&self) -> Vec<Tensor> {
        let captured = |entry: &Entry| match entry {
            Entry::Captured(tensor) => Some(tensor.clone()),
            _ => None,
        };
        self.trace.concrete().all_entries().into_iter().filter_map(captured).collect()
    }

    /// Whether no run can succeed, because the function captures a value that does not exist.
    #[cfg(all(feature = "keras", not(target_family = "wasm")))]
    pub(crate) fn fails_always(&self) -> bool {
        self.trace.concrete().is_broken()
    }

    /// The variables that a run assigns.
    #[cfg(all(feature = "keras", not(target_family = "wasm")))]
    pub(crate) fn variables_assigned(&self) -> Vec<Variable> {
        let concrete = self.trace.concrete();
        let assigned = |entry: &Entry| match entry {
            Entry::Assign { variable, .. } => Some(concrete.variables()[*variable].clone()),
            _ => None,
        };
        concrete.all_entries().into_iter().filter_map(assigned).collect()
    }

    /// The variables that a run reads before it assigns them.
    #[cfg(all(feature = "keras", not(target_family = "wasm")))]
    pub(crate) fn variables_read_first(&self) -> Vec<Variable> {
        let concrete = self.trace.concrete();
        let mut seen = std::collections::HashSet::new();
        let mut read = Vec::new();
        for entry in concrete.all_entries() {
            match entry {
                Entry::Read(variable) if seen.insert(*variable) => {
                    read.push(concrete.variables()[*variable].clone());
                }
                Entry::Assign { variable, .. } => {
                    seen.insert(*variable);
                }
                _ => {}
            }
        }
        read
    }

    /// The arguments for which the function was traced, and what it returns: `(f32[2], 2) -> f32[2]`.
    pub fn pretty_printed_signature(&self) -> String {
        let outputs: Vec<String> = self.outputs().iter().map(TensorSpec::to_string).collect();
        match &outputs[..] {
            [one] => format!("{} -> {one}", self.signature),
            all => format!("{} -> ({})", self.signature, all.join(", ")),
        }
    }

    /// What the trace has recorded: a line for each call, read and assignment.
    pub fn graph_text(&self) -> String {
        self.trace.concrete().text()
    }

    /// What the trace has recorded, as a graph in the language of [Graphviz](https://graphviz.org).
    pub fn graphviz(&self) -> String {
        self.trace.concrete().graphviz(&self.signature)
    }

    /// What the trace has recorded, as an SVG image, which a browser displays. Branches and loops are frames. With the feature
    /// `summary`, `summary::graph(&concrete_function)` shows it in TensorBoard.
    pub fn to_svg(&self) -> String {
        self.trace.concrete().to_svg(&self.pretty_printed_signature())
    }

    /// The kernels that a call runs once it has run a few times, with their WGSL and costs. [`Device::last_plan`](crate::Device::last_plan) has
    /// those of the last call.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let f = tf::function(|x: tf::Tensor| x.square()?.add(1.0)?.reduce_sum(()));
    /// let concrete = f.get_concrete_function((tf::Tensor::zeros([64])?,))?;
    /// let plan = concrete.plan()?;
    /// println!("{plan}");
    /// assert_eq!(plan.kernels().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Trace`] if a call reads values to know what to run, as with loops: then it runs a plan for each part between two
    /// reads.
    pub fn plan(&self) -> Result<PlanReport> {
        self.trace.concrete().plan().ok_or_else(|| has_no_plan("plan"))
    }

    /// Keeps the plan for [`load_plan`](Self::load_plan) at the next start of the program: the graph's kernels, with the choices that
    /// the tuner has made. The file is `plans/<name>` in the cache folder (`WGRAD_CACHE`), which all programs of the user share.
    /// Needs the feature `saved-plans`.
    ///
    /// It is the plan of the last call, whose kernels the driver has compiled and usually keeps for the next start, too. A first call
    /// may have a kernel for each op, and the first thousand on a processor have smaller kernels than later ones; so a plan that is
    /// saved after more calls can be faster. Before the first call, it is the plan for that call.
    ///
    /// ```no_run
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let f = tf::function(|x: tf::Tensor| x.square()?.reduce_sum(()));
    /// let x = tf::Tensor::zeros([100])?;
    /// let concrete = f.get_concrete_function((x.clone(),))?;
    /// let kept = concrete.load_plan("example-sum-of-100")?;
    /// for _ in 0..10 {
    ///     f(x.clone())?;
    /// }
    /// if !kept {
    ///     concrete.save_plan("example-sum-of-100")?; // The first start.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Trace`] as for [`plan`](Self::plan); [`Error::Data`] if the name has other characters than letters, digits and `-_.`,
    /// if there is no cache folder, or if the file cannot be written.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub fn save_plan(&self, name: &str) -> Result<()> {
        let bytes = self.trace.concrete().plan_bytes().ok_or_else(|| has_no_plan("save_plan"))?;
        saved::write(name, &bytes)
    }

    /// Runs by the plan that [`save_plan`](Self::save_plan) has kept, so that nothing is planned; returns whether it does. The function is
    /// planned again where the process that saved the plan would have: on a processor, after a thousand calls. A missing or damaged file, or one of another adapter, driver, version of wgrad, function or shape, is left alone, and the function
    /// is planned as usual; the log says why, at the level `debug`. Needs the feature `saved-plans`.
    ///
    /// # Errors
    /// [`Error::Trace`] as for [`plan`](Self::plan); [`Error::Data`] for a name as in `save_plan`, or if the file exists and cannot be
    /// read.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub fn load_plan(&self, name: &str) -> Result<bool> {
        let concrete = self.trace.concrete();
        if concrete.replays() {
            return Err(has_no_plan("load_plan"));
        }
        let used = saved::read(name)?.and_then(|bytes| concrete.use_plan_bytes(&bytes));
        if let Err(why) = &used {
            log::debug!("load_plan: {name}: {why}; the function is planned as usual.");
        }
        Ok(used.is_ok())
    }

    /// What the function computes, with the plan of every device of WebGPU; `call` is the caller in errors.
    ///
    /// # Errors
    /// [`Error::Trace`] if its runs differ from each other: with all reasons. Those of the plan, if a tensor is too large.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    pub(crate) fn frozen(&self, call: &str) -> Result<FrozenFunction> {
        self.trace.concrete().frozen().map_err(|why| match why {
            Unfreezable::Failed(error) => error,
            Unfreezable::Changes(reasons) => Error::Trace(message!(
                "{call}: {} cannot be exported, because {}. Export a function of inference: call layers with INFERENCE, and train \
                 elsewhere.",
                self.pretty_printed_signature(),
                reasons.join("; ")
            )),
        })
    }

    /// The nodes for TensorBoard.
    #[cfg(feature = "summary")]
    pub(crate) fn graph_nodes(&self) -> Vec<GraphNode> {
        self.trace.concrete().graph_nodes()
    }
}

fn has_no_plan(call: &str) -> Error {
    Error::Trace(message!(
        "ConcreteFunction::{call}: the function has branches or loops, so its calls run more than one plan. Call it, and look at \
         last_plan of the device, or at a profile."
    ))
}

impl fmt::Debug for ConcreteFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConcreteFunction({})", self.pretty_printed_signature())
    }
}

#[cfg(test)]
#[path = "concrete_function_tests.rs"]
mod tests;
