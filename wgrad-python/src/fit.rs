//! `fit`, `evaluate` and `predict`: data and callbacks of Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgrad::data::{Batch, Column, IntoColumns, IntoModelData, ModelData};
use wgrad::keras::callbacks::{
    BackupAndRestore, BackupOptions, BatchLogs, Callback, Logs, Run, SaveFreq,
};
use wgrad::keras::{EvaluateOptions, FitOptions, Model, PredictOptions, StopSignal, Verbose};
use wgrad::ndarray::ArrayD;

use crate::arrays::{to_numpy, to_tensor};
use crate::error::{Raise, keep, raise};
use crate::interpreter::{Release, attached};
use crate::layer::option;
use crate::model::{Kind, NativeModel};

/// The arrays or batches of a call.
#[pyclass(frozen, module = "wgrad")]
pub struct Data(Source);

enum Source {
    Arrays {
        x: Vec<Values>,
        y: Vec<Values>,
        weights: Vec<Values>,
    },
    /// A function that returns an iterator of `(x, y, weights)`, each a list.
    Batches(Py<PyAny>),
}

/// An array on the host, or a tensor.
enum Values {
    F32(ArrayD<f32>),
    F64(ArrayD<f64>),
    I32(ArrayD<i32>),
    I64(ArrayD<i64>),
    U8(ArrayD<u8>),
    Bool(ArrayD<bool>),
    Device(wgrad::Tensor),
}

impl Values {
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        use numpy::{PyArrayDyn, PyArrayMethods};
        macro_rules! host {
            ($($kind:ident $t:ty),*) => {$(
                if let Ok(array) = value.cast::<PyArrayDyn<$t>>() {
                    return Ok(Values::$kind(array.readonly().as_array().to_owned()));
                }
            )*};
        }
        host!(F32 f32, F64 f64, I32 i32, I64 i64, U8 u8, Bool bool);
        to_tensor(value, None).map(Values::Device)
    }

    fn column(&self) -> wgrad::Result<Vec<Column<'_>>> {
        match self {
            Values::F32(array) => array.into_columns(),
            Values::F64(array) => array.into_columns(),
            Values::I32(array) => array.into_columns(),
            Values::I64(array) => array.into_columns(),
            Values::U8(array) => array.into_columns(),
            Values::Bool(array) => array.into_columns(),
            Values::Device(tensor) => tensor.into_columns(),
        }
    }
}

/// The columns of several arrays.
struct Columns<'a>(&'a [Values]);

impl<'a> IntoColumns<'a> for Columns<'a> {
    fn into_columns(self) -> wgrad::Result<Vec<Column<'a>>> {
        let mut columns = Vec::new();
        for values in self.0 {
            columns.extend(values.column()?);
        }
        Ok(columns)
    }
}

#[pymethods]
impl Data {
    #[staticmethod]
    fn arrays(
        x: Vec<Bound<'_, PyAny>>,
        y: Vec<Bound<'_, PyAny>>,
        weights: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let list = |values: &[Bound<'_, PyAny>]| {
            values.iter().map(Values::new).collect::<PyResult<Vec<_>>>()
        };
        Ok(Data(Source::Arrays { x: list(&x)?, y: list(&y)?, weights: list(&weights)? }))
    }

    #[staticmethod]
    fn batches(begin: Py<PyAny>) -> Self {
        Data(Source::Batches(begin))
    }
}

type Lists<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>);

