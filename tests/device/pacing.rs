//! A budget of the GPU's time: work is spread over frames, and its results do not change.

use std::time::Duration;

use wgrad::interop::{DeviceExt, TensorExt, wgpu};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::{DType, Device, GradientTape, Tensor, Variable, constant, function};

const TINY: Duration = Duration::from_micros(1);
const FRAMES: usize = 100_000;

fn numbers(seed: u32, count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|i| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed * 977)) >> 8) as f32 / 1e7 - 0.8)
        .collect()
}

/// Sends everything within frames of `budget`; returns the number of frames.
fn drive(device: &Device, budget: Duration) -> usize {
    let frames = (1..=FRAMES).find(|_| device.run_for(budget).unwrap());
    frames.expect("each frame makes progress")
}

struct Network {
    variables: [Variable; 4],
    adam: Adam,
}

impl Network {
    fn new() -> Self {
        let of = |seed, shape: [usize; 2]| {
            Variable::new(
                constant(numbers(seed, shape[0] * shape[1])).unwrap().reshape(shape).unwrap(),
            )
        };
        Network {
            variables: [of(1, [8, 32]), of(2, [1, 32]), of(3, [32, 4]), of(4, [1, 4])],
            adam: Adam::new(0.01),
        }
    }

    fn call(&self, x: &Tensor) -> wgrad::Result<Tensor> {
        let [w1, b1, w2, b2] = &self.variables;
        x.matmul(w1)?.add(b1)?.tanh()?.matmul(w2)?.add(b2)
    }

    fn learn(&self, x: &Tensor) -> wgrad::Result<Tensor> {
        let tape = GradientTape::new();
        let loss = self
            .call(x)?
            .subtract(x.sum(wgrad::Axes::from(-1).keepdims(true))?)?
            .square()?
            .mean()?;
        self.adam.minimize(&loss, tape, &self.variables)?;
        Ok(loss)
    }

    fn weights(&self) -> Vec<Vec<f32>> {
        self.variables.iter().map(|variable| variable.read().to_vec().unwrap()).collect()
    }
}

fn batch(step: u32) -> Tensor {
    constant(numbers(step, 16 * 8)).unwrap().reshape([16, 8]).unwrap()
}

/// A training of 30 steps, each spread over frames of `budget`; without one, as usual.
fn trained(device: &Device, budget: Option<Duration>) -> (Vec<f32>, Vec<Vec<f32>>, usize) {
    device.scope(|| {
        if let Some(budget) = budget {
            device.run_for(budget).unwrap();
        }
        let (network, mut losses, mut frames) = (Network::new(), Vec::new(), 0);
        for step in 0..30 {
            let loss = network.learn(&batch(step)).unwrap();
            if let Some(budget) = budget {
                frames += drive(device, budget);
            }
            losses.push(loss);
        }
        (losses.iter().map(|loss| loss.item().unwrap()).collect(), network.weights(), frames)
    })
}

#[test]
fn training_under_a_budget_computes_the_same_bits() {
    let usual = trained(&Device::new().unwrap(), None);
    let device = Device::new().unwrap();
    let paced = trained(&device, Some(TINY));
    assert_eq!((&paced.0, &paced.1), (&usual.0, &usual.1));
    assert!(usual.0[29] < 0.7 * usual.0[0], "{:?}", usual.0);
    // A frame of a microsecond has room for one kernel, and a step has several.
    assert!(paced.2 > 3 * 30, "{} frames", paced.2);
    // With enough time, the steps whose kernels' times are known take one frame each.
    let ample = trained(&device, Some(Duration::from_secs(100)));
    assert_eq!((&ample.0, &ample.1, ample.2), (&usual.0, &usual.1, 30));
}

#[test]
fn what_is_read_or_uploaded_in_between_keeps_its_order() {
    let device = Device::new().unwrap();
    device.scope(|| {
        device.run_for(TINY).unwrap();
        for turn in 0..200u32 {
            // Uploads of several sizes take buffers that held work has freed.
            let x = constant(vec![turn as f32; 64 + turn as usize % 3]).unwrap();
            let y = x.add(1.0).unwrap().cumsum(0).unwrap();
            device.run_for(TINY).unwrap();
            let z = constant(vec![turn as u8; 5]).unwrap().cast(DType::F32).unwrap();
            let z = z.multiply(y.i(63).unwrap()).unwrap();
            drop((x, y));
            device.run_for(TINY).unwrap();
            if turn % 7 == 0 {
                let expected = turn as f32 * 64.0 * (turn as f32 + 1.0);
                assert_eq!(z.to_vec::<f32>().unwrap(), [expected; 5]);
            }
        }
    });
    assert!(device.run_for(Duration::MAX).unwrap());
}

/// Memory that held work still uses is not given back to the driver.
#[test]
fn trimming_and_limits_do_not_disturb_held_work() {
    let device = Device::new().unwrap();
    device.scope(|| {
        device.run_for(TINY).unwrap();
        let x = Tensor::ones([1 << 16]).unwrap();
        let y = x.cumsum(0).unwrap().sqrt().unwrap().cumsum(0).unwrap();
        assert!(!device.run_for(TINY).unwrap(), "several kernels do not fit");
        device.set_memory_limit(Some(8 << 20)).unwrap();
        let first = y.i(0).unwrap();
        drop(y);
        device.run_for(TINY).unwrap();
        device.trim().unwrap();
        assert_eq!(first.item::<f32>().unwrap(), 1.0);
        // Each of these fits, all that were held together would not.
        let mut sums = Vec::new();
        for _ in 0..40 {
            let big = Tensor::ones([1 << 18]).unwrap().cumsum(0).unwrap();
            sums.push(big.i((1 << 18) - 1).unwrap());
            device.run_for(TINY).unwrap();
        }
        for sum in sums {
            assert_eq!(sum.item::<f32>().unwrap(), (1 << 18) as f32);
        }
    });
}

