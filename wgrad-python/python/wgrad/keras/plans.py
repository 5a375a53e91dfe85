"""The arguments of `compile` and `fit`, as the native part takes them."""

import functools
import inspect

import numpy as np

from ..ops import FUNCTIONS
from ..tensor import Tensor, convert_to_tensor
from .callbacks import Callback
from .config import is_interactive_logging_enabled
from .fronts import is_symbolic
from .metric import Metric, get_metric
from .objects import Loss, as_targets
from .structure import _REGISTERED, _leaves, _listed


def _symbols_given(arguments, options):
    """Whether these are `inputs` and `outputs` of a model of symbols."""
    given = list(arguments) + [options[key] for key in ("inputs", "outputs") if key in options]
    leaves = _leaves(given) if given and all(is_symbolic(x) or isinstance(x, (list, tuple, dict)) for x in given) else []
    return bool(leaves) and all(map(is_symbolic, leaves))


class PyDataset:
    """Batches by their number: a subclass has `__len__` and `__getitem__`."""

    def __init__(self, workers=1, use_multiprocessing=False, max_queue_size=10):
        pass


def unpack_x_y_sample_weight(data):
    """The inputs, the targets and the weights of a batch; `None` for what it lacks."""
    if not isinstance(data, (tuple, list)):
        return data, None, None
    return (tuple(data) + (None, None))[:3]


def _flat_callbacks(callbacks):
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


def _keys_of(y_pred):
    return {key: key for key in sorted(y_pred)} if isinstance(y_pred, dict) else None


def _named(key, names, what):
    if names is None:
        return key
    if key not in names:
        raise ValueError(f"compile: {what} names the output '{key}'; the model has {', '.join(map(str, names))}.")
    return names[key]


def _loss_plan(loss, names):
    """The losses as the native model takes them: a list, or pairs of names and losses."""
    if loss is None:
        return []
    if isinstance(loss, dict):
        return [(_named(key, names, "loss"), _native(value, Loss)) for key, value in loss.items() if value is not None]
    if isinstance(loss, (list, tuple)) and any(value is None for value in loss):
        if names is None or len(names) != len(loss):
            raise ValueError("compile: a list of losses with None needs a model whose outputs have names; use a dict.")
        return [(name, _native(value, Loss)) for name, value in zip(names.values(), loss) if value is not None]
    return [_native(value, Loss) for value in _listed(loss)]


def _metric_plan(metrics, names):
    """Pairs of an output and its metrics, as objects that steps can update."""
    made = lambda values: [get_metric(value) for value in _listed(values) if value is not None]
    if not metrics:
        return []
    if isinstance(metrics, dict):
        return [(_named(key, names, "metrics"), made(value)) for key, value in metrics.items()]
    values = _listed(metrics)
    nested = any(isinstance(value, (list, tuple)) for value in values)
    count = None if names is None else len(names)
    if nested or count is not None and count > 1 and len(values) == count:
        return [(at, made([] if value is None else value)) for at, value in enumerate(values)]
    return [(None, made(values))]


def _weight_plan(weights, names):
    if weights is None:
        return []
    if isinstance(weights, dict):
        return [(_named(key, names, "loss_weights"), float(value)) for key, value in weights.items()]
    return [(None, float(value)) for value in _listed(weights)]


def _factors(weights, names, count):
    if weights is None:
        return [1.0] * count
    if isinstance(weights, dict):
        return [float(weights.get(name, 1.0)) for name in (names or weights)]
    return [float(weight) for weight in _listed(weights)]


class OwnSteps(Callback):
    """Makes the logs of a program's own steps those of Keras: the results of the metrics, or else what the last step returned."""

    def __init__(self):
        super().__init__()
        self.trained, self.tested, self.testing = None, {}, False

    def _results(self):
        logs = getattr(self.model, "_step_logs", None) or {}
        known = {metric.name: metric for metric in self.model.metrics if metric.name in logs}
        return {key: float(known[key].result() if key in known else value) for key, value in logs.items()}

    def on_epoch_begin(self, epoch, logs=None):
        self.trained = None
        self.model._step_logs = None
        self.model.reset_metrics()

    def on_test_begin(self, logs=None):
        self.trained = self._results()
        self.model._step_logs = None
        self.model.reset_metrics()

    def on_test_end(self, logs=None):
        self.tested = self._results()
        self.testing = True

    def on_epoch_end(self, epoch, logs=None):
        logs.update(self._results() if self.trained is None else self.trained)
        if self.testing:
            logs.update({f"val_{key}": value for key, value in self.tested.items()})
            self.testing = False


def _values(values, return_dict):
    if return_dict:
        return dict(values)
    return values[0][1] if len(values) == 1 else [value for _, value in values]


def _verbose(verbose):
    if verbose == "auto":
        return None if is_interactive_logging_enabled() else 2
    return int(verbose)


def _native(value, kind):
    """The native form of a loss or a metric, a name, or a function."""
    if isinstance(value, str):
        value = _REGISTERED.get(value, value)
        value = value() if isinstance(value, type) else value
    if isinstance(value, Loss):
        if value._native is not None:
            return value._native
        return (lambda y_true, y_pred: value.call(as_targets(y_true, y_pred), y_pred)) if value.reduction != "sum" else value
    if isinstance(value, Metric):
        return getattr(value, "_short", None) or (value if value._native is None else value._native)
    return _of_one_rank(value) if kind is Loss and inspect.isroutine(value) else value


def _of_one_rank(function):
    """A loss of a program as a function of targets and predictions with equally many axes, as Keras calls it: one number for each example
    may have an axis of its own, or not."""

    @functools.wraps(function)
    def loss(y_true, y_pred, *weights):
        y_true, y_pred = as_targets(y_true, y_pred), convert_to_tensor(y_pred)
        more = len(y_true._shape) - len(y_pred._shape)
        if more == 1 and y_true._shape[-1] == 1:
            y_true = FUNCTIONS["squeeze"](y_true, [-1])
        elif more == -1 and y_pred._shape[-1] == 1:
            if len(y_true._shape) == 1:
                y_true = FUNCTIONS["expand_dims"](y_true, -1)
            else:
                y_pred = FUNCTIONS["squeeze"](y_pred, [-1])
        return function(y_true, y_pred, *weights)

    return loss


def _array(value):
    if isinstance(value, (Tensor, np.ndarray)):
        return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
    array = np.asarray(value)
    return array
