//! New seeds from a seed, as `tf.random.split` and `tf.random.fold_in` make them.

use super::philox::seeded_words;
use crate::error::{Error, Result, message};

/// Makes `num` seeds from one; draws with them are independent of each other and of draws with `seed`, which should not
/// be used again (`tf.random.split`).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::random;
/// let seeds = random::split([1, 2], 3)?;
/// let weights = random::stateless_normal([4, 4], seeds[0])?;
/// let noise = random::stateless_normal([4, 4], seeds[1])?;
/// assert_ne!(weights.to_vec::<f32>()?, noise.to_vec::<f32>()?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Index`] if the host has no memory for that many seeds.
pub fn split(seed: [i32; 2], num: usize) -> Result<Vec<[i32; 2]>> {
    let mut seeds: Vec<[i32; 2]> = Vec::new();
    if num > usize::MAX / 2 || seeds.try_reserve_exact(num).is_err() {
        return Err(Error::Index(message!(
            "split: the host has no memory for {num} seeds. Split in several steps."
        )));
    }
    let mut words = seeded_words(seed, 2 * num).map(|word| word as i32);
    while let (Some(a), Some(b)) = (words.next(), words.next()) {
        seeds.push([a, b]);
    }
    Ok(seeds)
}

/// Makes a seed from a seed and a number, such as that of a step or a replica (`tf.random.fold_in`). Different numbers
/// return seeds whose draws are independent of each other.
///
/// ```
/// use wgrad::random;
/// let seed = [1, 2];
/// assert_ne!(random::fold_in(seed, 0), random::fold_in(seed, 1));
/// ```
pub fn fold_in(seed: [i32; 2], data: i32) -> [i32; 2] {
    let first = seeded_words(seed, 1).next().unwrap_or_default();
    [first as i32, data]
}

/// The seeds that [`split`] splits in two.
pub(super) fn pair(seed: [i32; 2]) -> [[i32; 2]; 2] {
    let mut words = seeded_words(seed, 4).map(|word| word as i32);
    let mut next = || words.next().unwrap_or_default();
    [[next(), next()], [next(), next()]]
}
