"""Writes what tests/files/keras.rs reads: small models of Keras 3 as its own files, each with inputs and outputs.

Run with a Python that has TensorFlow: `python make.py`.
"""

import gzip
import pathlib

import keras
import numpy as np
from keras import layers as L
from keras import ops

HERE = pathlib.Path(__file__).parent


def shaken(model, generator):
    """Weights that are no zeros and ones; moving variances stay positive."""
    for variable in model.variables:
        if "float" in str(variable.dtype):
            value = generator.normal(size=variable.shape).astype("float32") * 0.5
            variable.assign(np.abs(value) + 0.5 if "variance" in variable.path else value)
    for layer in model.layers:
        if isinstance(layer, L.Normalization) and layer.input_mean is None:
            # It computes with copies of its weights.
            layer.finalize_state()
    return model


def numbers(generator, tensor, classes):
    shape = [2, *tensor.shape[1:]]
    if tensor.dtype == "int32":
        return generator.integers(0, classes, shape, dtype="int32")
    return generator.normal(size=shape).astype("float32")


def names():
    """Old files of layers whose names are beyond ASCII: two layers, and fifty."""
    for count, path in ((2, "names_legacy.h5"), (50, "many_names_legacy.h5")):
        called = ["größe", "層"] + [f"d{i}" for i in range(2, count)]
        model = keras.Sequential([keras.Input((1,))] + [L.Dense(1, name=name) for name in called])
        for i, layer in enumerate(model.layers):
            layer.set_weights([np.full((1, 1), i + 1.0, "f"), np.full(1, -i - 1.0, "f")])
        model.save(HERE / path)
    data = (HERE / path).read_bytes()
    (HERE / f"{path}.gz").write_bytes(gzip.compress(data, 9))
    (HERE / path).unlink()


def calls():
    """Calls with keywords, states and causal masks, ops between layers, and layers whose files hold more than weights."""
    a, b = keras.Input((5, 4), name="a"), keras.Input((5, 4), name="b")
    attend = L.MultiHeadAttention(2, 3)
    x = attend(a, b, use_causal_mask=True) + attend(query=b, key=a, value=ops.add(a, 1.0))
    x = L.GroupQueryAttention(4, 2, 1)(x, b, use_causal_mask=True) * np.arange(4, dtype="float32")
    x = L.Attention()([x, b], use_causal_mask=True)
    _, *states = L.LSTM(4, return_state=True)(L.Masking()(ops.where(b[:, :, :1] > 0, b, 0.0)))
    y = L.LSTM(4, return_sequences=True)(x, initial_state=states)
    y = L.SpectralNormalization(L.Dense(4), power_iterations=2)(L.Normalization(axis=-1)(y))
    y = L.RNN([L.LSTMCell(3), L.GRUCell(4)], return_sequences=True)(y)
    first, rest = ops.split(ops.concatenate([y, x], axis=-1), [3], axis=2)
    z = ops.concatenate([first[:, 0], first[:, ::-2, 1], ops.mean(ops.softmax(rest), axis=1)], axis=-1)
    z = ops.relu(2 - ops.reshape(ops.stack([z, -z], axis=1), (-1, 22)) / 4)
    return keras.Model([a, b], L.Normalization(mean=0.5, variance=4.0)(z))


def plain():
    """A model without weights."""
    x = keras.Input((8, 8, 3))
    return keras.Model(x, L.GlobalAveragePooling2D()(L.MaxPooling2D()(L.Rescaling(1 / 255)(L.CenterCrop(6, 4)(x)))))


def unused_inputs():
    """Inputs that no output depends on, of the model and of a model in it: what leads to the latter has no gradient."""
    a, b, c = keras.Input((4,), name="a"), keras.Input((3,), name="b"), keras.Input((2,), name="c")
    inner_a, inner_b = keras.Input((4,)), keras.Input((5,))
    inner = keras.Model([inner_b, inner_a], L.Dense(3, activation="tanh")(inner_a), name="inner")
    return keras.Model([c, a, b], L.Dense(2, name="out")(inner([L.Dense(5, name="lost")(b), a])))


