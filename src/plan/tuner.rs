//! Decides which variant of an op a plan uses: the op's own choice, or the one that was fastest in a measurement on
//! this adapter.
//!
//! A small table by kind of adapter contains an op's first choice. The tuner measures on request, or in small steps
//! while a program runs, and stores its findings on disk. Variants differ in rounding, so by default plans use findings
//! but no new ones are made: the same program then has bit-identical results in every run.

mod agree;
mod background;
mod findings;
mod measure;
mod proof;
mod report;
mod times;

use std::sync::Arc;

pub(crate) use findings::{Findings, Identity};
pub(crate) use measure::measure;
pub use report::{TunedOp, TunedVariant, TuningReport};

use super::{Fusion, Plan, plan};
use crate::device::platform::{self, env_var};
use crate::device::{Caps, Gpu, MatmulPrecision};
use crate::graph::lower::{LoweringContext, Unverified, Variants};
use crate::graph::{Graph, Node, Op, Spec};

/// Whether plans use findings of this adapter, and whether the device may measure.
///
/// The environment variable `WGRAD_TUNE` sets it for new devices: `off`, `found` or `background`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Tuning {
    /// Every op uses the table's choice for this kind of adapter.
    Off,
    /// Plans use findings from disk or from [`Device::tune`](crate::Device::tune); the device measures nothing
    /// automatically.
    #[default]
    Found,
    /// Like `Found`, and the device also measures ops of frequently run plans between flushes. The moment at which
    /// plans change depends on timing, so two runs may differ in rounding.
    Background,
}

impl Tuning {
    /// The mode that `WGRAD_TUNE` names.
    fn named(value: &str) -> Option<Self> {
        match value {
            "off" | "0" => Some(Tuning::Off),
            "found" | "" => Some(Tuning::Found),
            "background" => Some(Tuning::Background),
            _ => None,
        }
    }
}

/// A call of an op that can be computed in several ways.
#[derive(Debug)]
pub(crate) struct Task {
    /// The key under which findings are stored: [`Variants::of`] and the shapes.
    key: String,
    op: Arc<dyn Op>,
    inputs: Vec<Spec>,
    output: Spec,
    variants: Variants,
    /// The capabilities with which it was planned.
    caps: Caps,
}

/// The ops without a finding and the unverified variants that the planner has encountered.
#[derive(Default)]
pub(crate) struct Met {
    pub(super) tasks: Vec<Arc<Task>>,
    pub(super) unverified: Vec<Unverified>,
}

impl Task {
    fn new(node: &Node, cx: &LoweringContext, variants: Variants) -> Self {
        let op = node.op.clone();
        let mut key = variants.of.clone();
        for spec in cx.inputs {
            key += &format!(" {}{}", spec.dtype.name(), spec.shape);
        }
        if cx.caps.precision != MatmulPrecision::Strict {
            key += &format!(" {:?}", cx.caps.precision);
        }
        // Lines of findings use tabs.
        let key = key.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let inputs = cx.inputs.iter().map(|spec| (*spec).clone()).collect();
        Task { key, op, inputs, output: cx.output.clone(), variants, caps: cx.caps.clone() }
    }

    /// The finding for it, if this is one of its variants.
    fn found<'a>(&self, findings: &'a Findings) -> Option<&'a str> {
        let name = findings.get(&self.key)?;
        self.variants.names.iter().any(|known| known == name).then_some(name)
    }
}

/// How plans choose variants.
pub(crate) enum Choice<'a> {
    /// The ops choose.
    Unasked,
    Findings(&'a Findings),
    /// Every op that has this variant uses it.
    Forced(&'a str),
}

impl Choice<'_> {
    /// The name of the variant that `node` should use, or `None` for its own choice. Adds ops without a finding to
    /// `met`.
    pub(super) fn variant(
        &self,
        node: &Node,
        cx: &LoweringContext,
        met: &mut Met,
    ) -> Option<String> {
        if let Choice::Forced(name) = self {
            return Some((*name).to_string());
        }
        let mut variants = node.op.variants(cx);
        let unverified = match platform::MAY_BLOCK {
            // In browsers no variants need to be verified.
            false => Vec::new(),
            true => std::mem::take(&mut variants.unverified),
        };
        // An empty sum is not worth measuring.
        if variants.names.len() < 2 || cx.inputs.iter().any(|spec| spec.elements() == 0) {
            return None;
        }
        let task = Task::new(node, cx, variants);
        let found = match self {
            Choice::Findings(findings) => task.found(findings).map(str::to_string),
            _ => None,
        };
        // A finding is from an earlier run, and does not verify the variant.
        let unverified_kind =
            unverified.iter().find(|case| Some(&case.variant) == found.as_ref()).map(|d| d.kind);
        met.unverified.extend(
            unverified.into_iter().filter(|case| case.wanted || Some(case.kind) == unverified_kind),
        );
        if unverified_kind.is_some() {
            return None;
        }
        if found.is_none() && met.tasks.iter().all(|known| known.key != task.key) {
            met.tasks.push(Arc::new(task));
        }
        found
    }
}

