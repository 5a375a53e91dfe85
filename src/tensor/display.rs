//! A tensor as text: `Display` prints what TensorFlow 2 prints with NumPy 2; `Debug` prints the op that made it, its
//! shape, dtype and device.
//!
//! `Display` reads the value from the device and blocks; `Debug` never reads. People read this text: it rounds values
//! and abbreviates long tensors, so no program should parse it.

use std::fmt;

use half::f16;

use crate::device::platform;
use crate::dtype::DType;

use super::{Element, Tensor};

/// An array shows at most this many digits after the point; a scalar shows all it needs.
const PRECISION: usize = 8;
/// An array of more elements is abbreviated.
const THRESHOLD: usize = 1000;
/// An abbreviated axis shows this many elements at either end.
const EDGE: usize = 3;
/// A line has this many columns.
const LINE_WIDTH: usize = 75;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&framed(self, &value_text(self)))
    }
}

/// The text that `Display` prints for a tensor with these stored bytes.
pub(super) fn text(tensor: &Tensor, bytes: &[u8]) -> String {
    framed(tensor, &format_values(&Values::new(tensor.dtype(), bytes), tensor.shape()))
}

fn framed(tensor: &Tensor, text: &str) -> String {
    // The first row of a matrix starts on a new line, so that all rows line up.
    let start = if text.contains('\n') { "\n" } else { "" };
    let (shape, dtype) = (shape_text(tensor.shape()), tensor.dtype().tensorflow_name());
    format!("tf.Tensor({start}{text}, shape={shape}, dtype={dtype})")
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("op", &format_args!("{}", self.value().op))
            .field("shape", &format_args!("{:?}", self.shape()))
            .field("dtype", &format_args!("{}", self.dtype()))
            .field("device", self.device())
            .finish()
    }
}

fn value_text(tensor: &Tensor) -> String {
    if !platform::MAY_BLOCK {
        return "<not read: await to_string_async>".to_owned();
    }
    match tensor.to_bytes() {
        Ok(bytes) => format_values(&Values::new(tensor.dtype(), &bytes), tensor.shape()),
        Err(error) => format!("<not read: {error}>"),
    }
}

/// A shape as Python writes a tuple: `()`, `(3,)`, `(2, 3)`.
fn shape_text(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Values on the host, in row-major order. Integers of every width print alike.
enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Int(Vec<i64>),
    Bool(Vec<bool>),
}

impl Values {
    fn new(dtype: DType, bytes: &[u8]) -> Self {
        fn wide<T: Element + Into<i64>>(bytes: &[u8]) -> Values {
            Values::Int(T::load(bytes).into_iter().map(Into::into).collect())
        }
        match dtype {
            DType::F32 => Values::F32(Element::load(bytes)),
            DType::F16 => Values::F16(Element::load(bytes)),
            DType::I32 => wide::<i32>(bytes),
            DType::U32 => wide::<u32>(bytes),
            DType::U8 => wide::<u8>(bytes),
            DType::Bool => Values::Bool(Element::load(bytes)),
        }
    }
}

/// The text of `str(array)` with the default print options of NumPy 2.0 to 2.2. NumPy 2.3 and later print exponents for
/// smaller numbers, from 1e6 for `f32` and 1e3 for `f16`.
fn format_values(values: &Values, shape: &[usize]) -> String {
    if shape.contains(&0) {
        return "[]".to_owned();
    }
    if shape.is_empty() {
        return scalar_text(values);
    }
    let abbreviated = shape.iter().product::<usize>() > THRESHOLD;
    let mut at = Vec::new();
    collect_shown(shape, abbreviated, 0, &mut at);
    // The elements that are shown set the width of the columns; a long number in the hidden part does not count.
    let words = match values {
        Values::F32(v) => float_words(&pick(v, &at)),
        Values::F16(v) => float_words(&pick(v, &at)),
        Values::Int(v) => aligned(pick(v, &at).iter().map(i64::to_string).collect()),
        Values::Bool(v) => bool_words(&pick(v, &at)),
    };
    let mut layout = Layout { shape, abbreviated, words: words.into_iter(), out: String::new() };
    layout.write_axis(0);
    layout.out
}

/// A tensor of rank 0, as Python prints a number.
fn scalar_text(values: &Values) -> String {
    let text = match values {
        Values::F32(v) => v.first().map(|&x| Number::new(x).alone()),
        Values::F16(v) => v.first().map(|&x| Number::new(x).alone()),
        Values::Int(v) => v.first().map(i64::to_string),
        Values::Bool(v) => v.first().map(|&x| bool_text(x).to_owned()),
    };
    text.unwrap_or_default()
}

fn pick<T: Copy>(values: &[T], at: &[usize]) -> Vec<T> {
    at.iter().filter_map(|&i| values.get(i).copied()).collect()
}

