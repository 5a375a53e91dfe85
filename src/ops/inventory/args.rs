//! The arguments of a call by name: tensors and attributes with TensorFlow's names, and a record of those that the call
//! has read.
//!
//! A call would silently ignore an argument that it does not read, so [`Args::unread`] names it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
pub use crate::graph::attributes::Value;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// The reason why a call has no result.
#[derive(Debug)]
pub enum Stop {
    /// wgrad has no function for this: the attribute or argument, or "" for the function as a whole.
    Lacks(String),
    /// wgrad has a function, which failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

pub type Answer<T = Vec<Tensor>> = std::result::Result<T, Stop>;

/// The one result of a function.
pub fn one(y: Result<Tensor>) -> Answer {
    Ok(vec![y?])
}

impl Value {
    fn int(&self) -> Option<i64> {
        if let Value::Int(n) = self { Some(*n) } else { None }
    }

    pub fn bool(&self) -> Option<bool> {
        if let Value::Bool(yes) = self { Some(*yes) } else { None }
    }

    /// A number; a word represents a number that JSON does not have.
    fn float(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            Value::Text(word) if word == "inf" => Some(f64::INFINITY),
            Value::Text(word) if word == "-inf" => Some(f64::NEG_INFINITY),
            Value::Text(word) if word == "nan" => Some(f64::NAN),
            _ => None,
        }
    }

    fn scalar(&self) -> Option<Scalar> {
        self.int().map(Scalar::Int).or(self.float().map(Scalar::Float))
    }

