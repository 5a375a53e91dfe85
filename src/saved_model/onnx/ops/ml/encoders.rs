//! Ops that replace categories by others, or by numbers. Strings are on the host; numbers are compared on the device.

use std::collections::HashMap;

use super::call::{Call, Results, Table, ints as read_ints, one, tensor};
use super::{as_floats, floats, ints, short, strings, wrong_length};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::ops::where_;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("ai.onnx.ml.CategoryMapper", category_mapper),
    ("ai.onnx.ml.LabelEncoder", label_encoder),
    ("ai.onnx.ml.OneHotEncoder", one_hot_encoder),
];

/// The most comparisons of a call.
const MOST: usize = 1 << 30;

/// Keys or values.
enum Entries {
    Strings(Vec<Vec<u8>>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
}

impl Entries {
    fn len(&self) -> usize {
        match self {
            Entries::Strings(all) => all.len(),
            Entries::Ints(all) => all.len(),
            Entries::Floats(all) => all.len(),
        }
    }

    /// The numbers on the device.
    fn tensor(&self) -> Result<Tensor> {
        match self {
            Entries::Ints(all) => Tensor::from_slice(&short(all)?, [all.len()]),
            Entries::Floats(all) => Tensor::from_slice(all, [all.len()]),
            Entries::Strings(_) => Err(Error::DType(message!("strings are on the host."))),
        }
    }

    /// These entries on the host; the last one where a place is `None`.
    fn array(&self, shape: &[usize], places: &[Option<usize>]) -> Result<HostArray<'static>> {
        let last = self.len().saturating_sub(1);
        let places = places.iter().map(|place| place.unwrap_or(last));
        let (dtype, bytes): (_, Vec<u8>) = match self {
            Entries::Strings(all) => {
                let texts: Vec<Vec<u8>> = places.map(|at| all[at].clone()).collect();
                return HostArray::from_strings(shape, texts);
            }
            Entries::Ints(all) => {
                (HostDType::I64, places.flat_map(|at| all[at].to_le_bytes()).collect())
            }
            Entries::Floats(all) => {
                (HostDType::F32, places.flat_map(|at| all[at].to_le_bytes()).collect())
            }
        };
        HostArray::new(dtype, shape, bytes)
    }
}

/// The strings of a value on the host.
fn texts(x: &HostArray<'_>) -> Result<Vec<Vec<u8>>> {
    let wrong = || Error::DType(message!("it needs strings, and gets {}.", x.dtype()));
    x.strings().map(<[Vec<u8>]>::to_vec).ok_or_else(wrong)
}

/// The place of each element among the keys. Later keys hide earlier ones, as in onnxruntime.
fn places<K: std::hash::Hash + Eq>(
    keys: impl IntoIterator<Item = K>,
    elements: impl IntoIterator<Item = K>,
) -> Vec<Option<usize>> {
    let all: HashMap<K, usize> = keys.into_iter().enumerate().map(|(at, key)| (key, at)).collect();
    elements.into_iter().map(|element| all.get(&element).copied()).collect()
}

/// Elements equal to a key; all that are no numbers are the same one.
fn bits(number: f64) -> u64 {
    if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() }
}

/// Replaces keys by values; what is no key, by `default`.
fn replaced(x: &Value, keys: &Entries, mut values: Entries, default: Entries) -> Result<Value> {
    if keys.len() != values.len() || keys.len() == 0 {
        return Err(Error::Data(message!(
            "it has {} keys and {} values. The file is damaged.",
            keys.len(),
            values.len()
        )));
    }
    let numbers = !matches!((keys, &values), (Entries::Strings(_), _) | (_, Entries::Strings(_)));
    if numbers && x.as_host().is_none_or(|array| array.dtype() != HostDType::I64) {
        return replaced_on_device(&x.tensor()?, keys, &values, &default).map(Value::Tensor);
    }
    let x = x.read()?;
    let found = match keys {
        Entries::Strings(keys) => places(keys.clone(), texts(&x)?),
        Entries::Ints(keys) => places(keys.clone(), read_ints(&Value::Host(x.clone()))?),
        Entries::Floats(keys) => {
            let wrong = || Error::DType(message!("it needs numbers, and gets {}.", x.dtype()));
            let elements = x.to_f64().ok_or_else(wrong)?;
            places(keys.iter().map(|key| bits(f64::from(*key))), elements.into_iter().map(bits))
        }
    };
    match (&mut values, default) {
        (Entries::Strings(all), Entries::Strings(more)) => all.extend(more),
        (Entries::Ints(all), Entries::Ints(more)) => all.extend(more),
        (Entries::Floats(all), Entries::Floats(more)) => all.extend(more),
        _ => return Err(Error::DType(message!("its default has another dtype than its values."))),
    }
    Ok(Value::host(values.array(x.shape(), &found)?))
}

fn replaced_on_device(
    x: &Tensor,
    keys: &Entries,
    values: &Entries,
    default: &Entries,
) -> Result<Tensor> {
    let mut own = keys.tensor()?;
    let mut x = x.clone();
    if x.dtype() != own.dtype() {
        (x, own) = (as_floats(&x)?, as_floats(&own)?);
    }
    bounded(x.shape(), keys.len())?;
    let wide = x.expand_dims(-1)?;
    let mut equal = wide.equal(&own)?;
    if let Entries::Floats(all) = keys {
        let nan: Vec<bool> = all.iter().map(|key| key.is_nan()).collect();
        if nan.contains(&true) {
            let nan = Tensor::from_slice(&nan, [nan.len()])?;
            equal = equal.logical_or(wide.is_nan()?.logical_and(nan)?)?;
        }
    }
    let hits = equal.cast(DType::I32)?;
    let found = hits.reduce_max(-1)?.greater(0)?;
    let chosen = values.tensor()?.gather(&hits.argmax(-1)?, 0)?;
    let default = default.tensor()?.reshape(())?.broadcast_to(chosen.shape())?;
    where_(&found, &chosen, &default)
}

