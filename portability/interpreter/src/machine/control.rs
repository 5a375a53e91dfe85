//! Moves masks: the invocations that do not take part wait in frames until control flow comes to them.

use super::{Crew, Machine, Stop};
use crate::finding::Kind as Found;
use crate::mask::Mask;
use crate::program::Op;

/// Where invocations wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame {
    /// Those that take the other way, and those that have come out of the first.
    If { other: Mask, done: Mask },
    /// Those that have left the loop, and those that wait for its next turn.
    Loop { left: Mask, next: Mask, turns: u32 },
    /// Those that no case has taken yet, and those that are through.
    Switch { rest: Mask, done: Mask },
    /// Those that have returned.
    Call { returned: Mask },
}

impl Machine<'_> {
    /// Runs a crew until it stops.
    pub(super) fn advance(&mut self, crew: &mut Crew, alone: bool) -> Stop {
        let program = self.program;
        loop {
            let pc = crew.pc;
            let op = program.ops[pc as usize];
            crew.pc += 1;
            self.steps += 1 + self.active.len() as u64;
            if self.steps > self.settings.most_steps {
                self.note_endless(crew, 0);
                return Stop::Endless;
            }
            match op {
                Op::Barrier { number } => {
                    if !crew.mask.is_empty() {
                        return Stop::Barrier(number);
                    }
                }
                Op::End => return Stop::End,
                Op::Again { start, number } => {
                    if !self.again(crew, start, number) {
                        return Stop::Endless;
                    }
                }
                Op::If { .. }
                | Op::Else { .. }
                | Op::EndIf { .. }
                | Op::Loop
                | Op::Continuing { .. }
                | Op::BreakIf { .. }
                | Op::EndLoop { .. }
                | Op::Switch
                | Op::Case { .. }
                | Op::Default { .. }
                | Op::EndCase
                | Op::EndSwitch { .. }
                | Op::Call
                | Op::EndCall { .. }
                | Op::Break { .. }
                | Op::Continue { .. }
                | Op::Return { .. } => {
                    let before = crew.mask;
                    self.turn(crew, op);
                    if crew.mask != before {
                        self.take_up(&crew.mask, alone);
                    }
                }
                op => self.compute(pc, op),
            }
        }
    }

    /// The active invocations for which a register is true.
    fn chosen(&self, register: u32, wanted: impl Fn(u32) -> bool) -> Mask {
        let lanes = self.active.iter().filter(|&&lane| wanted(self.get(register, lane)));
        lanes.map(|&lane| lane as usize).collect()
    }

    fn turn(&mut self, crew: &mut Crew, op: Op) {
        // An instruction that leaves nobody names where the next ones wait.
        let mut nobody = None;
        match op {
            Op::If { condition, otherwise } => {
                let mut other = crew.mask;
                crew.mask = self.chosen(condition, |word| word != 0);
                other.remove(&crew.mask);
                crew.frames.push(Frame::If { other, done: Mask::default() });
                nobody = Some(otherwise);
            }
            Op::Else { end } => {
                if let Some(Frame::If { other, done }) = crew.frames.last_mut() {
                    done.add(&crew.mask);
                    crew.mask = *other;
                }
                nobody = Some(end);
            }
            Op::EndIf { exit } => {
                if let Some(Frame::If { done, .. }) = crew.frames.pop() {
                    crew.mask.add(&done);
                }
                nobody = Some(exit);
            }
            Op::Loop => {
                let none = Mask::default();
                crew.frames.push(Frame::Loop { left: none, next: none, turns: 0 });
            }
            Op::Continuing { end } => {
                if let Some(Frame::Loop { next, .. }) = crew.frames.last_mut() {
                    crew.mask.add(&std::mem::take(next));
                }
                nobody = Some(end);
            }
            Op::BreakIf { condition } => {
                let leaving = self.chosen(condition, |word| word != 0);
                if let Some(Frame::Loop { left, .. }) = crew.frames.last_mut() {
                    left.add(&leaving);
                }
                crew.mask.remove(&leaving);
            }
            Op::EndLoop { exit } => {
                if let Some(Frame::Loop { left, .. }) = crew.frames.pop() {
                    crew.mask = left;
                }
                nobody = Some(exit);
            }
            Op::Switch => {
                crew.frames.push(Frame::Switch { rest: crew.mask, done: Mask::default() });
            }
            Op::Case { selector, first, count, otherwise } => {
                let values = &self.program.cases[first as usize..(first + count) as usize];
                if let Some(Frame::Switch { rest, .. }) = crew.frames.last_mut() {
                    // Between cases nobody is active.
                    let lanes = rest.iter();
                    let own = |lane: &usize| values.contains(&self.get(selector, *lane as u16));
                    crew.mask = lanes.filter(own).collect();
                    rest.remove(&crew.mask);
                }
                nobody = Some(otherwise);
            }
            Op::Default { otherwise } => {
                if let Some(Frame::Switch { rest, .. }) = crew.frames.last_mut() {
                    crew.mask = std::mem::take(rest);
                }
                nobody = Some(otherwise);
            }
            Op::EndCase => {
                if let Some(Frame::Switch { done, .. }) = crew.frames.last_mut() {
                    done.add(&std::mem::take(&mut crew.mask));
                }
            }
            Op::EndSwitch { exit } => {
                if let Some(Frame::Switch { done, .. }) = crew.frames.pop() {
                    crew.mask = done;
                }
                nobody = Some(exit);
            }
            Op::Call => crew.frames.push(Frame::Call { returned: Mask::default() }),
            Op::EndCall { exit } => {
                if let Some(Frame::Call { returned }) = crew.frames.pop() {
                    crew.mask.add(&returned);
                }
                nobody = Some(exit);
            }
            Op::Break { depth, exit }
            | Op::Continue { depth, exit }
            | Op::Return { depth, exit } => {
                let mask = std::mem::take(&mut crew.mask);
                let at = crew.frames.len() - 1 - depth as usize;
                match (&mut crew.frames[at], op) {
                    (Frame::Loop { next, .. }, Op::Continue { .. }) => next.add(&mask),
                    (Frame::Loop { left: to, .. }, _)
                    | (Frame::Switch { done: to, .. }, _)
                    | (Frame::Call { returned: to }, _)
                    | (Frame::If { done: to, .. }, _) => to.add(&mask),
                }
                nobody = Some(exit);
            }
            other => unreachable!("{other:?} moves no masks"),
        }
        if let (true, Some(pc)) = (crew.mask.is_empty(), nobody) {
            crew.pc = pc;
        }
    }

    /// Another turn of a loop, if anybody is left for it; false if there have been too many.
    fn again(&mut self, crew: &mut Crew, start: u32, number: u32) -> bool {
        if crew.mask.is_empty() {
            return true;
        }
        let Some(Frame::Loop { turns, .. }) = crew.frames.last_mut() else { return true };
        *turns += 1;
        let turns = *turns;
        let most = &mut self.turns[number as usize];
        *most = turns.max(*most);
        crew.pc = start;
        if turns > self.settings.most_turns {
            self.note_endless(crew, self.program.loops[number as usize]);
            return false;
        }
        true
    }

    fn note_endless(&mut self, crew: &Crew, line: u32) {
        let lane = crew.mask.iter().next().unwrap_or(0) as u16;
        let seen = self.seen(lane, 0);
        self.findings.note(Found::Endless, u32::MAX, line, seen);
    }
}
