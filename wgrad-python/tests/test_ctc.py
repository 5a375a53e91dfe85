"""Sequences of labels without their alignment, sparse matrices of labels, and losses of drawn classes. The expected values are TensorFlow's."""

import unittest

import itertools

import numpy as np
import wgrad as tf

keras = tf.keras
ops = keras.ops

LOGITS = np.sin(np.arange(2 * 6 * 4) * 0.7).reshape(2, 6, 4).astype("float32")
LABELS = np.array([[1, 2, 2], [3, 1, 0]])


class Losses(unittest.TestCase):
    def test_the_loss_and_its_gradient(self):
        with tf.GradientTape() as tape:
            logits = tf.constant(LOGITS)
            tape.watch(logits)
            losses = tf.nn.ctc_loss(LABELS, logits, [3, 2], [6, 5], logits_time_major=False)
        np.testing.assert_allclose(losses, [4.9855933, 3.0862832], rtol=1e-5)
        gradient = tape.gradient(losses, logits).numpy()
        np.testing.assert_allclose(gradient[0, 0], [-0.00082834, -0.63402236, 0.33680233, 0.29804833], atol=1e-5)
        np.testing.assert_allclose(gradient[1, 4], [-0.1432665, -0.14150132, 0.14701982, 0.137748], atol=1e-5)
        # What is behind the length does not count.
        self.assertEqual(gradient[1, 5].tolist(), [0.0] * 4)

    def test_blanks_of_another_class_and_time_first(self):
        loss = tf.nn.ctc_loss(np.array([[0, 1]]), LOGITS[:1].transpose(1, 0, 2), [2], [6], blank_index=-1)
        np.testing.assert_allclose(loss, [4.4162464], rtol=1e-5)
        traced = tf.function(lambda x: tf.nn.ctc_loss(LABELS, x, [3, 2], [6, 5], logits_time_major=False))
        np.testing.assert_allclose(traced(tf.constant(LOGITS)), [4.9855933, 3.0862832], rtol=1e-5)

    def test_labels_that_do_not_fit_are_impossible(self):
        # Four equal labels need three blanks between them.
        loss = tf.nn.ctc_loss(np.array([[1, 1, 1, 1]]), LOGITS[:1, :5], [4], [5], logits_time_major=False)
        self.assertEqual(loss.numpy().tolist(), [np.inf])
        empty = tf.nn.ctc_loss(np.zeros((1, 2), int), np.zeros((1, 3, 4), "float32"), [0], [3], logits_time_major=False)
        np.testing.assert_allclose(empty, [3 * np.log(4)], rtol=1e-5)

    def test_shapes_are_checked(self):
        for labels, logits, lengths, text in (
            (LABELS[0], LOGITS, [3, 2], r"labels are \[3\] for 2 sequences"), (LABELS, LOGITS[0], [3, 2], "axes batch, time and class"),
            (LABELS, LOGITS, [3], r"shape \[1\] for 2 sequences"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(tf.errors.InvalidArgumentError, text):
                tf.nn.ctc_loss(labels, logits, lengths, [6, 5], logits_time_major=False)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "blank_index is 4 for 4 classes"):
            tf.nn.ctc_loss(LABELS, LOGITS, [3, 2], [6, 5], logits_time_major=False, blank_index=4)

    def test_keras_s_loss_trains_a_model(self):
        loss = keras.losses.CTC()
        self.assertAlmostEqual(float(loss(LABELS, LOGITS)), 4.8102674, 4)
        self.assertEqual(loss.get_config(), {"name": "ctc", "reduction": "sum_over_batch_size"})
        model = keras.Sequential([keras.Input((6, 4)), keras.layers.Dense(4)])
        model.compile(keras.optimizers.Adam(0.1), loss=keras.losses.CTC())
        history = model.fit(LOGITS, LABELS, epochs=12, verbose=0).history["loss"]
        self.assertLess(history[-1], history[0] * 0.6)


    def test_the_cost_of_a_batch(self):
        shares = tf.nn.softmax(LOGITS)
        lengths = np.array([[6], [5]]), np.array([[3], [2]])
        cost = keras.backend.ctc_batch_cost(np.array([[1, 2, 2], [2, 1, 0]]), shares, *lengths)
        same = tf.nn.ctc_loss(np.array([[1, 2, 2], [2, 1, 0]]), LOGITS, [3, 2], [6, 5], logits_time_major=False, blank_index=-1)
        self.assertEqual(cost.shape, (2, 1))
        np.testing.assert_allclose(cost[:, 0], same, rtol=1e-5)


class Searches(unittest.TestCase):
    def test_the_best_label_of_each_step(self):
        labels, scores = ops.ctc_decode(LOGITS, np.array([6, 5]))
        self.assertEqual(labels.numpy().tolist(), [[[2, 3, 3, -1, -1, -1], [3, 1, 2, -1, -1, -1]]])
        np.testing.assert_allclose(scores, [[-4.8233824], [-1.9111838]], rtol=1e-5)
        found, scores = tf.nn.ctc_greedy_decoder(LOGITS.transpose(1, 0, 2), [6, 5], blank_index=0)
        self.assertEqual(tf.sparse.to_dense(found[0], default_value=-1).numpy().tolist(), [[2, 3, 3], [3, 1, 2]])

    def test_the_best_sequences(self):
        labels, scores = ops.ctc_decode(LOGITS, np.array([6, 5]), strategy="beam_search", top_paths=2, beam_width=8, mask_index=3)
        self.assertEqual(labels.numpy()[:, :, :3].tolist(), [[[2, 0, 0], [2, 0, -1]], [[2, 1, 0], [1, 0, -1]]])
        np.testing.assert_allclose(scores, [[-4.0825047, -4.1404276], [-3.1451905, -3.2226768]], rtol=1e-5)
        found, _ = tf.nn.ctc_beam_search_decoder(LOGITS.transpose(1, 0, 2), [6, 5], beam_width=8, top_paths=2)
        self.assertEqual(tf.sparse.to_dense(found[1], -1).numpy().tolist(), [[2, 1, 0], [1, 0, -1]])
        with self.assertRaisesRegex(ValueError, "'greedy' or 'beam_search'"):
            ops.ctc_decode(LOGITS, np.array([6, 5]), strategy="best")
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "from 0 to the 6 steps"):
            ops.ctc_decode(LOGITS, np.array([6, 7]))


