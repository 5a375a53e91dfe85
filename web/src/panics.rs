//! Panics: defects, which must not be lost. The words go to the console and to whoever asks for them.
//!
//! A panic ends the call that met it with a `RuntimeError`; what the module holds may be half changed, so a page
//! should tell its visitor and load again.

use std::cell::RefCell;
use std::panic;

use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

thread_local! {
    static LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Calls `listener` with the words of a panic, before the call that met it throws. A panic is a defect in wgrad: tell
/// the visitor, and load the page again.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(
    #[wasm_bindgen(unchecked_param_type = "(message: string) => void")] listener: Function,
) {
    LISTENER.with_borrow_mut(|slot| *slot = Some(listener));
}

pub(crate) fn install() {
    panic::set_hook(Box::new(|info| {
        let text = format!("wgrad: {info}. This is a defect in wgrad; please report it.");
        console_error(&text);
        let listener = LISTENER.try_with(|slot| slot.try_borrow().ok()?.clone()).ok().flatten();
        if let Some(listener) = listener {
            // What the listener throws is not worth losing the panic for.
            let _ = listener.call1(&JsValue::NULL, &text.as_str().into());
        }
    }));
}
