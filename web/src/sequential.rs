//! [`Sequential`]: a stack of layers, with Keras's `compile`, `fit`, `evaluate` and `predict`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[cfg(feature = "models")]
use js_sys::Array;
#[cfg(not(feature = "models"))]
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::{INFERENCE, Layer, TRAINING};
use wgrad::{GradientTape, Trackable};

use crate::args::{Options, show};
use crate::error::{Result, bad_type};
use crate::layer::add_layer;
use crate::losses::Loss;
use crate::optimizer::optimizer;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A stack of layers, and how they are trained.
#[wasm_bindgen]
pub struct Sequential(pub(crate) Rc<Model>);

/// The state that all handles to a model share.
pub(crate) struct Model {
    pub(crate) layers: Arc<wgrad::keras::Sequential>,
    pub(crate) training: RefCell<Option<Rc<Training>>>,
    /// The training step, and whose it is.
    #[cfg(not(feature = "ops"))]
    function: RefCell<Option<(Rc<Training>, wgrad::Function<Step>)>>,
    /// The only layer, if it is a functional model of Keras.
    #[cfg(feature = "models")]
    pub(crate) functional: Option<wgrad::keras::Functional>,
    /// True while `fit` runs.
    #[cfg(feature = "ops")]
    pub(crate) fitting: std::cell::Cell<bool>,
    /// What it was made of, the shape of `build` and the options of `compile`, as JSON.
    #[cfg(feature = "ops")]
    pub(crate) config: crate::saved::Origin,
    #[cfg(feature = "ops")]
    pub(crate) input: RefCell<Option<String>>,
    #[cfg(feature = "ops")]
    pub(crate) compiled: RefCell<Option<String>>,
}

/// A step's loss and accuracy, for inputs and targets.
#[cfg(not(feature = "ops"))]
type Step = dyn Fn(wgrad::Tensor, wgrad::Tensor) -> wgrad::Result<(wgrad::Tensor, Option<wgrad::Tensor>)>
    + Send
    + Sync;

/// The choices of `compile`.
pub(crate) struct Training {
    pub(crate) optimizer: Arc<dyn Optimizer>,
    pub(crate) loss: &'static Loss,
    pub(crate) accuracy: bool,
    /// The loss of each output.
    #[cfg(feature = "models")]
    pub(crate) goals: Vec<crate::several::Goal>,
    /// The optimizer's description, to make a new one.
    pub(crate) config: JsValue,
}

impl Training {
    /// The same with an optimizer that has not made a step yet.
    pub(crate) fn renewed(&self) -> Result<Self> {
        let optimizer = optimizer(&self.config)?;
        optimizer.set_learning_rate(self.optimizer.learning_rate())?;
        Ok(Training {
            optimizer: optimizer.into(),
            config: self.config.clone(),
            #[cfg(feature = "models")]
            goals: self.goals.clone(),
            ..*self
        })
    }
}

/// The results of a step, still on the device.
pub(crate) struct Stepped {
    pub(crate) loss: wgrad::Tensor,
    pub(crate) accuracy: Option<wgrad::Tensor>,
}

impl Model {
    pub(crate) fn training(&self) -> Result<Rc<Training>> {
        self.training.borrow().clone().ok_or_else(|| {
            bad_type(
                "Sequential: the model has no optimizer yet. Call compile({ optimizer: 'adam' }) first."
                    .to_string(),
            )
        })
    }

    /// The device of the weights, if there are any yet.
    #[cfg(feature = "ops")]
    pub(crate) fn device(&self) -> Option<wgrad::Device> {
        let variables = self.layers.variables();
        variables.first().map(|variable| variable.read().device().clone())
    }

    /// Makes one training step without reading anything back.
    #[cfg(feature = "ops")]
    pub(crate) fn step(&self, x: &wgrad::Tensor, y: &wgrad::Tensor) -> Result<Stepped> {
        let training = self.training()?;
        let of = (&*training.optimizer, training.loss, training.accuracy);
        // Other tensors of a step, such as the optimizer's slots, belong on the device of the data.
        Ok(x.device().scope(|| step(&self.layers, of, x, y))?)
    }

