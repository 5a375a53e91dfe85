//! Decoders of text: [`CausalLm`], the [`KeyValues`] that they keep of earlier tokens, and [`Generation`].

use super::sampling::{GenerateOptions, Sampler};
use super::transformer::{Visible, attend};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Dropout;
use crate::ops::where_;
use crate::tensor::{Tensor, range};
use crate::trackable::Trackable;

/// The keys and values of the tokens that a decoder has seen, so that one more token needs no work for them.
///
/// There is room for a fixed number of tokens, so that every step has the same shapes: after the first one, the device makes no
/// plan and no pipeline, and its memory does not grow.
#[derive(Debug)]
pub struct KeyValues {
    capacity: usize,
    used: usize,
    /// For each layer `[B,H,capacity,D]`.
    layers: Vec<[Tensor; 2]>,
    step: Option<Step>,
}

/// The tokens of one call.
#[derive(Debug)]
struct Step {
    tokens: usize,
    /// Where the keys of the tokens go, `[capacity,1]`, and which token goes there, `[capacity]`.
    places: Tensor,
    sources: Tensor,
    /// Which keys each token sees, `[T,capacity]`.
    visible: Tensor,
}

impl KeyValues {
    /// Creates an empty store for `capacity` tokens.
    pub fn new(capacity: usize) -> Self {
        KeyValues { capacity, used: 0, layers: Vec::new(), step: None }
    }

    /// Returns the number of tokens whose keys and values it has.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of tokens for which it has room.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Begins a call with `tokens` more tokens, and returns their positions, `[T]`.
    pub(super) fn begin(&mut self, network: &str, tokens: usize) -> Result<Tensor> {
        if tokens == 0 || self.used + tokens > self.capacity {
            return Err(Error::Shape(message!(
                "{network}: the call has {tokens} tokens, and there is room for {} of {}. Pass at least one, and at most \
                 as many as there is room for.",
                self.capacity - self.used,
                self.capacity
            )));
        }
        // A value of the step, not of its structure, so that one plan serves all.
        let first = Tensor::from_slice(&[self.used as i32], [1])?;
        let positions = range(0, tokens as i32, 1)?.add(&first)?;
        let all = range(0, self.capacity as i32, 1)?;
        let from = all.subtract(&first)?;
        let places = from.greater_equal(0)?.logical_and(&from.less(tokens as i32)?)?;
        let visible = all.less_equal(&positions.expand_dims(-1)?)?;
        self.step = Some(Step {
            tokens,
            places: places.expand_dims(-1)?,
            sources: from.maximum(0)?.minimum(tokens as i32 - 1)?,
            visible,
        });
        Ok(positions)
    }

    /// Stores the keys and values of the call's tokens for a layer, `[B,H,T,D]`, and returns those of all.
    pub(super) fn extend(&mut self, layer: usize, new: [&Tensor; 2]) -> Result<[Tensor; 2]> {
        let Some(step) = &self.step else {
            return Err(Error::Data("KeyValues: no call has begun.".into()));
        };
        if layer == self.layers.len() {
            let &[batch, heads, _, size] = new[0].shape() else {
                return Err(Error::Shape(message!("KeyValues: keys are {:?}.", new[0].shape())));
            };
            let empty = Tensor::zeros([batch, heads, self.capacity, size])?.cast(new[0].dtype())?;
            self.layers.push([empty.clone(), empty]);
        }
        let old = &self.layers[layer];
        if old[0].shape()[0] != new[0].shape()[0] {
            return Err(Error::Shape(message!(
                "KeyValues: the call has {} examples, and the earlier tokens were of {}. Make new ones for another batch.",
                new[0].shape()[0],
                old[0].shape()[0]
            )));
        }
        let stored = |old: &Tensor, new: &Tensor| -> Result<Tensor> {
            // One token is the same for all places.
            let spread = match step.tokens {
                1 => new.broadcast_to(old.shape())?,
                _ => new.gather(&step.sources, 2)?,
            };
            where_(&step.places, &spread, old)
        };
        let stored = [stored(&old[0], new[0])?, stored(&old[1], new[1])?];
        self.layers[layer] = stored.clone();
        Ok(stored)
    }

    /// Which keys the call's tokens see.
    pub(super) fn visible(&self) -> Visible<'_> {
        self.step.as_ref().map_or(Visible::All, |step| Visible::Where(&step.visible))
    }

    /// Ends the call; of its tokens, the first `tokens` count.
    fn end(&mut self, tokens: usize) {
        self.used += tokens;
        self.step = None;
    }
}

/// Attention of tokens to themselves and to those before: with a past, to the keys and values of this layer in it, which it extends.
pub(super) fn attend_to_past(
    [q, k, v]: [&Tensor; 3],
    past: Option<(&mut KeyValues, usize)>,
    dropout: (f32, &Dropout),
    cx: Context<'_>,
) -> Result<Tensor> {
    match past {
        None => attend([q, k, v], Visible::Causal, dropout, cx),
        Some((past, layer)) => {
            let [k, v] = past.extend(layer, [k, v])?;
            attend([q, &k, &v], past.visible(), dropout, cx)
        }
    }
}

