//! Generated WGSL for pointwise groups: each thread computes four consecutive output elements.
//!
//! The text depends on what the group computes and on how its inputs are strided, never on plain sizes:
//! those are parameters. Views are index arithmetic, so a transpose or a slice inside a group costs no copy.

use std::fmt::Write;

use smallvec::SmallVec;

use super::fusion::Role;
use super::space::{Fields, Kind, Space, pack, stored};
use crate::device::{Access, Source};
use crate::dtype::{DType, Register};
use crate::graph::lower::{Arg, Lowering, Pointwise, View, fold, link_prelude};
use crate::graph::{Graph, Input};
use crate::shape::Shape;

/// Nodes that share a kernel, all over the elements of one shape.
pub(crate) struct Group<'a> {
    shape: Shape,
    members: Vec<Member<'a>>,
    loads: Vec<Load<'a>>,
    store: DType,
}

struct Member<'a> {
    pointwise: &'a Pointwise,
    node: u32,
    operands: SmallVec<[Operand; 4]>,
    result: Register,
}

#[derive(Clone, Copy)]
enum Operand {
    Load(usize),
    Inside(usize),
    Member(usize),
    Index,
    Word(usize),
}

/// An input as one kernel reads it.
pub(super) struct Load<'a> {
    input: Input,
    pub(super) dtype: DType,
    pub(super) view: &'a View,
}

/// A generated kernel.
pub(crate) struct Code {
    pub(crate) source: Source,
    pub(crate) grid: [u32; 3],
    pub(crate) params: Vec<u32>,
    /// Parameters that are words of nodes: position, node, word.
    pub(crate) words: Vec<(usize, u32, usize)>,
}

const WORKGROUP: u32 = 64;

impl<'a> Group<'a> {
    /// Node `i` and the nodes that are computed inside it.
    pub(super) fn new(graph: &Graph, lowerings: &'a [Lowering], roles: &[Role], i: usize) -> Self {
        let node = &graph.nodes[i];
        let mut group = Group {
            shape: node.spec.shape.clone(),
            members: Vec::new(),
            loads: Vec::new(),
            store: node.spec.dtype,
        };
        group.add(graph, lowerings, roles, i);
        group
    }

    fn add(&mut self, graph: &Graph, lowerings: &'a [Lowering], roles: &[Role], i: usize) -> usize {
        if let Some(known) = self.members.iter().position(|member| member.node == i as u32) {
            return known;
        }
        let node = &graph.nodes[i];
        let Lowering::Pointwise(pointwise) = &lowerings[i] else {
            unreachable!("only pointwise nodes are grouped");
        };
        let mut of_input: SmallVec<[Option<Operand>; 4]> =
            smallvec::smallvec![None; node.inputs.len()];
        for (_, arg) in &pointwise.args {
            let Arg::Input { input, view } = arg else { continue };
            let operand = match node.inputs[*input] {
                Input::Node(j) if roles[j as usize] != Role::Own => {
                    Operand::Member(self.add(graph, lowerings, roles, j as usize))
                }
                from => Operand::Load(self.load(from, graph.spec(from).dtype, view)),
            };
            of_input[*input] = Some(operand);
        }
        let operands = pointwise
            .args
            .iter()
            .map(|(_, arg)| match *arg {
                Arg::Input { input, .. } => of_input[input].expect("set above"),
                Arg::Inside { input } => match of_input[input] {
                    Some(Operand::Load(load)) => Operand::Inside(load),
                    // A scalar is the same everywhere, but the view may still have no element there.
                    _ => unreachable!("an input with a window is never inlined"),
                },
                Arg::Index => Operand::Index,
                Arg::Word(word) => Operand::Word(word),
            })
            .collect();
        let result = node.spec.dtype.register();
        self.members.push(Member { pointwise, node: i as u32, operands, result });
        self.members.len() - 1
    }

    fn load(&mut self, input: Input, dtype: DType, view: &'a View) -> usize {
        let same = |l: &Load| l.input == input && l.view == view;
        self.loads.iter().position(same).unwrap_or_else(|| {
            self.loads.push(Load { input, dtype, view });
            self.loads.len() - 1
        })
    }

    /// The inputs in the order of their bindings.
    pub(crate) fn loads(&self) -> impl Iterator<Item = Input> + '_ {
        self.loads.iter().map(|load| load.input)
    }

    /// The nodes that the kernel computes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().map(|member| member.node)
    }

    fn register(&self, operand: Operand) -> Register {
        match operand {
            Operand::Load(i) => self.loads[i].dtype.register(),
            Operand::Inside(_) => Register::Bool,
            Operand::Member(i) => self.members[i].result,
            Operand::Index | Operand::Word(_) => Register::U32,
        }
    }
}

