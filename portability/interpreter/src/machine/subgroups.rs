//! What the invocations of a subgroup do together.
//!
//! WGSL does not say which invocations of a workgroup form a subgroup, nor how they are numbered there, so both may be
//! drawn at random. The last subgroup may be a part of one.

use naga::{CollectiveOperation, SubgroupOperation};

use super::Machine;
use crate::finding::Kind as Found;
use crate::layout::Kind;
use crate::mask::Mask;
use crate::numbers;
use crate::program::{Binary, Gather, Reg};
use crate::random::Random;

pub(super) struct Subgroups {
    size: usize,
    /// Of each invocation its subgroup, and its number there.
    pub(super) of: Vec<(u32, u32)>,
    /// The invocations of each subgroup, by their numbers.
    pub(super) members: Vec<Vec<u16>>,
}

impl Subgroups {
    pub(super) fn new(width: usize, size: usize) -> Self {
        let mut subgroups = Subgroups { size, of: vec![(0, 0); width], members: Vec::new() };
        subgroups.assign(true, &mut Random::new(0));
        subgroups
    }

    /// Puts invocations into subgroups, in the order of their indices or in any.
    pub(super) fn assign(&mut self, linear: bool, random: &mut Random) {
        let mut lanes: Vec<u16> = (0..self.of.len() as u16).collect();
        if !linear {
            random.shuffle(&mut lanes);
        }
        self.members = lanes.chunks(self.size).map(<[u16]>::to_vec).collect();
        for (subgroup, members) in (0..).zip(&self.members) {
            for (number, &lane) in (0..).zip(members) {
                self.of[lane as usize] = (subgroup, number);
            }
        }
    }
}

impl Machine<'_> {
    /// The subgroups of the active invocations, each with those that take part. One in which only some do is reported.
    fn parties(&mut self, line: u32) -> Vec<(u32, Vec<u16>)> {
        let here: Mask = self.active.iter().map(|&lane| lane as usize).collect();
        let mut parties = Vec::new();
        for subgroup in 0..self.subgroups.members.len() {
            let members = &self.subgroups.members[subgroup];
            let own: Vec<u16> =
                members.iter().copied().filter(|&lane| here.contains(lane as usize)).collect();
            if own.is_empty() {
                continue;
            }
            if own.len() < members.len() {
                let seen = self.seen(own[0], 0);
                self.findings.note(Found::DivergingSubgroup, u32::MAX, line, seen);
            }
            parties.push((subgroup as u32, own));
        }
        parties
    }

    pub(super) fn gather(&mut self, mode: Gather, d: Reg, a: Reg, index: Option<Reg>, line: u32) {
        for (subgroup, party) in self.parties(line) {
            let values: Vec<(u16, u32)> = party
                .iter()
                .map(|&lane| {
                    let from = self.source(mode, lane, index, &party);
                    let members = &self.subgroups.members[subgroup as usize];
                    match members.get(from as usize).filter(|from| party.contains(from)) {
                        Some(&from) => (lane, self.get(a, from)),
                        None => {
                            let seen = self.seen(lane, from);
                            self.findings.note(Found::OutsideSubgroup, u32::MAX, line, seen);
                            (lane, 0)
                        }
                    }
                })
                .collect();
            values.into_iter().for_each(|(lane, value)| self.put_word(d, lane, value));
        }
    }

    /// The number of the invocation whose value an invocation gets.
    fn source(&self, mode: Gather, lane: u16, index: Option<Reg>, party: &[u16]) -> u32 {
        let number = |lane: u16| self.subgroups.of[lane as usize].1;
        let own = number(lane);
        let index = index.map_or(0, |index| self.get(index, lane));
        match mode {
            Gather::First => number(party[0]),
            Gather::From => index,
            Gather::Down => own.wrapping_add(index),
            Gather::Up => own.wrapping_sub(index),
            Gather::Xor => own ^ index,
            Gather::QuadFrom => own / 4 * 4 + index,
            Gather::QuadXor(bits) => own ^ bits,
        }
    }

    pub(super) fn collective(
        &mut self,
        op: SubgroupOperation,
        how: CollectiveOperation,
        kind: Kind,
        [d, a]: [Reg; 2],
        line: u32,
    ) {
        let fold = match op {
            SubgroupOperation::All | SubgroupOperation::And => Binary::And,
            SubgroupOperation::Any | SubgroupOperation::Or => Binary::Or,
            SubgroupOperation::Xor => Binary::Xor,
            SubgroupOperation::Add => Binary::Add,
            SubgroupOperation::Mul => Binary::Multiply,
            SubgroupOperation::Min => Binary::Math(naga::MathFunction::Min),
            SubgroupOperation::Max => Binary::Math(naga::MathFunction::Max),
        };
        let neutral = match (op, kind) {
            (SubgroupOperation::Mul, Kind::F32 | Kind::F16) => numbers::narrow(kind, 1.0),
            (SubgroupOperation::Mul, _) => 1,
            _ => 0,
        };
        self.inexact |= matches!(kind, Kind::F32 | Kind::F16);
        for (_, party) in self.parties(line) {
            let values: Vec<u32> = party.iter().map(|&lane| self.get(a, lane)).collect();
            let sum = |values: &[u32]| {
                values
                    .iter()
                    .copied()
                    .reduce(|a, b| numbers::binary(fold, kind, a, b))
                    .unwrap_or(neutral)
            };
            for (i, &lane) in party.iter().enumerate() {
                let value = match how {
                    CollectiveOperation::Reduce => sum(&values),
                    CollectiveOperation::InclusiveScan => sum(&values[..=i]),
                    CollectiveOperation::ExclusiveScan => sum(&values[..i]),
                };
                self.put_word(d, lane, value);
            }
        }
    }

    pub(super) fn ballot(&mut self, d: Reg, a: Option<Reg>, line: u32) {
        for (_, party) in self.parties(line) {
            let mut bits = [0u32; 4];
            for &lane in &party {
                if a.is_none_or(|a| self.get(a, lane) != 0) {
                    let number = self.subgroups.of[lane as usize].1 as usize;
                    bits[number / 32] |= 1 << (number % 32);
                }
            }
            for &lane in &party {
                (d..).zip(bits).for_each(|(d, bits)| self.put_word(d, lane, bits));
            }
        }
    }

    /// The subgroups that are here, for what each does as a whole: the invocation that keeps what it holds together, who it
    /// is in reports of races, and all that take part.
    pub(super) fn whole_subgroups(&mut self, line: u32) -> Vec<(u16, u16, Vec<u16>)> {
        let who = |subgroup: u32| crate::mask::MOST as u16 + subgroup as u16;
        let parties = self.parties(line);
        let keeper = |subgroup: u32| self.subgroups.members[subgroup as usize][0];
        parties.into_iter().map(|(s, party)| (keeper(s), who(s), party)).collect()
    }
}
