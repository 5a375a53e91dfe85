//! AMD's compiler in Mesa: RADV compiles for hardware that is not present.

use std::ffi::{CStr, CString};

use anyhow::{Context, Result, anyhow, bail};
use ash::vk;
use wgrad::PlannedKernel;

const NEEDED: &str = "this takes Mesa's Vulkan driver for AMD (Debian: mesa-vulkan-drivers), and RADV_FORCE_FAMILY to name a GPU, \
as in navi21";

/// The compiler's report on a kernel.
#[derive(Debug, Clone, Default)]
pub struct Compiled {
    /// Vector registers per thread.
    pub registers: u32,
    /// Registers, vector and scalar, that were spilled to memory.
    pub spilled: u32,
    /// Bytes of memory that a wave uses because of missing registers.
    pub scratch: u32,
    /// Waves that a SIMD can hold at once.
    pub waves: u32,
    /// Threads per workgroup.
    pub threads: u32,
    /// The machine code.
    pub code: String,
}

/// A driver for a GPU that is not present.
pub struct Compiler {
    // `Drop` destroys the device and the instance; the library is dropped last.
    query: ash::khr::pipeline_executable_properties::Device,
    device: ash::Device,
    instance: ash::Instance,
    _entry: ash::Entry,
}

impl Compiler {
    /// # Errors
    /// If this machine has no such driver; the message names it.
    pub fn new() -> Result<Self> {
        // SAFETY: the loader is a system library that follows Vulkan's interface, and `Drop` destroys everything in order.
        unsafe {
            let entry = ash::Entry::load().context(NEEDED)?;
            let version = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let create = vk::InstanceCreateInfo::default().application_info(&version);
            let instance = entry.create_instance(&create, None).context(NEEDED)?;
            match device(&instance) {
                Ok(device) => {
                    let query =
                        ash::khr::pipeline_executable_properties::Device::new(&instance, &device);
                    Ok(Compiler { query, device, instance, _entry: entry })
                }
                Err(error) => {
                    instance.destroy_instance(None);
                    Err(error)
                }
            }
        }
    }

