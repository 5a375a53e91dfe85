//! The calls of `keras.ops` that a model's JSON names: each is a layer without weights.
//!
//! Keras writes what an op was constructed with as its config (`axis`), and what it was called on as the arguments of a node:
//! tensors, numbers, lists of both, slices. [`KerasOp`] keeps both as they were read, so that they are written again as they
//! were.

use std::cell::RefCell;
use std::sync::Arc;

use ndarray::SliceInfoElem;
use serde_json::{Map, Value, json};

use super::operation::{Callable, Called, Masked, Operation};
use crate::dtype::DType;
use crate::dtype::Scalar;
use crate::error::{Error, Result, message};
use crate::keras::config::shown;
use crate::keras::{ConfigValue, Context, python_json};
use crate::ops::{EluOptions, GeluOptions, PadMode, concat, einsum, one_hot, stack, where_};
use crate::shape::Axes;
use crate::tensor::{Operand, Tensor};
use crate::trackable::{Parts, Trackable};

/// A call of an op of Keras's.
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
    /// Which of the call's inputs it is.
    Tensor(usize),
    /// A constant of the model: its elements, and the JSON that it was.
    Constant(Constant, Value),
    List(Vec<Argument>),
    Value(Value),
}

/// An array in a model's JSON.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    shape: Vec<usize>,
    numbers: Vec<f64>,
    dtype: DType,
}

impl Constant {
    /// The array of `{"value": [[1.0, 2.0]], "dtype": "float32"}`.
    pub(crate) fn read(config: &Value) -> std::result::Result<Self, String> {
        let dtype = config.get("dtype").and_then(Value::as_str).unwrap_or("float32");
        let dtype = dtype_named(dtype)?;
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        let mut at = config.get("value").ok_or("an array without 'value'")?;
        while let Some(list) = at.as_array() {
            shape.push(list.len());
            let Some(first) = list.first() else { break };
            at = first;
        }
        elements(config.get("value").unwrap_or(&Value::Null), &shape, &mut numbers)?;
        Ok(Constant { shape, numbers, dtype })
    }

    /// As a tensor on the device of `beside`.
    ///
    /// # Errors
    /// [`Error::Data`] if it has a number that the device's integers cannot hold.
    fn tensor(&self, beside: &Tensor) -> Result<Tensor> {
        let range = match self.dtype {
            DType::I32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
            DType::U32 => Some((0.0, f64::from(u32::MAX))),
            _ => None,
        };
        let outside =
            |(low, high)| self.numbers.iter().find(|number| !(low..=high).contains(*number));
        if let Some(number) = range.and_then(outside) {
            return Err(Error::Data(message!(
                "from_json: an array has the number {number}, which {:?} cannot hold: integers have 32 bits here. Make it smaller in Keras, or a float.",
                self.dtype
            )));
        }
        beside.device().scope(|| match self.dtype {
            DType::F32 | DType::F16 => {
                let numbers: Vec<f32> = self.numbers.iter().map(|&x| x as f32).collect();
                Tensor::from_slice(&numbers, &self.shape)?.cast(self.dtype)
            }
            DType::Bool => {
                let numbers: Vec<bool> = self.numbers.iter().map(|&x| x != 0.0).collect();
                Tensor::from_slice(&numbers, &self.shape)
            }
            DType::U32 => {
                let numbers: Vec<u32> = self.numbers.iter().map(|&x| x as u32).collect();
                Tensor::from_slice(&numbers, &self.shape)
            }
            dtype => {
                let numbers: Vec<i32> = self.numbers.iter().map(|&x| x as i32).collect();
                Tensor::from_slice(&numbers, &self.shape)?.cast(dtype)
            }
        })
    }
}

fn elements(
    value: &Value,
    shape: &[usize],
    numbers: &mut Vec<f64>,
) -> std::result::Result<(), String> {
    match (value, shape) {
        (Value::Array(list), [size, rest @ ..]) if list.len() == *size => {
            list.iter().try_for_each(|value| elements(value, rest, numbers))
        }
        (Value::Bool(truth), []) => {
            numbers.push(f64::from(u8::from(*truth)));
            Ok(())
        }
        (value, []) if python_json::float(value).is_some() => {
            numbers.extend(python_json::float(value));
            Ok(())
        }
        _ => Err("an array whose rows have different lengths, or that holds no numbers".into()),
    }
}

/// Keras's names of dtypes. It counts in 64 bits where the device has 32.
pub(crate) fn dtype_named(name: &str) -> std::result::Result<DType, String> {
    Ok(match name {
        "int64" | "int16" | "int8" | "int" => DType::I32,
        "uint64" | "uint16" => DType::U32,
        "float64" | "float" | "bfloat16" => DType::F32,
        name => DType::ALL
            .into_iter()
            .find(|dtype| dtype.tensorflow_name() == name)
            .ok_or_else(|| format!("the dtype '{name}', which the device has not"))?,
    })
}

/// An op of Keras's, and what it computes.
struct Row {
    class: &'static str,
    /// Its results, in order.
    call: fn(&Call<'_>) -> Result<Vec<Tensor>>,
}

/// A call as it runs.
struct Call<'a> {
    op: &'a KerasOp,
    inputs: &'a [Tensor],
    /// The options that it has asked for.
    asked: RefCell<Vec<&'static str>>,
}

