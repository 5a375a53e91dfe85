//! Keras's losses beyond TensorFlow's golden cases: options, weights, masks, reductions, edges and their gradients.
//!
//! The expected numbers are Keras 3.15.1's for the same inputs, which are fractions that `f32` represents exactly.

#![allow(clippy::unwrap_used)]

use crate::support::numbers;

use std::sync::Arc;

use crate::support::compare::close;
use numbers::{hot, labels, logits, ones, shares, weights};
use wgrad::keras::losses::{
    self, BinaryCrossentropy, BinaryFocalCrossentropy, CategoricalCrossentropy,
    CategoricalFocalCrossentropy, CategoricalGeneralizedCrossEntropy, Circle, CosineSimilarity,
    Dice, Hinge, Huber, Loss, MeanAbsoluteError, MeanSquaredError, Reduction,
    SparseCategoricalCrossentropy, Tversky,
};
use wgrad::{DType, GradientTape, Tensor, constant};

const NONE: Reduction = Reduction::None;
const REDUCTIONS: [Reduction; 5] = [
    Reduction::SumOverBatchSize,
    Reduction::Sum,
    Reduction::Mean,
    Reduction::MeanWithSampleWeight,
    Reduction::None,
];

#[track_caller]
fn check(loss: &dyn Loss, y_true: &Tensor, y_pred: &Tensor, want: &[f32]) {
    close(&loss.call(y_true, y_pred).unwrap(), want);
}

#[test]
fn options_are_keras_options() {
    let (t, u, z) = (ones(&[3, 4]), shares(&[3, 4]), logits(&[3, 4]));
    let bce = BinaryCrossentropy::new().reduction(NONE);
    check(&bce.label_smoothing(0.2), &t, &u, &[1.201303, 1.1275371, 1.0722287]);
    let of_logits = bce.from_logits(true).label_smoothing(0.2);
    check(&of_logits, &t, &z, &[1.6713295, 1.3609266, 1.1573602]);
    check(&bce.axis(0), &t, &u, &[0.3593414, 1.5429622, 1.7326733, 1.0821687]);

    let focal = BinaryFocalCrossentropy::new().reduction(NONE);
    let balanced = focal.apply_class_balancing(true).alpha(0.3).gamma(1.5);
    check(&balanced, &t, &u, &[0.5633343, 0.3240836, 0.5340082]);
    let of_logits = focal.from_logits(true).label_smoothing(0.1).gamma(1.0);
    check(&of_logits, &t, &z, &[1.4428906, 1.1033822, 0.9022884]);

    let cce = CategoricalCrossentropy::new().reduction(NONE);
    let first = hot(3, &[2, 2]).transpose([0, 2, 1]).unwrap();
    let want = [1.7452394, 0.6400374, 0.9195641, 1.6376088];
    check(&cce.axis(1), &first, &shares(&[2, 3, 2]), &want);
    let smooth = cce.from_logits(true).label_smoothing(0.3);
    check(&smooth, &hot(4, &[3]), &z, &[1.142935, 0.9793248, 4.216825]);

    let focal = CategoricalFocalCrossentropy::new().reduction(NONE);
    check(&focal, &hot(4, &[3]), &u, &[0.0728259, 0.0582641, 0.3609973]);
    let of_logits = focal.from_logits(true).alpha(0.4).gamma(1.5).label_smoothing(0.1);
    check(&of_logits, &hot(4, &[3]), &z, &[0.1305827, 0.1075227, 1.8430979]);

    let general = CategoricalGeneralizedCrossEntropy::new().q(0.7).reduction(NONE);
    check(&general, &labels(4, &[3]), &u, &[0.095125, 0.3825884, 0.7095798]);
    let cosine = CosineSimilarity::new().axis(0).reduction(NONE);
    check(&cosine, &u, &z, &[-0.4111126, -0.2594981, -0.772486, -0.608463]);
    let huber = Huber::new().delta(0.25).reduction(NONE);
    check(&huber, &shares(&[4]), &ones(&[4, 1]), &[0.0147705, 0.15625, 0.1367188, 0.1953125]);

    let hinge = Hinge::new().reduction(NONE);
    let signs = t.multiply(2.0).unwrap().subtract(1.0).unwrap();
    for truth in [&t, &signs] {
        check(&hinge, truth, &z, &[2.40625, 1.875, 1.34375]);
    }
}

