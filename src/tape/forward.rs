//! [`ForwardAccumulator`]: forward mode.
//!
//! It has no separate derivative rules. A gradient rule is linear in the gradient of the result, so the gradient of the
//! rule's output, with the tangents of the inputs as its upstream gradients, is the tangent of the result: the rule is
//! recorded on a tape and walked back. The rule's own output is not used, so the device never computes it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::options::UnconnectedGradients;
use super::recorder::{ById, Recorder};
use super::sources::{GradientSource, OneSource, SourceKind, Sources, Targets, check_float};
use super::walk;
use crate::eager::{self, Observer};
use crate::error::{Error, Result, message};
use crate::graph::Value;
use crate::ops::{Backward, Keep, KeptInput, Operation, unbroadcast};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Computes Jacobian-vector products in forward mode: the directional derivatives of everything that depends on the primals,
/// along their tangents.
///
/// A tape needs one pass for each result; this needs one pass for each direction. It records from its creation until
/// [`stop`](ForwardAccumulator::stop), or until it is dropped. Accumulators can be nested, and can be inside and outside of
/// tapes: a tape outside an accumulator computes gradients of tangents; an accumulator outside a tape computes Hessian-vector
/// products.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::autodiff::ForwardAccumulator;
/// let x = tf::constant([[2.0, 3.0], [1.0, 4.0]])?;
/// let v = tf::constant([[1.0, 0.0], [0.0, 0.0]])?;
/// let accumulator = ForwardAccumulator::new(&x, &v)?;
/// let y = x.square()?.reduce_sum(1)?;
/// assert_eq!(accumulator.jvp(&y)?.expect("y depends on x").to_vec::<f32>()?, [4.0, 0.0]);
/// # Ok(())
/// # }
/// ```
pub struct ForwardAccumulator {
    state: Rc<State>,
    observer: Rc<dyn Observer>,
}

impl std::fmt::Debug for ForwardAccumulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForwardAccumulator").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    /// The tangents of tensors, by their ids, with the values that they belong to.
    tangents: RefCell<ById<Tangent>>,
    variables: RefCell<ById<Tensor>>,
    /// How many tangents there were after the last search for dropped tensors.
    kept: Cell<usize>,
}

struct Tangent {
    /// Or the error of its computation, which is returned when it, or the tangent of a value that depends on it, is
    /// requested.
    tangent: Result<Tensor>,
    of: Weak<Value>,
}

/// Tangents of tensors that the program has dropped are searched for when there are twice as many tangents as after the
/// last search, or twice as many as this.
const FEW: usize = 256;

impl ForwardAccumulator {
    /// Starts to compute tangents on this thread: those of `primals` (tensors or variables) are `tangents`.
    ///
    /// # Errors
    /// [`Error::Gradient`] if a primal is not float, or the number, shapes or dtypes of the tangents differ from those of the
    /// primals.
    pub fn new(primals: impl Sources, tangents: impl Targets) -> Result<Self> {
        let (primals, tangents) = (primals.list(), tangents.list());
        let fits = primals.len() == tangents.len()
            && primals.iter().zip(&tangents).all(|(p, t)| p.spec == *t.spec());
        if !fits {
            let shapes = |shapes: Vec<String>| shapes.join(", ");
            return Err(Error::Gradient(message!(
                "ForwardAccumulator: the primals are [{}] and the tangents [{}]; give a tangent of the same shape and \
                 dtype for each primal.",
                shapes(
                    primals.iter().map(|p| format!("{} {}", p.spec.dtype, p.spec.shape)).collect()
                ),
                shapes(tangents.iter().map(|t| format!("{} {:?}", t.dtype(), t.shape())).collect())
            )));
        }
        let state = State::default();
        for (primal, tangent) in primals.iter().zip(tangents) {
            check_float("ForwardAccumulator", "a primal", &primal.spec)?;
            state.watch(primal, tangent)?;
        }
        let state = Rc::new(state);
        let observer: Rc<dyn Observer> = state.clone();
        eager::observe(observer.clone());
        Ok(ForwardAccumulator { state, observer })
    }

    /// Runs `f` with an accumulator that stops when `f` ends. Returns the accumulator and the result of `f`.
    ///
    /// # Errors
    /// Same as [`ForwardAccumulator::new`], and the errors of `f`.
    pub fn record<R>(
        primals: impl Sources,
        tangents: impl Targets,
        f: impl FnOnce(&ForwardAccumulator) -> Result<R>,
    ) -> Result<(ForwardAccumulator, R)> {
        let accumulator = ForwardAccumulator::new(primals, tangents)?;
        let result = f(&accumulator)?;
        accumulator.stop();
        Ok((accumulator, result))
    }

    /// The Jacobian-vector product: the derivative of `x` with respect to the primals, along their tangents. `None` if `x` does
    /// not depend on a primal. `x` may be a variable among the primals.
    ///
    /// # Errors
    /// [`Error::Gradient`] if an op that `x` depends on has no forward-mode rule, and any other error while computing the
    /// tangent.
    pub fn jvp(&self, x: impl OneSource) -> Result<Option<Tensor>> {
        self.jvp_with(x, UnconnectedGradients::None)
    }

