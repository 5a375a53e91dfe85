//! The targets and sources of gradients: tensors, variables, and lists of them.

use std::borrow::Borrow;

use crate::error::{Error, Result, message};
use crate::graph::Spec;
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::variable::Variable;

use super::recorder::Recorder;

/// One source of a gradient.
#[doc(hidden)]
#[derive(Clone)]
pub struct GradientSource {
    pub(super) kind: SourceKind,
    pub(super) spec: Spec,
    pub(super) device: Device,
}

impl std::fmt::Debug for GradientSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GradientSource").field("device", &self.device).finish_non_exhaustive()
    }
}

impl GradientSource {
    /// Its name in errors.
    pub(super) fn label(&self) -> String {
        let what = match self.kind {
            SourceKind::Tensor(_) => "tensor",
            SourceKind::Variable(_) => "variable",
        };
        format!("the {what} of shape {}", self.spec.shape)
    }
}

#[derive(Clone, Copy)]
pub(super) enum SourceKind {
    Tensor(u64),
    Variable(u64),
}

/// The argument of [`GradientTape::watch`](super::GradientTape::watch): `&Tensor` or `&Variable`.
pub trait Watchable {
    #[doc(hidden)]
    fn watch(self, recorder: &Recorder) -> Result<()>;
}

impl Watchable for &Tensor {
    fn watch(self, recorder: &Recorder) -> Result<()> {
        check_float("watch", "a tensor", self.spec())?;
        recorder.watch(self.id());
        Ok(())
    }
}

impl Watchable for &Variable {
    fn watch(self, recorder: &Recorder) -> Result<()> {
        check_float("watch", "a variable", self.spec())?;
        recorder.watch_variable(self.id());
        Ok(())
    }
}

pub(super) fn check_float(call: &str, what: &str, spec: &Spec) -> Result<()> {
    if spec.dtype.is_float() {
        return Ok(());
    }
    Err(Error::Gradient(message!(
        "GradientTape.{call}: {what} of shape {} is {}; only float tensors have gradients. Cast it to f32 first.",
        spec.shape,
        spec.dtype
    )))
}

/// The targets of a gradient: a tensor or a list of tensors, by value or by reference.
pub trait Targets {
    #[doc(hidden)]
    fn list(&self) -> Vec<Tensor>;
}

impl Targets for &Tensor {
    fn list(&self) -> Vec<Tensor> {
        vec![(*self).clone()]
    }
}

impl Targets for Tensor {
    fn list(&self) -> Vec<Tensor> {
        vec![self.clone()]
    }
}

macro_rules! targets {
    ($([$($generic:tt)*] $t:ty),*) => {$(
        impl<$($generic)*> Targets for $t {
            fn list(&self) -> Vec<Tensor> {
                self.iter().map(|t| t.borrow().clone()).collect()
            }
        }
    )*};
}
// For `&[T]` of tensors or references: their list.
targets!([T: Borrow<Tensor>] &[T], [T: Borrow<Tensor>] Vec<T>, [T: Borrow<Tensor>] &Vec<T>,
         [T: Borrow<Tensor>, const N: usize] [T; N], [T: Borrow<Tensor>, const N: usize] &[T; N]);

/// The sources of gradients: a tensor, a variable, or arrays, slices and vectors of them, by value or by reference.
pub trait Sources {
    /// The gradients, in the form of the sources; `None` if there is no path.
    type Gradients;
    /// The gradients, if all are required.
    type Required;

    #[doc(hidden)]
    fn list(&self) -> Vec<GradientSource>;

    #[doc(hidden)]
    fn pack(grads: Vec<Option<Tensor>>) -> Self::Gradients;

    #[doc(hidden)]
    fn pack_required(grads: Vec<Tensor>) -> Self::Required;
}

/// One tensor or variable.
#[doc(hidden)]
pub trait OneSource {
    fn source(&self) -> GradientSource;
}

impl OneSource for Tensor {
    fn source(&self) -> GradientSource {
        GradientSource {
            kind: SourceKind::Tensor(self.id()),
            spec: self.spec().clone(),
            device: self.device().clone(),
        }
    }
}

impl OneSource for Variable {
    fn source(&self) -> GradientSource {
        GradientSource {
            kind: SourceKind::Variable(self.id()),
            spec: self.spec().clone(),
            device: self.peek().device().clone(),
        }
    }
}

