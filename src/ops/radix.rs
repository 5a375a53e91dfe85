//! The kernels of a stable sort: keys that order as the elements do, a radix sort of long rows, a sort by ranks of short ones,
//! and on a GPU one in workgroup memory of rows that fit there. Ops that sort put them together; there is no op here.
//!
//! A key is a `u32`. The radix sort goes through the digits of the keys from the lowest: each pass counts the digits of
//! every chunk, adds the counts up, and puts the keys where they belong. There are no atomics, and equal keys keep their
//! order, so the result is the same every time.

use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::{expand, shader};

/// What is sorted.
#[derive(Clone, Copy)]
pub(super) struct Sorting {
    pub(super) rows: usize,
    pub(super) len: usize,
    /// How elements become keys.
    pub(super) keys: Keys,
}

/// How elements become keys.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    /// Elements of a dtype. Numbers order as they do; NaN is above all.
    Of { dtype: DType, descending: bool },
    /// The numbers below a bound; all others are equal to it.
    Below(usize),
}

/// What the sort gives.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Give {
    /// The elements.
    Values,
    /// The place in its row that each element had, as `i32`.
    Places,
    /// Keys and places side by side.
    Pairs,
}

impl Keys {
    fn dtype(self) -> DType {
        match self {
            Keys::Of { dtype, .. } => dtype,
            Keys::Below(_) => DType::I32,
        }
    }

    /// The lowest bit in which keys differ, and how many bits lie from there on.
    fn bits(self) -> [u32; 2] {
        match self {
            // The lower bits of an f32 that is an f16 are all 0.
            Keys::Of { dtype: DType::F16, .. } => [13, 19],
            Keys::Of { .. } => [0, 32],
            Keys::Below(bound) => [0, usize::BITS - bound.leading_zeros()],
        }
    }

    pub(super) fn flip(self) -> usize {
        match self {
            Keys::Of { descending: true, .. } => u32::MAX as usize,
            _ => 0,
        }
    }

    fn most(self) -> usize {
        if let Keys::Below(bound) = self { bound } else { u32::MAX as usize }
    }

    /// Declares `key_of(bits)`. Where places are asked for, zeros of both signs are equal.
    fn function(self, signed_zeros: bool) -> String {
        let body = match self {
            Keys::Below(_) => "min(bits, p.most)".to_string(),
            Keys::Of { dtype: DType::I32, .. } => "(bits ^ 0x80000000u) ^ p.flip".to_string(),
            Keys::Of { dtype, .. } if dtype.is_float() => {
                let below = if signed_zeros { ">=" } else { ">" };
                format!(
                    "select(select(bits | 0x80000000u, ~bits, bits {below} 0x80000000u), 0xffffffffu, \
                     (bits & 0x7fffffffu) > 0x7f800000u) ^ p.flip"
                )
            }
            Keys::Of { .. } => "bits ^ p.flip".to_string(),
        };
        format!("fn key_of(bits: u32) -> u32 {{ return {body}; }}")
    }

