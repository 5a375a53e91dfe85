//! Calls of the library, whose errors and panics become errors of this crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result, message};

/// The result of `call`. Files exist on which the library panics; a page, which cannot catch that, ends.
pub(super) fn guarded<T>(
    what: &str,
    remedy: &str,
    call: impl FnOnce() -> tokenizers::Result<T>,
) -> Result<T> {
    let why = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            text.unwrap_or("it does not say why").to_string()
        }
    };
    // A damaged file may quote itself.
    let mut short: String = why.chars().take(300).collect();
    if short.len() < why.len() {
        short.push_str("..");
    }
    let short = short.trim_end_matches('.');
    Err(Error::Data(message!("{what}: {short}. {remedy}.")))
}
