//! Tensors as JSON, in the forms of TensorFlow Serving, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use wgrad::saved_model::SavedSpec;
use wgrad::{HostArray, HostDType};

/// The key of an object that is a string of bytes.
const BYTES: &str = "b64";

/// The array of a nested list, of the dtype and the rank of `spec`; or what is wrong with it.
pub fn array(value: &Value, spec: &SavedSpec) -> Result<HostArray<'static>, String> {
    let mut shape = Vec::new();
    let mut inner = value;
    while let Value::Array(list) = inner {
        shape.push(list.len());
        match list.first() {
            Some(first) => inner = first,
            None => break,
        }
    }
    let mut leaves = Vec::new();
    collect(value, &shape, &mut leaves)
        .map_err(|why| format!("the tensor \"{}\" {why}", spec.name))?;
    if let Some(wanted) = &spec.shape {
        let fits = wanted.len() == shape.len()
            && wanted
                .iter()
                .zip(&shape)
                .all(|(wanted, size)| wanted.is_none_or(|wanted| wanted == *size));
        if !fits {
            return Err(format!(
                "the tensor \"{}\" has the shape {shape:?}, and the model takes {spec}",
                spec.name
            ));
        }
    }
    elements(&leaves, &shape, spec.dtype)
        .map_err(|why| format!("the tensor \"{}\" of {} {why}", spec.name, spec.dtype))
}

/// The elements of a nested list whose sizes are `shape`.
fn collect<'a>(
    value: &'a Value,
    shape: &[usize],
    leaves: &mut Vec<&'a Value>,
) -> Result<(), String> {
    match (value, shape) {
        (Value::Array(list), [size, rest @ ..]) if list.len() == *size => {
            list.iter().try_for_each(|value| collect(value, rest, leaves))
        }
        (Value::Array(_), _) | (_, [_, ..]) => {
            Err("is no array: its lists have different lengths or depths".to_string())
        }
        (leaf, []) => {
            leaves.push(leaf);
            Ok(())
        }
    }
}

fn elements(
    leaves: &[&Value],
    shape: &[usize],
    dtype: HostDType,
) -> Result<HostArray<'static>, String> {
    if dtype == HostDType::String {
        let strings = leaves.iter().map(|leaf| string(leaf)).collect::<Result<Vec<_>, _>>()?;
        return HostArray::from_strings(shape, strings).map_err(|error| error.to_string());
    }
    macro_rules! bytes {
        ($leaves:expr, $type:ty, $read:expr) => {{
            let mut bytes = Vec::with_capacity($leaves.len() * std::mem::size_of::<$type>());
            for leaf in $leaves {
                let value: $type = $read(leaf).ok_or_else(|| format!("has the element {leaf}"))?;
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            bytes
        }};
    }
    fn whole<T: TryFrom<i64>>(leaf: &Value) -> Option<T> {
        let exact = |value: &f64| value.fract() == 0.0 && value.abs() < 9e15;
        let float = || leaf.as_f64().filter(exact).map(|value| value as i64);
        leaf.as_i64().or_else(float).and_then(|value| T::try_from(value).ok())
    }
    let bytes = match dtype {
        HostDType::F32 => {
            bytes!(leaves, f32, |leaf: &Value| leaf.as_f64().map(|value| value as f32))
        }
        HostDType::F64 => bytes!(leaves, f64, |leaf: &Value| leaf.as_f64()),
        HostDType::F16 => {
            bytes!(leaves, half::f16, |leaf: &Value| leaf.as_f64().map(half::f16::from_f64))
        }
        HostDType::I8 => bytes!(leaves, i8, whole),
        HostDType::I16 => bytes!(leaves, i16, whole),
        HostDType::I32 => bytes!(leaves, i32, whole),
        HostDType::I64 => bytes!(leaves, i64, whole),
        HostDType::U8 => bytes!(leaves, u8, whole),
        HostDType::U16 => bytes!(leaves, u16, whole),
        HostDType::U32 => bytes!(leaves, u32, whole),
        HostDType::Bool => bytes!(leaves, u8, |leaf: &Value| leaf.as_bool().map(u8::from)),
        other => return Err(format!("cannot be given as JSON ({other})")),
    };
    HostArray::new(dtype, shape, bytes).map_err(|error| error.to_string())
}

