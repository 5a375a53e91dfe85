//! Images with their labels, as in MNIST.

use ndarray::{Array3, Ix3};

use super::idx::{Idx, parse_idx};
use super::item::{Item, ItemSpec};
use super::sources::TensorSlices;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The pixels along one side of an image.
const SIDE: usize = 28;
/// The number of digits.
const CLASSES: u8 = 10;

/// Grey images of 28 by 28 pixels, and the digit that each shows.
///
/// A dataset of them has pairs of pixels, `[28, 28, 1]` of bytes, and a label:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{Dataset, drawn_digits::draw_digits};
/// let digits = Dataset::from_tensor_slices(draw_digits(100, 1))?.shuffle(100).batch(32);
/// let (images, labels) = digits.iter().next().expect("100 images")?;
/// assert_eq!((images.shape(), labels.shape()), (&[32, 28, 28, 1][..], &[32][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// `[images, 28, 28]` in row-major order, 0 for paper and 255 for ink.
    pub pixels: Vec<u8>,
    /// `[images]`, each from 0 to 9.
    pub labels: Vec<u8>,
}

impl Images {
    /// Reads the images in the contents of two IDX files, plain or (with the feature `gzip`) compressed.
    ///
    /// ```
    /// use wgrad::data::mnist::Images;
    /// let images = [&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28][..], &[7; 784]].concat();
    /// let labels = [0, 0, 8, 1, 0, 0, 0, 1, 5];
    /// let digits = Images::from_idx(&images, &labels)?;
    /// assert_eq!((digits.len(), digits.labels[0], digits.image(0)[783]), (1, 5, 7));
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if one is corrupt, or they do not belong together.
    pub fn from_idx(images: &[u8], labels: &[u8]) -> Result<Self> {
        let (name, labels_name) = ("the file of images", "the file of labels");
        match_up(parse_idx(images, name)?, parse_idx(labels, labels_name)?, name, labels_name)
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True if there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The 784 pixels of image `i`, row by row; empty if there is no such image.
    pub fn image(&self, i: usize) -> &[u8] {
        self.pixels.chunks_exact(SIDE * SIDE).nth(i).unwrap_or_default()
    }

    /// The images with these indices as `f32` from 0 to 1, `[N, 28, 28, 1]`, and their labels as `i32`,
    /// `[N]`.
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
        let mut pixels = Vec::with_capacity(indices.len() * SIDE * SIDE);
        for &i in indices {
            pixels.extend(self.image(i).iter().map(|&p| f32::from(p) / 255.0));
        }
        let labels: Vec<i32> = indices.iter().map(|&i| i32::from(self.labels[i])).collect();
        let images = Tensor::from_slice(&pixels, [indices.len(), SIDE, SIDE, 1])?;
        Ok((images, Tensor::from_slice(&labels, [indices.len()])?))
    }
}

impl TensorSlices for Images {
    type Item = (Array3<u8>, i32);

    fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
        lengths.push(Some(self.pixels.len() / (SIDE * SIDE)));
        lengths.push(Some(self.len()));
    }

    fn slice(&self, at: usize) -> Result<Self::Item> {
        let pixels = Array3::from_shape_vec(Ix3(SIDE, SIDE, 1), self.image(at).to_vec());
        let pixels = pixels.map_err(|e| Error::Shape(message!("Images: image {at}: {e}.")))?;
        Ok((pixels, i32::from(self.labels[at])))
    }

    fn spec(&self) -> ItemSpec {
        ItemSpec::Tuple(vec![ItemSpec::array("u8", &[SIDE, SIDE, 1]), i32::type_spec()])
    }
}

/// Images and labels that belong together; the names are those of the files.
pub(super) fn match_up(pixels: Idx, digits: Idx, images: &str, labels: &str) -> Result<Images> {
    let refuse = |file: &str, what: String| {
        let advice = "Check that it is a file of MNIST, and fetch it again.";
        Err(Error::Data(message!("{file}: {what}. {advice}")))
    };
    let &[count, SIDE, SIDE] = pixels.shape.as_slice() else {
        let what = format!("the values are {:?}, not [images, 28, 28]", pixels.shape);
        return refuse(images, what);
    };
    if count == 0 {
        return refuse(images, "there is not a single image in it".into());
    }
    if digits.shape != [count] {
        let found = &digits.shape;
        return refuse(
            labels,
            format!("the labels are {found:?}, and {images} has {count} images"),
        );
    }
    if let Some(i) = digits.data.iter().position(|&digit| digit >= CLASSES) {
        return refuse(labels, format!("label {i} is {}, and digits end at 9", digits.data[i]));
    }
    Ok(Images { pixels: pixels.data, labels: digits.data })
}
