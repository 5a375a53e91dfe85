//! Assertions about values, which the device checks when it computes them.

use std::panic::Location;

use super::report::{aside, at, began, index, number, report};
use crate::dtype::DType;
use crate::error::{Result, message};
use crate::shape::{Shape, broadcast};
use crate::support::options::options;
use crate::tensor::{Element, Operand, Tensor};

/// Generates the assertions that an op evaluates.
macro_rules! assertions {
    ($($name:ident, $op:ident, $sign:literal, $words:literal;)*) => {$(
        #[doc = concat!("Reports an error if ", $words, " for some elements; both are broadcast together.")]
        ///
        /// The next read, or the next flush after the result has arrived, returns [`Error::Check`](crate::Error::Check) with
        /// `message`, the number of elements that violate the assertion, and the first of them. NaN violates it.
        ///
        /// # Errors
        /// [`Error::Shape`](crate::Error::Shape) or [`Error::DType`](crate::Error::DType) if `x` and `y` cannot be compared.
        #[track_caller]
        pub fn $name(x: &Tensor, y: impl Into<Operand>, message: &str) -> Result<()> {
            let asked = Asked { op: stringify!($name), rule: concat!("x ", $sign, " y"), message, place: Location::caller() };
            let x = aside(x);
            let y = aside(&y.into().into_tensor_like(asked.op, &x)?);
            asked.of_two(&x.$op(&y)?, &x, &y)
        }
    )*};
    ($($name:ident, $op:ident, $sign:literal;)*) => {$(
        #[doc = concat!("Reports an error if `x ", $sign, " 0` does not hold for some elements.")]
        ///
        /// As [`assert_equal`], without the second argument.
        ///
        /// # Errors
        /// [`Error::DType`](crate::Error::DType) if `x` is not numeric.
        #[track_caller]
        pub fn $name(x: &Tensor, message: &str) -> Result<()> {
            let asked = Asked { op: stringify!($name), rule: concat!("x ", $sign, " 0"), message, place: Location::caller() };
            let x = aside(x);
            asked.of_one(&x.$op(0)?, &x)
        }
    )*};
}
// `assert_less, less, "<", "`x < y` does not hold";` becomes `assert_less(x, y, message)`, which computes `x.less(y)`.

assertions! {
    assert_equal, equal, "==", "`x == y` does not hold";
    assert_none_equal, not_equal, "!=", "`x != y` does not hold";
    assert_less, less, "<", "`x < y` does not hold";
    assert_less_equal, less_equal, "<=", "`x <= y` does not hold";
    assert_greater, greater, ">", "`x > y` does not hold";
    assert_greater_equal, greater_equal, ">=", "`x >= y` does not hold";
}

assertions! {
    assert_positive, greater, ">";
    assert_non_negative, greater_equal, ">=";
    assert_negative, less, "<";
    assert_non_positive, less_equal, "<=";
}

options! {
    /// The tolerances of [`assert_near_with`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct AssertNearOptions {
        /// The relative tolerance, a fraction of `|y|`; default: ten times the distance from 1 to the next number of the
        /// dtype.
        rtol: Option<f32> as impl Into<Option<f32>> = None,
        /// The absolute tolerance; default: as `rtol`.
        atol: Option<f32> as impl Into<Option<f32>> = None,
    }
}

/// Asserts that `|x - y| <= atol + rtol |y|` for all elements; both tolerances are ten times the distance from 1 to the next
/// number of the dtype. Reports as [`assert_equal`].
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) or [`Error::DType`](crate::Error::DType) if `x` and `y` are not floats that can
/// be compared.
#[track_caller]
pub fn assert_near(x: &Tensor, y: impl Into<Operand>, message: &str) -> Result<()> {
    assert_near_with(x, y, message, AssertNearOptions::new())
}

