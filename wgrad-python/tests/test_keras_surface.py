"""Keras's names that belong to no layer: policies, configs of objects, metrics with all options, cells. Values are those of Keras 3.15."""

import os
import tempfile
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras

layers, metrics = keras.layers, keras.metrics

# Of a question with two answers.
TRUE = np.array([0, 0, 1, 1, 1, 0, 1, 0], "float32")
PRED = np.array([0.1, 0.6, 0.35, 0.8, 0.9, 0.3, 0.55, 0.45], "float32")
WEIGHTS = np.array([1, 2, 0.5, 1, 1, 3, 0.25, 1], "float32")
# Of three classes.
LABELS = np.array([0, 1, 2, 2, 1, 0, -1, 2])
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1],
                   [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], "float32")
KNOWN = np.maximum(LABELS, 0)
ONE_HOT = np.eye(3, dtype="float32")[KNOWN]
# Of numbers.
A = np.array([[1.0, 2, 3, 4], [2, 1, 4, 3], [0, 0.5, 2, 1]], "float32")
B = np.array([[1.1, 1.9, 3.5, 3.2], [1, 2, 3, 5], [0.2, 0.1, 1, 3]], "float32")


class Metrics(unittest.TestCase):
    def check(self, metric, y_true, y_pred, expected, weights=None):
        metric.update_state(y_true, y_pred, sample_weight=weights)
        np.testing.assert_allclose(metric.result().numpy(), expected, rtol=2e-5, atol=1e-6, err_msg=repr(metric))

    def test_metrics_of_two_answers(self):
        for make, plain, weighted in (
            (lambda: metrics.Precision(thresholds=[0.2, 0.5, 0.85]), [0.5714286, 0.75, 1], [0.3142857, 0.5294118, 1]),
            (lambda: metrics.Recall(0.4), 0.75, 0.8181818),
            (lambda: metrics.FalsePositives(thresholds=[0.2, 0.5]), [3, 1], [6, 2]),
            (lambda: metrics.TrueNegatives(0.4), 2, 4),
            (lambda: metrics.SensitivityAtSpecificity(0.6), 0.75, 0.8181818),
            (lambda: metrics.SpecificityAtSensitivity(0.6, num_thresholds=50), 0.75, 1),
            (lambda: metrics.PrecisionAtRecall(0.7), 0.75, 1),
            (lambda: metrics.RecallAtPrecision(0.7), 0.75, 0.7272727),
            (lambda: metrics.AUC(curve="PR"), 0.8369187, 0.8566675),
            (lambda: metrics.AUC(summation_method="majoring", thresholds=[0.2, 0.5, 0.7]), 0.9375, 0.9480519),
            (lambda: metrics.AUC(from_logits=True, num_thresholds=20), 0.875, 0.9220779),
            (lambda: metrics.BinaryIoU([0, 1], 0.4), 0.45, 0.4857143),
            (lambda: metrics.BinaryIoU(target_class_ids=[0]), 0.6, 0.7142857),
            (lambda: metrics.BinaryIoU(dtype="float32"), 0.6, 0.5701755),
        ):
            self.check(make(), TRUE, PRED, plain)
            self.check(make(), TRUE, PRED, weighted, WEIGHTS)
            again = type(make()).from_config(make().get_config())
            self.check(again, TRUE, PRED, plain)

    def test_metrics_of_classes(self):
        for make, labels, plain, weighted in (
            (lambda: metrics.OneHotIoU(3, [0, 2]), ONE_HOT, 0.5833334, 0.625),
            (lambda: metrics.OneHotMeanIoU(3), ONE_HOT, 0.4722222, 0.5),
            (lambda: metrics.MeanIoU(3, sparse_y_pred=False, ignore_class=-1), LABELS, 0.6111111, 0.5),
            (lambda: metrics.IoU(3, [1], sparse_y_pred=False), KNOWN, 0.25, 0.25),
            (lambda: metrics.Precision(top_k=2), ONE_HOT, 0.375, 0.4358974),
            (lambda: metrics.Recall(class_id=2), ONE_HOT, 0.6666667, 0.6),
            (lambda: metrics.RecallAtPrecision(0.5, class_id=2), ONE_HOT, 1, 1),
            (lambda: metrics.F1Score(average="macro"), ONE_HOT, 0.6222222, 0.6168830),
            (lambda: metrics.FBetaScore("weighted", 2.0, 0.35), ONE_HOT, 0.6314935, 0.6655528),
            (lambda: metrics.F1Score(), ONE_HOT, [0.8, 0.3999999, 0.6666666], [0.9696969, 0.3809523, 0.5]),
            (lambda: metrics.SparseCategoricalCrossentropy(ignore_class=-1), LABELS, 0.6218120, 0.7737023),
            (lambda: metrics.AUC(multi_label=True, num_labels=3, label_weights=[1.0, 2.0, 3.0]), ONE_HOT, 0.7749999, 0.7304950),
        ):
            self.check(make(), labels, SHARES, plain)
            self.check(make(), labels, SHARES, weighted, WEIGHTS)

    def test_metrics_of_numbers(self):
        weights = np.array([1, 2, 0.5], "float32")
        for make, plain, weighted in (
            (metrics.PearsonCorrelation, 0.6034979, 0.6150901),
            (lambda: metrics.ConcordanceCorrelation(axis=-1), 0.5759660, 0.5892295),
            (metrics.LogCoshError, 0.4086502, 0.4715603),
        ):
            self.check(make(), A, B, plain)
            self.check(make(), A, B, weighted, weights)
        self.check(metrics.R2Score(), A, B, -0.1260714)
        self.check(metrics.R2Score(class_aggregation=None), A, B, [0.475, -0.0028569, -0.125, -0.8514287])
        self.check(metrics.R2Score("variance_weighted_average"), A, B, -0.3332203)
        self.check(metrics.R2Score(num_regressors=1), A, B, -0.2386786)
        self.assertIsNone(metrics.R2Score(class_aggregation=None).get_config()["class_aggregation"])

    def test_functions(self):
        for found, expected in (
            (metrics.binary_accuracy(TRUE, PRED, 0.4), [1, 0, 0, 1, 1, 1, 1, 0]),
            (metrics.categorical_accuracy(ONE_HOT, SHARES), [1, 0, 1, 0, 1, 1, 0, 1]),
            (metrics.sparse_categorical_accuracy(KNOWN, SHARES), [1, 0, 1, 0, 1, 1, 0, 1]),
            (metrics.top_k_categorical_accuracy(ONE_HOT, SHARES, 2), [1, 1, 1, 1, 1, 1, 0, 1]),
            (metrics.sparse_top_k_categorical_accuracy(KNOWN, SHARES, 2), [1, 1, 1, 1, 1, 1, 0, 1]),
            (metrics.pearson_correlation(A, B), [0.9076862, 0.5291502, 0.3736571]),
            (metrics.concordance_correlation(A, B), [0.8967083, 0.5, 0.3311897]),
            (keras.activations.threshold(np.array([1.0, 2, 3]), 2.0, -1.0), [-1, -1, 3]),
        ):
            np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=1e-6)
        with self.assertRaisesRegex(ValueError, r"y_true is \(8, 3\) and y_pred is \(8, 3\)"):
            metrics.sparse_categorical_accuracy(ONE_HOT, SHARES)

    def test_losses(self):
        unit = SHARES / np.linalg.norm(SHARES, axis=1, keepdims=True)
        for loss, y_true, y_pred, expected in (
            (keras.losses.Dice(axis=(1,)), A / 4, B / 5, 0.4714080),
            (keras.losses.Tversky(0.3, 0.7, axis=1), A / 4, B / 5, 0.4540625),
            (keras.losses.CategoricalGeneralizedCrossEntropy(0.7), KNOWN, SHARES, 0.5707396),
            (keras.losses.Circle(), KNOWN, unit, 57.9136086),
        ):
            self.assertAlmostEqual(float(loss(y_true, y_pred)), expected, delta=1e-5 * abs(expected) + 1e-6)

    def test_bad_options_are_named(self):
        for make, said in (
            (lambda: metrics.PrecisionAtRecall(), "needs 'recall'"),
            (lambda: metrics.AUC(curve="roc"), "one of ROC, PR, PRGAIN"),
            (lambda: metrics.MeanIoU(), "needs 'num_classes'"),
            (lambda: metrics.SparseTopKCategoricalAccuracy(from_sorted_ids=True), "from_sorted_ids"),
            (lambda: metrics.Precision(0.5, None, None, "p", None, 1), "takes 5 arguments in order, not 6"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), said):
                made = make()
                made.update_state(TRUE, PRED)

    def test_compile_takes_them(self):
        model = keras.Sequential([keras.Input((3,)), layers.Dense(3, activation="softmax")])
        model.compile("sgd", "categorical_crossentropy", metrics=[metrics.OneHotMeanIoU(3), metrics.Precision(top_k=2)])
        values = model.evaluate(SHARES, ONE_HOT, verbose=0, return_dict=True)
        self.assertEqual(sorted(values), ["loss", "one_hot_mean_io_u", "precision"])
        model.compile("sgd", "categorical_crossentropy", metrics=[metrics.Precision([0.2, 0.5]), metrics.AUC()])
        model.evaluate(SHARES, ONE_HOT, verbose=0)
        self.assertEqual(model.metrics_names, ["loss", "precision_0", "precision_1", "auc"])
        by_hand = metrics.Precision(top_k=2)
        by_hand.update_state(ONE_HOT, model.predict(SHARES, verbose=0))
        self.assertAlmostEqual(values["precision"], float(by_hand.result()), places=6)


