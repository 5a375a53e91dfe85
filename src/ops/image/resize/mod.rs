//! Resizes images: `y[i,j] = sum over t, u of rows[i,t] columns[j,u] x[start(i) + t, start(j) + u]`.

mod table;

use super::super::inventory::{ANY, Answer, Args, Entry, OpKind, Stop, one};
use super::super::split_k::{split_length, store_to, sum_splits};
use super::super::{Backward, Grads, Keep, Operation, expect_dtype, only};
use super::{check_target, no_image, pad_to_bounding_box, sizes, with_size};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};
pub(crate) use table::Span;
use table::{Line, Rule, Shape, taps};

/// The interpolation method of a resized image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ResizeMethod {
    /// The four surrounding pixels, weighted by distance.
    #[default]
    Bilinear,
    /// The nearest pixel; the dtype does not change.
    NearestNeighbor,
    /// Sixteen pixels, with Keys's cubic kernel.
    Bicubic,
    /// The pixels that the output pixel covers, weighted by area; `antialias` has no effect.
    Area,
    /// Lanczos kernel with a radius of 3.
    Lanczos3,
    /// Lanczos kernel with a radius of 5.
    Lanczos5,
    /// Gaussian kernel with a standard deviation of 0.5.
    Gaussian,
    /// Mitchell-Netravali cubic kernel.
    MitchellCubic,
}

options! {
    /// How images are resized.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ResizeOptions {
        /// The interpolation method; bilinear by default.
        method: ResizeMethod = ResizeMethod::Bilinear,
        /// Whether to use the largest size within the requested one that preserves the aspect ratio; `false` by default.
        preserve_aspect_ratio: bool = false,
        /// Whether shrinking averages all pixels that an output pixel covers; `false` by default.
        antialias: bool = false,
    }
}

impl ResizeOptions {
    fn rule(self) -> Rule {
        let kernel = |shape| Rule::Kernel { shape, antialias: self.antialias };
        match (self.method, self.antialias) {
            (ResizeMethod::Bilinear, false) => Rule::Linear,
            (ResizeMethod::Bilinear, true) => kernel(Shape::Triangle),
            (ResizeMethod::Bicubic, false) => Rule::Cubic,
            (ResizeMethod::Bicubic, true) => kernel(Shape::Keys),
            (ResizeMethod::NearestNeighbor, _) => Rule::Nearest,
            (ResizeMethod::Area, _) => Rule::Area,
            (ResizeMethod::Lanczos3, _) => kernel(Shape::Lanczos3),
            (ResizeMethod::Lanczos5, _) => kernel(Shape::Lanczos5),
            (ResizeMethod::Gaussian, _) => kernel(Shape::Gaussian),
            (ResizeMethod::MitchellCubic, _) => kernel(Shape::Mitchell),
        }
    }
}

/// Resizes images to `size` (height, width) by bilinear interpolation, in `f32`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::Tensor::from_slice(&[0.0f32, 4.0], [1, 2, 1])?;
/// let y = tf::image::resize(&x, [1, 4])?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is neither `[H,W,C]` nor `[N,H,W,C]`, or the input or the output is empty; [`Error::DType`]
/// if it is `bool`.
pub fn resize(images: &Tensor, size: [usize; 2]) -> Result<Tensor> {
    resize_with(images, size, ResizeOptions::new())
}

/// Like [`resize`], with options. Coordinates refer to pixel centers, as in TensorFlow 2 (`half_pixel_centers`).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::image::{ResizeMethod, ResizeOptions};
/// let x = tf::Tensor::from_slice(&[1, 2, 3, 4], [2, 2, 1])?;
/// let nearest = ResizeOptions::new().method(ResizeMethod::NearestNeighbor);
/// let y = tf::image::resize_with(&x, [2, 4], nearest)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 1, 2, 2, 3, 3, 4, 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`resize`].
pub fn resize_with(images: &Tensor, size: [usize; 2], options: ResizeOptions) -> Result<Tensor> {
    const OP: &str = "resize";
    let [n, h, w, c] = sizes(OP, images)?;
    expect_dtype(OP, images.spec(), NUMBERS)?;
    let [rows, columns] = lines(OP, images.shape(), size, options)?;
    let [height, width] = [rows.to, columns.to];
    let shape = with_size(images, height, width);
    let nearest = options.method == ResizeMethod::NearestNeighbor;
    let batch = images.reshape_to([n, h, w, c].into())?;
    // Dtypes without their own kernel are read as numbers of 32 bits.
    let (read, dtype) = match images.dtype() {
        dtype @ (DType::F32 | DType::F16) if nearest => (batch, dtype),
        dtype if nearest => (batch.cast(DType::I32)?, dtype),
        DType::F32 | DType::F16 => (batch, DType::F32),
        _ => (batch.cast(DType::F32)?, DType::F32),
    };
    let sums = if dtype.is_float() { dtype } else { DType::I32 };
    resample(&read, rows, columns, sums)?.cast(dtype)?.reshape_to(shape.into())
}

