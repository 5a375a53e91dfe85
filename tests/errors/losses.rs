//! Wrong calls of losses and metrics.

use wgrad::keras::losses::{self, *};
use wgrad::keras::metrics::{self, Metric};
use wgrad::{DType, Error, Result, Tensor, constant};

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape).unwrap()
}

#[track_caller]
fn says<T>(call: Result<T>, words: &str) -> Error {
    let Err(error) = call else { panic!("no error; it should say: {words}") };
    let text = error.to_string();
    assert!(text.contains(words), "it says:\n  {text}\nand not:\n  {words}");
    error
}

#[test]
fn shapes_that_do_not_fit() {
    let mse = MeanSquaredError::new();
    let words = "MeanSquaredError: y_true is [2] and y_pred is [2, 3]; they must have one shape. Reshape one of them.";
    says(mse.call(&zeros(&[2]), &zeros(&[2, 3])), words);
    says(
        mse.call(&zeros(&[3, 1]), &zeros(&[3, 2])),
        "[3, 1] and y_pred is [3, 2]; they must have one shape",
    );
    for name in
        ["bce", "kld", "huber", "cosine_similarity", "categorical_crossentropy", "dice", "hinge"]
    {
        let loss = losses::get(name).unwrap();
        says(loss.call(&zeros(&[4, 2]), &zeros(&[4, 3])), "they must have one shape");
    }
    let scce = SparseCategoricalCrossentropy::new();
    let error = says(
        scce.call(&zeros(&[2, 2]), &zeros(&[2, 3])),
        "labels are [2, 2] and the logits [2, 3]",
    );
    assert!(matches!(error, Error::Shape(_)));
    let words = "CategoricalGeneralizedCrossEntropy: y_true is [3] and y_pred is [2, 3]; labels need the shape of the predictions";
    says(CategoricalGeneralizedCrossEntropy::new().call(&zeros(&[3]), &zeros(&[2, 3])), words);
    says(
        Circle::new().call(&zeros(&[3]), &zeros(&[2, 3])),
        "it needs labels [N] and embeddings [N,D]",
    );
    says(CategoricalCrossentropy::new().axis(2).call(&zeros(&[2, 3]), &zeros(&[2, 3])), "axis 2");
}

#[test]
fn weights_that_do_not_fit() {
    let (t, p) = (zeros(&[2, 3, 4]), zeros(&[2, 3, 4]));
    let mse = MeanSquaredError::new();
    let words = "mean_squared_error: the weights (of samples, or a mask) are [3] and the losses [2, 3]; weights need the \
                 losses' rank, and along each axis their size or 1. Reshape them, such as [N] to [N,1].";
    says(mse.call_weighted(&t, &p, Some(&zeros(&[3]))), words);
    says(mse.call_weighted(&t, &p, Some(&zeros(&[2, 2]))), "are [2, 2] and the losses [2, 3]");
    // One weight per element is not one weight per loss.
    says(
        mse.call_weighted(&t, &p, Some(&zeros(&[2, 3, 4]))),
        "are [2, 3, 4] and the losses [2, 3]",
    );
    says(mse.call_masked(&t, &p, None, Some(&zeros(&[4]))), "are [4] and the losses [2, 3]");

    let mean = metrics::Mean::new("loss");
    let words = "loss: sample_weight is [2] and the values are [3]; weights need the first axes of the values, and along \
                 each their size or 1.";
    says(mean.update(&zeros(&[3]), Some(&zeros(&[2]))), words);
    let precision = metrics::Precision::default();
    says(
        precision.update(&t, &p, Some(&zeros(&[3]))),
        "sample_weight is [3] and the values are [2, 3, 4]",
    );
    let score = metrics::R2Score::default();
    says(
        score.update(&zeros(&[3, 2]), &zeros(&[3, 2]), Some(&zeros(&[2]))),
        "R2Score: sample_weight is [2]",
    );
}

#[test]
fn predictions_that_are_no_floats() {
    let (y_true, y_pred) = (zeros(&[2, 3]), constant([[0, 1, 0], [1, 0, 0]]).unwrap());
    let words = "MeanSquaredError: y_pred is i32; predictions must be float. Cast them, or pass y_true first and y_pred second.";
    let error = says(MeanSquaredError::new().call(&y_true, &y_pred), words);
    assert!(matches!(error, Error::DType(_)));
    says(SparseCategoricalCrossentropy::new().call(&zeros(&[2]), &y_pred), "y_pred is i32");
    // Targets may be of any dtype.
    let flags = y_pred.cast(DType::Bool).unwrap();
    MeanSquaredError::new().call(&flags, &y_true).unwrap();
}

