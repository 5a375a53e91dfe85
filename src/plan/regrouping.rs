//! Finds the values of a kernel that are hidden from the driver's algebra.
//!
//! WGSL allows a driver to compute with floats as if nothing were rounded: `(x + 1e8) - 1e8` becomes `x`, and a term
//! that corrects a rounding error (the error of a sum, the correction in Kahan summation, `log(u) / (u - 1)` with
//! `u = 1 + x`) becomes 0. It may also treat `x - x` as 0 and `x / x` as 1 where `x` is infinite. In a kernel of one op
//! there is nothing to regroup, and a fused kernel must compute the same. So it hides an operand of a sum, a
//! difference, a quotient or a comparison if the other operand is a part that it was computed from; each of the sums
//! that a fold adds up; and differences to which something is added. Few kernels of a model have such expressions.

use std::hash::{Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use super::kernel_ir::{Code, KernelIr, Operand};
use crate::dtype::{DType, Register};
use crate::graph::Mixer;
use crate::wgsl::Arithmetic;

/// The maximum depth of an expression in ops: all of Adam's formula is shallower. In expressions of hundreds of ops
/// lavapipe collects factors until they overflow, so that a sum of small numbers becomes infinite.
const DEEP: usize = 16;
/// A value with more terms or factors is hidden, so that the analysis takes little time.
const MANY: usize = 48;
/// How many turns of a loop one round computes at most.
const MOST_AT_ONCE: usize = 8;

/// The fold of a sum.
const SUM: &str = "a + b";

/// The hidden values of a kernel.
#[derive(Default)]
pub(super) struct Hidden {
    /// For each instance, whether its value is hidden from all readers.
    results: Vec<bool>,
    /// Operands that are hidden from one instance only: the instance and the operand's index.
    operands: Vec<(usize, usize)>,
    /// The depth in ops.
    depth: usize,
}

impl Hidden {
    pub(super) fn find(ir: &KernelIr) -> Self {
        let loads = (0..ir.loads.len()).map(|i| Known::atom(id("load", [i as u64])));
        let mut finder = Finder {
            ir,
            loads: loads.collect(),
            known: Vec::with_capacity(ir.instances.len()),
            depths: Vec::with_capacity(ir.instances.len()),
            hidden: Hidden { results: vec![false; ir.instances.len()], ..Hidden::default() },
        };
        finder.walk();
        if let Some(roll) = &ir.roll {
            // Turns that are adjacent in the text are visible to each other.
            for _ in 1..finder.hidden.turns_at_once() {
                let next = roll.next.iter().zip(&finder.loads).map(|(next, load)| match next {
                    Some(operand) => finder.operand(*operand, 0),
                    None => load.clone(),
                });
                finder.loads = next.collect();
                finder.walk();
            }
        }
        finder.hidden
    }

    /// True if instance `i` is hidden from all its readers.
    pub(super) fn result(&self, i: usize) -> bool {
        self.results[i]
    }

    /// True if operand `k` is hidden from instance `i`.
    pub(super) fn operand(&self, i: usize, k: usize) -> bool {
        self.operands.contains(&(i, k))
    }

    /// How many turns of a loop one round computes. A short turn costs less than a round of the loop itself.
    pub(super) fn turns_at_once(&self) -> usize {
        (DEEP / self.depth.max(1)).clamp(1, MOST_AT_ONCE)
    }
}

/// Ids in order. The lowest bit marks a term that is subtracted, or a factor that is divided by.
type Ids = SmallVec<[u64; 4]>;

/// The structure of a value that is visible to the driver.
#[derive(Clone)]
struct Known {
    /// Equal for equal expressions.
    id: u64,
    /// The terms that were added and subtracted to compute it, including each intermediate sum.
    terms: Ids,
    /// The factors that were multiplied and divided, including each intermediate product.
    factors: Ids,
    /// Its index among the operands of the current instance, if it is one.
    operand: Option<usize>,
    number: bool,
    /// It is one value minus another.
    difference: bool,
}

impl Known {
    fn atom(id: u64) -> Self {
        let (terms, factors) = (smallvec![id], smallvec![id]);
        Known { id, terms, factors, operand: None, number: false, difference: false }
    }

    /// Whether it has two terms or more.
    fn is_sum(&self) -> bool {
        self.terms.len() > 2
    }
}

fn id(what: &str, of: impl IntoIterator<Item = u64>) -> u64 {
    let mut hash = Mixer::default();
    what.hash(&mut hash);
    of.into_iter().for_each(|part| part.hash(&mut hash));
    hash.finish() & !1
}

fn joined(a: &[u64], b: impl IntoIterator<Item = u64>) -> Ids {
    let mut all: Ids = a.iter().copied().chain(b).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn opposite(ids: &[u64]) -> Ids {
    let mut all: Ids = ids.iter().map(|id| id ^ 1).collect();
    all.sort_unstable();
    all
}

/// True if one subtracts a term that the other adds.
fn cancel(a: &[u64], b: &[u64]) -> bool {
    a.iter().any(|id| b.binary_search(&(id ^ 1)).is_ok())
}

struct Finder<'b, 'a> {
    ir: &'b KernelIr<'a>,
    loads: Vec<Known>,
    known: Vec<Known>,
    depths: Vec<usize>,
    hidden: Hidden,
}

impl Finder<'_, '_> {
    /// Analyses all instances once, in order.
    fn walk(&mut self) {
        self.known.clear();
        self.depths.clear();
        for (i, instance) in self.ir.instances.iter().enumerate() {
            let operands = instance.operands.iter();
            let own: Vec<Known> =
                operands.clone().map(|operand| self.operand(*operand, instance.node)).collect();
            let mut depth = 1 + operands.map(|operand| self.depth_of(*operand)).max().unwrap_or(0);
            let ids = own.iter().map(|known| known.id);
            let mut known = match instance.code {
                Code::Elementwise(elementwise) => {
                    let name = id(elementwise.name, [instance.dtype as u64]);
                    let floats =
                        instance.operands.iter().any(|o| self.ir.register(*o) == Register::F32);
                    let otherwise = Known::atom(id("", std::iter::once(name).chain(ids)));
                    let mut reading = Reading { finder: self, instance: i, own: &own };
                    let read = floats.then(|| elementwise.formula.evaluate(&mut reading));
                    read.flatten().unwrap_or(otherwise)
                }
                Code::Reduce(reduction) => {
                    // The sum of `x - mean` is 0 but for rounding errors, which correct the mean. A driver that
                    // computes the sum of `x` minus that of the means loses them.
                    if reduction.fold == SUM {
                        let sums = own.iter().enumerate().filter(|(_, own)| own.is_sum());
                        sums.for_each(|(k, _)| self.hide(i, k));
                    }
                    Known::atom(id("own", [i as u64]))
                }
                Code::Anchor => Known::atom(id("own", [i as u64])),
            };
            let float = instance.dtype == DType::F32;
            let many = known.terms.len().max(known.factors.len()) > MANY;
            let deep = instance.dtype.register() == Register::F32 && depth >= DEEP;
            self.hidden.results[i] |= (float && many) || deep;
            // A value that is rounded to fewer bits is hidden anyway.
            if self.hidden.results[i] || !float {
                known = Known::atom(known.id);
            }
            if deep {
                depth = 0;
            }
            self.hidden.depth = self.hidden.depth.max(depth);
            self.known.push(known);
            self.depths.push(depth);
        }
    }

    fn operand(&self, operand: Operand, node: u32) -> Known {
        match operand {
            Operand::Load(i) => self.loads[i].clone(),
            Operand::Inside(i) => Known::atom(id("inside", [i as u64])),
            Operand::Instance(i) => self.known[i].clone(),
            Operand::RuntimeScalar(word) => {
                Known::atom(id("scalar", [u64::from(node), word as u64]))
            }
        }
    }

    fn depth_of(&self, operand: Operand) -> usize {
        match operand {
            Operand::Instance(i) => self.depths[i],
            _ => 0,
        }
    }

    /// Hides operand `k` of instance `i`: from all readers if it is the result of an instance, otherwise only from this
    /// one.
    fn hide(&mut self, i: usize, k: usize) {
        match self.ir.instances[i].operands[k] {
            Operand::Instance(made)
                if matches!(self.ir.instances[made].code, Code::Elementwise(_)) =>
            {
                self.hidden.results[made] = true;
                self.known[made] = Known::atom(self.known[made].id);
            }
            _ => self.hide_here(i, k),
        }
    }

    fn hide_here(&mut self, i: usize, k: usize) {
        if !self.hidden.operand(i, k) {
            self.hidden.operands.push((i, k));
        }
    }
}

/// Analyses the formula of one instance.
struct Reading<'f, 'b, 'a> {
    finder: &'f mut Finder<'b, 'a>,
    instance: usize,
    own: &'f [Known],
}

impl Reading<'_, '_, '_> {
    /// Hides one of two values if they cancel parts of each other; `of` returns their parts.
    fn part(&mut self, a: &Known, b: &Known, of: fn(&Known) -> &Ids) {
        let has = |whole: &Known, part: &Known| {
            let ids = of(whole);
            ids.binary_search(&part.id).is_ok() || ids.binary_search(&(part.id | 1)).is_ok()
        };
        match (a.operand, b.operand) {
            (_, Some(k)) if a.id == b.id => self.finder.hide_here(self.instance, k),
            (_, Some(k)) if has(b, a) => self.finder.hide(self.instance, k),
            (Some(k), _) | (None, Some(k)) => self.finder.hide(self.instance, k),
            (None, None) => {
                let floats = self.own.iter().enumerate().filter(|(_, own)| !own.number);
                for k in floats.map(|(k, _)| k) {
                    self.finder.hide_here(self.instance, k);
                }
            }
        }
    }
}

