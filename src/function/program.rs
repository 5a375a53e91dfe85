//! [`Program`]: what a function did while it was traced, in order.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::eager::{Effect, Owner, RunCounter};
use crate::error::Result;
use crate::graph::attributes::Visitor;
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Identity, Op, RuntimeScalars, Spec};
use crate::ops::{Backward, Grads, Keep, Operation, Results};
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
    /// The gradients of the [`Control`] `of`: of its inputs of a float dtype, then of `variables`. `seeds` are the gradients of
    /// its results. A second list of seeds asks for the gradients of these gradients: of the inputs, of the seeds of a float
    /// dtype before, and of the variables; and so on.
    Gradient {
        of: At,
        seeds: Vec<Vec<At>>,
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
    Repeat {
        cond: Block,
        body: Block,
        start: Vec<At>,
        most: u64,
        /// A turn as a function, from the first run on, if it only computes.
        turn: OnceLock<Option<Box<dyn Turn>>>,
    },
    /// Runs code on the host.
    Host { call: HostCall, inputs: Vec<At> },
}

/// A turn of a loop that runs as one plan. A trait, because what runs plans is made of programs.
pub(super) trait Turn: Send + Sync {
    /// Runs the loop: `values` before the first turn, whether there is one, and what the blocks capture.
    fn run(
        &self,
        values: Vec<Tensor>,
        goes_on: Tensor,
        captures: Vec<Tensor>,
        most: u64,
    ) -> Result<Vec<Tensor>>;
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

impl Block {
    /// Removes the entries that the block does not need, and the values that it then does not capture.
    pub(super) fn prune(&mut self) {
        let Block { entries, outputs, captures } = self;
        prune(entries, outputs);
        let mut used = Vec::new();
        for entry in entries {
            if let Entry::Outer(at) = entry {
                used.push(captures[*at]);
                *at = used.len() - 1;
            }
        }
        *captures = used;
    }

    /// Whether it does the same, and nothing else, if it runs again: it computes, without random numbers.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn only_computes(&self) -> bool {
        self.entries.iter().all(|entry| match entry {
            Entry::Assign { .. } | Entry::Effect { .. } | Entry::Count(_) => false,
            Entry::Call(call) => call.owner.is_none(),
            Entry::Control(control) => control.only_computes(),
            _ => true,
        })
    }

    /// Whether it has blocks of its own.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn has_control(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Control(_)))
    }
}

impl Control {
    /// As [`Block::only_computes`].
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn only_computes(&self) -> bool {
        !matches!(self, Control::Host { .. }) && self.blocks().into_iter().all(Block::only_computes)
    }

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
    /// For the op of a custom gradient.
    pub(super) rule: Option<GradientRule>,
}

/// How a custom gradient is computed. The closure that the trace has called uses values of the trace, which no run has.
pub(super) struct GradientRule {
    /// Of the gradients of the results, then of the captured values. An error if the rule is too deep in others.
    pub(super) program: Result<Arc<Program>>,
    pub(super) results: Results,
    pub(super) captures: Vec<At>,
}

