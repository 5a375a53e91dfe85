//! Models with layers for strings, of every kind and option that a SavedModel can have.

use std::sync::Arc;

use wgrad::DType;
use wgrad::keras::layers::{
    CategoryEncoding, Concatenate, Dense, Discretization, Embedding, Flatten, HashedCrossing,
    Hashing, IntegerLookup, OutputMode, Split, Standardize, StringLookup, Table, TextVectorization,
};
use wgrad::keras::{FrontModel, Functional, HostSymbol, Input, LayerExt, SymbolicTensor};

pub const TEXTS: [&str; 6] = [
    "A good, GOOD film!",
    "",
    "a bad\tfilm ",
    "no words known",
    "\u{e4}u\u{df}erst gut",
    "a-b c_d",
];
pub const WORDS: [&str; 6] = ["red", "green", "", "blue", "yellow", "red"];
pub const KINDS: [i64; 6] = [4, 7, -3, 1000, 8, 0];
pub const SIZES: [f32; 6] = [0.5, -1.0, 2.0, 2.5, 100.0, -0.0];

/// A layer that gives a result of `[N, 2]` for what a front makes.
fn behind(rows: usize, mode: OutputMode) -> (SymbolicTensor, SymbolicTensor) {
    if mode == OutputMode::Int {
        let x = Input::new([None]).with_dtype(DType::I32).with_name("fed");
        let y = Embedding::new(rows, 2).on(&x).unwrap();
        return (x.into(), y);
    }
    let x = Input::new([rows]).with_name("fed");
    let y = Dense::new(2).on(&x).unwrap();
    (x.into(), y)
}

pub fn model(symbol: &HostSymbol, rows: usize, mode: OutputMode) -> FrontModel<Functional> {
    let (x, y) = behind(rows, mode);
    FrontModel::functional(Functional::new([&x], &y).unwrap(), [("fed", symbol)]).unwrap()
}

/// Models of one layer for strings or integers, with their names.
pub fn models() -> Vec<(String, FrontModel<Functional>)> {
    let mut all = Vec::new();
    let (text, word, kind, size) = (
        HostSymbol::input("text"),
        HostSymbol::input("word"),
        HostSymbol::integers("kind"),
        HostSymbol::integers("size"),
    );
    let mut add = |name: &str, symbol: HostSymbol, rows: usize, mode: OutputMode| {
        all.push((name.to_string(), model(&symbol, rows, mode)));
    };
    let words = ["a", "good", "film", "bad", "gut", "a good", "good film", "b"];
    let weights: Vec<f32> = (0..words.len()).map(|at| 0.5 + at as f32).collect();
    let kept = ["A good, GOOD film!", "no words known"];
    for (number, standardize) in [
        Standardize::LowerAndStripPunctuation,
        Standardize::Lower,
        Standardize::StripPunctuation,
        Standardize::Keep,
    ]
    .into_iter()
    .enumerate()
    {
        let layer = TextVectorization::new().standardize(standardize).vocabulary(words);
        add(&format!("standardize_{number}"), text.then(Arc::new(layer)), 10, OutputMode::Int);
    }
    let layer = |split: Split| TextVectorization::new().split(split);
    let characters = layer(Split::Character).vocabulary(["a", "o", "\u{e4}", " "]);
    add("characters", text.then(Arc::new(characters)), 6, OutputMode::Int);
    let whole = || layer(Split::Keep).standardize(Standardize::Keep).vocabulary(kept);
    add("whole", text.then(Arc::new(whole())), 4, OutputMode::Int);
    add("whole_cut", text.then(Arc::new(whole().output_sequence_length(3))), 4, OutputMode::Int);
    for length in [1, 2, 9] {
        let layer = TextVectorization::new().vocabulary(words).output_sequence_length(length);
        add(&format!("length_{length}"), text.then(Arc::new(layer)), 10, OutputMode::Int);
    }
    let ngrams = TextVectorization::new().vocabulary(words).ngrams(2);
    add("ngrams", text.then(Arc::new(ngrams)), 10, OutputMode::Int);
    let widths = TextVectorization::new().vocabulary(words).ngrams([2, 1]);
    add("widths", text.then(Arc::new(widths)), 10, OutputMode::Int);
    for mode in [OutputMode::MultiHot, OutputMode::Count, OutputMode::TfIdf] {
        let layer = TextVectorization::new().vocabulary(words).ngrams(2).output_mode(mode);
        let layer = if mode == OutputMode::TfIdf {
            layer.idf_weights(weights.clone()).max_tokens(12).pad_to_max_tokens(true)
        } else {
            layer
        };
        let rows = if mode == OutputMode::TfIdf { 12 } else { 9 };
        add(&format!("text_{mode:?}"), text.then(Arc::new(layer)), rows, mode);
    }
    let colours = ["red", "green", "blue"];
    for unknown in [1, 3] {
        for mask in [false, true] {
            let lookup = || {
                let lookup = StringLookup::new().vocabulary(colours).num_oov_indices(unknown);
                if mask { lookup.mask_token("") } else { lookup }
            };
            let name = |mode: &str| format!("lookup_{unknown}_{mask}_{mode}");
            let rows = 3 + unknown + usize::from(mask);
            add(&name("int"), word.then(Arc::new(lookup())), rows, OutputMode::Int);
            for mode in [OutputMode::OneHot, OutputMode::MultiHot, OutputMode::Count] {
                let layer = lookup().output_mode(mode);
                add(&name(&format!("{mode:?}")), word.then(Arc::new(layer)), 3 + unknown, mode);
            }
            let salted = lookup().salt([3, 5]);
            add(&name("salt"), word.then(Arc::new(salted)), rows, OutputMode::Int);
            let numbers = IntegerLookup::new().vocabulary([4, 7, 1000]).num_oov_indices(unknown);
            let numbers = if mask { numbers.mask_token(0) } else { numbers };
            add(&name("kinds"), kind.then(Arc::new(numbers)), rows, OutputMode::Int);
        }
    }
    let tf_idf = StringLookup::new().vocabulary(colours).idf_weights([0.5, 1.5, 2.5]);
    let tf_idf = tf_idf.output_mode(OutputMode::TfIdf);
    add("lookup_tf_idf", word.then(Arc::new(tf_idf)), 4, OutputMode::TfIdf);
    for (name, symbol) in [("word", &word), ("kind", &kind)] {
        let own = |name2: &str| format!("hash_{name}_{name2}");
        let mask = |layer: Hashing| {
            if name == "word" { layer.mask_value("") } else { layer.mask_value(8) }
        };
        add(&own("plain"), symbol.then(Arc::new(Hashing::new(5))), 5, OutputMode::Int);
        add(&own("salt"), symbol.then(Arc::new(Hashing::new(5).salt(9))), 5, OutputMode::Int);
        add(&own("mask"), symbol.then(Arc::new(mask(Hashing::new(5)))), 5, OutputMode::Int);
        let rows = Hashing::new(5).output_mode(OutputMode::OneHot);
        add(&own("rows"), symbol.then(Arc::new(rows)), 5, OutputMode::OneHot);
    }
    let cross = HostSymbol::cross(&[&word, &kind], HashedCrossing::new(6));
    add("cross", cross, 6, OutputMode::Int);
    let rows = HashedCrossing::new(6).output_mode(OutputMode::OneHot);
    add("cross_rows", HostSymbol::cross(&[&word, &kind], rows), 6, OutputMode::OneHot);
    let bins = Arc::new(Discretization::new([-1.0, 0.0, 2.0]));
    add("bins", size.then(bins.clone()), 4, OutputMode::Int);
    // Layers behind layers.
    let coloured = word.then(Arc::new(StringLookup::new().vocabulary(colours)));
    let encoded = CategoryEncoding::new(4).output_mode(OutputMode::OneHot);
    add("encoded", coloured.then(Arc::new(encoded)), 4, OutputMode::OneHot);
    add("hashed_twice", coloured.then(Arc::new(Hashing::new(3))), 3, OutputMode::Int);
    let both = HostSymbol::cross(&[&coloured, &size.then(bins)], HashedCrossing::new(7));
    add("cross_of_layers", both, 7, OutputMode::Int);
    all
}

