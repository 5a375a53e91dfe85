"""TensorFlow's functions by name; the values are TensorFlow 2.21's, or follow from the functions' definitions."""

import os
import tempfile
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras

Dataset = tf.data.Dataset
RANDOM = np.random.default_rng(0)
A = (RANDOM.random((4, 4)) + 4 * np.eye(4)).astype("float32")
P = A @ A.T


def lists(dataset):
    plain = lambda value: np.asarray(value).tolist()
    return [tuple(map(plain, element)) if isinstance(element, tuple) else plain(element) for element in dataset.as_numpy_iterator()]


class Functions(unittest.TestCase):
    def near(self, made, wanted, by=1e-4):
        np.testing.assert_allclose(made.numpy(), wanted, rtol=by, atol=by)

    def test_linear_algebra(self):
        linalg, numpy = tf.linalg, np.linalg
        self.near(linalg.inv(A), numpy.inv(A))
        self.near(linalg.det(A), numpy.det(A))
        for made, wanted in zip(linalg.slogdet(A), numpy.slogdet(A)):
            self.near(made, wanted)
        self.near(linalg.solve(A, A[:, :2], adjoint=True), numpy.solve(A.T, A[:, :2]))
        self.near(linalg.cholesky(P), numpy.cholesky(P))
        self.near(linalg.cholesky_solve(linalg.cholesky(P), A[:, :1]), numpy.solve(P, A[:, :1]))
        self.near(linalg.triangular_solve(A, A[:, :1], lower=False), numpy.solve(np.triu(A), A[:, :1]))
        self.near(linalg.lstsq(A[:, :2], A[:, 2:]), numpy.lstsq(A[:, :2], A[:, 2:], rcond=None)[0], 1e-3)
        q, r = linalg.qr(A)
        self.near(tf.matmul(q, r), A)
        self.near(linalg.svd(A)[0], numpy.svd(A)[1])
        self.near(linalg.eigh(P)[0], numpy.eigvalsh(P), 1e-3)
        self.near(linalg.pinv(A[:, :2]), numpy.pinv(A[:, :2]))
        self.near(linalg.matrix_rank(np.ones((3, 3), "float32")), 1)
        self.near(linalg.expm(np.zeros((2, 2), "float32")), np.eye(2))
        self.near(linalg.matrix_transpose(A), A.T)
        self.near(linalg.set_diag(A, [1.0, 2.0, 3.0, 4.0]), A - np.diag(np.diag(A)) + np.diag([1.0, 2.0, 3.0, 4.0]))

    def test_special_functions_and_bits(self):
        math = tf.math
        self.near(math.lgamma([0.5, 5.0]), [0.5723649, 3.1780539])
        self.near(math.digamma([1.0]), [-0.5772157])
        self.near(math.erfinv([0.5]), [0.47693628])
        self.near(math.ndtri([0.975]), [1.959964])
        self.near(math.bessel_i0([1.0]), [1.2660658])
        self.near(math.xdivy([0.0, 1.0], [0.0, 2.0]), [0.0, 0.5])
        self.near(math.zeta([2.0], [1.0]), [1.644934])
        self.near(math.cumulative_logsumexp([0.0, 0.0, 0.0]), np.log([1.0, 2.0, 3.0]))
        self.near(math.unsorted_segment_prod([2.0, 3.0, 4.0], [0, 1, 0], 2), [8.0, 3.0])
        self.assertEqual(math.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1).numpy().tolist(), [True, False])
        self.assertEqual(math.invert_permutation([2, 0, 1]).numpy().tolist(), [1, 2, 0])
        self.assertEqual(tf.bitwise.bitwise_xor([1, 2, 3], [3, 2, 1]).numpy().tolist(), [2, 0, 2])
        self.assertEqual(tf.bitwise.left_shift([1, 2], [1, 3]).numpy().tolist(), [2, 16])
        self.assertEqual(tf.truncatediv([-7, 7], [2, 2]).numpy().tolist(), [-3, 3])
        self.assertEqual(tf.saturate_cast([300.0, -5.0], tf.uint8).numpy().tolist(), [255, 0])

    def test_layers_without_classes(self):
        x = RANDOM.random((2, 6, 6, 3)).astype("float32")
        self.assertEqual(tf.nn.conv2d_transpose(x, np.ones((3, 3, 4, 3), "float32"), [2, 12, 12, 4], 2).shape, (2, 12, 12, 4))
        self.near(tf.nn.batch_normalization([[1.0], [3.0]], [2.0], [1.0], [0.5], [2.0], 0.0), [[-1.5], [2.5]])
        self.near(tf.nn.crelu([-1.0, 2.0]), [0.0, 2.0, 1.0, 0.0])
        self.near(tf.image.adjust_gamma(x, 2.0, 1.5), 1.5 * x**2)
        self.near(tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(x)), x)
        self.near(tf.image.psnr(x, x + 0.1, 1.0), [20.0, 20.0], 1e-2)
        self.near(tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1, batch_axis=0), [[2, 1, 3], [6, 5, 4]])

    def test_sizes_that_depend_on_values(self):
        self.assertEqual(tf.where([[True, False], [True, True]]).numpy().tolist(), [[0, 0], [1, 0], [1, 1]])
        self.near(tf.where([True, False], [1.0, 2.0], 0.0), [1.0, 0.0])
        values, places, counts = tf.unique_with_counts([5, 3, 5, 9, 3])
        self.assertEqual([t.numpy().tolist() for t in (values, places, counts)], [[5, 3, 9], [0, 1, 0, 2, 1], [2, 2, 1]])
        self.assertEqual([t.numpy().tolist() for t in tf.unique([2.0, 1.0, 2.0])], [[2.0, 1.0], [0, 1, 0]])
        for wrong in (lambda: tf.where([True], 1.0), lambda: tf.unique([[1]]), lambda: tf.ensure_shape([1, 2], [None, 2])):
            with self.assertRaises(ValueError):
                wrong()
        self.assertEqual(tf.ensure_shape([[1, 2]], [None, 2]).shape, (1, 2))
        rows = tf.random.categorical(tf.math.log([[0.25, 0.75, 1e-20]]), 4000).numpy()
        self.assertAlmostEqual(float((rows == 1).mean()), 0.75, delta=0.04)
        self.assertEqual(int((rows == 2).sum()), 0)

    def test_loops_and_branches(self):
        m = np.arange(6, dtype="float32").reshape(3, 2)
        self.near(tf.map_fn(lambda row: row * 2 + 1, m), m * 2 + 1)
        self.near(tf.map_fn(lambda pair: pair[0] * pair[1], (m, m)), m * m)
        self.near(tf.foldl(lambda a, b: a * 2 + b, m), (m[0] * 2 + m[1]) * 2 + m[2])
        self.near(tf.foldr(lambda a, b: a * 2 + b, m), (m[2] * 2 + m[1]) * 2 + m[0])
        self.near(tf.scan(lambda a, b: a + b, m), m.cumsum(0))
        self.near(tf.scan(lambda a, b: a + b, m, reverse=True), m[::-1].cumsum(0)[::-1])
        self.near(tf.scan(lambda a, b: a + tf.reduce_sum(b), m, initializer=tf.constant(10.0)), [11.0, 16.0, 25.0])
        x = tf.Variable([[2.0, 1.0], [1.0, 3.0]])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.scan(lambda a, b: a * b, x))
        self.near(tape.gradient(y, x), [[2.0, 4.0], [2.0, 1.0]])
        call = tf.function(lambda i, x: tf.switch_case(i, [lambda: x * 2, lambda: x * 3]))
        self.assertEqual([float(call(tf.constant(i), tf.constant(1.0))) for i in (0, 1, 7)], [2.0, 3.0, 3.0])
        chosen = tf.case([(tf.constant(False), lambda: tf.constant(1)), (tf.constant(True), lambda: tf.constant(2))], lambda: tf.constant(3))
        self.assertEqual(int(chosen), 2)

    def test_assertions(self):
        debugging = tf.debugging
        debugging.assert_equal([1, 2], [1, 2])
        debugging.assert_near(1.0, 1.0 + 1e-7)
        self.near(debugging.check_numerics([1.0], "x"), [1.0])
        for wrong, text in (
            (lambda: debugging.assert_equal([1, 2], [1, 3], message="both"), r"both assert_equal.*\[1\]"),
            (lambda: debugging.assert_less([1.0], [0.5]), "assert_less"),
            (lambda: debugging.assert_positive([0]), "assert_positive"),
            (lambda: debugging.check_numerics([1.0, np.nan], "loss"), "loss: .* had NaN"),
            (lambda: debugging.assert_rank([1], 2), "must have 2 axes"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                wrong()


class Images(unittest.TestCase):
    def test_random_changes(self):
        tf.random.set_seed(3)
        x = RANDOM.random((64, 6, 5, 3)).astype("float32")
        flipped = tf.image.random_flip_left_right(x).numpy()
        kinds = [np.array_equal(made, image) for made, image in zip(flipped, x)]
        self.assertTrue(10 < sum(kinds) < 54)
        for kind, made, image in zip(kinds, flipped, x):
            np.testing.assert_array_equal(made, image if kind else image[:, ::-1])
        brighter = tf.image.random_brightness(x, 0.2).numpy() - x
        self.assertTrue(abs(brighter).max() <= 0.2 and abs(brighter - brighter.mean()).max() < 1e-6)
        for changed in (tf.image.random_contrast(x, 0.5, 1.5), tf.image.random_saturation(x, 0.5, 1.5), tf.image.random_hue(x, 0.2)):
            self.assertEqual(changed.shape, x.shape)
        crop = tf.image.random_crop(x[0], (3, 2, 3)).numpy()
        places = [(i, j) for i in range(4) for j in range(4) if np.array_equal(crop, x[0, i : i + 3, j : j + 2])]
        self.assertEqual(len(places), 1)
        for wrong in (
            lambda: tf.image.random_crop(x, (3, 3)), lambda: tf.image.random_hue(x, 0.7), lambda: tf.image.random_contrast(x, 2.0, 1.0),
            lambda: tf.image.random_brightness(x, -1.0), lambda: tf.image.random_flip_up_down(np.ones((2, 2), "float32")),
        ):
            with self.assertRaises(ValueError):
                wrong()


class Datasets(unittest.TestCase):
    def test_datasets_of_datasets(self):
        self.assertEqual(lists(Dataset.range(3).flat_map(lambda a: Dataset.from_tensors(a).repeat(2))), [0, 0, 1, 1, 2, 2])
        repeated = Dataset.range(1, 6).interleave(lambda a: Dataset.from_tensors(a).repeat(6), cycle_length=2, block_length=4)
        self.assertEqual(
            lists(repeated), [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5],
        )
        windows = lambda *options: [lists(window) for window in Dataset.range(7).window(*options)]
        self.assertEqual(windows(3), [[0, 1, 2], [3, 4, 5], [6]])
        self.assertEqual(windows(2, 1, 2, True), [[0, 2], [1, 3], [2, 4], [3, 5], [4, 6]])
        self.assertEqual(windows(3, 4), [[0, 1, 2], [4, 5, 6]])
        self.assertEqual(windows(2, 3), [[0, 1], [3, 4], [6]])
        rows = Dataset.range(5).window(3, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(3))
        self.assertEqual(lists(rows), [[0, 1, 2], [1, 2, 3], [2, 3, 4]])
        pairs = Dataset.from_tensor_slices((np.arange(4), np.arange(4) * 10)).window(2)
        self.assertEqual([(lists(a), lists(b)) for a, b in pairs], [([0, 1], [0, 10]), ([2, 3], [20, 30])])

    def test_elements_of_different_lengths(self):
        grown = Dataset.range(4).map(lambda a: tf.fill([int(a)], a))
        self.assertEqual(lists(grown.padded_batch(2)), [[[0], [1]], [[2, 2, 0], [3, 3, 3]]])
        self.assertEqual(lists(grown.padded_batch(4, padded_shapes=[4], padding_values=-1))[0][2], [2, 2, -1, -1])
        texts = Dataset.from_generator(lambda: iter([(["a"], 0), (["b", "c"], 1)])).padded_batch(2)
        self.assertEqual(lists(texts), [([["a", ""], ["b", "c"]], [0, 1])])
        with self.assertRaisesRegex(ValueError, "room"):
            list(grown.padded_batch(4, padded_shapes=[2]))
        sequences = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]
        buckets = Dataset.from_generator(lambda: iter(sequences)).bucket_by_sequence_length(lambda s: tf.shape(s)[0], [3, 5], [2, 2, 2])
        self.assertEqual(
            lists(buckets),
            [[[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]], [[0, 0], [21, 22]]],
        )

    def test_windows_of_time_series(self):
        make = keras.utils.timeseries_dataset_from_array
        both = lists(make(np.arange(10), np.arange(10) * 10, 3, sampling_rate=2, batch_size=4))
        self.assertEqual(both, [([[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5, 7]], [0, 10, 20, 30]), ([[4, 6, 8], [5, 7, 9]], [40, 50])])
        self.assertEqual(lists(make(np.arange(10), None, 3, sequence_stride=2, start_index=1, end_index=9)), [[[1, 2, 3], [3, 4, 5], [5, 6, 7]]])
        with self.assertRaisesRegex(ValueError, "no window"):
            make(np.arange(3), None, 4)

    def test_states_and_choices(self):
        self.assertEqual(lists(Dataset.range(5).scan(np.int32(0), lambda s, a: (s + a, s + a))), [0, 1, 3, 6, 10])
        self.assertEqual(lists(Dataset.range(9).take_while(lambda a: a < 3)), [0, 1, 2])
        self.assertEqual(int(Dataset.range(5).reduce(np.int32(0), lambda s, a: s + a)), 10)
        chosen = Dataset.choose_from_datasets([Dataset.range(3), Dataset.range(10, 13)], Dataset.from_tensor_slices(np.array([0, 1, 1, 0])))
        self.assertEqual(lists(chosen), [0, 10, 11, 1])
        drawn = Dataset.sample_from_datasets([Dataset.from_tensors(n).repeat() for n in (0, 1)], [0.25, 0.75], seed=1).take(1000)
        self.assertAlmostEqual(sum(lists(drawn)) / 1000, 0.75, delta=0.05)
        self.assertEqual(sorted(lists(Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(3, 5)], seed=0))), [0, 1, 2, 3, 4])
        spec = Dataset.from_tensor_slices((np.ones((4, 3), "float32"), np.arange(4))).batch(2).element_spec
        self.assertEqual([(tuple(part.shape), part.dtype) for part in spec], [((None, 3), tf.float32), ((None,), tf.int32)])


