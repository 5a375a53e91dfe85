//! Weight files: the safetensors format, read and written with the browser's own JSON.
//!
//! Natively the crate `safetensors` does this; here its JSON parser would be a tenth of what a page loads. `wgrad` checks the
//! names, shapes and dtypes.

use std::rc::Rc;

use js_sys::{Array, JSON, Object, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::keras::optimizers::Optimizer;
use wgrad::{Device, Error, HostArray, HostDType, NamedArray, Trackable};

use crate::args::whole;
use crate::device::object;
use crate::error::Result;
use crate::sequential::{Model, Sequential};

#[wasm_bindgen]
impl Sequential {
    /// Sets the weights from the contents of a safetensors file; layers that have seen no input yet use them at their first
    /// input. Throws a `CheckpointError` if they belong to another model, or a `DataError` if the file is damaged; the weights
    /// then stay unchanged. After a device was lost, this moves the model to the new one.
    pub fn load(&self, bytes: &[u8]) -> Result<()> {
        self.0.layers.set_named_arrays(&read(bytes)?)?;
        let device = Device::current()?;
        let mut training = self.0.training.borrow_mut();
        let elsewhere = |optimizer: &dyn Optimizer| {
            optimizer.variables().first().is_some_and(|slot| *slot.read().device() != device)
        };
        // Optimizer slots on a lost device are lost, too.
        if let Some(old) = training.as_ref().filter(|old| elsewhere(&*old.optimizer)) {
            let fresh = old.renewed()?;
            *training = Some(Rc::new(fresh));
        }
        Ok(())
    }
}

/// The version of the page's own build; `saved` has the full one.
#[cfg(not(feature = "ops"))]
#[wasm_bindgen]
impl Sequential {
    /// The weights as the contents of a safetensors file, with the variables' names. `Sequential::load_weights` reads the file
    /// natively.
    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array>")]
    pub fn save(&self) -> js_sys::Promise {
        let model = self.0.clone();
        crate::error::promise(async move { file(&model).await })
    }
}

/// The weights as the contents of a file.
pub(crate) async fn file(model: &Model) -> Result<JsValue> {
    let arrays = model.layers.named_arrays_async().await?;
    let file = write(&arrays)?;
    Ok(js_sys::Uint8Array::from(&file[..]).into())
}

/// The contents of a file: the header's length, the header, the data.
fn write(arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
    let (header, mut end) = (Object::new(), 0usize);
    for NamedArray { name, array } in arrays {
        let begin = end;
        end += array.bytes().len();
        let number = |value: &usize| JsValue::from(*value as f64);
        let entry = object([
            ("dtype", array.dtype().safetensors_name().unwrap_or_default().into()),
            ("shape", array.shape().iter().map(number).collect::<Array>().into()),
            ("data_offsets", [begin, end].iter().map(number).collect::<Array>().into()),
        ]);
        Reflect::set(&header, &(&**name).into(), &entry)?;
    }
    let mut file = begun(&header)?;
    arrays.iter().for_each(|named| file.extend_from_slice(named.array.bytes()));
    Ok(file)
}

/// A file without its data.
pub(crate) fn begun(header: &Object) -> Result<Vec<u8>> {
    let mut header = String::from(JSON::stringify(header)?);
    // The data begins at a multiple of 8.
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    Ok(file)
}

fn damaged(what: String) -> Error {
    let text = format!("load: {what}. It is damaged or not a safetensors file; take another copy.");
    Error::Data(text.into())
}

/// The header of a file, and its data.
pub(crate) fn header(file: &[u8]) -> Result<(Object, &[u8])> {
    let Some((length, rest)) = file.split_first_chunk() else {
        let text = format!("the file has {} bytes and its header alone has 8", file.len());
        return Err(damaged(text).into());
    };
    let length = u64::from_le_bytes(*length);
    let Some((header, data)) =
        usize::try_from(length).ok().and_then(|at| rest.split_at_checked(at))
    else {
        let left = rest.len();
        let text = format!("the file says that its header has {length} bytes, and {left} are left");
        return Err(damaged(text).into());
    };
    let parsed = std::str::from_utf8(header).ok().and_then(|text| JSON::parse(text).ok());
    match parsed.and_then(|value| value.dyn_into::<Object>().ok()) {
        Some(header) => Ok((header, data)),
        None => Err(damaged("its header cannot be read".to_string()).into()),
    }
}

/// The tensors of a file.
fn read(file: &[u8]) -> Result<Vec<NamedArray<'_>>> {
    let (header, data) = header(file)?;
    let mut arrays = Vec::new();
    for pair in Object::entries(&header).iter() {
        let pair = Array::from(&pair);
        let name = pair.get(0).as_string().unwrap_or_default();
        if name == "__metadata__" {
            continue;
        }
        let array = entry(&name, &pair.get(1), data);
        arrays.push(array.ok_or_else(|| {
            damaged(format!("the header's line of '{name}' does not name a part of the file"))
        })?);
    }
    Ok(arrays)
}

fn entry<'a>(name: &str, entry: &JsValue, data: &'a [u8]) -> Option<NamedArray<'a>> {
    let get = |key: &str| Reflect::get(entry, &key.into()).ok();
    let sizes = |key: &str| -> Option<Vec<usize>> {
        get(key)?.dyn_ref::<Array>()?.iter().map(|size| whole(size.as_f64()?)).collect()
    };
    let &[begin, end] = sizes("data_offsets")?.as_slice() else { return None };
    let dtype = HostDType::from_safetensors_name(&get("dtype")?.as_string()?)?;
    let array = HostArray::new(dtype, sizes("shape")?, data.get(begin..end)?).ok()?;
    Some(NamedArray { name: name.to_string().into(), array })
}
