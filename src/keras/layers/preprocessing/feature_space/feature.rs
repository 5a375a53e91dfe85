//! [`Feature`]: how a column becomes numbers; [`Cross`]: two columns together.

use std::sync::{Mutex, PoisonError, RwLock};

use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::keras::layers::preprocessing::host_layer::floats;
use crate::keras::layers::{Discretization, Hashing, HostLayer, IntegerLookup, StringLookup};
use crate::shape::Shape;

/// What a feature contributes to the result of a [`FeatureSpace`](super::FeatureSpace).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureMode {
    /// The result of its layer, as floats.
    Float,
    /// The index that its layer returns, as an integer.
    Int,
    /// A row of zeros with a 1 at the index that its layer returns.
    OneHot,
}

impl FeatureMode {
    pub(super) fn name(self) -> &'static str {
        match self {
            FeatureMode::Float => "float",
            FeatureMode::Int => "int",
            FeatureMode::OneHot => "one_hot",
        }
    }
}

/// How a column of a [`FeatureSpace`](super::FeatureSpace) becomes numbers.
#[derive(Debug)]
pub struct Feature {
    /// Keras's name of the column's dtype.
    pub(super) dtype: String,
    pub(super) preprocessor: Preprocessor,
    pub(super) mode: FeatureMode,
}

/// The layer of a feature.
#[derive(Debug)]
pub(super) enum Preprocessor {
    Identity,
    Rescaling { scale: f32, offset: f32 },
    Normalization(Moments),
    Layer(Box<dyn HostLayer>),
}

/// The mean and the variance of a column.
#[derive(Debug, Default)]
pub(super) struct Moments {
    pub(super) known: RwLock<Option<(Vec<f32>, Vec<f32>)>>,
    /// The number of rows, and for each place in a row the mean and the sum of squared distances to it.
    seen: Mutex<(f64, Vec<(f64, f64)>)>,
}

impl Feature {
    /// A column that passes through a layer of its own; `dtype` is TensorFlow's name of the column's dtype, such as `string`.
    pub fn new(dtype: &str, layer: impl HostLayer + 'static, mode: FeatureMode) -> Self {
        Feature {
            dtype: dtype.to_string(),
            preprocessor: Preprocessor::Layer(Box::new(layer)),
            mode,
        }
    }

    fn number(preprocessor: Preprocessor) -> Self {
        Feature { dtype: "float32".to_string(), preprocessor, mode: FeatureMode::Float }
    }

    /// Numbers as they are.
    pub fn float() -> Self {
        Feature::number(Preprocessor::Identity)
    }

    /// Numbers times `scale` plus `offset`.
    pub fn float_rescaled(scale: f32, offset: f32) -> Self {
        Feature::number(Preprocessor::Rescaling { scale, offset })
    }

    /// Numbers, shifted and scaled to mean 0 and variance 1.
    pub fn float_normalized() -> Self {
        Feature::number(Preprocessor::Normalization(Moments::default()))
    }

    /// The bin of numbers, with boundaries that are learnt so that each of `num_bins` bins holds about as many.
    pub fn float_discretized(num_bins: usize) -> Self {
        Feature::new("float32", Discretization::with_num_bins(num_bins), FeatureMode::OneHot)
    }

    /// The index of integers in a vocabulary that is learnt.
    pub fn integer_categorical() -> Self {
        Feature::new("int32", IntegerLookup::new(), FeatureMode::OneHot)
    }

    /// The index of strings in a vocabulary that is learnt.
    pub fn string_categorical() -> Self {
        Feature::new("string", StringLookup::new(), FeatureMode::OneHot)
    }

    /// The bin of integers by their hash.
    pub fn integer_hashed(num_bins: usize) -> Self {
        Feature::new("int32", Hashing::new(num_bins), FeatureMode::OneHot)
    }

    /// The bin of strings by their hash.
    pub fn string_hashed(num_bins: usize) -> Self {
        Feature::new("string", Hashing::new(num_bins), FeatureMode::OneHot)
    }

    /// Sets what the feature contributes to the result.
    #[must_use]
    pub fn output_mode(mut self, mode: FeatureMode) -> Self {
        self.mode = mode;
        self
    }

