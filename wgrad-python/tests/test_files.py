"""Files: folders of images and texts, TFRecord files and examples, images, lines, names, files that are fetched."""

import hashlib
import os
import pathlib
import tarfile
import tempfile
import unittest

import numpy as np

import wgrad as tf

utils = tf.keras.utils


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def pets(self):
        for at, kind in enumerate(("cats", "dogs", "eels")):
            for number in range(5):
                grey = np.full((6, 9, 3), 40 * at + number, "uint8")
                tf.io.write_file(self.folder / "pets" / kind / f"{number}.png", tf.io.encode_png(grey))
                tf.io.write_file(self.folder / "texts" / kind / f"{number}.txt", f"{kind} {number}")
        return str(self.folder / "pets"), str(self.folder / "texts")

    def test_images_in_folders(self):
        pets, _ = self.pets()
        data = utils.image_dataset_from_directory(pets, shuffle=False, image_size=(4, 4), batch_size=4)
        self.assertEqual((data.class_names, len(data)), (["cats", "dogs", "eels"], 4))
        for _ in range(2):
            images, labels = map(np.concatenate, zip(*data))
            self.assertEqual((images.shape, images.dtype), ((15, 4, 4, 3), np.float32))
            np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 5))
            np.testing.assert_array_equal(images[:, 1, 2, 0], 40 * labels + np.tile(np.arange(5), 3))
        rows = np.concatenate([y for _, y in utils.image_dataset_from_directory(pets, label_mode="categorical", shuffle=False)])
        np.testing.assert_array_equal(rows, np.eye(3)[labels])
        single = list(utils.image_dataset_from_directory(pets, batch_size=None, shuffle=False, color_mode="grayscale", image_size=(2, 2)))
        self.assertEqual((len(single), single[7][0].shape, int(single[7][1]), single[7][0][0, 0, 0]), (15, (2, 2, 1), 1, 42.0))
        plain = list(utils.image_dataset_from_directory(pets, labels=None, shuffle=False, batch_size=15))
        self.assertEqual((len(plain), plain[0].shape), (1, (15, 256, 256, 3)))

    def test_parts_for_training_and_validation(self):
        pets, _ = self.pets()
        parts = utils.image_dataset_from_directory(pets, seed=1, validation_split=0.2, subset="both", image_size=(2, 2))
        seen = [np.concatenate([images[:, 0, 0, 0] for images, _ in part]) for part in parts]
        self.assertEqual([len(part) for part in seen], [12, 3])
        self.assertEqual(len(np.unique(np.concatenate(seen))), 15)
        first, second = [np.concatenate([images[:, 0, 0, 0] for images, _ in parts[0]]) for _ in range(2)]
        self.assertFalse(np.array_equal(first, second))

    def test_texts_in_folders_train_a_model(self):
        _, texts = self.pets()
        data = utils.text_dataset_from_directory(texts, batch_size=4, shuffle=False)
        words, labels = next(iter(data))
        self.assertEqual((words.tolist(), labels.numpy().tolist()), ([b"cats 0", b"cats 1", b"cats 2", b"cats 3"], [0] * 4))
        vectorize = tf.keras.layers.TextVectorization(output_sequence_length=2)
        vectorize.adapt(data.map(lambda text, label: text))
        model = tf.keras.Sequential([
            vectorize, tf.keras.layers.Embedding(vectorize.vocabulary_size(), 8), tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(3, activation="softmax"),
        ])
        model.compile(tf.keras.optimizers.Adam(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(data, epochs=20, verbose=0)
        self.assertEqual(model.evaluate(data, verbose=0)[1], 1.0)

    def test_errors_of_folders(self):
        pets, _ = self.pets()
        with self.assertRaises(FileNotFoundError):
            utils.image_dataset_from_directory(self.folder / "none")
        with self.assertRaisesRegex(ValueError, "no file in it that ends in"):
            utils.text_dataset_from_directory(pets)
        with self.assertRaisesRegex(ValueError, "two classes"):
            utils.image_dataset_from_directory(pets, label_mode="binary")
        with self.assertRaisesRegex(ValueError, "color_mode is .red."):
            utils.image_dataset_from_directory(pets, color_mode="red")
        with self.assertRaisesRegex(ValueError, "give a seed"):
            utils.image_dataset_from_directory(pets, validation_split=0.2, subset="both")
        tf.io.write_file(os.path.join(pets, "cats", "9.png"), b"no image")
        with self.assertRaisesRegex(ValueError, "9.png"):
            list(utils.image_dataset_from_directory(pets))

    def test_images(self):
        image = np.random.default_rng(1).integers(0, 255, (16, 12, 3)).astype("uint8")
        png = tf.io.encode_png(image)
        np.testing.assert_array_equal(tf.io.decode_png(png).numpy(), image)
        np.testing.assert_allclose(tf.image.decode_image(png, dtype=tf.float32).numpy(), image / 255, rtol=1e-6)
        self.assertEqual(tf.io.decode_png(png, channels=1).shape, (16, 12, 1))
        smooth = np.broadcast_to(np.arange(16, dtype="uint8")[:, None, None] * 10, (16, 16, 3))
        close = tf.io.decode_jpeg(tf.io.encode_jpeg(smooth)).numpy().astype(int)
        self.assertLess(np.abs(close - smooth).max(), 8)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.io.decode_jpeg(b"nothing")
        with self.assertRaisesRegex(ValueError, "uint8"):
            tf.io.encode_png(image.astype("float32"))
        tf.io.write_file(self.folder / "x.png", png)
        np.testing.assert_array_equal(utils.load_img(self.folder / "x.png"), image)
        self.assertEqual(utils.img_to_array(utils.load_img(self.folder / "x.png", target_size=(4, 5))).shape, (4, 5, 3))

    @staticmethod
    def example(n):
        feature = lambda **of: tf.train.Feature(**of)
        return tf.train.Example(features=tf.train.Features(feature={
            "ids": feature(int64_list=tf.train.Int64List(value=[n, 2**40 if n == 9 else n + 1])),
            "share": feature(float_list=tf.train.FloatList(value=[0.5 * n])),
            "name": feature(bytes_list=tf.train.BytesList(value=[b"row %d" % n])),
            "any": feature(float_list=tf.train.FloatList(value=[1.5] * n)),
        }))

    SPEC = {
        "ids": tf.io.FixedLenFeature([2], tf.int64), "share": tf.io.FixedLenFeature([], tf.float32),
        "name": tf.io.FixedLenFeature([], tf.string), "absent": tf.io.FixedLenFeature([], tf.float32, default_value=9.0),
        "any": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    }

    def test_records(self):
        for kind in ("", "GZIP", "ZLIB"):
            path = self.folder / f"records{kind}"
            with tf.io.TFRecordWriter(path, kind) as writer:
                for n in range(5):
                    writer.write(self.example(n).SerializeToString())
            data = tf.data.TFRecordDataset(str(path), compression_type=kind)
            for _ in range(2):
                rows = list(data.map(lambda record: tf.io.parse_single_example(record, self.SPEC)))
                self.assertEqual(len(rows), 5)
                self.assertEqual(rows[3]["ids"].numpy().tolist(), [3, 4])
                self.assertEqual((float(rows[3]["share"]), rows[3]["name"], float(rows[3]["absent"])), (1.5, b"row 3", 9.0))
                self.assertEqual([row["any"].shape[0] for row in rows], [0, 1, 2, 3, 4])
            self.assertEqual(len(list(tf.data.TFRecordDataset([str(path)] * 2, kind))), 10)
        with self.assertRaisesRegex(ValueError, "closed"):
            writer.write(b"x")

    def test_examples(self):
        example = self.example(3)
        again = tf.train.Example.FromString(example.SerializeToString())
        self.assertEqual(again, example)
        self.assertNotEqual(again, self.example(4))
        self.assertEqual(again.features.feature["ids"].int64_list.value, [3, 4])
        self.assertEqual(again.features.feature["ids"].WhichOneof("kind"), "int64_list")
        both = tf.io.parse_example([self.example(n).SerializeToString() for n in (1, 2)], {key: self.SPEC[key] for key in ("ids", "name")})
        self.assertEqual((both["ids"].numpy().tolist(), both["name"].tolist()), ([[1, 2], [2, 3]], [b"row 1", b"row 2"]))

    def test_errors_of_records(self):
        record = self.example(1).SerializeToString()
        parse = lambda **features: tf.io.parse_single_example(record, features)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "missing"):
            parse(other=tf.io.FixedLenFeature([], tf.float32))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "has 2 values"):
            parse(ids=tf.io.FixedLenFeature([3], tf.int64))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "values of int64"):
            parse(ids=tf.io.FixedLenFeature([2], tf.float32))
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.io.parse_single_example(b"zzzz", self.SPEC)
        with self.assertRaises(tf.errors.OpError):
            tf.io.parse_single_example(self.example(9).SerializeToString(), {"ids": self.SPEC["ids"]})
        with self.assertRaisesRegex(TypeError, "must be bytes"):
            tf.train.BytesList(value=["text"])
        with self.assertRaises(FileNotFoundError):
            list(tf.data.TFRecordDataset(str(self.folder / "none")))
        tf.io.write_file(self.folder / "damaged", b"not a record file at all, but long enough")
        with self.assertRaises(ValueError):
            list(tf.data.TFRecordDataset(str(self.folder / "damaged")))
        with self.assertRaises(tf.errors.NotFoundError):
            tf.io.read_file(self.folder / "none")

    def test_lines_and_names(self):
        pets, _ = self.pets()
        tf.io.write_file(self.folder / "lines", "one\ntwo\r\nthree")
        self.assertEqual(list(tf.data.TextLineDataset(self.folder / "lines")), [b"one", b"two", b"three"])
        names = tf.data.Dataset.list_files(f"{pets}/*/*.png", shuffle=False)
        self.assertEqual((len(names), [os.path.basename(name) for name in names][:2]), (15, [b"0.png", b"1.png"]))
        shuffled = list(tf.data.Dataset.list_files(f"{pets}/*/*.png", seed=4))
        self.assertNotEqual(shuffled, list(names))
        self.assertEqual(sorted(shuffled), sorted(names))
        images = names.map(lambda name: tf.io.decode_png(tf.io.read_file(name))).batch(15)
        self.assertEqual(next(iter(images)).shape, (15, 6, 9, 3))
        with self.assertRaises(tf.errors.InvalidArgumentError):
            tf.data.Dataset.list_files(f"{pets}/none*")
        self.assertEqual(len(tf.io.gfile.glob(f"{pets}/cats/*")), 5)
        self.assertTrue(tf.io.gfile.exists(pets) and not tf.io.gfile.exists(pets + "none"))

    def test_get_file(self):
        (self.folder / "inside").mkdir()
        (self.folder / "inside" / "a.txt").write_text("here", encoding="utf-8")
        with tarfile.open(self.folder / "pack.tar.gz", "w:gz") as archive:
            archive.add(self.folder / "inside", "inside")
        origin, cache = (self.folder / "pack.tar.gz").as_uri(), str(self.folder / "cache")
        path = utils.get_file("pack.tar.gz", origin, cache_dir=cache)
        self.assertEqual(pathlib.Path(path).read_bytes(), (self.folder / "pack.tar.gz").read_bytes())
        folder = utils.get_file(origin=origin, cache_dir=cache, extract=True)
        self.assertEqual((pathlib.Path(folder) / "inside" / "a.txt").read_text(encoding="utf-8"), "here")
        right = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        self.assertEqual(utils.get_file("pack.tar.gz", origin, cache_dir=cache, file_hash=right), path)
        with self.assertRaisesRegex(ValueError, "was given"):
            utils.get_file("other", origin, cache_dir=cache, file_hash="0" * 64)
        self.assertEqual(sorted(os.listdir(self.folder / "cache" / "datasets")), ["pack", "pack.tar.gz"])


if __name__ == "__main__":
    unittest.main()
