//! Weights under the names of others, and files that do not fit.

use std::collections::BTreeMap;

use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, Gpt2, Gpt2Config, Vit, VitConfig, bert,
    lenet, resnet, vit,
};
use wgrad::keras::{INFERENCE, Layer};
use wgrad::{Tensor, Trackable};

use crate::support::folder::Folder;

/// A safetensors file of these names and shapes; element i of tensor k is `sin(i + k) / 8`.
fn file(folder: &Folder, name: &str, tensors: &[(String, Vec<usize>)]) -> std::path::PathBuf {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .enumerate()
        .map(|(k, (_, shape))| {
            let value = |i: usize| ((i + k) as f32).sin() / 8.0;
            (0..shape.iter().product()).flat_map(|i| value(i).to_le_bytes()).collect()
        })
        .collect();
    let views: BTreeMap<&str, safetensors::tensor::TensorView<'_>> = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, shape), bytes)| {
            let of = safetensors::Dtype::F32;
            (&**name, safetensors::tensor::TensorView::new(of, shape.clone(), bytes).unwrap())
        })
        .collect();
    folder.write(name, &safetensors::serialize(views, None).unwrap());
    folder.path(name)
}

fn named(list: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
    list.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect()
}

fn lenet_tensors() -> Vec<(String, Vec<usize>)> {
    named(&[
        ("conv1.weight", &[6, 1, 5, 5]),
        ("conv1.bias", &[6]),
        ("conv2.weight", &[16, 6, 5, 5]),
        ("conv2.bias", &[16]),
        ("fc1.weight", &[120, 400]),
        ("fc1.bias", &[120]),
        ("fc2.weight", &[84, 120]),
        ("fc2.bias", &[84]),
        ("fc3.weight", &[10, 84]),
        ("fc3.bias", &[10]),
    ])
}

#[test]
fn kernels_are_transposed_and_features_reordered() {
    let folder = Folder::new("applications-lenet");
    let path = file(&folder, "lenet.safetensors", &lenet_tensors());
    let options = ApplicationOptions::new().classes(10).weights(&path);
    let model = lenet::lenet(&options).unwrap();
    let of = |name: &str| {
        let found = model.named_variables().into_iter().find(|(known, _)| known == name);
        found.unwrap().1.read().to_vec::<f32>().unwrap()
    };
    // PyTorch's [o, i, h, w] is [h, w, i, o] here: element (2, 3, 4, 5) of the second kernel.
    let there = ((5 * 6 + 4) * 5 + 2) * 5 + 3;
    assert_eq!(
        of("conv2/kernel")[((2 * 5 + 3) * 6 + 4) * 16 + 5],
        ((there + 2) as f32).sin() / 8.0
    );
    // The feature at row 1, column 2, channel 3 of 5 x 5 x 16 is number 3 * 25 + 1 * 5 + 2 there.
    let there = 7 * 400 + 3 * 25 + 5 + 2;
    assert_eq!(of("fc1/kernel")[((5 + 2) * 16 + 3) * 120 + 7], ((there + 4) as f32).sin() / 8.0);
    // Without top, the rest is ignored.
    let options = ApplicationOptions::new().include_top(false).input_shape([28, 28, 1]);
    let bare = lenet::lenet(&options.weights(&path)).unwrap();
    assert_eq!(bare.variables()[0].read().to_vec::<f32>().unwrap(), of("conv1/kernel"));
    // A file of this crate.
    model.save_weights(folder.path("own.safetensors")).unwrap();
    let options = ApplicationOptions::new().classes(10).weights(folder.path("own.safetensors"));
    assert_eq!(
        lenet::lenet(&options).unwrap().get_weights().unwrap(),
        model.get_weights().unwrap()
    );
}

