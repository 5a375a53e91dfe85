//! Reinforcement learning: a network learns to balance a pole on a cart (see `cart_pole.rs`), several times from different seeds.
//!
//! `cargo example reinforce` runs it; on two processor cores without a GPU it takes about a minute. The method is proximal policy
//! optimization (Schulman et al. 2017) with advantages estimated as in Schulman et al. 2016: eight carts are pushed 128 times by
//! the network's choices, then the network learns from these 1,024 pushes. A seed has learned when the pole stayed upright for
//! at least 195 of 200 pushes on average over the last 100 episodes.

mod cart_pole;
#[path = "../support/say.rs"]
mod say;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;

use cart_pole::{CartPole, LONGEST, STATE};
use lexopt::prelude::*;
use say::{Result, say};
use wgrad as tf;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::Adam;
use wgrad::ndarray::Array2;
use wgrad::prelude::*;

const CARTS: usize = 8;
/// Pushes of each cart between two rounds of learning.
const PUSHES: usize = 128;
const BATCH: usize = 256;
/// How often each push is learned from.
const EPOCHS: usize = 6;
/// A reward `n` pushes later counts this to the power of `n`.
const DISCOUNT: f32 = 0.99;
/// As `DISCOUNT`, for the differences between expected and actual rewards of which advantages are made.
const LAMBDA: f32 = 0.95;
/// The probability of a push is not changed by more than this share in one round.
const CLIP: f32 = 0.2;

const LEARNED: f32 = 195.0;
const LAST: usize = 100;

fn main() -> ExitCode {
    let arguments = Arguments::read().unwrap_or_else(|problem| {
        let usage = "Learn to balance a pole on a cart.\n\nUsage: reinforce [OPTIONS]\n\nOptions:\n  \
                     --seeds <SEEDS>        How often to learn from the beginning [default: 5]\n  \
                     --seed <SEED>          The first seed [default: 1]\n  \
                     --episodes <EPISODES>  Episodes after which learning has failed [default: 1000]";
        match problem {
            None => {
                println!("{usage}");
                std::process::exit(0)
            }
            Some(problem) => {
                eprintln!("error: {problem}\n\n{usage}");
                std::process::exit(2)
            }
        }
    });
    say::exit_code(run(&arguments))
}

struct Arguments {
    seeds: u64,
    seed: u64,
    episodes: usize,
}

impl Arguments {
    /// `Err(None)` if help was requested.
    fn read() -> std::result::Result<Self, Option<lexopt::Error>> {
        let mut arguments = Arguments { seeds: 5, seed: 1, episodes: 1000 };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("seeds") => arguments.seeds = parser.value()?.parse()?,
                Long("seed") => arguments.seed = parser.value()?.parse()?,
                Long("episodes") => arguments.episodes = parser.value()?.parse()?,
                Short('h') | Long("help") => return Err(None),
                other => return Err(Some(other.unexpected())),
            }
        }
        if arguments.seeds == 0 {
            return Err(Some("--seeds must be a whole number from 1 on".into()));
        }
        Ok(arguments)
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    say!("adapter   {}", Device::current()?.adapter());
    let mut learned = 0;
    for seed in (0..arguments.seeds).map(|at| arguments.seed.wrapping_add(at)) {
        match learn(seed, arguments.episodes)? {
            (Some(episodes), best) => {
                learned += 1;
                say!("seed {seed}    learned in {episodes} episodes: {best:.1} of {LONGEST}");
            }
            (None, best) => {
                say!(
                    "seed {seed}    not learned in {} episodes: at best {best:.1} of {LONGEST}",
                    arguments.episodes
                );
            }
        }
    }
    say!("learned   {learned} of {} seeds", arguments.seeds);
    Ok(())
}

#[derive(Trackable)]
struct Agent {
    /// The logits of a push to the left and to the right.
    actor: Sequential,
    /// The rewards to come.
    critic: Sequential,
}

impl Agent {
    fn new() -> Self {
        let network = |outputs| {
            let hidden = || Dense::new(64).activation(Activation::Tanh);
            Sequential::new().add(hidden()).add(hidden()).add(Dense::new(outputs))
        };
        Agent { actor: network(2), critic: network(1) }
    }

    /// What each row of `states` `[N,4]` is worth: the rewards that are expected from then on, `[N]`.
    fn values(&self, states: &Tensor) -> tf::Result<Tensor> {
        self.critic.call(states, INFERENCE)?.squeeze(-1)
    }

    /// The logarithms of the probabilities with which each of `pushes` `[N]` is chosen, `[N]`, and the entropy of the choices.
    fn choices(&self, states: &Tensor, pushes: &Tensor) -> tf::Result<(Tensor, Tensor)> {
        let logits = self.actor.call(states, TRAINING)?;
        let chosen = -tf::sparse_softmax_cross_entropy_with_logits(pushes, &logits)?;
        let entropy = -(logits.softmax(-1)?.multiply(logits.log_softmax(-1)?)?.reduce_sum(-1)?);
        Ok((chosen, entropy.reduce_mean(())?))
    }
}

/// What eight carts went through, each `[PUSHES * CARTS, ..]`, in the order of time.
struct Experience {
    states: Array2<f32>,
    pushes: Vec<i32>,
    advantages: Vec<f32>,
    returns: Vec<f32>,
}