impl Call<'_> {
    fn wrong(&self, what: &str) -> Error {
        Error::Data(message!("from_json: the op '{}' {what}.", self.op.row.class))
    }

    /// An argument by its place or by its name.
    fn argument(&self, place: usize, name: &str) -> Option<&Argument> {
        let named = || self.op.kwargs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        self.op.args.get(place).or_else(named)
    }

    fn of(&self, argument: &Argument) -> Result<Tensor> {
        match argument {
            Argument::Tensor(at) => {
                self.inputs.get(*at).cloned().ok_or_else(|| {
                    self.wrong("was called on fewer tensors than its arguments name")
                })
            }
            Argument::Constant(constant, _) => constant.tensor(&self.inputs[0]),
            Argument::Value(value)
                if Number::of(value).is_some() || value.is_boolean() || value.is_array() =>
            {
                let dtype = ["bool", "int32", "float32"][rank_of_numbers(value)];
                let constant = Constant::read(&json!({"value": value, "dtype": dtype}));
                constant.map_err(|what| self.wrong(&format!("has {what}")))?.tensor(&self.inputs[0])
            }
            Argument::List(list) => stack(
                &joint_list(list.iter().map(|item| self.of(item)).collect::<Result<_>>()?)?,
                0,
            ),
            Argument::Value(value) => {
                let value = shown(value);
                Err(self.wrong(&format!("has the argument {value} where a tensor must be")))
            }
        }
    }

    /// The tensor at this place among the arguments.
    fn tensor(&self, place: usize, name: &str) -> Result<Tensor> {
        match self.argument(place, name) {
            Some(argument) => self.of(argument),
            None => Err(self.wrong(&format!("lacks its argument '{name}'"))),
        }
    }

    fn x(&self) -> Result<Tensor> {
        self.tensor(0, "x")
    }

    /// The tensors of a list, in one dtype.
    fn tensors(&self, name: &str) -> Result<Vec<Tensor>> {
        match self.argument(0, name) {
            Some(Argument::List(list)) => {
                joint_list(list.iter().map(|argument| self.of(argument)).collect::<Result<_>>()?)
            }
            Some(one) => Ok(vec![self.of(one)?]),
            None => Err(self.wrong(&format!("lacks its argument '{name}'"))),
        }
    }

    /// The two sides of an operator.
    fn sides(&self) -> Result<Sides> {
        self.both([(0, "x1"), (1, "x2")])
    }

    /// Two arguments in the dtype in which Keras computes with both. A number takes that of the tensor on the other side, but 1.0
    /// makes a float of an integer, and 1 an integer of a truth value.
    fn both(&self, [a, b]: [(usize, &str); 2]) -> Result<Sides> {
        let sides = [self.argument(a.0, a.1), self.argument(b.0, b.1)];
        let [Some(a), Some(b)] = sides else {
            let given = self.op.args.len() + self.op.kwargs.len();
            return Err(self.wrong(&format!("lacks an argument: it has {given}")));
        };
        let number = |argument: &Argument| match argument {
            Argument::Value(value) => Number::of(value),
            _ => None,
        };
        match (number(a), number(b)) {
            (_, Some(number)) => {
                let (a, dtype) = number.joining(self.of(a)?)?;
                let b = self.beside(&a, number)?;
                Ok(Sides { a, b, dtype })
            }
            (Some(number), None) => {
                let (b, dtype) = number.joining(self.of(b)?)?;
                let a = b.zeros_like()?.add(self.beside(&b, number)?)?;
                Ok(Sides { a, b: b.into(), dtype })
            }
            (None, None) => {
                let (a, b) = (self.of(a)?, self.of(b)?);
                let dtype = joint_dtype(a.dtype(), b.dtype());
                Ok(Sides { a: wide(&a.cast(dtype)?)?, b: wide(&b.cast(dtype)?)?.into(), dtype })
            }
        }
    }

    /// `number` as it joins `x`.
    fn beside(&self, x: &Tensor, number: Number) -> Result<Operand> {
        let dtype = x.dtype();
        let fits = |number: i64| match dtype {
            DType::I32 => i32::try_from(number).is_ok(),
            DType::U32 => u32::try_from(number).is_ok(),
            _ => true,
        };
        match number {
            Number::Int(number) if !fits(number) => Err(self.wrong(&format!(
                "has the number {number}, which {dtype:?} cannot hold: integers have 32 bits here"
            ))),
            Number::Int(number) => Ok(number.into()),
            Number::Float(number) => Ok(number.into()),
        }
    }

    /// What the op's constructor got as `key`.
    fn given(&self, key: &'static str) -> Option<&Value> {
        self.asked.borrow_mut().push(key);
        self.op.config.get(key)
    }

    /// An option of the op's constructor; null counts as not there.
    fn option<T: ConfigValue>(&self, key: &'static str) -> Result<Option<T>> {
        let value = self.given(key).filter(|value| !value.is_null());
        let read = |value: &Value| {
            T::from_json(value).map_err(|wanted| {
                self.wrong(&format!("has {} as '{key}'; it must be {wanted}", shown(value)))
            })
        };
        value.map(read).transpose()
    }

    /// An option that is a list or one item of it.
    fn list<T: ConfigValue>(&self, key: &'static str) -> Result<Vec<T>>
    where
        Vec<T>: ConfigValue,
    {
        match self.given(key) {
            Some(Value::Array(_)) => self.need(key),
            _ => Ok(vec![self.need(key)?]),
        }
    }

    /// Refuses options that nothing has asked for, as what they ask for would be missing.
    fn all_asked(&self) -> Result<()> {
        let asked = self.asked.borrow();
        let rest = |(key, value): &(&String, &Value)| {
            !matches!(value, Value::Null | Value::Bool(false)) && !asked.contains(&key.as_str())
        };
        match self.op.config.iter().find(rest) {
            Some((key, value)) => {
                Err(self.wrong(&format!("has {} as '{key}', which is not served", shown(value))))
            }
            None => Ok(()),
        }
    }

    fn need<T: ConfigValue>(&self, key: &'static str) -> Result<T> {
        self.option(key)?.ok_or_else(|| self.wrong(&format!("lacks its option '{key}'")))
    }

    /// The axis, `default` if none is named; `None` if it is null, which stands for all elements in a row.
    fn axis_or(&self, default: i64) -> Result<Option<i64>> {
        match self.given("axis") {
            Some(Value::Null) => Ok(None),
            _ => Ok(Some(self.option("axis")?.unwrap_or(default))),
        }
    }

    /// `f` of `x` along the axis that is named, the last by default, or along all elements in a row.
    fn along(&self, x: &Tensor, f: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Tensor> {
        match self.axis_or(-1)? {
            Some(axis) => f(x, axis),
            None => f(&x.reshape([-1])?, 0),
        }
    }

    /// As [`Call::along`], where the result has the shape of `x`.
    fn along_in_shape(&self, f: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Tensor> {
        let x = self.x()?;
        self.along(&x, f)?.reshape_to(x.shape().into())
    }

    /// `x` in the dtype that the option `dtype` names, if it names one.
    fn in_dtype(&self, x: Tensor) -> Result<Tensor> {
        match self.option::<String>("dtype")? {
            Some(name) => {
                x.cast(dtype_named(&name).map_err(|what| self.wrong(&format!("wants {what}")))?)
            }
            None => Ok(x),
        }
    }

    /// The axes along which a reduction goes: all, if none are named.
    fn axes(&self) -> Result<Axes> {
        let axes = self.option::<Axes>("axis")?.unwrap_or(Axes::ALL);
        Ok(axes.keepdims(self.option::<bool>("keepdims")?.unwrap_or(false)))
    }

    /// Refuses a value of an option that is not served.
    fn only(&self, key: &'static str, wanted: &[Value]) -> Result<()> {
        match self.given(key) {
            Some(value) if !value.is_null() && !wanted.contains(value) => {
                Err(self.wrong(&format!(
                    "has {} as '{key}'; here it can only be {}",
                    shown(value),
                    wanted.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ")
                )))
            }
            _ => Ok(()),
        }
    }

    /// A shape in which `null` is the batch's size and -1 what is left.
    fn shape(&self, key: &'static str, x: &Tensor) -> Result<Vec<i64>> {
        let given = match self.given(key) {
            Some(Value::Array(list)) => list.clone(),
            Some(one) => vec![one.clone()],
            None => return Err(self.wrong(&format!("lacks its option '{key}'"))),
        };
        let size = |(at, size): (usize, &Value)| match (size, at) {
            (Value::Null, 0) if x.rank() > 0 => Ok(x.shape()[0] as i64),
            (Value::Null, _) => Ok(-1),
            (size, _) => size.as_i64().ok_or_else(|| {
                self.wrong(&format!("has {} among the sizes of '{key}'", shown(size)))
            }),
        };
        given.iter().enumerate().map(size).collect()
    }
}

/// A number in a file.
#[derive(Debug, Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        let float = || python_json::float(value).map(Number::Float);
        value.as_i64().map(Number::Int).or_else(float)
    }

    /// `x` as the number joins it, and the dtype of a result.
    fn joining(self, x: Tensor) -> Result<(Tensor, DType)> {
        let dtype = match (self, x.dtype()) {
            (Number::Float(_), dtype) if !dtype.is_float() => DType::F32,
            (Number::Int(_), DType::Bool) => DType::I32,
            (_, dtype) => dtype,
        };
        Ok((wide(&x.cast(dtype)?)?, dtype))
    }
}

