//! How each op of this crate is written with ONNX's.

mod arrays;
mod math;
mod neural;

use super::builder::{Builder, Out};
use crate::saved_model::traced::{Found, Site};

/// Adds the nodes of a call; returns its result.
type Write = fn(&mut Builder, &Site, &[Out]) -> Found<Out>;

const TABLES: [&[(&str, Write)]; 3] = [arrays::OPS, math::OPS, neural::OPS];

pub(super) fn write(builder: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let kind = site.call().kind;
    let found = TABLES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == kind);
    let (_, write) = found.ok_or_else(missing)?;
    write(builder, site, inputs)
}

fn missing() -> String {
    "has no counterpart in ONNX".to_string()
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
