//! `setters!`: setters for the parameters that several optimizers share, with the same bounds; `options_of_all!`: the options
//! that every optimizer has.

/// Defines a setter for each listed parameter of the optimizer.
macro_rules! setters {
    ($optimizer:ident: $($name:ident),*) => {
        impl $optimizer {
            $(setters!(@ $name);)*
        }
    };
    (@ beta_1) => {
        setters! {
            /// Sets the decay rate of the mean of gradients, from 0 to below 1.
            beta_1 in Share
        }
    };
    (@ beta_2) => {
        setters! {
            /// Sets the decay rate of the mean of squared gradients, from 0 to below 1.
            beta_2 in Share
        }
    };
    (@ rho) => {
        setters! {
            /// Sets the decay rate of the means, from 0 to below 1.
            rho in Share
        }
    };
    (@ momentum) => {
        setters! {
            /// Sets the fraction of the last step that the next one repeats, from 0 to 1.
            momentum in Unit
        }
    };
    (@ epsilon) => {
        setters! {
            /// Sets the number that prevents division by zero if gradients are tiny.
            epsilon in NotNegative
        }
    };
    ($(#[$doc:meta])* $name:ident in $bounds:ident) => {
        $(#[$doc])*
        pub fn $name(mut self, $name: f64) -> Self {
            self.state.require(stringify!($name), $name, $crate::keras::optimizers::options::Within::$bounds);
            self.$name = $name;
            self
        }
    };
}
// `setters!(Lamb: beta_1, epsilon);` becomes `impl Lamb { pub fn beta_1(mut self, beta_1: f64) -> Self {..} .. }`.

/// Defines the options of all optimizers as inherent methods of each optimizer, so that a program need not import the trait.
macro_rules! options_of_all {
    ($([$($generics:tt)*] $optimizer:ty;)*) => {$(
        impl<$($generics)*> $optimizer {
            /// Same as [`Optimizer::with_name`].
            #[must_use]
            pub fn with_name(self, name: impl Into<String>) -> Self {
                Optimizer::with_name(self, name)
            }

            /// Same as [`Optimizer::weight_decay`].
            #[must_use]
            pub fn weight_decay(self, weight_decay: f64) -> Self {
                Optimizer::weight_decay(self, weight_decay)
            }

            /// Same as [`Optimizer::exclude_from_weight_decay`].
            #[must_use]
            pub fn exclude_from_weight_decay<N: Into<String>>(
                self,
                var_names: impl IntoIterator<Item = N>,
            ) -> Self {
                Optimizer::exclude_from_weight_decay(self, var_names)
            }

            /// Same as [`Optimizer::exclude_variables_from_weight_decay`].
            #[must_use]
            pub fn exclude_variables_from_weight_decay(self, variables: &dyn Trackable) -> Self {
                Optimizer::exclude_variables_from_weight_decay(self, variables)
            }

            /// Same as [`Optimizer::clipnorm`].
            #[must_use]
            pub fn clipnorm(self, clipnorm: f64) -> Self {
                Optimizer::clipnorm(self, clipnorm)
            }

            /// Same as [`Optimizer::clipvalue`].
            #[must_use]
            pub fn clipvalue(self, clipvalue: f64) -> Self {
                Optimizer::clipvalue(self, clipvalue)
            }

            /// Same as [`Optimizer::global_clipnorm`].
            #[must_use]
            pub fn global_clipnorm(self, global_clipnorm: f64) -> Self {
                Optimizer::global_clipnorm(self, global_clipnorm)
            }

            /// Same as [`Optimizer::use_ema`].
            #[must_use]
            pub fn use_ema(self, use_ema: bool) -> Self {
                Optimizer::use_ema(self, use_ema)
            }

            /// Same as [`Optimizer::ema_momentum`].
            #[must_use]
            pub fn ema_momentum(self, ema_momentum: f64) -> Self {
                Optimizer::ema_momentum(self, ema_momentum)
            }

            /// Same as [`Optimizer::ema_overwrite_frequency`].
            #[must_use]
            pub fn ema_overwrite_frequency(self, ema_overwrite_frequency: u64) -> Self {
                Optimizer::ema_overwrite_frequency(self, ema_overwrite_frequency)
            }

            /// Same as [`Optimizer::loss_scale_factor`].
            #[must_use]
            pub fn loss_scale_factor(self, loss_scale_factor: f64) -> Self {
                Optimizer::loss_scale_factor(self, loss_scale_factor)
            }

            /// Same as [`Optimizer::gradient_accumulation_steps`].
            #[must_use]
            pub fn gradient_accumulation_steps(self, gradient_accumulation_steps: u64) -> Self {
                Optimizer::gradient_accumulation_steps(self, gradient_accumulation_steps)
            }
        }
    )*};
}
// `options_of_all!([] Adam;);` becomes `impl Adam { pub fn with_name(self, ..) -> Self { Optimizer::with_name(self, ..)
// } .. }`.

pub(super) use {options_of_all, setters};
