//! Runs wgrad's kernels without a device, to find what a device hides: races, barriers that some invocations do not reach,
//! indices out of bounds, memory that nobody has written, loops without end.
//!
//! [`compile`] makes a [`Program`] of a WGSL text, [`run`] dispatches it on a [`Memory`] and reports. [`capture`] reads what
//! wgrad writes with `WGRAD_KERNEL_CAPTURE`: plans with the contents of their buffers; [`replay`] runs them, and compares the
//! results with the device's. The crate knows naga's IR and nothing of wgrad.

pub mod capture;
pub mod compare;
mod compile;
mod finding;
mod layout;
mod machine;
mod mask;
mod memory;
pub mod mutate;
mod noise;
mod numbers;
mod program;
mod races;
mod random;
pub mod replay;
pub mod replay_all;
mod uniformity;

pub use compile::{Mutation, compile};
pub use finding::{Finding, Kind, Seen};
pub use machine::{Dispatch, Order, Report, Settings, run};
pub use memory::{Bound, Buffer, Memory};
pub use program::{BarrierPoint, Binding, Program};
pub use random::Random;
