//! The order in which the calls of a model are made.

use std::collections::HashMap;

/// A call: its layer, and its index among that layer's calls.
pub(super) type CallOf = (usize, usize);

/// All calls that can be made, each after those whose results it uses, and those of one layer in their order. `made` is the
/// number of calls that each layer already has. `takes` returns the calls whose results a call uses, or nothing if the layer
/// has no such call; it is called once for each.
pub(super) fn in_order<T: Iterator<Item = CallOf>>(
    mut made: Vec<usize>,
    takes: impl Fn(usize, usize) -> Option<T>,
) -> Vec<CallOf> {
    let mut order = Vec::new();
    // For each call that is not made yet, the layers whose next call waits for it; for each layer, the number of calls that its
    // next call waits for.
    let mut waiting: HashMap<CallOf, Vec<usize>> = HashMap::new();
    let mut missing = vec![0; made.len()];
    // Layers whose next call may be ready, and whether all results that it uses are known to exist.
    let mut open: Vec<(usize, bool)> = (0..made.len()).rev().map(|layer| (layer, false)).collect();
    while let Some((layer, complete)) = open.pop() {
        let call = made[layer];
        if !complete {
            let Some(taken) = takes(layer, call) else { continue };
            for (of, which) in taken.filter(|(of, which)| made[*of] <= *which) {
                waiting.entry((of, which)).or_default().push(layer);
                missing[layer] += 1;
            }
            if missing[layer] > 0 {
                continue;
            }
        }
        order.push((layer, call));
        made[layer] += 1;
        for waits in waiting.remove(&(layer, call)).into_iter().flatten() {
            missing[waits] -= 1;
            if missing[waits] == 0 {
                open.push((waits, true));
            }
        }
        open.push((layer, false));
    }
    order
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The order of calls that use results of others, and how many of those were examined.
    fn ordered(made: &[usize], calls: &[Vec<Vec<CallOf>>]) -> (Vec<CallOf>, usize) {
        let looks = Cell::new(0);
        let order = in_order(made.to_vec(), |layer, call| {
            let taken = calls[layer].get(call)?.iter().copied();
            Some(taken.inspect(|_| looks.set(looks.get() + 1)))
        });
        (order, looks.get())
    }

    #[test]
    fn a_call_stands_behind_what_it_takes() {
        // 0 is an input; 1 is called on 2 and then on its own result; 2 is called on 0, and on the second call of 1 and 0.
        let calls =
            [vec![], vec![vec![(2, 0)], vec![(1, 0)]], vec![vec![(0, 0)], vec![(1, 1), (0, 0)]]];
        let (order, looks) = ordered(&[1, 0, 0], &calls);
        assert_eq!(order, [(2, 0), (1, 0), (1, 1), (2, 1)]);
        assert_eq!(looks, 5);
    }

    #[test]
    fn what_waits_for_itself_is_never_made() {
        let calls = [
            vec![],
            vec![vec![(2, 0)]],
            vec![vec![(1, 0)]],
            vec![vec![(0, 0)]],
            vec![vec![(0, 7)]],
        ];
        assert_eq!(ordered(&[1, 0, 0, 0, 0], &calls).0, [(3, 0)]);
    }

    /// The first layer uses all others, each of which uses the next one, so calls are made beginning at the last.
    #[test]
    fn what_a_call_takes_is_looked_at_once() {
        const COUNT: usize = 20_000;
        let mut calls = vec![vec![(1..=COUNT).map(|layer| (layer, 0)).collect::<Vec<_>>()]];
        calls.extend((1..COUNT).map(|layer| vec![vec![(layer + 1, 0)]]));
        calls.push(vec![Vec::new()]);
        let (order, looks) = ordered(&vec![0; COUNT + 1], &calls);
        assert_eq!(order.len(), COUNT + 1);
        assert_eq!(order.last(), Some(&(0, 0)));
        assert_eq!(looks, COUNT + COUNT - 1);
    }
}
