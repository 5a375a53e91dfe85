//! The passes of a radix sort. Each sorts the keys by one digit; keys with the same digit keep the order of the
//! previous passes, which sort by lower digits.
//!
//! A pass has three kernels: the first counts the digits of every chunk of a row, the second computes running sums of
//! the counts, and the third moves the keys to their positions. On a CPU each thread has its own chunk; on a GPU a
//! workgroup shares one.

use super::{Give, Sorting};
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::{expand, shader};

/// The most bits of a digit.
const WIDEST: u32 = 8;

/// Threads of a workgroup on a CPU.
const LANES: usize = 8;
/// The minimum number of elements that a CPU thread processes.
const CHUNK: usize = 2048;

/// The threads of a workgroup that share a chunk on a GPU. Each has 8 keys, which with the counts take 16 KiB, or 4
/// keys if an adapter has less memory.
const THREADS: usize = 256;
/// The number of digits, whose counts are adjacent in memory, that a workgroup of a GPU sums.
const DIGITS: usize = 8;

impl Sorting {
    pub(super) fn by_digits(
        self,
        caps: &Caps,
        give: Give,
        from: Bind,
        to: Bind,
        temps: &mut Vec<u64>,
        kernels: &mut Vec<Kernel>,
    ) {
        let (rows, len) = (self.rows, self.len);
        let passes = Passes::new(self, caps);
        let stride = if give == Give::Values { 1 } else { 2 };
        // Each pass reads the output of the previous one; the last writes the result.
        let mut next = || {
            temps.push(DType::U32.bytes(stride * rows * len));
            Bind::Temp(temps.len() - 1)
        };
        let between: Vec<Bind> = (1..passes.count.min(3)).map(|_| next()).collect();
        temps.push(DType::U32.bytes(passes.totals() + rows * passes.bins()));
        let counts = Bind::Temp(temps.len() - 1);
        let mut from = from;
        for pass in 0..passes.count {
            let (first, last) = (pass == 0, pass + 1 == passes.count);
            let to = if last { to } else { between[pass % 2] };
            let reading = |kernel| self.keys.source(kernel, first, give == Give::Values).read(from);
            let of_pass = |kernel| {
                passes
                    .sizes(kernel)
                    .param("shift", passes.low + pass * passes.digit)
                    .param("first", usize::from(first))
                    .param("step", if first { 1 } else { stride })
                    .param("flip", self.keys.flip())
                    .param("most", self.keys.most())
            };
            kernels.push(passes.launched(of_pass(reading(passes.counting()).write(counts))));
            kernels.push(passes.adding(counts));
            let scatter = reading(passes.scattering()).read(counts).write(to);
            let scatter = self.put(of_pass(scatter), 2, give, first, last);
            let scatter = scatter.param("last", usize::from(last)).param("sums", passes.totals());
            kernels.push(passes.launched(scatter));
            from = to;
        }
    }
}

/// How rows are sorted.
struct Passes {
    rows: usize,
    len: usize,
    /// Bits of a digit, and the bits of a key below the first one.
    digit: usize,
    low: usize,
    count: usize,
    /// Keys of a chunk, and the chunks of a row.
    chunk: usize,
    chunks: usize,
    /// The keys of each thread, if a workgroup shares a chunk.
    keys: Option<usize>,
}

impl Passes {
    fn new(sorting: Sorting, caps: &Caps) -> Self {
        let Sorting { rows, len, keys } = sorting;
        let [low, bits] = keys.bits();
        let most = caps.loop_piece();
        // A CPU thread also iterates over all digit values, so short rows have few of them.
        let room = if caps.cpu { (most / 2).ilog2().min(len.max(16).ilog2()) } else { WIDEST };
        let count = bits.div_ceil(WIDEST.min(room).max(1)).max(1);
        let digit = bits.div_ceil(count).max(1);
        // About 256 threads keep a CPU busy; more would only count more digits. Another thread iterates over all
        // chunks.
        let alone = || {
            let even = (rows * len).div_ceil(256).max(CHUNK).max(len.div_ceil(most));
            even.min(most - (1 << digit)).min(len).max(1)
        };
        let keys = (!caps.cpu).then_some(if caps.workgroup[1] >= 16 << 10 { 8 } else { 4 });
        let chunk = keys.map_or_else(alone, |keys| THREADS * keys);
        Passes {
            rows,
            len,
            digit: digit as usize,
            low: low as usize,
            count: count as usize,
            chunk,
            chunks: len.div_ceil(chunk),
            keys,
        }
    }

