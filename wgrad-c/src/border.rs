//! The border to C: every function runs its body in [`call`], which turns errors and panics into a status and a message.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Failure, Result, remember, wgrad_status};

/// Runs `body`. After an error or a panic, the thread's message says what happened.
pub(crate) fn call(body: impl FnOnce() -> Result<()>) -> wgrad_status {
    // What a panic leaves half-changed is behind locks, whose poison every user ignores or reports.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return wgrad_status::WGRAD_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(wgrad_status::WGRAD_INTERNAL, words(panic)),
    };
    remember(&failure.text);
    failure.status
}

fn words(panic: Box<dyn Any + Send>) -> String {
    let said = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "without words",
    };
    let text = format!("wgrad: a panic: {said}. This is a defect in wgrad; please report it.");
    // The payload may have a destructor that panics, too.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use crate::status::wgrad_last_error;

    fn last() -> String {
        // SAFETY: the message is valid until the next failure of this thread.
        unsafe { CStr::from_ptr(wgrad_last_error()) }.to_string_lossy().into_owned()
    }

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }

    #[test]
    fn no_panic_crosses_the_border() {
        assert_eq!(call(|| Ok(())), wgrad_status::WGRAD_OK);
        assert_eq!(last(), "");
        assert_eq!(call(|| panic!("seven")), wgrad_status::WGRAD_INTERNAL);
        assert!(last().contains("a panic: seven"), "{}", last());
        let number = 8;
        assert_eq!(call(|| panic!("number {number}")), wgrad_status::WGRAD_INTERNAL);
        assert!(last().contains("number 8"));
        assert_eq!(call(|| std::panic::panic_any(Bomb)), wgrad_status::WGRAD_INTERNAL);
        assert!(last().contains("without words"));
        // Another thread has its own message.
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("it does not panic");
        let failure = || Err(Failure::argument("a\0b"));
        assert_eq!(call(failure), wgrad_status::WGRAD_INVALID_ARGUMENT);
        assert_eq!(last(), "a b");
    }
}