fn bounded(shape: &[usize], keys: usize) -> Result<()> {
    let count = shape.iter().try_fold(keys, |all, size| all.checked_mul(*size));
    match count.filter(|count| *count <= MOST) {
        Some(_) => Ok(()),
        None => Err(Error::Shape(message!(
            "{shape:?} elements are compared with {keys} keys each, which is too much. Pass fewer rows."
        ))),
    }
}

/// The keys or values, of one of several attributes.
fn entries(c: &Call<'_>, kind: &str) -> Result<Entries> {
    if let Some(value) = c.node.constants.get(&format!("{kind}_tensor")) {
        let array = value.read()?;
        if let Some(texts) = array.strings() {
            return Ok(Entries::Strings(texts.to_vec()));
        }
        if matches!(array.dtype(), HostDType::F32 | HostDType::F64) {
            let numbers = array.to_f64().into_iter().flatten();
            return Ok(Entries::Floats(numbers.map(|number| number as f32).collect()));
        }
        return read_ints(value).map(Entries::Ints);
    }
    let texts = strings(c, &format!("{kind}_strings"));
    if !texts.is_empty() {
        return Ok(Entries::Strings(texts.to_vec()));
    }
    let numbers = floats(c, &format!("{kind}_floats"));
    if !numbers.is_empty() {
        return Ok(Entries::Floats(numbers.to_vec()));
    }
    Ok(Entries::Ints(ints(c, &format!("{kind}_int64s")).to_vec()))
}

fn text(c: &Call<'_>, default: &str) -> Vec<u8> {
    let attribute = c.node.attributes.get("default_string");
    attribute.map_or(default.as_bytes().to_vec(), |attribute| attribute.s.clone())
}

fn label_encoder(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    // The first version numbers strings.
    let classes = strings(c, "classes_strings");
    if !classes.is_empty() {
        return numbered(c, &x, classes, (0..classes.len() as i64).collect());
    }
    let values = entries(c, "values")?;
    let default = match (c.node.constants.get("default_tensor"), &values) {
        (Some(_), _) => entries(c, "default")?,
        (None, Entries::Strings(_)) => Entries::Strings(vec![text(c, "_Unused")]),
        (None, Entries::Ints(_)) => Entries::Ints(vec![c.attr_int("default_int64", -1)]),
        (None, Entries::Floats(_)) => Entries::Floats(vec![c.attr_float("default_float", -0.0)]),
    };
    if default.len() != 1 {
        return Err(wrong_length("default_tensor", default.len(), 1));
    }
    one(replaced(&x, &entries(c, "keys")?, values, default)?)
}

fn category_mapper(c: &Call<'_>) -> Result<Results> {
    numbered(c, &c.input(0)?, strings(c, "cats_strings"), ints(c, "cats_int64s").to_vec())
}

/// Strings become their numbers, or numbers their strings.
fn numbered(c: &Call<'_>, x: &Value, texts: &[Vec<u8>], numbers: Vec<i64>) -> Result<Results> {
    let (texts, numbers) = (Entries::Strings(texts.to_vec()), Entries::Ints(numbers));
    let strings = x.as_host().is_some_and(|array| array.strings().is_some());
    one(if strings {
        replaced(x, &texts, numbers, Entries::Ints(vec![c.attr_int("default_int64", -1)]))?
    } else {
        replaced(x, &numbers, texts, Entries::Strings(vec![text(c, "_Unused")]))?
    })
}

fn one_hot_encoder(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let refused = c.attr_int("zeros", 1) == 0;
    let categories = strings(c, "cats_strings");
    let unknown = || {
        Error::Data(message!(
            "an element is none of its categories, and the model refuses such. Export it with handle_unknown='ignore'."
        ))
    };
    if !categories.is_empty() {
        let x = x.read()?;
        bounded(x.shape(), categories.len())?;
        let found = places(categories.to_vec(), texts(&x)?);
        if refused && found.contains(&None) {
            return Err(unknown());
        }
        let mut shape = x.shape().to_vec();
        shape.push(categories.len());
        let row = |place: &Option<usize>| {
            let place = *place;
            (0..categories.len()).flat_map(move |at| f32::from(place == Some(at)).to_le_bytes())
        };
        let bytes: Vec<u8> = found.iter().flat_map(row).collect();
        return one(Value::host(HostArray::new(HostDType::F32, shape, bytes)?));
    }
    let categories = short(ints(c, "cats_int64s"))?;
    if categories.is_empty() {
        return Err(wrong_length("cats_int64s", 0, "one for each category"));
    }
    let x = x.tensor()?;
    let x = if x.dtype() == DType::I32 { x } else { x.cast(DType::I32)? };
    bounded(x.shape(), categories.len())?;
    let categories = Tensor::from_slice(&categories, [categories.len()])?;
    let hot = x.expand_dims(-1)?.equal(categories)?.cast(DType::F32)?;
    // Such a model runs op by op, as this needs the values.
    if refused {
        let sums = Value::Tensor(hot.reduce_sum(-1)?).read()?;
        if sums.to_f64().is_some_and(|sums| sums.iter().any(|sum| *sum == 0.0)) {
            return Err(unknown());
        }
    }
    tensor(hot)
}
