//! The device as a program sees it: counters in a loop, memory, faults, adapters, shared devices, threads.
#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::cell::RefCell;

use crate::support::child;

use wgrad as tf;
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::{Device, DeviceFault, DeviceOptions, Error, Tensor, Variable};

/// One step of a small training loop: forward, backward, update, flush.
fn step(device: &Device, w: &Variable, b: &Variable, xs: &[f32], t: i32) -> tf::Result<Tensor> {
    let x = Tensor::from_slice(xs, [8, 16])?;
    let tape = tf::GradientTape::new();
    let loss = (x.matmul(w)? + b).tanh()?.square()?.reduce_mean(())?;
    let [dw, db] = tape.required_gradient(&loss, [w, b])?;
    // The rate changes at every step, as in a schedule.
    let rate = 0.1 / (t as f32 + 1.0);
    w.assign_sub(dw * rate)?;
    b.assign_sub(db * rate)?;
    device.flush()?;
    Ok(loss)
}

fn start() -> tf::Result<(Variable, Variable, Vec<f32>)> {
    let w = Variable::new(&tf::random::Generator::from_seed(1).normal([16, 4])?);
    let b = Variable::new(&Tensor::zeros([4])?);
    Ok((w, b, (0..128).map(|i| (i % 7) as f32 / 7.0).collect()))
}

#[test]
fn a_steady_loop_plans_compiles_and_allocates_nothing() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (w, b, xs) = start()?;
        for t in 0..20 {
            step(&device, &w, &b, &xs, t)?;
        }
        let before = device.stats();
        for t in 20..120 {
            step(&device, &w, &b, &xs, t)?;
        }
        let after = device.stats();
        assert_eq!(after.flushes - before.flushes, 100);
        assert_eq!(after.plan_hits - before.plan_hits, 100);
        assert_eq!(after.plan_misses, before.plan_misses);
        assert_eq!(after.pipelines, before.pipelines);
        assert_eq!(after.buffers, before.buffers);
        assert_eq!(after.bind_groups, before.bind_groups);
        assert_eq!(after.submits - before.submits, 100, "one submission a step");
        Ok(())
    })
}

#[test]
fn memory_is_flat_over_two_thousand_steps() {
    // In a separate process, so that other tests' memory does not count.
    in_environment("for_two_thousand_steps", &[]);
}

#[test]
#[ignore = "run by memory_is_flat_over_two_thousand_steps"]
fn for_two_thousand_steps() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (w, b, xs) = start()?;
        // A plan for few runs is replaced by one for many after a thousand runs.
        for t in 0..1100 {
            step(&device, &w, &b, &xs, t)?;
        }
        let before = device.stats();
        // A leak grows in every 2,000 steps. A driver may allocate memory for itself once, in the first of them.
        let mut held = vec![resident_bytes()];
        for t in 1100..9100 {
            step(&device, &w, &b, &xs, t)?;
            if t % 2000 == 1099 {
                let before = *held.last().unwrap();
                held.push(resident_bytes());
                if *held.last().unwrap() <= before.map(|bytes| bytes + (4 << 20)) {
                    break;
                }
                assert!(t < 9099, "bytes that the process holds, every 2,000 steps: {held:?}");
            }
        }
        let after = device.stats();
        assert!(w.read().reduce_sum(())?.item::<f32>()?.is_finite());
        assert_eq!(after.live_bytes, before.live_bytes);
        assert_eq!(after.peak_bytes, before.peak_bytes);
        assert_eq!(after.buffers, before.buffers);
        Ok(())
    })
}

/// The resident memory of this process, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[test]
fn dead_ops_launch_nothing() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = tf::constant([1.0, 2.0])?;
        let before = device.stats();
        drop(x.exp()?.log()?);
        let y = &x + 1.0;
        assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
        let after = device.stats();
        assert_eq!(after.kernels - before.kernels, 1);
        // exp, log, the scalar, add.
        assert_eq!(after.nodes - before.nodes, 4);
        Ok(())
    })
}