/// A string, or an object with its bytes in base64.
fn string(leaf: &Value) -> Result<Vec<u8>, String> {
    match leaf {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Object(object) => match object.get(BYTES) {
            Some(Value::String(text)) if object.len() == 1 => {
                BASE64.decode(text).map_err(|error| format!("has bad base64: {error}"))
            }
            _ => Err(format!("has an object that is no {{\"{BYTES}\": \"...\"}}")),
        },
        other => Err(format!("has the element {other}, which is no string")),
    }
}

/// An array as a nested list. A number that JSON lacks (NaN, infinity) is a string, as TensorFlow Serving's reader takes it.
pub fn json_of(name: &str, array: &HostArray<'_>) -> Value {
    let leaves: Vec<Value> = if let Some(strings) = array.strings() {
        strings
            .iter()
            .map(|bytes| match std::str::from_utf8(bytes) {
                // TensorFlow Serving's rule.
                Ok(text) if !name.ends_with("_bytes") => Value::from(text),
                _ => json!({ BYTES: BASE64.encode(bytes) }),
            })
            .collect()
    } else {
        let float = matches!(
            array.dtype(),
            HostDType::F16 | HostDType::Bf16 | HostDType::F32 | HostDType::F64
        );
        let number = |value: f64| match array.dtype() {
            HostDType::Bool => Value::from(value != 0.0),
            _ if !float => Value::from(value as i64),
            HostDType::F32 if value.is_finite() => short(value as f32),
            _ if value.is_finite() => Value::from(value),
            _ => Value::from(value.to_string()),
        };
        array.to_f64().map_or(Vec::new(), |values| values.iter().copied().map(number).collect())
    };
    nested(&mut leaves.into_iter(), array.shape())
}

/// The shortest decimal number that is this `f32`: 0.1, not 0.10000000149011612.
fn short(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

fn nested(leaves: &mut impl Iterator<Item = Value>, shape: &[usize]) -> Value {
    match shape {
        [] => leaves.next().unwrap_or(Value::Null),
        [size, rest @ ..] => Value::Array((0..*size).map(|_| nested(leaves, rest)).collect()),
    }
}

/// The inputs of a request: rows (`instances`) or columns (`inputs`), by their names.
pub fn inputs(body: &Value, specs: &[SavedSpec]) -> Result<Vec<HostArray<'static>>, String> {
    let columns =
        match (body.get("instances"), body.get("inputs")) {
            (Some(Value::Array(rows)), None) => columns_of(rows, specs)?,
            (Some(_), None) => return Err("\"instances\" must be a list".to_string()),
            (None, Some(columns)) => named(columns, specs)?,
            _ => return Err(
                "the body needs either \"instances\" (a list of examples) or \"inputs\" (tensors)"
                    .to_string(),
            ),
        };
    specs.iter().zip(&columns).map(|(spec, value)| array(value, spec)).collect()
}

/// A value for each input: the value of the only one, or an object.
fn named(value: &Value, specs: &[SavedSpec]) -> Result<Vec<Value>, String> {
    let names = || specs.iter().map(|spec| &spec.name[..]).collect::<Vec<_>>().join(", ");
    match value {
        Value::Object(object) if !object.contains_key(BYTES) => {
            if let Some(unknown) =
                object.keys().find(|key| specs.iter().all(|spec| spec.name != **key))
            {
                return Err(format!("the model has no input \"{unknown}\"; it takes {}", names()));
            }
            let each = specs.iter().map(|spec| {
                object
                    .get(&spec.name)
                    .cloned()
                    .ok_or_else(|| format!("the input \"{}\" is missing", spec.name))
            });
            each.collect()
        }
        value if specs.len() == 1 => Ok(vec![value.clone()]),
        _ => Err(format!("the model has several inputs ({}); pass an object", names())),
    }
}

