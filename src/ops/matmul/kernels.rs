//! Writes the text of each kernel of the product family.

use super::variants::Variant;
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::Kernel;
use crate::wgsl::{expand, shader};

/// The loops of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Loops {
    /// The operands are read one by one.
    pub(super) singly: bool,
    /// A run of i may end between multiples of four.
    pub(super) tail: bool,
    /// Runs of i are split into pieces.
    pub(super) cut: bool,
    /// A part has more or fewer than one u.
    pub(super) u: bool,
    /// There are more or fewer than one v.
    pub(super) v: bool,
}

impl Variant {
    pub(super) fn kernel(self, label: &'static str, loops: Loops, caps: &Caps) -> Kernel {
        let Loops { singly, tail, cut, u, v } = loops;
        // SwiftShader takes long to compile each loop that updates all sums, such as one for the tail.
        let masked = tail && caps.lanes() == Some(4) && matches!(self, Variant::Lanes { .. });
        let text = |file, counts: &[_], flags: &[_]| {
            let of_loops = [
                ("SINGLY", singly && !masked),
                ("TAIL", tail && !masked),
                ("MASKED", masked),
                ("PIECES", cut),
                ("SUMS_U", u),
                ("SUMS_V", v),
            ];
            expand(file, counts, &[flags, &of_loops].concat())
        };
        let kernel = Kernel::new(label, "");
        // A vector takes sixteen bytes. Almost every adapter has 16 KiB.
        let shared = caps.workgroup[1].min(16 << 10) as usize;
        // Browsers clear workgroup memory before a barrier, which makes SwiftShader compile the kernel once for every
        // few threads of a workgroup. llvmpipe is slower with memory private to a thread.
        let in_workgroup =
            |threads: usize| caps.eight_lanes() && 16 * threads * self.sums() <= shared;
        match self {
            Variant::Registers { tm, tn4, wx, wy } => {
                kernel.constant("THREADS", (wx * wy) as u32).declare(text(
                    shader!(include_str!("../../../shaders/gemm.wgsl")),
                    &[("TM4", tm.div_ceil(4)), ("TR", tm.min(4)), ("TN4", tn4)],
                    &[("BLOCKS", tm >= 4), ("ONCE", caps.cpu), ("SHARED", in_workgroup(wx * wy))],
                ))
            }
            Variant::Lanes { lanes, tm, tn4, wx } => {
                kernel.constant("WX", wx as u32).declare(text(
                    shader!(include_str!("../../../shaders/gemm_lanes.wgsl")),
                    &[("LANES", lanes), ("TM", tm), ("TN4", tn4)],
                    &[
                        ("ONCE", caps.cpu && (in_workgroup(wx) || !caps.eight_lanes())),
                        ("SHARED", in_workgroup(wx)),
                    ],
                ))
            }
            Variant::Tiled => kernel.declare(text(
                shader!(include_str!("../../../shaders/gemm_tiled.wgsl")),
                &[],
                &[],
            )),
            Variant::Sliced | Variant::Gathered => kernel.declare(text(
                shader!(include_str!("../../../shaders/gemm_sliced.wgsl")),
                &[],
                &[("GATHERED", self == Variant::Gathered)],
            )),
            Variant::Cooperative { size, half, side, wx } => {
                let [depth, line] = self.staged();
                let (element, dtype) = if half { ("f16", DType::F16) } else { ("f32", DType::F32) };
                let matrix = |name: &str, element: &str, role: &str| {
                    format!("alias {name} = coop_mat{size}x{size}<{element}, {role}>;")
                };
                kernel
                    .cooperative()
                    .alias("E", dtype)
                    .constant("WX", wx as u32)
                    .declare(matrix("MatA", element, "A"))
                    .declare(matrix("MatB", element, "B"))
                    .declare(matrix("MatC", "f32", "C"))
                    .declare(text(
                        COOPERATIVE,
                        &[
                            ("SIDE", side),
                            ("SIZE", size),
                            ("COUNT", 32 / size),
                            ("DEPTH", depth),
                            ("LINE", line),
                            ("TURNS", (2 * depth * side).div_ceil(wx)),
                        ],
                        &[],
                    ))
            }
            Variant::Dots { tm4, tn, wx } => kernel.constant("WX", wx as u32).declare(text(
                shader!(include_str!("../../../shaders/gemm_dots.wgsl")),
                &[("TM4", tm4), ("TN", tn)],
                &[("ONE", tn == 1)],
            )),
        }
    }
}

/// A page does not load kernels that browsers cannot run.
const COOPERATIVE: &str = match cfg!(target_family = "wasm") {
    true => "",
    false => shader!(include_str!("../../../shaders/gemm_cooperative.wgsl")),
};
