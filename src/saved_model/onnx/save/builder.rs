//! [`Builder`]: the nodes of a graph in ONNX's format.

use std::collections::HashMap;

use super::super::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use crate::dtype::DType;
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::traced::{Number, Real, Size, Sizes};

/// The name of a value.
pub(super) type Out = String;

/// ONNX's numbers of dtypes, which `tensor::dtype` reads.
pub(super) fn number_of(dtype: HostDType) -> i32 {
    (1..=16).find(|number| super::super::tensor::dtype(*number) == dtype).unwrap_or(0)
}

pub(super) fn type_of(dtype: DType) -> i32 {
    number_of(HostDType::from(dtype))
}

/// The kinds of attributes that are written, with their numbers in ONNX.
pub(super) enum Attribute {
    Int(i64),
    Text(&'static str),
    Tensor(TensorProto),
    Graph(GraphProto),
    Ints(Vec<i64>),
}

use Attribute::{Int, Ints, Tensor};

impl Attribute {
    fn named(self, name: &str) -> AttributeProto {
        let mut proto = AttributeProto { name: name.to_string(), ..AttributeProto::default() };
        proto.r#type = match self {
            Attribute::Int(value) => {
                proto.i = value;
                2
            }
            Attribute::Text(value) => {
                proto.s = value.as_bytes().to_vec();
                3
            }
            Attribute::Tensor(value) => {
                proto.t = Some(value);
                4
            }
            Attribute::Graph(value) => {
                proto.g = Some(Box::new(value));
                5
            }
            Attribute::Ints(values) => {
                proto.ints = values;
                7
            }
        };
        proto
    }
}

/// An array as a tensor of this name.
pub(super) fn tensor(name: &str, array: &HostArray<'_>) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: array.shape().iter().map(|size| *size as i64).collect(),
        data_type: number_of(array.dtype()),
        raw_data: array.bytes().to_vec(),
        ..TensorProto::default()
    }
}

/// The nodes of one graph. Graphs in nodes see the values around them, so all of a model have names of their own.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) nodes: Vec<NodeProto>,
    /// How many values have names, in the whole model.
    pub(super) count: usize,
    /// The sizes that numbers depend on, as `int64` scalars.
    pub(super) sizes: Sizes,
    /// The numbers that this graph, and those around it, have.
    known: HashMap<(Vec<i64>, bool), Out>,
    computed: HashMap<Number, Out>,
}

impl Builder {
    /// A builder of a graph in a node of this one.
    pub(super) fn inner(&self) -> Builder {
        Builder {
            nodes: Vec::new(),
            count: self.count,
            sizes: self.sizes.clone(),
            known: self.known.clone(),
            computed: self.computed.clone(),
        }
    }

    /// A new name of a value.
    pub(super) fn name(&mut self, word: &str) -> Out {
        self.count += 1;
        format!("{word}_{}", self.count)
    }

    /// Adds a node with these results.
    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: impl IntoIterator<Item = Out>,
        outputs: Vec<Out>,
        attributes: impl IntoIterator<Item = (&'static str, Attribute)>,
    ) {
        let name = self.name(&format!("node_{op}"));
        self.nodes.push(NodeProto {
            input: inputs.into_iter().collect(),
            output: outputs,
            name,
            op_type: op.to_string(),
            attribute: attributes.into_iter().map(|(name, value)| value.named(name)).collect(),
            domain: String::new(),
        });
    }

