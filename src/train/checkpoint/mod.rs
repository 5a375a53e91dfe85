//! [`Checkpoint`]: saves the state of a training run in TensorFlow's format, and restores it.
//!
//! A checkpoint is a bundle of tensors and a graph of the objects that they belong to. `graph` makes that of a program's parts,
//! under wgrad's names and Keras's (`keras_names`); `matching` finds for each part the object of a file; `snapshot` holds
//! values on their way into a file, `source` those on their way out of one.

mod graph;
mod keras_names;
mod layers;
mod matching;
mod path;
mod proto;
mod saved;
mod snapshot;
mod source;
mod status;

#[cfg(not(target_family = "wasm"))]
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub use path::CheckpointPath;
pub use snapshot::Snapshot;
use source::Source;
pub use status::RestoreStatus;

use super::bundle::{BundleReader, BundleWriter};
#[cfg(not(target_family = "wasm"))]
use super::state_file::{CheckpointState, update_checkpoint_state};
use crate::error::Result;
#[cfg(not(target_family = "wasm"))]
use crate::error::{Error, message};
use crate::random;
use crate::runtime::Device;
use crate::trackable::{Parts, Trackable};

/// The name of the global generator.
const GLOBAL_GENERATOR: &str = "global_generator";
/// The name of the count of saves, which is TensorFlow's.
const SAVE_COUNTER: &str = "save_counter";

/// A part and its name.
type Part<'a> = (String, &'a dyn Trackable);

/// The state of a training run: named parts, such as a model, its optimizer, a count of steps and the iterator of a dataset.
/// The global generator always belongs to it.
///
/// A process that restores a checkpoint and goes on computes what the process that saved it would have computed, bit for
/// bit, on the same adapter and driver, if both call the same ops with the same data between two steps of the optimizer
/// (or between two [`Device::flush`] in a loop by hand), and `WGRAD_TUNE` is not `background`.
///
/// A program may restore it before a model's first call and an optimizer's first step: the values wait for their
/// variables.
///
/// The files are TensorFlow's: `PREFIX-1.index`, `PREFIX-1.data-00000-of-00001`, and `checkpoint` in the same folder, which names
/// the newest. `tf.train.Checkpoint` restores them into a Keras model of the same layers and its optimizer, and what it has
/// saved is restored here. `docs/checkpoints.md` tells more.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable, train::{Checkpoint, latest_checkpoint}};
/// use tf::keras::{Layer, Sequential, TRAINING, layers::{Dense, Dropout}};
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
/// let folder = std::env::temp_dir().join(format!("wgrad-checkpoint-{}", std::process::id()));
/// let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &adam);
/// let path = checkpoint.save(folder.join("ckpt"))?;
/// assert_eq!(path, folder.join("ckpt-1"));
/// step(&model, &adam)?;
///
/// // In another process, later:
/// let (resumed, its_adam) = program();
/// let checkpoint = Checkpoint::new().with("model", &resumed).with("optimizer", &its_adam);
/// checkpoint.restore(latest_checkpoint(&folder)?)?.assert_consumed()?;
/// assert_eq!(its_adam.iterations(), 1);
/// step(&resumed, &its_adam)?;
/// assert_eq!(resumed.get_weights()?, model.get_weights()?);
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Checkpoint<'a> {
    parts: Vec<Part<'a>>,
    save_counter: AtomicU64,
}

/// The contents of a checkpoint's two files, where there are none: in a browser, or in a message.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckpointBytes {
    /// What stands in `PREFIX.index`.
    pub index: Vec<u8>,
    /// What stands in `PREFIX.data-00000-of-00001`.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for CheckpointBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointBytes({} and {} bytes)", self.index.len(), self.data.len())
    }
}

/// What a walk over a checkpoint begins at.
struct Root<'a> {
    parts: &'a [Part<'a>],
    /// The number of saves, in a checkpoint that counts them.
    counter: Option<&'a AtomicU64>,
}