/// Rows as a list for each input.
fn columns_of(rows: &[Value], specs: &[SavedSpec]) -> Result<Vec<Value>, String> {
    let mut columns: Vec<Vec<Value>> = vec![Vec::with_capacity(rows.len()); specs.len()];
    for (at, row) in rows.iter().enumerate() {
        let values = named(row, specs).map_err(|why| format!("instance {at}: {why}"))?;
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    Ok(columns.into_iter().map(Value::Array).collect())
}

/// The response in the form of the request.
pub fn response(body: &Value, results: &[(String, HostArray<'static>)]) -> Value {
    let mut columns: Vec<(String, Value)> =
        results.iter().map(|(name, array)| (name.clone(), json_of(name, array))).collect();
    if body.get("instances").is_none() {
        return match columns.len() {
            1 => json!({ "outputs": columns.remove(0).1 }),
            _ => json!({ "outputs": Map::from_iter(columns) }),
        };
    }
    if columns.len() == 1 {
        return json!({ "predictions": columns.remove(0).1 });
    }
    let count = body["instances"].as_array().map_or(0, Vec::len);
    let mut rows: Vec<Map<String, Value>> = vec![Map::new(); count];
    for (name, column) in columns {
        if let Value::Array(values) = column {
            rows.iter_mut()
                .zip(values)
                .for_each(|(row, value)| drop(row.insert(name.clone(), value)));
        }
    }
    json!({ "predictions": rows })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn spec(name: &str, dtype: HostDType, shape: &[Option<usize>]) -> SavedSpec {
        SavedSpec { name: name.to_string(), dtype, shape: Some(shape.to_vec()) }
    }

    #[test]
    fn rows_and_columns_are_the_same_tensors() {
        let specs =
            [spec("a", HostDType::F32, &[None, Some(2)]), spec("b", HostDType::I32, &[None])];
        let rows = json!({"instances": [{"a": [1, 2.5], "b": 3}, {"a": [0.1, 4], "b": -1}]});
        let columns = json!({"inputs": {"a": [[1, 2.5], [0.1, 4]], "b": [3, -1]}});
        let one = inputs(&rows, &specs).unwrap();
        assert_eq!(one, inputs(&columns, &specs).unwrap());
        let named = vec![("a".to_string(), one[0].clone()), ("b".to_string(), one[1].clone())];
        assert_eq!(response(&rows, &named), json!({"predictions": rows["instances"]}).map_floats());
        assert_eq!(response(&columns, &named)["outputs"]["b"], json!([3, -1]));
    }

    /// Whole numbers of a float tensor are floats in a response.
    trait MapFloats {
        fn map_floats(self) -> Value;
    }

    impl MapFloats for Value {
        fn map_floats(mut self) -> Value {
            for row in self["predictions"].as_array_mut().unwrap() {
                for value in row["a"].as_array_mut().unwrap() {
                    *value = json!(value.as_f64().unwrap());
                }
            }
            self
        }
    }

    #[test]
    fn strings_are_text_or_base64() {
        let specs = [spec("s", HostDType::String, &[None])];
        let body = json!({"instances": ["red", {"b64": "/w=="}]});
        let array = inputs(&body, &specs).unwrap().remove(0);
        assert_eq!(array.strings().unwrap(), [b"red".to_vec(), vec![0xff]]);
        assert_eq!(json_of("s", &array), json!(["red", {"b64": "/w=="}]));
        assert_eq!(json_of("s_bytes", &array), json!([{"b64": "cmVk"}, {"b64": "/w=="}]));
    }

    #[test]
    fn numbers_that_json_lacks_are_strings() {
        let values: HostArray<'_> =
            wgrad::ndarray::arr1(&[f32::NAN, f32::INFINITY, 0.1, 1.0]).into();
        assert_eq!(json_of("y", &values), json!(["NaN", "inf", 0.1, 1.0]));
    }

    #[test]
    fn wrong_bodies_say_why() {
        let one = [spec("x", HostDType::I32, &[None, Some(2)])];
        let two = [spec("a", HostDType::F32, &[None]), spec("b", HostDType::F32, &[None])];
        for (body, specs, part) in [
            (json!({}), &one[..], "either \"instances\""),
            (json!({"instances": 3}), &one, "must be a list"),
            (json!({"instances": [[1, 2], [3]]}), &one, "different lengths"),
            (
                json!({"instances": [[1, 2, 3]]}),
                &one,
                "has the shape [1, 3], and the model takes x: int32[?, 2]",
            ),
            (json!({"instances": [[1, 0.5]]}), &one, "has the element 0.5"),
            (json!({"instances": [[1, "a"]]}), &one, "has the element \"a\""),
            (json!({"inputs": [[1, 3000000000u32]]}), &one, "has the element 3000000000"),
            (json!({"inputs": [1]}), &two, "several inputs (a, b)"),
            (json!({"inputs": {"a": [1]}}), &two, "the input \"b\" is missing"),
            (
                json!({"instances": [{"a": 1, "b": 2}, {"a": 1, "c": 2}]}),
                &two,
                "instance 1: the model has no input \"c\"",
            ),
        ] {
            let why = inputs(&body, specs).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
