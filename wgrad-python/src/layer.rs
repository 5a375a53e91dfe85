//! Layers from Keras's configs, and layers that several models share.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgrad::keras::layers::{
    AttendCall, AttentionLayer, Discretization, HostLayer, Normalization, OutputMode,
    SequenceLayer, attention_layer_from_config, layer_from_config, merging_layer_from_config,
    recurrent_layer_from_config,
};
use wgrad::keras::saving::bindings;
use wgrad::keras::{
    Config, Context, DTypePolicy, INFERENCE, Layer, LayerExt, Model, Sequential, SymbolicTensor,
};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid};
use crate::host_layer::Given;
use crate::interpreter::Release;
use crate::parts::variables_of;
use crate::python_layer::{PyLayer, one};
use crate::symbol::{Symbol, symbols_of};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A layer that several models may share.
#[derive(Clone)]
pub enum Shared {
    One(Arc<dyn Layer>),
    Many(Arc<dyn Layer<[wgrad::Tensor]>>),
    Attention(Arc<dyn AttentionLayer>),
    Recurrent(Arc<dyn SequenceLayer>),
    Python(Arc<PyLayer>),
}

/// Runs the same code with a layer of each kind.
macro_rules! any {
    ($shared:expr, $layer:ident => $body:expr) => {
        match $shared {
            Shared::One($layer) => $body,
            Shared::Many($layer) => $body,
            Shared::Attention($layer) => $body,
            Shared::Recurrent($layer) => $body,
            Shared::Python($layer) => $body,
        }
    };
}

impl Trackable for Shared {
    fn track(&self, parts: &mut Parts<'_>) {
        any!(self, layer => layer.track(parts));
    }

    fn kind(&self) -> &'static str {
        any!(self, layer => layer.kind())
    }

    fn class(&self) -> Option<&'static wgrad::Class> {
        any!(self, layer => layer.class())
    }

    fn title(&self) -> String {
        any!(self, layer => layer.title())
    }

    fn makes_mask(&self) -> bool {
        any!(self, layer => layer.makes_mask())
    }

    fn identity(&self) -> (usize, usize) {
        any!(self, layer => layer.identity())
    }
}

fn several(layer: &Shared) -> wgrad::Error {
    wgrad::Error::Shape(
        format!("{} merges a list of inputs; it was called with one.", layer.kind()).into(),
    )
}

impl Layer for Shared {
    fn call(&self, x: &wgrad::Tensor, cx: Context<'_>) -> wgrad::Result<wgrad::Tensor> {
        let xs = std::slice::from_ref(x);
        match self {
            Shared::One(layer) => layer.call(x, cx),
            Shared::Many(layer) => layer.call(xs, cx),
            Shared::Attention(layer) => layer.call(xs, cx),
            Shared::Recurrent(layer) => layer.call(x, cx),
            Shared::Python(layer) => one(layer.call_all(xs, cx)?),
        }
    }

    fn compute_mask(
        &self,
        x: &wgrad::Tensor,
        mask: Option<&wgrad::Tensor>,
    ) -> wgrad::Result<Option<wgrad::Tensor>> {
        match self {
            Shared::One(layer) => layer.compute_mask(x, mask),
            Shared::Recurrent(layer) => layer.compute_mask(x, mask),
            Shared::Python(layer) => {
                layer.mask_of(std::slice::from_ref(x), INFERENCE.with_mask(mask))
            }
            Shared::Many(_) | Shared::Attention(_) => Ok(mask.cloned()),
        }
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        match self {
            Shared::One(layer) => layer.get_config(),
            Shared::Many(layer) => layer.get_config(),
            Shared::Attention(layer) => layer.get_config(),
            Shared::Recurrent(layer) => layer.get_config(),
            Shared::Python(layer) => layer.config(),
        }
    }

    fn call_with_mask(
        &self,
        x: &wgrad::Tensor,
        cx: Context<'_>,
    ) -> wgrad::Result<(wgrad::Tensor, Option<wgrad::Tensor>)> {
        match self {
            Shared::One(layer) => layer.call_with_mask(x, cx),
            Shared::Recurrent(layer) => layer.call_with_mask(x, cx),
            Shared::Many(_) | Shared::Attention(_) => Err(several(self)),
            Shared::Python(_) => Ok((
                Layer::<wgrad::Tensor>::call(self, x, cx)?,
                Layer::<wgrad::Tensor>::compute_mask(self, x, cx.mask())?,
            )),
        }
    }
}