#[test]
fn weights_of_another_network_are_listed() {
    let folder = Folder::new("applications-wrong");
    let mut tensors = lenet_tensors();
    let path = file(&folder, "lenet.safetensors", &tensors);
    let shown = path.display();
    let options = || ApplicationOptions::new().weights(&path);
    // Another number of classes.
    assert_eq!(
        lenet::lenet(&options()).unwrap_err().to_string(),
        format!(
            "{shown}: load: the weights are not those of lenet. Sizes differ: 'fc3.bias' [10] for 'predictions/bias' [1000], \
             'fc3.weight' [10, 84] for 'predictions/kernel' [84, 1000]. Only the classifier differs: build the network with the \
             file's number of classes, or with include_top(false) and a classifier of your own."
        )
    );
    // Another network: ten names of each kind.
    let error = resnet::resnet18(&options()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!(
            "{shown}: load: the weights are not those of resnet18. The file lacks: 'conv1' for 'conv1_conv', 'bn1' for \
             'conv1_bn', 'layer1.0.conv1' for 'conv2_block1_1_conv'"
        )) || error.starts_with(&format!(
            "{shown}: load: the weights are not those of resnet18. The file lacks: 'bn1' for 'conv1_bn'"
        )),
        "{error}"
    );
    assert!(
        error.contains(", and 30 more. It has, and the network does not use: 'conv2.bias' [16]"),
        "{error}"
    );
    assert!(error.ends_with(
        " Load the file into the network from which it was saved, in its publisher's arrangement, or give the names with \
         LoadOptions and load_weights_with."
    ));
    // One tensor too many, one of another size, and one that is missing.
    tensors[2].1 = vec![16, 6, 3, 3];
    tensors[8] = ("extra.weight".into(), vec![2]);
    let path = file(&folder, "odd.safetensors", &tensors);
    let options = ApplicationOptions::new().classes(10).weights(&path);
    assert_eq!(
        lenet::lenet(&options).unwrap_err().to_string(),
        format!(
            "{}: load: the weights are not those of lenet. The file lacks: 'fc3' for 'predictions'. It has, and the network \
             does not use: 'extra.weight' [2]. Sizes differ: 'conv2.weight' [16, 6, 3, 3] for 'conv2/kernel' [5, 5, 6, 16]. \
             Load the file into the network from which it was saved, in its publisher's arrangement, or give the names with \
             LoadOptions and load_weights_with.",
            path.display()
        )
    );
    let missing = ApplicationOptions::new().weights("/nowhere/a.safetensors");
    assert!(lenet::lenet(&missing).unwrap_err().to_string().contains("/nowhere/a.safetensors"));
}

#[test]
fn pytorch_names_are_in_the_tables() {
    let names = resnet::torchvision(18);
    let of =
        |module: &str| names.modules().find(|(name, _)| *name == module).map(|(_, layer)| layer);
    assert_eq!(of("layer3.1.conv2"), Some("conv4_block2_2_conv"));
    assert_eq!(of("layer2.0.downsample.1"), Some("conv3_block1_0_bn"));
    assert_eq!(of("layer1.0.downsample.0"), None);
    assert_eq!(of("fc"), Some("predictions"));
    // Each layer with weights has one module.
    let options = ApplicationOptions::new().arrangement(Arrangement::Torchvision);
    let model = resnet::resnet18(&options.input_shape([32, 32, 3])).unwrap();
    let mut layers: Vec<&str> =
        model.layers().filter(|(_, l)| !l.variables().is_empty()).map(|(name, _)| name).collect();
    let mut listed: Vec<&str> = names.modules().map(|(_, layer)| layer).collect();
    layers.sort_unstable();
    listed.sort_unstable();
    assert_eq!(layers, listed);
}

