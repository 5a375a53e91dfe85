//! Every gradient rule against central differences, first and second order, and what a tape promises besides.

#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use ndarray::s;
use wgrad::random::Generator;
use wgrad::{
    Axes, Conv2dOptions, DType, Error, GradientTape, PadMode, Padding, Pool2dOptions, Result,
    Tensor, Variable, concat, constant, f16, where_,
};

/// What the elements of an input are.
#[derive(Clone, Copy)]
enum Values {
    /// Uniform between two numbers.
    Within(f32, f32),
    /// Of either sign, 0.5 to 1.5 away from 0.
    Away,
    /// Multiples of 0.2 in random order, moved by this: no two are so near that the steps reach across.
    Distinct(f32),
}
use Values::{Away, Distinct, Within};

const ANY: Values = Within(-1.5, 1.5);
const POSITIVE: Values = Within(0.4, 2.0);

type Input = (&'static [usize], Values);
type Function = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// A function whose gradients are checked. The name starts with that of the method.
struct Rule {
    name: String,
    inputs: Vec<Input>,
    f: Function,
    /// Whether the second order is checked too.
    second: bool,
}

fn rule(
    name: impl Into<String>,
    inputs: &[Input],
    f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Rule {
    Rule { name: name.into(), inputs: inputs.to_vec(), f: Box::new(f), second: true }
}

/// A rule of one input of shape [3, 5], which is no whole number of vectors.
fn of_one(name: &str, values: Values, f: fn(&Tensor) -> Result<Tensor>) -> Rule {
    rule(name, &[(&[3, 5], values)], move |x| f(&x[0]))
}

/// Random numbers on the host, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }

    fn sign(&mut self) -> f64 {
        if self.next() < 0.5 { -1.0 } else { 1.0 }
    }

    fn values(&mut self, (shape, values): Input) -> Vec<f32> {
        let n: usize = shape.iter().product();
        match values {
            Within(low, high) => {
                (0..n).map(|_| self.between(f64::from(low), f64::from(high)) as f32).collect()
            }
            Away => (0..n).map(|_| (self.sign() * self.between(0.5, 1.5)) as f32).collect(),
            Distinct(by) => {
                let mut places: Vec<usize> = (0..n).collect();
                for i in (1..n).rev() {
                    places.swap(i, (self.next() * (i + 1) as f64) as usize);
                }
                let middle = (n / 2) as f32;
                places.iter().map(|&place| (place as f32 - middle) * 0.2 + by).collect()
            }
        }
    }
}

/// The step of the differences; a power of two, so that few bits are lost in adding it.
const STEP: f64 = 1.0 / 64.0;

/// The fourth-order difference (8 (f(1) - f(-1)) - (f(2) - f(-2))) / 12 h is off by h^4 / 30 = 2e-9 times the fifth
/// derivative, which is some thousands for quotients by small numbers. Beside that there is rounding: a step or
/// two of f32 in each element, 2e-7, over h make 1e-5 of the size of what is added up. A wrong rule is off by
/// far more than ten times that.
const TOLERANCE: f64 = 1e-4;

fn difference(mut f: impl FnMut(f64) -> Result<f64>) -> Result<f64> {
    let near = f(1.0)? - f(-1.0)?;
    let far = f(2.0)? - f(-2.0)?;
    Ok((8.0 * near - far) / (12.0 * STEP))
}

fn dot(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * b).sum()
}

/// The sum of the sizes of what [`dot`] adds.
fn size(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) * b).abs()).sum()
}

fn upload(shape: &[usize], values: &[f64]) -> Result<Tensor> {
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_slice(&values, shape)
}

struct Checked<'a> {
    rule: &'a Rule,
    start: Vec<Vec<f32>>,
    /// Of the result, for the loss `sum(y * weights)`.
    weights: Vec<f64>,
    /// Of the first gradients, for the second order.
    weights2: Vec<Vec<f64>>,
}

