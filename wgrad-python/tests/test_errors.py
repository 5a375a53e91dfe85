"""Wrong calls, and what stays behind."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy as np

import wgrad as tf


def wrong_calls():
    """Calls that must fail: each with the exception and a part of its text."""
    layers, keras = tf.keras.layers, tf.keras
    x = tf.ones([2, 3])
    model = keras.Sequential([layers.Dense(1)])
    yield lambda: tf.matmul(x, tf.ones([4, 5])), ValueError, "MatMul: a is [2, 3] and b is [4, 5]"
    yield lambda: x + tf.ones([4]), ValueError, "[4]"
    yield lambda: x + "a", TypeError, ""
    yield lambda: tf.convert_to_tensor("text"), TypeError, "strings stay in NumPy arrays"
    yield lambda: tf.constant([[1.0], [1.0, 2.0]]), ValueError, "no array"
    yield lambda: tf.constant(2**40), TypeError, "1099511627776"
    yield lambda: tf.constant([1, 2, 3], shape=[2, 2]), ValueError, "[2, 2]"
    yield lambda: tf.constant(1.0, dtype="float7"), TypeError, "float7"
    yield lambda: tf.cast(x, "bfloat16"), TypeError, "bfloat16"
    yield lambda: bool(x), ValueError, "no single truth value"
    yield lambda: len(tf.constant(1.0)), TypeError, "no length"
    yield lambda: float(x), ValueError, ""
    yield lambda: x[5], (ValueError, IndexError), "5"
    yield lambda: x[0, 0, 0], ValueError, "3 indices"
    yield lambda: x["a"], ValueError, "cannot be an index"
    yield lambda: x[::0], ValueError, "step"
    yield lambda: list(tf.constant(1.0)), TypeError, "cannot be iterated"
    yield lambda: tf.reshape(x, [4, 4]), ValueError, "[4, 4]"
    yield lambda: tf.reduce_sum(x, axis=7), ValueError, "7"
    yield lambda: tf.concat([x, tf.ones([2])], 0), ValueError, "Concat"
    yield lambda: tf.one_hot([0, 1]), TypeError, "depth"
    yield lambda: tf.nn.conv2d(x, x, strides=1, padding="SAME"), ValueError, ""
    yield lambda: tf.nn.softmax(tf.constant([1, 2])), TypeError, "i32"
    yield lambda: tf.reduce_sum(x, ax=1), TypeError, "ax"
    yield lambda: tf.gather(tf.ones([3]), [0.5]), TypeError, ""
    yield lambda: tf.Variable(x).assign(tf.ones([3])), ValueError, "[3]"
    yield lambda: tf.GradientTape().gradient(x, x), ValueError, "open the tape first"
    yield lambda: keras.Input(), ValueError, "shape"
    yield lambda: layers.Dense(), ValueError, "units"
    yield lambda: layers.Dense(3, units=4), TypeError, "given twice"
    yield lambda: layers.Dense(-3), ValueError, "units"
    yield lambda: layers.Dense(3, activation="reloo"), ValueError, "reloo"
    yield lambda: layers.Dense(3, colour="red"), ValueError, "colour"
    yield lambda: layers.Conv2D(3, 3)(x), ValueError, "Conv2D"
    yield lambda: layers.Conv1D(3, 1)(tf.ones([1, 2, 3], "int32")), TypeError, ""
    yield lambda: layers.Concatenate()([x, tf.ones([5, 7])]), ValueError, ""
    yield lambda: keras.Sequential([3]), TypeError, "no layer"
    yield lambda: model.fit(np.ones((4, 2)), np.ones((4, 1))), RuntimeError, "compile the model first"
    yield lambda: model.compile("adem", "mse"), ValueError, "adem"
    yield lambda: model.compile("adam", "mzz"), ValueError, "mzz"
    yield lambda: (model.compile("adam"), model.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0)), ValueError, "with a loss"
    yield lambda: model.compile("adam", "mse", metrics=["nothing"]), ValueError, "nothing"
    yield lambda: keras.optimizers.Adam(learning_rate="fast"), ValueError, "learning_rate"
    yield lambda: keras.optimizers.SGD(0.1, beta_1=0.9), ValueError, "beta_1"
    yield lambda: keras.losses.Huber(reduction="median"), ValueError, "median"
    yield lambda: keras.models.load_model("/no/such/file.keras"), FileNotFoundError, "/no/such/file.keras"
    yield lambda: model.load_weights("/no/such.safetensors"), FileNotFoundError, "/no/such.safetensors"
    yield lambda: tf.train.Checkpoint(v=3).save("/tmp/never"), ValueError, "has no variables"
    yield lambda: tf.train.Checkpoint(v=tf.Variable(1.0)).restore("/no/such/ckpt-1"), FileNotFoundError, "/no/such"
    yield lambda: tf.data.Dataset.from_tensor_slices((np.ones(3), np.ones(4))), ValueError, "equally many"
    yield lambda: tf.data.Dataset.range(3).batch(0), ValueError, "at least 1"
    yield lambda: list(tf.data.Dataset.from_generator(lambda: iter([np.ones(1), np.ones(2)])).batch(2)), ValueError, "shapes"
    yield lambda: keras.utils.to_categorical([3], 3), ValueError, "not below"
    yield lambda: tf.linalg.matmul(x), TypeError, "b"
    for name, layer in vars(layers).items():
        if isinstance(layer, type) and issubclass(layer, layers.NativeLayer) and layer._class:
            yield lambda layer=layer: layer(colour="red"), ValueError, "from_config"
    for name in ("exp", "sin", "sqrt", "tanh", "reduce_sum", "argmax"):
        yield lambda name=name: getattr(tf, name)("text"), TypeError, "strings"


class Errors(unittest.TestCase):
    def test_wrong_calls_are_errors(self):
        calls = list(wrong_calls())
        self.assertGreater(len(calls), 100)
        for number, (call, kind, text) in enumerate(calls):
            with self.subTest(number=number):
                with self.assertRaises(kind) as caught:
                    call()
                self.assertIn(text, str(caught.exception))
        # Nothing is lost: the device still computes.
        self.assertEqual(float(tf.reduce_sum(tf.ones([10]))), 10.0)

    def test_exceptions_of_python_code_come_back_unchanged(self):
        class Own(Exception):
            pass

        class Broken(tf.keras.layers.Layer):
            def call(self, x):
                raise Own("broken layer")

        with self.assertRaises(Own):
            Broken()(tf.ones([1, 2]))
        model = tf.keras.Sequential([tf.keras.layers.Dense(2), Broken()])
        with self.assertRaises(Own):
            model(tf.ones([1, 2]))
        model.compile("sgd", "mse")
        with self.assertRaises(Own):
            model.fit(np.ones((4, 2)), np.ones((4, 2)), verbose=0)

        def broken(x):
            raise Own("in a function")

        with self.assertRaises(Own):
            tf.function(broken)(tf.ones([1]))

        def batches():
            yield np.ones((2, 2)), np.ones((2, 2))
            raise Own("in a dataset")

        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        model.compile("sgd", "mse")
        with self.assertRaises(Own):
            model.fit(tf.data.Dataset.from_generator(batches), verbose=0)

    def test_pickle_and_copies(self):
        x = pickle.loads(pickle.dumps(tf.constant([1.0, 2.0])))
        self.assertEqual(x.numpy().tolist(), [1.0, 2.0])

    def test_threads_compute_at_the_same_time(self):
        sums = []

        def work(seed):
            x = tf.constant(np.full(1000, float(seed)))
            for _ in range(20):
                x = x + 1.0
            sums.append(float(tf.reduce_sum(x)))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(sums), [1000.0 * (seed + 20) for seed in range(4)])


class Layers(unittest.TestCase):
    def test_layers_may_hold_each_other(self):
        class Child(tf.keras.layers.Layer):
            def __init__(self, parent):
                super().__init__()
                self.parent = parent
                self.dense = tf.keras.layers.Dense(2)

            def call(self, x):
                self.add_loss(tf.reduce_sum(x) * 0.0)
                return self.dense(x)

        class Parent(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.children = [Child(self), Child(self)]
                self.options = {1: 2, "a": "b"}

            def call(self, x):
                return self.children[1](self.children[0](x))

        model = Parent()
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 3)), np.ones((8, 2)), epochs=2, verbose=0)
        self.assertEqual([list(v.shape) for v in model.variables], [[3, 2], [2], [2, 2], [2]])

    def test_a_layer_frozen_before_its_first_call(self):
        class Scale(tf.keras.layers.Layer):
            def build(self, shape):
                self.w = self.add_weight((shape[-1],), "ones", name="w")

            def call(self, x):
                return x * self.w

        layer = Scale()
        layer.trainable = False
        layer(tf.ones([1, 3]))
        self.assertEqual((len(layer.variables), len(layer.trainable_variables)), (1, 0))
        layer.trainable = True
        self.assertEqual(len(layer.trainable_variables), 1)

    def test_several_inputs_and_outputs(self):
        layers = tf.keras.layers
        a, b = tf.keras.Input((3,)), tf.keras.Input((2,))
        both = layers.Concatenate()([layers.Dense(4)(a), layers.Dense(4)(b)])
        model = tf.keras.Model([a, b], [layers.Dense(1)(both), layers.Dense(2, activation="softmax")(both)])
        model.compile("adam", ["mse", "sparse_categorical_crossentropy"], loss_weights=[1.0, 0.5])
        x = [np.ones((32, 3)), np.ones((32, 2))]
        history = model.fit(x, [np.ones((32, 1)), np.zeros(32, "int64")], epochs=5, verbose=0).history
        self.assertLess(history["loss"][-1], history["loss"][0])
        self.assertEqual([y.shape for y in model.predict(x, verbose=0)], [(32, 1), (32, 2)])

    def test_a_tape_belongs_to_its_thread(self):
        x, said = tf.Variable(2.0), []
        with tf.GradientTape() as tape:
            y = x * x

        def work():
            try:
                tape.gradient(y, x)
            except RuntimeError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertIn("belongs to the thread", said[0])
        self.assertEqual(float(tape.gradient(y, x)), 4.0)

    def test_arrays_by_dlpack(self):
        self.assertEqual(np.from_dlpack(tf.constant([1.0, 2.0])).tolist(), [1.0, 2.0])


def spawned(queue):
    queue.put(float(tf.reduce_sum(tf.ones([3]))))


@unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
class Processes(unittest.TestCase):
    def test_a_spawned_process_computes(self):
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=spawned, args=(queue,))
        process.start()
        self.assertEqual(queue.get(timeout=120), 3.0)
        process.join()

    def test_interpreters_leave_nothing_behind(self):
        # WGRAD_INTERPRETERS=10000 starts more of them.
        count = int(os.environ.get("WGRAD_INTERPRETERS", 12))
        program = textwrap.dedent(
            """
            import sys, threading, wgrad as tf
            x = tf.Variable([1.0, 2.0])
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(x * x)
            print(tape.gradient(y, x).numpy().tolist())
            started = threading.Event()
            def work():
                while True:
                    float(tf.reduce_sum(tf.ones([100])))
                    started.set()
            # Some end while a thread computes, or by an exception.
            if sys.argv[1] == "1":
                threading.Thread(target=work, daemon=True).start()
                started.wait()
            elif sys.argv[1] == "2":
                sys.exit(3)
            """
        )
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, TMPDIR=folder)
            shared = lambda: set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
            before = shared()
            for number in range(count):
                ended = subprocess.run(
                    [sys.executable, "-c", program, str(number % 3)], env=environment, capture_output=True, text=True, timeout=300
                )
                wanted = (3 if number % 3 == 2 else 0, "[2.0, 4.0]\n", "")
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), wanted, f"interpreter {number}")
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(shared() - before, set())

    def test_threads_that_compute_end_with_the_interpreter(self):
        # WGRAD_INTERPRETERS=1000 starts more of them: what can go wrong is a matter of microseconds.
        count = int(os.environ.get("WGRAD_INTERPRETERS", 4))
        program = textwrap.dedent(
            """
            import threading, numpy as np, wgrad as tf
            started = [threading.Event() for _ in range(5)]
            def compute():
                while True:
                    float(tf.reduce_sum(tf.ones([100])))
                    started[0].set()
            class Doubled(tf.keras.layers.Layer):
                def call(self, x):
                    return 2 * x
            class Seen(tf.keras.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    started[1].set()
            def train():
                model = tf.keras.Sequential([Doubled(), tf.keras.layers.Dense(1)])
                model.compile("sgd", "mse")
                model.fit(np.ones((64, 2)), np.ones((64, 1)), epochs=10**9, verbose=0, callbacks=[Seen()])
            def rows():
                while True:
                    yield np.ones(3, "float32")
            def read():
                data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([3], tf.float32))
                for batch in data.map(lambda x: x + 1).batch(4).prefetch(2):
                    batch.numpy()
                    started[2].set()
            @tf.function
            def step(x):
                return tf.reduce_sum(x * x)
            def trace():
                length = 1
                while True:
                    step(tf.ones([length])).numpy()
                    length = length % 3 + 1
                    started[3].set()
            def refused():
                while True:
                    try:
                        tf.reshape(tf.ones([2]), [3])
                    except ValueError:
                        started[4].set()
            for work in (compute, train, read, trace, refused):
                threading.Thread(target=work, daemon=True).start()
            for event in started:
                event.wait()
            print("ends", flush=True)
            """
        )
        for number in range(count):
            ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "ends\n", ""), f"interpreter {number}")

    def test_a_forked_process_says_what_to_do(self):
        tf.ones([1]).numpy()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                text = str(tf.ones([2]).numpy())
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            os.write(write, text.encode())
            os._exit(0)
        os.waitpid(child, 0)
        text = os.read(read, 10_000).decode()
        self.assertIn("get_context('spawn')", text)

    def test_ctrl_c_ends_a_training(self):
        program = textwrap.dedent(
            """
            import numpy as np, wgrad as tf
            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            class Said(tf.keras.callbacks.Callback):
                def on_epoch_end(self, epoch, logs=None):
                    if epoch == 2:
                        print("TRAINING", flush=True)
            try:
                model.fit(np.ones((64, 2)), np.ones((64, 1)), epochs=10**9, verbose=0, callbacks=[Said()])
            except KeyboardInterrupt:
                print("INTERRUPTED", flush=True)
            """
        )
        # If the tests were started in the background, Ctrl-C may be ignored, which processes inherit.
        command = ["env", "--default-signal=INT", sys.executable, "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline().strip(), "TRAINING")
            process.send_signal(2)
            self.assertEqual(process.stdout.readline().strip(), "INTERRUPTED")


class Leaks(unittest.TestCase):
    def test_ten_thousand_objects_leave_nothing_behind(self):
        def turn():
            x = tf.constant([[1.0, 2.0]])
            layer = tf.keras.layers.Dense(2)
            with tf.GradientTape() as tape:
                y = layer(x)
            tape.gradient(y, layer.trainable_variables)

        def live():
            gc.collect()
            tf.ones([1]).numpy()
            return tf._wgrad.stats()[1]

        for _ in range(50):
            turn()
        threads, files, held = threading.active_count(), open_files(), live()
        for _ in range(2000):
            turn()
        self.assertEqual(threading.active_count(), threads)
        self.assertLessEqual(open_files(), files)
        self.assertLess(live(), held + 1_000_000)
        for _ in range(10_000):
            tf.constant(1.0)
        self.assertLess(live(), held + 1_000_000)

    def test_models_are_freed(self):
        import weakref

        class Net(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = tf.keras.layers.Dense(1)

            def call(self, x):
                return self.dense(x)

            @tf.function
            def traced(self, x):
                return self.dense(x)

        model = Net()
        model.traced(tf.ones([1, 2]))
        model.compile("sgd", "mse")
        model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
        known = weakref.ref(model)
        del model
        gc.collect()
        self.assertIsNone(known())


def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


if __name__ == "__main__":
    unittest.main()
