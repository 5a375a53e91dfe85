//! The inventory of ops is complete, and the documents derived from it are correct: `docs/ops.md` and the table of JavaScript.
//!
//! `WGRAD_DOCS=write cargo xtask test --test ops inventory::` rewrites the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use wgrad::inventory::{self, Args, Entry, Gradient, OpKind, Stop, Value};
use wgrad::{DType, Error, Tensor};

use crate::oracle;
use crate::support::root::root;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The public functions and methods of a source file that return tensors.
fn public_functions(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for part in source.split("pub fn ").skip(1) {
        let name = part.split(['(', '<']).next().unwrap();
        let signature = part.split('{').next().unwrap();
        let gives = signature.rsplit("->").next().unwrap();
        let row = name.starts_with('$');
        if gives.contains("Tensor") && !row {
            names.push(name);
        }
    }
    names
}

/// Every name in Rust.
fn names() -> impl Iterator<Item = &'static str> {
    inventory::all()
        .flat_map(|entry| std::iter::once(entry.name).chain(entry.forms.iter().copied()))
}

/// The public module before a function's name, if others have the same name: `image::transpose`.
fn module_of(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src/ops")).unwrap();
    let first = inside.components().next()?.as_os_str().to_str()?;
    ["image", "signal"].contains(&first).then(|| first.to_string())
}

#[test]
fn every_public_op_is_in_the_inventory() {
    let known: BTreeSet<&str> = names().collect();
    assert_eq!(known.len(), names().count(), "a name stands twice");
    let mut seen = 0;
    for path in sources(&root().join("src/ops")) {
        // The inventory makes tensors for tests.
        if path.components().any(|part| part.as_os_str() == "inventory") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let names = public_functions(&source);
        seen += names.len();
        let module = module_of(&path);
        for name in names {
            let name = module.as_ref().map_or(name.into(), |module| format!("{module}::{name}"));
            assert!(
                known.contains(&name[..]),
                "{name} of {} is in no ENTRIES; see CONTRIBUTING.md",
                path.display()
            );
        }
        if source.contains("const ENTRIES") {
            let module = path.strip_prefix(root().join("src/ops")).unwrap();
            let name = module.to_str().unwrap().split(['/', '.']).next().unwrap();
            let all = fs::read_to_string(root().join("src/ops/inventory/mod.rs")).unwrap();
            assert!(all.contains(&format!("super::{name}::ENTRIES")), "{name} is not in ALL");
        }
    }
    assert!(seen > 40, "only {seen} functions were found");
}

#[test]
fn names_of_tensorflow_stand_once() {
    let mut seen = BTreeMap::new();
    for entry in inventory::all() {
        for name in entry.tensorflow {
            assert_eq!(seen.insert(name, entry.name), None, "{name} is {} too", entry.name);
        }
        assert!(!entry.dtypes.is_empty(), "{} takes nothing", entry.name);
    }
}

/// JavaScript's methods by their names in Rust.
fn javascript() -> BTreeMap<String, String> {
    let mut methods = BTreeMap::new();
    for file in ["ops.rs", "tensor.rs"] {
        let source = fs::read_to_string(root().join("web/src").join(file)).unwrap();
        let mut named = None;
        for line in source.lines().map(str::trim) {
            if let Some((name, js)) = line.strip_suffix("\";").and_then(|l| l.split_once(" = \"")) {
                methods.insert(name.to_string(), js.to_string());
            }
            if let Some((_, name)) = line.split_once("js_name = ") {
                named = name.split([')', ',']).next().filter(|name| !name.starts_with('$'));
            }
            if let Some(name) = line.strip_prefix("pub fn ").and_then(|l| l.split('(').next()) {
                let js = named.take().unwrap_or(name);
                methods.insert(name.to_string(), js.to_string());
            }
        }
    }
    methods
}

/// The rows missing from the tables of `web/src/ops.rs`, and the methods that replace them.
const NOT_IN_JAVASCRIPT: [(&str, &str); 1] = [("real_divide", "divide")];

/// Methods in its tables that make tensors without inputs, and so are not ops.
const NO_OPS: [&str; 2] = ["zeros_like", "ones_like"];

