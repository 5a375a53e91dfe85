"""Programs as the users of keras.io write them, with small data made by NumPy. Only the imports differ from Keras."""

import os
import re
import string
import tempfile
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers, ops


def random(seed=0):
    return np.random.default_rng(seed)


def pictures(count, size=12, classes=4, seed=0):
    """Noisy pictures of some patterns, and which pattern it is."""
    patterns = random(99).random((classes, size, size)) > 0.6
    labels = random(seed).integers(0, classes, count)
    noise = random(seed + 1).random((count, size, size))
    return (0.7 * patterns[labels] + 0.3 * noise).astype("float32")[..., None], labels


class Vision(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(7)

    def test_a_convnet_classifies_pictures(self):
        x_train, y_train = pictures(256)
        x_test, y_test = pictures(64, seed=50)
        model = keras.Sequential(
            [
                keras.Input(shape=(12, 12, 1)),
                layers.Conv2D(8, kernel_size=(3, 3), activation="relu"),
                layers.MaxPooling2D(pool_size=(2, 2)),
                layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
                layers.Flatten(),
                layers.Dropout(0.2),
                layers.Dense(4, activation="softmax"),
            ]
        )
        self.assertEqual(model.count_params(), (9 * 8 + 8) + (9 * 8 * 16 + 16) + (144 * 4 + 4))
        model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.Adam(0.005), metrics=["accuracy"])
        y = keras.utils.to_categorical(y_train, 4)
        model.fit(x_train, y, batch_size=32, epochs=6, validation_split=0.1, verbose=0)
        loss, accuracy = model.evaluate(x_test, keras.utils.to_categorical(y_test, 4), verbose=0)
        self.assertGreater(accuracy, 0.95)
        self.assertLess(loss, 0.5)
        self.assertEqual([layer.name for layer in model.layers][:2], ["conv2d", "max_pooling2d"])

    def test_a_u_net_segments_pictures(self):
        def unet(size, classes):
            inputs = keras.Input(shape=size + (1,))
            x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs)
            x = layers.BatchNormalization()(x)
            x = layers.Activation("relu")(x)
            previous = x
            for filters in [8, 16]:
                x = layers.Activation("relu")(x)
                x = layers.SeparableConv2D(filters, 3, padding="same")(x)
                x = layers.BatchNormalization()(x)
                x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
                residual = layers.Conv2D(filters, 1, strides=2, padding="same")(previous)
                x = layers.add([x, residual])
                previous = x
            for filters in [16, 8, 8]:
                x = layers.Activation("relu")(x)
                x = layers.Conv2DTranspose(filters, 3, padding="same")(x)
                x = layers.BatchNormalization()(x)
                x = layers.UpSampling2D(2)(x)
                residual = layers.UpSampling2D(2)(previous)
                residual = layers.Conv2D(filters, 1, padding="same")(residual)
                x = layers.add([x, residual])
                previous = x
            outputs = layers.Conv2D(classes, 3, activation="softmax", padding="same")(x)
            return keras.Model(inputs, outputs)

        model = unet((16, 16), 2)
        self.assertEqual(model.output_shape, (None, 16, 16, 2))
        # A block in the middle of each picture is bright.
        x = random().random((64, 16, 16, 1)).astype("float32") * 0.3
        y = np.zeros((64, 16, 16), "int64")
        for picture, mask, (row, column) in zip(x, y, random(1).integers(0, 8, (64, 2))):
            picture[row : row + 8, column : column + 8] += 0.7
            mask[row : row + 8, column : column + 8] = 1
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        history = model.fit(x, y, batch_size=16, epochs=8, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.9)

    def test_transfer_learning_freezes_a_base(self):
        x, labels = pictures(128)
        base = keras.Sequential(
            [keras.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(), layers.GlobalAveragePooling2D()],
            name="base",
        )
        pretrained = keras.Sequential([base, layers.Dense(4)])
        pretrained.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        pretrained.fit(x, labels, epochs=2, verbose=0)

        base.trainable = False
        inputs = keras.Input(shape=(12, 12, 1))
        scaled = layers.Rescaling(scale=2.0, offset=-1.0)(inputs)
        features = base(scaled, training=False)
        outputs = layers.Dense(1)(layers.Dropout(0.1)(features))
        model = keras.Model(inputs, outputs)
        self.assertEqual((len(model.weights), len(model.trainable_weights)), (8, 2))
        before = [weight.copy() for weight in base.get_weights()]
        target = (labels > 1).astype("float32")[:, None]
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(0.01), loss, metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)])
        history = model.fit(x, target, epochs=4, verbose=0).history
        self.assertLess(history["loss"][-1], history["loss"][0])
        for old, new in zip(before, base.get_weights()):
            np.testing.assert_array_equal(old, new)
        # Fine-tuning of the whole model, with a small rate.
        base.trainable = True
        model.compile(keras.optimizers.Adam(1e-3), loss)
        self.assertEqual(len(model.trainable_weights), 6)
        model.fit(x, target, epochs=1, verbose=0)
        self.assertFalse(np.array_equal(before[0], base.get_weights()[0]))

    def test_features_of_layers_in_the_middle(self):
        inputs = keras.Input((8, 8, 3))
        x = layers.Conv2D(4, 3, activation="relu", name="first")(inputs)
        x = layers.Conv2D(6, 3, activation="relu", name="second")(x)
        model = keras.Model(inputs, layers.Dense(2)(layers.Flatten()(x)))
        extractor = keras.Model(inputs=model.inputs, outputs=[layer.output for layer in model.layers[1:]])
        features = extractor(np.ones((2, 8, 8, 3), "float32"))
        self.assertEqual([tuple(f.shape) for f in features], [(2, 6, 6, 4), (2, 4, 4, 6), (2, 96), (2, 2)])
        self.assertEqual(tuple(model.get_layer("second").output.shape), (None, 4, 4, 6))

    def test_siamese_networks_learn_a_distance_by_triplets(self):
        embedding = keras.Sequential([layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(8)], name="embedding")

        class DistanceLayer(layers.Layer):
            def call(self, anchor, positive, negative):
                ap = ops.sum(ops.square(anchor - positive), -1)
                an = ops.sum(ops.square(anchor - negative), -1)
                return ap, an

        shape = (12, 12, 1)
        anchor, positive, negative = (keras.Input(shape, name=name) for name in ("anchor", "positive", "negative"))
        distances = DistanceLayer()(embedding(anchor), embedding(positive), embedding(negative))
        network = keras.Model(inputs=[anchor, positive, negative], outputs=distances)

        class SiameseModel(keras.Model):
            def __init__(self, siamese_network, margin=0.5):
                super().__init__()
                self.siamese_network = siamese_network
                self.margin = margin
                self.loss_tracker = keras.metrics.Mean(name="loss")

            def call(self, inputs):
                return self.siamese_network(inputs)

            def train_step(self, data):
                with tf.GradientTape() as tape:
                    loss = self._compute_loss(data)
                gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
                self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
                self.loss_tracker.update_state(loss)
                return {"loss": self.loss_tracker.result()}

            def test_step(self, data):
                self.loss_tracker.update_state(self._compute_loss(data))
                return {"loss": self.loss_tracker.result()}

            def _compute_loss(self, data):
                ap_distance, an_distance = self.siamese_network(data)
                return tf.maximum(ap_distance - an_distance + self.margin, 0.0)

            @property
            def metrics(self):
                return [self.loss_tracker]

        first, second = pictures(400, seed=3), pictures(400, seed=30)
        by_label = lambda labels, label: np.flatnonzero(labels == label)
        places = [
            (at, random(at).choice(by_label(second[1], label)), random(at).choice(np.flatnonzero(second[1] != label)))
            for at, label in enumerate(first[1][:128])
        ]
        a, p, n = (np.array(column) for column in zip(*places))
        dataset = tf.data.Dataset.from_tensor_slices((first[0][a], second[0][p], second[0][n])).batch(32)
        model = SiameseModel(network)
        model.compile(optimizer=keras.optimizers.Adam(0.001))
        history = model.fit(dataset, epochs=6, verbose=0).history
        self.assertLess(history["loss"][-1], 0.2 * history["loss"][0] + 0.05)
        ap, an = network([first[0][a], second[0][p], second[0][n]])
        self.assertGreater(float(np.mean(ap.numpy() < an.numpy())), 0.95)


