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


def break_while(n):
    total, i = 0, 0
    while i < n:
        total += i
        if total > 8:
            break
        i += 1
    return total, i


def continue_while(n):
    total, i = 0, 0
    while i < n:
        i += 1
        if i % 3 == 0:
            total -= 1
            continue
        total += i
        if total > 50:
            total = total * 2
            break
        total += 1
    return total, i


def jumps_in_nested_loops(n):
    total = 0
    for i in tf.range(n):
        for j in tf.range(n):
            if j > i:
                break
            if (i + j) % 2 == 0:
                continue
            total += i * j
        if total > 100:
            break
    return total


def jumps_in_branches(n):
    total = 0
    for i in tf.range(n):
        if i > 3:
            total += 100
            if total > 500:
                break
            else:
                total += 1
        elif i == 2:
            total -= 1
            continue
        else:
            total += 10
        total += 2
    return total


def rows(x):
    total = tf.constant(0.0)
    for row in x:
        if row[0] > 7.0:
            break
        if row[1] == 3.0:
            continue
        total += tf.reduce_sum(row)
    return total


def numbered_rows(x):
    total = tf.constant(0)
    for i, value in enumerate(x, 10):
        if value > 2.0:
            return total + i
        total += i
    return total


def last(n):
    for i in tf.range(n):
        y = i * 2
        if y > 6:
            break
    return y, i


def temporary_shapes(n):
    part = tf.zeros([3])
    total = tf.reduce_sum(part)
    for i in tf.range(n):
        part = tf.ones([2, 2]) * tf.cast(i, tf.float32)
        total += tf.reduce_sum(part)
    for i in tf.range(n):
        part = tf.cast(i, tf.float32)
        total += part
    return total


def with_else(n):
    total = 1
    for i in tf.range(n):
        if i > 10:
            break
        total += 1
    else:
        total = -total
    return total


def with_finally(n):
    total = 0
    for i in tf.range(n):
        try:
            if i == 2:
                continue
            if i == 5:
                break
            total += 1
        finally:
            total += 10
        total += 100
    return total


def returns_in_loops(n):
    total = 0
    for i in tf.range(n):
        for j in tf.range(i):
            if i * j > 20:
                return {"a": i, "b": [j]}
            if j > 4:
                break
            total += 1
        total += 10
    return {"b": [total], "a": n}


def returns_of_two_kinds(n):
    for i in tf.range(n):
        if i == 7:
            return tf.cast(i, tf.float32)
    for j in tf.range(n):
        if j == 2:
            return 0.5
    return 2.5


def returns_from_endless(n):
    count = 0
    while True:
        n = n + 1
        count += 1
        if n > 20:
            return n, count


def returns_in_with(x):
    with tf.name_scope("scope"):
        if x > 3:
            return x * 2
        try:
            if x == 1:
                return x - 10
            x += 1
        finally:
            x += 100
    return x


def returns_that_never_happen(n):
    c, i = 5, 0
    while i < n:
        i += 1
        if c > 22 and i != 1:
            if i % 4 == 1:
                return i, c
    return n, i


def over_a_list(n):
    for bound in [1, 5, 10]:
        if bound > n:
            return bound
    return -1


