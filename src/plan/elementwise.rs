//! Emits kernels of elementwise nodes: each thread computes four consecutive elements of every output.

use super::iteration_space::{Coordinates, Declared, Flat, Position, pack, stored};
use super::kernel_ir::{KernelIr, Operand, Roll};
use super::tiles::Tiles;
use super::wgsl_module::Section;
use super::wgsl_writer::{Bound, Common, Defined, Writer, indented, operand_name, vector};
use crate::graph::Graph;

pub(super) const WORKGROUP: usize = Tiles::THREADS;

/// How many workgroups the kernel has.
pub(super) fn workgroups(ir: &KernelIr) -> u64 {
    let all = || ir.space.count(false).div_ceil(4).div_ceil(WORKGROUP);
    ir.tiles.map_or_else(all, Tiles::workgroups) as u64
}

/// How many iterations the loops of one thread make.
pub(super) fn iterations(ir: &KernelIr) -> usize {
    ir.roll.as_ref().map_or(0, |roll| roll.turns) * (1 + ir.iterations()) + ir.iterations()
}

/// Writes the kernel of an IR without folds and without an anchor.
pub(super) fn generate(graph: &Graph, ir: &KernelIr, prefix: &str, common: &mut Common) -> Section {
    let elements = ir.space.count(false);
    let mut writer = Writer::new(ir, "p.", prefix, common);
    let mut text = match ir.tiles {
        Some(tiles) => tiles.quad(&mut writer.params),
        None => {
            let end = writer.params.add(format_args!("quads"), elements.div_ceil(4) as u32);
            format!("let q = thread;\nif (q >= {end}) {{ return; }}\n")
        }
    };
    let mut position = Position { flat: Flat::Quad("q"), coordinates: Coordinates::One };
    if ir.space.walks() {
        ir.space.declare(&mut writer.params, &mut writer.helpers);
        if ir.space.aligned() {
            text.push_str(&format!("let c = {prefix}coordinates(4u * q);\n"));
        } else {
            position.coordinates = Coordinates::Four;
            let last = writer.params.add(format_args!("last"), elements as u32 - 1);
            // The last quad may reach beyond the end; there, it reads the last element again.
            for lane in 0..4 {
                let at = format!("min(4u * q + {lane}u, {last})");
                text.push_str(&format!("let c{lane} = {prefix}coordinates({at});\n"));
            }
        }
    }
    let mut defined = Defined::nothing(ir);
    let values = match &ir.roll {
        Some(roll) => rolled(&mut writer, roll, position, &mut defined, &mut text),
        None => {
            let wanted: Vec<Operand> = (0..ir.outputs.len()).flat_map(|k| ir.wanted(k)).collect();
            text.push_str(&writer.compute(position, wanted, &mut defined));
            let instances = ir.outputs.iter().map(|output| Operand::Instance(output.instance));
            instances.map(operand_name).collect()
        }
    };
    let mut stores = Vec::new();
    for ((k, output), value) in ir.outputs.iter().enumerate().zip(values) {
        let value = pack(output.dtype, format_args!("{value}"));
        let target = writer.target(k);
        let store = format!("{target}[q] = {value};\n");
        match ir.partial_update(k) {
            // Most elements keep their values: they cost neither a read nor a write.
            Some(condition) => {
                let wanted = [Operand::Instance(output.instance)];
                let compute = writer.compute(position, wanted, &mut defined.clone());
                let condition = operand_name(condition);
                let inside = indented(&format!("{compute}{store}"), 4);
                text.push_str(&format!("if (any({condition})) {{\n{inside}}}\n"));
            }
            None => text.push_str(&store),
        }
        stores.push((Bound::Output(k), target, stored(output.dtype, Declared::Vector)));
    }
    let loops = (workgroups(ir), iterations(ir));
    Section::new(writer, graph, &stores, text, loops, WORKGROUP)
}

/// Writes the loop over the turns of `roll`. Returns the names of the values to store after it.
fn rolled(
    writer: &mut Writer,
    roll: &Roll,
    position: Position,
    defined: &mut Defined,
    text: &mut String,
) -> Vec<String> {
    let ir = writer.ir;
    // These are the inputs of the first turn, and the values that all turns read.
    let loads = (0..ir.loads.len()).map(Operand::Load);
    text.push_str(&writer.compute(position, loads, defined));
    let handed: Vec<(usize, Operand)> =
        roll.next.iter().enumerate().filter_map(|(i, next)| next.map(|next| (i, next))).collect();
    for &(i, _) in &handed {
        text.push_str(&format!("var s{i} = v{i};\n"));
    }
    let mut inside = String::new();
    for &(i, _) in &handed {
        inside.push_str(&format!("let v{i} = s{i};\n"));
    }
    let made = |operand: &Operand| matches!(operand, Operand::Instance(_)).then_some(*operand);
    let wanted: Vec<Operand> =
        roll.next.iter().flatten().chain(&roll.results).filter_map(made).collect();
    inside.push_str(&writer.compute(position, wanted, defined));
    for &(i, next) in &handed {
        inside.push_str(&format!("s{i} = {};\n", operand_name(next)));
    }
    let mut values = Vec::new();
    for (k, (result, output)) in roll.results.iter().zip(&ir.outputs).enumerate() {
        values.push(match *result {
            Operand::Load(i) => format!("s{i}"),
            made => {
                let ty = vector(output.dtype.register());
                text.push_str(&format!("var r{k}: {ty};\n"));
                inside.push_str(&format!("r{k} = {};\n", operand_name(made)));
                format!("r{k}")
            }
        });
    }
    let turns = writer.params.add(format_args!("turns"), roll.turns as u32);
    let inside = indented(&inside, 4);
    text.push_str("var turn = 0u;\n");
    let at_once = writer.hidden.turns_at_once();
    if at_once > 1 {
        let copies = indented(&format!("{{\n{inside}}}\n").repeat(at_once), 4);
        text.push_str(&format!(
            "for (; turn + {at_once}u <= {turns}; turn += {at_once}u) {{\n{copies}}}\n"
        ));
    }
    text.push_str(&format!("for (; turn < {turns}; turn++) {{\n{inside}}}\n"));
    values
}
