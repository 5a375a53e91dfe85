"""TensorFlow's `tf.test`: test cases that compare tensors, and gradients by differences."""

import tempfile
import unittest
from unittest import main, mock  # noqa: F401

import numpy as np

from . import _wgrad
from .tape import GradientTape, _flat
from .tensor import Tensor, Variable, convert_to_tensor


def _array(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def _pairs(one, other):
    """The arrays at the same places of two values, which may be lists and dicts."""
    if isinstance(one, dict) or isinstance(other, dict):
        if not (isinstance(one, dict) and isinstance(other, dict)) or one.keys() != other.keys():
            raise AssertionError(f"the keys differ: {one} and {other}")
        return [pair for key in one for pair in _pairs(one[key], other[key])]
    return [(_array(one), _array(other))]


class TestCase(unittest.TestCase):
    """A test case with assertions on tensors and arrays."""

    def evaluate(self, tensors):
        """The values of tensors as arrays of NumPy."""
        leaves, build = _flat(tensors)
        return build(iter([_array(leaf) if isinstance(leaf, (Tensor, Variable)) else leaf for leaf in leaves]))

    def get_temp_dir(self):
        """A folder of this test, which is deleted after it."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        for one, other in _pairs(a, b):
            self.assertEqual(one.shape, other.shape, msg)
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, float_rtol=1e-6, float_atol=1e-6, half_rtol=1e-3,
                                      half_atol=1e-3, bfloat16_rtol=1e-2, bfloat16_atol=1e-2, msg=None):
        half = any(array.dtype == np.float16 for pair in _pairs(a, b) for array in pair)
        single = any(array.dtype == np.float32 for pair in _pairs(a, b) for array in pair)
        if half:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        elif single:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        for one, other in _pairs(a, b):
            if one.shape != other.shape or not np.allclose(one, other, rtol=rtol, atol=atol):
                return
        raise self.failureException(msg or f"all values are close: {a}")

    def assertAllEqual(self, a, b, msg=None):
        for one, other in _pairs(a, b):
            self.assertEqual(one.shape, other.shape, msg)
            np.testing.assert_array_equal(one, other, err_msg=msg or "")

    def assertNotAllEqual(self, a, b, msg=None):
        if all(one.shape == other.shape and np.array_equal(one, other) for one, other in _pairs(a, b)):
            raise self.failureException(msg or f"all values are equal: {a}")

    def _all(self, holds, text):
        if not np.all(holds):
            raise self.failureException(text)

    def assertAllGreater(self, a, comparison_target):
        self._all(_array(a) > comparison_target, f"{_array(a)} is not above {comparison_target}")

    def assertAllGreaterEqual(self, a, comparison_target):
        self._all(_array(a) >= comparison_target, f"{_array(a)} is not {comparison_target} or above")

    def assertAllLess(self, a, comparison_target):
        self._all(_array(a) < comparison_target, f"{_array(a)} is not below {comparison_target}")

    def assertAllLessEqual(self, a, comparison_target):
        self._all(_array(a) <= comparison_target, f"{_array(a)} is not {comparison_target} or below")

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        array = _array(target)
        above = array > lower_bound if open_lower_bound else array >= lower_bound
        below = array < upper_bound if open_upper_bound else array <= upper_bound
        self._all(above & below, f"{array} is not from {lower_bound} to {upper_bound}")

    def assertAllInSet(self, target, expected_set):
        self._all(np.isin(_array(target), list(expected_set)), f"{_array(target)} is not in {expected_set}")

    def assertNear(self, f1, f2, err, msg=None):
        self._all(f1 == f2 or abs(f1 - f2) <= err, msg or f"{f1} and {f2} differ by more than {err}")

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1, ndarray2, err, msg=None):
        self._all(np.linalg.norm(_array(ndarray1) - _array(ndarray2)) < err, msg or f"the arrays differ by {err} or more")

    def assertShapeEqual(self, input_a, input_b, msg=None):
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target, expected_dtype):
        from .dtypes import as_name

        self.assertEqual(_array(target).dtype.name, as_name(expected_dtype))

    def assertEmpty(self, container, msg=None):
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container, msg=None):
        self.assertNotEqual(len(container), 0, msg)

    def assertLen(self, container, expected_len, msg=None):
        self.assertEqual(len(container), expected_len, msg)


def compute_gradient(f, x, delta=None):
    """TensorFlow's `tf.test.compute_gradient`: the Jacobians of `f` by its gradient and by differences, each a list with an array
    `[elements of the result, elements of the argument]` for each argument."""
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"compute_gradient: x is {type(x).__name__}; it must be a list of the arguments.")
    delta = 1.0 / 1024 if delta is None else float(delta)
    arguments = [convert_to_tensor(one) for one in x]
    with GradientTape() as tape:
        tape.watch(arguments)
        y = convert_to_tensor(f(*arguments))
    size = int(np.prod(y._shape))
    jacobians = tape.jacobian(y, arguments)
    by_gradient, by_differences = [], []
    for at, (argument, jacobian) in enumerate(zip(arguments, jacobians)):
        count = int(np.prod(argument._shape))
        by_gradient.append(np.zeros((size, count), "float32") if jacobian is None else jacobian.numpy().reshape(size, count))
        values, made = argument.numpy(), np.zeros((size, count), "float32")
        for place in range(count):
            results = []
            for sign in (1, -1):
                moved = values.copy()
                moved.reshape(-1)[place] += sign * delta
                changed = [convert_to_tensor(moved) if other == at else one for other, one in enumerate(arguments)]
                results.append(convert_to_tensor(f(*changed)).numpy().reshape(-1).astype("float64"))
            made[:, place] = (results[0] - results[1]) / (2 * delta)
        by_differences.append(made)
    return by_gradient, by_differences


def _gpus():
    return [name for name, kind in _wgrad.devices("GPU")]


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Whether there is a GPU. None is used by way of CUDA."""
    return not cuda_only and min_cuda_compute_capability is None and bool(_gpus())


def gpu_device_name():
    """The name of the first GPU, or `''`."""
    return "/device:GPU:0" if _gpus() else ""


def is_built_with_cuda():
    """False: GPUs are used by way of Vulkan, Metal or Direct3D."""
    return False


def is_built_with_rocm():
    """False: GPUs are used by way of Vulkan, Metal or Direct3D."""
    return False


def is_built_with_xla():
    """False: there is no XLA."""
    return False


def is_built_with_gpu_support():
    """True: GPUs are used by way of Vulkan, Metal or Direct3D."""
    return True
