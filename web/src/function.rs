//! [`tf_function`]: a JavaScript function that is traced once for each signature, as TensorFlow's `tf.function`.

use std::cell::RefCell;

use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::Error;

use crate::args::show;
use crate::error::{Result, Thrown, bad_type};
use crate::tensor::{Operand, Tensor, has};
use crate::tidy::Scope;

/// A traced function: of tensors, and of a text that has the structure around them and the plain values. So are its results.
type Call =
    dyn Fn(Vec<wgrad::Tensor>, String) -> wgrad::Result<(Vec<wgrad::Tensor>, String)> + Send + Sync;

/// A JavaScript function while it is called. Closures of wgrad may move between threads, and JavaScript's values may not, so
/// wgrad's closure finds them here.
struct Calling {
    f: Function,
    /// What `f` has thrown.
    thrown: Option<Thrown>,
}

thread_local! {
    /// The functions that are being called, the innermost last.
    static CALLS: RefCell<Vec<Calling>> = const { RefCell::new(Vec::new()) };
}

/// How deep lists and objects may be nested.
const DEPTH: usize = 16;

/// Writes values as JSON, without their tensors. What JSON has no form for is a list: `[0]` a tensor, `[1]` undefined,
/// `[2,"NaN"]` a number, `[3,[..]]` a list.
struct Writer<'a> {
    /// Whose values they are, for messages.
    whose: &'a str,
    text: String,
    tensors: Vec<wgrad::Tensor>,
}

impl Writer<'_> {
    fn write(&mut self, value: &JsValue, depth: usize) -> Result<()> {
        if has(value, "_variable") {
            return Err(bad_type(format!(
                "{} have a Variable. Use it in the function without passing it: each run reads its present value. Or pass \
                 x.read().",
                self.whose
            )));
        }
        if has(value, "_tensor") {
            self.tensors.push(value.unchecked_ref::<Operand>().get()?);
            self.text += "[0]";
        } else if value.is_undefined() {
            self.text += "[1]";
        } else if let Some(number) = value.as_f64().filter(|x| !x.is_finite() || *x == 0.0) {
            // JSON has no negative zero either.
            self.text += &format!("[2,\"{number:?}\"]");
        } else if value.as_f64().is_some()
            || value.as_bool().is_some()
            || value.is_string()
            || value.is_null()
        {
            self.text += &String::from(JSON::stringify(value)?);
        } else if let Some(list) = value.dyn_ref::<Array>().filter(|_| depth < DEPTH) {
            self.text += "[3,[";
            for (at, part) in list.iter().enumerate() {
                self.text += if at == 0 { "" } else { "," };
                self.write(&part, depth + 1)?;
            }
            self.text += "]]";
        } else if depth < DEPTH && is_plain(value) {
            self.text += "{";
            for (at, key) in Object::keys(value.unchecked_ref::<Object>()).iter().enumerate() {
                self.text += if at == 0 { "" } else { "," };
                self.text += &String::from(JSON::stringify(&key)?);
                self.text += ":";
                self.write(&Reflect::get(value, &key)?, depth + 1)?;
            }
            self.text += "}";
        } else {
            return Err(bad_type(format!(
                "{} have {}. They may be Tensors, numbers, strings, booleans, and lists and plain objects of these, up to {DEPTH} \
                 deep.",
                self.whose,
                show(value)
            )));
        }
        Ok(())
    }
}

/// Whether it is an object like `{ a: 1 }`.
fn is_plain(value: &JsValue) -> bool {
    let Some(object) = value.dyn_ref::<Object>() else { return false };
    let prototype = Object::get_prototype_of(object);
    let plain = Object::get_prototype_of(&Object::new());
    prototype.is_null() || Object::is(&prototype, &plain)
}

/// The tensors of `value`, and the text of [`Writer`].
fn written(whose: &str, value: &JsValue) -> Result<(Vec<wgrad::Tensor>, String)> {
    let mut writer = Writer { whose, text: String::new(), tensors: Vec::new() };
    writer.write(value, 0)?;
    Ok((writer.tensors, writer.text))
}

/// The value of which [`written`] has made these.
fn read(tensors: Vec<wgrad::Tensor>, text: &str) -> Result<JsValue> {
    read_part(&JSON::parse(text)?, &mut tensors.into_iter())
}

