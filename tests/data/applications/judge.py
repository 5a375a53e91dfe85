"""Networks of Keras, torchvision and transformers with random weights, their results and their gradients.

python judge.py keras|torch FOLDER CASE...

For each case it writes the weights, under the library's own names, the gradients as if they were weights, and in
CASE.io.safetensors the input x, the factor t, the result in inference (y) and in training (y_train); the gradients are those of
sum(t * y_train). All are computed in f64. `noise` is how far the library itself is from that in f32 (y, y_train, 19 of 20
gradients, the farthest gradient), at most, with these weights and with such that differ from them by rounding: that moves numbers
across the kink of a ReLU, and a normalization of few positions amplifies it.
"""

import sys

import numpy as np
from safetensors.numpy import save_file

library, folder, cases = sys.argv[1], sys.argv[2], sys.argv[3:]
rng = np.random.default_rng(7)
# How often the noise is measured, besides the run with the weights themselves.
RUNS = 2


def normal(shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def far(got, want):
    """The distance between two arrays, relative to the length of one."""
    return np.linalg.norm(got.astype(np.float64) - want) / max(np.linalg.norm(want), 1e-30)


def rounded(value):
    """Other numbers, as near to these as rounding may bring them."""
    if value.dtype != np.float32:
        return value
    return (value * (1 + rng.choice([-1, 0, 1], value.shape) * 2.0**-23)).astype(np.float32)


def write(case, x, t, exact, own):
    """Results and gradients in f64, and several times in f32."""
    y, y_train, gradients = exact
    spread = far(y, y.mean(0, keepdims=True))
    assert spread > 0.01, f"{case}: in inference all images have nearly the same result ({spread}), which checks little"
    noise = np.zeros(4, np.float32)
    for y32, y_train32, gradients32 in own:
        apart = sorted(far(gradients32[k], g) for k, g in gradients.items() if np.linalg.norm(g) > 1e-3)
        most = apart[(len(apart) - 1) * 19 // 20]
        noise = np.maximum(noise, [far(y32, y), far(y_train32, y_train), most, apart[-1]])
    arrays = {"x": x, "t": t, "y": y, "y_train": y_train, "noise": noise}
    arrays = {k: v.astype(np.float32) for k, v in arrays.items()}
    save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, f"{folder}/{case}.io.safetensors")


def shaken(name, value):
    """Statistics and factors of normalizations that are not 0 and 1."""
    shape = value.shape
    if "var" in name:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if name.endswith("mean") or "beta" in name or "bias" in name:
        return normal(shape, 0.1)
    if "gamma" in name or (len(shape) == 1 and "weight" in name):
        return 1 + normal(shape, 0.1)
    return None


def keras_case(case):
    import keras
    import tensorflow as tf

    network, top = case.removesuffix("_notop"), not case.endswith("_notop")
    keras.utils.set_random_seed(3)
    options = {"classes": 10, "classifier_activation": None} if top else {"include_top": False, "pooling": "avg"}
    def build(dtype):
        keras.config.set_dtype_policy(dtype)
        model = getattr(keras.applications, network)(weights=None, input_shape=(64, 64, 3), **options)
        for layer in model.layers:
            if isinstance(layer, keras.layers.Dropout):
                layer.rate = 0.0
        return model

    def use_statistics(of):
        # A normalization of images computes with copies of its weights.
        for layer in of.layers:
            if isinstance(layer, keras.layers.Normalization):
                layer.finalize_state()

    model = build("float32")
    for weight in model.weights:
        if isinstance(weight, keras.Variable) and "seed" not in weight.path and "count" not in weight.path:
            new = shaken(weight.path.split("/")[-1], weight.numpy())
            if new is not None:
                weight.assign(new)
    use_statistics(model)
    # The networks that scale images get those of 0 to 255.
    low, high = (0, 255) if network.startswith(("MobileNetV3", "EfficientNet")) else (-1, 1)
    x, others = (rng.uniform(low, high, (n, 64, 64, 3)).astype(np.float32) for n in (4, 16))
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    if not norms:
        # Keras's initial kernels make the numbers smaller from layer to layer.
        for weight in model.weights:
            if weight.path.endswith("kernel"):
                weight.assign(2**0.5 * weight.numpy())
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0.0
    model(others, training=True)
    for layer, momentum in zip(norms, momenta):
        layer.momentum = momentum
    model.save_weights(f"{folder}/{case}.weights.h5")
    twin = build("float64")
    for a, b in zip(twin.weights, model.weights):
        a.assign(b.numpy())
    use_statistics(twin)
    t = normal(model(x, training=False).shape)

    def run(of, dtype):
        y = of(x.astype(dtype), training=False).numpy()
        with tf.GradientTape() as tape:
            y_train = of(x.astype(dtype), training=True)
            loss = tf.reduce_sum(t.astype(dtype) * y_train)
        gradients = tape.gradient(loss, [w.value for w in of.trainable_weights])
        return y, y_train.numpy(), {k: g.numpy() for k, g in enumerate(gradients)}

    weights = [weight.numpy() for weight in model.weights]
    exact, own = run(twin, "float64"), [run(model, "float32")]
    for _ in range(RUNS):
        for weight, value in zip(model.weights, weights):
            weight.assign(rounded(value))
        use_statistics(model)
        own.append(run(model, "float32"))
    write(case, x, t, exact, own)
    for weight, gradient in zip(model.trainable_weights, exact[2].values()):
        weight.assign(gradient.astype(np.float32))
    model.save_weights(f"{folder}/{case}.grads.weights.h5")


def torch_case(case):
    import torch

    torch.manual_seed(3)
    torch.set_num_threads(2)
    model, x, call = torch_model(case)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    with torch.no_grad():
        for name, value in model.state_dict().items():
            new = shaken(name, value.numpy())
            if new is not None:
                value.copy_(torch.from_numpy(new))

    def save(name, arrays):
        arrays = {published(k): np.ascontiguousarray(v) for k, v in arrays.items()}
        save_file(arrays, f"{folder}/{case}{name}.safetensors")

    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if norms:
        for module in norms:
            module.momentum = 1.0
        others = torch.from_numpy(rng.uniform(-1, 1, (16, 3, 64, 64)).astype(np.float32))
        with torch.no_grad():
            model(others)
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    save("", {k: v.numpy() for k, v in weights.items()})

    def run(dtype, weights=weights):
        of = model.to(dtype)
        of.load_state_dict(weights)
        of.eval()
        with torch.no_grad():
            y = call(of, dtype).numpy()
        t_of = torch.from_numpy(t_for(y.shape)).to(dtype)
        of.train()
        of.zero_grad()
        y_train = call(of, dtype)
        (t_of * y_train).sum().backward()
        gradients = {k: p.grad.numpy().copy() for k, p in of.named_parameters() if p.grad is not None}
        return y, y_train.detach().numpy(), gradients

    own = [run(torch.float32)]
    for _ in range(RUNS):
        other = {k: torch.from_numpy(np.asarray(rounded(v.numpy()))) for k, v in weights.items()}
        own.append(run(torch.float32, other))
    exact = run(torch.float64)
    write(case, x, t_for(exact[0].shape), exact, own)
    none = {k: np.zeros_like(v.numpy()) for k, v in weights.items()}
    save(".grads", none | {k: v.astype(np.float32) for k, v in exact[2].items()})


factors = {}


def t_for(shape):
    return factors.setdefault(tuple(shape), normal(shape))


def torch_model(case):
    """The network, its input, and how it is called."""
    import torch

    if case in ("bert", "gpt2", "llama", "vit"):
        return transformers_model(case)
    import torchvision

    x = rng.uniform(-1, 1, (4, 64, 64, 3)).astype(np.float32)
    images = torch.from_numpy(x).permute(0, 3, 1, 2)
    if case == "vit_b_16":
        small = {"image_size": 64, "patch_size": 16, "num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 48}
        model = torchvision.models.VisionTransformer(**small, num_classes=10)
        torch.nn.init.normal_(model.heads.head.weight, std=0.2)
    else:
        model = getattr(torchvision.models, case)(weights=None, num_classes=10)
    if case == "vgg16":
        model.avgpool = torch.nn.Identity()
        model.classifier[0] = torch.nn.Linear(2 * 2 * 512, 4096)
    return model, x, lambda model, dtype: model(images.to(dtype))


def transformers_model(case):
    import torch
    import transformers as hf

    # Token 0 is padding for some of them, which gets no gradient.
    tokens = rng.integers(1, 50, (2, 12))
    ids = torch.from_numpy(tokens)
    x = tokens.astype(np.float32)
    wide = {"initializer_range": 0.2, "vocab_size": 50}
    if case == "bert":
        config = hf.BertConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **wide
        )
        mask = torch.ones_like(ids)
        mask[1, 9:] = 0

        def call(model, dtype):
            y = model(ids, attention_mask=mask)
            return y.last_hidden_state.mean(1) + y.pooler_output

        return hf.BertModel(config), x, call
    if case == "gpt2":
        config = hf.GPT2Config(
            n_embd=32, n_layer=2, n_head=4, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            bos_token_id=0, eos_token_id=0, **wide
        )
        return hf.GPT2LMHeadModel(config), x, lambda model, dtype: model(ids).logits
    if case == "llama":
        config = hf.LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
            max_position_embeddings=16, **wide
        )
        return hf.LlamaForCausalLM(config), x, lambda model, dtype: model(ids).logits
    config = hf.ViTConfig(
        image_size=64, patch_size=16, num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=48,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=10, initializer_range=0.2
    )
    x = rng.uniform(-1, 1, (2, 64, 64, 3)).astype(np.float32)
    images = torch.from_numpy(x).permute(0, 3, 1, 2)
    return hf.ViTForImageClassification(config), x, lambda model, dtype: model(images.to(dtype)).logits


def published(name):
    """The name in published files, which this version of transformers renames when it saves and loads."""
    import re

    if not name.startswith(("vit.layers.", "layers.")):
        return name
    name = name.replace("layers.", "encoder.layer.", 1)
    for new, old in {
        "attention.q_proj": "attention.attention.query", "attention.k_proj": "attention.attention.key",
        "attention.v_proj": "attention.attention.value", "attention.o_proj": "attention.output.dense",
        "mlp.fc1": "intermediate.dense", "mlp.fc2": "output.dense",
    }.items():
        name = re.sub(re.escape(new), old, name)
    return name


for case in cases:
    {"keras": keras_case, "torch": torch_case}[library](case)
    print("made", case, flush=True)
