//! Writes WGSL for the nodes of a kernel's IR: one function per op, one call per node, and the reads that the calls
//! need.
//!
//! The text depends on what the kernel computes and on how inputs are strided, never on sizes, which are parameters.

use std::fmt::{Arguments, Write};

use super::iteration_space::LoadSource;
use super::iteration_space::{Declared, Fields, Position, Varying, stored};
use super::kernel_ir::{Code, Instance, KernelIr, Operand};
use super::regrouping::Hidden;
use crate::device::ShaderSource;
use crate::dtype::{DType, Register};
use crate::graph::Input;
use crate::graph::lower::{Elementwise, RuntimeOffset, Term};
use crate::wgsl::Declarations;

/// A generated kernel.
pub(super) struct EmittedKernel {
    pub(super) source: ShaderSource,
    pub(super) grid: [u32; 3],
    /// Its storage bindings, in order, each with its section's index.
    pub(super) binds: Vec<(usize, Bound)>,
    /// The contents of its uniforms.
    pub(super) params: Vec<Vec<u32>>,
    /// Which words of the last uniform depend on runtime scalars.
    pub(super) varying: Vec<Varying>,
    /// Additions and multiplications of its inner loops; 0 if unknown.
    pub(super) flops: u64,
    /// How many iterations the loops of an invocation make at most.
    pub(super) iterations: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// A load of the kernel IR.
    Load(usize),
    /// An output of the kernel IR.
    Output(usize),
    /// A partial result of a fold.
    Temp(usize),
    /// A binding of the anchor's own kernel.
    Own(usize),
}

/// The values to which a piece of code has already given names.
#[derive(Clone)]
pub(super) struct Defined {
    loads: Vec<bool>,
    instances: Vec<bool>,
}

impl Defined {
    pub(super) fn nothing(ir: &KernelIr) -> Self {
        Defined { loads: vec![false; ir.loads.len()], instances: vec![false; ir.instances.len()] }
    }

    pub(super) fn instance(&mut self, i: usize) {
        self.instances[i] = true;
    }

    /// Records that the operand has a name.
    pub(super) fn know(&mut self, operand: Operand) {
        match operand {
            Operand::Load(i) | Operand::Inside(i) => self.loads[i] = true,
            Operand::Instance(i) => self.instances[i] = true,
            Operand::RuntimeScalar(_) => {}
        }
    }
}

/// The parts that all sections of a kernel share.
#[derive(Default)]
pub(super) struct Common {
    functions: Vec<Function>,
    /// The buffers of which a section reads one element.
    singles: Vec<(Input, DType, String)>,
}

impl Common {
    /// Declares a function under a unique name, unless it is already declared.
    pub(super) fn function(&mut self, name: &str, text: String) {
        if !self.functions.iter().any(|known| known.name == name) {
            self.functions.push(Function { op: "", name: name.to_string(), text });
        }
    }

    /// The name of the op's function with this text; declares the function if necessary. The same op has another text
    /// for other types, as may another op of the same name.
    fn function_of_op(&mut self, op: &'static str, text: String) -> String {
        if let Some(known) = self.functions.iter().find(|known| known.text == text) {
            return known.name.clone();
        }
        // The prefix avoids the names of WGSL's own functions.
        let name = match self.functions.iter().filter(|known| known.op == op).count() {
            0 => format!("op_{op}"),
            others => format!("op_{op}_{others}"),
        };
        self.functions.push(Function { op, name: name.clone(), text });
        name
    }

    /// Forgets that a section has declared a buffer of which it reads one element.
    pub(super) fn forget(&mut self, source: LoadSource) {
        self.singles.retain(|(input, ..)| source != LoadSource::Value(*input));
    }

    pub(super) fn functions(&self) -> String {
        let mut all = String::new();
        for Function { name, text, .. } in &self.functions {
            let _ = writeln!(all, "fn {name}{text}");
        }
        all
    }
}

struct Function {
    /// The name of the op that it computes, if it computes one.
    op: &'static str,
    name: String,
    /// The function without its name.
    text: String,
}

/// Writes the code of one kernel IR.
pub(super) struct Writer<'c, 'b, 'a> {
    pub(super) ir: &'b KernelIr<'a>,
    pub(super) params: Fields,
    /// Functions that find and read what the code needs.
    pub(super) helpers: Declarations,
    pub(super) common: &'c mut Common,
    /// How many runtime scalars the calls have taken.
    scalars: usize,
    kinds: Vec<Declared>,
    /// The values that are hidden from the driver.
    pub(super) hidden: Hidden,
    /// The buffers of loads, and whether this writer declares them.
    buffers: Vec<(String, bool)>,
}