    /// Makes one training step without reading anything back, by a function, so that the page's thread has less to do.
    #[cfg(not(feature = "ops"))]
    pub(crate) fn step(&self, x: &wgrad::Tensor, y: &wgrad::Tensor) -> Result<Stepped> {
        let training = self.training()?;
        let mut known = self.function.borrow_mut();
        if known.as_ref().is_none_or(|(of, _)| !Rc::ptr_eq(of, &training)) {
            let (layers, optimizer) = (self.layers.clone(), training.optimizer.clone());
            let (loss, accuracy) = (training.loss, training.accuracy);
            let function = wgrad::function(move |x: wgrad::Tensor, y: wgrad::Tensor| {
                let stepped = step(&layers, (&*optimizer, loss, accuracy), &x, &y)?;
                Ok((stepped.loss, stepped.accuracy))
            });
            *known = Some((training, function));
        }
        let Some((_, function)) = &*known else { unreachable!("it was made") };
        let (loss, accuracy) = function(x.clone(), y.clone())?;
        Ok(Stepped { loss, accuracy })
    }
}

/// One training step of `layers` with an optimizer and a loss; the accuracy is optional.
pub(crate) fn step(
    layers: &wgrad::keras::Sequential,
    (optimizer, loss, accuracy): (&dyn Optimizer, &Loss, bool),
    x: &wgrad::Tensor,
    y: &wgrad::Tensor,
) -> wgrad::Result<Stepped> {
    let tape = GradientTape::new();
    let predicted = layers.call(x, TRAINING)?;
    let value = (loss.call)(y, &predicted)?;
    let accuracy = match accuracy {
        true => Some((loss.accuracy)(y, &predicted)?),
        false => None,
    };
    drop(predicted);
    optimizer.minimize(&value, tape, layers)?;
    Ok(Stepped { loss: value, accuracy })
}

#[wasm_bindgen]
impl Sequential {
    /// A model of these layers. They are built at the first input, or now if the first one has an `inputShape`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "readonly LayerConfig[]")] layers: &JsValue,
    ) -> Result<Sequential> {
        let Some(list) = layers.dyn_ref::<Array>() else {
            return Err(bad_type(format!(
                "Sequential: the layers must be a list, not {}.",
                show(layers)
            )));
        };
        #[cfg(feature = "ops")]
        let (list, input) = crate::saved::first_input(list)?;
        let mut model = wgrad::keras::Sequential::new();
        for config in list.iter() {
            model = add_layer(model, &config)?;
        }
        #[cfg(not(feature = "ops"))]
        let model = Sequential(Rc::new(Model {
            layers: Arc::new(model),
            training: RefCell::new(None),
            function: RefCell::new(None),
        }));
        #[cfg(feature = "ops")]
        let model = {
            let layers = crate::saved::json(&list).unwrap_or_default();
            Sequential::of(model, crate::saved::Origin::Layers(layers))
        };
        #[cfg(feature = "ops")]
        if let Some(shape) = input {
            model.build(&shape)?;
        }
        Ok(model)
    }

    /// Sets how the model is trained. The optimizer starts from scratch; the weights stay.
    pub fn compile(
        &self,
        #[wasm_bindgen(unchecked_param_type = "CompileOptions")] options: &JsValue,
    ) -> Result<()> {
        #[cfg(feature = "ops")]
        let reported = crate::saved::json(options);
        #[cfg(not(feature = "ops"))]
        let options = Options::new("compile", options, &["optimizer", "loss", "metrics"])?;
        #[cfg(feature = "ops")]
        let known: &[&str] = match cfg!(feature = "models") {
            true => &["optimizer", "loss", "fromLogits", "metrics", "lossWeights"],
            false => &["optimizer", "loss", "fromLogits", "metrics"],
        };
        #[cfg(feature = "ops")]
        let options = Options::new("compile", options, known)?;
        let config = options.required("optimizer", options.get("optimizer"))?;
        let accuracy = options.read("metrics", "a list that may hold 'accuracy'", |value| {
            let names = value.dyn_ref::<Array>()?;
            let known = names.iter().all(|name| name == "accuracy");
            known.then_some(names.length() > 0)
        })?;
        #[cfg(not(feature = "ops"))]
        let loss = Loss::named(options.string("loss")?.as_deref())?;
        #[cfg(all(feature = "ops", not(feature = "models")))]
        let loss = match options.bool("fromLogits")? {
            Some(false) => Loss::of_probabilities(options.string("loss")?.as_deref())?,
            _ => Loss::named(options.string("loss")?.as_deref())?,
        };
        #[cfg(feature = "models")]
        let (goals, loss) = crate::several::goals(&self.0, &options)?;
        let training = Training {
            optimizer: optimizer(&config)?.into(),
            loss,
            accuracy: accuracy.unwrap_or(false),
            #[cfg(feature = "models")]
            goals,
            config,
        };
        *self.0.training.borrow_mut() = Some(Rc::new(training));
        #[cfg(feature = "ops")]
        self.0.compiled.replace(reported);
        Ok(())
    }

    /// The outputs of all layers for `x`, first to last, without dropout; the last is what `call` returns.
    #[wasm_bindgen(unchecked_return_type = "Tensor[]")]
    pub fn activations(&self, x: &Tensor) -> Result<Array> {
        #[cfg(feature = "models")]
        self.0.single("activations")?;
        let results = self.0.layers.activations(&x.get()?, INFERENCE)?;
        Ok(results.into_iter().map(|y| JsValue::from(Tensor::new(y))).collect())
    }

    /// A table of the layers: name and type, output shape at the last call (`?` before the first), parameters.
    pub fn summary(&self) -> String {
        self.0.layers.summary()
    }

    /// The number of parameters; 0 before the first input.
    #[wasm_bindgen(js_name = countParams)]
    pub fn count_params(&self) -> usize {
        self.0.layers.count_params()
    }

    /// All variables, layer by layer, kernel before bias. There are none before the first input.
    #[wasm_bindgen(getter, unchecked_return_type = "Variable[]")]
    pub fn variables(&self) -> Array {
        let named = self.0.layers.named_variables().into_iter();
        named.map(|(name, v)| JsValue::from(Variable::named(name, v))).collect()
    }

    /// Sets the learning rate from the next step on.
    #[wasm_bindgen(setter, js_name = learningRate)]
    pub fn set_learning_rate(&self, rate: f32) -> Result<()> {
        #[cfg(feature = "ops")]
        crate::optimizer::check_rate("Sequential.learningRate", rate)?;
        Ok(self.0.training()?.optimizer.set_learning_rate(rate)?)
    }
}

