//! Scans along an axis: the sum, product, maximum, minimum, or logarithm of a sum of exponentials of the elements up to
//! each one.

mod kernels;
pub(super) mod recurrence;

use super::inventory::{ANY, Entry, OpKind, POSITIVE, Values, one};
use super::{
    Backward, FLOATS, Grads, Keep, NUMERIC, Operation, expect_dtype, known_by_method, only, select,
};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::{Attribute, attribute_of_rows};
use crate::graph::lower::{Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;
use kernels::{Code, Scan};
pub(super) use recurrence::LinearRecurrence;
use recurrence::{Way, linear_recurrence};

options! {
    /// Which elements a running sum, or the result of another scan, includes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
    pub struct CumsumOptions {
        /// Whether a sum excludes the element at its own position; `false` by default.
        exclusive: bool = false,
        /// Whether the sums run from the end of the axis to its beginning; `false` by default.
        reverse: bool = false,
    }
}

/// Running results along an axis. The result has the tensor's shape and dtype; `f16` is combined in `f32`. Each method
/// has a variant with [`CumsumOptions`].
impl Tensor {
    /// The cumulative sum along `axis`. Integers wrap.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// assert_eq!(x.cumsum(1)?.to_vec::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if the axis does not exist; [`Error::DType`](crate::Error::DType) if the
    /// dtype is not numeric.
    pub fn cumsum(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cumsum_with(axis, CumsumOptions::new())
    }

    /// Like [`Tensor::cumsum`], with options.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1.0, 2.0, 3.0])?;
    /// let left = x.cumsum_with(0, tf::CumsumOptions::new().exclusive(true).reverse(true))?;
    /// assert_eq!(left.to_vec::<f32>()?, [5.0, 3.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cumsum_with(&self, axis: impl Into<Axis>, options: CumsumOptions) -> Result<Tensor> {
        scan(self, &SUM, axis.into(), options)
    }

    /// The cumulative product along `axis`. Integers wrap. The gradient does not divide, so it is also correct for
    /// zeros; TensorFlow's is 0 there. Long axes are multiplied in chunks, so if a 0 is far before elements whose
    /// product overflows, the result is NaN.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// assert_eq!(tf::constant([2, 3, 4])?.cumprod(0)?.to_vec::<i32>()?, [2, 6, 24]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cumprod(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cumprod_with(axis, CumsumOptions::new())
    }

    /// Like [`Tensor::cumprod`], with options.
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cumprod_with(&self, axis: impl Into<Axis>, options: CumsumOptions) -> Result<Tensor> {
        scan(self, &PRODUCT, axis.into(), options)
    }

    /// The cumulative maximum along `axis`; NaN from the first NaN on, and the lowest number if there are no elements.
    /// The first of equal elements receives the gradient. TensorFlow has no such function.
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cummax(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cummax_with(axis, CumsumOptions::new())
    }

    /// Like [`Tensor::cummax`], with options.
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cummax_with(&self, axis: impl Into<Axis>, options: CumsumOptions) -> Result<Tensor> {
        scan(self, &LARGEST, axis.into(), options)
    }

    /// The cumulative minimum along `axis`; otherwise like [`Tensor::cummax`].
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cummin(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cummin_with(axis, CumsumOptions::new())
    }

    /// Like [`Tensor::cummin`], with options.
    ///
    /// # Errors
    /// As [`Tensor::cumsum`].
    pub fn cummin_with(&self, axis: impl Into<Axis>, options: CumsumOptions) -> Result<Tensor> {
        scan(self, &SMALLEST, axis.into(), options)
    }

    /// `log(sum(e^x))` of the elements up to each one along `axis`, stable for elements of any size; -infinity if there
    /// are none.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([1000.0, 1000.0])?.cumulative_logsumexp(0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1000.0, 1000.0 + 2f32.ln()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`](crate::Error::Index) if the axis does not exist; [`Error::DType`](crate::Error::DType) if the
    /// dtype is not float.
    pub fn cumulative_logsumexp(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        self.cumulative_logsumexp_with(axis, CumsumOptions::new())
    }

    /// Like [`Tensor::cumulative_logsumexp`], with options.
    ///
    /// # Errors
    /// As [`Tensor::cumulative_logsumexp`].
    pub fn cumulative_logsumexp_with(
        &self,
        axis: impl Into<Axis>,
        options: CumsumOptions,
    ) -> Result<Tensor> {
        expect_dtype("CumulativeLogsumexp", self.spec(), FLOATS)?;
        scan(self, &LOG_SUM_EXP, axis.into(), options)
    }
}

fn scan(x: &Tensor, row: &'static Row, axis: Axis, options: CumsumOptions) -> Result<Tensor> {
    let axis = axis_index(row.method, axis, x.rank())?;
    dispatch(Cumulative { row, axis, options }, &[x])
}

