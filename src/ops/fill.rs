//! `y[i] = value`. The value is a runtime scalar, so another value needs no new plan.

use smallvec::smallvec;

use super::{Backward, Grads, Keep, Operation, check_dtype, no_grads};
use crate::dtype::{DType, Register, Scalar};
use crate::eager;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext};
use crate::graph::{Op, Runtime, RuntimeScalars, Spec};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::{Tensor, Varying};

/// Makes a tensor of one value. Error messages name `op`, which requested it.
pub(crate) fn fill(
    device: &Device,
    op: &str,
    shape: Shape,
    value: Scalar,
    dtype: DType,
) -> Result<Tensor> {
    check_dtype(device, op, dtype)?;
    let bits = value.bits(op, dtype)?;
    eager::create(Fill { spec: Spec { shape, dtype }, bits: Runtime(bits) }, Some(device), None)
}

/// Makes a scalar of `dtype` from a number that varies from run to run.
pub(crate) fn fill_varying(
    device: &Device,
    op: &str,
    Varying { now, again }: Varying,
    dtype: DType,
) -> Result<Tensor> {
    let fill =
        Fill { spec: Spec::new(Shape::default(), dtype), bits: Runtime(now.bits(op, dtype)?) };
    let owner = again.and_then(|again| {
        let op = op.to_string();
        eager::owner(|| move || Ok(smallvec![again().bits(&op, dtype)?]))
    });
    eager::create(fill, Some(device), owner)
}

/// Whether `x` consists of ones, as the gradient that a tape starts with does. It looks at the call that makes `x`; of a tensor
/// that has been computed nothing is known.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn will_be_ones(x: &Tensor) -> bool {
    let ones = Scalar::from(1.0).bits("Fill", x.dtype());
    let op = x.device().waiting_op(x.value()).filter(|op| op.kind() == "Fill");
    op.is_some_and(|op| ones.is_ok_and(|ones| op.runtime_scalars()[..] == [ones]))
}

#[derive(Debug, Attribute)]
#[op("Fill")]
pub(crate) struct Fill {
    spec: Spec,
    bits: Runtime<u32>,
}

impl Op for Fill {
    fn name(&self) -> &'static str {
        "Fill"
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(self.spec.clone())
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        smallvec![self.bits.0]
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        let body = match self.spec.dtype.register() {
            Register::F32 => "vec4<f32>(bitcast<f32>(value))",
            Register::I32 => "vec4<i32>(bitcast<i32>(value))",
            Register::U32 => "vec4<u32>(value)",
            Register::Bool => "vec4<bool>(value != 0u)",
        };
        Elementwise::new("fill", body).arg("value", Arg::RuntimeScalar(0)).into()
    }
}

impl Operation for Fill {
    fn keep(&self) -> Keep {
        Keep::NoGradient("Fill: a constant")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}
