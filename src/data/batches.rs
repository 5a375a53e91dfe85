//! Makes tensors of labelled images, a batch at a time.

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

use super::images::Images;

/// Goes through images in a given order, a batch at a time. The last batch may be smaller.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::drawn_digits::draw_digits;
/// let digits = draw_digits(100, 1);
/// let (images, labels) = digits.batches(32, None).next().expect("100 images")?;
/// assert_eq!(images.shape(), [32, 28, 28, 1]);
/// assert_eq!(labels.shape(), [32]);
/// # Ok(())
/// # }
/// ```
pub struct Batches<'a> {
    images: &'a Images,
    order: Vec<usize>,
    size: usize,
    at: usize,
}

impl Images {
    /// Iterates over batches of `size` pairs: images `[size, 28, 28, 1]` as `f32` in 0 to 1, labels `[size]` as `i32`.
    /// They come in the order of the indices in `order`, or as they lie. A size of 0 gives an error in place of the
    /// first batch.
    pub fn batches(&self, size: usize, order: Option<Vec<usize>>) -> Batches<'_> {
        let order = order.unwrap_or_else(|| (0..self.len()).collect());
        Batches { images: self, order, size, at: 0 }
    }

    /// The images with these indices and their labels, as [`Images::batches`] gives them.
    ///
    /// # Errors
    /// [`Error::Index`] if an index does not exist; [`Error::Device`] if there is no device or no memory.
    pub fn tensors(&self, indices: &[usize]) -> Result<(Tensor, Tensor)> {
        if let Some(bad) = indices.iter().find(|i| **i >= self.len()) {
            return Err(Error::Index(message!(
                "Images: index {bad} is out of bounds; there are {} images.",
                self.len()
            )));
        }
        let mut pixels = Vec::with_capacity(indices.len() * 784);
        for &i in indices {
            pixels.extend(self.image(i).iter().map(|&p| f32::from(p) / 255.0));
        }
        let labels: Vec<i32> = indices.iter().map(|&i| i32::from(self.labels[i])).collect();
        let images = Tensor::from_slice(&pixels, [indices.len(), 28, 28, 1])?;
        Ok((images, Tensor::from_slice(&labels, [indices.len()])?))
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<(Tensor, Tensor)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.size == 0 && self.at < self.order.len() {
            self.at = self.order.len();
            let why = "Images: batches of 0 images never end; a batch needs at least one.";
            return Some(Err(Error::Shape(why.into())));
        }
        let end = self.at.saturating_add(self.size).min(self.order.len());
        let indices = self.order.get(self.at..end).filter(|i| !i.is_empty())?;
        self.at = end;
        Some(self.images.tensors(indices))
    }
}
