//! The weights of a TensorFlow.js model: a list in `model.json`, and the files that hold one weight after the other.

use half::f16;
use serde_json::Value;

use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::model_files::{ModelFiles, stays_inside};

fn broken(what: std::fmt::Arguments<'_>) -> Error {
    Error::Data(message!("{what}. The model is damaged; take another copy."))
}

/// The groups of weights.
fn groups(json: &Value) -> Result<&[Value]> {
    let groups = json.get("weightsManifest").and_then(Value::as_array);
    groups
        .map(Vec::as_slice)
        .ok_or_else(|| broken(format_args!("model.json has no \"weightsManifest\"")))
}

fn paths(group: &Value) -> Result<Vec<String>> {
    let paths = group.get("paths").and_then(Value::as_array);
    let paths = paths.ok_or_else(|| broken(format_args!("a group of weights has no \"paths\"")))?;
    let path = |path: &Value| {
        let text = path.as_str().unwrap_or("");
        let path = text.strip_prefix("./").unwrap_or(text);
        if !stays_inside(path) {
            return Err(Error::Data(message!(
                "the model names the file \"{text}\", which is outside its folder."
            )));
        }
        Ok(path.to_string())
    };
    paths.iter().map(path).collect()
}

/// The names of the files.
pub(super) fn files(json: &Value) -> Result<Vec<String>> {
    let all = groups(json)?.iter().map(paths).collect::<Result<Vec<_>>>()?;
    Ok(all.concat())
}

/// All weights of the model, by name, in the order of the files; without those of an optimizer.
pub(super) fn read(json: &Value, files: &ModelFiles) -> Result<Vec<(String, HostArray<'static>)>> {
    let mut all = Vec::new();
    for group in groups(json)? {
        let mut bytes = Vec::new();
        for path in paths(group)? {
            bytes.extend_from_slice(&files.read(&path)?);
        }
        let specs = group.get("weights").and_then(Value::as_array);
        let specs = specs.ok_or_else(|| broken(format_args!("a group has no \"weights\"")))?;
        let mut rest = &bytes[..];
        for spec in specs {
            let name = spec.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| broken(format_args!("a weight has no name")))?;
            let array = weight(name, spec, &mut rest)?;
            if spec.get("group").and_then(Value::as_str) != Some("optimizer") {
                all.push((name.to_string(), array));
            }
        }
        if !rest.is_empty() {
            return Err(broken(format_args!(
                "the files of the weights have {} bytes more than their list",
                rest.len()
            )));
        }
    }
    Ok(all)
}

fn dtype_named(name: &str) -> Option<HostDType> {
    Some(match name {
        "float32" => HostDType::F32,
        "float16" => HostDType::F16,
        "int32" => HostDType::I32,
        "uint8" => HostDType::U8,
        "uint16" => HostDType::U16,
        "bool" => HostDType::Bool,
        "string" => HostDType::String,
        _ => return None,
    })
}

