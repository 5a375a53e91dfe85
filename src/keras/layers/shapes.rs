//! The common checks of layers of signals, images and volumes: ranks, sizes, borders.

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The shapes of signals, images and volumes.
const FORMS: [&str; 3] = ["[N, W, C]", "[N, H, W, C]", "[N, D, H, W, C]"];

/// Refuses an input that does not have `axes` axes between those of the batch and of the channels.
pub(in crate::keras) fn expect_axes(layer: &str, x: &Tensor, axes: usize) -> Result<()> {
    if x.rank() == axes + 2 {
        return Ok(());
    }
    let form = FORMS.get(axes.wrapping_sub(1)).copied().unwrap_or("of another rank");
    Err(Error::Shape(message!("{layer}: the input is {:?}; it must be {form}.", x.shape())))
}

/// Refuses an option with a size of 0.
pub(in crate::keras) fn positive(layer: &str, option: &str, sizes: &[usize]) -> Result<()> {
    match sizes {
        _ if sizes.iter().all(|size| *size > 0) => Ok(()),
        [_] => Err(Error::Shape(message!("{layer}: {option} is 0; it must be at least 1."))),
        _ => Err(Error::Shape(message!(
            "{layer}: {option} is {sizes:?}; each size must be at least 1."
        ))),
    }
}

/// Sizes along spatial axes: one number for one axis, else a list.
pub(in crate::keras) trait SizeList {
    fn list(&self) -> &[usize];
}

impl SizeList for usize {
    fn list(&self) -> &[usize] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> SizeList for [usize; N] {
    fn list(&self) -> &[usize] {
        self
    }
}

/// How many positions a layer adds or removes before and after each of N spatial axes. Convert it from one number for
/// all sides, one number for each axis, or a pair (before, after) for each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Borders<const N: usize>(pub(super) [(usize, usize); N]);

impl<const N: usize> From<usize> for Borders<N> {
    fn from(all: usize) -> Self {
        Borders([(all, all); N])
    }
}

impl<const N: usize> From<[usize; N]> for Borders<N> {
    fn from(alike: [usize; N]) -> Self {
        Borders(alike.map(|size| (size, size)))
    }
}

impl<const N: usize> From<[(usize, usize); N]> for Borders<N> {
    fn from(pairs: [(usize, usize); N]) -> Self {
        Borders(pairs)
    }
}

impl From<(usize, usize)> for Borders<1> {
    fn from(pair: (usize, usize)) -> Self {
        Borders([pair])
    }
}

/// Keras writes the single pair of a signal without a list around it.
#[cfg(feature = "json")]
impl<const N: usize> crate::keras::ConfigValue for Borders<N> {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        match &self.0[..] {
            [pair] => pair.to_json(),
            _ => self.0.to_json(),
        }
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        let pairs = <[(usize, usize); N]>::from_json(value).map(Borders);
        let pairs = pairs.or_else(|_| <[usize; N]>::from_json(value).map(Borders::from));
        let one_pair = |wrong| match N {
            1 => <(usize, usize)>::from_json(value).map(|pair| Borders([pair; N])),
            _ => Err(wrong),
        };
        let pairs = pairs.or_else(one_pair);
        pairs.map_err(|_| format!("a number, or {N} numbers or pairs"))
    }
}
