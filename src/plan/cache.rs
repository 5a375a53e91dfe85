//! Plans by structure. The longest unused go first when there are too many.

use std::collections::HashMap;

use super::Plan;
use crate::graph::Key;

#[derive(Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Key, (u64, Plan)>,
    clock: u64,
}

/// Plans kept; a program that loops needs a handful.
const LIMIT: usize = 256;

impl PlanCache {
    /// The plan for `key` and whether it was known; `make` is asked if it was not.
    pub(crate) fn get(&mut self, key: Key, make: impl FnOnce() -> Plan) -> (&mut Plan, bool) {
        self.clock += 1;
        let known = self.plans.contains_key(&key);
        if !known && self.plans.len() >= LIMIT {
            self.evict();
        }
        let clock = self.clock;
        let entry = self.plans.entry(key).or_insert_with(|| (clock, make()));
        entry.0 = clock;
        (&mut entry.1, known)
    }

    /// Drops every plan, and with them the bind groups that name buffers.
    pub(crate) fn clear(&mut self) {
        self.plans.clear();
    }

    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.plans.values().map(|(used, _)| *used).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        self.plans.retain(|_, (used, _)| *used > limit);
    }
}
