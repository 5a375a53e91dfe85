"""The programs of TensorFlow's guides to eager mode, with their results. Only the import differs."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

import wgrad as tf


class Basics(unittest.TestCase):
    def test_g1_a_matrix_of_one_number_is_squared(self):
        self.assertEqual(tf.matmul([[2.0]], [[2.0]]).numpy().tolist(), [[4.0]])

    def test_g2_collatz_by_conditions_on_tensors(self):
        n, steps = tf.constant(12), 0
        while not tf.equal(n, 1):
            n = n // 2 if tf.equal(n % 2, 0) else n * 3 + 1
            steps += 1
        self.assertEqual((int(n), steps), (1, 9))

    def test_g3_gradients_functions(self):
        def square(x):
            return tf.multiply(x, x)

        grad = tf.gradients_function(square)
        self.assertEqual(grad(3.0)[0].numpy(), 6.0)
        gradgrad = tf.gradients_function(lambda x: grad(x)[0])
        self.assertEqual(gradgrad(3.0)[0].numpy(), 2.0)

    def test_g4_gradients_of_conditions(self):
        grad = tf.gradients_function(lambda x: x if x > 0.0 else -x)
        self.assertEqual([grad(2.0)[0].numpy(), grad(-2.0)[0].numpy()], [1.0, -1.0])

    def test_g5_an_unstable_and_a_stable_gradient(self):
        def log1pexp(x):
            return tf.math.log(1 + tf.exp(x))

        grad = tf.gradients_function(log1pexp)
        self.assertEqual(grad(0.0)[0].numpy(), 0.5)
        self.assertTrue(math.isnan(grad(100.0)[0].numpy()))

        @tf.custom_gradient
        def stable(x):
            e = tf.exp(x)
            return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

        grad = tf.gradients_function(stable)
        self.assertEqual([grad(0.0)[0].numpy(), grad(100.0)[0].numpy()], [0.5, 1.0])

    def test_g6_a_model_class_called_untrained(self):
        class MNISTModel(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.layer1 = tf.keras.layers.Dense(units=10)
                self.layer2 = tf.keras.layers.Dense(units=10)

            def call(self, input):
                return self.layer2(self.layer1(input))

        model = MNISTModel()
        self.assertEqual(model.variables, [])
        result = model(tf.zeros([1, 1, 784]))
        self.assertEqual(result.shape, (1, 1, 10))
        self.assertEqual(result.numpy().tolist(), [[[0.0] * 10]])
        self.assertEqual([list(v.shape) for v in model.variables], [[784, 10], [10], [10, 10], [10]])

    def test_g7_gradient_descent_by_hand_and_by_minimize(self):
        def train(by_hand):
            w = tf.Variable(5.0)
            optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)
            loss = lambda: (w * 3.0 - 6.0) ** 2
            for _ in range(5):
                if by_hand:
                    with tf.GradientTape() as tape:
                        value = loss()
                    optimizer.apply_gradients([(tape.gradient(value, w), w)])
                else:
                    optimizer.minimize(loss, [w])
            return float(loss())

        self.assertEqual(train(True), train(False))

    def test_g9_a_tape(self):
        w = tf.Variable([[1.0]])
        with tf.GradientTape() as tape:
            loss = w * w
        self.assertEqual(tape.gradient(loss, w).numpy().tolist(), [[2.0]])

    def test_g10_tensors_and_arrays(self):
        a = tf.constant([[1, 2], [3, 4]])
        b = tf.add(a, 1)
        self.assertEqual(b.numpy().tolist(), [[2, 3], [4, 5]])
        self.assertEqual((a * b).numpy().tolist(), [[2, 6], [12, 20]])
        c = np.multiply(a, b)
        self.assertEqual(c.tolist(), [[2, 6], [12, 20]])
        self.assertEqual((np.array([[1, 2], [3, 4]]) * b).numpy().tolist(), [[2, 6], [12, 20]])
        self.assertEqual(str(tf.constant([[4.0]])), "tf.Tensor([[4.]], shape=(1, 1), dtype=float32)")

    def test_g11_layers_called_on_values(self):
        layers = tf.keras.layers
        x = tf.random.uniform([128, 32, 32, 3])
        y = layers.MaxPooling2D(2)(layers.Conv2D(64, 3, padding="same", activation="relu")(x))
        self.assertEqual(y.shape, (128, 16, 16, 64))

    def test_g12_tapes_used_once_and_twice(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        self.assertEqual(tape.gradient(y, x).numpy(), 6.0)
        with self.assertRaisesRegex(RuntimeError, "persistent=True"):
            tape.gradient(y, x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            z = y * y
        self.assertEqual(tape.gradient(z, x).numpy(), 108.0)
        self.assertEqual(tape.gradient(y, x).numpy(), 6.0)

        def f(x, y):
            output = 1.0
            for i in range(y):
                if i > 1 and i < 5:
                    output = tf.multiply(output, x)
            return output

        def grad(x, y):
            with tf.GradientTape() as t:
                t.watch(x)
                out = f(x, y)
            return t.gradient(out, x)

        x = tf.constant(2.0)
        self.assertEqual([grad(x, n).numpy() for n in (6, 5, 4)], [12.0, 12.0, 4.0])


def digits(count, seed=0):
    """Pictures of 28 by 28 of ten patterns with noise, and their labels."""
    random = np.random.default_rng(seed)
    patterns = np.random.default_rng(100).random((10, 28, 28)) > 0.7
    labels = random.integers(0, 10, count)
    images = patterns[labels] * 200.0 + random.random((count, 28, 28)) * 55.0
    return images.astype("uint8"), labels.astype("int64")


class Networks(unittest.TestCase):
    def test_g13_convolutions_and_an_lstm(self):
        class Net(tf.keras.Model):
            def __init__(self):
                super().__init__()
                layers = tf.keras.layers
                self.conv1 = layers.Conv2D(8, 5, padding="same", activation="relu")
                self.pool = layers.MaxPooling2D(2, 2)
                self.conv2 = layers.Conv2D(16, 5, padding="same", activation="relu")
                self.lstm = layers.LSTM(32)
                self.dense = layers.Dense(10)

            def call(self, x):
                x = tf.reshape(x, [-1, 28, 28, 1])
                x = self.pool(self.conv2(self.pool(self.conv1(x))))
                x = tf.reshape(x, [-1, 49, 16])
                return self.dense(self.lstm(tf.transpose(x, [0, 2, 1])))

        tf.random.set_seed(1)
        images, labels = digits(64)
        model, optimizer = Net(), tf.keras.optimizers.Adam(0.01)
        losses = []
        for _ in range(15):
            with tf.GradientTape() as tape:
                logits = model(images.astype("float32") / 255)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            losses.append(float(loss))
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertEqual(int(optimizer.iterations), 15)

    def test_g14_checkpoints(self):
        class MLP(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.flatten = tf.keras.layers.Flatten()
                self.dense1 = tf.keras.layers.Dense(32, activation=tf.nn.relu)
                self.dense2 = tf.keras.layers.Dense(10)

            def call(self, x):
                return tf.nn.softmax(self.dense2(self.dense1(self.flatten(x))))

        images, labels = digits(200)
        images = images.astype("float32") / 255
        with tempfile.TemporaryDirectory() as folder:
            model = MLP()
            model.compile(tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
            model.fit(images, labels, epochs=5, verbose=0)
            checkpoint = tf.train.Checkpoint(my_model=model)
            checkpoint.save(os.path.join(folder, "model.ckpt"))
            path = checkpoint.save(os.path.join(folder, "model.ckpt"))
            self.assertEqual(pathlib.Path(path).name, "model.ckpt-2")
            files = sorted(file.name for file in pathlib.Path(folder).iterdir())
            self.assertIn("model.ckpt-1.index", files)
            self.assertIn("model.ckpt-2.data-00000-of-00001", files)
            # Restored before the first call.
            again = MLP()
            tf.train.Checkpoint(my_model=again).restore(tf.train.latest_checkpoint(folder))
            np.testing.assert_allclose(again(images).numpy(), model(images).numpy(), atol=1e-6)
            accuracy = np.mean(np.argmax(again(images).numpy(), -1) == labels)
            self.assertGreater(accuracy, 0.95)

    def test_g15_a_manager_keeps_three(self):
        with tempfile.TemporaryDirectory() as folder:
            v = tf.Variable(1.0)
            checkpoint = tf.train.Checkpoint(v=v)
            manager = tf.train.CheckpointManager(checkpoint, directory=folder, checkpoint_name="model.ckpt", max_to_keep=3)
            for batch in range(0, 500, 100):
                v.assign(batch)
                manager.save(checkpoint_number=batch)
            names = [pathlib.Path(path).name for path in manager.checkpoints]
            self.assertEqual(names, ["model.ckpt-200", "model.ckpt-300", "model.ckpt-400"])
            v.assign(0)
            checkpoint.restore(tf.train.latest_checkpoint(folder))
            self.assertEqual(v.numpy(), 400.0)

    def test_g16_a_curve_of_losses(self):
        with tempfile.TemporaryDirectory() as folder:
            writer = tf.summary.create_file_writer(folder)
            with writer.as_default():
                for step in range(5):
                    tf.summary.scalar("loss", tf.constant(5.0 - step), step=step)
            (file,) = pathlib.Path(folder).iterdir()
            self.assertTrue(file.name.startswith("events.out.tfevents"))
            self.assertGreater(file.stat().st_size, 5 * 30)

    def test_g17_years_and_numbers(self):
        x = np.array([2013, 2014, 2015, 2016, 2017])
        y = np.array([12000, 14000, 15000, 16500, 17500])
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        lines = [f"{x} {y}" for x, y in dataset.as_numpy_iterator()]
        self.assertEqual(lines, ["2013 12000", "2014 14000", "2015 15000", "2016 16500", "2017 17500"])

    def test_g18_images_as_a_dataset(self):
        images, labels = digits(20)
        images = np.expand_dims(images.astype("float32") / 255, -1)
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        turned = dataset.map(lambda image, label: (tf.image.rot90(image), label))
        image, label = next(iter(turned))
        np.testing.assert_array_equal(image.numpy(), np.rot90(images[0]))
        batches = list(turned.batch(4))
        self.assertEqual((len(batches), batches[0][0].shape), (5, (4, 28, 28, 1)))
        shuffled = dataset.shuffle(buffer_size=10000).batch(4)
        orders = [np.concatenate([labels for _, labels in shuffled]).tolist() for _ in range(2)]
        self.assertEqual(sorted(orders[0]), sorted(labels.tolist()))
        self.assertNotEqual(orders[0], orders[1])

    def test_g19_compile_fit_and_evaluate(self):
        layers = tf.keras.layers
        images, labels = digits(96)
        images = np.repeat(images[..., None].astype("float32") / 255, 3, -1)
        dataset = tf.data.Dataset.from_tensor_slices((images, labels % 2)).shuffle(96).batch(16).prefetch(tf.data.AUTOTUNE)
        model = tf.keras.Sequential([
            layers.Conv2D(8, 3, activation="relu", input_shape=(28, 28, 3)),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(16, activation="relu"),
            layers.Dense(2, activation="softmax"),
        ])
        model.compile(
            optimizer=tf.keras.optimizers.Adam(learning_rate=0.003),
            loss=tf.keras.losses.sparse_categorical_crossentropy,
            metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
        )
        history = model.fit(dataset, epochs=6, verbose=0)
        self.assertEqual(model.metrics_names, ["loss", "sparse_categorical_accuracy"])
        loss, accuracy = model.evaluate(dataset, verbose=0)
        self.assertLess(loss, history.history["loss"][0])
        self.assertGreater(accuracy, 0.9)


    def test_g8_a_named_device(self):
        with tf.device("/gpu:0"):
            x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
            y = tf.matmul(x, x)
        self.assertEqual(y.numpy().tolist(), [[7.0, 10.0], [15.0, 22.0]])
        self.assertRegex(y.device, r"^/job:localhost/replica:0/task:0/device:[CG]PU:0$")
        with self.assertRaisesRegex(tf.errors.OpError, 'names the kind "gpux"'):
            tf.device("/gpux:zero")


    def test_a_step_of_a_program_s_own(self):
        class Robust(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = tf.keras.layers.Dense(1)

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y, y_pred=self(x, training=True)) * 2.0
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                return {"twice": loss}

        x = np.random.default_rng(1).random((64, 3), dtype="float32")
        model = Robust()
        model.compile(tf.keras.optimizers.SGD(0.05), "mse")
        history = model.fit(x, x.sum(1, keepdims=True), epochs=5, verbose=0).history
        self.assertEqual(list(history), ["twice"])
        self.assertLess(history["twice"][-1], 0.5 * history["twice"][0])


class Functions(unittest.TestCase):
    def test_g20_a_training_step_as_a_function(self):
        images, labels = digits(100)
        images = images.astype("float32") / 255
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
        model(images[:1])
        optimizer = tf.keras.optimizers.Adam(0.01)
        traces = []

        @tf.function
        def step(x, y):
            traces.append(1)
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
                loss = tf.reduce_mean(losses)
            grads = tape.gradient(loss, model.variables)
            optimizer.apply_gradients(zip(grads, model.variables))
            return loss

        losses = [float(step(images, labels.astype("int32"))) for _ in range(40)]
        self.assertLess(losses[-1], 0.3 * losses[0])
        self.assertLessEqual(len(traces), 2)

    def test_g21_when_a_function_traces(self):
        said = []

        @tf.function
        def f(x):
            said.append(x)

        calls = [
            tf.constant(1, dtype=tf.int32), tf.constant(2, dtype=tf.int32), np.array(2, dtype=np.int32),
            tf.constant(0.1), tf.constant(0.2), 1, 2, 1, 0.1, 0.2, 0.1,
        ]
        at = []
        for number, x in enumerate(calls, 1):
            before = len(said)
            f(x)
            if len(said) > before:
                at.append(number)
        # Signatures by dtype and shape for tensors, by value for plain numbers.
        self.assertEqual(at, [1, 4, 6, 7, 9, 10])

    def test_g22_a_variable_assigned_in_a_function(self):
        a = tf.Variable(0.0)

        @tf.function
        def g():
            a.assign(a + 1.0)
            return a.read_value()

        self.assertEqual([float(g()) for _ in range(3)], [1.0, 2.0, 3.0])

    def test_g23_a_condition_in_a_function(self):
        @tf.function
        def square_if_positive(x):
            return tf.cond(x > 0, lambda: x * x, lambda: tf.zeros_like(x))

        self.assertEqual([int(square_if_positive(tf.constant(x))) for x in (1, -1, 3)], [1, 0, 9])
        self.assertEqual(square_if_positive.experimental_get_tracing_count(), 1)
        self.assertIn("greater", square_if_positive.graph_text)
        self.assertIn("choose by", square_if_positive.graph_text)

    def test_loops_in_a_function(self):
        @tf.function
        def collatz(n):
            def body(n, steps):
                return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: n * 3 + 1), steps + 1

            return tf.while_loop(lambda n, steps: tf.not_equal(n, 1), body, [n, tf.constant(0)])[1]

        self.assertEqual(int(collatz(tf.constant(27))), 111)

    def test_g24_an_array_of_tensors(self):
        @tf.function
        def write():
            array = tf.TensorArray(dtype=tf.float32, size=3)
            for index in range(3):
                array = array.write(index, tf.cast(index, tf.float32))
            return array.read(0), array.read(1), array.read(2)

        self.assertEqual([float(x) for x in write()], [0.0, 1.0, 2.0])

    def test_g28_a_model_saved_and_loaded(self):
        model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu", input_shape=(3,)), tf.keras.layers.Dense(2)])
        x = np.random.default_rng(1).random((5, 3), dtype="float32")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            again = tf.keras.models.load_model(path)
            np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


class Devices(unittest.TestCase):
    def test_g26_devices_are_listed(self):
        devices = tf.config.list_physical_devices()
        self.assertTrue(devices)
        self.assertIn(devices[0].device_type, ("GPU", "CPU"))
        self.assertTrue(repr(devices[0]).startswith("PhysicalDevice(name='/physical_device:"))

    def test_g27_one_model_on_several_devices(self):
        program = textwrap.dedent(
            """
            import json, sys
            import numpy as np
            import wgrad as tf

            physical = tf.config.list_physical_devices()[0]
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=2048)
            tf.config.set_logical_device_configuration(physical, [limit, limit])
            names = [device.name for device in tf.config.list_logical_devices(physical.device_type)]
            x = np.random.default_rng(0).random((64, 4)).astype("float32")

            class Double(tf.keras.layers.Layer):
                def call(self, x):
                    return x * 2.0

            def train(strategy):
                tf.random.set_seed(1)
                with strategy.scope():
                    model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), Double(), tf.keras.layers.Dense(1)])
                    model.compile(tf.keras.optimizers.SGD(0.02), "mse")
                return model.fit(x, x.sum(1, keepdims=True), batch_size=16, epochs=3, shuffle=False, verbose=0).history["loss"]

            one = tf.distribute.MirroredStrategy(names[:1])
            two = tf.distribute.MirroredStrategy()
            print(json.dumps([len(names), one.num_replicas_in_sync, two.num_replicas_in_sync, train(one), train(two)]))
            """
        )
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
        self.assertEqual(said.returncode, 0, said.stderr)
        names, one, two, alone, together = json.loads(said.stdout)
        self.assertEqual((names, one, two), (2, 1, 2))
        np.testing.assert_allclose(alone, together, rtol=1e-4)
        self.assertLess(together[-1], 0.7 * together[0])


if __name__ == "__main__":
    unittest.main()
