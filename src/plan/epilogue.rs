//! Kernels with a shader of their own: pointwise nodes that go on from their results are computed where those are
//! stored, before they leave the registers.
//!
//! Such a shader hands every four consecutive results to `c_store(at, count, v)`, which is written here.

use std::fmt::Write;

use super::body::{Body, Code, Operand, last_axis_in_quads};
use super::code::{
    Bound, Common, Defined, Kernel, LANES, Writer, declare, indented, pack_lane, rounded,
};
use super::space::{Coordinates, Flat, Kind, Place, pack, stored};
use crate::device::Access;
use crate::dtype::DType;
use crate::graph::Graph;
use crate::graph::lower::{self, Bind};

/// Vectors of four results that an invocation of any kernel stores at most.
const STORES: usize = 64;

/// What the loops of `kernel` make with the rest of the body behind it.
pub(super) fn iterations(body: &Body, kernel: &lower::Kernel) -> usize {
    kernel.iterations + STORES * body.iterations()
}

/// Writes `kernel`, the last of the body's anchor, with the rest of the body behind it.
pub(super) fn generate(graph: &Graph, body: &Body, kernel: &lower::Kernel) -> Kernel {
    let mut common = Common::default();
    let mut writer = Writer::new(body, "ep.", "", &mut common);
    let aligned = body.anchor.is_some_and(|anchor| last_axis_in_quads(graph, anchor));
    let text = store(&mut writer, aligned);

    let mut wgsl = String::new();
    let mut binds: Vec<Bound> = (0..kernel.binds.len()).map(Bound::Own).collect();
    let mut accesses: Vec<Access> = kernel.binds.iter().map(|(_, access)| *access).collect();
    accesses.push(Access::Uniform);
    // The uniform `p` of the kernel stands behind its own bindings.
    let first = accesses.len();
    for (k, (bound, name, ty)) in writer.loads().into_iter().enumerate() {
        declare(&mut wgsl, first + k, "read", &name, ty);
        accesses.push(Access::Read);
        binds.push(bound);
    }
    let own = kernel.binds.iter().position(|(bind, _)| *bind == Bind::Output);
    let kind = if aligned { Kind::Vector } else { Kind::Scalar };
    for (k, output) in body.outputs.iter().enumerate() {
        // The first takes the place of the kernel's own result.
        let at = match (k, own) {
            (0, Some(at)) => {
                binds[at] = Bound::Output(0);
                at
            }
            _ => {
                binds.push(Bound::Output(k));
                accesses.push(Access::Write);
                accesses.len() - 1
            }
        };
        declare(&mut wgsl, at, "read_write", &writer.target(k), stored(output.dtype, kind));
    }
    let mut params = vec![kernel.params.iter().map(|(_, word)| *word).collect()];
    if !writer.params.values.is_empty() {
        let _ = writeln!(wgsl, "struct Epilogue {{\n{}}}", writer.params.declarations());
        let _ = writeln!(wgsl, "@group(0) @binding({}) var<uniform> ep: Epilogue;", accesses.len());
        accesses.push(Access::Uniform);
        params.push(writer.params.values.clone());
    }
    wgsl.push('\n');
    wgsl.push_str(&writer.common.functions());
    wgsl.push_str(&writer.helpers);
    wgsl.push_str(&text);
    let source = kernel.source_with(&wgsl, writer.uses_f16(), accesses);
    let binds = binds.into_iter().map(|bound| (0, bound)).collect();
    Kernel {
        source,
        grid: kernel.grid(),
        binds,
        params,
        words: writer.words,
        flops: kernel.flops,
        iterations: iterations(body, kernel),
    }
}

/// The function that takes four results and stores what becomes of them.
fn store(writer: &mut Writer, aligned: bool) -> String {
    let body = writer.body;
    let mut text = String::new();
    let mut defined = Defined::nothing(body);
    for (i, instance) in body.instances.iter().enumerate() {
        if let Code::Anchor = instance.code {
            let _ = writeln!(text, "let t{i} = {};", rounded(instance.dtype, format_args!("v")));
            defined.instance(i);
        }
    }
    let walks = body.space.walks();
    if walks {
        body.space.declare(&mut writer.params, &mut writer.helpers);
    }
    let place = if aligned {
        text.push_str("let q = at / 4u;\n");
        if walks && body.space.aligned() {
            text.push_str("let c = coordinates(at);\n");
        }
        Place { flat: Flat::Quad("q"), coordinates: Coordinates::One }
    } else {
        let last = writer.params.add(format_args!("last"), body.space.count(false) as u32 - 1);
        for lane in 0..4 {
            let _ = writeln!(text, "let e{lane} = min(at + {lane}u, {last});");
            if walks {
                let _ = writeln!(text, "let c{lane} = coordinates(e{lane});");
            }
        }
        Place { flat: Flat::Lanes, coordinates: Coordinates::Four }
    };
    let wanted = body.outputs.iter().map(|output| Operand::Instance(output.instance));
    let wanted: Vec<Operand> = wanted.collect();
    text.push_str(&writer.compute(place, wanted, &mut defined));
    for (k, output) in body.outputs.iter().enumerate() {
        let value = format!("t{}", output.instance);
        if aligned {
            let _ = writeln!(
                text,
                "{}[q] = {};",
                writer.target(k),
                pack(output.dtype, format_args!("{value}"))
            );
            continue;
        }
        debug_assert!(output.dtype != DType::U8, "bodies with bytes are aligned");
        for (lane, name) in LANES.iter().enumerate() {
            let value = pack_lane(output.dtype, format_args!("{value}.{name}"));
            let guard = if lane == 0 { String::new() } else { format!("if (count > {lane}u) ") };
            let _ = writeln!(text, "{guard}{{ y{k}[at + {lane}u] = {value}; }}");
        }
    }
    format!("fn c_store(at: u32, count: u32, v: V) {{\n{}}}\n", indented(&text, 4))
}
