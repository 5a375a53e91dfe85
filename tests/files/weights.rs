//! Weight files: written weights are read back, and mismatched or damaged files are refused.

#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use wgrad::keras::Sequential;
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::{Error, HostArray, HostDType, NamedArray, Trackable};

fn model(units: usize) -> Sequential {
    let model = Sequential::new().add(Flatten::new()).add(Dense::new(units)).add(Dense::new(2));
    model.build([1, 2, 2]).unwrap();
    model
}

fn bytes(model: &Sequential) -> Vec<u8> {
    pollster::block_on(model.to_safetensors_async()).unwrap()
}

/// A folder for this test, which is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("wgrad-weights-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn files(&self) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = fs::read_dir(&self.0).unwrap().flatten().map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A safetensors file with this header and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

#[test]
fn what_is_saved_comes_back_under_the_variables_names() {
    let folder = Folder::new("roundtrip");
    let (trained, other) = (model(3), model(3));
    assert_ne!(trained.get_weights().unwrap(), other.get_weights().unwrap());
    let path = folder.0.join("weights.safetensors");
    trained.save_weights(&path).unwrap();
    other.load_weights(&path).unwrap();
    assert_eq!(trained.get_weights().unwrap(), other.get_weights().unwrap());

    let bytes = fs::read(&path).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut names = read.names();
    names.sort();
    assert_eq!(names, ["dense/bias", "dense/kernel", "dense_1/bias", "dense_1/kernel"]);
    let kernel = read.tensor("dense/kernel").unwrap();
    assert_eq!((kernel.shape(), kernel.dtype()), (&[4, 3][..], safetensors::Dtype::F32));
    let weights = trained.get_weights().unwrap();
    let first: f32 = bytemuck::pod_read_unaligned(&kernel.data()[..4]);
    assert_eq!(first, weights[0][[0, 0]]);
}

#[test]
fn a_failed_save_leaves_the_old_file_and_no_other() {
    let folder = Folder::new("atomic");
    let path = folder.0.join("weights.safetensors");
    model(3).save_weights(&path).unwrap();
    let before = fs::read(&path).unwrap();

    // A file cannot replace a folder of that name.
    let taken = folder.0.join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("inside"), "x").unwrap();
    let error = model(3).save_weights(&taken).unwrap_err();
    assert!(matches!(&error, Error::Io(io) if io.path.ends_with("taken")), "{error}");
    // Layers that were never called have nothing to save.
    let unsized_model = Sequential::new().add(Dense::new(1));
    let error = unsized_model.save_weights(&path).unwrap_err();
    assert!(matches!(error, Error::Checkpoint(_)), "{error}");
    assert!(error.to_string().contains("use build"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(folder.files(), ["taken", "weights.safetensors"]);
}

#[test]
fn a_missing_folder_is_named() {
    let folder = Folder::new("missing");
    let path = folder.0.join("no/such/folder/weights.safetensors");
    let error = model(3).save_weights(&path).unwrap_err().to_string();
    assert!(error.contains("no/such/folder"), "{error}");
    assert!(folder.files().is_empty());
}

#[test]
fn weights_of_another_model_are_refused_and_nothing_changes() {
    let target = model(3);
    let before = target.get_weights().unwrap();
    let refused = |bytes: &[u8]| {
        let error = target.load_safetensors(bytes).unwrap_err();
        assert!(matches!(error, Error::Checkpoint(_)), "{error:?}");
        assert_eq!(target.get_weights().unwrap(), before);
        error.to_string()
    };
    let text = refused(&bytes(&model(4)));
    assert!(
        text.contains("'dense/kernel' is [4, 4] in the weights and [4, 3] in the model"),
        "{text}"
    );

    let deeper = Sequential::new().add(Dense::new(3)).add(Dense::new(2)).add(Dense::new(2));
    deeper.build([1, 4]).unwrap();
    let text = refused(&bytes(&deeper));
    assert!(text.contains("'dense_2/"), "{text}");
    assert!(text.contains("the Sequential has no such variable; it has 'dense/kernel'"), "{text}");

    let shallow = Sequential::new().add(Dense::new(3));
    shallow.build([1, 4]).unwrap();
    let text = refused(&bytes(&shallow));
    assert!(text.contains("lack 'dense_1/kernel' [3, 2]; they hold 'dense/"), "{text}");

    let arrays = pollster::block_on(target.named_arrays_async()).unwrap();
    let mut halves = arrays;
    halves[0].array = HostArray::new(HostDType::F16, [4, 3], vec![0; 24]).unwrap();
    let error = target.set_named_arrays(&halves).unwrap_err().to_string();
    assert!(error.contains("'dense/kernel' is F16 in the weights and F32 in the model"), "{error}");
    assert_eq!(target.get_weights().unwrap(), before);
}

#[test]
fn every_truncation_is_an_error() {
    let target = model(3);
    let whole = bytes(&target);
    for end in 0..whole.len() {
        let error = target.load_safetensors(&whole[..end]).unwrap_err();
        assert!(matches!(error, Error::Data(_)), "{end}: {error}");
        assert!(error.to_string().contains("take another copy"), "{end}: {error}");
    }
    target.load_safetensors(&whole).unwrap();
}

#[test]
fn broken_headers_are_distinguished() {
    let target = model(3);
    let reported = |bytes: &[u8]| target.load_safetensors(bytes).unwrap_err().to_string();
    assert!(reported(b"").contains("the file has 0 bytes"));
    assert!(
        reported(&[0xff; 64])
            .contains("its header has 18446744073709551615 bytes, and 56 are left")
    );
    assert!(reported(&file("[]", b"")).contains("its header cannot be read"));
    assert!(reported(&file("{\"dense/kernel\":", b"")).contains("its header cannot be read"));
    let entry = |offsets: &str, shape: &str| {
        format!(
            "{{\"dense/kernel\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}"
        )
    };
    // Offsets beyond the file, in reverse order, and shapes whose size overflows.
    for (offsets, shape) in [
        ("[0,4000]", "[4,3]"),
        ("[8,4]", "[4,3]"),
        ("[4,52]", "[4,3]"),
        ("[0,48]", "[18446744073709551615,18446744073709551615]"),
        ("[0,48]", "[4,4]"),
    ] {
        let text = reported(&file(&entry(offsets, shape), &[0; 48]));
        assert!(text.contains("take another copy"), "{offsets} {shape}: {text}");
    }
    // One valid tensor of four.
    let text = reported(&file(&entry("[0,48]", "[4,3]"), &[0; 48]));
    assert!(text.contains("lack 'dense/bias'"), "{text}");
}

#[test]
fn random_damage_never_panics() {
    let target = model(3);
    let whole = bytes(&target);
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    };
    let mut refused = 0;
    for _ in 0..500 {
        let mut damaged = whole.clone();
        // The header's bytes, where damage is more than another number.
        let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
        let at = next() % header;
        damaged[at] ^= 1 << (next() % 8);
        refused += usize::from(target.load_safetensors(&damaged).is_err());
    }
    // A flipped bit in padding or in a shape's digit may leave a valid file; most do not.
    assert!(refused > 400, "{refused} of 500 were refused");
}

