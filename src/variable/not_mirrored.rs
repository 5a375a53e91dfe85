//! In a page there is one device, so no variable has several values.

use std::sync::MutexGuard;

use super::{Holder, Variable, VariableOptions};
use crate::error::Result;
use crate::tensor::Tensor;

pub(super) enum Mirrored {}

impl Holder for Mirrored {
    fn lock(&self) -> MutexGuard<'_, Tensor> {
        match *self {}
    }
}

impl Mirrored {
    pub(super) fn variable(_: u64, _: VariableOptions, _: &Tensor) -> Option<Variable> {
        None
    }

    pub(super) fn value(&self) -> Tensor {
        match *self {}
    }

    pub(super) fn check_update(&self, _: &'static str) -> Result<()> {
        match *self {}
    }

    pub(super) fn is_joint_now(&self) -> bool {
        match *self {}
    }

    pub(super) fn assign_together(
        &self,
        _: u64,
        _: &'static str,
        _: &Tensor,
        _: Option<fn(&Tensor, Tensor) -> Result<Tensor>>,
    ) -> Result<()> {
        match *self {}
    }

    pub(super) fn assign(&self, _: &Tensor) -> Result<()> {
        match *self {}
    }
}
