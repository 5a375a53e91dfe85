//! Handles: what C holds is not an address but a place in a table and the number of times that the place was used. So a handle that
//! was freed, one of another kind, or any other number is an error and never a wild pointer; and an object that one thread frees
//! lives on until the calls of other threads that use it have ended.

use std::sync::{Arc, PoisonError, RwLock};

use wgrad::{Device, Tensor, Variable};

use crate::border::call;
use crate::checkpoint::{Checkpoint, wgrad_checkpoint};
use crate::dataset::{Dataset, OpenBatch, wgrad_batch, wgrad_dataset};
use crate::device::wgrad_device;
use crate::function::{SavedFunction, wgrad_function};
use crate::model::{Model, wgrad_model};
use crate::optimizer::{Optimizer, wgrad_optimizer};
use crate::status::{Failure, Result, wgrad_status};
use crate::tape::{Tape, wgrad_tape};
use crate::tensor::wgrad_tensor;
use crate::variable::wgrad_variable;

/// A type of objects.
pub(crate) trait Kind: Clone {
    /// What C calls it.
    type Handle;
    const NAME: &'static str;
    fn wrap(self) -> Object;
    fn find(object: &Object) -> Option<&Self>;
}

macro_rules! kinds {
    ($($handle:ident, $variant:ident($type:ty), $name:literal;)*) => {
        $(
            impl Kind for $type {
                type Handle = $handle;
                const NAME: &'static str = $name;

                fn wrap(self) -> Object {
                    Object::$variant(self)
                }

                fn find(object: &Object) -> Option<&Self> {
                    match object {
                        Object::$variant(value) => Some(value),
                        _ => None,
                    }
                }
            }
        )*

        /// What a place of the table holds.
        pub(crate) enum Object {
            $($variant($type),)*
        }

        impl Object {
            fn name(&self) -> &'static str {
                match self {
                    $(Object::$variant(_) => $name,)*
                }
            }
        }
    };
}
// The types of handles are in the files of their functions, as cbindgen does not look into macros.
kinds! {
    wgrad_device, Device(Device), "device";
    wgrad_tensor, Tensor(Tensor), "tensor";
    wgrad_variable, Variable(Variable), "variable";
    wgrad_tape, Tape(Arc<Tape>), "tape";
    wgrad_optimizer, Optimizer(Arc<Optimizer>), "optimizer";
    wgrad_model, Model(Arc<Model>), "model";
    wgrad_function, Function(Arc<SavedFunction>), "function";
    wgrad_dataset, Dataset(Arc<Dataset>), "dataset";
    wgrad_batch, Batch(Arc<OpenBatch>), "batch";
    wgrad_checkpoint, Checkpoint(Arc<Checkpoint>), "checkpoint";
}

/// The bits of a handle that name a place; the others count its uses.
const PLACE_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };
const PLACES: usize = 1 << PLACE_BITS;
const LAST_USE: usize = usize::MAX >> PLACE_BITS;

struct Place {
    /// From 1 on, so that no handle is null.
    uses: usize,
    object: Option<Object>,
}

struct Table {
    places: Vec<Place>,
    free: Vec<usize>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { places: Vec::new(), free: Vec::new() });

/// Stores an object; returns its handle.
pub(crate) fn put<K: Kind>(value: K) -> Result<*mut K::Handle> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let at = match table.free.pop() {
        Some(at) => at,
        None if table.places.len() < PLACES => {
            table.places.push(Place { uses: 0, object: None });
            table.places.len() - 1
        }
        None => {
            drop(table);
            return Err(Failure::new(
                wgrad_status::WGRAD_OUT_OF_MEMORY,
                format!("{PLACES} handles are open; free some."),
            ));
        }
    };
    let place = &mut table.places[at];
    place.uses += 1;
    place.object = Some(value.wrap());
    Ok(((place.uses << PLACE_BITS) | at) as *mut K::Handle)
}

fn split<H>(handle: *const H) -> (usize, usize) {
    let number = handle as usize;
    (number % PLACES, number >> PLACE_BITS)
}

fn unknown<K: Kind>(found: Option<&Object>, what: &str) -> Failure {
    let text = match found {
        Some(object) => format!("{what} is a {}; it must be a {}.", object.name(), K::NAME),
        None => format!("{what} is no handle of a {}, or it has been freed.", K::NAME),
    };
    Failure::new(wgrad_status::WGRAD_INVALID_HANDLE, text)
}

