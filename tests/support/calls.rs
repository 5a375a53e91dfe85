//! The calls of the golden cases: what TensorFlow's function of a case is here, with the case's arguments.

use std::collections::BTreeMap;

use ndarray::SliceInfoElem;
use serde_json::Value;
use wgrad::random::{self, Generator};
use wgrad::{
    Axes, Conv2dOptions, DType, GradientTape, PadMode, Padding, Pool2dOptions, Result, Scalar,
    Tensor, concat, select,
};

use crate::oracle::Case;

/// The arguments of a case: each a tensor, or several where it is a list.
pub type Args = BTreeMap<String, Vec<Tensor>>;

type UnaryOp = fn(&Tensor) -> Result<Tensor>;

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
    ("sin", Tensor::sin),
    ("softplus", Tensor::softplus),
    ("tanh", Tensor::tanh),
    ("sigmoid", Tensor::sigmoid),
    ("exp", Tensor::exp),
    ("square", Tensor::square),
    ("silu", Tensor::silu),
    ("elu", Tensor::elu),
    ("relu", Tensor::relu),
    ("log", Tensor::log),
    ("sqrt", Tensor::sqrt),
    ("reciprocal", Tensor::reciprocal),
    ("rsqrt", Tensor::rsqrt),
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
    ("mul", |x, y| x.multiply(y)),
    ("div", |x, y| x.divide(y)),
    ("pow", |x, y| x.pow(y)),
];

type ReduceOp = fn(&Tensor, Axes, bool) -> Result<Tensor>;

const REDUCE: &[(&str, ReduceOp)] = &[
    ("tf.math.reduce_sum", |x, axes, keep| x.reduce_sum(&axes, keep)),
    ("tf.math.reduce_mean", |x, axes, keep| x.reduce_mean(&axes, keep)),
    ("tf.math.reduce_max", |x, axes, keep| x.reduce_max(&axes, keep)),
    ("tf.math.reduce_min", |x, axes, keep| x.reduce_min(&axes, keep)),
    ("tf.math.reduce_prod", |x, axes, keep| x.reduce_prod(&axes, keep)),
    ("tf.math.reduce_logsumexp", |x, axes, keep| x.reduce_logsumexp(&axes, keep)),
    ("tf.math.reduce_variance", |x, axes, keep| x.reduce_variance(&axes, keep)),
    ("tf.math.reduce_std", |x, axes, keep| x.reduce_std(&axes, keep)),
    ("tf.math.reduce_euclidean_norm", |x, axes, keep| x.reduce_euclidean_norm(&axes, keep)),
    ("tf.math.reduce_any", |x, axes, keep| x.reduce_any(&axes, keep)),
    ("tf.math.reduce_all", |x, axes, keep| x.reduce_all(&axes, keep)),
];

fn find<F: Copy>(table: &[(&str, F)], op: &str) -> Option<F> {
    table.iter().find(|(name, _)| *name == op).map(|(_, f)| *f)
}

/// What the case's function gives, in the order of its outputs; `None` where there is none.
pub fn call(case: &Case, args: &Args) -> Result<Option<Vec<Tensor>>> {
    let arg = |key: &str| match args.get(key) {
        Some(tensors) => &tensors[0],
        None => panic!("{} has no argument {key}", case.name),
    };
    if case.attr("groups").is_some() || case.attr("kind").is_some() || is_third(case) {
        return derived(case, args);
    }
    if let Some(op) = find(UNARY, &case.op) {
        return op(arg("x")).map(|y| Some(vec![y]));
    }
    if let Some(op) = find(BINARY, &case.op) {
        return op(arg("x"), arg("y")).map(|y| Some(vec![y]));
    }
    if let Some(op) = find(REDUCE, &case.op) {
        let keepdims = case.attr_bool("keepdims").unwrap_or(false);
        return op(arg("x"), axes(case, "axis"), keepdims).map(|y| Some(vec![y]));
    }
    let x = args.get("x").map(|x| &x[0]);
    let y = match (case.op.as_str(), x) {
        ("tf.nn.gelu", Some(x)) => x.gelu(case.attr_bool("approximate").unwrap()),
        ("gelu", Some(x)) => x.gelu(false),
        ("tf.nn.leaky_relu", Some(x)) => x.leaky_relu(float(case, "alpha")),
        ("keras.activations.elu", Some(x)) => {
            select(&x.greater(0.0)?, x, &x.elu()?.multiply(float(case, "alpha"))?)
        }
        ("tf.cast", Some(x)) => x.cast(match case.attr_str("dtype").unwrap() {
            "float32" => DType::F32,
            "int32" => DType::I32,
            "bool" => DType::Bool,
            other => panic!("no reader for {other}"),
        }),
        ("tf.where", _) if case.name == "where_nan_branch" => {
            let x = arg("x");
            select(&x.greater(0.0)?, &x.log()?, x)
        }
        ("tf.where", Some(x)) => select(arg("cond"), x, arg("y")),
        _ => return call_reduction(case, args),
    };
    y.map(|y| Some(vec![y]))
}

