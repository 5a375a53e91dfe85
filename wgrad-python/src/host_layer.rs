//! Layers whose inputs are strings or numbers on the host: vocabularies, hashes, `TextVectorization`.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};
use wgrad::keras::layers::{HashedCrossing, HostLayer, host_layer_from_config};
use wgrad::{HostArray, HostDType};

use crate::error::{Raise, invalid};
use crate::interpreter::Release;
use crate::layer::config_of;

/// An array on the host: the dtype as NumPy writes it (`i8`, and `str` for strings), the shape, and the bytes of numbers or a list
/// of strings.
#[derive(FromPyObject)]
pub struct Given<'py>(String, Vec<usize>, Bound<'py, PyAny>);

impl Given<'_> {
    pub fn array(&self) -> PyResult<HostArray<'static>> {
        let Given(dtype, shape, values) = self;
        if dtype == "str" {
            let strings: Vec<Vec<u8>> = values.extract()?;
            return HostArray::from_strings(shape.as_slice(), strings).raised();
        }
        let dtype = HostDType::from_numpy_name(dtype).ok_or_else(|| {
            invalid(format!("an array of {dtype} is neither strings nor numbers."))
        })?;
        HostArray::new(dtype, shape.as_slice(), values.extract::<Vec<u8>>()?).raised()
    }
}

/// An array of NumPy: of numbers, or of `bytes` objects.
pub fn numpy<'py>(py: Python<'py>, array: &HostArray<'_>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(strings) = array.strings() {
        let list = PyList::new(py, strings.iter().map(|text| PyBytes::new(py, text)))?;
        let made = py.import("numpy")?.call_method1("array", (list, "object"))?;
        return made.call_method1("reshape", (array.shape().to_vec(),));
    }
    let numpy = py.import("numpy")?;
    let read = |dtype: &str, bytes: &[u8]| -> PyResult<Bound<'py, PyAny>> {
        let flat = numpy.call_method1("frombuffer", (PyByteArray::new(py, bytes), dtype))?;
        flat.call_method1("reshape", (array.shape().to_vec(),))
    };
    match (array.dtype(), array.dtype().numpy_name()) {
        // NumPy has no bfloat16; its bits are the upper half of an f32's.
        (HostDType::Bf16, _) => {
            let halves = array.bytes().chunks_exact(2);
            read("f4", &halves.flat_map(|half| [0, 0, half[0], half[1]]).collect::<Vec<u8>>())
        }
        (_, Some(name)) => read(name, array.bytes()),
        (other, None) => Err(invalid(format!("there is no array of {}.", other.tensorflow_name()))),
    }
}

/// A layer of a config.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeHostLayer(Kind);

enum Kind {
    One(Box<dyn HostLayer>),
    Crossing(HashedCrossing),
}

impl NativeHostLayer {
    fn one(&self, call: &str) -> PyResult<&dyn HostLayer> {
        match &self.0 {
            Kind::One(layer) => Ok(&**layer),
            Kind::Crossing(_) => Err(invalid(format!("HashedCrossing: it has no {call}."))),
        }
    }
}

#[pymethods]
impl NativeHostLayer {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config = config_of(config).raised()?;
        Ok(NativeHostLayer(match config.class() {
            "HashedCrossing" => Kind::Crossing(HashedCrossing::from_config(&config).raised()?),
            _ => Kind::One(host_layer_from_config(&config).raised()?),
        }))
    }

    /// The result for one array, or for those of `HashedCrossing`.
    fn call<'py>(&self, py: Python<'py>, inputs: Vec<Given<'py>>) -> PyResult<Bound<'py, PyAny>> {
        let arrays = inputs.iter().map(Given::array).collect::<PyResult<Vec<_>>>()?;
        let made = match (&self.0, &arrays[..]) {
            (Kind::One(layer), [array]) => py.released(|| layer.call_host(array)),
            (Kind::One(layer), _) => {
                return Err(invalid(format!(
                    "{}: the layer takes one array; it was called with {}.",
                    layer.kind(),
                    arrays.len()
                )));
            }
            (Kind::Crossing(layer), arrays) => py.released(|| layer.call_host(arrays)),
        };
        numpy(py, &made.raised()?)
    }

    fn reset_state(&self) -> PyResult<()> {
        self.one("reset_state")?.reset_state();
        Ok(())
    }

    fn update_state(&self, py: Python<'_>, batch: Given<'_>) -> PyResult<()> {
        let (layer, array) = (self.one("adapt")?, batch.array()?);
        py.released(|| layer.update_state(&array)).raised()
    }

    fn finalize_state(&self, py: Python<'_>) -> PyResult<()> {
        let layer = self.one("adapt")?;
        py.released(|| layer.finalize_state()).raised()
    }

    fn vocabulary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.one("vocabulary")?.vocabulary_array().raised()? {
            Some(words) => numpy(py, &words),
            None => Err(invalid("get_vocabulary: the layer has no vocabulary.")),
        }
    }

    #[pyo3(signature = (words, idf_weights=None))]
    fn set_vocabulary(&self, words: Given<'_>, idf_weights: Option<Vec<f32>>) -> PyResult<()> {
        let (layer, words) = (self.one("vocabulary")?, words.array()?);
        layer.set_vocabulary_array(&words, idf_weights.as_deref()).raised()
    }

    fn config(&self) -> PyResult<String> {
        let config = match &self.0 {
            Kind::One(layer) => layer.describe(),
            Kind::Crossing(layer) => layer.describe(),
        };
        let config = config.raised()?;
        Ok(serde_json::json!({"class_name": config.class(), "config": config.options()})
            .to_string())
    }
}
