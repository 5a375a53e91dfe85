//! TensorFlow's `tf.config`: the devices of this machine, which of them a program uses, and their memory.
//!
//! A *physical device* is an adapter. GPUs are those with hardware, `/physical_device:GPU:0` being the one that programs use by
//! default; software adapters (Mesa's llvmpipe, Windows's WARP) are CPUs. A *logical device* is what tensors live on: a whole
//! physical device, or one of several virtual devices on it with memory limits of their own. Physical devices are found and
//! configured before the first use of a device; from then on the lists stay as they are.
//!
//! ```standalone_crate
//! # fn main() -> wgrad::Result<()> {
//! use wgrad as tf;
//! use wgrad::config::LogicalDeviceConfiguration;
//! // Two virtual devices on the first physical device, to try on one adapter what several will do.
//! let physical = tf::config::list_physical_devices(None)?;
//! let half = LogicalDeviceConfiguration::new().memory_limit_mb(2048);
//! tf::config::set_logical_device_configuration(&physical[0], &[half.clone(), half])?;
//!
//! let logical = tf::config::list_logical_devices(physical[0].device_type())?;
//! assert!(logical.len() >= 2);
//! let x = logical[1].device()?.scope(|| tf::constant([1.0, 2.0]))?;
//! assert_eq!(x.device().name(), Some(format!("/job:localhost/replica:0/task:0{}", logical[1].name())));
//! let y = x.to(&logical[0].device()?)?.square()?;      // virtual devices of one adapter copy without the host
//! assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Tensors on different devices do not mix by themselves: [`Tensor::to`](crate::Tensor::to) copies. Virtual devices of an
//! adapter share the driver's device: its compiled kernels, its queue, and its loss. They have tensors, memory and counters of
//! their own.
//!
//! `WGRAD_VISIBLE_DEVICES` has the effect that `CUDA_VISIBLE_DEVICES` has in TensorFlow: `0,2` or `nvidia,radeon` leaves the
//! process these adapters, in this order, by their indices in [`Device::adapters`] or parts of their names; `-1` leaves none.
//! `WGRAD_ADAPTER` selects the default among those that are left.
//!
//! A browser shows a page one adapter, so this module exists natively only.

use crate::device::MemoryInfo;
use crate::error::Result;
pub use crate::runtime::context::{LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice};
use crate::runtime::{Device, context};

/// The physical devices of a kind, `"GPU"` or `"CPU"`, or with `None` all of them, CPUs first. Blocks at its first call while
/// the drivers are loaded.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let gpus = tf::config::list_physical_devices("GPU")?;
/// let cpus = tf::config::list_physical_devices("CPU")?;
/// println!("{gpus:?} {cpus:?}");   // [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')] []
/// assert_eq!(tf::config::list_physical_devices(None)?.len(), gpus.len() + cpus.len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if `WGRAD_VISIBLE_DEVICES` or `WGRAD_ADAPTER` names an adapter that does not exist.
pub fn list_physical_devices<'a>(kind: impl Into<Option<&'a str>>) -> Result<Vec<PhysicalDevice>> {
    context::physical_devices(kind.into(), false)
}

/// Makes only `devices` visible, among those of a kind (`"GPU"` or `"CPU"`), or with `None` among all. Logical devices,
/// [`Device::current`] and strategies use visible devices only; [`Device::open`] reaches all.
///
/// ```standalone_crate
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let gpus = tf::config::list_physical_devices("GPU")?;
/// if gpus.len() >= 4 {
///     tf::config::set_visible_devices(&gpus[..2], "GPU")?;
///     assert_eq!(tf::config::list_logical_devices("GPU")?.len(), 2);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if this would change something after a device has been used, or if a device is not of
/// this kind or not of this process.
pub fn set_visible_devices<'a>(
    devices: &[PhysicalDevice],
    kind: impl Into<Option<&'a str>>,
) -> Result<()> {
    context::set_visible_devices(devices, kind.into())
}

/// The visible physical devices; `kind` as in [`list_physical_devices`].
///
/// # Errors
/// As [`list_physical_devices`].
pub fn get_visible_devices<'a>(kind: impl Into<Option<&'a str>>) -> Result<Vec<PhysicalDevice>> {
    context::physical_devices(kind.into(), true)
}

/// The logical devices of a kind, `"GPU"` or `"CPU"`, or with `None` all of them. From this call on, the lists of devices stay as
/// they are.
///
/// # Errors
/// As [`list_physical_devices`].
pub fn list_logical_devices<'a>(kind: impl Into<Option<&'a str>>) -> Result<Vec<LogicalDevice>> {
    context::logical_devices(kind.into())
}

