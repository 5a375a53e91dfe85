//! candle's side, on the processor: ResNet50 and BERT of `candle-transformers`; GPT-2, which that has not, of `candle-nn`.

use std::path::Path;
use std::time::Instant;

use candle_core::{D, DType, Device, IndexOp, Tensor};
use candle_nn::{Activation, Embedding, LayerNorm, Linear, Module, VarBuilder};
use candle_transformers::models::{bert, resnet};

use super::child::{Counters, Network, Ran};
use super::{Case, NEW_TOKENS, VOCABULARY, Work, tokens, wave};
use crate::Result;

const HEADS: usize = 12;

pub fn open(case: Case, folder: &Path) -> Result<Network> {
    let device = Device::Cpu;
    let file = folder.join(format!("{}.safetensors", case.weights()));
    let bytes = std::fs::read(file)?;
    let weights = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &device)?;
    type Run = Box<dyn FnMut() -> Result<Ran>>;
    let ids = |length: usize| -> Result<Tensor> {
        let ids = tokens(length).into_iter().map(|token| token as u32).collect();
        Ok(Tensor::from_vec(ids, (1, length), &device)?)
    };
    let run: Run = match case.work {
        Work::ResNet { train: true, .. } | Work::Bert { train: true, .. } => {
            return Err("candle's networks are for inference".into());
        }
        Work::ResNet { batch, .. } => {
            let model = resnet::resnet50(1000, weights)?;
            let shape = (batch, 224, 224, 3);
            let x = Tensor::from_vec(wave(batch * 224 * 224 * 3), shape, &device)?;
            let x = x.permute((0, 3, 1, 2))?.contiguous()?;
            Box::new(move || Ran::timed(|| Ok(model.forward(&x)?.flatten_all()?.to_vec1()?)))
        }
        Work::Bert { length, .. } => {
            let config = bert::Config { hidden_dropout_prob: 0.0, ..bert::Config::default() };
            let model = bert::BertModel::load(weights, &config)?;
            let ids = ids(length)?;
            let kinds = ids.zeros_like()?;
            Box::new(move || {
                Ran::timed(|| Ok(model.forward(&ids, &kinds, None)?.i((0, 0))?.to_vec1()?))
            })
        }
        Work::Prefill { length } => {
            let (model, ids) = (Gpt2::load(weights)?, ids(length)?);
            Box::new(move || Ran::timed(|| Ok(vec![model.next(&ids, &mut Vec::new())? as f32])))
        }
        Work::Generate { length } => {
            let (model, ids) = (Gpt2::load(weights)?, ids(length)?);
            Box::new(move || {
                let mut past = Vec::new();
                let mut words = vec![model.next(&ids, &mut past)?];
                let start = Instant::now();
                for _ in 0..NEW_TOKENS {
                    let last = Tensor::new(&[[words[words.len() - 1]]], &Device::Cpu)?;
                    words.push(model.next(&last, &mut past)?);
                }
                let values = words.into_iter().map(|word| word as f32).collect();
                Ok(Ran { time: start.elapsed(), values })
            })
        }
    };
    Ok(Network {
        version: "candle 0.11.1 on the processor".to_owned(),
        adapter: None,
        parameters: None,
        run,
        counters: Box::new(Counters::default),
    })
}

struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

struct Block {
    norms: [LayerNorm; 2],
    attention: [Linear; 2],
    inner: Linear,
    outer: Linear,
}

/// The keys and values of a block.
type Past = [Tensor; 2];

impl Gpt2 {
    fn load(weights: VarBuilder) -> Result<Self> {
        let weights = weights.pp("transformer");
        let norm = |at: VarBuilder| candle_nn::layer_norm(768, 1e-5, at);
        // GPT-2's kernels have the inputs first.
        let dense = |inputs: usize, outputs: usize, at: VarBuilder| -> Result<Linear> {
            let kernel = at.get((inputs, outputs), "weight")?.t()?.contiguous()?;
            Ok(Linear::new(kernel, Some(at.get(outputs, "bias")?)))
        };
        let block = |at: VarBuilder| -> Result<Block> {
            Ok(Block {
                norms: [norm(at.pp("ln_1"))?, norm(at.pp("ln_2"))?],
                attention: [
                    dense(768, 3 * 768, at.pp("attn.c_attn"))?,
                    dense(768, 768, at.pp("attn.c_proj"))?,
                ],
                inner: dense(768, 3072, at.pp("mlp.c_fc"))?,
                outer: dense(3072, 768, at.pp("mlp.c_proj"))?,
            })
        };
        Ok(Gpt2 {
            wte: candle_nn::embedding(VOCABULARY, 768, weights.pp("wte"))?,
            wpe: candle_nn::embedding(1024, 768, weights.pp("wpe"))?,
            blocks: (0..12).map(|at| block(weights.pp("h").pp(at))).collect::<Result<_>>()?,
            norm: norm(weights.pp("ln_f"))?,
        })
    }

    /// The most probable token after `ids`, which follow those of `past`.
    fn next(&self, ids: &Tensor, past: &mut Vec<Past>) -> Result<u32> {
        let steps = ids.dim(1)?;
        let before = past.first().map_or(Ok(0), |[keys, _]| keys.dim(2))?;
        let places = Tensor::arange(before as u32, (before + steps) as u32, ids.device())?;
        let mut x = self.wte.forward(ids)?.broadcast_add(&self.wpe.forward(&places)?)?;
        for (at, block) in self.blocks.iter().enumerate() {
            let y = block.attend(&block.norms[0].forward(&x)?, at, past)?;
            x = (x + y)?;
            let y = block.inner.forward(&block.norms[1].forward(&x)?)?;
            let y = Activation::NewGelu.forward(&y)?;
            x = (x + block.outer.forward(&y)?)?;
        }
        let last = self.norm.forward(&x.i((.., steps - 1..))?.contiguous()?)?;
        let logits = last.squeeze(1)?.matmul(&self.wte.embeddings().t()?)?;
        Ok(logits.argmax(D::Minus1)?.i(0)?.to_scalar()?)
    }
}

impl Block {
    fn attend(&self, x: &Tensor, at: usize, past: &mut Vec<Past>) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        let all = self.attention[0].forward(x)?;
        let part = |at: usize| {
            let part = all.narrow(2, at * width, width)?;
            part.reshape((batch, steps, HEADS, width / HEADS))?.transpose(1, 2)?.contiguous()
        };
        let (q, mut k, mut v) = (part(0)?, part(1)?, part(2)?);
        match past.get_mut(at) {
            Some(past) => {
                k = Tensor::cat(&[&past[0], &k], 2)?;
                v = Tensor::cat(&[&past[1], &v], 2)?;
                *past = [k.clone(), v.clone()];
            }
            None => past.push([k.clone(), v.clone()]),
        }
        let scale = 1.0 / ((width / HEADS) as f64).sqrt();
        let mut scores = (q.matmul(&k.t()?)? * scale)?;
        if steps > 1 {
            let hidden = (0..steps).flat_map(|row| {
                (0..steps).map(move |column| if column > row { f32::NEG_INFINITY } else { 0.0 })
            });
            let hidden = Tensor::from_iter(hidden, x.device())?.reshape((steps, steps))?;
            scores = scores.broadcast_add(&hidden)?;
        }
        let y = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&v)?;
        Ok(self.attention[1].forward(&y.transpose(1, 2)?.reshape((batch, steps, width))?)?)
    }
}