pub fn batch(
    x: &[Bound<'_, PyAny>],
    y: &[Bound<'_, PyAny>],
    weights: &[Bound<'_, PyAny>],
) -> PyResult<Batch> {
    let list = |values: &[Bound<'_, PyAny>]| {
        values.iter().map(|value| to_tensor(value, None)).collect::<PyResult<Vec<_>>>()
    };
    Ok(Batch { x: list(x)?, y: list(y)?, sample_weight: list(weights)? })
}

/// The batches of one pass.
struct Pass(Option<Py<PyAny>>);

impl Iterator for Pass {
    type Item = wgrad::Result<Batch>;

    fn next(&mut self) -> Option<wgrad::Result<Batch>> {
        attached(|py| {
            let iterator = self.0.as_ref()?.bind(py);
            let item = iterator.try_iter().map(|mut items| items.next());
            let made = match item {
                Err(error) => Err(error),
                Ok(None) => return None,
                Ok(Some(item)) => item
                    .and_then(|item| item.extract::<Lists<'_>>())
                    .and_then(|(x, y, weights)| batch(&x, &y, &weights)),
            };
            Some(made.map_err(keep))
        })
    }
}

impl Data {
    fn model_data(&self) -> wgrad::Result<ModelData<'_>> {
        match &self.0 {
            Source::Arrays { x, y, weights } => match (y.is_empty(), weights.is_empty()) {
                (true, _) => (Columns(x),).into_model_data(),
                (false, true) => (Columns(x), Columns(y)).into_model_data(),
                (false, false) => (Columns(x), Columns(y), Columns(weights)).into_model_data(),
            },
            Source::Batches(begin) => {
                Ok(ModelData::from_fn(move || -> Box<dyn Iterator<Item = wgrad::Result<Batch>>> {
                    match attached(|py| begin.call0(py)) {
                        Ok(iterator) => Box::new(Pass(Some(iterator))),
                        Err(error) => Box::new(std::iter::once(Err(keep(error)))),
                    }
                }))
            }
        }
    }
}

/// A callback written in Python: an object with Keras's methods.
struct PyCallback {
    object: Py<PyAny>,
    stop: StopSignal,
    batches: bool,
}

impl PyCallback {
    /// Calls a method, and returns what it has changed in the logs.
    fn tell(
        &self,
        method: &str,
        at: Option<usize>,
        logs: Option<&Logs>,
    ) -> wgrad::Result<Vec<(String, f64)>> {
        attached(|py| {
            let run = || -> PyResult<Vec<(String, f64)>> {
                let dict = PyDict::new(py);
                for (name, value) in logs.into_iter().flat_map(Logs::iter) {
                    dict.set_item(name, value)?;
                }
                let object = self.object.bind(py);
                match at {
                    Some(at) => object.call_method1(method, (at, &dict))?,
                    None => object.call_method1(method, (&dict,))?,
                };
                let stops = match object.getattr_opt("model")? {
                    Some(model) if !model.is_none() => match model.getattr_opt("stop_training")? {
                        Some(stop) => stop.is_truthy()?,
                        None => false,
                    },
                    _ => false,
                };
                if stops {
                    self.stop.stop();
                }
                py.check_signals()?;
                let mut changed = Vec::new();
                for (name, value) in &dict {
                    // What is no number stays among Python's callbacks.
                    let Ok(value) = value.extract::<f64>() else { continue };
                    let name: String = name.extract()?;
                    let known = logs.and_then(|logs| logs.get(&name));
                    if known.is_none_or(|known| known.to_bits() != value.to_bits()) {
                        changed.push((name, value));
                    }
                }
                Ok(changed)
            };
            run().map_err(keep)
        })
    }
}

/// Calls a method of the same name, if the callback wants to hear of batches.
macro_rules! of_batches {
    ($($hook:ident($($logs:ident)?))*) => {$(
        fn $hook(&mut self, batch: usize $(, $logs: &Logs)?, _: &mut Run<'_>) -> wgrad::Result<()> {
            if !self.batches {
                return Ok(());
            }
            #[allow(unused_mut, unused_assignments)]
            let mut logs = None;
            $(logs = Some($logs);)?
            self.tell(stringify!($hook), Some(batch), logs).map(drop)
        }
    )*};
}

impl Callback for PyCallback {
    fn batch_logs(&self) -> BatchLogs {
        if self.batches { BatchLogs::Now } else { BatchLogs::Unused }
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_train_begin", None, None).map(drop)
    }

    fn on_train_end(&mut self, logs: &Logs, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_train_end", None, Some(logs)).map(drop)
    }

    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_epoch_begin", Some(epoch), None).map(drop)
    }

    fn on_epoch_end(
        &mut self,
        epoch: usize,
        logs: &mut Logs,
        _: &mut Run<'_>,
    ) -> wgrad::Result<()> {
        for (name, value) in self.tell("on_epoch_end", Some(epoch), Some(logs))? {
            logs.set(&name, value);
        }
        Ok(())
    }

    fn on_test_begin(&mut self, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_test_begin", None, None).map(drop)
    }

    fn on_test_end(&mut self, logs: &Logs, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_test_end", None, Some(logs)).map(drop)
    }

    fn on_predict_begin(&mut self, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_predict_begin", None, None).map(drop)
    }

    fn on_predict_end(&mut self, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.tell("on_predict_end", None, None).map(drop)
    }

    of_batches! {
        on_train_batch_begin() on_train_batch_end(logs) on_test_batch_begin() on_test_batch_end(logs)
        on_predict_batch_begin() on_predict_batch_end()
    }
}

/// Ends a call when Ctrl-C is pressed, which raises Python's `KeyboardInterrupt`.
struct Signals;

impl Callback for Signals {
    fn on_train_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        attached(|py| py.check_signals()).map_err(keep)
    }

    fn on_test_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        attached(|py| py.check_signals()).map_err(keep)
    }

    fn on_predict_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        attached(|py| py.check_signals()).map_err(keep)
    }
}

