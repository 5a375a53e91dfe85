//! Chooses the variant of a product: the one that the table prefers on this adapter, or the one that a measurement has
//! found.

use std::sync::Arc;

use super::gemm::Gemm;
use super::product::Product;
use super::sum::Sum;
use super::variants::{PLAIN, Problem, Variant, alternatives, candidates};
use crate::device::{Caps, Cooperative, MatmulPrecision};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext, Unverified, Variants};
use crate::graph::{Op, Spec};

impl Gemm {
    pub(super) fn problem(&self) -> Problem {
        let (inner, sum) = match self.sum {
            Sum::Run(k) => (k, k),
            Sum::Nest([u, v, inner]) => (inner, u.saturating_mul(v).saturating_mul(inner)),
        };
        Problem::new([self.batch, self.m, self.n, sum], inner)
    }

    /// The variant that the table prefers.
    pub(crate) fn preferred(&self, caps: &Caps) -> Variant {
        let kind = self.kinds(caps).into_iter().find(|kind| kind.proven && self.wants(kind));
        if let Some(variant) = kind.and_then(|kind| self.cooperative(kind, caps).next()) {
            return variant;
        }
        let list = candidates(self.problem(), caps);
        // `Dots` reads along a row, in which neighbours are far apart if columns are contiguous.
        let near = |v: &&Variant| self.a.columns.is_none() || !matches!(v, Variant::Dots { .. });
        *list.iter().find(near).unwrap_or(&list[0])
    }

    fn alternatives(&self, caps: &Caps) -> Vec<Variant> {
        let first = self.preferred(caps);
        let mut list = alternatives(self.problem(), caps);
        for kind in self.kinds(caps) {
            list.splice(0..0, self.cooperative(kind, caps));
        }
        if let Some(at) = list.iter().position(|variant| *variant == first) {
            let first = list.remove(at);
            list.insert(0, first);
        }
        list
    }

    /// Whether the table chooses cooperative matrices of a kind. A program that allows rounded factors does so for
    /// their speed.
    fn wants(&self, kind: &Cooperative) -> bool {
        kind.inputs == DType::F16 && self.m >= 32 && self.n >= 32
    }

    /// The kinds of cooperative matrices that may compute this product. CPUs have no units for them.
    fn kinds<'a>(&self, caps: &'a Caps) -> Vec<&'a Cooperative> {
        // Browsers do not support them, so a page does not load the following code.
        if cfg!(target_family = "wasm") {
            return Vec::new();
        }
        let dtype = self.dtype;
        let large = !caps.cpu && self.m > 16 && self.n > 16 && self.problem().inner >= 8;
        let rounds = caps.precision == MatmulPrecision::F16Inputs;
        let fits = |kind: &&Cooperative| {
            large
                && match (dtype, kind.inputs) {
                    (DType::F32, DType::F16) => rounds,
                    (dtype, inputs) => dtype == inputs,
                }
        };
        caps.cooperative.iter().filter(fits).collect()
    }

    /// The variants of a kind whose tiles would not be mostly empty for this product.
    fn cooperative(&self, kind: &Cooperative, caps: &Caps) -> impl Iterator<Item = Variant> {
        let (m, n) = (self.m, self.n);
        Variant::of_kind(kind, caps).filter(move |variant| {
            let [rows, columns] = variant.tile();
            rows < 2 * m && columns < 2 * n
        })
    }

    /// The variant that `cx` names, or the table's choice.
    pub(crate) fn variant_at(&self, cx: &LoweringContext) -> Variant {
        let named = cx.variant.and_then(|name| {
            self.alternatives(cx.caps).into_iter().find(|variant| variant.name() == name)
        });
        named.unwrap_or_else(|| self.preferred(cx.caps))
    }

    /// The variants of the product, for the op whose key in measurements is `of`.
    pub(crate) fn variants(&self, of: String, caps: &Caps) -> Variants {
        let list = self.alternatives(caps);
        let plain = list.iter().position(|variant| *variant == PLAIN).unwrap_or(0);
        let half = |v: &&Variant| matches!(v, Variant::Cooperative { half: true, .. });
        let half = list.iter().filter(half).map(|v| v.name()).collect();
        let names = list.into_iter().map(Variant::name).collect();
        let unproven = self.kinds(caps).into_iter().filter(|kind| !kind.proven);
        let unverified = unproven.flat_map(|kind| self.unverified(kind, caps)).collect();
        Variants { of, names, plain, terms: self.sum.len(), half, unverified }
    }

    /// Tests of a kind: products that do not fill a tile, one for each shape of a workgroup.
    fn unverified(&self, kind: &Cooperative, caps: &Caps) -> Vec<Unverified> {
        let [m, k, n] = Trial::SIZES;
        let op = Arc::new(Trial);
        let case = |variant: Variant| Unverified {
            kind: *kind,
            op: op.clone(),
            inputs: vec![Spec::new([m, k], self.dtype), Spec::new([k, n], self.dtype)],
            output: Spec::new([m, n], self.dtype),
            variant: variant.name(),
            wanted: self.wants(kind),
        };
        Variant::of_kind(kind, caps).map(case).collect()
    }

    pub(crate) fn lower_at(self, cx: &LoweringContext) -> Lowering {
        let variant = self.variant_at(cx);
        self.lower_with(variant, cx.caps)
    }
}

/// A small matrix product that verifies a kind of cooperative matrices. It is a separate op because the ops that have
/// variants depend on this file, and not the reverse.
#[derive(Debug, Attribute)]
#[op("Trial")]
struct Trial;

impl Trial {
    const SIZES: [usize; 3] = [70, 77, 67];

    fn gemm(cx: &LoweringContext) -> Gemm {
        let [m, k, n] = Self::SIZES;
        Product { m, k, n, ..Product::default() }.gemm("matmul", cx.output.dtype, cx.caps)
    }
}

impl Op for Trial {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let [m, _, n] = Self::SIZES;
        Ok(Spec::new([m, n], inputs[0].dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        Self::gemm(cx).variants(self.name().to_string(), cx.caps)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        Self::gemm(cx).lower_at(cx)
    }
}
