//! Objects of Python as parts of a model or of a checkpoint.

use pyo3::PyClass;
use pyo3::prelude::*;
use wgrad::{Parts, Trackable};

use crate::cell::NativeCell;
use crate::layer::NativeLayer;
use crate::ops::NativeRegularizer;
use crate::python_layer::PyLayer;
use crate::variable::Variable;

/// A variable with a penalty.
struct Penalized(wgrad::Variable, NativeRegularizer);

impl Trackable for Penalized {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.penalize(&self.0, &|x| self.1.0.call(x));
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }
}

/// A native object that Python holds.
struct Held<T: PyClass>(Py<T>);

impl<T: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Trackable> Trackable for Held<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.0.get().track(parts);
    }

    fn kind(&self) -> &'static str {
        self.0.get().kind()
    }
}

/// A Python object as a part of a model.
pub fn part_of(value: &Bound<'_, PyAny>) -> Option<Box<dyn Trackable>> {
    if let Ok(variable) = value.cast::<Variable>() {
        let inner = variable.get().0.clone();
        let regularizer = value.getattr_opt("_regularizer").ok().flatten();
        return Some(match regularizer.as_ref().map(|value| value.cast::<NativeRegularizer>()) {
            Some(Ok(regularizer)) => Box::new(Penalized(inner, regularizer.get().clone())),
            _ => Box::new(inner),
        });
    }
    if let Ok(optimizer) = value.cast::<crate::optimizer::NativeOptimizer>() {
        return Some(Box::new(optimizer.get().0.clone()));
    }
    if let Ok(mean) = value.cast::<crate::optimizer::NativeMean>() {
        let mean = mean.clone().unbind();
        return Some(Box::new(Held(mean)));
    }
    if let Ok(generator) = value.cast::<crate::random::NativeGenerator>() {
        return Some(Box::new(Held(generator.clone().unbind())));
    }
    if let Ok(cell) = value.cast::<NativeCell>() {
        return Some(Box::new(cell.get().0.clone()));
    }
    if let Ok(layer) = value.cast::<NativeLayer>() {
        return Some(Box::new(layer.get().0.clone()));
    }
    if let Ok(model) = value.cast::<crate::model::NativeModel>() {
        return Some(Box::new(model.get().clone()));
    }
    // The package's own classes hold one of these.
    if let Ok(Some(native)) = value.getattr_opt("_native") {
        if let Some(part) = part_of(&native) {
            return Some(part);
        }
    }
    let is_layer = value.hasattr("_wgrad_parts").unwrap_or(false);
    is_layer.then(|| Box::new(PyLayer::new(value)) as Box<dyn Trackable>)
}

/// The names and variables of a Python object.
pub fn variables_of(part: &dyn Trackable) -> Vec<(String, Variable, bool)> {
    let named = part.named_variables();
    named
        .into_iter()
        .map(|(name, v)| {
            let trainable = v.trainable();
            (name, Variable(v), trainable)
        })
        .collect()
}
