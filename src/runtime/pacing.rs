//! A budget of the GPU's time for each frame of an application.

use web_time::Duration;

use super::Device;
use super::flush::ReadValues;
use crate::error::Result;

impl Device {
    /// Sends waiting ops to the GPU, as many kernels as it computes in about `budget`, and holds the others until the next call.
    /// Returns `true` once it has sent everything. An application that draws with the same GPU calls it once a frame, and
    /// begins the next training step when it returns `true`, so that a long step is spread over several frames.
    ///
    /// From the first call on, the device sends work only here and where the program needs a result. Reading a value,
    /// [`flush`](Device::flush) and [`synchronize`](Device::synchronize) send everything at once, whatever it takes; so does the
    /// application's use of a tensor's buffer, if held work uses that buffer. So read a loss after a call that has returned
    /// `true`. A `budget` of [`Duration::MAX`] sends everything, and lets the device send its work by itself again.
    ///
    /// Each kernel's time is measured when it first runs under a budget: the first three steps wait for the GPU after each
    /// kernel, though not for longer than `budget` (or a single kernel). If the GPU has not finished the kernels of the call before,
    /// a call sends fewer. At least one kernel is sent each time, as kernels cannot be divided. Compiling kernels is not part
    /// of the budget; run a step before the first frame to compile them. [`Device::tune`] finds the fastest kernels in advance,
    /// which otherwise happens between steps, but not under a budget.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use std::time::Duration;
    /// use wgrad::{Device, Tensor};
    /// let device = Device::new()?;
    /// let x = device.scope(|| Tensor::ones([64, 64]))?;
    /// device.run_for(Duration::from_millis(2))?;
    /// let mut y = x.clone();
    /// for _ in 0..8 {
    ///     y = y.matmul(&x)? / 64.0;                        // several kernels, which wait
    /// }
    /// let mut frames = 0;
    /// while !device.run_for(Duration::from_micros(50))? {  // the program would draw a frame here
    ///     frames += 1;
    /// }
    /// assert!(frames > 0);
    /// assert_eq!(y.to_vec::<f32>()?[0], 1.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn run_for(&self, budget: Duration) -> Result<bool> {
        let gpu = &self.0.gpu;
        gpu.check_thread()?;
        let mut state = self.state();
        let ran = match state.stream.len() {
            0 => Ok(()),
            _ => {
                state.cutter.step_ends();
                gpu.pace(budget);
                self.flush_locked(&mut state, ReadValues::None, &[]).map(drop)
            }
        };
        if let Some(error) = state.failure.take() {
            return Err(gpu.judge(error));
        }
        ran?;
        gpu.send_for(budget)
    }
}