class Policies(unittest.TestCase):
    def tearDown(self):
        keras.mixed_precision.set_global_policy("float32")

    def test_names(self):
        policy = keras.mixed_precision.Policy("mixed_float16")
        self.assertEqual((policy.name, policy.compute_dtype, policy.variable_dtype), ("mixed_float16", "float16", "float32"))
        self.assertEqual(repr(policy), '<DTypePolicy "mixed_float16">')
        self.assertEqual(policy, keras.DTypePolicy.from_config(policy.get_config()))
        self.assertEqual(keras.mixed_precision.global_policy().name, "float32")
        keras.config.set_dtype_policy("mixed_float16")
        self.assertEqual(keras.config.dtype_policy().name, "mixed_float16")
        self.assertEqual(keras.mixed_precision.dtype_policy(), policy)
        with self.assertRaisesRegex(ValueError, "devices have no bfloat16. Use 'float32'"):
            keras.mixed_precision.set_global_policy("mixed_bfloat16")
        with self.assertRaisesRegex(ValueError, "there is no policy 'mixed'"):
            keras.mixed_precision.set_global_policy("mixed")
        with self.assertRaisesRegex(ValueError, "do not compute in int32"):
            keras.mixed_precision.set_global_policy("int32")

    def test_layers(self):
        keras.mixed_precision.set_global_policy("mixed_float16")
        dense = layers.Dense(2)
        self.assertEqual((dense.dtype, dense.compute_dtype, dense.variable_dtype), ("float32", "float16", "float32"))
        self.assertEqual(dense.dtype_policy.name, "mixed_float16")
        y = dense(np.ones((1, 3), "float32"))
        self.assertEqual((y.dtype.name, dense.kernel.dtype.name), ("float16", "float32"))
        last = layers.Dense(2, dtype="float32")
        self.assertEqual((last(y).dtype.name, last.compute_dtype), ("float32", "float32"))
        keras.mixed_precision.set_global_policy("float32")
        self.assertEqual(layers.Dense(2, dtype=keras.DTypePolicy("mixed_float16")).compute_dtype, "float16")
        again = layers.Dense.from_config(dense.get_config())
        self.assertEqual(again.dtype_policy, dense.dtype_policy)
        self.assertEqual(layers.Dense(2).dtype_policy.name, "float32")

    def test_layers_of_a_program(self):
        class Doubled(keras.layers.Layer):
            def build(self, shape):
                self.w = self.add_weight(shape=(shape[-1], 2), initializer="ones")
                self.inner = layers.Dense(2, dtype="float32", kernel_initializer="ones")

            def call(self, x):
                self.seen = x.dtype.name, (x @ self.w).dtype.name, self.inner(x).dtype.name
                return 2.0 * (x @ self.w)

        layer = Doubled(dtype="mixed_float16")
        y = layer(np.array([[1.0, 2.0, 3.0]], "float32"))
        self.assertEqual(layer.seen, ("float16", "float16", "float32"))
        self.assertEqual((y.dtype.name, layer.w.dtype.name), ("float16", "float32"))
        np.testing.assert_array_equal(y.numpy(), [[12, 12]])
        # Outside of the call, weights are what they are.
        self.assertEqual((layer.w + 1.0).dtype.name, "float32")
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(np.ones((1, 3), "float32")))
        self.assertEqual(tape.gradient(loss, layer.w).dtype.name, "float32")
        self.assertEqual(Doubled()(np.ones((1, 3), "float16")).dtype.name, "float32")
        half = keras.layers.Layer(dtype="float16")
        self.assertEqual((half.add_weight((2, 2)).dtype.name, half.add_weight((2,), dtype="float32").dtype.name), ("float16", "float32"))
        self.assertEqual(Doubled(autocast=False)(np.ones((1, 3), "float32")).dtype.name, "float32")

    def test_training_scales_the_loss(self):
        keras.mixed_precision.set_global_policy("mixed_float16")
        x = np.linspace(-1, 1, 64).reshape(16, 4).astype("float32")
        y = x.sum(1, keepdims=True)

        class Model(keras.Model):
            def __init__(self):
                super().__init__()
                self.hidden, self.head = layers.Dense(8, activation="relu"), layers.Dense(1, dtype="float32")

            def call(self, inputs):
                return self.head(self.hidden(inputs))

        class Steps(Model):
            def train_step(self, data):
                return super().train_step(data)

        stack = keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(1, dtype="float32")])
        for model in (stack, Model(), Steps()):
            model.compile(keras.optimizers.Adam(0.05), "mse")
            self.assertIsInstance(model.optimizer, keras.mixed_precision.LossScaleOptimizer)
            self.assertEqual(float(model.optimizer.dynamic_scale), 32768)
            losses = model.fit(x, y, epochs=12, verbose=0).history["loss"]
            self.assertLess(losses[-1], 0.5 * losses[0])
            self.assertEqual(float(model.optimizer.scale_loss(tf.constant(0.5))), 0.5 * float(model.optimizer.dynamic_scale))
        plain = Model()
        plain.compile("sgd", "mse", auto_scale_loss=False)
        self.assertNotIsInstance(plain.optimizer, keras.mixed_precision.LossScaleOptimizer)

    def test_a_scaling_optimizer(self):
        optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0, dynamic_growth_steps=2)
        w = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(w * w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        self.assertAlmostEqual(float(w), 2.4, places=6)
        optimizer.apply_gradients([(tf.constant(np.inf), w)])
        self.assertAlmostEqual(float(w), 2.4, places=6)
        self.assertEqual(float(optimizer.dynamic_scale), 2)
        for _ in range(2):
            optimizer.apply_gradients([(tf.constant(0.0), w)])
        self.assertEqual(float(optimizer.dynamic_scale), 4)
        config = optimizer.get_config()
        self.assertEqual((config["initial_scale"], config["dynamic_growth_steps"]), (4.0, 2))
        again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
        self.assertEqual((again.initial_scale, again.inner_optimizer._class), (4.0, "SGD"))
        self.assertAlmostEqual(float(again.learning_rate), 0.1, places=6)
        with self.assertRaisesRegex(ValueError, "'clipnorm' is an option of the inner optimizer"):
            keras.optimizers.LossScaleOptimizer("sgd", clipnorm=1.0)

    def test_files(self):
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(1, dtype="float32")])
        model.compile("adam", "mse")
        x = np.ones((4, 4), "float32")
        model.fit(x, x[:, :1], verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "half.keras")
            model.save(path)
            keras.mixed_precision.set_global_policy("float32")
            again = keras.models.load_model(path)
        np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
        self.assertIsInstance(again.optimizer, keras.mixed_precision.LossScaleOptimizer)
        self.assertEqual(int(again.optimizer.iterations), 1)
        self.assertEqual([layer.compute_dtype for layer in again.layers], ["float16", "float32"])


