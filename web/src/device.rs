//! [`Device`]: the page's GPU, and [`Plan`]: what it ran last.

use js_sys::{Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wgrad::interop::DeviceExt;
use wgrad::{DeviceFault, DeviceOptions, Error};

use crate::args::Options;
use crate::error::{Result, promise};
use crate::profile::Profiler;

/// The GPU that holds tensors. A page opens one before its first tensor.
#[wasm_bindgen]
pub struct Device(pub(crate) wgrad::Device);

/// An object with these properties.
pub(crate) fn object<const N: usize>(properties: [(&str, JsValue); N]) -> Object {
    let object = Object::new();
    for (key, value) in properties {
        // Setting a property of a new object cannot fail.
        let _ = Reflect::set(&object, &key.into(), &value);
    }
    object
}

fn get(object: &JsValue, key: &str) -> JsValue {
    Reflect::get(object, &key.into()).unwrap_or_default()
}

fn no_webgpu() -> Option<Error> {
    let global = js_sys::global();
    if get(&get(&global, "navigator"), "gpu").is_object() {
        return None;
    }
    #[cfg(feature = "ops")]
    let why = crate::browser::without_webgpu(get(&global, "isSecureContext").as_bool());
    #[cfg(not(feature = "ops"))]
    let why = match get(&global, "isSecureContext").as_bool() {
        Some(false) => {
            "Device: browsers have WebGPU only on pages that come over https or from localhost, and this one does \
             not. Load it from there."
        }
        _ => {
            "Device: this browser has no WebGPU (navigator.gpu is missing). Use a newer one: Chrome or Edge 113, \
             Safari 26, Firefox 141, or newer; on Linux and Android WebGPU may have to be turned on in its settings."
        }
    };
    Some(Error::Device(DeviceFault::NoAdapter, why.into()))
}

#[wasm_bindgen]
impl Device {
    /// Opens the GPU and makes it the default device for new tensors. Rejects with a `DeviceError` that explains what to do if
    /// there is no WebGPU or no adapter. `memoryLimit` is the most bytes that tensors may use.
    #[wasm_bindgen(unchecked_return_type = "Promise<Device>")]
    pub fn open(
        #[wasm_bindgen(unchecked_optional_param_type = "{ memoryLimit?: number }")]
        options: &JsValue,
    ) -> Result<Promise> {
        let options = Options::new("Device.open", options, &["memoryLimit"])?;
        let memory_limit = options.size("memoryLimit")?.map(|bytes| bytes as u64);
        Ok(promise(async move {
            if let Some(error) = no_webgpu() {
                return Err(error.into());
            }
            let mut options = DeviceOptions::new();
            options.memory_limit = memory_limit;
            let opened = wgrad::Device::open_async(&options).await;
            #[cfg(feature = "ops")]
            let opened = opened.map_err(crate::browser::named);
            let device = opened?;
            wgrad::Device::set_default(&device);
            Ok(Device(device).into())
        }))
    }

    /// Information about the adapter.
    #[wasm_bindgen(getter, unchecked_return_type = "AdapterInfo")]
    pub fn adapter(&self) -> Object {
        let info = self.0.adapter();
        object([
            ("name", info.name.as_str().into()),
            ("kind", format!("{:?}", info.kind).into()),
            ("backend", format!("{:?}", info.backend).into()),
            ("driver", info.driver.as_str().into()),
            ("text", info.to_string().into()),
        ])
    }

    /// The device's limits, by WebGPU's names.
    #[wasm_bindgen(getter, unchecked_return_type = "Record<string, number>")]
    pub fn limits(&self) -> Object {
        let limits = self.0.wgpu().0.limits();
        let number = |value: u64| JsValue::from(value as f64);
        let small = |value: u32| JsValue::from(f64::from(value));
        object([
            ("maxBufferSize", number(limits.max_buffer_size)),
            ("maxStorageBufferBindingSize", number(limits.max_storage_buffer_binding_size)),
            ("maxStorageBuffersPerShaderStage", small(limits.max_storage_buffers_per_shader_stage)),
            ("maxComputeWorkgroupStorageSize", small(limits.max_compute_workgroup_storage_size)),
            (
                "maxComputeInvocationsPerWorkgroup",
                small(limits.max_compute_invocations_per_workgroup),
            ),
            (
                "maxComputeWorkgroupsPerDimension",
                small(limits.max_compute_workgroups_per_dimension),
            ),
        ])
    }

    /// The optional features that are in use, by WebGPU's names.
    #[wasm_bindgen(getter, unchecked_return_type = "string[]")]
    pub fn features(&self) -> Array {
        use wgrad::interop::wgpu::Features;
        let features = self.0.wgpu().0.features();
        let names = [
            (Features::SHADER_F16, "shader-f16"),
            (Features::TIMESTAMP_QUERY, "timestamp-query"),
            (Features::SUBGROUP, "subgroups"),
        ];
        let has = |(feature, name): (Features, &str)| {
            features.contains(feature).then(|| JsValue::from(name))
        };
        names.into_iter().filter_map(has).collect()
    }

    /// Resolves with the reason once the device is lost. Then open a new one with `Device.open`, and load the weights that you
    /// saved.
    #[wasm_bindgen(getter, unchecked_return_type = "Promise<string>")]
    pub fn lost(&self) -> Promise {
        let device = self.0.clone();
        promise(async move { Ok(device.lost().await.into()) })
    }

    /// Counters of work and memory.
    #[wasm_bindgen(unchecked_return_type = "DeviceStats")]
    pub fn stats(&self) -> Object {
        let stats = self.0.stats();
        let number = |value: u64| JsValue::from(value as f64);
        object([
            ("nodes", number(stats.nodes)),
            ("flushes", number(stats.flushes)),
            ("kernels", number(stats.kernels)),
            ("submits", number(stats.submits)),
            ("planHits", number(stats.plan_hits)),
            ("planMisses", number(stats.plan_misses)),
            ("plans", number(stats.plans)),
            ("planBytes", number(stats.plan_bytes)),
            ("pipelines", number(stats.pipelines)),
            ("bindGroups", number(stats.bind_groups)),
            ("reads", number(stats.reads)),
            ("uploadedBytes", number(stats.uploaded_bytes)),
            ("buffers", number(stats.buffers)),
            ("liveBytes", number(stats.live_bytes)),
            ("pooledBytes", number(stats.pooled_bytes)),
            ("peakBytes", number(stats.peak_bytes)),
        ])
    }

    /// Releases unused memory to the driver. Returns the bytes freed.
    pub fn trim(&self) -> Result<f64> {
        Ok(self.0.trim()? as f64)
    }

    /// The plan that ran last; `undefined` before the first.
    #[wasm_bindgen(js_name = lastPlan)]
    pub fn last_plan(&self) -> Option<Plan> {
        self.0.last_plan().map(Plan)
    }

    /// Measures the time of every kernel from now on. Throws if the browser has no timestamps, or if a profile is already being
    /// recorded.
    pub fn profile(&self) -> Result<Profiler> {
        Ok(Profiler::new(self.0.profile()?))
    }

    /// Measures the alternative kernels for the matrix products and convolutions that have run so far, for up to a few seconds
    /// each, and uses the fastest from now on. Resolves with the results; `findings` returns them as text.
    #[wasm_bindgen(unchecked_return_type = "Promise<TuningReport>")]
    pub fn tune(&self) -> Promise {
        let device = self.0.clone();
        promise(async move {
            let report = device.tune_async().await?;
            let ops: Array = report.ops().iter().map(tuned).collect();
            let result = object([("ops", ops.into())]);
            #[cfg(feature = "ops")]
            let _ = Reflect::set(&result, &"text".into(), &report.to_string().into());
            Ok(result.into())
        })
    }

    /// The tuning results, as text to store for the next visit.
    pub fn findings(&self) -> String {
        self.0.tuning_findings()
    }

    /// Uses a text that `findings` returned; returns false if it is damaged or belongs to another adapter or version.
    #[wasm_bindgen(js_name = setFindings)]
    pub fn set_findings(&self, text: &str) -> bool {
        self.0.load_tuning_findings(text).is_ok()
    }

    /// Releases the GPU with everything on it. Later uses of it throw a `DeviceError`.
    pub fn destroy(&self) {
        self.0.destroy();
    }
}

/// One op that was measured.
fn tuned(op: &wgrad::TunedOp) -> JsValue {
    let variant = |variant: &wgrad::TunedVariant| {
        let time = variant.time.map(|time| time.as_secs_f64() * 1e6);
        let wrong = variant.wrong.into();
        let object = object([
            ("name", variant.name.as_str().into()),
            ("time", time.into()),
            ("wrong", wrong),
        ]);
        JsValue::from(object)
    };
    let variants: Array = op.variants.iter().map(variant).collect();
    let properties = [
        ("op", op.op.as_str().into()),
        ("chosen", op.chosen.as_str().into()),
        ("variants", variants.into()),
    ];
    object(properties).into()
}

/// The plan of a flush: the kernels in order, and what each computes.
#[wasm_bindgen]
pub struct Plan(pub(crate) wgrad::PlanReport);

#[wasm_bindgen]
impl Plan {
    /// The kernels in the order in which they run.
    #[wasm_bindgen(getter, unchecked_return_type = "PlannedKernel[]")]
    pub fn kernels(&self) -> Array {
        let kernel = |kernel: &wgrad::PlannedKernel| {
            let results: Vec<String> = kernel.outputs.iter().map(ToString::to_string).collect();
            let described = object([
                ("name", kernel.label.as_str().into()),
                ("ops", kernel.ops.join(", ").into()),
                ("result", results.join(", ").into()),
                ("bytes", (kernel.bytes as f64).into()),
                (
                    "workgroups",
                    kernel.workgroups.iter().map(|n| JsValue::from(*n)).collect::<Array>().into(),
                ),
                ("wgsl", (&*kernel.wgsl).into()),
            ]);
            if let Some(flops) = kernel.flops {
                let _ = Reflect::set(&described, &"flops".into(), &(flops as f64).into());
            }
            JsValue::from(described)
        };
        self.0.kernels().iter().map(kernel).collect()
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Device {
    /// Submits the pending ops to the GPU without waiting for them.
    pub fn flush(&self) -> Result<()> {
        Ok(self.0.flush()?)
    }

    /// Flushes and resolves when the GPU has finished.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn synchronize(&self) -> Promise {
        let device = self.0.clone();
        promise(async move {
            device.synchronize_async().await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Limits the bytes that tensors may use; without `bytes` removes the limit. An error if the tensors use more already.
    #[wasm_bindgen(js_name = setMemoryLimit)]
    pub fn set_memory_limit(&self, bytes: Option<f64>) -> Result<()> {
        let limit = match bytes {
            None => None,
            Some(bytes) => Some(crate::args::whole(bytes).ok_or_else(|| {
                crate::error::bad_type(format!(
                    "Device.setMemoryLimit: {bytes} is not a whole number of bytes."
                ))
            })? as u64),
        };
        Ok(self.0.set_memory_limit(limit)?)
    }

    /// Whether several ops may be fused into one kernel (true by default). Set it to false to find the op that is slow or
    /// wrong.
    #[wasm_bindgen(js_name = setFusion)]
    pub fn set_fusion(&self, on: bool) {
        self.0.set_fusion(on);
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Plan {
    /// A table of the kernels.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// The shaders of all kernels, each distinct text once.
    #[wasm_bindgen(getter)]
    pub fn wgsl(&self) -> String {
        self.0.wgsl()
    }
}
