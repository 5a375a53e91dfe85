//! Short lists in order: std's sorts are made for long ones, and a page would load kilobytes of them for each type of element.

/// The items by what `key` gives for each. Those of equal keys stay in the order that they have.
pub(crate) fn sorted_by_key<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::new();
    for item in items {
        let place = key(&item);
        sorted.insert(sorted.partition_point(|known| key(known) <= place), item);
    }
    sorted
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
}
