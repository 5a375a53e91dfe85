//! Adapters that users have, with what wgpu 30 reports about them, so that plans for them can be made and checked on
//! any machine.
//!
//! Numbers come from the drivers' sources or documents, through wgpu's own mapping (`wgpu-hal`, `adapter.rs` of each back end).
//! Where drivers of one family differ, a row has the smaller number. Rows whose source is a guess say so.

use super::{AdapterInfo, AdapterKind, Backend, Caps, Cooperative, MatmulPrecision};
use crate::dtype::DType;

/// An adapter as wgpu shows it.
#[derive(Debug)]
pub(crate) struct KnownAdapter {
    pub(crate) name: &'static str,
    kind: AdapterKind,
    backend: Backend,
    /// The source of the numbers.
    pub(crate) source: &'static str,
    f16: bool,
    /// The minimum and maximum number of threads of a subgroup, if kernels may use subgroups.
    subgroups: Option<[u32; 2]>,
    /// Sizes and inputs of the matrices that subgroups multiply, with sums in `f32`.
    cooperative: &'static [(u32, DType)],
    /// Threads of a workgroup, and bytes that they share.
    workgroup: [u32; 2],
    storage_buffers: u32,
    /// Buffers of all kinds, where there is such a limit.
    buffers: u32,
    binding_bytes: u64,
    buffer_bytes: u64,
    uniform_alignment: u32,
    /// The resources that limit how many workgroups run at once, if the vendor publishes them.
    pub(crate) core: Option<Core>,
}

/// The resources shared by all workgroups that run at once on one core (NVIDIA's multiprocessor, AMD's compute unit,
/// Intel's Xe core).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Core {
    pub(crate) threads: u32,
    /// Of 32 bits.
    pub(crate) registers: u32,
    /// Bytes.
    pub(crate) shared: u32,
    pub(crate) groups: u32,
}

/// CUDA's table of compute capabilities, 8.9.
const ADA: Core = Core { threads: 1536, registers: 1 << 16, shared: 100 << 10, groups: 24 };
/// The same table, 6.1.
const PASCAL: Core = Core { threads: 2048, registers: 1 << 16, shared: 96 << 10, groups: 32 };
/// AMD's guide to RDNA: two units of 16 waves of 32, with 128 KiB of registers each.
const RDNA: Core = Core { threads: 1024, registers: 1 << 16, shared: 64 << 10, groups: 32 };
/// AMD's guide to GCN: four units of 10 waves of 64, with 64 KiB of registers each.
const GCN: Core = Core { threads: 2560, registers: 1 << 16, shared: 64 << 10, groups: 40 };
/// Intel's guide to Xe-HPG: 16 engines of 8 threads with 4 KiB of registers, each for 16 invocations.
const XE: Core = Core { threads: 2048, registers: 1 << 17, shared: 64 << 10, groups: 64 };
/// ARM's guide to Valhall: if a thread needs more than 32 registers, only half as many run.
const VALHALL: Core = Core { threads: 1024, registers: 1 << 15, shared: 32 << 10, groups: 32 };

/// The longest binding that wgpu lets an adapter of Vulkan or DX12 have, and the longest buffer of Vulkan on Linux and
/// Android (NVIDIA's apart) and of DX12.
const I32: u64 = (1 << 31) - 1;
const ANY: u32 = u32::MAX;

const VULKAN: KnownAdapter = KnownAdapter {
    name: "",
    kind: AdapterKind::DiscreteGpu,
    backend: Backend::Vulkan,
    source: "",
    f16: true,
    subgroups: None,
    cooperative: &[],
    workgroup: [1024, 32 << 10],
    storage_buffers: 500_000,
    buffers: ANY,
    binding_bytes: I32,
    buffer_bytes: I32,
    uniform_alignment: 64,
    core: None,
};

const DX12: KnownAdapter = KnownAdapter {
    backend: Backend::Dx12,
    storage_buffers: 250_000,
    uniform_alignment: 256,
    ..VULKAN
};

