//! Checkpoints in TensorFlow's format.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wgrad::train::{self, latest_checkpoint};
use wgrad::{Trackable, Variable};

use crate::arguments::{out, text};
use crate::border::call;
use crate::handles::{free, get};
use crate::model::{Model, wgrad_model};
use crate::optimizer::{Optimizer, wgrad_optimizer};
use crate::status::{Failure, Result, wgrad_status};
use crate::variable::wgrad_variable;

/// Parts of a program whose values are saved together.
#[derive(Debug)]
pub struct wgrad_checkpoint {
    _private: (),
}

/// A part, which lives on when its handle is freed.
enum Part {
    Model(Arc<Model>),
    Optimizer(Arc<Optimizer>),
    Variable(Variable),
}

impl Part {
    fn trackable(&self) -> &dyn Trackable {
        match self {
            Part::Model(model) => &model.loaded,
            Part::Optimizer(optimizer) => &***optimizer,
            Part::Variable(variable) => variable,
        }
    }
}

#[derive(Default)]
pub(crate) struct Checkpoint {
    parts: Mutex<Vec<(String, Part)>>,
    saves: AtomicU64,
}

impl Checkpoint {
    fn add(&self, name: &str, part: Part) -> Result<()> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.iter().any(|(known, _)| known == name) {
            return Err(Failure::argument(format!("the checkpoint has a part '{name}' already.")));
        }
        parts.push((name.to_string(), part));
        Ok(())
    }

    fn with<R>(&self, f: impl FnOnce(&train::Checkpoint<'_>) -> wgrad::Result<R>) -> Result<R> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = train::Checkpoint::new().with_save_counter(self.saves.load(Ordering::Relaxed));
        let whole = parts.iter().fold(empty, |all, (name, part)| all.with(name, part.trackable()));
        let result = f(&whole);
        self.saves.store(whole.save_counter(), Ordering::Relaxed);
        Ok(result?)
    }
}

/// Makes a checkpoint without parts.
///
/// # Safety
/// `checkpoint` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_new(
    checkpoint: *mut *mut wgrad_checkpoint,
) -> wgrad_status {
    call(|| unsafe { out(checkpoint, "checkpoint") }?.put(Arc::new(Checkpoint::default())))
}

unsafe fn add(
    checkpoint: *const wgrad_checkpoint,
    name: *const c_char,
    part: impl FnOnce() -> Result<Part>,
) -> wgrad_status {
    call(|| {
        let checkpoint = get::<Arc<Checkpoint>>(checkpoint, "checkpoint")?;
        checkpoint.add(unsafe { text(name, "name") }?, part()?)
    })
}

/// Adds a model, with the keyword that it has in `tf.train.Checkpoint(model=model)`.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_add_model(
    checkpoint: *const wgrad_checkpoint,
    name: *const c_char,
    model: *const wgrad_model,
) -> wgrad_status {
    unsafe { add(checkpoint, name, || Ok(Part::Model(get(model, "model")?))) }
}

/// Adds an optimizer with its state.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_add_optimizer(
    checkpoint: *const wgrad_checkpoint,
    name: *const c_char,
    optimizer: *const wgrad_optimizer,
) -> wgrad_status {
    unsafe { add(checkpoint, name, || Ok(Part::Optimizer(get(optimizer, "optimizer")?))) }
}

/// Adds a variable.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_add_variable(
    checkpoint: *const wgrad_checkpoint,
    name: *const c_char,
    variable: *const wgrad_variable,
) -> wgrad_status {
    unsafe { add(checkpoint, name, || Ok(Part::Variable(get(variable, "variable")?))) }
}

/// Writes the values of all parts to the files `PREFIX-N.index` and `PREFIX-N.data-00000-of-00001`, where N counts the saves from 1 on, and
/// makes them the newest checkpoint of the folder, which `wgrad_checkpoint_latest` returns. A restored checkpoint continues to count. If `path` is not null, it receives `PREFIX-N`; free it with `wgrad_string_free`.
///
/// # Safety
/// `prefix` is a text, `path` null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_save(
    checkpoint: *const wgrad_checkpoint,
    prefix: *const c_char,
    path: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = match path.is_null() {
            true => None,
            false => Some(unsafe { out(path, "path") }?),
        };
        let checkpoint = get::<Arc<Checkpoint>>(checkpoint, "checkpoint")?;
        let prefix = unsafe { text(prefix, "prefix") }?;
        let written = checkpoint.with(|whole| whole.save(prefix))?;
        if let Some(place) = place {
            place.text(&written.display().to_string());
        }
        Ok(())
    })
}

/// Gives all parts the values of the checkpoint with this prefix, such as `PREFIX-N`. If `partial` is 0, every part must have its
/// values there, and every value must be used.
///
/// # Safety
/// `prefix` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_restore(
    checkpoint: *const wgrad_checkpoint,
    prefix: *const c_char,
    partial: i32,
) -> wgrad_status {
    call(|| {
        let checkpoint = get::<Arc<Checkpoint>>(checkpoint, "checkpoint")?;
        let prefix = unsafe { text(prefix, "prefix") }?;
        checkpoint.with(|whole| {
            let status = whole.restore(prefix)?;
            match partial {
                0 => status.assert_consumed(),
                _ => {
                    status.expect_partial();
                    Ok(())
                }
            }
        })
    })
}

/// Stores the prefix of the newest checkpoint of a folder, as the last save has recorded it; free it with
/// `wgrad_string_free`. `WGRAD_NOT_FOUND` if there is none.
///
/// # Safety
/// `folder` is a text, `prefix` a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_checkpoint_latest(
    folder: *const c_char,
    prefix: *mut *mut c_char,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(prefix, "prefix") }?;
        let folder = unsafe { text(folder, "folder") }?;
        match latest_checkpoint(folder)? {
            Some(found) => {
                place.text(&found.display().to_string());
                Ok(())
            }
            None => Err(Failure::new(
                wgrad_status::WGRAD_NOT_FOUND,
                format!("{folder} has no checkpoint."),
            )),
        }
    })
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_checkpoint_free(checkpoint: *mut wgrad_checkpoint) -> wgrad_status {
    free::<Arc<Checkpoint>>(checkpoint)
}
