//! [`CustomObjects`]: creates custom layers from their configs.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::Result;
use crate::keras::layers::AnyLayer;
use crate::keras::{Config, Layer};
use crate::tensor::Tensor;

/// The custom layers that a model's JSON may contain.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{Config, Context, CustomObjects, Layer, Sequential, layers::Dense};
///
/// /// `scale x`
/// #[derive(Trackable)]
/// struct Scale {
///     scale: f32,
/// }
///
/// impl Layer for Scale {
///     fn call(&self, x: &Tensor, _cx: Context<'_>) -> tf::Result<Tensor> {
///         x.multiply(self.scale)
///     }
///
///     fn get_config(&self) -> tf::Result<Config> {
///         let mut config = Config::new("Scale");
///         config.set("scale", &self.scale)?;
///         Ok(config)
///     }
/// }
///
/// let model = Sequential::new().add(Dense::new(2)).add(Scale { scale: 3.0 });
/// let custom = CustomObjects::new()
///     .layer("Scale", |config| Ok(Scale { scale: config.need("scale")? }));
/// let copy = Sequential::from_json_with(&model.to_json()?, &custom)?;
/// assert_eq!(copy.layers().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CustomObjects {
    makers: HashMap<String, Rc<Maker>>,
}

impl std::fmt::Debug for CustomObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CustomObjects")
            .field("classes", &self.makers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

type Maker = dyn Fn(&Config) -> Result<AnyLayer>;

impl CustomObjects {
    /// Creates an empty collection.
    pub fn new() -> Self {
        CustomObjects::default()
    }

    /// Adds a layer with one input: its class, and a function that creates it.
    pub fn layer<L: Layer + 'static>(
        mut self,
        class: &str,
        make: impl Fn(&Config) -> Result<L> + 'static,
    ) -> Self {
        let make = move |config: &Config| Ok(AnyLayer::One(Box::new(make(config)?)));
        self.makers.insert(class.to_string(), Rc::new(make));
        self
    }

    /// Adds a layer with several inputs: its class, and a function that creates it.
    pub fn merging_layer<L: Layer<[Tensor]> + 'static>(
        mut self,
        class: &str,
        make: impl Fn(&Config) -> Result<L> + 'static,
    ) -> Self {
        let make = move |config: &Config| Ok(AnyLayer::Many(Box::new(make(config)?)));
        self.makers.insert(class.to_string(), Rc::new(make));
        self
    }

    pub(super) fn make(&self, config: &Config) -> Option<Result<AnyLayer>> {
        self.makers.get(config.class()).map(|make| make(config))
    }
}
