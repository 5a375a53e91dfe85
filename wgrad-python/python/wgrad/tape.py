"""Gradient tapes, functions with gradients of their own, and traced functions."""

import contextlib
import functools
import inspect
import threading
import weakref

import numpy as np

from . import _wgrad
from .errors import FailedPreconditionError, InvalidTypeError
from .strings import StringScalar
from .tensor import Tensor, Variable, convert_to_tensor


class UnconnectedGradients:
    NONE = "none"
    ZERO = "zero"


def _flat(structure):
    """The leaves of lists, tuples and dicts, and a function that builds the same structure of other leaves."""
    if isinstance(structure, (list, tuple)):
        parts = [_flat(part) for part in structure]

        def build(leaves, kind=type(structure)):
            made = [rebuild(leaves) for _, rebuild in parts]
            return kind(*made) if hasattr(kind, "_fields") else kind(made)

        return [leaf for leaves, _ in parts for leaf in leaves], build
    if isinstance(structure, dict):
        # In the order of the keys, as in TensorFlow: dicts with the same keys have the same leaves.
        keys = list(structure)
        try:
            order = sorted(keys)
        except TypeError:
            order = keys
        leaves, build_list = _flat([structure[key] for key in order])

        def build_dict(leaves):
            made = dict(zip(order, build_list(leaves)))
            return {key: made[key] for key in keys}

        return leaves, build_dict
    if hasattr(type(structure), "_wgrad_flat"):
        return structure._wgrad_flat()
    return [structure], lambda leaves: next(leaves)


class GradientTape:
    """Records what is computed inside its `with` block, for gradients."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._options = persistent, watch_accessed_variables
        self._thread = threading.get_ident()
        self._tape = None
        # The variables that the program watches itself.
        self._watched = []

    def __enter__(self):
        self._thread = threading.get_ident()
        if self._tape is not None:
            raise ValueError("GradientTape: the tape was used already; make another one.")
        self._tape = _wgrad.Tape(*self._options)
        return self

    def __exit__(self, *error):
        self._tape.stop()

    def _opened(self):
        if self._tape is None:
            raise ValueError("GradientTape: open the tape first: with tf.GradientTape() as tape.")
        if self._thread != threading.get_ident():
            raise RuntimeError("GradientTape: a tape belongs to the thread that made it; compute its gradients there.")
        return self._tape

    def watch(self, tensor):
        for one in _flat(tensor)[0]:
            self._opened().watch(one)
            if isinstance(one, Variable) and not any(one is known for known in self._watched):
                self._watched.append(one)

    def watched_variables(self):
        made = list(self._watched)
        made += [one for one in self._opened().watched_variables() if not any(one._is(known) for known in self._watched)]
        return tuple(made)

    def reset(self):
        self._opened().reset()
        self._watched.clear()

    @contextlib.contextmanager
    def stop_recording(self):
        """Records nothing inside the `with` block."""
        self._opened().pause()
        try:
            yield
        finally:
            self._opened().resume()

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        """The gradients of the sum of the targets, in the structure of the sources; `None` without a connection."""
        targets, _ = _flat(target)
        leaves, build = _flat(sources)
        given = None if output_gradients is None else [convert_to_tensor(g) for g in _flat(output_gradients)[0]]
        zeros = unconnected_gradients == UnconnectedGradients.ZERO
        return build(iter(self._opened().gradient(targets, leaves, given, zeros)))

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, **options):
        """The Jacobian of each example: the first axis of both is the batch."""
        made = self._opened().batch_jacobian(target, source)
        if made is None and unconnected_gradients == UnconnectedGradients.ZERO:
            from .ops import zeros

            made = zeros([*target._shape, *source._shape[1:]], source._dtype)
        return made

    def jacobian(self, target, sources, **options):
        leaves, build = _flat(sources)
        return build(iter(self._opened().jacobian(target, leaves)))


def custom_gradient(f):
    """A function whose gradient is the one that `f` returns with its result."""

    @functools.wraps(f)
    def call(*arguments):
        return _wgrad.custom_gradient(f, [convert_to_tensor(x) for x in arguments])

    return call


def grad_pass_through(f):
    """TensorFlow's `tf.grad_pass_through`: a function with the values of `f`, whose gradient is the one of its result, unchanged."""

    @functools.wraps(f)
    def call(x, **options):
        return _wgrad.custom_gradient(lambda x: (f(x, **options), lambda dy: dy), [convert_to_tensor(x)])

    return call


