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

/// The sizes that each trace had.
#[derive(Debug, Clone, Default)]
pub(in crate::saved_model) struct Samples {
    /// The open sizes of each trace. The first is the base; then there is one for each size that differs from it in this one; others
    /// differ from it in all.
    pub(in crate::saved_model) open: Vec<Vec<usize>>,
    /// The sizes of results that are no sums or products of open ones, such as those of windows with strides: each in all traces.
    /// Numbers have them behind the open ones.
    results: Vec<Vec<usize>>,
}

/// The most sizes of results that are tried for a number, and the most that it is a product of.
const TRIED: usize = 24;
const FACTORS: usize = 3;

impl Samples {
    pub(in crate::saved_model) fn new(open: Vec<Vec<usize>>) -> Self {
        Samples { open, results: Vec::new() }
    }

    /// How many sizes are open.
    pub(in crate::saved_model) fn open(&self) -> usize {
        self.open.first().map_or(0, Vec::len)
    }

    /// Adds a size of a result, with its value in each trace; returns its index.
    pub(in crate::saved_model) fn add(&mut self, sizes: Vec<usize>) -> usize {
        self.results.push(sizes);
        self.open() + self.results.len() - 1
    }

    /// Whether the size of this index, of a result, has these values.
    pub(in crate::saved_model) fn has(&self, size: usize, sizes: &[usize]) -> bool {
        size.checked_sub(self.open()).is_some_and(|at| self.results[at] == sizes)
    }

    fn at(&self, trace: usize, size: usize) -> i128 {
        match size.checked_sub(self.open()) {
            Some(result) => self.results[result][trace] as i128,
            None => self.open[trace][size] as i128,
        }
    }

    /// The number that has these values in the traces, if it is a sum or a product of open sizes.
    pub(in crate::saved_model) fn of_open(&self, values: &[i64]) -> Option<Number> {
        let first = *values.first()?;
        if values.iter().all(|value| *value == first) {
            return Some(Number::Known(first));
        }
        self.sum(values).or_else(|| self.product(values))
    }

    /// As [`Samples::of_open`], or one of the sizes of results, too. Two of these may have been equal in all traces and differ for
    /// others; those in `near` come first.
    pub(in crate::saved_model) fn number(&self, values: &[i64], near: &[usize]) -> Option<Number> {
        self.of_open(values).or_else(|| self.of_results(values, near))
    }

    /// The sizes of results, those in `near` and the last ones first, of equal ones only the first; and the open sizes.
    fn tried(&self, near: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let open = self.open();
        let of_results = open..open + self.results.len();
        let far = of_results.clone().rev().filter(|size| !near.contains(size));
        let near = of_results.rev().filter(|size| near.contains(size));
        let mut tried: Vec<usize> = Vec::new();
        for size in near.chain(far) {
            let own = &self.results[size - open];
            if tried.len() < TRIED && !tried.iter().any(|other| self.has(*other, own)) {
                tried.push(size);
            }
        }
        let all = tried.iter().copied().chain(0..open).collect();
        (tried, all)
    }

    fn of_results(&self, values: &[i64], near: &[usize]) -> Option<Number> {
        let (tried, all) = self.tried(near);
        let values: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
        let traces = 0..values.len();
        let product = |sizes: &[usize]| {
            let of = |trace| sizes.iter().map(|size| self.at(trace, *size)).product::<i128>();
            let first = of(0);
            if !traces.clone().all(|trace| values[trace] * first == values[0] * of(trace)) {
                return None;
            }
            let (factor, divisor) = reduced(values[0], first);
            Some(Number::Product {
                factor: i64::try_from(factor).ok()?,
                sizes: sizes.to_vec(),
                divisor: i64::try_from(divisor).ok()?,
            })
        };
        if let Some(found) = products(&all, &mut |sizes| {
            // Those of open sizes alone are known not to fit.
            sizes.iter().any(|size| tried.contains(size)).then(|| product(sizes)).flatten()
        }) {
            return Some(found);
        }
        tried.iter().find_map(|size| self.line(&values, *size)).or_else(|| {
            let pairs = tried.iter().flat_map(|one| all.iter().map(move |other| (*one, *other)));
            let mut pairs = pairs.filter(|(one, other)| one != other);
            pairs.find_map(|(one, other)| self.difference(&values, one, other))
        })
    }

