//! Weights that do not fit: each error names the file, the tensor, both shapes and dtypes, and the remedy.

use wgrad::keras::Sequential;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, Gru, MultiHeadAttention};
use wgrad::weights::{LoadOptions, SafetensorsFile, SaveOptions};
use wgrad::{NamedArray, Trackable};

use super::text;

/// A file of tensors with zeros.
fn file(tensors: &[(&str, &str, &[usize])]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape) in tensors {
        let size = if dtype.ends_with("64") {
            8
        } else if dtype.ends_with("16") {
            2
        } else {
            4
        };
        let begin = data.len();
        data.resize(begin + size * shape.iter().product::<usize>(), 0);
        let info = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name.to_string(), info);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

fn dense() -> Sequential {
    let model = Sequential::new().add(Dense::new(2));
    model.build([1, 3]).unwrap();
    model
}

fn load(tensors: &[(&str, &str, &[usize])], options: LoadOptions) -> String {
    text(dense().load_safetensors_with(&file(tensors), options))
}

#[test]
fn shapes_and_names() {
    let options = LoadOptions::new;
    let bias: (&str, &str, &[usize]) = ("dense/bias", "F32", &[2]);
    assert_eq!(
        load(&[("dense/kernel", "F32", &[2, 3]), bias], options()),
        "load: 'dense/kernel' is [2, 3] in the weights and [3, 2] in the model. Load weights that a model with the same layers \
         has saved."
    );
    assert_eq!(
        load(&[bias], options()),
        "load: the weights lack 'dense/kernel' [3, 2]; they hold 'dense/bias'. Take a file that the same Sequential has saved."
    );
    assert_eq!(
        load(&[("a", "F32", &[2]), ("b", "F32", &[2])], options().rename("{x}", "dense/bias")),
        "load: 'a' and 'b' both become 'dense/bias' by the options. Make one of the patterns more specific, or \
         ignore one."
    );
    assert_eq!(
        load(&[("dense/kernel", "F32", &[2, 3]), bias], options().transpose("{x..}", &[1, 0])),
        "load: 'dense/bias' is [2] in the weights, and its axes cannot be put in the order [1, 0]. Give each of its 1 axes once."
    );
    for (pattern, why) in [
        ("{a", "has an unmatched bracket; a placeholder is written {i}"),
        (
            "{a}{b}",
            "has two placeholders without text between them, so it is unknown where one ends",
        ),
        ("{}", "has a placeholder whose name is not a word; write {i} or {rest..}"),
    ] {
        let reported = load(&[bias], options().ignore(pattern));
        assert_eq!(reported, format!("LoadOptions: the pattern '{pattern}' {why}."));
    }
    assert_eq!(
        load(&[bias], options().rename("{i}", "{j}")),
        "LoadOptions: the new name has the placeholder {j}, and the pattern that it renames has none of that name."
    );
    assert_eq!(
        text(SafetensorsFile::from_bytes(file(&[bias])).unwrap().tensor("bias")),
        "the contents: load: there is no tensor 'bias'; there are 'dense/bias'."
    );
}

#[test]
fn dtypes() {
    let half = Sequential::new().add(Dense::new(1));
    half.build([1, 1]).unwrap();
    // Manually set weights are used unchanged.
    let named = |name: &'static str, array| NamedArray { name: name.into(), array };
    let kernel = named("dense/kernel", ndarray::array![[0f32]].into());
    let bias = named("dense/bias", ndarray::array![0f64].into());
    assert_eq!(
        text(half.set_named_arrays(&[kernel, bias])),
        "load: 'dense/bias' is F64 in the weights and F32 in the model. Convert the weights, or make a model of that dtype."
    );
    let reported = load(&[("dense/kernel", "C64", &[3, 2])], LoadOptions::new());
    assert!(reported.starts_with("load: its header cannot be read"), "{reported}");
}