/// The minimum that every browser with WebGPU guarantees, and the default of a page that requests no limits.
const BROWSER: KnownAdapter = KnownAdapter {
    kind: AdapterKind::Other,
    backend: Backend::BrowserWebGpu,
    workgroup: [256, 16 << 10],
    storage_buffers: 8,
    binding_bytes: 128 << 20,
    buffer_bytes: 256 << 20,
    uniform_alignment: 256,
    ..VULKAN
};

/// All of them.
const KNOWN_ADAPTERS: &[KnownAdapter] = &[
    KnownAdapter {
        name: "NVIDIA GeForce RTX 4070",
        source: "NVIDIA's Vulkan driver; wgpu does not cap its buffers",
        subgroups: Some([32, 32]),
        cooperative: &[(16, DType::F16)],
        workgroup: [1024, 48 << 10],
        storage_buffers: 1 << 20,
        buffer_bytes: 1 << 40,
        core: Some(ADA),
        ..VULKAN
    },
    KnownAdapter {
        name: "NVIDIA GeForce GTX 1060",
        source: "NVIDIA's Vulkan driver, Pascal: no f16",
        f16: false,
        subgroups: Some([32, 32]),
        workgroup: [1024, 48 << 10],
        storage_buffers: 1 << 20,
        buffer_bytes: 1 << 40,
        core: Some(PASCAL),
        ..VULKAN
    },
    KnownAdapter {
        name: "NVIDIA GeForce RTX 4070, DX12",
        source: "D3D12's constants, resource binding tier 3",
        subgroups: Some([32, 32]),
        core: Some(ADA),
        ..DX12
    },
    KnownAdapter {
        name: "AMD Radeon RX 6800",
        source: "Mesa's radv_physical_device.c",
        subgroups: Some([32, 64]),
        workgroup: [1024, 64 << 10],
        uniform_alignment: 4,
        core: Some(RDNA),
        ..VULKAN
    },
    KnownAdapter {
        name: "AMD Radeon RX 7900 XTX",
        source: "Mesa's radv_physical_device.c, with matrices from gfx11 on",
        subgroups: Some([32, 64]),
        cooperative: &[(16, DType::F16)],
        workgroup: [1024, 64 << 10],
        uniform_alignment: 4,
        core: Some(RDNA),
        ..VULKAN
    },
    KnownAdapter {
        name: "AMD Radeon RX 580, Windows",
        source: "AMD's Vulkan driver 26.5.2: 32 KiB; no f16 on gfx8",
        f16: false,
        subgroups: Some([64, 64]),
        uniform_alignment: 4,
        core: Some(GCN),
        ..VULKAN
    },
    KnownAdapter {
        name: "AMD Radeon 780M",
        kind: AdapterKind::IntegratedGpu,
        source: "Mesa's radv_physical_device.c",
        subgroups: Some([32, 64]),
        cooperative: &[(16, DType::F16)],
        workgroup: [1024, 64 << 10],
        uniform_alignment: 4,
        core: Some(RDNA),
        ..VULKAN
    },
    KnownAdapter {
        name: "Intel Arc A770",
        source: "Mesa's anv_physical_device.c; matrices of 8 x 8 x 16 are no squares",
        subgroups: Some([8, 32]),
        workgroup: [1024, 64 << 10],
        storage_buffers: 1 << 16,
        core: Some(XE),
        ..VULKAN
    },
    KnownAdapter {
        name: "Intel UHD 620",
        kind: AdapterKind::IntegratedGpu,
        source: "Mesa's anv_physical_device.c, gfx9",
        subgroups: Some([8, 32]),
        workgroup: [1024, 64 << 10],
        storage_buffers: 64,
        binding_bytes: 1 << 30,
        ..VULKAN
    },
    KnownAdapter {
        name: "Intel HD 4600, DX12",
        kind: AdapterKind::IntegratedGpu,
        source: "D3D12's constants, resource binding tier 1 of feature level 11_1: 64 views, a quarter for buffers; FXC",
        f16: false,
        storage_buffers: 16,
        ..DX12
    },
    KnownAdapter {
        name: "Apple M2",
        kind: AdapterKind::IntegratedGpu,
        backend: Backend::Metal,
        source: "Metal's feature set tables, Apple8",
        subgroups: Some([4, 64]),
        cooperative: &[(8, DType::F16), (8, DType::F32)],
        storage_buffers: 29,
        buffers: 29,
        binding_bytes: 9 << 30,
        buffer_bytes: 9 << 30,
        uniform_alignment: 256,
        ..VULKAN
    },
    KnownAdapter {
        name: "Apple A10",
        kind: AdapterKind::IntegratedGpu,
        backend: Backend::Metal,
        source: "Metal's feature set tables, Apple3; a guess: half of 2 GB in one buffer",
        workgroup: [512, 16 << 10],
        storage_buffers: 29,
        buffers: 29,
        binding_bytes: 1 << 30,
        buffer_bytes: 1 << 30,
        ..VULKAN
    },
    KnownAdapter {
        name: "AMD Radeon Pro 5500M, Metal",
        backend: Backend::Metal,
        source: "Metal's feature set tables, Mac2",
        subgroups: Some([4, 64]),
        storage_buffers: 29,
        buffers: 29,
        binding_bytes: 7 << 29,
        buffer_bytes: 7 << 29,
        uniform_alignment: 256,
        ..VULKAN
    },
    KnownAdapter {
        name: "Qualcomm Adreno 640",
        kind: AdapterKind::IntegratedGpu,
        source: "Qualcomm's driver 512: 24 storage buffers, bindings of 2^27 bytes",
        subgroups: Some([64, 128]),
        storage_buffers: 24,
        binding_bytes: 1 << 27,
        ..VULKAN
    },
    KnownAdapter {
        name: "Qualcomm Adreno 740",
        kind: AdapterKind::IntegratedGpu,
        source: "Qualcomm's driver 744; bindings as in older drivers",
        subgroups: Some([64, 128]),
        binding_bytes: 1 << 27,
        ..VULKAN
    },
    KnownAdapter {
        name: "ARM Mali-G78",
        kind: AdapterKind::IntegratedGpu,
        source: "ARM's Vulkan driver r32; a guess: the 35 storage buffers of older drivers",
        subgroups: Some([16, 16]),
        workgroup: [512, 32 << 10],
        storage_buffers: 35,
        binding_bytes: 1 << 27,
        core: Some(VALHALL),
        ..VULKAN
    },
    KnownAdapter {
        name: "ARM Mali-G52",
        kind: AdapterKind::IntegratedGpu,
        source: "ARM's Vulkan driver r19: 384 threads",
        subgroups: Some([8, 8]),
        workgroup: [384, 32 << 10],
        storage_buffers: 35,
        binding_bytes: 1 << 27,
        ..VULKAN
    },
    KnownAdapter {
        name: "Raspberry Pi 5",
        kind: AdapterKind::IntegratedGpu,
        source: "Mesa's v3dv_device.c",
        f16: false,
        subgroups: Some([16, 16]),
        workgroup: [256, 16 << 10],
        storage_buffers: 8,
        binding_bytes: 1 << 27,
        buffer_bytes: 1 << 30,
        uniform_alignment: 32,
        ..VULKAN
    },
    KnownAdapter {
        name: "llvmpipe",
        kind: AdapterKind::Cpu,
        source: "Mesa's lvp_device.c",
        subgroups: Some([8, 8]),
        storage_buffers: 32,
        ..VULKAN
    },
    KnownAdapter {
        name: "SwiftShader",
        kind: AdapterKind::Cpu,
        source: "SwiftShader's VkConfig.hpp",
        f16: false,
        subgroups: Some([4, 4]),
        workgroup: [256, 32 << 10],
        storage_buffers: 16,
        binding_bytes: 1 << 30,
        buffer_bytes: 1 << 30,
        uniform_alignment: 256,
        ..VULKAN
    },
    KnownAdapter {
        name: "WARP",
        kind: AdapterKind::Cpu,
        source: "D3D12's constants, resource binding tier 3; waves of 4",
        subgroups: Some([4, 4]),
        ..DX12
    },
    KnownAdapter {
        name: "Chrome",
        source: "Dawn's tiers of limits, on a GPU of the last ten years",
        workgroup: [1024, 32 << 10],
        storage_buffers: 10,
        binding_bytes: I32 - 3,
        buffer_bytes: I32 + 1,
        ..BROWSER
    },
    KnownAdapter {
        name: "Safari",
        source: "a guess: what WebGPU guarantees, with larger buffers",
        workgroup: [1024, 32 << 10],
        storage_buffers: 10,
        binding_bytes: 1 << 30,
        buffer_bytes: 1 << 30,
        ..BROWSER
    },
    KnownAdapter {
        name: "WebGPU's guaranteed limits",
        source: "the specification's table of limits",
        f16: false,
        ..BROWSER
    },
    KnownAdapter {
        name: "WebGPU's compatibility mode",
        source: "wgpu::Limits::downlevel_defaults()",
        f16: false,
        storage_buffers: 4,
        workgroup: [256, 16_352],
        ..BROWSER
    },
];

