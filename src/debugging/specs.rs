//! Assertions about ranks, shapes and dtypes, which are known at the call.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Returns an error if the tensor does not have `rank` axes.
///
/// # Errors
/// [`Error::Shape`].
pub fn assert_rank(x: &Tensor, rank: usize, message: &str) -> Result<()> {
    if x.rank() == rank {
        return Ok(());
    }
    let began = super::report::began("assert_rank", message);
    Err(Error::Shape(message!(
        "{began}x is {:?}, of rank {}, and not {rank}.",
        x.shape(),
        x.rank()
    )))
}

/// Returns an error if the tensor has fewer than `rank` axes.
///
/// # Errors
/// [`Error::Shape`].
pub fn assert_rank_at_least(x: &Tensor, rank: usize, message: &str) -> Result<()> {
    if x.rank() >= rank {
        return Ok(());
    }
    let began = super::report::began("assert_rank_at_least", message);
    Err(Error::Shape(message!(
        "{began}x is {:?}, of rank {}, and not of {rank} or more.",
        x.shape(),
        x.rank()
    )))
}

/// Returns an error if the tensor is not a scalar (of shape `[]`).
///
/// # Errors
/// [`Error::Shape`].
pub fn assert_scalar(x: &Tensor, message: &str) -> Result<()> {
    if x.rank() == 0 {
        return Ok(());
    }
    let began = super::report::began("assert_scalar", message);
    Err(Error::Shape(message!("{began}x is {:?}, and not a scalar.", x.shape())))
}

/// Returns an error if the tensor has another dtype.
///
/// # Errors
/// [`Error::DType`].
pub fn assert_type(x: &Tensor, dtype: DType, message: &str) -> Result<()> {
    if x.dtype() == dtype {
        return Ok(());
    }
    let began = super::report::began("assert_type", message);
    Err(Error::DType(message!("{began}x is {} {:?}, and not {dtype}.", x.dtype(), x.shape())))
}

/// Returns an error if the tensors' shapes do not match, like `tf.debugging.assert_shapes`. A shape is a text, separated
/// by spaces or commas: a number is the size of an axis; a letter or a word is the same size wherever it occurs; `.` is
/// any size; `...` (or `*`) in front matches any number of axes; an empty text is a scalar.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, debugging};
/// let (x, y) = (Tensor::zeros([8, 3])?, Tensor::zeros([2, 3, 5])?);
/// let (weights, loss) = (Tensor::zeros([3])?, Tensor::zeros([])?);
/// debugging::assert_shapes(&[(&x, "N Q"), (&y, "... Q ."), (&weights, "Q"), (&loss, "")], "inputs")?;
/// let error = debugging::assert_shapes(&[(&x, "N Q"), (&weights, "N")], "inputs").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "assert_shapes: inputs: tensor 1 is [3] and should be \"N\": axis 0 is 3, and N is 8 of tensor 0."
/// );
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if a shape does not match, or its text has `...` elsewhere than in front.
pub fn assert_shapes(shapes: &[(&Tensor, &str)], message: &str) -> Result<()> {
    let mut known: Vec<(&str, usize, usize)> = Vec::new();
    for (at, (x, spec)) in shapes.iter().enumerate() {
        let wrong = |why: String| {
            let began = super::report::began("assert_shapes", message);
            Err(Error::Shape(message!(
                "{began}tensor {at} is {:?} and should be {spec:?}: {why}.",
                x.shape()
            )))
        };
        let split = |c: char| c.is_whitespace() || c == ',';
        let mut words: Vec<&str> = spec.split(split).filter(|word| !word.is_empty()).collect();
        let open = words.first().is_some_and(|word| ["...", "*"].contains(word));
        if open {
            words.remove(0);
        }
        if words.iter().any(|word| ["...", "*"].contains(word)) {
            return wrong("only the first word may stand for any number of axes".into());
        }
        let Some(lead) = x.rank().checked_sub(words.len()).filter(|lead| open || *lead == 0) else {
            let more = if open { " or more" } else { "" };
            return wrong(format!("its rank is {}, and not {}{more}", x.rank(), words.len()));
        };
        for (axis, word) in words.into_iter().enumerate() {
            let size = x.shape()[lead + axis];
            let axis = lead + axis;
            if word == "." {
                continue;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                if word.parse() != Ok(size) {
                    return wrong(format!("axis {axis} is {size}, and not {word}"));
                }
                continue;
            }
            match known.iter().find(|(name, ..)| *name == word) {
                None => known.push((word, size, at)),
                Some((_, same, _)) if *same == size => {}
                Some((_, other, of)) => {
                    return wrong(format!(
                        "axis {axis} is {size}, and {word} is {other} of tensor {of}"
                    ));
                }
            }
        }
    }
    Ok(())
}
