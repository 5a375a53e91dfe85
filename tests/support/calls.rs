//! The calls of the golden cases: what TensorFlow's function is here, with the case's arguments.
//!
//! One public function of wgrad for one of TensorFlow's is the rule. Where a result is put together of several, the
//! call says so with [`Call::composes`], and the case does not count as run. Layers, optimizers and metrics are in
//! `golden/keras.rs`; what wgrad has nothing for is in `golden/missing.rs`.

use ndarray::SliceInfoElem;
use serde_json::Value;
use wgrad::keras::losses::{
    CategoricalCrossentropy, MeanSquaredError, Reduction, SparseCategoricalCrossentropy,
};
use wgrad::random::{self, Generator};
use wgrad::{
    Axes, Conv2dOptions, DType, PadMode, Padding, Pool2dOptions, Result, Scalar, Tensor, concat,
    where_,
};

use crate::golden::call::{Answer, Call, Stop, one};
use crate::golden::derivatives::{derived, is_derived};

pub type UnaryOp = fn(&Tensor) -> Result<Tensor>;

const UNARY: &[(&str, UnaryOp)] = &[
    ("tf.math.abs", Tensor::abs),
    ("tf.math.negative", Tensor::negative),
    ("tf.math.exp", Tensor::exp),
    ("tf.math.log", Tensor::log),
    ("tf.math.log1p", Tensor::log1p),
    ("tf.math.expm1", Tensor::expm1),
    ("tf.math.sqrt", Tensor::sqrt),
    ("tf.math.rsqrt", Tensor::rsqrt),
    ("tf.math.square", Tensor::square),
    ("tf.math.sin", Tensor::sin),
    ("tf.math.cos", Tensor::cos),
    ("tf.math.tan", Tensor::tan),
    ("tf.math.tanh", Tensor::tanh),
    ("tf.math.sigmoid", Tensor::sigmoid),
    ("tf.nn.relu", Tensor::relu),
    ("tf.nn.relu6", Tensor::relu6),
    ("tf.nn.elu", Tensor::elu),
    ("tf.nn.selu", Tensor::selu),
    ("tf.nn.silu", Tensor::silu),
    ("tf.math.softplus", Tensor::softplus),
    ("tf.nn.softsign", Tensor::softsign),
    ("tf.math.erf", Tensor::erf),
    ("tf.math.erfc", Tensor::erfc),
    ("tf.math.floor", Tensor::floor),
    ("tf.math.ceil", Tensor::ceil),
    ("tf.math.round", Tensor::round),
    ("tf.math.rint", Tensor::round),
    ("tf.math.sign", Tensor::sign),
    ("tf.math.reciprocal", Tensor::reciprocal),
    ("tf.math.sinh", Tensor::sinh),
    ("tf.math.cosh", Tensor::cosh),
    ("tf.math.asin", Tensor::asin),
    ("tf.math.acos", Tensor::acos),
    ("tf.math.atan", Tensor::atan),
    ("tf.math.asinh", Tensor::asinh),
    ("tf.math.acosh", Tensor::acosh),
    ("tf.math.atanh", Tensor::atanh),
    ("tf.math.log_sigmoid", Tensor::log_sigmoid),
    ("keras.activations.hard_sigmoid", Tensor::hard_sigmoid),
    ("keras.activations.mish", Tensor::mish),
    ("tf.math.is_nan", Tensor::is_nan),
    ("tf.math.is_inf", Tensor::is_inf),
    ("tf.math.is_finite", Tensor::is_finite),
    ("tf.math.logical_not", Tensor::logical_not),
];

type BinaryOp = fn(&Tensor, &Tensor) -> Result<Tensor>;

