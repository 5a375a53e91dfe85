"""What programs use every day, with TensorFlow's results: slices of variables, results by name, tables, nested values."""

import os
import tempfile
import unittest

import numpy as np
import wgrad as tf

keras = tf.keras


class Tensors(unittest.TestCase):
    def test_stop_gradient_keeps_the_value(self):
        x = tf.Variable([1.0, -2.0])
        with tf.GradientTape() as tape:
            stopped = tf.stop_gradient(x)
            y = tf.reduce_sum(x * stopped)
        self.assertEqual(stopped.numpy().tolist(), [1.0, -2.0])
        self.assertEqual(tape.gradient(y, x).numpy().tolist(), [1.0, -2.0])

    def test_shapes_are_checked(self):
        x = tf.ones((2, 3))
        x.set_shape([None, 3])
        with self.assertRaisesRegex(ValueError, r"the tensor is \(2, 3\), which does not fit \(None, 4\)"):
            x.set_shape([None, 4])
        self.assertEqual(tf.Variable(x).get_shape(), (2, 3))

    def test_a_variable_begins_with_what_a_function_returns(self):
        v = tf.Variable(lambda: tf.ones((2, 2)), trainable=False, name="v")
        self.assertEqual((v.numpy().tolist(), v.trainable, v.name), ([[1.0, 1.0]] * 2, False, "v"))
        self.assertEqual(tf.Variable(initial_value=lambda: 3, dtype=tf.float32, shape=tf.TensorShape([])).numpy(), 3.0)
        with self.assertRaisesRegex(ValueError, r"the first value is \(2,\), which does not fit the shape \(3,\)"):
            tf.Variable([1, 2], shape=[3])
        with self.assertRaisesRegex(TypeError, "no option 'size'"):
            tf.Variable(1, size=2)

    def test_slices_of_variables_are_assigned(self):
        v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        v[0].assign([7.0, 8.0, 9.0])
        v[1, 1:].assign_add(1.0)
        v[:, 0].assign_sub([1.0, 2.0])
        self.assertEqual(v.numpy().tolist(), [[6.0, 8.0, 9.0], [2.0, 6.0, 7.0]])
        v[tf.constant(1), ::2].assign(0)
        self.assertEqual(v.numpy().tolist(), [[6.0, 8.0, 9.0], [0.0, 6.0, 0.0]])
        with self.assertRaises(ValueError):
            v[0].assign([1.0, 2.0])
        with self.assertRaises(tf.errors.InvalidArgumentError):
            v[5].assign(1.0)
        large = tf.Variable(tf.zeros([2000, 3, 100]))
        large[1500, ..., 7:9].assign(1.0)
        large[-1, 1:, 3].assign_add([2.0, 3.0])
        self.assertEqual((float(tf.reduce_sum(large)), large.numpy()[-1, 1:, 3].tolist()), (11.0, [2.0, 3.0]))
        v.scatter_nd_update([[0, 1]], [5.0])
        v.scatter_nd_add([[0, 0], [1, 2]], [1.0, 2.0])
        self.assertEqual(v.numpy().tolist(), [[7.0, 5.0, 9.0], [0.0, 6.0, 2.0]])

    def test_results_have_names(self):
        top = tf.math.top_k([1.0, 3.0, 2.0], 2)
        self.assertEqual((top.values.numpy().tolist(), top.indices.numpy().tolist()), ([3.0, 2.0], [1, 2]))
        values, indices = top
        self.assertIs(values, top.values)
        unique = tf.unique_with_counts([3, 1, 3])
        self.assertEqual([part.numpy().tolist() for part in (unique.y, unique.idx, unique.count)], [[3, 1], [0, 1, 0], [2, 1]])
        a = tf.constant([[2.0, 0.0], [0.0, 3.0]])
        np.testing.assert_allclose(tf.linalg.svd(a, compute_uv=False), [3.0, 2.0], rtol=1e-6)
        qr = tf.linalg.qr(a)
        np.testing.assert_allclose(qr.q @ qr.r, a, atol=1e-6)

    def test_numbers_take_the_dtype_of_arrays(self):
        x = np.array([-1.0, 2.0], dtype="float32")
        self.assertEqual(tf.maximum(x, 0).numpy().tolist(), [0.0, 2.0])
        self.assertEqual(tf.where(x > 0, x, 0).numpy().tolist(), [0.0, 2.0])
        self.assertEqual(tf.pow(np.array([2.0]), 3).numpy().tolist(), [8.0])
        self.assertEqual(tf.maximum(np.array([1, 5]), 3).dtype, tf.int32)
        self.assertEqual(keras.ops.clip(x, 0, 1).numpy().tolist(), [0.0, 1.0])

    def test_strided_slices(self):
        x = tf.reshape(tf.range(12), [3, 4])
        self.assertEqual(tf.strided_slice(x, [0, 1], [3, 4], [2, 2]).numpy().tolist(), [[1, 3], [9, 11]])
        self.assertEqual(tf.strided_slice(x, [1, 0], [0, 2], begin_mask=2, shrink_axis_mask=1).numpy().tolist(), [4, 5])
        with self.assertRaisesRegex(ValueError, "equally many"):
            tf.strided_slice(x, [0], [1, 2])

    def test_suppressed_boxes(self):
        boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0], [5.0, 5.0, 5.0, 5.0]]
        chosen = tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.7, 0.1], 10)
        self.assertEqual(chosen.numpy().tolist(), [1, 2, 3])
        self.assertEqual(tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.7, 0.1], 10, score_threshold=0.75).numpy().tolist(), [1])
        self.assertEqual(tf.image.non_max_suppression(np.zeros((0, 4)), np.zeros(0), 3).numpy().tolist(), [])


