//! `y[(c + shift) mod n] = x[c]`: elements that leave an axis at its end come back at its beginning.

use super::concat;
use super::inventory::{Entry, Kind, one};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Axes, axis_index};
use crate::tensor::Tensor;

impl Tensor {
    /// Moves the elements along each of `axes` by a shift, in a ring: `y[(c + shift) mod n] = x[c]`. The shifts of an
    /// axis that is named several times add up.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.roll(&[1], 1)?.to_vec::<i32>()?, [3, 1, 2, 6, 4, 5]);
    /// assert_eq!(x.roll(&[1, -1], [0, 1])?.to_vec::<i32>()?, [5, 6, 4, 2, 3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one shift an axis; [`Error::Index`] if an axis does not exist.
    pub fn roll(&self, shift: &[i64], axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into().list.unwrap_or_default();
        if axes.len() != shift.len() {
            return Err(Error::Shape(message!(
                "Roll: the shifts {shift:?} and the axes {axes:?} must be equally many; name the axis of each shift."
            )));
        }
        let mut by = vec![0i64; self.rank()];
        for (&axis, &shift) in axes.iter().zip(shift) {
            let at = axis_index("Roll", axis, self.rank())?;
            // An axis of a tensor without elements may be longer than any shift.
            let size = i64::try_from(self.shape()[at]).unwrap_or(i64::MAX).max(1);
            by[at] = ((i128::from(by[at]) + i128::from(shift)).rem_euclid(i128::from(size))) as i64;
        }
        let mut rolled = self.clone();
        for (axis, &by) in by.iter().enumerate().filter(|(_, by)| **by > 0) {
            let rest = self.shape()[axis] - by as usize;
            let parts = rolled.split_sizes(&[rest, by as usize], axis)?;
            rolled = concat([&parts[1], &parts[0]], axis)?;
        }
        Ok(rolled)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[Entry::new(Kind::Composed, "roll", &["tf.roll"], |c| {
    let axes = c.need("axis", c.ints("axis")?)?;
    one(c.x()?.roll(&c.need("shift", c.ints("shift")?)?, &axes[..]))
})
.takes(&DType::ALL)
.cases(|cases| {
    cases.of_shape("roll", &[3, 5], |x| x.roll(&[2], 1));
    cases.of_shape("roll of both axes", &[3, 5], |x| x.roll(&[1, -7, 1], [0, 1, 0]));
})];
