//! The kernels of a Fourier transform: a pass for each factor of its length (Stockham's self-sorting form).

use std::fmt::Write;

use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering};
use crate::wgsl::{expand, shader};

/// The factors of a length, one for each pass; `None` if it has a prime factor above 13.
pub(super) fn factors(n: usize) -> Option<Vec<usize>> {
    let (mut rest, mut factors) = (n, Vec::new());
    for prime in [13, 11, 7, 5, 3] {
        while rest > 1 && rest.is_multiple_of(prime) {
            rest /= prime;
            factors.push(prime);
        }
    }
    let twos = if rest > 0 { rest.trailing_zeros() as usize } else { 0 };
    if rest != 1 << twos {
        return None;
    }
    // As few passes as factors of up to 16 allow, all of about the same size.
    let passes = twos.div_ceil(4);
    factors
        .extend((0..passes).map(|pass| 1 << (twos / passes + usize::from(pass < twos % passes))));
    Some(factors)
}

/// Transforms of the middle axis of `[batch, n, inner]` pairs.
#[derive(Clone, Copy)]
pub(super) struct Passes {
    pub(super) batch: usize,
    pub(super) n: usize,
    pub(super) inner: usize,
    pub(super) inverse: bool,
}

impl Passes {
    /// A kernel for each pass, without bindings; `n` must have factors.
    pub(super) fn kernels(&self, factors: &[usize]) -> Vec<Kernel> {
        let Passes { batch, n, inner, inverse } = *self;
        let (mut m, mut s) = (n, inner);
        let mut kernels = Vec::new();
        for (pass, &r) in factors.iter().enumerate() {
            m /= r;
            let last = pass + 1 == factors.len();
            // An inverse transform is a transform with exchanged parts, before and after.
            let swap = usize::from(inverse && pass == 0) + 2 * usize::from(inverse && last);
            let scale = if inverse && last { 1.0 / n as f64 } else { 1.0 };
            let total = batch * (n / r) * inner;
            let file = shader!(include_str!("../../../shaders/fft.wgsl"));
            let kernel = Kernel::new("fft", "")
                .constant("WG", 64)
                .constant("R", r as u32)
                .declare(TURN)
                .declare(dft(r))
                .declare(expand(file, &[("R", r)], &[]))
                .param("m", m)
                .param("s", s)
                .param("swap", swap)
                .param("scale", (scale as f32).to_bits() as usize)
                .param("total", total)
                .workgroups(total.div_ceil(64), 0);
            kernels.push(kernel);
            s *= r;
        }
        kernels
    }
}

/// The kernel between the spectrum of `m` pairs and the half spectrum of the `2 m` real numbers in them.
pub(super) fn halves(batch: usize, m: usize, inverse: bool) -> Kernel {
    let total = batch * if inverse { m } else { m + 1 };
    let file = shader!(include_str!("../../../shaders/fft_real.wgsl"));
    Kernel::new("fft_real", "")
        .constant("WG", 64)
        .declare(TURN)
        .declare(expand(file, &[], &[("INVERSE", inverse)]))
        .param("m", m)
        .param("total", total)
        .workgroups(total.div_ceil(64), 0)
}

/// Connects the kernels: each reads the output of the previous one, at most `pairs` pairs.
pub(super) fn chain(kernels: Vec<Kernel>, pairs: usize) -> Lowering {
    let last = kernels.len() - 1;
    let bind = |(i, kernel): (usize, Kernel)| {
        let from = if i == 0 { Bind::Input(0) } else { Bind::Temp((i - 1) % 2) };
        let to = if i == last { Bind::Output } else { Bind::Temp(i % 2) };
        kernel.read(from).write(to)
    };
    let kernels = kernels.into_iter().enumerate().map(bind).collect();
    Lowering::Kernels(Kernels { temps: vec![DType::F32.bytes(2 * pairs); last.min(2)], kernels })
}

/// `turn(k, n)`: e^(-2 pi i k / n) for k < n, accurate to the last digit: integer arithmetic finds the eighth of the
/// circle, so that the argument of the polynomials is at most pi / 4.
const TURN: &str = "fn turn(k: u32, n: u32) -> vec2<f32> {
    let eighth = 8u * k / n;
    let rest = 8u * k - eighth * n;
    let odd = (eighth & 1u) == 1u;
    let a = f32(select(rest, n - rest, odd)) / f32(n) * 0.7853981633974483;
    let b = a * a;
    let sine = a + a * b * (-0.16666667 + b * (0.008333333 + b * (-0.0001984127 + b * 2.7557319e-6)));
    let cosine = 1.0 + b * (-0.5 + b * (0.041666667 + b * (-0.0013888889 + b * (2.4801587e-5 - b * 2.755732e-7))));
    let upright = ((eighth + 1u) & 2u) == 2u;
    let x = select(cosine, sine, upright);
    let y = select(sine, cosine, upright);
    return vec2<f32>(select(x, -x, ((eighth + 2u) & 4u) == 4u), select(-y, y, eighth >= 4u));
}";

