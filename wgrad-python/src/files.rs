//! Files of data: images, TFRecord files and the examples in them, lines of texts, names of files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wgrad::data::example::{Example, Feature, FeatureKind};
use wgrad::data::tfrecord::{TfRecordOptions, TfRecordWriter};
use wgrad::data::{
    CompressionType, Dataset, Item, ListFilesOptions, TextLineDataset, TfRecordDataset,
};
use wgrad::image::{self, DctMethod, DecodeOptions, EncodeJpegOptions, EncodePngOptions};

use crate::error::{Raise, invalid};
use crate::interpreter::Release;

type Next = dyn FnMut(Python<'_>) -> Option<PyResult<Py<PyAny>>> + Send;
type Open = dyn Fn() -> Box<Next> + Send + Sync;

/// A dataset of the crate, whose elements are read as objects of Python.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeElements(Box<Open>);

/// A pass over the elements.
#[pyclass(frozen, module = "wgrad")]
pub struct NativePass(Mutex<Box<Next>>);

impl NativeElements {
    /// The elements of a dataset, each as `convert` makes it.
    pub fn of<T: Item>(
        dataset: Dataset<T>,
        convert: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Self {
        let convert = Arc::new(convert);
        NativeElements(Box::new(move || {
            let (mut pass, convert) = (dataset.iter(), convert.clone());
            Box::new(move |py| {
                let element = py.released(|| pass.next())?;
                Some(element.raised().and_then(|element| convert(py, element)))
            })
        }))
    }
}

#[pymethods]
impl NativeElements {
    fn __iter__(&self) -> NativePass {
        NativePass(Mutex::new((self.0)()))
    }
}

#[pymethods]
impl NativePass {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        // Another thread may read an element; it needs the interpreter to finish.
        let mut next = loop {
            match self.0.try_lock() {
                Ok(next) => break next,
                Err(std::sync::TryLockError::Poisoned(next)) => break next.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => py.released(std::thread::yield_now),
            }
        };
        (*next)(py)
    }
}

fn compression(name: Option<&str>) -> PyResult<CompressionType> {
    match name.unwrap_or_default() {
        "" => Ok(CompressionType::None),
        "GZIP" => Ok(CompressionType::Gzip),
        "ZLIB" => Ok(CompressionType::Zlib),
        other => {
            Err(invalid(format!("the compression is {other:?}; it must be '', 'GZIP' or 'ZLIB'.")))
        }
    }
}

/// `tf.data.TFRecordDataset`: the records of files.
#[pyfunction]
#[pyo3(signature = (files, compression_type=None, parallel=None))]
pub fn tf_records(
    files: Vec<PathBuf>,
    compression_type: Option<&str>,
    parallel: Option<usize>,
) -> PyResult<NativeElements> {
    let kind = compression(compression_type)?;
    let records = TfRecordDataset::new(files).compression_type(kind);
    let records = match parallel {
        Some(parallel) => records.num_parallel_reads(parallel),
        None => records,
    };
    Ok(NativeElements::of(records.build().raised()?, |py, record: Vec<u8>| {
        Ok(PyBytes::new(py, &record).into_any().unbind())
    }))
}

/// `tf.data.TextLineDataset`: the lines of files.
#[pyfunction]
#[pyo3(signature = (files, compression_type=None))]
pub fn text_lines(files: Vec<PathBuf>, compression_type: Option<&str>) -> PyResult<NativeElements> {
    let lines = TextLineDataset::new(files).compression_type(compression(compression_type)?);
    Ok(NativeElements::of(lines.build().raised()?, |py, line: String| {
        Ok(PyBytes::new(py, line.as_bytes()).into_any().unbind())
    }))
}

/// `Dataset.list_files`: the names of the files that match a pattern.
#[pyfunction]
pub fn list_files(pattern: &str, shuffle: bool, seed: Option<u64>) -> PyResult<NativeElements> {
    let options = ListFilesOptions::new().shuffle(shuffle).seed(seed);
    let files = Dataset::list_files_with(pattern, options).raised()?;
    Ok(NativeElements::of(files, |py, path: PathBuf| {
        Ok(PyBytes::new(py, path.to_string_lossy().as_bytes()).into_any().unbind())
    }))
}

/// Writes the records of a TFRecord file, which is complete once it is closed.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeRecordWriter(Mutex<Option<TfRecordWriter<std::fs::File>>>);

impl NativeRecordWriter {
    fn with<T>(
        &self,
        f: impl FnOnce(&mut Option<TfRecordWriter<std::fs::File>>) -> wgrad::Result<T>,
    ) -> PyResult<T> {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)).raised()
    }
}

fn closed() -> wgrad::Error {
    wgrad::Error::Data("TFRecordWriter: the writer is closed; make another one.".into())
}