impl Checked<'_> {
    /// The inputs moved by `by` steps along `direction`.
    fn inputs(&self, direction: &[Vec<f64>], by: f64) -> Result<Vec<Tensor>> {
        let moved = self.start.iter().zip(direction).zip(&self.rule.inputs);
        moved
            .map(|((start, direction), (shape, _))| {
                let values: Vec<f64> = start
                    .iter()
                    .zip(direction)
                    .map(|(&x, v)| f64::from(x) + by * STEP * v)
                    .collect();
                upload(shape, &values)
            })
            .collect()
    }

    fn loss_at(&self, direction: &[Vec<f64>], by: f64) -> Result<f64> {
        let y = (self.rule.f)(&self.inputs(direction, by)?)?;
        Ok(dot(&y.to_vec::<f32>()?, &self.weights))
    }

    /// The gradients of y, or those of y + y^2, whose own gradients reach every rule of a backward pass: from
    /// the gradient of a linear function no path leads back to its input.
    fn gradients(&self, x: &[Tensor], curved: bool) -> Result<Vec<Option<Tensor>>> {
        let tape = GradientTape::new();
        x.iter().try_for_each(|x| tape.watch(x))?;
        let mut y = (self.rule.f)(x)?;
        if curved {
            y = &y + y.square()?;
        }
        let weights = upload(y.shape(), &self.weights)?;
        tape.gradient_from(&y, Some(&[&weights]), x)
    }

    /// The first gradients of y + y^2 times their weights.
    fn slope_at(&self, direction: &[Vec<f64>], by: f64) -> Result<f64> {
        let grads = self.gradients(&self.inputs(direction, by)?, true)?;
        let mut sum = 0.0;
        for (grad, weights) in grads.iter().zip(&self.weights2) {
            if let Some(grad) = grad {
                sum += dot(&grad.to_vec::<f32>()?, weights);
            }
        }
        Ok(sum)
    }

    fn second_gradients(&self, x: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let tape = GradientTape::new();
        x.iter().try_for_each(|x| tape.watch(x))?;
        let grads = self.gradients(x, true)?;
        let mut targets = Vec::new();
        let mut seeds = Vec::new();
        for (grad, weights) in grads.iter().zip(&self.weights2) {
            if let Some(grad) = grad {
                targets.push(grad);
                seeds.push(upload(grad.shape(), weights)?);
            }
        }
        tape.gradient_from(&targets[..], Some(&seeds.iter().collect::<Vec<_>>()), x)
    }
}

fn check(rule: &Rule) -> Result<Vec<String>> {
    let mut numbers = Numbers(rule.name.len() as u64 * 7 + 11);
    let start: Vec<Vec<f32>> = rule.inputs.iter().map(|input| numbers.values(*input)).collect();
    let none: Vec<Vec<f64>> = start.iter().map(|x| vec![0.0; x.len()]).collect();
    let mut checked = Checked { rule, start, weights: Vec::new(), weights2: Vec::new() };
    let x = checked.inputs(&none, 0.0)?;
    let y = (rule.f)(&x)?;
    checked.weights = (0..y.len()).map(|_| numbers.between(0.5, 1.5) * numbers.sign()).collect();
    checked.weights2 = none
        .iter()
        .map(|x| x.iter().map(|_| numbers.between(0.5, 1.5) * numbers.sign()).collect())
        .collect();

    let first = read(&checked.gradients(&x, false)?, &rule.inputs)?;
    let of_loss = size(&y.to_vec::<f32>()?, &checked.weights);
    let curved = read(&checked.gradients(&x, true)?, &rule.inputs)?;
    let of_slope: f64 = curved.iter().zip(&checked.weights2).map(|(g, w)| size(g, w)).sum();
    let second = match rule.second {
        true => read(&checked.second_gradients(&x)?, &rule.inputs)?,
        false => Vec::new(),
    };
    let mut failures = Vec::new();
    for _ in 0..3 {
        let direction: Vec<Vec<f64>> =
            none.iter().map(|x| x.iter().map(|_| numbers.sign()).collect()).collect();
        let mut compare = |order: &str, grads: &[Vec<f32>], scale: f64, want: f64| {
            let got: f64 = grads.iter().zip(&direction).map(|(g, v)| dot(g, v)).sum();
            let scale = scale + grads.iter().zip(&direction).map(|(g, v)| size(g, v)).sum::<f64>();
            let off = (got - want).abs();
            // NaN is a miss.
            if off > TOLERANCE * scale || off.is_nan() {
                let name = &rule.name;
                failures.push(format!(
                    "{name}, {order}: the tape gives {got:.6}, differences {want:.6}, of a size {scale:.3}"
                ));
            }
        };
        compare("first order", &first, of_loss, difference(|by| checked.loss_at(&direction, by))?);
        if rule.second {
            let want = difference(|by| checked.slope_at(&direction, by))?;
            compare("second order", &second, of_slope, want);
        }
    }
    Ok(failures)
}

/// The gradients on the host, with the shapes of the inputs; zeros where there is none.
fn read(grads: &[Option<Tensor>], inputs: &[Input]) -> Result<Vec<Vec<f32>>> {
    let each = grads.iter().zip(inputs).map(|(grad, (shape, _))| match grad {
        Some(grad) => {
            assert_eq!(grad.shape(), *shape, "the shape of a gradient");
            grad.to_vec::<f32>()
        }
        None => Ok(vec![0.0; shape.iter().product()]),
    });
    each.collect()
}

