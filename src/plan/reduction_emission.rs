//! Emits kernels that fold: passes along a row, each of which computes values that the next one needs. A *turn* is one
//! iteration of a thread's loop over its part of the row.

use std::fmt::Write;

use super::iteration_space::LoadSource;
use super::iteration_space::{Coordinates, Declared, Flat, Position, pack, stored};
use super::kernel_ir::{Code, KernelIr, Operand};
use super::reduction_schedule::{Join, ReductionSchedule, lines, partial, steps};
use super::wgsl_module::{self, Section};
use super::wgsl_writer::{
    Bound, Common, Defined, LANES, Writer, indented, operand_name, pack_lane, rounded, temp_of,
    vector,
};
use crate::dtype::{DType, Register};
use crate::graph::Graph;
use crate::graph::lower::Reduction;

/// Turns up to this weight are unrolled several times within a loop.
const SHORT: usize = 150;

/// Writes the kernel that folds whole rows (`chunks` is 1), or the first of two.
pub(super) fn generate(
    graph: &Graph,
    ir: &KernelIr,
    schedule: ReductionSchedule,
    prefix: &str,
    common: &mut Common,
) -> Section {
    let rows = ir.space.count(false);
    let len = ir.space.count(true);
    let inner = ir.space.folds_inner();
    let aligned = ir.space.aligned();
    let chunked = schedule.chunks > 1;
    let mut writer = Writer::new(ir, "p.", prefix, common);
    let (steps, lines) = (steps(ir), lines(ir));
    let workgroup = schedule.workgroup();
    for (name, value) in [
        ("rows", rows),
        ("len", len),
        ("lines", lines),
        ("total", lines * schedule.chunks),
        ("steps", steps),
        ("chunk", steps.div_ceil(schedule.chunks)),
    ] {
        writer.params.add(format_args!("{name}"), value as u32);
    }
    ir.space.declare_rows(&mut writer.params, &mut writer.helpers);
    let turns = steps / (schedule.chunks * schedule.threads);
    let long = turns >= 32 && ir.weight() <= SHORT && !ir.space.reads_singly();
    let shape =
        Shape { inner, aligned, chunked, threads: schedule.threads, join: schedule.join, long };
    let mut pass = ReductionEmitter {
        shape,
        prefix: prefix.to_string(),
        side: workgroup / schedule.threads,
        turns: schedule.turns,
        kept: Vec::new(),
        shared: Vec::new(),
        stores: Vec::new(),
        text: String::new(),
    };
    pass.begin();
    pass.run(&mut writer);
    let loops = (schedule.workgroups(ir), schedule.iterations(ir));
    let ReductionEmitter { shared, stores, text, .. } = pass;
    let section = Section::new(writer, graph, &stores, text, loops, workgroup);
    if schedule.threads > 1 { section.joining(shared) } else { section }
}

#[derive(Clone, Copy)]
struct Shape {
    /// Neighbouring elements are folded together; otherwise they belong to neighbouring rows.
    pub(super) inner: bool,
    /// Four neighbours are always in one row.
    pub(super) aligned: bool,
    pub(super) chunked: bool,
    pub(super) threads: usize,
    pub(super) join: Join,
    /// Each thread makes many turns, each of which is short.
    pub(super) long: bool,
}

/// How many short turns one round of a loop computes: the overhead of a round equals reading some elements.
const AT_ONCE: usize = 8;

impl Shape {
    fn position(self, row: bool) -> Position<'static> {
        // If lanes are folded together, a row's own values are the same in all of them.
        let one = self.aligned || (row && self.inner);
        let coordinates = if one { Coordinates::One } else { Coordinates::Four };
        Position { flat: Flat::Unknown, coordinates }
    }
}

