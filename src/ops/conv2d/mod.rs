//! Convolves images with filters, and computes the two gradients, as products of gathered patches.
//!
//! y[n,i,j,o] = sum over u,v,c of x[n, i*sh + u*dh - top, j*sw + v*dw - left, c] * w[u,v,c,o]
//! (a cross-correlation, as in TensorFlow). Images are `[N,H,W,C]`, filters `[KH,KW,C,O]`.

mod geometry;
mod operands;
mod patches;

use geometry::explicit_padding;
pub use geometry::{Conv2dOptions, Padding};
pub(super) use geometry::{FARTHEST, Geometry, windows};

use super::inventory::{ANY, Entry, Input, Kind, one};
use super::matmul::{Columns, Gemm, Product, Sum};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, inferred, same_dtype};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::lower::{Lowering, LoweringContext, Variants};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};
use operands::{places_of_windows, windows_of_images, windows_over_places};

impl Tensor {
    /// Convolves images `[N,H,W,C]` with `filters` `[KH,KW,C,O]` to `[N,OH,OW,O]`.
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
    /// [`Error::Shape`](crate::Error::Shape) if a rank is not 4, the channels differ, or a stride or dilation is 0;
    /// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float.
    pub fn conv2d(&self, filters: impl Into<Operand>, options: Conv2dOptions) -> Result<Tensor> {
        let filters = filters.into().beside("Conv2D", self)?;
        dispatch(Conv2d { options }, &[self, &filters])
    }
}

#[derive(Debug, Hash, PartialEq, Eq)]
struct Conv2d {
    options: Conv2dOptions,
}

impl Op for Conv2d {
    fn name(&self) -> &'static str {
        "Conv2D"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        same_dtype("Conv2D", inputs[0], inputs[1])?;
        expect_dtype("Conv2D", inputs[0], FLOATS)?;
        let g = Geometry::new("Conv2D", &inputs[0].shape, &inputs[1].shape, self.options)?;
        Ok(Spec::new(g.out, inputs[0].dtype))
    }

    fn variants(&self, cx: &LoweringContext) -> Variants {
        self.product(cx).variants(self.options.measured_as(self.name(), None), cx.caps)
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        self.product(cx).lower_at(cx)
    }
}

impl Conv2d {
    fn product(&self, cx: &LoweringContext) -> Gemm {
        let g = inferred(Geometry::new(
            "Conv2D",
            &cx.inputs[0].shape,
            &cx.inputs[1].shape,
            self.options,
        ));
        let ([_, _, _, c], [kh, kw, _, o], [n, oh, ow, _]) = (g.image, g.filter, g.out);
        if g.is_product() {
            let size = Product { m: n * oh * ow, k: c, n: o, ..Product::default() };
            return size.gemm("conv2d", cx.output.dtype);
        }
        let by_row = c % 4 != 0 && self.options.dilations[1] == 1;
        let (sum, v) = if by_row { ([kh, 1, kw * c], 0) } else { ([kh, kw, c], c * o) };
        Gemm {
            label: "conv2d",
            dtype: cx.output.dtype,
            result: cx.output.dtype,
            batch: 1,
            m: n * oh * ow,
            n: o,
            sum: Sum::Nest(sum),
            a: windows_of_images(c, by_row),
            b: Columns { batch: 0, u: kw * c * o, v, k: o, n: 1 },
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
#[derive(Debug, Hash, PartialEq, Eq)]
struct InputGradient {
    image: Shape,
    options: Conv2dOptions,
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
        // Of the other way, only the variant that the table prefers.
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

/// A way to compute the input's gradient: as one product, or as a product of patches and a kernel that adds them up.
struct Way {
    patches: Option<Geometry>,
    gemm: Gemm,
}

/// The names of variants that take the other way than the table begin so.
const OTHER_WAY: &str = "other way, ";

impl Way {
    fn lower(self, cx: &LoweringContext) -> Lowering {
        match self.patches {
            Some(geometry) => patches::input_gradient(&geometry, self.gemm, cx),
            None => self.gemm.lower_at(cx),
        }
    }
}

impl InputGradient {
    /// The way that the table takes, and the other one if it is possible.
    fn ways(&self, cx: &LoweringContext) -> (Way, Option<Way>) {
        let g =
            inferred(Geometry::new(self.name(), &self.image, &cx.inputs[1].shape, self.options));
        let ([n, h, w, c], [kh, kw, _, o], [_, oh, ow, _]) = (g.image, g.filter, g.out);
        let dtype = cx.output.dtype;
        let label = "conv2d_input_gradient";
        let by_o =
            |m: usize, n: usize| Product { m, k: o, n, transpose_b: true, ..Product::default() };
        if g.is_product() {
            return (Way { patches: None, gemm: by_o(n * h * w, c).gemm(label, dtype) }, None);
        }
        let direct = Gemm {
            label,
            dtype,
            result: dtype,
            batch: 1,
            m: n * h * w,
            n: c,
            sum: Sum::Nest([kh, kw, o]),
            a: windows_over_places(o % 4 == 0, self.options.strides == [1, 1]),
            b: Columns { batch: 0, u: kw * c * o, v: c * o, k: 1, n: o },
            params: g.params(),
        };
        let direct = Way { patches: None, gemm: direct };
        let given = by_o(n * oh * ow, kh * kw * c);
        if self.options.dilations != [1, 1]
            || given.m * given.n > patches::MOST
            || patches::iterations(&g) > cx.caps.loop_iterations
        {
            return (direct, None);
        }
        let patches = Way { patches: Some(g), gemm: patches::product(&given, dtype) };
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
#[derive(Debug, Hash, PartialEq, Eq)]
struct FilterGradient {
    filter: Shape,
    options: Conv2dOptions,
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
        self.product(cx).lower_at(cx)
    }
}

impl FilterGradient {
    fn product(&self, cx: &LoweringContext) -> Gemm {
        let g =
            inferred(Geometry::new(self.name(), &cx.inputs[0].shape, &self.filter, self.options));
        let ([kh, kw, c, o], [n, oh, ow, _]) = (g.filter, g.out);
        if g.is_product() {
            let size =
                Product { m: c, k: n * oh * ow, n: o, transpose_a: true, ..Product::default() };
            return size.gemm("conv2d_filter_gradient", cx.output.dtype);
        }
        Gemm {
            label: "conv2d_filter_gradient",
            dtype: cx.output.dtype,
            result: cx.output.dtype,
            batch: 1,
            m: kh * kw * c,
            n: o,
            sum: Sum::Nest([n, oh, ow]),
            a: places_of_windows(c),
            b: Columns { batch: 0, u: oh * ow * o, v: ow * o, k: o, n: 1 },
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
    &[Entry::new(Kind::Kernel, "conv2d", &["tf.nn.conv2d"], |c| {
        let Some(pads) = explicit_padding(c)? else {
            return one(c.x()?.conv2d(c.arg("w")?, Conv2dOptions::of(c)?));
        };
        c.composes("explicit padding");
        let padded = c.x()?.pad(&pads)?;
        one(padded.conv2d(c.arg("w")?, Conv2dOptions::of(c)?))
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
    })];

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
