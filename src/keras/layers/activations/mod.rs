//! Activation layers.

mod activate;
mod elu;
mod leaky_relu;
mod prelu;
mod relu;
mod softmax;

pub use activate::Activate;
pub use elu::ELU;
pub use leaky_relu::LeakyReLU;
pub use prelu::PReLU;
pub use relu::ReLU;
pub use softmax::Softmax;
