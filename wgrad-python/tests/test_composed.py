"""Functions that are composed of others; values are TensorFlow 2.21's."""

import unittest

import numpy as np

import wgrad as tf

X = np.arange(12, dtype="float32").reshape(3, 4)


class Composed(unittest.TestCase):
    def test_dropout_scales_what_it_keeps(self):
        tf.random.set_seed(1)
        made = tf.nn.dropout(tf.ones([4000]), 0.25).numpy()
        self.assertEqual(len(set(made.tolist())), 2)
        self.assertAlmostEqual(float(made.max()), 4 / 3, 5)
        self.assertLess(abs((made == 0).mean() - 0.25), 0.03)
        rows = tf.nn.dropout(tf.ones([50, 4]), 0.5, noise_shape=[50, 1]).numpy()
        self.assertEqual({tuple(row) for row in rows.tolist()}, {(0, 0, 0, 0), (2, 2, 2, 2)})
        self.assertEqual(tf.nn.dropout(X, 0).numpy().tolist(), X.tolist())
        x = tf.ones([60])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.dropout(x, 0.5)
            total = tf.reduce_sum(y)
        self.assertEqual(tape.gradient(total, x).numpy().tolist(), y.numpy().tolist())
        step = tf.function(lambda v: tf.nn.dropout(v, 0.5))
        self.assertNotEqual(step(x).numpy().tolist(), step(x).numpy().tolist())

    def test_losses_and_moments(self):
        self.assertEqual(tf.nn.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1).numpy().tolist(), [True, False])
        self.assertEqual(float(tf.nn.compute_average_loss([1.0, 2, 3], global_batch_size=6)), 1)
        self.assertAlmostEqual(float(tf.nn.compute_average_loss([1.0, 2, 3], sample_weight=[1, 0, 1])), 4 / 3, 6)
        self.assertEqual(float(tf.nn.scale_regularization_loss([1.0, 2.0])), 3)
        mean, variance = tf.nn.weighted_moments(X, [0], [[1.0], [2.0], [1.0]])
        self.assertEqual((mean.numpy().tolist(), variance.numpy().tolist()), ([4, 5, 6, 7], [8, 8, 8, 8]))

    def test_norms(self):
        np.testing.assert_allclose(tf.linalg.normalize(X, axis=1)[1].numpy(), [[3.7416575], [11.224972], [19.131126]], rtol=1e-6)
        np.testing.assert_allclose(tf.norm(X).numpy(), 22.494444, rtol=1e-6)
        np.testing.assert_allclose(tf.norm(X, 1, 0, keepdims=True).numpy(), [[12, 15, 18, 21]])
        self.assertEqual(tf.norm(X, keepdims=True).shape, (1, 1))

    def test_rows_by_number(self):
        parts = tf.dynamic_partition([1.0, 2, 3, 4], [0, 1, 1, 0], 3)
        self.assertEqual([part.numpy().tolist() for part in parts], [[1, 4], [2, 3], []])
        self.assertEqual(tf.dynamic_stitch([[0, 3], [1, 3]], [[1.0, 2.0], [3.0, 4.0]]).numpy().tolist(), [1, 3, 0, 4])
        self.assertEqual(tf.unravel_index([5, 7], [3, 4]).numpy().tolist(), [[1, 1], [1, 3]])

    def test_windows_and_names(self):
        image = X.reshape(1, 3, 4, 1)
        self.assertEqual(tf.nn.pool(image, [2, 2], "MAX").numpy().ravel().tolist(), [5, 6, 7, 9, 10, 11])
        made = tf.nn.convolution(image, np.ones((2, 2, 1, 1), "float32"))
        self.assertEqual(made.numpy().ravel().tolist(), [10, 14, 18, 26, 30, 34])
        self.assertEqual(tf.math.polyval([1.0, 2.0, 3.0], X).numpy()[0].tolist(), [3, 6, 11, 18])
        self.assertEqual(tf.math.scalar_mul(2, X).numpy()[0].tolist(), [0, 2, 4, 6])
        self.assertEqual(tf.math.accumulate_n([X, X]).numpy()[0].tolist(), [0, 2, 4, 6])
        self.assertEqual(tf.truediv(X, 2.0).numpy()[0].tolist(), [0, 0.5, 1, 1.5])
        self.assertEqual(tf.numpy_function(lambda a: a * 2, [X], tf.float32).numpy()[0].tolist(), [0, 2, 4, 6])
        np.testing.assert_allclose(tf.math.softmax(X).numpy()[0], [0.0320586, 0.0871443, 0.2368828, 0.6439142], rtol=1e-5)

    def test_wrong_calls_are_errors(self):
        for call, text in (
            (lambda: tf.nn.dropout(X, 1.0), "rate is 1.0; it must be at least 0 and below 1"),
            (lambda: tf.nn.dropout(X, 0.5, noise_shape=[3]), "both must have as many axes"),
            (lambda: tf.dynamic_partition([1.0, 2], [0, 5], 2), "from 0 to 5; they must be below 2"),
            (lambda: tf.dynamic_partition([1.0, 2], [0, 1, 1], 2), "data must begin with it"),
            (lambda: tf.dynamic_stitch([[-1]], [[1.0]]), "none below 0"),
            (lambda: tf.math.scalar_mul([1.0, 2], X), "it must have no axes"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()


if __name__ == "__main__":
    unittest.main()