/// The positions along an axis that are shown: all, or those at both ends with `None` for the gap between.
fn shown(size: usize, abbreviated: bool) -> Vec<Option<usize>> {
    if abbreviated && size > 2 * EDGE {
        let (head, tail) = ((0..EDGE).map(Some), (size - EDGE..size).map(Some));
        head.chain([None]).chain(tail).collect()
    } else {
        (0..size).map(Some).collect()
    }
}

/// Appends the flat indices of the elements that are shown, in order; `base` counts the axes before.
fn collect_shown(shape: &[usize], abbreviated: bool, base: usize, at: &mut Vec<usize>) {
    match shape {
        [] => at.push(base),
        [size, rest @ ..] => {
            for i in shown(*size, abbreviated).into_iter().flatten() {
                collect_shown(rest, abbreviated, base * size + i, at);
            }
        }
    }
}

/// Writes brackets, line breaks and indents around the words of the elements.
struct Layout<'a> {
    shape: &'a [usize],
    abbreviated: bool,
    words: std::vec::IntoIter<String>,
    out: String,
}

impl Layout<'_> {
    fn write_axis(&mut self, axis: usize) {
        if axis + 1 == self.shape.len() {
            return self.write_row();
        }
        // One line break between rows, two between matrices, three between stacks of those.
        let breaks = "\n".repeat(self.shape.len() - axis - 1);
        self.out.push('[');
        for (nth, i) in shown(self.shape[axis], self.abbreviated).into_iter().enumerate() {
            if nth > 0 {
                self.out.push_str(&breaks);
                self.indent(axis + 1);
            }
            match i {
                Some(_) => self.write_axis(axis + 1),
                None => self.out.push_str("..."),
            }
        }
        self.out.push(']');
    }

    /// The last axis: words in lines.
    fn write_row(&mut self) {
        let rank = self.shape.len();
        // Every axis closes with a bracket, and all brackets may have to follow the last word.
        let width = LINE_WIDTH.saturating_sub(rank);
        self.out.push('[');
        let mut column = rank;
        for (nth, i) in shown(self.shape[rank - 1], self.abbreviated).into_iter().enumerate() {
            let word =
                i.map_or_else(|| Some("...".to_owned()), |_| self.words.next()).unwrap_or_default();
            if nth > 0 {
                self.out.push(' ');
                column += 1;
            }
            // A word wider than the line gains nothing on the next one.
            if column + word.len() > width && column > rank {
                self.out.truncate(self.out.trim_end().len());
                self.out.push('\n');
                self.indent(rank);
                column = rank;
            }
            self.out.push_str(&word);
            column += word.len();
        }
        self.out.push(']');
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }
}

