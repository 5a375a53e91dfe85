//! Every gradient rule compared with central differences, first and second order, and other guarantees of tapes.

#![allow(clippy::unwrap_used)]

use crate::Numbers;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wgrad::autodiff::ForwardAccumulator;
use wgrad::inventory::{self, ANY, Case, Gradient, Input, OpKind, Values};
use wgrad::random::Generator;
use wgrad::{
    BincountOptions, DType, Device, Error, GradientTape, Result, Tensor, Variable, constant, f16,
};

/// A function of one input of shape [3, 5], whose size is not a multiple of the vector length.
fn of_one(name: &str, values: Values, f: fn(&Tensor) -> Result<Tensor>) -> Case {
    rule(name, &[(&[3, 5], values)], move |x| f(&x[0]))
}

fn rule(name: &str, inputs: &[Input], f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static) -> Case {
    Case { name: name.into(), inputs: inputs.to_vec(), f: Box::new(f), second: true }
}

/// The step of the differences; a power of two, so that adding it loses few bits.
const STEP: f64 = 1.0 / 64.0;

/// The fourth-order difference (8 (f(1) - f(-1)) - (f(2) - f(-2))) / 12 h has an error of h^4 / 30 = 2e-9 times the fifth
/// derivative, which is some thousands for quotients by small numbers. Rounding adds a unit or two of f32 in each element: 2e-7
/// divided by h is 1e-5 of the magnitude of the terms. A wrong rule has an error of far more than ten times that.
const TOLERANCE: f64 = 1e-4;

fn difference(mut f: impl FnMut(f64) -> Result<f64>) -> Result<f64> {
    let near = f(1.0)? - f(-1.0)?;
    let far = f(2.0)? - f(-2.0)?;
    Ok((8.0 * near - far) / (12.0 * STEP))
}

fn dot(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * b).sum()
}

/// The sum of the magnitudes of the terms of [`dot`].
fn size(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) * b).abs()).sum()
}

fn upload(shape: &[usize], values: &[f64]) -> Result<Tensor> {
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_slice(&values, shape)
}

struct Checked<'a> {
    rule: &'a Case,
    start: Vec<Vec<f32>>,
    /// Weights of the result, for the loss `sum(y * weights)`.
    weights: Vec<f64>,
    /// Weights of the first gradients, for the second order.
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

    /// The gradients of y, or those of y + y^2, whose own gradients use every rule of a backward pass: the gradient of a linear
    /// function does not depend on its input.
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

