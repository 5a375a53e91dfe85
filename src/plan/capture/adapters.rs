//! The adapters for which a graph is planned in addition to the present one: how the capabilities of each differ.

use super::super::tuner::Choice;
use super::super::{Fusion, Plan, plan};
use crate::device::{Caps, Cooperative, MatmulPrecision};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::graph::Graph;
use crate::graph::lower::LoweringContext;

/// A kind of adapter.
pub(super) struct Adapter {
    name: &'static str,
    change: fn(&mut Caps),
}

/// All of them. `variants` means the present adapter and a GPU, with each variant of each op.
const ADAPTERS: &[Adapter] = &[
    Adapter { name: "gpu", change: gpu },
    Adapter { name: "few-buffers", change: few_buffers },
    Adapter { name: "cpu", change: |caps| cpu(caps, None) },
    Adapter { name: "cpu-4", change: |caps| cpu(caps, Some(4)) },
    Adapter { name: "cpu-8", change: |caps| cpu(caps, Some(8)) },
    Adapter { name: "subgroups-4", change: |caps| subgroups(caps, 4, 4) },
    Adapter { name: "subgroups-8", change: |caps| subgroups(caps, 8, 8) },
    Adapter { name: "subgroups-16", change: |caps| subgroups(caps, 16, 16) },
    Adapter { name: "subgroups-32", change: |caps| subgroups(caps, 32, 32) },
    Adapter { name: "subgroups-64", change: |caps| subgroups(caps, 64, 64) },
    Adapter { name: "subgroups-128", change: |caps| subgroups(caps, 128, 128) },
    Adapter { name: "subgroups-8-32", change: |caps| subgroups(caps, 8, 32) },
    Adapter { name: "subgroups-4-128", change: |caps| subgroups(caps, 4, 128) },
    Adapter { name: "matrices", change: matrices },
    Adapter {
        name: "short-loops",
        change: |caps| {
            gpu(caps);
            caps.loop_iterations = 256;
        },
    },
    Adapter {
        name: "cpu-short-loops",
        change: |caps| {
            cpu(caps, Some(8));
            caps.loop_iterations = 256;
        },
    },
];

/// The capabilities of any GPU in any browser.
fn gpu(caps: &mut Caps) {
    caps.cpu = false;
    caps.subgroups = None;
    caps.cooperative.clear();
    caps.storage_buffers = 8;
    caps.workgroup = [256, 16 << 10];
}

/// The minimum limits of an adapter.
fn few_buffers(caps: &mut Caps) {
    gpu(caps);
    caps.storage_buffers = 4;
    caps.workgroup = [256, 16_352];
}

fn cpu(caps: &mut Caps, lanes: Option<u32>) {
    gpu(caps);
    caps.cpu = true;
    caps.subgroups = lanes.map(|size| [size, size]);
}

fn subgroups(caps: &mut Caps, least: u32, most: u32) {
    gpu(caps);
    caps.subgroups = Some([least, most]);
}

/// Subgroups multiply small matrices; factors may be rounded to f16.
fn matrices(caps: &mut Caps) {
    gpu(caps);
    caps.subgroups = Some([32, 64]);
    let kind = |size, inputs| Cooperative { size, inputs, proven: true };
    caps.cooperative = vec![kind(16, DType::F16), kind(8, DType::F32)];
    caps.precision = MatmulPrecision::F16Inputs;
    caps.workgroup = [256, 32 << 10];
}

/// The adapters of a list of names with commas between them; `all` means each of them, with every variant.
pub(super) fn named(names: &str) -> Result<Vec<&'static Adapter>> {
    if names == "all" {
        return Ok(ADAPTERS.iter().collect());
    }
    let find = |name: &str| {
        ADAPTERS.iter().find(|adapter| adapter.name == name).ok_or_else(|| {
            let known: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.name).collect();
            Error::Data(message!(
                "WGRAD_KERNEL_CAPTURE_ADAPTERS has '{name}'; there are {}, and all.",
                known.join(", ")
            ))
        })
    };
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(find).collect()
}

impl Adapter {
    fn caps(&self, own: &Caps) -> Caps {
        let mut caps = own.clone();
        (self.change)(&mut caps);
        caps
    }

    pub(super) fn subgroups(&self, own: &Caps) -> Option<[u32; 2]> {
        self.caps(own).subgroups
    }

    /// The plans of a graph on this adapter: with the ops' own variants, without fusion, and with each other variant
    /// that an op has there. Empty if the ops need more buffers than there are, because the calls would then have been
    /// different.
    pub(super) fn plans(&self, graph: &Graph, own: &Caps) -> Result<Vec<(String, Plan)>> {
        let caps = self.caps(own);
        if graph.nodes.iter().any(|node| node.inputs.len() >= caps.storage_buffers) {
            return Ok(Vec::new());
        }
        let mut plans = plans(self.name, graph, &caps);
        // Not every op can split its loops into such short pieces.
        if caps.loop_iterations < own.loop_iterations {
            plans.retain(|(_, plan)| plan.refused.is_none());
        }
        match plans.iter().find_map(|(_, plan)| plan.refused.clone()) {
            Some(error) => Err(error.reworded(|words| message!("On {}: {words}", self.name))),
            None => Ok(plans),
        }
    }
}

/// The plans of a graph with fusion, without, and with each variant that an op has in addition to its own choice.
pub(super) fn plans(name: &str, graph: &Graph, caps: &Caps) -> Vec<(String, Plan)> {
    let unasked = |fusion: Fusion| plan(graph, caps, fusion, &Choice::Unasked);
    let mut plans = vec![
        (name.to_string(), unasked(Fusion::Full)),
        (format!("{name}, one by one"), unasked(Fusion::Off)),
    ];
    if caps.cpu {
        plans.push((format!("{name}, at first"), unasked(Fusion::Brief)));
    }
    for variant in variants(graph, caps) {
        let of = plan(graph, caps, Fusion::Full, &Choice::Forced(&variant));
        plans.push((format!("{name}, {variant}"), of));
    }
    plans
}

/// The variants that ops of the graph have in addition to those that they choose.
fn variants(graph: &Graph, caps: &Caps) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // The planner does not lower ops that compute nothing.
    for node in graph.nodes.iter().filter(|node| node.spec.elements() > 0) {
        let inputs: Vec<_> = node.inputs.iter().map(|input| graph.spec(*input)).collect();
        let cx = LoweringContext { inputs: &inputs, output: &node.spec, caps, variant: None };
        for name in node.op.variants(&cx).names.into_iter().skip(1) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
