//! NumPy's files: one array, and an archive of several.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::data::npy;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(array) = npy::parse(bytes, "x") {
        let mut again = Vec::new();
        assert!(npy::write(&array, &mut again).is_ok());
    }
    let _ = npy::parse_npz(bytes, "x");
});
