//! Strings, which stay on the host: standardizing, splitting, hashing.

use std::borrow::Cow;

use regex_lite::{Captures, Regex};

use super::call::{Call, Entry, Results, any, many, unsupported};
use super::ragged::rows;
use crate::error::{Error, Result, message};
use crate::host_array::hashes::{self, cross, fast};
use crate::host_array::{HostArray, HostDType, strings};
use crate::saved_model::graph_def::value::{Value, int_array};

/// The most bytes of n-grams, whose number a file decides.
const LARGEST: usize = 1 << 30;

pub(super) static OPS: &[Entry] = &[
    any("AsString", as_string),
    any("RegexReplace", |call| {
        let (pattern, rewrite) = (one(call, 1)?, one(call, 2)?);
        replace(call, &utf8(&pattern)?, &utf8(&rewrite)?)
    }),
    many("SparseCross", &["output_indices", "output_values", "output_shape"], sparse_cross),
    any("StaticRegexReplace", |call| {
        replace(call, call.attr_text("pattern", ""), call.attr_text("rewrite", ""))
    }),
    any("StringJoin", join),
    any("StringLower", |call| cased(call, <[u8]>::to_ascii_lowercase, str::to_lowercase)),
    many("StringNGrams", &["ngrams", "ngrams_splits"], ngrams),
    many("StringSplitV2", &["indices", "values", "shape"], split),
    any("StringStrip", |call| each(call, |text| Ok(text.trim_ascii().to_vec()))),
    any("StringToHashBucketFast", |call| hashed(call, |text| Ok(fast(text)))),
    any("StringToHashBucketStrong", |call| {
        let &[first, second] = call.attr_ints("key") else {
            return Err(Error::Data(message!(
                "its key is {:?}, not two numbers.",
                call.attr_ints("key")
            )));
        };
        hashed(call, |text| Ok(hashes::strong(text, [first, second])))
    }),
    any("StringUpper", |call| cased(call, <[u8]>::to_ascii_uppercase, str::to_uppercase)),
    many("UnicodeDecode", &["row_splits", "char_values"], decode),
    any("UnicodeEncode", encode),
];

/// The strings of an array.
fn strings_of<'a>(array: &'a HostArray<'_>) -> Result<&'a [Vec<u8>]> {
    array.strings().ok_or_else(|| {
        Error::DType(message!("it expects strings and gets {}{:?}.", array.dtype(), array.shape()))
    })
}

/// The only string of an input.
fn one(call: &Call<'_>, at: usize) -> Result<Vec<u8>> {
    match strings_of(&*call.host(at)?)? {
        [text] => Ok(text.clone()),
        many => Err(Error::Shape(message!("its input {at} has {} strings, not one.", many.len()))),
    }
}

fn utf8(text: &[u8]) -> Result<Cow<'_, str>> {
    std::str::from_utf8(text).map(Cow::Borrowed).map_err(|error| {
        Error::Data(message!(
            "the string \"{}\" is not valid UTF-8 from byte {} on.",
            text.escape_ascii(),
            error.valid_up_to()
        ))
    })
}

fn texts(shape: &[usize], texts: Vec<Vec<u8>>) -> Result<Value> {
    HostArray::from_strings(shape, texts).map(Value::host)
}

/// The results of `f` for each string of the first input.
fn each(call: &Call<'_>, f: impl Fn(&[u8]) -> Result<Vec<u8>>) -> Result<Value> {
    let array = call.host(0)?;
    let all = strings_of(&array)?.iter().map(|text| f(text)).collect::<Result<_>>()?;
    texts(array.shape(), all)
}

fn cased(
    call: &Call<'_>,
    ascii: fn(&[u8]) -> Vec<u8>,
    unicode: fn(&str) -> String,
) -> Result<Value> {
    match call.attr_text("encoding", "") {
        "" => each(call, |text| Ok(ascii(text))),
        "utf-8" | "UTF-8" => each(call, |text| Ok(unicode(&utf8(text)?).into_bytes())),
        other => Err(unsupported(format_args!("the encoding {other}"))),
    }
}