/// A device's findings about variants.
#[derive(Default)]
pub(crate) struct Tuner {
    mode: Tuning,
    identity: Identity,
    findings: Findings,
    /// The tuner has read the file.
    loaded: bool,
    /// Ops of plans that have no finding, each key once.
    seen: Vec<Arc<Task>>,
    background: background::Background,
}

/// The most ops that the tuner remembers for a measurement.
const MOST_SEEN: usize = 1024;
/// The number of runs after which a plan is worth measuring in the background.
const OFTEN: u32 = 20;

impl Tuner {
    pub(crate) fn new(identity: Identity) -> Self {
        let value = env_var("WGRAD_TUNE").unwrap_or_default();
        let mode = Tuning::named(&value).unwrap_or_else(|| {
            log::warn!("WGRAD_TUNE is {value:?}; it is `off`, `found` or `background`.");
            Tuning::default()
        });
        Tuner { mode, identity, ..Tuner::default() }
    }

    pub(crate) fn mode(&self) -> Tuning {
        self.mode
    }

    pub(crate) fn set_mode(&mut self, mode: Tuning) {
        self.mode = mode;
        if mode != Tuning::Background {
            self.background = background::Background::default();
        }
    }

    /// How plans currently choose variants.
    pub(crate) fn choice(&mut self) -> Choice<'_> {
        if self.mode == Tuning::Off {
            return Choice::Unasked;
        }
        Choice::Findings(self.findings())
    }

    /// Plans `graph`. First verifies unverified variants that the plan needs, once per device: afterwards `caps`
    /// contains the result.
    pub(crate) fn plan(
        &mut self,
        gpu: &Gpu,
        caps: &mut Caps,
        graph: &Graph,
        fusion: impl Into<Fusion>,
    ) -> Plan {
        let fusion = fusion.into();
        let plan = plan(graph, caps, fusion, &self.choice());
        // In browsers no variants need to be verified.
        if platform::MAY_BLOCK && proof::settle(gpu, caps, &plan.met.unverified) {
            return super::plan(graph, caps, fusion, &self.choice());
        }
        plan
    }

    /// What plans depend on besides their graphs: the version, the adapter and its driver.
    #[cfg(all(feature = "saved-plans", not(target_family = "wasm")))]
    pub(crate) fn configuration(&self) -> String {
        self.identity.header()
    }

    /// All findings, including those of other processes that have ended.
    pub(crate) fn findings(&mut self) -> &Findings {
        if !self.loaded {
            self.loaded = true;
            // Findings that the program itself has loaded are newer.
            let own = std::mem::replace(&mut self.findings, Findings::of_file(&self.identity));
            self.findings.take_over(own);
        }
        &self.findings
    }

    /// All findings as text, for [`Tuner::load`].
    pub(crate) fn text(&mut self) -> String {
        self.findings();
        self.findings.text(&self.identity)
    }

    /// Adds the findings of `text`. Returns their number.
    pub(crate) fn load(&mut self, text: &str) -> Result<usize, String> {
        self.findings();
        let findings = Findings::parse(text.as_bytes(), &self.identity)?;
        let count = findings.len();
        self.findings.take_over(findings);
        Ok(count)
    }

    /// Remembers the ops of a new plan.
    pub(crate) fn saw(&mut self, tasks: &[Arc<Task>]) {
        for task in tasks {
            let known = |seen: &Arc<Task>| seen.key == task.key;
            if self.seen.len() < MOST_SEEN && !self.seen.iter().any(known) {
                self.seen.push(task.clone());
            }
        }
    }

    /// The remembered ops that still have no finding.
    pub(crate) fn take_unmeasured(&mut self) -> Vec<Arc<Task>> {
        self.findings();
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(|task| task.found(&self.findings).is_none());
        seen
    }

    /// Records findings, for plans and for the next run.
    pub(crate) fn found(&mut self, ops: &[TunedOp]) {
        for op in ops {
            self.findings.set(&op.op, &op.chosen);
        }
    }

    /// Writes the findings to the cache folder, if there is one.
    pub(crate) fn save(&mut self) {
        self.findings();
        self.findings.save(&self.identity);
    }

    /// Records that a plan with `tasks` has run for the `runs`th time.
    pub(crate) fn ran(&mut self, tasks: &[Arc<Task>], runs: u32) {
        if runs == OFTEN && self.mode == Tuning::Background {
            self.background.queue(tasks);
        }
    }
}

/// The page about tuning, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/tuning.md")]
struct Page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_the_modes() {
        assert_eq!(Tuning::named("off"), Some(Tuning::Off));
        assert_eq!(Tuning::named("found"), Some(Tuning::Found));
        assert_eq!(Tuning::named(""), Some(Tuning::Found));
        assert_eq!(Tuning::named("background"), Some(Tuning::Background));
        assert_eq!(Tuning::named("often"), None);
        assert_eq!(Tuning::default(), Tuning::Found);
    }
}
