//! [`Variable`]: a cell that holds a tensor. `assign` swaps the tensor; holders of the old one keep it.

mod aggregation;
#[cfg(not(target_family = "wasm"))]
mod mirrored;
#[cfg(target_family = "wasm")]
#[path = "variable/not_mirrored.rs"]
mod mirrored;

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::device::fresh_id;
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::Spec;
use crate::runtime::{Device, Mark};
use crate::tensor::{Operand, Tensor};
pub use aggregation::{VariableAggregation, VariableOptions, VariableSynchronization};
use mirrored::Mirrored;

/// A value that training updates. A clone is another handle to the same variable.
///
/// Every open tape watches trainable variables automatically when the program reads them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let v = tf::Variable::new(&tf::constant([1.0, 2.0])?);
/// v.assign_add(&tf::constant([0.5, 0.5])?)?;
/// assert_eq!(v.read().to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Variable(Arc<Cell>);

/// A handle that does not keep its variable alive.
#[cfg(not(target_family = "wasm"))]
pub(crate) struct WeakVariable(std::sync::Weak<Cell>);

#[cfg(not(target_family = "wasm"))]
impl WeakVariable {
    pub(crate) fn upgrade(&self) -> Option<Variable> {
        self.0.upgrade().map(Variable)
    }
}

/// The cell holds its value behind a trait. The compiler then proves a user's struct `Send` and `Sync` without
/// descending through all types below a tensor down to the driver's, where deep structs would reach its recursion
/// limit.
trait Holder: Send + Sync {
    fn lock(&self) -> MutexGuard<'_, Tensor>;

    /// The values of a variable that every replica of a strategy has.
    fn mirrored(&self) -> Option<&Mirrored> {
        None
    }
}

impl Holder for Mutex<Tensor> {
    fn lock(&self) -> MutexGuard<'_, Tensor> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A constraint: maps a new value to the nearest one that the variable may have.
pub type Rule = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

pub(crate) type Constraint = Arc<Rule>;

struct Cell<T: ?Sized = dyn Holder> {
    id: u64,
    /// Whether the program made the variable for training.
    trainable: bool,
    /// True while training must not change the variable.
    frozen: AtomicBool,
    constraint: OnceLock<Constraint>,
    spec: Spec,
    tensor: T,
}

impl<T> Cell<T> {
    fn new(id: u64, trainable: bool, spec: Spec, tensor: T) -> Self {
        let (frozen, constraint) = (AtomicBool::new(false), OnceLock::new());
        Cell { id, trainable, frozen, constraint, spec, tensor }
    }
}

impl Variable {
    /// Creates a trainable variable with the initial value `value`.
    pub fn new(value: impl Borrow<Tensor>) -> Self {
        Variable::with(fresh_id(), true, value.borrow())
    }

    /// Creates a variable that a tape watches only on request: for example a counter or a running mean.
    pub fn untrainable(value: impl Borrow<Tensor>) -> Self {
        Variable::with(fresh_id(), false, value.borrow())
    }

    /// Creates a variable with the initial value `value`. The options tell how the replicas of a strategy
    /// ([`distribute`](crate::distribute)) share it, if it is made in the strategy's scope.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::{VariableAggregation, VariableOptions, distribute::MirroredStrategy};
    /// let strategy = MirroredStrategy::new()?;
    /// let options = VariableOptions::new().trainable(false).aggregation(VariableAggregation::Sum);
    /// let seen = strategy.scope(|| tf::Variable::with_options(tf::constant(0.0)?, options))?;
    /// // Each replica adds its 32 examples, and has the sum of all.
    /// strategy.run(|()| seen.assign_add(32.0), ())?;
    /// assert_eq!(seen.read().item::<f32>()?, 32.0 * strategy.num_replicas_in_sync() as f32);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Check`] for `OnRead` without an aggregation; [`Error::DType`] for a mean or a sum that the dtype does not have.
    pub fn with_options(value: impl Borrow<Tensor>, options: VariableOptions) -> Result<Self> {
        let value = value.borrow();
        Ok(Variable::made(fresh_id(), options.check(value.dtype())?, value))
    }

    /// Creates a trainable variable with the initial value `value` and a constraint. After each update an optimizer calls
    /// `constraint` with the new value, and the variable is set to the result. The constraint is not applied to the initial
    /// value or to assigned values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Sgd};
    /// let w = tf::Variable::with_constraint(tf::constant([1.0, 1.0])?, |w| w.relu());
    /// Sgd::new(1.0).apply_gradients(&[Some(tf::constant([0.5, 3.0])?)], &w)?;
    /// assert_eq!(w.read().to_vec::<f32>()?, [0.5, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_constraint(
        value: impl Borrow<Tensor>,
        constraint: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        let variable = Variable::new(value);
        variable.set_constraint(Arc::new(constraint));
        variable
    }

