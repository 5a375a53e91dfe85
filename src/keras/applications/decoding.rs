//! Decoders of text: [`CausalLm`], and how they continue texts: [`Generation`], [`BatchGeneration`].

use super::key_values::KeyValues;
use super::sampling::{GenerateOptions, Sampler};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

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

    /// Computes the logits of the token after one of each text, `[B,vocab_size]`: after `ids[b, at[b]]`. What is kept is as after
    /// [`CausalLm::extend`], of which this is a part; networks compute only that part.
    ///
    /// # Errors
    /// As [`CausalLm::extend`]; [`Error::Shape`] if `at` does not have a place for each text.
    fn extend_at(&self, ids: &Tensor, past: &mut KeyValues, at: &[usize]) -> Result<Tensor> {
        tokens_at(&self.extend(ids, past)?, at)
    }

    /// Computes the logits of the token after each of `ids`, as [`CausalLm::extend`], and counts the first `tokens` of them.
    #[doc(hidden)]
    fn advance(&self, ids: &Tensor, past: &mut KeyValues, tokens: usize) -> Result<Tensor> {
        let logits = self.extend(ids, past)?;
        past.end(&vec![tokens; logits.shape()[0]]);
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
        Ok(Generation(BatchGeneration::new(self, &[prompt], options)?))
    }

    /// Continues several prompts at once. Their lengths may differ, and each text ends by itself. The result is an iterator
    /// natively over the next token of each text, which is `None` where the text has ended; a page calls
    /// [`BatchGeneration::next_async`].
    ///
    /// Each text is the one that [`CausalLm::generate`] returns for its prompt, where the first is drawn with the seed of the
    /// options, the second with the one after it, and so on; sums may be rounded differently.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::applications::{CausalLm, GenerateOptions, Gpt2, Gpt2Config};
    /// let model = Gpt2::new(Gpt2Config::new().vocab_size(50).n_positions(64).n_embd(16).n_layer(1).n_head(2))?;
    /// let prompts = [vec![1, 2, 3], vec![4]];
    /// let texts = model.generate_batch(&prompts, GenerateOptions::new().max_new_tokens(5))?.texts()?;
    /// assert_eq!((texts.len(), texts[0].len(), texts[1].len()), (2, 5, 5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`CausalLm::generate`] for one of the prompts; [`Error::Shape`] if there is none.
    fn generate_batch<P: AsRef<[u32]>>(
        &self,
        prompts: &[P],
        options: GenerateOptions,
    ) -> Result<BatchGeneration<'_, Self>>
    where
        Self: Sized,
    {
        BatchGeneration::new(self, prompts, options)
    }
}

/// Tokens that a decoder generates one by one.
#[derive(Debug)]
pub struct Generation<'a, M>(BatchGeneration<'a, M>);

impl<M: CausalLm> Generation<'_, M> {
    /// Returns the keys and values of the tokens so far.
    pub fn past(&self) -> &KeyValues {
        self.0.past()
    }

    /// Computes the next token; none after a stop token or the last one. After an error it can be called again.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, and other errors of reading.
    pub async fn next_async(&mut self) -> Result<Option<u32>> {
        Ok(self.0.next_async().await?.and_then(|tokens| tokens.first().copied().flatten()))
    }
}

#[cfg(not(target_family = "wasm"))]
impl<M: CausalLm> Iterator for Generation<'_, M> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        pollster::block_on(self.next_async()).transpose()
    }
}

/// Tokens that a decoder generates for several texts at once, one for each in a step.
#[derive(Debug)]
pub struct BatchGeneration<'a, M> {
    model: &'a M,
    past: KeyValues,
    texts: Vec<Text>,
    stop: Vec<u32>,
}

/// A text of a batch.
#[derive(Debug)]
struct Text {
    /// The tokens that the network has not seen.
    next: Vec<u32>,
    /// How many may follow; 0 after the end.
    left: usize,
    sampler: Sampler,
}

/// A prompt is filled up to a multiple of this, so that prompts of all lengths have few shapes.
const PROMPT: usize = 64;

impl<'a, M: CausalLm> BatchGeneration<'a, M> {
    fn new(model: &'a M, prompts: &[impl AsRef<[u32]>], options: GenerateOptions) -> Result<Self> {
        let context = model.context_length();
        // Powers of two, so that prompts of all lengths have few shapes; with less room, each token takes less time.
        let longest = prompts.iter().map(|prompt| prompt.as_ref().len()).max().unwrap_or(0);
        let needed = longest.saturating_add(options.max_new_tokens.saturating_sub(1)).max(PROMPT);
        let own = || needed.checked_next_power_of_two().unwrap_or(context);
        let capacity = options.context.unwrap_or_else(own).min(context);
        if prompts.is_empty() {
            return Err(Error::Shape("generate: there is no prompt; pass at least one.".into()));
        }
        let mut texts = Vec::with_capacity(prompts.len());
        for (at, prompt) in prompts.iter().enumerate() {
            let prompt = prompt.as_ref();
            let name = match prompts.len() {
                1 => "the prompt".to_string(),
                _ => format!("prompt {at}"),
            };
            check(&name, prompt, capacity, model.vocab_size(), options.max_new_tokens)?;
            let seed = options.seed.wrapping_add(at as u64);
            texts.push(Text {
                next: prompt.to_vec(),
                left: options.max_new_tokens,
                sampler: Sampler::new(&options.clone().seed(seed))?,
            });
        }
        Ok(BatchGeneration {
            model,
            past: KeyValues::new(capacity),
            texts,
            stop: options.stop_tokens,
        })
    }

