//! One op of TensorFlow with values at hand, for readers of other formats.

use std::sync::Arc;

use super::call::{Call, Model, Results};
use super::graph::Node;
use super::ops;
use super::proto::Attr;
use super::value::{Cell, Table, Value};
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;

/// The results of the op `op` of TensorFlow.
pub(in crate::saved_model) fn run_op(
    op: &str,
    inputs: Vec<Value>,
    attributes: Vec<(&str, Attr)>,
) -> Result<Results> {
    let entry = ops::find(op)
        .ok_or_else(|| Error::Data(message!("the op {op} of TensorFlow is not known.")))?;
    let node = Node::of_op(op, attributes);
    let mut call = Call { node: &node, inputs: inputs.into(), model: &NoModel };
    ops::run(entry, &mut call)
}

/// An op by itself has no functions, variables and files.
struct NoModel;

impl Model for NoModel {
    fn function(&self, name: &str, _: Vec<Value>) -> Result<Vec<Value>> {
        Err(Error::Data(message!("there is no function \"{name}\".")))
    }

    fn variable(&self, name: &str, dtype: HostDType) -> Arc<Cell> {
        Arc::new(Cell::new(name, dtype))
    }

    fn table(&self, _: &str, keys: HostDType, values: HostDType) -> Arc<Table> {
        Arc::new(Table { keys, values, entries: std::sync::Mutex::default() })
    }

    fn asset(&self, name: &[u8]) -> Result<Vec<u8>> {
        Err(Error::Data(message!("there is no file \"{}\".", String::from_utf8_lossy(name))))
    }

    fn turn(&self) -> Result<()> {
        Ok(())
    }
}
