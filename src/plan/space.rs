//! How a pointwise kernel walks its inputs: the output's axes merged where all loads agree, and the WGSL that reads
//! each load at an output element. Views become index arithmetic here.

use std::fmt::Write;

use super::pointwise::Load;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Strided, View, ViewAxis};
use crate::shape::Shape;

/// How a load's buffer is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Vector,
    Scalar,
}

pub(super) fn stored(dtype: DType, kind: Kind) -> &'static str {
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

pub(super) fn pack(dtype: DType, value: &str) -> String {
    match dtype {
        DType::F16 => format!("vec4<f16>({value})"),
        DType::Bool => format!("select(vec4<u32>(0u), vec4<u32>(1u), {value})"),
        DType::U8 => format!("pack_bytes({value})"),
        _ => value.to_string(),
    }
}

/// The uniform struct: named words.
#[derive(Default)]
pub(super) struct Fields {
    names: Vec<String>,
    pub(super) values: Vec<u32>,
}

impl Fields {
    pub(super) fn add(&mut self, name: &str, value: u32) {
        self.names.push(name.to_string());
        self.values.push(value);
    }

    pub(super) fn declarations(&self) -> String {
        self.names.iter().map(|name| format!("    {name}: u32,\n")).collect()
    }
}

/// The output's axes after those that every load walks alike are merged.
pub(super) struct Space {
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
    pub(super) fn new(shape: &Shape, loads: &[Load]) -> Self {
        let own = shape.strides();
        let axes: Vec<Vec<ViewAxis>> = loads
            .iter()
            .map(|load| match load.view {
                View::Same => own.iter().map(|&stride| ViewAxis { stride, window: None }).collect(),
                View::Strided(Strided { axes, .. }) => axes.to_vec(),
            })
            .collect();
        let offsets = loads
            .iter()
            .map(|load| match load.view {
                View::Same => 0,
                View::Strided(strided) => strided.offset,
            })
            .collect();
        let mut space = Space { sizes: shape.to_vec(), axes, offsets, walk: Walk::Lanes };
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
    pub(super) fn declare(
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
    pub(super) fn read(
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
