//! Cooperative matrices, which whole subgroups multiply (on tensor cores, for example), and the precision of products.

use crate::dtype::DType;

/// The precision of products of `f32` tensors: `matmul`, the convolutions and their gradients.
///
/// The equivalent of TensorFlow's `tf.config.experimental.enable_tensor_float_32_execution`. TensorFlow reduces the precision
/// by default; wgrad does not. The setting does not affect products of `f16` tensors: their inputs already have that precision,
/// and their sums are `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MatmulPrecision {
    /// Inputs and sums are `f32`.
    #[default]
    Strict,
    /// Kernels may round inputs to `f16`; sums are `f32`. Each factor then has a relative error of about `5e-4`, values above
    /// 65504 become infinite, and values below about `6e-8` become zero. It has no effect if the adapter has no matrix units of
    /// this kind.
    F16Inputs,
}

/// A kind of small square matrices that subgroups multiply; the sums are `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cooperative {
    /// Rows and columns.
    pub(crate) size: u32,
    /// Of the factors: `F16` or `F32`.
    pub(crate) inputs: DType,
    /// True once this device has computed a product with it that agrees with a plain kernel's: some drivers declare
    /// matrices that they multiply incorrectly.
    pub(crate) proven: bool,
}

impl Cooperative {
    /// The matrices that the adapter declares and kernels can use: for each dtype the largest size.
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
