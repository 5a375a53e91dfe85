//! Arrays on the host as elements: scalars, `ndarray` arrays, `Vec`, `[_; N]`.

use ndarray::{Array, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, Slice, aview1};

use super::{Item, ItemScalar, ItemSpec, PadTo};
use crate::data::codec::{Reader, Writer};
use crate::error::{Error, Result, message};

/// An array of values in row-major order.
fn array<A>(shape: &[usize], values: Vec<A>) -> Result<ArrayD<A>> {
    ArrayD::from_shape_vec(IxDyn(shape), values)
        .map_err(|e| Error::Shape(message!("batch: an array of {shape:?}: {e}.")))
}

fn shapes_differ(at: usize, shape: &[usize], first: &[usize]) -> Error {
    Error::Shape(message!(
        "batch: element {at} of the batch is {shape:?}, and the first is {first:?}; a batch has elements of one shape. \
         Resize or pad them in a `map`, or use `padded_batch`."
    ))
}

fn no_axis(op: &str) -> Error {
    Error::Shape(message!(
        "{op}: the elements are scalars; they need a first axis, as batches have it."
    ))
}

fn write_values<'a, A: ItemScalar>(
    shape: &[usize],
    values: impl Iterator<Item = &'a A>,
    out: &mut Writer,
) {
    out.number(shape.len() as u64);
    shape.iter().for_each(|size| out.number(*size as u64));
    values.for_each(|value| value.write(out));
}

fn read_values<A: ItemScalar>(from: &mut Reader<'_>) -> Result<(Vec<usize>, Vec<A>)> {
    let rank = from.count(8)?;
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        let size = from.size()?;
        shape.push(size);
    }
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    let fits = |count: usize| count.checked_mul(A::BYTES).is_some_and(|n| n <= from.left());
    let count = count.filter(|count| fits(*count)).ok_or_else(|| {
        Error::Data(message!(
            "saved elements: an array of {shape:?} does not fit in the {} bytes that are left: it is truncated or \
             corrupt.",
            from.left()
        ))
    })?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(A::read(from)?);
    }
    Ok((shape, values))
}

/// Stacks arrays that are given as shapes and values.
fn stack<'a, A: ItemScalar>(
    items: impl ExactSizeIterator<Item = (&'a [usize], Vec<A>)>,
) -> Result<ArrayD<A>> {
    let count = items.len();
    let (mut shape, mut all): (Vec<usize>, Vec<A>) = (vec![0], Vec::new());
    for (at, (found, values)) in items.enumerate() {
        if at == 0 {
            shape = std::iter::once(count).chain(found.iter().copied()).collect();
            all.reserve_exact(values.len().saturating_mul(count));
        }
        if found != &shape[1..] {
            return Err(shapes_differ(at, found, &shape[1..]));
        }
        all.extend(values);
    }
    array(&shape, all)
}

/// Stacks arrays, each padded with `padding`.
fn pad<A: ItemScalar>(
    items: Vec<ArrayViewD<'_, A>>,
    to: &mut PadTo<'_>,
    padding: &A,
) -> Result<ArrayD<A>> {
    let shapes: Vec<&[usize]> = items.iter().map(|item| item.shape()).collect();
    let mut shape = to.shape(&shapes)?;
    shape.insert(0, items.len());
    let size = shape.iter().try_fold(1usize, |size, axis| size.checked_mul(*axis));
    let mut values = Vec::new();
    if size.is_none_or(|size| values.try_reserve_exact(size).is_err()) {
        return Err(Error::Shape(message!(
            "padded_batch: a batch of {shape:?} does not fit in memory."
        )));
    }
    values.resize(size.unwrap_or(0), padding.clone());
    let mut batch = array(&shape, values)?;
    for (mut row, item) in batch.outer_iter_mut().zip(items) {
        let mut room = row.slice_each_axis_mut(|axis| Slice::from(..item.len_of(axis.axis)));
        room.assign(&item);
    }
    Ok(batch)
}

impl<A: ItemScalar> Item for A {
    type Batch = ArrayD<A>;
    type Padding = A;

    fn type_spec() -> ItemSpec {
        ItemSpec::array(A::NAME, &[])
    }

    fn spec(&self) -> ItemSpec {
        Self::type_spec()
    }

    fn stack(items: Vec<Self>) -> Result<ArrayD<A>> {
        array(&[items.len()], items)
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, _: &A) -> Result<ArrayD<A>> {
        to.shape(&[&[]])?;
        Self::stack(items)
    }

