//! The optimizers that plain objects describe. Each table row defines one.

use wasm_bindgen::prelude::*;
#[cfg(feature = "ops")]
use wgrad::keras::optimizers::{
    Adadelta, Adafactor, Adagrad, AdamW, Adamax, Ftrl, Lamb, Lion, Muon, Nadam, RmsProp,
};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};

use crate::args::Options;
use crate::config::{Described, find};
use crate::error::Result;

macro_rules! optimizers {
    ($($(#[$only:meta])* $type:literal { $fields:literal } [$($(#[$here:meta])* $option:literal),*] $make:expr;)*) => {
        static OPTIMIZERS: &[Described<Box<dyn Optimizer>>] = &[$(
            $(#[$only])*
            Described {
                name: $type,
                options: &[
                    "type",
                    "learningRate",
                    #[cfg(feature = "ops")]
                    "weightDecay",
                    #[cfg(feature = "ops")]
                    "clipnorm",
                    #[cfg(feature = "ops")]
                    "clipvalue",
                    #[cfg(feature = "ops")]
                    "globalClipnorm",
                    #[cfg(feature = "ops")]
                    "gradientAccumulationSteps",
                    $($(#[$here])* $option),*
                ],
                make: $make,
            },
        )*];

        #[wasm_bindgen(typescript_custom_section)]
        const TYPES: &str = concat!(
            "/** What all optimizers of the package have; the page's have the learning rate alone. */\n",
            "export interface OptimizerOptions { learningRate?: number; weightDecay?: number; clipnorm?: number; ",
            "clipvalue?: number; globalClipnorm?: number; gradientAccumulationSteps?: number; }\n",
            "/** How weights are changed; a name alone takes Keras's defaults. */\nexport type OptimizerConfig =\n",
            $("  | '", $type, "' | OptimizerOptions & { type: '", $type, "'; ", $fields, " }\n",)*
            "  ;\n",
        );
    };
}

/// Passes the options to the builder methods of the same names.
#[cfg(feature = "ops")]
macro_rules! made {
    ($options:ident, $new:expr; $($number:ident = $key:literal),*; $($flag:ident = $name:literal),*) => {{
        #[allow(unused_mut)]
        let mut made = $new;
        $(if let Some(value) = $options.number($key)? {
            made = made.$number(value);
        })*
        $(if let Some(value) = $options.bool($name)? {
            made = made.$flag(value);
        })*
        Ok(Box::new(made))
    }};
}

// The first becomes an entry of `OPTIMIZERS`, and in TypeScript `'adam' | OptimizerOptions & { type: 'adam'; beta1?: ... }`.
// The page's own build offers only those without a condition.
optimizers! {
    "adam" { "beta1?: number; beta2?: number; epsilon?: number; amsgrad?: boolean" }
        ["beta1", "beta2", "epsilon", #[cfg(feature = "ops")] "amsgrad"]
        |options| {
        let mut adam = Adam::new(rate(options, 1e-3)?);
        if let Some(beta) = options.number("beta1")? {
            adam = adam.beta_1(beta);
        }
        if let Some(beta) = options.number("beta2")? {
            adam = adam.beta_2(beta);
        }
        if let Some(epsilon) = options.number("epsilon")? {
            adam = adam.epsilon(epsilon);
        }
        #[cfg(feature = "ops")]
        if let Some(amsgrad) = options.bool("amsgrad")? {
            adam = adam.amsgrad(amsgrad);
        }
        Ok(Box::new(adam))
    };
    #[cfg(feature = "ops")]
    "adadelta" { "rho?: number; epsilon?: number" }
        ["rho", "epsilon"]
        |options| made!(options, Adadelta::new(rate(options, 1e-3)?); rho = "rho", epsilon = "epsilon"; );
    #[cfg(feature = "ops")]
    "adafactor" { "beta2Decay?: number; epsilon1?: number; epsilon2?: number; clipThreshold?: number" }
        ["beta2Decay", "epsilon1", "epsilon2", "clipThreshold"]
        |options| made!(options, Adafactor::new(rate(options, 1e-3)?); beta_2_decay = "beta2Decay", epsilon_1 = "epsilon1", epsilon_2 = "epsilon2", clip_threshold = "clipThreshold"; );
    #[cfg(feature = "ops")]
    "adagrad" { "initialAccumulatorValue?: number; epsilon?: number" }
        ["initialAccumulatorValue", "epsilon"]
        |options| made!(options, Adagrad::new(rate(options, 1e-3)?); initial_accumulator_value = "initialAccumulatorValue", epsilon = "epsilon"; );
    #[cfg(feature = "ops")]
    "adamax" { "beta1?: number; beta2?: number; epsilon?: number" }
        ["beta1", "beta2", "epsilon"]
        |options| made!(options, Adamax::new(rate(options, 1e-3)?); beta_1 = "beta1", beta_2 = "beta2", epsilon = "epsilon"; );
    #[cfg(feature = "ops")]
    "adamw" { "beta1?: number; beta2?: number; epsilon?: number; amsgrad?: boolean" }
        ["beta1", "beta2", "epsilon", "amsgrad"]
        |options| made!(options, AdamW::new(rate(options, 1e-3)?); beta_1 = "beta1", beta_2 = "beta2", epsilon = "epsilon"; amsgrad = "amsgrad");
    #[cfg(feature = "ops")]
    "ftrl" { "learningRatePower?: number; initialAccumulatorValue?: number; l1RegularizationStrength?: number; l2RegularizationStrength?: number; l2ShrinkageRegularizationStrength?: number; beta?: number" }
        ["learningRatePower", "initialAccumulatorValue", "l1RegularizationStrength", "l2RegularizationStrength", "l2ShrinkageRegularizationStrength", "beta"]
        |options| made!(options, Ftrl::new(rate(options, 1e-3)?); learning_rate_power = "learningRatePower", initial_accumulator_value = "initialAccumulatorValue", l1_regularization_strength = "l1RegularizationStrength", l2_regularization_strength = "l2RegularizationStrength", l2_shrinkage_regularization_strength = "l2ShrinkageRegularizationStrength", beta = "beta"; );
    #[cfg(feature = "ops")]
    "lamb" { "beta1?: number; beta2?: number; epsilon?: number" }
        ["beta1", "beta2", "epsilon"]
        |options| made!(options, Lamb::new(rate(options, 1e-3)?); beta_1 = "beta1", beta_2 = "beta2", epsilon = "epsilon"; );
    #[cfg(feature = "ops")]
    "lion" { "beta1?: number; beta2?: number" }
        ["beta1", "beta2"]
        |options| made!(options, Lion::new(rate(options, 1e-3)?); beta_1 = "beta1", beta_2 = "beta2"; );
    #[cfg(feature = "ops")]
    "muon" { "adamBeta1?: number; adamBeta2?: number; adamWeightDecay?: number; epsilon?: number; excludeEmbeddings?: boolean; muonA?: number; muonB?: number; muonC?: number; adamLrRatio?: number; momentum?: number; nesterov?: boolean; rmsRate?: number" }
        ["adamBeta1", "adamBeta2", "adamWeightDecay", "epsilon", "excludeEmbeddings", "muonA", "muonB", "muonC", "adamLrRatio", "momentum", "nesterov", "rmsRate"]
        |options| made!(options, Muon::new(rate(options, 1e-3)?); adam_beta_1 = "adamBeta1", adam_beta_2 = "adamBeta2", adam_weight_decay = "adamWeightDecay", epsilon = "epsilon", muon_a = "muonA", muon_b = "muonB", muon_c = "muonC", adam_lr_ratio = "adamLrRatio", momentum = "momentum", rms_rate = "rmsRate"; exclude_embeddings = "excludeEmbeddings", nesterov = "nesterov");
    #[cfg(feature = "ops")]
    "nadam" { "beta1?: number; beta2?: number; epsilon?: number" }
        ["beta1", "beta2", "epsilon"]
        |options| made!(options, Nadam::new(rate(options, 1e-3)?); beta_1 = "beta1", beta_2 = "beta2", epsilon = "epsilon"; );
    #[cfg(feature = "ops")]
    "rmsprop" { "rho?: number; momentum?: number; epsilon?: number; centered?: boolean" }
        ["rho", "momentum", "epsilon", "centered"]
        |options| made!(options, RmsProp::new(rate(options, 1e-3)?); rho = "rho", momentum = "momentum", epsilon = "epsilon"; centered = "centered");
    "sgd" { "momentum?: number; nesterov?: boolean" } ["momentum", "nesterov"] |options| {
        let sgd = Sgd::new(rate(options, 1e-2)?)
            .momentum(options.number("momentum")?.unwrap_or(0.0))
            .nesterov(options.bool("nesterov")?.unwrap_or(false));
        Ok(Box::new(sgd))
    };
}

/// The learning rate; by default Keras's.
fn rate(options: &Options, keras: f64) -> Result<f32> {
    Ok(options.number("learningRate")?.unwrap_or(keras) as f32)
}

/// The optimizer that `config` describes: its name alone, or an object.
pub(crate) fn optimizer(config: &JsValue) -> Result<Box<dyn Optimizer>> {
    let kind = find("compile", "an optimizer", config, OPTIMIZERS)?;
    let given = if config.is_string() { &JsValue::UNDEFINED } else { config };
    let options = Options::new(kind.name, given, kind.options)?;
    let made = (kind.make)(&options)?;
    #[cfg(feature = "ops")]
    let made = with_options(made, &options)?;
    #[cfg(feature = "ops")]
    check_rate(kind.name, made.learning_rate())?;
    Ok(made)
}

/// Refuses a learning rate with which no step can be made, at the call that sets it.
#[cfg(feature = "ops")]
pub(crate) fn check_rate(what: &str, rate: f32) -> Result<()> {
    if rate.is_finite() && rate >= 0.0 {
        return Ok(());
    }
    Err(crate::error::bad_type(format!(
        "{what}: the learning rate is {rate}; it must be a number from 0, such as 0.001."
    )))
}

/// Sets the options that all optimizers share.
#[cfg(feature = "ops")]
fn with_options(mut made: Box<dyn Optimizer>, options: &Options) -> Result<Box<dyn Optimizer>> {
    if let Some(decay) = options.number("weightDecay")? {
        made = made.weight_decay(decay);
    }
    if let Some(limit) = options.number("clipnorm")? {
        made = made.clipnorm(limit);
    }
    if let Some(limit) = options.number("clipvalue")? {
        made = made.clipvalue(limit);
    }
    if let Some(limit) = options.number("globalClipnorm")? {
        made = made.global_clipnorm(limit);
    }
    if let Some(several) = options.count("gradientAccumulationSteps")? {
        made = made.gradient_accumulation_steps(several as u64);
    }
    Ok(made)
}
