//! How each op of this crate is written with TensorFlow's.

mod arrays;
mod math;
mod neural;

use super::builder::{Builder, Out, type_of};
use crate::dtype::DType;
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::traced::{Found, Site};

/// Adds the nodes of a call; returns its result.
type Write = fn(&mut Builder, &Site, &[Out]) -> Found<Out>;

const TABLES: [&[(&str, Write)]; 3] = [arrays::OPS, math::OPS, neural::OPS];

pub(super) fn write(builder: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let kind = site.call().kind;
    let found = TABLES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == kind);
    let (_, write) = found.ok_or("has no counterpart in TensorFlow")?;
    write(builder, site, inputs)
}

/// The attribute `T`.
fn t(dtype: DType) -> (&'static str, Attr) {
    ("T", type_of(dtype))
}

/// An attribute of whole numbers that are `int32` here.
fn int(name: &'static str) -> (&'static str, Attr) {
    (name, type_of(DType::I32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_is_in_one_table_once_and_exists() {
        let mut kinds: Vec<&str> =
            TABLES.iter().flat_map(|table| table.iter()).map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        let count = kinds.len();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
        let known: Vec<&str> = crate::ops::registry::kinds().collect();
        let unknown: Vec<&&str> = kinds.iter().filter(|kind| !known.contains(kind)).collect();
        assert!(unknown.is_empty(), "no op is {unknown:?}");
    }
}
