//! Proofs: some drivers declare features that compute wrong results, so the tuner compares them with the plain kernel
//! on small cases before any op may use them.

use std::sync::Arc;

use super::Task;
use super::measure::Measurement;
use crate::device::{Caps, Cooperative, Gpu};
use crate::graph::lower::{LoweringContext, Unverified, Variants};

/// Runs the cases of `unverified`; afterwards their kinds in `caps` are proven or gone. Returns true if plans can use
/// something new.
pub(super) fn settle(gpu: &Gpu, caps: &mut Caps, unverified: &[Unverified]) -> bool {
    let mut news = false;
    for kind in caps.cooperative.clone() {
        let cases: Vec<&Unverified> = unverified.iter().filter(|case| case.kind == kind).collect();
        if cases.is_empty() {
            continue;
        }
        gpu.outlive_cooperative_kernels();
        let proven = Cooperative { proven: true, ..kind };
        let trusting = Caps { cooperative: vec![proven], ..caps.clone() };
        // Without a result the question stays open, and the next plan tries again.
        let Some(right) =
            cases.iter().try_fold(true, |right, case| Some(prove(gpu, &trusting, case)? && right))
        else {
            continue;
        };
        if right {
            let known = caps.cooperative.iter_mut().filter(|known| **known == kind);
            known.for_each(|known| *known = proven);
        } else {
            caps.cooperative.retain(|known| *known != kind);
            log::warn!("{} declares {kind:?} and computes it wrongly; it is not used.", gpu.info);
        }
        news |= right;
    }
    news
}

/// Whether a variant computes its case as the plain one does. `None` if the device cannot check it now.
fn prove(gpu: &Gpu, caps: &Caps, case: &Unverified) -> Option<bool> {
    let inputs: Vec<_> = case.inputs.iter().collect();
    let cx = LoweringContext { inputs: &inputs, output: &case.output, caps, variant: None };
    let all = case.op.variants(&cx);
    let names = vec![case.variant.clone(), all.names.get(all.plain)?.clone()];
    let task = Task {
        key: format!("The proof of {}", case.op.name()),
        op: case.op.clone(),
        inputs: case.inputs.clone(),
        output: case.output.clone(),
        variants: Variants { names, plain: 1, ..all },
        caps: caps.clone(),
    };
    Measurement::new(Arc::new(task)).proves_the_first(gpu)
}
