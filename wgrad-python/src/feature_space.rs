//! `keras.utils.FeatureSpace`.

use pyo3::prelude::*;
use wgrad::HostArray;
use wgrad::keras::layers::{
    Cross, Feature, FeatureMode, FeatureSpace, Table, host_layer_from_config,
};

use crate::error::{Raise, invalid, keep};
use crate::host_layer::{Given, numpy};
use crate::interpreter::Release;
use crate::layer::config_of;

/// A feature: its name, its kind, its dtype, its options as numbers, the config of its layer, and its output mode.
#[derive(FromPyObject)]
struct Described(String, String, String, Vec<f32>, Option<String>, String);

/// The columns of a table, each with its name.
type Columns<'py> = Vec<(String, Given<'py>)>;

/// A table as one row of numbers for each example.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeFeatureSpace(FeatureSpace);

fn mode(name: &str) -> PyResult<FeatureMode> {
    match name {
        "int" => Ok(FeatureMode::Int),
        "one_hot" => Ok(FeatureMode::OneHot),
        "float" => Ok(FeatureMode::Float),
        other => Err(invalid(format!(
            "FeatureSpace: output_mode is {other:?}; it must be 'int', 'one_hot' or 'float'."
        ))),
    }
}

fn feature(described: &Described) -> PyResult<Feature> {
    let Described(_, kind, dtype, numbers, layer, output) = described;
    let number = |at: usize, default: f32| numbers.get(at).copied().unwrap_or(default);
    let made = match (kind.as_str(), layer) {
        ("float", _) => Feature::float(),
        ("float_rescaled", _) => Feature::float_rescaled(number(0, 1.0), number(1, 0.0)),
        ("float_normalized", _) => Feature::float_normalized(),
        // Numbers of bins are exact in f32 as far as devices can use them.
        ("float_discretized", _) => Feature::float_discretized(number(0, 0.0) as usize),
        (_, Some(config)) => {
            let layer = host_layer_from_config(&config_of(config).raised()?).raised()?;
            Feature::new(dtype, layer, FeatureMode::OneHot)
        }
        (kind, None) => {
            return Err(invalid(format!("FeatureSpace: there is no kind of feature '{kind}'.")));
        }
    };
    Ok(made.output_mode(mode(output)?))
}

fn table(columns: &Columns<'_>) -> PyResult<Table> {
    let mut table = Table::new();
    for (name, column) in columns {
        let array: HostArray<'static> = column.array()?;
        table = table.column(name, &array);
    }
    Ok(table)
}

#[pymethods]
impl NativeFeatureSpace {
    #[new]
    fn new(features: Vec<Described>, crosses: Vec<(Vec<String>, usize, String)>) -> PyResult<Self> {
        let mut space = FeatureSpace::new();
        for described in &features {
            space = space.feature(&described.0, feature(described)?);
        }
        for (names, bins, output) in crosses {
            space = space.cross(Cross::new(names, bins).output_mode(mode(&output)?));
        }
        Ok(NativeFeatureSpace(space))
    }

    /// The space in a `.keras` file.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Self> {
        py.released(|| FeatureSpace::load(path)).raised().map(NativeFeatureSpace)
    }

    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.released(|| self.0.save(path)).raised()
    }

    /// Learns from an iterable of batches, each a list of columns.
    fn adapt(&self, batches: &Bound<'_, PyAny>) -> PyResult<()> {
        let batches = batches.try_iter()?.map(|batch| {
            let read = || -> PyResult<Table> { table(&batch?.extract::<Columns<'_>>()?) };
            read().map_err(keep)
        });
        self.0.adapt_batches(batches).raised()
    }

    /// One array for all features.
    fn apply<'py>(&self, py: Python<'py>, columns: Columns<'py>) -> PyResult<Bound<'py, PyAny>> {
        let table = table(&columns)?;
        numpy(py, &py.released(|| self.0.apply(&table)).raised()?)
    }

    /// An array for each feature and each cross.
    fn apply_dict<'py>(
        &self,
        py: Python<'py>,
        columns: Columns<'py>,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let table = table(&columns)?;
        let made = py.released(|| self.0.apply_dict(&table)).raised()?;
        made.columns().map(|(name, array)| Ok((name.to_string(), numpy(py, array)?))).collect()
    }
}