fn call_reduction(case: &Case, args: &Args) -> Result<Option<Vec<Tensor>>> {
    let Some(x) = args.get("x").map(|x| &x[0]) else { return call_products(case, args) };
    let y = match case.op.as_str() {
        "tf.math.argmax" => x.argmax(case.attr_i64("axis").unwrap()),
        "tf.math.argmin" => x.argmin(case.attr_i64("axis").unwrap()),
        "tf.math.count_nonzero" => {
            x.not_equal(0.0)?.cast(DType::I32)?.reduce_sum(axes(case, "axis"), false)
        }
        "tf.norm" => norm(x, case.attr_str("ord").unwrap(), &axes(case, "axis")),
        "tf.math.l2_normalize" => {
            let squares = x.square()?.reduce_sum(axes(case, "axis"), true)?;
            x.multiply(squares.maximum(float(case, "epsilon"))?.rsqrt()?)
        }
        "tf.nn.moments" => {
            let axes = axes(case, "axes");
            return Ok(Some(vec![x.reduce_mean(&axes, false)?, x.reduce_variance(&axes, false)?]));
        }
        "tf.nn.softmax" | "softmax" => x.softmax(case.attr_i64("axis").unwrap_or(-1)),
        "tf.nn.log_softmax" | "log_softmax" => x.log_softmax(case.attr_i64("axis").unwrap_or(-1)),
        "sum_sq" => (x * x).reduce_sum((), false),
        "mean_exp" => x.exp()?.reduce_mean((), false),
        "reduce_max" => (x * x).reduce_max(1, false),
        "cube" => x.pow(3.0),
        "log(1+exp(x))" if case.attr_bool("custom_gradient") == Some(false) => {
            return derived(case, args);
        }
        _ => return call_products(case, args),
    };
    y.map(|y| Some(vec![y]))
}

