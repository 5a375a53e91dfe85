//! [`tidy`]: disposes of the tensors that a function made.
//!
//! JavaScript frees a tensor when its garbage collector runs, long after the last use. Until then the value occupies memory,
//! and the planner has to store values that could have stayed in registers.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Function, Object, Promise};
use wasm_bindgen::prelude::*;

use crate::error::{Result, bad_type};
use crate::tensor::{Slot, has};

thread_local! {
    /// The tensors made in each `tidy` call, the innermost last.
    static SCOPES: RefCell<Vec<Vec<Slot>>> = const { RefCell::new(Vec::new()) };
}

/// Records a new tensor.
pub(crate) fn made(slot: &Slot) {
    SCOPES.with_borrow_mut(|scopes| {
        if let Some(scope) = scopes.last_mut() {
            scope.push(slot.clone());
        }
    });
}

/// Moves a tensor from the innermost `tidy` call to the one around it.
pub(crate) fn keep(slot: &Slot) {
    SCOPES.with_borrow_mut(|scopes| {
        let Some(scope) = scopes.last_mut() else { return };
        let before = scope.len();
        scope.retain(|other| !Rc::ptr_eq(other, slot));
        let outer = scopes.len().checked_sub(2);
        if let Some(outer) = outer.filter(|at| scopes[at + 1].len() < before) {
            scopes[outer].push(slot.clone());
        }
    });
}

/// A running `tidy` call; dropping it disposes of its tensors.
pub(crate) struct Scope;

impl Scope {
    pub(crate) fn open() -> Self {
        SCOPES.with_borrow_mut(|scopes| scopes.push(Vec::new()));
        Scope
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let made = SCOPES.with_borrow_mut(Vec::pop);
        made.into_iter().flatten().for_each(|slot| drop(slot.borrow_mut().take()));
    }
}

#[wasm_bindgen]
extern "C" {
    type Kept;

    #[wasm_bindgen(method, catch, js_name = _keep)]
    fn keep(this: &Kept) -> std::result::Result<(), JsValue>;
}

/// Keeps the tensors in a result, which is a tensor or has lists and objects of them.
pub(crate) fn keep_all(value: &JsValue, depth: usize) -> Result<()> {
    if has(value, "_keep") {
        return Ok(value.unchecked_ref::<Kept>().keep()?);
    }
    if depth == 0 || !value.is_object() {
        return Ok(());
    }
    let list = match value.dyn_ref::<Array>() {
        Some(list) => list.clone(),
        None => Object::values(value.unchecked_ref::<Object>()),
    };
    list.iter().try_for_each(|item| keep_all(&item, depth - 1))
}

/// Calls `f`, returns its result, and disposes of all other tensors that `f` made. `f` may return a tensor, or lists and
/// objects of tensors; it must not be async.
#[wasm_bindgen(skip_typescript)]
pub fn tidy(f: &Function) -> Result<JsValue> {
    let _scope = Scope::open();
    let result = f.call0(&JsValue::NULL)?;
    if result.has_type::<Promise>() {
        return Err(bad_type(
            "tidy: the function returned a promise, and what comes after an await cannot be tidied. Make it a plain \
             function."
                .to_string(),
        ));
    }
    keep_all(&result, 4)?;
    Ok(result)
}
