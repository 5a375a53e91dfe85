//! [`SavedFunction`]: a function of a saved model, by the names of its inputs and results.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::graph_def::value::Value;
use super::spec::SavedSpec;
use super::waiting;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::function::{Function, FunctionOptions, TensorSpec, function_with};
use crate::host_array::HostArray;
use crate::tensor::Tensor;

/// A value that a [`SavedFunction`] takes or returns: a tensor, or an array on the host. Strings and integers that are sizes are on
/// the host.
#[derive(Debug, Clone)]
pub enum SavedValue {
    /// On the device.
    Tensor(Tensor),
    /// On the host.
    Host(HostArray<'static>),
}

impl From<Tensor> for SavedValue {
    fn from(x: Tensor) -> Self {
        SavedValue::Tensor(x)
    }
}

impl From<&Tensor> for SavedValue {
    fn from(x: &Tensor) -> Self {
        SavedValue::Tensor(x.clone())
    }
}

impl From<HostArray<'static>> for SavedValue {
    fn from(array: HostArray<'static>) -> Self {
        SavedValue::Host(array)
    }
}

impl SavedValue {
    /// The tensor; an array becomes one.
    ///
    /// # Errors
    /// [`Error::DType`] if tensors have no such values.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            SavedValue::Tensor(x) => Ok(x.clone()),
            SavedValue::Host(array) => array.to_tensor(),
        }
    }

    /// The array on the host; a tensor is read.
    ///
    /// # Errors
    /// Those of reading a tensor.
    #[cfg(not(target_family = "wasm"))]
    pub fn to_host_array(&self) -> Result<HostArray<'static>> {
        pollster::block_on(self.to_host_array_async())
    }

    /// As [`to_host_array`](#method.to_host_array), for pages, which cannot wait.
    ///
    /// # Errors
    /// Those of reading a tensor.
    pub async fn to_host_array_async(&self) -> Result<HostArray<'static>> {
        match self {
            SavedValue::Tensor(x) => HostArray::from_tensor_async(x).await,
            SavedValue::Host(array) => Ok(array.clone()),
        }
    }

    fn describe(&self) -> String {
        match self {
            SavedValue::Tensor(x) => x.spec().to_string(),
            SavedValue::Host(array) => format!("{}{:?} on the host", array.dtype(), array.shape()),
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            SavedValue::Tensor(x) => x.shape(),
            SavedValue::Host(array) => array.shape(),
        }
    }
}

/// The results of a [`SavedFunction`], by name.
#[derive(Debug, Clone)]
pub struct Outputs(BTreeMap<String, SavedValue>);

impl Outputs {
    /// The result of this name, as a tensor.
    ///
    /// # Errors
    /// [`Error::Index`] if there is none: with the names that there are; as [`SavedValue::tensor`].
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        self.value(name)?.tensor()
    }

    /// The result of this name.
    ///
    /// # Errors
    /// [`Error::Index`] if there is none: with the names that there are.
    pub fn value(&self, name: &str) -> Result<&SavedValue> {
        self.0.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            Error::Index(message!(
                "there is no result \"{name}\"; the function has {}.",
                names.join(", ")
            ))
        })
    }

    /// The names of the results, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl IntoIterator for Outputs {
    type Item = (String, SavedValue);
    type IntoIter = std::collections::btree_map::IntoIter<String, SavedValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A function of a [`SavedModel`](super::SavedModel). It runs like a [`function`](crate::function()): traced once for each shape of
/// its inputs and then as one plan, with gradients to its inputs and to the model's variables. If the sizes of its tensors depend
/// on values, or it has strings, its ops run one by one.
#[derive(Clone)]
pub struct SavedFunction {
    body: Arc<Body>,
    traced: Function<dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>> + Send + Sync>,
}

/// Runs the graph.
pub(super) type RunGraph = dyn Fn(Vec<Value>) -> Result<Vec<Value>> + Send + Sync;