/// Writes the kernel of `group`.
pub(crate) fn generate(group: &Group) -> Code {
    let elements = group.shape.elements();
    let quads = elements.div_ceil(4);
    let grid = fold((quads as u64).div_ceil(u64::from(WORKGROUP)));
    let mut params = Fields::default();
    params.add("quads", quads as u32);
    params.add("width", grid[0] * WORKGROUP);

    let space = Space::new(&group.shape, &group.loads);
    let mut reads = String::new();
    let mut helpers = String::new();
    space.declare(elements, &mut params, &mut helpers, &mut reads);
    let mut kinds = Vec::new();
    for (i, load) in group.loads.iter().enumerate() {
        kinds.push(space.read(i, load, &mut params, &mut helpers, &mut reads));
    }
    let mut words = Vec::new();
    let (functions, calls) = members(group, &mut params, &mut words);

    let f16 = group.store == DType::F16 || group.loads.iter().any(|l| l.dtype == DType::F16);
    let mut wgsl = String::new();
    if f16 {
        wgsl.push_str("enable f16;\n");
    }
    let _ = writeln!(wgsl, "struct Params {{\n{}}}\n", params.declarations());
    for (i, (load, kind)) in group.loads.iter().zip(&kinds).enumerate() {
        let _ = writeln!(
            wgsl,
            "@group(0) @binding({i}) var<storage, read> x{i}: array<{}>;",
            stored(load.dtype, *kind)
        );
    }
    let out = group.loads.len();
    let store = stored(group.store, Kind::Vector);
    let _ = writeln!(wgsl, "@group(0) @binding({out}) var<storage, read_write> y: array<{store}>;");
    let _ = writeln!(wgsl, "@group(0) @binding({}) var<uniform> p: Params;\n", out + 1);
    wgsl.push_str(&functions);
    wgsl.push_str(&helpers);
    let result = format!("t{}", group.members.len() - 1);
    let _ = write!(
        wgsl,
        "@compute @workgroup_size({WORKGROUP})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
         \x20   let q = id.y * p.width + id.x;\n\
         \x20   if (q >= p.quads) {{ return; }}\n\
         {reads}{calls}\x20   y[q] = {};\n}}\n",
        pack(group.store, &result)
    );
    link_prelude(&mut wgsl);

    let mut accesses = vec![Access::Read; group.loads.len()];
    accesses.push(Access::Write);
    let label = group.members.last().map_or("pointwise", |m| m.pointwise.name);
    let source = Source { label: label.to_string(), wgsl: wgsl.into(), accesses };
    Code { source, grid, params: params.values, words }
}

/// The functions that the members call, and the calls.
fn members(
    group: &Group,
    params: &mut Fields,
    words: &mut Vec<(usize, u32, usize)>,
) -> (String, String) {
    let mut functions: Vec<(String, String)> = Vec::new();
    let mut calls = String::new();
    for (i, member) in group.members.iter().enumerate() {
        let text = function_text(group, member);
        let name = match functions.iter().find(|(_, known)| *known == text) {
            Some((name, _)) => name.clone(),
            None => {
                // The same op on other types, or another op of the same name.
                // The prefix keeps clear of WGSL's own functions.
                let base = format!("op_{}", member.pointwise.name);
                let taken = functions.iter().filter(|(n, _)| n.starts_with(&base)).count();
                let name = if taken == 0 { base } else { format!("{base}_{taken}") };
                functions.push((name.clone(), text));
                name
            }
        };
        let mut list = String::new();
        for (k, operand) in member.operands.iter().enumerate() {
            if k > 0 {
                list.push_str(", ");
            }
            let _ = match *operand {
                Operand::Load(load) => write!(list, "v{load}"),
                Operand::Inside(load) => write!(list, "in{load}"),
                Operand::Member(m) => write!(list, "t{m}"),
                Operand::Index => write!(list, "vec4<u32>(4u * q) + vec4<u32>(0u, 1u, 2u, 3u)"),
                Operand::Word(word) => {
                    let field = format!("w{}", words.len());
                    words.push((params.values.len(), member.node, word));
                    params.add(&field, 0);
                    write!(list, "p.{field}")
                }
            };
        }
        let _ = writeln!(calls, "    let t{i} = {name}({list});");
    }
    let functions =
        functions.into_iter().map(|(name, text)| format!("fn {name}{text}\n")).collect();
    (functions, calls)
}

/// Everything of a member's function but its name.
fn function_text(group: &Group, member: &Member) -> String {
    let mut text = String::from("(");
    for (k, ((name, arg), operand)) in
        member.pointwise.args.iter().zip(&member.operands).enumerate()
    {
        let register = group.register(*operand).scalar();
        let ty =
            if matches!(arg, Arg::Word(_)) { "u32".into() } else { format!("vec4<{register}>") };
        let _ = write!(text, "{}{name}: {ty}", if k > 0 { ", " } else { "" });
    }
    let first = member.operands.first().map_or(member.result, |o| group.register(*o));
    let body = with_vector_type(&member.pointwise.body, first);
    let _ = writeln!(text, ") -> vec4<{}> {{", member.result.scalar());
    if body.contains("return ") {
        let _ = writeln!(text, "{}\n}}", body.trim_end());
    } else {
        let _ = writeln!(text, "    return {body};\n}}");
    }
    text
}

/// Puts the vector type of `register` in the place of the word `V`.
fn with_vector_type(body: &str, register: Register) -> String {
    let mut out = String::with_capacity(body.len() + 16);
    let mut before = ' ';
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if c == 'V' && !word(before) && !chars.peek().copied().is_some_and(word) {
            let _ = write!(out, "vec4<{}>", register.scalar());
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}