class Functionals(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(3)

    def test_shared_layers_and_residual_blocks(self):
        shared = layers.Embedding(50, 8)
        text_a = keras.Input(shape=(None,), dtype="int32")
        text_b = keras.Input(shape=(None,), dtype="int32")
        encoded = [shared(text_a), shared(text_b)]
        self.assertEqual([tuple(x.shape) for x in encoded], [(None, None, 8)] * 2)
        model = keras.Model([text_a, text_b], layers.Concatenate(axis=1)(encoded))
        self.assertEqual(model.count_params(), 400)

        inputs = keras.Input(shape=(16, 16, 3), name="img")
        x = layers.Conv2D(8, 3, activation="relu")(inputs)
        block_1 = layers.MaxPooling2D(3)(x)
        x = layers.Conv2D(8, 3, activation="relu", padding="same")(block_1)
        block_2 = layers.add([x, block_1])
        x = layers.GlobalAveragePooling2D()(block_2)
        outputs = layers.Dense(10)(layers.Dropout(0.5)(x))
        resnet = keras.Model(inputs, outputs, name="toy_resnet")
        self.assertEqual(resnet.count_params(), (27 * 8 + 8) + (72 * 8 + 8) + (8 * 10 + 10))
        self.assertEqual(resnet.name, "toy_resnet")
        self.assertEqual(resnet.layers[0].name, "img")

    def test_several_inputs_and_outputs_by_name(self):
        num_tags, num_words, num_departments = 4, 60, 3
        title_input = keras.Input(shape=(None,), name="title")
        body_input = keras.Input(shape=(None,), name="body")
        tags_input = keras.Input(shape=(num_tags,), name="tags")
        title = layers.LSTM(8)(layers.Embedding(num_words, 8)(title_input))
        body = layers.LSTM(4)(layers.Embedding(num_words, 8)(body_input))
        x = layers.concatenate([title, body, tags_input])
        priority_pred = layers.Dense(1, name="priority")(x)
        department_pred = layers.Dense(num_departments, name="department")(x)
        model = keras.Model(
            inputs=[title_input, body_input, tags_input],
            outputs={"priority": priority_pred, "department": department_pred},
        )
        model.compile(
            optimizer=keras.optimizers.RMSprop(0.01),
            loss={
                "priority": keras.losses.BinaryCrossentropy(from_logits=True),
                "department": keras.losses.CategoricalCrossentropy(from_logits=True),
            },
            loss_weights={"priority": 1.0, "department": 0.2},
            metrics={"department": ["accuracy"], "priority": [keras.metrics.BinaryAccuracy(threshold=0.0, name="right")]},
        )
        rows = random()
        tags = rows.integers(2, size=(96, num_tags)).astype("float32")
        data = {"title": rows.integers(num_words, size=(96, 5)), "body": rows.integers(num_words, size=(96, 9)), "tags": tags}
        targets = {"priority": tags[:, :1], "department": np.eye(3)[(tags[:, 1] + tags[:, 2]).astype(int)]}
        history = model.fit(data, targets, epochs=25, batch_size=16, verbose=0).history
        self.assertEqual(
            sorted(history), ["department_accuracy", "department_loss", "loss", "priority_loss", "priority_right"]
        )
        # The total is the weighted sum of the parts.
        total = history["priority_loss"][-1] + 0.2 * history["department_loss"][-1]
        self.assertAlmostEqual(history["loss"][-1], total, places=4)
        self.assertGreater(history["priority_right"][-1], 0.9)
        self.assertGreater(history["department_accuracy"][-1], 0.8)
        predictions = model.predict(data, verbose=0)
        self.assertEqual({key: value.shape for key, value in predictions.items()}, {"priority": (96, 1), "department": (96, 3)})
        results = model.evaluate(data, targets, return_dict=True, verbose=0)
        self.assertGreater(results["priority_right"], 0.9)

    def test_functions_of_symbols(self):
        inputs = keras.Input((4,))
        x = layers.Dense(6)(inputs)
        y = ops.relu(x) - ops.mean(x, axis=-1, keepdims=True)
        z = tf.concat([y, -x[:, :2], x**2.0], axis=-1)
        model = keras.Model(inputs, z)
        data = random().random((3, 4)).astype("float32")
        h = data @ model.layers[1].get_weights()[0]
        wanted = np.concatenate([np.maximum(h, 0) - h.mean(-1, keepdims=True), -h[:, :2], h**2], -1)
        np.testing.assert_allclose(model(data).numpy(), wanted, atol=1e-5)

    def test_structured_data_with_normalized_features(self):
        rows = random()
        age, pressure = rows.normal(50, 10, 200), rows.normal(120, 15, 200)
        kind = rows.integers(0, 3, 200)
        target = ((age > 50) ^ (kind == 1)).astype("float32")
        inputs = {name: keras.Input((1,), name=name) for name in ("age", "pressure", "kind")}
        features = []
        for name, values in (("age", age), ("pressure", pressure)):
            normalizer = layers.Normalization()
            normalizer.adapt(values[:, None])
            features.append(normalizer(inputs[name]))
        features.append(layers.CategoryEncoding(num_tokens=3, output_mode="one_hot")(inputs["kind"]))
        x = layers.Dense(32, activation="relu")(layers.concatenate(features))
        model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
        model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
        data = {"age": age[:, None], "pressure": pressure[:, None], "kind": kind[:, None]}
        dataset = tf.data.Dataset.from_tensor_slices((data, target)).shuffle(200, seed=1).batch(32)
        history = model.fit(dataset, epochs=20, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.9)
        normalized = normalizer(pressure[:, None].astype("float32")).numpy()
        np.testing.assert_allclose([normalized.mean(), normalized.std()], [0, 1], atol=1e-3)


class Sequences(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(5)

    def test_timeseries_by_a_convolutional_network(self):
        time = np.linspace(0, 6, 50)
        labels = random().integers(0, 2, 160)
        phase = random(1).random((160, 1)) * 6
        x = np.where(labels[:, None] == 0, np.sin(time + phase), np.sign(np.sin(time + phase)))
        x = (x + random(2).normal(0, 0.1, x.shape)).astype("float32")[..., None]

        def make_model(input_shape):
            input_layer = keras.layers.Input(input_shape)
            conv = input_layer
            for _ in range(3):
                conv = keras.layers.Conv1D(filters=16, kernel_size=3, padding="same")(conv)
                conv = keras.layers.BatchNormalization()(conv)
                conv = keras.layers.ReLU()(conv)
            gap = keras.layers.GlobalAveragePooling1D()(conv)
            return keras.models.Model(inputs=input_layer, outputs=keras.layers.Dense(2, activation="softmax")(gap))

        model = make_model(input_shape=x.shape[1:])
        self.assertEqual(model.count_params(), (3 * 16 + 16) + 2 * (3 * 16 * 16 + 16) + 3 * 64 + 34)
        with tempfile.TemporaryDirectory() as folder:
            best = os.path.join(folder, "best_model.keras")
            callbacks = [
                keras.callbacks.ModelCheckpoint(best, save_best_only=True, monitor="val_loss"),
                keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=20, min_lr=0.0001),
                keras.callbacks.EarlyStopping(monitor="val_loss", patience=50, verbose=0),
            ]
            model.compile(keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
            history = model.fit(x, labels, batch_size=32, epochs=15, callbacks=callbacks, validation_split=0.2, verbose=0)
            again = keras.models.load_model(best)
        self.assertGreater(max(history.history["val_sparse_categorical_accuracy"]), 0.9)
        loss, accuracy = again.evaluate(x[128:], labels[128:], verbose=0)
        self.assertAlmostEqual(loss, min(history.history["val_loss"]), places=3)

    def test_reviews_by_a_bidirectional_lstm(self):
        # Reviews with more words of the upper half of the vocabulary are good ones.
        lists = [random(at).integers(1, 40, random(at).integers(5, 12)) for at in range(200)]
        labels = np.array([np.mean(words >= 20) > 0.5 for words in lists]).astype("float32")
        x = keras.utils.pad_sequences(lists, maxlen=12)
        self.assertEqual(x.shape, (200, 12))
        inputs = keras.Input(shape=(None,), dtype="int32")
        y = layers.Embedding(40, 16)(inputs)
        y = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(y)
        y = layers.Bidirectional(layers.LSTM(8))(y)
        model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(y))
        lstm = lambda size: 2 * 4 * ((size + 8) * 8 + 8)
        self.assertEqual(model.count_params(), 640 + lstm(16) + lstm(16) + 17)
        model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
        history = model.fit(x, labels, batch_size=32, epochs=8, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.9)

    def test_text_classification_from_scratch(self):
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        for kind, words in (("pos", ["good", "great", "fine"]), ("neg", ["bad", "awful", "poor"])):
            os.makedirs(f"{root.name}/{kind}")
            for at in range(80):
                rng = random(at)
                text = [*rng.choice(["It", "was", "a", "film<br />", "movie."], 5), *rng.choice(words, 2)]
                with open(f"{root.name}/{kind}/{at}.txt", "w") as file:
                    file.write(" ".join(text))
        raw_train_ds, raw_val_ds = (
            keras.utils.text_dataset_from_directory(root.name, batch_size=32, validation_split=0.2, subset=subset, seed=1337)
            for subset in ("training", "validation")
        )

        def custom_standardization(input_data):
            lowercase = tf.strings.lower(input_data)
            stripped_html = tf.strings.regex_replace(lowercase, "<br />", " ")
            return tf.strings.regex_replace(stripped_html, f"[{re.escape(string.punctuation)}]", "")

        vectorize_layer = keras.layers.TextVectorization(
            standardize=custom_standardization, max_tokens=200, output_mode="int", output_sequence_length=20
        )
        vectorize_layer.adapt(raw_train_ds.map(lambda x, y: x))

        def vectorize_text(text, label):
            text = tf.expand_dims(text, -1)
            return vectorize_layer(text), label

        train_ds = raw_train_ds.map(vectorize_text).cache().prefetch(buffer_size=10)
        val_ds = raw_val_ds.map(vectorize_text).cache().prefetch(buffer_size=10)
        inputs = keras.Input(shape=(None,), dtype="int64")
        x = layers.Embedding(200, 16)(inputs)
        x = layers.Dropout(0.5)(x)
        x = layers.Conv1D(32, 7, padding="valid", activation="relu", strides=3)(x)
        x = layers.GlobalMaxPooling1D()(x)
        x = layers.Dense(32, activation="relu")(x)
        predictions = layers.Dense(1, activation="sigmoid", name="predictions")(x)
        model = keras.Model(inputs, predictions)
        model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"])
        history = model.fit(train_ds, validation_data=val_ds, epochs=6, verbose=0).history
        self.assertGreater(history["val_accuracy"][-1], 0.95)

        inputs = keras.Input(shape=(1,), dtype="string")
        end_to_end_model = keras.Model(inputs, model(vectorize_layer(inputs)))
        end_to_end_model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
        self.assertEqual(end_to_end_model.evaluate(raw_val_ds, verbose=0)[1], model.evaluate(val_ds, verbose=0)[1])

    def test_text_by_a_transformer_block(self):
        class TransformerBlock(layers.Layer):
            def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
                super().__init__()
                self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
                self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
                self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
                self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
                self.dropout1 = layers.Dropout(rate)
                self.dropout2 = layers.Dropout(rate)

            def call(self, inputs):
                attn_output = self.att(inputs, inputs)
                attn_output = self.dropout1(attn_output)
                out1 = self.layernorm1(inputs + attn_output)
                ffn_output = self.dropout2(self.ffn(out1))
                return self.layernorm2(out1 + ffn_output)

        class TokenAndPositionEmbedding(layers.Layer):
            def __init__(self, maxlen, vocab_size, embed_dim):
                super().__init__()
                self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
                self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

            def call(self, x):
                maxlen = ops.shape(x)[-1]
                positions = ops.arange(start=0, stop=maxlen, step=1)
                return self.token_emb(x) + self.pos_emb(positions)

        maxlen, vocab_size, embed_dim = 10, 30, 16
        x = random().integers(0, vocab_size, (256, maxlen))
        # Whether a word of the first three occurs.
        y = (x < 3).any(1).astype("int64")
        inputs = layers.Input(shape=(maxlen,))
        z = TokenAndPositionEmbedding(maxlen, vocab_size, embed_dim)(inputs)
        z = TransformerBlock(embed_dim, num_heads=2, ff_dim=16)(z)
        z = layers.GlobalAveragePooling1D()(z)
        z = layers.Dropout(0.1)(z)
        outputs = layers.Dense(2, activation="softmax")(layers.Dense(16, activation="relu")(z))
        model = keras.Model(inputs=inputs, outputs=outputs)
        attention = 3 * (16 * 32 + 32) + (32 * 16 + 16)
        block = attention + 2 * (16 * 16 + 16) + 2 * 32
        self.assertEqual(model.count_params(), (30 + 10) * 16 + block + (16 * 16 + 16) + (16 * 2 + 2))
        model.compile(keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        history = model.fit(x, y, batch_size=32, epochs=10, verbose=0).history
        self.assertGreater(history["accuracy"][-1], 0.9)

    def test_sequence_to_sequence_with_states(self):
        # The target is the reversed input; it is decoded a character at a time.
        tokens, size, length = 6, 32, 4
        codes = random().integers(1, tokens, (400, length))
        encoder_data = np.eye(tokens, dtype="float32")[codes]
        answers = codes[:, ::-1]
        decoder_data = np.eye(tokens, dtype="float32")[np.concatenate([np.zeros((400, 1), int), answers[:, :-1]], 1)]

        encoder_inputs = keras.Input(shape=(None, tokens))
        encoder = keras.layers.LSTM(size, return_state=True)
        encoder_outputs, state_h, state_c = encoder(encoder_inputs)
        encoder_states = [state_h, state_c]
        decoder_inputs = keras.Input(shape=(None, tokens))
        decoder_lstm = keras.layers.LSTM(size, return_sequences=True, return_state=True)
        decoder_outputs, _, _ = decoder_lstm(decoder_inputs, initial_state=encoder_states)
        decoder_dense = keras.layers.Dense(tokens, activation="softmax")
        decoder_outputs = decoder_dense(decoder_outputs)
        model = keras.Model([encoder_inputs, decoder_inputs], decoder_outputs)
        lstm = 4 * ((tokens + size) * size + size)
        self.assertEqual(model.count_params(), 2 * lstm + size * tokens + tokens)
        model.compile(keras.optimizers.Adam(0.02), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit([encoder_data, decoder_data], answers, batch_size=50, epochs=25, verbose=0)

        # Models for sampling, of the same layers.
        encoder_model = keras.Model(encoder_inputs, encoder_states)
        state_inputs = [keras.Input(shape=(size,)), keras.Input(shape=(size,))]
        outputs, h, c = decoder_lstm(decoder_inputs, initial_state=state_inputs)
        decoder_model = keras.Model([decoder_inputs] + state_inputs, [decoder_dense(outputs), h, c])
        states = encoder_model.predict(encoder_data[:100], verbose=0)
        target = np.zeros((100, 1, tokens), "float32")
        target[:, 0, 0] = 1.0
        said = []
        for _ in range(length):
            probabilities, *states = decoder_model.predict([target] + states, verbose=0)
            said.append(probabilities[:, -1].argmax(-1))
            target = np.eye(tokens, dtype="float32")[said[-1]][:, None]
        self.assertGreater(np.mean(np.stack(said, 1) == answers[:100]), 0.9)

    def test_masks_reach_layers_that_use_them(self):
        embedding, lstm = layers.Embedding(10, 4, mask_zero=True), layers.LSTM(3)

        class Encoder(keras.Model):
            def __init__(self):
                super().__init__()
                self.embedding, self.dropout, self.lstm = embedding, layers.Dropout(0.5), lstm

            def call(self, x):
                return self.lstm(self.dropout(self.embedding(x)))

        short, padded = np.array([[1, 2, 3]]), np.array([[1, 2, 3, 0, 0]])
        eager = Encoder()
        np.testing.assert_allclose(eager(short).numpy(), eager(padded).numpy(), atol=1e-6)
        stack = keras.Sequential([embedding, lstm])
        np.testing.assert_allclose(stack(short).numpy(), stack(padded).numpy(), atol=1e-6)
        unmasked = lstm(tf.constant(embedding(padded).numpy()))
        self.assertGreater(np.abs(unmasked.numpy() - eager(padded).numpy()).max(), 1e-4)

        # A causal attention does not look ahead.
        attention = layers.MultiHeadAttention(num_heads=2, key_dim=4)
        x = random().random((1, 5, 8)).astype("float32")
        y, scores = attention(x, x, use_causal_mask=True, return_attention_scores=True)
        self.assertEqual(tuple(scores.shape), (1, 2, 5, 5))
        np.testing.assert_allclose(np.triu(scores.numpy()[0, 0], 1), 0, atol=1e-7)
        changed = x.copy()
        changed[0, 4] = 9.0
        np.testing.assert_allclose(attention(changed, changed, use_causal_mask=True).numpy()[0, :4], y.numpy()[0, :4], atol=1e-5)


class Generative(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(11)

    def test_a_variational_autoencoder(self):
        class Sampling(layers.Layer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.seed_generator = keras.random.SeedGenerator(1337)

            def call(self, inputs):
                z_mean, z_log_var = inputs
                batch, dim = ops.shape(z_mean)[0], ops.shape(z_mean)[1]
                epsilon = keras.random.normal(shape=(batch, dim), seed=self.seed_generator)
                return z_mean + ops.exp(0.5 * z_log_var) * epsilon

        latent_dim = 2
        encoder_inputs = keras.Input(shape=(12, 12, 1))
        x = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(encoder_inputs)
        x = layers.Dense(16, activation="relu")(layers.Flatten()(x))
        z_mean = layers.Dense(latent_dim, name="z_mean")(x)
        z_log_var = layers.Dense(latent_dim, name="z_log_var")(x)
        z = Sampling()([z_mean, z_log_var])
        encoder = keras.Model(encoder_inputs, [z_mean, z_log_var, z], name="encoder")

        latent_inputs = keras.Input(shape=(latent_dim,))
        x = layers.Dense(6 * 6 * 8, activation="relu")(latent_inputs)
        x = layers.Reshape((6, 6, 8))(x)
        x = layers.Conv2DTranspose(8, 3, activation="relu", strides=2, padding="same")(x)
        decoder_outputs = layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x)
        decoder = keras.Model(latent_inputs, decoder_outputs, name="decoder")

        class VAE(keras.Model):
            def __init__(self, encoder, decoder, **kwargs):
                super().__init__(**kwargs)
                self.encoder = encoder
                self.decoder = decoder
                self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
                self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
                self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

            @property
            def metrics(self):
                return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.kl_loss_tracker]

            def train_step(self, data):
                with tf.GradientTape() as tape:
                    z_mean, z_log_var, z = self.encoder(data)
                    reconstruction = self.decoder(z)
                    reconstruction_loss = ops.mean(
                        ops.sum(keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2))
                    )
                    kl_loss = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
                    kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
                    total_loss = reconstruction_loss + kl_loss
                grads = tape.gradient(total_loss, self.trainable_weights)
                self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
                self.total_loss_tracker.update_state(total_loss)
                self.reconstruction_loss_tracker.update_state(reconstruction_loss)
                self.kl_loss_tracker.update_state(kl_loss)
                return {
                    "loss": self.total_loss_tracker.result(),
                    "reconstruction_loss": self.reconstruction_loss_tracker.result(),
                    "kl_loss": self.kl_loss_tracker.result(),
                }

        digits, _ = pictures(192)
        vae = VAE(encoder, decoder)
        vae.compile(optimizer=keras.optimizers.Adam(0.01))
        history = vae.fit(digits, epochs=8, batch_size=32, verbose=0).history
        self.assertEqual(sorted(history), ["kl_loss", "loss", "reconstruction_loss"])
        self.assertLess(history["loss"][-1], 0.92 * history["loss"][0])
        self.assertAlmostEqual(history["loss"][-1], history["reconstruction_loss"][-1] + history["kl_loss"][-1], places=2)
        means, _, _ = vae.encoder.predict(digits, verbose=0)
        self.assertEqual(means.shape, (192, 2))
        self.assertEqual(vae.decoder.predict(np.zeros((3, 2)), verbose=0).shape, (3, 12, 12, 1))

    def test_a_dcgan_with_two_optimizers(self):
        discriminator = keras.Sequential(
            [
                keras.Input(shape=(12, 12, 1)),
                layers.Conv2D(8, kernel_size=4, strides=2, padding="same"),
                layers.LeakyReLU(negative_slope=0.2),
                layers.Flatten(),
                layers.Dropout(0.2),
                layers.Dense(1, activation="sigmoid"),
            ],
            name="discriminator",
        )
        latent_dim = 8
        generator = keras.Sequential(
            [
                keras.Input(shape=(latent_dim,)),
                layers.Dense(6 * 6 * 8),
                layers.Reshape((6, 6, 8)),
                layers.Conv2DTranspose(8, kernel_size=4, strides=2, padding="same"),
                layers.LeakyReLU(negative_slope=0.2),
                layers.Conv2D(1, kernel_size=5, padding="same", activation="sigmoid"),
            ],
            name="generator",
        )
        self.assertEqual(generator.count_params(), (8 * 288 + 288) + (16 * 64 + 8) + (25 * 8 + 1))

        class GAN(keras.Model):
            def __init__(self, discriminator, generator, latent_dim):
                super().__init__()
                self.discriminator = discriminator
                self.generator = generator
                self.latent_dim = latent_dim
                self.seed_generator = keras.random.SeedGenerator(1337)

            def compile(self, d_optimizer, g_optimizer, loss_fn):
                super().compile()
                self.d_optimizer = d_optimizer
                self.g_optimizer = g_optimizer
                self.loss_fn = loss_fn
                self.d_loss_metric = keras.metrics.Mean(name="d_loss")
                self.g_loss_metric = keras.metrics.Mean(name="g_loss")

            @property
            def metrics(self):
                return [self.d_loss_metric, self.g_loss_metric]

            def train_step(self, real_images):
                batch_size = ops.shape(real_images)[0]
                latent = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
                generated_images = self.generator(latent)
                combined_images = ops.concatenate([generated_images, real_images], axis=0)
                labels = ops.concatenate([ops.ones((batch_size, 1)), ops.zeros((batch_size, 1))], axis=0)
                labels += 0.05 * tf.random.uniform(tf.shape(labels))
                with tf.GradientTape() as tape:
                    predictions = self.discriminator(combined_images, training=True)
                    d_loss = self.loss_fn(labels, predictions)
                grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
                self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
                latent = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
                misleading_labels = ops.zeros((batch_size, 1))
                with tf.GradientTape() as tape:
                    predictions = self.discriminator(self.generator(latent))
                    g_loss = self.loss_fn(misleading_labels, predictions)
                grads = tape.gradient(g_loss, self.generator.trainable_weights)
                self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
                self.d_loss_metric.update_state(d_loss)
                self.g_loss_metric.update_state(g_loss)
                return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}

        class GANMonitor(keras.callbacks.Callback):
            def __init__(self, num_img=3, latent_dim=8):
                super().__init__()
                self.num_img, self.latent_dim, self.seen = num_img, latent_dim, []

            def on_epoch_end(self, epoch, logs=None):
                latent = keras.random.normal(shape=(self.num_img, self.latent_dim), seed=epoch)
                images = self.model.generator(latent) * 255
                self.seen.append((epoch, tuple(images.shape), sorted(logs)))

        images, _ = pictures(128)
        gan = GAN(discriminator=discriminator, generator=generator, latent_dim=latent_dim)
        gan.compile(
            d_optimizer=keras.optimizers.Adam(learning_rate=0.002),
            g_optimizer=keras.optimizers.Adam(learning_rate=0.01),
            loss_fn=keras.losses.BinaryCrossentropy(),
        )
        monitor = GANMonitor()
        before = generator.get_weights()[0].copy()
        history = gan.fit(images, batch_size=32, epochs=10, callbacks=[monitor], verbose=0).history
        self.assertEqual(sorted(history), ["d_loss", "g_loss"])
        self.assertEqual(monitor.seen[-1], (9, (3, 12, 12, 1), ["d_loss", "g_loss"]))
        self.assertFalse(np.allclose(before, generator.get_weights()[0]))
        # It has learned how bright the pictures are.
        latent = random(4).normal(size=(64, latent_dim)).astype("float32")
        self.assertLess(abs(generator.predict(latent, verbose=0).mean() - images.mean()), 0.15)

    def test_a_wgan_with_gradient_penalty(self):
        critic = keras.Sequential([keras.Input((2,)), layers.Dense(32), layers.LeakyReLU(0.2), layers.Dense(1)])
        generator = keras.Sequential([keras.Input((4,)), layers.Dense(32, activation="relu"), layers.Dense(2)])

        class WGAN(keras.Model):
            def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=3, gp_weight=1.0):
                super().__init__()
                self.discriminator = discriminator
                self.generator = generator
                self.latent_dim = latent_dim
                self.d_steps = discriminator_extra_steps
                self.gp_weight = gp_weight

            def compile(self, d_optimizer, g_optimizer):
                super().compile()
                self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

            def gradient_penalty(self, batch_size, real_images, fake_images):
                alpha = tf.random.uniform([batch_size, 1], 0.0, 1.0)
                interpolated = real_images + alpha * (fake_images - real_images)
                with tf.GradientTape() as gp_tape:
                    gp_tape.watch(interpolated)
                    pred = self.discriminator(interpolated, training=True)
                grads = gp_tape.gradient(pred, [interpolated])[0]
                norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1]) + 1e-12)
                return tf.reduce_mean((norm - 1.0) ** 2)

            def train_step(self, real_images):
                batch_size = tf.shape(real_images)[0]
                for _ in range(self.d_steps):
                    latent = tf.random.normal(shape=(batch_size, self.latent_dim))
                    with tf.GradientTape() as tape:
                        fake = self.generator(latent, training=True)
                        fake_logits = self.discriminator(fake, training=True)
                        real_logits = self.discriminator(real_images, training=True)
                        cost = tf.reduce_mean(fake_logits) - tf.reduce_mean(real_logits)
                        d_loss = cost + self.gradient_penalty(batch_size, real_images, fake) * self.gp_weight
                    gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
                    self.d_optimizer.apply_gradients(zip(gradient, self.discriminator.trainable_variables))
                latent = tf.random.normal(shape=(batch_size, self.latent_dim))
                with tf.GradientTape() as tape:
                    g_loss = -tf.reduce_mean(self.discriminator(self.generator(latent, training=True), training=True))
                gradient = tape.gradient(g_loss, self.generator.trainable_variables)
                self.g_optimizer.apply_gradients(zip(gradient, self.generator.trainable_variables))
                return {"d_loss": d_loss, "g_loss": g_loss}

        points = (random().normal(size=(256, 2)) * 0.3 + [2.0, -1.0]).astype("float32")
        wgan = WGAN(critic, generator, latent_dim=4)
        wgan.compile(keras.optimizers.Adam(0.005, beta_1=0.5), keras.optimizers.Adam(0.005, beta_1=0.5))
        wgan.fit(points, batch_size=64, epochs=40, verbose=0)
        made = generator(tf.random.normal((256, 4))).numpy()
        self.assertLess(np.abs(made.mean(0) - [2.0, -1.0]).max(), 0.5)


