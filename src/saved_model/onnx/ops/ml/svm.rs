//! Support vector machines.
//!
//! Source: `svm.cpp` of libsvm 3.3 for the probabilities of several classes, whose iteration ends early: only the same steps give the
//! same numbers.

use super::call::{Call, Results, Table, tensor, unsupported};
use super::{Labels, as_floats, floats, ints, pair, rows, transformed, wrong_length};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table =
    &[("ai.onnx.ml.SVMClassifier", classifier), ("ai.onnx.ml.SVMRegressor", regressor)];

/// The most numbers of a matrix that an op makes of a file.
const MOST: usize = 1 << 26;
/// libsvm's bound for the steps of its iteration, if there are not more classes.
const STEPS: usize = 100;

/// The products of the rows with `vectors`, `[batch, count]`, as the kernel has them.
fn kernel(c: &Call<'_>, x: &Tensor, vectors: &[f32], count: usize) -> Result<Tensor> {
    let features = x.shape()[1];
    if count.checked_mul(features) != Some(vectors.len()) {
        return Err(Error::Shape(message!(
            "it has {} numbers for {count} vectors, which are not {features} features each. Pass rows of as many features as the \
             model was trained with.",
            vectors.len()
        )));
    }
    let number =
        |at: usize, default| floats(c, "kernel_params").get(at).copied().unwrap_or(default);
    let (gamma, add, degree) = (number(0, 0.0), number(1, 0.0), number(2, 0.0));
    let vectors = Tensor::from_slice(vectors, [count, features])?;
    let dot = x.matmul(vectors.transpose([1, 0])?)?;
    match c.attr_text("kernel_type", "LINEAR") {
        "LINEAR" => Ok(dot),
        "POLY" => {
            let sum = dot.multiply(gamma)?.add(add)?;
            // The power of a negative number needs a whole exponent.
            if degree.fract() == 0.0 && (1.0..=16.0).contains(&degree) {
                let mut power = sum.clone();
                for _ in 1..degree as usize {
                    power = power.multiply(&sum)?;
                }
                return Ok(power);
            }
            sum.pow(degree)
        }
        "RBF" => {
            let own = x.square()?.reduce_sum(1)?.expand_dims(1)?;
            let others = vectors.square()?.reduce_sum(1)?.expand_dims(0)?;
            let distance = own.add(others)?.subtract(dot.multiply(2.0)?)?.maximum(0.0)?;
            distance.multiply(-gamma)?.exp()
        }
        "SIGMOID" => dot.multiply(gamma)?.add(add)?.tanh(),
        other => Err(unsupported(format_args!("the kernel {other}"))),
    }
}

fn regressor(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let (coefficients, rho) = (floats(c, "coefficients"), floats(c, "rho"));
    let [rho] = rho else { return Err(wrong_length("rho", rho.len(), 1)) };
    let count = usize::try_from(c.attr_int("n_supports", 0)).unwrap_or(0);
    let scores = if count > 0 {
        if coefficients.len() != count {
            return Err(wrong_length("coefficients", coefficients.len(), count));
        }
        let products = kernel(c, &x, floats(c, "support_vectors"), count)?;
        products.matmul(Tensor::from_slice(coefficients, [count, 1])?)?
    } else {
        kernel(c, &x, coefficients, 1)?
    };
    let scores = scores.add(*rho)?;
    if c.attr_int("one_class", 0) != 0 {
        let inside = scores.greater(0.0)?;
        return tensor(inside.cast(DType::F32)?.multiply(2.0)?.subtract(1.0)?);
    }
    tensor(transformed(&scores, c.attr_text("post_transform", "NONE"))?)
}

/// The pairs of classes, in the order of the file.
fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |a| (a + 1..classes).map(move |b| (a, b)))
}

/// How clearly the first class of each pair wins, `[batch, pairs]`.
fn decisions(c: &Call<'_>, x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let (classes, coefficients, rho) = (sizes.len(), floats(c, "coefficients"), floats(c, "rho"));
    let count = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
    let contests = classes.saturating_mul(classes - 1) / 2;
    let fits =
        |count: &usize| contests.checked_mul((*count).max(classes)).is_some_and(|all| all <= MOST);
    let Some(count) = count.filter(fits) else {
        return Err(unsupported(format_args!(
            "a machine of {classes} classes whose vectors and pairs of classes make more than {MOST} numbers"
        )));
    };
    if coefficients.len() / (classes - 1) != count || coefficients.len() % (classes - 1) != 0 {
        let wanted = format!("{count} for each of {} classes", classes - 1);
        return Err(wrong_length("coefficients", coefficients.len(), wanted));
    }
    if rho.len() != contests {
        return Err(wrong_length("rho", rho.len(), contests));
    }
    let products = kernel(c, x, floats(c, "support_vectors"), count)?;
    let starts: Vec<usize> = sizes
        .iter()
        .scan(0, |end, size| {
            *end += size;
            Some(*end - size)
        })
        .collect();
    let mut matrix = vec![0f32; count * contests];
    for (at, (a, b)) in pairs(classes).enumerate() {
        for (class, row) in [(a, b - 1), (b, a)] {
            for vector in starts[class]..starts[class] + sizes[class] {
                matrix[vector * contests + at] = coefficients[row * count + vector];
            }
        }
    }
    let sums = products.matmul(Tensor::from_slice(&matrix, [count, contests])?)?;
    sums.add(Tensor::from_slice(rho, [1, contests])?)
}

