"""Random programs of conditions, loops and jumps: a traced function returns what Python does. WGRAD_PROGRAMS is their number, WGRAD_SEED
the first one."""

import os
import random
import runpy
import tempfile
import unittest

import wgrad as tf

VARIABLES = "abcd"


def indented(lines):
    return ["    " + line for line in lines]


class Program:
    """A program of four variables, at most so many statements long."""

    def __init__(self, seed):
        self.random, self.left = random.Random(seed), 0
        self.left = self.random.randint(4, 16)
        lines = ["def f(n):", "    a, b, c, d = n, n + 3, 5, 7", *indented(self.block(0, False)), "    return a % 1009 + c, b % 1013 - d", ""]
        self.text = "\n".join(lines)

    def name(self):
        return self.random.choice(VARIABLES)

    def condition(self):
        x, y, r = self.name(), self.name(), self.random
        made = r.choice([f"{x} > {r.randint(0, 30)}", f"{x} % {r.randint(2, 4)} == {r.randint(0, 1)}", f"{x} < {y}"])
        if r.random() < 0.2:
            made += f" {r.choice(['and', 'or'])} {y} != {r.randint(0, 5)}"
        return f"({made})" if r.random() < 0.8 else f"not ({made})"

    def jump(self, in_loop):
        return self.random.choice(["break", "continue", f"return {self.name()}, {self.name()}"] if in_loop else [f"return {self.name()}, 1"])

    def block(self, depth, in_loop):
        lines = []
        for _ in range(self.random.randint(1, 3)):
            if self.left > 0:
                self.left -= 1
                lines += self.statement(depth, in_loop)
        return lines or [f"{self.name()} += 1"]

    def statement(self, depth, in_loop):
        r, x, y, z = self.random, self.name(), self.name(), self.name()
        kind = r.random() if depth < 4 else 0.0
        if kind < 0.35:
            return r.choice([[f"t = {x} * {r.randint(1, 5)}", f"{y} = (t + {z}) % 97"], [f"{x} -= {y}"], [f"{x} = ({y} * 3 + {z}) % 89"]])
        if kind < 0.6:
            made = [f"if {self.condition()}:", *indented(self.block(depth + 1, in_loop))]
            return made + (["else:", *indented(self.block(depth + 1, in_loop))] if r.random() < 0.5 else [])
        if kind < 0.8:
            i = f"i{depth}"
            if r.random() < 0.5:
                made = [f"for {i} in range({x} % {r.randint(2, 6)}):", *indented([*self.block(depth + 1, True), f"{y} += {i}"])]
            else:
                made = [f"{i} = 0", f"while {i} < {r.randint(1, 6)} and {self.condition()}:"]
                made += indented([f"{i} += 1", *self.block(depth + 1, True)])
            return made + (["else:", *indented(self.block(depth + 1, in_loop))] if r.random() < 0.2 else [])
        if kind < 0.92:
            return [f"if {self.condition()}:", f"    {self.jump(in_loop)}"]
        made = ["try:", *indented(self.block(depth + 1, in_loop))]
        if r.random() < 0.5:
            made += ["except KeyError:", f"    {x} = 1", "else:", f"    {x} += 2"]
        return [*made, "finally:", f"    {y} += 1"]


class RandomPrograms(unittest.TestCase):
    def test_traces_return_what_python_does(self):
        first = int(os.environ.get("WGRAD_SEED", "0"))
        for seed in range(first, first + int(os.environ.get("WGRAD_PROGRAMS", "20"))):
            text = Program(seed).text
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "program.py")
                with open(path, "w") as file:
                    file.write(text)
                function = runpy.run_path(path)["f"]
                traced = tf.function(function)
                for n in (0, 4, 11):
                    with self.subTest(seed=seed, n=n):
                        wanted = function(n)
                        # Devices hold 32 bits.
                        if max(map(abs, wanted)) < 2**31:
                            self.assertEqual(tuple(int(x) for x in traced(tf.constant(n))), wanted, text)


if __name__ == "__main__":
    unittest.main()
