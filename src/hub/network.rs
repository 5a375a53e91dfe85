//! Chooses and builds the network that a `config.json` describes.

use std::path::Path;

use serde_json::{Map, Value};

use super::model::Network;
use crate::error::{Error, Result, message};
use crate::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, Gpt2, Gpt2Config, Llama, LlamaConfig, Vit,
    VitConfig, WeightNames, resnet,
};
use crate::keras::loading::loading;
use crate::trackable::weights::SafetensorsFile;

/// The network, and what its description says besides.
pub(super) struct Found {
    pub(super) network: Network,
    pub(super) labels: Vec<String>,
    pub(super) stop_tokens: Vec<u32>,
}

struct Description<'a> {
    /// Its file, for messages.
    path: &'a Path,
    text: &'a str,
    map: Map<String, Value>,
    weights: &'a Path,
}

/// Builds the network that the `text` of the file at `path` describes, with its weights.
pub(super) fn build(path: &Path, text: &str, weights: &Path) -> Result<Found> {
    let map: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        Error::Data(message!(
            "hub: {}: it is not a valid JSON object: {error}. Take another copy.",
            path.display()
        ))
    })?;
    let description = Description { path, text, map, weights };
    let network = description.network().map_err(|error| match error {
        // The networks do not know the file.
        Error::Data(_) => error.reworded(|text| match text.starts_with("hub: ") {
            true => text.clone(),
            false => message!("hub: {}: {text}", path.display()),
        }),
        other => other,
    })?;
    let (labels, stop_tokens) = (description.labels(), description.stop_tokens());
    Ok(Found { network, labels, stop_tokens })
}

const KNOWN: &str = "Networks with \"model_type\" bert, gpt2, llama, vit and resnet are known, and timm's with \"architecture\" \
                     resnet18, resnet34, resnet50 and vit_{tiny,small,base,large}_patch{16,32}_{224,384}";

