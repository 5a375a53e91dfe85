//! Networks that others have published: [`load`] reads a folder of Hugging Face's files, or downloads it, and chooses the
//! architecture by its `config.json`.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::hub::{self, HubOptions};
//! use wgrad::keras::applications::{CausalLm, GenerateOptions, Gpt2, Gpt2Config};
//! use wgrad::weights::SaveOptions;
//! use wgrad::Trackable;
//! // A folder as others publish them: "openai-community/gpt2" would be downloaded (feature `download`).
//! let folder = std::env::temp_dir().join(format!("wgrad-hub-doc-{}", std::process::id()));
//! let sizes = r#"{"model_type": "gpt2", "vocab_size": 50, "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;
//! # std::fs::create_dir_all(&folder).unwrap();
//! # std::fs::write(folder.join("config.json"), sizes).unwrap();
//! # Gpt2::new(Gpt2Config::from_json(sizes)?)?.save_weights(folder.join("model.safetensors"))?;
//!
//! let gpt2 = hub::load(&folder, HubOptions::new())?.into_gpt2()?;
//! let text = gpt2.generate(&[1, 2, 3], GenerateOptions::new().max_new_tokens(5))?;
//! assert_eq!(text.count(), 5);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "download")]
mod fetch;
mod folder;
mod model;
mod network;
#[cfg(feature = "download")]
mod partial;
mod place;
#[cfg(feature = "download")]
mod transfer;

use std::path::{Path, PathBuf};

pub use model::{HubModel, Network};

use crate::error::Result;
use crate::support::options::options;
use place::Place;

options! {
    /// How [`load`] finds files. All but the folder of a local network need the feature `download`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HubOptions {
        /// Sets the version of a repository: a branch, a tag or a commit. Only a commit never changes.
        revision: String as impl Into<String> = "main".to_string(),
        /// Sets the folder for downloaded files. Default: `hub` in the folder that `WGRAD_CACHE` names, or `wgrad/hub` in the
        /// system's cache folder.
        cache: PathBuf as impl Into<PathBuf> = PathBuf::new(),
        /// Sets whether only files that are there are used. `WGRAD_OFFLINE=1` does the same for all calls.
        offline: bool = false,
        /// Sets checksums: names of files, and the SHA-256 of their contents in hexadecimal digits. Files in the cache folder are
        /// checked, too. Without, a file is checked if the server names its SHA-256, as Hugging Face's does for weights.
        sha256: Vec<(String, String)> as impl Into<Vec<(String, String)>> = Vec::new(),
        /// Sets the largest size of a file that is downloaded, in bytes.
        max_bytes: u64 = 64 << 30,
        /// Sets the server of repositories that are named `OWNER/NAME`.
        endpoint: String as impl Into<String> = "https://huggingface.co".to_string(),
    }
}

/// Loads a published network: a folder, the URL of a folder, or a repository `OWNER/NAME` of Hugging Face.
///
/// The folder must have `config.json`, which says what the network is, and `model.safetensors` or
/// `model.safetensors.index.json` with its parts; `tokenizer.json` is read if it is there and the feature `tokenizers` is on. The
/// networks are those of [`Network`]. A URL and a repository need the feature `download`; their files are stored in a cache
/// folder, and the next call takes them from there. [The guide](crate::docs::hub) has more.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if a file cannot be read or written; [`Error::Data`](crate::Error::Data) if one is missing, is
/// damaged, cannot be downloaded or describes a network that is not among those here;
/// [`Error::Checkpoint`](crate::Error::Checkpoint) if the weights are those of another network. The message says what to do.
pub fn load(place: impl AsRef<Path>, options: HubOptions) -> Result<HubModel> {
    // Without downloads, every place is a folder.
    #[cfg_attr(not(feature = "download"), expect(clippy::infallible_destructuring_match))]
    let folder = match place::parse(place.as_ref(), &options)? {
        Place::Folder(folder) => folder,
        #[cfg(feature = "download")]
        Place::Remote(remote) => fetch::fetch(&remote, &options, &|name| std::env::var_os(name))?,
    };
    folder::read(folder)
}
