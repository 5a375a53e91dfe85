//! Sorts by a comparison or a key, with little code.
//!
//! The standard library's stable sort is 5 kB of WebAssembly for each type and comparison. These functions share one copy of it,
//! which sorts positions; the elements are moved afterwards. Use them where the time of a sort does not matter.

use std::cmp::Ordering;

/// As `slice::sort_by`: equal elements keep their order.
pub(crate) fn sort_by<T>(elements: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted(elements.len(), &|a, b| compare(&elements[a], &elements[b]));
    // `order[i]` is the position of the element that belongs at `i`. Each cycle is moved and closed.
    for start in 0..order.len() {
        let mut at = start;
        while order[at] != start {
            let from = std::mem::replace(&mut order[at], at);
            elements.swap(at, from);
            at = from;
        }
        order[at] = at;
    }
}

/// As `slice::sort_by_key`: elements with equal keys keep their order.
pub(crate) fn sort_by_key<T, K: Ord>(elements: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(elements, |a, b| key(a).cmp(&key(b)));
}

/// The positions `0..len` in sorted order. It is not generic, so that the program contains one sort.
fn sorted(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_sorted_and_equal_ones_keep_their_order() {
        // A linear congruential generator, after Numerical Recipes.
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for len in (0..40).chain([1_000]) {
            let list: Vec<(u32, String)> =
                (0..len).map(|i| (next() % (len / 2 + 1), i.to_string())).collect();
            let mut want = list.clone();
            want.sort_by_key(|(key, _)| *key);
            let mut got = list.clone();
            sort_by_key(&mut got, |(key, _)| *key);
            assert_eq!(got, want);
            let mut want = list.clone();
            want.sort_by(|a, b| b.cmp(a));
            let mut got = list;
            sort_by(&mut got, |a, b| b.cmp(a));
            assert_eq!(got, want);
        }
    }
}
