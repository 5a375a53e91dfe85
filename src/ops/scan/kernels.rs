//! The kernels of a scan, for any combination.

use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::Spec;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering};
use crate::shape::Shape;
use crate::wgsl::shader;

/// The elements of a scan, and how they are combined.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// The WGSL type that is carried from element to element, and the words in it.
    pub(super) carried: &'static str,
    pub(super) words: usize,
    /// The identity element.
    pub(super) identity: &'static str,
    /// `a` and then `b`: an expression, or statements that end in a `return`.
    pub(super) combine: &'static str,
    /// The carried value of the inputs' elements `x0[at]` and so on.
    pub(super) load: &'static str,
    pub(super) inputs: usize,
    /// The result from the carried value `a`.
    pub(super) result: &'static str,
}

/// One scan: the axis and its direction.
pub(super) struct Scan {
    pub(super) axis: usize,
    pub(super) exclusive: bool,
    pub(super) reverse: bool,
    pub(super) code: Code,
}

/// One thread processes a whole axis if it is short, or a longer one if there are enough lines to keep a device busy.
const SHORT: usize = 64;
const MANY: usize = 4096;
/// Fewer rows keep a CPU busy: its cores, times the numbers in a vector. This does not apply to columns: each step down
/// a long one accesses another page of memory.
const MANY_ON_A_CPU: usize = 256;
/// The threads of a workgroup that processes rows, and the elements of each in a tile.
const THREADS: usize = 256;
const EACH: usize = 8;
const TILE: usize = THREADS * EACH;
/// This many workgroups keep a device busy.
const FILL: usize = 1024;

impl Scan {
    pub(super) fn lower(&self, x: &Spec, caps: &Caps) -> Lowering {
        let product = |sizes: &[usize]| Shape::new(sizes).elements();
        let (outer, inner) = (product(&x.shape[..self.axis]), product(&x.shape[self.axis + 1..]));
        let (len, lines, most) = (x.shape[self.axis].max(1), outer * inner, caps.loop_piece());
        let Scan { exclusive, reverse, code, .. } = *self;
        let walk = |len, chunk| ScanLines { len, chunk, inner, lines, exclusive, reverse, code };
        let many = match (caps.cpu, inner) {
            (true, 1) => MANY_ON_A_CPU,
            (true, _) => usize::MAX,
            _ => MANY,
        };
        let rows = inner == 1 && !caps.cpu && len > SHORT;
        if !rows && (len <= SHORT.min(most) || (lines >= many && len <= most)) {
            return walk(len, len).kernel(x.dtype, None, Write::Running(Bind::Output)).into();
        }
        let chunk = match rows {
            // Whole tiles, enough to keep the device busy; a workgroup processes at most as many as the loop limit
            // allows.
            true => {
                let parts = (FILL / lines.max(1)).clamp(1, len.div_ceil(TILE));
                let tiles = len.div_ceil(parts).div_ceil(TILE);
                tiles.min((most / ITERATIONS).max(1)) * TILE
            }
            // There are about as many chunks as a chunk has elements: one thread for each line iterates over the sums
            // of the chunks. The length is an odd number of cache lines, so that neighbours do not map to the same
            // cache sets.
            false => {
                let chunk = len.isqrt().max(len.div_ceil(most));
                if inner == 1 && chunk > 64 { (chunk.div_ceil(16) | 1) * 16 } else { chunk }
            }
        };
        let kernel = |walk: &ScanLines, x: &Source, carries, write| match rows {
            true => walk.rows(x, carries, write),
            false => walk.lines(x, carries, write),
        };
        let source = Source::Inputs(x.dtype);
        let whole = walk(len, chunk);
        let chunks = len.div_ceil(chunk);
        if chunks == 1 {
            return kernel(&whole, &source, None, Write::Running(Bind::Output)).into();
        }
        let (sums, carries) = (Bind::Temp(0), Bind::Temp(1));
        // The chunks are already in the order of the scan.
        let between = ScanLines {
            exclusive: true,
            reverse: false,
            ..walk(chunks, chunks.next_multiple_of(TILE))
        };
        let between = match rows {
            true => between,
            false => ScanLines { chunk: chunks, ..between },
        };
        let kernels = vec![
            kernel(&whole, &source, None, Write::Sums(sums)),
            kernel(&between, &Source::Carried(sums), None, Write::Carries(carries)),
            kernel(&whole, &source, Some(carries), Write::Running(Bind::Output)),
        ];
        let temp = DType::F32.bytes((lines * chunks).saturating_mul(code.words));
        Lowering::Kernels(Kernels { temps: vec![temp, temp], kernels })
    }
}

/// The iterations of a tile.
const ITERATIONS: usize = 2 * EACH + 9;

/// How threads iterate over the lines of the axis.
struct ScanLines {
    len: usize,
    chunk: usize,
    inner: usize,
    lines: usize,
    exclusive: bool,
    reverse: bool,
    code: Code,
}

