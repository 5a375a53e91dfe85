//! The file that names the newest checkpoint.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::train::CheckpointState;

fuzz_target!(|bytes: &[u8]| {
    let _ = CheckpointState::parse(bytes, "folder");
});
