//! Models that run without the program that made them.

mod model;
mod rust_source;
mod webgpu;
