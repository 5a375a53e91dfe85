//! The schedule of a kernel that folds: one thread iterates over each row of elements that are folded together, or
//! several threads share it and join their results; long rows are split into chunks, whose results a second kernel
//! folds.
//!
//! A kernel makes one pass over its rows for each fold that depends on the previous one, and one more if it stores
//! something for each element afterwards: a softmax computes its maximum, its sum, then its quotients. The kernel
//! recomputes the values between two folds in each pass, which is cheaper than memory traffic, or keeps them in
//! registers if a thread's part of the row is short. The order of every fold is fixed.

use super::kernel_ir::{Code, KernelIr};
use crate::device::{COLUMN_FOURS, COLUMN_THREADS, Caps};
use crate::dtype::DType;

/// In small CPU kernels, rows from this length on are shared by threads: sharing shorter rows saves less time than an
/// additional text costs.
pub(super) const SHARED: usize = 2048;

/// How a kernel with folds distributes its work over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReductionSchedule {
    /// The number of chunks in which each row is folded.
    pub(super) chunks: usize,
    /// The number of threads that share a row, or a chunk of it.
    pub(super) threads: usize,
    /// How these threads join their results.
    pub(super) join: Join,
    /// How many turns (loop iterations) each thread makes, if they are few and unrolled, so that a pass finds the
    /// values of the previous pass in registers.
    pub(super) turns: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// There is one thread.
    Alone,
    /// The threads join in workgroup memory.
    Memory,
    /// As `Memory`, each thread with four neighbouring rows: neighbouring threads read neighbouring elements.
    Columns,
    /// The threads are one subgroup and one workgroup, and read each other's registers.
    Shuffle,
}

impl ReductionSchedule {
    pub(super) fn new(ir: &KernelIr, caps: &Caps) -> Self {
        let (rows, len) = (ir.space.count(false), ir.space.count(true));
        let inner = ir.space.folds_inner();
        let steps = steps(ir);
        // The lanes of a vector read neighbouring elements faster than elements of different rows.
        let lanes = caps.subgroup().filter(|_| caps.cpu).map_or(1, |size| size as usize);
        let least = if ir.space.reads_singly() { SHARED / 4 } else { 2 * lanes };
        let whole_lines = rows.div_ceil(4);
        let threads = match (inner, caps.cpu) {
            (false, _) if caps.shares_columns(whole_lines, steps) => COLUMN_THREADS,
            // A quarter of the threads would have too few loads of a long row in flight, and could not keep it in
            // registers.
            (true, false) if steps >= 1024 && caps.workgroup[0] >= 256 => 256,
            (true, false) if steps >= 64 => 64,
            (true, false) if steps >= 16 => 16,
            (true, true) if steps >= least => lanes,
            _ => 1,
        };
        let join = match (threads, caps.cpu) {
            (1, _) => Join::Alone,
            (_, true) => Join::Shuffle,
            (_, false) if inner => Join::Memory,
            (_, false) => Join::Columns,
        };
        let lines = if inner { rows * threads } else { whole_lines * threads };
        // On a CPU a dispatch costs as much as reading about ten thousand elements.
        let (small, wanted, longest) =
            if caps.cpu { (1 << 16, 512, 1 << 14) } else { (1 << 12, caps.threads, 1 << 12) };
        let turns = steps / threads;
        // All passes of a thread together must stay within the number of iterations that every driver allows.
        let spare = threads.ilog2() as usize * folds(ir).len() + ir.iterations();
        let each = passes(ir) * (1 + ir.iterations());
        let most_turns = (caps.loop_iterations.saturating_sub(spare) / each).max(2) - 1;
        let chunks = if turns <= 64 || (rows * len <= small && turns <= longest) {
            1
        } else {
            // The second kernel loops over the chunks.
            let most = (turns / 32).clamp(1, caps.loop_piece().min(1024));
            // Every step down a column is on another page of memory, and a CPU can only track some dozens of pages.
            let longest = if caps.cpu && !inner { 32 } else { longest };
            (wanted / lines.max(1)).max(turns.div_ceil(longest)).clamp(1, most)
        };
        let chunks = chunks.max(steps.div_ceil(threads).div_ceil(most_turns));
        let written = steps.div_ceil(threads).next_power_of_two();
        let most = if caps.cpu { 32 } else { 8 };
        let pays = threads > 1 && chunks == 1 && passes(ir) > 1 && written <= most;
        let fits = written * ir.weight() <= LONGEST_TEXT;
        ReductionSchedule { chunks, threads, join, turns: (pays && fits).then_some(written) }
    }

    /// As [`ReductionSchedule::new`] for rows that are not split.
    pub(super) fn whole(ir: &KernelIr, caps: &Caps) -> Self {
        ReductionSchedule { chunks: 1, ..ReductionSchedule::new(ir, caps) }
    }

