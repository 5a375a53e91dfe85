//! Reads the golden cases in `tests/data/oracle` (or in the folder that `WGRAD_ORACLE` names).
//!
//! `tests/data/README.md` describes the format. This is test code: unreadable data causes a panic, with the file, the case and
//! the key in the message.

// Every integration test compiles its own copy of this module and uses only a part of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ndarray::{ArrayD, IxDyn};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Map, Value};

use super::root::root;

/// A stored tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    F32(ArrayD<f32>),
    I32(ArrayD<i32>),
    U8(ArrayD<u8>),
    Bool(ArrayD<bool>),
}

impl Array {
    pub fn shape(&self) -> &[usize] {
        match self {
            Array::F32(a) => a.shape(),
            Array::I32(a) => a.shape(),
            Array::U8(a) => a.shape(),
            Array::Bool(a) => a.shape(),
        }
    }

    /// The same numbers in f64 (exact for every type); false is 0, true is 1.
    pub fn as_f64(&self) -> ArrayD<f64> {
        match self {
            Array::F32(a) => a.mapv(f64::from),
            Array::I32(a) => a.mapv(f64::from),
            Array::U8(a) => a.mapv(f64::from),
            Array::Bool(a) => a.mapv(|b| f64::from(u8::from(b))),
        }
    }

    /// `"f32"`, `"i32"`, `"u8"` or `"bool"`.
    pub fn dtype(&self) -> &'static str {
        match self {
            Array::F32(_) => "f32",
            Array::I32(_) => "i32",
            Array::U8(_) => "u8",
            Array::Bool(_) => "bool",
        }
    }

    pub fn f32(&self) -> &ArrayD<f32> {
        match self {
            Array::F32(a) => a,
            other => panic!("an f32 tensor is wanted, this is {}", other.dtype()),
        }
    }

    pub fn i32(&self) -> &ArrayD<i32> {
        match self {
            Array::I32(a) => a,
            other => panic!("an i32 tensor is wanted, this is {}", other.dtype()),
        }
    }

    pub fn bool(&self) -> &ArrayD<bool> {
        match self {
            Array::Bool(a) => a,
            other => panic!("a bool tensor is wanted, this is {}", other.dtype()),
        }
    }

    /// int8 is widened to i32: only the packed weights of a trajectory use it.
    fn from_view(name: &str, view: &TensorView<'_>) -> Array {
        let data = view.data();
        match view.dtype() {
            Dtype::F32 => Array::F32(shaped(name, view, four(data, f32::from_le_bytes))),
            Dtype::I32 => Array::I32(shaped(name, view, four(data, i32::from_le_bytes))),
            Dtype::I8 => {
                let wide = data.iter().map(|&b| i32::from(i8::from_le_bytes([b]))).collect();
                Array::I32(shaped(name, view, wide))
            }
            Dtype::U8 => Array::U8(shaped(name, view, data.to_vec())),
            Dtype::BOOL => Array::Bool(shaped(name, view, data.iter().map(|&b| b != 0).collect())),
            other => panic!("tensor {name}: no reader for {other:?}"),
        }
    }
}

fn four<T>(data: &[u8], of: impl Fn([u8; 4]) -> T) -> Vec<T> {
    data.chunks_exact(4).map(|b| of([b[0], b[1], b[2], b[3]])).collect()
}

fn shaped<T>(name: &str, view: &TensorView<'_>, data: Vec<T>) -> ArrayD<T> {
    ArrayD::from_shape_vec(IxDyn(view.shape()), data)
        .unwrap_or_else(|e| panic!("tensor {name}: {e}"))
}

/// All tensors of a safetensors file.
pub fn read_safetensors(path: &Path) -> HashMap<String, Array> {
    let bytes =
        std::fs::read(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let file = SafeTensors::deserialize(&bytes)
        .unwrap_or_else(|e| panic!("{} is not a safetensors file: {e}", path.display()));
    file.iter().map(|(name, view)| (name.to_owned(), Array::from_view(name, &view))).collect()
}

/// A JSON file.
pub fn read_json(path: &Path) -> Value {
    parse_json(path, &read_text(path))
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}

fn parse_json(path: &Path, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{} is not JSON: {e}", path.display()))
}

/// The factor by which results may differ more from TensorFlow's on a hostile driver: its sums and products have errors of one
/// unit in the last place instead of half a unit, and its quotients of 2.5.
fn worse() -> f64 {
    if super::driver::is_hostile() { 5.0 } else { 1.0 }
}

/// `|got - want| <= atol + rtol * |want|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub atol: f64,
    pub rtol: f64,
}

impl Tolerance {
    /// The permitted difference from `want`.
    pub fn allowed(&self, want: f64) -> f64 {
        if want.is_finite() { worse() * (self.atol + self.rtol * want.abs()) } else { 0.0 }
    }

