//! Bins: the few values that a column has for the search of splits. A bin is a range of numbers, a category, or "missing".

use super::threads;
use crate::error::{Error, Result, message};
use crate::estimator::rows::Rows;

/// At most this many rows decide where the ranges lie.
const SAMPLED: usize = 200_000;

/// What the bins of a column are. The last bin, whose code is their count, holds missing values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edges {
    /// Bin `i` has the numbers up to threshold `i`, and the last one those above all thresholds.
    Numbers(Vec<f64>),
    /// Bin `i` has this category; sorted.
    Categories(Vec<u32>),
}

impl Edges {
    /// The number of bins other than the one of missing values: 1 to 255.
    pub(super) fn count(&self) -> usize {
        match self {
            Edges::Numbers(thresholds) => thresholds.len() + 1,
            Edges::Categories(categories) => categories.len(),
        }
    }

    /// The bin of a value.
    pub(super) fn code(&self, value: f64) -> u8 {
        let code = match self {
            _ if value.is_nan() => self.count(),
            Edges::Numbers(thresholds) => thresholds.partition_point(|edge| *edge < value),
            Edges::Categories(categories) => category(value)
                .and_then(|value| categories.binary_search(&value).ok())
                .unwrap_or(categories.len()),
        };
        code as u8
    }
}

/// The category that a number stands for.
fn category(value: f64) -> Option<u32> {
    let whole = value as u32;
    (f64::from(whole) == value).then_some(whole)
}

/// The bins of a table's values, column by column.
pub(super) struct Binned {
    pub(super) codes: Vec<Vec<u8>>,
    /// Whether the column has missing values.
    pub(super) missing: Vec<bool>,
    pub(super) rows: usize,
}

/// How columns are divided.
pub(super) struct Plan<'a> {
    pub(super) max_bins: usize,
    pub(super) categorical: &'a [bool],
    pub(super) seed: u64,
    /// Writes a column as errors name it.
    pub(super) name: &'a (dyn Fn(usize) -> String + Sync),
}

/// Finds the bins of each column.
pub(super) fn find(rows: &Rows, plan: &Plan<'_>) -> Result<Vec<Edges>> {
    let sample = sample(rows.count, plan.seed);
    let mut found: Vec<Result<Edges>> = vec![Ok(Edges::Numbers(Vec::new())); rows.width];
    threads::each(&mut found, rows.count * rows.width, |at, edges| {
        let column = rows.x.iter().skip(at).step_by(rows.width);
        *edges = if plan.categorical[at] {
            categories(column, plan.max_bins, at, plan.name)
        } else {
            let values = match &sample {
                None => column.copied().filter(|x| !x.is_nan()).collect(),
                Some(sample) => {
                    let values = sample.iter().map(|row| rows.x[row * rows.width + at]);
                    values.filter(|x| !x.is_nan()).collect()
                }
            };
            thresholds(values, plan.max_bins)
                .map(Edges::Numbers)
                .ok_or_else(|| empty(plan.name, at, rows.count))
        };
    });
    found.into_iter().collect()
}

fn empty(name: &dyn Fn(usize) -> String, at: usize, rows: usize) -> Error {
    Error::Data(message!(
        "fit: {} is empty: all {rows} rows lack it. Leave the column out.",
        name(at)
    ))
}

