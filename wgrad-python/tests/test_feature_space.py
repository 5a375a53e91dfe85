"""`keras.utils.FeatureSpace`, with Keras's results, and the example of keras.io."""

import pathlib
import tempfile
import unittest

import numpy as np
import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

FeatureSpace = keras.utils.FeatureSpace
TABLE = {
    "word": np.array(["x", "y", "x", "z"]), "kind": np.array([3, 5, 3, 9]), "age": np.array([1.0, 2.0, 4.0, 9.0], "float32"),
    "half": np.array([1.0, 2.0, 4.0, 9.0], "float32"), "hash": np.array(["x", "y", "x", "z"]),
}


def space(**options):
    made = FeatureSpace(
        features={
            "word": FeatureSpace.string_categorical(num_oov_indices=1), "kind": FeatureSpace.integer_categorical(),
            "age": FeatureSpace.float_normalized(), "half": FeatureSpace.float_rescaled(0.5, 1.0), "hash": FeatureSpace.string_hashed(4),
        },
        crosses=[FeatureSpace.cross(("word", "kind"), crossing_dim=8)], **options,
    )
    made.adapt(TABLE)
    return made


class Spaces(unittest.TestCase):
    def test_columns(self):
        rows = space()(TABLE).numpy()
        # Features by name, then crosses: age, half, hash (4), kind (4), word (4), the cross (8).
        self.assertEqual(rows.shape, (4, 22))
        age = TABLE["age"]
        np.testing.assert_allclose(rows[:, 0], (age - age.mean()) / age.std(), rtol=1e-5)
        np.testing.assert_allclose(rows[:, 1], age * 0.5 + 1)
        np.testing.assert_array_equal(rows[:, 10:14].argmax(1), [1, 3, 1, 2])
        self.assertEqual(rows[:, 2:6].sum(), 4)
        self.assertEqual(rows[:, 14:].sum(), 4)
        one = {key: value[0] for key, value in TABLE.items()}
        np.testing.assert_allclose(space()({key: np.array(value) for key, value in one.items()}).numpy(), rows[0])

    def test_dicts(self):
        made = space(output_mode="dict")(TABLE)
        self.assertEqual({key: value.shape.as_list() for key, value in made.items()}["word_X_kind"], [4, 8])
        self.assertEqual(sorted(made), ["age", "half", "hash", "kind", "word", "word_X_kind"])

    def test_kinds_by_name_and_layers_of_the_program(self):
        made = FeatureSpace({"age": "float_discretized", "half": "float", "hash": "string_hashed"}, num_discretization_bins=2, hashing_dim=3)
        made.adapt(TABLE)
        self.assertEqual(made(TABLE).shape, (4, 2 + 1 + 3))
        texts = FeatureSpace({"word": FeatureSpace.feature("string", layers.TextVectorization(output_mode="multi_hot"), "float")})
        texts.adapt(TABLE)
        np.testing.assert_array_equal(texts(TABLE).numpy()[:, 0], [0, 0, 0, 0])

    def test_files(self):
        made = space()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "space.keras"
            made.save(path)
            loaded = keras.models.load_model(path)
        np.testing.assert_allclose(loaded(TABLE).numpy(), made(TABLE).numpy())
        self.assertEqual(list(loaded.get_inputs()), sorted(TABLE))
        self.assertEqual(loaded.get_encoded_features().shape, (None, 22))

    def test_the_example_of_keras(self):
        rng = np.random.default_rng(0)
        count = 200
        frame = {
            "sex": rng.integers(0, 2, count), "thal": rng.choice(["fixed", "normal", "reversible"], count),
            "age": rng.integers(20, 80, count).astype("float32"), "trestbps": rng.normal(130, 20, count).astype("float32"),
        }
        labels = ((frame["thal"] == "normal") ^ (frame["age"] > 50)).astype("int32")
        dataset = tf.data.Dataset.from_tensor_slices((frame, labels)).shuffle(count, seed=1).batch(32)
        feature_space = FeatureSpace(
            features={
                "sex": "integer_categorical", "thal": "string_categorical", "age": FeatureSpace.float_discretized(num_bins=10),
                "trestbps": "float_normalized",
            },
            crosses=[("thal", "age")], crossing_dim=32, output_mode="concat",
        )
        feature_space.adapt(dataset.map(lambda x, _: x))
        preprocessed = dataset.map(lambda x, y: (feature_space(x), y)).prefetch(tf.data.AUTOTUNE)

        dict_inputs = feature_space.get_inputs()
        encoded_features = feature_space.get_encoded_features()
        x = layers.Dense(32, activation="relu")(encoded_features)
        x = layers.Dropout(0.2)(x)
        predictions = layers.Dense(1, activation="sigmoid")(x)
        training_model = keras.Model(inputs=encoded_features, outputs=predictions)
        training_model.compile(optimizer=keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"])
        inference_model = keras.Model(inputs=dict_inputs, outputs=predictions)
        history = training_model.fit(preprocessed, epochs=20, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.9)
        sample = {key: value[:5] for key, value in frame.items()}
        predicted = inference_model.predict(sample, verbose=0)
        np.testing.assert_allclose(predicted, training_model.predict(feature_space(sample), verbose=0), atol=1e-6)
        with self.assertRaisesRegex(ValueError, "Save the space, and the model behind it"):
            inference_model.save("/tmp/never.keras")

    def test_errors(self):
        for call, kind, text in (
            (lambda: FeatureSpace({}), ValueError, "there is no feature"),
            (lambda: FeatureSpace({"a": "strings"}), ValueError, "the feature 'a' is 'strings'"),
            (lambda: FeatureSpace({"a": "float"}, crosses=[("a", "b")]), ValueError, "names 'b'"),
            (lambda: FeatureSpace({"a": "float"}, output_mode="rows"), ValueError, "'concat' or 'dict'"),
            (lambda: FeatureSpace({"a": "string_categorical"})({"a": np.array(["x"])}), ValueError, "call adapt first"),
            (lambda: FeatureSpace({"a": "float"})([1.0]), TypeError, "dict"),
            (lambda: FeatureSpace({"a": "float"})({"b": np.ones(2)}), ValueError, "'a'"),
            (lambda: FeatureSpace({"a": "float", "b": "float"})({"a": np.ones(2), "b": np.ones(3)}), ValueError, "rows"),
            (lambda: FeatureSpace({"a": FeatureSpace.feature("float32", layers.Dense(2), "float")}), TypeError, "does not compute on the host"),
            (lambda: FeatureSpace({"a": "float"}).adapt(3), TypeError, "a dict or a dataset"),
        ):
            with self.assertRaisesRegex(kind, text):
                call()


if __name__ == "__main__":
    unittest.main()
