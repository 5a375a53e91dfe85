//! Training steps of a layer in Burn.

use std::time::Duration;

use burn::module::{Module, Param};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{Linear, Lstm, LstmConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor, TensorData};

use super::{bytes_of, text, uniform};
use crate::Result;
use crate::cases::LayerStep;
use crate::child::{Prepared, timed};
use crate::inputs;

/// A layer from sequences to sequences.
pub trait Sequences: Module {
    fn run(&self, x: Tensor<3>) -> Tensor<3>;
}

impl Sequences for Lstm {
    fn run(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward(x, None).0
    }
}

impl Sequences for TransformerEncoder {
    fn run(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward(TransformerEncoderInput::new(x))
    }
}

fn matrix(rows: usize, columns: usize, seed: u64, device: &Device) -> Tensor<2> {
    let values = inputs::kernel(rows * columns, seed);
    Tensor::from_data(TensorData::new(values, [rows, columns]), device)
}

pub fn open(step: LayerStep, device: Device) -> Result<Box<dyn Prepared>> {
    let device = device.autodiff();
    Ok(match step {
        LayerStep::Lstm { features, units, .. } => {
            let mut layer = LstmConfig::new(features, units, false).init(&device);
            let kernels =
                [matrix(features, 4 * units, 3, &device), matrix(units, 4 * units, 4, &device)];
            let forget = layer.forget_gate.as_mut().ok_or("the layer has no forget gate")?;
            let gates =
                [&mut layer.input_gate, forget, &mut layer.cell_gate, &mut layer.output_gate];
            for (gate, controller) in gates.into_iter().enumerate() {
                let part = |kernel: &Tensor<2>| {
                    let rows = kernel.dims()[0];
                    Param::from_tensor(
                        kernel.clone().slice([0..rows, gate * units..(gate + 1) * units]),
                    )
                };
                controller.input_transform.weight = part(&kernels[0]);
                controller.hidden_transform.weight = part(&kernels[1]);
            }
            Box::new(Training::new(layer, step, device))
        }
        LayerStep::Transformer { width, heads, hidden, .. } => {
            let config = TransformerEncoderConfig::new(width, hidden, heads, 1).with_dropout(0.0);
            let mut encoder = config.init(&device);
            let layer = encoder.layers.first_mut().ok_or("the encoder has no layer")?;
            let set = |linear: &mut Linear, seed: u64| {
                let [rows, columns] = linear.weight.val().dims();
                linear.weight = Param::from_tensor(matrix(rows, columns, seed, &device));
                linear.bias = Some(super::zeros(columns, &device));
            };
            set(&mut layer.mha.query, 3);
            set(&mut layer.mha.key, 4);
            set(&mut layer.mha.value, 5);
            set(&mut layer.mha.output, 6);
            set(&mut layer.pwff.linear_inner, 7);
            set(&mut layer.pwff.linear_outer, 8);
            Box::new(Training::new(encoder, step, device))
        }
    })
}

struct Training<M> {
    device: Device,
    /// Always `Some` between two steps: a step consumes the model and returns the next.
    model: Option<M>,
    adam: ModuleOptimizer,
    x: Tensor<3>,
    target: Tensor<3>,
}

impl<M: Sequences> Training<M> {
    fn new(model: M, step: LayerStep, device: Device) -> Self {
        let (x, target) = step.shapes();
        Self {
            model: Some(model),
            adam: AdamConfig::new().with_epsilon(inputs::EPSILON).init(),
            x: uniform(x, 1, &device),
            target: uniform(target, 2, &device),
            device,
        }
    }

    fn step(&mut self) -> Result<f32> {
        let model = self.model.take().ok_or("a step failed before")?;
        let error = model.run(self.x.clone()) - self.target.clone();
        let loss = (error.clone() * error).mean();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        self.model = Some(self.adam.step(f64::from(inputs::LEARNING_RATE), model, grads));
        let value = loss.into_scalar::<f32>();
        self.device.sync().map_err(text)?;
        Ok(value)
    }
}

impl<M: Sequences> Prepared for Training<M> {
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
