//! The kernels of a stable sort: keys with the same order as the elements, a radix sort of long rows, a sort by ranks
//! of short ones, and on a GPU a sort in workgroup memory of rows that fit there. Ops that sort combine them; this file
//! does not define ops.
//!
//! A key is a `u32`. Equal keys keep their order, so the result is the same every time.

mod passes;

use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::{expand, shader};

/// The rows to sort.
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
    /// Elements of a dtype, in their order; NaN is above all numbers.
    Of { dtype: DType, descending: bool },
    /// The numbers below a bound; all others count as equal to it.
    Below(usize),
}

/// The result of the sort.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Give {
    /// The elements.
    Values,
    /// The original index of each element in its row, as `i32`.
    Places,
    /// Pairs of keys and indices.
    Pairs,
}

impl Keys {
    fn dtype(self) -> DType {
        match self {
            Keys::Of { dtype, .. } => dtype,
            Keys::Below(_) => DType::I32,
        }
    }

    /// The lowest bit in which keys differ, and the number of bits from there on.
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

    /// Declares `key_of(bits)`. For a sort of indices, zeros of both signs are equal.
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

    /// Declares `bits_of(key)`, the inverse of `key_of`.
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

    /// Declares the binding `x` and `key(e)`. The parameters specify whether `x` holds elements (`first`) and the
    /// distance in words from one key to the next (`step`); there are no branches, because a CPU's threads process many
    /// keys. `f16` has a separate text for elements.
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

    /// Declares `place(e, i)`: the index `i` of an element in its row, or the index stored next to key `e`.
    pub(super) fn place(self, kernel: Kernel, first: bool) -> Kernel {
        let body = match (self.dtype() == DType::F16, first) {
            (true, true) => "i",
            (true, false) => "x[e * p.step + 1u]",
            (false, _) => "select(x[e * p.step + 1u], i, p.first != 0u)",
        };
        kernel.declare(format!("fn place(e: u32, i: u32) -> u32 {{ return {body}; }}"))
    }
}

/// Rows up to this length are sorted by ranks, as are longer ones if the total number of comparisons is small. On
/// llvmpipe a million elements in rows of 128 take 0.22 s of CPU time with either method.
const SHORT: usize = 128;
const FEW_COMPARISONS: usize = 1 << 20;

/// A chunk of a row in workgroup memory.
#[derive(Debug, PartialEq)]
struct Block {
    /// The number of keys that are sorted, including padding.
    keys: usize,
    /// The bits of an index in the chunk.
    place: u32,
    /// Key and place share a word.
    packed: bool,
    threads: usize,
    /// How often all keys are compared.
    steps: usize,
    iterations: usize,
}

impl Block {
    fn new(len: usize, packed: bool) -> Self {
        let keys = len.next_power_of_two().max(2);
        let (place, threads) = (keys.ilog2(), (keys / 2).min(256));
        let steps = (place * (place + 1) / 2) as usize;
        let iterations = 2 * keys / threads + steps * (1 + keys / threads / 2);
        Block { keys, place, packed, threads, steps, iterations }
    }
}

/// The input of a launch: chunks of a row, of each of which it keeps the first `keep` keys.
#[derive(Clone, Copy)]
struct Chunks {
    len: usize,
    chunk: usize,
    keep: usize,
    /// Whether it reads the elements themselves, and whether (`last`) it writes the final result.
    first: bool,
    last: bool,
}

impl Chunks {
    fn count(self) -> usize {
        self.len.div_ceil(self.chunk)
    }

    /// The keys that are kept of a row.
    fn kept(self) -> usize {
        let before = self.count() - 1;
        before * self.keep + self.keep.min(self.len - before * self.chunk)
    }
}

/// How many 32-bit words a workgroup stores in its memory: 16 KiB, or 8 if an adapter has slightly less than 16.
fn workgroup_words(caps: &Caps) -> usize {
    1 << (caps.workgroup[1] / 4).min(4096).ilog2()
}

impl Sorting {
    /// Appends the kernels that sort `from` into `to` to `kernels`, and their temporary buffers to `temps`.
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
            let len = self.len;
            let whole = Chunks { len, chunk: len, keep: len, first: true, last: true };
            kernels.push(self.by_block(block, whole, give, from, to));
        } else {
            self.by_digits(caps, give, from, to, temps, kernels);
        }
    }

    /// How a workgroup sorts a row in its memory, if the row fits there. On a CPU that memory is not faster.
    fn block(self, caps: &Caps) -> Option<Block> {
        let [_, bits] = self.keys.bits();
        let place = self.len.next_power_of_two().max(2).ilog2();
        let packed = matches!(self.keys, Keys::Below(_)) && bits + place <= u32::BITS;
        let block = Block::new(self.len, packed);
        let words = if packed { block.keys } else { 2 * block.keys };
        let fits = words <= workgroup_words(caps) && block.iterations <= caps.loop_iterations;
        (!caps.cpu && fits).then_some(block)
    }

    /// Appends the kernels that find the indices of the first `keep` elements of each row, in order, to `kernels`. Each
    /// round keeps that many elements of every chunk, which must be less than half of it.
    pub(super) fn first_places(
        self,
        caps: &Caps,
        keep: usize,
        [from, to]: [Bind; 2],
        temps: &mut Vec<u64>,
        kernels: &mut Vec<Kernel>,
    ) {
        let fits = |keys: &usize| Block::new(*keys, false).iterations <= caps.loop_iterations;
        let halves = std::iter::successors(Some(workgroup_words(caps) / 2), |keys| Some(keys / 2));
        let most = halves.take_while(|keys| *keys > 2 * keep).find(fits);
        let most = most.unwrap_or_else(|| panic!("no chunk of which to keep {keep}"));
        let (mut len, mut from, mut first) = (self.len, from, true);
        loop {
            let chunk = len.min(most);
            let last = chunk == len;
            let chunks = Chunks { len, chunk, keep, first, last };
            let kept = chunks.kept();
            let next = if last {
                to
            } else {
                temps.push(DType::U32.bytes(2 * self.rows * kept));
                Bind::Temp(temps.len() - 1)
            };
            let block = Block::new(chunk, false);
            kernels.push(self.by_block(block, chunks, Give::Places, from, next));
            if last {
                break;
            }
            (len, from, first) = (kept, next, false);
        }
    }

    fn by_block(self, block: Block, chunks: Chunks, give: Give, from: Bind, to: Bind) -> Kernel {
        const SORT: &str = shader!(include_str!("../../shaders/sort_block.wgsl"));
        let Chunks { len, chunk, keep, first, last } = chunks;
        let count = chunks.count();
        let kernel = Kernel::new("sort_block", "")
            .declare(expand(SORT, &[], &[("PACKED", block.packed)]))
            .constant("WG", block.threads as u32)
            .constant("N", block.keys as u32)
            .constant("PLACE", block.place)
            .constant("STEPS", block.steps as u32);
        let kernel = self.keys.source(kernel, first, give == Give::Values).read(from).write(to);
        self.put(kernel, 1, give, first, last)
            .param("len", len)
            .param("chunk", chunk)
            .param("chunks", count)
            .param("total", self.rows * count)
            .param("keep", keep)
            .param("kept", chunks.kept())
            .param("first", usize::from(first))
            .param("step", if first { 1 } else { 2 })
            .param("flip", self.keys.flip())
            .param("most", self.keys.most())
            .param("last", usize::from(last))
            .workgroups(self.rows * count, block.iterations)
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
}
