//! The options of uniform and normal numbers.

use crate::error::Result;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The range of uniform numbers.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct UniformOptions {
        /// The smallest number; default: 0.
        minval: f32 = 0.0,
        /// The upper end, which a draw reaches only by rounding, and only if the range is not 0 to 1;
        /// default: 1.
        maxval: f32 = 1.0,
    }
}

options! {
    /// The mean and standard deviation of normal numbers.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct NormalOptions {
        /// The mean; default: 0.
        mean: f32 = 0.0,
        /// The standard deviation, before truncation; default: 1.
        stddev: f32 = 1.0,
    }
}

impl UniformOptions {
    pub(super) fn apply(self, unit: Tensor) -> Result<Tensor> {
        let UniformOptions { minval, maxval } = self;
        if (minval, maxval) == (0.0, 1.0) {
            return Ok(unit);
        }
        unit.multiply(maxval - minval)?.add(minval)
    }
}

impl NormalOptions {
    pub(super) fn apply(self, unit: Tensor) -> Result<Tensor> {
        let NormalOptions { mean, stddev } = self;
        if (mean, stddev) == (0.0, 1.0) {
            return Ok(unit);
        }
        unit.multiply(stddev)?.add(mean)
    }
}