fn replace(call: &Call<'_>, pattern: &str, rewrite: &str) -> Result<Value> {
    let regex = Regex::new(pattern).map_err(|error| {
        unsupported(format_args!("the regular expression {pattern:?} ({error})"))
    })?;
    // RE2 names groups \0 to \9.
    let rewritten = |groups: &Captures<'_>| {
        let (mut text, mut letters) = (String::new(), rewrite.chars());
        while let Some(letter) = letters.next() {
            match (letter, letter == '\\') {
                (_, false) => text.push(letter),
                (_, true) => match letters.next() {
                    Some(digit @ '0'..='9') => {
                        let group = digit.to_digit(10).and_then(|digit| groups.get(digit as usize));
                        text.push_str(group.map_or("", |group| group.as_str()));
                    }
                    other => text.extend(other),
                },
            }
        }
        text
    };
    let all = call.attr_bool("replace_global", true);
    each(call, |text| {
        let text = utf8(text)?;
        let new =
            if all { regex.replace_all(&text, rewritten) } else { regex.replace(&text, rewritten) };
        Ok(new.into_owned().into_bytes())
    })
}

fn join(call: &Call<'_>) -> Result<Value> {
    let arrays = (0..call.inputs.len()).map(|at| call.host(at)).collect::<Result<Vec<_>>>()?;
    let longest = arrays.iter().max_by_key(|array| array.shape().len());
    let shape = longest.map_or(Vec::new(), |array| array.shape().to_vec());
    let separator = call.attr_text("separator", "").as_bytes();
    let count = shape.iter().product();
    let mut all = vec![Vec::new(); count];
    for (number, array) in arrays.iter().enumerate() {
        let parts = strings_of(array)?;
        if !array.shape().is_empty() && array.shape() != shape {
            return Err(Error::Shape(message!(
                "it joins strings of {:?} and {shape:?}; the shapes must be equal.",
                array.shape()
            )));
        }
        for (at, text) in all.iter_mut().enumerate() {
            if number > 0 {
                text.extend_from_slice(separator);
            }
            text.extend_from_slice(if array.shape().is_empty() { &parts[0] } else { &parts[at] });
        }
    }
    texts(&shape, all)
}

fn as_string(call: &Call<'_>) -> Result<Value> {
    let array = call.host(0)?;
    if array.dtype() == HostDType::Bool {
        let word = |byte: &u8| if *byte == 0 { b"false".to_vec() } else { b"true".to_vec() };
        return texts(array.shape(), array.bytes().iter().map(word).collect());
    }
    if array.dtype().is_float() {
        return Err(unsupported(format_args!("strings of {}", array.dtype())));
    }
    let digits = call.ints(0)?.iter().map(|number| number.to_string().into_bytes()).collect();
    texts(array.shape(), digits)
}

/// The number of bins of a hash.
fn bins(call: &Call<'_>) -> Result<u64> {
    let bins = call.attr_int("num_buckets", 0);
    u64::try_from(bins)
        .ok()
        .filter(|bins| *bins > 0)
        .ok_or_else(|| Error::Data(message!("it has {bins} bins; it needs one or more.")))
}

fn hashed(call: &Call<'_>, hash: impl Fn(&[u8]) -> Result<u64>) -> Result<Value> {
    let (array, bins) = (call.host(0)?, bins(call)?);
    let bin = |text: &Vec<u8>| Ok((hash(text)? % bins) as i64);
    let bins: Vec<i64> = strings_of(&array)?.iter().map(bin).collect::<Result<_>>()?;
    Ok(Value::host(int_array(HostDType::I64, array.shape(), &bins)))
}

/// Crosses columns of one value in each row.
fn sparse_cross(call: &mut Call<'_>) -> Result<Results> {
    if call.attr_int("N", 0) != 0 || !call.attr_bool("hashed_output", false) {
        return Err(unsupported(format_args!("sparse inputs, or results without a hash")));
    }
    let (key, bins) = (call.attr_int("hash_key", 0) as u64, bins(call)?);
    let mut columns: Vec<Vec<u64>> = Vec::new();
    for at in 0..call.inputs.len() {
        let array = call.host(at)?;
        if array.shape().len() != 2 || array.shape()[1] != 1 {
            return Err(unsupported(format_args!(
                "columns of {:?}; they must be [N, 1]",
                array.shape()
            )));
        }
        columns.push(match array.strings() {
            Some(texts) => texts.iter().map(|text| fast(text)).collect(),
            None => call.ints(at)?.into_iter().map(|number| number as u64).collect(),
        });
    }
    let rows = columns.first().map_or(0, Vec::len);
    if let Some(other) = columns.iter().find(|column| column.len() != rows) {
        return Err(Error::Shape(message!(
            "its columns have {rows} and {} rows; they must have as many.",
            other.len()
        )));
    }
    let row = |row: usize| cross(columns.iter().map(|column| column[row]), key, bins);
    let values: Vec<i64> = (0..rows).map(row).collect();
    let indices: Vec<i64> = (0..rows as i64).flat_map(|row| [row, 0]).collect();
    Ok(Results::from_iter([
        Value::host(int_array(HostDType::I64, &[rows, 2], &indices)),
        Value::ints(HostDType::I64, &values),
        Value::ints(HostDType::I64, &[rows as i64, 1]),
    ]))
}

