//! Chooses an adapter and opens a device on it.
//!
//! It prefers discrete to integrated to virtual to software adapters, unless the caller, `WGRAD_ADAPTER` (a part of the
//! name, or an index) or wgpu's `WGPU_BACKEND` selects another. Adapters that `WGRAD_VISIBLE_DEVICES` does not name do not
//! exist for the process.

use std::fmt;
use std::sync::OnceLock;

use super::{MatmulPrecision, platform, trusted};
use crate::error::{DeviceFault, Error, Result, message};

/// How to open a [`Device`](crate::Device).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Device, DeviceOptions};
/// let device = Device::open(&DeviceOptions::new().memory_limit(1 << 30))?;
/// println!("{}", device.adapter());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// A part of the adapter's name (case-insensitive) or its index in [`Device::adapters`](crate::Device::adapters); a string
    /// of digits is an index. `None` reads the environment variable `WGRAD_ADAPTER`; if it is not set, the fastest kind of
    /// adapter is used.
    pub adapter: Option<String>,
    /// Maximum number of bytes for tensors on the device, counting both buffers in use and buffers kept for reuse. Calls that
    /// would exceed it return an out-of-memory error. `None` leaves the limit to the driver.
    ///
    /// wgrad allocates memory as it needs it, as TensorFlow does after `tf.config.experimental.set_memory_growth`; it reserves
    /// nothing in advance. The limit does not count the buffers for transfers and kernel parameters: a few MB, or twice the
    /// size of a value that is being read.
    pub memory_limit: Option<u64>,
    /// How precisely products of `f32` tensors are computed; [`Device::set_matmul_precision`] changes it.
    ///
    /// [`Device::set_matmul_precision`]: crate::Device::set_matmul_precision
    pub matmul_precision: MatmulPrecision,
    /// The number of threads (shader invocations) that keep the adapter busy. GPU kernels split small work among this many
    /// threads and no further. `None` uses a default for the adapter's kind: 8,192 for an integrated GPU, 40,960 for any other;
    /// 0 counts as 1. CPU kernels do not depend on it.
    pub threads: Option<usize>,
}

impl DeviceOptions {
    /// The defaults.
    pub fn new() -> Self {
        DeviceOptions::default()
    }

    /// Sets [`DeviceOptions::adapter`].
    #[must_use]
    pub fn adapter(mut self, adapter: impl Into<String>) -> Self {
        self.adapter = Some(adapter.into());
        self
    }

    /// Sets [`DeviceOptions::memory_limit`].
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Sets [`DeviceOptions::threads`].
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets [`DeviceOptions::matmul_precision`].
    #[must_use]
    pub fn matmul_precision(mut self, precision: MatmulPrecision) -> Self {
        self.matmul_precision = precision;
        self
    }
}

/// The kind of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A GPU with its own memory.
    DiscreteGpu,
    /// A GPU that shares the processor's memory.
    IntegratedGpu,
    /// A virtualized GPU, as in a virtual machine.
    VirtualGpu,
    /// The CPU, through a software driver.
    Cpu,
    /// A kind that the driver does not name; browsers do not report one.
    Other,
}

impl AdapterKind {
    /// The order in which kinds are preferred, the fastest first.
    pub(crate) fn rank(self) -> u8 {
        match self {
            AdapterKind::DiscreteGpu => 0,
            AdapterKind::IntegratedGpu => 1,
            AdapterKind::VirtualGpu => 2,
            AdapterKind::Other => 3,
            AdapterKind::Cpu => 4,
        }
    }

    fn from_wgpu(kind: wgpu::DeviceType) -> Self {
        match kind {
            wgpu::DeviceType::DiscreteGpu => AdapterKind::DiscreteGpu,
            wgpu::DeviceType::IntegratedGpu => AdapterKind::IntegratedGpu,
            wgpu::DeviceType::VirtualGpu => AdapterKind::VirtualGpu,
            wgpu::DeviceType::Cpu => AdapterKind::Cpu,
            wgpu::DeviceType::Other => AdapterKind::Other,
        }
    }
}

/// The graphics API below WebGPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Vulkan.
    Vulkan,
    /// Metal, on Apple systems.
    Metal,
    /// Direct3D 12, on Windows.
    Dx12,
    /// OpenGL or OpenGL ES.
    Gl,
    /// The browser's WebGPU.
    BrowserWebGpu,
    /// No API: an adapter for tests, which computes nothing.
    Noop,
}

