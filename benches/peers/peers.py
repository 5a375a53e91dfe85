"""PyTorch or TensorFlow beside wgrad, on the processor: `peers.py torch|tensorflow --case NAME`.

Speaks the protocol of `src/child.rs`. The cases are matmul_N, mlp, cnn, data and data_workers; sizes and networks are those of
`src/cases.rs`, the digits are noise, as the speed of a step does not depend on them.
"""

import json
import sys
import time

import numpy as np

BATCH, BATCHES, RATE = 50, 8, 1e-3


def batches(generator, channels_first):
    shape = (BATCH, 1, 28, 28) if channels_first else (BATCH, 28, 28, 1)
    while True:
        for seed in range(BATCHES):
            if len(batches.made) <= seed:
                images = generator.random(shape, dtype=np.float32)
                batches.made.append((images, generator.integers(0, 10, BATCH)))
            yield batches.made[seed]


batches.made = []

PAIRS, PAIRS_BATCH = 1_000_000, 100


def pairs():
    i = np.arange(PAIRS, dtype=np.int32)
    return i.astype(np.float32), i % 10


def torch_case(case, generator):
    import torch
    from torch import nn

    if case.startswith("matmul_"):
        n = int(case.removeprefix("matmul_"))
        a, b = (torch.from_numpy(generator.random((n, n), dtype=np.float32)) for _ in range(2))
        return lambda: a @ b
    if case in ("data", "data_workers"):
        from torch.utils.data import DataLoader, TensorDataset

        dataset = TensorDataset(*map(torch.from_numpy, pairs()))
        workers = 2 if case == "data_workers" else 0
        loader = DataLoader(dataset, batch_size=PAIRS_BATCH, shuffle=True, num_workers=workers)
        return lambda: sum(len(labels) for _, labels in loader)
    if case == "mlp":
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    else:
        model = nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(), nn.Linear(1024, 10),
        )
    adam = torch.optim.Adam(model.parameters(), RATE, eps=1e-7)
    source = batches(generator, channels_first=True)

    def step():
        images, labels = next(source)
        loss = nn.functional.cross_entropy(model(torch.from_numpy(images)), torch.from_numpy(labels))
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.item()

    return step


def tensorflow_case(case, generator):
    import tensorflow as tf
    from tensorflow.keras import layers

    if case.startswith("matmul_"):
        n = int(case.removeprefix("matmul_"))
        a, b = (tf.constant(generator.random((n, n), dtype=np.float32)) for _ in range(2))
        return lambda: tf.matmul(a, b).numpy()
    if case in ("data", "data_workers"):
        dataset = tf.data.Dataset.from_tensor_slices(pairs()).shuffle(PAIRS).batch(PAIRS_BATCH)
        if case == "data_workers":
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
        return lambda: sum(len(labels) for _, labels in dataset)
    if case == "mlp":
        hidden = [layers.Flatten(), layers.Dense(100, "relu")]
    else:
        hidden = [
            layers.Conv2D(32, 5, padding="same", activation="relu"), layers.MaxPooling2D(2),
            layers.Conv2D(64, 5, padding="same", activation="relu"), layers.MaxPooling2D(2),
            layers.Flatten(), layers.Dense(1024, "relu"),
        ]
    model = tf.keras.Sequential([tf.keras.Input((28, 28, 1)), *hidden, layers.Dense(10)])
    adam = tf.keras.optimizers.Adam(RATE)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    source = batches(generator, channels_first=False)

    @tf.function
    def train(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        adam.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return lambda: float(train(*map(tf.constant, next(source))))


def main():
    engine, case = sys.argv[1], sys.argv[sys.argv.index("--case") + 1]
    prepare = {"torch": torch_case, "tensorflow": tensorflow_case}[engine]
    run = prepare(case, np.random.default_rng(1))

    def answer(value):
        print(json.dumps(value), flush=True)

    answer({"adapter": "processor", "version": engine})
    for line in sys.stdin:
        match line.split():
            case ["check"]:
                run()
                answer({"check": []})
            case ["run", count]:
                seconds = []
                for _ in range(int(count)):
                    start = time.perf_counter()
                    run()
                    seconds.append(time.perf_counter() - start)
                answer({"seconds": seconds})
            case other:
                sys.exit(f"{other} was not understood")


if __name__ == "__main__":
    main()
