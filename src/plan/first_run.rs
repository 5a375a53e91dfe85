//! Chooses the plan for a structure's first run. Programs also run some structures only once, and then one large kernel
//! can take longer to compile than everything else together. If it would, the first run uses a kernel for each op:
//! their texts are small, and other plans use them, too. When the structure repeats, the planner fuses it; on a CPU, it
//! does so when launching single ops has cost as much additional time as compiling fused kernels would.
//!
//! On a CPU the planner first fuses with [`Fusion::Brief`], and in full when that plan has run [`MANY`] times: by then
//! it has lost about the time that compiling larger kernels takes. A driver may round differently if code is split into
//! two kernels, so for an optimizer step its number counts, not the runs in this process: resumed training gets the
//! same kernels as uninterrupted training.
//!
//! [`Fusion::Brief`]: super::Fusion::Brief

use super::{Plan, Stage};
use crate::device::Gpu;
use crate::graph::HashIndex;

/// The base cost of compiling a kernel, in units of ten microseconds; its weight is added.
const KERNEL: u64 = 2500;
/// The cost of a launch, in the same units.
const LAUNCH: u64 = 6;
/// How many bytes a kernel reads and writes in one of these units.
const BYTES: u64 = 50_000;
/// The small kernels are worthwhile if the fused first run takes longer by this many units, and by this factor in
/// thirds.
const SLOWER: (u64, u64) = (5_000, 6);
/// The same for an exploratory program. Its next structures will find the small kernels already compiled, so only a
/// part of their compilation counts.
const SLOWER_AGAIN: (u64, u64) = (1_000, 4);
const SHARE: u64 = 8;
/// The most additional bytes that the small kernels may take: fusion may keep a large value in registers.
const MORE_BYTES: u64 = 64 << 20;

/// After this many runs of a plan its structure is planned in full. A step of a small network loses 0.1 to 0.5 ms until
/// then, and compiles for 0.1 to 0.7 s.
pub(super) const MANY: u32 = 1000;

/// The cost of compiling a plan, and of running it once.
struct Cost {
    compile: u64,
    run: u64,
}

impl Plan {
    /// This plan, for the first runs of its structure.
    pub(crate) fn for_first_runs(self) -> Plan {
        Plan { stage: Stage::Brief, until: MANY, ..self }
    }

    /// This plan, or the plan of single ops that `apart` makes if it makes the first run much shorter. `tries` is true
    /// if the program's structures rarely repeat; `calls` is the number of ops that would have a kernel.
    pub(crate) fn for_first_run(
        self,
        gpu: &Gpu,
        tries: bool,
        calls: usize,
        apart: impl FnOnce() -> Plan,
    ) -> Plan {
        let own = self.cost(gpu);
        let ((more, thirds), share) = if tries { (SLOWER_AGAIN, SHARE) } else { (SLOWER, 1) };
        let first = own.compile + own.run;
        let slower = |other: u64| first >= other + more && 3 * first >= thirds * other;
        // If their launches alone take too long, `apart` need not make a plan.
        if !slower(LAUNCH * calls as u64) {
            return self;
        }
        let apart = apart();
        let other = apart.cost(gpu);
        let fits = apart.report.buffer_bytes() <= self.report.buffer_bytes() + MORE_BYTES;
        if !fits || !slower(other.compile / share + other.run) {
            return self;
        }
        // On a CPU it is used until it has lost the time that compiling this plan takes: the loss is then at most twice
        // that of the better choice.
        let loses = other.run.saturating_sub(own.run).max(1);
        let until = if gpu.caps.cpu { (own.compile / loses).clamp(1, MANY.into()) } else { 1 };
        Plan { stage: Stage::SingleOps, until: until as u32, ..apart }
    }

    fn cost(&self, gpu: &Gpu) -> Cost {
        let mut seen = HashIndex::default();
        let mut cost = Cost { compile: 0, run: 0 };
        for step in &self.steps {
            cost.run += LAUNCH + step.bytes / BYTES;
            let text = step.source.wgsl.as_ptr() as usize as u64;
            if seen.insert(text, 0).is_none() && !gpu.has_pipeline(&step.source) {
                cost.compile += KERNEL + step.note.weight as u64;
            }
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::attributes::Attribute;
    use std::sync::Arc;

    use super::*;
    use crate::device::DeviceOptions;
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
    use crate::graph::{Graph, Node, Op, Spec};
    use crate::plan::{Choice, plan};

    #[derive(Debug, Attribute)]
    #[op("Any")]
    struct Any;

    impl Op for Any {
        fn name(&self) -> &'static str {
            "Any"
        }

        fn infer(&self, _: &[&Spec]) -> Result<Spec> {
            Ok(Spec::new([4], DType::F32))
        }

        fn lower(&self, _: &LoweringContext) -> Lowering {
            Kernel::new("any", "fn main() {}").write(Bind::Output).workgroups(1, 0).into()
        }
    }

    #[test]
    fn small_kernels_save_much_and_half_of_the_time() {
        let gpu = pollster::block_on(Gpu::open(&DeviceOptions::default())).unwrap();
        let spec = Any.infer(&[]).unwrap();
        let nodes =
            vec![Node { op: Arc::new(Any), inputs: Default::default(), spec, wanted: true }];
        let graph = Graph { nodes, ..Graph::default() };
        let of = |weight: usize| {
            let mut plan = plan(&graph, &gpu.caps, true, &Choice::Unasked);
            plan.steps[0].note.weight = weight;
            plan
        };
        let apart = |own, other| {
            of(own).for_first_run(&gpu, false, 0, || of(other)).stage == Stage::SingleOps
        };
        assert!(apart(20_000, 5_000));
        assert!(!apart(20_000, 12_000), "it saves less than half");
        assert!(!apart(4_000, 0), "it saves little");
    }
}