impl Backend {
    fn from_wgpu(backend: wgpu::Backend) -> Self {
        match backend {
            wgpu::Backend::Vulkan => Backend::Vulkan,
            wgpu::Backend::Metal => Backend::Metal,
            wgpu::Backend::Dx12 => Backend::Dx12,
            wgpu::Backend::Gl => Backend::Gl,
            wgpu::Backend::BrowserWebGpu => Backend::BrowserWebGpu,
            wgpu::Backend::Noop => Backend::Noop,
        }
    }
}

impl fmt::Display for Backend {
    /// The name that `WGPU_BACKEND` accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Vulkan => "vulkan",
            Backend::Metal => "metal",
            Backend::Dx12 => "dx12",
            Backend::Gl => "gl",
            Backend::BrowserWebGpu => "webgpu",
            Backend::Noop => "noop",
        })
    }
}

/// The properties that an adapter reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// The adapter's name, as its driver reports it.
    pub name: String,
    /// Discrete, integrated, virtual or software (`Cpu`).
    pub kind: AdapterKind,
    /// The graphics API: Vulkan, Metal, DX12 or the browser's WebGPU.
    pub backend: Backend,
    /// The driver and its version.
    pub driver: String,
}

impl AdapterInfo {
    pub(crate) fn new(info: &wgpu::AdapterInfo) -> Self {
        AdapterInfo {
            name: info.name.clone(),
            kind: AdapterKind::from_wgpu(info.device_type),
            backend: Backend::from_wgpu(info.backend),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        AdapterInfo {
            name: "test".into(),
            kind: AdapterKind::Other,
            backend: Backend::Noop,
            driver: String::new(),
        }
    }
}

impl fmt::Display for AdapterInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            AdapterKind::DiscreteGpu => "discrete GPU",
            AdapterKind::IntegratedGpu => "integrated GPU",
            AdapterKind::VirtualGpu => "virtual GPU",
            AdapterKind::Cpu => "software",
            AdapterKind::Other => "unknown kind",
        };
        // Firefox does not reveal the name.
        let name = if self.name.is_empty() { "unnamed adapter" } else { &self.name };
        write!(f, "{name} ({kind}, ")?;
        match self.backend {
            Backend::BrowserWebGpu => f.write_str("WebGPU")?,
            backend => write!(f, "{backend:?}")?,
        }
        if !self.driver.is_empty() {
            write!(f, ", {}", self.driver)?;
        }
        f.write_str(")")
    }
}

/// An adapter that devices can be opened on.
#[derive(Clone)]
pub(crate) struct Adapter {
    pub(super) raw: wgpu::Adapter,
    pub(crate) info: AdapterInfo,
}

impl Adapter {
    fn new(raw: wgpu::Adapter) -> Self {
        let info = AdapterInfo::new(&raw.get_info());
        Adapter { raw, info }
    }

    /// Vendor and model, which are the same for one GPU under several graphics APIs.
    pub(crate) fn model(&self) -> [u32; 2] {
        let raw = self.raw.get_info();
        [raw.vendor, raw.device]
    }
}

/// The adapters of this process: those that `WGRAD_VISIBLE_DEVICES` names, in its order, or all, in the driver's order.
pub(crate) async fn list() -> Result<Vec<Adapter>> {
    let all: Vec<Adapter> =
        platform::adapters(instance()).await.into_iter().map(Adapter::new).collect();
    // Where there is none, the error should say what to install.
    let visible = platform::env_var("WGRAD_VISIBLE_DEVICES").filter(|_| !all.is_empty());
    let Some(visible) = visible else { return Ok(all) };
    let infos: Vec<AdapterInfo> = all.iter().map(|adapter| adapter.info.clone()).collect();
    Ok(visible_adapters(&infos, &visible)?.into_iter().map(|at| all[at].clone()).collect())
}

/// The index of the adapter that `options` or `WGRAD_ADAPTER` selects.
pub(crate) fn choose_for(adapters: &[Adapter], options: &DeviceOptions) -> Result<usize> {
    let infos: Vec<AdapterInfo> = adapters.iter().map(|adapter| adapter.info.clone()).collect();
    let wanted = options.adapter.clone().or_else(|| platform::env_var("WGRAD_ADAPTER"));
    choose(&infos, wanted.as_deref())
}

