//! Kernels that fold: each row of elements that are folded together is walked by one thread, or by several that
//! join their results in workgroup memory; long rows are cut into chunks that a second kernel folds again.
//!
//! A kernel makes as many passes over its rows as folds follow on each other, and one more if something is stored for
//! each element afterwards: a softmax takes its maximum, its sum, then its quotients. What lies between two folds is
//! computed again in each pass, which is cheaper than memory. The order of every fold is fixed.

use std::fmt::Write;

use super::body::{Body, Code, Operand};
use super::code::{
    Bound, Defined, Kernel, LANES, Writer, indented, module, operand_name, pack_lane, rounded,
    temp_of, vector,
};
use super::space::{Coordinates, Flat, Kind, Place, pack, stored};
use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::Graph;
use crate::graph::lower::{Reduction, fold};

const WORKGROUP: usize = 64;

/// How the work of a body with folds is spread over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// Pieces of each row that are folded apart.
    pub(super) chunks: usize,
    /// Threads that walk one row, or one chunk of it, together.
    threads: usize,
}

impl Shares {
    pub(super) fn new(body: &Body, caps: &Caps) -> Self {
        let (rows, len) = (body.space.count(false), body.space.count(true));
        let inner = body.space.folds_inner();
        let steps = if inner { len.div_ceil(4) } else { len };
        let threads = match inner && !caps.cpu {
            true if steps >= 64 => 64,
            true if steps >= 16 => 16,
            _ => 1,
        };
        let lines = if inner { rows * threads } else { rows.div_ceil(4) };
        // On a processor a dispatch costs as much as reading some ten thousand elements.
        let (small, wanted, longest) =
            if caps.cpu { (1 << 16, 512, 1 << 14) } else { (1 << 12, 1 << 14, 1 << 12) };
        let turns = steps / threads;
        let chunks = if turns <= 64 || (rows * len <= small && turns <= longest) {
            1
        } else {
            (wanted / lines.max(1))
                .max(turns.div_ceil(longest))
                .clamp(1, (turns / 32).clamp(1, 1024))
        };
        Shares { chunks, threads }
    }

    /// As [`Shares::new`] for rows that are not cut.
    pub(super) fn whole(body: &Body, caps: &Caps) -> Self {
        Shares { chunks: 1, ..Shares::new(body, caps) }
    }
}

/// Writes the kernel that folds rows whole (`chunks` is 1), or the first of two.
pub(super) fn generate(graph: &Graph, body: &Body, shares: Shares) -> Kernel {
    let rows = body.space.count(false);
    let len = body.space.count(true);
    let inner = body.space.folds_inner();
    let aligned = body.space.aligned();
    let chunked = shares.chunks > 1;
    let mut writer = Writer::new(body, "p.");
    // What a thread steps over: quads of a row, or whole elements of four neighbouring rows.
    let steps = if inner { len.div_ceil(4) } else { len };
    let lines = if inner { rows } else { rows.div_ceil(4) };
    let total = lines * shares.chunks * shares.threads;
    let grid = fold((total as u64).div_ceil(WORKGROUP as u64));
    for (name, value) in [
        ("rows", rows),
        ("len", len),
        ("lines", lines),
        ("total", lines * shares.chunks),
        ("steps", steps),
        ("chunk", steps.div_ceil(shares.chunks)),
        ("width", grid[0] as usize * WORKGROUP),
    ] {
        writer.params.add(name, value as u32);
    }
    body.space.declare_rows(&mut writer.params, &mut writer.helpers);
    let shape = Shape { inner, aligned, chunked, threads: shares.threads };
    let mut pass = Passes { shape, shared: Vec::new(), stores: Vec::new(), text: String::new() };
    pass.begin();
    pass.run(&mut writer);
    let mut globals = String::new();
    for register in &pass.shared {
        let scalar = register.scalar();
        let _ =
            writeln!(globals, "var<workgroup> shared_{scalar}: array<{scalar}, {WORKGROUP}>;\n");
    }
    let main = format!(
        "@compute @workgroup_size({WORKGROUP})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {{\n\
         {}}}\n",
        indented(&pass.text, 4)
    );
    let label = writer.label(graph);
    let stores = std::mem::take(&mut pass.stores);
    module(writer, label, &stores, &globals, &main, grid)
}