/// A model of all inputs, one of which is of numbers.
pub fn several() -> FrontModel<Functional> {
    let (text, word, kind) =
        (HostSymbol::input("text"), HostSymbol::input("word"), HostSymbol::integers("kind"));
    let lookup = Arc::new(StringLookup::new().vocabulary(["red", "green"]));
    let words = TextVectorization::new().vocabulary(["a", "film"]).output_sequence_length(3);
    let cross = HashedCrossing::new(6).output_mode(OutputMode::OneHot);
    let crossed = HostSymbol::cross(&[&word, &kind], cross);
    let ids = Input::new([3]).with_dtype(DType::I32).with_name("ids");
    let colour = Input::new([1]).with_dtype(DType::I32).with_name("colour");
    let (row, size) = (Input::new([6]).with_name("row"), Input::new([1]).with_name("size"));
    let ids_rows = Embedding::new(4, 2).on(&ids).unwrap();
    let ids_flat = Flatten::new().on(&ids_rows).unwrap();
    let colour_rows = Embedding::new(3, 2).on(&colour).unwrap();
    let colour_flat = Flatten::new().on(&colour_rows).unwrap();
    let all = Concatenate::new().on_all([&ids_flat, &colour_flat, &row, &size]).unwrap();
    let y = Dense::new(2).on(&all).unwrap();
    let model = Functional::new([&ids, &colour, &row, &size], &y).unwrap();
    let feeds =
        [("ids", &text.then(Arc::new(words))), ("colour", &word.then(lookup)), ("row", &crossed)];
    FrontModel::functional(model, feeds).unwrap()
}

/// The inputs of a model; all but `floats` are strings or integers.
pub fn inputs(model: &FrontModel<Functional>, floats: &[&str]) -> Table {
    model.input_names().iter().fold(Table::new(), |table, name| match *name {
        "text" => table.column("text", &TEXTS.map(|text| [text])),
        "word" => table.column("word", &WORDS.map(|word| [word])),
        "kind" => table.column("kind", &KINDS.map(|kind| [kind])),
        "size" if floats.contains(name) => table.column("size", &SIZES.map(|size| [size])),
        "size" => table.column("size", &SIZES.map(|size| [size as i64])),
        other => panic!("no model has the input {other}"),
    })
}
