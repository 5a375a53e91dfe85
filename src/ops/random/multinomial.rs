//! Draws classes by random words: `y[b,s] = the first n with shares[b,0] + .. + shares[b,n] > r[b,s]`.
//!
//! Shares are whole numbers, and so is `r`, which is uniform below their sum: the result does not depend on rounding.

use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, Grads, Keep, Operation, no_grads};
use crate::tensor::Tensor;
use crate::wgsl::shader;

/// Finds the classes, `[B,S]` as `i32`, for words `[B,S]` and the running sums `[B,N]` of the classes' shares, both `u32`.
/// In a row whose sums are all 0 it is the last class.
pub(crate) fn multinomial(words: &Tensor, sums: &Tensor) -> Result<Tensor> {
    dispatch(Multinomial, &[words, sums])
}

#[derive(Debug, Attribute)]
#[op("Multinomial")]
pub(crate) struct Multinomial;

impl Op for Multinomial {
    fn name(&self) -> &'static str {
        "StatelessMultinomial"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec { shape: inputs[0].shape.clone(), dtype: DType::I32 })
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let [words, sums] = [0, 1].map(|i| &cx.inputs[i].shape);
        Kernel::new("multinomial", shader!(include_str!("../../../shaders/multinomial.wgsl")))
            .constant("WG", 64)
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .param("samples", words[1])
            .param("classes", sums[1])
            .param("total", words.elements())
            .workgroups(words.elements().div_ceil(64), 32)
            .into()
    }
}

impl Operation for Multinomial {
    fn keep(&self) -> Keep {
        Keep::NoGradient("Categorical: a draw has no gradient")
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        no_grads(back)
    }
}
