//! `layer!`: generates a layer's struct, setters, [`Trackable`] and config from one declaration of its options.
//!
//! [`Trackable`]: crate::Trackable

/// A layer's options, weights and parts.
///
/// `new` lists the arguments that a layer cannot do without. `options` have Keras's names and defaults. A weight may come
/// `if` an option is true, and may let the program set its initializer, or that, its regularizer and its constraint, under Keras's names.
/// `makes_mask` names the option by which its result has a mask.
/// `random` names a generator, with a `seed`. `parts` are tracked, `state` is not; neither is an option. `fixed` are options of Keras that have one value here. `arguments` are
/// options here and arguments of the call in Keras: a config has them only where they are set. `class` calls methods of
/// [`Class`](crate::trackable::Class): what file formats know of the layer.
macro_rules! layer {
    (
        $(#[$doc:meta])*
        pub struct $layer:ident $([$kind:literal])? {
            $(#[$new_doc:meta])*
            new($($required:ident: $required_type:ty $(as $given:ty)?),* $(,)?);
            $(options {
                $($(#[$option_doc:meta])* $option:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
            })?
            $(weights {
                $($weight:ident $(if $used:ident $(. $method:ident ())?)? = $start:expr
                    $(=> [$initializer:ident $(, $regularizer:ident, $constraint:ident)?])?,)*
            })?
            $(random($generator:ident);)?
            $(parts { $($part:ident: $part_type:ty = $part_start:expr,)* })?
            $(state { $($state:ident: $state_type:ty = $state_start:expr,)* })?
            $(fixed { $($fixed:ident: $only:expr,)* })?
            $(makes_mask($makes_mask:ident);)?
            $(arguments { $($(#[$argument_doc:meta])* $call:ident: bool = $call_default:expr,)* })?
            $(class { $($declare:ident($declared:expr);)* })?
        }
    ) => {
        $(#[$doc])*
        $(#[doc(alias = $kind)])?
        #[derive(Debug)]
        pub struct $layer {
            $($required: $required_type,)*
            $($($option: $type,)*)?
            $($($weight: $crate::keras::Weight,)*)?
            $($generator: $crate::keras::layers::SeedGenerator,)?
            $($($part: $part_type,)*)?
            $($($state: $state_type,)*)?
            $($($call: bool,)*)?
            #[allow(dead_code)] // Some layers compute nothing.
            policy: $crate::keras::DTypePolicy,
        }

        impl $layer {
            $(#[$new_doc])*
            pub fn new($($required: $crate::keras::layers::macros::layer!(@argument $required_type $(, $given)?)),*) -> Self {
                $layer {
                    $($required: $required.into(),)*
                    $($($option: $default,)*)?
                    $($($weight: $start,)*)?
                    $($generator: Default::default(),)?
                    $($($part: $part_start,)*)?
                    $($($state: $state_start,)*)?
                    $($($call: $call_default,)*)?
                    policy: $crate::keras::DTypePolicy::default(),
                }
            }

            $($(
                $(#[$option_doc])*
                #[must_use]
                pub fn $option(
                    mut self,
                    $option: $crate::keras::layers::macros::layer!(@argument $type $(, $argument)?),
                ) -> Self {
                    self.$option = $option.into();
                    self
                }
            )*)?

            $($(
                $(#[$argument_doc])*
                #[must_use]
                pub fn $call(mut self, $call: bool) -> Self {
                    self.$call = $call;
                    self
                }
            )*)?

            $($($(
                #[doc = concat!("Sets the initializer of `", stringify!($weight), "`.")]
                #[must_use]
                pub fn $initializer(mut self, initializer: $crate::keras::Initializer) -> Self {
                    self.$weight = self.$weight.initializer(initializer);
                    self
                }

                $(#[doc = concat!("Sets the regularizer applied to `", stringify!($weight), "`.")]
                #[must_use]
                pub fn $regularizer(
                    mut self,
                    regularizer: impl Into<Option<$crate::keras::Regularizer>>,
                ) -> Self {
                    self.$weight = self.$weight.regularizer(regularizer);
                    self
                }

                #[doc = concat!("Sets the constraint applied to `", stringify!($weight), "` after each optimizer step.")]
                #[must_use]
                pub fn $constraint(
                    mut self,
                    constraint: impl Into<Option<$crate::keras::Constraint>>,
                ) -> Self {
                    self.$weight = self.$weight.constraint(constraint);
                    self
                })?
            )?)*)?

            $(
                /// Seeds the layer's own random generator, instead of using one derived from the global generator.
                #[must_use]
                pub fn seed(mut self, seed: u64) -> Self {
                    self.$generator = $crate::keras::layers::SeedGenerator::new(seed);
                    self
                }
            )?

            /// Sets the dtype policy: the dtype the layer computes in, and the dtype of its weights.
            #[must_use]
            pub fn dtype(mut self, policy: $crate::keras::DTypePolicy) -> Self {
                self.policy = policy;
                $($(self.$weight = self.$weight.dtype(policy);)*)?
                self
            }
        }

        $crate::keras::layers::macros::layer!(@default $layer; $($required)*);

        impl $crate::trackable::Trackable for $layer {
            #[allow(unused_variables)]
            fn track(&self, parts: &mut $crate::trackable::Parts<'_>) {
                $($(
                    if $crate::keras::layers::macros::layer!(@used self $($used $(. $method)?)?) {
                        parts.add(stringify!($weight), &self.$weight);
                    }
                )*)?
                $(self.$generator.track(stringify!($generator), parts);)?
                $($(parts.add(stringify!($part), &self.$part);)*)?
            }

            fn kind(&self) -> &'static str {
                $crate::keras::layers::macros::layer!(@name $layer $($kind)?)
            }

            fn class(&self) -> Option<&'static $crate::trackable::Class> {
                #[allow(unused_imports)]
                use $crate::keras::layers::formats::*;
                static CLASS: $crate::trackable::Class = $crate::keras::layers::formats::layer_class(
                    $crate::keras::layers::macros::layer!(@name $layer $($kind)?),
                )$($(.$declare($declared))*)?;
                Some(&CLASS)
            }

            $(fn makes_mask(&self) -> bool {
                self.$makes_mask
            })?
        }

        #[cfg(feature = "json")]
        impl $crate::keras::layers::Configured for $layer {
            fn class_name() -> &'static str {
                $crate::keras::layers::macros::layer!(@name $layer $($kind)?)
            }

            fn config(&self) -> $crate::error::Result<$crate::keras::Config> {
                let mut config = $crate::keras::Config::new(Self::class_name());
                $(config.set(stringify!($required), &self.$required)?;)*
                $($(config.set(stringify!($option), &self.$option)?;)*)?
                $($($(
                    config.set(stringify!($initializer), &self.$weight.initializer)?;
                    $(config.set(stringify!($regularizer), &self.$weight.regularizer)?;
                    config.set(stringify!($constraint), &self.$weight.constraint)?;)?
                )?)*)?
                $($(config.set_json(stringify!($fixed), ::serde_json::json!($only));)*)?
                $($(if self.$call != $call_default {
                    config.set(stringify!($call), &self.$call)?;
                })*)?
                $(config.set("seed", &self.$generator.seed())?;)?
                config.set("dtype", &self.policy)?;
                Ok(config)
            }

            fn from_config(config: &$crate::keras::Config) -> $crate::error::Result<Self> {
                config.only(
                    &[
                        $(stringify!($required),)*
                        $($(stringify!($option),)*)?
                        $($($(
                            stringify!($initializer), $(stringify!($regularizer), stringify!($constraint),)?
                        )?)*)?
                        $({ stringify!($generator); "seed" },)?
                        $($(stringify!($call),)*)?
                    ],
                    &[$($((stringify!($fixed), ::serde_json::json!($only)),)*)?],
                )?;
                #[allow(unused_mut)]
                let mut layer = $layer::new($(config.need::<$required_type>(stringify!($required))?),*);
                $($(
                    // Keras writes null for options that have their default.
                    if let Some(Some(value)) = config.get::<Option<$type>>(stringify!($option))? {
                        layer.$option = value;
                    }
                )*)?
                $($($(
                    if let Some(Some(value)) = config.get::<Option<$crate::keras::Initializer>>(stringify!($initializer))? {
                        layer = layer.$initializer(value);
                    }
                    $(if let Some(value) = config.get::<Option<$crate::keras::Regularizer>>(stringify!($regularizer))? {
                        layer = layer.$regularizer(value);
                    }
                    if let Some(value) = config.get::<Option<$crate::keras::Constraint>>(stringify!($constraint))? {
                        layer = layer.$constraint(value);
                    })?
                )?)*)?
                $(
                    if let Some(Some(seed)) = config.get::<Option<u64>>("seed")? {
                        layer.$generator = $crate::keras::layers::SeedGenerator::new(seed);
                    }
                )?
                $($(if let Some(value) = config.get::<bool>(stringify!($call))? {
                    layer.$call = value;
                })*)?
                if let Some(policy) = config.get::<$crate::keras::DTypePolicy>("dtype")? {
                    layer = layer.dtype(policy);
                }
                Ok(layer)
            }
        }
    };
    // Keras's name, where it is another one.
    (@name $layer:ident) => { stringify!($layer) };
    (@name $layer:ident $kind:literal) => { $kind };
    (@argument $type:ty) => { $type };
    (@argument $type:ty, $argument:ty) => { $argument };
    (@used $self:ident) => { true };
    (@used $self:ident $used:ident) => { $self.$used };
    (@used $self:ident $used:ident . $method:ident) => { $self.$used.$method() };
    (@default $layer:ident;) => {
        impl Default for $layer {
            fn default() -> Self {
                $layer::new()
            }
        }
    };
    (@default $layer:ident; $($required:ident)+) => {};
}
// `layer! { pub struct Dense { new(units: usize); options { use_bias: bool = true, } weights { kernel = Weight::new() =>
// [kernel_initializer, kernel_regularizer, kernel_constraint], } } }` becomes the struct with `Dense::new(10)`,
// `.use_bias(false)`, `.kernel_initializer(..)`, `.dtype(..)`, and the variable `kernel` in walks.

/// In a layer's `impl Layer`: implements `get_config` with its options.
macro_rules! configured {
    () => {
        #[cfg(feature = "json")]
        fn get_config(&self) -> $crate::error::Result<$crate::keras::Config> {
            $crate::keras::layers::Configured::config(self)
        }
    };
}

/// In the `impl Layer` of a layer that moves or removes positions: its result has no mask.
macro_rules! unmasked {
    () => {
        fn compute_mask(
            &self,
            _x: &$crate::tensor::Tensor,
            _mask: Option<&$crate::tensor::Tensor>,
        ) -> $crate::error::Result<Option<$crate::tensor::Tensor>> {
            Ok(None)
        }
    };
}

pub(crate) use {configured, layer, unmasked};
