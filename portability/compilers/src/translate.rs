//! naga's translations, with the options that wgpu gives it.

use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, ResourceBinding};

use crate::Needs;

/// A kernel in the language of each back end.
#[derive(Debug)]
pub struct Translated {
    /// As it was parsed.
    pub module: Module,
    /// The size of its workgroup.
    pub needs: Needs,
    /// For Vulkan.
    pub spirv: Vec<u32>,
    /// For Metal.
    pub msl: String,
    /// For DX12 with DXC; none for cooperative matrices, which wgpu does not have there.
    pub hlsl: Option<String>,
}

/// What wgpu checks where the driver does not.
const CHECKS: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Restrict,
    buffer: BoundsCheckPolicy::Restrict,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

/// Parses, validates and translates a kernel. The error is the first complaint, with the language that it is about.
pub fn translate(wgsl: &str) -> Result<Translated, String> {
    let module = naga::front::wgsl::parse_str(wgsl)
        .map_err(|error| format!("WGSL: {}", error.emit_to_string(wgsl)))?;
    let matrices = uses_small_matrices(wgsl);
    // wgpu lets every adapter of WebGPU's round to f16.
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    capabilities.set(Capabilities::SHADER_FLOAT16, wgsl.starts_with("enable f16;"));
    capabilities.set(Capabilities::SUBGROUP, uses_subgroups(wgsl));
    capabilities.set(Capabilities::COOPERATIVE_MATRIX, matrices);
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|error| format!("validation: {}", error.emit_to_string(wgsl)))?;
    let needs = Needs::of(&module)?;
    let spirv = spirv(&module, &info).map_err(|error| format!("SPIR-V: {error}"))?;
    let msl = msl(&module, &info).map_err(|error| format!("MSL: {error}"))?;
    let hlsl = match matrices {
        true => None,
        false => Some(hlsl(&module, &info).map_err(|error| format!("HLSL: {error}"))?),
    };
    Ok(Translated { module, needs, spirv, msl, hlsl })
}

pub(crate) fn uses_small_matrices(wgsl: &str) -> bool {
    wgsl.contains("enable wgpu_cooperative_matrix;")
}

pub(crate) fn uses_subgroups(wgsl: &str) -> bool {
    wgsl.contains("subgroup")
}

fn bindings(module: &Module) -> impl Iterator<Item = ResourceBinding> + '_ {
    module.global_variables.iter().filter_map(|(_, global)| global.binding)
}

fn spirv(module: &Module, info: &ModuleInfo) -> Result<Vec<u32>, String> {
    use naga::back::spv;
    let options = spv::Options {
        // wgpu's for Vulkan 1.1 with the memory model, and for a debug label.
        lang_version: (1, 3),
        bounds_check_policies: CHECKS,
        ..Default::default()
    };
    spv::write_vec(module, info, &options, None).map_err(|error| error.to_string())
}

fn msl(module: &Module, info: &ModuleInfo) -> Result<String, String> {
    use naga::back::msl;
    let mut resources = msl::EntryPointResources { sizes_buffer: Some(30), ..Default::default() };
    for binding in bindings(module) {
        let target = msl::BindTarget {
            buffer: Some(binding.binding as u8),
            mutable: true,
            ..Default::default()
        };
        resources.resources.insert(binding, target);
    }
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_string(), resources)].into(),
        fake_missing_bindings: false,
        bounds_check_policies: CHECKS,
        ..Default::default()
    };
    let written = msl::write_string(module, info, &options, &Default::default());
    let (text, translation) = written.map_err(|error| error.to_string())?;
    for name in translation.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn hlsl(module: &Module, info: &ModuleInfo) -> Result<String, String> {
    use naga::back::hlsl;
    let target = |binding: ResourceBinding| hlsl::BindTarget {
        register: binding.binding,
        restrict_indexing: true,
        ..Default::default()
    };
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_2,
        binding_map: bindings(module).map(|binding| (binding, target(binding))).collect(),
        fake_missing_bindings: false,
        restrict_indexing: true,
        ..Default::default()
    };
    let pipeline = hlsl::PipelineOptions::default();
    let mut text = String::new();
    let mut writer = hlsl::Writer::new(&mut text, &options, &pipeline);
    let written = writer.write(module, info, None).map_err(|error| error.to_string())?;
    for name in written.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text)
}
