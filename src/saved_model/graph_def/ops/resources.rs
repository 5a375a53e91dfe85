//! Variables and lookup tables.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::call::{Call, Entry, Results, any, many, unsupported};
use super::host;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::ops::GatherOptions;
use crate::saved_model::graph_def::value::{Key, Table, Value};

pub(super) static OPS: &[Entry] = &[
    any("Assign", |call| {
        call.variable(0)?.assign(call.input(1)?)?;
        call.input(0).cloned()
    }),
    many("AssignAddVariableOp", &[], |call| assign(call, "AddV2")),
    many("AssignSubVariableOp", &[], |call| assign(call, "Sub")),
    many("AssignVariableOp", &[], |call| {
        call.variable(0)?.assign(call.input(1)?)?;
        Ok(Results::new())
    }),
    many("DestroyResourceOp", &[], |_| Ok(Results::new())),
    many("DisableCopyOnRead", &[], |_| Ok(Results::new())),
    any("HashTable", table),
    any("HashTableV2", table),
    many("InitializeTable", &[], |call| insert(call, true)),
    many("InitializeTableFromTextFileV2", &[], from_text_file),
    many("InitializeTableV2", &[], |call| insert(call, true)),
    any("IsVariableInitialized", initialized),
    any("LookupTableFind", find),
    any("LookupTableFindV2", find),
    many("LookupTableImportV2", &[], |call| insert(call, true)),
    many("LookupTableInsertV2", &[], |call| insert(call, false)),
    any("LookupTableSizeV2", |call| {
        let size = entries(call)?.lock().unwrap_or_else(PoisonError::into_inner).len();
        Ok(Value::int(HostDType::I64, size as i64))
    }),
    any("MutableHashTableV2", table),
    any("ReadVariableOp", |call| call.variable(0)?.read()),
    any("ResourceGather", |call| {
        let x = call.variable(0)?.read()?.tensor()?;
        let indices = call.tensor(1)?;
        // After the axes of the batch.
        let axis = call.attr_int("batch_dims", 0);
        let options = GatherOptions::new().batch_dims(call.attr_size("batch_dims", 0)?);
        Ok(Value::Tensor(x.gather_with(&indices, axis, options)?))
    }),
    many("RestoreV2", &["tensors"], |call| {
        let (names, slices) = (call.host(1)?, call.host(2)?);
        let parts = slices.strings().unwrap_or(&[]);
        if parts.iter().any(|slice| !slice.is_empty()) {
            return Err(unsupported(format_args!("a variable in several parts")));
        }
        let names = names.strings().unwrap_or(&[]);
        let names = names.iter().map(|name| String::from_utf8_lossy(name));
        Ok(names.map(|name| Value::Stored(name.into())).collect())
    }),
    any("VarHandleOp", variable),
    any("VarIsInitializedOp", initialized),
    any("Variable", variable),
    any("VariableShape", |call| {
        let shape = call.variable(0)?.read()?.shape()?;
        let sizes: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
        Ok(Value::ints(call.attr_type("out_type", HostDType::I32), &sizes))
    }),
    any("VariableV2", variable),
];

/// The name by which a graph's nodes share a resource.
fn shared_name<'a>(call: &'a Call<'_>) -> &'a str {
    match call.attr_text("shared_name", "") {
        "" => &call.node.name,
        name => name,
    }
}

fn variable(call: &Call<'_>) -> Result<Value> {
    let dtype = call.attr_type("dtype", HostDType::F32);
    Ok(Value::Variable(call.model.variable(shared_name(call), dtype)))
}

fn initialized(call: &Call<'_>) -> Result<Value> {
    let initialized = call.variable(0)?.is_initialized();
    Ok(Value::int(HostDType::Bool, initialized.into()))
}

fn assign(call: &mut Call<'_>, op: &str) -> Result<Results> {
    let (cell, delta) = (call.variable(0)?, call.input(1)?);
    match cell.variable() {
        Some(variable) if op == "Sub" => variable.assign_sub(delta.tensor()?)?,
        Some(variable) => variable.assign_add(delta.tensor()?)?,
        None => {
            let sum = host::binary(op, &*cell.read()?.read()?, &*delta.read()?);
            let sum = sum.ok_or_else(|| unsupported(format_args!("this of {}", cell.dtype)))?;
            cell.assign(&Value::host(sum?))?;
        }
    }
    Ok(Results::new())
}

fn table(call: &Call<'_>) -> Result<Value> {
    let keys = call.attr_type("key_dtype", HostDType::String);
    let values = call.attr_type("value_dtype", HostDType::I64);
    for dtype in [keys, values] {
        let supported = match dtype {
            HostDType::String | HostDType::I64 | HostDType::I32 => true,
            // No float is a key.
            HostDType::F32 | HostDType::F64 => keys != dtype,
            _ => false,
        };
        if !supported {
            return Err(unsupported(format_args!("a lookup table of {dtype}")));
        }
    }
    Ok(Value::Table(call.model.table(shared_name(call), keys, values)))
}

fn entries<'a>(call: &'a Call<'_>) -> Result<&'a std::sync::Mutex<HashMap<Key, Key>>> {
    Ok(&the_table(call)?.entries)
}

fn the_table<'a>(call: &'a Call<'_>) -> Result<&'a Arc<Table>> {
    match call.input(0)? {
        Value::Table(table) => Ok(table),
        other => Err(Error::Data(message!("it expects a table and gets {}.", other.describe()))),
    }
}

