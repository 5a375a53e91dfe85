"""Connectionist temporal classification: the loss of label sequences without their alignment in time, and the search for labels.

The loss runs on the device and has gradients: a step in time combines the probabilities of all prefixes of a label sequence. Searches
read the logits, as how many labels they find depends on values.
"""

import numpy as np

from .errors import InvalidArgumentError
from .ops import FUNCTIONS as _F
from .ops import cast, where
from .sparse import SparseTensor
from .tensor import convert_to_tensor

# The logarithm of a probability that is 0. Sums of such numbers stay far below all others, and gradients stay finite.
_NEVER = -1e30


def _blank(call, blank_index, classes):
    at = int(blank_index)
    if not -classes <= at < classes:
        raise InvalidArgumentError(f"{call}: blank_index is {at} for {classes} classes; it must be from {-classes} to {classes - 1}.")
    return at % classes


def _shapes(call, logits, lengths):
    """The sizes of `[B, T, C]`, which fit the lengths."""
    if len(logits._shape) != 3:
        raise InvalidArgumentError(f"{call}: the logits are {list(logits._shape)}; they need the axes batch, time and class.")
    if list(lengths._shape) != [logits._shape[0]]:
        raise InvalidArgumentError(f"{call}: there are lengths of the shape {list(lengths._shape)} for {logits._shape[0]} sequences; give one for each.")
    return logits._shape


def loss(labels, logits, label_length, logit_length, blank_index, call="ctc_loss"):
    """The negative logarithm of the probability of each label sequence: `labels` are `[B, L]`, `logits` `[B, T, C]`."""
    labels, logits = cast(labels, "int32"), convert_to_tensor(logits)
    label_length, logit_length = cast(label_length, "int32"), cast(logit_length, "int32")
    batch, steps, classes = _shapes(call, logits, logit_length)
    _shapes(call, logits, label_length)
    if len(labels._shape) != 2 or labels._shape[0] != batch:
        raise InvalidArgumentError(f"{call}: the labels are {list(labels._shape)} for {batch} sequences; they must be [{batch}, length].")
    if not steps:
        raise InvalidArgumentError(f"{call}: the logits have no step in time.")
    blank, count = _blank(call, blank_index, classes), labels._shape[1]
    size = 2 * count + 1
    # Blanks around all labels: blank, first, blank, second, .., blank.
    blanks = convert_to_tensor(np.full((batch, count), blank, "int32"))
    inside = _F["reshape"](_F["stack"]([blanks, labels], -1), [batch, 2 * count])
    path = _F["concat"]([inside, np.full((batch, 1), blank, "int32")], 1)
    # Labels of the padding may be anything.
    path = _F["math.minimum"](_F["math.maximum"](path, 0), classes - 1)
    at = np.arange(size, dtype="int32")[None]
    # A label follows another one without a blank if both differ.
    before = _F["pad"](path, [[0, 0], [2, 0]], "CONSTANT", -1)[:, :size]
    jumps = _F["math.logical_and"](_F["math.not_equal"](path, blank), _F["math.not_equal"](path, before))
    chances = _F["nn.log_softmax"](cast(logits, "float32"), -1)
    chances = _F["gather"](_F["transpose"](chances, [0, 2, 1]), path, axis=1, batch_dims=1)
    never = convert_to_tensor(np.full((batch, size), _NEVER, "float32"))
    sums = where(np.broadcast_to(at < 2, (batch, size)), chances[:, :, 0], never)
    for step in range(1, steps):
        one = _F["pad"](sums, [[0, 0], [1, 0]], "CONSTANT", _NEVER)[:, :size]
        two = where(jumps, _F["pad"](sums, [[0, 0], [2, 0]], "CONSTANT", _NEVER)[:, :size], never)
        reached = _F["math.reduce_logsumexp"](_F["stack"]([sums, one, two], 0), axis=0) + chances[:, :, step]
        sums = where(_F["expand_dims"](logit_length > step, 1), reached, sums)
    # A path ends with the last label or the blank behind it.
    end = _F["expand_dims"](label_length * 2, 1)
    last = _F["math.logical_or"](_F["math.equal"](end, at), _F["math.equal"](_F["math.maximum"](end - 1, 0), at))
    found = _F["math.reduce_logsumexp"](where(last, sums, never), axis=1)
    # No path is as short as this.
    return where(found < _NEVER / 2, np.float32("inf"), -found)


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """TensorFlow's `tf.nn.ctc_loss`. Labels are a tensor `[batch, length]`; the blank is class 0 unless `blank_index` says another one."""
    if label_length is None:
        raise TypeError("ctc_loss: sparse labels are not supported; give labels as a tensor [batch, length], with label_length.")
    logits = convert_to_tensor(logits)
    if logits_time_major:
        if len(logits._shape) != 3:
            raise InvalidArgumentError(f"ctc_loss: the logits are {list(logits._shape)}; they need the axes time, batch and class.")
        logits = _F["transpose"](logits, [1, 0, 2])
    return loss(labels, logits, label_length, logit_length, 0 if blank_index is None else blank_index)


# ---- search ----


def _merged(classes, merge, blank):
    """The labels of a class for each step: repetitions are one label if they are merged, blanks none."""
    changes = np.concatenate([[True], classes[1:] != classes[:-1]]) if merge and len(classes) else np.ones(len(classes), bool)
    return classes[changes & (classes != blank)].tolist()


def greedy(logits, lengths, blank, merge):
    """The labels of the largest logit of each step, and the negative sum of these logits, for `[B, T, C]`."""
    logits, lengths = np.asarray(logits, "float32"), np.asarray(lengths)
    found, scores = [], []
    for rows, length in zip(logits, lengths):
        found.append(_merged(rows[:length].argmax(-1), merge, blank))
        scores.append(-rows[:length].max(-1, initial=-np.inf).sum() if length else 0.0)
    return found, np.asarray(scores, "float32")[:, None]


