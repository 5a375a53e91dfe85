//! Debugging a program: checks of values, and prints, which the device delivers when it computes them (`tf.debugging`,
//! `tf.print`).
//!
//! No op reads values back, and neither do these functions: [`check_numerics`], the `assert_*` functions of values and
//! [`Tensor::print`](crate::Tensor::print) only append work to the stream. The flush that runs it also copies a few
//! numbers to the host. They are reported when the program next calls the device and the copy has arrived:
//!
//! - a read (`to_vec`, `item`, ..) or [`Device::synchronize`](crate::Device::synchronize) has waited for everything that
//!   was called before it, so it prints, or returns the error of a check, for every earlier call;
//! - [`Device::flush`](crate::Device::flush) and an optimizer's step do not wait: they report what has arrived by then,
//!   possibly from some steps before.
//!
//! At its end, a program reports the remaining results of the default device. The error is
//! [`Error::Check`](crate::Error::Check) and specifies the line of the call; it is returned once, and the values
//! themselves remain readable. A wrong shape or dtype is known at the call, which returns the error: [`assert_rank`],
//! [`assert_shapes`], [`assert_type`], [`assert_scalar`].
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