/// The elements of an array as keys.
fn keys(array: &HostArray<'_>) -> Result<Vec<Key>> {
    if let Some(strings) = array.strings() {
        return Ok(strings.iter().cloned().map(Key::Text).collect());
    }
    let wrong =
        || Error::DType(message!("a lookup table does not have elements of {}.", array.dtype()));
    let bytes = array.bytes();
    Ok(match array.dtype() {
        HostDType::I64 => {
            let each = bytes.chunks_exact(8);
            each.map(|b| Key::Int(i64::from_le_bytes(b.try_into().unwrap_or_default()))).collect()
        }
        HostDType::I32 => {
            let each = bytes.chunks_exact(4);
            let int = |b: &[u8]| i32::from_le_bytes(b.try_into().unwrap_or_default());
            each.map(|b| Key::Int(int(b).into())).collect()
        }
        dtype if dtype.is_float() => {
            let values = array.to_f64().ok_or_else(wrong)?;
            values.iter().map(|value| Key::Float(value.to_bits())).collect()
        }
        _ => return Err(wrong()),
    })
}

/// The array of these values.
fn values(dtype: HostDType, shape: &[usize], keys: &[Key]) -> Result<HostArray<'static>> {
    if dtype == HostDType::String {
        let text = |key: &Key| match key {
            Key::Text(text) => text.clone(),
            _ => Vec::new(),
        };
        return HostArray::from_strings(shape, keys.iter().map(text).collect::<Vec<_>>());
    }
    let int = |key: &Key| match key {
        Key::Int(value) => *value,
        _ => 0,
    };
    let float = |key: &Key| match key {
        Key::Float(bits) => f64::from_bits(*bits),
        _ => 0.0,
    };
    let bytes: Vec<u8> = match dtype {
        HostDType::I32 => keys.iter().flat_map(|key| (int(key) as i32).to_le_bytes()).collect(),
        HostDType::F32 => keys.iter().flat_map(|key| (float(key) as f32).to_le_bytes()).collect(),
        HostDType::F64 => keys.iter().flat_map(|key| float(key).to_le_bytes()).collect(),
        _ => keys.iter().flat_map(|key| int(key).to_le_bytes()).collect(),
    };
    HostArray::new(dtype, shape, bytes)
}

fn insert(call: &mut Call<'_>, clear: bool) -> Result<Results> {
    // Those of a table that a program changes are in the checkpoint.
    let given = |at: usize| match call.input(at)? {
        Value::Stored(key) => keys(&call.model.stored(key)?),
        _ => keys(&*call.host(at)?),
    };
    let (new_keys, new_values) = (given(1)?, given(2)?);
    if new_keys.len() != new_values.len() {
        return Err(Error::Shape(message!(
            "it has {} keys and {} values.",
            new_keys.len(),
            new_values.len()
        )));
    }
    let mut entries = entries(call)?.lock().unwrap_or_else(PoisonError::into_inner);
    if clear {
        entries.clear();
    }
    entries.extend(new_keys.into_iter().zip(new_values));
    Ok(Results::new())
}

fn find(call: &Call<'_>) -> Result<Value> {
    let (wanted, default) = (call.host(1)?, call.host(2)?);
    let default = keys(&default)?;
    let default = default.first().ok_or_else(|| Error::Shape(message!("it has no default.")))?;
    let table = the_table(call)?;
    let entries = table.entries.lock().unwrap_or_else(PoisonError::into_inner);
    let found: Vec<Key> =
        keys(&wanted)?.iter().map(|key| entries.get(key).unwrap_or(default).clone()).collect();
    Ok(Value::host(values(table.values, wanted.shape(), &found)?))
}

/// The parts of a line that become keys and values: its number, itself, or a column.
const WHOLE_LINE: i64 = -2;
const LINE_NUMBER: i64 = -1;

fn from_text_file(call: &mut Call<'_>) -> Result<Results> {
    let name = call.host(1)?;
    let name = name.strings().and_then(|names| names.first()).cloned().unwrap_or_default();
    let text = call.model.asset(&name)?;
    let (key_at, value_at) =
        (call.attr_int("key_index", WHOLE_LINE), call.attr_int("value_index", LINE_NUMBER));
    let delimiter = call.attr_text("delimiter", "\t").as_bytes().first().copied().unwrap_or(b'\t');
    let table = the_table(call)?;
    let lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n');
    let limit = usize::try_from(call.attr_int("vocab_size", -1)).unwrap_or(usize::MAX);
    let offset = usize::try_from(call.attr_int("offset", 0)).unwrap_or(0);
    let mut entries = HashMap::new();
    for (number, line) in lines.skip(offset).take(limit).enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let part = |at: i64, dtype: HostDType| -> Result<Key> {
            let bytes = match at {
                LINE_NUMBER => return Ok(Key::Int(number as i64)),
                WHOLE_LINE => Some(line),
                at => line
                    .split(|byte| *byte == delimiter)
                    .nth(usize::try_from(at).unwrap_or(usize::MAX)),
            };
            let wrong = || {
                Error::Data(message!(
                    "line {number} of {} has no {dtype} in column {at}.",
                    String::from_utf8_lossy(&name)
                ))
            };
            let bytes = bytes.ok_or_else(wrong)?;
            if dtype == HostDType::String {
                return Ok(Key::Text(bytes.to_vec()));
            }
            let text = std::str::from_utf8(bytes).map_err(|_| wrong())?.trim();
            if dtype.is_float() {
                let value: f64 = text.parse().map_err(|_| wrong())?;
                return Ok(Key::Float(value.to_bits()));
            }
            text.parse().map(Key::Int).map_err(|_| wrong())
        };
        entries.insert(part(key_at, table.keys)?, part(value_at, table.values)?);
    }
    *table.entries.lock().unwrap_or_else(PoisonError::into_inner) = entries;
    Ok(Results::new())
}
