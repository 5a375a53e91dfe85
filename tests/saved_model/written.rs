//! Models that this crate writes as SavedModels compute the same when it loads them.

use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Layer, Lstm, Rnn, RnnCell};
use wgrad::keras::{Context, Functional, INFERENCE, Input, Sequential};
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
    let loaded = tf::onnx::load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
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

fn sequences() -> tf::TensorSpec {
    tf::TensorSpec::new([Some(2), Some(40), Some(3)], tf::DType::F32)
}

#[test]
fn a_recurrent_layer_is_one_step_in_a_loop() {
    let folder = Folder::new("written-loop");
    let model = Sequential::new().add(Lstm::new(4).return_sequences(true));
    let size = |steps: Option<usize>, name: &str| {
        let x = tf::TensorSpec::new([Some(2), steps, Some(3)], tf::DType::F32);
        let f = Signature::new("f", [("x", x)], |x| model.call(&x[0], INFERENCE));
        save(&model, folder.path(name), &[f]).unwrap();
        std::fs::metadata(folder.path(name).join("saved_model.pb")).unwrap().len()
    };
    let (few, many, any) = (size(Some(5), "few"), size(Some(800), "many"), size(None, "any"));
    assert!(many < few + 200 && any < few + 2000, "{few} bytes, {many} and {any}");

    // Trained with one length, and called with others.
    let loaded = tf::saved_model::load(folder.path("any")).unwrap();
    let f = loaded.signature("f").unwrap();
    for steps in [1, 2, 9, 40] {
        let x = tf::random::normal([2, steps, 3]).unwrap();
        let expected = model.call(&x, INFERENCE).unwrap();
        let (y, loss) = {
            let tape = tf::GradientTape::new();
            let y = f.predict(&x).unwrap();
            let loss = y.square().unwrap().reduce_sum(()).unwrap();
            (y, tape.gradient(&loss, loaded.variables().iter().collect::<Vec<_>>()).unwrap())
        };
        assert_eq!(y.shape(), [2, steps, 4]);
        let near = |a: &tf::Tensor, b: &tf::Tensor| {
            let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
            let largest = b.iter().fold(1f32, |most, x| most.max(x.abs()));
            a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5 * largest)
        };
        assert!(near(&y, &expected), "{steps} steps");
        let tape = tf::GradientTape::new();
        let loss_here = model.call(&x, INFERENCE).unwrap().square().unwrap();
        let loss_here = loss_here.reduce_sum(()).unwrap();
        let variables = model.variables();
        let expected = tape.gradient(&loss_here, variables.iter().collect::<Vec<_>>()).unwrap();
        let of = |name: &str, all: Vec<(String, tf::Variable)>| {
            all.iter().position(|(own, _)| own.ends_with(name)).unwrap()
        };
        for name in ["recurrent_kernel", "bias"] {
            let here = expected[of(name, model.named_variables())].as_ref().unwrap();
            let there = loss[of(name, loaded.named_variables())].as_ref().unwrap();
            assert!(near(there, here), "{name}, {steps} steps");
        }
    }
}