/// The spans that each row and each column of a resized image sums.
pub(crate) fn resize_axes(
    op: &str,
    shape: &[usize],
    size: [usize; 2],
    options: ResizeOptions,
) -> Result<[Vec<Span>; 2]> {
    Ok(lines(op, shape, size, options)?.map(|line| line.spans()))
}

/// The rows and the columns of a resize to `size`, if it is valid.
fn lines(op: &str, shape: &[usize], size: [usize; 2], options: ResizeOptions) -> Result<[Line; 2]> {
    let &[.., h, w, _] = shape else { return Err(no_image(op, shape)) };
    if h == 0 || w == 0 {
        return Err(Error::Shape(message!(
            "{op}: the image is {shape:?}; an empty one cannot be resized."
        )));
    }
    let [height, width] = if options.preserve_aspect_ratio { fitted([h, w], size) } else { size };
    check_target(op, height, width)?;
    if height.max(width).max(h).max(w) > FARTHEST {
        return Err(Error::Shape(message!(
            "{op}: from {h} x {w} to {height} x {width}; an image has at most {FARTHEST} rows and columns here."
        )));
    }
    let line = |from, to| match options.rule() {
        Rule::Nearest | Rule::Linear | Rule::Area if from == to => Line::kept(to),
        rule => Line { rule, from, to, backward: false },
    };
    Ok([line(h, height), line(w, width)])
}

/// The dtypes of images.
const NUMBERS: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8];

/// Positions are computed in `f32`, as in TensorFlow; for larger sizes the errors would be much larger than rounding
/// errors.
const FARTHEST: usize = 1 << 22;

/// The largest size within `size` that has the proportions of `own`, in TensorFlow's `f32` arithmetic.
fn fitted(own: [usize; 2], size: [usize; 2]) -> [usize; 2] {
    let factor = |k: usize| size[k] as f32 / own[k] as f32;
    let smaller = factor(0).min(factor(1));
    own.map(|n| (smaller * n as f32).round_ties_even() as usize)
}

/// Resizes images to the largest size within the target that preserves the aspect ratio, and pads them with black to the
/// target. The arguments are the target's height and width.
///
/// # Errors
/// As [`resize`].
pub fn resize_with_pad(
    image: &Tensor,
    target_height: usize,
    target_width: usize,
) -> Result<Tensor> {
    resize_with_pad_with(image, target_height, target_width, ResizeOptions::new())
}

/// As [`resize_with_pad`], with the options of [`resize_with`].
///
/// # Errors
/// As [`resize`].
pub fn resize_with_pad_with(
    image: &Tensor,
    target_height: usize,
    target_width: usize,
    options: ResizeOptions,
) -> Result<Tensor> {
    const OP: &str = "resize_with_pad";
    let [_, h, w, _] = sizes(OP, image)?;
    check_target(OP, target_height, target_width)?;
    let target = [target_height as f32, target_width as f32];
    let ratio = (w as f32 / target[1]).max(h as f32 / target[0]);
    let exact = [h as f32 / ratio, w as f32 / ratio];
    let size = exact.map(|n| n.floor() as usize);
    let before = |k: usize| ((target[k] - exact[k]) / 2.0).floor().max(0.0) as usize;
    let resized = resize_with(image, size, options)?;
    pad_to_bounding_box(&resized, before(0), before(1), target_height, target_width)
}

