//! [`GradientTape`]: records calls and differentiates them in reverse order.
//!
//! A tape observes calls in `eager`, stores what each op's gradient rule needs, and runs the backward pass with
//! ordinary ops, so a gradient is computed, fused and differentiated like any other result.

#[cfg(not(target_family = "wasm"))]
mod check;
mod custom_gradient;
mod forward;
mod functions;
mod jacobian;
mod options;
mod recorder;
mod sources;
mod tensors;
mod walk;

use std::cell::Cell;
use std::rc::Rc;

#[cfg(not(target_family = "wasm"))]
pub use check::{GradientCheck, GradientCheckOptions, gradient_check, gradient_check_with};
#[cfg(not(target_family = "wasm"))]
pub(crate) use custom_gradient::with_rule;
pub use custom_gradient::{custom_gradient, custom_gradient_with_variables, recompute_grad};
pub use forward::ForwardAccumulator;
pub use functions::{
    VariableGradients, gradients_function, hessian, hvp, implicit_gradients,
    implicit_value_and_gradients, value_and_gradients_function,
};
pub use options::{GradientOptions, JacobianOptions, UnconnectedGradients};
pub use sources::{Sources, Targets, TensorOrVariable, Watchable};
pub use tensors::Tensors;

use crate::eager;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::variable::Variable;
use recorder::Recorder;

/// Records the ops called on this thread, and computes the gradients of one result.
///
/// It records until [`gradient`](GradientTape::gradient) or [`stop`](GradientTape::stop) is called; a tape from
/// [`record`](GradientTape::record) records the calls of its function. `gradient` takes the tape by value, so using it twice
/// does not compile. Trainable variables are watched automatically when they are read, tensors only after
/// [`watch`](GradientTape::watch). Tapes can be nested; a gradient that is computed while an outer tape is open can be
/// differentiated again.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant(3.0)?;
/// let tape = tf::GradientTape::new();
/// tape.watch(&x)?;
/// let y = &x * &x;
/// let dy_dx = tape.gradient(&y, &x)?.expect("y depends on x");
/// assert_eq!(dy_dx.item::<f32>()?, 6.0);
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail
/// # fn main() -> wgrad::Result<()> {
/// # use wgrad as tf;
/// # let x = tf::constant(3.0)?;
/// let tape = tf::GradientTape::new();
/// let y = &x * &x;
/// let first = tape.gradient(&y, &x)?;
/// let second = tape.gradient(&y, &x)?; // the tape is gone
/// # Ok(())
/// # }
/// ```
pub struct GradientTape(Open);

/// A tape that can compute gradients more than once; it keeps its record until it is dropped.
///
/// It records until the first gradient is computed or [`stop`](PersistentTape::stop) is called; a tape from
/// [`record`](PersistentTape::record) records the calls of its function. Ops called later have no gradient.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant(3.0)?;
/// let tape = tf::GradientTape::persistent();
/// tape.watch(&x)?;
/// let y = &x * &x;
/// let z = &y * &y;
/// assert_eq!(tape.gradient(&z, &x)?.expect("connected").item::<f32>()?, 108.0); // 4 x^3
/// assert_eq!(tape.gradient(&y, &x)?.expect("connected").item::<f32>()?, 6.0);
/// assert!(tape.gradient(&(&y * &x), &x)?.is_none()); // was computed after the first `gradient`
/// # Ok(())
/// # }
/// ```
pub struct PersistentTape {
    open: Open,
    /// The tape continues recording after the first gradient.
    keeps_on: bool,
}

impl std::fmt::Debug for GradientTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GradientTape")
            .field("recording", &self.0.recording.get())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PersistentTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersistentTape")
            .field("recording", &self.open.recording.get())
            .finish_non_exhaustive()
    }
}

/// A recorder that observes calls until it is stopped or dropped.
struct Open {
    recorder: Rc<Recorder>,
    observer: Rc<dyn eager::Observer>,
    recording: Cell<bool>,
}

