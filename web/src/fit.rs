//! `fit`, `evaluate` and `predict` of `wgrad` with JavaScript's options, callbacks and histories.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wgrad::data::{Batch, IntoModelData, ModelData, mnist};
use wgrad::keras::callbacks::{BatchLogs, Callback, EarlyStopping, EpochLogs, Logs, Run};
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::{
    self, CompileOptions, Context, EvaluateOptions, INFERENCE, Layer, PredictOptions, StepLogs,
    StopSignal, Trainer,
};
use wgrad::{Error, Parts, Trackable};

use crate::args::{Options, show};
use crate::error::{Result, Thrown, bad_type, promise};
use crate::images::Images;
use crate::losses::Loss;
use crate::sequential::{Model, Sequential, Stepped, Training, step};
use crate::tensor::{Operand, Tensor, has};

#[wasm_bindgen]
extern "C" {
    /// Images, or a tensor of examples.
    #[wasm_bindgen(typescript_type = "Examples")]
    pub type Examples;

    #[wasm_bindgen(method, catch, js_name = _images)]
    fn images(this: &Examples) -> std::result::Result<Images, JsValue>;
}

/// The name of the option `validationData` in messages.
const VALIDATION: &str = "fit: validationData";

/// The batch size of `evaluate` and `predict`.
const MEASURED: usize = 256;

/// Examples and their targets.
enum Data {
    Images(Rc<mnist::Images>),
    Tensors(wgrad::Tensor, wgrad::Tensor),
    /// Without targets.
    Inputs(wgrad::Tensor),
    /// Of a model with several inputs or outputs; the targets may be missing.
    #[cfg(feature = "models")]
    Several(Vec<wgrad::Tensor>, Vec<wgrad::Tensor>),
}

impl Data {
    #[cfg(not(feature = "models"))]
    fn of(_: &Model, call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        Data::new(call, x, y)
    }

    /// The data for a model, which may have several inputs or outputs.
    #[cfg(feature = "models")]
    fn of(model: &Model, call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        use crate::several::Argument;
        if let Some((x, y)) = model.examples(call, x.as_ref(), y)? {
            return Ok(Data::Several(x, y));
        }
        let x = model.unwrapped(Argument { call, name: "x" }, x.as_ref())?;
        let y = model.unwrapped(Argument { call, name: "y" }, y)?;
        Data::new(call, x.unchecked_ref(), &y)
    }

    fn new(call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        let missing = y.is_undefined() || y.is_null();
        if has(x.as_ref(), "_images") {
            if !missing {
                return Err(bad_type(format!(
                    "{call}: images bring their labels along, so y is null and the options stand behind it: \
                     {call}(images, null, {{ ... }}). Here y is {}.",
                    show(y)
                )));
            }
            return Ok(Data::Images(x.images()?.0.clone()));
        }
        if let Some(refused) = [("x", x.as_ref()), ("y", y)]
            .into_iter()
            .find(|(name, value)| (*name == "x" || !missing) && !has(value, "_tensor"))
        {
            let (name, value) = refused;
            let or = if name == "x" { "Images or a Tensor" } else { "a Tensor" };
            return Err(bad_type(format!("{call}: {name} is {}; it must be {or}.", show(value))));
        }
        let x = x.unchecked_ref::<Operand>().get()?;
        if x.rank() == 0 {
            return Err(Error::Shape(
                format!("{call}: x is a scalar; its first axis must count the examples.").into(),
            )
            .into());
        }
        if missing {
            return Ok(Data::Inputs(x));
        }
        let y = y.unchecked_ref::<Operand>().get()?;
        if y.shape().first() != x.shape().first() {
            return Err(Error::Shape(format!(
                "{call}: x is {:?} and y is {:?}; their first axes count the examples and must be equal.",
                x.shape(),
                y.shape()
            ).into())
            .into());
        }
        Ok(Data::Tensors(x, y))
    }

    fn with_labels(model: &Model, call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        match Data::of(model, call, x, y)? {
            #[cfg(feature = "models")]
            Data::Several(_, y) if y.is_empty() => Err(bad_type(format!(
                "{call}: y is missing; it must be tensors with what x is to give, in a list or by name."
            ))),
            Data::Inputs(_) => Err(bad_type(format!(
                "{call}: y is missing; it must be a tensor with what x is to give."
            ))),
            data => Ok(data),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Data::Images(images) => images.is_empty(),
            Data::Tensors(x, _) | Data::Inputs(x) => x.shape()[0] == 0,
            #[cfg(feature = "models")]
            Data::Several(x, _) => x.iter().any(wgrad::Tensor::is_empty),
        }
    }

