//! The files inside of a `.keras` archive.

use std::io::{Cursor, Read};
use std::path::Path;

use crate::error::{Error, Result, message};
use crate::files::zip;

/// The file with the weights.
pub(super) const WEIGHTS: &str = "model.weights.h5";

pub(super) fn damaged(path: &Path, what: &str) -> Error {
    Error::Data(message!(
        "{}: load_model: {what}. It is damaged or not a .keras file; take another copy.",
        path.display()
    ))
}

/// The files in a .keras archive.
pub(super) struct Archive<'a> {
    from: Cursor<&'a [u8]>,
    members: Vec<zip::Member>,
    path: &'a Path,
}

impl<'a> Archive<'a> {
    pub(super) fn open(bytes: &'a [u8], path: &'a Path) -> Result<Self> {
        let mut from = Cursor::new(bytes);
        let members = zip::members(&mut from).map_err(|error| damaged(path, &error.to_string()))?;
        Ok(Archive { from, members, path })
    }

    #[cfg(feature = "preprocessing")]
    pub(super) fn contains(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    pub(super) fn file(&mut self, name: &str) -> Result<Vec<u8>> {
        let wrong = |what: &str| damaged(self.path, what);
        // Limits the decompressed size. Keras does not compress the archive, and compressing it again saves little.
        let size = self.from.get_ref().len() as u64;
        let longest = size.saturating_mul(16).saturating_add(1 << 16);
        let member = self.members.iter().find(|member| member.name == name);
        let member = member.ok_or_else(|| wrong(&format!("the archive has no '{name}'")))?;
        let opened = zip::open(&mut self.from, member);
        let mut contents = opened.map_err(|error| wrong(&format!("'{name}': {error}")))?;
        let mut bytes = Vec::new();
        let read = (&mut contents).take(longest).read_to_end(&mut bytes);
        let read = read.and_then(|_| contents.check());
        read.map_err(|error| wrong(&format!("'{name}': {error}")))?;
        Ok(bytes)
    }
}

/// The weights in a .keras archive, in Keras's HDF5 format.
pub(super) fn weights_in(bytes: &[u8], path: &Path) -> Result<Vec<u8>> {
    Archive::open(bytes, path)?.file(WEIGHTS)
}