    /// Declares `bits_of(key)`, which undoes `key_of`.
    fn inverse(self) -> &'static str {
        match self.dtype() {
            DType::I32 => "fn bits_of(k: u32) -> u32 { return (k ^ p.flip) ^ 0x80000000u; }",
            DType::F32 | DType::F16 => {
                "fn bits_of(k: u32) -> u32 {\n    let up = k ^ p.flip;\n    \
                 return select(~up, up ^ 0x80000000u, up >= 0x80000000u);\n}"
            }
            _ => "fn bits_of(k: u32) -> u32 { return k ^ p.flip; }",
        }
    }

    /// Declares the binding `x` and `key(e)`. The parameters say whether `x` holds elements (`first`) and how many words lie
    /// from one key to the next (`step`); nothing branches, as a processor's threads go through many keys. `f16` has a text
    /// of its own for elements.
    pub(super) fn source(self, kernel: Kernel, first: bool, signed_zeros: bool) -> Kernel {
        let half = self.dtype() == DType::F16;
        let (stored, body) = match (half, first) {
            (true, true) => ("f16", "return key_of(bitcast<u32>(f32(x[e])));"),
            (true, false) => ("u32", "return x[e * p.step];"),
            (false, _) => {
                ("u32", "let v = x[e * p.step];\n    return select(v, key_of(v), p.first != 0u);")
            }
        };
        let kernel = if half && first { kernel.alias("X", DType::F16) } else { kernel };
        let kernel = kernel.declare(format!(
            "@group(0) @binding(0) var<storage, read> x: array<{stored}>;\n\
             fn key(e: u32) -> u32 {{\n    {body}\n}}"
        ));
        if half && !first { kernel } else { kernel.declare(self.function(signed_zeros)) }
    }

    /// Declares `place(e, i)`: the place of element `i` of a row, or the one beside key `e`.
    pub(super) fn place(self, kernel: Kernel, first: bool) -> Kernel {
        let body = match (self.dtype() == DType::F16, first) {
            (true, true) => "i",
            (true, false) => "x[e * p.step + 1u]",
            (false, _) => "select(x[e * p.step + 1u], i, p.first != 0u)",
        };
        kernel.declare(format!("fn place(e: u32, i: u32) -> u32 {{ return {body}; }}"))
    }
}

/// Rows as short as this are sorted by ranks, and longer ones where no more comparisons than these come together. On
/// llvmpipe a million elements in rows of 128 take 0.22 s of a processor either way.
const SHORT: usize = 128;
const FEW_COMPARISONS: usize = 1 << 20;

/// The workgroup memory that every adapter has.
const WORKGROUP_BYTES: usize = 16 << 10;

/// A row in workgroup memory.
#[derive(Debug, PartialEq)]
struct Block {
    /// So many keys are sorted, some of which fill the row up.
    keys: usize,
    /// The bits of a place in the row.
    place: u32,
    /// Key and place share a word.
    packed: bool,
    threads: usize,
    /// How often all keys are compared.
    steps: usize,
    iterations: usize,
}

/// The fewest elements that a thread of a processor goes through, and those of a thread of a GPU.
const CHUNK: [usize; 2] = [2048, 64];

impl Sorting {
    /// The kernels that sort `from` into `to`, behind those of `kernels`, with more temporary buffers in `temps`.
    pub(super) fn kernels(
        self,
        caps: &Caps,
        give: Give,
        from: Bind,
        to: Bind,
        temps: &mut Vec<u64>,
        kernels: &mut Vec<Kernel>,
    ) {
        let few = self.rows.saturating_mul(self.len).saturating_mul(self.len) <= FEW_COMPARISONS;
        let by_rank = (self.len <= SHORT || few) && self.len <= caps.loop_iterations;
        if by_rank && give != Give::Pairs {
            kernels.push(self.by_rank(give, from, to));
        } else if let Some(block) = self.block(caps) {
            kernels.push(self.by_block(block, give, from, to));
        } else {
            self.by_digits(caps, give, from, to, temps, kernels);
        }
    }

    /// How a workgroup sorts a row in its memory, if the row fits there. On a processor that memory is no nearer.
    fn block(self, caps: &Caps) -> Option<Block> {
        let keys = self.len.next_power_of_two().max(2);
        let place = keys.ilog2();
        let [_, bits] = self.keys.bits();
        let packed = matches!(self.keys, Keys::Below(_)) && bits + place <= u32::BITS;
        let words = if packed { keys } else { 2 * keys };
        let threads = (keys / 2).min(256);
        let steps = (place * (place + 1) / 2) as usize;
        let iterations = 2 * keys / threads + steps * (1 + keys / threads / 2);
        let fits = 4 * words <= WORKGROUP_BYTES && iterations <= caps.loop_iterations;
        (!caps.cpu && fits).then_some(Block { keys, place, packed, threads, steps, iterations })
    }

