//! A TensorFlow checkpoint: two bytes say how long its index is, the data follow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::train::CheckpointReader;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (index, data) = rest.split_at(length);
    let Ok(reader) = CheckpointReader::from_bytes(index, vec![data.to_vec()]) else { return };
    for (name, shape) in reader.get_variable_to_shape_map() {
        if let Ok(array) = reader.get_tensor(&name) {
            assert_eq!(array.shape(), shape);
        }
    }
});
