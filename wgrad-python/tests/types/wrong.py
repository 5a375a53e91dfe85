"""Each line after the imports has a mistake, which a type checker must find."""

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

a = layers.Dense(unit=3)
b = layers.Dense("three")
c: int = tf.reduce_sum(tf.constant([1.0]))
d = tf.constant([1.0]).nmpy()
e = tf.reduce_summ(tf.constant([1.0]))
f = keras.callbacks.EarlyStopping(patience="3")
g = tf.train.CheckpointManager(tf.train.Checkpoint(), "/tmp/x")
h = tf.constant([1.0]) + None
