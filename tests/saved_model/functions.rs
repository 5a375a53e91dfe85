//! Functions of a model's objects, and parts of graphs.

use wgrad as tf;
use wgrad::HostArray;

use crate::results::folder;
use crate::support::saved_models::{arrays, assert_near};

#[test]
fn functions_are_found_by_their_paths() {
    let model = tf::saved_model::load(folder().join("functions")).unwrap();
    assert_eq!(model.functions(), ["f", "g"]);
    assert_eq!(model.tensorflow_version(), "2.21.0");
    let arrays = arrays(&folder().join("functions.safetensors"));
    let x = arrays["in.x"].to_tensor().unwrap();
    let g = model.function("g").unwrap();
    assert_eq!(format!("{g:?}"), "SavedFunction(g(x: float32[?, 4]) -> (output_0: float32[?, 3]))");
    let y = HostArray::from_tensor(&g.predict(&x).unwrap()).unwrap();
    assert_near("g", &y, &arrays["out.g"], 1e-5);

    let error = model.function("f").unwrap_err().to_string();
    assert!(error.contains("\"f\" has 2 traces"), "{error}");
    let traces = model.concrete_functions("f").unwrap();
    let results = traces.iter().map(|f| f.call([("x", &x)]).unwrap().tensor("y").unwrap());
    let results: Vec<_> = results.map(|y| HostArray::from_tensor(&y).unwrap()).collect();
    let same = |y: &HostArray<'_>| {
        let pairs = y.to_f64().unwrap().into_iter().zip(arrays["out.f"].to_f64().unwrap());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-4
    };
    assert_eq!(results.iter().filter(|y| same(y)).count(), 1, "{results:?}");
    let names: Vec<&str> = traces[0].outputs().iter().map(|spec| &spec.name[..]).collect();
    assert_eq!(names, ["list_0", "list_1", "y"]);
}

#[test]
fn a_pruned_graph_runs_between_any_nodes() {
    let frozen = folder().join("frozen.pb");
    let f = tf::saved_model::import_graph_def(frozen, &["MatMul"], &["y"]).unwrap();
    let y = f.predict(tf::constant([[0.0, 0.0, 0.0]]).unwrap()).unwrap();
    let sum: f32 = y.to_vec::<f32>().unwrap().iter().sum();
    assert!((sum - 1.0).abs() < 1e-6);
}

/// A loaded function is a part of a function of the program.
#[test]
fn a_saved_function_runs_in_a_trace() {
    let model = tf::saved_model::load(folder().join("cond")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let arrays = arrays(&folder().join("cond.safetensors"));
    let x = arrays["in.x"].to_tensor().unwrap();
    let double = {
        let model = model.clone();
        tf::function(move |x: tf::Tensor| {
            let f = model.signature("serving_default")?;
            f.call([("x", &x)])?.tensor("y")?.multiply(2.0)
        })
    };
    let plain = f.call([("x", &x)]).unwrap().tensor("y").unwrap().to_vec::<f32>().unwrap();
    let doubled = double(x.clone()).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(doubled, plain.iter().map(|y| 2.0 * y).collect::<Vec<_>>());
    // The other branch, of the same trace.
    let x = x.negative().unwrap();
    let plain = f.call([("x", &x)]).unwrap().tensor("y").unwrap().to_vec::<f32>().unwrap();
    let doubled = double(x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(doubled, plain.iter().map(|y| 2.0 * y).collect::<Vec<_>>());
    assert_eq!(double.tracing_count(), 1);
}