/// Opens a device with the adapter's own limits and the features that kernels use.
pub(super) async fn open(adapter: &Adapter) -> Result<(wgpu::Device, wgpu::Queue)> {
    let Adapter { raw: adapter, info } = adapter;
    let useful = wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES
        | wgpu::Features::PIPELINE_CACHE
        | wgpu::Features::IMMEDIATES;
    let mut features = adapter.features() & useful;
    let cooperative = adapter.features() & wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
    let request = |features, experimental_features| {
        adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("wgrad"),
            required_features: features,
            required_limits: adapter.limits(),
            // The pool rarely allocates, and only whole buffers, so large driver blocks would waste memory.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            experimental_features,
            ..Default::default()
        })
    };
    let mut opened = Err(None);
    if !cooperative.is_empty() {
        opened =
            request(features | cooperative, trusted::experimental_features()).await.map_err(Some);
    }
    // If the device does not open with the experimental feature, it opens without.
    let opened = match opened {
        Ok(device) => {
            features |= cooperative;
            Ok(device)
        }
        Err(_) => request(features, wgpu::ExperimentalFeatures::disabled()).await,
    };
    let (device, queue) = opened.map_err(|e| {
        Error::Device(
            DeviceFault::NoAdapter,
            message!("Device: {info} refused to open: {e}. {}", platform::TRY_ANOTHER_ADAPTER),
        )
    })?;
    log::info!("wgrad runs on {info} with {features:?}");
    Ok((device, queue))
}

fn instance() -> &'static wgpu::Instance {
    // Loading the drivers takes tens of milliseconds, so every device of the process shares one.
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: platform::backends(),
            flags: platform::instance_flags(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        })
    })
}

/// The index of the adapter to use: the one that `wanted` names, or the first of the fastest kind.
fn choose(adapters: &[AdapterInfo], wanted: Option<&str>) -> Result<usize> {
    if adapters.is_empty() {
        return Err(none());
    }
    if !platform::SHOWS_ALL_ADAPTERS {
        // A browser shows one adapter, so there is nothing to choose.
        return Ok(0);
    }
    let Some(wanted) = wanted.map(str::trim).filter(|w| !w.is_empty()) else {
        let best = (0..adapters.len()).min_by_key(|&i| adapters[i].kind.rank());
        return Ok(best.unwrap_or(0));
    };
    named(adapters, wanted).first().copied().ok_or_else(|| unknown(adapters, wanted, ""))
}

/// The error where there is no adapter.
pub(crate) fn none() -> Error {
    let text = match platform::env_var("WGRAD_VISIBLE_DEVICES").filter(|value| value.contains("-1"))
    {
        Some(value) => message!(
            "Device: WGRAD_VISIBLE_DEVICES={value} hides all adapters. Remove the variable, or list the adapters that this \
             program may use by their indices or parts of their names."
        ),
        None => platform::NO_ADAPTER.into(),
    };
    Error::Device(DeviceFault::NoAdapter, text)
}

/// The adapters that `wanted` names: by its index, if it is a string of digits (even if a name contains them), else by a
/// part of the name.
fn named(adapters: &[AdapterInfo], wanted: &str) -> Vec<usize> {
    if is_index(wanted) {
        return wanted.parse().ok().filter(|&at| at < adapters.len()).into_iter().collect();
    }
    let lower = wanted.to_lowercase();
    let has = |info: &AdapterInfo| info.name.to_lowercase().contains(&lower);
    (0..adapters.len()).filter(|&at| has(&adapters[at])).collect()
}

fn is_index(wanted: &str) -> bool {
    wanted.bytes().all(|byte| byte.is_ascii_digit())
}

/// The adapters that the value of `WGRAD_VISIBLE_DEVICES` names, each once.
fn visible_adapters(adapters: &[AdapterInfo], value: &str) -> Result<Vec<usize>> {
    let entries: Vec<&str> =
        value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.is_empty() {
        return Ok((0..adapters.len()).collect());
    }
    let mut visible = Vec::new();
    // As in CUDA_VISIBLE_DEVICES, -1 names none.
    for entry in entries.into_iter().filter(|&entry| entry != "-1") {
        let found = named(adapters, entry);
        if found.is_empty() {
            return Err(unknown(adapters, entry, "WGRAD_VISIBLE_DEVICES: "));
        }
        visible.extend(found.into_iter().filter(|at| !visible.contains(at)).collect::<Vec<_>>());
    }
    Ok(visible)
}

