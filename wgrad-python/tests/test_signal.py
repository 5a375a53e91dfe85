"""Complex numbers and `tf.signal`. NumPy computes the expected values, in another way."""

import unittest

import numpy as np
import wgrad as tf

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 50)).astype("float32")
Z = (RNG.normal(size=(2, 6)) + 1j * RNG.normal(size=(2, 6))).astype("complex64")


def near(got, wanted, tolerance=2e-5):
    got = got.numpy() if hasattr(got, "numpy") else got
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * max(1, np.abs(wanted).max()))


class Complex(unittest.TestCase):
    def setUp(self):
        self.z = tf.complex(tf.constant(Z.real.copy()), tf.constant(Z.imag.copy()))

    def test_parts(self):
        z = self.z
        self.assertEqual((z.dtype, z.shape.as_list(), len(z)), (tf.complex64, [2, 6], 2))
        for function, wanted in (
            (tf.abs, np.abs), (tf.math.abs, np.abs), (abs, np.abs), (tf.math.real, np.real), (tf.math.imag, np.imag),
            (tf.math.angle, np.angle), (tf.math.conj, np.conj),
        ):
            near(function(z), wanted(Z))
        near(tf.cast(z, tf.float32), Z.real)
        near(tf.math.real(X), X)
        near(tf.math.imag(X), np.zeros_like(X))
        near(tf.math.angle(X), np.angle(X))
        near(tf.abs(X), np.abs(X))
        np.testing.assert_array_equal(np.asarray(z), Z)

    def test_operators(self):
        z = self.z
        w = tf.cast(tf.constant(Z.real.copy()), tf.complex64)
        near(z + w, Z + Z.real)
        near(z - w, Z - Z.real)
        near(2.0 - z, 2 - Z)
        near(z * z, Z * Z)
        near(tf.multiply(z, Z.conj()), Z * Z.conj())
        near(z / (z + 3), Z / (Z + 3))
        near(1 / z, 1 / Z)
        near(-z * 2.0, -2 * Z)
        near(Z * z, Z * Z)
        near(tf.reduce_sum(z, axis=1), Z.sum(1))
        near(tf.reduce_mean(z, axis=-1, keepdims=True), Z.mean(-1, keepdims=True))
        near(tf.reduce_sum(z), Z.sum())

    def test_slices(self):
        for key in (0, (0, 2), (slice(None), slice(1, 5, 2)), (Ellipsis, 3), (slice(None), None, 1)):
            near(self.z[key], Z[key])
        with self.assertRaises(IndexError):
            self.z[0, 0, 0]

    def test_gradients(self):
        a, b = tf.Variable(Z.real.copy()), tf.Variable(Z.imag.copy())
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.abs(tf.complex(a, b)))
        da, db = tape.gradient(y, [a, b])
        near(da, Z.real / np.abs(Z))
        near(db, Z.imag / np.abs(Z))
        zero = tf.Variable([0.0])
        with tf.GradientTape() as tape:
            y = tf.abs(tf.complex(zero, zero))
        self.assertEqual(tape.gradient(y, zero).numpy().tolist(), [0.0])


