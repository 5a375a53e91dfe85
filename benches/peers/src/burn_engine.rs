//! The cases in Burn: its wgpu backend with WGSL, fusion and autotune; the results of autotuning are stored on disk.
//!
//! Burn's images are `NCHW` and its filters `OIHW`, so the inputs are permuted on the host; the work is the same.

mod data;
mod layers;
mod ops;

use std::time::Duration;

use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::{relu, sigmoid, softmax};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::wgpu::WgpuBackend;
use burn::tensor::{DType, Device, DeviceKind, Int, Tensor, TensorData};
use wgrad::interop::wgpu;

use crate::Result;
use crate::cases::{Convolution, Model, Work};
use crate::child::{Job, Prepared, timed};
use crate::inputs::{self, BATCH, Batches, PIXELS, Weight};

/// The release in `Cargo.toml`.
pub const VERSION: &str =
    if cfg!(feature = "spirv") { "Burn 0.22.1 (SPIR-V)" } else { "Burn 0.22.1" };

/// Opens the device, and returns its adapter, driver and interface. `adapter` is the name and the interface of the adapter that
/// wgrad used.
pub fn device(adapter: Option<(String, String)>) -> Result<(Device, [String; 3])> {
    let (kind, api) = match &adapter {
        Some((name, api)) => select(name, api)?,
        None => (DeviceKind::DefaultDevice, WgpuBackend::Auto),
    };
    let (device, setup) =
        Device::wgpu_options().device_kind(kind).graphics_api(api).init_with_setup()?;
    let info = setup.adapter.get_info();
    let driver = format!("{} {}", info.driver, info.driver_info).trim().to_owned();
    Ok((device, [info.name, driver, info.backend.to_string()]))
}

/// `adapter` is the name and the interface of the adapter that wgrad used.
pub fn open(work: Work, adapter: Option<(String, String)>) -> Result<Job> {
    let (device, [adapter, driver, api]) = device(adapter)?;
    Ok(Job {
        adapter,
        driver,
        api,
        version: VERSION.to_owned(),
        work: match work {
            Work::Op(op) => {
                let results = ops::computation(op, &device)?;
                Box::new(Computation { device, results })
            }
            Work::Train(Model::Mlp) => Box::new(Training::new(device, Mlp::new)),
            Work::Train(Model::Cnn) => Box::new(Training::new(device, Cnn::new)),
            Work::Layer(step) => layers::open(step, device)?,
            Work::Data(pairs) => Box::new(data::Passes::new(pairs, device)),
            Work::Calls { count } => Box::new(Calls::new(device, count)),
            _ => Box::new(Computation { results: computation(work, &device)?, device }),
        },
    })
}

/// Burn selects an adapter by its kind and its index among those of that kind.
fn select(name: &str, api: &str) -> Result<(DeviceKind, WgpuBackend)> {
    let (backends, api) = match api {
        "vulkan" => (wgpu::Backends::VULKAN, WgpuBackend::Vulkan),
        "metal" => (wgpu::Backends::METAL, WgpuBackend::Metal),
        "dx12" => (wgpu::Backends::DX12, WgpuBackend::Dx12),
        other => return Err(format!("Burn is not measured on `{other}`").into()),
    };
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = pollster::block_on(instance.enumerate_adapters(backends));
    let infos: Vec<wgpu::AdapterInfo> = adapters.iter().map(wgpu::Adapter::get_info).collect();
    let at = infos
        .iter()
        .position(|info| info.name == name)
        .ok_or_else(|| format!("Burn's wgpu does not see the adapter `{name}`"))?;
    let kind = infos[at].device_type;
    let place = infos[..at].iter().filter(|info| info.device_type == kind).count();
    let kind = match kind {
        wgpu::DeviceType::DiscreteGpu => DeviceKind::DiscreteGpu(place),
        wgpu::DeviceType::IntegratedGpu => DeviceKind::IntegratedGpu(place),
        wgpu::DeviceType::VirtualGpu => DeviceKind::VirtualGpu(place),
        wgpu::DeviceType::Cpu if place == 0 => DeviceKind::Cpu,
        _ => return Err(format!("Burn has no name for the adapter `{name}`").into()),
    };
    Ok((kind, api))
}

/// A result that is held until the device has computed it, and can be read.
type Held = Box<dyn FnOnce() -> Result<Vec<f32>>>;