impl Layer<[wgrad::Tensor], Vec<wgrad::Tensor>> for Shared {
    fn call(&self, xs: &[wgrad::Tensor], cx: Context<'_>) -> wgrad::Result<Vec<wgrad::Tensor>> {
        match (self, xs) {
            (Shared::One(layer), [x]) => Ok(vec![layer.call(x, cx)?]),
            (Shared::One(layer), _) => Err(wgrad::Error::Shape(
                format!("{} takes one input; it was called with {}.", layer.kind(), xs.len())
                    .into(),
            )),
            (Shared::Many(layer), xs) => Ok(vec![layer.call(xs, cx)?]),
            (Shared::Attention(layer), xs) => Ok(vec![layer.call(xs, cx)?]),
            (Shared::Recurrent(layer), [x, initial @ ..]) => {
                layer.run_all(x, (!initial.is_empty()).then_some(initial), cx)
            }
            (Shared::Recurrent(_), []) => Err(several(self)),
            (Shared::Python(layer), xs) => layer.call_all(xs, cx),
        }
    }

    fn call_with_mask(
        &self,
        xs: &[wgrad::Tensor],
        cx: Context<'_>,
    ) -> wgrad::Result<(Vec<wgrad::Tensor>, Option<wgrad::Tensor>)> {
        let ys = Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(self, xs, cx)?;
        let mask = match self {
            // It gets the mask of each input.
            Shared::Python(layer) => layer.mask_of(xs, cx)?,
            _ => Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::compute_mask(self, xs, cx.mask())?,
        };
        Ok((ys, mask))
    }

    fn compute_mask(
        &self,
        xs: &[wgrad::Tensor],
        mask: Option<&wgrad::Tensor>,
    ) -> wgrad::Result<Option<wgrad::Tensor>> {
        match (self, xs) {
            (Shared::Many(layer), _) => layer.compute_mask(xs, mask),
            (Shared::Attention(layer), _) => layer.compute_mask(xs, mask),
            (Shared::Python(layer), _) => layer.mask_of(xs, INFERENCE.with_mask(mask)),
            (_, [x, ..]) => Layer::<wgrad::Tensor>::compute_mask(self, x, mask),
            _ => Ok(None),
        }
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        Layer::<wgrad::Tensor, wgrad::Tensor>::get_config(self)
    }
}

/// A config from the JSON `{"class_name": .., "config": {..}}`.
pub fn config_of(text: &str) -> wgrad::Result<Config> {
    let wrong = |what: String| wgrad::Error::Data(format!("from_config: {what}").into());
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let class = value["class_name"]
        .as_str()
        .ok_or_else(|| wrong("the config has no 'class_name'.".into()))?;
    let options =
        value["config"].as_object().ok_or_else(|| wrong("the config has no 'config'.".into()))?;
    Ok(Config::with_options(class, options.clone()))
}

/// A layer that learns from data before training.
enum Learning {
    Normalization(Arc<Normalization>),
    Discretization(Arc<Discretization>),
}

#[pyclass(frozen, module = "wgrad")]
pub struct NativeLayer(pub Shared, Option<Learning>);

impl From<Shared> for NativeLayer {
    fn from(layer: Shared) -> Self {
        NativeLayer(layer, None)
    }
}

#[pymethods]
impl NativeLayer {
    /// The layer of a config. `kind` says how it is called: "one", "many", "attention", "recurrent". `custom` has the classes of a
    /// program that may be inside, as in `load`.
    #[new]
    #[pyo3(signature = (config, kind="one", custom=Vec::new()))]
    fn new(config: &str, kind: &str, custom: Vec<(String, bool, Py<PyAny>)>) -> PyResult<Self> {
        let config = config_of(config).raised()?;
        let made = || {
            Ok(match kind {
                "many" => Shared::Many(Arc::from(merging_layer_from_config(&config)?)),
                "attention" => Shared::Attention(Arc::from(attention_layer_from_config(&config)?)),
                "recurrent" => Shared::Recurrent(Arc::from(recurrent_layer_from_config(&config)?)),
                _ => Shared::One(Arc::from(layer_from_config(&config)?)),
            })
        };
        let layer = bindings::with_custom_objects(&crate::model::objects(&custom), made);
        Ok(layer.raised()?.into())
    }

    /// A layer written in Python.
    #[staticmethod]
    fn of_python(layer: &Bound<'_, PyAny>) -> Self {
        Shared::Python(Arc::new(PyLayer::new(layer))).into()
    }

