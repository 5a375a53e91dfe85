//! Kernels of pointwise nodes: each thread computes four consecutive elements of every output.

use super::body::{Body, Operand};
use super::code::{Bound, Common, Defined, Writer};
use super::parts::Part;
use super::space::{Coordinates, Flat, Kind, Place, pack, stored};
use crate::graph::Graph;

pub(super) const WORKGROUP: usize = 64;

/// Writes the kernel of a body without folds and without an anchor.
pub(super) fn generate(graph: &Graph, body: &Body, part: &str, common: &mut Common) -> Part {
    let elements = body.space.count(false);
    let quads = elements.div_ceil(4);
    let mut writer = Writer::new(body, "p.", part, common);
    let end = writer.params.add(format_args!("quads"), quads as u32);

    let mut text = format!("let q = thread;\nif (q >= {end}) {{ return; }}\n");
    let mut place = Place { flat: Flat::Quad("q"), coordinates: Coordinates::One };
    if body.space.walks() {
        body.space.declare(&mut writer.params, &mut writer.helpers);
        if body.space.aligned() {
            text.push_str(&format!("let c = {part}coordinates(4u * q);\n"));
        } else {
            place.coordinates = Coordinates::Four;
            let last = writer.params.add(format_args!("last"), elements as u32 - 1);
            // The last quad may reach beyond the end; it reads the last element again.
            for lane in 0..4 {
                let at = format!("min(4u * q + {lane}u, {last})");
                text.push_str(&format!("let c{lane} = {part}coordinates({at});\n"));
            }
        }
    }
    let wanted: Vec<Operand> =
        body.outputs.iter().map(|output| Operand::Instance(output.instance)).collect();
    text.push_str(&writer.compute(place, wanted, &mut Defined::nothing(body)));
    let mut stores = Vec::new();
    for (k, output) in body.outputs.iter().enumerate() {
        let value = pack(output.dtype, format_args!("t{}", output.instance));
        let target = writer.target(k);
        text.push_str(&format!("{target}[q] = {value};\n"));
        stores.push((Bound::Output(k), target, stored(output.dtype, Kind::Vector)));
    }
    Part::new(writer, graph, &stores, text, quads.div_ceil(WORKGROUP) as u64, WORKGROUP)
}
