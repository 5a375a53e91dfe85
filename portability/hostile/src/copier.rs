//! Copies a module's functions into another module, statement by statement, and lets `rules` put other expressions in
//! place of some. Where a compiler would see through calls, it copies what is called into the caller.

use naga::{
    Block, Expression, Function, GatherMode, Handle, LocalVariable, Module, Statement, SwitchCase,
};

use crate::builder::Builder;
use crate::error::{Error, Result};
use crate::maps::Maps;
use crate::rules::Rules;
use crate::subgroups::Exchange;

/// What a function is copied from.
pub(crate) struct Source<'a> {
    pub(crate) module: &'a Module,
    pub(crate) maps: &'a Maps,
    /// What stands in place of subgroup operations, if they are not the adapter's.
    pub(crate) exchange: Option<Exchange<'a>>,
}

/// One function, or one call of it that is copied into its caller.
struct Frame<'a> {
    function: &'a Function,
    values: Vec<Option<Handle<Expression>>>,
    /// What it was called with, where it is copied into its caller.
    arguments: Option<Vec<Handle<Expression>>>,
    locals: Vec<Handle<LocalVariable>>,
}

pub(crate) struct Copier<'a, 'm> {
    source: &'a Source<'a>,
    pub(crate) build: Builder<'m>,
    pub(crate) rules: Rules<'a>,
}

/// The statements of a function that returns at its end alone, so that they can stand where it is called; and its value.
fn text_to_inline(function: &Function) -> Option<(Block, Option<Handle<Expression>>)> {
    fn returns(block: &Block) -> bool {
        block.iter().any(|statement| match statement {
            Statement::Return { .. } | Statement::Kill => true,
            Statement::Block(inner) => returns(inner),
            Statement::If { accept, reject, .. } => returns(accept) || returns(reject),
            Statement::Switch { cases, .. } => cases.iter().any(|case| returns(&case.body)),
            Statement::Loop { body, continuing, .. } => returns(body) || returns(continuing),
            _ => false,
        })
    }
    let mut body = function.body.clone();
    let value = match body.last() {
        Some(Statement::Return { value: Some(value) }) => Some(*value),
        _ => None,
    };
    match value {
        Some(_) => body.cull(body.len() - 1..),
        None => cut_last_return(&mut body),
    }
    (!returns(&body)).then_some((body, value))
}

/// Takes out the return at the end of a function without a value: naga writes it at the end of the last branch.
fn cut_last_return(block: &mut Block) {
    if matches!(block.last(), Some(Statement::Return { value: None })) {
        block.cull(block.len() - 1..);
        return;
    }
    match block.last_mut() {
        Some(Statement::Block(inner)) => cut_last_return(inner),
        Some(Statement::If { accept, reject, .. }) => {
            cut_last_return(accept);
            cut_last_return(reject);
        }
        _ => {}
    }
}

impl<'a, 'm> Copier<'a, 'm> {
    pub(crate) fn new(source: &'a Source<'a>, build: Builder<'m>, rules: Rules<'a>) -> Self {
        Copier { source, build, rules }
    }

    /// Copies the whole of `function`; `build` has been given its arguments, unless `arguments` are other values, and its
    /// result.
    pub(crate) fn copy(
        mut self,
        function: &'a Function,
        arguments: Option<Vec<Handle<Expression>>>,
    ) -> Result<Function> {
        let mut frame = self.frame(function, arguments, false)?;
        self.block(&mut frame, &function.body)?;
        Ok(self.build.finish())
    }

