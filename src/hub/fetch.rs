//! Brings the files of a network into the cache folder.
//!
//! A file that has its name there is complete, and is not requested again. `NAME.absent` records that the server has no such file;
//! `commit` is the commit of the repository from which the first file came, and from which all others are taken.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::HubOptions;
use super::folder::{CONFIG, INDEX, TOKENIZER, WEIGHTS};
use super::place::Remote;
use super::transfer::{self, Outcome, Wanted};
use crate::error::{Error, Result, message};
use crate::files::{self, cache_folder};
use crate::trackable::weights::index;

/// The largest description of a network, and the largest vocabulary.
const TEXT: u64 = 256 << 20;

/// The largest number of files with weights.
const PARTS: usize = 1000;

struct Session<'a> {
    remote: &'a Remote,
    options: &'a HubOptions,
    folder: PathBuf,
    agent: ureq::Agent,
    offline: bool,
    commit: Option<String>,
}

/// Downloads the files that the cache folder lacks, and returns their folder.
pub(super) fn fetch(
    remote: &Remote,
    options: &HubOptions,
    env: cache_folder::Env,
) -> Result<PathBuf> {
    for (name, sha256) in &options.sha256 {
        if !transfer::is_sha256(sha256) {
            return Err(Error::Data(message!(
                "hub: the SHA-256 of '{name}' is {sha256:?}; it must have 64 hexadecimal digits."
            )));
        }
    }
    let cache = match options.cache.as_os_str().is_empty() {
        false => options.cache.clone(),
        true => cache_folder::cache(env).map(|cache| cache.join("hub")).ok_or_else(|| {
            Error::Data(
                "hub: there is no folder to download to, as neither a home nor a cache folder is set. Set WGRAD_CACHE or \
                 HubOptions::cache to a folder that can be written."
                    .into(),
            )
        })?,
    };
    let folder = cache.join(folder_name(remote));
    let set = env("WGRAD_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0");
    let local = remote.base.contains("://127.0.0.1") || remote.base.contains("://localhost");
    let mut session = Session {
        remote,
        options,
        agent: transfer::agent(local),
        offline: options.offline || set,
        commit: match remote.revision {
            Some(_) => {
                fs::read_to_string(folder.join("commit")).ok().filter(|text| is_commit(text))
            }
            None => None,
        },
        folder,
    };
    session.all()?;
    Ok(session.folder)
}

/// A folder for the files of `remote`: readable, and another one for each URL and revision.
fn folder_name(remote: &Remote) -> String {
    let all = remote.url(None, "");
    let shown = format!("{}-{}", remote.shown, remote.revision.as_deref().unwrap_or("url"));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let text: String = shown.chars().map(plain).take(100).collect();
    format!("{}-{}", text.trim_start_matches('.'), transfer::key(&all))
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Session<'_> {
    fn all(&mut self) -> Result<()> {
        if !self.offline {
            files::make_folder(&self.folder).map_err(|error| Error::io(&self.folder, error))?;
        }
        if !self.file(CONFIG, TEXT)? {
            return Err(self.lacks(CONFIG, "which says what the network is"));
        }
        let most = self.options.max_bytes;
        let has = |session: &Self, name: &str| session.folder.join(name).is_file();
        // Without a request for the single file if the parts are listed already.
        let single = !has(self, INDEX) || has(self, WEIGHTS);
        if !(single && self.file(WEIGHTS, most)?) {
            if !self.file(INDEX, TEXT)? {
                return Err(self.lacks(
                    WEIGHTS,
                    "nor model.safetensors.index.json. If it has pytorch_model.bin, load that with PyTorch, write it with \
                     safetensors.torch.save_file, and pass the folder",
                ));
            }
            let path = self.folder.join(INDEX);
            let text = files::read(&path).map_err(|error| Error::io(&path, error))?;
            let parts = index::files(&text, &path)?;
            if parts.len() > PARTS {
                return Err(Error::Data(message!(
                    "hub: {}: the index lists {} files, and at most {PARTS} are fetched. Take another copy.",
                    path.display(),
                    parts.len()
                )));
            }
            // A part must not take the name of another file here.
            if let Some(other) = parts.iter().find(|part| !part.ends_with(".safetensors")) {
                return Err(Error::Data(message!(
                    "hub: {}: the index lists '{other}', which is not a safetensors file. Take another copy.",
                    path.display()
                )));
            }
            for part in parts {
                if !self.file(&part, most)? {
                    return Err(self.lacks(&part, "which the index lists"));
                }
            }
        }
        self.file(TOKENIZER, TEXT)?;
        Ok(())
    }

    /// Makes sure that a file is there; false if the server has none.
    fn file(&mut self, name: &str, most: u64) -> Result<bool> {
        let path = self.folder.join(name);
        let io = |error| Error::io(&path, error);
        let sha256 = self.options.sha256.iter().find(|(of, _)| of == name);
        let sha256 = sha256.map(|(_, sha256)| sha256.to_ascii_lowercase());
        if path.is_file() {
            let found = match &sha256 {
                Some(_) => Some(transfer::sha256_of(&path).map_err(io)?),
                None => None,
            };
            if found == sha256 {
                return Ok(true);
            }
            if self.offline {
                return Err(Error::Data(message!(
                    "hub: {}: the SHA-256 is {}, and it should be {}. Remove the file, and call again with a network, without \
                     WGRAD_OFFLINE and HubOptions::offline.",
                    path.display(),
                    found.unwrap_or_default(),
                    sha256.unwrap_or_default()
                )));
            }
        }
        let absent = self.folder.join(format!("{name}.absent"));
        if self.offline {
            if name == TOKENIZER || absent.is_file() || (name == WEIGHTS && self.has_parts()) {
                return Ok(false);
            }
            return Err(self.missing(name));
        }
        if absent.is_file() {
            return Ok(false);
        }
        let url = self.remote.url(self.commit.as_deref(), name);
        let wanted = Wanted { url: &url, path: &path, sha256: sha256.as_deref(), most };
        match transfer::fetch(&self.agent, &wanted)? {
            Outcome::Absent => {
                // Whoever asks for the configuration of nothing may try again.
                if name != CONFIG {
                    files::replace(&absent, |_| Ok(())).map_err(io)?;
                }
                Ok(false)
            }
            Outcome::Complete(commit) => {
                let commit = commit.filter(|commit| is_commit(commit));
                if let (None, Some(commit), Some(_)) = (&self.commit, commit, &self.remote.revision)
                {
                    let path = self.folder.join("commit");
                    files::replace(&path, |file| file.write_all(commit.as_bytes()))
                        .map_err(|error| Error::io(&path, error))?;
                    self.commit = Some(commit);
                }
                Ok(true)
            }
        }
    }

    fn has_parts(&self) -> bool {
        self.folder.join(INDEX).is_file()
    }

    /// The error for a file that the server does not have.
    fn lacks(&self, name: &str, more: &str) -> Error {
        let Remote { shown, .. } = self.remote;
        Error::Data(message!(
            "hub: {shown}: there is no {name}, {more}. Its URL would be {}. Check the name and the revision; if you mean a folder \
             of this machine, there is none with this name.",
            self.remote.url(self.commit.as_deref(), name)
        ))
    }

    /// The error for a file that is not here without a network.
    fn missing(&self, name: &str) -> Error {
        Error::Data(message!(
            "hub: {}: this program is offline, and '{name}' is not in {}. Call once with a network, without WGRAD_OFFLINE and \
             HubOptions::offline, or put the file there; it comes from {}.",
            self.remote.shown,
            self.folder.display(),
            self.remote.url(self.commit.as_deref(), name)
        ))
    }
}
