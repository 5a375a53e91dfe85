//! The kernels of the product family: their list, the table's preference, and the ones worth measuring.

use crate::device::{Caps, Cooperative};
use crate::dtype::DType;

/// One way to compute a product. All have the same result up to rounding.
///
/// A workgroup of `wx` by `wy` threads computes a tile of the result. A thread has `tm` rows and `tn` columns; `tm4`
/// and `tn4` count them in vectors of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Variant {
    /// `shaders/gemm.wgsl`: `wx` by `wy` threads, each with `tm` rows by `4 * tn4` columns.
    Registers { tm: usize, tn4: usize, wx: usize, wy: usize },
    /// `shaders/gemm_lanes.wgsl`: `wx` threads share the loads of `lanes * tm` rows, each with `4 * tn4` columns.
    Lanes { lanes: usize, tm: usize, tn4: usize, wx: usize },
    /// `shaders/gemm_tiled.wgsl`: tiles of 64 by 64 in workgroup memory.
    Tiled,
    /// `shaders/gemm_sliced.wgsl`: tiles of 32 by 32 in workgroup memory, four groups of threads sharing the sum.
    Sliced,
    /// As `Sliced`, for sums of runs that are shorter than the part that a workgroup loads into its memory at once: it
    /// gathers that part from several runs.
    Gathered,
    /// `shaders/gemm_cooperative.wgsl`: tiles of `32 * side` rows and columns by `wx` threads, in matrices of `size`.
    Cooperative { size: usize, half: bool, side: usize, wx: usize },
    /// `shaders/gemm_dots.wgsl`: `wx` threads share the sum of `4 * tm4` rows by `tn` columns, which are all columns of
    /// the product.
    Dots { tm4: usize, tn: usize, wx: usize },
}

/// The sizes that determine the choice of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    /// The length of a run of the sum.
    pub(crate) inner: usize,
    /// The count of all multiplications.
    pub(crate) products: usize,
}

/// The number of multiplications from which a large tile is worth its compilation.
const MUCH_WORK: usize = 1 << 24;

/// A CPU finishes fewer multiplications than this in less time than compiling a tile for the operands' layout takes.
/// With lanes that share loads, the simple kernel is not slower either.
const LITTLE_WORK: usize = 1 << 15;
const LITTLE_WORK_OF_LANES: usize = 1 << 19;
/// A shorter run fills less than half of the part that a workgroup loads into its memory at once.
const SHORT_RUN: usize = 32;
/// Fewer results than this do not keep a GPU busy with one thread each.
const FEW_RESULTS: usize = 1 << 15;
/// The threads of a workgroup without lanes that computes a small product.
const LITTLE_THREADS: usize = 8;

/// The variants that can compute `problem`, the one that the table prefers first.
pub(crate) fn candidates(problem: Problem, caps: &Caps) -> Vec<Variant> {
    if problem.is_little(caps) {
        return vec![little(problem, caps)];
    }
    let special = [
        dots(problem, caps),
        lanes(problem, caps),
        gathered(problem, caps),
        sliced(problem, caps),
        tiled(problem, caps),
    ];
    let mut list: Vec<Variant> = special.into_iter().flatten().collect();
    // Without lanes that share loads, a CPU driver takes long to compile large tiles.
    let slow_to_compile = caps.cpu && list.is_empty() && !caps.eight_lanes();
    list.push(registers(problem, slow_to_compile, caps));
    list
}

impl Problem {
    /// A product of these `batch, m, n` and terms per sum, in runs of `inner`.
    pub(crate) fn new([batch, m, n, terms]: [usize; 4], inner: usize) -> Self {
        let products = [batch, m, n, terms].into_iter().fold(1, usize::saturating_mul);
        Problem { batch, m, n, inner, products }
    }

    /// Whether the product is not worth a compilation: such products share one kernel, whatever their sizes and the
    /// layout of their operands.
    pub(crate) fn is_little(self, caps: &Caps) -> bool {
        let most = if caps.eight_lanes() { LITTLE_WORK_OF_LANES } else { LITTLE_WORK };
        caps.cpu && self.products < most
    }
}