/// Trains an agent. Returns the number of episodes after which it had learned, and the best average of [`LAST`] episodes.
fn learn(seed: u64, most: usize) -> Result<(Option<usize>, f32)> {
    tf::random::set_seed(seed);
    let agent = Arc::new(Agent::new());
    let optimizer = Adam::new(1e-3);
    let mut carts: Vec<_> = (0..CARTS as u64).map(|at| CartPole::new(seed ^ (at << 32))).collect();
    // Each call of a tf::function runs as one plan.
    let choose = tf::function({
        let agent = agent.clone();
        move |states: Tensor| tf::random::categorical(&agent.actor.call(&states, INFERENCE)?, 1)
    });
    let value = tf::function({
        let agent = agent.clone();
        move |states: Tensor| agent.values(&states)
    });

    let (mut episodes, mut best) = (0, 0f32);
    let mut lengths = VecDeque::with_capacity(LAST);
    while episodes < most {
        let mut ended = Vec::new();
        let experience = gather(&mut carts, &choose, &value, &mut ended)?;
        for length in ended {
            episodes += 1;
            if lengths.len() == LAST {
                lengths.pop_front();
            }
            lengths.push_back(length);
            let mean = lengths.iter().sum::<usize>() as f32 / lengths.len() as f32;
            if lengths.len() == LAST {
                best = best.max(mean);
            }
            if lengths.len() == LAST && mean >= LEARNED {
                return Ok((Some(episodes), mean));
            }
        }
        improve(&agent, &optimizer, experience)?;
    }
    Ok((None, best))
}

type Network = tf::Function<dyn Fn(Tensor) -> tf::Result<Tensor> + Send + Sync>;

/// Pushes each cart [`PUSHES`] times, and notes the lengths of the episodes that end.
fn gather(
    carts: &mut [CartPole],
    choose: &Network,
    value: &Network,
    ended: &mut Vec<usize>,
) -> Result<Experience> {
    let count = carts.len();
    let (mut states, mut after) = (Vec::new(), Vec::new());
    let (mut pushes, mut failed, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PUSHES {
        let now: Vec<f32> = carts.iter().flat_map(CartPole::state).collect();
        let chosen = choose(Tensor::from_slice(&now, [count, STATE])?)?.to_vec::<i32>()?;
        states.extend(now);
        for (cart, &push) in carts.iter_mut().zip(&chosen) {
            let outcome = cart.push(push == 1);
            after.extend(outcome.state);
            failed.push(outcome.failed);
            ends.push(outcome.ended.is_some());
            ended.extend(outcome.ended);
        }
        pushes.extend(chosen);
    }
    let rows = pushes.len();
    // The values before and after all pushes, in one call.
    let both = [states.as_slice(), &after].concat();
    let values = value(Tensor::from_slice(&both, [2 * rows, STATE])?)?.to_vec::<f32>()?;
    let (before, after) = values.split_at(rows);

    let mut advantages = vec![0.0; rows];
    for at in (0..rows).rev() {
        // After a fall, no rewards come. An episode that ends upright would have gone on.
        let to_come = if failed[at] { 0.0 } else { DISCOUNT * after[at] };
        let surprise = 1.0 + to_come - before[at];
        let later = if ends[at] { 0.0 } else { advantages.get(at + count).copied().unwrap_or(0.0) };
        advantages[at] = surprise + DISCOUNT * LAMBDA * later;
    }
    let returns =
        advantages.iter().zip(before).map(|(advantage, value)| advantage + value).collect();
    let states = Array2::from_shape_vec((rows, STATE), states)?;
    Ok(Experience { states, pushes, advantages, returns })
}

/// Makes the pushes likelier that led to more than was expected, and the others less likely.
fn improve(agent: &Agent, optimizer: &Adam, experience: Experience) -> Result<()> {
    let Experience { states, pushes, advantages, returns } = experience;
    let rows = pushes.len();
    let all = Tensor::from_array(&states)?;
    let (earlier, _) = agent.choices(&all, &tf::constant(pushes.clone())?)?;
    let earlier = earlier.to_vec::<f32>()?;
    let batches = Dataset::from_tensor_slices((states, pushes, earlier, advantages, returns))?
        .shuffle(rows)
        .batch(BATCH)
        .repeat(EPOCHS)
        .to_tensors();
    for batch in &batches {
        let (states, pushes, earlier, advantages, returns) = batch?;
        let advantages =
            advantages.subtract(advantages.reduce_mean(())?)? / (advantages.reduce_std(())? + 1e-8);
        let tape = GradientTape::new();
        let (now, entropy) = agent.choices(&states, &pushes)?;
        let ratio = now.subtract(&earlier)?.exp()?;
        let clipped = ratio.clip_by_value(1.0 - CLIP, 1.0 + CLIP)?;
        let gain = ratio.multiply(&advantages)?.minimum(clipped.multiply(&advantages)?)?;
        let wrong = agent.values(&states)?.squared_difference(&returns)?;
        let loss = wrong.reduce_mean(())? * 0.5 - gain.reduce_mean(())? - entropy * 0.01;
        optimizer.minimize(&loss, tape, agent)?;
    }
    Ok(())
}
