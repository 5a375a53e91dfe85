"""`tf.TensorArray`: eagerly, in traced loops, and what it refuses. The numbers are TensorFlow's."""

import unittest

import numpy as np

import wgrad as tf


class Arrays(unittest.TestCase):
    def test_methods(self):
        array = tf.TensorArray(tf.float32, size=3)
        for at in range(3):
            array = array.write(at, [at, at + 1.0])
        self.assertEqual(array.stack().numpy().tolist(), [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        self.assertEqual(array.read(tf.constant(1)).numpy().tolist(), [1.0, 2.0])
        self.assertEqual(array.concat().numpy().tolist(), [0.0, 1.0, 1.0, 2.0, 2.0, 3.0])
        self.assertEqual(array.gather([2, 0]).numpy().tolist(), [[2.0, 3.0], [0.0, 1.0]])
        self.assertEqual((int(array.size()), len(array), array.element_shape), (3, 3, (2,)))
        self.assertEqual(array.unstack(tf.ones([3, 2])).stack().numpy().tolist(), [[1.0, 1.0]] * 3)
        self.assertEqual(array.scatter([2, 0], tf.zeros([2, 2])).stack().numpy().tolist(), [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
        pieces = tf.TensorArray(tf.int32, size=2, infer_shape=False).split([1, 2, 3, 4], [1, 3])
        self.assertEqual(pieces.read(1).numpy().tolist(), [2, 3, 4])
        growing = tf.TensorArray(tf.int32, size=0, dynamic_size=True).write(2, 5)
        self.assertEqual(growing.stack().numpy().tolist(), [0, 0, 5])
        self.assertEqual(tf.TensorArray(tf.float32, size=2, element_shape=[1]).stack().numpy().tolist(), [[0.0], [0.0]])

    def test_loops_fill_arrays(self):
        @tf.function
        def squares(n):
            array = tf.TensorArray(tf.int32, size=6)
            for i in tf.range(n):
                array = array.write(i, i * i)
            return array.stack(), array.read(n - 1)

        self.assertEqual([x.numpy().tolist() for x in squares(tf.constant(2))], [[0, 1, 0, 0, 0, 0], 1])
        self.assertEqual([x.numpy().tolist() for x in squares(tf.constant(5))], [[0, 1, 4, 9, 16, 0], 16])

        @tf.function
        def rows(n):
            array, x, i = tf.TensorArray(tf.float32, size=6, element_shape=[2]), tf.ones([2]), 0
            while i < n:
                if i != 1:
                    array = array.write(i, x)
                x = x * 2.0
                i += 1
            return array.stack()

        self.assertEqual(rows(tf.constant(5)).numpy()[:, 0].tolist(), [1.0, 0.0, 4.0, 8.0, 16.0, 0.0])

        @tf.function
        def until(n):
            array = tf.TensorArray(tf.int32, size=10)
            for i in tf.range(10):
                if i == n:
                    break
                array = array.write(i, i + 1)
            return array.stack()

        for n in (2, 5, 9):
            self.assertEqual(until(tf.constant(n)).numpy().tolist(), [*range(1, n + 1), *[0] * (10 - n)])

        @tf.function
        def reading(n):
            array = tf.TensorArray(tf.int32, size=9)
            for i in tf.range(n):
                if i % 2 == 0:
                    array = array.write(i, i)
                else:
                    array = array.write(i, array.read(i - 1) + 10)
            return array.stack()

        self.assertEqual(reading(tf.constant(4)).numpy().tolist(), [0, 10, 2, 12, 0, 0, 0, 0, 0])
        self.assertEqual(reading(tf.constant(9)).numpy().tolist(), [0, 10, 2, 12, 4, 14, 6, 16, 8])

    def test_variables_of_while_loop(self):
        def filled(n):
            begin = (tf.constant(0), tf.TensorArray(tf.float32, size=4))
            return tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) * 2.0)), begin)[1].stack()

        for function in (filled, tf.function(filled)):
            self.assertEqual(function(tf.constant(3)).numpy().tolist(), [0.0, 2.0, 4.0, 0.0])

    def test_functions_take_and_return_arrays(self):
        @tf.function
        def extended(array, i):
            return array.write(i, 7.0)

        array = extended(tf.TensorArray(tf.float32, size=3).write(0, 1.0), tf.constant(2))
        self.assertEqual(array.stack().numpy().tolist(), [1.0, 0.0, 7.0])

    def test_gradients(self):
        x = tf.Variable([1.0, 2.0, 3.0])

        @tf.function
        def loss(x, n):
            array = tf.TensorArray(tf.float32, size=3)
            for i in tf.range(n):
                array = array.write(i, tf.gather(x, i) ** 2)
            return tf.reduce_sum(array.stack() * [1.0, 10.0, 100.0])

        for n, wanted in ((2, [2.0, 40.0, 0.0]), (3, [2.0, 40.0, 600.0])):
            with tf.GradientTape() as tape:
                y = loss(x * 1.0, tf.constant(n))
            np.testing.assert_allclose(tape.gradient(y, x).numpy(), wanted)

    def test_what_is_refused(self):
        array = tf.TensorArray(tf.float32, size=2)
        for index in (2, -1, tf.constant(5)):
            with self.assertRaisesRegex(IndexError, f"index {int(index)} of an array of 2"):
                array.write(index, 1.0)
        with self.assertRaisesRegex(TypeError, "the elements are float32, and the value is int32"):
            array.write(0, tf.constant(1))
        with self.assertRaisesRegex(ValueError, r"the shape \[\], and the value has \[2\]"):
            array.write(0, 1.0).write(1, [1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "nothing was written at index 0"):
            tf.TensorArray(tf.float32, size=2).stack()

        @tf.function
        def beyond(n):
            array = tf.TensorArray(tf.int32, size=3)
            for i in tf.range(n):
                array = array.write(i - 1, i)
            return array.stack()

        for n in (2, 5):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "negative, or beyond the end of an array of 3"):
                beyond(tf.constant(n)).numpy()

        def growing(n, **options):
            array = tf.TensorArray(tf.int32, **options)
            for i in tf.range(n):
                array = array.write(i, i)
            return array.stack()

        with self.assertRaisesRegex(ValueError, "dynamic_size=True does not make it larger; give a size"):
            tf.function(lambda n: growing(n, dynamic_size=True))(tf.constant(3))
        with self.assertRaisesRegex(ValueError, "the size is a tensor that only a run of the function knows"):
            tf.function(lambda n: growing(n, size=n))(tf.constant(3))


if __name__ == "__main__":
    unittest.main()
