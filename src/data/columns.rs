//! [`Column`]: an array whose first axis counts examples, on the host or on a device.

use std::borrow::Cow;

use ndarray::{ArrayBase, Data, Dimension, OwnedRepr, ViewRepr};

use super::images::Images;
use crate::error::{Error, Result, message};
use crate::tensor::{HostElement, HostOptions, Nested, Tensor};

/// One input, target or weight of all examples.
pub struct Column<'a> {
    shape: Vec<usize>,
    rows: Rows<'a>,
}

impl std::fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column").field("shape", &self.shape).finish_non_exhaustive()
    }
}

enum Rows<'a> {
    Device(Tensor),
    Host(Box<dyn HostRows + 'a>),
}

/// Values on the host, the same number for each example.
trait HostRows {
    /// The rows at the indices `places`, which must exist, as a tensor of `shape`.
    fn take(&self, places: &[usize], shape: &[usize]) -> Result<Tensor>;

    /// The smallest and the largest value except `ignored`.
    fn range(&self, ignored: Option<f64>) -> Option<(f64, f64)>;

    /// All values in row-major order.
    fn to_f64(&self) -> Vec<f64>;
}

impl<'a> Column<'a> {
    fn new(shape: &[usize], rows: Rows<'a>) -> Result<Self> {
        if shape.is_empty() {
            return Err(Error::Shape(
                "the data have a scalar; the first axis of each array must count the examples."
                    .into(),
            ));
        }
        Ok(Column { shape: shape.to_vec(), rows })
    }

    fn host<T: HostElement>(values: Cow<'a, [T]>, shape: &[usize]) -> Result<Self> {
        Column::new(shape, Rows::Host(Box::new(Flat { values })))
    }

    /// The number of examples.
    pub(crate) fn len(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// The shape, including the axis of examples.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The examples at the indices `places`, which must exist.
    pub(crate) fn rows(&self, places: &[usize]) -> Result<Tensor> {
        let mut shape = self.shape.clone();
        shape[0] = places.len();
        match &self.rows {
            Rows::Host(rows) => rows.take(places, &shape),
            // The indices are uploaded as a tensor: a slice would make a plan for each index.
            Rows::Device(tensor) => {
                let index = |place: &usize| i32::try_from(*place).unwrap_or(i32::MAX);
                let places: Vec<i32> = places.iter().map(index).collect();
                tensor.gather(&Tensor::from_slice(&places, [places.len()])?, 0)
            }
        }
    }

    /// The smallest and the largest value except `ignored`, if the values are on the host.
    pub(crate) fn range(&self, ignored: Option<i32>) -> Option<(f64, f64)> {
        match &self.rows {
            Rows::Host(rows) => rows.range(ignored.map(f64::from)),
            Rows::Device(_) => None,
        }
    }

    /// All values in row-major order, if they are on the host.
    pub(crate) fn host_values(&self) -> Option<Vec<f64>> {
        match &self.rows {
            Rows::Host(rows) => Some(rows.to_f64()),
            Rows::Device(_) => None,
        }
    }

    /// The tensor, if the values are on a device.
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match &self.rows {
            Rows::Host(_) => None,
            Rows::Device(tensor) => Some(tensor),
        }
    }

    /// The pixels of images, `[N,28,28,1]` in 0 to 1, and their labels.
    pub(super) fn of_images(images: &'a Images) -> Result<[Self; 2]> {
        let pixels = Rows::Host(Box::new(Pixels(&images.pixels)));
        let labels: Vec<i32> = images.labels.iter().map(|&label| label.into()).collect();
        let count = images.len().min(images.pixels.len() / 784);
        let labels = Column::host(labels.into(), &[images.len()])?;
        Ok([Column::new(&[count, 28, 28, 1], pixels)?, labels])
    }
}

/// Values in row-major order.
struct Flat<'a, T: HostElement> {
    values: Cow<'a, [T]>,
}

impl<T: HostElement> HostRows for Flat<'_, T> {
    fn take(&self, places: &[usize], shape: &[usize]) -> Result<Tensor> {
        // As Keras, which converts `f64` to `f32`.
        let options = HostOptions::new().rounding(true);
        let width: usize = shape[1..].iter().product();
        let first = places.first().copied().unwrap_or(0);
        if places.iter().enumerate().all(|(i, place)| *place == first + i) {
            let rows = &self.values[first * width..(first + places.len()) * width];
            return Tensor::from_slice_with(rows, shape, options);
        }
        let mut rows = Vec::with_capacity(places.len() * width);
        for place in places {
            rows.extend_from_slice(&self.values[place * width..(place + 1) * width]);
        }
        Tensor::from_slice_with(&rows, shape, options)
    }

    fn range(&self, ignored: Option<f64>) -> Option<(f64, f64)> {
        use crate::tensor::Element;
        let bytes = T::store_exactly(&self.values, true).ok()?;
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            bounds(values.filter(|value| ignored != Some(*value)))
        };
        match T::NAME {
            "f32" | "f64" => bounds(&mut f32::load(&bytes).into_iter().map(f64::from)),
            "i32" | "i64" => bounds(&mut i32::load(&bytes).into_iter().map(f64::from)),
            "u32" | "u64" => bounds(&mut u32::load(&bytes).into_iter().map(f64::from)),
            "u8" => bounds(&mut u8::load(&bytes).into_iter().map(f64::from)),
            _ => None,
        }
    }

    fn to_f64(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.to_f64()).collect()
    }
}