impl<'c, 'b, 'a> Writer<'c, 'b, 'a> {
    /// `uniform` is the uniform's name and a point; all other names of the module begin with `prefix`.
    pub(super) fn new(
        ir: &'b KernelIr<'a>,
        uniform: &'static str,
        prefix: &str,
        common: &'c mut Common,
    ) -> Self {
        let mut buffers = Vec::with_capacity(ir.loads.len());
        for (i, load) in ir.loads.iter().enumerate() {
            let own = format!("{prefix}x{i}");
            let shared = match load.source {
                LoadSource::Value(input) if ir.space.is_single(i) => {
                    let same = |(i, d, _): &&(_, _, _)| *i == input && *d == load.dtype;
                    let known = common.singles.iter().find(same).map(|(_, _, name)| name.clone());
                    if known.is_none() {
                        common.singles.push((input, load.dtype, own.clone()));
                    }
                    known
                }
                _ => None,
            };
            buffers.push(shared.map_or((own, true), |name| (name, false)));
        }
        Writer {
            ir,
            params: Fields::new(uniform, prefix),
            helpers: Declarations::default(),
            common,
            scalars: 0,
            kinds: vec![Declared::Scalar; ir.loads.len()],
            hidden: Hidden::find(ir),
            buffers,
        }
    }

    /// The statements after which every one of `wanted` has a name.
    pub(super) fn compute(
        &mut self,
        position: Position,
        wanted: impl IntoIterator<Item = Operand>,
        defined: &mut Defined,
    ) -> String {
        let mut text = String::new();
        for operand in wanted {
            self.define(operand, position, defined, &mut text);
        }
        text
    }

    fn define(
        &mut self,
        operand: Operand,
        position: Position,
        defined: &mut Defined,
        text: &mut String,
    ) {
        let ir = self.ir;
        match operand {
            Operand::Load(i) | Operand::Inside(i) => {
                if !std::mem::replace(&mut defined.loads[i], true) {
                    let (params, helpers) = (&mut self.params, &mut self.helpers);
                    let (load, buffer) = (&ir.loads[i], &self.buffers[i].0);
                    let (read, kind) = ir.space.read(i, load, buffer, position, params, helpers);
                    self.kinds[i] = kind;
                    text.push_str(&read);
                }
            }
            Operand::Instance(i) => {
                if std::mem::replace(&mut defined.instances[i], true) {
                    return;
                }
                let instance = &ir.instances[i];
                for &operand in &instance.operands {
                    self.define(operand, position, defined, text);
                }
                if let Code::Elementwise(elementwise) = instance.code {
                    let call = self.call(i, instance, elementwise);
                    let mut value = rounded(instance.dtype, format_args!("{call}"));
                    if self.hidden.result(i) {
                        value = self.hidden(&value);
                    }
                    let _ = writeln!(text, "let t{i} = {value};");
                }
            }
            Operand::RuntimeScalar(_) => {}
        }
    }

    /// The float `value`, hidden from the driver's algebra: no compiler sees through bits that are combined with a
    /// number which only the host knows to be 0.
    fn hidden(&mut self, value: &str) -> String {
        let zero = self.params.add(format_args!("zero"), 0);
        format!("bitcast<vec4<f32>>(bitcast<vec4<u32>>({value}) ^ vec4<u32>({zero}))")
    }

    fn call(&mut self, i: usize, instance: &Instance, elementwise: &Elementwise) -> String {
        let text = self.function_text(instance, elementwise);
        let name = self.common.function_of_op(elementwise.name, text);
        let mut list = String::new();
        for (k, operand) in instance.operands.iter().enumerate() {
            if k > 0 {
                list.push_str(", ");
            }
            if let Operand::RuntimeScalar(word) = *operand {
                let at = self.scalars;
                self.scalars += 1;
                let mut scalar = RuntimeOffset::default();
                scalar.add_term(Term { node: instance.node, ..Term::own(word, 1, 0) });
                list.push_str(&self.params.place(format_args!("w{at}"), &scalar));
            } else if self.hidden.operand(i, k) {
                list.push_str(&self.hidden(&operand_name(*operand)));
            } else {
                list.push_str(&operand_name(*operand));
            }
        }
        format!("{name}({list})")
    }