class Tapes(unittest.TestCase):
    def test_nothing_is_recorded_in_a_pause(self):
        w = tf.Variable([1.0, 2.0])
        for persistent in (False, True):
            with tf.GradientTape(persistent) as tape:
                a = w * 2
                with tape.stop_recording():
                    b = a * 3
                y = tf.reduce_sum(a) + tf.reduce_sum(b)
            self.assertEqual(tape.gradient(y, w).numpy().tolist(), [2.0, 2.0])
        with tf.GradientTape() as tape:
            try:
                with tape.stop_recording():
                    raise KeyError("the tape goes on")
            except KeyError:
                pass
            y = tf.reduce_sum(w * w)
        self.assertEqual(tape.gradient(y, w).numpy().tolist(), [2.0, 4.0])

    def test_watched_variables(self):
        v, w = tf.Variable(1.0), tf.Variable(2.0)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(v)
            v * w
        self.assertEqual(len(tape.watched_variables()), 1)
        self.assertIs(tape.watched_variables()[0], v)
        with tf.GradientTape() as tape:
            tape.watch(v)
            v * w
        self.assertEqual(len(tape.watched_variables()), 2)

    def test_batch_jacobians(self):
        x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        with tf.GradientTape() as tape:
            y = x * x
        self.assertEqual(tape.batch_jacobian(y, x).numpy().tolist(), [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])
        with tf.GradientTape() as tape:
            y = tf.ones([2, 3]) * 2.0
        self.assertEqual(tape.batch_jacobian(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO).shape, (2, 3, 2))