impl Open {
    fn new(watch_variables: bool) -> Self {
        let recorder = Rc::new(Recorder::new(watch_variables));
        let observer: Rc<dyn eager::Observer> = recorder.clone();
        eager::observe(observer.clone());
        Open { recorder, observer, recording: Cell::new(true) }
    }

    fn watch(&self, x: impl Watchable) -> Result<()> {
        if !self.recording.get() {
            return Err(Error::Gradient(
                "GradientTape.watch: the tape has stopped recording; watch before stop and gradient, or open another tape."
                    .into(),
            ));
        }
        x.watch(&self.recorder)
    }

    fn reset(&self) -> Result<()> {
        if !self.recording.get() {
            return Err(Error::Gradient(
                "GradientTape.reset: the tape has stopped recording; open another tape.".into(),
            ));
        }
        self.recorder.reset();
        Ok(())
    }

    fn stop(&self) {
        if self.recording.replace(false) {
            eager::ignore(&self.observer);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Default for GradientTape {
    fn default() -> Self {
        Self::new()
    }
}

impl GradientTape {
    /// Opens a tape on this thread.
    pub fn new() -> Self {
        GradientTape(Open::new(true))
    }

    /// Opens a tape that does not watch trainable variables automatically: it watches only what is passed to `watch`.
    pub fn unwatched() -> Self {
        GradientTape(Open::new(false))
    }

    /// Opens a tape that can compute gradients more than once.
    pub fn persistent() -> PersistentTape {
        let open = Open::new(true);
        open.recorder.see_every_call();
        PersistentTape { open, keeps_on: false }
    }

    /// Runs `f` with an open tape, which stops recording when `f` ends, as TensorFlow's tape does at the end of its `with`
    /// block. Returns the tape and the result of `f`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant(3.0)?;
    /// let (tape, y) = tf::GradientTape::record(|tape| {
    ///     tape.watch(&x)?;
    ///     x.multiply(&x)
    /// })?;
    /// println!("{}", &y / 2.0); // is not recorded
    /// assert_eq!(tape.required_gradient(&y, &x)?.item::<f32>()?, 6.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn record<R>(f: impl FnOnce(&GradientTape) -> Result<R>) -> Result<(GradientTape, R)> {
        let tape = GradientTape::new();
        let result = f(&tape)?;
        tape.stop();
        Ok((tape, result))
    }

    /// Stops recording; what was recorded stays. [`gradient`](GradientTape::gradient) does so automatically.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Records operations on `x` (a tensor or a variable) from now on.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if its dtype is not float, or the tape has stopped recording.
    pub fn watch(&self, x: impl Watchable) -> Result<()> {
        self.0.watch(x)
    }

    /// Runs `f` without recording it.
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.recorder.paused(f)
    }

    /// Records nothing until [`resume`](Self::resume): `stop_recording` for bindings whose blocks are no closures.
    #[doc(hidden)]
    pub fn pause(&self) {
        self.0.recorder.pause();
    }

    #[doc(hidden)]
    pub fn resume(&self) {
        self.0.recorder.resume();
    }

    /// The gradients of `target` (or of the sum of several targets) with respect to each source; `None` if it does not depend
    /// on a source in a differentiable way.
    ///
    /// `sources` may be a tensor or variable, an array, a slice or a vector of them; the result has the same form.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if a target's dtype is not float.
    pub fn gradient<S: Sources>(self, target: impl Targets, sources: S) -> Result<S::Gradients> {
        self.gradient_from(target, None, sources)
    }

    /// Like [`GradientTape::gradient`], with `output_gradients` instead of ones as the gradients of the targets.
    ///
    /// # Errors
    /// Same as [`GradientTape::gradient`], and an error if the number or shapes differ from those of the targets.
    pub fn gradient_from<S: Sources>(
        self,
        target: impl Targets,
        output_gradients: Option<&[&Tensor]>,
        sources: S,
    ) -> Result<S::Gradients> {
        self.stop();
        let recorder = &self.0.recorder;
        let grads =
            walk::backward(recorder, true, &target.list(), output_gradients, &sources.list())?;
        Ok(S::pack(grads))
    }

    /// Like [`GradientTape::gradient`], with options.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, GradientOptions, UnconnectedGradients};
    /// let (x, z) = (tf::constant(3.0)?, tf::constant([1.0, 2.0])?);
    /// let tape = tf::GradientTape::new();
    /// tape.watch(&x)?;
    /// tape.watch(&z)?;
    /// let y = &x * &x;
    /// let zeros = GradientOptions::new().unconnected_gradients(UnconnectedGradients::Zero);
    /// let dz = tape.gradient_with(&y, &z, zeros)?.expect("zeros");
    /// assert_eq!(dz.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`GradientTape::gradient_from`].
    pub fn gradient_with<S: Sources>(
        self,
        target: impl Targets,
        sources: S,
        options: GradientOptions,
    ) -> Result<S::Gradients> {
        self.stop();
        options.gradient(&self.0.recorder, true, &target.list(), &sources.list()).map(S::pack)
    }

    /// The derivatives of every element of `target` with respect to every element of each source: a tensor of the target's
    /// shape followed by the source's shape; `None` if the target does not depend on a source.
    ///
    /// All rows are computed at once: each op of the backward pass runs once, with one additional axis.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1.0, 2.0])?;
    /// let tape = tf::GradientTape::new();
    /// tape.watch(&x)?;
    /// let y = &x * &x;
    /// let jacobian = tape.jacobian(&y, &x)?.expect("y depends on x");
    /// assert_eq!(jacobian.shape(), [2, 2]);
    /// assert_eq!(jacobian.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if the target's dtype is not float.
    pub fn jacobian<S: Sources>(self, target: &Tensor, sources: S) -> Result<S::Gradients> {
        self.jacobian_with(target, sources, JacobianOptions::new())
    }

    /// Like [`GradientTape::jacobian`], with options.
    ///
    /// # Errors
    /// Same as [`GradientTape::jacobian`].
    pub fn jacobian_with<S: Sources>(
        self,
        target: &Tensor,
        sources: S,
        options: JacobianOptions,
    ) -> Result<S::Gradients> {
        self.stop();
        jacobian::jacobian(&self.0.recorder, true, target, &sources.list(), &options).map(S::pack)
    }

    /// The Jacobian of each example: for a target `[B, M..]` and a source `[B, N..]`, a tensor `[B, M.., N..]`. Element `i` of
    /// the target must depend only on element `i` of the source, as in a batch whose examples are computed independently;
    /// otherwise the results are sums over the batch.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
    /// let tape = tf::GradientTape::new();
    /// tape.watch(&x)?;
    /// let y = &x * &x;
    /// let jacobian = tape.batch_jacobian(&y, &x)?.expect("y depends on x");
    /// assert_eq!(jacobian.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0, 6.0, 0.0, 0.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`GradientTape::jacobian`], and [`Error::Shape`](crate::Error::Shape) if the first axes differ.
    pub fn batch_jacobian<S>(self, target: &Tensor, source: S) -> Result<Option<Tensor>>
    where
        S: Sources<Gradients = Option<Tensor>>,
    {
        self.batch_jacobian_with(target, source, JacobianOptions::new())
    }

    /// Like [`GradientTape::batch_jacobian`], with options.
    ///
    /// # Errors
    /// Same as [`GradientTape::batch_jacobian`].
    pub fn batch_jacobian_with<S>(
        self,
        target: &Tensor,
        source: S,
        options: JacobianOptions,
    ) -> Result<Option<Tensor>>
    where
        S: Sources<Gradients = Option<Tensor>>,
    {
        self.stop();
        let recorder = &self.0.recorder;
        jacobian::batch_jacobian(recorder, true, target, &source.list(), &options).map(S::pack)
    }

    /// The trainable variables that were read, and the explicitly watched variables that were read, in the order of their first
    /// reads.
    pub fn watched_variables(&self) -> Vec<Variable> {
        self.0.recorder.watched_variables()
    }

    /// Discards everything recorded and watched so far, and continues recording.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let w = tf::Variable::new(&tf::constant(3.0)?);
    /// let tape = tf::GradientTape::new();
    /// let mut loss = &w * &w;
    /// tape.reset()?;
    /// loss = &loss + &w * 2.0;
    /// assert_eq!(tape.required_gradient(&loss, &w)?.item::<f32>()?, 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if the tape has stopped recording.
    pub fn reset(&self) -> Result<()> {
        self.0.reset()
    }

    /// Like [`GradientTape::gradient`], but instead of `None` it returns an error that names the first source without a path to
    /// the target, and the ops that stopped gradients.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if there is no path from a source to the target.
    pub fn required_gradient<S: Sources>(
        self,
        target: impl Targets,
        sources: S,
    ) -> Result<S::Required> {
        self.stop();
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.0.recorder, true, &targets, None, &list)?;
        let grads = walk::require(&self.0.recorder, grads, &targets, &list)?;
        Ok(S::pack_required(grads))
    }
}

