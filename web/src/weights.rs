//! Weight files: the safetensors format, read and written with the browser's own JSON.
//!
//! Natively the crate `safetensors` does this; here its JSON parser would be a tenth of what a page loads. What
//! names, shapes and dtypes must be is checked in `wgrad`.

use js_sys::{Array, JSON, Object, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::Error;
use wgrad::keras::NamedArray;

use crate::args::whole;
use crate::device::object;
use crate::error::Result;

/// The contents of a file: the header's length, the header, the data.
pub(crate) fn write(arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
    let (header, mut end) = (Object::new(), 0usize);
    for array in arrays {
        let begin = end;
        end += array.bytes.len();
        let number = |value: &usize| JsValue::from(*value as f64);
        let entry = object([
            ("dtype", (&*array.dtype).into()),
            ("shape", array.shape.iter().map(number).collect::<Array>().into()),
            ("data_offsets", [begin, end].iter().map(number).collect::<Array>().into()),
        ]);
        Reflect::set(&header, &(&*array.name).into(), &entry)?;
    }
    let mut header = String::from(JSON::stringify(&header)?);
    // The data begin at a multiple of 8.
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    arrays.iter().for_each(|array| file.extend_from_slice(&array.bytes));
    Ok(file)
}

/// The tensors of a file.
pub(crate) fn read(file: &[u8]) -> Result<Vec<NamedArray<'_>>> {
    let damaged = |what: String| {
        Error::Data(
            format!("load: {what}. It is damaged or no safetensors file; take another copy.")
                .into(),
        )
    };
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
    let Some(header) = parsed.as_ref().and_then(|value| value.dyn_ref::<Object>()) else {
        return Err(damaged("its header cannot be read".to_string()).into());
    };
    let mut arrays = Vec::new();
    for pair in Object::entries(header).iter() {
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
    Some(NamedArray {
        name: name.to_string().into(),
        dtype: get("dtype")?.as_string()?.into(),
        shape: sizes("shape")?,
        bytes: data.get(begin..end)?.into(),
    })
}
