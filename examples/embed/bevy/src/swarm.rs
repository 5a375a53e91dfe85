//! The swarm, in the render world: a network that places its points on the path, and the pass that draws them into the canvas.

use std::f32::consts::TAU;
use std::sync::{Arc, Mutex, PoisonError};

use bevy::prelude::*;
use bevy::render::render_asset::RenderAssets;
use bevy::render::texture::GpuImage;
use bevy::render::{Extract, ExtractSchedule, Render, RenderApp, RenderStartup, RenderSystems};
use bevy_wgrad::WgradDevice;
use wgrad as tf;
use wgrad::interop::wgpu::{self, util::DeviceExt as _};
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::prelude::{Activation, INFERENCE, Layer, Sequential, TRAINING, Tensor};
use wgrad_embed_support::Picture;

use crate::path::{self, Blend};

/// Points of the swarm.
pub const POINTS: usize = 1024;
/// Pixels along each side of the canvas.
pub const CANVAS: u32 = 640;
/// Training steps in each frame.
const STEPS: usize = 3;
/// Waves of a point's number in the network's input.
const WAVES: usize = 5;
/// Steps whose losses are averaged at the start and at the end.
const AVERAGED: usize = 20;

/// What the main world decides in each frame, and the render world receives.
#[derive(Resource, Clone)]
pub struct Scene {
    /// The image that the swarm is drawn into, which a sprite shows.
    pub canvas: Handle<Image>,
    pub frame: u64,
    /// The last frame: the canvas is read.
    pub last: Option<u64>,
    pub seed: u64,
}

/// What the render world found when it had drawn the last frame.
#[derive(Resource, Clone, Default)]
pub struct Outcome(Arc<Mutex<Option<Found>>>);

#[derive(Clone)]
pub struct Found {
    pub canvas: Picture,
    /// The mean loss of the first frames, and of the last ones.
    pub losses: [f32; 2],
    pub blend: Blend,
}

impl Outcome {
    pub fn found(&self) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds the swarm to the render world. `WgradPlugin` must be there, too.
pub struct SwarmPlugin;

impl Plugin for SwarmPlugin {
    fn build(&self, app: &mut App) {
        let outcome = Outcome::default();
        app.insert_resource(outcome.clone());
        if let Some(render) = app.get_sub_app_mut(RenderApp) {
            render
                .insert_resource(outcome)
                .add_systems(ExtractSchedule, extract)
                .add_systems(RenderStartup, start)
                // Bevy's own passes of the frame are submitted later, so they show this frame's swarm.
                .add_systems(Render, advance.in_set(RenderSystems::PrepareResources));
        }
    }
}

fn extract(mut commands: Commands, scene: Extract<Option<Res<Scene>>>) {
    if let Some(scene) = scene.as_deref() {
        commands.insert_resource(scene.clone());
    }
}

fn start(mut commands: Commands, device: Option<Res<WgradDevice>>) {
    // Without a device, the plugin has reported why.
    let Some(device) = device else { return };
    if let Some(swarm) = device.keep(Swarm::new(&device)) {
        commands.insert_resource(swarm);
    }
}

/// A frame of the swarm.
fn advance(
    device: Option<Res<WgradDevice>>,
    swarm: Option<ResMut<Swarm>>,
    scene: Option<Res<Scene>>,
    outcome: Res<Outcome>,
    images: Res<RenderAssets<GpuImage>>,
) {
    let (Some(device), Some(mut swarm), Some(scene)) = (device, swarm, scene) else { return };
    let Some(canvas) = images.get(&scene.canvas) else { return };
    // After the last frame, the canvas stays.
    if outcome.found().is_some() {
        return;
    }
    let found = swarm.frame(&device, &scene, &canvas.texture);
    if let Some(Some(found)) = device.keep(found) {
        *outcome.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }
}

#[derive(Resource)]
struct Swarm {
    layers: Sequential,
    adam: Adam,
    /// `[POINTS,2*WAVES]`: waves of each point's number.
    waves: Tensor,
    /// `[POINTS,2]` for each curve: where its points are.
    curves: Vec<Tensor>,
    first: Vec<Tensor>,
    last: std::collections::VecDeque<Tensor>,
    random: u64,
    drawing: wgpu::RenderPipeline,
    uniform: wgpu::Buffer,
}

/// A small square for each point, as a disk that fades out.
const DRAWING: &str = "
struct Uniform { points: f32, radius: f32, none: vec2<f32> }
@group(0) @binding(0) var<storage, read> places: array<vec2<f32>>;
@group(0) @binding(1) var<uniform> u: Uniform;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) corner: vec2<f32>,
    @location(1) hue: f32,
}

