//! Burn's side: ResNet50, GPT-2 and BERT of its own modules. The weights are random.

use std::time::Instant;

use burn::module::Module;
use burn::nn::activation::ActivationConfig;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig, MaxPool2d, MaxPool2dConfig};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput, TransformerEncoderLayer,
};
use burn::nn::{
    BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear,
    LinearConfig, PaddingConfig2d,
};
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::child::{Counters, Network, Ran};
use super::{Case, NEW_TOKENS, RATE, VOCABULARY, Work, labels, tokens, wave};
use crate::Result;
use crate::burn_engine::{VERSION, bytes_of, device};

const WIDTH: usize = 768;

pub fn open(case: Case) -> Result<Network> {
    let (plain, names) = device(None)?;
    let device = if case.trains() { plain.clone().autodiff() } else { plain.clone() };
    let ids = |length: usize| {
        Tensor::<2, Int>::from_data(TensorData::new(tokens(length), [1, length]), &device)
    };
    type Run = Box<dyn FnMut() -> Result<Ran>>;
    let (parameters, run): (usize, Run) = match case.work {
        Work::ResNet { batch, train } => {
            let model = ResNet::new(&device);
            let pixels = TensorData::new(wave(batch * 224 * 224 * 3), [batch, 224, 224, 3]);
            let x = Tensor::<4>::from_data(pixels, &device).permute([0, 3, 1, 2]);
            if !train {
                let count = model.num_params();
                (count, Box::new(move || Ran::timed(|| read(model.forward(x.clone())))))
            } else {
                let y = TensorData::new(labels(batch), [batch]);
                let y = Tensor::<1, Int>::from_data(y, &device);
                let loss = CrossEntropyLossConfig::new().init(&device);
                let loss = move |model: &ResNet| loss.forward(model.forward(x.clone()), y.clone());
                (model.num_params(), training(model, loss))
            }
        }
        Work::Bert { length, train } => {
            let (model, ids) = (Bert::new(&device), ids(length));
            if !train {
                let count = model.num_params();
                (count, Box::new(move || Ran::timed(|| read(model.forward(ids.clone())))))
            } else {
                let target = TensorData::new(wave(length * WIDTH), [1, length, WIDTH]);
                let target = Tensor::<3>::from_data(target, &device);
                let loss = move |model: &Bert| {
                    (model.forward(ids.clone()) - target.clone()).square().mean()
                };
                (model.num_params(), training(model, loss))
            }
        }
        Work::Prefill { length } => {
            let (model, ids) = (Gpt2::new(&device), ids(length));
            let count = model.num_params();
            let run = move || Ok(vec![model.next(ids.clone(), &mut Vec::new())? as f32]);
            (count, Box::new(move || Ran::timed(&run)))
        }
        Work::Generate { length } => {
            let (model, ids) = (Gpt2::new(&device), ids(length));
            let device = device.clone();
            let count = model.num_params();
            let run = move || {
                let mut past = Vec::new();
                let mut words = vec![model.next(ids.clone(), &mut past)?];
                let start = Instant::now();
                for _ in 0..NEW_TOKENS {
                    let last = TensorData::new(vec![words[words.len() - 1]], [1, 1]);
                    words.push(model.next(Tensor::from_data(last, &device), &mut past)?);
                }
                let values = words.into_iter().map(|word| word as f32).collect();
                Ok(Ran { time: start.elapsed(), values })
            };
            (count, Box::new(run))
        }
    };
    let counters = move || Counters { device_bytes: bytes_of(&plain), ..Counters::default() };
    Ok(Network {
        version: VERSION.to_owned(),
        adapter: Some(names),
        parameters: Some(parameters),
        run,
        counters: Box::new(counters),
    })
}

fn read<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let data = tensor.try_into_data_as::<f32>()?;
    Ok(data.try_into_vec::<f32>().map_err(|error| format!("{error:?}"))?)
}

