//! Runs a small kernel on the adapter, as it is and as a hostile driver would.

#![allow(dead_code)]

use std::sync::OnceLock;

use wgpu::util::DeviceExt;
use wgrad_hostile::{Driver, rewrite};

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// One device for all tests; without an adapter they fail.
fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = pollster::block_on(instance.request_adapter(&Default::default()))
            .expect("there is an adapter; on Debian, mesa-vulkan-drivers brings one");
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & wgpu::Features::SHADER_F16,
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .expect("the adapter gives a device");
        Gpu { device, queue }
    })
}

/// Whether the adapter has `f16`.
pub fn has_f16() -> bool {
    gpu().device.features().contains(wgpu::Features::SHADER_F16)
}

/// Runs a kernel as `driver` would: binding 0 is read, binding 1 written.
pub fn run(wgsl: &str, driver: &str, groups: u32, input: &[u32], results: usize) -> Vec<u32> {
    let driver: Driver = driver.parse().unwrap();
    let text = rewrite(wgsl, &driver).unwrap_or_else(|error| panic!("{driver}: {error}\n{wgsl}"));
    run_as_it_is(&text, groups, input, results)
}

/// Runs a kernel without rewriting it.
pub fn run_as_it_is(wgsl: &str, groups: u32, input: &[u32], results: usize) -> Vec<u32> {
    let Gpu { device, queue } = gpu();
    let buffer = |contents: &[u32], usage| {
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: None,
            contents: bytemuck::cast_slice(contents),
            usage,
        })
    };
    let input = buffer(input, wgpu::BufferUsages::STORAGE);
    let output =
        buffer(&vec![0; results], wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let read =
        buffer(&vec![0; results], wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(wgsl.into()),
    });
    let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let group = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &[entry(0, true), entry(1, false)],
    });
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &group,
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
        ],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(groups, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &read, 0, Some(4 * results as u64));
    queue.submit([encoder.finish()]);
    let slice = read.slice(..);
    slice.map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let bytes = slice.get_mapped_range().unwrap();
    bytemuck::cast_slice(&bytes).to_vec()
}

/// `f(a, b, c)` for each of `numbers`, as `driver` would; `body` is the function's. It runs for single floats and for
/// vectors of four, which must agree.
pub fn floats(body: &str, driver: &str, numbers: &[[f32; 3]]) -> Vec<f32> {
    let single = run(
        &kernel("f32", "x[i].x, x[i].y, x[i].z", body),
        driver,
        numbers.len() as u32,
        &words(numbers),
        numbers.len(),
    );
    let wide = "vec4<f32>(x[i].x), vec4<f32>(x[i].y), vec4<f32>(x[i].z)";
    let vectors = run(
        &kernel("vec4<f32>", wide, body),
        driver,
        numbers.len() as u32,
        &words(numbers),
        numbers.len(),
    );
    // The order of terms is another one for each type.
    assert!(
        single == vectors || driver.contains("regroup"),
        "{driver}: {body}: a float and a vector differ"
    );
    single.into_iter().map(f32::from_bits).collect()
}

/// As `floats`, for one call.
pub fn float(body: &str, driver: &str, a: f32, b: f32, c: f32) -> f32 {
    floats(body, driver, &[[a, b, c]])[0]
}

fn kernel(ty: &str, arguments: &str, body: &str) -> String {
    let lane = if ty == "f32" { "" } else { ".w" };
    format!(
        "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n\
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
         alias T = {ty};\n\
         fn f(a: T, b: T, c: T) -> T {{ {body} }}\n\
         @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {{\n    \
             let i = id.x;\n    y[i] = f({arguments}){lane};\n}}\n"
    )
}

fn words(numbers: &[[f32; 3]]) -> Vec<u32> {
    numbers.iter().flat_map(|[a, b, c]| [*a, *b, *c, 0.0]).map(f32::to_bits).collect()
}

/// Numbers of all sizes, the same each time.
pub fn drawn(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let number = f32::from_bits(next() << 1 ^ next());
        if number.is_finite() {
            numbers.push(number);
        }
    }
    numbers
}

/// The `f32` next to `x`, away from zero if `by` is 1, toward it if -1.
pub fn moved(x: f32, by: i32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add_signed(by))
}
