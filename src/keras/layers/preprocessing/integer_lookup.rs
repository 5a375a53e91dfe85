//! [`IntegerLookup`]: indices of integers.

use super::category_encoding::{OutputMode, encode};
use super::host_encoding;
use super::host_layer::{HostLayer, integers};
use super::lookup::OovMethod;
use super::lookup_layer::lookup_layer;
use super::salt::Salt;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::unmasked;
use crate::ops::{Side, where_};
use crate::shape::Shape;
use crate::tensor::Tensor;

lookup_layer! {
    /// Maps integers to their indices in a vocabulary, or indices to integers; otherwise the same as
    /// [`StringLookup`](super::StringLookup). It also accepts tensors, and can be in a model.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::layers::{HostLayer, IntegerLookup, Layer};
    /// let layer = IntegerLookup::new().vocabulary([12, 36, 1138]);
    /// assert_eq!(layer.apply(&[36, 37])?.to_array::<i64>()?, ndarray::array![2, 0].into_dyn());
    /// let y = layer.call(&tf::constant([[36, 37]])?, tf::keras::INFERENCE)?;
    /// assert_eq!(y.to_vec::<i32>()?, [2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct IntegerLookup: i64, oov -1, missing 0;
    given i64, |number| number;
    out i64, |word| Ok::<i64, Error>(word);
    read |x| integers("IntegerLookup", x);
    make |shape, words| host_encoding::integers(HostDType::I64, Shape::from(shape), &words);
    fixed { sparse: false, vocabulary_dtype: "int64", }
}

impl IntegerLookup {
    /// Sets how numbers outside the vocabulary get one of several indices. Default: [`OovMethod::Floormod`].
    #[must_use]
    pub fn oov_method(mut self, method: OovMethod) -> Self {
        self.lookup.oov_method = method;
        self
    }

    /// The index of each number, -1 for what is to be dropped.
    fn indices(&self, x: &Tensor) -> Result<Tensor> {
        let lookup = &self.lookup;
        let oov_start = i32::try_from(lookup.oov_start()).unwrap_or(i32::MAX);
        let constant =
            |values: Vec<i32>| x.device().scope(|| Tensor::from_slice(&values, [values.len()]));
        let filled = |value: i32| constant(vec![value])?.broadcast_to(x.shape());
        let outside = match lookup.num_oov_indices {
            0 => filled(-1)?,
            1 => filled(oov_start)?,
            bins => {
                let bins =
                    i32::try_from(bins).ok().filter(|_| lookup.oov_method == OovMethod::Floormod);
                let bins = bins.ok_or_else(|| {
                    Error::Data(message!(
                        "IntegerLookup: the device cannot hash numbers outside the vocabulary. Take OovMethod::Floormod, or call the \
                         layer on the host (apply)."
                    ))
                })?;
                x.floormod(bins)?.add(oov_start)?
            }
        };
        let state = lookup.ready()?;
        let words = state.known().map_or(&[][..], |known| &known.table.words);
        // What an i32 cannot represent is not in a tensor.
        let start = lookup.token_start();
        let places =
            words.iter().enumerate().map(|(place, word)| (i32::try_from(*word), start + place));
        let mut pairs: Vec<(i32, i32)> = places
            .filter_map(|(word, place)| Some((word.ok()?, i32::try_from(place).ok()?)))
            .collect();
        pairs.sort_unstable();
        let mut y = outside;
        if !pairs.is_empty() {
            let (words, places): (Vec<i32>, Vec<i32>) = pairs.into_iter().unzip();
            let last = i32::try_from(words.len() - 1).unwrap_or(i32::MAX);
            let (words, places) = (constant(words)?, constant(places)?);
            let flat = x.reshape([-1])?;
            let at = words.searchsorted(&flat, Side::Left)?.minimum(last)?;
            let found = words.gather(&at, 0)?.equal(&flat)?.reshape(x.shape())?;
            y = where_(&found, &places.gather(&at, 0)?.reshape(x.shape())?, &y)?;
        }
        // A tensor has no other numbers.
        let mask = lookup.mask_token.and_then(|mask| i32::try_from(mask).ok());
        let mask = mask.map(|mask| x.equal(mask)).transpose()?;
        if lookup.num_oov_indices == 0 {
            let checked = match &mask {
                Some(mask) => where_(mask, &filled(0)?, &y)?,
                None => y.clone(),
            };
            crate::debugging::assert_non_negative(
                &checked,
                "IntegerLookup: a number is not in the vocabulary, and num_oov_indices is 0.",
            )?;
        }
        if let Some(mask) = mask {
            let masked = if lookup.output_mode == OutputMode::Int { 0 } else { -1 };
            y = where_(&mask, &filled(masked)?, &y)?;
        }
        Ok(y)
    }
}

impl Layer for IntegerLookup {
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        // A stack that is built from a shape is given floats, which Keras converts, too.
        if x.dtype() == DType::Bool {
            return Err(Error::DType(message!(
                "IntegerLookup: the input {:?} is bool; it must be integers. Convert it first.",
                x.shape()
            )));
        }
        let lookup = &self.lookup;
        if lookup.invert {
            return Err(Error::Data(message!(
                "IntegerLookup: with invert, it maps indices to 64-bit integers, which tensors do not have. Call it on the host (apply)."
            )));
        }
        let y = self.indices(&x.cast(DType::I32)?)?;
        let mode = lookup.output_mode;
        if mode == OutputMode::Int {
            return Ok(y);
        }
        let (depth, idf) =
            lookup.encoding(|encoding| Ok((encoding.depth, encoding.idf.to_vec())))?;
        if mode != OutputMode::TfIdf {
            return encode("IntegerLookup", &y, depth, mode, DType::I32);
        }
        let counts = encode("IntegerLookup", &y, depth, OutputMode::Count, DType::F32)?;
        let mut weights = idf;
        weights.resize(depth, 0.0);
        counts.multiply(&x.device().scope(|| Tensor::from_slice(&weights, [depth]))?)
    }

    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}