/// The adapters that differ for the planner, each with the capabilities by which kernels are chosen; of equal adapters,
/// the first.
pub(crate) fn distinct_adapters() -> Vec<(&'static KnownAdapter, Caps)> {
    let mut found: Vec<(&KnownAdapter, Caps)> = Vec::new();
    for adapter in KNOWN_ADAPTERS {
        let caps = adapter.caps();
        if found.iter().all(|(_, known)| *known != caps) {
            found.push((adapter, caps));
        }
    }
    found
}

impl KnownAdapter {
    /// The limits with which wgrad opens it: all that the adapter supports.
    pub(crate) fn limits(&self) -> wgpu::Limits {
        let [threads, shared] = self.workgroup;
        wgpu::Limits {
            max_bindings_per_bind_group: 1000,
            max_buffers_and_acceleration_structures_per_shader_stage: self.buffers,
            max_storage_buffers_per_shader_stage: self.storage_buffers,
            max_compute_invocations_per_workgroup: threads,
            max_compute_workgroup_size_x: threads,
            max_compute_workgroup_size_y: threads,
            max_compute_workgroup_storage_size: shared,
            max_storage_buffer_binding_size: self.binding_bytes,
            max_buffer_size: self.buffer_bytes,
            min_uniform_buffer_offset_alignment: self.uniform_alignment,
            ..wgpu::Limits::downlevel_defaults()
        }
    }