/// The WGSL function that transforms `r` numbers.
fn dft(r: usize) -> String {
    let mut text = format!(
        "fn dft(v: array<vec2<f32>, {r}>) -> array<vec2<f32>, {r}> {{\n    \
         let h = 0.7071067811865476;\n"
    );
    let inputs: Vec<String> = (0..r).map(|k| format!("v[{k}]")).collect();
    let mut count = 0;
    let outputs = transform(&mut text, &mut count, &inputs);
    let _ = writeln!(text, "    return array<vec2<f32>, {r}>({});\n}}", outputs.join(", "));
    text
}

/// Writes the transform of the named values, and names its results.
fn transform(text: &mut String, count: &mut usize, v: &[String]) -> Vec<String> {
    let r = v.len();
    let mut name = |text: &mut String, value: String| {
        *count += 1;
        let _ = writeln!(text, "    let t{count} = {value};");
        format!("t{count}")
    };
    if r == 1 {
        return v.to_vec();
    }
    if !r.is_multiple_of(2) {
        return odd(text, &mut name, v);
    }
    let half = |start: usize| v.iter().skip(start).step_by(2).cloned().collect::<Vec<_>>();
    let even = transform(text, count, &half(0));
    let other = transform(text, count, &half(1));
    let mut sums = vec![String::new(); r];
    for j in 0..r / 2 {
        let (e, o) = (&even[j], &other[j]);
        // The other half is rotated by j / r of a circle.
        let turned = match (8 * j) as f64 / r as f64 {
            0.0 => o.clone(),
            2.0 => format!("vec2<f32>({o}.y, -{o}.x)"),
            1.0 => format!("vec2<f32>({o}.x + {o}.y, {o}.y - {o}.x) * h"),
            3.0 => format!("vec2<f32>({o}.y - {o}.x, -{o}.x - {o}.y) * h"),
            _ => {
                let (s, c) = (std::f64::consts::TAU * j as f64 / r as f64).sin_cos();
                format!("vec2<f32>({o}.x * {c:?} + {o}.y * {s:?}, {o}.y * {c:?} - {o}.x * {s:?})")
            }
        };
        let mut name = |value: String| {
            *count += 1;
            let _ = writeln!(text, "    let t{count} = {value};");
            format!("t{count}")
        };
        let turned = name(turned);
        sums[j] = name(format!("{e} + {turned}"));
        sums[j + r / 2] = name(format!("{e} - {turned}"));
    }
    sums
}

/// The transform of an odd number of values: those at equal distances from the first are combined.
fn odd(
    text: &mut String,
    name: &mut dyn FnMut(&mut String, String) -> String,
    v: &[String],
) -> Vec<String> {
    let r = v.len();
    let half = r / 2;
    let pairs: Vec<[String; 2]> = (1..=half)
        .map(|k| {
            let sum = name(text, format!("{} + {}", v[k], v[r - k]));
            [sum, name(text, format!("{} - {}", v[k], v[r - k]))]
        })
        .collect();
    let sums: Vec<&str> = pairs.iter().map(|pair| &pair[0][..]).collect();
    let mut results = vec![String::new(); r];
    results[0] = name(text, format!("{} + {}", v[0], sums.join(" + ")));
    for j in 1..=half {
        let angle = |k: usize| std::f64::consts::TAU * (j * k % r) as f64 / r as f64;
        let terms = |which: usize, f: fn(f64) -> f64| -> String {
            let term = |k: usize| format!("{} * {:?}", pairs[k - 1][which], f(angle(k)));
            (1..=half).map(term).collect::<Vec<_>>().join(" + ")
        };
        let even = name(text, format!("{} + {}", v[0], terms(0, f64::cos)));
        let other = name(text, terms(1, f64::sin));
        let turned = name(text, format!("vec2<f32>({other}.y, -{other}.x)"));
        results[j] = name(text, format!("{even} + {turned}"));
        results[r - j] = name(text, format!("{even} - {turned}"));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_few_and_give_the_length() {
        for n in 1..3000usize {
            let smooth = [2, 3, 5, 7, 11, 13].iter().fold(n, |mut rest, prime| {
                while rest.is_multiple_of(*prime) {
                    rest /= prime;
                }
                rest
            });
            match factors(n) {
                Some(list) => assert_eq!((list.iter().product::<usize>(), smooth), (n, 1), "{n}"),
                None => assert!(smooth > 1, "{n}"),
            }
        }
        assert_eq!(factors(1 << 20).map(|list| list.len()), Some(5));
        assert_eq!(factors(32), Some(vec![8, 4]));
        assert_eq!(factors(0), None);
    }
}
