//! The calls of `keras.ops` in a model's JSON: each is a layer without weights.
//!
//! Keras writes an op's constructor arguments, such as `axis`, as its config, and its call arguments as the arguments of a
//! node: tensors, numbers, lists of both, slices. [`KerasOp`] stores both as they were read, so that they are written back
//! unchanged. `call` provides an op's arguments and options while it runs, `constant` a model's arrays, and `dtypes` the
//! conversions between Keras's dtypes and the device's. `table` defines what each op computes, with `math`, `shapes` and
//! `padding`.

mod call;
mod constant;
mod dtypes;
mod math;
mod padding;
mod shapes;
mod table;

use std::cell::RefCell;
use std::sync::Arc;

use call::Call;
pub(crate) use constant::{Constant, dtype_named};
use serde_json::{Map, Value};
use table::{ROWS, Row};

use super::operation::{Callable, Called, Masked, Operation};
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// A call of a Keras op.
pub(crate) struct KerasOp {
    row: &'static Row,
    module: String,
    config: Map<String, Value>,
    args: Vec<Argument>,
    kwargs: Vec<(String, Argument)>,
}

/// An argument of a call: a tensor, a constant, a list of arguments, or a plain JSON value.
#[derive(Debug, Clone)]
pub(crate) enum Argument {
    /// The index of the tensor among the call's inputs.
    Tensor(usize),
    /// A constant of the model: its elements, and its JSON.
    Constant(Constant, Value),
    List(Vec<Argument>),
    Value(Value),
}

/// Creates the op of Keras's class `class`, called `name`.
///
/// # Errors
/// [`Error::Data`] if it is not supported.
pub(crate) fn keras_op(
    name: &str,
    module: &str,
    class: &str,
    config: &Map<String, Value>,
    args: Vec<Argument>,
    kwargs: Vec<(String, Argument)>,
) -> Result<Arc<Operation>> {
    let Some(row) = ROWS.iter().find(|row| row.class == class) else {
        let known: Vec<&str> = ROWS.iter().map(|row| row.class).collect();
        return Err(Error::Data(message!(
            "from_json: '{name}' calls the op '{class}' of {module}, which is not supported. Those that are: {}. \
             Build the model in Keras with these, or put the op into a layer of your own that CustomObjects makes.",
            known.join(", ")
        )));
    };
    let config = config.iter().filter(|(key, _)| *key != "name");
    let config = config.map(|(key, value)| (key.clone(), value.clone())).collect();
    let op = KerasOp { row, module: module.to_string(), config, args, kwargs };
    Ok(Arc::new(Operation::new(Some(name), op)))
}

impl Trackable for KerasOp {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        self.row.class
    }
}

impl Callable for KerasOp {
    fn call(
        &self,
        inputs: &[Tensor],
        _masks: &[Option<Tensor>],
        _cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let call = Call { op: self, inputs, asked: RefCell::default() };
        let results = (self.row.call)(&call)?;
        call.all_asked()?;
        Ok(results.into_iter().map(|y| (y, None)).collect())
    }

    fn part(&self) -> &dyn Trackable {
        self
    }

    fn called(&self) -> Result<Called> {
        let (module, class) = (self.module.clone(), self.row.class);
        Ok(Called::Operator { module, class, config: self.config.clone() })
    }

    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        let args = self.args.iter().map(|argument| written(argument, &tensors));
        let kwargs = self.kwargs.iter();
        Ok((
            Value::Array(args.collect()),
            kwargs.map(|(key, argument)| (key.clone(), written(argument, &tensors))).collect(),
        ))
    }
}

fn written(argument: &Argument, tensors: &[Value]) -> Value {
    match argument {
        Argument::Tensor(at) => tensors.get(*at).cloned().unwrap_or(Value::Null),
        Argument::Constant(_, value) | Argument::Value(value) => value.clone(),
        Argument::List(list) => list.iter().map(|argument| written(argument, tensors)).collect(),
    }
}
