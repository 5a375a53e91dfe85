//! [`Number`]: whole numbers of a graph as functions of the sizes that are open, found by comparing traces.

/// A whole number that is the same for all sizes, or depends on open ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::saved_model) enum Number {
    Known(i64),
    /// `(sum of factor * size + offset) / divisor`.
    Sum {
        terms: Vec<(i64, usize)>,
        offset: i64,
        divisor: i64,
    },
    /// `factor * product of sizes / divisor`; a size may occur twice.
    Product {
        factor: i64,
        sizes: Vec<usize>,
        divisor: i64,
    },
}

/// An `f32` that is the same for all sizes, or `factor` times their product, or divided by it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::saved_model) enum Real {
    Known(f32),
    Open { factor: f32, sizes: Vec<usize>, inverse: bool },
}

/// The sizes that each trace had. The first is the base; each other but the last differs from it in one size, the last in all.
#[derive(Debug, Clone)]
pub(in crate::saved_model) struct Samples(pub(in crate::saved_model) Vec<Vec<usize>>);

impl Samples {
    /// How many sizes are open.
    pub(in crate::saved_model) fn open(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    fn at(&self, trace: usize, size: usize) -> i128 {
        self.0[trace][size] as i128
    }

    /// The number that has these values in the traces, if it is a sum or a product of sizes.
    pub(in crate::saved_model) fn number(&self, values: &[i64]) -> Option<Number> {
        let first = *values.first()?;
        if values.iter().all(|value| *value == first) {
            return Some(Number::Known(first));
        }
        self.sum(values).or_else(|| self.product(values))
    }

    fn sum(&self, values: &[i64]) -> Option<Number> {
        let base = i128::from(values[0]);
        // The slope of each size is a fraction.
        let slopes: Vec<(i128, i128)> = (0..self.open())
            .map(|size| {
                let rise = i128::from(values[size + 1]) - base;
                reduced(rise, self.at(size + 1, size) - self.at(0, size))
            })
            .collect();
        let divisor = slopes.iter().fold(1, |all, (_, part)| all / gcd(all, *part) * part);
        let factors: Vec<i128> = slopes.iter().map(|(rise, run)| rise * (divisor / run)).collect();
        let of = |trace: usize| -> i128 {
            factors.iter().enumerate().map(|(size, factor)| factor * self.at(trace, size)).sum()
        };
        let offset = base * divisor - of(0);
        let fits =
            |(trace, value): (usize, &i64)| of(trace) + offset == i128::from(*value) * divisor;
        let terms = factors.iter().enumerate().filter(|(_, factor)| **factor != 0);
        let terms: Option<Vec<(i64, usize)>> =
            terms.map(|(size, factor)| Some((i64::try_from(*factor).ok()?, size))).collect();
        values.iter().enumerate().all(fits).then_some(Number::Sum {
            terms: terms?,
            offset: i64::try_from(offset).ok()?,
            divisor: i64::try_from(divisor).ok()?,
        })
    }

    fn product(&self, values: &[i64]) -> Option<Number> {
        let base = i128::from(values[0]);
        let mut sizes = Vec::new();
        for size in 0..self.open() {
            let (now, then) = (i128::from(values[size + 1]), self.at(size + 1, size));
            let before = self.at(0, size);
            let power =
                (0..=2).find(|power| now * before.pow(*power) == base * then.pow(*power))?;
            sizes.extend((0..power).map(|_| size));
        }
        let of = |trace: usize| sizes.iter().map(|size| self.at(trace, *size)).product::<i128>();
        let (factor, divisor) = reduced(base, of(0));
        let fits =
            |(trace, value): (usize, &i64)| of(trace) * factor == i128::from(*value) * divisor;
        values.iter().enumerate().all(fits).then_some(Number::Product {
            factor: i64::try_from(factor).ok()?,
            sizes: sizes.clone(),
            divisor: i64::try_from(divisor).ok()?,
        })
    }

    /// As [`Samples::number`], for numbers that were computed of sizes, such as the divisor of a mean.
    pub(in crate::saved_model) fn real(&self, values: &[f32]) -> Option<Real> {
        let first = *values.first()?;
        if values.iter().all(|value| value.to_bits() == first.to_bits()) {
            return Some(Real::Known(first));
        }
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
        for inverse in [false, true] {
            // Divided by the sizes that it is a product of, it is the same in all traces.
            let rest = |trace: usize, sizes: &[usize]| {
                let product: f64 = sizes.iter().map(|size| self.0[trace][*size] as f64).product();
                let value = f64::from(values[trace]);
                if inverse { value * product } else { value / product }
            };
            let varies = |size: &usize| !close(rest(size + 1, &[]), rest(0, &[]));
            let sizes: Vec<usize> = (0..self.open()).filter(varies).collect();
            let factor = rest(0, &sizes);
            if (0..values.len()).all(|trace| close(rest(trace, &sizes), factor)) {
                return Some(Real::Open { factor: factor as f32, sizes, inverse });
            }
        }
        None
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The fraction in lowest terms, with a positive denominator.
fn reduced(a: i128, b: i128) -> (i128, i128) {
    let common = gcd(a, b) * b.signum();
    (a / common, b / common)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        Samples(vec![vec![3, 37], vec![5, 37], vec![3, 53], vec![7, 71]])
    }

    fn of(f: impl Fn(i64, i64) -> i64) -> Option<Number> {
        let samples = samples();
        let values: Vec<i64> =
            samples.0.iter().map(|sizes| f(sizes[0] as i64, sizes[1] as i64)).collect();
        samples.number(&values)
    }

    #[test]
    fn sums_and_products_of_sizes_are_found() {
        assert_eq!(of(|_, _| 9), Some(Number::Known(9)));
        let sum = |terms: &[(i64, usize)], offset, divisor| {
            Some(Number::Sum { terms: terms.to_vec(), offset, divisor })
        };
        assert_eq!(of(|b, _| 4 * b), sum(&[(4, 0)], 0, 1));
        assert_eq!(of(|_, t| 2 * t + 1), sum(&[(2, 1)], 1, 1));
        assert_eq!(of(|_, t| 1 - t), sum(&[(-1, 1)], 1, 1));
        assert_eq!(of(|b, t| b + t), sum(&[(1, 0), (1, 1)], 0, 1));
        assert_eq!(of(|_, t| (t + 1) / 2), sum(&[(1, 1)], 1, 2));
        let product = |factor, sizes: &[usize], divisor| {
            Some(Number::Product { factor, sizes: sizes.to_vec(), divisor })
        };
        assert_eq!(of(|b, t| b * t), product(1, &[0, 1], 1));
        assert_eq!(of(|b, t| 8 * b * t * t), product(8, &[0, 1, 1], 1));
        // Neither: the largest, and a rounded number.
        assert_eq!(of(|b, t| t.max(40) + b), None);
        assert_eq!(of(|_, t| t / 3), None);
    }

    #[test]
    fn quotients_by_sizes_are_found() {
        let samples = samples();
        let of = |f: fn(f32, f32) -> f32| {
            let each = samples.0.iter().map(|sizes| f(sizes[0] as f32, sizes[1] as f32));
            samples.real(&each.collect::<Vec<_>>())
        };
        assert_eq!(of(|_, _| 0.5), Some(Real::Known(0.5)));
        assert!(matches!(of(|_, _| f32::NAN), Some(Real::Known(nan)) if nan.is_nan()));
        let Some(Real::Open { factor, sizes, inverse: true }) = of(|b, t| 2.0 / (b * t)) else {
            panic!("a mean is a quotient");
        };
        assert!((factor - 2.0).abs() < 1e-5 && sizes == [0, 1]);
        assert!(matches!(of(|_, t| t), Some(Real::Open { inverse: false, .. })));
        assert_eq!(of(|_, t| t.sqrt()), None);
    }
}
