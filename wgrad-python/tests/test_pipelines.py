"""Pipelines of `tf.data` as programs write them; values are TensorFlow 2.21's."""

import os
import tempfile
import unittest

import numpy as np

import wgrad as tf

Dataset = tf.data.Dataset


def plain(value):
    if isinstance(value, Dataset):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if hasattr(value, "tolist") else value


def of_lists(*rows):
    return Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([None], tf.int32))


class Sources(unittest.TestCase):
    def test_zipped_structures(self):
        nested = Dataset.zip((Dataset.range(3), {"a": Dataset.range(3, 6), "b": Dataset.range(9, 11)}))
        self.assertEqual(plain(nested), [[0, {"a": 3, "b": 9}], [1, {"a": 4, "b": 10}]])
        self.assertEqual(plain(Dataset.zip(datasets=(Dataset.range(2), Dataset.range(2, 4)))), [[0, 2], [1, 3]])
        with self.assertRaisesRegex(TypeError, "is no dataset"):
            Dataset.zip(Dataset.range(2), [1, 2])

    def test_generators_have_the_declared_dtypes(self):
        (x, y) = Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.float32))
        self.assertEqual((x.dtype, float(y)), (tf.float32, 2.0))
        pairs = Dataset.from_generator(lambda n: ((at, "ab") for at in range(n)), (tf.int64, tf.string), ([], []), args=(2,))
        self.assertEqual(plain(pairs), [[0, b"ab"], [1, b"ab"]])
        for rows, text in (([[1.5]], r"is no int32"), ([[[1], [2]]], r"shape \[2, 1\]; \[None\] was declared"), (["a"], "is no int32")):
            with self.subTest(text=text), self.assertRaisesRegex(TypeError, text):
                plain(of_lists(*rows))
        with self.assertRaisesRegex(TypeError, "tuples of 2 parts"):
            plain(Dataset.from_generator(lambda: iter([1]), (tf.int32, tf.int32)))

    def test_numbers_without_an_end(self):
        self.assertEqual(plain(Dataset.counter(2, 3).take(3)), [2, 5, 8])
        drawn = plain(Dataset.random(seed=4).take(3))
        self.assertEqual((len(set(drawn)), drawn), (3, plain(Dataset.random(seed=4).take(3))))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            with open(path, "w") as file:
                file.write("a,b,c\n1,2.5,x\n3,,y\n5,0.5,\"z,z\"\n")
            rows = tf.data.experimental.CsvDataset(path, [tf.int32, [7.0], tf.string], header=True)
            self.assertEqual(plain(rows), [[1, 2.5, b"x"], [3, 7.0, b"y"], [5, 0.5, b"z,z"]])
            chosen = tf.data.experimental.CsvDataset([path], [tf.string], header=True, select_cols=[2])
            self.assertEqual(plain(chosen), [[b"x"], [b"y"], [b"z,z"]])
            batches = tf.data.experimental.make_csv_dataset(path, 2, label_name="a", num_epochs=1, shuffle=False)
            self.assertEqual(plain(batches), [[{"b": [2.5, 0.0], "c": [b"x", b"y"]}, [1, 3]], [{"b": [0.5], "c": [b"z,z"]}, [5]]])
            for call, text in (
                (lambda: plain(tf.data.experimental.CsvDataset(path, [tf.int32, tf.float32, tf.string], header=True)), "row 3, column 2: the field is missing"),
                (lambda: plain(tf.data.experimental.CsvDataset(path, [tf.int32] * 3)), "the field is 'a'; it must be int32"),
                (lambda: plain(tf.data.experimental.CsvDataset(path, [tf.string])), "row 1 has 3 fields; 1 columns"),
                (lambda: tf.data.experimental.make_csv_dataset(path, 2, label_name="d"), "no column 'd'; the columns are a, b, c"),
            ):
                with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                    call()
            path = os.path.join(folder, "a.bin")
            with open(path, "wb") as file:
                file.write(b"Hab12cd34")
            self.assertEqual(plain(tf.data.FixedLengthRecordDataset(path, 4, header_bytes=1)), [b"ab12", b"cd34"])
            with self.assertRaisesRegex(ValueError, "no whole number of records of 4"):
                plain(tf.data.FixedLengthRecordDataset(path, 4))


