"""Models for `cargo xtask bench loading`, and onnxruntime's times for them.

    python loading.py make FOLDER
    python loading.py time MODEL.onnx OPTIMIZED.onnx

`make` takes PyTorch, torchvision, onnxscript and onnxruntime, and writes FOLDER/NAME.onnx with random weights and
FOLDER/NAME.safetensors with an input, `in.x`, and the result that PyTorch has for it, `out.y`. `time` loads a model and runs it on
the processor, and prints milliseconds as a line of JSON, with the largest difference from the expected result. If the file
OPTIMIZED.onnx exists, it loads that; otherwise it writes the file afterwards.
"""

import json
import os
import sys
import time

import numpy as np

SECONDS = 1.0


def models():
    import torch
    import torchvision
    from torch import nn

    class Encoder(nn.Module):
        """Two layers of a transformer: 32 tokens of 128 numbers, 4 heads."""

        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.top = nn.Linear(128, 10)

        def forward(self, x):
            return self.top(self.layers(x).mean(1))

    class Lstm(nn.Module):
        """The rows of a digit, one after another."""

        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(28, 128, batch_first=True)
            self.top = nn.Linear(128, 10)

        def forward(self, x):
            return self.top(self.lstm(x)[0][:, -1])

    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    cnn = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(), nn.Linear(1024, 10),
    )
    yield "mlp", mlp, (1, 784)
    yield "cnn", cnn, (1, 1, 28, 28)
    yield "resnet18", torchvision.models.resnet18(weights=None), (1, 3, 224, 224)
    yield "encoder", Encoder(), (1, 32, 128)
    yield "lstm", Lstm(), (1, 28, 28)


def make(folder):
    import torch
    from safetensors.numpy import save_file

    os.makedirs(folder, exist_ok=True)
    for name, model, shape in models():
        model.eval()
        x = torch.rand(shape, generator=torch.Generator().manual_seed(1))
        file = os.path.join(folder, name + ".onnx")
        names = {"input_names": ["x"], "output_names": ["y"]}
        torch.onnx.export(model, (x,), file, dynamo=True, external_data=False, verbose=False, **names)
        with torch.no_grad():
            y = model(x)
        arrays = {"in.x": x.numpy(), "out.y": y.numpy()}
        save_file(arrays, os.path.join(folder, name + ".safetensors"))
        print(f"{file}: {os.path.getsize(file)} bytes")


def clock(file, optimized):
    import onnxruntime
    from safetensors.numpy import load_file

    arrays = load_file(os.path.splitext(file)[0] + ".safetensors")
    inputs = {"x": arrays["in.x"]}
    kept = os.path.exists(optimized)
    options = onnxruntime.SessionOptions()
    # A file that this machine has optimized needs no more of it.
    if kept:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    at = time.perf_counter()
    session = onnxruntime.InferenceSession(optimized if kept else file, options, providers=providers)
    loaded = time.perf_counter()
    (y,) = session.run(["y"], inputs)
    first = time.perf_counter()
    times = []
    while sum(times) < SECONDS or len(times) < 5:
        start = time.perf_counter()
        session.run(["y"], inputs)
        times.append(time.perf_counter() - start)
    if not kept:
        options.optimized_model_filepath = optimized
        options.log_severity_level = 3
        onnxruntime.InferenceSession(file, options, providers=providers)
    print(json.dumps({
        "load": (loaded - at) * 1e3,
        "first": (first - loaded) * 1e3,
        "steady": float(np.median(times)) * 1e3,
        "difference": float(np.abs(y - arrays["out.y"]).max()),
        "version": onnxruntime.__version__,
    }))


if __name__ == "__main__":
    {"make": make, "time": clock}[sys.argv[1]](*sys.argv[2:])
