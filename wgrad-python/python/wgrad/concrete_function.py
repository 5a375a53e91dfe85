"""`ConcreteFunction`: one trace of a `tf.function`, from `get_concrete_function`."""

import inspect

import numpy as np

from .control_flow import layout
from .errors import FailedPreconditionError, InvalidArgumentError
from .tape import TensorSpec, _flat
from .tensor import Tensor, Variable, convert_to_tensor

_TENSORS = (Tensor, Variable, np.ndarray, np.generic)


def _spec(leaf):
    """A spec of its own for each tensor; other leaves are part of the trace."""
    if isinstance(leaf, TensorSpec):
        return TensorSpec(leaf.shape, leaf.dtype, leaf.name)
    if isinstance(leaf, _TENSORS):
        leaf = convert_to_tensor(leaf)
        return TensorSpec(leaf._shape, leaf._dtype)
    return leaf


def _mapped(function, structure):
    leaves, build = _flat(structure)
    return build(iter([function(leaf) for leaf in leaves]))


def _specs_in(structure):
    return [leaf for leaf in _flat(structure)[0] if isinstance(leaf, TensorSpec)]


def _text(structure):
    """A structure of specs as TensorFlow writes it."""
    if isinstance(structure, dict):
        return "Dict[" + ", ".join(f"[{key!r}, {_text(part)}]" for key, part in structure.items()) + "]"
    if isinstance(structure, (list, tuple)):
        return ("List" if isinstance(structure, list) else "Tuple") + "[" + ", ".join(map(_text, structure)) + "]"
    return repr(structure) if isinstance(structure, TensorSpec) else f"Literal[{structure!r}]"


def _leaf_names(name, structure):
    """A name for each leaf, as TensorFlow makes them: `p_a`, `p_1`."""
    if isinstance(structure, dict):
        return [one for key in _keys(structure) for one in _leaf_names(f"{name}_{key}", structure[key])]
    if isinstance(structure, (list, tuple)):
        return [one for at, part in enumerate(structure) for one in _leaf_names(f"{name}_{at}", part)]
    return [name]


def _keys(structure):
    # The order of leaves.
    try:
        return sorted(structure)
    except TypeError:
        return list(structure)


