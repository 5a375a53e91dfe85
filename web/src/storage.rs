//! [`Folder`]: files in a page's own storage, which is the origin's private file system or a
//! database.

use js_sys::{Array, ArrayBuffer, Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::device::object;
use crate::error::{Result, Thrown, bad_type};

/// The object store that holds the files in a database.
const FILES: &str = "files";

/// Where files are stored.
pub(crate) enum Folder {
    /// The names of the folders from the root.
    Opfs(Vec<String>),
    /// The name of the database.
    IndexedDb(String),
}

fn get(of: &JsValue, key: &str) -> Result<JsValue> {
    Ok(Reflect::get(of, &key.into())?)
}

/// Calls a method.
fn call(of: &JsValue, method: &str, arguments: &[JsValue]) -> Result<JsValue> {
    let method: Function = get(of, method)?.dyn_into()?;
    Ok(method.apply(of, &arguments.iter().collect::<Array>())?)
}

/// Calls a method that returns a promise.
async fn awaited(of: &JsValue, method: &str, arguments: &[JsValue]) -> Result<JsValue> {
    let promise = call(of, method, arguments)?;
    Ok(JsFuture::from(Promise::resolve(&promise)).await?)
}

/// Whether an error means that something does not exist.
fn is_missing(error: &JsValue) -> bool {
    get(error, "name").ok().and_then(|name| name.as_string()).is_some_and(|n| n == "NotFoundError")
}

/// The bytes of a `Blob` or a `Uint8Array`.
pub(crate) async fn bytes(value: JsValue) -> Result<Vec<u8>> {
    if let Some(array) = value.dyn_ref::<Uint8Array>() {
        return Ok(array.to_vec());
    }
    if !get(&value, "arrayBuffer").is_ok_and(|method| method.is_function()) {
        return Err(bad_type("Checkpoint: a file must be a Blob or a Uint8Array.".to_string()));
    }
    let buffer: ArrayBuffer = awaited(&value, "arrayBuffer", &[]).await?.dyn_into()?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

impl Folder {
    pub(crate) fn of(text: &str) -> Result<Self> {
        let (kind, path) = text.split_once("://").unwrap_or(("", text));
        let names: Vec<String> = path.split('/').map(String::from).collect();
        let named = names.iter().all(|name| !name.is_empty() && name != "." && name != "..");
        match (kind, names.as_slice()) {
            ("opfs", _) if named => Ok(Folder::Opfs(names)),
            ("indexeddb", [database]) if named => Ok(Folder::IndexedDb(database.clone())),
            _ => Err(bad_type(format!(
                "Checkpoint: '{text}' is no folder of a page; there are opfs://FOLDER and indexeddb://DATABASE."
            ))),
        }
    }

    /// Writes files in this order, each atomically; in a database all of them at once.
    pub(crate) async fn write(&self, files: &[(String, Vec<u8>)]) -> Result<()> {
        match self {
            Folder::Opfs(names) => {
                let folder = opfs(names, true).await?;
                for (name, bytes) in files {
                    let create: JsValue = object([("create", true.into())]).into();
                    let file = awaited(&folder, "getFileHandle", &[name.into(), create]).await?;
                    // The new contents replace the old ones when the stream is closed.
                    let out = awaited(&file, "createWritable", &[]).await?;
                    awaited(&out, "write", &[Uint8Array::from(&bytes[..]).into()]).await?;
                    awaited(&out, "close", &[]).await?;
                }
                Ok(())
            }
            Folder::IndexedDb(database) => {
                let database = open(database).await?;
                let transaction =
                    call(&database, "transaction", &[FILES.into(), "readwrite".into()])?;
                let store = call(&transaction, "objectStore", &[FILES.into()])?;
                for (name, bytes) in files {
                    let bytes = Uint8Array::from(&bytes[..]);
                    call(&store, "put", &[bytes.into(), name.into()])?;
                }
                let ended = heard(&transaction, "oncomplete", &["onerror", "onabort"]).await;
                call(&database, "close", &[])?;
                ended.map(drop)
            }
        }
    }

    /// The contents of a file, if it is there.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Folder::Opfs(names) => {
                let found = async {
                    let folder = opfs(names, false).await?;
                    let file = awaited(&folder, "getFileHandle", &[name.into()]).await?;
                    bytes(awaited(&file, "getFile", &[]).await?).await
                };
                match found.await.map_err(JsValue::from) {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(error) if is_missing(&error) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            Folder::IndexedDb(database) => {
                let database = open(database).await?;
                let transaction = call(&database, "transaction", &[FILES.into()])?;
                let store = call(&transaction, "objectStore", &[FILES.into()])?;
                let request = call(&store, "get", &[name.into()])?;
                let found = heard(&request, "onsuccess", &["onerror"]).await;
                call(&database, "close", &[])?;
                found?;
                let value = get(&request, "result")?;
                if value.is_undefined() { Ok(None) } else { bytes(value).await.map(Some) }
            }
        }
    }
}

/// The handle of a folder in the private file system.
async fn opfs(names: &[String], create: bool) -> Result<JsValue> {
    let storage = get(&get(&js_sys::global(), "navigator")?, "storage")?;
    if storage.is_undefined() {
        return Err(bad_type(
            "Checkpoint: this page has no file system: it needs https or localhost.".to_string(),
        ));
    }
    let mut folder = awaited(&storage, "getDirectory", &[]).await?;
    for name in names {
        let options: JsValue = object([("create", create.into())]).into();
        folder = awaited(&folder, "getDirectoryHandle", &[name.into(), options]).await?;
    }
    Ok(folder)
}

/// The database of this name, with an object store for the files.
async fn open(name: &str) -> Result<JsValue> {
    let factory = get(&js_sys::global(), "indexedDB")?;
    let request = call(&factory, "open", &[name.into(), 1.into()])?;
    let opening = request.clone();
    let upgrade = Closure::once_into_js(move || {
        let store = || call(&get(&opening, "result")?, "createObjectStore", &[FILES.into()]);
        // An error here makes the request fail.
        let _: Result<JsValue> = store();
    });
    Reflect::set(&request, &"onupgradeneeded".into(), &upgrade)?;
    heard(&request, "onsuccess", &["onerror", "onblocked"]).await?;
    get(&request, "result")
}

/// Waits for an event; for one of `bad`, fails with the request's error.
async fn heard(request: &JsValue, good: &str, bad: &[&str]) -> Result<JsValue> {
    let mut failed = None;
    let promise = Promise::new(&mut |resolve, reject| {
        let set = |event: &str, listener: &Function| {
            Reflect::set(request, &event.into(), listener).map(drop)
        };
        let listens =
            set(good, &resolve).and_then(|()| bad.iter().try_for_each(|event| set(event, &reject)));
        failed = listens.err();
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    JsFuture::from(promise).await.map_err(|event| {
        let error = get(request, "error").ok().filter(|error| error.is_object());
        Thrown::from(error.unwrap_or(event))
    })
}
