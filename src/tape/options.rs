//! What gradients and Jacobians may be told.

use crate::error::Result;
use crate::options::options;
use crate::tensor::Tensor;

use super::recorder::Recorder;
use super::sources::GradientSource;
use super::walk;

/// What stands for the gradient of a source that the target does not depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnconnectedGradients {
    /// None.
    #[default]
    None,
    /// Zeros.
    Zero,
}

options! {
    /// How a tape computes gradients.
    #[derive(Debug, Clone)]
    pub struct GradientOptions {
        /// The targets' own gradients, one for each; ones if there are none.
        output_gradients: Option<Vec<Tensor>> as impl Into<Option<Vec<Tensor>>> = None,
        /// What stands for the gradient of a source that the target does not depend on; none.
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients::None,
    }
}

options! {
    /// How a tape computes Jacobians.
    #[derive(Debug, Clone)]
    pub struct JacobianOptions {
        /// So many rows are computed at once, the others after them: this bounds the memory. All at once if it is none.
        parallel_iterations: Option<usize> as impl Into<Option<usize>> = None,
        /// What stands for the Jacobian of a source that the target does not depend on; none.
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients::None,
    }
}

impl GradientOptions {
    pub(super) fn gradient(
        &self,
        recorder: &Recorder,
        once: bool,
        targets: &[Tensor],
        sources: &[GradientSource],
    ) -> Result<Vec<Option<Tensor>>> {
        let given: Option<Vec<&Tensor>> =
            self.output_gradients.as_ref().map(|given| given.iter().collect());
        let grads = walk::backward(recorder, once, targets, given.as_deref(), sources)?;
        let each = grads.into_iter().zip(sources);
        each.map(|(grad, source)| {
            self.unconnected_gradients.instead(grad, [&[], &source.spec.shape], source)
        })
        .collect()
    }
}

impl UnconnectedGradients {
    /// `grad`, or what stands for it: a tensor of the shape `lead` followed by `own`.
    pub(super) fn instead(
        self,
        grad: Option<Tensor>,
        [lead, own]: [&[usize]; 2],
        source: &GradientSource,
    ) -> Result<Option<Tensor>> {
        match (grad, self) {
            (None, UnconnectedGradients::Zero) => {
                let zeros = source.device.scope(|| Tensor::zeros([lead, own].concat()))?;
                zeros.cast(source.spec.dtype).map(Some)
            }
            (grad, _) => Ok(grad),
        }
    }
}