/// The two sides of an operator, in the dtype in which the device computes.
struct Sides {
    a: Tensor,
    b: Operand,
    /// Keras's dtype of both: the device computes with bytes and truth values as integers.
    dtype: DType,
}

/// `x` in a dtype that the device computes in.
fn wide(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 | DType::Bool => x.cast(DType::I32),
        _ => Ok(x.clone()),
    }
}

/// The result of a computation in [`wide`] numbers in Keras's dtype: bytes are cut off, as of every integer too large.
fn narrow(y: Tensor, dtype: DType) -> Result<Tensor> {
    match (y.dtype(), dtype) {
        (DType::Bool, _) => Ok(y),
        (computed, dtype) if computed.is_float() && dtype == DType::U8 => {
            y.cast(DType::I32)?.cast(dtype)
        }
        _ => y.cast(dtype),
    }
}

/// What numbers a JSON value holds: 0 bools, 1 integers, 2 floats.
fn rank_of_numbers(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(rank_of_numbers).max().unwrap_or(2),
        value if python_json::is_float(value) => 2,
        value => usize::from(!value.is_boolean()),
    }
}

/// The dtype in which Keras computes with both.
fn joint_dtype(a: DType, b: DType) -> DType {
    match (a, b) {
        (a, b) if a == b => a,
        (DType::Bool, other) | (other, DType::Bool) => other,
        (DType::F16, DType::F32) | (DType::F32, DType::F16) => DType::F32,
        (a, b) if a.is_float() || b.is_float() => {
            if a.is_float() {
                a
            } else {
                b
            }
        }
        (DType::U8, other) | (other, DType::U8) => other,
        _ => DType::I32,
    }
}

fn joint_list(list: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let Some(dtype) = list.iter().map(Tensor::dtype).reduce(joint_dtype) else { return Ok(list) };
    list.into_iter().map(|x| if x.dtype() == dtype { Ok(x) } else { x.cast(dtype) }).collect()
}

/// What a mean or a root is taken of: integers become floats, as in Keras.
fn floats(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_float() { Ok(x.clone()) } else { x.cast(DType::F32) }
}

fn axis_of(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

/// `x[:, 0, 1:3, ..., None]`.
fn item(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let keys: Vec<&Value> = match call.argument(1, "key") {
        Some(Argument::Value(Value::Array(list))) => list.iter().collect(),
        Some(Argument::Value(one)) => vec![one],
        Some(_) => {
            return Err(call.wrong(
                "takes elements by a tensor; only numbers and slices are served. Use ops.take",
            ));
        }
        None => return Err(call.wrong("lacks its argument 'key'")),
    };
    let class = |value: &Value, name: &str| {
        value.get("class_name").and_then(Value::as_str).is_some_and(|class| class == name)
    };
    let dots = |value: &Value| class(value, "__ellipsis__");
    if keys.iter().filter(|key| dots(key)).count() > 1 {
        return Err(call.wrong("has several ellipses in its key; one is possible"));
    }
    let named = keys.iter().filter(|key| !key.is_null() && !dots(key)).count();
    let left = x.rank().checked_sub(named);
    let left = left.ok_or_else(|| call.wrong(&format!("names {named} axes of {:?}", x.shape())))?;
    let whole = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let (mut parts, mut axis) = (Vec::new(), 0);
    for key in keys {
        if key.is_null() {
            parts.push(SliceInfoElem::NewAxis);
            continue;
        }
        if dots(key) {
            parts.extend(vec![whole; left]);
            axis += left;
            continue;
        }
        let size = x.shape()[axis] as i64;
        axis += 1;
        if let Some(at) = key.as_i64() {
            parts.push(SliceInfoElem::Index(at as isize));
            continue;
        }
        if !class(key, "__slice__") {
            let key = shown(key);
            return Err(call.wrong(&format!("has the index {key}; it must be a number or a slice")));
        }
        let end = |name: &str| -> Result<Option<i64>> {
            match key.pointer(&format!("/config/{name}")) {
                None | Some(Value::Null) => Ok(None),
                Some(number) => number.as_i64().map(Some).ok_or_else(|| {
                    call.wrong(&format!(
                        "has a slice whose {name} is {}; it must be a number",
                        shown(number)
                    ))
                }),
            }
        };
        let step = end("step")?.unwrap_or(1);
        if step == 0 {
            return Err(call.wrong("has a slice whose step is 0"));
        }
        // As `slice.indices` of Python.
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let place = |given: Option<i64>, default: i64| match given {
            None => default,
            Some(at) => (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high),
        };
        let (start, stop) = match step > 0 {
            true => (place(end("start")?, low), place(end("stop")?, high)),
            false => (place(end("start")?, high), place(end("stop")?, low)),
        };
        // A walk back begins at the end of its range.
        let (start, stop) = if step > 0 { (start, stop) } else { (stop + 1, start + 1) };
        parts.push(SliceInfoElem::Slice {
            start: start as isize,
            end: Some(stop.max(start) as isize),
            step: step as isize,
        });
    }
    Ok(vec![x.strided_slice(&parts)?])
}

fn split(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let axis = call.option::<i64>("axis")?.unwrap_or(0);
    let at = axis_of(axis, x.rank())
        .ok_or_else(|| call.wrong(&format!("splits axis {axis} of {:?}", x.shape())))?;
    if let Some(Value::Number(_)) = call.given("indices_or_sections") {
        return x.split(call.need("indices_or_sections")?, axis);
    }
    let size = x.shape()[at];
    let ends: Vec<usize> = call.need("indices_or_sections")?;
    let (mut sizes, mut before) = (Vec::new(), 0);
    for end in ends.into_iter().chain([size]) {
        let end = end.min(size);
        sizes.push(end.checked_sub(before).ok_or_else(|| {
            let what =
                format!("has {end} behind {before} in 'indices_or_sections'; they must grow");
            call.wrong(&what)
        })?);
        before = end;
    }
    x.split_sizes(&sizes, axis)
}

fn permuted(
    call: &Call<'_>,
    from: &'static str,
    to: &'static str,
    swap: bool,
) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let places = |key: &'static str| -> Result<Vec<usize>> {
        let place = |axis: i64| {
            axis_of(axis, x.rank())
                .ok_or_else(|| call.wrong(&format!("names axis {axis} of {:?}", x.shape())))
        };
        call.list::<i64>(key)?.into_iter().map(place).collect()
    };
    let (from, to) = (places(from)?, places(to)?);
    if from.len() != to.len() || (swap && from.len() != 1) {
        return Err(call.wrong(&format!("moves axes {from:?} to {to:?}")));
    }
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if swap {
        order.swap(from[0], to[0]);
    } else {
        let mut moved: Vec<(usize, usize)> = to.into_iter().zip(from.iter().copied()).collect();
        moved.sort_unstable();
        order.retain(|axis| !from.contains(axis));
        for (to, from) in moved {
            order.insert(to.min(order.len()), from);
        }
    }
    Ok(vec![x.transpose(&order[..])?])
}

