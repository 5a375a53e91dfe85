//! Segment ops with many rows and many segments, for which the ids are sorted: sums, products, extremes and the gradient of
//! `gather`, compared with loops on the host.

#![allow(clippy::unwrap_used)]

use crate::support::compare::Random;
use wgrad::{GatherOptions, GradientTape, Tensor, scatter_nd};

/// Numbers on the host.
struct Numbers(Random);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.bits() % bound
    }

    /// Ids of `rows` segments, a few of them out of range; with `skew` most belong to one segment.
    fn ids(&mut self, count: usize, rows: usize, skew: bool) -> Vec<i32> {
        let mut id = |i: usize| match skew && !i.is_multiple_of(5) {
            true => rows as i32 - 1,
            false => self.below(rows as u32 + 2) as i32 - 1,
        };
        (0..count).map(&mut id).collect()
    }

    /// Integers from -3 to 3, whose sums are exact in any order.
    fn whole(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.below(7) as f32 - 3.0).collect()
    }
}

/// Reduces rows of `inner` numbers into `rows` segments.
fn fold(
    x: &[f32],
    ids: &[i32],
    [rows, inner]: [usize; 2],
    first: f32,
    f: impl Fn(f32, f32) -> f32,
) -> Vec<f32> {
    let mut y = vec![first; rows * inner];
    for (row, &id) in x.chunks(inner).zip(ids) {
        let Some(place) = usize::try_from(id).ok().filter(|&r| r < rows) else { continue };
        for (y, x) in y[place * inner..].iter_mut().zip(row) {
            *y = f(*y, *x);
        }
    }
    y
}

/// Ids times segments exceed the limit for adding without sorting; rows may or may not be whole vectors.
#[test]
fn many_segments_are_what_loops_on_the_host_make_of_them() {
    let mut numbers = Numbers(Random(3));
    for (count, rows, inner, skew) in [
        (9_001, 1000, 1, false),
        (9_001, 1000, 4, true),
        (40_000, 300, 3, true),
        (3_000, 40_000, 2, false),
        (70, 200_003, 1, false),
        (60_000, 60_000, 1, false),
        (900_000, 10, 1, true),
    ] {
        let (x, ids) = (numbers.whole(count * inner), numbers.ids(count, rows, skew));
        let sizes = [rows, inner];
        let id = Tensor::from_slice(&ids, [count]).unwrap();
        let tensor = Tensor::from_slice(&x, [count, inner]).unwrap();
        let what = format!("{count} rows of {inner} in {rows} segments, {skew}");

        let sums = fold(&x, &ids, sizes, 0.0, |a, b| a + b);
        let got = tensor.unsorted_segment_sum(&id, rows).unwrap();
        assert_eq!(got.to_vec::<f32>().unwrap(), sums, "{what}");
        let whole =
            tensor.cast(wgrad::DType::I32).unwrap().unsorted_segment_sum(&id, rows).unwrap();
        let want: Vec<i32> = sums.iter().map(|&sum| sum as i32).collect();
        assert_eq!(whole.to_vec::<i32>().unwrap(), want, "{what}");

        // Signs, whose products are exact.
        let signs: Vec<f32> = x.iter().map(|&x| if x < 0.0 { -1.0 } else { 1.0 }).collect();
        let want = fold(&signs, &ids, sizes, 1.0, |a, b| a * b);
        let signs = Tensor::from_slice(&signs, [count, inner]).unwrap();
        let got = signs.unsorted_segment_prod(&id, rows).unwrap();
        assert_eq!(got.to_vec::<f32>().unwrap(), want, "{what}");

        let most = tensor.unsorted_segment_max(&id, rows).unwrap();
        let want = fold(&x, &ids, sizes, f32::MIN, f32::max);
        assert_eq!(most.to_vec::<f32>().unwrap(), want, "{what}");
        let least = tensor.unsorted_segment_min(&id, rows).unwrap();
        let want = fold(&x, &ids, sizes, f32::MAX, f32::min);
        assert_eq!(least.to_vec::<f32>().unwrap(), want, "{what}");

        let column = id.expand_dims(-1).unwrap();
        let scattered = scatter_nd(&column, &tensor, [rows, inner]).unwrap();
        assert_eq!(scattered.to_vec::<f32>().unwrap(), sums, "{what}");
    }
}

/// The same bits each time, whatever the numbers.
#[test]
fn sums_are_the_same_every_time() {
    let mut numbers = Numbers(Random(9));
    let x: Vec<f32> = (0..50_000).map(|_| numbers.below(1 << 24) as f32 * 1e-3 - 7e3).collect();
    let ids = numbers.ids(50_000, 700, true);
    let (x, ids) =
        (Tensor::from_slice(&x, [50_000]).unwrap(), Tensor::from_slice(&ids, [50_000]).unwrap());
    let sums = || x.unsorted_segment_sum(&ids, 700).unwrap().to_vec::<f32>().unwrap();
    let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let first = bits(sums());
    for _ in 0..3 {
        assert_eq!(bits(sums()), first);
    }
}

/// An embedding's gradient: of a large table, and of one for each example.
#[test]
fn the_gradient_of_a_large_table_counts_its_lookups() {
    let mut numbers = Numbers(Random(5));
    for (batch, rows, count) in [(1, 50_000, 400), (7, 3_000, 900)] {
        let ids = numbers.ids(batch * count, rows, false);
        let table = Tensor::zeros([batch, rows, 2]).unwrap();
        let index = Tensor::from_slice(&ids, [batch, count]).unwrap();
        let tape = GradientTape::new();
        tape.watch(&table).unwrap();
        let y = table.gather_with(&index, 1, GatherOptions::new().batch_dims(1)).unwrap();
        let grad = tape.gradient(&y, &table).unwrap().unwrap().to_vec::<f32>().unwrap();
        let ones = vec![1.0; batch * count * 2];
        let each = ids.chunks(count).zip(ones.chunks(count * 2));
        let want: Vec<f32> =
            each.flat_map(|(ids, x)| fold(x, ids, [rows, 2], 0.0, |a, b| a + b)).collect();
        assert_eq!(grad, want, "{batch} tables of {rows}");
    }
}