    fn frame(
        &mut self,
        function: &'a Function,
        arguments: Option<Vec<Handle<Expression>>>,
        called: bool,
    ) -> Result<Frame<'a>> {
        let values = vec![None; function.expressions.len()];
        let mut frame = Frame { function, values, arguments, locals: Vec::new() };
        for (_, variable) in function.local_variables.iter() {
            let ty = self.source.maps.ty(variable.ty);
            let init = variable.init.map(|init| self.value(&mut frame, init)).transpose()?;
            // What a call declares begins again with each call.
            let kept = if called { None } else { init };
            let local =
                self.build.local(LocalVariable { name: variable.name.clone(), ty, init: kept });
            frame.locals.push(local);
            if called {
                let value = match init {
                    Some(value) => value,
                    None => self.build.add(Expression::ZeroValue(ty))?,
                };
                let pointer = self.build.add(Expression::LocalVariable(local))?;
                self.store(pointer, value)?;
            }
        }
        Ok(frame)
    }

    fn store(&mut self, pointer: Handle<Expression>, value: Handle<Expression>) -> Result<()> {
        self.rules.stored(&self.build, pointer, value);
        self.build.push(Statement::Store { pointer, value });
        Ok(())
    }

    /// The new expression of an old one: what was evaluated, or what needs no evaluation.
    fn value(
        &mut self,
        frame: &mut Frame<'a>,
        old: Handle<Expression>,
    ) -> Result<Handle<Expression>> {
        match frame.values[old.index()] {
            Some(value) => Ok(value),
            None => {
                let value = self.evaluate(frame, old)?;
                if !self.build.expression(value).needs_pre_emit() {
                    // It stands in this block alone.
                    frame.values[old.index()] = None;
                }
                Ok(value)
            }
        }
    }

    fn evaluate(
        &mut self,
        frame: &mut Frame<'a>,
        old: Handle<Expression>,
    ) -> Result<Handle<Expression>> {
        let function = frame.function;
        let expression = &function.expressions[old];
        let value = match (expression, &frame.arguments) {
            (&Expression::FunctionArgument(at), Some(arguments)) => arguments[at as usize],
            (&Expression::LocalVariable(local), _) => {
                self.build.add(Expression::LocalVariable(frame.locals[local.index()]))?
            }
            _ => {
                let maps = self.source.maps;
                let mapped = maps.expression(expression, &mut |old| self.value(frame, old))?;
                self.rules.expression(&mut self.build, mapped)?
            }
        };
        frame.values[old.index()] = Some(value);
        Ok(value)
    }

    fn values<const N: usize>(
        &mut self,
        frame: &mut Frame<'a>,
        old: [Handle<Expression>; N],
    ) -> Result<[Handle<Expression>; N]> {
        let mut new = old;
        for value in &mut new {
            *value = self.value(frame, *value)?;
        }
        Ok(new)
    }

    /// Copies a block into a block of its own.
    fn nested(&mut self, frame: &mut Frame<'a>, block: &Block) -> Result<Block> {
        self.build.open();
        self.block(frame, block)?;
        Ok(self.build.close())
    }

    fn block(&mut self, frame: &mut Frame<'a>, block: &Block) -> Result<()> {
        block.iter().try_for_each(|statement| self.statement(frame, statement))
    }

    fn statement(&mut self, frame: &mut Frame<'a>, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Emit(range) => {
                for old in range.clone() {
                    // What is evaluated again, as the second turn of a loop does, is the same expression.
                    self.evaluate(frame, old)?;
                }
            }
            Statement::Block(block) => self.block(frame, block)?,
            Statement::Store { pointer, value } => {
                let [pointer, value] = self.values(frame, [*pointer, *value])?;
                self.store(pointer, value)?;
            }
            Statement::Call { function, arguments, result } => {
                self.call(frame, *function, arguments, *result)?;
            }
            Statement::Return { value } => {
                let value = value.map(|value| self.value(frame, value)).transpose()?;
                self.build.push(Statement::Return { value });
            }
            Statement::Break
            | Statement::Continue
            | Statement::ControlBarrier(_)
            | Statement::MemoryBarrier(_) => self.build.push(statement.clone()),
            Statement::If { .. } | Statement::Switch { .. } | Statement::Loop { .. } => {
                // What a variable holds behind a branch depends on the way there.
                self.rules.forget();
                self.branch(frame, statement)?;
                self.rules.forget();
            }
            _ => self.together(frame, statement)?,
        }
        Ok(())
    }

    fn branch(&mut self, frame: &mut Frame<'a>, statement: &Statement) -> Result<()> {
        let new = match statement {
            Statement::If { condition, accept, reject } => {
                let condition = self.value(frame, *condition)?;
                let accept = self.nested(frame, accept)?;
                self.rules.forget();
                let reject = self.nested(frame, reject)?;
                Statement::If { condition, accept, reject }
            }
            Statement::Switch { selector, cases } => {
                let selector = self.value(frame, *selector)?;
                let mut new = Vec::new();
                for case in cases {
                    self.rules.forget();
                    let body = self.nested(frame, &case.body)?;
                    new.push(SwitchCase { body, ..case.clone() });
                }
                Statement::Switch { selector, cases: new }
            }
            Statement::Loop { body, continuing, break_if } => {
                let body = self.nested(frame, body)?;
                self.rules.forget();
                self.build.open();
                self.block(frame, continuing)?;
                let break_if = break_if.map(|old| self.value(frame, old)).transpose()?;
                let continuing = self.build.close();
                Statement::Loop { body, continuing, break_if }
            }
            other => return Err(unknown(other)),
        };
        self.build.push(new);
        Ok(())
    }

    fn call(
        &mut self,
        frame: &mut Frame<'a>,
        function: Handle<Function>,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let mut new = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            new.push(self.value(frame, argument)?);
        }
        let called = &self.source.module.functions[function];
        let text = text_to_inline(called).filter(|_| self.rules.sees_through_calls());
        if let Some((body, value)) = text {
            let value = self.inline(called, &body, value, new)?;
            if let (Some(old), Some(value)) = (result, value) {
                frame.values[old.index()] = Some(value);
            }
            return Ok(());
        }
        // It may write what its arguments point to.
        self.rules.forget();
        let function = self.source.maps.function(function)?;
        let value = match result {
            Some(old) => {
                let value = self.build.add(Expression::CallResult(function))?;
                frame.values[old.index()] = Some(value);
                Some(value)
            }
            None => None,
        };
        self.build.push(Statement::Call { function, arguments: new, result: value });
        Ok(())
    }

    /// Copies the text of `function` to where it is called, and returns its value.
    fn inline(
        &mut self,
        function: &'a Function,
        body: &Block,
        value: Option<Handle<Expression>>,
        arguments: Vec<Handle<Expression>>,
    ) -> Result<Option<Handle<Expression>>> {
        let mut frame = self.frame(function, Some(arguments), true)?;
        self.block(&mut frame, body)?;
        value.map(|value| self.value(&mut frame, value)).transpose()
    }

    /// Statements with which invocations act on memory or on each other.
    fn together(&mut self, frame: &mut Frame<'a>, statement: &Statement) -> Result<()> {
        if self.exchanged(frame, statement)? {
            return Ok(());
        }
        let new = match statement {
            Statement::Atomic { pointer, fun, value, result } => {
                let [pointer, value] = self.values(frame, [*pointer, *value])?;
                let mut fun = *fun;
                if let naga::AtomicFunction::Exchange { compare: Some(compare) } = &mut fun {
                    *compare = self.value(frame, *compare)?;
                }
                let new = result.map(|old| self.result(frame, old)).transpose()?;
                Statement::Atomic { pointer, fun, value, result: new }
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let pointer = self.value(frame, *pointer)?;
                let new = self.result(frame, *result)?;
                Statement::WorkGroupUniformLoad { pointer, result: new }
            }
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = predicate.map(|old| self.value(frame, old)).transpose()?;
                let new = self.result(frame, *result)?;
                Statement::SubgroupBallot { result: new, predicate }
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let mode = self.gather(frame, *mode)?;
                let argument = self.value(frame, *argument)?;
                let new = self.result(frame, *result)?;
                Statement::SubgroupGather { mode, argument, result: new }
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let argument = self.value(frame, *argument)?;
                let new = self.result(frame, *result)?;
                let (op, collective_op) = (*op, *collective_op);
                Statement::SubgroupCollectiveOperation { op, collective_op, argument, result: new }
            }
            Statement::CooperativeStore { target, data } => {
                let target = self.value(frame, *target)?;
                let mut data = *data;
                [data.pointer, data.stride] = self.values(frame, [data.pointer, data.stride])?;
                Statement::CooperativeStore { target, data }
            }
            other => return Err(unknown(other)),
        };
        self.build.push(new);
        Ok(())
    }

    /// Puts calls in place of a subgroup operation, unless it is the adapter's.
    fn exchanged(&mut self, frame: &mut Frame<'a>, statement: &Statement) -> Result<bool> {
        let Some(exchange) = self.source.exchange else { return Ok(false) };
        let (old, new) = match statement {
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = predicate.map(|old| self.value(frame, old)).transpose()?;
                (*result, exchange.ballot(&mut self.build, predicate)?)
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let mode = self.gather(frame, *mode)?;
                let argument = self.value(frame, *argument)?;
                (*result, exchange.gather(&mut self.build, mode, argument)?)
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let argument = self.value(frame, *argument)?;
                (*result, exchange.collective(&mut self.build, *op, *collective_op, argument)?)
            }
            _ => return Ok(false),
        };
        frame.values[old.index()] = Some(new);
        Ok(true)
    }

    fn gather(&mut self, frame: &mut Frame<'a>, mode: GatherMode) -> Result<GatherMode> {
        Ok(match mode {
            GatherMode::Broadcast(index) => GatherMode::Broadcast(self.value(frame, index)?),
            GatherMode::Shuffle(index) => GatherMode::Shuffle(self.value(frame, index)?),
            GatherMode::ShuffleDown(by) => GatherMode::ShuffleDown(self.value(frame, by)?),
            GatherMode::ShuffleUp(by) => GatherMode::ShuffleUp(self.value(frame, by)?),
            GatherMode::ShuffleXor(mask) => GatherMode::ShuffleXor(self.value(frame, mask)?),
            GatherMode::QuadBroadcast(index) => {
                GatherMode::QuadBroadcast(self.value(frame, index)?)
            }
            GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => mode,
        })
    }

    /// The expression of a statement's result.
    fn result(
        &mut self,
        frame: &mut Frame<'a>,
        old: Handle<Expression>,
    ) -> Result<Handle<Expression>> {
        let maps = self.source.maps;
        let new = maps.expression(&frame.function.expressions[old], &mut Ok)?;
        let new = self.build.add(new)?;
        frame.values[old.index()] = Some(new);
        Ok(new)
    }
}

fn unknown(statement: &Statement) -> Error {
    let text = format!("{statement:?}");
    let name = text.split(['(', ' ', '{']).next().unwrap_or_default();
    Error::new(format!("the statement {name} is not known to the rewriter"))
}
