//! Keras's metrics beyond TensorFlow's golden cases: options, weights, long runs, failed steps, checkpoints.
//!
//! The expected numbers are Keras 3.15.1's for the same inputs, which are fractions that `f32` represents exactly.

#![allow(clippy::unwrap_used)]

use crate::support::numbers;

use std::sync::Arc;

use crate::support::compare::close;
use numbers::{hot, labels, logits, ones, shares, weights};
use wgrad::keras::losses;
use wgrad::keras::metrics::{
    self, Accuracy, Auc, Average, BinaryAccuracy, BinaryIou, ClassAggregation,
    ConcordanceCorrelation, Curve, F1Score, FBetaScore, FalseNegatives, Iou, LogCoshError, Mean,
    MeanIou, MeanMetricWrapper, MeanRelativeError, Metric, OneHotIou, OneHotMeanIou,
    PearsonCorrelation, Precision, PrecisionAtRecall, R2Score, Recall, RecallAtPrecision,
    RootMeanSquaredError, SensitivityAtSpecificity, SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy, SparseTopKCategoricalAccuracy, SpecificityAtSensitivity, Sum,
    SummationMethod, TopKCategoricalAccuracy, TrueNegatives,
};
use wgrad::{DType, Device, GradientTape, Tensor, Trackable, constant};

/// Targets, predictions and weights.
type Batch = (Tensor, Tensor, Option<Tensor>);

fn batch(y_true: Tensor, y_pred: Tensor) -> Batch {
    (y_true, y_pred, None)
}

fn reversed(x: Tensor) -> Tensor {
    x.reverse([0]).unwrap()
}

#[track_caller]
fn check(metric: impl Metric, batches: &[Batch], want: &[f32]) {
    for (y_true, y_pred, weight) in batches {
        metric.update(y_true, y_pred, weight.as_ref()).unwrap();
    }
    close(&metric.result().unwrap(), want);
    metric.reset_state().unwrap();
    assert!(
        metric.variables().iter().all(|v| v
            .read()
            .to_vec::<f32>()
            .unwrap()
            .iter()
            .all(|v| *v == 0.0))
    );
}

/// A list without weights, and one with.
fn lists() -> [Batch; 2] {
    [batch(ones(&[8]), shares(&[8])), (reversed(ones(&[6])), shares(&[6]), Some(weights(&[6])))]
}

/// Rows of four classes, without weights and with.
fn rows() -> [Batch; 2] {
    let second = (reversed(ones(&[3, 4])), shares(&[3, 4]), Some(weights(&[3])));
    [batch(ones(&[5, 4]), shares(&[5, 4])), second]
}

#[test]
fn precision_and_recall_at_thresholds_of_classes_and_of_the_largest() {
    let (lists, rows) = (lists(), rows());
    let even = [0.0, 0.5, 1.0];
    check(Precision::default().thresholds([0.25, 0.7]), &lists, &[0.137931, 0.0]);
    check(Precision::default().thresholds(even), &lists, &[0.2093023, 0.0, 0.0]);
    check(Precision::default().top_k(2), &rows, &[0.1296296]);
    check(Precision::default().top_k(2).thresholds(0.8), &rows, &[0.2]);
    check(Precision::default().class_id(1), &rows, &[0.0]);
    check(Precision::default(), &rows, &[0.2291667]);
    check(Recall::default().thresholds([0.25, 0.7]), &lists, &[0.4444444, 0.0]);
    check(Recall::default().thresholds(even), &lists, &[1.0, 0.0, 0.0]);
    check(Recall::default().top_k(2), &rows, &[0.21875]);
    check(Recall::default().top_k(2).thresholds(0.8), &rows, &[0.09375]);
    check(Recall::default(), &rows, &[0.34375]);
    check(TrueNegatives::default().thresholds([0.25, 0.7]), &lists, &[2.25, 5.5]);
    check(FalseNegatives::default().thresholds(even), &lists, &[0.0, 2.25, 2.25]);
}

