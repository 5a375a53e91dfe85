//! [`Operation`]: a layer of any kind, as a model holds it.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "json")]
use serde_json::{Map, Value};

use crate::error::Result;
use crate::keras::Context;
use crate::tensor::Tensor;
use crate::trackable::{Trackable, snake_case};

/// A tensor and which of its elements count.
pub(crate) type Masked = (Tensor, Option<Tensor>);

/// A layer, whatever it takes and returns.
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

    /// Whether the layer takes its inputs as a list.
    #[cfg(feature = "json")]
    fn takes_list(&self) -> bool {
        false
    }

    /// How Keras calls it on `tensors`: the arguments, and those that have names.
    #[cfg(feature = "json")]
    fn arguments(&self, tensors: Vec<Value>) -> Result<(Value, Map<String, Value>)> {
        let list = self.takes_list();
        Ok((if list { serde_json::json!([tensors]) } else { tensors.into() }, Map::new()))
    }
}

/// Numbers that count up.
pub(super) fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A layer as JSON has it.
#[cfg(feature = "json")]
pub(crate) enum Called {
    Layer(crate::keras::Config),
    /// An op: Keras's module and class, and what it was constructed with.
    Operator {
        module: String,
        class: &'static str,
        config: Map<String, Value>,
    },
}

/// A layer in a model. Those that wrap one shared layer are equal.
pub(crate) struct Operation<C: ?Sized = dyn Callable> {
    /// Operations count up in the order in which they are made.
    pub(super) number: u64,
    pub(super) name: Name,
    pub(crate) callable: C,
}

pub(super) enum Name {
    /// The program has named it.
    Given(String),
    /// The model numbers what is called so.
    Base(String),
}

impl<C: Callable> Operation<C> {
    pub(super) fn new(name: Option<&str>, callable: C) -> Self {
        let name = match name {
            Some(name) => Name::Given(name.to_string()),
            None => Name::Base(snake_case(callable.part().kind())),
        };
        Operation { number: fresh_number(), name, callable }
    }

    /// An operation that the program has named.
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
    /// What tells the layer from others.
    pub(super) fn identity(&self) -> (usize, usize) {
        self.callable.part().identity()
    }
}