    /// The device of the tensors.
    fn device(&self) -> Option<wgrad::Device> {
        match self {
            Data::Images(_) => None,
            Data::Tensors(x, _) | Data::Inputs(x) => Some(x.device().clone()),
            #[cfg(feature = "models")]
            Data::Several(x, _) => x.first().map(|x| x.device().clone()),
        }
    }

    fn source(&self) -> wgrad::Result<ModelData<'_>> {
        match self {
            Data::Images(images) => (&**images).into_model_data(),
            Data::Tensors(x, y) => (x, y).into_model_data(),
            Data::Inputs(x) => x.into_model_data(),
            #[cfg(feature = "models")]
            Data::Several(x, y) if y.is_empty() => (x.clone(),).into_model_data(),
            #[cfg(feature = "models")]
            Data::Several(x, y) => (x.clone(), y.clone()).into_model_data(),
        }
    }
}

/// A model as `wgrad` trains it, with the same steps as `trainStep`.
struct Trainee<'a> {
    layers: &'a keras::Sequential,
    optimizer: Arc<dyn Optimizer>,
    loss: &'static Loss,
    accuracy: bool,
    trainer: Trainer,
}

impl<'a> Trainee<'a> {
    fn new(layers: &'a keras::Sequential, training: &Training) -> wgrad::Result<Self> {
        let Training { optimizer, loss, accuracy, .. } = training;
        let (optimizer, trainer) = (optimizer.clone(), Trainer::new());
        let trainee =
            Trainee { layers, optimizer: optimizer.clone(), loss, accuracy: *accuracy, trainer };
        let options = CompileOptions::new();
        match loss.of_labels() {
            // Labels outside the model's classes are refused before the first step.
            true => keras::Model::compile(
                &trainee,
                optimizer,
                keras::losses::SparseCategoricalCrossentropy::new().from_logits(true),
                options,
            )?,
            false => keras::Model::compile(&trainee, optimizer, loss.call, options)?,
        }
        Ok(trainee)
    }

    fn logs(step: &Stepped) -> StepLogs {
        let logs = StepLogs::new().add("loss", &step.loss);
        match &step.accuracy {
            Some(accuracy) => logs.add("accuracy", accuracy),
            None => logs,
        }
    }
}

impl Trackable for Trainee<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.layers.track(parts);
    }
}

impl Layer for Trainee<'_> {
    fn call(&self, x: &wgrad::Tensor, cx: Context<'_>) -> wgrad::Result<wgrad::Tensor> {
        self.layers.call(x, cx)
    }
}

impl keras::Model for Trainee<'_> {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        let of = (&*self.optimizer, self.loss, self.accuracy);
        Ok(Trainee::logs(&step(self.layers, of, &batch.x[0], &batch.y[0])?))
    }

    fn test_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        let y = &batch.y[0];
        let predicted = self.layers.call(&batch.x[0], INFERENCE)?;
        let loss = (self.loss.call)(y, &predicted)?;
        let accuracy = self.accuracy.then(|| (self.loss.accuracy)(y, &predicted)).transpose()?;
        Ok(Trainee::logs(&Stepped { loss, accuracy }))
    }
}

/// The metrics' names in Keras and in JavaScript, in the order of the logs.
const NAMES: [(&str, &str); 4] = [
    ("loss", "loss"),
    ("accuracy", "accuracy"),
    ("val_loss", "valLoss"),
    ("val_accuracy", "valAccuracy"),
];

/// The name of a metric in JavaScript. Those of single outputs keep Keras's.
fn key(name: &str) -> &str {
    NAMES.iter().find(|(keras, _)| *keras == name).map_or(name, |(_, key)| key)
}

fn object(logs: &Logs) -> std::result::Result<Object, JsValue> {
    let object = Object::new();
    for (name, value) in logs.iter() {
        Reflect::set(&object, &key(name).into(), &value.into())?;
    }
    Ok(object)
}

