//! [`layers`]: the objects that describe layers.

use js_sys::Object;
use wasm_bindgen::prelude::*;

/// Makes the objects that describe layers: `layers.dense({ units: 10 })` is `{ type: 'dense', units: 10 }`.
#[wasm_bindgen]
#[allow(non_camel_case_types)] // A namespace, not a class: nobody makes one.
pub struct layers;

macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident($options:literal) = $type:literal;)*) => {
        #[wasm_bindgen]
        impl layers {$(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $type, unchecked_return_type = "LayerConfig")]
            pub fn $name(
                #[wasm_bindgen(unchecked_param_type = $options)] options: &JsValue,
            ) -> Object {
                let config = Object::new();
                // A new object takes any property.
                let _ = js_sys::Reflect::set(&config, &"type".into(), &$type.into());
                match options.dyn_ref::<Object>() {
                    Some(options) => Object::assign(&config, options),
                    None => config,
                }
            }
        )*}
    };
}
// The first becomes `static dense(options: DenseOptions): LayerConfig`.
builders! {
    /// `activation(x kernel + bias)`, along the last axis.
    dense("DenseOptions") = "dense";
    /// Convolves images `[N,H,W,C]` with trained filters.
    conv2d("Conv2dLayerOptions") = "conv2d";
    /// The largest element of each window.
    max_pooling2d("PoolingOptions | void") = "maxPooling2d";
    /// The mean of each window.
    average_pooling2d("PoolingOptions | void") = "averagePooling2d";
    /// Leaves out a part of the elements while training.
    dropout("DropoutOptions") = "dropout";
    /// A function of each element.
    activation("ActivationOptions") = "activation";
    /// All axes but the first as one.
    flatten("FlattenOptions | void") = "flatten";
}
