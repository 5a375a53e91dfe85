//! [`Phase`]: what a pass through data is for.

/// What a pass does with a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Train,
    /// `evaluate`.
    Test,
    /// What `fit` does with its validation data.
    Validate,
}
