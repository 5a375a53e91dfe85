//! The package in `python/`: what it calls exists in the crate.

#![allow(clippy::unwrap_used)]

use wgrad::inventory;

#[test]
fn every_function_of_the_package_is_an_op() {
    let text = include_str!("../python/wgrad/ops.py");
    let table = text.split("_TABLE = \"\"\"").nth(1).unwrap().split("\"\"\"").next().unwrap();
    let names: Vec<&str> = table.lines().filter_map(|line| line.split(' ').next()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 150, "{} functions", names.len());
    for name in names {
        assert!(inventory::find(&format!("tf.{name}")).is_some(), "there is no op tf.{name}");
    }
}