impl Description<'_> {
    fn wrong(&self, what: &str) -> Error {
        Error::Data(message!("hub: {}: {what}.", self.path.display()))
    }

    fn string(&self, name: &str) -> Option<&str> {
        self.map.get(name).and_then(Value::as_str)
    }

    fn network(&self) -> Result<Network> {
        match (self.string("model_type"), self.string("architecture")) {
            (Some("bert"), _) => {
                let config = BertConfig::from_json(self.text)?;
                Ok(Network::Bert(Bert::with_weights(config, self.weights)?))
            }
            (Some("gpt2"), _) => {
                let config = Gpt2Config::from_json(self.text)?;
                Ok(Network::Gpt2(Gpt2::with_weights(config, self.weights)?))
            }
            (Some("llama"), _) => {
                let config = LlamaConfig::from_json(self.text)?;
                Ok(Network::Llama(Llama::with_weights(config, self.weights)?))
            }
            (Some("vit"), _) => self.vit(VitConfig::from_json(self.text)?, "classifier.weight"),
            (Some("resnet"), _) => self.resnet(),
            (Some(other), _) => Err(self.wrong(&format!(
                "there is no network of the type {other:?} here. {KNOWN}; onnx::load and saved_model::load run others"
            ))),
            (None, Some(name)) => self.timm(name),
            (None, None) => Err(self.wrong(&format!(
                "it has neither \"model_type\" nor \"architecture\", so it does not say what the network is. {KNOWN}"
            ))),
        }
    }

    /// The number of classes of the classifier in the file, which is the tensor `name`; none if it has no classifier.
    fn classes(&self, name: &str) -> Result<Option<usize>> {
        let file = SafetensorsFile::open(self.weights)?;
        Ok(file.info(name).and_then(|info| info.shape.first().copied()))
    }

    fn vit(&self, config: VitConfig, classifier: &str) -> Result<Network> {
        let config = match self.classes(classifier)? {
            Some(classes) => config.classes(classes),
            None => config.include_top(false),
        };
        Ok(Network::Vit(Vit::with_weights(config, self.weights)?))
    }

    fn image_network(
        &self,
        layers: usize,
        classifier: &str,
        names: WeightNames,
    ) -> Result<Network> {
        // Images of any size.
        let options = ApplicationOptions::new().input_shape([None, None, Some(3)]);
        let options = options.arrangement(Arrangement::Torchvision);
        let options = match self.classes(classifier)? {
            Some(classes) => options.classes(classes),
            None => options.include_top(false),
        };
        loading(|| {
            let (name, model) = match layers {
                18 => ("ResNet18", resnet::resnet18(&options)?),
                34 => ("ResNet34", resnet::resnet34(&options)?),
                _ => ("ResNet50", resnet::resnet50(&options)?),
            };
            names.load_into(&model, name, self.weights)?;
            Ok(Network::Functional(model))
        })
    }

    /// A ResNet of Hugging Face.
    fn resnet(&self) -> Result<Network> {
        let is = |name: &str, wanted: Value| self.map.get(name).is_none_or(|x| *x == wanted);
        let bottleneck = self.string("layer_type") != Some("basic");
        let widths = if bottleneck { [256, 512, 1024, 2048] } else { [64, 128, 256, 512] };
        let plain = is("embedding_size", 64.into())
            && is("num_channels", 3.into())
            && is("hidden_act", "relu".into())
            && is("hidden_sizes", widths.to_vec().into())
            && is("downsample_in_first_stage", false.into())
            && is("downsample_in_bottleneck", false.into());
        let depths = self.map.get("depths").cloned().unwrap_or_else(|| vec![3, 4, 6, 3].into());
        let layers = match (bottleneck, depths) {
            (false, depths) if depths == Value::from(vec![2, 2, 2, 2]) => 18,
            (false, depths) if depths == Value::from(vec![3, 4, 6, 3]) => 34,
            (true, depths) if depths == Value::from(vec![3, 4, 6, 3]) => 50,
            _ => 0,
        };
        if layers == 0 || !plain {
            return Err(self
                .wrong(&format!("this ResNet has other sizes than ResNet18, 34 and 50. {KNOWN}")));
        }
        self.image_network(layers, "classifier.1.weight", resnet::transformers(layers))
    }

    /// A network of timm, by its name.
    fn timm(&self, name: &str) -> Result<Network> {
        let layers = match name {
            "resnet18" => 18,
            "resnet34" => 34,
            "resnet50" => 50,
            _ => return self.timm_vit(name),
        };
        self.image_network(layers, "fc.weight", resnet::torchvision(layers))
    }

    fn timm_vit(&self, name: &str) -> Result<Network> {
        let unknown = || self.wrong(&format!("there is no network {name:?} here. {KNOWN}"));
        let parts: Vec<&str> = name.split('_').collect();
        let &["vit", size, patch, image] = &parts[..] else { return Err(unknown()) };
        let (width, layers, heads) = match size {
            "tiny" => (192, 12, 3),
            "small" => (384, 12, 6),
            "base" => (768, 12, 12),
            "large" => (1024, 24, 16),
            _ => return Err(unknown()),
        };
        let patch = match patch {
            "patch16" => 16,
            "patch32" => 32,
            _ => return Err(unknown()),
        };
        let image = match image {
            "224" => 224,
            "384" => 384,
            _ => return Err(unknown()),
        };
        let config = VitConfig::new().hidden_size(width).num_hidden_layers(layers);
        let config = config.num_attention_heads(heads).intermediate_size(4 * width);
        self.vit(config.patch_size(patch).image_size(image), "head.weight")
    }

    /// The names of the classes in their order.
    fn labels(&self) -> Vec<String> {
        let names = self.map.get("id2label").and_then(Value::as_object);
        let mut labels: Vec<(u64, String)> = names
            .into_iter()
            .flatten()
            .filter_map(|(at, name)| Some((at.parse().ok()?, name.as_str()?.to_string())))
            .collect();
        labels.sort();
        labels.into_iter().map(|(_, name)| name).collect()
    }

    fn stop_tokens(&self) -> Vec<u32> {
        let token = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
        match self.map.get("eos_token_id") {
            Some(Value::Array(tokens)) => tokens.iter().filter_map(token).collect(),
            Some(one) => token(one).into_iter().collect(),
            None => Vec::new(),
        }
    }
}
