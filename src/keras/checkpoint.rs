//! [`Checkpoint`]: all that training goes on from, in one file.
//!
//! A training step depends on weights, on the optimizer's slots, count of steps and learning rate, and on where the
//! generators are. With all of them back, the next step gives the bits that it would have given.

use std::borrow::Cow;

use super::Layer;
use super::optimizers::Optimizer;
use super::weights::{NamedArray, arrays_of, file, set_arrays};
use crate::error::{Error, Result, message};
use crate::random::{self, Generator};
use crate::runtime::Device;
use crate::variable::Variable;

/// What a training run goes on from: a model's variables and generators, its optimizer, the global generator, and
/// whatever else is named.
///
/// A process that restores a checkpoint and goes on computes what the process that saved it would have computed, bit for
/// bit, on the same adapter and driver, if both call the same ops with the same data between two steps of the optimizer
/// (or between two [`Device::flush`] in a loop by hand), and `WGRAD_TUNE` is not `background`.
///
/// The file is one of safetensors, with the variables under their names, those of slots such as `adam/m/dense/kernel`
/// included. A state of a [`Generator`] is an array of three `U64`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Checkpoint, Layer, Sequential, layers::{Dense, Dropout}};
/// use tf::keras::optimizers::{Adam, Optimizer};
///
/// let program = || -> tf::Result<(Sequential, Adam)> {
///     let model = Sequential::new().add(Dense::new(8)).add(Dropout::new(0.5)).add(Dense::new(1));
///     model.build([1, 4])?;               // a checkpoint is restored into variables that are there
///     Ok((model, Adam::new(1e-2)))
/// };
/// let step = |model: &Sequential, adam: &Adam| -> tf::Result<()> {
///     let x = tf::random::global().normal([16, 4])?;
///     let tape = tf::GradientTape::new();
///     let loss = model.call(&x, true)?.square()?.reduce_mean(())?;
///     adam.minimize(&loss, tape, &model.trainable_variables())
/// };
/// let (model, adam) = program()?;
/// step(&model, &adam)?;
/// let path = std::env::temp_dir().join(format!("wgrad-checkpoint-{}.safetensors", std::process::id()));
/// Checkpoint::new(&model, &adam).save(&path)?;
/// step(&model, &adam)?;
///
/// // In another process, later:
/// let (resumed, its_adam) = program()?;
/// Checkpoint::new(&resumed, &its_adam).restore(&path)?;
/// assert_eq!(its_adam.iterations(), 1);
/// step(&resumed, &its_adam)?;
/// assert_eq!(resumed.get_weights()?, model.get_weights()?);
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
pub struct Checkpoint<'a> {
    model: &'a dyn Layer,
    optimizer: &'a dyn Optimizer,
    variables: Vec<Variable>,
    generators: Vec<(String, &'a Generator)>,
}

impl<'a> Checkpoint<'a> {
    /// Of a model, its optimizer and the global generator. Generators of layers that have none yet, such as a
    /// [`Dropout`](super::layers::Dropout) before its first step, are made now.
    pub fn new(model: &'a dyn Layer, optimizer: &'a dyn Optimizer) -> Self {
        let own = model.generators().into_iter().enumerate();
        let mut generators: Vec<_> =
            own.map(|(i, g)| (format!("generator/model/{i}"), g)).collect();
        generators.push(("generator/global".to_string(), random::global()));
        Checkpoint { model, optimizer, variables: Vec::new(), generators }
    }

    /// With other variables, such as a running mean.
    pub fn variables(mut self, variables: &[Variable]) -> Self {
        self.variables.extend_from_slice(variables);
        self
    }

    /// With a generator of the program's own.
    pub fn generator(mut self, name: &str, generator: &'a Generator) -> Self {
        self.generators.push((format!("generator/own/{name}"), generator));
        self
    }

