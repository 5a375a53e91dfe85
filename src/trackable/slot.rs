//! [`Slot`]: a placeholder for a variable; it has an identity before the variable has a size.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::NamedArray;
use crate::device::fresh_id;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A placeholder for a variable. A clone is another handle to the same placeholder.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Cell>);

struct Cell {
    /// The variable will have the same identity.
    id: u64,
    trainable: bool,
    variable: OnceLock<Variable>,
    waiting: Mutex<Waiting>,
}

/// The value and settings that the variable will get when it is created.
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

    /// The variable, if it exists.
    pub(crate) fn variable(&self) -> Option<&Variable> {
        self.0.variable.get()
    }

    /// The variable. If it does not exist yet, `make` creates it from the value that a checkpoint stored, if any. Two
    /// threads that call this at the same time get the same variable.
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

    /// Stores a value for a variable that does not exist yet. Returns false if it exists.
    pub(crate) fn leave(&self, value: NamedArray<'static>) -> bool {
        let mut waiting = self.waiting();
        let left = self.variable().is_none();
        if left {
            waiting.value = Some(value);
        }
        left
    }

    /// The stored value for the variable, if the variable does not exist yet.
    pub(crate) fn left(&self) -> Option<NamedArray<'static>> {
        self.waiting().value.clone()
    }

    /// Whether training changes the variable.
    pub(crate) fn trainable(&self) -> bool {
        self.0.trainable && !self.frozen()
    }

    pub(crate) fn frozen(&self) -> bool {
        // A walk that visits the variable freezes it and not the slot.
        self.variable().map_or_else(|| self.waiting().frozen, Variable::frozen)
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
