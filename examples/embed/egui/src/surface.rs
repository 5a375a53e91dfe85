//! The decision surface: a texture of egui's that a render pass draws from the network's output buffer.

use wgrad::interop::wgpu::{self, util::DeviceExt as _};

/// Places along each side at which the network is asked.
pub const GRID: u32 = 96;
/// Pixels along each side of the texture.
pub const PIXELS: u32 = 480;

/// A triangle that covers the texture, coloured by the probability between four places, with a line where it is a half.
const DRAWING: &str = "
@group(0) @binding(0) var<storage, read> probability: array<f32>;
@group(0) @binding(1) var<uniform> size: vec4<f32>; // places and pixels along a side, 0, 0

@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn at(place: vec2<i32>) -> f32 {
    let p = vec2<u32>(clamp(place, vec2<i32>(0), vec2<i32>(i32(size.x) - 1)));
    return probability[p.y * u32(size.x) + p.x];
}

fn between(p: vec2<f32>) -> f32 {
    let low = vec2<i32>(floor(p));
    let share = p - floor(p);
    let upper = mix(at(low), at(low + vec2<i32>(1, 0)), share.x);
    let lower = mix(at(low + vec2<i32>(0, 1)), at(low + vec2<i32>(1, 1)), share.x);
    return mix(upper, lower, share.y);
}

@fragment
fn colour(@builtin(position) pixel: vec4<f32>) -> @location(0) vec4<f32> {
    let step = size.x / size.y;
    let p = pixel.xy * step - 0.5;
    let share = between(p);
    let first = mix(vec3<f32>(0.08, 0.30, 0.55), vec3<f32>(0.62, 0.76, 0.87), clamp(share * 2.0, 0.0, 1.0));
    let second = mix(vec3<f32>(0.97, 0.83, 0.62), vec3<f32>(0.86, 0.42, 0.08), clamp(share * 2.0 - 1.0, 0.0, 1.0));
    let fill = select(first, second, share > 0.5);
    let slope = length(vec2<f32>(between(p + vec2<f32>(step, 0.0)) - share, between(p + vec2<f32>(0.0, step)) - share));
    let line = 1.0 - smoothstep(0.8, 1.8, abs(share - 0.5) / max(slope, 1e-4));
    return vec4<f32>(mix(fill, vec3<f32>(1.0), line), 1.0);
}";

/// The format that egui requires of textures.
const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

pub struct Surface {
    drawing: wgpu::RenderPipeline,
    size: wgpu::Buffer,
    pub texture: wgpu::Texture,
    pub view: wgpu::TextureView,
}

impl Surface {
    pub fn new(device: &wgpu::Device) -> Self {
        let shader = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("decision surface"),
            source: wgpu::ShaderSource::Wgsl(DRAWING.into()),
        });
        let drawing = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("decision surface"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &shader,
                entry_point: None,
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: Default::default(),
            depth_stencil: None,
            multisample: Default::default(),
            fragment: Some(wgpu::FragmentState {
                module: &shader,
                entry_point: None,
                compilation_options: Default::default(),
                targets: &[Some(FORMAT.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        let texture = device.create_texture(&wgpu::TextureDescriptor {
            label: Some("decision surface"),
            size: wgpu::Extent3d { width: PIXELS, height: PIXELS, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: FORMAT,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT
                | wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let size = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("size"),
            contents: bytemuck::cast_slice(&[GRID as f32, PIXELS as f32, 0.0, 0.0]),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        Surface { drawing, size, view: texture.create_view(&Default::default()), texture }
    }

    /// Draws the network's output `[GRID*GRID,1]` into the texture.
    pub fn draw(&self, device: &wgpu::Device, queue: &wgpu::Queue, probability: &wgpu::Buffer) {
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.drawing.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: probability.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: self.size.as_entire_binding() },
            ],
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &self.view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: Default::default(),
                })],
                ..Default::default()
            });
            pass.set_pipeline(&self.drawing);
            pass.set_bind_group(0, &group, &[]);
            pass.draw(0..3, 0..1);
        }
        queue.submit([encoder.finish()]);
    }
}

/// The places at which the network is asked, from -1 to 1, row by row from the top, where y is 1.
pub fn places() -> Vec<[f32; 2]> {
    let place = |at: u32| (at as f32 + 0.5) / GRID as f32 * 2.0 - 1.0;
    (0..GRID * GRID).map(|i| [place(i % GRID), -place(i / GRID)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_in_the_upper_left_corner() {
        let places = places();
        assert_eq!(places.len(), (GRID * GRID) as usize);
        let edge = 1.0 - 1.0 / GRID as f32;
        let near = |place: [f32; 2], x: f32, y: f32| (place[0] - x).hypot(place[1] - y) < 1e-5;
        assert!(near(places[0], -edge, edge) && near(places[places.len() - 1], edge, -edge));
        assert!(near(places[1], -edge + 2.0 / GRID as f32, edge));
    }
}