/// A tensor or a variable, for lists that contain both.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, TensorOrVariable};
/// let (x, w) = (tf::constant(3.0)?, tf::Variable::new(&tf::constant(2.0)?));
/// let tape = tf::GradientTape::new();
/// tape.watch(&x)?;
/// let y = &w * &x;
/// let sources = [TensorOrVariable::Tensor(x), TensorOrVariable::Variable(w)];
/// let [dx, dw] = tape.required_gradient(&y, sources)?;
/// assert_eq!((dx.item::<f32>()?, dw.item::<f32>()?), (2.0, 3.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum TensorOrVariable {
    /// A tensor.
    Tensor(Tensor),
    /// A variable.
    Variable(Variable),
}

impl Watchable for &TensorOrVariable {
    fn watch(self, recorder: &Recorder) -> Result<()> {
        match self {
            TensorOrVariable::Tensor(tensor) => tensor.watch(recorder),
            TensorOrVariable::Variable(variable) => variable.watch(recorder),
        }
    }
}

impl From<&Tensor> for TensorOrVariable {
    fn from(tensor: &Tensor) -> Self {
        TensorOrVariable::Tensor(tensor.clone())
    }
}

impl From<&Variable> for TensorOrVariable {
    fn from(variable: &Variable) -> Self {
        TensorOrVariable::Variable(variable.clone())
    }
}

impl OneSource for TensorOrVariable {
    fn source(&self) -> GradientSource {
        match self {
            TensorOrVariable::Tensor(tensor) => tensor.source(),
            TensorOrVariable::Variable(variable) => variable.source(),
        }
    }
}

impl<T: OneSource> OneSource for &T {
    fn source(&self) -> GradientSource {
        (*self).source()
    }
}

macro_rules! one {
    ($($t:ty),*) => {$(
        impl Sources for $t {
            type Gradients = Option<Tensor>;
            type Required = Tensor;

            fn list(&self) -> Vec<GradientSource> {
                vec![self.source()]
            }

            fn pack(grads: Vec<Option<Tensor>>) -> Option<Tensor> {
                <&$t>::pack(grads)
            }

            fn pack_required(grads: Vec<Tensor>) -> Tensor {
                <&$t>::pack_required(grads)
            }
        }

        impl Sources for &$t {
            type Gradients = Option<Tensor>;
            type Required = Tensor;

            fn list(&self) -> Vec<GradientSource> {
                vec![self.source()]
            }

            fn pack(grads: Vec<Option<Tensor>>) -> Option<Tensor> {
                grads.into_iter().next().flatten()
            }

            fn pack_required(mut grads: Vec<Tensor>) -> Tensor {
                grads.swap_remove(0)
            }
        }
    )*};
}
// One source has one gradient.
one!(Tensor, Variable);

macro_rules! many {
    ($([$($generic:tt)*] $t:ty),*) => {$(
        impl<$($generic)*> Sources for $t {
            type Gradients = Vec<Option<Tensor>>;
            type Required = Vec<Tensor>;

            fn list(&self) -> Vec<GradientSource> {
                self.iter().map(|s| s.source()).collect()
            }

            fn pack(grads: Vec<Option<Tensor>>) -> Self::Gradients {
                grads
            }

            fn pack_required(grads: Vec<Tensor>) -> Vec<Tensor> {
                grads
            }
        }
    )*};
}
// Lists of any length give vectors.
many!([T: OneSource] &[T], [T: OneSource] &Vec<T>, [T: OneSource] Vec<T>);

impl<T: OneSource, const N: usize> Sources for [T; N] {
    type Gradients = [Option<Tensor>; N];
    type Required = [Tensor; N];

    fn list(&self) -> Vec<GradientSource> {
        self.iter().map(OneSource::source).collect()
    }

    fn pack(grads: Vec<Option<Tensor>>) -> Self::Gradients {
        let mut grads = grads.into_iter();
        std::array::from_fn(|_| grads.next().flatten())
    }

    fn pack_required(grads: Vec<Tensor>) -> Self::Required {
        let mut grads = grads.into_iter();
        std::array::from_fn(|_| grads.next().expect("one gradient for each source"))
    }
}