class Training(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(13)

    def test_knowledge_distillation(self):
        class Distiller(keras.Model):
            def __init__(self, student, teacher):
                super().__init__()
                self.teacher = teacher
                self.student = student

            def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
                super().compile(optimizer=optimizer, metrics=metrics)
                self.student_loss_fn = student_loss_fn
                self.distillation_loss_fn = distillation_loss_fn
                self.alpha = alpha
                self.temperature = temperature

            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False, training=True):
                teacher_pred = self.teacher(x, training=False)
                student_loss = self.student_loss_fn(y, y_pred)
                distillation_loss = self.distillation_loss_fn(
                    ops.softmax(teacher_pred / self.temperature, axis=1),
                    ops.softmax(y_pred / self.temperature, axis=1),
                ) * (self.temperature**2)
                return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

            def call(self, x):
                return self.student(x)

        def network(filters):
            return keras.Sequential(
                [keras.Input((12, 12, 1)), layers.Conv2D(filters, 3, strides=2, activation="relu"), layers.Flatten(), layers.Dense(4)]
            )

        x, y = pictures(192)
        teacher, student = network(12), network(3)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        teacher.compile(keras.optimizers.Adam(0.01), loss, metrics=[keras.metrics.SparseCategoricalAccuracy()])
        teacher.fit(x, y, epochs=6, verbose=0)
        before = teacher.get_weights()
        distiller = Distiller(student=student, teacher=teacher)
        distiller.compile(
            optimizer=keras.optimizers.Adam(0.01),
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
            student_loss_fn=loss,
            distillation_loss_fn=keras.losses.KLDivergence(),
            alpha=0.1,
            temperature=10,
        )
        teacher.trainable = False
        distiller.fit(x, y, epochs=8, verbose=0)
        results = distiller.evaluate(x, y, verbose=0, return_dict=True)
        self.assertGreater(results["sparse_categorical_accuracy"], 0.95)
        np.testing.assert_array_equal(before[0], teacher.get_weights()[0])

    def test_customizing_fit(self):
        class CustomModel(keras.Model):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = self.compute_loss(y=y, y_pred=y_pred)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply(gradients, self.trainable_variables)
                for metric in self.metrics:
                    if metric.name == "loss":
                        metric.update_state(loss)
                    else:
                        metric.update_state(y, y_pred)
                return {m.name: m.result() for m in self.metrics}

        inputs = keras.Input(shape=(4,))
        model = CustomModel(inputs, keras.layers.Dense(1)(inputs))
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse", metrics=["mae"])
        x = random().random((200, 4), dtype="float32")
        y = x.sum(1, keepdims=True)
        history = model.fit(x, y, epochs=12, validation_data=(x, y), verbose=0).history
        self.assertEqual(sorted(history), ["loss", "mae", "val_loss", "val_mae"])
        self.assertLess(history["loss"][-1], 0.05)
        # What an evaluation returns is what the metrics are on these data.
        loss, mae = model.evaluate(x, y, verbose=0)
        errors = model.predict(x, verbose=0) - y
        self.assertAlmostEqual(loss, float((errors**2).mean()), places=4)
        self.assertAlmostEqual(mae, float(np.abs(errors).mean()), places=4)
        self.assertAlmostEqual(history["val_loss"][-1], loss, places=5)

        class LowLevel(keras.Model):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                self.loss_tracker = keras.metrics.Mean(name="loss")
                self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")
                self.loss_fn = keras.losses.MeanSquaredError()

            def train_step(self, data):
                x, y, sample_weight = data if len(data) == 3 else (*data, None)
                with tf.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = self.loss_fn(y, y_pred, sample_weight=sample_weight)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                self.loss_tracker.update_state(loss)
                self.mae_metric.update_state(y, y_pred, sample_weight=sample_weight)
                return {"loss": self.loss_tracker.result(), "mae": self.mae_metric.result()}

            @property
            def metrics(self):
                return [self.loss_tracker, self.mae_metric]

        inputs = keras.Input(shape=(4,))
        model = LowLevel(inputs, keras.layers.Dense(1)(inputs))
        model.compile(optimizer="adam")
        history = model.fit(x, y, sample_weight=np.full(200, 0.5), epochs=3, verbose=0).history
        self.assertEqual(sorted(history), ["loss", "mae"])
        self.assertLess(history["loss"][-1], history["loss"][0])

    def test_layers_and_models_by_subclassing(self):
        class Linear(keras.layers.Layer):
            def __init__(self, units=32, **kwargs):
                super().__init__(**kwargs)
                self.units = units

            def build(self, input_shape):
                self.w = self.add_weight(
                    shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True, regularizer="l2"
                )
                self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

            def call(self, inputs):
                return ops.matmul(inputs, self.w) + self.b

            def get_config(self):
                config = super().get_config()
                config.update({"units": self.units})
                return config

        class ComputeSum(keras.layers.Layer):
            def __init__(self, input_dim):
                super().__init__()
                self.total = self.add_weight(initializer="zeros", shape=(input_dim,), trainable=False)

            def call(self, inputs):
                self.total.assign_add(ops.sum(inputs, axis=0))
                return self.total

        my_sum = ComputeSum(2)
        x = ops.ones((2, 2))
        self.assertEqual(my_sum(x).numpy().tolist(), [2.0, 2.0])
        self.assertEqual(my_sum(x).numpy().tolist(), [4.0, 4.0])
        self.assertEqual((len(my_sum.weights), len(my_sum.non_trainable_weights), my_sum.trainable_weights), (1, 1, []))

        class MLPBlock(keras.layers.Layer):
            def __init__(self):
                super().__init__()
                self.linear_1, self.linear_2, self.linear_3 = Linear(32), Linear(32), Linear(1)

            def call(self, inputs):
                x = keras.activations.relu(self.linear_1(inputs))
                return self.linear_3(keras.activations.relu(self.linear_2(x)))

        mlp = MLPBlock()
        mlp(ops.ones(shape=(3, 64)))
        self.assertEqual((len(mlp.weights), len(mlp.trainable_weights)), (6, 6))
        kernels = [layer.w.numpy() for layer in (mlp.linear_1, mlp.linear_2, mlp.linear_3)]
        self.assertEqual(len(mlp.losses), 3)
        self.assertAlmostEqual(float(sum(mlp.losses)), sum(0.01 * float((w**2).sum()) for w in kernels), places=4)

        class ActivityRegularizationLayer(keras.layers.Layer):
            def __init__(self, rate=1e-2):
                super().__init__()
                self.rate = rate

            def call(self, inputs):
                self.add_loss(self.rate * ops.mean(inputs))
                return inputs

        layer = ActivityRegularizationLayer()
        for _ in range(2):
            # Each call begins a new list.
            layer(ops.ones((1, 1)))
            self.assertEqual([round(float(loss), 6) for loss in layer.losses], [0.01])

        inputs = keras.Input(shape=(3,))
        model = keras.Model(inputs, ActivityRegularizationLayer()(inputs))
        model.compile(optimizer="adam")
        self.assertAlmostEqual(model.evaluate(np.ones((2, 3)), verbose=0), 0.01, places=6)
        model.compile(optimizer="adam", loss="mse")
        self.assertAlmostEqual(model.evaluate(np.ones((2, 3)), np.zeros((2, 3)), verbose=0), 1.01, places=5)

        # A layer comes back from its config, and from a file.
        new_layer = Linear.from_config(Linear(64, name="linear_8").get_config())
        self.assertEqual((new_layer.units, new_layer.name), (64, "linear_8"))
        model = keras.Sequential([keras.Input((3,)), Linear(4), layers.Dense(1)])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own.keras")
            model.save(path)
            again = keras.models.load_model(path, custom_objects={"Linear": Linear})
            x = random().random((5, 3)).astype("float32")
            np.testing.assert_allclose(again(x).numpy(), model(x).numpy(), atol=1e-6)
            with self.assertRaisesRegex(TypeError, "Linear"):
                keras.models.load_model(path)

    def test_metrics_and_losses_of_a_program(self):
        class TruePositives(keras.metrics.Metric):
            def __init__(self, name="positives", **kwargs):
                super().__init__(name=name, **kwargs)
                self.true_positives = self.add_weight(shape=(), initializer="zeros", name="ctp")

            def update_state(self, y_true, y_pred, sample_weight=None):
                y_pred = ops.cast(ops.greater(y_pred, 0.5), "int32")
                values = ops.logical_and(ops.equal(ops.cast(y_true, "int32"), 1), ops.equal(y_pred, 1))
                self.true_positives.assign_add(ops.sum(ops.cast(values, "float32")))

            def result(self):
                return self.true_positives.value

            def reset_state(self):
                self.true_positives.assign(0)

        class CustomMSE(keras.losses.Loss):
            def __init__(self, regularization_factor=0.1, name="custom_mse"):
                super().__init__(name=name)
                self.regularization_factor = regularization_factor

            def call(self, y_true, y_pred):
                mse = ops.mean(ops.square(y_true - y_pred), axis=-1)
                reg = ops.mean(ops.square(0.5 - y_pred), axis=-1)
                return mse + reg * self.regularization_factor

        x = random().random((64, 2), dtype="float32")
        y = (x.sum(1, keepdims=True) > 1).astype("float32")
        model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(1, activation="sigmoid")])
        model.compile(keras.optimizers.Adam(0.05), loss=CustomMSE(), metrics=[TruePositives(), "accuracy"])
        # More than 16 steps, which are traced.
        history = model.fit(x, y, batch_size=2, epochs=5, verbose=0).history
        loss, positives, accuracy = model.evaluate(x, y, verbose=0)
        predictions = model.predict(x, verbose=0)
        self.assertEqual(positives, float(((predictions > 0.5) & (y == 1)).sum()))
        self.assertEqual(len(history["positives"]), 5)
        wanted = ((y - predictions) ** 2 + 0.1 * (0.5 - predictions) ** 2).mean()
        self.assertAlmostEqual(loss, float(wanted), places=4)
        with self.assertRaisesRegex(ValueError, "output 'b'"):
            two = keras.Input((2,))
            keras.Model(two, [layers.Dense(1, name="a")(two), layers.Dense(1, name="c")(two)]).compile("adam", {"b": "mse"})

    def test_writing_your_own_callbacks(self):
        class CustomCallback(keras.callbacks.Callback):
            def __init__(self):
                super().__init__()
                self.said = []

            def __getattribute__(self, name):
                if name.startswith("on_"):
                    kind = name[3:]
                    return lambda *arguments: object.__getattribute__(self, "said").append(
                        (kind, *arguments[:-1], *sorted((arguments[-1] or {})))
                    )
                return object.__getattribute__(self, name)

            def on_train_batch_begin(self, batch, logs=None):
                pass

        model = keras.Sequential([layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.RMSprop(learning_rate=0.1), loss="mse", metrics=["mae"])
        x, y = np.ones((128, 3)), np.ones((128, 1))
        callback = CustomCallback()
        model.fit(x, y, batch_size=64, epochs=1, verbose=0, validation_split=0.5, callbacks=[callback])
        self.assertEqual(
            callback.said,
            [
                ("train_begin",), ("epoch_begin", 0), ("train_batch_begin", 0), ("train_batch_end", 0, "loss", "mae"),
                ("test_begin",), ("test_batch_begin", 0), ("test_batch_end", 0, "loss", "mae"), ("test_end", "loss", "mae"),
                ("epoch_end", 0, "loss", "mae", "val_loss", "val_mae"), ("train_end", "loss", "mae", "val_loss", "val_mae"),
            ],
        )
        callback.said.clear()
        model.evaluate(x, y, batch_size=128, verbose=0, callbacks=[callback])
        self.assertEqual([said[0] for said in callback.said], ["test_begin", "test_batch_begin", "test_batch_end", "test_end"])
        callback.said.clear()
        model.predict(x, batch_size=64, verbose=0, callbacks=[callback])
        self.assertEqual(
            [said[0] for said in callback.said],
            ["predict_begin", *["predict_batch_begin", "predict_batch_end"] * 2, "predict_end"],
        )

        class EarlyStoppingAtMinLoss(keras.callbacks.Callback):
            def __init__(self, patience=0):
                super().__init__()
                self.patience, self.best_weights = patience, None

            def on_train_begin(self, logs=None):
                self.wait, self.stopped_epoch, self.best = 0, 0, np.inf

            def on_epoch_end(self, epoch, logs=None):
                current = logs.get("loss")
                if np.less(current, self.best):
                    self.best, self.wait, self.best_weights = current, 0, self.model.get_weights()
                else:
                    self.wait += 1
                    if self.wait >= self.patience:
                        self.stopped_epoch = epoch
                        self.model.stop_training = True
                        self.model.set_weights(self.best_weights)

        stopper = EarlyStoppingAtMinLoss()
        model.compile(keras.optimizers.SGD(10.0), "mse")
        history = model.fit(random().random((64, 3)), random().random((64, 1)), epochs=30, verbose=0, callbacks=[stopper]).history
        self.assertLess(len(history["loss"]), 30)
        self.assertGreater(stopper.stopped_epoch, 0)

        class CustomLearningRateScheduler(keras.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                self.model.optimizer.learning_rate = 0.1 / (epoch + 1)

        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.fit(x, y, epochs=3, verbose=0, callbacks=[CustomLearningRateScheduler()])
        self.assertAlmostEqual(float(model.optimizer.learning_rate), 0.1 / 3, places=6)


def waves(*shape, shift=0.0, low=-1.0):
    """Numbers from `low` to 1 that are the same everywhere."""
    at = np.arange(int(np.prod(shape)))
    made = np.sin(at * 0.73 + shift) * np.cos(at * 0.11)
    return ((made + 1) / 2 * (1 - low) + low).reshape(shape).astype("float32")


def with_known_weights(model):
    """The model, with weights that do not depend on how they are drawn."""
    for at, weight in enumerate(model.trainable_variables):
        weight.assign((np.sin(np.arange(int(np.prod(weight.shape))) * 1.7 + at) * 0.3).reshape(weight.shape))
    return model


class WithKerasValues(unittest.TestCase):
    """Programs whose weights are known, so that their results are those of Keras."""

    def setUp(self):
        keras.utils.set_random_seed(7)

    def near(self, made, expected):
        np.testing.assert_allclose(np.ravel(made), expected, rtol=2e-3, atol=2e-4)

    def test_a_vision_transformer(self):
        class Patches(layers.Layer):
            def __init__(self, patch_size):
                super().__init__()
                self.patch_size = patch_size

            def call(self, images):
                batch, height, width, channels = ops.shape(images)
                patches = ops.image.extract_patches(images, size=self.patch_size)
                count = (height // self.patch_size) * (width // self.patch_size)
                return ops.reshape(patches, (batch, count, self.patch_size * self.patch_size * channels))

        class PatchEncoder(layers.Layer):
            def __init__(self, num_patches, projection_dim):
                super().__init__()
                self.num_patches = num_patches
                self.projection = layers.Dense(units=projection_dim)
                self.position_embedding = layers.Embedding(input_dim=num_patches, output_dim=projection_dim)

            def call(self, patch):
                positions = ops.expand_dims(ops.arange(start=0, stop=self.num_patches, step=1), axis=0)
                return self.projection(patch) + self.position_embedding(positions)

        inputs = keras.Input(shape=(8, 8, 3))
        encoded = PatchEncoder(4, 8)(Patches(4)(inputs))
        for _ in range(2):
            x1 = layers.LayerNormalization(epsilon=1e-6)(encoded)
            x2 = layers.Add()([layers.MultiHeadAttention(num_heads=2, key_dim=8, dropout=0.1)(x1, x1), encoded])
            x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
            for units in (16, 8):
                x3 = layers.Dropout(0.1)(layers.Dense(units, activation=keras.activations.gelu)(x3))
            encoded = layers.Add()([x3, x2])
        logits = layers.Dense(3)(layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(encoded)))
        model = with_known_weights(keras.Model(inputs, logits))
        self.near(model.predict(waves(2, 8, 8, 3), verbose=0), [0.21119, 0.25817, -0.27772, 0.15514, 0.27667, -0.22643])

    def test_a_swin_block_shifts_windows(self):
        def partition(x, size):
            _, height, width, channels = x.shape
            x = ops.reshape(x, (-1, height // size, size, width // size, size, channels))
            return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, size, size, channels))

        def joined(windows, size, height, width, channels):
            x = ops.reshape(windows, (-1, height // size, width // size, size, size, channels))
            return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, height, width, channels))

        class WindowAttention(layers.Layer):
            def __init__(self, dim, window, heads, **options):
                super().__init__(**options)
                self.heads, self.scale, self.count = heads, (dim // heads) ** -0.5, window * window
                self.qkv, self.proj = layers.Dense(dim * 3), layers.Dense(dim)
                self.bias = self.add_weight(shape=((2 * window - 1) ** 2, heads), initializer="zeros", trainable=True)
                at = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
                relative = (at[:, :, None] - at[:, None, :]).transpose(1, 2, 0) + window - 1
                index = relative[..., 0] * (2 * window - 1) + relative[..., 1]
                self.index = keras.Variable(initializer=index, shape=index.shape, dtype="int", trainable=False)

            def call(self, x):
                _, size, channels = x.shape
                qkv = ops.reshape(self.qkv(x), (-1, size, 3, self.heads, channels // self.heads))
                q, k, v = (part for part in ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), 3))
                scores = (q * self.scale) @ ops.transpose(k, (0, 1, 3, 2))
                bias = ops.reshape(ops.take(self.bias, ops.reshape(self.index, (-1,)), axis=0), (self.count, self.count, -1))
                scores = scores + ops.expand_dims(ops.transpose(bias, (2, 0, 1)), axis=0)
                made = ops.transpose(ops.softmax(scores, axis=-1) @ v, (0, 2, 1, 3))
                return self.proj(ops.reshape(made, (-1, size, channels)))

        class Block(layers.Layer):
            def __init__(self, dim, side, window, shift, **options):
                super().__init__(**options)
                self.side, self.window, self.shift = side, window, shift
                self.norm, self.attention = layers.LayerNormalization(epsilon=1e-5), WindowAttention(dim, window, 2)
                self.mlp = keras.Sequential([layers.Dense(16), layers.Activation(keras.activations.gelu), layers.Dense(dim)])

            def call(self, x):
                _, _, channels = x.shape
                moved = ops.roll(ops.reshape(self.norm(x), (-1, self.side, self.side, channels)), (-self.shift, -self.shift), (1, 2))
                windows = ops.reshape(partition(moved, self.window), (-1, self.window**2, channels))
                windows = ops.reshape(self.attention(windows), (-1, self.window, self.window, channels))
                back = ops.roll(joined(windows, self.window, self.side, self.side, channels), (self.shift, self.shift), (1, 2))
                x = x + ops.reshape(back, (-1, self.side**2, channels))
                return x + self.mlp(x)

        inputs = keras.Input((8, 8, 3))
        x = layers.Reshape((16, 8))(layers.Conv2D(8, 2, 2)(inputs))
        x = Block(8, 4, 2, 1)(Block(8, 4, 2, 0)(x))
        outputs = layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling1D()(x))
        model = with_known_weights(keras.Model(inputs, outputs))
        self.near(model(waves(2, 8, 8, 3)), [0.2432, 0.18096, 0.13893, 0.19987, 0.23704, 0.23993, 0.17692, 0.14543, 0.20744, 0.23028])
        # A layer's own variables are in front of those of its parts.
        self.assertEqual([tuple(weight.shape) for weight in model.layers[3].weights][:4], [(8,), (8,), (9, 2), (4, 4)])
        model.compile(keras.optimizers.SGD(0.1), keras.losses.CategoricalCrossentropy(label_smoothing=0.1))
        y = keras.utils.to_categorical(np.arange(8) % 5, 5)
        self.near(model.fit(waves(8, 8, 8, 3), y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"], [1.6499, 1.6126])

    def test_a_mixer_and_a_gated_one(self):
        class Mixer(layers.Layer):
            def __init__(self, patches, hidden):
                super().__init__()
                self.mlp1 = keras.Sequential([layers.Dense(patches, activation="gelu"), layers.Dense(patches), layers.Dropout(0.1)])
                self.mlp2 = keras.Sequential([layers.Dense(patches, activation="gelu"), layers.Dense(hidden), layers.Dropout(0.1)])
                self.normalize = layers.LayerNormalization(epsilon=1e-6)

            def build(self, input_shape):
                return super().build(input_shape)

            def call(self, inputs):
                channels = ops.transpose(self.normalize(inputs), axes=(0, 2, 1))
                x = ops.transpose(self.mlp1(channels), axes=(0, 2, 1)) + inputs
                return x + self.mlp2(self.normalize(x))

        class Gated(layers.Layer):
            def __init__(self, patches, hidden):
                super().__init__()
                self.first, self.last = layers.Dense(hidden * 2, activation="gelu"), layers.Dense(hidden)
                self.spatial = layers.Dense(patches, bias_initializer="Ones")
                self.norm = layers.LayerNormalization(epsilon=1e-6)

            def call(self, inputs):
                u, v = ops.split(self.first(self.norm(inputs)), indices_or_sections=2, axis=-1)
                v = ops.transpose(self.spatial(ops.transpose(v, (0, 2, 1))), (0, 2, 1))
                return self.last(u * v) + inputs

        for kind, expected in ((Mixer, [-0.41857, -0.35893, 0.51106, -0.41716, -0.37114, 0.5128]), (Gated, [-0.21989, 0.54841, 0.07857, -0.23014, 0.55876, 0.08615])):
            inputs = layers.Input(shape=(8, 8, 3))
            x = layers.Reshape((16, 6))(layers.Conv2D(6, kernel_size=2, strides=2)(inputs))
            x = keras.Sequential([kind(16, 6) for _ in range(2)])(x)
            model = with_known_weights(keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x))))
            self.near(model(waves(2, 8, 8, 3)), expected)

    def test_reading_texts_in_pictures(self):
        class CTCLayer(layers.Layer):
            def call(self, labels, predictions):
                ones = ops.ones((ops.shape(labels)[0],), dtype="int32")
                lengths, steps = ops.shape(labels)[1] * ones, ops.shape(predictions)[1] * ones
                self.add_loss(ops.mean(ops.ctc_loss(labels, ops.log(predictions + 1e-7), lengths, steps, mask_index=5)))
                return predictions

        image, label = layers.Input((8, 4), name="image"), layers.Input((None,), name="label", dtype="int32")
        x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(image)
        x = layers.Dense(6, activation="softmax", name="dense2")(x)
        model = with_known_weights(keras.Model([image, label], CTCLayer(name="ctc_loss")(label, x)))
        model.compile(optimizer=keras.optimizers.Adam(0.01))
        pictures, labels = waves(4, 8, 4), np.tile([[1, 2, 3], [2, 2, 4]], (2, 1)).astype("int32")
        history = model.fit({"image": pictures, "label": labels}, epochs=2, batch_size=4, verbose=0).history
        self.near(history["loss"], [9.092, 8.9421])
        reader = keras.Model(model.inputs[0], model.get_layer(name="dense2").output)
        predictions = reader.predict(pictures, verbose=0)
        self.near(predictions[0, 0], [0.1784, 0.19799, 0.12086, 0.11848, 0.20362, 0.18066])
        decoded, _ = ops.ctc_decode(predictions, np.full(4, 8), strategy="beam_search", beam_width=6, mask_index=5)
        self.assertEqual(decoded.shape, (1, 4, 8))

    def test_twins_by_a_contrastive_loss(self):
        def distance(vectors):
            x, y = vectors
            total = ops.sum(ops.square(x - y), axis=1, keepdims=True)
            return ops.sqrt(ops.maximum(total, keras.backend.epsilon()))

        def loss(margin=1):
            def contrastive_loss(y_true, y_pred):
                square, rest = ops.square(y_pred), ops.square(ops.maximum(margin - y_pred, 0))
                return ops.mean((1 - y_true) * square + y_true * rest)

            return contrastive_loss

        inputs = keras.Input((12, 12, 1))
        x = layers.AveragePooling2D((2, 2))(layers.Conv2D(4, (5, 5), activation="tanh")(inputs))
        tower = keras.Model(inputs, layers.Dense(10, activation="tanh")(layers.Flatten()(x)))
        first, second = keras.Input((12, 12, 1)), keras.Input((12, 12, 1))
        merged = layers.Lambda(distance, output_shape=(1,))([tower(first), tower(second)])
        siamese = with_known_weights(keras.Model([first, second], layers.Dense(1, activation="sigmoid")(merged)))
        siamese.compile(loss=loss(margin=1), optimizer="RMSprop", metrics=["accuracy"])
        a, b, y = waves(8, 12, 12, 1), waves(8, 12, 12, 1, shift=2), np.array([0, 1] * 4, "float32")
        history = siamese.fit([a, b], y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        self.near(history["loss"], [0.27891, 0.27024])

    def test_losses_of_a_program_get_targets_as_predictions_are(self):
        seen = []

        def squared(y_true, y_pred):
            seen.append((y_true.dtype, tuple(y_true.shape), tuple(y_pred.shape)))
            return ops.mean(ops.square(y_true - y_pred), axis=-1)

        class Squared(keras.losses.Loss):
            def call(self, y_true, y_pred):
                seen.append((y_true.dtype, tuple(y_true.shape), tuple(y_pred.shape)))
                return ops.mean(ops.square(y_true - y_pred), axis=-1)

        x = waves(4, 3)
        for loss, y in ((squared, np.array([0, 1, 1, 0])), (squared, waves(4, 1)), (Squared(), np.array([[0], [1], [1], [0]]))):
            model = with_known_weights(keras.Sequential([keras.Input((3,)), layers.Dense(1)]))
            model.compile("sgd", loss)
            y_pred = model.predict(x, verbose=0)
            self.near(model.evaluate(x, y, verbose=0), np.mean((y.reshape(4, 1) - y_pred) ** 2))
            self.assertEqual({keras.utils.standardize_dtype(dtype) for dtype, _, _ in seen}, {"float32"})
            self.assertEqual({shape[1:] for _, *shapes in seen for shape in shapes}, {(1,)})

    def test_rays_of_a_scene(self):
        def encode(x):
            return tf.concat([x] + [function(2.0**at * x) for at in range(2) for function in (tf.sin, tf.cos)], axis=-1)

        def rays(height, width, focal, pose):
            i, j = tf.meshgrid(tf.range(width, dtype=tf.float32), tf.range(height, dtype=tf.float32), indexing="xy")
            directions = tf.stack([(i - width * 0.5) / focal, -(j - height * 0.5) / focal, -tf.ones_like(i)], axis=-1)
            directions = tf.reduce_sum(directions[..., None, :] * pose[:3, :3], axis=-1)
            return tf.broadcast_to(pose[:3, -1], tf.shape(directions)), directions

        pose = tf.constant([[1.0, 0, 0, 0.1], [0, 1, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]])
        origins, directions = rays(4, 4, 2.0, pose)
        t = tf.linspace(2.0, 6.0, 5)
        points = encode(tf.reshape(origins[..., None, :] + directions[..., None, :] * t[:, None], [-1, 3]))
        inputs = keras.Input(shape=(80, 15))
        x = layers.concatenate([layers.Dense(8, activation="relu")(inputs), inputs], axis=-1)
        model = with_known_weights(keras.Model(inputs, layers.Dense(4)(x)))
        made = tf.reshape(model(points[None]), (1, 4, 4, 5, 4))
        colours, density = tf.sigmoid(made[..., :-1]), tf.nn.relu(made[..., -1])
        steps = tf.concat([t[1:] - t[:-1], tf.constant([1e10])], axis=-1)
        alpha = 1.0 - tf.exp(-density * steps)
        weights = alpha * tf.math.cumprod(1.0 - alpha + 1e-10, axis=-1, exclusive=True)
        self.near(tf.reduce_sum(weights[..., None] * colours, axis=-2)[0, 0], [0.4627, 0.26724, 0.60527, 0.39066, 0.30059, 0.65692, 0.29367, 0.30865, 0.74501, 0.062096, 0.057944, 0.064144])
        self.near(tf.image.psnr(colours[0, ..., 0, :], colours[0, ..., 1, :], max_val=1.0), [18.152])

    def test_attention_in_a_graph(self):
        class GraphAttention(layers.Layer):
            def __init__(self, units):
                super().__init__()
                self.units = units

            def build(self, input_shape):
                self.kernel = self.add_weight(shape=(input_shape[0][-1], self.units), initializer="glorot_uniform", name="kernel")
                self.attention = self.add_weight(shape=(self.units * 2, 1), initializer="glorot_uniform", name="attention")
                self.built = True

            def call(self, inputs):
                states, edges = inputs
                states = tf.matmul(states, self.kernel)
                pairs = tf.reshape(tf.gather(states, edges), (tf.shape(edges)[0], -1))
                scores = tf.squeeze(tf.nn.leaky_relu(tf.matmul(pairs, self.attention)), -1)
                scores = tf.math.exp(tf.clip_by_value(scores, -2, 2))
                sums = tf.math.unsorted_segment_sum(scores, edges[:, 0], num_segments=tf.reduce_max(edges[:, 0]) + 1)
                sums = tf.repeat(sums, tf.math.bincount(tf.cast(edges[:, 0], "int32")))
                messages = tf.gather(states, edges[:, 1]) * (scores / sums)[:, tf.newaxis]
                return tf.math.unsorted_segment_sum(messages, edges[:, 0], num_segments=tf.shape(states)[0])

        nodes, edges = tf.constant(waves(5, 6)), tf.constant([[0, 1], [0, 2], [1, 2], [2, 0], [3, 4], [4, 3]])
        layer = GraphAttention(4)
        layer((nodes, edges))
        with_known_weights(layer)
        self.near(layer((nodes, edges))[0], [0.048637, -0.29123, 0.026409, 0.28442])

    def test_the_loss_is_there_for_steps(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = layers.Dense(1)

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.loss(y, self(x, training=True))
                variables = self.trainable_variables
                self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return {"own": loss}

        model = Own()
        model.compile(keras.optimizers.SGD(0.1), keras.losses.MeanAbsoluteError())
        losses = model.fit(waves(8, 3), waves(8, 1), epochs=3, verbose=0).history["own"]
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(losses[-1], 0)

    def test_a_generator_s_steps_and_their_summaries(self):
        def block(filters, transposed=False):
            kind = layers.Conv2DTranspose if transposed else layers.Conv2D
            start = tf.random_normal_initializer(0.0, 0.02)
            model = keras.Sequential([kind(filters, 4, strides=2, padding="same", kernel_initializer=start, use_bias=False)])
            model.add(layers.ReLU() if transposed else layers.LeakyReLU())
            return model

        inputs = layers.Input(shape=[8, 8, 3])
        down = block(4)(inputs)
        x = layers.Concatenate()([block(4, transposed=True)(block(8)(down)), down])
        generator = keras.Model(inputs, layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")(x))
        picture, target = layers.Input(shape=[8, 8, 3], name="input_image"), layers.Input(shape=[8, 8, 3], name="target_image")
        critic = keras.Model([picture, target], layers.Conv2D(1, 4)(block(4)(layers.concatenate([picture, target]))))
        with_known_weights(generator), with_known_weights(critic)
        cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
        optimizers = [keras.optimizers.Adam(2e-4, beta_1=0.5) for _ in range(2)]
        with tempfile.TemporaryDirectory() as folder:
            writer = tf.summary.create_file_writer(folder)

            @tf.function
            def train_step(x, y, step):
                with tf.GradientTape() as first, tf.GradientTape() as second:
                    made = generator(x, training=True)
                    real, fake = critic([x, y], training=True), critic([x, made], training=True)
                    total = cross_entropy(tf.ones_like(fake), fake) + 100 * tf.reduce_mean(tf.abs(y - made))
                    other = cross_entropy(tf.ones_like(real), real) + cross_entropy(tf.zeros_like(fake), fake)
                for tape, loss, model, optimizer in zip((first, second), (total, other), (generator, critic), optimizers):
                    variables = model.trainable_variables
                    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                with writer.as_default():
                    tf.summary.scalar("total", total, step=step // 10)
                return total, other

            data = tf.data.Dataset.from_tensor_slices((waves(4, 8, 8, 3), waves(4, 8, 8, 3, shift=2)))
            made = [train_step(x, y, step) for step, (x, y) in data.batch(2).repeat().take(3).enumerate()]
            writer.flush()
            self.near(made[0], [51.333, 2.7546])
            self.near(made[2], [51.123, 2.7358])
            file, = (os.path.join(folder, name) for name in os.listdir(folder))
            self.assertEqual(sum(b"total" in bytes(record.numpy()) for record in tf.data.TFRecordDataset(file)), 3)

    def test_texts_one_character_at_a_time(self):
        text = "the cat sat on the mat. the dog sat on the log."
        ids_from_chars = layers.StringLookup(vocabulary=sorted(set(text)), mask_token=None)
        chars_from_ids = layers.StringLookup(vocabulary=ids_from_chars.get_vocabulary(), invert=True, mask_token=None)

        class Texts(keras.Model):
            def __init__(self, size):
                super().__init__()
                self.embedding = layers.Embedding(size, 8)
                self.gru = layers.GRU(16, return_sequences=True, return_state=True)
                self.dense = layers.Dense(size)

            def call(self, inputs, states=None, return_state=False, training=False):
                x = self.embedding(inputs, training=training)
                if states is None:
                    states = self.gru.get_initial_state(tf.shape(x)[0])
                x, states = self.gru(x, initial_state=states, training=training)
                x = self.dense(x, training=training)
                return (x, states) if return_state else x

        class OneStep(keras.Model):
            def __init__(self, model):
                super().__init__()
                self.model = model
                unknown = ids_from_chars(["[UNK]"])[:, None]
                mask = tf.SparseTensor(values=[-float("inf")] * len(unknown), indices=unknown, dense_shape=[len(ids_from_chars.get_vocabulary())])
                self.mask = tf.sparse.to_dense(mask)

            @tf.function
            def generate(self, inputs, states=None):
                ids = ids_from_chars(tf.strings.unicode_split(inputs, "UTF-8")).to_tensor()
                logits, states = self.model(inputs=ids, states=states, return_state=True)
                best = tf.argmax(logits[:, -1, :] + self.mask, axis=-1)
                return chars_from_ids(best), states

        ids = ids_from_chars(tf.strings.unicode_split(text, "UTF-8"))
        sequences = tf.data.Dataset.from_tensor_slices(ids).batch(9, drop_remainder=True).map(lambda row: (row[:-1], row[1:]))
        model = Texts(len(ids_from_chars.get_vocabulary()))
        model(next(iter(sequences.batch(1)))[0])
        with_known_weights(model)
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(sequences.batch(5), epochs=30, verbose=0).history["loss"]
        self.near(history[0], [2.7316])
        step, states, made = OneStep(model), None, [tf.constant(["the ca"])]
        for _ in range(6):
            following, states = step.generate(made[-1], states)
            made.append(following)
        self.assertEqual(tf.strings.join(made)[0].numpy().decode()[:11], "the cat sat")


if __name__ == "__main__":
    unittest.main()
