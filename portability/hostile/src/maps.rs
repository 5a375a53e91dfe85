//! From the handles of one module to those of another, into which its types, constants and variables are copied.

use naga::{
    Constant, CooperativeData, Expression, Function, GlobalVariable, Handle, Module, Span, Type,
    TypeInner,
};

use crate::error::{Error, Result};

type One = Handle<Expression>;

/// Where the parts of a module stand in another one.
pub(crate) struct Maps {
    types: Vec<Handle<Type>>,
    constants: Vec<Handle<Constant>>,
    variables: Vec<Handle<GlobalVariable>>,
    pub(crate) functions: Vec<Handle<Function>>,
}

impl Maps {
    /// Copies all of `from` but its functions into `to`.
    pub(crate) fn new(from: &Module, to: &mut Module) -> Result<Self> {
        if !from.overrides.is_empty() {
            return Err(Error::new("constants that a pipeline overrides are not known"));
        }
        let mut maps = Maps {
            types: Vec::with_capacity(from.types.len()),
            constants: Vec::new(),
            variables: Vec::new(),
            functions: Vec::new(),
        };
        for (_, ty) in from.types.iter() {
            let inner = maps.inner(&ty.inner)?;
            let new = to.types.insert(Type { name: ty.name.clone(), inner }, Span::UNDEFINED);
            maps.types.push(new);
        }
        for (kind, ty) in &from.special_types.predeclared_types {
            to.special_types.predeclared_types.insert(kind.clone(), maps.ty(*ty));
        }
        let global = maps.global_expressions(from, to)?;
        for (_, variable) in from.global_variables.iter() {
            let new = GlobalVariable {
                ty: maps.ty(variable.ty),
                init: variable.init.map(|init| global[init.index()]),
                ..variable.clone()
            };
            maps.variables.push(to.global_variables.append(new, Span::UNDEFINED));
        }
        Ok(maps)
    }

    /// Constants and their expressions name each other, each what stands before it.
    fn global_expressions(&mut self, from: &Module, to: &mut Module) -> Result<Vec<One>> {
        let mut new: Vec<One> = Vec::with_capacity(from.global_expressions.len());
        let mut constants = from.constants.iter().map(|(_, constant)| constant).peekable();
        for (handle, expression) in from.global_expressions.iter() {
            if let Expression::Constant(constant) = expression {
                while self.constants.len() <= constant.index() {
                    let next = constants.next().expect("a constant stands before what names it");
                    self.constant(next, &new, to);
                }
            }
            let mapped = self.expression(expression, &mut |old| Ok(new[old.index()]))?;
            debug_assert_eq!(new.len(), handle.index());
            new.push(to.global_expressions.append(mapped, Span::UNDEFINED));
        }
        constants.for_each(|constant| self.constant(constant, &new, to));
        Ok(new)
    }

    fn constant(&mut self, constant: &Constant, expressions: &[One], to: &mut Module) {
        let new = Constant {
            name: constant.name.clone(),
            ty: self.ty(constant.ty),
            init: expressions[constant.init.index()],
        };
        self.constants.push(to.constants.append(new, Span::UNDEFINED));
    }

    pub(crate) fn ty(&self, old: Handle<Type>) -> Handle<Type> {
        self.types[old.index()]
    }

    pub(crate) fn variable(&self, old: Handle<GlobalVariable>) -> Handle<GlobalVariable> {
        self.variables[old.index()]
    }

    pub(crate) fn function(&self, old: Handle<Function>) -> Result<Handle<Function>> {
        let known = self.functions.get(old.index()).copied();
        known.ok_or_else(|| Error::new("a function is called before it is declared"))
    }

    fn inner(&self, inner: &TypeInner) -> Result<TypeInner> {
        let mut new = inner.clone();
        match &mut new {
            TypeInner::Scalar(_)
            | TypeInner::Vector { .. }
            | TypeInner::Matrix { .. }
            | TypeInner::CooperativeMatrix { .. }
            | TypeInner::Atomic(_)
            | TypeInner::ValuePointer { .. } => {}
            TypeInner::Pointer { base, .. } | TypeInner::Array { base, .. } => {
                *base = self.ty(*base);
            }
            TypeInner::Struct { members, .. } => {
                members.iter_mut().for_each(|member| member.ty = self.ty(member.ty));
            }
            other => return Err(unknown("type", other)),
        }
        Ok(new)
    }

    /// The expression with its operands as `of` maps them.
    pub(crate) fn expression(
        &self,
        expression: &Expression,
        of: &mut dyn FnMut(One) -> Result<One>,
    ) -> Result<Expression> {
        let mut new = with_operands(expression, of)?;
        match &mut new {
            Expression::Constant(constant) => *constant = self.constants[constant.index()],
            Expression::ZeroValue(ty)
            | Expression::AtomicResult { ty, .. }
            | Expression::SubgroupOperationResult { ty }
            | Expression::WorkGroupUniformLoadResult { ty }
            | Expression::Compose { ty, .. } => *ty = self.ty(*ty),
            Expression::GlobalVariable(variable) => *variable = self.variable(*variable),
            Expression::CallResult(function) => *function = self.function(*function)?,
            _ => {}
        }
        Ok(new)
    }
}

/// The expression with other operands, of the same module.
pub(crate) fn with_operands(
    expression: &Expression,
    of: &mut dyn FnMut(One) -> Result<One>,
) -> Result<Expression> {
    let mut new = expression.clone();
    match &mut new {
        Expression::Literal(_)
        | Expression::FunctionArgument(_)
        | Expression::LocalVariable(_)
        | Expression::GlobalVariable(_)
        | Expression::Constant(_)
        | Expression::ZeroValue(_)
        | Expression::AtomicResult { .. }
        | Expression::SubgroupOperationResult { .. }
        | Expression::WorkGroupUniformLoadResult { .. }
        | Expression::CallResult(_)
        | Expression::SubgroupBallotResult => {}
        Expression::Compose { components, .. } => {
            for component in components {
                *component = of(*component)?;
            }
        }
        Expression::Access { base: a, index: b } | Expression::Binary { left: a, right: b, .. } => {
            (*a, *b) = (of(*a)?, of(*b)?);
        }
        Expression::AccessIndex { base: a, .. }
        | Expression::Splat { value: a, .. }
        | Expression::Swizzle { vector: a, .. }
        | Expression::Load { pointer: a }
        | Expression::Unary { expr: a, .. }
        | Expression::Relational { argument: a, .. }
        | Expression::As { expr: a, .. }
        | Expression::ArrayLength(a) => *a = of(*a)?,
        Expression::Select { condition: a, accept: b, reject: c }
        | Expression::CooperativeMultiplyAdd { a, b, c } => {
            (*a, *b, *c) = (of(*a)?, of(*b)?, of(*c)?);
        }
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            *arg = of(*arg)?;
            for more in [arg1, arg2, arg3].into_iter().flatten() {
                *more = of(*more)?;
            }
        }
        Expression::CooperativeLoad { data: CooperativeData { pointer, stride, .. }, .. } => {
            (*pointer, *stride) = (of(*pointer)?, of(*stride)?);
        }
        other => return Err(unknown("expression", other)),
    }
    Ok(new)
}

/// The name of a variant of naga's IR, as the error shows it.
fn unknown(what: &str, value: &dyn std::fmt::Debug) -> Error {
    let text = format!("{value:?}");
    let name = text.split(['(', ' ', '{']).next().unwrap_or_default();
    Error::new(format!("the {what} {name} is not known to the rewriter"))
}