#[test]
fn javascript_has_every_row() {
    let methods = javascript();
    for entry in inventory::all().filter(|entry| entry.kind == OpKind::Row) {
        let left_out = NOT_IN_JAVASCRIPT.iter().find(|(name, _)| *name == entry.name);
        let name = left_out.map_or(entry.name, |(_, instead)| instead);
        assert!(methods.contains_key(name), "web/src/ops.rs has no line for {name}");
    }
    let source = fs::read_to_string(root().join("web/src/ops.rs")).unwrap();
    let lines = source.lines().filter_map(|line| line.trim().strip_suffix("\";"));
    let names: Vec<&str> = lines.filter_map(|l| Some(l.split_once(" = \"")?.0)).collect();
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        let known = NO_OPS.contains(&name) || inventory::all().any(|entry| entry.name == name);
        assert!(known, "{name} is no op");
    }
}

fn dtypes(entry: &Entry) -> String {
    if entry.dtypes.len() == DType::ALL.len() {
        return "all".to_string();
    }
    let names: Vec<&str> = entry.dtypes.iter().map(|dtype| dtype.name()).collect();
    names.join(" ")
}

/// The expected text of `docs/ops.md`.
fn page() -> String {
    let golden = oracle::Oracle::open(&root().join("tests/data/oracle"));
    let mut cases: BTreeMap<&str, usize> = BTreeMap::new();
    for case in golden.all() {
        *cases.entry(case.op.as_str()).or_default() += 1;
    }
    let methods = javascript();
    let mut text = String::from(
        "# Ops\n\n\
         Made from the inventory of ops (`src/ops/inventory`); `tests/ops/inventory.rs` compares it. After a change of ops:\n\
         `WGRAD_DOCS=write cargo xtask test --test ops inventory::`.\n\n\
         *Gradient*: yes where one is checked against differences, to second order; else why there is none. *Cases*:\n\
         TensorFlow's own results for it in `tests/data/oracle`, which `tests/oracle.rs` compares; the whole collection has\n\
         more. *Made as*: a row of a table, composed of other ops, or with a lowering or kernel of its own.\n\n\
         | op | TensorFlow | dtypes | gradient | cases | made as | JavaScript |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for entry in inventory::all() {
        let names: Vec<String> = entry.tensorflow.iter().map(|name| format!("`{name}`")).collect();
        let gradient = match entry.gradient {
            Gradient::Checked | Gradient::CheckedBy(_) => "yes",
            Gradient::None(reason) => reason.split_once(": ").map_or(reason, |(_, why)| why),
        };
        let count: usize = entry.tensorflow.iter().filter_map(|name| cases.get(name)).sum();
        let made = match entry.kind {
            OpKind::Row => "row",
            OpKind::Composed => "composed",
            OpKind::Kernel => "kernel",
        };
        let js = methods.get(entry.name).map(|name| format!("`{name}`")).unwrap_or_default();
        text += &format!(
            "| `{}` | {} | {} | {gradient} | {count} | {made} | {js} |\n",
            entry.name,
            names.join(" "),
            dtypes(entry),
        );
    }
    text
}