#[test]
fn pytorch() {
    let options = || LoadOptions::new().from_pytorch();
    assert_eq!(
        load(&[("fc1.weight", "F32", &[2, 3]), ("fc1.bias", "F32", &[2])], options()),
        "load: the layer 'dense' (Dense: kernel (3, 2), bias (2)) takes its kernel from PyTorch's 'dense.weight', and the weights \
         hold 'fc1.bias', 'fc1.weight'. Give the module the layer's name, as in LoadOptions::new().rename(\"fc1.{p}\", \
         \"dense.{p}\"), or allow it to be missing."
    );
    assert_eq!(
        load(&[("0.weight", "F32", &[2, 3]), ("2.weight", "F32", &[2, 2])], options()),
        "load: the weights hold 2 modules in a line ('0', '2'), and the model has 1 layers with weights ('dense'). Load the weights \
         of a model with the same layers, or give the modules the layers' names by LoadOptions::rename."
    );
    let reported = load(&[("0.weight", "F32", &[5, 3]), ("0.bias", "F32", &[5])], options());
    assert!(
        reported
            .starts_with("load: 'dense/kernel' is [3, 5] in the weights and [3, 2] in the model."),
        "{reported}"
    );
    let reported = load(&[("0.weight", "F32", &[5]), ("0.bias", "F32", &[5])], options());
    assert!(
        reported.starts_with("load: '0.weight' is [5] in the weights, and the layer 'dense'"),
        "{reported}"
    );
    let flat = Sequential::new().add(Conv2D::new(2, [1, 1])).add(Flatten::new()).add(Dense::new(1));
    let tensors: &[(&str, &str, &[usize])] = &[
        ("0.weight", "F32", &[2, 1, 1, 1]),
        ("0.bias", "F32", &[2]),
        ("2.weight", "F32", &[1, 8]),
        ("2.bias", "F32", &[1]),
    ];
    assert_eq!(
        text(flat.load_safetensors_with(&file(tensors), options())),
        "load: PyTorch flattens channels first, so the rows of 'dense/kernel' depend on what 'flatten' gets, which has seen no \
         input. Call the model once, or use build, before the weights are loaded."
    );
    let gru = Sequential::new().add(Gru::new(1).reset_after(false));
    gru.build([1, 2, 1]).unwrap();
    let tensors: &[(&str, &str, &[usize])] = &[
        ("gru.weight_ih_l0", "F32", &[3, 1]),
        ("gru.weight_hh_l0", "F32", &[3, 1]),
        ("gru.bias_ih_l0", "F32", &[3]),
        ("gru.bias_hh_l0", "F32", &[3]),
    ];
    assert_eq!(
        text(gru.load_safetensors_with(&file(tensors), options())),
        "load: 'gru/gru_cell/bias' is one bias, and PyTorch's GRU has two that cannot be merged. Make the layer with \
         reset_after(true), Keras's default."
    );
    #[derive(Trackable)]
    struct Model {
        attention: MultiHeadAttention,
    }
    let model = Model { attention: MultiHeadAttention::new(1, 2) };
    let x = wgrad::Tensor::zeros([1, 2, 2]).unwrap();
    let _ =
        wgrad::keras::Layer::<wgrad::Tensor>::call(&model.attention, &x, wgrad::keras::INFERENCE)
            .unwrap();
    let reported =
        text(pollster::block_on(model.to_safetensors_with_async(SaveOptions::new().to_pytorch())));
    assert!(reported.contains("cannot be written in PyTorch's form"), "{reported}");
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn files_of_other_formats() {
    let path = std::env::temp_dir().join(format!("wgrad-errors-weights-{}", std::process::id()));
    let name = path.display();
    for (bytes, what) in [
        (
            &b"\x89HDF\r\n\x1a\n"[..],
            "an HDF5 file, as Keras writes its weights, not a safetensors file. Load it with keras::saving::load_weights, feature \
             `keras-files`.",
        ),
        (
            b"PK\x03\x04....",
            "a ZIP archive, as NumPy's .npz, Keras's .keras and PyTorch's .pt files are, not a safetensors file. Load .npz with \
             weights::load_npz (feature `npy`), .keras with keras::saving::load_model (feature `keras-files`), and write a .pt file \
             again with safetensors.torch.save_file.",
        ),
        (
            b"\x93NUMPY\x01\0",
            "a NumPy array, not a safetensors file. Load it with data::npy::load, feature `npy`.",
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(text(dense().load_weights(&path)), format!("{name}: load: this is {what}"));
    }
    std::fs::remove_file(&path).unwrap();
    let index = path.with_extension("index.json");
    assert_eq!(
        text(dense().save_weights(&index)),
        format!(
            "{}: save: this is the name of an index, which is written next to the files if there are several. Save \
             as NAME.safetensors.",
            index.display()
        )
    );
}

#[cfg(feature = "keras-files")]
#[test]
fn files_of_keras() {
    use wgrad::keras::saving::{self, LoadModelOptions};
    let from = |bytes: &[u8]| {
        text(saving::load_model_from_bytes(bytes, LoadModelOptions::new()).map(|_| ()))
    };
    assert_eq!(
        from(b"no archive"),
        "the contents: load_model: it has no end record. It is damaged or not a .keras file; take another copy."
    );
    assert_eq!(
        text(saving::weights_from_h5(&dense(), b"PK\x03\x04")),
        "the contents: load: it does not begin as an HDF5 file does. It is damaged or not an HDF5 file that is \
         supported; take another copy, or save it again with Keras."
    );
    let h5 = pollster::block_on(saving::weights_to_h5_async(&dense())).unwrap();
    assert_eq!(
        from(&h5),
        "the contents: load_model: this HDF5 file has only weights and no model. Make the model, and load them with \
         saving::load_weights."
    );
    let wide = Sequential::new().add(Dense::new(5));
    wide.build([1, 3]).unwrap();
    assert_eq!(
        text(saving::weights_from_h5(&wide, &h5)),
        "the contents: load: 'layers/dense/vars/0' is [3, 2] of F32 in the file, and 'dense/kernel' [3, 5] in the \
         model. Build the model from the same layers in the same order."
    );
    assert_eq!(
        text(saving::weights_from_h5(&Sequential::new().add(Flatten::new()), &h5)),
        "the contents: load: the file holds 'layers/dense/vars/0' [3, 2] of F32, and the Sequential has no such \
         variable; it has nothing. Build the model from the same layers in the same order."
    );
}