/// The input of a kernel: the op's inputs of a dtype, or another kernel's carried values.
enum Source {
    Inputs(DType),
    Carried(Bind),
}

/// The output of a kernel: results, the sums of chunks, or the start value of each chunk.
enum Write {
    Running(Bind),
    Sums(Bind),
    Carries(Bind),
}

impl ScanLines {
    fn kernel(&self, dtype: DType, carries: Option<Bind>, write: Write) -> Kernel {
        self.lines(&Source::Inputs(dtype), carries, write)
    }

    /// The kernel whose threads each process a chunk.
    fn lines(&self, x: &Source, carries: Option<Bind>, write: Write) -> Kernel {
        let kernel = Kernel::new("scan", shader!(include_str!("../../../shaders/scan.wgsl")));
        let chunks = self.len.div_ceil(self.chunk);
        let (first, step) = self.direction();
        // Small workgroups are distributed better over the cores of a CPU.
        let threads = self.lines * chunks;
        let size = if threads < 64 * 64 { 16 } else { 64 };
        self.declared(kernel.constant("WG", size as u32), x, carries, write)
            .param("len", self.len)
            .param("inner", self.inner)
            .param("chunk", self.chunk)
            .param("chunks", chunks)
            .param("first", first)
            .signed("step", step * self.inner as i64)
            .param("total", threads)
            .workgroups(threads.div_ceil(size), self.chunk)
    }

    /// The kernel whose workgroups each process a chunk of a row.
    fn rows(&self, x: &Source, carries: Option<Bind>, write: Write) -> Kernel {
        let shader = shader!(include_str!("../../../shaders/scan_rows.wgsl"));
        let kernel = Kernel::new("scan_rows", shader)
            .constant("WG", THREADS as u32)
            .constant("EACH", EACH as u32)
            .declare(format!("fn identity() -> A {{ return {}; }}", self.code.identity));
        let chunks = self.len.div_ceil(self.chunk);
        let (first, step) = self.direction();
        self.declared(kernel, x, carries, write)
            .param("len", self.len)
            .param("chunk", self.chunk)
            .param("chunks", chunks)
            .param("first", first)
            .signed("step", step)
            .param("total", self.lines * chunks)
            .workgroups(self.lines * chunks, self.chunk.div_ceil(TILE) * ITERATIONS)
    }

    fn direction(&self) -> (usize, i64) {
        if self.reverse { (self.len - 1, -1) } else { (0, 1) }
    }

    /// Adds the declarations and bindings that both kernels need.
    fn declared(
        &self,
        mut kernel: Kernel,
        x: &Source,
        carries: Option<Bind>,
        write: Write,
    ) -> Kernel {
        let Code { carried, identity, combine, load, inputs, result, .. } = self.code;
        let body = if combine.contains("return") {
            combine.to_string()
        } else {
            format!("return {combine};")
        };
        let (y, put, finish, stored) = match write {
            Write::Running(y) => (y, format!("y[at] = T({result});"), "", "T"),
            Write::Carries(y) => (y, "y[at] = a;".to_string(), "", "A"),
            Write::Sums(y) => (y, String::new(), "y[e] = a;", "A"),
        };
        let (dtype, load, binds, element) = match *x {
            Source::Inputs(dtype) => (dtype, load, (0..inputs).map(Bind::Input).collect(), "T"),
            Source::Carried(bind) => (DType::F32, "x0[at]", vec![bind], "A"),
        };
        kernel = kernel
            .alias("T", dtype)
            .declare(format!("alias A = {carried};"))
            .declare(format!("const EXCLUSIVE = {};", self.exclusive))
            .declare(format!("fn combine(a: A, b: A) -> A {{ {body} }}"))
            .declare(format!("fn load(at: u32) -> A {{ return {load}; }}"))
            .declare(format!("fn put(at: u32, a: A) {{ {put} }}"))
            .declare(format!("fn finish(e: u32, a: A) {{ {finish} }}"));
        let mut at = 0;
        for bind in binds {
            kernel = kernel
                .declare(format!(
                    "@group(0) @binding({at}) var<storage, read> x{at}: array<{element}>;"
                ))
                .read(bind);
            at += 1;
        }
        let start = match carries {
            None => identity,
            Some(carries) => {
                kernel = kernel
                    .declare(format!(
                        "@group(0) @binding({at}) var<storage, read> carries: array<A>;"
                    ))
                    .read(carries);
                at += 1;
                "carries[e]"
            }
        };
        kernel
            .declare(format!("fn start(e: u32) -> A {{ return {start}; }}"))
            .declare(format!(
                "@group(0) @binding({at}) var<storage, read_write> y: array<{stored}>;\n\
                 @group(0) @binding({}) var<uniform> p: Params;",
                at + 1
            ))
            .write(y)
    }
}
