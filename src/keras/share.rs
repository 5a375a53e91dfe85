//! The share of a batch that a replica of a strategy computes.

use std::cell::Cell;

thread_local! {
    static SHARE: Cell<Option<f32>> = const { Cell::new(None) };
}

/// The share of the batch that this thread's replica computes, in a step of `fit` or `evaluate`. A replica with a share of 0 repeats
/// an example of another one, because all replicas take part in a step.
pub(super) fn share() -> Option<f32> {
    SHARE.get()
}

/// Runs `f`, which computes this share of a batch.
pub(super) fn with_share<R>(share: f32, f: impl FnOnce() -> R) -> R {
    struct End(Option<f32>);
    impl Drop for End {
        fn drop(&mut self) {
            SHARE.set(self.0);
        }
    }
    let _end = End(SHARE.replace(Some(share)));
    f()
}
