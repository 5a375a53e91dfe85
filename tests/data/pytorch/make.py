"""Writes what tests/files/pytorch.rs reads: small models of PyTorch as safetensors, with an input and the output of each.

Run with a Python that has torch and numpy: `python make.py`. The files are written by hand, as the format is a length, a header in
JSON and the numbers, so that no other package is needed.
"""

import json
import pathlib
import struct

import torch
from torch import nn

HERE = pathlib.Path(__file__).parent
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32", torch.float64: "F64"}


def save(path, tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        raw = tensor.flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def shaken(model):
    """Weights, biases and moving values that are no zeros and ones."""
    with torch.no_grad():
        for name, value in list(model.named_parameters()) + list(model.named_buffers()):
            if value.dtype == torch.float32:
                value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value) * 0.5)
    return model.eval()


def write(name, model, *inputs, output=lambda y: y):
    y = output(model(*inputs))
    save(HERE / f"{name}.safetensors", model.state_dict(), {"format": "pt"})
    save(HERE / f"{name}.io.safetensors", {**{f"x{at}": x for at, x in enumerate(inputs)}, "y": y})


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 4, batch_first=True)
        self.gru = nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(6)
        self.rnn = nn.RNN(6, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        x = self.lstm(self.embed(x))[0]
        x = self.norm(self.gru(x)[0])
        return self.head(self.rnn(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attn(x, x, x)[0]


class Upwards(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Conv1d(3, 4, 3, padding=1)
        self.up = nn.ConvTranspose1d(4, 2, 2, stride=2)

    def forward(self, x):
        return self.up(torch.relu(self.line(x)))


def main():
    torch.manual_seed(16)
    mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))
    write("mlp", shaken(mlp), torch.randn(3, 4))
    halves = shaken(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))).to(torch.bfloat16)
    x = torch.randn(3, 4)
    save(HERE / "bfloat16.safetensors", halves.state_dict())
    save(HERE / "bfloat16.io.safetensors", {"x0": x, "y": halves.float()(x)})
    cnn = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4, eps=1e-3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1, groups=4),
        nn.PReLU(8),
        nn.Conv2d(8, 3, 1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(3 * 3 * 4, 5),
    )
    write("cnn", shaken(cnn), torch.randn(2, 2, 6, 8))
    write("sequence", shaken(Named()), torch.randint(0, 11, (2, 7)))
    write("attention", shaken(Attention()), torch.randn(2, 5, 8))
    write("upwards", shaken(Upwards()), torch.randn(2, 3, 6))


main()