/// The two kernels of all small products. In the one for few columns, the arrangement of threads is a parameter.
fn little(Problem { n, .. }: Problem, caps: &Caps) -> Variant {
    if caps.eight_lanes() && n > 4 {
        return Variant::Lanes { lanes: 8, tm: 2, tn4: 1, wx: 8 };
    }
    let wx = n.div_ceil(4).next_power_of_two().min(LITTLE_THREADS);
    Variant::Registers { tm: 4, tn4: 1, wx, wy: LITTLE_THREADS / wx }
}

/// With few columns there is work for few threads, unless threads share the sum.
fn dots(Problem { m, n, inner, .. }: Problem, caps: &Caps) -> Option<Variant> {
    let wx = if caps.cpu { 8 } else { 64 };
    // SwiftShader, which has four lanes, never finishes compiling eight rows.
    let tm4 = if caps.eight_lanes() && m > 4 { 2 } else { 1 };
    // Unused columns cost a CPU less than a separate text for each number of columns.
    let tn = if caps.cpu && n > 1 { 4 } else { n };
    ((1..=4).contains(&n) && inner >= 8 * wx).then_some(Variant::Dots { tm4, tn, wx })
}

/// Broadcasts between lanes save loads, which are expensive on CPUs.
fn lanes(Problem { m, n, products, .. }: Problem, caps: &Caps) -> Option<Variant> {
    let lanes = caps.lanes()?;
    let (tm, tn4) = match (m, n) {
        // SwiftShader reads each number of each lane separately, and stores sums in memory anyway.
        (0..=4, _) if lanes == 4 => (1, 1),
        (5..=8, _) if lanes == 4 => (2, 1),
        _ if lanes == 4 => (4, 1),
        (0..=8, 0..=32) => (1, 1),
        (0..=8, _) => (1, 2),
        (9..=16, 0..=32) => (2, 1),
        (_, 0..=32) => (4, 1),
        _ => (2, 2),
    };
    // SwiftShader takes longer to compile this than the product takes in a hundred training steps.
    let least = if lanes == 4 { 1 << 20 } else { LITTLE_WORK };
    let pays = m > 4 && n > 2 * lanes && products >= least;
    pays.then_some(Variant::Lanes { lanes, tm, tn4, wx: lanes })
}

/// On CPUs workgroup memory is ordinary memory; on GPUs a tile pays off if it is mostly full.
fn tiled(Problem { m, n, inner, .. }: Problem, caps: &Caps) -> Option<Variant> {
    (!caps.cpu && m > 32 && n > 32 && inner >= 16).then_some(Variant::Tiled)
}

/// A small result has few large tiles. Tiles a quarter as large are four times as many, and four times as many threads share each.
/// They read twice as much for each multiplication.
fn sliced(problem: Problem, caps: &Caps) -> Option<Variant> {
    (problem.inner >= SHORT_RUN && shares_sums(problem, caps)).then_some(Variant::Sliced)
}

/// As `sliced`, if the runs of the sum are too short for it but the whole sum is not.
fn gathered(problem: Problem, caps: &Caps) -> Option<Variant> {
    let Problem { batch, m, n, inner, products } = problem;
    let terms = products / batch.saturating_mul(m).saturating_mul(n).max(1);
    let short = inner < SHORT_RUN && terms >= 2 * SHORT_RUN;
    (short && shares_sums(problem, caps)).then_some(Variant::Gathered)
}

fn shares_sums(Problem { batch, m, n, .. }: Problem, caps: &Caps) -> bool {
    let tiles = batch.saturating_mul(m.div_ceil(64)).saturating_mul(n.div_ceil(64));
    let [threads, bytes] = caps.workgroup;
    let fits = !caps.cpu && threads >= 256 && bytes >= 16 << 10;
    // A mostly empty tile pays off if even one thread per result leaves a card idle.
    let full = m > 16 && n > 16;
    let few = m > 4 && n > 4 && m.saturating_mul(n) < FEW_RESULTS;
    fits && tiles < caps.threads / 64 && (full || few)
}

