//! The types that the classes' declarations use.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.d.ts");

/// `several` has those of models with several inputs and outputs.
#[cfg(not(feature = "models"))]
#[wasm_bindgen(typescript_custom_section)]
const SINGLE: &str = r#"
/** Data to train with: images, or tensors whose first axis counts the examples. */
export type Examples = Images | Tensor;

/** A model's input. */
export type Tensors = Tensor;

/** What the model's output is to be. */
export type Targets = Tensor;

/** The loss of the model's output. */
export type OutputLosses = Loss;
"#;
