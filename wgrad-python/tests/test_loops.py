"""Loops over rows: values and gradients against NumPy and finite differences, bodies that cannot be traced, errors."""

import unittest

import numpy as np

import wgrad as tf

RANDOM = np.random.default_rng(3)


def slope(f, x, step=1e-2):
    """The gradient of the sum of squares of `f`, by differences."""
    made = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        moved = x.copy()
        moved[at] += step
        above = f(moved)
        moved[at] -= 2 * step
        made[at] = (np.sum(np.square(above)) - np.sum(np.square(f(moved)))) / (2 * step)
    return made


def running(x, w, reverse=False):
    """`a * 0.9 * w + r`, in the order of rows."""
    rows, results = x[::-1] if reverse else x, []
    for row in rows:
        results.append(row if not results else results[-1] * 0.9 * w + row)
    return np.array(results[::-1] if reverse else results)


class Loops(unittest.TestCase):
    def setUp(self):
        # More rows than a chunk has, and not a multiple of it.
        self.x = RANDOM.uniform(0.2, 1, (150, 3)).astype("float32")
        self.w = RANDOM.uniform(0.2, 1, 3).astype("float32")

    def check(self, f, numpy):
        x, w = tf.constant(self.x), tf.Variable(self.w)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, w)
            loss = tf.reduce_sum(tf.square(y))
        dx, dw = tape.gradient(loss, [x, w])
        np.testing.assert_allclose(y.numpy(), numpy(self.x, self.w), rtol=1e-4, atol=1e-5)
        wide = self.x.astype("float64"), self.w.astype("float64")
        np.testing.assert_allclose(dw.numpy(), slope(lambda w: numpy(wide[0], w), wide[1], 1e-4), rtol=2e-3)
        few = slope(lambda part: numpy(np.concatenate([wide[0][:2], part, wide[0][4:]]), wide[1]), wide[0][2:4], 1e-4)
        np.testing.assert_allclose(dx.numpy()[2:4], few, rtol=2e-3, atol=1e-4)

    def test_map_fn(self):
        self.check(lambda x, w: tf.map_fn(lambda row: tf.reduce_sum(row * w + tf.sin(row)), x), lambda x, w: (x * w + np.sin(x)).sum(1))

    def test_scan(self):
        self.check(lambda x, w: tf.scan(lambda a, row: a * 0.9 * w + row, x), running)

    def test_scan_backwards(self):
        self.check(lambda x, w: tf.scan(lambda a, row: a * 0.9 * w + row, x, reverse=True), lambda x, w: running(x, w, True))

    def test_folds(self):
        self.check(lambda x, w: tf.foldl(lambda a, row: a * 0.9 * w + row, x), lambda x, w: running(x, w)[-1])
        self.check(lambda x, w: tf.foldr(lambda a, row: a * 0.9 * w + row, x), lambda x, w: running(x, w, True)[0])

    def test_an_initializer(self):
        sums = tf.scan(lambda a, row: a + row, self.x, initializer=tf.ones(3))
        np.testing.assert_allclose(sums.numpy(), 1 + np.cumsum(self.x, 0), rtol=1e-5)

    def test_structures(self):
        a, b = tf.scan(lambda state, n: (state[0] + n, state[1] + 2), tf.range(50), initializer=(0, 1))
        np.testing.assert_array_equal(a.numpy(), np.cumsum(np.arange(50)))
        np.testing.assert_array_equal(b.numpy(), 1 + 2 * np.arange(1, 51))
        made = tf.map_fn(lambda e: {"sum": e[0] + e[1], "pair": [e[0], e[1] * 2]}, (self.x, self.x[:, :1]))
        np.testing.assert_allclose(made["sum"].numpy(), self.x + self.x[:, :1])
        np.testing.assert_allclose(made["pair"][1].numpy(), 2 * self.x[:, :1])

    def test_the_body_runs_a_few_times_only(self):
        calls = []

        def body(row):
            calls.append(1)
            return row * 2.0

        y = tf.map_fn(body, tf.constant(RANDOM.random((10_000, 4)).astype("float32")))
        self.assertEqual(y.shape, (10_000, 4))
        self.assertLess(len(calls), 10)

    def test_bodies_that_need_values_run_for_each_row(self):
        y = tf.map_fn(lambda row: row * 2 if float(row[0]) > 0.5 else row, self.x)
        np.testing.assert_allclose(y.numpy(), np.where(self.x[:, :1] > 0.5, 2 * self.x, self.x))
        counts = iter(range(10_000))
        y = tf.map_fn(lambda row: row * 0 + float(next(counts)), self.x).numpy()[:, 0]
        np.testing.assert_array_equal(np.diff(y), 1)

    def test_conditions_and_assignments(self):
        y = tf.map_fn(lambda row: tf.cond(row[0] > 0.5, lambda: row * 2, lambda: row), self.x)
        np.testing.assert_allclose(y.numpy(), np.where(self.x[:, :1] > 0.5, 2 * self.x, self.x))
        total = tf.Variable(0.0)

        def body(row):
            total.assign_add(row[0])
            return total + 0.0

        np.testing.assert_allclose(tf.map_fn(body, self.x).numpy(), np.cumsum(self.x[:, 0]), rtol=1e-5)
        np.testing.assert_allclose(total.numpy(), self.x[:, 0].sum(), rtol=1e-5)

    def test_random_numbers_differ_from_row_to_row(self):
        y = tf.map_fn(lambda row: row * 0 + tf.random.uniform([3]), self.x).numpy()
        self.assertEqual(len(np.unique(y)), 450)

    def test_in_functions(self):
        w = tf.constant(self.w)
        f = tf.function(lambda x: (tf.map_fn(lambda row: row * w, x), tf.scan(lambda a, row: a + row, x)))
        scaled, sums = f(tf.constant(self.x[:20]))
        np.testing.assert_allclose(scaled.numpy(), self.x[:20] * self.w, rtol=1e-6)
        np.testing.assert_allclose(sums.numpy(), np.cumsum(self.x[:20], 0), rtol=1e-5)

    def test_errors_are_those_of_the_body(self):
        with self.assertRaises(ZeroDivisionError):
            tf.map_fn(lambda row: row * (1 / 0), self.x)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.map_fn(lambda row: tf.matmul(row, row), self.x)
        with self.assertRaisesRegex(ValueError, "first axes must be equal"):
            tf.map_fn(lambda e: e[0], (self.x, self.x[:5]))
        with self.assertRaisesRegex(ValueError, "no elements"):
            tf.foldl(lambda a, row: a + row, tf.zeros((0, 3)))


class Once(unittest.TestCase):
    def test_no_assignment_happens_twice_if_a_trace_fails(self):
        total, calls = tf.Variable(0.0), []

        def body(x):
            # Of more than one size, only a later trace sees that it depends on Python.
            calls.append(None)
            total.assign_add(x)
            return x + float(len(calls) > 40)

        x = np.ones(130, "float32")
        tf.map_fn(body, x)
        self.assertEqual(float(total), 130)
        total.assign(0.0)
        calls.clear()
        tf.foldl(lambda a, row: a + body(row), x, 0.0)
        self.assertEqual(float(total), 130)

    def test_a_loop_returns_the_structure_of_its_variables(self):
        run = lambda variables, **options: tf.while_loop(lambda i: i < 3, lambda i: (i + 1,), variables, **options)
        self.assertIsInstance(run((0,)), tuple)
        self.assertIsInstance(run([0]), list)
        self.assertIsInstance(run((0,), maximum_iterations=2), tuple)
        self.assertEqual(int(run([0], maximum_iterations=2)[0]), 2)
        # At most 0 turns.
        self.assertEqual(int(run([0], maximum_iterations=0)[0]), 0)


if __name__ == "__main__":
    unittest.main()
