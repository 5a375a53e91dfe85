//! [`Operation`]: a layer of any kind in a model.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "json")]
use serde_json::{Map, Value};

use crate::error::Result;
use crate::keras::Context;
use crate::tensor::Tensor;
use crate::trackable::{Trackable, snake_case};

/// A tensor and its mask.
pub(crate) type Masked = (Tensor, Option<Tensor>);

/// A layer of any input and output types.
pub(crate) trait Callable: Send + Sync {
    fn call(
        &self,
        inputs: &[Tensor],
        masks: &[Option<Tensor>],
        cx: Context<'_>,
    ) -> Result<Vec<Masked>>;

    fn part(&self) -> &dyn Trackable;

    /// What a model's JSON says of it.
    #[cfg(feature = "json")]
    fn called(&self) -> Result<Called>;

    /// Whether the layer accepts its inputs as a list.
    #[cfg(feature = "json")]
    fn takes_list(&self) -> bool {
        false
    }

    /// The arguments with which Keras calls it on `tensors`: positional and keyword arguments.
    #[cfg(feature = "json")]
    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        let list = self.takes_list();
        Ok((if list { serde_json::json!([tensors]) } else { tensors.into() }, Map::new()))
    }
}

/// Returns increasing numbers.
pub(super) fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A layer as described in JSON.
#[cfg(feature = "json")]
pub(crate) enum Called {
    Layer(crate::keras::Config),
    /// An op: Keras's module and class, and its constructor's arguments.
    Operator {
        module: String,
        class: &'static str,
        config: Map<String, Value>,
    },
}

/// A layer in a model. Those that wrap one shared layer are equal.
pub(crate) struct Operation<C: ?Sized = dyn Callable> {
    /// Operations are numbered in the order in which they are created.
    pub(super) number: u64,
    pub(super) name: Name,
    pub(crate) callable: C,
}

pub(super) enum Name {
    /// A name set by the program.
    Given(String),
    /// A base name, which the model makes unique by a number.
    Base(String),
}

impl<C: Callable> Operation<C> {
    pub(crate) fn new(name: Option<&str>, callable: C) -> Self {
        let name = match name {
            Some(name) => Name::Given(name.to_string()),
            None => Name::Base(snake_case(callable.part().kind())),
        };
        Operation { number: fresh_number(), name, callable }
    }

    /// An operation with a name set by the program.
    #[cfg(feature = "json")]
    pub(crate) fn named(name: &str, callable: C) -> Self {
        Operation::new(Some(name), callable)
    }

    /// An operation that the model calls `base`, or `base_1`, ...
    pub(super) fn called(base: &str, callable: C) -> Self {
        Operation { number: fresh_number(), name: Name::Base(base.to_string()), callable }
    }
}

impl Operation {
    /// An identity that distinguishes the layer from others.
    pub(super) fn identity(&self) -> (usize, usize) {
        self.callable.part().identity()
    }
}
