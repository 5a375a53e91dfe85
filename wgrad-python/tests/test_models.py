"""Models in the ways that programs make, train, inspect and save them."""

import json
import os
import tempfile
import unittest
import zipfile

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

X = np.random.default_rng(0).random((64, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


class Models(unittest.TestCase):
    def test_variables_know_their_names(self):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(1, name="last")])
        self.assertEqual([w.path for w in model.weights], ["dense/kernel", "dense/bias", "last/kernel", "last/bias"])
        self.assertEqual(model.weights[0].name, "kernel")
        self.assertEqual(tf.Variable(1.0, name="a").name, "a")
        np.testing.assert_array_equal(model.layers[1].bias.numpy(), [0.0])

    def test_a_subclass_is_built_by_shapes(self):
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.hidden, self.last = layers.Dense(2), layers.Dense(1)

            def call(self, x, training=False):
                return self.last(self.hidden(x))

        model = Net()
        model.build((None, 4))
        self.assertEqual(model.count_params(), 13)
        lines = []
        model.summary(print_fn=lines.append)
        self.assertIn("10", lines[0])

    def test_a_subclass_with_dicts(self):
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.p, self.q = layers.Dense(1), layers.Dense(2)

            def call(self, inputs):
                z = inputs["u"] + inputs["v"]
                return {"p": self.p(z), "q": self.q(z)}

        model = Net()
        model.compile("adam", loss={"p": "mse", "q": "mse"}, metrics={"p": ["mae"]}, loss_weights={"p": 2.0})
        x, y = {"u": X, "v": X}, {"p": Y, "q": np.ones((64, 2))}
        history = model.fit(x, y, epochs=2, verbose=0).history
        self.assertEqual(sorted(history), ["loss", "p_loss", "p_mae", "q_loss"])
        self.assertAlmostEqual(history["loss"][-1], 2 * history["p_loss"][-1] + history["q_loss"][-1], places=4)
        predictions = model.predict(x, verbose=0)
        self.assertEqual({key: value.shape for key, value in predictions.items()}, {"p": (64, 1), "q": (64, 2)})
        results = model.evaluate(x, y, verbose=0, return_dict=True)
        self.assertAlmostEqual(results["p_mae"], float(np.abs(predictions["p"] - Y).mean()), places=4)

    def test_a_training_loop_by_hand(self):
        model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(1)])
        optimizer, loss_fn, metric = keras.optimizers.Adam(0.02), keras.losses.MeanSquaredError(), keras.metrics.MeanSquaredError()
        model(X[:1])

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                y_pred = model(x, training=True)
                loss = loss_fn(y, y_pred)
            optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
            metric.update_state(y, y_pred)
            return loss

        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(64, seed=1).batch(16)
        seen = []
        for _ in range(5):
            for x, y in dataset:
                step(x, y)
            seen.append(float(metric.result()))
            metric.reset_state()
        self.assertLess(seen[-1], 0.5 * seen[0])
        self.assertEqual(step.experimental_get_tracing_count(), 1)

    def test_generators_without_an_end(self):
        def batches():
            while True:
                yield X[:8], Y[:8]

        model = keras.Sequential([layers.Dense(1)])
        model.compile("adam", "mse")
        history = model.fit(
            batches(), steps_per_epoch=3, epochs=2, validation_data=batches(), validation_steps=2, verbose=0
        ).history
        self.assertEqual([len(history[key]) for key in ("loss", "val_loss")], [2, 2])

    def test_a_loaded_model_is_compiled_and_has_layers(self):
        inputs = keras.Input((4,))
        hidden = layers.Dense(3, activation="tanh", name="hidden")(inputs)
        model = keras.Model(inputs, layers.Dense(1)(layers.concatenate([hidden, inputs])), name="mine")
        rate = keras.optimizers.schedules.ExponentialDecay(0.01, 100, 0.9)
        model.compile(keras.optimizers.Adam(rate), keras.losses.Huber(0.5), metrics=["mae", keras.metrics.MeanSquaredError(name="m")])
        model.fit(X, Y, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            again = keras.models.load_model(path)
            plain = keras.models.load_model(path, compile=False)
            model.save_weights(os.path.join(folder, "model.weights.h5"))
            plain.load_weights(os.path.join(folder, "model.weights.h5"))
        self.assertEqual(again.name, "mine")
        self.assertEqual(again.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0))
        again.fit(X, Y, verbose=0)
        kernel = again.get_layer("hidden").kernel
        self.assertEqual(kernel.shape, (4, 3))
        self.assertEqual(again.get_layer("hidden").get_config()["activation"], "tanh")
        again.get_layer("hidden").trainable = False
        self.assertEqual((len(again.weights), len(again.trainable_weights)), (4, 2))
        with self.assertRaisesRegex(RuntimeError, "compile"):
            plain.evaluate(X, Y, verbose=0)
        # The program's own objects are no settings of a file.
        model.compile("adam", lambda y_true, y_pred: tf.reduce_mean(y_true - y_pred))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            with self.assertRaises(RuntimeError):
                keras.models.load_model(path).evaluate(X, Y, verbose=0)

    def test_training_goes_on_from_a_file(self):
        schedules = keras.optimizers.schedules
        for make in (
            lambda: "adam", lambda: keras.optimizers.SGD(0.05, momentum=0.9), lambda: keras.optimizers.RMSprop(schedules.ExponentialDecay(0.05, 2, 0.5)),
        ):
            inputs = keras.Input((4,))
            model = keras.Model(inputs, layers.Dense(1)(layers.Dense(3, activation="tanh")(inputs)))
            model.compile(make(), "mse", metrics=["mae"])
            model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.keras")
                model.save(path)
                again = keras.models.load_model(path)
                with self.assertRaises(FileExistsError):
                    model.save(path, overwrite=False)
                with zipfile.ZipFile(path) as file:
                    described = json.loads(file.read("config.json"))["compile_config"]["optimizer"]
            self.assertEqual(described["module"], "keras.optimizers")
            self.assertGreater(again.optimizer.iterations, 0)
            self.assertEqual(again.optimizer.iterations, model.optimizer.iterations)
            losses = [m.fit(X, Y, epochs=3, shuffle=False, verbose=0).history["loss"] for m in (model, again)]
            self.assertEqual(losses[0], losses[1])

    def test_a_model_with_own_steps_goes_on_from_a_file(self):
        class Own(keras.Model):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y, y_pred=self(x, training=True))
                self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
                return {"loss": loss}

        inputs = keras.Input((4,))
        model = Own(inputs, layers.Dense(1)(inputs))
        model.compile(keras.optimizers.Adam(0.01), "mse")
        model.fit(X, Y, epochs=2, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            again = keras.models.load_model(path)
        self.assertEqual(again.optimizer.iterations, model.optimizer.iterations)

    def test_attention_and_states_in_json(self):
        inputs = keras.Input((5, 4))
        attended = layers.MultiHeadAttention(2, 3)(inputs, inputs)
        output, state, _ = layers.LSTM(3, return_state=True)(attended)
        model = keras.Model(inputs, [output, state])
        again = keras.models.model_from_json(model.to_json())
        again.set_weights(model.get_weights())
        x = np.random.default_rng(1).random((2, 5, 4)).astype("float32")
        for wanted, made in zip(model(x), again(x)):
            np.testing.assert_allclose(made.numpy(), wanted.numpy(), atol=1e-6)

    def test_recurrent_layers_return_what_keras_returns(self):
        x = np.random.default_rng(2).random((2, 5, 4)).astype("float32")
        shapes = lambda results: [tuple(y.shape) for y in results]
        self.assertEqual(
            shapes(layers.RNN(layers.LSTMCell(3), return_sequences=True, return_state=True)(x)), [(2, 5, 3), (2, 3), (2, 3)]
        )
        self.assertEqual(shapes(layers.Bidirectional(layers.GRU(3, return_state=True))(x)), [(2, 6), (2, 3), (2, 3)])
        self.assertEqual(shapes(layers.Bidirectional(layers.GRU(3), merge_mode=None)(x)), [(2, 3), (2, 3)])
        lstm = layers.LSTM(3, return_sequences=True, return_state=True)
        output, h, c = lstm(x)
        np.testing.assert_array_equal(output.numpy()[:, -1], h.numpy())
        # Two halves with the state between them are the whole.
        _, h1, c1 = lstm(x[:, :2])
        second, h2, _ = lstm(x[:, 2:], initial_state=[h1, c1])
        np.testing.assert_allclose(second.numpy(), output.numpy()[:, 2:], atol=1e-6)
        np.testing.assert_allclose(h2.numpy(), h.numpy(), atol=1e-6)

    def test_merging_layers_of_a_program_in_files(self):
        @keras.saving.register_keras_serializable(package="Mine")
        class Weighted(layers.Layer):
            def __init__(self, weight=0.5, **options):
                super().__init__(**options)
                self.weight = weight

            def call(self, x):
                return x * self.weight

            def get_config(self):
                return super().get_config() | {"weight": self.weight}

        inputs = keras.Input((4,))
        model = keras.Model(inputs, layers.Dense(2)(Weighted(3.0)(inputs)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            again = keras.models.load_model(path)
        np.testing.assert_allclose(again(X).numpy(), model(X).numpy(), atol=1e-6)
        # The layers of a loaded model have their options.
        scaled, dense = again.layers[-2:]
        self.assertEqual((scaled.weight, dense.units, dense.kernel.shape), (3.0, 2, (4, 2)))
        self.assertEqual((type(scaled), type(dense)), (Weighted, layers.Dense))
        with self.assertRaisesRegex(AttributeError, "Dense has no attribute 'filters'"):
            dense.filters
        with self.assertRaisesRegex(ValueError, "no config"):
            keras.Model(inputs, tf.tanh(inputs)).to_json()

    def test_arguments_of_layers(self):
        class Shift(layers.Layer):
            def call(self, x, steps, scale=1.0, training=False):
                # A number stays a number.
                assert isinstance(steps, int) and isinstance(scale, float)
                return tf.roll(x, steps, axis=-1) * scale

        self.assertEqual(Shift()([[1.0, 2.0, 3.0]], 1, scale=2.0).numpy().tolist(), [[6.0, 2.0, 4.0]])
        self.assertEqual(Shift()(np.array([[1.0, 2.0]]), steps=1).numpy().tolist(), [[2.0, 1.0]])
        inputs = keras.Input((3,))
        model = keras.Model(inputs, Shift()(inputs, 2, scale=3.0))
        self.assertEqual(model(np.array([[1.0, 2.0, 3.0]])).numpy().tolist(), [[6.0, 9.0, 3.0]])
        self.assertEqual(layers.Dense(1, kernel_initializer="ones")([[1.0, 2.0]]).numpy().tolist(), [[3.0]])

    def test_inputs_become_what_the_symbols_say(self):
        user, movie = keras.Input((1,), dtype="int64", name="user"), keras.Input((1,), dtype="int64", name="movie")
        vectors = [layers.Flatten()(layers.Embedding(8, 4)(x)) for x in (user, movie)]
        model = keras.Model([user, movie], layers.Dot(axes=1)(vectors))
        model.compile("adam", "mse")
        numbers = np.arange(8)
        # Without the last axis, as floats, and as tensors.
        model.fit({"user": numbers, "movie": numbers}, np.ones(8), verbose=0)
        first = model.predict([numbers, numbers.astype("float32")[:, None]], verbose=0)
        second = model([tf.constant(numbers), tf.constant(numbers[:, None])]).numpy()
        np.testing.assert_allclose(first, second, atol=1e-6)
        embedding = layers.Embedding(5, 2, mask_zero=True)
        self.assertEqual(embedding.compute_mask(np.array([[1, 0]])).numpy().tolist(), [[True, False]])

    def test_initializers_draw_by_their_seeds(self):
        first, second = (keras.initializers.GlorotUniform(seed=1)((3, 2)).numpy() for _ in range(2))
        np.testing.assert_array_equal(first, second)
        wide = keras.initializers.HeNormal(seed=2)((200, 50)).numpy()
        self.assertAlmostEqual(float(wide.std()), (2 / 200) ** 0.5, places=2)

    def test_a_norm_is_what_its_formula_says(self):
        x = np.array([[3.0, 4.0], [6.0, 8.0]], "float32")
        self.assertEqual(keras.ops.norm(x, axis=1).numpy().tolist(), [5.0, 10.0])
        self.assertEqual(keras.ops.take_along_axis(x, np.array([[1], [0]]), axis=1).numpy().tolist(), [[4.0], [6.0]])
        self.assertEqual(keras.ops.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape, (3, 4, 2))
        self.assertEqual(keras.ops.split(np.arange(6.0), [2, 3])[2].numpy().tolist(), [3.0, 4.0, 5.0])
        self.assertEqual(keras.utils.pad_sequences([[1, 2, 3], [4]], maxlen=2).tolist(), [[2, 3], [0, 4]])
        generator = tf.random.Generator.from_seed(3)
        self.assertNotEqual(generator.normal([2]).numpy().tolist(), generator.normal([2]).numpy().tolist())

    def test_layers_of_a_stack_have_outputs_before_its_inputs_are_read(self):
        model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3, name="seen", kernel_initializer="ones"), keras.layers.Flatten(), keras.layers.Dense(2)])
        seen = model.get_layer("seen").output
        self.assertEqual(tuple(model.layers[-1].input.shape), (None, 144))
        both = keras.Model(model.inputs, [seen, model.output])
        found, y = both(np.ones((2, 8, 8, 3), "float32"))
        self.assertTrue((found.numpy() == 27).all())
        self.assertEqual(tuple(y.shape), (2, 2))
        model.build()
        with self.assertRaisesRegex(AttributeError, "begin it with keras.Input"):
            keras.Sequential([keras.layers.Dense(1)]).build()


if __name__ == "__main__":
    unittest.main()