def two_outputs(generator):
    """Two inputs and two outputs, with results, and the losses of a training."""
    a, b = keras.Input((4,), name="a"), keras.Input((2, 3), name="b")
    x = L.Concatenate()([L.Dense(6, activation="tanh", name="left")(a), L.Flatten()(b)])
    x = L.Dense(5, activation="relu", name="both")(x)
    model = keras.Model([a, b], [L.Dense(3, name="kind")(x), L.Dense(1, name="size")(x)])
    shaken(model, generator)
    model.save(HERE / "two_outputs.keras")
    inputs = [generator.normal(size=size).astype("float32") for size in ([8, 4], [8, 2, 3])]
    kinds = (np.arange(8) % 3).astype("int32")
    sizes = inputs[0][:, :1] * 2 - 1
    arrays = {"x0": inputs[0], "x1": inputs[1], "kinds": kinds, "sizes": sizes}
    arrays |= {f"y{at}": np.asarray(y) for at, y in enumerate(model(inputs))}
    model.compile(
        keras.optimizers.SGD(0.05),
        loss={"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"},
        loss_weights={"kind": 1.0, "size": 0.25},
        metrics={"kind": ["accuracy"]},
    )
    trained = model.fit(inputs, [kinds, sizes], batch_size=4, epochs=3, shuffle=False, verbose=0)
    arrays |= {name: np.array(values, "float32") for name, values in trained.history.items()}
    after = model.evaluate(inputs, [kinds, sizes], batch_size=8, verbose=0, return_dict=True)
    arrays |= {f"after_{name}": np.array([value], "float32") for name, value in after.items()}
    np.savez(HERE / "two_outputs.npz", **arrays)


def write(name, model, generator):
    shaken(model, generator)
    inputs = [numbers(generator, tensor, 20) for tensor in model.inputs]
    outputs = model(inputs if len(inputs) > 1 else inputs[0])
    model.save(HERE / f"{name}.keras")
    np.savez(HERE / f"{name}.npz", **{f"x{at}": x for at, x in enumerate(inputs)}, y=np.asarray(outputs))


def main():
    names()
    keras.utils.set_random_seed(16)
    generator = np.random.default_rng(16)
    models = {}
    models["cnn"] = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            L.Conv2D(3, 3, activation="relu"),
            L.BatchNormalization(),
            L.MaxPooling2D(),
            L.Dropout(0.25),
            L.SeparableConv2D(2, 2),
            L.DepthwiseConv2D(2),
            L.Flatten(),
            L.Dense(4),
        ]
    )
    models["sequence"] = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            L.Embedding(20, 5),
            L.LSTM(4, return_sequences=True),
            L.TimeDistributed(L.Dense(3)),
            L.Bidirectional(L.GRU(3, return_sequences=True)),
            L.SimpleRNN(3),
            L.PReLU(),
            L.GroupNormalization(3),
            L.Dense(2, activation="softmax"),
        ]
    )
    x = keras.Input((5, 8))
    y = L.MultiHeadAttention(2, 4)(x, x)
    y = L.LayerNormalization()(L.Add()([x, y]))
    models["attention"] = keras.Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(y)))
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    inner = keras.Sequential([L.Dense(3, activation="tanh"), L.Dense(3)], name="inner")
    shared = L.Dense(5, activation="relu")
    z = L.Concatenate()([shared(a), inner(L.Dense(5)(b)), shared(L.Dense(4)(b))])
    models["two_inputs"] = keras.Model([a, b], L.Dense(2, name="out")(z))
    models["nested"] = keras.Sequential(
        [keras.Input((4,)), L.Dense(4), keras.Sequential([L.Dense(3, activation="tanh"), L.Dense(3)]), L.Dense(2)]
    )
    for name, model in models.items():
        write(name, model, generator)
    models["nested"].save_weights(HERE / "nested.weights.h5")
    models["nested"].save(HERE / "nested_legacy.h5")

    trained = keras.Sequential([keras.Input((3,)), L.Dense(5, activation="tanh"), L.Dense(1)])
    trained.compile(keras.optimizers.Adam(0.01, beta_1=0.8), loss="mse", metrics=["mae"])
    x = generator.normal(size=(8, 3)).astype("float32")
    y = x[:, :1] * 2 - 1
    trained.fit(x, y, batch_size=8, epochs=5, shuffle=False, verbose=0)
    trained.save(HERE / "trained.keras")
    losses = [trained.fit(x, y, batch_size=8, epochs=1, shuffle=False, verbose=0).history["loss"][0] for _ in range(4)]
    np.savez(HERE / "trained.npz", x0=x, y=y, losses=np.array(losses, "float32"))
    write("calls", calls(), generator)
    write("plain", plain(), generator)
    write("unused_inputs", unused_inputs(), generator)
    two_outputs(np.random.default_rng(17))


if __name__ == "__main__":
    main()
