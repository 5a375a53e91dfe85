"""Makes three tables, trains scikit-learn's histogram trees on them, and writes the tables and what it measured.

judge.py FOLDER [RUNS]: tests/judge/estimators.rs and benches/estimators.rs call it. For each table it writes NAME.x and NAME.y, f64 in
rows, of which the last fifth is for testing; measured.txt has lines of a name, a property and numbers: the size (rows, columns, rows
for training), the qualities, and the times of each run in seconds.
"""

import pathlib
import sys
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score

folder, runs = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1


def regression(draw, rows=100_000):
    """Friedman's first function of ten columns, of which a tenth is missing."""
    x = draw.random((rows, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y += draw.normal(size=rows)
    x[draw.random(x.shape) < 0.1] = np.nan
    return x, y


def binary(draw, rows=100_000):
    """Four columns of categories and sixteen of numbers."""
    kinds = draw.integers(0, 40, (rows, 4)).astype(float)
    numbers = draw.normal(size=(rows, 16))
    effect = draw.normal(size=(4, 40))
    score = sum(effect[i][kinds[:, i].astype(int)] for i in range(4))
    score += numbers[:, 0] * numbers[:, 1] + np.abs(numbers[:, 2]) - numbers[:, 3]
    y = (score + draw.logistic(size=rows) > 0).astype(float)
    return np.concatenate([kinds, numbers], axis=1), y


def classes(draw, rows=60_000):
    """Five classes around fifteen centres in thirty columns."""
    centres = draw.normal(size=(15, 30)) * 0.55
    which = draw.integers(0, 15, rows)
    x = centres[which] + draw.normal(size=(rows, 30))
    return x, (which % 5).astype(float)


measured = []
for name, make in [("regression", regression), ("binary", binary), ("classes", classes)]:
    x, y = make(np.random.default_rng(7))
    train = len(x) * 4 // 5
    x.tofile(folder / f"{name}.x")
    y.tofile(folder / f"{name}.y")
    options = {"early_stopping": False}
    if name == "binary":
        options["categorical_features"] = [0, 1, 2, 3]
    kind = HistGradientBoostingRegressor if name == "regression" else HistGradientBoostingClassifier
    fits, predictions = [], []
    for _ in range(runs):
        model = kind(**options)
        start = time.perf_counter()
        model.fit(x[:train], y[:train])
        fits.append(time.perf_counter() - start)
        start = time.perf_counter()
        if name == "regression":
            predicted = model.predict(x)
        else:
            predicted = model.predict_proba(x)
        predictions.append(time.perf_counter() - start)
    held, predicted = y[train:], predicted[train:]
    if name == "regression":
        quality = {"r2": r2_score(held, predicted), "mae": mean_absolute_error(held, predicted)}
    else:
        quality = {
            "accuracy": accuracy_score(held, predicted.argmax(axis=1)),
            "loss": log_loss(held, predicted),
        }
    properties = {"size": [*x.shape, train], "fit": fits, "predict": predictions}
    properties |= {key: [value] for key, value in quality.items()}
    measured += [" ".join(map(str, [name, key, *values])) for key, values in properties.items()]

(folder / "measured.txt").write_text("\n".join(measured) + "\n")