impl Arithmetic for Reading<'_, '_, '_> {
    type Value = Known;

    fn name(&mut self, name: &str) -> Option<Known> {
        let Code::Elementwise(elementwise) = self.finder.ir.instances[self.instance].code else {
            return None;
        };
        let k = elementwise.args.iter().position(|(known, _)| known == name)?;
        Some(Known { operand: Some(k), ..self.own[k].clone() })
    }

    fn number(&mut self, number: f64) -> Known {
        Known { number: true, ..Known::atom(id("number", [number.to_bits()])) }
    }

    fn negative(&mut self, a: Known) -> Known {
        let id = id("-", [a.id]);
        Known {
            id,
            terms: joined(&opposite(&a.terms), [id]),
            factors: joined(&a.factors, [id]),
            operand: None,
            number: a.number,
            difference: a.difference,
        }
    }

    fn sum(&mut self, a: Known, b: Known, less: bool) -> Known {
        let others = if less { opposite(&b.terms) } else { b.terms.clone() };
        if cancel(&a.terms, &others) {
            self.part(&a, &b, |known| &known.terms);
        }
        // `(x - mean) - rest` keeps the digits of a small difference; `x - (mean + rest)` loses them.
        for known in [&a, &b] {
            if let (true, Some(k)) = (known.difference, known.operand) {
                self.finder.hide(self.instance, k);
            }
        }
        let difference = less && !a.number && !b.number;
        let id = match less {
            true => id("a - b", [a.id, b.id]),
            false => id("a + b", [a.id.min(b.id), a.id.max(b.id)]),
        };
        let terms = joined(&a.terms, others.into_iter().chain([id]));
        Known { terms, difference, ..Known::atom(id) }
    }

    fn product(&mut self, a: Known, b: Known, over: bool) -> Known {
        let others = if over { opposite(&b.factors) } else { b.factors.clone() };
        let twice = over && a.number && b.factors.iter().any(|id| id & 1 == 1);
        if twice || cancel(&a.factors, &others) {
            self.part(&a, &b, |known| &known.factors);
        }
        let of = |a: u64, b: u64| match over {
            true => id("a / b", [a, b]),
            false => id("a * b", [a.min(b), a.max(b)]),
        };
        let id = of(a.id, b.id);
        // A product of sums is a sum of products.
        let mut terms: Ids = a.terms.iter().map(|term| of(term & !1, b.id) | (term & 1)).collect();
        if !over {
            terms.extend(b.terms.iter().map(|term| of(a.id, term & !1) | (term & 1)));
        }
        let factors = joined(&a.factors, others.into_iter().chain([id]));
        Known { id, terms: joined(&terms, [id]), factors, ..Known::atom(id) }
    }

    fn comparison(&mut self, a: Known, b: Known) -> Known {
        if cancel(&a.terms, &opposite(&b.terms)) {
            self.part(&a, &b, |known| &known.terms);
        }
        Known::atom(id("?", [a.id, b.id]))
    }

    fn call(&mut self, function: &str, mut arguments: Vec<Known>) -> Known {
        match (function, arguments.len()) {
            ("divide_4" | "floordiv_4" | "floormod_4", 2) => {
                let (Some(b), Some(a)) = (arguments.pop(), arguments.pop()) else {
                    return Known::atom(id(function, []));
                };
                self.product(a, b, true)
            }
            ("V", 1) => arguments.remove(0),
            _ => Known::atom(id(function, arguments.iter().map(|known| known.id))),
        }
    }
}
