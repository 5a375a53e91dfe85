//! [`Checkpoint`]: saves the state of a training run in TensorFlow's format, and restores it.
//!
//! A checkpoint is a bundle of tensors and a graph of the objects that they belong to. `graph` makes the graph of a program's
//! parts, with wgrad's names and Keras's (`keras_names`); `matching` finds the object of a file for each part; `snapshot` holds
//! values that are being saved, `source` those that are being restored.

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
#[cfg(feature = "saved-model")]
mod stored_objects;

#[cfg(not(target_family = "wasm"))]
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub use path::CheckpointPath;
pub use snapshot::Snapshot;
use source::Source;
pub use status::RestoreStatus;
#[cfg(feature = "saved-model")]
pub(crate) use stored_objects::StoredObjects;
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) use stored_objects::{ObjectsToStore, StoredVariable};

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
/// The name of the save counter, as in TensorFlow.
const SAVE_COUNTER: &str = "save_counter";

/// A part and its name.
type Part<'a> = (String, &'a dyn Trackable);

/// The state of a training run: named parts, such as a model, its optimizer, a step counter and the iterator of a dataset. The
/// global generator is always included.
///
/// A process that restores a checkpoint and continues computes the same values as the process that saved it, bit for bit, on
/// the same adapter and driver, if both call the same ops with the same data between two steps of the optimizer (or between two
/// [`Device::flush`] in a custom loop), and `WGRAD_TUNE` is not `background`.
///
/// A program may restore it before a model's first call and an optimizer's first step: the values are stored until the
/// variables exist.
///
/// The files are TensorFlow's: `PREFIX-1.index`, `PREFIX-1.data-00000-of-00001`, and `checkpoint` in the same folder, which
/// names the newest. `tf.train.Checkpoint` restores them into a Keras model with the same layers and its optimizer, and
/// checkpoints that it has saved are restored here. `docs/checkpoints.md` describes the details.
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

impl std::fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("save_counter", &self.save_counter)
            .finish_non_exhaustive()
    }
}

/// The contents of a checkpoint's two files, for programs without files: in a browser, or for a message.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckpointBytes {
    /// The contents of `PREFIX.index`.
    pub index: Vec<u8>,
    /// The contents of `PREFIX.data-00000-of-00001`.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for CheckpointBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointBytes({} and {} bytes)", self.index.len(), self.data.len())
    }
}

