//! Runs exported models by wgpu alone, and compares them with the functions.

use std::path::PathBuf;

use super::*;
use crate as tf;
use crate::interop::DeviceExt;
use crate::plan::BufferRef;
use crate::{DType, Error, HostArray, Tensor, Variable};
use serde_json::Value;

/// The files of a function, by name.
struct Exported {
    plan: Value,
    weights: Vec<(String, Vec<u8>)>,
    types: String,
}

impl Exported {
    fn new(function: &ConcreteFunction) -> Result<Self> {
        let [(_, weights), (_, module), (_, types), (_, plan)] =
            files(&function.frozen("export_webgpu")?, function)?;
        assert_eq!(module, MODULE.as_bytes());
        let weights = file::parse(&weights)?;
        let weights = file::from_bytes(&weights)?
            .iter()
            .map(|array| (array.name.to_string(), stored(&array.array)))
            .collect();
        let types = String::from_utf8(types).unwrap();
        Ok(Exported { plan: serde_json::from_slice(&plan).unwrap(), weights, types })
    }

    /// What the module does: uploads, dispatches and reads.
    fn run(&self, device: &tf::Device, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>> {
        let (gpu, queue) = device.wgpu();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let number = |value: &Value| value.as_u64().unwrap();
        let plan = &self.plan;
        let buffers: Vec<wgpu::Buffer> = list(&plan["buffers"])
            .iter()
            .map(|bytes| {
                gpu.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: number(bytes),
                    usage: wgpu::BufferUsages::STORAGE
                        | wgpu::BufferUsages::COPY_SRC
                        | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            })
            .collect();
        let upload = |place: &Value, mut bytes: Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            queue.write_buffer(&buffers[number(&place["buffer"]) as usize], 0, &bytes);
        };
        for place in list(&plan["weights"]) {
            let found = self.weights.iter().find(|(name, _)| *name == place["name"]);
            upload(&place, found.unwrap().1.clone());
        }
        for (place, input) in list(&plan["inputs"]).iter().zip(inputs) {
            upload(place, stored(&HostArray::from_tensor(input)?));
        }
        let pipelines: Vec<(wgpu::ComputePipeline, wgpu::BindGroupLayout)> =
            list(&plan["kernels"]).iter().map(|kernel| pipeline(gpu, kernel)).collect();
        let mut encoder = gpu.create_command_encoder(&Default::default());
        for step in list(&plan["steps"]) {
            let (pipeline, layout) = &pipelines[number(&step["kernel"]) as usize];
            let uniforms: Vec<Option<wgpu::Buffer>> = list(&step["bindings"])
                .iter()
                .map(|binding| {
                    let words = binding.get("uniform")?;
                    let words: Vec<u32> = list(words).iter().map(|w| number(w) as u32).collect();
                    let buffer = gpu.create_buffer(&wgpu::BufferDescriptor {
                        label: None,
                        size: 4 * words.len() as u64,
                        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                        mapped_at_creation: false,
                    });
                    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&words));
                    Some(buffer)
                })
                .collect();
            let bindings = list(&step["bindings"]);
            let entries: Vec<wgpu::BindGroupEntry<'_>> = bindings
                .iter()
                .zip(&uniforms)
                .zip(0..)
                .map(|((binding, uniform), at)| {
                    let resource = match uniform {
                        Some(uniform) => uniform.as_entire_binding(),
                        None => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                            buffer: &buffers[number(&binding["buffer"]) as usize],
                            offset: 0,
                            size: std::num::NonZeroU64::new(number(&binding["size"])),
                        }),
                    };
                    wgpu::BindGroupEntry { binding: at, resource }
                })
                .collect();
            let group = gpu.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout,
                entries: &entries,
            });
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [x, y, z] = [0, 1, 2].map(|axis| number(&step["workgroups"][axis]) as u32);
            pass.dispatch_workgroups(x, y, z);
        }
        queue.submit([encoder.finish()]);
        let read = |place: &Value| {
            let buffer = &buffers[number(&place["buffer"]) as usize];
            let host = gpu.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: buffer.size(),
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let mut encoder = gpu.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(buffer, 0, &host, 0, buffer.size());
            queue.submit([encoder.finish()]);
            host.map_async(wgpu::MapMode::Read, .., |mapped| mapped.unwrap());
            gpu.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            host.get_mapped_range(..).unwrap().to_vec()
        };
        Ok(list(&plan["outputs"]).iter().map(read).collect())
    }
}