    /// Writes the file; what was at `path` is replaced once the new one is complete. Blocks.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if two names are equal or the layers have not been sized; [`Error::Io`] if the file cannot be
    /// written; [`Error::Device`] if the device is lost.
    #[cfg(not(target_family = "wasm"))]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        file::save(path.as_ref(), &pollster::block_on(self.to_safetensors_async())?)
    }

    /// The contents of the file.
    ///
    /// # Errors
    /// As [`Checkpoint::save`].
    pub async fn to_safetensors_async(&self) -> Result<Vec<u8>> {
        let variables = self.all_variables()?;
        // Before the first wait, so that all is of one moment.
        let mut numbers = Vec::new();
        for (name, generator) in &self.generators {
            numbers.push(number(
                name,
                &[3],
                "U64",
                generator.state().map(u64::to_le_bytes).concat(),
            ));
        }
        let [iterations, rate] = self.names();
        let optimizer = self.optimizer;
        numbers.push(number(&iterations, &[], "U64", optimizer.iterations().to_le_bytes().into()));
        numbers.push(number(&rate, &[], "F32", optimizer.learning_rate().to_le_bytes().into()));
        let mut arrays = arrays_of(self.model.name(), &variables).await?;
        for number in numbers {
            if arrays.iter().any(|array| array.name == number.name) {
                return Err(Error::Checkpoint(message!(
                    "save: two parts of the checkpoint are called '{}'. Give one of them another name.",
                    number.name
                )));
            }
            arrays.push(number);
        }
        file::to_bytes(&arrays)
    }

    /// Gives everything the values in the file, on [`Device::current`]. On an error all is as it was.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; else as [`Checkpoint::restore_safetensors`].
    #[cfg(not(target_family = "wasm"))]
    pub fn restore(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        file::load(path.as_ref(), |bytes| self.restore_safetensors(bytes))
    }

    /// As [`Checkpoint::restore`], from the file's contents.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if they are not of the same model, optimizer and generators; [`Error::Data`] if they are
    /// damaged; [`Error::Device`] if there is no memory.
    pub fn restore_safetensors(&self, bytes: &[u8]) -> Result<()> {
        let parsed = file::parse(bytes)?;
        let mut arrays = file::from_bytes(&parsed);
        let states = self.generators.iter().map(|(name, _)| {
            let bytes = take(&mut arrays, name, &[3], "U64")?;
            let mut words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap_or_default());
            Ok(std::array::from_fn(|_| u64::from_le_bytes(words.next().unwrap_or_default())))
        });
        let states: Vec<[u64; 3]> = states.collect::<Result<_>>()?;
        let [iterations, rate] = self.names();
        let iterations = take(&mut arrays, &iterations, &[], "U64")?;
        let rate = take(&mut arrays, &rate, &[], "F32")?;
        set_arrays(self.model.name(), &self.all_variables()?, &arrays)?;

        let optimizer = self.optimizer;
        optimizer.set_iterations(u64::from_le_bytes((*iterations).try_into().unwrap_or_default()));
        optimizer.set_learning_rate(f32::from_le_bytes((*rate).try_into().unwrap_or_default()));
        self.generators.iter().zip(states).for_each(|((_, g), state)| g.reset(state));
        Device::current()?.resume();
        Ok(())
    }

    /// The model's, the optimizer's slots for them, and the others.
    fn all_variables(&self) -> Result<Vec<Variable>> {
        let mut variables = self.model.variables();
        if !variables.is_empty() {
            self.optimizer.build(&self.model.trainable_variables())?;
            variables.extend(self.optimizer.variables());
            variables.extend_from_slice(&self.variables);
        }
        Ok(variables)
    }

    /// What the optimizer's count of steps and its learning rate are called.
    fn names(&self) -> [String; 2] {
        let name = self.optimizer.state().name();
        ["iterations", "learning_rate"].map(|what| format!("{name}/{what}"))
    }
}

fn number(name: &str, shape: &[usize], dtype: &'static str, bytes: Vec<u8>) -> NamedArray<'static> {
    NamedArray {
        name: name.to_string().into(),
        dtype: dtype.into(),
        shape: shape.to_vec(),
        bytes: bytes.into(),
    }
}

/// Takes the bytes of `name` out of `arrays`.
fn take<'a>(
    arrays: &mut Vec<NamedArray<'a>>,
    name: &str,
    shape: &[usize],
    dtype: &str,
) -> Result<Cow<'a, [u8]>> {
    let fits =
        |array: &NamedArray| array.name == name && array.shape == shape && array.dtype == dtype;
    match arrays.iter().position(fits) {
        Some(at) => Ok(arrays.swap_remove(at).bytes),
        None => Err(Error::Checkpoint(message!(
            "restore: the checkpoint lacks '{name}', {shape:?} of {dtype}. Restore what a Checkpoint of the same parts has \
             saved; weights alone are loaded by load_weights."
        ))),
    }
}
