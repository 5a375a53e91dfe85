//! [`SafetensorsFile`]: a safetensors file, or several with an index, whose tensors are read one by one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use safetensors::tensor::Metadata;

use super::Source;
use super::values::{self, converted};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::tensor::Tensor;
use crate::trackable::{NamedArray, file};

/// A safetensors file, or several with an index. Opening it reads only headers, and reading a tensor reads only its bytes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Trackable, keras::{Sequential, layers::Dense}, weights::{SafetensorsFile, SaveOptions}};
/// let model = Sequential::new().add(Dense::new(3));
/// model.build([1, 2])?;
/// let path = std::env::temp_dir().join(format!("wgrad-lazy-{}.safetensors", std::process::id()));
/// model.save_weights_with(&path, SaveOptions::new().metadata("step", "100"))?;
///
/// let file = SafetensorsFile::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["dense/bias", "dense/kernel"]);
/// assert_eq!(file.info("dense/kernel").expect("it is there").shape, [2, 3]);
/// assert_eq!(file.tensor("dense/bias")?.to_vec::<f32>()?, [0.0; 3]);
/// assert_eq!(file.metadata()["step"], "100");
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SafetensorsFile {
    /// The name in messages.
    path: PathBuf,
    shards: Vec<Shard>,
    /// Each tensor, and the shard that contains it.
    tensors: BTreeMap<String, (usize, TensorInfo)>,
    metadata: BTreeMap<String, String>,
}

/// The description of a tensor in a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// The type of the elements.
    pub dtype: HostDType,
    /// The sizes of the axes, outermost first.
    pub shape: Vec<usize>,
    /// The beginning and the end of its bytes, relative to the end of the header.
    place: (u64, u64),
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    contents: Contents,
    /// The offset of the tensors.
    data: u64,
}

#[derive(Debug)]
enum Contents {
    Bytes(Vec<u8>),
    #[cfg(not(target_family = "wasm"))]
    File(std::sync::Mutex<std::fs::File>),
}

/// The error for the file at `path`.
fn damaged(path: &std::path::Path, what: impl std::fmt::Display) -> Error {
    let shown = path.display();
    Error::Data(message!(
        "{shown}: load: {what}. It is damaged or not a safetensors file; take another copy."
    ))
}

/// The contents of a header, if its offsets fit a file of `size` bytes.
fn parse_header(header: &[u8], size: u64, path: &std::path::Path) -> Result<Metadata> {
    // The library does not read longer ones, either.
    let parsed: Metadata = serde_json::from_slice(header)
        .map_err(|error| damaged(path, format_args!("its header cannot be read: {error}")))?;
    let data = size.saturating_sub(8 + header.len() as u64);
    match parsed.data_len() as u64 == data {
        true => Ok(parsed),
        false => Err(damaged(
            path,
            format_args!("the tensors that the header names do not fill the {data} bytes after it"),
        )),
    }
}

/// The length of the header of a file of `size` bytes.
fn header_length(start: &[u8], size: u64, path: &std::path::Path) -> Result<u64> {
    const LONGEST: u64 = 100_000_000;
    let Some(length) = start.first_chunk().map(|length| u64::from_le_bytes(*length)) else {
        return Err(damaged(
            path,
            format_args!("the file has {size} bytes and its header alone has 8"),
        ));
    };
    let left = size.saturating_sub(8);
    if length > left {
        let what = format!("the file says that its header has {length} bytes, and {left} are left");
        return Err(damaged(path, what));
    }
    if length > LONGEST {
        return Err(damaged(
            path,
            format_args!("its header has {length} bytes, and at most {LONGEST} are read"),
        ));
    }
    Ok(length)
}

