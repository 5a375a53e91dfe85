//! Layers for tables and text compute Keras's results: `tests/data/keras/preprocessing.py` wrote the cases.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use wgrad::keras::layers::{
    HashedCrossing, HostInput, HostLayer, IntegerLookup, Layer, host_layer_from_config,
};
use wgrad::keras::{Config, INFERENCE};
use wgrad::{HostArray, HostDType};

pub fn data() -> &'static Value {
    static DATA: OnceLock<Value> = OnceLock::new();
    DATA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras/preprocessing.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    })
}

/// An array of the file.
pub fn array(value: &Value) -> HostArray<'static> {
    let shape: Vec<usize> = serde_json::from_value(value["shape"].clone()).unwrap();
    let values = value["values"].as_array().unwrap();
    let bytes = |of: fn(&Value) -> Vec<u8>| values.iter().flat_map(of).collect::<Vec<u8>>();
    let (dtype, bytes) = match value["dtype"].as_str().unwrap() {
        "string" => {
            let text = |value: &Value| match value.as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => serde_json::from_value(value.clone()).unwrap(),
            };
            let texts: Vec<Vec<u8>> = values.iter().map(text).collect();
            return HostArray::from_strings(shape, texts).unwrap();
        }
        "int64" => (HostDType::I64, bytes(|x| x.as_i64().unwrap().to_le_bytes().to_vec())),
        "int32" => (HostDType::I32, bytes(|x| (x.as_i64().unwrap() as i32).to_le_bytes().to_vec())),
        "float32" => {
            (HostDType::F32, bytes(|x| (x.as_f64().unwrap() as f32).to_le_bytes().to_vec()))
        }
        other => panic!("{other}"),
    };
    HostArray::new(dtype, shape, bytes).unwrap()
}

/// Whether two arrays are equal; floats up to the last digits.
pub fn equal(a: &HostArray<'_>, b: &HostArray<'_>) -> bool {
    let close = |x: &f64, y: &f64| (x - y).abs() <= 1e-6 * y.abs().max(1.0);
    match (a.to_f64(), b.to_f64()) {
        _ if a.dtype() != b.dtype() || a.shape() != b.shape() => false,
        (Some(a), Some(b)) => a.iter().zip(&b).all(|(x, y)| close(x, y)),
        _ => a == b,
    }
}

fn config(case: &Value) -> Config {
    let mut options: Map<String, Value> = case["options"].as_object().unwrap().clone();
    let class = case["class"].as_str().unwrap();
    if class == "Discretization" {
        options.entry("bin_boundaries").or_insert(Value::Null);
    }
    Config::with_options(class, options)
}

