//! [`TensorArray`]: a list of tensors that loops write and read by index.

use std::borrow::Borrow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::nest::{Nest, Signature};
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::ops::{concat, stack, where_};
use crate::shape::Shape;
use crate::tensor::{Tensor, constant, range};

/// A list of tensors of one dtype, which loops write and read by index; TensorFlow's `tf.TensorArray`. Gradients pass through all
/// methods. A method that changes the array takes it and returns it.
///
/// In the trace of a function, an array with an [`element_shape`](TensorArray::element_shape) can be a variable of
/// [`while_loop`](crate::while_loop), and its indices can be tensors.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let mut array = tf::TensorArray::new(tf::DType::F32, 3);
/// for i in 0..3 {
///     array = array.write(i, tf::constant(i as f32)?)?;
/// }
/// assert_eq!(array.stack()?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
///
/// // The first powers of 2: how many, the device decides.
/// let powers = tf::function(|n: tf::Tensor| {
///     let empty = tf::TensorArray::new(tf::DType::F32, 5).element_shape([]);
///     let (_, _, array) = tf::while_loop(
///         |(i, _, _)| i.less(&n),
///         |(i, power, array)| Ok((i.add(1)?, power.multiply(2.0)?, array.write(&i, power)?)),
///         (tf::constant(0)?, tf::constant(1.0)?, empty),
///     )?;
///     array.stack()
/// });
/// assert_eq!(powers(tf::constant(4)?)?.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TensorArray {
    rules: Rules,
    elements: Mutex<Elements>,
}

#[derive(Debug, Clone)]
struct Rules {
    dtype: DType,
    dynamic_size: bool,
    clear_after_read: bool,
    element_shape: Option<Shape>,
    infer_shape: bool,
}

#[derive(Debug, Clone)]
enum Elements {
    Each(Vec<Element>),
    /// All elements along a first axis, so that an index can be a tensor.
    Stacked(Tensor),
}

#[derive(Debug, Clone)]
enum Element {
    Unwritten,
    Written(Tensor),
    /// It was read, and the array does not keep what was read.
    Cleared,
}

/// An index of a [`TensorArray`]: a number, or a scalar of `i32`.
#[derive(Debug, Clone)]
pub enum TensorArrayIndex {
    /// A number; a negative one is out of bounds.
    Number(i64),
    /// A scalar of `i32`.
    Tensor(Tensor),
}

impl From<usize> for TensorArrayIndex {
    fn from(index: usize) -> Self {
        TensorArrayIndex::Number(i64::try_from(index).unwrap_or(i64::MAX))
    }
}

impl From<i32> for TensorArrayIndex {
    fn from(index: i32) -> Self {
        TensorArrayIndex::Number(index.into())
    }
}

impl From<&Tensor> for TensorArrayIndex {
    fn from(index: &Tensor) -> Self {
        TensorArrayIndex::Tensor(index.clone())
    }
}

impl From<Tensor> for TensorArrayIndex {
    fn from(index: Tensor) -> Self {
        TensorArrayIndex::Tensor(index)
    }
}

/// An array of more elements is refused, as a mistake.
const LARGEST: usize = 1 << 20;

impl TensorArray {
    /// Creates an array of `size` elements, of which none is written.
    pub fn new(dtype: DType, size: usize) -> Self {
        let rules = Rules {
            dtype,
            dynamic_size: false,
            clear_after_read: false,
            element_shape: None,
            infer_shape: true,
        };
        // A wrong size must not use up the memory; the first use reports it.
        let elements = vec![Element::Unwritten; size.min(LARGEST + 1)];
        TensorArray { rules, elements: Mutex::new(Elements::Each(elements)) }
    }

    /// Sets whether a write at or after the end makes the array larger. Default: `false`, it is an error.
    #[must_use]
    pub fn dynamic_size(mut self, dynamic_size: bool) -> Self {
        self.rules.dynamic_size = dynamic_size;
        self
    }

    /// Sets whether an element can be read only once, so that its memory becomes free. This applies to indices that the host
    /// knows. Default: `false`; TensorFlow's default is `true`.
    #[must_use]
    pub fn clear_after_read(mut self, clear_after_read: bool) -> Self {
        self.rules.clear_after_read = clear_after_read;
        self
    }

    /// Sets the shape that each element must have. Elements that were not written are then zeros. Default: the shape of the
    /// first element that is written.
    #[must_use]
    pub fn element_shape(mut self, element_shape: impl Into<Shape>) -> Self {
        self.rules.element_shape = Some(element_shape.into());
        self
    }

    /// Sets whether all elements must have one shape. Default: `true`.
    #[must_use]
    pub fn infer_shape(mut self, infer_shape: bool) -> Self {
        self.rules.infer_shape = infer_shape;
        self
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.rules.dtype
    }