#[test]
fn a_long_stream_is_flushed_by_itself() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let mut x = Tensor::zeros([16])?;
        for _ in 0..5000 {
            x = x + 1.0;
        }
        assert!(device.stats().flushes >= 2);
        assert_eq!(x.to_vec::<f32>()?, [5000.0; 16]);
        Ok(())
    })
}

#[test]
fn buffers_are_shared_by_values_that_never_meet() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let megabyte = 1 << 20;
        let mut x = Tensor::ones([megabyte / 4])?;
        for _ in 0..20 {
            x = x * 1.0;
        }
        assert_eq!(x.reduce_sum(())?.item::<f32>()?, (megabyte / 4) as f32);
        let peak = device.stats().peak_bytes;
        assert!(peak < 6 * megabyte as u64, "20 steps of a chain took {peak} bytes");
        Ok(())
    })
}

#[test]
fn a_memory_limit_is_an_error_and_the_device_goes_on() -> tf::Result<()> {
    let device = Device::open(&DeviceOptions::new().memory_limit(8 << 20))?;
    device.scope(|| {
        let kept = tf::constant([1.0, 2.0, 3.0])?;
        let big = Tensor::ones([4 << 20])?;
        let error = big.to_vec::<f32>().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains("the limit is 8388608"), "{error}");
        // Values computed from the failed one fail with the same error; nothing panics.
        let error = (&big + 1.0).to_vec::<f32>().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!((&kept * 2.0).to_vec::<f32>()?, [2.0, 4.0, 6.0]);
        assert!(device.flush().is_ok());
        // Uploads are checked against the limit at once.
        let error = Tensor::from_slice(&vec![0f32; 4 << 20], [4 << 20]).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        device.set_memory_limit(None).unwrap();
        assert_eq!(Tensor::ones([4 << 20])?.reduce_max(())?.item::<f32>()?, 1.0);
        Ok(())
    })
}

#[test]
fn freed_memory_is_trimmed_for_a_limit() -> tf::Result<()> {
    let device = Device::open(&DeviceOptions::new().memory_limit(8 << 20))?;
    device.scope(|| {
        // Each size has its own class, so only trimming makes room for the next.
        for n in [1_000_000usize, 1_200_000, 1_400_000, 1_600_000] {
            let sum = Tensor::ones([n])?.reduce_sum(())?.item::<f32>()?;
            assert_eq!(sum, n as f32);
        }
        assert!(device.trim()? > 0);
        assert_eq!(device.stats().pooled_bytes, 0);
        Ok(())
    })
}

#[test]
fn a_lost_device_is_an_error_and_training_goes_on_elsewhere() -> tf::Result<()> {
    let device = Device::new()?;
    let (w, b, xs) = device.scope(start)?;
    device.scope(|| -> tf::Result<()> {
        for t in 0..3 {
            step(&device, &w, &b, &xs, t)?;
        }
        Ok(())
    })?;
    let kept = (w.read().to_array::<f32>()?, b.read().to_array::<f32>()?);

    device.wgpu().0.destroy();
    let error = device.scope(|| step(&device, &w, &b, &xs, 3)).unwrap_err();
    assert!(error.is_device_lost(), "{error}");
    let error = w.read().to_vec::<f32>().unwrap_err();
    assert!(error.is_device_lost(), "{error}");
    assert!(error.to_string().contains("Device::new"), "{error}");
    // Operators on values of a lost device do not panic: the read reports the loss.
    assert!((w.read() + 1.0).to_vec::<f32>().is_err());

    let fresh = Device::new()?;
    fresh.scope(|| {
        w.assign(&Tensor::from_array(&kept.0)?)?;
        b.assign(&Tensor::from_array(&kept.1)?)?;
        let first = step(&fresh, &w, &b, &xs, 3)?.item::<f32>()?;
        for t in 4..20 {
            step(&fresh, &w, &b, &xs, t)?;
        }
        let later = step(&fresh, &w, &b, &xs, 20)?.item::<f32>()?;
        assert!(later < first, "{first} then {later}");
        Ok(())
    })
}