/// The error for a name that no adapter has.
fn unknown(adapters: &[AdapterInfo], wanted: &str, of: &str) -> Error {
    let is_index = is_index(wanted);
    let lacks = match (is_index, adapters.len()) {
        (false, _) => format!("no adapter is called {wanted:?}"),
        (true, 1) => format!("there is no adapter {wanted}, as there is one, of index 0"),
        (true, n) => {
            format!("there is no adapter {wanted}, as there are {n}, of indices 0 to {}", n - 1)
        }
    };
    let list: Vec<String> =
        adapters.iter().enumerate().map(|(i, info)| format!("{i}: {info}")).collect();
    Error::Device(
        DeviceFault::NoAdapter,
        message!(
            "Device: {of}{lacks}. Name one of these by its index or by a part of its name: {}.",
            list.join("; ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(name: &str, kind: AdapterKind) -> AdapterInfo {
        AdapterInfo { name: name.into(), kind, ..AdapterInfo::for_tests() }
    }

    fn some() -> Vec<AdapterInfo> {
        vec![
            adapter("llvmpipe (LLVM 15.0.6, 256 bits)", AdapterKind::Cpu),
            adapter("Intel(R) Arc(tm) Graphics", AdapterKind::IntegratedGpu),
            adapter("NVIDIA GeForce RTX 4070", AdapterKind::DiscreteGpu),
        ]
    }

    #[test]
    fn a_text_names_the_adapter_also_where_the_browser_does_not() {
        let info = adapter("Apple M2", AdapterKind::IntegratedGpu);
        assert_eq!(info.to_string(), "Apple M2 (integrated GPU, Noop)");
        let unnamed =
            AdapterInfo { backend: Backend::BrowserWebGpu, ..adapter("", AdapterKind::Cpu) };
        assert_eq!(unnamed.to_string(), "unnamed adapter (software, WebGPU)");
    }

    #[test]
    fn the_fastest_kind_is_taken() {
        assert_eq!(choose(&some(), None).unwrap(), 2);
        assert_eq!(choose(&some()[..2], Some("")).unwrap(), 1);
    }

    #[test]
    fn an_adapter_is_named_by_fragment_or_index() {
        assert_eq!(choose(&some(), Some("LLVM")).unwrap(), 0);
        assert_eq!(choose(&some(), Some("1")).unwrap(), 1);
        assert_eq!(choose(&some(), Some("rtx 4070")).unwrap(), 2);
    }

    #[test]
    fn digits_are_an_index_and_no_part_of_a_name() {
        // "15" is part of the first adapter's name.
        let reported = |adapters: &[AdapterInfo], wanted| {
            choose(adapters, Some(wanted)).unwrap_err().to_string()
        };
        assert_eq!(
            reported(&some()[..1], "15"),
            "Device: there is no adapter 15, as there is one, of index 0. Name one of these by its index or by a part of \
             its name: 0: llvmpipe (LLVM 15.0.6, 256 bits) (software, Noop)."
        );
        assert_eq!(
            reported(&some(), "3"),
            "Device: there is no adapter 3, as there are 3, of indices 0 to 2. Name one of these by its index or by a \
             part of its name: 0: llvmpipe (LLVM 15.0.6, 256 bits) (software, Noop); 1: Intel(R) Arc(tm) Graphics \
             (integrated GPU, Noop); 2: NVIDIA GeForce RTX 4070 (discrete GPU, Noop)."
        );
        // Larger than any integer type.
        let error = reported(&some(), "99999999999999999999999");
        assert!(
            error.starts_with("Device: there is no adapter 99999999999999999999999, as"),
            "{error}"
        );
    }

    #[test]
    fn visible_devices_are_named_in_their_order_and_once() {
        let visible = |value| visible_adapters(&some(), value);
        assert_eq!(visible("2,0").unwrap(), [2, 0]);
        assert_eq!(visible(" nvidia , 2, arc").unwrap(), [2, 1]);
        assert_eq!(visible("").unwrap(), [0, 1, 2]);
        assert_eq!(visible("-1").unwrap(), [0usize; 0]);
        let error = visible("0,7").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "Device: WGRAD_VISIBLE_DEVICES: there is no adapter 7, as there are 3"
            ),
            "{error}"
        );
        // Two cards of one name are both visible.
        let twice = [&some()[2..], &some()[2..]].concat();
        assert_eq!(visible_adapters(&twice, "rtx").unwrap(), [0, 1]);
    }

    #[test]
    fn an_unknown_adapter_lists_the_known_ones() {
        let error = choose(&some(), Some("radeon")).unwrap_err().to_string();
        assert!(error.contains("no adapter is called \"radeon\""), "{error}");
        assert!(error.contains("1: Intel(R) Arc(tm) Graphics (integrated GPU, Noop)"), "{error}");
    }

    #[test]
    fn no_adapter_names_the_packages() {
        let error = choose(&[], None).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::NoAdapter, _)));
        for word in ["Debian", "mesa-vulkan-drivers", "Fedora", "macOS", "Windows"] {
            assert!(error.to_string().contains(word), "{word} is missing");
        }
    }
}
