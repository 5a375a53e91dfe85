//! Philox on the host: how a seed becomes a key and a counter, and the runtime scalars of the op
//! that draws.

use crate::graph::RuntimeScalars;

/// TensorFlow scrambles a seed with Philox itself: key 0x02461e293ec8f720, the seed as the counter.
pub(super) fn seeded([a, b]: [i32; 2]) -> RuntimeScalars {
    let (key, counter) = position([a, b]);
    words(key, counter)
}

/// The key and the counter at which the numbers of a seed begin.
fn position([a, b]: [i32; 2]) -> ([u32; 2], [u32; 4]) {
    let wide = |s: i32| u128::from(i64::from(s) as u64);
    let mixed = philox(counter_words(wide(a) | wide(b) << 64), [0x3ec8_f720, 0x0246_1e29]);
    ([mixed[0], mixed[1]], [0, 0, mixed[2], mixed[3]])
}

/// The first `n` words of a seed's numbers.
pub(super) fn seeded_words(seed: [i32; 2], n: usize) -> impl Iterator<Item = u32> {
    let (key, [_, _, high, top]) = position(seed);
    let block = move |at: usize| {
        let at = at as u64;
        philox([at as u32, (at >> 32) as u32, high, top], key)
    };
    (0..n.div_ceil(4)).flat_map(block).take(n)
}

/// The runtime scalars of the op that draws.
pub(super) fn words(key: [u32; 2], counter: [u32; 4]) -> RuntimeScalars {
    key.into_iter().chain(counter).collect()
}

pub(super) fn counter_words(counter: u128) -> [u32; 4] {
    std::array::from_fn(|i| (counter >> (32 * i)) as u32)
}

pub(super) fn key_words(key: u64) -> [u32; 2] {
    [key as u32, (key >> 32) as u32]
}

/// Philox 4x32-10, as in `shaders/prelude.wgsl`.
pub(super) fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = 0xD251_1F53u64 * u64::from(c[0]);
        let b = 0xCD9E_8D57u64 * u64::from(c[2]);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    // The test vectors of the Random123 distribution.
    #[test]
    fn philox_matches_its_test_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
