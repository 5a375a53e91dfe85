//! Convolves images with filters, and computes the two gradients, as products of gathered patches.
//!
//! y[n,i,j,o] = sum over u,v,c of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,o]
//! (a cross-correlation, as in TensorFlow). Images are `[N,H,W,C]`, filters `[KH,KW,C,O]`. Filters with fewer channels
//! make groups: `groups.rs`.

mod geometry;
mod groups;
mod operands;
mod patches;

pub use geometry::{Conv2dOptions, Edges, Padding};
pub(super) use geometry::{FARTHEST, Geometry, windows};

use super::inventory::{ANY, Entry, Input, Make, OpKind, one};
use super::matmul::{Columns, Gemm, Product, Sum};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, inferred, same_dtype};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};
use operands::{places_of_windows, windows_of_images, windows_over_places};

impl Tensor {
    /// Convolves images `[N,H,W,C]` with `filters` `[KH,KW,C,O]`; the result has the shape `[N,OH,OW,O]`:
    /// `y[n,i,j,o] = sum over u,v,c of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,o]`.
    ///
    /// Filters `[KH,KW,C/G,O]` define G groups: the first `O/G` filters apply to the first `C/G` channels, and so on. If each
    /// channel is its own group, [`Tensor::depthwise_conv2d`] computes the same faster.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv2dOptions, Padding, Tensor};
    /// let image = Tensor::ones([1, 3, 3, 1])?;
    /// let filter = Tensor::ones([2, 2, 1, 1])?;
    /// let y = image.conv2d(&filter, Conv2dOptions::new().padding(Padding::Same))?;
    /// assert_eq!(y.to_vec::<f32>()?, [4.0, 4.0, 2.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if a rank is not 4, the channels are incompatible, an explicit padding does not
    /// have two pairs, or a stride or dilation is 0; [`Error::DType`](crate::Error::DType) if the dtypes differ or are not
    /// float.
    pub fn conv2d(&self, filters: impl Into<Operand>, options: Conv2dOptions) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like("Conv2D", self)?;
        dispatch(Conv2d { options }, &[self, &filters])
    }
}

#[derive(Debug, Attribute)]
#[op("Conv2D")]
pub(crate) struct Conv2d {
    pub(super) options: Conv2dOptions,
}

impl Op for Conv2d {
    fn name(&self) -> &'static str {
        "Conv2D"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        same_dtype("Conv2D", inputs[0], inputs[1])?;
        expect_dtype("Conv2D", inputs[0], FLOATS)?;
        let g = Geometry::grouped("Conv2D", &inputs[0].shape, &inputs[1].shape, self.options)?;
        Ok(Spec::new(g.out, inputs[0].dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        self.product(cx).variants(self.options.measured_as(self.name(), None), cx.caps)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        groups::lower(self.product(cx), cx)
    }
}

impl Conv2d {
    fn product(&self, cx: &LoweringContext) -> Gemm {
        let g = inferred(Geometry::grouped(
            "Conv2D",
            &cx.inputs[0].shape,
            &cx.inputs[1].shape,
            self.options,
        ));
        let ([_, _, _, c], [kh, kw, cg, o], [n, oh, ow, _]) = (g.image, g.filter, g.out);
        if g.is_product() {
            let size = Product { m: n * oh * ow, k: c, n: o, ..Product::default() };
            return size.gemm("conv2d", cx.output.dtype, cx.caps);
        }
        let (grouped, og) = (g.groups > 1, o / g.groups);
        let singly = Gemm::is_little([g.groups, n * oh * ow, og, kh * kw * cg], cx.caps);
        let in_rows = self.options.dilations[1] == 1 && !grouped;
        let by_row = (singly || c % 4 != 0) && in_rows;
        let vector = !singly && cg % 4 == 0;
        let (sum, v) = if by_row { ([kh, 1, kw * c], 0) } else { ([kh, kw, cg], cg * o) };
        Gemm {
            label: "conv2d",
            dtype: cx.output.dtype,
            result: cx.output.dtype,
            batch: g.groups,
            m: n * oh * ow,
            n: og,
            singly: false,
            sum: Sum::Nest(sum),
            a: windows_of_images(vector, by_row, grouped),
            b: Columns { batch: g.group_stride(og), u: kw * cg * o, v, k: o, n: 1 },
            params: g.params(),
        }
    }
}

impl Operation for Conv2d {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let options = self.options;
        let (x, w) = (&back.spec(0).shape, &back.spec(1).shape);
        back.both(
            &|| dispatch(InputGradient { image: x.clone(), options }, &[back.dy, back.x(1)]),
            &|| dispatch(FilterGradient { filter: w.clone(), options }, &[back.x(0), back.dy]),
        )
    }
}

