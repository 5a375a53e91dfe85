//! Parts of reading and writing for other languages, which make the layers of a model themselves.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::archive::{SaveModelOptions, config_in, written};
use super::read::{What, scoped, wanted};
use super::{CustomObjects, compiled};
use crate::error::{Error, Result};
use crate::keras::functional::{AttentionCall, Of, Operation, connect_shared, keras_op};
use crate::keras::layers::{AttentionLayer, in_layer};
use crate::keras::optimizers::{LossScaleOptimizer, Optimizer};
use crate::keras::{Config, Functional, Layer, SymbolicTensor, python_json};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// The config of the model in a `.keras` file or an old HDF5 file as JSON, with its vocabularies and its `compile_config`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Data`] if it is damaged, or has no model.
pub fn config_of_file(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    let config = crate::trackable::weights::in_file(path, config_in(&bytes, path))?;
    Ok(python_json::text(&config))
}

/// Writes a `.keras` file with the variables of `model`, which this config describes. `scaling` is what scales the loss for the
/// optimizer of the options.
///
/// # Errors
/// Those of [`Sequential::save_with`](crate::keras::Sequential::save_with).
pub fn save_described(
    model: &dyn Trackable,
    config: &str,
    path: impl AsRef<Path>,
    options: &SaveModelOptions,
    scaling: Option<&LossScaleOptimizer<Arc<dyn Optimizer>>>,
) -> Result<()> {
    use std::io::Write;
    let config = super::parse(config)?;
    let settings = options.compile_settings.as_deref();
    let settings = settings.map(|text| compiled::settings(text, "save")).transpose()?;
    let optimizer = options.optimizer.as_deref().filter(|_| settings.is_some());
    let settings = settings.map_or(Value::Null, Value::Object);
    let bytes = pollster::block_on(written(model, config, settings, optimizer, scaling))?;
    let path = path.as_ref();
    let written = crate::files::replace(path, |file| file.write_all(&bytes));
    written.map_err(|error| Error::io(path, error))
}

/// Runs `f`, in which layers that contain layers can also contain models and these layers.
///
/// # Errors
/// Those of `f`.
pub fn with_custom_objects<R>(custom: &CustomObjects, f: impl FnOnce() -> Result<R>) -> Result<R> {
    scoped(custom, f)
}

/// The symbols among the arguments of a call are called by their places: `["0", 0, 0]` is the first one.
fn call_of(
    node: &str,
    symbols: &[SymbolicTensor],
    what: &What,
) -> Result<(super::read::Wanted, Vec<SymbolicTensor>)> {
    let names: Vec<String> = (0..symbols.len()).map(|at| at.to_string()).collect();
    let places: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (&**name, at)).collect();
    let wanted = wanted(&super::parse(node)?, &places, what)?;
    let inputs = wanted.inputs.iter().map(|taken| symbols[taken.layer].clone()).collect();
    Ok((wanted, inputs))
}

/// The results of an op of Keras's `module` for symbols, where `node` has the arguments as files have them.
///
/// # Errors
/// [`Error::Data`] if the op or an argument is unknown; else those of the op.
pub fn op_on(
    name: &str,
    module: &str,
    config: &Config,
    node: &str,
    symbols: &[SymbolicTensor],
) -> Result<Vec<SymbolicTensor>> {
    let empty = Config::with_options(config.class(), Map::new());
    let what = What::Operator(module.to_string(), empty);
    let (wanted, inputs) = call_of(node, symbols, &what)?;
    let (class, options) = (config.class(), config.options());
    let operation = keras_op(name, module, class, options, wanted.args, wanted.kwargs);
    connect_shared(in_layer(name, operation)?, inputs, None)
}

/// The results of attention on symbols, where `node` has the arguments as files have them.
///
/// # Errors
/// [`Error::Data`] if an argument is unknown; else those of the layer.
pub fn attention_on(
    layer: &Arc<dyn AttentionLayer>,
    name: Option<&str>,
    node: &str,
    symbols: &[SymbolicTensor],
) -> Result<Vec<SymbolicTensor>> {
    let (wanted, inputs) = call_of(node, symbols, &What::Attention(layer.clone()))?;
    let (names, causal, scores) = (wanted.names, wanted.causal, wanted.scores);
    let call = AttentionCall { layer: layer.clone(), names, causal, scores };
    connect_shared(Arc::new(Operation::new(name, call)), inputs, None)
}

/// The results of a layer of one input that gets this mask.
///
/// # Errors
/// Those of the layer.
pub fn one_on_masked<L: Layer + 'static>(
    layer: L,
    name: Option<&str>,
    symbols: Vec<SymbolicTensor>,
    mask: SymbolicTensor,
) -> Result<Vec<SymbolicTensor>> {
    let operation = Operation::new(name, Of::<L, Tensor, Tensor>::new(layer));
    connect_shared(Arc::new(operation), symbols, Some(mask))
}

/// The results of a layer of any inputs that gets this mask.
///
/// # Errors
/// Those of the layer.
pub fn all_on_masked<L: Layer<[Tensor], Vec<Tensor>> + 'static>(
    layer: L,
    name: Option<&str>,
    symbols: Vec<SymbolicTensor>,
    mask: SymbolicTensor,
) -> Result<Vec<SymbolicTensor>> {
    let operation = Operation::new(name, Of::<L, [Tensor], Vec<Tensor>>::new(layer));
    connect_shared(Arc::new(operation), symbols, Some(mask))
}

/// The results of a model as a layer called `name`.
///
/// # Errors
/// Those of the model's layers.
pub fn model_on(
    model: &Functional,
    name: &str,
    symbols: Vec<SymbolicTensor>,
) -> Result<Vec<SymbolicTensor>> {
    connect_shared(model.clone().into_operation(name), symbols, None)
}
