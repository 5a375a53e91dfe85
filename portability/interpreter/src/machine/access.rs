//! Reads and writes buffers and workgroup memory, and reports accesses that nothing orders.

use naga::AtomicFunction;

use super::Machine;
use crate::finding::Kind as Found;
use crate::layout::Kind;
use crate::mask::MOST;
use crate::memory::Bound;
use crate::program::{Address, OUTSIDE, Reg, Rmw, Root};
use crate::races::{Access, Now};

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) at: u32,
    pub(super) inside: bool,
}

impl Spot {
    /// The place so many units behind it.
    pub(super) fn behind(self, units: u32) -> Self {
        Spot { at: self.at + units, ..self }
    }
}

impl Machine<'_> {
    fn now(&self, phase: u32) -> Now {
        Now { phase, group: self.first_phase, dispatch: self.dispatch_phase }
    }

    /// Where an invocation's access begins. An index out of bounds is reported; a write then goes to the last element, as
    /// wgpu's checks let it, and is in nobody's way.
    pub(super) fn offset(&mut self, address: &Address, lane: u16, write: bool) -> Spot {
        let Some(register) = address.dynamic else {
            return Spot { at: address.constant, inside: true };
        };
        let dynamic = self.get(register, lane);
        let spot =
            Spot { at: address.constant + (dynamic & !OUTSIDE), inside: dynamic & OUTSIDE == 0 };
        if !spot.inside {
            let seen = self.seen(lane, spot.at);
            let buffer = matches!(address.root, Root::Buffer(_));
            let kind = if buffer && !write { Found::ReadBeyond } else { Found::OutOfBounds };
            self.findings.note(kind, address.variable, address.line, seen);
        }
        spot
    }

    /// The element of a buffer that answers a read beyond its end: always the same for the same place of the text.
    fn other_element(&self, bound: Bound, address: &Address, at: u32, kind: Kind) -> u32 {
        let count = (bound.bytes as u32 / kind.bytes()).max(1);
        let hash =
            (u64::from(at) << 32 | u64::from(address.line)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let element = (hash >> 33) as u32 % count;
        self.memory.read(bound, (element * kind.bytes()) as usize, kind.bytes())
    }

    fn note(&mut self, found: Option<Found>, address: &Address, who: u16, at: u32) {
        if let Some(kind) = found {
            let lane = if usize::from(who) < MOST { who } else { 0 };
            let seen = self.seen(lane, at);
            self.findings.note(kind, address.variable, address.line, seen);
        }
    }

    /// One word of workgroup memory.
    fn touch_shared(&mut self, address: &Address, at: u32, access: Access) {
        if at >= address.end {
            let seen = self.seen(access.who, at);
            self.findings.note(Found::OutOfBounds, address.variable, address.line, seen);
        }
        // No workgroup sees the memory of another.
        let now = Now { dispatch: self.first_phase, ..self.now(self.group_phase) };
        let Some(mark) = self.shared.marks.get_mut(at as usize) else { return };
        let unwritten = !access.write && mark.is_unwritten(now);
        let found = mark.access(now, access);
        let found = if unwritten { found.or(Some(Found::Unwritten)) } else { found };
        self.note(found, address, access.who, at);
    }

    /// A scalar of a buffer. Beyond the binding there is nothing.
    fn touch_buffer(
        &mut self,
        binding: u32,
        address: &Address,
        at: u32,
        kind: Kind,
        access: Access,
    ) {
        let bound = self.bounds[binding as usize];
        if at + kind.bytes() > bound.bytes as u32 {
            let seen = self.seen(access.who, at);
            self.findings.note(Found::OutOfBounds, address.variable, address.line, seen);
        }
        if !self.watched[binding as usize] {
            return;
        }
        let now = self.now(self.storage_phase);
        let halves = self.program.halves;
        let found = self.memory.note(bound, at as usize, kind.bytes(), halves, (now, access));
        self.note(found, address, access.who, at);
    }

    /// Reads a scalar for an invocation, or for a subgroup as a whole.
    pub(super) fn read(
        &mut self,
        address: &Address,
        Spot { at, inside }: Spot,
        kind: Kind,
        who: u16,
        atomic: bool,
    ) -> u32 {
        let access = Access { who, write: false, atomic };
        match address.root {
            Root::Workgroup => {
                if inside {
                    self.touch_shared(address, at, access);
                }
                self.shared.words.get(at as usize).copied().unwrap_or(0)
            }
            Root::Buffer(binding) => {
                let bound = self.bounds[binding as usize];
                if !inside {
                    return self.other_element(bound, address, at, kind);
                }
                self.touch_buffer(binding, address, at, kind, access);
                self.memory.read(bound, at as usize, kind.bytes())
            }
        }
    }

    pub(super) fn write(
        &mut self,
        address: &Address,
        Spot { at, inside }: Spot,
        kind: Kind,
        (who, atomic): (u16, bool),
        value: u32,
    ) {
        let access = Access { who, write: true, atomic };
        match address.root {
            Root::Workgroup => {
                if inside {
                    self.touch_shared(address, at, access);
                }
                if let Some(word) = self.shared.words.get_mut(at as usize) {
                    *word = value;
                }
            }
            Root::Buffer(binding) => {
                if inside {
                    self.touch_buffer(binding, address, at, kind, access);
                }
                let bound: Bound = self.bounds[binding as usize];
                self.memory.write(bound, at as usize, kind.bytes(), value);
            }
        }
    }

    /// What workgroup memory holds, if this workgroup has written it; nobody notices.
    pub(super) fn peek(&self, address: &Address, Spot { at, inside }: Spot) -> Option<u32> {
        let now = Now { dispatch: self.first_phase, ..self.now(self.group_phase) };
        let mark = self.shared.marks.get(at as usize)?;
        let known = inside && address.root == Root::Workgroup && !mark.is_unwritten(now);
        self.shared.words.get(at as usize).copied().filter(|_| known)
    }

    /// The step from one scalar to the next.
    pub(super) fn unit(address: &Address, kind: Kind) -> u32 {
        match address.root {
            Root::Workgroup => 1,
            Root::Buffer(_) => kind.bytes(),
        }
    }

    pub(super) fn load(&mut self, d: Reg, count: u32, kind: Kind, atomic: bool, address: Address) {
        let unit = Self::unit(&address, kind);
        if let (Root::Buffer(binding), None) = (address.root, address.dynamic) {
            if !self.watched[binding as usize] {
                return self.load_for_all(binding, d, count, kind, &address);
            }
        }
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let spot = self.offset(&address, lane, false);
            for k in 0..count {
                let value = self.read(&address, spot.behind(k * unit), kind, lane, atomic);
                self.put_word(d + k, lane, value);
            }
        }
    }

    /// What nobody writes and all read at one place.
    fn load_for_all(&mut self, binding: u32, d: Reg, count: u32, kind: Kind, address: &Address) {
        let Some(&first) = self.active.first() else { return };
        for k in 0..count {
            let spot = Spot { at: address.constant + k * kind.bytes(), inside: true };
            let value = self.read(address, spot, kind, first, false);
            debug_assert!(!self.watched[binding as usize]);
            self.map1(d + k, d + k, |_| value);
        }
    }

    pub(super) fn store(&mut self, a: Reg, count: u32, kind: Kind, atomic: bool, address: Address) {
        let unit = Self::unit(&address, kind);
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let spot = self.offset(&address, lane, true);
            for k in 0..count {
                let value = self.get(a + k, lane);
                self.write(&address, spot.behind(k * unit), kind, (lane, atomic), value);
            }
        }
    }

    pub(super) fn atomic(
        &mut self,
        fun: Rmw,
        kind: Kind,
        d: Option<Reg>,
        a: Reg,
        address: Address,
    ) {
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let spot = self.offset(&address, lane, true);
            let old = self.read(&address, spot, kind, lane, true);
            let value = self.get(a, lane);
            let (new, exchanged) = match fun {
                Rmw::Plain(fun) => (combined(fun, kind, old, value), None),
                Rmw::CompareExchange { compare } => {
                    let equal = old == self.get(compare, lane);
                    (if equal { value } else { old }, Some(equal))
                }
            };
            self.write(&address, spot, kind, (lane, true), new);
            if let Some(d) = d {
                self.put_word(d, lane, old);
                if let Some(exchanged) = exchanged {
                    self.put_word(d + 1, lane, u32::from(exchanged));
                }
            }
        }
    }

    pub(super) fn check_uniform(&mut self, a: Reg, line: u32) {
        let Some(&first) = self.active.first() else { return };
        let wanted = self.get(a, first);
        let other = self.active.iter().find(|&&lane| self.get(a, lane) != wanted);
        if let Some(&lane) = other {
            let seen = self.seen(lane, self.get(a, lane) & !OUTSIDE);
            self.findings.note(Found::NotUniform, u32::MAX, line, seen);
        }
    }
}

fn combined(fun: AtomicFunction, kind: Kind, old: u32, value: u32) -> u32 {
    let signed = kind == Kind::I32;
    match fun {
        AtomicFunction::Add => old.wrapping_add(value),
        AtomicFunction::Subtract => old.wrapping_sub(value),
        AtomicFunction::And => old & value,
        AtomicFunction::InclusiveOr => old | value,
        AtomicFunction::ExclusiveOr => old ^ value,
        AtomicFunction::Min if signed => (old as i32).min(value as i32) as u32,
        AtomicFunction::Max if signed => (old as i32).max(value as i32) as u32,
        AtomicFunction::Min => old.min(value),
        AtomicFunction::Max => old.max(value),
        AtomicFunction::Exchange { .. } => value,
    }
}
