//! `recurrent!`: declares a Keras cell and the layer that runs it, from one list of options.

/// Both declare their Keras class. The cell is a `layer!`, with its parameters in PyTorch if there is such a cell;
/// `rank` are the axes of the layer's input. The layer has the cell's setters, those of
/// [`walk_setters`](super::walk::walk_setters), and one config of all options, as Keras's.
macro_rules! recurrent {
    (
        $(#[$doc:meta])*
        pub struct $layer:ident[$name:literal];

        $(#[$cell_doc:meta])*
        pub struct $cell:ident[$kind:literal];

        $(pytorch($torch:expr);)?

        new($($required:ident: $required_type:ty),*), $rank:literal axes;
        options {
            $($(#[$option_doc:meta])* $option:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
        }
        weights {
            $($weight:ident $(if $used:ident)? = $start:expr
                => [$initializer:ident, $regularizer:ident, $constraint:ident],)*
        }
    ) => {
        $crate::keras::layers::macros::layer! {
            $(#[$cell_doc])*
            pub struct $cell[$kind] {
                /// Creates a cell with Keras's defaults.
                new($($required: $required_type),*);
                options { $($(#[$option_doc])* $option: $type $(as $argument)? = $default,)* }
                weights {
                    $($weight $(if $used)? = $start => [$initializer, $regularizer, $constraint],)*
                }
                random(seed_generator);
                $(class {
                    pytorch($torch);
                })?
            }
        }

        impl $cell {
            /// Returns a cell with the same options and its own weights.
            fn again(&self) -> Self {
                let mut again = $cell::new($(self.$required),*).dtype(self.policy);
                $(again.$option = self.$option.clone();)*
                // `trainable` creates a new, separate weight.
                $(again.$weight = self.$weight.clone().trainable(true);)*
                match self.seed_generator.seed() {
                    Some(seed) => again.seed(seed),
                    None => again,
                }
            }
        }

        $(#[$doc])*
        #[doc(alias = $name)]
        #[derive(Debug)]
        pub struct $layer {
            rnn: $crate::keras::layers::Rnn<$cell>,
        }

        impl $layer {
            /// Creates a layer that returns the output of the last step, with Keras's defaults.
            pub fn new($($required: $required_type),*) -> Self {
                $layer { rnn: $crate::keras::layers::Rnn::new($cell::new($($required),*)) }
            }

            $(
                $(#[$option_doc])*
                #[must_use]
                pub fn $option(
                    mut self,
                    $option: $crate::keras::layers::macros::layer!(@argument $type $(, $argument)?),
                ) -> Self {
                    self.rnn.cell = self.rnn.cell.$option($option);
                    self
                }
            )*

            $(
                #[doc = concat!("Sets the initializer of `", stringify!($weight), "`.")]
                #[must_use]
                pub fn $initializer(mut self, initializer: $crate::keras::Initializer) -> Self {
                    self.rnn.cell = self.rnn.cell.$initializer(initializer);
                    self
                }

                #[doc = concat!("Sets the regularizer applied to `", stringify!($weight), "`.")]
                #[must_use]
                pub fn $regularizer(
                    mut self,
                    regularizer: impl Into<Option<$crate::keras::Regularizer>>,
                ) -> Self {
                    self.rnn.cell = self.rnn.cell.$regularizer(regularizer);
                    self
                }

                #[doc = concat!("Sets the constraint applied to `", stringify!($weight), "` after each optimizer step.")]
                #[must_use]
                pub fn $constraint(
                    mut self,
                    constraint: impl Into<Option<$crate::keras::Constraint>>,
                ) -> Self {
                    self.rnn.cell = self.rnn.cell.$constraint(constraint);
                    self
                }
            )*

            $crate::keras::layers::rnn::walk::walk_setters!(rnn.walk);

            /// Seeds the layer's own random generator, instead of using one derived from the global generator.
            #[must_use]
            pub fn seed(mut self, seed: u64) -> Self {
                self.rnn.cell = self.rnn.cell.seed(seed);
                self
            }

            /// Sets the dtype policy: the dtype the layer computes in, and the dtype of its weights.
            #[must_use]
            pub fn dtype(mut self, policy: $crate::keras::DTypePolicy) -> Self {
                self.rnn.cell = self.rnn.cell.dtype(policy);
                self.rnn.policy = policy;
                self
            }

            /// Returns the output and the final states. `initial` are the initial states; if `None`, they are zeros, or
            /// the final states of the previous call if the layer is stateful.
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if the input, the states or the mask do not fit the layer;
            /// [`Error::DType`](crate::Error::DType) if the input is not float or the mask is not `bool`.
            pub fn call_with_state(
                &self,
                x: &$crate::tensor::Tensor,
                initial: Option<&[$crate::tensor::Tensor]>,
                cx: $crate::keras::Context<'_>,
            ) -> $crate::error::Result<$crate::ops::Recurrence> {
                $crate::keras::layers::rnn::over_cells::expect_rank($name, x, $rank)?;
                self.rnn.run_as($name, x, initial, cx)
            }

            /// Resets a stateful layer: the next call starts from the initial states and accepts any batch size.
            pub fn reset_state(&self) {
                self.rnn.reset_state();
            }

            /// Returns the layer's class and options.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if an option is a custom function.
            #[cfg(feature = "json")]
            pub fn get_config(&self) -> $crate::error::Result<$crate::keras::Config> {
                $crate::keras::layers::Configured::config(self)
            }
        }

        impl $crate::trackable::Trackable for $layer {
            fn track(&self, parts: &mut $crate::trackable::Parts<'_>) {
                self.rnn.track(parts);
            }

            fn kind(&self) -> &'static str {
                $name
            }

            fn class(&self) -> Option<&'static $crate::trackable::Class> {
                use $crate::keras::layers::formats::*;
                static CLASS: Class = Class::new($name)
                    .call(CallForm::Recurrent)
                    .attributes($crate::keras::layers::rnn::macros::recurrent!(@around $($torch)?));
                Some(&CLASS)
            }
        }

        impl $crate::keras::Layer for $layer {
            $crate::keras::layers::macros::configured!();

            fn call(
                &self,
                x: &$crate::tensor::Tensor,
                cx: $crate::keras::Context<'_>,
            ) -> $crate::error::Result<$crate::tensor::Tensor> {
                self.call_with_state(x, None, cx).map(|result| result.output)
            }

            fn compute_mask(
                &self,
                _x: &$crate::tensor::Tensor,
                mask: Option<&$crate::tensor::Tensor>,
            ) -> $crate::error::Result<Option<$crate::tensor::Tensor>> {
                self.rnn.mask_of_result(mask)
            }
        }

        /// Maps the sequences and initial states to the output and the final states.
        impl
            $crate::keras::Layer<
                [$crate::tensor::Tensor],
                ($crate::tensor::Tensor, Vec<$crate::tensor::Tensor>),
            > for $layer
        {
            $crate::keras::layers::macros::configured!();

            fn call(
                &self,
                inputs: &[$crate::tensor::Tensor],
                cx: $crate::keras::Context<'_>,
            ) -> $crate::error::Result<($crate::tensor::Tensor, Vec<$crate::tensor::Tensor>)> {
                let (x, initial) =
                    $crate::keras::layers::rnn::over_cells::parts_of($name, inputs)?;
                let result = self.call_with_state(x, initial, cx)?;
                Ok((result.output, result.state))
            }

            fn compute_mask(
                &self,
                _: &[$crate::tensor::Tensor],
                mask: Option<&$crate::tensor::Tensor>,
            ) -> $crate::error::Result<Option<$crate::tensor::Tensor>> {
                self.rnn.mask_of_result(mask)
            }
        }

        impl $crate::keras::layers::RecurrentLayer for $layer {
            fn run(
                &self,
                x: &$crate::tensor::Tensor,
                initial: Option<&[$crate::tensor::Tensor]>,
                cx: $crate::keras::Context<'_>,
            ) -> $crate::error::Result<$crate::ops::Recurrence> {
                self.call_with_state(x, initial, cx)
            }

            fn returns_sequences(&self) -> bool {
                self.rnn.walk.return_sequences
            }

            fn goes_backwards(&self) -> bool {
                self.rnn.walk.go_backwards
            }

            fn returns_state(&self) -> bool {
                self.rnn.walk.return_state
            }
        }

        impl $crate::keras::layers::Mirror for $layer {
            fn mirrored(&self) -> Self {
                let mut rnn = $crate::keras::layers::Rnn::new(self.rnn.cell.again());
                rnn.walk = self.rnn.walk.clone();
                rnn.walk.go_backwards = !rnn.walk.go_backwards;
                $layer { rnn: rnn.dtype(self.rnn.policy) }
            }
        }

        #[cfg(feature = "json")]
        impl $crate::keras::layers::Configured for $layer {
            fn class_name() -> &'static str {
                $name
            }

            fn config(&self) -> $crate::error::Result<$crate::keras::Config> {
                let options = self.rnn.cell.config()?.options().clone();
                let mut config = $crate::keras::Config::with_options(Self::class_name(), options);
                self.rnn.walk.write(&mut config)?;
                Ok(config)
            }

            fn from_config(config: &$crate::keras::Config) -> $crate::error::Result<Self> {
                let (walk, rest) = $crate::keras::layers::rnn::walk::SequenceOptions::read(config)?;
                let mut rnn = $crate::keras::layers::Rnn::new($cell::from_config(&rest)?);
                rnn.walk = walk;
                let policy = rnn.cell.policy;
                Ok($layer { rnn: rnn.dtype(policy) })
            }
        }
    };
    (@around) => { &AROUND_CONVOLUTIONAL_CELL };
    (@around $torch:expr) => { &AROUND_CELL };
}
pub(super) use recurrent;
