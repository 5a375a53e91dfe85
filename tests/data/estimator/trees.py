"""Writes trees.json: small tables, and the trees that scikit-learn grows for them.

Values and labels are multiples of 1/64, so that JSON holds them exactly. A node is [feature, threshold, missing goes left, gain,
rows, left, right], a categorical one has the list of the places of its categories instead of the threshold, and a leaf is
[value, rows]. Made with scikit-learn 1.9.1.
"""

import json
import pathlib

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor


def table(rows, seed, fine):
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, 9, rows).astype(float)
    kind[draw.random(rows) < 0.08] = np.nan
    few = draw.integers(0, 30, rows) / 64 * 8
    few[draw.random(rows) < 0.15] = np.nan
    many = draw.integers(0, 1 << fine, rows) / 64
    last = draw.integers(-50, 50, rows) / 64
    return np.stack([kind, few, many, last], axis=1), draw


def scores(x, draw):
    lucky = np.isin(x[:, 0], [1, 4, 7]) * 1.5
    few = np.where(np.isnan(x[:, 1]), 1.2, np.sin(3 * np.nan_to_num(x[:, 1])))
    return lucky + few + 0.8 * (x[:, 2] > np.median(x[:, 2])) * x[:, 3] * 4 + 0.3 * draw.normal(size=len(x))


def nodes(predictor):
    found = []
    for node in predictor.nodes:
        if node["is_leaf"]:
            found.append([float(node["value"]), int(node["count"])])
            continue
        test = float(node["num_threshold"])
        if not np.isfinite(test):
            test = None
        if node["is_categorical"]:
            words = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
            test = [i for i in range(256) if words[i // 32] >> (i % 32) & 1]
        found.append([
            int(node["feature_idx"]), test, bool(node["missing_go_to_left"]), float(node["gain"]), int(node["count"]),
            int(node["left"]), int(node["right"]),
        ])
    return found


def case(name, model, x, y, options, weights=None):
    model.set_params(early_stopping=False, categorical_features=[0], **options)
    model.fit(x, y, sample_weight=weights)
    raw = model._raw_predict(x[:50].astype(float))
    return {
        "name": name,
        "options": options,
        "x": [[None if np.isnan(v) else v for v in row] for row in x.tolist()],
        "y": y.tolist(),
        "weights": None if weights is None else weights.tolist(),
        "baseline": np.ravel(model._baseline_prediction).tolist(),
        "trees": [nodes(tree) for trees in model._predictors for tree in trees],
        "raw": raw.reshape(50, -1).tolist(),
    }


cases = []
x, draw = table(400, 1, 6)
score = scores(x, draw)
y = np.round(score * 64) / 64
small = {"max_iter": 4, "max_leaf_nodes": 12, "min_samples_leaf": 8}
cases.append(case("regression", HistGradientBoostingRegressor(), x, y, small))
absolute = HistGradientBoostingRegressor(loss="absolute_error")
cases.append(case("absolute", absolute, x, y, small | {"max_iter": 3}))
weights = draw.integers(1, 5, len(x)).astype(float)
cases.append(case("weights", HistGradientBoostingRegressor(), x, y, small | {"l2_regularization": 2.0}, weights))
cases.append(case("binary", HistGradientBoostingClassifier(), x, (score > 1).astype(int), small))
classes = np.digitize(score, [0.5, 1.5])
cases.append(case("classes", HistGradientBoostingClassifier(), x, classes, small | {"max_depth": 3, "max_iter": 3}))
# More values than bins.
x, draw = table(997, 2, 14)
y = np.round(scores(x, draw) * 64) / 64
cases.append(case("quantiles", HistGradientBoostingRegressor(), x, y, {"max_iter": 3, "max_bins": 40}))

path = pathlib.Path(__file__).with_name("trees.json")
path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
