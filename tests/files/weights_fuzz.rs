//! 100,000 broken weight files of each format: no reader panics or hangs, and memory is bounded by the file's size.

#![allow(clippy::unwrap_used)]

use crate::mutations;

use mutations::{FOR_EACH, Seen, data, fuzz, nothing};
use wgrad::keras::layers::{Activate, Dense};
use wgrad::keras::saving::{self, LoadModelOptions};
use wgrad::keras::{Activation, Sequential};
use wgrad::weights::SafetensorsFile;
use wgrad::{Error, Result, Trackable};

/// Reads every tensor and the metadata of a file.
fn read_all(file: Result<SafetensorsFile>) -> Result<()> {
    let file = file?;
    for name in file.names() {
        let (info, array) = (file.info(name).unwrap(), file.array(name)?);
        assert_eq!((&info.shape[..], info.dtype), (array.array.shape(), array.array.dtype()));
    }
    Ok(())
}

#[test]
fn safetensors() {
    let good = [data("pytorch/cnn.safetensors"), data("pytorch/sequence.safetensors")];
    let read =
        |bytes: &[u8], seen: &mut Seen| seen.note(read_all(SafetensorsFile::from_bytes(bytes)));
    fuzz(161, &good, FOR_EACH, nothing, read);
}

#[test]
fn an_index_of_safetensors() {
    let shard = data("pytorch/mlp.safetensors");
    let index = br#"{"metadata": {"total_size": 340, "x": "y"}, "weight_map": {"0.bias": "a.safetensors", "0.weight":
        "b.safetensors", "2.bias": "a.safetensors", "2.weight": "b.safetensors"}}"#;
    fuzz(162, &[index.to_vec()], 2 * FOR_EACH, nothing, |bytes, seen| {
        seen.note(read_all(SafetensorsFile::from_index(bytes, |_| Ok(shard.clone()))));
    });
}

/// Layers without sizes: the weights are pending in them, and no device computes.
fn nested() -> Sequential {
    let inner = Sequential::new()
        .add(Dense::new(3))
        .add(Activate::new(Activation::Tanh))
        .add(Dense::new(3));
    Sequential::new().add(Dense::new(4)).add(inner).add(Dense::new(2))
}

fn note<T>(seen: &mut Seen, result: Result<T>) {
    match result {
        // With another name or shape, it does not belong to the model.
        Err(Error::Checkpoint(text)) => seen.refused(&text),
        other => seen.note(other),
    }
}

#[test]
fn hdf5() {
    let model = nested();
    // Small files of this library, too, in which most bytes matter.
    let built = nested();
    built.build([1, 4]).unwrap();
    let ours = pollster::block_on(saving::weights_to_h5_async(&built)).unwrap();
    let good = [ours, data("keras_files/nested.weights.h5"), data("keras_files/nested_legacy.h5")];
    fuzz(163, &good, FOR_EACH, nothing, |bytes, seen| {
        note(seen, saving::weights_from_h5(&model, bytes))
    });
}

#[test]
fn keras_archives() {
    // Checksums detect most changes to a file within the archive.
    let good = [data("keras_files/nested.keras")];
    let names: Vec<String> = {
        let model = saving::load_model_from_bytes(&good[0], LoadModelOptions::new()).unwrap();
        model.named_variables().into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names.len(), 8);
    let mut cut = good[0].clone();
    // Without the end record, it is not an archive.
    cut.truncate(good[0].len() - 22);
    assert!(saving::load_model_from_bytes(&cut, LoadModelOptions::new()).is_err());
    fuzz(
        164,
        &good,
        FOR_EACH,
        |bytes, random| fix(bytes, random),
        |bytes, seen| {
            match saving::load_model_from_bytes(bytes, LoadModelOptions::new()) {
                Ok(_) => seen.good += 1,
                // The layers may refuse another config.
                Err(error) => seen.refused(&error.to_string()),
            }
        },
    );
}

/// Corrects the checksums in one of eight archives, so that the code after the check is reached; making a model is slow.
fn fix(bytes: &mut [u8], random: &mut fastrand::Rng) {
    let number = |bytes: &[u8], at: usize, width: usize| -> Option<usize> {
        let bytes = bytes.get(at..at + width)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    if random.u8(..8) != 0 {
        return;
    }
    for at in 0..bytes.len().saturating_sub(46) {
        if !bytes[at..].starts_with(b"PK\x01\x02") {
            continue;
        }
        let checksum = || {
            let (size, local) = (number(bytes, at + 20, 4)?, number(bytes, at + 42, 4)?);
            let begin = local + 30 + number(bytes, local + 26, 2)? + number(bytes, local + 28, 2)?;
            Some(crc32fast::hash(bytes.get(begin..begin + size)?))
        };
        if let Some(checksum) = checksum() {
            bytes[at + 16..at + 20].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}