struct ReductionEmitter {
    pub(super) shape: Shape,
    /// The prefix of the names in the module.
    pub(super) prefix: String,
    /// How many lines a workgroup processes.
    pub(super) side: usize,
    pub(super) turns: Option<usize>,
    /// The values of earlier passes in registers, for each turn.
    pub(super) kept: Vec<Operand>,
    /// The types for which the kernel uses workgroup memory, of which each thread has an element.
    pub(super) shared: Vec<String>,
    pub(super) stores: Vec<(Bound, String, &'static str)>,
    pub(super) text: String,
}

impl ReductionEmitter {
    /// Writes the computation of the thread's row, and of its part of the row.
    pub(super) fn begin(&mut self) {
        let Shape { inner, aligned, chunked, threads, join, .. } = self.shape;
        let (text, prefix) = (&mut self.text, &self.prefix);
        if join == Join::Columns {
            let (side, workgroup) = (self.side, self.side * threads);
            let _ = writeln!(text, "let share = local / {side}u;");
            let _ =
                writeln!(text, "let number = thread / {workgroup}u * {side}u + local % {side}u;");
            let _ = writeln!(text, "let live = number < p.{prefix}total;");
            let _ = writeln!(text, "let line = min(number, p.{prefix}total - 1u);");
        } else if threads > 1 {
            let _ = writeln!(text, "let share = local % {threads}u;");
            // All threads continue, because they meet at barriers; those beyond the end store nothing.
            let _ = writeln!(text, "let live = thread / {threads}u < p.{prefix}total;");
            let _ = writeln!(text, "let line = min(thread / {threads}u, p.{prefix}total - 1u);");
        } else {
            let _ =
                writeln!(text, "let line = thread;\nif (line >= p.{prefix}total) {{ return; }}");
        }
        if chunked {
            let _ = writeln!(text, "let chunk = line / p.{prefix}lines;");
            let _ = writeln!(text, "let o = line % p.{prefix}lines;");
            let _ = writeln!(text, "let first = chunk * p.{prefix}chunk;");
            let _ = writeln!(text, "let end = min(first + p.{prefix}chunk, p.{prefix}steps);");
        } else {
            text.push_str("let o = line;\n");
        }
        match (inner, aligned) {
            (true, _) => drop(writeln!(text, "let c = {prefix}kept(o);")),
            (false, true) => drop(writeln!(text, "let c = {prefix}kept(4u * o);")),
            (false, false) => {
                for lane in 0..4 {
                    let _ = writeln!(
                        text,
                        "let c{lane} = {prefix}kept(min(4u * o + {lane}u, p.{prefix}rows - 1u));"
                    );
                }
            }
        }
    }

    pub(super) fn run(&mut self, writer: &mut Writer) {
        let ir = writer.ir;
        let mut defined = Defined::nothing(ir);
        let levels: Vec<Level> = (0..=ir.levels()).map(|level| Level::new(ir, level)).collect();
        for (at, level) in levels.iter().enumerate().filter(|(_, level)| !level.is_empty()) {
            let later: Vec<Operand> =
                levels[at + 1..].iter().flat_map(|level| level.wanted(ir)).collect();
            self.pass(writer, &mut defined, level, &later);
        }
        self.store_rows(writer, &mut defined);
    }