def weighted(layer, *, build):
    """The layer with weights of even steps."""
    layer.build(build)
    layer.set_weights([np.linspace(-0.5, 0.5, w.size).reshape(w.shape) for w in layer.get_weights()])
    return layer


class Cells(unittest.TestCase):
    X = np.linspace(-1, 1, 6).reshape(2, 3).astype("float32")
    H, C = np.full((2, 2), 0.5, "float32"), np.full((2, 2), -0.25, "float32")

    def test_steps(self):
        for cell, states, expected in (
            (
                layers.LSTMCell(2), [self.H, self.C],
                [[[0.013228, 0.05227], [0.010467, 0.08246]], [[0.020444, 0.077421], [0.014328, 0.105652]]],
            ),
            (layers.GRUCell(2), [self.H], [[[0.38223, 0.441611], [0.519841, 0.63675]]]),
            (layers.SimpleRNNCell(2), [self.H], [[[-0.16514, 0.667747], [-0.482829, 0.823201]]]),
        ):
            cell = weighted(cell, build=(None, 3))
            y, after = cell(self.X, states)
            np.testing.assert_allclose(y.numpy(), expected[0], atol=2e-6)
            self.assertIsInstance(after, list)
            for state, one in zip(after, expected):
                np.testing.assert_allclose(state.numpy(), one, atol=2e-6)
            self.assertEqual([state.shape for state in cell.get_initial_state(batch_size=4)], [(4, 2)] * len(states))
            # The layer shares the weights of the cell.
            whole = layers.RNN(cell, return_state=True)(self.X[:, None], initial_state=states)
            np.testing.assert_allclose(whole[0].numpy(), expected[0], atol=2e-6)
            self.assertEqual(layers.RNN(cell).cell.state_size, cell.state_size)
            again = type(cell).from_config(cell.get_config())
            self.assertEqual((again.units, again.output_size), (2, 2))
        self.assertEqual((layers.LSTMCell(2).state_size, layers.GRUCell(2).state_size), ([2, 2], 2))
        one = weighted(layers.GRUCell(2), build=(None, 3))(self.X, self.H)[1]
        self.assertEqual(one.shape, (2, 2))
        with self.assertRaisesRegex(ValueError, r"the states are \[\[1, 2\]\]"):
            layers.GRUCell(2)(self.X, [self.H[:1]])

    def test_gradients_and_losses(self):
        cell = layers.GRUCell(2, kernel_regularizer="l2")
        with tf.GradientTape() as tape:
            y, _ = cell(self.X, [self.H])
            loss = tf.reduce_sum(y) + cell.losses[0]
        self.assertEqual([g.shape for g in tape.gradient(loss, cell.trainable_variables)], [v.shape for v in cell.trainable_variables])

        class Model(keras.Model):
            def __init__(self):
                super().__init__()
                self.cell, self.head = layers.LSTMCell(4), layers.Dense(1)

            def call(self, x):
                states = self.cell.get_initial_state(batch_size=x.shape[0])
                for at in range(x.shape[1]):
                    y, states = self.cell(x[:, at], states)
                return self.head(y)

        x = np.linspace(-1, 1, 48).reshape(8, 3, 2).astype("float32")
        keras.utils.set_random_seed(1)
        model = Model()
        model.compile(keras.optimizers.Adam(0.05), "mse")
        losses = model.fit(x, x.sum((1, 2)), epochs=30, verbose=0).history["loss"]
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertEqual(len(model.trainable_variables), 5)

    def test_stacks(self):
        stack = layers.StackedRNNCells([layers.LSTMCell(2), layers.GRUCell(3)])
        self.assertEqual((stack.state_size, stack.output_size), ([[2, 2], 3], 3))
        y, after = stack(self.X, stack.get_initial_state(batch_size=2))
        self.assertEqual((y.shape, len(after), len(after[0])), ((2, 3), 2, 2))
        first, states = stack.cells[0](self.X, stack.cells[0].get_initial_state(batch_size=2))
        second, _ = stack.cells[1](first, stack.cells[1].get_initial_state(batch_size=2))
        np.testing.assert_allclose(y.numpy(), second.numpy(), atol=1e-6)
        rnn = layers.RNN(stack, return_sequences=True, return_state=True)
        whole, one, two = rnn(np.ones((2, 4, 3), "float32"))
        self.assertEqual((whole.shape, [s.shape for s in one], [s.shape for s in two]), ((2, 4, 3), [(2, 2), (2, 2)], [(2, 3)]))
        again = layers.RNN.from_config(rnn.get_config())
        self.assertEqual((again.cell.state_size, again.return_sequences), ([[2, 2], 3], True))
        self.assertEqual(layers.RNN([layers.GRUCell(2), layers.GRUCell(3)])(np.ones((2, 4, 3), "float32")).shape, (2, 3))

    def test_cells_of_a_program(self):
        class Minimal(keras.layers.Layer):
            def __init__(self, units, **options):
                super().__init__(**options)
                self.units = self.state_size = units

            def build(self, shape):
                self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="ones")
                self.recurrent = self.add_weight(shape=(self.units, self.units), initializer="identity")

            def call(self, x, states):
                y = x @ self.kernel + states[0] @ self.recurrent
                return y, [y]

            def get_config(self):
                return super().get_config() | {"units": self.units}

        x = np.arange(6, dtype="float32").reshape(1, 3, 2)
        rnn = layers.RNN(Minimal(2), return_sequences=True)
        np.testing.assert_allclose(rnn(x).numpy(), [[[1, 1], [6, 6], [15, 15]]])
        self.assertEqual(len(rnn.trainable_variables), 2)
        model = keras.Sequential([keras.Input((3, 2)), layers.RNN(Minimal(2)), layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.01), "mse")
        losses = model.fit(np.repeat(x, 4, 0), np.ones((4, 1)), epochs=5, verbose=0).history["loss"]
        self.assertLess(losses[-1], losses[0])
        again = keras.layers.deserialize(keras.layers.serialize(rnn), custom_objects={"Minimal": Minimal})
        np.testing.assert_allclose(again(x).numpy(), rnn(x).numpy())
        with self.assertRaisesRegex(TypeError, "is no cell"):
            layers.RNN(layers.Dense(2))

    def test_symbols(self):
        x, h = keras.Input((3,)), keras.Input((2,))
        cell = weighted(layers.GRUCell(2), build=(None, 3))
        y, after = cell(x, [h])
        model = keras.Model([x, h], [y, after[0]])
        np.testing.assert_allclose(model.predict([self.X, self.H], verbose=0)[0], cell(self.X, [self.H])[0].numpy(), atol=1e-6)