fn one(y: Result<Tensor>) -> Result<Vec<Tensor>> {
    y.map(|y| vec![y])
}

/// Rows by kinds: of one tensor of any numbers, of one tensor as floats, of two, of two as floats, comparisons, truth values,
/// reductions of a tensor, and functions of the call.
macro_rules! rows {
    (
        one { $($one:literal $one_call:expr,)* }
        numbers { $($numbers:literal $numbers_call:expr,)* }
        floats { $($floats:literal $floats_call:expr,)* }
        two { $($two:literal $two_call:expr,)* }
        two_floats { $($two_floats:literal $two_floats_call:expr,)* }
        compare { $($compare:literal $compare_call:expr,)* }
        truths { $($truths:literal $truths_call:expr,)* }
        reduce { $($reduce:literal $reduce_call:expr,)* }
        call { $($call:literal $call_call:expr,)* }
    ) => {
        static ROWS: &[Row] = &[
            $(Row { class: $one, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $one_call;
                one(f(&call.x()?))
            } },)*
            $(Row { class: $numbers, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $numbers_call;
                one(of_bytes(&call.x()?, f))
            } },)*
            $(Row { class: $floats, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $floats_call;
                one(f(&floats(&call.x()?)?))
            } },)*
            $(Row { class: $two, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $two_call;
                let Sides { a, b, dtype } = call.sides()?;
                one(narrow(f(&a, b)?, dtype))
            } },)*
            $(Row { class: $two_floats, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $two_floats_call;
                let Sides { a, b, .. } = call.sides()?;
                one(f(&floats(&a)?, floated(b)?))
            } },)*
            $(Row { class: $compare, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $compare_call;
                let Sides { a, b, .. } = call.sides()?;
                one(f(&a, b))
            } },)*
            $(Row { class: $truths, call: |call| {
                let f: fn(&Tensor, &Tensor) -> Result<Tensor> = $truths_call;
                let truths = |place, name| call.tensor(place, name)?.cast(DType::Bool);
                one(f(&truths(0, "x1")?, &truths(1, "x2")?))
            } },)*
            $(Row { class: $reduce, call: |call| {
                let f: fn(&Tensor, Axes) -> Result<Tensor> = $reduce_call;
                one(f(&call.x()?, call.axes()?))
            } },)*
            $(Row { class: $call, call: $call_call },)*
        ];
    };
}

/// `f`, of bytes as of numbers.
fn of_bytes(x: &Tensor, f: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match x.dtype() {
        DType::U8 => narrow(f(&wide(x)?)?, DType::U8),
        _ => f(x),
    }
}

fn absolute(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool | DType::U8 | DType::U32 => Ok(x.clone()),
        _ => x.abs(),
    }
}

fn largest(x: &Tensor, axes: Axes) -> Result<Tensor> {
    narrow(wide(x)?.reduce_max(axes)?, x.dtype())
}

fn smallest(x: &Tensor, axes: Axes) -> Result<Tensor> {
    narrow(wide(x)?.reduce_min(axes)?, x.dtype())
}

/// What a sum or a product is taken of: truth values and bytes become integers, as in Keras.
fn counting(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => x.cast(DType::I32),
        DType::U8 => x.cast(DType::U32),
        _ => Ok(x.clone()),
    }
}

