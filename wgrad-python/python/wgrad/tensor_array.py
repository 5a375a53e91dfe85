"""`tf.TensorArray`: a list of tensors that loops write and read by index."""

import numpy as np

from . import _wgrad
from .control_flow import waits
from .dtypes import TensorShape
from .ops import FUNCTIONS, range as _range, where, zeros
from .tensor import Tensor, Variable, convert_to_tensor


class _Rules:
    """What holds for an array and for all arrays that its methods made. A write shows the shape of elements to all of them."""

    def __init__(self, dtype, dynamic_size, element_shape, infer_shape):
        self.dtype, self.dynamic_size, self.infer_shape = dtype, dynamic_size, infer_shape
        # Devices hold 32 bits.
        self.kind = convert_to_tensor(0, dtype)._dtype
        sizes = None if element_shape is None else list(element_shape)
        self.shape = None if sizes is None or None in sizes else [int(size) for size in sizes]

    def fitting(self, value):
        """The value as an element."""
        is_tensor = isinstance(value, (Tensor, Variable))
        value = convert_to_tensor(value) if is_tensor else convert_to_tensor(value, self.dtype)
        if value._dtype != self.kind:
            raise TypeError(f"TensorArray.write: the elements are {self.kind}, and the value is {value._dtype}; use tf.cast.")
        if self.shape is None:
            self.shape = list(value._shape) if self.infer_shape else None
        elif self.infer_shape and self.shape != list(value._shape):
            raise ValueError(
                f"TensorArray.write: the elements have the shape {self.shape}, and the value has {list(value._shape)}; with "
                "infer_shape=False, an array has elements of several shapes."
            )
        return value


