//! The loss and the metrics of each output of a model.

use std::sync::Arc;

use super::choices::LossesOf;
use super::compile::{MetricsOf, Output};
use crate::data::Column;
use crate::error::{Error, Result, message};
use crate::keras::losses::Loss;
use crate::keras::metrics::Metric;
use crate::tensor::Tensor;

/// The losses and metrics passed to `compile`.
pub(super) struct Recipe {
    pub(super) losses: LossesOf,
    pub(super) loss_weights: Vec<(Option<String>, f32)>,
    pub(super) metrics: Vec<MetricsOf>,
}

/// An output with its loss and its metrics.
pub(super) struct Outlet {
    pub(super) name: String,
    /// The index of its truth among the targets of a batch.
    target: Option<usize>,
    pub(super) loss: Option<Arc<dyn Loss>>,
    pub(super) loss_weight: Option<f32>,
    pub(super) metrics: Vec<LoggedMetric>,
}

/// A metric, its name in logs, and whether sample weights apply to it.
pub(super) struct LoggedMetric {
    pub(super) log: String,
    pub(super) weighted: bool,
    pub(super) metric: Arc<dyn Metric>,
}

impl Outlet {
    /// The column with its truth.
    pub(super) fn column<'a, 'b>(&self, y: &'b [Column<'a>]) -> Option<&'b Column<'a>> {
        self.target.and_then(|at| y.get(at))
    }

    /// The target of the output.
    pub(super) fn target<'a>(&self, y: &'a [Tensor]) -> Result<&'a Tensor> {
        self.target.and_then(|at| y.get(at)).ok_or_else(|| {
            Error::Data(message!(
                "the batch has {} targets, and the output '{}' has none among them. Give y for each output that has a \
                 loss or a metric.",
                y.len(),
                self.name
            ))
        })
    }
}

/// Assigns the arguments of `compile` to the outputs.
pub(super) fn outlets(
    recipe: &Recipe,
    names: Vec<String>,
    y: &[Tensor],
    y_pred: &[Tensor],
) -> Result<Vec<Outlet>> {
    let count = y_pred.len();
    let names: Vec<String> = match names.len() == count {
        true => names,
        false => (1..=count).map(|at| format!("output_{at}")).collect(),
    };
    let mut outlets: Vec<Outlet> = names
        .iter()
        .map(|name| Outlet {
            name: name.clone(),
            target: None,
            loss: None,
            loss_weight: None,
            metrics: Vec::new(),
        })
        .collect();
    let losses = losses_of(recipe, &names)?;
    targets(&mut outlets, &losses, y)?;
    for ((outlet, loss), y_pred) in outlets.iter_mut().zip(losses).zip(y_pred) {
        let Some(loss) = loss else { continue };
        outlet.loss = Some(loss.resolve(outlet.target(y)?, y_pred)?);
    }
    share_weights(recipe, &names, &mut outlets)?;
    share_metrics(recipe, &names, &mut outlets, y, y_pred)?;
    Ok(outlets)
}

type ChosenLoss = Option<super::choices::Choice<dyn Loss>>;

/// The loss of each output.
fn losses_of(recipe: &Recipe, names: &[String]) -> Result<Vec<ChosenLoss>> {
    Ok(match &recipe.losses {
        LossesOf::All(loss) => names.iter().map(|_| Some(loss.clone())).collect(),
        LossesOf::InOrder(losses) if losses.len() == names.len() => {
            losses.iter().cloned().map(Some).collect()
        }
        LossesOf::InOrder(losses) => {
            return Err(Error::Data(message!(
                "compile: there are {} losses, and the model has {} outputs: {}. Give a loss for each, one for all, or \
                 pairs of names and losses.",
                losses.len(),
                names.len(),
                names.join(", ")
            )));
        }
        LossesOf::Named(losses) => {
            let mut found: Vec<ChosenLoss> = names.iter().map(|_| None).collect();
            for (name, loss) in losses {
                found[place(&Output::Named(name.clone()), names)?] = Some(loss.clone());
            }
            found
        }
    })
}

