"""Keras's objects that are a class and options: initializers, regularizers, constraints, schedules, optimizers, losses."""

import ast
import json

import numpy as np

from .. import _wgrad
from ..dtypes import as_name
from ..tensor import Tensor, Variable, convert_to_tensor
from .structure import _by_name, _snake


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, Described):
        module = type(value).__module__.removeprefix("wgrad.")
        return {"module": module, "class_name": value._class, "config": value.get_config(), "registered_name": None}
    if isinstance(value, (Tensor, Variable, np.ndarray, np.generic)):
        value = value.numpy() if isinstance(value, (Tensor, Variable)) else value
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return {"exp": "exponential"}.get(value.__name__, value.__name__)
    return value


class KerasVariable(Variable):
    """A variable as Keras has it: `value` is a property."""

    value = property(lambda self: self.read_value())

    def __new__(cls, initializer, shape=None, trainable=True, dtype=None, name=None, constraint=None, **options):
        if isinstance(shape, bool):
            shape, trainable = None, shape
        if callable(initializer) or isinstance(initializer, str):
            initializer = initial_value(initializer, shape or (), as_name(dtype) or "float32")
        made = super().__new__(cls, initializer, trainable, None if dtype is None else as_name(dtype), constraint=limit(constraint))
        if name is not None:
            made._name = name
        return made

    def __init__(self, *arguments, **options):
        pass


