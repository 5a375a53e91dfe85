//! Compares SavedModels with what TensorFlow computed with them: the files that tests/data/saved_model/make.py writes.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use wgrad as tf;
use wgrad::saved_model::{SavedModel, SavedValue};
use wgrad::{GradientTape, HostArray, HostDType, Tensor, Trackable};

/// The arrays of a file by name.
pub fn arrays(path: &Path) -> BTreeMap<String, HostArray<'static>> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let array = |view: &safetensors::tensor::TensorView<'_>| {
        let dtype = match view.dtype() {
            Dtype::F32 => HostDType::F32,
            Dtype::I32 => HostDType::I32,
            Dtype::I64 => HostDType::I64,
            Dtype::BOOL => HostDType::Bool,
            Dtype::U8 => HostDType::U8,
            other => panic!("{other:?}"),
        };
        HostArray::new(dtype, view.shape(), view.data().to_vec()).unwrap()
    };
    file.tensors().iter().map(|(name, view)| (name.clone(), array(view))).collect()
}

/// Writes such a file.
pub fn store(path: &Path, arrays: &[(String, HostArray<'static>)]) {
    let views = arrays.iter().map(|(name, array)| {
        let dtype = match array.dtype() {
            HostDType::F32 => Dtype::F32,
            HostDType::I32 => Dtype::I32,
            HostDType::Bool => Dtype::BOOL,
            other => panic!("{other:?}"),
        };
        let view =
            safetensors::tensor::TensorView::new(dtype, array.shape().to_vec(), array.bytes());
        (name.as_str(), view.unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// The arrays whose names begin with `prefix`, by the rest of their names.
pub fn part(
    arrays: &BTreeMap<String, HostArray<'static>>,
    prefix: &str,
) -> BTreeMap<String, HostArray<'static>> {
    let named = arrays.iter().filter_map(|(name, array)| Some((name.strip_prefix(prefix)?, array)));
    named.map(|(name, array)| (name.to_string(), array.clone())).collect()
}

/// Panics unless `actual` is `expected`, up to `tolerance` times the largest expected number, or times 1.
pub fn assert_near(what: &str, actual: &HostArray<'_>, expected: &HostArray<'_>, tolerance: f64) {
    assert_eq!(actual.shape(), expected.shape(), "{what}");
    let (actual, expected) = (actual.to_f64().unwrap(), expected.to_f64().unwrap());
    let largest = expected.iter().fold(1.0f64, |largest, value| largest.max(value.abs()));
    for (at, (a, b)) in actual.iter().zip(&expected).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{what}: element {at} is {a}, not {b}");
    }
}

/// Calls `serving_default` of a model with TensorFlow's inputs, as a function and under a tape, and compares the results and the
/// gradients of the sum of their squares.
pub fn compare(folder: &Path, name: &str) {
    let model = tf::saved_model::load(folder.join(name)).unwrap();
    let arrays = arrays(&folder.join(format!("{name}.safetensors")));
    let f = model.signature("serving_default").unwrap();
    let inputs: Vec<(String, Tensor)> = part(&arrays, "in.")
        .into_iter()
        .map(|(name, array)| (name, array.to_tensor().unwrap()))
        .collect();
    let outputs = part(&arrays, "out.");
    let check = |way: &str, results: tf::saved_model::Outputs| {
        assert!(results.names().eq(outputs.keys().map(String::as_str)), "{name}: {results:?}");
        for (key, value) in results {
            let what = format!("{name}, {way}: {key}");
            assert_near(&what, &value.to_host_array().unwrap(), &outputs[&key], 1e-5);
        }
    };
    check("the first call", f.call(inputs.clone()).unwrap());
    let gradients = part(&arrays, "grad.");
    if gradients.is_empty() {
        return;
    }
    check("the second call", f.call(inputs.clone()).unwrap());
    let tape = GradientTape::new();
    let results = f.call(inputs).unwrap();
    let mut loss = Tensor::scalar(0f32).unwrap();
    for (_, value) in results {
        match value {
            SavedValue::Tensor(y) if y.dtype().is_float() => {
                loss = loss.add(y.square().unwrap().reduce_sum(()).unwrap()).unwrap();
            }
            _ => {}
        }
    }
    compare_gradients(name, &model, tape, &loss, &gradients);
}

fn compare_gradients(
    name: &str,
    model: &SavedModel,
    tape: GradientTape,
    loss: &Tensor,
    expected: &BTreeMap<String, HostArray<'static>>,
) {
    let all = model.named_variables();
    let variables: Vec<_> = all.iter().map(|(_, variable)| variable).collect();
    let gradients = tape.gradient(loss, variables).unwrap();
    for (key, expected) in expected {
        let named = all.iter().zip(&gradients).filter(|((name, _), _)| name == key);
        let found: Vec<&Tensor> = named.filter_map(|(_, gradient)| gradient.as_ref()).collect();
        assert_eq!(found.len(), 1, "{name}: the gradients of {key}");
        let actual = HostArray::from_tensor(found[0]).unwrap();
        assert_near(&format!("{name}: the gradient of {key}"), &actual, expected, 1e-4);
    }
}

/// The bytes with a few changes.
pub fn broken(bytes: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut broken = bytes.to_vec();
    for _ in 0..random.usize(1..4) {
        let place = random.usize(..broken.len());
        match random.u8(..33) {
            0..8 => broken[place] = random.u8(..),
            8..16 => broken[place] ^= 1 << random.u8(..8),
            16..24 => broken[place] = broken[place].wrapping_add(1),
            24..32 => {
                let other = (place + 7) % broken.len();
                broken.swap(place, other);
            }
            _ => broken.truncate(place.max(1)),
        }
    }
    broken
}