/// Steps of SGD.
fn training<M: Module + 'static>(
    model: M,
    loss: impl Fn(&M) -> Tensor<1> + 'static,
) -> Box<dyn FnMut() -> Result<Ran>> {
    let mut sgd: ModuleOptimizer = SgdConfig::new().init();
    let mut model = Some(model);
    Box::new(move || {
        Ran::timed(|| {
            let before = model.take().ok_or("a step failed before")?;
            let loss = loss(&before);
            let grads = GradientsParams::from_grads(loss.backward(), &before);
            model = Some(sgd.step(f64::from(RATE), before, grads));
            Ok(vec![loss.into_scalar::<f32>()])
        })
    })
}

#[derive(Module, Debug)]
struct ResNet {
    conv: Normalized,
    pool: MaxPool2d,
    blocks: Vec<Bottleneck>,
    mean: AdaptiveAvgPool2d,
    output: Linear,
}

/// A convolution without bias, and batch normalization.
#[derive(Module, Debug)]
struct Normalized {
    conv: Conv2d,
    norm: BatchNorm,
}

#[derive(Module, Debug)]
struct Bottleneck {
    convs: Vec<Normalized>,
    shortcut: Option<Normalized>,
}

impl Normalized {
    fn new(channels: [usize; 2], side: usize, stride: usize, device: &Device) -> Self {
        let padding = side / 2;
        let conv = Conv2dConfig::new(channels, [side; 2])
            .with_stride([stride; 2])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .with_bias(false);
        Self { conv: conv.init(device), norm: BatchNormConfig::new(channels[1]).init(device) }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x))
    }
}

impl ResNet {
    fn new(device: &Device) -> Self {
        let mut blocks = Vec::new();
        let mut channels = 64;
        for (stack, count) in [3, 4, 6, 3].into_iter().enumerate() {
            for block in 0..count {
                let stride = if stack > 0 && block == 0 { 2 } else { 1 };
                let inner = 64 << stack;
                let conv = |channels, side, stride| Normalized::new(channels, side, stride, device);
                blocks.push(Bottleneck {
                    convs: vec![
                        conv([channels, inner], 1, 1),
                        conv([inner, inner], 3, stride),
                        conv([inner, 4 * inner], 1, 1),
                    ],
                    shortcut: (block == 0).then(|| conv([channels, 4 * inner], 1, stride)),
                });
                channels = 4 * inner;
            }
        }
        let pool = MaxPool2dConfig::new([3, 3]).with_strides([2, 2]);
        Self {
            conv: Normalized::new([3, 64], 7, 2, device),
            pool: pool.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(),
            blocks,
            mean: AdaptiveAvgPool2dConfig::new([1, 1]).init(),
            output: LinearConfig::new(2048, 1000).init(device),
        }
    }

    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = self.pool.forward(relu(self.conv.forward(images)));
        for block in &self.blocks {
            let [first, second, third] = &block.convs[..] else { unreachable!() };
            let y = relu(second.forward(relu(first.forward(x.clone()))));
            let shortcut = match &block.shortcut {
                Some(shortcut) => shortcut.forward(x),
                None => x,
            };
            x = relu(third.forward(y) + shortcut);
        }
        self.output.forward(self.mean.forward(x).flatten(1, 3))
    }
}

fn encoder(norm_first: bool, activation: ActivationConfig, device: &Device) -> TransformerEncoder {
    TransformerEncoderConfig::new(WIDTH, 4 * WIDTH, 12, 12)
        .with_dropout(0.0)
        .with_norm_first(norm_first)
        .with_activation(activation)
        .init(device)
}

/// The sum of the embeddings of words and places.
fn embedded(word: &Embedding, place: &Embedding, ids: Tensor<2, Int>, before: usize) -> Tensor<3> {
    let steps = ids.dims()[1];
    let places = Tensor::<1, Int>::arange(before as i64..(before + steps) as i64, &ids.device());
    word.forward(ids) + place.forward(places.unsqueeze())
}

