//! [`Budget`]: how many nodes of a graph a call may run.

use std::cell::Cell;

use crate::eager;
use crate::error::{Error, Result, message};

/// A call that runs more nodes is ended: its loop does not end.
const MOST: u64 = 20_000_000;
/// A trace with more nodes takes longer to plan than it saves.
const MOST_TRACED: u64 = 100_000;

/// The nodes that a call has run.
#[derive(Debug, Default)]
pub(super) struct Budget(Cell<u64>);

impl Budget {
    /// Counts nodes that run now.
    ///
    /// # Errors
    /// [`Error::Data`] if the call runs for ever; [`Error::Trace`] if a trace becomes too long.
    pub(super) fn spend(&self, nodes: u64) -> Result<()> {
        let count = self.0.get().saturating_add(nodes);
        self.0.set(count);
        if count > MOST {
            return Err(Error::Data(message!(
                "the call has run {count} nodes of the graph; a loop in it does not end."
            )));
        }
        if count > MOST_TRACED && eager::in_trace() {
            return Err(Error::Trace(message!(
                "the call has {count} nodes, with those of its unrolled loops, which is too many for a trace."
            )));
        }
        Ok(())
    }
}