    /// The capabilities by which kernels are chosen. Matrices count as proven.
    pub(crate) fn caps(&self) -> Caps {
        let mut features = wgpu::Features::empty();
        features.set(wgpu::Features::SHADER_F16, self.f16);
        let info = AdapterInfo {
            name: self.name.into(),
            kind: self.kind,
            backend: self.backend,
            driver: String::new(),
        };
        let kind = |&(size, inputs)| Cooperative { size, inputs, proven: true };
        Caps {
            subgroups: self.subgroups,
            cooperative: self.cooperative.iter().map(kind).collect(),
            precision: match self.cooperative {
                [] => MatmulPrecision::Strict,
                _ => MatmulPrecision::F16Inputs,
            },
            ..Caps::new(&info, features, &self.limits())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_adapter_has_limits_that_kernels_run_with() {
        for adapter in KNOWN_ADAPTERS {
            super::super::limits::check(&adapter.limits(), "").unwrap();
            assert!(!adapter.source.is_empty(), "{}", adapter.name);
        }
        assert!(KNOWN_ADAPTERS.len() >= 12);
    }

    #[test]
    fn adapters_that_are_the_same_to_the_planner_come_once() {
        let distinct = distinct_adapters();
        for (at, (adapter, caps)) in distinct.iter().enumerate() {
            assert!(distinct[..at].iter().all(|(_, other)| other != caps), "{}", adapter.name);
        }
        for known in KNOWN_ADAPTERS {
            let caps = known.caps();
            assert!(distinct.iter().any(|(_, other)| *other == caps), "{}", known.name);
        }
    }

    /// Direct3D's feature level 11_0 allows a shader 8 writable views, of which wgpu reserves 2 for buffers.
    #[test]
    fn the_oldest_adapters_of_dx12_are_refused() {
        let oldest = KnownAdapter { storage_buffers: 2, ..DX12 };
        let error = super::super::limits::check(&oldest.limits(), "").unwrap_err().to_string();
        assert!(
            error.contains("max_storage_buffers_per_shader_stage is 2 and must be 4"),
            "{error}"
        );
    }
}