/// Of models with one input and one output; `several` has the calls for others.
#[cfg(not(feature = "models"))]
#[wasm_bindgen]
impl Sequential {
    /// The model's output for `x`. `training` affects dropout.
    pub fn call(&self, x: &Tensor, training: Option<bool>) -> Result<Tensor> {
        Ok(Tensor::new(self.0.layers.call(&x.get()?, training.unwrap_or(false).into())?))
    }

    /// Makes one training step without reading anything back: loss and accuracy stay on the device until they are read. In a
    /// loop, dispose of tensors that you do not need any more, and `await` something every few steps, or the page freezes.
    #[wasm_bindgen(
        js_name = trainStep,
        unchecked_return_type = "{ loss: Tensor; accuracy?: Tensor }"
    )]
    pub fn train_step(&self, x: &Tensor, y: &Tensor) -> Result<Object> {
        let step = self.0.step(&x.get()?, &y.get()?)?;
        let result = Object::new();
        Reflect::set(&result, &"loss".into(), &Tensor::new(step.loss).into())?;
        if let Some(accuracy) = step.accuracy {
            Reflect::set(&result, &"accuracy".into(), &Tensor::new(accuracy).into())?;
        }
        Ok(result)
    }
}

#[cfg(all(feature = "ops", not(feature = "models")))]
#[wasm_bindgen]
impl Sequential {
    /// Makes one training step and reads its loss and accuracy.
    #[wasm_bindgen(
        js_name = trainOnBatch,
        unchecked_return_type = "Promise<{ loss: number; accuracy?: number }>"
    )]
    pub fn train_on_batch(&self, x: &Tensor, y: &Tensor) -> js_sys::Promise {
        let step = (|| self.0.step(&x.get()?, &y.get()?))();
        crate::error::promise(async move {
            let step = step?;
            let values: Vec<&wgrad::Tensor> =
                [Some(&step.loss), step.accuracy.as_ref()].into_iter().flatten().collect();
            let values = wgrad::Tensor::to_vecs_async::<f32>(&values).await?;
            let result = Object::new();
            for (key, value) in ["loss", "accuracy"].iter().zip(values) {
                Reflect::set(&result, &(*key).into(), &value[0].into())?;
            }
            Ok(result.into())
        })
    }
}

