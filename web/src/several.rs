//! Models with several inputs or outputs, as Keras's functional ones may have: what they take, and their training steps.

use std::sync::Arc;

use js_sys::{Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::data::Batch;
use wgrad::keras::losses::{self, ClassLabels};
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::{
    self, CompileOptions, Context, Functional, INFERENCE, Layer, Losses, Model as _, StepLogs,
    SymbolicTensor, TRAINING, Trainer,
};
use wgrad::{Error, GradientTape, Parts, Trackable};

use crate::args::{Options, show};
use crate::error::{Result, bad_type, promise};
use crate::graph_model::description;
use crate::losses::Loss;
use crate::sequential::{Model, Sequential, Stepped, Training};
use crate::tensor::{Operand, Tensor, has};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A tensor for each input or output of a model: one, a list in the model's order, or an object by the names. */
export type Tensors = Tensor | readonly (Tensor | Variable)[] | { readonly [name: string]: Tensor | Variable };

/** Data to train with: images, or tensors whose first axis counts the examples; several for a model with several inputs. */
export type Examples = Images | Tensors;

/** What the outputs are to be. */
export type Targets = Tensors;

/** The loss of each output: one for all, a list in the model's order, or an object by the outputs' names. */
export type OutputLosses = Loss | readonly Loss[] | { readonly [output: string]: Loss };

export interface CompileOptions {
  /** The weights of the outputs' losses in their sum, in the model's order or by the outputs' names; by default 1 each. */
  lossWeights?: readonly number[] | { readonly [output: string]: number };
}

/** With several outputs, the loss and the accuracy of each, with Keras's names: `digit_loss`, `val_digit_accuracy`. */
export interface Logs { [metric: `${string}_loss` | `${string}_accuracy`]: number; }
export interface Metrics { [metric: `${string}_loss` | `${string}_accuracy`]: number; }
export interface History { [metric: `${string}_loss` | `${string}_accuracy`]: number[]; }

/** What `trainStep` measures, still on the device. */
export interface Stepped { loss: Tensor<Float>; accuracy?: Tensor<Float>; [metric: `${string}_loss` | `${string}_accuracy`]: Tensor<Float>; }

export interface Sequential {
  /** The model's output for `x`, or a list if it has several outputs. `training` affects dropout. */
  call<T extends Tensor | Tensor[] = Tensor<Float>>(x: Tensors, training?: boolean): T;
  /** The outputs for all examples, one row each; a list if the model has several outputs. */
  predict<T extends Tensor | Tensor[] = Tensor<Float>>(x: Examples, options?: { batchSize?: number }): Promise<T>;
}
"#;

/// An argument of a call in messages.
#[derive(Clone, Copy)]
pub(crate) struct Argument<'a> {
    /// `fit`, or a part of it.
    pub(crate) call: &'a str,
    /// `x` or `y`.
    pub(crate) name: &'static str,
}

/// The inputs of a model, or its outputs that have a target.
struct Ends<'a> {
    /// `input` or `output`.
    kind: &'static str,
    all: Vec<(String, &'a SymbolicTensor)>,
}

impl<'a> Ends<'a> {
    fn inputs(model: &'a Functional) -> Self {
        let names = model.input_names().into_iter().map(String::from);
        Ends { kind: "input", all: names.zip(model.inputs()).collect() }
    }

    fn outputs(model: &'a Functional, goals: &[Goal]) -> Self {
        let all = output_names(model).into_iter().zip(model.outputs());
        let counts = |at: usize| goals.get(at).is_none_or(|goal| goal.loss.is_some());
        let all = all.enumerate().filter(|(at, _)| counts(*at)).map(|(_, end)| end);
        Ends { kind: "output", all: all.collect() }
    }

    /// `2 inputs: 'a' float32 [null, 4], 'b' float32 [null, 3]`.
    fn list(&self) -> String {
        let each: Vec<String> = self
            .all
            .iter()
            .map(|(name, symbol)| {
                let dtype = wgrad::HostDType::from(symbol.dtype()).tensorflow_name();
                format!("'{name}' {dtype} {}", shape_of(symbol))
            })
            .collect();
        let ending = if each.len() == 1 { "" } else { "s" };
        format!("{} {}{ending}: {}", each.len(), self.kind, each.join(", "))
    }

