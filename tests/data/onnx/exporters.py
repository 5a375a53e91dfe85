"""Writes models with the exporters that people use, and the results that onnxruntime has for them.

    python exporters.py torch|sklearn|keras FOLDER [--all]

makes FOLDER/NAME.onnx and FOLDER/NAME.safetensors with `in.*` and `out.*`; with --all, also the models that are no files of this
repository. tests/saved_model/onnx.rs compares those in exported/, all of seed 0, and with WGRAD_ONNX_FOLDER those of any folder.

- torch: PyTorch 2.15.0, torchvision 0.29.2, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0
- sklearn: scikit-learn 1.9.1, skl2onnx 1.20.0, onnx 1.23.2, onnxruntime 1.32.0
- keras: TensorFlow 2.15.1, tf2onnx 1.17.0, onnx 1.17.0, onnxruntime 1.32.0

Each needs safetensors, too.
"""

import os
import sys
import traceback
import warnings

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import save_file

warnings.filterwarnings("ignore")
KIND, FOLDER = sys.argv[1:3]
ALL = "--all" in sys.argv
RANDOM = np.random.default_rng(0)

# The models that the repository has.
KEPT = {
    "torch": "mlp_dynamo conv_net_script residual_dynamo lstm_script gru_dynamo encoder_dynamo attention_script "
    "signal_dynamo words_dynamo unet_script branch_dynamo loop_script patches_dynamo spectrum_dynamo",
    "sklearn": "scaled_logistic forest_classifier boosting_regressor missing_boosting one_hot_tree svm linear_models",
    "keras": "dense conv lstm gru_bidirectional attention",
}[KIND].split()


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def finish(name, arrays):
    """Records the results of the model, whose inputs are `arrays` in order."""
    path = os.path.join(FOLDER, name + ".onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for info in list(model.graph.value_info):
        model.graph.value_info.remove(info)
    del model.graph.metadata_props[:]
    for function in model.functions:
        for node in function.node:
            node.ClearField("metadata_props")
    onnx.save(model, path)
    if os.path.exists(path + ".data"):
        os.remove(path + ".data")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {info.name: array for info, array in zip(session.get_inputs(), arrays, strict=True)}
    names = [info.name for info in session.get_outputs()]
    try:  # A larger batch than the exporter saw, unless the model has its size.
        larger = {key: np.concatenate([array, array[:1]]) if array.ndim else array for key, array in feeds.items()}
        session.run(names, larger)
        feeds = larger
    except Exception:
        print(f"{name}: the batch has the size of the export", file=sys.stderr)
    files = {f"in.{key}": np.array(array, order="C") for key, array in feeds.items()}
    for key, value in zip(names, session.run(names, feeds)):
        files[f"out.{key}"] = np.array(value, order="C")
    save_file(files, os.path.join(FOLDER, name + ".safetensors"))
    ops = sorted({f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node})
    print(f"{name}: {os.path.getsize(path)} bytes, opset {model.opset_import[0].version}, {' '.join(ops)}")


def attempt(name, run):
    if not ALL and name not in KEPT:
        return
    try:
        run()
    except Exception as error:  # Each model is reported.
        if os.path.exists(os.path.join(FOLDER, name + ".onnx")):
            os.remove(os.path.join(FOLDER, name + ".onnx"))
        print(f"{name} is not exported: {type(error).__name__}: {str(error)[:300] + str(error)[-200:]}", file=sys.stderr)
        if "-v" in sys.argv:
            traceback.print_exc()


def torch_models():
    import torch
    from torch import nn
    from torch.nn import functional

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(8)
            self.a, self.b = nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.Conv2d(16, 16, 3, 1, 1, bias=False)
            self.an, self.bn2 = nn.BatchNorm2d(16), nn.BatchNorm2d(16)
            self.short = nn.Conv2d(8, 16, 1, 2, bias=False)
            self.head = nn.Linear(16, 5)

        def forward(self, x):
            x = functional.relu(self.bn(self.stem(x)))
            y = self.bn2(self.b(functional.relu(self.an(self.a(x)))))
            x = functional.relu(y + self.short(x))
            return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))

    class Recurrent(nn.Module):
        def __init__(self, kind, **options):
            super().__init__()
            self.layer = kind(6, 7, batch_first=True, **options)
            self.head = nn.Linear(14 if options.get("bidirectional") else 7, 3)

        def forward(self, x):
            y, _ = self.layer(x)
            return self.head(y[:, -1]), y

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, activation="gelu", norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x):
            return self.encoder(x).mean(1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, query, memory):
            return self.attention(query, memory, memory, need_weights=True)

    class Signal(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv1d(2, 8, 5, 2, 2, dilation=1)
            self.deep = nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=4)
            self.up = nn.ConvTranspose2d(8, 3, 3, 2, 1, output_padding=1)

        def forward(self, x):
            x = functional.elu(self.deep(functional.leaky_relu(self.down(x), 0.1)))
            return self.up(x.unflatten(2, (4, -1))), functional.avg_pool1d(x, 2)

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(30, 8), nn.Embedding(16, 8)
            self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 30)

        def forward(self, ids):
            places = torch.arange(ids.shape[1], device=ids.device)
            x = self.norm(self.words(ids) + self.places(places))
            causal = torch.tril(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool))
            scores = (x @ x.transpose(1, 2) / 8**0.5).masked_fill(~causal, float("-inf"))
            return functional.log_softmax(self.out(scores.softmax(-1) @ x), -1)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.c, self.norm = nn.Conv2d(16, 2, 3, padding=1), nn.GroupNorm(2, 8)

        def forward(self, x):
            a = functional.silu(self.norm(self.a(x)))
            b = functional.silu(self.b(functional.max_pool2d(a, 2)))
            up = functional.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
            near = functional.interpolate(a, size=(5, 7), mode="nearest")
            return self.c(torch.cat([up, a], 1)).sigmoid(), near

    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).tanh() - 1, (x,))

    class Turns(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, turns):
            for turn in range(int(turns)):
                if turn % 2 == 0:
                    x = torch.tanh(self.layer(x))
                else:
                    x = x * 0.5 + 1.0
            return x

    class Boxes(nn.Module):
        def forward(self, x):
            best, places = x.topk(3, dim=1)
            sums = x.cumsum(1) + x.roll(1, 1)
            mask = (x > 0) & (x < 1)
            return best, places, sums, torch.where(mask, x, x.floor()), x.std(1), torch.einsum("bi,bj->bij", x, x).amax(2)

    class Pixels(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(2, 8, 3, padding="same", padding_mode="reflect")
            self.norm = nn.InstanceNorm2d(8, affine=True)

        def forward(self, x):
            x = functional.hardswish(self.norm(self.a(x)))
            x = functional.pixel_shuffle(x, 2)
            return functional.pad(x, (1, 2, 0, 1), value=0.5), functional.adaptive_avg_pool2d(x, (4, 2))

    class Sampled(nn.Module):
        def forward(self, x, theta):
            grid = functional.affine_grid(theta, [2, 2, 5, 6], align_corners=False)
            return functional.grid_sample(x, grid, mode="bilinear", align_corners=False)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
            self.decoder = nn.TransformerDecoder(layer, 1)

        def forward(self, x, memory):
            mask = nn.Transformer.generate_square_subsequent_mask(6)
            return self.decoder(x, memory, tgt_mask=mask)

    class Of(nn.Module):
        """A function as a model."""

        def __init__(self, function, *layers):
            super().__init__()
            self.function, self.layers = function, nn.ModuleList(layers)

        def forward(self, *inputs):
            return self.function(*inputs, *self.layers)

    def of(function, *layers):
        return lambda: Of(function, *(layer() for layer in layers))

    def padded(x, layer):
        return torch.nn.functional.scaled_dot_product_attention(layer(x), x, x, is_causal=True)

    def placed(x):
        y = torch.zeros_like(x).scatter(1, x.argsort(1), x)
        z = x.clone()
        z[:, 1:3] = x[:, 2:4] * 2
        z[x > 0.5] = 0.25
        return y, z, x.gather(1, x.argsort(1, descending=True)), x.flip(1), x.index_select(1, torch.tensor([3, 0]))

    def shapes(x):
        a = x.unfold(1, 3, 2).reshape(x.shape[0], -1)
        b = x.repeat(1, 2).chunk(3, 1)[1]
        c = x[:, None, ::2].expand(-1, 3, -1)
        return a, b, c, x.tile(2, 1)[1:, -3:], torch.stack([x, x + 1], -1).movedim(-1, 0), x.repeat_interleave(2, 1)

    def counts(ids):
        hot = functional.one_hot(ids, 30)
        return hot.sum(1), (ids // 4) * 4 + ids % 4, (ids & 5) | 1, ids.float().cumsum(1), (ids > 3).any(1), ids.max(1).values

    def statistics(x):
        return x.var(1), x.logsumexp(1), x.prod(1), x.norm(dim=1), functional.normalize(x, dim=1), torch.nan_to_num(x / 0.0)

    def distances(x, y):
        return torch.cdist(x, y), torch.baddbmm(torch.ones(2, 5, 6), x, y.transpose(1, 2)), torch.triu(x, 1), torch.outer(x[0, 0], y[0, 0])

    def activations(x):
        names = "relu6 hardtanh hardsigmoid softsign tanhshrink celu selu mish gelu logsigmoid silu softmin glu threshold".split()
        calls = [(lambda x: functional.threshold(x, 0.1, 0.2)) if name == "threshold" else getattr(functional, name) for name in names]
        calls[names.index("softmin")] = lambda x: functional.softmin(x, 1)
        return tuple(call(x) for call in calls)

    def numbers(x):
        y = x.abs() + 0.5
        return x.erf(), y.log1p(), x.sinh(), x.atan(), y.rsqrt(), x.sign(), x.clamp(-0.5), x.round(), x.frac(), torch.atan2(x, y), y.pow(1.5), torch.fmod(x, 0.3), torch.remainder(x, 0.3), x.lerp(y, 0.2)

    def pools(x):
        return functional.max_pool2d(x, 3, 2, 1, ceil_mode=True), functional.adaptive_max_pool2d(x, 2), functional.lp_pool2d(x, 2, 2), functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False)

    def resizes(x):
        call = functional.interpolate
        return (
            call(x, scale_factor=2, mode="bicubic"),
            call(x, size=(11, 5), mode="bilinear", align_corners=True),
            call(x, size=(3, 4), mode="nearest-exact"),
            call(x, scale_factor=0.5, mode="area"),
        )

    def bilinear(x, layer):
        return layer(x, x.flip(1))

    def stateful(x, layer):
        y, (h, c) = layer(x, (torch.ones(1, x.shape[0], 7), torch.zeros(1, x.shape[0], 7)))
        return y, h, c

    def spectrum(x):
        return torch.fft.rfft(x).abs(), torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs()

    def cnn():
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=8)]
        return nn.Sequential(*layers, nn.Hardswish(), nn.Dropout(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 4), nn.Softmax(1))

    def vision(name, **options):
        def make():
            import torchvision

            return getattr(torchvision.models, name)(weights=None, num_classes=10, **options)

        return make

    ids = RANDOM.integers(0, 30, size=(2, 6))
    image, sequence = normal(2, 3, 8, 8), normal(2, 5, 6)
    models = [
        ("mlp", lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3), nn.Softplus()), [normal(4, 6)]),
        ("conv_net", cnn, [image]),
        ("residual", Residual, [image]),
        ("lstm", lambda: Recurrent(nn.LSTM, bidirectional=True, num_layers=2), [sequence]),
        ("gru", lambda: Recurrent(nn.GRU), [sequence]),
        ("rnn", lambda: Recurrent(nn.RNN, nonlinearity="relu"), [sequence]),
        ("encoder", Encoder, [normal(2, 5, 16)]),
        ("attention", Attention, [normal(2, 4, 12), normal(2, 6, 12)]),
        ("decoder", Decoder, [normal(2, 6, 8), normal(2, 4, 8)]),
        ("signal", Signal, [normal(2, 2, 32)]),
        ("words", Words, [ids]),
        ("unet", UNet, [normal(2, 3, 8, 6)]),
        ("branch", Branch, [normal(2, 4)]),
        ("loop", lambda: torch.jit.script(Turns()), [normal(2, 4), np.array(5)]),
        ("boxes", Boxes, [normal(3, 6)]),
        ("pixels", Pixels, [normal(2, 2, 6, 8)]),
        ("sampled", Sampled, [normal(2, 2, 6, 6), normal(2, 2, 3)]),
        ("scaled", of(padded, lambda: nn.Linear(8, 8)), [normal(2, 6, 8)]),
        ("placed", of(placed), [normal(3, 6)]),
        ("shapes", of(shapes), [normal(3, 6)]),
        ("counts", of(counts), [ids]),
        ("statistics", of(statistics), [normal(3, 7)]),
        ("distances", of(distances), [normal(2, 5, 4), normal(2, 6, 4)]),
        ("activations", of(activations), [normal(3, 6)]),
        ("numbers", of(numbers), [normal(3, 6)]),
        ("pools", of(pools), [normal(2, 3, 8, 8)]),
        ("resizes", of(resizes), [normal(2, 3, 6, 8)]),
        ("bilinear", of(bilinear, lambda: nn.Bilinear(6, 6, 3)), [normal(3, 6)]),
        ("stateful", of(stateful, lambda: nn.LSTM(6, 7, batch_first=True)), [sequence]),
        ("volume", of(lambda x, a, b, n: b(n(a(x))), lambda: nn.Conv3d(2, 4, 3, padding=1), lambda: nn.ConvTranspose3d(4, 2, 2, 2), lambda: nn.BatchNorm3d(4)), [normal(2, 2, 4, 4, 4)]),
        ("transposed", of(lambda x, a: a(x), lambda: nn.ConvTranspose1d(2, 4, 5, 3, 1, output_padding=2, groups=2, dilation=2)), [normal(2, 2, 9)]),
        ("patches", of(lambda x: functional.fold(functional.unfold(x, 3, padding=1), (6, 6), 3, padding=1)), [normal(2, 2, 6, 6)]),
        ("spectrum", of(spectrum), [normal(2, 32)]),
        ("zeros", of(lambda x: (x > 0).nonzero()), [normal(3, 6)]),
        ("shufflenet", vision("shufflenet_v2_x0_5"), [normal(2, 3, 64, 64)]),
        ("mobilenet", vision("mobilenet_v3_small"), [normal(2, 3, 64, 64)]),
        ("resnet18", vision("resnet18"), [normal(2, 3, 64, 64)]),
        ("squeezenet", vision("squeezenet1_1"), [normal(2, 3, 64, 64)]),
    ]
    for name, make, arrays in models:
        torch.manual_seed(0)
        try:
            model = make()
        except Exception as error:
            print(name, error, file=sys.stderr)
            continue
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(0, 0.3)
                layer.running_var.uniform_(0.5, 1.5)
        model.eval()
        tensors = tuple(torch.from_numpy(np.asarray(array)) for array in arrays)

        def script(name=f"{name}_script", model=model, tensors=tensors, arrays=arrays):
            names = [f"x{at}" for at in range(len(tensors))]
            axes = {key: {0: "batch"} for key, tensor in zip(names, tensors) if tensor.ndim}
            path = os.path.join(FOLDER, name + ".onnx")
            opset = 20 if isinstance(model, (Of, Sampled)) else 17
            torch.onnx.export(model, tensors, path, dynamo=False, input_names=names, dynamic_axes=axes, opset_version=opset)
            finish(name, arrays)

        def dynamo(name=f"{name}_dynamo", model=model, tensors=tensors, arrays=arrays):
            batch = torch.export.Dim("batch")
            shapes = tuple({0: batch} if tensor.ndim else None for tensor in tensors)
            shapes = (shapes,) if isinstance(model, Of) else shapes
            path = os.path.join(FOLDER, name + ".onnx")
            torch.onnx.export(model, tensors, path, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False)
            finish(name, arrays)

        attempt(f"{name}_script", script)
        attempt(f"{name}_dynamo", dynamo)