fn classifier(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let labels = Labels::new(c, "classlabels_ints")?;
    let transform = c.attr_text("post_transform", "NONE");
    let sizes: Vec<usize> = ints(c, "vectors_per_class")
        .iter()
        .map(|size| usize::try_from(*size))
        .collect::<Result<_, _>>()
        .map_err(|_| {
            Error::Data(message!("a class has fewer than no vectors. The file is damaged."))
        })?;
    if sizes.is_empty() {
        return linear(c, &x, &labels, transform);
    }
    let classes = sizes.len();
    if labels.len() != classes || classes < 2 {
        return Err(wrong_length(
            "vectors_per_class",
            classes,
            format_args!("{}, at least 2,", labels.len()),
        ));
    }
    let scores = decisions(c, &x, &sizes)?;
    // Each pair votes for one of its classes.
    let contests = scores.shape()[1];
    let mut ballots = vec![0f32; contests * classes];
    for (at, (a, b)) in pairs(classes).enumerate() {
        ballots[at * classes + a] = 1.0;
        ballots[at * classes + b] = -1.0;
    }
    let first = scores.greater(0.0)?.cast(DType::F32)?;
    let votes = first.matmul(Tensor::from_slice(&ballots, [contests, classes])?)?;
    // A lost contest gives the second class its vote: it has one for each contest that it may lose, less those that it does.
    let late: Vec<f32> = (0..classes).map(|class| class as f32).collect();
    let votes = votes.add(Tensor::from_slice(&late, [1, classes])?)?;
    let label = labels.pick(&votes.argmax(1)?)?;
    if !floats(c, "prob_a").is_empty() {
        let probable = probabilities(c, &Value::Tensor(scores), classes)?;
        return Ok(vec![label, Value::Tensor(transformed(&probable, transform)?)]);
    }
    let scores = match (contests, transform) {
        (1, "NONE") => pair(scores.negative()?, scores)?,
        (1, "LOGISTIC") => pair(scores.negative()?.sigmoid()?, scores.sigmoid()?)?,
        (1, _) => {
            return Err(unsupported(format_args!("the post_transform {transform} of two classes")));
        }
        _ => transformed(&scores, transform)?,
    };
    Ok(vec![label, Value::Tensor(scores)])
}

/// A vector for each class.
fn linear(c: &Call<'_>, x: &Tensor, labels: &Labels, transform: &str) -> Result<Results> {
    let products = kernel(c, x, floats(c, "coefficients"), labels.len())?;
    let rho = floats(c, "rho").first().copied().unwrap_or(0.0);
    let scores = products.add(rho)?;
    let label = labels.pick(&scores.argmax(1)?)?;
    Ok(vec![label, Value::Tensor(transformed(&scores, transform)?)])
}

/// The probabilities of the classes. How many steps they take differs from row to row, so the host computes them.
fn probabilities(c: &Call<'_>, scores: &Value, classes: usize) -> Result<Tensor> {
    let (slopes, offsets) = (floats(c, "prob_a"), floats(c, "prob_b"));
    let contests = classes * (classes - 1) / 2;
    if slopes.len() != contests || offsets.len() != contests {
        return Err(wrong_length("prob_a or prob_b", slopes.len().min(offsets.len()), contests));
    }
    let scores = scores.read()?;
    let batch = scores.shape()[0];
    let scores: Vec<f64> = scores.to_f64().into_iter().flatten().collect();
    let mut all = Vec::with_capacity(batch * classes);
    for row in scores.chunks_exact(contests) {
        let mut wins = vec![0f64; classes * classes];
        for (at, (a, b)) in pairs(classes).enumerate() {
            let odds = row[at] * f64::from(slopes[at]) + f64::from(offsets[at]);
            let win = (1.0 / (1.0 + odds.exp())).clamp(1e-7, 1.0 - 1e-7);
            wins[a * classes + b] = win;
            wins[b * classes + a] = 1.0 - win;
        }
        all.extend(coupled(&wins, classes).into_iter().map(|value| value as f32));
    }
    as_floats(&Tensor::from_slice(&all, [batch, classes])?)
}

/// libsvm's `multiclass_probability`: what agrees best with the probabilities of all pairs.
fn coupled(wins: &[f64], classes: usize) -> Vec<f64> {
    let mut q = vec![0f64; classes * classes];
    for a in 0..classes {
        for b in (0..classes).filter(|b| *b != a) {
            let (own, other) = (wins[b * classes + a], wins[a * classes + b]);
            q[a * classes + a] += own * own;
            q[a * classes + b] = -own * other;
        }
    }
    let mut p = vec![1.0 / classes as f64; classes];
    let mut qp = vec![0f64; classes];
    for _ in 0..STEPS.max(classes) {
        for (a, sum) in qp.iter_mut().enumerate() {
            *sum = (0..classes).map(|b| q[a * classes + b] * p[b]).sum();
        }
        let mut whole: f64 = qp.iter().zip(&p).map(|(qp, p)| qp * p).sum();
        if qp.iter().all(|qp| (qp - whole).abs() < 0.005 / classes as f64) {
            break;
        }
        for a in 0..classes {
            let own = q[a * classes + a];
            let change = (whole - qp[a]) / own;
            p[a] += change;
            whole = (whole + change * (change * own + 2.0 * qp[a])) / (1.0 + change).powi(2);
            for b in 0..classes {
                qp[b] = (qp[b] + change * q[a * classes + b]) / (1.0 + change);
                p[b] /= 1.0 + change;
            }
        }
    }
    p
}
