//! [`Checkpoint`]: models with their optimizers in TensorFlow's files, in the page's own storage or as a download.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wgrad::Trackable;
use wgrad::train::CheckpointBytes;

use crate::device::object;
use crate::error::{Result, bad_type, promise};
use crate::sequential::{Model, Sequential};
use crate::storage::Folder;
use crate::variable::Variable;

/// The file that names the newest checkpoint of a folder.
const STATE: &str = "checkpoint";

/// The state of a training: models with their optimizers, variables, and the random number generator.
///
/// Locations are `opfs://folder/ckpt`, in the page's own file system, and `indexeddb://database/ckpt`.
#[wasm_bindgen]
#[derive(Clone)]
pub struct Checkpoint(Rc<RefCell<Vec<(String, Part)>>>);

#[derive(Clone)]
enum Part {
    Model(Rc<Model>),
    Variable(wgrad::Variable),
}

/// A folder, and the name of a checkpoint in it.
struct CheckpointPath {
    folder: Folder,
    name: String,
}

impl CheckpointPath {
    fn of(place: &str) -> Result<Self> {
        let parts = place.rsplit_once('/').filter(|(_, name)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
        });
        let (folder, name) = parts.ok_or_else(|| {
            bad_type(format!(
                "Checkpoint: '{place}' ends with no name of letters, digits, '.', '-' and '_', such as ckpt in \
                 opfs://run/ckpt."
            ))
        })?;
        Ok(CheckpointPath { folder: Folder::of(folder)?, name: name.to_string() })
    }
}

fn index(name: &str) -> String {
    format!("{name}.index")
}

fn data(name: &str) -> String {
    format!("{name}.data-00000-of-00001")
}

/// The name of the newest checkpoint according to a state file.
fn newest(state: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(state).ok()?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("model_checkpoint_path:"))?;
    Some(line.trim().strip_prefix('"')?.split('"').next()?.to_string())
}

/// Calls `$act` with a checkpoint of the parts in their present state: a compiled model's optimizer is included.
macro_rules! with_parts {
    ($parts:expr, |$checkpoint:ident| $act:expr) => {{
        let parts = $parts;
        let is_model = |part: &&(String, Part)| matches!(part.1, Part::Model(_));
        let alone = parts.iter().filter(is_model).count() == 1;
        let mut optimizers = Vec::new();
        for (name, part) in &parts {
            let Part::Model(model) = part else { continue };
            if let Some(training) = model.training.borrow().clone() {
                let name = if alone { "optimizer".into() } else { format!("{name}_optimizer") };
                optimizers.push((name, training.optimizer.clone()));
            }
        }
        let mut $checkpoint = wgrad::train::Checkpoint::new();
        for (name, part) in &parts {
            let part: &dyn Trackable = match part {
                Part::Model(model) => &model.layers,
                Part::Variable(variable) => variable,
            };
            $checkpoint = $checkpoint.with(name, part);
        }
        for (name, optimizer) in &optimizers {
            $checkpoint = $checkpoint.with(name, optimizer);
        }
        $act
    }};
}

#[wasm_bindgen]
impl Checkpoint {
    /// A checkpoint of the random number generator alone.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)] // JavaScript has no other.
    pub fn new() -> Checkpoint {
        Checkpoint(Rc::default())
    }

    /// Adds a model. Once the model is compiled, its optimizer is saved too, as the part `optimizer`; with several models, as
    /// `NAME_optimizer`.
    #[wasm_bindgen(js_name = withModel)]
    pub fn with_model(&self, name: String, model: &Sequential) -> Checkpoint {
        self.0.borrow_mut().push((name, Part::Model(model.0.clone())));
        self.clone()
    }

    /// Adds a variable.
    #[wasm_bindgen(js_name = withVariable)]
    pub fn with_variable(&self, name: String, variable: &Variable) -> Checkpoint {
        self.0.borrow_mut().push((name, Part::Variable(variable.0.clone())));
        self.clone()
    }

