//! [`Sequential`]: a stack of layers as one layer.
//!
//! For layers that branch or are shared, use [`Functional`](super::Functional) or an ordinary function.

#[cfg(feature = "json")]
mod config;

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::dtype_policy::bytes_as_floats;
use super::functional::{Input, PartialShape};
use super::layers::{Layer, in_layer};
use super::{Context, INFERENCE, Model, Trainer};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::{Class, Described, Origin, Parts, Role, Trackable, snake_case};

/// A stack of layers: `y = layer_n(.. layer_1(x))`.
///
/// Layers have Keras's names, `dense`, `dense_1`, `dense_2`, or the names set by [`Sequential::add_named`].
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{Activation, INFERENCE, Layer, Sequential, layers::{Dense, Flatten}};
/// let model = Sequential::new()
///     .add(Flatten::new())
///     .add(Dense::new(100).activation(Activation::Relu))
///     .add(Dense::new(10));
/// let logits = model.call(&tf::Tensor::zeros([50, 28, 28, 1])?, INFERENCE)?;
/// assert_eq!(logits.shape(), [50, 10]);
/// assert_eq!(model.count_params(), 79_510);
/// assert_eq!(model.named_variables()[2].0, "dense_1/kernel");
/// # Ok(())
/// # }
/// ```
pub struct Sequential {
    name: String,
    layers: Vec<(String, Box<dyn Layer>)>,
    seen: Mutex<Seen>,
    trainer: Trainer,
}

impl std::fmt::Debug for Sequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequential")
            .field("name", &self.name)
            .field("layers", &self.layers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The shapes in the calls so far; `None` is a size that varied between calls.
#[derive(Default)]
struct Seen {
    input: Vec<Option<usize>>,
    /// Of the last call.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    dtype: Option<crate::dtype::DType>,
    /// Empty before the first call, else one for each layer.
    outputs: Vec<Vec<Option<usize>>>,
}

/// Records a shape; the batch may have any size.
fn note(known: &mut Vec<Option<usize>>, shape: &[usize]) {
    if known.len() != shape.len() {
        *known = shape.iter().copied().map(Some).collect();
        known.iter_mut().take(1).for_each(|batch| *batch = None);
    }
    for (known, size) in known.iter_mut().zip(shape) {
        *known = known.filter(|known| known == size);
    }
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential::new()
    }
}

impl Sequential {
    /// Creates a model without layers, which returns its input.
    pub fn new() -> Self {
        Sequential {
            name: "sequential".to_string(),
            layers: Vec::new(),
            seen: Mutex::default(),
            trainer: Trainer::new(),
        }
    }

    /// Sets the name that [`summary`](Trackable::summary) and diagrams show. Default: `sequential`.
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = name.to_string();
        self
    }

    /// Returns the model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Appends a layer, with a name derived from its type.
    #[allow(clippy::should_implement_trait)] // Keras's name; `+` on models would mean nothing.
    pub fn add(self, layer: impl Layer + 'static) -> Self {
        let name = snake_case(layer.kind());
        self.append(name, Box::new(layer))
    }

    /// Appends a layer called `name`. If another layer has that name, it gets the first free one of `name_1`, `name_2`,
    /// ...
    pub fn add_named(self, name: &str, layer: impl Layer + 'static) -> Self {
        self.append(name.to_string(), Box::new(layer))
    }

    /// Returns the layers with their names, first to last.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = (&str, &dyn Layer)> {
        self.layers.iter().map(|(name, layer)| (&**name, &**layer))
    }

    /// Creates all layers' weights for inputs of `input_shape` (including the batch axis), without computing on data. Sizes
    /// that vary may be `None`.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    pub fn build(&self, input_shape: impl Into<PartialShape>) -> Result<()> {
        super::functional::build(self, &Input::batch_shape(input_shape))
    }

    /// Returns the result of each layer for `x`, first to last; the last is the result of [`Layer::call`]. This serves to
    /// inspect a model. All results are stored, so [`Layer::call`] is faster if only the last one is needed.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, keras::{INFERENCE, Layer, Sequential, layers::{Dense, Flatten}}};
    /// let model = Sequential::new().add(Flatten::new()).add(Dense::new(4)).add(Dense::new(2));
    /// let x = tf::Tensor::ones([1, 3, 3])?;
    /// let results = model.activations(&x, INFERENCE)?;
    /// assert_eq!(results.iter().map(|y| y.len()).collect::<Vec<_>>(), [9, 4, 2]);
    /// assert_eq!(results[2].to_vec::<f32>()?, model.call(&x, INFERENCE)?.to_vec::<f32>()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    pub fn activations(&self, x: &Tensor, cx: Context<'_>) -> Result<Vec<Tensor>> {
        let mut results = Vec::with_capacity(self.layers.len());
        self.each(x, cx, &mut |y| results.push(y.clone()))?;
        Ok(results)
    }

    /// Calls the layers one after the other, and passes each result to a closure.
    fn each(
        &self,
        x: &Tensor,
        cx: Context<'_>,
        notify: &mut dyn FnMut(&Tensor),
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (mut y, mut mask) = (bytes_as_floats(x)?, cx.mask().cloned());
        for (name, layer) in &self.layers {
            let result = layer.call_with_mask(&y, cx.with_mask(mask.as_ref()));
            (y, mask) = in_layer(name, result)?;
            notify(&y);
        }
        Ok((y, mask))
    }

    /// What its calls have taken, if there were any.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    pub(crate) fn input_spec(&self) -> Option<crate::function::TensorSpec> {
        let seen = self.seen();
        seen.dtype.map(|dtype| crate::function::TensorSpec::new(&seen.input, dtype))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The known properties of the layer at an index.
    fn described(&self, at: usize) -> Described {
        let seen = self.seen();
        let before = at.checked_sub(1);
        let input = before.map_or(Some(&seen.input), |before| seen.outputs.get(before));
        let from =
            before.map(|before| Origin { name: self.layers[before].0.clone(), call: 0, output: 0 });
        let output = seen.outputs.get(at);
        Described {
            inputs: input.filter(|_| output.is_some()).into_iter().cloned().collect(),
            outputs: output.into_iter().cloned().collect(),
            from: from.into_iter().collect(),
            number: None,
        }
    }

    /// Keras's number of each layer, counted after the input.
    fn keras_numbers(&self) -> Vec<usize> {
        use super::operations::{LayerCall, keras_numbers};
        // Only checkpoints need them, and a web page without checkpoints has less code.
        if cfg!(not(feature = "checkpoint")) {
            return Vec::new();
        }
        let mut calls = vec![LayerCall::default()];
        // A layer shared by several pointers counts once.
        let mut first = std::collections::HashMap::new();
        for (at, (_, layer)) in self.layers.iter().enumerate() {
            let (address, size) = layer.identity();
            let one = if size == 0 { (0, at) } else { (address, size) };
            calls.push(LayerCall {
                layer: *first.entry(one).or_insert(at + 1),
                class: layer.class().map(Class::name),
                makes_mask: layer.makes_mask(),
                // Ranks, which show whether results are sequences, matter only if branches merge.
                inputs: vec![(at, 0)],
                ..LayerCall::default()
            });
        }
        let numbers = keras_numbers(&calls, &[(self.layers.len(), 0)]);
        calls[1..].iter().map(|call| numbers[call.layer]).collect()
    }

    fn append(mut self, wanted: String, layer: Box<dyn Layer>) -> Self {
        let taken = |name: &str| self.layers.iter().any(|(known, _)| known == name);
        let mut name = wanted.clone();
        let mut count = 0;
        while taken(&name) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        self.layers.push((name, layer));
        self
    }
}