const BINARY: &[(&str, BinaryOp)] = &[
    ("tf.math.add", |x, y| x.add(y)),
    ("tf.math.subtract", |x, y| x.subtract(y)),
    ("tf.math.multiply", |x, y| x.multiply(y)),
    ("tf.math.divide", |x, y| x.divide(y)),
    ("tf.math.floordiv", |x, y| x.floordiv(y)),
    ("tf.math.floormod", |x, y| x.floormod(y)),
    ("tf.math.pow", |x, y| x.pow(y)),
    ("tf.math.maximum", |x, y| x.maximum(y)),
    ("tf.math.minimum", |x, y| x.minimum(y)),
    ("tf.math.squared_difference", |x, y| x.squared_difference(y)),
    ("tf.math.atan2", |x, y| x.atan2(y)),
    ("tf.math.divide_no_nan", |x, y| x.divide_no_nan(y)),
    ("tf.math.xlogy", |x, y| x.xlogy(y)),
    ("tf.math.less", |x, y| x.less(y)),
    ("tf.math.less_equal", |x, y| x.less_equal(y)),
    ("tf.math.greater", |x, y| x.greater(y)),
    ("tf.math.greater_equal", |x, y| x.greater_equal(y)),
    ("tf.math.equal", |x, y| x.equal(y)),
    ("tf.math.not_equal", |x, y| x.not_equal(y)),
    ("tf.math.logical_and", |x, y| x.logical_and(y)),
    ("tf.math.logical_or", |x, y| x.logical_or(y)),
    ("tf.math.logical_xor", |x, y| x.logical_xor(y)),
];

type ReduceOp = fn(&Tensor, Axes, bool) -> Result<Tensor>;