/// Pads the words on the left to the width of the longest.
fn aligned(words: Vec<String>) -> Vec<String> {
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

fn bool_text(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

fn bool_words(values: &[bool]) -> Vec<String> {
    // NumPy makes the column as wide as `False` even where no element is false.
    values.iter().map(|&value| format!("{:>5}", bool_text(value))).collect()
}

/// A float type. The type's rounding decides how many digits a value needs.
trait Float: Copy + Into<f64> {
    /// The number of significant digits that distinguishes all values of the type.
    const DIGITS: usize;
    /// Bits of the fraction.
    const BITS: i32;

    /// True if parsing the text returns this value.
    fn is_written(self, text: &str) -> bool;

    /// True if positional notation would waste columns on values between these magnitudes, which are
    /// values of this type.
    fn wants_exponent(smallest: f64, largest: f64) -> bool;
}

impl Float for f32 {
    const DIGITS: usize = 9;
    const BITS: i32 = 23;

    fn is_written(self, text: &str) -> bool {
        text.parse() == Ok(self)
    }

    fn wants_exponent(smallest: f64, largest: f64) -> bool {
        let (smallest, largest) = (smallest as f32, largest as f32);
        largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000.0
    }
}

impl Float for f16 {
    const DIGITS: usize = 5;
    const BITS: i32 = 10;

    fn is_written(self, text: &str) -> bool {
        text.parse().is_ok_and(|value| f16::from_f64(value) == self)
    }

    fn wants_exponent(smallest: f64, largest: f64) -> bool {
        // No `f16` reaches 1e8, so only the other two reasons are left.
        let ratio = f16::from_f64(largest / smallest);
        f16::from_f64(smallest) < f16::from_f64(1e-4) || ratio > f16::from_f64(1000.0)
    }
}

/// A float of any type on its way to text.
#[derive(Clone, Copy)]
struct Number {
    exact: f64,
    /// The number of fewest digits that the type still rounds to this value.
    short: f64,
}

impl Number {
    fn new<F: Float>(value: F) -> Self {
        let exact: f64 = value.into();
        // The range of numbers that round to a power of two reaches further above it than below. A shorter text may be
        // near the middle of that range without being a rounding of the number itself. For other numbers it is not
        // shorter.
        let middle = exact * (1.0 + f64::powi(2.0, -F::BITS - 3));
        // `{:e}` of an f32 finds the digits as well, but rounds a tie up where NumPy rounds to even.
        let short = (0..F::DIGITS)
            .flat_map(|digits| [format!("{exact:.digits$e}"), format!("{middle:.digits$e}")])
            .find(|text| value.is_written(text))
            .and_then(|text| text.parse().ok());
        Number { exact, short: short.unwrap_or(exact) }
    }

    /// The text that Python prints outside an array: all digits, and `.0` after an integer.
    fn alone(self) -> String {
        let magnitude = self.exact.abs();
        if !magnitude.is_finite() {
            self.special().to_owned()
        } else if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
            let (whole, fraction) = self.positional(None);
            format!("{whole}.{}", if fraction.is_empty() { "0" } else { &fraction })
        } else {
            let (whole, fraction, exponent) = self.scientific(0);
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{whole}{point}{fraction}{exponent}")
        }
    }

    fn special(self) -> &'static str {
        match self.exact {
            x if x.is_nan() => "nan",
            x if x < 0.0 => "-inf",
            _ => "inf",
        }
    }

    fn sign(self) -> &'static str {
        if self.exact.is_sign_negative() { "-" } else { "" }
    }

    /// The digits before and after the point, of the latter at most `limit` in an array.
    fn positional(self, limit: Option<usize>) -> (String, String) {
        let mut text = self.short.abs().to_string();
        let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        if let Some(limit) = limit.filter(|limit| digits == 0 || digits > *limit) {
            // An array shows all digits before the point, and the exact number is rounded once.
            text = format!("{:.*}", digits.min(limit), self.exact.abs());
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        (format!("{}{whole}", self.sign()), fraction.trim_end_matches('0').to_owned())
    }

    /// The digits before the point, those after it (at least `least`), and the exponent as `e+08`. No type here needs
    /// more than [`PRECISION`] digits after the point.
    fn scientific(self, least: usize) -> (String, String, String) {
        let mut text = format!("{:e}", self.short.abs());
        // One digit and the point come before the fraction.
        if text.find('e').is_some_and(|end| end < least + 2) && least > 0 {
            // Further digits are those of the exact number: zeros would claim another value.
            text = format!("{:.least$e}", self.exact.abs());
        }
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |e| ("-", e));
        let whole = format!("{}{whole}", self.sign());
        (whole, fraction.to_owned(), format!("e{sign}{exponent:0>2}"))
    }
}

/// The elements of an array, all in one notation and with their points in one column.
fn float_words<F: Float>(values: &[F]) -> Vec<String> {
    let numbers: Vec<Number> = values.iter().map(|&value| Number::new(value)).collect();
    let scientific = needs_exponent::<F>(&numbers);
    let fraction_len = |number: &Number| match scientific {
        true => number.scientific(0).1.len(),
        false => number.positional(Some(PRECISION)).1.len(),
    };
    let finite = numbers.iter().filter(|number| number.exact.is_finite());
    let digits = finite.map(fraction_len).max().unwrap_or(0);
    // Every fraction has the same width, so aligning the ends aligns the points.
    let words = numbers.iter().map(|number| {
        if !number.exact.is_finite() {
            number.special().to_owned()
        } else if scientific {
            let (whole, fraction, exponent) = number.scientific(digits);
            format!("{whole}.{fraction}{exponent}")
        } else {
            let (whole, fraction) = number.positional(Some(PRECISION));
            format!("{whole}.{fraction:<digits$}")
        }
    });
    aligned(words.collect())
}

