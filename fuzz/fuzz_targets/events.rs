//! The values of an event file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::summary::EventReader;

fuzz_target!(|file: &[u8]| {
    for event in EventReader::new(file, "fuzz") {
        let _ = event;
    }
});
