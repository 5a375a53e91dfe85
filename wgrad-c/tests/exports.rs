//! The functions of the C API as other languages see them; the programs in C next to this file test what they do. With this test,
//! `cargo test` builds the libraries.

use std::ffi::CStr;

use wgrad_c::status::{wgrad_last_error, wgrad_status_name, wgrad_version};

#[test]
fn names_and_messages_are_texts() {
    // SAFETY: both are static texts, and the message is valid until the next failure.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_str().map(str::to_owned);
    assert_eq!(text(wgrad_version()).as_deref(), Ok(env!("CARGO_PKG_VERSION")));
    assert_eq!(text(wgrad_last_error()).as_deref(), Ok(""));
    for status in 0..=14 {
        let name = text(wgrad_status_name(status)).expect("UTF-8");
        assert!(name.starts_with("WGRAD_"), "{status}: {name}");
    }
    assert_eq!(text(wgrad_status_name(15)).as_deref(), Ok("unknown"));
    assert_eq!(text(wgrad_status_name(-1)).as_deref(), Ok("unknown"));
}
