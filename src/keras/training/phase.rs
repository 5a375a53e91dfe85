//! [`Phase`]: the purpose of a pass through data.

/// The purpose of a pass through data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Train,
    /// `evaluate`.
    Test,
    /// A validation in `fit`.
    Validate,
}
