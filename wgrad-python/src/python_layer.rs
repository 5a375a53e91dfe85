//! Layers that a program writes in Python, as layers of the crate.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyWeakrefReference};
use wgrad::keras::{Config, Context, Layer};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{invalid, keep};
use crate::interpreter::attached;
use crate::layer::config_of;
use crate::parts::part_of;
use crate::tensor::Tensor;

/// A layer written in Python that a file describes, and that merges several inputs.
pub struct Merging(pub Arc<PyLayer>);

impl Trackable for Merging {
    fn track(&self, parts: &mut Parts<'_>) {
        self.0.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn identity(&self) -> (usize, usize) {
        self.0.identity()
    }
}

impl Layer<[wgrad::Tensor]> for Merging {
    fn call(&self, xs: &[wgrad::Tensor], cx: Context<'_>) -> wgrad::Result<wgrad::Tensor> {
        one(self.0.call_all(xs, cx)?)
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        self.0.config()
    }
}

pub fn one(mut results: Vec<wgrad::Tensor>) -> wgrad::Result<wgrad::Tensor> {
    match (results.len(), results.pop()) {
        (1, Some(result)) => Ok(result),
        (count, _) => Err(wgrad::Error::Shape(
            format!("the layer has {count} results; one is needed here.").into(),
        )),
    }
}

/// A layer that a program writes in Python: an object with the methods `_wgrad_call` and `_wgrad_parts`.
pub struct PyLayer {
    /// The object, or a weak reference to it.
    object: Py<PyAny>,
    weak: bool,
    address: usize,
}

impl PyLayer {
    pub fn new(object: &Bound<'_, PyAny>) -> Self {
        PyLayer { object: object.clone().unbind(), weak: false, address: object.as_ptr() as usize }
    }

    /// For what the object itself holds: two references would keep each other alive.
    pub fn weak(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let reference = PyWeakrefReference::new(object)?;
        Ok(PyLayer {
            object: reference.into_any().unbind(),
            weak: true,
            address: object.as_ptr() as usize,
        })
    }

    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = self.object.bind(py).clone();
        match self.weak {
            false => Ok(object),
            true => match object.call0()? {
                gone if gone.is_none() => Err(invalid("the model was dropped while it was used.")),
                object => Ok(object),
            },
        }
    }

    pub fn call_all(
        &self,
        xs: &[wgrad::Tensor],
        cx: Context<'_>,
    ) -> wgrad::Result<Vec<wgrad::Tensor>> {
        attached(|py| {
            let run = || -> PyResult<Vec<wgrad::Tensor>> {
                let xs = PyTuple::new(py, xs.iter().cloned().map(Tensor))?;
                let mask = masks(py, xs.len(), cx)?;
                let y = self.get(py)?.call_method1("_wgrad_call", (xs, cx.training(), mask))?;
                y.try_iter()?.map(|y| to_tensor(&y?, None)).collect()
            };
            let results = run().map_err(keep)?;
            self.give_losses(py, cx)?;
            Ok(results)
        })
    }

    /// Passes on the losses that the layer added in its call.
    pub fn give_losses(&self, py: Python<'_>, cx: Context<'_>) -> wgrad::Result<()> {
        let losses = || -> PyResult<Vec<wgrad::Tensor>> {
            let list = self.get(py)?.call_method0("_wgrad_take_losses")?;
            list.try_iter()?.map(|loss| to_tensor(&loss?, None)).collect()
        };
        for loss in losses().map_err(keep)? {
            cx.add_loss(loss)?;
        }
        Ok(())
    }

    /// The mask of the result, which the layer computes, passes on, or ends. The context has those of the inputs.
    pub fn mask_of(
        &self,
        xs: &[wgrad::Tensor],
        cx: Context<'_>,
    ) -> wgrad::Result<Option<wgrad::Tensor>> {
        attached(|py| {
            let run = || -> PyResult<Option<wgrad::Tensor>> {
                let xs = PyTuple::new(py, xs.iter().cloned().map(Tensor))?;
                let mask = masks(py, xs.len(), cx)?;
                let made = self.get(py)?.call_method1("_wgrad_mask", (xs, mask))?;
                if made.is_none() { Ok(None) } else { to_tensor(&made, None).map(Some) }
            };
            run().map_err(keep)
        })
    }

    pub fn config(&self) -> wgrad::Result<Config> {
        attached(|py| {
            let text = self
                .get(py)
                .and_then(|object| object.call_method0("_wgrad_config")?.extract::<String>());
            let value = text.map_err(keep)?;
            config_of(&value)
        })
    }
}

/// Names that live as long as the program: one for each class of a program's layers.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

thread_local! {
    /// The layers written in Python that the walk of this thread has visited, while it visits one.
    static VISITED: RefCell<(HashSet<usize>, usize)> = RefCell::default();
}

/// A layer that a walk visits, until this is dropped. Layers may be shared, and hold each other: a walk visits each once.
struct Visit;

impl Visit {
    fn begin(address: usize) -> Option<Self> {
        VISITED.with_borrow_mut(|(visited, depth)| {
            visited.insert(address).then(|| {
                *depth += 1;
                Visit
            })
        })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        VISITED.with_borrow_mut(|(visited, depth)| {
            *depth -= 1;
            if *depth == 0 {
                visited.clear();
            }
        });
    }
}

impl Trackable for PyLayer {
    fn track(&self, parts: &mut Parts<'_>) {
        let Some(_visit) = Visit::begin(self.address) else { return };
        attached(|py| {
            let Ok(list) = self.get(py).and_then(|object| object.call_method0("_wgrad_parts"))
            else {
                return;
            };
            let Ok(list) = list.extract::<Vec<(String, Bound<'_, PyAny>)>>() else { return };
            for (name, part) in list {
                if let Some(part) = part_of(&part) {
                    parts.add(&name, &*part);
                }
            }
        });
    }

    fn kind(&self) -> &'static str {
        attached(|py| match self.get(py).and_then(|object| object.get_type().name()) {
            Ok(name) => interned(name.to_string()),
            Err(_) => "Layer",
        })
    }

    fn identity(&self) -> (usize, usize) {
        (self.address, 1)
    }
}

/// What a layer of a program gets as `mask` in a call on `count` inputs: nothing, the mask of one input, or a list with those of all.
fn masks<'py>(py: Python<'py>, count: usize, cx: Context<'_>) -> PyResult<Bound<'py, PyAny>> {
    let each = cx.masks();
    if count > 1 && each.len() == count && each.iter().any(Option::is_some) {
        let each = each.iter().map(|mask| mask.clone().map(Tensor));
        return Ok(PyList::new(py, each)?.into_any());
    }
    cx.mask().cloned().map(Tensor).into_bound_py_any(py)
}