/// Resizes `x` `[B,H,W,C]` along both axes at once, or along one after the other if that reads less.
fn resample(x: &Tensor, rows: Line, columns: Line, dtype: DType) -> Result<Tensor> {
    let &[b, h, w, c] = x.shape() else {
        unreachable!("resize makes four axes");
    };
    let (tall, wide) = (rows.spans(), columns.spans());
    let ([th, tw], [oh, ow]) = ([taps(&tall), taps(&wide)], [tall.len(), wide.len()]);
    let shape = [b, oh, ow, c].into();
    // If an axis does not change, the positions along it are treated as images or channels.
    let (form, rows, columns) = match (rows.rule, columns.rule) {
        (Rule::Keep, Rule::Keep) => return x.cast(dtype),
        (_, Rule::Keep) => ([b, h, 1, w * c], rows, Line::kept(1)),
        (Rule::Keep, _) => ([b * h, 1, w, c], Line::kept(1), columns),
        _ => {
            // The elements read, and those stored between two kernels.
            let first = |taps: usize, out: usize, other: usize| (taps + 2) * out * other;
            let rows_first = first(th, oh, w) + tw * oh * ow;
            let columns_first = first(tw, ow, h) + th * oh * ow;
            let at_once = th.saturating_mul(tw).saturating_mul(oh * ow);
            if at_once > rows_first.min(columns_first) {
                let between = if dtype == DType::I32 { DType::I32 } else { DType::F32 };
                if rows_first <= columns_first {
                    let y = resample(x, rows, Line::kept(w), between)?;
                    return resample(&y, Line::kept(oh), columns, dtype);
                }
                let y = resample(x, Line::kept(h), columns, between)?;
                return resample(&y, rows, Line::kept(ow), dtype);
            }
            ([b, h, w, c], rows, columns)
        }
    };
    let words = [words(&rows), words(&columns)].concat();
    let table = x.device().scope(|| Tensor::from_slice(&words, [words.len()]))?;
    let op = Resample { rows, columns, dtype };
    dispatch(op, &[&x.reshape_to(form.into())?, &table])?.reshape_to(shape)
}

/// The lines of the shader's table, whose spans all have the same length, within the image.
fn words(line: &Line) -> Vec<u32> {
    let spans = line.spans();
    let taps = taps(&spans);
    let words = |span: &Span| {
        let start = span.start.min(line.input() - taps);
        let mut words = vec![start as u32];
        words.resize(1 + span.start - start, 0);
        words.extend(span.weights.iter().map(|weight| weight.to_bits()));
        words.resize(1 + taps, 0);
        words
    };
    spans.iter().flat_map(words).collect()
}

/// The inputs are `[B,H,W,C]` and the table of both lines.
#[derive(Debug, Attribute)]
#[op("ImageResample")]
pub(crate) struct Resample {
    rows: Line,
    columns: Line,
    dtype: DType,
}

impl Op for Resample {
    fn name(&self) -> &'static str {
        "Resize"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        expect_dtype("Resize", x, &[DType::F32, DType::F16, DType::I32])?;
        let [rows, columns] = [self.rows.output(), self.columns.output()];
        // Positions and channels are one axis if four positions fill vectors that their channels alone do not.
        Ok(match self.together(x.shape[3]) {
            true => Spec::new([x.shape[0], rows, columns * x.shape[3]], self.dtype),
            false => Spec::new([x.shape[0], rows, columns, x.shape[3]], self.dtype),
        })
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let [th, tw] = [self.rows, self.columns].map(|line| taps(&line.spans()));
        let (whole, results) = (th * tw, cx.output.elements());
        let places = if self.together(cx.inputs[0].shape[3]) { 4 } else { 1 };
        if places * th * (1 + tw) <= cx.caps.loop_iterations {
            return self.kernel(cx, [th, tw], places, None).into();
        }
        // Several threads share the terms of a sum.
        let part = split_length(whole, results, cx.caps);
        let parts = whole.div_ceil(part);
        let (sums, dtype) = (cx.inputs[0].dtype.register(), cx.output.dtype);
        let sums = if sums == Register::I32 { DType::I32 } else { DType::F32 };
        let kernels = vec![
            self.kernel(cx, [th, tw], 1, Some((part, parts, sums))),
            sum_splits([Bind::Temp(0), Bind::Output], sums, dtype, [results, parts], cx.caps),
        ];
        Lowering::Kernels(Kernels {
            temps: vec![sums.bytes(results.saturating_mul(parts))],
            kernels,
        })
    }
}

impl Resample {
    /// Whether the positions of a row are processed four at a time, because their `c` channels do not fill vectors.
    fn together(&self, c: usize) -> bool {
        (1..4).contains(&c) && self.columns.output().is_multiple_of(4)
    }

