//! [`Network`]: a functional model with a head, whose linear part may have an optimizer of its own.

use std::sync::Arc;

use super::head::Head;
use crate::data::{Batch, IntoModelData};
use crate::error::{Error, Result, message};
use crate::keras::optimizers::Optimizer;
use crate::keras::saving::{LoadModelOptions, load_model_from_bytes};
use crate::keras::{
    Context, EvaluateOptions, FitOptions, Functional, History, Layer, Logs, Losses, Model,
    PredictOptions, StepLogs, TRAINING, Trainer,
};
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::trackable::{Class, Parts, Trackable};
use crate::variable::Variable;

/// The name of the linear part.
pub(super) const LINEAR: &str = "linear";

/// A model that is compiled.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) model: Functional,
    pub(super) head: Head,
    /// The optimizer of the linear part, if there is another part.
    pub(super) linear: Option<Arc<dyn Optimizer>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("model", &self.model)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// Compiles a model.
    pub(super) fn new(
        model: Functional,
        head: Head,
        optimizer: impl Optimizer + 'static,
    ) -> Result<Self> {
        head.compile(&model, optimizer)?;
        Ok(Network { model, head, linear: None })
    }

    /// The model in a file, of the kind `name` with `inputs` inputs: its layers, the sizes of its inputs, and the head.
    pub(super) fn read(
        bytes: &[u8],
        name: &str,
        inputs: usize,
        regression: bool,
    ) -> Result<(Functional, Vec<usize>, Head)> {
        let loaded = load_model_from_bytes(bytes, LoadModelOptions::new().compile(false))?;
        let model = loaded.functional()?;
        let wrong = |what: String| {
            Error::Data(message!(
                "load: {what}. Load the file with the type that saved it, or with keras::saving::load_model."
            ))
        };
        if model.name() != name {
            return Err(wrong(format!(
                "the file has a model called '{}', not '{name}'",
                model.name()
            )));
        }
        let sizes: Option<Vec<usize>> = model
            .inputs()
            .iter()
            .map(|input| if input.rank() == 2 { input.shape()[1] } else { None })
            .collect();
        let outputs = match model.outputs() {
            [y] if y.rank() == 2 => y.shape()[1],
            _ => None,
        };
        let (Some(sizes), Some(outputs @ 1..)) = (sizes, outputs) else {
            return Err(wrong(
                "the model does not have inputs and an output of known sizes".into(),
            ));
        };
        let head = match (regression, outputs) {
            (true, 1) => Head::Regression,
            (true, _) => return Err(wrong(format!("the regressor has {outputs} outputs"))),
            (false, 1 | 2) => Head::Classes(2),
            (false, _) => Head::Classes(outputs),
        };
        if sizes.len() != inputs || head.outputs() != outputs {
            return Err(wrong(format!(
                "the model has {} inputs and {outputs} outputs",
                sizes.len()
            )));
        }
        Ok((model, sizes, head))
    }

    /// The variables of the linear part, and the others.
    fn parts(&self) -> (Vec<Variable>, Vec<Variable>) {
        let named = self.model.named_variables().into_iter();
        let named = named.filter(|(_, variable)| variable.trainable());
        let (linear, others): (Vec<_>, Vec<_>) =
            named.partition(|(name, _)| name.split('/').next() == Some(LINEAR));
        let only = |list: Vec<(String, Variable)>| list.into_iter().map(|(_, variable)| variable);
        (only(linear).collect(), only(others).collect())
    }

    pub(super) async fn fit<'a>(
        &self,
        data: impl IntoModelData<'a>,
        options: FitOptions<'_>,
    ) -> Result<History> {
        self.fit_async(data, options).await
    }

    pub(super) async fn evaluate<'a>(
        &self,
        data: impl IntoModelData<'a>,
        options: EvaluateOptions<'_>,
    ) -> Result<Logs> {
        self.evaluate_async(data, options).await
    }

    /// The outputs, a number for each row and output.
    pub(super) async fn predict<'a>(
        &self,
        x: impl IntoModelData<'a>,
        options: PredictOptions<'_>,
    ) -> Result<Vec<f64>> {
        self.predict_async(x, options).await?.to_vec_async::<f64>().await
    }
}

impl Trackable for Network {
    fn track(&self, parts: &mut Parts<'_>) {
        self.model.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.model.kind()
    }

    fn title(&self) -> String {
        self.model.title()
    }

    fn class(&self) -> Option<&'static Class> {
        self.model.class()
    }
}

impl Layer<[Tensor], Vec<Tensor>> for Network {
    fn get_config(&self) -> Result<crate::keras::Config> {
        Layer::<[Tensor], Vec<Tensor>>::get_config(&self.model)
    }

    fn call(&self, xs: &[Tensor], cx: Context<'_>) -> Result<Vec<Tensor>> {
        self.model.call(xs, cx)
    }
}

impl Model<[Tensor], Vec<Tensor>> for Network {
    fn trainer(&self) -> &Trainer {
        Model::<[Tensor], Vec<Tensor>>::trainer(&self.model)
    }