    /// Writes one pass along the row.
    fn pass(
        &mut self,
        writer: &mut Writer,
        defined: &mut Defined,
        level: &Level,
        later: &[Operand],
    ) {
        let ir = writer.ir;
        let prefix = self.prefix.clone();
        let Level { folds, stored } = level;
        let Shape { inner, aligned, chunked, threads, .. } = self.shape;
        let wanted = level.wanted(ir);
        let of_row = row_operands(ir, &wanted);
        let row = writer.compute(self.shape.position(true), of_row, defined);
        self.text.push_str(&row);

        for &i in folds {
            let (register, reduction) = fold_of(ir, i);
            let first = &reduction.first;
            let ty = vector(register);
            let _ = writeln!(self.text, "var a{i} = {ty}({first});");
            let text =
                format!("(a: {ty}, b: {ty}) -> {ty} {{\n    return {};\n}}\n", reduction.fold);
            writer.common.function(&fold_name(reduction, register), text);
        }
        let mut step = Step::default();
        let inside = &mut step.coordinates;
        match (inner, aligned) {
            (true, true) => drop(writeln!(inside, "let c = {prefix}along(c, 4u * i);")),
            (true, false) => {
                for lane in 0..4 {
                    let _ = writeln!(
                        inside,
                        "let c{lane} = {prefix}along(c, min(4u * i + {lane}u, p.{prefix}len - 1u));"
                    );
                }
            }
            (false, true) => drop(writeln!(inside, "let c = {prefix}along(c, i);")),
            (false, false) => {
                for lane in 0..4 {
                    let _ = writeln!(inside, "let c{lane} = {prefix}along(c{lane}, i);");
                }
            }
        }
        let mut here = defined.clone();
        for &operand in &self.kept {
            step.found.push(operand_name(operand));
            here.know(operand);
        }
        step.computed = writer.compute(self.shape.position(false), wanted.clone(), &mut here);
        if let Some(turns) = self.turns {
            for operand in keepable(ir, &wanted, later) {
                if !self.kept.contains(&operand) {
                    let (name, ty) = (operand_name(operand), vector(ir.register(operand)));
                    let _ = writeln!(self.text, "var kept_{name}: array<{ty}, {turns}>;");
                    step.kept.push(name);
                    self.kept.push(operand);
                }
            }
        }
        for &i in folds {
            let (register, reduction) = fold_of(ir, i);
            let mut value = operand_name(ir.instances[i].operands[0]);
            if inner && !aligned {
                let first = &reduction.first;
                let ty = vector(register);
                value = format!(
                    "select({ty}({first}), {value}, vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.{prefix}len))"
                );
            }
            let name = fold_name(reduction, register);
            let _ = writeln!(step.folded, "a{i} = {name}(a{i}, {value});");
        }
        for &k in stored {
            self.store_element(writer, k, &mut step.folded);
        }
        self.walk(&step, chunked, threads, !stored.is_empty());
        for &i in folds {
            self.join(ir, i, defined);
        }
    }

    /// Writes the loop, or the unrolled turns, of a pass along the row.
    fn walk(&mut self, step: &Step, chunked: bool, threads: usize, stores: bool) {
        let prefix = &self.prefix;
        if let Some(turns) = self.turns {
            for turn in 0..turns {
                let (inside, from) = (step.lines(turn), turn * threads);
                let _ = write!(
                    self.text,
                    "if (share + {from}u < p.{prefix}steps) {{\n    let i = share + {from}u;\n{inside}}}\n"
                );
            }
            return;
        }
        let inside = step.lines(0);
        let steps = format!("p.{prefix}steps");
        let (from, to) = if chunked { ("first", "end") } else { ("0u", &*steps) };
        let (from, by) = match threads {
            1 => (from.to_string(), "i++".to_string()),
            n => (format!("{from} + share"), format!("i += {n}u")),
        };
        if self.shape.long && !stores {
            let copy = |turn| format!("{{\n    let i = at + {}u;\n{inside}}}\n", turn * threads);
            let (last, all) = ((AT_ONCE - 1) * threads, AT_ONCE * threads);
            let _ = write!(
                self.text,
                "{{\nvar at = {from};\nfor (; at + {last}u < {to}; at += {all}u) {{\n{}}}\n\
                 for (; at < {to}; at += {threads}u) {}}}\n",
                (0..AT_ONCE).map(copy).collect::<String>(),
                copy(0)
            );
            return;
        }
        let _ = writeln!(self.text, "for (var i = {from}; i < {to}; {by}) {{\n{inside}}}");
    }