/// Threads share nothing: this works on any adapter and for any problem.
fn registers(problem: Problem, slow_to_compile: bool, caps: &Caps) -> Variant {
    let Problem { m, n, inner, .. } = problem;
    let most_rows = if slow_to_compile && m * n * inner < MUCH_WORK { 4 } else { 8 };
    let few_rows = if caps.cpu && m > 1 { 4 } else { m.next_power_of_two().min(4) };
    let mut tm = if m >= 8 { most_rows } else { few_rows };
    let mut tn4 = if n > 4 && most_rows == 8 { 2 } else { 1 };
    // A GPU needs many threads more than it needs large tiles.
    while !caps.cpu && tm > 1 && m.div_ceil(tm) * n.div_ceil(4 * tn4) < caps.threads / 10 {
        (tm, tn4) = if tn4 > 1 { (tm, 1) } else { (tm / 2, 1) };
    }
    // With few rows there are threads for more columns.
    let most_across = 64 / m.div_ceil(tm).next_power_of_two().min(8);
    let wx = n.div_ceil(4 * tn4).next_power_of_two().min(most_across);
    let wy = 64 / wx;
    // Workgroups are distributed over a CPU's cores; with large ones a small product would have too few.
    if caps.cpu && m.div_ceil(tm * wy) * n.div_ceil(4 * tn4 * wx) < 4 {
        let wx = wx.min(8);
        return Variant::Registers { tm, tn4, wx, wy: 8 / wx };
    }
    Variant::Registers { tm, tn4, wx, wy }
}

impl Variant {
    /// Rows and columns of a workgroup's tile.
    pub(crate) fn tile(self) -> [usize; 2] {
        match self {
            Variant::Registers { tm, tn4, wx, wy } => [tm * wy, 4 * tn4 * wx],
            Variant::Lanes { lanes, tm, tn4, wx } => [lanes * tm, 4 * tn4 * wx],
            Variant::Tiled => [64, 64],
            Variant::Sliced | Variant::Gathered => [32, 32],
            Variant::Cooperative { side, .. } => [32 * side, 32 * side],
            Variant::Dots { tm4, tn, .. } => [4 * tm4, tn],
        }
    }

    /// How many workgroups fill a GPU.
    pub(crate) fn fill(self, caps: &Caps) -> usize {
        match self {
            Variant::Sliced | Variant::Gathered => caps.threads / 256,
            _ => caps.threads / 64,
        }
    }

    /// How many threads of a workgroup are next to each other.
    pub(crate) fn across(self) -> usize {
        match self {
            Variant::Registers { wx, .. } => wx,
            _ => 1,
        }
    }

    /// How many vectors of four results each thread holds. A CPU driver takes long to compile the code that follows a
    /// product, so this code appears once, in a loop over results in memory. The loop's count is a parameter, so no
    /// driver unrolls it.
    pub(crate) fn sums(self) -> usize {
        match self {
            Variant::Registers { tm, tn4, .. } => tm.div_ceil(4) * tm.min(4) * tn4,
            Variant::Lanes { lanes, tm, tn4, .. } => lanes * tm * tn4,
            Variant::Tiled
            | Variant::Sliced
            | Variant::Gathered
            | Variant::Cooperative { .. }
            | Variant::Dots { .. } => 0,
        }
    }

    /// For a tile of cooperative matrices: its depth in i, and the elements from one i to the next.
    pub(crate) fn staged(self) -> [usize; 2] {
        match self {
            Variant::Cooperative { half: true, side, .. } => [32, 32 * side + 8],
            Variant::Cooperative { half: false, side, .. } => [16, 32 * side + 4],
            _ => [0, 0],
        }
    }
}

/// The kernel without tiles, which tests compare the others with.
pub(crate) const PLAIN: Variant = Variant::Registers { tm: 1, tn4: 1, wx: 8, wy: 8 };

