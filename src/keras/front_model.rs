//! [`FrontModel`]: a stack of layers behind layers on the host, so that its inputs are strings.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::keras::layers::{HostInput, HostLayer};
use crate::keras::{Context, Layer, Sequential};
use crate::tensor::{HostOptions, Tensor};
use crate::trackable::{Class, Parts, Trackable};

/// A [`Sequential`] whose first layers compute on the host, such as [`TextVectorization`](crate::keras::layers::TextVectorization):
/// Keras's `Sequential` with an input of strings. Its results are those of the model for what the front makes of the strings.
///
/// `fit` trains the [`model`](FrontModel::model), with datasets that call [`preprocess`](FrontModel::preprocess).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{Dense, Embedding, GlobalAveragePooling1D, HostLayer, TextVectorization};
/// use wgrad::keras::{FrontModel, INFERENCE, Sequential};
/// let words = TextVectorization::new().output_sequence_length(4);
/// words.adapt(&["a good film", "a bad film"])?;
/// let model = Sequential::new()
///     .add(Embedding::new(words.vocabulary_size()?, 8))
///     .add(GlobalAveragePooling1D::new())
///     .add(Dense::new(1));
/// let model = FrontModel::new(model).front(words);
/// assert_eq!(model.call_host(&["a good", "bad"], INFERENCE)?.shape(), [2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FrontModel {
    front: Vec<Box<dyn HostLayer>>,
    model: Sequential,
}

impl FrontModel {
    /// Puts nothing in front of the model yet.
    pub fn new(model: Sequential) -> Self {
        FrontModel { front: Vec::new(), model }
    }

    /// Adds a layer in front of the model, behind those that have been added.
    #[must_use]
    pub fn front(mut self, layer: impl HostLayer + 'static) -> Self {
        self.front.push(Box::new(layer));
        self
    }

    /// The layers in front.
    pub fn front_layers(&self) -> impl Iterator<Item = &dyn HostLayer> {
        self.front.iter().map(|layer| &**layer)
    }

    /// The model behind them.
    pub fn model(&self) -> &Sequential {
        &self.model
    }

    /// Computes what the front makes of an input.
    ///
    /// # Errors
    /// The errors of the layers.
    pub fn preprocess<X: HostInput + ?Sized>(&self, x: &X) -> Result<HostArray<'static>> {
        let mut y = x.host_array().into_owned();
        for layer in &self.front {
            y = layer.call_host(&y)?;
        }
        Ok(y)
    }

    /// Computes the model's result. Indices reach the model as integers, rows of zeros, ones and counts as floats.
    ///
    /// # Errors
    /// The errors of the layers.
    pub fn call_host<X: HostInput + ?Sized>(&self, x: &X, cx: Context<'_>) -> Result<Tensor> {
        self.model.call(&self.tensor(x)?, cx)
    }

    /// What the model is given for an input.
    fn tensor<X: HostInput + ?Sized>(&self, x: &X) -> Result<Tensor> {
        let y = self.preprocess(x)?;
        let indices = match self.front.last() {
            Some(last) => last.cardinality()?.is_some(),
            None => true,
        };
        match indices {
            true => y.to_tensor(),
            false => y.to_tensor_of(DType::F32, HostOptions::new()),
        }
    }

    /// Computes the model's results for all examples, in batches, and reads them as one tensor. Blocks.
    ///
    /// # Errors
    /// The errors of the layers.
    #[cfg(not(target_family = "wasm"))]
    pub fn predict<X: HostInput + ?Sized>(
        &self,
        x: &X,
        options: crate::keras::PredictOptions<'_>,
    ) -> Result<Tensor> {
        use crate::keras::Model;
        self.model.predict(&self.tensor(x)?, options)
    }
}

impl Trackable for FrontModel {
    fn track(&self, parts: &mut Parts<'_>) {
        self.model.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.model.kind()
    }

    fn title(&self) -> String {
        self.model.title()
    }

    fn class(&self) -> Option<&'static Class> {
        self.model.class()
    }
}

#[cfg(feature = "keras-files")]
mod saving {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::keras::Config;
    use crate::keras::layers::host_layer_from_config;
    use crate::keras::saving::{LoadModelOptions, keras_file, read_keras_file};

