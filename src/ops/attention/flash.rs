//! Attention by kernels that iterate over the keys and never write the matrix of scores (Milakov and Gimelshein 2018,
//! Dao et al. 2022): the softmax is computed online, and the gradients recompute the weights.
//!
//! The forward kernel stores the results and, for each query, the logarithm of the sum of its weights in one tensor:
//! the gradients need both.

use super::scores::{Layout, Toward};
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, Grads, Keep, Operation};
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};

/// The widest head that one thread handles: two to four rows in registers.
const WIDEST: usize = 128;
/// The widest head that several threads share.
const WIDEST_SHARED: usize = 256;
/// On a GPU threads share rows until each holds this many elements of a row; the next constant applies if a thread
/// holds three rows, as in the gradients of queries and keys. With more elements, AMD's compiler spills registers or
/// waits for each load; with fewer, the exchange costs more than it saves.
const SHARE: usize = 32;
const SHARE_OF_THREE: usize = 16;
const MOST_SHARES: usize = 16;
/// Threads of a workgroup. A CPU gains nothing from more threads than its SIMD lanes.
const THREADS: usize = 64;
const THREADS_CPU: usize = 8;

/// The result that a kernel computes.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Attribute)]
enum Pass {
    Forward,
    Queries,
    Keys,
    Values,
}

#[derive(Debug, Clone, Copy, Attribute)]
#[op("FusedAttention")]
pub(crate) struct Flash {
    pass: Pass,
    of: Layout,
}

/// Whether the kernels can compute attention of these sizes on this adapter.
pub(super) fn fits(of: &Layout, depth: usize, width: usize, caps: &Caps) -> bool {
    let walks = [Pass::Forward, Pass::Keys].map(|pass| Flash { pass, of: *of }.iterations());
    let forward = Flash { pass: Pass::Forward, of: *of };
    let shared = forward.parts(depth, width, caps) * SHARE;
    depth.max(width) <= shared.clamp(WIDEST, WIDEST_SHARED)
        && depth.min(width) > 0
        && caps.storage_buffers >= 8
        && walks.into_iter().all(|walk| walk <= caps.loop_iterations)
        // Indices of weights are 32 bits, one for each four weights.
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
    /// Iterations of the longest loops: the walk along the keys, and the loops that draw the random numbers of dropout
    /// in each step.
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
        self.lower_with(self.parts(depth, width, cx.caps), cx)
    }
}

impl Flash {
    /// How many threads share a row of `depth` and one of `width` elements.
    fn parts(&self, depth: usize, width: usize, caps: &Caps) -> usize {
        let share = match self.pass {
            Pass::Forward | Pass::Values => SHARE,
            Pass::Queries | Pass::Keys => SHARE_OF_THREE,
        };
        // A CPU computes eight rows at once, and gains nothing from sharing.
        let most = if caps.cpu { 1 } else { MOST_SHARES };
        let divides = |parts: usize| [depth, width].iter().all(|n| n.is_multiple_of(4 * parts));
        let mut parts = 1;
        while parts < most && depth.max(width) > parts * share && divides(2 * parts) {
            parts *= 2;
        }
        parts
    }

