//! [`HostInputs`]: what a model with a front is called on, and the data that it is trained on.

use crate::data::{Batch, Dataset, IntoColumns, IntoTensors, Item, ModelData};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::keras::layers::{HostInput, Table};
use crate::tensor::Tensor;

/// The inputs of a [`FrontModel`](super::FrontModel): strings or numbers for a model with one input, a tuple of them for one with
/// several, in the order of [`input_names`](super::FrontModel::input_names), or a [`Table`], whose columns have the names of the
/// inputs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the inputs of a model with layers for strings",
    note = "pass a list or an array, a tuple of lists and arrays, or a `Table`"
)]
pub trait HostInputs {
    /// The array of each input.
    ///
    /// # Errors
    /// [`Error::Data`] if there are more or fewer than `names`, or a column is missing.
    fn host_arrays(&self, names: &[&str]) -> Result<Vec<HostArray<'_>>>;
}

fn counted(given: usize, names: &[&str]) -> Result<()> {
    match given == names.len() {
        true => Ok(()),
        false => Err(Error::Data(message!(
            "FrontModel: the model has {} inputs, {}; it was called with {given}. Pass a tuple in this order, or a Table.",
            names.len(),
            names.join(", ")
        ))),
    }
}

impl<X: HostInput + ?Sized> HostInputs for X {
    fn host_arrays(&self, names: &[&str]) -> Result<Vec<HostArray<'_>>> {
        counted(1, names)?;
        Ok(vec![self.host_array()])
    }
}

impl HostInputs for Table {
    fn host_arrays(&self, names: &[&str]) -> Result<Vec<HostArray<'_>>> {
        let column = |name: &&str| {
            self.get(name).map(HostArray::view).ok_or_else(|| {
                Error::Data(message!(
                    "FrontModel: the table has no column '{name}'; it has {}.",
                    self.names().collect::<Vec<_>>().join(", ")
                ))
            })
        };
        names.iter().map(column).collect()
    }
}

impl HostInputs for &Table {
    fn host_arrays(&self, names: &[&str]) -> Result<Vec<HostArray<'_>>> {
        (**self).host_arrays(names)
    }
}

macro_rules! tuples {
    ($($count:literal: $($item:ident)+;)*) => {$(
        impl<$($item: HostInput),+> HostInputs for ($($item,)+) {
            #[allow(non_snake_case)]
            fn host_arrays(&self, names: &[&str]) -> Result<Vec<HostArray<'_>>> {
                counted($count, names)?;
                let ($($item,)+) = self;
                Ok(vec![$($item.host_array()),+])
            }
        }
    )*};
}
tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
}

/// Makes the tensors of a model's inputs.
pub trait Prepare {
    #[doc(hidden)]
    fn prepare(&self, x: &dyn HostInputs) -> Result<Vec<Tensor>>;
}

/// The data for training and evaluating a [`FrontModel`](super::FrontModel): `(x, y)` or `(x, y, sample_weight)`. With arrays, all of
/// `x` goes through the front before the first step; with a [`Dataset`] of batches, each batch does when it is needed.
pub trait IntoFrontData<'a> {
    #[doc(hidden)]
    fn into_front_data(self, front: &'a dyn Prepare) -> Result<ModelData<'a>>;
}

impl<'a, X: HostInputs, Y: IntoColumns<'a>> IntoFrontData<'a> for (X, Y) {
    fn into_front_data(self, front: &'a dyn Prepare) -> Result<ModelData<'a>> {
        ModelData::arrays(
            front.prepare(&self.0)?.into_columns()?,
            self.1.into_columns()?,
            Vec::new(),
        )
    }
}

impl<'a, X: HostInputs, Y: IntoColumns<'a>, W: IntoColumns<'a>> IntoFrontData<'a> for (X, Y, W) {
    fn into_front_data(self, front: &'a dyn Prepare) -> Result<ModelData<'a>> {
        let x = front.prepare(&self.0)?.into_columns()?;
        ModelData::arrays(x, self.1.into_columns()?, self.2.into_columns()?)
    }
}

/// A batch of a dataset for a [`FrontModel`](super::FrontModel): `(x, y)` or `(x, y, sample_weight)`.
pub trait FrontBatch {
    #[doc(hidden)]
    fn into_batch_with(self, front: &dyn Prepare) -> Result<Batch>;
}

impl<X: HostInputs, Y: IntoTensors> FrontBatch for (X, Y) {
    fn into_batch_with(self, front: &dyn Prepare) -> Result<Batch> {
        Ok(Batch {
            x: front.prepare(&self.0)?,
            y: self.1.into_tensors()?,
            sample_weight: Vec::new(),
        })
    }
}

impl<X: HostInputs, Y: IntoTensors, W: IntoTensors> FrontBatch for (X, Y, W) {
    fn into_batch_with(self, front: &dyn Prepare) -> Result<Batch> {
        Ok(Batch {
            x: front.prepare(&self.0)?,
            y: self.1.into_tensors()?,
            sample_weight: self.2.into_tensors()?,
        })
    }
}

impl<'a, T: Item + FrontBatch> IntoFrontData<'a> for Dataset<T> {
    fn into_front_data(self, front: &'a dyn Prepare) -> Result<ModelData<'a>> {
        (&self).into_front_data(front)
    }
}

impl<'a, T: Item + FrontBatch> IntoFrontData<'a> for &Dataset<T> {
    fn into_front_data(self, front: &'a dyn Prepare) -> Result<ModelData<'a>> {
        ModelData::of_prepared(self, move |item: T| item.into_batch_with(front))
    }
}
