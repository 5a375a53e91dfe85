//! WGSL for the nodes of a body: one function an op, one call a node, and the reads that the calls need.
//!
//! The text depends on what is computed and on how inputs are strided, never on plain sizes: those are parameters.

use std::fmt::{Arguments, Write};

use super::body::{Body, Code, Instance, Operand, Source};
use super::space::{Fields, Kind, Place, stored};
use crate::device::Source as Module;
use crate::dtype::{DType, Register};
use crate::graph::Input;
use crate::graph::lower::Pointwise;

/// A generated kernel.
pub(super) struct Kernel {
    pub(super) source: Module,
    pub(super) grid: [u32; 3],
    /// What its storage bindings are bound to, in order: things of its parts, by the parts' numbers.
    pub(super) binds: Vec<(usize, Bound)>,
    /// The contents of its uniforms.
    pub(super) params: Vec<Vec<u32>>,
    /// Which words of the last uniform are words of nodes: position, node, word.
    pub(super) words: Vec<(usize, u32, usize)>,
    /// Additions and multiplications of its inner loops; 0 if nobody has counted them.
    pub(super) flops: u64,
    /// What the loops of an invocation make at most.
    pub(super) iterations: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// A load of the body.
    Load(usize),
    /// An output of the body.
    Output(usize),
    /// A partial result.
    Temp(usize),
    /// Binding of the anchor's own kernel.
    Own(usize),
}

/// What a piece of code can name already.
#[derive(Clone)]
pub(super) struct Defined {
    loads: Vec<bool>,
    instances: Vec<bool>,
}

impl Defined {
    pub(super) fn nothing(body: &Body) -> Self {
        Defined {
            loads: vec![false; body.loads.len()],
            instances: vec![false; body.instances.len()],
        }
    }

    pub(super) fn instance(&mut self, i: usize) {
        self.instances[i] = true;
    }

    /// The operand has a name already.
    pub(super) fn know(&mut self, operand: Operand) {
        match operand {
            Operand::Load(i) | Operand::Inside(i) => self.loads[i] = true,
            Operand::Instance(i) => self.instances[i] = true,
            Operand::Word(_) => {}
        }
    }
}

/// What all parts of a kernel use.
#[derive(Default)]
pub(super) struct Common {
    /// Names and texts.
    functions: Vec<(String, String)>,
    /// Buffers of which one element is read.
    singles: Vec<(Input, DType, String)>,
}

impl Common {
    /// Declares a function under a name of its own, if it is not there.
    pub(super) fn function(&mut self, name: &str, text: String) {
        if !self.functions.iter().any(|(known, _)| known == name) {
            self.functions.push((name.to_string(), text));
        }
    }

    pub(super) fn functions(&self) -> String {
        let mut all = String::new();
        for (name, text) in &self.functions {
            let _ = writeln!(all, "fn {name}{text}");
        }
        all
    }
}

/// Ops of one expression: all of Adam's formula is shallower.
pub(super) const DEEP: usize = 16;

/// Writes the code of one body.
pub(super) struct Writer<'c, 'b, 'a> {
    pub(super) body: &'b Body<'a>,
    pub(super) params: Fields,
    pub(super) helpers: String,
    pub(super) words: Vec<(usize, u32, usize)>,
    pub(super) common: &'c mut Common,
    kinds: Vec<Kind>,
    /// How many ops stand on each other in each instance.
    depths: Vec<usize>,
    /// The buffers of loads, and whether their declaration is this body's.
    buffers: Vec<(String, bool)>,
}

