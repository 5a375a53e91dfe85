//! How many ops a stream may hold before the device flushes it unasked.

/// Ops that wait before a flush is made where nothing is known to repeat. Long enough for a training step of a deep
/// model, short enough to keep a GPU busy in a long loop.
pub(super) const STREAM_LIMIT: usize = 4096;

/// Ops that may wait in a loop whose turns are known to be longer than [`STREAM_LIMIT`].
pub(super) const LONGEST: usize = 2 * STREAM_LIMIT;
