//! Activation layers.

mod activate;
mod elu;
mod leaky_relu;
mod prelu;
mod relu;
mod softmax;

pub use activate::Activate;
pub use elu::Elu;
pub use leaky_relu::LeakyRelu;
pub use prelu::Prelu;
pub use relu::Relu;
pub use softmax::Softmax;