    /// The number of elements.
    pub fn size(&self) -> usize {
        match &*self.lock() {
            Elements::Each(elements) => elements.len(),
            Elements::Stacked(all) => all.shape()[0],
        }
    }

    /// Replaces the element at `index`.
    ///
    /// # Errors
    /// [`Error::Index`] if the index is out of bounds; [`Error::DType`] or [`Error::Shape`] if `value` does not fit. An index
    /// that only the device knows is not checked: out of bounds, the write has no effect.
    pub fn write(
        mut self,
        index: impl Into<TensorArrayIndex>,
        value: impl Borrow<Tensor>,
    ) -> Result<Self> {
        const CALL: &str = "TensorArray::write";
        let value = value.borrow().clone();
        self.rules.check(CALL, &value)?;
        let index = index.into();
        let number = known(CALL, &index)?;
        let rules = &mut self.rules;
        let elements = self.elements.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Elements::Each(elements), Some(number)) = (&mut *elements, number) {
            let at = rules.place(CALL, number, elements.len(), rules.dynamic_size)?;
            if at >= elements.len() {
                elements.resize(at + 1, Element::Unwritten);
            }
            elements[at] = Element::Written(value);
            return Ok(self);
        }
        let all = elements.stacked(CALL, rules)?;
        let count = all.shape()[0];
        let index = match (index, number) {
            (_, Some(number)) => {
                let at = rules.place(CALL, number, count, false)?;
                all.device().scope(|| constant(at as i32))?
            }
            (TensorArrayIndex::Tensor(index), None) => index,
            (TensorArrayIndex::Number(_), None) => unreachable!("a number is known"),
        };
        let mut column = vec![1; all.rank()];
        column[0] = count;
        let places = all.device().scope(|| range(0, count as i32, 1))?;
        let here = places.equal(&index)?.reshape(&column)?;
        *elements = Elements::Stacked(where_(&here, &value, &all)?);
        Ok(self)
    }

    /// The element at `index`.
    ///
    /// # Errors
    /// [`Error::Index`] if the index is out of bounds, or the element was not written and its shape is not known, or it was
    /// read before and [`clear_after_read`](TensorArray::clear_after_read) is set. An index that only the device knows is not
    /// checked: out of bounds, the result is as that of [`Tensor::gather`].
    pub fn read(&self, index: impl Into<TensorArrayIndex>) -> Result<Tensor> {
        const CALL: &str = "TensorArray::read";
        let index = index.into();
        let number = known(CALL, &index)?;
        let mut elements = self.lock();
        match (&mut *elements, number) {
            (Elements::Each(elements), Some(number)) => {
                let at = self.rules.place(CALL, number, elements.len(), false)?;
                let value = self.rules.value(CALL, at, &elements[at])?;
                if self.rules.clear_after_read {
                    elements[at] = Element::Cleared;
                }
                Ok(value)
            }
            (Elements::Stacked(all), Some(number)) => {
                let at = self.rules.place(CALL, number, all.shape()[0], false)?;
                all.gather(&all.device().scope(|| constant(at as i32))?, 0)
            }
            (elements, None) => {
                let all = elements.stacked(CALL, &self.rules)?;
                match index {
                    TensorArrayIndex::Tensor(index) => all.gather(&index, 0),
                    TensorArrayIndex::Number(_) => unreachable!("a number is known"),
                }
            }
        }
    }

    /// All elements along a new first axis.
    ///
    /// # Errors
    /// [`Error::Index`] if there are no elements, or one of them was not written and no shape is known; [`Error::Shape`] if
    /// their shapes differ.
    pub fn stack(&self) -> Result<Tensor> {
        const CALL: &str = "TensorArray::stack";
        match &*self.lock() {
            Elements::Stacked(all) => Ok(all.clone()),
            Elements::Each(elements) => self.rules.stack(CALL, elements),
        }
    }

    /// All elements one after the other along their first axis.
    ///
    /// # Errors
    /// As [`TensorArray::stack`], and [`Error::Shape`] if an element is a scalar.
    pub fn concat(&self) -> Result<Tensor> {
        const CALL: &str = "TensorArray::concat";
        let elements = match &*self.lock() {
            Elements::Stacked(all) => all.unstack(0)?,
            Elements::Each(elements) => self.rules.values(CALL, elements)?,
        };
        if elements.is_empty() {
            return Err(none(CALL));
        }
        concat(&elements, 0)
    }

    /// The elements at `indices` along a new first axis.
    ///
    /// # Errors
    /// As [`TensorArray::read`] and [`TensorArray::stack`].
    pub fn gather(&self, indices: &[usize]) -> Result<Tensor> {
        const CALL: &str = "TensorArray::gather";
        if indices.is_empty() {
            return Err(Error::Index(message!("{CALL}: there are no indices. Pass at least one.")));
        }
        let parts = indices.iter().map(|index| self.read(*index)).collect::<Result<Vec<_>>>()?;
        stack(parts, 0)
    }

    /// Replaces the elements at `indices` by the parts of `value` along its first axis.
    ///
    /// # Errors
    /// As [`TensorArray::write`], and [`Error::Shape`] if `value` has another number of parts.
    pub fn scatter(self, indices: &[usize], value: &Tensor) -> Result<Self> {
        let parts = parts("TensorArray::scatter", value)?;
        if parts.len() != indices.len() {
            return Err(Error::Shape(message!(
                "TensorArray::scatter: there are {} indices, and value, {:?}, has {} parts along its first axis. Pass an index \
                 for each.",
                indices.len(),
                value.shape(),
                parts.len()
            )));
        }
        let all = indices.iter().zip(parts);
        all.into_iter().try_fold(self, |array, (index, part)| array.write(*index, part))
    }

    /// Replaces all elements by the parts of `value` along its first axis.
    ///
    /// # Errors
    /// As [`TensorArray::write`]; [`Error::Shape`] if `value` has another number of parts than the array has elements, and the
    /// size is not dynamic.
    pub fn unstack(self, value: &Tensor) -> Result<Self> {
        let parts = parts("TensorArray::unstack", value)?;
        self.replaced("TensorArray::unstack", value, parts)
    }

    /// Replaces all elements by pieces of `value` of these lengths along its first axis.
    ///
    /// # Errors
    /// As [`TensorArray::unstack`], and [`Error::Shape`] if the lengths do not add up to the size of the first axis.
    pub fn split(self, value: &Tensor, lengths: &[usize]) -> Result<Self> {
        const CALL: &str = "TensorArray::split";
        let sum = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length));
        if value.rank() == 0 || sum != Some(value.shape()[0]) {
            return Err(Error::Shape(message!(
                "{CALL}: the lengths {lengths:?} do not add up to the first axis of value, {:?}.",
                value.shape()
            )));
        }
        let mut begin = vec![0; value.rank()];
        let mut size = vec![-1; value.rank()];
        let mut pieces = Vec::with_capacity(lengths.len());
        for length in lengths {
            size[0] = *length as i64;
            pieces.push(value.slice(&begin, &size)?);
            begin[0] += length;
        }
        self.replaced(CALL, value, pieces)
    }

    fn replaced(mut self, call: &str, value: &Tensor, parts: Vec<Tensor>) -> Result<Self> {
        let size = self.size();
        if parts.len() != size && !self.rules.dynamic_size {
            return Err(Error::Shape(message!(
                "{call}: value, {:?}, makes {} elements, and the array has {size}. Make it of that size, or with \
                 dynamic_size(true).",
                value.shape(),
                parts.len()
            )));
        }
        // Elements of a dynamic array that `value` does not have stay, as in TensorFlow.
        let mut elements = match &*self.lock() {
            Elements::Each(elements) => elements.clone(),
            Elements::Stacked(all) => all.unstack(0)?.into_iter().map(Element::Written).collect(),
        };
        elements.resize(size.max(parts.len()), Element::Unwritten);
        for (element, part) in elements.iter_mut().zip(parts) {
            self.rules.check(call, &part)?;
            *element = Element::Written(part);
        }
        self.elements = Mutex::new(Elements::Each(elements));
        Ok(self)
    }

    fn lock(&self) -> MutexGuard<'_, Elements> {
        self.elements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts of `value` along its first axis.
