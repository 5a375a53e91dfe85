//! [`FeatureSpace`]: the columns of a table as one row of numbers for each example.

mod feature;
#[cfg(feature = "keras-files")]
mod saving;
mod table;

pub use feature::{Cross, Feature, FeatureMode};
pub use table::Table;

use super::category_encoding::OutputMode;
use super::hashed_crossing::HashedCrossing;
use super::host_encoding::Encoding;
use super::host_layer::{floats, integers};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::trackable::{Parts, Trackable};
use feature::{Preprocessor, array};

/// Maps the columns of a table to numbers: each column as its [`Feature`] says, and [crosses](Cross) of columns. The result is one
/// array `[N,width]` of floats, with the features in the order of their names and then the crosses, as in Keras; or an array for
/// each ([`apply_dict`](FeatureSpace::apply_dict)).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{Cross, Feature, FeatureSpace, Table};
/// let table = Table::new()
///     .column("class", &["first", "third", "third"])
///     .column("sex", &["f", "m", "f"])
///     .column("age", &[20.0f32, 30.0, 40.0]);
/// let space = FeatureSpace::new()
///     .feature("class", Feature::string_categorical())
///     .feature("sex", Feature::string_categorical())
///     .feature("age", Feature::float_normalized())
///     .cross(Cross::new(["class", "sex"], 8));
/// space.adapt(&table)?;
/// let x = space.apply(&table)?.to_tensor()?;
/// assert_eq!(x.shape(), [3, 1 + 3 + 3 + 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FeatureSpace {
    features: Vec<(String, Feature)>,
    crosses: Vec<Cross>,
    /// Whether it came from a file of a space whose results are arrays for each feature.
    #[cfg(feature = "keras-files")]
    dict: bool,
}

const NAME: &str = "FeatureSpace";

impl FeatureSpace {
    /// Creates a space without features.
    pub fn new() -> Self {
        FeatureSpace::default()
    }

