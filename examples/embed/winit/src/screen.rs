//! What is shown: the window's surface, and the render pass that draws the water and its prediction side by side.

use std::sync::Arc;

use wgrad::interop::wgpu::{self, CurrentSurfaceTexture, util::DeviceExt as _};
use wgrad_embed_support::{Picture, Result};
use winit::window::Window;

use crate::water::{SIDE, entry};

/// A triangle that covers the window; the left half shows the water and the right half the prediction.
const DRAWING: &str = "
struct View { size: vec2<f32>, side: u32, none: u32 }
@group(0) @binding(0) var<storage, read> water: array<f32>;
@group(0) @binding(1) var<storage, read> predicted: array<f32>;
@group(0) @binding(2) var<storage, read> speed: array<f32>;
@group(0) @binding(3) var<uniform> view: View;

@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn cell(right: bool, place: vec2<i32>) -> vec2<f32> {
    let at = clamp(place, vec2<i32>(0), vec2<i32>(i32(view.side) - 1));
    let i = u32(at.y) * view.side + u32(at.x);
    return vec2<f32>(select(water[i], predicted[i], right), speed[i]);
}

// The height and the speed between four cells.
fn between(right: bool, at: vec2<f32>) -> vec2<f32> {
    let low = vec2<i32>(floor(at));
    let share = at - floor(at);
    let upper = mix(cell(right, low), cell(right, low + vec2<i32>(1, 0)), share.x);
    let lower = mix(cell(right, low + vec2<i32>(0, 1)), cell(right, low + vec2<i32>(1, 1)), share.x);
    return mix(upper, lower, share.y);
}

@fragment
fn colour(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let half = view.size.x * 0.5;
    if (abs(at.x - half) < 1.5) { return vec4<f32>(0.92, 0.95, 0.97, 1.0); }
    let right = at.x > half;
    let place = vec2<f32>(select(at.x, at.x - half, right) / half, at.y / view.size.y);
    let p = place * f32(view.side) - 0.5;
    let here = between(right, p);
    let slope = vec2<f32>(
        between(right, p + vec2<f32>(1.0, 0.0)).x - between(right, p - vec2<f32>(1.0, 0.0)).x,
        between(right, p + vec2<f32>(0.0, 1.0)).x - between(right, p - vec2<f32>(0.0, 1.0)).x,
    );
    let normal = normalize(vec3<f32>(-slope * 1.6, 1.0));
    let light = normalize(vec3<f32>(-0.45, -0.6, 0.8));
    let diffuse = dot(normal, light);
    let glint = pow(max(dot(reflect(-light, normal), vec3<f32>(0.0, 0.0, 1.0)), 0.0), 24.0);
    // Sand shows through where the water is shallow.
    let sand = smoothstep(0.38, 0.04, here.y);
    let deep = mix(vec3<f32>(0.02, 0.10, 0.26), vec3<f32>(0.05, 0.42, 0.58), clamp(0.5 + here.x * 0.55, 0.0, 1.0));
    let bed = mix(deep, mix(vec3<f32>(0.30, 0.66, 0.62), vec3<f32>(0.93, 0.84, 0.60), sand), sand * 0.85);
    let lit = bed * (0.35 + 0.85 * diffuse) + vec3<f32>(0.85, 0.95, 1.0) * glint * 0.55;
    return vec4<f32>(lit, 1.0);
}";

const DRIVER: &str = "`cargo xtask setup` installs a driver, or names what is missing.";

/// The window's surface, and the device that draws on it.
pub struct Screen {
    instance: wgpu::Instance,
    window: Arc<Window>,
    surface: wgpu::Surface<'static>,
    config: wgpu::SurfaceConfiguration,
    pub adapter: wgpu::Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    drawing: wgpu::RenderPipeline,
    empty: bool,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Yes,
    /// The surface gave no texture; the next frame may get one.
    NotYet,
    /// Nobody sees the window.
    Hidden,
}

/// The buffers that a frame draws.
pub struct Scene<'a> {
    pub water: &'a wgpu::Buffer,
    pub predicted: &'a wgpu::Buffer,
    pub speed: &'a wgpu::Buffer,
}