fn pipeline(gpu: &wgpu::Device, kernel: &Value) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout) {
    let entry = |(at, access): (u32, &Value)| wgpu::BindGroupLayoutEntry {
        binding: at,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: match access.as_str().unwrap() {
                "uniform" => wgpu::BufferBindingType::Uniform,
                access => {
                    wgpu::BufferBindingType::Storage { read_only: access == "read-only-storage" }
                }
            },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let accesses = kernel["bindings"].as_array().unwrap();
    let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..).zip(accesses).map(entry).collect();
    let layout = gpu.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    });
    let layouts = gpu.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        ..Default::default()
    });
    let module = gpu.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(kernel["wgsl"].as_str().unwrap().into()),
    });
    let pipeline = gpu.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layouts),
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    (pipeline, layout)
}

/// An array's bytes as the device stores them.
fn stored(array: &HostArray<'_>) -> Vec<u8> {
    match array.dtype() {
        crate::HostDType::Bool => {
            array.bytes().iter().flat_map(|truth| u32::from(*truth).to_le_bytes()).collect()
        }
        _ => array.bytes().to_vec(),
    }
}

/// Runs the exported function with other inputs than those of the trace, and compares.
fn check(function: &ConcreteFunction, inputs: &[Tensor]) -> Exported {
    let device = tf::Device::current().unwrap();
    let exported = Exported::new(function).unwrap();
    let got = exported.run(&device, inputs).unwrap();
    let want = function.call(inputs).unwrap();
    assert_eq!(got.len(), want.len());
    for ((got, want), place) in
        got.iter().zip(&want).zip(exported.plan["outputs"].as_array().unwrap())
    {
        assert_eq!(place["dtype"], want.dtype().tensorflow_name());
        let shape: Vec<usize> = place["shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect();
        assert_eq!(shape, want.shape());
        let bytes = stored(&HostArray::from_tensor(want).unwrap());
        if want.dtype() == DType::F32 {
            // The portable kernels sum in another order.
            let got: &[f32] = &bytemuck::pod_collect_to_vec(&got[..bytes.len()]);
            for (got, want) in got.iter().zip(want.to_vec::<f32>().unwrap()) {
                assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{got} and {want}");
            }
        } else {
            assert_eq!(got[..bytes.len()], bytes);
        }
    }
    exported
}

fn values(shape: &[usize]) -> Tensor {
    tf::random::Generator::from_seed(7).normal(shape).unwrap()
}

#[test]
fn an_exported_function_has_the_same_results() {
    let weights = Variable::new(values(&[20, 8]));
    let bias = values(&[8]);
    let owned = weights.clone();
    let f = tf::function(move |x: Tensor| {
        let y = x.matmul(owned.read())?.add(&bias)?.relu()?;
        Ok((y.softmax(-1)?, y.reduce_sum(())?))
    });
    let concrete = f.get_concrete_function((Tensor::zeros([5, 20]).unwrap(),)).unwrap();
    let exported = check(&concrete, &[values(&[5, 20])]);
    assert_eq!(exported.plan["weights"][0]["name"], "variable_0");
    assert_eq!(exported.plan["weights"][1]["name"], "constant_1");
    assert!(
        exported.types.contains("Results = [Float32Array, Float32Array];"),
        "{}",
        exported.types
    );
    assert!(exported.types.contains("/** float32[5, 20]. */"), "{}", exported.types);
    // The variable's value is that of the export.
    weights.assign(values(&[20, 8]).add(1.0).unwrap()).unwrap();
    check(&concrete, &[values(&[5, 20])]);
}

#[test]
fn every_dtype_and_any_result_is_exported() {
    let constant = tf::constant([1.0, 2.0]).unwrap();
    let f = tf::function(move |(x, n, unused): (Tensor, Tensor, Tensor)| {
        let bytes = n.cast(DType::U8)?;
        let truth = x.greater(0.0)?;
        let parts =
            vec![x.exp()?, n.multiply(3)?, truth.logical_not()?, bytes, n.cast(DType::U32)?];
        // An argument, a constant, a result twice, and one without elements.
        let passed = vec![unused, constant.clone(), parts[0].clone(), Tensor::zeros([0, 3])?];
        Ok(parts.into_iter().chain(passed).collect::<Vec<_>>())
    });
    let inputs =
        (values(&[3]), tf::constant([1, 2, 300]).unwrap(), tf::constant([true, false]).unwrap());
    let concrete = f.get_concrete_function((inputs.clone(),)).unwrap();
    check(&concrete, &[inputs.0, inputs.1, inputs.2]);
}

#[test]
fn half_precision_is_exported_where_the_adapter_has_it() {
    if !tf::Device::current().unwrap().caps().f16 {
        return;
    }
    let f = tf::function(|x: Tensor| x.multiply(2.0)?.reduce_sum(-1));
    let x = tf::constant([[1.5, -2.0, 3.0]]).unwrap().cast(DType::F16).unwrap();
    let concrete = f.get_concrete_function((x.clone(),)).unwrap();
    let exported = check(&concrete, &[x]);
    assert_eq!(exported.plan["features"][0], "shader-f16");
    assert!(exported.types.contains("Results = Uint16Array;"), "{}", exported.types);
}

#[test]
fn gradients_and_selects_are_exported() {
    let f = tf::function(|x: Tensor| {
        let tape = tf::GradientTape::new();
        tape.watch(&x)?;
        let y = x.square()?.reduce_sum(())?;
        let gradient = tape.gradient(&y, &x)?.unwrap();
        tf::cond(&y.greater(1.0)?, || gradient.multiply(2.0), || Ok(gradient.clone()))
    });
    let concrete = f.get_concrete_function((Tensor::zeros([4]).unwrap(),)).unwrap();
    for size in [0.1, 10.0] {
        check(&concrete, &[values(&[4]).multiply(size).unwrap()]);
    }
}

#[test]
fn what_differs_from_run_to_run_is_refused_with_all_reasons() {
    let variable = Variable::new(tf::constant([1.0, 2.0]).unwrap());
    let f = tf::function(move |x: Tensor| {
        variable.assign(x.add(1.0)?)?;
        x.print("x")?;
        x.add(tf::random::normal([2])?)
    });
    let concrete = f.get_concrete_function((Tensor::zeros([2]).unwrap(),)).unwrap();
    let error = concrete.export_webgpu("never-written").unwrap_err();
    assert!(matches!(error, Error::Trace(_)), "{error:?}");
    let text = error.to_string();
    for part in ["it assigns 1 variable (f32[2])", "it prints, checks or writes values", "random"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!PathBuf::from("never-written").exists());

    let f = tf::function(|x: Tensor| {
        tf::while_loop(|x: &Tensor| x.reduce_sum(())?.less(10.0), |x: Tensor| x.multiply(2.0), x)
    });
    let concrete = f.get_concrete_function((Tensor::ones([2]).unwrap(),)).unwrap();
    let error = concrete.export_webgpu("never-written").unwrap_err().to_string();
    assert!(error.contains("the host decides at each run"), "{error}");
}

#[test]
fn the_files_are_written_and_replaced() {
    let folder = std::env::temp_dir().join(format!("wgrad-export-{}", std::process::id()));
    let f = tf::function(|x: Tensor| x.square());
    for size in [2, 3] {
        let concrete = f.get_concrete_function((Tensor::zeros([size]).unwrap(),)).unwrap();
        concrete.export_webgpu(folder.join("deep")).unwrap();
        let plan = std::fs::read(folder.join("deep/model.json")).unwrap();
        let plan: Value = serde_json::from_slice(&plan).unwrap();
        assert_eq!(plan["inputs"][0]["shape"][0], size);
        assert_eq!(std::fs::read_dir(folder.join("deep")).unwrap().count(), 4);
    }
    // A file in the folder's place.
    let concrete = f.get_concrete_function((Tensor::zeros([2]).unwrap(),)).unwrap();
    let error = concrete.export_webgpu(folder.join("deep/model.json")).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_device_must_have_what_the_plan_needs() {
    use crate::plan::portable::{PortableKernel, PortableStep};
    let plan = |buffers: usize, bytes: u64| PortablePlan {
        kernels: vec![PortableKernel {
            wgsl: "".into(),
            accesses: std::iter::repeat_n(Access::Read, buffers).chain([Access::Uniform]).collect(),
        }],
        steps: vec![PortableStep {
            label: String::new(),
            kernel: 0,
            workgroups: [1; 3],
            bindings: vec![PortableBinding::Storage { buffer: BufferRef::Leaf(0), bytes }],
        }],
        slots: Vec::new(),
        outputs: Vec::new(),
        f16: false,
    };
    assert_eq!(limits(256 << 20, &plan(4, 128 << 20)), json!({}));
    let want = json!({
        "maxBufferSize": 300 << 20,
        "maxStorageBufferBindingSize": 200 << 20,
        "maxStorageBuffersPerShaderStage": 8,
    });
    assert_eq!(limits(300 << 20, &plan(8, 200 << 20)), want);
}

#[test]
fn the_module_is_small() {
    assert!(MODULE.len() < 15_000, "{} B", MODULE.len());
}