pub(super) struct Program {
    pub(super) device: Device,
    pub(super) entries: Vec<Entry>,
    /// The shapes and dtypes of the tensors that the caller passes.
    pub(super) arguments: Vec<Spec>,
    pub(super) variables: Vec<Variable>,
    pub(super) outputs: Vec<At>,
    pub(super) output_specs: Vec<Spec>,
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
            output_specs: Vec::new(),
            gradients: 0,
        }
    }

    /// The entries, those of blocks included.
    pub(super) fn all_entries(&self) -> Vec<&Entry> {
        let mut all: Vec<&Entry> = Vec::new();
        let mut waiting: Vec<&[Entry]> = vec![&self.entries];
        while let Some(entries) = waiting.pop() {
            for entry in entries {
                if let Entry::Control(control) = entry {
                    waiting.extend(control.blocks().into_iter().map(|block| &block.entries[..]));
                }
                all.push(entry);
            }
        }
        all
    }

    /// Removes the entries that no output, assignment or effect needs.
    pub(super) fn prune(&mut self) {
        let Program { entries, outputs, gradients, .. } = self;
        let needed = prune(entries, outputs);
        *gradients = needed[..*gradients].iter().filter(|needed| **needed).count();
    }

    /// The shape and dtype of an entry's value, in a program without blocks.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn spec_of_entry(&self, mut at: At) -> Spec {
        loop {
            at = match &self.entries[at as usize] {
                Entry::Argument(argument) => return self.arguments[*argument].clone(),
                Entry::Captured(tensor) => return tensor.spec().clone(),
                Entry::Call(call) => return call.spec.clone(),
                Entry::Read(variable) => return self.variables[*variable].spec().clone(),
                Entry::Stopped(of) | Entry::Same(of) => *of,
                _ => unreachable!("the entry has no value"),
            };
        }
    }

    /// Whether a run must read values to know what to do.
    pub(super) fn has_control(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Control(_)))
    }
}

/// Removes the entries that neither the outputs nor assignments and effects need. Returns which of them stay.
fn prune(entries: &mut Vec<Entry>, outputs: &mut [At]) -> Vec<bool> {
    let mut needed = vec![false; entries.len()];
    for at in &*outputs {
        needed[*at as usize] = true;
    }
    for at in (0..entries.len()).rev() {
        let entry = &entries[at];
        let acts = match entry {
            Entry::Assign { .. } | Entry::Effect { .. } | Entry::Control(_) => true,
            Entry::Count(counter) => counter.needed(),
            _ => false,
        };
        needed[at] |= acts;
        if !needed[at] {
            continue;
        }
        entry.inputs().iter().for_each(|at| needed[*at as usize] = true);
    }
    let mut new = vec![0; entries.len()];
    let mut count = 0;
    for (at, needed) in needed.iter().enumerate() {
        new[at] = count;
        count += u32::from(*needed);
    }
    let mut keep = needed.iter();
    entries.retain(|_| *keep.next().unwrap_or(&false));
    let moved = |at: &mut At| *at = new[*at as usize];
    entries.iter_mut().flat_map(Entry::inputs_mut).for_each(moved);
    outputs.iter_mut().for_each(moved);
    needed
}

impl Entry {
    /// The entries whose values the entry uses.
    pub(super) fn inputs(&self) -> Vec<At> {
        match self {
            Entry::Assign { value, .. } => vec![*value],
            Entry::Effect { inputs, .. } => inputs.clone(),
            Entry::Call(call) => {
                let captures = call.rule.iter().flat_map(|rule| &rule.captures);
                call.inputs.iter().chain(captures).copied().collect()
            }
            Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => vec![*of],
            Entry::Control(control) => control.inputs(),
            Entry::Gradient { of, seeds, .. } => {
                seeds.iter().flatten().chain([of]).copied().collect()
            }
            Entry::Argument(_)
            | Entry::Captured(_)
            | Entry::Read(_)
            | Entry::Count(_)
            | Entry::Outer(_) => Vec::new(),
        }
    }

    pub(super) fn inputs_mut(&mut self) -> Vec<&mut At> {
        match self {
            Entry::Assign { value, .. } => vec![value],
            Entry::Effect { inputs, .. } => inputs.iter_mut().collect(),
            Entry::Call(call) => {
                let captures = call.rule.iter_mut().flat_map(|rule| &mut rule.captures);
                call.inputs.iter_mut().chain(captures).collect()
            }
            Entry::Stopped(of) | Entry::Same(of) | Entry::Result { of, .. } => vec![of],
            Entry::Control(control) => control.inputs_mut(),
            Entry::Gradient { of, seeds, .. } => seeds.iter_mut().flatten().chain([of]).collect(),
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