impl SafetensorsFile {
    /// Reads the contents of one file.
    ///
    /// # Errors
    /// [`Error::Data`] if they are damaged or have another format.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let (bytes, path) = (bytes.into(), PathBuf::from("the contents"));
        let size = bytes.len() as u64;
        let length = header_length(&bytes, size, &path)?;
        let header = parse_header(&bytes[8..8 + length as usize], size, &path)?;
        let contents = Contents::Bytes(bytes);
        Ok(SafetensorsFile::from_header(
            path.clone(),
            Shard { path, contents, data: 8 + length },
            &header,
        ))
    }

    /// Only the file at `path`.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn open_one(path: &std::path::Path) -> Result<Self> {
        use std::io::Read;
        let io = |error| Error::io(path, error);
        let size = crate::files::look(path).map_err(io)?.len();
        let mut file = std::fs::File::open(path).map_err(io)?;
        let mut start = Vec::new();
        (&mut file).take(8).read_to_end(&mut start).map_err(io)?;
        super::known_format(&start, path)?;
        let length = header_length(&start, size, path)?;
        let mut header = Vec::new();
        (&mut file).take(length).read_to_end(&mut header).map_err(io)?;
        if (header.len() as u64) < length {
            return Err(damaged(path, "the file became shorter while it was read"));
        }
        let header = parse_header(&header, size, path)?;
        let contents = Contents::File(std::sync::Mutex::new(file));
        let shard = Shard { path: path.to_path_buf(), contents, data: 8 + length };
        Ok(SafetensorsFile::from_header(path.to_path_buf(), shard, &header))
    }

    fn from_header(path: PathBuf, shard: Shard, header: &Metadata) -> Self {
        let info = |info: &safetensors::tensor::TensorInfo| TensorInfo {
            dtype: file::host_dtype(info.dtype),
            shape: info.shape.clone(),
            place: (info.data_offsets.0 as u64, info.data_offsets.1 as u64),
        };
        let tensors =
            header.tensors().into_iter().map(|(name, tensor)| (name, (0, info(tensor)))).collect();
        let metadata = header.metadata().iter().flatten();
        let metadata = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
        SafetensorsFile { path, shards: vec![shard], tensors, metadata }
    }

    /// Several files as one, each with the names that are read from it.
    pub(super) fn joined(
        path: PathBuf,
        parts: Vec<(SafetensorsFile, Vec<String>)>,
        metadata: BTreeMap<String, String>,
    ) -> Result<Self> {
        let mut all =
            SafetensorsFile { path, shards: Vec::new(), tensors: BTreeMap::new(), metadata };
        for (mut part, names) in parts {
            let shard = all.shards.len();
            for name in names {
                let Some((_, info)) = part.tensors.remove(&name) else {
                    return Err(Error::Data(message!(
                        "{}: load: the index says that '{name}' is in {}, which has no such tensor. Take another copy of \
                         the files, or write them again.",
                        all.path.display(),
                        part.path.display()
                    )));
                };
                all.tensors.insert(name, (shard, info));
            }
            all.shards.extend(part.shards);
            for (key, value) in part.metadata {
                all.metadata.entry(key).or_insert(value);
            }
        }
        Ok(all)
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors.keys().map(|name| &**name)
    }

    /// The dtype and shape of a tensor; none if there is no such tensor.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name).map(|(_, info)| info)
    }

    /// The texts in the header's `__metadata__`; for several files also the index's metadata, such as `total_size`.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Reads a tensor as it is in the file.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if there is no such tensor; [`Error::Io`] if it cannot be read.
    pub fn array(&self, name: &str) -> Result<NamedArray<'static>> {
        self.view(name).map(NamedArray::into_owned)
    }

    /// Reads a tensor, on the current device: floats other than `F16` as `f32`, integers as `i32` (`U32` and `U8` as they
    /// are), if every value is preserved.
    ///
    /// # Errors
    /// As [`SafetensorsFile::array`]; [`Error::Checkpoint`] if a value does not fit (the message states it) or the dtype is
    /// not supported; [`Error::Device`] if there is no memory.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let array = self.view(name)?;
        let dtype = array.array.dtype().tensor_dtype().unwrap_or(DType::F32);
        converted(array, dtype, false)?.array.upload(dtype)
    }

    fn view(&self, name: &str) -> Result<NamedArray<'_>> {
        let Some((name, (shard, info))) = self.tensors.get_key_value(name) else {
            return Err(Error::Checkpoint(message!(
                "{}: load: there is no tensor '{name}'; there are {}.",
                self.path.display(),
                crate::trackable::arrays::list(self.names())
            )));
        };
        file::named(name, info.dtype, &info.shape, self.shards[*shard].read(info)?)
    }
}

impl Shard {
    fn read(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        let (begin, end) = (self.data + info.place.0, self.data + info.place.1);
        match &self.contents {
            Contents::Bytes(bytes) => {
                let bytes = bytes.get(begin as usize..end as usize);
                bytes
                    .map(Cow::Borrowed)
                    .ok_or_else(|| damaged(&self.path, "a tensor lies beyond its end"))
            }
            #[cfg(not(target_family = "wasm"))]
            Contents::File(file) => {
                use std::io::{Read, Seek, SeekFrom};
                let io = |error| Error::io(&self.path, error);
                let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                file.seek(SeekFrom::Start(begin)).map_err(io)?;
                let mut bytes = Vec::new();
                // The file had these bytes when it was opened.
                bytes.try_reserve_exact((end - begin) as usize).map_err(|_| {
                    Error::Data(message!(
                        "{}: a tensor of {} bytes does not fit in memory.",
                        self.path.display(),
                        end - begin
                    ))
                })?;
                (&mut *file).take(end - begin).read_to_end(&mut bytes).map_err(io)?;
                match bytes.len() as u64 == end - begin {
                    true => Ok(bytes.into()),
                    false => Err(damaged(&self.path, "the file became shorter while it was read")),
                }
            }
        }
    }
}

impl Source for SafetensorsFile {
    fn names(&self) -> Vec<&str> {
        SafetensorsFile::names(self).collect()
    }

    fn read(&self, name: &str) -> Result<NamedArray<'_>> {
        let array = self.view(name)?;
        values::check_size(&array).map(|_| array)
    }
}
