"""The type stubs: mypy's `stubtest` compares them with the package, and mypy checks a right and a wrong program."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).parent
PACKAGE = TESTS.parent / "python"


def run(*arguments):
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "MYPYPATH": str(PACKAGE)}
    made = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=TESTS)
    return made.returncode, made.stdout + made.stderr


class Types(unittest.TestCase):
    def test_stubs_of_tables_are_up_to_date(self):
        status, said = run(TESTS.parent / "stubs.py", "--check")
        self.assertEqual(status, 0, said)

    def test_stubs_are_those_of_the_package(self):
        status, said = run(
            "-m", "mypy.stubtest", "wgrad", "--concise", "--ignore-missing-stub", "--allowlist", TESTS / "types" / "allowed.txt",
            "--ignore-unused-allowlist",
        )
        self.assertEqual(status, 0, said)

    def test_a_program_is_checked(self):
        status, said = run("-m", "mypy", "--strict", "--cache-dir", os.devnull, TESTS / "types" / "right.py")
        self.assertEqual(status, 0, said)

    def test_mistakes_are_found(self):
        status, said = run("-m", "mypy", "--strict", "--cache-dir", os.devnull, TESTS / "types" / "wrong.py")
        self.assertEqual(status, 1, said)
        lines = (TESTS / "types" / "wrong.py").read_text(encoding="utf-8").splitlines()
        mistakes = {number for number, line in enumerate(lines, 1) if re.match(r"[a-z](: int)? = ", line)}
        self.assertEqual({int(number) for number in re.findall(r"wrong.py:(\d+): error", said)}, mistakes)
        self.assertEqual(len(mistakes), 8)


if __name__ == "__main__":
    unittest.main()
