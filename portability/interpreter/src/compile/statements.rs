//! Control flow and what has an effect.

use anyhow::{Result, bail};
use naga::{
    AtomicFunction, Block, Expression, GatherMode, Handle, Span, Statement, SwitchCase, SwitchValue,
};

use super::{Compiler, Enclosing, Frame, Mutation, Value};
use crate::program::{Gather, Op, Pc, Reg, Rmw};

impl<'a> Compiler<'a> {
    /// Writes out a block. The instruction that follows is its end.
    pub(super) fn block(&mut self, frame: &mut Frame<'a>, block: &'a Block) -> Result<()> {
        self.exits.push(Vec::new());
        for (statement, span) in block.span_iter() {
            self.statement(frame, statement, *span)?;
        }
        let end = self.pc();
        for at in self.exits.pop().unwrap_or_default() {
            self.program.ops[at].jump_to(end);
        }
        Ok(())
    }

    /// Emits an instruction that goes to the end of its block if no invocation is left.
    pub(super) fn emit_exit(&mut self, op: Op) {
        let at = self.program.ops.len();
        self.emit(op);
        match self.exits.last_mut() {
            Some(exits) => exits.push(at),
            // Behind the entry point stands the end.
            None => self.program.ops[at].jump_to(at as Pc + 1),
        }
    }

    /// Emits an instruction whose goal is not known yet.
    fn emit_jump(&mut self, op: Op) -> usize {
        self.emit(op);
        self.program.ops.len() - 1
    }

    fn land(&mut self, at: usize) {
        let pc = self.pc();
        self.program.ops[at].jump_to(pc);
    }

