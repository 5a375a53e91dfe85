//! The limits and features of a device that kernels rely on, and the minimum limits that they require.

use super::{AdapterInfo, Cooperative, MatmulPrecision};
use crate::error::{DeviceFault, Error, Result, message};

/// The limits and features that kernels rely on and that determine their variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caps {
    /// The driver runs shaders on the processor: a dispatch is expensive, and workgroup memory gains nothing.
    pub(crate) cpu: bool,
    pub(crate) f16: bool,
    /// The minimum and maximum number of threads of a subgroup, if kernels may use subgroups.
    pub(crate) subgroups: Option<[u32; 2]>,
    /// The cooperative matrices that subgroups can multiply.
    pub(crate) cooperative: Vec<Cooperative>,
    /// The precision of products of `f32` tensors.
    pub(crate) precision: MatmulPrecision,
    /// Threads of a workgroup, and bytes that they may share.
    pub(crate) workgroup: [u32; 2],
    /// How many threads keep a GPU busy: kernels divide small work among this many.
    pub(crate) threads: usize,
    /// Storage buffers that one kernel may bind.
    pub(crate) storage_buffers: usize,
    /// How many iterations the loops of one invocation may make in all: one after another, within each other, and in
    /// the functions that they call.
    pub(crate) loop_iterations: usize,
    /// For tests: ends each kernel's loops after the number of iterations that the kernel states.
    #[cfg(test)]
    pub(crate) strict: bool,
    /// Bytes that one binding may cover.
    pub(crate) binding_bytes: u64,
    pub(crate) buffer_bytes: u64,
    /// Workgroups along one axis of a dispatch.
    pub(crate) groups: u32,
    pub(crate) uniform_alignment: u64,
}

/// On a GPU, this many threads share a fold down four neighbouring columns, and a workgroup handles this many groups of
/// four: sixteen neighbouring vectors are two lines of memory.
pub(crate) const COLUMN_THREADS: usize = 16;
pub(crate) const COLUMN_FOURS: usize = 16;
/// This many groups of four columns keep a GPU busy with one thread each.
const MANY_FOURS: usize = 4096;

/// A large card has 160 cores, each of which needs four waves of 64 threads; an integrated GPU has an eighth to a
/// quarter of them.
const BUSY: usize = 160 * 4 * 64;
const BUSY_INTEGRATED: usize = BUSY / 5;

/// The number of loop iterations that every adapter supports. Mesa's llvmpipe silently ends the loops of an invocation
/// after 65,535 iterations in all, and a browser does not say which driver it uses. The driver also counts the final
/// check of each loop, so this is half of that limit.
const LOOP_ITERATIONS: usize = 1 << 15;

/// The most bytes that a binding covers, even if the adapter allows more (Metal allows more than 2^32). Kernels count
/// elements in 32 bits, and the last row of a folded grid continues beyond the last element: up to 65,534 workgroups of
/// at most 4096 elements each, whose indices must not reach 2^32 and wrap around.
const MOST_BINDING_BYTES: u64 = (1 << 32) - (1 << 28);

/// The most uniform buffers that a kernel binds: its own parameters, and those of its epilogue.
const UNIFORMS: u32 = 2;

impl Caps {
    pub(super) fn new(info: &AdapterInfo, features: wgpu::Features, limits: &wgpu::Limits) -> Self {
        let all = limits
            .max_bindings_per_bind_group
            .min(limits.max_buffers_and_acceleration_structures_per_shader_stage);
        let storage_buffers =
            limits.max_storage_buffers_per_shader_stage.min(all.saturating_sub(UNIFORMS));
        Caps {
            cpu: info.kind == super::AdapterKind::Cpu,
            f16: features.contains(wgpu::Features::SHADER_F16),
            subgroups: None,
            cooperative: Vec::new(),
            precision: MatmulPrecision::Strict,
            workgroup: [
                limits
                    .max_compute_invocations_per_workgroup
                    .min(limits.max_compute_workgroup_size_x),
                limits.max_compute_workgroup_storage_size,
            ],
            threads: match info.kind {
                super::AdapterKind::IntegratedGpu => BUSY_INTEGRATED,
                _ => BUSY,
            },
            storage_buffers: storage_buffers as usize,
            loop_iterations: LOOP_ITERATIONS,
            #[cfg(test)]
            strict: false,
            binding_bytes: limits
                .max_storage_buffer_binding_size
                .min(limits.max_buffer_size)
                .min(MOST_BINDING_BYTES),
            buffer_bytes: limits.max_buffer_size,
            groups: limits.max_compute_workgroups_per_dimension,
            uniform_alignment: u64::from(limits.min_uniform_buffer_offset_alignment),
        }
    }