    /// The tensors in a value, in the model's order.
    fn tensors(&self, of: Argument<'_>, value: &JsValue) -> Result<Vec<wgrad::Tensor>> {
        let Argument { call, name } = of;
        let take = |place: String, value: &JsValue| match has(value, "_tensor") {
            true => value.unchecked_ref::<Operand>().get(),
            false => Err(bad_type(format!(
                "{call}: {name}{place} is {}; it must be a Tensor. The model has {}.",
                show(value),
                self.list()
            ))),
        };
        let one = has(value, "_tensor");
        let tensors = if one || value.has_type::<Array>() {
            let list = if one { Array::of1(value) } else { Array::from(value) };
            if list.length() as usize != self.all.len() {
                let ending = if list.length() == 1 { "" } else { "s" };
                return Err(bad_type(format!(
                    "{call}: {name} has {} tensor{ending}, and the model has {}. Give a tensor for each, in a list or by name.",
                    list.length(),
                    self.list()
                )));
            }
            let each = list.iter().enumerate();
            each.map(|(at, value)| take(format!("[{at}]"), &value)).collect::<Result<Vec<_>>>()?
        } else if let Some(object) = by_name(value) {
            let given: Vec<String> =
                Object::keys(object).iter().filter_map(|key| key.as_string()).collect();
            if let Some(unknown) =
                given.iter().find(|key| self.all.iter().all(|(own, _)| own != *key))
            {
                return Err(bad_type(format!(
                    "{call}: {name} names '{unknown}', which the model does not have. It has {}.",
                    self.list()
                )));
            }
            if let Some((lacks, _)) = self.all.iter().find(|(own, _)| !given.contains(own)) {
                return Err(bad_type(format!(
                    "{call}: {name} lacks '{lacks}'. The model has {}.",
                    self.list()
                )));
            }
            let each = self.all.iter();
            each.map(|(own, _)| take(format!(".{own}"), &Reflect::get(object, &own.into())?))
                .collect::<Result<Vec<_>>>()?
        } else {
            return Err(bad_type(format!(
                "{call}: {name} is {}; it must be tensors, in a list or by name. The model has {}.",
                show(value),
                self.list()
            )));
        };
        self.fit(of, &tensors)?;
        Ok(tensors)
    }

    /// Whether the tensors can be inputs. Targets are checked by the losses.
    fn fit(&self, of: Argument<'_>, tensors: &[wgrad::Tensor]) -> Result<()> {
        if self.kind != "input" {
            return Ok(());
        }
        for (x, (own, symbol)) in tensors.iter().zip(&self.all) {
            let fits =
                |(size, want): (&usize, &Option<usize>)| want.is_none_or(|want| want == *size);
            if x.rank() != symbol.rank() || !x.shape().iter().zip(symbol.shape()).all(fits) {
                let text = format!(
                    "{}: the input '{own}' is {:?}, and the model takes {}, where null is any size. It has {}.",
                    of.call,
                    x.shape(),
                    shape_of(symbol),
                    self.list()
                );
                return Err(Error::Shape(text.into()).into());
            }
        }
        Ok(())
    }
}

fn shape_of(symbol: &SymbolicTensor) -> String {
    let size = |size: &Option<usize>| size.map_or("null".to_string(), |size| size.to_string());
    let sizes: Vec<String> = symbol.shape().iter().map(size).collect();
    format!("[{}]", sizes.join(", "))
}

/// An object with tensors by name: not a list, nor one of this library's.
fn by_name(value: &JsValue) -> Option<&Object> {
    let own = ["_tensor", "_images"].iter().any(|method| has(value, method));
    let object = value.dyn_ref::<Object>().filter(|_| !own && !value.is_function());
    object.filter(|object| !object.is_array())
}

