//! Versions of the ops in `counted.rs` that block until the device has counted. They exist only on native targets.

use pollster::block_on;

use super::BincountOptions;
use super::inventory::{Entry, Gradient, OpKind, one};
use super::{FLOATS, NUMERIC};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Axis;
use crate::tensor::Tensor;

impl Tensor {
    /// As [`Tensor::where_indices_async`]; blocks until the device has counted.
    ///
    /// # Errors
    /// As [`Tensor::where_indices_async`].
    pub fn where_indices(&self) -> Result<Tensor> {
        block_on(self.where_indices_async())
    }

    /// As [`Tensor::boolean_mask_async`]; blocks until the device has counted.
    ///
    /// # Errors
    /// As [`Tensor::boolean_mask_async`].
    pub fn boolean_mask(&self, mask: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        block_on(self.boolean_mask_async(mask, axis))
    }

    /// As [`Tensor::unique_async`]; blocks until the device has counted.
    ///
    /// # Errors
    /// As [`Tensor::unique_async`].
    pub fn unique(&self) -> Result<(Tensor, Tensor)> {
        block_on(self.unique_async())
    }

    /// As [`Tensor::unique_with_counts_async`]; blocks until the device has counted.
    ///
    /// # Errors
    /// As [`Tensor::unique_with_counts_async`].
    pub fn unique_with_counts(&self) -> Result<(Tensor, Tensor, Tensor)> {
        block_on(self.unique_with_counts_async())
    }

    /// As [`Tensor::bincount_async`]; blocks until the device has found the largest number.
    ///
    /// # Errors
    /// As [`Tensor::bincount_async`].
    pub fn bincount(&self, options: BincountOptions) -> Result<Tensor> {
        block_on(self.bincount_async(options))
    }

    /// As [`Tensor::segment_sum_async`]; blocks until the ids are there.
    ///
    /// # Errors
    /// As [`Tensor::segment_sum_async`].
    pub fn segment_sum(&self, ids: &Tensor) -> Result<Tensor> {
        block_on(self.segment_sum_async(ids))
    }

    /// As [`Tensor::segment_mean_async`]; blocks until the ids are there.
    ///
    /// # Errors
    /// As [`Tensor::segment_mean_async`].
    pub fn segment_mean(&self, ids: &Tensor) -> Result<Tensor> {
        block_on(self.segment_mean_async(ids))
    }

    /// As [`Tensor::segment_prod_async`]; blocks until the ids are there.
    ///
    /// # Errors
    /// As [`Tensor::segment_prod_async`].
    pub fn segment_prod(&self, ids: &Tensor) -> Result<Tensor> {
        block_on(self.segment_prod_async(ids))
    }

    /// As [`Tensor::segment_max_async`]; blocks until the ids are there.
    ///
    /// # Errors
    /// As [`Tensor::segment_max_async`].
    pub fn segment_max(&self, ids: &Tensor) -> Result<Tensor> {
        block_on(self.segment_max_async(ids))
    }

    /// As [`Tensor::segment_min_async`]; blocks until the ids are there.
    ///
    /// # Errors
    /// As [`Tensor::segment_min_async`].
    pub fn segment_min(&self, ids: &Tensor) -> Result<Tensor> {
        block_on(self.segment_min_async(ids))
    }
}

/// No call of these can be planned without a device, so a separate test checks their gradients.
const CHECKED: Gradient = Gradient::CheckedBy("sizes_from_the_device_have_gradients");

/// The dtypes of elements that are only moved.
const MOVED: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool];

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "where_indices", &[], |c| one(c.arg("cond")?.where_indices()))
        .takes(MOVED)
        .gradient(Gradient::None("Where: an index")),
    Entry::new(OpKind::Composed, "boolean_mask", &["tf.boolean_mask"], |c| {
        one(c.x()?.boolean_mask(c.arg("mask")?, c.axis()?))
    })
    .takes(MOVED)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "unique", &["tf.unique"], |c| {
        let (y, idx) = c.x()?.unique()?;
        Ok(vec![y, idx])
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "unique_with_counts", &["tf.unique_with_counts"], |c| {
        let (y, idx, counts) = c.x()?.unique_with_counts()?;
        Ok(vec![y, idx, counts])
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "bincount", &["tf.math.bincount"], |c| {
        let options = BincountOptions::new()
            .minlength(c.int("minlength")?.unwrap_or(0) as usize)
            .maxlength(c.int("maxlength")?.map(|n| n as usize))
            .weights(c.arg("weights").ok().cloned());
        one(c.x()?.bincount(options))
    })
    .takes(&[DType::I32])
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "segment_sum", &["tf.math.segment_sum"], |c| {
        one(c.x()?.segment_sum(c.arg("ids")?))
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "segment_mean", &["tf.math.segment_mean"], |c| {
        one(c.x()?.segment_mean(c.arg("ids")?))
    })
    .takes(FLOATS)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "segment_prod", &["tf.math.segment_prod"], |c| {
        one(c.x()?.segment_prod(c.arg("ids")?))
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "segment_max", &["tf.math.segment_max"], |c| {
        one(c.x()?.segment_max(c.arg("ids")?))
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
    Entry::new(OpKind::Composed, "segment_min", &["tf.math.segment_min"], |c| {
        one(c.x()?.segment_min(c.arg("ids")?))
    })
    .takes(NUMERIC)
    .gradient(CHECKED),
];
