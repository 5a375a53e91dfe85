//! NumPy's files: one array, and an archive of several.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::data::npy::{NpyArray, parse_npz};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(array) = NpyArray::parse(bytes, "x") {
        let mut again = Vec::new();
        assert!(array.write(&mut again).is_ok());
    }
    let _ = parse_npz(bytes, "x");
});
