//! Programs whose choices are among small branches: a run computes all of them and selects, so the host reads nothing and the
//! program is one plan.

use std::rc::Rc;

use super::program::{Block, Control, Entry, Program};
use super::recorder::Recorder;
use crate::eager;
use crate::error::Result;
use crate::graph::Spec;

/// All branches of a program together have at most this many calls,
const CALLS: usize = 32;
/// and each result at most this many elements.
const ELEMENTS: usize = 1 << 16;

impl Program {
    /// The same program without choices, if their branches only compute, and are small.
    pub(super) fn with_selects(&self) -> Option<Program> {
        let mut calls = 0;
        let controls = self.entries.iter().filter_map(|entry| match entry {
            Entry::Control(control) => Some(control),
            _ => None,
        });
        let mut all_small = true;
        controls.for_each(|control| all_small &= is_small(control, &mut calls));
        if !all_small || !self.has_control() {
            return None;
        }
        let recorder = Rc::new(Recorder::new(self.device.clone()));
        let record = || -> Result<()> {
            let symbol = |spec: &Spec| {
                let symbol = eager::placeholder_on(&self.device, spec.clone());
                recorder.argument(&symbol);
                symbol
            };
            let arguments: Vec<_> = self.arguments.iter().map(symbol).collect();
            self.replay(&arguments)?.iter().for_each(|output| recorder.output(output));
            Ok(())
        };
        let (recorded, _) = eager::unobserved(|| {
            eager::observed_by(recorder.clone(), || {
                eager::traced_function(|| recorder.recording(|| self.device.scope(record)))
            })
        });
        // A value of a dtype that cannot be selected: the program stays as it is.
        recorded.and_then(|()| recorder.end()).ok()
    }
}

/// Whether the control is a choice among branches that only compute. Adds their calls to `calls`.
fn is_small(control: &Control, calls: &mut usize) -> bool {
    match control {
        Control::Choose { branches, .. } => {
            branches.iter().all(|block| only_computes(block, calls))
        }
        Control::Repeat { .. } | Control::Host { .. } => false,
    }
}

fn only_computes(block: &Block, calls: &mut usize) -> bool {
    block.entries.iter().all(|entry| match entry {
        Entry::Call(call) => {
            *calls += 1;
            *calls <= CALLS && call.owner.is_none() && call.spec.shape.elements() <= ELEMENTS
        }
        Entry::Captured(_) | Entry::Outer(_) | Entry::Read(_) => true,
        Entry::Stopped(_) | Entry::Same(_) | Entry::Result { .. } => true,
        Entry::Control(control) => is_small(control, calls),
        Entry::Argument(_)
        | Entry::Assign { .. }
        | Entry::Effect { .. }
        | Entry::Count(_)
        | Entry::Gradient { .. } => false,
    })
}