    /// Adds a node with one result.
    pub(super) fn op(
        &mut self,
        op: &str,
        inputs: &[&Out],
        attributes: impl IntoIterator<Item = (&'static str, Attribute)>,
    ) -> Out {
        let out = self.name(op);
        self.node(op, inputs.iter().map(|input| input.to_string()), vec![out.clone()], attributes);
        out
    }

    pub(super) fn constant(&mut self, array: &HostArray<'_>) -> Out {
        self.op("Constant", &[], [("value", Tensor(tensor("", array)))])
    }

    /// A scalar with these bits.
    pub(super) fn scalar(&mut self, dtype: DType, bits: u32) -> Out {
        self.op("Constant", &[], [("value", Tensor(scalar_tensor(dtype, bits, &[])))])
    }

    fn whole(&mut self, values: &[i64], scalar: bool) -> Out {
        let key = (values.to_vec(), scalar);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let proto = TensorProto {
            dims: if scalar { vec![] } else { vec![values.len() as i64] },
            data_type: number_of(HostDType::I64),
            raw_data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ..TensorProto::default()
        };
        let out = self.op("Constant", &[], [("value", Tensor(proto))]);
        self.known.insert(key, out.clone());
        out
    }

    pub(super) fn i64(&mut self, value: i64) -> Out {
        self.whole(&[value], true)
    }

    pub(super) fn i64s(&mut self, values: &[i64]) -> Out {
        self.whole(values, false)
    }

    /// The size of this axis of a tensor, as an `int64` scalar.
    pub(super) fn size_of(&mut self, x: &Out, axis: usize) -> Out {
        let shape = self.op("Shape", &[x], []);
        let axis = self.i64(axis as i64);
        self.op("Gather", &[&shape, &axis], [("axis", Int(0))])
    }

    fn size(&mut self, size: usize) -> Out {
        match self.sizes.get(size) {
            Size::Made(out) => out,
            Size::Of { value, axis, .. } => {
                let out = self.size_of(&value, axis);
                self.sizes.made(size, out.clone());
                out
            }
        }
    }

    /// A number as an `int64` scalar.
    pub(super) fn number(&mut self, number: &Number) -> Out {
        if let Number::Known(value) = number {
            return self.i64(*value);
        }
        if let Some(known) = self.computed.get(number) {
            return known.clone();
        }
        let (mut all, divisor) = match number {
            Number::Known(value) => (self.i64(*value), 1),
            Number::Sum { terms, offset, divisor } => {
                let mut sum: Option<Out> = None;
                for (factor, size) in terms {
                    let mut term = self.size(*size);
                    if *factor != 1 {
                        let factor = self.i64(*factor);
                        term = self.op("Mul", &[&term, &factor], []);
                    }
                    sum = Some(match sum {
                        Some(sum) => self.op("Add", &[&sum, &term], []),
                        None => term,
                    });
                }
                let more = self.i64(*offset);
                let sum = match sum {
                    Some(sum) if *offset == 0 => sum,
                    Some(sum) => self.op("Add", &[&sum, &more], []),
                    None => more,
                };
                (sum, *divisor)
            }
            Number::Product { factor, sizes, divisor } => {
                let mut product = self.i64(*factor);
                for (at, size) in sizes.iter().enumerate() {
                    let size = self.size(*size);
                    product = match (at, factor) {
                        (0, 1) => size,
                        _ => self.op("Mul", &[&product, &size], []),
                    };
                }
                (product, *divisor)
            }
        };
        if divisor != 1 {
            // Sizes are positive, so a quotient that is cut off is rounded down.
            let divisor = self.i64(divisor);
            all = self.op("Div", &[&all, &divisor], []);
        }
        self.computed.insert(number.clone(), all.clone());
        all
    }

    /// Numbers as an `int64` vector.
    pub(super) fn vector(&mut self, numbers: &[Number]) -> Out {
        let known: Option<Vec<i64>> = numbers
            .iter()
            .map(|number| if let Number::Known(value) = number { Some(*value) } else { None })
            .collect();
        if let Some(known) = known {
            return self.i64s(&known);
        }
        let first = self.i64s(&[0]);
        let parts: Vec<Out> = numbers
            .iter()
            .map(|number| match number {
                Number::Known(value) => self.i64s(&[*value]),
                open => {
                    let scalar = self.number(open);
                    self.op("Unsqueeze", &[&scalar, &first], [])
                }
            })
            .collect();
        let all: Vec<&Out> = parts.iter().collect();
        self.op("Concat", &all, [("axis", Int(0))])
    }

    pub(super) fn real(&mut self, real: &Real) -> Out {
        match real {
            Real::Known(value) => self.scalar(DType::F32, value.to_bits()),
            Real::Open { factor, sizes, inverse } => {
                let product = Number::Product { factor: 1, sizes: sizes.clone(), divisor: 1 };
                let product = self.number(&product);
                let product = self.cast(&product, DType::F32);
                let factor = self.scalar(DType::F32, factor.to_bits());
                self.op(if *inverse { "Div" } else { "Mul" }, &[&factor, &product], [])
            }
        }
    }

    pub(super) fn cast(&mut self, x: &Out, to: DType) -> Out {
        self.op("Cast", &[x], [("to", Int(i64::from(type_of(to))))])
    }

    pub(super) fn cast_to_i64(&mut self, x: &Out) -> Out {
        self.op("Cast", &[x], [("to", Int(i64::from(number_of(HostDType::I64))))])
    }

    pub(super) fn reshape(&mut self, x: &Out, shape: &[Number]) -> Out {
        let open: Vec<usize> =
            (0..shape.len()).filter(|at| !matches!(shape[*at], Number::Known(_))).collect();
        // One size may be left open, unless the tensor may be empty.
        let empty = shape.contains(&Number::Known(0));
        let to = match open[..] {
            [one] if !empty => {
                let mut shape = shape.to_vec();
                shape[one] = Number::Known(-1);
                self.vector(&shape)
            }
            _ => self.vector(shape),
        };
        // A 0 is a size, not that of the input.
        self.op("Reshape", &[x, &to], [("allowzero", Int(i64::from(empty)))])
    }

    pub(super) fn transpose(&mut self, x: &Out, order: &[i64]) -> Out {
        self.op("Transpose", &[x], [("perm", Ints(order.to_vec()))])
    }

    /// `x` with new axes of size 1.
    pub(super) fn unsqueeze(&mut self, x: &Out, axes: &[i64]) -> Out {
        let axes = self.i64s(axes);
        self.op("Unsqueeze", &[x, &axes], [])
    }

    /// The numbers from 0 to the one before `size`, as `int64`.
    pub(super) fn range(&mut self, size: &Number) -> Out {
        let (zero, one, size) = (self.i64(0), self.i64(1), self.number(size));
        self.op("Range", &[&zero, &size, &one], [])
    }

    /// A tensor of this shape in which each element has these bits.
    pub(super) fn filled(&mut self, dtype: DType, shape: &[Number], bits: u32) -> Out {
        let shape = self.vector(shape);
        let value = scalar_tensor(dtype, bits, &[1]);
        self.op("ConstantOfShape", &[&shape], [("value", Tensor(value))])
    }
}

fn scalar_tensor(dtype: DType, bits: u32, dims: &[i64]) -> TensorProto {
    let raw_data = match dtype {
        DType::F16 => half::f16::from_f32(f32::from_bits(bits)).to_le_bytes().to_vec(),
        DType::U8 => vec![bits as u8],
        DType::Bool => vec![u8::from(bits != 0)],
        DType::F32 | DType::I32 | DType::U32 => bits.to_le_bytes().to_vec(),
    };
    TensorProto {
        dims: dims.to_vec(),
        data_type: type_of(dtype),
        raw_data,
        ..TensorProto::default()
    }
}