class Autograph(unittest.TestCase):
    def values(self, function, argument):
        """What a function returns for a number or an array, traced, and called by Python."""
        traced, plain = tf.function(function)(tf.constant(argument)), function(tf.constant(argument))
        tf.nest.assert_same_structure(traced, plain)
        read = lambda made: [np.asarray(leaf).tolist() for leaf in tf.nest.flatten(made)]
        self.assertEqual(read(traced), read(plain), f"{function.__name__}({argument})")
        return read(traced)

    def test_jumps_out_of_loops(self):
        # The numbers are TensorFlow's.
        for function, wanted in (
            (break_while, {0: [0, 0], 1: [0, 1], 3: [3, 3], 10: [10, 4]}),
            (continue_while, {0: [0, 0], 1: [2, 1], 3: [4, 3], 30: [104, 11]}),
            (jumps_in_nested_loops, {0: [0], 4: [8], 9: [108]}),
            (jumps_in_branches, {0: [0], 2: [24], 30: [547]}),
            (last, {1: [0, 0], 4: [6, 3], 9: [8, 4]}),
            (temporary_shapes, {3: [15.0], 8: [140.0]}),
            (with_else, {0: [-1], 3: [-4], 25: [12]}),
            (with_finally, {1: [111], 4: [343], 9: [464]}),
        ):
            for argument, values in wanted.items():
                self.assertEqual(self.values(function, argument), values)
        x = np.arange(12, dtype="float32").reshape(6, 2)
        self.assertEqual([self.values(rows, x), self.values(rows, x[::-1] + 1.0)], [[23.0], [0.0]])

    def test_returns_out_of_loops(self):
        for function, wanted in (
            (returns_in_loops, {0: [0, 0], 3: [3, 33], 9: [6, 4]}),
            (returns_of_two_kinds, {0: [2.5], 3: [0.5], 9: [7.0]}),
            (returns_from_endless, {0: [21, 21], 3: [21, 18], 25: [26, 1]}),
            (returns_in_with, {9: [18], 1: [-9], 2: [103]}),
            (returns_that_never_happen, {0: [0, 0], 6: [6, 6]}),
            (over_a_list, {0: [1], 3: [5], 12: [-1]}),
        ):
            for argument, values in wanted.items():
                self.assertEqual(self.values(function, argument), values)
        self.assertEqual([self.values(numbered_rows, np.arange(n, dtype="float32")) for n in (6, 3)], [[46], [33]])

    def test_lambdas_are_converted(self):
        absolute = tf.function(lambda x: x if x > 0.0 else -x)
        self.assertEqual([float(absolute(tf.constant(x))) for x in (2.0, -3.0)], [2.0, 3.0])
        pair = [tf.function(lambda x: 1.0 if x > 0.0 else 2.0), tf.function(lambda y: 3.0 if y > 0.0 else 4.0)]
        self.assertEqual([float(function(tf.constant(-1.0))) for function in pair], [2.0, 4.0])

    def test_one_trace_serves_all_jumps(self):
        step = tf.function(continue_while)
        self.assertEqual([int(step(tf.constant(n))[0]) for n in (0, 1, 3, 30)], [0, 2, 4, 104])
        self.assertEqual(step.experimental_get_tracing_count(), 1)

    def test_gradients_pass_through_loops_with_jumps(self):
        w = tf.Variable(1.5)

        def loss(x):
            for i in tf.range(8):
                if tf.reduce_sum(x) > 20.0:
                    break
                if i == 1:
                    continue
                x = x * w
            return tf.reduce_sum(x)

        for x, value, slope in (([1.0, 2.0], 22.78125, 75.9375), ([0.1, 0.2], 5.1257816, 23.920311)):
            for function in (loss, tf.function(loss)):
                with tf.GradientTape() as tape:
                    y = function(tf.constant(x))
                np.testing.assert_allclose([float(y), float(tape.gradient(y, w))], [value, slope], rtol=1e-5)

    def test_conditions_are_computed_as_often_as_in_python(self):
        count = tf.Variable(0.0)

        def counted(n):
            count.assign(0.0)
            while count.assign_add(1.0) < 5.0 and n > 0:
                n -= 1
                if n == 7:
                    break
            return count.read_value(), n

        def skipped(n):
            count.assign(0.0)
            if n > 100 and count.assign_add(1.0) > 0.0:
                n = -n
            return count.read_value(), n

        for argument, wanted in ((20, [5.0, 16]), (2, [3.0, 0]), (8, [1.0, 7])):
            self.assertEqual(self.values(counted, argument), wanted)
        for argument, wanted in ((10, [0.0, 10]), (101, [1.0, -101])):
            self.assertEqual(self.values(skipped, argument), wanted)

    def test_work_grows_with_the_source_only(self):
        calls = []

        def count(x):
            calls.append(None)
            return x

        def converted(lines):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "deep.py")
                with open(path, "w") as file:
                    file.write("\n".join(["import wgrad as tf", "def f(n, count):", "    t = n", "    while t < 100:", *lines, ""]))
                function = runpy.run_path(path)["f"]
                calls.clear()
                return int(tf.function(lambda n: function(n, count))(tf.constant(3))), len(calls)

        def nested(depth):
            lines = []
            for at in range(depth):
                space = " " * (8 + 4 * at)
                lines += [f"{space}if t > {at}:", f"{space}    t = count(t + 1)", f"{space}    if t > {90 + at}:", f"{space}        return t"]
            return [*lines, "        t += 1", "    return -t"]

        results = {depth: converted(nested(depth)) for depth in (1, 2, 4, 8)}
        self.assertEqual([value for value, _ in results.values()], [92, 91, 94, 94])
        # Each branch that returns is tried once more for each branch around it.
        self.assertLess(results[8][1], 8 * results[4][1])
        lines = []
        for at in range(30):
            lines += [f"        if t == {200 + at}:", "            break", "        t = count(t + 1)"]
        self.assertEqual(converted([*lines, "    return t"]), (123, 30))

    def test_assertions_are_checked_in_each_run(self):
        @tf.function
        def small(n):
            assert n < 5, ("too large", n)
            return n + 1

        self.assertEqual(int(small(tf.constant(3))), 4)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "too large"):
            small(tf.constant(9)).numpy()
        self.assertEqual(int(small(tf.constant(4))), 5)

        @tf.function
        def never(n):
            for i in tf.range(n):
                y = i * 2
            return y

        self.assertEqual(int(never(tf.constant(3))), 4)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "at least once to give a value to 'y'"):
            never(tf.constant(0)).numpy()

    def test_branches_must_fit_each_other(self):
        n = tf.constant(10)

        def pair(n):
            for i in tf.range(n):
                if i > 3:
                    return i, i
            return n

        def number(n):
            for i in tf.range(n):
                if i > 3:
                    return i
            return 1.5

        def nothing(n):
            for i in tf.range(n):
                if i > 3:
                    return i

        def keys(n):
            if n > 3:
                return {"a": n}
            return {"b": n}

        def grows(n):
            x = tf.zeros([1])
            for _ in tf.range(n):
                x = tf.concat([x, x], 0)
            return x

        def changes(n):
            x = 0
            while n > 0:
                n, x = n - 1, tf.constant(0.5)
            return x

        def assigns(n):
            made = {"n": n}
            if n > 3:
                made["n"] = -n
            return made["n"]

        def used_before(n):
            y = tf.constant(0.0)
            twice = lambda: y * 2.0
            for i in tf.range(n):
                y = y + twice() + 1.0
            return y

        for function, kind, text in (
            (pair, TypeError, r"same nested structure; it is \. in the else branch and \(\., \.\) in the main branch"),
            (number, TypeError, "dtype float32 in the else branch, but dtype int32 in the main branch"),
            (nothing, ValueError, "returned in the main branch, and None in the else branch"),
            (keys, TypeError, "same nested structure"),
            (grows, ValueError, r"'x' has shape \[1\] before the loop, but shape \[2\] after one iteration"),
            (changes, TypeError, "'x' has dtype int32 before the loop, but dtype float32 after one iteration"),
            (assigns, tf.errors.FailedPreconditionError, r"assigns to made\['n'\]"),
            (used_before, tf.errors.FailedPreconditionError, "a function that is defined before uses 'y'"),
        ):
            with self.assertRaisesRegex(kind, text):
                tf.function(function)(n)
        with self.assertRaisesRegex(TypeError, "must return the same structure"):
            tf.function(lambda x: tf.cond(x > 0.0, lambda: (x, x), lambda: [x, x]))(tf.constant(1.0))

        # The order of the keys is no difference.
        def order(n):
            if n > 3:
                return {"a": n, "b": n * 2}
            return {"b": n * 3, "a": n * 4}

        self.assertEqual([self.values(order, argument) for argument in (10, 1)], [[10, 20], [4, 3]])

    def test_a_break_over_a_generator_is_refused(self):
        @tf.function
        def endless(n):
            for i in iter(int, 1):
                if n > i:
                    break
            return n

        with self.assertRaisesRegex(NotImplementedError, "over a generator"):
            endless(tf.constant(1))

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


