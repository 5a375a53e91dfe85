//! The metrics of Keras's golden cases.

use serde_json::Value;
use wgrad::Tensor;
use wgrad::keras::metrics::{
    Accuracy, Auc, Average, BinaryAccuracy, BinaryCrossentropy, BinaryIou, CategoricalAccuracy,
    CategoricalCrossentropy, CategoricalHinge, ConcordanceCorrelation, CosineSimilarity, Curve,
    F1Score, FBetaScore, FalseNegatives, FalsePositives, Hinge, Iou, KlDivergence, LogCoshError,
    Mean, MeanAbsoluteError, MeanAbsolutePercentageError, MeanIou, MeanSquaredError,
    MeanSquaredLogarithmicError, Metric, OneHotIou, OneHotMeanIou, PearsonCorrelation, Poisson,
    Precision, PrecisionAtRecall, R2Score, Recall, RecallAtPrecision, RootMeanSquaredError,
    SensitivityAtSpecificity, SparseCategoricalAccuracy, SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy, SpecificityAtSensitivity, SquaredHinge, Sum, SummationMethod,
    Thresholds, TopKCategoricalAccuracy, TrueNegatives, TruePositives,
};

use super::super::call::{Answer, Call, Stop};
use super::super::sheet::Sheet;

/// Updates the case's metric and records its result after each update.
pub fn measure(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    let update: Box<dyn Fn(usize) -> Answer<Tensor> + '_> = match name(c) {
        "Mean" => {
            let (mean, rows) = (Mean::new("mean"), c.arg("values")?.unstack(0)?);
            Box::new(move |i| {
                mean.update_state(&rows[i])?;
                Ok(mean.result()?)
            })
        }
        "Sum" => {
            let (sum, rows) = (Sum::new("sum"), c.arg("values")?.unstack(0)?);
            Box::new(move |i| {
                sum.update_state(&rows[i])?;
                Ok(sum.result()?)
            })
        }
        _ => {
            let metric = metric(c)?;
            let weighted = c.tensors().iter().any(|(key, _)| key == "w0");
            Box::new(move |i| {
                let [y_true, y_pred] =
                    [c.arg(&format!("y_true{i}"))?, c.arg(&format!("y_pred{i}"))?];
                let weight = if weighted { Some(c.arg(&format!("w{i}"))?) } else { None };
                metric.update(y_true, y_pred, weight)?;
                Ok(metric.result()?)
            })
        }
    };
    for (i, want) in c.case.results.iter().enumerate() {
        sheet.add_number(&format!("after update {i}"), &update(i)?, *want);
    }
    Ok(())
}

fn name<'a>(c: &'a Call) -> &'a str {
    c.case.op.trim_start_matches("keras.metrics.")
}