    fn by_block(self, block: Block, give: Give, from: Bind, to: Bind) -> Kernel {
        const SORT: &str = shader!(include_str!("../../shaders/sort_block.wgsl"));
        let kernel = Kernel::new("sort_block", "")
            .declare(expand(SORT, &[], &[("PACKED", block.packed)]))
            .constant("WG", block.threads as u32)
            .constant("N", block.keys as u32)
            .constant("PLACE", block.place)
            .constant("STEPS", block.steps as u32);
        let kernel = self.keys.source(kernel, true, give == Give::Values).read(from).write(to);
        self.put(kernel, 1, give, true, true)
            .param("len", self.len)
            .param("rows", self.rows)
            .param("first", 1)
            .param("step", 1)
            .param("flip", self.keys.flip())
            .param("most", self.keys.most())
            .param("last", 1)
            .workgroups(self.rows, block.iterations)
    }

    fn by_rank(self, give: Give, from: Bind, to: Bind) -> Kernel {
        let (rows, len) = (self.rows, self.len);
        let kernel =
            Kernel::new("sort_rank", shader!(include_str!("../../shaders/sort_rank.wgsl")))
                .constant("WG", 64);
        let kernel = self.keys.source(kernel, true, false);
        let stored = match (give, self.keys.dtype()) {
            (Give::Values, DType::F16) => "f16",
            _ => "u32",
        };
        let value = if give == Give::Values { "x[e]" } else { "i" };
        kernel
            .declare(format!(
                "@group(0) @binding(1) var<storage, read_write> y: array<{stored}>;\n\
                 fn put(at: u32, e: u32, i: u32) {{ y[at] = {value}; }}"
            ))
            .read(from)
            .write(to)
            .param("len", len)
            .param("total", rows * len)
            .param("first", 1)
            .param("step", 1)
            .param("flip", self.keys.flip())
            .workgroups((rows * len).div_ceil(64), len)
    }

    fn by_digits(
        self,
        caps: &Caps,
        give: Give,
        from: Bind,
        to: Bind,
        temps: &mut Vec<u64>,
        kernels: &mut Vec<Kernel>,
    ) {
        let (rows, len) = (self.rows, self.len);
        let Passes { digit, passes, chunk, chunks, low } = self.passes(caps);
        let stride = if give == Give::Values { 1 } else { 2 };
        let (bins, shorts) = (1 << digit, rows * chunks);
        // What one pass writes the next one reads; the last writes the result.
        let mut next = || {
            temps.push(DType::U32.bytes(stride * rows * len));
            Bind::Temp(temps.len() - 1)
        };
        let between: Vec<Bind> = (1..passes.min(3)).map(|_| next()).collect();
        temps.push(DType::U32.bytes(rows * bins * (chunks + 1)));
        let counts = Bind::Temp(temps.len() - 1);
        let wg = if caps.cpu { 8 } else { 64 };
        let mut from = from;
        for pass in 0..passes {
            let (first, last) = (pass == 0, pass + 1 == passes);
            let to = if last { to } else { between[pass % 2] };
            let shift = low as usize + pass * digit;
            let sized = |label, file, words| {
                let kernel =
                    Kernel::new(label, file).constant("WG", wg).constant("BINS", 1 << widest(caps));
                let kernel = self.keys.source(kernel, first, give == Give::Values);
                let kernel = kernel.read(from);
                let kernel: Kernel = match words {
                    None => kernel.write(counts),
                    Some(to) => kernel.read(counts).write(to),
                };
                kernel
                    .param("len", len)
                    .param("chunk", chunk)
                    .param("chunks", chunks)
                    .param("total", shorts)
                    .param("bins", bins)
                    .param("shift", shift)
                    .param("first", usize::from(first))
                    .param("step", if first { 1 } else { stride })
                    .param("flip", self.keys.flip())
                    .param("most", self.keys.most())
            };
            let (groups, steps) = (shorts.div_ceil(wg as usize), chunk + bins);
            let count = shader!(include_str!("../../shaders/radix_count.wgsl"));
            kernels.push(sized("radix_count", count, None).workgroups(groups, steps));
            kernels.push(scan(caps, counts, rows * bins, chunks));
            let scatter = shader!(include_str!("../../shaders/radix_scatter.wgsl"));
            kernels.push(
                self.put(sized("radix_scatter", scatter, Some(to)), 2, give, first, last)
                    .param("last", usize::from(last))
                    .param("sums", rows * bins * chunks)
                    .workgroups(groups, steps),
            );
            from = to;
        }
    }

