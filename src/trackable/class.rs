//! [`Class`]: what file formats know of a type, declared by the type itself.

use super::SlotNames;

/// A class that file formats know: its registered name, and the names and layouts of its parts in other libraries.
///
/// A type declares its class in [`Trackable::class`](super::Trackable::class), or with `#[track(class = ..)]` before
/// `#[derive(Trackable)]`'s struct. The files of a type without a class use wgrad's names and layouts, whatever the Rust
/// type is called: a `Dense` of your own is not taken for Keras's.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Class, Layout, PyTorchParameter, Trackable, Variable};
///
/// // `y = w x`, whose `w` is `[out,in]` in PyTorch and `[in,out]` here.
/// static LINEAR: Class = Class::new("my_package>Linear")
///     .pytorch(&[PyTorchParameter::new("w", &["weight"], Layout::Permuted(&[1, 0]))]);
///
/// #[derive(Trackable)]
/// #[track(class = &LINEAR)]
/// struct Linear {
///     w: Variable,
/// }
///
/// let linear = Linear { w: Variable::new(tf::Tensor::zeros([3, 2])?) };
/// assert_eq!(linear.class().map(Class::name), Some("my_package>Linear"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[allow(dead_code)] // Some formats are behind features.
pub struct Class {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) attributes: &'static [PartNames],
    pub(crate) pytorch: &'static [PyTorchParameter],
    pub(crate) positions: Positions,
    pub(crate) call: CallForm,
    pub(crate) extra: Option<ExtraVariable>,
    pub(crate) slots: &'static [SlotNames],
    /// The slots whose lists Keras does not track.
    pub(crate) unlisted_slots: &'static [&'static str],
}

impl Class {
    /// A class of this registered name, without other names for its parts.
    pub const fn new(name: &'static str) -> Self {
        Class {
            name,
            role: Role::Part,
            attributes: &[],
            pytorch: &[],
            positions: Positions::Unknown,
            call: CallForm::Inputs,
            extra: None,
            slots: &[],
            unlisted_slots: &[],
        }
    }

    /// Declares PyTorch's parameters for the variables.
    #[must_use]
    pub const fn pytorch(mut self, parameters: &'static [PyTorchParameter]) -> Self {
        self.pytorch = parameters;
        self
    }

    /// The registered name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    pub(crate) const fn attributes(mut self, attributes: &'static [PartNames]) -> Self {
        self.attributes = attributes;
        self
    }

    pub(crate) const fn positions(mut self, positions: Positions) -> Self {
        self.positions = positions;
        self
    }

    pub(crate) const fn call(mut self, call: CallForm) -> Self {
        self.call = call;
        self
    }

    pub(crate) const fn extra(mut self, extra: ExtraVariable) -> Self {
        self.extra = Some(extra);
        self
    }

    pub(crate) const fn slots(mut self, slots: &'static [SlotNames]) -> Self {
        self.slots = slots;
        self
    }

    pub(crate) const fn unlisted_slots(mut self, slots: &'static [&'static str]) -> Self {
        self.unlisted_slots = slots;
        self
    }

    /// What other libraries call the part `name`.
    #[allow(dead_code)]
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static PartNames> {
        self.attributes.iter().find(|attribute| attribute.matches(name))
    }
}

/// What an object is to the formats, beyond its names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Role {
    /// A layer, an optimizer, a metric: a part with parts.
    Part,
    /// A variable or number of the part that holds it, such as `Weight`: tables have no row for it.
    Value,
    /// An input of a functional model.
    Input,
    /// A model whose layers follow one another.
    Sequential,
    /// A model whose layers are connected.
    Functional,
    /// A list of recurrent cells.
    Cells,
    /// An optimizer around another one, which counts its steps itself.
    OuterOptimizer,
}

/// What other libraries call a part.
#[derive(Debug)]
#[allow(dead_code)]
pub(crate) struct PartNames {
    /// wgrad's name; `forward_*` is each that begins with `forward_`.
    part: &'static str,
    /// Keras's attribute in TensorFlow's checkpoints.
    pub(crate) checkpoint: Option<&'static str>,
    /// Keras's attribute in `.keras` and `.weights.h5`.
    pub(crate) keras: Option<&'static str>,
    /// PyTorch has no module for the part: its variables are those of the owner, with this after their names.
    pub(crate) pytorch: Option<&'static str>,
}

impl PartNames {
    pub(crate) const fn new(part: &'static str) -> Self {
        PartNames { part, checkpoint: None, keras: None, pytorch: None }
    }

    pub(crate) const fn checkpoint(mut self, name: &'static str) -> Self {
        self.checkpoint = Some(name);
        self
    }

    pub(crate) const fn keras(mut self, name: &'static str) -> Self {
        self.keras = Some(name);
        self
    }

    pub(crate) const fn pytorch(mut self, suffix: &'static str) -> Self {
        self.pytorch = Some(suffix);
        self
    }

    #[allow(dead_code)]
    fn matches(&self, name: &str) -> bool {
        match self.part.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == self.part,
        }
    }
}

/// The PyTorch parameters that hold a variable's values.
#[derive(Debug)]
#[allow(dead_code)] // PyTorch's names are behind a feature.
pub struct PyTorchParameter {
    pub(crate) variable: &'static str,
    pub(crate) names: &'static [&'static str],
    pub(crate) layout: Layout,
    /// Whether an axis of the variable is the input's features, whose order depends on a `Flatten` before the layer.
    pub(crate) features: bool,
}

impl PyTorchParameter {
    /// PyTorch stores the variable called `variable` (`part/variable` for that of a part) in the parameters of these names,
    /// in this layout.
    pub const fn new(
        variable: &'static str,
        names: &'static [&'static str],
        layout: Layout,
    ) -> Self {
        PyTorchParameter { variable, names, layout, features: false }
    }

    /// States that an axis of the variable is the input's features. Where a `Flatten` made them of channels and other axes,
    /// PyTorch orders them channels first, and loading and saving permute them.
    #[must_use]
    pub const fn over_features(mut self) -> Self {
        self.features = true;
        self
    }
}

/// How a variable's values are arranged in PyTorch's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Layout {
    /// The same shape and order.
    Same,
    /// Axis `i` of the variable is the parameter's axis `[i]`: `&[1, 0]` transposes a matrix.
    Permuted(&'static [usize]),
    /// A filter for each channel: `[C*m,1,..]` becomes `[..,C,m]`.
    Depthwise,
    /// One number for all channels, or `[C]`, for a variable of any shape.
    PerChannel,
    /// The sum of two parameters, such as a recurrent layer's two biases.
    Sum,
    /// A GRU's kernel: the gates r, z, n become z, r, h, and the axes are transposed.
    GruKernel,
    /// A GRU's two biases as rows, with the gates z, r, h.
    GruBias,
    /// The third `[i]` of the parameter's rows, transposed, for heads and their features.
    Projected(usize),
    /// An output projection from heads and their features, transposed.
    Output,
}

/// Which element of the input each element of a layer's result belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Positions {
    Unknown,
    /// The element at the same position.
    Kept,
    /// The layer joins all axes but the batch to one.
    Flattened,
}

/// With which arguments Keras calls a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CallForm {
    /// The input, or a list of inputs.
    Inputs,
    /// A list of query, value and key, and a causal mask.
    Attention,
    /// Query, value and key as arguments, and a causal mask.
    Heads,
    /// Sequences, and initial states by name.
    Recurrent,
}

/// What Keras's files hold of a layer beyond its variables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ExtraVariable {
    /// A count after two variables.
    Count,
    /// The inner layer's kernel once more, before the variables.
    InnerKernel,
}
