//! Lists, made and kept in order with little code: a page loads what std's `collect` and `sort` bring for each kind of
//! iterator and element.

/// Gathers what an iterator gives.
pub(crate) trait Listed: Iterator + Sized {
    /// As `collect` into a `Vec`, for where room need not be made beforehand.
    fn listed(self) -> Vec<Self::Item> {
        let mut list = Vec::new();
        self.for_each(|item| list.push(item));
        list
    }
}

impl<I: Iterator> Listed for I {}

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

    #[test]
    fn an_iterator_is_listed_in_its_order() {
        assert_eq!((0..6).filter(|n| n % 2 == 1).listed(), [1, 3, 5]);
        assert!((0..6).filter(|n| *n > 6).listed().is_empty());
    }
}
