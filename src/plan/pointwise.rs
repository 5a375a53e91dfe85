//! Generated WGSL for pointwise groups: each thread computes four consecutive output elements.
//!
//! The text depends on what the group computes and on how its inputs are strided, never on plain sizes:
//! those are parameters. Views are index arithmetic, so a transpose or a slice inside a group costs no copy.

use std::fmt::Write;

use smallvec::SmallVec;

use crate::device::{Access, Source};
use crate::dtype::{DType, Register};
use crate::graph::lower::{Arg, Lowering, Pointwise, Strided, View, ViewAxis, fold, link_prelude};
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

struct Load<'a> {
    input: Input,
    dtype: DType,
    view: &'a View,
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
    /// Node `i` and the scalars it takes.
    pub(crate) fn single(
        graph: &Graph,
        lowerings: &'a [Lowering],
        inlined: &[bool],
        i: usize,
    ) -> Self {
        let node = &graph.nodes[i];
        let mut group = Group {
            shape: node.spec.shape.clone(),
            members: Vec::new(),
            loads: Vec::new(),
            store: node.spec.dtype,
        };
        group.add(graph, lowerings, inlined, i);
        group
    }

    fn add(
        &mut self,
        graph: &Graph,
        lowerings: &'a [Lowering],
        inlined: &[bool],
        i: usize,
    ) -> usize {
        let node = &graph.nodes[i];
        let Lowering::Pointwise(pointwise) = &lowerings[i] else {
            unreachable!("only pointwise nodes are grouped");
        };
        let mut of_input: SmallVec<[Option<Operand>; 4]> =
            smallvec::smallvec![None; node.inputs.len()];
        for (_, arg) in &pointwise.args {
            let Arg::Input { input, view } = arg else { continue };
            let operand = match node.inputs[*input] {
                Input::Node(j) if inlined[j as usize] => {
                    Operand::Member(self.add(graph, lowerings, inlined, j as usize))
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

    let space = Space::new(group);
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

/// How a load's buffer is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vector,
    Scalar,
}

fn stored(dtype: DType, kind: Kind) -> &'static str {
    match (dtype, kind) {
        (DType::F32, Kind::Vector) => "vec4<f32>",
        (DType::F16, Kind::Vector) => "vec4<f16>",
        (DType::I32, Kind::Vector) => "vec4<i32>",
        (DType::U32 | DType::Bool, Kind::Vector) => "vec4<u32>",
        (DType::F32, Kind::Scalar) => "f32",
        (DType::F16, Kind::Scalar) => "f16",
        (DType::I32, Kind::Scalar) => "i32",
        // Four bytes a word, however they are read.
        (DType::U8, _) | (DType::U32 | DType::Bool, Kind::Scalar) => "u32",
    }
}

fn unpack_vector(dtype: DType, word: &str) -> String {
    match dtype {
        DType::F16 => format!("vec4<f32>({word})"),
        DType::Bool => format!("{word} != vec4<u32>(0u)"),
        DType::U8 => format!("unpack_bytes({word})"),
        _ => word.to_string(),
    }
}

fn unpack_scalar(dtype: DType, buffer: &str, index: &str) -> String {
    match dtype {
        DType::F16 => format!("f32({buffer}[{index}])"),
        DType::Bool => format!("{buffer}[{index}] != 0u"),
        DType::U8 => format!("({buffer}[({index}) / 4u] >> (8u * (({index}) % 4u))) & 255u"),
        _ => format!("{buffer}[{index}]"),
    }
}

fn pack(dtype: DType, value: &str) -> String {
    match dtype {
        DType::F16 => format!("vec4<f16>({value})"),
        DType::Bool => format!("select(vec4<u32>(0u), vec4<u32>(1u), {value})"),
        DType::U8 => format!("pack_bytes({value})"),
        _ => value.to_string(),
    }
}

/// The uniform struct: named words.
#[derive(Default)]
struct Fields {
    names: Vec<String>,
    values: Vec<u32>,
}

impl Fields {
    fn add(&mut self, name: &str, value: u32) {
        self.names.push(name.to_string());
        self.values.push(value);
    }

    fn declarations(&self) -> String {
        self.names.iter().map(|name| format!("    {name}: u32,\n")).collect()
    }
}

/// The output's axes after those that every load walks alike are merged.
struct Space {
    sizes: Vec<usize>,
    /// For each load the stride and window along each axis.
    axes: Vec<Vec<ViewAxis>>,
    offsets: Vec<i64>,
    walk: Walk,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// Every load is read at the output's own index, or is one element.
    Flat,
    /// Coordinates are needed; four consecutive elements lie in one row.
    Rows,
    /// Coordinates are needed for each element.
    Lanes,
}

impl Space {
    fn new(group: &Group) -> Self {
        let own = group.shape.strides();
        let axes: Vec<Vec<ViewAxis>> = group
            .loads
            .iter()
            .map(|load| match load.view {
                View::Same => own.iter().map(|&stride| ViewAxis { stride, window: None }).collect(),
                View::Strided(Strided { axes, .. }) => axes.to_vec(),
            })
            .collect();
        let offsets = group
            .loads
            .iter()
            .map(|load| match load.view {
                View::Same => 0,
                View::Strided(strided) => strided.offset,
            })
            .collect();
        let mut space = Space { sizes: group.shape.to_vec(), axes, offsets, walk: Walk::Lanes };
        space.merge();
        let flat = |i: usize| space.is_flat(i) || space.is_single(i);
        space.walk = if (0..space.axes.len()).all(flat) {
            Walk::Flat
        } else if space.sizes.last().is_some_and(|size| size % 4 == 0) {
            Walk::Rows
        } else {
            Walk::Lanes
        };
        space
    }

    fn merge(&mut self) {
        // Axes of size 1 have no coordinate to walk, unless a window may leave even that one out.
        for axis in (0..self.sizes.len()).rev() {
            if self.sizes[axis] == 1 && self.axes.iter().all(|a| a[axis].window.is_none()) {
                self.sizes.remove(axis);
                for a in &mut self.axes {
                    a.remove(axis);
                }
            }
        }
        for axis in (1..self.sizes.len()).rev() {
            let size = self.sizes[axis] as i64;
            let together = self.axes.iter().all(|a| {
                let (outer, inner) = (a[axis - 1], a[axis]);
                outer.window.is_none()
                    && inner.window.is_none()
                    && outer.stride == inner.stride * size
            });
            if together {
                self.sizes[axis - 1] *= self.sizes[axis];
                self.sizes.remove(axis);
                for a in &mut self.axes {
                    a[axis - 1].stride = a[axis].stride;
                    a.remove(axis);
                }
            }
        }
    }

    fn is_flat(&self, load: usize) -> bool {
        match &self.axes[load][..] {
            [] => self.offsets[load] == 0,
            [axis] => axis.stride == 1 && axis.window.is_none() && self.offsets[load] == 0,
            _ => false,
        }
    }

    fn is_single(&self, load: usize) -> bool {
        self.axes[load].iter().all(|axis| axis.stride == 0 && axis.window.is_none())
    }

    /// Writes what all loads share: the sizes and the function from an index to coordinates.
    fn declare(
        &self,
        elements: usize,
        params: &mut Fields,
        helpers: &mut String,
        reads: &mut String,
    ) {
        if self.walk == Walk::Flat {
            return;
        }
        let rank = self.sizes.len();
        for (axis, size) in self.sizes.iter().enumerate() {
            params.add(&format!("d{axis}"), *size as u32);
        }
        let mut body = String::from("    var r = e;\n    var c: array<u32, RANK>;\n");
        for axis in (1..rank).rev() {
            let _ = writeln!(body, "    c[{axis}] = r % p.d{axis};\n    r = r / p.d{axis};");
        }
        let _ = write!(
            helpers,
            "const RANK: u32 = {rank}u;\n\n\
             // Coordinates of element e of the output.\n\
             fn coordinates(e: u32) -> array<u32, RANK> {{\n{body}    c[0] = r;\n    return c;\n}}\n\n"
        );
        if self.walk == Walk::Rows {
            reads.push_str("    let c = coordinates(4u * q);\n");
        } else {
            params.add("last", elements as u32 - 1);
            // The last quad may reach beyond the end; it reads the last element again.
            for lane in 0..4 {
                let _ = writeln!(
                    reads,
                    "    let c{lane} = coordinates(min(4u * q + {lane}u, p.last));"
                );
            }
        }
    }

    /// Writes how load `i` is read into `v<i>` (and `in<i>`), and says how its buffer is declared.
    fn read(
        &self,
        i: usize,
        load: &Load,
        params: &mut Fields,
        helpers: &mut String,
        reads: &mut String,
    ) -> Kind {
        let register = load.dtype.register().scalar();
        if self.is_single(i) {
            params.add(&format!("o{i}"), self.offsets[i] as u32);
            let element = unpack_scalar(load.dtype, &format!("x{i}"), &format!("p.o{i}"));
            let _ = writeln!(reads, "    let v{i} = vec4<{register}>({element});");
            return Kind::Scalar;
        }
        if self.walk == Walk::Flat {
            let vector = unpack_vector(load.dtype, &format!("x{i}[q]"));
            let _ = writeln!(reads, "    let v{i} = {vector};");
            return Kind::Vector;
        }
        self.declare_load(i, load, params, helpers);
        let windowed = self.axes[i].iter().any(|axis| axis.window.is_some());
        if self.walk == Walk::Rows && self.reads_vectors(i) {
            let vector = unpack_vector(load.dtype, &format!("x{i}[at{i}(c) / 4u]"));
            if windowed {
                let zero = zero(load.dtype.register());
                let _ = writeln!(
                    reads,
                    "    let in{i} = vec4<bool>(inside{i}(c));\n    var v{i} = vec4<{register}>({zero});\n    \
                     if (in{i}.x) {{ v{i} = {vector}; }}"
                );
            } else {
                let _ = writeln!(reads, "    let v{i} = {vector};");
            }
            return Kind::Vector;
        }
        let lane = |k: usize| match self.walk {
            Walk::Rows => format!("shifted(c, {k}u)"),
            _ => format!("c{k}"),
        };
        if self.walk == Walk::Rows && !helpers.contains("fn shifted(") {
            helpers.push_str(
                "fn shifted(c: array<u32, RANK>, by: u32) -> array<u32, RANK> {\n    \
                 var s = c;\n    s[RANK - 1u] += by;\n    return s;\n}\n\n",
            );
        }
        let four = |f: &str| -> String {
            (0..4).map(|k| format!("{f}{i}({})", lane(k))).collect::<Vec<_>>().join(", ")
        };
        if windowed {
            let _ = writeln!(reads, "    let in{i} = vec4<bool>({});", four("inside"));
        }
        let _ = writeln!(reads, "    let v{i} = vec4<{register}>({});", four("get"));
        Kind::Scalar
    }

    /// True if the four elements of a quad lie together in the buffer of load `i`, at a multiple of four.
    fn reads_vectors(&self, i: usize) -> bool {
        let Some((inner, outer)) = self.axes[i].split_last() else { return false };
        inner.stride == 1
            && inner.window.is_none()
            && self.offsets[i] % 4 == 0
            && outer.iter().all(|axis| axis.stride % 4 == 0)
    }

    /// Writes `at<i>` (coordinates to index), `inside<i>` if there are windows, and `get<i>`.
    fn declare_load(&self, i: usize, load: &Load, params: &mut Fields, helpers: &mut String) {
        params.add(&format!("o{i}"), self.offsets[i] as u32);
        let mut sum = format!("p.o{i}");
        let mut conditions = Vec::new();
        for (k, axis) in self.axes[i].iter().enumerate() {
            if axis.stride == 0 && axis.window.is_none() {
                continue;
            }
            let mut coordinate = format!("c[{k}]");
            if let Some(window) = axis.window {
                params.add(&format!("l{i}_{k}"), window.low as u32);
                params.add(&format!("n{i}_{k}"), window.len as u32);
                // Below the window the difference wraps to a number beyond its length.
                let from_low = format!("(c[{k}] - p.l{i}_{k})");
                if window.dilation == 1 {
                    conditions.push(format!("{from_low} < p.n{i}_{k}"));
                    coordinate = from_low;
                } else {
                    params.add(&format!("g{i}_{k}"), window.dilation as u32);
                    let step = format!("p.g{i}_{k}");
                    conditions.push(format!("{from_low} % {step} == 0u"));
                    conditions.push(format!("{from_low} / {step} < p.n{i}_{k}"));
                    coordinate = format!("({from_low} / {step})");
                }
            }
            params.add(&format!("s{i}_{k}"), axis.stride as u32);
            let _ = write!(sum, " + {coordinate} * p.s{i}_{k}");
        }
        let _ =
            write!(helpers, "fn at{i}(c: array<u32, RANK>) -> u32 {{\n    return {sum};\n}}\n\n");
        let register = load.dtype.register();
        let mut guard = String::new();
        if !conditions.is_empty() {
            let _ = write!(
                helpers,
                "fn inside{i}(c: array<u32, RANK>) -> bool {{\n    return {};\n}}\n\n",
                conditions.join(" && ")
            );
            guard = format!("    if (!inside{i}(c)) {{ return {}; }}\n", zero(register));
        }
        if !(self.walk == Walk::Rows && self.reads_vectors(i)) {
            let element = unpack_scalar(load.dtype, &format!("x{i}"), "at");
            let _ = write!(
                helpers,
                "fn get{i}(c: array<u32, RANK>) -> {} {{\n{guard}    let at = at{i}(c);\n    return {element};\n}}\n\n",
                register.scalar()
            );
        }
    }
}

fn zero(register: Register) -> &'static str {
    match register {
        Register::F32 => "0.0",
        Register::I32 => "0i",
        Register::U32 => "0u",
        Register::Bool => "false",
    }
}