impl Table {
    fn find(&self, at: usize, uses: usize) -> Option<&Object> {
        let place = self.places.get(at).filter(|place| place.uses == uses)?;
        place.object.as_ref()
    }
}

/// The object of a handle; `what` names the argument in errors.
pub(crate) fn get<K: Kind>(handle: *const K::Handle, what: &str) -> Result<K> {
    if handle.is_null() {
        return Err(Failure::argument(format!(
            "{what} is null; it must be a handle of a {}.",
            K::NAME
        )));
    }
    let (at, uses) = split(handle);
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table.find(at, uses);
    match found.and_then(K::find) {
        Some(value) => Ok(value.clone()),
        None => Err(unknown::<K>(found, what)),
    }
}

/// As [`get`]; null is `None`.
pub(crate) fn get_or_null<K: Kind>(handle: *const K::Handle, what: &str) -> Result<Option<K>> {
    if handle.is_null() { Ok(None) } else { get(handle, what).map(Some) }
}

/// Removes the object of a handle.
pub(crate) fn take<K: Kind>(handle: *const K::Handle, what: &str) -> Result<K> {
    let held = get::<K>(handle, what)?;
    let (at, uses) = split(handle);
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have freed it meanwhile.
    let place = table.places.get_mut(at).filter(|place| place.uses == uses);
    let Some(object) = place.and_then(|place| place.object.take()) else {
        drop(table);
        return Err(unknown::<K>(None, what));
    };
    if uses < LAST_USE {
        table.free.push(at);
    }
    // What a destructor calls may need the table.
    drop(table);
    drop(object);
    Ok(held)
}

/// Frees a handle; null is nothing.
pub(crate) fn free<K: Kind>(handle: *const K::Handle) -> wgrad_status {
    call(|| match handle.is_null() {
        true => Ok(()),
        false => take::<K>(handle, K::NAME).map(drop),
    })
}

/// The number of open handles of all kinds. A program that has freed everything reads 0.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_open_handles() -> usize {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.places.iter().filter(|place| place.object.is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Arc<OpenBatch> {
        Arc::new(OpenBatch::default())
    }

    #[test]
    fn only_open_handles_of_the_right_kind_are_objects() -> Result<()> {
        let first = put(batch())?;
        assert!(get::<Arc<OpenBatch>>(first, "batch").is_ok());
        let text = |failure: Failure| failure.text;
        let other = get::<Tensor>(first.cast(), "x").map(drop).map_err(text);
        assert_eq!(other, Err("x is a batch; it must be a tensor.".into()));
        assert_eq!(free::<Arc<OpenBatch>>(first), wgrad_status::WGRAD_OK);
        for _ in 0..1000 {
            let again = put(batch())?;
            assert_ne!(again, first);
            assert_eq!(free::<Arc<OpenBatch>>(again), wgrad_status::WGRAD_OK);
            assert_eq!(free::<Arc<OpenBatch>>(again), wgrad_status::WGRAD_INVALID_HANDLE);
            assert_eq!(free::<Arc<OpenBatch>>(first), wgrad_status::WGRAD_INVALID_HANDLE);
        }
        for number in [1, 2, usize::MAX, usize::MAX >> 1, PLACES, PLACES - 1, 1 << 47] {
            let wild = number as *mut wgrad_batch;
            assert_eq!(free::<Arc<OpenBatch>>(wild), wgrad_status::WGRAD_INVALID_HANDLE);
        }
        assert_eq!(free::<Arc<OpenBatch>>(std::ptr::null()), wgrad_status::WGRAD_OK);
        Ok(())
    }

    #[test]
    fn an_object_lives_until_the_last_call_that_uses_it_ends() -> Result<()> {
        let object = batch();
        let handle = put(object.clone())?;
        let used = get::<Arc<OpenBatch>>(handle, "batch")?;
        assert_eq!(Arc::strong_count(&object), 3);
        assert_eq!(free::<Arc<OpenBatch>>(handle), wgrad_status::WGRAD_OK);
        assert_eq!(Arc::strong_count(&object), 2);
        drop(used);
        assert_eq!(Arc::strong_count(&object), 1);
        Ok(())
    }
}
