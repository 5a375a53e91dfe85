//! [`Mirrored`]: the values of a variable that was made in the scope of a strategy, one on each replica's device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Cell, Holder, Variable};
use crate::dtype::DType;
use crate::eager::{self, Replicas};
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// Trainable variables have equal values in all replicas, as an optimizer changes them alike. Each replica may change its own
/// value of another variable, such as a moving average (TensorFlow's `ON_READ`): where no replica runs, the variable is their
/// mean. With central storage, a trainable variable and an optimizer's slots have one value, on the first device, which the other
/// replicas copy when they read it.
pub(super) struct Mirrored {
    replicas: Arc<Replicas>,
    values: Vec<Mutex<Tensor>>,
    trainable: bool,
}

impl Holder for Mirrored {
    fn lock(&self) -> MutexGuard<'_, Tensor> {
        match self.is_central() {
            true => self.of(0),
            false => self.of(eager::index_in(&self.replicas).unwrap_or(0)),
        }
    }

    fn mirrored(&self) -> Option<&Mirrored> {
        Some(self)
    }
}

impl Mirrored {
    /// A new variable; `None` unless this thread is in the scope of a strategy with several replicas.
    pub(super) fn variable(id: u64, trainable: bool, value: &Tensor) -> Option<Variable> {
        let replicas = eager::replicas().filter(|replicas| replicas.in_sync() > 1)?;
        let central = replicas.is_central() && (trainable || eager::updates_replicas());
        let devices = &replicas.devices()[..if central { 1 } else { replicas.count() }];
        let values = copies(devices, value).into_iter().map(Mutex::new).collect();
        let mirrored = Mirrored { replicas: replicas.clone(), values, trainable };
        let cell = Cell::new(id, trainable, value.spec().clone(), mirrored);
        let variable = Variable(Arc::new(cell));
        replicas.made(&variable);
        Some(variable)
    }

    pub(super) fn changes_in_replicas(&self) -> bool {
        !self.trainable && !self.is_central()
    }

    fn is_central(&self) -> bool {
        self.values.len() < self.replicas.count()
    }

    fn of(&self, index: usize) -> MutexGuard<'_, Tensor> {
        self.values[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn devices(&self) -> &[Device] {
        self.replicas.devices()
    }

    /// The value for this thread: that of its replica, or where no replica runs, the one of all.
    pub(super) fn value(&self) -> Tensor {
        if let Some(index) = eager::index_in(&self.replicas) {
            if !self.is_central() {
                return self.of(index).clone();
            }
            let value = self.of(0).clone();
            return copies(&self.devices()[index..=index], &value).swap_remove(0);
        }
        let first = self.of(0).clone();
        match self.trainable || !matches!(first.dtype(), DType::F32 | DType::F16) {
            true => first,
            false => self.mean(&first).unwrap_or_else(|error| Tensor::failed(&first, error)),
        }
    }

    fn mean(&self, first: &Tensor) -> Result<Tensor> {
        let mut sum = first.clone();
        for index in 1..self.values.len() {
            let value = self.of(index).clone();
            sum = sum.add(value.to(first.device())?)?;
        }
        sum.divide(self.values.len() as f32)
    }

    /// Changes the value of this thread's replica, or where no replica runs, that of all.
    pub(super) fn assign(&self, value: &Tensor) -> Result<()> {
        let Some(index) = eager::index_in(&self.replicas) else {
            let copies = copies(&self.devices()[..self.values.len()], value);
            copies.into_iter().enumerate().for_each(|(at, copy)| *self.of(at) = copy);
            return Ok(());
        };
        if self.trainable && !eager::updates_replicas() {
            return Err(Error::Check(message!(
                "AssignVariableOp: a replica cannot assign a trainable variable, which has equal values in all replicas. \
                 Change it with an optimizer, or assign it outside of Strategy::run; each replica can have its own value of a \
                 variable made with Variable::untrainable."
            )));
        }
        *self.of(if self.is_central() { 0 } else { index }) = value.detached();
        Ok(())
    }
}

/// `value` on each device. What cannot be copied has failed.
fn copies(devices: &[Device], value: &Tensor) -> Vec<Tensor> {
    let copy = |device: &Device| match eager::lifted(|| value.to(device)) {
        Ok(copy) => copy.detached(),
        Err(error) => Tensor::failed_on(device, value, error),
    };
    devices.iter().map(copy).collect()
}
