//! Largest and mean values over windows of images `[N,H,W,C]`.
//!
//! A maximum's gradient goes to the first of the largest elements of its window, in row-major order, as in
//! TensorFlow; places that a mean's window reaches outside the image do not count.

use std::hash::{Hash, Hasher};

use super::conv2d::{FARTHEST, Padding, windows};
use super::{Backward, FLOATS, Grads, Keep, Operation, expect_dtype, no_grads, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result};
use crate::graph::lower::{Bind, Kernel, Lowering, Site};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The windows of a pooling, each size as (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pool2dOptions {
    /// The window.
    pub window: [usize; 2],
    /// Steps between windows.
    pub strides: [usize; 2],
    /// How far windows may leave the image.
    pub padding: Padding,
}

impl Default for Pool2dOptions {
    /// Halves the image: windows of 2 x 2, one beside the other.
    fn default() -> Self {
        Pool2dOptions { window: [2, 2], strides: [2, 2], padding: Padding::Valid }
    }
}

impl Tensor {
    /// The largest element of each window; NaN if it holds one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Pool2dOptions, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0, 3.0], [1, 2, 2, 1])?;
    /// assert_eq!(x.max_pool2d(Pool2dOptions::default())?.item::<f32>()?, 5.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 4 or a size is 0; [`Error::DType`] if the dtype is not float.
    pub fn max_pool2d(&self, options: Pool2dOptions) -> Result<Tensor> {
        dispatch(Pool { kind: Kind::Max, options }, &[self])
    }

    /// The mean of the elements of each window that lie in the image.
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    pub fn avg_pool2d(&self, options: Pool2dOptions) -> Result<Tensor> {
        dispatch(Pool { kind: Kind::Average, options }, &[self])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Max,
    /// Where the largest element is: its flat index in the image, as `i32`.
    ArgMax,
    Average,
}

#[derive(Debug, Hash)]
struct Pool {
    kind: Kind,
    options: Pool2dOptions,
}

/// The shape of the windows `[N,OH,OW,C]` and the leading padding.
fn geometry(op: &str, image: &Shape, options: Pool2dOptions) -> Result<([usize; 4], [usize; 2])> {
    let &[n, h, w, c] = &image[..] else {
        return Err(Error::Shape(format!(
            "{op}: the images are {image}; they need the four axes [N,H,W,C]. Use expand_dims or reshape."
        )));
    };
    let ([kh, kw], [sh, sw]) = (options.window, options.strides);
    if [kh, kw, sh, sw].iter().any(|n| !(1..=FARTHEST).contains(n)) {
        return Err(Error::Shape(format!(
            "{op}: the window {:?} and the strides {:?} must all be in 1 to {FARTHEST}.",
            options.window, options.strides
        )));
    }
    let (oh, top) = windows(h, kh, sh, 1, options.padding);
    let (ow, left) = windows(w, kw, sw, 1, options.padding);
    Ok(([n, oh, ow, c], [top, left]))
}

/// The kernel of `body`, which computes one element of an output of `total`.
fn kernel(
    label: &'static str,
    body: &str,
    image: &Shape,
    options: Pool2dOptions,
    total: usize,
) -> Kernel {
    let ([_, oh, ow, c], [top, left]) = geometry(label, image, options).expect("infer has agreed");
    Kernel::new(label, include_str!("../../shaders/pool.wgsl"))
        .constant("WG", 64)
        .declare(body)
        .param("total", total)
        .param("h", image[1])
        .param("w", image[2])
        .param("c", c)
        .param("oh", oh)
        .param("ow", ow)
        .param("kh", options.window[0])
        .param("kw", options.window[1])
        .param("sh", options.strides[0])
        .param("sw", options.strides[1])
        .param("top", top)
        .param("left", left)
        .groups(total.div_ceil(64))
}

/// Walks the window of output element e and ends with `finish`.
fn over_window(first: &str, visit: &str, finish: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read> x: array<T>;\n\
         @group(0) @binding(1) var<storage, read_write> y: array<Y>;\n\
         @group(0) @binding(2) var<uniform> p: Params;\n\
         fn pool(e: u32) {{\n    \
         let c = e % p.c;\n    \
         let rows = reach((e / (p.c * p.ow)) % p.oh, p.sh, p.top, p.kh, p.h);\n    \
         let columns = reach((e / p.c) % p.ow, p.sw, p.left, p.kw, p.w);\n    \
         let image = e / (p.c * p.ow * p.oh) * p.h * p.w * p.c;\n    \
         {first}\n    \
         for (var i = rows.x; i < rows.y; i++) {{\n        \
         for (var j = columns.x; j < columns.y; j++) {{\n            \
         let at = image + (i * p.w + j) * p.c + c;\n            \
         let v = f32(x[at]);\n            \
         {visit}\n        \
         }}\n    }}\n    \
         {finish}\n}}"
    )
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Max => "MaxPool",
            Kind::ArgMax => "MaxPoolWithArgmax",
            Kind::Average => "AvgPool",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        expect_dtype(self.name(), inputs[0], FLOATS)?;
        let (shape, _) = geometry(self.name(), &inputs[0].shape, self.options)?;
        let dtype = if self.kind == Kind::ArgMax { DType::I32 } else { inputs[0].dtype };
        Ok(Spec::new(shape, dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        // NaN wins, and once it has won it stays.
        let better = "if (at == first || v > best || (is_nan(v) && !is_nan(best))) { best = v; place = at; }";
        let start = "var best = -inf();\n    var place = 0u;\n    \
             let first = image + (rows.x * p.w + columns.x) * p.c + c;";
        let (label, body) = match self.kind {
            Kind::Max => ("max_pool", over_window(start, better, "y[e] = Y(best);")),
            Kind::ArgMax => ("max_pool_argmax", over_window(start, better, "y[e] = i32(place);")),
            Kind::Average => (
                "avg_pool",
                over_window(
                    "var sum = 0.0;",
                    "sum += v;",
                    "y[e] = Y(sum / f32((rows.y - rows.x) * (columns.y - columns.x)));",
                ),
            ),
        };
        kernel(label, &body, &site.inputs[0].shape, self.options, site.output.elements())
            .alias("T", site.inputs[0].dtype)
            .alias("Y", site.output.dtype)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .into()
    }
}

impl Operation for Pool {
    fn keep(&self) -> Keep {
        match self.kind {
            Kind::Max => Keep::Inputs,
            Kind::ArgMax => Keep::NoGradient("MaxPoolWithArgmax: an index"),
            Kind::Average => Keep::Nothing,
        }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (image, options) = (back.specs[0].shape.clone(), self.options);
        match self.kind {
            Kind::Max => {
                let places = dispatch(Pool { kind: Kind::ArgMax, options }, &[back.x(0)])?;
                only(dispatch(MaxPoolGrad { image, options }, &[back.dy, &places])?)
            }
            Kind::Average => only(dispatch(AvgPoolGrad { image, options }, &[back.dy])?),
            Kind::ArgMax => no_grads(back),
        }
    }
}

/// Walks the windows that hold element e of the image and adds up `term`.
fn over_holders(bindings: &str, term: &str) -> String {
    format!(
        "{bindings}\n\
         fn pool(e: u32) {{\n    \
         let c = e % p.c;\n    \
         let rows = holders((e / (p.c * p.w)) % p.h, p.sh, p.top, p.kh, p.oh);\n    \
         let columns = holders((e / p.c) % p.w, p.sw, p.left, p.kw, p.ow);\n    \
         let image = e / (p.c * p.w * p.h) * p.oh * p.ow * p.c;\n    \
         var sum = 0.0;\n    \
         for (var i = rows.x; i < rows.y; i++) {{\n        \
         for (var j = columns.x; j < columns.y; j++) {{\n            \
         let at = image + (i * p.ow + j) * p.c + c;\n            \
         {term}\n        \
         }}\n    }}\n    \
         y[e] = T(sum);\n}}"
    )
}

/// dx[e] = sum of dy over the windows whose largest element is e.
#[derive(Debug, Hash)]
struct MaxPoolGrad {
    image: Shape,
    options: Pool2dOptions,
}

impl Op for MaxPoolGrad {
    fn name(&self) -> &'static str {
        "MaxPoolGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let body = over_holders(
            "@group(0) @binding(0) var<storage, read> dy: array<T>;\n\
             @group(0) @binding(1) var<storage, read> places: array<i32>;\n\
             @group(0) @binding(2) var<storage, read_write> y: array<T>;\n\
             @group(0) @binding(3) var<uniform> p: Params;",
            "if (u32(places[at]) == e) { sum += f32(dy[at]); }",
        );
        kernel("max_pool_grad", &body, &self.image, self.options, site.output.elements())
            .alias("T", site.output.dtype)
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .write(Bind::Output)
            .into()
    }
}