class Indices(unittest.TestCase):
    ROWS = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]

    def test_a_loop_indexes_by_its_variable(self):
        @tf.function
        def first_negative(x):
            for i in tf.range(tf.shape(x)[0]):
                if x[i] < 0:
                    return i
            return tf.constant(-1)

        self.assertEqual([int(first_negative(tf.constant(row))) for row in ([1.0, -2.0], [1.0, 2.0])], [1, -1])

    def test_along_any_axis(self):
        x = tf.constant(self.ROWS)

        @tf.function
        def parts(x, i):
            return x[i], x[:, i], x[..., i, None], x[0, i], x[i, 1:], x[-1][i]

        for i in (0, 1, -1):
            for made, wanted in zip(parts(x, tf.constant(i)), (x[i], x[:, i], x[..., i, None], x[0, i], x[i, 1:], x[-1][i])):
                self.assertEqual(made.numpy().tolist(), wanted.numpy().tolist(), i)

    def test_gradients(self):
        x = tf.Variable(self.ROWS)
        pick = tf.function(lambda x, i: tf.square(x[i, 2]))
        with tf.GradientTape() as tape:
            y = pick(x, tf.constant(1))
        self.assertEqual(tape.gradient(y, x).numpy().tolist(), [[0, 0, 0], [0, 0, -12]])

    def test_indices_that_do_not_exist(self):
        pick = tf.function(lambda x, i: x[i])
        for i in (2, -3):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "not below the size 2 of axis 0"):
                pick(tf.constant(self.ROWS), tf.constant(i)).numpy()
            tf.constant(1.0).numpy()

    def test_tensors_of_a_trace_are_printed_by_their_shapes(self):
        seen = []

        @tf.function
        def f(x):
            seen.append((repr(x), str(x), f"{x}", f"{x[0]}"))
            return x + 1

        self.assertEqual(f(tf.constant([1.0, 2.0])).numpy().tolist(), [2.0, 3.0])
        vector, scalar = "Tensor(shape=(2,), dtype=float32)", "Tensor(shape=(), dtype=float32)"
        self.assertEqual(seen, [("<tf.Tensor shape=(2,), dtype=float32>", vector, vector, scalar)])


if __name__ == "__main__":
    unittest.main()
