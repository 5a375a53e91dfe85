//! [`Program`]: what a function did while it was traced, in order.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::eager::{Effect, Owner, RunCounter};
use crate::error::Result;
use crate::graph::attributes::Visitor;
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Identity, Op, RuntimeScalars, Spec};
use crate::ops::{Backward, Grads, Keep, Operation};
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The index of an entry, which names the value that the entry makes.
pub(super) type At = u32;

pub(super) enum Entry {
    /// A tensor that the caller passes.
    Argument(usize),
    /// A tensor from outside of the function.
    Captured(Tensor),
    Call(Call),
    /// The value of a variable, by its index.
    Read(usize),
    /// A value under a new identity, through which no gradient passes.
    Stopped(At),
    /// A value under a new identity.
    Same(At),
    Assign {
        variable: usize,
        value: At,
    },
    Effect {
        inputs: Vec<At>,
        effect: Effect,
    },
    Count(Arc<dyn RunCounter>),
    /// In a block: a value that its program passes.
    Outer(usize),
    Control(Control),
    /// The gradients of the [`Control`] `of`, by those of its results: of its inputs of a float dtype, then of `variables`.
    Gradient {
        of: At,
        dys: Vec<At>,
        variables: Vec<usize>,
    },
    /// A result of a [`Control`] or a gradient.
    Result {
        of: At,
        index: usize,
    },
}

/// Blocks that a run chooses or repeats.
pub(super) enum Control {
    /// Runs the branch of this index, the last one if there is none; a `bool` is 0 or 1.
    Choose { index: At, branches: Vec<Block> },
    /// Replaces the values, initially `start`, by those of `body` while `cond` is true, at most this often.
    Repeat { cond: Block, body: Block, start: Vec<At>, most: u64 },
    /// Runs code on the host.
    Host { call: HostCall, inputs: Vec<At> },
}

/// Code that reads tensors and makes others.
pub(super) type HostCall = Arc<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A part of a program.
#[derive(Default)]
pub(super) struct Block {
    pub(super) entries: Vec<Entry>,
    pub(super) outputs: Vec<At>,
    /// The values of the surrounding entries that [`Entry::Outer`] names by index.
    pub(super) captures: Vec<At>,
}

impl Block {
    /// Adds the variables that the block reads.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn add_variables(&self, variables: &mut BTreeSet<usize>) {
        for entry in &self.entries {
            match entry {
                Entry::Read(variable) => {
                    variables.insert(*variable);
                }
                Entry::Control(control) => {
                    control.blocks().iter().for_each(|block| block.add_variables(variables));
                }
                _ => {}
            }
        }
    }
}

impl Control {
    pub(super) fn blocks(&self) -> Vec<&Block> {
        match self {
            Control::Choose { branches, .. } => branches.iter().collect(),
            Control::Repeat { cond, body, .. } => vec![cond, body],
            Control::Host { .. } => Vec::new(),
        }
    }

    pub(super) fn block_name(&self, number: usize) -> String {
        match self {
            Control::Choose { .. } => format!("branch {number}"),
            Control::Repeat { .. } => ["while", "do"][number].to_string(),
            Control::Host { .. } => unreachable!("a call on the host has no blocks"),
        }
    }

    /// The entries whose values the control uses, each once.
    pub(super) fn inputs(&self) -> Vec<At> {
        let own = match self {
            Control::Choose { index, .. } => std::slice::from_ref(index),
            Control::Repeat { start, .. } => start,
            Control::Host { inputs, .. } => inputs,
        };
        let captures = self.blocks().into_iter().flat_map(|block| &block.captures);
        let mut seen = HashSet::new();
        own.iter().chain(captures).copied().filter(|at| seen.insert(*at)).collect()
    }

    fn inputs_mut(&mut self) -> Vec<&mut At> {
        match self {
            Control::Choose { index, branches } => {
                let captures = branches.iter_mut().flat_map(|block| &mut block.captures);
                std::iter::once(index).chain(captures).collect()
            }
            Control::Repeat { cond, body, start, .. } => {
                start.iter_mut().chain(&mut cond.captures).chain(&mut body.captures).collect()
            }
            Control::Host { inputs, .. } => inputs.iter_mut().collect(),
        }
    }
}

pub(super) struct Call {
    pub(super) op: Arc<dyn Operation>,
    pub(super) inputs: SmallVec<[At; 3]>,
    pub(super) spec: Spec,
    /// Returns the op's runtime scalars for the next run, if they vary.
    pub(super) owner: Option<Owner<Result<RuntimeScalars>>>,
}

