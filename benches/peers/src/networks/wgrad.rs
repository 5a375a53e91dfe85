//! wgrad's side: the networks of `keras::applications`, called as a program calls them.

use std::path::Path;
use std::time::Instant;

use wgrad as tf;
use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, CausalLm, GenerateOptions, Gpt2, Gpt2Config,
    resnet,
};
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::keras::{Activation, INFERENCE, Layer, TRAINING};
use wgrad::{Device, Tensor, Trackable};

use super::child::{Counters, Network, Ran};
use super::{Case, NEW_TOKENS, RATE, VOCABULARY, Work, labels, tokens, wave};
use crate::Result;

pub fn open(case: Case, folder: &Path) -> Result<Network> {
    let device = Device::current()?;
    let file = folder.join(format!("{}.safetensors", case.weights()));
    let sgd = Sgd::new(RATE);
    let (parameters, run) = match case.work {
        Work::ResNet { batch, train } => {
            let options = ApplicationOptions::new().arrangement(Arrangement::Torchvision);
            let options = options.classifier_activation(Activation::Linear).weights(file);
            let model = resnet::resnet50(&options)?;
            let shape = [batch, 224, 224, 3];
            let x = Tensor::from_slice(&wave(shape.iter().product()), shape)?;
            let y = Tensor::from_slice(&labels(batch), [batch])?;
            (
                count(&model),
                on_device(move || {
                    if !train {
                        return Ok(model.call(&x, INFERENCE)?.to_vec::<f32>()?);
                    }
                    let tape = tf::GradientTape::new();
                    let logits = model.call(&x, TRAINING)?;
                    let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?;
                    let loss = loss.reduce_mean(())?;
                    sgd.minimize(&loss, tape, &model.trainable_variables())?;
                    Ok(vec![loss.item::<f32>()?])
                }),
            )
        }
        Work::Bert { length, train } => {
            let model = Bert::with_weights(BertConfig::new().dropout(0.0), file)?;
            let ids = Tensor::from_slice(&tokens(length), [1, length])?;
            let target = Tensor::from_slice(&wave(length * 768), [1, length, 768])?;
            (
                count(&model),
                on_device(move || {
                    if !train {
                        let features: Tensor = model.call(&ids, INFERENCE)?;
                        return Ok(features.to_vec::<f32>()?[..768].to_vec());
                    }
                    let tape = tf::GradientTape::new();
                    let features: Tensor = model.call(&ids, TRAINING)?;
                    let loss = features.subtract(&target)?.square()?.reduce_mean(())?;
                    sgd.minimize(&loss, tape, &model.trainable_variables())?;
                    Ok(vec![loss.item::<f32>()?])
                }),
            )
        }
        Work::Prefill { length } => {
            let model = Gpt2::with_weights(gpt2(), file)?;
            let prompt = prompt(length);
            (
                count(&model),
                on_device(move || {
                    let first =
                        model.generate(&prompt, new(1))?.next().ok_or("there is no token")??;
                    Ok(vec![first as f32])
                }),
            )
        }
        Work::Generate { length } => {
            let model = Gpt2::with_weights(gpt2(), file)?;
            let (prompt, count) = (prompt(length), count(&model));
            let run = move || {
                let mut text = model.generate(&prompt, new(NEW_TOKENS + 1))?;
                let mut values = vec![text.next().ok_or("there is no token")?? as f32];
                let start = Instant::now();
                for token in text {
                    values.push(token? as f32);
                }
                Ok(Ran { time: start.elapsed(), values })
            };
            (count, Box::new(run) as Box<dyn FnMut() -> Result<Ran>>)
        }
    };
    let adapter = device.adapter();
    let adapter = [adapter.name.clone(), adapter.driver.clone(), adapter.backend.to_string()];
    let counters = move || {
        let stats = device.stats();
        Counters {
            device_bytes: Some(stats.peak_bytes),
            kernels: Some(stats.kernels),
            pipelines: Some(stats.pipelines),
            planning: Some(stats.planning),
        }
    };
    Ok(Network {
        version: "wgrad".to_owned(),
        adapter: Some(adapter),
        parameters: Some(parameters),
        run,
        counters: Box::new(counters),
    })
}

/// Prints which kernels a run takes its time for.
pub fn profile(case: Case, folder: &Path) -> Result<()> {
    let mut network = open(case, folder)?;
    for _ in 0..3 {
        (network.run)()?;
    }
    let profiler = Device::current()?.profile()?;
    (network.run)()?;
    println!("{}", profiler.finish()?);
    Ok(())
}

/// The number of parameters, with those that are not trained.
fn count(model: &impl Trackable) -> usize {
    model.variables().iter().map(|variable| variable.shape().iter().product::<usize>()).sum()
}

fn on_device(
    mut run: impl FnMut() -> Result<Vec<f32>> + 'static,
) -> Box<dyn FnMut() -> Result<Ran>> {
    Box::new(move || Ran::timed(&mut run))
}

fn prompt(length: usize) -> Vec<u32> {
    tokens(length).into_iter().map(|token| token as u32).collect()
}

fn gpt2() -> Gpt2Config {
    Gpt2Config::new().vocab_size(VOCABULARY)
}

fn new(tokens: usize) -> GenerateOptions {
    GenerateOptions::new().max_new_tokens(tokens)
}