struct Body {
    name: String,
    inputs: Vec<SavedSpec>,
    outputs: Vec<SavedSpec>,
    /// A trait object, so that the compiler of a program that captures the function does not look into all of wgpu.
    run: Box<RunGraph>,
    /// Whether a trace has failed, as sizes depend on values.
    untraceable: AtomicBool,
}

impl SavedFunction {
    pub(super) fn new(
        name: String,
        inputs: Vec<SavedSpec>,
        outputs: Vec<SavedSpec>,
        run: Box<RunGraph>,
    ) -> Self {
        let untraceable = AtomicBool::new(false);
        let body = Arc::new(Body { name, inputs, outputs, run, untraceable });
        let own = body.clone();
        let run = move |inputs: Vec<Tensor>| {
            let results = (own.run)(inputs.into_iter().map(Value::Tensor).collect())?;
            results.iter().map(Value::tensor).collect()
        };
        // The first shape is traced at once; others, when they come again. The signature says that sizes may vary.
        let signature = body
            .inputs
            .iter()
            .map(|spec| Some(TensorSpec::new(spec.shape.as_ref()?, spec.dtype.tensor_dtype()?)));
        let signature = signature.collect::<Option<Vec<_>>>();
        let options = FunctionOptions::new().reduce_retracing(true).input_signature(signature);
        SavedFunction { body, traced: function_with(run, options) }
    }

    /// The name: that of its signature, or its path among the model's objects.
    pub fn name(&self) -> &str {
        &self.body.name
    }

    /// The inputs.
    pub fn inputs(&self) -> &[SavedSpec] {
        &self.body.inputs
    }

    /// The results.
    pub fn outputs(&self) -> &[SavedSpec] {
        &self.body.outputs
    }

    /// Calls the function with its inputs by name, in any order.
    ///
    /// # Errors
    /// [`Error::Index`] if an input is missing, or unknown; [`Error::Shape`] or [`Error::DType`] if one does not fit its
    /// [`SavedSpec`]; the errors of the ops, with the node that failed.
    pub fn call<N: AsRef<str>, V: Into<SavedValue>>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Outputs> {
        let mut given = BTreeMap::new();
        for (name, value) in inputs {
            let name = name.as_ref();
            if given.insert(name.to_string(), value.into()).is_some() {
                return Err(self.error(Error::Index, &format!("got the input \"{name}\" twice")));
            }
        }
        let mut ordered = Vec::with_capacity(given.len());
        for spec in &self.body.inputs {
            match given.remove(&spec.name) {
                Some(value) => ordered.push(value),
                None => {
                    let words = format!("lacks its input \"{}\"", spec.name);
                    return Err(self.error(Error::Index, &words));
                }
            }
        }
        if let Some(name) = given.keys().next() {
            return Err(self.error(Error::Index, &format!("has no input \"{name}\"")));
        }
        self.call_in_order(ordered)
    }

