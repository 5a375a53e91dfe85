//! Decoders: what they keep of earlier tokens gives the same logits, and generating needs no new pipelines and no more memory.

use wgrad::keras::applications::{
    Bert, BertConfig, CausalLm, GenerateOptions, Gpt2, Gpt2Config, KeyValues, Llama, LlamaConfig,
};
use wgrad::keras::{INFERENCE, Layer, TRAINING};
use wgrad::{AdapterKind, Device, GradientTape, Tensor, Trackable};

/// Weights that are large enough for logits to differ.
pub fn widen(model: &impl Trackable) {
    for (at, (name, variable)) in model.named_variables().into_iter().enumerate() {
        let random = wgrad::random::Generator::from_seed(at as u64);
        let value = random.normal(variable.shape()).unwrap().multiply(0.3).unwrap();
        let one = name.ends_with("gamma") || name.ends_with("scale");
        variable.assign(value.add(if one { 1.0 } else { 0.0 }).unwrap()).unwrap();
    }
}

pub fn gpt2(positions: usize) -> Gpt2 {
    let config = Gpt2Config::new().vocab_size(40).n_positions(positions);
    let model = Gpt2::new(config.n_embd(16).n_layer(2).n_head(2)).unwrap();
    widen(&model);
    model
}

pub fn llama() -> Llama {
    let config = LlamaConfig::new().vocab_size(40).hidden_size(32).intermediate_size(48);
    let config = config.num_hidden_layers(2).num_attention_heads(4).num_key_value_heads(2);
    let model = Llama::new(config.max_position_embeddings(32)).unwrap();
    widen(&model);
    model
}

fn near(got: &Tensor, want: &Tensor) {
    assert_eq!(got.shape(), want.shape());
    let (got, want) = (got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-4), "{got:?}\n{want:?}");
}

/// The logits of twelve tokens at once, and in pieces of 5, 1, 1, 4 and 1.
fn pieces_are_the_whole(model: &(impl CausalLm + Layer)) {
    let ids: Vec<i32> = (0..12).map(|i| (7 * i * i + 3) % 40).collect();
    let whole = model.call(&Tensor::from_slice(&ids, [1, 12]).unwrap(), INFERENCE).unwrap();
    let mut past = KeyValues::new(16);
    let mut parts = Vec::new();
    let mut from = 0;
    for tokens in [5, 1, 1, 4, 1] {
        let piece = Tensor::from_slice(&ids[from..from + tokens], [1, tokens]).unwrap();
        parts.push(model.advance(&piece, &mut past, tokens).unwrap());
        from += tokens;
        assert_eq!(past.used(), from);
    }
    near(&wgrad::concat(&parts, 1).unwrap(), &whole);
    let five = Tensor::from_slice(&[1i32; 5], [1, 5]).unwrap();
    let error = model.advance(&five, &mut past, 5).unwrap_err().to_string();
    assert!(
        error.ends_with(
            ": the call has 5 tokens, and there is room for 4 of 16. Pass at least one, and at most as many as there is room for."
        ),
        "{error}"
    );
}

#[test]
fn earlier_tokens_are_not_computed_again() {
    pieces_are_the_whole(&gpt2(16));
    pieces_are_the_whole(&llama());
}

/// The logits after one token of each text are those among all.
fn one_token_of_each(model: &impl CausalLm) {
    let ids: Vec<i32> = (0..10).map(|i| (7 * i * i + 3) % 40).collect();
    let ids = Tensor::from_slice(&ids, [2, 5]).unwrap();
    let all = model.extend(&ids, &mut KeyValues::new(16)).unwrap();
    let rows = all.reshape([10, 40]).unwrap().gather(&wgrad::constant([4, 7]).unwrap(), 0).unwrap();
    near(&model.extend_at(&ids, &mut KeyValues::new(16), &[4, 2]).unwrap(), &rows);
    for at in [&[4][..], &[4, 5], &[0, 0, 0]] {
        let error = model.extend_at(&ids, &mut KeyValues::new(16), at).unwrap_err().to_string();
        assert!(error.ends_with("there must be a place below 5 for each text."), "{error}");
    }
}

