//! [`Item`]: the types of a dataset's elements.

mod arrays;
mod padding;
mod scalar;
mod spec;
mod tensor;
mod tuples;

pub use padding::{PadTo, PaddedShapes};
pub use scalar::ItemScalar;
pub use spec::ItemSpec;
pub use tuples::same_rows;

use std::collections::VecDeque;

use super::codec::{Reader, Writer};
use crate::error::{Error, Result};

/// A type whose values are the elements of a [`Dataset`](super::Dataset).
///
/// - numbers, `bool`, `String`, `PathBuf`: an array without axes;
/// - `ndarray` arrays of these, `Vec` and `[_; N]` (one axis);
/// - tuples of elements;
/// - a struct of elements, by `#[derive(Item)]`;
/// - a [`Tensor`](crate::Tensor), which stays on its device.
///
/// All but tensors live on the host.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of a dataset",
    label = "no element of a dataset",
    note = "elements are numbers, texts, `ndarray` arrays of them, `Vec`s, tuples, tensors, and structs with `#[derive(Item)]`"
)]
pub trait Item: Clone + Send + Sync + 'static {
    /// The type of a batch of them: arrays with one more axis in front.
    type Batch: Item<Batch = Self::Batch, Padding = Self::Padding>;

    /// The padding after arrays that are shorter than the others of their batch: a value for each array. Default: 0, `false`
    /// or an empty text.
    type Padding: Clone + std::fmt::Debug + Default + Send + Sync + 'static;

    /// Whether a part of it is on a device. A separate thread could disturb the order of the program's calls, so the thread
    /// that requests such elements makes them.
    #[doc(hidden)]
    const ON_DEVICE: bool = false;

    /// The specification of every value of this type, as far as it is known.
    fn type_spec() -> ItemSpec;

    /// The types and shapes of this value.
    fn spec(&self) -> ItemSpec;

    /// Stacks elements of equal shapes along a new first axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes differ.
    fn stack(items: Vec<Self>) -> Result<Self::Batch>;

    /// Stacks elements along a new first axis, each padded with `padding` to the shapes of `to`.
    ///
    /// # Errors
    /// [`Error::Shape`] if an element does not fit.
    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &Self::Padding) -> Result<Self::Batch>;

    /// The number of rows along the first axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no axis, or if the arrays' first axes differ.
    fn rows(&self) -> Result<usize>;

    /// Row `at`, which must exist.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no axis.
    fn row(&self, at: usize) -> Result<Self::Batch>;

    /// Writes the value so that [`Item::read`] can restore it.
    ///
    /// # Errors
    /// [`Error::Device`] if a tensor cannot be read.
    fn write(&self, out: &mut Writer) -> Result<()>;

    /// Reads a value that [`Item::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are not such a value.
    fn read(from: &mut Reader<'_>) -> Result<Self>;
}

/// The values that a closure of a stage may return: an element, or the [`Result`] of making one.
pub trait IntoItem {
    /// The element's type.
    type Item: Item;

    /// The element.
    ///
    /// # Errors
    /// The error of making it.
    fn into_item(self) -> Result<Self::Item>;
}

impl<T: Item> IntoItem for T {
    type Item = T;

    fn into_item(self) -> Result<T> {
        Ok(self)
    }
}

impl<T: Item> IntoItem for Result<T, Error> {
    type Item = T;

    fn into_item(self) -> Result<T> {
        self
    }
}

/// Writes an element, or the error in its place.
pub(crate) fn write_result<T: Item>(item: &Result<T>, out: &mut Writer) -> Result<()> {
    out.flag(item.is_ok());
    match item {
        Ok(item) => item.write(out),
        Err(error) => {
            out.error(error);
            Ok(())
        }
    }
}

/// Reads the output of [`write_result`].
pub(crate) fn read_result<T: Item>(from: &mut Reader<'_>) -> Result<Result<T>> {
    match from.flag()? {
        true => Ok(Ok(T::read(from)?)),
        false => Ok(Err(from.error()?)),
    }
}

/// Writes elements after their number.
pub(crate) fn write_items<'a, T: Item>(
    items: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
    out: &mut Writer,
) -> Result<()> {
    let mut items = items.into_iter();
    out.number(items.len() as u64);
    items.try_for_each(|item| item.write(out))
}

/// Reads the output of [`write_items`].
pub(crate) fn read_items<T: Item, C: FromIterator<T>>(from: &mut Reader<'_>) -> Result<C> {
    (0..from.count(1)?).map(|_| T::read(from)).collect()
}

/// Writes elements and errors after their number.
pub(crate) fn write_results<T: Item>(items: &VecDeque<Result<T>>, out: &mut Writer) -> Result<()> {
    out.number(items.len() as u64);
    items.iter().try_for_each(|item| write_result(item, out))
}

/// Reads the output of [`write_results`].
pub(crate) fn read_results<T: Item>(from: &mut Reader<'_>) -> Result<VecDeque<Result<T>>> {
    (0..from.count(1)?).map(|_| read_result(from)).collect()
}
