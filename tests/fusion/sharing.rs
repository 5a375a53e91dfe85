//! A device and its buffers, shared with an application that uses wgpu itself: what each may do, and which errors each can
//! make.
#![allow(clippy::unwrap_used)]

use wgpu::BufferUsages;
use wgrad as tf;
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::{DType, Device, DeviceFault, Error, GradientTape, Tensor, Variable};

/// An application's device, with these limits.
fn application(
    limits: impl FnOnce(&wgpu::Adapter) -> wgpu::Limits,
) -> (wgpu::Adapter, wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
    let wanted = wgpu::DeviceDescriptor { required_limits: limits(&adapter), ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&wanted)).unwrap();
    (adapter, device, queue)
}

fn shared() -> Device {
    let (adapter, device, queue) = application(|_| wgpu::Limits::default());
    Device::from_wgpu(&adapter, device, queue).unwrap()
}

const ALL: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST);

fn buffer(device: &wgpu::Device, size: u64, usage: BufferUsages, mapped: bool) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("mine"),
        size,
        usage,
        mapped_at_creation: mapped,
    })
}

fn fill(device: &Device, buffer: &wgpu::Buffer, values: &[f32]) {
    device.wgpu().1.write_buffer(buffer, 0, bytemuck::cast_slice(values));
}

/// An imported tensor of 1, 2, 3, 4 and its buffer.
fn imported(device: &Device) -> (Tensor, wgpu::Buffer) {
    let buffer = buffer(device.wgpu().0, 16, ALL, false);
    fill(device, &buffer, &[1.0, 2.0, 3.0, 4.0]);
    (Tensor::from_buffer(device, buffer.clone(), [4], DType::F32).unwrap(), buffer)
}

/// An application's pass that adds 100 to the contents of `buffer`.
fn add_a_hundred(device: &Device, buffer: &wgpu::Buffer) {
    let (device, queue) = device.wgpu();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
             @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { x[i] += 100.0; }"
                .into(),
        ),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(1, 1, 1);
    drop(pass);
    queue.submit([encoder.finish()]);
}

#[test]
fn what_waits_to_read_a_buffer_runs_before_the_application_writes_it() -> tf::Result<()> {
    let device = shared();
    let (x, buffer) = imported(&device);
    let z = &x * 1.0;
    assert_eq!(x.buffer()?, buffer);
    add_a_hundred(&device, &buffer);
    assert_eq!(z.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);

    // Also if an op that reads a reader is pending, and the tensor is a reshaped one.
    drop(x);
    let x = Tensor::from_buffer(&device, buffer.clone(), [4], DType::F32)?;
    let matrix = x.reshape([2, 2])?;
    let sum = (&matrix + 1.0).reduce_sum(())?;
    assert_eq!(matrix.buffer()?, buffer);
    add_a_hundred(&device, &buffer);
    assert_eq!(sum.item::<f32>()?, 414.0);
    Ok(())
}

#[test]
fn a_buffer_that_is_taken_back_may_be_written() -> tf::Result<()> {
    let device = shared();
    let (mut x, buffer) = imported(&device);
    let mut read = Vec::new();
    for _ in 0..5 {
        read.push(&x * 2.0);
        let own = x.into_buffer()?;
        assert_eq!(own, buffer);
        add_a_hundred(&device, &own);
        x = Tensor::from_buffer(&device, own, [4], DType::F32)?;
    }
    for (turn, y) in read.iter().enumerate() {
        assert_eq!(y.to_vec::<f32>()?[0], 2.0 + 200.0 * turn as f32);
    }
    assert_eq!(x.to_vec::<f32>()?, [501.0, 502.0, 503.0, 504.0]);
    Ok(())
}

#[test]
fn a_buffer_that_somebody_holds_is_not_given_back() -> tf::Result<()> {
    let device = shared();
    let in_use = "into_buffer: the buffer is still in use, by a clone of the tensor, a reshaped one, a variable or a tape. \
                  Drop them first; their values would change with the buffer.";
    let refused = |x: Tensor| {
        let error = x.into_buffer().unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Buffer, _)), "{error}");
        error.to_string()
    };
    let (x, _) = imported(&device);
    let clone = x.clone();
    assert_eq!(refused(x), in_use);
    assert_eq!(clone.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);

    let matrix = clone.reshape([2, 2])?;
    assert_eq!(refused(clone), in_use);
    // The last one of several can take the buffer.
    matrix.into_buffer()?;

    let (x, _) = imported(&device);
    let variable = Variable::new(&x);
    assert_eq!(refused(x), in_use);
    drop(variable);

    let (x, _) = imported(&device);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = x.square()?;
    assert_eq!(refused(x), in_use, "the gradient needs it");
    drop((tape, y));

    // Two tensors over one buffer are independent of each other, as documented.
    let (x, buffer) = imported(&device);
    let twin = Tensor::from_buffer(&device, buffer, [2, 2], DType::F32)?;
    assert_eq!((x.reshape([2, 2])? * &twin).to_vec::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
    drop(twin);
    x.into_buffer()?;

    let own = device.scope(|| tf::constant([1.0, 2.0]))?;
    assert_eq!(
        refused(own),
        "into_buffer: the buffer is wgrad's own and serves other values when the tensor is dropped. Use Tensor::buffer \
         to read it, or have the application copy it to one of its own."
    );
    Ok(())
}

