//! Whether all invocations of a workgroup reach each barrier, as the text alone shows it.
//!
//! WGSL demands it, Chrome's compiler refuses a text that does not show it, and naga does not look. Where it is not so, a GPU
//! hangs (Metal) or computes on with what happened to be in memory. So what decides whether a barrier is reached may come
//! from the place of the workgroup, from parameters and from buffers that nobody writes; never from an invocation's index,
//! from workgroup memory or from a buffer that the kernel writes, whatever a run would find there. What a subgroup does
//! together may also depend on the subgroup's number.

use std::collections::BTreeSet;

use crate::program::{Given, Op, Program, Reg, Root};

impl Program {
    /// The lines of barriers, and of what subgroups do together, that some invocations may not reach.
    pub fn diverging(&self) -> Vec<u32> {
        let mut walk = Walk::new(self);
        walk.finish();
        walk.found.into_iter().collect()
    }
}

/// Between whom a value may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Varies {
    /// Workgroups alone.
    Never,
    Subgroups,
    Invocations,
}

/// Between whom registers may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Varying(Vec<Varies>);

impl Varying {
    fn join(&mut self, other: &Varying) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = (*own).max(*other));
    }
}

/// A frame of control flow.
struct Frame {
    /// Between whom it differs whether they are in it.
    varying: Varies,
    /// Whether they have left it by `break` or `return`, or wait in it for the next turn.
    left: Varies,
    waits: Varies,
    /// The state at its begin, and where its ways lead together.
    begin: Varying,
    joined: Option<Varying>,
    /// The first instruction of a loop.
    start: usize,
}