def sklearn_models():
    # skl2onnx passes numbers of numpy and truth values on, which onnx refuses.
    make_attribute = onnx.helper.make_attribute

    def attribute(key, value, *args, **options):
        if isinstance(value, (list, tuple)):
            value = [element.item() if isinstance(element, np.generic) else element for element in value]
            value = [int(element) if isinstance(element, bool) else element for element in value]
        return make_attribute(key, value, *args, **options)

    onnx.helper.make_attribute = attribute
    from skl2onnx import to_onnx
    from sklearn import cluster, compose, decomposition, ensemble, feature_selection, impute, linear_model, naive_bayes
    from sklearn import neighbors, neural_network, pipeline, preprocessing, svm, tree

    x = normal(120, 5)
    y = (x[:, 0] - x[:, 1] * x[:, 2] + 0.3 * x[:, 3]).astype(np.float32)
    two, three = (y > 0).astype(np.int64), np.digitize(y, [-0.5, 0.6]) + 3
    holes = x.copy()
    holes[RANDOM.random(x.shape) < 0.2] = np.nan
    codes = RANDOM.integers(0, 4, size=(120, 2)).astype(np.float32)
    mixed = np.concatenate([x, codes], 1)
    pipe = pipeline.make_pipeline
    columns = compose.make_column_transformer(
        (preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False), [5, 6]),
        (preprocessing.StandardScaler(), [0, 2]),
    )
    models = [
        ("scaled_logistic", pipe(preprocessing.StandardScaler(), linear_model.LogisticRegression()), x, three, {}),
        ("logistic_two", pipe(preprocessing.MinMaxScaler(), linear_model.LogisticRegression()), x, two, {}),
        ("raw_logistic", linear_model.LogisticRegression(), x, three, {"raw_scores": True}),
        ("linear_models", pipe(preprocessing.Normalizer(), linear_model.Ridge()), x, np.stack([y, -2 * y], 1), {}),
        ("linear", linear_model.LinearRegression(), x, y, {}),
        ("sgd", linear_model.SGDClassifier(loss="log_loss", random_state=0), x, three, {}),
        ("perceptron", linear_model.Perceptron(random_state=0), x, two, {}),
        ("tree_classifier", tree.DecisionTreeClassifier(max_depth=4, random_state=0), x, three, {}),
        ("tree_two", tree.DecisionTreeClassifier(max_depth=4, random_state=0), x, two, {}),
        ("tree_regressor", tree.DecisionTreeRegressor(max_depth=5, random_state=0), x, y, {}),
        ("forest_classifier", ensemble.RandomForestClassifier(8, max_depth=5, random_state=0), x, three, {}),
        ("forest_two", ensemble.RandomForestClassifier(8, max_depth=5, random_state=0), x, two, {}),
        ("forest_regressor", ensemble.RandomForestRegressor(6, max_depth=4, random_state=0), x, np.stack([y, y * y], 1), {}),
        ("extra", ensemble.ExtraTreesClassifier(6, max_depth=4, random_state=0), x, three, {}),
        ("boosting_regressor", ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0), x, y, {}),
        ("boosting_classifier", ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0), x, three, {}),
        ("boosting_two", ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0), x, two, {}),
        ("missing_boosting", ensemble.HistGradientBoostingClassifier(max_iter=5, max_depth=4, random_state=0), holes, two, {}),
        ("histogram", ensemble.HistGradientBoostingRegressor(max_iter=6, random_state=0), holes, y, {}),
        ("histogram_three", ensemble.HistGradientBoostingClassifier(max_iter=4, random_state=0), holes, three, {}),
        ("imputed", pipe(impute.SimpleImputer(), preprocessing.RobustScaler(), linear_model.Lasso(0.01)), holes, y, {}),
        ("one_hot_tree", pipe(columns, tree.DecisionTreeRegressor(max_depth=3, random_state=0)), mixed, y, {}),
        ("ordinal", pipe(preprocessing.OrdinalEncoder(), linear_model.LinearRegression()), codes, y, {}),
        ("binarized", pipe(preprocessing.Binarizer(threshold=0.2), naive_bayes.BernoulliNB()), x, three, {}),
        ("bayes", naive_bayes.GaussianNB(), x, three, {}),
        ("svm", svm.SVC(probability=True, random_state=0), x, three, {}),
        ("svm_plain", svm.SVC(kernel="poly", random_state=0), x, three, {}),
        ("svm_two", svm.SVC(random_state=0), x, two, {}),
        ("svm_regressor", svm.SVR(), x, y, {}),
        ("svm_linear", svm.LinearSVC(random_state=0), x, three, {}),
        ("svm_nu", svm.NuSVR(kernel="sigmoid"), x, y, {}),
        ("outliers", svm.OneClassSVM(), x, None, {}),
        ("perceptrons", neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=30, random_state=0), x, three, {}),
        ("mlp_regressor", neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, random_state=0), x, y, {}),
        ("neighbors", neighbors.KNeighborsClassifier(3), x, three, {}),
        ("neighbors_regressor", neighbors.KNeighborsRegressor(3), x, y, {}),
        ("pca", pipe(decomposition.PCA(3), linear_model.LogisticRegression()), x, two, {}),
        ("kmeans", cluster.KMeans(3, n_init=1, random_state=0), x, None, {}),
        ("selected", pipe(feature_selection.SelectKBest(k=3), linear_model.Ridge()), x, y, {}),
        ("polynomial", pipe(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), x, y, {}),
        ("bins", pipe(preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="linear"), linear_model.Ridge()), x, y, {}),
        ("quantiles", preprocessing.PowerTransformer(), x, None, {}),
        ("voting", ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))], voting="soft", flatten_transform=False), x, two, {}),
        ("isolation", ensemble.IsolationForest(n_estimators=5, max_samples=32, random_state=0), x, None, {}),
        ("ada", ensemble.AdaBoostClassifier(n_estimators=4, random_state=0), x, three, {}),
        ("bagging", ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=4, random_state=0), x, y, {}),
    ]
    for name, model, features, target, options in models:

        def run(name=name, model=model, features=features, target=target, options=options):
            model.fit(features, target) if target is not None else model.fit(features)
            if hasattr(model, "predict_proba") or hasattr(model, "decision_function") and hasattr(model, "classes_"):
                options = {"zipmap": False, **options} if name not in ("svm_linear",) else options
            path = os.path.join(FOLDER, f"sklearn_{name}.onnx")
            exported = to_onnx(model, features[:1], options={id(model): options} if options else None, target_opset={"": 18, "ai.onnx.ml": 3})
            with open(path, "wb") as file:
                file.write(exported.SerializeToString())
            finish(f"sklearn_{name}", [features[:20]])

        attempt(name, run)


