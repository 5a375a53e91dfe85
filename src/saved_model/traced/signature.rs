//! [`Signature`]: a function that is written to a file.

use std::collections::HashSet;

use crate::error::{Error, Result, message};
use crate::function::{Nest, TensorSpec};
use crate::tensor::Tensor;

/// A function of a SavedModel: its name, what it takes, and what it does.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let scale = tf::Variable::new(tf::constant(2.0)?);
/// let rows = tf::TensorSpec::new([None, Some(3)], tf::DType::F32);
/// let double = tf::saved_model::Signature::new("serving_default", [("x", rows)], |inputs| {
///     inputs[0].multiply(&scale)
/// });
/// assert_eq!(format!("{double:?}"), "Signature(serving_default(x: f32[?, 3]))");
/// # Ok(())
/// # }
/// ```
pub struct Signature<'a> {
    pub(in crate::saved_model) name: String,
    pub(in crate::saved_model) function: String,
    pub(in crate::saved_model) inputs: Vec<(String, TensorSpec)>,
    pub(in crate::saved_model) outputs: Option<Vec<String>>,
    pub(in crate::saved_model) body: Box<Body<'a>>,
}

type Body<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

impl<'a> Signature<'a> {
    /// A function of these inputs, of which open sizes (`None`) may differ from call to call. `serving_default` is the name that
    /// TensorFlow and Keras give to the first one. Results are named `output_0`, `output_1`, ...
    ///
    /// If the function needs it, the first axes, where they are open, have one size in all inputs (the batch), and so have the other
    /// axes of each number.
    pub fn new<Name: Into<String>, Answer: Nest>(
        name: impl Into<String>,
        inputs: impl IntoIterator<Item = (Name, TensorSpec)>,
        body: impl Fn(&[Tensor]) -> Result<Answer> + 'a,
    ) -> Self {
        let name = name.into();
        let body = move |inputs: &[Tensor]| {
            let mut results = Vec::new();
            body(inputs)?.map_tensors(&mut |tensor| {
                results.push(tensor.clone());
                tensor.clone()
            });
            Ok(results)
        };
        Signature {
            function: name.clone(),
            name,
            inputs: inputs.into_iter().map(|(name, spec)| (name.into(), spec)).collect(),
            outputs: None,
            body: Box::new(body),
        }
    }

    /// The names of the results, in order.
    #[must_use]
    pub fn outputs<Name: Into<String>>(mut self, names: impl IntoIterator<Item = Name>) -> Self {
        self.outputs = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The name of the function as a part of the loaded model, which is called with positions: `serve` in
    /// `model.serve(images)`; default: the name of the signature.
    #[must_use]
    pub fn function_name(mut self, name: impl Into<String>) -> Self {
        self.function = name.into();
        self
    }
}

impl std::fmt::Debug for Signature<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inputs: Vec<String> =
            self.inputs.iter().map(|(name, spec)| format!("{name}: {spec}")).collect();
        write!(f, "Signature({}({}))", self.name, inputs.join(", "))
    }
}

/// Each name must be one that Python's functions can have, once.
pub(in crate::saved_model) fn unique<'a>(
    signature: &str,
    what: &str,
    names: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !is_identifier(name) || !seen.insert(name) {
            return Err(Error::Data(message!(
                "save: {signature}: the name \"{name}\" of its {what} occurs twice, or has other characters than letters, digits \
                 and _; choose another."
            )));
        }
    }
    Ok(())
}

pub(in crate::saved_model) fn is_identifier(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
