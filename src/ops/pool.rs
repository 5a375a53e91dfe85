//! Largest and mean values over windows of images `[N,H,W,C]`.
//!
//! A maximum's gradient goes to the first of the largest elements of its window, in row-major order, as in
//! TensorFlow; places that a mean's window reaches outside the image do not count.

use std::hash::{Hash, Hasher};

use super::conv2d::{FARTHEST, Padding, windows};
use super::{Backward, FLOATS, Grads, Keep, Operation, agreed, expect_dtype, no_grads, only};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::lower::{Bind, Kernel, Lowering, Site};
use crate::graph::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::wgsl::shader;

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
        return Err(Error::Shape(message!(
            "{op}: the images are {image}; they need the four axes [N,H,W,C]. Use expand_dims or reshape."
        )));
    };
    let ([kh, kw], [sh, sw]) = (options.window, options.strides);
    if [kh, kw, sh, sw].iter().any(|n| !(1..=FARTHEST).contains(n)) {
        return Err(Error::Shape(message!(
            "{op}: the window {:?} and the strides {:?} must all be in 1 to {FARTHEST}.",
            options.window,
            options.strides
        )));
    }
    let (oh, top) = windows(h, kh, sh, 1, options.padding);
    let (ow, left) = windows(w, kw, sw, 1, options.padding);
    Ok(([n, oh, ow, c], [top, left]))
}

/// The kernel of `body`, which computes four elements of `output` from those of `inputs`, given by name.
fn kernel(
    label: &'static str,
    body: &str,
    image: &Shape,
    options: Pool2dOptions,
    inputs: &[(&str, DType)],
    output: &Spec,
) -> Kernel {
    let ([_, oh, ow, c], [top, left]) = agreed(geometry(label, image, options));
    let total = output.elements();
    let mut kernel = Kernel::new(label, shader!(include_str!("../../shaders/pool.wgsl")))
        .alias("Out", output.dtype)
        .constant("WG", 64)
        .declare(if output.dtype == DType::I32 {
            "alias V = vec4<i32>;"
        } else {
            "alias V = vec4<f32>;"
        });
    // Four channels of a place lie together, or each element is computed for itself.
    let vector = c.is_multiple_of(4);
    kernel = kernel.declare(if vector {
        "const LANES = vec4<u32>(0u, 1u, 2u, 3u);\n\
         fn four(e: u32) -> V { return pool(e); }"
    } else {
        "const LANES = vec4<u32>(0u);\n\
         fn four(e: u32) -> V {\n    \
         let last = p.total - 1u;\n    \
         return V(pool(e).x, pool(min(e + 1u, last)).x, pool(min(e + 2u, last)).x, pool(min(e + 3u, last)).x);\n}"
    });
    for (i, (name, dtype)) in inputs.iter().enumerate() {
        let stored = if *dtype == DType::I32 { "i32" } else { "f32" };
        let element = format!("T{i}");
        kernel = kernel.alias(&element, *dtype).read(Bind::Input(i)).declare(if vector {
            format!(
                "@group(0) @binding({i}) var<storage, read> {name}: array<vec4<{element}>>;\n\
                 fn load_{name}(at: u32) -> vec4<{stored}> {{ return vec4<{stored}>({name}[at / 4u]); }}"
            )
        } else {
            format!(
                "@group(0) @binding({i}) var<storage, read> {name}: array<{element}>;\n\
                 fn load_{name}(at: u32) -> vec4<{stored}> {{ return vec4<{stored}>({stored}({name}[at])); }}"
            )
        });
    }
    kernel
        .stores()
        .declare(format!("@group(0) @binding({}) var<uniform> p: Params;", inputs.len() + 1))
        .declare(body)
        .write(Bind::Output)
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
        .groups(total.div_ceil(4 * 64))
}

