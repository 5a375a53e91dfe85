"""`keras.ops.image`, and random changes of images in traced functions. The expected values are Keras's."""

import unittest

import numpy as np
import wgrad as tf

keras = tf.keras
image = keras.ops.image
X = np.sin(np.arange(12) * 0.9).reshape(1, 3, 4, 1).astype("float32")
TRANSFORM = np.array([1.1, 0.1, -0.5, 0.2, 0.9, 0.3, 0, 0], "float32")


class Functions(unittest.TestCase):
    def values(self, made, expected):
        np.testing.assert_allclose(np.ravel(made), expected, atol=2e-6)

    def test_sizes(self):
        self.values(image.resize(X, (2, 2)), [0.11624128, 0.43096647, 0.48382783, -0.11152536])
        self.values(image.resize(X, (2, 2), crop_to_aspect_ratio=True), [0.00280559, 0.4886741, 0.48422432, 0.20768201])
        padded = image.resize(X, (4, 4), pad_to_aspect_ratio=True)
        self.values(padded[0, 0], [0.0, 0.78332692, 0.97384763, 0.42737988])
        self.values(padded[0, 3], [0.79366785, 0.96988982, 0.41211849, -0.45753589])
        self.assertEqual(image.resize((X * 255).astype("uint8"), (2, 2)).dtype, tf.uint8)
        self.assertEqual(image.pad_images(X, 1, 2, target_height=6, target_width=7).shape, (1, 6, 7, 1))
        self.values(image.crop_images(X, 1, 1, target_height=1, target_width=2), X[0, 1, 1:3, 0])
        with self.assertRaisesRegex(ValueError, "give two of the paddings"):
            image.pad_images(X, 1, 2)

    def test_patches(self):
        x = np.arange(2 * 4 * 6).reshape(2, 4, 6, 1).astype("float32")
        made = image.extract_patches(x, 2)
        self.assertEqual(made.shape, (2, 2, 3, 4))
        self.assertEqual(made.numpy()[0, 1, 2].tolist(), [16, 17, 22, 23])
        self.assertEqual(image.extract_patches(x[0], (2, 3), strides=1, padding="same").shape, (4, 6, 6))
        symbol = keras.Input((4, 6, 1))
        model = keras.Model(symbol, image.extract_patches(symbol, 2))
        self.assertEqual(model.output_shape, (None, 2, 3, 4))
        self.assertEqual(model(x).numpy()[0, 1, 2].tolist(), [16, 17, 22, 23])

    def test_moved_images(self):
        self.values(
            image.affine_transform(X, TRANSFORM),
            [-0.06637807, -0.14676504, -0.30892858, -0.07332416, -0.11716966, -0.12340692, -0.01128346, -0.30888522, 0.50001079, 0.65425181,
             0.23394778, -0.13726071],
        )
        self.values(
            image.affine_transform(X, TRANSFORM[None], fill_mode="reflect")[0, 2], [0.79366785, 0.93464541, 0.46789557, -0.45753589]
        )
        at = np.array([[0.5, 1.2, -0.7], [0, 2.3, 1.2]], "float32")
        self.values(image.map_coordinates(X[0, :, :, 0], at, 1, fill_mode="mirror"), [-0.22126022, -0.39846838, -0.40917453])
        self.values(image.gaussian_blur(X)[0, 1], [0.01856688, 0.03074636, 0.02430585, 0.00810317])
        with self.assertRaisesRegex(ValueError, r"the transform is \[1, 3\] for 1 images"):
            image.affine_transform(X, [1, 2, 3])

    def test_colours(self):
        x = np.array([[[[1.0, 0.5, 0.0]]]], "float32")
        self.values(image.rgb_to_hsv(x), [1 / 12, 1, 1])
        self.values(image.hsv_to_rgb(image.rgb_to_hsv(x)), x.ravel())
        self.values(image.rgb_to_grayscale(x[0]), [0.2989 + 0.5 * 0.587])


class RandomLayers(unittest.TestCase):
    x = np.arange(2 * 6 * 6).reshape(2, 6, 6, 1).astype("float32")

    def test_a_call_changes_images(self):
        flip = keras.layers.RandomFlip("horizontal", seed=3)
        self.assertGreater(len({flip(self.x).numpy().tobytes() for _ in range(8)}), 1)
        np.testing.assert_array_equal(flip(self.x, training=False), self.x)
        data = tf.data.Dataset.from_tensor_slices(self.x).batch(2).repeat(8).map(lambda images: flip(images))
        self.assertGreater(len({images.numpy().tobytes() for images in data}), 1)
        # Other layers are those of a prediction.
        np.testing.assert_array_equal(keras.layers.Dropout(0.5)(self.x), self.x)

    def test_a_model_that_predicts_does_not(self):
        model = keras.Sequential([keras.Input((6, 6, 1)), keras.layers.RandomFlip(), keras.layers.RandomRotation(0.2)])
        np.testing.assert_array_equal(model.predict(self.x, verbose=0), self.x)

        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.change = keras.layers.RandomTranslation(0.5, 0.5)

            def call(self, x):
                return self.change(x)

        own = Own()
        np.testing.assert_array_equal(own.predict(self.x, verbose=0), self.x)
        np.testing.assert_array_equal(own(self.x, training=False), self.x)


class RandomInFunctions(unittest.TestCase):
    def runs(self, function, x):
        traced = tf.function(function)
        return [traced(x).numpy() for _ in range(24)]

    def test_each_run_crops_another_part(self):
        x = tf.constant(np.arange(36).reshape(6, 6, 1).astype("float32"))
        corners = {int(part[0, 0, 0]) for part in self.runs(lambda x: tf.image.random_crop(x, [3, 4, 1]), x)}
        self.assertGreater(len(corners), 3)
        for part in self.runs(lambda x: tf.image.random_crop(x, [3, 4, 1]), x)[:4]:
            row, column = divmod(int(part[0, 0, 0]), 6)
            self.assertEqual(part.tolist(), x.numpy()[row : row + 3, column : column + 4].tolist())

    def test_each_run_flips_or_does_not(self):
        x = tf.constant(np.arange(6).reshape(1, 6, 1).astype("float32"))
        made = {tuple(flipped.ravel()) for flipped in self.runs(tf.image.random_flip_left_right, x)}
        self.assertEqual(made, {(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0)})

    def test_changes_equal_those_of_their_numbers(self):
        x = tf.constant(np.random.default_rng(0).random((4, 4, 3)).astype("float32"))
        for random, adjust, bounds in (
            (tf.image.random_brightness, tf.image.adjust_brightness, (0.4,)), (tf.image.random_contrast, tf.image.adjust_contrast, (0.5, 1.5)),
            (tf.image.random_saturation, tf.image.adjust_saturation, (0.3, 0.9)), (tf.image.random_hue, tf.image.adjust_hue, (0.2,)),
        ):
            made = self.runs(lambda x: random(x, *bounds), x)
            self.assertGreater(len({one.tobytes() for one in made}), 2, random.__name__)
            low, high = (-bounds[0], bounds[0]) if len(bounds) == 1 else bounds
            nearest = min(np.abs(adjust(x, number).numpy() - made[0]).max() for number in np.linspace(low, high, 801).tolist())
            self.assertLess(nearest, 2e-3, random.__name__)


if __name__ == "__main__":
    unittest.main()
