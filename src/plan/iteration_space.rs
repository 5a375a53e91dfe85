//! The iteration space of a kernel: its axes, merged where all loads agree, and the WGSL that reads each load at a
//! position. This file converts views to index arithmetic.

use std::fmt::{Arguments, Write};

use smallvec::SmallVec;

use crate::dtype::{DType, Register};
use crate::graph::Input;
use crate::graph::lower::{RuntimeOffset, Strided, ViewAxis};
use crate::wgsl::Declarations;

/// How a buffer is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Vector,
    Scalar,
}

pub(super) fn stored(dtype: DType, kind: Declared) -> &'static str {
    match (dtype, kind) {
        (DType::F32, Declared::Vector) => "vec4<f32>",
        (DType::F16, Declared::Vector) => "vec4<f16>",
        (DType::I32, Declared::Vector) => "vec4<i32>",
        (DType::U32 | DType::Bool, Declared::Vector) => "vec4<u32>",
        (DType::F32, Declared::Scalar) => "f32",
        (DType::F16, Declared::Scalar) => "f16",
        (DType::I32, Declared::Scalar) => "i32",
        // Four bytes are stored as a word, however a kernel reads them.
        (DType::U8, _) | (DType::U32 | DType::Bool, Declared::Scalar) => "u32",
    }
}

fn unpack_vector(dtype: DType, word: Arguments) -> String {
    match dtype {
        DType::F16 => format!("vec4<f32>({word})"),
        DType::Bool => format!("{word} != vec4<u32>(0u)"),
        DType::U8 => format!("unpack_bytes({word})"),
        _ => word.to_string(),
    }
}

fn unpack_scalar(dtype: DType, buffer: &str, index: Arguments) -> String {
    match dtype {
        DType::F16 => format!("f32({buffer}[{index}])"),
        DType::Bool => format!("{buffer}[{index}] != 0u"),
        DType::U8 => format!("({buffer}[({index}) / 4u] >> (8u * (({index}) % 4u))) & 255u"),
        _ => format!("{buffer}[{index}]"),
    }
}

pub(super) fn pack(dtype: DType, value: Arguments) -> String {
    match dtype {
        DType::F16 => format!("vec4<f16>({value})"),
        DType::Bool => format!("select(vec4<u32>(0u), vec4<u32>(1u), {value})"),
        DType::U8 => format!("pack_bytes({value})"),
        _ => value.to_string(),
    }
}

/// The uniform struct of a kernel: named words.
pub(super) struct Fields {
    /// The uniform's name and a point.
    pub(super) uniform: &'static str,
    /// The prefix of the names of a kernel's section; empty if the kernel has one section.
    pub(super) prefix: String,
    names: Vec<String>,
    pub(super) values: Vec<u32>,
    /// The words that depend on runtime scalars.
    pub(super) varying: Vec<Varying>,
}

/// A word of the parameters that differs from run to run: `constant` plus each scalar times its factor, modulo 2^32.
#[derive(Debug, Clone)]
pub(crate) struct Varying {
    pub(crate) at: usize,
    pub(crate) constant: u32,
    /// The node that carries the scalar, the scalar's number, and its factor.
    pub(crate) terms: SmallVec<[(u32, u32, u32); 1]>,
}

impl Fields {
    pub(super) fn new(uniform: &'static str, prefix: &str) -> Self {
        Fields {
            uniform,
            prefix: prefix.to_string(),
            names: Vec::new(),
            values: Vec::new(),
            varying: Vec::new(),
        }
    }

    /// Adds a word, and returns the expression that reads it.
    pub(super) fn add(&mut self, name: Arguments, value: u32) -> String {
        let name = format!("{}{name}", self.prefix);
        let field = format!("{}{name}", self.uniform);
        if !self.names.contains(&name) {
            self.names.push(name);
            self.values.push(value);
        }
        field
    }

    /// As [`Fields::add`] for a number that may vary.
    pub(super) fn place(&mut self, name: Arguments, place: &RuntimeOffset) -> String {
        let at = self.values.len();
        let field = self.add(name, place.constant as u32);
        if self.values.len() > at && !place.terms.is_empty() {
            let terms = place.terms.iter().map(|t| (t.node, t.word, t.factor as u32)).collect();
            self.varying.push(Varying { at, constant: place.constant as u32, terms });
        }
        field
    }

    pub(super) fn declarations(&self) -> String {
        let mut text = String::new();
        for name in &self.names {
            let _ = writeln!(text, "    {name}: u32,");
        }
        text
    }
}