const REDUCE: &[(&str, ReduceOp)] = &[
    ("tf.math.reduce_sum", |x, axes, keep| x.reduce_sum(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_mean", |x, axes, keep| x.reduce_mean(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_max", |x, axes, keep| x.reduce_max(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_min", |x, axes, keep| x.reduce_min(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_prod", |x, axes, keep| x.reduce_prod(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_logsumexp", |x, axes, keep| {
        x.reduce_logsumexp(wgrad::Axes::from(&axes).keepdims(keep))
    }),
    ("tf.math.reduce_variance", |x, axes, keep| {
        x.reduce_variance(wgrad::Axes::from(&axes).keepdims(keep))
    }),
    ("tf.math.reduce_std", |x, axes, keep| x.reduce_std(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_euclidean_norm", |x, axes, keep| {
        x.reduce_euclidean_norm(wgrad::Axes::from(&axes).keepdims(keep))
    }),
    ("tf.math.reduce_any", |x, axes, keep| x.reduce_any(wgrad::Axes::from(&axes).keepdims(keep))),
    ("tf.math.reduce_all", |x, axes, keep| x.reduce_all(wgrad::Axes::from(&axes).keepdims(keep))),
];

type AnyOp = fn(&Call) -> Answer;

const FUNCTIONS: &[(&str, AnyOp)] = &[
    // Elementwise.
    ("tf.nn.gelu", |c| {
        one(c.x()?.gelu_with(wgrad::GeluOptions::new().approximate(c.flag("approximate")?)))
    }),
    ("tf.nn.leaky_relu", |c| one(c.x()?.leaky_relu(float(c, "alpha")?))),
    ("keras.activations.elu", |c| {
        c.composes("alpha");
        one(where_(&c.x()?.greater(0.0)?, c.x()?, &c.x()?.elu()?.multiply(float(c, "alpha")?)?))
    }),
    ("tf.cast", |c| one(c.x()?.cast(dtype(c)?))),
    ("tf.where", choose),
    ("tf.clip_by_value", |c| one(c.x()?.clip_by_value(float(c, "min")?, float(c, "max")?))),
    ("tf.stop_gradient", |c| one(c.x()?.multiply(c.x()?.stop_gradient()))),
    ("tf.math.add_n", |c| one(wgrad::add_n(&c.list("xs")?))),
    // Reductions.
    ("tf.math.argmax", |c| one(c.x()?.argmax(c.int("axis")?.unwrap_or(0)))),
    ("tf.math.argmin", |c| one(c.x()?.argmin(c.int("axis")?.unwrap_or(0)))),
    ("tf.math.count_nonzero", |c| {
        c.composes("");
        one(c.x()?.not_equal(0.0)?.cast(DType::I32)?.reduce_sum(c.axes("axis")?))
    }),
    ("tf.norm", norm),
    ("tf.math.l2_normalize", |c| {
        c.composes("");
        let squares =
            c.x()?.square()?.reduce_sum(wgrad::Axes::from(c.axes("axis")?).keepdims(true))?;
        one(c.x()?.multiply(squares.maximum(float(c, "epsilon")?)?.rsqrt()?))
    }),
    ("tf.nn.moments", |c| {
        c.composes("");
        let (x, axes) = (c.x()?, c.axes("axes")?);
        Ok(vec![x.reduce_mean(&axes)?, x.reduce_variance(&axes)?])
    }),
    // Softmax and losses.
    ("tf.nn.softmax", |c| one(c.x()?.softmax(c.int("axis")?.unwrap_or(-1)))),
    ("tf.nn.log_softmax", |c| one(c.x()?.log_softmax(c.int("axis")?.unwrap_or(-1)))),
    ("tf.nn.softmax_cross_entropy_with_logits", |c| {
        one(wgrad::softmax_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?))
    }),
    ("tf.nn.sparse_softmax_cross_entropy_with_logits", |c| {
        one(wgrad::sparse_softmax_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?))
    }),
    ("tf.nn.sigmoid_cross_entropy_with_logits", |c| {
        one(wgrad::sigmoid_cross_entropy_with_logits(c.arg("labels")?, c.arg("logits")?))
    }),
    ("keras.losses.SparseCategoricalCrossentropy", |c| {
        let (from_logits, reduction) = (c.flag("from_logits")?, reduction(c)?);
        let loss =
            SparseCategoricalCrossentropy::new().from_logits(from_logits).reduction(reduction);
        one(loss.call(c.arg("y_true")?, c.arg("y_pred")?))
    }),
    ("keras.losses.CategoricalCrossentropy", |c| {
        c.only("label_smoothing", 0.0)?;
        let (from_logits, reduction) = (c.flag("from_logits")?, reduction(c)?);
        let loss = CategoricalCrossentropy::new().from_logits(from_logits).reduction(reduction);
        one(loss.call(c.arg("y_true")?, c.arg("y_pred")?))
    }),
    ("keras.losses.MeanSquaredError", |c| {
        let loss = MeanSquaredError::new().reduction(reduction(c)?);
        one(loss.call(c.arg("y_true")?, c.arg("y_pred")?))
    }),
    // Products, convolutions and pools.
    ("tf.linalg.matmul", |c| {
        let (ta, tb) = (c.flag("transpose_a")?, c.flag("transpose_b")?);
        one(c
            .arg("a")?
            .matmul_with(c.arg("b")?, wgrad::MatmulOptions::new().transpose_a(ta).transpose_b(tb)))
    }),
    ("tf.linalg.matvec", |c| one(c.arg("a")?.matvec(c.arg("b")?))),
    ("tf.nn.conv2d", |c| {
        let Some(pads) = explicit(c)? else {
            return one(c.x()?.conv2d(c.arg("w")?, convolution(c)?));
        };
        c.composes("explicit padding");
        let padded = c.x()?.pad(&pads)?;
        one(padded.conv2d(c.arg("w")?, convolution(c)?))
    }),
    ("tf.nn.depthwise_conv2d", |c| one(c.x()?.depthwise_conv2d(c.arg("w")?, convolution(c)?))),
    ("tf.nn.separable_conv2d", |c| {
        c.composes("");
        let channels = c.x()?.depthwise_conv2d(c.arg("dw")?, convolution(c)?)?;
        one(channels.conv2d(c.arg("pw")?, Conv2dOptions::default()))
    }),
    ("tf.nn.bias_add", |c| one(c.x()?.add(c.arg("b")?))),
    ("tf.nn.max_pool2d", |c| {
        let (window, options) = pool(c)?;
        one(c.x()?.max_pool2d(window, options))
    }),
    ("tf.nn.avg_pool2d", |c| {
        let (window, options) = pool(c)?;
        one(c.x()?.avg_pool2d(window, options))
    }),
    // Indices.
    ("tf.nn.embedding_lookup", |c| one(c.arg("params")?.gather(c.arg("ids")?, 0))),
    ("tf.gather", |c| {
        let axis = c.int("axis")?.unwrap_or(0);
        let batch_dims = c.int("batch_dims")?.unwrap_or(0) as usize;
        one(c.arg("params")?.gather_with(
            c.arg("indices")?,
            axis,
            wgrad::GatherOptions::new().batch_dims(batch_dims),
        ))
    }),
    ("tf.math.unsorted_segment_sum", |c| {
        let segments = c.need("num_segments", c.int("num_segments")?)? as usize;
        one(c.x()?.unsorted_segment_sum(c.arg("ids")?, segments))
    }),
    ("tf.one_hot", |c| {
        let depth = c.need("depth", c.int("depth")?)? as usize;
        let rows = wgrad::one_hot_with(
            c.x()?,
            depth,
            wgrad::OneHotOptions::new()
                .on_value(float(c, "on_value")?)
                .off_value(float(c, "off_value")?),
        )?;
        if c.int("axis")?.unwrap_or(-1) == -1 {
            return Ok(vec![rows]);
        }
        c.composes("axis");
        let rank = rows.rank() as i64;
        let mut order: Vec<i64> = (0..rank - 1).collect();
        order.insert(c.need("axis", c.sizes("axis")?)?[0], rank - 1);
        one(rows.transpose(&order))
    }),
    // Moving elements.
    ("tf.concat", |c| one(concat(&c.list("xs")?, axis(c)?))),
    ("tf.stack", |c| one(wgrad::stack(&c.list("xs")?, axis(c)?))),
    ("tf.unstack", |c| Ok(c.x()?.unstack(axis(c)?)?)),
    ("tf.split", split),
    ("tf.slice", |c| {
        let (begin, size) = (c.sizes("begin")?, c.ints("size")?);
        one(c.x()?.slice(&c.need("begin", begin)?, &c.need("size", size)?))
    }),
    ("tensor[...]", |c| {
        let spec = c.need("spec", c.text("spec")?)?;
        let parts = indices(&spec, c.x()?.rank()).ok_or_else(|| Stop::Lacks("spec".into()))?;
        one(c.x()?.strided_slice(parts))
    }),
    ("tf.pad", |c| {
        let mode = match c.need("mode", c.text("mode")?)?.as_str() {
            "CONSTANT" => PadMode::Constant(c.float("constant_values")?.unwrap_or(0.0).into()),
            "REFLECT" => PadMode::Reflect,
            "SYMMETRIC" => PadMode::Symmetric,
            _ => return Err(Stop::Lacks("mode".into())),
        };
        // The other modes have no use for it.
        c.remark("constant_values");
        one(c.x()?.pad_with(&c.need("paddings", c.pairs("paddings")?)?, mode))
    }),
    ("tf.tile", |c| one(c.x()?.tile(&c.need("multiples", c.sizes("multiples")?)?))),
    ("tf.reverse", |c| one(c.x()?.reverse(&c.need("axis", c.ints("axis")?)?))),
    ("tf.transpose", |c| one(c.x()?.transpose(&c.ints("perm")?.unwrap_or_default()))),
    ("tf.reshape", |c| one(c.x()?.reshape(c.need("shape", c.ints("shape")?)?))),
    ("tf.expand_dims", |c| one(c.x()?.expand_dims(axis(c)?))),
    ("tf.squeeze", |c| one(c.x()?.squeeze(&c.ints("axis")?.unwrap_or_default()))),
    ("tf.broadcast_to", |c| one(c.x()?.broadcast_to(c.need("shape", c.sizes("shape")?)?))),
    // Made of nothing.
    ("tf.range", |c| {
        let args = c.need("args", c.value("args")?)?;
        let args: Option<Vec<Scalar>> =
            args.as_array().and_then(|list| list.iter().map(scalar).collect());
        match c.need("args", args)?.as_slice() {
            [limit] => one(wgrad::range(0, *limit, 1)),
            [start, limit, delta] => one(wgrad::range(*start, *limit, *delta)),
            _ => Err(Stop::Lacks("args".into())),
        }
    }),
    ("tf.linspace", |c| {
        c.composes("");
        let args = c.need("args", c.floats("args")?)?;
        let [start, stop, count] = args[..] else { return Err(Stop::Lacks("args".into())) };
        let step = (stop - start) / (count - 1.0).max(1.0);
        let places = wgrad::range(0, count as i64, 1)?.cast(DType::F32)?;
        one(places.multiply(step)?.add(start))
    }),
    ("tf.eye", |c| {
        let rows = c.need("num_rows", c.int("num_rows")?)? as usize;
        let columns = c.int("num_columns")?.map_or(rows, |n| n as usize);
        one(wgrad::eye_of(rows, columns))
    }),
    ("tf.fill", |c| one(Tensor::full(c.need("dims", c.sizes("dims")?)?, float(c, "value")?))),
    // Random numbers, the same as TensorFlow's.
    ("tf.random.stateless_uniform", |c| {
        let (shape, seed) = stream(c)?;
        let (low, high) = (c.float("minval")?.unwrap_or(0.0), c.float("maxval")?.unwrap_or(1.0));
        match c.golden.tensor(c.case, "out.0").dtype() {
            "i32" => one(random::stateless_uniform_int(shape, seed, low as i32, high as i32)),
            _ => one(random::stateless_uniform_with(
                shape,
                seed,
                wgrad::random::UniformOptions::new().minval(low as f32).maxval(high as f32),
            )),
        }
    }),
    ("tf.random.stateless_normal", |c| {
        let (shape, seed) = standard(c)?;
        one(random::stateless_normal(shape, seed))
    }),
    ("tf.random.stateless_truncated_normal", |c| {
        let (shape, seed) = standard(c)?;
        one(random::stateless_truncated_normal(shape, seed))
    }),
    ("tf.random.Generator.uniform", drawn),
    ("tf.random.Generator.normal", drawn),
];

