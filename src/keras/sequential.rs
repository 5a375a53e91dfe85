//! [`Sequential`]: layers one after the other, as one layer.
//!
//! Models whose layers branch or share are ordinary functions of the program.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use super::layers::{Layer, in_layer};
use crate::error::{Error, Result, message};
use crate::random::Generator;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A stack of layers: `y = layer_n(.. layer_1(x))`.
///
/// Layers that share a name are told apart as Keras does: `dense`, `dense_1`, `dense_2`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Activation, Layer, Sequential, layers::{Dense, Flatten}};
/// let model = Sequential::new()
///     .add(Flatten::new())
///     .add(Dense::new(100).activation(Activation::Relu))
///     .add(Dense::new(10));
/// let logits = model.call(&tf::Tensor::zeros([50, 28, 28, 1])?, false)?;
/// assert_eq!(logits.shape(), [50, 10]);
/// assert_eq!(model.count_params(), 79_510);
/// assert_eq!(model.variables()[2].name(), "dense_1/kernel");
/// # Ok(())
/// # }
/// ```
pub struct Sequential {
    name: String,
    /// True once a name was given, which inner names then begin with.
    scoped: bool,
    layers: Vec<Box<dyn Layer>>,
    /// What each layer gave at the last call, for the summary.
    shapes: Mutex<Vec<Vec<usize>>>,
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential::new()
    }
}

impl Sequential {
    /// A model without layers, which gives back its input.
    pub fn new() -> Self {
        Sequential {
            name: "sequential".into(),
            scoped: false,
            layers: Vec::new(),
            shapes: Mutex::default(),
        }
    }

    /// Appends a layer. If its name is taken, it gets the first free one of `name_1`, `name_2`, ...
    #[allow(clippy::should_implement_trait)] // Keras's name; `+` on models would mean nothing.
    pub fn add(self, layer: impl Layer + 'static) -> Self {
        self.add_boxed(Box::new(layer))
    }

    /// As [`Sequential::add`], for layers that are chosen while the program runs.
    pub fn add_boxed(mut self, mut layer: Box<dyn Layer>) -> Self {
        let wanted = self.inner_name(layer.name());
        let taken = |name: &str| self.layers.iter().any(|layer| layer.name() == name);
        let mut name = wanted.clone();
        let mut count = 0;
        while taken(&name) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        layer.set_name(name);
        self.layers.push(layer);
        self
    }

    /// The model's name, with which its layers' and variables' names then begin: `model/dense/kernel`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.set_name(name.into());
        self
    }

    /// The layers, first to last.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &dyn Layer> {
        self.layers.iter().map(|layer| &**layer)
    }

    /// Sizes all layers for inputs of `input_shape` (with the batch axis), without running anything on data.
    ///
    /// # Errors
    /// As [`Layer::call`].
    pub fn build(&self, input_shape: impl Into<Shape>) -> Result<()> {
        // Nobody holds the result, so the next flush leaves its computation out.
        self.call(&Tensor::zeros(input_shape)?, false).map(drop)
    }

    /// How many numbers the variables hold; 0 before the first input.
    pub fn count_params(&self) -> usize {
        count(&self.variables())
    }

    /// A table of the layers: name and type, output shape at the last call (`?` before it), parameters.
    pub fn summary(&self) -> String {
        let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = self.layers.iter().enumerate().map(|(i, layer)| {
            let shape = shapes.get(i).map_or("?".to_string(), |shape| batch_shape(shape));
            [
                format!("{} ({})", layer.name(), layer.kind()),
                shape,
                count(&layer.variables()).to_string(),
            ]
        });
        let head = ["Layer (type)", "Output shape", "Params"].map(String::from);
        let rows: Vec<[String; 3]> = std::iter::once(head).chain(rows).collect();
        let widths = [0, 1, 2].map(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0));
        let mut text = format!("Model: {}\n", self.name);
        for (i, [layer, shape, params]) in rows.iter().enumerate() {
            // Writing to a String cannot go wrong.
            let _ = writeln!(
                text,
                "{layer:0$}  {shape:1$}  {params:>2$}",
                widths[0], widths[1], widths[2]
            );
            if i == 0 {
                let _ = writeln!(text, "{}", "-".repeat(widths.iter().sum::<usize>() + 4));
            }
        }
        let trainable = count(&self.trainable_variables());
        let all = self.count_params();
        let _ = writeln!(text, "Total params: {all}\nTrainable params: {trainable}");
        let _ = writeln!(text, "Non-trainable params: {}", all - trainable);
        text
    }

    /// The values of all variables on the host, in the order of [`Layer::variables`]. Blocks.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is lost.
    #[cfg(not(target_family = "wasm"))]
    pub fn get_weights(&self) -> Result<Vec<ndarray::ArrayD<f32>>> {
        pollster::block_on(self.get_weights_async())
    }

    /// As [`Sequential::get_weights`], on every target; does not block.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is lost.
    pub async fn get_weights_async(&self) -> Result<Vec<ndarray::ArrayD<f32>>> {
        // Those of one moment, however long reading takes.
        let now: Vec<Tensor> = self.variables().iter().map(|v| v.peek().detached()).collect();
        let mut weights = Vec::with_capacity(now.len());
        for value in now {
            weights.push(value.cast(crate::dtype::DType::F32)?.to_array_async::<f32>().await?);
        }
        Ok(weights)
    }

    /// Gives all variables values from the host, on [`Device::current`](crate::Device::current): training goes on
    /// with them after a restart, or on a new device after a loss.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if their number or shapes differ from the variables'; the
    /// variables are then as they were.
    pub fn set_weights(&self, weights: &[ndarray::ArrayD<f32>]) -> Result<()> {
        let variables = self.variables();
        check_weights(&self.name, &variables, weights)?;
        let tensor = |(v, array): (&Variable, _)| Tensor::from_array(array)?.cast(v.dtype());
        let values: Result<Vec<Tensor>> = variables.iter().zip(weights).map(tensor).collect();
        variables.iter().zip(values?).try_for_each(|(variable, value)| variable.assign(&value))
    }

    /// The name of an inner layer, below this model's if it has been given one.
    fn inner_name(&self, name: &str) -> String {
        match self.scoped {
            true => format!("{}/{name}", self.name),
            false => name.to_string(),
        }
    }
}

