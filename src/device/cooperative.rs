//! Small matrices that whole subgroups multiply (cooperative matrices; tensor cores, for example), and how precise
//! products are to be.

use crate::dtype::DType;

/// How precisely products of `f32` tensors are computed: `matmul`, the convolutions and their gradients.
///
/// TensorFlow asks the same with `tf.config.experimental.enable_tensor_float_32_execution`, and allows less precision
/// unless told otherwise; wgrad does not. Products of `f16` tensors do not depend on it: their inputs have that
/// precision already, and their sums are `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MatmulPrecision {
    /// Inputs and sums are `f32`.
    #[default]
    Strict,
    /// Inputs may be rounded to `f16`, sums are `f32`: a relative error of about `5e-4` for each factor. What is larger
    /// than 65504 becomes infinite, and what is smaller than about `6e-8` zero. Without effect where the adapter has no
    /// units that multiply so.
    F16Inputs,
}

/// A kind of small square matrices that subgroups multiply; the sums are `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cooperative {
    /// Rows and columns.
    pub(crate) size: u32,
    /// Of the factors: `F16` or `F32`.
    pub(crate) inputs: DType,
    /// A product with it was compared with a plain one on this device and was right. There are drivers that declare
    /// what they compute wrongly.
    pub(crate) proven: bool,
}

impl Cooperative {
    /// What the adapter declares and kernels can use: for each dtype the largest size.
    pub(super) fn declared(adapter: &wgpu::Adapter, features: wgpu::Features) -> Vec<Self> {
        use wgpu::CooperativeScalarType as Scalar;
        let needed = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SUBGROUP;
        if !features.contains(needed) {
            return Vec::new();
        }
        let mut kinds: Vec<Cooperative> = Vec::new();
        for kind in adapter.cooperative_matrix_properties() {
            let inputs = match kind.ab_type {
                Scalar::F16 if features.contains(wgpu::Features::SHADER_F16) => DType::F16,
                Scalar::F32 => DType::F32,
                _ => continue,
            };
            let size = kind.m_size;
            let square = [kind.n_size, kind.k_size] == [size; 2] && (size == 8 || size == 16);
            if !square || kind.cr_type != Scalar::F32 || kind.saturating_accumulation {
                continue;
            }
            match kinds.iter_mut().find(|known| known.inputs == inputs) {
                Some(known) => known.size = known.size.max(size),
                None => kinds.push(Cooperative { size, inputs, proven: false }),
            }
        }
        kinds
    }
}
