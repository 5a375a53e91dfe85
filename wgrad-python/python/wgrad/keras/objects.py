"""Keras's objects that are a class and options: initializers, regularizers, constraints, schedules, optimizers, losses, metrics."""

import json

import numpy as np

from .. import _wgrad
from ..tensor import Tensor, Variable, convert_to_tensor


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, Described):
        return {"module": "keras", "class_name": value._class, "config": value.get_config(), "registered_name": None}
    if isinstance(value, (Tensor, Variable, np.ndarray, np.generic)):
        value = value.numpy() if isinstance(value, (Tensor, Variable)) else value
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return value


class Described:
    """An object of a class that Keras has, with its options."""

    _class = None
    _parameters = ()

    def __init__(self, *arguments, **options):
        if len(arguments) > len(self._parameters):
            raise TypeError(f"{self._class} takes {len(self._parameters)} arguments in order, not {len(arguments)}.")
        for name, value in zip(self._parameters, arguments):
            if name in options:
                raise TypeError(f"{self._class}: '{name}' is given twice.")
            options[name] = value
        self._options = {key: value for key, value in options.items() if value is not None}

    def get_config(self):
        return {key: plain(value) for key, value in self._options.items()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def _json(self):
        return json.dumps({"class_name": self._class, "config": self.get_config()})

    def __repr__(self):
        options = ", ".join(f"{key}={value!r}" for key, value in self._options.items())
        return f"{type(self).__name__}({options})"


def classes(module, base, table):
    """Makes a class for each line of `table`: its name and its parameters in order. `Name=Alias` adds a second name."""
    made = {}
    for line in table.strip().splitlines():
        names, *parameters = line.split()
        name, *aliases = names.split("=")
        kind = type(name, (base,), {"_class": name, "_parameters": tuple(parameters), "__module__": module})
        kind.__doc__ = f"Keras's `{name}`: {', '.join(parameters) or 'no options'}."
        for name in (name, *aliases):
            made[name] = kind
    return made


# ---- initializers, regularizers, constraints ----


class Initializer(Described):
    def __call__(self, shape, dtype="float32"):
        return initial_value(self, shape, dtype)


INITIALIZERS = classes("wgrad.keras.initializers", Initializer, """
Zeros=zeros
Ones=ones
Constant value
RandomNormal mean stddev seed
RandomUniform minval maxval seed
TruncatedNormal mean stddev seed
VarianceScaling scale mode distribution seed
GlorotNormal seed
GlorotUniform seed
HeNormal seed
HeUniform seed
LecunNormal seed
LecunUniform seed
Orthogonal gain seed
Identity gain
""")


def initial_value(initializer, shape, dtype):
    """Values that an initializer (an object, a name or a function) draws."""
    shape = [int(size) for size in shape]
    if initializer is None:
        initializer = "glorot_uniform" if len(shape) > 1 else "zeros"
    if callable(initializer) and not isinstance(initializer, Initializer):
        return convert_to_tensor(initializer(shape, dtype=dtype), dtype)
    name = initializer._class if isinstance(initializer, Initializer) else str(initializer)
    name = name.replace("_", "").lower()
    options = initializer._options if isinstance(initializer, Initializer) else {}
    if name == "zeros":
        return _wgrad.constant(0, dtype, shape)
    if name == "ones":
        return _wgrad.constant(1, dtype, shape)
    if name == "constant":
        return _wgrad.constant(options.get("value", 0.0), dtype, shape)
    if name in ("randomnormal", "normal"):
        return _wgrad.random("normal", shape, options.get("mean", 0.0), options.get("stddev", 0.05))
    if name in ("randomuniform", "uniform"):
        return _wgrad.random("uniform", shape, options.get("minval", -0.05), options.get("maxval", 0.05))
    if name == "truncatednormal":
        return _wgrad.random("truncated", shape, options.get("mean", 0.0), options.get("stddev", 0.05))
    scales = {"glorot": (1.0, "fan_avg"), "he": (2.0, "fan_in"), "lecun": (1.0, "fan_in")}
    for prefix, (scale, mode) in scales.items():
        if name.startswith(prefix):
            return _scaled(shape, scale, mode, name.endswith("uniform"))
    raise ValueError(f"add_weight: the initializer {initializer!r} is not supported here.")


def _scaled(shape, scale, mode, is_uniform):
    area = int(np.prod(shape[:-2])) if len(shape) > 2 else 1
    fan_in = shape[-2] * area if len(shape) > 1 else (shape[0] if shape else 1)
    fan_out = shape[-1] * area if shape else 1
    scale /= max(1.0, fan_in if mode == "fan_in" else (fan_in + fan_out) / 2)
    if is_uniform:
        limit = (3 * scale) ** 0.5
        return _wgrad.random("uniform", shape, -limit, limit)
    # The deviation of a normal distribution that is cut at two deviations.
    return _wgrad.random("truncated", shape, 0.0, scale**0.5 / 0.87962566103423978)


REGULARIZERS = classes("wgrad.keras.regularizers", Described, """
L1=l1 l1
L2=l2 l2
L1L2=l1_l2 l1 l2
OrthogonalRegularizer factor mode
""")

CONSTRAINTS = classes("wgrad.keras.constraints", Described, """
MaxNorm=max_norm max_value axis
MinMaxNorm min_value max_value rate axis
NonNeg=non_neg
UnitNorm=unit_norm axis
""")

SCHEDULES = classes("wgrad.keras.optimizers.schedules", Described, """
ExponentialDecay initial_learning_rate decay_steps decay_rate staircase
PiecewiseConstantDecay boundaries values
PolynomialDecay initial_learning_rate decay_steps end_learning_rate power cycle
InverseTimeDecay initial_learning_rate decay_steps decay_rate staircase
CosineDecay initial_learning_rate decay_steps alpha warmup_target warmup_steps
CosineDecayRestarts initial_learning_rate first_decay_steps t_mul m_mul alpha
""")


# ---- optimizers ----


class Optimizer(Described):
    def __init__(self, *arguments, **options):
        options.pop("name", None)
        super().__init__(*arguments, **options)
        self._native = _wgrad.NativeOptimizer(self._json())

    @classmethod
    def _of(cls, native):
        optimizer = Optimizer.__new__(Optimizer)
        optimizer._options, optimizer._native = {}, native
        return optimizer

    def apply_gradients(self, grads_and_vars, name=None):
        """A step: changes each variable by its gradient. `grads_and_vars` has pairs of them."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("apply_gradients: there is no gradient.")
        self._native.apply([g if g is None else convert_to_tensor(g) for g, _ in pairs], [v for _, v in pairs])
        return self.iterations

    def apply(self, grads, trainable_variables=None):
        self.apply_gradients(zip(grads, trainable_variables))

    def minimize(self, loss, var_list, tape=None):
        """A step along the gradients of `loss`: a function without arguments, or a tensor with the tape that recorded it."""
        from ..tape import GradientTape

        if callable(loss):
            with GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("minimize: give the tape that recorded the loss, or a function that computes it.")
        variables = list(var_list() if callable(var_list) else var_list)
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @property
    def iterations(self):
        return self._native.iterations

    @property
    def name(self):
        return self._native.name

    @property
    def learning_rate(self):
        return self._native.learning_rate

    @learning_rate.setter
    def learning_rate(self, value):
        self._native.set_learning_rate(float(value))

    lr = learning_rate


OPTIMIZERS = classes("wgrad.keras.optimizers", Optimizer, """
Adadelta learning_rate rho epsilon
Adafactor learning_rate beta_2_decay epsilon_1 epsilon_2 clip_threshold relative_step
Adagrad learning_rate initial_accumulator_value epsilon
Adam learning_rate beta_1 beta_2 epsilon amsgrad
AdamW learning_rate weight_decay beta_1 beta_2 epsilon amsgrad
Adamax learning_rate beta_1 beta_2 epsilon
Ftrl learning_rate learning_rate_power initial_accumulator_value l1_regularization_strength l2_regularization_strength
Lamb learning_rate beta_1 beta_2 epsilon
Lion learning_rate beta_1 beta_2
Muon learning_rate
Nadam learning_rate beta_1 beta_2 epsilon
RMSprop learning_rate rho momentum epsilon centered
SGD learning_rate momentum nesterov
""")


def get_optimizer(value):
    if isinstance(value, Optimizer):
        return value
    if isinstance(value, str):
        return Optimizer._of(_wgrad.NativeOptimizer(value))
    raise ValueError(f"compile: {value!r} is no optimizer; use a name or one of keras.optimizers.")


# ---- losses and metrics ----


class Loss(Described):
    """A loss. A subclass of a program defines `call(y_true, y_pred)`."""

    def __init__(self, *arguments, **options):
        options.pop("name", None)
        super().__init__(*arguments, **options)
        self._native = _wgrad.NativeLoss(self._json()) if self._class else None

    def __call__(self, y_true, y_pred, sample_weight=None):
        if self._native is not None:
            return self._native(y_true, y_pred, sample_weight)
        from ..ops import FUNCTIONS

        losses = self.call(convert_to_tensor(y_true), convert_to_tensor(y_pred))
        if sample_weight is not None:
            losses = losses * sample_weight
        return FUNCTIONS["math.reduce_mean"](losses)


LOSSES = classes("wgrad.keras.losses", Loss, """
BinaryCrossentropy from_logits label_smoothing axis reduction
BinaryFocalCrossentropy apply_class_balancing alpha gamma from_logits label_smoothing axis reduction
CategoricalCrossentropy from_logits label_smoothing axis reduction
CategoricalFocalCrossentropy alpha gamma from_logits label_smoothing axis reduction
CategoricalHinge reduction
CosineSimilarity axis reduction
Hinge reduction
Huber delta reduction
KLDivergence reduction
LogCosh reduction
MeanAbsoluteError reduction
MeanAbsolutePercentageError reduction
MeanSquaredError reduction
MeanSquaredLogarithmicError reduction
Poisson reduction
SparseCategoricalCrossentropy from_logits ignore_class reduction axis
SquaredHinge reduction
Tversky alpha beta reduction
""")


class Metric(Described):
    """A metric that has seen values. A subclass of a program defines `update_state`, `result` and `reset_state`."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._native = _wgrad.NativeMetric(self._json()) if self._class else None

    @property
    def name(self):
        return self._native.name if self._native else self._options.get("name", type(self).__name__)

    def update_state(self, y_true, y_pred, sample_weight=None):
        self._native.update(y_true, y_pred, sample_weight)

    def result(self):
        return self._native.result()

    def reset_state(self):
        self._native.reset_state()

    reset_states = reset_state

    def __call__(self, *arguments, **options):
        self.update_state(*arguments, **options)
        return self.result()


METRICS = classes("wgrad.keras.metrics", Metric, """
AUC num_thresholds name
Accuracy name
BinaryAccuracy name dtype threshold
BinaryCrossentropy name dtype from_logits label_smoothing
CategoricalAccuracy name
CategoricalCrossentropy name dtype from_logits label_smoothing
CategoricalHinge name
CosineSimilarity name
F1Score name
FBetaScore beta name
FalseNegatives name
FalsePositives name
Hinge name
KLDivergence name
LogCoshError name
MeanAbsoluteError name
MeanAbsolutePercentageError name
MeanIoU num_classes name
MeanSquaredError name
MeanSquaredLogarithmicError name
Poisson name
Precision name
R2Score name
Recall name
RootMeanSquaredError name
SparseCategoricalAccuracy name
SparseCategoricalCrossentropy name dtype from_logits
SparseTopKCategoricalAccuracy k name
SquaredHinge name
TopKCategoricalAccuracy k name
TrueNegatives name
TruePositives name
""")


class Mean(Metric):
    """The mean of all values that it was given."""

    def __init__(self, name="mean", dtype=None):
        super().__init__(name=name)
        self.reset_state()

    def update_state(self, values, sample_weight=None):
        from ..ops import FUNCTIONS

        values = convert_to_tensor(values, "float32")
        weights = convert_to_tensor(1.0 if sample_weight is None else sample_weight, "float32")
        weights = FUNCTIONS["broadcast_to"](weights, values._shape)
        self._total = self._total + FUNCTIONS["math.reduce_sum"](values * weights)
        self._count = self._count + FUNCTIONS["math.reduce_sum"](weights)

    def result(self):
        from ..ops import FUNCTIONS

        return FUNCTIONS["math.divide_no_nan"](self._total, self._count)

    def reset_state(self):
        self._total = self._count = _wgrad.constant(0.0, "float32")

    reset_states = reset_state


class Sum(Mean):
    """The sum of all values that it was given."""

    def result(self):
        return self._total


METRICS["Mean"], METRICS["Sum"] = Mean, Sum


def function_of(name):
    """Keras's function of a loss: the value for each example."""

    def loss(y_true, y_pred):
        return LOSSES[name](reduction="none")(y_true, y_pred)

    return loss
