"""TensorFlow 1's graphs restore what wgrad's `compat::v1::Saver` has saved, train a step, and save for wgrad.

Called by tests/judge/saver.rs with a folder, which has NAME/wgrad-3 for each optimizer.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.1),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.5),
}
X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]]
TARGET = [2.0, -1.0, 1.0, 5.0]

folder = sys.argv[1]
results = {}
for name, optimizer in OPTIMIZERS.items():
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 2])
        target = v1.placeholder(tf.float32, [None])
        w = v1.get_variable("w", initializer=tf.constant([0.5, -0.5]))
        b = v1.get_variable("b", initializer=tf.constant(0.25))
        step = v1.get_variable("global_step", initializer=tf.constant(0), trainable=False)
        y = tf.reduce_sum(x * w, 1) + b
        loss = tf.reduce_mean(tf.square(y - target))
        train = optimizer().minimize(loss, global_step=step)
        saver = v1.train.Saver()
        feeds = {x: X, target: TARGET}
        with v1.Session() as session:
            saver.restore(session, f"{folder}/{name}/wgrad-3")
            session.run(train, feeds)
            after_wgrad = session.run([w, b, step])
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(train, feeds)
            saver.save(session, f"{folder}/{name}/tf", global_step=step)
            session.run(train, feeds)
            own = session.run([w, b, step])
    results[name] = [[*w.tolist(), float(b), int(step)] for w, b, step in (after_wgrad, own)]
print(json.dumps(results))