#[test]
fn names_that_nobody_has() {
    let words = "losses::get: there is no loss called 'msee'. The known ones are binary_crossentropy, bce, BCE, ";
    says(losses::get("msee"), words);
    let words = "metrics::get: there is no metric called 'acc'. The known ones are auc, accuracy, ";
    says(metrics::get("acc"), words);
    for name in ["mse", "MSE", "mean_squared_error", "MeanSquaredError"] {
        assert_eq!(losses::get(name).unwrap().name(), "mean_squared_error");
        assert_eq!(metrics::get(name).unwrap().name(), "mean_squared_error");
    }
}

#[test]
fn options_outside_their_range() {
    let (t, p) = (zeros(&[2, 3]), zeros(&[2, 3]));
    let q = CategoricalGeneralizedCrossEntropy::new().q(1.0);
    says(q.call(&zeros(&[2]), &p), "q is 1; it must be above 0 and below 1");
    let thresholds = metrics::Precision::default().thresholds([0.5, 1.5]);
    says(
        thresholds.update_state(&t, &p),
        "Precision: a threshold is 1.5; thresholds must be in 0 to 1.",
    );
    says(
        metrics::Recall::default().thresholds(vec![]).update_state(&t, &p),
        "there are no thresholds",
    );
    let nan = metrics::TruePositives::default().thresholds(f32::NAN);
    says(nan.update_state(&t, &p), "a threshold is NaN");
    says(
        metrics::Auc::default().num_thresholds(1).update_state(&t, &p),
        "num_thresholds is 1; it must be at least 2",
    );
    says(
        metrics::Auc::default().multi_label(true).update_state(&zeros(&[2]), &zeros(&[2])),
        "y_pred is [2]; with multi_label",
    );
    let class = metrics::Precision::default().class_id(3);
    says(class.update_state(&t, &p), "Precision: class_id is 3 and the predictions are [2, 3]");
    says(metrics::Precision::default().top_k(4).update_state(&t, &p), "k is 4");
    let share = metrics::PrecisionAtRecall::new("p", 1.5);
    says(share.update_state(&t, &p), "PrecisionAtRecall: recall is 1.5; it must be in 0 to 1.");
    says(
        metrics::F1Score::default().threshold(0.0).update_state(&t, &p),
        "F1Score: threshold is 0; it must be above 0",
    );
    says(
        metrics::FBetaScore::default().beta(-1.0).update_state(&t, &p),
        "FBetaScore: beta is -1; it must be above 0.",
    );
    says(
        metrics::F1Score::default().update_state(&zeros(&[2]), &zeros(&[2])),
        "they must be [N,C]",
    );
    says(
        metrics::R2Score::default().update_state(&zeros(&[2]), &zeros(&[2])),
        "they must be [N,D]",
    );
    let iou = metrics::Iou::new("iou", 3, &[3]);
    says(
        iou.update_state(&zeros(&[2]), &zeros(&[2])),
        "IoU: a target class is 3; with 3 classes it must be below 3.",
    );
    says(
        metrics::MeanIou::new("iou", 3).update_state(&zeros(&[2]), &zeros(&[3])),
        "they must have the same number of positions",
    );
    let accuracy = metrics::SparseCategoricalAccuracy::default();
    let words = "SparseCategoricalAccuracy: y_true is [3] and y_pred is [2, 3]; labels need the shape of the predictions";
    says(accuracy.update_state(&zeros(&[3]), &p), words);
}

#[test]
fn batches_of_other_classes_than_before() {
    let score = metrics::F1Score::new("f1");
    score.update_state(&zeros(&[2, 3]), &zeros(&[2, 3])).unwrap();
    let words = "f1: the batches before gave totals [3], and this one gives [4].";
    says(score.update_state(&zeros(&[2, 4]), &zeros(&[2, 4])), words);
    score.update_state(&zeros(&[2, 3]), &zeros(&[2, 3])).unwrap();
}
