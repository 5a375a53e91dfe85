//! Training on the real MNIST, compared with TensorFlow's own runs. Needs the files: set `MNIST_DIR`.
#![allow(clippy::unwrap_used)]

#[path = "support/driver.rs"]
mod driver;
#[path = "support/oracle.rs"]
mod oracle;
#[path = "support/root.rs"]
mod root;

use std::collections::HashMap;

use oracle::{Array, beside, read_json, read_safetensors};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::data::Dataset;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::{Mnist, MnistOptions, Source};
use wgrad::keras::layers::{Conv2D, Dense, Flatten, Layer, Lstm, MaxPooling2D, Permute, Reshape};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{
    Activation, CompileOptions, FitOptions, INFERENCE, Model, Sequential, TRAINING, Verbose,
};
use wgrad::{Conv2dOptions, Padding, Pool2dOptions, Tensor, Variable};

fn mnist() -> Mnist {
    assert!(
        std::env::var_os("MNIST_DIR").is_some(),
        "set MNIST_DIR to the folder of the four MNIST files"
    );
    Mnist::load(&MnistOptions::default()).unwrap()
}

/// The initial values of a trajectory, by name.
fn start(tensors: &HashMap<String, Array>, names: &[&str]) -> Vec<Variable> {
    names
        .iter()
        .map(|name| {
            let value = match tensors.get(&format!("init.{name}")) {
                Some(array) => Tensor::from_array(array.f32()).unwrap(),
                // The large kernel is stored as q with the value q / 4096.
                None => {
                    let q = tensors[&format!("init.{name}.i8")].i32();
                    Tensor::from_array(&q.mapv(|q| q as f32 / 4096.0)).unwrap()
                }
            };
            Variable::new(&value)
        })
        .collect()
}

fn mlp(p: &[Variable], x: &Tensor) -> tf::Result<Tensor> {
    let x = x.reshape([-1, 784])?;
    (x.matmul(&p[0])?.add(&p[1])?).relu()?.matmul(&p[2])?.add(&p[3])
}

fn cnn(p: &[Variable], x: &Tensor) -> tf::Result<Tensor> {
    let same = Conv2dOptions::new().padding(Padding::Same);
    let pool = Pool2dOptions::new().padding(Padding::Same);
    let x = x.conv2d(&p[0], same)?.add(&p[1])?.relu()?.max_pool2d([2, 2], pool)?;
    let x = x.conv2d(&p[2], same)?.add(&p[3])?.relu()?.max_pool2d([2, 2], pool)?;
    let x = x.reshape([-1, 3136])?;
    (x.matmul(&p[4])?.add(&p[5])?).relu()?.matmul(&p[6])?.add(&p[7])
}

/// The convolutions of [`cnn`] as layers, followed by an LSTM that reads their 64 channels one after another.
fn cnn_lstm() -> Sequential {
    let conv = |filters| {
        let conv = Conv2D::new(filters, [5, 5]).padding(Padding::Same);
        conv.activation(Activation::Relu)
    };
    Sequential::new()
        .add(conv(32))
        .add(MaxPooling2D::new([2, 2]))
        .add(conv(64))
        .add(MaxPooling2D::new([2, 2]))
        .add(Reshape::new([49, 64]))
        .add(Permute::new([2, 1]))
        .add(Lstm::new(128))
        .add(Dense::new(10))
}

/// Compares with TensorFlow's 20 steps from the same start with the same batches.
fn follow(model: &str, names: &[&str], forward: fn(&[Variable], &Tensor) -> tf::Result<Tensor>) {
    follow_from(model, names, |variables| {
        (variables.clone(), Box::new(move |x| forward(&variables, x)))
    });
}

type Forward = Box<dyn Fn(&Tensor) -> tf::Result<Tensor>>;