class Described:
    """An object of a class that Keras has, with its options."""

    _class = None
    _parameters = ()
    # What Keras takes for options that are not given.
    _defaults = {}

    def __init__(self, *arguments, **options):
        _by_name(self._class, self._parameters, arguments, options)
        self._options = {key: value for key, value in options.items() if value is not None}

    def get_config(self):
        """All options, as JSON has them."""
        return dict(self._defaults) | self._given_config()

    def _given_config(self):
        """The options that were given; the native part has the other ones."""
        return {key: plain(value) for key, value in self._options.items()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def _json(self):
        return json.dumps({"class_name": self._class, "config": self._given_config()})

    def __repr__(self):
        options = ", ".join(f"{key}={value!r}" for key, value in self._options.items())
        return f"{type(self).__name__}({options})"


def classes(module, base, table):
    """Makes a class for each line of `table`: its name and its parameters in order, each with Keras's default where it is not
    `None`. `Name=Alias` adds a second name."""
    made = {}
    for line in table.strip().splitlines():
        names, *described = line.split()
        name, *aliases = names.split("=")
        parameters = [part.partition("=")[0] for part in described]
        defaults = {part.partition("=")[0]: _default(part.partition("=")[2]) for part in described if part[-1] != "!"}
        parameters = [parameter.removesuffix("!") for parameter in parameters]
        body = {"_class": name, "_parameters": tuple(parameters), "_defaults": base._defaults | defaults, "__module__": module}
        kind = type(name, (base,), body)
        kind.__doc__ = f"Keras's `{name}`: {', '.join(parameters) or 'no options'}."
        for name in (name, *aliases):
            made[name] = kind
    return made


def _default(text):
    """The default of a parameter in a table: a literal of Python, or a word."""
    try:
        return ast.literal_eval(text or "None")
    except (SyntaxError, ValueError):
        return text


# ---- initializers, regularizers, constraints ----


class Initializer(Described):
    """First values of weights. A subclass of a program defines `__call__(shape, dtype)`."""

    def __call__(self, shape, dtype="float32"):
        return initial_value(self, shape, dtype)


INITIALIZERS = classes("wgrad.keras.initializers", Initializer, """
Zeros=zeros
Ones=ones
Constant=constant value=0.0
RandomNormal=random_normal mean=0.0 stddev=0.05 seed
RandomUniform=random_uniform minval=-0.05 maxval=0.05 seed
TruncatedNormal=truncated_normal mean=0.0 stddev=0.05 seed
VarianceScaling=variance_scaling scale=1.0 mode=fan_in distribution=truncated_normal seed
GlorotNormal=glorot_normal seed
GlorotUniform=glorot_uniform seed
HeNormal=he_normal seed
HeUniform=he_uniform seed
LecunNormal=lecun_normal seed
LecunUniform=lecun_uniform seed
Orthogonal=OrthogonalInitializer=orthogonal gain=1.0 seed
Identity=IdentityInitializer=identity gain=1.0
""")


Constant = INITIALIZERS["Constant"]


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
    seed = options.get("seed")
    draw = _wgrad.random
    if seed is not None:
        draw = (seed if isinstance(seed, SeedGenerator) else SeedGenerator(int(seed)))._native.draw
    if name == "zeros":
        return _wgrad.constant(0, dtype, shape)
    if name == "ones":
        return _wgrad.constant(1, dtype, shape)
    if name == "constant":
        value = convert_to_tensor(options.get("value", 0.0), dtype)
        if list(value._shape) == shape or not value._shape:
            return value if value._shape == tuple(shape) else _wgrad.constant(value.numpy(), dtype, shape)
        if int(np.prod(value._shape)) != int(np.prod(shape)):
            raise ValueError(f"Constant: the value is {list(value._shape)} for a weight of {shape}; give a number, or an array of this shape.")
        return _wgrad.constant(value.numpy().reshape(shape), dtype)
    if name in ("randomnormal", "normal"):
        return draw("normal", shape, options.get("mean", 0.0), options.get("stddev", 0.05))
    if name in ("randomuniform", "uniform"):
        return draw("uniform", shape, options.get("minval", -0.05), options.get("maxval", 0.05))
    if name == "truncatednormal":
        return draw("truncated", shape, options.get("mean", 0.0), options.get("stddev", 0.05))
    scales = {"glorot": (1.0, "fan_avg"), "he": (2.0, "fan_in"), "lecun": (1.0, "fan_in")}
    for prefix, (scale, mode) in scales.items():
        if name.startswith(prefix):
            return _scaled(draw, shape, scale, mode, name.endswith("uniform"))
    if name == "variancescaling":
        return _scaled(draw, shape, options.get("scale", 1.0), options.get("mode", "fan_in"), options.get("distribution") == "uniform")
    if name == "identity":
        return _wgrad.constant(np.eye(*shape, dtype="float32") * options.get("gain", 1.0), dtype)
    if isinstance(initializer, Initializer):
        return _wgrad.initial_values(json.dumps(plain(initializer)), shape)
    return initial_value(_known("initializer", INITIALIZERS, str(initializer)), shape, dtype)


def _scaled(draw, shape, scale, mode, is_uniform):
    area = int(np.prod(shape[:-2])) if len(shape) > 2 else 1
    fan_in = shape[-2] * area if len(shape) > 1 else (shape[0] if shape else 1)
    fan_out = shape[-1] * area if shape else 1
    fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
    scale /= max(1.0, fans[mode])
    if is_uniform:
        limit = (3 * scale) ** 0.5
        return draw("uniform", shape, -limit, limit)
    # The deviation of a normal distribution that is cut at two deviations.
    return draw("truncated", shape, 0.0, scale**0.5 / 0.87962566103423978)


class Regularizer(Described):
    """A penalty on weights. A subclass of a program defines `__call__(x)`."""

    def __call__(self, x):
        return _wgrad.NativeRegularizer(json.dumps(plain(self)))(x)


REGULARIZERS = classes("wgrad.keras.regularizers", Regularizer, """
L1=l1 l1=0.01
L2=l2 l2=0.01
L1L2=l1_l2 l1=0.0 l2=0.0
OrthogonalRegularizer=orthogonal_regularizer factor=0.01 mode=rows
""")


def penalty(value):
    """A regularizer, its name or a function, as a function of a tensor; those of Keras are native."""
    if isinstance(value, str):
        if value.lower() not in ("l1", "l2", "l1_l2"):
            raise ValueError(f"there is no regularizer '{value}'; use 'l1', 'l2', 'l1_l2' or one of keras.regularizers.")
        value = REGULARIZERS[value.lower()]()
    if isinstance(value, Regularizer) and value._class is not None:
        return _wgrad.NativeRegularizer(json.dumps(plain(value)))
    if callable(value):
        return value
    raise TypeError(f"{value!r} is no regularizer; use one of keras.regularizers, or a function of a tensor.")


class Constraint(Described):
    """What a weight must be after each step. A subclass of a program defines `__call__(w)`."""

    def __call__(self, w):
        if self._class is None:
            raise NotImplementedError(f"{type(self).__name__} has no method __call__.")
        return _wgrad.NativeConstraint(json.dumps(plain(self)))(w)


CONSTRAINTS = classes("wgrad.keras.constraints", Constraint, """
MaxNorm=max_norm max_value=2 axis=0
MinMaxNorm=min_max_norm min_value=0.0 max_value=1.0 rate=1.0 axis=0
NonNeg=non_neg
UnitNorm=unit_norm axis=0
""")


def limit(value):
    """A constraint, its name or a function, as a function of a tensor; those of Keras are native."""
    if value is None:
        return None
    if isinstance(value, str):
        value = _known("constraint", CONSTRAINTS, value)
    if isinstance(value, Constraint) and value._class is not None:
        return _wgrad.NativeConstraint(json.dumps(plain(value)))
    if callable(value):
        return value
    raise TypeError(f"{value!r} is no constraint; use one of keras.constraints, or a function of a tensor.")


def _known(what, table, name):
    """An object of the class of a name."""
    made = {**{_snake(key): cls for key, cls in table.items()}, **table}.get(name)
    if made is None:
        raise ValueError(f"there is no {what} '{name}'; there are {', '.join(sorted(table))}.")
    return made()


def getter(what, table, base):
    """Keras's function `get` of a module: an object by its name, its config, or as it is."""

    def get(identifier):
        if isinstance(identifier, type):
            return identifier()
        if identifier is None or isinstance(identifier, base) or callable(identifier):
            return identifier
        from .serialization import deserialize_keras_object, get_registered_object

        if isinstance(identifier, dict):
            return deserialize_keras_object(identifier)
        registered = get_registered_object(str(identifier))
        if registered is not None:
            return registered() if isinstance(registered, type) else registered
        return _known(what, table, str(identifier))

    return get


class Schedule(Described):
    """A learning rate that changes from step to step. Call it with a step."""

    def __init__(self, *arguments, **options):
        self.name = options.pop("name", None) or type(self).__name__
        super().__init__(*arguments, **options)

    def get_config(self):
        """All options, as JSON has them."""
        return super().get_config() | {"name": self.name}

    def __call__(self, step):
        if self._class is None:
            raise NotImplementedError(f"{type(self).__name__} has no method __call__.")
        if "_native" not in self.__dict__:
            self._native = _wgrad.NativeOptimizer(json.dumps({"class_name": "SGD", "config": {"learning_rate": plain(self)}}))
        self._native.set_iterations(int(step))
        return convert_to_tensor(self._native.learning_rate)


class LearningRate(float):
    """The learning rate of an optimizer: a number with the methods of a variable."""

    def __new__(cls, optimizer):
        made = super().__new__(cls, optimizer._native.learning_rate)
        made._optimizer = optimizer
        return made

    @property
    def value(self):
        return convert_to_tensor(float(self))

    def numpy(self):
        return np.float32(self)

    def assign(self, value):
        self._optimizer._native.set_learning_rate(float(value))
        return LearningRate(self._optimizer)


class Iterations(int):
    """The number of steps that an optimizer has made, with the methods of a variable."""

    def numpy(self):
        return np.int64(self)


SCHEDULES = classes("wgrad.keras.optimizers.schedules", Schedule, """
ExponentialDecay initial_learning_rate! decay_steps! decay_rate! staircase=False
PiecewiseConstantDecay boundaries! values!
PolynomialDecay initial_learning_rate! decay_steps! end_learning_rate=0.0001 power=1.0 cycle=False
InverseTimeDecay initial_learning_rate! decay_steps! decay_rate! staircase=False
CosineDecay initial_learning_rate! decay_steps! alpha=0.0 warmup_target warmup_steps=0
CosineDecayRestarts initial_learning_rate! first_decay_steps! t_mul=2.0 m_mul=1.0 alpha=0.0
""")


# ---- optimizers ----


class Optimizer(Described):
    """What changes variables along gradients, with the options that all optimizers have."""

    _defaults = {
        "weight_decay": None, "clipnorm": None, "global_clipnorm": None, "clipvalue": None, "use_ema": False, "ema_momentum": 0.99,
        "ema_overwrite_frequency": None, "loss_scale_factor": None, "gradient_accumulation_steps": None,
    }

    def __init__(self, *arguments, **options):
        self._given_name = options.pop("name", None)
        if isinstance(options.get("learning_rate"), dict):
            # A schedule in a config.
            options["learning_rate"] = schedule_of(options["learning_rate"])
        super().__init__(*arguments, **options)
        self._native = _wgrad.NativeOptimizer(self._json())

    def get_config(self):
        """All options, with the learning rate as it is now."""
        config = {"name": self.name} | super().get_config()
        if not isinstance(self._options.get("learning_rate"), Schedule):
            config["learning_rate"] = float(self.learning_rate)
        return config

    @classmethod
    def _of(cls, native):
        optimizer = Optimizer.__new__(Optimizer)
        optimizer._options, optimizer._native, optimizer._given_name = {}, native, None
        return optimizer

    @property
    def variables(self):
        """What the optimizer keeps for each variable, such as momentums."""
        return [variable for _, variable, _ in self._native.variables()]

    def _state(self):
        """The native optimizer whose state files have, and what scales its loss."""
        return self._native, None

    def _size(self):
        """How many numbers Keras's optimizer has, and their bytes: it has variables for the number of steps and the learning rate."""
        variables = self.variables
        counts = [int(np.prod(variable._shape)) for variable in variables]
        return sum(counts) + 2, sum(count * np.dtype(v._dtype).itemsize for count, v in zip(counts, variables)) + 8 + 4

    def scale_loss(self, loss):
        """The loss of which a step computes gradients; a step divides them again."""
        return self._native.scale_loss(loss)

    def apply_gradients(self, grads_and_vars, name=None):
        """A step: changes each variable by its gradient. `grads_and_vars` has pairs of them."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("apply_gradients: there is no gradient.")
        self._native.apply([g if g is None else convert_to_tensor(g) for g, _ in pairs], [v for _, v in pairs])
        return self.iterations

    def build(self, variables):
        """Creates the slots of the variables before the first step, such as for a checkpoint that is to be complete."""
        self._native.build(variables := list(variables))
        self._variables = variables

    @property
    def built(self):
        return hasattr(self, "_variables") or self.iterations > 0

    def apply(self, grads, trainable_variables=None):
        """A step with a gradient for each variable; without variables, for those of `build`."""
        grads = list(grads)
        variables = getattr(self, "_variables", None) if trainable_variables is None else list(trainable_variables)
        if variables is None:
            raise ValueError("apply: give trainable_variables, or call build with them before.")
        if len(grads) != len(variables):
            raise ValueError(f"apply: there are {len(grads)} gradients for {len(variables)} variables.")
        self.apply_gradients(zip(grads, variables))

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
        return Iterations(self._native.iterations)

    @property
    def name(self):
        return getattr(self, "_given_name", None) or (_snake(self._class) if self._class else self._native.name)

    @property
    def learning_rate(self):
        return LearningRate(self)

    @learning_rate.setter
    def learning_rate(self, value):
        self._native.set_learning_rate(float(value))

    lr = learning_rate


OPTIMIZERS = classes("wgrad.keras.optimizers", Optimizer, """
Adadelta learning_rate=0.001 rho=0.95 epsilon=1e-07
Adafactor learning_rate=0.001 beta_2_decay=-0.8 epsilon_1=1e-30 epsilon_2=0.001 clip_threshold=1.0 relative_step=True
Adagrad learning_rate=0.001 initial_accumulator_value=0.1 epsilon=1e-07
Adam learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 amsgrad=False
AdamW learning_rate=0.001 weight_decay=0.004 beta_1=0.9 beta_2=0.999 epsilon=1e-07 amsgrad=False
Adamax learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07
Ftrl learning_rate=0.001 learning_rate_power=-0.5 initial_accumulator_value=0.1 l1_regularization_strength=0.0 \
l2_regularization_strength=0.0 l2_shrinkage_regularization_strength=0.0 beta=0.0
Lamb learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07
Lion learning_rate=0.001 beta_1=0.9 beta_2=0.99
Muon learning_rate=0.001 adam_beta_1=0.9 adam_beta_2=0.999 adam_weight_decay=0.004 epsilon=1e-07 weight_decay=0.004
Nadam learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07
RMSprop learning_rate=0.001 rho=0.9 momentum=0.0 epsilon=1e-07 centered=False
SGD learning_rate=0.01 momentum=0.0 nesterov=False
""")
# Those that stand behind the shared options in Keras.
OPTIMIZERS["Muon"]._defaults |= {
    "exclude_layers": [], "exclude_embeddings": True, "muon_a": 3.4445, "muon_b": -4.775, "muon_c": 2.0315, "adam_lr_ratio": 1,
    "momentum": 0.95, "ns_steps": 5, "nesterov": True, "rms_rate": 0.2,
}


def schedule_of(config):
    """The schedule of a config."""
    if config.get("class_name") not in SCHEDULES:
        raise ValueError(f"there is no schedule '{config.get('class_name')}'; there are {', '.join(SCHEDULES)}.")
    return SCHEDULES[config["class_name"]].from_config(config.get("config", {}))


def get_optimizer(value):
    """An optimizer, its name or its config."""
    if isinstance(value, Optimizer):
        return value
    if isinstance(value, dict):
        if value.get("class_name") not in OPTIMIZERS:
            raise ValueError(f"there is no optimizer '{value.get('class_name')}'; there are {', '.join(OPTIMIZERS)}.")
        return OPTIMIZERS[value["class_name"]].from_config(value.get("config", {}))
    if isinstance(value, str):
        known = {name.lower(): cls for name, cls in OPTIMIZERS.items()}
        return known[value.lower()]() if value.lower() in known else Optimizer._of(_wgrad.NativeOptimizer(value))
    raise ValueError(f"compile: {value!r} is no optimizer; use a name or one of keras.optimizers.")


# ---- losses ----


def as_targets(y_true, y_pred):
    """Targets as a loss of a program gets them: numbers of the predictions' dtype."""
    y_true, y_pred = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    return y_true._cast(y_pred._dtype) if y_pred._dtype.startswith("float") and y_true._dtype != y_pred._dtype else y_true


class Loss(Described):
    """A loss. A subclass of a program defines `call(y_true, y_pred)`."""

    _parameters = ("name", "reduction")

    def __init__(self, *arguments, **options):
        _by_name(type(self).__name__, self._parameters, arguments, options)
        self.name = options.pop("name", None) or {"Huber": "huber_loss"}.get(self._class) or _snake(type(self).__name__)
        if options.get("reduction", "") is None:
            options["reduction"] = "none"
        self.reduction = options.get("reduction", "sum_over_batch_size")
        options.pop("dtype", None)
        super().__init__(**options)
        self._native = _wgrad.NativeLoss(self._json()) if self._class else None

    def get_config(self):
        """All options, with the name."""
        return super().get_config() | {"name": self.name, "reduction": self.reduction}

    def __call__(self, y_true, y_pred, sample_weight=None):
        if self._native is not None:
            return self._native(y_true, y_pred, sample_weight)
        from ..ops import FUNCTIONS

        losses = self.call(as_targets(y_true, y_pred), convert_to_tensor(y_pred))
        if sample_weight is not None:
            losses = losses * sample_weight
        if self.reduction == "none":
            return losses
        return FUNCTIONS["math.reduce_sum" if self.reduction == "sum" else "math.reduce_mean"](losses)

    def call(self, y_true, y_pred):
        raise NotImplementedError(f"{type(self).__name__} has no method call.")


LOSSES = classes("wgrad.keras.losses", Loss, """
BinaryCrossentropy from_logits=False label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size
BinaryFocalCrossentropy apply_class_balancing=False alpha=0.25 gamma=2.0 from_logits=False label_smoothing=0.0 axis=-1 \
reduction=sum_over_batch_size
CategoricalCrossentropy from_logits=False label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size
CategoricalFocalCrossentropy alpha=0.25 gamma=2.0 from_logits=False label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size
CategoricalGeneralizedCrossEntropy q=0.5 reduction=sum_over_batch_size
CategoricalHinge reduction=sum_over_batch_size
Circle gamma=80.0 margin=0.4 remove_diagonal=True reduction=sum_over_batch_size
CosineSimilarity axis=-1 reduction=sum_over_batch_size
Dice reduction=sum_over_batch_size name axis
Hinge reduction=sum_over_batch_size
Huber delta=1.0 reduction=sum_over_batch_size
KLDivergence reduction=sum_over_batch_size
LogCosh reduction=sum_over_batch_size
MeanAbsoluteError reduction=sum_over_batch_size
MeanAbsolutePercentageError reduction=sum_over_batch_size
MeanSquaredError reduction=sum_over_batch_size
MeanSquaredLogarithmicError reduction=sum_over_batch_size
Poisson reduction=sum_over_batch_size
SparseCategoricalCrossentropy from_logits=False ignore_class reduction=sum_over_batch_size axis=-1
SquaredHinge reduction=sum_over_batch_size
Tversky alpha=0.5 beta=0.5 reduction=sum_over_batch_size name axis
""")


class SeedGenerator:
    """A state of random numbers: `keras.random.SeedGenerator`."""

    def __init__(self, seed=None, name=None):
        if seed is None:
            seed = int(_wgrad.random("uniform", [], 0, 2**31 - 1, True).numpy())
        if not isinstance(seed, int) or seed < 0:
            raise ValueError(f"SeedGenerator: the seed is {seed!r}; it must be a whole number that is not negative.")
        self.seed, self._native = seed, _wgrad.NativeGenerator(seed)

    def get_config(self):
        return {"seed": self.seed}


def function_of(class_name, name):
    """Keras's function of a loss: the value for each example."""

    def loss(y_true, y_pred, **options):
        return LOSSES[class_name](**options, reduction="none")(y_true, y_pred)

    loss.__name__ = loss.__qualname__ = name
    return loss