/// Replaces what the full API computes with ops.
#[cfg(not(feature = "ops"))]
#[wasm_bindgen]
impl Sequential {
    /// How far the variables are from the values `from`: two numbers for each variable, the sum of the squared differences and
    /// the sum of the squares in `from`.
    #[wasm_bindgen(unchecked_return_type = "Tensor[]")]
    pub fn moved(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly Tensor[]")] from: &JsValue,
    ) -> Result<Array> {
        let sums = Array::new();
        let from = crate::tensor::list("moved", from)?;
        for ((_, variable), from) in self.0.layers.named_variables().into_iter().zip(from) {
            for x in [variable.read().subtract(&from)?, from] {
                sums.push(&Tensor::new(x.multiply(&x)?.sum(())?).into());
            }
        }
        Ok(sums)
    }
}

#[cfg(feature = "ops")]
impl Sequential {
    pub(crate) fn of(layers: wgrad::keras::Sequential, config: crate::saved::Origin) -> Self {
        Sequential(Rc::new(Sequential::made(layers, config)))
    }

    fn made(layers: wgrad::keras::Sequential, config: crate::saved::Origin) -> Model {
        Model {
            layers: Arc::new(layers),
            training: RefCell::new(None),
            #[cfg(feature = "models")]
            functional: None,
            fitting: Default::default(),
            config,
            input: Default::default(),
            compiled: Default::default(),
        }
    }

    /// A model whose only layer is a functional one.
    #[cfg(feature = "models")]
    pub(crate) fn of_functional(
        model: wgrad::keras::Functional,
        config: crate::saved::Origin,
    ) -> Self {
        let layers = wgrad::keras::Sequential::new().add(model.clone());
        let made = Sequential::made(layers, config);
        Sequential(Rc::new(Model { functional: Some(model), ..made }))
    }

    /// A model with further layers after those of a graph.
    #[cfg(feature = "models")]
    pub(crate) fn with_first(
        mut model: wgrad::keras::Sequential,
        layers: &JsValue,
    ) -> Result<Self> {
        if !layers.is_undefined() && !layers.is_null() {
            let Some(list) = layers.dyn_ref::<Array>() else {
                return Err(bad_type(format!(
                    "toSequential: the layers must be a list, not {}.",
                    show(layers)
                )));
            };
            for config in list.iter() {
                model = add_layer(model, &config)?;
            }
        }
        Ok(Sequential::of(model, crate::saved::Origin::Graph))
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Sequential {
    /// Builds all layers for inputs of this shape, with the batch axis first (any size, or null).
    pub fn build(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly (number | null)[]")] shape: &JsValue,
    ) -> Result<()> {
        #[cfg(feature = "models")]
        self.0.single("build")?;
        let size = |(at, size): (usize, JsValue)| match at == 0 && size.is_null() {
            true => Some(1),
            false => crate::args::whole(size.as_f64()?),
        };
        let sizes: Option<Vec<usize>> =
            shape.dyn_ref::<Array>().and_then(|list| list.iter().enumerate().map(size).collect());
        let sizes = sizes.ok_or_else(|| {
            bad_type(format!(
                "build: {} is not a shape; give a list such as [null, 28, 28, 1].",
                show(shape)
            ))
        })?;
        self.0.layers.build(sizes)?;
        self.0.input.replace(crate::saved::json(shape));
        Ok(())
    }

    /// The names of the layers, first to last.
    #[wasm_bindgen(getter, js_name = layerNames, unchecked_return_type = "string[]")]
    pub fn layer_names(&self) -> Array {
        self.0.layers.layers().map(|(name, _)| JsValue::from(name)).collect()
    }

    /// The optimizer's learning rate; it may be set at any time.
    #[wasm_bindgen(getter, js_name = learningRate)]
    pub fn learning_rate(&self) -> Result<f32> {
        Ok(self.0.training()?.optimizer.learning_rate())
    }
}
