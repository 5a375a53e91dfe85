//! Class weights, sample weights and a validation split, compared with Keras's numbers.

use ndarray::Array2;
use wgrad::Trackable;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::Sgd;
use wgrad::keras::{CompileOptions, FitOptions, History, Model, Sequential};

use super::{accuracy, all_near, alone, loss, series};

// Keras 3.15.1:
// x = np.arange(12).reshape(6, 2) / 10; y = [0, 1, 2, 0, 1, 2]; model = Sequential([Dense(3,
// kernel_initializer="ones", bias_initializer="zeros")]), whose kernel is then set to [[.1, .2, .3], [.3, .2, .4]];
// compile(SGD(0.5), SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
// weighted_metrics=["accuracy"]); fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, ...)
fn as_keras(weights: Option<Vec<f32>>, options: FitOptions<'_>) -> (History, Vec<f32>) {
    let x = Array2::from_shape_fn((6, 2), |(i, j)| (2 * i + j) as f32 / 10.0);
    let y = vec![0, 1, 2, 0, 1, 2];
    let model = Sequential::new().add(Dense::new(3));
    model.build([1, 2]).unwrap();
    let kernel = ndarray::arr2(&[[0.1f32, 0.2, 0.3], [0.3, 0.2, 0.4]]).into_dyn();
    model.set_weights(&[kernel, ndarray::arr1(&[0.0f32; 3]).into_dyn()]).unwrap();
    let metrics = CompileOptions::new().metrics(accuracy()).weighted_metrics(accuracy());
    model.compile(Sgd::new(0.5), loss(), metrics).unwrap();
    let options = options.batch_size(4).epochs(2).shuffle(false);
    let history = match weights {
        Some(weights) => model.fit((&x, &y, &weights), options).unwrap(),
        None => model.fit((&x, &y), options).unwrap(),
    };
    let kernel = model.get_weights().unwrap()[0].iter().copied().collect();
    (history, kernel)
}

#[test]
fn class_and_sample_weights_are_kerass() {
    let _alone = alone();
    let weights = vec![1.0, 0.5, 2.0, 0.0, 3.0, 1.5];
    let (history, kernel) = as_keras(Some(weights), FitOptions::new());
    all_near(&series(&history, "loss"), &KERAS_SAMPLE.0, "loss");
    all_near(&series(&history, "accuracy"), &KERAS_SAMPLE.1, "accuracy");
    all_near(&series(&history, "weighted_accuracy"), &KERAS_SAMPLE.2, "weighted_accuracy");
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &KERAS_SAMPLE.3, "kernel");

    let class_weight = [(0, 2.0), (2, 0.25)];
    let (history, kernel) = as_keras(None, FitOptions::new().class_weight(class_weight));
    all_near(&series(&history, "loss"), &KERAS_CLASS.0, "loss");
    all_near(&series(&history, "accuracy"), &KERAS_CLASS.1, "accuracy");
    all_near(&series(&history, "weighted_accuracy"), &KERAS_CLASS.2, "weighted_accuracy");
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &KERAS_CLASS.3, "kernel");
}

/// `loss`, `accuracy`, `weighted_accuracy` of two epochs, and the kernel after them.
type Reference = ([f64; 2], [f64; 2], [f64; 2], [f64; 6]);

// ..., sample_weight=[1, .5, 2, 0, 3, 1.5]
const KERAS_SAMPLE: Reference = (
    [1.4667123556137085, 1.2957361936569214],
    [0.3333333432674408, 0.3333333432674408],
    [0.4375, 0.4375],
    [
        -0.3164020776748657,
        0.5681357383728027,
        0.3482663631439209,
        -0.15541625022888184,
        0.6059059500694275,
        0.4495103061199188,
    ],
);

// ..., class_weight={0: 2.0, 2: 0.25}
const KERAS_CLASS: Reference = (
    [1.2672702074050903, 1.1652776002883911],
    [0.1666666716337204, 0.3333333432674408],
    [0.03846153989434242, 0.4615384638309479],
    [
        0.0225507915019989,
        0.3748003840446472,
        0.2026488482952118,
        0.24744153022766113,
        0.3871164917945862,
        0.26544198393821716,
    ],
);

#[test]
fn a_validation_split_is_kerass() {
    let _alone = alone();
    // ..., validation_split=0.4
    let (history, kernel) = as_keras(None, FitOptions::new().validation_split(0.4));
    all_near(&series(&history, "loss"), &[1.0795235633850098, 1.0715919733047485], "loss");
    all_near(&series(&history, "val_loss"), &[1.082688331604004, 1.0804377794265747], "val_loss");
    for name in ["accuracy", "weighted_accuracy", "val_accuracy", "val_weighted_accuracy"] {
        all_near(&series(&history, name), &[0.3333333432674408, 0.3333333432674408], name);
    }
    let want = [
        0.036310065537691116,
        0.20274381339550018,
        0.3609461188316345,
        0.23720107972621918,
        0.20366372168064117,
        0.4591352045536041,
    ];
    all_near(&kernel.iter().map(|&w| w.into()).collect::<Vec<_>>(), &want, "kernel");
}
