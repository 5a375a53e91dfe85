//! One op of TensorFlow with values at hand, for readers of other formats.

use std::sync::Arc;

use super::call::{Call, Model, Results};
use super::graph::Node;
use super::ops;
use super::proto::Attr;
use super::value::{Cell, Table, Value};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};

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

    fn stored(&self, key: &str) -> Result<HostArray<'static>> {
        Err(Error::Data(message!("there is no checkpoint with the value \"{key}\".")))
    }

    fn turn(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(values: &[i64]) -> Value {
        Value::ints(HostDType::I64, values)
    }

    fn scalar(value: i64) -> Value {
        Value::int(HostDType::I64, value)
    }

    /// Sizes in a file may be anything: an op computes what it can, and has no panic and no memory for the rest.
    #[test]
    fn sizes_without_measure_are_errors() {
        let of =
            |op: &str, inputs: Vec<Value>, attributes| run_op(op, inputs, attributes).unwrap_err();
        of("ConcatV2", Vec::new(), Vec::new());
        of("BroadcastTo", vec![long(&[1]), long(&[1 << 50])], Vec::new());
        let empty = long(&[]);
        of("Split", vec![scalar(0), empty.clone()], vec![("num_split", Attr::Int(1 << 60))]);
        of("SplitV", vec![empty, long(&[i64::MAX, i64::MAX, -1]), scalar(0)], Vec::new());
        of("GatherV2", vec![scalar(1), long(&[0]), scalar(0)], Vec::new());
        let row: Vec<i64> = (0..16_000).collect();
        let column =
            run_op("Reshape", vec![long(&row), long(&[-1, 1])], Vec::new()).unwrap().remove(0);
        // Too large for the host, and done on the device.
        let sum = run_op("AddV2", vec![column, long(&row[..3])], Vec::new()).unwrap().remove(0);
        assert_eq!(sum.shape().unwrap(), [16_000, 3]);
    }

    #[test]
    fn ranges_reach_over_all_integers() {
        let inputs = vec![scalar(i64::MIN), scalar(i64::MAX), scalar(1 << 62)];
        let range = run_op("Range", inputs, Vec::new()).unwrap().remove(0).read().unwrap();
        let values = range.to_array::<i64>().unwrap().into_raw_vec_and_offset().0;
        assert_eq!(values, [i64::MIN, -(1 << 62), 0, 1 << 62]);
    }
}