fn held<const D: usize>(tensor: Tensor<D>) -> Held {
    Box::new(move || Ok(tensor.try_into_data_as::<f32>()?.try_into_vec::<f32>().map_err(text)?))
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

type Results = Box<dyn Fn() -> Vec<Held>>;

fn uniform<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let values = inputs::uniform(shape.iter().product(), seed);
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn computation(work: Work, device: &Device) -> Result<Results> {
    Ok(match work {
        Work::Matmul { n, half } => {
            let (mut a, mut b) = (uniform([n, n], 1, device), uniform([n, n], 2, device));
            if half {
                (a, b) = (a.cast(DType::F16), b.cast(DType::F16));
            }
            Box::new(move || vec![held(a.clone().matmul(b.clone()))])
        }
        Work::BatchedMatmul { b, m, k, n } => {
            let (x, y) = (uniform([b, m, k], 1, device), uniform([b, k, n], 2, device));
            Box::new(move || vec![held(x.clone().matmul(y.clone()))])
        }
        Work::Conv2d { convolution, gradients } => {
            let Convolution { images: count, side, channels, kernel: size, filters, stride } =
                convolution;
            let device = if gradients { device.clone().autodiff() } else { device.clone() };
            let images = inputs::uniform(count * side * side * channels, 1);
            let images = inputs::transposed(&images, &[count, side, side, channels], &[0, 3, 1, 2]);
            let kernel = inputs::uniform(size * size * channels * filters, 2);
            let kernel =
                inputs::transposed(&kernel, &[size, size, channels, filters], &[3, 2, 0, 1]);
            let images = TensorData::new(images, [count, channels, side, side]);
            let kernel = TensorData::new(kernel, [filters, channels, size, size]);
            let x = Tensor::<4>::from_data(images, &device);
            let w = Tensor::<4>::from_data(kernel, &device);
            let options = ConvOptions::new([stride; 2], [size / 2; 2], [1, 1], 1);
            if !gradients {
                return Ok(Box::new(move || {
                    vec![held(conv2d(x.clone(), w.clone(), None, options.clone()))]
                }));
            }
            Box::new(move || {
                let (x, w) = (x.clone().require_grad(), w.clone().require_grad());
                let y = conv2d(x.clone(), w.clone(), None, options.clone());
                let loss = (y.clone() * y).sum();
                let grads = loss.backward();
                let gradient = |t: &Tensor<4>| t.grad(&grads).map(held);
                [Some(held(loss.inner())), gradient(&x), gradient(&w)]
                    .into_iter()
                    .flatten()
                    .collect()
            })
        }
        Work::Pointwise { len } => {
            let vector = |seed| uniform([len], seed, device);
            let (a, b, c) = (vector(1), vector(2), vector(3));
            Box::new(move || {
                let sum = a.clone() * b.clone() + c.clone();
                vec![held(sum.tanh() * sigmoid(a.clone()))]
            })
        }
        Work::Sum { rows, columns } => {
            let data = TensorData::new(inputs::positive(rows * columns, 1), [rows, columns]);
            let x = Tensor::<2>::from_data(data, device);
            Box::new(move || vec![held(x.clone().sum())])
        }
        Work::Softmax { rows, columns } => {
            let x = uniform([rows, columns], 1, device);
            Box::new(move || vec![held(softmax(x.clone(), 1))])
        }
        Work::DependentAdds { count } => {
            let x = uniform([16], 1, device);
            Box::new(move || vec![held((0..count).fold(x.clone(), |y, _| y + x.clone()))])
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

pub fn bytes_of(device: &Device) -> Option<u64> {
    device.memory_pool_usage().map(|usage| usage.bytes_reserved)
}

struct Computation {
    device: Device,
    results: Results,
}

impl Prepared for Computation {
    fn run(&mut self) -> Result<Duration> {
        let (time, _results) = timed(|| {
            let results = (self.results)();
            self.device.sync().map_err(text)?;
            Ok(results)
        })?;
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        let mut summary = Vec::new();
        for read in (self.results)() {
            summary.extend(inputs::summary(&read()?));
        }
        Ok(summary)
    }

    fn device_bytes(&self) -> Option<u64> {
        bytes_of(&self.device)
    }
}

/// Additions whose host time is measured.
struct Calls {
    device: Device,
    x: Tensor<1>,
    count: usize,
}

impl Calls {
    fn new(device: Device, count: usize) -> Self {
        Self { x: uniform([16], 1, &device), device, count }
    }

    fn add(&self) -> Tensor<1> {
        (0..self.count).fold(self.x.clone(), |y, _| y + self.x.clone())
    }
}

impl Prepared for Calls {
    fn run(&mut self) -> Result<Duration> {
        self.device.sync().map_err(text)?;
        let (time, _result) = timed(|| Ok(self.add()))?;
        self.device.sync().map_err(text)?;
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        Ok(inputs::summary(&held(self.add())()?).to_vec())
    }

    fn device_bytes(&self) -> Option<u64> {
        bytes_of(&self.device)
    }
}

/// A network that maps images to logits.
trait Network: Module {
    fn forward(&self, images: Tensor<4>) -> Tensor<2>;
}

#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        let weights = inputs::weights(Model::Mlp);
        Self {
            hidden: linear(&weights[0], weights[0].values.clone(), device),
            output: linear(&weights[2], weights[2].values.clone(), device),
        }
    }
}

impl Network for Mlp {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = images.reshape([BATCH, PIXELS]);
        self.output.forward(relu(self.hidden.forward(x)))
    }
}

#[derive(Module, Debug)]
struct Cnn {
    convolutions: Vec<Conv2d>,
    pool: MaxPool2d,
    hidden: Linear,
    output: Linear,
}

impl Cnn {
    fn new(device: &Device) -> Self {
        let weights = inputs::weights(Model::Cnn);
        let convolution = |weight: &Weight| {
            let [.., channels, filters] = weight.shape[..] else { unreachable!() };
            let mut layer = Conv2dConfig::new([channels, filters], [5, 5])
                .with_padding(PaddingConfig2d::Same)
                .init(device);
            let values = inputs::transposed(&weight.values, &weight.shape, &[3, 2, 0, 1]);
            let data = TensorData::new(values, [filters, channels, 5, 5]);
            layer.weight = Param::from_data(data, device);
            layer.bias = Some(zeros(filters, device));
            layer
        };
        // Burn flattens with the channels first.
        let rows = weights[4].shape[1];
        let flat = inputs::transposed(&weights[4].values, &[7, 7, 64, rows], &[2, 0, 1, 3]);
        Self {
            convolutions: vec![convolution(&weights[0]), convolution(&weights[2])],
            pool: MaxPool2dConfig::new([2, 2]).init(),
            hidden: linear(&weights[4], flat, device),
            output: linear(&weights[6], weights[6].values.clone(), device),
        }
    }
}

impl Network for Cnn {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = images;
        for convolution in &self.convolutions {
            x = self.pool.forward(relu(convolution.forward(x)));
        }
        self.output.forward(relu(self.hidden.forward(x.flatten(1, 3))))
    }
}

fn zeros(len: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_data(TensorData::new(vec![0f32; len], [len]), device)
}

/// A dense layer with a kernel of the shape of `weight`.
fn linear(weight: &Weight, values: Vec<f32>, device: &Device) -> Linear {
    let (inputs, outputs) = (weight.shape[0], weight.shape[1]);
    let mut layer = LinearConfig::new(inputs, outputs).init(device);
    layer.weight = Param::from_data(TensorData::new(values, [inputs, outputs]), device);
    layer.bias = Some(zeros(outputs, device));
    layer
}

struct Training<M> {
    device: Device,
    /// Always `Some` between two steps: a step consumes the model and returns the next.
    model: Option<M>,
    adam: ModuleOptimizer,
    loss: CrossEntropyLoss,
    batches: Batches,
}

impl<M: Network> Training<M> {
    fn new(device: Device, model: fn(&Device) -> M) -> Self {
        let device = device.autodiff();
        Self {
            model: Some(model(&device)),
            adam: AdamConfig::new().with_epsilon(inputs::EPSILON).init(),
            loss: CrossEntropyLossConfig::new().init(&device),
            batches: Batches::new(),
            device,
        }
    }

    /// One step, from the batch on the host to the loss on the host.
    fn step(&mut self) -> Result<f32> {
        let model = self.model.take().ok_or("a step failed before")?;
        let (images, labels) = self.batches.next();
        let images = TensorData::new(images.to_vec(), [BATCH, 1, 28, 28]);
        let labels = TensorData::new(labels.to_vec(), [BATCH]);
        let x = Tensor::<4>::from_data(images, &self.device);
        let y = Tensor::<1, Int>::from_data(labels, &self.device);
        let loss = self.loss.forward(model.forward(x), y);
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        self.model = Some(self.adam.step(f64::from(inputs::LEARNING_RATE), model, grads));
        let value = loss.into_scalar::<f32>();
        self.device.sync().map_err(text)?;
        Ok(value)
    }
}

impl<M: Network> Prepared for Training<M> {
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
        bytes_of(&self.device)
    }
}