fn check_all(rules: Vec<Rule>) {
    let mut failures = Vec::new();
    for rule in &rules {
        match catch_unwind(AssertUnwindSafe(|| check(rule))) {
            Ok(Ok(misses)) => failures.extend(misses),
            Ok(Err(error)) => failures.push(format!("{}: {error}", rule.name)),
            Err(_) => failures.push(format!("{}: it panicked", rule.name)),
        }
    }
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
}

fn unary_rules() -> Vec<Rule> {
    vec![
        of_one("abs", Away, Tensor::abs),
        of_one("negative", ANY, Tensor::negative),
        of_one("exp", ANY, Tensor::exp),
        of_one("expm1", ANY, Tensor::expm1),
        of_one("log", POSITIVE, Tensor::log),
        of_one("log1p", Within(-0.5, 2.0), Tensor::log1p),
        of_one("sqrt", POSITIVE, Tensor::sqrt),
        of_one("rsqrt", POSITIVE, Tensor::rsqrt),
        of_one("square", ANY, Tensor::square),
        of_one("reciprocal", Away, Tensor::reciprocal),
        of_one("sin", ANY, Tensor::sin),
        of_one("cos", ANY, Tensor::cos),
        of_one("tan", Within(-0.9, 0.9), Tensor::tan),
        of_one("asin", Within(-0.7, 0.7), Tensor::asin),
        of_one("acos", Within(-0.7, 0.7), Tensor::acos),
        of_one("atan", ANY, Tensor::atan),
        of_one("sinh", ANY, Tensor::sinh),
        of_one("cosh", ANY, Tensor::cosh),
        of_one("tanh", ANY, Tensor::tanh),
        of_one("asinh", ANY, Tensor::asinh),
        of_one("acosh", Within(1.5, 3.0), Tensor::acosh),
        of_one("atanh", Within(-0.6, 0.6), Tensor::atanh),
        of_one("sigmoid", Within(-3.0, 3.0), Tensor::sigmoid),
        of_one("softplus", Within(-3.0, 3.0), Tensor::softplus),
        of_one("relu", Away, Tensor::relu),
        of_one("elu", Away, Tensor::elu),
        of_one("selu", Away, Tensor::selu),
        of_one("softsign", Away, Tensor::softsign),
        of_one("erf", ANY, Tensor::erf),
        of_one("erfc", ANY, Tensor::erfc),
        of_one("sign", Away, Tensor::sign),
        of_one("silu", Within(-3.0, 3.0), Tensor::silu),
        of_one("log_sigmoid", Within(-3.0, 3.0), Tensor::log_sigmoid),
        of_one("relu6", Distinct(0.1), |x| x.multiply(8.0)?.relu6()),
        of_one("leaky_relu", Away, |x| x.leaky_relu(0.2)),
        of_one("mean", ANY, Tensor::mean),
        of_one("sum", ANY, |x| x.sum(-1)),
        of_one("gelu", ANY, Tensor::gelu),
        of_one("gelu_with tanh", ANY, |x| x.gelu_with(wgrad::GeluOptions::new().approximate(true))),
        of_one("mish", ANY, Tensor::mish),
        of_one("hard_sigmoid", ANY, Tensor::hard_sigmoid),
        of_one("clip_by_value", Distinct(0.0), |x| x.clip_by_value(-0.3, 0.3)),
        of_one("dropout", ANY, |x| x.dropout(0.4, &Generator::from_seed(5))),
        of_one("softmax", ANY, |x| x.softmax(-1)),
        of_one("softmax of columns", ANY, |x| x.softmax(0)),
        of_one("log_softmax", ANY, |x| x.log_softmax(-1)),
        of_one("log_softmax of columns", ANY, |x| x.log_softmax(0)),
        rule("exp of a scalar", &[(&[], ANY)], |x| x[0].exp()),
        of_one("a tensor used thrice", ANY, |x| Ok(x * x * x.sin()? + x)),
    ]
}

type BinaryOp = fn(&Tensor, &Tensor) -> Result<Tensor>;

