//! Operators and functions on symbols; each is a layer without weights.

use std::ops;

use super::calls::connect;
use super::input::Input;
use super::operation::{Callable, Masked, Operation};
use super::symbol::SymbolicTensor;
use super::symbols::Symbols;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::tensor::{Operand, Tensor};
use crate::trackable::{Parts, Trackable};

/// The other operand of an operator on a symbol: a symbol or a number.
#[derive(Debug, Clone)]
pub enum SymbolicOperand {
    /// A symbol.
    Symbol(SymbolicTensor),
    /// A number.
    Number(f32),
}

impl From<&SymbolicTensor> for SymbolicOperand {
    fn from(x: &SymbolicTensor) -> Self {
        SymbolicOperand::Symbol(x.clone())
    }
}

impl From<SymbolicTensor> for SymbolicOperand {
    fn from(x: SymbolicTensor) -> Self {
        SymbolicOperand::Symbol(x)
    }
}

impl From<&Input> for SymbolicOperand {
    fn from(x: &Input) -> Self {
        SymbolicOperand::Symbol((**x).clone())
    }
}

impl From<f32> for SymbolicOperand {
    fn from(number: f32) -> Self {
        SymbolicOperand::Number(number)
    }
}

/// An operator: `a + b`, `a - 1`, `2 * a`.
pub(crate) struct Arithmetic {
    kind: &'static OperatorClass,
    /// The number, and whether it is on the left; `None` if both sides are symbols.
    number: Option<(f32, bool)>,
}

/// What an operator does.
struct OperatorClass {
    /// Keras's class and module.
    class: &'static str,
    module: &'static str,
    apply: Apply,
}

enum Apply {
    One(fn(&Tensor) -> Result<Tensor>),
    Two(fn(&Tensor, Operand) -> Result<Tensor>),
}

const fn two(class: &'static str, apply: fn(&Tensor, Operand) -> Result<Tensor>) -> OperatorClass {
    OperatorClass { class, module: "keras.src.ops.numpy", apply: Apply::Two(apply) }
}

const fn one(class: &'static str, apply: fn(&Tensor) -> Result<Tensor>) -> OperatorClass {
    OperatorClass { class, module: "keras.src.ops.numpy", apply: Apply::One(apply) }
}

static ADD: OperatorClass = two("Add", |a, b| a.add(b));
static SUBTRACT: OperatorClass = two("Subtract", |a, b| a.subtract(b));
static MULTIPLY: OperatorClass = two("Multiply", |a, b| a.multiply(b));
static DIVIDE: OperatorClass = two("TrueDivide", |a, b| a.divide(b));
static NEGATIVE: OperatorClass = one("Negative", |x| x.negative());

impl Trackable for Arithmetic {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        self.kind.class
    }
}

impl Callable for Arithmetic {
    fn call(
        &self,
        inputs: &[Tensor],
        _masks: &[Option<Tensor>],
        _cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        let y = match (&self.kind.apply, inputs, self.number) {
            (Apply::Two(f), [a, b], None) => f(a, b.into())?,
            (Apply::Two(f), [a], Some((number, false))) => f(a, number_for(a, number))?,
            // Converts the number to the dtype that it has next to the tensor.
            (Apply::Two(f), [a], Some((number, true))) => {
                let number = Tensor::add(&a.zeros_like()?, number_for(a, number))?;
                f(&number, a.into())?
            }
            (Apply::One(f), [x], None) => f(x)?,
            _ => {
                return Err(Error::Shape(message!(
                    "{}: it was called on {} symbols{}; it takes {}.",
                    self.kind.class,
                    inputs.len(),
                    if self.number.is_some() { " and a number" } else { "" },
                    if matches!(self.kind.apply, Apply::One(_)) {
                        "one"
                    } else {
                        "two, or one and a number"
                    }
                )));
            }
        };
        Ok(vec![(y, None)])
    }

    fn part(&self) -> &dyn Trackable {
        self
    }

    #[cfg(feature = "json")]
    fn called(&self) -> Result<super::operation::Called> {
        let OperatorClass { class, module, .. } = *self.kind;
        Ok(super::operation::Called::Operator {
            module: module.to_string(),
            class,
            config: Default::default(),
        })
    }

    #[cfg(feature = "json")]
    fn arguments(
        &self,
        mut tensors: Vec<serde_json::Value>,
    ) -> Result<(serde_json::Value, serde_json::Map<String, serde_json::Value>)> {
        if let Some((number, first)) = self.number {
            let place = if first { 0 } else { tensors.len() };
            // 1.0 would turn integers into floats.
            let dtype =
                tensors.first().and_then(|tensor| tensor.pointer("/config/dtype")?.as_str());
            let int =
                dtype.is_some_and(|dtype| dtype.starts_with("int") || dtype.starts_with("uint"));
            let whole = int && number.fract() == 0.0 && number.abs() < 1e9;
            let number = match whole {
                true => (number as i64).into(),
                false => crate::keras::python_json::number(f64::from(number)),
            };
            tensors.insert(place, number);
        }
        Ok((tensors.into(), Default::default()))
    }
}

/// `number` as an operand for an op on `x`: a whole number stays an integer if `x` has integers.
fn number_for(x: &Tensor, number: f32) -> Operand {
    match x.dtype().is_int() && number.fract() == 0.0 && number.abs() < 1e9 {
        true => (number as i32).into(),
        false => number.into(),
    }
}

/// A function as a layer.
struct Function<F>(F);

impl<F: Send + Sync> Trackable for Function<F> {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "Lambda"
    }
}