fn call_products(case: &Case, args: &Args) -> Result<Option<Vec<Tensor>>> {
    let arg = |key: &str| match args.get(key) {
        Some(tensors) => &tensors[0],
        None => panic!("{} has no argument {key}", case.name),
    };
    let y = match case.op.as_str() {
        "tf.linalg.matmul" => arg("a").matmul_transposed(
            arg("b"),
            case.attr_bool("transpose_a").unwrap_or(false),
            case.attr_bool("transpose_b").unwrap_or(false),
        ),
        "tf.linalg.matvec" => arg("a").matvec(arg("b")),
        "matmul" => arg("a").matmul(arg("b")),
        "reduce_sum(matmul^2)" => arg("a").matmul(arg("b"))?.square()?.reduce_sum((), false),
        "tanh(x@w1)@w2" => {
            let hidden = arg("x").matmul(arg("w1"))?.tanh()?;
            hidden.matmul(arg("w2"))?.square()?.reduce_mean((), false)
        }
        "tf.nn.conv2d" => convolve(case, arg("x"), arg("w")),
        "tf.nn.depthwise_conv2d" => arg("x").depthwise_conv2d(arg("w"), conv2d_options(case)),
        "tf.nn.separable_conv2d" => {
            let pointwise = Conv2dOptions::default();
            let channels = arg("x").depthwise_conv2d(arg("dw"), conv2d_options(case))?;
            channels.conv2d(arg("pw"), pointwise)
        }
        "conv2d SAME" => {
            let same = Conv2dOptions { padding: Padding::Same, ..Default::default() };
            arg("x").conv2d(arg("w"), same)
        }
        "tf.nn.bias_add" => arg("x").add(arg("b")),
        "tf.nn.max_pool2d" => arg("x").max_pool2d(pool_options(case)),
        "tf.nn.avg_pool2d" => arg("x").avg_pool2d(pool_options(case)),
        "tf.nn.softmax_cross_entropy_with_logits" => {
            wgrad::softmax_cross_entropy_with_logits(arg("labels"), arg("logits"))
        }
        "tf.nn.sparse_softmax_cross_entropy_with_logits" => {
            wgrad::sparse_softmax_cross_entropy_with_logits(arg("labels"), arg("logits"))
        }
        "tf.nn.sigmoid_cross_entropy_with_logits" => {
            wgrad::sigmoid_cross_entropy_with_logits(arg("labels"), arg("logits"))
        }
        "sparse xent" => {
            let labels = ints(&case.attr_i64_list("labels").unwrap())?;
            wgrad::sparse_softmax_cross_entropy_with_logits(&labels, arg("x"))
        }
        "layer_norm" => {
            let x = arg("x");
            let mean = x.reduce_mean(-1, true)?;
            let centred = x.subtract(&mean)?;
            // As tf.nn.moments, which the case was made with: its variance takes the mean for a constant.
            // That changes no first derivative, but the second one.
            let variance = x.squared_difference(mean.stop_gradient())?.reduce_mean(-1, true)?;
            centred.multiply(variance.add(float(case, "epsilon"))?.rsqrt()?)
        }
        "tf.nn.embedding_lookup" => arg("params").gather(arg("ids"), 0),
        "tf.gather" => arg("params").gather_batch(
            arg("indices"),
            case.attr_i64("axis").unwrap_or(0),
            case.attr_i64("batch_dims").unwrap_or(0) as usize,
        ),
        "gather" => {
            let x = arg("x");
            (x * x).gather(&ints(&case.attr_i64_list("indices").unwrap())?, 0)
        }
        "tf.math.unsorted_segment_sum" => {
            let segments = case.attr_i64("num_segments").unwrap() as usize;
            arg("x").unsorted_segment_sum(arg("ids"), segments)
        }
        "tf.one_hot" => {
            let (on, off) = (float(case, "on_value"), float(case, "off_value"));
            let depth = case.attr_i64("depth").unwrap() as usize;
            let rows = wgrad::one_hot(arg("x"), depth, on, off)?;
            match case.attr_i64("axis").unwrap() {
                -1 => Ok(rows),
                _ => rows.transpose(&[2, 0, 1]),
            }
        }
        _ => return call_array(case, args),
    };
    y.map(|y| Some(vec![y]))
}

