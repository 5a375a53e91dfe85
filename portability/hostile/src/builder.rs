//! Builds one function of naga's IR, expression by expression, and knows the type of each.
//!
//! It knows nothing of what is rewritten: `copier.rs` asks it for expressions and statements in the order in which they
//! are to be evaluated.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    Block, Expression, Function, Handle, Literal, LocalVariable, Module, Range, Scalar, ScalarKind,
    Span, Statement, TypeInner, VectorSize,
};

use crate::error::{Error, Result};

/// What a float or an integer value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Numbers {
    pub(crate) lanes: u8,
    pub(crate) scalar: Scalar,
}

impl Numbers {
    /// Lanes and scalar of a scalar or a vector.
    pub(crate) fn of(inner: &TypeInner) -> Option<Self> {
        match *inner {
            TypeInner::Scalar(scalar) => Some(Numbers { lanes: 1, scalar }),
            TypeInner::Vector { size, scalar } => Some(Numbers { lanes: size as u8, scalar }),
            _ => None,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        self.scalar.kind == ScalarKind::Float
    }

    /// The size of the vector, if it is one.
    pub(crate) fn vector(self) -> Option<VectorSize> {
        match self.lanes {
            2 => Some(VectorSize::Bi),
            3 => Some(VectorSize::Tri),
            4 => Some(VectorSize::Quad),
            _ => None,
        }
    }
}

pub(crate) struct Builder<'m> {
    pub(crate) module: &'m mut Module,
    function: Function,
    types: Typifier,
    /// The statements of the blocks that are open, the innermost last.
    open: Vec<Vec<Statement>>,
}

impl<'m> Builder<'m> {
    /// Begins a function with the arguments and the result of `function`, which the caller has mapped.
    pub(crate) fn new(module: &'m mut Module, function: Function) -> Self {
        Builder { module, function, types: Typifier::new(), open: vec![Vec::new()] }
    }

    /// The finished function.
    pub(crate) fn finish(mut self) -> Function {
        let statements = self.open.pop().unwrap_or_default();
        debug_assert!(self.open.is_empty());
        self.function.body = Block::from_vec(statements);
        self.function
    }

    /// Adds an expression, which is evaluated here.
    pub(crate) fn add(&mut self, expression: Expression) -> Result<Handle<Expression>> {
        let by_statement = matches!(
            expression,
            Expression::CallResult(_)
                | Expression::AtomicResult { .. }
                | Expression::WorkGroupUniformLoadResult { .. }
                | Expression::SubgroupBallotResult
                | Expression::SubgroupOperationResult { .. }
        );
        let emitted = !by_statement && !expression.needs_pre_emit();
        let handle = self.function.expressions.append(expression, Span::UNDEFINED);
        let context = ResolveContext::with_locals(
            self.module,
            &self.function.local_variables,
            &self.function.arguments,
        );
        self.types
            .grow(handle, &self.function.expressions, &context)
            .map_err(|error| Error::new(format!("an expression has no type: {error}")))?;
        if emitted {
            self.emit(handle);
        }
        Ok(handle)
    }

    fn emit(&mut self, handle: Handle<Expression>) {
        let block = self.open.last_mut().expect("a block is open until the function is finished");
        let mut first = handle;
        if let Some(Statement::Emit(range)) = block.last() {
            let before =
                range.first_and_last().filter(|(_, last)| last.index() + 1 == handle.index());
            if let Some((start, _)) = before {
                first = start;
                block.pop();
            }
        }
        block.push(Statement::Emit(Range::new_from_bounds(first, handle)));
    }

    pub(crate) fn push(&mut self, statement: Statement) {
        self.open
            .last_mut()
            .expect("a block is open until the function is finished")
            .push(statement);
    }

    /// Opens a block; what follows goes into it.
    pub(crate) fn open(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the block that was opened last.
    pub(crate) fn close(&mut self) -> Block {
        Block::from_vec(self.open.pop().unwrap_or_default())
    }

    /// Calls a function that has a result.
    pub(crate) fn call(
        &mut self,
        function: Handle<Function>,
        arguments: Vec<Handle<Expression>>,
    ) -> Result<Handle<Expression>> {
        let result = self.add(Expression::CallResult(function))?;
        self.push(Statement::Call { function, arguments, result: Some(result) });
        Ok(result)
    }

    pub(crate) fn local(&mut self, variable: LocalVariable) -> Handle<LocalVariable> {
        self.function.local_variables.append(variable, Span::UNDEFINED)
    }

    /// Adds an argument to the function, and returns the expression of its value.
    pub(crate) fn argument(
        &mut self,
        argument: naga::FunctionArgument,
    ) -> Result<Handle<Expression>> {
        let at = self.function.arguments.len() as u32;
        self.function.arguments.push(argument);
        self.add(Expression::FunctionArgument(at))
    }

    pub(crate) fn arguments(&self) -> &[naga::FunctionArgument] {
        &self.function.arguments
    }

    pub(crate) fn expression(&self, handle: Handle<Expression>) -> &Expression {
        &self.function.expressions[handle]
    }

    pub(crate) fn inner(&self, handle: Handle<Expression>) -> &TypeInner {
        self.types[handle].inner_with(&self.module.types)
    }

    /// Lanes and scalar of an expression, unless it is something else.
    pub(crate) fn numbers(&self, handle: Handle<Expression>) -> Option<Numbers> {
        Numbers::of(self.inner(handle))
    }

    /// As [`Builder::numbers`], for floats alone.
    pub(crate) fn floats(&self, handle: Handle<Expression>) -> Option<Numbers> {
        self.numbers(handle).filter(|numbers| numbers.is_float())
    }

    pub(crate) fn literal(&mut self, literal: Literal) -> Result<Handle<Expression>> {
        self.add(Expression::Literal(literal))
    }

    /// `value` in every lane, where `like` is a vector and `value` is not.
    pub(crate) fn widened(
        &mut self,
        value: Handle<Expression>,
        like: Numbers,
    ) -> Result<Handle<Expression>> {
        match (self.numbers(value).map(|own| own.lanes), like.vector()) {
            (Some(1), Some(size)) => self.add(Expression::Splat { size, value }),
            _ => Ok(value),
        }
    }

    /// The float `number` in every lane.
    pub(crate) fn number(&mut self, number: f32, like: Numbers) -> Result<Handle<Expression>> {
        let mut one = self.literal(Literal::F32(number))?;
        if like.scalar != Scalar::F32 {
            let convert = Some(like.scalar.width);
            one = self.add(Expression::As { expr: one, kind: ScalarKind::Float, convert })?;
        }
        self.widened(one, like)
    }
}
