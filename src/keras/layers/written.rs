//! Writes a layer to a model's config, in Keras's format.

use serde_json::{Map, Value, json};

use super::registry::is_known;
use crate::dtype::DType;
use crate::keras::Config;
use crate::trackable::Trackable;

/// Layers whose constructors do not take `trainable` in Keras.
const NEVER_TRAINABLE: [&str; 4] =
    ["Discretization", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"];

/// Layers whose weights Keras never trains, although `trainable` is true.
const NOTHING_TO_TRAIN: [&str; 1] = ["Normalization"];

/// Keras's cells, which occur only inside layers.
const CELLS: [&str; 4] = ["GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"];

/// A layer or a model in Keras's format. A layer in a model has a name and may be frozen.
pub(crate) fn written(
    config: &Config,
    named: Option<(&str, &dyn Trackable)>,
    input: Option<Value>,
) -> Value {
    let class = config.class();
    let (module, registered) = match class {
        "Sequential" => (json!("keras"), Value::Null),
        "Functional" => (json!("keras.src.models.functional"), json!("Functional")),
        class if is_known(class) || CELLS.contains(&class) => (json!("keras.layers"), Value::Null),
        class => (Value::Null, json!(class)),
    };
    let mut options = Map::new();
    if let Some((name, part)) = named {
        let variables = part.variables();
        let trainable = variables.is_empty()
            || NOTHING_TO_TRAIN.contains(&class)
            || variables.iter().any(|variable| variable.trainable());
        options.insert("name".to_string(), json!(name));
        if !NEVER_TRAINABLE.contains(&class) {
            options.insert("trainable".to_string(), json!(trainable));
        }
    }
    for (key, value) in config.options() {
        if !options.contains_key(key) {
            options.insert(key.clone(), value.clone());
        }
    }
    let mut written = json!({
        "module": module, "class_name": class, "config": options, "registered_name": registered,
    });
    if let Some(input) = input {
        written["build_config"] = json!({"input_shape": input});
    }
    written
}

/// An input of a model.
pub(crate) fn written_input(name: &str, shape: &[Option<usize>], dtype: DType) -> Value {
    json!({
        "module": "keras.layers",
        "class_name": "InputLayer",
        "config": {
            "batch_shape": shape, "dtype": dtype.tensorflow_name(), "sparse": false, "ragged": false, "name": name,
            "optional": false,
        },
        "registered_name": null,
    })
}