impl PersistentTape {
    /// Like [`GradientTape::record`]. Inside `f` the tape continues to record while it computes gradients, so these can be
    /// differentiated.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant(3.0)?;
    /// let (tape, (y, dy)) = tf::PersistentTape::record(|tape| {
    ///     tape.watch(&x)?;
    ///     let y = &x * &x * &x;
    ///     let dy = tape.gradient(&y, &x)?.expect("connected");
    ///     Ok((y, dy))
    /// })?;
    /// assert_eq!(tape.gradient(&y, &x)?.expect("connected").item::<f32>()?, 27.0); // 3 x^2
    /// assert_eq!(tape.gradient(&dy, &x)?.expect("connected").item::<f32>()?, 18.0); // 6 x
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn record<R>(f: impl FnOnce(&PersistentTape) -> Result<R>) -> Result<(PersistentTape, R)> {
        let tape = GradientTape::persistent().keep_recording();
        let result = f(&tape)?;
        tape.stop();
        Ok((tape, result))
    }

    /// Makes the tape continue to record when gradients are computed, including that computation, until
    /// [`stop`](PersistentTape::stop). Everything that is recorded stays in memory.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant(3.0)?;
    /// let tape = tf::GradientTape::persistent().keep_recording();
    /// tape.watch(&x)?;
    /// let y = &x * &x;
    /// let dy = tape.gradient(&y, &x)?.expect("connected");
    /// let z = &y * &dy;
    /// assert_eq!(tape.gradient(&z, &x)?.expect("connected").item::<f32>()?, 54.0); // 6 x^2
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_recording(self) -> Self {
        PersistentTape { keeps_on: true, ..self }
    }

