"""Tensors, texts and sounds as strings, and functions of texts; values are TensorFlow 2.21's."""

import gzip
import os
import tempfile
import unittest
import zlib

import numpy as np

import wgrad as tf

io, strings = tf.io, tf.strings


def plain(value):
    if isinstance(value, list):
        return [plain(part) for part in value]
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if hasattr(value, "tolist") else value


class Bytes(unittest.TestCase):
    def test_tensors_in_strings(self):
        for value, dtype, text in (
            ([[1.0, 2.0]], tf.float32, b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'),
            (["a", "bc"], tf.string, b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc"),
            ([True, False], tf.bool, b'\x08\n\x12\x04\x12\x02\x08\x02"\x02\x01\x00'), (3, tf.int32, b'\x08\x03\x12\x00"\x04\x03\x00\x00\x00'),
            (np.zeros((0, 3)), tf.float32, b"\x08\x01\x12\x06\x12\x00\x12\x02\x08\x03"),
        ):
            with self.subTest(value=value):
                tensor = tf.constant(value)
                self.assertEqual(io.serialize_tensor(tensor).numpy(), text)
                self.assertEqual(plain(io.parse_tensor(text, dtype)), plain(tensor))
        # TensorFlow also writes values in fields of their own; the last one stands for those that follow.
        field = b"\x08\x01\x12\x04\x12\x02\x08\x03*\x04\x00\x00\x80?"
        self.assertEqual(plain(io.parse_tensor(field, tf.float32)), [1, 1, 1])
        self.assertEqual(plain(io.parse_tensor(b"\x08\x09\x12\x04\x12\x02\x08\x02R\x02\x05\x07", tf.int64)), [5, 7])
        for text, dtype, message in (
            (io.serialize_tensor([1]), tf.float32, "the tensor is int32, and out_type is float32"), (b"abc", tf.float32, "it ends early"),
            (b"", tf.float32, "the number of its dtype is 0"), (b"\x08\x01\x12\x04\x12\x02\x08\x03\x22\x01a", tf.float32, "1 bytes for the shape"),
        ):
            with self.subTest(message=message), self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
                io.parse_tensor(text, dtype)

    def test_damaged_strings_are_errors(self):
        text, random = bytes(io.serialize_tensor(np.arange(6.0).reshape(2, 3))), np.random.default_rng(0)
        for at in range(2000):
            damaged = bytearray(text[: random.integers(len(text) + 1)] if at % 3 == 0 else text)
            for _ in range(random.integers(1, 4)):
                if damaged:
                    damaged[random.integers(len(damaged))] = random.integers(256)
            try:
                io.parse_tensor(bytes(damaged), tf.float32)
            except tf.errors.InvalidArgumentError:
                pass

    def test_base64_and_compressed_bytes(self):
        self.assertEqual(plain(io.encode_base64(["hello", "ab?>\xff"])), [b"aGVsbG8", b"YWI_PsO_"])
        self.assertEqual(plain(io.encode_base64("a", pad=True)), b"YQ==")
        self.assertEqual(plain(io.decode_base64(["YQ", "YQ==", "YWI_PsO_"])), [b"a", b"a", "ab?>\xff".encode()])
        self.assertEqual(plain(io.decode_compressed([zlib.compress(b"abc")], "ZLIB")), [b"abc"])
        self.assertEqual(plain(io.decode_compressed(gzip.compress(b"abc"), "GZIP")), b"abc")
        for call, text in (
            (lambda: io.decode_base64("Y"), "is not base64"), (lambda: io.decode_base64("Y+Q="), "is not base64"),
            (lambda: io.decode_compressed(b"abc", "GZIP"), "3 bytes is not GZIP"), (lambda: io.decode_compressed(b"abc", "LZ4"), "is 'LZ4'"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()

    def test_bits(self):
        self.assertEqual(plain(tf.bitcast([1.0, 2.0], tf.int32)), [1065353216, 1073741824])
        self.assertEqual(plain(tf.bitcast(tf.constant([[1, 2, 3, 4]], tf.uint8), tf.uint32)), [67305985])
        self.assertEqual((plain(tf.bitcast(1.5, tf.uint8)), plain(tf.bitcast(tf.constant(-1), tf.uint32))), ([0, 0, 192, 63], 4294967295))
        with self.assertRaisesRegex(ValueError, r"uint8\[3\] cannot be read as int32; its last axis must have 4"):
            tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.int32)
        with self.assertRaisesRegex(TypeError, "cannot be read as float64"):
            tf.bitcast([1, 2], tf.float64)

    def test_sounds(self):
        sound = tf.audio.encode_wav([[0.0, 0.5], [-1.0, 1.0], [0.3, -0.30001], [2.0, -2.0]], 8000)
        wanted = b"\x00\x00\x00@\x00\x80\xff\x7ff&\x99\xd9\xff\x7f\x00\x80"
        self.assertEqual((sound[-16:], sound[:4], len(sound)), (wanted, b"RIFF", 60))
        samples, rate = tf.audio.decode_wav(sound, desired_channels=1, desired_samples=6)
        self.assertEqual((samples.shape, int(rate), samples.numpy()[:, 0].tolist()), ((6, 1), 8000, [0, -1, 0.29998779296875, 0.999969482421875, 0, 0]))
        with self.assertRaisesRegex(ValueError, "no WAV file"):
            tf.audio.decode_wav(b"abc")

    def test_headers_of_images(self):
        image = io.encode_jpeg(np.arange(105, dtype="uint8").reshape(5, 7, 3))
        self.assertEqual(plain(io.extract_jpeg_shape(image)), [5, 7, 3])
        self.assertEqual((plain(io.is_jpeg(image)), plain(io.is_jpeg(b"abc"))), (True, False))
        part = tf.image.decode_and_crop_jpeg(image, [1, 2, 3, 4])
        np.testing.assert_array_equal(part, io.decode_jpeg(image)[1:4, 2:6])
        with self.assertRaisesRegex(ValueError, r"crop_window is \[3, 0, 3, 2\]"):
            tf.image.decode_and_crop_jpeg(image, [3, 0, 3, 2])

    def test_files_and_folders(self):
        gfile = io.gfile
        with tempfile.TemporaryDirectory() as folder:
            gfile.makedirs(gfile.join(folder, "a", "b"))
            path = gfile.join(folder, "a", "x.txt")
            io.write_file(path, "text")
            gfile.rename(path, gfile.join(folder, "y.txt"))
            gfile.mkdir(gfile.join(folder, "c"))
            self.assertEqual(gfile.stat(gfile.join(folder, "y.txt")).length, 4)
            found = {os.path.relpath(at, folder): sorted(files) for at, _, files in gfile.walk(folder)}
            self.assertEqual(found, {".": ["y.txt"], "a": [], os.path.join("a", "b"): [], "c": []})
            for call, kind in (
                (lambda: gfile.mkdir(gfile.join(folder, "c")), tf.errors.AlreadyExistsError),
                (lambda: gfile.rename(gfile.join(folder, "y.txt"), gfile.join(folder, "c")), tf.errors.AlreadyExistsError),
                (lambda: gfile.stat(path), tf.errors.NotFoundError),
            ):
                with self.assertRaises(kind):
                    call()


class Texts(unittest.TestCase):
    def test_texts_of_tensors(self):
        for inputs, options, text in (
            ((tf.range(10), tf.constant([[1.5, 2], [3, 4]])), {"template": "a {} b {}"}, "a [0 1 2 ... 7 8 9] b [[1.5 2]\n [3 4]]"),
            (tf.constant(["a", "b\"\n"]), {}, r'["a" "b\"\n"]'), ("a", {}, '"a"'), (tf.constant([True, False]), {}, "[1 0]"), (1.5, {}, "1.5"),
            (tf.reshape(tf.range(64), [8, 8]), {"summarize": 2}, "[[0 1 ... 6 7]\n [8 9 ... 14 15]\n ...\n [48 49 ... 54 55]\n [56 57 ... 62 63]]"),
            (tf.constant([1e-7, 1e20, 0.1, 1 / 3]), {}, "[1e-07 1e+20 0.1 0.333333343]"), (tf.zeros([2, 0]), {}, "[\n ...]"),
            (tf.range(5), {"summarize": -1}, "[0 1 2 3 4]"), (tf.reshape(tf.range(4), [2, 1, 2]), {}, "[[[0 1]]\n\n [[2 3]]]"),
        ):
            with self.subTest(text=text):
                self.assertEqual(strings.format(options.pop("template", "{}"), inputs, **options).numpy(), text.encode())
        with self.assertRaisesRegex(ValueError, "1 times '{}', and there are 2"):
            strings.format("{}", (1, 2))

    def test_pieces(self):
        self.assertEqual(plain(strings.bytes_split(["ab", "c"])), [[b"a", b"b"], [b"c"]])
        self.assertEqual(plain(strings.ngrams(["a", "b", "c", "d"], 2)), [b"a b", b"b c", b"c d"])
        self.assertEqual(plain(strings.ngrams(["a", "b"], [1, 2], pad_values=("<", ">"))), [b"a", b"b", b"< a", b"a b", b"b >"])
        self.assertEqual(plain(strings.ngrams(np.array([["a", "b"], ["c", "d"]]), 2, "|")), [[b"a|b"], [b"c|d"]])
        self.assertEqual(plain(strings.ngrams(["a", "b"], 3, preserve_short_sequences=True)), [b"a b"])
        self.assertEqual(plain(strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 3, "-")), [b"b", b"a-c", b""])
        with self.assertRaisesRegex(ValueError, "ngram_width is 0"):
            strings.ngrams(["a"], 0)

    def test_characters(self):
        self.assertEqual(plain(strings.unicode_decode("h\u00e9\U0001f60a", "UTF-8")), [104, 233, 128522])
        self.assertEqual(strings.unicode_split(["h\u00e9", ""], "UTF-8").to_list(), [[b"h", "\u00e9".encode()], []])
        self.assertEqual(plain(strings.unicode_encode([[104, 233], [97]], "UTF-16-BE")), [b"\x00h\x00\xe9", b"\x00a"])
        self.assertEqual(plain(strings.unicode_transcode(["h\u00e9"], "UTF-8", "UTF-32-BE")), ["h\u00e9".encode("utf-32-be")])
        self.assertEqual(plain(strings.unicode_decode(b"a\xffb\xe2\x82c", "UTF-8")), [97, 65533, 98, 65533, 99])
        self.assertEqual(plain(strings.unicode_decode(b"a\xffb", "UTF-8", errors="ignore")), [97, 98])
        for call, text in (
            (lambda: strings.unicode_decode(b"a\xff", "UTF-8", errors="strict"), "is not valid UTF-8"),
            (lambda: strings.unicode_decode("a", "UTF-9"), "no encoding 'UTF-9'"),
            (lambda: strings.unicode_encode([104], "latin-1"), "must be one of UTF-8"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                call()

    def test_comparisons_and_sums(self):
        words = tf.constant(["a", "b"])
        self.assertEqual(((words == ["a", "c"]).tolist(), (words != "a").tolist(), tf.constant("x") == "x"), ([True, False], [False, True], True))
        self.assertEqual((plain(words + "!"), plain("<" + tf.constant("a") + ">")), ([b"a!", b"b!"], b"<a>"))
        self.assertEqual((plain(tf.equal(words, "b")), plain(tf.not_equal(words, "b"))), ([False, True], [True, False]))
        self.assertEqual((plain(tf.shape(words)), int(tf.size(words)), int(tf.rank("a"))), ([2], 2, 0))
        self.assertEqual((plain(tf.reverse(words, [0])), plain(tf.tile(words, [2]))), ([b"b", b"a"], [b"a", b"b"] * 2))
        self.assertEqual(plain(tf.boolean_mask(words, [False, True])), [b"b"])
        self.assertTrue(words.dtype == tf.string)


if __name__ == "__main__":
    unittest.main()
