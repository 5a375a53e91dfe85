"""Rows of different lengths. The expected values are TensorFlow's."""

import unittest

import numpy as np
import wgrad as tf

keras = tf.keras
constant, Ragged = tf.ragged.constant, tf.RaggedTensor
ROWS = [[3, 1, 4, 1], [], [5, 9, 2], [6], []]
NESTED = [[[1, 2], [3]], [], [[4]]]


class Rows(unittest.TestCase):
    def check(self, made, expected):
        self.assertIsInstance(made, Ragged)
        self.assertEqual(made.to_list(), expected)

    def test_parts(self):
        r, nested = constant(ROWS), constant(NESTED)
        self.assertEqual((r.shape, r.dtype, r.ragged_rank, len(r)), ((5, None), tf.int32, 1, 5))
        self.assertEqual(r.row_lengths().numpy().tolist(), [4, 0, 3, 1, 0])
        self.assertEqual(r.row_splits.numpy().tolist(), [0, 4, 4, 7, 8, 8])
        self.assertEqual(r.values.numpy().tolist(), [3, 1, 4, 1, 5, 9, 2, 6])
        self.assertEqual(r.value_rowids().numpy().tolist(), [0, 0, 0, 0, 2, 2, 2, 3])
        self.assertEqual(r.bounding_shape().numpy().tolist(), [5, 4])
        self.assertEqual((nested.shape, nested.ragged_rank), ((3, None, None), 2))
        self.assertEqual(nested.flat_values.numpy().tolist(), [1, 2, 3, 4])
        self.assertEqual([splits.numpy().tolist() for splits in nested.nested_row_splits], [[0, 2, 2, 3], [0, 2, 3, 4]])
        self.assertEqual(nested.row_lengths(axis=2).to_list(), [[2, 1], [], [1]])
        self.assertEqual(repr(r), "<tf.RaggedTensor [[3, 1, 4, 1], [], [5, 9, 2], [6], []]>")
        self.assertEqual(str(constant([[1.5, 2.0], ["a"][:0]])), "<tf.RaggedTensor [[1.5, 2.0], []]>")
        self.assertEqual(repr(constant([["ab"], []])), "<tf.RaggedTensor [[b'ab'], []]>")
        self.assertEqual(constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1).shape, (2, None, 2))
        with self.assertRaisesRegex(ValueError, "values and lists in one row"):
            constant([[1], 2])

    def test_ways_to_make_them(self):
        self.check(Ragged.from_row_lengths([1, 2, 3], [1, 2]), [[1], [2, 3]])
        self.check(Ragged.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=4), [[1, 2], [], [3], []])
        self.check(Ragged.from_row_starts([1, 2, 3], [0, 1]), [[1], [2, 3]])
        self.check(Ragged.from_row_limits([1, 2, 3], [1, 3]), [[1], [2, 3]])
        self.check(Ragged.from_uniform_row_length([1, 2, 3, 4], 2), [[1, 2], [3, 4]])
        self.check(Ragged.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 1, 3]]), [[[1]], [[2, 3]]])
        self.check(Ragged.from_tensor([[1, 0], [0, 3], [0, 0]], padding=0), [[1], [0, 3], []])
        self.check(Ragged.from_tensor([[1, 0], [2, 3]], lengths=[1, 0]), [[1], []])
        self.check(Ragged.from_tensor([[[1, 0], [2, 3]]], ragged_rank=2), [[[1, 0], [2, 3]]])
        self.check(tf.ragged.range([0, 5], [2, 9], 2), [[0], [5, 7]])
        self.check(tf.ragged.stack([[1, 2], [3]]), [[1, 2], [3]])
        for call, text in (
            (lambda: Ragged.from_row_splits([1, 2, 3], [0, 2]), r"the splits are \[0, 2\] for 3 values"),
            (lambda: Ragged.from_row_lengths([1, 2], [3, -1]), "not negative"),
            (lambda: Ragged.from_value_rowids([1, 2], [1, 0]), "must not decrease"),
            (lambda: Ragged.from_tensor([[1, 2]], lengths=[3]), "from 0 to 2"),
            (lambda: Ragged.from_uniform_row_length([1, 2, 3], 2), "3 values do not make rows of 2"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(tf.errors.InvalidArgumentError, text):
                call()

    def test_padding(self):
        r = constant(ROWS)
        self.assertEqual(r.to_tensor().numpy().tolist(), [[3, 1, 4, 1], [0] * 4, [5, 9, 2, 0], [6, 0, 0, 0], [0] * 4])
        self.assertEqual(r.to_tensor(-1, shape=[None, 2]).numpy().tolist(), [[3, 1], [-1, -1], [5, 9], [6, -1], [-1, -1]])
        self.assertEqual(constant(NESTED).to_tensor().numpy().tolist(), [[[1, 2], [3, 0]], [[0, 0]] * 2, [[4, 0], [0, 0]]])
        self.assertEqual(constant([["ab", "c"], ["d"]]).to_tensor(default_value="x").tolist(), [[b"ab", b"c"], [b"d", b"x"]])
        self.assertEqual(tf.sparse.to_dense(r.to_sparse()).numpy()[2].tolist(), [5, 9, 2, 0])
        self.assertEqual([part.tolist() for part in r.numpy()], ROWS)

    def test_indices(self):
        r, nested = constant(ROWS), constant(NESTED)
        self.assertEqual(r[0].numpy().tolist(), [3, 1, 4, 1])
        self.assertEqual((int(r[0, 1]), r[2, 1:].numpy().tolist(), r[-2].numpy().tolist()), (1, [9, 2], [6]))
        self.check(r[:, :2], [[3, 1], [], [5, 9], [6], []])
        self.check(r[:, -1:], [[1], [], [2], [6], []])
        self.check(r[1:3], [[], [5, 9, 2]])
        self.check(nested[0], [[1, 2], [3]])
        self.check(nested[:, :, :1], [[[1], [3]], [], [[4]]])
        self.check(nested[:, 1:], [[[3]], [], []])
        self.assertEqual([row.numpy().tolist() for row in r], ROWS)
        with self.assertRaisesRegex(IndexError, "the index 9 is out of bounds; there are 5 rows"):
            r[9]
        with self.assertRaisesRegex(ValueError, "must be a slice"):
            r[:, 0]

    def test_functions_of_elements(self):
        r = constant(ROWS)
        self.check(r + 1, [[4, 2, 5, 2], [], [6, 10, 3], [7], []])
        self.check(2 * r - r * r, [[-3, 1, -8, 1], [], [-15, -63, 0], [-24], []])
        self.check(r + [[10], [20], [30], [40], [50]], [[13, 11, 14, 11], [], [35, 39, 32], [46], []])
        self.check(r == 1, [[False, True, False, True], [], [False] * 3, [False], []])
        self.check(tf.maximum(r, 2), [[3, 2, 4, 2], [], [5, 9, 2], [6], []])
        self.check(tf.clip_by_value(r, 2, 4), [[3, 2, 4, 2], [], [4, 4, 2], [4], []])
        self.check(tf.cast(r, tf.float32) / 2.0, [[1.5, 0.5, 2.0, 0.5], [], [2.5, 4.5, 1.0], [3.0], []])
        self.check(tf.ragged.map_flat_values(tf.square, constant(NESTED)), [[[1, 4], [9]], [], [[16]]])
        self.check(tf.ones_like(r), [[1] * 4, [], [1] * 3, [1], []])
        self.assertEqual((int(tf.size(r)), int(tf.rank(r))), (8, 2))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"rows of \[2, 1\] and \[1, 2\] values do not go together"):
            constant([[1, 2], [3]]) + constant([[1], [2, 3]])
        with self.assertRaisesRegex(tf.errors.InvalidTypeError, "to_tensor pads their rows"):
            tf.matmul(r, r)

    def test_reductions(self):
        r, f, nested = constant(ROWS), constant([[1.5, 2.0], [], [3.25]]), constant(NESTED)
        self.assertEqual(tf.reduce_sum(r, axis=1).numpy().tolist(), [9, 0, 16, 6, 0])
        self.assertEqual(tf.reduce_sum(r, axis=0).numpy().tolist(), [14, 10, 6, 1])
        self.assertEqual(int(tf.reduce_sum(r)), 31)
        np.testing.assert_array_equal(tf.reduce_mean(f, axis=1), [1.75, np.nan, 3.25])
        self.assertEqual(tf.reduce_mean(f, axis=0).numpy().tolist(), [2.375, 2.0])
        self.assertEqual(tf.reduce_max(r, axis=-1).numpy()[[0, 2, 3]].tolist(), [4, 9, 6])
        self.assertEqual(tf.reduce_any(r > 5, axis=1).numpy().tolist(), [False, False, True, True, False])
        self.assertEqual(tf.reduce_all(r > 1, axis=1).numpy().tolist(), [False, True, True, True, True])
        self.check(tf.reduce_sum(nested, axis=2), [[3, 3], [], [4]])
        self.check(tf.reduce_sum(nested, axis=1), [[4, 2], [], [4]])
        self.check(tf.reduce_sum(nested, axis=0), [[5, 2], [3]])
        rows = Ragged.from_row_lengths(tf.reshape(tf.range(6.0), [3, 2]), [1, 2])
        self.assertEqual(tf.reduce_mean(rows, axis=1).numpy().tolist(), [[0.0, 1.0], [3.0, 4.0]])

    def test_functions_of_rows(self):
        r, nested = constant(ROWS), constant(NESTED)
        self.check(tf.concat([r, [[1]] * 5], axis=1), [[3, 1, 4, 1, 1], [1], [5, 9, 2, 1], [6, 1], [1]])
        self.check(tf.concat([r, [[7, 8]]], axis=0), [*ROWS, [7, 8]])
        self.check(tf.concat([nested, nested], axis=2), [[[1, 2, 1, 2], [3, 3]], [], [[4, 4]]])
        self.check(tf.concat([nested, nested], axis=1), [[[1, 2], [3], [1, 2], [3]], [], [[4], [4]]])
        self.check(tf.stack([r, r]), [ROWS, ROWS])
        self.check(tf.gather(r, [2, 0]), [ROWS[2], ROWS[0]])
        self.check(tf.gather(tf.range(0, 100, 10), r), [[30, 10, 40, 10], [], [50, 90, 20], [60], []])
        self.check(tf.nn.embedding_lookup(tf.constant([[1.0, 2.0], [3.0, 4.0]]), constant([[0], [1, 0]])), [[[1, 2]], [[3, 4], [1, 2]]])
        self.check(tf.expand_dims(r, 2), [[[3], [1], [4], [1]], [], [[5], [9], [2]], [[6]], []])
        self.check(tf.expand_dims(r, 1), [[row] for row in ROWS])
        self.check(nested.merge_dims(0, 1), [[1, 2], [3], [4]])
        self.check(nested.merge_dims(1, 2), [[1, 2, 3], [], [4]])
        self.check(tf.ragged.boolean_mask(r, constant([[True, False, True, False], [], [False, True, True], [True], []])), [[3, 4], [], [9, 2], [6], []])
        self.check(tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]), [[1], [3, 4]])
        self.assertEqual(tf.ragged.row_splits_to_segment_ids([0, 2, 3]).numpy().tolist(), [0, 0, 1])
        self.assertEqual(tf.ragged.segment_ids_to_row_splits([0, 0, 1]).numpy().tolist(), [0, 2, 3])

    def test_gradients_reach_the_values(self):
        v = tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            means = tf.reduce_mean(Ragged.from_row_lengths(v * v, [1, 2]), axis=1)
            loss = tf.reduce_sum(means) + tf.reduce_sum(Ragged.from_row_lengths(v, [2, 1]).to_tensor()[:, 1])
        self.assertEqual(tape.gradient(loss, v).numpy().tolist(), [2.0, 3.0, 3.0])

    def test_strings(self):
        s = constant([["ab", "c"], ["def"]])
        self.assertEqual(s.dtype, tf.string)
        self.check(tf.strings.split(["a b", "", "c"]), [[b"a", b"b"], [], [b"c"]])
        self.check(tf.strings.length(s), [[2, 1], [3]])
        self.check(tf.strings.upper(s), [[b"AB", b"C"], [b"DEF"]])
        self.check(tf.strings.join([s, s], separator="-"), [[b"ab-ab", b"c-c"], [b"def-def"]])
        self.assertEqual(tf.strings.reduce_join(s, axis=1).tolist(), [b"abc", b"def"])
        self.check(tf.strings.unicode_decode(["ab", "c"], "UTF-8"), [[97, 98], [99]])
        self.check(tf.strings.to_number(constant([["1", "2.5"], ["3"]])), [[1.0, 2.5], [3.0]])
        self.check(s == [["ab"], ["x"]], [[True, False], [False]])
        layer = keras.layers.StringLookup(vocabulary=["a", "b"])
        self.assertEqual(layer(tf.strings.split(["a b", "c"])).to_tensor().numpy().tolist(), [[1, 2], [0, 0]])

    def test_datasets_and_functions(self):
        self.assertEqual([row.numpy().tolist() for row in tf.data.Dataset.from_tensor_slices(constant(ROWS))], ROWS)
        batches = list(tf.data.Dataset.range(1, 4).map(lambda n: (tf.range(n), n)).ragged_batch(2))
        self.check(batches[0][0], [[0], [0, 1]])
        self.assertEqual((batches[0][1].numpy().tolist(), batches[1][0].to_list()), ([1, 2], [[0, 1, 2]]))
        words = tf.data.Dataset.from_tensor_slices(["a b", "c"]).batch(2).map(lambda texts: tf.strings.split(texts).to_tensor())
        self.assertEqual(next(iter(words)).numpy().tolist(), [[b"a", b"b"], [b"c", b""]])
        self.check(tf.function(lambda x: x + 1)(constant([[1], []])), [[2], []])

    def test_messages_have_few_numbers(self):
        with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
            tf.RaggedTensor.from_row_splits(np.arange(5.0), np.arange(100_000))
        self.assertIn("7, 8, 9, ...] (100000 numbers) for 5 values", str(caught.exception))
        self.assertLess(len(str(caught.exception)), 300)


if __name__ == "__main__":
    unittest.main()