    /// The kernel in which `parts` threads share a row.
    fn lower_with(&self, parts: usize, cx: &LoweringContext) -> Lowering {
        let [depth, width] = self.widths(cx.inputs);
        let (of, count) = (self.of, self.of.count());
        let threads = if cx.caps.cpu { THREADS_CPU } else { THREADS };
        let by_key = matches!(self.pass, Pass::Keys | Pass::Values);
        let (lines, along) = if by_key { (count / of.group, of.keys) } else { (count, of.rows) };
        let tiles = along.div_ceil(threads / parts);
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
            ("SHARED", parts > 1),
        ];
        let counts = [
            ("D4", depth / 4),
            ("E4", width / 4),
            ("DP", depth / 4 / parts),
            ("EP", width / 4 / parts),
            ("PARTS", parts),
            ("ROWS", threads / parts),
        ];
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
        // The forward kernel's output is an array of single numbers, because the statistics after the results may begin
        // at any index.
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
        // Products per score: two in the forward pass, three or two in the gradients.
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
            .declare(expand(scores, &counts, &flags))
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
                // The mask's gradient has as many elements as the scores, or is summed over them, so avoiding the
                // matrix gains nothing.
                grads.push(("mask", of.mask_grad([q, k, v], mask, &dy)?));
            }
        } else {
            // Second-order gradients are rare, and use the matrix of scores.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ops::no_grads;
    use crate::runtime::Device;

    /// A pass with a fixed number of threads that share a row.
    #[derive(Debug, Attribute)]
    #[op("FixedAttention")]
    struct Fixed {
        flash: Flash,
        parts: usize,
    }

    impl Op for Fixed {
        fn name(&self) -> &'static str {
            "Fixed"
        }

        fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
            self.flash.infer(inputs)
        }

        fn lower(&self, cx: &LoweringContext) -> Lowering {
            self.flash.lower_with(self.parts, cx)
        }
    }

    impl Operation for Fixed {
        fn keep(&self) -> Keep {
            Keep::NoGradient("Fixed: a test")
        }

        fn grad(&self, back: &Backward) -> Result<Grads> {
            no_grads(back)
        }
    }

    #[test]
    fn rows_are_shared_until_registers_suffice() {
        let gpu = Caps::portable();
        let of = |pass, depth, width| Flash { pass, of: layout() }.parts(depth, width, &gpu);
        let forward = |depth, width| of(Pass::Forward, depth, width);
        let widths = [(16, 32), (64, 64), (128, 128), (256, 256)];
        assert_eq!(widths.map(|(d, e)| forward(d, e)), [1, 2, 4, 8]);
        assert_eq!(widths.map(|(d, e)| of(Pass::Keys, d, e)), [2, 4, 8, 16]);
        // 20 vectors are divisible by four, 10 by two, and 17 by neither.
        assert_eq!([forward(80, 80), forward(96, 40), forward(68, 68)], [4, 2, 1]);
        let processor = Caps { cpu: true, ..gpu.clone() };
        assert_eq!(Flash { pass: Pass::Keys, of: layout() }.parts(128, 128, &processor), 1);
        let fits = |width, caps: &Caps| super::fits(&layout(), width, width, caps);
        let widths = [128, 132, 160, 248, 256, 512, 528];
        assert_eq!(widths.map(|n| fits(n, &gpu)), [true, false, true, false, true, false, false]);
        assert_eq!([128, 160].map(|n| fits(n, &processor)), [true, false]);
    }

    fn layout() -> Layout {
        Layout {
            batch: 1,
            heads: 4,
            group: 2,
            rows: 37,
            keys: 70,
            scale: 0.4f32.to_bits(),
            causal: false,
            masked: false,
            rate: None,
            seed: crate::graph::Runtime([3, 4]),
        }
    }

    /// All passes, with two and four threads per row, compared with one thread per row.
    #[test]
    fn threads_that_share_rows_compute_the_same() {
        let numbers = |shape: &[usize], step: usize| {
            let values = (0..shape.iter().product()).map(|i| ((i * step) % 29) as f32 / 14.0 - 1.0);
            Tensor::from_slice(&values.collect::<Vec<f32>>(), shape).unwrap()
        };
        let (depth, width) = (16, 32);
        let q = numbers(&[4, 37, depth], 7);
        let (k, v) = (numbers(&[2, 70, depth], 11), numbers(&[2, 70, width], 3));
        let (dy, mask) = (numbers(&[4, 37, width], 5), numbers(&[1, 4, 1, 70], 13));
        let words = Tensor::from_slice(&[3u32, 4, 0, 0], [4]).unwrap();
        for (causal, masked, rate) in [(false, false, None), (true, true, Some(0.3f32.to_bits()))] {
            let of = Layout { causal, masked, rate, ..layout() };
            let mut more = Vec::new();
            more.extend(masked.then_some(&mask));
            more.extend(rate.map(|_| &words));
            let mut stats = None;
            for pass in [Pass::Forward, Pass::Queries, Pass::Keys, Pass::Values] {
                let flash = Flash { pass, of };
                let mut inputs = vec![&q, &k];
                inputs.extend((pass != Pass::Values).then_some(&v));
                inputs.extend((pass != Pass::Forward).then_some(&dy));
                inputs.extend(&stats);
                inputs.extend(&more);
                let by = |parts| dispatch(Fixed { flash, parts }, &inputs).unwrap();
                let alone = by(1);
                let want = alone.to_vec::<f32>().unwrap();
                for parts in [2, 4] {
                    let got = by(parts).to_vec::<f32>().unwrap();
                    assert_eq!(got.len(), want.len());
                    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                        let off = (got - want).abs();
                        assert!(
                            off <= 1e-5 * (1.0 + want.abs()),
                            "{flash:?} by {parts} [{i}]: {got}, not {want}"
                        );
                    }
                }
                if pass == Pass::Forward {
                    let [y, l] = of.unpack(&alone, width).unwrap();
                    let d = dy.multiply(&y).unwrap().reduce_sum(-1).unwrap();
                    stats = Some(crate::ops::stack([&l, &d], -1).unwrap());
                }
            }
        }
        Device::current().unwrap().synchronize().unwrap();
    }
}
