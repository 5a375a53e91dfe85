//! Metrics by Keras's names, in a separate function, so that a program that does not use names contains only the
//! metrics that it uses.

use super::*;
use crate::error::{Error, message};

macro_rules! names {
    ($($metric:ident $([$class:literal])? $($name:literal)+;)*) => {
        /// Returns the metric that Keras calls `name`, with its defaults: `"mse"`, `"mean_squared_error"` and
        /// `"MeanSquaredError"` are the same. Metrics that need a number, such as the number of classes, are not
        /// available by name.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::keras::metrics::{self, Metric};
        /// assert_eq!(metrics::get("mae")?.name(), "mean_absolute_error");
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`] if there is no metric with this name.
        pub fn get(name: &str) -> Result<Box<dyn Metric>> {
            Ok(match name {
                $(names!(@class $metric $($class)?) $(| $name)+ => Box::new($metric::default()),)*
                _ => {
                    let known = [$($($name),+),*].join(", ");
                    return Err(Error::Data(message!(
                        "metrics::get: there is no metric called '{name}'. The known ones are {known}."
                    )));
                }
            })
        }
    };
    // Keras's class, where it is not called like the type.
    (@class $metric:ident) => { stringify!($metric) };
    (@class $metric:ident $class:literal) => { $class };
}
names! {
    Auc["AUC"] "auc";
    Accuracy "accuracy";
    BinaryAccuracy "binary_accuracy";
    BinaryCrossentropy "binary_crossentropy" "bce" "BCE";
    BinaryIou["BinaryIoU"] "binary_io_u";
    CategoricalAccuracy "categorical_accuracy";
    CategoricalCrossentropy "categorical_crossentropy";
    CategoricalHinge "categorical_hinge";
    ConcordanceCorrelation "concordance_correlation";
    CosineSimilarity "cosine_similarity";
    F1Score "f1_score";
    FBetaScore "f_beta_score" "fbeta_score";
    FalseNegatives "false_negatives";
    FalsePositives "false_positives";
    Hinge "hinge";
    KlDivergence["KLDivergence"] "kl_divergence";
    LogCoshError "log_cosh_error" "logcosh";
    MeanAbsoluteError "mean_absolute_error" "mae" "MAE";
    MeanAbsolutePercentageError "mean_absolute_percentage_error" "mape" "MAPE";
    MeanSquaredError "mean_squared_error" "mse" "MSE";
    MeanSquaredLogarithmicError "mean_squared_logarithmic_error" "msle" "MSLE";
    PearsonCorrelation "pearson_correlation";
    Poisson "poisson";
    Precision "precision";
    R2Score "r2_score";
    Recall "recall";
    RootMeanSquaredError "root_mean_squared_error";
    SparseCategoricalAccuracy "sparse_categorical_accuracy";
    SparseCategoricalCrossentropy "sparse_categorical_crossentropy";
    SparseTopKCategoricalAccuracy "sparse_top_k_categorical_accuracy";
    SquaredHinge "squared_hinge";
    TopKCategoricalAccuracy "top_k_categorical_accuracy";
    TrueNegatives "true_negatives";
    TruePositives "true_positives";
}
