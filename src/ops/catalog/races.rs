//! Runs every kernel of the catalog whose invocations cooperate in the interpreter of `portability/interpreter`: there
//! must be no race, no barrier that some invocations do not reach, and no index out of bounds. Needs no adapter; `cargo
//! xtask races` does more with one.

use std::collections::HashSet;
use std::sync::Arc;

use super::Catalog;
use crate::device::{Caps, ShaderSource};
use crate::dtype::DType;
use crate::graph::{Graph, Spec};
use crate::plan::{Choice, faults, plan};

/// The texts that have been checked, and the faults found.
#[derive(Default)]
pub(super) struct Races {
    seen: HashSet<Arc<str>>,
    plans: usize,
    faults: Vec<String>,
}

/// Whether the invocations of a kernel cooperate, so that races are possible.
fn works_together(source: &ShaderSource) -> bool {
    ["Barrier();", "subgroup", "coop"].iter().any(|word| source.wgsl.contains(word))
}

/// Graphs with more elements are left to `cargo xtask races`.
const MOST_ELEMENTS: usize = 20_000;

impl Races {
    /// Runs the plans of a call that have a new text.
    pub(super) fn look(&mut self, call: &str, graph: &Graph, caps: &Caps) {
        let elements: usize = graph.nodes.iter().map(|node| node.spec.elements()).sum::<usize>()
            + graph.leaves.iter().map(Spec::elements).sum::<usize>();
        // Some kernels of recurrent layers are for large weights only.
        let wide = graph.nodes.iter().any(|node| node.op.name().starts_with("Recurrent"));
        if elements > MOST_ELEMENTS && !wide {
            return;
        }
        let variants = graph.nodes.iter().flat_map(|node| {
            let inputs: Vec<&Spec> = node.inputs.iter().map(|input| graph.spec(*input)).collect();
            let cx = crate::graph::lower::LoweringContext {
                inputs: &inputs,
                output: &node.spec,
                caps,
                variant: None,
            };
            node.op.variants(&cx).names
        });
        let mut names: Vec<String> = variants.collect();
        names.sort();
        names.dedup();
        let choices =
            [Choice::Unasked].into_iter().chain(names.iter().map(|name| Choice::Forced(name)));
        for choice in choices {
            let mut plan = plan(graph, caps, true, &choice);
            let new = plan.sources().filter(|source| works_together(source));
            let new: Vec<Arc<str>> = new.map(|source| source.wgsl.clone()).collect();
            let new = new.into_iter().filter(|text| self.seen.insert(text.clone())).count();
            if new == 0 {
                continue;
            }
            self.plans += 1;
            let leaves: Vec<Vec<u8>> = graph.leaves.iter().map(values).collect();
            for subgroup in caps.subgroups.unwrap_or([32, 32]) {
                let faults = faults(&mut plan, graph, &leaves, subgroup as usize);
                self.faults.extend(faults.into_iter().map(|fault| format!("{call}: {fault}")));
            }
        }
    }
}

/// The bytes of a leaf: numbers from -2 to 2, or from 0 to 4 for integers, which may be used as an index.
fn values(spec: &Spec) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes: Vec<u8> = Vec::new();
    for _ in 0..spec.elements() {
        match spec.dtype {
            DType::F32 => bytes.extend((4.0 * random.f32() - 2.0).to_le_bytes()),
            DType::F16 => {
                bytes.extend(half::f16::from_f32(4.0 * random.f32() - 2.0).to_le_bytes());
            }
            DType::U8 => bytes.push(random.u8(0..5)),
            DType::Bool => bytes.extend(random.u32(0..2).to_le_bytes()),
            _ => bytes.extend(random.u32(0..5).to_le_bytes()),
        }
    }
    bytes.resize(spec.bytes() as usize, 0);
    bytes
}

#[test]
#[ignore = "it takes a minute; `cargo xtask races` runs it, also for a sample"]
fn kernels_whose_invocations_work_together_have_no_race() {
    let mut catalog = Catalog::new();
    catalog.races = Some(Races::default());
    catalog.gather();
    let races = catalog.races.unwrap();
    println!("{} plans of {} texts", races.plans, races.seen.len());
    assert!(races.seen.len() > 100, "only {} texts", races.seen.len());
    assert!(races.faults.is_empty(), "{}", races.faults.join("\n"));
}
