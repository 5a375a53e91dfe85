//! A TFRecord file, and its records as examples.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::data::example::{Example, SequenceExample};
use wgrad::data::tfrecord::TfRecordReader;

fuzz_target!(|bytes: &[u8]| {
    for record in TfRecordReader::new(bytes, "x").flatten() {
        let _ = (Example::parse(&record), SequenceExample::parse(&record));
    }
    let _ = (Example::parse(bytes), SequenceExample::parse(bytes));
});
