//! A device reports what it cannot do: every call reports a lost device permanently, and running out of memory is reported
//! once.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use tf::keras::optimizers::{Adam, Optimizer};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::interop::{DeviceExt, TensorExt};
use wgrad::{DType, Device, Error, GradientTape, Result, Tensor, Variable};

const LOST: &str = "Device: the device is lost (Destroyed: the program released it); its tensors are gone. Make a \
                    new one with Device::new, give it to Device::set_default and continue from values kept on the \
                    host.";

#[track_caller]
fn assert_lost<T>(reported: Result<T>) {
    let Err(error) = reported else { panic!("the call has reported of no loss") };
    assert!(error.is_device_lost(), "{error}");
    assert_eq!(error.to_string(), LOST);
}

/// Work that keeps a device busy for a while; the value is pending.
fn heavy(device: &Device) -> Tensor {
    device
        .scope(|| {
            let x = tf::random::Generator::from_seed(1).normal([384, 384])?;
            let mut y = x.clone();
            for _ in 0..6 {
                y = (y.matmul(&x)? * 0.01).tanh()?;
            }
            Ok::<_, Error>(y)
        })
        .unwrap()
}

/// A device with work in flight, and a value that is ready.
fn busy() -> (Device, Tensor) {
    let device = Device::new().unwrap();
    let x = device.scope(|| tf::constant([1.0, 2.0])).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    drop(heavy(&device).reduce_sum(()).unwrap().to_vec::<f32>().unwrap());
    let sum = heavy(&device).reduce_sum(()).unwrap();
    device.flush().unwrap();
    drop(sum);
    (device, x)
}

/// A call, on a device and a value that is ready.
type Call = fn(&Device, &Tensor) -> Result<()>;

/// Every kind of call that reaches the device.
const CALLS: [(&str, Call); 16] = [
    ("flush of nothing", |device, _| device.flush()),
    ("flush of what waits", |device, x| {
        let y = x + 1.0;
        device.flush()?;
        y.to_vec::<f32>().map(drop)
    }),
    ("flush of what nobody holds", |device, x| {
        drop(x + 1.0);
        device.flush()
    }),
    ("synchronize", |device, _| device.synchronize()),
    ("synchronize_async", |device, _| pollster::block_on(device.synchronize_async())),
    ("read of what is ready", |_, x| x.to_vec::<f32>().map(drop)),
    ("read of what waits", |_, x| (x + 1.0).to_vec::<f32>().map(drop)),
    ("async read", |_, x| pollster::block_on(x.to_vec_async::<f32>()).map(drop)),
    ("read of several", |_, x| {
        pollster::block_on(Tensor::to_vecs_async::<f32>(&[x, &(x * 2.0)])).map(drop)
    }),
    ("upload", |device, _| device.scope(|| Tensor::from_slice(&[1.0f32; 100], [100])).map(drop)),
    ("buffer", |_, x| x.buffer().map(drop)),
    ("from_buffer", |device, _| {
        let buffer = device.wgpu().0.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Tensor::from_buffer(device, buffer, [4], DType::F32).map(drop)
    }),
    ("optimizer step", |device, x| {
        let w = Variable::new(x);
        let grad = device.scope(|| x.square())?;
        Adam::new(0.1).apply_gradients(&[Some(grad)], &w)
    }),
    ("gradient", |_, x| {
        let tape = GradientTape::new();
        tape.watch(x)?;
        let y = x.square()?.reduce_sum(())?;
        tape.required_gradient(&y, x)?.to_vec::<f32>().map(drop)
    }),
    ("tune", |device, _| device.tune().map(drop)),
    ("profile", |device, x| {
        let profiler = device.profile()?;
        let y = x + 1.0;
        let profile = profiler.finish().map(drop);
        drop(y);
        profile
    }),
];

#[test]
fn a_device_that_the_application_destroys_at_work_is_lost_to_every_call() {
    for (name, call) in CALLS {
        let (device, x) = busy();
        device.wgpu().0.destroy();
        println!("{name}");
        assert_lost(call(&device, &x));
        // Once and for all.
        assert_lost(device.flush());
        for (_, call) in CALLS {
            assert_lost(call(&device, &x));
        }
        assert_eq!(pollster::block_on(device.lost()), "Destroyed: the program released it");
    }
}