/// A kind of scan.
struct Row {
    /// TensorFlow's name of the kernel.
    method: &'static str,
    /// Identity and combination of floats, `i32` and `u32`.
    float: (&'static str, &'static str),
    int: (&'static str, &'static str),
    uint: (&'static str, &'static str),
    keep: Keep,
    grad: fn(&Cumulative, &Backward) -> Result<Tensor>,
}

known_by_method!(Row);
attribute_of_rows!(Row, &[&SUM, &PRODUCT, &LARGEST, &SMALLEST, &LOG_SUM_EXP], method);

static SUM: Row = Row {
    method: "Cumsum",
    float: ("A(0)", "a + b"),
    int: ("A(0)", "a + b"),
    uint: ("A(0)", "a + b"),
    keep: Keep::Nothing,
    // dx[j] = the sum of dy over the results that include x[j]: those from j on.
    grad: |op, back| {
        let options = CumsumOptions { reverse: !op.options.reverse, ..op.options };
        back.dy.cumsum_with(op.axis, options)
    },
};

static PRODUCT: Row = Row {
    method: "Cumprod",
    float: ("A(1)", "a * b"),
    int: ("A(1)", "a * b"),
    uint: ("A(1)", "a * b"),
    keep: Keep::Inputs,
    // dx[j] = the product before j, times the sum over i of dy[i] and the product between j and i.
    grad: |op, back| {
        let x = back.x(0);
        let before = x.cumprod_with(op.axis, op.options.exclusive(true))?;
        before.multiply(op.sums_behind(&op.way().next(x)?, back.dy)?)
    },
};

static LARGEST: Row = Row {
    method: "Cummax",
    float: ("-inf()", "select(max(a, b), nan(), is_nan(a) | is_nan(b))"),
    int: ("A(-2147483648)", "max(a, b)"),
    uint: ("A(0)", "max(a, b)"),
    keep: Keep::Inputs,
    grad: |op, back| {
        let x = back.x(0);
        op.to_the_new(back, &x.greater(x.cummax_with(op.axis, op.options.exclusive(true))?)?)
    },
};

static SMALLEST: Row = Row {
    method: "Cummin",
    float: ("inf()", "select(min(a, b), nan(), is_nan(a) | is_nan(b))"),
    int: ("A(2147483647)", "min(a, b)"),
    uint: ("A(4294967295)", "min(a, b)"),
    keep: Keep::Inputs,
    grad: |op, back| {
        let x = back.x(0);
        op.to_the_new(back, &x.less(x.cummin_with(op.axis, op.options.exclusive(true))?)?)
    },
};

/// `max + log(1 + e^(min - max))`; equal infinities have no difference.
static LOG_SUM_EXP: Row = Row {
    method: "CumulativeLogsumexp",
    float: (
        "-inf()",
        "let high = max(a, b);
    let more = log1p_4(exp_4(vec4<f32>(min(a, b) - high))).x;
    let none = (bitcast<u32>(high) & 0x7fffffffu) == 0x7f800000u;
    return select(select(high + more, high, none), nan(), is_nan(a) | is_nan(b));",
    ),
    int: ("", ""),
    uint: ("", ""),
    keep: Keep::Inputs,
    // dx[j] = the sum over i of dy[i] e^(x[j] - y[i]), where each y[i] is at least x[j].
    grad: |op, back| {
        let x = back.x(0);
        let y = x.cumulative_logsumexp_with(op.axis, op.options.exclusive(false))?;
        let rates = op.way().neighbours(&y, ratio)?;
        ratio(x, &y)?.multiply(op.sums_behind(&rates, back.dy)?)
    },
};

/// `e^(a - b)`, and 1 where they are equal, even if infinite.
fn ratio(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    select(&a.equal(b)?, &a.zeros_like()?, &a.subtract(b)?)?.exp()
}

/// A call of a row.
#[derive(Debug, Attribute)]
#[op("Cumulative")]
pub(crate) struct Cumulative {
    row: &'static Row,
    axis: usize,
    options: CumsumOptions,
}

impl Cumulative {
    /// The same call on rows, which are along an additional first axis.
    pub(super) fn of_rows(&self, rows: &Tensor) -> Result<Tensor> {
        dispatch(Cumulative { axis: self.axis + 1, ..*self }, &[rows])
    }

    fn way(&self) -> Way {
        Way { axis: self.axis, reverse: self.options.reverse }
    }

    /// `s[j] = dy[j] + rates[j] s[j+1]` along the scan; if the scan is exclusive, dy is shifted by one.
    fn sums_behind(&self, rates: &Tensor, dy: &Tensor) -> Result<Tensor> {
        let dy = if self.options.exclusive { &self.way().next(dy)? } else { dy };
        linear_recurrence(rates, dy, self.axis, !self.options.reverse)
    }