class ConcreteFunction:
    """A `tf.function` for arguments of these specs, with the values of the arguments that are no tensors.

    It is called with all arguments, or with the tensors only, by position or by name. A size that is `None` may be any; each size is
    traced when it is called first.
    """

    def __init__(self, function, arguments, named):
        self._function = function
        self._parameters = function._parameters()
        # As they are given, so that calls of the function with the same arguments have the same trace.
        self._given = _mapped(_spec, (tuple(arguments), dict(named)))
        try:
            bound = self._parameters.bind(*self._given[0], **self._given[1])
        except TypeError as error:
            raise TypeError(f"get_concrete_function: {error}; the parameters are {self._parameters}.") from None
        bound.apply_defaults()
        self._all = dict(bound.arguments)
        self._specs = _specs_in(list(self._all.values()))
        self._key = None
        if all(None not in list(spec.shape) for spec in self._specs):
            zeros = [convert_to_tensor(np.zeros(list(spec.shape)), spec.dtype) for spec in self._specs]
            self._key = function._trace(*self._with(zeros))

    def _with(self, tensors):
        """The arguments with these tensors, which are in the order of the parameters."""
        by_spec = {id(spec): tensor for spec, tensor in zip(self._specs, tensors)}
        return _mapped(lambda leaf: by_spec[id(leaf)] if isinstance(leaf, TensorSpec) else leaf, self._given)

    @property
    def name(self):
        """The name of the function."""
        return self._function.__name__

    @property
    def structured_input_signature(self):
        """The specs and values of the arguments: those by position, and a dict of those by name."""
        positional, named = [], {}
        for name, value in self._all.items():
            names = iter(_leaf_names(name, value))
            value = _mapped(lambda leaf: leaf._named(next(names)) if isinstance(leaf, TensorSpec) else (next(names), leaf)[1], value)
            kind = self._parameters.parameters[name].kind
            if kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = value
            elif kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                positional.extend(value)
            else:
                positional.append(value)
        return tuple(positional), named

    @property
    def structured_outputs(self):
        """The specs of what it returns."""
        if self._key is None:
            raise FailedPreconditionError(
                f"{self.name}: what it returns is not known, as sizes of its arguments are open: {_text(list(self._all.values()))}. Give "
                "all sizes."
            )
        return self._function._structures[self._key].specs()

    @property
    def output_shapes(self):
        """The shapes of what it returns."""
        return _mapped(lambda leaf: leaf.shape if isinstance(leaf, TensorSpec) else leaf, self.structured_outputs)

    @property
    def output_dtypes(self):
        """The dtypes of what it returns."""
        return _mapped(lambda leaf: leaf.dtype if isinstance(leaf, TensorSpec) else leaf, self.structured_outputs)

    def _flat_names(self):
        names = [one for name, value in self._all.items() for one in _leaf_names(name, value)]
        leaves = _flat(list(self._all.values()))[0]
        return [leaf.name or name for name, leaf in zip(names, leaves) if isinstance(leaf, TensorSpec)]

    def _structured(self, arguments, named):
        """The tensors of a call with the structure of the arguments, or what is wrong with it."""
        try:
            given = self._parameters.bind_partial(*arguments, **named).arguments
        except TypeError as error:
            return str(error)
        tensors = []
        for name, wanted in self._all.items():
            if name not in given:
                if _specs_in(wanted):
                    return f"the argument '{name}' is missing"
                continue
            if layout(given[name]) != layout(wanted):
                return f"the argument '{name}' has the structure {layout(given[name])}, and the trace {layout(wanted)}"
            for leaf, value in zip(_flat(wanted)[0], _flat(given[name])[0]):
                if isinstance(leaf, TensorSpec):
                    tensors.append(value)
                elif leaf is not value and (isinstance(value, _TENSORS) or isinstance(leaf, _TENSORS) or leaf != value):
                    return f"the function was traced for {name}={leaf!r}, and it is {value!r}"
        return tensors

    def __call__(self, *arguments, **named):
        tensors = self._structured(arguments, named)
        if isinstance(tensors, str):
            names = self._flat_names()
            by_name = dict(zip(names, arguments)) | named
            is_flat = len(arguments) + len(named) == len(names) and set(by_name) == set(names)
            if not is_flat or not all(isinstance(value, _TENSORS) for value in by_name.values()):
                raise TypeError(f"{self.name}: {tensors}. It takes {self._signature()}, or the tensors alone: {', '.join(names)}.")
            tensors = [by_name[name] for name in names]
        made = [
            convert_to_tensor(x) if isinstance(x, _TENSORS) else convert_to_tensor(x, spec.dtype) for x, spec in zip(tensors, self._specs)
        ]
        for at, (x, spec) in enumerate(zip(made, self._specs)):
            if not spec.is_compatible_with(x):
                raise InvalidArgumentError(
                    f"{self.name}: tensor {at} is {TensorSpec(x._shape, x._dtype)!r}, and the function was traced for {spec!r}."
                )
        arguments, named = self._with(made)
        return self._function(*arguments, **named)

    def _as_function(self):
        """A function of the tensors alone, which a SavedModel can have as a signature."""
        from .tape import Function

        def call(*tensors):
            arguments, named = self._with(tensors)
            return self._function._inline(arguments, named)

        return Function(call, [spec._named(name) for spec, name in zip(self._specs, self._flat_names())])

    # -- texts --

    def _signature(self):
        parts, is_named = [], False
        for name, value in self._all.items():
            if self._parameters.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
                parts.append("*")
                is_named = True
            parts.append(f"{name}: {_text(value)}")
        return f"({', '.join(parts)})"

    def _output(self):
        return "not known, as sizes are open" if self._key is None else _text(self.structured_outputs)

    def pretty_printed_signature(self, verbose=True):
        """The arguments and what is returned, as text."""
        if not verbose:
            return f"{self.name}{self._signature()} -> {self._output()}"
        kinds = {name: parameter.kind.name for name, parameter in self._parameters.parameters.items()}
        lines = ["Input Parameters:", *(f"  {name} ({kinds[name]}): {_text(value)}" for name, value in self._all.items())]
        return "\n".join([*lines, "Output Type:", f"  {self._output()}"])

    def __str__(self):
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self):
        return f"<ConcreteFunction {self._signature()} -> {self._output()}>"
