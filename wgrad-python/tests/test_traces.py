"""Traces of `tf.function` as values, and functions of the host in them."""

import tempfile
import unittest

import numpy as np

import wgrad as tf


class Concrete(unittest.TestCase):
    def test_arguments(self):
        w = tf.Variable(2.0)

        @tf.function
        def f(x, n, scale=1.0, *, flag=True):
            return {"y": x * w * scale, "z": (x, n)}

        concrete = f.get_concrete_function(tf.TensorSpec([1, 2]), 3)
        x = tf.constant([[1.0, 3.0]])
        for made in (concrete(x), concrete(x, 3), concrete(x=x), concrete(x, n=3, flag=True), f(x, 3)):
            self.assertEqual((made["y"].numpy().tolist(), int(made["z"][1])), ([[2.0, 6.0]], 3))
        self.assertEqual(f.experimental_get_tracing_count(), 1)
        self.assertEqual(concrete.structured_input_signature, ((tf.TensorSpec([1, 2], name="x"), 3, 1.0), {"flag": True}))
        self.assertEqual(concrete.structured_outputs, {"y": tf.TensorSpec([1, 2]), "z": (tf.TensorSpec([1, 2]), tf.TensorSpec([], tf.int32))})
        self.assertEqual(concrete.output_shapes["z"][1], ())
        self.assertEqual(concrete.output_dtypes["y"], tf.float32)
        self.assertEqual(
            str(concrete),
            "ConcreteFunction Input Parameters:\n"
            "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(1, 2), dtype=tf.float32, name=None)\n"
            "  n (POSITIONAL_OR_KEYWORD): Literal[3]\n"
            "  scale (POSITIONAL_OR_KEYWORD): Literal[1.0]\n"
            "  flag (KEYWORD_ONLY): Literal[True]\n"
            "Output Type:\n"
            "  Dict[['y', TensorSpec(shape=(1, 2), dtype=tf.float32, name=None)], ['z', "
            "Tuple[TensorSpec(shape=(1, 2), dtype=tf.float32, name=None), TensorSpec(shape=(), dtype=tf.int32, name=None)]]]",
        )
        for call, kind, text in (
            (lambda: concrete(x, 4), TypeError, "traced for n=3, and it is 4"),
            (lambda: concrete(), TypeError, "the argument 'x' is missing"),
            (lambda: concrete(x, other=1), TypeError, "unexpected keyword argument 'other'"),
            (lambda: concrete(tf.ones([2, 2])), tf.errors.InvalidArgumentError, r"shape=\(2, 2\)"),
            (lambda: concrete(tf.ones([1, 2], tf.int32)), tf.errors.InvalidArgumentError, "dtype=tf.int32"),
            (lambda: f.get_concrete_function(), TypeError, "missing a required argument: 'x'"),
        ):
            with self.assertRaisesRegex(kind, text):
                call()

    def test_the_same_spec_twice(self):
        spec = tf.TensorSpec([])
        concrete = tf.function(lambda a, b: a - b).get_concrete_function(spec, b=spec)
        self.assertEqual([float(concrete(tf.constant(5.0), tf.constant(3.0))), float(concrete(b=tf.constant(5.0), a=tf.constant(3.0)))], [2.0, -2.0])

    def test_structures(self):
        @tf.function
        def f(p):
            return p["a"] * 10.0 + p["b"][0]

        concrete = f.get_concrete_function({"b": [tf.TensorSpec([], name="bb")], "a": tf.TensorSpec([])})
        one, two = tf.constant(1.0), tf.constant(2.0)
        made = [concrete({"a": one, "b": [two]}), concrete({"b": [two], "a": one}), concrete(one, two), concrete(p_a=one, bb=two)]
        self.assertEqual([float(value) for value in made], [12.0] * 4)

    def test_signatures_and_open_sizes(self):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], name="rows")])
        def sums(x):
            if tf.reduce_sum(x) < 0.0:
                x = -x
            return tf.reduce_sum(x, 1)

        concrete = sums.get_concrete_function()
        self.assertEqual(sums.input_signature, (tf.TensorSpec([None, 2], name="rows"),))
        self.assertEqual(concrete(tf.ones([3, 2])).numpy().tolist(), [2.0] * 3)
        self.assertEqual(concrete(-tf.ones([1, 2])).numpy().tolist(), [2.0])
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "sizes of its arguments are open"):
            concrete.structured_outputs
        with self.assertRaisesRegex(ValueError, "do not fit the input_signature"):
            sums.get_concrete_function(tf.TensorSpec([3, 3]))

    def test_methods(self):
        class Model(tf.Module):
            def __init__(self, w):
                super().__init__()
                self.w = tf.Variable(w)

            @tf.function
            def call(self, x, n):
                return x * self.w + n

        model, other = Model(2.0), Model(3.0)
        made = [m.call.get_concrete_function(tf.TensorSpec([]), 1) for m in (model, other)]
        self.assertEqual([float(one(tf.constant(5.0))) for one in made], [11.0, 16.0])
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(model, folder, signatures=made[0])
            loaded = tf.saved_model.load(folder).signatures["serving_default"]
            self.assertEqual(float(next(iter(loaded(x=tf.constant(4.0)).values()))), 9.0)


