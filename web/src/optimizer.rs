//! The optimizers that plain objects describe. A row has all of one.

use wasm_bindgen::prelude::*;
#[cfg(feature = "ops")]
use wgrad::keras::optimizers::RmsProp;
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};

use crate::args::Options;
use crate::config::{Kind, find};
use crate::error::Result;

macro_rules! optimizers {
    ($($(#[$only:meta])* $type:literal { $fields:literal } [$($option:literal),*] $make:expr;)*) => {
        static OPTIMIZERS: &[Kind<Box<dyn Optimizer>>] = &[$(
            $(#[$only])*
            Kind { name: $type, options: &["type", "learningRate", $($option),*], make: $make },
        )*];

        #[wasm_bindgen(typescript_custom_section)]
        const TYPES: &str = concat!(
            "/** How weights are changed; a name alone takes Keras's defaults. */\nexport type OptimizerConfig =\n",
            $("  | '", $type, "' | { type: '", $type, "'; learningRate?: number; ", $fields, " }\n",)*
            "  ;\n",
        );
    };
}
// The first becomes an entry of `OPTIMIZERS`, and in TypeScript `'adam' | { type: 'adam'; learningRate?: number; ... }`.
optimizers! {
    "adam" { "beta1?: number; beta2?: number; epsilon?: number" } ["beta1", "beta2", "epsilon"] |options| {
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
        Ok(Box::new(adam))
    };
    // The page does not offer it.
    #[cfg(feature = "ops")]
    "rmsprop" { "rho?: number; momentum?: number; epsilon?: number; centered?: boolean" }
        ["rho", "momentum", "epsilon", "centered"] |options| {
        let rmsprop = RmsProp::new(rate(options, 1e-3)?)
            .rho(options.number("rho")?.unwrap_or(0.9))
            .momentum(options.number("momentum")?.unwrap_or(0.0))
            .epsilon(options.number("epsilon")?.unwrap_or(1e-7))
            .centered(options.bool("centered")?.unwrap_or(false));
        Ok(Box::new(rmsprop))
    };
    "sgd" { "momentum?: number; nesterov?: boolean" } ["momentum", "nesterov"] |options| {
        let sgd = Sgd::new(rate(options, 1e-2)?)
            .momentum(options.number("momentum")?.unwrap_or(0.0))
            .nesterov(options.bool("nesterov")?.unwrap_or(false));
        Ok(Box::new(sgd))
    };
}

/// The learning rate, or Keras's.
fn rate(options: &Options, keras: f64) -> Result<f32> {
    Ok(options.number("learningRate")?.unwrap_or(keras) as f32)
}

/// The optimizer that `config` describes: its name alone, or an object.
pub(crate) fn optimizer(config: &JsValue) -> Result<Box<dyn Optimizer>> {
    let kind = find("compile", "an optimizer", config, OPTIMIZERS)?;
    let given = if config.is_string() { &JsValue::UNDEFINED } else { config };
    (kind.make)(&Options::new(kind.name, given, kind.options)?)
}