#[test]
fn an_unknown_adapter_is_named_with_those_there_are() {
    let options = DeviceOptions::new().adapter("no such adapter");
    let error = Device::open(&options).unwrap_err();
    assert!(matches!(error, Error::Device(DeviceFault::NoAdapter, _)));
    let known = Device::adapters();
    assert!(!known.is_empty());
    assert!(error.to_string().contains(&known[0].name), "{error}");
    // By index and by a part of the name.
    let fragment = known[0].name[1..5].to_uppercase();
    for adapter in ["0".to_string(), fragment] {
        let device = Device::open(&DeviceOptions::new().adapter(adapter));
        assert_eq!(device.unwrap().adapter().name, known[0].name);
    }
}

/// Runs only the test `name` of this program again, in another environment.
fn in_environment(name: &str, variables: &[(&str, &str)]) {
    child::passes(child::command(module_path!(), name).envs(variables.iter().copied()));
}

#[test]
fn a_child_finds_its_test_in_a_program_of_all_tests() {
    assert_eq!(child::full_name("device", "prints"), "prints");
    assert_eq!(child::full_name("suite::tests::device", "prints"), "tests::device::prints");
}

#[test]
fn environment_variables_are_heeded() {
    in_environment(
        "without_an_adapter",
        &[
            ("VK_ICD_FILENAMES", "/nowhere/icd.json"),
            ("VK_DRIVER_FILES", "/nowhere/icd.json"),
            ("WGPU_BACKEND", "vulkan"),
        ],
    );
    in_environment("with_an_unknown_adapter", &[("WGRAD_ADAPTER", "zx81")]);
    in_environment("synchronously", &[("WGRAD_EAGER_SYNC", "1")]);
    in_environment("without_fusion", &[("WGRAD_FUSION", "0")]);
    in_environment("with_fusion", &[("WGRAD_FUSION", "1")]);
}

#[test]
fn a_program_may_end_while_the_device_works() {
    for _ in 0..5 {
        in_environment("leaving_work_behind", &[]);
    }
}

#[test]
#[ignore = "run by a_program_may_end_while_the_device_works"]
fn leaving_work_behind() {
    let x = tf::random::global().normal([300, 300]).unwrap();
    let y = x.matmul(&x).unwrap().tanh().unwrap().softmax(-1).unwrap();
    Device::current().unwrap().flush().unwrap();
    drop(y);
}

thread_local! {
    /// Dropped last by a thread that touches it first.
    static HELD: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A panic in the `Drop` of a thread-local value ends the process, so each of these has a separate process.
#[test]
fn the_last_handles_may_go_with_a_thread_that_ends() {
    for what in ["device", "waiting", "tensors", "limit", "variable", "application"] {
        in_environment("holding_to_the_end", &[("WGRAD_TEST_HELD", what)]);
    }
}

/// Some last handles to a device that has pending work.
fn last_handles(what: &str) -> tf::Result<Vec<Box<dyn Any>>> {
    let device = match what {
        "application" => applications_device()?,
        _ => Device::new()?,
    };
    device.scope(|| {
        let small = tf::constant([1.0, 2.0])?.add(1.0)?;
        let large = Tensor::zeros([1 << 17])?.add(small.reduce_sum(())?)?;
        assert_eq!(large.to_vec::<f32>()?[7], 5.0);
        let waiting = large.multiply(2.0)?;
        let held: Vec<Box<dyn Any>> = match what {
            "device" => vec![Box::new(device.clone())],
            "waiting" => vec![Box::new(waiting)],
            "variable" => {
                let variable = Variable::new(&small);
                variable.assign_add(&waiting.reduce_sum(())?)?;
                vec![Box::new(variable)]
            }
            _ => {
                device.flush()?;
                if what == "limit" {
                    device.set_memory_limit(Some(device.stats().live_bytes)).unwrap();
                }
                vec![Box::new(small), Box::new(waiting), Box::new(large)]
            }
        };
        Ok(held)
    })
}

#[test]
#[ignore = "run by the_last_handles_may_go_with_a_thread_that_ends"]
fn holding_to_the_end() {
    let what = std::env::var("WGRAD_TEST_HELD").unwrap();
    for _ in 0..3 {
        let what = what.clone();
        let thread = std::thread::spawn(move || {
            HELD.with_borrow(|_| ());
            HELD.set(last_handles(&what).unwrap());
        });
        thread.join().unwrap();
    }
    let device = Device::new().unwrap();
    let y = device.scope(|| tf::constant([1.0]).unwrap().add(1.0).unwrap().to_vec::<f32>());
    assert_eq!(y.unwrap(), [2.0]);
}

fn applications_device() -> tf::Result<Device> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = pollster::block_on(instance.request_adapter(&options)).unwrap();
    let (raw, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
    Device::from_wgpu(&adapter, raw, queue)
}

#[test]
#[ignore = "run by environment_variables_are_heeded"]
fn without_an_adapter() {
    let error = Tensor::zeros([2]).unwrap_err();
    assert!(matches!(error, Error::Device(DeviceFault::NoAdapter, _)), "{error}");
    assert!(error.to_string().contains("mesa-vulkan-drivers"), "{error}");
}

#[test]
#[ignore = "run by environment_variables_are_heeded"]
fn with_an_unknown_adapter() {
    let error = Device::new().unwrap_err();
    assert!(error.to_string().contains("no adapter is called \"zx81\""), "{error}");
}

#[test]
#[ignore = "run by environment_variables_are_heeded"]
fn synchronously() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = tf::constant([1.0, 2.0]).unwrap();
        let y = &x + &x;
        // It has run before anything was read.
        assert_eq!(device.stats().kernels, 1);
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0]);
        let (w, b, xs) = start().unwrap();
        assert!(step(&device, &w, &b, &xs, 0).unwrap().item::<f32>().unwrap().is_finite());
    });
}

