//! Versions of the ops in `counted.rs` that block until the device has counted. They exist only on native targets.

use pollster::block_on;

use super::BincountOptions;
use super::inventory::{Entry, Gradient, OpKind, one};
use super::{FLOATS, NUMERIC};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Axis;
use crate::tensor::Tensor;

macro_rules! blocking {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $twin:ident, until $done:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("As [`Tensor::", stringify!($twin), "`]; blocks until ", $done, ".")]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($twin), "`].")]
            pub fn $name(&self, $($argument: $type),*) -> $result {
                block_on(self.$twin($($argument),*))
            }
        )*}
    };
}

// The first becomes `pub fn where_indices(&self) -> Result<Tensor>`.
blocking! {
    where_indices() -> Result<Tensor> = where_indices_async, until "the device has counted";
    boolean_mask(mask: &Tensor, axis: impl Into<Axis>) -> Result<Tensor>
        = boolean_mask_async, until "the device has counted";
    unique() -> Result<(Tensor, Tensor)> = unique_async, until "the device has counted";
    unique_with_counts() -> Result<(Tensor, Tensor, Tensor)>
        = unique_with_counts_async, until "the device has counted";
    bincount(options: BincountOptions) -> Result<Tensor>
        = bincount_async, until "the device has found the largest number";
    segment_sum(ids: &Tensor) -> Result<Tensor> = segment_sum_async, until "the ids are there";
    segment_mean(ids: &Tensor) -> Result<Tensor> = segment_mean_async, until "the ids are there";
    segment_prod(ids: &Tensor) -> Result<Tensor> = segment_prod_async, until "the ids are there";
    segment_max(ids: &Tensor) -> Result<Tensor> = segment_max_async, until "the ids are there";
    segment_min(ids: &Tensor) -> Result<Tensor> = segment_min_async, until "the ids are there";
}

/// No call of these can be planned without a device, so a separate test checks their gradients.
const CHECKED: Gradient = Gradient::CheckedBy("sizes_from_the_device_have_gradients");

/// The dtypes of elements that are only moved.
const MOVED: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool];

macro_rules! segment {
    ($name:literal, $method:ident, $dtypes:expr) => {
        Entry::new(OpKind::Composed, $name, &[concat!("tf.math.", $name)], |c| {
            one(c.x()?.$method(c.arg("ids")?))
        })
        .takes($dtypes)
        .gradient(CHECKED)
    };
}

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
    segment!("segment_sum", segment_sum, NUMERIC),
    segment!("segment_mean", segment_mean, FLOATS),
    segment!("segment_prod", segment_prod, NUMERIC),
    segment!("segment_max", segment_max, NUMERIC),
    segment!("segment_min", segment_min, NUMERIC),
];