    /// The number as `(factor * size + offset) / divisor`, if the traces have three values of the size.
    fn line(&self, values: &[i128], size: usize) -> Option<Number> {
        let own: Vec<i128> = (0..values.len()).map(|trace| self.at(trace, size)).collect();
        let second = own.iter().position(|other| *other != own[0])?;
        own.iter().find(|other| **other != own[0] && **other != own[second])?;
        let (factor, divisor) = reduced(values[second] - values[0], own[second] - own[0]);
        let offset = values[0] * divisor - factor * own[0];
        let fits =
            own.iter().zip(values).all(|(own, value)| factor * own + offset == value * divisor);
        fits.then_some(Number::Sum {
            terms: vec![(i64::try_from(factor).ok()?, size)],
            offset: i64::try_from(offset).ok()?,
            divisor: i64::try_from(divisor).ok()?,
        })
    }

    /// The number as the sum of small multiples of two sizes and an offset: the edges that make one size the other.
    fn difference(&self, values: &[i128], one: usize, other: usize) -> Option<Number> {
        const MULTIPLES: [i128; 4] = [1, -1, 2, -2];
        let multiples = MULTIPLES.iter().flat_map(|a| MULTIPLES.map(|b| (*a, b)));
        multiples.filter(|(a, b)| a.abs() + b.abs() < 4).find_map(|(a, b)| {
            let rest =
                |trace: usize| values[trace] - a * self.at(trace, one) - b * self.at(trace, other);
            let offset = rest(0);
            let fits = (1..values.len()).all(|trace| rest(trace) == offset);
            let terms =
                || Some(vec![(i64::try_from(a).ok()?, one), (i64::try_from(b).ok()?, other)]);
            fits.then(|| {
                Some(Number::Sum {
                    terms: terms()?,
                    offset: i64::try_from(offset).ok()?,
                    divisor: 1,
                })
            })?
        })
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
    pub(in crate::saved_model) fn real(&self, values: &[f32], near: &[usize]) -> Option<Real> {
        let first = *values.first()?;
        if values.iter().all(|value| value.to_bits() == first.to_bits()) {
            return Some(Real::Known(first));
        }
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
        // Divided by the sizes that it is a product of, it is the same in all traces.
        let rest = |trace: usize, sizes: &[usize], inverse: bool| {
            let product: f64 = sizes.iter().map(|size| self.at(trace, *size) as f64).product();
            let value = f64::from(values[trace]);
            if inverse { value * product } else { value / product }
        };
        let fit = |sizes: &[usize], inverse: bool| {
            let factor = rest(0, sizes, inverse);
            let fits = (0..values.len()).all(|trace| close(rest(trace, sizes, inverse), factor));
            fits.then(|| Real::Open { factor: factor as f32, sizes: sizes.to_vec(), inverse })
        };
        for inverse in [false, true] {
            let varies = |size: &usize| !close(rest(size + 1, &[], inverse), rest(0, &[], inverse));
            let sizes: Vec<usize> = (0..self.open()).filter(varies).collect();
            if let Some(found) = fit(&sizes, inverse) {
                return Some(found);
            }
        }
        let (_, all) = self.tried(near);
        products(&all, &mut |sizes| fit(sizes, false).or_else(|| fit(sizes, true)))
    }
}

/// The first that `found` finds among the products of these sizes, those of few sizes first.
fn products<T>(sizes: &[usize], found: &mut dyn FnMut(&[usize]) -> Option<T>) -> Option<T> {
    fn longer<T>(
        begun: &mut Vec<usize>,
        more: usize,
        sizes: &[usize],
        found: &mut dyn FnMut(&[usize]) -> Option<T>,
    ) -> Option<T> {
        if more == 0 {
            return found(begun);
        }
        (0..sizes.len()).find_map(|at| {
            begun.push(sizes[at]);
            let one = longer(begun, more - 1, &sizes[at..], found);
            begun.pop();
            one
        })
    }
    (1..=FACTORS).find_map(|count| longer(&mut Vec::new(), count, sizes, found))
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
        Samples::new(vec![vec![3, 37], vec![5, 37], vec![3, 53], vec![7, 71]])
    }