fn verbose(options: &Bound<'_, PyDict>) -> PyResult<Verbose> {
    Ok(option::<u8>(options, "verbose")?.map_or(Verbose::Auto, Verbose::from))
}

/// Calls a method of the model, whatever its kind.
macro_rules! with_model {
    ($model:expr, $name:ident($($argument:expr),*)) => {
        match &$model.0 {
            Kind::Sequential(model) => Model::<wgrad::Tensor>::$name(&**model, $($argument),*),
            Kind::Functional(model) => Model::<[wgrad::Tensor], Vec<wgrad::Tensor>>::$name(model, $($argument),*),
            Kind::Python(model) => Model::<[wgrad::Tensor], Vec<wgrad::Tensor>>::$name(&**model, $($argument),*),
        }
    };
}

/// The values of each name, epoch by epoch; the epochs; whether the training was interrupted.
pub type History = (Vec<(String, Vec<f64>)>, Vec<usize>, bool);

pub fn fit(
    py: Python<'_>,
    model: &NativeModel,
    data: &Bound<'_, Data>,
    options: &Bound<'_, PyDict>,
) -> PyResult<History> {
    let validation: Option<Bound<'_, Data>> = match options.get_item("validation_data")? {
        Some(value) if !value.is_none() => Some(value.cast_into::<Data>()?),
        _ => None,
    };
    let validation = validation.as_ref().map(|data| data.get());
    let data = data.get();
    let epochs = option(options, "epochs")?;
    let initial_epoch = option(options, "initial_epoch")?;
    let batch_size: Option<usize> = option(options, "batch_size")?;
    let steps: Option<usize> = option(options, "steps_per_epoch")?;
    let shuffle = option(options, "shuffle")?;
    let split = option(options, "validation_split")?;
    let validation_batch_size: Option<usize> = option(options, "validation_batch_size")?;
    let validation_steps: Option<usize> = option(options, "validation_steps")?;
    let validation_freq: Option<usize> = option(options, "validation_freq")?;
    let class_weight: Vec<(usize, f32)> = option(options, "class_weight")?.unwrap_or_default();
    let callbacks: Vec<(Py<PyAny>, bool)> = option(options, "callbacks")?.unwrap_or_default();
    let backup: Option<(PathBuf, Option<usize>, bool, bool)> = option(options, "backup")?;
    let verbose = verbose(options)?;
    let run = || {
        let stop = StopSignal::new();
        let mut fit = FitOptions::new()
            .verbose(verbose)
            .ctrl_c(false)
            .stop_signal(&stop)
            .class_weight(class_weight);
        macro_rules! set {
            ($($option:ident $value:expr),*) => {$(if let Some(value) = $value { fit = fit.$option(value); })*};
        }
        set!(epochs epochs, initial_epoch initial_epoch, batch_size batch_size, steps_per_epoch steps, shuffle shuffle,
             validation_split split, validation_batch_size validation_batch_size, validation_steps validation_steps,
             validation_freq validation_freq);
        if let Some(validation) = validation {
            fit = fit.validation_data(validation.model_data()?);
        }
        fit = fit.callback(Signals);
        if let Some((folder, batches, double, delete)) = backup {
            let every = batches.map_or(SaveFreq::Epoch, SaveFreq::Batches);
            let options = BackupOptions::new()
                .save_freq(every)
                .double_checkpoint(double)
                .delete_checkpoint(delete);
            fit = fit.callback(BackupAndRestore::new(folder, options));
        }
        for (object, batches) in callbacks {
            fit = fit.callback(PyCallback { object, stop: stop.clone(), batches });
        }
        with_model!(model, fit(data.model_data()?, fit))
    };
    let history = py.released(run).raised()?;
    let values = history.iter().map(|(name, values)| (name.to_string(), values.to_vec())).collect();
    Ok((values, history.epochs().to_vec(), history.interrupted()))
}