impl Layer for Sequential {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        let old = self.scoped.then(|| format!("{}/", self.name));
        self.name = name;
        self.scoped = true;
        for i in 0..self.layers.len() {
            let full = self.layers[i].name();
            let own = old.as_deref().and_then(|old| full.strip_prefix(old)).unwrap_or(full);
            let renamed = self.inner_name(own);
            self.layers[i].set_name(renamed);
        }
    }

    fn call(&self, x: &Tensor, training: bool) -> Result<Tensor> {
        let mut shapes = Vec::with_capacity(self.layers.len());
        let mut y = x.clone();
        for layer in &self.layers {
            y = in_layer(layer.name(), layer.call(&y, training))?;
            shapes.push(y.shape().to_vec());
        }
        *self.shapes.lock().unwrap_or_else(PoisonError::into_inner) = shapes;
        Ok(y)
    }

    fn variables(&self) -> Vec<Variable> {
        self.layers.iter().flat_map(|layer| layer.variables()).collect()
    }

    fn generators(&self) -> Vec<&Generator> {
        self.layers.iter().flat_map(|layer| layer.generators()).collect()
    }
}

fn count(variables: &[Variable]) -> usize {
    variables.iter().map(|v| v.shape().iter().product::<usize>()).sum()
}

/// `[N, 28, 28]`: the batch may have any size.
fn batch_shape(shape: &[usize]) -> String {
    let sizes = shape.iter().skip(1).map(|size| format!(", {size}"));
    match shape.is_empty() {
        true => "[]".to_string(),
        false => format!("[N{}]", sizes.collect::<String>()),
    }
}

fn check_weights(
    model: &str,
    variables: &[Variable],
    weights: &[ndarray::ArrayD<f32>],
) -> Result<()> {
    if variables.len() != weights.len() {
        let hint = match variables.is_empty() {
            true => "The layers have not been sized yet: call the model once, or use build.",
            false => "Take the arrays of get_weights of a model with the same layers.",
        };
        return Err(Error::Checkpoint(message!(
            "set_weights: the model '{model}' has {} variables, and {} arrays were given. {hint}",
            variables.len(),
            weights.len()
        )));
    }
    match variables.iter().zip(weights).find(|(v, w)| v.shape() != w.shape()) {
        None => Ok(()),
        Some((variable, array)) => Err(Error::Checkpoint(message!(
            "set_weights: the variable '{}' is {:?} and its array {:?}. Take the arrays of get_weights of a model with \
             the same layers, in the same order.",
            variable.name(),
            variable.shape(),
            array.shape()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keras::layers::{Dense, Flatten};

    fn names(model: &Sequential) -> Vec<&str> {
        model.layers().map(Layer::name).collect()
    }

    #[test]
    fn names_are_those_of_keras() {
        let model = Sequential::new().add(Dense::new(1)).add(Flatten::new()).add(Dense::new(1));
        let model = model.add(Dense::new(1).named("head")).add(Dense::new(1));
        assert_eq!(names(&model), ["dense", "flatten", "dense_1", "head", "dense_2"]);
    }

    #[test]
    fn inner_models_put_their_name_in_front() {
        let inner = || Sequential::new().add(Dense::new(1)).add(Dense::new(1));
        let model = Sequential::new().add(inner()).add(inner());
        assert_eq!(names(&model), ["sequential", "sequential_1"]);
        let named = inner().named("trunk").add(Dense::new(1));
        assert_eq!(names(&named), ["trunk/dense", "trunk/dense_1", "trunk/dense_2"]);
        let renamed = named.named("stem");
        assert_eq!(names(&renamed), ["stem/dense", "stem/dense_1", "stem/dense_2"]);
    }

    #[test]
    fn a_summary_needs_no_input() {
        let text = Sequential::new().add(Flatten::new()).add(Dense::new(3)).summary();
        let want = "Model: sequential\n\
                    Layer (type)       Output shape  Params\n\
                    ---------------------------------------\n\
                    flatten (Flatten)  ?                  0\n\
                    dense (Dense)      ?                  0\n\
                    Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n";
        assert_eq!(text, want);
        assert_eq!(batch_shape(&[5, 28, 28]), "[N, 28, 28]");
    }
}
