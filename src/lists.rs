//! Lists kept in order with little code: a page loads what std's `sort` brings for each kind of element.

/// Adds `value` to a list in ascending order, behind those that equal it.
pub(crate) fn insert_sorted<T: Ord>(list: &mut Vec<T>, value: T) {
    list.insert(list.partition_point(|known| *known <= value), value);
}

/// As [`insert_sorted`], unless the list has the value.
pub(crate) fn insert_new<T: Ord>(list: &mut Vec<T>, value: T) {
    if let Err(at) = list.binary_search(&value) {
        list.insert(at, value);
    }
}

/// Brings words into ascending order. One function for all who sort, as each kind of sort is code of its own.
#[inline(never)]
pub(crate) fn sort(words: &mut [u64]) {
    words.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stay_in_order() {
        let mut list = Vec::new();
        [3, 1, 2, 3, 0].into_iter().for_each(|n| insert_sorted(&mut list, n));
        assert_eq!(list, [0, 1, 2, 3, 3]);
        [3, 5, 4, 5].into_iter().for_each(|n| insert_new(&mut list, n));
        assert_eq!(list, [0, 1, 2, 3, 3, 4, 5]);
    }
}