class Stateful(unittest.TestCase):
    def test_layers_go_on(self):
        x = np.linspace(-1, 1, 24).reshape(2, 4, 3).astype("float32")
        for make in (layers.LSTM, layers.GRU, layers.SimpleRNN, lambda units, **options: layers.RNN(layers.LSTMCell(units), **options)):
            layer = make(2, stateful=True)
            whole = layer(x).numpy()
            layer.reset_state()
            layer(x[:, :2])
            np.testing.assert_allclose(layer(x[:, 2:]).numpy(), whole, atol=1e-6)
            layer.reset_states()
            np.testing.assert_allclose(layer(x).numpy(), whole, atol=1e-6)
            with self.assertRaisesRegex(ValueError, "call reset_state of the layer"):
                layer(x[:1])
            layer.reset_state()
            np.testing.assert_allclose(layer(x[:1]).numpy(), whole[:1], atol=1e-6)

    def test_models(self):
        x = np.linspace(-1, 1, 24).reshape(2, 4, 3).astype("float32")

        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.lstm = layers.LSTM(2, stateful=True)

            def call(self, inputs):
                return self.lstm(inputs)

        symbol = keras.Input(batch_shape=(2, 4, 3))
        for model in (
            keras.Sequential([keras.Input(batch_shape=(2, 4, 3)), layers.LSTM(2, stateful=True)]),
            keras.Model(symbol, layers.LSTM(2, stateful=True)(symbol)),
            Own(),
        ):
            first = model(x).numpy()
            second = model(x).numpy()
            self.assertGreater(np.abs(first - second).max(), 1e-4)
            model.reset_states()
            np.testing.assert_allclose(model(x).numpy(), first, atol=1e-6)


