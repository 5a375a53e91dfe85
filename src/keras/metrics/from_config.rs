//! Metrics from Keras's configs.

use super::*;
use crate::error::{Error, message};
use crate::keras::Config;

/// Classes, Keras's default names, and the options of each.
macro_rules! metrics {
    ($($class:literal => $metric:ident $name:literal [$($option:ident),*];)*) => {
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
                    config.only(&["name", "dtype", $(stringify!($option)),*], &[])?;
                    let name = config.get_json("name").and_then(serde_json::Value::as_str).unwrap_or($name);
                    #[allow(unused_mut)]
                    let mut made = $metric::new(name);
                    $(if config.get_json(stringify!($option)).is_some() {
                        made = made.$option(config.need(stringify!($option))?);
                    })*
                    Ok(Box::new(made))
                })*
                "MeanIoU" => {
                    config.only(&["name", "dtype", "num_classes"], &[])?;
                    let name = config.get_json("name").and_then(serde_json::Value::as_str).unwrap_or("mean_io_u");
                    Ok(Box::new(MeanIou::new(name, config.need("num_classes")?)))
                }
                class => Err(Error::Data(message!(
                    "from_config: there is no metric '{class}'. The known ones are {}, MeanIoU.",
                    [$($class),*].join(", ")
                ))),
            }
        }
    };
}
metrics! {
    "AUC" => Auc "auc" [num_thresholds];
    "Accuracy" => Accuracy "accuracy" [];
    "BinaryAccuracy" => BinaryAccuracy "binary_accuracy" [threshold];
    "BinaryCrossentropy" => BinaryCrossentropy "binary_crossentropy" [from_logits, label_smoothing];
    "CategoricalAccuracy" => CategoricalAccuracy "categorical_accuracy" [];
    "CategoricalCrossentropy" => CategoricalCrossentropy "categorical_crossentropy" [from_logits, label_smoothing];
    "CategoricalHinge" => CategoricalHinge "categorical_hinge" [];
    "CosineSimilarity" => CosineSimilarity "cosine_similarity" [];
    "F1Score" => F1Score "f1_score" [];
    "FBetaScore" => FBetaScore "fbeta_score" [beta];
    "FalseNegatives" => FalseNegatives "false_negatives" [];
    "FalsePositives" => FalsePositives "false_positives" [];
    "Hinge" => Hinge "hinge" [];
    "KLDivergence" => KlDivergence "kl_divergence" [];
    "LogCoshError" => LogCoshError "logcosh" [];
    "MeanAbsoluteError" => MeanAbsoluteError "mean_absolute_error" [];
    "MeanAbsolutePercentageError" => MeanAbsolutePercentageError "mean_absolute_percentage_error" [];
    "MeanSquaredError" => MeanSquaredError "mean_squared_error" [];
    "MeanSquaredLogarithmicError" => MeanSquaredLogarithmicError "mean_squared_logarithmic_error" [];
    "Poisson" => Poisson "poisson" [];
    "Precision" => Precision "precision" [];
    "R2Score" => R2Score "r2_score" [];
    "Recall" => Recall "recall" [];
    "RootMeanSquaredError" => RootMeanSquaredError "root_mean_squared_error" [];
    "SparseCategoricalAccuracy" => SparseCategoricalAccuracy "sparse_categorical_accuracy" [];
    "SparseCategoricalCrossentropy" => SparseCategoricalCrossentropy "sparse_categorical_crossentropy" [from_logits];
    "SparseTopKCategoricalAccuracy" => SparseTopKCategoricalAccuracy "sparse_top_k_categorical_accuracy" [k];
    "SquaredHinge" => SquaredHinge "squared_hinge" [];
    "TopKCategoricalAccuracy" => TopKCategoricalAccuracy "top_k_categorical_accuracy" [k];
    "TrueNegatives" => TrueNegatives "true_negatives" [];
    "TruePositives" => TruePositives "true_positives" [];
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_and_names_are_read() {
        let serde_json::Value::Object(options) = json!({"k": 2, "name": "top2"}) else { panic!() };
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

    #[test]
    fn wrong_options_are_named() {
        let serde_json::Value::Object(options) = json!({"k": 2}) else { panic!() };
        let Err(error) = from_config(&Config::with_options("Precision", options)) else { panic!() };
        assert!(error.to_string().contains("'k' of Precision"), "{error}");
        let Err(error) = from_config(&Config::new("Acc")) else { panic!() };
        assert!(error.to_string().contains("there is no metric 'Acc'"), "{error}");
    }
}
