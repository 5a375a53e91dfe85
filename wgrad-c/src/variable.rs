//! Variables.

use wgrad::{Device, Tensor, Variable};

use crate::arguments::out;
use crate::border::call;
use crate::handles::{free, get};
use crate::status::{Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// A cell that holds a tensor. Tapes watch it by themselves if it is trainable.
#[derive(Debug)]
pub struct wgrad_variable {
    _private: (),
}

/// Makes a variable with the value of a tensor. If `trainable` is 0, tapes do not watch it by themselves.
///
/// # Safety
/// `variable` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_variable_new(
    value: *const wgrad_tensor,
    trainable: i32,
    variable: *mut *mut wgrad_variable,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(variable, "variable") }?;
        let value = get::<Tensor>(value, "value")?;
        place.put(match trainable {
            0 => Variable::untrainable(value),
            _ => Variable::new(value),
        })
    })
}

/// Stores the value as a tensor. An open tape of this thread records the read.
///
/// # Safety
/// `value` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_variable_read(
    variable: *const wgrad_variable,
    value: *mut *mut wgrad_tensor,
) -> wgrad_status {
    call(|| {
        let place = unsafe { out(value, "value") }?;
        place.put(get::<Variable>(variable, "variable")?.read())
    })
}

fn change(
    variable: *const wgrad_variable,
    value: *const wgrad_tensor,
    change: impl FnOnce(&Variable, &Tensor) -> wgrad::Result<()>,
) -> wgrad_status {
    call(|| -> Result<()> {
        let variable = get::<Variable>(variable, "variable")?;
        let value = get::<Tensor>(value, "value")?;
        let device: &Device = value.device();
        Ok(device.scope(|| change(&variable, &value))?)
    })
}

/// Gives the variable another value, of the same shape and dtype.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_variable_assign(
    variable: *const wgrad_variable,
    value: *const wgrad_tensor,
) -> wgrad_status {
    change(variable, value, |variable, value| variable.assign(value))
}

/// Adds to the variable's value.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_variable_assign_add(
    variable: *const wgrad_variable,
    value: *const wgrad_tensor,
) -> wgrad_status {
    change(variable, value, |variable, value| variable.assign_add(value))
}

/// Subtracts from the variable's value.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_variable_assign_sub(
    variable: *const wgrad_variable,
    value: *const wgrad_tensor,
) -> wgrad_status {
    change(variable, value, |variable, value| variable.assign_sub(value))
}

/// Frees the handle. Null does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn wgrad_variable_free(variable: *mut wgrad_variable) -> wgrad_status {
    free::<Variable>(variable)
}
