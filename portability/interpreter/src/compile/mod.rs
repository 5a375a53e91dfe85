//! Makes a [`Program`] of a WGSL text: `expressions` and `math` write what has a value, `places` what pointers
//! mean, `statements` control flow, `calls` functions.

mod calls;
mod expressions;
mod math;
mod places;
mod statements;

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use naga::valid::{Capabilities, FunctionInfo, ModuleInfo, ValidationFlags, Validator};
use naga::{
    AddressSpace, Binding as Bound, BuiltIn, Expression, Function, Handle, Module, ShaderStage,
    Span, StorageAccess, TypeInner,
};

use crate::layout::{Kind, Layout, Shape};
use crate::program::{BarrierPoint, Binding, Given, Op, Pc, Program, Reg};
use places::Place;

/// What is left out of a kernel, to see whether that is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mutation {
    /// Nothing.
    #[default]
    None,
    /// A barrier, by its number in [`Program::barriers`].
    WithoutBarrier(usize),
}

/// Makes the kernel `main` of a text ready to run.
///
/// # Errors
/// If naga refuses the text, or it has something that the interpreter does not know, which the error names.
pub fn compile(wgsl: &str, mutation: Mutation) -> Result<Program> {
    let module = naga::front::wgsl::parse_str(wgsl)
        .map_err(|e| anyhow::anyhow!("naga does not read it: {}", e.emit_to_string(wgsl)))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|e| anyhow::anyhow!("naga refuses it: {}", e.emit_to_string(wgsl)))?;
    let mut compiler = Compiler::new(&module, &info, wgsl, mutation)?;
    compiler.entry_point()?;
    Ok(compiler.finish())
}

/// The value of an expression.
#[derive(Debug, Clone)]
enum Value {
    /// The registers of its scalars.
    Scalars(Vec<Reg>),
    Place(Place),
}

/// A variable of the module.
enum Global {
    /// A binding, by its number.
    Buffer(u32),
    /// Its first word, and the one behind its last.
    Workgroup(u32, u32),
    /// Its registers, and the first of those that say whether it was written, if nothing is written at the begin.
    Private { first: Reg, count: u32, written: Option<Reg> },
}

/// A function that is being written out.
struct Frame<'a> {
    function: &'a Function,
    info: &'a FunctionInfo,
    values: HashMap<Handle<Expression>, Value>,
    locals: HashMap<Handle<naga::LocalVariable>, Place>,
    /// Where results go.
    result: Vec<Reg>,
    /// How many frames of control flow were there at the call.
    depth: u32,
}

struct Compiler<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    wgsl: &'a str,
    mutation: Mutation,
    program: Program,
    globals: HashMap<Handle<naga::GlobalVariable>, Global>,
    /// Barriers by the addresses of their statements, as a function is written out at each of its calls.
    barriers: HashMap<*const naga::Statement, u32>,
    loops: HashMap<*const naga::Statement, u32>,
    constants: HashMap<u32, Reg>,
    /// The next free register.
    top: Reg,
    /// For each open block, the instructions that go to its end.
    exits: Vec<Vec<usize>>,
    /// What encloses the current statement.
    frames: Vec<Enclosing>,
    /// How many functions are being written out.
    calls: usize,
}

/// A frame of control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enclosing {
    If,
    Loop,
    Switch,
    Call,
}

/// Registers of constants are numbered from here until their count is known.
const CONSTANT: Reg = 1 << 30;

/// A kernel of more instructions was not made by wgrad.
const MOST_OPS: usize = 4 << 20;

impl<'a> Compiler<'a> {
    fn new(
        module: &'a Module,
        info: &'a ModuleInfo,
        wgsl: &'a str,
        mutation: Mutation,
    ) -> Result<Self> {
        let mut compiler = Compiler {
            module,
            info,
            wgsl,
            mutation,
            program: Program {
                ops: Vec::new(),
                registers: 0,
                constants: Vec::new(),
                given: Vec::new(),
                cases: Vec::new(),
                variables: Vec::new(),
                private: 0..0,
                private_init: Vec::new(),
                workgroup_words: 0,
                workgroup_size: [1; 3],
                bindings: Vec::new(),
                barriers: Vec::new(),
                loops: Vec::new(),
                uses_subgroups: false,
                halves: false,
                lines: wgsl.lines().map(str::to_string).collect(),
            },
            globals: HashMap::new(),
            barriers: HashMap::new(),
            loops: HashMap::new(),
            constants: HashMap::new(),
            top: 0,
            exits: Vec::new(),
            frames: Vec::new(),
            calls: 0,
        };
        for (_, function) in module.functions.iter() {
            compiler.number(&function.body);
        }
        for entry in &module.entry_points {
            compiler.number(&entry.function.body);
        }
        compiler.declare_globals()?;
        Ok(compiler)
    }

