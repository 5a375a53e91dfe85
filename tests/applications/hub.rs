//! Published networks in folders: the architecture follows from `config.json`, and what does not fit is an error.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use wgrad::hub::{self, HubOptions, Network};
use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, Gpt2, Gpt2Config, Llama, LlamaConfig, Vit,
    VitConfig, WeightNames, bert, llama, resnet, vit,
};
use wgrad::keras::{INFERENCE, Layer};
use wgrad::weights::SaveOptions;
use wgrad::{Tensor, Trackable};

use crate::support::folder::Folder;

pub const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 262, "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2,
    "eos_token_id": 261}"#;

pub fn gpt2() -> Gpt2 {
    Gpt2::new(Gpt2Config::from_json(GPT2).unwrap()).unwrap()
}

/// Writes the weights of `model` with a publisher's names; `rename` changes the last part of each.
fn publish(
    model: &impl Trackable,
    names: &WeightNames,
    prefix: &str,
    rename: impl Fn(&str) -> String,
    path: &Path,
) {
    let own = path.with_extension("own");
    model.save_weights_with(&own, SaveOptions::new().to_pytorch()).unwrap();
    let bytes = std::fs::read(&own).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let layers: BTreeMap<String, &str> =
        names.modules().map(|(module, layer)| (layer.replace('/', "."), module)).collect();
    let tensors: BTreeMap<String, TensorView<'_>> = file
        .tensors()
        .into_iter()
        .map(|(name, tensor)| {
            let name = match (layers.get(&name), name.rsplit_once('.')) {
                (Some(module), _) => module.to_string(),
                (None, Some((layer, weight))) => format!("{}.{}", layers[layer], rename(weight)),
                (None, None) => panic!("{name}"),
            };
            let head = name.starts_with("classifier") || name.starts_with("lm_head");
            (if head { name } else { format!("{prefix}{name}") }, tensor)
        })
        .collect();
    std::fs::write(path, safetensors::serialize(tensors, None).unwrap()).unwrap();
    std::fs::remove_file(own).unwrap();
}

fn load(folder: &Folder) -> hub::HubModel {
    hub::load(folder.path(""), HubOptions::new()).unwrap()
}

fn error(folder: &Folder) -> String {
    hub::load(folder.path(""), HubOptions::new()).unwrap_err().to_string()
}

fn weights(model: &dyn Trackable) -> Vec<(String, Vec<f32>)> {
    let values = |(name, variable): (String, wgrad::Variable)| {
        (name, variable.read().to_vec::<f32>().unwrap())
    };
    model.named_variables().into_iter().map(values).collect()
}

#[test]
fn the_description_chooses_the_network() {
    let folder = Folder::new("hub-gpt2");
    folder.write("config.json", GPT2.as_bytes());
    let model = gpt2();
    model.save_weights(folder.path("model.safetensors")).unwrap();
    let loaded = load(&folder);
    assert!(matches!(loaded.network, Network::Gpt2(_)));
    assert_eq!(loaded.stop_tokens, [261]);
    assert_eq!(loaded.config, GPT2);
    assert_eq!(weights(loaded.network.trackable()), weights(&model));
    let shown = folder.path("").display().to_string();
    assert_eq!(
        loaded.into_bert().unwrap_err().to_string(),
        format!(
            "hub: {shown}: this is GPT-2, not BERT. Use the function for it, or load the files of another network."
        )
    );

    let folder = Folder::new("hub-bert");
    let config = r#"{"model_type": "bert", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "id2label": {"1": "good", "0": "bad", "10": "ten"}}"#;
    folder.write("config.json", config.as_bytes());
    let sizes = BertConfig::from_json(config).unwrap();
    let model = Bert::new(sizes.clone()).unwrap();
    let names = bert::transformers(&sizes);
    let path = folder.path("model.safetensors");
    publish(&model, &names, "bert.", str::to_string, &path);
    assert_eq!(load(&folder).labels, ["bad", "good", "ten"]);
    assert_eq!(weights(&load(&folder).into_bert().unwrap()), weights(&model));
    // As the first files were written.
    let old = |weight: &str| weight.to_string();
    publish(&model, &names, "", old, &path);
    assert_eq!(weights(&load(&folder).into_bert().unwrap()), weights(&model));

    let folder = Folder::new("hub-llama");
    let config = r#"{"model_type": "llama", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "num_key_value_heads": 1, "eos_token_id": [3, 4], "rope_scaling": null}"#;
    folder.write("config.json", config.as_bytes());
    let sizes = LlamaConfig::from_json(config).unwrap();
    let model = Llama::new(sizes.clone()).unwrap();
    publish(
        &model,
        &llama::transformers(&sizes),
        "model.",
        str::to_string,
        &folder.path("model.safetensors"),
    );
    let loaded = load(&folder);
    assert_eq!(loaded.stop_tokens, [3, 4]);
    assert_eq!(weights(&loaded.into_llama().unwrap()), weights(&model));
}

