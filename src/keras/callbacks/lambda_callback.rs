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

        impl std::fmt::Debug for LambdaCallback<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct("LambdaCallback")
                    $(.field(stringify!($hook), &self.$hook.is_some()))*
                    .finish_non_exhaustive()
            }
        }

        impl<'a> LambdaCallback<'a> {
            /// Creates a callback that does nothing.
            pub fn new() -> Self {
                LambdaCallback::default()
            }

            /// Sets when the callback is notified of the end of a batch.
            pub fn batch_logs(mut self, batch_logs: BatchLogs) -> Self {
                self.batch_logs = Some(batch_logs);
                self
            }

            /// Sets when the callback is notified of the end of an epoch or a validation.
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
                // The logs of batches are read only if a closure needs them.
                let listens = self.on_train_batch_end.is_some() || self.on_test_batch_end.is_some();
                let usual = if listens { BatchLogs::Behind } else { BatchLogs::Unused };
                self.batch_logs.unwrap_or(usual)
            }

            fn epoch_logs(&self) -> EpochLogs {
                let ends = self.on_epoch_end.is_some() || self.on_test_end.is_some();
                // A callback that is notified of batches expects all of them before the end of the epoch.
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
    /// Sets the closure to call before the first epoch.
    on_train_begin();
    /// Sets the closure to call after the last epoch.
    on_train_end(logs: &Logs);
    /// Sets the closure to call before an epoch.
    on_epoch_begin(epoch: usize);
    /// Sets the closure to call after an epoch.
    on_epoch_end(epoch: usize, logs: &mut Logs);
    /// Sets the closure to call before a batch.
    on_train_batch_begin(batch: usize);
    /// Sets the closure to call after a batch.
    on_train_batch_end(batch: usize, logs: &Logs);
    /// Sets the closure to call before a validation or an evaluation.
    on_test_begin();
    /// Sets the closure to call after a validation or an evaluation.
    on_test_end(logs: &Logs);
    /// Sets the closure to call before a batch of a validation or an evaluation.
    on_test_batch_begin(batch: usize);
    /// Sets the closure to call after a batch of a validation or an evaluation.
    on_test_batch_end(batch: usize, logs: &Logs);
}
