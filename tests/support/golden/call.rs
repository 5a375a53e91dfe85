//! A call of a golden case: the case's tensors and attributes in the form that the crate's inventory accepts.

use std::ops::Deref;

use serde_json::Value as Json;
pub use wgrad::inventory::{Answer, Stop, one};
use wgrad::inventory::{Args, Value};
use wgrad::{Result, Tensor};

use super::oracle::{Array, Case, Oracle};

pub struct Call<'a> {
    pub golden: &'a Oracle,
    pub case: &'a Case,
    args: Args,
}

impl<'a> Call<'a> {
    pub fn new(golden: &'a Oracle, case: &'a Case) -> Result<Self> {
        let stored = |name: &String| to_tensor(&golden.tensor(case, name));
        let tensors = |names: &[String]| names.iter().map(stored).collect::<Result<Vec<_>>>();
        let tensors: Result<_> =
            case.inputs.iter().map(|(key, names)| Ok((key.clone(), tensors(names)?))).collect();
        // A null attribute means TensorFlow's default.
        let attrs = case.attrs.iter().filter(|(_, value)| !value.is_null());
        let attrs = attrs.map(|(key, value)| (key.clone(), attribute(value)));
        Ok(Call { golden, case, args: Args::new(tensors?, attrs) })
    }

    /// An attribute as it is stored.
    pub fn value(&self, key: &str) -> Answer<Option<Json>> {
        self.remark(key);
        Ok(self.case.attr(key).cloned())
    }
}

impl Deref for Call<'_> {
    type Target = Args;

    fn deref(&self) -> &Args {
        &self.args
    }
}

/// An attribute for the inventory. The inventory does not know objects; calls that need them use [`Call::value`].
fn attribute(value: &Json) -> Value {
    match value {
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(n) => match n.as_i64() {
            Some(n) => Value::Int(n),
            None => Value::Float(n.as_f64().expect("a number of the oracle is a float")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(list) => Value::List(list.iter().map(attribute).collect()),
        Json::Null | Json::Object(_) => Value::Text(value.to_string()),
    }
}

pub fn to_tensor(array: &Array) -> Result<Tensor> {
    match array {
        Array::F32(a) => Tensor::from_array(a),
        Array::I32(a) => Tensor::from_array(a),
        Array::U8(a) => Tensor::from_array(a),
        Array::Bool(a) => Tensor::from_array(a),
    }
}
