//! Attention over long sequences: its memory, and its results according to the definition.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::{AttentionOptions, Device, GradientTape, Tensor};

/// The scores of this call would need 192 MiB, and those of its gradients as much again.
#[test]
fn long_sequences_never_store_their_scores() -> tf::Result<()> {
    const HEADS: usize = 3;
    const LEN: usize = 4096;
    let device = Device::new()?;
    device.scope(|| {
        let draw = |seed| tf::random::Generator::from_seed(seed).normal([HEADS, LEN, 4]);
        let (q, k, v) = (draw(1)?, draw(2)?, draw(3)?);
        device.synchronize()?;
        let before = device.stats().live_bytes;
        let tape = GradientTape::new();
        for x in [&q, &k, &v] {
            tape.watch(x)?;
        }
        let y = tf::scaled_dot_product_attention(&q, &k, &v, AttentionOptions::new())?;
        let grads = tape.gradient(&y, [&q, &k, &v])?;
        device.synchronize()?;
        let peak = device.stats().peak_bytes - before;
        let scores = (4 * HEADS * LEN * LEN) as u64;
        assert!(peak < scores / 32, "{peak} bytes; the scores would take {scores}");

        // One row with sums in f64.
        let read = |x: &Tensor| x.to_vec::<f32>();
        let (q, k, v, y) = (read(&q)?, read(&k)?, read(&v)?, read(&y)?);
        let row = LEN + 1234;
        let at = |x: &[f32], row: usize, d: usize| f64::from(x[row * 4 + d]);
        let weight = |s: usize| {
            let score: f64 = (0..4).map(|d| at(&q, row, d) * at(&k, LEN + s, d)).sum();
            (score / 2.0).exp()
        };
        let total: f64 = (0..LEN).map(weight).sum();
        for d in 0..4 {
            let sum: f64 = (0..LEN).map(|s| weight(s) * at(&v, LEN + s, d)).sum();
            let (got, want) = (at(&y, row, d), sum / total);
            assert!((got - want).abs() < 1e-5, "{d}: {got}, not {want}");
        }
        // A weight's row sums to 1, so the values' gradients sum to the number of queries.
        let dv: f64 = read(grads[2].as_ref().unwrap())?.into_iter().map(f64::from).sum();
        assert!((dv - (4 * HEADS * LEN) as f64).abs() < 1.0, "{dv}");
        Ok(())
    })
}
