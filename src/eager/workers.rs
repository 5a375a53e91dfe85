//! [`Workers`]: the processes that train one model together, as those parts of a strategy see them that do not know how they
//! exchange messages.

use crate::error::{Error, Result};

/// The processes of a training, of which this is one. All of them make the same calls in the same order; each call returns when all
/// have made it.
///
/// # Errors
/// Each call returns [`Error::Worker`] if a process ended, does not answer, or made another call; then all later calls fail, too.
pub(crate) trait Workers: Send + Sync {
    /// The number of this process, from 0. That of the chief is 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn count(&self) -> usize;

    /// Waits until all processes have made the call `what` with the same `signature`. True if `flag` is true in one of them.
    fn agree(&self, what: &str, signature: u64, flag: bool) -> Result<bool>;

    /// Begins to add up the values of all processes, which have agreed on this call. The sum has the same bits in all of them.
    fn start_sum(&self, values: Floats) -> Result<PendingSum>;

    /// The bytes of each process, in order, after all have agreed on this call.
    fn gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>>;

    /// The chief's bytes, after all processes have agreed on this call.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>>;

    /// Tells all processes that this one cannot make the calls on which it has agreed.
    fn fail(&self, error: &Error);

    /// The most bytes that one sum should have.
    fn bytes_per_pack(&self) -> usize;
}

/// A sum that is being computed; the call returns it.
pub(crate) type PendingSum = Box<dyn FnOnce() -> Result<Floats> + Send>;

/// Values in memory of any kind, which is free again when this is dropped.
pub(crate) type Floats = Box<dyn AsRef<[f32]> + Send>;
