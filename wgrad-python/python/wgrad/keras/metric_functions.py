"""Keras's metrics as functions: a value for each example."""

from ..ops import FUNCTIONS
from ..tensor import convert_to_tensor


def _floats(y_true, y_pred):
    """Both as floats of the same rank: a last axis of one number in one of them alone is dropped."""
    y_true, y_pred = convert_to_tensor(y_true, "float32"), convert_to_tensor(y_pred, "float32")
    if len(y_true._shape) == len(y_pred._shape) + 1 and y_true._shape[-1] == 1:
        y_true = y_true[..., 0]
    if len(y_pred._shape) == len(y_true._shape) + 1 and y_pred._shape[-1] == 1:
        y_pred = y_pred[..., 0]
    return y_true, y_pred


def _matches(condition):
    return condition._cast("float32")


def _labels(call, y_true, y_pred):
    """The labels as integers of the predictions' shape without its last axis."""
    y_true, y_pred = convert_to_tensor(y_true, "int32"), convert_to_tensor(y_pred)
    if len(y_true._shape) == len(y_pred._shape) and y_true._shape[-1] == 1:
        y_true = y_true[..., 0]
    if list(y_true._shape) != list(y_pred._shape[:-1]):
        raise ValueError(f"{call}: y_true is {y_true.shape} and y_pred is {y_pred.shape}; labels must be [..] for predictions [.., classes].")
    return y_true, y_pred


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """1 where a prediction is on the right side of the threshold, otherwise 0."""
    y_true, y_pred = _floats(y_true, y_pred)
    return _matches(FUNCTIONS["math.equal"](_matches(y_pred > threshold), y_true))


def _argmax(x):
    return FUNCTIONS["math.argmax"](x, axis=-1)


def categorical_accuracy(y_true, y_pred):
    """1 where the largest prediction is that of the class of `y_true`, which has ones and zeros for classes."""
    return _matches(FUNCTIONS["math.equal"](_argmax(convert_to_tensor(y_true)), _argmax(convert_to_tensor(y_pred))))


def sparse_categorical_accuracy(y_true, y_pred):
    """1 where the largest prediction is that of the label."""
    y_true, y_pred = _labels("sparse_categorical_accuracy", y_true, y_pred)
    return _matches(FUNCTIONS["math.equal"](_argmax(y_pred)._cast("int32"), y_true))


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    """1 where the class of `y_true`, which has ones and zeros for classes, is among the `k` largest predictions."""
    return sparse_top_k_categorical_accuracy(_argmax(convert_to_tensor(y_true)), y_pred, k)


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5, from_sorted_ids=False):
    """1 where the label is among the `k` largest predictions; with `from_sorted_ids`, `y_pred` has the classes, the best one first."""
    if from_sorted_ids:
        y_true, y_pred = convert_to_tensor(y_true, "int32"), convert_to_tensor(y_pred, "int32")
        found = FUNCTIONS["math.equal"](y_true[..., None], y_pred[..., :k])
        return _matches(FUNCTIONS["math.reduce_any"](found, axis=-1))
    y_true, y_pred = _labels("sparse_top_k_categorical_accuracy", y_true, y_pred)
    shape = list(y_true._shape)
    rows = FUNCTIONS["reshape"](y_pred, [-1, y_pred._shape[-1]])
    found = FUNCTIONS["math.in_top_k"](FUNCTIONS["reshape"](y_true, [-1]), rows, k)
    return FUNCTIONS["reshape"](_matches(found), shape)


def _mean(x, axis, keepdims=False):
    return FUNCTIONS["math.reduce_mean"](x, axis=axis, keepdims=keepdims)


def pearson_correlation(y_true, y_pred, axis=-1):
    """Pearson's correlation along an axis."""
    y_true, y_pred = _floats(y_true, y_pred)

    def normal(x):
        x = x - _mean(x, axis, True)
        return x / FUNCTIONS["math.sqrt"](_mean(x * x, axis, True))

    return _mean(normal(y_true) * normal(y_pred), axis)


def concordance_correlation(y_true, y_pred, axis=-1):
    """Lin's concordance correlation along an axis."""
    y_true, y_pred = _floats(y_true, y_pred)
    true_mean, pred_mean = _mean(y_true, axis, True), _mean(y_pred, axis, True)
    true, pred = y_true - true_mean, y_pred - pred_mean
    gap = _mean(true * true, axis, True) + _mean(pred * pred, axis, True) + (true_mean - pred_mean) ** 2.0
    return _mean(2.0 * true * pred / (gap + 1e-7), axis)


NAMES = (
    "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy", "top_k_categorical_accuracy",
    "sparse_top_k_categorical_accuracy", "pearson_correlation", "concordance_correlation",
)