#[test]
fn regions_and_embeddings() {
    let (t, u) = (ones(&[2, 3, 2]), shares(&[2, 3, 2]));
    check(&Dice::new(), &t, &u, &[0.6636086]);
    let apart = Dice::new().axis([1, 2]).reduction(NONE);
    check(&apart, &t, &u, &[0.833887, 0.5184136]);
    // A loss of the whole batch is weighted once for each weight.
    let weighted = Dice::new().call_weighted(&t, &u, Some(&weights(&[4]))).unwrap();
    close(&weighted, &[0.2903287]);
    let tversky = Tversky::new().alpha(0.3).beta(0.7).axis([1, 2]).reduction(NONE);
    check(&tversky, &t, &u, &[0.8432602, 0.5661051]);

    let x = logits(&[6, 3]).add(0.125).unwrap();
    let length = x.square().unwrap().reduce_sum(wgrad::Axes::from(-1).keepdims(true)).unwrap();
    let x = x.divide(length.sqrt().unwrap()).unwrap();
    let (y, circle) = (labels(3, &[6]), Circle::new().gamma(10.0));
    let want = [7.150642, 21.623169, 16.398537, 1.2921697, 21.469723, 23.262123];
    check(&circle.reduction(NONE), &y, &x, &want);
    check(&circle, &y, &x, &[15.199394]);
    let want = [57.19538, 172.98264, 122.54288, 4.6230946, 171.74301, 186.0943];
    check(&Circle::new().remove_diagonal(false).reduction(NONE), &y, &x, &want);
}

#[test]
fn weights_masks_and_reductions() {
    let weighted: [&[f32]; 5] = [
        &[0.2376149],
        &[1.4256897],
        &[0.2376149],
        &[1.1405518],
        &[0.1165466, 0.0982361, 0.0818787, 0.43396, 0.3841553, 0.3109131],
    ];
    let columns: [&[f32]; 5] = [
        &[0.2244161],
        &[0.6732483],
        &[0.2244161],
        &[0.3847133],
        &[0.1165466, 0.3929443, 0.1637573],
    ];
    let masked: [&[f32]; 5] = [
        &[0.4144287],
        &[1.2432861],
        &[0.4144287],
        &[0.4144287],
        &[0.4661865, 0.3929443, 0.0, 0.0, 0.3841553, 0.0],
    ];
    let both: [&[f32]; 5] = [
        &[0.2658691],
        &[0.7976074],
        &[0.2658691],
        &[0.3988037],
        &[0.1165466, 0.3929443, 0.0, 0.0, 0.2881165, 0.0],
    ];
    let ignored: [&[f32]; 5] = [
        &[1.6281598],
        &[6.512639],
        &[1.6281598],
        &[1.6281598],
        &[0.8668107, 0.7862376, 0.0, 2.858111, 2.00148],
    ];
    let ignored_weighted: [&[f32]; 5] = [
        &[0.7741068],
        &[3.0964272],
        &[0.7741068],
        &[1.5482136],
        &[0.0654212, 0.2855748, 0.0, 0.0, 2.7454312],
    ];
    let (u, t) = (shares(&[2, 3, 4]), ones(&[2, 3, 4]));
    let mask = constant([[true, true, false], [false, true, false]]).unwrap();
    for (at, reduction) in REDUCTIONS.into_iter().enumerate() {
        let mse = MeanSquaredError::new().reduction(reduction);
        let y = mse.call_weighted(&u, &t, Some(&weights(&[2, 1]))).unwrap();
        close(&y, weighted[at]);
        let (rows, truth) = (shares(&[3, 4]), ones(&[3, 4]));
        let y = mse.call_weighted(&rows, &truth, Some(&weights(&[3, 1]))).unwrap();
        close(&y, columns[at]);
        close(&mse.call_masked(&u, &t, None, Some(&mask)).unwrap(), masked[at]);
        let y = mse.call_masked(&u, &t, Some(&weights(&[2, 3])), Some(&mask)).unwrap();
        close(&y, both[at]);
        let scce = SparseCategoricalCrossentropy::new().ignore_class(1).reduction(reduction);
        close(&scce.call(&labels(4, &[5]), &shares(&[5, 4])).unwrap(), ignored[at]);
        let y = scce.from_logits(true);
        let y = y.call_weighted(&labels(4, &[5]), &logits(&[5, 4]), Some(&weights(&[5])));
        close(&y.unwrap(), ignored_weighted[at]);
    }
    // As in Keras: a column of weights makes a column of losses without a reduction.
    let column = MeanSquaredError::new().reduction(NONE);
    let column = column.call_weighted(&shares(&[3, 4]), &ones(&[3, 4]), Some(&weights(&[3, 1])));
    assert_eq!(column.unwrap().shape(), [3, 1]);
}

