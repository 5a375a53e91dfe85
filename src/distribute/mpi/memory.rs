//! [`Memory`]: where MPI puts sums. It is kept for later sums, because the first write to new memory costs more than the sum.

use std::sync::{Arc, Mutex, PoisonError};

/// Kept at most, in bytes.
const KEPT: usize = 64 << 20;

/// The memory that no sum uses now.
#[derive(Default, Clone)]
pub(super) struct Memories(Arc<Mutex<Vec<Vec<f32>>>>);

/// Memory for a sum, which returns when this is dropped.
pub(super) struct Memory {
    floats: Vec<f32>,
    home: Memories,
}

impl Memories {
    /// Memory for `len` values; what they are is unknown.
    pub(super) fn take(&self, len: usize) -> Memory {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that has room.
        let fits = |at: &usize| kept[*at].capacity() >= len;
        let best = (0..kept.len()).filter(fits).min_by_key(|at| kept[*at].capacity());
        let mut floats = best.map(|at| kept.swap_remove(at)).unwrap_or_default();
        drop(kept);
        floats.resize(len, 0.0);
        Memory { floats, home: self.clone() }
    }
}

impl Memory {
    pub(super) fn floats(&mut self) -> &mut [f32] {
        &mut self.floats
    }
}

impl AsRef<[f32]> for Memory {
    fn as_ref(&self) -> &[f32] {
        &self.floats
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut kept = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = kept.iter().map(|floats| floats.capacity() * 4).sum();
        if bytes + self.floats.capacity() * 4 <= KEPT {
            kept.push(std::mem::take(&mut self.floats));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_up_to_a_limit() {
        let memories = Memories::default();
        let mut first = memories.take(1000);
        first.floats().fill(3.0);
        let at = first.as_ref().as_ptr();
        let second = memories.take(10);
        drop(first);
        // The second is in use still, and is too small.
        let third = memories.take(900);
        assert_eq!((third.as_ref().as_ptr(), third.as_ref().len()), (at, 900));
        drop((second, third));
        // The smaller one fits better.
        let small = memories.take(5);
        assert_ne!(small.as_ref().as_ptr(), at);
        assert_eq!(memories.0.lock().unwrap().len(), 1);

        let many: Vec<Memory> = (0..5).map(|_| memories.take(KEPT / 16)).collect();
        drop((many, small));
        let kept = memories.0.lock().unwrap();
        let bytes: usize = kept.iter().map(|floats| floats.capacity() * 4).sum();
        assert!(bytes <= KEPT && bytes > KEPT / 2, "{bytes}");
    }
}
