//! Keras's JSON for options that only some layers have.

use serde_json::{Value, json};

use crate::keras::ConfigValue;
use crate::ops::image::{FillMode, Interpolation, ResizeMethod};
use crate::shape::Sizes;

impl ConfigValue for Sizes {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!(self.0.as_slice()))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        Vec::<i64>::from_json(value).map(Sizes::from)
    }
}

/// Implements types that Keras writes as words.
macro_rules! words {
    ($($type:ident { $($word:literal = $value:ident,)* })*) => {$(
        impl ConfigValue for $type {
            fn to_json(&self) -> std::result::Result<Value, String> {
                let known = [$(($word, $type::$value)),*];
                let named = known.iter().find(|(_, value)| value == self);
                Ok(json!(named.ok_or("has no name in Keras")?.0))
            }

            fn from_json(value: &Value) -> std::result::Result<Self, String> {
                match value.as_str() {
                    $(Some($word) => Ok($type::$value),)*
                    _ => Err(format!("one of {}", [$($word),*].join(", "))),
                }
            }
        }
    )*};
}
pub(crate) use words;
words! {
    ResizeMethod {
        "nearest" = NearestNeighbor,
        "bilinear" = Bilinear,
        "bicubic" = Bicubic,
        "lanczos3" = Lanczos3,
        "lanczos5" = Lanczos5,
        "area" = Area,
    }
    FillMode {
        "constant" = Constant,
        "reflect" = Reflect,
        "wrap" = Wrap,
        "nearest" = Nearest,
    }
    Interpolation {
        "nearest" = Nearest,
        "bilinear" = Bilinear,
    }
}