fn binary_rules() -> Vec<Rule> {
    let ops: [(&str, Values, Values, BinaryOp); 14] = [
        ("add", ANY, ANY, |a, b| a.add(b)),
        ("subtract", ANY, ANY, |a, b| a.subtract(b)),
        ("multiply", ANY, ANY, |a, b| a.multiply(b)),
        ("real_divide", ANY, Away, |a, b| a.real_divide(b)),
        ("divide", ANY, POSITIVE, |a, b| a.divide(b)),
        ("divide_no_nan", ANY, Away, |a, b| a.divide_no_nan(b)),
        // The quotients stay between 3/4 and 6/7, or between 5/4 and 10/7 below 0: off the whole numbers.
        ("floormod", Within(6.0, 6.2), Within(1.6, 1.9), |a, b| a.floormod(b)),
        ("pow", POSITIVE, ANY, |a, b| a.pow(b)),
        ("maximum", Distinct(0.0), Distinct(0.1), |a, b| a.maximum(b)),
        ("minimum", Distinct(0.0), Distinct(0.1), |a, b| a.minimum(b)),
        ("squared_difference", ANY, ANY, |a, b| a.squared_difference(b)),
        ("atan2", Away, Away, |a, b| a.atan2(b)),
        ("xlogy", Away, POSITIVE, |a, b| a.xlogy(b)),
        ("where_", ANY, ANY, |a, b| where_(&constant([[true], [false], [true]])?, a, b)),
    ];
    let shapes: [(&str, &'static [usize], &'static [usize]); 5] = [
        ("of one shape", &[3, 5], &[3, 5]),
        ("with a row on the right", &[3, 5], &[5]),
        ("with a column on the left", &[3, 1], &[3, 5]),
        ("with both spread", &[3, 1], &[2, 1, 5]),
        ("with a scalar on the left", &[], &[3, 5]),
    ];
    let mut rules = Vec::new();
    for (name, a, b, f) in ops {
        for (how, left, right) in shapes {
            rules.push(rule(format!("{name} {how}"), &[(left, a), (right, b)], move |x| {
                f(&x[0], &x[1])
            }));
        }
    }
    rules.push(rule("pow of a negative base", &[(&[3, 5], Away)], |x| x[0].pow(3.0)));
    rules.push(rule("multiply with itself", &[(&[3, 5], ANY)], |x| x[0].multiply(&x[0])));
    rules.push(rule("subtract from a number", &[(&[3, 5], ANY)], |x| Ok(2.0 - x[0].square()?)));
    rules
}

type ReduceOp = fn(&Tensor, Axes, bool) -> Result<Tensor>;

