//! The kernels that fold rows into segments with integer atomics, whose order does not affect the result: sums of
//! integers, the number of rows of a segment, the maximum and minimum of any dtype, the last row. Floats are converted
//! to integer keys with the same order. This file does not define ops.

use crate::dtype::DType;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::shader;

/// The kind of fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(super) enum Fold {
    /// The sum of `i32` or `u32`, which wraps.
    Sum,
    /// The maximum; without rows, the lowest number of the dtype. NaN takes precedence.
    Max,
    /// The minimum; without rows, the highest number of the dtype. NaN takes precedence.
    Min,
    /// The number of rows.
    Count,
    /// One more than the index of the last row; 0 if there is none.
    Last,
}

/// Rows `[batch, count, inner]` by ids `[batch, count]` into `[batch, rows, inner]`.
#[derive(Clone, Copy)]
pub(super) struct Folding {
    pub(super) batch: usize,
    pub(super) count: usize,
    pub(super) inner: usize,
    pub(super) rows: usize,
    pub(super) dtype: DType,
    pub(super) fold: Fold,
}

impl Folding {
    /// The two kernels that write a word for each element of the result to `words`.
    pub(super) fn words(self, x: Option<Bind>, ids: Bind, words: Bind) -> Vec<Kernel> {
        let size = self.batch * self.rows * self.inner;
        let start = match self.fold {
            Fold::Max | Fold::Min => self.word(self.bound()),
            _ => 0,
        };
        vec![fill(words, size, start), self.fold(x, ids, words)]
    }

    /// As [`Folding::words`], for a result that starts from `from`, which has its shape.
    pub(super) fn words_from(self, from: Bind, x: Bind, ids: Bind, words: Bind) -> Vec<Kernel> {
        let size = self.batch * self.rows * self.inner;
        let file = shader!(include_str!("../../shaders/scatter_words.wgsl"));
        let start = self
            .source(Kernel::new("scatter_words", file).constant("WG", 64).read(from), 0)
            .declare(format!("fn word(e: u32) -> u32 {{\n    {}\n}}", self.word_of()))
            .write(words)
            .param("total", size)
            .workgroups(size.div_ceil(64), 0);
        vec![start, self.fold(Some(x), ids, words)]
    }

    /// The initial bits of a maximum or a minimum: those of the number that every other number replaces.
    fn bound(self) -> u32 {
        let largest = self.fold == Fold::Max;
        match self.dtype {
            DType::I32 if largest => i32::MIN as u32,
            DType::I32 => i32::MAX as u32,
            DType::F32 if largest => f32::MIN.to_bits(),
            DType::F32 => f32::MAX.to_bits(),
            DType::F16 if largest => half::f16::MIN.to_f32().to_bits(),
            DType::F16 => half::f16::MAX.to_f32().to_bits(),
            _ if largest => 0,
            _ => u32::MAX,
        }
    }

    /// As `word_of` in the shader, for a number on the host.
    fn word(self, bits: u32) -> u32 {
        match self.dtype {
            DType::I32 => bits ^ 0x8000_0000,
            DType::F32 | DType::F16 if bits >> 31 == 1 => !bits,
            DType::F32 | DType::F16 => bits | 0x8000_0000,
            _ => bits,
        }
    }

    /// Declares the elements.
    fn source(self, kernel: Kernel, binding: usize) -> Kernel {
        let (kernel, stored) = match self.dtype {
            DType::F16 => (kernel.alias("X", DType::F16), "f16"),
            _ => (kernel, "u32"),
        };
        kernel.declare(format!(
            "@group(0) @binding({binding}) var<storage, read> x: array<{stored}>;"
        ))
    }