/// The number of kernels of a chain of two ops, and its value.
fn chain(device: &Device) -> (u64, Vec<f32>) {
    let before = device.stats().kernels;
    let y = device.scope(|| {
        let x = tf::constant([1.0, 2.0])?;
        let y = (&x + 1.0).square()?;
        y.to_vec::<f32>()
    });
    (device.stats().kernels - before, y.unwrap())
}

#[test]
#[ignore = "run by environment_variables_are_heeded"]
fn without_fusion() {
    let device = Device::new().unwrap();
    assert_eq!(chain(&device), (2, vec![4.0, 9.0]));
    device.set_fusion(true);
    assert_eq!(chain(&device), (1, vec![4.0, 9.0]));
}

#[test]
#[ignore = "run by environment_variables_are_heeded"]
fn with_fusion() {
    assert_eq!(chain(&Device::new().unwrap()).0, 1);
}

#[test]
fn planning_is_timed_where_a_plan_is_made() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = tf::constant([1.0, 2.0])?;
        let step = || x.tanh()?.square()?.to_vec::<f32>();
        step()?;
        let missed = device.stats();
        assert!(missed.planning > std::time::Duration::ZERO);
        step()?;
        let hit = device.stats();
        assert_eq!((hit.plan_misses, hit.plan_hits), (missed.plan_misses, missed.plan_hits + 1));
        assert_eq!(hit.planning, missed.planning, "a plan that is known costs no planning");
        x.exp()?.to_vec::<f32>()?;
        assert!(device.stats().planning > hit.planning);
        Ok(())
    })
}

#[test]
fn fusion_is_switched_for_one_device() {
    let (device, other) = (Device::new().unwrap(), Device::new().unwrap());
    device.set_fusion(true);
    other.set_fusion(true);
    assert_eq!(chain(&device), (1, vec![4.0, 9.0]));
    device.set_fusion(false);
    // The plan made with fusion is not used for the same structure.
    assert_eq!(chain(&device), (2, vec![4.0, 9.0]));
    assert_eq!(chain(&other), (1, vec![4.0, 9.0]));
    // Setting the present value again keeps the plans.
    let misses = device.stats().plan_misses;
    device.set_fusion(false);
    assert_eq!(chain(&device), (2, vec![4.0, 9.0]));
    assert_eq!(device.stats().plan_misses, misses);
    device.set_fusion(true);
    assert_eq!(chain(&device), (1, vec![4.0, 9.0]));
}