class Datasets(unittest.TestCase):
    def test_elements_are_tensors(self):
        self.assertEqual([x.numpy().item() for x in tf.data.Dataset.range(3)], [0, 1, 2])
        for x, y in tf.data.Dataset.from_tensor_slices((np.ones((4, 2)), [1, 2, 3, 4])).batch(2):
            self.assertEqual((x.shape, y.dtype), ((2, 2), tf.int32))
            self.assertTrue(tf.is_tensor(x))
        (text,) = tf.data.Dataset.from_tensors("a")
        self.assertEqual(text.numpy(), b"a")
        data = tf.data.Dataset.range(4)
        self.assertEqual((data.cardinality().numpy(), data.filter(lambda x: x > 1).cardinality().numpy()), (4, -2))
        self.assertEqual(data.reduce(0, lambda total, x: total + x).numpy(), 6)

    def test_lists_are_arrays(self):
        values = lambda data: [element for element in data.as_numpy_iterator()]
        slices = values(tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [[1], [2]]}))
        self.assertEqual([(row["a"].item(), row["b"].tolist()) for row in slices], [(1, [1]), (2, [2])])
        self.assertEqual(values(tf.data.Dataset.from_tensors([1, 2]))[0].tolist(), [1, 2])
        pairs = tf.data.Dataset.zip({"x": tf.data.Dataset.range(2), "y": tf.data.Dataset.range(5, 9)})
        self.assertEqual([(p["x"].numpy().item(), p["y"].numpy().item()) for p in pairs], [(0, 5), (1, 6)])

    def test_windows_by_keys(self):
        values = lambda data: [element.tolist() for element in data.as_numpy_iterator()]
        data = tf.data.Dataset.range(7)
        grouped = data.group_by_window(lambda x: x % 2, lambda key, window: window.batch(5), window_size=3)
        self.assertEqual(values(grouped), [[0, 2, 4], [1, 3, 5], [6]])
        sized = data.group_by_window(lambda x: x % 2, lambda key, window: window.batch(5), window_size_func=lambda key: key + 1)
        self.assertEqual(values(sized), [[0], [2], [1, 3], [4], [6], [5]])
        with self.assertRaisesRegex(ValueError, "not both"):
            data.group_by_window(lambda x: x, lambda key, window: window)
        self.assertEqual(values(data.batch(2).rebatch(3)), [[0, 1, 2], [3, 4, 5], [6]])
        self.assertEqual(values(tf.data.Dataset.from_tensor_slices([3, 1, 3]).unique()), [3, 1])
        self.assertEqual(tf.data.Dataset.from_tensors(3).get_single_element().numpy(), 3)
        with self.assertRaisesRegex(ValueError, "more than one"):
            data.get_single_element()
        with self.assertRaisesRegex(TypeError, "is no dataset"):
            list(data.flat_map(lambda x: [x, x]))


    def test_strings_are_bytes(self):
        data = tf.data.Dataset.from_tensor_slices((np.array(["x", "yz"]), [0, 1]))
        self.assertEqual([text.numpy() for text, _ in data], [b"x", b"yz"])
        (batch, _), = data.batch(2)
        self.assertEqual(batch.numpy().tolist(), [b"x", b"yz"])
        # Records may end with zeros.
        zeros = tf.data.Dataset.from_generator(lambda: iter([b"a\0", b"b"]), output_types=tf.string)
        (batch,) = zeros.batch(2)
        self.assertEqual(batch.numpy().tolist(), [b"a\0", b"b"])
        self.assertEqual(tf.constant([b"a\0"]).numpy().tolist(), [b"a\0"])

    def test_a_function_of_strings_runs_as_it_is_written(self):
        @tf.function
        def lengths(texts, factor):
            return tf.strings.length(texts) * factor

        self.assertEqual(lengths(tf.constant(["a", "abc"]), tf.constant(2)).numpy().tolist(), [2, 6])
        self.assertEqual(lengths(tf.constant("abcd"), tf.constant(2)).numpy(), 8)
        with self.assertRaisesRegex(tf.errors.InvalidTypeError, "strings"):
            lengths.get_concrete_function(tf.constant(["a"]), tf.constant(1))


