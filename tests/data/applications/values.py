"""Writes values.json: what Keras's networks compute with weights from a formula, for one image of 32 x 32.

Element i of weight k of n is sin(0.7 i + k) times sqrt(2 n / all) for kernels, where all is the number of elements and n the size
of the last axis (of the last but one for a depthwise kernel); factors and variances are 1 + that of 0.1 and 0.3, means and biases
0.1 times it. Pixel i is 0.5 + 0.5 sin(0.3 i), times 255 where a network scales images itself.
"""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

NETWORKS = "VGG16 ResNet50 MobileNetV2 MobileNetV3Small MobileNetV3Large EfficientNetB0 DenseNet121".split()


def weight(k, name, shape):
    i = np.arange(int(np.prod(shape)))
    wave = np.sin(0.7 * i + k).reshape(shape)
    if name in ("gamma", "moving_variance", "variance"):
        return 1 + (0.1 if name == "gamma" else 0.3) * wave
    if len(shape) < 2:
        return 0.1 * wave
    columns = shape[-2] if "depthwise" in name else shape[-1]
    return wave * np.sqrt(2 * columns / i.size)


cases = {}
for network in NETWORKS:
    model = getattr(keras.applications, network)(
        weights=None, include_top=False, input_shape=(32, 32, 3), pooling="avg"
    )
    names = []
    k = 0
    for layer in model.layers:
        for variable in layer.weights:
            name = variable.path.split("/")[-1]
            if name == "count":
                continue
            if isinstance(layer, keras.layers.DepthwiseConv2D):
                name = "depthwise " + name
            variable.assign(weight(k, name, variable.shape).astype("float32"))
            k += 1
    scale = 255.0 if network.startswith(("MobileNetV3", "EfficientNet")) else 1.0
    x = scale * (0.5 + 0.5 * np.sin(0.3 * np.arange(32 * 32 * 3))).reshape(1, 32, 32, 3)
    y = model(x.astype("float32"), training=False).numpy()[0].astype(float)
    cases[network] = {
        "mean": round(float(y.mean()), 7),
        "first": [round(float(v), 6) for v in y[:6]],
        "layers": [layer.name for layer in model.layers if layer.weights],
    }
with open(os.path.join(os.path.dirname(__file__), "values.json"), "w") as file:
    file.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in cases.items()) + "\n}\n")