/// dx[n,y,x,c] = sum over u,v,o of dy[n, (y + top - u*dh) / sh, (x + left - v*dw) / sw, o] * w[u,v,c,o], where the
/// divisions leave no remainder.
#[derive(Debug, Attribute)]
#[op("Conv2DBackpropInput")]
pub(crate) struct InputGradient {
    pub(super) image: Shape,
    pub(super) options: Conv2dOptions,
}

impl Op for InputGradient {
    fn name(&self) -> &'static str {
        "Conv2DBackpropInput"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        let (first, other) = self.ways(cx);
        let of = self.options.measured_as(self.name(), Some(&self.image));
        let mut variants = first.gemm.variants(of, cx.caps);
        // Of the other method, only the variant that the table prefers.
        if let Some(Way { gemm, .. }) = other {
            let more = gemm.variants(String::new(), cx.caps);
            let name = |name: &String| format!("{OTHER_WAY}{name}");
            variants.half.extend(more.half.iter().map(name));
            variants.names.extend(more.names.first().map(name));
            variants.unverified.extend(more.unverified);
            variants.terms = variants.terms.max(more.terms);
        }
        variants
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (first, other) = self.ways(cx);
        let named = cx.variant.and_then(|name| name.strip_prefix(OTHER_WAY));
        match (other, named) {
            (Some(other), Some(_)) => other.lower(&LoweringContext { variant: named, ..*cx }),
            _ => first.lower(cx),
        }
    }
}

/// A method for the input's gradient: one product, or a product that computes patches and a kernel that sums them.
struct Way {
    patches: Option<Geometry>,
    gemm: Gemm,
}

/// The prefix of the names of variants that use the method that the table does not choose.
const OTHER_WAY: &str = "other way, ";

impl Way {
    fn lower(self, cx: &LoweringContext) -> Lowering {
        match self.patches {
            Some(geometry) => patches::input_gradient(&geometry, self.gemm, cx),
            None => groups::lower(self.gemm, cx),
        }
    }
}

impl InputGradient {
    /// The method that the table chooses, and the other one if it is possible.
    fn ways(&self, cx: &LoweringContext) -> (Way, Option<Way>) {
        let g = inferred(Geometry::grouped(
            self.name(),
            &self.image,
            &cx.inputs[1].shape,
            self.options,
        ));
        let ([n, h, w, c], [kh, kw, cg, o], [_, oh, ow, _]) = (g.image, g.filter, g.out);
        let dtype = cx.output.dtype;
        let label = "conv2d_input_gradient";
        let by_o =
            |m: usize, n: usize| Product { m, k: o, n, transpose_b: true, ..Product::default() };
        if g.is_product() {
            return (
                Way { patches: None, gemm: by_o(n * h * w, c).gemm(label, dtype, cx.caps) },
                None,
            );
        }
        let (grouped, og) = (g.groups > 1, o / g.groups);
        let singly = Gemm::is_little([g.groups, n * h * w, cg, kh * kw * og], cx.caps);
        let vector = !singly && og % 4 == 0;
        let direct = Gemm {
            label,
            dtype,
            result: dtype,
            batch: g.groups,
            m: n * h * w,
            n: cg,
            singly: false,
            sum: Sum::Nest([kh, kw, og]),
            a: windows_over_places(vector, self.options.strides == [1, 1], grouped),
            b: Columns { batch: g.group_stride(og), u: kw * cg * o, v: cg * o, k: 1, n: o },
            params: g.params(),
        };
        let direct = Way { patches: None, gemm: direct };
        let given = by_o(n * oh * ow, kh * kw * c);
        if self.options.dilations != [1, 1]
            || grouped
            || given.m * given.n > patches::MOST
            || patches::iterations(&g) > cx.caps.loop_iterations
        {
            return (direct, None);
        }
        let patches = Way { patches: Some(g), gemm: patches::product(&given, dtype, cx.caps) };
        if c < 8 || self.options.strides != [1, 1] {
            (patches, Some(direct))
        } else {
            (direct, Some(patches))
        }
    }
}

