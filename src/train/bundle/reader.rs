//! [`BundleReader`]: the contents of a bundle, and the bytes of each tensor.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use prost::Message;

use super::proto::{BundleEntry, BundleHeader};
use super::slices::Slice;
use super::{VERSION, data_path, elements, index_path, strings, table};
use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;
use crate::files::protobuf::MOST_AXES;
use crate::host_array::{HostArray, HostDType};

/// The maximum number of slices of a tensor: each is compared with each.
const MOST_PIECES: usize = 4096;

/// The tensors of a bundle. The index is read at once, a tensor on request.
#[derive(Debug)]
pub(crate) struct BundleReader<'a> {
    prefix: PathBuf,
    num_shards: u32,
    /// By their keys.
    tensors: BTreeMap<Vec<u8>, TensorInfo>,
    shards: BTreeMap<u32, Shard<'a>>,
}

/// The description of a tensor in the index.
#[derive(Debug, Clone)]
pub(crate) struct TensorInfo {
    pub(crate) dtype: HostDType,
    pub(crate) shape: Vec<usize>,
    pub(super) shard: u32,
    pub(super) offset: u64,
    size: u64,
    crc: u32,
    /// The parts that its slices cover, if it has any.
    pieces: Vec<Slice>,
    /// Whether it is a slice itself.
    is_piece: bool,
}

/// The location of a shard's bytes.
#[derive(Debug)]
enum Shard<'a> {
    Memory(Cow<'a, [u8]>),
    #[cfg(not(target_family = "wasm"))]
    File(std::sync::Mutex<std::fs::File>, u64),
    /// The reason why the file cannot be read; reported only if one of its tensors is requested.
    #[cfg(not(target_family = "wasm"))]
    Unreadable(std::io::ErrorKind, String),
}

#[cfg(not(target_family = "wasm"))]
impl BundleReader<'static> {
    /// Reads the index of the bundle at `prefix`, and opens its data files: removing them later does not affect the
    /// reader.
    ///
    /// # Errors
    /// [`Error::Io`] if the index cannot be read, [`Error::Data`] if it is damaged or of another format.
    pub(crate) fn open(prefix: &Path) -> Result<Self> {
        let name = index_path(prefix);
        let index = read_index(&name).map_err(|error| match error {
            ReadError::Io(error) => Error::io(&name, error),
            ReadError::NoTable(length) => table::no_table(&name, length),
        })?;
        let mut reader = BundleReader::parse(prefix, &index)?;
        for shard in reader.needed_shards() {
            let opened = open_shard(&data_path(prefix, shard, reader.num_shards));
            let opened = opened.unwrap_or_else(|e| Shard::Unreadable(e.kind(), e.to_string()));
            reader.shards.insert(shard, opened);
        }
        Ok(reader)
    }
}

#[cfg(not(target_family = "wasm"))]
enum ReadError {
    Io(std::io::Error),
    NoTable(u64),
}

