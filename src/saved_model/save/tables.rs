//! [`Tables`]: the lookup tables of a SavedModel, as functions, nodes and objects.

use super::body::{RESOURCE, define};
use super::builder::{Builder, Out, dtype_attr};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::proto::{ArgDef, Attr, FunctionDef};

/// The tables of all functions, and those of the function that is being written.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) all: Vec<Table>,
    /// The places of those that the function uses, in the order of its arguments.
    pub(super) used: Vec<usize>,
}

/// A table of words and their indices.
pub(super) struct Table {
    /// The name by which programs share the table: equal tables have the same.
    pub(super) name: String,
    keys: HostArray<'static>,
    values: HostArray<'static>,
}

/// How many objects a table has: itself and its functions.
pub(super) const OBJECTS: usize = 4;

impl Tables {
    /// The name of the argument of the function for a table with these entries.
    pub(super) fn handle(&mut self, keys: HostArray<'static>, values: HostArray<'static>) -> Out {
        let mut bytes = Vec::new();
        for word in keys.strings().unwrap_or_default() {
            bytes.extend_from_slice(&(word.len() as u64).to_le_bytes());
            bytes.extend_from_slice(word);
        }
        bytes.extend_from_slice(keys.bytes());
        bytes.extend_from_slice(values.bytes());
        let name = format!("hash_table_{:016x}", farmhash::fingerprint64(&bytes));
        let place = self.all.iter().position(|table| table.name == name);
        let place = place.unwrap_or_else(|| {
            self.all.push(Table { name, keys, values });
            self.all.len() - 1
        });
        let at = self.used.iter().position(|used| *used == place);
        let at = at.unwrap_or_else(|| {
            self.used.push(place);
            self.used.len() - 1
        });
        argument(at).name
    }
}

/// The argument of a function for the table that it uses at this place.
pub(super) fn argument(at: usize) -> ArgDef {
    resource(&format!("table_handle_{at}"))
}

fn resource(name: &str) -> ArgDef {
    ArgDef { name: name.to_string(), r#type: RESOURCE, handle_data: Vec::new() }
}

impl Table {
    /// The attributes of the node that makes the table.
    pub(super) fn attrs(&self) -> [(&'static str, Attr); 3] {
        [
            ("key_dtype", dtype_attr(self.keys.dtype())),
            ("value_dtype", dtype_attr(self.values.dtype())),
            ("shared_name", Attr::Text(self.name.clone().into_bytes())),
        ]
    }

    /// The names of the functions that make, fill and free the table.
    pub(super) fn functions(&self) -> [String; OBJECTS - 1] {
        ["creator", "initializer", "destroyer"]
            .map(|what| format!("__inference__{what}_{}", self.name))
    }

    pub(super) fn written(&self) -> [FunctionDef; OBJECTS - 1] {
        let [creator, initializer, destroyer] = self.functions();
        [self.creator(&creator), self.initializer(&initializer), self.destroyer(&destroyer)]
    }

    fn creator(&self, name: &str) -> FunctionDef {
        let mut body = Builder::default();
        let table = body.node("HashTableV2", [], self.attrs());
        let made = format!("{table}:table_handle:0");
        let out = body.op("Identity", &[&made], [("T", Attr::Type(RESOURCE))]);
        define(name, Vec::new(), vec![(resource("identity"), out)], body, &[table], true)
    }

    fn initializer(&self, name: &str) -> FunctionDef {
        let mut body = Builder::default();
        let (keys, values) = (body.constant(&self.keys), body.constant(&self.values));
        let attrs =
            [("Tin", dtype_attr(self.keys.dtype())), ("Tout", dtype_attr(self.values.dtype()))];
        let argument = argument(0);
        let filled = body.node("LookupTableImportV2", [argument.name.clone(), keys, values], attrs);
        let out = done(&mut body, Some(&filled));
        define(name, vec![argument], vec![out], body, &[filled], true)
    }

    fn destroyer(&self, name: &str) -> FunctionDef {
        let mut body = Builder::default();
        let out = done(&mut body, None);
        define(name, Vec::new(), vec![out], body, &[], false)
    }
}

/// The result of a function that is called for what it does, after the node `after`.
fn done(body: &mut Builder, after: Option<&String>) -> (ArgDef, Out) {
    let inputs = [body.i32(1)].into_iter().chain(after.map(|node| format!("^{node}")));
    let name = body.node("Identity", inputs, [("T", dtype_attr(HostDType::I32))]);
    let argument = ArgDef {
        name: "identity".to_string(),
        r#type: HostDType::I32.number(),
        handle_data: Vec::new(),
    };
    (argument, format!("{name}:output:0"))
}