    /// Joins the values of the lanes and threads of fold `i`.
    fn join(&mut self, ir: &KernelIr, i: usize, defined: &mut Defined) {
        let (register, reduction) = fold_of(ir, i);
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
        if self.shape.join == Join::Shuffle {
            let _ = writeln!(self.text, "var j{i} = {value}.x;");
            let mut step = 1;
            while step < self.shape.threads {
                let _ = writeln!(
                    self.text,
                    "j{i} = {name}({ty}(j{i}), {ty}({})).x;",
                    shuffled(register, &format!("j{i}"), step)
                );
                step *= 2;
            }
            value = format!("{ty}(j{i})");
        } else if self.shape.threads > 1 {
            value = self.join_in_memory(register, &name, &value);
        }
        // A partial result is not rounded until the second kernel has folded it.
        let value = match self.shape.chunked {
            true => value,
            false => rounded(ir.instances[i].dtype, format_args!("{value}")),
        };
        let _ = writeln!(self.text, "let t{i} = {value};");
        defined.instance(i);
    }

    /// Joins the values of the threads that share a row, or four of them. Returns the expression of the result.
    fn join_in_memory(&mut self, register: Register, fold: &str, value: &str) -> String {
        let (ty, columns) = (vector(register), self.shape.join == Join::Columns);
        // The lanes of a row already hold the same value.
        let (held, of, lane) = match columns {
            true => (ty.clone(), self.side, ""),
            false => (register.scalar().to_string(), 1, ".x"),
        };
        let memory = wgsl_module::workgroup_memory(&held);
        if !self.shared.contains(&held) {
            self.shared.push(held);
        }
        let half = self.shape.threads / 2;
        let step = if of == 1 { "step".to_string() } else { format!("step * {of}u") };
        let _ = write!(
            self.text,
            "workgroupBarrier();\n\
             {memory}[local] = {value}{lane};\n\
             workgroupBarrier();\n\
             for (var step = {half}u; step > 0u; step = step >> 1u) {{\n    \
             if (share < step) {{\n        \
             {memory}[local] = {fold}({ty}({memory}[local]), {ty}({memory}[local + {step}])){lane};\n    \
             }}\n    \
             workgroupBarrier();\n\
             }}\n"
        );
        match columns {
            true => format!("{memory}[local % {of}u]"),
            false => format!("{ty}({memory}[local - share])"),
        }
    }

    /// Stores output `k` for the element or the four elements at hand.
    fn store_element(&mut self, writer: &mut Writer, k: usize, text: &mut String) {
        let (ir, prefix) = (writer.ir, &self.prefix);
        let output = &ir.outputs[k];
        let rank = ir.space.rank();
        let mut sum = Vec::new();
        let mut stride = 1;
        for axis in (0..rank).rev() {
            sum.push(format!(
                "c[{axis}] * {}",
                writer.params.add(format_args!("f{axis}"), stride as u32)
            ));
            stride *= ir.space.axes[axis].size;
        }
        sum.reverse();
        writer.helpers.add(format!("{prefix}flat"), || {
            format!(
                "// The index in row-major order.\n\
                 fn {prefix}flat(c: array<u32, {prefix}RANK>) -> u32 {{\n    return {};\n}}\n\n",
                sum.join(" + ")
            )
        });
        let value = format!("t{}", output.instance);
        let live = if self.shape.threads > 1 { "live" } else { "true" };
        if self.shape.aligned {
            let store = format!(
                "{prefix}y{k}[{prefix}flat(c) / 4u] = {};",
                pack(output.dtype, format_args!("{value}"))
            );
            match self.shape.threads {
                1 => drop(writeln!(text, "{store}")),
                _ => drop(writeln!(text, "if ({live}) {{ {store} }}")),
            }
            self.stores.push((
                Bound::Output(k),
                format!("{prefix}y{k}"),
                stored(output.dtype, Declared::Vector),
            ));
            return;
        }
        for (lane, name) in LANES.iter().enumerate() {
            let inside = match self.shape.inner {
                true => format!("4u * i + {lane}u < p.{prefix}len"),
                false => format!("4u * o + {lane}u < p.{prefix}rows"),
            };
            let value = pack_lane(output.dtype, format_args!("{value}.{name}"));
            let _ = writeln!(
                text,
                "if ({live} && {inside}) {{ {prefix}y{k}[{prefix}flat(c{lane})] = {value}; }}"
            );
        }
        self.stores.push((
            Bound::Output(k),
            format!("{prefix}y{k}"),
            stored(output.dtype, Declared::Scalar),
        ));
    }