    /// By how much `got` exceeds the permitted difference; `None` if it does not. NaN matches NaN and an infinity the same
    /// infinity.
    pub fn excess(&self, got: f64, want: f64) -> Option<f64> {
        if got == want || (got.is_nan() && want.is_nan()) {
            return None;
        }
        // An infinity on either side is a failure here, which the formula would not detect.
        let finite = got.is_finite() && want.is_finite();
        let excess = if finite { (got - want).abs() - self.allowed(want) } else { f64::INFINITY };
        (excess > 0.0).then_some(excess)
    }
}

/// A key with the name of its tensor.
pub type Named = (String, String);
/// An argument with the names of its tensors: one, or the elements of a list.
pub type NamedList = (String, Vec<String>);

/// One call of a TensorFlow function: its inputs, outputs and gradients.
///
/// The lists have the order of the file (`x` before `w`, `"2"` before `"10"`) and are empty if the case has no such key. The
/// names are those that [`Oracle::tensor`] accepts.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub family: String,
    pub op: String,
    pub attrs: Map<String, Value>,
    pub inputs: Vec<NamedList>,
    pub outputs: Vec<Named>,
    /// Output key to its upstream gradient. An output without one is not part of the loss.
    pub upstream: Vec<Named>,
    /// Argument (or `weight:<name>`) to its gradient.
    pub grads: Vec<NamedList>,
    /// Float arguments without a gradient.
    pub none_grads: Vec<String>,
    /// Second order: argument to the upstream gradient of that argument's gradient.
    pub upstream2: Vec<Named>,
    pub grads2: Vec<Named>,
    pub none_grads2: Vec<String>,
    /// Layers: the weights, in Keras's order.
    pub weights: Vec<Named>,
    /// Optimizers: the variables after the last step.
    pub state: Vec<Named>,
    /// Layers: variables that the call changes, with their values after it.
    pub state_after: Vec<Named>,
    /// Metrics: the result after each update.
    pub results: Vec<f64>,
    pub tol: Tolerance,
    /// An input or output has NaN or an infinity.
    pub special_values: bool,
    pub note: Option<String>,
    /// The whole case, for keys that have no field here (`defaults`, `values`, `steps`, ...).
    pub raw: Map<String, Value>,
}

impl Case {
    /// The argument as in the file; `None` if it is absent or null.
    pub fn attr(&self, key: &str) -> Option<&Value> {
        self.attrs.get(key).filter(|v| !v.is_null())
    }

