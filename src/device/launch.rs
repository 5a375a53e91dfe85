//! One dispatch of a kernel.

use std::sync::Arc;

use super::pipeline::Pipeline;

/// One dispatch, ready to encode.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) pipeline: &'a Arc<Pipeline>,
    pub(crate) bind_group: &'a wgpu::BindGroup,
    pub(crate) grid: [u32; 3],
    /// Names the kernel in profiles.
    pub(crate) label: &'a str,
    /// Bytes of the bound storage.
    pub(crate) bytes: u64,
    /// Additions and multiplications; 0 if unknown.
    pub(crate) flops: u64,
}

impl Launch<'_> {
    pub(super) fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline.raw);
        pass.set_bind_group(0, self.bind_group, &[]);
        let [x, y, z] = self.grid;
        pass.dispatch_workgroups(x, y, z);
    }
}