impl<'c, 'b, 'a> Writer<'c, 'b, 'a> {
    /// `uniform` is the uniform's name and a point; all other names of a module begin with `part`.
    pub(super) fn new(
        body: &'b Body<'a>,
        uniform: &'static str,
        part: &str,
        common: &'c mut Common,
    ) -> Self {
        let mut buffers = Vec::with_capacity(body.loads.len());
        for (i, load) in body.loads.iter().enumerate() {
            let own = format!("{part}x{i}");
            let shared = match load.source {
                Source::Value(input) if body.space.is_single(i) => {
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
            body,
            params: Fields::new(uniform, part),
            helpers: String::new(),
            words: Vec::new(),
            common,
            kinds: vec![Kind::Scalar; body.loads.len()],
            depths: vec![0; body.instances.len()],
            buffers,
        }
    }

    /// Statements after which every one of `wanted` has a name.
    pub(super) fn compute(
        &mut self,
        place: Place,
        wanted: impl IntoIterator<Item = Operand>,
        defined: &mut Defined,
    ) -> String {
        let mut text = String::new();
        for operand in wanted {
            self.define(operand, place, defined, &mut text);
        }
        text
    }

    fn define(&mut self, operand: Operand, place: Place, defined: &mut Defined, text: &mut String) {
        let body = self.body;
        match operand {
            Operand::Load(i) | Operand::Inside(i) => {
                if !std::mem::replace(&mut defined.loads[i], true) {
                    let (params, helpers) = (&mut self.params, &mut self.helpers);
                    let (load, buffer) = (&body.loads[i], &self.buffers[i].0);
                    let (read, kind) = body.space.read(i, load, buffer, place, params, helpers);
                    self.kinds[i] = kind;
                    text.push_str(&read);
                }
            }
            Operand::Instance(i) => {
                if std::mem::replace(&mut defined.instances[i], true) {
                    return;
                }
                let instance = &body.instances[i];
                for &operand in &instance.operands {
                    self.define(operand, place, defined, text);
                }
                if let Code::Pointwise(pointwise) = instance.code {
                    let call = self.call(instance, pointwise);
                    let value = rounded(instance.dtype, format_args!("{call}"));
                    let value = self.bounded(i, value);
                    let _ = writeln!(text, "let t{i} = {value};");
                }
            }
            Operand::Word(_) => {}
        }
    }

    /// The value of instance `i`, hidden from the driver's algebra where it is the end of a long expression of floats.
    ///
    /// WGSL lets a driver reassociate and distribute. Through hundreds of ops lavapipe's gathers factors until they
    /// overflow, so that a sum of small numbers becomes infinite. Bits that are combined with a number which only the
    /// host knows to be 0 are a value of their own to any compiler.
    fn bounded(&mut self, i: usize, value: String) -> String {
        let instance = &self.body.instances[i];
        let operands = instance.operands.iter().map(|operand| match *operand {
            Operand::Instance(j) => self.depths[j],
            _ => 0,
        });
        let depth = operands.max().unwrap_or(0) + 1;
        if depth < DEEP || instance.dtype.register() != Register::F32 {
            self.depths[i] = depth;
            return value;
        }
        let zero = self.params.add(format_args!("zero"), 0);
        format!("bitcast<vec4<f32>>(bitcast<vec4<u32>>({value}) ^ vec4<u32>({zero}))")
    }

    /// Ops that stand on each other in what was written.
    pub(super) fn depth(&self) -> usize {
        self.depths.iter().copied().max().unwrap_or(0)
    }

    fn call(&mut self, instance: &Instance, pointwise: &Pointwise) -> String {
        let text = self.function_text(instance, pointwise);
        let functions = &mut self.common.functions;
        let name = match functions.iter().find(|(_, known)| *known == text) {
            Some((name, _)) => name.clone(),
            None => {
                // The same op on other types, or another op of the same name.
                // The prefix keeps clear of WGSL's own functions.
                let base = format!("op_{}", pointwise.name);
                let taken = functions.iter().filter(|(n, _)| n.starts_with(&base)).count();
                let name = if taken == 0 { base } else { format!("{base}_{taken}") };
                functions.push((name.clone(), text));
                name
            }
        };
        let mut list = String::new();
        for (k, operand) in instance.operands.iter().enumerate() {
            if k > 0 {
                list.push_str(", ");
            }
            if let Operand::Word(word) = *operand {
                let at = self.words.len();
                self.words.push((self.params.values.len(), instance.node, word));
                list.push_str(&self.params.add(format_args!("w{at}"), 0));
            } else {
                list.push_str(&operand_name(*operand));
            }
        }
        format!("{name}({list})")
    }

    /// Everything of a node's function but its name.
    fn function_text(&self, instance: &Instance, pointwise: &Pointwise) -> String {
        let mut text = String::from("(");
        for (k, ((name, _), operand)) in pointwise.args.iter().zip(&instance.operands).enumerate() {
            let ty = match operand {
                Operand::Word(_) => "u32".to_string(),
                other => vector(self.body.register(*other)),
            };
            let _ = write!(text, "{}{name}: {ty}", if k > 0 { ", " } else { "" });
        }
        let result = instance.dtype.register();
        let first = instance.operands.first().map_or(result, |o| self.body.register(*o));
        let body = with_vector_type(&pointwise.body, first);
        let _ = writeln!(text, ") -> {} {{", vector(result));
        if body.contains("return ") {
            let _ = writeln!(text, "{}\n}}", body.trim_end());
        } else {
            let _ = writeln!(text, "    return {body};\n}}");
        }
        text
    }

    /// The name of the buffer that output `k` is written to.
    pub(super) fn target(&self, k: usize) -> String {
        match self.body.outputs[k].replaces {
            Some(load) => self.buffers[load].0.clone(),
            None => format!("{}y{k}", self.params.part),
        }
    }

    /// The buffers that the code reads and nobody has declared: what they are, names, types. Those that it writes too
    /// are declared there.
    pub(super) fn loads(&self) -> Vec<(Bound, String, &'static str)> {
        let replaced = |i: usize| self.body.outputs.iter().any(|o| o.replaces == Some(i));
        let own = self.body.reads().filter(|(i, _)| !replaced(*i) && self.buffers[*i].1);
        own.map(|(i, load)| {
            (Bound::Load(i), self.buffers[i].0.clone(), stored(load.dtype, self.kinds[i]))
        })
        .collect()
    }

    pub(super) fn uses_f16(&self) -> bool {
        let loads = self.body.reads().any(|(_, load)| load.dtype == DType::F16);
        loads || self.body.instances.iter().any(|i| i.dtype == DType::F16)
    }

    /// The name of the kernel: that of its last op, and how many turns it goes through.
    pub(super) fn label(&self, graph: &crate::graph::Graph) -> String {
        let last = self.body.outputs.last().map(|output| output.node);
        let name = last.map_or("kernel", |node| graph.nodes[node as usize].op.name());
        match &self.body.roll {
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
        Operand::Word(word) => format!("w{word}"),
    }
}

pub(super) fn vector(register: Register) -> String {
    format!("vec4<{}>", register.scalar())
}

/// The value as it would come back from a buffer: registers are wider than some dtypes.
pub(super) fn rounded(dtype: DType, value: Arguments) -> String {
    match dtype {
        DType::F16 => format!("vec4<f32>(vec4<f16>({value}))"),
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

/// True if the load comes from memory that an earlier kernel of the same body wrote.
pub(super) fn temp_of(source: Source) -> Option<usize> {
    match source {
        Source::Temp(i) => Some(i),
        _ => None,
    }
}

/// Puts the vector type of `register` in the place of the word `V`.
fn with_vector_type(body: &str, register: Register) -> String {
    let mut out = String::with_capacity(body.len() + 16);
    let mut before = ' ';
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if c == 'V' && !word(before) && !chars.peek().copied().is_some_and(word) {
            let _ = write!(out, "vec4<{}>", register.scalar());
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}
