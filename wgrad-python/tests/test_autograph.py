"""Python's statements on values of tensors in `tf.function`: the results are those of the same functions without it."""

import functools
import gc
import os
import runpy
import subprocess
import sys
import tempfile
import textwrap
import unittest
import weakref

import numpy as np
import wgrad as tf
from wgrad import autograph

OUTSIDE = 3


def doubled_until(x, limit):
    while tf.reduce_sum(x) < limit:
        x = x * 2.0
    return x


def signed(x):
    if tf.reduce_sum(x) > 0:
        return x
    return -x


def clipped(x):
    if x > 10.0:
        return tf.constant(10.0)
    elif x < -10.0:
        return tf.constant(-10.0)
    y = x
    if x > 0.0 and not x > 5.0:
        y = y + 0.5
    return y


def sum_below(n):
    total = 0
    for i in tf.range(n):
        total += i
    return total


def fibonacci(n):
    a, b = 0, 1
    for _ in tf.range(n):
        a, b = b, a + b
    return a


def stepped(n):
    total = 0
    for i in tf.range(n, 0, -2):
        if i > 3 or i == 1:
            total += i
    return total


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def helped(x):
    return clipped(x) + (1.0 if x > 0.0 else 2.0)


def mixed(x):
    made = []
    for i in range(3):
        if i == 1:
            made.append(i)
    text = "none"
    if made:
        text = "one"
    if x > 0.0:
        x = x + float(len(made))
    return {"x": x, "text": text}


def many_returns(x, y):
    if x > 0.0:
        if y > 0.0:
            return x
        x = x + 1.0
    else:
        if y < -5.0:
            return y
        x = x - 1.0
    y = y * 2.0
    if x > 3.0:
        if y > 1.0:
            return x + y
        y = y + 1.0
    x = x + y
    return x * 10.0


