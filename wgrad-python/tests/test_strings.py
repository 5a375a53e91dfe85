"""`tf.strings`, with TensorFlow's results."""

import unittest

import numpy as np
import wgrad as tf

strings = tf.strings
WORDS = ["Hello, World!", "  \u00fcbung MACHT  ", "", "a<br />b<br/>c 12"]


class Strings(unittest.TestCase):
    def check(self, got, wanted):
        encoded = lambda x: [encoded(y) for y in x] if isinstance(x, (list, np.ndarray)) else x.encode() if isinstance(x, str) else x
        self.assertEqual(encoded(got.tolist() if hasattr(got, "tolist") else got), encoded(wanted))

    def test_letters(self):
        self.check(strings.lower(WORDS), ["hello, world!", "  \u00fcbung macht  ", "", "a<br />b<br/>c 12"])
        self.check(strings.upper("\u00fcb"), "\u00fcB")
        self.check(strings.upper("\u00fcb", encoding="utf-8"), "\u00dcB")
        self.check(strings.strip(WORDS[:2]), ["Hello, World!", "\u00fcbung MACHT"])
        self.assertEqual(strings.lower("ABC").numpy(), b"abc")
        self.assertEqual(strings.length(WORDS).numpy().tolist(), [13, 16, 0, 17])
        self.assertEqual(strings.length(WORDS, unit="UTF8_CHAR").numpy().tolist(), [13, 15, 0, 17])
        self.check(strings.substr(["hello", "bathe"], 1, 3), ["ell", "ath"])
        self.check(strings.substr(["hello", "\u00fcbung"], -3, 2, unit="UTF8_CHAR"), ["ll", "un"])

    def test_patterns(self):
        self.check(strings.regex_replace(WORDS[3], "<br ?/>", " "), "a b c 12")
        self.check(strings.regex_replace("Hello", r"(\w)(\w)", r"\2-\1\0", replace_global=False), "e-HHello")
        self.check(strings.regex_replace("a.b!", "[[:punct:]]", r"x\\y"), r"ax\ybx\y")
        self.assertEqual(strings.regex_full_match(["abc", "abcd"], "a.c").numpy().tolist(), [True, False])

    def test_parts(self):
        self.check(strings.join([["a", "b"], ["c", "d"]], "-"), ["a-c", "b-d"])
        self.check(strings.join([["a", "b"], "z"]), ["az", "bz"])
        self.check(strings.reduce_join([["a", "b"], ["c", "d"]], axis=1, separator=" "), ["a b", "c d"])
        self.check(strings.reduce_join([["a", "b"], ["c", "d"]], axis=0, keepdims=True), [["ac", "bd"]])
        self.check(strings.reduce_join([["a", "b"], ["c", "d"]]), "abcd")
        self.check([part.tolist() for part in strings.split(["a b  c", ""])], [["a", "b", "c"], []])
        self.check(strings.split("a,b,,c", sep=","), ["a", "b", "", "c"])
        self.check(strings.split("a b c d", maxsplit=2), ["a", "b", "c d"])

    def test_shapes(self):
        texts = np.array(["a", "bc"])
        self.check(tf.expand_dims(texts, -1), [["a"], ["bc"]])
        self.check(tf.squeeze(tf.expand_dims(texts, 1), axis=1), ["a", "bc"])
        self.check(tf.reshape(texts, [2, 1]), [["a"], ["bc"]])
        self.check(tf.stack([texts, texts], axis=1), [["a", "a"], ["bc", "bc"]])
        self.check(tf.concat([texts, ["d"]], 0), ["a", "bc", "d"])
        self.check(tf.gather(texts, tf.constant([1, 1, 0])), ["bc", "bc", "a"])
        self.assertEqual(tf.reshape(tf.ones([2, 3]), [-1]).shape, (6,))

    def test_numbers_and_hashes(self):
        self.assertEqual(strings.to_number(["1.5", "-2e3"]).numpy().tolist(), [1.5, -2000.0])
        self.assertEqual(strings.to_number(["7", "-9"], tf.int32).numpy().tolist(), [7, -9])
        self.check(strings.as_string(tf.constant([1.5, -2.25])), ["1.500000", "-2.250000"])
        self.check(strings.as_string(tf.constant([3, -4]), width=4, fill="0"), ["0003", "-004"])
        self.check(strings.as_string(tf.constant([True, False])), ["true", "false"])
        self.check(strings.as_string(tf.constant([1.5]), precision=2), ["1.50"])
        self.assertEqual(strings.to_hash_bucket_fast(["Hello", "TensorFlow"], 100).numpy().tolist(), [51, 54])
        self.assertEqual(strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy().tolist(), [2, 0])

    def test_errors(self):
        for call, text in (
            (lambda: strings.substr("a", 3, 1), "pos is 3"), (lambda: strings.to_number(["x"]), "is no float32"),
            (lambda: strings.regex_replace("a", "(", ""), "not valid"), (lambda: strings.regex_replace("a", "a", r"\1"), "a group, 0 to 0"),
            (lambda: strings.lower("a", encoding="latin"), "encoding is 'latin'"), (lambda: strings.length("a", unit="WORD"), "unit is 'WORD'"),
            (lambda: strings.lower(b"\xff", encoding="utf-8"), "not valid UTF-8"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        for value in (tf.constant([1.0]), [1, 2], np.array(["a", 3], dtype=object)):
            with self.assertRaisesRegex(TypeError, "must be str|the values are"):
                strings.lower(value)


if __name__ == "__main__":
    unittest.main()