impl Operation for MaxPoolGrad {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op moves dy to places, so its gradient picks those places.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let elements = self.image.elements();
        let picked = back.dy.reshape_to([elements].into())?.gather(back.x(1), 0)?;
        Ok(smallvec::smallvec![Some(picked), None])
    }
}

/// dx[e] = sum of dy / count over the windows that hold e.
#[derive(Debug, Hash)]
struct AvgPoolGrad {
    image: Shape,
    options: Pool2dOptions,
}

impl Op for AvgPoolGrad {
    fn name(&self) -> &'static str {
        "AvgPoolGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.image.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        let body = over_holders(
            "@group(0) @binding(0) var<storage, read> dy: array<T>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<T>;\n\
             @group(0) @binding(2) var<uniform> p: Params;",
            "let high = reach(i, p.sh, p.top, p.kh, p.h);\n            \
             let wide = reach(j, p.sw, p.left, p.kw, p.w);\n            \
             sum += f32(dy[at]) / f32((high.y - high.x) * (wide.y - wide.x));",
        );
        kernel("avg_pool_grad", &body, &self.image, self.options, site.output.elements())
            .alias("T", site.output.dtype)
            .read(Bind::Input(0))
            .write(Bind::Output)
            .into()
    }
}

impl Operation for AvgPoolGrad {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(back.dy.avg_pool2d(self.options)?)
    }
}
