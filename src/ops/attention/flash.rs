//! Attention by kernels that walk along the keys and never write the matrix of scores (Milakov and Gimelshein 2018, Dao et
//! al. 2022): the softmax is computed on the way, and the gradients compute the weights again.
//!
//! The forward kernel packs the results and, for each query, the logarithm of its weights' sum: the gradients need it.

use super::scores::{Layout, Toward};
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, Grads, Keep, Operation};
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};

/// The widest head: a thread holds two to four of its rows in registers.
const WIDEST: usize = 128;
/// Threads of a workgroup. A processor has no use for more than run side by side.
const THREADS: usize = 64;
const THREADS_CPU: usize = 8;

/// What a kernel computes.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
enum Pass {
    Forward,
    Queries,
    Keys,
    Values,
}

#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
struct Flash {
    pass: Pass,
    of: Layout,
}

/// Whether the kernels can compute attention of these sizes on this adapter.
pub(super) fn fits(of: &Layout, depth: usize, width: usize, caps: &Caps) -> bool {
    let walks = [Pass::Forward, Pass::Keys].map(|pass| Flash { pass, of: *of }.iterations());
    depth.max(width) <= WIDEST
        && depth.min(width) > 0
        && caps.storage_buffers >= 8
        && walks.into_iter().all(|walk| walk <= caps.loop_iterations)
        // Places of weights are 32 bits, four a place.
        && of.count().saturating_mul(of.rows).saturating_mul(of.keys.div_ceil(4)) <= u32::MAX as usize
}

/// `q` `[N,T,D]`, `k` `[N/G,S,D]`, `v` `[N/G,S,E]`, `D` and `E` multiples of four, to `[N,T,E]` in `f32`.
pub(super) fn attend(of: Layout, [q, k, v]: [&Tensor; 3], more: &[&Tensor]) -> Result<Tensor> {
    let mut inputs = vec![q, k, v];
    inputs.extend(more);
    let packed = dispatch(Flash { pass: Pass::Forward, of }, &inputs)?;
    of.unpack(&packed, v.shape()[2]).map(|[y, _]| y)
}

impl Flash {
    /// Rounds of the longest loops: the walk, and those of the numbers that dropout draws in each step.
    fn iterations(&self) -> usize {
        let Layout { rows, keys, group, .. } = self.of;
        let (steps, around) = match self.pass {
            Pass::Forward | Pass::Queries => (keys.div_ceil(4) + 1, 0),
            Pass::Keys | Pass::Values => (group * (rows.div_ceil(4) + 2), 1),
        };
        let draws = if self.of.rate.is_some() { [11, 44][around] } else { 0 };
        steps.saturating_mul(1 + draws) + 1
    }

    /// The names of the inputs, in order.
    fn names(&self) -> Vec<&'static str> {
        let mut names = match self.pass {
            Pass::Forward => vec!["q", "k", "v"],
            Pass::Queries | Pass::Keys => vec!["q", "k", "v", "dy", "stats"],
            Pass::Values => vec!["q", "k", "dy", "stats"],
        };
        names.extend(self.of.masked.then_some("mask"));
        names.extend(self.of.rate.map(|_| "words"));
        names
    }

    /// The input of this name.
    fn input<'a, T>(&self, name: &str, all: impl Fn(usize) -> &'a T) -> Option<&'a T> {
        self.names().iter().position(|known| *known == name).map(all)
    }

    /// D and E.
    fn widths(&self, inputs: &[&Spec]) -> [usize; 2] {
        let last = |name| self.input(name, |i| inputs[i]).map_or(0, |x| x.shape[2]);
        [last("q"), last("v").max(last("dy"))]
    }
}