impl Trackable for Root<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.parts.iter().for_each(|(name, part)| parts.add(name, *part));
        if let Some(counter) = self.counter {
            parts.add(SAVE_COUNTER, counter);
        }
        parts.add(GLOBAL_GENERATOR, random::global());
    }

    fn kind(&self) -> &'static str {
        "Checkpoint"
    }
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint of the global generator alone.
    pub fn new() -> Self {
        Checkpoint::default()
    }

    /// Adds a part under a name, which is that of the keyword in `tf.train.Checkpoint(model=model)`.
    pub fn with(mut self, name: &str, part: &'a dyn Trackable) -> Self {
        self.parts.push((name.to_string(), part));
        self
    }

    /// How often [`Checkpoint::save`] has saved; the next file has the next number.
    pub fn save_counter(&self) -> u64 {
        self.save_counter.load(Ordering::Relaxed)
    }

    fn root(&self, counts: bool) -> Root<'_> {
        Root { parts: &self.parts, counter: counts.then_some(&self.save_counter) }
    }

    /// The values of this moment, unread. Training may go on while another thread writes them.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if two names are equal or a layer was never called, and what an iterator says that cannot be
    /// saved.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::of(&self.root(false))
    }

    /// The contents of the files that [`Checkpoint::write`] would write.
    ///
    /// # Errors
    /// As for [`Checkpoint::snapshot`]; [`Error::Device`] if the device is lost.
    pub async fn to_bytes_async(&self) -> Result<CheckpointBytes> {
        let mut writer = BundleWriter::new(Vec::new());
        self.snapshot()?.write_to(&mut writer).await?;
        let (data, index) = writer.finish()?;
        Ok(CheckpointBytes { index, data })
    }

    /// As [`Checkpoint::read`], from the contents of the files.
    ///
    /// # Errors
    /// As for [`Checkpoint::restore`].
    pub fn restore_bytes(&self, bytes: CheckpointBytes) -> Result<RestoreStatus<'a>> {
        let reader = BundleReader::from_bytes(&bytes.index, vec![bytes.data.into()])?;
        self.take(Some(Source::new("this checkpoint".into(), reader)?), false)
    }

    fn take(&self, source: Option<Source>, counts: bool) -> Result<RestoreStatus<'a>> {
        let resumes = source.is_some();
        let mut status = RestoreStatus::new(self.parts.clone(), counts, source);
        status.take(&self.save_counter)?;
        if resumes {
            Device::current()?.resume();
        }
        Ok(status)
    }
}

#[cfg(not(target_family = "wasm"))]
impl<'a> Checkpoint<'a> {
    /// Writes the files `PREFIX-N.index` and `PREFIX-N.data-00000-of-00001`, where N counts the saves, makes them the newest
    /// checkpoint of the folder, and returns `PREFIX-N`. The folder is made if it is not there. Blocks.
    ///
    /// The files are complete, and on the disk, before the folder's file `checkpoint` names them; whatever fails before, the
    /// checkpoint that was the newest stays it.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written; else as for [`Checkpoint::to_bytes_async`].
    pub fn save(&self, prefix: impl AsRef<std::path::Path>) -> Result<PathBuf> {
        let number = self.save_counter() + 1;
        self.save_counter.store(number, Ordering::Relaxed);
        let save = || {
            let prefix = path::numbered(prefix.as_ref(), number)?;
            Snapshot::of(&self.root(true))?.write(&prefix).and_then(name_as_newest)
        };
        save().inspect_err(|_| self.save_counter.store(number - 1, Ordering::Relaxed))
    }

    /// As [`Checkpoint::write`], and makes it the newest checkpoint of the folder.
    pub(crate) fn write_newest(&self, prefix: &std::path::Path) -> Result<PathBuf> {
        self.write(prefix).and_then(name_as_newest)
    }

    /// As [`Checkpoint::snapshot`], with the count of saves, which is then `count`.
    pub(super) fn counted_snapshot(&self, count: u64) -> Result<Snapshot> {
        self.set_save_counter(count);
        Snapshot::of(&self.root(true))
    }

    pub(super) fn set_save_counter(&self, count: u64) {
        self.save_counter.store(count, Ordering::Relaxed);
    }