/// The position at which a thread reads.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    pub(super) flat: Flat<'a>,
    pub(super) coordinates: Coordinates,
}

/// The index in row-major order over all elements.
#[derive(Clone, Copy)]
pub(super) enum Flat<'a> {
    /// Four neighbours; the first has four times this index.
    Quad(&'a str),
    /// Four elements with the indices `e0` to `e3`.
    Lanes,
    /// The thread knows only coordinates.
    Unknown,
}

/// Names of the coordinates: `c`, or `c0` to `c3` for each of four elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Coordinates {
    One,
    Four,
}

/// An axis of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) size: usize,
    /// The kernel folds along this axis.
    pub(super) reduced: bool,
}

/// A value that the kernel reads from memory, or an index that it computes.
pub(super) struct Load {
    pub(super) source: LoadSource,
    pub(super) dtype: DType,
    pub(super) view: Strided,
    pub(super) row: bool,
    /// The compilation cost of reading it, in the units of [`Formula::cost`](crate::wgsl::Formula::cost).
    pub(super) weight: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadSource {
    Value(Input),
    /// Partial results of a fold that an earlier kernel began.
    Temp(usize),
    /// The index itself, without memory.
    Index,
}

/// The kernel's axes; neighbouring axes that every load reads with one stride are merged.
#[derive(Clone)]
pub(super) struct IterationSpace {
    pub(super) axes: Vec<Axis>,
    /// For each load the stride and window along each axis.
    loads: Vec<Vec<ViewAxis>>,
    offsets: Vec<RuntimeOffset>,
    reads: Reads,
}

/// How a kernel reads elements that are not at its own index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// In vectors, if four elements are contiguous.
    Vectors,
    /// One by one: the kernel has so little work that no text depends on the layout of elements.
    Singly,
    /// As `Singly`, and an axis of size 1 is treated like a longer one.
    SinglyWithOnes,
}

impl IterationSpace {
    pub(super) fn new(axes: &[Axis], views: &[&Strided], reads: Reads) -> Self {
        let loads = views.iter().map(|view| view.axes.clone()).collect();
        let offsets = views.iter().map(|view| view.offset.clone()).collect();
        let mut space = IterationSpace { axes: axes.to_vec(), loads, offsets, reads };
        space.merge();
        space
    }

    fn merge(&mut self) {
        // An axis of size 1 needs no coordinate, unless a window excludes even the only one.
        for axis in (0..self.axes.len()).rev() {
            let stays = |a: &Vec<ViewAxis>| {
                a[axis].window.is_some()
                    || (self.reads == Reads::SinglyWithOnes && a[axis].stride != 0)
            };
            if self.axes[axis].size == 1 && !self.loads.iter().any(stays) {
                self.axes.remove(axis);
                for a in &mut self.loads {
                    a.remove(axis);
                }
            }
        }
        for axis in (1..self.axes.len()).rev() {
            let (outer, inner) = (self.axes[axis - 1], self.axes[axis]);
            let size = inner.size as i64;
            let together = outer.reduced == inner.reduced
                && self.loads.iter().all(|a| {
                    let (outer, inner) = (&a[axis - 1], &a[axis]);
                    outer.window.is_none()
                        && inner.window.is_none()
                        && outer.stride == inner.stride * size
                });
            if together {
                self.axes[axis - 1].size *= inner.size;
                self.axes.remove(axis);
                for a in &mut self.loads {
                    a[axis - 1].stride = a[axis].stride;
                    a.remove(axis);
                }
            }
        }
    }

    /// Whether the kernel has so little work that no text depends on its amount.
    pub(super) fn reads_singly(&self) -> bool {
        self.reads != Reads::Vectors
    }

    pub(super) fn rank(&self) -> usize {
        self.axes.len()
    }

    /// How many elements there are along the reduced axes, or along the others.
    pub(super) fn count(&self, reduced: bool) -> usize {
        self.axes.iter().filter(|axis| axis.reduced == reduced).map(|axis| axis.size).product()
    }

    /// True if the kernel folds neighbouring elements together.
    pub(super) fn folds_inner(&self) -> bool {
        self.axes.last().is_some_and(|axis| axis.reduced)
    }

    /// True if any four elements that begin at a multiple of four are in one row of the innermost axis, and the kernel
    /// may rely on it.
    pub(super) fn aligned(&self) -> bool {
        !self.reads_singly() && self.axes.last().is_some_and(|axis| axis.size % 4 == 0)
    }

