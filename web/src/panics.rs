//! Panics are defects and must not go unnoticed. The message goes to the console and to the page's listener.
//!
//! A panic ends the current call with a `RuntimeError`. The module's state may then be inconsistent, so a page should inform
//! its visitor and reload.

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

/// Calls `listener` with the message of a panic, before the current call throws. A panic is a defect in wgrad: inform the
/// visitor, and reload the page.
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
            // An error in the listener must not hide the panic.
            let _ = listener.call1(&JsValue::NULL, &text.as_str().into());
        }
    }));
}