fn check(rule: &Case) -> Result<Vec<String>> {
    let mut numbers = Numbers::new(rule.name.len() as u64 * 7 + 11);
    let start: Vec<Vec<f32>> = rule.inputs.iter().map(|input| numbers.values(*input)).collect();
    let none: Vec<Vec<f64>> = start.iter().map(|x| vec![0.0; x.len()]).collect();
    let mut checked = Checked { rule, start, weights: Vec::new(), weights2: Vec::new() };
    let x = checked.inputs(&none, 0.0)?;
    let y = (rule.f)(&x)?;
    checked.weights = (0..y.len()).map(|_| numbers.away()).collect();
    checked.weights2 = none.iter().map(|x| x.iter().map(|_| numbers.away()).collect()).collect();

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
            none.iter().map(|x| x.iter().map(|_| f64::from(numbers.sign())).collect()).collect();
        let mut compare = |order: &str, grads: &[Vec<f32>], scale: f64, want: f64| {
            let got: f64 = grads.iter().zip(&direction).map(|(g, v)| dot(g, v)).sum();
            let scale = scale + grads.iter().zip(&direction).map(|(g, v)| size(g, v)).sum::<f64>();
            let off = (got - want).abs();
            // NaN is a failure.
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

/// The gradients on the host, with the shapes of the inputs; zeros if there is none.
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

fn check_all(rules: Vec<Case>) {
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

/// Checks the ops of the inventory, and reports where custom cases are.
fn check_ops(kind: OpKind) {
    let ops = inventory::all().filter(|entry| entry.kind == kind);
    check_all(ops.flat_map(|entry| entry.own_cases()).collect());
}

#[test]
fn rows() {
    check_ops(OpKind::Row);
}

#[test]
fn composed() {
    check_ops(OpKind::Composed);
}

#[test]
fn kernels() {
    check_ops(OpKind::Kernel);
}

#[test]
fn several_ops() {
    let with_zeros = rule("reduce_prod with a zero", &[(&[2, 3], Values::Away)], |x| {
        let spared = constant([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])?;
        x[0].multiply(spared)?.reduce_prod(1)
    });
    check_all(vec![
        rule("exp of a scalar", &[(&[], ANY)], |x| x[0].exp()),
        of_one("a tensor used thrice", ANY, |x| Ok(x * x * x.sin()? + x)),
        of_one("pow of a negative base", Values::Away, |x| x.pow(3.0)),
        of_one("multiply with itself", ANY, |x| x.multiply(x)),
        of_one("dropout", ANY, |x| x.dropout(0.4, &Generator::from_seed(5))),
        of_one("subtract from a number", ANY, |x| Ok(2.0 - x.square()?)),
        Case { second: false, ..with_zeros },
    ]);
}

/// Every op of the inventory declares its gradient and has a check.
#[test]
fn no_rule_is_forgotten() {
    let this = include_str!("gradients.rs");
    for entry in inventory::all() {
        let (cases, name) = (entry.own_cases(), entry.name);
        for case in &cases {
            let of = case.name.split(' ').next().unwrap();
            assert!(of == name || entry.forms.contains(&of), "{} is a case of {name}", case.name);
        }
        if entry.gradient == Gradient::Checked {
            for form in entry.forms {
                let of = |case: &Case| case.name.split(' ').next() == Some(form);
                assert!(cases.iter().any(of), "no case checks {form}");
            }
        }
        match entry.gradient {
            Gradient::Checked => assert!(!cases.is_empty(), "no case checks {name}"),
            Gradient::CheckedBy(test) => assert!(this.contains(&format!("fn {test}()")), "{name}"),
            Gradient::None(reason) => assert!(cases.is_empty() && !reason.is_empty(), "{name}"),
        }
    }
    assert!(inventory::all().count() > 110, "{} ops only", inventory::all().count());
}

#[test]
fn copy_to_device() {
    let (here, there) = (Device::current().unwrap(), Device::new().unwrap());
    let x = Tensor::from_slice(&[1.0f32, -2.0, 3.0], [3]).unwrap();
    // x^3 on the other device, and x on its own: the gradients meet at x.
    let f = |x: &Tensor| -> Result<Tensor> {
        let y = x.to(&there)?;
        assert!(y.device() == &there && x.to(&here)?.device() == &here);
        y.multiply(&y)?.multiply(&y)?.to(&here)?.add(x)
    };
    let outer = GradientTape::new();
    outer.watch(&x).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let first = tape.gradient(f(&x).unwrap(), &x).unwrap().unwrap();
    assert_eq!(first.to_vec::<f32>().unwrap(), [4.0, 13.0, 28.0]);
    let second = outer.gradient(&first, &x).unwrap().unwrap();
    assert_eq!((second.device(), second.to_vec::<f32>().unwrap()), (&here, vec![6.0, -12.0, 18.0]));

    let along = Tensor::from_slice(&[1.0f32, 0.5, 0.0], [3]).unwrap();
    let forward = ForwardAccumulator::new(&x, &along).unwrap();
    let y = f(&x).unwrap();
    let tangent = forward.jvp(&y).unwrap().unwrap();
    assert_eq!(tangent.to_vec::<f32>().unwrap(), [4.0, 6.5, 0.0]);

    // Other dtypes, and no elements.
    let mask = Tensor::from_slice(&[true, false, true], [3]).unwrap().to(&there).unwrap();
    assert_eq!(mask.to_vec::<bool>().unwrap(), [true, false, true]);
    let bytes = Tensor::from_slice(&[1u8, 2, 3, 4, 250], [5]).unwrap().to(&there).unwrap();
    assert_eq!(bytes.identity().unwrap().to_vec::<u8>().unwrap(), [1, 2, 3, 4, 250]);
    let empty = Tensor::zeros([0, 3]).unwrap().to(&there).unwrap();
    assert_eq!((empty.shape(), empty.device()), (&[0, 3][..], &there));

    // The error for tensors of two devices names the method.
    let error = x.add(x.to(&there).unwrap()).unwrap_err().to_string();
    assert!(error.ends_with("or copy one of them: x.to(&device)."), "{error}");

    there.destroy();
    assert!(matches!(x.to(&there), Err(Error::Device(..))));
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -2.0, 3.0]);
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
    let [dx, dz] = tape.gradient(x.square().unwrap(), [&x, &z]).unwrap();
    assert!(dx.is_some() && dz.is_none());

    // Not watched.
    let tape = GradientTape::new();
    assert!(tape.gradient(x.square().unwrap(), &x).unwrap().is_none());

    // Through a piecewise constant op, an index, and a comparison.
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
    assert!(tape.gradient(x.stop_gradient(), &x).unwrap().is_none());
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
    // An intermediate value can be a source, too.
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
    let v = Variable::new(Tensor::scalar(1f32).unwrap());
    let tape = GradientTape::new();
    let a = &v * 2.0;
    v.assign(Tensor::scalar(10f32).unwrap()).unwrap();
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
    // A target on the path of another one, and one that is given twice.
    assert_eq!(item(&tape.gradient([&square, &fourth], &x).unwrap()), 36.0);
    assert_eq!(item(&tape.gradient([&square, &square], &x).unwrap()), 8.0);
    // A target that is also the source.
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
    let used = Variable::new(ones(&[2]));
    let unused = Variable::new(ones(&[3]));
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
    let v = Variable::untrainable(Tensor::scalar(3f32).unwrap());
    let tape = GradientTape::new();
    assert!(tape.gradient(v.read().square().unwrap(), &v).unwrap().is_none());
    let tape = GradientTape::new();
    tape.watch(&v).unwrap();
    assert_eq!(item(&tape.gradient(v.read().square().unwrap(), &v).unwrap()), 6.0);
    let trained = Variable::new(Tensor::scalar(3f32).unwrap());
    let tape = GradientTape::unwatched();
    assert!(tape.gradient(trained.read().square().unwrap(), &trained).unwrap().is_none());
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
    // Through a cast, the gradient is converted back to the dtype of the source.
    let grad = tape.gradient(&wide, &x).unwrap().unwrap();
    assert_eq!(grad.dtype(), DType::F16);
    assert_eq!(grad.to_vec::<f16>().unwrap(), [3.0, -0.5, 6.0].map(f16::from_f32));
}

/// The gradient of `sum(y * 1, 2, 3, ..)`, by element of `x`.
fn counted(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Vec<f32> {
    let (outer, tape) = (GradientTape::new(), GradientTape::new());
    outer.watch(x).unwrap();
    tape.watch(x).unwrap();
    let y = f(&x.square().unwrap()).unwrap();
    let weights: Vec<f32> = (1..=y.len()).map(|i| i as f32).collect();
    let weights = Tensor::from_slice(&weights, y.shape()).unwrap();
    let dx = tape.gradient_from(&y, Some(&[&weights]), x).unwrap().unwrap();
    // d/dx x^2 w = 2 x w, whose own derivative is 2 w: the rules can be differentiated again.
    let second = outer.gradient(&dx, x).unwrap().unwrap();
    let twice = (&second * x).to_vec::<f32>().unwrap();
    let dx = dx.to_vec::<f32>().unwrap();
    for (dx, twice) in dx.iter().zip(&twice) {
        assert!((dx - twice).abs() < 1e-4, "{dx} and {twice}");
    }
    dx.iter().zip(x.to_vec::<f32>().unwrap()).map(|(dx, x)| dx / (2.0 * x)).collect()
}

#[test]
fn sizes_from_the_device_have_gradients() {
    let x = constant([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]).unwrap();
    let mask = constant([true, false, true]).unwrap();
    let both = constant([[true, false], [false, false], [true, true]]).unwrap();
    let ids = constant([0, 0, 2]).unwrap();
    assert_eq!(counted(&x, |x| x.boolean_mask(&mask, 0)), [1.0, 2.0, 0.0, 0.0, 3.0, 4.0]);
    assert_eq!(counted(&x, |x| x.boolean_mask(&both, 0)), [1.0, 0.0, 0.0, 0.0, 2.0, 3.0]);
    let columns = constant([false, true]).unwrap();
    assert_eq!(counted(&x, |x| x.boolean_mask(&columns, 1)), [0.0, 1.0, 0.0, 2.0, 0.0, 3.0]);
    assert_eq!(counted(&x, |x| x.segment_sum(&ids)), [1.0, 2.0, 1.0, 2.0, 5.0, 6.0]);
    assert_eq!(counted(&x, |x| x.segment_mean(&ids)), [0.5, 1.0, 0.5, 1.0, 5.0, 6.0]);
    assert_eq!(counted(&x, |x| x.segment_max(&ids)), [0.0, 0.0, 1.0, 2.0, 5.0, 6.0]);
    assert_eq!(counted(&x, |x| x.segment_min(&ids)), [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]);
    let numbers = constant([2, 0, 2]).unwrap();
    let row = constant([1.0, 2.0, 3.0]).unwrap();
    let weighted = |x: &Tensor| numbers.bincount(BincountOptions::new().weights(x.clone()));
    assert_eq!(counted(&row, weighted), [3.0, 1.0, 3.0]);
    let twice = constant([3.0, 2.0, 3.0]).unwrap();
    assert_eq!(counted(&twice, |x| Ok(x.unique()?.0)), [1.0, 2.0, 0.0]);
    assert_eq!(counted(&twice, |x| Ok(x.unique_with_counts()?.0)), [1.0, 2.0, 0.0]);

    // A product is not linear in the square of one of its factors: d/da a^2 b^2 = 2 a b^2.
    let tape = GradientTape::new();
    tape.watch(&row).unwrap();
    let y = row.segment_prod(&constant([0, 0, 1]).unwrap()).unwrap();
    let dx = tape.gradient(&y, &row).unwrap().unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), [2.0, 1.0, 1.0]);
}

