//! `setters!`: the numbers of a formula that optimizers set alike, with the same bounds; `options_of_all!`: the options that every
//! optimizer has.

/// Writes a setter for each number of the optimizer's that is named.
macro_rules! setters {
    ($optimizer:ident: $($name:ident),*) => {
        impl $optimizer {
            $(setters!(@ $name);)*
        }
    };
    (@ beta_1) => {
        setters! {
            /// Sets how slowly the mean of gradients forgets, from 0 to below 1.
            beta_1 in Share
        }
    };
    (@ beta_2) => {
        setters! {
            /// Sets how slowly the mean of squared gradients forgets, from 0 to below 1.
            beta_2 in Share
        }
    };
    (@ rho) => {
        setters! {
            /// Sets how slowly the means forget, from 0 to below 1.
            rho in Share
        }
    };
    (@ momentum) => {
        setters! {
            /// Sets how much of the last step the next one repeats, from 0 to 1.
            momentum in Unit
        }
    };
    (@ epsilon) => {
        setters! {
            /// Sets the number that keeps the division from blowing up where gradients are tiny.
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

/// Writes, for each optimizer, the options of all optimizers as its own methods, so that a program need not import the trait.
macro_rules! options_of_all {
    ($([$($generics:tt)*] $optimizer:ty;)*) => {$(
        impl<$($generics)*> $optimizer {
            /// As [`Optimizer::name`].
            #[must_use]
            pub fn name(self, name: impl Into<String>) -> Self {
                Optimizer::name(self, name)
            }

            /// As [`Optimizer::weight_decay`].
            #[must_use]
            pub fn weight_decay(self, weight_decay: f64) -> Self {
                Optimizer::weight_decay(self, weight_decay)
            }

            /// As [`Optimizer::exclude_from_weight_decay`].
            #[must_use]
            pub fn exclude_from_weight_decay<N: Into<String>>(
                self,
                var_names: impl IntoIterator<Item = N>,
            ) -> Self {
                Optimizer::exclude_from_weight_decay(self, var_names)
            }

            /// As [`Optimizer::exclude_variables_from_weight_decay`].
            #[must_use]
            pub fn exclude_variables_from_weight_decay(self, variables: &dyn Trackable) -> Self {
                Optimizer::exclude_variables_from_weight_decay(self, variables)
            }

            /// As [`Optimizer::clipnorm`].
            #[must_use]
            pub fn clipnorm(self, clipnorm: f64) -> Self {
                Optimizer::clipnorm(self, clipnorm)
            }

            /// As [`Optimizer::clipvalue`].
            #[must_use]
            pub fn clipvalue(self, clipvalue: f64) -> Self {
                Optimizer::clipvalue(self, clipvalue)
            }

            /// As [`Optimizer::global_clipnorm`].
            #[must_use]
            pub fn global_clipnorm(self, global_clipnorm: f64) -> Self {
                Optimizer::global_clipnorm(self, global_clipnorm)
            }

            /// As [`Optimizer::use_ema`].
            #[must_use]
            pub fn use_ema(self, use_ema: bool) -> Self {
                Optimizer::use_ema(self, use_ema)
            }

            /// As [`Optimizer::ema_momentum`].
            #[must_use]
            pub fn ema_momentum(self, ema_momentum: f64) -> Self {
                Optimizer::ema_momentum(self, ema_momentum)
            }

            /// As [`Optimizer::ema_overwrite_frequency`].
            #[must_use]
            pub fn ema_overwrite_frequency(self, ema_overwrite_frequency: u64) -> Self {
                Optimizer::ema_overwrite_frequency(self, ema_overwrite_frequency)
            }

            /// As [`Optimizer::loss_scale_factor`].
            #[must_use]
            pub fn loss_scale_factor(self, loss_scale_factor: f64) -> Self {
                Optimizer::loss_scale_factor(self, loss_scale_factor)
            }

            /// As [`Optimizer::gradient_accumulation_steps`].
            #[must_use]
            pub fn gradient_accumulation_steps(self, gradient_accumulation_steps: u64) -> Self {
                Optimizer::gradient_accumulation_steps(self, gradient_accumulation_steps)
            }
        }
    )*};
}
// `options_of_all!([] Adam;);` becomes `impl Adam { pub fn name(self, ..) -> Self { Optimizer::name(self, ..) } .. }`.

pub(super) use {options_of_all, setters};