#[test]
fn nothing_costs_nothing() {
    let (none, t) = (Tensor::zeros([0, 4]).unwrap(), Tensor::zeros([0, 4]).unwrap());
    for reduction in REDUCTIONS {
        let loss = MeanSquaredError::new().reduction(reduction).call(&t, &none).unwrap();
        let want: &[usize] = if reduction == NONE { &[0] } else { &[] };
        assert_eq!(loss.shape(), want);
        assert!(loss.to_vec::<f32>().unwrap().iter().all(|v| *v == 0.0), "{reduction:?}");
    }
    // A mask that excludes everything.
    let mask = constant([false, false, false]).unwrap();
    let mse = MeanSquaredError::new();
    let y = mse.call_masked(&shares(&[3, 4]), &ones(&[3, 4]), None, Some(&mask)).unwrap();
    assert_eq!(y.item::<f32>().unwrap(), 0.0);
    let ignoring = SparseCategoricalCrossentropy::new().ignore_class(2);
    let y = ignoring.call(&constant([2, 2]).unwrap(), &shares(&[2, 4])).unwrap();
    assert_eq!(y.item::<f32>().unwrap(), 0.0);
}

#[test]
fn labels_out_of_range_give_nan() {
    let y = labels(4, &[3]).add(2).unwrap(); // 5, 4, 3
    for loss in [
        &SparseCategoricalCrossentropy::new().reduction(NONE) as &dyn Loss,
        &SparseCategoricalCrossentropy::new().from_logits(true).reduction(NONE),
        &CategoricalGeneralizedCrossEntropy::new().reduction(NONE),
    ] {
        let found = loss.call(&y, &shares(&[3, 4])).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(found.map_nan(), [true, true, false], "{}: {found:?}", loss.name());
    }
}

trait MapNan {
    fn map_nan(&self) -> Vec<bool>;
}

impl MapNan for Vec<f32> {
    fn map_nan(&self) -> Vec<bool> {
        self.iter().map(|v| v.is_nan()).collect()
    }
}

#[test]
fn half_predictions_are_summed_in_single() {
    // In f16 the square of 300 would be infinite.
    let y_pred = match constant([[300.0, 0.0]]).unwrap().cast(DType::F16) {
        Ok(y_pred) => y_pred,
        Err(error) => return assert!(error.to_string().contains("has no f16"), "{error}"),
    };
    let loss = MeanSquaredError::new().call(&constant([[0.0, 0.0]]).unwrap(), &y_pred).unwrap();
    assert_eq!((loss.dtype(), loss.item::<f32>().unwrap()), (DType::F32, 45_000.0));
    let tape = GradientTape::new();
    tape.watch(&y_pred).unwrap();
    let loss = MeanSquaredError::new().call(&constant([[0.0, 0.0]]).unwrap(), &y_pred).unwrap();
    assert_eq!(tape.gradient(&loss, &y_pred).unwrap().unwrap().dtype(), DType::F16);
}

// ---- gradients ------------------------------------------------------------------------------------------------

/// The loss and its gradient with respect to the predictions.
fn slope(loss: &dyn Loss, y_true: &Tensor, y_pred: &Tensor) -> (f32, Vec<f32>) {
    let tape = GradientTape::new();
    tape.watch(y_pred).unwrap();
    let y = loss.call(y_true, y_pred).unwrap();
    let slope = tape.gradient(&y, y_pred).unwrap().unwrap();
    (y.item().unwrap(), slope.to_vec().unwrap())
}