#[derive(Clone, Copy)]
struct Shape {
    /// Neighbouring elements are folded together; else they belong to neighbouring rows.
    inner: bool,
    /// Four neighbours always lie together.
    aligned: bool,
    chunked: bool,
    threads: usize,
}

impl Shape {
    fn place(self, row: bool) -> Place<'static> {
        // A row's own values are the same in all lanes where the lanes are folded together.
        let one = self.aligned || (row && self.inner);
        let coordinates = if one { Coordinates::One } else { Coordinates::Four };
        Place { flat: Flat::Unknown, coordinates }
    }
}

struct Passes {
    shape: Shape,
    /// Types of workgroup memory in use.
    shared: Vec<Register>,
    stores: Vec<(Bound, String, &'static str)>,
    text: String,
}

impl Passes {
    /// Which row, and which part of it.
    fn begin(&mut self) {
        let Shape { inner, aligned, chunked, threads } = self.shape;
        let text = &mut self.text;
        text.push_str("let thread = id.y * p.width + id.x;\n");
        if threads > 1 {
            let _ = writeln!(text, "let share = local % {threads}u;");
            // All threads stay, as they meet at barriers; those beyond the end store nothing.
            let _ = writeln!(text, "let live = thread / {threads}u < p.total;");
            let _ = writeln!(text, "let line = min(thread / {threads}u, p.total - 1u);");
        } else {
            text.push_str("let line = thread;\nif (line >= p.total) { return; }\n");
        }
        if chunked {
            text.push_str("let chunk = line / p.lines;\n");
            text.push_str("let o = line % p.lines;\n");
            text.push_str("let first = chunk * p.chunk;\n");
            text.push_str("let end = min(first + p.chunk, p.steps);\n");
        } else {
            text.push_str("let o = line;\n");
        }
        match (inner, aligned) {
            (true, _) => text.push_str("let c = kept(o);\n"),
            (false, true) => text.push_str("let c = kept(4u * o);\n"),
            (false, false) => {
                for lane in 0..4 {
                    let _ =
                        writeln!(text, "let c{lane} = kept(min(4u * o + {lane}u, p.rows - 1u));");
                }
            }
        }
    }

    fn run(&mut self, writer: &mut Writer) {
        let body = writer.body;
        let mut defined = Defined::nothing(body);
        let last = body.levels();
        for level in 0..=last {
            let folds: Vec<usize> = (0..body.instances.len())
                .filter(|&i| {
                    matches!(body.instances[i].code, Code::Reduce(_))
                        && body.instances[i].level == level + 1
                })
                .collect();
            let stored: Vec<usize> = (0..body.outputs.len())
                .filter(|&k| {
                    let output = &body.outputs[k];
                    !output.row && body.instances[output.instance].level == level
                })
                .collect();
            if folds.is_empty() && stored.is_empty() {
                continue;
            }
            self.pass(writer, &mut defined, &folds, &stored);
        }
        self.store_rows(writer, &mut defined);
    }