    /// Adds a feature for the column of this name, or replaces it.
    #[must_use]
    pub fn feature(mut self, name: impl Into<String>, feature: Feature) -> Self {
        let name = name.into();
        match self.features.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = feature,
            None => self.features.push((name, feature)),
        }
        self
    }

    /// Adds a cross of features.
    #[must_use]
    pub fn cross(mut self, cross: Cross) -> Self {
        self.crosses.push(cross);
        self
    }

    /// Checks the features that crosses name.
    fn check(&self) -> Result<()> {
        if self.features.is_empty() {
            return Err(Error::Data(message!(
                "{NAME}: there are no features. Add one for each column."
            )));
        }
        for cross in &self.crosses {
            let unknown = cross
                .names
                .iter()
                .find(|name| !self.features.iter().any(|(known, _)| known == *name));
            if let Some(name) = unknown {
                let known: Vec<&str> = self.features.iter().map(|(name, _)| &**name).collect();
                return Err(Error::Data(message!(
                    "{NAME}: the cross {} names '{name}', which is no feature; there are {}.",
                    cross.name(),
                    known.join(", ")
                )));
            }
            if cross.mode == FeatureMode::Float {
                return Err(Error::Data(message!(
                    "{NAME}: the cross {} has the output mode float; it must be one_hot or int.",
                    cross.name()
                )));
            }
        }
        Ok(())
    }

    /// Learns what the features need to know: vocabularies, means, bin boundaries. The table is one batch.
    ///
    /// # Errors
    /// [`Error::Data`] if a column is missing or empty, or a cross names an unknown feature; the errors of the features' layers,
    /// which name the column.
    pub fn adapt(&self, table: &Table) -> Result<()> {
        self.adapt_batches([Ok(table.clone())])
    }

    /// Same as [`adapt`](FeatureSpace::adapt), from the batches of a dataset, in one walk.
    ///
    /// # Errors
    /// The errors of the batches; else the same as [`adapt`](FeatureSpace::adapt).
    pub fn adapt_batches(&self, batches: impl IntoIterator<Item = Result<Table>>) -> Result<()> {
        self.check()?;
        let learning: Vec<&(String, Feature)> =
            self.features.iter().filter(|(_, feature)| feature.is_adaptable()).collect();
        learning.iter().for_each(|(_, feature)| feature.reset_state());
        for batch in batches {
            let batch = batch?;
            for (name, feature) in &learning {
                let column = batch.feature(name)?.0;
                in_column(name, feature.update_state(NAME, &column))?;
            }
        }
        learning
            .iter()
            .try_for_each(|(name, feature)| in_column(name, feature.finalize_state(NAME)))
    }

    /// The columns as Keras's preprocessors make them, before they are encoded, and whether they were single values. Crosses come
    /// last, and both parts are in the order of names.
    fn preprocessed(&self, table: &Table) -> Result<(Vec<Part>, bool)> {
        self.check()?;
        let mut parts = Vec::new();
        let (mut single, mut rows) = (true, None);
        for (name, feature) in &self.features {
            let (column, one) = table.feature(name)?;
            single &= one;
            let count = column.shape()[0];
            match rows {
                Some((first, rows)) if rows != count => {
                    return Err(Error::Shape(message!(
                        "{NAME}: the column '{name}' has {count} rows, and '{first}' has {rows}. All need as many."
                    )));
                }
                _ => rows = Some((name, count)),
            }
            let values = in_column(name, feature.preprocess(NAME, &column))?;
            let bins = match (&feature.preprocessor, feature.mode) {
                (Preprocessor::Layer(layer), FeatureMode::OneHot) => layer.cardinality()?,
                _ => None,
            };
            parts.push(Part { name: name.clone(), values, bins, mode: feature.mode });
        }
        let mut crosses = Vec::new();
        for cross in &self.crosses {
            let mut inputs = Vec::new();
            for name in &cross.names {
                // `check` has found all names.
                inputs.extend(
                    parts.iter().find(|part| part.name == *name).map(|part| part.values.view()),
                );
            }
            let values = HashedCrossing::new(cross.crossing_dim).call_host(&inputs);
            let values = in_column(&cross.name(), values)?;
            let bins = Some(cross.crossing_dim);
            crosses.push(Part { name: cross.name(), values, bins, mode: cross.mode });
        }
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        crosses.sort_by(|a, b| a.name.cmp(&b.name));
        parts.extend(crosses);
        Ok((parts, single))
    }

    /// Maps a table to one array of floats, `[N,width]`; single values to `[width]`.
    ///
    /// # Errors
    /// [`Error::Data`] if a column is missing, a feature has not learnt what it needs, or one has [`FeatureMode::Int`];
    /// [`Error::Shape`] if columns differ in their number of rows; the errors of the features' layers, which name the column.
    pub fn apply(&self, table: &Table) -> Result<HostArray<'static>> {
        let (parts, single) = self.preprocessed(table)?;
        let mut encoded = Vec::new();
        for part in &parts {
            if part.mode == FeatureMode::Int {
                return Err(Error::Data(message!(
                    "{NAME}: '{}' has the output mode int, and indices cannot be among floats. Take one_hot, or call apply_dict.",
                    part.name
                )));
            }
            let values = part.encoded()?;
            let columns = match *values.shape() {
                [_, columns] => columns,
                ref shape => {
                    return Err(Error::Shape(message!(
                        "{NAME}: the layer of '{}' returned {shape:?}; it must return a row for each example, [N, K].",
                        part.name
                    )));
                }
            };
            encoded.push((floats(NAME, &values)?, columns));
        }
        let rows = parts.first().map_or(0, |part| part.values.shape()[0]);
        let width: usize = encoded.iter().map(|(_, columns)| columns).sum();
        let mut all = Vec::with_capacity(rows.saturating_mul(width));
        for row in 0..rows {
            for (values, columns) in &encoded {
                all.extend_from_slice(&values[row * columns..(row + 1) * columns]);
            }
        }
        let shape = if single { vec![width] } else { vec![rows, width] };
        Ok(array(shape.into(), all.into_iter()))
    }

    /// Maps a table to an array for each feature and each cross.
    ///
    /// # Errors
    /// Same as [`apply`](FeatureSpace::apply), but features may have [`FeatureMode::Int`].
    pub fn apply_dict(&self, table: &Table) -> Result<Table> {
        let (parts, single) = self.preprocessed(table)?;
        let mut all = Table::new();
        for part in &parts {
            let values = part.encoded()?;
            let values = match *values.shape() {
                [1, columns] if single => values.with_shape([columns]),
                _ => values,
            };
            all.set(part.name.clone(), values);
        }
        Ok(all)
    }

    /// Maps a table to the results of the features' layers before they are encoded: indices for categories, and floats.
    ///
    /// # Errors
    /// Same as [`apply_dict`](FeatureSpace::apply_dict).
    pub fn get_preprocessed_features(&self, table: &Table) -> Result<Table> {
        let (parts, _) = self.preprocessed(table)?;
        let mut all = Table::new();
        parts.into_iter().for_each(|part| all.set(part.name, part.values));
        Ok(all)
    }
}

/// A feature or a cross for some examples.
struct Part {
    name: String,
    values: HostArray<'static>,
    /// The number of indices.
    bins: Option<usize>,
    mode: FeatureMode,
}

impl Part {
    fn encoded(&self) -> Result<HostArray<'static>> {
        if self.mode != FeatureMode::OneHot {
            return Ok(self.values.clone());
        }
        let Some(depth) = self.bins else {
            return Err(Error::Data(message!(
                "{NAME}: '{}' has the output mode one_hot, and its layer does not return indices. Take float.",
                self.name
            )));
        };
        let encoding = Encoding {
            layer: NAME,
            mode: OutputMode::MultiHot,
            depth,
            dtype: HostDType::F32,
            idf: &[],
        };
        encoding.encode(self.values.shape(), integers(NAME, &self.values)?)
    }
}

/// Names the column in an error.
fn in_column<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        error.reworded(|text| {
            let text = text.strip_prefix("FeatureSpace: ").unwrap_or(text);
            message!("{NAME}: column '{name}': {text}")
        })
    })
}

impl Trackable for FeatureSpace {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        NAME
    }
}