    /// The stride of each load along `axis`.
    pub(super) fn strides(&self, axis: usize) -> impl Iterator<Item = i64> + '_ {
        self.loads.iter().map(move |load| load[axis].stride)
    }

    /// How many elements a step along `axis` passes.
    fn stride(&self, axis: usize) -> i64 {
        self.axes[axis + 1..].iter().map(|axis| axis.size as i64).product()
    }

    /// True if the kernel reads load `i` at its own index.
    pub(super) fn is_flat(&self, i: usize) -> bool {
        let ones = self.reads == Reads::SinglyWithOnes;
        let own = |(axis, step): (usize, &ViewAxis)| {
            let one = self.axes[axis].size == 1 && !ones;
            step.window.is_none() && (step.stride == self.stride(axis) || one)
        };
        self.offsets[i].is_zero() && self.loads[i].iter().enumerate().all(own)
    }

    /// True if each thread reads the element of load `i` at its own index.
    pub(super) fn is_own(&self, i: usize) -> bool {
        self.is_flat(i) && !self.is_single(i)
    }

    /// True if load `i` is one element, wherever the kernel reads it. A kernel of one element uses the text of a larger
    /// one.
    pub(super) fn is_single(&self, i: usize) -> bool {
        let one = self.loads[i].iter().all(|axis| axis.stride == 0 && axis.window.is_none());
        one && !(self.is_flat(i) && self.axes.iter().all(|axis| axis.size == 1))
    }

    /// True if some load needs coordinates although the flat index is known.
    pub(super) fn walks(&self) -> bool {
        (0..self.loads.len()).any(|i| !self.is_flat(i) && !self.is_single(i))
    }

    /// Declares `RANK`, the sizes, and `coordinates(e)` of element e.
    pub(super) fn declare(&self, params: &mut Fields, helpers: &mut Declarations) {
        let rank = self.rank();
        let prefix = params.prefix.clone();
        let mut body = format!("    var r = e;\n    var c: array<u32, {prefix}RANK>;\n");
        for axis in (1..rank).rev() {
            let size = params.add(format_args!("d{axis}"), self.axes[axis].size as u32);
            let _ = writeln!(body, "    c[{axis}] = r % {size};\n    r = r / {size};");
        }
        declare_rank(rank, &prefix, helpers);
        helpers.add(format!("{prefix}coordinates"), || {
            format!(
                "// Coordinates of element e of the output.\n\
                 fn {prefix}coordinates(e: u32) -> array<u32, {prefix}RANK> {{\n{body}    c[0] = r;\n    return c;\n}}\n\n"
            )
        });
    }

    /// Declares `RANK`, `kept(o)`, the coordinates of row o at the first element that is folded, and
    /// `along(c, r)`, those of the element r of that row.
    pub(super) fn declare_rows(&self, params: &mut Fields, helpers: &mut Declarations) {
        let rank = self.rank();
        let prefix = params.prefix.clone();
        declare_rank(rank, &prefix, helpers);
        let coordinates = format!("array<u32, {prefix}RANK>");
        for (reduced, name, head, note) in [
            (
                false,
                format!("{prefix}kept"),
                format!(
                    "fn {prefix}kept(o: u32) -> {coordinates} {{\n    var s: {coordinates};\n    var rest = o;\n"
                ),
                "// Coordinates of the first element of row o.",
            ),
            (
                true,
                format!("{prefix}along"),
                format!(
                    "fn {prefix}along(c: {coordinates}, r: u32) -> {coordinates} {{\n    var s = c;\n    var rest = r;\n"
                ),
                "// Coordinates of element r of a row.",
            ),
        ] {
            let mut body = String::new();
            let own: Vec<usize> = (0..rank).filter(|&a| self.axes[a].reduced == reduced).collect();
            for (at, &axis) in own.iter().enumerate().rev() {
                if at == 0 {
                    let _ = writeln!(body, "    s[{axis}] = rest;");
                } else {
                    let size = params.add(format_args!("d{axis}"), self.axes[axis].size as u32);
                    let _ =
                        writeln!(body, "    s[{axis}] = rest % {size};\n    rest = rest / {size};");
                }
            }
            helpers.add(name, || format!("{note}\n{head}{body}    return s;\n}}\n\n"));
        }
    }

    /// Writes the statement that reads load `i` from `buffer` into `v<i>` (and `in<i>`). Returns it, and how to declare
    /// the buffer. Adds the functions that the statement calls to `helpers`.
    pub(super) fn read(
        &self,
        i: usize,
        load: &Load,
        buffer: &str,
        position: Position,
        params: &mut Fields,
        helpers: &mut Declarations,
    ) -> (String, Declared) {
        let register = load.dtype.register().scalar();
        if load.source == LoadSource::Index {
            return (self.index(i, position, params, helpers), Declared::Scalar);
        }
        if self.is_single(i) {
            let at = params.place(format_args!("o{i}"), &self.offsets[i]);
            let element = unpack_scalar(load.dtype, buffer, format_args!("{at}"));
            return (format!("let v{i} = vec4<{register}>({element});\n"), Declared::Scalar);
        }
        if self.is_flat(i) {
            match position.flat {
                Flat::Quad(q) => {
                    let vector = unpack_vector(load.dtype, format_args!("{buffer}[{q}]"));
                    return (format!("let v{i} = {vector};\n"), Declared::Vector);
                }
                Flat::Lanes => {
                    let four = four(&|k| unpack_scalar(load.dtype, buffer, format_args!("e{k}")));
                    return (format!("let v{i} = vec4<{register}>({four});\n"), Declared::Scalar);
                }
                Flat::Unknown => {}
            }
        }
        let vectors = position.coordinates == Coordinates::One && self.reads_vectors(i);
        self.declare_load(i, load, buffer, vectors, params, helpers);
        let prefix = &params.prefix;
        let windowed = self.loads[i].iter().any(|axis| axis.window.is_some());
        let inner = self.loads[i].last();
        let mut text = String::new();
        if position.coordinates == Coordinates::Four {
            if windowed {
                let _ = writeln!(
                    text,
                    "let in{i} = vec4<bool>({});",
                    four(&|k| format!("{prefix}inside{i}(c{k})"))
                );
            }
            let _ = writeln!(
                text,
                "let v{i} = vec4<{register}>({});",
                four(&|k| format!("{prefix}get{i}(c{k})"))
            );
            return (text, Declared::Scalar);
        }
        if vectors {
            let vector = unpack_vector(load.dtype, format_args!("{buffer}[{prefix}at{i}(c) / 4u]"));
            if windowed {
                let zero = zero(load.dtype.register());
                let _ = write!(
                    text,
                    "let in{i} = vec4<bool>({prefix}inside{i}(c));\nvar v{i} = vec4<{register}>({zero});\n\
                     if (in{i}.x) {{ v{i} = {vector}; }}\n"
                );
            } else {
                let _ = writeln!(text, "let v{i} = {vector};");
            }
            return (text, Declared::Vector);
        }
        if inner.is_none_or(|axis| axis.stride == 0 && axis.window.is_none()) {
            // All four lanes read one element.
            if windowed {
                let _ = writeln!(text, "let in{i} = vec4<bool>({prefix}inside{i}(c));");
            }
            let _ = writeln!(text, "let v{i} = vec4<{register}>({prefix}get{i}(c));");
            return (text, Declared::Scalar);
        }
        helpers.add(format!("{prefix}shifted"), || {
            format!(
                "fn {prefix}shifted(c: array<u32, {prefix}RANK>, by: u32) -> array<u32, {prefix}RANK> {{\n    \
                 var s = c;\n    s[{prefix}RANK - 1u] += by;\n    return s;\n}}\n\n"
            )
        });
        if windowed {
            let _ = writeln!(
                text,
                "let in{i} = vec4<bool>({});",
                four(&|k| format!("{prefix}inside{i}({prefix}shifted(c, {k}u))"))
            );
        }
        let _ = writeln!(
            text,
            "let v{i} = vec4<{register}>({});",
            four(&|k| format!("{prefix}get{i}({prefix}shifted(c, {k}u))"))
        );
        (text, Declared::Scalar)
    }

    /// As [`IterationSpace::read`] for an index that is computed.
    fn index(
        &self,
        i: usize,
        position: Position,
        params: &mut Fields,
        helpers: &mut Declarations,
    ) -> String {
        const STEPS: &str = "vec4<u32>(0u, 1u, 2u, 3u)";
        if self.is_single(i) {
            let at = params.place(format_args!("o{i}"), &self.offsets[i]);
            return format!("let v{i} = vec4<u32>({at});\n");
        }
        if self.is_flat(i) {
            match position.flat {
                Flat::Quad(q) => return format!("let v{i} = vec4<u32>(4u * {q}) + {STEPS};\n"),
                Flat::Lanes => return format!("let v{i} = vec4<u32>(e0, e1, e2, e3);\n"),
                Flat::Unknown => {}
            }
        }
        self.declare_at(i, params, helpers);
        let prefix = params.prefix.clone();
        match position.coordinates {
            Coordinates::Four => {
                format!("let v{i} = vec4<u32>({});\n", four(&|k| format!("{prefix}at{i}(c{k})")))
            }
            Coordinates::One => {
                let step = self.loads[i].last().map_or(0, |axis| axis.stride);
                let step = params.add(format_args!("t{i}"), step as u32);
                format!("let v{i} = vec4<u32>({prefix}at{i}(c)) + {step} * {STEPS};\n")
            }
        }
    }

    /// True if the four elements of a quad are contiguous in the buffer of load `i`, beginning at a multiple of four.
    fn reads_vectors(&self, i: usize) -> bool {
        let Some((inner, outer)) = self.loads[i].split_last() else { return false };
        !self.reads_singly()
            && inner.stride == 1
            && inner.window.is_none()
            && self.offsets[i].in_fours()
            && outer.iter().all(|axis| axis.stride % 4 == 0)
    }

    /// Writes `at<i>` (coordinates to index) and returns the conditions under which there is an element.
    fn declare_at(&self, i: usize, params: &mut Fields, helpers: &mut Declarations) -> Vec<String> {
        let mut sum = params.place(format_args!("o{i}"), &self.offsets[i]);
        let mut conditions = Vec::new();
        for (k, axis) in self.loads[i].iter().enumerate() {
            if axis.stride == 0 && axis.window.is_none() {
                continue;
            }
            let mut coordinate = format!("c[{k}]");
            if let Some(window) = &axis.window {
                let low = params.place(format_args!("l{i}_{k}"), &window.low);
                let len = params.add(format_args!("n{i}_{k}"), window.len as u32);
                // Below the window the difference wraps to a number beyond the window's length.
                let from_low = format!("(c[{k}] - {low})");
                if window.dilation == 1 {
                    conditions.push(format!("{from_low} < {len}"));
                    coordinate = from_low;
                } else {
                    let step = params.add(format_args!("g{i}_{k}"), window.dilation as u32);
                    conditions.push(format!("{from_low} % {step} == 0u"));
                    conditions.push(format!("{from_low} / {step} < {len}"));
                    coordinate = format!("({from_low} / {step})");
                }
            }
            let stride = params.add(format_args!("s{i}_{k}"), axis.stride as u32);
            let _ = write!(sum, " + {coordinate} * {stride}");
        }
        // Each pass of a kernel reads a load once.
        let prefix = &params.prefix;
        helpers.add(format!("{prefix}at{i}"), || {
            format!(
                "fn {prefix}at{i}(c: array<u32, {prefix}RANK>) -> u32 {{\n    return {sum};\n}}\n\n"
            )
        });
        conditions
    }

    /// Writes `at<i>`, `inside<i>` if there are windows, and `get<i>` unless vectors are read.
    fn declare_load(
        &self,
        i: usize,
        load: &Load,
        buffer: &str,
        vectors: bool,
        params: &mut Fields,
        helpers: &mut Declarations,
    ) {
        let prefix = params.prefix.clone();
        let known = helpers.has(&format!("{prefix}at{i}"));
        let conditions = self.declare_at(i, params, helpers);
        if known {
            return;
        }
        let register = load.dtype.register();
        let mut guard = String::new();
        if !conditions.is_empty() {
            helpers.add(format!("{prefix}inside{i}"), || {
                format!(
                    "fn {prefix}inside{i}(c: array<u32, {prefix}RANK>) -> bool {{\n    return {};\n}}\n\n",
                    conditions.join(" && ")
                )
            });
            guard = format!("    if (!{prefix}inside{i}(c)) {{ return {}; }}\n", zero(register));
        }
        if vectors {
            return;
        }
        let element = unpack_scalar(load.dtype, buffer, format_args!("at"));
        helpers.add(format!("{prefix}get{i}"), || {
            format!(
                "fn {prefix}get{i}(c: array<u32, {prefix}RANK>) -> {} {{\n{guard}    let at = {prefix}at{i}(c);\n    return {element};\n}}\n\n",
                register.scalar()
            )
        });
    }
}

/// Declares the number of coordinates.
fn declare_rank(rank: usize, prefix: &str, helpers: &mut Declarations) {
    helpers.add(format!("{prefix}RANK"), || format!("const {prefix}RANK: u32 = {rank}u;\n\n"));
}

fn four(lane: &dyn Fn(usize) -> String) -> String {
    format!("{}, {}, {}, {}", lane(0), lane(1), lane(2), lane(3))
}

fn zero(register: Register) -> &'static str {
    match register {
        Register::F32 => "0.0",
        Register::I32 => "0i",
        Register::U32 => "0u",
        Register::Bool => "false",
    }
}