class Signal(unittest.TestCase):
    def test_transforms(self):
        signal = tf.signal
        near(signal.fft(Z), np.fft.fft(Z))
        near(signal.ifft(Z), np.fft.ifft(Z))
        near(signal.rfft(X), np.fft.rfft(X))
        near(signal.rfft(X, [64]), np.fft.rfft(X, 64))
        near(signal.irfft(signal.rfft(X)), X)
        near(signal.irfft(Z, fft_length=[8]), np.fft.irfft(Z, 8))
        near(signal.fft2d(Z), np.fft.fft2(Z))
        near(signal.ifft2d(signal.fft2d(Z)), Z)
        near(signal.rfft2d(X), np.fft.rfft2(X))
        near(signal.rfft2d(X, [4, 30]), np.fft.rfft2(X, [4, 30]))
        near(signal.irfft2d(signal.rfft2d(X), [2, 50]), X)

    def test_short_time_transforms(self):
        frames = np.stack([X[:, at : at + 16] for at in range(0, 35, 8)], axis=1)
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
        near(tf.signal.stft(X, 16, 8), np.fft.rfft(frames * window))
        near(tf.signal.stft(X, 16, 8, window_fn=None, fft_length=32), np.fft.rfft(frames, 32))
        self.assertEqual(tf.signal.stft(X, 12, 4, pad_end=True).shape, (2, 13, 9))
        back = tf.signal.inverse_stft(tf.signal.stft(X, 16, 8), 16, 8, window_fn=tf.signal.inverse_stft_window_fn(8))
        near(back[:, 8:40], X[:, 8:40])
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.abs(tf.signal.stft(x, 16, 8, window_fn=None, fft_length=16)) ** 2)
        gradient = tape.gradient(y, x).numpy()
        step = np.zeros_like(X)
        step[0, 20] = 1e-2
        energy = lambda x: (np.abs(np.fft.rfft(np.stack([x[:, at : at + 16] for at in range(0, 35, 8)], 1).astype("float64"))) ** 2).sum()
        self.assertAlmostEqual(gradient[0, 20], (energy(X + step) - energy(X - step)) / 2e-2, delta=0.05)

    def test_cosine_transforms(self):
        n = X.shape[1]
        basis = np.cos(np.pi * np.arange(n)[:, None] * (2 * np.arange(n) + 1) / (2 * n))
        near(tf.signal.dct(X), 2 * X @ basis.T)
        near(tf.signal.idct(tf.signal.dct(X, norm="ortho"), norm="ortho"), X)
        near(tf.signal.idct(tf.signal.dct(X)) / (2 * n), X)
        near(tf.signal.idct(X, type=3), tf.signal.dct(X, type=2).numpy())
        near(tf.signal.idct(tf.signal.dct(X, type=4), type=4) / (2 * n), X)

    def test_windows_frames_and_mel(self):
        near(tf.signal.hann_window(10, periodic=False), np.hanning(10))
        near(tf.signal.hann_window(10), np.hanning(11)[:10])
        near(tf.signal.hamming_window(9, periodic=False), np.hamming(9), 1e-4)
        near(tf.signal.kaiser_window(7, 5.0), np.kaiser(7, 5.0))
        near(tf.signal.frame(X, 10, 10), X.reshape(2, 5, 10))
        near(tf.signal.overlap_and_add(np.ones((3, 4), "float32"), 2), [1, 1, 2, 2, 2, 2, 1, 1])
        weights = tf.signal.linear_to_mel_weight_matrix(10, 65, 16000, 80.0, 7600.0).numpy()
        self.assertEqual(weights.shape, (65, 10))
        # The centre of the third of 12 edges on the mel scale.
        mel = lambda f: 1127 * np.log(1 + f / 700)
        edges = 700 * (np.exp(np.linspace(mel(80), mel(7600), 12) / 1127) - 1)
        bins = np.linspace(0, 8000, 65)
        self.assertEqual(weights[:, 2].argmax(), np.abs(mel(bins) - mel(edges[3])).argmin())

    def test_errors(self):
        with self.assertRaisesRegex(TypeError, "axis"):
            tf.signal.dct(X, axis=0)
        with self.assertRaises(ValueError):
            tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0)
        with self.assertRaises(ValueError):
            tf.signal.stft(X, 0, 4)


class Others(unittest.TestCase):
    IMAGES = RNG.random((2, 12, 12, 3)).astype("float32")

    def test_patches_and_crops(self):
        patches = tf.image.extract_patches(self.IMAGES, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
        near(patches[1, 2, 3], self.IMAGES[1, 4:7, 6:9].reshape(-1))
        crops = tf.image.crop_and_resize(self.IMAGES, np.array([[0, 0, 1, 1]], "float32"), np.array([1], "int32"), [12, 12])
        near(crops[0], self.IMAGES[1])

    def test_pooling_with_places(self):
        y, places = tf.nn.max_pool_with_argmax(self.IMAGES, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        near(y, self.IMAGES.reshape(2, 6, 2, 6, 2, 3).max((2, 4)))
        near(self.IMAGES[0].reshape(-1)[places[0].numpy()], y[0].numpy())

    def test_statistics(self):
        count, mean, variance = tf.nn.sufficient_statistics(X, [1])
        mean, variance = tf.nn.normalize_moments(count, mean, variance, None)
        near(mean, X.mean(1))
        near(variance, X.var(1))
        self.assertEqual(tf.histogram_fixed_width_bins([0.1, 0.9, -3.0, 7.0], [0.0, 1.0], nbins=5).numpy().tolist(), [0, 4, 0, 4])
        self.assertEqual(tf.math.segment_prod([2.0, 3.0, 4.0], [0, 0, 1]).numpy().tolist(), [6.0, 4.0])
        y = tf.nn.dilation2d(self.IMAGES, np.zeros((2, 2, 3), "float32"), [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
        near(y[0, 0, 0], self.IMAGES[0, :2, :2].max((0, 1)))


if __name__ == "__main__":
    unittest.main()
