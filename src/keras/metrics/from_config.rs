//! Metrics from Keras's configs.

use serde_json::{Value, json};

use super::*;
use crate::dtype::DType;
use crate::error::{Error, message};
use crate::keras::layers::options::words;
use crate::keras::{Config, ConfigValue};

words! {
    Curve {
        "ROC" = Roc,
        "PR" = Pr,
        "PRGAIN" = PrGain,
    }
    SummationMethod {
        "interpolation" = Interpolation,
        "majoring" = Majoring,
        "minoring" = Minoring,
    }
    Average {
        "micro" = Micro,
        "macro" = Macro,
        "weighted" = Weighted,
    }
    ClassAggregation {
        "uniform_average" = UniformAverage,
        "variance_weighted_average" = VarianceWeightedAverage,
        "none" = None,
    }
}

/// Thresholds: one number or a list of them.
impl ConfigValue for Thresholds {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Err("is not written".into())
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        match value.is_array() {
            true => Vec::<f32>::from_json(value).map(Thresholds::from),
            false => f32::from_json(value).map(Thresholds::from),
        }
    }
}

/// The weights of labels, on the device that is the default when the config is read.
struct LabelWeights(Tensor);

impl ConfigValue for LabelWeights {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Err("is not written".into())
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let weights = Vec::<f32>::from_json(value)?;
        let made = Tensor::from_slice(&weights, [weights.len()]);
        made.map(LabelWeights).map_err(|error| format!("weights that a device holds: {error}"))
    }
}

impl From<LabelWeights> for Option<Tensor> {
    fn from(weights: LabelWeights) -> Self {
        Some(weights.0)
    }
}

/// A class that is ignored, which may be negative.
struct Ignored(i32);

impl ConfigValue for Ignored {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(self.0.into())
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        let whole = i64::from_json(value)?.try_into();
        whole.map(Ignored).map_err(|_| "a whole number of 32 bits".into())
    }
}

impl From<Ignored> for Option<i32> {
    fn from(class: Ignored) -> Self {
        Some(class.0)
    }
}

/// The dtype of counts: as in Keras, a float dtype keeps the fractions of weights.
struct CountDType(DType);

impl ConfigValue for CountDType {
    fn to_json(&self) -> std::result::Result<Value, String> {
        Ok(self.0.tensorflow_name().into())
    }

    fn from_json(value: &Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("float16" | "float32" | "float64") => Ok(CountDType(DType::F32)),
            Some("int8" | "int16" | "int32" | "int64" | "int" | "uint8") => {
                Ok(CountDType(DType::I32))
            }
            _ => Err("the name of a dtype, such as float32 or int32".into()),
        }
    }
}

impl From<CountDType> for DType {
    fn from(dtype: CountDType) -> Self {
        dtype.0
    }
}

