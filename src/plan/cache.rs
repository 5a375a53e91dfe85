//! Plans by structure. When there are too many, the one that was unused for longest goes first.

use std::sync::OnceLock;

use super::{Plan, PlanReport};
use crate::device::is_set;
use crate::graph::Key;

#[derive(Default)]
pub(crate) struct PlanCache {
    /// The keys' hashes, in the order of the plans: searching so few beats any map.
    hashes: Vec<u64>,
    plans: Vec<Entry>,
    clock: u64,
    last: Option<PlanReport>,
}

struct Entry {
    key: Key,
    /// When somebody asked for it last.
    used: u64,
    plan: Plan,
}

/// A program counts as trying one thing after another once so many structures came only once.
const TRIES: usize = 8;
/// How many plans are kept; a program that loops needs a handful.
const LIMIT: usize = 256;

impl PlanCache {
    /// The plan for `key`, and whether it was known. Calls `make` if there is none, and again if the known plan was for
    /// one run only. `make` learns whether this is the structure's first time, and whether structures have seldom come
    /// again so far.
    pub(crate) fn get(
        &mut self,
        key: Key,
        make: impl FnOnce(bool, bool) -> Plan,
    ) -> (&mut Plan, bool) {
        self.clock += 1;
        let found = self.find(&key);
        let known = found.is_some_and(|at| !self.plans[at].plan.once);
        if !known {
            let plan = make(found.is_none(), self.seldom_again());
            if prints() {
                log::info!("{}", plan.report);
            }
            match found {
                Some(at) => self.plans[at].plan = plan,
                None => self.add(key, plan),
            }
        }
        let at = found.unwrap_or(self.plans.len() - 1);
        let entry = &mut self.plans[at];
        entry.used = self.clock;
        self.last = Some(entry.plan.report.clone());
        (&mut entry.plan, known)
    }

    /// True if there are some plans and most have run only once.
    fn seldom_again(&self) -> bool {
        let once = self.plans.iter().filter(|entry| entry.plan.runs <= 1).count();
        once >= TRIES && 4 * once >= 3 * self.plans.len()
    }

    fn add(&mut self, key: Key, plan: Plan) {
        if self.plans.len() >= LIMIT {
            self.evict();
        }
        self.hashes.push(key.hash());
        self.plans.push(Entry { key, used: 0, plan });
    }

    fn find(&self, key: &Key) -> Option<usize> {
        let same = |at: &usize| self.hashes[*at] == key.hash() && self.plans[*at].key == *key;
        (0..self.hashes.len()).find(same)
    }

    /// The plan that somebody asked for last.
    pub(crate) fn last(&self) -> Option<PlanReport> {
        self.last.clone()
    }

    /// Drops every plan, and with the plans the bind groups that name buffers.
    pub(crate) fn clear(&mut self) {
        self.hashes.clear();
        self.plans.clear();
    }

    fn evict(&mut self) {
        if let Some(oldest) = (0..self.plans.len()).min_by_key(|&at| self.plans[at].used) {
            self.hashes.swap_remove(oldest);
            self.plans.swap_remove(oldest);
        }
    }
}

/// Whether `WGRAD_PRINT_PLANS` asks for a table of every new plan.
fn prints() -> bool {
    static PRINTS: OnceLock<bool> = OnceLock::new();
    *PRINTS.get_or_init(|| is_set("WGRAD_PRINT_PLANS"))
}