    /// Whether several threads share a fold down columns; there are `4 * fours` columns of `len` elements each.
    pub(crate) fn shares_columns(&self, fours: usize, len: usize) -> bool {
        let fits = self.workgroup[0] as usize >= COLUMN_THREADS * COLUMN_FOURS;
        !self.cpu && fits && len >= COLUMN_THREADS / 2 && fours <= MANY_FOURS
    }

    /// Threads of a subgroup, if all subgroups have the same size.
    pub(crate) fn subgroup(&self) -> Option<u32> {
        self.subgroups.filter(|[least, most]| least == most).map(|[size, _]| size)
    }

    /// How many threads a CPU driver runs at once (SIMD lanes), if kernels may use that: eight in Mesa with AVX, four
    /// in SwiftShader.
    pub(crate) fn lanes(&self) -> Option<usize> {
        let lanes = self.subgroup().filter(|_| self.cpu)?;
        matches!(lanes, 4 | 8).then_some(lanes as usize)
    }

    pub(crate) fn eight_lanes(&self) -> bool {
        self.lanes() == Some(8)
    }

    /// The maximum length of each piece when a kernel must split a loop that is too long. Joining the pieces may take
    /// as many iterations again.
    pub(crate) fn loop_piece(&self) -> usize {
        self.loop_iterations / 2
    }

    /// Drops capabilities that not every GPU in every browser has (`WGRAD_PORTABLE=1`), so that kernels are generated
    /// and chosen as on such a GPU. The adapter's buffer sizes stay. `buffers` storage buffers per kernel stay, if it
    /// is more than every browser has: native drivers of desktop GPUs have more (`WGRAD_PORTABLE=64`).
    pub(super) fn forget_the_adapter(&mut self, buffers: Option<usize>) {
        self.cpu = false;
        self.subgroups = None;
        self.cooperative.clear();
        let portable = wgpu::Limits::default().max_storage_buffers_per_shader_stage as usize;
        let most = buffers.unwrap_or(0).max(portable);
        self.storage_buffers = self.storage_buffers.min(most);
    }

    /// What every device of WebGPU has by default, in any browser.
    #[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
    pub(crate) fn of_webgpu(f16: bool) -> Self {
        let info = AdapterInfo {
            name: "WebGPU".into(),
            kind: super::AdapterKind::Other,
            backend: super::Backend::BrowserWebGpu,
            driver: String::new(),
        };
        let mut features = wgpu::Features::empty();
        features.set(wgpu::Features::SHADER_F16, f16);
        // WebGPU limits no buffers but those of storage and uniforms.
        let limits = wgpu::Limits {
            max_buffers_and_acceleration_structures_per_shader_stage: u32::MAX,
            ..wgpu::Limits::defaults()
        };
        Caps::new(&info, features, &limits)
    }

    /// WebGPU's guaranteed minimum, which tests use to lower ops and generate code.
    #[cfg(test)]
    pub(crate) fn portable() -> Self {
        Caps::with_limits(&wgpu::Limits::default())
    }

    /// A GPU with these limits.
    #[cfg(test)]
    pub(crate) fn with_limits(limits: &wgpu::Limits) -> Self {
        Caps::new(&AdapterInfo::for_tests(), wgpu::Features::SHADER_F16, limits)
    }
}

/// The remedy for an application that has requested less than every adapter offers.
pub(super) const ASK_FOR_MORE: &str = "Ask for more when the device is made: `wgpu::Limits::downlevel_defaults()` is \
enough, and `adapter.limits()` is all that the adapter has.";