/// Walks the window of output element e and ends with `finish`.
fn over_window(first: &str, visit: &str, finish: &str) -> String {
    format!(
        "fn pool(e: u32) -> V {{\n    \
         let c = e % p.c;\n    \
         let window = e / p.c;\n    \
         let rows = reach((window / p.ow) % p.oh, p.sh, p.top, p.kh, p.h);\n    \
         let columns = reach(window % p.ow, p.sw, p.left, p.kw, p.w);\n    \
         let image = window / (p.ow * p.oh) * p.h * p.w * p.c + c;\n    \
         {first}\n    \
         for (var i = rows.x; i < rows.y; i++) {{\n        \
         for (var j = columns.x; j < columns.y; j++) {{\n            \
         let at = image + (i * p.w + j) * p.c;\n            \
         let v = load_x(at);\n            \
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
        let (label, body) = match self.kind {
            Kind::Max => (
                "max_pool",
                over_window("var best = V(-inf());", "best = max_4(best, v);", "return best;"),
            ),
            Kind::ArgMax => (
                "max_pool_argmax",
                over_window(
                    "var best = vec4<f32>(-inf());\n    \
                     var place = vec4<u32>(image + (rows.x * p.w + columns.x) * p.c) + LANES;",
                    // NaN wins, and once it has won it stays.
                    "let better = (v > best) | (is_nan_4(v) & !is_nan_4(best));\n            \
                     best = select(best, v, better);\n            \
                     place = select(place, vec4<u32>(at) + LANES, better);",
                    "return V(place);",
                ),
            ),
            Kind::Average => (
                "avg_pool",
                over_window(
                    "var sum = V(0.0);",
                    "sum += v;",
                    "return sum / f32((rows.y - rows.x) * (columns.y - columns.x));",
                ),
            ),
        };
        let inputs = [("x", site.inputs[0].dtype)];
        kernel(label, &body, &site.inputs[0].shape, self.options, &inputs, site.output).into()
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
        let (image, options) = (back.spec(0).shape.clone(), self.options);
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
fn over_holders(term: &str) -> String {
    format!(
        "fn pool(e: u32) -> V {{\n    \
         let c = e % p.c;\n    \
         let pixel = e / p.c;\n    \
         let rows = holders((pixel / p.w) % p.h, p.sh, p.top, p.kh, p.oh);\n    \
         let columns = holders(pixel % p.w, p.sw, p.left, p.kw, p.ow);\n    \
         let image = pixel / (p.w * p.h) * p.oh * p.ow * p.c + c;\n    \
         var sum = V(0.0);\n    \
         for (var i = rows.x; i < rows.y; i++) {{\n        \
         for (var j = columns.x; j < columns.y; j++) {{\n            \
         let at = image + (i * p.ow + j) * p.c;\n            \
         {term}\n        \
         }}\n    }}\n    \
         return sum;\n}}"
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
            "let here = vec4<u32>(load_places(at)) == vec4<u32>(e) + LANES;\n            \
             sum += select(V(0.0), load_dy(at), here);",
        );
        let inputs = [("dy", site.inputs[0].dtype), ("places", DType::I32)];
        kernel("max_pool_grad", &body, &self.image, self.options, &inputs, site.output).into()
    }
}

impl Operation for MaxPoolGrad {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // The op moves dy to places, so its gradient picks those places.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(dispatch(MaxPoolPick { options: self.options }, &[back.dy, back.x(1)])?)
    }
}

/// y[e] = x[place of the largest element of window e].
#[derive(Debug, Hash)]
struct MaxPoolPick {
    options: Pool2dOptions,
}

impl Op for MaxPoolPick {
    fn name(&self) -> &'static str {
        "MaxPoolGradGrad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(inputs[1].shape.clone(), inputs[0].dtype))
    }

    fn attributes(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn lower(&self, site: &Site) -> Lowering {
        // The four places have the four channels that lie together, so each is where its lane is.
        let body = "fn pool(e: u32) -> V {\n    \
             let at = vec4<u32>(load_places(e));\n    \
             return V(load_x(at.x).x, load_x(at.y).y, load_x(at.z).z, load_x(at.w).w);\n}";
        let (x, inputs) = (site.inputs[0], [("x", site.inputs[0].dtype), ("places", DType::I32)]);
        kernel("max_pool_pick", body, &x.shape, self.options, &inputs, site.output).into()
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
            "let high = reach(i, p.sh, p.top, p.kh, p.h);\n            \
             let wide = reach(j, p.sw, p.left, p.kw, p.w);\n            \
             sum += load_dy(at) / f32((high.y - high.x) * (wide.y - wide.x));",
        );
        let inputs = [("dy", site.inputs[0].dtype)];
        kernel("avg_pool_grad", &body, &self.image, self.options, &inputs, site.output).into()
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
