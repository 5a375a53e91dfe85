//! [`Saver`]: TensorFlow 1's checkpoints, where each value has the name of its variable.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::session::Session;
use super::train::{Form, Optimizer};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::tensor::Tensor;
use crate::trackable::{NamedArray, Slot, SlotOwner};
use crate::train::{
    BundleFiles, CheckpointReader, CheckpointState, get_checkpoint_state, load_checkpoint,
    remove_bundle, update_checkpoint_state,
};
use crate::variable::Variable;

/// Saves the variables of a session and the slots of its optimizers, and restores them; the files are those of
/// `tf.compat.v1.train.Saver`, without the `.meta` file, which has TensorFlow's graph.
///
/// Slots have TensorFlow 1's names (`w/Momentum`, `w/Adam`, `w/Adam_1`, `w/Adagrad`, `beta1_power`), those of other optimizers
/// wgrad's: `w/NAME/slot`. `STEP/iterations` counts the steps of each optimizer; TensorFlow does not read it.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// # use wgrad as tf;
/// use wgrad::compat::v1::{self, Graph, Saver, Session};
/// let graph = Graph::new(|g| g.variable("w", || tf::constant([1.0, 2.0])).map(drop));
/// let session = Session::new(&graph)?;
/// session.run(v1::global_variables_initializer(), &[])?;
/// let path = Saver::new().save(&session, "run/model", 1000)?; // run/model-1000
/// let other = Session::new(&graph)?;
/// Saver::new().restore(&other, path)?;
/// assert_eq!(other.eval("w", &[])?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Saver {
    max_to_keep: usize,
    /// The checkpoints of this saver that exist, the newest last.
    kept: Mutex<VecDeque<PathBuf>>,
}

impl Saver {
    /// A saver that keeps the latest five checkpoints.
    pub fn new() -> Self {
        Saver { max_to_keep: 5, kept: Mutex::default() }
    }

    /// Keeps this number of checkpoints and deletes older ones that it has saved; 0 keeps all.
    #[must_use]
    pub fn max_to_keep(mut self, count: usize) -> Self {
        self.max_to_keep = count;
        self
    }