/// The contents of an index file. A large file of another kind is not read.
#[cfg(not(target_family = "wasm"))]
fn read_index(name: &Path) -> Result<Vec<u8>, ReadError> {
    use std::io::{Read, Seek, SeekFrom};
    let length = crate::files::look(name).map_err(ReadError::Io)?.len();
    if length < table::FOOTER as u64 {
        return Err(ReadError::NoTable(length));
    }
    let read = || {
        let mut file = std::fs::File::open(name)?;
        file.seek(SeekFrom::End(-8))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if table::ends_a_table(&bytes) {
            file.rewind()?;
            bytes.clear();
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    let bytes = read().map_err(ReadError::Io)?;
    if bytes.len() < table::FOOTER { Err(ReadError::NoTable(length)) } else { Ok(bytes) }
}

#[cfg(not(target_family = "wasm"))]
fn open_shard(path: &Path) -> std::io::Result<Shard<'static>> {
    let length = crate::files::look(path)?.len();
    Ok(Shard::File(std::sync::Mutex::new(std::fs::File::open(path)?), length))
}

impl<'a> BundleReader<'a> {
    /// A bundle in memory: the index, and the shards in order.
    ///
    /// # Errors
    /// [`Error::Data`] if the index is damaged or of another format.
    pub(crate) fn from_bytes(index: &[u8], shards: Vec<Cow<'a, [u8]>>) -> Result<Self> {
        let mut reader = BundleReader::parse(Path::new("checkpoint"), index)?;
        let shards = shards.into_iter().enumerate();
        reader.shards = shards.map(|(i, bytes)| (i as u32, Shard::Memory(bytes))).collect();
        Ok(reader)
    }

    fn parse(prefix: &Path, index: &[u8]) -> Result<Self> {
        let name = index_path(prefix);
        let broken = |what: std::fmt::Arguments<'_>| {
            Error::Data(message!(
                "{}: {what}. The file is corrupt; take another checkpoint.",
                name.display()
            ))
        };
        let mut header = None;
        let mut tensors = BTreeMap::new();
        table::read(&name, index, |key, value| {
            if header.is_none() {
                let found = BundleHeader::decode(value).ok().filter(|_| key.is_empty());
                header = Some(found.ok_or_else(|| broken(format_args!("it has no header")))?);
                check_header(&name, header.as_ref())?;
                return Ok(());
            }
            let entry = BundleEntry::decode(value).map_err(|error| {
                broken(format_args!("the entry \"{}\" cannot be read: {error}", key.escape_ascii()))
            })?;
            let info = TensorInfo::from_entry(&entry).map_err(|what| {
                broken(format_args!("the entry \"{}\" {what}", key.escape_ascii()))
            })?;
            tensors.insert(key.to_vec(), info);
            Ok(())
        })?;
        let header = header.ok_or_else(|| broken(format_args!("it has no header")))?;
        let num_shards = header.num_shards as u32;
        let mut reader = BundleReader {
            prefix: prefix.to_path_buf(),
            num_shards,
            tensors,
            shards: BTreeMap::new(),
        };
        reader.mark_pieces().map_err(|what| broken(format_args!("{what}")))?;
        for (key, info) in &reader.tensors {
            if !info.is_piece && std::str::from_utf8(key).is_err() {
                return Err(broken(format_args!(
                    "the name \"{}\" of a tensor is not UTF-8",
                    key.escape_ascii()
                )));
            }
            if info.shard >= num_shards {
                return Err(broken(format_args!(
                    "the tensor \"{}\" lies in shard {}, and there are {num_shards}",
                    key.escape_ascii(),
                    info.shard
                )));
            }
        }
        Ok(reader)
    }

    /// Finds the entries of the slices, which are not in the list of names.
    fn mark_pieces(&mut self) -> Result<(), String> {
        let mut pieces = BTreeSet::new();
        for (name, info) in &self.tensors {
            for piece in &info.pieces {
                let key = piece.key(name);
                let words = |what: &str| format!("the tensor \"{}\" {what}", name.escape_ascii());
                let Some(found) = self.tensors.get(&key) else {
                    return Err(words("has a piece without an entry"));
                };
                if found.dtype != info.dtype || found.shape != piece.shape(&info.shape) {
                    return Err(words("has a piece of another type or shape than it says"));
                }
                if !found.pieces.is_empty() {
                    return Err(words("has a piece that is in pieces itself"));
                }
                // Each entry at most once, so that a list of equal slices costs nothing.
                if !pieces.insert(key) {
                    return Err(words("has a piece twice"));
                }
            }
        }
        for key in pieces {
            if let Some(piece) = self.tensors.get_mut(&key) {
                piece.is_piece = true;
            }
        }
        Ok(())
    }

    #[cfg(not(target_family = "wasm"))]
    fn needed_shards(&self) -> BTreeSet<u32> {
        let stored = self.tensors.values().filter(|info| info.pieces.is_empty());
        stored.map(|info| info.shard).collect()
    }

    /// The number of data files.
    #[cfg(any(not(target_family = "wasm"), feature = "saved-model"))]
    pub(crate) fn num_shards(&self) -> u32 {
        self.num_shards
    }

    /// The names of the tensors, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let whole = self.tensors.iter().filter(|(_, info)| !info.is_piece);
        whole.filter_map(|(key, _)| std::str::from_utf8(key).ok())
    }

    pub(crate) fn info(&self, key: &str) -> Option<&TensorInfo> {
        self.tensors.get(key.as_bytes()).filter(|info| !info.is_piece)
    }

    /// The values of a tensor.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if there is no such tensor, [`Error::DType`] if it has neither numbers nor strings,
    /// [`Error::Data`] if its bytes are damaged or missing, [`Error::Io`] if they cannot be read.
    pub(crate) fn array(&self, key: &str) -> Result<HostArray<'static>> {
        let info = self.find(key)?;
        let shape = &info.shape[..];
        let array = match info.dtype.size() {
            Some(size) => HostArray::new(info.dtype, shape, self.read(key, info, size)?),
            None if info.dtype == HostDType::String => {
                HostArray::from_strings(shape, self.read_strings(key, info)?)
            }
            None => {
                return Err(Error::DType(message!(
                    "{}: the tensor \"{key}\" is {} and does not have elements of one size.",
                    self.prefix.display(),
                    info.dtype
                )));
            }
        };
        array.map_err(|_| {
            Error::Data(message!(
                "The tensor \"{key}\" has the shape {shape:?}, which no array has."
            ))
        })
    }

    /// The elements of a tensor in row-major order, each of `size` bytes with its lowest byte first.
    fn read(&self, key: &str, info: &TensorInfo, size: usize) -> Result<Vec<u8>> {
        if info.pieces.is_empty() {
            return self.bytes(key, info, size);
        }
        // The slices do not overlap, so there are no more bytes than in the files.
        let count = self.check_pieces(key, info, Some(size))?;
        let mut whole = vec![0; count.checked_mul(size).unwrap_or(0)];
        for piece in &info.pieces {
            let Some(part) = self.tensors.get(&piece.key(key.as_bytes())) else { continue };
            let bytes = self.bytes(key, part, size)?;
            piece.runs(&info.shape, |from, to, count| {
                let part = &bytes[from * size..][..count * size];
                whole[to * size..][..count * size].copy_from_slice(part);
            });
        }
        Ok(whole)
    }

    /// The strings of a tensor, in row-major order.
    fn read_strings(&self, key: &str, info: &TensorInfo) -> Result<Vec<Vec<u8>>> {
        if info.pieces.is_empty() {
            return self.strings(key, info);
        }
        let count = self.check_pieces(key, info, None)?;
        let mut whole = vec![Vec::new(); count];
        for piece in &info.pieces {
            let Some(part) = self.tensors.get(&piece.key(key.as_bytes())) else { continue };
            let mut strings = self.strings(key, part)?;
            piece.runs(&info.shape, |from, to, count| {
                whole[to..to + count].swap_with_slice(&mut strings[from..from + count]);
            });
        }
        Ok(whole)
    }

    fn find(&self, key: &str) -> Result<&TensorInfo> {
        self.info(key).ok_or_else(|| {
            Error::Checkpoint(message!(
                "{} has no tensor \"{key}\"; list_variables lists those that it has.",
                self.prefix.display()
            ))
        })
    }

    /// The number of elements of a tensor in slices. No element is in two slices, and none is missing.
    fn check_pieces(&self, key: &str, info: &TensorInfo, size: Option<usize>) -> Result<usize> {
        let broken = |what: std::fmt::Arguments<'_>| {
            let index = index_path(&self.prefix);
            Error::Data(message!(
                "{}: the tensor \"{key}\" of the shape {:?} {what}; save the checkpoint again.",
                index.display(),
                info.shape
            ))
        };
        let pieces = &info.pieces;
        if pieces.len() > MOST_PIECES {
            return Err(broken(format_args!(
                "has {} pieces, and {MOST_PIECES} are the most that are supported",
                pieces.len()
            )));
        }
        let mut covered = 0usize;
        for (i, piece) in pieces.iter().enumerate() {
            let count = elements(&piece.shape(&info.shape));
            covered = count.and_then(|count| covered.checked_add(count)).unwrap_or(usize::MAX);
            if let Some(j) = pieces[..i].iter().position(|other| piece.overlaps(other, &info.shape))
            {
                return Err(broken(format_args!("has the pieces {j} and {i}, which overlap")));
            }
        }
        // Each slice has its own bytes in the files; otherwise it is rejected here and uses no memory.
        let mut ranges = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let part = self.tensors.get(&piece.key(key.as_bytes()));
            if let Some(part) = part.filter(|part| part.size > 0) {
                self.check_place(key, part)?;
                let count = elements(&part.shape).unwrap_or(usize::MAX) as u64;
                // A string needs at least one byte, for its length.
                if size.map_or(count, |size| count.saturating_mul(size as u64)) > part.size {
                    let bytes = part.size;
                    return Err(broken(format_args!(
                        "has a piece of {count} elements in {bytes} bytes"
                    )));
                }
                ranges.push((part.shard, part.offset, part.offset + part.size));
            }
        }
        ranges.sort_unstable();
        if ranges.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1) {
            return Err(broken(format_args!("has pieces that share bytes of a file")));
        }
        match elements(&info.shape) {
            Some(wanted) if wanted == covered => Ok(wanted),
            _ => Err(broken(format_args!("has pieces of {covered} elements together"))),
        }
    }

    fn strings(&self, key: &str, info: &TensorInfo) -> Result<Vec<Vec<u8>>> {
        let bytes = self.stored(key, info)?;
        let count = elements(&info.shape).unwrap_or(usize::MAX);
        strings::decode(&bytes, count, info.crc)
            .map_err(|what| self.damaged(key, info, format_args!("{what}")))
    }

    /// The bytes of a tensor whose elements have `size` bytes.
    fn bytes(&self, key: &str, info: &TensorInfo, size: usize) -> Result<Vec<u8>> {
        let wanted = elements(&info.shape).and_then(|count| count.checked_mul(size));
        if wanted.is_none_or(|wanted| wanted as u64 != info.size) {
            return Err(self.damaged(
                key,
                info,
                format_args!(
                    "is {} of the shape {:?}, which is not what {} bytes hold",
                    info.dtype, info.shape, info.size
                ),
            ));
        }
        let bytes = self.stored(key, info)?;
        let found = masked_crc32c(&bytes);
        if found != info.crc {
            return Err(self.damaged(
                key,
                info,
                format_args!(
                    "has {} bytes with the checksum {found:#010x}, and the index says {:#010x}",
                    info.size, info.crc
                ),
            ));
        }
        Ok(bytes)
    }

    /// The bytes that the index refers to, of any type.
    fn stored(&self, key: &str, info: &TensorInfo) -> Result<Vec<u8>> {
        if info.size == 0 {
            return Ok(Vec::new());
        }
        self.check_place(key, info)?;
        match self.shards.get(&info.shard) {
            Some(Shard::Memory(bytes)) => {
                // The location was checked, so the numbers fit.
                Ok(bytes[info.offset as usize..][..info.size as usize].to_vec())
            }
            #[cfg(not(target_family = "wasm"))]
            Some(Shard::File(file, _)) => {
                use std::io::{Read, Seek, SeekFrom};
                let mut file = file.lock().unwrap_or_else(|poison| poison.into_inner());
                let mut bytes = Vec::with_capacity(info.size as usize);
                let read = file
                    .seek(SeekFrom::Start(info.offset))
                    .and_then(|_| (&mut *file).take(info.size).read_to_end(&mut bytes));
                match read {
                    Ok(found) if found as u64 == info.size => Ok(bytes),
                    // The file has become shorter.
                    Ok(found) => Err(self.truncated(key, info, info.offset + found as u64)),
                    Err(error) => Err(Error::io(self.data_name(info), error)),
                }
            }
            _ => Err(self.missing(key, info, std::io::ErrorKind::NotFound, "the file is missing")),
        }
    }

    /// Checks that the bytes of a tensor exist.
    fn check_place(&self, key: &str, info: &TensorInfo) -> Result<()> {
        let length = match self.shards.get(&info.shard) {
            Some(Shard::Memory(bytes)) => bytes.len() as u64,
            #[cfg(not(target_family = "wasm"))]
            Some(Shard::File(_, length)) => *length,
            #[cfg(not(target_family = "wasm"))]
            Some(Shard::Unreadable(kind, what)) => return Err(self.missing(key, info, *kind, what)),
            None => {
                let kind = std::io::ErrorKind::NotFound;
                return Err(self.missing(key, info, kind, "the file is missing"));
            }
        };
        match info.offset.checked_add(info.size) {
            Some(end) if end <= length => Ok(()),
            _ => Err(self.truncated(key, info, length)),
        }
    }

    fn data_name(&self, info: &TensorInfo) -> PathBuf {
        data_path(&self.prefix, info.shard, self.num_shards)
    }

    fn missing(&self, key: &str, info: &TensorInfo, kind: std::io::ErrorKind, what: &str) -> Error {
        let prefix = self.prefix.display();
        let words = format!(
            "{what}. The tensor \"{key}\" lies there; bring all {} data files of {prefix} together.",
            self.num_shards
        );
        Error::io(self.data_name(info), std::io::Error::new(kind, words))
    }

    fn truncated(&self, key: &str, info: &TensorInfo, length: u64) -> Error {
        Error::Data(message!(
            "{}: the tensor \"{key}\" should have {} bytes from byte {} on, and the file has {length}. The file is truncated; \
             take another checkpoint.",
            self.data_name(info).display(),
            info.size,
            info.offset
        ))
    }

    fn damaged(&self, key: &str, info: &TensorInfo, what: std::fmt::Arguments<'_>) -> Error {
        Error::Data(message!(
            "{}: the tensor \"{key}\" at byte {} {what}. The file is corrupt, or it is not that of this index; take \
             another checkpoint.",
            self.data_name(info).display(),
            info.offset
        ))
    }
}