/// The next weight in `rest`.
fn weight(name: &str, spec: &Value, rest: &mut &[u8]) -> Result<HostArray<'static>> {
    let dtype_of = |value: &Value| {
        let text = value.get("dtype").and_then(Value::as_str).unwrap_or("");
        dtype_named(text).ok_or_else(|| {
            Error::Data(message!(
                "the weight \"{name}\" has the dtype \"{text}\", which is not supported."
            ))
        })
    };
    let dtype = dtype_of(spec)?;
    let size = |size: &Value| usize::try_from(size.as_u64()?).ok();
    let shape: Option<Vec<usize>> = spec
        .get("shape")
        .and_then(Value::as_array)
        .and_then(|sizes| sizes.iter().map(size).collect());
    let shape = shape.ok_or_else(|| broken(format_args!("the weight \"{name}\" has no shape")))?;
    let mut take = |bytes: Option<usize>| -> Result<&[u8]> {
        let all: &[u8] = rest;
        let found = bytes.and_then(|bytes| Some((all.get(..bytes)?, all.get(bytes..)?)));
        let (found, after) = found.ok_or_else(|| {
            broken(format_args!(
                "the files end in the weight \"{name}\", {} {shape:?}: {} bytes are left",
                dtype.tensorflow_name(),
                all.len()
            ))
        })?;
        *rest = after;
        Ok(found)
    };
    if dtype == HostDType::String {
        let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
        let mut strings = Vec::new();
        for _ in
            0..count.ok_or_else(|| broken(format_args!("the weight \"{name}\" is too large")))?
        {
            let length = take(Some(4))?;
            let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
            strings.push(take(usize::try_from(length).ok())?.to_vec());
        }
        return HostArray::from_strings(shape, strings);
    }
    let Some(quantization) = spec.get("quantization") else {
        let bytes = take(dtype.array_bytes(&shape))?.to_vec();
        return HostArray::new(dtype, shape, bytes);
    };
    let stored = dtype_of(quantization)?;
    let bytes = take(stored.array_bytes(&shape))?;
    let number = |key: &str| quantization.get(key).and_then(Value::as_f64);
    let linear = || number("scale").zip(number("min"));
    let values: Vec<f64> = match (stored, linear()) {
        (HostDType::F16, _) => {
            bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect()
        }
        (HostDType::U8, Some((scale, min))) => {
            bytes.iter().map(|byte| f64::from(*byte) * scale + min).collect()
        }
        (HostDType::U16, Some((scale, min))) => {
            let integer = |b: &[u8]| f64::from(u16::from_le_bytes([b[0], b[1]]));
            bytes.chunks_exact(2).map(|b| integer(b) * scale + min).collect()
        }
        _ => {
            return Err(broken(format_args!(
                "the weight \"{name}\" is quantized as {}, without a scale and a minimum",
                stored.tensorflow_name()
            )));
        }
    };
    let bytes: Vec<u8> = match dtype {
        HostDType::F32 => values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect(),
        HostDType::I32 => {
            values.iter().flat_map(|value| (value.round() as i32).to_le_bytes()).collect()
        }
        other => {
            return Err(Error::Data(message!(
                "the weight \"{name}\" is a quantized {}, which is not supported.",
                other.tensorflow_name()
            )));
        }
    };
    HostArray::new(dtype, shape, bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_one(spec: Value, bytes: &[u8]) -> Result<HostArray<'static>> {
        let json = json!({"weightsManifest": [{"paths": ["./a", "b"], "weights": [spec]}]});
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let files = ModelFiles::memory([("a", first.to_vec()), ("b", second.to_vec())], "");
        Ok(read(&json, &files)?.pop().unwrap().1)
    }

    fn values(array: &HostArray<'_>) -> Vec<f64> {
        array.to_f64().unwrap().into_iter().collect()
    }

    #[test]
    fn quantized_weights_are_what_tensorflow_js_has() {
        let spec = json!({"name": "w", "shape": [3], "dtype": "float32",
            "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1.0}});
        assert_eq!(values(&read_one(spec, &[0, 2, 255]).unwrap()), [-1.0, 0.0, 126.5]);
        let spec = json!({"name": "w", "shape": [2], "dtype": "int32",
            "quantization": {"dtype": "uint16", "scale": 0.25, "min": 1.0}});
        let array = read_one(spec, &[6, 0, 0, 1]).unwrap();
        assert_eq!((array.dtype(), values(&array)), (HostDType::I32, vec![3.0, 65.0]));
        let spec = json!({"name": "w", "shape": [], "dtype": "float32", "quantization": {"dtype": "float16"}});
        assert_eq!(values(&read_one(spec, &[0, 0x3c]).unwrap()), [1.0]);
    }

    #[test]
    fn strings_have_their_lengths_before_them() {
        let spec = json!({"name": "w", "shape": [2], "dtype": "string"});
        let array = read_one(spec, &[1, 0, 0, 0, b'a', 0, 0, 0, 0]).unwrap();
        assert_eq!(array.strings().unwrap(), [&b"a"[..], b""]);
    }

    #[test]
    fn lists_that_do_not_fit_the_files_are_errors() {
        let plain = |shape: Value| json!({"name": "w", "shape": shape, "dtype": "float32"});
        for (spec, words) in [
            (plain(json!([2])), "the files end in the weight \"w\", float32 [2]: 4 bytes are left"),
            (plain(json!([0])), "4 bytes more than their list"),
            (plain(json!([1u64 << 40, 1u64 << 40])), "4 bytes are left"),
            (plain(json!([-1])), "has no shape"),
            (
                json!({"name": "w", "shape": [1], "dtype": "complex64"}),
                "\"complex64\", which is not supported",
            ),
            (json!({"shape": [1], "dtype": "float32"}), "has no name"),
            (json!({"name": "w", "shape": [1u64 << 40], "dtype": "string"}), "the files end"),
            (
                json!({"name": "w", "shape": [4], "dtype": "float32", "quantization": {"dtype": "uint8"}}),
                "without a scale",
            ),
        ] {
            let error = read_one(spec, &[0; 4]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let outside = json!({"weightsManifest": [{"paths": ["../a"], "weights": []}]});
        let error = files(&outside).unwrap_err().to_string();
        assert!(error.contains("\"../a\", which is outside"), "{error}");
    }
}