#[test]
fn areas_under_curves() {
    use SummationMethod::{Interpolation, Majoring, Minoring};
    let (lists, rows) = (lists(), rows());
    for (curve, wants) in [
        (Curve::Roc, [0.1470588, 0.1732026, 0.120915]),
        (Curve::Pr, [0.1235492, 0.1689458, 0.0719476]),
        (Curve::PrGain, [-0.0627163, 0.5801297, -0.7055624]),
    ] {
        for (method, want) in [Interpolation, Majoring, Minoring].into_iter().zip(wants) {
            let auc = Auc::default().num_thresholds(20).curve(curve).summation_method(method);
            check(auc, &lists, &[want]);
        }
    }
    check(Auc::default().thresholds(vec![0.1, 0.5, 0.3]), &lists, &[0.1993464]);
    let of_logits = [batch(ones(&[8]), logits(&[8]))];
    check(Auc::default().from_logits(true), &of_logits, &[0.1666667]);
    let labels = constant([1.0, 0.5, 0.0, 2.0]).unwrap();
    let small = || Auc::default().num_thresholds(11);
    let multi = || small().multi_label(true);
    check(multi(), &rows[..1], &[0.375]);
    check(multi().label_weights(labels.clone()), &rows[..1], &[0.5714286]);
    let curve = multi().label_weights(labels.clone()).curve(Curve::Pr);
    check(curve, &rows[..1], &[0.4271487]);
    check(small().label_weights(labels), &rows[..1], &[0.4861111]);
}

/// With some NaNs, which are above no threshold.
#[test]
fn many_predictions_at_once_count_as_a_few_at_a_time() {
    let rows = 3_000;
    let (y_true, y_pred) = (ones(&[rows, 4]), shares(&[rows, 4]));
    let weight = weights(&[rows]);
    let nan = y_pred.greater(0.9).unwrap();
    let y_pred = wgrad::where_(&nan, &constant(f32::NAN).unwrap(), &y_pred).unwrap();
    let kinds: [fn() -> Box<dyn Metric>; 5] = [
        || Box::<Auc>::default(),
        || Box::new(Auc::default().multi_label(true).curve(Curve::Pr)),
        || Box::new(PrecisionAtRecall::new("", 0.5)),
        || Box::new(SpecificityAtSensitivity::new("", 0.5).class_id(1)),
        || {
            Box::new(
                TrueNegatives::default()
                    .thresholds((0..=64).map(|i| i as f32 / 64.0).collect::<Vec<_>>()),
            )
        },
    ];
    for (at, kind) in kinds.iter().enumerate() {
        let (whole, parts) = (kind(), kind());
        whole.update(&y_true, &y_pred, Some(&weight)).unwrap();
        let part = |x: &Tensor, i: usize| {
            let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
            (begin[0], size[0]) = (30 * i, 30);
            x.slice(&begin, &size).unwrap()
        };
        for i in 0..rows / 30 {
            parts.update(&part(&y_true, i), &part(&y_pred, i), Some(&part(&weight, i))).unwrap();
        }
        for (whole, parts) in whole.variables().iter().zip(parts.variables()) {
            close(&whole.read(), &parts.read().to_vec::<f32>().unwrap());
        }
        close(&whole.result().unwrap(), &parts.result().unwrap().to_vec::<f32>().unwrap());
        assert!(!whole.variables().is_empty(), "{at}");
    }
}

#[test]
fn the_best_of_one_share_while_another_is_high_enough() {
    let (lists, rows) = (lists(), rows());
    check(SensitivityAtSpecificity::new("", 0.5), &lists, &[0.0]);
    let third = SensitivityAtSpecificity::new("", 0.5).num_thresholds(10).class_id(2);
    check(third, &rows, &[0.2]);
    check(SpecificityAtSensitivity::new("", 0.5), &lists, &[0.0294118]);
    check(PrecisionAtRecall::new("", 0.5), &lists, &[0.2093023]);
    let third = PrecisionAtRecall::new("", 0.5).num_thresholds(10).class_id(2);
    check(third, &rows, &[0.3703704]);
    check(RecallAtPrecision::new("", 0.5), &lists, &[0.0]);
    check(RecallAtPrecision::new("", 0.4).num_thresholds(1), &lists, &[0.0]);
}