/// The functions that an object of callbacks may have.
const EVENTS: [&str; 6] =
    ["onTrainBegin", "onTrainEnd", "onEpochBegin", "onEpochEnd", "onBatchBegin", "onBatchEnd"];

/// An object with functions for some events.
struct Listener(Object);

impl Listener {
    fn new(value: &JsValue) -> Result<Self> {
        let known = Options::new("fit: callbacks", value, &EVENTS);
        let Some(object) = value.dyn_ref::<Object>() else {
            return Err(bad_type(format!(
                "fit: a callback is {}; it must be an object with functions such as onEpochEnd.",
                show(value)
            )));
        };
        // An instance of a class may have other methods and fields, so unknown keys are refused in plain objects only.
        let plain = Object::get_prototype_of(object) == Object::get_prototype_of(&Object::new());
        let options = match plain {
            true => known?,
            false => Options::new("fit: callbacks", &Object::create(object).into(), &[])?,
        };
        EVENTS.iter().try_for_each(|event| options.function(event).map(drop))?;
        Ok(Listener(object.clone()))
    }
}

/// The `type` of a callback that ends the training.
const STOPPING: &str = "earlyStopping";

/// Ends the training when a metric stops improving.
struct Stopping {
    callback: EarlyStopping,
    monitor: String,
    accuracy: bool,
}

impl Stopping {
    fn new(value: &JsValue, validates: bool) -> Result<Self> {
        let known =
            ["type", "monitor", "minDelta", "patience", "restoreBestWeights", "startFromEpoch"];
        let options = Options::new(STOPPING, value, &known)?;
        let names = NAMES.map(|(_, key)| key).join(", ");
        let monitor = options.read("monitor", &format!("one of {names}"), |value| {
            let name = value.as_string()?;
            // Keras's name is accepted, too.
            let known = NAMES.into_iter().find(|(keras, here)| name == *keras || name == *here);
            if let Some((keras, here)) = known {
                return Some((keras.to_string(), here.to_string()));
            }
            // Of a single output.
            let single = name.ends_with("_loss") || name.ends_with("_accuracy");
            (single && cfg!(feature = "models")).then(|| (name.clone(), name))
        })?;
        let (name, monitor) =
            monitor.unwrap_or_else(|| (NAMES[2].0.to_string(), NAMES[2].1.to_string()));
        if name.starts_with("val_") && !validates {
            return Err(bad_type(format!(
                "fit: {STOPPING} watches {monitor}, and there is no validationData. Give some, or monitor: 'loss'."
            )));
        }
        let mut callback = EarlyStopping::new()
            .monitor(&name)
            .patience(options.size("patience")?.unwrap_or(0))
            .min_delta(options.number("minDelta")?.unwrap_or(0.0))
            .restore_best_weights(options.bool("restoreBestWeights")?.unwrap_or(false));
        if let Some(epoch) = options.size("startFromEpoch")? {
            callback = callback.start_from_epoch(epoch);
        }
        Ok(Stopping { callback, monitor, accuracy: name.ends_with("accuracy") })
    }
}

/// A callback for `fit` that ends the training after `patience` epochs without an improvement of a metric: by default after the
/// first, and of `valLoss`.
#[wasm_bindgen(js_name = earlyStopping, unchecked_return_type = "EarlyStopping")]
pub fn early_stopping(
    #[wasm_bindgen(unchecked_optional_param_type = "EarlyStoppingOptions")] options: &JsValue,
) -> Result<Object> {
    let described = Object::new();
    if let Some(options) = options.dyn_ref::<Object>() {
        Object::assign(&described, options);
    }
    Reflect::set(&described, &"type".into(), &STOPPING.into())?;
    Stopping::new(&described, true)?;
    Ok(described)
}

/// Passes the events of `fit` to the page's callbacks.
struct Hooks {
    /// The options object first, then those of `callbacks`.
    listeners: Vec<Listener>,
    signal: Option<JsValue>,
    stop: StopSignal,
    /// Promises that callbacks returned; `fit` awaits them.
    promises: Rc<RefCell<Vec<Promise>>>,
    /// The value that a callback threw.
    thrown: Rc<RefCell<Option<JsValue>>>,
}