#[test]
fn the_gradient_of_a_recurrent_layer_is_written_step_by_step() {
    let folder = Folder::new("written-steps");
    let layer = Lstm::new(4);
    layer.call(&tf::Tensor::zeros([2, 40, 3]).unwrap(), INFERENCE).unwrap();
    let slope = |x: &tf::Tensor| {
        let tape = tf::GradientTape::new();
        tape.watch(x)?;
        let y = layer.call(x, INFERENCE)?.square()?.reduce_sum(())?;
        let [slope] = tape.gradient(&y, [x])?;
        Ok(slope.unwrap())
    };
    let x = tf::random::normal([2, 40, 3]).unwrap();
    let signature = Signature::new("f", [("x", sequences())], |x| slope(&x[0]));
    save(&layer, folder.path("slope"), &[signature]).unwrap();
    let loaded = tf::saved_model::load(folder.path("slope")).unwrap();
    let y = loaded.signature("f").unwrap().predict(&x).unwrap();
    let (y, expected) = (y.to_vec::<f32>().unwrap(), slope(&x).unwrap().to_vec::<f32>().unwrap());
    assert!(y.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// Adds the input to its state, and counts its steps.
#[derive(Trackable)]
struct Counting {
    count: tf::Variable,
}

impl RnnCell for Counting {
    fn state_sizes(&self) -> Vec<usize> {
        vec![3]
    }

    fn step(
        &self,
        x: &tf::Tensor,
        states: &[tf::Tensor],
        _: Context<'_>,
    ) -> tf::Result<(tf::Tensor, Vec<tf::Tensor>)> {
        self.count.assign_add(tf::Tensor::scalar(1f32)?)?;
        let h = states[0].add(x)?;
        Ok((h.clone(), vec![h]))
    }
}

#[test]
fn a_step_that_assigns_variables_runs_as_often_as_here() {
    let folder = Folder::new("written-counting");
    let count = tf::Variable::new(tf::Tensor::scalar(0f32).unwrap());
    let layer = Rnn::new(Counting { count: count.clone() });
    let signature =
        |x: tf::TensorSpec| Signature::new("f", [("x", x)], |x| layer.call(&x[0], INFERENCE));
    save(&layer, folder.path("model"), &[signature(sequences())]).unwrap();
    assert_eq!(count.read().item::<f32>().unwrap(), 0.0);
    let loaded = tf::saved_model::load(folder.path("model")).unwrap();
    let y = loaded.signature("f").unwrap().predict(tf::Tensor::ones([2, 40, 3]).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [40.0; 6]);
    assert_eq!(loaded.variables()[0].read().item::<f32>().unwrap(), 40.0);
    let open = tf::TensorSpec::new([Some(2), None, Some(3)], tf::DType::F32);
    let words = error(save(&layer, folder.path("open"), &[signature(open)]));
    assert!(words.contains("Give the signature known sizes"), "{words}");
}

#[test]
fn a_limit_of_turns_may_depend_on_open_sizes() {
    let folder = Folder::new("written-turns");
    let nothing: Vec<tf::Variable> = Vec::new();
    let body = |x: &tf::Tensor| {
        let most = 2 * x.shape()[0] as u64 + 1;
        tf::while_loop_with(
            |sum: &tf::Tensor| sum.less(1e6),
            |sum: tf::Tensor| sum.add(x.reduce_sum(())?),
            tf::Tensor::scalar(0f32)?,
            tf::WhileLoopOptions::new().maximum_iterations(most),
        )
    };
    let f = || Signature::new("f", [("x", vector())], |x| body(&x[0]));
    save(&nothing, folder.path("model"), &[f()]).unwrap();
    tf::onnx::save(&nothing, folder.path("model.onnx"), &f()).unwrap();
    let loaded = tf::saved_model::load(folder.path("model")).unwrap();
    let onnx = tf::onnx::load(folder.path("model.onnx")).unwrap();
    for count in [1, 2, 5] {
        let x = tf::Tensor::ones([count]).unwrap();
        let expected = ((2 * count + 1) * count) as f32;
        let y = loaded.signature("f").unwrap().predict(&x).unwrap();
        assert_eq!(y.item::<f32>().unwrap(), expected);
        assert_eq!(onnx.predict(&x).unwrap().item::<f32>().unwrap(), expected);
    }
    let rounded = Signature::new("f", [("x", vector())], |x| {
        tf::while_loop_with(
            |sum: &tf::Tensor| sum.less(1e6),
            |sum: tf::Tensor| sum.add(1.0),
            x[0].reduce_sum(())?,
            tf::WhileLoopOptions::new().maximum_iterations(x[0].shape()[0] as u64 / 2),
        )
    });
    let words = error(save(&nothing, folder.path("rounded"), &[rounded]));
    assert!(words.contains("a loop whose most turns are neither"), "{words}");
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
    assert!(words.contains("Slice -> f32[1, 32] has a size that is neither a sum nor"), "{words}");
    assert!(words.contains("the signature has to give the sizes"), "{words}");
}

/// The function in both formats, called with images of each size.
fn on_images_of_any_size(
    name: &str,
    folder: &Folder,
    f: &dyn Fn(&tf::Tensor) -> tf::Result<tf::Tensor>,
) {
    let nothing: Vec<tf::Variable> = Vec::new();
    let images = tf::TensorSpec::new([None, None, None, Some(2)], tf::DType::F32);
    let signature = || Signature::new("f", [("x", images.clone())], |x| f(&x[0]));
    let (path, file) = (folder.path(name), folder.path(&format!("{name}.onnx")));
    save(&nothing, &path, &[signature()]).unwrap_or_else(|error| panic!("{name}: {error}"));
    let loaded = tf::saved_model::load(path).unwrap();
    let loaded = loaded.signature("f").unwrap();
    tf::onnx::save(&nothing, &file, &signature()).unwrap();
    let onnx = tf::onnx::load(file).unwrap();
    for [n, h, w] in [[1, 12, 15], [2, 17, 14], [3, 21, 22], [1, 19, 31]] {
        let x: Vec<f32> = (0..n * h * w * 2).map(|i| (i as f32 * 0.37).sin() + 0.5).collect();
        let x = tf::Tensor::from_slice(&x, [n, h, w, 2]).unwrap();
        let expected = tf::HostArray::from_tensor(&f(&x).unwrap()).unwrap();
        let results = loaded.call([("x", x.clone())]).unwrap();
        let actual = results.value("output_0").unwrap().to_host_array().unwrap();
        assert_near(&format!("{name}, {h}x{w}"), &actual, &expected, 1e-5);
        let results = onnx.call([("x", x)]).unwrap();
        let actual = results.value("output_0").unwrap().to_host_array().unwrap();
        assert_near(&format!("{name} in ONNX, {h}x{w}"), &actual, &expected, 1e-5);
    }
}

#[test]
fn means_after_windows_with_strides_are_over_their_places() {
    let folder = Folder::new("written-strides");
    let filters = tf::linspace(-0.4, 0.6, 36).unwrap().reshape([3, 3, 2, 2]).unwrap();
    for (padding, stride) in [
        (tf::Padding::Valid, 2),
        (tf::Padding::Valid, 3),
        (tf::Padding::Same, 2),
        (tf::Padding::Same, 3),
    ] {
        let of = |kind: &str| format!("{kind}-{padding:?}-{stride}");
        let options = tf::Conv2dOptions::new().strides([stride, stride]).padding(padding);
        on_images_of_any_size(&of("conv"), &folder, &|x| {
            let y = x.conv2d(&filters, options)?.relu()?;
            y.conv2d(&filters, options.strides([1, 2]))?.reduce_mean([1, 2])
        });
        on_images_of_any_size(&of("left-over"), &folder, &|x| {
            let y = x.max_pool2d([2, 2], tf::Pool2dOptions::new().padding(padding))?;
            let edge = |axis: usize| (0, 3 + x.shape()[axis] - 2 * y.shape()[axis]);
            y.pad(&[(0, 0), edge(1), edge(2), (0, 0)])
        });
        let pool = tf::Pool2dOptions::new().strides([stride, stride]).padding(padding);
        on_images_of_any_size(&of("max"), &folder, &|x| {
            x.max_pool2d([2, 3], pool)?.reduce_mean([1, 2])
        });
        on_images_of_any_size(&of("average"), &folder, &|x| {
            let y = x.avg_pool2d([2, 3], pool)?;
            y.subtract(y.reduce_mean(tf::Axes::from([1, 2]).keepdims(true))?)?
                .reshape([-1, 2 * y.shape()[2] as i64])?
                .square()
        });
    }
}

#[test]
fn sizes_that_only_some_images_tell_apart_are_those_of_their_own_results() {
    let folder = Folder::new("written-branches");
    let wide = tf::Tensor::ones([4, 4, 2, 1]).unwrap();
    let narrow = tf::Tensor::ones([2, 2, 2, 1]).unwrap();
    let options = tf::Conv2dOptions::new().strides([4, 4]);
    on_images_of_any_size("branches", &folder, &|x| {
        // These have as many places, unless a size leaves a rest of 2 or 3.
        let (wide, narrow) = (x.conv2d(&wide, options)?, x.conv2d(&narrow, options)?);
        let (one, other) = (wide.reduce_mean([1, 2])?, narrow.reduce_mean([1, 2])?);
        tf::concat([&one, &other], 1)
    });
}

#[test]
fn branches_by_values_know_sizes_after_strides() {
    let folder = Folder::new("written-strided-branches");
    on_images_of_any_size("choice", &folder, &|x| {
        let y = x.max_pool2d([2, 2], tf::Pool2dOptions::new())?;
        let positive = y.reduce_sum(())?.greater(0.0)?;
        let chosen = tf::cond(&positive, || y.reduce_mean([1, 2]), || y.reduce_max([1, 2]))?;
        let (_, sum) = tf::while_loop(
            |(turn, _): &(tf::Tensor, tf::Tensor)| turn.less(3),
            |(turn, sum): (tf::Tensor, tf::Tensor)| {
                Ok((turn.add(1)?, sum.add(y.reduce_mean([1, 2])?)?))
            },
            (tf::constant(0)?, chosen),
        )?;
        sum.divide((y.shape()[1] * y.shape()[2]) as f32)
    });
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
    assert!(words.contains("neither a sum nor a product of the open sizes and those"), "{words}");
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
