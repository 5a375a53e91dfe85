"""Wrong kinds of arguments, exceptions everywhere, threads, and many turns with constant memory."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import unittest
import weakref

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers, ops


class Own(Exception):
    pass


def model_of(*extra):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3), *extra, layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


class WrongKinds(unittest.TestCase):
    def test_calls_with_wrong_kinds(self):
        symbol = keras.Input((2,))
        lstm = layers.LSTM(2, return_state=True)
        attention = layers.MultiHeadAttention(2, 4)
        calls = [
            (lambda: layers.Dense(3)(None), TypeError, "without a tensor"),
            (lambda: layers.Dense(3)([]), TypeError, "without a tensor"),
            (lambda: layers.Dense(3)("text"), TypeError, "strings"),
            (lambda: layers.Add()(symbol), ValueError, "at least two"),
            (lambda: attention(tf.ones([1, 2, 3])), TypeError, "query and value"),
            (lambda: attention(tf.ones([1, 2, 3]), tf.ones([1, 2, 3]), attention_mask=np.ones((7, 7), bool)), ValueError, "7"),
            (lambda: layers.Attention()([tf.ones([1, 2, 3])]), TypeError, "[query, value]"),
            (lambda: lstm(tf.ones([1, 2, 3]), initial_state=[tf.ones([1, 5]), tf.ones([1, 2])]), ValueError, "initial states"),
            (lambda: layers.Bidirectional(layers.LSTM(2), return_state=True), TypeError, "layer inside"),
            (lambda: layers.Bidirectional(layers.Dense(2)), ValueError, "LSTM"),
            (lambda: layers.NativeLayer(), TypeError, "base of layers"),
            (lambda: layers.Normalization(mean=1.0, variance=2.0).adapt(X), ValueError, "set"),
            (lambda: layers.Layer(colour=3), TypeError, "colour"),
            (lambda: layers.Layer(dtype="bfloat16"), ValueError, "float32"),
            (lambda: layers.Layer()(), TypeError, "without a tensor"),
            (lambda: layers.Layer()(tf.ones([1])), NotImplementedError, "call"),
            (lambda: layers.Layer().add_weight((None, 2)), ValueError, "open size"),
            (lambda: layers.Layer().add_weight((2,), constraint="nonneg"), ValueError, "nonneg"),
            (lambda: layers.Layer().add_weight((2,), regularizer="l7"), ValueError, "l7"),
            (lambda: layers.Layer().output, AttributeError, "symbols"),
            (lambda: layers.Dense(1).output, AttributeError, "was not called on symbols"),
            (lambda: layers.Dense(1).colour, AttributeError, "colour"),
            (lambda: type("Bare", (layers.Layer,), {"__init__": lambda self: None})()(X), RuntimeError, "super().__init__()"),
            (lambda: bool(symbol), TypeError, "no value"),
            (lambda: list(symbol), TypeError, "slices"),
            (lambda: keras.Model(3, 4), TypeError, "symbols"),
            (lambda: keras.Model(symbol, layers.Dense(1)(keras.Input((2,)))), ValueError, "input"),
            (lambda: keras.Input((2,), sparse=True), TypeError, "sparse"),
            (lambda: model_of().fit(None), ValueError, "inputs"),
            (lambda: model_of().fit(X, Y, callbacks=[3]), TypeError, "callback"),
            (lambda: model_of().fit(X, {"nothing": Y}, verbose=0), ValueError, "dict"),
            (lambda: model_of().fit(tf.data.Dataset.from_tensors(X), Y), ValueError, "pairs"),
            (lambda: model_of().predict("text"), (TypeError, ValueError), ""),
            (lambda: model_of().compile("sgd", 3), ValueError, "no loss"),
            (lambda: model_of().compile("sgd", "mse", metrics=[3]), ValueError, "no metric"),
            (lambda: model_of().compile(3), ValueError, "no optimizer"),
            (lambda: model_of().export("/tmp/x", format="onnx"), ValueError, "onnx"),
            (lambda: model_of().get_layer("nothing"), ValueError, "dense"),
            (lambda: model_of().load_weights("/no/such.weights.h5"), FileNotFoundError, "/no/such"),
            (lambda: keras.models.load_model(os.path.dirname(__file__)), ValueError, "folder"),
            (lambda: keras.random.SeedGenerator("one"), ValueError, "one"),
            (lambda: keras.metrics.Metric().update_state(X, Y), NotImplementedError, "update_state"),
            (lambda: keras.losses.Loss()(X, Y), NotImplementedError, "call"),
            (lambda: keras.regularizers.L2("much")(X), ValueError, ""),
            (lambda: keras.utils.pad_sequences([[1]], padding="middle"), ValueError, "middle"),
            (lambda: ops.where(tf.constant([True])), TypeError, "x1"),
            (lambda: ops.matmul(tf.ones([2, 3]), tf.ones([2, 3])), ValueError, "MatMul"),
            (lambda: tf.saved_model.load(3), FileNotFoundError, "3"),
            (lambda: tf.saved_model.save(tf.Module(), "/tmp/never"), ValueError, "input_signature"),
            (lambda: tf.meshgrid([1.0], [2.0], indexing="rows"), ValueError, "it must be 'xy' or 'ij'"),
            (lambda: tf.distribute.MirroredStrategy(["GPU:77"]), (FileNotFoundError, ValueError), "77"),
            (lambda: tf.config.set_logical_device_configuration(tf.PhysicalDevice("/none", "GPU"), []), ValueError, "/none"),
        ]
        for number, (call, kind, text) in enumerate(calls):
            with self.subTest(number=number):
                with self.assertRaises(kind) as caught:
                    call()
                self.assertIn(text, str(caught.exception))


class Exceptions(unittest.TestCase):
    def test_they_come_back_unchanged_from_everywhere(self):
        def broken(*arguments, **options):
            raise Own("broken")

        class Layer(layers.Layer):
            def call(self, x):
                raise Own("layer")

        class Build(layers.Layer):
            def build(self, shape):
                raise Own("build")

            def call(self, x):
                return x

        class Metric(keras.metrics.Metric):
            update_state = broken
            result = broken

        class Loss(keras.losses.Loss):
            call = broken

        class Steps(keras.Model):
            def call(self, x):
                return x

            train_step = broken

        class Sequence(keras.utils.PyDataset):
            def __len__(self):
                return 2

            __getitem__ = broken

        def model_with(loss="mse", metrics=None):
            model = keras.Sequential([layers.Dense(1)])
            model.compile("sgd", loss, metrics=metrics)
            return model

        def steps():
            model = Steps()
            model.compile("sgd")
            return model

        def on(name):
            return type("Callback", (keras.callbacks.Callback,), {name: broken})()

        calls = {
            "layer": lambda: Layer()(X), "symbols": lambda: Layer()(keras.Input((2,))), "build": lambda: Build()(X),
            "loss": lambda: model_with(broken).fit(X, Y, verbose=0), "loss class": lambda: model_with(Loss()).fit(X, Y, verbose=0),
            "metric": lambda: model_with(metrics=[broken]).fit(X, Y, verbose=0),
            "metric class": lambda: model_with(metrics=[Metric()]).fit(X, Y, verbose=0),
            "step": lambda: steps().fit(X, Y, verbose=0), "sequence": lambda: model_with().fit(Sequence(), verbose=0),
            "map": lambda: list(tf.data.Dataset.range(3).map(broken)),
            "prefetch": lambda: list(tf.data.Dataset.range(3).map(broken).prefetch(2)),
            "function": lambda: tf.function(broken)(tf.ones([1])),
            "cond": lambda: tf.cond(tf.constant(True), broken, broken),
            "gradient": lambda: tf.gradients_function(broken)(1.0),
            "custom gradient": lambda: tf.custom_gradient(broken)(1.0),
            "minimize": lambda: keras.optimizers.SGD().minimize(broken, [tf.Variable(1.0)]),
            "initializer": lambda: layers.Layer().add_weight((1,), broken),
            "epoch": lambda: model_with().fit(X, Y, verbose=0, callbacks=[on("on_epoch_end")]),
            "batch": lambda: model_with().fit(X, Y, verbose=0, callbacks=[on("on_train_batch_end")]),
            "test": lambda: model_with().evaluate(X, Y, verbose=0, callbacks=[on("on_test_end")]),
            "predict": lambda: model_with().predict(X, verbose=0, callbacks=[on("on_predict_batch_begin")]),
        }
        for name, call in calls.items():
            with self.subTest(name), self.assertRaises(Own):
                call()
        # The context of calls is what it was: the next model trains.
        model = model_with()
        model.fit(X, Y, verbose=0)
        self.assertEqual(model.losses, [])


class Threads(unittest.TestCase):
    def test_models_train_in_threads(self):
        results, errors = {}, []

        def work(number):
            try:
                x = np.random.default_rng(number).random((64, 3), dtype="float32")
                model = keras.Sequential([layers.Dense(4, activation="relu"), layers.Dense(1)])
                model.compile(keras.optimizers.Adam(0.02), "mse")
                losses = model.fit(x, x.sum(1, keepdims=True), epochs=8, verbose=0).history["loss"]
                results[number] = losses[-1] < losses[0]
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(results, {number: True for number in range(4)})


    def test_steps_of_a_program_in_replicas(self):
        # Replicas wait for each other in steps and metrics, and each runs Python meanwhile.
        program = textwrap.dedent(
            """
            import json
            import numpy as np
            import wgrad as tf
            from wgrad import keras
            from wgrad.keras import layers

            physical = tf.config.list_physical_devices()[0]
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=1024)
            tf.config.set_logical_device_configuration(physical, [limit, limit])
            x = np.random.default_rng(0).random((64, 4)).astype("float32")

            class Own(keras.Model):
                def __init__(self):
                    super().__init__()
                    self.hidden, self.norm, self.last = layers.Dense(4, activation="relu"), layers.BatchNormalization(), layers.Dense(1)
                    self.tracker = keras.metrics.Mean(name="loss")

                def call(self, x, training=False):
                    return self.last(self.norm(self.hidden(x)))

                def train_step(self, data):
                    x, y = data
                    with tf.GradientTape() as tape:
                        loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
                    self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
                    self.tracker.update_state(loss)
                    return {"loss": self.tracker.result()}

            strategy = tf.distribute.MirroredStrategy()
            with strategy.scope():
                model = Own()
                model.compile(keras.optimizers.Adam(0.01), metrics=["mae"])
            print(json.dumps(model.fit(x, x.sum(1, keepdims=True), batch_size=16, epochs=4, verbose=0).history))
            """
        )
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, timeout=300)
        self.assertEqual(said.returncode, 0, said.stderr)
        history = json.loads(said.stdout)
        self.assertEqual(list(history), ["loss"])
        self.assertLess(history["loss"][-1], 0.9 * history["loss"][0])


class Memory(unittest.TestCase):
    def test_ten_thousand_turns_need_constant_memory(self):
        program = textwrap.dedent(
            """
            import gc, resource
            import numpy as np
            import wgrad as tf

            w = tf.Variable(np.ones((8, 8), "float32"))
            layer = tf.keras.layers.Dense(8)
            x = tf.constant(np.ones((4, 8), "float32"))
            x._keras_mask = None
            optimizer = tf.keras.optimizers.SGD(1e-6)

            def turn():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(layer(x) @ w)
                gradients = tape.gradient(loss, [w, *layer.trainable_variables])
                optimizer.apply_gradients(zip(gradients, [w, *layer.trainable_variables]))

            def pages():
                gc.collect()
                with open("/proc/self/statm") as file:
                    return int(file.read().split()[1]) * resource.getpagesize() / 1e6

            for _ in range(5000):
                turn()
            before = pages()
            for _ in range(10_000):
                turn()
            print(pages() - before, tf._wgrad.stats()[1])
            """
        )
        if not os.path.exists("/proc/self/statm"):
            self.skipTest("this system has no /proc/self/statm")
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
        self.assertEqual(said.returncode, 0, said.stderr)
        grown, held = map(float, said.stdout.split())
        self.assertLess(grown, 12, "MB more after 10,000 turns")
        self.assertLess(held, 1e6)

    def test_models_of_all_kinds_are_freed(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.tracker = layers.Dense(1), keras.metrics.Mean()

            def call(self, x):
                self.add_loss(tf.reduce_mean(x))
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(x) - y) ** 2)
                self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
                self.tracker.update_state(loss)
                return {"loss": self.tracker.result()}

        class Doubled(layers.Layer):
            def call(self, x):
                return x * 2.0

        class OfSymbols(keras.Model):
            def train_step(self, data):
                return super().train_step(data)

        def functional(cls=keras.Model):
            a, b = keras.Input((2,)), keras.Input((2,))
            return cls([a, b], layers.Dense(1)(ops.tanh(layers.add([Doubled()(a), b]))))

        makers = {
            "sequential": (lambda: keras.Sequential([layers.Dense(2), Doubled(), layers.Dense(1)]), X),
            "functional": (functional, [X, X]), "own": (Own, X), "steps": (lambda: functional(OfSymbols), [X, X]),
        }
        for name, (make, data) in makers.items():
            with self.subTest(name):
                model = make()
                model.compile("sgd", "mse", metrics=["mae"])
                model.fit(data, Y, verbose=0, epochs=2)
                model.evaluate(data, Y, verbose=0)
                model.predict(data, verbose=0)
                known = weakref.ref(model)
                del model
                gc.collect()
                self.assertIsNone(known())


if __name__ == "__main__":
    unittest.main()
