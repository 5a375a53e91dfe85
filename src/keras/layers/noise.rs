//! The common checks of layers that drop elements, and the shape of their draws.

use crate::dtype::f32_text;
use crate::error::{Error, Result, message};
use crate::random::DropoutOptions;
use crate::tensor::Tensor;

/// The shape of a dropout mask: along an axis of size 1, elements are dropped together; a size of `None` is the input's
/// size. Convert it from arrays and lists of sizes, or of `Option`s of sizes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NoiseShape(Option<Vec<Option<usize>>>);

impl NoiseShape {
    /// The options of a draw for `x`, which refuses sizes that do not fit.
    pub(super) fn options(&self, x: &Tensor) -> DropoutOptions {
        let sizes = self.0.as_ref().map(|sizes| {
            let own = x.shape().iter().copied().chain(std::iter::repeat(1));
            sizes.iter().zip(own).map(|(size, own)| size.unwrap_or(own)).collect()
        });
        DropoutOptions::new().noise_shape(sizes)
    }
}

impl<const N: usize> From<[usize; N]> for NoiseShape {
    fn from(sizes: [usize; N]) -> Self {
        NoiseShape(Some(sizes.into_iter().map(Some).collect()))
    }
}

impl<const N: usize> From<[Option<usize>; N]> for NoiseShape {
    fn from(sizes: [Option<usize>; N]) -> Self {
        NoiseShape(Some(sizes.into()))
    }
}

impl From<Vec<Option<usize>>> for NoiseShape {
    fn from(sizes: Vec<Option<usize>>) -> Self {
        NoiseShape(Some(sizes))
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for NoiseShape {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        self.0.to_json()
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        Option::from_json(value).map(NoiseShape)
    }
}

/// Refuses a rate outside 0 to 1, or of 1.
pub(super) fn check_rate(layer: &str, rate: f32) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::Index(message!(
        "{layer}: the rate is {}; it must be at least 0 and below 1.",
        f32_text(rate)
    )))
}
