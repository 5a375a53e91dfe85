//! Losses by Keras's names, in a separate function, so that a program that does not use names contains only the losses that it
//! uses.

use super::*;
use crate::error::{Error, Result, message};

macro_rules! names {
    ($($loss:ident $([$class:literal])? $($name:literal)+;)*) => {
        /// Returns the loss that Keras calls `name`, with its defaults: `"mse"`, `"mean_squared_error"` and
        /// `"MeanSquaredError"` are the same.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::keras::losses::{self, Loss};
        /// assert_eq!(losses::get("mae")?.name(), "mean_absolute_error");
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`] if there is no loss with this name.
        pub fn get(name: &str) -> Result<Box<dyn Loss>> {
            Ok(match name {
                $(names!(@class $loss $($class)?) $(| $name)+ => Box::new($loss::new()),)*
                _ => {
                    let known = [$($($name),+),*].join(", ");
                    return Err(Error::Data(message!(
                        "losses::get: there is no loss called '{name}'. The known ones are {known}."
                    )));
                }
            })
        }
    };
    // Keras's class, where it is not called like the type.
    (@class $loss:ident) => { stringify!($loss) };
    (@class $loss:ident $class:literal) => { $class };
}
names! {
    BinaryCrossentropy "binary_crossentropy" "bce" "BCE";
    BinaryFocalCrossentropy "binary_focal_crossentropy";
    CategoricalCrossentropy "categorical_crossentropy";
    CategoricalFocalCrossentropy "categorical_focal_crossentropy";
    CategoricalGeneralizedCrossEntropy "categorical_generalized_cross_entropy";
    CategoricalHinge "categorical_hinge";
    Circle "circle";
    CosineSimilarity "cosine_similarity";
    Dice "dice";
    Hinge "hinge";
    Huber "huber";
    KlDivergence["KLDivergence"] "kl_divergence" "kld" "KLD";
    LogCosh "log_cosh" "logcosh";
    MeanAbsoluteError "mean_absolute_error" "mae" "MAE";
    MeanAbsolutePercentageError "mean_absolute_percentage_error" "mape" "MAPE";
    MeanSquaredError "mean_squared_error" "mse" "MSE";
    MeanSquaredLogarithmicError "mean_squared_logarithmic_error" "msle" "MSLE";
    Poisson "poisson";
    SparseCategoricalCrossentropy "sparse_categorical_crossentropy";
    SquaredHinge "squared_hinge";
    Tversky "tversky";
}