    /// Stores the values of which there is one per row: outputs, or partial results.
    fn store_rows(&mut self, writer: &mut Writer, defined: &mut Defined) {
        let (ir, prefix) = (writer.ir, self.prefix.clone());
        let mut items: Vec<(Bound, String, DType, usize)> = Vec::new();
        if self.shape.chunked {
            let folds = (0..ir.instances.len())
                .filter(|&i| matches!(ir.instances[i].code, Code::Reduce(_)));
            for (n, i) in folds.enumerate() {
                let dtype = partial(ir.instances[i].dtype);
                items.push((Bound::Temp(n), format!("{prefix}z{n}"), dtype, i));
            }
        } else {
            for (k, output) in ir.outputs.iter().enumerate().filter(|(_, output)| output.row) {
                items.push((
                    Bound::Output(k),
                    format!("{prefix}y{k}"),
                    output.dtype,
                    output.instance,
                ));
            }
        }
        let wanted: Vec<Operand> = items.iter().map(|item| Operand::Instance(item.3)).collect();
        let text = writer.compute(self.shape.position(true), wanted, defined);
        self.text.push_str(&text);
        for (bound, name, dtype, instance) in items {
            let value = format!("t{instance}");
            let row = match self.shape.chunked {
                true => format!("chunk * p.{prefix}rows + "),
                false => String::new(),
            };
            let kind = if self.shape.inner {
                let store =
                    format!("{name}[{row}o] = {};", pack_lane(dtype, format_args!("{value}.x")));
                match self.shape.threads {
                    1 => drop(writeln!(self.text, "{store}")),
                    _ => drop(writeln!(self.text, "if (live && share == 0u) {{ {store} }}")),
                }
                Declared::Scalar
            } else if self.shape.aligned {
                let row = match self.shape.chunked {
                    true => format!("chunk * p.{prefix}lines + "),
                    false => String::new(),
                };
                let store = format!("{name}[{row}o] = {};", pack(dtype, format_args!("{value}")));
                match self.shape.threads {
                    1 => drop(writeln!(self.text, "{store}")),
                    _ => drop(writeln!(self.text, "if (live && share == 0u) {{ {store} }}")),
                }
                Declared::Vector
            } else {
                let live = if self.shape.threads > 1 { "live && share == 0u && " } else { "" };
                for (lane, l) in LANES.iter().enumerate() {
                    let value = pack_lane(dtype, format_args!("{value}.{l}"));
                    let _ = writeln!(
                        self.text,
                        "if ({live}4u * o + {lane}u < p.{prefix}rows) {{ {name}[{row}4u * o + {lane}u] = {value}; }}"
                    );
                }
                Declared::Scalar
            };
            self.stores.push((bound, name, stored(dtype, kind)));
        }
    }
}

/// The text of one step of a pass, split at the names of kept values.
#[derive(Default)]
struct Step {
    coordinates: String,
    /// Names of values that an earlier pass has kept for each turn.
    found: Vec<String>,
    computed: String,
    /// Names of values to keep for later passes.
    kept: Vec<String>,
    folded: String,
}

impl Step {
    /// The text of the step in turn `turn`.
    fn lines(&self, turn: usize) -> String {
        let mut text = self.coordinates.clone();
        for name in &self.found {
            let _ = writeln!(text, "let {name} = kept_{name}[{turn}];");
        }
        text.push_str(&self.computed);
        for name in &self.kept {
            let _ = writeln!(text, "kept_{name}[{turn}] = {name};");
        }
        text.push_str(&self.folded);
        indented(&text, 4)
    }
}

/// The work of one pass: folds, and outputs that it stores for each element.
struct Level {
    folds: Vec<usize>,
    stored: Vec<usize>,
}

impl Level {
    fn new(ir: &KernelIr, level: usize) -> Self {
        let folds = (0..ir.instances.len()).filter(|&i| {
            matches!(ir.instances[i].code, Code::Reduce(_)) && ir.instances[i].level == level + 1
        });
        let stored = (0..ir.outputs.len()).filter(|&k| {
            let output = &ir.outputs[k];
            !output.row && ir.instances[output.instance].level == level
        });
        Level { folds: folds.collect(), stored: stored.collect() }
    }

