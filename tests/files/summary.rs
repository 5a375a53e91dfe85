//! Event files: written files are read back, TensorFlow's own file is read, and pending values are read together.

#![allow(clippy::unwrap_used)]

use crate::support::folder;
use crate::support::root;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folder::Folder;
use serde_json::Value as Json;
use wgrad as tf;
use wgrad::summary::{
    self, Bucket, Event, EventReader, FileWriterOptions, Graph, HParams, HistogramOptions,
    MediaOptions, MemoryWriter, Text, TrialStatus, Value,
};
use wgrad::{DType, Tensor, Variable};

/// The bytes of the file that `write` writes.
fn bytes(write: impl FnOnce()) -> Vec<u8> {
    let writer = MemoryWriter::new();
    let default = writer.as_default();
    write();
    drop(default);
    pollster::block_on(writer.take_async()).unwrap()
}

/// The same, read back.
fn events(write: impl FnOnce()) -> Vec<Event> {
    EventReader::new(&bytes(write)[..], "memory").collect::<tf::Result<_>>().unwrap()
}

fn scalars(events: &[Event]) -> Vec<(&str, i64, f64)> {
    events.iter().map(|event| (&*event.tag, event.step, event.scalar().unwrap())).collect()
}

fn data(name: &str) -> std::path::PathBuf {
    root::root().join("tests/data/summary").join(name)
}

const TENSORFLOWS: &str = "events.out.tfevents.1700000000.host.1.0.v2";