/// The variants of `candidates` and others that a measurement may prefer, the table's choice first. `PLAIN` is among
/// them.
pub(crate) fn alternatives(problem: Problem, caps: &Caps) -> Vec<Variant> {
    let Problem { m, n, inner, .. } = problem;
    let mut list = candidates(problem, caps);
    // A tile may be half empty, not more: a smaller one would do the same with less work.
    let fits = |rows: usize, columns: usize| rows < 2 * m.max(1) && columns < 2 * n.max(1);
    let mut add = |variant: Variant| {
        let [rows, columns] = variant.smallest_block();
        if fits(rows, columns) && !list.contains(&variant) {
            list.push(variant);
        }
    };
    for (tm, tn4) in [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)] {
        match caps.subgroups {
            Some([8, 8]) if caps.cpu => add(Variant::Lanes { lanes: 8, tm, tn4, wx: 8 }),
            Some([4, 4]) if caps.cpu => add(Variant::Lanes { lanes: 4, tm, tn4, wx: 4 }),
            // A workgroup as large as the largest subgroup holds whole subgroups of every size; the kernel relies on
            // the lanes of the smallest.
            Some([least, most]) if !caps.cpu && least >= 4 && most <= 128 => {
                let lanes = least.min(8) as usize;
                add(Variant::Lanes { lanes, tm: tm * 8 / lanes, tn4, wx: most as usize });
            }
            _ => {}
        }
    }
    if (1..=4).contains(&n) && inner >= 64 {
        let count = if caps.eight_lanes() { 3 } else { 2 };
        for &(tm4, wx) in &[(1, 8), (1, 64), (2, 8)][..count] {
            add(Variant::Dots { tm4, tn: n, wx });
        }
    }
    let shared = [gathered(problem, caps), sliced(problem, caps), tiled(problem, caps)];
    shared.into_iter().flatten().for_each(&mut add);
    // Drivers of other CPUs take long to compile large tiles.
    let small = caps.cpu && !caps.eight_lanes();
    for (tm, tn4) in [(8, 2), (8, 1), (4, 2), (4, 1)] {
        if !small || tm * tn4 <= 4 {
            let wx = n.div_ceil(4 * tn4).next_power_of_two().min(8);
            add(Variant::Registers { tm, tn4, wx, wy: 64 / wx });
        }
    }
    if !caps.cpu {
        add(Variant::Registers { tm: 4, tn4: 2, wx: 16, wy: 16 });
        add(Variant::Registers { tm: 4, tn4: 1, wx: 16, wy: 8 });
    }
    if !list.contains(&PLAIN) {
        list.push(PLAIN);
    }
    list
}

impl Variant {
    /// A name that means the same kernel in every version of the crate.
    pub(crate) fn name(self) -> String {
        match self {
            Variant::Registers { tm, tn4, wx, wy } => format!("registers {tm}x{tn4} {wx}x{wy}"),
            Variant::Lanes { lanes: 8, tm, tn4, wx: 8 } => format!("lanes {tm}x{tn4}"),
            Variant::Lanes { lanes, tm, tn4, wx } => format!("lanes {lanes}*{tm}x{tn4} {wx}"),
            Variant::Tiled => "tiled".to_string(),
            Variant::Sliced => "sliced".to_string(),
            Variant::Gathered => "gathered".to_string(),
            Variant::Cooperative { size, half, side, wx } => {
                let inputs = if half { "f16" } else { "f32" };
                format!("cooperative {inputs} {size} {side}x{side} {wx}")
            }
            Variant::Dots { tm4, tn, wx } => format!("dots {tm4}x{tn} {wx}"),
        }
    }

    /// Rows and columns of the smallest block that is computed as a whole: a thread's block, if threads do not share
    /// loads.
    fn smallest_block(self) -> [usize; 2] {
        match self {
            Variant::Registers { tm, tn4, .. } => [tm, 4 * tn4],
            _ => self.tile(),
        }
    }

    /// The variants with cooperative matrices of this kind, beginning with the largest tile that the adapter can hold.
    pub(crate) fn of_kind(kind: &Cooperative, caps: &Caps) -> impl Iterator<Item = Variant> {
        let half = kind.inputs == DType::F16;
        let size = kind.size as usize;
        let (most, [threads, bytes]) = (caps.subgroups.map_or(0, |[_, most]| most), caps.workgroup);
        let make = move |side: usize| {
            let variant =
                Variant::Cooperative { size, half, side, wx: side * side * most as usize };
            let [depth, line] = variant.staged();
            let staged = 2 * depth * line * if half { 2 } else { 4 };
            let held = staged + 4 * (32 * side) * (32 * side);
            let fits = most > 0 && side * side * most as usize <= threads as usize;
            (fits && held <= bytes as usize).then_some(variant)
        };
        [2, 1].into_iter().filter_map(make)
    }

    /// How many iterations a thread's loops make along a run of i of this length, if it reads the operands `singly`.
    pub(crate) fn iterations(self, run: usize, singly: bool) -> usize {
        let quads = run / 4;
        1 + match self {
            Variant::Registers { .. } | Variant::Lanes { .. } if singly => run,
            Variant::Registers { .. } | Variant::Lanes { .. } => quads + run % 4,
            Variant::Tiled => run.div_ceil(16) * (1 + 16),
            Variant::Sliced | Variant::Gathered => run.div_ceil(64) * (1 + 16),
            Variant::Cooperative { size, .. } => {
                let [depth, _] = self.staged();
                run.div_ceil(depth) * (1 + depth / size)
            }
            Variant::Dots { wx, .. } => quads.div_ceil(wx) + 1,
        }
    }

