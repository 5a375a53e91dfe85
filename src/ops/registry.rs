//! Makes an op from its name and attributes, as files and printed graphs have them.
//!
//! The library's own calls never refer to the list, so a program that reads no graph contains none of it.

#![cfg_attr(not(test), allow(dead_code))] // So far only tests read graphs.

use std::sync::Arc;

use super::Operation;
#[cfg(feature = "linalg")]
use super::linalg::rule::Ruled;
use crate::graph::attributes::{Attribute, OpAttributes, Value};

/// Reads an op of one type.
type Read = fn(&Value) -> Result<Arc<dyn Operation>, String>;

const fn entry<T: Operation + OpAttributes>() -> (&'static str, Read) {
    (T::KIND, |value| Ok(Arc::new(T::read(value)?)))
}

/// The op `kind` with these attributes; or what is wrong with them.
pub(crate) fn read(kind: &str, attributes: &Value) -> Result<Arc<dyn Operation>, String> {
    let found = ALL.iter().find(|(known, _)| *known == kind);
    let (_, read) = found.ok_or_else(|| format!("there is no op '{kind}'"))?;
    read(attributes).map_err(|words| format!("{kind}: {words}"))
}

/// The names of all types of ops.
#[cfg(test)]
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(kind, _)| *kind)
}

impl Attribute for Arc<dyn Operation> {
    fn visit(&self, name: &'static str, visitor: &mut dyn crate::graph::attributes::Visitor) {
        visitor.op(name, &**self);
    }

    fn read(value: &Value) -> Result<Self, String> {
        match value.variant()? {
            (kind, [attributes]) => read(kind, attributes),
            _ => Err(format!("{value} is not an op")),
        }
    }
}