/// Assigns a target to each output: one for each output, or one for each output with a loss.
fn targets(outlets: &mut [Outlet], losses: &[ChosenLoss], y: &[Tensor]) -> Result<()> {
    if y.len() == outlets.len() {
        outlets.iter_mut().enumerate().for_each(|(at, outlet)| outlet.target = Some(at));
        return Ok(());
    }
    let wanted = losses.iter().flatten().count();
    if y.len() != wanted {
        return Err(Error::Data(message!(
            "the batch has {} targets, and the model {} outputs, of which {wanted} have a loss. Give y for each: a \
             tensor, or a tuple of them.",
            y.len(),
            outlets.len()
        )));
    }
    let with_loss = outlets.iter_mut().zip(losses).filter(|(_, loss)| loss.is_some());
    with_loss.enumerate().for_each(|(at, (outlet, _))| outlet.target = Some(at));
    Ok(())
}

/// The index of an output.
fn place(output: &Output, names: &[String]) -> Result<usize> {
    let found = match output {
        Output::At(at) => (*at < names.len()).then_some(*at),
        Output::Named(name) => names.iter().position(|known| known == name),
    };
    found.ok_or_else(|| {
        let what = match output {
            Output::At(at) => format!("at position {at}"),
            Output::Named(name) => format!("called '{name}'"),
        };
        Error::Data(message!(
            "compile: there is no output {what}; the model has {}: {}.",
            names.len(),
            names.join(", ")
        ))
    })
}

fn share_weights(recipe: &Recipe, names: &[String], outlets: &mut [Outlet]) -> Result<()> {
    let in_order = recipe.loss_weights.iter().filter(|(name, _)| name.is_none()).count();
    let wanted = outlets.iter().filter(|outlet| outlet.loss.is_some()).count();
    if in_order > 0 && in_order != names.len() && in_order != wanted {
        return Err(Error::Data(message!(
            "compile: there are {in_order} loss weights, and the model has {wanted} losses. Give a weight for each."
        )));
    }
    let mut next = 0..;
    for (name, weight) in &recipe.loss_weights {
        let at = match name {
            Some(name) => place(&Output::Named(name.clone()), names)?,
            None if in_order == names.len() => next.next().unwrap_or(0),
            // One weight for each output with a loss.
            None => {
                let with_loss = |at: &usize| outlets[*at].loss.is_some();
                next.find(with_loss).unwrap_or(0)
            }
        };
        outlets[at].loss_weight = Some(*weight);
    }
    Ok(())
}

fn share_metrics(
    recipe: &Recipe,
    names: &[String],
    outlets: &mut [Outlet],
    y: &[Tensor],
    y_pred: &[Tensor],
) -> Result<()> {
    // Names in logs must differ; they are made unique as in Keras.
    let mut taken: Vec<String> = Vec::new();
    for weighted in [false, true] {
        for given in recipe.metrics.iter().filter(|given| given.weighted == weighted) {
            let at = match &given.output {
                Some(output) => place(output, names)?,
                None if names.len() == 1 => 0,
                None => {
                    return Err(Error::Data(message!(
                        "compile: the model has {} outputs: {}. Say with metrics_of whose metrics these are.",
                        names.len(),
                        names.join(", ")
                    )));
                }
            };
            for (name, choice) in &given.metrics {
                let prefix = match names.len() {
                    1 => String::new(),
                    _ => format!("{}_", names[at]),
                };
                let mut log = format!("{prefix}{name}");
                if weighted && taken.contains(&log) {
                    log = format!("{prefix}weighted_{name}");
                }
                let (base, mut count) = (log.clone(), 0);
                while taken.contains(&log) {
                    count += 1;
                    log = format!("{base}_{count}");
                }
                taken.push(log.clone());
                let metric = choice.resolve(outlets[at].target(y)?, &y_pred[at])?;
                outlets[at].metrics.push(LoggedMetric { log, weighted, metric });
            }
        }
    }
    Ok(())
}
