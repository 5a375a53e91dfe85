//! Three networks that classify reviews as kind or unkind, with `compile`, `fit` and `evaluate`.
//!
//! `cargo example text_classification` runs it. The reviews are generated, with 5 to 40 words. In some of them "not" inverts a
//! word's meaning, which depends on the order of words: the mean of the words' vectors cannot represent it, a GRU and a
//! transformer can.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::collections::HashMap;
use std::process::ExitCode;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::keras::layers::{
    Dense, Dropout, Embedding, GlobalAveragePooling1D, Gru, LayerNormalization, MultiHeadAttention,
};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, Trainer};
use wgrad::prelude::*;

const LENGTH: usize = 40;
const BATCH: usize = 32;
const TEST: usize = 500;

const KIND: [&str; 8] =
    ["good", "great", "lovely", "funny", "moving", "clever", "warm", "brilliant"];
const UNKIND: [&str; 8] = ["bad", "dull", "awful", "boring", "clumsy", "cold", "silly", "terrible"];
const PLAIN: [&str; 16] = [
    "the", "film", "was", "a", "story", "and", "with", "it", "is", "actors", "of", "end", "scene",
    "that", "music", "very",
];

/// Reviews as rows of word numbers, padded with 0 at the end, and whether they are kind.
struct Reviews {
    words: Tensor,
    kind: Tensor,
}

impl Reviews {
    fn make(count: usize, numbers: &HashMap<&str, i32>) -> Result<Self> {
        // Integers from 0 to 999 on the host, as many as a review may need.
        let draws = tf::random::global().uniform_int([count, 2 * LENGTH + 2], 0, 1000)?;
        let draws = draws.to_vec::<i32>()?;
        let mut words = vec![0; count * LENGTH];
        let mut kind = Vec::with_capacity(count);
        for (review, draws) in draws.chunks_exact(2 * LENGTH + 2).enumerate() {
            let is_kind = draws[0] % 2 == 0;
            let length = 5 + draws[1] as usize % (LENGTH - 4);
            let row = &mut words[review * LENGTH..][..length];
            let mut at = 0;
            while at < length {
                let (draw, which) = (draws[2 + 2 * at], draws[3 + 2 * at] as usize);
                // One word in six expresses the author's opinion; if none does, the last two do.
                let said = if (draw < 160 || length - at == 2) && length - at >= 2 {
                    let turned = draw % 2 == 0;
                    let words = if is_kind == turned { UNKIND } else { KIND };
                    vec![if turned { "not" } else { "very" }, words[which % 8]]
                } else {
                    vec![PLAIN[which % 16]]
                };
                for word in said {
                    row[at] = numbers[word];
                    at += 1;
                }
            }
            kind.push(if is_kind { 1.0f32 } else { 0.0 });
        }
        Ok(Reviews {
            words: Tensor::from_slice(&words, [count, LENGTH])?,
            kind: Tensor::from_slice(&kind, [count, 1])?,
        })
    }
}

/// Embeddings of words and of positions, an attention block with residual connections, the mean over all positions.
#[derive(Trackable)]
struct Transformer {
    words: Embedding,
    places: Embedding,
    attention: MultiHeadAttention,
    norm1: LayerNormalization,
    wide: Dense,
    narrow: Dense,
    norm2: LayerNormalization,
    dropout: Dropout,
    pool: GlobalAveragePooling1D,
    head: Dense,
    trainer: Trainer,
}

impl Transformer {
    fn new(vocabulary: usize) -> Self {
        Transformer {
            words: Embedding::new(vocabulary, 32),
            places: Embedding::new(LENGTH, 32),
            attention: MultiHeadAttention::new(2, 16),
            norm1: LayerNormalization::new().epsilon(1e-6),
            wide: Dense::new(64).activation(Activation::Relu),
            narrow: Dense::new(32),
            norm2: LayerNormalization::new().epsilon(1e-6),
            dropout: Dropout::new(0.1),
            pool: GlobalAveragePooling1D::new(),
            head: Dense::new(1),
            trainer: Trainer::new(),
        }
    }
}

impl Layer for Transformer {
    fn call(&self, words: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
        // Positions after a review's end must be masked.
        let mask = words.not_equal(0)?;
        let cx = cx.with_mask(Some(&mask));
        let places = tf::range(0, words.shape()[1] as i32, 1)?;
        let x = self.words.call(words, cx)?.add(self.places.call(&places, cx)?)?;
        let seen = self.attention.call(&x, cx)?;
        let x = self.norm1.call(&x.add(self.dropout.call(&seen, cx)?)?, cx)?;
        let thought = self.narrow.call(&self.wide.call(&x, cx)?, cx)?;
        let x = self.norm2.call(&x.add(self.dropout.call(&thought, cx)?)?, cx)?;
        self.head.call(&self.pool.call(&x, cx)?, cx)
    }
}

impl Model for Transformer {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

fn main() -> ExitCode {
    let about = "Classify reviews by three networks.\n\nUsage: text_classification [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 600)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let words = KIND.iter().chain(&UNKIND).chain(&PLAIN).chain(&["not"]);
    // 0 is padding.
    let numbers: HashMap<&str, i32> =
        words.zip(1..).map(|(word, number)| (*word, number)).collect();
    let vocabulary = numbers.len() + 1;
    let train = Reviews::make(2_000, &numbers)?;
    let test = Reviews::make(TEST, &numbers)?;

    let bag = Sequential::new()
        .add(Embedding::new(vocabulary, 32).mask_zero(true))
        .add(GlobalAveragePooling1D::new())
        .add(Dense::new(16).activation(Activation::Relu))
        .add(Dense::new(1));
    let gru = Sequential::new()
        .add(Embedding::new(vocabulary, 32).mask_zero(true))
        .add(Gru::new(32))
        .add(Dense::new(1));
    let transformer = Transformer::new(vocabulary);
    measure("mean of embeddings", &bag, flags, &train, &test)?;
    measure("GRU", &gru, flags, &train, &test)?;
    measure("transformer", &transformer, flags, &train, &test)
}

fn measure(
    name: &str,
    model: &impl Model,
    flags: &Flags,
    train: &Reviews,
    test: &Reviews,
) -> Result<()> {
    let loss = tf::keras::losses::BinaryCrossentropy::new().from_logits(true);
    let accuracy = tf::keras::metrics::BinaryAccuracy::new("accuracy").threshold(0.0);
    model.compile(Adam::new(3e-3), loss, CompileOptions::new().metrics(accuracy))?;
    let per_epoch = 2_000usize.div_ceil(BATCH);
    let options = FitOptions::new()
        .batch_size(BATCH)
        .epochs(flags.steps.div_ceil(per_epoch))
        .steps_per_epoch(per_epoch.min(flags.steps))
        .verbose(tf::keras::Verbose::Silent);
    let started = std::time::Instant::now();
    model.fit((&train.words, &train.kind), options)?;
    let logs = model.evaluate(
        (&test.words, &test.kind),
        EvaluateOptions::new().verbose(tf::keras::Verbose::Silent),
    )?;
    say!(
        "{name:20} {} parameters, {:.1} s, {:.1} % of {TEST} reviews",
        model.count_params(),
        started.elapsed().as_secs_f64(),
        100.0 * logs.get("accuracy").ok_or("the metric is in the logs")?
    );
    Ok(())
}