    /// `Normalization`, which learns from data.
    #[staticmethod]
    #[pyo3(signature = (axis, mean=None, variance=None, invert=false))]
    fn normalization(
        axis: Option<Vec<i64>>,
        mean: Option<Vec<f32>>,
        variance: Option<Vec<f32>>,
        invert: bool,
    ) -> Self {
        let mut layer = Normalization::new().axis(axis.unwrap_or_default()).invert(invert);
        if let Some(mean) = mean {
            layer = layer.mean(mean);
        }
        if let Some(variance) = variance {
            layer = layer.variance(variance);
        }
        let layer = Arc::new(layer);
        NativeLayer(Shared::One(layer.clone()), Some(Learning::Normalization(layer)))
    }

    /// `Discretization` with the options of a config, which learns its boundaries from data if it has `num_bins`.
    #[staticmethod]
    fn discretization(config: &str) -> PyResult<Self> {
        let config = config_of(config).raised()?;
        let made = || {
            let bounds = config.get::<Vec<f32>>("bin_boundaries")?.unwrap_or_default();
            let mut layer = Discretization::new(bounds).num_bins(config.get::<usize>("num_bins")?);
            if let Some(epsilon) = config.get("epsilon")? {
                layer = layer.epsilon(epsilon);
            }
            if let Some(mode) = config.get::<OutputMode>("output_mode")? {
                layer = layer.output_mode(mode);
            }
            if let Some(policy) = config.get::<DTypePolicy>("dtype")? {
                layer = layer.dtype(policy);
            }
            Ok(Arc::new(layer))
        };
        let layer = made().raised()?;
        Ok(NativeLayer(Shared::One(layer.clone()), Some(Learning::Discretization(layer))))
    }