def recompute_grad(f):
    """TensorFlow's `tf.recompute_grad`: a function with the values and the gradients of `f`. What `f` computes is kept for its gradient, and
    not computed again."""

    @functools.wraps(f)
    def call(*arguments, **options):
        return f(*arguments, **options)

    return call


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients="none"):
    """TensorFlow's `tf.gradients`, which is for graphs: it is an error."""
    raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """TensorFlow's `tf.hessians`, which is for graphs: it is an error."""
    raise RuntimeError("tf.hessians is not supported when eager execution is enabled. Use two tf.GradientTapes, and the jacobian of a gradient.")


def gradients_function(f):
    """The function that returns the gradients of `f` with respect to its arguments: early TensorFlow's `tfe.gradients_function`."""

    @functools.wraps(f)
    def call(*arguments):
        tensors = [convert_to_tensor(x) for x in arguments]
        with GradientTape() as tape:
            tape.watch(tensors)
            y = f(*tensors)
        return tape.gradient(y, tensors)

    return call


class TensorSpec:
    """The shape and the dtype of an argument of a function."""

    def __init__(self, shape, dtype="float32", name=None):
        from .dtypes import TensorShape, as_dtype

        self.shape, self.dtype, self.name = TensorShape(shape), as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The shape and the dtype of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, spec_or_tensor):
        """Whether a tensor, or all tensors of another spec, fit. Devices hold 32 bits, so `int64` fits `int32`."""
        other = spec_or_tensor
        narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
        one, two = (narrow.get(kind.name, kind.name) for kind in (self.dtype, other.dtype))
        return one == two and len(other.shape) == len(self.shape) and all(
            wanted is None or wanted == size for wanted, size in zip(self.shape, other.shape)
        )

    # Names what a spec is for other modules.
    _accepts = is_compatible_with

    def _named(self, name):
        return self if self.name else TensorSpec(self.shape, self.dtype, name)

    def __eq__(self, other):
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (tuple(self.shape), self.dtype, self.name) == (tuple(other.shape), other.dtype, other.name)

    def __hash__(self):
        return hash((tuple(self.shape), self.dtype, self.name))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class _Structure:
    """What a traced function returned around its tensors."""

    def __init__(self, result):
        leaves, self._build = _flat(result)
        self.tensors, self._plan = [], []
        for leaf in leaves:
            if isinstance(leaf, (Tensor, Variable, np.ndarray, float, int, complex)) and not isinstance(leaf, bool):
                self._plan.append((True, None))
                self.tensors.append(convert_to_tensor(leaf))
            else:
                self._plan.append((False, leaf))

    def note(self, tensors):
        """Notes what the tensors look like."""
        self._specs = [TensorSpec(x._shape, x._dtype) for x in tensors]

    def specs(self):
        """The structure with specs for the tensors."""
        return self.rebuild(self._specs)

    def rebuild(self, tensors):
        tensors = iter(tensors)
        return self._build(iter([next(tensors) if is_tensor else leaf for is_tensor, leaf in self._plan]))


# Whether functions are called without a trace.
_eagerly = False
# How many functions a thread traces.
_TRACES = threading.local()


def run_functions_eagerly(run_eagerly):
    """TensorFlow's `tf.config.run_functions_eagerly`: calls functions of `tf.function` as they are, to debug them."""
    global _eagerly
    _eagerly = bool(run_eagerly)


def functions_run_eagerly():
    """Whether `run_functions_eagerly` is on."""
    return _eagerly


