//! [`KeyValues`]: what a decoder keeps of earlier tokens, and the attention to it.

use super::transformer::{Visible, attend};
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Dropout;
use crate::ops::where_;
use crate::tensor::{Tensor, range};

/// The keys and values of the tokens that a decoder has seen, so that one more token needs no work for them.
///
/// There is room for a fixed number of tokens, so that every step has the same shapes: after the first one, the device makes no
/// plan and no pipeline, and its memory does not grow.
#[derive(Debug)]
pub struct KeyValues {
    capacity: usize,
    used: usize,
    /// The same for each example of a batch whose numbers differ.
    each: Vec<usize>,
    /// For each layer `[B,H,capacity,D]`.
    layers: Vec<[Tensor; 2]>,
    step: Option<Step>,
}

/// The tokens of one call.
#[derive(Debug)]
struct Step {
    tokens: usize,
    /// Where the keys of the tokens go, `[capacity,1]`, and which token goes there, `[capacity]`. The former is
    /// `[B,1,capacity,1]` if it differs between examples.
    places: Tensor,
    sources: Tensor,
    /// Which keys each token sees, `[T,capacity]` or `[B,1,T,capacity]`.
    visible: Tensor,
}

impl KeyValues {
    /// Creates an empty store for `capacity` tokens.
    pub fn new(capacity: usize) -> Self {
        KeyValues { capacity, used: 0, each: Vec::new(), layers: Vec::new(), step: None }
    }

    /// Returns the number of tokens whose keys and values it has; for texts of different lengths, that of the longest.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of tokens for which it has room.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Begins a call with `tokens` more tokens, and returns their positions, `[T]`, or `[B,T]` if they differ between examples.
    pub(super) fn begin(&mut self, network: &str, tokens: usize) -> Result<Tensor> {
        if tokens == 0 || self.used + tokens > self.capacity {
            return Err(Error::Shape(message!(
                "{network}: the call has {tokens} tokens, and there is room for {} of {}. Pass at least one, and at most \
                 as many as there is room for.",
                self.capacity - self.used,
                self.capacity
            )));
        }
        let alike = self.each.is_empty();
        if !alike && tokens > 1 {
            return Err(Error::Shape(message!(
                "{network}: the call has {tokens} tokens, and the earlier texts are of different lengths. Pass one at a time."
            )));
        }
        // A value of the step, not of its structure, so that one plan serves all.
        let first = match alike {
            true => Tensor::from_slice(&[self.used as i32], [1])?,
            false => {
                let each: Vec<i32> = self.each.iter().map(|used| *used as i32).collect();
                Tensor::from_slice(&each, [each.len(), 1])?
            }
        };
        let positions = range(0, tokens as i32, 1)?.add(&first)?;
        let all = range(0, self.capacity as i32, 1)?;
        let from = all.subtract(&first)?;
        let places = from.greater_equal(0)?.logical_and(&from.less(tokens as i32)?)?;
        let visible = all.less_equal(&positions.expand_dims(-1)?)?;
        let of_heads = |x: Tensor| if alike { Ok(x) } else { x.expand_dims(1) };
        self.step = Some(Step {
            tokens,
            places: of_heads(places)?.expand_dims(-1)?,
            sources: from.maximum(0)?.minimum(tokens as i32 - 1)?,
            visible: of_heads(visible)?,
        });
        Ok(positions)
    }

    /// Stores the keys and values of the call's tokens for a layer, `[B,H,T,D]`, and returns those that these tokens may see.
    pub(super) fn extend(&mut self, layer: usize, new: [&Tensor; 2]) -> Result<[Tensor; 2]> {
        let Some(step) = &self.step else {
            return Err(Error::Data("KeyValues: no call has begun.".into()));
        };
        let &[batch, _, _, _] = new[0].shape() else {
            return Err(Error::Shape(message!("KeyValues: keys are {:?}.", new[0].shape())));
        };
        if self.used == 0 {
            let free = [(0, 0), (0, 0), (0, self.capacity - step.tokens), (0, 0)];
            let stored = [new[0].pad(&free)?, new[1].pad(&free)?];
            self.layers.truncate(layer);
            self.layers.push(stored);
            // The prompt sees only itself, not what is free.
            return Ok(new.map(Tensor::clone));
        }
        let Some(old) = self.layers.get(layer) else {
            return Err(Error::Data(message!("KeyValues: there is nothing of layer {layer}.")));
        };
        if old[0].shape()[0] != batch {
            return Err(Error::Shape(message!(
                "KeyValues: the call has {batch} examples, and the earlier tokens were of {}. Make new ones for another batch.",
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

    /// Which of the keys that `extend` returns the call's tokens see.
    pub(super) fn visible(&self) -> Visible<'_> {
        if self.used == 0 {
            return Visible::Causal;
        }
        self.step.as_ref().map_or(Visible::All, |step| Visible::Where(&step.visible))
    }

    /// Ends the call; of each example's tokens, the first `tokens` count.
    pub(super) fn end(&mut self, tokens: &[usize]) {
        let used = |at: usize| self.each.get(at).copied().unwrap_or(self.used);
        let each: Vec<usize> =
            tokens.iter().enumerate().map(|(at, tokens)| used(at) + tokens).collect();
        self.used = each.iter().copied().max().unwrap_or(self.used);
        self.each = if each.iter().all(|used| *used == self.used) { Vec::new() } else { each };
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
