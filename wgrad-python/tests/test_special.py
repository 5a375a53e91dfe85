"""Special functions, functions of matrices, boxes in images and numbers of seeds; values are those of SciPy and of TensorFlow 2.21."""

import unittest

import numpy as np

import wgrad as tf


def near(made, wanted, by=2e-6):
    np.testing.assert_allclose(made.numpy(), wanted, rtol=by, atol=by * np.abs(np.asarray(wanted)).max())


class SpecialFunctions(unittest.TestCase):
    A, X = [0.1, 0.5, 2.0, 10.0, 50.0, 300.0, 300.0], [0.02, 2.0, 1.0, 14.0, 45.0, 310.0, 500.0]

    def test_incomplete_gamma_functions(self):
        lower = [0.7095387288, 0.9544997361, 0.2642411177, 0.8906006304, 0.2468020344, 0.7224887542, 1.0]
        upper = [0.2904612712, 0.0455002639, 0.7357588823, 0.1093993696, 0.7531979656, 0.2775112458, 1.693383686e-22]
        np.testing.assert_allclose(tf.math.igamma(self.A, self.X), lower, rtol=5e-6)
        np.testing.assert_allclose(tf.math.igammac(self.A[:6], self.X[:6]), upper[:6], rtol=5e-6)
        self.assertLess(float(tf.math.igammac(300.0, 500.0)), 1e-20)
        nan, inf = np.nan, np.inf
        edges = [0.0, 0, -1, 1, 1, 2, inf, 1, 2], [0.0, 1, 1, -1, 0, inf, 1, nan, 1e-30]
        np.testing.assert_array_equal(tf.math.igamma(*edges), [0, nan, nan, nan, 0, 1, 0, nan, 0])
        np.testing.assert_array_equal(tf.math.igammac(*edges), [nan, nan, nan, nan, 1, 0, 1, nan, 1])

    def test_their_gradients(self):
        a, x = tf.constant([0.5, 2.0, 30.0]), tf.constant([1.0, 1.5, 28.0])
        with tf.GradientTape() as tape:
            tape.watch([a, x])
            y = tf.math.igamma(a, x)
        da, dx = tape.gradient(y, [a, x])
        near(da, [-0.38983727, -0.31348854, -0.07049279], 1e-5)
        near(dx, [0.20755376, 0.33469525, 0.07257695], 1e-5)
        traced = tf.function(tf.math.igammac)
        near(traced(a, x), 1 - y.numpy(), 1e-5)

    def test_incomplete_beta_function(self):
        a, b = [0.5, 2.0, 50.0, 400.0], [0.5, 3.0, 20.0, 300.0]
        x = tf.Variable([0.25, 0.5, 0.75, 0.5625])
        with tf.GradientTape() as second:
            with tf.GradientTape() as tape:
                y = tf.math.betainc(a, b, x)
            slope = tape.gradient(y, x)
        np.testing.assert_allclose(y, [0.3333333333, 0.6875, 0.7387013548, 0.3156030446], rtol=2e-7)
        # Of 12 x (1 - x)^2 and its derivative.
        self.assertAlmostEqual(float(slope[1]), 12 * 0.5 * 0.25, 5)
        self.assertAlmostEqual(float(second.gradient(slope, x)[1]), 12 * (1 - 4 * 0.5 + 3 * 0.25), 5)
        np.testing.assert_array_equal(tf.math.betainc([0.0, 2, 1, 2], [1.0, 3, 1, 3], [0.5, 0, 1, 1.5]), [np.nan, 0, 1, np.nan])

    def test_errors(self):
        for call, text in (
            (lambda: tf.math.igamma(tf.constant([1]), 1.0), "one float dtype"),
            (lambda: tf.math.igamma(tf.ones([2]), tf.ones([3])), "2.*3"),
            (lambda: tf.function(lambda x: tf.math.betainc(1.0, 1.0, x))(tf.constant(0.5)), "no value yet"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(Exception, text):
                call()


class Matrices(unittest.TestCase):
    M = [[4.0, 1.0], [2.0, 3.0]]

    def test_roots_and_logarithms(self):
        m = tf.constant(self.M)
        with tf.GradientTape() as tape:
            tape.watch(m)
            root = tf.linalg.sqrtm(m)
            z = tf.reduce_sum(root * [[1.0, 2.0], [3.0, 4.0]])
        near(root, [[1.96211624, 0.27395135], [0.54790282, 1.68816471]], 2e-7)
        near(tape.gradient(z, m), [[0.12616828, 0.37358579], [0.73469597, 1.0351814]], 1e-6)
        logarithm = tf.linalg.logm(tf.cast(m, tf.complex64))
        near(logarithm, [[1.30400753, 0.30543023], [0.61086041, 0.9985773]], 1e-6)
        covariance = np.ones((3, 2), "float32") @ np.ones((2, 3), "float32")
        root = tf.matrix_square_root(covariance).numpy()
        np.testing.assert_allclose(root @ root, covariance, atol=1e-5)
        for call, text in (
            (lambda: tf.linalg.sqrtm([[-1.0, 0], [0, 2]]), r"no real root .* \[-1\.  2\.\]"),
            (lambda: tf.linalg.sqrtm([[1.0, 2, 3]]), r"\[1, 3\].*square matrix"),
            (lambda: tf.linalg.eig([[np.nan]]), "Inf or NaN"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()
        with self.assertRaisesRegex(TypeError, "must be complex"):
            tf.linalg.logm(m)

    def test_complex_eigenvalues(self):
        values, vectors = tf.eig([[0.0, 1.0], [-1.0, 0.0]])
        np.testing.assert_allclose(sorted(values.numpy(), key=lambda z: z.imag), [-1j, 1j], atol=1e-7)
        np.testing.assert_allclose(np.array([[0, 1], [-1, 0]]) @ vectors.numpy(), values.numpy() * vectors.numpy(), atol=1e-6)
        self.assertEqual(tf.linalg.eigvals(np.zeros((2, 3, 3), "float32")).shape, (2, 3))

    def test_factors(self):
        m = np.array([[[1.0, 9.0, 2.0], [4.0, 1.0, 7.0], [8.0, 3.0, 1.0]]], "float32")
        lu, perm = tf.linalg.lu(m)
        near(tf.linalg.lu_reconstruct(lu, perm), m, 1e-6)
        near(tf.linalg.lu_matrix_inverse(lu, perm), np.linalg.inv(m), 1e-6)

    def test_few_diagonals(self):
        d = tf.constant([[2.0, 3.0, 9.0], [5.0, 6.0, 7.0], [9.0, 1.0, 2.0]])
        near(tf.linalg.tridiagonal_solve(d, [1.0, 2.0, 3.0]), [0.15662651, 0.10843373, 0.39759037])
        near(tf.linalg.tridiagonal_matmul(d, [[1.0], [2.0], [3.0]]), [[9.0], [22.0], [25.0]])
        sequence = (d[0, :2], d[1], d[2, 1:])
        near(tf.linalg.tridiagonal_solve(sequence, [1.0, 2.0, 3.0], diagonals_format="sequence"), [0.15662651, 0.10843373, 0.39759037])
        near(tf.linalg.banded_triangular_solve([[2.0, 3.0, 4.0], [9.0, 1.0, 2.0]], [[1.0], [2.0], [3.0]]), [[0.5], [0.5], [0.5]])
        near(tf.linalg.eigh_tridiagonal([2.0, 3.0, 4.0], [1.0, 0.5]), [1.35502744, 3.35285974, 4.29211235])
        with self.assertRaisesRegex(ValueError, "diagonals_format is 'wide'"):
            tf.linalg.tridiagonal_solve(d, [1.0, 2.0, 3.0], "wide")

    def test_diagonals(self):
        made = tf.linalg.diag([[0.0, 8.0, 9.0], [1.0, 2.0, 3.0], [4.0, 5.0, 0.0]], k=(-1, 1))
        self.assertEqual(made.numpy().tolist(), [[1, 8, 0], [4, 2, 9], [0, 5, 3]])
        m = tf.reshape(tf.range(12), [3, 4])
        part = lambda **options: tf.linalg.diag_part(m, k=(-1, 2), padding_value=-1, **options).numpy().tolist()
        self.assertEqual(part(), [[-1, 2, 7], [1, 6, 11], [0, 5, 10], [4, 9, -1]])
        self.assertEqual(part(align="LEFT_RIGHT"), [[2, 7, -1], [1, 6, 11], [0, 5, 10], [-1, 4, 9]])
        self.assertEqual(tf.linalg.set_diag(m, [-1, -2, -3], k=1).numpy().tolist(), [[0, -1, 2, 3], [4, 5, -2, 7], [8, 9, 10, -3]])
        self.assertEqual(tf.linalg.diag([1, 2], k=-1, num_cols=2, padding_value=7).numpy().tolist(), [[7, 7], [1, 7], [7, 2]])
        x = tf.Variable(np.arange(9.0).reshape(3, 3))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.linalg.diag_part(x, k=1) ** 2)
        self.assertEqual(tape.gradient(y, x).numpy().tolist(), [[0, 2, 0], [0, 0, 10], [0, 0, 0]])
        for call, text in (
            (lambda: tf.linalg.diag_part(m, k=5), r"5 to 5 .* \[3, 4\]"), (lambda: tf.linalg.diag_part(m, k=(1, 0)), r"k is \[1, 0\]"),
            (lambda: tf.linalg.set_diag(m, [1, 2], k=1), "2 elements; they must have 3"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()


class Boxes(unittest.TestCase):
    BOXES = np.array([[0.1, 0.1, 0.6, 0.6], [0.15, 0.1, 0.6, 0.65], [0.5, 0.5, 1.2, 0.9], [0, 0, 0.1, 0.1]], "float32")
    SCORES = np.array([[0.9, 0.1], [0.8, 0.7], [0.3, 0.95], [0.6, 0.2]], "float32")

    def test_best_boxes(self):
        found = tf.image.combined_non_max_suppression(self.BOXES[None, :, None], self.SCORES[None], 2, 5, 0.5, 0.25)
        near(found.nmsed_scores, [[0.95, 0.9, 0.7, 0.6, 0.0]])
        near(found.nmsed_boxes[0, :2], [[0.5, 0.5, 1.0, 0.9], [0.1, 0.1, 0.6, 0.6]])
        self.assertEqual((found.nmsed_classes.numpy().tolist(), found.valid_detections.numpy().tolist()), ([[1, 0, 1, 0, 0]], [4]))
        chosen, scores = tf.image.non_max_suppression_with_scores(self.BOXES, self.SCORES[:, 0], 4, 1.0, 0.05, 0.5)
        self.assertEqual(chosen.numpy().tolist(), [0, 3, 1, 2])
        near(scores, [0.9, 0.6, 0.4045805, 0.29963228])
        chosen, count = tf.image.non_max_suppression_padded(self.BOXES, self.SCORES[:, 0], 5, pad_to_max_output_size=True)
        self.assertEqual((chosen.numpy().tolist(), int(count)), ([0, 3, 2, 0, 0], 3))
        overlaps = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]], "float32")
        self.assertEqual(tf.image.non_max_suppression_overlaps(overlaps, [0.5, 0.6, 0.1], 3).numpy().tolist(), [1, 2])
        with self.assertRaisesRegex(ValueError, r"\[4, 4\] and scores \[4, 2\]"):
            tf.image.combined_non_max_suppression(self.BOXES, self.SCORES, 2, 5)

    def test_drawn_boxes(self):
        made = tf.image.draw_bounding_boxes(tf.zeros([1, 4, 5, 1]), [[[0.3, 0.2, 1.1, 0.8]]], [[0.5]]).numpy()[0, ..., 0]
        self.assertEqual((made * 2).tolist(), [[1, 1, 1, 1, 0], [1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [1, 1, 1, 1, 0]])
        made = tf.image.draw_bounding_boxes(tf.zeros([1, 3, 3, 3]), [[[0.0, 0.0, 1.0, 1.0]]], [])
        self.assertEqual((made[0, 0, 0].numpy().tolist(), made[0, 1, 1].numpy().tolist()), ([1, 1, 0], [0, 0, 0]))
        with self.assertRaisesRegex(TypeError, "images are uint8"):
            tf.image.draw_bounding_boxes(np.zeros((1, 2, 2, 3), "uint8"), [[[0.0, 0, 1, 1]]], [])


class Seeds(unittest.TestCase):
    def test_changes_of_images(self):
        image = tf.image
        x = tf.reshape(tf.range(12.0), [2, 3, 2, 1])
        flipped = [image.stateless_random_flip_left_right(x, [seed, 3]).numpy().ravel().tolist() for seed in (1, 2)]
        self.assertEqual(flipped[0], [1, 0, 3, 2, 5, 4, 6, 7, 8, 9, 10, 11])
        self.assertEqual(flipped[1], [0, 1, 2, 3, 4, 5, 7, 6, 9, 8, 11, 10])
        near(image.stateless_random_brightness(tf.ones([1, 1, 1]), 0.5, [1, 2]), [[[1.3440604]]])
        near(image.stateless_random_contrast(x[0], 0.2, 0.9, [1, 2])[:, 0, 0], [0.52289426, 2.10457897, 3.68626356])
        self.assertEqual(image.stateless_random_crop(tf.reshape(tf.range(20), [4, 5]), [2, 2], [3, 4]).numpy().tolist(), [[2, 3], [7, 8]])
        near(image.stateless_random_hue([[[0.2, 0.5, 0.3]]], 0.3, [1, 2]), [[[0.2, 0.32841474, 0.5]]])
        near(image.stateless_random_saturation([[[0.2, 0.5, 0.3]]], 0.3, 0.9, [1, 2]), [[[0.2580691, 0.5, 0.33871275]]])
        self.assertEqual(image.stateless_random_flip_up_down(x[0], [5, 3]).shape, (3, 2, 1))
        for call, text in (
            (lambda: image.stateless_random_crop(x, [9, 9, 9, 9], [1, 2]), "each axis must have room"),
            (lambda: image.stateless_random_contrast(x, 2.0, 1.0, [1, 2]), "bounds are 2.0 and 1.0"),
            (lambda: image.stateless_random_hue(x, 0.7, [1, 2]), "at most 0.5"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()

    def test_classes_and_seeds(self):
        drawn = tf.random.stateless_categorical(np.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]).astype("float32"), 12, [1, 2])
        self.assertEqual(drawn.numpy().tolist(), [[2, 2, 0, 2, 2, 2, 2, 1, 2, 2, 2, 1], [2] * 12])
        drawn = tf.random.stateless_categorical([[0.0, -np.inf, 1.0, -np.inf]], 400, [1, 5]).numpy()
        self.assertEqual(set(drawn.ravel().tolist()), {0, 2})
        self.assertEqual(tf.random.split([1, 2]).numpy().tolist(), [[1105988140, 1738052849], [-335576002, 370444179]])
        self.assertEqual(tf.random.fold_in([1, 2], 9).numpy().tolist(), [1105988140, 9])
        with self.assertRaisesRegex(ValueError, r"logits are \[2\]"):
            tf.random.stateless_categorical([0.0, 1.0], 2, [1, 2])


class Signals(unittest.TestCase):
    def test_shifts_and_modified_cosine_transforms(self):
        signal, x = tf.signal, np.arange(10.0, dtype="float32").reshape(2, 5)
        for axes in (None, 1, (0,)):
            np.testing.assert_array_equal(signal.fftshift(x, axes), np.fft.fftshift(x, axes))
            np.testing.assert_array_equal(signal.ifftshift(signal.fftshift(x, axes), axes), x)
        near(signal.fftshift(signal.fft(x), axes=1), np.fft.fftshift(np.fft.fft(x), axes=1), 1e-5)
        near(signal.mdct(np.arange(8, dtype="float32"), 4)[0], [-5.60732079, -0.2148695])
        near(signal.kaiser_bessel_derived_window(4), [0.00726415, 0.9999736, 0.9999736, 0.00726415])
        whole = np.arange(32, dtype="float32")
        for norm in (None, "ortho"):
            near(signal.inverse_mdct(signal.mdct(whole, 8, norm=norm), norm=norm)[4:28], whole[4:28], 1e-5)
        with self.assertRaisesRegex(ValueError, "multiple of 4"):
            signal.mdct(whole, 6)


if __name__ == "__main__":
    unittest.main()
