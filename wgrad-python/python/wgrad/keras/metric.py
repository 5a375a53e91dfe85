"""Metrics: Keras's, and the class of those that a program defines."""

from .. import _wgrad
from ..dtypes import as_name
from ..tensor import convert_to_tensor
from .objects import Described, KerasVariable, classes, initial_value
from .structure import _REGISTERED, _by_name, _snake


class Metric(Described):
    """A metric that has seen values. A subclass of a program defines `update_state` and `result`, and makes its variables with
    `add_weight`."""

    # The dtype of counts is an option of these metrics; of other metrics, it is that of the result, which is float32.
    _counts = False

    def __init__(self, *arguments, **options):
        if self._class is None and arguments:
            # Those of a subclass begin with the name.
            options["name"], arguments = arguments[0], arguments[1:]
        _by_name(type(self).__name__, self._parameters, arguments, options)
        dtype = options.pop("dtype", None)
        dtype = as_name(getattr(dtype, "name", dtype))
        if self._class == "R2Score" and options.get("class_aggregation", "") is None:
            # Here `None` is a choice of its own: a score for each output.
            options["class_aggregation"] = "none"
        super().__init__(**options)
        self.dtype = dtype or ("int64" if self._counts else "float32")
        self._native = _wgrad.NativeMetric(self._json()) if self._class else None

    def _given_config(self):
        config = super()._given_config()
        if self._counts:
            config["dtype"] = self.dtype
        # Keras makes variables before the first batch by it; these are made in the first batch.
        config.pop("num_labels", None)
        if not config.get("from_sorted_ids"):
            config.pop("from_sorted_ids", None)
        return config

    def get_config(self):
        """All options, with the name."""
        config = super().get_config() | {"name": self.name, "dtype": self.dtype}
        if config.get("class_aggregation") == "none":
            config["class_aggregation"] = None
        return config

    @property
    def name(self):
        if "_short" in self.__dict__:
            return self._short
        return self._native.name if self._native else self._options.get("name") or _snake(type(self).__name__)

    def add_weight(self, shape=(), initializer="zeros", dtype="float32", name=None, **options):
        """Makes a variable of the metric, which training does not change."""
        if isinstance(shape, str):
            # Keras 2 had the name first.
            shape, name = () if not isinstance(name, (tuple, list)) else name, shape
        variable = KerasVariable(initial_value(initializer, [shape] if isinstance(shape, int) else shape, as_name(dtype)), False)
        self.__dict__.setdefault("_variables", {})[name or f"variable_{len(self.variables)}"] = variable
        return variable

    add_variable = add_weight

    @property
    def variables(self):
        return list(self.__dict__.get("_variables", {}).values())

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        if self._native is None:
            raise NotImplementedError(f"{type(self).__name__} has no method update_state.")
        self._native.update(y_true, y_pred, sample_weight)

    def result(self):
        """The value over all batches since the last reset."""
        if self._native is None:
            raise NotImplementedError(f"{type(self).__name__} has no method result.")
        return self._native.result()

    def reset_state(self):
        """Sets the variables to 0."""
        if self._native is not None:
            self._native.reset_state()
        for variable in self.variables:
            variable.assign(_wgrad.constant(0, variable._dtype, list(variable._shape)))

    def reset_states(self):
        self.reset_state()

    def __call__(self, *arguments, **options):
        self.update_state(*arguments, **options)
        return self.result()

    def _wgrad_parts(self):
        return list(self.__dict__.get("_variables", {}).items())