    fn output_names(&self) -> Vec<String> {
        Model::<[Tensor], Vec<Tensor>>::output_names(&self.model)
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let Some(optimizer) = &self.linear else {
            return Model::<[Tensor], Vec<Tensor>>::train_step(&self.model, batch);
        };
        let tape = GradientTape::new();
        let losses = Losses::new();
        let (y, _) = self.call_all(&batch.x, TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, &y, &losses)?;
        let (linear, deep) = self.parts();
        let all: Vec<Variable> = linear.iter().chain(&deep).cloned().collect();
        let mut gradients = tape.gradient(&loss, &all)?;
        let of_deep = gradients.split_off(linear.len());
        optimizer.apply_gradients(&gradients, &linear)?;
        self.trainer().optimizer()?.apply_gradients(&of_deep, &deep)?;
        Ok(logs)
    }
}

/// The methods that all networks share. `$predictions` makes the result of `predict` of the numbers and the head.
macro_rules! shared_methods {
    ($name:ident -> $result:ty, $predictions:expr) => {
        impl $name {
            /// Trains the model, with `(x, y)` or `(x, y, sample_weight)`; [`IntoModelData`] lists the forms of data. Blocks.
            ///
            /// # Errors
            /// The errors of [`Model::fit`](crate::keras::Model::fit); among them [`Error::Data`](crate::Error::Data) without rows,
            /// and [`Error::Index`](crate::Error::Index) if a label is not a class.
            #[cfg(not(target_family = "wasm"))]
            pub fn fit<'a>(
                &self,
                data: impl IntoModelData<'a>,
                options: FitOptions<'_>,
            ) -> Result<History> {
                pollster::block_on(self.fit_async(data, options))
            }

            /// Same as `fit`, without blocking and on every target.
            ///
            /// # Errors
            /// Same as [`Model::fit_async`](crate::keras::Model::fit_async).
            pub async fn fit_async<'a>(
                &self,
                data: impl IntoModelData<'a>,
                options: FitOptions<'_>,
            ) -> Result<History> {
                self.network.fit(data, options).await
            }

            /// Returns the loss and the metric: `mae` of a regressor, `accuracy` of a classifier. Blocks.
            ///
            /// # Errors
            /// The errors of [`Model::evaluate`](crate::keras::Model::evaluate).
            #[cfg(not(target_family = "wasm"))]
            pub fn evaluate<'a>(
                &self,
                data: impl IntoModelData<'a>,
                options: EvaluateOptions<'_>,
            ) -> Result<Logs> {
                pollster::block_on(self.evaluate_async(data, options))
            }

            /// Same as `evaluate`, without blocking and on every target.
            ///
            /// # Errors
            /// Same as [`Model::evaluate_async`](crate::keras::Model::evaluate_async).
            pub async fn evaluate_async<'a>(
                &self,
                data: impl IntoModelData<'a>,
                options: EvaluateOptions<'_>,
            ) -> Result<Logs> {
                self.network.evaluate(data, options).await
            }

            /// Returns what the model predicts for the rows of `x`, on the host. Blocks.
            ///
            /// # Errors
            /// The errors of [`Model::predict`](crate::keras::Model::predict).
            #[cfg(not(target_family = "wasm"))]
            pub fn predict<'a>(
                &self,
                x: impl IntoModelData<'a>,
                options: PredictOptions<'_>,
            ) -> Result<$result> {
                pollster::block_on(self.predict_async(x, options))
            }

            /// Same as `predict`, without blocking and on every target.
            ///
            /// # Errors
            /// Same as [`Model::predict_async`](crate::keras::Model::predict_async).
            pub async fn predict_async<'a>(
                &self,
                x: impl IntoModelData<'a>,
                options: PredictOptions<'_>,
            ) -> Result<$result> {
                let numbers = self.network.predict(x, options).await?;
                let predictions: fn(Vec<f64>, Head) -> $result = $predictions;
                Ok(predictions(numbers, self.network.head))
            }

            /// Returns the Keras model, whose output are the logits of a classifier or the numbers of a regressor.
            pub fn model(&self) -> &Functional {
                &self.network.model
            }

            /// Writes the model as a `.keras` file, which Keras reads, too. Blocks.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
            #[cfg(not(target_family = "wasm"))]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
                self.network.model.save(path)
            }

            /// Returns the contents of a `.keras` file with the model.
            ///
            /// # Errors
            /// [`Error::Device`](crate::Error::Device) if the weights cannot be read.
            pub async fn to_keras_async(&self) -> Result<Vec<u8>> {
                self.network.model.to_keras_async().await
            }

            /// Loads a model, and compiles it with the default optimizer. Blocks.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) if the file cannot be read; else the errors of [`from_keras`](Self::from_keras).
            #[cfg(not(target_family = "wasm"))]
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
                let path = path.as_ref();
                let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
                crate::trackable::weights::in_file(path, Self::from_keras(&bytes))
            }
        }
    };
}
pub(super) use shared_methods;

/// The predictions of a regressor, and those of a classifier.
pub(super) fn numbers(numbers: Vec<f64>, _: Head) -> ndarray::Array1<f64> {
    numbers.into()
}

pub(super) fn classes(numbers: Vec<f64>, head: Head) -> super::predictions::Predictions {
    super::predictions::Predictions::new(numbers, head.outputs())
}

/// Returns an error for a size that is 0.
pub(super) fn check_sizes(model: &str, sizes: &[(&str, usize)]) -> Result<()> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Error::Data(message!("{model}: {name} is 0; it must be at least 1.")))
        }
    }
}