    /// As [`call`](SavedFunction::call), for pages, which cannot wait for values: branches, loops and sizes may need some.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/cnn");
    /// # pollster::block_on(async {
    /// let serve = tf::saved_model::load(folder)?.signature("serving_default")?;
    /// let results = serve.call_async([("x0", tf::Tensor::zeros([1, 16, 16, 3])?)]).await?;
    /// assert_eq!(results.tensor("output_0")?.shape(), [1, 5]);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`call`](SavedFunction::call).
    pub async fn call_async<N: AsRef<str>, V: Into<SavedValue>>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Outputs> {
        let inputs: Vec<(String, SavedValue)> = inputs
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_string(), value.into()))
            .collect();
        waiting::replayed(|| self.call(inputs.iter().cloned())).await
    }

    /// The only result of the only input.
    ///
    /// # Errors
    /// [`Error::Index`] if the function has more inputs or results; otherwise as [`call`](SavedFunction::call).
    pub fn predict(&self, input: impl Into<SavedValue>) -> Result<Tensor> {
        let (inputs, outputs) = (self.body.inputs.len(), self.body.outputs.len());
        if (inputs, outputs) != (1, 1) {
            let words = format!(
                "has {inputs} inputs and {outputs} results, and predict needs one of each: use call"
            );
            return Err(self.error(Error::Index, &words));
        }
        let results = self.call_in_order(vec![input.into()])?;
        let first = results.0.into_values().next();
        first.ok_or_else(|| Error::Index(message!("there is no result.")))?.tensor()
    }

    fn error(&self, kind: fn(crate::error::Message) -> Error, words: &str) -> Error {
        let inputs: Vec<String> = self.body.inputs.iter().map(SavedSpec::to_string).collect();
        let name = &self.body.name;
        kind(message!("the saved function \"{name}\" {words}. It takes ({}).", inputs.join(", ")))
    }

    fn call_in_order(&self, values: Vec<SavedValue>) -> Result<Outputs> {
        for (spec, value) in self.body.inputs.iter().zip(&values) {
            self.check(spec, value)?;
        }
        let results = self.results(values)?;
        let named = self.body.outputs.iter().zip(results);
        Ok(Outputs(named.map(|(spec, value)| (spec.name.clone(), value)).collect()))
    }

    fn check(&self, spec: &SavedSpec, value: &SavedValue) -> Result<()> {
        let words = || format!("got {} for its input \"{}\"", value.describe(), spec.name);
        let same = match value {
            SavedValue::Tensor(x) => spec.dtype.tensor_dtype() == Some(x.dtype()),
            SavedValue::Host(array) => array.dtype() == spec.dtype,
        };
        if !same {
            return Err(self.error(Error::DType, &words()));
        }
        let shape = value.shape();
        let fits = spec.shape.as_ref().is_none_or(|wanted| {
            wanted.len() == shape.len()
                && wanted.iter().zip(shape).all(|(wanted, size)| wanted.is_none_or(|w| w == *size))
        });
        if fits { Ok(()) } else { Err(self.error(Error::Shape, &words())) }
    }

    fn results(&self, values: Vec<SavedValue>) -> Result<Vec<SavedValue>> {
        let tensors: Option<Vec<Tensor>> = values
            .iter()
            .map(|value| match value {
                SavedValue::Tensor(x) => Some(x.clone()),
                SavedValue::Host(_) => None,
            })
            .collect();
        let strings = self.body.outputs.iter().any(|spec| spec.dtype.tensor_dtype().is_none());
        if let (Some(tensors), false, false) =
            (tensors, strings, self.body.untraceable.load(Ordering::Relaxed))
        {
            // In another function's trace this is a part of that function.
            match (self.traced)(tensors) {
                Err(Error::Trace(why)) if !eager::in_trace() => {
                    log::debug!(
                        "the saved function \"{}\" runs its ops one by one: {why}",
                        self.body.name
                    );
                    self.body.untraceable.store(true, Ordering::Relaxed);
                }
                results => {
                    return Ok(results?.into_iter().map(SavedValue::Tensor).collect());
                }
            }
        }
        let values = values.into_iter().map(|value| match value {
            SavedValue::Tensor(x) => Value::Tensor(x),
            SavedValue::Host(array) => Value::Host(Arc::new(array)),
        });
        let results = (self.body.run)(values.collect())?;
        results
            .into_iter()
            .map(|value| match value {
                Value::Host(array) => Ok(SavedValue::Host((*array).clone())),
                value => value.tensor().map(SavedValue::Tensor),
            })
            .collect()
    }
}

impl fmt::Debug for SavedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |specs: &[SavedSpec]| {
            specs.iter().map(SavedSpec::to_string).collect::<Vec<_>>().join(", ")
        };
        let body = &self.body;
        write!(
            f,
            "SavedFunction({}({}) -> ({}))",
            body.name,
            list(&body.inputs),
            list(&body.outputs)
        )
    }
}