/// Divides a physical device into several logical devices, each with a memory limit of its own, or limits the memory of one.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use wgrad::config::LogicalDeviceConfiguration;
/// let gpus = tf::config::list_physical_devices("GPU")?;
/// let at_most = LogicalDeviceConfiguration::new().memory_limit_mb(1024);
/// tf::config::set_logical_device_configuration(&gpus[0], &[at_most])?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if this would change something after a device has been used, if the list is empty, if
/// a limit is 0, or if the device is not of this process.
pub fn set_logical_device_configuration(
    device: &PhysicalDevice,
    configurations: &[LogicalDeviceConfiguration],
) -> Result<()> {
    context::configure(device, configurations)
}

/// What [`set_logical_device_configuration`] has set; `None` if nothing.
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if the device is not of this process.
pub fn get_logical_device_configuration(
    device: &PhysicalDevice,
) -> Result<Option<Vec<LogicalDeviceConfiguration>>> {
    context::configuration(device)
}

/// `true` lets memory grow as tensors need it, which wgrad always does; so this call changes nothing.
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) for `false`: wgrad does not reserve memory in advance. Also if the device is not of
/// this process.
pub fn set_memory_growth(device: &PhysicalDevice, enable: bool) -> Result<()> {
    context::check_physical("set_memory_growth", device)?;
    match enable {
        true => Ok(()),
        false => Err(context::refused(
            "set_memory_growth: wgrad takes memory as tensors need it and cannot reserve it in advance. Leave this call out; to \
             limit the memory, call set_logical_device_configuration."
                .into(),
        )),
    }
}

/// `true`: memory grows as tensors need it.
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if the device is not of this process.
pub fn get_memory_growth(device: &PhysicalDevice) -> Result<bool> {
    context::check_physical("get_memory_growth", device).map(|()| true)
}

/// The memory that the tensors of a logical device take, and the most that they took, in bytes. `device` is a name such as
/// `"GPU:0"`; [`Device::memory_info`] is the same for a device without a name.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let name = tf::config::list_logical_devices(None)?[0].name();
/// let x = tf::device(&name)?.scope(|| tf::Tensor::from_slice(&[0.0_f32; 1024], [1024]))?;
/// assert!(tf::config::get_memory_info(&name)?.current >= 4096);
/// drop(x);
/// tf::config::reset_memory_stats(&name)?;
/// let info = tf::config::get_memory_info(&name)?;
/// assert_eq!(info.current, info.peak);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if there is no logical device of this name.
pub fn get_memory_info(device: &str) -> Result<MemoryInfo> {
    Ok(context::exact_device(device)?.memory_info())
}

/// Sets the peak of [`get_memory_info`] to the memory that is in use now.
///
/// # Errors
/// As [`get_memory_info`].
pub fn reset_memory_stats(device: &str) -> Result<()> {
    context::exact_device(device)?.reset_memory_stats();
    Ok(())
}

/// Sets whether [`device`](crate::device()) may return another device than the one that it names, as it does by default: the first
/// one of the same kind, or else the default device. So a program that names `"/gpu:0"` also runs where there is only a CPU.
pub fn set_soft_device_placement(enabled: bool) {
    context::set_soft_placement(enabled);
}

/// What [`set_soft_device_placement`] has set.
pub fn get_soft_device_placement() -> bool {
    context::soft_placement()
}

/// Sets whether every op prints the device that it runs on, to standard error (`tf.debugging.set_log_device_placement`):
/// `Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0`. A function prints what it runs op by op, not
/// what it runs as one plan.
pub fn set_log_device_placement(enabled: bool) {
    context::set_log_placement(enabled);
}

/// What [`set_log_device_placement`] has set.
pub fn get_log_device_placement() -> bool {
    context::logs_placement()
}

/// The logical device of this name, in any of TensorFlow's forms: `"/gpu:0"`, `"GPU:0"`, `"/device:CPU:0"`,
/// `"/job:localhost/replica:0/task:0/device:GPU:1"`. Its [`Device::scope`] is TensorFlow's `with tf.device(name):`.
///
/// If there is no such device, this returns another one ([`set_soft_device_placement`]).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let product = tf::device("/gpu:0")?.scope(|| {
///     let x = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
///     x.matmul(&x)
/// })?;
/// assert_eq!(product.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// println!("{}", product.device().name().expect("a logical device"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if the text is not the name of a device, if there is none of this name and soft
/// placement is off, or if the device does not open.
pub fn device(name: &str) -> Result<Device> {
    context::device_named(name)
}
