//! [`BundleWriter`]: writes tensors one after another, and then their index.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use prost::Message;

use super::proto::{BundleEntry, BundleHeader};
use super::table::TableWriter;
use super::{VERSION, strings};
use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;
use crate::files::protobuf::{TensorShapeProto, VersionDef};
use crate::host_array::HostArray;

/// Writes a bundle with one shard. The bytes go to `W` at once; only the entries of the index are stored.
pub(crate) struct BundleWriter<W: Write> {
    data: W,
    /// The name in messages.
    name: PathBuf,
    offset: u64,
    entries: BTreeMap<String, BundleEntry>,
}

impl<W: Write> BundleWriter<W> {
    pub(crate) fn new(data: W) -> Self {
        BundleWriter::named(data, Path::new("the checkpoint's data"))
    }

    /// As [`BundleWriter::new`]; `name` is that of the data file.
    pub(super) fn named(data: W, name: &Path) -> Self {
        BundleWriter { data, name: name.to_path_buf(), offset: 0, entries: BTreeMap::new() }
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the name is used or empty, or TensorFlow lacks the dtype; [`Error::Io`] if writing fails.
    pub(crate) fn add(&mut self, key: &str, array: &HostArray<'_>) -> Result<()> {
        if array.dtype().number() == 0 {
            return Err(Error::Checkpoint(message!(
                "Saving \"{key}\": TensorFlow has no tensors of {}.",
                array.dtype()
            )));
        }
        self.begin(key)?;
        let Some(strings) = array.strings() else {
            let bytes = array.bytes();
            return self.put(key, array, masked_crc32c(bytes), &[bytes]);
        };
        let (head, crc) = strings::encode(strings);
        let parts: Vec<&[u8]> =
            std::iter::once(&head[..]).chain(strings.iter().map(|string| &string[..])).collect();
        self.put(key, array, crc, &parts)
    }

    /// The underlying writer, and the contents of the index file.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub(crate) fn finish(mut self) -> Result<(W, Vec<u8>)> {
        self.flush()?;
        let index = self.index(1);
        Ok((self.data, index))
    }

    /// Flushes all bytes.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.data.flush().map_err(|error| Error::io(&self.name, error))
    }

    /// The contents of the index file, if the data file is the first of `shards`, and the others are not needed.
    pub(super) fn index(&self, shards: u32) -> Vec<u8> {
        let version = VersionDef { producer: VERSION, ..VersionDef::default() };
        let header =
            BundleHeader { num_shards: shards as i32, endianness: 0, version: Some(version) };
        let mut table = TableWriter::new();
        table.add(b"", &header.encode_to_vec());
        for (key, entry) in &self.entries {
            table.add(key.as_bytes(), &entry.encode_to_vec());
        }
        table.finish()
    }

    fn begin(&self, key: &str) -> Result<()> {
        let problem = match key {
            "" => "a tensor has no name",
            taken if self.entries.contains_key(taken) => "two tensors have this name",
            _ => return Ok(()),
        };
        Err(Error::Checkpoint(message!("Saving \"{key}\": {problem}; give each its own.")))
    }

    fn put(
        &mut self,
        key: &str,
        array: &HostArray<'_>,
        crc32c: u32,
        parts: &[&[u8]],
    ) -> Result<()> {
        let mut size = 0;
        for part in parts {
            self.data.write_all(part).map_err(|error| Error::io(&self.name, error))?;
            size += part.len() as u64;
        }
        let entry = BundleEntry {
            dtype: array.dtype().number(),
            shape: Some(TensorShapeProto::new(array.shape())),
            shard_id: 0,
            offset: self.offset as i64,
            size: size as i64,
            crc32c,
            slices: Vec::new(),
        };
        self.offset += size;
        self.entries.insert(key.to_string(), entry);
        Ok(())
    }
}
