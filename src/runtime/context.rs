//! The devices of the process, as TensorFlow's `tf.config` presents them: physical devices, of which some are visible, and
//! the logical devices on them, which are opened when they are first used.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Device;
use super::device_name::{DeviceName, Kind};
use crate::device::{Adapter, AdapterInfo, AdapterKind, DeviceOptions, Gpu, adapter, check_thread};
use crate::error::{DeviceFault, Error, Result, message};
use crate::support::options::options;

/// An adapter, under TensorFlow's name: `/physical_device:GPU:0`. GPUs are numbered from the fastest kind on; software
/// adapters are CPUs.
#[derive(Clone, PartialEq, Eq)]
pub struct PhysicalDevice {
    name: DeviceName,
    adapter: AdapterInfo,
}

impl PhysicalDevice {
    /// The name, such as `/physical_device:GPU:0`.
    pub fn name(&self) -> String {
        format!("/physical_device:{}:{}", self.device_type(), self.name.index)
    }

    /// `"GPU"`, or `"CPU"` for an adapter that computes in software.
    pub fn device_type(&self) -> &'static str {
        self.name.kind.name()
    }

    /// What the adapter reports about itself (TensorFlow's `get_device_details`).
    pub fn adapter(&self) -> &AdapterInfo {
        &self.adapter
    }
}

impl fmt::Display for PhysicalDevice {
    /// As TensorFlow prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhysicalDevice(name='{}', device_type='{}')", self.name(), self.device_type())
    }
}

impl fmt::Debug for PhysicalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A device that programs use, under TensorFlow's name: `/device:GPU:0`. It is all of a physical device, or one of the virtual
/// devices on it.
#[derive(Clone, PartialEq, Eq)]
pub struct LogicalDevice {
    name: DeviceName,
    memory_limit_mb: Option<u64>,
}

impl LogicalDevice {
    /// The name, such as `/device:GPU:0`.
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// `"GPU"` or `"CPU"`.
    pub fn device_type(&self) -> &'static str {
        self.name.kind.name()
    }

    /// The limit of its memory in MB (2^20 bytes), if it has one.
    pub fn memory_limit_mb(&self) -> Option<u64> {
        self.memory_limit_mb
    }

    /// The device, which this opens if nothing has used it yet.
    ///
    /// # Errors
    /// [`Error::Device`] if it does not open.
    pub fn device(&self) -> Result<Device> {
        let mut context = context()?;
        let at =
            context.devices.named(self.name).ok_or_else(|| context.devices.unknown(self.name))?;
        context.open(at)
    }
}

impl fmt::Display for LogicalDevice {
    /// As TensorFlow prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogicalDevice(name='{}', device_type='{}')", self.name, self.device_type())
    }
}

impl fmt::Debug for LogicalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

options! {
    /// One of the logical devices on a physical device; see
    /// [`set_logical_device_configuration`](crate::config::set_logical_device_configuration).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LogicalDeviceConfiguration {
        /// The most memory of its tensors, in MB (2^20 bytes); `None` leaves the limit to the driver.
        memory_limit_mb: Option<u64> as u64 = None,
    }
}

/// The lists of devices, without the devices themselves.
#[derive(Default)]
struct Devices {
    physical: Vec<PhysicalDevice>,
    /// Whether each physical device is visible.
    visible: Vec<bool>,
    /// The logical devices that the program has configured on each.
    configured: Vec<Vec<LogicalDeviceConfiguration>>,
    /// Which physical device the program uses if it names none.
    preferred: usize,
    /// The logical devices and the physical device of each, once a program has used them. From then on, nothing changes.
    logical: Option<Vec<(LogicalDevice, usize)>>,
}

impl Devices {
    /// `preferred` is the index of the adapter to use by default.
    fn new(adapters: Vec<AdapterInfo>, preferred: usize) -> Self {
        let mut count = [0; 2];
        let physical: Vec<PhysicalDevice> = adapters
            .into_iter()
            .map(|adapter| {
                let kind = match adapter.kind {
                    AdapterKind::Cpu => Kind::Cpu,
                    _ => Kind::Gpu,
                };
                let index = count[kind as usize];
                count[kind as usize] += 1;
                PhysicalDevice { name: DeviceName { kind, index }, adapter }
            })
            .collect();
        let n = physical.len();
        let (visible, configured) = (vec![true; n], vec![Vec::new(); n]);
        Devices { physical, visible, configured, preferred, logical: None }
    }