    /// Returns the keys and values of the tokens so far.
    pub fn past(&self) -> &KeyValues {
        &self.past
    }

    /// Computes the next token of each text, `None` where a text has ended with a stop token or its last one; none if all have.
    /// After an error it can be called again.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, and other errors of reading.
    pub async fn next_async(&mut self) -> Result<Option<Vec<Option<u32>>>> {
        if self.texts.iter().all(|text| text.left == 0) {
            return Ok(None);
        }
        let given: Vec<usize> = self.texts.iter().map(|text| text.next.len()).collect();
        let longest = given.iter().copied().max().unwrap_or(1);
        let room = self.past.capacity() - self.past.used();
        let filled = if longest == 1 { 1 } else { longest.next_multiple_of(PROMPT).min(room) };
        let mut ids = Vec::with_capacity(given.len() * filled);
        for text in &self.texts {
            ids.extend(text.next.iter().map(|token| *token as i32));
            // What follows a prompt is not seen by it, and overwritten later.
            ids.extend(std::iter::repeat_n(0, filled - text.next.len()));
        }
        let ids = Tensor::from_slice(&ids, [given.len(), filled])?;
        let at: Vec<usize> = given.iter().map(|given| given - 1).collect();
        let logits = self.model.extend_at(&ids, &mut self.past, &at)?;
        let words = logits.shape()[1];
        let last = logits.cast(DType::F32)?.to_vec_async::<f32>().await?;
        // Nothing changes before all tokens are known.
        let mut picked = Vec::with_capacity(given.len());
        for (text, logits) in self.texts.iter().zip(last.chunks(words)) {
            let mut sampler = text.sampler.clone();
            let token = if text.left == 0 { None } else { Some(sampler.pick(logits)?) };
            picked.push((token, sampler));
        }
        self.past.end(&given);
        let mut tokens = Vec::with_capacity(given.len());
        for (text, (token, sampler)) in self.texts.iter_mut().zip(picked) {
            let ends = token.is_none_or(|token| self.stop.contains(&token));
            text.left = if ends { 0 } else { text.left - 1 };
            // A text that has ended continues without being read, so that the shapes stay.
            text.next = vec![token.unwrap_or(0)];
            text.sampler = sampler;
            tokens.push(token);
        }
        Ok(Some(tokens))
    }

    /// Generates the rest of all texts, and returns the new tokens of each.
    ///
    /// # Errors
    /// As [`BatchGeneration::next_async`].
    #[cfg(not(target_family = "wasm"))]
    pub fn texts(self) -> Result<Vec<Vec<u32>>> {
        let mut texts = vec![Vec::new(); self.texts.len()];
        for step in self {
            for (text, token) in texts.iter_mut().zip(step?) {
                text.extend(token);
            }
        }
        Ok(texts)
    }
}

#[cfg(not(target_family = "wasm"))]
impl<M: CausalLm> Iterator for BatchGeneration<'_, M> {
    type Item = Result<Vec<Option<u32>>>;

    fn next(&mut self) -> Option<Result<Vec<Option<u32>>>> {
        pollster::block_on(self.next_async()).transpose()
    }
}

/// The values of one token of each text, `[B,D]` of `[B,T,D]`: `x[b, at[b]]`.
pub(super) fn tokens_at(x: &Tensor, at: &[usize]) -> Result<Tensor> {
    let shape = x.shape();
    let wrong = || {
        Err(Error::Shape(message!(
            "extend_at: the values are {shape:?} and the places {at:?}; there must be a place below {} for each text.",
            shape.get(1).unwrap_or(&0)
        )))
    };
    let &[texts, steps, width] = shape else { return wrong() };
    if at.len() != texts || at.iter().any(|at| *at >= steps) {
        return wrong();
    }
    let rows = x.reshape_to([texts * steps, width].into())?;
    if steps == 1 {
        return Ok(rows);
    }
    let at: Vec<i32> = at.iter().enumerate().map(|(row, at)| (row * steps + at) as i32).collect();
    rows.gather(&Tensor::from_slice(&at, [at.len()])?, 0)
}

/// Checks that a prompt has tokens that the network knows, and that it fits with the new ones.
fn check(name: &str, prompt: &[u32], capacity: usize, words: usize, new: usize) -> Result<()> {
    let wrong = |what: String| Err(Error::Shape(message!("generate: {what}.")));
    if prompt.is_empty() {
        return wrong(format!("{name} is empty; it needs at least one token"));
    }
    if let Some(token) = prompt.iter().find(|token| **token as usize >= words) {
        return wrong(format!(
            "{name} has the token {token}, and the network knows those below {words}"
        ));
    }
    // The last new token is not read again.
    if prompt.len().saturating_add(new.saturating_sub(1)) > capacity {
        return wrong(format!(
            "{name} has {} tokens and {new} are to follow, and the context has room for {capacity}; generate fewer, or shorten \
             the prompt",
            prompt.len()
        ));
    }
    Ok(())
}