class Host(unittest.TestCase):
    def test_each_run_calls_the_function(self):
        calls = []

        def sort(values):
            calls.append(values.tolist())
            return np.sort(values)

        @tf.function
        def f(x):
            return tf.numpy_function(sort, [x], tf.TensorSpec(x.shape, tf.float32)) + 1.0

        self.assertEqual([f(tf.constant(x)).numpy().tolist() for x in ([3.0, 1.0], [5.0, 9.0])], [[2.0, 4.0], [6.0, 10.0]])
        self.assertEqual((calls, f.experimental_get_tracing_count()), ([[3.0, 1.0], [5.0, 9.0]], 1))

        @tf.function
        def several(x):
            specs = [tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32)]
            return tf.py_function(lambda t: (t * 2.0, len(calls)), [x], specs)

        made = several(tf.constant([1.0, 2.0]))
        self.assertEqual((made[0].numpy().tolist(), int(made[1])), ([2.0, 4.0], 2))

        @tf.function
        def without_arguments():
            return tf.py_function(lambda: len(calls), [], tf.TensorSpec([], tf.int32))

        first = int(without_arguments())
        calls.append([])
        self.assertEqual(int(without_arguments()), first + 1)

    def test_in_loops(self):
        seen = []

        @tf.function
        def f(n):
            for i in tf.range(n):
                tf.py_function(lambda t: seen.append(int(t)), [i], [])
            return n

        f(tf.constant(3))
        f(tf.constant(2))
        self.assertEqual(seen, [0, 1, 2, 0, 1])

    def test_gradients(self):
        x = tf.Variable([1.0, 2.0])
        square = tf.function(lambda x: tf.reduce_sum(tf.py_function(lambda t: t * t, [x], tf.TensorSpec([2], tf.float32))))
        with tf.GradientTape() as tape:
            y = square(x * 1.0)
        self.assertEqual(tape.gradient(y, x).numpy().tolist(), [2.0, 4.0])

    def test_what_is_refused(self):
        for tout in (tf.float32, [tf.float32], tf.TensorSpec([None], tf.float32)):
            with self.assertRaisesRegex(ValueError, "the shapes of its results must be known"):
                tf.function(lambda x: tf.py_function(lambda t: t, [x], tout))(tf.constant([1.0]))

        def run(function, tout=tf.TensorSpec([3], tf.float32)):
            return tf.function(lambda x: tf.py_function(function, [x], tout))(tf.constant([1.0]))

        with self.assertRaisesRegex(ValueError, r"has the shape \[1\], and Tout says \[3\]"):
            run(lambda t: t)
        with self.assertRaisesRegex(ValueError, "returned 1 values, and Tout has 2"):
            run(lambda t: t, [tf.TensorSpec([1])] * 2)

        def fails(t):
            raise KeyError("of the program")

        with self.assertRaises(KeyError):
            run(fails)
        # Eagerly, dtypes are enough.
        self.assertEqual(tf.py_function(lambda t: t * 2, [tf.constant([1.0])], tf.float32).numpy().tolist(), [2.0])


if __name__ == "__main__":
    unittest.main()