class Sparse(unittest.TestCase):
    def test_values_at_indices(self):
        sparse = tf.SparseTensor([[0, 1], [2, 0]], [5.0, -1.0], [3, 2])
        self.assertEqual((sparse.shape, sparse.dtype), ((3, 2), tf.float32))
        self.assertEqual(tf.sparse.to_dense(sparse).numpy().tolist(), [[0, 5], [0, 0], [-1, 0]])
        self.assertEqual(tf.sparse.to_dense(sparse, default_value=9.0).numpy().tolist(), [[9, 5], [9, 9], [-1, 9]])
        self.assertEqual(tf.sparse.sparse_dense_matmul(sparse, [[1.0, 2.0], [3.0, 4.0]]).numpy().tolist(), [[15, 20], [0, 0], [-1, -2]])
        self.assertEqual(tf.sparse.sparse_dense_matmul(sparse, np.eye(3, dtype="float32"), adjoint_a=True).numpy().tolist(), [[0, 0, -1], [5, 0, 0]])
        self.assertEqual(tf.sparse.reduce_sum(sparse, axis=0).numpy().tolist(), [-1, 5])
        again = tf.sparse.from_dense([[0, 7], [8, 0]])
        self.assertEqual((again.indices.numpy().tolist(), again.values.numpy().tolist()), ([[0, 1], [1, 0]], [7, 8]))

    def test_indices_are_checked(self):
        turned = tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"\[0, 1\] is out of order; tf.sparse.reorder"):
            tf.sparse.to_dense(turned)
        self.assertEqual(tf.sparse.to_dense(tf.sparse.reorder(turned)).numpy().tolist(), [[0, 2], [1, 0]])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"\[0, 2\] is outside of the shape \[2, 2\]"):
            tf.sparse.to_dense(tf.SparseTensor([[0, 2]], [1], [2, 2]))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"values are \[1\] at 2 indices"):
            tf.SparseTensor([[0, 1], [1, 1]], [1], [2, 2])