    /// The numbers of a column `[N,1]`.
    pub(super) fn preprocess(
        &self,
        name: &str,
        column: &HostArray<'_>,
    ) -> Result<HostArray<'static>> {
        let each = |f: &dyn Fn(usize, f32) -> f32| -> Result<HostArray<'static>> {
            let columns = column.shape().last().map_or(1, |columns| (*columns).max(1));
            let numbers = floats(name, column)?.into_iter().enumerate();
            Ok(array(column.shape().into(), numbers.map(|(at, x)| f(at % columns, x))))
        };
        match &self.preprocessor {
            Preprocessor::Identity => each(&|_, x| x),
            Preprocessor::Rescaling { scale, offset } => each(&|_, x| x * scale + offset),
            Preprocessor::Normalization(moments) => {
                let known = moments.known.read().unwrap_or_else(PoisonError::into_inner);
                let (mean, variance) = known.as_ref().ok_or_else(|| not_adapted(name))?;
                let columns = column.shape().last().map_or(1, |columns| *columns);
                if mean.len() != columns || variance.len() != columns {
                    return Err(Error::Shape(message!(
                        "{name}: the column is {:?}, and the feature has learnt {} means. Give it the columns that it has learnt from.",
                        column.shape(),
                        mean.len()
                    )));
                }
                // As Keras's Normalization, which divides by 1e-7 at least.
                each(&|at, x| (x - mean[at]) / variance[at].sqrt().max(1e-7))
            }
            Preprocessor::Layer(layer) => layer.call_host(column),
        }
    }

    pub(super) fn is_adaptable(&self) -> bool {
        match &self.preprocessor {
            Preprocessor::Identity | Preprocessor::Rescaling { .. } => false,
            Preprocessor::Normalization(_) => true,
            Preprocessor::Layer(layer) => layer.is_adaptable(),
        }
    }

    pub(super) fn reset_state(&self) {
        match &self.preprocessor {
            Preprocessor::Identity | Preprocessor::Rescaling { .. } => {}
            Preprocessor::Normalization(moments) => {
                *moments.seen.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
            }
            Preprocessor::Layer(layer) => layer.reset_state(),
        }
    }

    pub(super) fn update_state(&self, name: &str, column: &HostArray<'_>) -> Result<()> {
        match &self.preprocessor {
            Preprocessor::Identity | Preprocessor::Rescaling { .. } => Ok(()),
            Preprocessor::Normalization(moments) => moments.add(name, column),
            Preprocessor::Layer(layer) => layer.update_state(column),
        }
    }

    pub(super) fn finalize_state(&self, name: &str) -> Result<()> {
        match &self.preprocessor {
            Preprocessor::Identity | Preprocessor::Rescaling { .. } => Ok(()),
            Preprocessor::Normalization(moments) => moments.finish(name),
            Preprocessor::Layer(layer) => layer.finalize_state(),
        }
    }
}

pub(super) fn array(shape: Shape, values: impl Iterator<Item = f32>) -> HostArray<'static> {
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    HostArray::of_bytes(HostDType::F32, shape, bytes)
}

pub(super) fn not_adapted(name: &str) -> Error {
    Error::Data(message!(
        "{name}: the feature learns from data, and has not yet. Call adapt first."
    ))
}

impl Moments {
    /// Adds the rows of a column to the moments, by Welford's method.
    fn add(&self, name: &str, column: &HostArray<'_>) -> Result<()> {
        let columns = column.shape().last().map_or(1, |columns| *columns);
        let numbers = floats(name, column)?;
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(Error::Data(message!(
                "{name}: value {place} of a batch for adapt is {}, which has no mean. Remove missing values first.",
                numbers[place]
            )));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, moments) = &mut *seen;
        if moments.is_empty() {
            moments.resize(columns, (0.0, 0.0));
        }
        if moments.len() != columns {
            return Err(Error::Shape(message!(
                "{name}: a batch for adapt has {columns} columns, and the first had {}.",
                moments.len()
            )));
        }
        for row in numbers.chunks_exact(columns.max(1)) {
            *count += 1.0;
            for (x, (mean, squares)) in row.iter().zip(moments.iter_mut()) {
                let before = f64::from(*x) - *mean;
                *mean += before / *count;
                *squares += before * (f64::from(*x) - *mean);
            }
        }
        Ok(())
    }

    fn finish(&self, name: &str) -> Result<()> {
        let (count, moments) =
            std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        if count == 0.0 {
            return Err(Error::Data(message!(
                "{name}: adapt was given no numbers, which have no mean. Check the column."
            )));
        }
        let known =
            moments.iter().map(|(mean, squares)| (*mean as f32, (squares / count) as f32)).unzip();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(())
    }
}

/// The combinations of the indices of features, hashed into bins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cross {
    pub(super) names: Vec<String>,
    pub(super) crossing_dim: usize,
    pub(super) mode: FeatureMode,
}

impl Cross {
    /// Crosses features, which must be categories, into this number of bins.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>, crossing_dim: usize) -> Self {
        Cross {
            names: names.into_iter().map(Into::into).collect(),
            crossing_dim,
            mode: FeatureMode::OneHot,
        }
    }

    /// Sets what the cross contributes to the result: [`FeatureMode::OneHot`], the default, or [`FeatureMode::Int`].
    #[must_use]
    pub fn output_mode(mut self, mode: FeatureMode) -> Self {
        self.mode = mode;
        self
    }

    /// The name of the cross, as Keras makes it: `age_X_sex`.
    pub fn name(&self) -> String {
        self.names.join("_X_")
    }
}
