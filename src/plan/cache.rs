//! Plans by structure. The longest unused go first when there are too many.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use super::{Plan, PlanReport};

#[derive(Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Box<[u8]>, (u64, Plan), BuildHasherDefault<KeyHasher>>,
    clock: u64,
    last: Option<PlanReport>,
}

/// Plans kept; a program that loops needs a handful.
const LIMIT: usize = 256;

impl PlanCache {
    /// The plan for `key` and whether it was known; `make` is asked if it was not.
    pub(crate) fn get(&mut self, key: Box<[u8]>, make: impl FnOnce() -> Plan) -> (&mut Plan, bool) {
        self.clock += 1;
        let known = self.plans.contains_key(&key);
        if !known && self.plans.len() >= LIMIT {
            self.evict();
        }
        let clock = self.clock;
        let entry = self.plans.entry(key).or_insert_with(|| (clock, make()));
        entry.0 = clock;
        if !known && prints() {
            log::info!("{}", entry.1.report);
        }
        self.last = Some(entry.1.report.clone());
        (&mut entry.1, known)
    }

    /// The plan that was asked for last.
    pub(crate) fn last(&self) -> Option<PlanReport> {
        self.last.clone()
    }

    /// Drops every plan, and with them the bind groups that name buffers.
    pub(crate) fn clear(&mut self) {
        self.plans.clear();
    }

    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.plans.values().map(|(used, _)| *used).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        self.plans.retain(|_, (used, _)| *used > limit);
    }
}

/// Whether `WGRAD_PRINT_PLANS` asks for a table of every new plan.
fn prints() -> bool {
    static PRINTS: OnceLock<bool> = OnceLock::new();
    *PRINTS.get_or_init(|| {
        std::env::var("WGRAD_PRINT_PLANS").is_ok_and(|value| !value.is_empty() && value != "0")
    })
}

/// Hashes eight bytes at a time: a key has kilobytes and is looked up at every step, where the standard hasher
/// took a tenth of the flush. Keys come from the program itself, so nobody chooses them to collide.
#[derive(Default)]
struct KeyHasher(u64);

impl KeyHasher {
    fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut buffer = [0; 8];
            buffer.copy_from_slice(word);
            self.mix(u64::from_le_bytes(buffer));
        }
        let rest = words.remainder();
        let mut buffer = [0; 8];
        buffer[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(buffer));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_that_differ_in_a_bit_hash_apart() {
        let hash = |key: &[u8]| {
            let mut hasher = KeyHasher::default();
            hasher.write(key);
            hasher.finish()
        };
        let mut hashes = HashSet::new();
        let mut low = [0; 64];
        for len in [1usize, 7, 8, 9, 100] {
            for bit in 0..8 * len {
                let mut key = vec![0u8; len];
                key[bit / 8] |= 1 << (bit % 8);
                let hash = hash(&key);
                // The last word is filled up with zeros; the slice's own hash adds its length.
                hashes.insert((len, hash));
                low[hash as usize % 64] += 1;
            }
        }
        assert_eq!(hashes.len(), 8 * (1 + 7 + 8 + 9 + 100));
        // A thousand over 64 places: 16 each if they fall evenly.
        assert!(low.iter().all(|n| (3..48).contains(n)), "{low:?}");
    }
}
