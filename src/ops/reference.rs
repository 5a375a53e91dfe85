//! Functions in `f64` that Rust's standard library lacks, for the references of table rows; tests outside the crate
//! include the file.
#![allow(dead_code)]

/// The error function, by its series near 0 and by a continued fraction of `erfc` beyond.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() > 3.0 {
        return x.signum() * (1.0 - erfc_fraction(x.abs()));
    }
    // erf(x) = 2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)), Abramowitz and Stegun 7.1.5
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// `1 - erf(x)` without cancellation for large `x`.
pub(crate) fn erfc(x: f64) -> f64 {
    if x > 3.0 { erfc_fraction(x) } else { 1.0 - erf(x) }
}

/// Abramowitz and Stegun 7.1.14.
fn erfc_fraction(x: f64) -> f64 {
    let fraction = (1..60).rev().fold(0.0, |f, n| f64::from(n) / 2.0 / (x + f));
    (-x * x).exp() / ((x + fraction) * std::f64::consts::PI.sqrt())
}

/// `log |gamma(x)|`, by Stirling's formula from 12 on.
pub(crate) fn lgamma(x: f64) -> f64 {
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    if x <= 0.0 {
        let sine = (std::f64::consts::PI * (x - x.round())).sin().abs();
        return match sine == 0.0 || x.is_infinite() {
            true => f64::INFINITY,
            false => (std::f64::consts::PI / sine).ln() - lgamma(1.0 - x),
        };
    }
    let steps = (12.0 - x).ceil().max(0.0);
    let product: f64 = (0..steps as usize).map(|k| x + k as f64).product();
    let w = x + steps;
    let z = 1.0 / (w * w);
    let more = (1.0 / 12.0
        + z * (-1.0 / 360.0 + z * (1.0 / 1260.0 + z * (-1.0 / 1680.0 + z / 1188.0))))
        / w;
    let half_log_2_pi = 0.918_938_533_204_672_7;
    match x.is_infinite() {
        true => x,
        false => (w - 0.5) * (w.ln() - 1.0) - 0.5 + half_log_2_pi + more - product.ln(),
    }
}

/// The derivative of `lgamma`, in the same way.
pub(crate) fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        let turn = std::f64::consts::PI * (x - x.round());
        return match turn == 0.0 || x.is_infinite() {
            true => f64::NAN,
            false => digamma(1.0 - x) - std::f64::consts::PI / turn.tan(),
        };
    }
    let steps = (12.0 - x).ceil().max(0.0);
    let sum: f64 = (0..steps as usize).map(|k| 1.0 / (x + k as f64)).sum();
    let w = x + steps;
    let z = 1.0 / (w * w);
    let series = 1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0)));
    w.ln() - 0.5 / w - z * (1.0 / 12.0 - z * series) - sum
}

/// Hurwitz's zeta function: forty terms, and the rest by the formula of Euler and Maclaurin.
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    let pole = q <= 0.0 && (q == q.floor() || q.is_infinite());
    if s == 1.0 || s > 1.0 && pole && s % 2.0 == 0.0 {
        return f64::INFINITY;
    }
    if pole {
        return f64::NAN;
    }
    if s < 1.0 || s.is_nan() || q < 0.0 && s != s.floor() {
        return f64::NAN;
    }
    let terms = 40 + (-q).max(0.0).ceil() as usize;
    let sum: f64 = (0..terms).map(|k| (q + k as f64).powf(-s)).sum();
    let w = q + terms as f64;
    let series = 1.0 / 12.0 - (s + 1.0) * (s + 2.0) / (w * w) * (1.0 / 720.0);
    sum + w.powf(1.0 - s) * (1.0 / (s - 1.0) + (0.5 + s / w * series) / w)
}

/// The inverse of the normal distribution, by Newton's method for its logarithm.
pub(crate) fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p > 0.5 {
        return if p == 0.0 { f64::NEG_INFINITY } else { -ndtri(1.0 - p) };
    }
    let root2 = std::f64::consts::SQRT_2;
    // log(erfc(y) / 2) is concave, so all steps after the first have the same direction.
    let mut y = (-(2.0 * p).ln()).sqrt();
    for _ in 0..60 {
        let tail = erfc(y);
        let slope = -std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp() / tail;
        y -= ((tail / 2.0).ln() - p.ln()) / slope;
    }
    -y * root2
}

