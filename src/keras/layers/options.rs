//! How Keras writes the options that only some layers have as JSON.

use serde_json::{Value, json};

use crate::image::ResizeMethod;
use crate::keras::ConfigValue;
use crate::shape::Sizes;

impl ConfigValue for Sizes {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(json!(self.0.as_slice()))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        Vec::<i64>::from_json(value).map(Sizes::from)
    }
}

impl ConfigValue for ResizeMethod {
    fn to_json(&self) -> std::result::Result<Value, String> {
        let named = RESIZE_METHODS.iter().find(|(_, method)| method == self);
        Ok(json!(named.ok_or("has no name in Keras")?.0))
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let named = RESIZE_METHODS.iter().find(|(name, _)| value.as_str() == Some(name));
        named.map(|(_, method)| *method).ok_or_else(|| {
            let names: Vec<&str> = RESIZE_METHODS.iter().map(|(name, _)| *name).collect();
            format!("one of {}", names.join(", "))
        })
    }
}

const RESIZE_METHODS: [(&str, ResizeMethod); 6] = [
    ("nearest", ResizeMethod::NearestNeighbor),
    ("bilinear", ResizeMethod::Bilinear),
    ("bicubic", ResizeMethod::Bicubic),
    ("lanczos3", ResizeMethod::Lanczos3),
    ("lanczos5", ResizeMethod::Lanczos5),
    ("area", ResizeMethod::Area),
];
