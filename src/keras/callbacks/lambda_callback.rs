//! [`LambdaCallback`]: a callback of closures.

use super::{BatchLogs, Callback, EpochLogs, Logs, Run};
use crate::error::Result;

macro_rules! lambda {
    ($($(#[$doc:meta])* $hook:ident($($name:ident: $type:ty),*);)*) => {
        /// A callback whose methods are closures.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
        /// use wgrad::keras::callbacks::LambdaCallback;
        /// let model = Sequential::new().add(Dense::new(1));
        /// model.compile("sgd", "mse", CompileOptions::new())?;
        /// let mut losses = Vec::new();
        /// let note = LambdaCallback::new().on_epoch_end(|_epoch, logs, _run| {
        ///     losses.extend(logs.get("loss"));
        ///     Ok(())
        /// });
        /// let (x, y) = (Tensor::ones([32, 2])?, Tensor::zeros([32, 1])?);
        /// model.fit((&x, &y), FitOptions::new().epochs(3).callback(note))?;
        /// assert_eq!(losses.len(), 3);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Default)]
        #[allow(clippy::type_complexity)] // One box for each closure.
        pub struct LambdaCallback<'a> {
            $($hook: Option<Box<dyn FnMut($($type,)* &mut Run<'_>) -> Result<()> + 'a>>,)*
            batch_logs: Option<BatchLogs>,
            epoch_logs: Option<EpochLogs>,
        }

        impl<'a> LambdaCallback<'a> {
            /// A callback that does nothing.
            pub fn new() -> Self {
                LambdaCallback::default()
            }

            /// Sets when the ends of batches are heard of.
            pub fn batch_logs(mut self, batch_logs: BatchLogs) -> Self {
                self.batch_logs = Some(batch_logs);
                self
            }

            /// Sets when the ends of epochs and validations are heard of.
            pub fn epoch_logs(mut self, epoch_logs: EpochLogs) -> Self {
                self.epoch_logs = Some(epoch_logs);
                self
            }

            $(
                $(#[$doc])*
                pub fn $hook(mut self, f: impl FnMut($($type,)* &mut Run<'_>) -> Result<()> + 'a) -> Self {
                    self.$hook = Some(Box::new(f));
                    self
                }
            )*
        }

        impl Callback for LambdaCallback<'_> {
            fn batch_logs(&self) -> BatchLogs {
                // Unless somebody listens to batches, they cost nothing.
                let listens = self.on_train_batch_end.is_some() || self.on_test_batch_end.is_some();
                let usual = if listens { BatchLogs::Behind } else { BatchLogs::Unused };
                self.batch_logs.unwrap_or(usual)
            }

            fn epoch_logs(&self) -> EpochLogs {
                let ends = self.on_epoch_end.is_some() || self.on_test_end.is_some();
                // Who hears of batches expects to hear of all of them before the epoch's end.
                let usual = match ends || self.batch_logs() != BatchLogs::Unused {
                    true => EpochLogs::Now,
                    false => EpochLogs::Behind,
                };
                self.epoch_logs.unwrap_or(usual)
            }

            $(
                fn $hook(&mut self, $($name: $type,)* run: &mut Run<'_>) -> Result<()> {
                    match &mut self.$hook {
                        Some(f) => f($($name,)* run),
                        None => Ok(()),
                    }
                }
            )*
        }
    };
}
// Each line becomes a field, a setter, and the method of `Callback` that calls it.
lambda! {
    /// Sets what happens before the first epoch.
    on_train_begin();
    /// Sets what happens after the last epoch.
    on_train_end(logs: &Logs);
    /// Sets what happens before an epoch.
    on_epoch_begin(epoch: usize);
    /// Sets what happens after an epoch.
    on_epoch_end(epoch: usize, logs: &mut Logs);
    /// Sets what happens before a batch.
    on_train_batch_begin(batch: usize);
    /// Sets what happens after a batch.
    on_train_batch_end(batch: usize, logs: &Logs);
    /// Sets what happens before a validation or an evaluation.
    on_test_begin();
    /// Sets what happens after a validation or an evaluation.
    on_test_end(logs: &Logs);
    /// Sets what happens before a batch that is measured.
    on_test_batch_begin(batch: usize);
    /// Sets what happens after a batch that was measured.
    on_test_batch_end(batch: usize, logs: &Logs);
}