#[test]
fn what_waited_and_what_had_failed_is_lost_too() {
    let (device, x) = busy();
    let waiting = &x + 1.0;
    // Fails because of missing memory before the device is lost.
    let big = device.scope(|| Tensor::ones([1 << 20])).unwrap();
    device.set_memory_limit(Some(1 << 20)).unwrap();
    assert!(device.flush().unwrap_err().is_out_of_memory());
    device.wgpu().0.destroy();
    assert_lost(big.to_vec::<f32>());
    assert_lost(waiting.to_vec::<f32>());
    assert_lost((&big + 1.0).to_vec::<f32>());
    assert_lost(device.flush());
}

#[test]
fn a_step_that_meets_the_loss_leaves_the_count_as_it_was() -> Result<()> {
    let (device, x) = busy();
    let w = Variable::new(&x);
    let adam = Adam::new(0.1);
    let step = || adam.apply_gradients(&[Some(x.square()?)], &w);
    step()?;
    device.wgpu().0.destroy();
    assert_lost(step());
    assert_lost(step());
    assert_eq!(adam.iterations(), 1);
    Ok(())
}

#[test]
fn a_save_of_weights_that_meets_the_loss_leaves_the_old_file() -> Result<()> {
    use tf::keras::{Sequential, layers::Dense};
    let device = Device::new()?;
    let model = device.scope(|| -> Result<Sequential> {
        let model = Sequential::new().add(Dense::new(3));
        model.build([1, 2])?;
        Ok(model)
    })?;
    let path = std::env::temp_dir().join(format!("wgrad-loss-{}.safetensors", std::process::id()));
    model.save_weights(&path)?;
    let old = std::fs::read(&path).unwrap();
    drop(heavy(&device));
    device.wgpu().0.destroy();
    assert_lost(model.save_weights(&path));
    assert_lost(device.scope(|| model.load_weights(&path)));
    assert_eq!(std::fs::read(&path).unwrap(), old);
    std::fs::remove_file(path).unwrap();
    Ok(())
}

/// Repeats `work` until it reports that the device is lost; panics at any other error.
fn until_lost(work: impl Fn() -> Result<()>) {
    for _ in 0..100_000 {
        match work() {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.to_string(), LOST);
                return;
            }
        }
    }
    panic!("no loss was reported");
}

#[test]
fn twelve_threads_hear_of_a_loss_in_their_midst() {
    for turn in 0..8 {
        let (device, x) = busy();
        let gone = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..12usize {
                let (device, x, gone) = (&device, &x, &gone);
                scope.spawn(move || {
                    until_lost(|| {
                        let (_, call) = CALLS[(thread + turn) % CALLS.len()];
                        // Only one `tune` or `profile` runs at a time.
                        let call = if thread + turn >= 14 { CALLS[6].1 } else { call };
                        call(device, x)
                    });
                    assert!(gone.load(Ordering::Relaxed), "lost before anybody destroyed it");
                    until_lost(|| device.flush());
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(30 + 7 * turn as u64));
            gone.store(true, Ordering::Relaxed);
            if turn % 2 == 0 { device.wgpu().0.destroy() } else { device.destroy() }
        });
        assert_lost(device.flush());
    }
}

#[test]
fn a_reader_in_another_thread_is_not_left_waiting() {
    for asynchronous in [false, true] {
        for own in [false, true] {
            let (device, _) = busy();
            let y = heavy(&device);
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| match asynchronous {
                    true => pollster::block_on(y.to_vec_async::<f32>()),
                    false => y.to_vec::<f32>(),
                });
                std::thread::sleep(std::time::Duration::from_millis(5));
                if own {
                    device.destroy()
                } else {
                    device.wgpu().0.destroy()
                }
                // Previously submitted work may still be finished.
                match reader.join().unwrap() {
                    Ok(values) => assert_eq!(values.len(), 384 * 384),
                    Err(error) => assert_eq!(error.to_string(), LOST),
                }
            });
            assert_lost(y.to_vec::<f32>());
        }
    }
}

#[test]
fn a_loss_is_seen_though_the_application_took_the_handler() {
    let (device, x) = busy();
    device.wgpu().0.set_device_lost_callback(|_, _| {});
    device.wgpu().0.destroy();
    assert_lost(device.flush());
    assert_lost(x.to_vec::<f32>());
}

