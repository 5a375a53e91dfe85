//! [`Function`]: a function with the name and the numbers by which Keras describes it.

use std::fmt;
use std::sync::Arc;

/// A function that a program chose, as initializers, regularizers and constraints are. A clone shares the function.
pub(crate) struct Function<F: ?Sized> {
    /// Keras's class, such as `L2`.
    pub class: &'static str,
    /// The arguments by which Keras would make it again; of no use for a function of the program's own.
    pub arguments: Vec<(&'static str, Argument)>,
    pub call: Arc<F>,
}

/// A number or a word that describes a function.
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
    /// The shortest decimal that gives the same `f32`, so that 0.1 stays 0.1.
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

/// The class of a function that the program wrote itself.
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
