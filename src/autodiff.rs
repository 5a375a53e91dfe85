//! Derivatives beyond [`GradientTape`](crate::GradientTape): gradient functions, second-order derivatives, forward-mode
//! differentiation, and numeric gradient checks. Covers TensorFlow's `tf.autodiff` and the gradient functions of its early
//! eager mode.

pub use crate::tape::{
    ForwardAccumulator, Tensors, VariableGradients, gradients_function, hessian, hvp,
    implicit_gradients, implicit_value_and_gradients, value_and_gradients_function,
};
#[cfg(not(target_family = "wasm"))]
pub use crate::tape::{GradientCheck, GradientCheckOptions, gradient_check, gradient_check_with};
