//! Tokenizers: text to tokens and back, batches, streams, and files that are damaged.

use wgrad::keras::applications::{Bert, BertConfig};
use wgrad::keras::{INFERENCE, Layer};
use wgrad::text::{EncodeOptions, Tokenizer};

use crate::support::folder::Folder;

/// Like BERT's: lower case, word pieces, special tokens.
pub const BERT: &str = r###"{
    "version": "1.0",
    "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
    "padding": {"strategy": {"Fixed": 4000000000}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "[PAD]"},
    "added_tokens": [
        {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
    ],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
        "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "play": 4, "##ing": 5, "##ed": 6, "the": 7, "cat": 8, "!": 9}}
}"###;

/// Like GPT-2's: bytes as characters, and pairs of them.
pub fn gpt2() -> String {
    // The table of GPT-2: bytes that can be printed stand for themselves, others for characters from 256 on.
    let mut vocab = serde_json::Map::new();
    let mut next = 256;
    for byte in 0..=255u32 {
        let printed = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let c = char::from_u32(if printed { byte } else { next }).unwrap();
        next += u32::from(!printed);
        vocab.insert(c.to_string(), byte.into());
    }
    for (at, token) in ["he", "ll", "hell", "hello", "Ġw"].into_iter().enumerate() {
        vocab.insert(token.into(), (256 + at).into());
    }
    vocab.insert("<|endoftext|>".into(), 261.into());
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ w"];
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [{"id": 261, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}
    })
    .to_string()
}

#[test]
fn texts_become_pieces_of_words() {
    let tokenizer = Tokenizer::from_bytes(BERT).unwrap();
    assert_eq!(tokenizer.vocab_size(), 10);
    assert_eq!(tokenizer.encode("The CAT played!").unwrap(), [2, 7, 8, 4, 6, 9, 3]);
    assert_eq!(tokenizer.encode("the dog").unwrap(), [2, 7, 1, 3]);
    assert_eq!(tokenizer.decode(&[2, 7, 8, 4, 6, 9, 3]).unwrap(), "the cat played!");
    assert_eq!(tokenizer.token_to_id("##ing"), Some(5));
    assert_eq!(tokenizer.id_to_token(5).unwrap(), "##ing");
    assert_eq!((tokenizer.pad_id(), tokenizer.unknown_id()), (0, Some(1)));
    let bare = EncodeOptions::new().special_tokens(false);
    assert_eq!(tokenizer.encode_with("the cat", &bare).unwrap(), [7, 8]);
    assert_eq!(tokenizer.encode("").unwrap(), [2, 3]);
}

#[test]
fn batches_are_filled_up_and_cut() {
    let tokenizer = Tokenizer::from_bytes(BERT).unwrap();
    let batch = tokenizer.encode_batch(&["the cat", "cat"], &EncodeOptions::new()).unwrap();
    assert_eq!(batch.shape, [2, 4]);
    assert_eq!(batch.ids, [2, 7, 8, 3, 2, 8, 3, 0]);
    assert_eq!(batch.mask, [1, 1, 1, 1, 1, 1, 1, 0]);
    let options = EncodeOptions::new().max_length(4).multiple_of(8);
    let pairs = [("the cat playing", "the"), ("cat", "cat")];
    let batch = tokenizer.encode_pairs(&pairs, &options.clone().max_length(6)).unwrap();
    assert_eq!(batch.shape, [2, 8]);
    assert_eq!(batch.ids, [2, 7, 8, 3, 7, 3, 0, 0, 2, 8, 3, 8, 3, 0, 0, 0]);
    assert_eq!(batch.kinds, [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]);
    let cut = tokenizer.encode_with("the cat the cat the cat", &options).unwrap();
    assert_eq!(cut, [2, 7, 8, 3]);
    let none = tokenizer.encode_batch(&[""; 0], &EncodeOptions::new()).unwrap();
    assert_eq!((none.shape, none.ids.len()), ([0, 0], 0));
    let error = tokenizer.encode_with("the", &EncodeOptions::new().max_length(2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tokenizer: max_length is 2, and there are 2 special tokens; it must be at least 3."
    );
    // What fills up does not change the results.
    let config = BertConfig::new().vocab_size(10).hidden_size(8).num_hidden_layers(1);
    let bert = Bert::new(config.num_attention_heads(2).intermediate_size(16)).unwrap();
    let features = |texts: &[&str], options: EncodeOptions| {
        let inputs = tokenizer.encode_batch(texts, &options).unwrap().tensors().unwrap();
        let [_, pooled] = bert.call(&inputs[..], INFERENCE).unwrap();
        pooled.to_vec::<f32>().unwrap()
    };
    let both = features(&["the cat", "cat"], EncodeOptions::new().multiple_of(16));
    let one = features(&["cat"], EncodeOptions::new());
    assert!(both[8..].iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-5), "{both:?} {one:?}");
}

