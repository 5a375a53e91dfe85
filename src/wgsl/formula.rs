//! The body of one function of a generated kernel.

use std::borrow::Cow;

use super::expression::{Arithmetic, evaluate};
use super::prelude::function;
use super::reader::{Read, read};

/// WGSL over the names of a function's arguments: an expression, or statements that end in a `return`. The word `V` is
/// a vector type, chosen by the code that writes the function. The constructor derives everything else from the text.
#[derive(Debug)]
pub(crate) struct Formula {
    text: Cow<'static, str>,
    kind: FormulaKind,
    /// Where the word `V` begins.
    vectors: Vec<usize>,
    cost: usize,
    iterations: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormulaKind {
    /// The argument of this name.
    Argument,
    Expression,
    Statements,
}

impl Formula {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Formula::read(text.into())
    }

    fn read(text: Cow<'static, str>) -> Self {
        let iterations_of = |name: &str| function(name).map_or(0, |function| function.iterations);
        let Read { calls, vectors, iterations, name, returns } = read(&text, &iterations_of);
        let called = calls.into_iter().filter_map(function);
        let cost = text.len() + called.map(|function| function.cost).sum::<usize>();
        let kind = match (name, returns) {
            (true, _) => FormulaKind::Argument,
            (false, false) => FormulaKind::Expression,
            (false, true) => FormulaKind::Statements,
        };
        Formula { kind, vectors, cost, iterations, text }
    }

    /// An estimate of how long a driver takes to compile the formula, in units of ten microseconds: about one for each
    /// character, and the cost of each function of the prelude that it calls.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// Iterations of its loops and of those in functions that it calls.
    pub(crate) fn iterations(&self) -> usize {
        self.iterations
    }

    /// True if the formula is an argument and nothing else.
    pub(crate) fn is_argument(&self) -> bool {
        self.kind == FormulaKind::Argument
    }

    /// Evaluates the formula with the visitor `to`; `None` if it is not only arithmetic.
    pub(crate) fn evaluate<A: Arithmetic>(&self, to: &mut A) -> Option<A::Value> {
        if self.kind == FormulaKind::Statements { None } else { evaluate(&self.text, to) }
    }

    /// The lines of a function that computes the formula, with `vector` as the type `V`.
    pub(crate) fn lines(&self, vector: &str) -> String {
        let mut text = String::with_capacity(self.text.len() + 16 * (1 + self.vectors.len()));
        let mut from = 0;
        for &at in &self.vectors {
            text.push_str(&self.text[from..at]);
            text.push_str(vector);
            from = at + 1;
        }
        text.push_str(&self.text[from..]);
        match self.kind {
            FormulaKind::Statements => format!("{}\n", text.trim_end()),
            FormulaKind::Argument | FormulaKind::Expression => format!("    return {text};\n"),
        }
    }
}

/// Formulas with the same text are equal.
impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_returned_and_statements_return() {
        let lines = |text: &'static str| Formula::new(text).lines("vec4<i32>");
        assert_eq!(lines("x"), "    return x;\n");
        assert_eq!(
            lines("select(V(0), x, x > V(1))"),
            "    return select(vec4<i32>(0), x, x > vec4<i32>(1));\n"
        );
        assert_eq!(
            lines("    let y = V(1);\n    return y + x;\n"),
            "    let y = vec4<i32>(1);\n    return y + x;\n"
        );
    }

    #[test]
    fn views_costs_and_loops_are_known() {
        let of = |text: &'static str| Formula::new(text);
        assert!(of("x").is_argument() && !of("-x").is_argument() && !of("x + x").is_argument());
        assert_eq!((of("x").cost(), of("x + y").cost()), (1, 5));
        assert_eq!(of("tanh_4(x) + tanh_4(y)").cost(), 21 + 2 * 400);
        assert_eq!(of("sin_4(x) + cos_4(y)").iterations(), 8);
        assert_eq!(of("for (var i = 0; i < 2; i++) { x = sin_4(x); }").iterations(), 10);
    }
}