    /// Saves under the next number, `opfs://run/ckpt` as `opfs://run/ckpt-1`, and resolves with that location. The previous
    /// checkpoint stays the newest until the new one is written completely.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn save(&self, place: String) -> Promise {
        let parts = self.0.borrow().clone();
        promise(async move {
            let CheckpointPath { folder, name } = CheckpointPath::of(&place)?;
            // The values at the time of the call, before the first await.
            let bytes = with_parts!(parts, |checkpoint| checkpoint.to_bytes_async().await?);
            let latest = folder.read(STATE).await?.as_deref().and_then(newest);
            let number = latest.as_deref().and_then(|latest| {
                latest.strip_prefix(&*name)?.strip_prefix('-')?.parse::<u64>().ok()
            });
            let name = format!("{name}-{}", number.unwrap_or(0).saturating_add(1));
            let state = format!(
                "model_checkpoint_path: \"{name}\"\nall_model_checkpoint_paths: \"{name}\"\n"
            );
            let files = [
                (data(&name), bytes.data),
                (index(&name), bytes.index),
                (STATE.to_string(), state.into_bytes()),
            ];
            folder.write(&files).await?;
            let root = place.rsplit_once('/').map_or("", |(root, _)| root);
            Ok(format!("{root}/{name}").into())
        })
    }

    /// The newest checkpoint in a folder, `opfs://run` or `indexeddb://database`; `undefined` if there is none.
    #[wasm_bindgen(unchecked_return_type = "Promise<string | undefined>")]
    pub fn latest(folder: String) -> Promise {
        promise(async move {
            let state = Folder::of(&folder)?.read(STATE).await?;
            let name = state.as_deref().and_then(newest);
            Ok(name.map_or(JsValue::UNDEFINED, |name| format!("{folder}/{name}").into()))
        })
    }

    /// Sets each part to its values in the checkpoint at a location, or in the contents of its two files; layers that have seen
    /// no input yet use them at their first input. Resolves with the names that only the file has (`unused`) and those that
    /// only the parts have (`missing`). Rejects with a `CheckpointError` if a shape differs, or a `DataError` if a file is
    /// damaged; all parts then keep their values.
    #[wasm_bindgen(unchecked_return_type = "Promise<{ unused: string[]; missing: string[] }>")]
    pub fn restore(
        &self,
        #[wasm_bindgen(
            unchecked_param_type = "string | { index: Blob | Uint8Array; data: Blob | Uint8Array }"
        )]
        from: JsValue,
    ) -> Promise {
        let parts = self.0.borrow().clone();
        promise(async move {
            let bytes = match from.as_string() {
                Some(place) => {
                    let CheckpointPath { folder, name } = CheckpointPath::of(&place)?;
                    let file = async |file: String| {
                        folder.read(&file).await?.ok_or_else(|| {
                            bad_type(format!("Checkpoint.restore: {place} lacks the file {file}."))
                        })
                    };
                    CheckpointBytes {
                        index: file(index(&name)).await?,
                        data: file(data(&name)).await?,
                    }
                }
                None if !from.is_object() => {
                    return Err(bad_type(format!(
                        "Checkpoint.restore: {} is neither a location, such as opfs://run/ckpt-1, nor {{ index, data \
                         }} with the contents of the two files.",
                        crate::args::show(&from)
                    )));
                }
                None => {
                    let file = async |key: &str| {
                        let value = Reflect::get(&from, &key.into())?;
                        crate::storage::bytes(value).await
                    };
                    CheckpointBytes { index: file("index").await?, data: file("data").await? }
                }
            };
            let reported = with_parts!(parts, |checkpoint| {
                let status = checkpoint.restore_bytes(bytes)?;
                let list = |names: &[String]| -> JsValue {
                    names.iter().map(|name| JsValue::from(&**name)).collect::<Array>().into()
                };
                let reported = object([
                    ("unused", list(status.unused())),
                    ("missing", list(status.missing())),
                ]);
                status.expect_partial();
                reported
            });
            Ok(reported.into())
        })
    }

    /// The contents of the two files, to download as `NAME.index` and `NAME.data-00000-of-00001`. `Checkpoint::read` reads them
    /// natively, `tf.train.Checkpoint` in Python.
    #[wasm_bindgen(js_name = toBlobs, unchecked_return_type = "Promise<{ index: Blob; data: Blob }>")]
    pub fn to_blobs(&self) -> Promise {
        let parts = self.0.borrow().clone();
        promise(async move {
            let bytes = with_parts!(parts, |checkpoint| checkpoint.to_bytes_async().await?);
            let blob = |bytes: &[u8]| -> Result<JsValue> {
                let constructor = Reflect::get(&js_sys::global(), &"Blob".into())?;
                let pieces = Array::of1(&Uint8Array::from(bytes));
                let arguments = Array::of1(&pieces);
                Ok(Reflect::construct(constructor.unchecked_ref::<js_sys::Function>(), &arguments)?)
            };
            let blobs: Object =
                object([("index", blob(&bytes.index)?), ("data", blob(&bytes.data)?)]);
            Ok(blobs.into())
        })
    }
}