impl Op for Flash {
    fn name(&self) -> &'static str {
        match self.pass {
            Pass::Forward => "ScaledDotProductAttention",
            Pass::Queries => "ScaledDotProductAttentionGradQuery",
            Pass::Keys => "ScaledDotProductAttentionGradKey",
            Pass::Values => "ScaledDotProductAttentionGradValue",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let [depth, width] = self.widths(inputs);
        let (count, Layout { rows, keys, group, .. }) = (self.of.count(), self.of);
        Ok(match self.pass {
            Pass::Forward => Spec::new([count * rows * (width + 1)], DType::F32),
            Pass::Queries => Spec::new([count, rows, depth], inputs[0].dtype),
            Pass::Keys => Spec::new([count / group, keys, depth], inputs[0].dtype),
            Pass::Values => Spec::new([count / group, keys, width], inputs[0].dtype),
        })
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let [depth, width] = self.widths(cx.inputs);
        let (of, count) = (self.of, self.of.count());
        let threads = if cx.caps.cpu { THREADS_CPU } else { THREADS };
        let by_key = matches!(self.pass, Pass::Keys | Pass::Values);
        let (lines, along) = if by_key { (count / of.group, of.keys) } else { (count, of.rows) };
        let tiles = along.div_ceil(threads);
        let (label, file) = match by_key {
            false => (
                "attention_queries",
                shader!(include_str!("../../../shaders/attention_queries.wgsl")),
            ),
            true => {
                ("attention_keys", shader!(include_str!("../../../shaders/attention_keys.wgsl")))
            }
        };
        let flags = [
            ("FORWARD", self.pass == Pass::Forward),
            ("VALUES", self.pass == Pass::Values),
            ("MASKED", of.masked),
            ("CAUSAL", of.causal),
            ("DROPS", of.rate.is_some()),
        ];
        let counts = [("D4", depth / 4), ("E4", width / 4)];
        let mut kernel = Kernel::new(label, "")
            .alias("T", cx.inputs[0].dtype)
            .alias("O", cx.output.dtype)
            .constant("WG", threads as u32)
            .declare("const LOW: f32 = -1e38;\nconst FLOOR: f32 = -5e37;");
        let names = self.names();
        for (at, name) in names.iter().enumerate() {
            let element = match *name {
                "dy" => "vec4<f32>",
                "stats" => "vec2<f32>",
                "mask" => "f32",
                "words" => "u32",
                _ => "vec4<T>",
            };
            kernel = kernel
                .declare(format!(
                    "@group(0) @binding({at}) var<storage, read> {name}: array<{element}>;"
                ))
                .read(Bind::Input(at));
        }
        let at = names.len();
        // The packed results of the forward kernel are single numbers: the statistics behind them begin anywhere.
        let put = if self.pass == Pass::Forward {
            format!(
                "@group(0) @binding({at}) var<storage, read_write> y: array<O>;\n\
                 fn put(at: u32, v: vec4<f32>) {{\n    \
                 y[4u * at] = O(v.x);\n    y[4u * at + 1u] = O(v.y);\n    \
                 y[4u * at + 2u] = O(v.z);\n    y[4u * at + 3u] = O(v.w);\n}}\n\
                 fn put_stat(at: u32, l: f32) {{ y[at] = O(l); }}"
            )
        } else {
            format!(
                "@group(0) @binding({at}) var<storage, read_write> y: array<vec4<O>>;\n\
                 fn put(at: u32, v: vec4<f32>) {{ y[at] = vec4<O>(v); }}"
            )
        };
        let mut strides = [0; 4];
        if let Some(mask) = self.input("mask", |i| cx.inputs[i]) {
            let own = mask.shape.strides();
            for axis in 0..4 {
                strides[axis] = if mask.shape[axis] == 1 { 0 } else { own[axis] as usize };
            }
        }
        let rate = f32::from_bits(of.rate.unwrap_or(0));
        let sizes = [
            ("rows", of.rows),
            ("keys", of.keys),
            ("count", count),
            ("share", of.group),
            ("heads", of.heads),
            ("tiles", tiles),
            ("mask_batch", strides[0]),
            ("mask_head", strides[1]),
            ("mask_row", strides[2]),
            ("mask_key", strides[3]),
            ("scale", of.scale as usize),
            ("rate", rate.to_bits() as usize),
            ("kept", (1.0 / (1.0 - rate)).to_bits() as usize),
        ];
        kernel = kernel.write(Bind::Output);
        for (name, value) in sizes {
            kernel = kernel.param(name, value);
        }
        let fields: String = sizes.iter().map(|(name, _)| format!("    {name}: u32,\n")).collect();
        // A score and what becomes of it: two products forward, three or two of the gradients.
        let products = match self.pass {
            Pass::Forward => depth + width,
            Pass::Queries | Pass::Keys => 2 * depth + width,
            Pass::Values => depth + width,
        };
        let scores = shader!(include_str!("../../../shaders/attention_scores.wgsl"));
        kernel
            .declare(put)
            .declare(format!("struct Params {{\n{fields}    row: u32,\n}}"))
            .declare(format!("@group(0) @binding({}) var<uniform> p: Params;", at + 1))
            .declare(expand(scores, &[], &flags))
            .declare(expand(file, &counts, &flags))
            .flops(2 * count * of.rows * of.keys * products)
            .workgroups(lines * tiles, self.iterations())
            .into()
    }
}

impl Operation for Flash {
    fn keep(&self) -> Keep {
        if self.pass == Pass::Forward { Keep::Both } else { Keep::Inputs }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let of = self.of;
        let named = |name| self.input(name, |i| back.x(i));
        let needs =
            |name| self.names().iter().position(|n| *n == name).is_some_and(|i| back.needs(i));
        let given = |name: &'static str| named(name).expect("every pass has it");
        let (q, k, mask) = (given("q"), given("k"), named("mask"));
        let mut grads: Vec<(&str, Tensor)> = Vec::new();
        if self.pass == Pass::Forward {
            let v = given("v");
            let width = v.shape()[2];
            let [y, l] = of.unpack(back.y(), width)?;
            let [dy, _] = of.unpack(back.dy, width)?;
            // d = dy . y, that is, the sum of w (dy . v).
            let stats = crate::ops::stack([&l, &dy.multiply(&y)?.reduce_sum(-1)?], -1)?;
            let more: Vec<&Tensor> = mask.into_iter().chain(named("words")).collect();
            for (name, pass) in [("q", Pass::Queries), ("k", Pass::Keys), ("v", Pass::Values)] {
                if !needs(name) {
                    continue;
                }
                let mut inputs = vec![q, k];
                inputs.extend((pass != Pass::Values).then_some(v));
                inputs.extend([&dy, &stats]);
                inputs.extend(&more);
                grads.push((name, dispatch(Flash { pass, of }, &inputs)?));
            }
            if needs("mask") {
                // It has as many elements as the scores, or is summed over them: nothing is gained without a matrix.
                grads.push(("mask", of.mask_grad([q, k, v], mask, &dy)?));
            }
        } else {
            // The gradients' gradients are rare, and take the matrix of scores.
            let (dy, z) = (given("dy"), back.dy);
            grads = match self.pass {
                Pass::Queries => of.second([q, k, given("v")], mask, dy, Toward::Queries(z))?,
                Pass::Keys => of.second([q, k, given("v")], mask, dy, Toward::Keys(z))?,
                _ => of.second_of_values([q, k], mask, dy, z)?,
            };
        }
        let mut by_input = Grads::new();
        for (i, name) in self.names().into_iter().enumerate() {
            let at = grads.iter().position(|(known, _)| *known == name);
            by_input.push(at.filter(|_| back.needs(i)).map(|at| grads.swap_remove(at).1));
        }
        Ok(by_input)
    }
}
