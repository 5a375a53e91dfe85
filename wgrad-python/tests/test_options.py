"""Options of everyday functions, bytes, dtypes, and names that are not here; values are TensorFlow 2.21's."""

import re
import unittest

import numpy as np

import wgrad as tf
from wgrad.absent import INSTEAD

X = np.arange(12, dtype="float32").reshape(3, 4)


def plain(value):
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value.numpy().tolist()


class Options(unittest.TestCase):
    def test_counts(self):
        math = tf.math
        for made, wanted in (
            (math.bincount([1, 1, 3]), [0, 2, 0, 1]), (math.bincount([1, 1, 3], weights=[0.5, 0.5, 2.0]), [0, 1, 0, 2]),
            (math.bincount([1, 1, 3], maxlength=2), [0, 2]), (math.bincount([1], minlength=3), [0, 1, 0]),
            (math.bincount([[1, 1], [0, 3]], axis=-1), [[0, 2, 0, 0], [1, 0, 0, 1]]), (math.bincount([[1, 1], [0, 3]]), [1, 2, 0, 1]),
            (math.bincount([[1, 1], [0, 3]], axis=-1, binary_output=True), [[0, 1, 0, 0], [1, 0, 0, 1]]), (math.bincount(tf.zeros([0], tf.int32)), []),
            (math.confusion_matrix([0, 1, 1], [0, 1, 0], weights=[0.5, 2, 3], dtype=tf.float32), [[0.5, 0], [3, 2]]),
            (math.count_nonzero([[0, 1, 2], [0, 0, 3]], axis=1, keepdims=True), [[2], [1]]), (math.count_nonzero([0.0, 1.0], dtype=tf.float32), 1),
        ):
            with self.subTest(wanted=wanted):
                self.assertEqual(plain(made), wanted)
        with self.assertRaisesRegex(ValueError, "smallest number is -1"):
            math.bincount([-1])
        with self.assertRaisesRegex(TypeError, "numbers are float32"):
            math.bincount([1.5])

    def test_ones_and_masks(self):
        for made, wanted in (
            (tf.one_hot([0, 2], 3, dtype=tf.int32), [[1, 0, 0], [0, 0, 1]]), (tf.one_hot([1], 3, True, False), [[False, True, False]]),
            (tf.one_hot([0], 2, on_value=5, off_value=-1), [[5, -1]]), (tf.one_hot([[0, 1]], 2, axis=1), [[[1, 0], [0, 1]]]),
            (tf.boolean_mask(X, [True, False, True, True], axis=1), X[:, [0, 2, 3]].tolist()),
            (tf.eye(2, batch_shape=[2]), [[[1, 0], [0, 1]]] * 2), (tf.linspace([0.0, 10.0], [1.0, 20.0], 3, axis=-1), [[0, 0.5, 1], [10, 15, 20]]),
            (tf.linspace(tf.constant(0.0), 1.0, 3), [0, 0.5, 1]), (tf.shape(X, out_type=tf.int64), [3, 4]), (tf.size(X, tf.int64), 12),
        ):
            with self.subTest(wanted=wanted):
                self.assertEqual(plain(made), wanted)
        self.assertEqual([tf.one_hot([0], 2, on_value=5, off_value=-1).dtype, tf.one_hot([0], 2, True, False).dtype], [tf.int32, tf.bool])
        x = tf.Variable(X)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.boolean_mask(x, [True, False, True, False], axis=1) ** 2)
        self.assertEqual(plain(tape.gradient(y, x)), (2 * X * [1, 0, 1, 0]).tolist())
        with self.assertRaisesRegex(ValueError, r"bool\[3\], and the tensor \[3, 4\] from axis 1"):
            tf.boolean_mask(X, [True] * 3, axis=1)

    def test_products_and_norms(self):
        np.testing.assert_allclose(tf.matmul(X, X, adjoint_b=True), X @ X.T)
        np.testing.assert_allclose(tf.matmul(X, X, transpose_a=True, adjoint_a=False), X.T @ X)
        np.testing.assert_allclose(tf.linalg.matvec(X, [1.0, 2.0, 3.0], transpose_a=True), X.T @ [1, 2, 3])
        np.testing.assert_allclose(tf.einsum("ij,kj->ik", X, X, optimize="optimal"), X @ X.T)
        self.assertEqual([part.shape for part in tf.nn.moments(X, [0, 1], keepdims=True)], [(1, 1), (1, 1)])
        self.assertEqual((int(tf.linalg.matrix_rank(X)), int(tf.linalg.matrix_rank(X, tol=5.0))), (2, 1))
        np.testing.assert_allclose(tf.linalg.pinv(X, rcond=0.01), np.linalg.pinv(X, rcond=0.01), atol=1e-6)
        np.testing.assert_allclose(tf.nn.silu(tf.constant([1.0]), 2.0), [1 / (1 + np.exp(-2))], rtol=1e-6)
        loss = tf.nn.softmax_cross_entropy_with_logits(np.eye(3, dtype="float32"), X[:, :3], axis=0)
        np.testing.assert_allclose(loss, tf.nn.softmax_cross_entropy_with_logits(np.eye(3, dtype="float32"), X[:, :3].T).numpy())
        clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
        self.assertEqual((float(norm), len(clipped), clipped[1]), (5.0, 3, None))
        np.testing.assert_allclose([clipped[0].numpy(), clipped[2].numpy()], [[0.6], [0.8]], rtol=1e-6)

    def test_axes_and_names_of_arguments(self):
        self.assertEqual(plain(tf.gather(X, [[0, 1], [2, 0], [3, 3]], batch_dims=1)), [[0, 1], [6, 4], [11, 11]])
        self.assertEqual(plain(tf.gather(X, [[1], [0], [2]], batch_dims=-1)), [[1], [4], [10]])
        self.assertEqual(plain(tf.reduce_sum(input_tensor=X, axis=1)), [6, 22, 38])
        self.assertEqual((plain(tf.abs(x=[-1.0])), plain(tf.cast(x=[1.7], dtype=tf.int32))), ([1.0], [1]))
        made = tf.nn.batch_normalization(X, [1.0] * 4, [4.0] * 4, None, None, 0.0)
        np.testing.assert_allclose(made, (X - 1) / 2)
        made = tf.nn.batch_normalization(X, [1.0] * 4, [4.0] * 4, [3.0] * 4, None, 0.0)
        np.testing.assert_allclose(made, (X - 1) / 2 + 3)

    def test_complex_constants(self):
        z = tf.constant([3 + 4j, 1j])
        self.assertEqual((z.dtype, plain(tf.abs(z)), plain(tf.math.imag(z))), (tf.complex64, [5, 1], [4, 1]))
        self.assertEqual(tf.constant([1.0], tf.complex64).numpy().tolist(), [1 + 0j])

    def test_layouts_are_those_of_channels_last(self):
        image, kernel = np.ones((1, 4, 4, 2), "float32"), np.ones((2, 2, 2, 3), "float32")
        self.assertEqual(tf.nn.conv2d(image, kernel, 1, "SAME", "NHWC").shape, (1, 4, 4, 3))
        self.assertEqual(tf.nn.conv_transpose(image, np.ones((2, 2, 3, 2), "float32"), [1, 8, 8, 3], 2).shape, (1, 8, 8, 3))
        for call in (
            lambda: tf.nn.conv2d(image, kernel, 1, "SAME", data_format="NCHW"), lambda: tf.nn.bias_add(image, [1.0, 2.0], data_format="NCHW"),
            lambda: tf.nn.max_pool2d(image, 2, 2, "SAME", data_format="NCHW"),
        ):
            with self.assertRaisesRegex(TypeError, "data_format is 'NCHW'; only"):
                call()

    def test_sizes_of_images(self):
        image = np.arange(48, dtype="float32").reshape(6, 8, 1)
        self.assertEqual(tf.image.resize(image, [12, 12], preserve_aspect_ratio=True).shape, (9, 12, 1))
        made = tf.image.resize_with_pad(image, 4, 4, method=tf.image.ResizeMethod.NEAREST_NEIGHBOR).numpy()[..., 0]
        self.assertEqual(made.tolist(), [[9, 11, 13, 15], [25, 27, 29, 31], [41, 43, 45, 47], [0, 0, 0, 0]])