    /// Compiles a kernel as wgpu would pass it to the driver.
    ///
    /// # Errors
    /// If naga or the driver refuses it.
    pub fn compile(&self, kernel: &PlannedKernel) -> Result<Compiled> {
        let (words, bindings, threads) =
            translated(&kernel.wgsl).with_context(|| kernel.label.clone())?;
        let bindings: Vec<_> = bindings
            .iter()
            .map(|&(binding, kind)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(kind)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let device = &self.device;
        // SAFETY: naga's validator has accepted the module, the layout has its bindings, and destroyed objects are not used.
        unsafe {
            let layout = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let sets = [device.create_descriptor_set_layout(&layout, None)?];
            let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            let layout = device.create_pipeline_layout(&layout, None)?;
            let shader = device
                .create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&words), None)?;
            let main = CString::new("main")?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(shader)
                .name(&main);
            let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
                | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
            let create =
                vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).flags(flags);
            let pipelines =
                device.create_compute_pipelines(vk::PipelineCache::null(), &[create], None);
            let compiled = match pipelines {
                Ok(pipelines) => {
                    let compiled = self.properties(pipelines[0]);
                    device.destroy_pipeline(pipelines[0], None);
                    compiled.map(|compiled| Compiled { threads, ..compiled })
                }
                Err((_, error)) => Err(anyhow!("the driver refuses {}: {error}", kernel.label)),
            };
            device.destroy_shader_module(shader, None);
            device.destroy_pipeline_layout(layout, None);
            device.destroy_descriptor_set_layout(sets[0], None);
            compiled
        }
    }

    /// # Safety
    /// The pipeline belongs to this device and was created with both flags for capturing this information.
    unsafe fn properties(&self, pipeline: vk::Pipeline) -> Result<Compiled> {
        let executable =
            vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(0);
        // SAFETY: as above; the second call fills as many bytes as the first one counted.
        let (statistics, code) = unsafe {
            let statistics = self.query.get_pipeline_executable_statistics(&executable)?;
            let mut parts =
                self.query.get_pipeline_executable_internal_representations(&executable)?;
            let mut texts: Vec<Vec<u8>> =
                parts.iter().map(|part| vec![0; part.data_size]).collect();
            for (part, text) in parts.iter_mut().zip(&mut texts) {
                part.p_data = text.as_mut_ptr().cast();
            }
            let mut count = parts.len() as u32;
            let fill = self.query.fp().get_pipeline_executable_internal_representations_khr;
            fill(self.device.handle(), &executable, &mut count, parts.as_mut_ptr()).result()?;
            let assembly = |part: &vk::PipelineExecutableInternalRepresentationKHR| {
                CStr::from_ptr(part.name.as_ptr()).to_string_lossy().contains("ssembly")
            };
            let at = parts.iter().position(assembly).context("the driver shows no machine code")?;
            (statistics, String::from_utf8_lossy(&texts[at]).trim_end_matches('\0').to_owned())
        };
        let value = |wanted: &str| -> Result<u32> {
            let named = statistics.iter().find(|statistic| {
                statistic.name_as_c_str().is_ok_and(|name| name.to_string_lossy() == wanted)
            });
            let statistic = named.with_context(|| format!("the driver does not say {wanted:?}"))?;
            // SAFETY: RADV's statistics are all of this kind.
            Ok(unsafe { statistic.value.u64 } as u32)
        };
        Ok(Compiled {
            registers: value("VGPRs")?,
            spilled: value("Spilled VGPRs")? + value("Spilled SGPRs")?,
            scratch: value("Scratch size")?,
            waves: value("Subgroups per SIMD")?,
            threads: 0,
            code,
        })
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: nothing that was created with them is left.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

/// # Safety
/// The instance is alive.
unsafe fn device(instance: &ash::Instance) -> Result<ash::Device> {
    // SAFETY: the structures live until the call that reads them is over.
    unsafe {
        let absent = instance.enumerate_physical_devices()?.into_iter().find(|physical| {
            let properties = instance.get_physical_device_properties(*physical);
            properties
                .device_name_as_c_str()
                .is_ok_and(|name| name.to_string_lossy().contains("Null hardware"))
        });
        let Some(physical) = absent else { bail!(NEEDED) };
        let queue =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
        let extensions = [ash::khr::pipeline_executable_properties::NAME.as_ptr()];
        let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true);
        let mut v11 =
            vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(true);
        let mut known = vk::PhysicalDeviceVulkan12Features::default();
        let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut known);
        instance.get_physical_device_features2(physical, &mut all);
        // Cards before vega10 have no f16 arithmetic.
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default()
            .shader_float16(known.shader_float16 == vk::TRUE)
            .vulkan_memory_model(true)
            .vulkan_memory_model_device_scope(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queue)
            .enabled_extension_names(&extensions)
            .push_next(&mut statistics)
            .push_next(&mut v11)
            .push_next(&mut v12);
        Ok(instance.create_device(physical, &info, None)?)
    }
}

type Bindings = Vec<(u32, vk::DescriptorType)>;

/// The kernel in SPIR-V, its bindings, and the threads of a workgroup.
fn translated(wgsl: &str) -> Result<(Vec<u32>, Bindings, u32)> {
    let module =
        naga::front::wgsl::parse_str(wgsl).map_err(|error| anyhow!(error.emit_to_string(wgsl)))?;
    let mut validator =
        naga::valid::Validator::new(Default::default(), naga::valid::Capabilities::all());
    let info = validator.validate(&module)?;
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        flags: naga::back::spv::WriterFlags::empty(),
        // As wgrad configures wgpu: its shaders bound their loops and write workgroup memory before they read it.
        zero_initialize_workgroup_memory: naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        ..Default::default()
    };
    let words = naga::back::spv::write_vec(&module, &info, &options, None)?;
    let bindings = module.global_variables.iter().filter_map(|(_, variable)| {
        let kind = match variable.space {
            naga::AddressSpace::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
            _ => vk::DescriptorType::STORAGE_BUFFER,
        };
        Some((variable.binding.as_ref()?.binding, kind))
    });
    let main = module.entry_points.first().context("a kernel has an entry point")?;
    Ok((words, bindings.collect(), main.workgroup_size.iter().product()))
}