#[test]
fn an_applications_device_is_shared() -> tf::Result<()> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = pollster::block_on(instance.request_adapter(&options)).unwrap();
    let (raw, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
    let device = Device::from_wgpu(&adapter, raw.clone(), queue.clone())?;
    device.scope(|| {
        let buffer = raw.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[1f32, 2.0, 3.0, 4.0]));
        let x = Tensor::from_buffer(&device, buffer.clone(), [2, 2], tf::DType::F32)?;
        assert_eq!((&x * 2.0).to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(x.buffer()?, buffer, "no copy");
        // The application can use one of our values without reading it back.
        assert!((&x + 1.0).buffer()?.size() >= 16);
        let small = Tensor::from_buffer(&device, buffer, [5], tf::DType::F32).unwrap_err();
        assert!(matches!(small, Error::Device(DeviceFault::Buffer, _)), "{small}");
        Ok(())
    })
}

#[test]
fn the_noop_backend_takes_every_call() -> tf::Result<()> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::NOOP,
        backend_options: wgpu::BackendOptions {
            noop: wgpu::NoopBackendOptions { enable: true, ..Default::default() },
            ..Default::default()
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = pollster::block_on(instance.request_adapter(&options)).unwrap();
    let (raw, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
    let device = Device::from_wgpu(&adapter, raw, queue)?;
    device.scope(|| {
        let (w, b, xs) = start()?;
        for t in 0..3 {
            step(&device, &w, &b, &xs, t)?;
        }
        assert_eq!(w.read().to_vec::<f32>()?.len(), 64);
        Ok(())
    })
}

#[test]
fn tensors_cross_threads() -> tf::Result<()> {
    let device = Device::new()?;
    let x = device.scope(|| tf::constant([1.0, 2.0, 3.0]))?;
    let sums: Vec<f32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|k| {
                let x = &x;
                scope.spawn(move || {
                    let mut y = x.clone();
                    for _ in 0..50 {
                        y = y + k as f32;
                    }
                    y.reduce_sum(()).unwrap().item::<f32>().unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(sums, [6.0, 156.0, 306.0, 456.0]);
    Ok(())
}

#[test]
fn values_are_read_asynchronously() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = tf::constant([1.0, 2.0])?;
        let (y, z) = (&x + 1.0, &x * 10.0);
        let both = futures::future::try_join(y.to_vec_async::<f32>(), z.to_vec_async::<f32>());
        let (y, z) = pollster::block_on(both)?;
        assert_eq!((y, z), (vec![2.0, 3.0], vec![10.0, 20.0]));
        assert!(pollster::block_on(x.item_async::<f32>()).is_err());
        Ok(())
    })
}

#[test]
fn large_uploads_arrive_whole() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        // More than the staging memory that may be pending for a submission.
        let tensors: Vec<Tensor> = (0..12)
            .map(|k| Tensor::from_slice(&vec![k as f32; 2 << 20], [2 << 20]))
            .collect::<tf::Result<_>>()?;
        for (k, tensor) in tensors.iter().enumerate() {
            let (low, high) = (tensor.reduce_min(())?, tensor.reduce_max(())?);
            assert_eq!((low.item::<f32>()?, high.item::<f32>()?), (k as f32, k as f32));
        }
        // Every dtype, also with odd lengths.
        assert_eq!(tf::constant([1u8, 2, 3, 4, 5])?.to_vec::<u8>()?, [1, 2, 3, 4, 5]);
        assert_eq!(tf::constant([true, false, true])?.to_vec::<bool>()?, [true, false, true]);
        assert_eq!(tf::constant([7u32, u32::MAX])?.to_vec::<u32>()?, [7, u32::MAX]);
        let half = [tf::f16::from_f32(0.5), tf::f16::from_f32(-2.0), tf::f16::from_f32(3.0)];
        match tf::constant(half) {
            Ok(half_tensor) => assert_eq!(half_tensor.to_vec::<tf::f16>()?, half),
            Err(error) => assert!(error.to_string().contains("has no f16"), "{error}"),
        }
        Ok(())
    })
}

