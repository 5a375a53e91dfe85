//! Programs whose choices are among small branches: a run computes all of them and selects, so the host reads nothing and the
//! program is one plan.

use std::collections::HashMap;
use std::rc::Rc;

use super::program::{At, Control, Entry, Program};
use super::recorder::Recorder;
use crate::eager;
use crate::error::Result;
use crate::graph::Spec;
use crate::tensor::Tensor;

/// All branches of a program together have at most this many calls,
const CALLS: usize = 32;
/// and each value that they use or make has at most this many elements.
const ELEMENTS: usize = 1 << 16;

impl Program {
    /// The same program without choices, if their branches only compute, and are small.
    pub(super) fn with_selects(&self) -> Option<Program> {
        if !self.has_control() {
            return None;
        }
        let mut calls = 0;
        let arguments: Vec<usize> = self.arguments.iter().map(Spec::elements).collect();
        self.small_values(&self.entries, (&arguments, &[]), true, &mut calls)?;
        // A value of a dtype that cannot be selected: the program stays as it is.
        self.recorded(&self.arguments, &|arguments| self.replay(arguments)).ok()
    }

    /// Records another program: `f` of arguments with these specs makes calls of this one in a trace.
    pub(super) fn recorded(
        &self,
        arguments: &[Spec],
        f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Program> {
        let recorder = Rc::new(Recorder::new(self.device.clone()));
        let record = || -> Result<()> {
            let symbol = |spec: &Spec| {
                let symbol = eager::placeholder_on(&self.device, spec.clone());
                recorder.argument(&symbol);
                symbol
            };
            let arguments: Vec<_> = arguments.iter().map(symbol).collect();
            f(&arguments)?.iter().for_each(|output| recorder.output(output));
            Ok(())
        };
        let (recorded, _) = eager::unobserved(|| {
            eager::observed_by(recorder.clone(), || {
                eager::traced_function(|| recorder.recording(|| self.device.scope(record)))
            })
        });
        recorded.and_then(|()| recorder.end())
    }

    /// The number of elements of each entry's value; `None` if a block does something else than compute, or is not small.
    /// Adds the calls of blocks to `calls`. `arguments` and `outer` are the sizes of the values that the entries get and capture.
    pub(super) fn small_values(
        &self,
        entries: &[Entry],
        (arguments, outer): (&[usize], &[usize]),
        top: bool,
        calls: &mut usize,
    ) -> Option<Vec<usize>> {
        let mut sizes: Vec<usize> = Vec::with_capacity(entries.len());
        let mut results: HashMap<At, Vec<usize>> = HashMap::new();
        for (own, entry) in entries.iter().enumerate() {
            let size = match entry {
                Entry::Argument(at) => arguments[*at],
                Entry::Captured(tensor) => tensor.len(),
                Entry::Call(call) => {
                    *calls += usize::from(!top);
                    if !top && call.owner.is_some() || *calls > CALLS {
                        return None;
                    }
                    call.spec.elements()
                }
                Entry::Read(variable) => self.variables[*variable].spec().elements(),
                Entry::Outer(at) => outer[*at],
                Entry::Stopped(of) | Entry::Same(of) => sizes[*of as usize],
                Entry::Control(Control::Choose { branches, .. }) => {
                    for block in branches {
                        let captured: Vec<usize> =
                            block.captures.iter().map(|at| sizes[*at as usize]).collect();
                        let inner =
                            self.small_values(&block.entries, (&[], &captured), false, calls)?;
                        let made = block.outputs.iter().map(|at| inner[*at as usize]).collect();
                        results.insert(own as At, made);
                    }
                    0
                }
                // The gradients of a choice among small branches are small.
                Entry::Result { of, index } => {
                    results.get(of).and_then(|sizes| sizes.get(*index)).copied().unwrap_or(0)
                }
                Entry::Assign { .. } | Entry::Effect { .. } | Entry::Count(_) if top => 0,
                Entry::Gradient { .. } if top => 0,
                Entry::Control(_)
                | Entry::Assign { .. }
                | Entry::Effect { .. }
                | Entry::Count(_)
                | Entry::Gradient { .. } => return None,
            };
            if !top && size > ELEMENTS {
                return None;
            }
            sizes.push(size);
        }
        Some(sizes)
    }
}
