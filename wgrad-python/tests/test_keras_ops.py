"""Functions of `keras.ops`, compared with NumPy's and with values of Keras."""

import unittest

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import ops

RANDOM = np.random.default_rng(0)
A, B = RANDOM.standard_normal((2, 3, 4)).astype("float32")
T = RANDOM.standard_normal((2, 3, 4)).astype("float32")
S = RANDOM.standard_normal((4, 4)).astype("float32")
P = S @ S.T + np.eye(4, dtype="float32")
V, W, U = (RANDOM.standard_normal(n).astype("float32") for n in (5, 3, 3))
I = np.array([3, 1, 1, 0], "int32")
ODD = np.array([1.0, np.nan, np.inf, -np.inf, 2.0], "float32")


class AsInNumPy(unittest.TestCase):
    def test_functions_of_arrays(self):
        cases = [
            ("ravel", A), ("log2", np.abs(A)), ("log10", np.abs(A)), ("exp2", A), ("cbrt", A), ("hypot", A, B), ("hypot", A * 0, B * 0),
            ("hypot", np.float32([3e30]), np.float32([4e30])), ("logaddexp", A, B), ("logaddexp", A * 1000, B), ("deg2rad", A),
            ("rad2deg", A), ("trunc", A * 3), ("heaviside", np.float32([-1, 0, 2]), np.float32(0.5)), ("nan_to_num", ODD),
            ("isclose", ODD, ODD), ("isclose", A, A + 1e-3), ("allclose", A, A + 1e-9),
            ("isposinf", ODD), ("isneginf", ODD), ("average", A), ("ptp", A, 1), ("count_nonzero", I), ("median", A), ("median", A, 0),
            ("quantile", A, 0.3, 1), ("quantile", T, np.array([0.0, 0.25, 1.0]), -1), ("quantile", T, 0.7), ("percentile", A, 35, 0),
            ("diff", A), ("diff", A, 2), ("diff", T, 1, 1), ("fliplr", A), ("flipud", A), ("rot90", T), ("rot90", T, 3, (1, 2)),
            ("rot90", T, 2, (2, 0)), ("rot90", T, -1, (2, 1)), ("hstack", [A, B]), ("hstack", [V, W]), ("vstack", [A, B]),
            ("vstack", [W, U]), ("append", A, V), ("append", A, B, 1), ("outer", V, W), ("inner", A, B), ("vdot", A, B), ("cross", W, U),
            ("kron", A, S), ("tri", 3, 4, 1), ("diagonal", T), ("diagonal", T, 1, 1, 2), ("diagonal", T, -1, 0, 2), ("diagonal", T, 0, 2, 0),
            ("diagonal", A, 9), ("diag", A), ("diag", A, 2), ("diag", A, -1), ("diag", W), ("diag", W, 1), ("diag", W, -2), ("trace", A),
            ("trace", T, 0, 1, 2), ("tril", A), ("tril", A, -1), ("tril", T, 1), ("triu", A), ("triu", A, 1), ("triu", T, -1),
            ("bincount", I), ("fmod", A * 5, np.float32(2.0)), ("take", A, 1, 0), ("take", A, np.array([3, 0]), 1),
        ]  # fmt: skip
        for name, *arguments in cases:
            with self.subTest(name=name):
                wanted = getattr(np, name)(*arguments)
                made = np.asarray(getattr(ops, name)(*arguments).numpy())
                self.assertEqual(made.shape, np.shape(wanted))
                np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-6)

    def test_weights_grids_and_choices(self):
        weights = np.float32([1, 2, 3, 4])
        np.testing.assert_allclose(ops.average(A, 1, weights).numpy(), np.average(A, 1, weights), rtol=1e-5)
        np.testing.assert_allclose(ops.average(A, None, B * B).numpy(), np.average(A, None, B * B), rtol=1e-5)
        for indexing in ("xy", "ij"):
            for made, wanted in zip(ops.meshgrid(V, W, U, indexing=indexing), np.meshgrid(V, W, U, indexing=indexing), strict=True):
                np.testing.assert_array_equal(made.numpy(), wanted)
        np.testing.assert_array_equal(ops.select([A > 1, A > 0], [A, B], -1.0).numpy(), np.select([A > 1, A > 0], [A, B], -1.0))
        self.assertEqual(ops.nan_to_num(ODD, 1.0, 2.0, 3.0).numpy().tolist(), [1, 1, 2, 3, 2])
        self.assertEqual(ops.nonzero(I)[0].numpy().tolist(), [0, 1, 2])
        self.assertEqual(ops.quantile(T, [0.5], keepdims=True).shape, (1, 1, 1, 1))
        self.assertEqual(ops.multi_hot(np.array([[0, 2], [1, 1]]), 4).numpy().tolist(), [[1, 0, 1, 0], [0, 1, 0, 0]])

    def test_linear_algebra(self):
        np.testing.assert_allclose(ops.solve(P, V[:4]).numpy(), np.linalg.solve(P, V[:4]), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(ops.solve(P, S).numpy(), np.linalg.solve(P, S), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(ops.solve_triangular(np.triu(P), W[[0, 1, 2, 0]]).numpy(), np.linalg.solve(np.triu(P), W[[0, 1, 2, 0]]), rtol=1e-3, atol=1e-4)
        q, r = ops.qr(S)
        np.testing.assert_allclose(ops.matmul(q, r).numpy(), S, atol=1e-5)
        np.testing.assert_allclose(ops.det(P).numpy(), np.linalg.det(P), rtol=1e-4)

    def test_wrong_calls_are_errors(self):
        for call, text in (
            (lambda: ops.quantile(A, 1.5), "q is 1.5; it must be from 0 to 1"),
            (lambda: ops.quantile(A, 0.5, method="nearest"), "only 'linear' is supported"),
            (lambda: ops.quantile(A[:0], 0.5, 0), "at least one element"),
            (lambda: ops.diag(T), "must be a vector or a matrix"),
            (lambda: ops.kron(T, A), "both must be matrices"),
            (lambda: ops.rot90(A, 1, (0, 0)), "they must differ"),
            (lambda: ops.select([], [], 0), "there are 0 conditions"),
            (lambda: ops.conv(T, np.ones((2, 4, 1), "float32"), dilation_rate=2), "in two dimensions only"),
            (lambda: ops.meshgrid(V, W, indexing="ab"), "it must be 'xy' or 'ij'"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex((TypeError, ValueError), text):
                call()


    def test_tiles_of_fewer_and_more_axes(self):
        x = np.arange(6).reshape(2, 3)
        for repeats in (2, [2], (3, 1), (2, 1, 2)):
            np.testing.assert_array_equal(keras.ops.tile(x, repeats), np.tile(x, repeats))


class AsInKeras(unittest.TestCase):
    def test_functions_of_elements(self):
        x = np.float32([-4.0, -1.0, -0.25, 0.0, 0.5, 2.0])
        # From Keras 3.15.
        for name, arguments, wanted in (
            ("hard_sigmoid", (), [0, 1 / 3, 0.4583333, 0.5, 0.5833333, 0.8333333]),
            ("hard_silu", (), [0, -1 / 3, -0.1145833, 0, 0.2916667, 1.6666666]),
            ("hard_tanh", (), [-1, -1, -0.25, 0, 0.5, 1]),
            ("hard_shrink", (), [-4, -1, 0, 0, 0, 2]),
            ("soft_shrink", (), [-3.5, -0.5, 0, 0, 0, 1.5]),
            ("threshold", (0.1, -2.0), [-2, -2, -2, -2, 0.5, 2]),
            ("celu", (2.0,), [-1.7293295, -0.7869387, -0.2350062, 0, 0.5, 2]),
            ("squareplus", (), [0.2360680, 0.6180340, 0.8827822, 1, 1.2807764, 2.4142136]),
            ("sparse_plus", (), [0, 0, 0.140625, 0.25, 0.5625, 2]),
        ):
            with self.subTest(name=name):
                np.testing.assert_allclose(getattr(ops, name)(x, *arguments).numpy(), wanted, rtol=1e-5, atol=1e-6)

    def test_normalizations_and_windows(self):
        mean, variance = T.mean(-1, keepdims=True), T.var(-1, keepdims=True)
        wanted = (T - mean) / np.sqrt(variance + 1e-7) * V[:4] + B[0]
        np.testing.assert_allclose(ops.layer_normalization(T, V[:4], B[0]).numpy(), wanted, rtol=1e-4, atol=1e-5)
        wanted = T / np.sqrt((T * T).mean(-1, keepdims=True) + 1e-7) * V[:4]
        np.testing.assert_allclose(ops.rms_normalization(T, V[:4]).numpy(), wanted, rtol=1e-4, atol=1e-5)
        columns = W[:, None], np.abs(U)[:, None]
        wanted = (T - columns[0]) / np.sqrt(columns[1] + 1e-3) * U[:, None] + W[:, None]
        made = ops.batch_normalization(T, W, np.abs(U), 1, offset=W, scale=U)
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4, atol=1e-5)
        first, second = np.split(A, 2, -1)
        np.testing.assert_allclose(ops.glu(A).numpy(), first / (1 + np.exp(-second)), rtol=1e-5)
        x = np.arange(8, dtype="float32").reshape(1, 8, 1)
        self.assertEqual(ops.max_pool(x, 2).numpy().ravel().tolist(), [1, 3, 5, 7])
        self.assertEqual(ops.average_pool(x, 2, 1, "same").numpy().ravel().tolist(), [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7])
        kernel = np.ones((3, 3, 1, 1), "float32")
        image = np.arange(25, dtype="float32").reshape(1, 5, 5, 1)
        self.assertEqual(ops.conv(image, kernel, dilation_rate=2).numpy().ravel().tolist(), [108])

    def test_gradients_pass_through(self):
        x = tf.constant(A)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            losses = [
                ops.sum(y)
                for y in (ops.tril(x, -1), ops.median(x, 1), ops.diagonal(x, 1), ops.hypot(x, B), ops.celu(x), ops.logaddexp(x, B))
            ]
        wanted = [np.tri(3, 4, -1), None, np.eye(3, 4, 1), A / np.hypot(A, B), np.where(A > 0, 1, np.exp(A)), 1 / (1 + np.exp(B - A))]
        for loss, value in zip(losses, wanted):
            gradient = tape.gradient(loss, x).numpy()
            if value is None:
                np.testing.assert_allclose(gradient.sum(1), 1, rtol=1e-6)
            else:
                np.testing.assert_allclose(gradient, value, rtol=1e-4, atol=1e-6)

    def test_loops_end_in_time(self):
        made = tf.while_loop(lambda i, a: i < 100, lambda i, a: (i + 1, a * 2), (0, 1.0), maximum_iterations=5)
        self.assertEqual([float(x) for x in made], [5, 32])
        made = ops.while_loop(lambda i: i < 100, lambda i: i + 1, (0,), maximum_iterations=3)
        self.assertEqual(int(made[0]), 3)
        self.assertEqual(float(ops.fori_loop(0, 5, lambda i, v: v * 1.5 + 1.0, np.float32(1))), 20.78125)
        self.assertEqual(ops.map(lambda row: ops.sum(row), A).shape, (3,))

    def test_no_rows_give_no_results(self):
        double, total = tf.map_fn(lambda row: (row * 2, tf.reduce_sum(row)), tf.zeros([0, 3]))
        self.assertEqual((double.shape, total.shape), ((0, 3), (0,)))

    def test_plain_numbers_are_indices(self):
        x = tf.constant(np.arange(12, dtype="float32").reshape(3, 4))
        self.assertEqual(tf.gather(x, 1).numpy().tolist(), [4, 5, 6, 7])
        self.assertEqual(tf.gather(x, indices=2, axis=1).numpy().tolist(), [2, 6, 10])
        self.assertEqual(tf.nn.embedding_lookup(x, 0).numpy().tolist(), [0, 1, 2, 3])


if __name__ == "__main__":
    unittest.main()