#[test]
fn truth_values_and_integers_are_kept_too() {
    use wgrad::Variable;
    #[derive(Trackable)]
    struct Counted {
        flags: Variable,
        count: Variable,
    }
    let make = |flags: [bool; 3], count: i32| Counted {
        flags: Variable::untrainable(wgrad::constant(flags).unwrap()),
        count: Variable::untrainable(wgrad::constant(count).unwrap()),
    };
    let from = make([true, false, true], -7);
    let to = make([false; 3], 0);
    to.load_safetensors(&pollster::block_on(from.to_safetensors_async()).unwrap()).unwrap();
    assert_eq!(to.flags.read().to_vec::<bool>().unwrap(), [true, false, true]);
    assert_eq!(to.count.read().item::<i32>().unwrap(), -7);
    let arrays: Vec<NamedArray> = pollster::block_on(from.named_arrays_async()).unwrap();
    assert_eq!(arrays[0].array, ndarray::array![true, false, true].into());
}

#[test]
fn many_values_are_read_together() {
    use wgrad::{Device, Tensor, constant};
    let device = Device::new().unwrap();
    let read = |tensors: &[&Tensor]| pollster::block_on(Tensor::to_vecs_async::<u8>(tensors));
    let values = device.scope(|| {
        // Sizes that are not whole words, an empty one, and a pending one.
        let a = constant([1u8, 2, 3]).unwrap();
        let none = Tensor::from_slice::<u8>(&[], [0]).unwrap();
        let c = constant([4u8, 5, 6, 7, 8]).unwrap();
        let d = constant([9u8]).unwrap().reshape([1, 1]).unwrap();
        read(&[&a, &none, &c, &d, &a]).unwrap()
    });
    assert_eq!(values, [vec![1, 2, 3], vec![], vec![4, 5, 6, 7, 8], vec![9], vec![1, 2, 3]]);
    // One wait for each part before and after the empty tensor.
    assert_eq!(device.stats().reads, 2);
    assert!(read(&[]).unwrap().is_empty());
    let error = read(&[&constant(1.0).unwrap()]).unwrap_err();
    assert!(matches!(error, Error::DType(_)), "{error}");
}

#[test]
fn a_destroyed_device_is_lost_and_says_so() {
    use wgrad::{Device, Tensor, constant};
    let device = Device::new().unwrap();
    let x = device.scope(|| constant([1.0, 2.0])).unwrap();
    device.destroy();
    let reported = [
        x.to_vec::<f32>().unwrap_err(),
        device.flush().unwrap_err(),
        device.synchronize().unwrap_err(),
        pollster::block_on(device.synchronize_async()).unwrap_err(),
        pollster::block_on(Tensor::to_vecs_async::<f32>(&[&x, &x])).unwrap_err(),
        device.scope(|| constant(1.0)).unwrap_err(),
    ];
    for error in reported {
        assert!(error.is_device_lost(), "{error:?}");
        assert!(error.to_string().contains("Destroyed"), "{error}");
    }
    assert!(pollster::block_on(device.lost()).starts_with("Destroyed"));
}

#[test]
#[cfg(unix)]
fn a_pipe_or_a_device_is_no_file_of_weights() {
    let model = Sequential::new().add(Dense::new(3));
    model.build([1, 2]).unwrap();
    let pipe = std::env::temp_dir().join(format!("wgrad-pipe-{}", std::process::id()));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), std::path::Path::new("/dev/null")] {
        let reported = format!("{}: it is a pipe or a device and not a file", path.display());
        assert_eq!(model.save_weights(path).unwrap_err().to_string(), reported);
        assert_eq!(model.load_weights(path).unwrap_err().to_string(), reported);
    }
    std::fs::remove_file(pipe).unwrap();
}
