//! Sorting with less code than std's sorts, which add kilobytes to a web page for each element type.

/// The items, sorted by `key`. Items with equal keys keep their order.
pub(crate) fn sorted_by_key<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let items: Vec<T> = items.into_iter().collect();
    let places = order(items.len(), &|a, b| key(&items[a]) <= key(&items[b]));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    places.into_iter().filter_map(|place| items[place].take()).collect()
}

/// The sorted indices of `count` items, by a merge sort from runs of 1 upwards: the planner's lists may be as long as a
/// program. `in_order` returns whether the item at one index may precede that at another.
fn order(count: usize, in_order: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    let mut merged = places.clone();
    let mut run = 1;
    while run < count {
        for start in (0..count).step_by(2 * run) {
            let (middle, end) = ((start + run).min(count), (start + 2 * run).min(count));
            let (mut left, mut right) = (start, middle);
            for place in &mut merged[start..end] {
                let from_left =
                    right == end || (left < middle && in_order(places[left], places[right]));
                let next = if from_left { &mut left } else { &mut right };
                *place = places[*next];
                *next += 1;
            }
        }
        std::mem::swap(&mut places, &mut merged);
        run *= 2;
    }
    places
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
