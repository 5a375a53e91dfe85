"""Models from files: their layers are those of the package, which a program calls, freezes and takes apart."""

import os
import pathlib
import tempfile
import unittest

import numpy as np

import wgrad as tf

keras, layers = tf.keras, tf.keras.layers
# Files that Keras has written, with inputs and outputs.
FILES = pathlib.Path(__file__).parents[2] / "tests" / "data" / "keras_files"
X = np.random.default_rng(0).random((16, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


def again(model, **options):
    """The model from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        return keras.models.load_model(path, **options)


def stack():
    model = keras.Sequential([
        keras.Input((4,)), layers.Dense(6, activation="relu", name="a"),
        layers.Dense(3, kernel_regularizer=keras.regularizers.L2(0.1), name="b"), layers.Dense(1, name="c"),
    ], name="stack")
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    return model


class FilesOfKeras(unittest.TestCase):
    def test_they_compute_the_same(self):
        for path in sorted(FILES.glob("*.keras")):
            with self.subTest(path.stem):
                arrays = np.load(path.with_suffix(".npz"))
                inputs = [arrays[key] for key in sorted(arrays.files) if key[0] == "x"]
                # That of the trained one has targets there.
                wanted = [arrays[key] for key in sorted(arrays.files) if key[0] == "y" and key != "y"]
                if not wanted:
                    continue
                model = keras.models.load_model(path, compile=False)
                made = model(inputs if len(inputs) > 1 else inputs[0], training=False)
                for y, want in zip(made if isinstance(made, (list, tuple)) else [made], wanted, strict=True):
                    np.testing.assert_allclose(y.numpy(), want, rtol=2e-5, atol=2e-5)
                # What is written is what was read.
                copy = again(model)
                made = copy(inputs if len(inputs) > 1 else inputs[0], training=False)
                for y, want in zip(made if isinstance(made, (list, tuple)) else [made], wanted, strict=True):
                    np.testing.assert_allclose(y.numpy(), want, rtol=2e-5, atol=2e-5)

    def test_layers_are_those_of_the_package(self):
        model = keras.models.load_model(FILES / "calls.keras")
        attention = model.get_layer("multi_head_attention")
        self.assertIsInstance(attention, layers.MultiHeadAttention)
        self.assertIsInstance(model.get_layer("lstm"), layers.LSTM)
        self.assertIsInstance(model.layers[0], layers.InputLayer)
        self.assertEqual([layer.name for layer in model.layers[:3]], ["a", "b", "multi_head_attention"])
        part = keras.Model(model.inputs, attention.output)
        x = np.ones((2, 5, 4), "float32")
        np.testing.assert_allclose(part([x, x]).numpy(), attention(x, x, use_causal_mask=True).numpy(), atol=1e-6)

    def test_training_goes_on(self):
        arrays = np.load(FILES / "trained.npz")
        model = keras.models.load_model(FILES / "trained.keras")
        self.assertEqual(int(model.optimizer.iterations), 5)
        losses = [model.fit(arrays["x0"], arrays["y"], batch_size=8, shuffle=False, verbose=0).history["loss"][0] for _ in arrays["losses"]]
        np.testing.assert_allclose(losses, arrays["losses"], rtol=1e-5)


class Layers(unittest.TestCase):
    def test_a_stack_is_taken_apart(self):
        model = stack()
        loaded = again(model)
        self.assertEqual((type(loaded), loaded.name), (keras.Sequential, "stack"))
        self.assertEqual([type(layer) for layer in loaded.layers], [layers.Dense] * 3)
        hidden = model.layers[0](X).numpy()
        np.testing.assert_allclose(loaded.layers[0](X).numpy(), hidden, atol=1e-6)
        np.testing.assert_allclose(keras.Model(loaded.inputs, loaded.get_layer("a").output)(X).numpy(), hidden, atol=1e-6)
        head = keras.Sequential(loaded.layers[:-1])
        wanted = model.layers[1](model.layers[0](X)).numpy()
        np.testing.assert_allclose(head.predict(X, verbose=0), wanted, atol=1e-6)
        self.assertEqual(loaded.pop().name, "c")
        np.testing.assert_allclose(loaded.predict(X, verbose=0), wanted, atol=1e-6)
        loaded.add(layers.Dense(1, kernel_initializer="ones"))
        np.testing.assert_allclose(loaded(X).numpy(), wanted.sum(1, keepdims=True), atol=1e-5)

    def test_weights_and_options_of_one_layer(self):
        loaded = again(stack())
        first, second = loaded.layers[:2]
        self.assertEqual((first.units, first.kernel.shape), (6, (4, 6)))
        self.assertIsInstance(second.kernel_regularizer, keras.regularizers.L2)
        self.assertIsInstance(first.kernel_initializer, keras.initializers.GlorotUniform)
        np.testing.assert_allclose(float(second.losses[0]), 0.1 * (second.get_weights()[0] ** 2).sum(), rtol=1e-5)
        first.set_weights([w * 0 for w in first.get_weights()])
        np.testing.assert_array_equal(keras.Model(loaded.inputs, first.output)(X).numpy(), np.zeros((16, 6)))

    def test_layers_are_frozen_one_by_one(self):
        loaded = again(stack())
        loaded.layers[0].trainable = False
        loaded.compile("sgd", "mse")
        before = [w.copy() for w in loaded.get_weights()]
        loaded.fit(X, Y, verbose=0)
        after = loaded.get_weights()
        np.testing.assert_array_equal(after[0], before[0])
        self.assertGreater(np.abs(after[2] - before[2]).max(), 0)
        self.assertEqual([layer.trainable for layer in again(loaded).layers], [False, True, True])

    def test_training_goes_on(self):
        model = stack()
        loaded = again(model)
        losses = [m.fit(X, Y, epochs=3, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
        self.assertEqual(losses[0], losses[1])

    def test_models_in_models(self):
        inputs = keras.Input((4,))
        inner = keras.Model(inputs, layers.Dense(4, name="inside")(inputs), name="inner")
        x = keras.Input((4,))
        model = keras.Model(x, keras.Sequential([layers.Dense(2), layers.BatchNormalization()], name="end")(inner(inner(x))))
        loaded = again(model)
        np.testing.assert_allclose(loaded(X).numpy(), model(X).numpy(), atol=1e-6)
        self.assertEqual([type(layer).__name__ for layer in loaded.layers], ["InputLayer", "Functional", "Sequential"])
        inner = loaded.get_layer("inner")
        np.testing.assert_allclose(inner(X).numpy(), model.get_layer("inner")(X).numpy(), atol=1e-6)
        inner.trainable = False
        self.assertEqual(len(loaded.trainable_weights), 4)

    def test_dicts_stay_dicts(self):
        a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
        model = keras.Model({"b": b, "a": a}, {"sum": layers.Add()([a, b]), "all": [layers.Dense(1)(a)]})
        made = again(model).predict({"a": X, "b": 2 * X}, verbose=0)
        np.testing.assert_allclose(made["sum"], 3 * X, rtol=1e-6)
        self.assertEqual((sorted(made), made["all"][0].shape), (["all", "sum"], (16, 1)))

    def test_masks_and_attention_are_written(self):
        tokens, mask = keras.Input((5,), dtype="int32"), keras.Input((5, 5), dtype="bool")
        vectors = layers.Embedding(9, 4, mask_zero=True)(tokens)
        y = layers.MultiHeadAttention(2, 3)(vectors, vectors, attention_mask=mask)
        model = keras.Model([tokens, mask], layers.GRU(3)(y, mask=layers.Embedding(9, 1)(tokens)[:, :, 0] > -1.0))
        x, allowed = np.array([[1, 2, 3, 0, 0]], "int32"), np.tri(5, dtype=bool)[None]
        wanted = model([x, allowed]).numpy()
        self.assertGreater(np.abs(wanted - model([x, np.ones_like(allowed)]).numpy()).max(), 1e-5)
        with tempfile.TemporaryDirectory() as folder:
            part = keras.Model([tokens, mask], y)
            part.save(os.path.join(folder, "part.keras"))
            loaded = keras.models.load_model(os.path.join(folder, "part.keras"))
        np.testing.assert_allclose(loaded([x, allowed]).numpy(), part([x, allowed]).numpy(), atol=1e-6)


class Programs(unittest.TestCase):
    def test_models_of_a_class_of_the_program(self):
        @keras.saving.register_keras_serializable("Own")
        class Net(keras.Model):
            def __init__(self, units=3, **options):
                super().__init__(**options)
                self.units, self.first, self.middle = units, layers.Dense(units, activation="tanh"), [layers.Dense(2), layers.Dense(2)]
                self.out = layers.Dense(1)

            def call(self, x):
                x = self.first(x)
                for layer in self.middle:
                    x = layer(x)
                return self.out(x)

            def get_config(self):
                return super().get_config() | {"units": self.units}

        model = Net(5)
        model.compile(keras.optimizers.Adam(0.01), "mse")
        model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
        loaded = again(model)
        self.assertEqual((type(loaded), loaded.units), (Net, 5))
        np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
        losses = [m.fit(X, Y, epochs=2, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
        self.assertEqual(losses[0], losses[1])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.weights.h5")
            model.save_weights(path)
            loaded.load_weights(path)
        np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))

    def test_layers_that_were_called_with_options(self):
        @keras.saving.register_keras_serializable("Own")
        class Mix(layers.Layer):
            def __init__(self, units, **options):
                super().__init__(**options)
                self.units, self.dense = units, layers.Dense(units)

            def call(self, a, b=None, scale=1.0):
                return self.dense(a) + b * scale

            def get_config(self):
                return super().get_config() | {"units": self.units}

        a, b = keras.Input((4,)), keras.Input((3,))
        model = keras.Model([a, b], Mix(3, name="mix")(a, b, scale=0.5))
        loaded = again(model)
        self.assertIsInstance(loaded.get_layer("mix"), Mix)
        np.testing.assert_allclose(loaded([X, X[:, :3]]).numpy(), model([X, X[:, :3]]).numpy(), atol=1e-6)

    def test_losses_of_the_program(self):
        @keras.saving.register_keras_serializable("Own")
        def distance(y_true, y_pred):
            return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)

        model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
        model.compile("sgd", distance)
        self.assertEqual(again(model).evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0))

    def test_functions_in_lambda_layers(self):
        @keras.saving.register_keras_serializable("Own")
        def times(x, factor=2.0):
            return x * factor

        model = keras.Sequential([keras.Input((4,)), layers.Lambda(times, arguments={"factor": 3.0})])
        np.testing.assert_allclose(again(model)(X).numpy(), 3 * X, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "Lambda: a lambda has no name"):
            keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x)]).to_json()
        config = {"name": "code", "function": {"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}}
        with self.assertRaisesRegex(TypeError, "has a lambda, whose code is not run"):
            keras.layers.deserialize({"module": "keras.layers", "class_name": "Lambda", "config": config})

    def test_unknown_classes_are_named(self):
        class Unknown(layers.Layer):
            def call(self, x):
                return x

        model = keras.Sequential([keras.Input((4,)), Unknown(name="mine")])
        with self.assertRaisesRegex(TypeError, "the layer 'mine'.*'Unknown'.*custom_objects"):
            again(model)
        np.testing.assert_array_equal(again(model, custom_objects={"Unknown": Unknown})(X).numpy(), X)


class Optimizers(unittest.TestCase):
    def tearDown(self):
        keras.mixed_precision.set_global_policy("float32")

    def test_the_scale_of_the_loss_goes_on(self):
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(1, dtype="float32")])
        model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), initial_scale=8.0, dynamic_growth_steps=2), "mse")
        model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        self.assertEqual(float(model.optimizer.dynamic_scale), 32.0)
        loaded = again(model)
        self.assertEqual((float(loaded.optimizer.dynamic_scale), int(loaded.optimizer.iterations)), (32.0, 4))
        losses = [m.fit(X, Y, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
        self.assertEqual(losses[0], losses[1])


class Clones(unittest.TestCase):
    def test_layers_of_a_clone_may_be_others(self):
        model = stack()
        made = keras.models.clone_model(model, clone_function=lambda layer: layers.Dense(layer.units, name=f"{layer.name}_2"))
        self.assertEqual([layer.name for layer in made.layers], ["a_2", "b_2", "c_2"])
        inputs = keras.Input((4,))
        graph = keras.Model(inputs, layers.Dense(2, name="d")(inputs))
        copy = keras.models.clone_model(graph, input_tensors=keras.Input((4,), name="other"))
        self.assertEqual(copy.layers[0].name, "other")
        copy.set_weights(graph.get_weights())
        np.testing.assert_allclose(copy(X).numpy(), graph(X).numpy(), atol=1e-6)

    def test_layers_of_a_config_may_stand_in_any_order(self):
        model = keras.Sequential([keras.Input((2,)), *(layers.Activation("relu", name=f"a{at}") for at in range(300))])
        x = first = keras.Input((2,), name="x")
        for layer in model.layers:
            x = layer(x)
        config = keras.Model(first, x).get_config()
        config["layers"][1:] = config["layers"][:0:-1]
        again = keras.Model.from_config(config)
        self.assertEqual(again(np.array([[-1.0, 2.0]], "float32")).numpy().tolist(), [[0, 2]])
        for described in config["layers"]:
            if described["config"]["name"] == "a7":
                described["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = "a9"
        with self.assertRaisesRegex(ValueError, "never computed: the layers form a cycle"):
            keras.Model.from_config(config)


if __name__ == "__main__":
    unittest.main()
