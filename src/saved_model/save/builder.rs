//! [`Builder`]: the nodes of a function in TensorFlow's format.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::files::protobuf::{Dim, TensorShapeProto};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::proto::{
    Attr, AttrValue, ListValue, NameAttrList, NodeDef, TensorProto,
};
use crate::saved_model::traced::{Number, Real, Size, Sizes};

/// A result of a node: `node:result:0`, or the name of an argument.
pub(super) type Out = String;

#[derive(Default)]
pub(super) struct Builder {
    pub(super) nodes: Vec<NodeDef>,
    counts: HashMap<String, usize>,
    /// The constants that are used more than once.
    numbers: HashMap<(i32, Vec<i64>, bool), Out>,
    /// The sizes that numbers depend on, as `int32`.
    pub(super) sizes: Sizes,
    computed: HashMap<Number, Out>,
}

pub(super) fn dtype_attr(dtype: HostDType) -> Attr {
    Attr::Type(dtype.number())
}

pub(super) fn type_of(dtype: DType) -> Attr {
    dtype_attr(HostDType::from(dtype))
}

pub(super) fn types(dtypes: impl IntoIterator<Item = i32>) -> Attr {
    Attr::List(ListValue { r#type: dtypes.into_iter().collect(), ..ListValue::default() })
}

pub(super) fn ints(values: impl IntoIterator<Item = i64>) -> Attr {
    Attr::List(ListValue { i: values.into_iter().collect(), ..ListValue::default() })
}

pub(super) fn text(value: &str) -> Attr {
    Attr::Text(value.as_bytes().to_vec())
}

pub(super) fn function(name: &str) -> Attr {
    Attr::Function(NameAttrList { name: name.to_string() })
}

/// The shape, in which `None` is open.
pub(super) fn shape_proto(sizes: &[Option<usize>]) -> TensorShapeProto {
    let dim = |size: &Option<usize>| Dim { size: size.map_or(-1, |size| size as i64) };
    TensorShapeProto { dim: sizes.iter().map(dim).collect(), unknown_rank: false }
}

/// The name of an op's result, by which functions refer to it; of the first, if it has several.
fn result_of(op: &str) -> &'static str {
    match op {
        "AddV2" | "Sub" | "Mul" | "RealDiv" | "DivNoNan" | "MulNoNan" | "Xdivy" | "TruncateDiv"
        | "TruncateMod" | "FloorDiv" | "FloorMod" | "Pow" | "Maximum" | "Minimum"
        | "SquaredDifference" | "Atan2" | "Xlogy" | "Xlog1py" | "BitwiseAnd" | "BitwiseOr"
        | "BitwiseXor" | "LeftShift" | "RightShift" | "Less" | "LessEqual" | "Greater"
        | "GreaterEqual" | "Equal" | "NotEqual" | "LogicalAnd" | "LogicalOr" | "Zeta" => "z",
        "Abs" | "Neg" | "Exp" | "Expm1" | "Log" | "Log1p" | "Sqrt" | "Rsqrt" | "Square"
        | "Reciprocal" | "Sin" | "Cos" | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh"
        | "Tanh" | "Asinh" | "Acosh" | "Atanh" | "Sigmoid" | "Erf" | "Erfc" | "Lgamma"
        | "Digamma" | "Erfinv" | "Ndtri" | "BesselI0" | "BesselI0e" | "BesselI1" | "BesselI1e"
        | "Invert" | "PopulationCount" | "Floor" | "Ceil" | "Round" | "Rint" | "Sign" | "IsNan"
        | "IsInf" | "IsFinite" | "LogicalNot" | "Cast" | "Transpose" => "y",
        "Relu" | "Elu" | "Selu" | "Softplus" | "Softsign" => "activations",
        "MatMul" => "product",
        "ReadVariableOp" => "value",
        "TopKV2" | "LookupTableFindV2" => "values",
        "RaggedTensorToTensor" => "result",
        "Cumsum" | "Cumprod" | "Complex" => "out",
        "MatrixBandPart" => "band",
        "MatrixDiagPartV3" => "diagonal",
        "ResizeBilinear"
        | "ResizeNearestNeighbor"
        | "ResizeBicubic"
        | "ResizeArea"
        | "ScaleAndTranslate" => "resized_images",
        _ => "output",
    }
}

impl Builder {
    /// Without nodes, for a function that takes the open sizes as arguments.
    pub(super) fn with_sizes(sizes: Sizes) -> Self {
        Builder { sizes, ..Builder::default() }
    }

    /// Adds a node; returns its name.
    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: impl IntoIterator<Item = String>,
        attrs: impl IntoIterator<Item = (&'static str, Attr)>,
    ) -> String {
        let count = self.counts.entry(op.to_string()).or_insert(0);
        let name = if *count == 0 { op.to_string() } else { format!("{op}_{count}") };
        *count += 1;
        let attr = attrs
            .into_iter()
            .map(|(key, value)| (key.to_string(), AttrValue { value: Some(value) }));
        self.nodes.push(NodeDef {
            name: name.clone(),
            op: op.to_string(),
            input: inputs.into_iter().collect(),
            attr: attr.collect(),
        });
        name
    }

    /// Adds a node; returns its first result.
    pub(super) fn op(
        &mut self,
        op: &str,
        inputs: &[&Out],
        attrs: impl IntoIterator<Item = (&'static str, Attr)>,
    ) -> Out {
        let name = self.node(op, inputs.iter().map(|input| input.to_string()), attrs);
        format!("{name}:{}:0", result_of(op))
    }

    /// A constant.
    pub(super) fn constant(&mut self, array: &HostArray<'_>) -> Out {
        let value = TensorProto {
            dtype: array.dtype().number(),
            tensor_shape: Some(TensorShapeProto::new(array.shape())),
            tensor_content: array.bytes().to_vec(),
            string_val: array.strings().unwrap_or_default().to_vec(),
            ..TensorProto::default()
        };
        self.tensor(value)
    }

    fn tensor(&mut self, value: TensorProto) -> Out {
        let dtype = Attr::Type(value.dtype);
        self.op("Const", &[], [("dtype", dtype), ("value", Attr::Tensor(value))])
    }

    /// A constant in which each element has these bits.
    pub(super) fn filled(&mut self, dtype: DType, sizes: &[usize], bits: u32) -> Out {
        let host = HostDType::from(dtype);
        let size = host.size().unwrap_or(4);
        // TensorFlow repeats a single value.
        let mut value = TensorProto {
            dtype: host.number(),
            tensor_shape: Some(TensorShapeProto::new(sizes)),
            ..TensorProto::default()
        };
        match dtype {
            DType::F32 => value.float_val = vec![f32::from_bits(bits)],
            DType::I32 => value.int_val = vec![bits as i32],
            DType::U32 => value.uint32_val = vec![bits],
            DType::U8 => value.int_val = vec![(bits & 0xff) as i32],
            DType::Bool => value.bool_val = vec![bits != 0],
            DType::F16 => {
                debug_assert_eq!(size, 2);
                value.half_val =
                    vec![i32::from(half::f16::from_f32(f32::from_bits(bits)).to_bits())];
            }
        }
        self.tensor(value)
    }

    /// Whole numbers as a constant vector, or a scalar.
    fn whole(&mut self, dtype: HostDType, values: &[i64], scalar: bool) -> Out {
        let key = (dtype.number(), values.to_vec(), scalar);
        if let Some(known) = self.numbers.get(&key) {
            return known.clone();
        }
        let sizes = if scalar { vec![] } else { vec![values.len()] };
        let bytes = match dtype {
            HostDType::I64 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            _ => values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect(),
        };
        let out = self.tensor(TensorProto {
            dtype: dtype.number(),
            tensor_shape: Some(TensorShapeProto::new(&sizes)),
            tensor_content: bytes,
            ..TensorProto::default()
        });
        self.numbers.insert(key, out.clone());
        out
    }

    pub(super) fn i32(&mut self, value: i64) -> Out {
        self.whole(HostDType::I32, &[value], true)
    }

    pub(super) fn i32s(&mut self, values: &[i64]) -> Out {
        self.whole(HostDType::I32, values, false)
    }

    /// The size of this axis of a tensor, as an `int32` scalar.
    pub(super) fn size_of(&mut self, x: &Out, dtype: DType, axis: usize) -> Out {
        let attrs = [("T", type_of(dtype)), ("out_type", type_of(DType::I32))];
        let shape = self.op("Shape", &[x], attrs);
        let axis = axis as i64;
        let (at, next, one) = (self.i32s(&[axis]), self.i32s(&[axis + 1]), self.i32s(&[1]));
        let attrs = [
            ("T", type_of(DType::I32)),
            ("Index", type_of(DType::I32)),
            ("shrink_axis_mask", Attr::Int(1)),
        ];
        self.op("StridedSlice", &[&shape, &at, &next, &one], attrs)
    }

    fn size(&mut self, size: usize) -> Out {
        match self.sizes.get(size) {
            Size::Made(out) => out,
            Size::Of { value, dtype, axis } => {
                let out = self.size_of(&value, dtype, axis);
                self.sizes.made(size, out.clone());
                out
            }
        }
    }

    /// A number as an `int32` scalar.
    pub(super) fn number(&mut self, number: &Number) -> Out {
        if let Number::Known(value) = number {
            return self.i32(*value);
        }
        if let Some(known) = self.computed.get(number) {
            return known.clone();
        }
        let int = ("T", type_of(DType::I32));
        let out = match number {
            Number::Known(value) => self.i32(*value),
            Number::Sum { terms, offset, divisor } => {
                let mut sum: Option<Out> = None;
                for (factor, size) in terms {
                    let mut term = self.size(*size);
                    if *factor != 1 {
                        let factor = self.i32(*factor);
                        term = self.op("Mul", &[&term, &factor], [int.clone()]);
                    }
                    sum = Some(match sum {
                        Some(sum) => self.op("AddV2", &[&sum, &term], [int.clone()]),
                        None => term,
                    });
                }
                let offset_out = self.i32(*offset);
                let sum = match sum {
                    Some(sum) if *offset == 0 => sum,
                    Some(sum) => self.op("AddV2", &[&sum, &offset_out], [int.clone()]),
                    None => offset_out,
                };
                self.divided(sum, *divisor)
            }
            Number::Product { factor, sizes, divisor } => {
                let mut product = self.i32(*factor);
                for (at, size) in sizes.iter().enumerate() {
                    let size = self.size(*size);
                    product = match (at, factor) {
                        (0, 1) => size,
                        _ => self.op("Mul", &[&product, &size], [int.clone()]),
                    };
                }
                self.divided(product, *divisor)
            }
        };
        self.computed.insert(number.clone(), out.clone());
        out
    }

    fn divided(&mut self, number: Out, divisor: i64) -> Out {
        match divisor {
            1 => number,
            _ => {
                let divisor = self.i32(divisor);
                self.op("FloorDiv", &[&number, &divisor], [("T", type_of(DType::I32))])
            }
        }
    }

    /// Numbers as an `int32` vector.
    pub(super) fn vector(&mut self, numbers: &[Number]) -> Out {
        let known: Option<Vec<i64>> = numbers
            .iter()
            .map(|number| if let Number::Known(value) = number { Some(*value) } else { None })
            .collect();
        if let Some(known) = known {
            return self.i32s(&known);
        }
        let parts: Vec<Out> = numbers.iter().map(|number| self.number(number)).collect();
        let all: Vec<&Out> = parts.iter().collect();
        self.op(
            "Pack",
            &all,
            [
                ("N", Attr::Int(all.len() as i64)),
                ("T", type_of(DType::I32)),
                ("axis", Attr::Int(0)),
            ],
        )
    }

    /// A number as an `f32` scalar.
    pub(super) fn real(&mut self, real: &Real) -> Out {
        match real {
            Real::Known(value) => self.filled(DType::F32, &[], value.to_bits()),
            Real::Open { factor, sizes, inverse } => {
                let product = Number::Product { factor: 1, sizes: sizes.clone(), divisor: 1 };
                let product = self.number(&product);
                let product = self.cast(&product, DType::I32, DType::F32);
                let factor = self.filled(DType::F32, &[], factor.to_bits());
                let op = if *inverse { "RealDiv" } else { "Mul" };
                self.op(op, &[&factor, &product], [("T", type_of(DType::F32))])
            }
        }
    }

    pub(super) fn cast(&mut self, x: &Out, from: DType, to: DType) -> Out {
        self.op("Cast", &[x], [("SrcT", type_of(from)), ("DstT", type_of(to))])
    }

    /// A tensor with another shape.
    pub(super) fn reshape(&mut self, x: &Out, dtype: DType, shape: &[Number]) -> Out {
        let open: Vec<usize> =
            (0..shape.len()).filter(|at| !matches!(shape[*at], Number::Known(_))).collect();
        // TensorFlow computes one size that is left open, unless the tensor may be empty.
        let empty = shape.contains(&Number::Known(0));
        let to = match open[..] {
            [one] if !empty => {
                let mut shape = shape.to_vec();
                shape[one] = Number::Known(-1);
                self.vector(&shape)
            }
            _ => self.vector(shape),
        };
        self.op("Reshape", &[x, &to], [("T", type_of(dtype)), ("Tshape", type_of(DType::I32))])
    }
}