    fn find(&self, call: &str, device: &PhysicalDevice) -> Result<usize> {
        self.physical.iter().position(|known| known == device).ok_or_else(|| {
            let list: Vec<String> = self.physical.iter().map(PhysicalDevice::name).collect();
            refused(message!(
                "{call}: there is no {}. The devices of this process are: {}.",
                device.name(),
                list.join(", ")
            ))
        })
    }

    fn check_unused(&self, call: &str, what: &str) -> Result<()> {
        match self.logical {
            None => Ok(()),
            Some(_) => Err(refused(message!(
                "{call}: {what} cannot be changed after devices have been used. Call it at the start of the program, before \
                 the first tensor and before list_logical_devices."
            ))),
        }
    }

    fn set_visible(&mut self, devices: &[PhysicalDevice], kind: Option<Kind>) -> Result<()> {
        let call = "set_visible_devices";
        let mut visible = self.visible.clone();
        for (visible, physical) in visible.iter_mut().zip(&self.physical) {
            if kind.is_none_or(|kind| kind == physical.name.kind) {
                *visible = false;
            }
        }
        for device in devices {
            if let Some(kind) = kind.filter(|&kind| kind != device.name.kind) {
                return Err(refused(message!(
                    "{call}: {} is not a {}. Leave the kind out, or list devices of this kind only.",
                    device.name(),
                    kind.name()
                )));
            }
            visible[self.find(call, device)?] = true;
        }
        if visible != self.visible {
            self.check_unused(call, "the visible devices")?;
            self.visible = visible;
        }
        Ok(())
    }

    fn configure(
        &mut self,
        device: &PhysicalDevice,
        configurations: &[LogicalDeviceConfiguration],
    ) -> Result<()> {
        let call = "set_logical_device_configuration";
        let at = self.find(call, device)?;
        if configurations.is_empty() {
            return Err(refused(message!(
                "{call}: {} needs at least one logical device. To hide it, call set_visible_devices.",
                device.name()
            )));
        }
        let large = |limit: &u64| limit.checked_mul(MB).is_none();
        for LogicalDeviceConfiguration { memory_limit_mb } in configurations {
            if let Some(limit) = memory_limit_mb.filter(|limit| *limit == 0 || large(limit)) {
                return Err(refused(message!(
                    "{call}: a memory limit of {limit} MB is not possible. Give the number of MB that the tensors of this \
                     device may take, or None for no limit."
                )));
            }
        }
        if self.configured[at] != configurations {
            self.check_unused(call, "the logical devices")?;
            self.configured[at] = configurations.to_vec();
        }
        Ok(())
    }

    /// The logical devices; from now on they stay as they are.
    fn logical(&mut self) -> &[(LogicalDevice, usize)] {
        let Devices { physical, visible, configured, logical, .. } = self;
        logical.get_or_insert_with(|| {
            let mut count = [0; 2];
            let mut logical = Vec::new();
            for (at, device) in physical.iter().enumerate().filter(|(at, _)| visible[*at]) {
                let whole = [LogicalDeviceConfiguration::default()];
                let configured = match &configured[at][..] {
                    [] => &whole,
                    some => some,
                };
                for LogicalDeviceConfiguration { memory_limit_mb } in configured {
                    let kind = device.name.kind;
                    let name = DeviceName { kind, index: count[kind as usize] };
                    count[kind as usize] += 1;
                    logical.push((LogicalDevice { name, memory_limit_mb: *memory_limit_mb }, at));
                }
            }
            logical
        })
    }

    fn named(&mut self, name: DeviceName) -> Option<usize> {
        self.logical().iter().position(|(device, _)| device.name == name)
    }

    /// The logical device to use if the program names none.
    fn default_device(&mut self) -> Result<usize> {
        if self.physical.is_empty() {
            return Err(adapter::none());
        }
        let preferred = self.preferred;
        let logical = self.logical();
        let first = logical.iter().position(|(_, physical)| *physical == preferred);
        // Without the preferred device, the first GPU: TensorFlow's order lists CPUs before GPUs.
        let first =
            first.or_else(|| logical.iter().position(|(device, _)| device.name.kind == Kind::Gpu));
        first.or(if logical.is_empty() { None } else { Some(0) }).ok_or_else(|| {
            refused(
                "device: set_visible_devices has hidden all devices. Leave at least one visible."
                    .into(),
            )
        })
    }

