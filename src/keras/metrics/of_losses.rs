//! Means of losses.

use super::mean_metric_wrapper::loss_metric;
use crate::shape::Axis;

loss_metric! {
    /// The mean of `(y_true - y_pred)^2`: both `[..,D]`.
    pub struct MeanSquaredError = "mean_squared_error" of MeanSquaredError {}

    /// The mean of `|y_true - y_pred|`: both `[..,D]`.
    pub struct MeanAbsoluteError = "mean_absolute_error" of MeanAbsoluteError {}

    /// 100 times the mean of `|y_true - y_pred| / max(|y_true|, 1e-7)`: both `[..,D]`.
    pub struct MeanAbsolutePercentageError = "mean_absolute_percentage_error" of MeanAbsolutePercentageError {}

    /// The mean of `(log(y_pred + 1) - log(y_true + 1))^2`, both at least 1e-7: both `[..,D]`.
    pub struct MeanSquaredLogarithmicError = "mean_squared_logarithmic_error" of MeanSquaredLogarithmicError {}

    /// The mean of [`losses::Hinge`](crate::keras::losses::Hinge).
    pub struct Hinge = "hinge" of Hinge {}

    /// The mean of [`losses::SquaredHinge`](crate::keras::losses::SquaredHinge).
    pub struct SquaredHinge = "squared_hinge" of SquaredHinge {}

    /// The mean of [`losses::CategoricalHinge`](crate::keras::losses::CategoricalHinge).
    pub struct CategoricalHinge = "categorical_hinge" of CategoricalHinge {}

    /// The mean of [`losses::KlDivergence`](crate::keras::losses::KlDivergence).
    pub struct KlDivergence["KLDivergence"] = "kl_divergence" of KlDivergence {}

    /// The mean of [`losses::Poisson`](crate::keras::losses::Poisson).
    pub struct Poisson = "poisson" of Poisson {}

    /// The mean of [`losses::BinaryCrossentropy`](crate::keras::losses::BinaryCrossentropy).
    pub struct BinaryCrossentropy = "binary_crossentropy" of BinaryCrossentropy {
        /// Whether predictions are logits.
        from_logits: bool,
        /// How much of the truth is distributed evenly over both values.
        label_smoothing: f32,
    }

    /// The mean of [`losses::CategoricalCrossentropy`](crate::keras::losses::CategoricalCrossentropy).
    pub struct CategoricalCrossentropy = "categorical_crossentropy" of CategoricalCrossentropy {
        /// Whether predictions are logits.
        from_logits: bool,
        /// How much of the truth is distributed evenly over all classes.
        label_smoothing: f32,
        /// The axis of the classes.
        axis: impl Into<Axis>,
    }

    /// The mean of [`losses::SparseCategoricalCrossentropy`](crate::keras::losses::SparseCategoricalCrossentropy). As in Keras,
    /// positions of the ignored class count as 0 if there are no weights.
    pub struct SparseCategoricalCrossentropy = "sparse_categorical_crossentropy" of SparseCategoricalCrossentropy {
        /// Whether predictions are logits.
        from_logits: bool,
        /// A label whose positions have the loss 0.
        ignore_class: impl Into<Option<i32>>,
        /// The axis of the classes.
        axis: impl Into<Axis>,
    }

    /// The mean of [`losses::LogCosh`](crate::keras::losses::LogCosh).
    pub struct LogCoshError = "logcosh" of LogCosh {}
}
