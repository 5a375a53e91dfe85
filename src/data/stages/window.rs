//! `window`: groups of consecutive elements.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, PadTo, read_items, write_items};
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// The elements in the windows of [`Dataset::window_with`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct WindowOptions {
        /// The distance from the beginning of a window to that of the next; the window's size if `None`.
        shift: Option<usize> as impl Into<Option<usize>> = None,
        /// The distance between consecutive elements of a window.
        stride: usize = 1,
        /// Whether windows with fewer elements, at the end, are dropped.
        drop_remainder: bool = false,
    }
}

/// Consecutive elements of a dataset; it dereferences to a slice.
///
/// A batch of windows has their elements along its second axis. [`Window::batch`] stacks one window into an array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window<T>(Vec<T>);

impl<T> Deref for Window<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> IntoIterator for Window<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Item> Window<T> {
    /// Stacks the elements along a new first axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes differ.
    pub fn batch(self) -> Result<T::Batch> {
        T::stack(self.0)
    }
}

impl<T: Item> Item for Window<T> {
    type Batch = T::Batch;
    type Padding = T::Padding;
    const ON_DEVICE: bool = T::ON_DEVICE;

    fn type_spec() -> ItemSpec {
        T::type_spec().batched(None)
    }

    fn spec(&self) -> ItemSpec {
        let merge = |spec: Option<ItemSpec>, item: &T| match spec {
            None => Some(item.spec()),
            Some(spec) => spec.merge(item.spec()),
        };
        self.0.iter().fold(None, merge).unwrap_or_else(T::type_spec).batched(Some(self.len()))
    }

    fn stack(items: Vec<Self>) -> Result<T::Batch> {
        T::Batch::stack(items.into_iter().map(Window::batch).collect::<Result<_>>()?)
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &T::Padding) -> Result<T::Batch> {
        T::Batch::pad(items.into_iter().map(Window::batch).collect::<Result<_>>()?, to, padding)
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn row(&self, at: usize) -> Result<T::Batch> {
        T::stack(vec![self.0[at].clone()])?.row(0)
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        write_items(&self.0, out)
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        read_items(from).map(Window)
    }
}

impl<T: Item> Dataset<T> {
    /// Groups each `size` consecutive elements (`Dataset.window`). The last window may have fewer.
    ///
    /// In TensorFlow a window is a dataset; here it dereferences to a slice. So `window(3).batch(32)` returns arrays of 32 rows
    /// of 3 elements each, and a `map` of `|window| window.batch()` the array of one window.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, Window};
    /// let sums = data::range(0..7).window(3).map(|window: Window<i64>| window.iter().sum::<i64>());
    /// assert_eq!(sums.iter().collect::<wgrad::Result<Vec<i64>>>()?, [3, 12, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A `size` of 0 is an [`Error::Data`] in place of the first window.
    #[must_use]
    pub fn window(&self, size: usize) -> Dataset<Window<T>> {
        self.window_with(size, WindowOptions::new())
    }

    /// As [`Dataset::window`], with windows that overlap, or that skip elements.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, WindowOptions};
    /// let options = WindowOptions::new().shift(1).drop_remainder(true);
    /// // Three numbers, and the one that follows them.
    /// let pairs = data::range(0..10).window_with(4, options).map(|w| (w[..3].to_vec(), w[3]));
    /// let (before, next) = pairs.iter().nth(6).expect("seven windows")?;
    /// assert_eq!((before, next), (vec![6, 7, 8], 9));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If `size`, `shift` or `stride` is 0, an [`Error::Data`] takes the place of the first window.
    #[must_use]
    pub fn window_with(&self, size: usize, options: WindowOptions) -> Dataset<Window<T>> {
        let (shift, stride) = (options.shift.unwrap_or(size), options.stride);
        for (name, number) in [("size", size), ("shift", shift), ("stride", stride)] {
            if number == 0 {
                let what = message!("window: {name} is 0; it must be at least 1.");
                return Dataset::refused(Error::Data(what));
            }
        }
        // A position after all elements is far enough.
        let span = (size - 1).saturating_mul(stride).saturating_add(1);
        let drop = options.drop_remainder;
        let (buffer, skip, ended) = (VecDeque::new(), 0, false);
        self.stage(Windows { size, shift, stride, span, drop, buffer, skip, ended })
    }
}

#[derive(Clone)]
struct Windows<T> {
    size: usize,
    shift: usize,
    stride: usize,
    /// The distance from the first element of a window to its last.
    span: usize,
    drop: bool,
    /// The elements from the first of the next window on.
    buffer: VecDeque<T>,
    /// The number of elements to skip before that.
    skip: usize,
    ended: bool,
}

impl<T: Item> Stage<T> for Windows<T> {
    type Out = Window<T>;

    fn name(&self) -> &'static str {
        "window"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        let Windows { shift, span, drop, .. } = *self;
        input.cardinality().map(|count| match drop {
            true => count.checked_sub(span).map_or(0, |rest| rest / shift + 1),
            false => count.div_ceil(shift),
        })
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input.batched(self.drop.then_some(self.size))
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<Window<T>>> {
        let Windows { shift, stride, span, drop, .. } = *self;
        while !self.ended && (self.skip > 0 || self.buffer.len() < span) {
            if input.stopped() {
                return None;
            }
            match input.next() {
                Some(Ok(_)) if self.skip > 0 => self.skip -= 1,
                Some(Ok(item)) => self.buffer.push_back(item),
                Some(Err(error)) => return Some(Err(error)),
                None => self.ended = true,
            }
        }
        if self.buffer.is_empty() || drop && self.buffer.len() < span {
            return None;
        }
        let window = self.buffer.iter().take(span).step_by(stride).cloned().collect();
        let gone = shift.min(self.buffer.len());
        self.buffer.drain(..gone);
        self.skip = shift - gone;
        Some(Ok(Window(window)))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.number(self.skip as u64);
        out.flag(self.ended);
        write_items(&self.buffer, out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.skip = from.size()?;
        self.ended = from.flag()?;
        self.buffer = read_items(from)?;
        Ok(())
    }
}