    fn of(f: impl Fn(i64, i64) -> i64) -> Option<Number> {
        let samples = samples();
        let values: Vec<i64> =
            samples.open.iter().map(|sizes| f(sizes[0] as i64, sizes[1] as i64)).collect();
        samples.number(&values, &[])
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
            let each = samples.open.iter().map(|sizes| f(sizes[0] as f32, sizes[1] as f32));
            samples.real(&each.collect::<Vec<_>>(), &[])
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

    /// A number that depends on batch, height, width and the halved sizes.
    type Formula = dyn Fn([i64; 5]) -> i64;

    /// Images of open heights and widths, with the sizes after windows of stride 2.
    fn halved() -> (Samples, impl Fn(&Formula) -> Vec<i64>) {
        let open = vec![vec![2, 64, 80], vec![3, 64, 80], vec![2, 96, 80], vec![2, 64, 112]];
        let open = [open, vec![vec![7, 161, 177], vec![12, 190, 207]]].concat();
        let mut samples = Samples::new(open.clone());
        samples.add(open.iter().map(|sizes| sizes[1].div_ceil(2)).collect());
        samples.add(open.iter().map(|sizes| sizes[2].div_ceil(2)).collect());
        let each = move |f: &Formula| {
            let sizes = open.iter().map(|sizes| {
                let [n, h, w] = [0, 1, 2].map(|at| sizes[at] as i64);
                f([n, h, w, (h + 1) / 2, (w + 1) / 2])
            });
            sizes.collect()
        };
        (samples, each)
    }

    #[test]
    fn sizes_of_results_are_found() {
        let (samples, each) = halved();
        let of = |f: fn([i64; 5]) -> i64| samples.number(&each(&f), &[]);
        let sum = |terms: &[(i64, usize)], offset, divisor| {
            Some(Number::Sum { terms: terms.to_vec(), offset, divisor })
        };
        let product = |factor, sizes: &[usize], divisor| {
            Some(Number::Product { factor, sizes: sizes.to_vec(), divisor })
        };
        assert_eq!(of(|[_, _, _, a, _]| a), product(1, &[3], 1));
        assert_eq!(of(|[_, _, _, a, b]| 8 * a * b), product(8, &[4, 3], 1));
        assert_eq!(of(|[n, _, _, a, b]| n * a * b), product(1, &[4, 3, 0], 1));
        assert_eq!(of(|[_, _, _, _, b]| 2 * b - 1), sum(&[(2, 4)], -1, 1));
        assert_eq!(of(|[_, h, _, a, _]| 2 * a - h + 3), sum(&[(2, 3), (-1, 1)], 3, 1));
        assert_eq!(of(|[_, _, _, a, _]| a / 3), None);
        assert_eq!(of(|[_, _, _, a, b]| a.min(b - 20)), None);
    }

    #[test]
    fn means_over_results_are_found() {
        let (samples, each) = halved();
        let counts = each(&|[_, _, _, a, b]| a * b);
        let open = |values: Vec<f32>| match samples.real(&values, &[]) {
            Some(Real::Open { factor, mut sizes, inverse }) => {
                sizes.sort_unstable();
                (factor, sizes, inverse)
            }
            other => panic!("{other:?}"),
        };
        let whole: Vec<f32> = counts.iter().map(|count| *count as f32).collect();
        assert_eq!(open(whole.clone()), (1.0, vec![3, 4], false));
        let (factor, sizes, inverse) = open(whole.iter().map(|count| 1.0 / count).collect());
        assert!((factor - 1.0).abs() < 1e-6 && sizes == [3, 4] && inverse);
    }

    #[test]
    fn of_equal_sizes_the_nearest_is_taken() {
        let (mut samples, each) = halved();
        let own: Vec<usize> =
            each(&|[_, _, _, a, _]| a).iter().map(|size| *size as usize).collect();
        let other = samples.add(own);
        let of = |near: &[usize]| samples.number(&each(&|[_, _, _, a, _]| a), near);
        let is = |size| Some(Number::Product { factor: 1, sizes: vec![size], divisor: 1 });
        assert_eq!((of(&[]), of(&[3])), (is(other), is(3)));
        assert_eq!(of(&[3, other]), is(other));
    }
}
