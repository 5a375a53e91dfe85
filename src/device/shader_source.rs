//! A kernel as the device sees it: a WGSL text, and how the kernel uses its bindings.

use std::sync::Arc;

/// How a kernel uses one binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    Read,
    Write,
    /// Parameters.
    Uniform,
}

/// A complete WGSL module with the entry point `main`. Its bindings are in group 0, in the order of `accesses`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ShaderSource {
    pub(crate) label: String,
    pub(crate) wgsl: Arc<str>,
    pub(crate) accesses: Vec<Access>,
}