#[test]
fn ties_share_the_gradient_of_extremes_as_tensorflow_shares_it() {
    let x = constant([3.0, 3.0, 1.0, 5.0]).unwrap();
    let ids = constant([0, 0, 0, -1]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.unsorted_segment_max(&ids, 1).unwrap();
    let dx = tape.gradient(&y, &x).unwrap().unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), [0.5, 0.5, 0.0, 0.0]);

    // The element itself and both updates are the maximum: a third each.
    let (x, updates) = (constant([2.0, 0.0]).unwrap(), constant([2.0, 2.0, 1.0]).unwrap());
    let indices = constant([[0], [0], [1]]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&updates).unwrap();
    let y = x.tensor_scatter_nd_max(&indices, &updates).unwrap();
    let [dx, du] = tape.gradient(&y * 3.0, [&x, &updates]).unwrap();
    assert_eq!(dx.unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0]);
    assert_eq!(du.unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0, 3.0]);

    // Updates of one slice: the last one is kept, and each gets the gradient of the slice.
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&updates).unwrap();
    let y = x.tensor_scatter_nd_update(&indices, &updates).unwrap();
    let weights = constant([5.0, 7.0]).unwrap();
    let [dx, du] = tape.gradient(&y * &weights, [&x, &updates]).unwrap();
    assert_eq!(dx.unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0]);
    assert_eq!(du.unwrap().to_vec::<f32>().unwrap(), [5.0, 5.0, 7.0]);
}