/// The error that takes the place of a thrown value until `fit` has ended.
fn interrupted(thrown: &RefCell<Option<JsValue>>, value: JsValue) -> Error {
    *thrown.borrow_mut() = Some(value);
    Error::Data("fit: a callback has thrown.".into())
}

impl Hooks {
    fn look_at_signal(&self) {
        let aborted = |signal: &JsValue| Reflect::get(signal, &"aborted".into());
        if self.signal.as_ref().is_some_and(|s| aborted(s).is_ok_and(|value| value.is_truthy())) {
            self.stop.stop();
        }
    }

    /// Calls the listeners of an event with its number, if it has one, and the logs.
    fn call(&self, event: &str, number: Option<usize>, logs: &Logs) -> wgrad::Result<()> {
        let call = || -> std::result::Result<(), JsValue> {
            for Listener(listener) in &self.listeners {
                let function = Reflect::get(listener, &event.into())?;
                let Some(function) = function.dyn_ref::<Function>() else { continue };
                let logs = object(logs)?;
                let returned = match number {
                    Some(number) => function.call2(listener, &(number as f64).into(), &logs),
                    None => function.call1(listener, &logs),
                }?;
                self.promises.borrow_mut().extend(returned.dyn_into::<Promise>().ok());
            }
            Ok(())
        };
        call().map_err(|value| interrupted(&self.thrown, value))?;
        self.look_at_signal();
        Ok(())
    }
}

impl Callback for Hooks {
    fn batch_logs(&self) -> BatchLogs {
        if self.listeners.is_empty() { BatchLogs::Unused } else { BatchLogs::Behind }
    }

    // Without listeners, `fit` does not have to wait for the device after each epoch.
    fn epoch_logs(&self) -> EpochLogs {
        if self.listeners.is_empty() { EpochLogs::Behind } else { EpochLogs::Now }
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.call("onTrainBegin", None, &Logs::default())
    }

    fn on_train_end(&mut self, logs: &Logs, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.call("onTrainEnd", None, logs)
    }

    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.call("onEpochBegin", Some(epoch), &Logs::default())
    }

    fn on_train_batch_begin(&mut self, batch: usize, _: &mut Run<'_>) -> wgrad::Result<()> {
        self.call("onBatchBegin", Some(batch), &Logs::default())
    }

    fn on_train_batch_end(
        &mut self,
        batch: usize,
        _: &Logs,
        run: &mut Run<'_>,
    ) -> wgrad::Result<()> {
        self.call("onBatchEnd", Some(batch), run.batch_logs())
    }

    fn on_epoch_end(
        &mut self,
        epoch: usize,
        logs: &mut Logs,
        _: &mut Run<'_>,
    ) -> wgrad::Result<()> {
        self.call("onEpochEnd", Some(epoch), logs)
    }

    fn after_epoch(&mut self) -> Option<Pin<Box<dyn Future<Output = wgrad::Result<()>> + '_>>> {
        if self.promises.borrow().is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let waited = all(&self.promises).await;
            self.look_at_signal();
            waited.map_err(|value| interrupted(&self.thrown, value))
        }))
    }
}

/// Waits for the promises that callbacks returned.
async fn all(promises: &RefCell<Vec<Promise>>) -> std::result::Result<(), JsValue> {
    let promises: Array = promises.take().into_iter().collect();
    JsFuture::from(Promise::all(&promises)).await.map(drop)
}

/// The options of `fit`.
struct Plan {
    epochs: usize,
    batch: usize,
    shuffle: bool,
    validation: Option<Data>,
    stopping: Vec<Stopping>,
    steps: Option<usize>,
    hooks: Hooks,
}