rows! {
    one {
        "Copy" |x| Ok(x.clone()),
        "Erf" |x| x.erf(),
        "Erfc" |x| x.erfc(),
        "Erfinv" |x| x.erfinv(),
        "HardSigmoid" |x| x.hard_sigmoid(),
        "HardSilu" |x| x.hard_silu(),
        "HardTanh" |x| x.hard_tanh(),
        "LogSigmoid" |x| x.log_sigmoid(),
        "LogicalNot" |x| x.cast(DType::Bool)?.logical_not(),
        "Ravel" |x| x.reshape([-1]),
        "Reciprocal" |x| x.reciprocal(),
        "Rsqrt" |x| x.rsqrt(),
        "Selu" |x| x.selu(),
        "Sigmoid" |x| x.sigmoid(),
        "Silu" |x| x.silu(),
        "Softplus" |x| x.softplus(),
        "Softsign" |x| x.softsign(),
        "SparsePlus" |x| x.sparse_plus(),
        "SparseSigmoid" |x| x.sparse_sigmoid(),
        "TanhShrink" |x| x.tanh_shrink(),
    }
    numbers {
        "Absolute" absolute,
        "Abs" absolute,
        "Negative" |x| x.negative(),
        "Relu" |x| x.relu(),
        "Relu6" |x| if x.dtype().is_int() { x.clip_by_value(0, 6) } else { x.relu6() },
        "Sign" |x| x.sign(),
        "Square" |x| if x.dtype() == DType::Bool { x.cast(DType::I32) } else { x.square() },
    }
    floats {
        "Arccos" |x| x.acos(),
        "Arccosh" |x| x.acosh(),
        "Arcsin" |x| x.asin(),
        "Arcsinh" |x| x.asinh(),
        "Arctan" |x| x.atan(),
        "Arctanh" |x| x.atanh(),
        "Ceil" |x| x.ceil(),
        "Cos" |x| x.cos(),
        "Cosh" |x| x.cosh(),
        "Exp" |x| x.exp(),
        "Expm1" |x| x.expm1(),
        "Floor" |x| x.floor(),
        "Isfinite" |x| x.is_finite(),
        "Isinf" |x| x.is_inf(),
        "Isnan" |x| x.is_nan(),
        "Log" |x| x.log(),
        "Log1p" |x| x.log1p(),
        "Sin" |x| x.sin(),
        "Sinh" |x| x.sinh(),
        "Sqrt" |x| x.sqrt(),
        "Tan" |x| x.tan(),
        "Tanh" |x| x.tanh(),
    }
    two {
        "Add" |a, b| a.add(b),
        "Maximum" |a, b| a.maximum(b),
        "Minimum" |a, b| a.minimum(b),
        "Multiply" |a, b| a.multiply(b),
    }
    two_floats {
        "Arctan2" |a, b| a.atan2(b),
        "Divide" |a, b| a.divide(b),
        "DivideNoNan" |a, b| a.divide_no_nan(b),
        "Logaddexp" |a, b| a.logaddexp(b),
        "TrueDivide" |a, b| a.divide(b),
    }
    compare {
        "Equal" |a, b| a.equal(b),
        "Greater" |a, b| a.greater(b),
        "GreaterEqual" |a, b| a.greater_equal(b),
        "Less" |a, b| a.less(b),
        "LessEqual" |a, b| a.less_equal(b),
        "NotEqual" |a, b| a.not_equal(b),
    }
    truths {
        "LogicalAnd" |a, b| a.logical_and(b),
        "LogicalOr" |a, b| a.logical_or(b),
        "LogicalXor" |a, b| a.logical_xor(b),
    }
    reduce {
        "All" |x, axes| x.cast(DType::Bool)?.reduce_all(axes),
        "Amax" largest,
        "Amin" smallest,
        "Any" |x, axes| x.cast(DType::Bool)?.reduce_any(axes),
        "Logsumexp" |x, axes| floats(x)?.reduce_logsumexp(axes),
        "Mean" |x, axes| floats(x)?.reduce_mean(axes),
        "Std" |x, axes| floats(x)?.reduce_std(axes),
        "Sum" |x, axes| counting(x)?.reduce_sum(axes),
        "Var" |x, axes| floats(x)?.reduce_variance(axes),
    }
    call {
        "Argmax" |call| extreme(call, |x, axis| x.argmax(axis)),
        "Argmin" |call| extreme(call, |x, axis| x.argmin(axis)),
        "Argsort" |call| one(call.along(&wide(&call.x()?)?, |x, axis| x.argsort(axis))),
        "BroadcastTo" |call| {
            let x = call.x()?;
            let shape = call.shape("shape", &x)?;
            let size = |size: i64| {
                usize::try_from(size).map_err(|_| call.wrong("has an unknown size among 'shape'"))
            };
            one(x.broadcast_to(shape.into_iter().map(size).collect::<Result<Vec<_>>>()?))
        },
        "Cast" |call| {
            let name: String = call.need("dtype")?;
            let dtype = dtype_named(&name).map_err(|what| call.wrong(&format!("wants {what}")))?;
            one(call.x()?.cast(dtype))
        },
        "Celu" |call| one(call.x()?.celu(call.option("alpha")?.unwrap_or(1.0))),
        "Clip" clip,
        "Concatenate" |call| one(concat(call.tensors("xs")?, call.option::<i64>("axis")?.unwrap_or(0))),
        "Cumprod" |call| running(call, |x, axis| x.cumprod(axis)),
        "Cumsum" |call| running(call, |x, axis| x.cumsum(axis)),
        "Dot" |call| {
            let [a, b] = [call.tensor(0, "x1")?, call.tensor(1, "x2")?];
            one(product(vec![a, b], |list| {
                let (a, b) = (&list[0], &list[1]);
                match (a.rank(), b.rank()) {
                    (0, _) | (_, 0) => a.multiply(b),
                    (_, 1) => a.tensordot(b, [[-1], [-1]]),
                    _ => a.tensordot(b, [[-1], [-2]]),
                }
            }))
        },
        "Einsum" |call| {
            let equation: String = call.need("subscripts")?;
            let operands = call.op.args.iter().map(|argument| call.of(argument));
            one(product(operands.collect::<Result<_>>()?, |list| einsum(&equation, list)))
        },
        "Elu" |call| {
            let alpha = call.option("alpha")?.unwrap_or(1.0);
            one(call.x()?.elu_with(EluOptions::new().alpha(alpha)))
        },
        "ExpandDims" |call| {
            let x = call.x()?;
            let list = call.list::<i64>("axis")?;
            // They count among the axes of the result.
            let mut new = vec![false; x.rank().saturating_add(list.len())];
            for axis in list {
                let at = axis_of(axis, new.len()).filter(|at| !new[*at]);
                let at = at.ok_or_else(|| {
                    call.wrong(&format!(
                        "adds axis {axis} to {:?}, which is out of range or named twice",
                        x.shape()
                    ))
                })?;
                new[at] = true;
            }
            let mut own = x.shape().iter().copied();
            let size = |new: bool| if new { 1 } else { own.next().unwrap_or(1) };
            let sizes: Vec<usize> = new.into_iter().map(size).collect();
            one(x.reshape_to(sizes.as_slice().into()))
        },
        "FloorDivide" |call| whole(call, |a, b| a.floordiv(b)),
        "Flip" |call| one(call.x()?.reverse(call.option::<Axes>("axis")?.unwrap_or(Axes::ALL))),
        "Gelu" |call| {
            let approximate = call.option("approximate")?.unwrap_or(true);
            one(call.x()?.gelu_with(GeluOptions::new().approximate(approximate)))
        },
        "GetItem" item,
        "Glu" |call| one(call.x()?.glu(call.option::<i64>("axis")?.unwrap_or(-1))),
        "HardShrink" |call| one(call.x()?.hard_shrink(call.option("threshold")?.unwrap_or(0.5))),
        "Hstack" |call| {
            let xs = call.tensors("xs")?;
            let axis = i64::from(xs.first().is_some_and(|x| x.rank() > 1));
            one(concat(xs, axis))
        },
        "LeakyRelu" |call| {
            let slope = call.option("negative_slope")?.unwrap_or(0.2);
            one(floats(&call.x()?)?.leaky_relu(slope))
        },
        "LogSoftmax" |call| one(call.along_in_shape(|x, axis| x.log_softmax(axis))),
        "Matmul" |call| {
            let [a, b] = [call.tensor(0, "x1")?, call.tensor(1, "x2")?];
            if a.rank() == 0 || b.rank() == 0 {
                return Err(call.wrong("multiplies by a single number; use ops.multiply"));
            }
            one(product(vec![a, b], |list| matmul(&list[0], &list[1])))
        },
        "Max" |call| bounded(call, Tensor::reduce_max, |y, initial| y.maximum(initial)),
        "Min" |call| bounded(call, Tensor::reduce_min, |y, initial| y.minimum(initial)),
        "Mod" modulo,
        "Moveaxis" |call| permuted(call, "source", "destination", false),
        "Normalize" normalize,
        "OneHot" |call| {
            call.only("sparse", &[json!(false)])?;
            let x = call.x()?;
            let name: String = call.option("dtype")?.unwrap_or("float32".to_string());
            let dtype = dtype_named(&name).map_err(|what| call.wrong(&format!("wants {what}")))?;
            let y = one_hot(&x.cast(DType::I32)?, call.need("num_classes")?)?.cast(dtype)?;
            let axis = call.option::<i64>("axis")?.unwrap_or(-1);
            let at = axis_of(axis, y.rank()).ok_or_else(|| {
                call.wrong(&format!("puts its new axis at {axis} of {} axes", y.rank()))
            })?;
            let mut order: Vec<usize> = (0..x.rank()).collect();
            order.insert(at, x.rank());
            one(y.transpose(&order[..]))
        },
        "OnesLike" |call| like(call, |x| x.ones_like()),
        "Pad" pad,
        "Power" |call| whole(call, |a, b| a.pow(b)),
        "Prod" |call| {
            let x = match call.given("dtype").is_some_and(|dtype| !dtype.is_null()) {
                true => call.in_dtype(call.x()?)?,
                false => counting(&call.x()?)?,
            };
            one(narrow(wide(&x)?.reduce_prod(call.axes()?)?, x.dtype()))
        },
        "Repeat" |call| {
            let x = call.x()?;
            let repeats: Vec<usize> = call.list("repeats")?;
            match call.option::<i64>("axis")? {
                Some(axis) => one(x.repeat(&repeats, axis)),
                None => one(x.reshape([-1])?.repeat(&repeats, 0)),
            }
        },
        "Reshape" |call| {
            let x = call.x()?;
            one(x.reshape(call.shape("newshape", &x)?))
        },
        "Roll" |call| {
            let x = call.x()?;
            let mut shift: Vec<i64> = call.list("shift")?;
            match call.option::<Axes>("axis")? {
                Some(axes) => {
                    if let ([one], Some(list)) = (&shift[..], axes.list.as_deref()) {
                        shift = vec![*one; list.len()];
                    }
                    one(x.roll(&shift, axes))
                }
                None => one(x.reshape([-1])?.roll(&shift, 0)?.reshape_to(x.shape().into())),
            }
        },
        "Round" round,
        "SoftShrink" |call| one(call.x()?.soft_shrink(call.option("threshold")?.unwrap_or(0.5))),
        "Softmax" |call| one(call.along_in_shape(|x, axis| x.softmax(axis))),
        "Sort" |call| {
            let x = call.x()?;
            one(narrow(call.along(&wide(&x)?, |x, axis| x.sort(axis))?, x.dtype()))
        },
        "Split" split,
        "Squareplus" |call| one(call.x()?.squareplus(call.option("b")?.unwrap_or(4.0))),
        "Squeeze" |call| one(call.x()?.squeeze(call.option::<Axes>("axis")?.unwrap_or(Axes::ALL))),
        "Stack" |call| one(stack(call.tensors("x")?, call.option::<i64>("axis")?.unwrap_or(0))),
        "StopGradient" |call| Ok(vec![call.tensor(0, "variable")?.stop_gradient()]),
        "Subtract" |call| {
            let Sides { a, b, dtype } = call.sides()?;
            if dtype == DType::Bool {
                return Err(call.wrong("subtracts truth values; use ops.logical_xor, or ops.cast them first"));
            }
            one(narrow(a.subtract(b)?, dtype))
        },
        "Swapaxes" |call| permuted(call, "axis1", "axis2", true),
        "Take" |call| {
            let x = call.x()?;
            let indices = call.tensor(1, "indices")?;
            if indices.dtype().is_float() {
                return Err(call.wrong("has floats as 'indices'; ops.cast them to int32"));
            }
            let indices = indices.cast(DType::I32)?;
            let dtype = x.dtype();
            let x = if dtype == DType::U8 { wide(&x)? } else { x };
            let (x, axis) = match call.option::<i64>("axis")? {
                Some(axis) => (x, axis),
                None => (x.reshape([-1])?, 0),
            };
            // Keras counts those below 0 from the end.
            let size = axis_of(axis, x.rank()).map_or(0, |axis| x.shape()[axis]) as i32;
            let from_end = indices.add(size)?;
            let indices = where_(&indices.less(0)?, &from_end, &indices)?;
            one(narrow(x.gather(&indices, axis)?, dtype))
        },
        "Tile" |call| {
            let x = call.x()?;
            let mut repeats: Vec<usize> = call.list("repeats")?;
            let mut sizes = x.shape().to_vec();
            // Both get as many axes as the other has.
            for list in [&mut repeats, &mut sizes] {
                list.splice(0..0, vec![1; x.rank().saturating_sub(list.len())]);
            }
            sizes.splice(0..0, vec![1; repeats.len() - sizes.len()]);
            one(x.reshape_to(sizes.as_slice().into())?.tile(&repeats))
        },
        "TopK" |call| {
            // What need not be sorted may be.
            call.only("sorted", &[json!(true), json!(false)])?;
            let x = call.x()?;
            let (values, places) = wide(&x)?.top_k(call.need("k")?)?;
            Ok(vec![narrow(values, x.dtype())?, places])
        },
        "Transpose" |call| {
            let x = call.x()?;
            match call.option::<Vec<i64>>("axes")? {
                Some(axes) => one(x.transpose(&axes[..])),
                None => one(x.transpose((0..x.rank()).rev().collect::<Vec<usize>>())),
            }
        },
        "Unstack" |call| {
            let list = call.x()?.unstack(call.option::<i64>("axis")?.unwrap_or(0))?;
            match call.option::<usize>("num")? {
                Some(num) if num != list.len() => {
                    Err(call.wrong(&format!("cuts {} pieces, where 'num' is {num}", list.len())))
                }
                _ => Ok(list),
            }
        },
        // Keras makes no rows of vectors here, as NumPy does.
        "Vstack" |call| one(concat(call.tensors("xs")?, 0)),
        "Where" |call| {
            let condition = call.tensor(0, "condition")?.cast(DType::Bool)?;
            let Sides { a, b, dtype } = call.both([(1, "x1"), (2, "x2")])?;
            one(narrow(where_(&condition, &a, &b.beside("SelectV2", &a)?)?, dtype))
        },
        "ZerosLike" |call| like(call, |x| x.zeros_like()),
    }
}

