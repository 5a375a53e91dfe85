//! `image_dataset_from_directory` and `text_dataset_from_directory`.

use numpy::{IntoPyArray, PyArrayMethods, ndarray::ArrayD};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use wgrad::data::Item;
use wgrad::image::{DctMethod, ResizeMethod};
use wgrad::keras::utils::{
    self, ColorMode, DirectoryDataset, ImageDatasetOptions, Subset, TextDatasetOptions,
};

use crate::error::{Raise, invalid};
use crate::files::NativeElements;
use crate::interpreter::Release;

/// The options that images and texts share.
#[derive(FromPyObject)]
pub struct Rules {
    #[pyo3(item)]
    labels: bool,
    #[pyo3(item)]
    class_names: Option<Vec<String>>,
    #[pyo3(item)]
    batch_size: Option<usize>,
    #[pyo3(item)]
    shuffle: bool,
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    validation_split: Option<f64>,
    #[pyo3(item)]
    subset: Option<String>,
    #[pyo3(item)]
    follow_links: bool,
    /// `int`, `categorical` or `binary`; `None` for no labels.
    #[pyo3(item)]
    label_mode: Option<String>,
}

impl Rules {
    fn subset(&self) -> PyResult<Option<Subset>> {
        match self.subset.as_deref() {
            None => Ok(None),
            Some("training") => Ok(Some(Subset::Training)),
            Some("validation") => Ok(Some(Subset::Validation)),
            Some(other) => Err(invalid(format!(
                "subset is {other:?}; it must be 'training', 'validation' or 'both'."
            ))),
        }
    }
}

macro_rules! common {
    ($options:expr, $rules:expr) => {
        $options
            .labels($rules.labels)
            .class_names($rules.class_names.clone())
            .batch_size($rules.batch_size.unwrap_or(1))
            .shuffle($rules.shuffle)
            .seed($rules.seed)
            .validation_split($rules.validation_split)
            .subset($rules.subset()?)
            .follow_links($rules.follow_links)
    };
}

/// The batches, the names of the classes, the files, and the label of each.
type Found = (NativeElements, Vec<String>, Vec<String>, Vec<i32>);

fn numbers<T: numpy::Element>(py: Python<'_>, array: ArrayD<T>) -> Bound<'_, PyAny> {
    array.into_pyarray(py).to_dyn().clone().into_any()
}

/// Strings as an array of `bytes` objects.
fn strings<'py>(py: Python<'py>, texts: &ArrayD<String>) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::new(py, texts.iter().map(|text| PyBytes::new(py, text.as_bytes())))?;
    py.import("numpy")?.call_method1("array", (list, "object"))
}

fn found<A: 'static, T: Item<Batch = ArrayD<A>>>(
    folder: &DirectoryDataset<T>,
    rules: &Rules,
    convert: fn(Python<'_>, ArrayD<A>) -> PyResult<Bound<'_, PyAny>>,
) -> PyResult<Found>
where
    ArrayD<A>: Item,
{
    macro_rules! pairs {
        ($dataset:expr) => {
            NativeElements::of($dataset.raised()?, move |py, (x, y)| {
                Ok((convert(py, x)?, numbers(py, y)).into_pyobject(py)?.into_any().unbind())
            })
        };
    }
    let elements = match rules.label_mode.as_deref() {
        Some("int") => pairs!(folder.dataset()),
        Some("categorical") => pairs!(folder.categorical()),
        Some("binary") => pairs!(folder.binary()),
        None => NativeElements::of(folder.unlabeled().raised()?, move |py, x| {
            Ok(convert(py, x)?.unbind())
        }),
        Some(other) => {
            return Err(invalid(format!(
                "label_mode is {other:?}; it must be 'int', 'categorical', 'binary' or None."
            )));
        }
    };
    let paths = folder.file_paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    Ok((elements, folder.class_names.clone(), paths, folder.labels.clone()))
}

#[pyfunction]
pub fn image_directory(
    py: Python<'_>,
    directory: &str,
    rules: Rules,
    color_mode: &str,
    image_size: [usize; 2],
    interpolation: &str,
    crop_to_aspect_ratio: bool,
) -> PyResult<Found> {
    let color = match color_mode {
        "grayscale" => ColorMode::Grayscale,
        "rgb" => ColorMode::Rgb,
        "rgba" => ColorMode::Rgba,
        other => {
            return Err(invalid(format!(
                "color_mode is {other:?}; it must be 'grayscale', 'rgb' or 'rgba'."
            )));
        }
    };
    let method = match interpolation {
        "bilinear" => ResizeMethod::Bilinear,
        "nearest" => ResizeMethod::NearestNeighbor,
        "bicubic" => ResizeMethod::Bicubic,
        "area" => ResizeMethod::Area,
        "lanczos3" => ResizeMethod::Lanczos3,
        "lanczos5" => ResizeMethod::Lanczos5,
        "gaussian" => ResizeMethod::Gaussian,
        "mitchellcubic" => ResizeMethod::MitchellCubic,
        other => {
            return Err(invalid(format!(
                "interpolation is {other:?}; use 'bilinear' or 'nearest'."
            )));
        }
    };
    let options = common!(ImageDatasetOptions::new(), rules)
        .color_mode(color)
        .image_size(image_size)
        .interpolation(method)
        .dct_method(DctMethod::IntegerFast)
        .crop_to_aspect_ratio(crop_to_aspect_ratio);
    let folder =
        py.released(|| utils::image_dataset_from_directory(directory, options)).raised()?;
    found(&folder, &rules, |py, images| Ok(numbers(py, images)))
}

#[pyfunction]
#[pyo3(signature = (directory, rules, max_length=None))]
pub fn text_directory(
    py: Python<'_>,
    directory: &str,
    rules: Rules,
    max_length: Option<usize>,
) -> PyResult<Found> {
    let options = common!(TextDatasetOptions::new(), rules).max_length(max_length);
    let folder = py.released(|| utils::text_dataset_from_directory(directory, options)).raised()?;
    found(&folder, &rules, |py, texts| strings(py, &texts))
}