fn parts(call: &str, value: &Tensor) -> Result<Vec<Tensor>> {
    match value.rank() {
        0 => Err(Error::Shape(message!(
            "{call}: value is a scalar; its first axis is that of the elements."
        ))),
        _ => value.unstack(0),
    }
}

fn none(call: &str) -> Error {
    Error::Index(message!("{call}: the array has no elements."))
}

/// The number, if the host can know it.
fn known(call: &str, index: &TensorArrayIndex) -> Result<Option<i64>> {
    let index = match index {
        TensorArrayIndex::Number(number) => return Ok(Some(*number)),
        TensorArrayIndex::Tensor(index) => index,
    };
    if index.rank() != 0 {
        return Err(Error::Shape(message!(
            "{call}: the index is {:?}; it must be a scalar.",
            index.shape()
        )));
    }
    if index.dtype() != DType::I32 {
        return Err(Error::DType(message!(
            "{call}: the index is {}; it must be i32. Cast it.",
            index.dtype()
        )));
    }
    // In a trace, only a run knows it.
    match eager::in_trace() {
        true => Ok(None),
        false => index.item::<i32>().map(|number| Some(number.into())),
    }
}

impl Rules {
    /// Checks a new element, which may fix the shape of all.
    fn check(&mut self, call: &str, value: &Tensor) -> Result<()> {
        if value.dtype() != self.dtype {
            return Err(Error::DType(message!(
                "{call}: the array has {} elements, and the value is {}. Cast it.",
                self.dtype,
                value.dtype()
            )));
        }
        match &self.element_shape {
            Some(shape) if shape[..] != *value.shape() && self.infer_shape => {
                Err(Error::Shape(message!(
                    "{call}: the elements are {shape:?}, and the value is {:?}. Elements of several shapes need \
                     infer_shape(false).",
                    value.shape()
                )))
            }
            Some(_) => Ok(()),
            None => {
                if self.infer_shape {
                    self.element_shape = Some(value.shape().into());
                }
                Ok(())
            }
        }
    }