#[test]
fn scores_of_classes_and_of_numbers() {
    let second = (reversed(hot(4, &[5])), shares(&[5, 4]), Some(weights(&[5])));
    let classes = [batch(hot(4, &[6]), shares(&[6, 4])), second];
    for (average, beta_2, f1) in [
        (
            Average::None,
            &[0.3508772, 0.0, 0.7017544, 0.3731343][..],
            &[0.0, 0.0, 0.4848485, 0.4761904][..],
        ),
        (Average::Micro, &[0.3971962], &[0.3823529]),
        (Average::Macro, &[0.3564415], &[0.2402597]),
        (Average::Weighted, &[0.3793725], &[0.2821492]),
    ] {
        check(FBetaScore::default().average(average).beta(2.0).threshold(0.4), &classes, beta_2);
        check(F1Score::default().average(average), &classes, f1);
    }
    let numbers = [
        batch(shares(&[6, 2]), ones(&[6, 2])),
        (logits(&[5, 2]), shares(&[5, 2]), Some(weights(&[5]))),
    ];
    let score = |aggregation| R2Score::default().class_aggregation(aggregation);
    check(score(ClassAggregation::None), &numbers, &[0.0097391, 0.1094677]);
    check(score(ClassAggregation::UniformAverage), &numbers, &[0.0596034]);
    check(score(ClassAggregation::VarianceWeightedAverage), &numbers, &[0.0764391]);
    check(R2Score::default().num_regressors(2_usize), &numbers, &[-0.0393858]);
}

#[test]
fn regions_of_classes() {
    let shifted = labels(4, &[3, 3]).add(labels(2, &[3, 3])).unwrap().floormod(4).unwrap();
    let maps =
        [batch(labels(4, &[3, 3]), shifted), batch(reversed(labels(4, &[7])), labels(4, &[7]))];
    check(Iou::new("", 4, &[0, 2]), &maps, &[0.5833334]);
    check(MeanIou::new("", 4).ignore_class(1), &maps, &[0.375]);
    // Positions with a fourth class do not count.
    check(MeanIou::new("", 3), &maps, &[0.5555556]);
    let binary = BinaryIou::default().target_class_ids([0]).threshold(0.3);
    check(binary, &[batch(ones(&[8]), shares(&[8]))], &[0.2857143]);
    let largest = [batch(hot(4, &[6]), shares(&[6, 4]))];
    check(OneHotIou::new("", 4, &[1, 3]), &largest, &[0.1666667]);
    let sparse = [batch(hot(4, &[2]), constant([3, 0]).unwrap())]; // labels 3 and 2
    check(OneHotMeanIou::new("", 4).sparse_y_pred(true), &sparse, &[1.0 / 3.0]);
    // Classes 0 and 1; the second position has weight 1.5: 1 / 2.5 and 0, or 1 / 2 and 0 without fractions.
    let weighted = [(
        constant([0, 0]).unwrap(),
        constant([0, 1]).unwrap(),
        Some(constant([1.0, 1.5]).unwrap()),
    )];
    check(MeanIou::new("", 2), &weighted, &[0.25]);
    check(MeanIou::new("", 2).dtype(DType::F32), &weighted, &[0.2]);
}

#[test]
fn means_over_examples() {
    let squares = batch(shares(&[3, 5]), logits(&[3, 5]).square().unwrap());
    check(PearsonCorrelation::default(), std::slice::from_ref(&squares), &[0.0198057]);
    check(ConcordanceCorrelation::default().axis(0), &[squares], &[0.0016373]);
    let plain = batch(shares(&[3, 5]), logits(&[3, 5]));
    check(LogCoshError::default(), std::slice::from_ref(&plain), &[1.2255186]);
    let weighted = (shares(&[3, 5]), ones(&[3, 5]), Some(weights(&[3])));
    check(RootMeanSquaredError::default(), &[plain, weighted], &[1.6870224]);
    let top = [
        batch(hot(4, &[2, 3]), shares(&[2, 3, 4])),
        (hot(4, &[2, 3]), logits(&[2, 3, 4]), Some(weights(&[2]))),
    ];
    check(TopKCategoricalAccuracy::default().k(2_usize), &top, &[0.4615385]);
    check(BinaryAccuracy::default(), &rows(), &[0.462963]);
    let ints = [
        batch(labels(4, &[6]), reversed(labels(4, &[6]))),
        (labels(3, &[6]), labels(2, &[6]), Some(weights(&[6]))),
    ];
    check(Accuracy::default(), &ints, &[0.0857143]);
    let sorted = constant([[1, 0, 2], [2, 1, 0], [0, 2, 1]]).unwrap();
    let sorted = [batch(constant([0, 0, 0]).unwrap(), sorted)];
    let ids = SparseTopKCategoricalAccuracy::default().from_sorted_ids(true);
    check(ids.k(2_usize), &sorted, &[2.0 / 3.0]);
    let ignoring = || SparseCategoricalCrossentropy::default().ignore_class(1);
    let unweighted = batch(labels(4, &[5]), shares(&[5, 4]));
    check(ignoring(), std::slice::from_ref(&unweighted), &[1.3025278]);
    check(ignoring(), &[(unweighted.0, unweighted.1, Some(weights(&[5])))], &[1.2520251]);
    let relative = MeanRelativeError::new("", constant([1.0, 3.0, 2.0, 0.0]).unwrap());
    let far =
        batch(constant([1.0, 3.0, 2.0, 3.0]).unwrap(), constant([2.0, 4.0, 6.0, 8.0]).unwrap());
    check(relative, &[far], &[(1.0 + 1.0 / 3.0 + 2.0) / 4.0]);
}

