//! A whole module: parsed, copied function by function next to the library, and written.

use naga::compact::{KeepUnused, compact};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{
    BinaryOperator, BuiltIn, Expression, Function, FunctionArgument, FunctionResult, Handle,
    Literal, Module, Scalar, Span, Statement, Type, TypeInner, VectorSize,
};

use crate::builder::Builder;
use crate::copier::{Copier, Source};
use crate::error::{Error, Result};
use crate::latitude::Driver;
use crate::library::Library;
use crate::maps::Maps;
use crate::rules::Rules;
use crate::subgroups::{self, Exchange};

type One = Handle<Expression>;

/// Rewrites texts for one driver.
pub struct Rewriter {
    driver: Driver,
    library: Library,
}

impl Rewriter {
    /// Makes what is the same for all texts.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn new(driver: Driver) -> Result<Self> {
        let library = Library::new(&driver, "")?;
        Ok(Rewriter { driver, library })
    }

    /// Rewrites one text.
    ///
    /// # Errors
    /// If the text is not valid, or holds something that the rewriter does not know.
    pub fn rewrite(&self, text: &str) -> Result<String> {
        let module = naga::front::wgsl::parse_str(text)
            .map_err(|error| Error::new(error.emit_to_string(text)))?;
        match self.driver.subgroups().filter(|_| subgroups::are_used(&module)) {
            None => self.with_library(&module, &self.library, None),
            Some(subgroups) => {
                let [entry] = &module.entry_points[..] else {
                    return Err(Error::new("a module with subgroups has one entry point"));
                };
                let threads = entry.workgroup_size.iter().product();
                let library = Library::new(&self.driver, &subgroups.text(threads))?;
                let find = |name: &str| library.named(name);
                let exchange = Exchange { subgroups, threads, find: &find };
                self.with_library(&module, &library, Some(exchange))
            }
        }
    }

    fn with_library(
        &self,
        module: &Module,
        library: &Library,
        exchange: Option<Exchange>,
    ) -> Result<String> {
        let mut new = library.module.clone();
        let mut maps = Maps::new(module, &mut new)?;
        for (_, function) in module.functions.iter() {
            let source = Source { module, maps: &maps, exchange };
            let build = Builder::new(&mut new, outline(function, &maps, |_| true));
            let rules = Rules::new(&self.driver, library);
            let copy = Copier::new(&source, build, rules).copy(function, None)?;
            maps.functions.push(new.functions.append(copy, Span::UNDEFINED));
        }
        for entry in &module.entry_points {
            let source = Source { module, maps: &maps, exchange };
            let function = &entry.function;
            let given = |argument: &FunctionArgument| {
                exchange.is_none() || !subgroups::is_built_in(argument.binding.as_ref())
            };
            let mut build = Builder::new(&mut new, outline(function, &maps, given));
            set_zero(&mut build)?;
            let arguments = exchange
                .map(|exchange| join_subgroup(&mut build, &exchange, function))
                .transpose()?;
            let rules = Rules::new(&self.driver, library);
            let function = Copier::new(&source, build, rules).copy(function, arguments)?;
            new.entry_points.push(naga::EntryPoint { function, ..entry.clone() });
        }
        compact(&mut new, KeepUnused::No);
        written(&new)
    }
}

/// A function without its text, and with those arguments that come from outside.
fn outline(
    function: &Function,
    maps: &Maps,
    is_reported: impl Fn(&FunctionArgument) -> bool,
) -> Function {
    let arguments = function.arguments.iter().filter(|argument| is_reported(argument));
    let arguments =
        arguments.map(|argument| FunctionArgument { ty: maps.ty(argument.ty), ..argument.clone() });
    let result = function.result.as_ref();
    Function {
        name: function.name.clone(),
        arguments: arguments.collect(),
        result: result.map(|r| FunctionResult { ty: maps.ty(r.ty), ..r.clone() }),
        ..Function::default()
    }
}

/// The expression of a built-in value, which becomes an argument if it is none.
fn built_in(build: &mut Builder, wanted: BuiltIn, inner: TypeInner) -> Result<One> {
    let binding = Some(naga::Binding::BuiltIn(wanted));
    match build.arguments().iter().position(|argument| argument.binding == binding) {
        Some(at) => build.add(Expression::FunctionArgument(at as u32)),
        None => {
            let ty = build.module.types.insert(Type { name: None, inner }, Span::UNDEFINED);
            let name = Some(format!("hostile_{}", format!("{wanted:?}").to_lowercase()));
            build.argument(FunctionArgument { name, ty, binding })
        }
    }
}

/// Informs the library which invocation this is, and returns the values of all of the entry point's arguments.
fn join_subgroup(
    build: &mut Builder,
    exchange: &Exchange,
    function: &Function,
) -> Result<Vec<One>> {
    let index = built_in(build, BuiltIn::LocalInvocationIndex, TypeInner::Scalar(Scalar::U32))?;
    exchange.begin(build, index)?;
    let mut given = 0;
    let mut values = Vec::new();
    for argument in &function.arguments {
        values.push(match argument.binding {
            Some(naga::Binding::BuiltIn(BuiltIn::SubgroupInvocationId)) => exchange.lane(build)?,
            Some(naga::Binding::BuiltIn(BuiltIn::SubgroupId)) => exchange.subgroup(build)?,
            Some(naga::Binding::BuiltIn(BuiltIn::SubgroupSize)) => {
                build.literal(Literal::U32(exchange.subgroups.size))?
            }
            Some(naga::Binding::BuiltIn(BuiltIn::NumSubgroups)) => {
                build.literal(Literal::U32(exchange.count()))?
            }
            _ => {
                given += 1;
                build.add(Expression::FunctionArgument(given - 1))?
            }
        });
    }
    Ok(values)
}

/// Sets the library's variable to 0, in a way that no compiler knows: n (n + 1) is even, for the number of workgroups.
fn set_zero(build: &mut Builder) -> Result<()> {
    let Some(variable) = Library::zero(build.module) else { return Ok(()) };
    let vector = TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 };
    let groups = built_in(build, BuiltIn::NumWorkGroups, vector)?;
    let count = build.add(Expression::AccessIndex { base: groups, index: 0 })?;
    let one = build.literal(Literal::U32(1))?;
    let mut binary = |op, left, right| build.add(Expression::Binary { op, left, right });
    let next = binary(BinaryOperator::Add, count, one)?;
    let product = binary(BinaryOperator::Multiply, count, next)?;
    let value = binary(BinaryOperator::And, product, one)?;
    let pointer = build.add(Expression::GlobalVariable(variable))?;
    build.push(Statement::Store { pointer, value });
    Ok(())
}

/// The text of a module.
fn written(module: &Module) -> Result<String> {
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    validator
        .subgroup_stages(naga::valid::ShaderStages::all())
        .subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator
        .validate(module)
        .map_err(|error| Error::new(format!("the rewritten module is not valid: {error:?}")))?;
    let flags = naga::back::wgsl::WriterFlags::empty();
    let text = naga::back::wgsl::write_string(module, &info, flags)
        .map_err(|error| Error::new(format!("the rewritten module cannot be written: {error}")))?;
    // naga looks at types alone, and a conversion has none.
    Ok(match text.contains("f16") && !text.contains("enable f16;") {
        true => format!("enable f16;\n{text}"),
        false => text,
    })
}
