//! What the compilers of other systems make of kernels, as far as they run on this one.
//!
//! [`translate`] lets naga write a kernel in the language of each back end, as wgpu does. [`Programs`] hands these texts to
//! the compilers that are installed here: `spirv-val` and `spirv-opt` read SPIR-V, Tint reads WGSL (and writes what Chrome gives
//! to a driver), DXC reads HLSL. Nobody but Apple compiles MSL.
//!
//! [`Texts`] is a folder of kernels as wgrad writes it for known adapters (`WGRAD_KERNEL_TEXTS`), with the workgroups
//! that each adapter lets a kernel have.

mod needs;
mod programs;
mod texts;
mod translate;

pub use needs::Needs;
pub use programs::Programs;
pub use texts::{Idle, Texts};
pub use translate::{Translated, translate};