class Values(unittest.TestCase):
    def test_nested_values(self):
        value = {"b": [2, (3,)], "a": 1}
        self.assertEqual(tf.nest.flatten(value), [1, 2, 3])
        self.assertEqual(tf.nest.map_structure(lambda x: x * 2, value), {"b": [4, (6,)], "a": 2})
        self.assertEqual(tf.nest.map_structure(lambda x, y: x + y, [1, 2], [3, 4]), [4, 6])
        self.assertEqual(tf.nest.pack_sequence_as(value, [7, 8, 9]), {"b": [8, (9,)], "a": 7})
        for wrong in ([1], [1, 2, 3], [1, [2]]):
            with self.assertRaises(ValueError):
                tf.nest.assert_same_structure([1, 2], wrong)
        with self.assertRaises(TypeError):
            tf.nest.assert_same_structure([1], (1,))
        with self.assertRaisesRegex(ValueError, "3 leaves, and 1"):
            tf.nest.pack_sequence_as(value, [1])

    def test_tables(self):
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
        self.assertEqual(table.lookup(tf.constant([["b", "z"]])).numpy().tolist(), [[2, -1]])
        names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ["one", "two"]), "?")
        self.assertEqual(names[tf.constant([2, 5])].numpy().tolist(), [b"two", b"?"])
        self.assertEqual(int(names.size()), 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "words.txt")
            with open(path, "w") as file:
                file.write("cat\ndog\n")
            index = tf.lookup.TextFileIndex
            words = tf.lookup.TextFileInitializer(path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
            known = tf.lookup.StaticVocabularyTable(words, 3)
            found = known.lookup(np.array(["dog", "cow"])).numpy().tolist()
            self.assertEqual(found[0], 1)
            self.assertIn(found[1], (2, 3, 4))
            with self.assertRaisesRegex(ValueError, "has no column 4"):
                tf.lookup.TextFileInitializer(path, tf.string, 4, tf.int64, index.LINE_NUMBER)
        with self.assertRaisesRegex(ValueError, "2 keys and 1 values"):
            tf.lookup.KeyValueTensorInitializer([1, 2], [1])
        with self.assertRaisesRegex(ValueError, "has the values"):
            tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 1], [1, 2]), -1)

    def test_rows_of_csv(self):
        a, b, c = tf.io.decode_csv(["1,2.5,x", '3,,"y,z"'], [[0], [9.0], tf.string])
        self.assertEqual((a.numpy().tolist(), b.numpy().tolist(), c.numpy().tolist()), ([1, 3], [2.5, 9.0], [b"x", b"y,z"]))
        for rows, text in ((["1"], "has 1 fields; expected 2"), (["x,1"], "must be int32"), ([",1"], "has no default")):
            with self.assertRaisesRegex(ValueError, text):
                tf.io.decode_csv(rows, [tf.int32, [0]])
        self.assertEqual(tf.io.decode_raw(b"\x01\x00\x02\x00", "int16").numpy().tolist(), [1, 2])

    def test_strings_have_the_methods_of_tensors(self):
        self.assertEqual(tf.constant("a").numpy(), b"a")
        self.assertEqual(tf.constant([["a", "b"]]).numpy().tolist(), [[b"a", b"b"]])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.txt")
            tf.io.write_file(path, "text")
            self.assertEqual(tf.io.read_file(path).numpy(), b"text")
            self.assertEqual([line.numpy() for line in tf.data.TextLineDataset(path)], [b"text"])
        inverse = keras.layers.StringLookup(vocabulary=["a", "b"], invert=True)
        self.assertEqual(inverse([1, 2]).numpy().tolist(), [b"a", b"b"])

    def test_shapes_are_checked(self):
        x, y = tf.ones([2, 3]), tf.ones([3, 4])
        tf.debugging.assert_shapes([(x, ("N", "M")), (y, ("M", None))])
        tf.debugging.assert_shapes([(tf.ones([5, 2, 3]), (..., "N", 3))])
        for shapes, text in (
            ([(x, ("N", "N"))], "axis 1 is 3, and N is 2"), ([(x, (2, 4))], "not 4"), ([(x, (2,))], "rank is 2"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                tf.debugging.assert_shapes(shapes)


class Keras(unittest.TestCase):
    def test_learning_rates_and_schedules(self):
        optimizer = keras.optimizers.SGD(0.5)
        self.assertEqual((optimizer.learning_rate.numpy(), float(optimizer.learning_rate), optimizer.learning_rate * 2), (0.5, 0.5, 1.0))
        optimizer.learning_rate.assign(0.25)
        self.assertEqual((optimizer.learning_rate, optimizer.iterations.numpy()), (0.25, 0))
        decay = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9, staircase=True)
        np.testing.assert_allclose([decay(0), decay(25), decay(tf.constant(9))], [0.1, 0.081, 0.1], rtol=1e-6)
        np.testing.assert_allclose(keras.optimizers.schedules.CosineDecay(0.1, 100)(50), 0.05, rtol=1e-6)

    def test_objects_by_their_names(self):
        self.assertEqual(keras.activations.get("relu")([-1.0, 2.0]).numpy().tolist(), [0.0, 2.0])
        self.assertEqual(keras.activations.serialize(keras.activations.relu), "relu")
        self.assertEqual(keras.losses.get("mse").__name__, "mean_squared_error")
        self.assertIsInstance(keras.losses.get("MeanSquaredError"), keras.losses.MeanSquaredError)
        self.assertIsInstance(keras.metrics.get("AUC"), keras.metrics.AUC)
        for module in (keras.activations, keras.losses, keras.metrics):
            with self.assertRaisesRegex(ValueError, "nothing"):
                module.get("nothing")
        self.assertEqual(keras.preprocessing.sequence.pad_sequences([[1], [2, 3]]).tolist(), [[0, 1], [2, 3]])

    def test_every_initializer_makes_weights(self):
        for name in ("Orthogonal", "VarianceScaling", "TruncatedNormal", "RandomUniform", "LecunNormal", "Identity"):
            w = getattr(keras.initializers, name)()((3, 3)).numpy()
            self.assertEqual(w.shape, (3, 3), name)
        np.testing.assert_allclose(w, np.eye(3))
        w = keras.initializers.Orthogonal(gain=2.0)((4, 4)).numpy()
        np.testing.assert_allclose(w @ w.T, 4 * np.eye(4), atol=1e-5)
        w = keras.layers.Layer().add_weight(shape=(3, 3), initializer="orthogonal").numpy()
        np.testing.assert_allclose(w @ w.T, np.eye(3), atol=1e-5)

    def test_models_say_their_shapes_and_steps(self):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
        self.assertEqual((model.input_shape, model.output_shape), ((None, 4), (None, 3)))
        self.assertEqual(keras.layers.Dense(2)(keras.Input((5,))).shape, (None, 2))
        steps = []

        class Noted(keras.callbacks.Callback):
            def on_train_begin(self, logs=None):
                steps.append(self.params["steps"])

        model.compile("sgd", "mse")
        x, y = np.ones((40, 4)), np.ones((40, 3))
        model.fit(x, y, batch_size=10, verbose=0, callbacks=[Noted()])
        model.fit(x, y, verbose=0, validation_split=0.5, callbacks=[Noted()])
        model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), verbose=0, callbacks=[Noted()])
        self.assertEqual(steps, [4, 1, 5])

    def test_a_frozen_model_is_loaded_without_the_optimizers_state(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="a"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
        model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
        model.get_layer("a").trainable = False
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.models.load_model(path)
            x = np.ones((1, 2))
            np.testing.assert_allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0), rtol=1e-6)
            loaded.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)

    def test_functions_of_keras(self):
        ops, x = keras.ops, np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], dtype="float32")
        same = lambda made, wanted: np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-5, atol=1e-6)
        same(ops.flip(x), np.flip(x))
        same(ops.roll(x, 1), np.roll(x, 1))
        same(ops.slice_update(x, (0, 1), np.array([[9.0]])), [[1, 9, 3], [4, 5, -6]])
        same(ops.digitize(x, np.array([0.0, 2.0])), np.digitize(x, [0, 2]))
        same(ops.unravel_index(np.array([3, 5]), (2, 3)), np.unravel_index([3, 5], (2, 3)))
        same(ops.svd(x)[1], np.linalg.svd(x)[1])
        same(ops.rfft(x)[0], np.fft.rfft(x).real)
        same(ops.irfft(ops.rfft(np.ones((2, 4), "float32"))), np.ones((2, 4)))
        same(ops.scan(lambda c, row: (c + row, c), np.zeros(3, "float32"), x)[1], [[0, 0, 0], [1, -2, 3]])
        same(ops.associative_scan(lambda a, b: a + b, x, axis=1), np.cumsum(x, 1))
        same(ops.switch(7, [lambda: 1, lambda: 2]), 2)
        same(ops.lstsq(np.eye(2, dtype="float32"), np.array([1.0, 2.0], "float32")), [1, 2])
        counts, edges = ops.histogram(np.array([0.0, 1.0, 4.0]), bins=2)
        same(counts, [2, 1])
        same(edges, [0, 2, 4])
        same(ops.psnr(x, x * 2, 1.0), 10 * np.log10(1 / np.mean(x * x)))
        self.assertEqual(ops.in_top_k(np.array([2, 2]), x, 1).numpy().tolist(), [True, False])

    def test_learning_rates_are_logged(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        x, y = np.ones((4, 2)), np.ones((4, 1))
        schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
        history = model.fit(x, y, epochs=2, verbose=0, callbacks=[schedule])
        np.testing.assert_allclose(history.history["learning_rate"], [0.05, 0.025], rtol=1e-6)
        self.assertEqual(history.params, {"epochs": 2, "steps": 1, "verbose": 0})
        plateau = keras.callbacks.ReduceLROnPlateau("loss", patience=1, factor=0.5, min_delta=100.0)
        history = model.fit(x, y, epochs=3, verbose=0, callbacks=[plateau])
        np.testing.assert_allclose(history.history["learning_rate"], [0.025, 0.025, 0.0125], rtol=1e-6)

    def test_settings_of_programs(self):
        tf.config.experimental.set_memory_growth(tf.config.list_physical_devices()[0], True)
        keras.backend.clear_session()
        seen = []

        @tf.function
        def noted(x):
            seen.append(1)
            return x + 1.0

        tf.config.run_functions_eagerly(True)
        try:
            self.assertTrue(tf.config.functions_run_eagerly())
            self.assertEqual([float(noted(tf.constant(1.0))) for _ in range(3)], [2.0] * 3)
        finally:
            tf.config.run_functions_eagerly(False)
        self.assertEqual(len(seen), 3)
        self.assertEqual(tf.argmax([1.0, 3.0], output_type=tf.int64).numpy(), 1)
        v = tf.Variable(1.0)
        self.assertEqual({v.ref(): "v"}[v.ref()], "v")

    def test_attention_to_fewer_heads(self):
        random = np.random.default_rng(1)
        q, k, v = (random.normal(size=(2, 3, heads, 4)).astype("float32") for heads in (4, 2, 2))
        made = keras.ops.dot_product_attention(q, k, v, is_causal=True).numpy()
        k, v = np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2)
        scores = np.einsum("btnh,bsnh->bnts", q, k) / 2
        scores = np.where(np.tril(np.ones((3, 3), bool)), scores, -1e30)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = np.einsum("bnts,bsnh->btnh", shares / shares.sum(-1, keepdims=True), v)
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)

    def test_assertions_in_functions(self):
        @tf.function
        def checked(x):
            tf.debugging.assert_positive(x, message="x must be positive")
            tf.debugging.assert_less(x, 10.0)
            tf.debugging.assert_near(x, x + 1e-9)
            tf.debugging.Assert(tf.reduce_all(x < 100.0), ["all"])
            tf.debugging.assert_equal(tf.shape(x)[0], 2)
            return tf.debugging.check_numerics(x * 2.0, "doubled")

        self.assertEqual(checked(tf.constant([1.0, 2.0])).numpy().tolist(), [2.0, 4.0])
        for values, text in (([1.0, -2.0], "x must be positive assert_positive"), ([1.0, 11.0], "assert_less: the condition"), ([1.0, np.inf], "assert_less")):
            with self.subTest(values=values), self.assertRaisesRegex(tf.errors.InvalidArgumentError, text):
                checked(tf.constant(values)).numpy()
        finite = tf.function(lambda x: tf.debugging.check_numerics(1.0 / x, "inverse"))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"inverse: the tensor \[2\] had Inf or NaN values"):
            finite(tf.constant([1.0, 0.0])).numpy()

    def test_summaries_have_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            writer = tf.summary.create_file_writer(folder)
            step = tf.function(lambda x, at: tf.summary.scalar("traced", x * 2.0, step=at))
            with writer.as_default(step=3):
                self.assertTrue(tf.summary.scalar("own", 1.0))
                step(tf.constant(2.0), tf.constant(1))
                step(tf.constant(3.0), tf.constant(2))
            tf.summary.experimental.set_step(5)
            with writer.as_default():
                self.assertTrue(tf.summary.text("said", "a"))
                self.assertEqual(tf.summary.experimental.get_step(), 5)
            tf.summary.experimental.set_step(None)
            with self.assertRaisesRegex(ValueError, "there is no step"):
                tf.summary.scalar("own", 1.0)
            name, = os.listdir(folder)
            records = [bytes(record.numpy()) for record in tf.data.TFRecordDataset(os.path.join(folder, name))]
            self.assertEqual([sum(tag in record for record in records) for tag in (b"traced", b"own", b"said")], [2, 1, 1])

    def test_summaries_of_all_kinds(self):
        with tempfile.TemporaryDirectory() as folder:
            with tf.summary.create_file_writer(folder).as_default():
                self.assertTrue(tf.summary.histogram("h", [1.0, 2.0], step=1))
                self.assertTrue(tf.summary.image("i", np.zeros((1, 2, 2, 3), "float32"), step=1))
                self.assertTrue(tf.summary.audio("a", np.zeros((1, 8, 1), "float32"), 8000, step=1))
                self.assertTrue(tf.summary.text("t", "a *text*", step=1))
            self.assertEqual(len(os.listdir(folder)), 1)


if __name__ == "__main__":
    unittest.main()
