//! What most programs use: `use wgrad::prelude::*;`.
//!
//! It has the types of a training loop, and every trait whose methods a program calls on models, layers, losses,
//! metrics and optimizers. Functions, such as [`constant`](crate::constant), and the many layers, losses and optimizers
//! keep their paths.
//!
//! ```
//! use wgrad::keras::{layers::Dense, losses::MeanSquaredError, optimizers::Sgd};
//! use wgrad::{self as tf, prelude::*};
//!
//! #[derive(Trackable)]
//! struct Line {
//!     dense: Dense,
//! }
//!
//! impl Layer for Line {
//!     fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
//!         self.dense.call(x, cx)
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     let (x, y) = (tf::constant([[1.0], [2.0]])?, tf::constant([[3.0], [5.0]])?);
//!     let line = Line { dense: Dense::new(1) };
//!     let (loss_of, optimizer) = (MeanSquaredError::new(), Sgd::new(0.1));
//!     let mut last = f32::INFINITY;
//!     for _ in 0..3 {
//!         let tape = GradientTape::new();
//!         let loss = loss_of.call(&y, &line.call(&x, TRAINING)?)?;
//!         optimizer.minimize(&loss, tape, &line)?;
//!         assert!(loss.item::<f32>()? < last);
//!         last = loss.item()?;
//!     }
//!     assert_eq!(line.count_params(), 2);
//!     Ok(())
//! }
//! ```

#[doc(no_inline)]
#[cfg(feature = "data")]
pub use crate::data::Dataset;
#[doc(no_inline)]
pub use crate::dtype::DType;
#[doc(no_inline)]
pub use crate::error::{Error, Result};
#[doc(no_inline)]
#[cfg(feature = "keras")]
pub use crate::keras::optimizers::Optimizer;
#[doc(no_inline)]
#[cfg(feature = "keras")]
pub use crate::keras::{
    Activation, CompileOptions, Context, FitOptions, Functional, INFERENCE, Input, Layer, LayerExt,
    Loss, Metric, Model, Sequential, TRAINING,
};
#[doc(no_inline)]
pub use crate::runtime::Device;
#[doc(no_inline)]
pub use crate::tape::GradientTape;
#[doc(no_inline)]
pub use crate::tensor::Tensor;
#[doc(no_inline)]
pub use crate::trackable::Trackable;
#[doc(no_inline)]
pub use crate::variable::Variable;