    /// Makes a variable with a new identity.
    pub(crate) fn with(id: u64, trainable: bool, value: &Tensor) -> Self {
        Variable::made(id, VariableOptions::new().trainable(trainable), value)
    }

    fn made(id: u64, options: VariableOptions, value: &Tensor) -> Self {
        eager::variable_made();
        let spec = value.spec().clone();
        if let Some(variable) = Mirrored::variable(id, options, value) {
            return variable;
        }
        Variable(Arc::new(Cell::new(id, options.trainable, spec, Mutex::new(value.detached()))))
    }

    /// The current value. Open tapes record the read, and treat each read as a separate tensor: a value that was read while no
    /// tape was open is a constant.
    pub fn read(&self) -> Tensor {
        match eager::value_in_trace(self) {
            Some(value) => self.observed(&value),
            None => match self.0.tensor.mirrored() {
                Some(mirrored) => self.observed(&mirrored.value()),
                None => self.observed(&self.lock()),
            },
        }
    }

    /// The value that an update starts from: tapes do not follow it.
    pub(crate) fn read_stopped(&self) -> Tensor {
        self.read().stop_gradient()
    }

    /// Gives `value` a new identity and reports the read to open tapes.
    fn observed(&self, value: &Tensor) -> Tensor {
        let tensor = value.detached();
        eager::read(self, &tensor);
        tensor
    }

    /// Replaces the value with `value`: a tensor of the variable's shape, or a number if the variable is a scalar. The variable
    /// moves to `value`'s device; after a device is lost, assign a value on the new device.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if shape or dtype differ from the variable's.
    pub fn assign(&self, value: impl Into<Operand>) -> Result<()> {
        let value = match value.into() {
            Operand::Tensor(value) => value,
            number => number.into_tensor_like("AssignVariableOp", &self.peek())?,
        };
        self.replace(&value)?;
        if !eager::in_trace() {
            self.mark(&value);
        }
        Ok(())
    }

    /// Adds `delta`, a tensor of the same shape or a number.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if `delta` does not fit.
    pub fn assign_add(&self, delta: impl Into<Operand>) -> Result<()> {
        self.update("AssignAddVariableOp", delta.into(), Tensor::add)
    }

    /// Subtracts `delta`, a tensor of the same shape or a number.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if `delta` does not fit.
    pub fn assign_sub(&self, delta: impl Into<Operand>) -> Result<()> {
        self.update("AssignSubVariableOp", delta.into(), Tensor::subtract)
    }

    /// True if open tapes watch the variable automatically: it was created as trainable and is not frozen (see
    /// [`Trackable::set_trainable`](crate::Trackable::set_trainable)).
    pub fn trainable(&self) -> bool {
        self.0.trainable && !self.frozen()
    }

    pub(crate) fn frozen(&self) -> bool {
        self.0.frozen.load(Ordering::Relaxed)
    }

    /// The function that an optimizer applies to the variable's new value, if there is one.
    pub fn constraint(&self) -> Option<&Rule> {
        self.0.constraint.get().map(|constraint| &**constraint)
    }

    /// Sets the constraint, unless there is one.
    pub(crate) fn set_constraint(&self, constraint: Constraint) {
        let _ = self.0.constraint.set(constraint);
    }

    pub(crate) fn freeze(&self, frozen: bool) {
        self.0.frozen.store(frozen, Ordering::Relaxed);
    }

    /// The shape, which never changes.
    pub fn shape(&self) -> &[usize] {
        &self.0.spec.shape
    }

    /// The dtype, which never changes.
    pub fn dtype(&self) -> DType {
        self.0.spec.dtype
    }

    /// Whether both are handles to the same variable.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let v = tf::Variable::new(tf::constant(1.0)?);
    /// assert!(v.ptr_eq(&v.clone()));
    /// assert!(!v.ptr_eq(&tf::Variable::new(v.read())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ptr_eq(&self, other: &Variable) -> bool {
        self.id() == other.id()
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.0.spec
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Replaces the value by `f` of it; no other thread can update it in between.
    fn update(
        &self,
        op: &'static str,
        delta: Operand,
        f: fn(&Tensor, Tensor) -> Result<Tensor>,
    ) -> Result<()> {
        let assigned = eager::value_in_trace(self);
        if let Some(mirrored) = self.0.tensor.mirrored() {
            mirrored.check_update(op)?;
            if mirrored.is_joint_now() {
                let delta = delta.into_tensor_like(op, &self.peek())?;
                self.check(op, &delta)?;
                mirrored.assign_together(self.id(), op, &delta, Some(f))?;
                let new = self.peek();
                eager::assigned(self, &new);
                self.mark(&new);
                return Ok(());
            }
            if assigned.is_none() {
                let value = self.read_stopped();
                let new = f(&value, delta.into_tensor_like(op, &value)?)?;
                return self.replace(&new).map(|()| self.mark(&new));
            }
        }
        let mut tensor = self.lock();
        let value = self.observed(assigned.as_ref().unwrap_or(&tensor)).stop_gradient();
        let new = f(&value, delta.into_tensor_like(op, &value)?)?;
        self.check(op, &new)?;
        if eager::assign_in_trace(self, &new) {
            eager::assigned(self, &new);
            return Ok(());
        }
        *tensor = new.detached();
        // The mark may flush, and no reader of the variable should wait for that.
        drop(tensor);
        eager::assigned(self, &new);
        self.mark(&new);
        Ok(())
    }

