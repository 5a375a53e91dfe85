//! [`WeightNames`]: how the weights that others publish are called.

/// The names that a publisher's weights have for a network's layers.
///
/// ```
/// use wgrad::keras::applications::resnet;
/// let names = resnet::torchvision(50);
/// assert_eq!(names.modules().next(), Some(("conv1", "conv1_conv")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WeightNames {
    pub(super) modules: Vec<Module>,
    /// What may stand in front of all names.
    pub(super) prefixes: Vec<&'static str>,
    /// The ends of names that the network does not need.
    pub(super) unused: Vec<&'static str>,
    /// Tensors that are several weights in a row: their names, and those of their parts.
    pub(super) joined: Vec<(String, Vec<String>)>,
}

/// A part of a publisher's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    /// Its name there.
    pub(super) name: String,
    /// Its layer here, or its variable.
    pub(super) ours: String,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A module of PyTorch, with its names of weights and its orders of axes.
    Torch,
    /// A module whose weights have these names, there and here, and the same axes.
    Direct(&'static [(&'static str, &'static str)]),
    /// A single tensor.
    Variable,
}

impl WeightNames {
    pub(super) fn new() -> Self {
        WeightNames::default()
    }

    pub(super) fn add(&mut self, module: impl Into<String>, layer: impl Into<String>) {
        self.push(module, layer, Form::Torch);
    }

    pub(super) fn direct(
        &mut self,
        module: impl Into<String>,
        layer: impl Into<String>,
        weights: &'static [(&'static str, &'static str)],
    ) {
        self.push(module, layer, Form::Direct(weights));
    }

    pub(super) fn variable(&mut self, name: impl Into<String>, variable: impl Into<String>) {
        self.push(name, variable, Form::Variable);
    }

    fn push(&mut self, name: impl Into<String>, ours: impl Into<String>, form: Form) {
        self.modules.push(Module { name: name.into(), ours: ours.into(), form });
    }

    pub(super) fn prefix(&mut self, prefix: &'static str) {
        self.prefixes.push(prefix);
    }

    pub(super) fn unused(&mut self, ends: &[&'static str]) {
        self.unused.extend(ends);
    }

    /// A tensor whose rows are those of several modules, such as query, key and value.
    pub(super) fn join(
        &mut self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = String>,
    ) {
        self.joined.push((name.into(), parts.into_iter().collect()));
    }

    /// Returns the publisher's modules, and the layer here that has the weights of each.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.iter().map(|module| (&*module.name, &*module.ours))
    }

    /// Returns options for [`load_weights_with`](crate::Trackable::load_weights_with) that rename the publisher's tensors and
    /// change their axes. They know nothing of tensors that hold several weights, such as those of query, key and value in one;
    /// [`WeightNames::load_into`] splits these.
    #[cfg(feature = "safetensors")]
    pub fn load_options(&self) -> crate::weights::LoadOptions {
        let torch = self.modules.iter().all(|module| !matches!(module.form, Form::Direct(_)));
        let mut options = crate::weights::LoadOptions::new();
        if torch {
            options = options.from_pytorch();
        }
        for end in &self.unused {
            options = options.ignore(&format!("{{all..}}{end}"));
        }
        for Module { name, ours, form } in &self.modules {
            options = match form {
                // The dots of PyTorch's names are the slashes of ours.
                Form::Torch => options.rename(
                    &format!("{name}.{{weight}}"),
                    &format!("{}.{{weight}}", ours.replace('/', ".")),
                ),
                Form::Variable => options.rename(name, &ours.replace('/', ".")),
                Form::Direct(weights) => weights.iter().fold(options, |options, (there, here)| {
                    options.rename(&format!("{name}.{there}"), &format!("{ours}/{here}"))
                }),
            };
        }
        options
    }
}
