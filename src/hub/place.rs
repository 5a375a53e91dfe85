//! What the first argument of `load` means: a folder, a URL, or a repository.

use std::path::{Path, PathBuf};

use super::HubOptions;
use crate::error::{Error, Result, message};

pub(super) enum Place {
    Folder(PathBuf),
    #[cfg(feature = "download")]
    Remote(Remote),
}

/// A folder of files on a server.
#[cfg(feature = "download")]
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// As the program has named it.
    pub(super) shown: String,
    /// The URL without a slash at its end; a repository's has no revision.
    pub(super) base: String,
    /// The revision of a repository.
    pub(super) revision: Option<String>,
}

#[cfg(feature = "download")]
impl Remote {
    /// The URL of a file, of the commit if it is known.
    pub(super) fn url(&self, commit: Option<&str>, file: &str) -> String {
        match commit.or(self.revision.as_deref()) {
            Some(revision) => {
                format!("{}/resolve/{}/{file}", self.base, revision.replace('/', "%2F"))
            }
            None => format!("{}/{file}", self.base),
        }
    }
}

/// The owner and the name of a repository.
fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (1..=96).contains(&part.len()) && !part.starts_with(['.', '-']) && part.chars().all(of_name)
    };
    text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name))
}

fn wrong(place: &Path, what: &str) -> Error {
    Error::Data(message!("hub: {}: {what}.", place.display()))
}

pub(super) fn parse(place: &Path, options: &HubOptions) -> Result<Place> {
    let text = place.to_str().unwrap_or_default();
    let url = text.starts_with("https://") || text.starts_with("http://");
    if !url && place.is_dir() {
        return Ok(Place::Folder(place.to_path_buf()));
    }
    if !url && place.exists() {
        return Err(wrong(
            place,
            "this is a file; pass the folder that has config.json and the weights. To load weights alone, call with_weights of \
             their network",
        ));
    }
    if !url && !is_repository(text) {
        return Err(wrong(
            place,
            "there is no such folder. Pass a folder that has config.json and the weights, its URL (https://..), or a repository \
             of Hugging Face as OWNER/NAME",
        ));
    }
    remote(place, text, url, options)
}

#[cfg(not(feature = "download"))]
fn remote(place: &Path, _: &str, _: bool, _: &HubOptions) -> Result<Place> {
    Err(wrong(
        place,
        "there is no such folder, and downloading needs the feature `download`. Turn it on, or fetch the files some other way and \
         pass their folder",
    ))
}

#[cfg(feature = "download")]
fn remote(place: &Path, text: &str, url: bool, options: &HubOptions) -> Result<Place> {
    let plain = |text: &str| !text.contains(['?', '#', '@', '\\', '%']) && text.is_ascii();
    let clean = |text: &str| plain(text) && !text.contains(|c: char| c <= ' ' || c == '\x7f');
    if url {
        let base = text.trim_end_matches('/');
        if !clean(base) || base.split("://").nth(1).is_none_or(str::is_empty) {
            return Err(wrong(
                place,
                "this is not the URL of a folder; it must have a host and a path, and nothing like ?, #, @ or %",
            ));
        }
        let remote = Remote { shown: text.into(), base: base.into(), revision: None };
        return Ok(Place::Remote(remote));
    }
    let revision = &options.revision;
    if revision.is_empty() || !clean(revision) || revision.split('/').any(|part| part == "..") {
        return Err(wrong(
            place,
            &format!("the revision {revision:?} is not the name of a branch, a tag or a commit"),
        ));
    }
    let endpoint = options.endpoint.trim_end_matches('/');
    if !clean(endpoint) || !endpoint.starts_with("http") || !endpoint.contains("://") {
        return Err(wrong(place, &format!("the endpoint {endpoint:?} is not the URL of a server")));
    }
    Ok(Place::Remote(Remote {
        shown: text.into(),
        base: format!("{endpoint}/{text}"),
        revision: Some(revision.clone()),
    }))
}
