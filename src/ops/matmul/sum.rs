//! The sum in a product, and how it splits among workgroups.

use super::variants::Variant;
use crate::device::Caps;

/// The index that a product sums over.
#[derive(Clone, Copy)]
pub(crate) enum Sum {
    /// One run of this length, which may be split anywhere.
    Run(usize),
    /// The sizes of u, v and i. It is split between two u.
    Nest([usize; 3]),
}

impl Sum {
    pub(crate) fn len(self) -> usize {
        match self {
            Sum::Run(len) => len,
            Sum::Nest([u, v, i]) => u * v * i,
        }
    }
}

/// How a sum splits into parts, one for each of several workgroups.
pub(super) struct Split {
    pub(super) parts: usize,
    /// The number of values of u in a part.
    pub(super) part: usize,
    /// The sizes of u, v and i in the kernel.
    pub(super) sizes: [usize; 3],
    /// If one u is too long for a thread: how many v it has, and into how many pieces its runs of i are split. In the
    /// kernel each piece then has its own u.
    pub(super) pieces: Option<[usize; 2]>,
    /// How many iterations the loops of a thread make.
    pub(super) iterations: usize,
}

/// In longer parts rounding errors accumulate.
const LONGEST: usize = 2048;
/// More results than these, of all parts together, are not worth their memory.
const MOST_RESULTS: usize = 4 << 20;

/// Splits a sum into parts, so that enough workgroups have work, no thread's loops are too long, and, while the parts'
/// results take little memory, no part is so long that rounding errors accumulate. Each of the `tiles` tiles of the
/// result uses one workgroup for each part. With `singly`, threads read the operands one by one.
pub(super) fn split(
    sum: Sum,
    tiles: usize,
    results: usize,
    variant: Variant,
    singly: bool,
    caps: &Caps,
) -> Split {
    let k = sum.len();
    // A second kernel costs a CPU about as much as a thousand steps of the sum; a GPU can run many threads.
    let (workgroups, shortest) = if caps.cpu { (4, 1024) } else { (variant.fill(caps), 128) };
    let room = MOST_RESULTS / results.max(1);
    let by_workgroups = (workgroups / tiles.max(1)).min(k / shortest).min(64).min(room);
    let by_length = k.div_ceil(LONGEST).min(room);
    // One thread of the second kernel iterates over all parts.
    let parts = by_workgroups.max(by_length).clamp(1, caps.loop_piece());
    let longest = variant.longest_run(singly, caps);
    let of = |sizes: [usize; 3], part: usize, run: usize, pieces| Split {
        parts: sizes[0].div_ceil(part).max(1),
        part,
        sizes,
        pieces,
        iterations: part * (1 + sizes[1] * (1 + variant.iterations(run, singly)))
            + Variant::ITERATIONS_AROUND,
    };
    let [u, v, run] = match sum {
        Sum::Run(_) => {
            // A split must not divide the vectors that a kernel reads.
            let inner = k.div_ceil(parts).next_multiple_of(4).clamp(4, longest);
            return of([k.div_ceil(inner).max(1), 1, inner], 1, inner, None);
        }
        Sum::Nest(sizes) => sizes,
    };
    let room = caps.loop_iterations.saturating_sub(Variant::ITERATIONS_AROUND);
    // How many values of u a thread can process if each has `v` runs of this length.
    let most = |v: usize, run: usize| room / (1 + v * (1 + variant.iterations(run, singly)));
    let part = (u / parts).max(1).min(most(v, run));
    // A GPU has more threads than there are u.
    let few = !caps.cpu && v > 1 && parts >= 2 * u.max(1);
    if part > 0 && !few {
        return of([u, v, run], part, run, None);
    }
    // Or one u is too long: this also splits its runs, and each piece becomes a u.
    let pieces = run.div_ceil(longest);
    let piece = run.div_ceil(pieces).next_multiple_of(64);
    let pieces = run.div_ceil(piece);
    let all = u * v * pieces;
    let longest = run.min(piece);
    let part = (all / parts).clamp(1, most(1, longest).max(1));
    of([all, 1, piece], part, longest, Some([v, pieces]))
}

#[cfg(test)]
mod tests {
    use super::super::variants::PLAIN;
    use super::*;

    #[test]
    fn long_sums_of_few_results_are_split() {
        let gpu = Caps::portable();
        let run = |k, groups, results, caps: &Caps| {
            split(Sum::Run(k), groups, results, PLAIN, false, caps).parts
        };
        assert_eq!(run(39_200, 1, 800, &gpu), 64);
        assert_eq!(run(1024, 64, 1 << 18, &gpu), 8);
        assert_eq!(run(4096, 1000, 1 << 24, &gpu), 1, "too many results to keep twice");
        let cpu = Caps { cpu: true, ..gpu };
        assert_eq!(run(784, 1, 5000, &cpu), 1);
        assert_eq!(run(39_200, 1, 800, &cpu), 20);
    }

    #[test]
    fn a_gpu_splits_few_images_by_their_rows() {
        let gpu = Caps::portable();
        let parts =
            |sizes, caps: &Caps| split(Sum::Nest(sizes), 9, 36_864, PLAIN, false, caps).parts;
        assert_eq!(parts([2, 56, 56], &gpu), 56);
        assert_eq!(parts([64, 56, 56], &gpu), 64);
        assert_eq!(parts([2, 1, 12_544], &gpu), 2);
        assert_eq!(parts([2, 56, 56], &Caps { cpu: true, ..gpu.clone() }), 2);
    }

    #[test]
    fn parts_cover_the_whole_sum() {
        let caps = Caps::portable();
        for sum in [Sum::Run(39_201), Sum::Nest([50, 28, 28]), Sum::Nest([5, 5, 32]), Sum::Run(0)] {
            for bound in [256, caps.loop_iterations] {
                let caps = Caps { loop_iterations: bound, ..caps.clone() };
                let split = split(sum, 1, 100, PLAIN, false, &caps);
                let [u, v, inner] = split.sizes;
                assert!(split.part * split.parts >= u && split.part * (split.parts - 1) < u.max(1));
                assert!(u * v * inner >= sum.len());
                assert!(split.iterations <= bound, "{}", split.iterations);
            }
        }
    }

    #[test]
    fn sums_that_one_thread_cannot_make_are_split_anywhere() {
        let caps = Caps::portable();
        let nest = |sizes| {
            let split = split(Sum::Nest(sizes), 1, 100, PLAIN, false, &caps);
            assert!(split.iterations <= caps.loop_iterations, "{}", split.iterations);
            (split.sizes, split.pieces)
        };
        // One image of many rows, and one of one long row.
        assert_eq!(nest([1, 600, 600]), ([600, 1, 640], Some([600, 1])));
        let (sizes, pieces) = nest([2, 1, 600_000]);
        assert_eq!(pieces, Some([1, 5]));
        assert_eq!(sizes, [10, 1, 120_000]);
    }
}
