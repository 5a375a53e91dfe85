//! [`GradientTape`]: records calls and plays them backwards.
//!
//! A tape sees calls through the one door (`eager`), keeps what each op's rule needs, and walks back with ordinary ops,
//! so a gradient is computed, fused and differentiated like everything else.

mod recorder;
mod sources;
mod walk;

use std::cell::Cell;
use std::rc::Rc;

pub use sources::{Sources, Targets, TensorOrVariable, Watchable};

use crate::eager;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use recorder::Recorder;

/// Records the ops called on this thread, and gives the gradients of one result.
///
/// It records until [`gradient`](GradientTape::gradient) or [`stop`](GradientTape::stop), or, made by
/// [`record`](GradientTape::record), what its function calls. `gradient` takes the tape by value: used twice, it does
/// not compile. Trainable variables are watched when they are read, tensors through [`watch`](GradientTape::watch).
/// Tapes nest; a gradient that is computed while an outer tape is open can be differentiated again.
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

/// A tape that gives gradients again and again; it keeps its record until it is dropped.
///
/// It records until it is asked the first time or [`stop`](PersistentTape::stop)ped, or, made by
/// [`record`](PersistentTape::record), what its function calls. What is computed later has no gradient.
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
    /// The tape goes on recording after the first gradient.
    keeps_on: bool,
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

    /// Opens a tape that watches only what it is told to, not every trainable variable that is read.
    pub fn unwatched() -> Self {
        GradientTape(Open::new(false))
    }

    /// Opens a tape that can be asked more than once.
    pub fn persistent() -> PersistentTape {
        PersistentTape { open: Open::new(true), keeps_on: false }
    }

    /// Runs `f` with an open tape, which stops recording when `f` ends, as TensorFlow's does with its block. Returns the
    /// tape and what `f` has returned.
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
    /// Those of `f`.
    pub fn record<R>(f: impl FnOnce(&GradientTape) -> Result<R>) -> Result<(GradientTape, R)> {
        let tape = GradientTape::new();
        let result = f(&tape)?;
        tape.stop();
        Ok((tape, result))
    }

    /// Stops recording; what was recorded stays. [`gradient`](GradientTape::gradient) does so by itself.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Records what is done with `x` (a tensor or a variable) from now on.
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

    /// The gradients of `target` (or of the sum of several) for each source; `None` where it does not depend on a
    /// source in a differentiable way.
    ///
    /// `sources` may be a tensor or variable, an array, a slice or a vector of them; the result has the same form.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if a target's dtype is not float.
    pub fn gradient<S: Sources>(self, target: impl Targets, sources: S) -> Result<S::Gradients> {
        self.gradient_from(target, None, sources)
    }

    /// As [`GradientTape::gradient`], the targets' own gradients being `output_gradients` instead of ones.
    ///
    /// # Errors
    /// As [`GradientTape::gradient`], and if their number or shapes are not those of the targets.
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

    /// As [`GradientTape::gradient`], with an error that names the first source without a path to the target, and
    /// the ops that stopped gradients, in the place of `None`.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if a source has no path.
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
    /// As [`GradientTape::record`]. In `f` the tape goes on recording when it is asked for gradients, so that these can be
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
    /// Those of `f`.
    pub fn record<R>(f: impl FnOnce(&PersistentTape) -> Result<R>) -> Result<(PersistentTape, R)> {
        let tape = GradientTape::persistent().keep_recording();
        let result = f(&tape)?;
        tape.stop();
        Ok((tape, result))
    }

    /// Goes on recording when it is asked for gradients, their computation included, until
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

    /// As [`GradientTape::gradient`]. The first one stops the recording, unless the tape was told to
    /// [`keep_recording`](PersistentTape::keep_recording) or is inside [`record`](PersistentTape::record).
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
        if !self.keeps_on {
            self.stop();
        }
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.open.recorder, false, &targets, output_gradients, &list)?;
        Ok(S::pack(grads))
    }
}