class TensorArray:
    """A list of tensors of one dtype; methods that change it return the changed array.

    An index may be a tensor that only a run of a function knows. The elements then are rows of one tensor, so the array must have a
    size. An index beyond it is an error of the next read of a value.
    """

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None, flow=None,
                 infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        if waits(size):
            raise ValueError(
                "TensorArray: the size is a tensor that only a run of the function knows. Sizes are fixed in a trace; give a number, "
                "such as the largest size."
            )
        self._rules = _Rules(dtype, bool(dynamic_size), element_shape, infer_shape)
        self._values, self._all, self._beyond = [None] * int(0 if size is None else size), None, None

    def _made(self, values=None, rows=None, beyond=None):
        made = object.__new__(TensorArray)
        made._rules, made._values, made._all, made._beyond = self._rules, values, rows, beyond
        return made

    # -- as a part of structures, which conditions and loops carry --

    def _knows_shape(self):
        return self._all is not None or self._rules.shape is not None

    def _wgrad_flat(self):
        # The largest index of a write beyond the end, or the last index.
        beyond = convert_to_tensor(self._count() - 1) if self._beyond is None else self._beyond
        return [self._rows(), beyond], lambda leaves: self._made(None, next(leaves), next(leaves))

    # -- what it has --

    @property
    def dtype(self):
        """The dtype of the elements."""
        return self._rules.dtype

    @property
    def dynamic_size(self):
        """Whether writes make the array larger."""
        return self._rules.dynamic_size

    @property
    def element_shape(self):
        """The shape of an element, or `None` if it is not known."""
        return None if self._rules.shape is None else TensorShape(self._rules.shape)

    def _count(self):
        return len(self._values) if self._all is None else self._all._shape[0]

    def size(self, name=None):
        """The number of elements."""
        return convert_to_tensor(self._count())

    def __len__(self):
        return self._count()

    def identity(self):
        """The same array."""
        return self

    def close(self, name=None):
        """Changes nothing: the memory becomes free when the program drops the array."""

    # -- elements --

    def _place(self, call, index):
        """The index as a number, or as a tensor if only a run knows it."""
        if waits(index):
            index = convert_to_tensor(index)
            if index._shape or index.dtype.is_floating or index.dtype.is_bool:
                shown = f"{index._dtype}{list(index._shape)}"
                raise ValueError(f"TensorArray.{call}: the index is {shown}; it must be a scalar of integers.")
            return index._cast("int32")
        number = index.__index__() if hasattr(index, "__index__") else int(np.asarray(index))
        grows = call == "write" and self._rules.dynamic_size
        if not 0 <= number or number >= self._count() and not grows:
            hint = "" if number < 0 or call != "write" else "; make it larger, or use dynamic_size=True"
            raise IndexError(f"TensorArray.{call}: index {number} of an array of {self._count()}{hint}.")
        return number

    def _element(self, call, at):
        value = self._values[at]
        if value is None:
            if self._rules.shape is None:
                raise ValueError(
                    f"TensorArray.{call}: nothing was written at index {at}, and the shape of an element is not known; give "
                    "element_shape."
                )
            value = zeros(self._rules.shape, self._rules.kind)
        return value

    def _rows(self, call="stack"):
        """All elements as rows of one tensor."""
        if self._all is not None:
            return self._all
        if not self._values and self._rules.shape is not None:
            return zeros([0, *self._rules.shape], self._rules.kind)
        if not self._values:
            raise ValueError(f"TensorArray.{call}: the array has no elements, and their shape is not known; give element_shape.")
        return FUNCTIONS["stack"]([self._element(call, at) for at in range(len(self._values))])

    def write(self, index, value, name=None):
        """The array with another value at `index`."""
        at = self._place("write", index)
        value = self._rules.fitting(value)
        is_number = isinstance(at, int)
        if is_number and self._all is None:
            values = list(self._values)
            values += [None] * (at + 1 - len(values))
            values[at] = value
            return self._made(values)
        if not self._count():
            raise ValueError(
                "TensorArray.write: only a run of the function knows the index, and the array has no elements. In such a loop, "
                "dynamic_size=True does not make it larger; give a size."
            )
        rows = self._rows("write")
        if list(value._shape) != rows._shape[1:]:
            raise ValueError(
                f"TensorArray.write: the value has the shape {list(value._shape)} and other elements have {rows._shape[1:]}; they must "
                "be equal where only a run of the function knows the index."
            )
        beyond = convert_to_tensor(self._count() - 1) if self._beyond is None else self._beyond
        if is_number and at >= self._count():
            # A write that was beyond the end stays an error.
            self._check()
            more = zeros([at + 1 - self._count(), *value._shape], self._rules.kind)
            rows = FUNCTIONS["concat"]([rows, more], 0)
        if not is_number:
            # A negative index is beyond the end, too.
            far = where(at < 0, convert_to_tensor(np.int32(2**31 - 1)), at)
            beyond = FUNCTIONS["math.maximum"](beyond, far)
        here = FUNCTIONS["reshape"](FUNCTIONS["math.equal"](_range(rows._shape[0]), at), [-1] + [1] * len(value._shape))
        return self._made(None, where(here, value, rows), beyond)

    def read(self, index, name=None):
        """The element at `index`."""
        at = self._place("read", index)
        if self._all is None and isinstance(at, int):
            return self._element("read", at)
        return FUNCTIONS["gather"](self._rows("read"), at)

    def stack(self, name=None):
        """All values as one tensor. Those that were not written are zeros."""
        self._check()
        return self._rows()

    def _check(self):
        if self._beyond is not None:
            text = f"TensorArray.write: an index is negative, or beyond the end of an array of {self._count()}; make it larger"
            _wgrad.check(self._beyond < self._count(), text)

    def _all_values(self, call):
        if self._all is None:
            return [self._element(call, at) for at in range(len(self._values))]
        return FUNCTIONS["unstack"](self.stack())

    def concat(self, name=None):
        """All values one after the other along their first axis."""
        values = self._all_values("concat")
        if not values:
            raise ValueError("TensorArray.concat: the array has no elements.")
        return FUNCTIONS["concat"](values, 0)

    def gather(self, indices, name=None):
        """The elements at `indices` as one tensor."""
        return FUNCTIONS["gather"](self.stack(), indices)

    def unstack(self, value, name=None):
        """The array with the parts of `value` along its first axis."""
        value = convert_to_tensor(value)
        return self._replaced("unstack", FUNCTIONS["unstack"](value) if value._shape[0] else [])

    def split(self, value, lengths, name=None):
        """The array with pieces of `value` of these lengths along its first axis."""
        value = convert_to_tensor(value)
        lengths = [int(length) for length in np.asarray(lengths)]
        if sum(lengths) != value._shape[0]:
            raise ValueError(f"TensorArray.split: the lengths {lengths} do not add up to {value._shape[0]}, the size of the first axis.")
        ends = np.cumsum(lengths)
        return self._replaced("split", [value[int(end) - length : int(end)] for end, length in zip(ends, lengths)])

    def _replaced(self, call, parts):
        if len(parts) != self._count() and not self._rules.dynamic_size:
            raise ValueError(
                f"TensorArray.{call}: the value has {len(parts)} parts, and the array {self._count()} elements; make it of that size, "
                "or use dynamic_size=True."
            )
        values = [self._rules.fitting(part) for part in parts]
        left = self._values[len(values):] if self._all is None else self._all_values(call)[len(values):]
        return self._made(values + left)

    def scatter(self, indices, value, name=None):
        """The array with the parts of `value` at `indices`."""
        made = self
        for index, part in zip(np.asarray(indices).tolist(), FUNCTIONS["unstack"](convert_to_tensor(value)), strict=True):
            made = made.write(index, part)
        return made
