//! Max and average pooling of images `[N,H,W,C]`.
//!
//! A maximum's gradient goes to the first of the largest elements of its window, in row-major order, as in TensorFlow;
//! a mean counts only the positions of its window that are inside the image.

mod adaptive;
mod geometry;
mod kernels;
mod ranks;

pub(super) use adaptive::ENTRIES as ADAPTIVE;
pub use geometry::Pool2dOptions;
pub(super) use ranks::ENTRIES as RANKS;
pub use ranks::{MaxPoolWithArgmaxOptions, Pool1dOptions, Pool3dOptions, PoolOptions, PoolingType};

use super::conv2d::Padding;
use super::inventory::{self, ANY, Answer, Args, Cases, Entry, Values, one};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, no_grads, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use geometry::{Windows, geometry};
use kernels::{Form, MEAN, WINDOW, sum_over_holders};

impl Tensor {
    /// The largest element of each window of (rows, columns); NaN if the window contains NaN.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Pool2dOptions, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0, 3.0], [1, 2, 2, 1])?;
    /// assert_eq!(x.max_pool2d([2, 2], Pool2dOptions::new())?.item::<f32>()?, 5.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the rank is not 4 or a size is 0; [`Error::DType`](crate::Error::DType) if the dtype is not float.
    pub fn max_pool2d(&self, window: [usize; 2], options: Pool2dOptions) -> Result<Tensor> {
        dispatch(Pool { kind: PoolKind::Max, options: Windows::new(window, options) }, &[self])
    }

    /// The mean of the elements of each window that are inside the image. The mean of whole images is
    /// `x.reduce_mean([1, 2])`.
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    pub fn avg_pool2d(&self, window: [usize; 2], options: Pool2dOptions) -> Result<Tensor> {
        dispatch(Pool { kind: PoolKind::Average, options: Windows::new(window, options) }, &[self])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(super) enum PoolKind {
    Max,
    /// The index of the largest element: its flat index in the image, as `i32`.
    ArgMax,
    Average,
}

#[derive(Debug, Attribute)]
#[op("Pool")]
pub(crate) struct Pool {
    pub(super) kind: PoolKind,
    pub(super) options: Windows,
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        match self.kind {
            PoolKind::Max => "MaxPool",
            PoolKind::ArgMax => "MaxPoolWithArgmax",
            PoolKind::Average => "AvgPool",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype(self.name(), inputs[0], FLOATS)?;
        let (shape, _) = geometry(self.name(), &inputs[0].shape, self.options)?;
        let dtype = if self.kind == PoolKind::ArgMax { DType::I32 } else { inputs[0].dtype };
        Ok(Spec::new(shape, dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (x, [kh, kw]) = (cx.inputs[0], self.options.window);
        let sizes = [kh.min(x.shape[1]), kw.min(x.shape[2])];
        let label = match self.kind {
            PoolKind::Max => "max_pool",
            PoolKind::ArgMax => "max_pool_argmax",
            PoolKind::Average => "avg_pool",
        };
        let form = Form::new(label, &x.shape, self.options, cx, sizes);
        let inputs = [("x", x.dtype, Bind::Input(0))];
        let visit = |v: &str| {
            format!(
                "let at = image + (i * p.w + j) * p.c;\n    \
                 let v = load_x(at);\n    {v}"
            )
        };
        match self.kind {
            PoolKind::Max => {
                let (first, better) = ("var best = V(-inf());", "best = max_4(best, v);");
                let body = form.over(WINDOW, first, &visit(better), "return best;");
                form.lower(&body, &inputs, DType::F32, |form| {
                    let better = "best = max_4(best, load_x(at));";
                    let body = form.over_parts(first, better, "return best;");
                    form.kernel(&body, &[("x", DType::F32, Bind::Temp(0))], None)
                })
            }
            PoolKind::ArgMax => {
                // NaN is better than any number, and is never replaced.
                let better = "let better = (v > best) | (is_nan_4(v) & !is_nan_4(best));\n    \
                     best = select(best, v, better);\n    \
                     place = select(place, other, better);";
                let first = "var best = vec4<f32>(-inf());\n    \
                     var place = vec4<u32>(image + (rows.x * p.w + columns.x) * p.c) + LANES;";
                let here = format!("let other = vec4<u32>(at) + LANES;\n    {better}");
                let body = form.over(WINDOW, first, &visit(&here), "return V(place);");
                form.lower(&body, &inputs, DType::I32, |form| {
                    // Each of the four positions is in its own lane.
                    let there = format!(
                        "let other = vec4<u32>(load_places(at));\n    \
                         let v = vec4<f32>(load_x(other.x).x, load_x(other.y).y, load_x(other.z).z, load_x(other.w).w);\n    \
                         {better}"
                    );
                    let body = form.over_parts(first, &there, "return V(place);");
                    let places = ("places", DType::I32, Bind::Temp(0));
                    form.kernel(&body, &[inputs[0], places], None)
                })
            }
            PoolKind::Average => {
                let first = "var sum = V(0.0);";
                let finish = if form.parts == 1 { MEAN } else { "return sum;" };
                let body = form.over(WINDOW, first, &visit("sum += v;"), finish);
                form.lower(&body, &inputs, DType::F32, |form| {
                    let body = form.over_parts(first, "sum += load_x(at);", MEAN);
                    form.kernel(&body, &[("x", DType::F32, Bind::Temp(0))], None)
                })
            }
        }
    }
}

impl Operation for Pool {
    fn keep(&self) -> Keep {
        match self.kind {
            PoolKind::Max => Keep::Inputs,
            PoolKind::ArgMax => Keep::NoGradient("MaxPoolWithArgmax: an index"),
            PoolKind::Average => Keep::Nothing,
        }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (image, options) = (back.spec(0).shape.clone(), self.options);
        match self.kind {
            PoolKind::Max => {
                let places = dispatch(Pool { kind: PoolKind::ArgMax, options }, &[back.x(0)])?;
                only(dispatch(MaxPoolGrad { image, options }, &[back.dy, &places])?)
            }
            PoolKind::Average => only(dispatch(AvgPoolGrad { image, options }, &[back.dy])?),
            PoolKind::ArgMax => no_grads(back),
        }
    }
}

/// dx[e] = sum of dy over the windows whose largest element is e.
#[derive(Debug, Attribute)]
#[op("MaxPoolGrad")]
pub(crate) struct MaxPoolGrad {
    pub(super) image: Shape,
    pub(super) options: Windows,
}

impl Op for MaxPoolGrad {
    fn name(&self) -> &'static str {
        "MaxPoolGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let term = "let here = vec4<u32>(load_places(at)) == vec4<u32>(e) + LANES;\n    \
             sum += select(V(0.0), load_dy(at), here);";
        let dy = ("dy", cx.inputs[0].dtype, Bind::Input(0));
        let inputs = [dy, ("places", DType::I32, Bind::Input(1))];
        sum_over_holders("max_pool_grad", &self.image, self.options, cx, &inputs, term)
    }
}

impl Operation for MaxPoolGrad {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op moves dy to positions, so its gradient reads those positions.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(dispatch(MaxPoolPick { options: self.options }, &[back.dy, back.x(1)])?)
    }
}

/// y[e] = x[index of the largest element of window e].
#[derive(Debug, Attribute)]
#[op("MaxPoolPick")]
pub(crate) struct MaxPoolPick {
    pub(super) options: Windows,
}

impl Op for MaxPoolPick {
    fn name(&self) -> &'static str {
        "MaxPoolGradGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(inputs[1].shape.clone(), inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        // The four positions belong to four neighbouring channels, so each is in its own lane.
        let body = "fn pool(e: u32) -> V {\n    \
             let at = vec4<u32>(load_places(e));\n    \
             return V(load_x(at.x).x, load_x(at.y).y, load_x(at.z).z, load_x(at.w).w);\n}";
        let x = cx.inputs[0];
        let places = ("places", DType::I32, Bind::Input(1));
        let form = Form::new("max_pool_pick", &x.shape, self.options, cx, [0, 0]);
        form.kernel(body, &[("x", x.dtype, Bind::Input(0)), places], None).into()
    }
}

impl Operation for MaxPoolPick {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (image, options) = (back.spec(0).shape.clone(), self.options);
        only(dispatch(MaxPoolGrad { image, options }, &[back.dy, back.x(1)])?)
    }
}