#[test]
fn functions_and_dropped_results_are_spread_too() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let step = function(|x: Tensor| x.matmul(&x)?.softmax(-1)?.cumsum(0));
        let x = constant(numbers(5, 64)).unwrap().reshape([8, 8]).unwrap();
        let expected = step(x.clone()).unwrap().to_vec::<f32>().unwrap();
        device.run_for(TINY).unwrap();
        let mut frames = 0;
        for turn in 0..50 {
            let y = step(x.clone()).unwrap();
            frames += drive(&device, TINY);
            if turn % 10 == 9 {
                assert_eq!(y.to_vec::<f32>().unwrap(), expected);
            }
        }
        assert!(frames > 50, "{frames}");
    });
}

#[test]
fn whatever_is_never_given_time_is_sent_when_it_becomes_much() {
    let device = Device::new().unwrap();
    device.scope(|| {
        device.run_for(TINY).unwrap();
        let mut x = Tensor::zeros([4]).unwrap();
        let first = constant([1f32, 0.0, 0.0, 0.0]).unwrap();
        // A cumulative sum is a kernel of its own.
        device.set_stream_limit(Some(64));
        for _ in 0..20_000 {
            x = x.add(1.0).unwrap().cumsum(0).unwrap().multiply(&first).unwrap();
        }
        assert!(device.stats().kernels > 10_000, "{}", device.stats().kernels);
        assert_eq!(x.to_vec::<f32>().unwrap(), [20_000.0, 0.0, 0.0, 0.0]);
    });
}

#[test]
fn a_profile_and_a_flush_send_everything() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = constant(numbers(2, 4096)).unwrap().reshape([64, 64]).unwrap();
        device.run_for(TINY).unwrap();
        let y = x.matmul(&x).unwrap().cumsum(1).unwrap();
        assert!(!device.run_for(TINY).unwrap());
        let before = device.stats().kernels;
        device.flush().unwrap();
        assert!(device.stats().kernels > before);
        assert!(device.run_for(TINY).unwrap(), "nothing is left");
        let profiler = device.profile().unwrap();
        let _z = y.cumsum(0).unwrap().matmul(&x).unwrap();
        assert!(device.run_for(TINY).unwrap());
        assert!(profiler.finish().unwrap().kernels().len() >= 2);
    });
}

#[test]
fn a_lost_device_is_an_error() {
    let device = Device::new().unwrap();
    let x = device.scope(|| Tensor::ones([64]).unwrap().cumsum(0).unwrap());
    device.run_for(TINY).unwrap();
    device.destroy();
    let error = device.run_for(TINY).unwrap_err().to_string();
    assert!(error.contains("lost"), "{error}");
    assert!(x.to_vec::<f32>().is_err());
}

/// An application draws the last whole step's result in each frame of the next step.
#[test]
fn a_buffer_that_waiting_work_does_not_use_leaves_it_waiting() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = constant(numbers(3, 64 * 64)).unwrap().reshape([64, 64]).unwrap();
        device.run_for(TINY).unwrap();
        let shown = x.matmul(&x).unwrap();
        drive(&device, TINY);
        let next = x.cumsum(0).unwrap().matmul(&x).unwrap().cumsum(1).unwrap();
        assert!(!device.run_for(TINY).unwrap());
        let sent = device.stats().kernels;
        let buffer = shown.buffer().unwrap();
        assert_eq!(device.stats().kernels, sent, "the next step still waits");
        assert!(buffer.size() >= 64 * 64 * 4);
        next.buffer().unwrap();
        assert!(device.stats().kernels > sent, "this buffer is the next step's");
        assert!(device.run_for(TINY).unwrap());
    });
}

/// The application gets its own buffer back only when no waiting work reads it.
#[test]
fn the_applications_buffer_is_read_before_it_is_written_again() {
    let device = Device::new().unwrap();
    let (raw, queue) = device.wgpu();
    let usage =
        wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let descriptor =
        wgpu::BufferDescriptor { label: None, size: 4096, usage, mapped_at_creation: false };
    let mut buffer = raw.create_buffer(&descriptor);
    device.scope(|| {
        device.run_for(TINY).unwrap();
        let mut sums = Vec::new();
        for frame in 0..20 {
            queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[frame as f32; 1024]));
            let x = Tensor::from_buffer(&device, buffer.clone(), [1024], DType::F32).unwrap();
            let sum = x.cumsum(0).unwrap().cumsum(0).unwrap();
            sums.push(sum.i(1023).unwrap());
            drop(sum);
            device.run_for(TINY).unwrap();
            buffer = x.into_buffer().unwrap();
        }
        for (frame, sum) in sums.iter().enumerate() {
            let expected = frame as f32 * (1024.0 * 1025.0 / 2.0);
            assert_eq!(sum.item::<f32>().unwrap(), expected);
        }
    });
}