#[test]
fn the_page_of_ops_is_true() {
    let path = root().join("docs/ops.md");
    let page = page();
    if std::env::var("WGRAD_DOCS").is_ok_and(|what| what == "write") {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let old = there.lines().zip(page.lines()).find(|(there, page)| there != page);
    assert!(
        there == page,
        "docs/ops.md is old ({old:?}): WGRAD_DOCS=write cargo xtask test --test ops inventory::"
    );
}

/// Arguments that hold indices, lengths or booleans, whatever the dtype of the others.
const FIXED: &[(&str, DType)] = &[
    ("indices", DType::I32),
    ("ids", DType::I32),
    ("segment_ids", DType::I32),
    ("seq_lengths", DType::I32),
    ("lengths", DType::I32),
    ("condition", DType::Bool),
    ("mask", DType::Bool),
];

/// A valid value of a required attribute.
fn attribute(key: &str) -> Option<Value> {
    let ints = |list: &[i64]| Value::List(list.iter().map(|n| Value::Int(*n)).collect());
    Some(match key {
        "depth" | "num_segments" | "k" | "block_size" | "num_classes" | "maxlen" => Value::Int(2),
        "multiples" | "shape" => ints(&[2, 4]),
        "begin" => ints(&[0, 0]),
        "size" => ints(&[2, 2]),
        "shift" | "axis" | "num_or_size_splits" => Value::Int(1),
        "min" | "alpha" | "threshold" | "default_value" | "clip_norm" => Value::Float(0.5),
        "max" => Value::Float(3.0),
        "dtype" => Value::Text("int32".into()),
        "paddings" => Value::List(vec![ints(&[1, 0]), ints(&[0, 1])]),
        _ => return None,
    })
}

/// Calls an op with tensors of `dtype` and of a valid shape; `None` if the table above has no such call.
fn call_with(entry: &Entry, dtype: DType, shape: &[usize]) -> Option<Result<(), Error>> {
    let make = |dtype: DType| {
        let n = shape.iter().product();
        Tensor::from_slice(&vec![1i32; n], shape.to_vec()).and_then(|x| x.cast(dtype))
    };
    let (mut tensors, mut attributes) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        let args = Args::new(tensors.clone(), attributes.clone());
        match (entry.call)(&args) {
            Ok(_) => return Some(Ok(())),
            Err(Stop::Failed(error)) => return Some(Err(error)),
            Err(Stop::Lacks(key)) => {
                let known = tensors.iter().any(|(known, _): &(String, Vec<Tensor>)| *known == key)
                    || attributes.iter().any(|(known, _): &(String, Value)| *known == key);
                if key.is_empty() || known {
                    return None;
                }
                match attribute(&key) {
                    Some(value) => attributes.push((key, value)),
                    None => {
                        let fixed = FIXED.iter().find(|(name, _)| *name == key);
                        let x = make(fixed.map_or(dtype, |(_, dtype)| *dtype)).unwrap();
                        let list = if key == "xs" { vec![x.clone(), x] } else { vec![x] };
                        tensors.push((key, list));
                    }
                }
            }
        }
    }
    None
}

/// Shapes, one of which suits each op: vectors, matrices, square ones, pictures, and batches of these.
const SHAPES: [&[usize]; 5] = [&[2, 4], &[3, 3], &[4], &[4, 4, 3], &[2, 4, 4, 3]];

/// Ops whose calls here do not verify their listed dtypes, or that accept more; and the reasons.
const OTHERWISE: &[(&str, &str)] = &[
    ("clip_by_value", "its bounds are floats here"),
    ("where_", "the first tensor is the condition"),
    ("signal::linear_to_mel_weight_matrix", "its tensors are numbers"),
    ("crelu", "integers have no gradient, and are left out"),
    ("embedding_lookup", "the same"),
    ("image::per_image_standardization", "truth values become floats"),
];

#[test]
fn ops_take_the_dtypes_that_the_page_lists() {
    let f16 = Tensor::ones([1]).unwrap().cast(DType::F16).is_ok();
    let mut wrong = Vec::new();
    let mut tried = 0;
    for entry in inventory::all() {
        if OTHERWISE.iter().any(|(name, _)| *name == entry.name) {
            continue;
        }
        // A shape with which a listed dtype works.
        let works =
            |dtype: DType, shape: &[usize]| matches!(call_with(entry, dtype, shape), Some(Ok(())));
        let first =
            SHAPES.iter().find(|shape| entry.dtypes.iter().any(|dtype| works(*dtype, shape)));
        let Some(shape) = first else { continue };
        tried += 1;
        for dtype in DType::ALL.into_iter().filter(|dtype| f16 || *dtype != DType::F16) {
            let listed = entry.dtypes.contains(&dtype);
            match call_with(entry, dtype, shape) {
                Some(Ok(())) if !listed => {
                    wrong.push(format!("{} takes {dtype}, unlisted", entry.name))
                }
                Some(Err(error)) if listed => {
                    wrong.push(format!("{} lists {dtype}: {error}", entry.name));
                }
                Some(Err(error)) if !matches!(error, Error::DType(_)) => {
                    wrong.push(format!("{} refuses {dtype} otherwise: {error}", entry.name));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tried} ops:\n  {}", wrong.len(), wrong.join("\n  "));
    assert!(tried > 200, "only {tried} ops were called");
}