#[test]
fn a_prompt_needs_the_logits_of_one_token() {
    one_token_of_each(&gpt2(16));
    one_token_of_each(&llama());
    let device = Device::new().unwrap();
    device.scope(|| {
        let words = 20_000;
        let config = Gpt2Config::new().vocab_size(words).n_positions(256).n_embd(16).n_layer(1);
        let model = Gpt2::new(config.n_head(2)).unwrap();
        device.synchronize().unwrap();
        device.reset_memory_stats();
        let before = device.memory_info().current;
        let options = GenerateOptions::new().max_new_tokens(1);
        let mut text = model.generate(&[1; 256], options).unwrap();
        text.next().unwrap().unwrap();
        let most = device.memory_info().peak - before;
        assert!(most < (256 * words * 4 / 4) as u64, "{most} bytes");
    });
}

#[test]
fn greedy_text_is_the_most_probable() {
    let model = gpt2(128);
    // A prompt shorter than the length to which prompts are filled.
    let mut tokens = vec![5u32, 9, 2];
    let generated: Vec<u32> = model
        .generate(&tokens, GenerateOptions::new().max_new_tokens(10))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for token in &generated {
        let ids: Vec<i32> = tokens.iter().map(|token| *token as i32).collect();
        let ids = Tensor::from_slice(&ids, [1, ids.len()]).unwrap();
        let logits = model.call(&ids, INFERENCE).unwrap().to_vec::<f32>().unwrap();
        let last = &logits[logits.len() - 40..];
        let best = (0..40).max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap();
        assert_eq!(*token, best as u32);
        tokens.push(*token);
    }
    // It ends after a stop token, which it returns.
    let stop = generated[3];
    let options = GenerateOptions::new().max_new_tokens(10).stop_tokens([stop]);
    let stopped: Vec<u32> =
        model.generate(&tokens[..3], options).unwrap().map(Result::unwrap).collect();
    let place = generated.iter().position(|token| *token == stop).unwrap();
    assert_eq!(stopped, generated[..=place]);
    // The same seed gives the same text.
    let drawn = |seed| -> Vec<u32> {
        let options = GenerateOptions::new().sample(true).top_k(20).temperature(1.5).seed(seed);
        model.generate(&tokens[..3], options).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn long_texts_need_no_more_memory_and_no_more_pipelines() {
    generates(512, [64, 100, 200]);
}

#[test]
#[ignore = "takes a while: CONTRIBUTING.md has the command"]
fn ten_thousand_tokens_need_no_more_memory_and_no_more_pipelines() {
    // On a CPU, a plan that has run a thousand times is made once more, with larger kernels.
    let cpu = Device::current().unwrap().adapter().kind == AdapterKind::Cpu;
    let first = if cpu { 1_064 } else { 64 };
    generates(10_240, [first, 1_000, 9_100 - first]);
}

/// Generates so many tokens three times, and compares what the device has after each.
fn generates(context: usize, counts: [usize; 3]) {
    // Other tests compile for the default device.
    let device = Device::new().unwrap();
    device.scope(|| {
        let model = gpt2(context);
        let all: usize = counts.iter().sum();
        let options = GenerateOptions::new().max_new_tokens(all);
        let mut text = model.generate(&[1, 2, 3], options).unwrap();
        let [first, middle, last] = counts.map(|count| {
            for _ in 0..count {
                assert!(text.next().unwrap().unwrap() < 40);
            }
            device.synchronize().unwrap();
            device.stats()
        });
        assert_eq!(middle.pipelines, first.pipelines);
        assert_eq!(last.pipelines, first.pipelines);
        assert_eq!(last.plan_misses, middle.plan_misses);
        assert_eq!(last.live_bytes, middle.live_bytes);
        assert_eq!(last.buffers, middle.buffers);
        assert_eq!(text.past().used(), 3 + all - 1);
        assert!(text.next().is_none());
    });
}

#[test]
fn wrong_prompts_are_errors() {
    let model = gpt2(16);
    let error = |prompt: &[u32], new: usize| {
        let options = GenerateOptions::new().max_new_tokens(new);
        model.generate(prompt, options).unwrap_err().to_string()
    };
    assert_eq!(error(&[], 1), "generate: the prompt is empty; it needs at least one token.");
    assert_eq!(
        error(&[3, 40], 1),
        "generate: the prompt has the token 40, and the network knows those below 40."
    );
    assert_eq!(
        error(&[1; 10], 8),
        "generate: the prompt has 10 tokens and 8 are to follow, and the context has room for 16; generate fewer, or shorten \
         the prompt."
    );
    // The last token is not read again.
    let options = GenerateOptions::new().max_new_tokens(7);
    assert_eq!(model.generate(&[1; 10], options).unwrap().count(), 7);
    let ids = Tensor::from_slice(&[0i32; 17], [1, 17]).unwrap();
    assert_eq!(
        Layer::call(&model, &ids, INFERENCE).unwrap_err().to_string(),
        "GPT-2: the tokens are [1, 17], and the network sees 1 to 16. Pass the last ones."
    );
}

#[test]
fn a_step_trains_all_weights() {
    fn check<M: Trackable>(model: &M, call: impl Fn(&M) -> Tensor) {
        let tape = GradientTape::new();
        let loss = call(model).square().unwrap().reduce_mean(()).unwrap();
        let variables = model.trainable_variables();
        for gradient in tape.gradient(&loss, &variables).unwrap() {
            let values: Vec<f32> = gradient.unwrap().to_vec().unwrap();
            assert!(values.iter().all(|x| x.is_finite()));
        }
    }
    let ids = || wgrad::constant([[1, 5, 2], [7, 7, 0]]).unwrap();
    check(&gpt2(8), |model| model.call(&ids(), TRAINING).unwrap());
    check(&llama(), |model| model.call(&ids(), TRAINING).unwrap());
    let config = BertConfig::new().vocab_size(20).hidden_size(8).num_hidden_layers(1);
    let bert = Bert::new(config.num_attention_heads(2).intermediate_size(16)).unwrap();
    check(&bert, |model| {
        let mask = wgrad::constant([[1, 1, 1], [1, 1, 0]]).unwrap();
        let kinds = wgrad::constant([[0, 0, 1], [0, 1, 1]]).unwrap();
        let [x, pooled] = model.call(&[ids(), kinds, mask][..], TRAINING).unwrap();
        x.reduce_mean(1).unwrap().add(&pooled).unwrap()
    });
    // What is masked does not count.
    let call = |last: i32, mask: i32| {
        let ids = wgrad::constant([[3, 4, last]]).unwrap();
        let kinds = wgrad::constant([[0, 0, 0]]).unwrap();
        let mask = wgrad::constant([[1, 1, mask]]).unwrap();
        let [_, pooled] = bert.call(&[ids, kinds, mask][..], INFERENCE).unwrap();
        pooled.to_vec::<f32>().unwrap()
    };
    assert_eq!(call(5, 0), call(6, 0));
    assert_ne!(call(5, 1), call(6, 1));
}

#[test]
fn sizes_are_read_from_config_json() {
    let text = r#"{"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_inner": null, "resid_pdrop": 0.2}"#;
    let config = Gpt2Config::from_json(text).unwrap();
    let wanted = Gpt2Config::new().n_embd(1024).n_layer(24).n_head(16).dropout(0.2);
    assert_eq!(config, wanted);
    let config =
        LlamaConfig::from_json(r#"{"num_attention_heads": 8, "rope_theta": 5e5}"#).unwrap();
    assert_eq!((config.num_key_value_heads, config.rope_theta), (8, 5e5));
    // Newer files have the base elsewhere.
    let text_of =
        |rope: &str| format!(r#"{{"num_attention_heads": 8, "rope_parameters": {rope}}}"#);
    let config = text_of(r#"{"rope_theta": 5e5, "rope_type": "default"}"#);
    assert_eq!(LlamaConfig::from_json(&config).unwrap().rope_theta, 5e5);
    // Variants that this crate does not have would give wrong results.
    let of_llama = |text: &str| LlamaConfig::from_json(text).unwrap_err().to_string();
    assert_eq!(
        of_llama(&text_of(r#"{"rope_type": "llama3"}"#)),
        "LLaMA: 'rope_type' in config.json is \"llama3\", and this network has \"default\", so its results would be wrong. Take \
         weights that were trained with that, or run the network as an ONNX model with onnx::load."
    );
    assert!(
        of_llama(r#"{"attention_bias": true}"#).contains("'attention_bias' in config.json is true")
    );
    assert!(of_llama(r#"{"head_dim": 64}"#).contains("'head_dim' in config.json is 64"));
    let other = Gpt2Config::from_json(r#"{"activation_function": "relu"}"#).unwrap_err();
    assert!(other.to_string().contains("has \"gelu_new\" or \"gelu_pytorch_tanh\", so"), "{other}");
    assert_eq!(
        BertConfig::from_json(text).unwrap_err().to_string(),
        "BERT: config.json is of a network of the type 'gpt2', and this one is 'bert'. Use the files of such a network."
    );
    assert_eq!(
        Gpt2Config::from_json(r#"{"n_embd": "wide"}"#).unwrap_err().to_string(),
        "GPT-2: 'n_embd' in config.json is \"wide\"; it must be a whole number."
    );
}