fn floated(b: Operand) -> Result<Operand> {
    match b {
        Operand::Tensor(b) => floats(&b).map(Operand::from),
        number => Ok(number),
    }
}

fn extreme(call: &Call<'_>, find: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let x = wide(&call.x()?)?;
    let keeps = call.option::<bool>("keepdims")?.unwrap_or(false);
    match call.option::<i64>("axis")? {
        Some(axis) if keeps => one(find(&x, axis)?.expand_dims(axis)),
        Some(axis) => one(find(&x, axis)),
        None => {
            let place = find(&x.reshape([-1])?, 0)?;
            one(if keeps {
                place.reshape_to(vec![1; x.rank()].as_slice().into())
            } else {
                Ok(place)
            })
        }
    }
}

/// The largest or smallest element, or `initial` if that goes further.
fn bounded(
    call: &Call<'_>,
    find: fn(&Tensor, Axes) -> Result<Tensor>,
    further: fn(&Tensor, Operand) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let y = find(&wide(&x)?, call.axes()?)?;
    let y = match call.given("initial").filter(|value| !value.is_null()) {
        Some(value) => {
            let number = Number::of(value).ok_or_else(|| {
                call.wrong(&format!("has {} as 'initial'; it must be a number", shown(value)))
            })?;
            further(&y, call.beside(&y, number)?)?
        }
        None => y,
    };
    one(narrow(y, x.dtype()))
}