/// Returns an error if some kernel would not run with these limits.
pub(super) fn check(limits: &wgpu::Limits, remedy: &str) -> Result<()> {
    let least = wgpu::Limits::downlevel_defaults();
    macro_rules! too_small {
        ($($name:ident: $needed:expr),* $(,)?) => {
            [$((stringify!($name), u64::from(limits.$name), u64::from($needed))),*]
        };
    }
    let limits = too_small! {
        max_storage_buffers_per_shader_stage: least.max_storage_buffers_per_shader_stage,
        max_uniform_buffers_per_shader_stage: UNIFORMS,
        max_bindings_per_bind_group: least.max_storage_buffers_per_shader_stage + UNIFORMS,
        max_buffers_and_acceleration_structures_per_shader_stage:
            least.max_storage_buffers_per_shader_stage + UNIFORMS,
        max_compute_invocations_per_workgroup: least.max_compute_invocations_per_workgroup,
        max_compute_workgroup_size_x: least.max_compute_workgroup_size_x,
        max_compute_workgroup_size_y: least.max_compute_workgroup_size_y,
        max_compute_workgroup_storage_size: least.max_compute_workgroup_storage_size,
        max_compute_workgroups_per_dimension: least.max_compute_workgroups_per_dimension,
        max_uniform_buffer_binding_size: least.max_uniform_buffer_binding_size,
        max_storage_buffer_binding_size: least.max_storage_buffer_binding_size,
        max_buffer_size: least.max_buffer_size,
    };
    let small: Vec<String> = limits
        .iter()
        .filter(|(_, value, needed)| value < needed)
        .map(|(name, value, needed)| format!("{name} is {value} and must be {needed} or more"))
        .collect();
    if small.is_empty() {
        return Ok(());
    }
    Err(Error::Device(
        DeviceFault::Limit,
        message!("Device: limits are too small for kernels: {}. {remedy}", small.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_by_the_kind_and_by_the_options() {
        let of = |kind| {
            let info = AdapterInfo { kind, ..AdapterInfo::for_tests() };
            Caps::new(&info, wgpu::Features::empty(), &wgpu::Limits::default()).threads
        };
        use crate::device::AdapterKind::{DiscreteGpu, IntegratedGpu, Other};
        assert_eq!([of(DiscreteGpu), of(Other), of(IntegratedGpu)], [40_960, 40_960, 8192]);
        for (given, taken) in [(5000, 5000), (0, 1)] {
            let options = crate::device::DeviceOptions::new().threads(given);
            let gpu = pollster::block_on(crate::device::Gpu::open(&options)).unwrap();
            assert_eq!(gpu.caps.threads, taken);
        }
    }

    #[test]
    fn what_every_adapter_has_is_enough() {
        check(&wgpu::Limits::default(), "").unwrap();
        check(&wgpu::Limits::downlevel_defaults(), "").unwrap();
    }

    #[test]
    fn no_index_of_a_kernel_comes_to_2_to_the_32() {
        let all = wgpu::Limits {
            max_storage_buffer_binding_size: 1 << 40,
            max_buffer_size: 1 << 40,
            ..wgpu::Limits::default()
        };
        let most = Caps::with_limits(&all).binding_bytes;
        // An element has at least one byte, and a workgroup has up to 256 threads of up to 16 elements.
        for each in [1, 64, 256, 1024, 4096] {
            let [x, y, z] = crate::graph::lower::fold(most.div_ceil(each)).map(u64::from);
            assert!(
                x * y * z * each >= most && x * y * z * each < 1 << 32,
                "{each}: {x}, {y}, {z}"
            );
        }
    }

    #[test]
    fn limits_that_are_too_small_are_named() {
        let few = wgpu::Limits {
            max_storage_buffers_per_shader_stage: 3,
            max_compute_workgroup_size_x: 32,
            ..wgpu::Limits::default()
        };
        assert_eq!(
            check(&few, ASK_FOR_MORE).unwrap_err().to_string(),
            "Device: limits are too small for kernels: max_storage_buffers_per_shader_stage is 3 and must be 4 or more, \
             max_compute_workgroup_size_x is 32 and must be 256 or more. Ask for more when the device is made: \
             `wgpu::Limits::downlevel_defaults()` is enough, and `adapter.limits()` is all that the adapter has."
        );
        let none = check(&wgpu::Limits::downlevel_webgl2_defaults(), "").unwrap_err().to_string();
        assert!(none.contains("max_storage_buffers_per_shader_stage is 0 and must be 4"), "{none}");
    }
}