    fn statement(
        &mut self,
        frame: &mut Frame<'a>,
        statement: &'a Statement,
        span: Span,
    ) -> Result<()> {
        let line = self.line(span);
        match statement {
            Statement::Emit(range) => self.emit_range(frame, range.clone())?,
            // Breaks inside of it go to what encloses it.
            Statement::Block(block) => {
                for (statement, span) in block.span_iter() {
                    self.statement(frame, statement, *span)?;
                }
            }
            Statement::If { condition, accept, reject } => {
                self.branch(frame, *condition, accept, reject)?;
            }
            Statement::Switch { selector, cases } => self.switch(frame, *selector, cases)?,
            Statement::Loop { body, continuing, break_if } => {
                let number = self.loops[&(statement as *const Statement)];
                self.repeat(frame, body, continuing, *break_if, number)?;
            }
            Statement::Break => {
                let depth = self.depth(&[Enclosing::Loop, Enclosing::Switch])?;
                self.emit_exit(Op::Break { depth, exit: 0 });
            }
            Statement::Continue => {
                let depth = self.depth(&[Enclosing::Loop])?;
                self.emit_exit(Op::Continue { depth, exit: 0 });
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let value = self.scalars(frame, *value)?;
                    for (&d, a) in frame.result.clone().iter().zip(value) {
                        self.emit(Op::Set { d, a });
                    }
                }
                let depth = self.frames.len() as u32 - frame.depth;
                self.emit_exit(Op::Return { depth, exit: 0 });
            }
            Statement::ControlBarrier(kinds) => {
                let known = naga::Barrier::WORK_GROUP | naga::Barrier::STORAGE;
                if !known.contains(*kinds) {
                    bail!("line {line}: barriers of kind {kinds:?} are not supported");
                }
                self.barrier(statement);
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let (place, ty) = (self.place(frame, *pointer)?, self.type_of(frame, *pointer));
                self.barrier(statement);
                if let Some(a) = place.dynamic {
                    self.emit(Op::Uniform { a, line });
                }
                let value = self.load(place, ty, line)?;
                frame.values.insert(*result, Value::Scalars(value));
                self.barrier(statement);
            }
            Statement::Store { pointer, value } => {
                let (place, ty) = (self.place(frame, *pointer)?, self.type_of(frame, *pointer));
                let value = self.scalars(frame, *value)?;
                self.store(place, ty, &value, line)?;
            }
            Statement::Atomic { pointer, fun, value, result } => {
                self.atomic(frame, *pointer, *fun, *value, *result, line)?;
            }
            Statement::Call { function, arguments, result } => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.value(frame, *argument)?);
                }
                let value = self.call_by_handle(*function, values)?;
                if let Some(result) = result {
                    frame.values.insert(*result, Value::Scalars(value));
                }
            }
            Statement::CooperativeStore { target, data } => {
                let (address, _) = self.address_of(frame, data.pointer, line)?;
                let stride = self.scalar(frame, data.stride)?;
                let from = self.matrix(frame, *target)?;
                self.emit(Op::MatrixStore { from, address, stride, by_rows: data.row_major });
            }
            Statement::SubgroupGather { mode, argument, result } => {
                self.gather(frame, *mode, *argument, *result, line)?;
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                self.program.uses_subgroups = true;
                let kind = self.kind_of(frame, *argument)?;
                let values = self.scalars(frame, *argument)?;
                let (op, how) = (*op, *collective_op);
                let collect = |a: Reg| {
                    let d = self.fresh(1);
                    self.emit(Op::Collective { op, how, kind, d, a, line });
                    d
                };
                let values = values.into_iter().map(collect).collect();
                frame.values.insert(*result, Value::Scalars(values));
            }
            Statement::SubgroupBallot { result, predicate } => {
                self.program.uses_subgroups = true;
                let a = predicate.map(|predicate| self.scalar(frame, predicate)).transpose()?;
                let d = self.fresh(4);
                self.emit(Op::Ballot { d, a, line });
                frame.values.insert(*result, Value::Scalars((d..d + 4).collect()));
            }
            other => bail!("line {line}: the statement {other:?} is not supported"),
        }
        Ok(())
    }

    fn barrier(&mut self, statement: &Statement) {
        let number = self.barriers[&(statement as *const Statement)];
        if self.mutation != Mutation::WithoutBarrier(number as usize) {
            self.emit(Op::Barrier { number });
        }
    }

    /// How many frames lie above the innermost of these kinds, within the function.
    fn depth(&self, kinds: &[Enclosing]) -> Result<u32> {
        let own = self.frames.iter().rev().take_while(|frame| **frame != Enclosing::Call);
        match own.into_iter().position(|frame| kinds.contains(frame)) {
            Some(depth) => Ok(depth as u32),
            None => bail!("a break or continue outside of {kinds:?}"),
        }
    }

    fn branch(
        &mut self,
        frame: &mut Frame<'a>,
        condition: Handle<Expression>,
        accept: &'a Block,
        reject: &'a Block,
    ) -> Result<()> {
        let condition = self.scalar(frame, condition)?;
        let begin = self.emit_jump(Op::If { condition, otherwise: 0 });
        self.frames.push(Enclosing::If);
        self.block(frame, accept)?;
        self.land(begin);
        let middle = self.emit_jump(Op::Else { end: 0 });
        self.block(frame, reject)?;
        self.land(middle);
        self.frames.pop();
        self.emit_exit(Op::EndIf { exit: 0 });
        Ok(())
    }

    fn repeat(
        &mut self,
        frame: &mut Frame<'a>,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
        number: u32,
    ) -> Result<()> {
        self.emit(Op::Loop);
        self.frames.push(Enclosing::Loop);
        let start = self.pc();
        self.block(frame, body)?;
        let middle = self.emit_jump(Op::Continuing { end: 0 });
        self.block(frame, continuing)?;
        if let Some(condition) = break_if {
            let condition = self.scalar(frame, condition)?;
            self.emit(Op::BreakIf { condition });
        }
        self.emit(Op::Again { start, number });
        self.land(middle);
        self.frames.pop();
        self.emit_exit(Op::EndLoop { exit: 0 });
        Ok(())
    }

    fn switch(
        &mut self,
        frame: &mut Frame<'a>,
        selector: Handle<Expression>,
        cases: &'a [SwitchCase],
    ) -> Result<()> {
        let selector = self.scalar(frame, selector)?;
        self.emit(Op::Switch);
        self.frames.push(Enclosing::Switch);
        // Selectors of one body are cases that fall through to it with nothing in them. The default comes last.
        let mut groups: Vec<(Vec<u32>, bool, &'a Block)> = Vec::new();
        let (mut values, mut default) = (Vec::new(), false);
        for case in cases {
            match case.value {
                SwitchValue::I32(value) => values.push(value as u32),
                SwitchValue::U32(value) => values.push(value),
                SwitchValue::Default => default = true,
            }
            if !case.fall_through {
                groups.push((
                    std::mem::take(&mut values),
                    std::mem::take(&mut default),
                    &case.body,
                ));
            } else if !case.body.is_empty() {
                bail!("cases that fall through are not supported");
            }
        }
        let (last, first): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.1);
        for (values, default, body) in first.into_iter().chain(last) {
            let (first, count) = (self.program.cases.len() as u32, values.len() as u32);
            self.program.cases.extend(&values);
            let begin = self.emit_jump(match default {
                true => Op::Default { otherwise: 0 },
                false => Op::Case { selector, first, count, otherwise: 0 },
            });
            self.block(frame, body)?;
            self.land(begin);
            self.emit(Op::EndCase);
        }
        self.frames.pop();
        self.emit_exit(Op::EndSwitch { exit: 0 });
        Ok(())
    }

    fn atomic(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
        fun: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
        line: u32,
    ) -> Result<()> {
        let (address, kind) = self.address_of(frame, pointer, line)?;
        let a = self.scalar(frame, value)?;
        let fun = match fun {
            AtomicFunction::Exchange { compare: Some(compare) } => {
                Rmw::CompareExchange { compare: self.scalar(frame, compare)? }
            }
            fun => Rmw::Plain(fun),
        };
        let count = if matches!(fun, Rmw::CompareExchange { .. }) { 2 } else { 1 };
        let first = self.fresh(count);
        self.emit(Op::Atomic { fun, kind, d: result.map(|_| first), a, address });
        if let Some(result) = result {
            frame.values.insert(result, Value::Scalars((first..first + count).collect()));
        }
        Ok(())
    }

    fn gather(
        &mut self,
        frame: &mut Frame<'a>,
        mode: GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
        line: u32,
    ) -> Result<()> {
        self.program.uses_subgroups = true;
        let (mode, index) = match mode {
            GatherMode::BroadcastFirst => (Gather::First, None),
            GatherMode::Broadcast(index) | GatherMode::Shuffle(index) => {
                (Gather::From, Some(index))
            }
            GatherMode::ShuffleDown(index) => (Gather::Down, Some(index)),
            GatherMode::ShuffleUp(index) => (Gather::Up, Some(index)),
            GatherMode::ShuffleXor(index) => (Gather::Xor, Some(index)),
            GatherMode::QuadBroadcast(index) => (Gather::QuadFrom, Some(index)),
            GatherMode::QuadSwap(direction) => (Gather::QuadXor(direction as u32 + 1), None),
        };
        let index = index.map(|index| self.scalar(frame, index)).transpose()?;
        let values = self.scalars(frame, argument)?;
        let gather = |a: Reg| {
            let d = self.fresh(1);
            self.emit(Op::Gather { mode, d, a, index, line });
            d
        };
        let values = values.into_iter().map(gather).collect();
        frame.values.insert(result, Value::Scalars(values));
        Ok(())
    }
}
