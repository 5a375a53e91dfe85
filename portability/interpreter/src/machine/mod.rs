//! Runs a kernel: all invocations of a workgroup side by side, the active ones named by a mask.
//!
//! A workgroup is split into *crews*, whose invocations run in lockstep: one crew of all, or several that go on in any order
//! until they meet at a barrier. `control` moves masks, `lanes` computes, `access` reads and writes memory, `subgroups` and
//! `matrices` have what invocations of a subgroup do together.

mod access;
mod control;
mod lanes;
mod matrices;
mod subgroups;

use anyhow::{Result, bail};

use crate::finding::{Finding, Findings, Kind as Found, Seen};
use crate::mask::{MOST, Mask};
use crate::memory::{Bound, Memory, Shared};
use crate::noise::Noise;
use crate::program::{Given, Op, Program};
use crate::random::Random;
use control::Frame;

/// In which order invocations and workgroups run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In lockstep, from the first to the last.
    Straight,
    /// Workgroups and invocations in random order, each workgroup in lockstep or in crews.
    Random(u64),
}

/// How a kernel runs.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Who comes first.
    pub order: Order,
    /// Invocations of a subgroup.
    pub subgroup: usize,
    /// Results that drivers may round differently are moved by a digit, as this number decides.
    pub noise: Option<u64>,
    /// A loop that goes on for longer has no end.
    pub most_turns: u32,
    /// How many instructions all invocations of a workgroup may take together.
    pub most_steps: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            order: Order::Straight,
            subgroup: 32,
            noise: None,
            // Mesa's llvmpipe lets no loop go on for longer.
            most_turns: 65_535,
            most_steps: 4_000_000_000,
        }
    }
}

/// One dispatch of a kernel.
#[derive(Debug, Clone)]
pub struct Dispatch<'a> {
    /// What runs.
    pub program: &'a Program,
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// What is bound, by the bindings' numbers in the text.
    pub bounds: &'a [Bound],
}

/// What came of a dispatch, apart from what it wrote.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is wrong, by kind and place.
    pub findings: Vec<Finding>,
    /// The most turns of each loop of [`Program::loops`].
    pub turns: Vec<u32>,
    /// How often each barrier of [`Program::barriers`] was reached.
    pub reached: Vec<u64>,
    /// Floats were rounded, so that other drivers may compute something else.
    pub inexact: bool,
}

/// Runs a dispatch.
///
/// # Errors
/// If its bindings are not those of the kernel.
pub fn run(dispatch: &Dispatch, memory: &mut Memory, settings: &Settings) -> Result<Report> {
    let mut machine = Machine::new(dispatch, memory, settings)?;
    let [x, y, z] = dispatch.grid;
    let count = x * y * z;
    let mut groups: Vec<u32> = (0..count).collect();
    if let Order::Random(_) = settings.order {
        machine.random.shuffle(&mut groups);
    }
    for group in groups {
        if !machine.workgroup(group) {
            break;
        }
    }
    let Machine { findings, turns, reached, inexact, .. } = machine;
    Ok(Report { findings: findings.into_list(dispatch.program), turns, reached, inexact })
}

/// Invocations that run in lockstep.
#[derive(Debug)]
struct Crew {
    members: Mask,
    /// Those that take part in what runs now.
    mask: Mask,
    frames: Vec<Frame>,
    pc: u32,
    waits: bool,
}

/// Why a crew stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Barrier(u32),
    End,
    /// It would go on forever.
    Endless,
}

struct Machine<'a> {
    program: &'a Program,
    memory: &'a mut Memory,
    /// By their numbers in the program.
    bounds: Vec<Bound>,
    /// Whether accesses of a binding are watched: another invocation may write there.
    watched: Vec<bool>,
    settings: &'a Settings,
    grid: [u32; 3],
    /// Invocations of a workgroup; each register has so many words.
    width: usize,
    registers: Vec<u32>,
    shared: Shared,
    /// The subgroup of each invocation, and its number there; and the invocations of each subgroup by their numbers.
    subgroups: subgroups::Subgroups,
    random: Random,
    noise: Option<Noise>,
    /// Whose turn comes first.
    order: Vec<u16>,
    /// The active invocations, in that order.
    active: Vec<u16>,
    /// So many of the workgroup are active, and nobody else runs, that computing for all is fastest.
    dense: bool,
    group: u32,
    group_phase: u32,
    storage_phase: u32,
    first_phase: u32,
    dispatch_phase: u32,
    steps: u64,
    findings: Findings,
    turns: Vec<u32>,
    reached: Vec<u64>,
    inexact: bool,
}

