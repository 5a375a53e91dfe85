"""Dtype policies: in which dtype layers compute, and which dtype their weights have; optimizers for losses that are scaled."""

import contextlib

from .. import _wgrad
from ..dtypes import as_name
from .objects import OPTIMIZERS, Optimizer, get_optimizer
from .structure import _context

# The policies that a device can compute with. Layers of other dtypes, such as of integers, have no weights.
_FLOATS = ("float32", "float16", "mixed_float16")
_OTHERS = ("int32", "uint32", "uint8", "bool", "int64", "string")


class DTypePolicy:
    """`DTypePolicy("mixed_float16")`: layers compute in `compute_dtype` and store weights in `variable_dtype`."""

    def __init__(self, name=None):
        name = _wgrad.dtype_policy() if name is None else as_name(name)
        if name in ("bfloat16", "mixed_bfloat16", "float64", "mixed_float64"):
            raise ValueError(
                f"DTypePolicy: '{name}': devices have no {name.removeprefix('mixed_')}. Use 'float32', which has the same range as "
                "bfloat16, or 'mixed_float16'."
            )
        if name not in _FLOATS + _OTHERS:
            raise ValueError(f"DTypePolicy: there is no policy '{name}'; there are {', '.join(_FLOATS)}.")
        self.name = name

    @property
    def compute_dtype(self):
        return self.name.removeprefix("mixed_")

    @property
    def variable_dtype(self):
        return "float32" if self.name.startswith("mixed_") else self.name

    @property
    def quantization_mode(self):
        return None

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __eq__(self, other):
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'<DTypePolicy "{self.name}">'


def dtype_policy():
    """The policy of layers that are made now."""
    return DTypePolicy()


def set_dtype_policy(policy):
    """Sets the policy of layers that are made from now on: a `DTypePolicy` or its name."""
    policy = policy_of(policy)
    if policy.name not in _FLOATS:
        raise ValueError(f"set_dtype_policy: layers do not compute in {policy.name}; use one of {', '.join(_FLOATS)}.")
    _wgrad.set_dtype_policy(policy.name)


def policy_of(value):
    """A policy, its name or its config, or a dtype, as a policy; `None` stands for the one that is set."""
    if isinstance(value, DTypePolicy):
        return value
    if isinstance(value, dict):
        return DTypePolicy.from_config(value["config"])
    return DTypePolicy(getattr(value, "name", value))


@contextlib.contextmanager
def _reading_as(dtype):
    before, _context.autocast = getattr(_context, "autocast", None), dtype
    _wgrad.set_autocast(dtype)
    try:
        yield
    finally:
        _context.autocast = before
        _wgrad.set_autocast(before)


_AS_THEY_ARE = contextlib.nullcontext()


def weights_in(policy):
    """A `with` block in which a layer of a program reads its weights in the dtype in which it computes."""
    wanted = policy.compute_dtype if policy.compute_dtype != policy.variable_dtype else None
    return _AS_THEY_ARE if wanted == getattr(_context, "autocast", None) else _reading_as(wanted)


class LossScaleOptimizer(Optimizer):
    """Lets another optimizer train a model that computes in `float16`: the loss is multiplied by a scale, so that small gradients do
    not become 0. A step with an infinite gradient changes nothing but halves the scale."""

    _class = "LossScaleOptimizer"
    _parameters = ("inner_optimizer", "initial_scale", "dynamic_growth_steps")

    def __init__(self, inner_optimizer, initial_scale=2.0**15, dynamic_growth_steps=2000, name=None, **options):
        options = {key: value for key, value in options.items() if value is not None and self._defaults.get(key, value) != value}
        if options:
            raise ValueError(f"LossScaleOptimizer: '{next(iter(options))}' is an option of the inner optimizer; give it there.")
        inner_optimizer = get_optimizer(inner_optimizer)
        if isinstance(inner_optimizer, LossScaleOptimizer):
            raise ValueError("LossScaleOptimizer: the inner optimizer scales the loss already.")
        self.inner_optimizer, self._given_name = inner_optimizer, name
        self.initial_scale, self.dynamic_growth_steps = float(initial_scale), int(dynamic_growth_steps)
        self._options = {}
        self._native = inner_optimizer._native.scaling(self.initial_scale, self.dynamic_growth_steps)

    def _state(self):
        return self.inner_optimizer._native, self._native

    @property
    def dynamic_scale(self):
        """The scale of the next step."""
        return self._native.dynamic_scale()

    def _size(self):
        # Keras counts the steps and the learning rate of both optimizers, and has the counter in 64 bits.
        count, size = super()._size()
        return count + 2, size + 8 + 4 + 4

    def get_config(self):
        """All options, with those of the inner optimizer."""
        inner = self.inner_optimizer
        return {
            "name": self.name, **self._defaults, "inner_optimizer": {
                "module": "keras.optimizers", "class_name": inner._class, "config": inner.get_config(), "registered_name": None,
            },
            "initial_scale": self.initial_scale, "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    def __repr__(self):
        return f"LossScaleOptimizer({self.inner_optimizer!r})"


# Where Keras exports it.
LossScaleOptimizer.__module__ = "wgrad.keras.optimizers"
OPTIMIZERS["LossScaleOptimizer"] = LossScaleOptimizer