    /// One walk along the row.
    fn pass(
        &mut self,
        writer: &mut Writer,
        defined: &mut Defined,
        folds: &[usize],
        stored: &[usize],
    ) {
        let body = writer.body;
        let Shape { inner, aligned, chunked, threads } = self.shape;
        let mut wanted: Vec<Operand> =
            folds.iter().map(|&i| body.instances[i].operands[0]).collect();
        wanted.extend(stored.iter().map(|&k| Operand::Instance(body.outputs[k].instance)));
        let mut of_row = Vec::new();
        wanted.iter().for_each(|&operand| row_operands(body, operand, &mut of_row));
        let row = writer.compute(self.shape.place(true), of_row, defined);
        self.text.push_str(&row);

        for &i in folds {
            let (register, reduction) = fold_of(body, i);
            let first = &reduction.first;
            let ty = vector(register);
            let _ = writeln!(self.text, "var a{i} = {ty}({first});");
            let text =
                format!("(a: {ty}, b: {ty}) -> {ty} {{\n    return {};\n}}\n", reduction.fold);
            writer.function(&fold_name(reduction, register), text);
        }
        let (from, to) = if chunked { ("first", "end") } else { ("0u", "p.steps") };
        let (from, by) = match threads {
            1 => (from.to_string(), "i++".to_string()),
            n => (format!("{from} + share"), format!("i += {n}u")),
        };
        let _ = writeln!(self.text, "for (var i = {from}; i < {to}; {by}) {{");
        let mut inside = String::new();
        match (inner, aligned) {
            (true, true) => inside.push_str("let c = along(c, 4u * i);\n"),
            (true, false) => {
                for lane in 0..4 {
                    let _ = writeln!(
                        inside,
                        "let c{lane} = along(c, min(4u * i + {lane}u, p.len - 1u));"
                    );
                }
            }
            (false, true) => inside.push_str("let c = along(c, i);\n"),
            (false, false) => {
                for lane in 0..4 {
                    let _ = writeln!(inside, "let c{lane} = along(c{lane}, i);");
                }
            }
        }
        let mut here = defined.clone();
        inside.push_str(&writer.compute(self.shape.place(false), wanted.clone(), &mut here));
        for &i in folds {
            let (register, reduction) = fold_of(body, i);
            let mut value = operand_name(body.instances[i].operands[0]);
            if inner && !aligned {
                let first = &reduction.first;
                let ty = vector(register);
                value = format!(
                    "select({ty}({first}), {value}, vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.len))"
                );
            }
            let name = fold_name(reduction, register);
            let _ = writeln!(inside, "a{i} = {name}(a{i}, {value});");
        }
        for &k in stored {
            self.store_element(writer, k, &mut inside);
        }
        self.text.push_str(&indented(&inside, 4));
        self.text.push_str("}\n");
        for &i in folds {
            self.join(body, i, defined);
        }
    }

    /// Makes one value of the lanes and threads of fold `i`.
    fn join(&mut self, body: &Body, i: usize, defined: &mut Defined) {
        let (register, reduction) = fold_of(body, i);
        let (name, ty) = (fold_name(reduction, register), vector(register));
        let mut value = format!("a{i}");
        if self.shape.inner {
            let lane = |l: &str| format!("{ty}(a{i}.{l})");
            value = format!(
                "{name}({name}({}, {}), {name}({}, {}))",
                lane("x"),
                lane("y"),
                lane("z"),
                lane("w")
            );
        }
        if self.shape.threads > 1 {
            let scalar = register.scalar();
            if !self.shared.contains(&register) {
                self.shared.push(register);
            }
            let half = self.shape.threads / 2;
            let _ = write!(
                self.text,
                "workgroupBarrier();\n\
                 shared_{scalar}[local] = {value}.x;\n\
                 workgroupBarrier();\n\
                 for (var step = {half}u; step > 0u; step = step >> 1u) {{\n    \
                 if (share < step) {{\n        \
                 shared_{scalar}[local] = {name}({ty}(shared_{scalar}[local]), {ty}(shared_{scalar}[local + step])).x;\n    \
                 }}\n    \
                 workgroupBarrier();\n\
                 }}\n"
            );
            value = format!("{ty}(shared_{scalar}[local - share])");
        }
        // A partial result keeps all its digits until the second kernel has folded it.
        let value = match self.shape.chunked {
            true => value,
            false => rounded(body.instances[i].dtype, &value),
        };
        let _ = writeln!(self.text, "let t{i} = {value};");
        defined.instance(i);
    }

    /// Stores output `k` for the element or the four elements at hand.
    fn store_element(&mut self, writer: &mut Writer, k: usize, text: &mut String) {
        let body = writer.body;
        let output = &body.outputs[k];
        let rank = body.space.rank();
        let mut sum = Vec::new();
        let mut stride = 1;
        for axis in (0..rank).rev() {
            sum.push(format!(
                "c[{axis}] * {}",
                writer.params.add(&format!("f{axis}"), stride as u32)
            ));
            stride *= body.space.axes[axis].size;
        }
        sum.reverse();
        if !writer.helpers.contains("fn flat(") {
            let _ = write!(
                writer.helpers,
                "// The index in row-major order.\n\
                 fn flat(c: array<u32, RANK>) -> u32 {{\n    return {};\n}}\n\n",
                sum.join(" + ")
            );
        }
        let value = format!("t{}", output.instance);
        let live = if self.shape.threads > 1 { "live" } else { "true" };
        if self.shape.aligned {
            let store = format!("y{k}[flat(c) / 4u] = {};", pack(output.dtype, &value));
            match self.shape.threads {
                1 => text.push_str(&format!("{store}\n")),
                _ => text.push_str(&format!("if ({live}) {{ {store} }}\n")),
            }
            self.stores.push((
                Bound::Output(k),
                format!("y{k}"),
                stored(output.dtype, Kind::Vector),
            ));
            return;
        }
        for (lane, name) in LANES.iter().enumerate() {
            let inside = match self.shape.inner {
                true => format!("4u * i + {lane}u < p.len"),
                false => format!("4u * o + {lane}u < p.rows"),
            };
            let value = pack_lane(output.dtype, &format!("{value}.{name}"));
            let _ = writeln!(text, "if ({live} && {inside}) {{ y{k}[flat(c{lane})] = {value}; }}");
        }
        self.stores.push((Bound::Output(k), format!("y{k}"), stored(output.dtype, Kind::Scalar)));
    }

