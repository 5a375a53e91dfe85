//! A published network from the files in a folder.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::model::HubModel;
use super::network;
use crate::error::{Error, Result, message};

pub(super) const CONFIG: &str = "config.json";
pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";

/// No `config.json` is larger.
const LARGEST: u64 = 16 << 20;

pub(super) fn read(folder: PathBuf) -> Result<HubModel> {
    let path = folder.join(CONFIG);
    let config = text(&folder, &path)?;
    let weights = [WEIGHTS, INDEX].map(|name| folder.join(name));
    let Some(weights) = weights.into_iter().find(|path| path.is_file()) else {
        return Err(lacking(
            &folder,
            "model.safetensors or model.safetensors.index.json",
            "If there is a pytorch_model.bin, load it with PyTorch and write it with safetensors.torch.save_file",
        ));
    };
    let found = network::build(&path, &config, &weights)?;
    #[cfg(feature = "tokenizers")]
    let tokenizer = {
        let path = folder.join(TOKENIZER);
        path.is_file().then(|| crate::text::Tokenizer::from_file(path)).transpose()?
    };
    Ok(HubModel {
        network: found.network,
        folder,
        config,
        labels: found.labels,
        stop_tokens: found.stop_tokens,
        #[cfg(feature = "tokenizers")]
        tokenizer,
    })
}

fn text(folder: &Path, path: &Path) -> Result<String> {
    let io = |error| Error::io(path, error);
    match crate::files::look(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(lacking(
                folder,
                "config.json, which says what the network is",
                "Take it from where the weights were published; to load weights without it, call with_weights of their network",
            ));
        }
        found => found.map_err(io)?,
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(io)?;
    let wrong = |what: &str| {
        Error::Data(message!(
            "hub: {}: {what}. It is damaged or not the description of a network; take another copy.",
            path.display()
        ))
    };
    if bytes.len() as u64 > LARGEST {
        return Err(wrong("it has more than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text"))
}

fn lacking(folder: &Path, what: &str, remedy: &str) -> Error {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    let found = match (names.is_empty(), more) {
        (true, _) => "it is empty".to_string(),
        (_, 0) => format!("it has {}", names.join(", ")),
        _ => format!("it has {} and {more} more", names.join(", ")),
    };
    Error::Data(message!("hub: {}: there is no {what}; {found}. {remedy}.", folder.display()))
}