class Autograph(unittest.TestCase):
    def check(self, function, *arguments):
        tensors = [tf.constant(argument) for argument in arguments]
        wanted = tf.convert_to_tensor(function(*tensors)).numpy()
        np.testing.assert_allclose(tf.function(function)(*tensors).numpy(), wanted, rtol=1e-6, err_msg=f"{function.__name__}{arguments}")

    def test_statements_compute_what_python_does(self):
        for limit in (1.0, 10.0, 1000.0):
            self.check(doubled_until, [1.0, 2.0], limit)
        for x in ([1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]):
            self.check(signed, x)
        for x in (-20.0, -1.0, 0.0, 3.0, 7.0, 20.0):
            self.check(clipped, x)
            self.check(helped, x)
        for x in (-3.0, 2.0, 4.0):
            for y in (-7.0, -1.0, 0.0, 2.0):
                self.check(many_returns, x, y)
        for n in (0, 1, 7, 100):
            self.check(sum_below, n)
            self.check(fibonacci, min(n, 30))
            self.check(stepped, n)
        for n in (1, 6, 27):
            self.check(collatz, n)

    def test_many_returns_are_converted_once_each(self):
        lines = ["def f(x):"]
        for at in range(40):
            lines += [f"    if x > {at}.5:", f"        if x < {at}.75:", f"            return x * {at}.0", "        x = x + 1.0"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "long.py")
            with open(path, "w") as file:
                file.write("\n".join([*lines, "    return x", ""]))
            converted = autograph.convert(runpy.run_path(path)["f"])
        self.assertEqual([converted(x) for x in (0.0, 0.6, 1.0, 3.7)], [0.0, 0.0, 41.0, 43.7])

    def test_conversions_end_with_their_functions(self):
        def made():
            def f(x):
                return x if x > 0.0 else -x

            return f

        function = made()
        self.assertIs(autograph.convert(function), autograph.convert(function))
        ended = weakref.ref(autograph.convert(function))
        del function
        gc.collect()
        self.assertIsNone(ended())

        @functools.wraps(signed)
        def wrapper(x):
            return 2.0 * signed(x)

        autograph.convert(signed)
        self.assertEqual(float(autograph.called(wrapper)(tf.constant(-3.0))), 6.0)

    def test_one_trace_serves_all_values(self):
        step = tf.function(collatz)
        self.assertEqual([int(step(tf.constant(n))) for n in (1, 6, 27, 97)], [0, 8, 111, 118])
        self.assertEqual(step.experimental_get_tracing_count(), 1)

    def test_gradients_pass_through(self):
        step = tf.function(signed)
        for values, wanted in (([1.0, 2.0], 1.0), ([-1.0, -2.0], -1.0)):
            x = tf.Variable(values)
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(step(x * 1.0))
            self.assertEqual(tape.gradient(y, x).numpy().tolist(), [wanted] * 2)

    def test_methods_closures_and_defaults(self):
        class Model:
            def __init__(self):
                self.w = tf.Variable(2.0)

            @tf.function
            def call(self, x, *, scale=1.0):
                if x > 0.0:
                    x = x * self.w
                return x * scale * OUTSIDE

        model, other = Model(), Model()
        other.w.assign(5.0)
        self.assertEqual([float(m.call(tf.constant(x))) for m in (model, other) for x in (1.0, -1.0)], [6.0, -3.0, 15.0, -3.0])
        self.assertEqual(float(model.call(tf.constant(1.0), scale=10.0)), 60.0)
        bound = 1.0

        @tf.function
        def above(x):
            if x > bound:
                x = x * 100.0
            return x

        self.assertEqual([float(above(tf.constant(x))) for x in (0.5, 2.0)], [0.5, 200.0])

    def test_statements_of_python_stay_pythons(self):
        made = tf.function(mixed)(tf.constant(1.0))
        self.assertEqual((float(made["x"]), made["text"]), (2.0, "one"))

    def test_what_cannot_be_converted_says_why(self):
        @tf.function
        def one_branch(x):
            if x > 0.0:
                y = x
            return y

        with self.assertRaisesRegex(ValueError, "'y' has a value in one branch"):
            one_branch(tf.constant(1.0))

        @tf.function
        def texts(x):
            name = "a"
            if x > 0.0:
                name = "b"
            return x if name == "a" else x + 1.0

        with self.assertRaisesRegex(TypeError, "'name' is 'a' and 'b'"):
            texts(tf.constant(1.0))

        @tf.function
        def jumps(x):
            while x < 10.0:
                x = x + 1.0
                if x > 5.0:
                    break
            return x

        with self.assertRaises(tf.errors.FailedPreconditionError):
            jumps(tf.constant(1.0))

        @tf.function(autograph=False)
        def plain(x):
            return x if x > 0.0 else -x

        with self.assertRaises(tf.errors.FailedPreconditionError):
            plain(tf.constant(1.0))

    def test_converted_functions_are_written(self):
        class Module(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(2.0)

            @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
            def call(self, x):
                if x > 0.0:
                    x = x * self.w
                return x

        module = Module()
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder, signatures={"serving_default": module.call})
            loaded = tf.saved_model.load(folder).signatures["serving_default"]
            results = [float(next(iter(loaded(x=tf.constant(x)).values()))) for x in (3.0, -3.0)]
        self.assertEqual(results, [6.0, -3.0])
        self.assertEqual(float(module.call.python_function(tf.constant(3.0))), 6.0)

    def test_prints_in_each_run(self):
        program = textwrap.dedent(
            """
            import wgrad as tf
            @tf.function
            def f(x):
                tf.print("x is", x)
                return x + 1.0
            for n in (1.0, 2.0):
                print(float(f(tf.constant(n))), flush=True)
            """
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(program)
            ended = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
        self.assertEqual((ended.stdout, ended.stderr), ("2.0\n3.0\n", "x is 1\nx is 2\n"))

    def test_functions_that_are_not_converted(self):
        @tf.autograph.experimental.do_not_convert
        def kept(x):
            return x if x > 0.0 else -x

        @tf.function
        def calls(x):
            return kept(x)

        with self.assertRaises(tf.errors.FailedPreconditionError):
            calls(tf.constant(1.0))

    def test_errors_name_the_lines_of_the_program(self):
        import traceback

        @tf.function
        def fails(x):
            if x > 0.0:
                x = x + 1.0
            raise KeyError("of the program")

        try:
            fails(tf.constant(1.0))
        except KeyError as error:
            lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]
            self.assertIn('raise KeyError("of the program")', lines)
        else:
            self.fail("no error")


if __name__ == "__main__":
    unittest.main()
