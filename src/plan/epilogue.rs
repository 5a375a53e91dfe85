//! Emits the epilogue of kernels with a custom shader: where the shader stores its results, the epilogue first computes
//! the elementwise nodes that follow, while the results are in registers.
//!
//! Such a shader passes four consecutive results at a time to `c_store(at, count, v)`; this file writes that function.

use std::fmt::Write;

use super::iteration_space::{Coordinates, Declared, Flat, Position, pack, stored};
use super::kernel_ir::{Code, KernelIr, Operand};
use super::wgsl_writer::{
    Bound, Common, Defined, EmittedKernel, LANES, Writer, declare, indented, pack_lane, rounded,
};
use crate::device::Access;
use crate::dtype::DType;
use crate::graph::lower::{self, Bind};

/// The most vectors of four results that an invocation of any kernel stores.
const STORES: usize = 64;

/// How many iterations the loops of `kernel` make together with its epilogue.
pub(super) fn iterations(ir: &KernelIr, kernel: &lower::Kernel) -> usize {
    kernel.iterations + STORES * ir.iterations()
}

/// Writes `kernel`, the last of the anchor's kernels, with the rest of the IR as its epilogue.
pub(super) fn generate(ir: &KernelIr, kernel: &lower::Kernel) -> EmittedKernel {
    let mut common = Common::default();
    let mut writer = Writer::new(ir, "ep.", "", &mut common);
    let aligned = ir.quads;
    let text = store(&mut writer, aligned);

    let mut wgsl = String::new();
    let mut binds: Vec<Bound> = (0..kernel.binds.len()).map(Bound::Own).collect();
    let mut accesses: Vec<Access> = kernel.binds.iter().map(|(_, access)| *access).collect();
    accesses.push(Access::Uniform);
    // The kernel's own uniform `p` follows its other bindings.
    let first = accesses.len();
    for (k, (bound, name, ty)) in writer.loads().into_iter().enumerate() {
        declare(&mut wgsl, first + k, "read", &name, ty);
        accesses.push(Access::Read);
        binds.push(bound);
    }
    let own = kernel.binds.iter().position(|(bind, _)| *bind == Bind::Output);
    let kind = if aligned { Declared::Vector } else { Declared::Scalar };
    for (k, output) in ir.outputs.iter().enumerate() {
        // The first output replaces the kernel's own result.
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
    wgsl.push_str(writer.helpers.text());
    wgsl.push_str(&text);
    let source = kernel.source_with(&wgsl, writer.uses_f16(), accesses);
    let binds = binds.into_iter().map(|bound| (0, bound)).collect();
    EmittedKernel {
        source,
        grid: kernel.grid(),
        binds,
        params,
        varying: writer.params.varying,
        flops: kernel.flops,
        iterations: iterations(ir, kernel),
    }
}

/// Writes the function that receives four results, computes the epilogue and stores its outputs.
fn store(writer: &mut Writer, aligned: bool) -> String {
    let ir = writer.ir;
    let mut text = String::new();
    let mut defined = Defined::nothing(ir);
    for (i, instance) in ir.instances.iter().enumerate() {
        if let Code::Anchor = instance.code {
            let _ = writeln!(text, "let t{i} = {};", rounded(instance.dtype, format_args!("v")));
            defined.instance(i);
        }
    }
    let walks = ir.space.walks();
    if walks {
        ir.space.declare(&mut writer.params, &mut writer.helpers);
    }
    let position = if aligned {
        text.push_str("let q = at / 4u;\n");
        let mut coordinates = Coordinates::One;
        if walks && ir.space.aligned() {
            text.push_str("let c = coordinates(at);\n");
        } else if walks {
            // The results' last axis consists of whole vectors, but that of the following nodes does not.
            coordinates = Coordinates::Four;
            for lane in 0..4 {
                let _ = writeln!(text, "let c{lane} = coordinates(at + {lane}u);");
            }
        }
        Position { flat: Flat::Quad("q"), coordinates }
    } else {
        let last = writer.params.add(format_args!("last"), ir.space.count(false) as u32 - 1);
        for lane in 0..4 {
            let _ = writeln!(text, "let e{lane} = min(at + {lane}u, {last});");
            if walks {
                let _ = writeln!(text, "let c{lane} = coordinates(e{lane});");
            }
        }
        Position { flat: Flat::Lanes, coordinates: Coordinates::Four }
    };
    let wanted = ir.outputs.iter().map(|output| Operand::Instance(output.instance));
    let wanted: Vec<Operand> = wanted.collect();
    text.push_str(&writer.compute(position, wanted, &mut defined));
    for (k, output) in ir.outputs.iter().enumerate() {
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
        debug_assert!(output.dtype != DType::U8, "kernel IRs with bytes are aligned");
        for (lane, name) in LANES.iter().enumerate() {
            let value = pack_lane(output.dtype, format_args!("{value}.{name}"));
            let guard = if lane == 0 { String::new() } else { format!("if (count > {lane}u) ") };
            let _ = writeln!(text, "{guard}{{ y{k}[at + {lane}u] = {value}; }}");
        }
    }
    format!("fn c_store(at: u32, count: u32, v: V) {{\n{}}}\n", indented(&text, 4))
}