fn call_array(case: &Case, args: &Args) -> Result<Option<Vec<Tensor>>> {
    let x = || &args["x"][0];
    let list = |key: &str| -> Vec<&Tensor> { args[key].iter().collect() };
    let axis = || case.attr_i64("axis").unwrap();
    let sizes = |key: &str| -> Vec<usize> {
        case.attr_i64_list(key).unwrap().iter().map(|&n| n as usize).collect()
    };
    let y = match case.op.as_str() {
        "tf.concat" => concat(&list("xs"), axis()),
        "tf.stack" => wgrad::stack(&list("xs"), axis()),
        "tf.math.add_n" => wgrad::add_n(&list("xs")),
        "tf.unstack" => return x().unstack(axis()).map(Some),
        "tf.split" => {
            return split(x(), case.attr("num_or_size_splits").unwrap(), axis()).map(Some);
        }
        "tf.slice" => x().slice(&sizes("begin"), &case.attr_i64_list("size").unwrap()),
        "tensor[...]" => x().strided_slice(indices(case.attr_str("spec").unwrap(), x().rank())),
        "tf.pad" => {
            let pairs: Vec<(usize, usize)> = pairs(case, "paddings");
            let mode = match case.attr_str("mode").unwrap() {
                "CONSTANT" => PadMode::Constant(float(case, "constant_values").into()),
                "REFLECT" => PadMode::Reflect,
                "SYMMETRIC" => PadMode::Symmetric,
                other => panic!("no reader for {other}"),
            };
            x().pad(&pairs, mode)
        }
        "tf.tile" => x().tile(&sizes("multiples")),
        "tf.reverse" => x().reverse(&case.attr_i64_list("axis").unwrap()),
        "tf.transpose" => x().transpose(&case.attr_i64_list("perm").unwrap_or_default()),
        "tf.reshape" => x().reshape(case.attr_i64_list("shape").unwrap()),
        "tf.expand_dims" => x().expand_dims(axis()),
        "tf.squeeze" => x().squeeze(&case.attr_i64_list("axis").unwrap_or_default()),
        "tf.broadcast_to" => x().broadcast_to(sizes("shape")),
        "tf.range" => {
            let args: Vec<Scalar> =
                case.attr("args").unwrap().as_array().unwrap().iter().map(scalar).collect();
            match args[..] {
                [limit] => Tensor::arange(0, limit, 1),
                [start, limit, delta] => Tensor::arange(start, limit, delta),
                _ => panic!("{} arguments", args.len()),
            }
        }
        "tf.linspace" => {
            let args = case.attr_f64_list("args").unwrap();
            let step = (args[1] - args[0]) / (args[2] - 1.0).max(1.0);
            Tensor::arange(0, args[2] as i64, 1)?.cast(DType::F32)?.multiply(step)?.add(args[0])
        }
        "tf.eye" => wgrad::eye_of(sizes("num_rows")[0], sizes("num_columns")[0]),
        "tf.fill" => Tensor::full(sizes("dims"), float(case, "value")),
        "tf.clip_by_value" => x().clip_by_value(float(case, "min"), float(case, "max")),
        "tf.stop_gradient" => x().multiply(x().stop_gradient()),
        "x*x + x" => Ok(x() * x() + x()),
        _ => return call_random(case),
    };
    y.map(|y| Some(vec![y]))
}

fn call_random(case: &Case) -> Result<Option<Vec<Tensor>>> {
    let shape: Vec<usize> =
        case.attr_i64_list("shape").unwrap_or_default().iter().map(|&n| n as usize).collect();
    let seed = || -> [i32; 2] {
        let seed = case.attr_i64_list("seed").unwrap();
        [seed[0] as i32, seed[1] as i32]
    };
    let y = match case.op.as_str() {
        "tf.random.stateless_uniform" => {
            match (case.attr("minval").map(scalar), case.attr("maxval").map(scalar)) {
                // The unit range is given as integers too.
                (Some(Scalar::Int(low)), Some(Scalar::Int(high))) if (low, high) != (0, 1) => {
                    random::stateless_uniform_int(shape, seed(), low as i32, high as i32)
                }
                _ => random::stateless_uniform(
                    shape,
                    seed(),
                    float(case, "minval"),
                    float(case, "maxval"),
                ),
            }
        }
        "tf.random.stateless_normal" => random::stateless_normal(shape, seed()),
        "tf.random.stateless_truncated_normal" => random::stateless_truncated_normal(shape, seed()),
        "tf.random.Generator.uniform" | "tf.random.Generator.normal" => {
            let generator = Generator::from_seed(case.attr_i64("from_seed").unwrap() as u64);
            let draws = [
                generator.uniform(&shape[..])?,
                generator.normal(&shape[..])?,
                generator.uniform(&shape[..])?,
            ];
            let at = ["generator_uniform", "generator_normal", "generator_uniform_2"];
            let at = at.iter().position(|name| *name == case.name).unwrap();
            Ok(draws[at].clone())
        }
        _ => return Ok(None),
    };
    y.map(|y| Some(vec![y]))
}