/// A function of two of which truth values are integers.
fn whole(call: &Call<'_>, f: fn(&Tensor, Operand) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let Sides { a, b, dtype } = call.sides()?;
    one(narrow(f(&a, b)?, if dtype == DType::Bool { DType::I32 } else { dtype }))
}

/// What a division leaves. Beside a whole number Keras computes with bytes as integers.
fn modulo(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let number =
        |place, name| matches!(call.argument(place, name), Some(Argument::Value(Value::Number(_))));
    let Sides { a, b, dtype } = call.sides()?;
    let dtype = match dtype {
        DType::Bool => DType::I32,
        DType::U8 if number(0, "x1") || number(1, "x2") => DType::I32,
        dtype => dtype,
    };
    one(narrow(a.floormod(b)?, dtype))
}

/// A product of `list`: Keras multiplies integers as floats.
fn product(list: Vec<Tensor>, f: impl FnOnce(&[Tensor]) -> Result<Tensor>) -> Result<Tensor> {
    let dtype = list.iter().map(Tensor::dtype).reduce(joint_dtype).unwrap_or(DType::F32);
    let computed = if dtype.is_float() { dtype } else { DType::F32 };
    let list: Vec<Tensor> = list.iter().map(|x| x.cast(computed)).collect::<Result<_>>()?;
    narrow(f(&list)?, dtype)
}

/// A product of matrices; a vector is a row on the left, a column on the right.
fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let left = if row { a.expand_dims(0)? } else { a.clone() };
    let right = if column { b.expand_dims(-1)? } else { b.clone() };
    let y = left.matmul(&right)?;
    let y = if column { y.squeeze(-1)? } else { y };
    if row { y.squeeze(if column { -1 } else { -2 }) } else { Ok(y) }
}

/// A running sum or product.
fn running(call: &Call<'_>, f: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let x = call.in_dtype(call.x()?)?;
    let dtype = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
    let x = wide(&x)?;
    let y = match call.axis_or(-1)? {
        Some(axis) => f(&x, axis),
        None => f(&x.reshape([-1])?, 0),
    };
    one(narrow(y?, dtype))
}

/// Ones or zeros in the shape of `x`.
fn like(call: &Call<'_>, f: fn(&Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let x = call.in_dtype(call.x()?)?;
    one(narrow(f(&wide(&x)?)?, x.dtype()))
}

fn clip(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let dtype = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
    // Integers stay integers, and have none between a bound with a fraction and that without it.
    let whole = match dtype {
        DType::I32 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        DType::U32 => Some((0, i64::from(u32::MAX))),
        DType::U8 => Some((0, i64::from(u8::MAX))),
        _ => None,
    };
    let bound = |place: usize, key: &'static str| -> Result<Operand> {
        let value = match call.argument(place, key) {
            Some(Argument::Value(value)) => Some(value),
            _ => call.given(key),
        };
        match (value.and_then(Number::of), whole) {
            (Some(Number::Int(bound)), None) => Ok(bound.into()),
            (Some(Number::Float(bound)), None) => Ok(bound.into()),
            (Some(Number::Int(bound)), Some((low, high))) => Ok(bound.clamp(low, high).into()),
            (Some(Number::Float(bound)), Some((low, high))) if !bound.is_nan() => {
                Ok((bound as i64).clamp(low, high).into())
            }
            _ => {
                let value = value.map_or("nothing".to_string(), shown);
                Err(call.wrong(&format!("has {value} as '{key}'; it must be a number")))
            }
        }
    };
    let (low, high) = (bound(1, "x_min")?, bound(2, "x_max")?);
    one(narrow(wide(&x)?.clip_by_value(low, high)?, dtype))
}

