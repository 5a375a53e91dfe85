//! [`Site`]: one call in all traces, whose sizes and attributes become numbers.

use std::rc::Rc;

use super::number::{Number, Real, Samples};
use crate::dtype::DType;
use crate::function::op_graph::OpCall;
use crate::graph::Spec;
use crate::graph::attributes::{Attribute, Value};

/// A call as each trace has it.
pub(in crate::saved_model) struct Site<'a> {
    pub(in crate::saved_model) samples: Rc<Samples>,
    /// The sizes of results on which its numbers depend, if some are the same in all traces.
    pub(in crate::saved_model) near: Vec<usize>,
    /// At least one.
    pub(in crate::saved_model) calls: Vec<&'a OpCall>,
    /// The specs of each input, in each trace.
    pub(in crate::saved_model) inputs: Vec<&'a [Spec]>,
}

/// The rest of a sentence about a call that cannot be written.
pub(in crate::saved_model) type Found<T> = Result<T, String>;

impl Site<'_> {
    pub(in crate::saved_model) fn call(&self) -> &OpCall {
        self.calls[0]
    }

    pub(in crate::saved_model) fn dtype(&self) -> DType {
        self.call().spec.dtype
    }

    /// The dtype of an input.
    pub(in crate::saved_model) fn input_dtype(&self, input: usize) -> DType {
        self.inputs[input][0].dtype
    }

    pub(in crate::saved_model) fn input_rank(&self, input: usize) -> usize {
        self.inputs[input][0].shape.len()
    }

    /// The number that `value` has in each trace.
    pub(in crate::saved_model) fn number(&self, value: impl Fn(usize) -> i64) -> Found<Number> {
        let values: Vec<i64> = (0..self.calls.len()).map(value).collect();
        self.samples.number(&values, &self.near).ok_or_else(|| {
            format!(
                "has a size that is neither a sum nor a product of the open sizes and those of earlier results \
                 ({values:?}); the signature has to give the sizes"
            )
        })
    }

    pub(in crate::saved_model) fn real(&self, value: impl Fn(usize) -> f32) -> Found<Real> {
        let values: Vec<f32> = (0..self.calls.len()).map(value).collect();
        self.samples.real(&values, &self.near).ok_or_else(|| {
            format!(
                "has a number that depends on the open sizes in a way of its own ({values:?}); the signature has to give the sizes"
            )
        })
    }

    fn shape<'b>(&self, of: impl Fn(usize) -> &'b Spec) -> Found<Vec<Number>> {
        (0..of(0).shape.len())
            .map(|axis| self.number(|trace| of(trace).shape[axis] as i64))
            .collect()
    }

    pub(in crate::saved_model) fn output_shape(&self) -> Found<Vec<Number>> {
        self.shape(|trace| &self.calls[trace].spec)
    }

    pub(in crate::saved_model) fn input_shape(&self, input: usize) -> Found<Vec<Number>> {
        self.shape(|trace| &self.inputs[input][trace])
    }

    /// The attribute of each trace.
    pub(in crate::saved_model) fn each<T: Attribute>(&self, name: &str) -> Found<Vec<T>> {
        self.calls.iter().map(|call| call.attributes.field(name)).collect()
    }

    /// An attribute that is the same in all traces.
    pub(in crate::saved_model) fn get<T: Attribute + PartialEq>(&self, name: &str) -> Found<T> {
        let mut all = self.each::<T>(name)?;
        let first = all.swap_remove(0);
        match all.iter().all(|other| *other == first) {
            true => Ok(first),
            false => Err(format!("has an attribute \"{name}\" that depends on the open sizes")),
        }
    }

    /// As [`Site::get`], for one of a type that only its op knows.
    pub(in crate::saved_model) fn raw(&self, name: &str) -> Found<&Value> {
        let all: Option<Vec<&Value>> =
            self.calls.iter().map(|call| field(&call.attributes, name)).collect();
        let all = all.ok_or_else(|| format!("has no attribute \"{name}\""))?;
        match all.iter().all(|other| *other == all[0]) {
            true => Ok(all[0]),
            false => Err(format!("has an attribute \"{name}\" that depends on the open sizes")),
        }
    }
}

/// The field of this name.
pub(in crate::saved_model) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Fields(fields) = value else { return None };
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}