impl Operation for InputGradient {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op is linear in dy and in w, as the convolution is in x and w.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (filter, options) = (&back.spec(1).shape, self.options);
        back.both(&|| back.dy.conv2d(back.x(1), options), &|| {
            dispatch(FilterGradient { filter: filter.clone(), options }, &[back.dy, back.x(0)])
        })
    }
}

/// dw[u,v,c,o] = sum over n,i,j of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * dy[n,i,j,o].
#[derive(Debug, Attribute)]
#[op("Conv2DBackpropFilter")]
pub(crate) struct FilterGradient {
    pub(super) filter: Shape,
    pub(super) options: Conv2dOptions,
}

impl Op for FilterGradient {
    fn name(&self) -> &'static str {
        "Conv2DBackpropFilter"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.filter.clone(), inputs[0].dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        let of = self.options.measured_as(self.name(), Some(&self.filter));
        self.product(cx).variants(of, cx.caps)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        groups::lower(self.product(cx), cx)
    }
}

impl FilterGradient {
    fn product(&self, cx: &LoweringContext) -> Gemm {
        let g = inferred(Geometry::grouped(
            self.name(),
            &cx.inputs[0].shape,
            &self.filter,
            self.options,
        ));
        let ([kh, kw, c, o], [n, oh, ow, _]) = (g.filter, g.out);
        let og = o / g.groups;
        if g.is_product() {
            let size =
                Product { m: c, k: n * oh * ow, n: o, transpose_a: true, ..Product::default() };
            return size.gemm("conv2d_filter_gradient", cx.output.dtype, cx.caps);
        }
        let singly = Gemm::is_little([g.groups, kh * kw * c, og, n * oh * ow], cx.caps);
        Gemm {
            label: "conv2d_filter_gradient",
            dtype: cx.output.dtype,
            result: cx.output.dtype,
            batch: g.groups,
            m: kh * kw * c,
            n: og,
            singly: false,
            sum: Sum::Nest([n, oh, ow]),
            a: places_of_windows(!singly && c % 4 == 0, g.groups > 1),
            b: Columns { batch: g.group_stride(og), u: oh * ow * o, v: ow * o, k: o, n: 1 },
            params: g.params(),
        }
    }
}

