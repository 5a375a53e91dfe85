//! [`HubModel`]: a published network with what belongs to it.

use std::path::PathBuf;

use crate::error::{Error, Result, message};
use crate::keras::Functional;
use crate::keras::applications::{Bert, Gpt2, Llama, Vit};
use crate::trackable::Trackable;

/// A network that [`load`](super::load) has found.
// There is one of them, and it is taken apart once.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Network {
    /// `"model_type": "bert"`, without its heads.
    Bert(Bert),
    /// `"model_type": "gpt2"`.
    Gpt2(Gpt2),
    /// `"model_type": "llama"`.
    Llama(Llama),
    /// `"model_type": "vit"`, or timm's `vit_{tiny,small,base,large}_patch{16,32}_{224,384}`.
    Vit(Vit),
    /// `"model_type": "resnet"` of the sizes of ResNet18, 34 and 50, or timm's `resnet18`, `resnet34` and `resnet50`, in
    /// torchvision's arrangement: images are scaled with `Scaling::Torch`, unless the publisher says otherwise. The layers can be
    /// frozen and replaced by name.
    Functional(Functional),
}

impl Network {
    fn kind(&self) -> &'static str {
        match self {
            Network::Bert(_) => "BERT",
            Network::Gpt2(_) => "GPT-2",
            Network::Llama(_) => "LLaMA",
            Network::Vit(_) => "ViT",
            Network::Functional(_) => "a network of layers for images",
        }
    }

    /// Returns the network as what has variables: to count, freeze and save them.
    pub fn trackable(&self) -> &dyn Trackable {
        match self {
            Network::Bert(model) => model,
            Network::Gpt2(model) => model,
            Network::Llama(model) => model,
            Network::Vit(model) => model,
            Network::Functional(model) => model,
        }
    }
}

/// A published network, and what its folder says about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct HubModel {
    /// The network with its weights.
    pub network: Network,
    /// The folder of the files: the one that was given, or one in the cache folder.
    pub folder: PathBuf,
    /// The text of `config.json`.
    pub config: String,
    /// The names of a classifier's classes, if `config.json` has them.
    pub labels: Vec<String>,
    /// The tokens after which a text ends, if `config.json` has them: for `GenerateOptions::stop_tokens`.
    pub stop_tokens: Vec<u32>,
    /// What turns text into tokens, if the folder has `tokenizer.json`.
    #[cfg(feature = "tokenizers")]
    pub tokenizer: Option<crate::text::Tokenizer>,
}

impl HubModel {
    fn other(&self, wanted: &str) -> Error {
        Error::Data(message!(
            "hub: {}: this is {}, not {wanted}. Use the function for it, or load the files of another network.",
            self.folder.display(),
            self.network.kind()
        ))
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// [`Error::Data`] if the folder has none.
    #[cfg(feature = "tokenizers")]
    pub fn tokenizer(&self) -> Result<&crate::text::Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| {
            Error::Data(message!(
                "hub: {}: there is no tokenizer.json, which turns text into tokens. With Python, \
                 transformers.AutoTokenizer.from_pretrained(..).save_pretrained(..) writes it from older files.",
                self.folder.display()
            ))
        })
    }

    /// Returns the network if it is a BERT.
    ///
    /// # Errors
    /// [`Error::Data`] if it is another one.
    pub fn into_bert(self) -> Result<Bert> {
        match self.network {
            Network::Bert(model) => Ok(model),
            _ => Err(self.other("BERT")),
        }
    }

    /// Returns the network if it is a GPT-2.
    ///
    /// # Errors
    /// [`Error::Data`] if it is another one.
    pub fn into_gpt2(self) -> Result<Gpt2> {
        match self.network {
            Network::Gpt2(model) => Ok(model),
            _ => Err(self.other("GPT-2")),
        }
    }

    /// Returns the network if it is LLaMA-like.
    ///
    /// # Errors
    /// [`Error::Data`] if it is another one.
    pub fn into_llama(self) -> Result<Llama> {
        match self.network {
            Network::Llama(model) => Ok(model),
            _ => Err(self.other("LLaMA")),
        }
    }

    /// Returns the network if it is a ViT.
    ///
    /// # Errors
    /// [`Error::Data`] if it is another one.
    pub fn into_vit(self) -> Result<Vit> {
        match self.network {
            Network::Vit(model) => Ok(model),
            _ => Err(self.other("ViT")),
        }
    }

    /// Returns the network if it is made of layers, as ResNet is.
    ///
    /// # Errors
    /// [`Error::Data`] if it is another one.
    pub fn into_functional(self) -> Result<Functional> {
        match self.network {
            Network::Functional(model) => Ok(model),
            _ => Err(self.other("a network of layers for images")),
        }
    }
}