class Configs(unittest.TestCase):
    def test_optimizers_have_all_keys(self):
        self.assertEqual(keras.optimizers.SGD().get_config(), {
            "name": "sgd", "learning_rate": 0.009999999776482582, "weight_decay": None, "clipnorm": None, "global_clipnorm": None,
            "clipvalue": None, "use_ema": False, "ema_momentum": 0.99, "ema_overwrite_frequency": None, "loss_scale_factor": None,
            "gradient_accumulation_steps": None, "momentum": 0.0, "nesterov": False,
        })
        own = {
            "Adadelta": {"rho": 0.95, "epsilon": 1e-07}, "Adagrad": {"initial_accumulator_value": 0.1, "epsilon": 1e-07},
            "Adafactor": {"beta_2_decay": -0.8, "epsilon_1": 1e-30, "epsilon_2": 0.001, "clip_threshold": 1.0, "relative_step": True},
            "Adam": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": False},
            "AdamW": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": False},
            "Adamax": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07}, "Lamb": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07},
            "Ftrl": {
                "learning_rate_power": -0.5, "initial_accumulator_value": 0.1, "l1_regularization_strength": 0.0,
                "l2_regularization_strength": 0.0, "l2_shrinkage_regularization_strength": 0.0, "beta": 0.0,
            },
            "Lion": {"beta_1": 0.9, "beta_2": 0.99}, "Nadam": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07},
            "RMSprop": {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-07, "centered": False},
            "Muon": {
                "adam_beta_1": 0.9, "adam_beta_2": 0.999, "epsilon": 1e-07, "exclude_layers": [], "muon_a": 3.4445, "muon_b": -4.775,
                "muon_c": 2.0315, "adam_lr_ratio": 1, "momentum": 0.95, "ns_steps": 5, "nesterov": True, "exclude_embeddings": True,
                "adam_weight_decay": 0.004, "rms_rate": 0.2,
            },
        }
        shared = set(keras.optimizers.SGD().get_config()) - {"momentum", "nesterov"}
        for name, options in own.items():
            optimizer = getattr(keras.optimizers, name)()
            config = optimizer.get_config()
            self.assertEqual({key: value for key, value in config.items() if key not in shared}, options, name)
            self.assertEqual(set(config) - set(options), shared, name)
            self.assertEqual(config["weight_decay"], 0.004 if name in ("AdamW", "Muon") else None)
            again = type(optimizer).from_config(config)
            self.assertEqual(again.get_config(), config, name)
        self.assertEqual(keras.optimizers.RMSprop().get_config()["name"], "rm_sprop")
        rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
        config = keras.optimizers.Adam(rate, clipnorm=1.0, name="mine").get_config()
        self.assertEqual(config["learning_rate"], {
            "module": "keras.optimizers.schedules", "class_name": "ExponentialDecay", "registered_name": None,
            "config": {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": False, "name": "ExponentialDecay"},
        })
        again = keras.optimizers.Adam.from_config(config)
        self.assertAlmostEqual(float(again.learning_rate), 0.1, places=6)
        self.assertEqual((again.name, again.get_config()["clipnorm"]), ("mine", 1.0))

    def test_objects_come_back(self):
        for module, obj in (
            (keras.losses, keras.losses.Huber(delta=0.5, reduction="sum", name="h")),
            (keras.metrics, keras.metrics.TopKCategoricalAccuracy(k=3)),
            (keras.optimizers, keras.optimizers.SGD(0.25, momentum=0.5)),
            (keras.optimizers.schedules, keras.optimizers.schedules.CosineDecay(0.1, 100)),
            (keras.initializers, keras.initializers.RandomNormal(0.5, 0.25, seed=3)),
            (keras.regularizers, keras.regularizers.L1L2(0.5, 0.25)),
            (keras.constraints, keras.constraints.MinMaxNorm(0.5, 2.0)),
        ):
            config = module.serialize(obj)
            self.assertEqual((config["class_name"], config["registered_name"]), (type(obj).__name__, None))
            self.assertTrue(config["module"].startswith("keras."))
            again = module.deserialize(config)
            self.assertIs(type(again), type(obj))
            self.assertEqual(again.get_config(), obj.get_config())
            if hasattr(module, "get"):
                self.assertEqual(module.get(config).get_config(), obj.get_config())
                self.assertIs(module.get(obj), obj)
        huber = keras.losses.Huber(delta=0.5).get_config()
        self.assertEqual(huber, {"delta": 0.5, "name": "huber_loss", "reduction": "sum_over_batch_size"})
        self.assertEqual(keras.initializers.get("he_normal").get_config()["seed"], None)
        self.assertIsInstance(keras.initializers.get(keras.initializers.Ones), keras.initializers.Ones)
        self.assertEqual(keras.regularizers.L2().get_config(), {"l2": 0.01})
        self.assertEqual(keras.initializers.identity, keras.initializers.Identity)

    def test_names_that_do_not_exist(self):
        for get, name, said in (
            (keras.losses.get, "mse_loss", "there is no loss '"),
            (keras.optimizers.get, {"class_name": "Adem", "config": {}}, "no optimizer 'Adem'"),
            (keras.activations.get, "rely", "no activation 'rely'"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                get(name)
        with self.assertRaisesRegex(ValueError, r"is no loss\."):
            keras.losses.deserialize({"class_name": "SGD", "module": "keras.optimizers", "config": {}})

    def test_layers_come_back(self):
        dense = layers.Dense(3, activation="relu", kernel_initializer=keras.initializers.HeNormal(seed=1), kernel_regularizer="l2", name="d")
        config = keras.layers.serialize(dense)
        self.assertEqual((config["module"], config["class_name"]), ("keras.layers", "Dense"))
        self.assertEqual(config["config"]["kernel_initializer"]["class_name"], "HeNormal")
        again = keras.layers.deserialize(config)
        self.assertEqual(again.get_config(), dense.get_config())
        x = np.ones((2, 4), "float32")
        np.testing.assert_array_equal(again(x).numpy(), dense(x).numpy())
        built = keras.layers.deserialize(config | {"build_config": {"input_shape": (None, 4)}})
        self.assertEqual(built.kernel.shape, (4, 3))
        for layer in (
            layers.Bidirectional(layers.LSTM(2, return_state=True)), layers.TimeDistributed(layers.Dense(2)), layers.Add(),
            layers.MultiHeadAttention(2, 4), layers.GRU(3, return_sequences=True), layers.Discretization(bin_boundaries=[0.0, 1.0]),
            layers.Normalization(mean=1.0, variance=2.0), layers.StringLookup(vocabulary=["a", "b"]), layers.LSTMCell(2),
            layers.BatchNormalization(momentum=0.5), layers.Conv2D(2, 3, padding="same"),
        ):
            config = keras.saving.serialize_keras_object(layer)
            self.assertEqual(config["module"], "keras.layers", config["class_name"])
            twin = keras.saving.deserialize_keras_object(config)
            self.assertIs(type(twin), type(layer))
            self.assertEqual(twin.get_config(), layer.get_config())

    def test_classes_of_a_program(self):
        @keras.saving.register_keras_serializable(package="mine")
        class Scaled(keras.layers.Layer):
            def __init__(self, factor, **options):
                super().__init__(**options)
                self.factor = factor

            def call(self, x):
                return x * self.factor

            def get_config(self):
                return super().get_config() | {"factor": self.factor}

        @keras.saving.register_keras_serializable("mine", "off_by")
        def off_by(y_true, y_pred):
            return tf.abs(y_true - y_pred)

        try:
            config = keras.layers.serialize(Scaled(3.0, name="s"))
            self.assertEqual((config["class_name"], config["registered_name"]), ("Scaled", "mine>Scaled"))
            again = keras.layers.deserialize(config)
            self.assertEqual((type(again), again.factor, again.name), (Scaled, 3.0, "s"))
            self.assertEqual(keras.saving.get_registered_name(Scaled), "mine>Scaled")
            self.assertIs(keras.saving.get_registered_object("mine>off_by"), off_by)
            self.assertIs(keras.losses.get("mine>off_by"), off_by)
            model = keras.Sequential([keras.Input((3,)), layers.Dense(3)])
            model.compile("sgd", "mine>off_by", metrics=["mine>off_by"])
            values = model.evaluate(A[:, :3], B[:, :3], verbose=0, return_dict=True)
            expected = np.abs(model.predict(A[:, :3], verbose=0) - B[:, :3]).mean()
            np.testing.assert_allclose([values["loss"], values["off_by"]], [expected] * 2, rtol=1e-5)
            made = keras.saving.serialize_keras_object(off_by)
            self.assertEqual((made["class_name"], made["config"]), ("function", "mine>off_by"))
            self.assertIs(keras.saving.deserialize_keras_object(made), off_by)
        finally:
            for name in ("mine>Scaled", "mine>off_by"):
                keras.saving.get_custom_objects().pop(name)
        with self.assertRaisesRegex(TypeError, "'Scaled' of the module .* is not known. Register it"):
            keras.layers.deserialize(config)
        self.assertEqual(keras.layers.deserialize(config, custom_objects={"Scaled": Scaled}).factor, 3.0)
        with keras.saving.custom_object_scope({"Scaled": Scaled}):
            self.assertEqual(keras.layers.deserialize(config | {"registered_name": "Scaled"}).factor, 3.0)
        nested = {"a": [1, 2.5, None], "b": np.array([1, 2]), "c": b"x", "d": tf.constant([1.0])}
        back = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(nested))
        self.assertEqual((back["a"], back["b"].tolist(), back["c"], back["d"].numpy().tolist()), ([1, 2.5, None], [1, 2], b"x", [1.0]))
        with self.assertRaisesRegex(TypeError, "a lambda has no name"):
            keras.saving.serialize_keras_object(lambda x: x)
        with self.assertRaisesRegex(ValueError, "wgrad has no keras.layers.FlaxLayer"):
            keras.saving.deserialize_keras_object({"module": "keras.layers", "class_name": "FlaxLayer", "config": {}})

    def test_models_come_back(self):
        stack = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dense(1)], name="stack")
        again = keras.Sequential.from_config(stack.get_config())
        self.assertEqual([layer.name for layer in again.layers], [layer.name for layer in stack.layers])
        again.set_weights(stack.get_weights())
        x = np.linspace(0, 1, 8).reshape(2, 4).astype("float32")
        np.testing.assert_allclose(again.predict(x, verbose=0), stack.predict(x, verbose=0))
        symbol = keras.Input((4,))
        model = keras.Model(symbol, layers.Dense(2)(symbol))
        config = keras.saving.serialize_keras_object(model)
        twin = keras.saving.deserialize_keras_object(config)
        twin.set_weights(model.get_weights())
        np.testing.assert_allclose(twin.predict(x, verbose=0), model.predict(x, verbose=0))


