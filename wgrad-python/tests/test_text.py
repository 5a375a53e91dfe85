"""Layers for tables and text, and programs that use them."""

import os
import tempfile
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

TEXTS = ["The cat sat on the mat.", "A dog ate the bone!", "Cats and dogs.", "The bone was good"]


class Text(unittest.TestCase):
    def test_text_vectorization(self):
        vectorize = layers.TextVectorization(max_tokens=10, output_sequence_length=5)
        vectorize.adapt(np.array(TEXTS))
        words = vectorize.get_vocabulary()
        self.assertEqual(words[:4], ["", "[UNK]", "the", "bone"])
        self.assertEqual(vectorize.get_vocabulary(include_special_tokens=False), words[2:])
        self.assertEqual(vectorize.vocabulary_size(), 10)
        y = vectorize(["the bone is unknown"])
        self.assertEqual((y.shape, y.numpy()[0, :2].tolist(), y.numpy()[0, 2:].tolist()), ((1, 5), [2, 3], [1, 1, 0]))
        self.assertEqual(vectorize("the").numpy().tolist(), [2, 0, 0, 0, 0])
        again = layers.TextVectorization.from_config(vectorize.get_config())
        np.testing.assert_array_equal(again(TEXTS).numpy(), vectorize(TEXTS).numpy())
        counts = layers.TextVectorization(output_mode="count", vocabulary=["bone", "the"])
        self.assertEqual(counts(np.array([["the bone the x"]])).numpy().tolist(), [[1, 1, 2]])
        weighted = layers.TextVectorization(output_mode="tf_idf", ngrams=2)
        weighted.adapt(TEXTS)
        self.assertEqual(weighted(TEXTS).shape, (4, weighted.vocabulary_size()))

    def test_lookups(self):
        letters = layers.StringLookup(vocabulary=["a", "b", "c"], mask_token="")
        self.assertEqual(letters(np.array([["a", "z"], ["", "c"]])).numpy().tolist(), [[2, 1], [0, 4]])
        back = layers.StringLookup(vocabulary=letters.get_vocabulary(), mask_token="", invert=True)
        self.assertEqual(back([[2, 4]]).tolist(), [[b"a", b"c"]])
        self.assertEqual(letters.get_vocabulary(include_special_tokens=False), ["a", "b", "c"])
        learnt = layers.StringLookup(output_mode="multi_hot")
        learnt.adapt(tf.data.Dataset.from_tensor_slices(np.array(["b", "a", "b", "c"])).batch(3))
        self.assertEqual(learnt.get_vocabulary(), ["[UNK]", "b", "c", "a"])
        self.assertEqual(learnt([["b", "a"]]).numpy().tolist(), [[0, 1, 0, 1]])
        numbers = layers.IntegerLookup(vocabulary=[12, 36, 1138])
        self.assertEqual(numbers(np.array([[12, 1138], [7, 36]])).numpy().tolist(), [[1, 3], [0, 2]])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "words.txt")
            with open(path, "w") as file:
                file.write("x\ny\n")
            self.assertEqual(layers.StringLookup(vocabulary=path)(["y", "x", "?"]).numpy().tolist(), [2, 1, 0])

    def test_hashes(self):
        # Keras's documentation has these bins.
        self.assertEqual(layers.Hashing(3)([["A"], ["B"], ["C"], ["D"], ["E"]]).numpy().ravel().tolist(), [1, 0, 1, 1, 2])
        crossed = layers.HashedCrossing(5)((np.array(["A", "B", "A", "B", "A"]), np.array([101, 101, 101, 102, 102])))
        self.assertEqual(crossed.numpy().tolist(), [1, 4, 1, 1, 3])

    def test_functions_of_the_program(self):
        def standardize(texts):
            return tf.strings.regex_replace(tf.strings.lower(texts), "<br ?/>", " ")

        layer = layers.TextVectorization(standardize=standardize, output_sequence_length=4)
        layer.adapt(np.array(["One<br />two", "TWO, three"]))
        self.assertEqual(layer.get_vocabulary(), ["", "[UNK]", "two,", "two", "three", "one"])
        self.assertEqual(layer(["one<br/>TWO three"]).numpy().tolist(), [[5, 3, 4, 0]])
        twin = layers.TextVectorization.from_config(layer.get_config())
        self.assertEqual(twin(["one<br/>TWO three"]).numpy().tolist(), [[5, 3, 4, 0]])

        pairs = layers.TextVectorization(split=lambda texts: tf.strings.split(texts, "-"), standardize="lower")
        pairs.adapt(np.array([["A-b"], ["b-c"]]))
        self.assertEqual(pairs.get_vocabulary(), ["", "[UNK]", "b", "c", "a"])
        self.assertEqual(pairs(["C-a-x", "b"]).numpy().tolist(), [[3, 4, 1], [2, 0, 0]])
        # The punctuation goes before the function splits.
        whole = layers.TextVectorization(split=lambda texts: tf.strings.split(texts, "-"), vocabulary=["ab"])
        self.assertEqual(whole("A-b").numpy().tolist(), [2])
        self.assertEqual(whole.get_config()["standardize"], "lower_and_strip_punctuation")

        model = keras.Sequential([layer, layers.Embedding(6, 2), layers.Flatten(), layers.Dense(1)])
        self.assertEqual(model.predict(np.array(["one two"]), verbose=0).shape, (1, 1))
        with self.assertRaisesRegex(ValueError, "standardize: functions of a program cannot be written"):
            model.save("/tmp/never.keras")
        with self.assertRaisesRegex(ValueError, "words must have letters and no spaces"):
            layers.TextVectorization(split=lambda texts: [["a b"]] * len(texts))(["x"])
        with self.assertRaisesRegex(ValueError, "made 1 lists of words for 2 texts"):
            layers.TextVectorization(split=lambda texts: [["a"]])(["x", "y"])

    def test_wrong_calls(self):
        with self.assertRaisesRegex(TypeError, "ragged"):
            layers.TextVectorization(ragged=True)
        with self.assertRaisesRegex(TypeError, "must be strings"):
            layers.TextVectorization()(keras.Input((1,)))
        with self.assertRaisesRegex(ValueError, "no words"):
            layers.StringLookup().adapt(np.array([], dtype=str))
        with self.assertRaisesRegex(ValueError, "adapt first"):
            layers.StringLookup(output_mode="one_hot")(["a"])
        with self.assertRaisesRegex(ValueError, "colour"):
            layers.StringLookup(colour="red")
        with self.assertRaises(FileNotFoundError):
            layers.StringLookup(vocabulary="/no/such/words.txt")
        with self.assertRaisesRegex(TypeError, "contains 3 of int"):
            layers.StringLookup(vocabulary=["a"])(np.array(["a", 3], dtype=object))
        with self.assertRaisesRegex(TypeError, "StringLookup"):
            layers.StringLookup(vocabulary=["a"])(np.ones(3))

    def test_a_classifier_of_texts(self):
        rng = np.random.default_rng(0)
        good, bad = ["good", "great", "fine"], ["bad", "awful", "poor"]
        labels = rng.integers(0, 2, 256)
        texts = [" ".join([*rng.choice(["it", "was", "a", "film"], 4), rng.choice(good if label else bad)]) for label in labels]
        dataset = tf.data.Dataset.from_tensor_slices((np.array(texts), labels.astype("float32"))).batch(32)
        vectorize = layers.TextVectorization(output_sequence_length=6)
        vectorize.adapt(dataset.map(lambda text, label: text))
        model = keras.Sequential([
            layers.Embedding(vectorize.vocabulary_size(), 8), layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid"),
        ])
        model.compile(keras.optimizers.Adam(0.05), "binary_crossentropy", metrics=["accuracy"])
        history = model.fit(dataset.map(lambda text, label: (vectorize(text), label)), epochs=6, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.95)


if __name__ == "__main__":
    unittest.main()
