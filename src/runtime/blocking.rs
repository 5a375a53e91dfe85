//! Calls that block. They exist natively only, as no thread may block in a browser; each has an `async` twin for every
//! target.

use super::{Device, Profiler};
use crate::device::{AdapterInfo, DeviceOptions, Profile, adapter, check_thread};
use crate::error::Result;
use crate::plan::TuningReport;

impl Device {
    /// Opens the fastest adapter, or the one that `WGRAD_ADAPTER` names. Blocks.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no adapter (with the packages to install) or it does not
    /// open.
    pub fn new() -> Result<Self> {
        Self::open(&DeviceOptions::default())
    }

    /// Opens an adapter as `options` specify. Blocks.
    ///
    /// # Errors
    /// As [`Device::new`]; if the requested adapter is missing, the error lists those present.
    pub fn open(options: &DeviceOptions) -> Result<Self> {
        check_thread(|| ())?;
        pollster::block_on(Self::open_async(options))
    }

    /// The adapters that [`DeviceOptions::adapter`] can select, in the order of their indices; empty in a thread that
    /// is ending, and if `WGRAD_VISIBLE_DEVICES` names an adapter that does not exist (opening one returns that error).
    /// Blocks.
    pub fn adapters() -> Vec<AdapterInfo> {
        if check_thread(|| ()).is_err() {
            return Vec::new();
        }
        let found = pollster::block_on(adapter::list()).unwrap_or_default();
        found.into_iter().map(|adapter| adapter.info).collect()
    }

    /// Flushes and blocks until the GPU has finished.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn synchronize(&self) -> Result<()> {
        self.flush()?;
        self.0.gpu.wait(None)?;
        self.deliver_reports()
    }

    /// Measures the ops that this device has run, has not measured yet and can compute in several ways (products and
    /// convolutions), and uses the fastest variant from now on. Blocks for up to a few seconds per op.
    ///
    /// Each variant runs alone, on random numbers, in separate buffers. If its results differ by more than rounding
    /// errors from those of the simplest variant, `tune` rejects it with a warning, however fast it is. It skips an op
    /// for which there is not enough memory. The findings are stored in the cache folder for the next run (see
    /// [`Device::tuning_findings`]).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let step = || Tensor::ones([48, 32])?.matmul(Tensor::ones([32, 64])?)?.to_vec::<f32>();
    /// assert_eq!(device.scope(step)?[0], 32.0);     // what is to be measured runs once
    ///
    /// let report = device.tune()?;
    /// println!("{report}");                         // op, chosen variant and its time, the first choice and its time
    /// assert_eq!(device.scope(step)?[0], 32.0);
    /// assert!(device.tune()?.ops().is_empty());     // nothing is measured twice
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::synchronize`]; [`Error::Device`](crate::Error::Device) if a profile is being recorded.
    pub fn tune(&self) -> Result<TuningReport> {
        self.0.gpu.check_thread()?;
        pollster::block_on(self.tune_async())
    }
}

impl Profiler {
    /// Flushes, waits for the device and returns the recorded profile.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn finish(self) -> Result<Profile> {
        pollster::block_on(self.finish_async())
    }
}
