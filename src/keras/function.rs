//! [`Function`]: a function with its Keras class and arguments.

use std::fmt;
use std::sync::Arc;

/// A function such as an initializer, a regularizer or a constraint. A clone shares the function.
pub(crate) struct Function<F: ?Sized> {
    /// Keras's class, such as `L2`.
    pub class: &'static str,
    /// The arguments with which Keras would recreate it; not used for a custom function.
    pub arguments: Vec<(&'static str, Argument)>,
    pub call: Arc<F>,
}

/// A number or a word among the arguments of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Argument {
    Float(f64),
    Int(i64),
    Text(&'static str),
}

impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Argument::Float(value)
    }
}

impl From<f32> for Argument {
    /// The shortest decimal that parses to the same `f32`, so that 0.1 stays 0.1.
    fn from(value: f32) -> Self {
        Argument::Float(value.to_string().parse().unwrap_or(f64::from(value)))
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Self {
        Argument::Int(value)
    }
}

impl From<&'static str> for Argument {
    fn from(value: &'static str) -> Self {
        Argument::Text(value)
    }
}

/// The class of a custom function.
pub(crate) const OWN: &str = "";

impl<F: ?Sized> Clone for Function<F> {
    fn clone(&self) -> Self {
        let (class, arguments) = (self.class, self.arguments.clone());
        Function { class, arguments, call: self.call.clone() }
    }
}

impl<F: ?Sized> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = if self.class == OWN { "a function of the program" } else { self.class };
        write!(f, "{class}{:?}", self.arguments)
    }
}