impl<F: Fn(&[Tensor]) -> Result<Tensor> + Send + Sync> Callable for Function<F> {
    fn call(
        &self,
        inputs: &[Tensor],
        _masks: &[Option<Tensor>],
        _cx: Context<'_>,
    ) -> Result<Vec<Masked>> {
        Ok(vec![((self.0)(inputs)?, None)])
    }

    fn part(&self) -> &dyn Trackable {
        self
    }

    #[cfg(feature = "json")]
    fn called(&self) -> Result<super::operation::Called> {
        Err(Error::Data(
            "get_config: a function of the program cannot be written as JSON. Make it a layer of your own with a get_config."
                .into(),
        ))
    }

    #[cfg(feature = "json")]
    fn takes_list(&self) -> bool {
        true
    }
}

fn only(results: Result<Vec<SymbolicTensor>>) -> Result<SymbolicTensor> {
    results?.pop().ok_or_else(|| Error::Shape("the operation has no result.".into()))
}

impl SymbolicTensor {
    fn operator(
        &self,
        kind: &'static OperatorClass,
        other: SymbolicOperand,
        number_first: bool,
    ) -> Result<SymbolicTensor> {
        let (inputs, number) = match other {
            SymbolicOperand::Symbol(b) => (vec![self.clone(), b], None),
            SymbolicOperand::Number(number) => (vec![self.clone()], Some((number, number_first))),
        };
        only(connect(Operation::new(None, Arithmetic { kind, number }), inputs))
    }

    /// `self + other`, element by element with broadcasting. The result has no mask.
    ///
    /// # Errors
    /// Same as [`Tensor::add`].
    pub fn add(&self, other: impl Into<SymbolicOperand>) -> Result<SymbolicTensor> {
        self.operator(&ADD, other.into(), false)
    }

    /// `self - other`, element by element with broadcasting. The result has no mask.
    ///
    /// # Errors
    /// Same as [`Tensor::subtract`].
    pub fn subtract(&self, other: impl Into<SymbolicOperand>) -> Result<SymbolicTensor> {
        self.operator(&SUBTRACT, other.into(), false)
    }

    /// `self * other`, element by element with broadcasting. The result has no mask.
    ///
    /// # Errors
    /// Same as [`Tensor::multiply`].
    pub fn multiply(&self, other: impl Into<SymbolicOperand>) -> Result<SymbolicTensor> {
        self.operator(&MULTIPLY, other.into(), false)
    }

    /// `self / other`, element by element with broadcasting. The result has no mask.
    ///
    /// # Errors
    /// Same as [`Tensor::divide`].
    pub fn divide(&self, other: impl Into<SymbolicOperand>) -> Result<SymbolicTensor> {
        self.operator(&DIVIDE, other.into(), false)
    }

    /// Applies a function to the symbol's tensor, as a layer `name` (`name_1`, ... if there are several). The result has no
    /// mask.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Functional, INFERENCE, Input, Layer};
    /// let x = Input::new([2]);
    /// let model = Functional::new(&x, x.map("square", |x| x.square())?)?;
    /// let y = model.call(&wgrad::constant([[3.0, 4.0]])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [9.0, 16.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of the function.
    pub fn map(
        &self,
        name: &str,
        f: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<SymbolicTensor> {
        SymbolicTensor::map_all(name, self, move |x| match x {
            [x] => f(x),
            _ => Err(Error::Shape("the function has one input.".into())),
        })
    }

    /// Applies a function to several symbols' tensors, as a layer `name` (`name_1`, ... if there are several). The result has
    /// no mask.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Input, SymbolicTensor};
    /// let (a, b) = (Input::new([2, 3]), Input::new([3, 4]));
    /// let y = SymbolicTensor::map_all("product", [&a, &b], |x| x[0].matmul(&x[1]))?;
    /// assert_eq!(y.to_string(), "(None, 2, 4) f32");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of the function.
    pub fn map_all(
        name: &str,
        xs: impl Symbols,
        f: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<SymbolicTensor> {
        only(connect(Operation::called(name, Function(f)), xs.symbols()))
    }
}

macro_rules! operators {
    ($($trait:ident::$method:ident $kind:ident;)*) => {$(
        impl<R: Into<SymbolicOperand>> ops::$trait<R> for &SymbolicTensor {
            type Output = SymbolicTensor;

            /// Panics if the method of this name returns an error.
            #[track_caller]
            fn $method(self, other: R) -> SymbolicTensor {
                sugar(self.operator(&$kind, other.into(), false))
            }
        }

        impl<R: Into<SymbolicOperand>> ops::$trait<R> for SymbolicTensor {
            type Output = SymbolicTensor;

            /// Panics if the method of this name returns an error.
            #[track_caller]
            fn $method(self, other: R) -> SymbolicTensor {
                sugar(self.operator(&$kind, other.into(), false))
            }
        }

        impl ops::$trait<&SymbolicTensor> for f32 {
            type Output = SymbolicTensor;

            /// Panics if the method of this name returns an error.
            #[track_caller]
            fn $method(self, other: &SymbolicTensor) -> SymbolicTensor {
                sugar(other.operator(&$kind, self.into(), true))
            }
        }
    )*};
}
operators! {
    Add::add ADD;
    Sub::sub SUBTRACT;
    Mul::mul MULTIPLY;
    Div::div DIVIDE;
}

impl ops::Neg for &SymbolicTensor {
    type Output = SymbolicTensor;

    /// Panics if the dtype has no negative numbers.
    #[track_caller]
    fn neg(self) -> SymbolicTensor {
        let negative = Arithmetic { kind: &NEGATIVE, number: None };
        sugar(only(connect(Operation::new(None, negative), vec![self.clone()])))
    }
}

#[track_caller]
fn sugar(result: Result<SymbolicTensor>) -> SymbolicTensor {
    match result {
        Ok(y) => y,
        Err(error) => panic!("{error}"),
    }
}
