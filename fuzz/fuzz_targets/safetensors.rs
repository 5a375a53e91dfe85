//! A safetensors file, and an index of such files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::weights::SafetensorsFile;

fuzz_target!(|bytes: &[u8]| {
    for file in [
        SafetensorsFile::from_bytes(bytes),
        // One that is large enough to name other files, and those have its own bytes.
        SafetensorsFile::from_index(bytes, |_| Ok(bytes.to_vec())),
    ]
    .into_iter()
    .flatten()
    {
        for name in file.names() {
            if let (Ok(array), Some(info)) = (file.array(name), file.info(name)) {
                assert_eq!(array.shape, info.shape);
            }
        }
    }
});
