//! Whole models: the layers and `compile` as JSON, and files that also hold the weights and the optimizer's state.
//!
//! A file is a safetensors file as [`wgrad::train::Checkpoint`] writes it, with the JSON in its metadata.
//! `Checkpoint::restore_safetensors` reads it natively.

use js_sys::{Array, Function, JSON, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wgrad::Error;
#[cfg(feature = "models")]
use wgrad::keras::saving::{self, LoadModelOptions, LoadedModel};

use crate::args::show;
use crate::device::object;
use crate::error::{Result, bad_type, promise};
use crate::model_files::{ModelFiles, dropped};
use crate::sequential::{Model, Sequential};
use crate::storage::Folder;
use crate::weights::{begun, header};

/// The metadata key of the JSON.
const KEY: &str = "wgrad";
const ENDING: &str = ".safetensors";

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/**
 * A model without its weights, as plain data: its layers, and the arguments of `build` and `compile`. A model of Keras has its JSON
 * instead of layers.
 */
export interface SequentialJSON { layers?: LayerConfig[]; keras?: string; inputShape?: (number | null)[]; compile?: CompileOptions; }

export interface Sequential {
    /**
     * The weights as the contents of a safetensors file, with the variables' names. `Sequential::load_weights` reads
     * the file natively.
     */
    save(): Promise<Uint8Array>;
    /**
     * Saves the model with its layers, weights, and the optimizer's state, in one file at a location: `indexeddb://digits`
     * or `opfs://digits` in the page's own storage, or `downloads://digits`, which the browser downloads as
     * `digits.safetensors`. Resolves with the location, from which `loadModel` restores the model.
     */
    save(place: string): Promise<string>;
}
"#;

/// What a model was made of.
pub(crate) enum Origin {
    /// The layers' descriptions, as JSON.
    Layers(String),
    /// Keras's JSON.
    #[cfg(feature = "models")]
    Keras(String),
    /// A graph, which has no description.
    #[cfg(feature = "models")]
    Graph,
}

/// A value as JSON.
pub(crate) fn json(value: &JsValue) -> Option<String> {
    JSON::stringify(value).ok()?.as_string()
}

fn parsed(text: &str) -> Result<JsValue> {
    Ok(JSON::parse(text)?)
}

/// The layers without the first one's `inputShape`, and that shape.
pub(crate) fn first_input(layers: &Array) -> Result<(Array, Option<JsValue>)> {
    let (plain, mut input) = (Array::new(), None);
    for (at, config) in layers.iter().enumerate() {
        let shape =
            config.dyn_ref::<Object>().and_then(|o| Reflect::get(o, &"inputShape".into()).ok());
        let Some(shape) = shape.filter(|shape| !shape.is_undefined()) else {
            plain.push(&config);
            continue;
        };
        if at > 0 {
            return Err(bad_type(format!(
                "Sequential: layer {at} has an inputShape; only the first layer takes one, as the others get what the one \
                 before gives."
            )));
        }
        if !shape.is_instance_of::<Array>() {
            return Err(bad_type(format!(
                "Sequential: the inputShape is {}; it must be a list of whole numbers, the batch axis left out, such as \
                 [28, 28, 1].",
                show(&shape)
            )));
        }
        let copy = Object::assign(&Object::new(), config.unchecked_ref());
        Reflect::delete_property(&copy, &"inputShape".into())?;
        plain.push(&copy);
        // The batch may have any size.
        let whole = Array::of1(&JsValue::NULL);
        for size in shape.unchecked_ref::<Array>().iter() {
            whole.push(&size);
        }
        input = Some(whole.into());
    }
    Ok((plain, input))
}

/// Where a model is stored.
enum ModelLocation {
    Kept(Folder, String),
    Download(String),
}

impl ModelLocation {
    /// `None` if the text is a web address.
    fn of(text: &str) -> Result<Option<Self>> {
        let Some((kind @ ("indexeddb" | "opfs" | "downloads" | "localstorage"), path)) =
            text.split_once("://")
        else {
            return Ok(None);
        };
        let names: Vec<&str> = path.split('/').collect();
        let known = |name: &&str| !name.is_empty() && *name != "." && *name != "..";
        let file = |name: &str| format!("{}{ENDING}", name.strip_suffix(ENDING).unwrap_or(name));
        let place = match (kind, names.as_slice()) {
            _ if !names.iter().all(known) => None,
            ("downloads", [name]) => Some(ModelLocation::Download(file(name))),
            ("indexeddb", [name]) => {
                Some(ModelLocation::Kept(Folder::IndexedDb(name.to_string()), file("model")))
            }
            ("indexeddb", [database, name]) => {
                Some(ModelLocation::Kept(Folder::IndexedDb(database.to_string()), file(name)))
            }
            ("opfs", [folders @ .., name]) => {
                let folders = folders.iter().map(ToString::to_string).collect();
                Some(ModelLocation::Kept(Folder::Opfs(folders), file(name)))
            }
            _ => None,
        };
        place.map(Some).ok_or_else(|| {
            bad_type(format!(
                "'{text}' is not a location for a model; there are indexeddb://NAME, opfs://NAME and \
                downloads://NAME."
            ))
        })
    }
}

impl Model {
    /// The result of `toJSON`.
    fn config(&self) -> Result<Object> {
        let config = match &self.config {
            Origin::Layers(text) => object([("layers", parsed(text)?)]),
            #[cfg(feature = "models")]
            Origin::Keras(text) => object([("keras", text.into())]),
            #[cfg(feature = "models")]
            Origin::Graph => {
                return Err(bad_type(
                    "toJSON: the model has a loaded graph, which JSON cannot hold. save() without a location returns its \
                     weights; load sets them again."
                        .to_string(),
                ));
            }
        };
        for (key, text) in [("inputShape", &self.input), ("compile", &self.compiled)] {
            if let Some(text) = &*text.borrow() {
                Reflect::set(&config, &key.into(), &parsed(text)?)?;
            }
        }
        Ok(config)
    }

    async fn file(&self) -> Result<Vec<u8>> {
        let config = json(&self.config()?.into()).unwrap_or_default();
        let training = self.training.borrow().clone();
        let optimizer = training.map(|training| training.optimizer.clone());
        let mut checkpoint = wgrad::train::Checkpoint::new().with("model", &self.layers);
        if let Some(optimizer) = &optimizer {
            checkpoint = checkpoint.with("optimizer", optimizer);
        }
        let file = checkpoint.to_safetensors_async().await?;
        let (header, data) = header(&file)?;
        let metadata = object([(KEY, config.into())]);
        Reflect::set(&header, &"__metadata__".into(), &metadata)?;
        let mut whole = begun(&header)?;
        whole.extend_from_slice(data);
        Ok(whole)
    }
}

#[cfg(not(feature = "models"))]
fn from_keras(_: &str) -> Result<Sequential> {
    Err(bad_type(format!("loadModel: this is a model of Keras. {OTHER_MODULE}")))
}

/// The model that Keras's JSON describes.
#[cfg(feature = "models")]
fn from_keras(text: &str) -> Result<Sequential> {
    let functional = parsed(text)
        .map(|value| Reflect::get(&value, &"class_name".into()).unwrap_or_default().as_string());
    let origin = Origin::Keras(text.to_string());
    // The text may have numbers that JavaScript cannot parse, such as NaN.
    Ok(match functional.ok().flatten().as_deref() {
        Some("Sequential") => Sequential::of(wgrad::keras::Sequential::from_json(text)?, origin),
        Some(_) => Sequential::of_functional(wgrad::keras::Functional::from_json(text)?, origin),
        None => match wgrad::keras::Sequential::from_json(text) {
            Ok(model) => Sequential::of(model, origin),
            Err(_) => Sequential::of_functional(wgrad::keras::Functional::from_json(text)?, origin),
        },
    })
}

/// A model of Keras.
#[cfg(feature = "models")]
fn of_keras(model: LoadedModel) -> Result<Sequential> {
    Ok(match model {
        LoadedModel::Sequential(model) => {
            let origin = Origin::Keras(model.to_json()?);
            Sequential::of(model, origin)
        }
        LoadedModel::Functional(model) => {
            let origin = Origin::Keras(model.to_json()?);
            Sequential::of_functional(model, origin)
        }
        _ => return Err(bad_type("loadModel: the model is of an unknown kind.".to_string())),
    })
}

/// The model that a description specifies, compiled and built accordingly.
fn made(config: &JsValue) -> Result<Sequential> {
    let get = |key: &str| Reflect::get(config, &key.into()).unwrap_or_default();
    let keras = get("keras").as_string();
    if !config.is_object() || (keras.is_none() && !get("layers").is_instance_of::<Array>()) {
        return Err(bad_type(format!(
            "Sequential.fromJSON: {} is no description of a model; give what toJSON returned.",
            show(config)
        )));
    }
    let model = match keras {
        Some(text) => from_keras(&text)?,
        None => Sequential::new(&get("layers"))?,
    };
    if !get("compile").is_undefined() {
        model.compile(&get("compile"))?;
    }
    if !get("inputShape").is_undefined() {
        model.build(&get("inputShape"))?;
    }
    Ok(model)
}

#[wasm_bindgen]
impl Sequential {
    /// The model without its weights, as plain data: `JSON.stringify(model)` returns it as text.
    #[wasm_bindgen(js_name = toJSON, unchecked_return_type = "SequentialJSON")]
    pub fn to_json(&self) -> Result<Object> {
        self.0.config()
    }

    /// The model described by the result of `toJSON`, an object or its text. Its weights are initialized again.
    #[wasm_bindgen(js_name = fromJSON)]
    pub fn from_json(
        #[wasm_bindgen(unchecked_param_type = "SequentialJSON | string")] json: &JsValue,
    ) -> Result<Sequential> {
        match json.as_string() {
            Some(text) => made(&parsed(&text)?),
            None => made(json),
        }
    }

    #[wasm_bindgen(js_name = save, skip_typescript)]
    #[doc(hidden)]
    pub fn save_whole(&self, place: Option<String>) -> Promise {
        let model = self.0.clone();
        promise(async move {
            let Some(text) = place else { return crate::weights::file(&model).await };
            let Some(place) = ModelLocation::of(&text)? else {
                return Err(bad_type(format!(
                    "save: '{text}' is not a location; there are indexeddb://NAME, opfs://NAME and downloads://NAME. \
                     Without one the weights are returned."
                )));
            };
            let file = model.file().await?;
            match place {
                ModelLocation::Kept(folder, name) => folder.write(&[(name, file)]).await?,
                ModelLocation::Download(name) => download(&name, &file)?,
            }
            Ok(text.into())
        })
    }
}

/// Makes the browser download a file.
fn download(name: &str, file: &[u8]) -> Result<()> {
    let get = |of: &JsValue, key: &str| Reflect::get(of, &key.into());
    let call = |of: &JsValue, method: &str, arguments: &Array| -> Result<JsValue> {
        Ok(get(of, method)?.dyn_into::<Function>()?.apply(of, arguments)?)
    };
    let global = js_sys::global();
    let document = get(&global, "document")?;
    if !document.is_object() {
        return Err(bad_type(
            "save: only a page can download, and this is a worker. Use indexeddb:// or opfs://, or send the page the file."
                .to_string(),
        ));
    }
    let pieces = Array::of1(&Uint8Array::from(file));
    let kind = object([("type", "application/octet-stream".into())]);
    let blob = get(&global, "Blob")?;
    let blob = Reflect::construct(blob.unchecked_ref::<Function>(), &Array::of2(&pieces, &kind))?;
    let urls = get(&global, "URL")?;
    let url = call(&urls, "createObjectURL", &Array::of1(&blob))?;
    let anchor = call(&document, "createElement", &Array::of1(&"a".into()))?;
    Reflect::set(&anchor, &"href".into(), &url)?;
    Reflect::set(&anchor, &"download".into(), &name.into())?;
    call(&anchor, "click", &Array::new())?;
    // The browser reads the file after the click.
    let revoke = get(&urls, "revokeObjectURL")?.dyn_into::<Function>()?.bind1(&urls, &url);
    call(&global, "setTimeout", &Array::of2(&revoke, &60_000.into()))?;
    Ok(())
}

/// The model that `save` stored at a location, with its layers, weights and optimizer. `from` may also be the web address of
/// such a file, a file that a visitor has chosen or dropped, or its contents. The random number generator keeps its state.
///
/// That of the module `wgrad/models` also loads models of Keras: a `.keras` file, an old HDF5 file, the folder of a SavedModel that
/// Keras 2 wrote (with its `keras_metadata.pb`), or a layers model of TensorFlow.js (`model.json` with its weights). They are not
/// compiled; a functional one is the only layer of the result, and may have several inputs and outputs.
/// Rejects with a `DataError` if there is no such file, or if it is damaged or holds weights alone.
#[wasm_bindgen(js_name = loadModel, unchecked_return_type = "Promise<Sequential>")]
pub fn load_model(#[wasm_bindgen(unchecked_param_type = "ModelSource")] from: JsValue) -> Promise {
    let from = dropped(from);
    promise(async move {
        let place = match from.as_string() {
            Some(text) => ModelLocation::of(&text)?.map(|place| (place, text)),
            None => None,
        };
        let files = match place {
            None => ModelFiles::of("loadModel", &from).await?,
            Some((ModelLocation::Kept(folder, name), text)) => {
                let file = folder.read(&name).await?.ok_or_else(|| {
                    let words = format!("loadModel: there is no model at {text}. model.save('{text}') puts one there.");
                    Error::Data(words.into())
                })?;
                return own(&file).await;
            }
            Some((ModelLocation::Download(name), _)) => {
                return Err(bad_type(format!(
                    "loadModel: a page cannot read downloads. Let the visitor choose {name} in an <input type=\"file\">, and \
                     give its File."
                )));
            }
        };
        #[cfg(feature = "models")]
        let mut files = files;
        #[cfg(feature = "models")]
        if let Some(model) = of_other_programs(&mut files).await? {
            return Ok(model.into());
        }
        let [(name, file)] = &files.files[..] else {
            return Err(bad_type(
                "loadModel: it loads one file, a model.json with its weights, or the folder of a SavedModel that Keras 2 wrote. \
                 loadGraphModel loads other SavedModels."
                    .to_string(),
            ));
        };
        let other =
            [".onnx", ".pb", ".json", ".keras", ".h5"].iter().any(|end| name.ends_with(end));
        if other {
            return Err(bad_type(format!(
                "loadModel: {name} is a model of another program. {OTHER_MODULE}"
            )));
        }
        own(file).await
    })
}

/// Where models of other programs can be loaded.
const OTHER_MODULE: &str =
    "Import loadModel, loadGraphModel and all else from 'wgrad/models', which loads those, too.";

/// The model of Keras or TensorFlow.js in these files, if it is one.
#[cfg(feature = "models")]
async fn of_other_programs(files: &mut ModelFiles) -> Result<Option<Sequential>> {
    let is_saved = |name: &str| name == "saved_model.pb" || name.ends_with("/saved_model.pb");
    if files.main(is_saved).is_some() {
        let files = std::mem::take(&mut files.files);
        let loaded = wgrad::saved_model::load_keras_model_from_bytes(files)?;
        return Ok(Some(of_keras(loaded)?));
    }
    if let Some((name, json)) = files.main(|name| name.ends_with(".json")) {
        if wgrad::tfjs::is_graph_model(&json) == Some(true) {
            return Err(bad_type(format!(
                "loadModel: {name} is a graph model. Load it with loadGraphModel."
            )));
        }
        let others = files.others(&name, &wgrad::tfjs::weight_files(&json)?).await?;
        return Ok(Some(of_keras(wgrad::tfjs::load_layers_model_from_bytes(&json, others)?)?));
    }
    let graph = |name: &str| name.ends_with(".onnx") || name.ends_with(".pb");
    if let Some((name, _)) = files.main(graph) {
        return Err(bad_type(format!(
            "loadModel: {name} is a graph. Load it with loadGraphModel."
        )));
    }
    match &files.files[..] {
        // An archive, or HDF5.
        [(_, file)] if file.starts_with(b"PK") || file.starts_with(b"\x89HDF") => {
            let options = LoadModelOptions::new().compile(false);
            Ok(Some(of_keras(saving::load_model_from_bytes(file, options)?)?))
        }
        _ => Ok(None),
    }
}

/// The model in a file that `save` wrote.
async fn own(file: &[u8]) -> Result<JsValue> {
    let metadata = Reflect::get(&header(file)?.0, &"__metadata__".into())?;
    let config = match metadata.is_object() {
        true => Reflect::get(&metadata, &KEY.into())?.as_string(),
        false => None,
    };
    let Some(config) = config else {
        let text = "loadModel: the file has weights alone. Make a model of the same layers, and call its load with the \
                    file's bytes.";
        return Err(Error::Data(text.into()).into());
    };
    // Making the model draws random numbers, and the file holds the generator's state; the page's generator must not
    // change.
    let generator = wgrad::train::Checkpoint::new();
    let kept = generator.to_safetensors_async().await?;
    let model = made(&parsed(&config)?)?;
    let training = model.0.training.borrow().clone();
    let optimizer = training.map(|training| training.optimizer.clone());
    let mut checkpoint = wgrad::train::Checkpoint::new().with("model", &model.0.layers);
    if let Some(optimizer) = &optimizer {
        checkpoint = checkpoint.with("optimizer", optimizer);
    }
    let restored = checkpoint.restore_safetensors(file);
    generator.restore_safetensors(&kept)?;
    restored?;
    drop(checkpoint);
    Ok(model.into())
}
