//! Reads the sizes of a network from the `config.json` that Hugging Face publishes with its weights.

use serde_json::{Map, Value};

use crate::error::{Error, Result, message};

pub(super) struct ConfigJson {
    network: &'static str,
    map: Map<String, Value>,
}

impl ConfigJson {
    /// The contents of a file of a network whose `model_type` is `kind`.
    pub(super) fn parse(network: &'static str, kind: &str, text: &str) -> Result<Self> {
        let map: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            Error::Data(message!(
                "{network}: config.json is not a valid JSON object: {error}. Take another copy."
            ))
        })?;
        match map.get("model_type").and_then(Value::as_str) {
            Some(found) if found != kind => Err(Error::Data(message!(
                "{network}: config.json is of a network of the type '{found}', and this one is '{kind}'. Use the files of such a \
                 network."
            ))),
            _ => Ok(ConfigJson { network, map }),
        }
    }

    /// Sets `to` to the value called `name`, if it is there.
    pub(super) fn size(&self, name: &str, to: &mut usize) -> Result<()> {
        let found = self.found(name);
        let Some(value) = found else { return Ok(()) };
        *to = value
            .as_u64()
            .and_then(|size| usize::try_from(size).ok())
            .ok_or_else(|| self.wrong(name, value, "a whole number"))?;
        Ok(())
    }

    pub(super) fn number(&self, name: &str, to: &mut f32) -> Result<()> {
        let Some(value) = self.found(name) else { return Ok(()) };
        *to = value.as_f64().ok_or_else(|| self.wrong(name, value, "a number"))? as f32;
        Ok(())
    }

    pub(super) fn flag(&self, name: &str, to: &mut bool) -> Result<()> {
        let Some(value) = self.found(name) else { return Ok(()) };
        *to = value.as_bool().ok_or_else(|| self.wrong(name, value, "true or false"))?;
        Ok(())
    }

    /// Checks that the value called `name`, if it is there, is one that this crate's network has; `values` are JSON.
    pub(super) fn only(&self, name: &str, values: &[&str]) -> Result<()> {
        let Some(value) = self.found(name) else { return Ok(()) };
        if values.contains(&&*value.to_string()) {
            return Ok(());
        }
        Err(Error::Data(message!(
            "{}: '{name}' in config.json is {value}, and this network has {}, so its results would be wrong. Take weights that \
             were trained with that, or run the network as an ONNX model with onnx::load.",
            self.network,
            values.join(" or ")
        )))
    }

    /// The object called `name`, if it is there.
    pub(super) fn object(&self, name: &str) -> Option<ConfigJson> {
        let map = self.found(name)?.as_object()?.clone();
        Some(ConfigJson { network: self.network, map })
    }

    fn found(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, value: &Value, wanted: &str) -> Error {
        Error::Data(message!(
            "{}: '{name}' in config.json is {value}; it must be {wanted}.",
            self.network
        ))
    }
}
