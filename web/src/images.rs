//! [`Images`]: labelled images of digits in host memory.

use std::rc::Rc;

use js_sys::{Object, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;
use wgrad::Error;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist;

use crate::args::{show_number, whole};
use crate::device::object;
use crate::error::{Result, bad_type};
use crate::tensor::Tensor;

/// Grey images of 28 by 28 pixels and the digit that each shows. They stay on the host; `batch` makes tensors.
#[wasm_bindgen]
pub struct Images(pub(crate) Rc<mnist::Images>);

/// The most images drawn at once: 10 million are 8 GB, more than a page can hold.
const MOST: usize = 1_000_000;

#[wasm_bindgen]
impl Images {
    /// Draws digits that look handwritten; the same seed gives the same images everywhere.
    #[wasm_bindgen(js_name = drawDigits)]
    pub fn draw_digits(count: f64, seed: f64) -> Result<Images> {
        match (whole(count), whole(seed)) {
            (Some(count), Some(seed)) if count <= MOST => {
                Ok(Images(Rc::new(draw_digits(count, seed as u64))))
            }
            _ => Err(bad_type(format!(
                "Images.drawDigits: the count {} and the seed {} must be whole numbers from 0, and the count at \
                 most {MOST}.",
                show_number(count),
                show_number(seed)
            ))),
        }
    }

    /// The images of MNIST's files, decompressed: images and labels in the IDX format. Throws a `DataError` that explains what
    /// is wrong with a broken file.
    #[wasm_bindgen(js_name = fromIdx)]
    pub fn from_idx(images: &[u8], labels: &[u8]) -> Result<Images> {
        Ok(Images(Rc::new(mnist::Images::from_idx(images, labels)?)))
    }

    /// The number of images.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// The 784 pixels of image `i`, row by row, 0 for paper and 255 for ink.
    pub fn image(&self, i: f64) -> Result<Uint8Array> {
        let i = self.check(i)?;
        Ok(Uint8Array::from(self.0.image(i)))
    }

    /// The digit that each image shows.
    #[wasm_bindgen(getter)]
    pub fn labels(&self) -> Uint8Array {
        Uint8Array::from(&self.0.labels[..])
    }

    /// The indices of all images in random order, from the global generator: the order in which `fit` visits an epoch's images,
    /// here and natively.
    pub fn permutation(&self) -> Result<Uint32Array> {
        let order = wgrad::random::global().permutation(self.0.len())?;
        let order: Vec<u32> = order.into_iter().map(|i| i as u32).collect();
        Ok(Uint32Array::from(&order[..]))
    }

    pub(crate) fn check(&self, i: f64) -> Result<usize> {
        whole(i).filter(|i| *i < self.0.len()).ok_or_else(|| {
            let text = format!(
                "Images: index {} is out of bounds; there are {} images.",
                show_number(i),
                self.0.len()
            );
            Error::Index(text.into()).into()
        })
    }
}

/// `{ x, y }` of these images.
pub(crate) fn pair(images: &mnist::Images, indices: &[usize]) -> Result<Object> {
    let (x, y) = images.tensors(indices)?;
    Ok(object([("x", Tensor::new(x).into()), ("y", Tensor::new(y).into())]))
}

/// The version of the page's own build.
#[cfg(not(feature = "ops"))]
#[wasm_bindgen]
impl Images {
    /// The images with these indices: `x` is `[n, 28, 28, 1]` in 0 to 1, `y` the labels.
    #[wasm_bindgen(unchecked_return_type = "{ x: Tensor; y: Tensor }")]
    pub fn batch(&self, indices: &Uint32Array) -> Result<Object> {
        let indices: Vec<usize> = indices.to_vec().into_iter().map(|i| i as usize).collect();
        pair(&self.0, &indices)
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Images {
    /// The images from `begin` up to but not including `end`, or those with these indices: `x` is `[n, 28, 28, 1]` in 0 to 1,
    /// `y` the labels.
    #[wasm_bindgen(unchecked_return_type = "{ x: Tensor; y: Tensor }")]
    pub fn batch(
        &self,
        #[wasm_bindgen(
            js_name = beginOrIndices,
            unchecked_optional_param_type = "number | Uint32Array | readonly number[]"
        )]
        begin: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] end: Option<f64>,
    ) -> Result<Object> {
        let indices: Vec<usize> = if let Some(indices) = begin.dyn_ref::<Uint32Array>() {
            indices.to_vec().into_iter().map(|i| i as usize).collect()
        } else if let Some(indices) = begin.dyn_ref::<js_sys::Array>() {
            let place = |i: JsValue| self.check(i.as_f64().unwrap_or(f64::NAN));
            indices.iter().map(place).collect::<Result<_>>()?
        } else {
            let all = self.0.len();
            let bound = |value: Option<f64>, or| value.map_or(Some(or), whole);
            let begin_at = match begin.is_undefined() {
                true => Some(0),
                false => begin.as_f64().and_then(whole),
            };
            match (begin_at, bound(end, all)) {
                (Some(begin), Some(end)) if begin <= end && end <= all => (begin..end).collect(),
                _ => {
                    return Err(Error::Index(
                        format!(
                            "Images.batch: there is no range from {} to {} among {all} images.",
                            crate::args::show(begin),
                            end.map_or("the end".to_string(), |end| end.to_string())
                        )
                        .into(),
                    )
                    .into());
                }
            }
        };
        pair(&self.0, &indices)
    }

    #[wasm_bindgen(js_name = _images, skip_typescript)]
    #[doc(hidden)]
    pub fn share(&self) -> Images {
        Images(self.0.clone())
    }
}