/// The root of a walk over a checkpoint.
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
    /// A checkpoint that contains only the global generator.
    pub fn new() -> Self {
        Checkpoint::default()
    }

    /// Adds a part with a name, which is the keyword in `tf.train.Checkpoint(model=model)`.
    pub fn with(mut self, name: &str, part: &'a dyn Trackable) -> Self {
        self.parts.push((name.to_string(), part));
        self
    }

    /// The number of saves by [`Checkpoint::save`]; the next file has the next number.
    pub fn save_counter(&self) -> u64 {
        self.save_counter.load(Ordering::Relaxed)
    }

    /// Sets the number of saves so far, for a program that makes a `Checkpoint` for each save.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::train::Checkpoint;
    /// assert_eq!(Checkpoint::new().with_save_counter(3).save_counter(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_save_counter(self, saves: u64) -> Self {
        self.save_counter.store(saves, Ordering::Relaxed);
        self
    }

    fn root(&self, counts: bool) -> Root<'_> {
        Root { parts: &self.parts, counter: counts.then_some(&self.save_counter) }
    }

    /// The current values, unread. Training may continue while another thread writes them.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if two names are equal or a layer was never called, and the error of an iterator that cannot be
    /// saved.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(&self.root(false))
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
    /// checkpoint of the folder, and returns `PREFIX-N`. It creates the folder if it is missing. Blocks.
    ///
    /// The files are complete, and on the disk, before the folder's file `checkpoint` names them; if anything fails before
    /// that, the previous checkpoint remains the newest.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written; otherwise as for [`Checkpoint::to_bytes_async`].
    pub fn save(&self, prefix: impl AsRef<std::path::Path>) -> Result<PathBuf> {
        let number = self.save_counter() + 1;
        self.save_counter.store(number, Ordering::Relaxed);
        let save = || {
            let prefix = path::numbered(prefix.as_ref(), number)?;
            Snapshot::take(&self.root(true))?.write(&prefix).and_then(name_as_newest)
        };
        save().inspect_err(|_| self.save_counter.store(number - 1, Ordering::Relaxed))
    }

    /// As [`Checkpoint::write`], and marks it as the newest checkpoint of the folder.
    pub(crate) fn write_newest(&self, prefix: &std::path::Path) -> Result<PathBuf> {
        self.write(prefix).and_then(name_as_newest)
    }

    /// As [`Checkpoint::snapshot`], and includes `count` as the number of saves.
    pub(super) fn counted_snapshot(&self, count: u64) -> Result<Snapshot> {
        self.set_save_counter(count);
        Snapshot::take(&self.root(true))
    }

    pub(super) fn set_save_counter(&self, count: u64) {
        self.save_counter.store(count, Ordering::Relaxed);
    }

    /// Writes the files `PREFIX.index` and `PREFIX.data-00000-of-00001`, and returns the prefix. It does not count the save or
    /// write the file `checkpoint`; [`Checkpoint::read`] reads the files. Blocks.
    ///
    /// # Errors
    /// As for [`Checkpoint::save`].
    pub fn write(&self, prefix: impl AsRef<std::path::Path>) -> Result<PathBuf> {
        self.snapshot()?.write(prefix)
    }

    /// Restores every part from the checkpoint at `prefix`, on [`Device::current`], and continues counting saves from its
    /// number. `None`, which [`latest_checkpoint`](super::latest_checkpoint) returns if there is no checkpoint, changes
    /// nothing. After an error all parts are unchanged.
    ///
    /// Parts without a value stay unchanged: query the [`RestoreStatus`]. If it is not queried, a warning lists them, on
    /// standard error if the program has no logger.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a value may belong to more than one part, because the names, shapes and numbers of layers do
    /// not agree; if a value has another shape than its variable, or a dtype that does not fit into it; [`Error::Io`] if a file
    /// cannot be read; [`Error::Data`] if one is damaged; [`Error::Device`] if there is no memory.
    pub fn restore(&self, prefix: impl CheckpointPath) -> Result<RestoreStatus<'a>> {
        self.open(prefix, true)
    }

    /// As [`Checkpoint::restore`], for files of [`Checkpoint::write`]: the number of saves stays unchanged.
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

/// Makes the file `checkpoint` name the checkpoint at `path`.
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

/// One file in the safetensors format, only with wgrad's names: `model/dense/kernel`, and for an optimizer's slot the path of
/// the optimizer, the slot's name and the variable's path, `optimizer/momentum/model/dense/kernel`. Numbers are arrays of
/// `U64`.
#[cfg(feature = "safetensors")]
impl Checkpoint<'_> {
    /// The contents of a safetensors file with all values.
    ///
    /// # Errors
    /// As for [`Checkpoint::to_bytes_async`].
    pub async fn to_safetensors_async(&self) -> Result<Vec<u8>> {
        use crate::trackable::{Everything, Scope, file};
        let root = self.root(false);
        let everything = Everything::collect(&root, Scope::Checkpoint);
        file::to_bytes(&everything.into_arrays(root.kind()).await?)
    }

    /// Restores every part from the contents of such a file, which must have the same parts. After an error all parts are
    /// unchanged.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if they do not have the same parts; [`Error::Data`] if they are damaged; [`Error::Device`] if
    /// there is no memory.
    pub fn restore_safetensors(&self, bytes: &[u8]) -> Result<()> {
        use crate::trackable::{Scope, file, set};
        set(&self.root(false), Scope::Checkpoint, &file::from_bytes(&file::parse(bytes)?)?)?;
        Device::current()?.resume();
        Ok(())
    }
}
