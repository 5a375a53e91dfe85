//! Optimizers, for programs that compute gradients on tapes of their own.

use std::ffi::c_char;
use std::sync::Arc;

use wgrad::keras::optimizers;
use wgrad::keras::saving::optimizer_from_json;
use wgrad::{Tensor, Variable};

use crate::arguments::{objects, out, slice, text};
use crate::border::call;
use crate::handles::{free, get, get_or_null};
use crate::status::{Result, wgrad_status};
use crate::tensor::wgrad_tensor;
use crate::variable::wgrad_variable;

/// An optimizer with its state.
#[derive(Debug)]
pub struct wgrad_optimizer {
    _private: (),
}

pub(crate) type Optimizer = Box<dyn optimizers::Optimizer>;

/// Makes the optimizer that Keras's JSON describes, such as
/// `{"class_name": "Adam", "config": {"learning_rate": 0.001}}`, or the name of any optimizer with
/// Keras's defaults: `"adam"`, with the quotes.
///
/// # Safety
/// `json` is a text, `optimizer` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_optimizer_from_json(
    json: *const c_char,
    optimizer: *mut *mut wgrad_optimizer,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(optimizer, "optimizer") }?;
        place.put(Arc::new(optimizer_from_json(unsafe { text(json, "json") }?)?))
    })
}

/// Performs a step: changes each variable by its gradient. A null gradient leaves its variable as it is. The gradients come in the
/// order of the variables, as `wgrad_tape_gradient` returns them.
///
/// # Safety
/// `gradients` and `variables` have `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_optimizer_apply(
    optimizer: *const wgrad_optimizer,
    gradients: *const *mut wgrad_tensor,
    variables: *const *mut wgrad_variable,
    count: usize,
) -> wgrad_status {
    call(|| {
        let optimizer = get::<Arc<Optimizer>>(optimizer, "optimizer")?;
        let gradients = unsafe { slice(gradients, count, "gradients") }?;
        let one = |(at, handle): (usize, &*mut wgrad_tensor)| {
            get_or_null::<Tensor>(*handle, &format!("gradients[{at}]"))
        };
        let gradients: Vec<Option<Tensor>> =
            gradients.iter().enumerate().map(one).collect::<Result<_>>()?;
        let variables = unsafe { objects::<Variable>(variables, count, "variables") }?;
        Ok(optimizer.apply_gradients(&gradients, &variables)?)
    })
}

/// Sets the learning rate of the next steps.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_optimizer_set_learning_rate(
    optimizer: *const wgrad_optimizer,
    learning_rate: f32,
) -> wgrad_status {
    call(|| {
        let optimizer = get::<Arc<Optimizer>>(optimizer, "optimizer")?;
        Ok(optimizer.set_learning_rate(learning_rate)?)
    })
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_optimizer_free(optimizer: *mut wgrad_optimizer) -> wgrad_status {
    free::<Arc<Optimizer>>(optimizer)
}
