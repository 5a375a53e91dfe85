//! The macro that defines a loss by its name, its options and its formula.

/// Defines a loss: an options struct, to which it adds a field `reduction`, and its [`Loss`](super::Loss). The formula
/// receives the struct, `y_true` and `y_pred`, both `f32` and of one shape.
macro_rules! loss {
    (
        $(#[$doc:meta])* pub struct $name:ident $([$class:literal])? = $keras:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
        }
        |$options:pat_param, $y_true:pat_param, $y_pred:pat_param| $formula:expr
    ) => {
        crate::keras::losses::row::loss_options! {
            $(#[$doc])* $(#[doc(alias = $class)])? pub struct $name {
                $($(#[$field_doc])* $field: $type $(as $argument)? = $default,)*
            }
        }

        impl crate::keras::losses::Loss for $name {
            fn name(&self) -> &str {
                $keras
            }

            fn losses(
                &self,
                y_true: &crate::tensor::Tensor,
                y_pred: &crate::tensor::Tensor,
            ) -> crate::error::Result<crate::tensor::Tensor> {
                let pair = crate::keras::losses::agreement::agree(crate::keras::losses::row::loss!(@class $name $($class)?), y_true, y_pred)?;
                let ($options, [$y_true, $y_pred]) = (self, &pair);
                $formula
            }

            fn reduction(&self) -> crate::keras::losses::Reduction {
                self.reduction
            }
        }
    };
    // Keras's class, where it is not called like the type.
    (@class $name:ident) => { stringify!($name) };
    (@class $name:ident $class:literal) => { $class };
}

/// Defines the options struct of a loss.
macro_rules! loss_options {
    ($(#[$doc:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        crate::support::options::options! {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq)]
            pub struct $name {
                $($fields)*
                /// How the losses of a batch are reduced to one number.
                reduction: crate::keras::losses::Reduction = crate::keras::losses::Reduction::SumOverBatchSize,
            }
        }
        crate::trackable::plain!($name);
    };
}

pub(crate) use {loss, loss_options};