    /// How many workgroups the kernel has.
    pub(super) fn workgroups(self, ir: &KernelIr) -> u64 {
        let threads = lines(ir) * self.chunks * self.threads;
        (threads as u64).div_ceil(self.workgroup() as u64)
    }

    /// How many iterations the loops of one thread make.
    pub(super) fn iterations(self, ir: &KernelIr) -> usize {
        let turns = steps(ir).div_ceil(self.chunks).div_ceil(self.threads);
        let joins_in_memory = matches!(self.join, Join::Memory | Join::Columns);
        let each = if joins_in_memory { self.threads.ilog2() as usize } else { 0 };
        let joins = each * folds(ir).len();
        passes(ir) * turns * (1 + ir.iterations()) + ir.iterations() + joins
    }

    /// How often the kernel's text repeats the IR's code.
    pub(super) fn repeats(self, ir: &KernelIr) -> usize {
        passes(ir) * self.turns.unwrap_or(1)
    }

    pub(super) fn workgroup(self) -> usize {
        match self.join {
            Join::Shuffle => self.threads,
            Join::Columns => COLUMN_FOURS * self.threads,
            Join::Alone | Join::Memory => self.threads.max(64),
        }
    }
}

/// The number of steps along a row: quads of the row, or elements of four neighbouring rows.
pub(super) fn steps(ir: &KernelIr) -> usize {
    let len = ir.space.count(true);
    if ir.space.folds_inner() { len.div_ceil(4) } else { len }
}

pub(super) fn lines(ir: &KernelIr) -> usize {
    let rows = ir.space.count(false);
    if ir.space.folds_inner() { rows } else { rows.div_ceil(4) }
}

/// The limit of unrolled text in a kernel: drivers compile all of it.
const LONGEST_TEXT: usize = 20_000;

/// The number of passes over a row.
fn passes(ir: &KernelIr) -> usize {
    let last = ir.levels();
    let after = ir.outputs.iter().any(|o| !o.row && ir.instances[o.instance].level == last);
    last + usize::from(after)
}

/// The dtype in which memory holds partial results of a fold.
pub(super) fn partial(dtype: DType) -> DType {
    match dtype {
        DType::F16 => DType::F32,
        other => other,
    }
}

/// The folds of an IR, in the order of their partial results.
pub(super) fn folds(ir: &KernelIr) -> Vec<u32> {
    let folds = ir.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_)));
    folds.map(|i| i.node).collect()
}

#[cfg(test)]
mod tests {
    use crate::graph::attributes::Attribute;
    use std::sync::Arc;

    use super::super::context::PlanContext;
    use super::super::lowerings::Lowerings;
    use super::*;
    use crate::error::Result;
    use crate::graph::lower::{Elementwise, Lowering, LoweringContext, Reduction, View};
    use crate::graph::{Graph, Input, Node, Op, Spec};

    /// A sum over an axis, or each element minus the sum.
    #[derive(Debug, Attribute)]
    #[op("Centred")]
    struct Centred {
        shape: [usize; 2],
        axis: usize,
        folds: bool,
    }

    impl Op for Centred {
        fn name(&self) -> &'static str {
            "Centred"
        }

        fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
            let kept = [self.shape[1 - self.axis]];
            let shape = if self.folds { &kept[..] } else { &self.shape[..] };
            Ok(Spec::new(shape, inputs[0].dtype))
        }

        fn lower(&self, _: &LoweringContext) -> Lowering {
            if self.folds {
                let (first, fold) = ("0.0".into(), "a + b".into());
                let axes = [self.axis].into_iter().collect();
                return Lowering::Reduce(Reduction { name: "sum", axes, first, fold });
            }
            let strides = if self.axis == 1 { [1, 0] } else { [0, 1] };
            let rest = Elementwise::new("rest", "x - y").input("x", 0, View::Same);
            rest.input("y", 1, View::strided(0, &strides)).into()
        }
    }

    /// The schedule of a sum of `shape` over `axis`; with `twice` there is a second pass over each row.
    fn schedule(shape: [usize; 2], axis: usize, twice: bool, caps: &Caps) -> ReductionSchedule {
        let mut graph = Graph { leaves: vec![Spec::new(shape, DType::F32)], ..Graph::default() };
        for folds in [true, false] {
            let op = Centred { shape, axis, folds };
            let spec = op.infer(&[&graph.leaves[0]]).unwrap();
            let mut inputs = smallvec::smallvec![Input::Leaf(0)];
            if !folds {
                inputs.push(Input::Node(0));
            }
            graph.nodes.push(Node { op: Arc::new(op), inputs, spec, wanted: true });
        }
        let cx = LoweringContext { inputs: &[], output: &graph.leaves[0], caps, variant: None };
        let lowerings: Vec<Lowering> = graph.nodes.iter().map(|node| node.op.lower(&cx)).collect();
        let lowerings = Lowerings::from(lowerings);
        let canonical = [Input::Node(0), Input::Node(1)];
        let rematerialisable = [false; 2];
        let context = PlanContext {
            graph: &graph,
            lowerings: &lowerings,
            canonical: &canonical,
            rematerialisable: &rematerialisable,
            caps,
            brief: false,
        };
        let (members, output) = if twice { (&[0, 1][..], 1) } else { (&[0][..], 0) };
        ReductionSchedule::new(&context.kernel_ir(members, &[output]).unwrap(), caps)
    }

    fn processor() -> Caps {
        Caps { cpu: true, subgroups: Some([8, 8]), ..Caps::portable() }
    }

    #[test]
    fn short_rows_have_a_thread_each_and_longer_ones_several() {
        let gpu = Caps::portable();
        let one = ReductionSchedule { chunks: 1, threads: 1, join: Join::Alone, turns: None };
        assert_eq!(schedule([50, 60], 1, false, &gpu), one);
        let several = |threads| ReductionSchedule { threads, join: Join::Memory, ..one };
        assert_eq!(schedule([50, 64], 1, false, &gpu), several(16));
        assert_eq!(schedule([50, 256], 1, false, &gpu), several(64));
        assert_eq!(schedule([50, 4096], 1, false, &gpu), several(256));
        assert_eq!([several(16), several(64), several(256)].map(|s| s.workgroup()), [64, 64, 256]);
        // Columns are folded by the lanes of a vector, and each by several threads unless there are many.
        let sixteen = ReductionSchedule { threads: 16, join: Join::Columns, ..one };
        assert_eq!(schedule([60, 256], 0, false, &gpu), sixteen);
        assert_eq!(sixteen.workgroup(), 256);
        assert_eq!(schedule([7, 256], 0, false, &gpu), one);
        assert_eq!(schedule([60, 4 * 4097], 0, false, &gpu), one);
        let narrow = Caps { workgroup: [128, 16 << 10], ..Caps::portable() };
        assert_eq!(schedule([60, 256], 0, false, &narrow), one);
        assert_eq!(schedule([60, 256], 0, false, &processor()), one);

        assert_eq!(schedule([500, 60], 1, false, &processor()), one);
        let lanes = ReductionSchedule { threads: 8, join: Join::Shuffle, ..one };
        assert_eq!(schedule([500, 64], 1, false, &processor()), lanes);
        assert_eq!(lanes.workgroup(), 8);
        let unknown = Caps { subgroups: None, ..processor() };
        assert_eq!(schedule([500, 64], 1, false, &unknown), one);
        // In small kernels, threads share only the longest rows.
        assert_eq!(schedule([50, 64], 1, false, &processor()), one);
        assert_eq!(schedule([3, 2048], 1, false, &processor()), lanes);
        assert_eq!(one.workgroup(), 64);
    }

    #[test]
    fn long_rows_are_cut_where_there_are_few() {
        let gpu = Caps::portable();
        let cut = |shape, axis, caps: &Caps| schedule(shape, axis, false, caps).chunks;
        // 256 threads make 64 turns, which is not long.
        assert_eq!(cut([1, 4 * 256 * 64], 1, &gpu), 1);
        // 1024 turns of 256 threads: each chunk has 32 at least.
        assert_eq!(cut([1, 1 << 20], 1, &gpu), 1024 / 32);
        // Many rows keep the device busy as they are.
        assert_eq!(cut([256, 1 << 16], 1, &gpu), 1);
        // Two lines of four columns, 16 threads for each: every thread has 32 turns at least.
        assert_eq!(cut([100_000, 8], 0, &gpu), 100_000 / 16 / 32);
        assert_eq!(cut([10_000_000, 8], 0, &gpu), 1024);
        let small = Caps { threads: 8192, ..Caps::portable() };
        assert_eq!(cut([10_000_000, 8], 0, &small), 8192 / 16 / 2);
        // On a CPU a dispatch costs more than a short row.
        assert_eq!(cut([1, 1 << 16], 1, &processor()), 1);
        assert_eq!(cut([1, 1 << 20], 1, &processor()), 512 / 8);
        let long = schedule([1, 1 << 20], 1, false, &gpu);
        assert_eq!(long.threads, 256);
    }

    #[test]
    fn few_turns_are_written_out_where_a_row_is_walked_again() {
        let gpu = Caps::portable();
        assert_eq!(schedule([50, 1024], 1, false, &gpu).turns, None);
        assert_eq!(schedule([50, 1024], 1, true, &gpu).turns, Some(4));
        // Five turns are unrolled as eight, the last of which are empty.
        assert_eq!(schedule([50, 1280], 1, true, &gpu).turns, Some(8));
        assert_eq!(schedule([50, 2304], 1, true, &gpu).turns, None);
        assert_eq!(schedule([50, 8192], 1, true, &gpu).turns, Some(8));
        assert_eq!(schedule([50, 9216], 1, true, &gpu).turns, None);
        assert_eq!(schedule([50, 60], 1, true, &gpu).turns, None);
        assert_eq!(schedule([50, 1024], 1, true, &processor()).turns, Some(32));
    }
}