    /// A node's function without its name.
    fn function_text(&self, instance: &Instance, elementwise: &Elementwise) -> String {
        let mut text = String::from("(");
        for (k, ((name, _), operand)) in elementwise.args.iter().zip(&instance.operands).enumerate()
        {
            let ty = match operand {
                Operand::RuntimeScalar(_) => "u32".to_string(),
                other => vector(self.ir.register(*other)),
            };
            let _ = write!(text, "{}{name}: {ty}", if k > 0 { ", " } else { "" });
        }
        let result = instance.dtype.register();
        let first = instance.operands.first().map_or(result, |o| self.ir.register(*o));
        let lines = elementwise.formula.lines(&vector(first));
        let _ = writeln!(text, ") -> {} {{\n{lines}}}", vector(result));
        text
    }

    /// The name of the buffer that output `k` is written to.
    pub(super) fn target(&self, k: usize) -> String {
        match self.ir.outputs[k].replaces {
            Some(load) => self.buffers[load].0.clone(),
            None => format!("{}y{k}", self.params.prefix),
        }
    }

    /// The buffers that the code reads and that no other section has declared: what they are, names, types. Buffers
    /// that the code also writes are declared as outputs.
    pub(super) fn loads(&self) -> Vec<(Bound, String, &'static str)> {
        let replaced = |i: usize| self.ir.outputs.iter().any(|o| o.replaces == Some(i));
        let own = self.ir.reads().filter(|(i, _)| !replaced(*i) && self.buffers[*i].1);
        own.map(|(i, load)| {
            (Bound::Load(i), self.buffers[i].0.clone(), stored(load.dtype, self.kinds[i]))
        })
        .collect()
    }

    pub(super) fn uses_f16(&self) -> bool {
        let loads = self.ir.reads().any(|(_, load)| load.dtype == DType::F16);
        loads || self.ir.instances.iter().any(|i| i.dtype == DType::F16)
    }

    /// The kernel's name: that of its last op, and how many turns it makes.
    pub(super) fn label(&self, graph: &crate::graph::Graph) -> String {
        let last = self.ir.outputs.last().map(|output| output.node);
        let name = last.map_or("kernel", |node| graph.nodes[node as usize].op.name());
        match &self.ir.roll {
            Some(roll) => format!("{name} ({} turns)", roll.turns),
            None => name.to_string(),
        }
    }
}

pub(super) fn declare(out: &mut String, binding: usize, access: &str, name: &str, ty: &str) {
    let _ =
        writeln!(out, "@group(0) @binding({binding}) var<storage, {access}> {name}: array<{ty}>;");
}

pub(super) fn operand_name(operand: Operand) -> String {
    match operand {
        Operand::Load(i) => format!("v{i}"),
        Operand::Inside(i) => format!("in{i}"),
        Operand::Instance(i) => format!("t{i}"),
        Operand::RuntimeScalar(word) => format!("w{word}"),
    }
}

pub(super) fn vector(register: Register) -> String {
    format!("vec4<{}>", register.scalar())
}

/// The value as a buffer would return it: registers are wider than some dtypes.
pub(super) fn rounded(dtype: DType, value: Arguments) -> String {
    match dtype {
        DType::F16 => format!("narrow_4({value})"),
        DType::U8 => format!("{value} & vec4<u32>(255u)"),
        _ => value.to_string(),
    }
}

/// One lane of a vector as a buffer holds it.
pub(super) fn pack_lane(dtype: DType, value: Arguments) -> String {
    match dtype {
        DType::F16 => format!("f16({value})"),
        DType::Bool => format!("select(0u, 1u, {value})"),
        _ => value.to_string(),
    }
}

pub(super) const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// Moves lines to the right.
pub(super) fn indented(text: &str, by: usize) -> String {
    let mut all = String::with_capacity(text.len() + text.len() / 4);
    for line in text.lines() {
        let _ = writeln!(all, "{:by$}{line}", "");
    }
    all
}

/// True if the load is a partial result that the fold's first kernel wrote.
pub(super) fn temp_of(source: LoadSource) -> Option<usize> {
    match source {
        LoadSource::Temp(i) => Some(i),
        _ => None,
    }
}
