//! Which invocations of a workgroup take part.

/// The most invocations of a workgroup, as WebGPU's adapters allow them.
pub(crate) const MOST: usize = 1024;

/// A set of invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mask([u64; MOST / 64]);

impl Mask {
    pub(crate) fn first(count: usize) -> Self {
        (0..count).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn contains(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, lane: usize) {
        self.0[lane / 64] |= 1 << (lane % 64);
    }

    pub(crate) fn add(&mut self, other: &Mask) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn remove(&mut self, other: &Mask) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
    }

    /// The members in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit)
            })
        })
    }
}

impl FromIterator<usize> for Mask {
    fn from_iter<I: IntoIterator<Item = usize>>(lanes: I) -> Self {
        let mut mask = Mask::default();
        lanes.into_iter().for_each(|lane| mask.insert(lane));
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_listed_in_order() {
        let mut mask: Mask = [3, 64, 700].into_iter().collect();
        mask.add(&Mask::first(2));
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 3, 64, 700]);
        mask.remove(&Mask::first(64));
        assert_eq!(mask.iter().collect::<Vec<_>>(), [64, 700]);
        assert_eq!((mask.len(), mask.contains(64), mask.contains(3)), (2, true, false));
        assert!(!mask.is_empty() && Mask::default().is_empty());
    }
}
