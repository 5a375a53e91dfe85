//! Models whose class is written in Python, with steps of their own or Keras's.

use pyo3::prelude::*;
use wgrad::data::Batch;
use wgrad::keras::{Context, Layer, Model, StepLogs, Trainer};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::keep;
use crate::interpreter::attached;
use crate::python_layer::PyLayer;
use crate::tensor::Tensor;

/// A subclass of `keras.Model`, which may have steps of its own.
pub struct PyModel(Stepped);

/// The same with Keras's steps.
struct Stepped {
    layer: PyLayer,
    trainer: Trainer,
}

macro_rules! python_model {
    ($model:ty, |$this:ident| $layer:expr) => {
        impl Trackable for $model {
            fn track(&self, parts: &mut Parts<'_>) {
                let $this = self;
                $layer.track(parts);
            }

            fn kind(&self) -> &'static str {
                let $this = self;
                $layer.kind()
            }

            fn identity(&self) -> (usize, usize) {
                let $this = self;
                $layer.identity()
            }
        }

        impl Layer<[wgrad::Tensor], Vec<wgrad::Tensor>> for $model {
            fn call(
                &self,
                xs: &[wgrad::Tensor],
                cx: Context<'_>,
            ) -> wgrad::Result<Vec<wgrad::Tensor>> {
                let $this = self;
                $layer.call_all(xs, cx)
            }
        }
    };
}
python_model!(PyModel, |this| this.0.layer);
python_model!(Stepped, |this| this.layer);

impl Model<[wgrad::Tensor], Vec<wgrad::Tensor>> for Stepped {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// The keys, if the model returns a dictionary.
    fn output_names(&self) -> Vec<String> {
        attached(|py| {
            let names = self.layer.get(py).and_then(|object| object.getattr("_output_keys"));
            names.and_then(|names| names.extract()).unwrap_or_default()
        })
    }
}

impl PyModel {
    pub fn new(layer: PyLayer) -> Self {
        PyModel(Stepped { layer, trainer: Trainer::new() })
    }

    /// The logs of a step that the program's class defines; `None` if it does not.
    fn own_step(&self, method: &str, batch: &Batch) -> wgrad::Result<Option<StepLogs>> {
        attached(|py| {
            let run = || -> PyResult<Option<Vec<(String, wgrad::Tensor)>>> {
                let list = |tensors: &[wgrad::Tensor]| {
                    tensors.iter().cloned().map(Tensor).collect::<Vec<_>>()
                };
                let data = (list(&batch.x), list(&batch.y), list(&batch.sample_weight));
                let answer = self.0.layer.get(py)?.call_method1("_wgrad_step", (method, data))?;
                if answer.is_none() {
                    return Ok(None);
                }
                let logs: Vec<(String, Bound<'_, PyAny>)> = answer.extract()?;
                logs.into_iter()
                    .map(|(name, value)| Ok((name, to_tensor(&value, None)?)))
                    .collect::<PyResult<_>>()
                    .map(Some)
            };
            let logs = run().map_err(keep)?;
            Ok(logs.map(|logs| {
                logs.iter().fold(StepLogs::new(), |logs, (name, value)| logs.add(name, value))
            }))
        })
    }
}

impl Model<[wgrad::Tensor], Vec<wgrad::Tensor>> for PyModel {
    fn trainer(&self) -> &Trainer {
        &self.0.trainer
    }

    fn output_names(&self) -> Vec<String> {
        self.0.output_names()
    }

    fn train_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        match self.own_step("train_step", batch)? {
            Some(logs) => Ok(logs),
            None => self.0.train_step(batch),
        }
    }

    fn test_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        match self.own_step("test_step", batch)? {
            Some(logs) => Ok(logs),
            None => self.0.test_step(batch),
        }
    }
}
