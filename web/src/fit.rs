//! Training and measuring over many batches without keeping the page from drawing.
//!
//! Steps are called in runs of a few milliseconds. The losses of a run are read together, and the next run begins
//! while they are on their way; no more than two runs are ever under way on the device.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wgrad::Error;
use wgrad::data::mnist;
use wgrad::keras::{INFERENCE, Layer};

use crate::args::Options;
use crate::error::{Result, bad_type, promise};
use crate::images::Images;
use crate::sequential::{Model, Sequential, Stepped};
use crate::tensor::{Operand, Tensor, has};

#[wasm_bindgen]
extern "C" {
    /// Images, or a tensor of examples.
    #[wasm_bindgen(typescript_type = "Examples")]
    pub type Examples;

    #[wasm_bindgen(method, catch, js_name = _images)]
    fn images(this: &Examples) -> std::result::Result<Images, JsValue>;

    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

/// Milliseconds of a run: together with a frame's own work less than the 50 that a visitor notices.
const RUN: f64 = 8.0;
/// The most steps of a run, unless the caller says.
const STEPS: usize = 64;
/// A run that the device takes longer for than this many milliseconds is followed by one of half the steps: the page
/// itself is drawn by the same device.
const SLOW: f64 = 100.0;
/// Examples in a batch where nothing is trained.
const MEASURED: usize = 256;

/// Examples and what they are to be.
enum Data {
    Images(Rc<mnist::Images>),
    Tensors(wgrad::Tensor, wgrad::Tensor),
    /// Without what they are to be.
    Inputs(wgrad::Tensor),
}

impl Data {
    fn new(call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        let missing = y.is_undefined() || y.is_null();
        if has(x.as_ref(), "_images") {
            if !missing {
                return Err(bad_type(format!(
                    "{call}: images bring their labels along, so y must be null or left out."
                )));
            }
            return Ok(Data::Images(x.images()?.0.clone()));
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

    fn with_labels(call: &str, x: &Examples, y: &JsValue) -> Result<Self> {
        match Data::new(call, x, y)? {
            Data::Inputs(_) => Err(bad_type(format!(
                "{call}: y is missing; it must be a tensor with what x is to give."
            ))),
            data => Ok(data),
        }
    }

    fn len(&self) -> usize {
        match self {
            Data::Images(images) => images.len(),
            Data::Tensors(x, _) | Data::Inputs(x) => x.shape()[0],
        }
    }

    /// Some examples, which follow on each other if they are not `shuffled`.
    fn batch(
        &self,
        indices: &[usize],
        shuffled: bool,
    ) -> wgrad::Result<(wgrad::Tensor, Option<wgrad::Tensor>)> {
        let places = |indices: &[usize]| {
            let places: Vec<i32> = indices.iter().map(|index| *index as i32).collect();
            wgrad::Tensor::from_slice(&places, [places.len()])
        };
        let rows = |tensor: &wgrad::Tensor| {
            if shuffled {
                return tensor.gather(&places(indices)?, 0);
            }
            let mut begin = vec![0; tensor.rank()];
            let mut size: Vec<i64> = tensor.shape().iter().map(|size| *size as i64).collect();
            (begin[0], size[0]) = (indices.first().copied().unwrap_or(0), indices.len() as i64);
            tensor.slice(&begin, &size)
        };
        Ok(match self {
            Data::Images(images) => {
                let (x, y) = images.tensors(indices)?;
                (x, Some(y))
            }
            Data::Tensors(x, y) => (rows(x)?, Some(rows(y)?)),
            Data::Inputs(x) => (rows(x)?, None),
        })
    }

    fn labelled(
        &self,
        indices: &[usize],
        shuffled: bool,
    ) -> wgrad::Result<(wgrad::Tensor, wgrad::Tensor)> {
        let (x, y) = self.batch(indices, shuffled)?;
        y.map(|y| (x, y)).ok_or_else(|| Error::Data("fit: there are no labels.".into()))
    }
}

/// The losses and accuracies of a run, on their way from the device.
struct Read {
    values: Pin<Box<dyn Future<Output = wgrad::Result<Vec<f32>>>>>,
    /// They came at once.
    done: Option<wgrad::Result<Vec<f32>>>,
    /// Examples of each step.
    sizes: Vec<usize>,
    began: f64,
}

impl Read {
    /// Asks for the values of `steps`, all losses before all accuracies.
    async fn start(steps: Vec<Stepped>, sizes: Vec<usize>) -> Result<Read> {
        let mut values: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move {
            let accuracies = steps.iter().filter_map(|step| step.accuracy.as_ref());
            let values: Vec<&wgrad::Tensor> =
                steps.iter().map(|step| &step.loss).chain(accuracies).collect();
            Ok(wgrad::Tensor::to_vecs_async::<f32>(&values).await?.concat())
        });
        // Polled once, the copy is on its way before the next run is called.
        let done = poll_fn(|context| match values.as_mut().poll(context) {
            Poll::Ready(values) => Poll::Ready(Some(values)),
            Poll::Pending => Poll::Ready(None),
        })
        .await;
        Ok(Read { values, done, sizes, began: now() })
    }

    /// Loss, accuracy and examples of each step.
    async fn finish(self) -> Result<Vec<(f64, Option<f64>, usize)>> {
        let values = match self.done {
            Some(values) => values?,
            None => self.values.await?,
        };
        let (losses, accuracies) = values.split_at(self.sizes.len());
        let step = |(at, size): (usize, &usize)| {
            (f64::from(losses[at]), accuracies.get(at).map(|value| f64::from(*value)), *size)
        };
        Ok(self.sizes.iter().enumerate().map(step).collect())
    }
}

/// Means over examples.
#[derive(Default)]
struct Sums {
    loss: f64,
    accuracy: Option<f64>,
    examples: usize,
}

impl Sums {
    fn add(&mut self, (loss, accuracy, size): (f64, Option<f64>, usize)) {
        self.loss += loss * size as f64;
        if let Some(accuracy) = accuracy {
            *self.accuracy.get_or_insert(0.0) += accuracy * size as f64;
        }
        self.examples += size;
    }

    fn means(&self) -> (f64, Option<f64>) {
        let examples = self.examples as f64;
        (self.loss / examples, self.accuracy.map(|sum| sum / examples))
    }
}

/// An object of a loss and perhaps an accuracy, under names that begin with `prefix`.
fn logs(object: &Object, keys: [&str; 2], (loss, accuracy): (f64, Option<f64>)) -> Result<()> {
    Reflect::set(object, &keys[0].into(), &loss.into())?;
    if let Some(accuracy) = accuracy {
        Reflect::set(object, &keys[1].into(), &accuracy.into())?;
    }
    Ok(())
}

const TRAINED: [&str; 2] = ["loss", "accuracy"];
const VALIDATED: [&str; 2] = ["valLoss", "valAccuracy"];

/// How `fit` was asked to go about it.
struct Plan {
    epochs: usize,
    batch: usize,
    shuffle: bool,
    validation: Option<Data>,
    on_batch: Option<Function>,
    on_epoch: Option<Function>,
    signal: Option<JsValue>,
    steps: Option<usize>,
}

impl Plan {
    fn new(options: &JsValue) -> Result<Self> {
        let known = [
            "epochs",
            "batchSize",
            "shuffle",
            "validationData",
            "onBatchEnd",
            "onEpochEnd",
            "signal",
            "yieldEvery",
        ];
        let options = Options::new("fit", options, &known)?;
        let validation = match options.get("validationData") {
            None => None,
            Some(data) => Some(match data.dyn_ref::<Array>() {
                Some(pair) => Data::with_labels("fit", pair.get(0).unchecked_ref(), &pair.get(1))?,
                None => Data::with_labels("fit", data.unchecked_ref(), &JsValue::UNDEFINED)?,
            }),
        };
        Ok(Plan {
            epochs: options.count("epochs")?.unwrap_or(1),
            batch: options.count("batchSize")?.unwrap_or(32),
            shuffle: options.bool("shuffle")?.unwrap_or(true),
            validation,
            on_batch: options.function("onBatchEnd")?,
            on_epoch: options.function("onEpochEnd")?,
            signal: options.get("signal"),
            steps: options.count("yieldEvery")?,
        })
    }

    fn aborted(&self) -> bool {
        let aborted = |signal: &JsValue| Reflect::get(signal, &"aborted".into());
        self.signal.as_ref().is_some_and(|s| aborted(s).is_ok_and(|value| value.is_truthy()))
    }

    /// Tells of the steps of a run that are read; `batch` counts them.
    fn report(
        &self,
        steps: Vec<(f64, Option<f64>, usize)>,
        batch: &mut usize,
        sums: &mut Sums,
    ) -> Result<()> {
        for step in steps {
            if let Some(callback) = &self.on_batch {
                let object = Object::new();
                logs(&object, TRAINED, (step.0, step.1))?;
                callback.call2(&JsValue::NULL, &(*batch as f64).into(), &object)?;
            }
            sums.add(step);
            *batch += 1;
        }
        Ok(())
    }

    /// Goes through the data once.
    async fn epoch(&self, model: &Model, data: &Data, most: &mut usize) -> Result<Sums> {
        let order: Vec<usize> = match self.shuffle {
            true => wgrad::random::global().permutation(data.len())?,
            false => (0..data.len()).collect(),
        };
        let mut batches = order.chunks(self.batch).peekable();
        let (mut sums, mut batch, mut waiting) = (Sums::default(), 0, None::<Read>);
        while batches.peek().is_some() && !self.aborted() {
            let (mut steps, mut sizes, began) = (Vec::new(), Vec::new(), now());
            while steps.len() < *most && (steps.is_empty() || now() - began < RUN) {
                let Some(indices) = batches.next() else { break };
                let (x, y) = data.labelled(indices, self.shuffle)?;
                steps.push(model.step(&x, &y)?);
                sizes.push(indices.len());
            }
            let read = Read::start(steps, sizes).await?;
            if let Some(before) = waiting.replace(read) {
                let began = before.began;
                let values = before.finish().await?;
                self.report(values, &mut batch, &mut sums)?;
                // The next run is shorter where the device was slow.
                let limit = self.steps.unwrap_or(STEPS);
                let wanted = if now() - began > SLOW { *most / 2 } else { *most * 2 };
                *most = wanted.clamp(1, limit);
            }
        }
        if let Some(last) = waiting {
            self.report(last.finish().await?, &mut batch, &mut sums)?;
        }
        Ok(sums)
    }

    async fn run(&self, model: &Model, data: &Data) -> Result<Object> {
        let history = Object::new();
        let note = |key: &str, value: f64| -> Result<()> {
            let list = Reflect::get(&history, &key.into())?;
            let list = list.dyn_into::<Array>().unwrap_or_default();
            list.push(&value.into());
            Reflect::set(&history, &key.into(), &list)?;
            Ok(())
        };
        Reflect::set(&history, &"loss".into(), &Array::new())?;
        let mut most = self.steps.unwrap_or(STEPS).min(4);
        for epoch in 0..self.epochs {
            let sums = self.epoch(model, data, &mut most).await?;
            if sums.examples == 0 {
                break;
            }
            let object = Object::new();
            let tell = |keys: [&str; 2], means: (f64, Option<f64>)| -> Result<()> {
                note(keys[0], means.0)?;
                if let Some(accuracy) = means.1 {
                    note(keys[1], accuracy)?;
                }
                logs(&object, keys, means)
            };
            tell(TRAINED, sums.means())?;
            if let Some(validation) = self.validation.as_ref().filter(|_| !self.aborted()) {
                tell(VALIDATED, evaluate(model, validation, MEASURED).await?.means())?;
            }
            if let Some(callback) = &self.on_epoch {
                let result = callback.call2(&JsValue::NULL, &(epoch as f64).into(), &object)?;
                if let Some(promise) = result.dyn_ref::<Promise>() {
                    JsFuture::from(promise.clone()).await?;
                }
            }
            if self.aborted() {
                break;
            }
        }
        Ok(history)
    }
}

/// Loss and accuracy over all examples.
async fn evaluate(model: &Model, data: &Data, batch: usize) -> Result<Sums> {
    let training = model.training()?;
    let order: Vec<usize> = (0..data.len()).collect();
    let (mut sums, mut waiting) = (Sums::default(), None::<Read>);
    for indices in order.chunks(batch) {
        let (x, y) = data.labelled(indices, false)?;
        let predicted = model.layers.call(&x, INFERENCE)?;
        let loss = (training.loss.call)(&y, &predicted)?;
        let accuracy = match training.accuracy {
            true => Some((training.loss.accuracy)(&y, &predicted)?),
            false => None,
        };
        let read = Read::start(vec![Stepped { loss, accuracy }], vec![indices.len()]).await?;
        if let Some(before) = waiting.replace(read) {
            before.finish().await?.into_iter().for_each(|step| sums.add(step));
        }
    }
    if let Some(last) = waiting {
        last.finish().await?.into_iter().for_each(|step| sums.add(step));
    }
    Ok(sums)
}

async fn predict(model: &Model, data: &Data, batch: usize) -> Result<wgrad::Tensor> {
    let order: Vec<usize> = (0..data.len()).collect();
    let mut results = Vec::new();
    for indices in order.chunks(batch) {
        let (x, _) = data.batch(indices, false)?;
        let result = model.layers.call(&x, INFERENCE)?;
        let device = result.device().clone();
        results.push(result);
        // One batch at a time, so that the page is drawn between them.
        device.synchronize_async().await?;
    }
    match results.as_slice() {
        [] => Err(Error::Shape("predict: there are no examples.".into()).into()),
        [only] => Ok(only.clone()),
        _ => Ok(wgrad::concat(&results.iter().collect::<Vec<_>>(), 0)?),
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
    /// Trains on images, or on tensors whose first axes count the examples; `y` is left out for images. The page goes
    /// on drawing meanwhile, and callbacks may use the model.
    #[wasm_bindgen(unchecked_return_type = "Promise<History>")]
    pub fn fit(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "Tensor | null")] y: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "FitOptions")] options: &JsValue,
    ) -> Result<Promise> {
        let (data, plan) = (Data::with_labels("fit", x, y)?, Plan::new(options)?);
        let model = self.0.clone();
        model.training()?;
        if data.len() == 0 {
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
            Ok(plan.run(&model, &data).await?.into())
        }))
    }

    /// The mean loss, and the accuracy if it was asked for in `compile`.
    #[wasm_bindgen(unchecked_return_type = "Promise<{ loss: number; accuracy?: number }>")]
    pub fn evaluate(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "Tensor | null")] y: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "{ batchSize?: number }")] options: &JsValue,
    ) -> Result<Promise> {
        let data = Data::with_labels("evaluate", x, y)?;
        let (model, batch) = (self.0.clone(), batch_size("evaluate", options)?);
        Ok(promise(async move {
            let result = Object::new();
            logs(&result, TRAINED, evaluate(&model, &data, batch).await?.means())?;
            Ok(result.into())
        }))
    }

    /// The model's results for all examples, one row each.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn predict(
        &self,
        x: &Examples,
        #[wasm_bindgen(unchecked_optional_param_type = "{ batchSize?: number }")] options: &JsValue,
    ) -> Result<Promise> {
        let data = Data::new("predict", x, &JsValue::UNDEFINED)?;
        let (model, batch) = (self.0.clone(), batch_size("predict", options)?);
        Ok(promise(async move { Ok(Tensor::new(predict(&model, &data, batch).await?).into()) }))
    }
}
