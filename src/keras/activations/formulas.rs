//! Activations stored as functions rather than as variants of [`Activation`]: Keras's rarer ones, and custom ones.

use super::Activation;
use crate::error::{Error, Result};
use crate::ops::{CumsumOptions, EluOptions, GeluOptions, SortOptions};
use crate::tensor::Tensor;

/// An activation function with up to two numeric parameters, and its Keras name, if it has one.
#[derive(Debug, Clone, Copy)]
pub struct Formula {
    name: Option<&'static str>,
    call: fn(&Tensor, [f32; 2]) -> Result<Tensor>,
    numbers: [f32; 2],
    own: Option<fn(&Tensor) -> Result<Tensor>>,
}

impl PartialEq for Formula {
    /// Named functions are equal if their names and parameters are. Custom functions never compare equal.
    fn eq(&self, other: &Self) -> bool {
        self.name.is_some() && self.name == other.name && self.numbers == other.numbers
    }
}

impl Formula {
    pub(super) fn name(&self) -> Option<&'static str> {
        let usual = TABLE.iter().find(|row| Some(row.name) == self.name)?;
        (usual.numbers == Some(self.numbers)).then_some(usual.name)
    }

    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        match self.own {
            Some(own) => own(x),
            None => (self.call)(x, self.numbers),
        }
    }
}

/// A named function, with the parameters that its name alone implies, if any.
struct Row {
    name: &'static str,
    call: fn(&Tensor, [f32; 2]) -> Result<Tensor>,
    numbers: Option<[f32; 2]>,
}

/// The names in this table that imply all parameters.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|row| row.numbers.is_some()).map(|row| row.name)
}

/// The activation called `name`.
pub(super) fn named(name: &str) -> Option<Activation> {
    let name = if name == "hard_swish" { "hard_silu" } else { name };
    let row = TABLE.iter().find(|row| row.name == name)?;
    let numbers = row.numbers?;
    Some(Activation::Formula(Formula { name: Some(row.name), call: row.call, numbers, own: None }))
}

macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident($($number:ident),*) means $usual:expr, |$x:ident| $formula:expr;)*) => {
        impl Activation {$(
            $(#[$doc])*
            #[allow(unused_assignments, unused_mut)]
            pub fn $name($($number: f32),*) -> Activation {
                let mut numbers = [0.0; 2];
                for (place, number) in numbers.iter_mut().zip([$($number),*] as [f32; formulas!(@count $($number)*)]) {
                    *place = number;
                }
                let name = Some(stringify!($name));
                Activation::Formula(Formula { name, call: calls::$name, numbers, own: None })
            }
        )*}

        mod calls {
            use super::*;
            $(
                pub(super) fn $name($x: &Tensor, numbers: [f32; 2]) -> Result<Tensor> {
                    let [$($number,)* ..] = numbers;
                    $formula
                }
            )*
        }

        const TABLE: &[Row] = &[$(
            Row { name: stringify!($name), call: calls::$name, numbers: $usual },
        )*];
    };
    (@count) => { 0 };
    (@count $a:ident) => { 1 };
    (@count $a:ident $b:ident) => { 2 };
}
// The first line becomes `Activation::celu(alpha)`, and the name "celu", which implies an alpha of 1.
formulas! {
    /// `x` above 0, `alpha (e^(x / alpha) - 1)` below. Keras's alpha is 1.
    celu(alpha) means Some([1.0, 0.0]), |x| x.celu(alpha);
    /// `x` above 0, `alpha (e^x - 1)` below; [`Activation::Elu`] has an alpha of 1.
    elu(alpha) means None, |x| x.elu_with(EluOptions::new().alpha(alpha));
    /// The approximation of [`Activation::Gelu`] by tanh.
    gelu_tanh() means None, |x| x.gelu_with(GeluOptions::new().approximate(true));
    /// The first half of the last axis times the sigmoid of the second half.
    glu() means Some([0.0; 2]), |x| x.glu(-1);
    /// `x` where `|x| > threshold`, else 0. Keras's threshold is 0.5.
    hard_shrink(threshold) means Some([0.5, 0.0]), |x| x.hard_shrink(threshold);
    /// `x hard_sigmoid(x)`, also called hard swish.
    hard_silu() means Some([0.0; 2]), |x| x.hard_silu();
    /// `x` clipped to -1 to 1.
    hard_tanh() means Some([0.0; 2]), |x| x.hard_tanh();
    /// `x / 5 + 1/2`, clipped to 0 to 1: what Keras 2 and TensorFlow.js call `hard_sigmoid`. Keras 3 does not have it.
    keras_2_hard_sigmoid() means Some([0.0; 2]), |x| x.multiply(1.2)?.hard_sigmoid();
    /// `log(sigmoid(x))`.
    log_sigmoid() means Some([0.0; 2]), |x| x.log_sigmoid();
    /// `x` moved towards 0 by `threshold`. Keras's threshold is 0.5.
    soft_shrink(threshold) means Some([0.5, 0.0]), |x| x.soft_shrink(threshold);
    /// 0 below -1, `(x + 1)^2 / 4` up to 1, `x` above.
    sparse_plus() means Some([0.0; 2]), |x| x.sparse_plus();
    /// 0 below -1, `(x + 1) / 2` up to 1, 1 above.
    sparse_sigmoid() means Some([0.0; 2]), |x| x.sparse_sigmoid();
    /// The point of the simplex that is nearest to `x`, along the last axis (Martins and Astudillo 2016).
    sparsemax() means Some([0.0; 2]), |x| nearest_in_simplex(x);
    /// `(x + sqrt(x^2 + b)) / 2`. Keras's b is 4.
    squareplus(b) means Some([4.0, 0.0]), |x| x.squareplus(b);
    /// `x - tanh(x)`.
    tanh_shrink() means Some([0.0; 2]), |x| x.tanh_shrink();
    /// `x` above `limit`, else `default_value`.
    threshold(limit, default_value) means None, |x| x.threshold(limit, default_value);
}

impl Activation {
    /// Creates a custom activation, such as `Activation::new(|x| x.square())` or `Activation::new(Tensor::sin)`. The function
    /// cannot capture variables, and a config cannot hold it.
    pub fn new(function: fn(&Tensor) -> Result<Tensor>) -> Activation {
        Activation::Formula(Formula {
            name: None,
            call: |x, _| Ok(x.clone()),
            numbers: [0.0; 2],
            own: Some(function),
        })
    }
}

/// `max(x - t, 0)` with `t = (sum of the k largest elements of a row - 1) / k`, for the largest k that leaves these k elements
/// above t.
fn nearest_in_simplex(x: &Tensor) -> Result<Tensor> {
    let Some(&size) = x.shape().last() else {
        return Err(Error::Shape("sparsemax: the input is a scalar; it needs an axis.".into()));
    };
    if x.is_empty() {
        return Ok(x.clone());
    }
    let descending = x.sort_with(-1, SortOptions::new().descending(true))?;
    let sums = descending.cumsum_with(-1, CumsumOptions::new())?;
    let counts: Vec<f32> = (1..=size).map(|k| k as f32).collect();
    let counts = x.device().scope(|| Tensor::from_slice(&counts, [size]))?.cast(x.dtype())?;
    let inside = descending.multiply(&counts)?.add(1.0)?.greater(&sums)?.cast(x.dtype())?;
    let last = crate::shape::Axes::from(-1).keepdims(true);
    let count = inside.reduce_sum(&last)?;
    let limit = descending.multiply(&inside)?.reduce_sum(&last)?.subtract(1.0)?.divide(count)?;
    x.subtract(limit)?.relu()
}