/// The rows that decide; none if all do. Knuth's selection sampling (The Art of Computer Programming, 3.4.2, algorithm S).
fn sample(rows: usize, seed: u64) -> Option<Vec<usize>> {
    if rows <= SAMPLED {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut chosen = Vec::with_capacity(SAMPLED);
    for row in 0..rows {
        if random.usize(..rows - row) < SAMPLED - chosen.len() {
            chosen.push(row);
        }
    }
    Some(chosen)
}

/// The middles between neighbouring values, or the quantiles if there are more than `max_bins` values. None without values.
fn thresholds(mut values: Vec<f64>, max_bins: usize) -> Option<Vec<f64>> {
    values.sort_unstable_by(f64::total_cmp);
    // Both zeros are one value.
    let distinct = values.chunk_by(|a, b| a == b).map(|chunk| chunk[0]);
    let few: Vec<f64> = distinct.take(max_bins + 1).collect();
    if few.is_empty() {
        return None;
    }
    if few.len() <= max_bins {
        return Some(few.windows(2).map(|pair| middle(pair[0], pair[1])).collect());
    }
    let (count, mut edges) = (values.len(), Vec::with_capacity(max_bins - 1));
    for part in 1..max_bins {
        // The quantile `part / max_bins`: where the cumulated share reaches it exactly, the mean of the two values there.
        let at = part * count / max_bins;
        let edge = match (part * count) % max_bins {
            0 => middle(values[at - 1], values[at]),
            _ => values[at],
        };
        if edges.last() != Some(&edge) {
            edges.push(edge);
        }
    }
    // A range that ends with the largest value leaves none for the last bin.
    let largest = values.last().copied();
    edges.retain(|edge| Some(*edge) != largest);
    Some(edges)
}

/// A number from `a` on and below `b`, if `a < b`; else `a`.
fn middle(a: f64, b: f64) -> f64 {
    let sum = (a + b) / 2.0;
    let middle = if sum.is_finite() { sum } else { a / 2.0 + b / 2.0 };
    let largest = middle.min(f64::MAX);
    // Also if the middle is not a number, as between the infinities.
    if largest >= a && largest < b { largest } else { a }
}

fn categories<'a>(
    column: impl Iterator<Item = &'a f64>,
    max_bins: usize,
    at: usize,
    name: &dyn Fn(usize) -> String,
) -> Result<Edges> {
    let mut found: Vec<u32> = Vec::new();
    let mut rows = 0;
    for (row, &value) in column.enumerate() {
        rows += 1;
        if value.is_nan() {
            continue;
        }
        let Some(category) = category(value) else {
            return Err(Error::Index(message!(
                "fit: {} has the category {value} in row {row}; categories are whole numbers from 0 to {}, and NaN where they \
                 are missing. Map other values to such numbers, as StringLookup does for strings.",
                name(at),
                u32::MAX
            )));
        };
        if let Err(place) = found.binary_search(&category) {
            found.insert(place, category);
            if found.len() > max_bins {
                return Err(Error::Index(message!(
                    "fit: {} has more than {max_bins} categories, the largest number of bins. Join rare ones, or let the \
                     column be numbers.",
                    name(at)
                )));
            }
        }
    }
    match found.is_empty() {
        true => Err(empty(name, at, rows)),
        false => Ok(Edges::Categories(found)),
    }
}

/// The bin of each value.
pub(super) fn codes(rows: &Rows, edges: &[Edges]) -> Binned {
    let mut columns: Vec<(Vec<u8>, bool)> = vec![(Vec::new(), false); rows.width];
    threads::each(&mut columns, rows.count * rows.width, |at, (codes, missing)| {
        let edges = &edges[at];
        *codes = rows.x.iter().skip(at).step_by(rows.width).map(|x| edges.code(*x)).collect();
        *missing = codes.iter().any(|code| usize::from(*code) == edges.count());
    });
    let (codes, missing) = columns.into_iter().unzip();
    Binned { codes, missing, rows: rows.count }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_divided_in_the_middle() {
        let values = vec![3.0, 1.0, 1.0, 2.0, 2.0];
        assert_eq!(thresholds(values.clone(), 255), Some(vec![1.5, 2.5]));
        assert_eq!(thresholds(vec![7.0; 9], 255), Some(vec![]));
        assert_eq!(thresholds(vec![], 255), None);
        let edges = Edges::Numbers(vec![1.5, 2.5]);
        let codes: Vec<u8> =
            [1.0, 1.5, 1.6, 9.0, f64::NAN, f64::NEG_INFINITY].map(|x| edges.code(x)).into();
        assert_eq!(codes, [0, 0, 1, 2, 3, 0]);
    }

    #[test]
    fn many_values_are_divided_at_quantiles() {
        // numpy.percentile(range(10), [25, 50, 75], method="averaged_inverted_cdf") is [2, 4.5, 7].
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(thresholds(values, 4), Some(vec![2.0, 4.5, 7.0]));
        // Most values are equal: fewer ranges, none of them empty.
        let mut values = vec![5.0; 1000];
        values.extend((0..10).map(f64::from));
        let edges = thresholds(values, 4).unwrap();
        assert_eq!(edges, [5.0]);
    }

    #[test]
    fn a_threshold_divides_even_numbers_at_the_ends_of_the_range() {
        let next = 1.0f64.next_up();
        for (a, b) in [
            (f64::NEG_INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, 0.0),
            (0.0, f64::INFINITY),
            (1e308, 1.7e308),
            (-1.7e308, 1.7e308),
            (f64::MAX, f64::INFINITY),
            (1.0, next),
            (0.0, f64::from_bits(1)),
        ] {
            let edge = middle(a, b);
            assert!(edge >= a && edge < b, "{a} {b}: {edge}");
        }
    }

    #[test]
    fn unknown_categories_are_missing() {
        let edges = Edges::Categories(vec![2, 5, 900_000]);
        let codes = [2.0, 5.0, 900_000.0, 3.0, -1.0, 2.5, f64::NAN, f64::INFINITY, 1e300]
            .map(|x| edges.code(x));
        assert_eq!(codes, [0, 1, 2, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn a_large_table_is_sampled() {
        let chosen = sample(3 * SAMPLED, 1).unwrap();
        assert_eq!(chosen.len(), SAMPLED);
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sample(3 * SAMPLED, 1), Some(chosen));
        assert_eq!(sample(SAMPLED, 1), None);
    }
}