    /// Numbers the barriers and loops of a block.
    fn number(&mut self, block: &'a naga::Block) {
        use naga::Statement;
        for (statement, span) in block.span_iter() {
            let line = self.line(*span);
            match statement {
                Statement::Block(block) => self.number(block),
                Statement::If { accept, reject, .. } => {
                    self.number(accept);
                    self.number(reject);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().for_each(|case| self.number(&case.body));
                }
                Statement::Loop { body, continuing, .. } => {
                    self.loops.insert(statement, self.program.loops.len() as u32);
                    self.program.loops.push(line);
                    self.number(body);
                    self.number(continuing);
                }
                Statement::ControlBarrier(kinds) => {
                    self.barriers.insert(statement, self.program.barriers.len() as u32);
                    self.program.barriers.push(BarrierPoint {
                        line,
                        workgroup: kinds.contains(naga::Barrier::WORK_GROUP),
                        storage: kinds.contains(naga::Barrier::STORAGE),
                    });
                }
                Statement::WorkGroupUniformLoad { .. } => {
                    self.barriers.insert(statement, self.program.barriers.len() as u32);
                    let point = BarrierPoint { line, workgroup: true, storage: false };
                    self.program.barriers.push(point);
                }
                _ => {}
            }
        }
    }

    fn declare_globals(&mut self) -> Result<()> {
        for (handle, variable) in self.module.global_variables.iter() {
            let name = variable.name.clone().unwrap_or_default();
            self.program.variables.push(name.clone());
            let shape = Shape::new(self.module, variable.ty);
            let global = match variable.space {
                AddressSpace::Storage { .. } | AddressSpace::Uniform => {
                    let Some(at) = &variable.binding else { bail!("{name} has no binding") };
                    if at.group != 0 {
                        bail!("{name} is not in group 0");
                    }
                    let writable = matches!(variable.space, AddressSpace::Storage { access }
                        if access.contains(StorageAccess::STORE));
                    self.program.bindings.push(Binding {
                        binding: at.binding,
                        writable,
                        uniform: variable.space == AddressSpace::Uniform,
                    });
                    Global::Buffer(self.program.bindings.len() as u32 - 1)
                }
                AddressSpace::WorkGroup => {
                    let first = self.program.workgroup_words;
                    self.program.workgroup_words += shape.scalars(self.module)?;
                    Global::Workgroup(first, self.program.workgroup_words)
                }
                AddressSpace::Private => self.declare_private(variable, shape)?,
                space => bail!("{name} is in address space {space:?}, which is not supported"),
            };
            self.globals.insert(handle, global);
        }
        self.program.private = 0..self.top;
        let half = |ty: &naga::Type| match &ty.inner {
            TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } => scalar.width == 2,
            _ => false,
        };
        self.program.halves = self.module.types.iter().any(|(_, ty)| half(ty));
        Ok(())
    }

    fn declare_private(&mut self, variable: &naga::GlobalVariable, shape: Shape) -> Result<Global> {
        let count = shape.scalars(self.module)?;
        let first = self.fresh(count);
        let Some(init) = variable.init else {
            let written = self.fresh(count);
            return Ok(Global::Private { first, count, written: Some(written) });
        };
        let values = self.global_constant(init)?;
        let values =
            values.into_iter().map(|value| self.program.constants[(value - CONSTANT) as usize]);
        let init: Vec<(Reg, u32)> = (first..).zip(values).collect();
        self.program.private_init.extend(init);
        Ok(Global::Private { first, count, written: None })
    }

    fn entry_point(&mut self) -> Result<()> {
        let at =
            self.module.entry_points.iter().position(|entry| entry.stage == ShaderStage::Compute);
        let Some(at) = at else { bail!("it has no compute shader") };
        let entry = &self.module.entry_points[at];
        if entry.workgroup_size_overrides.is_some_and(|sizes| sizes.iter().any(Option::is_some)) {
            bail!("workgroup sizes by `override` are not supported");
        }
        self.program.workgroup_size = entry.workgroup_size;
        let mut arguments = Vec::new();
        for argument in &entry.function.arguments {
            let value = match &argument.binding {
                Some(binding) => self.given(argument.ty, binding)?,
                None => {
                    let TypeInner::Struct { members, .. } = &self.module.types[argument.ty].inner
                    else {
                        bail!("an argument of the entry point is neither a builtin nor a struct");
                    };
                    let mut all = Vec::new();
                    for member in members {
                        let binding = member.binding.as_ref().context("a member is no builtin")?;
                        all.extend(self.given(member.ty, binding)?);
                    }
                    all
                }
            };
            arguments.push(Value::Scalars(value));
        }
        let info = self.info.get_entry_point(at);
        self.call(&entry.function, info, arguments)?;
        self.emit(Op::End);
        Ok(())
    }

    /// Registers of a builtin.
    fn given(&mut self, ty: Handle<naga::Type>, binding: &Bound) -> Result<Vec<Reg>> {
        let Bound::BuiltIn(builtin) = binding else {
            bail!("an argument of the entry point is no builtin");
        };
        let count = Shape::new(self.module, ty).scalars(self.module)?;
        let first = self.fresh(count);
        for (reg, i) in (first..first + count).zip(0..) {
            let given = match builtin {
                BuiltIn::GlobalInvocationId => Given::GlobalInvocationId(i),
                BuiltIn::LocalInvocationId => Given::LocalInvocationId(i),
                BuiltIn::LocalInvocationIndex => Given::LocalInvocationIndex,
                BuiltIn::WorkGroupId => Given::WorkgroupId(i),
                BuiltIn::NumWorkGroups => Given::NumWorkgroups(i),
                BuiltIn::SubgroupSize => Given::SubgroupSize,
                BuiltIn::SubgroupId => Given::SubgroupId,
                BuiltIn::SubgroupInvocationId => Given::SubgroupInvocationId,
                BuiltIn::NumSubgroups => Given::NumSubgroups,
                other => bail!("the builtin {other:?} is not supported"),
            };
            self.program.uses_subgroups |= matches!(
                given,
                Given::SubgroupSize
                    | Given::SubgroupId
                    | Given::SubgroupInvocationId
                    | Given::NumSubgroups
            );
            self.program.given.push((given, reg));
        }
        Ok((first..first + count).collect())
    }

    /// Puts the constants in front of all other registers.
    fn finish(mut self) -> Program {
        let count = self.program.constants.len() as u32;
        let mut place = |reg: &mut Reg| {
            *reg = if *reg >= CONSTANT { *reg - CONSTANT } else { *reg + count };
        };
        let program = &mut self.program;
        program.ops.iter_mut().for_each(|op| op.registers(&mut place));
        program.given.iter_mut().for_each(|(_, reg)| place(reg));
        program.private_init.iter_mut().for_each(|(reg, _)| place(reg));
        place(&mut program.private.start);
        place(&mut program.private.end);
        program.registers += count;
        self.program
    }

    fn emit(&mut self, op: Op) {
        self.program.ops.push(op);
    }

    fn pc(&self) -> Pc {
        self.program.ops.len() as Pc
    }

    /// `count` registers that nobody uses.
    fn fresh(&mut self, count: u32) -> Reg {
        let first = self.top;
        self.top += count;
        self.program.registers = self.program.registers.max(self.top);
        first
    }

    /// The register of a constant.
    fn constant(&mut self, bits: u32) -> Reg {
        let next = CONSTANT + self.program.constants.len() as u32;
        *self.constants.entry(bits).or_insert_with(|| {
            self.program.constants.push(bits);
            next
        })
    }

    fn line(&self, span: Span) -> u32 {
        if span.is_defined() { span.location(self.wgsl).line_number } else { 0 }
    }

    /// The type of an expression.
    fn type_of(&self, frame: &Frame<'a>, expression: Handle<Expression>) -> &'a TypeInner {
        frame.info[expression].ty.inner_with(&self.module.types)
    }

    /// The type of an expression that is no pointer.
    fn shape_of(&self, frame: &Frame<'a>, expression: Handle<Expression>) -> Shape<'a> {
        match self.type_of(frame, expression) {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => Shape::Scalar(*scalar),
            TypeInner::Vector { size, scalar } => Shape::Vector(*size as u32, *scalar),
            inner => Shape::Of(inner),
        }
    }

    /// The kind of an expression's scalars.
    fn kind_of(&self, frame: &Frame<'a>, expression: Handle<Expression>) -> Result<Kind> {
        let inner = self.type_of(frame, expression);
        let scalar = match inner {
            TypeInner::CooperativeMatrix { scalar, .. } => Some(*scalar),
            other => other.scalar(),
        };
        Kind::of(scalar.with_context(|| format!("{inner:?} has no scalars of one kind"))?)
    }

    fn layout(root: &places::Base) -> Layout {
        match root {
            places::Base::Buffer(_) => Layout::Buffer,
            _ => Layout::Words,
        }
    }

    fn check_size(&self) -> Result<()> {
        if self.program.ops.len() > MOST_OPS {
            bail!("it has more than {MOST_OPS} instructions");
        }
        Ok(())
    }
}