    fn is_empty(&self) -> bool {
        self.folds.is_empty() && self.stored.is_empty()
    }

    /// The operands that the pass needs for each element.
    fn wanted(&self, ir: &KernelIr) -> Vec<Operand> {
        let folded = self.folds.iter().map(|&i| ir.instances[i].operands[0]);
        let stored = self.stored.iter().map(|&k| Operand::Instance(ir.outputs[k].instance));
        folded.chain(stored).collect()
    }
}

/// The values that pass `now` computes for each element and `later` passes need again, if they are worth a register:
/// loads, and the values that are folded.
fn keepable(ir: &KernelIr, now: &[Operand], later: &[Operand]) -> Vec<Operand> {
    let each = |wanted: &[Operand]| {
        let mut needed = Vec::new();
        ir.reach(wanted, |operand| {
            let row = match operand {
                Operand::Load(i) | Operand::Inside(i) => ir.loads[i].row,
                Operand::Instance(i) => ir.instances[i].row,
                Operand::RuntimeScalar(_) => true,
            };
            if !row {
                needed.push(operand);
            }
            !row
        });
        needed
    };
    let (mut here, again) = (each(now), each(later));
    let mut windowed = vec![false; ir.loads.len()];
    for operand in here.iter().chain(&again) {
        if let Operand::Inside(i) = operand {
            windowed[*i] = true;
        }
    }
    here.retain(|operand| {
        again.contains(operand)
            && match *operand {
                Operand::Load(i) => ir.loads[i].source != LoadSource::Index && !windowed[i],
                Operand::Instance(_) => now.contains(operand),
                _ => false,
            }
    });
    here
}

/// The value of the thread whose number differs by `step`.
fn shuffled(register: Register, value: &str, step: usize) -> String {
    match register {
        Register::Bool => format!("subgroupShuffleXor(select(0u, 1u, {value}), {step}u) != 0u"),
        _ => format!("subgroupShuffleXor({value}, {step}u)"),
    }
}

/// The operands of `wanted` that are the same for a whole row.
fn row_operands(ir: &KernelIr, wanted: &[Operand]) -> Vec<Operand> {
    let mut rows = Vec::new();
    ir.reach(wanted, |operand| {
        let row = match operand {
            Operand::Load(i) | Operand::Inside(i) => {
                ir.loads[i].row && temp_of(ir.loads[i].source).is_none()
            }
            Operand::Instance(i) => ir.instances[i].row,
            Operand::RuntimeScalar(_) => false,
        };
        if row {
            rows.push(operand);
        }
        !row
    });
    rows
}

fn fold_of<'a>(ir: &KernelIr<'a>, i: usize) -> (Register, &'a Reduction) {
    match ir.instances[i].code {
        Code::Reduce(reduction) => (ir.instances[i].dtype.register(), reduction),
        _ => unreachable!("only folds are asked for"),
    }
}

fn fold_name(reduction: &Reduction, register: Register) -> String {
    format!("{}_{}", reduction.name, register.scalar())
}