    /// As [`Variable::assign`], for a caller that flushes.
    pub(crate) fn replace(&self, value: &Tensor) -> Result<()> {
        self.check("AssignVariableOp", value)?;
        if let Some(mirrored) = self.0.tensor.mirrored().filter(|mirrored| mirrored.is_joint_now())
        {
            mirrored.assign_together(self.id(), "AssignVariableOp", value, None)?;
            eager::assigned(self, &self.peek());
            return Ok(());
        }
        if eager::assign_in_trace(self, value) {
            eager::assigned(self, value);
            return Ok(());
        }
        match self.0.tensor.mirrored() {
            Some(mirrored) => mirrored.assign(value)?,
            None => *self.lock() = value.detached(),
        }
        eager::assigned(self, value);
        Ok(())
    }

    /// Informs the device that this variable has a new value: the device finds loops by these marks.
    fn mark(&self, value: &Tensor) {
        value.device().mark(Mark::Replaced(self.0.id));
    }

    /// The value, read without notifying tapes.
    pub(crate) fn peek(&self) -> Tensor {
        match self.0.tensor.mirrored() {
            Some(mirrored) => mirrored.value(),
            None => self.lock().clone(),
        }
    }

    /// The device of the variable's value; the first one, if each replica of a strategy has a value.
    pub(crate) fn device(&self) -> Device {
        self.lock().device().clone()
    }

    /// Whether each replica of a strategy has a value of the variable.
    pub(crate) fn is_mirrored(&self) -> bool {
        self.0.tensor.mirrored().is_some()
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn downgrade(&self) -> WeakVariable {
        WeakVariable(Arc::downgrade(&self.0))
    }

    /// Whether each replica of a strategy may have a value of its own, such as a moving average.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn changes_in_replicas(&self) -> bool {
        self.0.tensor.mirrored().is_some_and(Mirrored::changes_in_replicas)
    }

    /// Whether the variable has a value on each of these devices, in the order of a strategy's replicas, and on no other.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn is_on(&self, devices: &[Device]) -> bool {
        match self.0.tensor.mirrored() {
            Some(mirrored) => mirrored.devices() == devices,
            None => matches!(devices, [only] if self.lock().device() == only),
        }
    }

    /// The cell, which no other thread reads or assigns while the caller holds it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tensor> {
        self.0.tensor.lock()
    }

    fn check(&self, op: &str, value: &Tensor) -> Result<()> {
        let spec = &self.0.spec;
        if value.spec().shape != spec.shape {
            return Err(Error::Shape(message!(
                "{op}: the variable is {} and the value is {:?}; a variable keeps its shape. Make a new variable, or \
                 reshape the value.",
                spec.shape,
                value.shape()
            )));
        }
        if value.dtype() != spec.dtype {
            return Err(Error::DType(message!(
                "{op}: the variable is {} and the value is {}; a variable keeps its dtype. Cast the value.",
                spec.dtype,
                value.dtype()
            )));
        }
        Ok(())
    }
}

impl From<&Variable> for Operand {
    fn from(variable: &Variable) -> Self {
        Operand::Tensor(variable.read())
    }
}

macro_rules! operators {
    ($($trait:ident :: $method:ident)*) => {$(
        impl<R: Into<Operand>> $trait<R> for &Variable {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                $trait::$method(self.read(), other)
            }
        }

        operators!(@number $trait::$method; f32 i32);
    )*};
    (@number $trait:ident :: $method:ident; $($t:ty)*) => {$(
        impl $trait<&Variable> for $t {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: &Variable) -> Tensor {
                $trait::$method(self, other.read())
            }
        }
    )*};
}
// For `Add::add` this writes `&Variable + R` for every `R` that converts to an `Operand`, `f32 + &Variable` and `i32 +
// &Variable`.
operators! { Add::add Sub::sub Mul::mul Div::div Rem::rem }

impl Neg for &Variable {
    type Output = Tensor;

    /// Panics where `negative` returns an error.
    #[track_caller]
    fn neg(self) -> Tensor {
        -self.read()
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({}, {})", self.0.spec.shape, self.0.spec.dtype)
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = &self.0.spec;
        write!(f, "<Variable shape={} dtype={}, ", spec.shape, spec.dtype)?;
        write!(f, "value={}>", self.peek())
    }
}
