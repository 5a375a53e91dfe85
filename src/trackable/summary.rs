//! The table of Keras's `summary`, and Keras's names.

use std::fmt::Write as _;

use super::outline::{Row, rows};
use super::parts::{Origin, Track};
use super::walk::{count, variables};
use crate::dtype::rounded_text;
use crate::support::options::options;
use crate::variable::Variable;

options! {
    /// Options of [`Trackable::summary_with`](super::Trackable::summary_with).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SummaryOptions {
        /// The width of the table in characters, at least 40. The default, 76, is what Keras prints in a terminal of 80
        /// columns. A wide table is easier to read if layers have long names.
        line_length: Option<usize> as impl Into<Option<usize>> = None,
        /// Whether nested parts are rows, too.
        expand_nested: bool = false,
        /// Whether a column shows which parts training changes.
        show_trainable: bool = false,
    }
}

/// The width of a table: in a terminal of 80 columns Keras leaves 4 of them free.
const USUAL: usize = 76;

/// The table for the parts that `track` reports.
pub(super) fn summary(title: &str, track: Track<'_>, options: SummaryOptions) -> String {
    let rows = rows(track, options.expand_nested);
    let connected = !in_line(&rows);
    let mut columns: Vec<(&str, Side, f64)> = vec![
        ("Layer (type)", Side::Left, if connected { 0.3 } else { 0.45 }),
        ("Output Shape", Side::Left, if connected { 0.56 } else { 0.8 }),
        ("Param #", Side::Right, if connected { 0.74 } else { 1.0 }),
    ];
    if connected {
        columns.push(("Connected to", Side::Left, 1.0));
    }
    if options.show_trainable {
        columns.iter_mut().for_each(|(_, _, end)| *end *= 0.9);
        columns.push(("Trainable", Side::Middle, 1.0));
    }
    let widths = widths(&columns, options.line_length.unwrap_or(USUAL).max(40));

    let mut text = format!("Model: \"{title}\"\n");
    rule(&mut text, &widths, ['┏', '━', '┳', '┓']);
    let names: Vec<String> = columns.iter().map(|(name, ..)| name.to_string()).collect();
    line(&mut text, &widths, &columns, &names, true);
    for (i, row) in rows.iter().enumerate() {
        rule(&mut text, &widths, if i == 0 { ['┡', '━', '╇', '┩'] } else { ['├', '─', '┼', '┤'] });
        let cells = row.cells(connected, options.show_trainable);
        line(&mut text, &widths, &columns, &cells, false);
    }
    rule(
        &mut text,
        &widths,
        if rows.is_empty() { ['┗', '━', '┻', '┛'] } else { ['└', '─', '┴', '┘'] },
    );

    let all = variables(track, |_| true);
    let (trainable, fixed): (Vec<&Variable>, Vec<&Variable>) =
        all.iter().partition(|v| v.trainable());
    for (what, list) in
        [("Total", all.iter().collect()), ("Trainable", trainable), ("Non-trainable", fixed)]
    {
        let bytes = list.iter().map(|v| count([*v]) as u64 * v.dtype().size() as u64).sum::<u64>();
        let number = grouped(count(list));
        // Writing to a String cannot fail.
        let _ = writeln!(text, " {what} params: {number} ({})", memory(bytes as f64));
    }
    text
}

/// Whether each part's only input is the part before it, so that no column needs to show it.
fn in_line(rows: &[Row]) -> bool {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.depth == 0).collect();
    rows.iter().enumerate().all(|(at, row)| {
        let Some(known) = &row.described else { return true };
        match &known.from[..] {
            [] => at == 0,
            [from] => from.call == 0 && at > 0 && rows[at - 1].name == from.name,
            _ => false,
        }
    })
}

impl Row {
    fn cells(&self, connected: bool, trainable: bool) -> Vec<String> {
        let prefix = if self.depth > 0 { "   ".repeat(self.depth) + "└ " } else { String::new() };
        let outputs = self.described.as_ref().map_or(&[][..], |known| &known.outputs);
        let shapes: Vec<String> = outputs.iter().map(|shape| shape_text(shape)).collect();
        let mut cells = vec![
            format!("{prefix}{} ({})", self.name, self.kind),
            match &shapes[..] {
                [] => "?".to_string(),
                [shape] => shape.clone(),
                _ => format!("[{}]", shapes.join(", ")),
            },
            match self.unbuilt {
                true => "0 (unbuilt)".to_string(),
                false => grouped(count(&self.variables)),
            },
        ];
        if connected {
            let from = self.described.as_ref().filter(|_| self.depth == 0);
            let from: Vec<String> =
                from.map_or(&[][..], |known| &known.from).iter().map(Origin::text).collect();
            cells.push(if from.is_empty() { "-".to_string() } else { from.join(", ") });
        }
        if trainable {
            let cell = match &self.variables[..] {
                [] => "-",
                variables if variables.iter().any(Variable::trainable) => "Y",
                _ => "N",
            };
            cells.push(cell.to_string());
        }
        cells
    }
}