#[test]
fn a_file_of_tensorflow_is_read() {
    let expected: Json =
        serde_json::from_str(&std::fs::read_to_string(data("expected.json")).unwrap()).unwrap();
    let wanted = &expected["events"].as_array().unwrap()[1..];
    let found = summary::read(data(TENSORFLOWS)).unwrap();
    assert_eq!(found.len(), wanted.len());
    for (event, wanted) in found.iter().zip(wanted) {
        assert_eq!(event.tag, wanted["tag"].as_str().unwrap());
        assert_eq!(event.plugin, wanted["plugin"].as_str().unwrap());
        assert_eq!(event.step, wanted["step"].as_i64().unwrap());
        assert_eq!(event.wall_time, wanted["wall_time"].as_f64().unwrap());
        match &event.value {
            Value::Scalar(value) => assert_eq!(*value, wanted["value"].as_f64().unwrap()),
            Value::Histogram(buckets) => {
                let rows = wanted["value"].as_array().unwrap();
                assert_eq!(buckets.len(), rows.len());
                for (bucket, row) in buckets.iter().zip(rows) {
                    let found = [bucket.left, bucket.right, bucket.count];
                    for (at, found) in found.iter().enumerate() {
                        // The JSON reader rounds the last digit of long numbers.
                        assert!((found - row[at].as_f64().unwrap()).abs() < 1e-12, "{row}");
                    }
                }
            }
            Value::Images { width, height, files } => {
                assert_eq!((*width, *height, files.len()), (6, 8, 2));
                assert!(files.iter().all(|file| file.starts_with(b"\x89PNG")));
            }
            Value::Text(text) => {
                assert_eq!(text.first().unwrap(), "**hello** from a summary");
                assert!(text.shape().is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}

/// For the same inputs, wgrad writes the same as TensorFlow: equal values in equal messages.
#[test]
fn the_same_inputs_give_what_tensorflow_wrote() {
    let file = std::fs::read(data("inputs.safetensors")).unwrap();
    let inputs = safetensors::SafeTensors::deserialize(&file).unwrap();
    let image = inputs.tensor("image").unwrap();
    let image = Tensor::from_slice(image.data(), image.shape().to_vec()).unwrap();
    let values: Vec<f32> = inputs
        .tensor("histogram")
        .unwrap()
        .data()
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let values = Tensor::from_slice(&values, [100]).unwrap();
    let ten = || HistogramOptions::new().buckets(10);
    let found = events(|| {
        for step in 0..5 {
            summary::scalar("loss", (-f64::from(step) / 2.0).exp(), step).unwrap();
            summary::scalar("train/accuracy", f64::from(step) / 5.0, step * 10).unwrap();
        }
        summary::image("pictures", &image, 1).unwrap();
        summary::histogram_with("weights", &values, 2, ten()).unwrap();
        let constant = Tensor::full([7], 3.0).unwrap();
        summary::histogram_with("constant", &constant, 2, ten()).unwrap();
        summary::text("note", "**hello** from a summary", 3).unwrap();
    });
    let wanted = summary::read(data(TENSORFLOWS)).unwrap();
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(
            (&found.tag, &found.plugin, found.step),
            (&wanted.tag, &wanted.plugin, wanted.step)
        );
        assert_eq!(found.plugin_content, wanted.plugin_content);
        match (&found.value, &wanted.value) {
            (Value::Histogram(found), Value::Histogram(wanted)) => {
                for (found, wanted) in found.iter().zip(wanted) {
                    assert_eq!(found.count, wanted.count);
                    // TensorFlow's linspace rounds its edges differently.
                    assert!((found.left - wanted.left).abs() < 1e-12, "{found:?} {wanted:?}");
                    assert!((found.right - wanted.right).abs() < 1e-12, "{found:?} {wanted:?}");
                }
            }
            // PNGs may be compressed in different ways.
            (Value::Images { files, .. }, Value::Images { files: wanted, .. }) => {
                assert_eq!(files.len(), wanted.len());
            }
            (found, wanted) => assert_eq!(found, wanted),
        }
    }
}

#[test]
fn all_kinds_read_back() {
    let found = events(|| {
        let x = tf::constant([[1.0, 2.0], [3.0, 4.0]]).unwrap();
        summary::scalar("number", 2.5, 1).unwrap();
        summary::scalar("tensor", x.reduce_sum(()).unwrap(), 2).unwrap();
        summary::scalar("whole", tf::constant(7).unwrap(), 3).unwrap();
        summary::tensor("x", &x, 4).unwrap();
        summary::tensor("yes", x.greater(tf::constant(2.5).unwrap()).unwrap(), 4).unwrap();
        summary::tensor("bytes", x.cast(DType::U8).unwrap(), 4).unwrap();
        summary::text("list", ["a", "b"], 5).unwrap();
        summary::text("table", Text::table([["a", "b"], ["c", "d"]]).unwrap(), 5).unwrap();
        let sounds = Tensor::from_slice(&[0.0f32, 0.5, -0.5, 2.0], [2, 2, 1]).unwrap();
        let one = MediaOptions::new().max_outputs(1).description("beeps");
        summary::audio_with("sounds", &sounds, 8000, 6, one).unwrap();
        summary::hparams(HParams::new().with("units", 16).with("on", true)).unwrap();
        summary::hparams_end(TrialStatus::Success).unwrap();
        summary::graph(Graph::new()).unwrap();
        summary::keras_model("keras", "{}", 0).unwrap();
    });
    let of = |tag: &str| found.iter().find(|event| event.tag == tag).unwrap();
    assert_eq!(scalars(&found[..3]), [("number", 1, 2.5), ("tensor", 2, 10.0), ("whole", 3, 7.0)]);
    let Value::Tensor(x) = &of("x").value else { panic!() };
    assert_eq!(x, &ndarray::array![[1.0f32, 2.0], [3.0, 4.0]].into());
    let Value::Tensor(yes) = &of("yes").value else { panic!() };
    assert_eq!(yes, &ndarray::array![[false, false], [true, true]].into());
    let Value::Tensor(bytes) = &of("bytes").value else { panic!() };
    assert_eq!(bytes, &ndarray::array![[1u8, 2], [3, 4]].into());
    let Value::Text(list) = &of("list").value else { panic!() };
    assert_eq!((list.shape(), &list[[1]]), (&[2][..], &"b".to_string()));
    let Value::Text(table) = &of("table").value else { panic!() };
    assert_eq!((table.shape(), &table[[1, 0]]), (&[2, 2][..], &"c".to_string()));
    let Value::Audio(files) = &of("sounds").value else { panic!() };
    assert_eq!((files.len(), &*of("sounds").description), (1, "beeps"));
    // 44 bytes of header; two samples, 0 and 0.5 * 2^15.
    assert_eq!(files[0][40..], [4, 0, 0, 0, 0, 0, 0, 0x40]);
    let start = of("_hparams_/session_start_info");
    assert_eq!((&*start.plugin, start.plugin_content.is_empty()), ("hparams", false));
    assert_eq!(of("_hparams_/session_end_info").plugin, "hparams");
    assert!(found.iter().any(|event| matches!(event.value, Value::Graph(_))));
    assert_eq!(of("keras").plugin, "graph_keras_model");
}

#[test]
fn pictures_are_cut_clipped_and_of_all_channels() {
    let found = events(|| {
        for channels in 1..=4 {
            let x = Tensor::full([5, 2, 3, channels], 0.5).unwrap();
            summary::image(&channels.to_string(), &x, 0).unwrap();
        }
        let one = MediaOptions::new().max_outputs(1);
        summary::image_with("one", Tensor::zeros([5, 2, 3, 1]).unwrap(), 0, one).unwrap();
        let none = MediaOptions::new().max_outputs(0);
        summary::image_with("none", Tensor::zeros([5, 2, 3, 1]).unwrap(), 0, none).unwrap();
    });
    let counts = found.iter().map(|event| match &event.value {
        Value::Images { width: 3, height: 2, files } => files.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(counts.collect::<Vec<_>>(), [3, 3, 3, 3, 1, 0]);
}

#[test]
fn histograms_leave_out_what_is_no_number() {
    let found = events(|| {
        let x = tf::constant([f32::NAN, 1.0, 3.0, f32::INFINITY]).unwrap();
        let two = HistogramOptions::new().buckets(2);
        summary::histogram_with("x", &x, 0, two).unwrap();
        summary::histogram("empty", Tensor::zeros([0]).unwrap(), 0).unwrap();
    });
    let Value::Histogram(buckets) = &found[0].value else { panic!() };
    let plain = |b: &Bucket| (b.left, b.right, b.count);
    assert_eq!(buckets.iter().map(plain).collect::<Vec<_>>(), [(1.0, 2.0, 1.0), (2.0, 3.0, 1.0)]);
    let Value::Histogram(buckets) = &found[1].value else { panic!() };
    assert_eq!(buckets.len(), 30);
    assert!(buckets.iter().all(|b| plain(b) == (0.0, 0.0, 0.0)));
}

#[test]
fn steps_come_from_numbers_variables_counters_and_defaults() {
    let found = events(|| {
        let variable = Variable::new(tf::constant(5).unwrap());
        let counter = Arc::new(AtomicU64::new(7));
        summary::scalar("number", 0.0, 3usize).unwrap();
        summary::scalar("variable", 0.0, &variable).unwrap();
        variable.assign_add(1).unwrap();
        summary::scalar("variable", 0.0, &variable).unwrap();
        summary::scalar("counter", 0.0, &counter).unwrap();
        assert!(summary::get_step().is_none());
        summary::set_step(&counter);
        summary::scalar("default", 0.0, ()).unwrap();
        counter.fetch_add(1, Ordering::Relaxed);
        summary::scalar("default", 0.0, ()).unwrap();
        summary::set_step(());
        assert!(summary::get_step().is_none());
    });
    let steps: Vec<i64> = found.iter().map(|event| event.step).collect();
    assert_eq!(steps, [3, 5, 6, 7, 7, 8]);
}

#[test]
fn scopes_nest_and_end() {
    let (outer, inner) = (MemoryWriter::new(), MemoryWriter::new());
    assert!(!summary::scalar("nobody", 0.0, 0).unwrap());
    assert!(!summary::should_record_summaries());
    {
        let _outer = outer.as_default_at(100);
        let _train = summary::name_scope("train");
        assert!(summary::scalar("a", 1.0, ()).unwrap());
        {
            let _inner = inner.as_default_at(200);
            let _loss = summary::name_scope("loss");
            summary::scalar("b", 2.0, ()).unwrap();
            summary::set_step(201);
            summary::scalar("c", 3.0, ()).unwrap();
        }
        summary::scalar("d", 4.0, ()).unwrap();
        std::thread::spawn(|| assert!(!summary::scalar("other thread", 0.0, 0).unwrap()))
            .join()
            .unwrap();
    }
    let read = |writer: &MemoryWriter| {
        let bytes = pollster::block_on(writer.take_async()).unwrap();
        EventReader::new(&bytes[..], "memory").collect::<tf::Result<Vec<_>>>().unwrap()
    };
    assert_eq!(scalars(&read(&outer)), [("train/a", 100, 1.0), ("train/d", 100, 4.0)]);
    let found = read(&inner);
    assert_eq!(scalars(&found), [("train/loss/b", 200, 2.0), ("train/loss/c", 201, 3.0)]);
}

#[test]
fn conditions_choose_what_is_recorded() {
    let found = events(|| {
        for step in 0..20 {
            let _recording = summary::record_if(step % 10 == 0);
            assert_eq!(summary::should_record_summaries(), step % 10 == 0);
            summary::scalar("if", 0.0, step).unwrap();
            // Only the innermost one counts.
            let _always = summary::record_if(move || step > 17);
            summary::scalar("late", 0.0, step).unwrap();
        }
        let _every = summary::record_every(4);
        for step in 0..9 {
            summary::scalar("every", 0.0, step).unwrap();
            let unread = tf::constant(step).unwrap();
            summary::scalar("unread", 0.0, &unread).unwrap();
        }
    });
    let steps = |tag: &str| -> Vec<i64> {
        found.iter().filter(|event| event.tag == tag).map(|event| event.step).collect()
    };
    assert_eq!(steps("if"), [0, 10]);
    assert_eq!(steps("late"), [18, 19]);
    assert_eq!(steps("every"), [0, 4, 8]);
    assert_eq!(steps("unread"), [0, 4, 8]);
}

#[test]
fn a_file_has_its_name_and_each_writer_its_own() {
    let folder = Folder::new("summary-files");
    let first = summary::create_file_writer(folder.path("run")).unwrap();
    let second = summary::create_file_writer(folder.path("run")).unwrap();
    assert_ne!(first.path(), second.path());
    for (writer, tag) in [(&first, "first"), (&second, "second")] {
        let _default = writer.as_default();
        summary::scalar(tag, 1.0, 0).unwrap();
    }
    let name = first.path().file_name().unwrap().to_str().unwrap().to_string();
    let parts: Vec<&str> = name.split('.').collect();
    assert_eq!((&parts[..3], parts.len(), parts[7]), (&["events", "out", "tfevents"][..], 8, "v2"));
    assert_eq!(parts[5], std::process::id().to_string());
    first.close().unwrap();
    second.close().unwrap();
    let found = summary::read(folder.path("")).unwrap();
    assert_eq!(scalars(&found), [("first", 0, 1.0), ("second", 0, 1.0)]);
    assert!(found.iter().all(|event| event.run == "run"));
}

/// Nothing is read or run for a summary until the writer is flushed, however many there are.
#[test]
fn summaries_make_the_device_do_nothing() {
    let folder = Folder::new("summary-unread");
    // A separate device, as other tests use the common one.
    let device = tf::Device::new().unwrap();
    let hour = FileWriterOptions::new().max_queue(1 << 20).flush_millis(3_600_000);
    let writer = summary::create_file_writer_with(folder.path(""), hour).unwrap();
    let x = device.scope(|| Tensor::ones([8])).unwrap();
    device.synchronize().unwrap();
    let before = device.stats();
    {
        let _default = writer.as_default();
        for step in 0..100 {
            summary::scalar("loss", x.multiply(step as f32).unwrap().reduce_sum(()).unwrap(), step)
                .unwrap();
        }
    }
    let after = device.stats();
    assert_eq!((after.submits - before.submits, after.reads - before.reads), (0, 0));
    writer.flush().unwrap();
    // One copy for all of them.
    assert_eq!(device.stats().reads - before.reads, 1);
    let found = summary::read(writer.path()).unwrap();
    assert_eq!(found.len(), 100);
    assert_eq!(found[99].scalar(), Some(99.0 * 8.0));
}

/// A failure is reported at the next call, and does not reach the file.
#[test]
fn what_is_written_by_count_needs_no_flush() {
    let folder = Folder::new("summary-count");
    let writer = summary::create_file_writer(folder.path("")).unwrap();
    let _default = writer.as_default();
    for step in 0..10 {
        summary::scalar("loss", 1.0, step).unwrap();
    }
    // The thread writes ten without a flush; the bound is for a machine under load.
    let begun = std::time::Instant::now();
    while summary::read(writer.path()).unwrap().len() < 10 {
        assert!(begun.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn an_unfinished_record_ends_a_file_and_a_flipped_bit_is_an_error() {
    let file = bytes(|| {
        for step in 0..3 {
            summary::scalar("loss", f64::from(step), step).unwrap();
        }
    });
    let whole = EventReader::new(&file[..], "memory").count();
    assert_eq!(whole, 3);
    let mut lengths = std::collections::BTreeSet::new();
    for end in 0..file.len() {
        let mut reader = EventReader::new(&file[..end], "memory");
        let found: tf::Result<Vec<Event>> = reader.by_ref().collect();
        lengths.insert(found.unwrap_or_else(|error| panic!("cut at {end}: {error}")).len());
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    for at in 0..file.len() {
        let mut file = file.clone();
        file[at] ^= 0x10;
        let found: tf::Result<Vec<Event>> = EventReader::new(&file[..], "memory").collect();
        let error = found.expect_err(&format!("byte {at} is wrong")).to_string();
        assert!(error.starts_with("memory: record "), "{error}");
    }
}
