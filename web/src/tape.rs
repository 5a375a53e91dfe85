//! [`GradientTape`], and the tape with a callback.

use std::cell::RefCell;

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::{Error, PersistentTape, TensorOrVariable};

use crate::args::{Options, show};
use crate::error::{Result, bad_type};
use crate::tensor::{Operand, Tensor, has};
use crate::tidy::{Scope, keep_all};
use crate::variable::Variable;

/// Records the calls made while it is open and computes gradients from them.
///
/// A tape records every op on the page until `gradient` or `stop` is called, including those of other functions that run
/// meanwhile: so do not `await` while a tape is open. `valueAndGradients` closes its tape itself.
#[wasm_bindgen]
pub struct GradientTape(RefCell<Option<TapeKind>>);

enum TapeKind {
    Once(wgrad::GradientTape),
    Persistent(PersistentTape),
}

#[wasm_bindgen]
extern "C" {
    /// A tensor or a variable.
    #[wasm_bindgen(typescript_type = "Tensor | Variable")]
    pub type Source;

    #[wasm_bindgen(method, catch, js_name = _variable)]
    pub(crate) fn variable(this: &Source) -> std::result::Result<Variable, JsValue>;
}

impl Source {
    fn get(&self) -> Result<TensorOrVariable> {
        if has(self.as_ref(), "_variable") {
            return Ok(TensorOrVariable::Variable(self.variable()?.0.clone()));
        }
        if !has(self.as_ref(), "_tensor") {
            let shown = show(self.as_ref());
            return Err(bad_type(format!(
                "GradientTape: {shown} is neither a Tensor nor a Variable."
            )));
        }
        Ok(TensorOrVariable::Tensor(self.unchecked_ref::<Operand>().get()?))
    }
}

pub(crate) fn list(sources: &JsValue) -> Result<Vec<TensorOrVariable>> {
    let Some(sources) = sources.dyn_ref::<Array>() else {
        return Err(bad_type(format!(
            "GradientTape: the sources are {}; they must be a list of Tensors and Variables.",
            show(sources)
        )));
    };
    sources.iter().map(|source| source.unchecked_ref::<Source>().get()).collect()
}

pub(crate) fn pack(gradients: Vec<Option<wgrad::Tensor>>) -> Array {
    let wrap = |gradient: Option<wgrad::Tensor>| JsValue::from(gradient.map(Tensor::new));
    gradients.into_iter().map(wrap).collect()
}

#[wasm_bindgen]
impl GradientTape {
    /// Opens a tape. A `persistent` tape records until its first `gradient` and can compute gradients repeatedly until `stop`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_optional_param_type = "{ persistent?: boolean }")]
        options: &JsValue,
    ) -> Result<GradientTape> {
        let options = Options::new("GradientTape", options, &["persistent"])?;
        let kind = match options.bool("persistent")?.unwrap_or(false) {
            true => TapeKind::Persistent(wgrad::GradientTape::persistent()),
            false => TapeKind::Once(wgrad::GradientTape::new()),
        };
        Ok(GradientTape(RefCell::new(Some(kind))))
    }

    /// Records the ops on `x` from now on. Variables are watched automatically.
    pub fn watch(&self, x: &Source) -> Result<()> {
        let x = x.get()?;
        match &*self.0.borrow() {
            Some(TapeKind::Once(tape)) => Ok(tape.watch(&x)?),
            Some(TapeKind::Persistent(tape)) => Ok(tape.watch(&x)?),
            None => Err(used_up().into()),
        }
    }

    /// The gradients of `target` for each source; `undefined` for a source that it does not depend on. Closes the tape unless
    /// it is persistent.
    #[wasm_bindgen(unchecked_return_type = "(Tensor | undefined)[]")]
    pub fn gradient(
        &self,
        target: &Operand,
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] sources: &JsValue,
    ) -> Result<Array> {
        let (target, sources) = (target.get()?, list(sources)?);
        let tape = self.0.borrow_mut().take().ok_or_else(used_up)?;
        match tape {
            TapeKind::Once(tape) => Ok(pack(tape.gradient(&target, sources)?)),
            TapeKind::Persistent(tape) => {
                let gradients = tape.gradient(&target, sources);
                *self.0.borrow_mut() = Some(TapeKind::Persistent(tape));
                Ok(pack(gradients?))
            }
        }
    }

    /// Closes the tape and releases its recording.
    pub fn stop(&self) {
        self.0.borrow_mut().take();
    }
}

fn used_up() -> Error {
    Error::Gradient(
        "GradientTape: the tape is closed: gradient or stop was called. Open a new one, or one with persistent: true."
            .into(),
    )
}

/// Calls `f` with a tape open; returns its result and the gradients of the result for each source, `undefined` for a source
/// that it does not depend on. The sources are watched. Other tensors that `f` makes are disposed of, as in `tidy`.
#[wasm_bindgen(
    js_name = valueAndGradients,
    unchecked_return_type = "{ value: Tensor; gradients: (Tensor | undefined)[] }"
)]
pub fn value_and_gradients(
    #[wasm_bindgen(unchecked_param_type = "() => Tensor")] f: &Function,
    #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] sources: &JsValue,
) -> Result<Object> {
    let sources = list(sources)?;
    let _scope = Scope::open();
    let tape = wgrad::GradientTape::new();
    sources.iter().try_for_each(|source| tape.watch(source))?;
    let value = f.call0(&JsValue::NULL)?;
    if value.has_type::<Promise>() {
        return Err(bad_type(
            "valueAndGradients: the function returned a promise, and what comes after an await is not recorded. Make it \
             a plain function; await what it needs before."
                .to_string(),
        ));
    }
    if !has(&value, "_tensor") {
        return Err(bad_type(format!(
            "valueAndGradients: the function returned {}; it must return a Tensor.",
            show(&value)
        )));
    }
    let target = value.unchecked_ref::<Operand>().get()?;
    let gradients = pack(tape.gradient(&target, sources)?);
    let result = Object::new();
    Reflect::set(&result, &"value".into(), &value)?;
    Reflect::set(&result, &"gradients".into(), &gradients)?;
    keep_all(&result, 2)?;
    Ok(result)
}
