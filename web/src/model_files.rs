//! [`ModelFiles`]: the files of a model, from the web, chosen or dropped by a visitor, or in memory.

use js_sys::{Array, ArrayBuffer, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wgrad::Error;

use crate::args::show;
use crate::error::{Result, bad_type};
use crate::storage::bytes;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** The contents of a file. */
export type FileContents = Blob | Uint8Array | ArrayBuffer;

/**
 * Where a model comes from: a web address, a file that a visitor has chosen, all files of a folder, the `dataTransfer` of a drop, or
 * the contents of files by their paths in the model's folder.
 */
export type ModelSource = string | URL | FileContents | FileList | readonly File[] | DataTransfer | null | Record<string, FileContents>;
"#;

/// The files of a model by their paths, and where those are that are not here yet.
pub(crate) struct ModelFiles {
    /// Whose messages they are.
    what: &'static str,
    /// The web address of the folder.
    folder: Option<String>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

fn get(of: &JsValue, key: &str) -> JsValue {
    Reflect::get(of, &key.into()).unwrap_or_default()
}

/// The contents of a file, or `None` if it is none.
async fn contents(value: &JsValue) -> Result<Option<Vec<u8>>> {
    if value.has_type::<ArrayBuffer>() {
        return Ok(Some(Uint8Array::new(value).to_vec()));
    }
    let is_file = value.has_type::<Uint8Array>() || get(value, "arrayBuffer").is_function();
    if is_file { bytes(value.clone()).await.map(Some) } else { Ok(None) }
}

/// The path of a file that was chosen with its folder, or its name; empty if it has none.
fn path(file: &JsValue) -> String {
    let text = |key: &str| get(file, key).as_string().filter(|text| !text.is_empty());
    text("webkitRelativePath").or_else(|| text("name")).unwrap_or_default()
}

/// The files and folders of a drop; any other value stays what it is. They must be taken before the event ends.
pub(crate) fn dropped(from: JsValue) -> JsValue {
    let items = get(&from, "items");
    if !get(&from, "types").is_object() || !items.is_object() {
        return from;
    }
    let entry = |item: JsValue| -> Option<JsValue> {
        let take: Function = get(&item, "webkitGetAsEntry").dyn_into().ok()?;
        take.call0(&item).ok().filter(JsValue::is_object)
    };
    Array::from(&items).iter().filter_map(entry).collect::<Array>().into()
}

/// The result of a method that takes a callback for it, and one for an error.
async fn called_back(of: &JsValue, method: &str) -> Result<JsValue> {
    let method: Function = get(of, method).dyn_into()?;
    let mut failed = None;
    let promise = Promise::new(&mut |resolve, reject| {
        failed = method.call2(of, &resolve, &reject).err();
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(JsFuture::from(promise).await?),
    }
}

/// All files of dropped files and folders, with their paths.
async fn walked(entries: Vec<JsValue>) -> Result<Vec<(String, Vec<u8>)>> {
    let (mut files, mut open) = (Vec::new(), entries);
    while let Some(entry) = open.pop() {
        if get(&entry, "isDirectory").is_truthy() {
            let make: Function = get(&entry, "createReader").dyn_into()?;
            let reader = make.call0(&entry)?;
            // A reader gives some entries at a time.
            loop {
                let some = Array::from(&called_back(&reader, "readEntries").await?);
                if some.length() == 0 {
                    break;
                }
                open.extend(some.iter());
            }
        } else {
            let file = called_back(&entry, "file").await?;
            let path = get(&entry, "fullPath").as_string().unwrap_or_default();
            files.push((path.trim_start_matches('/').to_string(), bytes(file).await?));
        }
        if files.len() + open.len() > MOST_FILES {
            return Err(bad_type(format!(
                "the folder has more than {MOST_FILES} files, which is more than a model has. Drop the model's own folder."
            )));
        }
    }
    Ok(files)
}

/// More files than a model has.
const MOST_FILES: usize = 10_000;

/// What the web answers: the contents, or `None` if there is no such file.
async fn asked(what: &str, address: &str) -> Result<Option<Vec<u8>>> {
    let fetch: Function = get(&js_sys::global(), "fetch").dyn_into()?;
    let promise: Promise = fetch.call1(&JsValue::UNDEFINED, &address.into())?.dyn_into()?;
    let response = JsFuture::from(promise).await?;
    if get(&response, "ok").is_truthy() {
        return bytes(response).await.map(Some);
    }
    match get(&response, "status").as_f64().unwrap_or_default() {
        404.0 | 410.0 => Ok(None),
        status => {
            let text = format!("{what}: {address} was answered with the status {status}.");
            Err(Error::Data(text.into()).into())
        }
    }
}

/// The contents of a file on the web.
pub(crate) async fn fetched(what: &str, address: &str) -> Result<Vec<u8>> {
    asked(what, address).await?.ok_or_else(|| {
        let text =
            format!("{what}: {address} was answered with the status 404: there is no such file.");
        Error::Data(text.into()).into()
    })
}

/// An address as the browser completes it.
fn whole_address(what: &str, text: &str) -> Result<String> {
    let global = js_sys::global();
    let document = get(&get(&global, "document"), "baseURI");
    let base = if document.is_string() { document } else { get(&get(&global, "location"), "href") };
    let class: Function = get(&global, "URL").dyn_into()?;
    let arguments = Array::of1(&text.into());
    if base.is_string() {
        arguments.push(&base);
    }
    let url = Reflect::construct(&class, &arguments)
        .map_err(|_| bad_type(format!("{what}: '{text}' is no web address.")))?;
    Ok(String::from(url.unchecked_ref::<Object>().to_string()))
}

/// Whether a path ends as a file does, and not as a folder.
const ENDINGS: &[&str] = &[".json", ".onnx", ".pb", ".keras", ".h5", ".hdf5", ".safetensors"];

impl ModelFiles {
    pub(crate) async fn of(what: &'static str, from: &JsValue) -> Result<Self> {
        let with = |files| ModelFiles { what, folder: None, files };
        let url =
            || get(from, "href").as_string().filter(|_| get(from, "searchParams").is_object());
        if let Some(text) = from.as_string().or_else(url) {
            return ModelFiles::on_the_web(what, &text).await;
        }
        if let Some(bytes) = contents(from).await? {
            return Ok(with(vec![(path(from), bytes)]));
        }
        let mut files = Vec::new();
        let list = get(from, "length").as_f64().is_some();
        let is_entry = |value: &JsValue| get(value, "fullPath").is_string();
        if list && Array::from(from).some(&mut |value| is_entry(&value)) {
            files = walked(Array::from(from).to_vec()).await?;
        } else if list {
            for file in Array::from(from).iter() {
                let Some(bytes) = contents(&file).await? else {
                    return Err(not_files(what, &file));
                };
                files.push((path(&file), bytes));
            }
        } else if let Some(object) = from.dyn_ref::<Object>().filter(|_| !from.is_function()) {
            for name in Object::keys(object).iter().filter_map(|name| name.as_string()) {
                let file = get(from, &name);
                let Some(bytes) = contents(&file).await? else {
                    return Err(not_files(what, &file));
                };
                files.push((name, bytes));
            }
        }
        if files.is_empty() { Err(not_files(what, from)) } else { Ok(with(files)) }
    }

    async fn on_the_web(what: &'static str, text: &str) -> Result<Self> {
        let address = whole_address(what, text)?;
        let (place, query) = match address.find(['?', '#']) {
            Some(at) => address.split_at(at),
            None => (&address[..], ""),
        };
        let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
        let mut files = ModelFiles { what, folder: Some(format!("{folder}/")), files: Vec::new() };
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && name != "saved_model.pb" {
            files.files.push((name.to_string(), fetched(what, &address).await?));
            return Ok(files);
        }
        files.folder_on_the_web(text, (place, name, query)).await?;
        Ok(files)
    }

    /// Without the module for models of other programs, no folder is a model.
    #[cfg(not(feature = "models"))]
    async fn folder_on_the_web(
        &mut self,
        _: &str,
        (place, name, query): (&str, &str, &str),
    ) -> Result<()> {
        let bytes = fetched(self.what, &format!("{place}{query}")).await?;
        self.files.push((name.to_string(), bytes));
        Ok(())
    }

    /// The folder of a SavedModel.
    #[cfg(feature = "models")]
    async fn folder_on_the_web(
        &mut self,
        text: &str,
        (place, name, query): (&str, &str, &str),
    ) -> Result<()> {
        if name != "saved_model.pb" {
            self.folder = Some(format!("{}/", place.trim_end_matches('/')));
        }
        if !query.is_empty() {
            return Err(bad_type(format!(
                "{}: '{text}' is the address of a folder, and has {query} after it, which names one file. Fetch the files, and give \
                 them by name.",
                self.what
            )));
        }
        self.need("saved_model.pb").await?;
        // Layers of Keras 2. A folder without them has nothing else for `loadModel`.
        let of_layers = self.what == "loadModel";
        if of_layers && !self.add("keras_metadata.pb").await? {
            return Ok(());
        }
        let index = "variables/variables.index";
        // A model without variables may have assets.
        self.add(index).await?;
        let rest = wgrad::saved_model::remaining_files(
            self.find("saved_model.pb").unwrap_or_default(),
            self.find(index),
        )?;
        for name in rest {
            self.need(&name).await?;
        }
        Ok(())
    }

    /// The contents of a file.
    pub(crate) fn find(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(own, _)| own == name).map(|(_, bytes)| &bytes[..])
    }

    /// Fetches a file, unless it is here. `false` if there is none.
    async fn add(&mut self, name: &str) -> Result<bool> {
        if self.find(name).is_some() {
            return Ok(true);
        }
        let Some(folder) = &self.folder else { return Ok(false) };
        let escaped: Vec<String> =
            name.split('/').map(|part| String::from(js_sys::encode_uri_component(part))).collect();
        let Some(bytes) = asked(self.what, &format!("{folder}{}", escaped.join("/"))).await? else {
            return Ok(false);
        };
        self.files.push((name.to_string(), bytes));
        Ok(true)
    }

    async fn need(&mut self, name: &str) -> Result<()> {
        if self.add(name).await? {
            return Ok(());
        }
        let folder = self.folder.clone().unwrap_or_default();
        let text = format!("{}: there is no {name} at {folder}.", self.what);
        Err(Error::Data(text.into()).into())
    }

    /// The file at this place, without the ones that it names.
    pub(crate) fn main(&self, is_main: impl Fn(&str) -> bool) -> Option<(String, Vec<u8>)> {
        self.files.iter().find(|(name, _)| is_main(name)).cloned()
    }

    /// Takes the other files that a file names: those on the web are fetched; those in memory lose their folder's name.
    pub(crate) async fn others(
        &mut self,
        main: &str,
        names: &[String],
    ) -> Result<Vec<(String, Vec<u8>)>> {
        if self.folder.is_some() {
            for name in names {
                self.need(name).await?;
            }
        }
        let folder =
            main.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let own = |(name, bytes): (String, Vec<u8>)| {
            (name.strip_prefix(&folder[..]).unwrap_or(&name).to_string(), bytes)
        };
        let files = std::mem::take(&mut self.files).into_iter();
        Ok(files.filter(|(name, _)| name != main).map(own).collect())
    }
}

fn not_files(what: &str, value: &JsValue) -> crate::error::Thrown {
    bad_type(format!(
        "{what}: {} is no file. Give a web address, a File, a list of Files, or an object of contents by name, such as \
         {{ 'model.json': blob }}.",
        show(value)
    ))
}
