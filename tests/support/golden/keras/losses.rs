//! The losses of Keras's golden cases.

use wgrad::keras::losses::{
    BinaryCrossentropy, BinaryFocalCrossentropy, CategoricalCrossentropy,
    CategoricalFocalCrossentropy, CategoricalHinge, CosineSimilarity, Dice, Hinge, Huber,
    KlDivergence, LogCosh, Loss, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError,
    MeanSquaredLogarithmicError, Poisson, Reduction, SparseCategoricalCrossentropy, SquaredHinge,
    Tversky,
};

use super::super::call::{Answer, Call, Stop, one};

/// The loss of a case, with its weights.
pub fn call(c: &Call) -> Answer {
    let loss = loss(c)?;
    let weight = match c.text("sample_weight")? {
        Some(name) => Some(c.arg(&name)?),
        None => None,
    };
    one(loss.call_weighted(c.arg("y_true")?, c.arg("y_pred")?, weight))
}

fn loss(c: &Call) -> Answer<Box<dyn Loss>> {
    let reduction = reduction(c)?;
    let float = |key: &str, default: f32| -> Answer<f32> {
        Ok(c.float(key)?.map_or(default, |value| value as f32))
    };
    let axis = || -> Answer<i64> { Ok(c.int("axis")?.unwrap_or(-1)) };
    macro_rules! plain {
        ($loss:ident) => {
            Box::new($loss::new().reduction(reduction))
        };
    }
    Ok(match c.case.op.trim_start_matches("keras.losses.") {
        "MeanSquaredError" => plain!(MeanSquaredError),
        "MeanAbsoluteError" => plain!(MeanAbsoluteError),
        "MeanAbsolutePercentageError" => plain!(MeanAbsolutePercentageError),
        "MeanSquaredLogarithmicError" => plain!(MeanSquaredLogarithmicError),
        "LogCosh" => plain!(LogCosh),
        "Hinge" => plain!(Hinge),
        "SquaredHinge" => plain!(SquaredHinge),
        "CategoricalHinge" => plain!(CategoricalHinge),
        "KLDivergence" => plain!(KlDivergence),
        "Poisson" => plain!(Poisson),
        "Huber" => Box::new(Huber::new().delta(float("delta", 1.0)?).reduction(reduction)),
        "CosineSimilarity" => Box::new(CosineSimilarity::new().axis(axis()?).reduction(reduction)),
        "Dice" => Box::new(Dice::new().axis(c.axes("axis")?).reduction(reduction)),
        "Tversky" => Box::new(
            Tversky::new()
                .alpha(float("alpha", 0.5)?)
                .beta(float("beta", 0.5)?)
                .axis(c.axes("axis")?)
                .reduction(reduction),
        ),
        "BinaryCrossentropy" => Box::new(
            BinaryCrossentropy::new()
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float("label_smoothing", 0.0)?)
                .axis(axis()?)
                .reduction(reduction),
        ),
        "BinaryFocalCrossentropy" => Box::new(
            BinaryFocalCrossentropy::new()
                .apply_class_balancing(c.flag("apply_class_balancing")?)
                .alpha(float("alpha", 0.25)?)
                .gamma(float("gamma", 2.0)?)
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float("label_smoothing", 0.0)?)
                .axis(axis()?)
                .reduction(reduction),
        ),
        "CategoricalCrossentropy" => Box::new(
            CategoricalCrossentropy::new()
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float("label_smoothing", 0.0)?)
                .axis(axis()?)
                .reduction(reduction),
        ),
        "CategoricalFocalCrossentropy" => Box::new(
            CategoricalFocalCrossentropy::new()
                .alpha(float("alpha", 0.25)?)
                .gamma(float("gamma", 2.0)?)
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float("label_smoothing", 0.0)?)
                .axis(axis()?)
                .reduction(reduction),
        ),
        "SparseCategoricalCrossentropy" => Box::new(
            SparseCategoricalCrossentropy::new()
                .from_logits(c.flag("from_logits")?)
                .ignore_class(c.int("ignore_class")?.map(|class| class as i32))
                .axis(axis()?)
                .reduction(reduction),
        ),
        _ => return Err(Stop::Lacks(String::new())),
    })
}

fn reduction(c: &Call) -> Answer<Reduction> {
    match c.text("reduction")?.as_deref() {
        None | Some("sum_over_batch_size") => Ok(Reduction::SumOverBatchSize),
        Some("sum") => Ok(Reduction::Sum),
        Some("mean") => Ok(Reduction::Mean),
        Some("mean_with_sample_weight") => Ok(Reduction::MeanWithSampleWeight),
        Some("none") => Ok(Reduction::None),
        Some(_) => Err(Stop::Lacks("reduction".into())),
    }
}
