//! Plans by structure. The longest unused go first when there are too many.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Plan, PlanReport};
use crate::graph::Key;

#[derive(Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Key, (u64, Plan)>,
    clock: u64,
    last: Option<PlanReport>,
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
        if !known && prints() {
            log::info!("{}", entry.1.report);
        }
        self.last = Some(entry.1.report.clone());
        (&mut entry.1, known)
    }

    /// The plan that was asked for last.
    pub(crate) fn last(&self) -> Option<PlanReport> {
        self.last.clone()
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

/// Whether `WGRAD_PRINT_PLANS` asks for a table of every new plan.
fn prints() -> bool {
    static PRINTS: OnceLock<bool> = OnceLock::new();
    *PRINTS.get_or_init(|| {
        std::env::var("WGRAD_PRINT_PLANS").is_ok_and(|value| !value.is_empty() && value != "0")
    })
}
