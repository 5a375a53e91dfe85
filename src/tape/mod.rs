//! [`GradientTape`]: records what was called and plays it backwards.
//!
//! A tape sees calls through the one door (`eager`), keeps what each op's rule declares, and walks back with
//! ordinary ops, so a gradient is computed, fused and differentiated like everything else.

mod recorder;
mod sources;
mod walk;

use std::rc::Rc;

pub use sources::{Sources, Targets, TensorOrVariable, Watchable};

use crate::eager;
use crate::error::Result;
use crate::tensor::Tensor;
use recorder::Recorder;

/// Records the ops called on this thread while it is open, and gives the gradients of one result.
///
/// [`gradient`](GradientTape::gradient) takes the tape by value: used twice, it does not compile. Trainable
/// variables are watched when they are read, tensors through [`watch`](GradientTape::watch). Tapes nest; a
/// gradient that is computed while an outer tape is open can be differentiated again.
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

/// A tape that can be asked for gradients again and again; it keeps what it recorded until it is dropped.
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
/// # Ok(())
/// # }
/// ```
pub struct PersistentTape(Open);

/// A recorder that is told of calls until this is dropped.
struct Open {
    recorder: Rc<Recorder>,
    observer: Rc<dyn eager::Observer>,
}

impl Open {
    fn new(watch_variables: bool) -> Self {
        let recorder = Rc::new(Recorder::new(watch_variables));
        let observer: Rc<dyn eager::Observer> = recorder.clone();
        eager::observe(observer.clone());
        Open { recorder, observer }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        eager::ignore(&self.observer);
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
        PersistentTape(Open::new(true))
    }

    /// Records what is done with `x` (a tensor or a variable) from now on.
    ///
    /// # Errors
    /// [`Error::Gradient`](crate::Error::Gradient) if its dtype is not float.
    pub fn watch(&self, x: impl Watchable) -> Result<()> {
        x.watch(&self.0.recorder)
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
        let Open { recorder, .. } = &self.0;
        eager::ignore(&self.0.observer);
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
        eager::ignore(&self.0.observer);
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.0.recorder, true, &targets, None, &list)?;
        let grads = walk::require(&self.0.recorder, grads, &targets, &list)?;
        Ok(S::pack_required(grads))
    }
}

impl PersistentTape {
    /// As [`GradientTape::watch`].
    ///
    /// # Errors
    /// As [`GradientTape::watch`].
    pub fn watch(&self, x: impl Watchable) -> Result<()> {
        x.watch(&self.0.recorder)
    }

    /// As [`GradientTape::stop_recording`].
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.recorder.paused(f)
    }

    /// As [`GradientTape::gradient`]. The tape records the backward pass too, so that its result can be
    /// differentiated; run it inside [`stop_recording`](PersistentTape::stop_recording) if that is not wanted.
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
        let (targets, list) = (target.list(), sources.list());
        let grads = walk::backward(&self.0.recorder, false, &targets, output_gradients, &list)?;
        Ok(S::pack(grads))
    }
}
