//! Ops of many kinds in Burn.

use burn::module::Param;
use burn::nn::{LayerNormConfig, LstmConfig};
use burn::tensor::module::{attention, interpolate};
use burn::tensor::ops::{AttentionModuleOptions, InterpolateMode, InterpolateOptions};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData, einsum};

use super::{Held, Results, held, uniform};
use crate::Result;
use crate::cases::Op;
use crate::inputs;

pub fn computation(op: Op, device: &Device) -> Result<Results> {
    let autodiff = device.clone().autodiff();
    Ok(match op {
        Op::Einsum { length } => {
            let shape = [8, 8, length, 64];
            let (q, k) = (uniform(shape, 1, device), uniform(shape, 2, device));
            Box::new(move || {
                let y: Tensor<4> = einsum!("bhqd,bhkd->bhqk", &q, &k);
                vec![held(y)]
            })
        }
        Op::Attention { heads, length } => {
            let shape = [1, heads, length, 64];
            let [q, k, v] = [1, 2, 3].map(|seed| uniform(shape, seed, &autodiff));
            Box::new(move || {
                let [q, k, v] = [&q, &k, &v].map(|x| x.clone().require_grad());
                let options = AttentionModuleOptions::default();
                let y = attention(q.clone(), k.clone(), v.clone(), None, None, options);
                with_gradients(y, &[&q, &k, &v])
            })
        }
        Op::Lstm { batch, steps, units, gradients } => {
            let on = if gradients { &autodiff } else { device };
            let mut layer = LstmConfig::new(28, units, false).init(on);
            let kernels = [(28, 2), (units, 3)].map(|(rows, seed)| {
                let values: Vec<f32> =
                    inputs::uniform(rows * 4 * units, seed).iter().map(|x| x * 0.1).collect();
                Tensor::<2>::from_data(TensorData::new(values, [rows, 4 * units]), on)
            });
            // In the order of wgrad's kernel: input, forget, cell, output.
            let forget = layer.forget_gate.as_mut().ok_or("the layer has no forget gate")?;
            let gates =
                [&mut layer.input_gate, forget, &mut layer.cell_gate, &mut layer.output_gate];
            for (gate, controller) in gates.into_iter().enumerate() {
                let part = |kernel: &Tensor<2>| {
                    let rows = kernel.dims()[0];
                    let part = kernel.clone().slice([0..rows, gate * units..(gate + 1) * units]);
                    Param::from_tensor(part)
                };
                controller.input_transform.weight = part(&kernels[0]);
                controller.hidden_transform.weight = part(&kernels[1]);
            }
            let x = uniform([batch, steps, 28], 1, on);
            Box::new(move || {
                let (y, _) = layer.forward(x.clone(), None);
                if !gradients {
                    return vec![held(y)];
                }
                let loss = (y.clone() * y.clone()).sum();
                let grads = loss.backward();
                let forget = layer.forget_gate.iter();
                let gates = [&layer.input_gate].into_iter().chain(forget);
                let gates = gates.chain([&layer.cell_gate, &layer.output_gate]);
                let mut of_kernels = Vec::new();
                let mut of_recurrent = Vec::new();
                for gate in gates {
                    of_kernels.extend(gate.input_transform.weight.val().grad(&grads));
                    of_recurrent.extend(gate.hidden_transform.weight.val().grad(&grads));
                }
                let all = [of_kernels, of_recurrent].map(|parts| held(Tensor::cat(parts, 1)));
                all.into_iter().chain([held(y.inner())]).collect()
            })
        }
        Op::Sort { len } => {
            let x = uniform([len], 1, device);
            Box::new(move || vec![held(x.clone().sort(0))])
        }
        Op::TopK { len, k } => {
            let x = uniform([len], 1, device);
            Box::new(move || {
                let (values, places) = x.clone().topk_with_indices(k, 0);
                vec![held(values), held(places.float())]
            })
        }
        Op::CumSum { rows, columns } => {
            let data = TensorData::new(inputs::positive(rows * columns, 1), [rows, columns]);
            let x = Tensor::<2>::from_data(data, device);
            Box::new(move || vec![held(x.clone().cumsum(1))])
        }
        Op::ScatterAdd { len, rows } => {
            let x: Tensor<1> = uniform([len], 1, device);
            let places = TensorData::new(inputs::indices(len, rows, 2), [len]);
            let places = Tensor::<1, Int>::from_data(places, device);
            let zeros = Tensor::<1>::zeros([rows], device);
            Box::new(move || {
                let add = IndexingUpdateOp::Add;
                vec![held(zeros.clone().scatter(0, places.clone(), x.clone(), add))]
            })
        }
        Op::Resize { count, side, to } => {
            let images = inputs::uniform(count * side * side * 3, 1);
            let images = inputs::transposed(&images, &[count, side, side, 3], &[0, 3, 1, 2]);
            let data = TensorData::new(images, [count, 3, side, side]);
            let x = Tensor::<4>::from_data(data, device);
            Box::new(move || {
                let options = InterpolateOptions::new(InterpolateMode::Bilinear)
                    .with_align_corners(false)
                    .with_output_size([to, to]);
                vec![held(interpolate(x.clone(), options))]
            })
        }
        Op::LayerNormalization { rows, columns } => {
            let mut layer = LayerNormConfig::new(columns).init(&autodiff);
            layer.gamma = Param::from_tensor(uniform([columns], 2, &autodiff));
            layer.beta = Some(Param::from_tensor(uniform([columns], 3, &autodiff)));
            let x = uniform([rows, columns], 1, &autodiff);
            Box::new(move || {
                let x: Tensor<2> = x.clone().require_grad();
                let y = layer.forward(x.clone());
                let grads = (y.clone() * y.clone()).sum().backward();
                let mut all: Vec<Held> = x.grad(&grads).map(held).into_iter().collect();
                all.extend(layer.gamma.val().grad(&grads).map(held));
                let beta = layer.beta.as_ref().and_then(|beta| beta.val().grad(&grads));
                all.extend(beta.map(held));
                all.push(held(y.inner()));
                all
            })
        }
        Op::Cholesky { .. } => return Err("Burn has no Cholesky decomposition".into()),
    })
}

/// The result, and the gradients of the sum of its squares.
fn with_gradients(y: Tensor<4>, sources: &[&Tensor<4>]) -> Vec<Held> {
    let grads = (y.clone() * y.clone()).sum().backward();
    let gradients = sources.iter().filter_map(|source| source.grad(&grads).map(held));
    gradients.chain([held(y.inner())]).collect()
}