pub(super) struct Program {
    pub(super) device: Device,
    pub(super) entries: Vec<Entry>,
    /// The shapes and dtypes of the tensors that the caller passes.
    pub(super) arguments: Vec<Spec>,
    pub(super) variables: Vec<Variable>,
    pub(super) outputs: Vec<At>,
    /// How many entries there were when a tape last computed gradients.
    pub(super) gradients: usize,
}

impl Program {
    pub(super) fn new(device: Device) -> Self {
        Program {
            device,
            entries: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            outputs: Vec::new(),
            gradients: 0,
        }
    }

    /// The entries without those that no output, assignment or effect needs.
    pub(super) fn prune(&mut self) {
        let mut needed = vec![false; self.entries.len()];
        for at in &self.outputs {
            needed[*at as usize] = true;
        }
        for at in (0..self.entries.len()).rev() {
            let entry = &self.entries[at];
            let acts = matches!(
                entry,
                Entry::Assign { .. } | Entry::Effect { .. } | Entry::Count(_) | Entry::Control(_)
            );
            needed[at] |= acts;
            if !needed[at] {
                continue;
            }
            entry.inputs().iter().for_each(|at| needed[*at as usize] = true);
        }
        let mut new = vec![0; self.entries.len()];
        let mut count = 0;
        for (at, needed) in needed.iter().enumerate() {
            new[at] = count;
            count += u32::from(*needed);
        }
        self.gradients = needed[..self.gradients].iter().filter(|needed| **needed).count();
        let mut keep = needed.iter();
        self.entries.retain(|_| *keep.next().unwrap_or(&false));
        let moved = |at: &mut At| *at = new[*at as usize];
        for entry in &mut self.entries {
            match entry {
                Entry::Call(call) => call.inputs.iter_mut().for_each(moved),
                Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => moved(of),
                Entry::Assign { value, .. } => moved(value),
                Entry::Effect { inputs, .. } => inputs.iter_mut().for_each(moved),
                Entry::Control(control) => control.inputs_mut().into_iter().for_each(moved),
                Entry::Gradient { of, dys, .. } => {
                    dys.iter_mut().chain([of]).for_each(moved);
                }
                Entry::Argument(_)
                | Entry::Captured(_)
                | Entry::Read(_)
                | Entry::Count(_)
                | Entry::Outer(_) => {}
            }
        }
        self.outputs.iter_mut().for_each(moved);
    }

    /// Whether a run must read values to know what to do.
    pub(super) fn has_control(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Control(_)))
    }
}

impl Entry {
    /// The entries whose values the entry uses.
    pub(super) fn inputs(&self) -> Vec<At> {
        match self {
            Entry::Assign { value, .. } => vec![*value],
            Entry::Effect { inputs, .. } => inputs.clone(),
            Entry::Call(call) => call.inputs.to_vec(),
            Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => vec![*of],
            Entry::Control(control) => control.inputs(),
            Entry::Gradient { of, dys, .. } => dys.iter().chain([of]).copied().collect(),
            Entry::Argument(_)
            | Entry::Captured(_)
            | Entry::Read(_)
            | Entry::Count(_)
            | Entry::Outer(_) => Vec::new(),
        }
    }
}

/// An op with other runtime scalars than it was made with.
pub(super) struct Renumbered {
    op: Arc<dyn Operation>,
    scalars: Mutex<RuntimeScalars>,
}

impl Renumbered {
    pub(super) fn new(op: Arc<dyn Operation>, scalars: RuntimeScalars) -> Arc<Self> {
        Arc::new(Renumbered { op, scalars: Mutex::new(scalars) })
    }

    pub(super) fn set(&self, scalars: RuntimeScalars) {
        *self.scalars.lock().unwrap_or_else(PoisonError::into_inner) = scalars;
    }
}

impl Identity for Renumbered {
    fn kind(&self) -> &'static str {
        self.op.kind()
    }

    fn attributes(&self, visitor: &mut dyn Visitor) {
        self.op.attributes(visitor);
    }

    fn identify(&self, state: &mut dyn std::hash::Hasher) {
        self.op.identify(state);
    }
}

impl Op for Renumbered {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        self.op.infer(inputs)
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        self.scalars.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn scalars_vary(&self) -> bool {
        true
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        self.op.variants(cx)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        self.op.lower(cx)
    }
}

impl Operation for Renumbered {
    fn keep(&self) -> Keep {
        self.op.keep()
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        self.op.grad(back)
    }
}
