//! Gradient tapes, and functions with gradients of their own.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use wgrad::{
    GradientOptions, GradientTape, PersistentTape, TensorOrVariable, UnconnectedGradients,
};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep};
use crate::interpreter::attached;
use crate::tensor::Tensor;
use crate::variable::Variable;

enum Open {
    Once(GradientTape),
    Persistent(PersistentTape),
    Used,
}

/// A tape of one thread: `tf.GradientTape` without the forms of its arguments.
#[pyclass(unsendable, module = "wgrad")]
pub struct Tape(RefCell<Open>);

/// A tensor or a variable of which a gradient is computed.
fn source(value: &Bound<'_, PyAny>) -> PyResult<TensorOrVariable> {
    if let Ok(variable) = value.cast::<Variable>() {
        return Ok(TensorOrVariable::Variable(variable.get().0.clone()));
    }
    match value.cast::<Tensor>() {
        Ok(tensor) => Ok(TensorOrVariable::Tensor(tensor.get().0.clone())),
        Err(_) => Err(invalid(format!(
            "GradientTape: {} is neither a tensor nor a variable. The tape knows only what it has seen: make a tensor with \
             tf.constant, watch it, and pass the same object.",
            value.get_type()
        ))),
    }
}

#[pymethods]
impl Tape {
    #[new]
    #[pyo3(signature = (persistent=false, watch_accessed_variables=true))]
    fn new(persistent: bool, watch_accessed_variables: bool) -> PyResult<Self> {
        Ok(Tape(RefCell::new(match (persistent, watch_accessed_variables) {
            (true, true) => Open::Persistent(GradientTape::persistent()),
            (false, true) => Open::Once(GradientTape::new()),
            (false, false) => Open::Once(GradientTape::unwatched()),
            (true, false) => {
                return Err(invalid(
                    "GradientTape: persistent=True with watch_accessed_variables=False is not supported; use a tape for each \
                     gradient.",
                ));
            }
        })))
    }

    fn stop(&self) {
        match &*self.0.borrow() {
            Open::Once(tape) => tape.stop(),
            Open::Persistent(tape) => tape.stop(),
            Open::Used => {}
        }
    }

    fn pause(&self) {
        match &*self.0.borrow() {
            Open::Once(tape) => tape.pause(),
            Open::Persistent(tape) => tape.pause(),
            Open::Used => {}
        }
    }

    fn resume(&self) {
        match &*self.0.borrow() {
            Open::Once(tape) => tape.resume(),
            Open::Persistent(tape) => tape.resume(),
            Open::Used => {}
        }
    }

    fn watch(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = source(value)?;
        match &*self.0.borrow() {
            Open::Once(tape) => tape.watch(&value).raised(),
            Open::Persistent(tape) => tape.watch(&value).raised(),
            Open::Used => Err(used("watch")),
        }
    }

    fn reset(&self) -> PyResult<()> {
        match &*self.0.borrow() {
            Open::Once(tape) => tape.reset().raised(),
            Open::Persistent(tape) => tape.reset().raised(),
            Open::Used => Err(used("reset")),
        }
    }

    fn watched_variables(&self) -> Vec<Variable> {
        let list = match &*self.0.borrow() {
            Open::Once(tape) => tape.watched_variables(),
            Open::Persistent(tape) => tape.watched_variables(),
            Open::Used => Vec::new(),
        };
        list.into_iter().map(Variable).collect()
    }

    /// The gradients of the sum of `targets`, one for each source.
    #[pyo3(signature = (targets, sources, output_gradients=None, zeros=false))]
    fn gradient(
        &self,
        targets: Vec<Bound<'_, PyAny>>,
        sources: Vec<Bound<'_, PyAny>>,
        output_gradients: Option<Vec<Bound<'_, PyAny>>>,
        zeros: bool,
    ) -> PyResult<Vec<Option<Tensor>>> {
        let targets = targets.iter().map(|t| to_tensor(t, None)).collect::<PyResult<Vec<_>>>()?;
        let sources = sources.iter().map(source).collect::<PyResult<Vec<_>>>()?;
        let given = output_gradients
            .map(|list| list.iter().map(|g| to_tensor(g, None)).collect::<PyResult<Vec<_>>>())
            .transpose()?;
        let given: Option<Vec<&wgrad::Tensor>> = given.as_ref().map(|list| list.iter().collect());
        let options = || match zeros {
            true => GradientOptions::new().unconnected_gradients(UnconnectedGradients::Zero),
            false => GradientOptions::new(),
        };
        let grads = match self.take("gradient")? {
            Open::Once(tape) if given.is_some() => {
                tape.gradient_from(&targets[..], given.as_deref(), &sources[..])
            }
            Open::Once(tape) => tape.gradient_with(&targets[..], &sources[..], options()),
            Open::Persistent(tape) => {
                let grads = match &given {
                    Some(given) => tape.gradient_from(&targets[..], Some(given), &sources[..]),
                    None => tape.gradient_with(&targets[..], &sources[..], options()),
                };
                self.0.replace(Open::Persistent(tape));
                grads
            }
            Open::Used => return Err(used("gradient")),
        };
        Ok(grads.raised()?.into_iter().map(|g| g.map(Tensor)).collect())
    }