    /// The kernel that computes the sums, or the parts of them: the length of a part, how many there are, and their dtype.
    fn kernel(
        &self,
        cx: &LoweringContext,
        [th, tw]: [usize; 2],
        places: usize,
        cut: Option<(usize, usize, DType)>,
    ) -> Kernel {
        let (x, y) = (cx.inputs[0], cx.output);
        let c = x.shape[3];
        let (vector, lanes) = (c.is_multiple_of(4), c.clamp(1, 4));
        let load = match (vector, lanes) {
            (true, _) => "V(x[at / 4u])",
            (_, 1) => "V(vec4<T>(x[at], 0, 0, 0))",
            (_, 2) => "V(vec4<T>(x[at], x[at + 1u], 0, 0))",
            (_, 3) => "V(vec4<T>(x[at], x[at + 1u], x[at + 2u], 0))",
            _ => {
                "V(vec4<T>(x[at], x[min(at + 1u, p.last)], x[min(at + 2u, p.last)], x[min(at + 3u, p.last)]))"
            }
        };
        let weigh =
            if x.dtype.is_float() { "select(V(0), v * weight, weight != 0.0)" } else { "v" };
        let groups = c.div_ceil(4).max(1);
        let (oh, ow) = (self.rows.output(), self.columns.output());
        let threads = x.shape[0] * oh * ow / places * groups;
        let (part, parts, out) = match cut {
            Some((part, parts, sums)) => (part, parts, (Bind::Temp(0), sums)),
            None => (0, 1, (Bind::Output, y.dtype)),
        };
        let kernel = Kernel::new("resize", "")
            .alias("T", x.dtype)
            .alias("Out", out.1)
            .declare(format!("alias V = vec4<{}>;", x.dtype.register().scalar()))
            .declare(format!(
                "@group(0) @binding(0) var<storage, read> x: array<{}>;",
                if vector { "vec4<T>" } else { "T" }
            ))
            .declare(format!("fn load(at: u32) -> V {{ return {load}; }}"))
            .declare(format!("fn weigh(v: V, weight: f32) -> V {{ return {weigh}; }}"))
            .constant("WG", 64)
            .constant("LANES", lanes as u32)
            .read(Bind::Input(0))
            .read(Bind::Input(1));
        let kernel = if places > 1 { kernel.declare(put(c)) } else { kernel };
        let flags = [("PARTS", cut.is_some()), ("GROUPS", groups > 1), ("FOUR", places > 1)];
        let small = th.max(tw) <= 2;
        let flags = [&flags[..], &[("SMALL", small)]].concat();
        let counts = [("PLACES", places), ("TH", th.min(2)), ("TW", tw.min(2))];
        let file = shader!(include_str!("../../../../shaders/resize.wgsl"));
        let kernel = store_to(out.0, kernel, vector)
            .declare(expand(file, &counts, &flags))
            .param("h", x.shape[1])
            .param("w", x.shape[2])
            .param("c", c)
            .param("oh", oh)
            .param("ow", ow)
            .param("groups", groups)
            .param("th", th)
            .param("tw", tw)
            .param("last", x.elements().saturating_sub(1))
            .param("threads", threads);
        match cut {
            Some(_) => kernel
                .param("results", y.elements())
                .param("part", part)
                .param("parts", parts)
                .workgroups((threads * parts).div_ceil(64), part),
            None => kernel.workgroups(threads.div_ceil(64), places * th * (1 + tw)),
        }
    }
}

/// The WGSL function that stores four positions of `c` channels as vectors.
fn put(c: usize) -> String {
    let channels = |e: usize| format!("{}.{}", &"abcd"[e / c..=e / c], &"xyz"[e % c..=e % c]);
    let quad = |q: usize| {
        let four: Vec<String> = (4 * q..4 * q + 4).map(channels).collect();
        format!("    c_store(at + {}u, 4u, V({}));\n", 4 * q, four.join(", "))
    };
    let quads: String = (0..c).map(quad).collect();
    format!("fn put(at: u32, a: V, b: V, c: V, d: V) {{\n{quads}}}")
}

/// The weights of an axis of a [`Resample`], which its attribute `line` describes: a row for each position of the result, `[to, from]`.
#[cfg(all(feature = "saved-model", not(target_family = "wasm")))]
pub(crate) fn weights_of_line(
    line: &crate::graph::attributes::Value,
) -> std::result::Result<ndarray::Array2<f32>, String> {
    let line = Line::read(line)?;
    let mut weights = ndarray::Array2::zeros([line.output(), line.input()]);
    for (mut row, span) in weights.outer_iter_mut().zip(line.spans()) {
        let places = span.start..span.start + span.weights.len();
        places.zip(span.weights).for_each(|(at, weight)| row[at] = weight);
    }
    Ok(weights)
}