fn split(call: &mut Call<'_>) -> Result<Results> {
    let (array, separator) = (call.host(0)?, one(call, 1)?);
    let most = usize::try_from(call.attr_int("maxsplit", -1)).ok();
    let (mut indices, mut values, mut longest) = (Vec::new(), Vec::new(), 0);
    let rows = strings_of(&array)?;
    for (row, text) in rows.iter().enumerate() {
        let parts = strings::split(text, &separator, most);
        longest = longest.max(parts.len());
        indices.extend((0..parts.len()).flat_map(|at| [row as i64, at as i64]));
        values.extend(parts.into_iter().map(<[u8]>::to_vec));
    }
    let count = values.len();
    Ok(Results::from_iter([
        Value::host(int_array(HostDType::I64, &[count, 2], &indices)),
        texts(&[count], values)?,
        Value::ints(HostDType::I64, &[rows.len() as i64, longest as i64]),
    ]))
}

fn ngrams(call: &mut Call<'_>) -> Result<Results> {
    if call.attr_int("pad_width", 0) != 0 || call.attr_bool("preserve_short_sequences", false) {
        return Err(unsupported(format_args!("padded n-grams, or those of short sequences")));
    }
    let (array, splits) = (call.host(0)?, call.ints(1)?);
    let separator = call.attr_text("separator", "").as_bytes();
    let widths = call.attr_sizes("ngram_widths")?;
    if widths.contains(&0) {
        return Err(Error::Data(message!(
            "its n-grams are {widths:?} wide; each width must be 1 or more."
        )));
    }
    let (mut all, mut ends, mut bytes) = (Vec::new(), vec![0], 0);
    for row in rows(strings_of(&array)?, &splits)? {
        for width in &widths {
            for words in row.windows(*width) {
                let joined = words.join(separator);
                bytes += joined.len() + 1;
                if bytes > LARGEST {
                    return Err(Error::Data(message!(
                        "its n-grams have more than {LARGEST} bytes. Take shorter texts, or fewer at once."
                    )));
                }
                all.push(joined);
            }
        }
        ends.push(all.len() as i64);
    }
    let dtype = call.attr_type("Tsplits", HostDType::I64);
    Ok(Results::from_iter([texts(&[all.len()], all)?, Value::ints(dtype, &ends)]))
}

fn decode(call: &mut Call<'_>) -> Result<Results> {
    let encoding = call.attr_text("input_encoding", "UTF-8");
    if !encoding.eq_ignore_ascii_case("utf-8") {
        return Err(unsupported(format_args!("the encoding {encoding}")));
    }
    let strict = match call.attr_text("errors", "replace") {
        "replace" => false,
        "strict" => true,
        other => return Err(unsupported(format_args!("errors={other:?}"))),
    };
    let array = call.host(0)?;
    let replacement = call.attr_int("replacement_char", 0xFFFD);
    let (mut letters, mut splits) = (Vec::new(), vec![0]);
    for text in strings_of(&array)? {
        let decoded = if strict { utf8(text)? } else { String::from_utf8_lossy(text) };
        let point = |c: char| if c == '\u{FFFD}' { replacement } else { i64::from(u32::from(c)) };
        letters.extend(decoded.chars().map(point));
        splits.push(letters.len() as i64);
    }
    let dtype = call.attr_type("Tsplits", HostDType::I64);
    let results = [Value::ints(dtype, &splits), Value::ints(HostDType::I32, &letters)];
    Ok(Results::from_iter(results))
}

fn encode(call: &Call<'_>) -> Result<Value> {
    let encoding = call.attr_text("output_encoding", "UTF-8");
    if !encoding.eq_ignore_ascii_case("utf-8") {
        return Err(unsupported(format_args!("the encoding {encoding}")));
    }
    let (points, splits) = (call.ints(0)?, call.ints(1)?);
    let letter = |point: &i64| {
        let letter = u32::try_from(*point).ok().and_then(char::from_u32);
        letter.unwrap_or('\u{FFFD}')
    };
    let rows = rows(&points, &splits)?;
    let all: Vec<Vec<u8>> =
        rows.iter().map(|row| row.iter().map(letter).collect::<String>().into_bytes()).collect();
    texts(&[all.len()], all)
}