    /// The elements of a list, or the single value.
    fn one_or_many(&self) -> &[Value] {
        if let Value::List(list) = self { list } else { std::slice::from_ref(self) }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

/// The arguments of one call.
#[derive(Debug, Default)]
pub struct Args {
    /// An argument's tensors: one, or several if it is a list.
    tensors: Vec<(String, Vec<Tensor>)>,
    attributes: BTreeMap<String, Value>,
    read: RefCell<BTreeSet<String>>,
    composed: RefCell<Option<String>>,
}

impl Args {
    pub fn new(
        tensors: Vec<(String, Vec<Tensor>)>,
        attributes: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        Args { tensors, attributes: attributes.into_iter().collect(), ..Args::default() }
    }

    /// Every argument and its tensors.
    pub fn tensors(&self) -> &[(String, Vec<Tensor>)] {
        &self.tensors
    }

    /// Records that the call composes its result of several functions, because wgrad has no single function for the
    /// attribute `what`, or for the whole (""). Tests compare such a call, and list it.
    pub fn composes(&self, what: &str) {
        self.composed.borrow_mut().get_or_insert_with(|| what.to_owned());
    }

    pub fn composed(&self) -> Option<String> {
        self.composed.borrow().clone()
    }

    /// The first attribute or argument that has not been read.
    pub fn unread(&self) -> Option<String> {
        let read = self.read.borrow();
        let mut all = self.attributes.keys().chain(self.tensors.iter().map(|(key, _)| key));
        all.find(|key| !read.contains(*key)).cloned()
    }

    /// Marks an attribute or argument as read; a call uses this for one that it may ignore.
    pub fn remark(&self, key: &str) {
        self.read.borrow_mut().insert(key.to_owned());
    }

    // ---- tensors ----

    pub fn arg(&self, key: &str) -> Answer<&Tensor> {
        match self.list(key)?[..] {
            [x] => Ok(x),
            _ => Err(Stop::Lacks(key.to_owned())),
        }
    }

    pub fn x(&self) -> Answer<&Tensor> {
        self.arg("x")
    }

    pub fn list(&self, key: &str) -> Answer<Vec<&Tensor>> {
        self.remark(key);
        match self.tensors.iter().find(|(known, _)| known == key) {
            Some((_, tensors)) => Ok(tensors.iter().collect()),
            None => Err(Stop::Lacks(key.to_owned())),
        }
    }

    // ---- attributes: `None` where they are absent, that is TensorFlow's default ----

    /// The attribute converted by `read`; an error if the conversion fails.
    pub fn attribute<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Answer<Option<T>> {
        self.remark(key);
        let Some(value) = self.attributes.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| Stop::Lacks(key.to_owned()))
    }

    pub fn int(&self, key: &str) -> Answer<Option<i64>> {
        self.attribute(key, Value::int)
    }

    pub fn flag(&self, key: &str) -> Answer<bool> {
        Ok(self.attribute(key, Value::bool)?.unwrap_or(false))
    }

    pub fn float(&self, key: &str) -> Answer<Option<f64>> {
        self.attribute(key, Value::float)
    }

    pub fn text(&self, key: &str) -> Answer<Option<String>> {
        self.attribute(key, |v| if let Value::Text(text) = v { Some(text.clone()) } else { None })
    }

    /// A list of integers, or one.
    pub fn ints(&self, key: &str) -> Answer<Option<Vec<i64>>> {
        self.attribute(key, |v| v.one_or_many().iter().map(Value::int).collect())
    }

    pub fn floats(&self, key: &str) -> Answer<Option<Vec<f64>>> {
        self.attribute(key, |v| v.one_or_many().iter().map(Value::float).collect())
    }

    pub fn scalars(&self, key: &str) -> Answer<Option<Vec<Scalar>>> {
        self.attribute(key, |v| v.one_or_many().iter().map(Value::scalar).collect())
    }

    /// As [`Args::ints`], of sizes.
    pub fn sizes(&self, key: &str) -> Answer<Option<Vec<usize>>> {
        let size = |v: &Value| usize::try_from(v.int()?).ok();
        self.attribute(key, |v| v.one_or_many().iter().map(size).collect())
    }

    /// A list of pairs, such as paddings.
    pub fn pairs(&self, key: &str) -> Answer<Option<Vec<(usize, usize)>>> {
        let size = |v: &Value| usize::try_from(v.int()?).ok();
        let pair = |v: &Value| match v.one_or_many() {
            [a, b] => Some((size(a)?, size(b)?)),
            _ => None,
        };
        self.attribute(key, |v| v.one_or_many().iter().map(pair).collect())
    }

    /// One number for both axes, or one for each.
    pub fn two(&self, key: &str) -> Answer<Option<[usize; 2]>> {
        match self.sizes(key)?.as_deref() {
            None => Ok(None),
            Some([both]) => Ok(Some([*both; 2])),
            Some([a, b]) => Ok(Some([*a, *b])),
            Some(_) => Err(Stop::Lacks(key.to_owned())),
        }
    }

    /// The axes of a reduction; all by default.
    pub fn axes(&self, key: &str) -> Answer<Axes> {
        Ok(self.ints(key)?.map_or(Axes::ALL, |list| Axes::from(&list[..])))
    }

    /// The axis; the first by default.
    pub fn axis(&self) -> Answer<i64> {
        Ok(self.int("axis")?.unwrap_or(0))
    }

    pub fn dtype(&self, key: &str) -> Answer<DType> {
        match self.text(key)?.as_deref() {
            Some("float32") => Ok(DType::F32),
            Some("int32") => Ok(DType::I32),
            Some("uint8") => Ok(DType::U8),
            Some("bool") => Ok(DType::Bool),
            _ => Err(Stop::Lacks(key.to_owned())),
        }
    }

    /// A number that the call needs.
    pub fn f32(&self, key: &str) -> Answer<f32> {
        Ok(self.need(key, self.float(key)?)? as f32)
    }

    /// A size that the call needs.
    pub fn size(&self, key: &str) -> Answer<usize> {
        Ok(self.need(key, self.int(key)?)? as usize)
    }

    /// An attribute that the call needs.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Answer<T> {
        value.ok_or_else(|| Stop::Lacks(key.to_owned()))
    }

    /// Checks that an attribute has this value or is absent.
    pub fn only(&self, key: &str, wanted: impl Into<Value>) -> Answer<()> {
        let wanted = wanted.into();
        self.attribute(key, |v| (*v == wanted).then_some(())).map(drop)
    }
}