fn read_part(value: &JsValue, tensors: &mut std::vec::IntoIter<wgrad::Tensor>) -> Result<JsValue> {
    if let Some(list) = value.dyn_ref::<Array>() {
        let part = list.get(1);
        return Ok(match list.get(0).as_f64() {
            Some(0.0) => tensors.next().map(Tensor::new).into(),
            Some(1.0) => JsValue::UNDEFINED,
            Some(2.0) => part.as_string().and_then(|text| text.parse::<f64>().ok()).into(),
            _ => {
                let parts = Array::new();
                for part in part.unchecked_ref::<Array>().iter() {
                    parts.push(&read_part(&part, tensors)?);
                }
                parts.into()
            }
        });
    }
    if let Some(object) = value.dyn_ref::<Object>() {
        for key in Object::keys(object).iter() {
            Reflect::set(object, &key, &read_part(&Reflect::get(object, &key)?, tensors)?)?;
        }
    }
    Ok(value.clone())
}

/// Calls the function of the innermost call with these arguments.
fn traced(tensors: Vec<wgrad::Tensor>, text: &str) -> Result<(Vec<wgrad::Tensor>, String)> {
    let f = CALLS.with_borrow(|calls| calls.last().map(|call| call.f.clone()));
    let Some(f) = f else { unreachable!("only a call traces") };
    let _scope = Scope::open();
    let arguments = read(tensors, text)?;
    let returned = f.apply(&JsValue::NULL, arguments.unchecked_ref::<Array>())?;
    if returned.has_type::<Promise>() {
        return Err(bad_type(
            "tfFunction: the function returned a promise, and what comes after an await is not recorded. Make it a plain function; \
             read values outside of it."
                .to_string(),
        ));
    }
    written("tfFunction: the function's results", &returned)
}

fn call(function: &wgrad::Function<Call>, f: &Function, arguments: &Array) -> Result<JsValue> {
    let (tensors, text) = written("tfFunction: its arguments", arguments)?;
    CALLS.with_borrow_mut(|calls| calls.push(Calling { f: f.clone(), thrown: None }));
    let called = function(tensors, text);
    let thrown = CALLS.with_borrow_mut(Vec::pop).and_then(|call| call.thrown);
    let (tensors, text) = called.map_err(|error| thrown.unwrap_or_else(|| error.into()))?;
    read(tensors, &text)
}

/// Makes a function of `f` that is traced at the first call with each signature; TensorFlow's `tf.function`.
#[wasm_bindgen(js_name = tfFunction, skip_typescript)]
pub fn tf_function(f: &Function) -> Result<JsValue> {
    let function = wgrad::function(|tensors: Vec<wgrad::Tensor>, text: String| {
        traced(tensors, &text).map_err(|error| {
            CALLS.with_borrow_mut(|calls| {
                if let Some(call) = calls.last_mut() {
                    call.thrown = Some(error);
                }
            });
            // The caller throws the function's own error in its place.
            Error::Trace("tfFunction: the function has thrown an error.".into())
        })
    });
    let f = f.clone();
    let (counted, shown) = (function.clone(), function.clone());
    type Seven = dyn Fn(
        JsValue,
        JsValue,
        JsValue,
        JsValue,
        JsValue,
        JsValue,
        JsValue,
    ) -> std::result::Result<JsValue, JsValue>;
    let answer = move |a, b, c, d, e, g, seventh: JsValue| {
        if !seventh.is_undefined() {
            return Err(bad_type(
                "tfFunction: the function takes at most six arguments. Put more of them into a list or an object.".to_string(),
            )
            .into());
        }
        let given = [a, b, c, d, e, g];
        let count = given.iter().rposition(|x: &JsValue| !x.is_undefined()).map_or(0, |at| at + 1);
        let arguments = given[..count].iter().collect::<Array>();
        Ok(call(&function, &f, &arguments)?)
    };
    let answer = Closure::wrap(Box::new(answer) as Box<Seven>).into_js_value();
    let count = Closure::wrap(Box::new(move || counted.tracing_count()) as Box<dyn Fn() -> usize>);
    Reflect::set(&answer, &"tracingCount".into(), &count.into_js_value())?;
    let text = Closure::wrap(Box::new(move || shown.graph_text()) as Box<dyn Fn() -> String>);
    Reflect::set(&answer, &"graphText".into(), &text.into_js_value())?;
    Ok(answer)
}