    /// The device of this name; if there is none, with soft placement the first one of its kind, else the default device.
    fn place(&mut self, name: DeviceName, soft: bool) -> Result<usize> {
        if let Some(found) = self.named(name) {
            return Ok(found);
        }
        if !soft {
            return Err(self.unknown(name));
        }
        match self.named(DeviceName { index: 0, ..name }) {
            Some(first) => Ok(first),
            None => self.default_device(),
        }
    }

    fn unknown(&mut self, name: DeviceName) -> Error {
        let list: Vec<String> = self.logical().iter().map(|(device, _)| device.name()).collect();
        let list = match list.is_empty() {
            true => "none".to_string(),
            false => list.join(", "),
        };
        refused(message!(
            "device: there is no {}. The devices of this process are: {list}. Name one of these, make more of them with \
             set_logical_device_configuration, or allow another one with set_soft_device_placement(true).",
            name.full()
        ))
    }
}

const MB: u64 = 1 << 20;

pub(crate) fn refused(text: crate::error::Message) -> Error {
    Error::Device(DeviceFault::NoAdapter, text)
}

/// The devices of the process.
struct Context {
    devices: Devices,
    adapters: Vec<Adapter>,
    /// Those of the logical devices that are open.
    opened: Vec<Option<Device>>,
}

static CONTEXT: Mutex<Option<Context>> = Mutex::new(None);

/// The context, which finds the adapters at its first use. Blocks.
fn context() -> Result<Locked> {
    check_thread(|| ())?;
    let mut locked = CONTEXT.lock().unwrap_or_else(PoisonError::into_inner);
    if locked.is_none() {
        let adapters = pollster::block_on(adapter::list())?;
        let wanted = match adapters.is_empty() {
            // Calls that need a device say so.
            true => 0,
            false => adapter::choose_for(&adapters, &DeviceOptions::default())?,
        };
        let infos: Vec<AdapterInfo> = adapters.iter().map(|adapter| adapter.info.clone()).collect();
        let models: Vec<[u32; 2]> = adapters.iter().map(Adapter::model).collect();
        let order = distinct(&infos, &models, wanted);
        let preferred = order.iter().position(|&at| at == wanted).unwrap_or(0);
        let listed = order.iter().map(|&at| infos[at].clone()).collect();
        let adapters = order.iter().map(|&at| adapters[at].clone()).collect();
        let devices = Devices::new(listed, preferred);
        *locked = Some(Context { devices, adapters, opened: Vec::new() });
    }
    Ok(Locked(locked))
}

/// Indices of the adapters, CPUs last and the fastest kinds first. A GPU that several graphics APIs show is listed once, with
/// that of the adapter `wanted`, or else that of the first.
fn distinct(adapters: &[AdapterInfo], models: &[[u32; 2]], wanted: usize) -> Vec<usize> {
    let is_kept = |at: usize| {
        let first = (0..adapters.len()).find(|&other| models[other] == models[at]).unwrap_or(at);
        let shown_by = match models.get(wanted) == Some(&models[at]) {
            true => wanted,
            false => first,
        };
        adapters[at].backend == adapters[shown_by].backend
    };
    let mut order: Vec<usize> = (0..adapters.len()).filter(|&at| is_kept(at)).collect();
    order.sort_by_key(|&at| adapters[at].kind.rank());
    order
}

