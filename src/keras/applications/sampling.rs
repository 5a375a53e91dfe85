//! [`GenerateOptions`], and how a token is picked from logits.

use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// How [`CausalLm::generate`](super::CausalLm::generate) continues a prompt. By default it takes the most probable token
    /// each time.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GenerateOptions {
        /// Sets the largest number of new tokens.
        max_new_tokens: usize = 20,
        /// Sets whether tokens are drawn at random, by their probabilities.
        sample: bool = false,
        /// Sets the number by which logits are divided: below 1, probable tokens become more probable.
        temperature: f32 = 1.0,
        /// Sets the number of most probable tokens from which one is drawn; 0 is all of them.
        top_k: usize = 0,
        /// Sets the probability that the tokens have together from which one is drawn, the most probable first.
        top_p: f32 = 1.0,
        /// Sets the tokens after which it ends. A stop token is returned.
        stop_tokens: Vec<u32> as impl Into<Vec<u32>> = Vec::new(),
        /// Sets the seed, which determines the tokens that are drawn.
        seed: u64 = 0,
        /// Sets the number of tokens for which keys and values have room, at most the network's context. The less, the less memory
        /// and time each token takes. By default it is the power of two that has room for the prompt and the new tokens, at least
        /// 64: texts of different lengths then have few different shapes.
        context: Option<usize> as impl Into<Option<usize>> = None,
    }
}

/// Picks tokens.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    sample: bool,
    temperature: f64,
    top_k: usize,
    top_p: f64,
    random: fastrand::Rng,
}

impl Sampler {
    pub(super) fn new(options: &GenerateOptions) -> Result<Self> {
        let (temperature, top_p) = (options.temperature, options.top_p);
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::Data(message!(
                "generate: temperature is {temperature}; it must be above 0. For the most probable token, leave sample false."
            )));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(Error::Data(message!(
                "generate: top_p is {top_p}; it must be above 0 and at most 1."
            )));
        }
        Ok(Sampler {
            sample: options.sample,
            temperature: f64::from(temperature),
            top_k: options.top_k,
            top_p: f64::from(top_p),
            random: fastrand::Rng::with_seed(options.seed),
        })
    }

    /// The token picked by its logits.
    pub(super) fn pick(&mut self, logits: &[f32]) -> Result<u32> {
        let best = logits
            .iter()
            .enumerate()
            .fold(0, |best, (at, x)| if *x > logits[best] { at } else { best });
        if logits.get(best).is_none_or(|x| !x.is_finite()) || logits.iter().any(|x| x.is_nan()) {
            return Err(Error::Data(
                "generate: the network's logits are not finite numbers. Check its weights.".into(),
            ));
        }
        if !self.sample {
            return Ok(best as u32);
        }
        let largest = f64::from(logits[best]);
        let weight = |at: usize| ((f64::from(logits[at]) - largest) / self.temperature).exp();
        let mut tokens: Vec<(usize, f64)> = (0..logits.len()).map(|at| (at, weight(at))).collect();
        // The most probable first; of equal ones, the first.
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if self.top_k > 0 {
            tokens.truncate(self.top_k);
        }
        if self.top_p < 1.0 {
            let all: f64 = tokens.iter().map(|token| token.1).sum();
            let mut sum = 0.0;
            let kept = tokens.iter().take_while(|token| {
                let before = sum;
                sum += token.1;
                before < self.top_p * all
            });
            let kept = kept.count();
            tokens.truncate(kept.max(1));
        }
        let mut left = self.random.f64() * tokens.iter().map(|token| token.1).sum::<f64>();
        let drawn = tokens.iter().find(|token| {
            left -= token.1;
            left < 0.0
        });
        Ok(drawn.or(tokens.last()).map_or(best, |token| token.0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of the tokens is picked in a thousand draws.
    fn counts(options: GenerateOptions, logits: &[f32]) -> Vec<usize> {
        let mut sampler = Sampler::new(&options.sample(true)).unwrap();
        let mut counts = vec![0; logits.len()];
        for _ in 0..1000 {
            counts[sampler.pick(logits).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn draws_follow_the_options() {
        // Probabilities of 0.5, 0.3 and 0.2.
        let logits = [0.5f32, 0.2, 0.3].map(f32::ln);
        let all = counts(GenerateOptions::new(), &logits);
        // Three deviations of a binomial distribution are below 48.
        assert!(
            all[0].abs_diff(500) < 48 && all[1].abs_diff(200) < 48 && all[2].abs_diff(300) < 48
        );
        assert_eq!(counts(GenerateOptions::new(), &logits), all);
        assert_ne!(counts(GenerateOptions::new().seed(1), &logits), all);
        assert_eq!(counts(GenerateOptions::new().top_k(1), &logits), [1000, 0, 0]);
        assert_eq!(counts(GenerateOptions::new().top_k(2), &logits)[1], 0);
        assert_eq!(counts(GenerateOptions::new().top_p(0.5), &logits), [1000, 0, 0]);
        assert_eq!(counts(GenerateOptions::new().top_p(0.6), &logits)[1], 0);
        // Squares of the probabilities: 25, 4 and 9 of 38.
        let cold = counts(GenerateOptions::new().temperature(0.5), &logits);
        assert!(cold[0].abs_diff(658) < 48 && cold[1].abs_diff(105) < 48);
        let mut greedy = Sampler::new(&GenerateOptions::new()).unwrap();
        assert_eq!(greedy.pick(&[1.0, 3.0, 3.0]).unwrap(), 1);
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        let error = |options: GenerateOptions| Sampler::new(&options).unwrap_err().to_string();
        assert_eq!(
            error(GenerateOptions::new().temperature(0.0)),
            "generate: temperature is 0; it must be above 0. For the most probable token, leave sample false."
        );
        assert_eq!(
            error(GenerateOptions::new().top_p(1.5)),
            "generate: top_p is 1.5; it must be above 0 and at most 1."
        );
        let mut sampler = Sampler::new(&GenerateOptions::new()).unwrap();
        assert_eq!(
            sampler.pick(&[f32::NAN, 1.0]).unwrap_err().to_string(),
            "generate: the network's logits are not finite numbers. Check its weights."
        );
    }
}