    /// Writes the files `PREFIX.index` and `PREFIX.data-00000-of-00001`, and returns the prefix. No number is counted, and no
    /// file `checkpoint` is written; [`Checkpoint::read`] reads them. Blocks.
    ///
    /// # Errors
    /// As for [`Checkpoint::save`].
    pub fn write(&self, prefix: impl AsRef<std::path::Path>) -> Result<PathBuf> {
        self.snapshot()?.write(prefix)
    }

    /// Gives every part its values from the checkpoint at `prefix`, on [`Device::current`], and goes on counting saves where
    /// it stopped. `None`, as [`latest_checkpoint`](super::latest_checkpoint) gives where there is none, changes nothing. After an
    /// error all parts are as they were.
    ///
    /// Parts without a value stay as they are: ask the [`RestoreStatus`]. Where nobody asks, a warning names them, on the standard
    /// error stream if the program has no logger.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a value may belong to one part or to another, as the names, shapes and numbers of layers do not agree;
    /// if a value has another shape than its variable, or a dtype that does not fit into it;
    /// [`Error::Io`] if a file cannot be read; [`Error::Data`] if one is damaged; [`Error::Device`] if there is no memory.
    pub fn restore(&self, prefix: impl CheckpointPath) -> Result<RestoreStatus<'a>> {
        self.open(prefix, true)
    }

    /// As [`Checkpoint::restore`], of what [`Checkpoint::write`] has written: the number of saves stays as it is.
    ///
    /// # Errors
    /// As for [`Checkpoint::restore`].
    pub fn read(&self, prefix: impl CheckpointPath) -> Result<RestoreStatus<'a>> {
        self.open(prefix, false)
    }

    fn open(&self, prefix: impl CheckpointPath, counts: bool) -> Result<RestoreStatus<'a>> {
        let Some(prefix) = prefix.prefix() else { return self.take(None, counts) };
        let named = |error: Error| {
            error.reworded(|text| match text.contains(&*prefix.to_string_lossy()) {
                true => text.clone(),
                false => message!("{}: {text}", prefix.display()),
            })
        };
        let open = || {
            let gone = !super::bundle::index_path(&prefix).exists();
            if let Some(mistake) = path::mistake(&prefix).filter(|_| gone) {
                return Err(Error::Checkpoint(mistake.into()));
            }
            let source = Source::new(prefix.clone(), BundleReader::open(&prefix)?)?;
            self.take(Some(source), counts)
        };
        open().map_err(named)
    }
}

/// Lets the file `checkpoint` name what lies at `path`.
#[cfg(not(target_family = "wasm"))]
fn name_as_newest(path: PathBuf) -> Result<PathBuf> {
    let state = CheckpointState {
        model_checkpoint_path: path.clone(),
        all_model_checkpoint_paths: vec![path.clone()],
        ..CheckpointState::default()
    };
    update_checkpoint_state(crate::files::folder_of(&path), &state)?;
    Ok(path)
}

/// One file in the safetensors format, whose names are wgrad's alone: `model/dense/kernel`, and for what an optimizer keeps its
/// path, the slot's name and the variable's path, `optimizer/momentum/model/dense/kernel`. Numbers are arrays of `U64`.
#[cfg(feature = "safetensors")]
impl Checkpoint<'_> {
    /// The contents of a safetensors file with all values.
    ///
    /// # Errors
    /// As for [`Checkpoint::to_bytes_async`].
    pub async fn to_safetensors_async(&self) -> Result<Vec<u8>> {
        use crate::trackable::{Everything, Scope, file};
        let root = self.root(false);
        let everything = Everything::of(&root, Scope::Checkpoint);
        file::to_bytes(&everything.into_arrays(root.kind()).await?)
    }

    /// Gives every part its values from the contents of such a file, which must be of the same parts. After an error all parts
    /// are as they were.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if they are not of the same parts; [`Error::Data`] if they are damaged; [`Error::Device`] if
    /// there is no memory.
    pub fn restore_safetensors(&self, bytes: &[u8]) -> Result<()> {
        use crate::trackable::{Scope, file, set};
        set(&self.root(false), Scope::Checkpoint, &file::from_bytes(&file::parse(bytes)?))?;
        Device::current()?.resume();
        Ok(())
    }
}