fn reduction_rules() -> Vec<Rule> {
    let ops: [(&str, Values, ReduceOp); 9] = [
        ("reduce_sum", ANY, |x, axes, keep| x.reduce_sum(wgrad::Axes::from(&axes).keepdims(keep))),
        ("reduce_mean", ANY, |x, axes, keep| {
            x.reduce_mean(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_prod", Away, |x, axes, keep| {
            x.reduce_prod(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_max", Distinct(0.0), |x, axes, keep| {
            x.reduce_max(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_min", Distinct(0.0), |x, axes, keep| {
            x.reduce_min(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_variance", ANY, |x, axes, keep| {
            x.reduce_variance(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_std", ANY, |x, axes, keep| x.reduce_std(wgrad::Axes::from(&axes).keepdims(keep))),
        ("reduce_euclidean_norm", ANY, |x, axes, keep| {
            x.reduce_euclidean_norm(wgrad::Axes::from(&axes).keepdims(keep))
        }),
        ("reduce_logsumexp", ANY, |x, axes, keep| {
            x.reduce_logsumexp(wgrad::Axes::from(&axes).keepdims(keep))
        }),
    ];
    let over: [(&str, Axes, bool); 5] = [
        ("over all", Axes::ALL, false),
        ("over all, kept", Axes::ALL, true),
        ("over the middle", Axes::from(1), false),
        ("over the ends, kept", Axes::from([0, -1]), true),
        ("over the last", Axes::from(-1), false),
    ];
    let mut rules = Vec::new();
    for (name, values, f) in ops {
        for (how, axes, keep) in over.clone() {
            rules.push(rule(format!("{name} {how}"), &[(&[2, 3, 4], values)], move |x| {
                f(&x[0], axes.clone(), keep)
            }));
        }
    }
    let mut with_zeros = rule("reduce_prod with a zero", &[(&[2, 3], Away)], |x| {
        let spared = constant([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])?;
        x[0].multiply(spared)?.reduce_prod(1)
    });
    with_zeros.second = false;
    rules.push(with_zeros);
    rules
}

fn product_rules() -> Vec<Rule> {
    let mut rules = Vec::new();
    // Rows, inner size and columns differ, so that a transpose too many does not fit.
    let shapes: [[&'static [usize]; 4]; 3] = [
        [&[3, 4], &[4, 3], &[4, 2], &[2, 4]],
        [&[2, 1, 3, 4], &[2, 1, 4, 3], &[3, 4, 2], &[3, 2, 4]],
        [&[3, 4], &[4, 3], &[5, 4, 2], &[5, 2, 4]],
    ];
    for [a, a_transposed, b, b_transposed] in shapes {
        for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
            let left = if ta { a_transposed } else { a };
            let right = if tb { b_transposed } else { b };
            let name = format!("matmul_with {left:?} {right:?} {ta} {tb}");
            rules.push(rule(name, &[(left, ANY), (right, ANY)], move |x| {
                x[0].matmul_with(&x[1], wgrad::MatmulOptions::new().transpose_a(ta).transpose_b(tb))
            }));
        }
    }
    rules.push(rule("matmul", &[(&[5, 3, 4], ANY), (&[4, 2], ANY)], |x| x[0].matmul(&x[1])));
    rules.push(rule("matvec", &[(&[5, 3, 4], ANY), (&[5, 4], ANY)], |x| x[0].matvec(&x[1])));

    let convolutions = [
        (Padding::Same, [1, 1], [1, 1]),
        (Padding::Valid, [1, 1], [1, 1]),
        (Padding::Same, [2, 2], [1, 1]),
        (Padding::Valid, [2, 1], [1, 1]),
        (Padding::Same, [1, 1], [2, 2]),
        (Padding::Valid, [1, 1], [1, 2]),
        (Padding::Same, [3, 2], [1, 1]),
    ];
    for (padding, strides, dilations) in convolutions {
        let options = Conv2dOptions::new().padding(padding).strides(strides).dilations(dilations);
        let name = format!("conv2d {padding:?} strides {strides:?} dilations {dilations:?}");
        let inputs: [Input; 2] = [(&[2, 6, 7, 2], ANY), (&[3, 2, 2, 3], ANY)];
        rules.push(rule(name, &inputs, move |x| x[0].conv2d(&x[1], options)));
    }
    let both = [(Padding::Same, [2, 3], [2, 2]), (Padding::Valid, [1, 2], [2, 3])];
    for (padding, strides, dilations) in convolutions.into_iter().chain(both) {
        let options = Conv2dOptions::new().padding(padding).strides(strides).dilations(dilations);
        // Four channels to a thread, four filters of one to a thread, and neither.
        let shapes: [[&'static [usize]; 2]; 3] = [
            [&[1, 4, 5, 4], &[2, 2, 4, 1]],
            [&[1, 4, 5, 1], &[2, 2, 1, 4]],
            [&[2, 4, 5, 3], &[3, 2, 3, 2]],
        ];
        for [image, filter] in shapes {
            let how = format!("{padding:?} strides {strides:?} dilations {dilations:?}");
            let name = format!("depthwise_conv2d {image:?} {filter:?} {how}");
            let inputs: [Input; 2] = [(image, ANY), (filter, ANY)];
            rules.push(rule(name, &inputs, move |x| x[0].depthwise_conv2d(&x[1], options)));
        }
    }
    let pools = [
        (Padding::Valid, [2, 2], [2, 2]),
        (Padding::Same, [2, 2], [2, 2]),
        (Padding::Same, [3, 3], [2, 2]),
        (Padding::Valid, [3, 2], [1, 2]),
        (Padding::Same, [3, 3], [1, 1]),
    ];
    for (padding, window, strides) in pools {
        let options = Pool2dOptions::new().strides(strides).padding(padding);
        let how = format!("{padding:?} {window:?} strides {strides:?}");
        let shape: &'static [usize] = &[1, 5, 5, 2];
        rules.push(rule(format!("max_pool2d {how}"), &[(shape, Distinct(0.0))], move |x| {
            x[0].max_pool2d(window, options)
        }));
        rules.push(rule(format!("avg_pool2d {how}"), &[(shape, ANY)], move |x| {
            x[0].avg_pool2d(window, options)
        }));
    }

    rules.push(rule("sparse_softmax_cross_entropy_with_logits", &[(&[3, 4], ANY)], |x| {
        wgrad::sparse_softmax_cross_entropy_with_logits(&constant([3, 0, 1])?, &x[0])
    }));
    let distributions: [Input; 2] = [(&[3, 4], Within(0.1, 1.0)), (&[3, 4], ANY)];
    rules.push(rule("softmax_cross_entropy_with_logits", &distributions, |x| {
        wgrad::softmax_cross_entropy_with_logits(&x[0], &x[1])
    }));
    rules.push(rule("sigmoid_cross_entropy_with_logits", &distributions, |x| {
        wgrad::sigmoid_cross_entropy_with_logits(&x[0], &x[1])
    }));
    rules
}

/// Ops that move elements.
fn moving_rules() -> Vec<Rule> {
    let of = |name: &str, shape: &'static [usize], f: fn(&Tensor) -> Result<Tensor>| {
        rule(name, &[(shape, ANY)], move |x| f(&x[0]))
    };
    let mut rules = vec![
        of("reshape", &[2, 6], |x| x.reshape([3, -1])),
        of("expand_dims", &[3, 4], |x| x.expand_dims(1)),
        of("squeeze", &[3, 1, 4], |x| x.squeeze([1])),
        of("broadcast_to", &[3, 1], |x| x.broadcast_to([2, 3, 4])),
        of("transpose", &[2, 3, 4], |x| x.transpose([2, 0, 1])),
        of("transpose around", &[3, 4], |x| x.transpose(())),
        of("reverse", &[3, 4], |x| x.reverse([1])),
        of("tile", &[2, 3], |x| x.tile(&[2, 3])),
        of("slice", &[4, 5], |x| x.slice(&[1, 2], &[2, -1])),
        of("strided_slice with steps", &[7, 5], |x| x.strided_slice(s![1..;3, ..;2])),
        of("strided_slice backwards", &[7, 5], |x| x.strided_slice(s![..;-1, 1..5;-2])),
        of("strided_slice of a row", &[4, 5], |x| x.strided_slice(s![-2, ..])),
        of("i", &[4, 5], |x| x.i((1..3, -1))),
        of("split_n", &[4, 6], |x| {
            let [a, b] = x.split_n::<2>(1)?;
            a.multiply(&b)
        }),
        of("split", &[4, 6], |x| {
            let parts = x.split(3, 1)?;
            parts[0].multiply(&parts[2])
        }),
        of("split_sizes", &[4, 6], |x| Ok(x.split_sizes(&[1, 4, 1], 1)?.swap_remove(1))),
        of("unstack", &[3, 4], |x| {
            let rows = x.unstack(0)?;
            rows[0].multiply(&rows[2])
        }),
        of("pad", &[3, 4], |x| x.pad(&[(1, 0), (2, 3)])),
        of("pad_with a number", &[3, 4], |x| {
            x.pad_with(&[(1, 0), (2, 3)], PadMode::Constant(0.5.into()))
        }),
        of("pad_with reflection", &[3, 4], |x| x.pad_with(&[(2, 1), (0, 3)], PadMode::Reflect)),
        of("pad_with symmetry", &[3, 4], |x| x.pad_with(&[(2, 3), (1, 0)], PadMode::Symmetric)),
        of("gather of rows", &[4, 3], |x| x.gather(&constant([2, 0, 2, 2])?, 0)),
        of("gather of columns", &[3, 4], |x| x.gather(&constant([[3, 0], [0, 1]])?, 1)),
        of("gather outside", &[3, 4], |x| x.gather(&constant([1, 7, -1])?, 0)),
        of("gather_with batch_dims", &[2, 4, 3], |x| {
            x.gather_with(
                &constant([[3, 0], [1, 1]])?,
                1,
                wgrad::GatherOptions::new().batch_dims(1),
            )
        }),
        of("unsorted_segment_sum", &[4, 3], |x| {
            x.unsorted_segment_sum(&constant([2, 0, -1, 2])?, 4)
        }),
        of("stop_gradient", &[3, 4], |x| Ok(x + x.stop_gradient() * 0.0)),
    ];
    let three: [Input; 3] = [(&[2, 3], ANY), (&[2, 1], ANY), (&[2, 4], ANY)];
    rules.push(rule("concat", &three, |x| concat(&[&x[0], &x[1], &x[2]], -1)));
    rules.push(rule("concat of many", &[(&[2, 3], ANY), (&[1, 3], ANY)], |x| {
        let all: Vec<&Tensor> = (0..9).map(|i| &x[i % 2]).collect();
        concat(&all, 0)
    }));
    let equal: [Input; 2] = [(&[2, 3], ANY), (&[2, 3], ANY)];
    rules.push(rule("stack", &equal, |x| wgrad::stack(&[&x[0], &x[1]], 1)));
    rules.push(rule("add_n", &equal, |x| wgrad::add_n(&[&x[0], &x[1], &x[0]])));
    rules
}

#[test]
fn unary() {
    check_all(unary_rules());
}

#[test]
fn binary() {
    check_all(binary_rules());
}

#[test]
fn reductions() {
    check_all(reduction_rules());
}

#[test]
fn products_and_windows() {
    check_all(product_rules());
}

#[test]
fn moving() {
    check_all(moving_rules());
}

/// The methods that a table of ops keeps something for, hence has gradients for.
fn methods_with_gradients(source: &str) -> Vec<&str> {
    let mut methods = Vec::new();
    let mut current = None;
    for line in source.lines() {
        let row = line.strip_prefix("    ").filter(|row| !row.starts_with([' ', '/']));
        let named = row.and_then(|row| row.split_once(", \""));
        if let Some((method, _)) = named.filter(|(m, rest)| rest.contains("\", [") && is_word(m)) {
            current = Some(method);
        }
        let keeps = line.contains(", keep ") || line.trim_start().starts_with("keep ");
        if let (Some(method), true) = (current, keeps) {
            methods.push(method);
            current = None;
        }
    }
    methods
}

/// The functions and methods that a file of ops makes public.
fn public_functions(source: &str) -> Vec<&str> {
    let signatures = source.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
    let names = signatures.filter_map(|rest| rest.split_once(['(', '<']));
    names.map(|(name, _)| name).filter(|name| is_word(name)).collect()
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn no_rule_is_forgotten() {
    let mut rules = unary_rules();
    rules.extend(binary_rules());
    rules.extend(reduction_rules());
    rules.extend(product_rules());
    rules.extend(moving_rules());
    let tables = [
        (include_str!("../src/ops/unary.rs"), 30),
        (include_str!("../src/ops/binary.rs"), 12),
        (include_str!("../src/ops/reduce.rs"), 4),
    ];
    let files = [
        include_str!("../src/ops/argmax.rs"),
        include_str!("../src/ops/broadcast.rs"),
        include_str!("../src/ops/cast.rs"),
        include_str!("../src/ops/composed.rs"),
        include_str!("../src/ops/concat.rs"),
        include_str!("../src/ops/conv2d/mod.rs"),
        include_str!("../src/ops/depthwise_conv2d/mod.rs"),
        include_str!("../src/ops/gather.rs"),
        include_str!("../src/ops/losses.rs"),
        include_str!("../src/ops/matmul/mod.rs"),
        include_str!("../src/ops/pad.rs"),
        include_str!("../src/ops/pool/mod.rs"),
        include_str!("../src/ops/reshape.rs"),
        include_str!("../src/ops/reverse.rs"),
        include_str!("../src/ops/segment_sum.rs"),
        include_str!("../src/ops/select.rs"),
        include_str!("../src/ops/slice.rs"),
        include_str!("../src/ops/transpose.rs"),
    ];
    // Without a gradient; the one of a cast is checked where there is half precision.
    let others = ["argmax", "argmin", "cast", "eye_of", "one_hot", "one_hot_with"];

    let mut names = Vec::new();
    for (source, at_least) in tables {
        let methods = methods_with_gradients(source);
        assert!(methods.len() >= at_least, "found {methods:?} only");
        names.extend(methods);
    }
    for source in files {
        let functions = public_functions(source);
        assert!(!functions.is_empty(), "no public function in a file of ops");
        names.extend(functions);
    }
    for name in names {
        let named = |rule: &Rule| rule.name.split(' ').next() == Some(name);
        assert!(others.contains(&name) || rules.iter().any(named), "no check for {name}");
    }
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape).unwrap()
}

fn item(x: &Option<Tensor>) -> f32 {
    x.as_ref().unwrap().item().unwrap()
}

#[test]
fn what_is_not_connected_has_none() {
    let (x, z) = (ones(&[2]), ones(&[2]));
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&z).unwrap();
    let [dx, dz] = tape.gradient(&x.square().unwrap(), [&x, &z]).unwrap();
    assert!(dx.is_some() && dz.is_none());

    // Not watched.
    let tape = GradientTape::new();
    assert!(tape.gradient(&x.square().unwrap(), &x).unwrap().is_none());

    // Through a piecewise constant op, an index, a comparison.
    let tape = GradientTape::persistent();
    tape.watch(&x).unwrap();
    let floor = x.floor().unwrap();
    let index = x.argmax(0).unwrap().cast(DType::F32).unwrap();
    let test = x.greater(0.0).unwrap().cast(DType::F32).unwrap();
    for y in [floor, index, test] {
        assert!(tape.gradient(&y, &x).unwrap().is_none());
    }
}

#[test]
fn stop_gradient_cuts_one_path() {
    let x = Tensor::scalar(3f32).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = &x * x.stop_gradient();
    assert_eq!(item(&tape.gradient(&y, &x).unwrap()), 3.0);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    assert!(tape.gradient(&x.stop_gradient(), &x).unwrap().is_none());
}

#[test]
fn persistent_tapes_answer_again() {
    let x = Tensor::scalar(2f32).unwrap();
    let tape = GradientTape::persistent();
    tape.watch(&x).unwrap();
    let y = x.pow(3.0).unwrap();
    let z = &y * &x;
    for _ in 0..2 {
        assert_eq!(item(&tape.gradient(&y, &x).unwrap()), 12.0);
        assert_eq!(item(&tape.gradient(&z, &x).unwrap()), 32.0);
    }
    // An inner value is a source too.
    assert_eq!(item(&tape.gradient(&z, &y).unwrap()), 2.0);
}

#[test]
fn integers_cannot_be_watched() {
    let x = constant([1, 2]).unwrap();
    let error = GradientTape::new().watch(&x).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)), "{error}");
    assert!(error.to_string().contains("i32"), "{error}");
    let tape = GradientTape::new();
    let error = tape.gradient(&x, &x).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)), "{error}");
}

