//! [`Model`]: what the files of an exported function contain.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::ConcreteFunction;
use crate::function::frozen::{FrozenFunction, FrozenValue};
use crate::host_array::HostArray;
use crate::plan::BufferRef;
use crate::tensor::Tensor;
use crate::trackable::NamedArray;

/// The first names of weights in the file; a number follows.
const VARIABLE: &str = "variable";
const CAPTURED: &str = "constant";

/// A shape and a dtype, with the buffer that holds the values.
pub(super) struct Place {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) buffer: usize,
}

/// What the files contain, besides the plan.
pub(super) struct Model {
    /// The bytes of each buffer: those of the inputs and the weights, then the plan's slots.
    pub(super) buffers: Vec<u64>,
    pub(super) inputs: Vec<Place>,
    pub(super) outputs: Vec<Place>,
    /// The weights, and their buffers.
    pub(super) weights: Vec<NamedArray<'static>>,
    pub(super) places: Vec<Place>,
    /// The buffers of the plan's leaves.
    leaves: Vec<usize>,
    first_slot: usize,
}

impl Model {
    pub(super) fn new(frozen: &FrozenFunction, function: &ConcreteFunction) -> Result<Self> {
        let FrozenFunction { plan, leaves, results } = frozen;
        let mut model = Model {
            buffers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            weights: Vec::new(),
            places: Vec::new(),
            leaves: Vec::new(),
            first_slot: 0,
        };
        for (dtype, shape) in specs(function.inputs()) {
            let place = model.place(dtype, shape);
            model.inputs.push(place);
        }
        let mut known: HashMap<u64, usize> = HashMap::new();
        // The buffer of a constant. One that is used twice has one.
        let mut constant = |model: &mut Model, name: &str, value: &Tensor| {
            if let Some(buffer) = known.get(&value.id()) {
                return Ok(*buffer);
            }
            let place = model.place(value.dtype(), value.shape().to_vec());
            let buffer = place.buffer;
            known.insert(value.id(), buffer);
            let name = format!("{name}_{}", model.weights.len());
            model.weights.push(NamedArray::new(name, HostArray::from_tensor(value)?));
            model.places.push(place);
            Ok::<usize, Error>(buffer)
        };
        for leaf in leaves {
            let buffer = match leaf {
                FrozenValue::Argument(at) => model.inputs[*at].buffer,
                FrozenValue::Captured(value) => constant(&mut model, CAPTURED, value)?,
                FrozenValue::Variable(value) => constant(&mut model, VARIABLE, value)?,
                FrozenValue::Computed(_) => unreachable!("a leaf is not computed"),
            };
            model.leaves.push(buffer);
        }
        let mut passed = Vec::with_capacity(results.len());
        for result in results {
            passed.push(match result {
                FrozenValue::Argument(at) => Some(model.inputs[*at].buffer),
                FrozenValue::Captured(value) => Some(constant(&mut model, CAPTURED, value)?),
                FrozenValue::Variable(value) => Some(constant(&mut model, VARIABLE, value)?),
                FrozenValue::Computed(_) => None,
            });
        }
        model.first_slot = model.buffers.len();
        model.buffers.extend(&plan.slots);
        for ((result, passed), (dtype, shape)) in
            results.iter().zip(passed).zip(specs(function.outputs()))
        {
            let buffer = match (passed, result) {
                (Some(buffer), _) => buffer,
                (None, FrozenValue::Computed(at)) => model.buffer(plan.outputs[*at]),
                (None, _) => unreachable!("a result that is not passed on is computed"),
            };
            model.outputs.push(Place { dtype, shape, buffer });
        }
        Ok(model)
    }

    /// A new buffer.
    fn place(&mut self, dtype: DType, shape: Vec<usize>) -> Place {
        self.buffers.push(dtype.bytes(shape.iter().product()));
        Place { dtype, shape, buffer: self.buffers.len() - 1 }
    }

    /// The index of a buffer of the plan.
    pub(super) fn buffer(&self, buffer: BufferRef) -> usize {
        match buffer {
            BufferRef::Leaf(at) => self.leaves[at as usize],
            BufferRef::Slot(at) => self.first_slot + at as usize,
        }
    }
}

/// The dtypes and sizes of a concrete function's tensors, which are all known.
fn specs(specs: Vec<crate::function::TensorSpec>) -> impl Iterator<Item = (DType, Vec<usize>)> {
    specs.into_iter().map(|spec| (spec.dtype(), spec.shape().iter().flatten().copied().collect()))
}
