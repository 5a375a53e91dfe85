//! Measures which variants of ops are fastest, and stores the findings.

use std::future::{Future, poll_fn};
use std::pin::pin;

use super::Device;
use crate::device::{MatmulPrecision, platform};
use crate::error::{Error, Result, message};
use crate::plan::{Tuning, TuningReport, measure};

impl Device {
    /// As [`Device::tune`], on every target. Between two measurements a page can draw and a program can continue; work
    /// that it runs meanwhile makes the times longer. If you drop the future, its measurements are not used.
    ///
    /// # Errors
    /// As [`Device::tune`].
    pub async fn tune_async(&self) -> Result<TuningReport> {
        self.flush()?;
        let gpu = &self.0.gpu;
        gpu.done().await?;
        // The device's timestamps serve one recording at a time.
        if platform::TIMESTAMPS_ARE_FINE {
            gpu.start_profile().map(|()| gpu.drop_profile())?;
        }
        let mut tasks = self.state().tuner.take_unmeasured();
        let mut ops = Vec::new();
        let measured = {
            let mut measuring = pin!(measure(gpu, &mut tasks, &mut ops));
            // Submitting code holds the lock on the state, because a flush recognises its own submissions by that;
            // waiting code does not hold it.
            poll_fn(|context| {
                let _state = self.state();
                measuring.as_mut().poll(context)
            })
            .await
        };
        let mut state = self.state();
        state.tuner.saw(&tasks);
        if !ops.is_empty() {
            state.tuner.found(&ops);
            state.tuner.save();
            state.plans.clear();
        }
        measured.map(|()| TuningReport::new(ops))
    }

    /// Whether plans use findings, and whether the device may measure while the program runs. `WGRAD_TUNE` sets it for
    /// new devices.
    ///
    /// Variants differ in rounding. With [`Tuning::Off`] results depend only on the adapter and this crate. With
    /// [`Tuning::Found`], the default, they also depend on the findings that exist when a plan is made, and with
    /// [`Tuning::Background`] on timing as well.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tuning};
    /// let device = Device::new()?;
    /// device.set_tuning(Tuning::Off);
    /// assert_eq!(device.tuning(), Tuning::Off);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_tuning(&self, tuning: Tuning) {
        let mut state = self.state();
        if state.tuner.mode() != tuning {
            state.tuner.set_mode(tuning);
            state.plans.clear();
        }
    }

    /// The mode that [`Device::set_tuning`] has set.
    pub fn tuning(&self) -> Tuning {
        self.state().tuner.mode()
    }

    /// How precisely products of `f32` tensors are computed from now on: `matmul`, the convolutions and their
    /// gradients. [`DeviceOptions::matmul_precision`] sets it for a new device.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, MatmulPrecision};
    /// let device = Device::new()?;
    /// assert_eq!(device.matmul_precision(), MatmulPrecision::Strict);
    /// device.set_matmul_precision(MatmulPrecision::F16Inputs);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`DeviceOptions::matmul_precision`]: crate::DeviceOptions::matmul_precision
    pub fn set_matmul_precision(&self, precision: MatmulPrecision) {
        let mut state = self.state();
        if state.caps.precision != precision {
            state.caps.precision = precision;
            state.plans.clear();
        }
    }

    /// The precision that [`Device::set_matmul_precision`] has set.
    pub fn matmul_precision(&self) -> MatmulPrecision {
        self.state().caps.precision
    }

    /// All findings as text: those of this process and those in the cache folder.
    ///
    /// Native programs store findings there unless `WGRAD_CACHE` is `off`. A web page can store this text itself and
    /// pass it to [`Device::load_tuning_findings`] at the next visit.
    pub fn tuning_findings(&self) -> String {
        self.state().tuner.text()
    }

    /// Uses findings from [`Device::tuning_findings`], beginning with the next plan. Returns the number of findings.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::Device;
    /// let device = Device::new()?;
    /// let kept = device.tuning_findings();
    /// device.load_tuning_findings(&kept)?;
    /// let error = device.load_tuning_findings("something else").unwrap_err();
    /// assert!(error.to_string().contains("no findings"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if they are damaged or belong to another adapter, driver or version.
    pub fn load_tuning_findings(&self, text: &str) -> Result<usize> {
        let mut state = self.state();
        let count = state.tuner.load(text).map_err(|why| {
            Error::Data(message!(
                "Device: this text cannot be loaded as findings: {why}. Measure again."
            ))
        })?;
        state.plans.clear();
        Ok(count)
    }
}
