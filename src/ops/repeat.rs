//! Repeats the elements along an axis, all equally often, or each as often as a list specifies.

use super::gather::GatherOptions;
use super::inventory::{Entry, OpKind, one};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Axes, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// Repeats each slice along an axis: with a single number, each slice that many times; otherwise slice k
    /// `repeats[k]` times. With `()` instead of an axis it repeats the elements of the flattened tensor.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2], [3, 4]])?;
    /// assert_eq!(x.repeat(&[2], 1)?.to_vec::<i32>()?, [1, 1, 2, 2, 3, 3, 4, 4]);
    /// assert_eq!(x.repeat(&[2, 1], 0)?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4]);
    /// assert_eq!(x.repeat(&[2], ())?.shape(), [8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is neither one number nor one for each slice, or the result is too large;
    /// [`Error::Index`] if the axis does not exist, or several are given.
    pub fn repeat(&self, repeats: &[usize], axis: impl Into<Axes>) -> Result<Tensor> {
        let (x, axis) = match axis.into().list.as_deref() {
            None => (&self.reshape([-1])?, 0),
            Some(&[axis]) => (self, axis_index("Repeat", axis, self.rank())?),
            Some(axes) => {
                return Err(Error::Index(message!(
                    "Repeat: {axes:?} names {} axes; name one, or () for the flattened tensor.",
                    axes.len()
                )));
            }
        };
        let size = x.shape()[axis];
        let total = match *repeats {
            [each] => size.checked_mul(each),
            _ if repeats.len() == size => {
                repeats.iter().try_fold(0usize, |sum, &n| sum.checked_add(n))
            }
            _ => {
                return Err(Error::Shape(message!(
                    "Repeat: {} numbers for the {size} slices along axis {axis} of {:?}; give one for each, or one for all.",
                    repeats.len(),
                    x.shape()
                )));
            }
        };
        let Some(total) = total else {
            return Err(Error::Shape(message!(
                "Repeat: axis {axis} of {:?} would have more than 2^64 elements.",
                x.shape()
            )));
        };
        let mut shape = x.shape().to_vec();
        shape[axis] = total;
        if let [each] = *repeats {
            let mut apart = x.shape().to_vec();
            apart.insert(axis + 1, each);
            let wide = x.expand_dims(axis + 1)?.broadcast_to(apart)?;
            return wide.reshape_to(shape.into());
        }
        if total > MOST {
            return Err(Error::Shape(message!(
                "Repeat: {total} slices are too many for unequal numbers, each of which the host lists; at most \
                 {MOST} are possible."
            )));
        }
        let places: Vec<i32> = repeats
            .iter()
            .enumerate()
            .flat_map(|(k, &n)| std::iter::repeat_n(k as i32, n))
            .collect();
        let places = x.device().scope(|| Tensor::from_slice(&places, [places.len()]))?;
        x.gather_with(&places, axis, GatherOptions::new())
    }
}

/// The most indices that the host lists.
const MOST: usize = 1 << 26;

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Composed, "repeat", &["tf.repeat"], |c| {
        let repeats = c.need("repeats", c.sizes("repeats")?)?;
        one(c.x()?.repeat(&repeats, c.axes("axis")?))
    })
    .takes(&[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool])
    .cases(|cases| {
        cases.of_shape("repeat", &[2, 3], |x| x.repeat(&[3], 1));
        cases.of_shape("repeat of all", &[2, 3], |x| x.repeat(&[2], ()));
        cases.of_shape("repeat by numbers", &[3, 2], |x| x.repeat(&[2, 0, 3], 0));
    })];