impl Trackable for Sequential {
    fn track(&self, parts: &mut Parts<'_>) {
        let numbers = std::cell::OnceCell::new();
        for (at, (name, layer)) in self.layers.iter().enumerate() {
            parts.add_described(name, &**layer, &|| Described {
                number: numbers.get_or_init(|| self.keras_numbers()).get(at).copied(),
                ..self.described(at)
            });
        }
    }

    fn title(&self) -> String {
        self.name.clone()
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("Sequential").role(Role::Sequential);
        Some(&CLASS)
    }
}

impl Model for Sequential {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

impl Layer for Sequential {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<super::Config> {
        config::config(self)
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.call_with_mask(x, cx).map(|(y, _)| y)
    }

    fn compute_mask(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.call_with_mask(x, INFERENCE.with_mask(mask)).map(|(_, mask)| mask)
    }

    fn call_with_mask(&self, x: &Tensor, cx: Context<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let mut outputs: Vec<Shape> = Vec::with_capacity(self.layers.len());
        let (y, mask) = self.each(x, cx, &mut |y| outputs.push(Shape::new(y.shape())))?;
        let mut seen = self.seen();
        note(&mut seen.input, x.shape());
        #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
        {
            seen.dtype = Some(x.dtype());
        }
        seen.outputs.resize_with(outputs.len(), Vec::new);
        seen.outputs.iter_mut().zip(&outputs).for_each(|(known, shape)| note(known, shape));
        drop(seen);
        Ok((y, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keras::layers::{Dense, Flatten};

    fn names(model: &Sequential) -> Vec<&str> {
        model.layers().map(|(name, _)| name).collect()
    }

    #[test]
    fn names_are_those_of_keras() {
        let model = Sequential::new().add(Dense::new(1)).add(Flatten::new()).add(Dense::new(1));
        let model = model.add_named("head", Dense::new(1)).add(Dense::new(1));
        assert_eq!(names(&model), ["dense", "flatten", "dense_1", "head", "dense_2"]);
        let again = model.add_named("head", Dense::new(1));
        assert_eq!(names(&again)[5], "head_1");
        let inner = || Sequential::new().add(Dense::new(1));
        assert_eq!(
            names(&inner().add(inner()).add(inner())),
            ["dense", "sequential", "sequential_1"]
        );
    }

    #[test]
    fn a_summary_needs_no_input() {
        let text = Sequential::new()
            .add(Flatten::new())
            .add(Dense::new(3))
            .summary_with(crate::trackable::SummaryOptions::new().line_length(88));
        let want = "\
Model: \"sequential\"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ Layer (type)                         ┃ Output Shape                ┃         Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ flatten (Flatten)                    │ ?                           │     0 (unbuilt) │
├──────────────────────────────────────┼─────────────────────────────┼─────────────────┤
│ dense (Dense)                        │ ?                           │     0 (unbuilt) │
└──────────────────────────────────────┴─────────────────────────────┴─────────────────┘
 Total params: 0 (0.00 B)
 Trainable params: 0 (0.00 B)
 Non-trainable params: 0 (0.00 B)
";
        assert_eq!(text, want);
    }
}