#[test]
fn values_and_weights_of_several_shapes() {
    let (mean, sum) = (Mean::default(), Sum::default());
    mean.update_state(&shares(&[3, 4])).unwrap();
    mean.update(&shares(&[2, 3, 2]), Some(&weights(&[2]))).unwrap();
    mean.update(&shares(&[2, 3]), Some(&weights(&[2, 3]))).unwrap();
    mean.update(&shares(&[4]), Some(&weights(&[4, 1]))).unwrap();
    close(&mean.result().unwrap(), &[0.5285203]);
    sum.update_state(&shares(&[3, 4])).unwrap();
    sum.update(&shares(&[2, 3, 2]), Some(&weights(&[2]))).unwrap();
    sum.update(&shares(&[2, 3]), Some(&weights(&[2, 3]))).unwrap();
    close(&sum.result().unwrap(), &[11.746094]);
    // An empty batch changes nothing.
    mean.update_state(&Tensor::zeros([0, 4]).unwrap()).unwrap();
    mean.update(&Tensor::zeros([0]).unwrap(), Some(&Tensor::zeros([0]).unwrap())).unwrap();
    close(&mean.result().unwrap(), &[0.5285203]);
}

/// One metric of each kind, with its inputs.
fn kinds() -> Vec<(Box<dyn Metric>, Batch)> {
    let truths = batch(ones(&[8, 4]), shares(&[8, 4]));
    let classes = batch(labels(4, &[8]), shares(&[8, 4]));
    let regions = batch(labels(4, &[8]), reversed(labels(4, &[8])));
    let kind = |metric: Box<dyn Metric>, batch: &Batch| (metric, batch.clone());
    vec![
        kind(Box::<SparseCategoricalAccuracy>::default(), &classes),
        kind(metrics::get("mse").unwrap(), &truths),
        kind(Box::<RootMeanSquaredError>::default(), &truths),
        kind(Box::new(Precision::default().thresholds([0.25, 0.7])), &truths),
        kind(Box::<Auc>::default(), &truths),
        kind(Box::new(Auc::default().multi_label(true)), &truths),
        kind(Box::new(PrecisionAtRecall::new("", 0.5)), &truths),
        kind(Box::<F1Score>::default(), &truths),
        kind(Box::<R2Score>::default(), &truths),
        kind(Box::new(MeanIou::new("", 4)), &regions),
        kind(Box::new(Arc::new(BinaryAccuracy::default())), &truths),
    ]
}

#[test]
fn updates_read_nothing_and_settle() {
    for at in 0..kinds().len() {
        let device = Device::new().unwrap();
        device.scope(|| {
            let (metric, (y_true, y_pred, _)) = kinds().swap_remove(at);
            let weight = weights(&[8]);
            let step = |_| {
                metric.update(&y_true, &y_pred, Some(&weight)).unwrap();
                device.flush().unwrap();
            };
            (0..4).for_each(step);
            let before = device.stats();
            (0..100).for_each(step);
            let after = device.stats();
            let name = format!("{} {}", metric.kind(), metric.name());
            assert_eq!(
                (after.reads, after.plan_misses),
                (before.reads, before.plan_misses),
                "{name}"
            );
            assert_eq!(
                (after.pipelines, after.buffers),
                (before.pipelines, before.buffers),
                "{name}"
            );
            assert_eq!(after.live_bytes, before.live_bytes, "{name}");
            assert!(
                after.kernels - before.kernels <= 100 * 16,
                "{name}: {}",
                after.kernels - before.kernels
            );
        });
    }
}

