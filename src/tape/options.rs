//! The options of gradients and Jacobians.

use crate::error::Result;
use crate::support::options::options;
use crate::tensor::Tensor;

use super::recorder::Recorder;
use super::sources::GradientSource;
use super::walk;

/// The gradient of a source that the target does not depend on.
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
        /// The gradients of the targets, one for each; ones by default (`None`).
        output_gradients: Option<Vec<Tensor>> as impl Into<Option<Vec<Tensor>>> = None,
        /// The gradient of a source that the target does not depend on; `None` by default.
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients::None,
    }
}

options! {
    /// How a tape computes Jacobians.
    #[derive(Debug, Clone)]
    pub struct JacobianOptions {
        /// The number of rows to compute at once, to bound memory usage; all at once by default (`None`).
        parallel_iterations: Option<usize> as impl Into<Option<usize>> = None,
        /// The Jacobian of a source that the target does not depend on; `None` by default.
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
    /// `grad`, or its replacement: a tensor of the shape `lead` followed by `own`.
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
