//! Reads pixels at positions given by tensors: the kernel of crops and transforms.
//!
//! y[m,p,c] = image index[m] at row places[m,p,0] and column places[m,p,1], channel c

use super::super::{Backward, Grads, Keep, Operation, concat, expect_dtype, select, stack};
use super::sizes;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::shape::{Shape, broadcast};
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};

/// How to interpolate a value between pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Attribute)]
#[non_exhaustive]
pub enum Interpolation {
    /// The four surrounding pixels, weighted by distance.
    #[default]
    Bilinear,
    /// The nearest pixel.
    Nearest,
}

/// The dtypes of images.
pub(super) const PIXELS: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8];

/// Images to read from.
pub(super) struct Source {
    /// `[N,H,W,C]`.
    pub(super) images: Tensor,
    pub(super) h: usize,
    pub(super) w: usize,
}

impl Source {
    /// Images as numbers of `dtype`, which is `f32` for interpolation, and never bytes.
    pub(super) fn new(op: &str, images: &Tensor, dtype: DType) -> Result<Self> {
        expect_dtype(op, images.spec(), PIXELS)?;
        let [n, h, w, c] = sizes(op, images)?;
        let places = n.checked_mul(h).and_then(|rows| rows.checked_mul(w));
        if places.is_none_or(|places| h == 0 || w == 0 || places >= 1 << 31) {
            return Err(Error::Shape(message!(
                "{op}: the images are {:?}; there must be 1 to 2147483647 pixels to read.",
                images.shape()
            )));
        }
        let images = images.cast(dtype)?.reshape_to([n, h, w, c].into())?;
        Ok(Source { images, h, w })
    }

    /// The values `[M,h,w,C]` of the images `index` `[M]` at positions `[M,h,w]`, to which rows and columns broadcast;
    /// `outside` (the bits of a number) where there is no pixel.
    pub(super) fn at(
        &self,
        index: &Tensor,
        [rows, columns]: [&Tensor; 2],
        read: Read,
    ) -> Result<Tensor> {
        let shape = broadcast("Sample", &rows.spec().shape, &columns.spec().shape)?;
        let &[m, h, w] = &shape[..] else {
            unreachable!("places have three axes");
        };
        let flat = |x: &Tensor| x.broadcast_to(&shape)?.reshape_to([m, h * w].into());
        // As one tensor they need only one of the adapter's bindings.
        let places = stack([flat(rows)?, flat(columns)?], -1)?;
        let values = dispatch(read, &[&self.images, index, &places])?;
        values.reshape_to([m, h, w, self.images.shape()[3]].into())
    }
}

/// The inputs are images `[N,H,W,C]`, indices `[M]`, rows and columns `[M,P,2]`.
#[derive(Debug, Clone, Copy, Attribute)]
#[op("ImageSample")]
pub(crate) struct Read {
    pub(super) how: Interpolation,
    /// Whether a position exactly on a pixel returns that pixel, with a derivative of 0; otherwise it is interpolated
    /// with the next pixel.
    pub(super) edged: bool,
    /// The bits of the value outside the images.
    pub(super) outside: u32,
}

impl Op for Read {
    fn name(&self) -> &'static str {
        "Sample"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (images, places) = (inputs[0], &inputs[2].shape);
        Ok(Spec::new([places[0], places[1], images.shape[3]], images.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (x, places) = (cx.inputs[0], cx.inputs[2]);
        let c = x.shape[3];
        let (vector, lanes) = (c.is_multiple_of(4), c.clamp(1, 4));
        let groups = c.div_ceil(4).max(1);
        let threads = places.shape[0] * places.shape[1] * groups;
        let scalar = x.dtype.register().scalar();
        let load = match (vector, lanes) {
            (true, _) => "V(x[at / 4u])",
            (_, 1) => "V(vec4<T>(x[at], 0, 0, 0))",
            (_, 2) => "V(vec4<T>(x[at], x[at + 1u], 0, 0))",
            (_, 3) => "V(vec4<T>(x[at], x[at + 1u], x[at + 2u], 0))",
            _ => {
                "V(vec4<T>(x[at], x[min(at + 1u, p.last)], x[min(at + 2u, p.last)], x[min(at + 3u, p.last)]))"
            }
        };
        let file = shader!(include_str!("../../../shaders/sample.wgsl"));
        let bilinear = self.how == Interpolation::Bilinear;
        Kernel::new("sample", "")
            .alias("T", x.dtype)
            .declare(format!("alias V = vec4<{scalar}>;"))
            .declare(format!(
                "@group(0) @binding(0) var<storage, read> x: array<{}>;",
                if vector { "vec4<T>" } else { "T" }
            ))
            .declare(format!("fn load(at: u32) -> V {{ return {load}; }}"))
            .declare(format!("fn outside() -> V {{ return V(bitcast<{scalar}>(p.outside)); }}"))
            .declare(expand(file, &[], &[("BILINEAR", bilinear), ("EDGED", self.edged)]))
            .constant("WG", 64)
            .constant("LANES", lanes as u32)
            .stores()
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .read(Bind::Input(2))
            .write(Bind::Output)
            .param("n", x.shape[0])
            .param("h", x.shape[1])
            .param("w", x.shape[2])
            .param("c", c)
            .param("places", places.shape[1])
            .param("groups", groups)
            .param("last", x.elements().saturating_sub(1))
            .param("outside", self.outside as usize)
            .param("threads", threads)
            .workgroups(threads.div_ceil(64), 0)
            .into()
    }
}

/// One call, for its gradient: the kernel's computation, expressed with ops.
struct Places<'a> {
    images: &'a Tensor,
    index: Tensor,
    outside: Tensor,
}

