//! The cases in wgrad.

mod data;
mod layers;
mod ops;

use std::time::Duration;

use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, Layer, MaxPooling2D};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{Conv2dOptions, DType, Device, Padding, Tensor};

use crate::Result;
use crate::cases::{Model, Work};
use crate::child::{Job, Prepared, timed};
use crate::inputs::{self, Batches};

pub fn open(work: Work) -> Result<Job> {
    let device = Device::current()?;
    let info = device.adapter();
    Ok(Job {
        adapter: info.name.clone(),
        driver: info.driver.clone(),
        api: info.backend.to_string(),
        version: "wgrad".to_owned(),
        work: match work {
            Work::Train(model) => Box::new(Training::new(device, model)?),
            Work::Layer(step) => Box::new(layers::Training::new(device, step)?),
            Work::Data(pairs) => Box::new(data::Passes::new(pairs)?),
            Work::Calls { count } => Box::new(Adds::new(device, count, false)?),
            Work::Submissions { count } => Box::new(Adds::new(device, count, true)?),
            Work::Op(op) => Box::new(Computation { device, results: ops::computation(op)? }),
            _ => Box::new(Computation { device, results: computation(work)? }),
        },
    })
}

type Results = Box<dyn Fn() -> Result<Vec<Tensor>>>;

/// A function of inputs that are already on the device.
fn computation(work: Work) -> Result<Results> {
    let uniform = |shape: &[usize], seed| {
        Tensor::from_slice(&inputs::uniform(shape.iter().product(), seed), shape)
    };
    Ok(match work {
        Work::Matmul { n, half } => {
            let dtype = if half { DType::F16 } else { DType::F32 };
            let a = uniform(&[n, n], 1)?.cast(dtype)?;
            let b = uniform(&[n, n], 2)?.cast(dtype)?;
            Box::new(move || Ok(vec![a.matmul(&b)?]))
        }
        Work::BatchedMatmul { b, m, k, n } => {
            let (x, y) = (uniform(&[b, m, k], 1)?, uniform(&[b, k, n], 2)?);
            Box::new(move || Ok(vec![x.matmul(&y)?]))
        }
        Work::Conv2d { convolution: c, gradients } => {
            let x = uniform(&[c.images, c.side, c.side, c.channels], 1)?;
            let w = uniform(&[c.kernel, c.kernel, c.channels, c.filters], 2)?;
            // For strides larger than 1, TensorFlow's SAME adds more zeros after than before.
            let padding = match (c.stride, c.kernel / 2) {
                (1, _) => Padding::Same,
                (_, zeros) => [(zeros, zeros); 2].into(),
            };
            let options = Conv2dOptions::new().padding(padding).strides([c.stride; 2]);
            if !gradients {
                return Ok(Box::new(move || Ok(vec![x.conv2d(&w, options)?])));
            }
            Box::new(move || {
                let tape = tf::GradientTape::new();
                tape.watch(&x)?;
                tape.watch(&w)?;
                let loss = x.conv2d(&w, options)?.square()?.reduce_sum(())?;
                let [dx, dw] = tape.required_gradient(&loss, [&x, &w])?;
                Ok(vec![loss, dx, dw])
            })
        }
        Work::Pointwise { len } => {
            let (a, b, c) = (uniform(&[len], 1)?, uniform(&[len], 2)?, uniform(&[len], 3)?);
            Box::new(move || Ok(vec![(&a * &b + &c).tanh()?.multiply(a.sigmoid()?)?]))
        }
        Work::Sum { rows, columns } => {
            let x = Tensor::from_slice(&inputs::positive(rows * columns, 1), [rows, columns])?;
            Box::new(move || Ok(vec![x.reduce_sum(())?]))
        }
        Work::Softmax { rows, columns } => {
            let x = uniform(&[rows, columns], 1)?;
            Box::new(move || Ok(vec![x.softmax(-1)?]))
        }
        Work::DependentAdds { count } => {
            let x = uniform(&[16], 1)?;
            Box::new(move || Ok(vec![(0..count).fold(x.clone(), |y, _| y + &x)]))
        }
        Work::Op(_)
        | Work::Train(_)
        | Work::Layer(_)
        | Work::Data(_)
        | Work::Calls { .. }
        | Work::Submissions { .. } => {
            return Err("this work is not a plain function of its inputs".into());
        }
    })
}