const PLAIN: [&str; 19] = [
    "bce",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "cosine_similarity",
    "dice",
    "hinge",
    "huber",
    "kld",
    "log_cosh",
    "mae",
    "mape",
    "mse",
    "msle",
    "poisson",
    "squared_hinge",
    "tversky",
    "BinaryCrossentropy",
];

#[test]
fn gradients_are_differences() {
    let (y_true, y_pred) =
        (ones(&[2, 3]), shares(&[2, 3]).multiply(0.7).unwrap().add(0.11).unwrap());
    let start = y_pred.to_vec::<f32>().unwrap();
    for name in PLAIN {
        let loss = losses::get(name).unwrap();
        // With a target of 0 the percentage is about 10^8, and rounding hides its differences.
        let y_true = if name == "mape" { y_true.add(0.5).unwrap() } else { y_true.clone() };
        let (_, slopes) = slope(&*loss, &y_true, &y_pred);
        for (at, slope) in slopes.iter().enumerate() {
            // The losses are smooth over this step, and rounding is a thousandth of it.
            let h = 1.0 / 256.0;
            let value = |by: f32| {
                let mut moved = start.clone();
                moved[at] += by;
                let moved = Tensor::from_slice(&moved, [2, 3]).unwrap();
                f64::from(loss.call(&y_true, &moved).unwrap().item::<f32>().unwrap())
            };
            let difference = (value(h) - value(-h)) / f64::from(2.0 * h);
            let off = (difference - f64::from(*slope)).abs();
            assert!(
                off <= 5e-3 * (1.0 + difference.abs()),
                "{name} {at}: {slope} and {difference}"
            );
        }
    }
}

#[test]
fn no_edge_has_a_gradient_of_nan() {
    let edges =
        constant([[0.0, 1.0, 0.0, 0.5], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]).unwrap();
    let sure =
        constant([[1.0, 0.0, 0.0, 0.5], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]).unwrap();
    for name in PLAIN {
        let loss = losses::get(name).unwrap();
        let (value, slopes) = slope(&*loss, &edges, &sure);
        // Scaling a row of zeros to the sum 1 is 0 / 0, in Keras too.
        if name.starts_with("categorical_") && name.ends_with("crossentropy") {
            assert!(slopes[..8].iter().all(|v| v.is_finite()), "{name}: {slopes:?}");
            continue;
        }
        assert!(
            value.is_finite() && slopes.iter().all(|v| v.is_finite()),
            "{name}: {value} {slopes:?}"
        );
    }
    let large =
        constant([[1e4, -1e4, 0.0, 3e38], [-1e4, 1e4, 0.0, 0.0], [88.0, -88.0, 0.0, 0.0]]).unwrap();
    for loss in [
        &BinaryCrossentropy::new().from_logits(true) as &dyn Loss,
        &BinaryFocalCrossentropy::new().from_logits(true),
        &CategoricalCrossentropy::new().from_logits(true),
        &CategoricalFocalCrossentropy::new().from_logits(true),
    ] {
        let (_, slopes) = slope(loss, &hot(4, &[3]), &large);
        assert!(slopes.iter().all(|v| v.is_finite()), "{}: {slopes:?}", loss.name());
    }
    let logits = SparseCategoricalCrossentropy::new().from_logits(true);
    assert!(slope(&logits, &labels(4, &[3]), &large).1.iter().all(|v| v.is_finite()));
    // Powers of 0 and 1 for confident predictions.
    for gamma in [0.0, 1.0, 2.0, 3.5] {
        let focal = BinaryFocalCrossentropy::new().gamma(gamma);
        let (value, slopes) =
            slope(&focal, &constant([[1.0, 0.0]]).unwrap(), &constant([[1.0, 0.0]]).unwrap());
        assert!(value.abs() < 1e-6 && slopes.iter().all(|v| v.is_finite()), "{gamma}: {slopes:?}");
    }
    // All labels differ, all are equal, and one differs.
    for y in [[0, 1, 2], [1, 1, 1], [0, 0, 1]] {
        let (value, slopes) = slope(&Circle::new(), &constant(y).unwrap(), &hot(4, &[3]));
        assert!(
            value.is_finite() && slopes.iter().all(|v| v.is_finite()),
            "{y:?}: {value} {slopes:?}"
        );
    }
    // A predicted probability of 0 has an infinite slope, and those of the others stay 0.
    let general = CategoricalGeneralizedCrossEntropy::new();
    let (_, slopes) = slope(&general, &constant([0]).unwrap(), &constant([[0.0, 1.0]]).unwrap());
    assert_eq!((slopes[0], slopes[1]), (f32::NEG_INFINITY, 0.0));
    // Where target and prediction are equal, the absolute error is flat.
    let (_, slopes) = slope(&MeanAbsoluteError::new(), &ones(&[2, 2]), &ones(&[2, 2]));
    assert_eq!(slopes, [0.0; 4]);
}