#[test]
fn variables_may_be_assigned_in_between() {
    let v = Variable::new(&Tensor::scalar(1f32).unwrap());
    let tape = GradientTape::new();
    let a = &v * 2.0;
    v.assign(&Tensor::scalar(10f32).unwrap()).unwrap();
    let b = &v * &a;
    assert_eq!(b.item::<f32>().unwrap(), 20.0);
    // Both reads count: a, and 2 times the value of the second read.
    assert_eq!(item(&tape.gradient(&b, &v).unwrap()), 22.0);
}

#[test]
fn several_targets_add_up() {
    let x = Tensor::scalar(2f32).unwrap();
    let tape = GradientTape::persistent();
    tape.watch(&x).unwrap();
    let (square, inverse) = (x.square().unwrap(), x.reciprocal().unwrap());
    let fourth = square.square().unwrap();
    assert_eq!(item(&tape.gradient([&square, &inverse], &x).unwrap()), 3.75);
    // A target that stands in the way of another, and one that is named twice.
    assert_eq!(item(&tape.gradient([&square, &fourth], &x).unwrap()), 36.0);
    assert_eq!(item(&tape.gradient([&square, &square], &x).unwrap()), 8.0);
    // A target that is the source.
    assert_eq!(item(&tape.gradient(&x, &x).unwrap()), 1.0);
    let seeds = [&Tensor::scalar(10f32).unwrap(), &Tensor::scalar(4f32).unwrap()];
    let grad = tape.gradient_from([&square, &inverse], Some(&seeds), &x).unwrap();
    assert_eq!(item(&grad), 39.0);
    let wrong = ones(&[2]);
    assert!(tape.gradient_from(&square, Some(&[&wrong]), &x).is_err());
    assert!(tape.gradient_from(&square, Some(&[]), &x).is_err());
}