#[test]
fn a_buffer_may_be_longer_than_its_tensor() -> tf::Result<()> {
    let device = shared();
    let buffer = buffer(device.wgpu().0, 64, ALL, false);
    let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
    fill(&device, &buffer, &values);
    let first = Tensor::from_buffer(&device, buffer.clone(), [5], DType::F32)?;
    assert_eq!((&first + 1.0).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(first.reduce_sum(())?.item::<f32>()?, 10.0);
    // A part of it, as a slice of a tensor over the whole buffer.
    let part = Tensor::from_buffer(&device, buffer.clone(), [16], DType::F32)?.slice(&[6], &[3])?;
    assert_eq!(part.to_vec::<f32>()?, [6.0, 7.0, 8.0]);
    let empty = Tensor::from_buffer(&device, buffer, [0, 3], DType::F32)?;
    assert!(empty.to_vec::<f32>()?.is_empty());
    Ok(())
}

#[test]
fn a_buffer_that_cannot_be_used_is_refused_at_once() {
    let device = shared();
    let raw = device.wgpu().0.clone();
    let reported = |buffer: &wgpu::Buffer| {
        let error = Tensor::from_buffer(&device, buffer.clone(), [4], DType::F32).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Buffer, _)), "{error}");
        error.to_string()
    };
    let remedy = "The application has to give one that was made on this device (Device::wgpu), is not mapped, and is not \
                  destroyed before its tensors are dropped.";
    // Of another device that wgrad opened, and of one that the application opened separately.
    let other = Device::new().unwrap();
    let sibling = buffer(other.wgpu().0, 16, ALL, false);
    let (_, foreign, _) = application(|_| wgpu::Limits::default());
    foreign.on_uncaptured_error(std::sync::Arc::new(|_| {}));
    for buffer in [sibling, buffer(&foreign, 16, ALL, false), buffer(&foreign, 32, ALL, false)] {
        assert_eq!(
            reported(&buffer),
            format!("from_buffer: the buffer belongs to another device. {remedy}")
        );
    }
    let gone = buffer(&raw, 16, ALL, false);
    gone.destroy();
    assert_eq!(
        reported(&gone),
        format!(
            "from_buffer: the buffer is refused by wgpu: Buffer with 'mine' label has been destroyed. {remedy}"
        )
    );
    let mapped = buffer(&raw, 16, ALL, true);
    assert_eq!(reported(&mapped), format!("from_buffer: the buffer is mapped. {remedy}"));
    mapped.unmap();
    let x = Tensor::from_buffer(&device, mapped, [4], DType::F32).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0; 4]);
    assert_eq!(
        reported(&buffer(&raw, 12, BufferUsages::STORAGE, false)),
        "from_buffer: the application's buffer of 12 bytes with BufferUsages(STORAGE) cannot hold a f32 tensor of \
         shape [4]. Make it with 16 bytes or more and BufferUsages(COPY_SRC | COPY_DST | STORAGE)."
    );
    // No error is left to be reported.
    device.flush().unwrap();
}

#[test]
fn what_the_application_breaks_later_is_not_called_wgrads_defect() -> tf::Result<()> {
    let device = shared();
    let (x, buffer) = imported(&device);
    let y = &x + 1.0;
    buffer.destroy();
    let error = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(error.starts_with("Device: the driver refused a command: "), "{error}");
    assert!(error.contains("'mine' label has been destroyed"), "{error}");
    assert!(
        error.ends_with(
            "The application shares this device: if the command is its own, or it has destroyed or mapped the buffer of \
             a tensor, fix it there. Otherwise this is a bug in wgrad or in the driver; please report it \
             with the text above."
        ),
        "{error}"
    );
    // The device itself remains usable.
    device.flush()?;
    assert_eq!(device.scope(|| tf::constant([1.0, 2.0]))?.square()?.to_vec::<f32>()?, [1.0, 4.0]);
    Ok(())
}

