//! Looking into a program: checks of values, and prints, that the device delivers when it gets there (`tf.debugging`,
//! `tf.print`).
//!
//! No op reads back by itself, and neither do these: [`check_numerics`], the `assert_*` functions that look at values and
//! [`Tensor::print`](crate::Tensor::print) only put work behind what waits. The flush that runs it also copies a few
//! numbers to the host. They are told of when the program next touches the device and the copy is there:
//!
//! - a read (`to_vec`, `item`, ..) or [`Device::synchronize`](crate::Device::synchronize) has waited for all that was
//!   called before it, so it prints, or returns the error of a check, of every earlier call;
//! - [`Device::flush`](crate::Device::flush) and an optimizer's step do not wait: they tell of what has arrived by then,
//!   which may be that of some steps before.
//!
//! A program that ends tells of what is left on the default device. The error is
//! [`Error::Check`](crate::Error::Check) and says which call it was, by its line; it is returned once, and the values
//! themselves stay readable. What is wrong with a shape or a dtype is known at the call, and returned by it:
//! [`assert_rank`], [`assert_shapes`], [`assert_type`], [`assert_scalar`].
//!
//! [`Device::set_check_numerics`](crate::Device::set_check_numerics) finds the op that made the first NaN.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::{constant, debugging};
//! let x = constant([1.0, -1.0])?;
//! let y = debugging::check_numerics(&x.sqrt()?, "the root")?;    // nothing is read here
//! let error = y.multiply(2.0)?.to_vec::<f32>().unwrap_err();
//! assert!(error.to_string().starts_with("CheckNumerics: the root: Sqrt gave 1 NaN and 0 infinite numbers, of 2"));
//! # Ok(())
//! # }
//! ```

mod asserts;
mod numerics;
mod print;
mod print_text;
mod report;
mod specs;

pub use asserts::{
    AssertNearOptions, assert_equal, assert_greater, assert_greater_equal, assert_less,
    assert_less_equal, assert_near, assert_near_with, assert_negative, assert_non_negative,
    assert_non_positive, assert_none_equal, assert_positive,
};
pub use numerics::{assert_all_finite, check_numerics};
pub use print::PrintOptions;
pub use specs::{assert_rank, assert_rank_at_least, assert_scalar, assert_shapes, assert_type};
