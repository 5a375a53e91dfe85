//! Random graphs with a given number of calls: each call reads existing values, preferably recent
//! ones.

use wgrad::{Result, Tensor, concat};

use super::ramp;

/// The same numbers in every run: xorshift (Marsaglia 2003).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as usize) % n
    }
}

/// The values, and whether each has been read.
struct Values(Vec<(Tensor, bool)>);

impl Values {
    /// One of the last twenty, or any value.
    fn pick(&mut self, rng: &mut Rng) -> Tensor {
        let n = self.0.len();
        let back = if rng.below(4) == 0 { rng.below(n) } else { rng.below(n.min(20)) };
        let (value, read) = &mut self.0[n - 1 - back];
        *read = true;
        value.clone()
    }
}

/// A graph of about `calls` calls on tensors of [4, 6].
pub fn graph(calls: usize, seed: u64) -> Result<Vec<Tensor>> {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ (seed << 7 | 1));
    let mut values = Values((0..3).map(|k| Ok((ramp(&[4, 6], k)?, true))).collect::<Result<_>>()?);
    let (w, row) = (ramp(&[6, 6], 5)?.multiply(0.25)?, ramp(&[6], 9)?);
    let mut made = 0;
    while made < calls {
        let x = values.pick(&mut rng);
        let (y, count) = match rng.below(14) {
            0 => (x.tanh()?, 1),
            1 => (x.sigmoid()?, 1),
            2 => (x.multiply(0.5)?, 1),
            3 => (x.multiply(&row)?, 1),
            4..=6 => (x.subtract(values.pick(&mut rng))?.multiply(0.5)?, 2),
            7 => (x.maximum(values.pick(&mut rng))?, 1),
            8 => (
                x.subtract(x.reduce_mean(wgrad::Axes::from(-1).keepdims(true))?)?.multiply(0.5)?,
                3,
            ),
            9 => (
                values
                    .pick(&mut rng)
                    .add(x.reduce_max(wgrad::Axes::from(0).keepdims(true))?)?
                    .multiply(0.5)?,
                3,
            ),
            10 => (x.subtract(x.reduce_sum(())?.tanh()?)?.multiply(0.5)?, 4),
            11 => (x.matmul(&w)?.tanh()?, 2),
            12 => {
                let at = 1 + rng.below(5);
                let head = x.slice(&[0, 0], &[4, at as i64])?;
                let tail = x.slice(&[0, at], &[4, -1])?;
                (concat([&tail, &head], 1)?, 3)
            }
            _ => {
                let other = values.pick(&mut rng);
                let (top, bottom) = (x.slice(&[1, 0], &[2, 6])?, other.slice(&[0, 0], &[2, 6])?);
                (concat([&top, &bottom], 0)?, 3)
            }
        };
        values.0.push((y, false));
        made += count;
    }
    // The results are the values that no call has read.
    Ok(values.0.into_iter().filter(|(_, read)| !read).map(|(value, _)| value).collect())
}
