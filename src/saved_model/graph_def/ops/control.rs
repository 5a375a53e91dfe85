//! Calls of functions, branches and loops.
//!
//! What the host knows, it decides when the node runs: in a trace, such a loop is unrolled. Otherwise an eager call reads the
//! value, and a trace records a branch or a loop of this crate.

use super::call::{Call, Entry, Results, any, many};
use crate::debugging;
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::saved_model::control_flow::{Branch, cond, switch_case, while_loop};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: &[Entry] = &[
    many("Assert", &[], |call| {
        let words = "an assertion of the saved model failed";
        debugging::assert_equal(&call.tensor(0)?, true, words)?;
        Ok(Results::new())
    }),
    many("Case", &[], case),
    any("CheckNumerics", |call| {
        let x = call.tensor(0)?;
        Ok(Value::Tensor(debugging::check_numerics(&x, call.attr_text("message", ""))?))
    }),
    many("If", &[], if_),
    many("PartitionedCall", &[], function),
    many("StatefulPartitionedCall", &[], function),
    many("StatelessCase", &[], case),
    many("StatelessIf", &[], if_),
    many("StatelessWhile", &[], while_),
    many("While", &[], while_),
];

/// The functions that a node may call.
pub(in super::super) const FUNCTIONS: &[&str] =
    &["f", "then_branch", "else_branch", "branches", "cond", "body"];

fn function(call: &mut Call<'_>) -> Result<Results> {
    let arguments = call.inputs.drain(..).collect();
    Ok(call.model.function(call.attr_function("f")?, arguments)?.into())
}

/// The tensors that a function computes, for a branch or loop that a trace records.
fn traced(call: &Call<'_>, function: &str, arguments: Vec<Value>) -> Result<Vec<Tensor>> {
    call.model.function(function, arguments)?.iter().map(traceable).collect()
}

fn traceable(value: &Value) -> Result<Tensor> {
    match value {
        Value::Tensor(_) | Value::Host(_) => value.tensor(),
        other => Err(Error::Trace(message!(
            "a branch or loop of a trace has {}, which is no tensor.",
            other.describe()
        ))),
    }
}

/// Whether a value counts as true; `None` if a trace has to record a branch.
fn truth(value: &Value) -> Result<Option<bool>> {
    if let (Value::Tensor(_), true) = (value, eager::in_trace()) {
        return Ok(None);
    }
    let array = value.read()?;
    // Of a string, whether it has any bytes.
    if let Some(strings) = array.strings() {
        return Ok(Some(strings.first().is_some_and(|text| !text.is_empty())));
    }
    if array.dtype() == HostDType::Bool {
        return Ok(Some(array.bytes().first() == Some(&1)));
    }
    Ok(Some(array.to_f64().and_then(|values| values.first().copied()).unwrap_or(0.0) != 0.0))
}

/// A scalar of `bool`, for a trace.
fn predicate(value: &Value) -> Result<Tensor> {
    let x = value.tensor()?.reshape(())?;
    if x.dtype() == DType::Bool { Ok(x) } else { x.not_equal(0) }
}

fn if_(call: &mut Call<'_>) -> Result<Results> {
    let condition = call.take(0)?;
    let arguments: Vec<Value> = call.inputs.drain(..).skip(1).collect();
    let (yes, no) = (call.attr_function("then_branch")?, call.attr_function("else_branch")?);
    match truth(&condition)? {
        Some(truth) => Ok(call.model.function(if truth { yes } else { no }, arguments)?.into()),
        None => {
            let results = cond(
                &predicate(&condition)?,
                || traced(call, yes, arguments.clone()),
                || traced(call, no, arguments.clone()),
            )?;
            Ok(results.into_iter().map(Value::Tensor).collect())
        }
    }
}

fn case(call: &mut Call<'_>) -> Result<Results> {
    let index = call.take(0)?;
    let arguments: Vec<Value> = call.inputs.drain(..).skip(1).collect();
    let branches = call.attr_functions("branches");
    let last = branches
        .len()
        .checked_sub(1)
        .ok_or_else(|| Error::Data(message!("it has no branches. The file is damaged.")))?;
    if let (Value::Tensor(index), true) = (&index, eager::in_trace()) {
        let each = branches.iter().map(|branch| {
            let arguments = arguments.clone();
            Box::new(|| traced(call, branch, arguments)) as Branch<'_, Vec<Tensor>>
        });
        let results = switch_case(&index.reshape(())?, each.collect())?;
        return Ok(results.into_iter().map(Value::Tensor).collect());
    }
    let index = index.read()?.to_f64().and_then(|values| values.first().copied()).unwrap_or(-1.0);
    let at = if index >= 0.0 && index <= last as f64 { index as usize } else { last };
    Ok(call.model.function(branches[at], arguments)?.into())
}

fn while_(call: &mut Call<'_>) -> Result<Results> {
    let mut values: Vec<Value> = call.inputs.drain(..).collect();
    let (condition, body) = (call.attr_function("cond")?, call.attr_function("body")?);
    loop {
        let pred = call.model.function(condition, values.clone())?;
        let pred = pred.first().ok_or_else(|| {
            Error::Data(message!("its condition has no result. The file is damaged."))
        })?;
        match truth(pred)? {
            Some(false) => return Ok(values.into()),
            Some(true) => {
                call.model.turn()?;
                let count = values.len();
                values = call.model.function(body, values)?;
                if values.len() != count {
                    return Err(Error::Data(message!(
                        "its body has {} results for {count} arguments. The file is damaged.",
                        values.len()
                    )));
                }
            }
            None => return recorded_loop(call, condition, body, values),
        }
    }
}

/// A loop of which the device decides how often it runs.
fn recorded_loop(
    call: &Call<'_>,
    condition: &str,
    body: &str,
    mut values: Vec<Value>,
) -> Result<Results> {
    // Variables and tables pass through unchanged.
    let places: Vec<usize> = (0..values.len())
        .filter(|at| !matches!(values[*at], Value::Variable(_) | Value::Table(_)))
        .collect();
    let tensors = places.iter().map(|at| traceable(&values[*at])).collect::<Result<Vec<_>>>()?;
    let with = |tensors: Vec<Tensor>| {
        let mut all = values.clone();
        for (at, tensor) in places.iter().zip(tensors) {
            all[*at] = Value::Tensor(tensor);
        }
        all
    };
    let results = while_loop(
        |tensors: &Vec<Tensor>| {
            let results = traced(call, condition, with(tensors.clone()))?;
            match results.into_iter().next() {
                Some(pred) => predicate(&Value::Tensor(pred)),
                None => Err(Error::Data(message!("its condition has no result."))),
            }
        },
        |tensors: Vec<Tensor>| {
            let results = call.model.function(body, with(tensors))?;
            places
                .iter()
                .map(|at| match results.get(*at) {
                    Some(value) => traceable(value),
                    None => Err(Error::Data(message!("its body has too few results."))),
                })
                .collect()
        },
        tensors,
    )?;
    for (at, tensor) in places.iter().zip(results) {
        values[*at] = Value::Tensor(tensor);
    }
    Ok(values.into())
}