#[test]
fn bert_has_older_names_of_normalizations() {
    let folder = Folder::new("hub-old-bert");
    let config = r#"{"model_type": "bert", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16}"#;
    folder.write("config.json", config.as_bytes());
    let sizes = BertConfig::from_json(config).unwrap();
    let model = Bert::new(sizes.clone()).unwrap();
    let path = folder.path("model.safetensors");
    publish(&model, &bert::transformers(&sizes), "bert.", str::to_string, &path);
    let bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let old = |name: String| match name.contains("LayerNorm") {
        true => name.replace(".weight", ".gamma").replace(".bias", ".beta"),
        false => name,
    };
    let tensors: BTreeMap<_, _> = file.tensors().into_iter().map(|(n, t)| (old(n), t)).collect();
    std::fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
    assert_eq!(weights(&load(&folder).into_bert().unwrap()), weights(&model));
}

#[test]
fn networks_for_images_have_the_classes_of_the_file() {
    let folder = Folder::new("hub-vit");
    let config = r#"{"model_type": "vit", "image_size": 32, "patch_size": 16, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16}"#;
    folder.write("config.json", config.as_bytes());
    let sizes = VitConfig::from_json(config).unwrap().classes(7);
    let model = Vit::new(sizes.clone()).unwrap();
    let path = folder.path("model.safetensors");
    publish(&model, &vit::transformers(&sizes), "vit.", str::to_string, &path);
    let loaded = load(&folder).into_vit().unwrap();
    assert_eq!(loaded.config().classes, 7);
    assert_eq!(weights(&loaded), weights(&model));
    let sizes = sizes.include_top(false);
    let model = Vit::new(sizes.clone()).unwrap();
    publish(&model, &vit::transformers(&sizes), "", str::to_string, &path);
    assert_eq!(weights(&load(&folder).into_vit().unwrap()), weights(&model));

    // A ResNet18 of timm, and the same of Hugging Face.
    let options = ApplicationOptions::new().arrangement(Arrangement::Torchvision).classes(5);
    let model = resnet::resnet18(&options).unwrap();
    let x = Tensor::ones([1, 64, 64, 3]).unwrap();
    for (config, names, prefix) in [
        (r#"{"architecture": "resnet18", "num_classes": 5}"#, resnet::torchvision(18), ""),
        (
            r#"{"model_type": "resnet", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic",
                "embedding_size": 64, "hidden_act": "relu", "downsample_in_first_stage": false}"#,
            resnet::transformers(18),
            "resnet.",
        ),
    ] {
        let folder = Folder::new("hub-resnet");
        folder.write("config.json", config.as_bytes());
        publish(&model, &names, prefix, str::to_string, &folder.path("model.safetensors"));
        let loaded = load(&folder).into_functional().unwrap();
        assert_eq!(weights(&loaded), weights(&model));
        assert_eq!(loaded.call(&x, INFERENCE).unwrap().shape(), [1, 5]);
        // As a file of Keras, which a page loads, too.
        #[cfg(feature = "keras-files")]
        {
            let path = folder.path("resnet.keras");
            loaded.save(&path).unwrap();
            let again = wgrad::keras::saving::load_model(&path).unwrap().functional().unwrap();
            let values = |model: &wgrad::keras::Functional| {
                model.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap()
            };
            assert_eq!(values(&again), values(&loaded));
        }
    }
    let modules = |layers| resnet::transformers(layers).modules().count();
    assert_eq!((modules(34), modules(50)), (36 + 36 + 1, 53 + 53 + 1));
    let folder = Folder::new("hub-resnet-odd");
    folder.write("config.json", br#"{"model_type": "resnet", "depths": [3, 4, 23, 3]}"#);
    folder.write("model.safetensors", b"");
    assert!(
        error(&folder).contains("this ResNet has other sizes than ResNet18, 34 and 50. Networks")
    );
}

#[test]
fn parts_and_their_index_are_one_network() {
    let folder = Folder::new("hub-parts");
    folder.write("config.json", GPT2.as_bytes());
    let model = gpt2();
    let options = SaveOptions::new().max_shard_size(10_000);
    model.save_weights_with(folder.path("model.safetensors"), options).unwrap();
    assert!(!folder.path("model.safetensors").exists());
    assert_eq!(weights(&load(&folder).into_gpt2().unwrap()), weights(&model));
    // A part that is missing, and one that is elsewhere.
    let index = folder.path("model.safetensors.index.json");
    let text = std::fs::read_to_string(&index).unwrap();
    for outside in ["../outside.safetensors", "/etc/passwd", "..", "a\\\\b", "C:x", ""] {
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["weight_map"]["wte/embeddings"] = outside.replace("\\\\", "\\").into();
        folder.write("model.safetensors.index.json", json.to_string().as_bytes());
        let error = error(&folder);
        assert!(error.contains("which is not a plain file name"), "{error}");
    }
    folder.write("model.safetensors.index.json", text.as_bytes());
    std::fs::remove_file(folder.path("model-00001-of-00002.safetensors"))
        .or_else(|_| std::fs::remove_file(folder.path("model-00001-of-00003.safetensors")))
        .unwrap();
    assert!(error(&folder).contains("model-00001-of-0000"), "{}", error(&folder));
}

#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new("hub-missing");
    let shown = folder.path("").display().to_string();
    assert_eq!(
        error(&folder),
        format!(
            "hub: {shown}: there is no config.json, which says what the network is; it is empty. Take it from where the weights \
             were published; to load weights without it, call with_weights of their network."
        )
    );
    folder.write("config.json", GPT2.as_bytes());
    folder.write("pytorch_model.bin", b"");
    assert_eq!(
        error(&folder),
        format!(
            "hub: {shown}: there is no model.safetensors or model.safetensors.index.json; it has config.json, \
             pytorch_model.bin. If there is a pytorch_model.bin, load it with PyTorch and write it with \
             safetensors.torch.save_file."
        )
    );
    folder.write("model.safetensors", b"");
    assert!(error(&folder).contains("model.safetensors: load: the file has 0 bytes"));
    for (place, what) in [
        ("nowhere/at/all", "there is no such folder. Pass a folder"),
        ("", "there is no such folder. Pass a folder"),
        ("../../owner", "there is no such folder. Pass a folder"),
        ("Cargo.toml", "this is a file; pass the folder"),
    ] {
        let error = hub::load(place, HubOptions::new()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("hub: {place}: {what}")), "{error}");
    }
}

