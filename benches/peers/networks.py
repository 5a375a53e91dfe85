"""Known networks in PyTorch, on the processor, beside wgrad's: `networks.py weights FOLDER` writes the weights that all load, and
`networks.py time CASE FOLDER SECONDS` measures a case. Its lines of JSON are those of `src/networks/child.rs`.
"""

import json
import resource
import statistics
import sys
import time
from pathlib import Path

import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file

NEW_TOKENS, RATE, VOCABULARY = 64, 0.01, 40_000


def resnet50():
    return torchvision.models.resnet50()


def gpt2():
    # Larger than usual, so that greedy texts do not repeat one token.
    config = transformers.GPT2Config(vocab_size=VOCABULARY, initializer_range=0.08)
    return transformers.GPT2LMHeadModel(config)


def bert():
    config = transformers.BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return transformers.BertModel(config)


MODELS = {"resnet50": resnet50, "gpt2": gpt2, "bert": bert}


def weights(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        torch.manual_seed(1)
        state = model().state_dict()
        # GPT-2's output layer is its table of tokens.
        state.pop("lm_head.weight", None)
        state = {key: value.contiguous() for key, value in state.items() if "num_batches" not in key}
        save_file(state, folder / f"{name}.safetensors")


def load(name, folder):
    model = MODELS[name]()
    model.load_state_dict(load_file(folder / f"{name}.safetensors"), strict=False)
    if name == "gpt2":
        model.tie_weights()
    return model


def wave(*shape):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7919 % 2001).float() / 1000 - 1).reshape(shape)


def tokens(length):
    return ((torch.arange(length) * 7919 + 13) % 30_000)[None]


def prepared(name, folder):
    """The model, and a function that returns its values and the seconds that count, if these are not all."""
    if name.startswith("resnet50"):
        model, kind = load("resnet50", folder), name.removeprefix("resnet50_")
        batch = 4 if kind == "train" else int(kind)
        x = wave(batch, 224, 224, 3).permute(0, 3, 1, 2).contiguous()
        labels = torch.arange(batch) * 397 % 1000
        if kind == "train":
            return training(model, lambda: torch.nn.functional.cross_entropy(model(x), labels))
        return model.eval(), lambda: (model(x).flatten().tolist(), None)
    if name.startswith("bert"):
        model, ids = load("bert", folder), tokens(128)
        if name == "bert_train":
            target = wave(1, 128, 768)
            loss = lambda: (model(ids).last_hidden_state - target).square().mean()
            return training(model, loss)
        return model.eval(), lambda: (model(ids).last_hidden_state[0, 0].tolist(), None)
    model, ids = load("gpt2", folder).eval(), tokens(128)

    def generate():
        answer = model(ids, use_cache=True, logits_to_keep=1)
        words = [answer.logits[0, -1].argmax().item()]
        start = time.perf_counter()
        for _ in range(NEW_TOKENS if name == "gpt2_generate" else 0):
            last = torch.tensor([[words[-1]]])
            answer = model(last, past_key_values=answer.past_key_values, use_cache=True)
            words.append(answer.logits[0, -1].argmax().item())
        return words, (time.perf_counter() - start) if len(words) > 1 else None

    return model, generate


def training(model, loss):
    sgd = torch.optim.SGD(model.parameters(), RATE)

    def step():
        with torch.enable_grad():
            sgd.zero_grad()
            value = loss()
            value.backward()
        sgd.step()
        return [value.item()], None

    return model.train(), step


def say(**values):
    print(json.dumps(values), flush=True)


@torch.no_grad()
def measure(name, folder, budget):
    model, run = prepared(name, folder)
    parts = NEW_TOKENS if name == "gpt2_generate" else 1

    def timed():
        start = time.perf_counter()
        values, seconds = run()
        seconds = time.perf_counter() - start if seconds is None else seconds
        return seconds * 1e3 / parts, values

    means = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
    parameters = sum(p.numel() for p in [*model.parameters(), *means])
    say(version=f"PyTorch {torch.__version__} on the processor", parameters=parameters)
    first, check = timed()
    say(first=first, check=check)
    times, began = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - began < budget and len(times) < 50):
        took, values = timed()
        times.append(took)
        if name.endswith("_train") and len(check) < 3:
            check += values
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        say(milliseconds=statistics.median(times), runs=len(times), check=check, host=host)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["weights", folder]:
            weights(Path(folder))
        case ["time", name, folder, seconds]:
            measure(name, Path(folder), float(seconds))
        case _:
            sys.exit(__doc__)