    /// The word of element `e` of `x`, in WGSL.
    fn word_of(self) -> String {
        let bits = if self.dtype == DType::F16 { "bitcast<u32>(f32(x[e]))" } else { "x[e]" };
        let float = |nan: &str| {
            format!(
                "select(select(bits | 0x80000000u, ~bits, bits >= 0x80000000u), {nan}, \
                 (bits & 0x7fffffffu) > 0x7f800000u)"
            )
        };
        let keyed = match (self.dtype, self.fold) {
            (_, Fold::Sum) => "bits".to_string(),
            (DType::I32, _) => "bits ^ 0x80000000u".to_string(),
            (DType::F32 | DType::F16, Fold::Max) => float("0xffffffffu"),
            (DType::F32 | DType::F16, _) => float("0u"),
            _ => "bits".to_string(),
        };
        format!("let bits = {bits};\n    return {keyed};")
    }

    fn fold(self, x: Option<Bind>, ids: Bind, words: Bind) -> Kernel {
        let word = match self.fold {
            Fold::Count => "return 1u;".to_string(),
            Fold::Last => "return s + 1u;".to_string(),
            _ => self.word_of(),
        };
        let atomic = match self.fold {
            Fold::Sum | Fold::Count => "atomicAdd",
            Fold::Max | Fold::Last => "atomicMax",
            Fold::Min => "atomicMin",
        };
        let at = 1 + usize::from(x.is_some());
        let mut kernel =
            Kernel::new("scatter_fold", shader!(include_str!("../../shaders/scatter_fold.wgsl")))
                .constant("WG", 64)
                .read(ids);
        if let Some(x) = x {
            kernel = self.source(kernel, 1).read(x);
        }
        let total = self.batch * self.count * self.inner;
        kernel
            .declare(format!(
                "@group(0) @binding({at}) var<storage, read_write> y: array<atomic<u32>>;\n\
                 @group(0) @binding({}) var<uniform> p: Params;\n\
                 fn word(e: u32, s: u32) -> u32 {{\n    {word}\n}}\n\
                 fn fold(at: u32, word: u32) {{ {atomic}(&y[at], word); }}",
                at + 1
            ))
            .write(words)
            .param("count", self.count)
            .param("rows", self.rows)
            .param("inner", self.inner)
            .param("total", total)
            .workgroups(total.div_ceil(64), 0)
    }

    /// The kernel that converts the words to elements.
    pub(super) fn result(self, words: Bind) -> Kernel {
        let float = "bitcast<f32>(select(~w, w ^ 0x80000000u, w >= 0x80000000u))";
        let value = match (self.dtype, self.fold) {
            (DType::I32, Fold::Sum) | (_, Fold::Count) => "i32(w)",
            (_, Fold::Last) => "i32(w) - 1",
            (DType::I32, _) => "i32(w ^ 0x80000000u)",
            (DType::F32 | DType::F16, _) => float,
            _ => "w",
        };
        let scalar = match self.fold {
            Fold::Count | Fold::Last => "i32",
            _ => self.dtype.register().scalar(),
        };
        let total = self.batch * self.rows * self.inner;
        Kernel::new("scatter_result", shader!(include_str!("../../shaders/scatter_result.wgsl")))
            .constant("WG", 64)
            .declare(format!("alias V = vec4<{scalar}>;"))
            .declare(format!("fn value(w: u32) -> {scalar} {{ return {value}; }}"))
            .stores()
            .read(words)
            .write(Bind::Output)
            .param("total", total)
            .workgroups(total.div_ceil(4 * 64), 0)
    }

    /// The bytes of the buffer of words between the kernels.
    pub(super) fn bytes(self) -> u64 {
        DType::U32.bytes(self.batch * self.rows * self.inner)
    }
}

/// The kernel that fills `total` words.
pub(super) fn fill(words: Bind, total: usize, value: u32) -> Kernel {
    Kernel::new("fill_words", shader!(include_str!("../../shaders/fill_words.wgsl")))
        .constant("WG", 64)
        .write(words)
        .param("total", total)
        .param("value", value as usize)
        .workgroups(total.div_ceil(64), 0)
}
