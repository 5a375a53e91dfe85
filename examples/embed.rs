//! A network inside an application that uses wgpu itself: one device, three kinds of work, no copies in between.
//!
//! In each frame the application's simulation moves a ball and writes into its buffer the position of each pixel relative to
//! the ball. A network reads that buffer in place and learns which pixels the ball covers; the application's render pass reads
//! the network's output in place and draws it. There is no window: the last pictures are read back.
//!
//! `cargo example embed` runs it, and `cargo example embed -- picture.ppm` saves the last picture; on two processor cores
//! without a GPU it takes a few seconds. It ends with an error if more than 2 of 100 pixels of a picture differ from the ball
//! that the host computes.

#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;

use say::{Result, say};
use wgrad as tf;
use wgrad::interop::wgpu::{self, util::DeviceExt as _};
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::keras::optimizers::{Adam, Optimizer};

/// Pixels along each side of the picture.
const SIDE: u32 = 64;
/// The ball's radius, in a picture that is 2 high and 2 wide.
const RADIUS: f32 = 0.5;
/// Frames during which the network learns.
const FRAMES: u32 = 200;

fn main() -> ExitCode {
    say::exit_code(run())
}

fn run() -> Result<()> {
    // 1. The application opens its device, as it would without a network, and shares it.
    let (adapter, raw, queue) = pollster::block_on(open())?;
    let app = Application::new(&raw, &queue);
    let device = tf::Device::from_wgpu(&adapter, raw.clone(), queue.clone())?;
    tf::Device::set_default(&device);
    say!("adapter   {}", device.adapter());

    // 2. A network over the application's buffer.
    tf::random::set_seed(1);
    let network = Network::new()?;
    let adam = Adam::new(0.03);
    let pixels = [(SIDE * SIDE) as usize, 2];
    let mut x = tf::Tensor::from_buffer(&device, app.places.clone(), pixels, tf::DType::F32)?;
    let mut loss = None;
    for frame in 0..FRAMES {
        // The application takes its buffer back, and its simulation writes to it.
        let places = x.into_buffer()?;
        app.simulate(ball(frame));
        // Then the network: a new tensor wraps the new value.
        x = tf::Tensor::from_buffer(&device, places, pixels, tf::DType::F32)?;
        loss = Some(network.learn(&x, &adam)?);
    }
    if let Some(loss) = loss {
        say!("loss      {:.4} after {FRAMES} frames", loss.item::<f32>()?);
    }

    // 3. Pictures of frames that the network has not seen.
    for frame in [FRAMES + 5, FRAMES + 18] {
        let places = x.into_buffer()?;
        app.simulate(ball(frame));
        x = tf::Tensor::from_buffer(&device, places, pixels, tf::DType::F32)?;
        let covered = network.call(&x)?.sigmoid()?;
        // Everything that the application submits from now on finds the output in this buffer while `covered` is alive.
        let picture = app.draw(&covered.buffer()?)?;
        let wrong = check(&picture, ball(frame))?;
        say!("frame     {frame}: the picture shows the ball, except for {wrong} pixels");
        if let Some(path) = std::env::args().nth(1) {
            std::fs::write(path, ppm(&picture))?;
        }
    }
    Ok(())
}

/// The application's adapter, device and queue. With the adapter's own limits, kernels can do more at once.
async fn open() -> Result<(wgpu::Adapter, wgpu::Device, wgpu::Queue)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY.with_env(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapter = instance.request_adapter(&Default::default()).await?;
    let wanted = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
    let (device, queue) = adapter.request_device(&wanted).await?;
    Ok((adapter, device, queue))
}

/// The ball's position in a frame: it moves in a circle.
fn ball(frame: u32) -> [f32; 2] {
    let (y, x) = (frame as f32 * 0.17).sin_cos();
    [0.45 * x, 0.45 * y]
}

/// Two layers, written with ops: positions `[N,2]` to logits `[N,1]`.
struct Network {
    variables: [tf::Variable; 4],
}

impl Network {
    fn new() -> tf::Result<Self> {
        let hidden = 24;
        Ok(Network {
            variables: [
                tf::Variable::new(tf::random::normal([2, hidden])?),
                tf::Variable::new(tf::random::normal([hidden])?),
                tf::Variable::new(tf::random::normal([hidden, 1])? * 0.2),
                tf::Variable::new(tf::Tensor::zeros([1])?),
            ],
        })
    }

    fn call(&self, x: &tf::Tensor) -> tf::Result<tf::Tensor> {
        let [w1, b1, w2, b2] = &self.variables;
        x.matmul(w1)?.add(b1)?.tanh()?.matmul(w2)?.add(b2)
    }

    /// Makes a training step; the targets follow from the pixels' distances.
    fn learn(&self, x: &tf::Tensor, adam: &Adam) -> tf::Result<tf::Tensor> {
        let distance = x.square()?.sum(tf::Axes::from(-1).keepdims(true))?;
        let truth = distance.less(RADIUS * RADIUS)?.cast(tf::DType::F32)?;
        let tape = tf::GradientTape::new();
        let loss = tf::sigmoid_cross_entropy_with_logits(&truth, &self.call(x)?)?.mean()?;
        adam.minimize(&loss, tape, &self.variables)?;
        Ok(loss)
    }
}

