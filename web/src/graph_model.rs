//! [`GraphModel`]: models of other programs, as graphs: SavedModels, ONNX, TensorFlow.js's graph models.

use std::rc::Rc;

use js_sys::{Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::saved_model::{
    self, LoadOptions, Outputs, SavedFunction, SavedModel, SavedSpec, SavedValue,
};
use wgrad::{Error, HostArray, HostDType, Trackable};

use crate::args::{Options, show};
use crate::device::object;
use crate::error::{Result, bad_type, promise};
use crate::model_files::{ModelFiles, dropped};
use crate::sequential::Sequential;
use crate::tensor::{Operand, Tensor, has};
use crate::variable::Variable;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** An input or a result of a model; null is a size that may vary, an undefined shape one of any rank. */
export interface GraphTensor { name: string; dtype: string; shape?: (number | null)[]; }

/** What a `GraphModel` takes for an input: strings stay on the host. */
export type GraphInput = Tensor | Variable | string | readonly string[];

export interface LoadGraphModelOptions {
  /** The signature of a SavedModel; by default `serving_default`, or the only one. */
  signature?: string;
  /** The nodes that a graph of TensorFlow 1 (`.pb`) takes and returns: such a file does not name them. */
  inputs?: readonly string[];
  outputs?: readonly string[];
}

export interface GraphModel {
  /**
   * The results for an input, or for several by name: a tensor if there is one result, otherwise all of them by name. Strings are
   * lists. The graph is traced once for each shape, as a function of `tfFunction`. Throws if a branch, a loop or a size
   * depends on a value, for which `predictAsync` waits.
   */
  predict<T = Tensor>(inputs: GraphInput | Record<string, GraphInput>): T;
  /** As `predict`, for graphs with branches, loops or sizes that depend on values. */
  predictAsync<T = Tensor>(inputs: GraphInput | Record<string, GraphInput>): Promise<T>;
}
"#;

/// A model of another program as a graph: a SavedModel of TensorFlow, a model in ONNX's format, or a graph model of TensorFlow.js.
/// `loadGraphModel` makes it. Its weights are variables: `valueAndGradients` and `toSequential` train them.
#[wasm_bindgen]
pub struct GraphModel {
    loaded: Rc<Loaded>,
    function: SavedFunction,
}

enum Loaded {
    Saved {
        model: SavedModel,
        format: &'static str,
        signature: String,
    },
    Onnx(wgrad::onnx::OnnxModel),
    /// Nodes of a graph of TensorFlow 1.
    Frozen,
}

fn names(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn texts(options: &Options<'_>, key: &str) -> Result<Option<Vec<String>>> {
    options.read(key, "a list of names", |value| {
        value.dyn_ref::<Array>()?.iter().map(|name| name.as_string()).collect()
    })
}

impl GraphModel {
    fn saved(model: SavedModel, format: &'static str, signature: Option<String>) -> Result<Self> {
        let signature = match signature {
            Some(signature) => signature,
            None => {
                let mut names = model.signatures();
                match (names.next(), names.next()) {
                    (Some(only), None) => only.to_string(),
                    _ => "serving_default".to_string(),
                }
            }
        };
        let function = model.signature(&signature)?;
        Ok(GraphModel { loaded: Rc::new(Loaded::Saved { model, format, signature }), function })
    }

    async fn load(from: &JsValue, options: &JsValue) -> Result<Self> {
        let what = "loadGraphModel";
        let options = Options::new(what, options, &["signature", "inputs", "outputs"])?;
        let signature = options.string("signature")?;
        let nodes = (texts(&options, "inputs")?, texts(&options, "outputs")?);
        let mut files = ModelFiles::of(what, from).await?;
        let is_saved = |name: &str| name == "saved_model.pb" || name.ends_with("/saved_model.pb");
        if files.main(is_saved).is_some() {
            let model = saved_model::load_from_bytes(files.files, LoadOptions::new())?;
            return GraphModel::saved(model, "SavedModel", signature);
        }
        if let Some((name, json)) = files.main(|name| name.ends_with(".json")) {
            match wgrad::tfjs::is_graph_model(&json) {
                Some(true) => {}
                Some(false) => {
                    return Err(bad_type(format!(
                        "loadGraphModel: {name} is a layers model. Load it with loadModel."
                    )));
                }
                None => {
                    let text = format!("loadGraphModel: {name} is no model.json of TensorFlow.js.");
                    return Err(Error::Data(text.into()).into());
                }
            }
            let others = files.others(&name, &wgrad::tfjs::weight_files(&json)?).await?;
            let model = wgrad::tfjs::load_graph_model_from_bytes(&json, others)?;
            return GraphModel::saved(model, "TensorFlow.js", signature);
        }
        if let Some((_, bytes)) = files.main(|name| name.ends_with(".pb")) {
            let (Some(inputs), Some(outputs)) = nodes else {
                return Err(bad_type(
                    "loadGraphModel: a graph of TensorFlow 1 does not say what it takes and returns. Name the nodes: { inputs: ['x'], \
                     outputs: ['y'] }."
                        .to_string(),
                ));
            };
            let function = saved_model::import_graph_def_from_bytes(
                &bytes,
                &names(&inputs),
                &names(&outputs),
            )?;
            return Ok(GraphModel { loaded: Rc::new(Loaded::Frozen), function });
        }
        // Contents without a name are taken for ONNX's.
        let onnx = files.main(|name| name.ends_with(".onnx") || name.is_empty());
        let Some((name, bytes)) = onnx else {
            let names: Vec<&str> = files.files.iter().map(|(name, _)| &name[..]).collect();
            return Err(bad_type(format!(
                "loadGraphModel: {} is no graph: it loads saved_model.pb with its folder, .onnx, model.json with its weights, and .pb. \
                 loadModel loads .keras.",
                names.join(", ")
            )));
        };
        let others = files.others(&name, &wgrad::onnx::external_files(&bytes)?).await?;
        let model = wgrad::onnx::load_from_bytes_with(&bytes, others)?;
        let function = model.function().clone();
        Ok(GraphModel { loaded: Rc::new(Loaded::Onnx(model)), function })
    }

    /// The values of all inputs, by name.
    fn inputs_of(&self, value: &JsValue) -> Result<Vec<(String, SavedValue)>> {
        let specs = self.function.inputs();
        let list = || specs.iter().map(SavedSpec::to_string).collect::<Vec<_>>().join(", ");
        if let Some(value) = input(value)? {
            let [only] = specs else {
                return Err(bad_type(format!(
                    "predict: the model has {} inputs. Give them by name: it takes ({}).",
                    specs.len(),
                    list()
                )));
            };
            return Ok(vec![(only.name.clone(), value)]);
        }
        let wrong = |value: &JsValue| {
            bad_type(format!(
                "predict: {} is no input. Give a tensor, or several by name: the model takes ({}).",
                show(value),
                list()
            ))
        };
        let named = value.dyn_ref::<Object>().filter(|_| !value.is_function() && !value.is_array());
        let named = named.ok_or_else(|| wrong(value))?;
        let mut inputs = Vec::new();
        for name in Object::keys(named).iter().filter_map(|name| name.as_string()) {
            let value = Reflect::get(named, &(&name).into())?;
            inputs.push((name, input(&value)?.ok_or_else(|| wrong(&value))?));
        }
        Ok(inputs)
    }

    fn trackable(&self) -> Option<&dyn Trackable> {
        match &*self.loaded {
            Loaded::Saved { model, .. } => Some(model),
            Loaded::Onnx(model) => Some(model),
            Loaded::Frozen => None,
        }
    }
}

/// A tensor, a variable, or strings; `None` for anything else.
fn input(value: &JsValue) -> Result<Option<SavedValue>> {
    if has(value, "_tensor") || has(value, "_variable") {
        return Ok(Some(value.unchecked_ref::<Operand>().get()?.into()));
    }
    if let Some(text) = value.as_string() {
        return Ok(Some(HostArray::from_strings([], vec![text.into_bytes()])?.into()));
    }
    let strings: Option<Vec<Vec<u8>>> = value
        .dyn_ref::<Array>()
        .and_then(|list| list.iter().map(|text| Some(text.as_string()?.into_bytes())).collect());
    match strings {
        Some(strings) => Ok(Some(HostArray::from_strings([strings.len()], strings)?.into())),
        None => Ok(None),
    }
}

/// A result in JavaScript.
fn output(value: &SavedValue) -> Result<JsValue> {
    let SavedValue::Host(array) = value else { return Ok(Tensor::new(value.tensor()?).into()) };
    let Some(strings) = array.strings() else { return Ok(Tensor::new(array.to_tensor()?).into()) };
    let text = |bytes: &Vec<u8>| JsValue::from(String::from_utf8_lossy(bytes).into_owned());
    match array.shape() {
        [] => Ok(strings.first().map(text).unwrap_or_default()),
        _ => Ok(strings.iter().map(text).collect::<Array>().into()),
    }
}

fn outputs(results: Outputs) -> Result<JsValue> {
    let all: Vec<(String, SavedValue)> = results.into_iter().collect();
    if let [(_, only)] = &all[..] {
        return output(only);
    }
    let named = Object::new();
    for (name, value) in &all {
        Reflect::set(&named, &name.into(), &output(value)?)?;
    }
    Ok(named.into())
}

/// A `GraphTensor`.
pub(crate) fn description(
    name: &str,
    dtype: HostDType,
    shape: Option<&[Option<usize>]>,
) -> JsValue {
    let size = |size: &Option<usize>| match size {
        Some(size) => JsValue::from(*size),
        None => JsValue::NULL,
    };
    let shape = match shape {
        Some(shape) => shape.iter().map(size).collect::<Array>().into(),
        None => JsValue::UNDEFINED,
    };
    JsValue::from(object([
        ("name", name.into()),
        ("dtype", dtype.tensorflow_name().into()),
        ("shape", shape),
    ]))
}

fn describe(specs: &[SavedSpec]) -> Array {
    specs.iter().map(|spec| description(&spec.name, spec.dtype, spec.shape.as_deref())).collect()
}

/// Loads a model of another program as a graph, which runs on the device: a SavedModel (the folder of `saved_model.pb`), a model in
/// ONNX's format (`.onnx`, with files that it names), a graph model of TensorFlow.js (`model.json` with its weights), or a graph
/// of TensorFlow 1 (`.pb`). From a web address, from files that a visitor has chosen or dropped, or from memory. Rejects with a
/// `DataError` if a file is missing or damaged, or with all ops of the graph that wgrad lacks.
#[wasm_bindgen(js_name = loadGraphModel, unchecked_return_type = "Promise<GraphModel>")]
pub fn load_graph_model(
    #[wasm_bindgen(unchecked_param_type = "ModelSource")] from: JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "LoadGraphModelOptions")] options: JsValue,
) -> Promise {
    let from = dropped(from);
    promise(async move { Ok(GraphModel::load(&from, &options).await?.into()) })
}

#[wasm_bindgen]
impl GraphModel {
    /// The format of the file: `SavedModel`, `ONNX`, `TensorFlow.js` or `GraphDef`.
    #[wasm_bindgen(getter)]
    pub fn format(&self) -> String {
        match &*self.loaded {
            Loaded::Saved { format, .. } => format,
            Loaded::Onnx(_) => "ONNX",
            Loaded::Frozen => "GraphDef",
        }
        .to_string()
    }

    /// The signatures of a SavedModel; empty for other formats.
    #[wasm_bindgen(getter, unchecked_return_type = "string[]")]
    pub fn signatures(&self) -> Array {
        match &*self.loaded {
            Loaded::Saved { model, .. } => model.signatures().map(JsValue::from).collect(),
            _ => Array::new(),
        }
    }

    /// The model with another one of its signatures; both share the variables.
    pub fn signature(&self, name: String) -> Result<GraphModel> {
        match &*self.loaded {
            Loaded::Saved { model, format, .. } => {
                GraphModel::saved(model.clone(), format, Some(name))
            }
            _ => Err(bad_type(format!(
                "signature: a model of the format {} has a single function.",
                self.format()
            ))),
        }
    }

    /// The inputs: names, dtypes and shapes.
    #[wasm_bindgen(getter, unchecked_return_type = "GraphTensor[]")]
    pub fn inputs(&self) -> Array {
        describe(self.function.inputs())
    }

    /// The results: names, dtypes and shapes.
    #[wasm_bindgen(getter, unchecked_return_type = "GraphTensor[]")]
    pub fn outputs(&self) -> Array {
        describe(self.function.outputs())
    }

    /// The weights.
    #[wasm_bindgen(getter, unchecked_return_type = "Variable[]")]
    pub fn variables(&self) -> Array {
        let named = self.trackable().map(|model| model.named_variables()).unwrap_or_default();
        named.into_iter().map(|(name, v)| JsValue::from(Variable::named(name, v))).collect()
    }

    /// The number of weights' elements.
    #[wasm_bindgen(js_name = countParams)]
    pub fn count_params(&self) -> usize {
        self.trackable().map_or(0, |model| model.count_params())
    }

    #[wasm_bindgen(skip_typescript)]
    #[doc(hidden)]
    pub fn predict(&self, inputs: &JsValue) -> Result<JsValue> {
        outputs(self.function.call(self.inputs_of(inputs)?)?)
    }

    #[wasm_bindgen(js_name = predictAsync, skip_typescript)]
    #[doc(hidden)]
    pub fn predict_async(&self, inputs: &JsValue) -> Promise {
        let (inputs, function) = (self.inputs_of(inputs), self.function.clone());
        promise(async move { outputs(function.call_async(inputs?).await?) })
    }

    /// A model whose first layer is this graph, and then `layers`, if any: so `fit` trains it further. The graph needs one input and
    /// one result, and computes the same in training as in inference.
    #[wasm_bindgen(js_name = toSequential)]
    pub fn to_sequential(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "readonly LayerConfig[]")] layers: &JsValue,
    ) -> Result<Sequential> {
        let (inputs, outputs) = (self.function.inputs().len(), self.function.outputs().len());
        if (inputs, outputs) != (1, 1) {
            return Err(bad_type(format!(
                "toSequential: the graph has {inputs} inputs and {outputs} results, and a layer has one of each. Train it with \
                 valueAndGradients."
            )));
        }
        let model = wgrad::keras::Sequential::new();
        let model = match &*self.loaded {
            Loaded::Saved { model: saved, signature, .. } => model.add(saved.layer(signature)?),
            Loaded::Onnx(onnx) => model.add(onnx.clone()),
            Loaded::Frozen => {
                return Err(bad_type(
                    "toSequential: the weights of a graph of TensorFlow 1 are constants, which cannot be trained."
                        .to_string(),
                ));
            }
        };
        Sequential::with_first(model, layers)
    }
}