    /// The gradient of a scan whose results are elements: each result is the last element so far that is `new`.
    fn to_the_new(&self, back: &Backward, new: &Tensor) -> Result<Tensor> {
        let old = new.logical_not()?.cast(back.dy.dtype())?;
        let sums = self.sums_behind(&self.way().next(&old)?, back.dy)?;
        select(new, &sums, &sums.zeros_like()?)
    }
}

impl Op for Cumulative {
    fn name(&self) -> &'static str {
        self.row.method
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype(self.row.method, inputs[0], NUMERIC)?;
        Ok(inputs[0].clone())
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        let (carried, (identity, combine)) = match x.dtype.register() {
            Register::I32 => ("i32", self.row.int),
            Register::U32 => ("u32", self.row.uint),
            _ => ("f32", self.row.float),
        };
        let load = "A(x0[at])";
        let code = Code { carried, words: 1, identity, combine, load, inputs: 1, result: "a" };
        let CumsumOptions { exclusive, reverse } = self.options;
        Scan { axis: self.axis, exclusive, reverse, code }.lower(x, cx.caps)
    }
}

impl Operation for Cumulative {
    fn keep(&self) -> Keep {
        self.row.keep
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only((self.row.grad)(self, back)?)
    }
}

/// The four combinations of options.
const WAYS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

macro_rules! entry {
    ($name:ident, $with:ident, $form:literal, $tensorflow:expr, $takes:expr, $values:expr) => {
        Entry::new(OpKind::Kernel, stringify!($name), $tensorflow, |c| {
            let options =
                CumsumOptions::new().exclusive(c.flag("exclusive")?).reverse(c.flag("reverse")?);
            one(c.x()?.$with(c.axis()?, options))
        })
        .forms(&[$form])
        .takes($takes)
        .cases(|cases| {
            cases.add(stringify!($name), &[(&[3, 5], $values)], |x| x[0].$name(1));
            cases.add(concat!(stringify!($name), " in chunks"), &[(&[2, 70, 2], $values)], |x| {
                // Products of many elements would leave the range in which numeric differences are meaningful.
                x[0].multiply(0.3)?.add(0.8)?.$name(1)
            });
            for (exclusive, reverse) in WAYS {
                let options = CumsumOptions::new().exclusive(exclusive).reverse(reverse);
                let name = format!("{} {exclusive} {reverse}", stringify!($with));
                cases.add(name, &[(&[3, 4, 2], $values)], move |x| {
                    // Results without elements may be infinite, which numeric differences cannot check.
                    let y = x[0].$with(1, options)?;
                    select(&y.is_finite()?, &y, &y.zeros_like()?)
                });
            }
        })
        .kernels(&[|make, dtype| {
            let back = CumsumOptions::new().exclusive(true).reverse(true);
            Ok(vec![
                make(&[7], dtype).$name(0)?,
                make(&[3, 5, 2], dtype).$with(1, back)?,
                make(&[9_000], dtype).$name(0)?,
                make(&[2, 900, 3], dtype).$with(1, back)?,
                make(&[2, 900], dtype).$with(1, back)?,
                make(&[70, 5_000], dtype).$name(0)?,
            ])
        }])
    };
}

/// The longest loops. Their results are compared with those of split loops, so they contain no logarithms, which would
/// round differently.
macro_rules! looping {
    ($name:ident, $with:ident) => {
        &[|make, n| {
            let back = CumsumOptions::new().exclusive(true).reverse(true);
            Ok(vec![
                make(&[n], DType::F32).$name(0)?,
                make(&[n, 3], DType::F32).$with(0, back)?,
                make(&[2, n / 2], DType::F16).$name(1)?,
            ])
        }]
    };
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    entry!(cumsum, cumsum_with, "cumsum_with", &["tf.math.cumsum"], NUMERIC, ANY)
        .loops(looping!(cumsum, cumsum_with)),
    entry!(cumprod, cumprod_with, "cumprod_with", &["tf.math.cumprod"], NUMERIC, POSITIVE)
        .loops(looping!(cumprod, cumprod_with)),
    entry!(cummax, cummax_with, "cummax_with", &[], NUMERIC, Values::Distinct(0.0))
        .loops(looping!(cummax, cummax_with)),
    entry!(cummin, cummin_with, "cummin_with", &[], NUMERIC, Values::Distinct(0.0))
        .loops(looping!(cummin, cummin_with)),
    entry!(
        cumulative_logsumexp,
        cumulative_logsumexp_with,
        "cumulative_logsumexp_with",
        &["tf.math.cumulative_logsumexp"],
        FLOATS,
        ANY
    ),
];

#[cfg(test)]
mod tests;