impl<'a> Machine<'a> {
    fn new(
        dispatch: &Dispatch<'a>,
        memory: &'a mut Memory,
        settings: &'a Settings,
    ) -> Result<Self> {
        let program = dispatch.program;
        let width = program.invocations();
        if width == 0 || width > MOST {
            bail!("a workgroup of {width} invocations; at most {MOST} are supported");
        }
        if !(1..=128).contains(&settings.subgroup) {
            bail!("subgroups of {} invocations are not supported", settings.subgroup);
        }
        let mut bounds = Vec::new();
        for binding in &program.bindings {
            let Some(bound) = dispatch.bounds.get(binding.binding as usize) else {
                bail!("nothing is bound to binding {}", binding.binding);
            };
            let words = memory.buffers.get(bound.buffer).map_or(0, |buffer| buffer.words.len());
            if bound.offset % 4 != 0 || (bound.offset + bound.bytes).div_ceil(4) > words {
                bail!(
                    "binding {} goes beyond its buffer of {words} words: {bound:?}",
                    binding.binding
                );
            }
            bounds.push(*bound);
        }
        let written: Vec<usize> = program
            .bindings
            .iter()
            .zip(&bounds)
            .filter(|(binding, _)| binding.writable)
            .map(|(_, bound)| bound.buffer)
            .collect();
        written.iter().for_each(|&buffer| memory.remember(buffer));
        let watched = bounds.iter().map(|bound| written.contains(&bound.buffer)).collect();
        let seed = match settings.order {
            Order::Straight => 0,
            Order::Random(seed) => seed,
        };
        let mut registers = vec![0; program.registers as usize * width];
        for (bits, lanes) in program.constants.iter().zip(registers.chunks_mut(width)) {
            lanes.fill(*bits);
        }
        let dispatch_phase = memory.clock + 1;
        Ok(Machine {
            shared: Shared::new(program.workgroup_words, seed),
            subgroups: subgroups::Subgroups::new(width, settings.subgroup),
            random: Random::new(seed),
            noise: settings.noise.map(Noise),
            order: (0..width as u16).collect(),
            active: Vec::with_capacity(width),
            dense: false,
            group: 0,
            group_phase: 0,
            storage_phase: 0,
            first_phase: 0,
            dispatch_phase,
            steps: 0,
            findings: Findings::default(),
            turns: vec![0; program.loops.len()],
            reached: vec![0; program.barriers.len()],
            inexact: false,
            grid: dispatch.grid,
            program,
            memory,
            bounds,
            watched,
            settings,
            width,
            registers,
        })
    }

    /// Runs a workgroup; false if it would go on forever.
    fn workgroup(&mut self, group: u32) -> bool {
        self.group = group;
        self.steps = 0;
        self.first_phase = self.memory.tick();
        (self.group_phase, self.storage_phase) = (self.first_phase, self.first_phase);
        let mut crews = self.crews();
        self.begin();
        loop {
            let mut barriers = Vec::new();
            let mut at: Vec<usize> = (0..crews.len()).filter(|&i| crews[i].waits).collect();
            if at.is_empty() {
                return true;
            }
            if let Order::Random(_) = self.settings.order {
                self.random.shuffle(&mut at);
            }
            for i in at {
                match self.run_crew(&mut crews[i]) {
                    Stop::Barrier(number) => barriers.push((number, crews[i].mask)),
                    Stop::End => crews[i].waits = false,
                    Stop::Endless => return false,
                }
            }
            self.meet(&barriers);
        }
    }

    fn run_crew(&mut self, crew: &mut Crew) -> Stop {
        let alone = crew.members.len() == self.width;
        self.take_up(&crew.mask, alone);
        self.advance(crew, alone)
    }

    /// What the crews' barriers do.
    fn meet(&mut self, barriers: &[(u32, Mask)]) {
        let Some(&(first, _)) = barriers.first() else { return };
        let mut there = Mask::default();
        barriers.iter().for_each(|(_, mask)| there.add(mask));
        let one = barriers.iter().all(|(number, _)| *number == first);
        for &(number, mask) in barriers {
            self.reached[number as usize] += 1;
            if !one || there.len() != self.width {
                let point = self.program.barriers[number as usize];
                let invocation = mask.iter().next().unwrap_or(0) as u32;
                let seen = Seen { workgroup: self.group, invocation, at: 0 };
                self.findings.note(Found::Diverging, u32::MAX, point.line, seen);
            }
        }
        let point = |kind: fn(&crate::program::BarrierPoint) -> bool| {
            barriers.iter().any(|(number, _)| kind(&self.program.barriers[*number as usize]))
        };
        let (workgroup, storage) = (point(|p| p.workgroup), point(|p| p.storage));
        let phase = self.memory.tick();
        if workgroup {
            self.group_phase = phase;
        }
        if storage {
            self.storage_phase = phase;
        }
    }

    /// Splits the workgroup, and decides who is whose neighbour in a subgroup.
    fn crews(&mut self) -> Vec<Crew> {
        let mut crews = vec![Mask::first(self.width)];
        if let Order::Random(_) = self.settings.order {
            self.random.shuffle(&mut self.order);
            let linear = self.random.below(2) == 0;
            self.subgroups.assign(linear, &mut self.random);
            // Half of the workgroups run in lockstep. Subgroups that work together stay together.
            if self.random.below(2) == 0 {
                let size = if self.program.uses_subgroups { self.settings.subgroup } else { 1 };
                let size = size.max(1 << self.random.below(6));
                crews = if self.program.uses_subgroups {
                    self.subgroups
                        .members
                        .iter()
                        .map(|all| all.iter().map(|&l| l as usize).collect())
                        .collect()
                } else {
                    let lanes = self.order.chunks(size);
                    lanes.map(|lanes| lanes.iter().map(|&lane| lane as usize).collect()).collect()
                };
            }
        }
        let crew =
            |members: Mask| Crew { members, mask: members, frames: Vec::new(), pc: 0, waits: true };
        crews.into_iter().map(crew).collect()
    }