/// The outputs' names in options and logs: those of their layers. If one layer has several, they are numbered.
fn output_names(model: &Functional) -> Vec<String> {
    let names = model.output_names();
    let twice = |(at, name): (usize, &&str)| names[..at].contains(name);
    match names.iter().enumerate().any(twice) {
        true => (1..=names.len()).map(|at| format!("output_{at}")).collect(),
        false => names.into_iter().map(String::from).collect(),
    }
}

/// What an output is trained for.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    loss: Option<&'static Loss>,
    weight: f64,
}

/// A loss of JavaScript as one of Keras.
struct KerasLoss(&'static Loss);

impl losses::Loss for KerasLoss {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn losses(&self, y: &wgrad::Tensor, predicted: &wgrad::Tensor) -> wgrad::Result<wgrad::Tensor> {
        (self.0.call)(y, predicted)
    }

    fn class_labels(&self, predicted: &wgrad::Tensor) -> Option<ClassLabels> {
        match self.0.of_labels() {
            true => losses::SparseCategoricalCrossentropy::new().class_labels(predicted),
            false => None,
        }
    }
}

/// The options `loss`, `fromLogits` and `lossWeights` of `compile` for each output. `names` are the outputs.
fn read_goals(names: &[String], options: &Options<'_>) -> Result<Vec<Goal>> {
    let count = names.len();
    let all = names.join(", ");
    let each = |key: &str, wanted: &str| -> Result<Option<Vec<JsValue>>> {
        let Some(value) = options.get(key) else { return Ok(None) };
        if let Some(list) = value.dyn_ref::<Array>() {
            if list.length() as usize != count {
                return Err(bad_type(format!(
                    "compile: {key} has {} parts, and the model has {count} outputs: {all}. Give {wanted} for each, in this order, or an \
                     object by these names.",
                    list.length()
                )));
            }
            return Ok(Some(list.to_vec()));
        }
        let Some(object) = by_name(&value) else { return Ok(Some(vec![value; count])) };
        let keys = Object::keys(object);
        let unknown =
            keys.iter().filter_map(|key| key.as_string()).find(|key| !names.contains(key));
        if let Some(unknown) = unknown {
            return Err(bad_type(format!(
                "compile: {key} names '{unknown}', and the model has no such output. Its outputs are {all}."
            )));
        }
        Ok(Some(
            names
                .iter()
                .map(|name| Reflect::get(object, &name.into()))
                .collect::<std::result::Result<_, _>>()?,
        ))
    };
    let losses = each("loss", "a loss")?.unwrap_or_else(|| vec![JsValue::UNDEFINED; count]);
    // Without the option, each output has the default.
    let chosen = options.get("loss").is_some();
    let probabilities = options.bool("fromLogits")? == Some(false);
    let mut goals = Vec::new();
    for (loss, output) in losses.iter().zip(names) {
        if chosen && loss.is_undefined() {
            goals.push(Goal { loss: None, weight: 1.0 });
            continue;
        }
        let name = loss.as_string();
        if chosen && name.is_none() {
            return Err(bad_type(format!(
                "compile: the loss of '{output}' is {}; it must be a name, such as 'meanSquaredError'.",
                show(loss)
            )));
        }
        let mut loss = Loss::named(name.as_deref())?;
        if probabilities {
            // Other outputs may be numbers of any kind.
            loss = Loss::of_probabilities(name.as_deref())
                .or_else(|error| if count > 1 { Ok(loss) } else { Err(error) })?;
        }
        goals.push(Goal { loss: Some(loss), weight: 1.0 });
    }
    if goals.iter().all(|goal| goal.loss.is_none()) {
        return Err(bad_type(format!(
            "compile: no output has a loss, so there is nothing to train for. The outputs are {all}."
        )));
    }
    for ((goal, weight), output) in
        goals.iter_mut().zip(each("lossWeights", "a number")?.unwrap_or_default()).zip(names)
    {
        if weight.is_undefined() {
            continue;
        }
        goal.weight = weight.as_f64().filter(|weight| weight.is_finite()).ok_or_else(|| {
            bad_type(format!(
                "compile: the loss weight of '{output}' is {}; it must be a number.",
                show(&weight)
            ))
        })?;
    }
    Ok(goals)
}

/// What a model was made for by `compile`, and the loss of the only output.
pub(crate) fn goals(model: &Model, options: &Options<'_>) -> Result<(Vec<Goal>, &'static Loss)> {
    let names = match &model.functional {
        Some(model) => output_names(model),
        None => vec!["output".to_string()],
    };
    let goals = read_goals(&names, options)?;
    let loss = goals.iter().find_map(|goal| goal.loss).map_or_else(|| Loss::named(None), Ok)?;
    Ok((goals, loss))
}

impl Model {
    /// The model as one that takes and returns lists, if it has several inputs or outputs.
    pub(crate) fn several(&self) -> Option<&Functional> {
        let model = self.functional.as_ref()?;
        ((model.inputs().len(), model.outputs().len()) != (1, 1)).then_some(model)
    }

    /// Refuses a call that a model with several inputs or outputs does not have.
    pub(crate) fn single(&self, call: &str) -> Result<()> {
        let Some(model) = self.several() else { return Ok(()) };
        Err(bad_type(format!(
            "{call}: it is for models with one input and one output. This one has {} and {}.",
            Ends::inputs(model).list(),
            Ends::outputs(model, &[]).list()
        )))
    }

    /// The examples of a model with several inputs or outputs, and their targets if there are any.
    pub(crate) fn examples(
        &self,
        call: &str,
        x: &JsValue,
        y: &JsValue,
    ) -> Result<Option<(Vec<wgrad::Tensor>, Vec<wgrad::Tensor>)>> {
        let Some(model) = self.several() else { return Ok(None) };
        let inputs = Ends::inputs(model);
        let x = inputs.tensors(Argument { call, name: "x" }, x)?;
        let y = match y.is_undefined() || y.is_null() {
            true => Vec::new(),
            false => {
                let training = self.training()?;
                Ends::outputs(model, &training.goals).tensors(Argument { call, name: "y" }, y)?
            }
        };
        let counts: Vec<Option<&usize>> = x.iter().chain(&y).map(|x| x.shape().first()).collect();
        if counts.iter().any(|count| count.is_none() || *count != counts[0]) {
            let shapes = |list: &[wgrad::Tensor]| {
                list.iter().map(|x| format!("{:?}", x.shape())).collect::<Vec<_>>().join(", ")
            };
            let mut text = format!("{call}: x is {}", shapes(&x));
            if !y.is_empty() {
                text = format!("{text} and y is {}", shapes(&y));
            }
            let text = format!("{text}; their first axes count the examples and must be equal.");
            return Err(Error::Shape(text.into()).into());
        }
        Ok(Some((x, y)))
    }

    /// A model with one input takes a list of one tensor, too, and one with a name also takes it by the name.
    pub(crate) fn unwrapped(&self, argument: Argument<'_>, value: &JsValue) -> Result<JsValue> {
        if let Some(list) = value.dyn_ref::<Array>().filter(|list| list.length() == 1) {
            return Ok(list.get(0));
        }
        match (&self.functional, by_name(value)) {
            (Some(model), Some(_)) if !value.has_type::<Promise>() => {
                let ends = match argument.name {
                    "x" => Ends::inputs(model),
                    _ => Ends::outputs(model, &[]),
                };
                let tensors = ends.tensors(argument, value)?;
                Ok(tensors.into_iter().map(Tensor::new).next().into())
            }
            _ => Ok(value.clone()),
        }
    }

    /// Makes one training step without reading anything back.
    fn step_of(
        &self,
        call: &str,
        x: &JsValue,
        y: &JsValue,
    ) -> Result<Vec<(String, wgrad::Tensor)>> {
        if let Some((x, y)) = self.examples(call, x, y)? {
            let training = self.training()?;
            let trainee = Trainee::of(self, &training)?;
            let batch = Batch { x, y, sample_weight: Vec::new() };
            let device = batch.x[0].device().clone();
            let logs = device.scope(|| trainee.train_step(&batch))?;
            return Ok(logs
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect());
        }
        let tensor = |name: &'static str, value: &JsValue| {
            let value = self.unwrapped(Argument { call, name }, value)?;
            match has(&value, "_tensor") {
                true => value.unchecked_ref::<Operand>().get(),
                false => Err(bad_type(format!(
                    "{call}: {name} is {}; it must be a Tensor.",
                    show(&value)
                ))),
            }
        };
        let Stepped { loss, accuracy } = self.step(&tensor("x", x)?, &tensor("y", y)?)?;
        let accuracy = accuracy.map(|accuracy| ("accuracy".to_string(), accuracy));
        Ok([("loss".to_string(), loss)].into_iter().chain(accuracy).collect())
    }
}

