//! [`HashedCrossing`]: bins of combinations of values.

use super::category_encoding::OutputMode;
use super::hashing::check_bins;
use super::host_encoding::Encoding;
use super::host_layer::integers;
use crate::error::{Error, Result, message};
use crate::host_array::hashes::{self, CROSS_KEY};
use crate::host_array::{HostArray, HostDType};
use crate::trackable::{Parts, Trackable};

/// Maps each combination of values of several inputs to a bin, by TensorFlow's hash of crosses. Inputs are strings or integers, all
/// `[N]`, `[N,1]` or single values. Bins are those of Keras.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{HashedCrossing, HostInput};
/// let names = ["A", "B", "A", "B", "A"];
/// let places = [101, 101, 101, 102, 102];
/// let bins = HashedCrossing::new(5).apply(&[&names, &places])?;
/// assert_eq!(bins.to_array::<i64>()?.into_raw_vec_and_offset().0, [1, 4, 1, 1, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HashedCrossing {
    num_bins: usize,
    output_mode: OutputMode,
}

impl HashedCrossing {
    /// Creates a layer with this number of bins.
    pub fn new(num_bins: usize) -> Self {
        HashedCrossing { num_bins, output_mode: OutputMode::Int }
    }

    /// Sets the output format: [`OutputMode::Int`], the default, or [`OutputMode::OneHot`].
    #[must_use]
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// The bins of combinations: of the first values of all inputs, of the second ones, and so on.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are fewer than two inputs, or their shapes differ or are others; [`Error::DType`] if one is not
    /// strings or integers; [`Error::Data`] if the options are invalid.
    pub fn apply(&self, inputs: &[&dyn super::HostInput]) -> Result<HostArray<'static>> {
        let arrays: Vec<HostArray<'_>> = inputs.iter().map(|input| input.host_array()).collect();
        self.call_host(&arrays)
    }

    /// Same as [`apply`](HashedCrossing::apply), for arrays.
    ///
    /// # Errors
    /// Same as [`apply`](HashedCrossing::apply).
    pub fn call_host(&self, inputs: &[HostArray<'_>]) -> Result<HostArray<'static>> {
        check_bins("HashedCrossing", self.num_bins)?;
        if !matches!(self.output_mode, OutputMode::Int | OutputMode::OneHot) {
            return Err(Error::Data(message!(
                "HashedCrossing: output_mode is {}; it must be int or one_hot.",
                self.output_mode.name()
            )));
        }
        let [first, _, ..] = inputs else {
            return Err(Error::Shape(message!(
                "HashedCrossing: {} inputs; there must be two or more to cross.",
                inputs.len()
            )));
        };
        let shape = first.shape();
        let wrong = inputs.iter().find(|input| input.shape() != shape);
        if wrong.is_some() || shape.len() > 2 || shape.get(1).is_some_and(|size| *size != 1) {
            let other = wrong.unwrap_or(first).shape();
            return Err(Error::Shape(message!(
                "HashedCrossing: inputs are {shape:?} and {other:?}; all must have the same shape, [N], [N, 1] or []."
            )));
        }
        let columns: Vec<Vec<u64>> = inputs.iter().map(hashed).collect::<Result<_>>()?;
        let bins = self.num_bins as u64;
        let ids = (0..first.len())
            .map(|row| hashes::cross(columns.iter().map(|column| column[row]), CROSS_KEY, bins))
            .collect();
        let dtype =
            if self.output_mode == OutputMode::Int { HostDType::I64 } else { HostDType::F32 };
        let encoding = Encoding {
            layer: "HashedCrossing",
            mode: self.output_mode,
            depth: self.num_bins,
            dtype,
            idf: &[],
        };
        encoding.encode(shape, ids)
    }

    /// Whether the results are bins, and not rows of zeros and ones.
    pub(crate) fn makes_indices(&self) -> bool {
        self.output_mode == OutputMode::Int
    }

    /// The layer's class and options; Keras's `get_config`.
    ///
    /// # Errors
    /// None; layers have this form in common.
    #[cfg(feature = "json")]
    pub fn describe(&self) -> Result<crate::keras::Config> {
        let mut config = crate::keras::Config::new("HashedCrossing");
        config.set("num_bins", &self.num_bins)?;
        config.set("output_mode", &self.output_mode)?;
        config.set("sparse", &false)?;
        Ok(config)
    }

    /// Creates the layer that a config describes.
    ///
    /// # Errors
    /// [`Error::Data`] if an option is unknown, missing or invalid.
    #[cfg(feature = "json")]
    pub fn from_config(config: &crate::keras::Config) -> Result<Self> {
        config.only(&["num_bins", "output_mode"], &[("sparse", false.into())])?;
        let mut layer = HashedCrossing::new(config.need("num_bins")?);
        if let Some(mode) = config.get("output_mode")? {
            layer.output_mode = mode;
        }
        check_bins("HashedCrossing", layer.num_bins)?;
        Ok(layer)
    }
}

/// The values of an input as they are joined.
fn hashed(input: &HostArray<'_>) -> Result<Vec<u64>> {
    Ok(match input.strings() {
        Some(texts) => texts.iter().map(|text| hashes::fast(text)).collect(),
        None => {
            integers("HashedCrossing", input)?.into_iter().map(|number| number as u64).collect()
        }
    })
}

impl Trackable for HashedCrossing {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "HashedCrossing"
    }
}