class Others(unittest.TestCase):
    def test_discretization_learns(self):
        data = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]], "float32")
        for given in (data, tf.data.Dataset.from_tensor_slices(data).batch(1)):
            layer = layers.Discretization(num_bins=4)
            with self.assertRaisesRegex(ValueError, "Call adapt with data first"):
                layer(data)
            layer.adapt(given)
            np.testing.assert_allclose(layer.bin_boundaries, [0.0, 0.5, 1.3], rtol=1e-6)
            np.testing.assert_array_equal(layer(np.array([[-1.0, 0.2, 2.0, 5.0]])).numpy(), [[0, 1, 3, 3]])
        model = keras.Sequential([keras.Input((4,)), layer])
        layer.adapt(data + 10)
        np.testing.assert_array_equal(model.predict(np.array([[9.0, 10.2, 12, 15]]), verbose=0), [[0, 1, 3, 3]])
        with self.assertRaisesRegex(ValueError, "give one of them"):
            layers.Discretization()

    def test_a_summary_has_the_optimizer(self):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
        model.compile("adam", "mse")
        lines = []
        model.summary(print_fn=lines.append)
        self.assertIn(" Total params: 5 (20.00 B)", lines[0])
        self.assertNotIn("Optimizer params", lines[0])
        model.fit(np.ones((4, 4)), np.ones((4, 1)), verbose=0)
        lines = []
        model.summary(print_fn=lines.append)
        for line in (
            " Total params: 17 (72.00 B)", " Trainable params: 5 (20.00 B)", " Non-trainable params: 0 (0.00 B)",
            " Optimizer params: 12 (52.00 B)",
        ):
            self.assertIn(line, lines[0].split("\n"))

    def test_channels_first(self):
        for make, said in (
            (lambda: layers.Conv2D(4, 3, data_format="channels_first"), r"Conv2D: .*Permute\(\(2, 3, 1\)\) in front .* Permute\(\(3, 1, 2\)\)"),
            (lambda: layers.MaxPooling1D(2, data_format="channels_first"), r"Permute\(\(2, 1\)\)"),
            (lambda: layers.GlobalAveragePooling3D("channels_first"), r"Permute\(\(2, 3, 4, 1\)\)"),
            (lambda: keras.config.set_image_data_format("channels_first"), "Use 'channels_last'"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                make()
        x = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
        first = layers.Permute((3, 1, 2))(layers.MaxPooling2D(2)(layers.Permute((2, 3, 1))(x))).numpy()
        np.testing.assert_array_equal(first, x[:, :, :4, :4].reshape(2, 3, 2, 2, 2, 2).max((3, 5)))

    def test_input_specs(self):
        class Flat(keras.layers.Layer):
            def __init__(self):
                super().__init__(name="flat")
                self.input_spec = layers.InputSpec(ndim=2, axes={-1: 3})

            def call(self, x):
                return x

        self.assertEqual(Flat()(np.ones((2, 3))).shape, (2, 3))
        for shape, said in (((3,), r"Input 0 of layer 'flat' .* expected ndim=2, found ndim=1"), ((2, 4), "expected axis -1 .* value 3")):
            with self.assertRaisesRegex(ValueError, said):
                Flat()(np.ones(shape))
        self.assertEqual(repr(layers.InputSpec(shape=(None, 2))), "InputSpec(shape=(None, 2), ndim=2)")

    def test_pipelines_and_wrappers(self):
        images = np.arange(48, dtype="float32").reshape(1, 4, 4, 3)
        row = layers.Pipeline([layers.Rescaling(0.5), layers.CenterCrop(2, 2)])
        np.testing.assert_allclose(row(images).numpy(), images[:, 1:3, 1:3] * 0.5)
        again = keras.layers.deserialize(keras.layers.serialize(row))
        np.testing.assert_allclose(again(images).numpy(), row(images).numpy())

        stretched = layers.AutoContrast(value_range=(0, 1))(np.array([[[[2.0, 5], [4, 5]], [[3, 5], [6, 5]]]], "float32")).numpy()
        np.testing.assert_allclose(stretched[0, ..., 0], [[0, 0.5], [0.25, 1]])
        np.testing.assert_allclose(stretched[0, ..., 1], 5)
        embedding = layers.ReversibleEmbedding(5, 3, logit_soft_cap=2.0, mask_zero=True)
        embedding = keras.layers.deserialize(keras.layers.serialize(embedding))
        vectors = embedding(np.array([[1, 0]]))
        table = embedding.embeddings.numpy()
        np.testing.assert_allclose(vectors.numpy(), table[[[1, 0]]])
        np.testing.assert_array_equal(vectors._keras_mask.numpy(), [[True, False]])
        logits = embedding(np.ones((1, 2, 3), "float32"), reverse=True).numpy()
        np.testing.assert_allclose(logits, np.tanh(np.ones((1, 2, 3)) @ table.T / 2) * 2, rtol=1e-5)
        model = keras.Sequential([keras.Input((4, 4, 3)), layers.AutoContrast(), row])
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "row.keras"))
            loaded = keras.models.load_model(os.path.join(folder, "row.keras"))
        np.testing.assert_allclose(loaded.predict(images, verbose=0), model.predict(images, verbose=0))

        class Twice(layers.Wrapper):
            def call(self, x):
                return self.layer(self.layer(x))

        wrapper = Twice(layers.Dense(4, use_bias=False))
        x = np.ones((2, 4), "float32")
        np.testing.assert_allclose(wrapper(x).numpy(), x @ wrapper.layer.kernel.numpy() @ wrapper.layer.kernel.numpy(), rtol=1e-5)
        self.assertEqual(Twice.from_config(wrapper.get_config()).layer.units, 4)

    def test_settings_and_helpers(self):
        self.assertEqual((keras.config.floatx(), keras.backend.floatx(), keras.config.epsilon()), ("float32", "float32", 1e-7))
        self.assertEqual((keras.config.image_data_format(), keras.backend.image_data_format()), ("channels_last", "channels_last"))
        self.assertEqual(keras.utils.standardize_dtype(tf.float32), "float32")
        with self.assertRaisesRegex(ValueError, "set_floatx: float64"):
            keras.config.set_floatx("float64")
        symbol = keras.Input((2,))
        self.assertTrue(keras.utils.is_keras_tensor(symbol))
        self.assertEqual([id(x) for x in keras.utils.get_source_inputs(layers.Dense(2)(symbol))], [id(symbol)])
        self.assertEqual(keras.tree.map_structure(lambda x: x + 1, {"a": [1, 2]}), {"a": [2, 3]})
        self.assertEqual(keras.tree.lists_to_tuples({"a": [1, [2]]}), {"a": (1, (2,))})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "image.png")
            keras.utils.save_img(path, np.arange(12, dtype="float32").reshape(2, 2, 3))
            np.testing.assert_array_equal(
                keras.utils.load_img(path), (np.arange(12).reshape(2, 2, 3) / 11 * 255).astype("float32").astype("uint8")
            )
            drawing = os.path.join(folder, "model.svg")
            keras.utils.plot_model(keras.Sequential([symbol, layers.Dense(2)]), drawing)
            with open(drawing, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())
            with self.assertRaisesRegex(ValueError, "must end in .svg"):
                keras.utils.plot_model(keras.Sequential([symbol, layers.Dense(2)]), "model.png")

    def test_averages_are_swapped(self):
        x = np.linspace(-1, 1, 8).reshape(4, 2).astype("float32")
        y = x.sum(1, keepdims=True)
        for swap in (False, True):
            model = keras.Sequential([keras.Input((2,)), layers.Dense(1, kernel_initializer="zeros")])
            model.compile(keras.optimizers.SGD(0.2, use_ema=True, ema_momentum=0.5), "mse")
            callback = keras.callbacks.SwapEMAWeights(swap_on_epoch=swap)
            logs = model.fit(x, y, epochs=3, batch_size=4, validation_data=(x, y), verbose=0, callbacks=[callback]).history
            np.testing.assert_allclose(logs["loss"], [1.6326531, 0.7405078, 0.3358654], rtol=1e-5)
            np.testing.assert_allclose(logs["val_loss"], [0.7405078, 0.5184480, 0.3082110], rtol=1e-5)
            np.testing.assert_allclose(model.get_weights()[0], [[0.565513], [0.565513]], rtol=1e-5)
        model.compile("sgd", "mse")
        with self.assertRaisesRegex(ValueError, "make it with use_ema=True"):
            model.evaluate(x, y, verbose=0, callbacks=[keras.callbacks.SwapEMAWeights()])

    def test_lists_of_callbacks(self):
        seen = []

        class Notes(keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                seen.append((epoch, logs["loss"], self.params["epochs"]))

        model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
        all_of_them = keras.callbacks.CallbackList([Notes()], add_history=True, model=model, epochs=2)
        all_of_them.on_train_begin()
        for epoch in range(2):
            all_of_them.on_epoch_end(epoch, {"loss": 0.5 * epoch})
        self.assertEqual(seen, [(0, 0.0, 2), (1, 0.5, 2)])
        self.assertEqual((model.history.epoch, model.history.history), ([0, 1], {"loss": [0.0, 0.5]}))


if __name__ == "__main__":
    unittest.main()