/// Every type of op that a file may name.
static ALL: &[(&str, Read)] = &[
    entry::<super::argmax::ArgMax>(),
    entry::<super::attention::Words>(),
    entry::<super::attention::flash::Flash>(),
    entry::<super::binary::Binary>(),
    entry::<super::broadcast::BroadcastTo>(),
    entry::<super::cast::Cast>(),
    entry::<super::concat::Concat>(),
    entry::<super::conv2d::Conv2d>(),
    entry::<super::conv2d::FilterGradient>(),
    entry::<super::conv2d::InputGradient>(),
    entry::<super::custom_gradient::After>(),
    entry::<super::custom_gradient::Joint>(),
    entry::<super::custom_gradient::Part>(),
    entry::<super::depthwise_conv2d::DepthwiseConv2d>(),
    entry::<super::depthwise_conv2d::FilterGradient>(),
    entry::<super::depthwise_conv2d::InputGradient>(),
    entry::<super::dilation2d::Dilation2d>(),
    entry::<super::fill::Fill>(),
    entry::<super::gather::Gather>(),
    #[cfg(feature = "image")]
    entry::<super::image::pixels::Read>(),
    #[cfg(feature = "image")]
    entry::<super::image::resize::Resample>(),
    entry::<super::iota::Iota>(),
    entry::<super::linalg::band_part::MatrixBandPart>(),
    #[cfg(feature = "linalg")]
    entry::<super::linalg::cholesky::Cholesky>(),
    entry::<super::linalg::diagonals::MatrixDiag>(),
    entry::<super::linalg::diagonals::MatrixDiagPart>(),
    #[cfg(feature = "linalg")]
    entry::<super::linalg::lu::LuPanel>(),
    #[cfg(feature = "linalg")]
    entry::<super::linalg::qr::QrPanel>(),
    #[cfg(feature = "linalg")]
    entry::<super::linalg::svd::Jacobi>(),
    #[cfg(feature = "linalg")]
    entry::<super::linalg::triangular_solve::Triangle>(),
    entry::<super::matmul::MatMul>(),
    entry::<super::nextafter::NextAfter>(),
    entry::<super::pad::Pad>(),
    entry::<super::pool::AvgPoolGrad>(),
    entry::<super::pool::MaxPoolGrad>(),
    entry::<super::pool::MaxPoolPick>(),
    entry::<super::pool::Pool>(),
    entry::<super::random::Random>(),
    entry::<super::random::multinomial::Multinomial>(),
    entry::<super::rearrange::Inverse>(),
    entry::<super::rearrange::Rearrange>(),
    entry::<super::recurrent::fused::Sequence>(),
    entry::<super::recurrent::fused::SequenceGrad>(),
    entry::<super::recurrent::fused::Whole>(),
    entry::<super::reduce::Reduce>(),
    entry::<super::reshape::Reshape>(),
    entry::<super::reverse::Reverse>(),
    entry::<super::roll::Roll>(),
    entry::<super::scan::Cumulative>(),
    entry::<super::scan::recurrence::LinearRecurrence>(),
    entry::<super::scatter_rows::ScatterExtreme>(),
    entry::<super::scatter_rows::ScatterUpdate>(),
    entry::<super::searchsorted::SearchSorted>(),
    entry::<super::segment_extreme::Extreme>(),
    entry::<super::segment_sum::SegmentSum>(),
    entry::<super::select::Select>(),
    #[cfg(feature = "signal")]
    entry::<super::signal::fft::Fft>(),
    #[cfg(feature = "signal")]
    entry::<super::signal::fft::Irfft>(),
    #[cfg(feature = "signal")]
    entry::<super::signal::fft::Rfft>(),
    #[cfg(feature = "signal")]
    entry::<super::signal::frames::Frame>(),
    entry::<super::slice::Slice>(),
    entry::<super::sort::Sort>(),
    entry::<super::special::Zeta>(),
    entry::<super::top_k::TopK>(),
    entry::<super::transpose::Transpose>(),
    entry::<super::unary::Unary>(),
    entry::<super::vectorize::rows_of::RowsOf>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::cholesky::Cholesky>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::composed::Pinv>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::lu::Lu>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::qr::Qr>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::rule::Rest>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::solve::Determinant>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::solve::Inverse>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::solve::LogDeterminant>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::solve::Solve>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::svd::Eigenvalues>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::svd::Eigh>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::svd::SingularValues>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::svd::Svd>>(),
    #[cfg(feature = "linalg")]
    entry::<Ruled<super::linalg::triangular_solve::Triangle>>(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eager;
    use crate::error::Result;
    use crate::graph::Input;
    use crate::runtime::Device;
    use crate::tensor::{Tensor, constant};

    fn program(x: &Tensor, w: &Tensor) -> Result<Tensor> {
        let y = x.matmul(w)?.relu()?.add(w)?.softmax(1)?;
        y.slice(&[0, 1], &[2, 1])?.pad(&[(1, 0), (0, 2)])?.transpose([1, 0])?.reduce_max(0)
    }

    #[test]
    fn a_printed_graph_is_called_again_by_name() -> Result<()> {
        let device = Device::open(&Default::default())?;
        device.scope(|| {
            let x = constant([[1.0, -2.0], [3.0, 0.5]])?;
            let w = constant([[0.25, -1.0], [2.0, 1.5]])?;
            let expected = program(&x, &w)?.to_vec::<f32>()?;

            let held = program(&x, &w)?;
            let text = device.waiting_ops();
            let graph = device.take_waiting();
            drop(held);
            assert!(graph.nodes.len() >= 8, "{text}");
            let mut results: Vec<Tensor> = Vec::new();
            for node in &graph.nodes {
                let (kind, attributes) = (node.op.kind(), Value::from_op(&*node.op));
                assert!(
                    text.contains(&format!(" = {kind}{attributes}(")),
                    "{kind}{attributes} in {text}"
                );
                let op = read(kind, &attributes).expect(kind);
                let input = |input: &Input| match *input {
                    Input::Node(at) => &results[at as usize],
                    Input::Leaf(at) => [&x, &w][at as usize],
                };
                let inputs: Vec<&Tensor> = node.inputs.iter().map(input).collect();
                let result = eager::call(op, &inputs)?;
                assert_eq!(*result.spec(), node.spec);
                results.push(result);
            }
            assert_eq!(results.last().expect("it has nodes").to_vec::<f32>()?, expected);
            Ok(())
        })
    }
}