/// Whether NumPy prints these with exponents, which depends on the magnitudes that are neither zero nor infinite.
fn needs_exponent<F: Float>(numbers: &[Number]) -> bool {
    let magnitudes = numbers.iter().map(|number| number.exact.abs());
    let mut counted = magnitudes.filter(|magnitude| magnitude.is_finite() && *magnitude > 0.0);
    let Some(first) = counted.next() else { return false };
    let (smallest, largest) =
        counted.fold((first, first), |(small, large), x| (x.min(small), x.max(large)));
    F::wants_exponent(smallest, largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    // The expected texts are what NumPy 2.2 printed for these values.
    #[track_caller]
    fn check_f32(values: &[f32], expected: &str) {
        assert_eq!(format_values(&Values::F32(values.to_vec()), &[values.len()]), expected);
    }

    #[track_caller]
    fn check_f16(values: &[f32], expected: &str) {
        let halves = values.iter().copied().map(f16::from_f32).collect();
        assert_eq!(format_values(&Values::F16(halves), &[values.len()]), expected);
    }

    /// The integers from 0 in this shape.
    #[track_caller]
    fn check_range(shape: &[usize], expected: &str) {
        let count = shape.iter().product::<usize>() as i64;
        assert_eq!(format_values(&Values::Int((0..count).collect()), shape), expected);
    }

    #[test]
    fn scalars_and_shapes_print_as_in_python() {
        let shapes = [shape_text(&[]), shape_text(&[3]), shape_text(&[2, 3])];
        assert_eq!(shapes.join(" "), "() (3,) (2, 3)");
        let values = [3.0, -0.0, 1e-4, 0.1, 1.5e-7, 1e16, NAN, -INF];
        let texts = values.map(|value| format_values(&Values::F32(vec![value]), &[]));
        assert_eq!(texts.join(" "), "3.0 -0.0 1e-04 0.1 1.5e-07 1e+16 nan -inf");
        assert_eq!(format_values(&Values::F16(vec![f16::MAX]), &[]), "65500.0");
        assert_eq!(format_values(&Values::Bool(vec![true]), &[]), "True");
        check_range(&[], "0");
    }

    #[test]
    fn points_line_up() {
        check_f32(&[1.0, 2.0, 3.0], "[1. 2. 3.]");
        check_f32(&[0.5, -1.25, 100.0], "[  0.5   -1.25 100.  ]");
        check_f32(&[-0.0, 0.0], "[-0.  0.]");
        check_f32(&[1.0 / 3.0, 0.001, 0.7], "[0.33333334 0.001      0.7       ]");
        let square = Values::F32(vec![1.0, 2.0, 3.0, 4.0]);
        assert_eq!(format_values(&square, &[2, 2]), "[[1. 2.]\n [3. 4.]]");
    }

    #[test]
    fn digits_are_the_shortest_within_eight_after_the_point() {
        check_f32(&[0.001953125, 0.12345679], "[0.00195312 0.12345679]");
        check_f32(&[77893072.0], "[77893072.]");
        check_f16(&[0.1, 0.3335], "[0.1    0.3335]");
        check_f16(&[0.015625, 8.0, 0.25], "[0.01563 8.      0.25   ]");
    }

    #[test]
    fn magnitudes_far_apart_are_printed_with_exponents() {
        check_f32(&[1.0, 1000.0], "[   1. 1000.]");
        check_f32(&[1.0, 1001.0], "[1.000e+00 1.001e+03]");
        check_f32(&[99999992.0], "[99999992.]");
        check_f32(&[1e8], "[1.e+08]");
        check_f32(&[9.9e-5, 0.0], "[9.9e-05 0.0e+00]");
        check_f32(&[-5.855288e-7, -1.3412197e-6], "[-5.8552882e-07 -1.3412197e-06]");
        check_f32(&[2529947.2, 0.001], "[2.5299472e+06 1.0000000e-03]");
        check_f16(&[65504.0, 1.0], "[6.55e+04 1.00e+00]");
    }

    #[test]
    fn values_that_are_not_finite_fill_the_column() {
        check_f32(&[NAN, INF], "[nan inf]");
        check_f32(&[NAN, -INF, 1.5], "[ nan -inf  1.5]");
        check_f32(&[NAN, 1e-9, INF], "[   nan 1.e-09    inf]");
    }

    #[test]
    fn integers_and_bools_are_right_aligned() {
        let ints = Values::Int(vec![1, -20, 300, 4]);
        assert_eq!(format_values(&ints, &[2, 2]), "[[  1 -20]\n [300   4]]");
        assert_eq!(format_values(&Values::Bool(vec![true, false]), &[2]), "[ True False]");
        assert_eq!(format_values(&Values::Bool(vec![true]), &[1]), "[ True]");
    }

    #[test]
    fn blocks_are_set_apart_and_rows_wrap() {
        check_range(&[2, 0], "[]");
        check_range(&[2, 2, 2], "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
        check_range(&[2, 1, 2, 1], "[[[[0]\n   [1]]]\n\n\n [[[2]\n   [3]]]]");
        check_range(&[1, 1, 1, 1, 1], "[[[[[0]]]]]");
        let lines = [
            "[[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
            "  24 25 26 27 28 29]]",
        ];
        check_range(&[1, 30], &lines.join("\n"));
    }

    #[test]
    fn large_arrays_are_abbreviated() {
        check_range(&[1001], "[   0    1    2 ...  998  999 1000]");
        let lines = [
            "[[[   0    1    2 ...  147  148  149]",
            "  [ 150  151  152 ...  297  298  299]",
            "  [ 300  301  302 ...  447  448  449]",
            "  ...",
            "  [ 600  601  602 ...  747  748  749]",
            "  [ 750  751  752 ...  897  898  899]",
            "  [ 900  901  902 ... 1047 1048 1049]]]",
        ];
        check_range(&[1, 7, 150], &lines.join("\n"));
    }
}