#[test]
fn what_is_held_is_never_overwritten() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        // Of each pair of steps, one reads a value for the last time and one reads a value that is still held.
        let start = tf::constant([1.0, 2.0, 3.0, 4.0])?;
        let (matrix, mut x) = (start.reshape([2, 2])?, start.clone());
        let mut held = Vec::new();
        for i in 0..6 {
            x = x.add(1.0)?;
            if i % 2 == 0 {
                held.push(x.clone());
            }
            device.flush()?;
        }
        for (k, x) in held.iter().enumerate() {
            assert_eq!(x.to_vec::<f32>()?[0], 2.0 + 2.0 * k as f32);
        }
        assert_eq!(start.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        // A value whose buffer another one shares.
        drop(start);
        let sum = matrix.add(&matrix)?;
        let flat = matrix.reshape([4])?;
        drop(matrix);
        device.flush()?;
        let next = sum.multiply(3.0)?;
        drop(sum);
        assert_eq!(next.to_vec::<f32>()?, [6.0, 12.0, 18.0, 24.0]);
        assert_eq!(flat.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        // A variable's value before a step, held by a clone and by a tape.
        let w = Variable::new(&tf::constant([1.0, 2.0])?);
        let adam = tf::keras::optimizers::Adam::new(0.5);
        let before = w.read();
        let tape = tf::GradientTape::new();
        let loss = w.read().square()?.reduce_sum(())?;
        let [grad] = tape.required_gradient(&loss, [&w])?;
        for _ in 0..3 {
            tf::keras::optimizers::Optimizer::apply_gradients(&adam, &[Some(grad.clone())], &w)?;
        }
        assert_eq!(before.to_vec::<f32>()?, [1.0, 2.0]);
        assert_eq!(grad.to_vec::<f32>()?, [2.0, 4.0]);
        let after = w.read().to_vec::<f32>()?;
        assert!(after.iter().zip([-0.5, 0.5]).all(|(a, b)| (a - b).abs() < 1e-3), "{after:?}");
        Ok(())
    })
}

#[test]
fn a_step_knows_whether_the_old_value_is_held() -> tf::Result<()> {
    use tf::keras::optimizers::{Adam, Optimizer};
    let device = Device::new()?;
    device.scope(|| {
        let adam = Adam::new(0.5);
        let w = Variable::new(&tf::constant([1.0, 2.0])?);
        let step = || {
            let tape = tf::GradientTape::new();
            let loss = w.read().square()?.reduce_sum(())?;
            let [grad] = tape.required_gradient(&loss, [&w])?;
            adam.apply_gradients(&[Some(grad)], &w)
        };
        for _ in 0..4 {
            step()?;
        }
        let misses = || device.stats().plan_misses;
        let steady = misses();
        step()?;
        assert_eq!(misses(), steady);
        // One plan may overwrite the old value, the other must not.
        let held = w.read();
        let value = held.to_vec::<f32>()?;
        step()?;
        assert_eq!(misses(), steady + 1);
        assert_eq!(held.to_vec::<f32>()?, value);
        drop(held);
        step()?;
        assert_eq!(misses(), steady + 1);
        Ok(())
    })
}

#[test]
fn a_step_after_one_that_failed_is_as_without_it() -> tf::Result<()> {
    use tf::keras::optimizers::{Optimizer, Sgd};
    let device = Device::new()?;
    device.scope(|| {
        let sgd = Sgd::new(0.5).momentum(0.9);
        let w = Variable::new(&tf::constant([1.0, 2.0])?);
        let grad = tf::constant([1.0, 1.0])?;
        sgd.apply_gradients(&[Some(grad.clone())], &w)?;
        let once = w.read().to_vec::<f32>()?;
        // The gradient needs more memory than is available.
        let big = Tensor::ones([4 << 20])?;
        let wild = big.add(&big)?.reduce_sum(())?.add(&grad)?;
        device.set_memory_limit(Some(1 << 20)).unwrap();
        let error = sgd.apply_gradients(&[Some(wild)], &w).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(w.read().to_vec::<f32>()?, once);
        device.set_memory_limit(None).unwrap();
        sgd.apply_gradients(&[Some(grad)], &w)?;
        // The momentum is that before the failed step: 0.9 * -0.5 - 0.5.
        for (now, before) in w.read().to_vec::<f32>()?.iter().zip(once) {
            assert!((now - before + 0.95).abs() < 1e-6, "{before} to {now}");
        }
        drop(big);
        Ok(())
    })
}
