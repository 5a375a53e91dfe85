//! Finds the order in which to multiply several operands. This file computes only with sizes, not with tensors.

use super::equation::Set;

/// Up to this many operands all orders are tried: 180 of them.
const ALL_ORDERS: usize = 5;

/// With more operands than this, the first two are multiplied next, because comparing all pairs would take longer than
/// it saves.
const MANY: usize = 64;

/// The pair of operands to multiply next. `terms` are the labels of each, `output` those of the result.
pub(super) fn next_pair(terms: &[Set], output: Set, sizes: &[usize]) -> (usize, usize) {
    if terms.len() <= ALL_ORDERS {
        return cheapest(terms, output, sizes, f64::INFINITY).map_or((0, 1), |(_, pair)| pair);
    }
    if terms.len() > MANY {
        return (0, 1);
    }
    // The product that shrinks most, or grows least; among equal ones the cheapest.
    let shrink = |&(i, j): &(usize, usize)| {
        let kept = (terms[i] | terms[j]) & others(terms, output, i, j);
        let grows = elements(kept, sizes) - elements(terms[i], sizes) - elements(terms[j], sizes);
        (grows, elements(terms[i] | terms[j], sizes))
    };
    let better = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    pairs(terms.len())
        .map(|pair| (shrink(&pair), pair))
        .min_by(|(a, _), (b, _)| better(a, b))
        .map_or((0, 1), |(_, pair)| pair)
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

fn elements(labels: Set, sizes: &[usize]) -> f64 {
    let own = sizes.iter().enumerate().filter(|(label, _)| labels & (1 << label) != 0);
    own.map(|(_, &size)| size as f64).product()
}

/// The labels that the result or an operand other than `i` and `j` has.
pub(super) fn others(terms: &[Set], output: Set, i: usize, j: usize) -> Set {
    let rest = terms.iter().enumerate().filter(|(at, _)| *at != i && *at != j);
    rest.fold(output, |set, (_, &term)| set | term)
}

/// The number of multiplications in the best order, if they are fewer than `limit`, and its first pair.
fn cheapest(
    terms: &[Set],
    output: Set,
    sizes: &[usize],
    limit: f64,
) -> Option<(f64, (usize, usize))> {
    let mut best: Option<(f64, (usize, usize))> = None;
    for (i, j) in pairs(terms.len()) {
        let own = elements(terms[i] | terms[j], sizes);
        let limit = best.map_or(limit, |(cost, _)| cost);
        if own >= limit {
            continue;
        }
        let mut left: Vec<Set> = terms.to_vec();
        left[i] = (terms[i] | terms[j]) & others(terms, output, i, j);
        left.remove(j);
        let rest = match left.len() {
            1 => Some(0.0),
            _ => cheapest(&left, output, sizes, limit - own).map(|(cost, _)| cost),
        };
        if let Some(rest) = rest {
            best = Some((own + rest, (i, j)));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_product_comes_first() {
        // ij,jk,kl->il
        let terms = [0b0011, 0b0110, 0b1100];
        assert_eq!(next_pair(&terms, 0b1001, &[2, 100, 100, 100]), (0, 1));
        assert_eq!(next_pair(&terms, 0b1001, &[100, 100, 100, 2]), (1, 2));
        // A long chain; its cheap end is on the right.
        let chain: Vec<Set> = (0..8).map(|i| 0b11 << i).collect();
        let sizes = [50, 50, 50, 50, 50, 50, 50, 50, 1];
        assert_eq!(next_pair(&chain, 0b1_0000_0001, &sizes), (6, 7));
    }
}
