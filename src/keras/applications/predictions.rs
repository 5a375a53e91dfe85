//! [`decode_predictions_async`]: from a classifier's probabilities to names.

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The names of a classifier's classes, in order.
///
/// The crate has no list of ImageNet's classes: read one from a file, or give the names of your own classes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::applications::ClassNames;
/// let names = ClassNames::from_text("cat\ndog\n")?;
/// assert_eq!(names.names(), ["cat", "dog"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassNames(Vec<String>);

impl ClassNames {
    /// The names of class 0, 1 and so on.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ClassNames(names.into_iter().map(Into::into).collect())
    }

    /// Reads names from a text with one per line, or from Keras's `imagenet_class_index.json`
    /// (`{"0": ["n01440764", "tench"], ...}`, feature `json`), of which it takes the last name.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no names, or the JSON has another form.
    pub fn from_text(text: &str) -> Result<Self> {
        let names = match text.trim_start().starts_with('{') {
            true => from_json(text)?,
            false => text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .map(str::to_string)
                .collect(),
        };
        match names.is_empty() {
            true => Err(Error::Data("ClassNames: the text has no names.".into())),
            false => Ok(ClassNames(names)),
        }
    }

    /// Reads names from a file with the contents that [`ClassNames::from_text`] accepts.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; otherwise as [`ClassNames::from_text`].
    #[cfg(not(target_family = "wasm"))]
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::Data(message!("{}: ClassNames: the file is not UTF-8 text.", path.display()))
        })?;
        ClassNames::from_text(&text)
    }

    /// Returns the names.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

#[cfg(not(feature = "json"))]
fn from_json(_: &str) -> Result<Vec<String>> {
    Err(Error::Data("ClassNames: reading JSON needs the feature `json`.".into()))
}

#[cfg(feature = "json")]
fn from_json(text: &str) -> Result<Vec<String>> {
    use serde_json::Value;
    let wrong = |what: &str| {
        Error::Data(message!(
            "ClassNames: {what}. The JSON must be as Keras's imagenet_class_index.json, {{\"0\": [\"n01440764\", \"tench\"], \
             ..}}, or a text with one name per line."
        ))
    };
    let map: serde_json::Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| wrong(&format!("it cannot be read: {error}")))?;
    (0..map.len())
        .map(|class| match map.get(&class.to_string()) {
            Some(Value::String(name)) => Ok(name.clone()),
            Some(Value::Array(both)) => both
                .last()
                .and_then(Value::as_str)
                .map(str::to_string)
                .ok_or_else(|| wrong(&format!("class {class} has no name"))),
            _ => Err(wrong(&format!("it has {} entries and none for class {class}", map.len()))),
        })
        .collect()
}

/// A class that a network predicts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The number of the class.
    pub class: usize,
    /// Its name.
    pub name: String,
    /// The network's number for it, a probability after a softmax.
    pub score: f32,
}

/// Returns the `top` most probable classes of each example, the most probable first; `predictions` is `[N, classes]`.
///
/// # Errors
/// [`Error::Shape`] if there are not as many names as classes; the errors of reading the tensor.
pub async fn decode_predictions_async(
    predictions: &Tensor,
    names: &ClassNames,
    top: usize,
) -> Result<Vec<Vec<Prediction>>> {
    let &[_, classes] = predictions.shape() else {
        return Err(Error::Shape(message!(
            "decode_predictions: the predictions are {:?}; they must be [N, classes], the result of a network with its top.",
            predictions.shape()
        )));
    };
    if classes != names.0.len() {
        return Err(Error::Shape(message!(
            "decode_predictions: the predictions are {:?}, and there are {} names. wgrad has no list of ImageNet's classes: \
             give the {classes} names of this network's classes in order, such as with ClassNames::from_file on Keras's \
             imagenet_class_index.json.",
            predictions.shape(),
            names.0.len()
        )));
    }
    let values = predictions.to_vec_async::<f32>().await?;
    let decode = |row: &[f32]| {
        let mut order: Vec<usize> = (0..classes).collect();
        // Of equal scores, the first class counts.
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        order.truncate(top);
        let prediction =
            |class: usize| Prediction { class, name: names.0[class].clone(), score: row[class] };
        order.into_iter().map(prediction).collect()
    };
    Ok(values.chunks(classes.max(1)).map(decode).collect())
}

/// As [`decode_predictions_async`]. Blocks.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::applications::{ClassNames, decode_predictions};
/// let names = ClassNames::new(["cat", "dog", "fish"]);
/// let best = decode_predictions(&wgrad::constant([[0.1, 0.7, 0.2]])?, &names, 2)?;
/// assert_eq!((best[0][0].name.as_str(), best[0][1].name.as_str()), ("dog", "fish"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`decode_predictions_async`].
#[cfg(not(target_family = "wasm"))]
pub fn decode_predictions(
    predictions: &Tensor,
    names: &ClassNames,
    top: usize,
) -> Result<Vec<Vec<Prediction>>> {
    pollster::block_on(decode_predictions_async(predictions, names, top))
}
