//! `Tensor::print`: prints the value like `tf.print`, when the device has computed it.

use super::print_text::text;
use super::report::aside;
use crate::device::platform;
use crate::eager;
use crate::error::Result;
use crate::ops::concat;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// How [`Tensor::print_with`] prints.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PrintOptions {
        /// The number of elements that are printed at either end of each axis; default: 3. `None` prints all.
        summarize: Option<usize> as impl Into<Option<usize>> = Some(3),
    }
}

impl Tensor {
    /// Prints `message` and the value to standard error (in a browser to the console) when the device has computed it,
    /// in the order of the calls, like `tf.print(message, x)`: `[[1 2 3]\n [4 5 6]]`, with the first and last three
    /// elements of long axes.
    ///
    /// The call itself does not wait, and only the printed elements are read; [`debugging`](crate::debugging) describes
    /// when. It may be part of a step that runs ten thousand times.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 2.5], [3.0, 4.0]])?;
    /// x.print("x:")?;                                 // x: [[1 2.5]
    /// let y = x.reduce_sum(())?;                      //  [3 4]]
    /// y.print("sum:")?;                               // sum: 10.5
    /// y.item::<f32>()?;                               // both are printed here
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device cannot compute the printed elements.
    pub fn print(&self, message: &str) -> Result<()> {
        self.print_with(message, PrintOptions::new())
    }

    /// As [`Tensor::print`], with options.
    ///
    /// # Errors
    /// As [`Tensor::print`].
    pub fn print_with(&self, message: &str, options: PrintOptions) -> Result<()> {
        let (shape, dtype) = (self.spec().shape.clone(), self.dtype());
        let ends = options.summarize;
        let shown = shown(&aside(self), ends)?;
        let begin = if message.is_empty() { String::new() } else { format!("{message} ") };
        eager::effect(&[&shown], move |shown| {
            let (begin, shape) = (begin.clone(), shape.clone());
            let deliver = move |found: &[&[u8]]| {
                platform::say(&format!("{begin}{}", text(dtype, &shape, ends, found[0])));
                Ok(())
            };
            shown[0].device().report(vec![shown[0].value().clone()], Box::new(deliver));
        });
        Ok(())
    }
}

/// The elements that are printed: those at both ends of each axis that is longer.
fn shown(x: &Tensor, ends: Option<usize>) -> Result<Tensor> {
    let mut shown = x.clone();
    let Some(ends) = ends else { return Ok(shown) };
    for axis in 0..x.rank() {
        let size = shown.shape()[axis];
        if size / 2 < ends || size == 2 * ends {
            continue;
        }
        let cut = |at: usize| {
            let (mut begin, mut sizes) = (vec![0; x.rank()], vec![-1; x.rank()]);
            (begin[axis], sizes[axis]) = (at, ends as i64);
            shown.slice(&begin, &sizes)
        };
        shown = concat(&[cut(0)?, cut(size - ends)?], axis)?;
    }
    Ok(shown)
}
