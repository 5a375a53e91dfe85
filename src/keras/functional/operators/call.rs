//! [`Call`]: an op's arguments and options while it runs.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::constant::{Constant, dtype_named};
use super::dtypes::{Number, Sides, cast, joint_dtype, joint_list, rank_of_numbers, wide};
use super::{Argument, KerasOp};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::ConfigValue;
use crate::keras::config::shown;
use crate::ops::stack;
use crate::shape::Axes;
use crate::tensor::{Operand, Tensor};

/// A call while it runs.
pub(super) struct Call<'a> {
    pub(super) op: &'a KerasOp,
    pub(super) inputs: &'a [Tensor],
    /// The options that it has read.
    pub(super) asked: RefCell<Vec<&'static str>>,
}

impl Call<'_> {
    pub(super) fn wrong(&self, what: &str) -> Error {
        Error::Data(message!("from_json: the op '{}' {what}.", self.op.row.class))
    }

    /// An argument by its position or by its name.
    pub(super) fn argument(&self, place: usize, name: &str) -> Option<&Argument> {
        let named = || self.op.kwargs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        self.op.args.get(place).or_else(named)
    }

    pub(super) fn to_tensor(&self, argument: &Argument) -> Result<Tensor> {
        match argument {
            Argument::Tensor(at) => {
                self.inputs.get(*at).cloned().ok_or_else(|| {
                    self.wrong("was called on fewer tensors than its arguments name")
                })
            }
            Argument::Constant(constant, _) => constant.tensor(&self.inputs[0]),
            Argument::Value(value)
                if Number::parse(value).is_some() || value.is_boolean() || value.is_array() =>
            {
                let dtype = ["bool", "int32", "float32"][rank_of_numbers(value)];
                let constant = Constant::read(&json!({"value": value, "dtype": dtype}));
                constant.map_err(|what| self.wrong(&format!("has {what}")))?.tensor(&self.inputs[0])
            }
            Argument::List(list) => stack(
                &joint_list(list.iter().map(|item| self.to_tensor(item)).collect::<Result<_>>()?)?,
                0,
            ),
            Argument::Value(value) => {
                let value = shown(value);
                Err(self.wrong(&format!("has the argument {value} where a tensor must be")))
            }
        }
    }

    /// The tensor at this position among the arguments.
    pub(super) fn tensor(&self, place: usize, name: &str) -> Result<Tensor> {
        match self.argument(place, name) {
            Some(argument) => self.to_tensor(argument),
            None => Err(self.wrong(&format!("lacks its argument '{name}'"))),
        }
    }

    pub(super) fn x(&self) -> Result<Tensor> {
        self.tensor(0, "x")
    }

    /// The tensors of a list, in one dtype.
    pub(super) fn tensors(&self, name: &str) -> Result<Vec<Tensor>> {
        match self.argument(0, name) {
            Some(Argument::List(list)) => joint_list(
                list.iter().map(|argument| self.to_tensor(argument)).collect::<Result<_>>()?,
            ),
            Some(one) => Ok(vec![self.to_tensor(one)?]),
            None => Err(self.wrong(&format!("lacks its argument '{name}'"))),
        }
    }

    /// The two sides of an operator.
    pub(super) fn sides(&self) -> Result<Sides> {
        self.both([(0, "x1"), (1, "x2")])
    }

    /// Two arguments in the dtype in which Keras computes with both. A number adopts the dtype of the tensor on the other side,
    /// except that 1.0 turns integers into floats, and 1 turns booleans into integers.
    pub(super) fn both(&self, [a, b]: [(usize, &str); 2]) -> Result<Sides> {
        let sides = [self.argument(a.0, a.1), self.argument(b.0, b.1)];
        let [Some(a), Some(b)] = sides else {
            let given = self.op.args.len() + self.op.kwargs.len();
            return Err(self.wrong(&format!("lacks an argument: it has {given}")));
        };
        let number = |argument: &Argument| match argument {
            Argument::Value(value) => Number::parse(value),
            _ => None,
        };
        match (number(a), number(b)) {
            (_, Some(number)) => {
                let (a, dtype) = number.joining(self.to_tensor(a)?)?;
                let b = self.number_with(&a, number)?;
                Ok(Sides { a, b, dtype })
            }
            (Some(number), None) => {
                let (b, dtype) = number.joining(self.to_tensor(b)?)?;
                let a = b.zeros_like()?.add(self.number_with(&b, number)?)?;
                Ok(Sides { a, b: b.into(), dtype })
            }
            (None, None) => {
                let (a, b) = (self.to_tensor(a)?, self.to_tensor(b)?);
                let dtype = joint_dtype(a.dtype(), b.dtype());
                Ok(Sides { a: wide(&a.cast(dtype)?)?, b: wide(&b.cast(dtype)?)?.into(), dtype })
            }
        }
    }

    /// `number` as an operand next to `x`.
    pub(super) fn number_with(&self, x: &Tensor, number: Number) -> Result<Operand> {
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

    /// The constructor argument `key` of the op.
    pub(super) fn given(&self, key: &'static str) -> Option<&Value> {
        self.asked.borrow_mut().push(key);
        self.op.config.get(key)
    }

    /// An option of the op's constructor; null counts as missing.
    pub(super) fn option<T: ConfigValue>(&self, key: &'static str) -> Result<Option<T>> {
        let value = self.given(key).filter(|value| !value.is_null());
        let read = |value: &Value| {
            T::from_json(value).map_err(|wanted| {
                self.wrong(&format!("has {} as '{key}'; it must be {wanted}", shown(value)))
            })
        };
        value.map(read).transpose()
    }

    /// An option that is a list or a single item.
    pub(super) fn list<T: ConfigValue>(&self, key: &'static str) -> Result<Vec<T>>
    where
        Vec<T>: ConfigValue,
    {
        match self.given(key) {
            Some(Value::Array(_)) => self.need(key),
            _ => Ok(vec![self.need(key)?]),
        }
    }

    /// Refuses options that the op did not read, as their effect would be missing.
    pub(super) fn all_asked(&self) -> Result<()> {
        let asked = self.asked.borrow();
        let rest = |(key, value): &(&String, &Value)| {
            !matches!(value, Value::Null | Value::Bool(false)) && !asked.contains(&key.as_str())
        };
        match self.op.config.iter().find(rest) {
            Some((key, value)) => {
                Err(self.wrong(&format!("has {} as '{key}', which is not supported", shown(value))))
            }
            None => Ok(()),
        }
    }

    pub(super) fn need<T: ConfigValue>(&self, key: &'static str) -> Result<T> {
        self.option(key)?.ok_or_else(|| self.wrong(&format!("lacks its option '{key}'")))
    }

    /// The axis, `default` if none is specified; `None` if it is null, which stands for the flattened tensor.
    pub(super) fn axis_or(&self, default: i64) -> Result<Option<i64>> {
        match self.given("axis") {
            Some(Value::Null) => Ok(None),
            _ => Ok(Some(self.option("axis")?.unwrap_or(default))),
        }
    }

    /// Applies `f` to `x` along the specified axis, by default the last, or to the flattened tensor.
    pub(super) fn along(
        &self,
        x: &Tensor,
        f: fn(&Tensor, i64) -> Result<Tensor>,
    ) -> Result<Tensor> {
        match self.axis_or(-1)? {
            Some(axis) => f(x, axis),
            None => f(&x.reshape([-1])?, 0),
        }
    }

    /// Same as [`Call::along`], with the result in the shape of `x`.
    pub(super) fn along_in_shape(&self, f: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Tensor> {
        let x = self.x()?;
        self.along(&x, f)?.reshape_to(x.shape().into())
    }

    /// `x` in the dtype of the option `dtype`, if it is set.
    pub(super) fn in_dtype(&self, x: Tensor) -> Result<Tensor> {
        match self.option::<String>("dtype")? {
            Some(name) => {
                let dtype = dtype_named(&name);
                cast(&x, dtype.map_err(|what| self.wrong(&format!("wants {what}")))?)
            }
            None => Ok(x),
        }
    }

    /// The axes of a reduction: all, if none are specified.
    pub(super) fn axes(&self) -> Result<Axes> {
        let axes = self.option::<Axes>("axis")?.unwrap_or(Axes::ALL);
        Ok(axes.keepdims(self.option::<bool>("keepdims")?.unwrap_or(false)))
    }

    /// Refuses an unsupported value of an option.
    pub(super) fn only(&self, key: &'static str, wanted: &[Value]) -> Result<()> {
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

    /// A shape in which `null` is the batch size, and -1 is the size that the other sizes imply.
    pub(super) fn shape(&self, key: &'static str, x: &Tensor) -> Result<Vec<i64>> {
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

/// The results of an op that has only one.
pub(super) fn one(y: Result<Tensor>) -> Result<Vec<Tensor>> {
    y.map(|y| vec![y])
}
