//! Models that run without the program that made them.

mod webgpu;