fn normalize(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let order = match call.given("order") {
        None => 2,
        Some(order) => order.as_u64().filter(|order| *order > 0).ok_or_else(|| {
            call.wrong(&format!("has {} as 'order'; it must be a whole number", shown(order)))
        })?,
    };
    let epsilon = call.option::<f32>("epsilon")?.unwrap_or(1e-7);
    let x = floats(&call.x()?)?;
    let axes = match call.given("axis") {
        Some(Value::Null) => Axes::ALL,
        _ => call.option::<Axes>("axis")?.unwrap_or(Axes::from(-1)),
    };
    let several = axes.list.as_deref().map_or(x.rank(), <[i64]>::len) > 1;
    if order != 2 && several {
        return Err(call.wrong(&format!(
            "has the order {order} and several axes, where Keras takes a norm of matrices; it can only be 2"
        )));
    }
    let axes = axes.keepdims(true);
    let norm = match order {
        1 => x.abs()?.reduce_sum(axes)?,
        2 => x.square()?.reduce_sum(axes)?.sqrt()?,
        order => x.abs()?.pow(order as f32)?.reduce_sum(axes)?.pow(1.0 / order as f32)?,
    };
    one(x.divide(norm.maximum(epsilon)?))
}

/// Rounds to decimals: those of integers stand before the point.
fn round(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let decimals = call.option::<i64>("decimals")?.unwrap_or(0);
    if decimals == 0 || (x.dtype().is_int() && decimals > 0) {
        return one(of_bytes(&x, |x| x.round()));
    }
    let factor = 10f64.powi(decimals.clamp(-400, 400) as i32) as f32;
    one(narrow(floats(&x)?.multiply(factor)?.round()?.divide(factor)?, x.dtype()))
}

fn pad(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let mut pairs: Vec<(usize, usize)> = match call.given("pad_width") {
        Some(Value::Number(_)) => vec![(call.need("pad_width")?, call.need("pad_width")?)],
        Some(Value::Array(list)) if list.first().is_some_and(Value::is_number) => {
            vec![call.need("pad_width")?]
        }
        _ => call.need("pad_width")?,
    };
    if pairs.len() == 1 {
        pairs = vec![pairs[0]; x.rank()];
    }
    let fill = match call.argument(1, "constant_values") {
        None | Some(Argument::Value(Value::Null)) => None,
        Some(Argument::Value(value)) if Number::of(value).is_some() || value.is_boolean() => {
            Some(value)
        }
        Some(_) => return Err(call.wrong("fills with what is no number; give it one")),
    };
    let mode: String = call.option("mode")?.unwrap_or("constant".to_string());
    if let (Some(value), true) = (fill, mode != "constant") {
        return Err(call.wrong(&format!(
            "fills with {} and has the mode '{mode}'; 'constant' alone fills with a number",
            shown(value)
        )));
    }
    let wide_x = wide(&x)?;
    let y = match &*mode {
        "constant" => wide_x.pad_with(&pairs, PadMode::Constant(filling(call, fill, x.dtype())?)),
        "reflect" | "symmetric" | "edge" | "wrap" => continued(call, &wide_x, &pairs, &mode),
        mode => Err(call.wrong(&format!(
            "has the mode '{mode}'; it can be constant, reflect, symmetric, edge or wrap"
        ))),
    };
    one(narrow(y?, x.dtype()))
}

/// The number that a padding of this dtype is filled with: a fraction is cut off for integers.
fn filling(call: &Call<'_>, value: Option<&Value>, dtype: DType) -> Result<Scalar> {
    let number = match value {
        None => Number::Int(0),
        Some(Value::Bool(truth)) => Number::Int(i64::from(*truth)),
        Some(value) => Number::of(value).unwrap_or(Number::Int(0)),
    };
    match number {
        Number::Int(number) if dtype == DType::Bool => Ok(Scalar::Int(i64::from(number != 0))),
        Number::Float(number) if dtype == DType::Bool => Ok(Scalar::Int(i64::from(number != 0.0))),
        Number::Float(number) if !dtype.is_float() && number.is_finite() => {
            Ok(Scalar::Int(number as i64))
        }
        Number::Float(number) if !dtype.is_float() => {
            Err(call.wrong(&format!("fills integers with {number}; give it a whole number")))
        }
        Number::Int(number) => Ok(Scalar::Int(number)),
        Number::Float(number) => Ok(Scalar::Float(number)),
    }
}

/// A padding that goes on with the tensor's own elements, as NumPy does for paddings of any length.
fn continued(call: &Call<'_>, x: &Tensor, pairs: &[(usize, usize)], mode: &str) -> Result<Tensor> {
    // Refuses what does not fit, before the places are written down.
    x.pad(pairs)?;
    let mut y = x.clone();
    for (axis, &(low, high)) in pairs.iter().enumerate().filter(|(_, pair)| **pair != (0, 0)) {
        let size = x.shape()[axis];
        let whole =
            (low.checked_add(high)).and_then(|more| i32::try_from(more.checked_add(size)?).ok());
        if size == 0 || whole.is_none() {
            return Err(call.wrong(&format!(
                "pads axis {axis} of {:?} by {:?}",
                x.shape(),
                (low, high)
            )));
        }
        let (low, high, size) = (low as i64, high as i64, size as i64);
        let place = |at: i64| match mode {
            "edge" => at.clamp(0, size - 1),
            "wrap" => at.rem_euclid(size),
            "symmetric" => {
                let at = at.rem_euclid(2 * size);
                at.min(2 * size - 1 - at)
            }
            _ => {
                let at = at.rem_euclid((2 * size - 2).max(1));
                at.min(2 * size - 2 - at)
            }
        };
        let places: Vec<i32> = (-low..size + high).map(|at| place(at) as i32).collect();
        let places = x.device().scope(|| Tensor::from_slice(&places, [places.len()]))?;
        y = y.gather(&places, axis as i64)?;
    }
    Ok(y)
}

/// The op of Keras's class `class`, called `name`.
///
/// # Errors
/// [`Error::Data`] if it is not served.
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
            "from_json: '{name}' calls the op '{class}' of {module}, which is not served. Those that are: {}. Build the model in \
             Keras with these, or put the op into a layer of your own that CustomObjects makes.",
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

    #[cfg(feature = "checkpoint")]
    fn is_operator(&self) -> bool {
        true
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