class Models(unittest.TestCase):
    def test_tensorboard_and_clones(self):
        x, y = RANDOM.random((64, 4)).astype("float32"), np.ones((64, 1), "float32")
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        with tempfile.TemporaryDirectory() as folder:
            board = keras.callbacks.TensorBoard(folder, update_freq="batch")
            model.fit(x, y, epochs=2, validation_split=0.25, verbose=0, callbacks=[board])
            tags = {}
            for part in ("train", "validation"):
                (name,) = os.listdir(os.path.join(folder, part))
                with open(os.path.join(folder, part, name), "rb") as file:
                    tags[part] = file.read()
        self.assertTrue(b"epoch_loss" in tags["train"] and b"batch_loss" in tags["train"])
        self.assertTrue(b"epoch_loss" in tags["validation"] and b"batch_" not in tags["validation"])
        np.testing.assert_allclose(keras.activations.mish([1.0, -1.0]).numpy(), [0.8650984, -0.30340147], rtol=1e-5)
        self.assertEqual(float(keras.metrics.mae([1.0], [3.0])), 2.0)
        copy = keras.models.clone_model(model)
        self.assertEqual([w.shape for w in copy.get_weights()], [w.shape for w in model.get_weights()])
        self.assertFalse(np.array_equal(copy.get_weights()[0], model.get_weights()[0]))


if __name__ == "__main__":
    unittest.main()