#[test]
fn descriptions_of_other_networks_are_errors() {
    let folder = Folder::new("hub-others");
    gpt2().save_weights(folder.path("model.safetensors")).unwrap();
    let shown = folder.path("config.json").display().to_string();
    let of = |config: &str| {
        folder.write("config.json", config.as_bytes());
        error(&folder)
    };
    let known = "Networks with \"model_type\" bert, gpt2, llama, vit and resnet are known, and timm's with \"architecture\" \
                 resnet18, resnet34, resnet50 and vit_{tiny,small,base,large}_patch{16,32}_{224,384}";
    assert_eq!(
        of(r#"{"model_type": "t5"}"#),
        format!(
            "hub: {shown}: there is no network of the type \"t5\" here. {known}; onnx::load and saved_model::load run others."
        )
    );
    assert_eq!(
        of("{}"),
        format!(
            "hub: {shown}: it has neither \"model_type\" nor \"architecture\", so it does not say what the network is. {known}."
        )
    );
    assert!(
        of(r#"{"architecture": "vit_giant_patch14_224"}"#)
            .contains("there is no network \"vit_giant_")
    );
    for broken in ["", "{", "[]", "{\"model_type\": 5}", "\u{1F600}"] {
        assert!(of(broken).starts_with(&format!("hub: {shown}: it ")), "{}", of(broken));
    }
    folder.write("config.json", &[0xFF; 10]);
    assert!(error(&folder).contains("it is not UTF-8 text"));
    folder.write("config.json", &vec![b' '; (16 << 20) + 1]);
    assert!(error(&folder).contains("it has more than 16 MiB"));
    // The weights are those of another network, or of other sizes.
    let error =
        of(r#"{"model_type": "bert", "num_hidden_layers": 1, "vocab_size": 30, "hidden_size": 8,
        "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 8}"#);
    assert!(error.contains("the weights are not those of BERT. The file lacks: '"), "{error}");
    let error = of(&GPT2.replace("\"n_embd\": 16", "\"n_embd\": 32"));
    assert!(error.contains("model.safetensors") && error.contains("'wte/embeddings'"), "{error}");
    assert!(error.contains("[262, 16]") && error.contains("[262, 32]"), "{error}");
    let error = of(r#"{"model_type": "gpt2", "n_embd": "wide"}"#);
    assert_eq!(
        error,
        format!(
            "hub: {shown}: GPT-2: 'n_embd' in config.json is \"wide\"; it must be a whole number."
        )
    );
}

#[cfg(feature = "tokenizers")]
#[test]
fn a_network_and_its_tokenizer_take_text_and_return_text() {
    use wgrad::keras::applications::{CausalLm, GenerateOptions};
    let folder = Folder::new("hub-text");
    folder.write("config.json", GPT2.as_bytes());
    gpt2().save_weights(folder.path("model.safetensors")).unwrap();
    let without = load(&folder).tokenizer().map(|_| ()).unwrap_err().to_string();
    assert!(without.contains("there is no tokenizer.json, which turns text into tokens. With"));
    folder.write("tokenizer.json", crate::tokens::gpt2().as_bytes());
    let mut model = load(&folder);
    let tokenizer = model.tokenizer.take().unwrap();
    let prompt = tokenizer.encode("hello world").unwrap();
    let options = GenerateOptions::new().max_new_tokens(20).stop_tokens(model.stop_tokens.clone());
    let gpt2 = model.into_gpt2().unwrap();
    let mut stream = tokenizer.stream();
    let (mut text, mut tokens) = (String::new(), Vec::new());
    for token in gpt2.generate(&prompt, options).unwrap() {
        tokens.push(token.unwrap());
        text += &stream.push(tokens[tokens.len() - 1]).unwrap();
    }
    text += &stream.finish().unwrap();
    assert!(!tokens.is_empty());
    if !text.contains('\u{FFFD}') {
        assert_eq!(text, tokenizer.decode(&tokens).unwrap());
    }
    folder.write("tokenizer.json", b"{}");
    assert!(error(&folder).contains("tokenizer.json"));
}
