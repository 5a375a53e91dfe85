//! [`Checkpoint`]: saves the whole state of a training run in one file.
//!
//! A training step depends on the weights, on the optimizer's slots, count of steps and learning rate, and on the
//! generators' positions. Once a program has restored them all, the next step computes the same bits.

use crate::error::Result;
use crate::random;
use crate::runtime::Device;
use crate::trackable::{self, Everything, Parts, Scope, Trackable, file};

/// The state of a training run: the named parts, such as a model and its optimizer, and the global generator.
///
/// A process that restores a checkpoint and goes on computes what the process that saved it would have computed, bit for
/// bit, on the same adapter and driver, if both call the same ops with the same data between two steps of the optimizer
/// (or between two [`Device::flush`] in a loop by hand), and `WGRAD_TUNE` is not `background`.
///
/// A program may restore it before a model's first call and an optimizer's first step: the values wait for their
/// variables.
///
/// The file has the safetensors format. A variable is stored under the path to it, `model/dense/kernel`; a slot under
/// the optimizer's path, the slot's name and the variable's path: `optimizer/momentum/model/dense/kernel`. Numbers on the
/// host, such as an optimizer's count of steps and a generator's state, are arrays of `U64`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{Checkpoint, Layer, Sequential, TRAINING, layers::{Dense, Dropout}};
/// use tf::keras::optimizers::{Adam, Optimizer};
///
/// let program = || {
///     let model = Sequential::new().add(Dense::new(8)).add(Dropout::new(0.5)).add(Dense::new(1));
///     (model, Adam::new(1e-2))
/// };
/// let step = |model: &Sequential, adam: &Adam| -> tf::Result<()> {
///     let x = tf::random::global().normal([16, 4])?;
///     let tape = tf::GradientTape::new();
///     let loss = model.call(&x, TRAINING)?.square()?.reduce_mean(())?;
///     adam.minimize(&loss, tape, model)
/// };
/// let (model, adam) = program();
/// step(&model, &adam)?;
/// let path = std::env::temp_dir().join(format!("wgrad-checkpoint-{}.safetensors", std::process::id()));
/// Checkpoint::new().add("model", &model).add("optimizer", &adam).save(&path)?;
/// step(&model, &adam)?;
///
/// // In another process, later:
/// let (resumed, its_adam) = program();
/// Checkpoint::new().add("model", &resumed).add("optimizer", &its_adam).restore(&path)?;
/// assert_eq!(its_adam.iterations(), 1);
/// step(&resumed, &its_adam)?;
/// assert_eq!(resumed.get_weights()?, model.get_weights()?);
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Checkpoint<'a> {
    parts: Vec<(String, &'a dyn Trackable)>,
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint of the global generator alone.
    pub fn new() -> Self {
        Checkpoint::default()
    }

    /// Adds a part under a name.
    #[allow(clippy::should_implement_trait)] // As `Sequential::add`.
    pub fn add(mut self, name: &str, part: &'a dyn Trackable) -> Self {
        self.parts.push((name.to_string(), part));
        self
    }

    /// Writes the file. It replaces a file at `path` once the new one is complete. Blocks.
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if two names are equal or a layer was never called;
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written; [`Error::Device`](crate::Error::Device) if the
    /// device is lost.
    #[cfg(not(target_family = "wasm"))]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        trackable::disk::save(path.as_ref(), &pollster::block_on(self.to_safetensors_async())?)
    }

    /// The contents of the file.
    ///
    /// # Errors
    /// As [`Checkpoint::save`].
    pub async fn to_safetensors_async(&self) -> Result<Vec<u8>> {
        let everything = Everything::of(self, Scope::Checkpoint);
        file::to_bytes(&everything.into_arrays(self.kind()).await?)
    }

    /// Gives every part its values from the file, on [`Device::current`]. After an error all parts are as they were.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read; else as [`Checkpoint::restore_safetensors`].
    #[cfg(not(target_family = "wasm"))]
    pub fn restore(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        trackable::disk::load(path.as_ref(), |bytes| self.restore_safetensors(bytes))
    }

    /// As [`Checkpoint::restore`], from the file's contents.
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if they are not of the same parts;
    /// [`Error::Data`](crate::Error::Data) if they are damaged; [`Error::Device`](crate::Error::Device) if there is no
    /// memory.
    pub fn restore_safetensors(&self, bytes: &[u8]) -> Result<()> {
        trackable::set(self, Scope::Checkpoint, &file::from_bytes(&file::parse(bytes)?))?;
        Device::current()?.resume();
        Ok(())
    }
}

impl Trackable for Checkpoint<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.parts.iter().for_each(|(name, part)| parts.add(name, *part));
        parts.add("global_generator", random::global());
    }
}
