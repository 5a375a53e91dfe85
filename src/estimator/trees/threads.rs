//! Work on many items, on the threads of the pool that datasets use. Targets without threads do it in this one.

/// The number of rows that a thread takes together. Sums are made of the sums of such blocks, in their order, so that they do not
/// depend on the number of threads.
pub(super) const BLOCK: usize = 4096;

/// The least number of elementary steps for which a second thread pays.
const ENOUGH: usize = 1 << 15;

/// Calls `f` with each item and its index. `work` is about the number of elementary steps of all calls together.
pub(super) fn each<T: Send>(items: &mut [T], work: usize, f: impl Fn(usize, &mut T) + Sync) {
    match work >= ENOUGH {
        true => halves(items, 0, &f),
        false => items.iter_mut().enumerate().for_each(|(at, item)| f(at, item)),
    }
}

#[cfg(not(target_family = "wasm"))]
fn halves<T: Send>(items: &mut [T], first: usize, f: &(impl Fn(usize, &mut T) + Sync)) {
    match items {
        [] => {}
        [item] => f(first, item),
        _ => {
            let middle = items.len() / 2;
            let (left, right) = items.split_at_mut(middle);
            rayon_core::join(|| halves(left, first, f), || halves(right, first + middle, f));
        }
    }
}

#[cfg(target_family = "wasm")]
fn halves<T: Send>(items: &mut [T], first: usize, f: &(impl Fn(usize, &mut T) + Sync)) {
    items.iter_mut().enumerate().for_each(|(at, item)| f(first + at, item));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_visited_once_with_its_index() {
        for (count, work) in [(0, 1 << 20), (1, 1 << 20), (1000, 1 << 20), (1000, 0)] {
            let mut items = vec![0usize; count];
            each(&mut items, work, |at, item| *item += at + 1);
            assert!(items.iter().enumerate().all(|(at, item)| *item == at + 1));
        }
    }
}
