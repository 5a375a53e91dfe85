//! Keeps groups in an order in which they can run while they are being joined: a topological order that is repaired
//! locally (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006), so that a join
//! costs only the work for the groups in between.

/// The position of each group, before all groups that it leads to.
pub(super) struct Order {
    places: Vec<u32>,
    /// The last search that visited each group.
    seen: Vec<u32>,
    search: u32,
}

/// The groups between two groups that should be joined.
pub(super) struct Between {
    /// Those that the first leads to.
    after: Vec<u32>,
    /// Those that lead to the second.
    before: Vec<u32>,
}

/// The most edges that a join follows. Beyond that the groups stay separate, which only costs a kernel.
const EDGES: usize = 2048;

impl Order {
    /// An order of groups by their numbers.
    pub(super) fn new(count: usize) -> Self {
        Order { places: (0..count as u32).collect(), seen: vec![0; count], search: 0 }
    }

    /// True if `a` is before `b`.
    pub(super) fn is_before(&self, a: u32, b: u32) -> bool {
        self.places[a as usize] < self.places[b as usize]
    }

    /// The groups between `from` and `to` that depend on `from` or that `to` needs. `None` if a path leads from one to
    /// the other through a third group, or if this would need a long search. `after` and `before` return the groups
    /// that a group leads to, and those that lead to it; they may include the group itself.
    pub(super) fn between<A, B>(
        &mut self,
        from: u32,
        to: u32,
        after: impl Fn(u32) -> A,
        before: impl Fn(u32) -> B,
    ) -> Option<Between>
    where
        A: Iterator<Item = u32>,
        B: Iterator<Item = u32>,
    {
        let mut edges = EDGES;
        let (first, last) = (self.places[from as usize], self.places[to as usize]);
        let inside = |place: u32| first < place && place < last;
        self.search += 1;
        let mut found = Between { after: Vec::new(), before: Vec::new() };
        let (mut open, mut next) = (from, 0);
        loop {
            for group in after(open) {
                edges = edges.checked_sub(1)?;
                if group == to && open != from {
                    return None;
                }
                let at = group as usize;
                if inside(self.places[at]) && self.seen[at] != self.search {
                    self.seen[at] = self.search;
                    found.after.push(group);
                }
            }
            let Some(&group) = found.after.get(next) else { break };
            (open, next) = (group, next + 1);
        }
        let (mut open, mut next) = (to, 0);
        loop {
            for group in before(open) {
                edges = edges.checked_sub(1)?;
                let at = group as usize;
                if inside(self.places[at]) && self.seen[at] != self.search {
                    self.seen[at] = self.search;
                    found.before.push(group);
                }
            }
            let Some(&group) = found.before.get(next) else { break };
            (open, next) = (group, next + 1);
        }
        Some(found)
    }

    /// Merges `to` into `from`. From now on the groups that lead to either are before it, and the groups that they lead
    /// to are after it.
    pub(super) fn join(&mut self, from: u32, to: u32, between: Between) {
        let Between { before, after } = between;
        // Positions in ascending order, each with its group.
        let in_order = |groups: &[u32]| {
            let placed = groups.iter().map(|&group| (self.places[group as usize], group));
            let mut placed: Vec<(u32, u32)> = placed.collect();
            placed.sort_unstable();
            placed
        };
        // The groups on either side keep their order.
        let (before, after) = (in_order(&before), in_order(&after));
        let sides = |side: Vec<(u32, u32)>| side.into_iter().map(|(_, group)| group);
        let mut groups: Vec<u32> = sides(before).chain([from]).chain(sides(after)).collect();
        groups.push(to);
        let places = in_order(&groups);
        groups.pop();
        for (group, (place, _)) in groups.into_iter().zip(places) {
            self.places[group as usize] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups joined in a graph of edges from smaller to larger numbers.
    struct Graph {
        edges: Vec<(u32, u32)>,
        of: Vec<u32>,
        order: Order,
    }

    impl Graph {
        fn new(count: usize, edges: &[(u32, u32)]) -> Self {
            Graph {
                edges: edges.to_vec(),
                of: (0..count as u32).collect(),
                order: Order::new(count),
            }
        }

        fn edges(&self) -> Vec<(u32, u32)> {
            let of = |node: u32| self.of[node as usize];
            self.edges.iter().map(|&(a, b)| (of(a), of(b))).collect()
        }

        fn join(&mut self, from: u32, to: u32) -> bool {
            let edges = self.edges();
            let after = |g| edges.iter().filter(move |(a, _)| *a == g).map(|(_, b)| *b);
            let before = |g| edges.iter().filter(move |(_, b)| *b == g).map(|(a, _)| *a);
            let Some(between) = self.order.between(from, to, after, before) else { return false };
            self.order.join(from, to, between);
            self.of.iter_mut().filter(|of| **of == to).for_each(|of| *of = from);
            self.check();
            true
        }

        fn check(&self) {
            for (a, b) in self.edges().into_iter().filter(|(a, b)| a != b) {
                assert!(self.order.is_before(a, b), "{a} leads to {b}: {:?}", self.order.places);
            }
        }
    }

    #[test]
    fn a_way_through_a_third_keeps_groups_apart() {
        let mut graph = Graph::new(3, &[(0, 1), (1, 2), (0, 2)]);
        assert!(!graph.join(0, 2));
        assert!(graph.join(0, 1));
        assert!(graph.join(0, 2));
    }

    #[test]
    fn places_are_repaired_around_a_join() {
        // 0 leads to 1 and 4, 2 and 3 lead to 4: with 0 and 4 joined, 2 and 3 must come before, and 1 after.
        let mut graph = Graph::new(5, &[(0, 1), (0, 4), (2, 4), (3, 4)]);
        assert!(graph.join(0, 4));
        assert!(graph.order.is_before(2, 0) && graph.order.is_before(3, 0));
        assert!(graph.order.is_before(0, 1));
        // 3 and 1 are now independent except for 0, which is between them.
        assert!(!graph.join(3, 1));
        assert!(graph.join(2, 3));
    }

    #[test]
    fn any_joins_leave_an_order() {
        let mut state = 7u64;
        let mut random = |n: u32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % u64::from(n)) as u32
        };
        for _ in 0..50 {
            let edges: Vec<(u32, u32)> =
                (1..40).flat_map(|b| [(random(b), b), (random(b), b)]).collect();
            let mut graph = Graph::new(40, &edges);
            let mut joined = 0;
            for _ in 0..200 {
                let (a, b) = (graph.of[random(40) as usize], graph.of[random(40) as usize]);
                if a != b {
                    let (from, to) = if graph.order.is_before(a, b) { (a, b) } else { (b, a) };
                    joined += usize::from(graph.join(from, to));
                }
            }
            assert!(joined > 5, "{joined}");
        }
    }
}
