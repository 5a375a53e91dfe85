//! Kernels of pointwise nodes: each thread computes four consecutive elements of every output.

use super::body::{Body, Operand};
use super::code::{Bound, Defined, Kernel, Writer, indented, module};
use super::space::{Coordinates, Flat, Kind, Place, pack, stored};
use crate::graph::Graph;
use crate::graph::lower::fold;

const WORKGROUP: u32 = 64;

/// Writes the kernel of a body without folds and without an anchor.
pub(super) fn generate(graph: &Graph, body: &Body) -> Kernel {
    let elements = body.space.count(false);
    let quads = elements.div_ceil(4);
    let grid = fold((quads as u64).div_ceil(u64::from(WORKGROUP)));
    let mut writer = Writer::new(body, "p.");
    writer.params.add("quads", quads as u32);
    writer.params.add("width", grid[0] * WORKGROUP);

    let mut text = String::new();
    let mut place = Place { flat: Flat::Quad("q"), coordinates: Coordinates::One };
    if body.space.walks() {
        body.space.declare(&mut writer.params, &mut writer.helpers);
        if body.space.aligned() {
            text.push_str("let c = coordinates(4u * q);\n");
        } else {
            place.coordinates = Coordinates::Four;
            let last = writer.params.add("last", elements as u32 - 1);
            // The last quad may reach beyond the end; it reads the last element again.
            for lane in 0..4 {
                let at = format!("min(4u * q + {lane}u, {last})");
                text.push_str(&format!("let c{lane} = coordinates({at});\n"));
            }
        }
    }
    let wanted: Vec<Operand> =
        body.outputs.iter().map(|output| Operand::Instance(output.instance)).collect();
    text.push_str(&writer.compute(place, wanted, &mut Defined::nothing(body)));
    let mut stores = Vec::new();
    for (k, output) in body.outputs.iter().enumerate() {
        let value = pack(output.dtype, &format!("t{}", output.instance));
        let target = body.target(k);
        text.push_str(&format!("{target}[q] = {value};\n"));
        stores.push((Bound::Output(k), target, stored(output.dtype, Kind::Vector)));
    }
    let main = format!(
        "@compute @workgroup_size({WORKGROUP})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
         \x20   let q = id.y * p.width + id.x;\n\
         \x20   if (q >= p.quads) {{ return; }}\n\
         {}}}\n",
        indented(&text, 4)
    );
    let label = writer.label(graph);
    module(writer, label, &stores, "", &main, grid)
}