/// Like [`follow`]: `make` returns the trainable variables and the model, from the initial values.
fn follow_from(
    model: &str,
    names: &[&str],
    make: impl FnOnce(Vec<Variable>) -> (Vec<Variable>, Forward),
) {
    let data = mnist();
    let dir = beside("mnist_trajectory");
    let tensors = read_safetensors(&dir.join(format!("{model}.safetensors")));
    let json = read_json(&dir.join(format!("{model}.json")));
    let series = |key: &str| -> Vec<f64> {
        json[key].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    // Rounding errors grow so fast that TensorFlow's own f32 run differs from its f64 run by up to 1.7e-3 (cnn) in these 20
    // steps; a good f32 run stays near the f64 run.
    let (want, rough) = (series("losses_f64"), series("losses_f32"));
    let batches = tensors["batch_indices"].i32();
    let (variables, forward) = make(start(&tensors, names));
    let adam = Adam::new(1e-3);
    let mut losses = Vec::new();
    for row in batches.outer_iter() {
        let indices: Vec<usize> = row.iter().map(|&i| i as usize).collect();
        let (x, y) = data.train.tensors(&indices).unwrap();
        let tape = tf::GradientTape::new();
        let logits = forward(&x).unwrap();
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
        let loss = loss.reduce_mean(()).unwrap();
        let grads = tape.gradient(&loss, &variables).unwrap();
        adam.apply_gradients(&grads, &variables).unwrap();
        losses.push(loss);
    }
    let losses: Vec<f64> = losses.iter().map(|l| l.item::<f32>().unwrap().into()).collect();
    let worst = |from: &[f64]| {
        let relative = losses.iter().zip(from).map(|(got, want)| ((got - want) / want).abs());
        relative.fold(0.0, f64::max)
    };
    println!(
        "{model}: the largest relative difference is {:.1e} from TensorFlow in f64, {:.1e} from TensorFlow in f32",
        worst(&want),
        worst(&rough)
    );
    assert_eq!(losses.len(), 20);
    assert!(worst(&want) < 1e-3, "{model}: {losses:?}\nTensorFlow: {want:?}");
    for (got, want) in losses.iter().zip(&rough).take(3) {
        assert!((got - want).abs() < 1e-5 * want, "{model}: the first steps: {got} and {want}");
    }
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn the_mlp_follows_tensorflow() {
    follow("mlp", &["w1", "b1", "w2", "b2"], mlp);
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn the_cnn_follows_tensorflow() {
    follow("cnn", &["k1", "c1", "k2", "c2", "w3", "b3", "w4", "b4"], cnn);
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn the_cnn_with_an_lstm_follows_tensorflow() {
    let names = ["k1", "c1", "k2", "c2", "wx", "wh", "b", "w4", "b4"];
    follow_from("cnn_lstm", &names, |start| {
        let model = cnn_lstm();
        model.build([1, 28, 28, 1]).unwrap();
        let variables = model.variables();
        assert_eq!(variables.len(), start.len());
        for (variable, value) in variables.iter().zip(&start) {
            variable.assign(value.read()).unwrap();
        }
        (variables, Box::new(move |x| model.call(x, TRAINING)))
    });
}

/// Trains `model` for `steps` batches of 50 and returns the mean loss of the last 20.
fn train(data: &Mnist, model: &Sequential, steps: usize, seed: u64) -> f32 {
    tf::random::set_seed(seed);
    let order = tf::random::global().permutation(data.train.len()).unwrap();
    let adam = Adam::new(1e-3);
    let mut losses = Vec::new();
    for batch in order.chunks(50).map(|places| data.train.tensors(places)).take(steps) {
        let (x, y) = batch.unwrap();
        let tape = tf::GradientTape::new();
        let logits = model.call(&x, TRAINING).unwrap();
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
        let loss = loss.reduce_mean(()).unwrap();
        let variables = model.trainable_variables();
        let grads = tape.gradient(&loss, &variables).unwrap();
        adam.apply_gradients(&grads, &variables).unwrap();
        losses.push(loss);
        if losses.len() > 20 {
            losses.remove(0);
        }
    }
    losses.iter().map(|l| l.item::<f32>().unwrap()).sum::<f32>() / losses.len() as f32
}

fn accuracy(data: &Mnist, model: &Sequential, count: usize) -> f64 {
    let mut right = 0;
    let images = Dataset::from_tensor_slices(data.test.clone()).unwrap().take(count);
    for batch in &images.batch(500).to_tensors() {
        let (x, y) = batch.unwrap();
        let x = x.cast(tf::DType::F32).unwrap() / 255.0;
        let guess = model.call(&x, INFERENCE).unwrap().argmax(-1).unwrap();
        let hits = guess.equal(&y).unwrap().cast(tf::DType::I32).unwrap();
        right += hits.reduce_sum(()).unwrap().item::<i32>().unwrap();
    }
    f64::from(right) / count as f64
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn an_epoch_of_the_mlp_is_as_accurate_as_tensorflows() {
    let data = mnist();
    let reference = read_json(&beside("mnist_reference.json"));
    let least = reference["models"]["mlp"]["test_accuracy_min"].as_f64().unwrap();
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    train(&data, &model, 1200, 1);
    let accuracy = accuracy(&data, &model, 10_000);
    println!("test accuracy {accuracy} (TensorFlow's lowest of three: {least})");
    // Seeds differ by half a percent.
    assert!(accuracy > least - 0.005, "{accuracy} against {least}");
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn fit_is_as_accurate_as_tensorflows() {
    let data = mnist();
    let reference = read_json(&beside("mnist_reference.json"));
    let least = reference["models"]["mlp"]["test_accuracy_min"].as_f64().unwrap();
    tf::random::set_seed(1);
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile("adam", loss, CompileOptions::new().metrics(["accuracy"])).unwrap();
    let options = FitOptions::new().batch_size(50).validation_data(&data.test);
    let history = model.fit(&data.train, options).unwrap();
    let measured = history.get("val_accuracy").unwrap()[0];
    println!("test accuracy {measured} (TensorFlow's lowest of three: {least})");
    // Seeds differ by half a percent.
    assert!(measured > least - 0.005, "{measured} against {least}");
    // A manual loop measures the same accuracy.
    assert!((accuracy(&data, &model, 10_000) - measured).abs() < 1e-6);
}

/// A network trained on the drawn digits recognizes the real ones.
#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn drawn_digits_teach_real_ones() {
    let real = mnist();
    let drawn = Mnist {
        train: draw_digits(60_000, 1),
        test: draw_digits(10_000, 2),
        source: Source::Drawn { seed: 1 },
    };
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    train(&drawn, &model, 1200, 1);
    let (on_drawn, on_real) = (accuracy(&drawn, &model, 10_000), accuracy(&real, &model, 10_000));
    println!("an MLP trained on drawn digits reads {on_drawn} of drawn and {on_real} of real ones");
    assert!(on_drawn > 0.88, "{on_drawn}");
    assert!(on_real > 0.85, "{on_real}");
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn the_cnn_learns_as_tensorflows_does() {
    let data = mnist();
    let reference = read_json(&beside("mnist_reference.json"));
    let run = &reference["models"]["cnn"]["runs"][0];
    let mean_100 = run["loss_mean_each_100"][0].as_f64().unwrap();
    let model = Sequential::new()
        .add(Conv2D::new(32, [5, 5]).padding(Padding::Same).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Conv2D::new(64, [5, 5]).padding(Padding::Same).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(1024).activation(Activation::Relu))
        .add(Dense::new(10));
    let loss = train(&data, &model, 60, 2);
    let accuracy = accuracy(&data, &model, 1000);
    println!(
        "after 60 steps: loss {loss}, accuracy {accuracy}; TensorFlow's mean loss over 100: {mean_100}"
    );
    // The mean of steps 41 to 60 is below TensorFlow's mean of steps 1 to 100.
    assert!(f64::from(loss) < mean_100, "{loss} against {mean_100}");
    assert!(accuracy > 0.85, "{accuracy}");
}

#[test]
#[ignore = "needs the real MNIST: set MNIST_DIR"]
fn fit_teaches_the_cnn_with_an_lstm_as_tensorflow_learns() {
    let data = mnist();
    let reference = read_json(&beside("mnist_reference.json"));
    let runs = reference["models"]["cnn_lstm"]["runs"].as_array().unwrap();
    let of_runs = runs.iter().map(|run| run["loss_mean_each_100"][0].as_f64().unwrap());
    let (least, most) = of_runs.fold((f64::MAX, 0f64), |(a, b), x| (a.min(x), b.max(x)));
    tf::random::set_seed(1);
    let model = cnn_lstm();
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(1e-3), loss, CompileOptions::new().metrics(["accuracy"])).unwrap();
    let options = FitOptions::new().batch_size(50).steps_per_epoch(100);
    let history = model.fit(&data.train, options.verbose(Verbose::Silent)).unwrap();
    let mean = history.get("loss").unwrap()[0];
    println!("the mean loss of 100 steps is {mean}, TensorFlow's of three seeds {least} to {most}");
    // Seeds differ by more than a tenth.
    assert!(mean < 1.25 * most && mean > 0.75 * least, "{mean}: {least} to {most}");
}