/// As [`assert_near`], with other tolerances.
///
/// # Errors
/// As [`assert_near`].
#[track_caller]
pub fn assert_near_with(
    x: &Tensor,
    y: impl Into<Operand>,
    message: &str,
    options: AssertNearOptions,
) -> Result<()> {
    let place = Location::caller();
    let epsilon = if x.dtype() == DType::F16 { 2f32.powi(-10) } else { f32::EPSILON };
    let [rtol, atol] = [options.rtol, options.atol].map(|tol| tol.unwrap_or(10.0 * epsilon));
    let asked = Asked { op: "assert_near", rule: "|x - y| <= atol + rtol |y|", message, place };
    let x = aside(x);
    let y = aside(&y.into().into_tensor_like(asked.op, &x)?);
    // Equal infinities count as near, although their difference is NaN.
    let near = x.subtract(&y)?.abs()?.less_equal(y.abs()?.multiply(rtol)?.add(atol)?)?;
    asked.of_two(&near.logical_or(x.equal(&y)?)?, &x, &y)
}

/// The message of an assertion, and the line of its call.
struct Asked<'a> {
    op: &'static str,
    rule: &'static str,
    message: &'a str,
    place: &'static Location<'static>,
}

/// The number of elements that violate the assertion, and the index of the first.
struct Broken {
    count: Tensor,
    first: Tensor,
    shape: Shape,
}

impl Asked<'_> {
    fn of_two(&self, holds: &Tensor, x: &Tensor, y: &Tensor) -> Result<()> {
        let Some(broken) = broken(holds)? else { return Ok(()) };
        let (a, b) = (broken.element(x)?, broken.element(y)?);
        self.report(&broken, &[&a, &b])
    }

    fn of_one(&self, holds: &Tensor, x: &Tensor) -> Result<()> {
        let Some(broken) = broken(holds)? else { return Ok(()) };
        let a = broken.element(x)?;
        self.report(&broken, &[&a])
    }

    fn report(&self, broken: &Broken, elements: &[&Tensor]) -> Result<()> {
        let dtypes: Vec<DType> = elements.iter().map(|x| x.dtype()).collect();
        let (began, rule, place) = (began(self.op, self.message), self.rule, self.place);
        let shape = broken.shape.clone();
        let tensors: Vec<&Tensor> =
            [&broken.count, &broken.first].into_iter().chain(elements.iter().copied()).collect();
        report(&tensors, move |found| {
            let [count, first] = [found[0], found[1]].map(number::<i32>);
            let names = ["x", "y"].iter().zip(&dtypes).zip(&found[2..]);
            let values: Vec<String> = names
                .map(|((name, dtype), bytes)| format!("{name} is {}", one(*dtype, bytes)))
                .collect();
            (count != 0).then(|| {
                message!(
                    "{began}{rule} does not hold for {count} of {} elements; the first is {:?}, where {}. {}",
                    shape.elements(),
                    index(&shape, first as usize),
                    values.join(" and "),
                    at(place)
                )
            })
        });
        Ok(())
    }
}

/// `None` if there are no elements.
fn broken(holds: &Tensor) -> Result<Option<Broken>> {
    if holds.is_empty() {
        return Ok(None);
    }
    let flat = holds.logical_not()?.cast(DType::I32)?.reshape([-1])?;
    let (count, first) = (flat.reduce_sum(())?, flat.argmax(0)?);
    Ok(Some(Broken { count, first, shape: holds.spec().shape.clone() }))
}

impl Broken {
    /// The element of `x`, broadcast, at this index.
    fn element(&self, x: &Tensor) -> Result<Tensor> {
        debug_assert!(broadcast("assert", &x.spec().shape, &self.shape).is_ok());
        x.broadcast_to(&self.shape[..])?.reshape([-1])?.gather(&self.first, 0)
    }
}

/// An element as text.
fn one(dtype: DType, bytes: &[u8]) -> String {
    fn text<T: Element + Default + ToString>(bytes: &[u8]) -> String {
        number::<T>(bytes).to_string()
    }
    match dtype {
        DType::F32 => text::<f32>(bytes),
        DType::F16 => text::<half::f16>(bytes),
        DType::I32 => text::<i32>(bytes),
        DType::U32 => text::<u32>(bytes),
        DType::U8 => text::<u8>(bytes),
        DType::Bool => text::<bool>(bytes),
    }
}