struct Computation {
    device: Device,
    results: Results,
}

impl Prepared for Computation {
    fn run(&mut self) -> Result<Duration> {
        // The results are held until the device has computed them: values that are not held are not computed.
        let (time, _results) = timed(|| {
            let results = (self.results)()?;
            self.device.synchronize()?;
            Ok(results)
        })?;
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        let mut summary = Vec::new();
        for result in (self.results)()? {
            summary.extend(inputs::summary(&result.cast(DType::F32)?.to_vec::<f32>()?));
        }
        Ok(summary)
    }

    fn device_bytes(&self) -> Option<u64> {
        Some(self.device.stats().peak_bytes)
    }
}

/// Additions whose host time is measured.
struct Adds {
    device: Device,
    x: Tensor,
    count: usize,
    /// Whether the time includes launching them.
    launch: bool,
}

impl Adds {
    fn new(device: Device, count: usize, launch: bool) -> Result<Self> {
        let x = Tensor::from_slice(&inputs::uniform(16, 1), [16])?;
        Ok(Self { device, x, count, launch })
    }

    fn add(&self) -> Tensor {
        (0..self.count).fold(self.x.clone(), |y, _| y + &self.x)
    }
}

impl Prepared for Adds {
    fn run(&mut self) -> Result<Duration> {
        self.device.synchronize()?;
        let (time, _result) = timed(|| {
            let result = self.add();
            if self.launch {
                self.device.flush()?;
            }
            Ok(result)
        })?;
        self.device.synchronize()?;
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        Ok(inputs::summary(&self.add().to_vec::<f32>()?).to_vec())
    }

    fn device_bytes(&self) -> Option<u64> {
        Some(self.device.stats().peak_bytes)
    }
}

struct Training {
    device: Device,
    model: Sequential,
    adam: Adam,
    batches: Batches,
}

impl Training {
    fn new(device: Device, model: Model) -> Result<Self> {
        let conv = |filters| {
            Conv2D::new(filters, [5, 5]).padding(Padding::Same).activation(Activation::Relu)
        };
        let relu = |units| Dense::new(units).activation(Activation::Relu);
        let network = match model {
            Model::Mlp => Sequential::new().add(Flatten::new()).add(relu(100)),
            Model::Cnn => Sequential::new()
                .add(conv(32))
                .add(MaxPooling2D::new([2, 2]))
                .add(conv(64))
                .add(MaxPooling2D::new([2, 2]))
                .add(Flatten::new())
                .add(relu(1024)),
        };
        let network = network.add(Dense::new(10));
        network.build([inputs::BATCH, 28, 28, 1])?;
        for (variable, weight) in network.trainable_variables().iter().zip(inputs::weights(model)) {
            variable.assign(&Tensor::from_slice(&weight.values, weight.shape)?)?;
        }
        let adam = Adam::new(inputs::LEARNING_RATE).epsilon(f64::from(inputs::EPSILON));
        Ok(Self { device, model: network, adam, batches: Batches::new() })
    }

    /// One step, from the batch on the host to the loss on the host.
    fn step(&mut self) -> Result<f32> {
        let (images, labels) = self.batches.next();
        let x = Tensor::from_slice(images, [inputs::BATCH, 28, 28, 1])?;
        let y = Tensor::from_slice(labels, [inputs::BATCH])?;
        let tape = tf::GradientTape::new();
        let logits = self.model.call(&x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?;
        let loss = loss.reduce_mean(())?;
        self.adam.minimize(&loss, tape, &self.model.trainable_variables())?;
        let value = loss.item::<f32>()?;
        self.device.synchronize()?;
        Ok(value)
    }
}

impl Prepared for Training {
    fn run(&mut self) -> Result<Duration> {
        let (time, loss) = timed(|| self.step())?;
        if !loss.is_finite() {
            return Err(format!("the loss became {loss}").into());
        }
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        (0..3).map(|_| Ok(f64::from(self.step()?))).collect()
    }

    fn device_bytes(&self) -> Option<u64> {
        Some(self.device.stats().peak_bytes)
    }
}