/// The parts of a graphics program: passes, pipelines, buffers, a texture. It does not know tensors.
struct Application {
    device: wgpu::Device,
    queue: wgpu::Queue,
    simulation: wgpu::ComputePipeline,
    drawing: wgpu::RenderPipeline,
    /// `[SIDE*SIDE,2]`: the position of each pixel relative to the ball.
    places: wgpu::Buffer,
}

/// One invocation per pixel.
const SIMULATION: &str = "
@group(0) @binding(0) var<storage, read_write> places: array<vec2<f32>>;
@group(0) @binding(1) var<uniform> ball: vec4<f32>; // x, y, pixels along a side, 0
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let side = u32(ball.z);
    if (id.x >= side * side) { return; }
    let pixel = vec2<f32>(f32(id.x % side), f32(id.x / side));
    places[id.x] = (pixel + 0.5) / ball.z * 2.0 - 1.0 - ball.xy;
}";

/// A triangle that covers the picture, coloured by the network's output.
const DRAWING: &str = "
@group(0) @binding(0) var<storage, read> covered: array<f32>;
@group(0) @binding(1) var<uniform> ball: vec4<f32>;
@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}
@fragment
fn colour(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let share = covered[u32(at.y) * u32(ball.z) + u32(at.x)];
    return mix(vec4<f32>(0.1, 0.1, 0.3, 1.0), vec4<f32>(1.0, 0.7, 0.1, 1.0), share);
}";

const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

impl Application {
    fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let module = |text: &'static str| {
            device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(text.into()),
            })
        };
        let simulation = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("simulation"),
            layout: None,
            module: &module(SIMULATION),
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let shader = module(DRAWING);
        let drawing = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
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
                targets: &[Some(FORMAT.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        // The usages that a tensor over a buffer requires.
        let places = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("places"),
            size: u64::from(SIDE * SIDE) * 8,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Application { device: device.clone(), queue: queue.clone(), simulation, drawing, places }
    }

    /// A storage buffer, and the uniform with the ball's position.
    fn group(
        &self,
        layout: &wgpu::BindGroupLayout,
        storage: &wgpu::Buffer,
        [x, y]: [f32; 2],
    ) -> wgpu::BindGroup {
        let uniform = self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("ball"),
            contents: bytemuck::cast_slice(&[x, y, SIDE as f32, 0.0]),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: storage.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: uniform.as_entire_binding() },
            ],
        })
    }

    /// The simulation's pass of a frame.
    fn simulate(&self, ball: [f32; 2]) {
        let group = self.group(&self.simulation.get_bind_group_layout(0), &self.places, ball);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.simulation);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups((SIDE * SIDE).div_ceil(64), 1, 1);
        }
        self.queue.submit([encoder.finish()]);
    }

    /// The render pass of a frame, and its picture: red, green, blue and alpha of each pixel.
    fn draw(&self, covered: &wgpu::Buffer) -> Result<Vec<u8>> {
        let size = wgpu::Extent3d { width: SIDE, height: SIDE, depth_or_array_layers: 1 };
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: FORMAT,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let view = texture.create_view(&Default::default());
        let group = self.group(&self.drawing.get_bind_group_layout(0), covered, [0.0; 2]);
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
        // Rows of a copy must begin at multiples of 256 bytes, which is 64 pixels.
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("staging"),
            size: u64::from(SIDE * SIDE) * 4,
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let layout = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(SIDE * 4),
            rows_per_image: None,
        };
        let target = wgpu::TexelCopyBufferInfo { buffer: &staging, layout };
        encoder.copy_texture_to_buffer(texture.as_image_copy(), target, size);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(staging.get_mapped_range(..)?.to_vec())
    }
}

/// Compares a picture with the ball: returns how many pixels differ, or an error if there are too many.
fn check(picture: &[u8], [x, y]: [f32; 2]) -> Result<usize> {
    let place = |pixel: usize| (pixel as f32 + 0.5) / SIDE as f32 * 2.0 - 1.0;
    let differs = |&i: &usize| {
        let (dx, dy) = (place(i % SIDE as usize) - x, place(i / SIDE as usize) - y);
        let covered = dx * dx + dy * dy < RADIUS * RADIUS;
        // The threshold is between the two colours' red values.
        (picture[4 * i] > 140) != covered
    };
    let pixels = picture.len() / 4;
    let wrong = (0..pixels).filter(differs).count();
    if pixels != (SIDE * SIDE) as usize || wrong * 50 > pixels {
        return Err(format!(
            "{wrong} of {pixels} pixels differ from the ball at ({x:.2}, {y:.2}); at most {} may.",
            SIDE * SIDE / 50
        )
        .into());
    }
    Ok(wrong)
}

/// The picture in a format that most viewers open.
fn ppm(picture: &[u8]) -> Vec<u8> {
    let mut file = format!("P6 {SIDE} {SIDE} 255\n").into_bytes();
    for pixel in picture.chunks(4) {
        file.extend_from_slice(&pixel[..3]);
    }
    file
}
