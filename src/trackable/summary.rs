//! The table that Keras's `summary` prints, and Keras's names.

use std::fmt::Write as _;

use super::parts::{Leaf, Parts, Track};
use super::walk::count;
use crate::variable::Variable;

/// A row of the table.
struct Row {
    part: String,
    output: String,
    variables: Vec<Variable>,
}

/// The names of parts of this type.
pub(super) fn summary(kind: &str, track: Track<'_>) -> String {
    let (mut rows, mut all) = (Vec::<Row>::new(), Vec::new());
    let mut visit = |path: &str, leaf: Leaf<'_>| match leaf {
        // Their own parts count into their row.
        Leaf::Part { kind, output } if !path.contains('/') && !kind().is_empty() => {
            rows.push(Row {
                part: format!("{path} ({})", kind()),
                output: output.map_or("?".to_string(), batch_shape),
                variables: Vec::new(),
            })
        }
        Leaf::Variable(variable) => {
            all.push(variable.clone());
            if let Some(row) = rows.last_mut() {
                row.variables.push(variable.clone());
            }
        }
        _ => {}
    };
    track(&mut Parts::new(&mut visit));

    let head = ["Layer (type)", "Output shape", "Params"].map(String::from);
    let cells = |row: Row| [row.part, row.output, count(&row.variables).to_string()];
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(rows.into_iter().map(cells)).collect();
    let widths = [0, 1, 2].map(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0));
    let mut text = format!("Model: {}\n", snake_case(kind));
    for (i, [part, output, params]) in rows.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{part:0$}  {output:1$}  {params:>2$}", widths[0], widths[1], widths[2]);
        if i == 0 {
            let _ = writeln!(text, "{}", "-".repeat(widths.iter().sum::<usize>() + 4));
        }
    }
    let total = count(&all);
    let trainable = count(all.iter().filter(|variable| variable.trainable()));
    let _ = writeln!(text, "Total params: {total}\nTrainable params: {trainable}");
    let _ = writeln!(text, "Non-trainable params: {}", total - trainable);
    text
}

/// `[N, 28, 28]`: the batch may have any size.
fn batch_shape(shape: &[usize]) -> String {
    let sizes = shape.iter().skip(1).map(|size| format!(", {size}"));
    match shape.is_empty() {
        true => "[]".to_string(),
        false => format!("[N{}]", sizes.collect::<String>()),
    }
}

/// A type's name without its path and parameters.
pub(super) fn type_name<T: ?Sized>() -> &'static str {
    short(std::any::type_name::<T>())
}

fn short(path: &'static str) -> &'static str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit(':').next().unwrap_or(path)
}

/// Keras's name for this type: `MaxPooling2D` is `max_pooling2d`, `LSTMCell` is `lstm_cell`.
pub(crate) fn snake_case(kind: &str) -> String {
    let mut name = String::new();
    let mut before = None;
    let mut letters = kind.chars().peekable();
    while let Some(letter) = letters.next() {
        let lower = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase());
        // A word begins at a capital that has a small letter on one of its sides.
        if letter.is_ascii_uppercase()
            && before.is_some()
            && (lower(before) || lower(letters.peek().copied()))
        {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        before = Some(letter);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_has_any_size() {
        assert_eq!(batch_shape(&[5, 28, 28]), "[N, 28, 28]");
        assert_eq!(batch_shape(&[5]), "[N]");
        assert_eq!(batch_shape(&[]), "[]");
    }

    // These results are keras.utils.naming.to_snake_case's.
    #[test]
    fn names_are_those_of_keras() {
        for (kind, name) in [
            ("Dense", "dense"),
            ("Conv2D", "conv2d"),
            ("Conv2DTranspose", "conv2d_transpose"),
            ("MaxPooling2D", "max_pooling2d"),
            ("GlobalAveragePooling1D", "global_average_pooling1d"),
            ("LayerNormalization", "layer_normalization"),
            ("LSTM", "lstm"),
            ("LSTMCell", "lstm_cell"),
            ("GRU", "gru"),
            ("ResBlock", "res_block"),
        ] {
            assert_eq!(snake_case(kind), name);
        }
    }
}
