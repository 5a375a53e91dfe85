//! Signatures of calls: hashes that are equal in all processes, whatever machines they run on.

use crate::tensor::Tensor;

/// FNV-1a, continued from `start` (<http://www.isthe.com/chongo/tech/comp/fnv/>).
pub(super) fn hash(bytes: impl IntoIterator<Item = u8>, start: u64) -> u64 {
    bytes.into_iter().fold(start ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A hash of texts.
pub(crate) fn hash_of(words: &[String]) -> u64 {
    hash(words.iter().flat_map(|word| word.bytes().chain([0])), 0)
}

/// A hash of the dtypes and shapes of tensors, continued from `start`.
pub(super) fn hash_of_tensors(tensors: &[Option<Tensor>], start: u64) -> u64 {
    tensors.iter().fold(start, |start, tensor| match tensor {
        None => hash([0], start),
        Some(tensor) => {
            let sizes = tensor.shape().iter().flat_map(|size| (*size as u64).to_le_bytes());
            hash(tensor.dtype().name().bytes().chain([0]).chain(sizes), start)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_has_another_hash() {
        let words = |words: &[&str]| {
            hash_of(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
        };
        assert_ne!(words(&["ab", "c"]), words(&["a", "bc"]));
        assert_ne!(words(&["a"]), words(&["a", ""]));
        let tensor = |shape: &[usize]| Some(Tensor::zeros(shape).unwrap());
        let all = [
            hash_of_tensors(&[tensor(&[2, 3])], 1),
            hash_of_tensors(&[tensor(&[3, 2])], 1),
            hash_of_tensors(&[tensor(&[2, 3])], 2),
            hash_of_tensors(&[tensor(&[2, 3]), None], 1),
            hash_of_tensors(&[None, tensor(&[2, 3])], 1),
        ];
        let different: std::collections::HashSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