impl TensorInfo {
    /// The description in an entry, or the reason why it is invalid.
    fn from_entry(entry: &BundleEntry) -> Result<Self, String> {
        let shape = entry.shape.as_ref().map_or(&[][..], |shape| &shape.dim);
        if entry.shape.as_ref().is_some_and(|shape| shape.unknown_rank) || shape.len() > MOST_AXES {
            return Err(format!("has a shape of no or too many axes ({})", shape.len()));
        }
        let size = |size: i64| {
            usize::try_from(size).map_err(|_| format!("has an axis of {size} elements"))
        };
        let shape: Vec<usize> = shape.iter().map(|dim| size(dim.size)).collect::<Result<_, _>>()?;
        if entry.dtype <= 0 {
            return Err(format!("has the type number {}", entry.dtype));
        }
        let number = |number: i64, what: &str| {
            u64::try_from(number).map_err(|_| format!("has {number} as its {what}"))
        };
        let slices = entry.slices.iter().map(|message| Slice::from_message(message, &shape));
        let pieces =
            slices.collect::<Option<Vec<_>>>().ok_or("has a piece that lies outside it")?;
        Ok(TensorInfo {
            dtype: HostDType::from_number(entry.dtype),
            shard: number(i64::from(entry.shard_id), "shard")? as u32,
            offset: number(entry.offset, "first byte")?,
            size: number(entry.size, "number of bytes")?,
            crc: entry.crc32c,
            shape,
            pieces,
            is_piece: false,
        })
    }
}

fn check_header(name: &Path, header: Option<&BundleHeader>) -> Result<()> {
    let Some(header) = header else { return Ok(()) };
    let version = header.version.clone().unwrap_or_default();
    let refuse = |what: std::fmt::Arguments<'_>| {
        Err(Error::Data(message!("{}: the checkpoint {what}.", name.display())))
    };
    if header.endianness != 0 {
        return refuse(format_args!(
            "was written on a big-endian machine, which is not supported. Save it on another machine"
        ));
    }
    if version.min_consumer > VERSION || version.bad_consumers.contains(&VERSION) {
        return refuse(format_args!(
            "has version {} of the format, for readers from version {} on, and this one reads version {VERSION}. Save \
             it with an older TensorFlow",
            version.producer, version.min_consumer
        ));
    }
    if header.num_shards < 1 {
        return refuse(format_args!(
            "has {} data files, so the index is corrupt; take another one",
            header.num_shards
        ));
    }
    Ok(())
}