class Candidates(unittest.TestCase):
    weights = np.cos(np.arange(12)).reshape(6, 2).astype("float32")
    biases = np.arange(6).astype("float32") / 10
    inputs = np.array([[1.0, 2.0], [-1, 0.5]], "float32")

    def test_losses_of_given_candidates(self):
        given = tf.constant([0, 3, 2]), tf.constant([[0.5], [0.4]]), tf.constant([0.9, 0.2, 0.4])
        arguments = self.weights, self.biases, tf.constant([[1], [2]]), self.inputs, 3, 6
        np.testing.assert_allclose(tf.nn.sampled_softmax_loss(*arguments, sampled_values=given), [6.1196866, 0.4922322], rtol=1e-5)
        np.testing.assert_allclose(tf.nn.nce_loss(*arguments, sampled_values=given), [9.8039951, 4.178042], rtol=1e-5)

    def test_classes_are_drawn_as_often_as_said(self):
        drawn, of_true, of_drawn = tf.random.log_uniform_candidate_sampler(tf.constant([[1], [2]]), 1, 3, False, 6, seed=1)
        np.testing.assert_allclose(of_true, [[0.6251036], [0.4435180]], rtol=1e-5)
        self.assertEqual((drawn.shape, of_drawn.shape), ((3,), (3,)))
        drawn, _, expected = tf.random.uniform_candidate_sampler(tf.constant([[1]]), 1, 6, True, 6)
        self.assertEqual(sorted(drawn.numpy().tolist()), [0, 1, 2, 3, 4, 5])
        np.testing.assert_allclose(expected, np.ones(6), atol=1e-3)
        shares = np.zeros(4)
        for _ in range(100):
            shares[tf.random.fixed_unigram_candidate_sampler(tf.constant([[1]]), 1, 2, True, 4, unigrams=[0, 1, 1, 8], seed=3)[0].numpy()] += 1
        self.assertEqual(shares[0], 0)
        self.assertGreater(shares[3], 80)
        with self.assertRaisesRegex(ValueError, "num_sampled is 7 of 6 classes"):
            tf.random.uniform_candidate_sampler(tf.constant([[1]]), 1, 7, True, 6)

    def test_a_function_draws_in_each_run(self):
        step = tf.function(lambda labels: tf.nn.nce_loss(self.weights, self.biases, labels, self.inputs, 3, 6))
        values = {tuple(step(tf.constant([[1], [2]])).numpy().tolist()) for _ in range(8)}
        self.assertGreater(len(values), 1)

    def test_pairs_of_words(self):
        sequence = keras.preprocessing.sequence
        np.testing.assert_allclose(sequence.make_sampling_table(5), [0.00315225, 0.00315225, 0.00547597, 0.00741556, 0.00912817], rtol=1e-5)
        pairs, labels = sequence.skipgrams([1, 2, 0, 3], 5, window_size=2, negative_samples=0)
        self.assertEqual((sorted(pairs), labels), ([[1, 2], [2, 1], [2, 3], [3, 2]], [1] * 4))
        pairs, labels = sequence.skipgrams([1, 2, 3], 9, window_size=1, negative_samples=2.0, seed=4)
        self.assertEqual((len(pairs), sum(labels)), (12, 4))
        self.assertEqual((pairs, labels), sequence.skipgrams([1, 2, 3], 9, window_size=1, negative_samples=2.0, seed=4))

    def test_beams_are_the_sums_of_all_paths(self):
        random = np.random.default_rng(0)
        for steps, classes in ((1, 2), (3, 3), (5, 2), (5, 3)):
            logits = random.normal(size=(1, steps, classes)) * 2
            chances = logits[0] - np.log(np.exp(logits[0]).sum(-1, keepdims=True))
            sums = {}
            for path in itertools.product(range(classes), repeat=steps):
                labels = tuple(label for label, _ in itertools.groupby(path) if label != classes - 1)
                sums[labels] = sums.get(labels, 0) + np.exp(sum(chances[step, label] for step, label in enumerate(path)))
            best = sorted(sums.items(), key=lambda item: -item[1])[:2]
            found, scores = keras.ops.ctc_decode(logits, [steps], "beam_search", beam_width=500, top_paths=2, mask_index=classes - 1)
            for place, (labels, chance) in enumerate(best):
                self.assertEqual([label for label in found.numpy()[place, 0].tolist() if label >= 0], list(labels))
                self.assertAlmostEqual(float(np.exp(scores.numpy()[0, place])), chance, places=5)


if __name__ == "__main__":
    unittest.main()