/// The inverse of `erf`.
pub(crate) fn erfinv(x: f64) -> f64 {
    if x.abs() > 1.0 || x.is_nan() {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    // Near 0 the series is used, because 1 - |x| has fewer digits.
    let mut y = x * std::f64::consts::PI.sqrt() / 2.0;
    if x.abs() > 0.5 {
        y = -x.signum() * ndtri((1.0 - x.abs()) / 2.0) / std::f64::consts::SQRT_2;
        return y;
    }
    for _ in 0..30 {
        y -= (erf(y) - x) / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
    }
    y
}

/// `e^-x` times the modified Bessel function of order 0 or 1: its series up to 40, the one in `1 / x` beyond.
fn bessel(order: i32, x: f64) -> f64 {
    let nu = f64::from(order);
    if x > 40.0 {
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..20 {
            let odd = 2.0 * f64::from(k) - 1.0;
            term *= -(4.0 * nu * nu - odd * odd) / (8.0 * f64::from(k) * x);
            sum += term;
        }
        return sum / (2.0 * std::f64::consts::PI * x).sqrt();
    }
    let mut term = (x / 2.0).powi(order);
    let mut sum = term;
    for k in 1..200 {
        term *= x * x / 4.0 / (f64::from(k) * (f64::from(k) + nu));
        sum += term;
    }
    sum * (-x).exp()
}

pub(crate) fn bessel_i0e(x: f64) -> f64 {
    if x.is_infinite() { 0.0 } else { bessel(0, x.abs()) }
}

pub(crate) fn bessel_i1e(x: f64) -> f64 {
    if x.is_infinite() { 0.0 } else { x.signum() * bessel(1, x.abs()) }
}

/// NaN for infinity, as in TensorFlow; infinity if `e^x` exceeds the range of `f32`.
pub(crate) fn bessel_i0(x: f64) -> f64 {
    let scale = f64::from(x.abs().exp() as f32);
    if scale.is_infinite() { scale * bessel_i0e(x) } else { x.abs().exp() * bessel_i0e(x) }
}

pub(crate) fn bessel_i1(x: f64) -> f64 {
    let scale = f64::from(x.abs().exp() as f32);
    if scale.is_infinite() { scale * bessel_i1e(x) } else { x.abs().exp() * bessel_i1e(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tables of Abramowitz and Stegun, and SciPy.
    #[test]
    fn special_functions_match_tables() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-12, "{got} {want}");
        close(lgamma(0.5), 0.572_364_942_924_700_1);
        close(lgamma(-2.5), -0.056_243_716_497_674_01);
        close(lgamma(80.0), 269.291_097_651_019_8);
        close(digamma(1.0), -0.577_215_664_901_532_9);
        close(digamma(-0.5), 0.036_489_973_978_576_52);
        close(zeta(2.0, 1.0), std::f64::consts::PI.powi(2) / 6.0);
        close(zeta(3.0, -2.5), 0.054_102_025_820_863_7);
        close(erfinv(0.5), 0.476_936_276_204_469_9);
        close(erfinv(-0.99), -1.821_386_367_718_449_7);
        close(ndtri(0.975), 1.959_963_984_540_054);
        close(ndtri(1e-30), -11.464_024_688_443_613);
        close(bessel_i0(2.0), 2.279_585_302_336_067);
        close(bessel_i1(-20.0), -42_454_973.385_127_77);
        close(bessel_i1e(100.0), 0.039_744_153_025_130_25);
    }

    #[test]
    fn erf_matches_tables() {
        for (x, want) in [(0.0, 0.0), (0.5, 0.520_499_877_813_047), (2.0, 0.995_322_265_018_953)] {
            assert!((erf(x) - want).abs() < 1e-14, "{x}");
        }
        assert!((erfc(4.0) / 1.541_725_790_028_002e-8 - 1.0).abs() < 1e-12);
        assert!((erf(-3.5) + 0.999_999_256_901_628).abs() < 1e-14);
    }
}