impl Places<'_> {
    /// The flat indices of the pixels at whole rows and columns, and which of them exist.
    fn find(&self, row: &Tensor, column: &Tensor) -> Result<[Tensor; 2]> {
        let &[n, h, w, _] = self.images.shape() else {
            unreachable!("a source has four axes");
        };
        // The test uses the original numbers, because the indices are clipped to the image.
        let inside = |v: &Tensor, size: usize| v.greater_equal(0)?.logical_and(v.less(size)?);
        let known = inside(row, h)?.logical_and(inside(column, w)?)?;
        let known = known.logical_and(inside(&self.index, n)?)?;
        let whole = |v: &Tensor, size: usize| {
            v.maximum(0)?.minimum(size.saturating_sub(1))?.cast(DType::I32)
        };
        let line = whole(&self.index, n)?.multiply(h)?.add(whole(row, h)?)?;
        Ok([line.multiply(w)?.add(whole(column, w)?)?, known])
    }

    /// `[M,P,C]`.
    fn pixels(&self, row: &Tensor, column: &Tensor) -> Result<Tensor> {
        let [at, known] = self.find(row, column)?;
        let shape = self.images.shape();
        let flat = self.images.reshape_to([shape[0] * shape[1] * shape[2], shape[3]].into())?;
        select(&known.expand_dims(-1)?, &flat.gather(&at, 0)?, &self.outside)
    }

    /// The gradient of the images: `dy` added to the pixels with these weights.
    fn spread(&self, dy: &Tensor, corners: &[[Tensor; 3]]) -> Result<Tensor> {
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let (count, c) = (dy.shape()[0] * dy.shape()[1], dy.shape()[2]);
        for [row, column, weight] in corners {
            let [at, known] = self.find(row, column)?;
            let at = select(&known, &at, &at.zeros_like()?.subtract(1)?)?;
            ids.push(at.reshape_to([count].into())?);
            let part = dy.multiply(weight.expand_dims(-1)?.cast(dy.dtype())?)?;
            rows.push(part.reshape_to([count, c].into())?);
        }
        let shape = self.images.shape();
        let all = shape[0] * shape[1] * shape[2];
        let sums = concat(&rows, 0)?.unsorted_segment_sum(&concat(&ids, 0)?, all)?;
        sums.reshape_to(shape.into())
    }
}

impl Operation for Read {
    fn keep(&self) -> Keep {
        Keep::Inputs
    }

    // A pixel's gradient is dy times its weights at all positions; a position's gradient is dy times the slope between
    // the pixels around it.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (images, index) = (back.x(0), back.x(1));
        let &[m, p, _] = back.x(2).shape() else {
            unreachable!("places are pairs");
        };
        let part = |k: usize| back.x(2).slice(&[0, 0, k], &[-1, -1, 1])?.reshape_to([m, p].into());
        let (y, x) = (&part(0)?, &part(1)?);
        let own = images.dtype();
        let bits = if own.is_float() { f32::from_bits(self.outside).into() } else { 0.into() };
        let outside = super::super::fill(images.device(), "Sample", Shape::default(), bits, own)?;
        let places = Places { images, index: index.expand_dims(-1)?, outside };
        let mut grads = Grads::new();
        if self.how == Interpolation::Nearest {
            let corner = [half_away(y)?, half_away(x)?, y.ones_like()?];
            grads.push(Some(places.spread(back.dy, &[corner])?));
            return Ok(grads);
        }
        let (top, left) = (y.floor()?, x.floor()?);
        let (bottom, right) = match self.edged {
            true => (y.ceil()?, x.ceil()?),
            false => (top.add(1)?, left.add(1)?),
        };
        let (down, across) = (y.subtract(&top)?, x.subtract(&left)?);
        let rest = |v: &Tensor| v.negative()?.add(1);
        if back.needs(0) {
            let (up, near) = (rest(&down)?, rest(&across)?);
            let corners = [
                [top.clone(), left.clone(), up.multiply(&near)?],
                [top.clone(), right.clone(), up.multiply(&across)?],
                [bottom.clone(), left.clone(), down.multiply(&near)?],
                [bottom.clone(), right.clone(), down.multiply(&across)?],
            ];
            grads.push(Some(places.spread(back.dy, &corners)?));
        } else {
            grads.push(None);
        }
        grads.push(None);
        if back.needs(2) {
            let (a, b) = (places.pixels(&top, &left)?, places.pixels(&top, &right)?);
            let (c, d) = (places.pixels(&bottom, &left)?, places.pixels(&bottom, &right)?);
            let (down, across) = (down.expand_dims(-1)?, across.expand_dims(-1)?);
            let mixed = |a: &Tensor, b: &Tensor, by: &Tensor| a.add(b.subtract(a)?.multiply(by)?);
            let slope =
                |high: Tensor, low: Tensor| back.dy.multiply(high.subtract(low)?)?.reduce_sum(-1);
            let of_rows = slope(mixed(&c, &d, &across)?, mixed(&a, &b, &across)?)?;
            let of_columns = slope(mixed(&b, &d, &down)?, mixed(&a, &c, &down)?)?;
            grads.push(Some(stack([of_rows, of_columns], -1)?));
        }
        Ok(grads)
    }
}

/// Rounds halves away from 0, as C's `round`.
fn half_away(x: &Tensor) -> Result<Tensor> {
    x.abs()?.add(0.5)?.floor()?.multiply(x.sign()?)
}
