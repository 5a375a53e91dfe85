//! The vocabularies in a `.keras` file, which are files of their own: `assets/layers/string_lookup/vocabulary.txt`.
//!
//! Source: `save_assets` and `load_assets` in Keras's `index_lookup.py`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::error::{Error, Result, message};
use crate::trackable::snake_case;

/// The deepest models in models.
const DEEPEST: usize = 32;

/// Whether layers of this class have a vocabulary.
pub(crate) fn has_vocabulary(class: &str) -> bool {
    matches!(class, "IntegerLookup" | "StringLookup" | "TextVectorization")
}

/// Names of objects in a container: by their class, and a number from the second on.
#[derive(Default)]
pub(crate) struct Numbered(HashMap<String, usize>);

impl Numbered {
    pub(crate) fn name(&mut self, class: &str) -> String {
        let name = snake_case(class);
        let count = self.0.entry(name.clone()).or_insert(0);
        *count += 1;
        match *count - 1 {
            0 => name,
            number => format!("{name}_{number}"),
        }
    }
}

/// Calls `f` with the place and the config of each layer with a vocabulary, in a model and in models in it.
pub(crate) fn lookups(
    model: &mut Value,
    f: &mut dyn FnMut(&str, &mut Value) -> Result<()>,
) -> Result<()> {
    walk(model, "", 0, f)
}

fn walk(
    model: &mut Value,
    base: &str,
    depth: usize,
    f: &mut dyn FnMut(&str, &mut Value) -> Result<()>,
) -> Result<()> {
    let layers = model.pointer_mut("/config/layers").and_then(Value::as_array_mut);
    let (Some(layers), true) = (layers, depth < DEEPEST) else { return Ok(()) };
    let mut numbered = Numbered::default();
    for layer in layers {
        let class = layer.get("class_name").and_then(Value::as_str).unwrap_or_default();
        // Classes of a program are registered as `package>Class`.
        let class = class.rsplit('>').next().unwrap_or_default().to_string();
        let place = format!("{base}layers/{}", numbered.name(&class));
        if has_vocabulary(&class) {
            f(&place, layer)?;
        }
        walk(layer, &format!("{place}/"), depth + 1, f)?;
    }
    Ok(())
}

/// Where a layer's vocabulary and weights are in the archive and in the file of weights.
pub(crate) fn vocabulary_at(place: &str) -> String {
    format!("assets/{place}/vocabulary.txt")
}

pub(crate) fn weights_at(place: &str) -> String {
    format!("{place}/vars/idf_weights")
}

/// The places of a layer of this class, at which Keras expects equal files: the lookup in a TextVectorization is a layer, too.
pub(crate) fn places(class: &str, place: &str) -> Vec<String> {
    let inner = (class == "TextVectorization").then(|| format!("{place}/_lookup_layer"));
    std::iter::once(place.to_string()).chain(inner).collect()
}

/// Puts a vocabulary, and the weights of its words, into a layer's config.
pub(crate) fn put(layer: &mut Value, file: &[u8], weights: Option<Vec<f32>>) -> Result<()> {
    let class = layer.get("class_name").and_then(Value::as_str).unwrap_or_default().to_string();
    let wrong = |what: String| {
        Error::Data(message!(
            "load_model: the vocabulary of a {class} {what}. Take another copy of the file."
        ))
    };
    let text = std::str::from_utf8(file).map_err(|error| {
        wrong(format!("is not valid UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let mut words: Vec<&str> = text.split('\n').collect();
    while words.last().is_some_and(|word| word.is_empty()) {
        words.pop();
    }
    let number = |word: &str| {
        word.parse::<i64>().map_err(|_| wrong(format!("has {word:?}, which is no integer")))
    };
    let list = match &*class {
        "IntegerLookup" => {
            json!(words.iter().map(|word| number(word)).collect::<Result<Vec<_>>>()?)
        }
        _ => json!(words),
    };
    let count = words.len();
    let Some(config) = layer.get_mut("config").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    if let Some(mut weights) = weights {
        // Keras stores zeros up to `max_tokens`.
        weights.truncate(count);
        config.insert("idf_weights".into(), json!(weights));
    }
    config.insert("vocabulary".into(), list);
    config.insert("has_input_vocabulary".into(), json!(false));
    Ok(())
}

/// The weights of a lookup's words in its config, with zeros up to the number of columns.
pub(crate) fn column_weights(layer: &Value) -> Option<Vec<f32>> {
    let config = layer.get("config")?;
    let list = config.get("idf_weights")?.as_array()?;
    let mut weights: Vec<f32> =
        list.iter().filter_map(|weight| Some(weight.as_f64()? as f32)).collect();
    let padded = config.get("pad_to_max_tokens").and_then(Value::as_bool) == Some(true);
    let most = config.get("max_tokens").and_then(Value::as_u64).filter(|_| padded);
    // Rows of more columns do not fit into memory.
    if let Some(most) =
        most.and_then(|most| usize::try_from(most).ok()).filter(|most| *most <= 1 << 28)
    {
        weights.resize(most.max(weights.len()), 0.0);
    }
    Some(weights)
}

/// The file with these words; none if Keras would read other words from it.
pub(crate) fn file(words: &[String]) -> Option<Vec<u8>> {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let odd =
        words.iter().any(|word| word.contains(ends)) || words.last().is_none_or(String::is_empty);
    (!odd).then(|| words.join("\n").into_bytes())
}