    /// Stores what there is one of for each row: outputs, or partial results.
    fn store_rows(&mut self, writer: &mut Writer, defined: &mut Defined) {
        let body = writer.body;
        let mut items: Vec<(Bound, String, DType, usize)> = Vec::new();
        if self.shape.chunked {
            let folds = (0..body.instances.len())
                .filter(|&i| matches!(body.instances[i].code, Code::Reduce(_)));
            for (n, i) in folds.enumerate() {
                let dtype = partial(body.instances[i].dtype);
                items.push((Bound::Temp(n), format!("z{n}"), dtype, i));
            }
        } else {
            for (k, output) in body.outputs.iter().enumerate().filter(|(_, output)| output.row) {
                items.push((Bound::Output(k), format!("y{k}"), output.dtype, output.instance));
            }
        }
        let wanted: Vec<Operand> = items.iter().map(|item| Operand::Instance(item.3)).collect();
        let text = writer.compute(self.shape.place(true), wanted, defined);
        self.text.push_str(&text);
        for (bound, name, dtype, instance) in items {
            let value = format!("t{instance}");
            let row = if self.shape.chunked { "chunk * p.rows + " } else { "" };
            let kind = if self.shape.inner {
                let store =
                    format!("{name}[{row}o] = {};", pack_lane(dtype, &format!("{value}.x")));
                match self.shape.threads {
                    1 => self.text.push_str(&format!("{store}\n")),
                    _ => self.text.push_str(&format!("if (live && share == 0u) {{ {store} }}\n")),
                }
                Kind::Scalar
            } else if self.shape.aligned {
                let row = if self.shape.chunked { "chunk * p.lines + " } else { "" };
                let _ = writeln!(self.text, "{name}[{row}o] = {};", pack(dtype, &value));
                Kind::Vector
            } else {
                for (lane, l) in LANES.iter().enumerate() {
                    let value = pack_lane(dtype, &format!("{value}.{l}"));
                    let _ = writeln!(
                        self.text,
                        "if (4u * o + {lane}u < p.rows) {{ {name}[{row}4u * o + {lane}u] = {value}; }}"
                    );
                }
                Kind::Scalar
            };
            self.stores.push((bound, name, stored(dtype, kind)));
        }
    }
}

/// The dtype in which partial results of a fold lie in memory.
pub(super) fn partial(dtype: DType) -> DType {
    match dtype {
        DType::F16 => DType::F32,
        other => other,
    }
}

/// Folds of a body in the order of their partial results.
pub(super) fn folds(body: &Body) -> Vec<u32> {
    let folds = body.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_)));
    folds.map(|i| i.node).collect()
}

/// What `operand` needs that is the same for a whole row.
fn row_operands(body: &Body, operand: Operand, out: &mut Vec<Operand>) {
    let row = match operand {
        Operand::Load(i) | Operand::Inside(i) => {
            body.loads[i].row && temp_of(body.loads[i].source).is_none()
        }
        Operand::Instance(i) => body.instances[i].row,
        Operand::Word(_) => false,
    };
    if row {
        out.push(operand);
    } else if let Operand::Instance(i) = operand {
        body.instances[i].operands.iter().for_each(|&operand| row_operands(body, operand, out));
    }
}

fn fold_of<'a>(body: &Body<'a>, i: usize) -> (Register, &'a Reduction) {
    match body.instances[i].code {
        Code::Reduce(reduction) => (body.instances[i].dtype.register(), reduction),
        _ => unreachable!("only folds are asked for"),
    }
}

fn fold_name(reduction: &Reduction, register: Register) -> String {
    format!("{}_{}", reduction.name, register.scalar())
}
