//! The application's simulation: waves in a basin, computed by a compute pass from buffer to buffer. It does not know tensors.

use wgrad::interop::wgpu::{self, util::DeviceExt as _};

/// Cells along each side of the basin.
pub const SIDE: u32 = 128;
const CELLS: u64 = (SIDE * SIDE) as u64;

/// One invocation per cell: the wave equation, with walls at which the water stands still. Where the water is shallow, waves are
/// slower, so they bend around the islands.
const WAVES: &str = "
struct Frame { drop: vec2<f32>, push: f32, side: u32 }
@group(0) @binding(0) var<storage, read> now: array<f32>;
@group(0) @binding(1) var<storage, read> before: array<f32>;
@group(0) @binding(2) var<storage, read> speed: array<f32>;
@group(0) @binding(3) var<storage, read_write> next: array<f32>;
@group(0) @binding(4) var<uniform> frame: Frame;

fn height(x: i32, y: i32) -> f32 {
    let side = i32(frame.side);
    if (x < 0 || y < 0 || x >= side || y >= side) { return 0.0; }
    return now[y * side + x];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= frame.side * frame.side) { return; }
    let x = i32(i % frame.side);
    let y = i32(i / frame.side);
    let around = height(x - 1, y) + height(x + 1, y) + height(x, y - 1) + height(x, y + 1);
    let away = vec2<f32>(f32(x), f32(y)) - frame.drop;
    let push = frame.push * exp(-dot(away, away) / 18.0);
    next[i] = 0.996 * (2.0 * now[i] - before[i] + speed[i] * (around - 4.0 * now[i])) + push;
}";

/// A basin of water.
pub struct Water {
    device: wgpu::Device,
    queue: wgpu::Queue,
    waves: wgpu::ComputePipeline,
    /// `[SIDE,SIDE]`: the square of the waves' speed in each cell, between 0.02 over the islands and 0.42.
    pub speed: wgpu::Buffer,
    /// What the user has dropped, in cells.
    pub drop: Option<[f32; 2]>,
    seed: u64,
}

impl Water {
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue, seed: u64) -> Self {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("waves"),
            source: wgpu::ShaderSource::Wgsl(WAVES.into()),
        });
        let waves = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("waves"),
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let speed: Vec<f32> = (0..SIDE * SIDE).map(|i| speed_at(i % SIDE, i / SIDE)).collect();
        let speed = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("speed"),
            contents: bytemuck::cast_slice(&speed),
            usage: USAGES,
        });
        Water { device: device.clone(), queue: queue.clone(), waves, speed, drop: None, seed }
    }

    /// A buffer for the heights of a frame, `[SIDE,SIDE]`, with the usages that a tensor over it requires. It contains zeros.
    pub fn heights(&self) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("heights"),
            size: CELLS * 4,
            usage: USAGES,
            mapped_at_creation: false,
        })
    }

    /// The simulation's pass of a frame: `next` from the heights `now` and those `before`.
    pub fn simulate(
        &mut self,
        frame: u64,
        now: &wgpu::Buffer,
        before: &wgpu::Buffer,
        next: &wgpu::Buffer,
    ) {
        let ([x, y], push) = match self.drop.take() {
            Some(place) => (place, 0.25),
            None => rain(self.seed, frame),
        };
        let uniform = self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("frame"),
            contents: bytemuck::cast_slice(&[x, y, push, f32::from_bits(SIDE)]),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let buffers = [now, before, &self.speed, next, &uniform];
        let entries: Vec<_> =
            (0..).zip(buffers).map(|(binding, buffer)| entry(binding, buffer)).collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.waves.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.waves);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups((SIDE * SIDE).div_ceil(64), 1, 1);
        }
        self.queue.submit([encoder.finish()]);
    }

    /// Copies the heights of a frame.
    pub fn copy(&self, from: &wgpu::Buffer, to: &wgpu::Buffer) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(from, 0, to, 0, CELLS * 4);
        self.queue.submit([encoder.finish()]);
    }
}

const USAGES: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

pub fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }
}

/// Three islands, with beaches.
fn speed_at(x: u32, y: u32) -> f32 {
    let [x, y] = [x, y].map(|place| (place as f32 + 0.5) / SIDE as f32);
    let islands = [(0.30, 0.34, 0.13), (0.72, 0.62, 0.17), (0.26, 0.78, 0.08)];
    let covers = |(cx, cy, radius): (f32, f32, f32)| {
        let share = (1.35 - (x - cx).hypot(y - cy) / radius).clamp(0.0, 1.0);
        share * share * (3.0 - 2.0 * share)
    };
    0.42 - 0.40 * islands.into_iter().map(covers).fold(0.0, f32::max)
}

/// Where a drop falls in a frame, and how hard: each of them pushes for 8 frames of 26.
fn rain(seed: u64, frame: u64) -> ([f32; 2], f32) {
    let (drop, since) = (frame / 26, frame % 26);
    if since >= 8 {
        return ([0.0; 2], 0.0);
    }
    let place = |at: u64| (0.1 + 0.8 * noise(seed, drop * 2 + at)) * SIDE as f32;
    ([place(0), place(1)], 0.12 * (since as f32 / 8.0 * std::f32::consts::PI).sin())
}

/// A number from 0 to 1 that depends on both arguments (SplitMix64).
fn noise(seed: u64, at: u64) -> f32 {
    let mut x = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(at.wrapping_mul(0xd1b5_4a32_d192_ed03));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 40) as f32 / (1u64 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_stable_and_the_rain_stays_in_the_basin() {
        let speeds = (0..SIDE * SIDE).map(|i| speed_at(i % SIDE, i / SIDE));
        // Above 0.5, the difference scheme would blow up.
        assert!(speeds.clone().all(|speed| (0.019..0.5).contains(&speed)));
        assert!(
            speeds.clone().any(|speed| speed < 0.03) && speeds.clone().any(|speed| speed > 0.41)
        );
        for frame in 0..4000 {
            let ([x, y], push) = rain(3, frame);
            assert!(push == 0.0 || [x, y].iter().all(|place| (12.0..116.0).contains(place)));
            assert!((0.0..=0.12).contains(&push));
        }
        assert!((0..40).any(|frame| rain(3, frame).1 > 0.1));
    }
}
