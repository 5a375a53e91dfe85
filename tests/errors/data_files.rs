//! Files of records and tables: the errors of their readers for wrong calls and contents.

use wgrad::data::example::{
    Example, Feature, FeatureList, FixedLenFeature, FixedLenSequenceFeature, ParseFeature,
    SequenceExample, VarLenFeature, parse_single_example, parse_single_sequence_example,
};
use wgrad::data::tfrecord::{TfRecordOptions, TfRecordReader, TfRecordWriter};

use super::*;

fn parsed<F: ParseFeature<Value: Debug>>(name: &str, wanted: F) -> Result<F::Value> {
    let example = Example::new([
        ("label", Feature::from(7)),
        ("floats", Feature::from([0.5f32, 1.5, 2.5])),
        ("bytes", Feature::from(&b"\xff"[..])),
        ("none", Feature::default()),
    ]);
    parse_single_example(&example.serialize(), &((name, wanted),)).map(|(value,)| value)
}

#[test]
fn features_that_are_not_what_was_described() {
    assert_eq!(
        text(parsed("lable", FixedLenFeature::<i64>::scalar())),
        "Example: the feature \"lable\" (i64 of an int64_list) is required, and it is missing. Give it a default_value, or \
         check its name. The record has \"bytes\", \"floats\", \"label\", \"none\"."
    );
    assert_eq!(
        text(parsed("none", FixedLenSequenceFeature::<f32>::scalar())),
        "Example: the feature \"none\" (f32 of a float_list) is required, and it is missing. Call allow_missing(true) if \
         it may be missing, or check its name."
    );
    assert_eq!(
        text(parsed("label", VarLenFeature::<f32>::new())),
        "Example: the feature \"label\" should be f32 of a float_list, and the record has i64 of an int64_list. \
         Correct the description."
    );
    assert_eq!(
        text(parsed("floats", FixedLenFeature::<f32>::new([2, 2]))),
        "Example: the feature \"floats\" should have 4 values, for the shape [2, 2], and the record has 3. Correct \
         the description; a VarLenFeature takes any number."
    );
    assert_eq!(
        text(parsed("floats", FixedLenFeature::<f32>::scalar())),
        "Example: the feature \"floats\" should have 1 value, for the shape [], and the record has 3. Correct the \
         description; a VarLenFeature takes any number."
    );
    assert_eq!(
        text(parsed("floats", FixedLenSequenceFeature::<f32>::new([2]))),
        "Example: the feature \"floats\" has 3 values, and its elements have the shape [2], whose size does not \
         divide that number."
    );
    assert_eq!(
        text(parsed("bytes", FixedLenFeature::<String>::scalar())),
        "Example: value 0 of the feature \"bytes\" is not valid UTF-8 (invalid utf-8 sequence of 1 bytes from index \
         0). Describe it as Vec<u8> if it is not text."
    );
    let default = FixedLenFeature::<f32>::new([2]).default_value(ndarray::array![1.0, 2.0, 3.0]);
    assert!(text(parsed("lable", default)).starts_with(
        "Example: the default_value of \"lable\" is [3], and the feature's shape is [2]. They must be equal."
    ));
    let huge = FixedLenFeature::<f32>::new([usize::MAX, 3]);
    assert!(text(parsed("floats", huge)).contains("should have more values than there can be"));
}

#[test]
fn steps_of_a_sequence_are_named() {
    let steps = FeatureList::new([Feature::from([0.5f32, 1.0]), Feature::from([1.5f32].to_vec())]);
    let record =
        SequenceExample::new([("label", Feature::from(1))], [("steps", steps)]).serialize();
    let parse = |shape: usize| {
        let lists = (("steps", FixedLenSequenceFeature::<f32>::new([shape])),);
        parse_single_sequence_example(&record, &(), &lists)
    };
    assert!(text(parse(2)).ends_with("It happened at step 1 of the sequence."));
    assert!(text(parse(1)).ends_with("It happened at step 0 of the sequence."));
    let missing = (("stops", FixedLenSequenceFeature::<f32>::scalar()),);
    assert!(
        text(parse_single_sequence_example(&record, &(), &missing))
            .ends_with("The record has \"steps\".")
    );
}

#[test]
fn what_is_no_example_is_refused() {
    let found = text(Example::parse(b"\x0a\xff"));
    assert!(
        found.starts_with("Example: these 2 bytes are not a tf.train.Example (failed to decode "),
        "{found}"
    );
    assert!(found.ends_with("). Check what the records of this file hold."), "{found}");
    assert!(
        text(SequenceExample::parse(b"hello")).starts_with("SequenceExample: these 5 bytes are no")
    );
}

#[test]
fn records_that_are_broken() {
    let mut writer = TfRecordWriter::new(Vec::new(), "x");
    writer.write(b"1234").unwrap();
    let file = writer.close().unwrap();
    let read = |bytes: &[u8]| TfRecordReader::new(bytes, "x").next().unwrap();
    let changed = |at: usize| {
        let mut bytes = file.clone();
        bytes[at] ^= 0x10;
        text(read(&bytes))
    };
    assert_eq!(
        text(read(&file[..7])),
        "x: record 0, which begins at byte 0, should begin with 12 bytes of its length, and only 7 are there. The file is \
         truncated; write it again."
    );
    assert_eq!(
        text(read(&file[..19])),
        "x: record 0, which begins at byte 0, should have 4 bytes and 4 of their checksum, and only 7 are there. The file \
         is truncated; write it again."
    );
    assert!(
        changed(0).contains("says that its length is 20, with the checksum 0x"),
        "{}",
        changed(0)
    );
    assert!(
        changed(9)
            .contains("The file is corrupt, compressed or not a TFRecord file; write it again.")
    );
    assert!(changed(13).contains("has 4 bytes with the checksum 0x"), "{}", changed(13));
    let level = TfRecordOptions::new().compression_level(10);
    assert_eq!(
        text(TfRecordWriter::new_with(Vec::new(), "x", level).map(drop)),
        "x: compression_level is 10, and levels go from 0 to 9."
    );
}
