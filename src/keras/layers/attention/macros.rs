//! Macros for the layers with several heads: setters and trait implementations.

/// Setters of all options of [`Heads`], for a layer with a field `heads`.
macro_rules! head_setters {
    () => {
        /// Sets the dropout rate of the attention weights. Default: 0.
        #[must_use]
        pub fn dropout(mut self, dropout: f32) -> Self {
            self.heads.dropout = dropout;
            self
        }

        /// Sets whether the projections use biases. Default: `true`.
        #[must_use]
        pub fn use_bias(mut self, use_bias: bool) -> Self {
            self.heads = self.heads.use_bias(use_bias);
            self
        }

        /// Sets whether a gate, a projection of the query followed by a sigmoid, scales the attention output (Qiu et
        /// al. 2025). Default: `false`.
        #[must_use]
        pub fn use_gate(mut self, use_gate: bool) -> Self {
            self.heads.use_gate = use_gate;
            self
        }

        /// Sets the window size: a query attends only to keys that are less than this many positions away. Default: all
        /// keys.
        #[must_use]
        pub fn sliding_window(mut self, sliding_window: impl Into<Option<usize>>) -> Self {
            self.heads.sliding_window = sliding_window.into();
            self
        }

        /// Sets whether query `t` attends only to the keys 0 to `t`, in all calls. Default: `false`.
        #[must_use]
        pub fn use_causal_mask(mut self, use_causal_mask: bool) -> Self {
            self.heads.use_causal_mask = use_causal_mask;
            self
        }

        /// Sets the initializer of the kernels.
        #[must_use]
        pub fn kernel_initializer(mut self, initializer: $crate::keras::Initializer) -> Self {
            self.heads = self.heads.kernels(|kernel| kernel.initializer(initializer.clone()));
            self
        }

        /// Sets the initializer of the biases.
        #[must_use]
        pub fn bias_initializer(mut self, initializer: $crate::keras::Initializer) -> Self {
            self.heads = self.heads.biases(|bias| bias.initializer(initializer.clone()));
            self
        }

        /// Sets the regularizer applied to each kernel.
        #[must_use]
        pub fn kernel_regularizer(
            mut self,
            regularizer: impl Into<Option<$crate::keras::Regularizer>>,
        ) -> Self {
            let regularizer = regularizer.into();
            self.heads = self.heads.kernels(|kernel| kernel.regularizer(regularizer.clone()));
            self
        }

        /// Sets the regularizer applied to each bias.
        #[must_use]
        pub fn bias_regularizer(
            mut self,
            regularizer: impl Into<Option<$crate::keras::Regularizer>>,
        ) -> Self {
            let regularizer = regularizer.into();
            self.heads = self.heads.biases(|bias| bias.regularizer(regularizer.clone()));
            self
        }

        /// Sets the constraint applied to each kernel after each optimizer step.
        #[must_use]
        pub fn kernel_constraint(
            mut self,
            constraint: impl Into<Option<$crate::keras::Constraint>>,
        ) -> Self {
            let constraint = constraint.into();
            self.heads = self.heads.kernels(|kernel| kernel.constraint(constraint.clone()));
            self
        }

        /// Sets the constraint applied to each bias after each optimizer step.
        #[must_use]
        pub fn bias_constraint(
            mut self,
            constraint: impl Into<Option<$crate::keras::Constraint>>,
        ) -> Self {
            let constraint = constraint.into();
            self.heads = self.heads.biases(|bias| bias.constraint(constraint.clone()));
            self
        }

        /// Sets the regularizer applied to the layer's output.
        #[must_use]
        pub fn activity_regularizer(
            mut self,
            regularizer: impl Into<Option<$crate::keras::Regularizer>>,
        ) -> Self {
            self.heads.activity_regularizer = regularizer.into();
            self
        }

        /// Seeds the layer's own random generator, instead of using one derived from the global generator.
        #[must_use]
        pub fn seed(mut self, seed: u64) -> Self {
            self.heads.generator = $crate::keras::layers::SeedGenerator::new(seed);
            self
        }

        /// Sets the dtype policy: the dtype the layer computes in, and the dtype of its weights.
        #[must_use]
        pub fn dtype(mut self, policy: $crate::keras::DTypePolicy) -> Self {
            self.heads = self.heads.dtype(policy);
            self
        }
    };
}
pub(super) use head_setters;