impl Plan {
    fn new(model: &Model, options: &JsValue) -> Result<Self> {
        let known = [
            "epochs",
            "batchSize",
            "shuffle",
            "validationData",
            "onBatchEnd",
            "onEpochEnd",
            "callbacks",
            "signal",
            "yieldEvery",
        ];
        let given = options;
        let options = Options::new("fit", options, &known)?;
        let validation = match options.get("validationData") {
            None => None,
            Some(data) => Some(match data.dyn_ref::<Array>() {
                Some(pair) => {
                    let x = pair.get(0);
                    Data::with_labels(model, VALIDATION, x.unchecked_ref(), &pair.get(1))?
                }
                None => {
                    let y = JsValue::UNDEFINED;
                    Data::with_labels(model, VALIDATION, data.unchecked_ref(), &y)?
                }
            }),
        };
        // The options object may itself have functions for these two events.
        let (batch_end, epoch_end) =
            (options.function("onBatchEnd")?, options.function("onEpochEnd")?);
        let mut listeners = Vec::new();
        if batch_end.is_some() || epoch_end.is_some() {
            listeners.push(Listener(given.clone().unchecked_into()));
        }
        let mut stopping = Vec::new();
        let given = options.get("callbacks").unwrap_or_default();
        let given = match given.dyn_ref::<Array>() {
            Some(list) => list.clone(),
            None if given.is_undefined() => Array::new(),
            None => Array::of1(&given),
        };
        for value in given.iter() {
            match Reflect::get(&value, &"type".into()).unwrap_or_default() == STOPPING {
                true => stopping.push(Stopping::new(&value, validation.is_some())?),
                false => listeners.push(Listener::new(&value)?),
            }
        }
        Ok(Plan {
            epochs: options.count("epochs")?.unwrap_or(1),
            batch: options.count("batchSize")?.unwrap_or(32),
            shuffle: options.bool("shuffle")?.unwrap_or(true),
            validation,
            stopping,
            steps: options.count("yieldEvery")?,
            hooks: Hooks {
                listeners,
                signal: options.read("signal", "an AbortController's signal", |signal| {
                    let aborted = Reflect::get(signal, &"aborted".into()).ok()?;
                    aborted.as_bool().map(|_| signal.clone())
                })?,
                stop: StopSignal::new(),
                promises: Rc::default(),
                thrown: Rc::default(),
            },
        })
    }

    async fn run(self, model: &Model, data: &Data) -> Result<Object> {
        let training = model.training()?;
        if let Some(blind) =
            self.stopping.iter().find(|stopping| stopping.accuracy && !training.accuracy)
        {
            return Err(bad_type(format!(
                "fit: {STOPPING} watches {}, and the model was compiled without metrics: ['accuracy'].",
                blind.monitor
            )));
        }
        let (thrown, promises) = (self.hooks.thrown.clone(), self.hooks.promises.clone());
        let mut options = keras::FitOptions::new()
            .epochs(self.epochs)
            .batch_size(self.batch)
            .shuffle(self.shuffle)
            .validation_batch_size(MEASURED)
            .verbose(0)
            .stop_signal(&self.hooks.stop)
            .callback(self.hooks);
        if let Some(validation) = &self.validation {
            options = options.validation_data(validation.source()?);
        }
        if let Some(steps) = self.steps {
            options = options.yield_every(steps);
        }
        for Stopping { callback, .. } in self.stopping {
            options = options.callback(callback);
        }
        #[cfg(feature = "models")]
        let several = model.several().is_some();
        #[cfg(not(feature = "models"))]
        let several = false;
        let fitted = match several {
            #[cfg(feature = "models")]
            true => {
                let trainee = crate::several::Trainee::of(model, &training)?;
                keras::Model::fit_async(&trainee, data.source()?, options).await
            }
            _ => {
                let trainee = Trainee::new(&model.layers, &training)?;
                keras::Model::fit_async(&trainee, data.source()?, options).await
            }
        };
        if let Some(value) = thrown.take() {
            return Err(Thrown::from(value));
        }
        let fitted = fitted?;
        // The promises of the last batches and of `onTrainEnd`.
        all(&promises).await?;
        let history = Object::new();
        Reflect::set(&history, &"loss".into(), &Array::new())?;
        for (name, values) in fitted.iter() {
            let list: Array = values.iter().map(|value| JsValue::from(*value)).collect();
            Reflect::set(&history, &key(name).into(), &list)?;
        }
        Ok(history)
    }
}

/// A future that makes new tensors on one device, even if another one is opened meanwhile: batches belong on their model's
/// device.
struct On<F> {
    device: wgrad::Device,
    future: Pin<Box<F>>,
}

impl<F: Future> On<F> {
    /// Uses the model's device; if the model has no weights yet, that of the data.
    fn device_of(model: &Model, data: &Data, future: F) -> Result<Self> {
        let device = match model.device().or_else(|| data.device()) {
            Some(device) => device,
            None => wgrad::Device::current()?,
        };
        Ok(On { device, future: Box::pin(future) })
    }
}