    /// Like [`ForwardAccumulator::jvp`], optionally with zeros if there is no tangent.
    ///
    /// # Errors
    /// Same as [`ForwardAccumulator::jvp`].
    pub fn jvp_with(
        &self,
        x: impl OneSource,
        unconnected_gradients: UnconnectedGradients,
    ) -> Result<Option<Tensor>> {
        let x = x.source();
        let known = match x.kind {
            SourceKind::Tensor(id) => self.state.tangent(id)?,
            SourceKind::Variable(id) => self.state.variables.borrow().get(&id).cloned(),
        };
        unconnected_gradients.instead(known, [&[], &x.spec.shape], &x)
    }

    /// Stops computing tangents; those already computed remain available.
    pub fn stop(&self) {
        eager::ignore(&self.observer);
    }
}

impl Drop for ForwardAccumulator {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn watch(&self, primal: &GradientSource, tangent: Tensor) -> Result<()> {
        let (id, known) = match primal.kind {
            SourceKind::Variable(id) => (id, self.variables.borrow().get(&id).cloned()),
            SourceKind::Tensor(id) => (id, self.tangent(id)?),
        };
        // A primal that is named twice moves along both tangents.
        let tangent = match known {
            Some(known) => known.add(&tangent)?,
            None => tangent,
        };
        match primal.kind {
            SourceKind::Variable(_) => drop(self.variables.borrow_mut().insert(id, tangent)),
            // The program holds the primal, so the accumulator does not.
            SourceKind::Tensor(_) => {
                let of = Arc::downgrade(tangent.value());
                self.insert(id, Ok(tangent), of);
            }
        }
        Ok(())
    }

    fn tangent(&self, id: u64) -> Result<Option<Tensor>> {
        self.tangents.borrow().get(&id).map(|known| known.tangent.clone()).transpose()
    }

    fn insert(&self, id: u64, tangent: Result<Tensor>, of: Weak<Value>) {
        let mut tangents = self.tangents.borrow_mut();
        if tangents.len() >= 2 * self.kept.get().max(FEW) {
            tangents.retain(|_, known| known.of.strong_count() > 0);
            self.kept.set(tangents.len());
        }
        tangents.insert(id, Tangent { tangent, of });
    }

    /// The tangent of `output`, if it has one.
    fn push(
        &self,
        op: &Arc<dyn Operation>,
        inputs: &[&Tensor],
        output: &Tensor,
    ) -> Result<Option<Tensor>> {
        if matches!(op.keep(), Keep::NoGradient(_)) {
            return Ok(None);
        }
        let tangents: SmallVec<[Option<Tensor>; 3]> =
            inputs.iter().map(|x| self.tangent(x.id())).collect::<Result<_>>()?;
        if tangents.iter().all(Option::is_none) {
            return Ok(None);
        }
        let kept: SmallVec<[KeptInput; 3]> = inputs
            .iter()
            .map(|x| KeptInput { id: x.id(), spec: x.spec().clone(), kept: Some((*x).clone()) })
            .collect();
        // The rule is linear in dy, so any value does.
        let dy = output.ones_like()?;
        let tape = Rc::new(Recorder::new(false));
        tape.watch(dy.id());
        let (targets, upstream) = eager::observed_by(tape.clone(), || {
            let needs = |i: usize| tangents[i].is_some();
            let back = Backward { inputs: &kept, output: Some(output), dy: &dy, needs: &needs };
            let mut targets = Vec::new();
            let mut upstream = Vec::new();
            for (i, grad) in op.grad(&back)?.into_iter().enumerate() {
                if let (Some(tangent), Some(grad)) = (&tangents[i], grad) {
                    targets.push(unbroadcast(&grad, &kept[i].spec.shape)?);
                    upstream.push(tangent);
                }
            }
            Ok::<_, Error>((targets, upstream))
        })?;
        let dy = [dy.source()];
        let tangent = walk::backward(&tape, true, &targets, Some(&upstream), &dy)?.pop().flatten();
        let stops = tape.stops();
        match tangent {
            // The rule cannot be transposed.
            None if !stops.is_empty() => Err(Error::Gradient(message!(
                "ForwardAccumulator: {} has no forward mode, as its gradient has no second order: {}.",
                op.name(),
                stops.join("; ")
            ))),
            // The rule's gradient does not depend on dy: zeros.
            None if !targets.is_empty() => output.zeros_like().map(Some),
            tangent => Ok(tangent),
        }
    }
}

impl Observer for State {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        // Outer observers may differentiate the tangents.
        let tangent = eager::outside(self, || self.push(op, inputs, output));
        if let Some(tangent) = tangent.transpose() {
            self.insert(output.id(), tangent, Arc::downgrade(output.value()));
        }
    }

    fn read(&self, variable: &Variable, value: &Tensor) {
        let known = self.variables.borrow().get(&variable.id()).cloned();
        if let Some(tangent) = known {
            self.insert(value.id(), Ok(tangent), Arc::downgrade(value.value()));
        }
    }
}