    fn bins(&self) -> usize {
        1 << self.digit
    }

    /// The number of counts. They are followed by their sums over the chunks of each row.
    fn totals(&self) -> usize {
        self.rows * self.chunks * self.bins()
    }

    fn counting(&self) -> Kernel {
        const ALONE: &str = shader!(include_str!("../../../shaders/radix_count.wgsl"));
        const SHARED: &str = shader!(include_str!("../../../shaders/radix_block_count.wgsl"));
        let kernel = match self.keys {
            Some(_) => self.shared("radix_block_count", SHARED),
            None => Kernel::new("radix_count", ALONE).constant("WG", LANES as u32),
        };
        kernel.constant("BINS", 1 << WIDEST)
    }

    fn adding(&self, counts: Bind) -> Kernel {
        const ALONE: &str = shader!(include_str!("../../../shaders/radix_scan.wgsl"));
        const SHARED: &str = shader!(include_str!("../../../shaders/radix_block_scan.wgsl"));
        let Passes { rows, chunks, .. } = *self;
        if self.keys.is_some() {
            let shares = THREADS / DIGITS;
            return Kernel::new("radix_block_scan", SHARED)
                .constant("WG", THREADS as u32)
                .constant("DIGITS", DIGITS as u32)
                .write(counts)
                .param("chunks", chunks)
                .param("bins", self.bins())
                .param("rows", rows)
                .param("sums", self.totals())
                .workgroups(
                    rows * self.bins().div_ceil(DIGITS),
                    2 * chunks.div_ceil(shares) + shares,
                );
        }
        let lines = rows * self.bins();
        Kernel::new("radix_scan", ALONE)
            .constant("WG", LANES as u32)
            .write(counts)
            .param("chunks", chunks)
            .param("lines", lines)
            .workgroups(lines.div_ceil(LANES), chunks)
    }

    fn scattering(&self) -> Kernel {
        const ALONE: &str = shader!(include_str!("../../../shaders/radix_scatter.wgsl"));
        const SHARED: &str = shader!(include_str!("../../../shaders/radix_block_scatter.wgsl"));
        match self.keys {
            Some(keys) => self
                .shared("radix_block_scatter", "")
                .constant("INDEX", self.chunk.ilog2())
                .declare(expand(SHARED, &[("K", keys)], &[])),
            None => Kernel::new("radix_scatter", ALONE)
                .constant("WG", LANES as u32)
                .constant("BINS", 1 << WIDEST),
        }
    }

    /// A kernel in which a workgroup shares a chunk.
    fn shared(&self, label: &'static str, text: &'static str) -> Kernel {
        Kernel::new(label, text).constant("WG", THREADS as u32).constant("BLOCK", self.chunk as u32)
    }

    fn sizes(&self, kernel: Kernel) -> Kernel {
        let kernel = kernel.param("len", self.len);
        let kernel = if self.keys.is_some() { kernel } else { kernel.param("chunk", self.chunk) };
        kernel
            .param("chunks", self.chunks)
            .param("total", self.rows * self.chunks)
            .param("bins", self.bins())
    }

    fn launched(&self, kernel: Kernel) -> Kernel {
        let chunks = self.rows * self.chunks;
        match self.keys {
            Some(keys) => kernel.workgroups(chunks, keys + 8 * WIDEST as usize),
            None => kernel.workgroups(chunks.div_ceil(LANES), self.chunk + self.bins()),
        }
    }
}