pub fn evaluate(
    py: Python<'_>,
    model: &NativeModel,
    data: &Bound<'_, Data>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Vec<(String, f64)>> {
    let data = data.get();
    let batch_size: Option<usize> = option(options, "batch_size")?;
    let steps: Option<usize> = option(options, "steps")?;
    let verbose = verbose(options)?;
    let callbacks: Vec<(Py<PyAny>, bool)> = option(options, "callbacks")?.unwrap_or_default();
    let logs = py
        .released(|| {
            let mut evaluate = EvaluateOptions::new().verbose(verbose).callback(Signals);
            for (object, batches) in callbacks {
                evaluate =
                    evaluate.callback(PyCallback { object, stop: StopSignal::new(), batches });
            }
            if let Some(size) = batch_size {
                evaluate = evaluate.batch_size(size);
            }
            if let Some(steps) = steps {
                evaluate = evaluate.steps(steps);
            }
            with_model!(model, evaluate(data.model_data()?, evaluate))
        })
        .raised()?;
    Ok(logs.iter().map(|(name, value)| (name.to_string(), value)).collect())
}

pub fn predict<'py>(
    py: Python<'py>,
    model: &NativeModel,
    data: &Bound<'py, Data>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let data = data.get();
    let batch_size: Option<usize> = option(options, "batch_size")?;
    let steps: Option<usize> = option(options, "steps")?;
    let verbose = verbose(options)?;
    let callbacks: Vec<(Py<PyAny>, bool)> = option(options, "callbacks")?.unwrap_or_default();
    let outputs = py
        .released(|| {
            let mut predict = PredictOptions::new().verbose(verbose).callback(Signals);
            for (object, batches) in callbacks {
                predict = predict.callback(PyCallback { object, stop: StopSignal::new(), batches });
            }
            if let Some(size) = batch_size {
                predict = predict.batch_size(size);
            }
            if let Some(steps) = steps {
                predict = predict.steps(steps);
            }
            let data = data.model_data()?;
            match &model.0 {
                Kind::Sequential(model) => {
                    Model::<wgrad::Tensor>::predict_all(&**model, data, predict)
                }
                Kind::Functional(model) => {
                    Model::<[wgrad::Tensor], Vec<wgrad::Tensor>>::predict_all(model, data, predict)
                }
                Kind::Python(model) => model.predict_all(data, predict),
            }
        })
        .raised()?;
    outputs.iter().map(|y| to_numpy(py, y)).collect()
}

pub fn on_batch(
    py: Python<'_>,
    model: &NativeModel,
    batch: Batch,
    train: bool,
) -> PyResult<Vec<(String, f64)>> {
    let logs = py
        .released(|| match train {
            true => with_model!(model, train_on_batch(&batch)),
            false => with_model!(model, test_on_batch(&batch)),
        })
        .raised()?;
    let mut values = Vec::new();
    for (name, value) in logs.iter() {
        values.push((name.to_string(), py.released(|| value.item::<f32>()).map_err(raise)?.into()));
    }
    Ok(values)
}