impl Operation for Resample {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // dx[r] = sum over the positions i whose span contains r of weight[i,r] dy[i]: a resize with the transposed spans.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let (x, rows, columns) = (back.spec(0), self.rows, self.columns);
        let form = [x.shape[0], rows.output(), columns.output(), x.shape[3]];
        let dy = back.dy.reshape_to(form.into())?;
        only(resample(&dy, rows.transposed(), columns.transposed(), x.dtype)?)
    }
}

/// The methods by TensorFlow's names.
const METHODS: [(&str, ResizeMethod); 8] = [
    ("bilinear", ResizeMethod::Bilinear),
    ("nearest", ResizeMethod::NearestNeighbor),
    ("bicubic", ResizeMethod::Bicubic),
    ("area", ResizeMethod::Area),
    ("lanczos3", ResizeMethod::Lanczos3),
    ("lanczos5", ResizeMethod::Lanczos5),
    ("gaussian", ResizeMethod::Gaussian),
    ("mitchellcubic", ResizeMethod::MitchellCubic),
];

/// The options of a call by name.
fn asked(c: &Args) -> Answer<ResizeOptions> {
    let method = c.text("method")?.unwrap_or("bilinear".into());
    let Some((_, method)) = METHODS.iter().find(|(name, _)| *name == method) else {
        return Err(Stop::Lacks("method".into()));
    };
    c.only("half_pixel_centers", true)?;
    let keep = c.flag("preserve_aspect_ratio")?;
    Ok(ResizeOptions::new()
        .method(*method)
        .antialias(c.flag("antialias")?)
        .preserve_aspect_ratio(keep))
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "image::resize", &["tf.image.resize"], |c| {
        one(resize_with(c.x()?, c.need("size", c.two("size")?)?, asked(c)?))
    })
    .forms(&["image::resize_with"])
    .takes(NUMBERS)
    .cases(|cases| {
        cases.of_shape("image::resize", &[3, 4, 3], |x| resize(x, [5, 2]));
        for (name, method) in METHODS {
            for antialias in [false, true] {
                let options = ResizeOptions::new().method(method).antialias(antialias);
                let name = format!("image::resize_with {name} {antialias}");
                cases.add(name.clone() + ", larger", &[(&[3, 4, 2], ANY)], move |x| {
                    resize_with(&x[0], [5, 7], options)
                });
                cases.add(name + ", smaller", &[(&[2, 7, 8, 1], ANY)], move |x| {
                    resize_with(&x[0], [3, 2], options)
                });
            }
        }
    })
    .kernels(&[|make, dtype| {
        let mut resized = Vec::new();
        for c in [1, 2, 3, 4, 5] {
            for (_, method) in METHODS {
                let options = ResizeOptions::new().method(method);
                resized.push(resize_with(&make(&[2, 6, 5, c], dtype), [9, 4], options)?);
            }
            let wide = ResizeOptions::new().antialias(true);
            resized.push(resize_with(&make(&[2, 40, 50, c], dtype), [3, 4], wide)?);
        }
        Ok(resized)
    }])
    .loops(&[|make, n| {
        let area = ResizeOptions::new().method(ResizeMethod::Area);
        let flat = |x: &Tensor, size| resize_with(x, size, area);
        Ok(vec![
            flat(&make(&[n, 2, 1], DType::F32), [1, 1])?,
            flat(&make(&[2, n, 3], DType::F32), [2, 2])?,
            flat(&make(&[n.isqrt(), n.isqrt(), 4], DType::F32), [1, 1])?,
        ])
    }]),
    Entry::new(OpKind::Composed, "image::resize_with_pad", &["tf.image.resize_with_pad"], |c| {
        let (height, width) = (c.size("target_height")?, c.size("target_width")?);
        one(resize_with_pad_with(c.x()?, height, width, asked(c)?))
    })
    .forms(&["image::resize_with_pad_with"])
    .takes(NUMBERS)
    .cases(|cases| {
        cases.of_shape("image::resize_with_pad", &[3, 4, 2], |x| resize_with_pad(x, 5, 5));
        cases.of_shape("image::resize_with_pad_with", &[3, 4, 2], |x| {
            resize_with_pad_with(x, 2, 3, ResizeOptions::new().antialias(true))
        });
    }),
];