    /// Sets the registers that a kernel begins with.
    fn begin(&mut self) {
        let width = self.width;
        let private = self.program.private.start as usize * width;
        let private_end = self.program.private.end as usize * width;
        self.registers[private..private_end].fill(0);
        for &(register, bits) in &self.program.private_init {
            let at = register as usize * width;
            self.registers[at..at + width].fill(bits);
        }
        let [sx, sy, _] = self.program.workgroup_size;
        let [gx, gy, _] = self.grid;
        let workgroup = [self.group % gx, self.group / gx % gy, self.group / gx / gy];
        for &(given, register) in &self.program.given {
            for lane in 0..width {
                let i = lane as u32;
                let local = [i % sx, i / sx % sy, i / sx / sy];
                let value = match given {
                    Given::GlobalInvocationId(axis) => {
                        let axis = axis as usize;
                        workgroup[axis] * self.program.workgroup_size[axis] + local[axis]
                    }
                    Given::LocalInvocationId(axis) => local[axis as usize],
                    Given::LocalInvocationIndex => i,
                    Given::WorkgroupId(axis) => workgroup[axis as usize],
                    Given::NumWorkgroups(axis) => self.grid[axis as usize],
                    Given::SubgroupSize => self.settings.subgroup as u32,
                    Given::SubgroupId => self.subgroups.of[lane].0,
                    Given::SubgroupInvocationId => self.subgroups.of[lane].1,
                    Given::NumSubgroups => self.subgroups.members.len() as u32,
                };
                self.registers[register as usize * width + lane] = value;
            }
        }
    }

    /// Makes these the active invocations.
    fn take_up(&mut self, mask: &Mask, alone: bool) {
        self.active.clear();
        self.active.extend(self.order.iter().filter(|&&lane| mask.contains(lane as usize)));
        self.dense = alone && 4 * self.active.len() >= self.width;
    }

    fn seen(&self, lane: u16, at: u32) -> Seen {
        Seen { workgroup: self.group, invocation: lane.into(), at }
    }

    /// The next instruction. Those that only compute are done here; what moves masks is in `control`.
    fn compute(&mut self, pc: u32, op: Op) {
        match op {
            Op::Unary { op, kind, d, a } => self.unary(pc, op, kind, d, a),
            Op::Binary { op, kind, d, a, b } => self.binary(pc, op, kind, [d, a, b]),
            Op::Ternary { op, kind, d, a, b, c } => self.ternary(pc, op, kind, [d, a, b, c]),
            Op::InsertBits { d, a, b, c, e } => self.insert_bits(d, [a, b, c, e]),
            Op::Convert { from, to, d, a } => self.convert(from, to, d, a),
            Op::Copy { d, a } => self.map1(d, a, |x| x),
            Op::Set { d, a } => self.set(d, a),
            Op::Pick { d, first, index, variable, line } => {
                self.pick(d, first, index, variable, line)
            }
            Op::Put { first, index, a, variable, line, .. } => {
                self.put(first, index, a, variable, line)
            }
            Op::Written { written, index, variable, line } => {
                self.check_written(written, index, variable, line);
            }
            Op::Index { d, base, index, stride, bound } => {
                self.index(d, base, index, stride, bound)
            }
            Op::ArrayLength { d, bound } => {
                let length = self.length(bound);
                self.map1(d, d, |_| length);
            }
            Op::Load { d, count, kind, atomic, address } => {
                self.load(d, count, kind, atomic, address)
            }
            Op::Store { a, count, kind, atomic, address } => {
                self.store(a, count, kind, atomic, address)
            }
            Op::Atomic { fun, kind, d, a, address } => self.atomic(fun, kind, d, a, address),
            Op::Uniform { a, line } => self.check_uniform(a, line),
            Op::Gather { mode, d, a, index, line } => self.gather(mode, d, a, index, line),
            Op::Collective { op, how, kind, d, a, line } => {
                self.collective(op, how, kind, [d, a], line)
            }
            Op::Ballot { d, a, line } => self.ballot(d, a, line),
            Op::MatrixLoad { to, address, stride, by_rows } => {
                self.matrix_load(to, address, stride, by_rows);
            }
            Op::MatrixStore { from, address, stride, by_rows } => {
                self.matrix_store(from, address, stride, by_rows);
            }
            Op::MatrixMultiply { d, a, b, c, line } => self.matrix_multiply(pc, [d, a, b, c], line),
            other => unreachable!("{other:?} moves masks"),
        }
    }
}