/// Tensors as a result: the only one, or a list.
pub(crate) fn results(tensors: Vec<wgrad::Tensor>) -> JsValue {
    let mut all: Vec<JsValue> = tensors.into_iter().map(|y| Tensor::new(y).into()).collect();
    match all.len() {
        1 => all.remove(0),
        _ => all.into_iter().collect::<Array>().into(),
    }
}

/// A model with several inputs or outputs as `wgrad` trains it.
pub(crate) struct Trainee<'a> {
    model: &'a Functional,
    /// The same layers, with the names of the model's variables.
    layers: &'a keras::Sequential,
    optimizer: Arc<dyn Optimizer>,
    goals: Vec<Goal>,
    accuracy: bool,
    trainer: Trainer,
}

impl<'a> Trainee<'a> {
    pub(crate) fn of(of: &'a Model, training: &Training) -> Result<Self> {
        let Some(model) = &of.functional else {
            return Err(bad_type("the model is a stack of layers.".to_string()));
        };
        let Training { optimizer, accuracy, goals, .. } = training;
        let trainee = Trainee {
            model,
            layers: &of.layers,
            optimizer: optimizer.clone(),
            goals: goals.clone(),
            accuracy: *accuracy,
            trainer: Trainer::new(),
        };
        let names = output_names(model);
        let chosen =
            names.iter().zip(goals).filter_map(|(name, goal)| Some((&name[..], *goal, goal.loss?)));
        let losses: Vec<(&str, KerasLoss)> =
            chosen.clone().map(|(name, _, loss)| (name, KerasLoss(loss))).collect();
        let mut options = CompileOptions::new();
        for (name, goal, _) in chosen {
            options = options.loss_weight_of(name, goal.weight as f32);
        }
        trainee.compile(optimizer.clone(), losses, options)?;
        Ok(trainee)
    }