class Stages(unittest.TestCase):
    def test_numbers_of_elements(self):
        seven = Dataset.range(7)
        for dataset, count in (
            (seven.repeat(), -1), (seven.repeat().batch(2).map(lambda x: x), -1), (seven.repeat().take(3), 3), (seven.repeat(0), 0),
            (seven.window(3), 3), (seven.window(3, 1, 2, True), 3), (seven.shard(3, 0), 3), (seven.shard(3, 1), 2),
            (Dataset.zip((seven, Dataset.range(2).repeat())), 7), (seven.repeat().concatenate(seven), -1), (seven.filter(lambda x: x > 1), -2),
            (seven.skip(-1), 0), (Dataset.counter().skip(4), -1),
        ):
            with self.subTest(count=count):
                self.assertEqual(int(dataset.cardinality()), count)
                if count >= 0:
                    self.assertEqual(len(list(dataset)), count)
        self.assertEqual((tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY), (-1, -2))
        for dataset, text in ((seven.repeat(), "is infinite"), (seven.filter(lambda x: x > 1), "length is unknown")):
            with self.assertRaisesRegex(TypeError, text):
                len(dataset)

    def test_one_pass(self):
        elements = iter(Dataset.range(2))
        self.assertEqual((int(next(elements)), int(elements.get_next())), (0, 1))
        with self.assertRaises(tf.errors.OutOfRangeError):
            elements.get_next()
        elements = iter(Dataset.range(1))
        first, second = elements.get_next_as_optional(), elements.get_next_as_optional()
        self.assertEqual((bool(first.has_value()), int(first.get_value()), bool(second.has_value())), (True, 0, False))

    def test_shapes_of_batches(self):
        data = Dataset.from_tensor_slices((np.zeros((4, 3), "float32"), [1, 2, 3, 4]))
        self.assertEqual([part.shape.as_list() for part in data.shuffle(4).batch(2).prefetch(1).element_spec], [[None, 3], [None]])
        self.assertEqual([part.shape.as_list() for part in data.batch(2, drop_remainder=True).element_spec], [[2, 3], [2]])

    def test_padding_by_names_and_boundaries(self):
        rows = Dataset.from_generator(lambda: ({"x": [1.0] * at} for at in range(1, 3)), output_signature={"x": tf.TensorSpec([None], tf.float32)})
        self.assertEqual(plain(rows.padded_batch(2, {"x": [3]}, {"x": 9.0})), [{"x": [[1, 9, 9], [1, 1, 9]]}])
        lists = of_lists([1], [1, 2], [1, 2, 3], [1, 2, 3, 4])
        length = lambda row: tf.shape(row)[0]
        padded = lists.bucket_by_sequence_length(length, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True)
        self.assertEqual(plain(padded), [[[1, 0], [1, 2]], [[1, 2, 3, 0], [1, 2, 3, 4]]])
        equal = of_lists([1, 1], [2, 2], [1, 2, 3]).bucket_by_sequence_length(length, [3, 5], [2, 1, 2], no_padding=True)
        self.assertEqual(plain(equal), [[[1, 1], [2, 2]], [[1, 2, 3]]])
        with self.assertRaisesRegex(ValueError, "longer than the last boundary, 3"):
            plain(lists.bucket_by_sequence_length(length, [2, 3], [1, 1, 1], pad_to_bucket_boundary=True))

    def test_orders_repeat(self):
        fixed = Dataset.range(30).shuffle(30, reshuffle_each_iteration=False)
        self.assertEqual(plain(fixed), plain(fixed))
        changing = Dataset.range(30).shuffle(30, seed=1)
        self.assertNotEqual(plain(changing), plain(changing))

    def test_errors_are_left_out(self):
        checked = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.debugging.check_numerics(1.0 / x, "x"))
        self.assertEqual(plain(checked.ignore_errors()), [1.0, 0.5])
        counted = lambda data: data.apply(tf.data.experimental.assert_cardinality(3))
        self.assertEqual(len(counted(Dataset.range(9).filter(lambda x: x < 3))), 3)
        with self.assertRaisesRegex(ValueError, "has 2 elements, and not 3"):
            plain(counted(Dataset.range(2)))

    def test_classes_with_other_shares(self):
        labels = np.r_[np.zeros(1800, "int32"), np.ones(200, "int32")]
        data = Dataset.from_tensor_slices(labels).shuffle(2000, seed=1)
        for initial in (None, [0.9, 0.1]):
            pairs = plain(data.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=2))
            share = np.mean([kind for kind, _ in pairs])
            self.assertTrue(all(kind == label for kind, label in pairs) and 250 < len(pairs) < 600 and abs(share - 0.5) < 0.1, (len(pairs), share))
        with self.assertRaisesRegex(ValueError, "a class is 1, and there are 1"):
            plain(data.rejection_resample(lambda x: x, [1.0]))

    def test_options(self):
        options = tf.data.Options()
        options.deterministic = False
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        self.assertEqual(plain(Dataset.range(2).with_options(options)), [0, 1])
        self.assertTrue(Dataset.range(0))


class Folders(unittest.TestCase):
    ROWS = {"a": np.arange(6, dtype="float32").reshape(3, 2), "b": ["x", "y", "z"]}

    def test_elements_are_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            data, path = Dataset.from_tensor_slices((self.ROWS, [1, 2, 3])), os.path.join(folder, "data")
            for compression in (None, "GZIP"):
                data.save(path, compression)
                found = Dataset.load(path)
                self.assertEqual((plain(found), len(found)), (plain(data), 3))
            Dataset.range(0).save(path)
            self.assertEqual(plain(Dataset.load(path)), [])
            other = os.path.join(folder, "other")
            os.makedirs(os.path.join(other, "folder"))
            for call, text in (
                (lambda: data.save(other), "no dataset is in it"), (lambda: Dataset.load(other), "no dataset in"),
                (lambda: data.window(2).save(path), "which cannot be saved"),
                (lambda: of_lists([1]).concatenate(Dataset.from_tensors(1.0)).save(path), "all must be alike"),
            ):
                with self.subTest(text=text), self.assertRaisesRegex(Exception, text):
                    call()
            self.assertEqual(sorted(os.listdir(folder)), ["data", "other"])

    def test_passes_are_kept_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            calls, path = [], os.path.join(folder, "kept")
            data = Dataset.range(4).map(lambda x: calls.append(1) or x * 2).cache(path)
            next(iter(data))
            self.assertEqual(plain(data), [0, 2, 4, 6])
            count = len(calls)
            self.assertEqual((plain(data), plain(Dataset.range(1).snapshot(path)), len(calls)), ([0, 2, 4, 6], [0, 2, 4, 6], count))


if __name__ == "__main__":
    unittest.main()