    /// As [`GradientTape::stop`].
    pub fn stop(&self) {
        self.open.stop();
    }

    /// As [`GradientTape::watch`].
    ///
    /// # Errors
    /// As [`GradientTape::watch`].
    pub fn watch(&self, x: impl Watchable) -> Result<()> {
        self.open.watch(x)
    }

    /// As [`GradientTape::stop_recording`].
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        self.open.recorder.paused(f)
    }

    /// Records nothing until [`resume`](Self::resume): `stop_recording` for bindings whose blocks are no closures.
    #[doc(hidden)]
    pub fn pause(&self) {
        self.open.recorder.pause();
    }

    #[doc(hidden)]
    pub fn resume(&self) {
        self.open.recorder.resume();
    }

    /// Like [`GradientTape::gradient`]. The first call stops the recording, unless
    /// [`keep_recording`](PersistentTape::keep_recording) was called or the tape is inside [`record`](PersistentTape::record).
    ///
    /// # Errors
    /// As [`GradientTape::gradient`].
    pub fn gradient<S: Sources>(&self, target: impl Targets, sources: S) -> Result<S::Gradients> {
        self.gradient_from(target, None, sources)
    }

    /// As [`GradientTape::gradient_from`].
    ///
    /// # Errors
    /// As [`GradientTape::gradient_from`].
    pub fn gradient_from<S: Sources>(
        &self,
        target: impl Targets,
        output_gradients: Option<&[&Tensor]>,
        sources: S,
    ) -> Result<S::Gradients> {
        self.asked();
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.open.recorder, false, &targets, output_gradients, &list)?;
        Ok(S::pack(grads))
    }

    /// As [`GradientTape::gradient_with`].
    ///
    /// # Errors
    /// As [`GradientTape::gradient_with`].
    pub fn gradient_with<S: Sources>(
        &self,
        target: impl Targets,
        sources: S,
        options: GradientOptions,
    ) -> Result<S::Gradients> {
        self.asked();
        options.gradient(&self.open.recorder, false, &target.list(), &sources.list()).map(S::pack)
    }

    /// As [`GradientTape::required_gradient`].
    ///
    /// # Errors
    /// As [`GradientTape::required_gradient`].
    pub fn required_gradient<S: Sources>(
        &self,
        target: impl Targets,
        sources: S,
    ) -> Result<S::Required> {
        self.asked();
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.open.recorder, false, &targets, None, &list)?;
        walk::require(&self.open.recorder, grads, &targets, &list).map(S::pack_required)
    }

    /// As [`GradientTape::jacobian`].
    ///
    /// # Errors
    /// As [`GradientTape::jacobian`].
    pub fn jacobian<S: Sources>(&self, target: &Tensor, sources: S) -> Result<S::Gradients> {
        self.jacobian_with(target, sources, JacobianOptions::new())
    }

    /// As [`GradientTape::jacobian_with`].
    ///
    /// # Errors
    /// As [`GradientTape::jacobian`].
    pub fn jacobian_with<S: Sources>(
        &self,
        target: &Tensor,
        sources: S,
        options: JacobianOptions,
    ) -> Result<S::Gradients> {
        self.asked();
        let recorder = &self.open.recorder;
        jacobian::jacobian(recorder, false, target, &sources.list(), &options).map(S::pack)
    }

    /// As [`GradientTape::batch_jacobian`].
    ///
    /// # Errors
    /// As [`GradientTape::batch_jacobian`].
    pub fn batch_jacobian<S>(&self, target: &Tensor, source: S) -> Result<Option<Tensor>>
    where
        S: Sources<Gradients = Option<Tensor>>,
    {
        self.batch_jacobian_with(target, source, JacobianOptions::new())
    }

    /// As [`GradientTape::batch_jacobian_with`].
    ///
    /// # Errors
    /// As [`GradientTape::batch_jacobian`].
    pub fn batch_jacobian_with<S>(
        &self,
        target: &Tensor,
        source: S,
        options: JacobianOptions,
    ) -> Result<Option<Tensor>>
    where
        S: Sources<Gradients = Option<Tensor>>,
    {
        self.asked();
        let recorder = &self.open.recorder;
        jacobian::batch_jacobian(recorder, false, target, &source.list(), &options).map(S::pack)
    }

    /// As [`GradientTape::watched_variables`].
    pub fn watched_variables(&self) -> Vec<Variable> {
        self.open.recorder.watched_variables()
    }

    /// As [`GradientTape::reset`].
    ///
    /// # Errors
    /// As [`GradientTape::reset`].
    pub fn reset(&self) -> Result<()> {
        self.open.reset()
    }

    /// The first gradient request ends the recording.
    fn asked(&self) {
        if !self.keeps_on {
            self.stop();
        }
    }
}