class Function:
    """A Python function that is traced once for each signature of its arguments."""

    def __init__(self, f, input_signature=None, reduce_retracing=False, autograph=True, owner=None):
        # `owner` is a weak reference to the first argument of a method.
        self._source, self._owner, self._autograph = f, owner, autograph
        self.python_function = self._of_owner(f)
        self._traced = self.python_function
        functools.update_wrapper(self, f)
        self._signature, self._reduce_retracing = input_signature, reduce_retracing
        self._owners = {}
        # What each trace returned. Not of the function itself, which would then live as long as its native part.
        structures = self._structures = {}

        def body(rebuild, tensors):
            _TRACES.depth = getattr(_TRACES, "depth", 0) + 1
            try:
                made = _Structure(rebuild(tensors))
            finally:
                _TRACES.depth -= 1
            tensors, made.tensors = made.tensors, None
            made.note(tensors)
            structures[rebuild.key] = made
            return tensors, made

        self._native = _wgrad.NativeFunction(body, reduce_retracing)

    def __call__(self, *arguments, **named):
        if _eagerly:
            return self.python_function(*arguments, **named)
        prepared = self._prepared(arguments, named)
        if prepared is None:
            return self.python_function(*arguments, **named)
        results, structure = self._converting(self._native.call, *prepared)
        return structure.rebuild(results)

    def _prepared(self, arguments, named):
        """The function that rebuilds the arguments, their tensors, and a text that stands for what else they are. `None` if there are strings or
        ragged tensors, which no trace has: the function then runs as it is written."""
        leaves, build = _flat((arguments, named))
        tensors, key = [], []
        for leaf in leaves:
            if isinstance(leaf, (Tensor, np.ndarray, np.generic)):
                if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "SUO":
                    return None
                tensor = convert_to_tensor(leaf)
                tensors.append(tensor)
                key.append(f"{tensor._dtype}{tensor._shape}")
            elif isinstance(leaf, StringScalar) or type(leaf).__name__ == "RaggedTensor":
                return None
            elif isinstance(leaf, (int, float, str, bytes, bool, type(None))):
                key.append(f"{type(leaf).__name__}:{leaf!r}")
            else:
                # An object is an argument like a constant; it stays alive, so that no other one gets its address.
                self._owners[id(leaf)] = leaf
                key.append(f"{type(leaf).__name__}@{id(leaf)}")
        if self._signature is not None:
            self._check(tensors)
        is_tensor = [isinstance(leaf, (Tensor, np.ndarray, np.generic)) for leaf in leaves]

        def rebuild(tensors):
            tensors = iter(tensors)
            made = build(iter([next(tensors) if yes else leaf for yes, leaf in zip(is_tensor, leaves)]))
            return self._traced(*made[0], **made[1])

        rebuild.key = ", ".join(key)
        return rebuild, tensors, rebuild.key

    def _converting(self, call, *arguments):
        """The result of a call that traces. If that needs the values of tensors, once more with converted statements."""
        try:
            return call(*arguments)
        except FailedPreconditionError:
            if not self._converts():
                raise
        # Outside of the handler, whose error would appear in front of those of the converted function.
        return call(*arguments)

    def _trace(self, arguments, named):
        """Traces the function for these arguments, unless it has been; the text that stands for them."""
        prepared = self._prepared(arguments, named)
        if prepared is None:
            raise InvalidTypeError("a function of strings has no trace: it runs as it is written, on the host. Call the function itself.")
        rebuild, tensors, key = prepared
        if key not in self._structures:
            self._converting(self._native.trace, rebuild, tensors, key)
        return key

    def _inline(self, arguments, named):
        """The result of the Python function, in the trace of another one."""
        return self._converting(lambda: self._traced(*arguments, **named))

    def _parameters(self):
        """The parameters of the Python function; of a method without the first one."""
        made = inspect.signature(self._source)
        return made if self._owner is None else made.replace(parameters=list(made.parameters.values())[1:])

    def get_concrete_function(self, *args, **kwargs):
        """The trace for these arguments: tensors, or `tf.TensorSpec`s in their place. Without arguments, that of the
        `input_signature`."""
        from .concrete_function import ConcreteFunction

        if not args and not kwargs and self._signature is not None:
            args = tuple(self._signature)
        return ConcreteFunction(self, args, kwargs)

    @property
    def input_signature(self):
        """The specs that all calls must fit, or `None`."""
        return None if self._signature is None else tuple(self._signature)

    def _of_owner(self, f):
        """The function without the first argument of a method."""
        if self._owner is None:
            return f
        owner = self._owner

        @functools.wraps(f)
        def method(*arguments, **named):
            return f(owner(), *arguments, **named)

        return method

    def _converts(self):
        """Converts statements on values of tensors, once."""
        if not self._autograph or self._traced is not self.python_function or not inspect.isfunction(self._source):
            return False
        from . import autograph

        made = autograph.convert(self._source)
        if made is None:
            return False
        made = self._of_owner(made)
        self._traced = lambda *arguments, **named: autograph.checked(made(*arguments, **named))
        return True

    def _check(self, tensors):
        if len(tensors) != len(self._signature) or not all(
            spec.is_compatible_with(x) for spec, x in zip(self._signature, tensors)
        ):
            shown = ", ".join(f"{x._dtype}{x._shape}" for x in tensors)
            raise ValueError(
                f"function: the arguments ({shown}) do not fit the input_signature ({list(self._signature)})."
            )

    def __get__(self, owner, kind=None):
        if owner is None:
            return self
        # Each object has traces of its own, which end with it.
        functions = owner.__dict__.setdefault("_wgrad_functions", {})
        if self not in functions:
            functions[self] = Function(
                self._source, self._signature, self._reduce_retracing, self._autograph, weakref.ref(owner)
            )
        return functions[self]

    @property
    def graph_text(self):
        """The traced calls, as text."""
        return self._native.graph_text()

    def experimental_get_tracing_count(self):
        return self._native.tracing_count()


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, **options):
    """Makes a traced function of `func`; also as a decorator, with or without arguments."""
    if func is None:
        return lambda f: function(f, input_signature, autograph, reduce_retracing=reduce_retracing)
    return Function(func, input_signature, reduce_retracing, autograph)
