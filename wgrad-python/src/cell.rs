//! Cells of recurrent layers, which a program calls step by step, or runs over sequences with `RNN`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use wgrad::keras::layers::{Rnn, RnnCell, StackedRnnCells, cell_from_config};
use wgrad::keras::{Config, Context, DTypePolicy, Losses, Regularizer};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, keep};
use crate::interpreter::{Release, attached};
use crate::layer::{NativeLayer, Shared, config_of};
use crate::parts::variables_of;
use crate::python_layer::PyLayer;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A cell that a program writes in Python: a layer that is called with an input and states.
struct PyCell {
    layer: PyLayer,
    /// The object that calls the layer as Keras does.
    caller: Py<PyAny>,
    state_sizes: Vec<usize>,
}

impl Trackable for PyCell {
    fn track(&self, parts: &mut Parts<'_>) {
        self.layer.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.layer.kind()
    }

    fn identity(&self) -> (usize, usize) {
        self.layer.identity()
    }
}

fn tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<wgrad::Tensor>> {
    list.try_iter()?.map(|item| to_tensor(&item?, None)).collect()
}

impl RnnCell for PyCell {
    fn state_sizes(&self) -> Vec<usize> {
        self.state_sizes.clone()
    }

    fn step(
        &self,
        x: &wgrad::Tensor,
        states: &[wgrad::Tensor],
        cx: Context<'_>,
    ) -> wgrad::Result<(wgrad::Tensor, Vec<wgrad::Tensor>)> {
        attached(|py| {
            let run = || {
                let states = PyList::new(py, states.iter().cloned().map(Tensor))?;
                let given = (Tensor(x.clone()), states, cx.training());
                let (y, after): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                    self.caller.bind(py).call_method1("step", given)?.extract()?;
                PyResult::Ok((to_tensor(&y, None)?, tensors(&after)?))
            };
            let stepped = run().map_err(keep)?;
            self.layer.give_losses(py, cx)?;
            Ok(stepped)
        })
    }

    fn initial_state(&self, x: &wgrad::Tensor) -> wgrad::Result<Vec<wgrad::Tensor>> {
        attached(|py| {
            let given = (Tensor(x.clone()),);
            let run = || tensors(&self.caller.bind(py).call_method1("initial_state", given)?);
            run().map_err(keep)
        })
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        self.layer.config()
    }
}

/// A cell that several layers may share.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeCell(pub Arc<dyn RnnCell>);

#[pymethods]
impl NativeCell {
    /// The cell of a config.
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config = config_of(config).raised()?;
        Ok(NativeCell(Arc::from(cell_from_config(&config).raised()?)))
    }

    /// A cell written in Python.
    #[staticmethod]
    fn of_python(layer: &Bound<'_, PyAny>, caller: Py<PyAny>, state_sizes: Vec<usize>) -> Self {
        NativeCell(Arc::new(PyCell { layer: PyLayer::new(layer), caller, state_sizes }))
    }

    /// Cells of which each gets the output of the one before it.
    #[staticmethod]
    fn stacked(cells: Vec<Bound<'_, NativeCell>>) -> Self {
        let stack = cells
            .iter()
            .fold(StackedRnnCells::new(), |stack, cell| stack.add(cell.get().0.clone()));
        NativeCell(Arc::new(stack))
    }

    /// The output of a step, the states after it, and the losses that the cell has added.
    fn step(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        states: Vec<Bound<'_, PyAny>>,
        training: bool,
    ) -> PyResult<(Tensor, Vec<Tensor>, Vec<Tensor>)> {
        let x = to_tensor(x, None)?;
        let states = states.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let cell = self.0.clone();
        let stepped = py.released(move || {
            let losses = Losses::new();
            let (y, after) = cell.step(&x, &states, Context::from(training).collect(&losses))?;
            Ok((y, after, losses.to_vec()))
        });
        let (y, after, losses) = stepped.raised()?;
        let list = |tensors: Vec<wgrad::Tensor>| tensors.into_iter().map(Tensor).collect();
        Ok((Tensor(y), list(after), list(losses)))
    }

    /// A layer that runs the cell over sequences, with the options of a config.
    fn layer(&self, config: &str) -> PyResult<NativeLayer> {
        let config = config_of(config).raised()?;
        let made = || {
            let is = |key| Ok::<_, wgrad::Error>(config.get::<bool>(key)?.unwrap_or(false));
            let mut layer = Rnn::new(self.0.clone())
                .return_sequences(is("return_sequences")?)
                .return_state(is("return_state")?)
                .go_backwards(is("go_backwards")?)
                .stateful(is("stateful")?)
                .unroll(is("unroll")?)
                .zero_output_for_mask(is("zero_output_for_mask")?)
                .activity_regularizer(config.get::<Regularizer>("activity_regularizer")?);
            if let Some(policy) = config.get::<DTypePolicy>("dtype")? {
                layer = layer.dtype(policy);
            }
            Ok(Shared::Recurrent(Arc::new(layer)).into())
        };
        made().raised()
    }

    /// Names, variables, and whether training changes them.
    fn variables(&self) -> Vec<(String, Variable, bool)> {
        variables_of(&self.0)
    }

    fn set_trainable(&self, trainable: bool) {
        self.0.set_trainable(trainable);
    }

    /// The penalties of regularized weights.
    fn penalties(&self) -> PyResult<Vec<Tensor>> {
        Ok(self.0.regularization_losses().raised()?.into_iter().map(Tensor).collect())
    }

    fn config(&self) -> PyResult<String> {
        let config = self.0.get_config().raised()?;
        Ok(serde_json::json!({"class_name": config.class(), "config": config.options()})
            .to_string())
    }

    /// What distinguishes the cell from others while it lives.
    #[getter]
    fn identity(&self) -> (usize, usize) {
        self.0.identity()
    }
}