fn metric(c: &Call) -> Answer<Box<dyn Metric>> {
    Ok(match name(c) {
        "Accuracy" => Box::<Accuracy>::default(),
        "CategoricalAccuracy" => Box::<CategoricalAccuracy>::default(),
        "SparseCategoricalAccuracy" => Box::<SparseCategoricalAccuracy>::default(),
        "BinaryAccuracy" => {
            Box::new(BinaryAccuracy::default().threshold(float(c, "threshold", 0.5)?))
        }
        "TopKCategoricalAccuracy" => {
            Box::new(TopKCategoricalAccuracy::default().k(count(c, "k", 5)?))
        }
        "SparseTopKCategoricalAccuracy" => {
            Box::new(SparseTopKCategoricalAccuracy::default().k(count(c, "k", 5)?))
        }
        "TruePositives" => Box::new(TruePositives::default().thresholds(thresholds(c)?)),
        "FalsePositives" => Box::new(FalsePositives::default().thresholds(thresholds(c)?)),
        "TrueNegatives" => Box::new(TrueNegatives::default().thresholds(thresholds(c)?)),
        "FalseNegatives" => Box::new(FalseNegatives::default().thresholds(thresholds(c)?)),
        "Precision" => Box::new(
            Precision::default()
                .thresholds(thresholds(c)?)
                .top_k(size(c, "top_k")?)
                .class_id(size(c, "class_id")?),
        ),
        "Recall" => Box::new(
            Recall::default()
                .thresholds(thresholds(c)?)
                .top_k(size(c, "top_k")?)
                .class_id(size(c, "class_id")?),
        ),
        "SensitivityAtSpecificity" => Box::new(
            SensitivityAtSpecificity::new("", required(c, "specificity")?)
                .num_thresholds(count(c, "num_thresholds", 200)?)
                .class_id(size(c, "class_id")?),
        ),
        "SpecificityAtSensitivity" => Box::new(
            SpecificityAtSensitivity::new("", required(c, "sensitivity")?)
                .num_thresholds(count(c, "num_thresholds", 200)?)
                .class_id(size(c, "class_id")?),
        ),
        "PrecisionAtRecall" => Box::new(
            PrecisionAtRecall::new("", required(c, "recall")?)
                .num_thresholds(count(c, "num_thresholds", 200)?)
                .class_id(size(c, "class_id")?),
        ),
        "RecallAtPrecision" => Box::new(
            RecallAtPrecision::new("", required(c, "precision")?)
                .num_thresholds(count(c, "num_thresholds", 200)?)
                .class_id(size(c, "class_id")?),
        ),
        "AUC" => Box::new(
            Auc::default()
                .num_thresholds(count(c, "num_thresholds", 200)?)
                .curve(curve(c)?)
                .summation_method(summation(c)?)
                .multi_label(c.flag("multi_label")?)
                .from_logits(c.flag("from_logits")?),
        ),
        "F1Score" => Box::new(F1Score::default().average(average(c)?).threshold(threshold(c)?)),
        "FBetaScore" => Box::new(
            FBetaScore::default()
                .average(average(c)?)
                .beta(float(c, "beta", 1.0)?)
                .threshold(threshold(c)?),
        ),
        "R2Score" => Box::new(R2Score::default().num_regressors(count(c, "num_regressors", 0)?)),
        "IoU" => Box::new(Iou::new("", classes(c)?, &targets(c)?)),
        "BinaryIoU" => Box::new(BinaryIou::new("").target_class_ids(targets(c)?).threshold(float(
            c,
            "threshold",
            0.5,
        )?)),
        "MeanIoU" => Box::new(MeanIou::new("", classes(c)?)),
        "OneHotIoU" => Box::new(OneHotIou::new("", classes(c)?, &targets(c)?)),
        "OneHotMeanIoU" => Box::new(OneHotMeanIou::new("", classes(c)?)),
        "MeanSquaredError" => Box::<MeanSquaredError>::default(),
        "RootMeanSquaredError" => Box::<RootMeanSquaredError>::default(),
        "MeanAbsoluteError" => Box::<MeanAbsoluteError>::default(),
        "MeanAbsolutePercentageError" => Box::<MeanAbsolutePercentageError>::default(),
        "MeanSquaredLogarithmicError" => Box::<MeanSquaredLogarithmicError>::default(),
        "LogCoshError" => Box::<LogCoshError>::default(),
        "CosineSimilarity" => Box::<CosineSimilarity>::default(),
        "PearsonCorrelation" => Box::<PearsonCorrelation>::default(),
        "ConcordanceCorrelation" => Box::<ConcordanceCorrelation>::default(),
        "Hinge" => Box::<Hinge>::default(),
        "SquaredHinge" => Box::<SquaredHinge>::default(),
        "CategoricalHinge" => Box::<CategoricalHinge>::default(),
        "KLDivergence" => Box::<KlDivergence>::default(),
        "Poisson" => Box::<Poisson>::default(),
        "BinaryCrossentropy" => Box::new(
            BinaryCrossentropy::default()
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float(c, "label_smoothing", 0.0)?),
        ),
        "CategoricalCrossentropy" => Box::new(
            CategoricalCrossentropy::default()
                .from_logits(c.flag("from_logits")?)
                .label_smoothing(float(c, "label_smoothing", 0.0)?),
        ),
        "SparseCategoricalCrossentropy" => Box::new(
            SparseCategoricalCrossentropy::default()
                .from_logits(c.flag("from_logits")?)
                .ignore_class(c.int("ignore_class")?.map(|class| class as i32)),
        ),
        _ => return Err(Stop::Lacks(String::new())),
    })
}

fn float(c: &Call, key: &str, default: f32) -> Answer<f32> {
    Ok(c.float(key)?.map_or(default, |value| value as f32))
}

fn required(c: &Call, key: &str) -> Answer<f32> {
    Ok(c.need(key, c.float(key)?)? as f32)
}

fn size(c: &Call, key: &str) -> Answer<Option<usize>> {
    Ok(c.int(key)?.map(|value| value as usize))
}

fn count(c: &Call, key: &str, default: usize) -> Answer<usize> {
    Ok(size(c, key)?.unwrap_or(default))
}

fn classes(c: &Call) -> Answer<usize> {
    c.need("num_classes", size(c, "num_classes")?)
}

fn targets(c: &Call) -> Answer<Vec<usize>> {
    c.need("target_class_ids", c.sizes("target_class_ids")?)
}

/// A number, a list of them, or Keras's default.
fn thresholds(c: &Call) -> Answer<Thresholds> {
    Ok(match c.value("thresholds")? {
        None => Thresholds::default(),
        Some(Value::Array(_)) => {
            let list = c.need("thresholds", c.floats("thresholds")?)?;
            list.into_iter().map(|value| value as f32).collect::<Vec<_>>().into()
        }
        Some(_) => required(c, "thresholds")?.into(),
    })
}

fn threshold(c: &Call) -> Answer<Option<f32>> {
    Ok(c.float("threshold")?.map(|value| value as f32))
}

fn curve(c: &Call) -> Answer<Curve> {
    match c.text("curve")?.as_deref() {
        None | Some("ROC") => Ok(Curve::Roc),
        Some("PR") => Ok(Curve::Pr),
        Some("PRGAIN") => Ok(Curve::PrGain),
        Some(_) => Err(Stop::Lacks("curve".into())),
    }
}

fn summation(c: &Call) -> Answer<SummationMethod> {
    match c.text("summation_method")?.as_deref() {
        None | Some("interpolation") => Ok(SummationMethod::Interpolation),
        Some("majoring") => Ok(SummationMethod::Majoring),
        Some("minoring") => Ok(SummationMethod::Minoring),
        Some(_) => Err(Stop::Lacks("summation_method".into())),
    }
}

fn average(c: &Call) -> Answer<Average> {
    match c.text("average")?.as_deref() {
        None => Ok(Average::None),
        Some("micro") => Ok(Average::Micro),
        Some("macro") => Ok(Average::Macro),
        Some("weighted") => Ok(Average::Weighted),
        Some(_) => Err(Stop::Lacks("average".into())),
    }
}