/// A decoder: a network that predicts the next token from those before.
pub trait CausalLm: Trackable {
    /// Returns the largest number of tokens that the network can see.
    fn context_length(&self) -> usize;

    /// Returns the number of different tokens.
    fn vocab_size(&self) -> usize;

    /// Computes the logits of the token after each of `ids`, `[B,T]`, in inference: `[B,T,vocab_size]`. The tokens follow those
    /// in `past`, whose keys and values it extends.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no room for the tokens in `past`, or a shape does not fit.
    fn extend(&self, ids: &Tensor, past: &mut KeyValues) -> Result<Tensor>;

    /// Computes the logits of the token after each of `ids`, as [`CausalLm::extend`], and counts the first `tokens` of them.
    #[doc(hidden)]
    fn advance(&self, ids: &Tensor, past: &mut KeyValues, tokens: usize) -> Result<Tensor> {
        let logits = self.extend(ids, past)?;
        past.end(tokens);
        Ok(logits)
    }

    /// Continues `prompt` token by token. The result is an iterator natively; a page calls [`Generation::next_async`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::applications::{CausalLm, GenerateOptions, Gpt2, Gpt2Config};
    /// let model = Gpt2::new(Gpt2Config::new().vocab_size(50).n_positions(64).n_embd(16).n_layer(1).n_head(2))?;
    /// let options = GenerateOptions::new().max_new_tokens(5).sample(true).top_k(10).seed(1);
    /// let mut text = Vec::new();
    /// for token in model.generate(&[1, 2, 3], options)? {
    ///     text.push(token?); // as soon as it is known
    /// }
    /// assert_eq!(text.len(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the prompt is empty, has a token that the network does not know, or does not fit into the context
    /// with the new tokens; [`Error::Data`] if an option is out of range.
    fn generate(&self, prompt: &[u32], options: GenerateOptions) -> Result<Generation<'_, Self>>
    where
        Self: Sized,
    {
        Generation::new(self, prompt, options)
    }
}

/// Tokens that a decoder generates one by one.
#[derive(Debug)]
pub struct Generation<'a, M> {
    model: &'a M,
    past: KeyValues,
    /// The tokens that the network has not seen.
    next: Vec<u32>,
    left: usize,
    stop: Vec<u32>,
    sampler: Sampler,
}

/// A prompt is filled up to a multiple of this, so that prompts of all lengths have few shapes.
const PROMPT: usize = 64;

impl<'a, M: CausalLm> Generation<'a, M> {
    fn new(model: &'a M, prompt: &[u32], options: GenerateOptions) -> Result<Self> {
        let (context, words) = (model.context_length(), model.vocab_size());
        let wrong = |what: String| Err(Error::Shape(message!("generate: {what}.")));
        if prompt.is_empty() {
            return wrong("the prompt is empty; it needs at least one token".into());
        }
        if let Some(token) = prompt.iter().find(|token| **token as usize >= words) {
            return wrong(format!(
                "the prompt has the token {token}, and the network knows those below {words}"
            ));
        }
        let capacity = options.context.unwrap_or(context).min(context);
        // The last new token is not read again.
        let needed = prompt.len() + options.max_new_tokens.saturating_sub(1);
        if needed > capacity {
            return wrong(format!(
                "the prompt has {} tokens and {} are to follow, and the context has room for {capacity}; generate fewer, or \
                 shorten the prompt",
                prompt.len(),
                options.max_new_tokens
            ));
        }
        Ok(Generation {
            model,
            past: KeyValues::new(capacity),
            next: prompt.to_vec(),
            left: options.max_new_tokens,
            sampler: Sampler::new(&options)?,
            stop: options.stop_tokens,
        })
    }

    /// Returns the keys and values of the tokens so far.
    pub fn past(&self) -> &KeyValues {
        &self.past
    }

    /// Computes the next token; none after a stop token or the last one. After an error it can be called again.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, and other errors of reading.
    pub async fn next_async(&mut self) -> Result<Option<u32>> {
        if self.left == 0 {
            return Ok(None);
        }
        let given = self.next.len();
        let room = self.past.capacity() - self.past.used();
        let filled = if given == 1 { 1 } else { given.next_multiple_of(PROMPT).min(room) };
        let mut ids: Vec<i32> = self.next.iter().map(|token| *token as i32).collect();
        // What follows the prompt is not seen by it, and overwritten later.
        ids.resize(filled, 0);
        let ids = Tensor::from_slice(&ids, [1, filled])?;
        let logits = self.model.advance(&ids, &mut self.past, given)?;
        let words = logits.shape()[2];
        let last = logits.slice(&[0, given - 1, 0], &[1, 1, words as i64])?;
        let token = self.sampler.pick(&last.cast(DType::F32)?.to_vec_async::<f32>().await?)?;
        self.next = vec![token];
        self.left = if self.stop.contains(&token) { 0 } else { self.left - 1 };
        Ok(Some(token))
    }
}

#[cfg(not(target_family = "wasm"))]
impl<M: CausalLm> Iterator for Generation<'_, M> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        pollster::block_on(self.next_async()).transpose()
    }
}
