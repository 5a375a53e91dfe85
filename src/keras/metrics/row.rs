//! The macros that define a metric by its name, its options and its formula.

/// Defines the struct of a metric: a `name`, the accumulator (`$part`) and other state, and options with defaults and setters.
macro_rules! metric {
    (
        $(#[$doc:meta])* pub struct $name:ident $([$class:literal])? = $keras:literal
            ($part:ident: $kind:ty = $start:expr $(, $more:ident: $more_kind:ty = $more_start:expr)*) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        $(#[doc(alias = $class)])?
        #[derive(Debug)]
        pub struct $name {
            name: String,
            $part: $kind,
            $($more: $more_kind,)*
            $($field: $type,)*
        }

        impl Default for $name {
            #[doc = concat!("Creates a metric with the name `", $keras, "`.")]
            fn default() -> Self {
                $name::new($keras)
            }
        }

        impl $name {
            /// Creates a metric with this name.
            pub fn new(name: impl Into<String>) -> Self {
                $name { name: name.into(), $part: $start, $($more: $more_start,)* $($field: $default,)* }
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: crate::support::options::options!(@argument $type $(, $argument)?)) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }

        impl crate::trackable::Trackable for $name {
            fn track(&self, parts: &mut crate::trackable::Parts<'_>) {
                self.$part.track(parts);
            }

            $(fn kind(&self) -> &'static str {
                $class
            })?
        }
    };
}

/// Defines a metric that is the mean of a formula's results for each example, computed from the struct, `y_true` and `y_pred`.
/// No gradient flows through `y_pred`.
macro_rules! mean_metric {
    (
        $(#[$doc:meta])* pub struct $name:ident = $keras:literal { $($fields:tt)* }
        |$options:pat_param, $y_true:pat_param, $y_pred:pat_param| $formula:expr
    ) => {
        crate::keras::metrics::row::metric! {
            $(#[$doc])* pub struct $name = $keras
                (mean: crate::keras::metrics::Mean = crate::keras::metrics::Mean::default()) { $($fields)* }
        }

        impl $name {
            fn values(
                &self,
                y_true: &crate::tensor::Tensor,
                y_pred: &crate::tensor::Tensor,
            ) -> crate::error::Result<crate::tensor::Tensor> {
                let y_pred = &y_pred.stop_gradient();
                let ($options, $y_true, $y_pred) = (self, y_true, y_pred);
                $formula
            }
        }

        impl crate::keras::metrics::Metric for $name {
            fn name(&self) -> &str {
                &self.name
            }

            fn update(
                &self,
                y_true: &crate::tensor::Tensor,
                y_pred: &crate::tensor::Tensor,
                sample_weight: Option<&crate::tensor::Tensor>,
            ) -> crate::error::Result<()> {
                self.mean.add(&self.name, &self.values(y_true, y_pred)?, sample_weight)
            }

            fn result(&self) -> crate::error::Result<crate::tensor::Tensor> {
                self.mean.result()
            }

            fn reset_state(&self) -> crate::error::Result<()> {
                self.mean.reset_state()
            }
        }
    };
}

pub(super) use {mean_metric, metric};
