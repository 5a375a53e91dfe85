//! Lifetimes to slots: values that never live at the same time share a buffer.

/// Hands out slots while the steps are laid down in order.
#[derive(Default)]
pub(super) struct Slots {
    bytes: Vec<u64>,
    free: Vec<u32>,
}

impl Slots {
    /// A slot of at least `bytes`. One that outlives the run gets a buffer of its own (`keep`), as its size
    /// stays in use after the plan is done.
    pub(super) fn take(&mut self, bytes: u64, keep: bool) -> u32 {
        if !keep {
            // The smallest that fits, unless most of it would lie idle.
            let fits = |&slot: &u32| {
                let size = self.bytes[slot as usize];
                size >= bytes && size <= bytes.saturating_mul(4).max(4096)
            };
            let best = (0..self.free.len())
                .filter(|&i| fits(&self.free[i]))
                .min_by_key(|&i| self.bytes[self.free[i] as usize]);
            if let Some(i) = best {
                return self.free.swap_remove(i);
            }
        }
        self.bytes.push(bytes);
        self.bytes.len() as u32 - 1
    }

    /// The value in `slot` is read no more.
    pub(super) fn release(&mut self, slot: u32) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} is released twice");
        self.free.push(slot);
    }

    pub(super) fn bytes(&self, slot: u32) -> u64 {
        self.bytes[slot as usize]
    }

    pub(super) fn into_bytes(self) -> Vec<u64> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_slot_serves_again() {
        let mut slots = Slots::default();
        let a = slots.take(1000, false);
        let b = slots.take(1000, false);
        assert_ne!(a, b);
        slots.release(a);
        assert_eq!(slots.take(900, false), a);
        slots.release(b);
        // What outlives the run never shares.
        assert_ne!(slots.take(1000, true), b);
        // A slot that would be mostly idle is not taken.
        assert_eq!(slots.take(8, false), b);
        assert_eq!(slots.into_bytes(), [1000, 1000, 1000]);
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut slots = Slots::default();
        let [large, small] = [slots.take(100_000, false), slots.take(50_000, false)];
        slots.release(large);
        slots.release(small);
        assert_eq!(slots.take(40_000, false), small);
        assert_eq!(slots.take(1_000, false), 2);
    }
}