class Dtypes(unittest.TestCase):
    A, B = np.array([[3, 200, 7], [250, 0, 100]], "uint8"), np.array([[2, 100, 7], [5, 3, 90]], "uint8")

    def test_bytes_wrap(self):
        a, b = tf.constant(self.A), tf.constant(self.B)
        with np.errstate(over="ignore"):
            for made, wanted in (
                (a + b, self.A + self.B), (a - b, self.A - self.B), (a * b, self.A * self.B), (a // b, self.A // self.B), (a % b, self.A % self.B),
                (a + 1, self.A + np.uint8(1)), (1 - a, np.uint8(1) - self.A), (a & b, self.A & self.B), (a | b, self.A | self.B), (a ^ b, self.A ^ self.B),
                (~a, ~self.A), (tf.maximum(a, b), np.maximum(self.A, self.B)), (tf.reduce_sum(a, 1), self.A.sum(1, dtype="uint8")),
                (tf.cumsum(a, 1), self.A.cumsum(1, dtype="uint8")), (tf.sort(a), np.sort(self.A)), (tf.gather(a, [1, 0]), self.A[[1, 0]]),
                (tf.boolean_mask(a, [True, False]), self.A[:1]), (a[tf.constant([False, True])], self.A[1:]), (tf.unique(a[0])[0], self.A[0]),
                (tf.tensor_scatter_nd_update(a, [[1]], b[:1]), [[3, 200, 7], [2, 100, 7]]), (tf.add_n([a, b]), self.A + self.B),
            ):
                self.assertEqual((plain(made), made.dtype), (np.asarray(wanted).tolist(), tf.uint8))
        for made, wanted in ((a / b, self.A / self.B.astype("float32")), (a < b, self.A < self.B), (a == b, self.A == self.B), (tf.argmax(a, 1), [1, 0])):
            np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-6)
        with self.assertRaises(TypeError):
            a + tf.constant([1, 2, 3])

    def test_means_of_integers(self):
        for dtype in ("uint8", "int32", "uint32"):
            mean = tf.reduce_mean(tf.constant(np.array([100, 101, 101, 120, 99, 100], dtype)))
            self.assertEqual((int(mean), mean.dtype.name), (103, dtype))
        self.assertEqual(plain(tf.reduce_mean(tf.constant(np.full((3, 1000, 3), 250, "uint8")), axis=1)), [[250] * 3] * 3)
        self.assertEqual((int(tf.reduce_mean([-7, -8, 0, -3])), int(tf.reduce_mean([2**31 - 1] * 2))), (-4, 2**31 - 1))
        self.assertEqual(plain(tf.reduce_mean(tf.constant(self.A), 1, keepdims=True)), [[70], [116]])
        with self.assertRaises(TypeError):
            tf.math.reduce_variance([1, 2, 5])

    def test_truth_values_and_bits(self):
        flags, numbers = tf.constant([True, False]), tf.constant([5, 6])
        self.assertEqual(plain([flags & True, flags | True, ~flags, numbers & 3, numbers | 8, numbers ^ 1, ~numbers]),
                         [[True, False], [True, True], [False, True], [1, 2], [13, 14], [4, 7], [-6, -7]])
        self.assertEqual((int(tf.argmax([False, True])), plain(tf.pad(flags, [[1, 0]]))), (1, [False, True, False]))

    def test_names_without_tensors(self):
        for dtype, instead in ((tf.int8, "int32"), (tf.int16, "int32"), (tf.uint16, "uint32"), (tf.bfloat16, "float32")):
            for call in (lambda: tf.cast([1.0], dtype), lambda: tf.constant([1], dtype), lambda: tf.zeros([2], dtype), lambda: tf.constant(1.0, dtype=dtype.name)):
                with self.subTest(dtype=dtype), self.assertRaisesRegex(TypeError, f"there is no '{dtype.name}'; use {instead}"):
                    call()
        # The numbers of arrays are kept, in a wider dtype.
        self.assertEqual((plain(tf.constant(np.array([-5, 300], "int16"))), tf.constant(np.array([5], "uint16")).dtype), ([-5, 300], tf.uint32))
        self.assertEqual(plain(tf.io.decode_raw(b"\x01\x00\xff\xff", tf.int16)), [1, -1])
        self.assertEqual((tf.int8.min, tf.uint8.max, tf.int16.size, tf.bfloat16.size, tf.bfloat16.is_floating), (-128, 255, 2, 2, True))
        self.assertEqual((float(tf.float32.max), tf.uint8.limits, tf.int32.as_datatype_enum), (3.4028234663852886e38, (0, 255), 3))
        self.assertEqual((tf.as_dtype("int8"), tf.double, tf.complex64.real_dtype), (tf.int8, tf.float64, tf.float32))

    def test_shapes(self):
        shape = tf.TensorShape([None, 3])
        self.assertEqual((shape.is_compatible_with([2, 3]), shape.concatenate([4]), shape.merge_with([2, None])), (True, (None, 3, 4), (2, 3)))
        self.assertEqual(tf.broadcast_static_shape([1, 2], [3, 1]).as_list(), [3, 2])
        self.assertEqual(plain(tf.broadcast_dynamic_shape([2, 1], tf.constant([1, 3]))), [2, 3])
        for call, text in (
            (lambda: shape.assert_is_compatible_with([2, 4]), r"does not fit \[2, 4\]"), (lambda: shape.with_rank(3), "must have 3 axes"),
            (shape.assert_is_fully_defined, "all sizes must be known"), (lambda: tf.broadcast_static_shape([2], [3]), "do not go together"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()


class Names(unittest.TestCase):
    def test_what_to_use_instead(self):
        for path, text in (
            ("RaggedTensorSpec", "padded_batch"), ("SparseTensorSpec", "tf.sparse.to_dense"), ("estimator", "tf.keras"), ("sets", "Python's set"),
            ("Session", "TensorFlow 1's"), ("linalg.LinearOperatorDiag", "functions of tf.linalg"),
            ("compat.v1.placeholder", "tf.compat.v1.placeholder: it is TensorFlow 1's"), ("nonsense", "has no attribute 'nonsense'"),
        ):
            with self.subTest(path=path), self.assertRaisesRegex(AttributeError, text):
                place = tf
                for name in path.split("."):
                    place = getattr(place, name)
        for call in (tf.gradients, tf.hessians):
            with self.assertRaisesRegex(RuntimeError, "not supported when eager execution is enabled"):
                call(tf.constant(1.0), tf.constant(1.0))

    def test_what_is_named_instead_is_here(self):
        named = {name for text in INSTEAD.values() for name in re.findall(r"\btf((?:\.\w+)+)", text)}
        self.assertGreater(len(named), 30)
        for path in named:
            place = tf
            for name in path[1:].split("."):
                self.assertTrue(hasattr(place, name), path)
                place = getattr(place, name)
        for path in INSTEAD:
            place = tf
            *places, last = path.split(".")
            for name in places:
                place = getattr(place, name)
            self.assertFalse(hasattr(place, last), path)

    def test_what_graphs_need(self):
        with tf.control_dependencies([tf.constant(1)]), tf.init_scope():
            self.assertIsNone(tf.group(tf.constant(1), tf.no_op()))
        self.assertEqual((plain(tf.tuple([1, 2])), plain(tf.identity_n([1.0, 2.0])), plain(tf.shape_n([X]))), ([1, 2], [1.0, 2.0], [[3, 4]]))
        self.assertEqual((tf.get_static_value(tf.constant(3)), tf.get_logger().name, tf.compat.as_str(b"a")), (3, "tensorflow", "a"))
        seen = []
        tf.function(lambda x: seen.append(tf.get_static_value(x + 1)) or x)(tf.constant(1))
        self.assertEqual(seen, [None])
        self.assertEqual((tf.zeros_initializer()((2,)).numpy().tolist(), tf.constant_initializer(3.0)((1,)).numpy().tolist()), ([0, 0], [3]))

    def test_gradients_of_other_functions(self):
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = tf.grad_pass_through(tf.round)(x * 1.2) * 2
        self.assertEqual((float(y), round(float(tape.gradient(y, x)), 5)), (8.0, 2.4))
        w = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = tf.recompute_grad(lambda x: w * x**2)(x)
        self.assertEqual(plain(list(tape.gradient(y, [x, w]))), [12.0, 9.0])

    def test_assertions(self):
        debugging = tf.debugging
        debugging.assert_rank_at_least(X, 1)
        debugging.assert_rank_in(X, [1, 2])
        debugging.assert_scalar(1)
        debugging.assert_type(X, tf.float32)
        debugging.assert_integer([1])
        debugging.assert_proper_iterable([1])
        self.assertEqual((debugging.assert_same_float_dtype([X, X]), debugging.is_numeric_tensor(tf.constant(1))), (tf.float32, True))
        for call, kind, text in (
            (lambda: debugging.assert_rank_at_least(X, 3, "all:"), ValueError, r"all: .*\[3, 4\]; it must have 3"),
            (lambda: debugging.assert_rank_in(X, [1, 3]), ValueError, r"one of \[1, 3\]"), (lambda: debugging.assert_scalar(X), ValueError, "no axes"),
            (lambda: debugging.assert_type(X, tf.int32), TypeError, "is float32; it must be int32"),
            (lambda: debugging.assert_integer(X), TypeError, "of integers"), (lambda: tf.assert_equal(1, 2), ValueError, "assert_equal"),
            (lambda: debugging.assert_proper_iterable(tf.constant([1])), TypeError, "must be a list"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                call()


class TestCases(tf.test.TestCase):
    def test_comparisons(self):
        self.assertAllClose({"a": tf.constant([1.0])}, {"a": [1.0 + 1e-7]})
        self.assertAllEqual(tf.constant([1, 2]), [1, 2])
        self.assertNotAllClose([1.0], [2.0])
        self.assertAllInRange([0.5], 0, 1)
        self.assertShapeEqual(X, tf.constant(X))
        self.assertDTypeEqual(tf.constant(X), tf.float32)
        self.assertEqual(self.evaluate({"a": tf.constant(1)})["a"], 1)
        for wrong in (
            lambda: self.assertAllClose([1.0], [1.1]), lambda: self.assertAllEqual([1, 2], [1, 3]), lambda: self.assertAllGreater([1, 2], 1),
            lambda: self.assertAllInSet([1, 4], {1, 2}), lambda: self.assertAllClose([1.0], [[1.0]]), lambda: self.assertNear(1.0, 2.0, 0.5),
        ):
            with self.assertRaises(AssertionError):
                wrong()

    def test_gradients_by_differences(self):
        by_gradient, by_differences = tf.test.compute_gradient(lambda x, y: x * x * y, [[1.0, 2.0], [3.0, 4.0]])
        self.assertAllClose(by_gradient[0], [[6, 0], [0, 16]])
        self.assertAllClose(by_gradient, by_differences, atol=1e-2)
        self.assertEqual((tf.test.is_built_with_cuda(), type(tf.test.is_gpu_available())), (False, bool))


if __name__ == "__main__":
    unittest.main()
