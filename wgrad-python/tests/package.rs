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
        // As in `ops.py`: functions of Keras have no "tf." in front.
        let name = if name.starts_with("keras.") { name.into() } else { format!("tf.{name}") };
        assert!(inventory::find(&name).is_some(), "there is no op {name}");
    }
}

#[test]
fn the_licences_are_those_of_the_repository() {
    // A wheel contains the files next to its pyproject.toml.
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(name)).unwrap();
        assert_eq!(read(here), read(here.parent().unwrap()), "{name}");
    }
}