@vertex
fn corner(@builtin(vertex_index) vertex: u32, @builtin(instance_index) point: u32) -> Corner {
    var corners = array<vec2<f32>, 6>(
        vec2<f32>(-1.0, -1.0), vec2<f32>(1.0, -1.0), vec2<f32>(-1.0, 1.0),
        vec2<f32>(-1.0, 1.0), vec2<f32>(1.0, -1.0), vec2<f32>(1.0, 1.0),
    );
    let corner = corners[vertex];
    let at = places[point] + corner * u.radius;
    return Corner(vec4<f32>(at, 0.0, 1.0), corner, f32(point) / u.points);
}

@fragment
fn colour(in: Corner) -> @location(0) vec4<f32> {
    let glow = pow(max(1.0 - length(in.corner), 0.0), 1.5);
    let hue = fract(in.hue + vec3<f32>(0.0, 0.33, 0.67)) * 6.2831853;
    let tint = 0.5 + 0.5 * cos(hue);
    return vec4<f32>((0.12 + tint) * glow * 0.8, 1.0);
}";

impl Swarm {
    fn new(device: &tf::Device) -> tf::Result<Self> {
        let wave = |i: usize| {
            let (point, wave) = (i / (2 * WAVES), i % (2 * WAVES));
            let s = (wave / 2 + 1) as f32 * TAU * point as f32 / POINTS as f32;
            if wave % 2 == 0 { s.sin() } else { s.cos() }
        };
        let waves: Vec<f32> = (0..POINTS * 2 * WAVES).map(wave).collect();
        let curve = |curve: usize| {
            let mut blend = [0.0; 3];
            blend[curve] = 1.0;
            let place = |point| path::place(point as f32 / POINTS as f32, blend);
            let places: Vec<[f32; 2]> = (0..POINTS).map(place).collect();
            Tensor::from_slice(places.as_flattened(), [POINTS, 2])
        };
        let (raw, _) = device.wgpu();
        Ok(Swarm {
            layers: Sequential::new()
                .add(Dense::new(64).activation(Activation::Tanh))
                .add(Dense::new(64).activation(Activation::Tanh))
                .add(Dense::new(2)),
            adam: Adam::new(0.01),
            waves: Tensor::from_slice(&waves, [POINTS, 2 * WAVES])?,
            curves: (0..3).map(curve).collect::<tf::Result<_>>()?,
            first: Vec::new(),
            last: Default::default(),
            random: 0,
            drawing: pipeline(raw),
            uniform: raw.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: Some("swarm"),
                contents: bytemuck::cast_slice(&[POINTS as f32, 0.022, 0.0, 0.0]),
                usage: wgpu::BufferUsages::UNIFORM,
            }),
        })
    }

    /// Trains, moves the points and draws them. In the last frame, it also reads the canvas.
    fn frame(
        &mut self,
        device: &tf::Device,
        scene: &Scene,
        canvas: &wgpu::Texture,
    ) -> wgrad_embed_support::Result<Option<Found>> {
        if self.first.is_empty() {
            tf::random::set_seed(scene.seed);
            self.random = scene.seed;
        }
        let blend = path::blend(scene.frame);
        // Large steps at first, then smaller ones, by which the swarm comes closer to its path.
        self.adam.set_learning_rate((0.01 * 0.5f32.powf(scene.frame as f32 / 150.0)).max(1e-3))?;
        for _ in 0..STEPS {
            self.learn(blend)?;
        }
        let places = self.layers.call(&self.input(blend)?, INFERENCE)?;
        // The buffer holds the places while the tensor is alive, so it is kept until the pass has been submitted.
        let (raw, queue) = device.wgpu();
        self.draw(raw, queue, &places.buffer()?, canvas);
        if scene.last.is_none_or(|last| scene.frame < last) {
            return Ok(None);
        }
        let mean = |losses: Vec<&Tensor>| tf::stack(losses, 0)?.mean()?.item::<f32>();
        Ok(Some(Found {
            canvas: Picture::of_texture(raw, queue, canvas)?,
            losses: [mean(self.first.iter().collect())?, mean(self.last.iter().collect())?],
            blend,
        }))
    }

    /// A training step with the path of this frame, and with another one, so that the network does not forget those.
    fn learn(&mut self, blend: Blend) -> tf::Result<()> {
        let other = self.random_blend();
        let input = tf::concat([self.input(blend)?, self.input(other)?], 0)?;
        let truth = tf::concat([self.truth(blend)?, self.truth(other)?], 0)?;
        let tape = tf::GradientTape::new();
        let loss = self.layers.call(&input, TRAINING)?.subtract(&truth)?.square()?.mean()?;
        self.adam.minimize(&loss, tape, &self.layers)?;
        // Reading a loss would wait for the GPU, so they are read at the end.
        if self.first.len() < AVERAGED {
            self.first.push(loss.clone());
        }
        if self.last.len() == AVERAGED {
            self.last.pop_front();
        }
        self.last.push_back(loss);
        Ok(())
    }

    /// The network's input `[POINTS,2*WAVES+3]`: which point, and which path.
    fn input(&self, blend: Blend) -> tf::Result<Tensor> {
        let blend = Tensor::from_slice(&blend, [1, 3])?.broadcast_to([POINTS, 3])?;
        tf::concat([&self.waves, &blend], -1)
    }

    /// Where the points belong, `[POINTS,2]`.
    fn truth(&self, blend: Blend) -> tf::Result<Tensor> {
        let blend = Tensor::from_slice(&blend, [3, 1, 1])?;
        tf::stack(&self.curves, 0)?.multiply(&blend)?.sum(0)
    }

    /// A blend of two curves (an xorshift generator).
    fn random_blend(&mut self) -> Blend {
        let mut next = || {
            let mut x = self.random | 1;
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            self.random = x;
            x >> 16
        };
        let (curve, share) = ((next() % 3) as usize, (next() % 1000) as f32 / 999.0);
        let mut blend = [0.0; 3];
        blend[curve] = 1.0 - share;
        blend[(curve + 1) % 3] = share;
        blend
    }

    fn draw(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        places: &wgpu::Buffer,
        canvas: &wgpu::Texture,
    ) {
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("swarm"),
            layout: &self.drawing.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: places.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: self.uniform.as_entire_binding() },
            ],
        });
        let view = canvas.create_view(&Default::default());
        let background = wgpu::Color { r: 0.004, g: 0.006, b: 0.018, a: 1.0 };
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: Some("swarm"),
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations {
                        load: wgpu::LoadOp::Clear(background),
                        store: wgpu::StoreOp::Store,
                    },
                })],
                ..Default::default()
            });
            pass.set_pipeline(&self.drawing);
            pass.set_bind_group(0, &group, &[]);
            pass.draw(0..6, 0..POINTS as u32);
        }
        queue.submit([encoder.finish()]);
    }
}

fn pipeline(device: &wgpu::Device) -> wgpu::RenderPipeline {
    let shader = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("swarm"),
        source: wgpu::ShaderSource::Wgsl(DRAWING.into()),
    });
    let one = wgpu::BlendComponent {
        src_factor: wgpu::BlendFactor::One,
        dst_factor: wgpu::BlendFactor::One,
        operation: wgpu::BlendOperation::Add,
    };
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some("swarm"),
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
            targets: &[Some(wgpu::ColorTargetState {
                format: wgpu::TextureFormat::Rgba8UnormSrgb,
                // Light adds up.
                blend: Some(wgpu::BlendState { color: one, alpha: one }),
                write_mask: wgpu::ColorWrites::ALL,
            })],
        }),
        multiview_mask: None,
        cache: None,
    })
}