/// Third derivatives, Hessians and Jacobians, by tapes within tapes.
fn derived(case: &Case, args: &Args) -> Result<Option<Vec<Tensor>>> {
    let x = &args["x"][0];
    let f: UnaryOp = match case.op.as_str() {
        "x4" => |x| x.pow(4.0),
        "sin" => Tensor::sin,
        "reduce_logsumexp" => |x| x.reduce_logsumexp((), false),
        "softmax" => |x| x.softmax(-1),
        "log(1+exp(x))" => |x| x.exp()?.add(1.0)?.log(),
        "x0^2*x1 + sin(x1)" => |x| {
            let parts = x.unstack(0)?;
            Ok(parts[0].square()? * &parts[1] + parts[1].sin()?)
        },
        "sum(100(x[1:]-x[:-1]^2)^2 + (1-x[:-1])^2)" => |x| {
            let (next, own) =
                (x.strided_slice(ndarray::s![1..])?, x.strided_slice(ndarray::s![..-1])?);
            let valley = (next - own.square()?).square()? * 100.0;
            (valley + (1.0 - own).square()?).reduce_sum((), false)
        },
        _ => return Ok(None),
    };
    if is_third(case) {
        return derivatives(f, x, 3).map(Some);
    }
    if case.attr("kind").is_none() {
        return derivatives(f, x, 1).map(Some);
    }
    let outer = GradientTape::persistent();
    outer.watch(x)?;
    if case.attr_str("kind") == Some("hessian") {
        let parts = derivatives(f, x, 1)?;
        let rows = rows_of_jacobian(&outer, &parts[1], x)?;
        return Ok(Some(vec![parts[0].clone(), parts[1].clone(), rows]));
    }
    let y = f(x)?;
    let [n, m] = [x.shape()[0], x.shape()[1]];
    let jacobian =
        rows_of_jacobian(&outer, &y, x)?.reshape([n as i64, m as i64, n as i64, m as i64])?;
    let own: Result<Vec<Tensor>> =
        (0..n as isize).map(|i| jacobian.strided_slice(ndarray::s![i, .., i, ..])).collect();
    let batch = wgrad::stack(&own?.iter().collect::<Vec<_>>(), 0)?;
    Ok(Some(vec![y, jacobian, batch]))
}

/// f(x) and its derivatives up to `order`, each the gradient of the one before from ones.
fn derivatives(f: UnaryOp, x: &Tensor, order: usize) -> Result<Vec<Tensor>> {
    if order == 0 {
        return Ok(vec![f(x)?]);
    }
    let tape = GradientTape::new();
    tape.watch(x)?;
    let mut all = derivatives(f, x, order - 1)?;
    let next = tape.gradient(&all[order - 1], x)?.expect("connected");
    all.push(next);
    Ok(all)
}

/// d y[i] / d x for every element of y, one after another.
fn rows_of_jacobian(tape: &wgrad::PersistentTape, y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let shape: Vec<i64> = y.shape().iter().map(|&n| n as i64).collect();
    let rows: Result<Vec<Tensor>> = (0..y.len() as i32)
        .map(|i| {
            let seed = wgrad::one_hot(&Tensor::scalar(i)?, y.len(), 1.0, 0.0)?.reshape(&shape)?;
            Ok(tape.gradient_from(y, Some(&[&seed]), x)?.expect("connected"))
        })
        .collect();
    wgrad::stack(&rows?.iter().collect::<Vec<_>>(), 0)
}

fn is_third(case: &Case) -> bool {
    case.attrs.get("order").and_then(Value::as_i64) == Some(3)
}

fn axes(case: &Case, key: &str) -> Axes {
    match case.attr_i64_list(key) {
        Some(list) => Axes::from(&list[..]),
        None => Axes::ALL,
    }
}

fn float(case: &Case, key: &str) -> f32 {
    case.attr_f64(key).unwrap_or_else(|| panic!("{} has no {key}", case.name)) as f32
}

fn scalar(value: &Value) -> Scalar {
    match value.as_i64() {
        Some(v) => Scalar::Int(v),
        None => Scalar::Float(value.as_f64().unwrap()),
    }
}

fn ints(values: &[i64]) -> Result<Tensor> {
    let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
    Tensor::from_slice(&values, [values.len()])
}

