//! Inspection of a [`Device`]: the plan that it ran last, and how long its kernels take.

use super::Device;
use crate::device::Profile;
use crate::error::Result;
use crate::plan::PlanReport;

impl Device {
    /// The plan that ran last: its kernels, what each computes, and their shaders. `None` before the first.
    pub fn last_plan(&self) -> Option<PlanReport> {
        self.state().plans.last()
    }

    /// The ops that have been called and have not run yet, as text: a line for each, with its attributes, its inputs, and the
    /// dtype and shape of its result. Empty after a flush, or if every op runs at once (`WGRAD_EAGER_SYNC=1`).
    ///
    /// `%given0` is a tensor that had its values before. Numbers that may change from call to call, such as the bits of a
    /// constant, are attributes, too.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let x = device.scope(|| Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]))?;
    /// let y = x.square()?.reduce_sum(1)?;
    /// let text = device.waiting_ops();
    /// assert_eq!(
    ///     text,
    ///     "%given0: f32[2, 2]\n\
    ///      %0 = Unary{row: square}(%given0): f32[2, 2]\n\
    ///      %1 = Reduce{row: reduce_sum, axes: [1], keepdims: false}(%0): f32[2]\n"
    /// );
    /// # assert_eq!(y.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn waiting_ops(&self) -> String {
        self.state().stream.text()
    }

    /// Lets a test plan for another adapter.
    #[cfg(test)]
    pub(crate) fn change_caps(&self, change: impl FnOnce(&mut crate::device::Caps)) {
        change(&mut self.state().caps);
    }

    /// Times every kernel from now on, until [`Profiler::finish`] returns the result.
    ///
    /// The profile excludes ops that were called before. Times are from the device's own clock if the adapter has
    /// timestamps (natively most do); otherwise the host submits every kernel separately and waits for it, and the
    /// table says so. Recording slows the host slightly, and a device without timestamps considerably.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let x = device.scope(|| Tensor::ones([64, 64]))?;
    ///
    /// let profiler = device.profile()?;
    /// let sum = x.matmul(&x)?.reduce_sum(())?.item::<f32>()?;
    /// let profile = profiler.finish()?;
    ///
    /// println!("{profile}");                     // kernel, calls, total ms, mean us, share, GB/s, GFLOP/s
    /// assert!(profile.kernels().len() >= 2);
    /// profile.write_chrome_trace(std::env::temp_dir().join("wgrad-trace.json"))?;
    /// # assert_eq!(sum, 64.0 * 64.0 * 64.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::flush`]; [`Error::Device`](crate::Error::Device) if a profile is being recorded already, or
    /// in a browser whose adapter has no timestamps.
    pub fn profile(&self) -> Result<Profiler> {
        self.flush()?;
        self.0.gpu.start_profile()?;
        Ok(Profiler { device: self.clone(), recording: true })
    }
}

/// A recording that [`Device::profile`] has begun. Dropping it ends the recording without a result.
#[derive(Debug)]
#[must_use = "the recording ends when this is dropped"]
pub struct Profiler {
    device: Device,
    recording: bool,
}

impl Profiler {
    /// As [`Profiler::finish`], on every target.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub async fn finish_async(mut self) -> Result<Profile> {
        self.device.flush()?;
        self.recording = false;
        self.device.0.gpu.finish_profile().await
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if self.recording {
            self.device.0.gpu.drop_profile();
        }
    }
}