#[test]
fn results_are_those_of_keras() {
    let mut wrong = Vec::new();
    let cases = data()["cases"].as_array().unwrap();
    for case in cases {
        let title = format!("{} {}", case["class"].as_str().unwrap(), case["options"]);
        let inputs: Vec<HostArray<'_>> =
            case["inputs"].as_array().unwrap().iter().map(array).collect();
        let wanted = array(&case["output"]);
        if case["class"] == "HashedCrossing" {
            let layer = HashedCrossing::from_config(&config(case)).unwrap();
            let y = layer.call_host(&inputs).unwrap();
            if !equal(&y, &wanted) {
                wrong.push(format!("{title}: {y:?}, not {wanted:?}"));
            }
            continue;
        }
        let layer = host_layer_from_config(&config(case)).unwrap();
        match case["adapt"].as_array().map(Vec::as_slice) {
            None => {}
            Some([one]) => layer.adapt(&array(one)).unwrap(),
            Some(all) => layer.adapt_batches(all.iter().map(|one| Ok(array(one)))).unwrap(),
        }
        let y = layer.apply(&inputs[0]).unwrap_or_else(|error| panic!("{title}: {error}"));
        if !equal(&y, &wanted) {
            wrong.push(format!("{title} {}: {y:?}, not {wanted:?}", case["adapt"]));
        }
        // The layer comes back from its config, with what it has learnt.
        let now = layer.describe().unwrap();
        let copy = host_layer_from_config(&now).unwrap();
        assert_eq!(copy.describe().unwrap(), now, "{title}");
        assert_eq!(copy.apply(&inputs[0]).unwrap(), y, "{title}");
        // Keras writes the same options; it leaves out what it has learnt, which is in other files.
        for (key, value) in case["config"].as_object().unwrap() {
            let learnt = matches!(key.as_str(), "vocabulary" | "idf_weights" | "vocabulary_size");
            // Layers that have no sparse results do not write that.
            let Some(ours) = now.options().get(key) else {
                assert_eq!(value, false, "{title}: {key}");
                continue;
            };
            let close = key == "bin_boundaries"
                && value.as_array().is_some_and(|list| {
                    let ours = ours.as_array().unwrap();
                    let near = |(a, b): (&Value, &Value)| {
                        (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-5
                    };
                    ours.len() == list.len() && ours.iter().zip(list).all(near)
                });
            if !learnt && !close && ours != value {
                wrong.push(format!("{title}: {key} is {ours}, not {value}"));
            }
        }
        if let Some(words) = case["vocabulary"].as_array() {
            let special = words.len() - now.options()["vocabulary"].as_array().map_or(0, Vec::len);
            let ours = now.options()["vocabulary"].as_array().map_or(&[][..], Vec::as_slice);
            if ours != &words[special..] || now.options()["vocabulary_size"] != json!(words.len()) {
                wrong.push(format!("{title}: {ours:?}, not {words:?}"));
            }
        }
    }
    assert!(cases.len() > 140, "{} cases", cases.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn lookups_of_integers_on_the_device_agree_with_the_host() {
    let mut count = 0;
    for case in data()["cases"].as_array().unwrap() {
        let given = &case["options"];
        if case["class"] != "IntegerLookup"
            || given["invert"] == true
            || given["oov_method"] == "farmhash"
        {
            continue;
        }
        let layer = wgrad::keras::layers::layer_from_config(&config(case)).unwrap();
        drop(layer);
        let host = host_layer_from_config(&config(case)).unwrap();
        if let Some([one, ..]) = case["adapt"].as_array().map(Vec::as_slice) {
            host.adapt(&array(one)).unwrap();
        }
        let layer = wgrad::keras::layers::layer_from_config(&host.describe().unwrap()).unwrap();
        let x = [[12, -5, 7], [0, 0, 12], [i32::MIN, 36, i32::MAX]];
        let wanted = host.apply(&x).unwrap();
        let y = layer.call(&wgrad::constant(x).unwrap(), INFERENCE).unwrap();
        assert_eq!(y.shape(), wanted.shape(), "{given}");
        let y = HostArray::from(
            y.to_array::<f32>()
                .or_else(|_| y.to_array::<i32>().map(|ids| ids.mapv(|id| id as f32)))
                .unwrap(),
        );
        let wanted = HostArray::from(wanted.to_f64().unwrap().mapv(|x| x as f32));
        assert!(equal(&y, &wanted), "{given}: {y:?}, not {wanted:?}");
        count += 1;
    }
    assert!(count > 10, "{count} cases");
}

#[test]
fn unknown_numbers_on_the_device_are_reported() {
    let layer = IntegerLookup::new().vocabulary([1, 2]).num_oov_indices(0).mask_token(9);
    let x = wgrad::constant([[1, 9, 2]]).unwrap();
    assert_eq!(layer.call(&x, INFERENCE).unwrap().to_vec::<i32>().unwrap(), [1, 0, 2]);
    let device = wgrad::Device::new().unwrap();
    let x = device.scope(|| wgrad::constant([[1, 3, 2]])).unwrap();
    let y = layer.call(&x, INFERENCE).unwrap();
    let error =
        device.synchronize().and_then(|()| y.to_vec::<i32>().map(drop)).unwrap_err().to_string();
    assert!(error.contains("a number is not in the vocabulary"), "{error}");
}

#[test]
fn feature_spaces_are_those_of_keras() {
    use wgrad::keras::layers::{Cross, Feature, FeatureSpace, Table};
    let file = &data()["feature_space"];
    let table = |key: &str| {
        let columns = file[key].as_object().unwrap().iter();
        columns.fold(Table::new(), |table, (name, values)| table.column(name, &array(values)))
    };
    let (known, new) = (table("table"), table("new"));
    let kind = IntegerLookup::new().num_oov_indices(2);
    let space = FeatureSpace::new()
        .feature("word", Feature::string_categorical())
        .feature("kind", Feature::new("int32", kind, wgrad::keras::layers::FeatureMode::OneHot))
        .feature("hash", Feature::string_hashed(5))
        .feature("code", Feature::integer_hashed(4))
        .feature("size", Feature::float())
        .feature("share", Feature::float_rescaled(0.1, -1.0))
        .feature("age", Feature::float_normalized())
        .feature("fare", Feature::float_discretized(3))
        .cross(Cross::new(["word", "kind"], 8))
        .cross(Cross::new(["hash", "code"], 6));
    space.adapt(&known).unwrap();
    let y = space.apply(&new).unwrap();
    assert!(equal(&y, &array(&file["concat"])), "{:?}", y.to_f64());
    let parts = space.apply_dict(&new).unwrap();
    for (name, wanted) in file["dict"].as_object().unwrap() {
        let part = parts.get(name).unwrap();
        assert!(equal(part, &array(wanted)), "{name}: {part:?}");
    }
    let first = new.columns().fold(Table::new(), |row, (name, column)| {
        let one = match column.strings() {
            Some(texts) => HostArray::from_strings([], texts[..1].to_vec()).unwrap(),
            None => HostArray::new(column.dtype(), [], column.bytes()[..4].to_vec()).unwrap(),
        };
        row.column(name, &one)
    });
    // It has learnt from batches of 4, whose moments Keras adds up in 32 bits.
    let one = space.apply(&first).unwrap();
    assert!(equal(&one, &array(&file["one"])), "{:?}", one.to_f64());
    #[cfg(feature = "keras-files")]
    {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras/feature_space_concat.keras");
        let loaded = FeatureSpace::load(path).unwrap();
        assert!(equal(&loaded.apply(&new).unwrap(), &array(&file["concat"])));
        let again = FeatureSpace::from_keras(&loaded.to_keras().unwrap()).unwrap();
        assert_eq!(again.apply(&new).unwrap(), loaded.apply(&new).unwrap());
        again.adapt(&known).unwrap();
    }
}

#[test]
fn feature_spaces_say_which_column_is_wrong() {
    use wgrad::keras::layers::{Cross, Feature, FeatureSpace, Table};
    let space = FeatureSpace::new()
        .feature("word", Feature::string_categorical())
        .feature("age", Feature::float_normalized());
    let of = |error: wgrad::Result<()>| error.unwrap_err().to_string();
    let words = Table::new().column("word", &["a", "b"]);
    assert_eq!(
        of(space.adapt(&words)),
        "FeatureSpace: the table has no column 'age'; it has word. Add it, or leave out the feature."
    );
    assert!(of(space.adapt(&Table::new())).contains("it has none"));
    let ages = |ages: &[f32]| words.clone().column("age", ages);
    assert_eq!(
        of(space.adapt(&ages(&[1.0, f32::NAN]))),
        "FeatureSpace: column 'age': value 1 of a batch for adapt is NaN, which has no mean. Remove missing values first."
    );
    assert!(
        of(space.apply(&ages(&[1.0, 2.0])).map(drop))
            .contains("column 'age': the feature learns from data, and has not yet")
    );
    let none = Table::new().column("word", &Vec::<String>::new()).column("age", &Vec::<f32>::new());
    assert!(
        of(space.adapt(&none)).contains("column 'word': StringLookup: adapt was given no words")
    );
    space.adapt(&ages(&[1.0, 2.0])).unwrap();
    assert!(
        of(space.apply(&ages(&[1.0])).map(drop)).contains("'age' has 1 rows, and 'word' has 2")
    );
    let numbers = Table::new().column("word", &[1, 2]).column("age", &[1.0, 2.0]);
    assert!(
        of(space.apply(&numbers).map(drop))
            .contains("column 'word': StringLookup: the input [2, 1] is int32")
    );
    let crossed =
        FeatureSpace::new().feature("age", Feature::float()).cross(Cross::new(["age", "sex"], 4));
    assert!(
        of(crossed.adapt(&ages(&[1.0, 2.0])))
            .contains("the cross age_X_sex names 'sex', which is no feature; there are age")
    );
    #[cfg(feature = "keras-files")]
    {
        assert!(
            FeatureSpace::from_keras(b"PK").unwrap_err().to_string().contains("not a .keras file")
        );
    }
}

fn error<X: HostInput + ?Sized>(layer: &impl HostLayer, x: &X) -> String {
    layer.apply(x).unwrap_err().to_string()
}

#[test]
fn errors_say_what_happened() {
    use wgrad::keras::layers::{
        Discretization, Hashing, OutputMode, StringLookup, TextVectorization,
    };
    let layer = StringLookup::new().vocabulary(["a", "b"]).num_oov_indices(0);
    assert_eq!(
        error(&layer, &["a", "no"]),
        "StringLookup: \"no\" is not in the vocabulary, and num_oov_indices is 0. Add the word, or set num_oov_indices to 1 or more."
    );
    assert_eq!(
        error(&layer, &[1, 2]),
        "StringLookup: the input [2] is int32; it must be strings. Convert numbers to strings, or take a layer for integers."
    );
    let twice = StringLookup::new().vocabulary(["a", "b", "a"]);
    assert_eq!(
        error(&twice, "a"),
        "StringLookup: the vocabulary has \"a\" at 0 and again at 2; each word must be there once. Remove repeated words."
    );
    let inside = StringLookup::new().mask_token("").vocabulary(["a", "", "b"]);
    assert_eq!(
        error(&inside, "a"),
        "StringLookup: the vocabulary has the mask token \"\" at 1. Leave special tokens out, or begin with all of them, in the \
         order [\"\", \"[UNK]\"]."
    );
    let oov = StringLookup::new().invert(true).vocabulary(["a", "[UNK]"]);
    assert!(error(&oov, &[1]).contains("the OOV token \"[UNK]\" at 1"), "{}", error(&oov, &[1]));
    let large = StringLookup::new().max_tokens(2).vocabulary(["a", "b"]);
    assert_eq!(
        error(&large, "a"),
        "StringLookup: the vocabulary has 3 words with its 1 special ones, and max_tokens is 2. Raise it, or leave words out."
    );
    let layer = StringLookup::new().vocabulary(["a"]);
    assert!(layer.set_vocabulary(Vec::<String>::new()).unwrap_err().to_string().contains("empty"));
    assert_eq!(layer.get_vocabulary().unwrap(), ["[UNK]", "a"]);
    let error_of = |result: wgrad::Result<()>| result.unwrap_err().to_string();
    assert_eq!(
        error_of(StringLookup::new().adapt(&Vec::<String>::new())),
        "StringLookup: adapt was given no words, so there is no vocabulary to learn. Check the column."
    );
    assert!(error_of(layer.adapt(&["b"])).contains("the program has set the vocabulary"));
    let none = StringLookup::new().output_mode(OutputMode::Count);
    assert!(error(&none, "a").contains("has no vocabulary yet"));
    let weights = StringLookup::new().output_mode(OutputMode::TfIdf).vocabulary(["a", "b"]);
    assert!(
        error(&weights.idf_weights([1.0]), "a").contains("1 idf_weights for a vocabulary of 2")
    );
    assert!(error(&IntegerLookup::new(), &[0.5f32]).contains("float32; it must be integers"));
    assert!(error(&IntegerLookup::new(), &[u64::MAX]).contains("18446744073709551615"));
    assert!(error(&Hashing::new(0), "a").contains("num_bins is 0"));
    assert!(error(&Hashing::new(9).mask_value(3), "a").contains("mask_value is the integer 3"));
    let huge = Hashing::new(1 << 60).output_mode(OutputMode::OneHot);
    assert!(error(&huge, "a").contains("does not fit into memory"));
    let cross = HashedCrossing::new(3);
    let short = cross.apply(&[&["a", "b"], &["c"]]).unwrap_err().to_string();
    assert!(short.contains("inputs are [2] and [1]"), "{short}");
    assert!(cross.apply(&[&"a"]).unwrap_err().to_string().contains("1 inputs"));
    let bins = Discretization::with_num_bins(3);
    assert!(error(&bins, &[1.0f32]).contains("have not been learnt. Call adapt first"));
    assert!(error_of(bins.adapt(&[1.0, f32::NAN])).contains("value 1 of a batch for adapt is NaN"));
    assert!(error_of(Discretization::new([1.0]).adapt(&[1.0])).contains("with_num_bins"));
    let text = TextVectorization::new();
    assert!(error(&text, &[["a", "b"], ["c", "d"]]).contains("[2, 2] and begins with \"a\""));
    let long = TextVectorization::new().output_sequence_length(1 << 60);
    assert!(error(&long, &["a", "b"]).contains("smaller output_sequence_length"));
    // Sizes from files, which are not trusted.
    let grams = TextVectorization::new().ngrams(usize::MAX).vocabulary(["a b"]);
    assert_eq!(
        grams.apply("a b").unwrap().to_array::<i64>().unwrap(),
        ndarray::array![1, 1, 2].into_dyn()
    );
    assert!(error(&TextVectorization::new().ngrams(0), "a").contains("ngrams is 0"));
    let oov = StringLookup::new().num_oov_indices(1 << 40).vocabulary(["a"]);
    assert_eq!(oov.apply("a").unwrap().to_array::<i64>().unwrap()[[]], 1 << 40);
    assert!(oov.get_vocabulary().is_err());
    let oov = oov.output_mode(OutputMode::TfIdf).idf_weights([1.0]);
    assert!(error(&oov, "a").contains("it must be 2^24 at most"));
    let padded = StringLookup::new().max_tokens(1 << 60).pad_to_max_tokens(true).vocabulary(["a"]);
    assert!(
        error(&padded.output_mode(OutputMode::Count), "a").contains("does not fit into memory")
    );
    let raw = HostArray::from_strings([1], vec![vec![b'o', 0xff]]).unwrap();
    let layer = StringLookup::new();
    layer.adapt(&raw).unwrap();
    assert_eq!(
        layer.get_vocabulary().unwrap_err().to_string(),
        "StringLookup: a vocabulary needs text, and \"o\u{fffd}\" is not valid UTF-8 from byte 1 on. Convert the data to UTF-8."
    );
    // Such words can be looked up, byte by byte.
    assert_eq!(layer.apply(&raw).unwrap().to_array::<i64>().unwrap()[[0]], 1);
    let own = TextVectorization::new()
        .standardize(wgrad::keras::layers::Standardize::custom(str::to_uppercase));
    assert!(error(&own, &raw).contains("a function for standardize needs text"));
    let ragged = r#"{"ragged": true}"#;
    let ragged = Config::with_options("TextVectorization", serde_json::from_str(ragged).unwrap());
    let ragged = host_layer_from_config(&ragged).unwrap_err().to_string();
    assert!(ragged.contains("'ragged' of TextVectorization is true; here it can only be false"));
}

#[test]
fn functions_of_the_program_standardize_and_split() {
    use wgrad::keras::layers::{Split, Standardize, TextVectorization};
    let layer = TextVectorization::new()
        .standardize(Standardize::custom(str::to_lowercase))
        .split(Split::custom(|text| text.split(',').map(|word| word.trim().to_string()).collect()))
        .vocabulary(["äh", "so so"]);
    let y = layer.apply(&["ÄH, so so", "No"]).unwrap().to_array::<i64>().unwrap();
    assert_eq!(y, ndarray::array![[2, 3], [1, 0]].into_dyn());
    assert!(layer.describe().unwrap_err().to_string().contains("a function of the program"));
}

#[test]
fn datasets_map_words_on_other_threads() {
    use wgrad::data::{Dataset, MapOptions};
    use wgrad::keras::layers::{OutputMode, StringLookup, TextVectorization};
    let texts = ["b a", "a", "c a"].map(String::from).to_vec();
    let words = TextVectorization::new().output_sequence_length(2);
    words.adapt_batches(Dataset::from_tensor_slices(texts.clone()).unwrap().batch(2)).unwrap();
    assert_eq!(words.get_vocabulary().unwrap(), ["", "[UNK]", "a", "c", "b"]);
    let lookup = StringLookup::new().vocabulary(["x", "y"]).output_mode(OutputMode::OneHot);
    let rows = Dataset::from_tensor_slices(texts)
        .unwrap()
        .map_with(MapOptions::new().num_parallel_calls(2), move |text: String| {
            let ids = words.apply(&text)?.to_array::<i64>()?;
            Ok::<_, wgrad::Error>((ids, lookup.apply("y")?.to_array::<i64>()?))
        })
        .batch(3);
    let (ids, ones) = rows.into_iter().next().unwrap().unwrap();
    assert_eq!(ids, ndarray::array![[4, 2], [2, 0], [3, 2]].into_dyn());
    assert_eq!(ones.shape(), [3, 1, 3]);
}

#[test]
fn a_million_words_are_learnt_by_walking_once() {
    use wgrad::keras::layers::StringLookup;
    let words: Vec<String> = (0..1_000_000u32).map(|i| format!("w{}", i % 500_000)).collect();
    let layer = StringLookup::new();
    layer.adapt(&words).unwrap();
    assert_eq!(layer.vocabulary_size().unwrap(), 500_001);
    assert_eq!(layer.get_vocabulary().unwrap()[1], "w99999");
    let ids = layer.apply(&words[..3]).unwrap().to_array::<i64>().unwrap();
    assert!(ids.iter().all(|id| (1..=500_000).contains(id)));
}
