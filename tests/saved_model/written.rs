//! Models that this crate writes as SavedModels compute the same when it loads them.

use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::{Functional, INFERENCE, Input, Sequential};
use wgrad::saved_model::{Signature, save};

use crate::support::folder::Folder;
use crate::support::saved_models::assert_near;
use crate::support::written_models::{Written, all};

fn round_trip(model: &Written, folder: &Folder) {
    let name = model.name;
    let path = folder.path(name);
    model.save(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    for size in [3, 4] {
        // A call may change its variables.
        let loaded = tf::saved_model::load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let serve = loaded.signature("serving_default");
        if let Some(lacks) = model.lacks_here() {
            let words = serve.map(drop).unwrap_err().to_string();
            assert!(words.contains(&format!("  {lacks}: node")), "{name}: {words}");
            return;
        }
        let serve = serve.unwrap_or_else(|error| panic!("{name}: {error}"));
        let inputs = model.random(size, size as u64);
        let expected = model.restored(&inputs);
        let results = serve
            .call(model.names().into_iter().zip(inputs))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (at, expected) in expected.iter().enumerate() {
            let actual = results.value(&format!("output_{at}")).unwrap().to_host_array().unwrap();
            assert_near(&format!("{name}, result {at}, size {size}"), &actual, expected, 1e-5);
        }
    }
}

#[test]
fn models_compute_the_same_when_loaded() {
    let folder = Folder::new("written-models");
    for model in all() {
        println!("{}", model.name);
        round_trip(&model, &folder);
    }
}

fn onnx_round_trip(model: &Written, folder: &Folder) {
    let name = model.name;
    let path = folder.path(&format!("{name}.onnx"));
    let saved = model.save_onnx(&path, name == "mlp");
    if let Some(lacks) = model.onnx_lacks() {
        let words = error(saved);
        assert!(words.contains(lacks), "{name}: {words}");
        assert!(!path.exists());
        return;
    }
    saved.unwrap_or_else(|error| panic!("{name}: {error}"));
    let loaded = tf::onnx::load(&path);
    if model.lacks_here().is_some() {
        assert!(loaded.is_err());
        return;
    }
    let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    for size in [3, 4] {
        let inputs = model.random(size, size as u64);
        let expected = model.call(&inputs);
        let results = loaded.call(model.names().into_iter().zip(inputs));
        let results = results.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (at, expected) in expected.iter().enumerate() {
            let actual = results.value(&format!("output_{at}")).unwrap().to_host_array().unwrap();
            assert_near(&format!("{name}, result {at}, size {size}"), &actual, expected, 1e-5);
        }
    }
}

#[test]
fn onnx_models_compute_the_same_when_loaded() {
    let folder = Folder::new("written-onnx");
    for model in all() {
        println!("{}", model.name);
        onnx_round_trip(&model, &folder);
    }
}

fn error(result: tf::Result<()>) -> String {
    result.unwrap_err().to_string()
}

fn vector() -> tf::TensorSpec {
    tf::TensorSpec::new([None], tf::DType::F32)
}

#[test]
fn what_tensorflow_lacks_is_in_one_error() {
    let folder = Folder::new("written-errors");
    let nothing: Vec<tf::Variable> = Vec::new();
    let unknown = Signature::new("f", [("x", vector())], |x| {
        let (largest, noise) = (x[0].cummax(0)?, tf::random::normal([3])?);
        Ok((largest, noise, x[0].cummin(0)?))
    });
    let words = error(save(&nothing, folder.path("unknown"), &[unknown]));
    for part in [
        "f cannot be written as a SavedModel",
        "Cummax -> f32[2] has no counterpart",
        "Cummin",
        "random numbers",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert!(!folder.path("unknown").exists());
}

#[test]
fn calls_on_the_host_are_refused_with_all_that_uses_them() {
    let folder = Folder::new("written-host");
    let nothing: Vec<tf::Variable> = Vec::new();
    let images = tf::TensorSpec::new([None, Some(4), Some(4), Some(1)], tf::DType::F32);
    let signature = || {
        Signature::new("f", [("x", images.clone())], |x| {
            let twice = |x: &[tf::Tensor]| Ok(vec![x[0].clone(), x[0].clone()]);
            let like = [(x[0].shape(), x[0].dtype()); 2];
            let results = tf::host_call(twice, &[&x[0]], &like)?;
            let filter = tf::Tensor::ones([2, 2, 1, 1])?;
            let y = results[1].stop_gradient().conv2d(&filter, tf::Conv2dOptions::new())?;
            let any = results[1].reduce_sum(())?.greater(0.0)?;
            Ok((y.cummax(1)?, tf::cond(&any, || Ok(y.clone()), || y.square())?, results[1].clone()))
        })
    };
    for words in [
        error(save(&nothing, folder.path("model"), &[signature()])),
        error(tf::onnx::save(&nothing, folder.path("model.onnx"), &signature())),
    ] {
        assert!(words.contains("it calls code on the host") && words.contains("Cummax"), "{words}");
    }
}

#[test]
fn sizes_that_are_rounded_are_refused() {
    let folder = Folder::new("written-rounded");
    let nothing: Vec<tf::Variable> = Vec::new();
    let lines = tf::TensorSpec::new([Some(1), None], tf::DType::F32);
    let half = Signature::new("f", [("x", lines)], |x| {
        let half = x[0].shape()[1].div_ceil(2);
        x[0].slice(&[0, 0], &[1, half as i64])
    });
    let words = error(save(&nothing, folder.path("model"), &[half]));
    assert!(words.contains("neither a sum nor a product of the open sizes"), "{words}");
}

#[test]
fn inputs_may_have_different_numbers_of_rows() {
    let folder = Folder::new("written-rows");
    let nothing: Vec<tf::Variable> = Vec::new();
    let [table, ids] = [
        tf::TensorSpec::new([None, Some(2)], tf::DType::F32),
        tf::TensorSpec::new([None], tf::DType::I32),
    ];
    let lookup = Signature::new("f", [("table", table), ("ids", ids)], |x| {
        let rows = x[0].gather(&x[1], 0)?;
        rows.add(tf::Tensor::ones([x[1].shape()[0], 2])?)
    });
    save(&nothing, folder.path("model"), &[lookup]).unwrap();
    let loaded = tf::saved_model::load(folder.path("model")).unwrap();
    let table = tf::constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
    let inputs = [("table", table), ("ids", tf::constant([2]).unwrap())];
    let results = loaded.signature("f").unwrap().call(inputs).unwrap();
    assert_eq!(results.tensor("output_0").unwrap().to_vec::<f32>().unwrap(), [6.0, 7.0]);
}

#[test]
fn variables_of_others_are_refused() {
    let folder = Folder::new("written-variables");
    let (own, other) = (
        tf::Variable::new(tf::constant(1.0).unwrap()),
        tf::Variable::new(tf::constant([2.0, 3.0]).unwrap()),
    );
    let signature = Signature::new("f", [("x", vector())], |x| {
        x[0].multiply(&own)?.add(other.read().reduce_sum(())?)
    });
    let words = error(save(&vec![own.clone()], folder.path("model"), &[signature]));
    assert!(words.contains("f uses a variable f32[2] that is no part of the model"), "{words}");
}

#[test]
fn functions_that_depend_on_sizes_are_refused() {
    let folder = Folder::new("written-sizes");
    let nothing: Vec<tf::Variable> = Vec::new();
    let of = |f: fn(&tf::Tensor) -> tf::Result<tf::Tensor>| {
        let signature = Signature::new("f", [("x", vector())], move |x| f(&x[0]));
        error(save(&nothing, folder.path("model"), &[signature]))
    };
    // A branch of Rust, by the size.
    let words = of(|x| if x.len() > 2 { x.square() } else { x.add(1.0) });
    assert!(words.contains("makes more calls or fewer if its open sizes are others"), "{words}");
    let words = of(|x| tf::Tensor::zeros([x.len().isqrt()]));
    assert!(words.contains("neither a sum nor a product of the open sizes"), "{words}");
    let words = of(|x| x.multiply((x.len() as f32).sqrt()));
    assert!(words.contains("a number that depends on the open sizes"), "{words}");
    let words = of(|x| x.reshape([2, -1]));
    assert!(words.contains("traced with f32[3] for the open sizes"), "{words}");
    // The same functions can be written for a known size.
    let known = tf::TensorSpec::new([Some(4)], tf::DType::F32);
    let signature = Signature::new("f", [("x", known)], |x| {
        x[0].multiply((x[0].len() as f32).sqrt())?.reshape([2, -1])
    });
    save(&nothing, folder.path("known"), &[signature]).unwrap();
}

#[test]
fn names_are_checked() {
    let folder = Folder::new("written-names");
    let nothing: Vec<tf::Variable> = Vec::new();
    let one = |name: &str, input: &str| {
        Signature::new(name, [(input, vector())], |x: &[tf::Tensor]| Ok(x[0].clone()))
    };
    let path = folder.path("model");
    for (signatures, part) in [
        (vec![], "needs a function"),
        (vec![one("__init", "x")], "cannot have the name \"__init\""),
        (vec![one("f", "x"), one("f", "x")], "two signatures have the name \"f\""),
        (vec![one("f", "my x")], "the name \"my x\" of its inputs"),
        (vec![one("a/b", "x")], "cannot have the name \"a/b\", as it becomes an attribute"),
        (
            vec![one("f", "x").outputs(["a", "b"])],
            "returns 1 tensors, and 2 names are given (a, b)",
        ),
        (vec![one("f", "x").outputs(["a b"])], "the name \"a b\" of its results"),
    ] {
        let words = error(save(&nothing, &path, &signatures));
        assert!(words.contains(part), "{words}");
    }
    let model = Sequential::new().add_named("f", Dense::new(2));
    model.build([None, Some(3)]).unwrap();
    let words = error(save(&model, &path, &[one("f", "x")]));
    assert!(words.contains("a part with the name \"f\""), "{words}");
    // A result may be an input, and names may differ only in the size of letters.
    let both = Signature::new("Both", [("x", vector()), ("X", vector())], |x| {
        Ok((x[1].clone(), x[0].clone()))
    });
    save(&nothing, &path, &[both.outputs(["A", "a"])]).unwrap();
    let loaded = tf::saved_model::load(&path).unwrap();
    let inputs = [("x", tf::constant([1.0]).unwrap()), ("X", tf::constant([2.0]).unwrap())];
    let results = loaded.signature("Both").unwrap().call(inputs).unwrap();
    assert_eq!(results.tensor("a").unwrap().to_vec::<f32>().unwrap(), [1.0]);
    assert_eq!(results.tensor("A").unwrap().to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn keras_models_are_exported() {
    let folder = Folder::new("written-keras");
    let model = Sequential::new().add(Dense::new(3)).add(Dense::new(2));
    let words = error(model.export(folder.path("model")));
    assert!(words.contains("was never called"), "{words}");
    model.build([None, Some(4)]).unwrap();
    model.export(folder.path("model")).unwrap();
    let x = tf::Tensor::ones([5, 4]).unwrap();
    let loaded = tf::saved_model::load(folder.path("model")).unwrap();
    let serve = loaded.signature("serving_default").unwrap();
    assert_eq!(
        format!("{serve:?}"),
        "SavedFunction(serving_default(inputs: float32[?, 4]) -> (output_0: float32[?, 2]))"
    );
    let expected = model.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(serve.predict(&x).unwrap().to_vec::<f32>().unwrap(), expected);
    assert_eq!(
        loaded.function("serve").unwrap().predict(&x).unwrap().to_vec::<f32>().unwrap(),
        expected
    );
    // Trained further, and written again over itself.
    let names: Vec<String> = loaded.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]);

    let [a, b] = ["a", "b"].map(|name| Input::new([3]).with_name(name));
    let both = Functional::new([&a, &b], [a.add(&b).unwrap(), a.multiply(&b).unwrap()]).unwrap();
    both.export(folder.path("both")).unwrap();
    let loaded = tf::saved_model::load(folder.path("both")).unwrap();
    let inputs = [
        ("a", tf::constant([[1.0, 2.0, 3.0]]).unwrap()),
        ("b", tf::constant([[2.0, 2.0, 2.0]]).unwrap()),
    ];
    let results = loaded.signature("serving_default").unwrap().call(inputs).unwrap();
    assert_eq!(results.tensor("output_0").unwrap().to_vec::<f32>().unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(results.tensor("output_1").unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
}
