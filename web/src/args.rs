//! Arguments that are plain JavaScript values: options, shapes, numbers.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Result, Thrown, bad_type};

/// An object of options; `undefined` means no options.
pub(crate) struct Options<'a> {
    /// The call or object that messages name.
    what: &'a str,
    object: Option<Object>,
}

impl<'a> Options<'a> {
    /// `value` as options. Only the keys in `known` are allowed.
    pub(crate) fn new(what: &'a str, value: &JsValue, known: &[&str]) -> Result<Self> {
        if value.is_undefined() || value.is_null() {
            return Ok(Options { what, object: None });
        }
        let Some(object) = value.dyn_ref::<Object>().filter(|_| is_options(value)) else {
            return Err(bad_type(format!(
                "{what}: the options must be an object, not {}.",
                show(value)
            )));
        };
        for key in Object::keys(object).iter() {
            let key = key.as_string().unwrap_or_default();
            if !known.contains(&key.as_str()) {
                return Err(bad_type(format!(
                    "{what}: there is no option '{key}'. The known ones are {}.",
                    known.join(", ")
                )));
            }
        }
        Ok(Options { what, object: Some(object.clone()) })
    }

    /// The value of an option, unless it is missing or `undefined`.
    pub(crate) fn get(&self, key: &str) -> Option<JsValue> {
        let value = Reflect::get(self.object.as_ref()?, &key.into()).ok()?;
        (!value.is_undefined() && !value.is_null()).then_some(value)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>> {
        self.read(key, "a number", |value| value.as_f64())
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.read(key, "true or false", |value| value.as_bool())
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<String>> {
        self.read(key, "a string", |value| value.as_string())
    }

    #[cfg(feature = "ops")]
    pub(crate) fn function(&self, key: &str) -> Result<Option<js_sys::Function>> {
        self.read(key, "a function", |value| value.dyn_ref::<js_sys::Function>().cloned())
    }

    /// A whole number from 0.
    pub(crate) fn size(&self, key: &str) -> Result<Option<usize>> {
        self.read(key, "a whole number from 0", |value| whole(value.as_f64()?))
    }

    /// A whole number from 1.
    pub(crate) fn count(&self, key: &str) -> Result<Option<usize>> {
        self.read(key, "a whole number from 1", |value| {
            whole(value.as_f64()?).filter(|count| *count > 0)
        })
    }

    /// A whole number from 1, or two of them: rows and columns.
    pub(crate) fn pair(&self, key: &str) -> Result<Option<[usize; 2]>> {
        self.read(key, "a whole number from 1 or two of them", |value| {
            let positive = |value: JsValue| whole(value.as_f64()?).filter(|size| *size > 0);
            match value.dyn_ref::<Array>() {
                Some(pair) if pair.length() == 2 => {
                    Some([positive(pair.get(0))?, positive(pair.get(1))?])
                }
                Some(_) => None,
                None => positive(value.clone()).map(|size| [size, size]),
            }
        })
    }

    pub(crate) fn read<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&JsValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.refused(key, wanted, &value))
    }

    #[inline(never)]
    fn refused(&self, key: &str, wanted: &str, value: &JsValue) -> Thrown {
        bad_type(format!(
            "{}: the option '{key}' is {}; it must be {wanted}.",
            self.what,
            show(value)
        ))
    }

    /// The value of an option that must be given.
    pub(crate) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| bad_type(format!("{}: the option '{key}' is missing.", self.what)))
    }
}

/// Whether `value` may hold options. A list or one of the library's own objects here is a mistake.
fn is_options(value: &JsValue) -> bool {
    #[cfg(feature = "ops")]
    if value.has_type::<Array>() || js_sys::ArrayBuffer::is_view(value) || is_own(value) {
        return false;
    }
    !value.is_function()
}

/// Whether `value` is an object of one of this library's classes.
#[cfg(feature = "ops")]
fn is_own(value: &JsValue) -> bool {
    value.is_object()
        && Reflect::get(value, &"__wbg_ptr".into()).is_ok_and(|found| !found.is_undefined())
}

/// `value` as a size or an index, if it is a whole number in that range.
pub(crate) fn whole(value: f64) -> Option<usize> {
    let size = value as usize;
    (size as f64 == value).then_some(size)
}

/// Sizes of axes, from a list of whole numbers.
pub(crate) fn shape(what: &str, value: &JsValue) -> Result<Vec<usize>> {
    sizes(what, "the shape", value)
}

/// Whole numbers from 0 in a list; messages call the list `name`.
pub(crate) fn sizes(what: &str, name: &str, value: &JsValue) -> Result<Vec<usize>> {
    let sizes: Option<Vec<usize>> = value
        .dyn_ref::<Array>()
        .and_then(|list| list.iter().map(|size| whole(size.as_f64()?)).collect());
    sizes.ok_or_else(|| {
        bad_type(format!(
            "{what}: {name} is {}; it must be a list of whole numbers from 0.",
            show(value)
        ))
    })
}

#[cfg(feature = "ops")]
/// Whole numbers of either sign.
pub(crate) fn integers(what: &str, value: &JsValue) -> Result<Vec<i64>> {
    let integer = |value: JsValue| {
        let number = value.as_f64()?;
        (number as i64 as f64 == number).then_some(number as i64)
    };
    let list: Option<Vec<i64>> =
        value.dyn_ref::<Array>().and_then(|list| list.iter().map(integer).collect());
    list.ok_or_else(|| bad_type(format!("{what}: {} is not a list of whole numbers.", show(value))))
}

/// A number as JavaScript writes it. Rust's float formatting would be a fiftieth of what a page loads.
pub(crate) fn show_number(value: f64) -> String {
    String::from(JsValue::from(value).unchecked_ref::<Object>().to_string())
}

/// How a value looks in a message; long values are cut.
pub(crate) fn show(value: &JsValue) -> String {
    #[cfg(feature = "ops")]
    if let Some(text) = show_special(value) {
        return text;
    }
    let text = match js_sys::JSON::stringify(value) {
        Ok(text) if text.is_string() => String::from(text),
        _ => format!("a value of type {}", value.js_typeof().as_string().unwrap_or_default()),
    };
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Values that JSON cannot show: `undefined`, `NaN`, functions, promises, typed arrays and objects of other classes.
#[cfg(feature = "ops")]
fn show_special(value: &JsValue) -> Option<String> {
    if value.is_undefined() {
        return Some("undefined".to_string());
    }
    if let Some(number) = value.as_f64() {
        return Some(show_number(number));
    }
    if value.is_function() {
        return Some("a function".to_string());
    }
    if !value.is_object() || value.has_type::<Array>() {
        return None;
    }
    if value.has_type::<js_sys::Promise>() {
        return Some("a promise; await it first".to_string());
    }
    let get = |of: &JsValue, key: &str| Reflect::get(of, &key.into()).unwrap_or_default();
    if is_own(value) {
        let object: &Object = value.unchecked_ref();
        return Some(format!("the {}", String::from(object.to_string())));
    }
    let name = get(&get(value, "constructor"), "name").as_string().unwrap_or_default();
    if name.is_empty() || name == "Object" {
        return None;
    }
    let article = if name.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    let length = get(value, "length").as_f64().map(|length| format!(" of {}", show_number(length)));
    Some(format!("{article} {name}{}", length.unwrap_or_default()))
}
