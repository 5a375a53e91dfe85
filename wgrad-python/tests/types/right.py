"""A program without mistakes of types. It is checked, not run."""

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers
from wgrad.keras.optimizers import Adam
from wgrad.keras.optimizers.schedules import CosineDecay


class Scale(layers.Layer):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return x * self.factor


def loss_of(model: keras.Model, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.square(model(x) - y))


x = tf.constant([[1.0, 2.0]])
w = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(w * x**2 + 1.0, axis=-1)
gradient: tf.Tensor = tape.gradient(y, w)
shape: list[int | None] = y.shape.as_list()
values: list[float] = y.numpy().tolist()
parts: list[tf.Tensor] = tf.split(x, 2, axis=1)
both = tf.concat(parts, 1) @ tf.transpose(x)

model = keras.Sequential([keras.Input((2,)), layers.Dense(4, activation="relu", kernel_regularizer="l2"), layers.LSTM(3, return_state=True)])
model.add(layers.Dense(units=1, use_bias=False, name="last"))
model.add(Scale(2.0))
inputs = keras.Input(shape=(3,), name="a")
other = keras.Model(inputs, layers.Dense(1)(inputs * 2.0))
other.compile(Adam(CosineDecay(0.1, 100)), loss=keras.losses.MeanSquaredError(), metrics=["mae", keras.metrics.MeanAbsoluteError()])
history = other.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=2, verbose=0, callbacks=[keras.callbacks.EarlyStopping("loss", patience=3)])
first: float = history.history["loss"][0]
data = tf.data.Dataset.from_tensor_slices(np.ones((4, 3))).shuffle(4).batch(2).prefetch(tf.data.AUTOTUNE)


@tf.function
def step(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.nn.relu(a) + tf.cast(b, tf.float32)


summed: tf.Tensor = step(x, x)
count: int = step.experimental_get_tracing_count()
scores = layers.MultiHeadAttention(num_heads=2, key_dim=4)(x, x, use_causal_mask=True)
checkpoint = tf.train.Checkpoint(model=model)
saved: str | None = tf.train.CheckpointManager(checkpoint, "/tmp/x", max_to_keep=3).latest_checkpoint
drawn: tf.Tensor = tf.random.stateless_uniform([3], seed=[1, 2], maxval=2.0)
generators: list[tf.random.Generator] = tf.random.Generator.from_seed(3).split(2)
sums = tf.scan(lambda a, row: a + row, x)
records = tf.data.TFRecordDataset("x").map(lambda r: tf.io.parse_single_example(r, {"a": tf.io.FixedLenFeature([2], tf.int64)}))
example: bytes = tf.train.Example(tf.train.Features({"a": tf.train.Feature(int64_list=tf.train.Int64List([1]))})).SerializeToString()
pets = keras.utils.image_dataset_from_directory("pets", image_size=(8, 8))
words = keras.Sequential([keras.Input((1,), dtype="string"), layers.TextVectorization(), layers.Embedding(10, 4)])
limited = layers.Dense(2, kernel_constraint=keras.constraints.MaxNorm(1.0))
strategy = tf.distribute.MirroredStrategy()
total = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, (x, x)))