def _beams(rows, blank, width, top):
    """The most probable label sequences of one sequence of log probabilities `[T, C]`, and their logarithms."""
    never = -np.inf
    # For each prefix: the logarithms of the probabilities that the last step was a blank, and that it was its last label.
    prefixes, of_blank, of_label = [()], np.zeros(1), np.full(1, never)
    for row in rows:
        both = np.logaddexp(of_blank, of_label)
        last = np.array([prefix[-1] if prefix else -1 for prefix in prefixes])
        own = np.flatnonzero(last >= 0)
        grown = both[:, None] + row
        # Only behind a blank does the same label begin another time.
        grown[own, last[own]] = of_blank[own] + row[last[own]]
        grown[:, blank] = never
        of_blank = both + row[blank]
        of_label = np.where(last >= 0, of_label + row[last], never)
        # A longer prefix may be among the prefixes already.
        places = {prefix: at for at, prefix in enumerate(prefixes)}
        for at in own:
            shorter = places.get(prefixes[at][:-1])
            if shorter is not None:
                of_label[at] = np.logaddexp(of_label[at], grown[shorter, last[at]])
                grown[shorter, last[at]] = never
        count = len(prefixes)
        totals = np.concatenate([np.logaddexp(of_blank, of_label), grown.ravel()])
        best = np.argpartition(-totals, width)[:width] if len(totals) > width else np.arange(len(totals))
        best = best[np.argsort(-totals[best], kind="stable")]
        best = best[totals[best] > never]
        origins, labels = np.divmod(best - count, len(row))
        kept = best < count
        of_blank = np.where(kept, of_blank[np.minimum(best, count - 1)], never)
        of_label = np.where(kept, of_label[np.minimum(best, count - 1)], totals[best])
        prefixes = [prefixes[at] if at < count else (*prefixes[origin], label) for at, origin, label in zip(best, origins.tolist(), labels.tolist())]
    return list(zip(prefixes, np.logaddexp(of_blank, of_label)))[:top]


def beam_search(logits, lengths, blank, width, top):
    """For each place the labels of all sequences `[B, T, C]`, and the logarithms of their probabilities `[B, top]`."""
    if width < 1 or not 1 <= top <= width:
        raise InvalidArgumentError(f"ctc: beam_width is {width} and top_paths {top}; there must be at least one path, and no more than beams.")
    logits = np.asarray(logits, "float64")
    chances = logits - logits.max(-1, keepdims=True)
    chances = chances - np.log(np.exp(chances).sum(-1, keepdims=True))
    found, scores = [[] for _ in range(top)], []
    for rows, length in zip(chances, np.asarray(lengths)):
        best = _beams(rows[:length], blank, width, top)
        if len(best) < top:
            raise InvalidArgumentError(f"ctc: top_paths is {top}, and a sequence has {len(best)} only.")
        for place, (prefix, _) in zip(found, best):
            place.append(list(prefix))
        scores.append([chance for _, chance in best])
    return found, np.asarray(scores, "float32")


def read(call, logits, lengths):
    """Logits `[B, T, C]` and lengths as arrays, after a check."""
    logits, lengths = convert_to_tensor(logits), convert_to_tensor(lengths)
    _, steps, _ = _shapes(call, logits, lengths)
    logits, lengths = logits.numpy(), lengths.numpy()
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= steps:
        raise InvalidArgumentError(f"{call}: the lengths are from {lengths.min()} to {lengths.max()}; each must be from 0 to the {steps} steps of the logits.")
    return logits, lengths


def padded(found, width, value=-1):
    """Lists of labels as rows of a matrix."""
    made = np.full((len(found), width), value, "int32")
    for row, labels in zip(made, found):
        row[: len(labels)] = labels
    return made


def _of_time_major(call, inputs, sequence_length):
    inputs = convert_to_tensor(inputs)
    if len(inputs._shape) != 3:
        raise InvalidArgumentError(f"{call}: the logits are {list(inputs._shape)}; they need the axes time, batch and class.")
    return read(call, _F["transpose"](inputs, [1, 0, 2]), sequence_length)


def _sparse(found):
    """Lists of labels as a sparse matrix."""
    places = [[row, at] for row, labels in enumerate(found) for at in range(len(labels))]
    labels = np.array([label for row in found for label in row], "int32")
    return SparseTensor(np.array(places, "int32").reshape(-1, 2), labels, [len(found), max(map(len, found), default=0)])


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """TensorFlow's `tf.nn.ctc_greedy_decoder`: a list of one sparse matrix of labels, and the negative sums of the largest logits."""
    logits, lengths = _of_time_major("ctc_greedy_decoder", inputs, sequence_length)
    blank = _blank("ctc_greedy_decoder", -1 if blank_index is None else blank_index, logits.shape[-1])
    found, scores = greedy(logits, lengths, blank, merge_repeated)
    return [_sparse(found)], convert_to_tensor(scores)


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """TensorFlow's `tf.nn.ctc_beam_search_decoder`: a sparse matrix of labels for each path, and the logarithms of their probabilities. The
    last class is the blank."""
    logits, lengths = _of_time_major("ctc_beam_search_decoder", inputs, sequence_length)
    found, scores = beam_search(logits, lengths, logits.shape[-1] - 1, beam_width, top_paths)
    return [_sparse(labels) for labels in found], convert_to_tensor(scores)


def install(nn):
    """Puts the functions into `tf.nn`."""
    nn.update({function.__name__: function for function in (ctc_loss, ctc_greedy_decoder, ctc_beam_search_decoder)})