    /// Lets a `Discretization` learn from an iterator of arrays on the host.
    fn adapt_on_host(&self, py: Python<'_>, batches: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(Learning::Discretization(layer)) = &self.1 else {
            return Err(no_learning(&self.0));
        };
        layer.reset_state();
        for batch in batches.try_iter()? {
            let batch = batch?.extract::<Given<'_>>()?.array()?;
            py.released(|| layer.update_state(&batch)).raised()?;
        }
        py.released(|| layer.finalize_state()).raised()
    }

    /// Adapts a `Normalization` to batches.
    fn adapt(&self, py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let batches = batches.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        match &self.1 {
            Some(Learning::Normalization(layer)) => {
                py.released(|| layer.adapt_batches(&batches)).raised()
            }
            _ => Err(no_learning(&self.0)),
        }
    }

    /// The layer's results for tensors, the mask of the first one, and the losses that the layer has added.
    #[pyo3(signature = (inputs, training=false, mask=None))]
    fn call(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        training: bool,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<Tensor>, Option<Tensor>, Vec<Tensor>)> {
        let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let mask = mask.map(|mask| to_tensor(mask, None)).transpose()?;
        let layer = self.0.clone();
        let called = py.released(move || {
            let losses = wgrad::keras::Losses::new();
            let cx = Context::from(training).with_mask(mask.as_ref()).collect(&losses);
            let (y, mask) = match (&layer, &inputs[..]) {
                (Shared::One(layer), [x]) if mask.is_some() || layer.makes_mask() => {
                    let (y, mask) = layer.call_with_mask(x, cx)?;
                    (vec![y], mask)
                }
                _ => {
                    let y =
                        Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(&layer, &inputs, cx)?;
                    (
                        y,
                        mask.as_ref()
                            .map(|mask| {
                                Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::compute_mask(
                                    &layer,
                                    &inputs,
                                    Some(mask),
                                )
                            })
                            .transpose()?
                            .flatten(),
                    )
                }
            };
            Ok((y, mask, losses.to_vec()))
        });
        let (y, mask, losses) = called.raised()?;
        let list = |tensors: Vec<wgrad::Tensor>| tensors.into_iter().map(Tensor).collect();
        Ok((list(y), mask.map(Tensor), list(losses)))
    }

    /// A call of attention on query, value and optionally key, whose `masks` are in the same order: the result, and the scores if
    /// they are wanted.
    fn attend(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        masks: Vec<Option<Bound<'_, PyAny>>>,
        attention_mask: Option<&Bound<'_, PyAny>>,
        flags: (bool, bool, bool),
    ) -> PyResult<(Tensor, Option<Tensor>)> {
        let Shared::Attention(layer) = &self.0 else {
            return Err(invalid(format!("attend: {} is not an attention layer.", self.0.kind())));
        };
        let (training, causal, scores) = flags;
        let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let boolean = |mask: &Bound<'_, PyAny>| to_tensor(mask, Some(wgrad::DType::Bool));
        let masks = masks
            .iter()
            .map(|mask| mask.as_ref().map(boolean).transpose())
            .collect::<PyResult<Vec<_>>>()?;
        let mut call = AttendCall::default();
        (call.causal, call.scores) = (causal, scores);
        call.attention_mask = attention_mask.map(boolean).transpose()?;
        let called = py.released(|| {
            let losses = wgrad::keras::Losses::new();
            let cx = Context::from(training).collect(&losses);
            layer.attend(&inputs, call, if masks.is_empty() { cx } else { cx.with_masks(&masks) })
        });
        let (y, scores) = called.raised()?;
        Ok((Tensor(y), scores.map(Tensor)))
    }

    /// The symbols of attention on symbols, where `node` has the arguments of the call as JSON. They name the symbols by place.
    #[pyo3(signature = (node, inputs, name=None))]
    fn attend_on(
        &self,
        node: &str,
        inputs: Vec<Bound<'_, Symbol>>,
        name: Option<&str>,
    ) -> PyResult<Vec<Symbol>> {
        let Shared::Attention(layer) = &self.0 else {
            return Err(invalid(format!("attend: {} is not an attention layer.", self.0.kind())));
        };
        let made = bindings::attention_on(layer, name, node, &symbols_of(&inputs));
        Ok(made.raised()?.into_iter().map(Symbol).collect())
    }

    /// The symbols of the layer's results for symbols, with a mask of the first one if it is given.
    /// `single`: whether it has one result.
    #[pyo3(signature = (inputs, name=None, single=true, mask=None))]
    fn on(
        &self,
        inputs: Vec<Bound<'_, Symbol>>,
        name: Option<&str>,
        single: bool,
        mask: Option<&Bound<'_, Symbol>>,
    ) -> PyResult<Vec<Symbol>> {
        let inputs = symbols_of(&inputs);
        let layer = self.0.clone();
        if let Some(mask) = mask {
            let mask = mask.get().0.clone();
            let made = match single && inputs.len() == 1 {
                true => bindings::one_on_masked(layer, name, inputs, mask),
                false => bindings::all_on_masked(layer, name, inputs, mask),
            };
            return Ok(made.raised()?.into_iter().map(Symbol).collect());
        }
        let results = match (&self.0, &inputs[..]) {
            (Shared::One(_) | Shared::Recurrent(_), [x]) if single => vec![
                match name {
                    Some(name) => layer.on_named(name, x),
                    None => layer.on(x),
                }
                .raised()?,
            ],
            _ => {
                let results: Vec<SymbolicTensor> = match name {
                    Some(name) => {
                        layer.on_all_named::<[wgrad::Tensor], Vec<wgrad::Tensor>>(name, &inputs[..])
                    }
                    None => layer.on_all::<[wgrad::Tensor], Vec<wgrad::Tensor>>(&inputs[..]),
                }
                .raised()?;
                results
            }
        };
        Ok(results.into_iter().map(Symbol).collect())
    }

    /// Names, variables, and whether training changes them.
    fn variables(&self) -> Vec<(String, Variable, bool)> {
        variables_of(&self.0)
    }

    fn set_trainable(&self, trainable: bool) {
        self.0.set_trainable(trainable);
    }

    /// Sets the states of all stateful layers in this one to those before the first call.
    fn reset_states(&self) {
        Model::<wgrad::Tensor>::reset_states(&Sequential::new().add(self.0.clone()));
    }

    /// The penalties of regularized weights.
    fn penalties(&self) -> PyResult<Vec<Tensor>> {
        Ok(self.0.regularization_losses().raised()?.into_iter().map(Tensor).collect())
    }

    fn config(&self) -> PyResult<String> {
        let config = Layer::<wgrad::Tensor, wgrad::Tensor>::get_config(&self.0).raised()?;
        Ok(serde_json::json!({"class_name": config.class(), "config": config.options()})
            .to_string())
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// What distinguishes the layer from others while it lives.
    #[getter]
    fn identity(&self) -> (usize, usize) {
        self.0.identity()
    }
}

fn no_learning(layer: &Shared) -> PyErr {
    invalid(format!("adapt: {} does not learn from data.", layer.kind()))
}

/// Options of a call as a dictionary.
pub fn option<'py, T>(options: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    match options.get_item(key)? {
        Some(value) if !value.is_none() => value.extract().map(Some),
        _ => Ok(None),
    }
}
