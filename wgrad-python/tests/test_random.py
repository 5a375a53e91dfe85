"""Random numbers: TensorFlow's values for seeds and generators, distributions, states, errors."""

import pathlib
import tempfile
import unittest

import numpy as np

import wgrad as tf

LOGITS = np.log([[0.2, 0.3, 0.5]]).astype("float32")
# What TensorFlow 2.21 draws.
VALUES = {
    "uniform": [0.8440604, 0.1920453, 0.9962232, 0.1603874],
    "range": [2.0643625, -1.847728, 2.9773393, -2.0376756],
    "normal": [0.5441101, 0.2073803, 0.0735643, 0.0464346],
    "truncated": [0.6521323, 4.3447094, 1.6963403, -2.4077814],
    "integers": [40, 49, 94, 79],
    "bits": [1105988140, 1738052849, 3959391294, 370444179],
    "g.uniform": [0.3993284, 0.7840713, 0.6788015],
    "g.normal": [-1.2344412, 0.0991673, -0.9690246],
    "g.integers": [1, 8, 3, 0],
    "g.state": [2567, 0, 0],
    "g.split": [[0.5231177, 0.3053284], [0.6846197, 0.7211379]],
    "g.bits": [1483302718, 4037772944],
}


class Random(unittest.TestCase):
    def test_numbers_of_seeds_are_those_of_tensorflow(self):
        near = lambda made, wanted: np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-5, atol=1e-6)
        near(tf.random.stateless_uniform([4], [1, 2]), VALUES["uniform"])
        near(tf.random.stateless_uniform([4], [1, 2], minval=-3, maxval=3), VALUES["range"])
        near(tf.random.stateless_normal([4], [1, 2]), VALUES["normal"])
        near(tf.random.stateless_truncated_normal([4], (3, 4), mean=1.0, stddev=2.0), VALUES["truncated"])
        self.assertEqual(tf.random.stateless_uniform([4], [1, 2], 0, 100, tf.int32).numpy().tolist(), VALUES["integers"])
        bits = tf.random.stateless_uniform([4], [1, 2], None, None, tf.uint32)
        self.assertEqual(bits.numpy().tolist(), VALUES["bits"])

    def test_generators_are_those_of_tensorflow(self):
        g = tf.random.Generator.from_seed(7, alg="philox")
        np.testing.assert_allclose(g.uniform([3]).numpy(), VALUES["g.uniform"], rtol=1e-6)
        np.testing.assert_allclose(g.normal([3]).numpy(), VALUES["g.normal"], rtol=1e-5)
        self.assertEqual(g.uniform([4], 0, 10, tf.int32).numpy().tolist(), VALUES["g.integers"])
        self.assertEqual(g.state.tolist(), VALUES["g.state"])
        first, second = g.split(2)
        np.testing.assert_allclose(first.uniform([2]).numpy(), VALUES["g.split"][0], rtol=1e-6)
        np.testing.assert_allclose(second.uniform([2]).numpy(), VALUES["g.split"][1], rtol=1e-6)
        self.assertEqual(g.uniform_full_int([2], dtype="uint32").numpy().tolist(), VALUES["g.bits"])

    def test_states_go_on(self):
        g = tf.random.Generator.from_seed(5)
        g.normal([7])
        other = tf.random.Generator.from_state(g.state)
        np.testing.assert_array_equal(other.uniform([5]).numpy(), g.uniform([5]).numpy())
        g.reset(other.state)
        np.testing.assert_array_equal(other.normal([5]).numpy(), g.normal([5]).numpy())

    def test_checkpoints_have_states(self):
        with tempfile.TemporaryDirectory() as folder:
            g = tf.random.Generator.from_seed(5)
            g.uniform([3])
            path = tf.train.Checkpoint(g=g).save(pathlib.Path(folder) / "c")
            wanted = g.uniform([4]).numpy()
            other = tf.random.Generator.from_seed(1)
            tf.train.Checkpoint(g=other).restore(path).assert_consumed()
            np.testing.assert_array_equal(other.uniform([4]).numpy(), wanted)

    def test_categorical(self):
        share = lambda drawn: np.bincount(drawn.numpy()[0], minlength=3) / drawn.shape[1]
        for drawn in (
            tf.random.categorical(LOGITS, 20_000), tf.random.stateless_categorical(LOGITS, 20_000, [1, 2]),
            tf.keras.random.categorical(LOGITS, 20_000, seed=3),
        ):
            self.assertEqual((drawn.shape, drawn.dtype), ((1, 20_000), tf.int32))
            np.testing.assert_allclose(share(drawn), [0.2, 0.3, 0.5], atol=0.02)
        again = [tf.random.stateless_categorical(LOGITS, 50, [1, 2]).numpy() for _ in range(2)]
        np.testing.assert_array_equal(*again)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.random.categorical([1.0, 2.0], 3)

    def test_gamma_and_poisson(self):
        alpha = tf.constant([0.5, 2.0])
        x = tf.random.gamma([20_000], alpha, 2.0)
        self.assertEqual(x.shape, (20_000, 2))
        np.testing.assert_allclose(x.numpy().mean(0), [0.25, 1.0], atol=0.03)
        x = tf.random.poisson([20_000], [0.5, 3.0])
        np.testing.assert_allclose(x.numpy().mean(0), [0.5, 3.0], atol=0.06)
        np.testing.assert_array_equal(x.numpy() % 1, 0)
        x = tf.random.stateless_poisson([10_000, 2], [1, 2], [0.5, 3.0])
        self.assertEqual(x.dtype, tf.int32)
        np.testing.assert_allclose(x.numpy().mean(0), [0.5, 3.0], atol=0.08)
        x = tf.random.stateless_binomial([10_000], [1, 2], 10.0, 0.3)
        np.testing.assert_allclose(x.numpy().mean(), 3.0, atol=0.08)
        self.assertEqual(tf.random.stateless_gamma([3, 2], [1, 2], alpha).shape, (3, 2))

    def test_errors(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "two integers"):
            tf.random.stateless_uniform([2], [1, 2, 3])
        with self.assertRaisesRegex(ValueError, "maxval"):
            tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)
        with self.assertRaisesRegex(ValueError, "32 bits"):
            tf.random.uniform([2], 0, 2**40, tf.int32)
        with self.assertRaisesRegex(ValueError, "threefry"):
            tf.random.Generator.from_seed(1, alg="threefry")


class CallsWithSeeds(unittest.TestCase):
    def test_they_repeat_after_set_seed(self):
        draws = [
            lambda: tf.random.uniform([3], seed=5), lambda: tf.random.normal([3], seed=5), lambda: tf.random.truncated_normal([3], seed=5),
            lambda: tf.random.uniform([3], maxval=1000, dtype="int32", seed=5), lambda: tf.random.gamma([3], 2.0, seed=5),
            lambda: tf.random.poisson([3], 9.0, seed=5), lambda: tf.random.categorical(np.zeros((1, 50), "float32"), 8, seed=5),
            lambda: tf.nn.dropout(tf.ones([40]), 0.5, seed=5), lambda: tf.image.random_crop(np.arange(900.0).reshape(30, 30), [2, 2], seed=5),
        ]
        for draw in draws:
            made = []
            for seed in (1, 1, 2):
                tf.random.set_seed(seed)
                # Other draws do not change the numbers of a seed.
                tf.random.uniform([len(made)])
                made.append([draw().numpy().tolist(), draw().numpy().tolist()])
            self.assertEqual(made[0], made[1])
            self.assertNotEqual(made[0][0], made[0][1])
            self.assertNotEqual(made[0], made[2])


if __name__ == "__main__":
    unittest.main()