#[test]
fn tuning_in_the_background_hears_of_a_loss() {
    let (device, _) = busy();
    device.set_tuning(tf::Tuning::Background);
    let a = device.scope(|| Tensor::ones([64, 64])).unwrap();
    for _ in 0..40 {
        a.matmul(&a).unwrap().to_vec::<f32>().unwrap();
    }
    device.wgpu().0.destroy();
    assert_lost(a.matmul(&a).unwrap().to_vec::<f32>());
    assert_lost(device.flush());
    assert_lost(device.tune());
}

/// Runs out of memory in one way, and returns the error.
type Hungry = fn(&Device) -> Result<()>;

const HUNGRY: [(&str, Hungry); 8] = [
    ("read", |device| device.scope(|| Tensor::ones([1 << 20]))?.to_vec::<f32>().map(drop)),
    ("async read", |device| {
        let big = device.scope(|| Tensor::ones([1 << 20]))?;
        pollster::block_on(big.to_vec_async::<f32>()).map(drop)
    }),
    ("read of several", |device| {
        let (big, other) = device.scope(|| Ok((Tensor::ones([1 << 20])?, Tensor::ones([8])?)))?;
        pollster::block_on(Tensor::to_vecs_async::<f32>(&[&big, &other])).map(drop)
    }),
    ("buffer", |device| device.scope(|| Tensor::ones([1 << 20]))?.buffer().map(drop)),
    ("flush", |device| {
        let big = device.scope(|| Tensor::ones([1 << 20]))?;
        let reported = device.flush();
        drop(big);
        reported
    }),
    ("upload", |device| {
        device.scope(|| Tensor::from_slice(&vec![0f32; 1 << 20], [1 << 20])).map(drop)
    }),
    ("upload while other work waits", |device| {
        let big = device.scope(|| Tensor::ones([1 << 20]))?;
        let reported =
            device.scope(|| Tensor::from_slice(&vec![0f32; 1 << 19], [1 << 19])).map(drop);
        drop(big);
        reported
    }),
    ("optimizer step", |device| {
        let w = device.scope(|| Ok::<_, Error>(Variable::new(&Tensor::zeros([4])?)))?;
        let grad = device.scope(|| Tensor::ones([4]))?;
        let big = device.scope(|| Tensor::ones([1 << 20]))?;
        let reported = Adam::new(0.1).apply_gradients(&[Some(grad * big.reduce_max(())?)], &[w]);
        drop(big);
        reported
    }),
];

#[test]
fn running_out_of_memory_is_reported_once() -> Result<()> {
    for (name, hungry) in HUNGRY {
        let device = Device::new()?;
        let x = device.scope(|| tf::constant([1.0, 2.0]))?;
        for turn in 0..3 {
            device.set_memory_limit(Some(1 << 20)).unwrap();
            let error = hungry(&device).expect_err(name);
            assert!(error.is_out_of_memory(), "{name}: {error}");
            assert!(error.to_string().contains("the limit is 1048576"), "{name}: {error}");
            device.set_memory_limit(None).unwrap();
            device
                .flush()
                .unwrap_or_else(|error| panic!("{name}, turn {turn}: reported again: {error}"));
            assert_eq!((&x + 1.0).to_vec::<f32>()?, [2.0, 3.0]);
            hungry(&device)?;
        }
    }
    Ok(())
}

#[test]
fn an_unreported_error_is_returned_by_the_next_flush() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        device.set_memory_limit(Some(1 << 20)).unwrap();
        let (big, other) = (Tensor::ones([1 << 20])?, Tensor::ones([1 << 19])?);
        // A flush that the program did not request.
        device.set_stream_limit(Some(1));
        let small = Tensor::ones([4])?;
        device.set_stream_limit(None);
        device.set_memory_limit(None).unwrap();
        let error = device.flush().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        device.flush()?;
        for failed in [&big, &other, &small] {
            assert!(failed.to_vec::<f32>().unwrap_err().is_out_of_memory());
        }
        device.flush()?;
        // A call on a failed value is a new error.
        let next = &big + 1.0;
        assert!(device.flush().unwrap_err().is_out_of_memory());
        device.flush()?;
        drop(next);
        Ok(())
    })
}