/// What the cases of higher derivatives are made of; `tests/data/README.md` has the formulas.
const FORMULAS: &[(&str, AnyOp)] = &[
    ("sin", |c| one(c.x()?.sin())),
    ("softplus", |c| one(c.x()?.softplus())),
    ("tanh", |c| one(c.x()?.tanh())),
    ("sigmoid", |c| one(c.x()?.sigmoid())),
    ("exp", |c| one(c.x()?.exp())),
    ("square", |c| one(c.x()?.square())),
    ("silu", |c| one(c.x()?.silu())),
    ("elu", |c| one(c.x()?.elu())),
    ("relu", |c| one(c.x()?.relu())),
    ("log", |c| one(c.x()?.log())),
    ("sqrt", |c| one(c.x()?.sqrt())),
    ("reciprocal", |c| one(c.x()?.reciprocal())),
    ("rsqrt", |c| one(c.x()?.rsqrt())),
    ("gelu", |c| one(c.x()?.gelu())),
    ("cube", |c| one(c.x()?.pow(3.0))),
    ("softmax", |c| one(c.x()?.softmax(-1))),
    ("log_softmax", |c| one(c.x()?.log_softmax(-1))),
    ("mul", |c| one(c.x()?.multiply(c.arg("y")?))),
    ("div", |c| one(c.x()?.divide(c.arg("y")?))),
    ("pow", |c| one(c.x()?.pow(c.arg("y")?))),
    ("x*x + x", |c| Ok(vec![c.x()? * c.x()? + c.x()?])),
    ("sum_sq", |c| one((c.x()? * c.x()?).reduce_sum(()))),
    ("mean_exp", |c| one(c.x()?.exp()?.reduce_mean(()))),
    ("reduce_max", |c| one((c.x()? * c.x()?).reduce_max(1))),
    ("matmul", |c| one(c.arg("a")?.matmul(c.arg("b")?))),
    ("reduce_sum(matmul^2)", |c| one(c.arg("a")?.matmul(c.arg("b")?)?.square()?.reduce_sum(()))),
    ("tanh(x@w1)@w2", |c| {
        let hidden = c.x()?.matmul(c.arg("w1")?)?.tanh()?;
        one(hidden.matmul(c.arg("w2")?)?.square()?.reduce_mean(()))
    }),
    ("conv2d SAME", |c| {
        let same = Conv2dOptions::new().padding(Padding::Same);
        one(c.x()?.conv2d(c.arg("w")?, same))
    }),
    ("sparse xent", |c| {
        let labels = integers(&c.need("labels", c.ints("labels")?)?)?;
        one(wgrad::sparse_softmax_cross_entropy_with_logits(&labels, c.x()?))
    }),
    ("gather", |c| {
        let indices = integers(&c.need("indices", c.ints("indices")?)?)?;
        one((c.x()? * c.x()?).gather(&indices, 0))
    }),
    ("layer_norm", layer_norm),
];

