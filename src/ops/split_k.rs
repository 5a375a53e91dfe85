//! Where a kernel writes its sums: to the op's result, or to parts that a second kernel sums.

use crate::device::{COLUMN_FOURS, COLUMN_THREADS, Caps};
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::{expand, shader};

/// The length of a part, if a loop of `whole` steps for each of `results` elements is too long for one thread.
pub(super) fn split_length(whole: usize, results: usize, caps: &Caps) -> usize {
    let piece = caps.loop_piece();
    // Few results are distributed over more threads.
    let few = results < 4096;
    if few { (piece / 16).max(whole.div_ceil(piece)) } else { piece }
}

/// Makes a kernel write its results to `out`. It has an alias `Out`, and its inputs are bound.
pub(super) fn store_to(out: Bind, kernel: Kernel, whole: bool) -> Kernel {
    match out {
        Bind::Output => kernel.stores(),
        _ => {
            let store = store(kernel.binds.len(), whole);
            kernel.declare(store)
        }
    }
    .write(out)
}

/// The kernel that sums `parts` partial sums for each of `results` elements.
pub(super) fn sum_splits(
    [from, out]: [Bind; 2],
    sums: DType,
    result: DType,
    [results, parts]: [usize; 2],
    caps: &Caps,
) -> Kernel {
    const SUM: &str = shader!(include_str!("../../shaders/sum_parts.wgsl"));
    let quads = results.is_multiple_of(4);
    let shared = caps.shares_columns(results.div_ceil(4), parts);
    let (threads, side) = match shared {
        true => (COLUMN_THREADS * COLUMN_FOURS, COLUMN_FOURS),
        false => (64, 64),
    };
    let joins = COLUMN_THREADS.ilog2() as usize;
    let iterations = if shared { parts.div_ceil(COLUMN_THREADS) + joins } else { parts };
    let kernel = Kernel::new("sum_parts", "")
        .declare(expand(SUM, &[], &[("SHARED", shared)]))
        .alias("Sum", sums)
        .alias("Out", result)
        .constant("WG", threads as u32)
        .constant("SIDE", side as u32)
        .declare("alias V = vec4<Sum>;")
        .declare(if quads {
            "@group(0) @binding(0) var<storage, read> x: array<V>;\n\
             fn load(at: u32) -> V { return x[at / 4u]; }"
        } else {
            "@group(0) @binding(0) var<storage, read> x: array<Sum>;\n\
             fn load(at: u32) -> V { return V(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }"
        })
        .read(from)
        .write(out)
        .param("len", results)
        .param("parts", parts)
        .workgroups(results.div_ceil(4 * side), iterations);
    match out {
        Bind::Output => kernel.stores(),
        _ => kernel.declare(store(1, quads)),
    }
}

/// Declares the result, which holds `Out`, at a binding, and the function that writes four consecutive elements, of
/// which the first `count` exist. With `whole` all four always exist and begin at a multiple of four.
fn store(binding: usize, whole: bool) -> String {
    if whole {
        format!(
            "@group(0) @binding({binding}) var<storage, read_write> y: array<vec4<Out>>;\n\
             fn c_store(at: u32, count: u32, v: V) {{ y[at / 4u] = vec4<Out>(v); }}"
        )
    } else {
        format!(
            "@group(0) @binding({binding}) var<storage, read_write> y: array<Out>;\n\
             fn c_store(at: u32, count: u32, v: V) {{\n    \
             y[at] = Out(v.x);\n    \
             if (count > 1u) {{ y[at + 1u] = Out(v.y); }}\n    \
             if (count > 2u) {{ y[at + 2u] = Out(v.z); }}\n    \
             if (count > 3u) {{ y[at + 3u] = Out(v.w); }}\n}}"
        )
    }
}