#[test]
fn query_key_and_value_may_be_one_tensor() {
    let config = || {
        let config = VitConfig::new().image_size(32).hidden_size(8).num_hidden_layers(1);
        config.num_attention_heads(2).intermediate_size(16).classes(3)
    };
    let model = Vit::new(config()).unwrap();
    let bare = |name: &str| format!("encoder.layers.encoder_layer_0.{name}");
    let mut tensors = named(&[
        ("class_token", &[1, 1, 8]),
        ("encoder.pos_embedding", &[1, 5, 8]),
        ("conv_proj.weight", &[8, 3, 16, 16]),
        ("conv_proj.bias", &[8]),
        ("encoder.ln.weight", &[8]),
        ("encoder.ln.bias", &[8]),
        ("heads.head.weight", &[3, 8]),
        ("heads.head.bias", &[3]),
    ]);
    for (name, shape) in [
        ("ln_1.weight", vec![8]),
        ("ln_1.bias", vec![8]),
        ("self_attention.in_proj_weight", vec![24, 8]),
        ("self_attention.in_proj_bias", vec![24]),
        ("self_attention.out_proj.weight", vec![8, 8]),
        ("self_attention.out_proj.bias", vec![8]),
        ("ln_2.weight", vec![8]),
        ("ln_2.bias", vec![8]),
        ("mlp.0.weight", vec![16, 8]),
        ("mlp.0.bias", vec![16]),
        ("mlp.3.weight", vec![8, 16]),
        ("mlp.3.bias", vec![8]),
    ] {
        tensors.push((bare(name), shape));
    }
    let folder = Folder::new("applications-vit");
    let path = file(&folder, "vit.safetensors", &tensors);
    let loaded = Vit::with_weights(config(), &path).unwrap();
    let of = |name: &str| {
        let found = loaded.named_variables().into_iter().find(|(known, _)| known == name);
        found.unwrap().1.read().to_vec::<f32>().unwrap()
    };
    // Tensor 10 holds the rows of query, key and value; row 2, column 5 of the value's kernel is (5, 2) here.
    let there = (16 + 2) * 8 + 5;
    assert_eq!(of("layer/0/attention/value/kernel")[5 * 8 + 2], ((there + 10) as f32).sin() / 8.0);
    assert_eq!(of("layer/0/attention/key/bias")[3], ((8 + 3 + 11) as f32).sin() / 8.0);
    assert_eq!(of("positions")[9], 10f32.sin() / 8.0);
    assert_eq!(model.count_params(), loaded.count_params());
    assert!(vit::timm(&config()).modules().any(|(name, _)| name == "blocks.0.attn.proj"));
    let x = Tensor::ones([1, 32, 32, 3]).unwrap();
    assert_eq!(loaded.call(&x, INFERENCE).unwrap().shape(), [1, 3]);
    // The weights of another transformer.
    let error = Bert::with_weights(BertConfig::new().num_hidden_layers(1), &path).unwrap_err();
    assert!(error.to_string().contains("the weights are not those of BERT. The file lacks: "));
    assert_eq!(bert::transformers(&BertConfig::new()).modules().count(), 4 + 12 * 8 + 1);
}

#[test]
fn kernels_of_gpt_2_are_not_transposed() {
    let config = || Gpt2Config::new().vocab_size(11).n_positions(8).n_embd(4).n_layer(1).n_head(2);
    let mut tensors = named(&[("wte.weight", &[11, 4]), ("wpe.weight", &[8, 4])]);
    for (name, shape) in [
        ("ln_1.weight", vec![4]),
        ("ln_1.bias", vec![4]),
        ("attn.bias", vec![1, 1, 8, 8]),
        ("attn.c_attn.weight", vec![4, 12]),
        ("attn.c_attn.bias", vec![12]),
        ("attn.c_proj.weight", vec![4, 4]),
        ("attn.c_proj.bias", vec![4]),
        ("ln_2.weight", vec![4]),
        ("ln_2.bias", vec![4]),
        ("mlp.c_fc.weight", vec![4, 16]),
        ("mlp.c_fc.bias", vec![16]),
        ("mlp.c_proj.weight", vec![16, 4]),
        ("mlp.c_proj.bias", vec![4]),
    ] {
        tensors.push((format!("h.0.{name}"), shape));
    }
    tensors.extend(named(&[("ln_f.weight", &[4]), ("ln_f.bias", &[4])]));
    let folder = Folder::new("applications-gpt2");
    let path = file(&folder, "model.safetensors", &tensors);
    let model = Gpt2::with_weights(config(), &path).unwrap();
    let kernel = model.named_variables().into_iter().find(|(n, _)| n == "h/0/attn/c_attn/kernel");
    // Tensor 5, element (1, 3).
    let values = kernel.unwrap().1.read().to_vec::<f32>().unwrap();
    assert_eq!(values[12 + 3], ((12 + 3 + 5) as f32).sin() / 8.0);
    // The same with the prefix and the head of the network for text.
    for (name, _) in &mut tensors {
        *name = format!("transformer.{name}");
    }
    tensors.push(("lm_head.weight".into(), vec![11, 4]));
    let path = file(&folder, "head.safetensors", &tensors);
    let again = Gpt2::with_weights(config(), &path).unwrap();
    assert_eq!(again.get_weights().unwrap(), model.get_weights().unwrap());
}