#[pymethods]
impl NativeRecordWriter {
    #[new]
    #[pyo3(signature = (path, compression_type=None))]
    fn new(path: PathBuf, compression_type: Option<&str>) -> PyResult<Self> {
        let options = TfRecordOptions::new().compression_type(compression(compression_type)?);
        let writer = TfRecordWriter::create_with(path, options).raised()?;
        Ok(NativeRecordWriter(Mutex::new(Some(writer))))
    }

    fn write(&self, record: &[u8]) -> PyResult<()> {
        self.with(|writer| writer.as_mut().ok_or_else(closed)?.write(record))
    }

    fn flush(&self) -> PyResult<()> {
        self.with(|writer| writer.as_mut().ok_or_else(closed)?.flush())
    }

    fn close(&self) -> PyResult<()> {
        self.with(|writer| writer.take().map_or(Ok(()), |writer| writer.close().map(drop)))
    }
}

/// The values of a feature: its kind, and a list of one of them.
#[derive(FromPyObject, IntoPyObject)]
pub enum Values {
    Bytes(Vec<PyBytesOf>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
}

/// A byte string, which is no list of numbers.
pub struct PyBytesOf(Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for PyBytesOf {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(PyBytesOf(value.cast::<PyBytes>()?.as_bytes().to_vec()))
    }
}

impl<'py> IntoPyObject<'py> for PyBytesOf {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// A `tf.train.Example` as bytes; the kind of each feature is `bytes`, `int64`, `float`, or empty.
#[pyfunction]
pub fn serialize_example<'py>(
    py: Python<'py>,
    features: Vec<(String, String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut list = Vec::with_capacity(features.len());
    for (name, kind, values) in features {
        let feature = match kind.as_str() {
            "bytes" => {
                Feature::bytes_list(values.extract::<Vec<PyBytesOf>>()?.iter().map(|b| &b.0))
            }
            "int64" => Feature::int64_list(values.extract::<Vec<i64>>()?),
            "float" => Feature::float_list(values.extract::<Vec<f32>>()?),
            _ => Feature::default(),
        };
        list.push((name, feature));
    }
    Ok(PyBytes::new(py, &Example::new(list).serialize()))
}

/// The features of a `tf.train.Example`: names, kinds and values.
#[pyfunction]
pub fn parse_example(record: &[u8]) -> PyResult<Vec<(String, &'static str, Values)>> {
    let example = Example::parse(record).raised()?;
    let features = example.features.unwrap_or_default().feature.into_iter();
    Ok(features
        .map(|(name, feature)| match feature.kind {
            Some(FeatureKind::BytesList(list)) => {
                let values = list.value.into_iter().map(PyBytesOf).collect();
                (name, "bytes", Values::Bytes(values))
            }
            Some(FeatureKind::Int64List(list)) => (name, "int64", Values::Int64(list.value)),
            Some(FeatureKind::FloatList(list)) => (name, "float", Values::Float(list.value)),
            None => (name, "", Values::Float(Vec::new())),
        })
        .collect())
}

/// An image as an array of `uint8`, `[H,W,C]`, or all frames of an animation, `[N,H,W,C]`. `kind` is the format, or `image` for
/// whatever the contents are.
#[pyfunction]
pub fn decode_image<'py>(
    py: Python<'py>,
    kind: &str,
    contents: &[u8],
    channels: usize,
    frames: bool,
    fast: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // TensorFlow's own, whose pixels these are.
    let dct = if fast { DctMethod::IntegerFast } else { DctMethod::IntegerAccurate };
    let how = DecodeOptions::new().dct_method(dct);
    let one = py.released(|| match (kind, frames) {
        ("gif", _) => image::decode_gif_with(contents, how).map(|all| all.into_dyn()),
        ("image", true) if contents.starts_with(b"GIF") => {
            image::decode_frames_with(contents, channels, how).map(|all| all.into_dyn())
        }
        _ => {
            let decode = match kind {
                "jpeg" => image::decode_jpeg_with,
                "png" => image::decode_png_with,
                "bmp" => image::decode_bmp_with,
                "webp" => image::decode_webp_with,
                _ => image::decode_image_with,
            };
            decode(contents, channels, how).map(|image| image.into_dyn())
        }
    });
    Ok(one.raised()?.into_pyarray(py).into_any())
}

/// An image `[H,W,C]` as a JPEG of a quality, or as a PNG of a compression level.
#[pyfunction]
pub fn encode_image<'py>(
    py: Python<'py>,
    kind: &str,
    pixels: PyReadonlyArray3<'py, u8>,
    level: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let pixels = pixels.as_array();
    let made = match kind {
        "jpeg" => {
            let quality = u8::try_from(level).map_err(|_| {
                invalid(format!("encode_jpeg: the quality is {level}; it is 0 to 100."))
            })?;
            image::encode_jpeg_with(pixels, EncodeJpegOptions::new().quality(quality))
        }
        _ => image::encode_png_with(pixels, EncodePngOptions::new().compression(level)),
    };
    Ok(PyBytes::new(py, &made.raised()?))
}