/// Implements the layer traits: self-attention for one tensor; query, value and key for a list.
macro_rules! head_layer {
    ($layer:ident, $kind:literal, $class:expr) => {
        impl $layer {
            /// Same as a call on a list, with explicit masks and keys.
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if the shapes are not compatible;
            /// [`Error::DType`](crate::Error::DType) if the dtypes differ or are not float, or a mask is not `bool`;
            /// [`Error::Index`](crate::Error::Index) if the dropout rate is not in `0..1`.
            pub fn call_with(
                &self,
                query: &Tensor,
                value: &Tensor,
                options: AttendOptions,
                cx: Context<'_>,
            ) -> Result<Tensor> {
                self.run(query, value, options, false, cx).map(|(y, _)| y)
            }

            /// Same as [`Self::call_with`], but also returns the attention weights, `[B,H,T,S]`, before dropout.
            ///
            /// # Errors
            /// Same as [`Self::call_with`].
            pub fn call_with_scores(
                &self,
                query: &Tensor,
                value: &Tensor,
                options: AttendOptions,
                cx: Context<'_>,
            ) -> Result<(Tensor, Tensor)> {
                let (y, scores) = self.run(query, value, options, true, cx)?;
                scores.map(|scores| (y, scores)).ok_or_else(|| {
                    $crate::error::Error::Shape(
                        concat!(
                            stringify!($layer),
                            ": a call without queries or keys has no scores."
                        )
                        .into(),
                    )
                })
            }

            /// Returns the layer's class and options.
            ///
            /// # Errors
            /// [`Error::Data`](crate::Error::Data) if an option is a custom function.
            #[cfg(feature = "json")]
            pub fn get_config(&self) -> Result<$crate::keras::Config> {
                $crate::keras::layers::Configured::config(self)
            }
        }

        impl Trackable for $layer {
            fn track(&self, parts: &mut Parts<'_>) {
                self.heads.track(parts);
            }

            fn kind(&self) -> &'static str {
                // Keras's class, by which its files name the weights.
                $kind
            }

            fn class(&self) -> Option<&'static $crate::trackable::Class> {
                use $crate::keras::layers::formats::*;
                static CLASS: Class = $class.call(CallForm::Heads);
                Some(&CLASS)
            }
        }

        /// Self-attention: query, value and key are the same tensor, and its mask specifies which queries and keys are
        /// valid.
        impl Layer for $layer {
            $crate::keras::layers::macros::configured!();

            fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
                Layer::<[Tensor]>::call(self, &[x.clone(), x.clone()], cx)
            }
        }

        $crate::keras::layers::attention::scores::list_layer!($layer);

        impl AttentionLayer for $layer {
            fn attend(
                &self,
                inputs: &[Tensor],
                call: AttendCall,
                cx: Context<'_>,
            ) -> Result<(Tensor, Option<Tensor>)> {
                let [query, value, key] = three_of(stringify!($layer), inputs)?;
                let masks = [0, 1, 2].map(|at| cx.masks().get(at).and_then(Option::as_ref));
                // If there is only one mask, it is that of the value, and also of the query if both are the same
                // tensor.
                let itself = query.id() == value.id();
                let [of_query, of_value, of_key] = match cx.masks().is_empty() {
                    true => [cx.mask().filter(|_| itself), cx.mask(), None],
                    false => masks,
                };
                // For inputs with more axes, the mask only specifies which keys count.
                let of_query = of_query.filter(|_| query.rank() == 3);
                let of_query = of_query.map(|mask| mask.expand_dims(-1)).transpose()?;
                let options = AttendOptions::new()
                    .key(key.clone())
                    .key_mask(all_of(of_value.cloned(), of_key.cloned())?)
                    .attention_mask(all_of(wide(call.attention_mask)?, of_query)?)
                    .use_causal_mask(call.causal);
                self.run(query, value, options, call.scores, cx)
            }

            #[cfg(feature = "json")]
            fn into_layer(self: Box<Self>) -> Option<Box<dyn Layer>> {
                Some(self)
            }
        }
    };
}
pub(super) use head_layer;
