//! TensorFlow's hashes of strings: FarmHash64, SipHash-2-4, and how it joins two of them.
//!
//! Sources: `Fingerprint64` and `FingerprintCat64` in `tsl/platform/fingerprint.h`, `StrongKeyedHash` in
//! `tsl/platform/strong_hash.h`, `HashCrosser` in `core/kernels/sparse_cross_op.cc`.

use siphasher::sip::SipHasher24;

/// The key from which crosses start: `_DEFAULT_HASH_KEY` of `tf.sparse.cross_hashed`.
pub(crate) const CROSS_KEY: u64 = 0x00DE_CAFC_AFFE;

/// `tf.strings.to_hash_bucket_fast`, without the division.
pub(crate) fn fast(text: &[u8]) -> u64 {
    farmhash::fingerprint64(text)
}

/// `tf.strings.to_hash_bucket_strong`, without the division.
pub(crate) fn strong(text: &[u8], key: [i64; 2]) -> u64 {
    SipHasher24::new_with_keys(key[0] as u64, key[1] as u64).hash(text)
}

/// The bin of a string.
pub(crate) fn bin(text: &[u8], salt: Option<[i64; 2]>, bins: u64) -> i64 {
    let hash = salt.map_or_else(|| fast(text), |key| strong(text, key));
    // Less than `bins`, which is at most i64::MAX.
    (hash % bins) as i64
}

/// The bin of values that are crossed, each as its integer or the hash of its string; `key` is where crosses start.
pub(crate) fn cross(values: impl Iterator<Item = u64>, key: u64, bins: u64) -> i64 {
    (values.fold(key, join) % bins) as i64
}

/// `FingerprintCat64`.
fn join(a: u64, b: u64) -> u64 {
    const MUL: u64 = 0xC6A4_A793_5BD1_E995;
    let mix = |x: u64| x ^ (x >> 47);
    let joined = (a ^ MUL) ^ mix(b.wrapping_mul(MUL)).wrapping_mul(MUL);
    mix(mix(joined.wrapping_mul(MUL)).wrapping_mul(MUL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_tensorflow() {
        // tf.strings.to_hash_bucket_fast and _strong with 2^62 bins, key [1, 2].
        assert_eq!(bin(b"hello", None, 1 << 62), 3_786_372_426_573_024_488);
        let long = b"a much longer text of more than sixty four characters, so that blocks repeat";
        let strong = [
            (&b"hello"[..], 2_957_200_328_589_801_622),
            (b"", 443_797_209_252_341_627),
            (b"a", 546_566_331_822_570_742),
            (long, 1_439_049_976_589_089_959),
        ];
        for (text, hash) in strong {
            assert_eq!(bin(text, Some([1, 2]), 1 << 62), hash);
        }
        // HashedCrossing(1 << 40).
        let of = |a: u64, b: u64| cross([a, b].into_iter(), CROSS_KEY, 1 << 40);
        assert_eq!(of(fast(b"x"), fast(b"y")), 483_978_218_192);
        assert_eq!(of(3, -4i64 as u64), 418_543_876_761);
        assert_eq!(of(fast(b"x"), 5), 270_120_273_806);
    }
}