    fn with_accuracies(
        &self,
        mut logs: StepLogs,
        y: &[wgrad::Tensor],
        predicted: &[wgrad::Tensor],
    ) -> wgrad::Result<StepLogs> {
        if !self.accuracy {
            return Ok(logs);
        }
        let names = output_names(self.model);
        let mut targets = y.iter();
        for ((goal, predicted), name) in self.goals.iter().zip(predicted).zip(&names) {
            let Some(loss) = goal.loss else { continue };
            let Some(y) = targets.next() else { break };
            let name =
                if names.len() == 1 { "accuracy".to_string() } else { format!("{name}_accuracy") };
            logs = logs.add(&name, &(loss.accuracy)(y, predicted)?);
        }
        Ok(logs)
    }
}

impl Trackable for Trainee<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.layers.track(parts);
    }
}

impl Layer<[wgrad::Tensor], Vec<wgrad::Tensor>> for Trainee<'_> {
    fn call(&self, xs: &[wgrad::Tensor], cx: Context<'_>) -> wgrad::Result<Vec<wgrad::Tensor>> {
        Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(self.model, xs, cx)
    }
}

impl keras::Model<[wgrad::Tensor], Vec<wgrad::Tensor>> for Trainee<'_> {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn output_names(&self) -> Vec<String> {
        output_names(self.model)
    }

    fn train_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        let tape = GradientTape::new();
        let losses = Losses::new();
        let predicted = self.call(&batch.x, TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, &predicted, &losses)?;
        let logs = self.with_accuracies(logs, &batch.y, &predicted)?;
        drop(predicted);
        self.optimizer.minimize(&loss, tape, self.layers)?;
        Ok(logs)
    }

    fn test_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        let losses = Losses::new();
        let predicted = self.call(&batch.x, INFERENCE.collect(&losses))?;
        let (_, logs) = self.compute_loss(batch, &predicted, &losses)?;
        self.with_accuracies(logs, &batch.y, &predicted)
    }
}