impl Screen {
    /// Opens a device that can draw on the window, with what wgrad can use of it.
    pub async fn open(
        window: Window,
        display: winit::event_loop::OwnedDisplayHandle,
    ) -> Result<Self> {
        let window = Arc::new(window);
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::PRIMARY.with_env(),
            ..wgpu::InstanceDescriptor::new_with_display_handle(Box::new(display))
        });
        let surface = instance
            .create_surface(window.clone())
            .map_err(|error| format!("no driver can draw on this window ({error}). {DRIVER}"))?;
        let wanted = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            compatible_surface: Some(&surface),
            ..Default::default()
        };
        let adapter = instance
            .request_adapter(&wanted)
            .await
            .map_err(|error| format!("no adapter can draw on this window ({error}). {DRIVER}"))?;
        // What makes kernels faster, where the adapter has it.
        let features =
            wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP | wgpu::Features::TIMESTAMP_QUERY;
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("the application's"),
                required_features: adapter.features() & features,
                required_limits: adapter.limits(),
                ..Default::default()
            })
            .await?;
        let size = window.inner_size();
        let mut config = surface
            .get_default_config(&adapter, size.width.max(1), size.height.max(1))
            .ok_or_else(|| {
                format!("{} has no format for this window's surface", adapter.get_info().name)
            })?;
        config.present_mode = wgpu::PresentMode::AutoVsync;
        // The colours are meant as they are written.
        let formats = surface.get_capabilities(&adapter).formats;
        let plain = formats.iter().find(|format| !format.is_srgb());
        config.format = plain.copied().unwrap_or(config.format);
        surface.configure(&device, &config);
        let drawing = pipeline(&device, config.format);
        let empty = size.width == 0 || size.height == 0;
        Ok(Screen { instance, window, surface, config, adapter, device, queue, drawing, empty })
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    pub fn size(&self) -> [u32; 2] {
        [self.config.width, self.config.height]
    }

    /// Whether the window has no area, as while it is minimized on Windows.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// The window has another size. A surface cannot have no area, so the last one stays.
    pub fn resize(&mut self, width: u32, height: u32) {
        self.empty = width == 0 || height == 0;
        if !self.empty {
            let longest = self.device.limits().max_texture_dimension_2d;
            (self.config.width, self.config.height) = (width.min(longest), height.min(longest));
            self.surface.configure(&self.device, &self.config);
        }
    }

    /// Draws the scene in the window.
    pub fn show(&mut self, scene: &Scene) -> Result<Shown> {
        let (texture, again) = match self.surface.get_current_texture() {
            CurrentSurfaceTexture::Success(texture) => (texture, false),
            CurrentSurfaceTexture::Suboptimal(texture) => (texture, true),
            CurrentSurfaceTexture::Timeout => return Ok(Shown::NotYet),
            CurrentSurfaceTexture::Occluded => return Ok(Shown::Hidden),
            CurrentSurfaceTexture::Outdated => {
                self.surface.configure(&self.device, &self.config);
                return Ok(Shown::NotYet);
            }
            CurrentSurfaceTexture::Lost => {
                self.surface = self.instance.create_surface(self.window.clone())?;
                self.surface.configure(&self.device, &self.config);
                return Ok(Shown::NotYet);
            }
            // wgrad has the handler of such errors; its next call returns this one.
            CurrentSurfaceTexture::Validation => return Ok(Shown::NotYet),
        };
        self.draw(&texture.texture, scene);
        self.window.pre_present_notify();
        self.queue.present(texture);
        if again {
            self.surface.configure(&self.device, &self.config);
        }
        Ok(Shown::Yes)
    }

    /// The scene as a picture of the window's size.
    pub fn picture(&self, scene: &Scene) -> Result<Picture> {
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size: wgpu::Extent3d {
                width: self.config.width,
                height: self.config.height,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: self.config.format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        self.draw(&texture, scene);
        Picture::of_texture(&self.device, &self.queue, &texture)
    }

    fn draw(&self, texture: &wgpu::Texture, scene: &Scene) {
        let [width, height] = [texture.width(), texture.height()].map(|length| length as f32);
        let uniform = self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("view"),
            contents: bytemuck::cast_slice(&[width, height, f32::from_bits(SIDE), 0.0]),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.drawing.get_bind_group_layout(0),
            entries: &[
                entry(0, scene.water),
                entry(1, scene.predicted),
                entry(2, scene.speed),
                entry(3, &uniform),
            ],
        });
        let view = texture.create_view(&Default::default());
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
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
        self.queue.submit([encoder.finish()]);
    }
}

fn pipeline(device: &wgpu::Device, format: wgpu::TextureFormat) -> wgpu::RenderPipeline {
    let shader = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("drawing"),
        source: wgpu::ShaderSource::Wgsl(DRAWING.into()),
    });
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some("drawing"),
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
            targets: &[Some(format.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}