impl Operation for FilterGradient {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (image, options) = (&back.spec(0).shape, self.options);
        back.both(
            &|| dispatch(InputGradient { image: image.clone(), options }, &[back.x(1), back.dy]),
            &|| back.x(0).conv2d(back.dy, options),
        )
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Kernel, "conv2d", &["tf.nn.conv2d"], |c| {
        let (x, w) = (c.x()?, c.arg("w")?);
        // The shapes determine the number of groups.
        c.remark("groups");
        one(x.conv2d(w, Conv2dOptions::from_args(c)?))
    })
    .cases(|cases| {
        for (padding, strides, dilations) in [
            (Padding::Same, [1, 1], [1, 1]),
            (Padding::Valid, [1, 1], [1, 1]),
            (Padding::Same, [2, 2], [1, 1]),
            (Padding::Valid, [2, 1], [1, 1]),
            (Padding::Same, [1, 1], [2, 2]),
            (Padding::Valid, [1, 1], [1, 2]),
            (Padding::Same, [3, 2], [1, 1]),
        ] {
            let options =
                Conv2dOptions::new().padding(padding).strides(strides).dilations(dilations);
            let name = format!("conv2d {padding:?} strides {strides:?} dilations {dilations:?}");
            let inputs: [Input; 2] = [(&[2, 6, 7, 2], ANY), (&[3, 2, 2, 3], ANY)];
            cases.add(name, &inputs, move |x| x[0].conv2d(&x[1], options));
        }
        let options = Conv2dOptions::new().padding([(3, 0), (1, 4)]).strides([2, 1]);
        cases.add("conv2d padded", &[(&[2, 4, 5, 2], ANY), (&[3, 2, 2, 3], ANY)], move |x| {
            x[0].conv2d(&x[1], options)
        });
        let one = Conv2dOptions::new().padding([(1, 0), (0, 2)]);
        cases.add(
            "conv2d of places, padded",
            &[(&[2, 2, 3, 2], ANY), (&[1, 1, 2, 3], ANY)],
            move |x| x[0].conv2d(&x[1], one),
        );
        // Groups of one channel, of two and of four.
        let same = Conv2dOptions::new().padding(Padding::Same);
        let shapes: [[&'static [usize]; 2]; 4] = [
            [&[2, 4, 5, 3], &[2, 3, 1, 6]],
            [&[2, 4, 5, 6], &[3, 2, 2, 3]],
            [&[1, 4, 5, 8], &[3, 2, 4, 8]],
            [&[1, 4, 5, 4], &[1, 1, 2, 6]],
        ];
        for [image, filter] in shapes {
            for options in [same, same.strides([2, 1]), same.dilations([1, 2])] {
                let name = format!("conv2d by groups {image:?} {filter:?} {options:?}");
                let inputs: [Input; 2] = [(image, ANY), (filter, ANY)];
                cases.add(name, &inputs, move |x| x[0].conv2d(&x[1], options));
            }
        }
    })
    .kernels(&[by_groups])
    .loops(&[|make, n| {
        // Long sums over positions, and over the channels of a group.
        let (x, w) = (make(&[1, 1, n, 4], DType::F32), make(&[1, 3, 2, 2], DType::F32));
        let mut all = gradients_of(&x, &w)?;
        let (x, w) = (make(&[1, 2, 2, n], DType::F32), make(&[1, 2, n / 2, 2], DType::F32));
        all.extend(gradients_of(&x, &w)?);
        Ok(all)
    }])];

/// Groups of two channels, of four, and of four with one filter each.
fn by_groups(make: Make, dtype: DType) -> Result<Vec<Tensor>> {
    let mut all = Vec::new();
    for (image, filter) in
        [([2, 6, 5, 6], [3, 2, 2, 9]), ([2, 6, 5, 8], [2, 2, 4, 8]), ([1, 3, 4, 8], [1, 1, 4, 2])]
    {
        all.extend(gradients_of(&make(&image, dtype), &make(&filter, dtype))?);
    }
    Ok(all)
}

/// A convolution and its gradients.
fn gradients_of(x: &Tensor, w: &Tensor) -> Result<Vec<Tensor>> {
    let options = Conv2dOptions::new().padding(Padding::Same);
    let y = x.conv2d(w, options)?;
    let dx = input_gradient(&x.spec().shape, &y, w, options)?;
    let filter = w.spec().shape.clone();
    let dw = dispatch(FilterGradient { filter, options }, &[x, &y])?;
    Ok(vec![y, dx, dw])
}

/// The gradient of images of shape `image`, which is also the transposed convolution.
pub(super) fn input_gradient(
    image: &Shape,
    dy: &Tensor,
    filters: &Tensor,
    options: Conv2dOptions,
) -> Result<Tensor> {
    dispatch(InputGradient { image: image.clone(), options }, &[dy, filters])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_must_agree() {
        let op = Conv2d { options: Conv2dOptions::default() };
        let spec = |sizes: [usize; 4]| Spec::new(sizes, crate::DType::F32);
        let error = op.infer(&[&spec([1, 5, 5, 3]), &spec([3, 3, 2, 4])]).unwrap_err().to_string();
        assert!(error.starts_with("Conv2D: the images [1, 5, 5, 3] have 3 channels"), "{error}");
    }
}
