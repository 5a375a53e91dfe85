//! The calls of the golden cases: the function here for each of TensorFlow's, with the case's arguments.
//!
//! The calls of ops are in the crate's inventory, next to their code. This file has the functions that are not ops.
//!
//! As a rule, one public function of wgrad corresponds to one of TensorFlow's. If a result is composed of several, the call
//! reports this with [`Call::composes`], and the case does not count as run. Layers, optimizers and metrics are in
//! `golden/keras.rs`; functions that wgrad lacks are in `golden/missing.rs`.

use serde_json::Value;
use wgrad::random::{self, Generator};
use wgrad::{
    Conv2dOptions, FusedBatchNormOptions, NormalizationOptions, Padding, Result, Tensor, inventory,
    where_,
};

use super::golden::call::{Answer, Call, Stop, one};
use super::golden::derivatives::{derived, is_derived};

pub type UnaryOp = fn(&Tensor) -> Result<Tensor>;

type AnyOp = fn(&Call) -> Answer;

/// Functions that are not ops of the inventory: random draws, and combinations of several ops.
const FUNCTIONS: &[(&str, AnyOp)] = &[
    ("tf.where", choose),
    // The case multiplies, so that a gradient remains.
    ("tf.stop_gradient", |c| one(c.x()?.multiply(c.x()?.stop_gradient()))),
    ("tf.range", |c| match c.need("args", c.scalars("args")?)?.as_slice() {
        [limit] => one(wgrad::range(0, *limit, 1)),
        [start, limit, delta] => one(wgrad::range(*start, *limit, *delta)),
        _ => Err(Stop::Lacks("args".into())),
    }),
    ("tf.fill", |c| one(Tensor::full(c.need("dims", c.sizes("dims")?)?, float(c, "value")?))),
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

/// The functions in cases of higher derivatives; `tests/data/README.md` has the formulas.
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
    ("batch_norm", |c| {
        c.only("training", true)?;
        c.remark("formula");
        let (x, axes) = (c.x()?, c.axes("axes")?);
        let (mean, variance) = (x.reduce_mean(&axes)?, x.reduce_variance(&axes)?);
        let (offset, scale) = (Some(c.arg("beta")?), Some(c.arg("gamma")?));
        let y = x.batch_normalization(&mean, &variance, offset, scale, float(c, "epsilon")?)?;
        Ok(vec![y, mean, variance])
    }),
    ("fused_batch_norm", |c| {
        c.remark("note");
        let training = c.flag("training")?;
        let mut options =
            FusedBatchNormOptions::new().is_training(training).epsilon(float(c, "epsilon")?);
        if !training {
            options = options.mean(c.arg("mean")?.clone()).variance(c.arg("var")?.clone());
        }
        let [y, mean, variance] =
            c.x()?.fused_batch_norm(c.arg("gamma")?, c.arg("beta")?, options)?;
        Ok(if training { vec![y, mean, variance] } else { vec![y] })
    }),
    ("group_norm", |c| one(c.x()?.group_normalization(c.size("groups")?, affine(c)?))),
    ("rms_norm", |c| {
        let options = NormalizationOptions::new().scale(c.arg("gamma")?.clone());
        one(c.x()?.rms_normalization(-1, options.epsilon(float(c, "epsilon")?)))
    }),
];

/// The options of a normalization with gamma and beta.
fn affine(c: &Call) -> Answer<NormalizationOptions> {
    let (gamma, beta) = (c.arg("gamma")?.clone(), c.arg("beta")?.clone());
    Ok(NormalizationOptions::new().scale(gamma).offset(beta).epsilon(float(c, "epsilon")?))
}

fn find<F: Copy>(table: &[(&str, F)], op: &str) -> Option<F> {
    table.iter().find(|(name, _)| *name == op).map(|(_, f)| *f)
}

/// The outputs of the case's function, in order.
pub fn call(c: &Call) -> Answer {
    let op = c.case.op.as_str();
    if is_derived(c.case) {
        return derived(c);
    }
    if let Some(f) = find(FUNCTIONS, op) {
        return f(c);
    }
    if let Some(entry) = inventory::find(op) {
        return (entry.call)(c);
    }
    match find(FORMULAS, op) {
        Some(f) => {
            // The stored results show how many orders the case has.
            c.remark("order");
            f(c)
        }
        None => Err(Stop::Lacks(String::new())),
    }
}

fn choose(c: &Call) -> Answer {
    if c.case.inputs.len() == 1 && c.case.name != "where_nan_branch" {
        return one(c.arg("cond")?.where_indices());
    }
    let x = c.x()?;
    if c.case.name == "where_nan_branch" {
        return one(where_(&x.greater(0.0)?, &x.log()?, x));
    }
    let entry = inventory::find("tf.where").expect("where_ is in the inventory");
    (entry.call)(c)
}

fn layer_norm(c: &Call) -> Answer {
    let x = c.x()?;
    let axis = c.int("axis")?.unwrap_or(-1);
    if c.case.family != "higher_order" {
        return one(x.layer_normalization(axis, affine(c)?));
    }
    let mean = x.reduce_mean(wgrad::Axes::from(axis).keepdims(true))?;
    let centred = x.subtract(&mean)?;
    // Like tf.nn.moments, which made the case: its variance treats the mean as a constant. That changes the second derivative,
    // but not the first.
    let variance = x
        .squared_difference(mean.stop_gradient())?
        .reduce_mean(wgrad::Axes::from(axis).keepdims(true))?;
    one(centred.multiply(variance.add(float(c, "epsilon")?)?.rsqrt()?))
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

/// Like [`stream`], for a distribution without bounds: the cases have those of a uniform one.
fn standard(c: &Call) -> Answer<(Vec<usize>, [i32; 2])> {
    c.remark("minval");
    c.remark("maxval");
    stream(c)
}

/// A draw from a generator. The cases with the same seed are drawn one after another, each with its own shape.
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

fn float(c: &Call, key: &str) -> Answer<f32> {
    Ok(c.need(key, c.float(key)?)? as f32)
}

fn integers(values: &[i64]) -> Result<Tensor> {
    let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
    Tensor::from_slice(&values, [values.len()])
}
