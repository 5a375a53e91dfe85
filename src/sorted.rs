//! Lists in order, by less code than std's sorts, of which a page would load kilobytes for each type of element.

/// The items by what `key` gives for each. Those of equal keys stay in the order that they have.
pub(crate) fn sorted_by_key<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    sorted(items.into_iter().collect(), &key)
}

/// Lists of up to so many items are sorted by inserting one after the other.
const SHORT: usize = 32;

/// A merge sort: the planner's lists may be as long as a program.
fn sorted<T, K: Ord>(mut items: Vec<T>, key: &impl Fn(&T) -> K) -> Vec<T> {
    let mut all = Vec::with_capacity(items.len());
    if items.len() <= SHORT {
        for item in items {
            let place = key(&item);
            all.insert(all.partition_point(|known| key(known) <= place), item);
        }
        return all;
    }
    let mut right = sorted(items.split_off(items.len() / 2), key).into_iter().peekable();
    for item in sorted(items, key) {
        while let Some(smaller) = right.next_if(|other| key(other) < key(&item)) {
            all.push(smaller);
        }
        all.push(item);
    }
    all.extend(right);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_stay_in_order() {
        let items = [(3, 'a'), (1, 'b'), (2, 'c'), (1, 'd'), (3, 'e')];
        let sorted = [(1, 'b'), (1, 'd'), (2, 'c'), (3, 'a'), (3, 'e')];
        assert_eq!(sorted_by_key(items, |(number, _)| *number), sorted);
    }

    #[test]
    fn long_lists_are_merged() {
        for count in [0, 1, 31, 32, 33, 34, 64, 65, 1000, 4099] {
            let items: Vec<(usize, usize)> = (0..count).map(|i| (i * 7919 % 101, i)).collect();
            let mut want = items.clone();
            want.sort_by_key(|(number, _)| *number);
            assert_eq!(sorted_by_key(items, |(number, _)| *number), want);
        }
    }
}