    /// Saves a checkpoint at `prefix`, or at `prefix-STEP` with a global step, and names it in the file `checkpoint` of its
    /// folder. Returns its path.
    ///
    /// # Errors
    /// [`Error::Check`] if a variable has no value yet; [`Error::Io`] if the file system reports an error, [`Error::Device`] if
    /// a value cannot be read.
    pub fn save(
        &self,
        session: &Session,
        prefix: impl AsRef<Path>,
        global_step: impl Into<Option<u64>>,
    ) -> Result<PathBuf> {
        let mut path = prefix.as_ref().to_path_buf();
        if let Some(step) = global_step.into() {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!("-{step}"));
            path.set_file_name(name);
        }
        let known = &session.known;
        if known.variables().is_empty() {
            session.build()?;
        }
        if let Some(name) = known.uninitialized() {
            return Err(Error::Check(message!(
                "Saver::save: variable {name} has no value yet. Run global_variables_initializer() first."
            )));
        }
        let mut arrays: BTreeMap<String, HostArray<'static>> = BTreeMap::new();
        for (name, variable) in known.variables() {
            arrays.insert(name, HostArray::from_tensor(&variable.read())?);
        }
        for entry in entries(session) {
            let array = match &entry.value {
                Stored::Slot { slot, of, name, scale } => match (slot, slot_value(slot.as_ref())) {
                    (Some(_), Some(value)) => HostArray::from_tensor(&value.multiply(*scale)?)?,
                    // No step was made yet.
                    _ => {
                        let start = entry.optimizer.optimizer.slot_start(name, of)?;
                        HostArray::from_tensor(&start.multiply(*scale)?)?
                    }
                },
                Stored::Power(rate) => {
                    let steps = entry.optimizer.optimizer.iterations();
                    number(rate.powf(steps as f64 + 1.0) as f32)
                }
                Stored::Iterations => {
                    let steps = entry.optimizer.optimizer.iterations();
                    HostArray::of_bytes(HostDType::I64, [].into(), steps.to_le_bytes().to_vec())
                }
            };
            arrays.insert(entry.key, array);
        }
        let mut files = BundleFiles::begin(&path)?;
        for (name, array) in &arrays {
            files.add(name, array)?;
        }
        files.finish()?;
        self.record(&path)?;
        Ok(path)
    }

    /// Names the checkpoint in the file `checkpoint`, and deletes the oldest ones.
    fn record(&self, path: &Path) -> Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other != path);
        kept.push_back(path.to_path_buf());
        let surplus = match self.max_to_keep {
            0 => 0,
            most => kept.len().saturating_sub(most),
        };
        let old: Vec<PathBuf> = kept.drain(..surplus).collect();
        let folder = crate::files::folder_of(path);
        update_checkpoint_state(
            folder,
            &CheckpointState {
                model_checkpoint_path: path.to_path_buf(),
                all_model_checkpoint_paths: kept.iter().cloned().collect(),
                ..CheckpointState::default()
            },
        )?;
        old.iter().try_for_each(|path| remove_bundle(path))
    }

    /// Restores all variables of the session, which then needs no initialization, and the slots of its optimizers as far as
    /// the checkpoint has them. `path` is the checkpoint's, or its folder's, whose newest one is restored. After an error,
    /// nothing has changed.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the checkpoint lacks a variable, or has it with another shape or dtype; [`Error::Io`] and
    /// [`Error::Data`] if it cannot be read.
    pub fn restore(&self, session: &Session, path: impl AsRef<Path>) -> Result<()> {
        let reader = load_checkpoint(path)?;
        if session.known.variables().is_empty() {
            session.build()?;
        }
        session.device().scope(|| restore(session, &reader))
    }

    /// The checkpoints that this saver has saved and not deleted, the newest last.
    pub fn last_checkpoints(&self) -> Vec<PathBuf> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Makes the saver delete the checkpoints that an earlier process has saved in this folder, too, when they are too many.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Data`] if the folder's file `checkpoint` cannot be read.
    pub fn recover_last_checkpoints(&self, folder: impl AsRef<Path>) -> Result<()> {
        let state = get_checkpoint_state(folder)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for path in state.into_iter().flat_map(|state| state.all_model_checkpoint_paths) {
            if !kept.contains(&path) && crate::train::index_path(&path).is_file() {
                kept.push_back(path);
            }
        }
        Ok(())
    }
}

impl Default for Saver {
    fn default() -> Self {
        Saver::new()
    }
}

/// A value of an optimizer in a checkpoint.
struct Entry {
    key: String,
    optimizer: std::sync::Arc<Optimizer>,
    value: Stored,
}

enum Stored {
    Slot {
        /// None before the first step.
        slot: Option<Slot>,
        of: Variable,
        name: &'static str,
        /// The checkpoint has the slot times this.
        scale: f32,
    },
    /// The rate to the power of one more than the number of steps.
    Power(f64),
    Iterations,
}

/// The values of a session's optimizers by their names in checkpoints.
fn entries(session: &Session) -> Vec<Entry> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    // As TensorFlow does: name, name_1, name_2.
    let mut unique = |name: String| {
        let count = taken.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}_{}", *count - 1) }
    };
    let mut entries = Vec::new();
    for (step, optimizer) in session.known.optimizers() {
        let own = &optimizer.optimizer;
        let mut slots: HashMap<(u64, String), Slot> = HashMap::new();
        for (of, name, slot) in own.state().slots() {
            slots.insert((of, name), slot);
        }
        let mut add = |key, value| entries.push(Entry { key, optimizer: optimizer.clone(), value });
        if let Form::Adam(_) = optimizer.form {
            add(unique("beta1_power".to_string()), Stored::Power(0.9));
            add(unique("beta2_power".to_string()), Stored::Power(0.999));
        }
        let changed: HashSet<u64> = slots.keys().map(|(id, _)| *id).collect();
        for (variable_name, of) in session.known.variables() {
            // Before the first step, it is unknown which variables the loss depends on.
            if !of.trainable() || !changed.is_empty() && !changed.contains(&of.id()) {
                continue;
            }
            for name in own.slot_names(&of) {
                let (key, scale) = match optimizer.form {
                    Form::Plain => continue,
                    Form::Momentum(known) => {
                        let rate = own.learning_rate();
                        (
                            format!("{variable_name}/{known}"),
                            if rate == 0.0 { 0.0 } else { -1.0 / rate },
                        )
                    }
                    Form::Named(known) | Form::Adam(known) => {
                        (format!("{variable_name}/{known}"), 1.0)
                    }
                    Form::Keras => (format!("{variable_name}/{}/{name}", own.state().name()), 1.0),
                };
                let slot = slots.get(&(of.id(), name.to_string())).cloned();
                add(unique(key), Stored::Slot { slot, of: of.clone(), name, scale });
            }
        }
        add(format!("{step}/iterations"), Stored::Iterations);
    }
    entries
}

fn slot_value(slot: Option<&Slot>) -> Option<Tensor> {
    slot?.variable().map(Variable::read)
}

fn number(value: f32) -> HostArray<'static> {
    HostArray::of_bytes(HostDType::F32, [].into(), value.to_le_bytes().to_vec())
}

/// What a restoration does after everything was read.
enum Change {
    Assign(Variable, Tensor),
    Leave(std::sync::Arc<Optimizer>, u64, &'static str, NamedArray<'static>),
    Iterations(std::sync::Arc<Optimizer>, u64),
}

fn restore(session: &Session, reader: &CheckpointReader) -> Result<()> {
    let mut changes = Vec::new();
    for (name, variable) in session.known.variables() {
        if !reader.has_tensor(&name) {
            let names: Vec<String> =
                reader.get_variable_to_shape_map().into_keys().take(30).collect();
            return Err(Error::Checkpoint(message!(
                "Saver::restore: the checkpoint has no variable '{name}'. It has {}. (Checkpoints of tf.train.Checkpoint have \
                 paths of objects in place of names; restore them with wgrad's Checkpoint.)",
                names.join(", ")
            )));
        }
        let array = NamedArray::new(name.clone(), reader.get_tensor(&name)?);
        changes.push(Change::Assign(
            variable.clone(),
            array.to_tensor(variable.shape(), variable.dtype())?,
        ));
    }
    for Entry { key, optimizer, value } in entries(session) {
        if !reader.has_tensor(&key) {
            continue;
        }
        let array = reader.get_tensor(&key)?;
        match value {
            Stored::Slot { slot, of, name, scale } => {
                let start = optimizer.optimizer.slot_start(name, &of)?;
                let value = NamedArray::new(key, array).to_tensor(start.shape(), start.dtype())?;
                let value = value.multiply(if scale == 0.0 { 0.0 } else { 1.0 / scale })?;
                match slot.as_ref().and_then(Slot::variable) {
                    Some(variable) => changes.push(Change::Assign(variable.clone(), value)),
                    None => {
                        let array = NamedArray::new(name, HostArray::from_tensor(&value)?);
                        changes.push(Change::Leave(optimizer, of.id(), name, array));
                    }
                }
            }
            Stored::Power(rate) => {
                if let Some(steps) = steps_of_power(&array, rate) {
                    changes.push(Change::Iterations(optimizer, steps));
                }
            }
            // After the powers, which are rounded.
            Stored::Iterations => {
                if let Ok(steps) = array.to_array::<i64>() {
                    let steps = steps.iter().next().copied().unwrap_or(0).max(0);
                    changes.push(Change::Iterations(optimizer, steps as u64));
                }
            }
        }
    }
    for change in changes {
        match change {
            Change::Assign(variable, value) => variable.assign(value)?,
            Change::Leave(optimizer, of, name, array) => {
                optimizer.optimizer.state().leave(of, name, array);
            }
            Change::Iterations(optimizer, steps) => optimizer.optimizer.set_iterations(steps),
        }
    }
    session.known.initialize_all();
    Ok(())
}

/// The number of steps after which TensorFlow's Adam has this power of a decay rate.
fn steps_of_power(array: &HostArray<'_>, rate: f64) -> Option<u64> {
    let power = f64::from(*array.to_array::<f32>().ok()?.iter().next()?);
    // Later, the corrections by the powers are 1.
    const MANY: u64 = 1_000_000;
    match power {
        power if power > f64::from(f32::MIN_POSITIVE) && power <= 1.0 => {
            Some(((power.ln() / rate.ln()).round() - 1.0).max(0.0) as u64)
        }
        power if (0.0..1.0).contains(&power) => (rate > 0.99).then_some(MANY),
        _ => None,
    }
}
