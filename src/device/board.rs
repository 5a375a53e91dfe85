//! A buffer with fixed slots ("places") for small values.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Board {
    pub(super) raw: wgpu::Buffer,
    /// Returns the buffer when dropped.
    _owner: Box<dyn Any + Send + Sync>,
    free: Mutex<Vec<u32>>,
}

/// Bytes of a place: every adapter accepts bindings that begin at multiples of 256.
pub(super) const PLACE: u64 = 256;
pub(super) const PLACES: u32 = 256;

impl Board {
    pub(super) fn new(raw: wgpu::Buffer, owner: Box<dyn Any + Send + Sync>) -> Self {
        Board { raw, _owner: owner, free: Mutex::new((0..PLACES).rev().collect()) }
    }

    pub(super) fn offset(place: u32) -> u64 {
        u64::from(place) * PLACE
    }

    pub(super) fn take(&self) -> Option<u32> {
        self.lock().pop()
    }

    pub(super) fn give_back(&self, place: u32) {
        self.lock().push(place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().len() == PLACES as usize
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