/// The smallest and the largest number; NaN counts as both.
fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let nan_or = |a: f64, b: f64, pick: fn(f64, f64) -> f64| match a.is_nan() || b.is_nan() {
        true => f64::NAN,
        false => pick(a, b),
    };
    values.fold(None, |found, value| {
        let (low, high) = found.unwrap_or((value, value));
        Some((nan_or(low, value, f64::min), nan_or(high, value, f64::max)))
    })
}

/// Grey values of images of 28 by 28 pixels.
struct Pixels<'a>(&'a [u8]);

impl HostRows for Pixels<'_> {
    fn take(&self, places: &[usize], shape: &[usize]) -> Result<Tensor> {
        let mut rows = Vec::with_capacity(places.len() * 784);
        for place in places {
            let image = &self.0[place * 784..(place + 1) * 784];
            rows.extend(image.iter().map(|&p| f32::from(p) / 255.0));
        }
        Tensor::from_slice(&rows, shape)
    }

    fn range(&self, _ignored: Option<f64>) -> Option<(f64, f64)> {
        None
    }

    fn to_f64(&self) -> Vec<f64> {
        self.0.iter().map(|&p| f64::from(f32::from(p) / 255.0)).collect()
    }
}

/// One or several arrays: tensors, `ndarray` arrays, nested arrays, slices and vectors, and tuples of these.
///
/// [`fit`](crate::keras::Model::fit) borrows arrays passed by reference, and uploads one batch at a time to the device.
pub trait IntoColumns<'a> {
    /// The arrays, in order.
    ///
    /// # Errors
    /// [`Error::Shape`] if an array has no axis, or its rows have different lengths.
    fn into_columns(self) -> Result<Vec<Column<'a>>>;
}

fn of_tensor<'a>(tensor: &Tensor) -> Result<Column<'a>> {
    Column::new(tensor.shape(), Rows::Device(tensor.clone()))
}

impl<'a> IntoColumns<'a> for Column<'a> {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        Ok(vec![self])
    }
}

impl<'a> IntoColumns<'a> for Tensor {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        Ok(vec![of_tensor(&self)?])
    }
}

impl<'a> IntoColumns<'a> for &Tensor {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        Ok(vec![of_tensor(self)?])
    }
}

impl<'a, const N: usize> IntoColumns<'a> for [Tensor; N] {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        self.iter().map(of_tensor).collect()
    }
}

impl<'a, const N: usize> IntoColumns<'a> for [&Tensor; N] {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        self.into_iter().map(of_tensor).collect()
    }
}

impl<'a> IntoColumns<'a> for Vec<Tensor> {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        self.iter().map(of_tensor).collect()
    }
}

impl<'a, S, D, T> IntoColumns<'a> for &'a ArrayBase<S, D>
where
    S: Data<Elem = T>,
    D: Dimension,
    T: HostElement,
{
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        let values = match self.as_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.iter().copied().collect()),
        };
        Ok(vec![Column::host(values, self.shape())?])
    }
}

impl<'a, D: Dimension, T: HostElement> IntoColumns<'a> for ArrayBase<OwnedRepr<T>, D> {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        let values: Vec<T> = self.iter().copied().collect();
        Ok(vec![Column::host(values.into(), self.shape())?])
    }
}

impl<'a, D: Dimension, T: HostElement> IntoColumns<'a> for ArrayBase<ViewRepr<&'a T>, D> {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        let shape = self.shape().to_vec();
        let values = match self.to_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.iter().copied().collect()),
        };
        Ok(vec![Column::host(values, &shape)?])
    }
}

impl<'a, N: Nested> IntoColumns<'a> for N {
    fn into_columns(self) -> Result<Vec<Column<'a>>> {
        let (mut shape, mut values) = (Vec::new(), Vec::new());
        self.shape(&mut shape);
        self.flatten(&shape, &mut values)?;
        Ok(vec![Column::host(values.into(), &shape)?])
    }
}

macro_rules! tuples {
    ($(($($item:ident),+))*) => {$(
        impl<'a, $($item: IntoColumns<'a>),+> IntoColumns<'a> for ($($item,)+) {
            #[allow(non_snake_case)]
            fn into_columns(self) -> Result<Vec<Column<'a>>> {
                let ($($item,)+) = self;
                let mut columns = Vec::new();
                $(columns.extend($item.into_columns()?);)+
                Ok(columns)
            }
        }
    )*};
}
// A tuple has the arrays of its items.
tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));

/// The error for arrays that differ in their numbers of examples.
pub(super) fn lengths_differ(names: &[(&str, &Column<'_>)]) -> Error {
    let shapes: Vec<String> =
        names.iter().map(|(name, column)| format!("{name} is {:?}", column.shape())).collect();
    Error::Shape(message!(
        "the arrays differ in length: {}; their first axes count the examples and must be equal.",
        shapes.join(", ")
    ))
}
