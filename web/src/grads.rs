//! Gradients of functions, with the names and signatures of TensorFlow.js.

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::Error;

use crate::args::show;
use crate::device::object;
use crate::error::{Result, Thrown, bad_type};
use crate::tape::{Source, list, pack};
use crate::tensor::{Operand, has};
use crate::tidy::{Scope, keep_all};

/// What to compute for a function of tensors.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// The arguments are one tensor instead of a list.
    one: bool,
    /// Also return the function's value.
    value: bool,
}

/// The result of `f`, and its gradients for the sources, weighted by `upstream`. All other tensors that `f` makes are disposed
/// of.
fn differentiate(
    name: &str,
    f: &dyn Fn() -> std::result::Result<JsValue, JsValue>,
    sources: &Array,
    upstream: &JsValue,
) -> Result<(JsValue, Array)> {
    let sources = list(sources)?;
    let scope = Scope::open();
    let tape = wgrad::GradientTape::new();
    sources.iter().try_for_each(|source| tape.watch(source))?;
    let value = f()?;
    if value.has_type::<Promise>() {
        return Err(bad_type(format!(
            "{name}: the function returned a promise, and what comes after an await is not on the tape. Make it a plain \
             function."
        )));
    }
    let mut target = value.unchecked_ref::<Operand>().get()?;
    if !upstream.is_undefined() && !upstream.is_null() {
        target = target.multiply(upstream.unchecked_ref::<Operand>().get()?)?;
    }
    let gradients = pack(tape.gradient(&target, sources)?);
    keep_all(&value, 0)?;
    keep_all(&gradients, 1)?;
    drop(scope);
    Ok((value, gradients))
}

/// The JavaScript function that `grad` and its relatives return for `f`.
fn answering(form: Form, f: &Function) -> JsValue {
    let f = f.clone();
    let answer = move |x: JsValue, upstream: JsValue| -> std::result::Result<JsValue, JsValue> {
        let sources = match (form.one, x.dyn_ref::<Array>()) {
            (true, None) => Array::of1(&x),
            (false, Some(list)) => list.clone(),
            (one, _) => {
                let wanted = if one { "a Tensor" } else { "a list of Tensors" };
                let text =
                    format!("{}: the argument is {}; it must be {wanted}.", form.name, show(&x));
                return Err(bad_type(text).into());
            }
        };
        let call = || f.apply(&JsValue::NULL, &sources);
        let (value, gradients) = differentiate(form.name, &call, &sources, &upstream)?;
        if let Some(at) = gradients.iter().position(|gradient| gradient.is_undefined()) {
            let text = format!(
                "{}: the result does not depend on argument {at}. The function must compute it from its arguments.",
                form.name
            );
            return Err(Thrown::from(Error::Gradient(text.into())).into());
        }
        let gradients = match form.one {
            true => gradients.get(0),
            false => gradients.into(),
        };
        if !form.value {
            return Ok(gradients);
        }
        let key = if form.one { "grad" } else { "grads" };
        Ok(object([("value", value), (key, gradients)]).into())
    };
    type Answer = dyn Fn(JsValue, JsValue) -> std::result::Result<JsValue, JsValue>;
    Closure::wrap(Box::new(answer) as Box<Answer>).into_js_value()
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = $js:literal, $one:literal, $value:literal, $f:literal, $returned:literal;)*) => {$(
        $(#[$doc])*
        #[wasm_bindgen(js_name = $js, unchecked_return_type = $returned)]
        pub fn $name(#[wasm_bindgen(unchecked_param_type = $f)] f: &Function) -> JsValue {
            answering(Form { name: $js, one: $one, value: $value }, f)
        }
    )*};
}
// The first becomes `grad(f: (x: Tensor) => Tensor): (x: Tensor, dy?: Tensor) => Tensor`.
forms! {
    /// Returns a function that computes the gradient of `f` for its argument. `dy` weights the result's elements, by default 1.
    grad = "grad", true, false, "(x: Tensor) => Tensor", "(x: Tensor | Variable, dy?: Tensor) => Tensor";
    /// Returns a function that computes the gradients of `f` for a list of arguments.
    grads = "grads", false, false, "(...xs: Tensor[]) => Tensor",
        "(xs: readonly (Tensor | Variable)[], dy?: Tensor) => Tensor[]";
    /// Returns a function that computes the result of `f` and its gradient for the argument.
    value_and_grad = "valueAndGrad", true, true, "(x: Tensor) => Tensor",
        "(x: Tensor | Variable, dy?: Tensor) => { value: Tensor; grad: Tensor }";
    /// Returns a function that computes the result of `f` and its gradients for a list of arguments.
    value_and_grads = "valueAndGrads", false, true, "(...xs: Tensor[]) => Tensor",
        "(xs: readonly (Tensor | Variable)[], dy?: Tensor) => { value: Tensor; grads: Tensor[] }";
}

/// The result of `f` and its gradients for variables, by name. Variables that it does not depend on are left out.
#[wasm_bindgen(
    js_name = variableGrads,
    unchecked_return_type = "{ value: Tensor; grads: Record<string, Tensor> }"
)]
pub fn variable_grads(
    #[wasm_bindgen(unchecked_param_type = "() => Tensor")] f: &Function,
    #[wasm_bindgen(unchecked_param_type = "readonly Variable[]")] variables: &JsValue,
) -> Result<Object> {
    let Some(sources) = variables.dyn_ref::<Array>() else {
        return Err(bad_type(format!(
            "variableGrads: the variables are {}; they must be a list, such as model.variables.",
            show(variables)
        )));
    };
    let name = |variable: JsValue| match has(&variable, "_variable") {
        true => Ok(variable.unchecked_ref::<Source>().variable()?.name()),
        false => Err(bad_type(format!("variableGrads: {} is no Variable.", show(&variable)))),
    };
    let names = sources.iter().map(name).collect::<Result<Vec<String>>>()?;
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(bad_type(format!(
            "variableGrads: two variables are called '{}'. Give them names of their own, or use valueAndGradients.",
            twice.1
        )));
    }
    let call = || f.call0(&JsValue::NULL);
    let (value, gradients) = differentiate("variableGrads", &call, sources, &JsValue::UNDEFINED)?;
    let by_name = Object::new();
    for (name, gradient) in names.iter().zip(gradients.iter()) {
        if !gradient.is_undefined() {
            Reflect::set(&by_name, &name.into(), &gradient).map_err(Thrown::from)?;
        }
    }
    Ok(object([("value", value), ("grads", by_name.into())]))
}