#[wasm_bindgen]
impl Sequential {
    #[wasm_bindgen(skip_typescript)]
    #[doc(hidden)]
    pub fn call(&self, x: &JsValue, training: Option<bool>) -> Result<JsValue> {
        let cx = training.unwrap_or(false).into();
        if let Some((x, _)) = self.0.examples("call", x, &JsValue::UNDEFINED)? {
            let model = self
                .0
                .several()
                .map(|model| Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(model, &x, cx));
            return Ok(results(model.transpose()?.unwrap_or_default()));
        }
        let x = self.0.unwrapped(Argument { call: "call", name: "x" }, x)?;
        if !has(&x, "_tensor") {
            return Err(bad_type(format!(
                "Sequential.call: x is {}; it must be a Tensor.",
                show(&x)
            )));
        }
        let x = x.unchecked_ref::<Operand>().get()?;
        Ok(Tensor::new(self.0.layers.call(&x, cx)?).into())
    }

    /// Makes one training step without reading anything back: loss and accuracy stay on the device until they are read. In a
    /// loop, dispose of tensors that you do not need any more, and `await` something every few steps, or the page freezes.
    #[wasm_bindgen(
        js_name = trainStep,
        unchecked_return_type = "Stepped"
    )]
    pub fn train_step(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensors")] x: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Targets")] y: &JsValue,
    ) -> Result<Object> {
        let result = Object::new();
        for (name, value) in self.0.step_of("trainStep", x, y)? {
            Reflect::set(&result, &name.into(), &Tensor::new(value).into())?;
        }
        Ok(result)
    }

    /// Makes one training step and reads its loss and accuracy.
    #[wasm_bindgen(js_name = trainOnBatch, unchecked_return_type = "Promise<Metrics>")]
    pub fn train_on_batch(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensors")] x: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Targets")] y: &JsValue,
    ) -> Promise {
        let step = self.0.step_of("trainOnBatch", x, y);
        promise(async move {
            let step = step?;
            let values: Vec<&wgrad::Tensor> = step.iter().map(|(_, value)| value).collect();
            let values = wgrad::Tensor::to_vecs_async::<f32>(&values).await?;
            let result = Object::new();
            for ((name, _), value) in step.iter().zip(values) {
                Reflect::set(&result, &name.into(), &value[0].into())?;
            }
            Ok(result.into())
        })
    }

    /// The inputs of a functional model of Keras: names, dtypes and shapes. Empty for a stack of layers, which takes one tensor.
    #[wasm_bindgen(getter, unchecked_return_type = "GraphTensor[]")]
    pub fn inputs(&self) -> Array {
        self.0.functional.iter().flat_map(|model| described(&Ends::inputs(model))).collect()
    }

    /// The outputs of a functional model of Keras: names, dtypes and shapes. Empty for a stack of layers, which has one.
    #[wasm_bindgen(getter, unchecked_return_type = "GraphTensor[]")]
    pub fn outputs(&self) -> Array {
        self.0.functional.iter().flat_map(|model| described(&Ends::outputs(model, &[]))).collect()
    }
}

fn described(ends: &Ends<'_>) -> Vec<JsValue> {
    let one = |(name, symbol): &(String, &SymbolicTensor)| {
        description(name, symbol.dtype().into(), Some(symbol.shape()))
    };
    ends.all.iter().map(one).collect()
}
