//! Text from a decoder as GPT-2, token by token.
//!
//! `cargo example gpt2 -- --data FOLDER --text "Once upon"` reads a folder as Hugging Face publishes it, with `config.json`,
//! `model.safetensors` and `tokenizer.json`, and continues the text; with `--features download`, `openai-community/gpt2` instead of
//! the folder is fetched. Without a tokenizer it prints the numbers of the tokens, and without a folder those of a tiny network with
//! random weights. It ends with what the device needed for them.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::hub::{self, HubOptions};
use wgrad::keras::applications::{CausalLm, GenerateOptions, Gpt2, Gpt2Config};
use wgrad::prelude::*;

/// What is continued if nothing else is said.
const TEXT: &str = "Hello, I am";

/// The same in GPT-2's tokens.
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
    let (model, tokenizer, stop) = match &flags.data {
        Some(place) => {
            let mut found = hub::load(place, HubOptions::new())?;
            let (tokenizer, stop) = (found.tokenizer.take(), found.stop_tokens.clone());
            (found.into_gpt2()?, tokenizer, stop)
        }
        None => {
            say!("weights   random, of a tiny network; --data names a folder with others");
            let tiny = Gpt2Config::new().vocab_size(1_000).n_positions(512);
            (Gpt2::new(tiny.n_embd(64).n_layer(4).n_head(4))?, None, Vec::new())
        }
    };
    say!("network   {} parameters", model.count_params());

    let prompt = match (&tokenizer, &flags.text) {
        (Some(tokenizer), text) => tokenizer.encode(text.as_deref().unwrap_or(TEXT))?,
        (None, Some(_)) => {
            return Err("--text needs a folder with tokenizer.json, which --data names".into());
        }
        (None, None) => PROMPT.map(|token| token % model.vocab_size() as u32).to_vec(),
    };
    let options = GenerateOptions::new().max_new_tokens(flags.steps).sample(true);
    let options = options.top_k(50).temperature(0.9).seed(flags.seed).stop_tokens(stop);
    let generation = model.generate(&prompt, options)?;
    say!("prompt    {prompt:?}");
    let mut stream = tokenizer.as_ref().map(|tokenizer| tokenizer.stream());
    let (mut tokens, mut text) = (Vec::new(), String::new());
    if let Some(stream) = &mut stream {
        // A tokenizer may put a space between two words, but not in front of the first.
        for token in &prompt {
            text += &stream.push(*token)?;
        }
    }
    let (mut begin, mut after_first) = (Instant::now(), device.stats());
    for token in generation {
        let token = token?;
        tokens.push(token);
        if let Some(stream) = &mut stream {
            text += &stream.push(token)?;
        }
        // The first ones include the prompt, and the kernels that all others use.
        if tokens.len() == 2 {
            (begin, after_first) = (Instant::now(), device.stats());
        }
    }
    match &mut stream {
        Some(stream) => {
            text += &stream.finish()?;
            say!("text      {text}");
        }
        None => say!("text      {tokens:?}"),
    }
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
