//! How many ops a stream may hold before the device flushes it automatically.

/// The device flushes automatically when this many ops wait and no repetition is known. It is long enough for a
/// training step of a deep model, and short enough to keep a GPU busy in a long loop.
pub(super) const STREAM_LIMIT: usize = 4096;

/// The most ops that may wait in a loop whose iterations are known to be longer than [`STREAM_LIMIT`].
pub(super) const LONGEST: usize = 2 * STREAM_LIMIT;
