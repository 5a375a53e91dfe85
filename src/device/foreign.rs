//! Checks whether kernels can use an application's buffer. A browser reports this only at the first call that uses the
//! buffer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Gpu, platform};

impl Gpu {
    /// The reason why kernels cannot use `bytes` of `buffer`, if there is one.
    pub(crate) fn refusal(&self, buffer: &wgpu::Buffer, bytes: u64) -> Option<String> {
        if !platform::MAY_BLOCK {
            return None;
        }
        // Only a native extension makes buffers that an application can map and kernels can use; their mapping may be
        // pending.
        let mappable = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE;
        if !buffer.usage().intersects(mappable) {
            if buffer.slice(..).get_mapped_range().is_ok() {
                return Some("is mapped".to_string());
            }
            // Unmapping a buffer that is not mapped is an error, and wgpu reports it on the device that created the
            // buffer. Nothing else distinguishes devices: buffers are numbered within one instance of wgpu, so a buffer
            // of another instance could be mistaken for one of this device's. A foreign device may panic on the error.
            let own = self.error_of(|| drop(catch_unwind(AssertUnwindSafe(|| buffer.unmap()))));
            if own.is_none() {
                return Some("belongs to another device".to_string());
            }
        }
        let layout = self.pipelines.layout_of(&self.device, &[super::Access::Read]);
        let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset: 0,
            size: std::num::NonZeroU64::new(bytes),
        });
        let error = self.error_of(|| {
            // An empty write detects mapped buffers, and binding detects destroyed ones.
            self.queue.write_buffer(buffer, 0, &[]);
            let _ = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("wgrad"),
                layout: &layout,
                entries: &[wgpu::BindGroupEntry { binding: 0, resource }],
            });
        })?;
        // The innermost cause is last.
        let words = error.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        Some(format!("is refused by wgpu: {}", words.trim_end_matches('.')))
    }

    /// The error that this device reports for `commands`; natively it does so at once.
    fn error_of(&self, commands: impl FnOnce()) -> Option<String> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        commands();
        pollster::block_on(scope.pop()).map(|error| error.to_string())
    }
}
