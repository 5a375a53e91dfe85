//! Text from a decoder as GPT-2, token by token.
//!
//! `cargo example gpt2 -- --data FOLDER` reads `model.safetensors` and `config.json` in the folder, as Hugging Face publishes them,
//! and continues a short prompt; without a folder, a tiny network with random weights
//! shows how it works. It prints the tokens, which a tokenizer would turn into text, and what the device needed for them.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::keras::applications::{CausalLm, GenerateOptions, Gpt2, Gpt2Config};
use wgrad::prelude::*;

/// "Hello, I am" in GPT-2's tokens.
const PROMPT: [u32; 4] = [15_496, 11, 314, 716];

fn main() -> ExitCode {
    let about = "Continue a text with GPT-2; --data is a folder of its published weights.\n\n\
                 Usage: gpt2 [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 40)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    let device = Device::current()?;
    say!("adapter   {}", device.adapter());
    let model = match &flags.data {
        Some(folder) => {
            let config =
                Gpt2Config::from_json(&std::fs::read_to_string(folder.join("config.json"))?)?;
            Gpt2::with_weights(config, folder.join("model.safetensors"))?
        }
        None => {
            say!("weights   random, of a tiny network; --data names a folder with others");
            let tiny = Gpt2Config::new().vocab_size(1_000).n_positions(512);
            Gpt2::new(tiny.n_embd(64).n_layer(4).n_head(4))?
        }
    };
    say!("network   {} parameters", model.count_params());

    let words = model.vocab_size() as u32;
    let prompt = PROMPT.map(|token| token % words);
    let options = GenerateOptions::new().max_new_tokens(flags.steps).sample(true);
    let text = model.generate(&prompt, options.top_k(50).temperature(0.9).seed(flags.seed))?;
    say!("prompt    {prompt:?}");
    let mut tokens = Vec::new();
    let (mut begin, mut after_first) = (Instant::now(), device.stats());
    for token in text {
        tokens.push(token?);
        // The first ones include the prompt, and the kernels that all others use.
        if tokens.len() == 2 {
            (begin, after_first) = (Instant::now(), device.stats());
        }
    }
    say!("text      {tokens:?}");
    let rest = tokens.len().saturating_sub(2);
    if rest > 0 {
        let stats = device.stats();
        say!(
            "tokens    {:.1} in a second, {} kernels each",
            rest as f64 / begin.elapsed().as_secs_f64(),
            (stats.kernels - after_first.kernels) / rest as u64
        );
        say!(
            "compiled  {} pipelines after the second token",
            stats.pipelines - after_first.pipelines
        );
    }
    Ok(())
}
