//! The functions whose gradients tests compare with differences, and the numbers in their inputs.

use crate::error::Result;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// The numbers in an input.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Uniform between two numbers.
    Within(f32, f32),
    /// Of either sign, 0.5 to 1.5 away from 0.
    Away,
    /// Multiples of 0.2 in random order, plus this offset: they differ by more than the steps of the numeric
    /// differences.
    Distinct(f32),
}

pub const ANY: Values = Values::Within(-1.5, 1.5);
pub const POSITIVE: Values = Values::Within(0.4, 2.0);

pub type Input = (&'static [usize], Values);

/// A function that is called with tensors of the case's inputs.
pub type Function = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// A function whose gradients the tests check.
pub struct Case {
    /// The name of the case, which begins with the op's name.
    pub name: String,
    pub inputs: Vec<Input>,
    pub f: Function,
    /// Whether tests check the second order too.
    pub second: bool,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Gathers the cases of an op.
#[derive(Debug, Default)]
pub struct Cases(pub(super) Vec<Case>);

impl Cases {
    /// Adds a function of `inputs`.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        inputs: &[Input],
        f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    ) {
        let case =
            Case { name: name.into(), inputs: inputs.to_vec(), f: Box::new(f), second: true };
        self.0.push(case);
    }

    /// As [`Cases::add`], without a check of the second order.
    pub fn add_first_order(
        &mut self,
        name: impl Into<String>,
        inputs: &[Input],
        f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    ) {
        self.add(name, inputs, f);
        if let Some(case) = self.0.last_mut() {
            case.second = false;
        }
    }

    /// Adds a function of one input of shape `[3,5]`, which is not a whole number of vectors.
    pub fn of_one(&mut self, name: &str, values: Values, f: fn(&Tensor) -> Result<Tensor>) {
        self.add(name, &[(&[3, 5], values)], move |x| f(&x[0]));
    }

    /// Adds a function of one input of `shape` with any numbers.
    pub fn of_shape(
        &mut self,
        name: &str,
        shape: &'static [usize],
        f: fn(&Tensor) -> Result<Tensor>,
    ) {
        self.add(name, &[(shape, ANY)], move |x| f(&x[0]));
    }

    /// Adds a function of two inputs, for all combinations in which one broadcasts against the other.
    pub fn of_two(
        &mut self,
        name: &str,
        [a, b]: [Values; 2],
        f: fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) {
        let shapes: [(&str, &'static [usize], &'static [usize]); 5] = [
            ("of one shape", &[3, 5], &[3, 5]),
            ("with a row on the right", &[3, 5], &[5]),
            ("with a column on the left", &[3, 1], &[3, 5]),
            ("with both spread", &[3, 1], &[2, 1, 5]),
            ("with a scalar on the left", &[], &[3, 5]),
        ];
        for (how, left, right) in shapes {
            self.add(format!("{name} {how}"), &[(left, a), (right, b)], move |x| f(&x[0], &x[1]));
        }
    }

    /// Adds a reduction, for all kinds of axes.
    pub fn of_fold(&mut self, name: &str, values: Values, f: fn(&Tensor, Axes) -> Result<Tensor>) {
        let over: [(&str, &'static [i64], bool); 5] = [
            ("over all", &[0, 1, 2], false),
            ("over all, kept", &[0, 1, 2], true),
            ("over the middle", &[1], false),
            ("over the ends, kept", &[0, -1], true),
            ("over the last", &[-1], false),
        ];
        for (how, axes, keep) in over {
            self.add(format!("{name} {how}"), &[(&[2, 3, 4], values)], move |x| {
                f(&x[0], Axes::from(axes).keepdims(keep))
            });
        }
    }
}