    fn rows(&self) -> Result<usize> {
        Err(no_axis("unbatch"))
    }

    fn row(&self, _: usize) -> Result<ArrayD<A>> {
        Err(no_axis("unbatch"))
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        ItemScalar::write(self, out);
        Ok(())
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        ItemScalar::read(from)
    }
}

impl<A: ItemScalar, D: Dimension + 'static> Item for Array<A, D> {
    type Batch = ArrayD<A>;
    type Padding = A;

    fn type_spec() -> ItemSpec {
        ItemSpec::Array { dtype: A::NAME, shape: D::NDIM.map(|rank| vec![None; rank]) }
    }

    fn spec(&self) -> ItemSpec {
        ItemSpec::array(A::NAME, self.shape())
    }

    fn stack(items: Vec<Self>) -> Result<ArrayD<A>> {
        let count = items.len();
        let Some(first) = items.first() else { return array(&[0], Vec::new()) };
        let rows = first.shape().to_vec();
        let mut all = Vec::with_capacity(first.len().saturating_mul(count));
        for (at, item) in items.into_iter().enumerate() {
            if item.shape() != rows {
                return Err(shapes_differ(at, item.shape(), &rows));
            }
            match item.as_slice() {
                Some(values) => all.extend_from_slice(values),
                None => all.extend(item.iter().cloned()),
            }
        }
        let shape: Vec<usize> = std::iter::once(count).chain(rows).collect();
        array(&shape, all)
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &A) -> Result<ArrayD<A>> {
        pad(items.iter().map(|item| item.view().into_dyn()).collect(), to, padding)
    }

    fn rows(&self) -> Result<usize> {
        self.shape().first().copied().ok_or_else(|| no_axis("unbatch"))
    }

    fn row(&self, at: usize) -> Result<ArrayD<A>> {
        match self.ndim() {
            0 => Err(no_axis("unbatch")),
            _ => Ok(self.view().into_dyn().index_axis(Axis(0), at).to_owned()),
        }
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        write_values(self.shape(), self.iter(), out);
        Ok(())
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (shape, values) = read_values(from)?;
        array(&shape, values)?.into_dimensionality().map_err(|e| {
            Error::Data(message!(
                "saved elements: an array of {shape:?} is not what the dataset has: {e}."
            ))
        })
    }
}

impl<A: ItemScalar> Item for Vec<A> {
    type Batch = ArrayD<A>;
    type Padding = A;

    fn type_spec() -> ItemSpec {
        ItemSpec::Array { dtype: A::NAME, shape: Some(vec![None]) }
    }

    fn spec(&self) -> ItemSpec {
        ItemSpec::array(A::NAME, &[self.len()])
    }

    fn stack(items: Vec<Self>) -> Result<ArrayD<A>> {
        let lengths: Vec<[usize; 1]> = items.iter().map(|item| [item.len()]).collect();
        stack(lengths.iter().map(|length| &length[..]).zip(items))
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &A) -> Result<ArrayD<A>> {
        pad(items.iter().map(|item| aview1(item).into_dyn()).collect(), to, padding)
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn row(&self, at: usize) -> Result<ArrayD<A>> {
        array(&[], vec![self[at].clone()])
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        write_values(&[self.len()], self.iter(), out);
        Ok(())
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(read_values(from)?.1)
    }
}

impl<A: ItemScalar, const N: usize> Item for [A; N] {
    type Batch = ArrayD<A>;
    type Padding = A;

    fn type_spec() -> ItemSpec {
        ItemSpec::array(A::NAME, &[N])
    }

    fn spec(&self) -> ItemSpec {
        Self::type_spec()
    }

    fn stack(items: Vec<Self>) -> Result<ArrayD<A>> {
        array(&[items.len(), N], items.into_iter().flatten().collect())
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &A) -> Result<ArrayD<A>> {
        pad(items.iter().map(|item| aview1(item).into_dyn()).collect(), to, padding)
    }

    fn rows(&self) -> Result<usize> {
        Ok(N)
    }

    fn row(&self, at: usize) -> Result<ArrayD<A>> {
        array(&[], vec![self[at].clone()])
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        write_values(&[N], self.iter(), out);
        Ok(())
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (_, values) = read_values(from)?;
        <[A; N]>::try_from(values).map_err(|values: Vec<A>| {
            Error::Data(message!(
                "saved elements: {} values, and the dataset has {N}.",
                values.len()
            ))
        })
    }
}