#[test]
fn required_gradients_name_what_is_missing() {
    let used = Variable::new(&ones(&[2]));
    let unused = Variable::new(&ones(&[3]));
    let tape = GradientTape::new();
    let loss = used.read().square().unwrap().reduce_sum(()).unwrap();
    let error = tape.required_gradient(&loss, [&used, &unused]).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("the variable of shape [3] (source 1)"), "{text}");

    let tape = GradientTape::new();
    let loss = used.read().floor().unwrap().reduce_sum(()).unwrap();
    let text = tape.required_gradient(&loss, &used).unwrap_err().to_string();
    assert!(text.contains("the variable of shape [2] to") && text.contains("Floor"), "{text}");

    let tape = GradientTape::new();
    let loss = used.read().square().unwrap().reduce_sum(()).unwrap();
    let grad = tape.required_gradient(&loss, &used).unwrap();
    assert_eq!(grad.to_vec::<f32>().unwrap(), [2.0, 2.0]);
}

#[test]
fn untrainable_variables_are_watched_when_asked() {
    let v = Variable::untrainable(&Tensor::scalar(3f32).unwrap());
    let tape = GradientTape::new();
    assert!(tape.gradient(&v.read().square().unwrap(), &v).unwrap().is_none());
    let tape = GradientTape::new();
    tape.watch(&v).unwrap();
    assert_eq!(item(&tape.gradient(&v.read().square().unwrap(), &v).unwrap()), 6.0);
    let trained = Variable::new(&Tensor::scalar(3f32).unwrap());
    let tape = GradientTape::unwatched();
    assert!(tape.gradient(&trained.read().square().unwrap(), &trained).unwrap().is_none());
}

#[test]
fn half_precision_gradients_are_half_precision() {
    let values = [1.5, -0.25, 3.0].map(f16::from_f32);
    // An adapter without f16 refuses the tensor.
    let x = match Tensor::from_slice(&values, [3]) {
        Ok(x) => x,
        Err(Error::DType(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let tape = GradientTape::persistent();
    tape.watch(&x).unwrap();
    let square = x.square().unwrap().reduce_sum(()).unwrap();
    let wide = x.cast(DType::F32).unwrap();
    let wide = &wide * &wide;
    let grad = tape.gradient(&square, &x).unwrap().unwrap();
    assert_eq!(grad.dtype(), DType::F16);
    assert_eq!(grad.to_vec::<f16>().unwrap(), [3.0, -0.5, 6.0].map(f16::from_f32));
    // Through a cast the gradient goes back to the dtype of the source.
    let grad = tape.gradient(&wide, &x).unwrap().unwrap();
    assert_eq!(grad.dtype(), DType::F16);
    assert_eq!(grad.to_vec::<f16>().unwrap(), [3.0, -0.5, 6.0].map(f16::from_f32));
}