#[test]
fn bytes_and_pairs_come_back_as_text() {
    let tokenizer = Tokenizer::from_bytes(gpt2()).unwrap();
    assert_eq!(tokenizer.encode("hello world").unwrap()[..2], [259, 260]);
    for text in ["hello world", "naïve café", "日本語 🦀!", "\t tabs\n", ""] {
        let tokens = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.decode(&tokens).unwrap(), text);
        // Token by token, nothing is lost, and no half of a character is shown.
        let mut stream = tokenizer.stream();
        let mut whole = String::new();
        for token in tokens {
            let piece = stream.push(token).unwrap();
            assert!(!piece.contains('\u{FFFD}'), "{piece:?}");
            whole += &piece;
        }
        whole += &stream.finish().unwrap();
        assert_eq!(whole, text);
    }
    assert_eq!(tokenizer.decode(&[259, 261]).unwrap(), "hello");
    // A hundred times longer.
    let long = "hello world 日本 ".repeat(1000);
    assert_eq!(tokenizer.decode(&tokenizer.encode(&long).unwrap()).unwrap(), long);
}

#[test]
fn broken_characters_do_not_stop_a_stream() {
    let tokenizer = Tokenizer::from_bytes(gpt2()).unwrap();
    let mut stream = tokenizer.stream();
    let mut text = String::new();
    // The first byte of a character, again and again, and then words.
    for token in std::iter::repeat_n(0xE6, 10_000).chain([259, 260]) {
        text += &stream.push(token).unwrap();
    }
    text += &stream.finish().unwrap();
    assert!(text.ends_with("hello w"), "{:?}", &text[text.len() - 30..]);
    let error = stream.push(5000).unwrap_err().to_string();
    assert_eq!(
        error,
        "tokenizer: there is no token 5000; the vocabulary has 262. Use the tokenizer that was published with the network."
    );
    assert_eq!(stream.push(259).unwrap(), "hello");
}

#[test]
fn words_between_tokens_keep_their_spaces() {
    let tokenizer = Tokenizer::from_bytes(BERT).unwrap();
    let mut stream = tokenizer.stream();
    let pieces: Vec<String> = [2, 7, 8, 4, 6, 3].map(|token| stream.push(token).unwrap()).into();
    assert_eq!(pieces.concat() + &stream.finish().unwrap(), "the cat played");
}

#[test]
fn unknown_words_can_be_errors() {
    let tokenizer = Tokenizer::from_bytes(BERT).unwrap();
    let strict = EncodeOptions::new().refuse_unknown(true);
    assert_eq!(tokenizer.encode_with("the cat", &strict).unwrap(), [2, 7, 8, 3]);
    assert_eq!(
        tokenizer.encode_with("the dog", &strict).unwrap_err().to_string(),
        "tokenizer: the word at bytes 4 to 7 is not in the vocabulary. Write it in another way, or leave refuse_unknown false, \
         and it becomes the token 1."
    );
    // Without a token for them, they always are.
    let words = r#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}}"#;
    let error = Tokenizer::from_bytes(words).unwrap().encode("a b").unwrap_err().to_string();
    assert!(
        error.starts_with("tokenizer: ") && error.contains("take another copy of tokenizer.json"),
        "{error}"
    );
    let pairs = r#"{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}"#;
    let tokenizer = Tokenizer::from_bytes(pairs).unwrap();
    assert_eq!(tokenizer.encode("aba").unwrap(), [2, 0]);
    assert_eq!(
        tokenizer.encode("abç").unwrap_err().to_string(),
        "tokenizer: the vocabulary has no token for 'ç', and none for what is unknown. Replace the character, or use the \
         tokenizer that was published with the network."
    );
}