impl<F: Future> Future for On<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<F::Output> {
        let device = self.device.clone();
        device.scope(|| self.future.as_mut().poll(cx))
    }
}

/// Held while a model is being trained.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn batch_size(call: &'static str, options: &JsValue) -> Result<usize> {
    Ok(Options::new(call, options, &["batchSize"])?.count("batchSize")?.unwrap_or(MEASURED))
}

#[wasm_bindgen]
impl Sequential {
    /// Trains on images, or on tensors whose first axes count the examples; omit `y` for images. The page keeps drawing
    /// meanwhile, and callbacks may use the model.
    #[wasm_bindgen(unchecked_return_type = "Promise<History>")]
    pub fn fit(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "Targets | null")] y: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "FitOptions")] options: &JsValue,
    ) -> Result<Promise> {
        let model = self.0.clone();
        let data = Data::with_labels(&model, "fit", x, y)?;
        let plan = Plan::new(&model, options)?;
        model.training()?;
        if data.is_empty() {
            return Err(Error::Shape("fit: there are no examples.".into()).into());
        }
        if model.fitting.replace(true) {
            return Err(bad_type(
                "fit: this model is being trained already. Await that, or stop it by its signal."
                    .to_string(),
            ));
        }
        Ok(promise(async move {
            let _busy = Busy(&model.fitting);
            Ok(On::device_of(&model, &data, plan.run(&model, &data))?.await?.into())
        }))
    }

    /// The mean loss, and the accuracy if `compile` requested it.
    #[wasm_bindgen(unchecked_return_type = "Promise<Metrics>")]
    pub fn evaluate(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "Targets | null")] y: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "{ batchSize?: number }")] options: &JsValue,
    ) -> Result<Promise> {
        let (model, batch) = (self.0.clone(), batch_size("evaluate", options)?);
        let data = Data::with_labels(&model, "evaluate", x, y)?;
        Ok(promise(async move {
            #[cfg(feature = "models")]
            if model.several().is_some() {
                let trainee = crate::several::Trainee::of(&model, &*model.training()?)?;
                let options = EvaluateOptions::new().batch_size(batch).verbose(0);
                let evaluated = keras::Model::evaluate_async(&trainee, data.source()?, options);
                let logs = On::device_of(&model, &data, evaluated)?.await?;
                return Ok(object(&logs)?.into());
            }
            let trainee = Trainee::new(&model.layers, &*model.training()?)?;
            let options = EvaluateOptions::new().batch_size(batch).verbose(0);
            let evaluated = keras::Model::evaluate_async(&trainee, data.source()?, options);
            let logs = On::device_of(&model, &data, evaluated)?.await?;
            Ok(object(&logs)?.into())
        }))
    }
}

/// The results of all examples.
fn predict(model: Rc<Model>, x: &Examples, options: &JsValue) -> Result<Promise> {
    let data = Data::of(&model, "predict", x, &JsValue::UNDEFINED)?;
    let batch = batch_size("predict", options)?;
    Ok(promise(async move {
        let options = PredictOptions::new().batch_size(batch).verbose(0);
        #[cfg(feature = "models")]
        if let Some(several) = model.several() {
            let predicted = keras::Model::predict_all_async(several, data.source()?, options);
            let results = On::device_of(&model, &data, predicted)?.await?;
            return Ok(crate::several::results(results));
        }
        let predicted = keras::Model::predict_async(&*model.layers, data.source()?, options);
        let results = On::device_of(&model, &data, predicted)?.await?;
        Ok(Tensor::new(results).into())
    }))
}

#[cfg(not(feature = "models"))]
#[wasm_bindgen]
impl Sequential {
    /// The model's outputs for all examples, one row each.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn predict(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "{ batchSize?: number }")] options: &JsValue,
    ) -> Result<Promise> {
        predict(self.0.clone(), x, options)
    }
}

// Its type is in `several`.
#[cfg(feature = "models")]
#[wasm_bindgen]
impl Sequential {
    #[wasm_bindgen(skip_typescript)]
    #[doc(hidden)]
    pub fn predict(&self, x: &Examples, options: &JsValue) -> Result<Promise> {
        predict(self.0.clone(), x, options)
    }
}
