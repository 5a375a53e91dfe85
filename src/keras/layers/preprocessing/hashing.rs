//! [`Hashing`]: bins of strings and integers, without a vocabulary.

use super::category_encoding::OutputMode;
use super::host_encoding::Encoding;
use super::host_layer::{HostLayer, integers, strings};
use super::salt::Salt;
use crate::error::{Error, Result, message};
use crate::host_array::hashes;
use crate::host_array::{HostArray, HostDType, Number};
use crate::trackable::{Parts, Trackable};

/// Maps strings and integers to bins by a hash: FarmHash64, or SipHash-2-4 with a [`salt`](Hashing::salt). Bins are those of Keras.
/// Integers are hashed as their decimal digits; floats lose their fraction first.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{HostLayer, Hashing};
/// let bins = Hashing::new(3).apply(&[["A"], ["B"], ["C"], ["D"], ["E"]])?;
/// assert_eq!(bins.to_array::<i64>()?.into_raw_vec_and_offset().0, [1, 0, 1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Hashing {
    num_bins: usize,
    mask_value: Option<MaskValue>,
    salt: Option<Salt>,
    output_mode: OutputMode,
}

/// The value that stands for no value in the inputs of [`Hashing`]: a string or an integer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskValue(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text(String),
    Number(i64),
}

impl From<&str> for MaskValue {
    fn from(text: &str) -> Self {
        MaskValue(Kind::Text(text.to_string()))
    }
}

impl From<i64> for MaskValue {
    fn from(number: i64) -> Self {
        MaskValue(Kind::Number(number))
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for MaskValue {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Ok(match &self.0 {
            Kind::Text(text) => text.as_str().into(),
            Kind::Number(number) => (*number).into(),
        })
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        let text = value.as_str().map(MaskValue::from);
        text.or_else(|| value.as_i64().map(MaskValue::from)).ok_or("a text or an integer".into())
    }
}

impl Hashing {
    /// Creates a layer with this number of bins.
    pub fn new(num_bins: usize) -> Self {
        Hashing { num_bins, mask_value: None, salt: None, output_mode: OutputMode::Int }
    }

    /// Sets the value that has bin 0 for itself. Default: none.
    #[must_use]
    pub fn mask_value(mut self, value: impl Into<MaskValue>) -> Self {
        self.mask_value = Some(value.into());
        self
    }

    /// Sets the key of SipHash-2-4, which is used then. Default: none, FarmHash64.
    #[must_use]
    pub fn salt(mut self, salt: impl Into<Salt>) -> Self {
        self.salt = Some(salt.into());
        self
    }

    /// Sets the output format; [`OutputMode::TfIdf`] is not one of them. Default: [`OutputMode::Int`].
    #[must_use]
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// The bin of a string, behind that of the mask.
    fn bin(&self, text: &[u8], masked: bool, bins: u64, first: i64) -> i64 {
        if masked { 0 } else { first + hashes::bin(text, self.salt.map(|salt| salt.0), bins) }
    }

    fn bins(&self, x: &HostArray<'_>) -> Result<Vec<i64>> {
        let first = i64::from(self.mask_value.is_some() && self.num_bins > 1);
        let bins = self.num_bins as u64 - first as u64;
        let mask = self.mask_value.as_ref().filter(|_| first == 1).map(|mask| &mask.0);
        if x.dtype() == HostDType::String {
            let mask = match mask {
                Some(Kind::Number(number)) => {
                    return Err(Error::DType(message!(
                        "Hashing: mask_value is the integer {number}, and the input is strings. Set a string."
                    )));
                }
                Some(Kind::Text(text)) => Some(text.as_bytes()),
                None => None,
            };
            let texts = strings("Hashing", x)?.iter();
            return Ok(texts
                .map(|text| self.bin(text, mask == Some(&text[..]), bins, first))
                .collect());
        }
        let mask = match mask {
            Some(Kind::Text(text)) => {
                return Err(Error::DType(message!(
                    "Hashing: mask_value is {text:?}, and the input is {}. Set an integer.",
                    x.dtype()
                )));
            }
            Some(Kind::Number(number)) => Some(*number),
            None => None,
        };
        if let (true, Some(numbers)) = (x.dtype().is_float(), x.numbers()) {
            let bin = |number| {
                let Number::Float(x) = number else { return 0 };
                let masked = mask.is_some_and(|mask| x == mask as f64);
                self.bin((x as i64).to_string().as_bytes(), masked, bins, first)
            };
            return Ok(numbers.map(bin).collect());
        }
        let numbers = integers("Hashing", x)?.into_iter();
        let bin = |x: i64| self.bin(x.to_string().as_bytes(), mask == Some(x), bins, first);
        Ok(numbers.map(bin).collect())
    }
}

/// Checks a number of bins, which must be a positive `i64`.
pub(super) fn check_bins(layer: &str, bins: usize) -> Result<()> {
    if bins == 0 || i64::try_from(bins).is_err() {
        return Err(Error::Data(message!(
            "{layer}: num_bins is {bins}; it must be 1 or more, and less than 2^63."
        )));
    }
    Ok(())
}

impl HostLayer for Hashing {
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
        check_bins("Hashing", self.num_bins)?;
        if self.output_mode == OutputMode::TfIdf {
            return Err(Error::Data(message!(
                "Hashing: output_mode is tf_idf, and bins have no weights. Take count."
            )));
        }
        let dtype =
            if self.output_mode == OutputMode::Int { HostDType::I64 } else { HostDType::F32 };
        let encoding = Encoding {
            layer: "Hashing",
            mode: self.output_mode,
            depth: self.num_bins,
            dtype,
            idf: &[],
        };
        encoding.encode(x.shape(), self.bins(x)?)
    }

    fn cardinality(&self) -> Result<Option<usize>> {
        Ok(Some(self.num_bins).filter(|_| self.output_mode == OutputMode::Int))
    }

    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}

impl Trackable for Hashing {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "Hashing"
    }
}

/// Keras's dtype of a layer whose results are integers or floats.
#[cfg(feature = "json")]
pub(super) fn dtype_of(mode: OutputMode) -> serde_json::Value {
    let name = if mode == OutputMode::Int { "int64" } else { "float32" };
    serde_json::json!({
        "module": "keras", "class_name": "DTypePolicy", "config": {"name": name}, "registered_name": null,
    })
}

#[cfg(feature = "json")]
impl crate::keras::layers::Configured for Hashing {
    fn class_name() -> &'static str {
        "Hashing"
    }

    fn config(&self) -> Result<crate::keras::Config> {
        let mut config = crate::keras::Config::new("Hashing");
        config.set("num_bins", &self.num_bins)?;
        config.set("salt", &self.salt)?;
        config.set("mask_value", &self.mask_value)?;
        config.set("output_mode", &self.output_mode)?;
        config.set("sparse", &false)?;
        config.set_json("dtype", dtype_of(self.output_mode));
        Ok(config)
    }

    fn from_config(config: &crate::keras::Config) -> Result<Self> {
        config.only(
            &["num_bins", "salt", "mask_value", "output_mode"],
            &[("sparse", false.into())],
        )?;
        let mut layer = Hashing::new(config.need("num_bins")?);
        layer.salt = config.get::<Option<Salt>>("salt")?.flatten();
        layer.mask_value = config.get::<Option<MaskValue>>("mask_value")?.flatten();
        if let Some(mode) = config.get("output_mode")? {
            layer.output_mode = mode;
        }
        check_bins("Hashing", layer.num_bins)?;
        Ok(layer)
    }
}
