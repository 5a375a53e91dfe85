//! The product family's side of tuning: names of its variants, and which of them are worth measuring.

use super::gemm::{Gemm, Problem, Sum, Variant, candidates};
use crate::device::Caps;
use crate::graph::lower::{Lowering, Site, Variants};

/// The kernel without tiles that others are compared with.
const PLAIN: Variant = Variant::Registers { tm: 1, tn4: 1, wx: 8, wy: 8 };

/// What `candidates` has, and what a measurement may prefer to it: the table's choice first. The plain one is among them.
fn alternatives(problem: Problem, caps: &Caps) -> Vec<Variant> {
    let Problem { m, n, inner } = problem;
    let mut list = candidates(problem, caps);
    // A tile may be half empty, not more: then a smaller one does the same with less.
    let fits = |rows: usize, columns: usize| rows < 2 * m.max(1) && columns < 2 * n.max(1);
    let mut add = |variant: Variant| {
        let [rows, columns] = variant.share();
        if fits(rows, columns) && !list.contains(&variant) {
            list.push(variant);
        }
    };
    if caps.cpu && caps.subgroup == Some(8) {
        for (tm8, tn4) in [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)] {
            add(Variant::Lanes { tm8, tn4 });
        }
    }
    if (1..=4).contains(&n) && inner >= 64 {
        for (tm4, wx) in [(1, 8), (2, 8), (1, 64)] {
            add(Variant::Dots { tm4, tn: n, wx });
        }
    }
    if !caps.cpu && m > 32 && n > 32 && inner >= 16 {
        add(Variant::Tiled);
    }
    // Large tiles take the drivers of other processors long to compile.
    let small = caps.cpu && caps.subgroup != Some(8);
    for (tm, tn4) in [(8, 2), (8, 1), (4, 2), (4, 1)] {
        if !small || tm * tn4 <= 4 {
            let wx = n.div_ceil(4 * tn4).next_power_of_two().min(8);
            add(Variant::Registers { tm, tn4, wx, wy: 64 / wx });
        }
    }
    if !caps.cpu {
        add(Variant::Registers { tm: 4, tn4: 2, wx: 16, wy: 16 });
        add(Variant::Registers { tm: 4, tn4: 1, wx: 16, wy: 8 });
    }
    if !list.contains(&PLAIN) {
        list.push(PLAIN);
    }
    list
}

impl Variant {
    /// A name that means the same kernel in every version that reads it.
    fn name(self) -> String {
        match self {
            Variant::Registers { tm, tn4, wx, wy } => format!("registers {tm}x{tn4} {wx}x{wy}"),
            Variant::Lanes { tm8, tn4 } => format!("lanes {tm8}x{tn4}"),
            Variant::Tiled => "tiled".to_string(),
            Variant::Dots { tm4, tn, wx } => format!("dots {tm4}x{tn} {wx}"),
        }
    }

    /// Rows and columns of the smallest block that is computed whole.
    fn share(self) -> [usize; 2] {
        match self {
            Variant::Registers { tm, tn4, .. } => [tm, 4 * tn4],
            Variant::Lanes { tm8, tn4 } => [8 * tm8, 32 * tn4],
            Variant::Tiled => [64, 64],
            Variant::Dots { tm4, tn, .. } => [4 * tm4, tn],
        }
    }
}

impl Gemm {
    fn alternatives(&self, caps: &Caps) -> Vec<Variant> {
        let inner = match self.sum {
            Sum::Run(k) => k,
            Sum::Nest([_, _, inner]) => inner,
        };
        let first = self.preferred(caps);
        let mut list = alternatives(Problem { m: self.m, n: self.n, inner }, caps);
        list.sort_by_key(|variant| *variant != first);
        list
    }

    /// The variant that the site names, or the table's choice.
    pub(super) fn variant_at(&self, site: &Site) -> Variant {
        let named = site.variant.and_then(|name| {
            self.alternatives(site.caps).into_iter().find(|variant| variant.name() == name)
        });
        named.unwrap_or_else(|| self.preferred(site.caps))
    }

    pub(super) fn variants(&self, caps: &Caps) -> Variants {
        let list = self.alternatives(caps);
        let plain = list.iter().position(|variant| *variant == PLAIN).unwrap_or(0);
        let names = list.into_iter().map(Variant::name).collect();
        Variants { names, plain, terms: self.sum.len() }
    }

    pub(super) fn lower_at(self, site: &Site) -> Lowering {
        let variant = self.variant_at(site);
        self.lower_with(variant, site.caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_caps() -> [Caps; 3] {
        let gpu = Caps::portable();
        let cpu = Caps { cpu: true, ..gpu.clone() };
        let lanes = Caps { subgroup: Some(8), ..cpu.clone() };
        [gpu, cpu, lanes]
    }

    #[test]
    fn the_table_comes_first_and_names_differ() {
        for caps in all_caps() {
            for (m, n) in [(1, 1), (1, 1000), (3, 10), (50, 10), (64, 64), (1000, 1000), (1000, 1)]
            {
                let problem = Problem { m, n, inner: 100 };
                let list = alternatives(problem, &caps);
                assert_eq!(list[0], candidates(problem, &caps)[0]);
                assert!(list.contains(&PLAIN));
                let mut names: Vec<String> = list.iter().map(|v| v.name()).collect();
                assert!(names.len() <= 11, "{names:?}");
                names.sort();
                names.dedup();
                assert_eq!(names.len(), list.len(), "{list:?}");
            }
        }
    }

    #[test]
    fn names_are_stable() {
        let large = Problem { m: 1000, n: 1000, inner: 1000 };
        let names = |caps: &Caps| -> Vec<String> {
            alternatives(large, caps).into_iter().map(Variant::name).collect()
        };
        let [gpu, _, lanes] = all_caps();
        assert_eq!(names(&gpu)[..2], ["tiled", "registers 8x2 8x8"]);
        assert!(names(&lanes).contains(&"lanes 2x2".to_string()));
        assert_eq!(names(&gpu).last().unwrap(), "registers 1x1 8x8");
    }
}
