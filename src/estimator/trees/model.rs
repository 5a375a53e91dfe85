//! [`Model`]: what both kinds of boosted trees do, with raw predictions.

use super::boost;
use super::ensemble::Ensemble;
use super::file;
use super::objective::{Objective, Targets};
use super::options::{BoostedTreesOptions, TreesFitOptions};
use crate::data::IntoModelData;
use crate::error::{Error, Result, message};
use crate::estimator::rows::Rows;
use crate::keras::{History, Logs};

/// Options, and after `fit` the trees.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) options: BoostedTreesOptions,
    pub(super) objective: Objective,
    pub(super) trained: Option<Ensemble>,
}

impl Model {
    pub(super) fn new(options: BoostedTreesOptions, objective: Objective) -> Result<Self> {
        options.check()?;
        Ok(Model { options, objective, trained: None })
    }

    pub(super) async fn fit<'a>(
        &mut self,
        data: impl IntoModelData<'a>,
        options: TreesFitOptions<'_>,
    ) -> Result<History> {
        let rows = Rows::read("fit", data).await?;
        let validation = match options.validation_data {
            Some(data) => Some(Rows::read("fit: validation data", data?).await?),
            None => None,
        };
        let (ensemble, history) = boost::fit(&self.options, self.objective, rows, validation)?;
        self.trained = Some(ensemble);
        Ok(history)
    }

    pub(super) fn trained(&self, call: &str) -> Result<&Ensemble> {
        self.trained.as_ref().ok_or_else(|| {
            Error::Data(message!(
                "{call}: the model has no trees yet. Call fit, or load a saved model."
            ))
        })
    }

    pub(super) async fn evaluate<'a>(&self, data: impl IntoModelData<'a>) -> Result<Logs> {
        let ensemble = self.trained("evaluate")?;
        let mut rows = Rows::read("evaluate", data).await?;
        boost::labels("evaluate", &rows, self.objective)?;
        let raw = ensemble.raw("evaluate", &mut rows)?;
        let y = rows.labels("evaluate")?;
        let targets = Targets { y, weights: rows.weights.as_deref() };
        Ok(boost::measures(self.objective, self.objective.measures(targets, &raw)))
    }

    pub(super) async fn predict<'a>(&self, x: impl IntoModelData<'a>) -> Result<Vec<f64>> {
        let ensemble = self.trained("predict")?;
        ensemble.raw("predict", &mut Rows::read("predict", x).await?)
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        file::to_bytes(self.trained("save")?)
    }

    /// A model with the trees of a file, of which `wanted` says whether it is of the right kind.
    pub(super) fn of(ensemble: Ensemble, wanted: bool, kind: &str) -> Result<Self> {
        if !wanted {
            return Err(Error::Data(message!(
                "load: the file does not have a {kind} but boosted trees of the other kind. Load it with their type."
            )));
        }
        let options =
            BoostedTreesOptions { feature_names: ensemble.names.clone(), ..Default::default() };
        Ok(Model { options, objective: ensemble.objective, trained: Some(ensemble) })
    }
}

/// The methods that both kinds share.
macro_rules! shared_methods {
    ($kind:literal, $name:ident, $wanted:expr) => {
        impl $name {
            /// Trains the model, in place of trees that it may have, on `x` of `[N,D]` and labels `[N]`, with weights `[N]` if there
            /// are any; [`IntoModelData`] lists the forms of data. NaN is a missing value. All rows are read to the host. Blocks.
            ///
            /// The history has the loss of each iteration and a metric, which [`evaluate`](Self::evaluate) describes.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) without rows, if a column has no values, or an option is invalid;
            /// [`Error::Index`](crate::Error::Index) if a label is not a class, or a value not a category;
            /// [`Error::Shape`](crate::Error::Shape) if arrays do not fit together. The model then keeps the trees that it had.
            #[cfg(not(target_family = "wasm"))]
            pub fn fit<'a>(
                &mut self,
                data: impl IntoModelData<'a>,
                options: TreesFitOptions<'_>,
            ) -> Result<History> {
                pollster::block_on(self.fit_async(data, options))
            }

            /// Same as `fit`, on every target. Only reading from a device waits; the training itself keeps the thread.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data), [`Error::Index`](crate::Error::Index) or
            /// [`Error::Shape`](crate::Error::Shape) for the same reasons as `fit`.
            pub async fn fit_async<'a>(
                &mut self,
                data: impl IntoModelData<'a>,
                options: TreesFitOptions<'_>,
            ) -> Result<History> {
                self.model.fit(data, options).await
            }

            /// Returns how much each feature has contributed, in the order of the columns.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) before `fit`.
            pub fn feature_importances(&self, kind: ImportanceType) -> Result<Vec<f64>> {
                Ok(self.model.trained("feature_importances")?.importances(kind))
            }

            /// Returns the names of the features that the model was trained with; none if they have no names.
            pub fn feature_names(&self) -> &[String] {
                match &self.model.trained {
                    Some(ensemble) => &ensemble.names,
                    None => &self.model.options.feature_names,
                }
            }

            /// Returns the trees in the order of training: of each iteration one, or with more than two classes one for each class.
            /// None before `fit`.
            pub fn trees(&self) -> &[Tree] {
                self.model.trained.as_ref().map_or(&[], |ensemble| &ensemble.trees)
            }

            /// Returns what the model predicts without trees, before a sigmoid or softmax: a number, or one for each class. None
            /// before `fit`.
            pub fn baseline(&self) -> &[f64] {
                self.model.trained.as_ref().map_or(&[], |ensemble| &ensemble.baseline)
            }

            /// Writes the trees as one file, in the safetensors format. Blocks.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) before `fit`; [`Error::Io`](crate::Error::Io) if the file cannot be written.
            #[cfg(not(target_family = "wasm"))]
            pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                super::file::save(self.model.trained("save")?, path.as_ref())
            }

            /// Returns the contents of the file that `save` writes.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) before `fit`.
            pub fn to_bytes(&self) -> Result<Vec<u8>> {
                self.model.to_bytes()
            }

            /// Loads a model. Options for training are not part of the file: another `fit` has the defaults. Blocks.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) if the file cannot be read; else the errors of [`from_bytes`](Self::from_bytes).
            #[cfg(not(target_family = "wasm"))]
            pub fn load(path: impl AsRef<Path>) -> Result<Self> {
                let path = path.as_ref();
                let ensemble = super::file::load(path)?;
                crate::trackable::weights::in_file(path, Self::of(ensemble))
            }

            /// Same as `load`, from the contents of the file.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if the contents are damaged or another kind of model.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Self::of(super::file::from_bytes(bytes)?)
            }

            fn of(ensemble: super::ensemble::Ensemble) -> Result<Self> {
                let wanted: fn(Objective) -> bool = $wanted;
                let wanted = wanted(ensemble.objective);
                Ok($name { model: Model::of(ensemble, wanted, $kind)? })
            }
        }
    };
}
pub(super) use shared_methods;
