//! [`loading`]: builds a model whose weights come from a file, without drawing initial values that the file replaces.
//!
//! Until the file is read, a random weight is a tensor of zeros that nothing computes: it waits in the device's stream, and is
//! left out when the weight gets its value. At the end, the weights that got none draw theirs, from the generators that they
//! would have drawn from before.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::Initializer;
use super::trial::settle;
use crate::eager;
use crate::error::Result;
use crate::graph::Value;
use crate::random::Generator;
use crate::random::replicated::for_all;
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A draw that has not been made.
pub(super) struct Draw {
    pub(super) initializer: Initializer,
    pub(super) generator: Generator,
    pub(super) device: Device,
}

/// A weight without its value.
struct Unset {
    variable: Variable,
    /// The zeros. Another value of the variable is another allocation, as this handle keeps the place taken.
    zeros: Weak<Value>,
    draw: Draw,
}

thread_local! {
    /// The weights without values, while this thread builds a model to load.
    static UNSET: RefCell<Option<Vec<Unset>>> = const { RefCell::new(None) };
}

/// Runs `f`, which makes a model and sets its weights from a file. Weights that it has not set then draw their initial values.
/// If `f` fails, the model must be dropped.
pub(crate) fn loading<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    /// What an outer call has collected.
    struct Outer(Option<Vec<Unset>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            UNSET.set(self.0.take());
        }
    }
    let outer = Outer(UNSET.replace(Some(Vec::new())));
    let result = f()?;
    let unset = UNSET.take();
    drop(outer);
    for Unset { variable, zeros, draw } in unset.into_iter().flatten() {
        if Weak::ptr_eq(&zeros, &Arc::downgrade(variable.peek().value())) {
            draw.make(&variable)?;
        }
    }
    Ok(result)
}

/// Whether this thread builds a model to load. Without files of weights this is known when the crate is compiled: a page does not
/// carry the code.
pub(super) fn is_loading() -> bool {
    cfg!(feature = "safetensors") && UNSET.with_borrow(Option::is_some)
}

/// Records that `variable` has zeros instead of the result of `draw`.
pub(super) fn draw_later(variable: &Variable, draw: Draw) -> Result<()> {
    // Its replicas may hold copies of the zeros.
    if variable.is_mirrored() {
        return draw.make(variable);
    }
    let zeros = Arc::downgrade(variable.peek().value());
    UNSET.with_borrow_mut(|unset| {
        let unset = unset.get_or_insert_default();
        unset.push(Unset { variable: variable.clone(), zeros, draw });
    });
    Ok(())
}

impl Draw {
    fn make(&self, variable: &Variable) -> Result<()> {
        let from = self.device.waiting();
        let make = || -> Result<Tensor> {
            self.initializer.init(variable.shape(), &self.generator)?.cast(variable.dtype())
        };
        let value = for_all(|| self.device.scope(|| eager::lifted(make)))?;
        settle(&value, from)?;
        variable.replace(&value)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::{Error, message};
    use crate::keras::layers::Dense;
    use crate::keras::{INFERENCE, Layer, Sequential};
    use crate::trackable::Trackable;

    /// Other tests draw from the global generator meanwhile, so the weights have seeds.
    fn made(seed: u64) -> Result<Sequential> {
        let dense = |units: usize| {
            Dense::new(units).kernel_initializer(Initializer::HeNormal.seed(seed + units as u64))
        };
        let model = Sequential::new().add(dense(3)).add(dense(2));
        model.call(&Tensor::ones([1, 4])?, INFERENCE)?;
        Ok(model)
    }

    fn values(model: &Sequential) -> Vec<Vec<f32>> {
        model.variables().iter().map(|v| v.read().to_vec().unwrap()).collect()
    }

    #[test]
    fn weights_that_a_file_lacks_start_as_without_a_file() {
        let (first, second) = (values(&made(10).unwrap()), values(&made(20).unwrap()));
        assert!(first[0].iter().all(|x| *x != 0.0));
        let loaded = loading(|| {
            let model = made(10)?;
            // Weights of a file; zeros are values like others.
            model.variables()[0].assign(&Tensor::full([4, 3], 5.0)?)?;
            let other = made(20)?;
            other.variables()[0].assign(&Tensor::zeros([4, 3])?)?;
            Ok([model, other])
        });
        let [model, other] = loaded.unwrap().map(|model| values(&model));
        assert_eq!(model[0], [5.0; 12]);
        assert_eq!(model[1..], first[1..]);
        assert_eq!(other[0], [0.0; 12]);
        assert_eq!(other[1..], second[1..]);
    }

    #[test]
    fn nothing_is_drawn_for_weights_from_a_file() {
        let drawn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = drawn.clone();
        let initializer = Initializer::new(move |shape, _| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Tensor::ones(shape)
        });
        loading(|| {
            let layer = Dense::new(3).kernel_initializer(initializer.clone());
            layer.call(&Tensor::ones([1, 4])?, INFERENCE)?;
            layer.variables()[0].assign(&Tensor::full([4, 3], 2.0)?)
        })
        .unwrap();
        assert_eq!(drawn.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn a_failure_ends_the_loading() {
        let error = loading(|| -> Result<()> {
            made(0)?;
            // An inner failure leaves the outer one as it is.
            let inner = loading(|| made(0).and(Err::<(), _>(Error::Data(message!("inner")))));
            assert!(inner.is_err() && is_loading());
            Err(Error::Data(message!("the file ends early")))
        });
        assert_eq!(error.unwrap_err().to_string(), "the file ends early");
        assert!(!is_loading());
        let panicked = std::panic::catch_unwind(|| loading(|| -> Result<()> { panic!("stop") }));
        assert!(panicked.is_err() && !is_loading());
        assert!(values(&made(0).unwrap())[0].iter().all(|x| *x != 0.0));
    }
}