    /// The number as an index of an array of `count` elements, or after its end if it `grows`.
    fn place(&self, call: &str, number: i64, count: usize, grows: bool) -> Result<usize> {
        let limit = if grows { LARGEST } else { count };
        match usize::try_from(number) {
            Ok(at) if at < limit && count <= LARGEST => Ok(at),
            _ if grows || count > LARGEST => Err(Error::Index(message!(
                "{call}: the index is {number}, and the array has {count} elements; it may have at most {LARGEST}."
            ))),
            _ => Err(Error::Index(message!(
                "{call}: the index is {number}, and the array has {count} elements. Make it larger, or, to write after its \
                 end, with dynamic_size(true)."
            ))),
        }
    }

    fn value(&self, call: &str, at: usize, element: &Element) -> Result<Tensor> {
        match (element, &self.element_shape) {
            (Element::Written(value), _) => Ok(value.clone()),
            (Element::Unwritten, Some(shape)) => Tensor::zeros(shape)?.cast(self.dtype),
            (Element::Unwritten, None) => Err(Error::Index(message!(
                "{call}: element {at} was not written. Write it first; with element_shape, it would be zeros."
            ))),
            (Element::Cleared, _) => Err(Error::Index(message!(
                "{call}: element {at} was read before, and the array has clear_after_read(true). Keep what the first read \
                 returned, or set clear_after_read(false)."
            ))),
        }
    }

    fn values(&self, call: &str, elements: &[Element]) -> Result<Vec<Tensor>> {
        let values = elements.iter().enumerate().map(|(at, element)| self.value(call, at, element));
        values.collect()
    }

    fn stack(&self, call: &str, elements: &[Element]) -> Result<Tensor> {
        match elements.len() {
            0 => Err(none(call)),
            _ => stack(self.values(call, elements)?, 0),
        }
    }
}

impl Elements {
    /// All elements along a first axis.
    fn stacked(&self, call: &str, rules: &Rules) -> Result<Tensor> {
        match self {
            Elements::Stacked(all) => Ok(all.clone()),
            Elements::Each(elements) => rules.stack(call, elements).map_err(|error| {
                error.reworded(|text| {
                    message!("{text} In a function, an array that is indexed by a tensor needs element_shape.")
                })
            }),
        }
    }
}

impl Clone for TensorArray {
    fn clone(&self) -> Self {
        TensorArray { rules: self.rules.clone(), elements: Mutex::new(self.lock().clone()) }
    }
}

impl Nest for TensorArray {
    fn write_signature(&self, signature: &mut Signature) {
        let Rules { dtype, dynamic_size, clear_after_read, element_shape, infer_shape } =
            &self.rules;
        signature.write(format_args!(
            "TensorArray({dtype}, {dynamic_size}, {clear_after_read}, {element_shape:?}, {infer_shape}, "
        ));
        match &*self.lock() {
            Elements::Stacked(all) => signature.write(format_args!("all {}", all.spec())),
            Elements::Each(elements) => {
                for element in elements {
                    match element {
                        Element::Unwritten => signature.write(format_args!("_ ")),
                        Element::Written(value) => {
                            signature.write(format_args!("{} ", value.spec()))
                        }
                        Element::Cleared => signature.write(format_args!("- ")),
                    }
                }
            }
        }
        signature.write(format_args!(")"));
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        let elements = match &*self.lock() {
            Elements::Stacked(all) => Elements::Stacked(f(all)),
            Elements::Each(each) => {
                let each = each.iter().map(|element| match element {
                    Element::Written(value) => Element::Written(f(value)),
                    other => other.clone(),
                });
                Elements::Each(each.collect())
            }
        };
        TensorArray { rules: self.rules.clone(), elements: Mutex::new(elements) }
    }

    // Which elements were written must not change from turn to turn.
    fn loop_variable(&self) -> Result<Self> {
        let elements = match self.rules.element_shape {
            Some(_) => Elements::Stacked(self.lock().stacked("while_loop", &self.rules)?),
            None => self.lock().clone(),
        };
        Ok(TensorArray { rules: self.rules.clone(), elements: Mutex::new(elements) })
    }
}

#[cfg(test)]
#[path = "tensor_array_tests.rs"]
mod tests;
