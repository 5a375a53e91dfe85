//! Plans by structure, up to a bound of bytes. When there are too many, the least useful ones are evicted first: those
//! whose planning is cheap for the bytes that they hold, and that have run rarely or long ago.

use std::sync::OnceLock;

use super::first_run::MANY;
use super::{Plan, PlanReport, Stage};
use crate::device::is_set;
use crate::graph::{HashIndex, Key};

#[derive(Default)]
pub(crate) struct PlanCache {
    /// Where each plan is, by its key's hash.
    index: HashIndex,
    plans: Vec<Entry>,
    /// Bytes of all plans.
    bytes: u64,
    /// How many structures of optimizer steps there have been.
    steps: u32,
    /// The worth of the plan evicted last, which is added to the worth of later plans.
    floor: f64,
    last: Option<PlanReport>,
}

struct Entry {
    key: Key,
    plan: Plan,
    bytes: u64,
    uses: u32,
    worth: f64,
}

/// A program counts as exploratory once this many structures have occurred only once.
const TRIES: usize = 4;
/// This many structures of optimizer steps are planned by the step's number: those of the first steps, of full batches
/// and of the last ones. If there are more, because lengths vary, compiling them all in full would take longer than it
/// saves, so their runs count instead.
const STEPS: u32 = 8;
/// The bytes of host memory that plans may hold. A training step uses a hundredth of it; 60 graphs of 4,096 ops, each
/// with a separate kernel, use all of it.
const LIMIT: u64 = 256 << 20;
/// A plan that has run this often has its bind groups.
const SETTLED: u32 = 4;
/// Runs beyond this number do not increase the worth of a plan: it stays until the whole cache has been refilled this
/// many times.
const MOST_USES: u32 = 32;

impl PlanCache {
    /// The plan for `key`, and whether it was known. Calls `make` if there is none, and again when the known plan has
    /// run as often as it was made for; for an optimizer step, the number of steps `made` before it counts instead.
    /// `make` receives the stage of the known plan, whether the plan is for few runs, and whether structures have
    /// rarely repeated so far.
    pub(crate) fn get(
        &mut self,
        key: &Key,
        made: Option<u64>,
        make: impl FnOnce(Option<Stage>, bool, bool) -> Plan,
    ) -> (&mut Plan, bool) {
        let found = self.find(key);
        self.steps += u32::from(made.is_some() && found.is_none() && self.steps <= STEPS);
        let settled = made.filter(|_| self.steps <= STEPS).map(|made| made >= MANY.into());
        let stage = found.map(|at| self.plans[at].plan.stage);
        let known = found.is_some_and(|at| {
            let plan = &self.plans[at].plan;
            match settled {
                Some(settled) if plan.stage == Stage::Brief => !settled,
                _ => plan.runs < plan.until,
            }
        });
        let at = match found {
            Some(at) if known => at,
            _ => {
                let few = stage != Some(Stage::Brief) && settled != Some(true);
                let plan = make(stage, few, self.seldom_again());
                if prints() {
                    log::info!("{}", plan.report);
                }
                let uses = found.and_then(|at| self.remove(at)).map_or(0, |entry| entry.uses);
                self.add(key.clone(), plan, uses)
            }
        };
        let floor = self.floor;
        let entry = &mut self.plans[at];
        entry.uses = (entry.uses + 1).min(MOST_USES);
        // A loop has met the combinations of buffers that it alternates between.
        if entry.uses == SETTLED {
            self.bytes -= entry.bytes;
            entry.bytes = entry.plan.host_bytes() + entry.key.len() as u64;
            self.bytes += entry.bytes;
        }
        entry.worth = floor + f64::from(entry.uses) * entry.key.len() as f64 / entry.bytes as f64;
        self.last = Some(entry.plan.report.clone());
        (&mut entry.plan, known)
    }

    /// The plan for `key`, if there is one.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn known(&self, key: &Key) -> Option<&Plan> {
        self.find(key).map(|at| &self.plans[at].plan)
    }

    /// Adds a plan that was made earlier.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn insert(&mut self, key: &Key, plan: Plan) {
        if let Some(at) = self.find(key) {
            self.remove(at);
        }
        self.add(key.clone(), plan, 0);
    }

    /// True if there are some plans and most have run only once.
    fn seldom_again(&self) -> bool {
        let once = self.plans.iter().filter(|entry| entry.plan.runs <= 1).count();
        once >= TRIES && 4 * once >= 3 * self.plans.len()
    }

    fn add(&mut self, key: Key, plan: Plan, uses: u32) -> usize {
        let bytes = plan.host_bytes() + key.len() as u64;
        // The newest plan stays, however large it is.
        while self.bytes + bytes > LIMIT && !self.plans.is_empty() {
            self.evict();
        }
        let at = self.plans.len();
        self.index.insert(key.hash(), at as u32);
        self.bytes += bytes;
        self.plans.push(Entry { key, plan, bytes, uses, worth: 0.0 });
        at
    }

    /// The index of the plan for `key`. If two keys have the same hash, the index has the later one.
    fn find(&self, key: &Key) -> Option<usize> {
        let at = *self.index.get(&key.hash())? as usize;
        (self.plans[at].key == *key).then_some(at)
    }

    fn remove(&mut self, at: usize) -> Option<Entry> {
        if at >= self.plans.len() {
            return None;
        }
        let last = self.plans.len() - 1;
        let entry = self.plans.swap_remove(at);
        self.bytes -= entry.bytes;
        if self.index.get(&entry.key.hash()) == Some(&(at as u32)) {
            self.index.remove(&entry.key.hash());
        }
        if let Some(moved) = self.plans.get(at) {
            if self.index.get(&moved.key.hash()) == Some(&(last as u32)) {
                self.index.insert(moved.key.hash(), at as u32);
            }
        }
        Some(entry)
    }

    /// The plan that was requested last.
    pub(crate) fn last(&self) -> Option<PlanReport> {
        self.last.clone()
    }

    /// How many plans there are, and the bytes of host memory that they hold.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.plans.len() as u64, self.bytes)
    }

    /// Drops every plan, including the bind groups that refer to buffers.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.plans.clear();
        self.steps = 0;
        self.bytes = 0;
    }

    /// Drops the plan with the least worth: the cost of planning again, which is proportional to the length of its key,
    /// per byte that it holds, times the number of its runs. Each eviction raises the worth of all later plans, so that
    /// an unused plan is finally evicted.
    fn evict(&mut self) {
        let worth = |at: &usize| self.plans[*at].worth;
        let least = (0..self.plans.len()).min_by(|a, b| worth(a).total_cmp(&worth(b)));
        if let Some(entry) = least.and_then(|at| self.remove(at)) {
            self.floor = self.floor.max(entry.worth);
        }
    }
}

/// Whether `WGRAD_PRINT_PLANS` requests a table of every new plan.
fn prints() -> bool {
    static PRINTS: OnceLock<bool> = OnceLock::new();
    *PRINTS.get_or_init(|| is_set("WGRAD_PRINT_PLANS"))
}