struct Walk<'a> {
    program: &'a Program,
    state: Varying,
    frames: Vec<Frame>,
    found: BTreeSet<u32>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program) -> Self {
        let mut state = Varying(vec![Varies::Never; program.registers as usize]);
        for &(given, register) in &program.given {
            state.0[register as usize] = match given {
                Given::WorkgroupId(_)
                | Given::NumWorkgroups(_)
                | Given::SubgroupSize
                | Given::NumSubgroups => Varies::Never,
                Given::SubgroupId => Varies::Subgroups,
                _ => Varies::Invocations,
            };
        }
        Walk { program, state, frames: Vec::new(), found: BTreeSet::new() }
    }

    fn of(&self, register: Reg) -> Varies {
        self.state.0[register as usize]
    }

    /// The most that any of these varies.
    fn most(&self, registers: impl IntoIterator<Item = Reg>) -> Varies {
        registers.into_iter().map(|register| self.of(register)).max().unwrap_or(Varies::Never)
    }

    /// Between whom it differs whether they are here.
    fn here(&self) -> Varies {
        let frames = self.frames.iter().map(|frame| frame.varying.max(frame.left).max(frame.waits));
        frames.max().unwrap_or(Varies::Never)
    }

    fn push(&mut self, varying: Varies, start: usize) {
        let (begin, never) = (self.state.clone(), Varies::Never);
        let frame = Frame { varying, left: never, waits: never, begin, joined: None, start };
        self.frames.push(frame);
    }

    fn finish(&mut self) {
        let mut pc = 0;
        while pc < self.program.ops.len() {
            pc = self.step(pc);
        }
    }

    /// Goes through an instruction, and returns the next one.
    fn step(&mut self, pc: usize) -> usize {
        match self.program.ops[pc] {
            Op::If { condition, .. } => self.push(self.of(condition), pc),
            Op::Else { .. } => {
                if let Some(frame) = self.frames.last_mut() {
                    let accepted = std::mem::replace(&mut self.state, frame.begin.clone());
                    frame.joined = Some(accepted);
                }
            }
            Op::EndIf { .. } => self.join(),
            Op::Switch => self.push(Varies::Never, pc),
            Op::Case { selector, .. } => {
                let varying = self.of(selector);
                if let Some(frame) = self.frames.last_mut() {
                    frame.varying = frame.varying.max(varying);
                    self.state = frame.begin.clone();
                }
            }
            Op::Default { .. } => {
                if let Some(frame) = self.frames.last_mut() {
                    self.state = frame.begin.clone();
                }
            }
            Op::EndCase => {
                if let Some(frame) = self.frames.last_mut() {
                    match &mut frame.joined {
                        Some(joined) => joined.join(&self.state),
                        None => frame.joined = Some(self.state.clone()),
                    }
                }
            }
            Op::EndSwitch { .. } => self.join(),
            Op::Loop => self.push(Varies::Never, pc + 1),
            Op::Continuing { .. } => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.waits = Varies::Never;
                }
            }
            Op::BreakIf { condition } => {
                let varying = self.of(condition).max(self.here());
                if let Some(frame) = self.frames.last_mut() {
                    frame.left = frame.left.max(varying);
                }
            }
            Op::Again { .. } => return self.again(pc),
            Op::EndLoop { .. } => {
                self.frames.pop();
            }
            Op::Call => self.push(Varies::Never, pc),
            Op::EndCall { .. } => {
                self.frames.pop();
            }
            Op::Break { depth, .. } | Op::Return { depth, .. } => {
                let here = self.here();
                let frame = self.frame(depth);
                frame.left = frame.left.max(here);
            }
            Op::Continue { depth, .. } => {
                let here = self.here();
                let frame = self.frame(depth);
                frame.waits = frame.waits.max(here);
            }
            Op::Barrier { number } => {
                if self.here() > Varies::Never {
                    self.found.insert(self.program.barriers[number as usize].line);
                }
            }
            op => self.compute(op),
        }
        pc + 1
    }

    fn frame(&mut self, depth: u32) -> &mut Frame {
        let at = self.frames.len() - 1 - depth as usize;
        &mut self.frames[at]
    }

    /// Leaves an `if` or a `switch`, whose ways lead together.
    fn join(&mut self) {
        if let Some(joined) = self.frames.pop().and_then(|frame| frame.joined) {
            self.state.join(&joined);
        }
    }

    /// Goes through a loop again until another turn changes nothing.
    fn again(&mut self, pc: usize) -> usize {
        let Some(frame) = self.frames.last_mut() else { return pc + 1 };
        let mut next = frame.begin.clone();
        next.join(&self.state);
        let varying = frame.varying.max(frame.left);
        let stable = next == frame.begin && varying == frame.varying;
        self.state = next.clone();
        if stable {
            return pc + 1;
        }
        (frame.begin, frame.varying) = (next, varying);
        frame.start
    }

    /// What an instruction makes of its registers.
    fn compute(&mut self, op: Op) {
        let mut registers = Vec::new();
        let mut copy = op;
        copy.registers(&mut |register| registers.push(*register));
        let (results, varying) = match op {
            Op::Set { d, a } => (d..d + 1, self.of(a).max(self.here())),
            // Any element of the variable may be meant.
            Op::Put { index, a, all: [first, end], .. } => {
                let varying = self.most([index, a]).max(self.here());
                let all = self.most(first..end).max(varying);
                (first..end, all)
            }
            Op::Pick { d, .. } => (d..d + 1, Varies::Invocations),
            Op::Load { d, count, address, .. } => {
                let written = match address.root {
                    Root::Workgroup => true,
                    Root::Buffer(binding) => self.program.bindings[binding as usize].writable,
                };
                let varying = self.most(address.dynamic);
                (d..d + count, if written { Varies::Invocations } else { varying })
            }
            Op::Atomic { d, .. } => (d.map_or(0..0, |d| d..d + 2), Varies::Invocations),
            Op::Gather { d, line, .. } | Op::Collective { d, line, .. } => {
                self.together(line);
                (d..d + 1, Varies::Invocations)
            }
            Op::Ballot { d, line, .. } => {
                self.together(line);
                (d..d + 4, Varies::Invocations)
            }
            Op::MatrixLoad { to, address, .. } => {
                self.together(address.line);
                (to.first..to.first + to.columns * to.rows, Varies::Invocations)
            }
            Op::MatrixMultiply { d, line, .. } => {
                self.together(line);
                (d.first..d.first + d.columns * d.rows, Varies::Invocations)
            }
            Op::MatrixStore { address, .. } => {
                self.together(address.line);
                (0..0, Varies::Never)
            }
            Op::Store { .. } | Op::Written { .. } | Op::Uniform { .. } => (0..0, Varies::Never),
            _ => match registers.split_first() {
                Some((&d, operands)) => (d..d + 1, self.most(operands.iter().copied())),
                None => (0..0, Varies::Never),
            },
        };
        for register in results {
            if let Some(known) = self.state.0.get_mut(register as usize) {
                *known = varying;
            }
        }
    }

    /// A subgroup does something that all its invocations have to take part in.
    fn together(&mut self, line: u32) {
        if self.here() > Varies::Subgroups {
            self.found.insert(line);
        }
    }
}