/// Losses of a small net with convolution, pooling and a dense layer over five steps.
fn train(device: &Device) -> tf::Result<Vec<f32>> {
    use tf::keras::optimizers::{Adam, Optimizer};
    device.scope(|| {
        let random = tf::random::Generator::from_seed(3);
        let x = random.normal([4, 8, 8, 2])?;
        let filters = Variable::new(&(random.normal([3, 3, 2, 4])? * 0.3));
        let kernel = Variable::new(&(random.normal([36, 5])? * 0.2));
        let labels = tf::constant([0, 1, 2, 3])?;
        let adam = Adam::new(0.01);
        let all = [filters.clone(), kernel.clone()];
        let step = || -> tf::Result<f32> {
            let tape = GradientTape::new();
            let y = x.conv2d(&filters, Default::default())?.relu()?;
            let y = y.max_pool2d([2, 2], Default::default())?.reshape([4, 36])?.matmul(&kernel)?;
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &y)?.reduce_mean(())?;
            let grads = tape.gradient(&loss, &all[..])?;
            adam.apply_gradients(&grads, &all)?;
            loss.item::<f32>()
        };
        (0..5).map(|_| step()).collect()
    })
}

#[test]
fn four_storage_buffers_are_enough() -> tf::Result<()> {
    let mut all: Vec<Vec<f32>> = Vec::new();
    for buffers in [4, 5, 6, 7, 8] {
        let (adapter, raw, queue) = application(|_| wgpu::Limits {
            max_storage_buffers_per_shader_stage: buffers,
            ..wgpu::Limits::downlevel_defaults()
        });
        let device = Device::from_wgpu(&adapter, raw, queue)?;
        device.set_fusion(true);
        all.push(train(&device)?);
        // With eight buffers, up to seven inputs share a kernel.
        device.scope(|| {
            let parts: Vec<Tensor> = (0..9)
                .map(|i| Tensor::from_slice(&[i as f32, 0.5], [2]))
                .collect::<tf::Result<_>>()?;
            let joined = tf::concat(parts.iter().collect::<Vec<_>>(), 0)?;
            let values: Vec<f32> = (0..9).flat_map(|i| [i as f32, 0.5]).collect();
            assert_eq!(joined.to_vec::<f32>()?, values);
            assert_eq!(tf::add_n(parts.iter().collect::<Vec<_>>())?.to_vec::<f32>()?, [36.0, 4.5]);
            tf::Result::Ok(())
        })?;
        // Twice: a repeated structure is fused.
        assert_eq!(train(&device)?.len(), 5);
    }
    for losses in &all {
        assert!(losses[4] < losses[0], "{losses:?}");
        for (loss, other) in losses.iter().zip(&all[4]) {
            assert!((loss - other).abs() <= 2e-6 * other.abs(), "{losses:?} and {:?}", all[4]);
        }
    }
    Ok(())
}

#[test]
fn too_small_limits_are_refused_when_the_device_is_shared() {
    let reported = |limits: wgpu::Limits| {
        let (adapter, raw, queue) = application(|_| limits);
        let error = Device::from_wgpu(&adapter, raw, queue).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Limit, _)), "{error}");
        error.to_string()
    };
    let remedy = "Ask for more when the device is made: `wgpu::Limits::downlevel_defaults()` is enough, and \
                  `adapter.limits()` is all that the adapter has.";
    assert_eq!(
        reported(wgpu::Limits {
            max_storage_buffers_per_shader_stage: 3,
            ..wgpu::Limits::default()
        }),
        format!(
            "Device: limits are too small for kernels: max_storage_buffers_per_shader_stage is 3 and must be 4 or more. \
             {remedy}"
        )
    );
    assert_eq!(
        reported(wgpu::Limits {
            max_compute_workgroup_size_x: 32,
            max_compute_invocations_per_workgroup: 32,
            ..wgpu::Limits::default()
        }),
        format!(
            "Device: limits are too small for kernels: max_compute_invocations_per_workgroup is 32 and must be 256 or \
             more, max_compute_workgroup_size_x is 32 and must be 256 or more. {remedy}"
        )
    );
    assert_eq!(
        reported(wgpu::Limits { max_buffer_size: 1 << 20, ..wgpu::Limits::default() }),
        format!(
            "Device: limits are too small for kernels: max_buffer_size is 1048576 and must be 268435456 or more. {remedy}"
        )
    );
}

#[test]
fn a_device_that_was_destroyed_is_not_shared() {
    let (adapter, raw, queue) = application(|_| wgpu::Limits::default());
    raw.destroy();
    let error = Device::from_wgpu(&adapter, raw, queue).unwrap_err();
    assert!(error.is_device_lost(), "{error}");
}