    /// Declares `y`, as this binding, and `put(at, k, e, i)`, which writes key `k` of element `e`, the `i`-th of its row.
    fn put(self, mut kernel: Kernel, binding: u32, give: Give, first: bool, last: bool) -> Kernel {
        let half = self.keys.dtype() == DType::F16;
        let pairs = "y[2u * at] = k;\n    y[2u * at + 1u] = place(e, i);";
        let (stored, body) = match give {
            Give::Values if half && last => {
                ("f16", "y[at] = f16(bitcast<f32>(bits_of(k)));".to_string())
            }
            Give::Values if half => ("u32", "y[at] = k;".to_string()),
            Give::Values => ("u32", "y[at] = select(k, bits_of(k), p.last != 0u);".to_string()),
            Give::Pairs => ("u32", pairs.to_string()),
            Give::Places => {
                let alone =
                    "if (p.last != 0u) {\n        y[at] = place(e, i);\n        return;\n    }";
                ("u32", format!("{alone}\n    {pairs}"))
            }
        };
        if give != Give::Values {
            kernel = self.keys.place(kernel, first);
        } else if !half || last {
            kernel = kernel.declare(self.keys.inverse());
        }
        if stored == "f16" {
            kernel = kernel.alias("Y", DType::F16);
        }
        kernel.declare(format!(
            "@group(0) @binding({binding}) var<storage, read_write> y: array<{stored}>;\n\
             fn put(at: u32, k: u32, e: u32, i: u32) {{\n    {body}\n}}"
        ))
    }

    /// How many bits a pass looks at, and how many keys a thread goes through.
    fn passes(self, caps: &Caps) -> Passes {
        let [low, bits] = self.keys.bits();
        let most = caps.loop_piece();
        // A thread also goes through all digits, so short rows have few of them.
        let room = (most / 2).ilog2().min(self.len.max(16).ilog2());
        let digit = widest(caps).min(room).max(1);
        let passes = bits.div_ceil(digit).max(1);
        let digit = bits.div_ceil(passes).max(1);
        let bins = 1usize << digit;
        let least = CHUNK[usize::from(!caps.cpu)];
        // About 256 threads fill a processor; more of them would only count more digits.
        let even = if caps.cpu { (self.rows * self.len).div_ceil(256) } else { least };
        // Another thread goes through all chunks.
        let chunk =
            even.max(least).max(self.len.div_ceil(most)).min(most - bins).min(self.len).max(1);
        let chunks = self.len.div_ceil(chunk);
        Passes { digit: digit as usize, passes: passes as usize, chunk, chunks, low }
    }
}

/// The most bits of a digit. A processor's thread goes through many keys, a GPU's through few and must not have to go
/// through more digits.
fn widest(caps: &Caps) -> u32 {
    if caps.cpu { 8 } else { 4 }
}

struct Passes {
    digit: usize,
    passes: usize,
    chunk: usize,
    chunks: usize,
    low: u32,
}

/// The kernel that adds up `lines` of counts.
fn scan(caps: &Caps, counts: Bind, lines: usize, chunks: usize) -> Kernel {
    const SCAN: &str = shader!(include_str!("../../shaders/radix_scan.wgsl"));
    // Where there is much to add up, a workgroup shares it.
    let wide = !caps.cpu && chunks > 64;
    let wg = if caps.cpu { 8 } else { 64 };
    let (groups, steps) = match wide {
        true => (lines, 2 * chunks.div_ceil(wg) + wg),
        false => (lines.div_ceil(wg), chunks),
    };
    Kernel::new("radix_scan", "")
        .declare(expand(SCAN, &[], &[("WIDE", wide)]))
        .constant("WG", wg as u32)
        .write(counts)
        .param("chunks", chunks)
        .param("lines", lines)
        .workgroups(groups, steps)
}