/// dx[e] = sum of dy / count over the windows that contain e.
#[derive(Debug, Attribute)]
#[op("AvgPoolGrad")]
pub(crate) struct AvgPoolGrad {
    pub(super) image: Shape,
    pub(super) options: Windows,
}

impl Op for AvgPoolGrad {
    fn name(&self) -> &'static str {
        "AvgPoolGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let term = "let high = reach(i, p.sh, p.top, p.kh, p.h);\n    \
             let wide = reach(j, p.sw, p.left, p.kw, p.w);\n    \
             sum += load_dy(at) / f32((high.y - high.x) * (wide.y - wide.x));";
        let inputs = [("dy", cx.inputs[0].dtype, Bind::Input(0))];
        sum_over_holders("avg_pool_grad", &self.image, self.options, cx, &inputs, term)
    }
}

impl Operation for AvgPoolGrad {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(dispatch(Pool { kind: PoolKind::Average, options: self.options }, &[back.dy])?)
    }
}

/// The options of a call by name.
fn options_of(c: &Args) -> Answer<([usize; 2], Pool2dOptions)> {
    let window = c.need("ksize", c.two("ksize")?)?;
    let strides = c.need("strides", c.two("strides")?)?;
    Ok((window, Pool2dOptions::new().strides(strides).padding(Padding::from_args(c)?)))
}

fn windows_of_cases(
    cases: &mut Cases,
    name: &str,
    values: Values,
    f: fn(&Tensor, [usize; 2], Pool2dOptions) -> Result<Tensor>,
) {
    for (padding, window, strides) in [
        (Padding::Valid, [2, 2], [2, 2]),
        (Padding::Same, [2, 2], [2, 2]),
        (Padding::Same, [3, 3], [2, 2]),
        (Padding::Valid, [3, 2], [1, 2]),
        (Padding::Same, [3, 3], [1, 1]),
    ] {
        let options = Pool2dOptions::new().strides(strides).padding(padding);
        let name = format!("{name} {padding:?} {window:?} strides {strides:?}");
        cases.add(name, &[(&[1, 5, 5, 2], values)], move |x| f(&x[0], window, options));
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(inventory::OpKind::Kernel, "max_pool2d", &["tf.nn.max_pool2d"], |c| {
        let (window, options) = options_of(c)?;
        one(c.x()?.max_pool2d(window, options))
    })
    .cases(|cases| {
        windows_of_cases(cases, "max_pool2d", Values::Distinct(0.0), |x, window, options| {
            x.max_pool2d(window, options)
        });
    }),
    Entry::new(inventory::OpKind::Kernel, "avg_pool2d", &["tf.nn.avg_pool2d"], |c| {
        let (window, options) = options_of(c)?;
        one(c.x()?.avg_pool2d(window, options))
    })
    .cases(|cases| {
        windows_of_cases(cases, "avg_pool2d", ANY, |x, window, options| {
            x.avg_pool2d(window, options)
        })
    }),
];
