//! Buckets of equal width, as TensorBoard's histogram plugin counts them.

use super::proto::{SummaryMetadata, TensorProto, metadata};
use crate::host_array::HostDType;

/// Counts `values` in `buckets` buckets between the smallest and the largest: rows of left edge, right edge and count.
///
/// NaN and infinities are in no bucket; the second result is their number. Without any finite value all rows are 0, and
/// if all values are equal they are in the last row.
pub(super) fn rows(values: impl Iterator<Item = f64> + Clone, buckets: usize) -> (Vec<f64>, u64) {
    let (mut least, mut greatest, mut count, mut lost) = (f64::INFINITY, f64::NEG_INFINITY, 0, 0);
    for value in values.clone() {
        if value.is_finite() {
            (least, greatest, count) = (least.min(value), greatest.max(value), count + 1);
        } else {
            lost += 1;
        }
    }
    let mut rows = vec![0.0; 3 * buckets];
    if count == 0 {
        return (rows, lost);
    }
    let range = greatest - least;
    let width = range / buckets as f64;
    if range == 0.0 || width == 0.0 || !range.is_finite() {
        // Including the case that the range is too small or too large to be divided.
        for row in rows.chunks_exact_mut(3) {
            (row[0], row[1]) = (least, greatest);
        }
        if let Some(last) = rows.last_mut() {
            *last = count as f64;
        }
        return (rows, lost);
    }
    let edge = |at: usize| if at == buckets { greatest } else { least + width * at as f64 };
    for (at, row) in rows.chunks_exact_mut(3).enumerate() {
        (row[0], row[1]) = (edge(at), edge(at + 1));
    }
    for value in values.filter(|value| value.is_finite()) {
        let at = ((value - least) / width) as usize;
        rows[3 * at.min(buckets - 1) + 2] += 1.0;
    }
    (rows, lost)
}

pub(super) fn tensor(rows: &[f64]) -> TensorProto {
    let content = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto::numbers(HostDType::F64, &[rows.len() / 3, 3], content)
}

pub(super) fn described() -> SummaryMetadata {
    metadata("histograms", &[])
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn values_fall_into_buckets() {
        let (found, lost) = rows([0.0, 1.0, 2.0, 4.0].into_iter(), 2);
        // The edge between belongs to the upper bucket, the last edge to the last.
        assert_eq!((found, lost), (vec![0.0, 2.0, 2.0, 2.0, 4.0, 2.0], 0));
    }

    #[test]
    fn equal_values_stand_in_the_last_bucket() {
        assert_eq!(rows([3.0; 7].into_iter(), 2).0, [3.0, 3.0, 0.0, 3.0, 3.0, 7.0]);
        assert_eq!(rows([].into_iter(), 2).0, [0.0; 6]);
    }

    #[test]
    fn what_is_no_number_is_counted_apart() {
        let values = [f64::NAN, 1.0, f64::INFINITY, 3.0, f64::NEG_INFINITY];
        assert_eq!(rows(values.into_iter(), 2), (vec![1.0, 2.0, 1.0, 2.0, 3.0, 1.0], 3));
        assert_eq!(rows([f64::NAN; 2].into_iter(), 1), (vec![0.0; 3], 2));
        // A range beyond f64 and one below it.
        assert_eq!(rows([f64::MIN, f64::MAX].into_iter(), 2).0[5], 2.0);
        assert_eq!(rows([0.0, 5e-324].into_iter(), 30).0[89], 2.0);
    }
}
