//! The training: in each iteration, a tree for the derivatives of the loss at the predictions so far (Friedman 2001, "Greedy
//! Function Approximation: A Gradient Boosting Machine").
//!
//! The algorithm is that of scikit-learn's histogram trees, which follow LightGBM (Ke et al. 2017).

use super::bins::{self, Plan};
use super::ensemble::{Ensemble, add_tree, categories_of};
use super::grow::{Grower, Limits};
use super::histogram::Derivatives;
use super::objective::{Measures, Objective, Targets};
use super::options::BoostedTreesOptions;
use super::split::Rules;
use super::threads::{self, BLOCK};
use crate::error::{Error, Result, message};
use crate::estimator::rows::Rows;
use crate::keras::{History, Logs};

/// Checks the labels, of which `fit` and `evaluate` need one for each row.
pub(super) fn labels<'a>(call: &str, rows: &'a Rows, objective: Objective) -> Result<&'a [f64]> {
    let y = rows.labels(call)?;
    rows.check_weights(call)?;
    let classes = match objective {
        Objective::Squared | Objective::Absolute => None,
        Objective::Binary => Some(2),
        Objective::Classes(classes) => Some(classes),
    };
    let wrong = |y: &f64| match classes {
        None => !y.is_finite(),
        Some(classes) => !(*y >= 0.0 && *y < classes as f64 && y.fract() == 0.0),
    };
    match (y.iter().position(wrong), classes) {
        (None, _) => Ok(y),
        (Some(row), None) => Err(Error::Data(message!(
            "{call}: the label of row {row} is {}; labels must be finite numbers. Leave the row out.",
            y[row]
        ))),
        (Some(row), Some(classes)) => Err(Error::Index(message!(
            "{call}: the label of row {row} is {}; with {classes} classes, labels are whole numbers from 0 to {}.",
            y[row],
            classes - 1
        ))),
    }
}

/// Divides the rows at random: those to train with, and those to validate with.
fn divide(rows: Rows, share: f64, seed: u64) -> Result<(Rows, Rows)> {
    let held = (share * rows.count as f64).round() as usize;
    if held == 0 || held >= rows.count {
        return Err(Error::Data(message!(
            "fit: a validation_fraction of {share} of {} rows is {held}; both parts need rows.",
            rows.count
        )));
    }
    let mut order: Vec<usize> = (0..rows.count).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let (validation, training) = order.split_at_mut(held);
    // The order in the file lets neighbours stay neighbours.
    training.sort_unstable();
    validation.sort_unstable();
    Ok((rows.ordered(training), rows.ordered(validation)))
}

/// The state of a training on validation data.
struct Validation {
    rows: Rows,
    raw: Vec<f64>,
}