    impl FrontModel {
        /// Writes the front with its vocabularies, and the model with its weights, as a `.keras` file, which Keras reads as a
        /// `Sequential` whose input is strings. The `compile` settings are not saved. Blocks.
        ///
        /// # Errors
        /// [`Error::Data`] if a layer is a custom function; [`Error::Checkpoint`] if a layer has no weights yet; [`Error::Io`] if the
        /// file cannot be written.
        #[cfg(not(target_family = "wasm"))]
        pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
            use std::io::Write;
            let (path, bytes) = (path.as_ref(), pollster::block_on(self.to_keras_async())?);
            let written = crate::files::replace(path, |file| file.write_all(&bytes));
            written.map_err(|error| Error::io(path, error))
        }

        /// Returns the contents of a `.keras` file.
        ///
        /// # Errors
        /// Same as [`FrontModel::save`].
        pub async fn to_keras_async(&self) -> Result<Vec<u8>> {
            let mut config: Value = crate::keras::saving::parse(&self.model.to_json()?)?;
            let mut front = vec![json!({
                "module": "keras.layers", "class_name": "InputLayer", "registered_name": null,
                "config": {
                    "batch_shape": [null, 1], "dtype": "string", "sparse": false, "ragged": false, "name": "input_layer",
                },
            })];
            for (at, layer) in self.front.iter().enumerate() {
                let described = layer.describe()?;
                let mut options = described.options().clone();
                options.insert("name".into(), json!(format!("front_{at}")));
                front.push(json!({
                    "module": "keras.layers", "class_name": described.class(), "config": options, "registered_name": null,
                }));
            }
            if let Some(options) = config.get_mut("config").and_then(Value::as_object_mut) {
                options.insert("build_input_shape".into(), json!([null, 1]));
                if let Some(layers) = options.get_mut("layers").and_then(Value::as_array_mut) {
                    layers.retain(|layer| layer.get("class_name") != Some(&json!("InputLayer")));
                    front.append(layers);
                    *layers = front;
                }
            }
            keras_file(&self.model, config).await
        }

        /// Loads a `Sequential` of Keras whose first layers are for strings, and its weights, without compiling it.
        ///
        /// # Errors
        /// [`Error::Io`] if the file cannot be read; else the same as [`FrontModel::from_keras`].
        #[cfg(not(target_family = "wasm"))]
        pub fn load(path: impl AsRef<Path>) -> Result<Self> {
            let path = path.as_ref();
            let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
            crate::trackable::weights::in_file(path, FrontModel::from_keras(&bytes))
        }

        /// Same as [`FrontModel::load`], from the contents of the file.
        ///
        /// # Errors
        /// [`Error::Data`] if the contents are damaged or no such model, or a layer is unknown; [`Error::Checkpoint`] if the weights do
        /// not fit the config.
        pub fn from_keras(bytes: &[u8]) -> Result<Self> {
            let mut front: Vec<Box<dyn HostLayer>> = Vec::new();
            let model =
                read_keras_file(bytes, &LoadModelOptions::new().compile(false), |config| {
                    front = take_front(config)?;
                    Ok(())
                })?;
            Ok(FrontModel { front, model: model.sequential()? })
        }
    }

    /// Takes the layers for strings out of a model's config, and gives the rest the input that they make.
    fn take_front(config: &mut Value) -> Result<Vec<Box<dyn HostLayer>>> {
        let wrong = |what: &str| Error::Data(message!("FrontModel: load: {what}."));
        if config.get("class_name") != Some(&json!("Sequential")) {
            return Err(wrong("the file does not have a Sequential"));
        }
        let options = config.get_mut("config").and_then(Value::as_object_mut);
        let options = options.ok_or_else(|| wrong("the Sequential has no 'config'"))?;
        options.remove("build_input_shape");
        let layers = options.get_mut("layers").and_then(Value::as_array_mut);
        let layers = layers.ok_or_else(|| wrong("the Sequential has no 'layers'"))?;
        let class = |layer: &Value| {
            layer.get("class_name").and_then(Value::as_str).unwrap_or_default().to_string()
        };
        layers.retain(|layer| class(layer) != "InputLayer");
        const ON_HOST: [&str; 3] = ["Hashing", "StringLookup", "TextVectorization"];
        let count = layers.iter().take_while(|layer| ON_HOST.contains(&&*class(layer))).count();
        let mut front = Vec::new();
        for layer in layers.drain(..count) {
            let options = layer.get("config").and_then(Value::as_object).cloned();
            let config = Config::with_options(class(&layer), options.unwrap_or_default());
            front.push(host_layer_from_config(&config)?);
        }
        let shape =
            layers.first().and_then(|layer| layer.pointer("/build_config/input_shape")).cloned();
        if let Some(shape) = shape {
            options.insert("build_input_shape".into(), shape);
        }
        Ok(front)
    }
}