    /// The Jacobian of `target` for each source.
    fn jacobian(
        &self,
        target: &Bound<'_, PyAny>,
        sources: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<Tensor>>> {
        let target = to_tensor(target, None)?;
        let sources = sources.iter().map(source).collect::<PyResult<Vec<_>>>()?;
        let rows = match self.take("jacobian")? {
            Open::Once(tape) => tape.jacobian(&target, &sources[..]),
            Open::Persistent(tape) => {
                let rows = tape.jacobian(&target, &sources[..]);
                self.0.replace(Open::Persistent(tape));
                rows
            }
            Open::Used => return Err(used("jacobian")),
        };
        Ok(rows.raised()?.into_iter().map(|g| g.map(Tensor)).collect())
    }

    /// The Jacobian of each example of `target`.
    fn batch_jacobian(
        &self,
        target: &Bound<'_, PyAny>,
        of: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Tensor>> {
        let (target, of) = (to_tensor(target, None)?, source(of)?);
        let rows = match self.take("batch_jacobian")? {
            Open::Once(tape) => match &of {
                TensorOrVariable::Tensor(x) => tape.batch_jacobian(&target, x),
                TensorOrVariable::Variable(v) => tape.batch_jacobian(&target, v),
            },
            Open::Persistent(tape) => {
                let rows = match &of {
                    TensorOrVariable::Tensor(x) => tape.batch_jacobian(&target, x),
                    TensorOrVariable::Variable(v) => tape.batch_jacobian(&target, v),
                };
                self.0.replace(Open::Persistent(tape));
                rows
            }
            Open::Used => return Err(used("batch_jacobian")),
        };
        Ok(rows.raised()?.map(Tensor))
    }
}

impl Tape {
    fn take(&self, call: &str) -> PyResult<Open> {
        match self.0.replace(Open::Used) {
            Open::Used => Err(used(call)),
            open => Ok(open),
        }
    }
}

fn used(call: &str) -> PyErr {
    crate::error::raise(wgrad::Error::Gradient(
        format!(
            "GradientTape.{call}: a tape that is not persistent computes gradients once. Use tf.GradientTape(persistent=True)."
        )
        .into(),
    ))
}

/// Calls `f` with `arguments`; it returns its result and the function that computes the gradients.
#[pyfunction]
pub fn custom_gradient(f: &Bound<'_, PyAny>, arguments: Vec<Bound<'_, PyAny>>) -> PyResult<Tensor> {
    let tensors = arguments.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
    let f = f.clone().unbind();
    let made = wgrad::custom_gradient(move |xs: &Vec<wgrad::Tensor>| {
        attached(|py| {
            let run = || -> PyResult<(wgrad::Tensor, Py<PyAny>)> {
                let xs: Vec<Tensor> = xs.iter().cloned().map(Tensor).collect();
                let (y, rule): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                    f.bind(py).call1(PyTuple::new(py, xs)?)?.extract()?;
                Ok((to_tensor(&y, None)?, rule.unbind()))
            };
            let (y, rule) = run().map_err(keep)?;
            let rule = move |dy: &wgrad::Tensor| {
                attached(|py| {
                    let run = || -> PyResult<Vec<wgrad::Tensor>> {
                        let dx = rule.bind(py).call1((Tensor(dy.clone()),))?;
                        let is_list = dx.is_instance_of::<PyTuple>()
                            || dx.is_instance_of::<pyo3::types::PyList>();
                        match is_list {
                            true => dx.try_iter()?.map(|dx| to_tensor(&dx?, None)).collect(),
                            false => Ok(vec![to_tensor(&dx, None)?]),
                        }
                    };
                    run().map_err(keep)
                })
            };
            Ok((y, rule))
        })
    });
    made(&tensors).map(Tensor).raised()
}