METRICS = classes("wgrad.keras.metrics", Metric, """
AUC num_thresholds=200 curve=ROC summation_method=interpolation name dtype thresholds multi_label=False num_labels label_weights \
from_logits=False
Accuracy name dtype
BinaryAccuracy name dtype threshold=0.5
BinaryCrossentropy name dtype from_logits=False label_smoothing=0
BinaryIoU target_class_ids=[0,1] threshold=0.5 name dtype
CategoricalAccuracy name dtype
CategoricalCrossentropy name dtype from_logits=False label_smoothing=0 axis=-1
CategoricalHinge name dtype
ConcordanceCorrelation name dtype axis=-1
CosineSimilarity name dtype axis=-1
F1Score average threshold name dtype
FBetaScore average beta=1.0 threshold name dtype
FalseNegatives thresholds name dtype
FalsePositives thresholds name dtype
Hinge name dtype
IoU num_classes! target_class_ids! name dtype ignore_class sparse_y_true=True sparse_y_pred=True axis=-1
KLDivergence name dtype
LogCoshError name dtype
MeanAbsoluteError name dtype
MeanAbsolutePercentageError name dtype
MeanIoU num_classes! name dtype ignore_class sparse_y_true=True sparse_y_pred=True axis=-1
MeanSquaredError name dtype
MeanSquaredLogarithmicError name dtype
OneHotIoU num_classes! target_class_ids! name dtype ignore_class sparse_y_pred=False axis=-1
OneHotMeanIoU num_classes! name dtype ignore_class sparse_y_pred=False axis=-1
PearsonCorrelation name dtype axis=-1
Poisson name dtype
Precision thresholds top_k class_id name dtype
PrecisionAtRecall recall! num_thresholds=200 class_id name dtype
R2Score class_aggregation=uniform_average num_regressors=0 name dtype
Recall thresholds top_k class_id name dtype
RecallAtPrecision precision! num_thresholds=200 class_id name dtype
RootMeanSquaredError name dtype
SensitivityAtSpecificity specificity! num_thresholds=200 class_id name dtype
SparseCategoricalAccuracy name dtype
SparseCategoricalCrossentropy name dtype from_logits=False ignore_class axis=-1
SparseTopKCategoricalAccuracy k=5 name dtype from_sorted_ids=False
SpecificityAtSensitivity sensitivity! num_thresholds=200 class_id name dtype
SquaredHinge name dtype
TopKCategoricalAccuracy k=5 name dtype
TrueNegatives thresholds name dtype
TruePositives thresholds name dtype
""")
for _name in ("BinaryIoU", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"):
    METRICS[_name]._counts = True


class Mean(Metric):
    """The mean of all values that it was given."""

    _sums = False

    def __init__(self, name=None, dtype=None):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype)
        self._total = _wgrad.NativeMean(self.name, self._sums)

    def update_state(self, values, sample_weight=None):
        self._total.update(values, sample_weight)

    def result(self):
        return self._total.result()

    def reset_state(self):
        self._total.reset_state()

    def _wgrad_parts(self):
        return [("total", self._total)]


class Sum(Mean):
    """The sum of all values that it was given."""

    _sums = True


class MeanMetricWrapper(Mean):
    """The mean of a function of `y_true` and `y_pred`."""

    def __init__(self, fn, name=None, dtype=None, **options):
        super().__init__(name=name or getattr(fn, "__name__", "metric"))
        self._fn, self._fn_options = fn, options

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(self._fn(convert_to_tensor(y_true), convert_to_tensor(y_pred), **self._fn_options), sample_weight)


class Accuracy(Metric):
    """`"accuracy"`: the one that fits the shapes of truth and predictions."""

    def __init__(self, name="accuracy"):
        super().__init__(name=name)
        self._short, self._chosen = name, None

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self._chosen is None:
            true, pred = convert_to_tensor(y_true)._shape, convert_to_tensor(y_pred)._shape
            last = lambda shape: shape[-1] if shape else 1
            sparse = len(true) < len(pred) or last(true) == 1 and last(pred) > 1
            kind = "binary" if last(pred) == 1 else "sparse_categorical" if sparse else "categorical"
            self._chosen = _wgrad.NativeMetric(f"{kind}_accuracy")
        self._chosen.update(y_true, y_pred, sample_weight)

    def result(self):
        return self._chosen.result() if self._chosen else _wgrad.constant(0.0, "float32")

    def reset_state(self):
        if self._chosen:
            self._chosen.reset_state()


def get_metric(value):
    """A metric, its name or a function, as an object that a step can update."""
    if isinstance(value, Metric):
        return value
    if isinstance(value, str) and value in _REGISTERED:
        value = _REGISTERED[value]
        return get_metric(value() if isinstance(value, type) else value)
    if isinstance(value, str):
        if value in ("accuracy", "acc"):
            return Accuracy(value)
        metric = Metric(name=value)
        metric._native = _wgrad.NativeMetric(value)
        metric._short = value
        return metric
    if callable(value):
        return MeanMetricWrapper(value)
    raise ValueError(f"compile: {value!r} is no metric; use a name, a keras.metrics.Metric or a function of y_true and y_pred.")


METRICS |= {"Mean": Mean, "Sum": Sum, "MeanMetricWrapper": MeanMetricWrapper}
