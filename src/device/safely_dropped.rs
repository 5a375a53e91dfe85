//! [`SafelyDropped`]: wgpu objects that may be dropped in any thread, even in one that is ending.

use std::ops::{Deref, DerefMut};

use super::platform::{MayChangeThread, drop_where_whole};

/// A value that is dropped in another thread if this one has lost what wgpu needs for it.
pub(crate) struct SafelyDropped<T: MayChangeThread>(Option<T>);

impl<T: MayChangeThread> SafelyDropped<T> {
    pub(crate) fn new(value: T) -> Self {
        SafelyDropped(Some(value))
    }
}

impl<T: MayChangeThread> Deref for SafelyDropped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: MayChangeThread> DerefMut for SafelyDropped<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl<T: MayChangeThread> Drop for SafelyDropped<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            drop_where_whole(value);
        }
    }
}
