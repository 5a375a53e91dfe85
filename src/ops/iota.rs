//! `y[i] = start + delta * i`.

use super::{Backward, Grads, Keep, Operation, no_grads};
use crate::dtype::{DType, Register, Scalar};
use crate::eager;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::runtime::Device;
use crate::tensor::Tensor;

/// Makes `n` numbers from `start` in steps of `delta`.
pub(crate) fn iota(
    device: Option<&Device>,
    n: usize,
    start: Scalar,
    delta: Scalar,
    dtype: DType,
) -> Result<Tensor> {
    let words = [start.bits("Range", dtype)?, delta.bits("Range", dtype)?];
    eager::create(Iota { spec: Spec::new([n], dtype), words: Runtime(words) }, device, None)
}

#[derive(Debug, Attribute)]
#[op("Iota")]
pub(crate) struct Iota {
    spec: Spec,
    words: Runtime<[u32; 2]>,
}

impl Op for Iota {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(self.spec.clone())
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        RuntimeScalars::from_slice(&self.words.0)
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        let body = match self.spec.dtype.register() {
            Register::F32 => "bitcast<f32>(start) + bitcast<f32>(delta) * vec4<f32>(i)",
            Register::I32 => "bitcast<i32>(start) + bitcast<i32>(delta) * vec4<i32>(i)",
            _ => "start + delta * i",
        };
        Elementwise::new("iota", body)
            .arg("i", Arg::Index)
            .arg("start", Arg::RuntimeScalar(0))
            .arg("delta", Arg::RuntimeScalar(1))
            .into()
    }
}

impl Operation for Iota {
    fn keep(&self) -> Keep {
        Keep::NoGradient("Range: a constant")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}
