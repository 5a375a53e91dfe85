//! A fast hash.

use std::hash::Hasher;

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut mixer = Mixer::default();
    mixer.write(bytes);
    mixer.finish()
}

/// A fast hash for tables whose keys no attacker chooses: one multiplication for eight bytes.
#[derive(Default)]
pub(crate) struct Mixer(pub(crate) u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        // An odd number with bits set all over the word; the rotation keeps zeros from being
        // absorbed.
        let product = u128::from(self.0.rotate_left(23) ^ word ^ 0x9e37_79b9_7f4a_7c15)
            * u128::from(0xd6e8_feb8_6659_fd93u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let in_lines = if bytes.len() < 128 { 0 } else { bytes.len() - bytes.len() % 64 };
        let (lines, bytes) = bytes.split_at(in_lines);
        if !lines.is_empty() {
            // A processor multiplies for eight mixers at once; one alone waits for each product.
            let mut mixers: [Mixer; 8] =
                std::array::from_fn(|i| Mixer(self.0.wrapping_add(i as u64)));
            for line in lines.chunks_exact(64) {
                for (mixer, bytes) in mixers.iter_mut().zip(line.chunks_exact(8)) {
                    mixer.mix(word(bytes));
                }
            }
            mixers.iter().for_each(|mixer| self.mix(mixer.0));
        }
        let mut words = bytes.chunks_exact(8);
        for bytes in &mut words {
            self.mix(word(bytes));
        }
        let rest = words.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_ne_bytes(last) ^ ((lines.len() + bytes.len()) as u64).rotate_right(8));
    }

    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.mix(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
