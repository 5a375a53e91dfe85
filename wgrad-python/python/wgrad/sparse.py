"""Sparse tensors, `tf.SparseTensor`: the indices of some elements, their values, and the shape. Only the functions of `tf.sparse` take
them; `to_dense` makes tensors for all others."""

import numpy as np

from . import errors
from .dtypes import TensorShape, as_dtype
from .ops import FUNCTIONS as _F
from .ops import fill
from .tensor import convert_to_tensor


class SparseTensor:
    """Values at indices `[N, rank]`; all other elements are 0."""

    def __init__(self, indices, values, dense_shape):
        shape = [int(size) for size in np.asarray(dense_shape).ravel()]
        indices = convert_to_tensor(np.asarray(indices, "int32").reshape(-1, len(shape)) if np.size(indices) == 0 else indices, "int32")
        values = convert_to_tensor(values)
        if len(indices._shape) != 2 or indices._shape[1] != len(shape):
            raise errors.InvalidArgumentError(f"SparseTensor: the indices are {list(indices._shape)} for {len(shape)} axes; they must be [N, {len(shape)}].")
        if list(values._shape) != [indices._shape[0]]:
            raise errors.InvalidArgumentError(f"SparseTensor: the values are {list(values._shape)} at {indices._shape[0]} indices; give one for each.")
        self.indices, self.values, self._dense_shape = indices, values, shape

    @property
    def dense_shape(self):
        return convert_to_tensor(np.array(self._dense_shape, "int32"))

    @property
    def shape(self):
        return TensorShape(self._dense_shape)

    def get_shape(self):
        return self.shape

    @property
    def dtype(self):
        return as_dtype(self.values._dtype)

    def with_values(self, new_values):
        """The same indices with other values."""
        return SparseTensor(self.indices, new_values, self._dense_shape)

    @classmethod
    def from_value(cls, sparse_tensor_value):
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    def __repr__(self):
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def _sparse(call, value):
    if not isinstance(value, SparseTensor):
        raise TypeError(f"sparse.{call}: {type(value).__name__} is no SparseTensor; tf.sparse.from_dense makes one.")
    return value


def _checked(call, sp_input):
    """The indices as an array, which are inside of the shape."""
    at, shape = sp_input.indices.numpy(), np.array(sp_input._dense_shape)
    wrong = np.argwhere((at < 0) | (at >= shape))
    if len(wrong):
        raise errors.InvalidArgumentError(f"sparse.{call}: the index {at[wrong[0][0]].tolist()} is outside of the shape {shape.tolist()}.")
    return at


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """TensorFlow's `tf.sparse.to_dense`: a tensor with `default_value` where there is no value."""
    values = _sparse("to_dense", sp_input).values
    at = _checked("to_dense", sp_input)
    if validate_indices:
        places = np.ravel_multi_index(tuple(at.T), sp_input._dense_shape) if len(sp_input._dense_shape) else np.zeros(len(at), int)
        steps = np.diff(places)
        if len(steps) and steps.min() <= 0:
            what = "repeated" if steps.min() == 0 else "out of order"
            raise errors.InvalidArgumentError(
                f"sparse.to_dense: the index {at[int(steps.argmin()) + 1].tolist()} is {what}; tf.sparse.reorder puts indices in order."
            )
    default = convert_to_tensor(0 if default_value is None else default_value, values._dtype)
    return _F["tensor_scatter_nd_update"](fill(sp_input._dense_shape, default), sp_input.indices, values) if len(at) else fill(sp_input._dense_shape, default)


def from_dense(tensor, name=None):
    """TensorFlow's `tf.sparse.from_dense`: the elements that are not 0, which are read on the host."""
    tensor = convert_to_tensor(tensor)
    at = np.argwhere(tensor.numpy()).astype("int32")
    return SparseTensor(at, _F["gather_nd"](tensor, at), tensor._shape)


def reorder(sp_input, name=None):
    """TensorFlow's `tf.sparse.reorder`: the indices in the order of rows."""
    at = _checked("reorder", _sparse("reorder", sp_input))
    order = np.lexsort(at.T[::-1]).astype("int32")
    return SparseTensor(at[order], _F["gather"](sp_input.values, order), sp_input._dense_shape)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """TensorFlow's `tf.sparse.sparse_dense_matmul`: the product of a sparse and a dense matrix."""
    if len(_sparse("sparse_dense_matmul", sp_a)._dense_shape) != 2:
        raise errors.InvalidArgumentError(f"sparse.sparse_dense_matmul: the sparse tensor is {sp_a._dense_shape}; it must be a matrix.")
    b = convert_to_tensor(b)
    b = _F["transpose"](b, [1, 0]) if adjoint_b else b
    _checked("sparse_dense_matmul", sp_a)
    rows, inner = (1, 0) if adjoint_a else (0, 1)
    if b._shape[0] != sp_a._dense_shape[inner]:
        raise errors.InvalidArgumentError(f"sparse.sparse_dense_matmul: {sp_a._dense_shape} and {list(b._shape)} do not fit; the inner sizes must be equal.")
    parts = _F["gather"](b, sp_a.indices[:, inner]) * sp_a.values[:, None]
    return _F["math.unsorted_segment_sum"](parts, sp_a.indices[:, rows], sp_a._dense_shape[rows])


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """TensorFlow's `tf.sparse.reduce_sum`, a dense tensor."""
    if output_is_sparse:
        raise TypeError("sparse.reduce_sum: output_is_sparse is not supported; use tf.sparse.from_dense of the result.")
    return _F["math.reduce_sum"](to_dense(reorder(sp_input)), axis=axis, keepdims=bool(keepdims))