impl Origin {
    fn text(&self) -> String {
        format!("{}[{}][{}]", self.name, self.call, self.output)
    }
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Middle,
    Right,
}

/// The widths of the cells, so that all of them with their frames are `length` wide. The columns end at these fractions
/// of the length; then each gives up as much as the frames need, as in Keras's table.
fn widths(columns: &[(&str, Side, f64)], length: usize) -> Vec<usize> {
    let mut start = 0;
    let mut widths: Vec<usize> = Vec::new();
    for (_, _, end) in columns {
        let end = (end * length as f64) as usize;
        widths.push(end.saturating_sub(start) + 2);
        start = end;
    }
    let frame = columns.len() + 1;
    let mut excess = (widths.iter().sum::<usize>() + frame).saturating_sub(length);
    let mut left = columns.len();
    for width in &mut widths {
        let share = (excess as f64 / left as f64).round_ties_even() as usize;
        *width = width.saturating_sub(share).max(3) - 2;
        excess = excess.saturating_sub(share);
        left -= 1;
    }
    widths
}

fn rule(text: &mut String, widths: &[usize], [first, dash, between, last]: [char; 4]) {
    text.push(first);
    for (i, width) in widths.iter().enumerate() {
        if i > 0 {
            text.push(between);
        }
        text.extend(std::iter::repeat_n(dash, width + 2));
    }
    text.push(last);
    text.push('\n');
}

/// The cells next to each other, on as many lines as the longest needs. A heading is bottom-aligned.
fn line(
    text: &mut String,
    widths: &[usize],
    columns: &[(&str, Side, f64)],
    cells: &[String],
    head: bool,
) {
    let edge = if head { '┃' } else { '│' };
    let cells: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, &width)| wrapped(cell, width)).collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    for at in 0..lines {
        for ((cell, &width), (_, side, _)) in cells.iter().zip(widths).zip(columns) {
            let above = if head { lines - cell.len() } else { 0 };
            let cell = at.checked_sub(above).and_then(|at| cell.get(at)).map_or("", String::as_str);
            let free = width.saturating_sub(cell.chars().count());
            let before = match side {
                Side::Left => 0,
                Side::Middle => free / 2,
                Side::Right => free,
            };
            let (before, after) = (" ".repeat(before), " ".repeat(free - before));
            let _ = write!(text, "{edge} {before}{cell}{after} ");
        }
        text.push(edge);
        text.push('\n');
    }
}

/// `cell` on lines of at most `width` characters. A word that is longer ends in `…`.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let indent = cell.len() - cell.trim_start().len();
    let mut words = cell.trim_start().split(' ').map(str::to_string);
    let mut at = cell[..indent].to_string() + &words.next().unwrap_or_default();
    for word in words {
        if at.chars().count() + 1 + word.chars().count() <= width {
            at = format!("{at} {word}");
        } else {
            lines.push(std::mem::replace(&mut at, word));
        }
    }
    lines.push(at);
    let short = |line: String| match line.chars().count() > width {
        true => line.chars().take(width - 1).chain(['…']).collect(),
        false => line,
    };
    lines.into_iter().map(short).collect()
}

/// `78,500`.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in Keras's format: `310.59 KB`.
fn memory(mut bytes: f64) -> String {
    let mut units = ["B", "KB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while bytes >= 1024.0 {
        let Some(larger) = units.next() else { break };
        bytes /= 1024.0;
        unit = larger;
    }
    format!("{} {unit}", rounded_text(bytes, 2))
}

/// `(None, 28, 28)`.
pub(crate) fn shape_text(shape: &[Option<usize>]) -> String {
    let size = |size: &Option<usize>| size.map_or("None".to_string(), |size| size.to_string());
    let sizes: Vec<String> = shape.iter().map(size).collect();
    format!("({})", sizes.join(", "))
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
        // A word begins at a capital letter that has a lower-case letter on one of its sides.
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
    fn numbers_are_those_of_keras() {
        assert_eq!(
            [0, 999, 1000, 78_500, 100_001_000].map(grouped),
            ["0", "999", "1,000", "78,500", "100,001,000"]
        );
        let sizes = [0.0, 1023.0, 1024.0, 318_040.0, 400_004_000.0, 1024f64.powi(6)].map(memory);
        assert_eq!(
            sizes,
            ["0.00 B", "1023.00 B", "1.00 KB", "310.59 KB", "381.47 MB", "1024.00 PB"]
        );
        assert_eq!(shape_text(&[None, Some(28)]), "(None, 28)");
        assert_eq!(shape_text(&[None]), "(None)");
        assert_eq!(shape_text(&[]), "()");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(wrapped("a_long_name (Dense)", 8), ["a_long_…", "(Dense)"]);
        assert_eq!(wrapped("   └ dense (Dense)", 12), ["   └ dense", "(Dense)"]);
    }

    // These are results of keras.utils.naming.to_snake_case.
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