#[derive(Module, Debug)]
struct Bert {
    word: Embedding,
    place: Embedding,
    kind: Embedding,
    norm: LayerNorm,
    encoder: TransformerEncoder,
    /// It counts as a parameter; its result is not read, as in the other libraries.
    pooler: Linear,
}

impl Bert {
    fn new(device: &Device) -> Self {
        let table = |rows| EmbeddingConfig::new(rows, WIDTH).init(device);
        Self {
            word: table(30_522),
            place: table(512),
            kind: table(2),
            norm: LayerNormConfig::new(WIDTH).with_epsilon(1e-12).init(device),
            encoder: encoder(false, ActivationConfig::Gelu, device),
            pooler: LinearConfig::new(WIDTH, WIDTH).init(device),
        }
    }

    fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        let kinds = self.kind.forward(ids.zeros_like());
        let x = self.norm.forward(embedded(&self.word, &self.place, ids, 0) + kinds);
        self.encoder.forward(TransformerEncoderInput::new(x))
    }
}

#[derive(Module, Debug)]
struct Gpt2 {
    word: Embedding,
    place: Embedding,
    encoder: TransformerEncoder,
    norm: LayerNorm,
}

/// The keys and values of a layer.
type Past = [Tensor<4>; 2];

impl Gpt2 {
    fn new(device: &Device) -> Self {
        let table = |rows| EmbeddingConfig::new(rows, WIDTH).init(device);
        Self {
            word: table(VOCABULARY),
            place: table(1024),
            encoder: encoder(true, ActivationConfig::GeluApproximate, device),
            norm: LayerNormConfig::new(WIDTH).init(device),
        }
    }

    /// The most probable token after `ids`, which follow those of `past`. Burn's own cache would compute the attention of all
    /// earlier tokens again.
    fn next(&self, ids: Tensor<2, Int>, past: &mut Vec<Past>) -> Result<i32> {
        let before = past.first().map_or(0, |[keys, _]| keys.dims()[2]);
        let mut x = embedded(&self.word, &self.place, ids, before);
        for (at, layer) in self.encoder.layers.iter().enumerate() {
            let y = attend(layer, layer.norm_2.forward(x.clone()), at, past);
            x = x + y;
            let y = layer.pwff.forward(layer.norm_1.forward(x.clone()));
            x = x + y;
        }
        let steps = x.dims()[1];
        let last = self.norm.forward(x.slice([0..1, steps - 1..steps, 0..WIDTH]));
        let table = self.word.weight.val().transpose().unsqueeze::<3>();
        let token = last.matmul(table).argmax(2).into_data().convert::<i32>();
        let token = token.try_to_vec::<i32>().map_err(|error| format!("{error:?}"))?;
        token.first().copied().ok_or_else(|| "there is no token".into())
    }
}

fn attend(
    layer: &TransformerEncoderLayer,
    x: Tensor<3>,
    at: usize,
    past: &mut Vec<Past>,
) -> Tensor<3> {
    let [batch, steps, width] = x.dims();
    let heads = layer.mha.n_heads;
    let part = |linear: &Linear| {
        linear.forward(x.clone()).reshape([batch, steps, heads, width / heads]).swap_dims(1, 2)
    };
    let (q, mut k, mut v) = (part(&layer.mha.query), part(&layer.mha.key), part(&layer.mha.value));
    match past.get_mut(at) {
        Some(past) => {
            k = Tensor::cat(vec![past[0].clone(), k], 2);
            v = Tensor::cat(vec![past[1].clone(), v], 2);
            *past = [k.clone(), v.clone()];
        }
        None => past.push([k.clone(), v.clone()]),
    }
    let mut scores = q.matmul(k.transpose()).div_scalar(((width / heads) as f32).sqrt());
    if steps > 1 {
        let hidden = Tensor::<2, Bool>::tril_mask([steps, steps], 0, &scores.device());
        scores = scores.mask_fill(hidden.unsqueeze::<4>(), f32::NEG_INFINITY);
    }
    let y = softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([batch, steps, width]);
    layer.mha.output.forward(y)
}
