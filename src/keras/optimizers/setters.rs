//! `optimizer!`: an optimizer's parameters, with their defaults, bounds and setters; `options_of_all!`: the options that every
//! optimizer has.

/// Defines an optimizer's struct, its constructor, and a setter for each parameter. Parameters without bounds are those that
/// several optimizers share.
macro_rules! optimizer {
    (
        $(#[$meta:meta])*
        pub struct $optimizer:ident($name:literal) {
            $(#[$new:meta])*
            new,
            $($(#[$doc:meta])* $field:ident: $type:ident $(in $bounds:ident)? = $default:expr,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $optimizer {
            #[track(flatten)]
            state: $crate::keras::optimizers::OptimizerState,
            $($field: $type,)*
        }

        impl $optimizer {
            $(#[$new])*
            pub fn new(learning_rate: impl Into<$crate::keras::optimizers::LearningRate>) -> Self {
                let state = $crate::keras::optimizers::OptimizerState::new($name, learning_rate);
                $optimizer { state, $($field: $default,)* }
            }

            $($crate::keras::optimizers::setters::setter! {
                $(#[$doc])* $field: $type $(in $bounds)?
            })*
        }
    };
}

/// Defines a setter.
macro_rules! setter {
    (beta_1: f64) => {
        $crate::keras::optimizers::setters::setter! {
            /// Sets the decay rate of the mean of gradients, from 0 to below 1.
            beta_1: f64 in Share
        }
    };
    (beta_2: f64) => {
        $crate::keras::optimizers::setters::setter! {
            /// Sets the decay rate of the mean of squared gradients, from 0 to below 1.
            beta_2: f64 in Share
        }
    };
    (rho: f64) => {
        $crate::keras::optimizers::setters::setter! {
            /// Sets the decay rate of the means, from 0 to below 1.
            rho: f64 in Share
        }
    };
    (momentum: f64) => {
        $crate::keras::optimizers::setters::setter! {
            /// Sets the fraction of the last step that the next one repeats, from 0 to 1.
            momentum: f64 in Unit
        }
    };
    (epsilon: f64) => {
        $crate::keras::optimizers::setters::setter! {
            /// Sets the number that prevents division by zero if gradients are tiny.
            epsilon: f64 in NotNegative
        }
    };
    ($(#[$doc:meta])* $name:ident: f64 in $bounds:ident) => {
        $(#[$doc])*
        pub fn $name(mut self, $name: f64) -> Self {
            self.state.require(stringify!($name), $name, $crate::keras::optimizers::options::Within::$bounds);
            self.$name = $name;
            self
        }
    };
    ($(#[$doc:meta])* $name:ident: bool) => {
        $(#[$doc])*
        pub fn $name(mut self, $name: bool) -> Self {
            self.$name = $name;
            self
        }
    };
}
// `setter!(epsilon: f64)` becomes `pub fn epsilon(mut self, epsilon: f64) -> Self {..}`.

/// Defines the options of all optimizers as inherent methods of each optimizer, so that a program need not import the trait.
macro_rules! options_of_all {
    ($([$($generics:tt)*] $optimizer:ty;)*) => {$(
        impl<$($generics)*> $optimizer {
            $crate::keras::optimizers::setters::options_of_all! {
                with_name[](name: impl Into<String>)
                weight_decay[](weight_decay: f64)
                exclude_from_weight_decay[N: Into<String>](var_names: impl IntoIterator<Item = N>)
                exclude_variables_from_weight_decay[](variables: &dyn Trackable)
                clipnorm[](clipnorm: f64)
                clipvalue[](clipvalue: f64)
                global_clipnorm[](global_clipnorm: f64)
                use_ema[](use_ema: bool)
                ema_momentum[](ema_momentum: f64)
                ema_overwrite_frequency[](ema_overwrite_frequency: u64)
                loss_scale_factor[](loss_scale_factor: f64)
                gradient_accumulation_steps[](gradient_accumulation_steps: u64)
            }
        }
    )*};
    ($($option:ident[$($generics:tt)*]($value:ident: $type:ty))*) => {$(
        #[doc = concat!("Same as [`Optimizer::", stringify!($option), "`].")]
        #[must_use]
        pub fn $option<$($generics)*>(self, $value: $type) -> Self {
            Optimizer::$option(self, $value)
        }
    )*};
}
// `options_of_all!([] Adam;);` becomes `impl Adam { pub fn with_name(self, ..) -> Self { Optimizer::with_name(self, ..)
// } .. }`.

pub(super) use {optimizer, options_of_all, setter};
