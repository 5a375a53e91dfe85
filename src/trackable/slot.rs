//! [`Slot`]: a variable to be, which has an identity before it has a size.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::NamedArray;
use crate::device::fresh_id;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A variable to be. Cloning it gives another handle to the same one.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Cell>);

struct Cell {
    /// The variable's, too.
    id: u64,
    trainable: bool,
    variable: OnceLock<Variable>,
    waiting: Mutex<Waiting>,
}

/// What the variable is to have once it is made.
#[derive(Default)]
struct Waiting {
    frozen: bool,
    value: Option<NamedArray<'static>>,
}

impl Slot {
    pub(crate) fn new(trainable: bool) -> Self {
        let (variable, waiting) = (OnceLock::new(), Mutex::default());
        Slot(Arc::new(Cell { id: fresh_id(), trainable, variable, waiting }))
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// The variable, once it is made.
    pub(crate) fn variable(&self) -> Option<&Variable> {
        self.0.variable.get()
    }

    /// The variable; made now, if it is not there, by `make` from the value that was left for it. Two threads that come
    /// here at once get the same one.
    pub(crate) fn get_or_make(
        &self,
        make: impl FnOnce(Option<&NamedArray<'static>>) -> Result<Tensor>,
    ) -> Result<&Variable> {
        if let Some(variable) = self.variable() {
            return Ok(variable);
        }
        let mut waiting = self.waiting();
        if let Some(variable) = self.variable() {
            return Ok(variable);
        }
        let value = make(waiting.value.as_ref())?;
        waiting.value = None;
        let made = Variable::with(self.0.id, self.0.trainable, &value);
        made.freeze(waiting.frozen);
        Ok(self.0.variable.get_or_init(|| made))
    }

    /// Leaves a value for a variable that is still to be made. False if it is there.
    pub(crate) fn leave(&self, value: NamedArray<'static>) -> bool {
        let mut waiting = self.waiting();
        let left = self.variable().is_none();
        if left {
            waiting.value = Some(value);
        }
        left
    }

    /// The value that was left, if it still waits.
    pub(crate) fn left(&self) -> Option<NamedArray<'static>> {
        self.waiting().value.clone()
    }

    pub(crate) fn freeze(&self, frozen: bool) {
        let mut waiting = self.waiting();
        waiting.frozen = frozen;
        if let Some(variable) = self.variable() {
            variable.freeze(frozen);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.variable() {
            Some(variable) => variable.fmt(f),
            None => f.write_str("a variable to be"),
        }
    }
}