    fn from_json(value: &Value, order: &HashMap<&str, usize>) -> Case {
        let raw = value.as_object().unwrap_or_else(|| panic!("a case is no object: {value}"));
        let name = text(raw.get("name")).unwrap_or_else(|| panic!("a case has no name: {value}"));
        let bad = |key: &str| -> ! { panic!("case {name}: {key:?} is absent or malformed") };

        // serde_json may sort an object's keys; a tensor is named once in the file, so its position there restores the written
        // order.
        let place = |tensor: &str| order.get(tensor).copied().unwrap_or(usize::MAX);
        let lists = |key: &str| -> Vec<NamedList> {
            let Some(entries) = raw.get(key) else { return Vec::new() };
            let entries = entries.as_object().unwrap_or_else(|| bad(key));
            let mut all: Vec<NamedList> = entries
                .iter()
                .map(|(argument, tensors)| {
                    let names = one_or_many(tensors)
                        .iter()
                        .map(|v| text(Some(v)).unwrap_or_else(|| bad(key)))
                        .collect();
                    (argument.clone(), names)
                })
                .collect();
            all.sort_by_key(|(_, names)| names.first().map_or(usize::MAX, |n| place(n)));
            all
        };
        let single = |key: &str| -> Vec<Named> {
            lists(key)
                .into_iter()
                .map(|(argument, mut names)| match (names.pop(), names.is_empty()) {
                    (Some(tensor), true) => (argument, tensor),
                    _ => bad(key),
                })
                .collect()
        };
        let texts = |key: &str| -> Vec<String> {
            let Some(list) = raw.get(key) else { return Vec::new() };
            one_or_many(list).iter().map(|v| text(Some(v)).unwrap_or_else(|| bad(key))).collect()
        };
        let tol = |key: &str| -> f64 {
            let tol = raw.get("tol").and_then(|t| t.get(key));
            tol.and_then(number).unwrap_or_else(|| bad("tol"))
        };
        let results = match raw.get("results") {
            Some(list) => one_or_many(list)
                .iter()
                .map(|v| number(v).unwrap_or_else(|| bad("results")))
                .collect(),
            None => Vec::new(),
        };

        let mut weights = single("weights");
        let weight_order = texts("weight_order");
        weights.sort_by_key(|(key, _)| weight_order.iter().position(|k| k == key));

        Case {
            family: text(raw.get("family")).unwrap_or_else(|| bad("family")),
            op: text(raw.get("op")).unwrap_or_else(|| bad("op")),
            attrs: raw
                .get("attrs")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_else(|| bad("attrs")),
            inputs: lists("inputs"),
            outputs: single("outputs"),
            upstream: single("upstream"),
            grads: lists("grads"),
            none_grads: texts("none_grads"),
            upstream2: single("upstream2"),
            grads2: single("grads2"),
            none_grads2: texts("none_grads2"),
            weights,
            state: single("state"),
            state_after: single("state_after"),
            results,
            tol: Tolerance { atol: tol("atol"), rtol: tol("rtol") },
            special_values: raw.get("special_values").and_then(Value::as_bool).unwrap_or(false),
            note: text(raw.get("note")),
            raw: raw.clone(),
            name,
        }
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// A number, or one of the strings `"inf"`, `"-inf"` and `"nan"`.
pub fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some("nan") => Some(f64::NAN),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// The elements of a list, or the single value.
pub fn one_or_many(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// The position of the first occurrence of each string in a JSON file.
fn places(json: &str) -> HashMap<&str, usize> {
    let bytes = json.as_bytes();
    let mut places = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'"' {
            let start = at + 1;
            at = start;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            if let Some(text) = json.get(start..at) {
                places.entry(text).or_insert(start);
            }
        }
        at += 1;
    }
    places
}

/// A folder of golden cases.
pub struct Oracle {
    dir: PathBuf,
    cases: Vec<Case>,
    tensors: BTreeMap<String, OnceLock<HashMap<String, Array>>>,
}

impl Oracle {
    /// Reads the index; a family's tensors are read when the first of them is requested.
    pub fn open(dir: &Path) -> Oracle {
        let path = dir.join("index.json");
        let json = read_text(&path);
        let index = parse_json(&path, &json);
        let format = index.get("format").and_then(Value::as_i64);
        assert_eq!(format, Some(1), "{}: the format of the index", path.display());
        let order = places(&json);
        let cases: Vec<Case> = index
            .get("cases")
            .and_then(Value::as_array)
            .unwrap_or_else(|| panic!("{} has no list of cases", path.display()))
            .iter()
            .map(|case| Case::from_json(case, &order))
            .collect();
        let tensors = cases.iter().map(|case| (case.family.clone(), OnceLock::new())).collect();
        Oracle { dir: dir.to_owned(), cases, tensors }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Every case, in the order of the file.
    pub fn all(&self) -> &[Case] {
        &self.cases
    }

    pub fn families(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    /// The cases of a family; panics if there are none, because the test would check nothing.
    pub fn cases(&self, family: &str) -> Vec<&Case> {
        let cases: Vec<&Case> = self.cases.iter().filter(|case| case.family == family).collect();
        assert!(!cases.is_empty(), "{} has no family {family:?}", self.dir.display());
        cases
    }

    /// The tensor `name`, as in the case's lists or without the leading `<case>/` ("in.x", "out.0").
    pub fn tensor(&self, case: &Case, name: &str) -> Array {
        let own = name.strip_prefix(&case.name).is_some_and(|rest| rest.starts_with('/'));
        if own {
            self.tensor_named(&case.family, name)
        } else {
            self.tensor_named(&case.family, &format!("{}/{name}", case.name))
        }
    }

    /// The tensor with the full name, "<case>/<role>.<key>".
    pub fn tensor_named(&self, family: &str, name: &str) -> Array {
        match self.family(family).get(name) {
            Some(array) => array.clone(),
            None => panic!("{}: no tensor {name:?}", self.file(family).display()),
        }
    }

    fn family(&self, family: &str) -> &HashMap<String, Array> {
        match self.tensors.get(family) {
            Some(cell) => cell.get_or_init(|| read_safetensors(&self.file(family))),
            None => panic!("{} has no family {family:?}", self.dir.display()),
        }
    }

    fn file(&self, family: &str) -> PathBuf {
        self.dir.join(format!("{family}.safetensors"))
    }
}

/// `$WGRAD_ORACLE` if it is set, else the cases in the repository.
pub fn default_dir() -> PathBuf {
    whole().unwrap_or_else(|| data_dir().join("oracle"))
}

/// The full collection, if `WGRAD_ORACLE` names its folder.
pub fn whole() -> Option<PathBuf> {
    std::env::var_os("WGRAD_ORACLE").filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// A folder or file next to the cases: of the full collection, or of the repository's part.
pub fn beside(name: &str) -> PathBuf {
    let own = whole().map(|dir| dir.join(name)).filter(|path| path.exists());
    own.unwrap_or_else(|| data_dir().join(name))
}

/// `tests/data`.
pub fn data_dir() -> PathBuf {
    root().join("tests/data")
}
