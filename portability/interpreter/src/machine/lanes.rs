//! Computes, for all active invocations.

use std::cell::Cell;

use naga::MathFunction as F;

use super::Machine;
use crate::finding::Kind as Found;
use crate::layout::Kind;
use crate::numbers;
use crate::program::{Binary, Bound, OUTSIDE, Reg, Ternary, Unary};

/// The words of a register.
fn lanes(registers: &[Cell<u32>], register: Reg, width: usize) -> &[Cell<u32>] {
    &registers[register as usize * width..][..width]
}

impl Machine<'_> {
    pub(super) fn map1(&mut self, d: Reg, a: Reg, f: impl Fn(u32) -> u32) {
        let registers = Cell::from_mut(&mut self.registers[..]).as_slice_of_cells();
        let [d, a] = [d, a].map(|register| lanes(registers, register, self.width));
        if self.dense {
            d.iter().zip(a).for_each(|(d, a)| d.set(f(a.get())));
        } else {
            for &lane in &self.active {
                d[lane as usize].set(f(a[lane as usize].get()));
            }
        }
    }

    pub(super) fn map2(&mut self, [d, a, b]: [Reg; 3], f: impl Fn(u32, u32) -> u32) {
        let registers = Cell::from_mut(&mut self.registers[..]).as_slice_of_cells();
        let [d, a, b] = [d, a, b].map(|register| lanes(registers, register, self.width));
        if self.dense {
            for ((d, a), b) in d.iter().zip(a).zip(b) {
                d.set(f(a.get(), b.get()));
            }
        } else {
            for &lane in &self.active {
                let lane = lane as usize;
                d[lane].set(f(a[lane].get(), b[lane].get()));
            }
        }
    }

    pub(super) fn map3(&mut self, [d, a, b, c]: [Reg; 4], f: impl Fn(u32, u32, u32) -> u32) {
        let registers = Cell::from_mut(&mut self.registers[..]).as_slice_of_cells();
        let [d, a, b, c] = [d, a, b, c].map(|register| lanes(registers, register, self.width));
        if self.dense {
            for (((d, a), b), c) in d.iter().zip(a).zip(b).zip(c) {
                d.set(f(a.get(), b.get(), c.get()));
            }
        } else {
            for &lane in &self.active {
                let lane = lane as usize;
                d[lane].set(f(a[lane].get(), b[lane].get(), c[lane].get()));
            }
        }
    }

    pub(super) fn get(&self, register: Reg, lane: u16) -> u32 {
        self.registers[register as usize * self.width + lane as usize]
    }

    pub(super) fn put_word(&mut self, register: Reg, lane: u16, value: u32) {
        self.registers[register as usize * self.width + lane as usize] = value;
    }

    pub(super) fn unary(&mut self, pc: u32, op: Unary, kind: Kind, d: Reg, a: Reg) {
        if let Unary::Math(_) = op {
            self.inexact |= matches!(kind, Kind::F32 | Kind::F16);
        }
        match self.noise {
            Some(noise) => self.map1(d, a, |x| noise.unary(pc, op, kind, x)),
            None => self.map1(d, a, |x| numbers::unary(op, kind, x)),
        }
    }

    pub(super) fn binary(&mut self, pc: u32, op: Binary, kind: Kind, registers: [Reg; 3]) {
        let float = matches!(kind, Kind::F32 | Kind::F16);
        self.inexact |= float && is_arithmetic(op);
        if let (Some(noise), true) = (self.noise, float) {
            return self.map2(registers, |a, b| noise.binary(pc, op, kind, a, b));
        }
        // One loop for each of those that kernels mostly consist of.
        macro_rules! loops {
            ($($op:pat, $kind:ident => $known:expr;)*) => {
                match (op, kind) {
                    $(($op, Kind::$kind) => {
                        self.map2(registers, |a, b| numbers::binary($known, Kind::$kind, a, b))
                    })*
                    _ => self.map2(registers, |a, b| numbers::binary(op, kind, a, b)),
                }
            };
        }
        loops! {
            Binary::Add, F32 => Binary::Add;
            Binary::Subtract, F32 => Binary::Subtract;
            Binary::Multiply, F32 => Binary::Multiply;
            Binary::Divide, F32 => Binary::Divide;
            Binary::Less, F32 => Binary::Less;
            Binary::Greater, F32 => Binary::Greater;
            Binary::Math(F::Max), F32 => Binary::Math(F::Max);
            Binary::Math(F::Min), F32 => Binary::Math(F::Min);
            Binary::Add, U32 => Binary::Add;
            Binary::Subtract, U32 => Binary::Subtract;
            Binary::Multiply, U32 => Binary::Multiply;
            Binary::Divide, U32 => Binary::Divide;
            Binary::Modulo, U32 => Binary::Modulo;
            Binary::And, U32 => Binary::And;
            Binary::Or, U32 => Binary::Or;
            Binary::Xor, U32 => Binary::Xor;
            Binary::ShiftLeft, U32 => Binary::ShiftLeft;
            Binary::ShiftRight, U32 => Binary::ShiftRight;
            Binary::Equal, U32 => Binary::Equal;
            Binary::Less, U32 => Binary::Less;
            Binary::LessEqual, U32 => Binary::LessEqual;
            Binary::Greater, U32 => Binary::Greater;
            Binary::GreaterEqual, U32 => Binary::GreaterEqual;
            Binary::Math(F::Max), U32 => Binary::Math(F::Max);
            Binary::Math(F::Min), U32 => Binary::Math(F::Min);
            Binary::Add, I32 => Binary::Add;
            Binary::Multiply, I32 => Binary::Multiply;
            Binary::Less, I32 => Binary::Less;
            Binary::And, Bool => Binary::And;
            Binary::Or, Bool => Binary::Or;
        }
    }

    pub(super) fn ternary(&mut self, pc: u32, op: Ternary, kind: Kind, registers: [Reg; 4]) {
        let float = matches!(kind, Kind::F32 | Kind::F16);
        self.inexact |= float && !matches!(op, Ternary::Select | Ternary::Math(F::Clamp));
        match (op, kind) {
            (Ternary::Select, _) => self.map3(registers, |a, b, c| if a != 0 { b } else { c }),
            _ if float && self.noise.is_some() => {
                let Some(noise) = self.noise else { return };
                self.map3(registers, |a, b, c| noise.ternary(pc, op, kind, [a, b, c]));
            }
            (Ternary::Math(F::Fma), Kind::F32) => {
                let fma = Ternary::Math(F::Fma);
                self.map3(registers, |a, b, c| numbers::ternary(fma, Kind::F32, a, b, c));
            }
            _ => self.map3(registers, |a, b, c| numbers::ternary(op, kind, a, b, c)),
        }
    }

    pub(super) fn insert_bits(&mut self, d: Reg, [a, b, c, e]: [Reg; 4]) {
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let [a, b, c, e] = [a, b, c, e].map(|register| self.get(register, lane));
            self.put_word(d, lane, numbers::insert_bits(a, b, c, e));
        }
    }

    pub(super) fn convert(&mut self, from: Kind, to: Kind, d: Reg, a: Reg) {
        self.inexact |= matches!(to, Kind::F32 | Kind::F16) && from != Kind::Bool;
        match (from, to) {
            (Kind::U32, Kind::F32) => self.map1(d, a, |x| (x as f32).to_bits()),
            (Kind::I32 | Kind::U32, Kind::I32 | Kind::U32) => self.map1(d, a, |x| x),
            _ => self.map1(d, a, |x| numbers::convert(from, to, x)),
        }
    }

    pub(super) fn set(&mut self, d: Reg, a: Reg) {
        if self.active.len() == self.width {
            let (from, to) = (a as usize * self.width, d as usize * self.width);
            self.registers.copy_within(from..from + self.width, to);
            return;
        }
        for &lane in &self.active {
            let (from, to) = (a as usize * self.width, d as usize * self.width);
            self.registers[to + lane as usize] = self.registers[from + lane as usize];
        }
    }

    /// An offset without the mark of an index out of bounds, which is reported.
    fn inside(&mut self, offset: u32, lane: u16, variable: u32, line: u32) -> u32 {
        if offset & OUTSIDE != 0 {
            let seen = self.seen(lane, offset & !OUTSIDE);
            self.findings.note(Found::OutOfBounds, variable, line, seen);
        }
        offset & !OUTSIDE
    }

    pub(super) fn pick(&mut self, d: Reg, first: Reg, index: Reg, variable: u32, line: u32) {
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let at = self.inside(self.get(index, lane), lane, variable, line);
            let value = self.get(first + at, lane);
            self.put_word(d, lane, value);
        }
    }

    pub(super) fn put(&mut self, first: Reg, index: Reg, a: Reg, variable: u32, line: u32) {
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let at = self.inside(self.get(index, lane), lane, variable, line);
            let value = self.get(a, lane);
            self.put_word(first + at, lane, value);
        }
    }

    pub(super) fn check_written(
        &mut self,
        written: Reg,
        index: Option<Reg>,
        variable: u32,
        line: u32,
    ) {
        for i in 0..self.active.len() {
            let lane = self.active[i];
            let at = index.map_or(0, |index| self.get(index, lane) & !OUTSIDE);
            if self.get(written + at, lane) == 0 {
                let seen = self.seen(lane, at);
                self.findings.note(Found::UnwrittenPrivate, variable, line, seen);
            }
        }
    }

    /// How many elements there are.
    pub(super) fn length(&self, bound: Bound) -> u32 {
        match bound {
            Bound::Fixed(count) => count,
            Bound::Runtime { binding, offset, stride } => {
                (self.bounds[binding as usize].bytes as u32).saturating_sub(offset) / stride
            }
        }
    }

    pub(super) fn index(
        &mut self,
        d: Reg,
        base: Option<Reg>,
        index: Reg,
        stride: u32,
        bound: Bound,
    ) {
        let length = self.length(bound);
        let last = length.saturating_sub(1);
        let place = move |index: u32| {
            let outside = if index < length { 0 } else { OUTSIDE };
            (index.min(last) * stride) | outside
        };
        match base {
            None => self.map1(d, index, place),
            Some(base) => self.map2([d, base, index], move |base, index| {
                let own = place(index);
                ((base & !OUTSIDE) + (own & !OUTSIDE)) | ((base | own) & OUTSIDE)
            }),
        }
    }
}

/// The operations that may round.
fn is_arithmetic(op: Binary) -> bool {
    matches!(
        op,
        Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Modulo
            | Binary::Math(F::Pow | F::Atan2 | F::Ldexp)
    )
}
