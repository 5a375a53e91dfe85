//! Datasets whose batches C makes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wgrad::data::{Batch, ModelData};
use wgrad::{Error, Tensor};

use crate::arguments::out;
use crate::border::call;
use crate::handles::{free, get, put, take};
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// Batches that a callback makes.
#[derive(Debug)]
pub struct wgrad_dataset {
    _private: (),
}

/// The batch that a callback fills. It is valid during the call.
#[derive(Debug)]
pub struct wgrad_batch {
    _private: (),
}

/// Fills `batch` with the batch `index` of a pass, counted from 0. Returns 1, 0 if the pass has no more batches, or a negative number
/// to end the call with an error. It must return; it must not throw an exception or jump out.
pub type wgrad_next =
    Option<unsafe extern "C" fn(user: *mut c_void, index: u64, batch: *mut wgrad_batch) -> i32>;

/// Called when the dataset is not needed any more.
pub type wgrad_release = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// What a callback has put into a batch.
#[derive(Default)]
pub(crate) struct OpenBatch(Mutex<Batch>);

/// The callbacks.
pub(crate) struct Dataset {
    next: unsafe extern "C" fn(*mut c_void, u64, *mut wgrad_batch) -> i32,
    release: wgrad_release,
    user: *mut c_void,
    busy: AtomicBool,
}

// SAFETY: the header requires that the callbacks may be called in any thread, one at a time; `busy` sees to the latter.
unsafe impl Send for Dataset {}
// SAFETY: as above.
unsafe impl Sync for Dataset {}

impl Drop for Dataset {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as the header requires; it is called once.
            unsafe { release(self.user) };
        }
    }
}

/// Marks a dataset as in use.
struct Use(Arc<Dataset>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Dataset {
    /// Passes over the batches, for one call of a model.
    pub(crate) fn passes(self: &Arc<Self>) -> Result<ModelData<'static>> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Failure::new(
                wgrad_status::WGRAD_FAILED_PRECONDITION,
                "another call reads the dataset. Make a dataset for each call at a time.",
            ));
        }
        let held = Arc::new(Use(self.clone()));
        Ok(ModelData::from_fn(move || {
            let (held, mut index, mut ended) = (held.clone(), 0, false);
            std::iter::from_fn(move || {
                if ended {
                    return None;
                }
                let batch = held.0.batch(index);
                index += 1;
                ended = !matches!(batch, Some(Ok(_)));
                batch
            })
        }))
    }

    fn batch(&self, index: u64) -> Option<wgrad::Result<Batch>> {
        let error = |text: String| Some(Err(Error::Data(text.into())));
        let open = Arc::new(OpenBatch::default());
        let handle = match put(open.clone()) {
            Ok(handle) => handle,
            Err(failure) => return error(failure.text),
        };
        // SAFETY: as the header requires.
        let answer = unsafe { (self.next)(self.user, index, handle) };
        let _ = take::<Arc<OpenBatch>>(handle, "batch");
        let batch = std::mem::take(&mut *open.0.lock().unwrap_or_else(PoisonError::into_inner));
        match answer {
            0 => None,
            1 if batch.x.is_empty() => error(format!(
                "dataset: the callback returned 1 for batch {index}, and added no input."
            )),
            1 => Some(Ok(batch)),
            other => error(format!("dataset: the callback returned {other} for batch {index}.")),
        }
    }
}

/// Makes a dataset of batches that `next` fills. `user` is passed to it; `release`, which may be null, is called once with it when the
/// handle is freed and no call needs the dataset any more, in the thread where this happens. The callbacks run in the thread that calls `wgrad_model_fit_dataset` or `wgrad_model_evaluate_dataset`, never in
/// two at once, and may call any function of this library.
///
/// # Safety
/// `next` and `release` are functions that may be called in every thread that uses the dataset; `dataset` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_dataset_from_callback(
    next: wgrad_next,
    user: *mut c_void,
    release: wgrad_release,
    dataset: *mut *mut wgrad_dataset,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(dataset, "dataset") }?;
        let Some(next) = next else {
            return Err(Failure::argument("next is null; it must be a function."));
        };
        place.put(Arc::new(Dataset { next, release, user, busy: AtomicBool::new(false) }))
    })
}

fn add(
    batch: *const wgrad_batch,
    tensor: *const wgrad_tensor,
    list: impl FnOnce(&mut Batch) -> &mut Vec<Tensor>,
) -> wgrad_status {
    call(|| {
        let batch = get::<Arc<OpenBatch>>(batch, "batch")?;
        let tensor = get::<Tensor>(tensor, "tensor")?;
        list(&mut batch.0.lock().unwrap_or_else(PoisonError::into_inner)).push(tensor);
        Ok(())
    })
}

/// Adds an input of the model to the batch. The handle of the tensor stays the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_batch_add_input(
    batch: *const wgrad_batch,
    tensor: *const wgrad_tensor,
) -> wgrad_status {
    add(batch, tensor, |batch| &mut batch.x)
}

/// Adds the target of an output to the batch.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_batch_add_target(
    batch: *const wgrad_batch,
    tensor: *const wgrad_tensor,
) -> wgrad_status {
    add(batch, tensor, |batch| &mut batch.y)
}

/// Adds the weights of the batch's examples.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_batch_add_weights(
    batch: *const wgrad_batch,
    tensor: *const wgrad_tensor,
) -> wgrad_status {
    add(batch, tensor, |batch| &mut batch.sample_weight)
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_dataset_free(dataset: *mut wgrad_dataset) -> wgrad_status {
    free::<Arc<Dataset>>(dataset)
}
