//! `to_tensors`: the upload, the last stage of a pipeline.

use ndarray::{Array, Dimension};

use crate::data::AUTOTUNE;
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemScalar, ItemSpec};
use crate::data::stages::stage::{Input, Stage};
use crate::error::Result;
use crate::tensor::{HostElement, HostOptions, Tensor};

/// The types that [`Dataset::to_tensors`] converts to tensors: arrays of types that a device supports, and tuples of them.
///
/// `i64`, `u64` and `f64` become `i32`, `u32` and `f32`: an integer that does not fit is an error, a float is rounded.
pub trait ToTensors: Item {
    /// A tensor, or a tuple of tensors.
    type Tensors: Item;

    /// Uploads the values to the current device.
    ///
    /// # Errors
    /// As [`Tensor::from_slice_with`].
    fn to_tensors(&self) -> Result<Self::Tensors>;
}

impl<A: ItemScalar + HostElement, D: Dimension + 'static> ToTensors for Array<A, D> {
    type Tensors = Tensor;

    fn to_tensors(&self) -> Result<Tensor> {
        Tensor::from_array_with(self, HostOptions::new().rounding(true))
    }
}

impl ToTensors for Tensor {
    type Tensors = Tensor;

    fn to_tensors(&self) -> Result<Tensor> {
        Ok(self.clone())
    }
}

macro_rules! tuples {
    ($(($($item:ident $at:tt),+))*) => {$(
        impl<$($item: ToTensors),+> ToTensors for ($($item,)+) {
            type Tensors = ($($item::Tensors,)+);

            fn to_tensors(&self) -> Result<Self::Tensors> {
                Ok(($(self.$at.to_tensors()?,)+))
            }
        }
    )*};
}
// Each part of a tuple is converted to tensors.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));

impl<T: ToTensors> Dataset<T> {
    /// Converts the arrays of each element to tensors on the current device.
    ///
    /// The stages before this one run ahead in a thread, as with `prefetch(AUTOTUNE)`; the upload continues while the
    /// device computes. A `map` after it is computed on the device: pixels are uploaded as bytes and converted to floats
    /// there.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{DType, Tensor, data::Dataset};
    /// let images = wgrad::ndarray::Array4::<u8>::from_elem((60, 28, 28, 1), 51);
    /// let labels = vec![7u8; 60];
    /// let dataset = Dataset::from_tensor_slices((images, labels))?
    ///     .batch(20)
    ///     .to_tensors()
    ///     .map(|(image, label): (Tensor, Tensor)| Ok((image.cast(DType::F32)? / 255.0, label)));
    /// let (images, _) = dataset.iter().next().expect("three batches")?;
    /// assert_eq!((images.shape(), images.to_vec::<f32>()?[0]), (&[20, 28, 28, 1][..], 0.2));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn to_tensors(&self) -> Dataset<T::Tensors> {
        self.prefetch(AUTOTUNE).stage(Upload)
    }
}

#[derive(Clone)]
struct Upload;

impl<T: ToTensors> Stage<T> for Upload {
    type Out = T::Tensors;

    fn name(&self) -> &'static str {
        "to_tensors"
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T::Tensors>> {
        Some(input.next()?.and_then(|item| item.to_tensors()))
    }
}