fn find<F: Copy>(table: &[(&str, F)], op: &str) -> Option<F> {
    table.iter().find(|(name, _)| *name == op).map(|(_, f)| *f)
}

/// What the case's function gives, in the order of its outputs.
pub fn call(c: &Call) -> Answer {
    let op = c.case.op.as_str();
    if is_derived(c.case) {
        return derived(c);
    }
    if let Some(f) = find(UNARY, op) {
        return one(f(c.x()?));
    }
    if let Some(f) = find(BINARY, op) {
        return one(f(c.x()?, c.arg("y")?));
    }
    if let Some(f) = find(REDUCE, op) {
        return one(f(c.x()?, c.axes("axis")?, c.flag("keepdims")?));
    }
    if let Some(f) = find(FUNCTIONS, op) {
        return f(c);
    }
    match find(FORMULAS, op) {
        Some(f) => {
            // How many orders the case has is seen by what it stores.
            c.remark("order");
            f(c)
        }
        None => Err(Stop::Lacks(String::new())),
    }
}

fn choose(c: &Call) -> Answer {
    let x = c.x()?;
    if c.case.name == "where_nan_branch" {
        return one(where_(&x.greater(0.0)?, &x.log()?, x));
    }
    one(where_(c.arg("cond")?, x, c.arg("y")?))
}