    /// A bound on the iterations before and after the sums, for any tile.
    pub(crate) const ITERATIONS_AROUND: usize = 128;

    /// The longest run that a thread's loops may process, in whole tiles.
    pub(crate) fn longest_run(self, singly: bool, caps: &Caps) -> usize {
        let room = caps.loop_iterations.saturating_sub(Self::ITERATIONS_AROUND + 8);
        (room * 4096 / self.iterations(4096, singly) / 64 * 64).max(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_caps() -> [Caps; 5] {
        let gpu = Caps::portable();
        let cpu = Caps { cpu: true, ..gpu.clone() };
        let lanes = Caps { subgroups: Some([8, 8]), ..cpu.clone() };
        let four = Caps { subgroups: Some([4, 4]), ..cpu.clone() };
        let kind = Cooperative { size: 16, inputs: DType::F16, proven: true };
        let cooperative = vec![kind];
        let warps = Caps { subgroups: Some([16, 64]), cooperative, ..gpu.clone() };
        [gpu, cpu, lanes, four, warps]
    }

    #[test]
    fn every_shape_has_a_variant_with_threads() {
        let sizes = [1, 2, 3, 5, 10, 50, 64, 100, 1000, 100_000];
        for caps in &all_caps()[..4] {
            for (m, n) in sizes.iter().flat_map(|m| sizes.map(|n| (*m, n))) {
                for inner in [1, 10, 64, 512, 1000] {
                    for variant in
                        candidates(Problem { batch: 1, m, n, inner, products: m * n * inner }, caps)
                    {
                        let fits = match variant {
                            Variant::Registers { tm, tn4, wx, wy } => {
                                (8..=64).contains(&(wx * wy)) && tm.is_power_of_two() && tn4 <= 2
                            }
                            Variant::Dots { tm4: 2, .. } if !caps.eight_lanes() => false,
                            Variant::Dots { tn, wx, .. } => {
                                (n..=4).contains(&tn) && inner >= 8 * wx
                            }
                            Variant::Lanes { lanes, wx, .. } => {
                                caps.lanes() == Some(lanes) && wx == lanes
                            }
                            Variant::Tiled | Variant::Sliced | Variant::Gathered => !caps.cpu,
                            Variant::Cooperative { .. } => false,
                        };
                        assert!(fits, "{m}x{inner}x{n}: {variant:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_table_comes_first_and_names_differ() {
        for caps in all_caps() {
            for (m, n) in [(1, 1), (1, 1000), (3, 10), (50, 10), (64, 64), (1000, 1000), (1000, 1)]
            {
                let problem = Problem { batch: 1, m, n, inner: 100, products: 100 * m * n };
                let list = alternatives(problem, &caps);
                assert_eq!(list[0], candidates(problem, &caps)[0]);
                assert!(list.contains(&PLAIN));
                let mut names: Vec<String> = list.iter().map(|v| v.name()).collect();
                assert!(names.len() <= 14, "{names:?}");
                names.sort();
                names.dedup();
                assert_eq!(names.len(), list.len(), "{list:?}");
            }
        }
    }

    #[test]
    fn names_are_stable() {
        let large = Problem { batch: 1, m: 1000, n: 1000, inner: 1000, products: 1_000_000_000 };
        let names = |caps: &Caps| -> Vec<String> {
            alternatives(large, caps).into_iter().map(Variant::name).collect()
        };
        let [gpu, _, lanes, four, warps] = all_caps();
        assert_eq!(names(&gpu)[..3], ["sliced", "tiled", "registers 8x2 8x8"]);
        assert!(names(&lanes).contains(&"lanes 2x2".to_string()));
        assert_eq!(names(&four)[0], "lanes 4*4x1 4");
        assert!(names(&warps).contains(&"lanes 8*2x2 64".to_string()));
        assert!(!names(&gpu).iter().any(|name| name.starts_with("lanes")));
        assert_eq!(names(&gpu).last().unwrap(), "registers 1x1 8x8");
    }
}