/// Trains an ensemble.
pub(super) fn fit(
    options: &BoostedTreesOptions,
    objective: Objective,
    mut rows: Rows,
    mut validation: Option<Rows>,
) -> Result<(Ensemble, History)> {
    options.check()?;
    let categorical = options.categorical(rows.width)?;
    labels("fit", &rows, objective)?;
    if let Some(validation) = &validation {
        labels("fit: validation data", validation, objective)?;
        if validation.width != rows.width {
            return Err(Error::Shape(message!(
                "fit: the validation data have {} columns, and the training data {}. Pass the same columns.",
                validation.width,
                rows.width
            )));
        }
    } else if let Some(share) = options.validation_fraction {
        let (training, held) = divide(rows, share, options.seed)?;
        (rows, validation) = (training, Some(held));
        rows.check_weights("fit")?;
    }
    if u32::try_from(rows.count).is_err() {
        return Err(Error::Data(message!(
            "fit: x has {} rows; at most {} are supported. Train with a sample of them.",
            rows.count,
            u32::MAX
        )));
    }
    let plan = Plan {
        max_bins: options.max_bins,
        categorical: &categorical,
        seed: options.seed,
        name: &|column| options.name(column),
    };
    let edges = bins::find(&rows, &plan)?;
    let binned = bins::codes(&rows, &edges);
    // Training needs only the bins.
    rows.x = Vec::new();
    let targets = Targets { y: rows.labels("fit")?, weights: rows.weights.as_deref() };
    let mut ensemble = Ensemble {
        objective,
        baseline: objective.baseline(targets),
        categories: categories_of(edges.clone()),
        names: options.feature_names.clone(),
        trees: Vec::new(),
    };
    let outputs = objective.outputs();
    let start = |count: usize| ensemble.baseline.repeat(count);
    let mut validation = validation.map(|rows| {
        let raw = start(rows.count);
        Validation { rows, raw }
    });
    if let Some(validation) = &mut validation {
        ensemble.encode_all(&mut validation.rows);
    }
    let mut raw = start(rows.count);
    let limits = Limits {
        leaves: options.max_leaf_nodes,
        depth: options.max_depth,
        rules: Rules { min_rows: options.min_samples_leaf, l2: options.l2_regularization },
        learning_rate: options.learning_rate,
    };
    let mut grower = Grower::new(&edges, &binned, limits);
    let mut gradients = vec![0.0f32; rows.count * outputs];
    let mut hessians = gradients.clone();
    let (mut own, mut own_hessians) = (vec![0.0f32; rows.count], vec![0.0f32; rows.count]);
    let unit = objective.has_unit_hessian(targets);
    let mut history = History::default();
    let mut losses: Vec<f64> = Vec::new();
    let before = objective.derivatives(targets, &raw, &mut gradients, &mut hessians);
    let measured = |validation: &Option<Validation>| {
        validation.as_ref().map(|validation| {
            let y = validation.rows.y.as_deref().unwrap_or_default();
            let weights = validation.rows.weights.as_deref();
            objective.measures(Targets { y, weights }, &validation.raw)
        })
    };
    losses.push(measured(&validation).unwrap_or(before).loss);
    for iteration in 0..options.n_trees {
        for output in 0..outputs {
            let of = match outputs {
                1 => Derivatives {
                    gradients: &gradients,
                    hessians: (!unit).then_some(&hessians[..]),
                },
                _ => {
                    pick(&gradients, output, outputs, &mut own);
                    pick(&hessians, output, outputs, &mut own_hessians);
                    Derivatives { gradients: &own, hessians: Some(&own_hessians) }
                }
            };
            let rate = options.learning_rate;
            let tree = grower.grow(&of, |rows, value| {
                let value = objective.leaf(targets, &raw, rows).unwrap_or(value);
                for row in rows {
                    raw[*row as usize * outputs + output] += value * rate;
                }
                value
            });
            if let Some(Validation { rows, raw }) = &mut validation {
                add_tree(&tree, output, raw, rows);
            }
            ensemble.trees.push(tree);
        }
        let training = objective.derivatives(targets, &raw, &mut gradients, &mut hessians);
        let held = measured(&validation);
        history.add(iteration, &logs(objective, training, held));
        losses.push(held.unwrap_or(training).loss);
        if options
            .n_iter_no_change
            .is_some_and(|patience| stagnates(&losses, patience, options.tol))
        {
            break;
        }
    }
    Ok((ensemble, history))
}

/// The numbers of one output, of all rows.
fn pick(from: &[f32], output: usize, outputs: usize, to: &mut [f32]) {
    let mut blocks: Vec<(&mut [f32], &[f32])> =
        to.chunks_mut(BLOCK).zip(from.chunks(BLOCK * outputs)).collect();
    threads::each(&mut blocks, from.len() / outputs, |_, (to, from)| {
        to.iter_mut().zip(from.iter().skip(output).step_by(outputs)).for_each(|(to, x)| *to = *x);
    });
}

/// Whether none of the last losses is better than the one before them.
fn stagnates(losses: &[f64], patience: usize, tol: f64) -> bool {
    let Some(reference) = losses.len().checked_sub(patience + 1) else { return false };
    let (before, recent) = (losses[reference], &losses[reference + 1..]);
    recent.iter().all(|loss| *loss >= before - tol)
}

fn logs(objective: Objective, training: Measures, validation: Option<Measures>) -> Logs {
    let mut logs = measures(objective, training);
    if let Some(validation) = validation {
        for (name, value) in measures(objective, validation).iter() {
            logs.set(&format!("val_{name}"), value);
        }
    }
    logs
}

/// The loss and the metric by name.
pub(super) fn measures(objective: Objective, measures: Measures) -> Logs {
    let mut logs = Logs::new();
    logs.set("loss", measures.loss);
    logs.set(objective.metric(), measures.metric);
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_stops_once_nothing_improves() {
        assert!(!stagnates(&[3.0, 2.0, 2.0], 2, 0.0));
        assert!(stagnates(&[3.0, 2.0, 2.0, 2.0], 2, 0.0));
        assert!(!stagnates(&[3.0, 2.0, 2.5, 1.9], 2, 1e-7));
        assert!(stagnates(&[3.0, 2.0, 2.5, 1.9], 2, 0.2));
        assert!(!stagnates(&[3.0], 2, 0.0));
    }
}
