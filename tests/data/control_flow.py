"""Runs programs with branches, loops and TensorArrays in TensorFlow, with first and second derivatives.

Eagerly: as functions, TensorFlow 2.21 has other gradients than eagerly for some loops in loops (a while_loop around map_fn), and
finite differences agree with the eager ones.

Called by tests/judge/control_flow.rs with a JSON file of programs; prints a JSON list of results.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf


def run(body, env):
    """Appends a value for each statement to a copy of `env`, and returns the last one."""
    env = list(env)
    for kind, *a in body:
        env.append(STATEMENTS[kind](env, *a))
    return env[-1]


def rows(env, at):
    return tf.stack([env[i] for i in at])


def count_of(value):
    return tf.minimum(tf.cast(tf.abs(tf.reduce_sum(value)) * 4.0, tf.int32), 7)


def while_(env, count, of, most, at, body):
    limit = count_of(env[of]) if count is None else tf.constant(count)
    turn = lambda i, v: (i + 1, run(body, env + [v, v * 0.0 + tf.cast(i, tf.float32) * 0.1]))
    return tf.while_loop(lambda i, v: i < limit, turn, (0, env[at]), maximum_iterations=most)[1]


def array(env, count, at, order, body):
    ta = tf.TensorArray(tf.float32, count, clear_after_read=False, element_shape=[3])

    def turn(i, v, ta):
        v = run(body, env + [v])
        return i + 1, v, ta.write(i, v)

    _, _, ta = tf.while_loop(lambda i, *_: i < count, turn, (0, env[at], ta))
    every = ta.stack() * tf.range(1.0, count + 1.0)[:, None]
    taken = ta.gather(order)
    again = tf.TensorArray(tf.float32, count, element_shape=[3]).unstack(every)
    return tf.tanh(tf.reduce_sum(every, 0) + tf.reduce_sum(taken, 0) + again.read(count - 1))


def custom(v, factor):
    @tf.custom_gradient
    def call(v):
        e = tf.exp(v * 0.3)
        return tf.math.log(e + 1.0), lambda dy: dy * (1.0 / (e + 1.0) + factor)

    return call(v)


def split(v):
    pieces = tf.TensorArray(tf.float32, 2, clear_after_read=False, infer_shape=False).split(v, [1, 2])
    turned = tf.TensorArray(tf.float32, 2, infer_shape=False)
    return turned.write(0, pieces.read(1)).write(1, pieces.read(0)).concat()


def scatter(one, two, indices):
    array = tf.TensorArray(tf.float32, 2, element_shape=[3]).scatter(indices, tf.stack([one, two]))
    return tf.tanh(tf.reduce_sum(array.stack() * tf.constant([[1.0], [2.0]]), 0))


STATEMENTS = {
    "custom": lambda env, i, factor: custom(env[i], factor),
    "host": lambda env, i, factor: tf.sin(env[i] * factor) + env[i],
    "split": lambda env, i: split(env[i]),
    "scatter": lambda env, i, j, indices: scatter(env[i], env[j], indices),
    # TensorFlow's has no second derivatives.
    "recompute": lambda env, i, body: run(body, [env[i]]),
    "function": lambda env, i, body: run(body, env + [env[i]]),
    "tanh": lambda env, i: tf.tanh(env[i]),
    "sin": lambda env, i: tf.sin(env[i]),
    "scale": lambda env, i, c: env[i] * c,
    "add": lambda env, i, j: env[i] + env[j],
    "mul": lambda env, i, j: env[i] * env[j],
    "cond": lambda env, i, c, a, b: tf.cond(
        tf.reduce_sum(env[i]) > c, lambda: run(a, env), lambda: run(b, env)
    ),
    "switch": lambda env, i, bodies: tf.switch_case(
        tf.cast(tf.floor(tf.reduce_sum(env[i]) * 3.0), tf.int32),
        [lambda body=body: run(body, env) for body in bodies],
    ),
    "while": while_,
    "map": lambda env, at, body: tf.tanh(
        tf.reduce_sum(tf.map_fn(lambda row: run(body, env + [row]), rows(env, at)), 0)
    ),
    "vectorized_map": lambda env, at, body: tf.tanh(
        tf.reduce_sum(tf.map_fn(lambda row: run(body, env + [row]), rows(env, at)), 0)
    ),
    "scan": lambda env, at, j, body: tf.tanh(
        tf.reduce_sum(tf.scan(lambda s, row: run(body, env + [s, row]), rows(env, at), env[j]), 0)
    ),
    "foldl": lambda env, at, j, body: tf.foldl(
        lambda s, row: run(body, env + [s, row]), rows(env, at), env[j]
    ),
    "foldr": lambda env, at, j, body: tf.foldr(
        lambda s, row: run(body, env + [s, row]), rows(env, at), env[j]
    ),
    "array": array,
}

results = []
for program in json.load(open(sys.argv[1])):
    x, y = (tf.constant(values) for values in program["inputs"])
    w = tf.Variable(program["variable"])

    with tf.GradientTape() as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            result = run(program["body"], [x, y, w + 0.0])
            loss = tf.reduce_sum(result * [0.3, 0.5, -0.7])
        first = inner.gradient(loss, [x, y, w], unconnected_gradients="zero")
        squares = tf.add_n([tf.reduce_sum(g * g) for g in first])
    second = outer.gradient(squares, [x, y, w], unconnected_gradients="zero")
    results.append([v.numpy().astype(float).tolist() for v in [result, *first, *second]])
print(json.dumps(results))