// ---- what a loss may be -------------------------------------------------------------------------------------------

fn largest_error(y_true: &Tensor, y_pred: &Tensor) -> wgrad::Result<Tensor> {
    y_pred.subtract(y_true)?.abs()?.reduce_max(-1)
}

#[test]
fn functions_closures_and_pointers_are_losses() {
    fn name_of(loss: impl Loss) -> String {
        loss.name().to_string()
    }
    let (t, u) = (ones(&[3, 4]), shares(&[3, 4]));
    let want = Loss::call(&largest_error, &t, &u).unwrap().item::<f32>().unwrap();
    let scale = 2.0;
    let closure =
        move |y_true: &Tensor, y_pred: &Tensor| largest_error(y_true, y_pred)?.multiply(scale);
    check(&closure, &t, &u, &[2.0 * want]);
    assert_eq!((name_of(largest_error), name_of(closure)), ("largest_error".into(), "loss".into()));
    let boxed: Box<dyn Loss> = Box::new(MeanSquaredError::new().reduction(Reduction::Sum));
    let shared: Arc<dyn Loss> = Arc::new(MeanSquaredError::new());
    assert_eq!(name_of(&*boxed), "mean_squared_error");
    assert_eq!((boxed.reduction(), shared.reduction()), (Reduction::Sum, Reduction::default()));
    assert_eq!(
        (name_of(boxed), name_of(shared)),
        ("mean_squared_error".into(), "mean_squared_error".into())
    );
}

/// A loss with a custom reduction of the batch: the largest of its losses.
struct Worst;

impl Loss for Worst {
    fn name(&self) -> &str {
        "worst"
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> wgrad::Result<Tensor> {
        largest_error(y_true, y_pred)
    }

    fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> wgrad::Result<Tensor> {
        self.losses(y_true, y_pred)?.reduce_max(())
    }
}

#[test]
fn a_pointer_to_a_loss_calls_what_the_loss_has() {
    let (t, u) = (ones(&[3, 4]), shares(&[3, 4]));
    let want = Worst.call(&t, &u).unwrap().item::<f32>().unwrap();
    let boxed: Box<dyn Loss> = Box::new(Worst);
    let borrowed: &dyn Loss = &Worst;
    for loss in [&boxed as &dyn Loss, &borrowed, &Arc::new(Worst)] {
        check(loss, &t, &u, &[want]);
    }
}

#[test]
fn a_step_with_weights_and_masks_settles() {
    let device = wgrad::Device::new().unwrap();
    device.scope(|| {
        let v = wgrad::Variable::new(shares(&[4, 5]));
        let loss = SparseCategoricalCrossentropy::new().from_logits(true).ignore_class(1);
        let batches: Vec<(Tensor, Tensor)> = (0..2)
            .map(|i| {
                (
                    labels(5, &[4 + i]).slice(&[i], &[4]).unwrap(),
                    weights(&[4 + i]).slice(&[i], &[4]).unwrap(),
                )
            })
            .collect();
        device.flush().unwrap();
        let step = |i: usize| {
            let (y, weight) = &batches[i % 2];
            let tape = GradientTape::new();
            let loss = loss.call_weighted(y, &v.read(), Some(weight)).unwrap();
            let slope = tape.gradient(&loss, &v).unwrap().unwrap();
            v.assign_sub(slope.multiply(0.1).unwrap()).unwrap();
            device.flush().unwrap();
        };
        (0..3).for_each(step);
        let before = device.stats();
        (3..20).for_each(step);
        let after = device.stats();
        assert_eq!((after.plan_misses, after.pipelines), (before.plan_misses, before.pipelines));
        assert_eq!((after.buffers, after.reads), (before.buffers, before.reads));
    });
}
