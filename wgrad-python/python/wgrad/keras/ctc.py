"""Keras's loss and searches of connectionist temporal classification; `wgrad.ctc` computes them."""

import numpy as np

from .. import ctc as _ctc
from ..errors import InvalidArgumentError
from ..ops import FUNCTIONS as _F
from ..ops import cast
from ..tensor import convert_to_tensor
from .objects import Loss, plain


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The loss of each label sequence; `output` are logits `[batch, time, classes]`, and `mask_index` is the class of blanks."""
    return _ctc.loss(target, output, target_length, output_length, mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    """The labels `[paths, batch, time]` that logits `[batch, time, classes]` mean most probably, and their scores; -1 is no label."""
    logits, lengths = _ctc.read("ctc_decode", inputs, sequence_lengths)
    blank = _ctc._blank("ctc_decode", logits.shape[-1] - 1 if mask_index is None else mask_index, logits.shape[-1])
    if strategy == "greedy":
        found, scores = _ctc.greedy(logits, lengths, blank, merge_repeated)
        found = [found]
    elif strategy == "beam_search":
        found, scores = _ctc.beam_search(logits, lengths, blank, beam_width, top_paths)
    else:
        raise ValueError(f"ctc_decode: the strategy is {strategy!r}; it must be 'greedy' or 'beam_search'.")
    made = np.stack([_ctc.padded(labels, logits.shape[1]) for labels in found])
    return convert_to_tensor(made), convert_to_tensor(scores)


class CTC(Loss):
    """Keras's `CTC`: labels `[batch, length]`, where 0 is no label, and logits `[batch, time, classes]`, whose class 0 is the blank."""

    def __init__(self, reduction="sum_over_batch_size", name="ctc", dtype=None):
        super().__init__(reduction=reduction, name=name)

    def get_config(self):
        """All options, with the name."""
        return {"name": self.name, "reduction": plain(self.reduction)}

    def call(self, y_true, y_pred):
        return ctc(y_true, y_pred)


def ctc(y_true, y_pred):
    """Keras's `keras.losses.ctc`: the loss of each label sequence."""
    y_true, y_pred = cast(y_true, "int32"), convert_to_tensor(y_pred)
    if len(y_true._shape) != 2 or len(y_pred._shape) != 3:
        raise InvalidArgumentError(
            f"ctc: the labels are {list(y_true._shape)} and the logits {list(y_pred._shape)}; they must be [batch, length] and [batch, time, classes]."
        )
    lengths = _F["math.reduce_sum"](cast(_F["math.not_equal"](y_true, 0), "int32"), axis=-1)
    return ctc_loss(y_true, y_pred, lengths, np.full(y_pred._shape[0], y_pred._shape[1], "int32"))


def ctc_batch_cost(y_true, y_pred, input_length, label_length):
    """The loss of each label sequence, `[batch, 1]`; `y_pred` are probabilities, the last of which is that of blanks, and lengths are
    `[batch, 1]`."""
    logits = _F["math.log"](convert_to_tensor(y_pred) + 1e-7)
    lengths = [_F["reshape"](cast(value, "int32"), [-1]) for value in (label_length, input_length)]
    return _F["expand_dims"](_ctc.loss(y_true, logits, *lengths, -1, "ctc_batch_cost"), 1)