fn layer_norm(c: &Call) -> Answer {
    let x = c.x()?;
    let axis = c.int("axis")?.unwrap_or(-1);
    let mean = x.reduce_mean(wgrad::Axes::from(axis).keepdims(true))?;
    let centred = x.subtract(&mean)?;
    // As tf.nn.moments, which the case was made with: its variance takes the mean for a constant.
    // That changes no first derivative, but the second one.
    let variance = x
        .squared_difference(mean.stop_gradient())?
        .reduce_mean(wgrad::Axes::from(axis).keepdims(true))?;
    let y = centred.multiply(variance.add(float(c, "epsilon")?)?.rsqrt()?)?;
    if c.case.family == "higher_order" {
        return Ok(vec![y]);
    }
    c.composes("gamma");
    one(y.multiply(c.arg("gamma")?)?.add(c.arg("beta")?))
}

fn norm(c: &Call) -> Answer {
    c.composes("");
    let (x, axes) = (c.x()?, c.axes("axis")?);
    one(match c.text("ord")?.as_deref().unwrap_or("euclidean") {
        "euclidean" | "2" => x.reduce_euclidean_norm(axes),
        "1" => x.abs()?.reduce_sum(axes),
        "inf" => x.abs()?.reduce_max(axes),
        other => {
            let p: f64 = other.parse().map_err(|_| Stop::Lacks("ord".into()))?;
            x.abs()?.pow(p)?.reduce_sum(axes)?.pow(1.0 / p)
        }
    })
}

fn split(c: &Call) -> Answer {
    let (x, axis) = (c.x()?, axis(c)?);
    let key = "num_or_size_splits";
    if let Some(Value::Number(_)) = c.value(key)? {
        return Ok(x.split(c.need(key, c.sizes(key)?)?[0], axis)?);
    }
    let sizes = c.need(key, c.ints(key)?)?;
    let at = if axis < 0 { x.rank() as i64 + axis } else { axis } as usize;
    let known: i64 = sizes.iter().filter(|&&n| n >= 0).sum();
    let rest = x.shape()[at] as i64 - known;
    let sizes: Vec<usize> = sizes.iter().map(|&n| if n < 0 { rest } else { n } as usize).collect();
    Ok(x.split_sizes(&sizes, axis)?)
}

/// The shape and the seed of a stateless draw.
fn stream(c: &Call) -> Answer<(Vec<usize>, [i32; 2])> {
    c.only("alg", "philox")?;
    let shape = c.need("shape", c.sizes("shape")?)?;
    match c.need("seed", c.ints("seed")?)?[..] {
        [a, b] => Ok((shape, [a as i32, b as i32])),
        _ => Err(Stop::Lacks("seed".into())),
    }
}

/// As [`stream`], for a distribution without bounds: the cases name those of a uniform one there.
fn standard(c: &Call) -> Answer<(Vec<usize>, [i32; 2])> {
    c.remark("minval");
    c.remark("maxval");
    stream(c)
}

/// A draw from a generator. The cases of one seed are drawn one after another, each with its own shape.
fn drawn(c: &Call) -> Answer {
    c.only("alg", "philox")?;
    c.remark("order");
    c.remark("shape");
    let seed = c.need("from_seed", c.int("from_seed")?)?;
    let generator = Generator::from_seed(seed as u64);
    for case in c.golden.all() {
        let same = case.attr("from_seed").and_then(Value::as_i64) == Some(seed);
        let Some(what) = case.op.strip_prefix("tf.random.Generator.").filter(|_| same) else {
            continue;
        };
        let shape = c.golden.tensor(case, "out.0").shape().to_vec();
        let draw = match what {
            "uniform" => generator.uniform(shape)?,
            "normal" => generator.normal(shape)?,
            _ => return Err(Stop::Lacks("order".into())),
        };
        if case.name == c.case.name {
            return Ok(vec![draw]);
        }
    }
    Err(Stop::Lacks("order".into()))
}