/// Classes, Keras's default names, the arguments that each cannot do without, and its options.
macro_rules! metrics {
    ($($class:literal => $metric:ident $name:literal $(($($required:ident $([$list:ident])?),+))?
       [$($option:ident $(: $type:ty)?),* $(,)?];)*) => {
        /// Creates the metric that Keras's config describes. Options that are absent or null have Keras's defaults.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::keras::{Config, metrics::{self, Metric}};
        /// let mut config = Config::new("TopKCategoricalAccuracy");
        /// config.set("k", &3_usize)?;
        /// config.set("name", &"best_three".to_string())?;
        /// assert_eq!(metrics::from_config(&config)?.name(), "best_three");
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`] if there is no such class, or an option is unknown or wrong.
        pub fn from_config(config: &Config) -> Result<Box<dyn Metric>> {
            match config.class() {
                $($class => {
                    config.only(&["name", "dtype", $($(stringify!($required),)+)? $(stringify!($option)),*], &[])?;
                    let name = config.get_json("name").and_then(Value::as_str).unwrap_or($name);
                    #[allow(unused_mut)]
                    let mut made = $metric::new(name $($(, metrics!(@need config $required $([$list])?))+)?);
                    $(if config.get_json(stringify!($option)).is_some() {
                        made = made.$option(config.need$(::<$type>)?(stringify!($option))?);
                    })*
                    Ok(Box::new(made))
                })*
                class => Err(Error::Data(message!(
                    "from_config: there is no metric '{class}'. The known ones are {}.",
                    [$($class),*].join(", ")
                ))),
            }
        }
    };
    (@need $config:ident $argument:ident) => { $config.need(stringify!($argument))? };
    (@need $config:ident $argument:ident [list]) => {
        &$config.need::<Vec<usize>>(stringify!($argument))?
    };
}
metrics! {
    "AUC" => Auc "auc" [
        num_thresholds, curve, summation_method, thresholds: Vec<f32>, multi_label, label_weights: LabelWeights, from_logits
    ];
    "Accuracy" => Accuracy "accuracy" [];
    "BinaryAccuracy" => BinaryAccuracy "binary_accuracy" [threshold];
    "BinaryCrossentropy" => BinaryCrossentropy "binary_crossentropy" [from_logits, label_smoothing];
    "BinaryIoU" => BinaryIou "binary_io_u" [target_class_ids: Vec<usize>, threshold, dtype: CountDType];
    "CategoricalAccuracy" => CategoricalAccuracy "categorical_accuracy" [];
    "CategoricalCrossentropy" => CategoricalCrossentropy "categorical_crossentropy" [from_logits, label_smoothing, axis: i64];
    "CategoricalHinge" => CategoricalHinge "categorical_hinge" [];
    "ConcordanceCorrelation" => ConcordanceCorrelation "concordance_correlation" [axis: i64];
    "CosineSimilarity" => CosineSimilarity "cosine_similarity" [axis: i64];
    "F1Score" => F1Score "f1_score" [average, threshold: f32];
    "FBetaScore" => FBetaScore "fbeta_score" [average, beta, threshold: f32];
    "FalseNegatives" => FalseNegatives "false_negatives" [thresholds: Thresholds];
    "FalsePositives" => FalsePositives "false_positives" [thresholds: Thresholds];
    "Hinge" => Hinge "hinge" [];
    "IoU" => Iou "io_u" (num_classes, target_class_ids [list])
        [ignore_class: Ignored, sparse_y_true, sparse_y_pred, axis: i64, dtype: CountDType];
    "KLDivergence" => KlDivergence "kl_divergence" [];
    "LogCoshError" => LogCoshError "logcosh" [];
    "MeanAbsoluteError" => MeanAbsoluteError "mean_absolute_error" [];
    "MeanAbsolutePercentageError" => MeanAbsolutePercentageError "mean_absolute_percentage_error" [];
    "MeanIoU" => MeanIou "mean_io_u" (num_classes)
        [ignore_class: Ignored, sparse_y_true, sparse_y_pred, axis: i64, dtype: CountDType];
    "MeanSquaredError" => MeanSquaredError "mean_squared_error" [];
    "MeanSquaredLogarithmicError" => MeanSquaredLogarithmicError "mean_squared_logarithmic_error" [];
    "OneHotIoU" => OneHotIou "one_hot_io_u" (num_classes, target_class_ids [list])
        [ignore_class: Ignored, sparse_y_pred, axis: i64, dtype: CountDType];
    "OneHotMeanIoU" => OneHotMeanIou "one_hot_mean_io_u" (num_classes)
        [ignore_class: Ignored, sparse_y_pred, axis: i64, dtype: CountDType];
    "PearsonCorrelation" => PearsonCorrelation "pearson_correlation" [axis: i64];
    "Poisson" => Poisson "poisson" [];
    "Precision" => Precision "precision" [thresholds: Thresholds, top_k: usize, class_id: usize];
    "PrecisionAtRecall" => PrecisionAtRecall "precision_at_recall" (recall) [num_thresholds, class_id: usize];
    "R2Score" => R2Score "r2_score" [class_aggregation, num_regressors];
    "Recall" => Recall "recall" [thresholds: Thresholds, top_k: usize, class_id: usize];
    "RecallAtPrecision" => RecallAtPrecision "recall_at_precision" (precision) [num_thresholds, class_id: usize];
    "RootMeanSquaredError" => RootMeanSquaredError "root_mean_squared_error" [];
    "SensitivityAtSpecificity" => SensitivityAtSpecificity "sensitivity_at_specificity" (specificity)
        [num_thresholds, class_id: usize];
    "SparseCategoricalAccuracy" => SparseCategoricalAccuracy "sparse_categorical_accuracy" [];
    "SparseCategoricalCrossentropy" => SparseCategoricalCrossentropy "sparse_categorical_crossentropy"
        [from_logits, ignore_class: Ignored, axis: i64];
    "SparseTopKCategoricalAccuracy" => SparseTopKCategoricalAccuracy "sparse_top_k_categorical_accuracy" [k];
    "SpecificityAtSensitivity" => SpecificityAtSensitivity "specificity_at_sensitivity" (sensitivity)
        [num_thresholds, class_id: usize];
    "SquaredHinge" => SquaredHinge "squared_hinge" [];
    "TopKCategoricalAccuracy" => TopKCategoricalAccuracy "top_k_categorical_accuracy" [k];
    "TrueNegatives" => TrueNegatives "true_negatives" [thresholds: Thresholds];
    "TruePositives" => TruePositives "true_positives" [thresholds: Thresholds];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_names_are_read() {
        let Value::Object(options) = json!({"k": 2, "name": "top2"}) else { panic!() };
        let made =
            from_config(&Config::with_options("SparseTopKCategoricalAccuracy", options)).unwrap();
        assert_eq!(made.name(), "top2");
        let (y, p) = (
            crate::constant([0, 2]).unwrap(),
            crate::constant([[0.3, 0.5, 0.2], [0.3, 0.5, 0.2]]).unwrap(),
        );
        made.update_state(&y, &p).unwrap();
        assert_eq!(made.result().unwrap().item::<f32>().unwrap(), 0.5);
    }

    fn made(class: &str, options: Value) -> Result<Box<dyn Metric>> {
        let Value::Object(options) = options else { panic!("options are an object") };
        from_config(&Config::with_options(class, options))
    }

    #[test]
    fn arguments_and_lists_are_read() {
        let (y, p) = (
            crate::constant([0, 0, 1, 1]).unwrap(),
            crate::constant([0.0, 0.5, 0.3, 0.9]).unwrap(),
        );
        for (class, options, expected) in [
            ("RecallAtPrecision", json!({"precision": 0.8}), vec![0.5]),
            ("Precision", json!({"thresholds": [0.25, 0.75]}), vec![2.0 / 3.0, 1.0]),
            ("Recall", json!({"thresholds": 0.5, "top_k": null}), vec![0.5]),
            (
                "AUC",
                json!({"thresholds": [0.5], "curve": "ROC", "summation_method": "majoring"}),
                vec![1.0],
            ),
            ("BinaryIoU", json!({"target_class_ids": [0], "dtype": "int64"}), vec![1.0 / 3.0]),
        ] {
            let metric = made(class, options).unwrap();
            metric.update_state(&y, &p).unwrap();
            let found = metric.result().unwrap().reshape([-1]).unwrap().to_vec::<f32>().unwrap();
            let near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(near && found.len() == expected.len(), "{class}: {found:?}");
        }
        let text = |class, options| made(class, options).map(drop).unwrap_err().to_string();
        assert!(text("RecallAtPrecision", json!({})).contains("needs 'precision'"));
        assert!(text("AUC", json!({"curve": "roc"})).contains("one of ROC, PR, PRGAIN"));
    }

    #[test]
    fn wrong_options_are_named() {
        let Value::Object(options) = json!({"k": 2}) else { panic!() };
        let Err(error) = from_config(&Config::with_options("Precision", options)) else { panic!() };
        assert!(error.to_string().contains("'k' of Precision"), "{error}");
        let Err(error) = from_config(&Config::new("Acc")) else { panic!() };
        assert!(error.to_string().contains("there is no metric 'Acc'"), "{error}");
    }
}