#[test]
fn ten_thousand_batches_without_a_flush_stay_flat() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let (mean, auc) =
            (MeanMetricWrapper::new("mae", losses::MeanAbsoluteError::new()), Auc::default());
        let (y_true, y_pred) = (ones(&[16, 1]), shares(&[16, 1]));
        let turns = |turns: usize| {
            for _ in 0..turns {
                mean.update(&y_true, &y_pred, None).unwrap();
                auc.update(&y_true, &y_pred, None).unwrap();
            }
            device.synchronize().unwrap();
            device.stats()
        };
        let (before, after) = (turns(2_000), turns(8_000));
        assert!(after.peak_bytes <= 2 * before.peak_bytes.max(1 << 20), "{before:?} {after:?}");
        assert_eq!(after.reads, before.reads);
        let want = y_true.subtract(&y_pred).unwrap().abs().unwrap().reduce_mean(()).unwrap();
        let (found, want) =
            (mean.result().unwrap().item::<f32>().unwrap(), want.item::<f32>().unwrap());
        // 10,000 sums in f32, each rounded.
        assert!((found - want).abs() < 1e-3, "{found} {want}");
    });
}

#[test]
fn a_failed_step_takes_back_all_totals_of_a_metric() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let precision = Precision::default();
        let (y_true, y_pred) = (ones(&[100]), shares(&[100]));
        let add = || precision.update_state(&y_true, &y_pred).unwrap();
        add();
        let want = precision.result().unwrap().item::<f32>().unwrap();
        let totals = || {
            precision
                .variables()
                .iter()
                .map(|v| v.read().to_vec::<f32>().unwrap())
                .collect::<Vec<_>>()
        };
        let once = totals();
        device.trim().unwrap();
        device.set_memory_limit(Some(device.stats().live_bytes)).unwrap();
        add();
        assert!(device.flush().unwrap_err().is_out_of_memory());
        device.set_memory_limit(None).unwrap();
        add();
        assert_eq!(precision.result().unwrap().item::<f32>().unwrap(), want);
        let twice: Vec<Vec<f32>> =
            once.iter().map(|v| v.iter().map(|v| 2.0 * v).collect()).collect();
        assert_eq!(totals(), twice);
    });
}

#[test]
fn metrics_go_on_from_their_weights() {
    let (first, second) = (Auc::default(), Auc::default());
    for (y_true, y_pred, weight) in &lists() {
        first.update(y_true, y_pred, weight.as_ref()).unwrap();
    }
    second.update_state(&ones(&[3]), &shares(&[3])).unwrap();
    second.set_weights(&first.get_weights().unwrap()).unwrap();
    let results = [first.result().unwrap(), second.result().unwrap()];
    assert_eq!(results[0].item::<f32>().unwrap(), results[1].item::<f32>().unwrap());
    // A metric without any input yet can restore it, too.
    let third = Auc::default();
    third.set_weights(&first.get_weights().unwrap()).unwrap();
    assert_eq!(third.result().unwrap().item::<f32>().unwrap(), results[0].item::<f32>().unwrap());
}

#[test]
fn a_metric_is_no_part_of_the_gradient() {
    let y_pred = shares(&[4, 3]);
    let tape = GradientTape::persistent();
    tape.watch(&y_pred).unwrap();
    for (metric, y_true) in [
        (metrics::get("mse").unwrap(), ones(&[4, 3])),
        (metrics::get("precision").unwrap(), ones(&[4, 3])),
        (metrics::get("sparse_categorical_crossentropy").unwrap(), labels(3, &[4])),
    ] {
        metric.update(&y_true, &y_pred, Some(&y_pred.reduce_sum(-1).unwrap())).unwrap();
        assert!(
            tape.gradient(metric.result().unwrap(), &y_pred).unwrap().is_none(),
            "{}",
            metric.name()
        );
    }
}

#[test]
fn before_the_first_batch_and_after_a_reset_there_is_nothing() {
    for (metric, (y_true, y_pred, _)) in kinds() {
        assert_eq!(metric.result().unwrap().to_vec::<f32>().unwrap(), [0.0], "{}", metric.name());
        metric.update_state(&y_true, &y_pred).unwrap();
        let want = metric.result().unwrap().to_vec::<f32>().unwrap();
        metric.reset_state().unwrap();
        metric.update_state(&y_true, &y_pred).unwrap();
        assert_eq!(metric.result().unwrap().to_vec::<f32>().unwrap(), want, "{}", metric.name());
    }
}

#[test]
fn a_reset_metric_goes_to_another_device() {
    let (a, b) = (Device::new().unwrap(), Device::new().unwrap());
    let recall = Recall::default();
    for device in [&a, &b, &a] {
        device.scope(|| recall.update_state(&ones(&[8]), &shares(&[8]))).unwrap();
        recall.reset_state().unwrap();
    }
}
