"""Constraints and regularizers, models that begin with strings, backups, strategies: what programs of Keras use besides layers."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

WORDS = np.array(["a good film", "a bad film", "good good", "bad bad"])
LABELS = np.array([1, 0, 1, 0], "float32")


class Limited(layers.Layer):
    def __init__(self, constraint, regularizer=None):
        super().__init__()
        self.constraint, self.regularizer = constraint, regularizer

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], 2), initializer="ones", constraint=self.constraint, regularizer=self.regularizer)

    def call(self, x):
        return x @ self.w


class AtMost(keras.constraints.Constraint):
    def __call__(self, w):
        return tf.clip_by_value(w, -0.1, 0.1)


class Constraints(unittest.TestCase):
    def test_values(self):
        w = np.array([[3.0, 0.1], [4.0, -0.2]], "float32")
        c, r = keras.constraints, keras.regularizers
        near = lambda made, wanted: np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4)
        lengths = np.sqrt((w**2).sum(0))
        near(c.MaxNorm(1.0)(w), w * np.minimum(lengths, 1) / lengths)
        near(c.UnitNorm(axis=0)(w), w / lengths)
        near(c.MinMaxNorm(0.5, 1.0, 0.5, 0)(w), w * (0.5 * np.clip(lengths, 0.5, 1) + 0.5 * lengths) / lengths)
        near(c.get("non_neg")(w), np.maximum(w, 0))
        near(r.L1L2(0.1, 0.2)(w), 0.1 * np.abs(w).sum() + 0.2 * (w**2).sum())
        near(r.get("l1")(w), 0.01 * np.abs(w).sum())
        self.assertIsNone(c.get(None))
        with self.assertRaisesRegex(ValueError, "no constraint 'other'"):
            c.get("other")

    def fitted(self, layer):
        x = np.arange(12, dtype="float32").reshape(4, 3) / 10
        model = keras.Sequential([keras.Input((3,)), layer])
        model.compile(keras.optimizers.SGD(0.5), "mse")
        model.fit(x, -np.ones((4, 2), "float32"), epochs=3, batch_size=4, verbose=0)
        return model.get_weights()[0], model

    def test_training_keeps_them(self):
        free = self.fitted(Limited(None))[0]
        self.assertLess(free.min(), 0)
        for made in ("non_neg", keras.constraints.NonNeg(), lambda w: tf.nn.relu(w)):
            self.assertEqual(self.fitted(Limited(made))[0].min(), 0)
        lengths = np.sqrt((self.fitted(Limited(keras.constraints.MaxNorm(0.3)))[0] ** 2).sum(0))
        np.testing.assert_allclose(lengths, 0.3, rtol=1e-4)
        np.testing.assert_allclose(np.abs(self.fitted(Limited(AtMost()))[0]).max(), 0.1)
        self.assertEqual(self.fitted(layers.Dense(2, kernel_constraint="non_neg"))[0].min(), 0)
        _, model = self.fitted(Limited("non_neg", "l2"))
        np.testing.assert_allclose(model.losses[0].numpy(), 0.01 * (model.get_weights()[0] ** 2).sum(), rtol=1e-5)
        with self.assertRaises(ZeroDivisionError):
            self.fitted(Limited(lambda w: w * (1 / 0)))
        with self.assertRaises(TypeError):
            self.fitted(Limited(3))


class OwnFunctions(unittest.TestCase):
    """Initializers and regularizers of a program, and constants that are arrays, in layers of Keras."""

    table = np.arange(12).reshape(4, 3).astype("float32")

    def test_embeddings_begin_with_known_vectors(self):
        layer = layers.Embedding(4, 3, embeddings_initializer=keras.initializers.Constant(self.table), trainable=False)
        np.testing.assert_array_equal(layer(np.array([3, 0])), self.table[[3, 0]])
        self.assertEqual(layer.trainable_weights, [])
        model = keras.Sequential([layers.Embedding(4, 3, embeddings_initializer=keras.initializers.Constant(self.table)), layers.Flatten()])
        np.testing.assert_array_equal(model.predict(np.array([[1, 2]]), verbose=0), [self.table[1:3].ravel()])
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/m.keras")
            np.testing.assert_array_equal(keras.models.load_model(f"{folder}/m.keras").predict(np.array([[1, 2]]), verbose=0), [self.table[1:3].ravel()])
        with self.assertRaisesRegex(ValueError, r"the value is \[4, 3\] for a weight of \[5, 3\]"):
            layers.Embedding(5, 3, embeddings_initializer=keras.initializers.Constant(self.table))

    def test_initializers_of_a_program(self):
        ramp = lambda shape, dtype=None: tf.reshape(tf.range(float(np.prod(shape))), shape)
        bias = keras.initializers.Constant([1.0, 2.0])
        x = np.eye(3, dtype="float32")
        expected = np.arange(6).reshape(3, 2) + [1, 2]
        made = lambda: layers.Dense(2, kernel_initializer=ramp, bias_initializer=bias)
        np.testing.assert_array_equal(made()(x), expected)
        symbol = keras.Input((3,))
        np.testing.assert_array_equal(keras.Model(symbol, made()(symbol))(x), expected)
        np.testing.assert_array_equal(keras.Sequential([keras.Input((3,)), made()]).predict(x, verbose=0), expected)
        np.testing.assert_array_equal(keras.Sequential([made()]).predict(x, verbose=0), expected)
        self.assertEqual(made().get_config()["bias_initializer"]["config"]["value"], [1.0, 2.0])
        lstm = layers.LSTM(2, recurrent_initializer=ramp)
        lstm(np.ones((1, 2, 3), "float32"))
        np.testing.assert_array_equal(lstm.get_weights()[1], np.arange(16).reshape(2, 8))

    def test_regularizers_of_a_program(self):
        class Half(keras.regularizers.Regularizer):
            def __call__(self, x):
                return 0.5 * tf.reduce_sum(x)

        x = np.ones((4, 3), "float32")
        layer = layers.Dense(2, kernel_initializer="ones", kernel_regularizer=lambda w: tf.reduce_sum(w) * 0.1, activity_regularizer=Half())
        layer(x)
        np.testing.assert_allclose(sorted(float(loss) for loss in layer.losses), [0.6, 3.0], rtol=1e-6)
        symbol = keras.Input((3,))
        one = layers.Dense(2, kernel_initializer="ones", kernel_regularizer=lambda w: tf.reduce_sum(w) * 0.1, activity_regularizer=Half())
        model = keras.Model(symbol, one(symbol))
        model.compile(keras.optimizers.SGD(0.1), "mse")
        # The mean squared error is 9.
        self.assertAlmostEqual(model.evaluate(x, np.zeros((4, 2), "float32"), verbose=0), 12.6, 4)
        model.fit(x, np.full((4, 2), 3.0), epochs=1, verbose=0)
        # A weight's gradient: 0.1 of its own penalty, and 0.5 of the outputs'.
        np.testing.assert_allclose(one.kernel, np.full((3, 2), 1 - 0.1 * 0.6), rtol=1e-5)

    def test_an_initializer_needs_its_variable(self):
        with self.assertRaisesRegex(ValueError, "the layer has no variable 'nothing'"):
            layer = layers.Dense(2, kernel_initializer="ones")
            layer._own.initializers = {"nothing": lambda shape, dtype=None: tf.zeros(shape)}
            layer(np.ones((1, 2), "float32"))


class Checkpoints(unittest.TestCase):
    def test_a_folder_is_made_and_batches_are_counted(self):
        model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
        model.compile("sgd", "mse")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a", "b")
            callback = keras.callbacks.ModelCheckpoint(path / "{epoch}-{batch}.weights.h5", save_weights_only=True, save_freq=3)
            model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), batch_size=2, epochs=2, verbose=0, callbacks=[callback])
            self.assertEqual(sorted(file.name for file in path.iterdir()), ["1-3.weights.h5", "2-2.weights.h5"])
        with self.assertRaisesRegex(ValueError, "save_freq is 0"):
            keras.callbacks.ModelCheckpoint("x.keras", save_freq=0)

    def test_truth_values_are_floats_for_a_stack(self):
        model = keras.Sequential([keras.Input((3, 2)), layers.LSTM(2)])
        x = np.array([[[True, False], [False, True], [True, True]]])
        np.testing.assert_array_equal(model.predict(x, verbose=0), model.predict(x.astype("float32"), verbose=0))

    def test_states_of_a_batch(self):
        self.assertEqual([state.shape for state in layers.LSTM(3).get_initial_state(2)], [(2, 3), (2, 3)])
        gru, x = layers.GRU(3, return_state=True), np.ones((2, 4, 5), "float32")
        np.testing.assert_array_equal(gru(x, initial_state=gru.get_initial_state(tf.shape(x)[0]))[0], gru(x)[0])


class TextModels(unittest.TestCase):
    def made(self, *first):
        vectorize = layers.TextVectorization(output_sequence_length=4)
        vectorize.adapt(WORDS)
        model = keras.Sequential([
            *first, vectorize, layers.Embedding(vectorize.vocabulary_size(), 8), layers.GlobalAveragePooling1D(),
            layers.Dense(1, activation="sigmoid"),
        ])
        model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=["accuracy"])
        return model

    def test_fit_on_strings(self):
        for first in ([], [keras.Input((), dtype="string")], [keras.Input((1,), dtype=tf.string)]):
            model = self.made(*first)
            history = model.fit(WORDS, LABELS, epochs=30, verbose=0)
            self.assertLess(history.history["loss"][-1], 0.05)
            self.assertEqual(model.evaluate(WORDS, LABELS, verbose=0)[1], 1.0)
            y = model.predict(WORDS, verbose=0)
            np.testing.assert_array_equal(y[:, 0] > 0.5, LABELS == 1)
            np.testing.assert_allclose(model(WORDS).numpy(), y, atol=1e-6)
            np.testing.assert_allclose(model.predict(WORDS[:, None], verbose=0), y, atol=1e-6)
            np.testing.assert_allclose(model.predict(list(WORDS[:1]), verbose=0), y[:1], atol=1e-6)
        self.assertEqual([layer.name for layer in model.layers], ["text_vectorization", "embedding", "global_average_pooling1d", "dense"])

    def test_datasets_of_strings(self):
        model = self.made()
        data = tf.data.Dataset.from_tensor_slices((WORDS, LABELS)).batch(2)
        model.fit(data, epochs=20, validation_data=data, verbose=0)
        self.assertEqual(model.evaluate(data, verbose=0)[1], 1.0)

    def test_files_have_the_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.keras"
            model = self.made()
            model.fit(WORDS, LABELS, epochs=3, verbose=0)
            model.save(path)
            loaded = keras.models.load_model(path)
            np.testing.assert_allclose(loaded.predict(WORDS, verbose=0), model.predict(WORDS, verbose=0), atol=1e-6)
            loaded.fit(WORDS, LABELS, epochs=1, verbose=0)
            loaded.save(path)
            again = keras.models.load_model(path)
            np.testing.assert_allclose(again.predict(WORDS, verbose=0), loaded.predict(WORDS, verbose=0), atol=1e-6)
            self.assertEqual(sorted(entry.name for entry in pathlib.Path(folder).iterdir()), ["m.keras"])
        twin = keras.models.model_from_json(model.to_json())
        twin.set_weights(model.get_weights())
        np.testing.assert_allclose(twin.predict(WORDS, verbose=0), model.predict(WORDS, verbose=0), atol=1e-6)

    def test_other_layers_on_the_host(self):
        model = keras.Sequential([layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot"), layers.Dense(1, kernel_initializer="ones")])
        np.testing.assert_allclose(model.predict(np.array([["a"], ["z"]]), verbose=0), [[1], [1]])
        model = keras.Sequential([layers.IntegerLookup(vocabulary=[10, 20]), layers.Embedding(4, 2, embeddings_initializer="ones")])
        self.assertEqual(model.predict(np.array([[10], [30]]), verbose=0).shape, (2, 1, 2))

    def test_errors(self):
        model = self.made()
        with self.assertRaisesRegex(TypeError, "input is strings"):
            model.predict(np.zeros((2, 4)), verbose=0)
        with self.assertRaisesRegex(TypeError, "before all layers"):
            keras.Sequential([layers.Dense(2), layers.StringLookup(vocabulary=["a"])])
        with self.assertRaisesRegex(ValueError, "never called"):
            model.export("never")

    def test_exported_models_take_strings(self):
        model = self.made()
        wanted = model.predict(WORDS, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder)
            serve = tf.saved_model.load(folder).signatures["serving_default"]
            np.testing.assert_allclose(serve(WORDS[:, None])["output_0"].numpy(), wanted, atol=1e-6)


class SymbolsOfStrings(unittest.TestCase):
    COLORS = np.array(["red", "green", "blue", "red"])
    KINDS = np.array([3, 5, 3, 9])
    SIZES = np.array([0.1, 0.2, 0.3, 0.4], "float32")

    def made(self):
        text, color = (keras.Input((1,), dtype="string", name=name) for name in ("text", "color"))
        kind, size = keras.Input((1,), dtype="int32", name="kind"), keras.Input((1,), name="size")
        vectorize = layers.TextVectorization(output_sequence_length=4)
        vectorize.adapt(WORDS)
        embedded = layers.GlobalAveragePooling1D()(layers.Embedding(vectorize.vocabulary_size(), 8)(vectorize(text)))
        rows = layers.StringLookup(vocabulary=["red", "green"], output_mode="multi_hot")(color)
        crossed = layers.Flatten()(layers.Embedding(5, 2)(layers.HashedCrossing(5)((color, kind))))
        hashed = layers.Hashing(4, output_mode="one_hot")(kind)
        y = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([embedded, rows, crossed, hashed, size]))
        model = keras.Model([text, color, kind, size], y)
        model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=["accuracy"])
        return model, [WORDS[:4], self.COLORS, self.KINDS, self.SIZES]

    def test_fit_on_several_inputs(self):
        model, x = self.made()
        self.assertEqual(model.input_names, ["text", "color", "kind", "size"])
        self.assertEqual([layer.name for layer in model.layers[4:8]], ["text_vectorization", "string_lookup", "hashed_crossing", "hashing"])
        y = LABELS[:4]
        self.assertLess(model.fit(x, y, epochs=30, verbose=0).history["loss"][-1], 0.05)
        self.assertEqual(model.evaluate(x, y, verbose=0)[1], 1.0)
        named = dict(zip(model.input_names, x))
        data = tf.data.Dataset.from_tensor_slices((named, y)).batch(2)
        model.fit(data, epochs=1, verbose=0)
        predicted = model.predict(x, verbose=0)
        np.testing.assert_allclose(model.predict(named, verbose=0), predicted, atol=1e-6)
        np.testing.assert_allclose(model(x).numpy(), predicted, atol=1e-6)
        np.testing.assert_allclose(model.predict([value[:, None] for value in x], verbose=0), predicted, atol=1e-6)

    def test_files(self):
        model, x = self.made()
        model.fit(x, LABELS[:4], epochs=1, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.keras"
            model.save(path)
            loaded = keras.models.load_model(path)
        self.assertEqual(loaded.input_names, model.input_names)
        np.testing.assert_allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)
        loaded.fit(x, LABELS[:4], epochs=1, verbose=0)
        twin = keras.models.clone_model(model)
        twin.set_weights(model.get_weights())
        np.testing.assert_allclose(twin.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)

    def test_shared_and_chained_layers(self):
        first, second = (keras.Input((1,), dtype="string", name=name) for name in ("first", "second"))
        lookup = layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
        y = layers.Subtract()([lookup(first), lookup(second)])
        bins = layers.IntegerLookup(vocabulary=[0, 1, 2], output_mode="one_hot")(layers.Hashing(3)(first))
        model = keras.Model([first, second], [y, layers.Dense(1)(bins)])
        x = [np.array(["a", "z"]), np.array(["b", "z"])]
        difference, _ = model.predict(x, verbose=0)
        np.testing.assert_array_equal(difference, [[0, 1, -1], [0, 0, 0]])
        twin = keras.models.clone_model(model)
        np.testing.assert_array_equal(twin.predict(x, verbose=0)[0], difference)

    def test_steps_of_a_program(self):
        class Own(keras.Model):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(x, training=True) - y[:, None]) ** 2)
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
                return {"loss": loss}

        color = keras.Input((1,), dtype="string")
        rows = layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="one_hot")(color)
        model = Own(color, layers.Dense(1)(rows))
        model.compile(keras.optimizers.Adam(0.1), "mse")
        history = model.fit(self.COLORS, np.array([1.0, 0.0, 0.5, 1.0], "float32"), epochs=60, verbose=0).history["loss"]
        self.assertLess(history[-1], 0.02)

    def test_errors(self):
        model, x = self.made()
        with self.assertRaisesRegex(TypeError, "input is strings; it was called with float32"):
            model.predict([self.SIZES, *x[1:]], verbose=0)
        with self.assertRaisesRegex(ValueError, "4 inputs, text, color, kind, size; it was called with 2"):
            model.predict(x[:2], verbose=0)
        text, size = keras.Input((1,), dtype="string"), keras.Input((1,))
        lookup = layers.StringLookup(vocabulary=["a"], output_mode="one_hot")
        with self.assertRaisesRegex(TypeError, "a result of the layer 'dense"):
            lookup(layers.Dense(2)(size))
        with self.assertRaisesRegex(TypeError, "must be strings"):
            lookup(size)
        with self.assertRaisesRegex(ValueError, "no device computes with strings"):
            layers.Dense(2)(text)
        with self.assertRaisesRegex(TypeError, "no part of another"):
            model([text, text, size, size])
        with self.assertRaisesRegex(TypeError, "an output must be a result of a layer on the device"):
            keras.Model(text, lookup(text))
        with self.assertRaisesRegex(ValueError, "not among its inputs"):
            keras.Model(size, layers.Dense(1)(lookup(text)))

    def test_exported_models_take_strings(self):
        model, x = self.made()
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder)
            serve = tf.saved_model.load(folder).signatures["serving_default"]
            given = {name: column.reshape(-1, 1) for name, column in zip(model.input_names, x)}
            np.testing.assert_allclose(serve(**given)["output_0"].numpy(), model.predict(x, verbose=0), atol=1e-6)

    def test_layers_behind_an_operator_are_found(self):
        x = keras.Input((2,))
        model = keras.Model(x, layers.Dense(1)(layers.Dense(2)(x) + layers.Dense(2)(x)))
        self.assertEqual([layer.name for layer in model.layers[1:]], ["dense", "dense_1", "dense_2"])


class Failing(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 3:
            raise InterruptedError("the power is gone")


class Backups(unittest.TestCase):
    def test_training_goes_on_where_it_ended(self):
        x = np.random.default_rng(1).random((32, 3)).astype("float32")

        def fit(*callbacks):
            keras.utils.set_random_seed(4)
            model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="ones")])
            model.compile("adam", "mse")
            return model.fit(x, x.sum(1), epochs=5, verbose=0, callbacks=list(callbacks)).history["loss"]

        whole = fit()
        with tempfile.TemporaryDirectory() as folder:
            backup = lambda: keras.callbacks.BackupAndRestore(pathlib.Path(folder) / "backup")
            with self.assertRaises(InterruptedError):
                fit(backup(), Failing())
            self.assertTrue((pathlib.Path(folder) / "backup").exists())
            np.testing.assert_allclose(fit(backup()), whole[3:], rtol=1e-6)
            self.assertFalse((pathlib.Path(folder) / "backup").exists())
        with self.assertRaisesRegex(ValueError, "save_freq is 0"):
            keras.callbacks.BackupAndRestore("x", save_freq=0)


class Strategies(unittest.TestCase):
    def test_steps_in_replicas(self):
        # Logical devices are made before a process uses the device.
        program = """
            import numpy as np, wgrad as tf
            device = tf.config.list_physical_devices()[0]
            tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
            strategy = tf.distribute.MirroredStrategy([d.name for d in tf.config.list_logical_devices()])
            assert strategy.num_replicas_in_sync == 2
            with strategy.scope():
                model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
                optimizer = tf.keras.optimizers.SGD(0.1)
            x = np.arange(18, dtype="float32").reshape(6, 3) / 10
            y = x.sum(1, keepdims=True)
            w, b = [v.numpy() for v in model.trainable_variables]
            data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(6))

            def step(x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / 6.0
                optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
                return loss, tf.distribute.get_replica_context().replica_id_in_sync_group

            for batch in data:
                losses, numbers = strategy.run(step, batch)
            assert numbers.values == (0, 1)
            error = x @ w + b - y
            np.testing.assert_allclose(strategy.reduce("SUM", losses).numpy(), (error**2).mean(), rtol=1e-5)
            np.testing.assert_allclose(model.trainable_variables[0].numpy(), w - 0.1 * 2 * x.T @ error / 6, rtol=1e-5)
            parts = batch[0]
            np.testing.assert_array_equal(strategy.gather(parts, 0).numpy(), x)
            np.testing.assert_allclose(strategy.reduce(tf.distribute.ReduceOp.MEAN, parts, axis=0).numpy(), x.mean(0), rtol=1e-6)
            sums = strategy.run(lambda v: tf.distribute.get_replica_context().all_reduce("SUM", v), (parts,))
            np.testing.assert_allclose(sums.values[1].numpy(), x[:3] + x[3:], rtol=1e-6)
            assert strategy.run(lambda a, b=0: a + b, (5,), {"b": 2}) == 7
            for call, error, text in (
                (lambda: 1 / 0, ZeroDivisionError, "division"), (lambda: strategy.run(lambda: 1), ValueError, "called in a replica"),
            ):
                try:
                    strategy.run(call)
                except error as caught:
                    assert text in str(caught), caught
                else:
                    raise AssertionError(call)
            print("as wanted")
        """
        made = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
        self.assertEqual(made.stdout.strip().splitlines()[-1:], ["as wanted"], made.stderr)
        self.assertNotIn("unsendable", made.stderr)

    def test_a_layer_of_several_inputs_gets_the_mask_of_each(self):
        class Decoder(layers.Layer):
            def __init__(self, **options):
                super().__init__(**options)
                self.supports_masking = True

            def call(self, inputs, mask=None):
                (a, b), (of_a, of_b) = inputs, mask
                known = lambda mask: tf.cast(mask, "float32")[:, :, None]
                return a * known(of_a) + tf.reduce_sum(b * known(of_b), axis=1, keepdims=True)

        class Mask(layers.Layer):
            def call(self, x, mask=None):
                return x * 0 + tf.cast(mask, "float32")[:, :, None]

        of_ones = lambda: layers.Embedding(5, 2, mask_zero=True, embeddings_initializer="ones")
        first, second = keras.Input((3,)), keras.Input((4,))
        e, f = of_ones(), of_ones()
        y = Decoder()([e(first), f(second)])
        model = keras.Model([first, second], [y, Mask()(y)])
        x = np.array([[1, 0, 2], [0, 0, 3]]), np.array([[1, 1, 0, 2], [0, 0, 0, 3]])
        # As TensorFlow 2.21 prints them.
        for values, mask in (model(list(x)), model.predict(list(x), verbose=0)):
            self.assertEqual(np.array(values)[:, :, 0].tolist(), [[4, 3, 4], [1, 1, 2]])
            self.assertEqual(np.array(mask)[:, :, 1].tolist(), [[1, 0, 1], [0, 0, 1]])
        alone = Decoder()([e(x[0]), f(x[1])])
        self.assertEqual(alone.numpy()[:, :, 1].tolist(), [[4, 3, 4], [1, 1, 2]])
        self.assertEqual(Mask()(alone).numpy()[:, :, 1].tolist(), [[1, 0, 1], [0, 0, 1]])


if __name__ == "__main__":
    unittest.main()
