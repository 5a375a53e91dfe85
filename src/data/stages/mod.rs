//! What becomes of elements on their way; each file adds its methods to [`Dataset`](super::Dataset).

mod batch;
mod filter;
mod map;
mod prefetch;
mod repeat;
mod shuffle;
mod take;
mod to_tensors;

pub use batch::BatchOptions;
pub use map::MapOptions;
pub use shuffle::ShuffleOptions;
pub use to_tensors::ToTensors;
