//! The text of `tf.print`, which differs from that of `Display`: nothing is aligned, and a number has six digits, or nine
//! if six do not reproduce it.

use crate::dtype::DType;
use crate::tensor::Element;

/// The text of a tensor of `shape`; `bytes` hold `ends` elements at either end of its long axes.
pub(super) fn text(dtype: DType, shape: &[usize], ends: Option<usize>, bytes: &[u8]) -> String {
    let words = words(dtype, bytes);
    let mut writer = Writer { shape, ends, words: words.into_iter(), out: String::new() };
    writer.axis(0);
    writer.out
}

fn words(dtype: DType, bytes: &[u8]) -> Vec<String> {
    fn plain<T: Element + ToString>(bytes: &[u8]) -> Vec<String> {
        T::load(bytes).iter().map(T::to_string).collect()
    }
    match dtype {
        DType::F32 => f32::load(bytes).into_iter().map(float).collect(),
        DType::F16 => half::f16::load(bytes).into_iter().map(|x| float(x.to_f32())).collect(),
        DType::I32 => plain::<i32>(bytes),
        DType::U32 => plain::<u32>(bytes),
        DType::U8 => plain::<u8>(bytes),
        DType::Bool => bool::load(bytes).into_iter().map(|x| u8::from(x).to_string()).collect(),
    }
}

struct Writer<'a> {
    shape: &'a [usize],
    ends: Option<usize>,
    words: std::vec::IntoIter<String>,
    out: String,
}

impl Writer<'_> {
    fn axis(&mut self, axis: usize) {
        let Some(&size) = self.shape.get(axis) else {
            self.out.push_str(&self.words.next().unwrap_or_default());
            return;
        };
        self.out.push('[');
        let ends = self.ends.unwrap_or(size);
        let cut = size / 2 >= ends && size != 2 * ends;
        let count = if cut { 2 * ends } else { size };
        for i in 0..count {
            if i > 0 {
                self.space(axis);
            }
            if cut && i == ends {
                self.out.push_str("...");
                self.space(axis);
            }
            self.axis(axis + 1);
        }
        if cut && ends == 0 {
            self.space(axis);
            self.out.push_str("...");
        }
        self.out.push(']');
    }

    /// The separator of the elements of an axis: a space for the last axis, otherwise line breaks and an indent.
    fn space(&mut self, axis: usize) {
        let breaks = self.shape.len() - axis - 1;
        let indent = if breaks == 0 { 1 } else { axis + 1 };
        self.out.push_str(&"\n".repeat(breaks));
        self.out.push_str(&" ".repeat(indent));
    }
}

/// C's `%.6g`, or `%.9g` if the former is a different number.
fn float(x: f32) -> String {
    if !x.is_finite() {
        return if x.is_nan() {
            "nan"
        } else if x > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let short = general(x, 6);
    if short.parse() == Ok(x) { short } else { general(x, 9) }
}

fn general(x: f32, digits: usize) -> String {
    let x = f64::from(x);
    let scientific = format!("{x:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let after = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{x:.after$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(values: &[i32], shape: &[usize], ends: Option<usize>) -> String {
        text(DType::I32, shape, ends, &i32::store(values))
    }

    /// The output of `tf.print` in TensorFlow 2: `%.6g`, or `%.9g`.
    #[test]
    fn numbers_are_those_of_tensorflow() {
        let numbers =
            [1.0, 0.1, 1.0 / 3.0, -2.5, 1e10, 123456.0, 1234567.0, 1e-5, 0.0001, 0.0, -0.0];
        assert_eq!(
            numbers.map(float).join(" "),
            "1 0.1 0.333333343 -2.5 1e+10 123456 1234567 1e-05 0.0001 0 -0"
        );
        assert_eq!([f32::NAN, f32::INFINITY, -f32::INFINITY].map(float).join(" "), "nan inf -inf");
        assert_eq!(float(16_777_216.0), "16777216");
        assert_eq!(float(3.4e38), "3.4e+38");
        assert_eq!(text(DType::Bool, &[2], None, &bool::store(&[true, false])), "[1 0]");
    }

    #[test]
    fn brackets_are_those_of_tensorflow() {
        assert_eq!(text_of(&[7], &[], Some(3)), "7");
        assert_eq!(text_of(&[1, 2, 3, 4, 5, 6], &[2, 3], Some(3)), "[[1 2 3]\n [4 5 6]]");
        assert_eq!(text_of(&[1, 2, 3, 4], &[2, 1, 2], Some(3)), "[[[1 2]]\n\n [[3 4]]]");
        assert_eq!(text_of(&[], &[0], Some(3)), "[]");
        assert_eq!(text_of(&[], &[2, 0], Some(3)), "[[]\n []]");
        // Of ten elements the first and the last three are there.
        assert_eq!(text_of(&[0, 1, 2, 7, 8, 9], &[10], Some(3)), "[0 1 2 ... 7 8 9]");
        assert_eq!(text_of(&[0, 1, 2, 3, 4, 5], &[6], Some(3)), "[0 1 2 3 4 5]");
        assert_eq!(text_of(&[0, 2, 6, 8], &[3, 3], Some(1)), "[[0 ... 2]\n ...\n [6 ... 8]]");
        assert_eq!(text_of(&[0, 1, 2], &[3], None), "[0 1 2]");
        assert_eq!(text_of(&[], &[3], Some(0)), "[ ...]");
    }
}
