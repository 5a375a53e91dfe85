//! A GRU that learns a text letter by letter and then generates text.
//!
//! `cargo example char_rnn` runs it. The text is this project's page about its architecture; after a few hundred steps the
//! network spells words correctly, but the text makes no sense.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;
#[path = "support/settled.rs"]
mod settled;

use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use say::{Result, say};
use settled::Settled;
use wgrad as tf;
use wgrad::keras::layers::{Dense, Embedding, Gru};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;

const TEXT: &str = include_str!("../docs/architecture.md");
/// The number of letters in a training example.
const LENGTH: usize = 60;
const BATCH: usize = 32;

#[derive(Trackable)]
struct CharRnn {
    letters: Embedding,
    gru: Gru,
    head: Dense,
}

impl CharRnn {
    /// Logits of the next letter after each of `letters` `[N,T]`, and the state after the last one.
    fn step(
        &self,
        letters: &Tensor,
        state: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> tf::Result<(Tensor, Vec<Tensor>)> {
        let x = self.letters.call(letters, cx)?;
        let read = self.gru.call_with_state(&x, state, cx)?;
        Ok((self.head.call(&read.output, cx)?, read.state))
    }
}

fn main() -> ExitCode {
    let about = "Learn a text letter by letter, and generate more.\n\nUsage: char_rnn [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 300)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let mut alphabet: Vec<char> = TEXT.chars().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let number = |letter: char| alphabet.binary_search(&letter).map(|at| at as i32);
    let text: Vec<i32> = TEXT.chars().filter_map(|letter| number(letter).ok()).collect();
    say!("text      {} letters, {} of them different", text.len(), alphabet.len());

    let model = CharRnn {
        letters: Embedding::new(alphabet.len(), 64),
        gru: Gru::new(128).return_sequences(true),
        head: Dense::new(alphabet.len()),
    };
    let loss_of = SparseCategoricalCrossentropy::new().from_logits(true);
    let adam = Adam::new(5e-3);
    let started = Instant::now();
    let mut settled = Settled::new(flags.steps)?;
    for step in 1..=flags.steps {
        // Pieces from random positions; each letter's target is the next letter.
        let last = (text.len() - LENGTH - 1) as i32;
        let places = tf::random::global().uniform_int([BATCH], 0, last)?.to_vec::<i32>()?;
        let pieces = |shift: usize| {
            let piece = |&place: &i32| text[place as usize + shift..][..LENGTH].to_vec();
            let letters: Vec<i32> = places.iter().flat_map(piece).collect();
            Tensor::from_slice(&letters, [BATCH, LENGTH])
        };
        let (x, y) = (pieces(0)?, pieces(1)?);
        let tape = GradientTape::new();
        let (logits, _) = model.step(&x, None, TRAINING)?;
        let loss = loss_of.call(&y, &logits)?;
        adam.minimize(&loss, tape, &model)?;
        settled.note(step);
        if step % 50 == 0 || step == flags.steps {
            let seconds = started.elapsed().as_secs_f64();
            say!("step {step:5}  loss {:.4}  {seconds:.1} s", loss.item::<f32>()?);
        }
    }

    if let Some(report) = settled.report() {
        say!("{report}");
    }

    // Read a beginning, then draw each letter from the logits of the previous one; the state carries what came before.
    let mut written = String::from("The device ");
    let start: Vec<i32> = written.chars().filter_map(|letter| number(letter).ok()).collect();
    let mut letters = Tensor::from_slice(&start, [1, start.len()])?;
    let mut state: Option<Vec<Tensor>> = None;
    for _ in 0..200 {
        let (logits, after) = model.step(&letters, state.as_deref(), INFERENCE)?;
        let steps = logits.shape()[1];
        let last = logits.slice(&[0, steps - 1, 0], &[1, 1, -1])?.reshape([1, -1])?;
        // A temperature below 1 makes likely letters more likely.
        let drawn = tf::random::categorical(&(last / 0.7), 1)?;
        written.push(alphabet[drawn.to_vec::<i32>()?[0] as usize]);
        (letters, state) = (drawn.cast(DType::I32)?, Some(after));
    }
    say!("{written}");
    Ok(())
}
