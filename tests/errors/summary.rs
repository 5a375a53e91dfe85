//! Errors of the summary functions and writers for wrong calls, failing disks and broken files.

use std::fs;
use std::path::PathBuf;

use wgrad::keras::callbacks::TensorBoard;
use wgrad::keras::layers::Dense;
use wgrad::keras::{CompileOptions, FitOptions, Model, Sequential};
use wgrad::summary::{self, EventReader, FileWriterOptions, HistogramOptions, MemoryWriter, Text};
use wgrad::{DType, Error};

use super::*;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("wgrad-errors-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn calls_that_make_no_sense() {
    let writer = MemoryWriter::new();
    let _default = writer.as_default();
    assert_eq!(
        text(summary::scalar("loss", zeros([2, 3]), 0)),
        "scalar: \"loss\" is [2, 3]; a scalar is one number. Reduce it first, or write a histogram."
    );
    assert_eq!(
        text(summary::scalar("loss", 1.0, ())),
        "scalar: the summary \"loss\" has no step. Pass one, or set a default by set_step or as_default_at."
    );
    assert_eq!(text(summary::scalar("", 1.0, 0)), "scalar: the name of the summary is empty.");
    assert_eq!(
        text(summary::scalar("loss", 1.0, u64::MAX)),
        "scalar: the step is 18446744073709551615; steps end at 2^63 - 1."
    );
    assert_eq!(
        text(summary::scalar("loss", 1.0, &floats([1.0]))),
        "scalar: the step is a f32 of shape [1]; a step is one integer. Cast it, or pass a number."
    );
    assert_eq!(
        text(summary::histogram_with("w", zeros([2]), 0, HistogramOptions::new().buckets(0))),
        "histogram: buckets is 0; there are 1 to 65536 of them."
    );
    assert_eq!(
        text(Text::table([vec!["a", "b"], vec!["c"]])),
        "text: row 1 of the table has 1 cells, and row 0 has 2. Fill the shorter rows with \"\"."
    );
    assert_eq!(
        text(summary::trace_export("t", 0)),
        "trace_export: no trace is on. Begin one by trace_on."
    );
}

#[test]
fn pictures_and_sounds_of_another_form() {
    let writer = MemoryWriter::new();
    let _default = writer.as_default();
    assert_eq!(
        text(summary::image("digit", zeros([28, 28, 1]), 0)),
        "image: the pictures of \"digit\" are [28, 28, 1]; they must be [N, H, W, C]. Give one picture a first axis by \
         expand_dims(0)."
    );
    assert_eq!(
        text(summary::image("digit", zeros([1, 28, 28, 5]), 0)),
        "image: the pictures of \"digit\" are [1, 28, 28, 5]; a picture has 1 to 4 channels."
    );
    assert_eq!(
        text(summary::image("digit", zeros([1, 0, 28, 1]), 0)),
        "image: the pictures of \"digit\" are [1, 0, 28, 1]; a picture has pixels."
    );
    assert_eq!(
        text(summary::image("digit", zeros([1, 2, 2, 1]).cast(DType::I32).unwrap(), 0)),
        "image: the pictures of \"digit\" are i32; they must be u8, or floats from 0 to 1. Cast them first."
    );
    assert_eq!(
        text(summary::audio("beep", zeros([8, 2]), 8000, 0)),
        "audio: the sounds of \"beep\" are [8, 2]; they must be [N, T, C]: sounds, samples, channels."
    );
    assert_eq!(
        text(summary::audio("beep", zeros([1, 8, 0]), 8000, 0)),
        "audio: the sounds of \"beep\" are [1, 8, 0]; a sound has 1 to 65535 channels."
    );
    assert_eq!(
        text(summary::audio("beep", zeros([1, 8, 1]), 0, 0)),
        "audio: the sample_rate of \"beep\" is 0; it is the number of samples in a second."
    );
    // None of these reached the writer.
    let file = pollster::block_on(writer.take_async()).unwrap();
    assert_eq!(EventReader::new(&file[..], "memory").count(), 0);
}

#[test]
fn folders_that_are_none() {
    let folder = folder("summary-folders");
    let file = folder.join("file");
    fs::write(&file, "x").unwrap();
    let error = summary::create_file_writer(&file).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
    assert!(error.to_string().contains("file"), "{error}");
    let options = FileWriterOptions::new().filename_suffix("/x");
    assert_eq!(
        text(summary::create_file_writer_with(&folder, options)),
        "create_file_writer: filename_suffix is \"/x\"; it is the end of a file name and must not name a folder."
    );
    assert!(matches!(summary::read(folder.join("none")), Err(Error::Io(_))));
    assert_eq!(
        text(summary::read(&folder)),
        format!(
            "summary::read: {} has no event file. Their names contain \"tfevents\".",
            folder.display()
        )
    );
    fs::write(&file, "a file of another kind").unwrap();
    let error = text(summary::read(&file));
    let begin =
        format!("{}: record 0, which begins at byte 0, says that its length is", file.display());
    assert!(error.starts_with(&begin), "{error}");
    assert!(error.contains("The file is corrupt, compressed or not a TFRecord file"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_writer_that_is_closed() {
    let folder = folder("summary-closed");
    let writer = summary::create_file_writer(&folder).unwrap();
    let _default = writer.as_default();
    summary::scalar("loss", 1.0, 0).unwrap();
    writer.close().unwrap();
    assert_eq!(
        text(summary::scalar("loss", 1.0, 1)),
        "summary: the writer is closed. Keep it until the last summary is written, or make a new one."
    );
    fs::remove_dir_all(folder).unwrap();
}

/// A failure in the background is reported once, by the next call, and everything else continues.
#[test]
fn a_failure_of_the_writer_is_reported_once() {
    let folder = folder("summary-failed");
    let writer = summary::create_file_writer(&folder).unwrap();
    let _default = writer.as_default();
    summary::scalar("good", 1.0, 0).unwrap();
    writer.flush().unwrap();
    // A file replaces the folder.
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "in the way").unwrap();
    summary::scalar("good", 2.0, 1).unwrap();
    let error = writer.flush().unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
    // It was reported; once the folder exists again, nothing more is lost.
    fs::remove_file(&folder).unwrap();
    summary::scalar("good", 3.0, 2).unwrap();
    writer.flush().unwrap();
    let found = summary::read(&folder).unwrap();
    assert_eq!(found.iter().map(|event| event.step).collect::<Vec<_>>(), [1, 2]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn options_of_the_callback() {
    let folder = folder("summary-callback");
    let model = Sequential::new().add(Dense::new(1));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let fit = |board: TensorBoard| {
        let options = FitOptions::new().callback(board);
        model.fit((zeros([8, 2]), zeros([8, 1])), options).map(|_| ())
    };
    assert_eq!(
        text(fit(TensorBoard::new(&folder).update_freq(0))),
        "TensorBoard: update_freq is 0; it is a number of batches from 1 on."
    );
    assert_eq!(
        text(fit(TensorBoard::new(&folder).profile_batch(3, 2))),
        "TensorBoard: profile_batch is (3, 2); batches count from 1, and the last is not before the first."
    );
    assert_eq!(
        text(fit(TensorBoard::new(&folder).embeddings_freq(1).embeddings_metadata("words", ["a"]))),
        "TensorBoard: embeddings_metadata names the layer \"words\", and the model's Embedding layers are: none."
    );
    let file = folder.join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(fit(TensorBoard::new(&file)), Err(Error::Io(_))));
    fs::remove_dir_all(folder).unwrap();
}