/// The context while this thread uses it.
struct Locked(MutexGuard<'static, Option<Context>>);

impl std::ops::Deref for Locked {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.0.as_ref().expect("`context` has made it")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Context {
        self.0.as_mut().expect("`context` has made it")
    }
}

impl Context {
    /// The logical device at `at`, opened if it is not.
    fn open(&mut self, at: usize) -> Result<Device> {
        let logical = self.devices.logical();
        let (LogicalDevice { name, memory_limit_mb }, physical) = logical[at].clone();
        self.opened.resize(logical.len(), None);
        if let Some(device) = &self.opened[at] {
            return Ok(device.clone());
        }
        let limit = memory_limit_mb.map(|limit| limit * MB);
        // The virtual devices of an adapter are users of one device of the driver.
        let on_it = |(other, opened): (&(LogicalDevice, usize), &Option<Device>)| match opened {
            Some(device) if other.1 == physical => Some(device.0.gpu.sibling(limit)),
            _ => None,
        };
        let gpu = match logical.iter().zip(&self.opened).find_map(on_it) {
            Some(gpu) => gpu,
            None => {
                let options = DeviceOptions { memory_limit: limit, ..DeviceOptions::default() };
                pollster::block_on(Gpu::open_on(&self.adapters[physical], &options))?
            }
        };
        let device = Device::with(gpu, Some(name));
        self.opened[at] = Some(device.clone());
        Ok(device)
    }
}

/// The device to use if the program names none.
pub(super) fn default_device() -> Result<Device> {
    let mut context = context()?;
    let at = context.devices.default_device()?;
    context.open(at)
}

/// The device with this name, in any of TensorFlow's forms; see [`config`](crate::config).
pub(crate) fn device_named(name: &str) -> Result<Device> {
    let name = DeviceName::parse(name)?;
    let mut context = context()?;
    let at = context.devices.place(name, soft_placement())?;
    context.open(at)
}

/// The device with exactly this name.
pub(crate) fn exact_device(name: &str) -> Result<Device> {
    let name = DeviceName::parse(name)?;
    let mut context = context()?;
    let at = context.devices.place(name, false)?;
    context.open(at)
}

/// The kind that a program has written, if it has written one; `None` if it is neither CPU nor GPU.
fn kind_of(written: Option<&str>) -> Option<Option<Kind>> {
    match written {
        None => Some(None),
        Some(text) => Kind::parse(text).map(Some),
    }
}

pub(crate) fn physical_devices(
    kind: Option<&str>,
    only_visible: bool,
) -> Result<Vec<PhysicalDevice>> {
    // As in TensorFlow, there are no devices of unknown kinds.
    let Some(kind) = kind_of(kind) else { return Ok(Vec::new()) };
    let context = context()?;
    let Devices { physical, visible, .. } = &context.devices;
    let listed = physical.iter().zip(visible).filter(|(device, visible)| {
        kind.is_none_or(|kind| kind == device.name.kind) && (**visible || !only_visible)
    });
    let mut listed: Vec<PhysicalDevice> = listed.map(|(device, _)| device.clone()).collect();
    listed.sort_by_key(|device| device.name.kind);
    Ok(listed)
}

pub(crate) fn set_visible_devices(devices: &[PhysicalDevice], kind: Option<&str>) -> Result<()> {
    let Some(known) = kind_of(kind) else {
        return Err(refused(message!(
            "set_visible_devices: {kind:?} is not a kind of devices. Write \"GPU\" or \"CPU\", or None for all."
        )));
    };
    context()?.devices.set_visible(devices, known)
}

pub(crate) fn logical_devices(kind: Option<&str>) -> Result<Vec<LogicalDevice>> {
    let Some(kind) = kind_of(kind) else { return Ok(Vec::new()) };
    let mut context = context()?;
    let mut listed: Vec<LogicalDevice> =
        context.devices.logical().iter().map(|(device, _)| device.clone()).collect();
    listed.retain(|device| kind.is_none_or(|kind| kind == device.name.kind));
    listed.sort_by_key(|device| device.name.kind);
    Ok(listed)
}

pub(crate) fn configure(
    device: &PhysicalDevice,
    configurations: &[LogicalDeviceConfiguration],
) -> Result<()> {
    context()?.devices.configure(device, configurations)
}

pub(crate) fn configuration(
    device: &PhysicalDevice,
) -> Result<Option<Vec<LogicalDeviceConfiguration>>> {
    let context = context()?;
    let at = context.devices.find("get_logical_device_configuration", device)?;
    Ok(Some(context.devices.configured[at].clone()).filter(|some| !some.is_empty()))
}

pub(crate) fn check_physical(call: &str, device: &PhysicalDevice) -> Result<()> {
    context()?.devices.find(call, device).map(drop)
}

/// Whether a name of a device that does not exist selects another one.
static SOFT_PLACEMENT: AtomicBool = AtomicBool::new(true);

pub(crate) fn soft_placement() -> bool {
    SOFT_PLACEMENT.load(Ordering::Relaxed)
}

pub(crate) fn set_soft_placement(on: bool) {
    SOFT_PLACEMENT.store(on, Ordering::Relaxed);
}

/// Whether each call prints its device.
static LOG_PLACEMENT: AtomicBool = AtomicBool::new(false);

pub(crate) fn logs_placement() -> bool {
    LOG_PLACEMENT.load(Ordering::Relaxed)
}

pub(crate) fn set_log_placement(on: bool) {
    LOG_PLACEMENT.store(on, Ordering::Relaxed);
}

/// Prints where a call runs, if the program has asked for it.
pub(crate) fn log_placement(op: &str, device: &Device) {
    if logs_placement() {
        let place = device.name().unwrap_or_else(|| device.named());
        crate::device::platform::say(&format!("Executing op {op} in device {place}"));
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