fn pairs(case: &Case, key: &str) -> Vec<(usize, usize)> {
    let rows = case.attr_i64_rows(key).unwrap();
    rows.iter().map(|row| (row[0] as usize, row[1] as usize)).collect()
}

/// One number for both axes, or one for each.
fn two(case: &Case, key: &str) -> Option<[usize; 2]> {
    let list = case.attr_i64_list(key)?;
    Some([list[0] as usize, *list.last().unwrap() as usize])
}

fn padding(case: &Case) -> Padding {
    // Places that are given are padded before.
    match case.attr("padding").and_then(Value::as_str) {
        Some("SAME") => Padding::Same,
        _ => Padding::Valid,
    }
}

fn pool_options(case: &Case) -> Pool2dOptions {
    let [window, strides] = [two(case, "ksize").unwrap(), two(case, "strides").unwrap()];
    Pool2dOptions { window, strides, padding: padding(case) }
}

fn convolve(case: &Case, x: &Tensor, w: &Tensor) -> Result<Tensor> {
    if case.attr("padding").is_some_and(Value::is_array) {
        let padded = x.pad(&pairs(case, "padding"), PadMode::Constant(0.into()))?;
        return padded.conv2d(w, conv2d_options(case));
    }
    x.conv2d(w, conv2d_options(case))
}

fn conv2d_options(case: &Case) -> Conv2dOptions {
    Conv2dOptions {
        strides: two(case, "strides").unwrap_or([1, 1]),
        padding: padding(case),
        dilations: two(case, "dilations").unwrap_or([1, 1]),
    }
}

fn norm(x: &Tensor, ord: &str, axes: &Axes) -> Result<Tensor> {
    match ord {
        "euclidean" | "2" => x.reduce_euclidean_norm(axes, false),
        "1" => x.abs()?.reduce_sum(axes, false),
        "inf" => x.abs()?.reduce_max(axes, false),
        _ => {
            let p: f64 = ord.parse().unwrap();
            x.abs()?.pow(p)?.reduce_sum(axes, false)?.pow(1.0 / p)
        }
    }
}

fn split(x: &Tensor, parts: &Value, axis: i64) -> Result<Vec<Tensor>> {
    let Some(sizes) = parts.as_array() else {
        return x.split(parts.as_u64().unwrap() as usize, axis);
    };
    let at = if axis < 0 { x.rank() as i64 + axis } else { axis } as usize;
    let sizes: Vec<i64> = sizes.iter().map(|v| v.as_i64().unwrap()).collect();
    let known: i64 = sizes.iter().filter(|&&n| n >= 0).sum();
    let rest = x.shape()[at] as i64 - known;
    let sizes: Vec<usize> = sizes.iter().map(|&n| if n < 0 { rest } else { n } as usize).collect();
    x.split_sizes(&sizes, axis)
}

/// Python's indexing as ndarray writes it. A negative step goes backwards from its start there, and
/// backwards through an ascending range here.
fn indices(spec: &str, rank: usize) -> Vec<SliceInfoElem> {
    let all = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let parts: Vec<&str> = spec.split(',').map(str::trim).collect();
    let named = parts.iter().filter(|part| !["...", "tf.newaxis"].contains(part)).count();
    let mut out = Vec::new();
    for part in parts {
        match part {
            "..." => out.extend(vec![all; rank - named]),
            "tf.newaxis" => out.push(SliceInfoElem::NewAxis),
            _ if !part.contains(':') => out.push(SliceInfoElem::Index(part.parse().unwrap())),
            _ => {
                let mut numbers = part.split(':').map(|text| text.parse::<isize>().ok());
                let (start, stop) = (numbers.next().unwrap(), numbers.next().unwrap());
                let step = numbers.next().flatten().unwrap_or(1);
                let (start, end) = match step < 0 {
                    true => (stop.map_or(0, |i| i + 1), start.map(|i| i + 1).filter(|&i| i != 0)),
                    false => (start.unwrap_or(0), stop),
                };
                out.push(SliceInfoElem::Slice { start, end, step });
            }
        }
    }
    out
}