/// What a file must never do: panic, or not end.
fn survives(file: &[u8]) -> Option<String> {
    match Tokenizer::from_bytes(file) {
        Err(error) => Some(error.to_string()),
        Ok(tokenizer) => {
            let _ = tokenizer.encode("the cat played! naïve 日本 \u{0}");
            let _ = tokenizer.encode_batch(&["the", ""], &EncodeOptions::new().max_length(4));
            let _ = tokenizer.decode(&[0, 1, 2, 3, 4]);
            let mut stream = tokenizer.stream();
            let _ = (0..9).map(|token| stream.push(token)).collect::<Vec<_>>();
            None
        }
    }
}

#[test]
fn damaged_files_are_errors() {
    let remedy = "It is damaged or not a tokenizer.json of Hugging Face's tokenizers, or of a newer version of them; take another \
                  copy.";
    for wrong in ["", "{", "[]", "null", "{}", "{\"model\": 5}", "\u{FEFF}{}", "not json"] {
        let error = survives(wrong.as_bytes()).unwrap();
        assert!(error.starts_with("tokenizer: ") && error.ends_with(remedy), "{wrong}: {error}");
    }
    assert!(survives(&[0xFF; 1000]).is_some());
    assert!(survives("[".repeat(1_000_000).as_bytes()).is_some());
    let folder = Folder::new("tokens-damaged");
    let path = folder.write("tokenizer.json", b"{}");
    let error = Tokenizer::from_file(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()) && error.ends_with(remedy), "{error}");
    let error = Tokenizer::from_file(folder.path("none.json")).unwrap_err().to_string();
    assert!(error.contains("none.json"), "{error}");
}

#[test]
fn no_file_makes_the_program_panic() {
    let files = [BERT.to_string(), gpt2()];
    for file in &files {
        for length in (0..file.len()).step_by(file.len() / 40) {
            if file.is_char_boundary(length) {
                assert!(survives(&file.as_bytes()[..length]).is_some());
            }
        }
    }
    // Each value in turn becomes one of another type or size.
    let wrong = ["null", "-1", "1e30", "4294967295", "\"\"", "[]", "{}", "true", "\"(a+)+$\""];
    let file: serde_json::Value = serde_json::from_str(BERT).unwrap();
    let mut paths = Vec::new();
    places(&file, String::new(), &mut paths);
    assert!(paths.len() > 50);
    for path in &paths {
        for wrong in wrong {
            let mut changed = file.clone();
            *changed.pointer_mut(path).unwrap() = serde_json::from_str(wrong).unwrap();
            survives(changed.to_string().as_bytes());
        }
    }
    // Parts on which the library panics or might not end.
    for part in [
        r#""pre_tokenizer": {"type": "FixedLength", "length": 0}"#,
        r#""pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false}"#,
        r#""pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false}"#,
        r#""normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "aa"}"#,
        r#""normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": "aa"}"#,
        r#""normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}"#,
        r#""normalizer": {"type": "Precompiled", "precompiled_charsmap": "////////////////////"}"#,
        r#""normalizer": {"type": "Prepend", "prepend": ""}"#,
        r#""decoder": {"type": "Strip", "content": "a", "start": 4000000000, "stop": 4000000000}"#,
        r#""decoder": {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": true}"#,
        r#""post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}],
            "pair": [], "special_tokens": {}}"#,
    ] {
        let words = r#""model": {"type": "WordLevel", "vocab": {"the": 4294967295, "cat": 1}, "unk_token": "cat"}"#;
        survives(format!(r#"{{"version": "1.0", {part}, {words}}}"#).as_bytes());
    }
    for model in [
        r#"{"type": "Unigram", "unk_id": 9, "vocab": [["a", 0.0]]}"#,
        r#"{"type": "Unigram", "unk_id": null, "vocab": [["a", -1.0], ["", 2.0]]}"#,
        r#"{"type": "Unigram", "unk_id": 0, "vocab": []}"#,
        r#"{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}"#,
        r#"{"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}"#,
        r#"{"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "b"}"#,
        r#"{"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 7.0}"#,
        r#"{"type": "WordPiece", "vocab": {}, "unk_token": "x", "continuing_subword_prefix": "", "max_input_chars_per_word": 0}"#,
    ] {
        survives(format!(r#"{{"version": "1.0", "model": {model}}}"#).as_bytes());
    }
}

/// The paths of all values in `value`.
fn places(value: &serde_json::Value, path: String, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| {
            places(value, format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found)
        }),
        serde_json::Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| places(value, format!("{path}/{at}"), found)),
        _ => {}
    }
    if !path.is_empty() {
        found.push(path);
    }
}