def keras_models():
    import tensorflow as tf
    import tf2onnx

    layers = tf.keras.layers

    def dense():
        return tf.keras.Sequential([layers.Input((6,)), layers.Dense(8, "swish"), layers.LayerNormalization(), layers.Dense(3, "softmax")])

    def conv():
        parts = [layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(6.0), layers.MaxPooling2D()]
        parts += [layers.DepthwiseConv2D(3, 2, padding="same"), layers.LeakyReLU(0.1), layers.Conv2DTranspose(4, 3, 2, padding="same")]
        parts += [layers.UpSampling2D(interpolation="bilinear"), layers.GlobalAveragePooling2D(), layers.Dense(4)]
        return tf.keras.Sequential([layers.Input((9, 8, 3)), *parts])

    def lstm():
        return tf.keras.Sequential([layers.Input((5, 6)), layers.LSTM(7, return_sequences=True), layers.LSTM(4), layers.Dense(2)])

    def gru_bidirectional():
        parts = [layers.Embedding(20, 6), layers.Bidirectional(layers.GRU(5)), layers.Dense(2, "sigmoid")]
        return tf.keras.Sequential([layers.Input((7,), dtype="int32"), *parts])

    def attention():
        x = layers.Input((6, 8))
        y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
        y = layers.Dense(12, "gelu")(y)
        return tf.keras.Model(x, layers.GlobalMaxPooling1D()(y))

    def separable():
        a = layers.Input((8, 8, 2))
        b = layers.SeparableConv2D(6, 3, strides=2, activation="elu")(layers.ZeroPadding2D(1)(a))
        c = layers.concatenate([layers.AveragePooling2D(2)(a), b])
        return tf.keras.Model(a, [layers.Flatten()(c), layers.Softmax(axis=-1)(c)])

    def temporal():
        parts = [layers.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="selu"), layers.SimpleRNN(5)]
        return tf.keras.Sequential([layers.Input((10, 3)), *parts])

    def masked():
        x = layers.Input((7,), dtype="int32")
        return tf.keras.Model(x, layers.LSTM(4)(layers.Embedding(20, 6, mask_zero=True)(x)))

    def conv_lstm():
        return tf.keras.Sequential([layers.Input((3, 6, 6, 2)), layers.ConvLSTM2D(3, 3, padding="same")])

    def mobile():
        return tf.keras.applications.MobileNetV2((64, 64, 3), alpha=0.35, weights=None, classes=5)

    tokens = RANDOM.integers(0, 20, size=(2, 7)).astype(np.int32)
    models = [
        (dense, normal(4, 6)),
        (conv, normal(2, 9, 8, 3)),
        (lstm, normal(2, 5, 6)),
        (gru_bidirectional, tokens),
        (attention, normal(2, 6, 8)),
        (separable, normal(2, 8, 8, 2)),
        (temporal, normal(2, 10, 3)),
        (masked, tokens),
        (conv_lstm, normal(2, 3, 6, 6, 2)),
        (mobile, normal(1, 64, 64, 3)),
    ]
    for make, array in models:

        def run(make=make, array=array):
            name = f"keras_{make.__name__}"
            tf.keras.utils.set_random_seed(0)
            model = make()
            signature = [tf.TensorSpec([None, *array.shape[1:]], array.dtype, name="x")]
            tf2onnx.convert.from_keras(model, signature, opset=17, output_path=os.path.join(FOLDER, name + ".onnx"))
            finish(name, [array])

        attempt(make.__name__, run)


os.makedirs(FOLDER, exist_ok=True)
{"torch": torch_models, "sklearn": sklearn_models, "keras": keras_models}[KIND]()