fn reduction(c: &Call) -> Answer<Reduction> {
    match c.text("reduction")?.as_deref() {
        None | Some("sum_over_batch_size") => Ok(Reduction::SumOverBatchSize),
        Some("sum") => Ok(Reduction::Sum),
        Some("none") => Ok(Reduction::None),
        Some(_) => Err(Stop::Lacks("reduction".into())),
    }
}

fn dtype(c: &Call) -> Answer<DType> {
    match c.text("dtype")?.as_deref() {
        Some("float32") => Ok(DType::F32),
        Some("int32") => Ok(DType::I32),
        Some("uint8") => Ok(DType::U8),
        Some("bool") => Ok(DType::Bool),
        _ => Err(Stop::Lacks("dtype".into())),
    }
}

fn axis(c: &Call) -> Answer<i64> {
    Ok(c.int("axis")?.unwrap_or(0))
}

fn float(c: &Call, key: &str) -> Answer<f32> {
    Ok(c.need(key, c.float(key)?)? as f32)
}

fn scalar(value: &Value) -> Option<Scalar> {
    value.as_i64().map(Scalar::Int).or(value.as_f64().map(Scalar::Float))
}

fn integers(values: &[i64]) -> Result<Tensor> {
    let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
    Tensor::from_slice(&values, [values.len()])
}

/// The places to pad where a case gives them instead of a word.
fn explicit(c: &Call) -> Answer<Option<Vec<(usize, usize)>>> {
    match c.value("padding")? {
        Some(Value::Array(_)) => c.pairs("padding"),
        _ => Ok(None),
    }
}

fn padding(c: &Call) -> Answer<Padding> {
    match c.value("padding")? {
        Some(Value::String(word)) if word == "SAME" => Ok(Padding::Same),
        Some(Value::String(word)) if word == "VALID" => Ok(Padding::Valid),
        // Places that are given are padded before.
        Some(Value::Array(_)) => Ok(Padding::Valid),
        _ => Err(Stop::Lacks("padding".into())),
    }
}

fn convolution(c: &Call) -> Answer<Conv2dOptions> {
    Ok(Conv2dOptions::new()
        .strides(c.two("strides")?.unwrap_or([1, 1]))
        .padding(padding(c)?)
        .dilations(c.two("dilations")?.unwrap_or([1, 1])))
}

fn pool(c: &Call) -> Answer<([usize; 2], Pool2dOptions)> {
    let window = c.need("ksize", c.two("ksize")?)?;
    let strides = c.need("strides", c.two("strides")?)?;
    Ok((window, Pool2dOptions::new().strides(strides).padding(padding(c)?)))
}

/// Python's indexing as ndarray writes it. A negative step goes backwards from its start there, and
/// backwards through an ascending range here. `None` for what is not known.
fn indices(spec: &str, rank: usize) -> Option<Vec<SliceInfoElem>> {
    let all = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let parts: Vec<&str> = spec.split(',').map(str::trim).collect();
    let named = parts.iter().filter(|part| !["...", "tf.newaxis"].contains(part)).count();
    let mut out = Vec::new();
    for part in parts {
        match part {
            "..." => out.extend(vec![all; rank - named]),
            "tf.newaxis" => out.push(SliceInfoElem::NewAxis),
            _ if !part.contains(':') => out.push(SliceInfoElem::Index(part.parse().ok()?)),
            _ => {
                let mut numbers = part.split(':').map(|text| text.parse::<isize>().ok());
                let (start, stop) = (numbers.next()?, numbers.next()?);
                let step = numbers.next().flatten().unwrap_or(1);
                let (start, end) = match step < 0 {
                    true => (stop.map_or(0, |i| i + 1), start.map(|i| i + 1).filter(|&i| i != 0)),
                    false => (start.unwrap_or(0), stop),
                };
                out.push(SliceInfoElem::Slice { start, end, step });
            }
        }
    }
    Some(out)
}
