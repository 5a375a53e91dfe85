//! The common code of image layers: the axes of an image, factors, draws for each example.

use crate::error::{Error, Result, message};
use crate::keras::DTypePolicy;
use crate::random::{Generator, UniformOptions};
use crate::tensor::Tensor;

/// The range of a random layer: a number `f` means the range from `-f` to `f`, an array means (lowest, highest).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    range: [f32; 2],
    /// Keras writes one number as one.
    alike: bool,
}

impl From<f32> for Factor {
    fn from(both: f32) -> Self {
        Factor { range: [-both.abs(), both.abs()], alike: true }
    }
}

impl From<[f32; 2]> for Factor {
    fn from(range: [f32; 2]) -> Self {
        Factor { range, alike: false }
    }
}

impl Factor {
    /// The range, which must be within `bounds`.
    pub(super) fn within(&self, layer: &str, option: &str, bounds: [f32; 2]) -> Result<[f32; 2]> {
        let (low, high) = (self.range[0].min(self.range[1]), self.range[0].max(self.range[1]));
        // The range of a single number is clipped to the bounds.
        let low = if self.alike { low.max(bounds[0]) } else { low };
        if low >= bounds[0] && high <= bounds[1] && low <= high {
            return Ok([low, high]);
        }
        Err(Error::Index(message!(
            "{layer}: the {option} is {low} to {high}; it must lie within {} to {}.",
            bounds[0],
            bounds[1]
        )))
    }
}

impl Factor {
    /// The range of a contrast below and above 1: one number for both, or two; each from 0 to 1.
    pub(super) fn both(&self, layer: &str) -> Result<[f32; 2]> {
        let both = if self.alike { [self.range[1]; 2] } else { self.range };
        if both.iter().all(|part| (0.0..=1.0).contains(part)) {
            return Ok(both);
        }
        Err(Error::Index(message!("{layer}: the factor is {both:?}; it must lie within 0 to 1.")))
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for Factor {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        if self.alike { self.range[1].to_json() } else { self.range.to_json() }
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        if value.is_array() {
            return <[f32; 2]>::from_json(value).map(Factor::from);
        }
        f32::from_json(value).map(Factor::from)
    }
}

/// Images as a batch `[N,H,W,C]` in the layer's dtype.
pub(super) struct Images {
    pub(super) batch: Tensor,
    /// Whether the batch is a single image that was passed without a batch axis.
    alone: bool,
}

impl Images {
    pub(super) fn new(layer: &str, x: &Tensor, policy: DTypePolicy) -> Result<Self> {
        let alone = x.rank() == 3;
        if !alone && x.rank() != 4 {
            return Err(Error::Shape(message!(
                "{layer}: the input is {:?}; it must be [N, H, W, C], or [H, W, C] for one image.",
                x.shape()
            )));
        }
        let x = x.cast(policy.compute_dtype())?;
        Ok(Images { batch: if alone { x.expand_dims(0)? } else { x }, alone })
    }

    /// The number of images, their height and their width.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let shape = self.batch.shape();
        [shape[0], shape[1], shape[2]]
    }

    /// Converts the result to the form of the input.
    pub(super) fn back(&self, y: Tensor) -> Result<Tensor> {
        let y = y.cast(self.batch.dtype())?;
        if self.alone { y.squeeze(0) } else { Ok(y) }
    }

    /// Draws a number in the range for each image, `[N,1,1,1]` in `f32`.
    pub(super) fn draw(&self, generator: &Generator, [low, high]: [f32; 2]) -> Result<Tensor> {
        let options = UniformOptions::new().minval(low).maxval(high);
        let shape = [self.sizes()[0], 1, 1, 1];
        self.batch.device().scope(|| generator.uniform_with(shape, options))
    }
}
