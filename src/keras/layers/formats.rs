//! What layers' `class` sections use: Keras's and PyTorch's names and layouts of the parts that several layers share.
//!
//! Sources: the documentation of `torch.nn` (shapes of `weight`, order of gates) and of Keras's layers.

#![allow(unused_imports)] // Each layer uses some of them.

pub(crate) use crate::trackable::Layout::{
    Depthwise, GruBias, GruKernel, Output, PerChannel, Permuted, Projected, Same, Sum,
};
pub(crate) use crate::trackable::{
    CallForm, Class, ExtraVariable, PartNames, Positions, PyTorchParameter as Torch, Role,
};

/// The class of a layer with this name.
pub(crate) const fn layer_class(name: &'static str) -> Class {
    Class::new(name).attributes(&[KERNEL, EMBEDDINGS])
}

/// `Dense._kernel`, `Embedding._embeddings`.
const KERNEL: PartNames = PartNames::new("kernel").checkpoint("_kernel");
const EMBEDDINGS: PartNames = PartNames::new("embeddings").checkpoint("_embeddings");

pub(crate) const BIAS: Torch = Torch::new("bias", &["bias"], Same);

/// A kernel `[width,in,out]`, whose parameter is `[out,in,width]`, and a bias. Transposed convolutions have both with `in`
/// and `out` exchanged.
pub(crate) static CONV_1D: [Torch; 2] =
    [Torch::new("kernel", &["weight"], Permuted(&[2, 1, 0])), BIAS];
/// As [`CONV_1D`], with two axes.
pub(crate) static CONV_2D: [Torch; 2] =
    [Torch::new("kernel", &["weight"], Permuted(&[2, 3, 1, 0])), BIAS];
/// As [`CONV_1D`], with three axes.
pub(crate) static CONV_3D: [Torch; 2] =
    [Torch::new("kernel", &["weight"], Permuted(&[2, 3, 4, 1, 0])), BIAS];
pub(crate) static DEPTHWISE: [Torch; 2] = [Torch::new("kernel", &["weight"], Depthwise), BIAS];

/// A kernel and a recurrent kernel that are transposed, and a bias that is the sum of PyTorch's two. An LSTM has the gates i, f,
/// g, o in both libraries.
pub(crate) static TRANSPOSED_CELL: [Torch; 3] = [
    Torch::new("kernel", &["weight_ih"], Permuted(&[1, 0])),
    Torch::new("recurrent_kernel", &["weight_hh"], Permuted(&[1, 0])),
    Torch::new("bias", &["bias_ih", "bias_hh"], Sum),
];

/// The scale and the offset of normalized values, along the features of the input.
pub(crate) static GAMMA_BETA: [Torch; 2] = [
    Torch::new("gamma", &["weight"], Same).over_features(),
    Torch::new("beta", &["bias"], Same).over_features(),
];

/// A layer around one cell.
pub(crate) static AROUND_CELL: [PartNames; 1] =
    [PartNames::new("*").checkpoint("cell").keras("cell").pytorch("_l0")];
/// As [`AROUND_CELL`], without a counterpart in PyTorch.
pub(crate) static AROUND_CONVOLUTIONAL_CELL: [PartNames; 1] =
    [PartNames::new("*").checkpoint("cell").keras("cell")];

/// Whether it is a functional model.
#[cfg(feature = "json")]
pub(crate) fn is_functional(part: &(impl crate::trackable::Trackable + ?Sized)) -> bool {
    part.class().is_some_and(|class| class.role == Role::Functional)
}
