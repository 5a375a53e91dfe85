//! What a call of a golden case takes: its tensors and attributes, and a record of which of them were read.
//!
//! What a case has and its call does not read would be ignored in silence, so [`Call::unread`] names it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;
use wgrad::{Axes, Error, Result, Tensor};

use crate::oracle::{Array, Case, Oracle, number, one_or_many};

/// Why a call has no results.
#[derive(Debug)]
pub enum Stop {
    /// wgrad has no function for this: the attribute or argument, or "" for the function as a whole.
    Lacks(String),
    /// wgrad has one, and it failed.
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

pub struct Call<'a> {
    pub golden: &'a Oracle,
    pub case: &'a Case,
    /// An argument's tensors: one, or several where it is a list.
    args: Vec<(String, Vec<Tensor>)>,
    read: RefCell<BTreeSet<String>>,
    composed: RefCell<Option<String>>,
}

impl<'a> Call<'a> {
    pub fn new(golden: &'a Oracle, case: &'a Case) -> Result<Self> {
        let stored = |name: &String| to_tensor(&golden.tensor(case, name));
        let tensors = |names: &[String]| names.iter().map(stored).collect::<Result<Vec<_>>>();
        let args: Result<_> =
            case.inputs.iter().map(|(key, names)| Ok((key.clone(), tensors(names)?))).collect();
        let (read, composed) = Default::default();
        Ok(Call { golden, case, args: args?, read, composed })
    }

    /// Every argument and its tensors.
    pub fn args(&self) -> &[(String, Vec<Tensor>)] {
        &self.args
    }

    /// The result is put together of several functions, as wgrad has none of its own for the attribute `what`, or
    /// for all of it (""). Such a case is compared, and listed.
    pub fn composes(&self, what: &str) {
        self.composed.borrow_mut().get_or_insert_with(|| what.to_owned());
    }

    pub fn composed(&self) -> Option<String> {
        self.composed.borrow().clone()
    }

    /// The first attribute or argument that the case has and nobody has asked for.
    pub fn unread(&self) -> Option<String> {
        let read = self.read.borrow();
        let attrs = self.case.attrs.iter().filter(|(_, value)| !value.is_null());
        let mut all = attrs.map(|(key, _)| key).chain(self.args.iter().map(|(key, _)| key));
        all.find(|key| !read.contains(*key)).cloned()
    }

    fn note(&self, key: &str) {
        self.read.borrow_mut().insert(key.to_owned());
    }

    // ---- tensors ------------------------------------------------------------------------------------------------

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
        self.note(key);
        match self.args.iter().find(|(known, _)| known == key) {
            Some((_, tensors)) => Ok(tensors.iter().collect()),
            None => Err(Stop::Lacks(key.to_owned())),
        }
    }

    // ---- attributes: `None` where they are absent or null, that is TensorFlow's default ---------------------------

    fn attr<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Answer<Option<T>> {
        self.note(key);
        let Some(value) = self.case.attr(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| Stop::Lacks(key.to_owned()))
    }

    pub fn value(&self, key: &str) -> Answer<Option<Value>> {
        self.attr(key, |v| Some(v.clone()))
    }

    pub fn int(&self, key: &str) -> Answer<Option<i64>> {
        self.attr(key, Value::as_i64)
    }

    pub fn flag(&self, key: &str) -> Answer<bool> {
        Ok(self.attr(key, Value::as_bool)?.unwrap_or(false))
    }

    pub fn float(&self, key: &str) -> Answer<Option<f64>> {
        self.attr(key, number)
    }

    pub fn text(&self, key: &str) -> Answer<Option<String>> {
        self.attr(key, |v| v.as_str().map(str::to_owned))
    }

    /// A list of integers, or one.
    pub fn ints(&self, key: &str) -> Answer<Option<Vec<i64>>> {
        self.attr(key, |v| one_or_many(v).iter().map(Value::as_i64).collect())
    }

    pub fn floats(&self, key: &str) -> Answer<Option<Vec<f64>>> {
        self.attr(key, |v| one_or_many(v).iter().map(number).collect())
    }

    /// As [`Call::ints`], of sizes.
    pub fn sizes(&self, key: &str) -> Answer<Option<Vec<usize>>> {
        let size = |v: &Value| v.as_u64().map(|n| n as usize);
        self.attr(key, |v| one_or_many(v).iter().map(size).collect())
    }

    /// A list of pairs, as paddings are.
    pub fn pairs(&self, key: &str) -> Answer<Option<Vec<(usize, usize)>>> {
        let pair = |v: &Value| match v.as_array()?.as_slice() {
            [a, b] => Some((a.as_u64()? as usize, b.as_u64()? as usize)),
            _ => None,
        };
        self.attr(key, |v| v.as_array()?.iter().map(pair).collect())
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

    /// The axes of a reduction: all where none are given.
    pub fn axes(&self, key: &str) -> Answer<Axes> {
        Ok(self.ints(key)?.map_or(Axes::ALL, |list| Axes::from(&list[..])))
    }

    /// An attribute without which there is no call.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Answer<T> {
        value.ok_or_else(|| Stop::Lacks(key.to_owned()))
    }

    /// An attribute that says nothing that a call has to heed.
    pub fn remark(&self, key: &str) {
        self.note(key);
    }

    /// An attribute that has to have this value, or be absent.
    pub fn only(&self, key: &str, wanted: impl Into<Value>) -> Answer<()> {
        let wanted = wanted.into();
        self.attr(key, |v| (*v == wanted).then_some(())).map(drop)
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
