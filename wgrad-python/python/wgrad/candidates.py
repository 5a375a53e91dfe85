"""Classes drawn for losses of many classes, `tf.random.*_candidate_sampler`, and these losses: `tf.nn.sampled_softmax_loss` and `nce_loss`.

Draws without repetition take the classes with the largest sums of a logarithm of the probability and a Gumbel number, which runs on the
device. TensorFlow draws until it has enough classes, and counts its attempts; here their number is the one that is expected.
"""

import functools

import numpy as np

from .ops import FUNCTIONS as _F
from .ops import cast, ones_like
from .ops import where as _where
from .random import _source
from .tensor import convert_to_tensor


def _attempts(shares, count):
    """How many draws are expected to give `count` different classes."""
    low, high = float(count), float(count)
    different = lambda tries: -np.expm1(tries * np.log1p(-np.minimum(shares, 1 - 1e-12))).sum()
    while different(high) < count and high < 1e15:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if different(middle) < count else (low, middle)
    return high


@functools.lru_cache(maxsize=64)
def _distribution(key, count, unique):
    """The logarithm of each class's probability, and how often it is drawn."""
    shares = _SHARES[key[0]](*key[1:])
    expected = shares * count
    if unique:
        expected = -np.expm1(_attempts(shares, count) * np.log1p(-np.minimum(shares, 1 - 1e-12)))
    return np.log(np.maximum(shares, 1e-38)).astype("float32"), expected.astype("float32")


def _log_uniform(classes):
    at = np.arange(classes, dtype="float64")
    return np.log((at + 2) / (at + 1)) / np.log(classes + 1)


_SHARES = {
    "log_uniform": _log_uniform,
    "uniform": lambda classes: np.full(classes, 1 / classes),
    "unigram": lambda *weights: np.array(weights) / sum(weights),
}


def _sampled(call, key, true_classes, num_true, num_sampled, unique, classes, seed):
    true_classes = cast(true_classes, "int32")
    if len(true_classes._shape) != 2 or true_classes._shape[1] != num_true:
        raise ValueError(f"{call}: true_classes are {list(true_classes._shape)}; they must be [batch, {num_true}].")
    if num_sampled < 1 or unique and num_sampled > classes:
        raise ValueError(f"{call}: num_sampled is {num_sampled} of {classes} classes; it must be at least 1, and no more than the classes if they are unique.")
    logits, expected = _distribution(key, num_sampled, bool(unique))
    if unique:
        numbers = _source(seed).draw("uniform", [classes], 1e-7, 1.0 - 1e-7)
        gumbel = -_F["math.log"](-_F["math.log"](numbers))
        drawn = _F["math.top_k"](gumbel + logits, num_sampled).indices
    else:
        drawn = _F["reshape"](_source(seed).categorical(convert_to_tensor(logits[None]), num_sampled), [num_sampled])
    drawn, expected = cast(drawn, "int32"), convert_to_tensor(expected)
    return drawn, _F["gather"](expected, true_classes), _F["gather"](expected, drawn)


def log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """TensorFlow's `tf.random.log_uniform_candidate_sampler`: small classes more often, as Zipf's law has it."""
    key = "log_uniform", int(range_max)
    return _sampled("log_uniform_candidate_sampler", key, true_classes, num_true, num_sampled, unique, int(range_max), seed)


def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """TensorFlow's `tf.random.uniform_candidate_sampler`: all classes equally often."""
    key = "uniform", int(range_max)
    return _sampled("uniform_candidate_sampler", key, true_classes, num_true, num_sampled, unique, int(range_max), seed)


def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, vocab_file="", distortion=1.0,
                                    num_reserved_ids=0, num_shards=1, shard=0, unigrams=(), seed=None, name=None):
    """TensorFlow's `tf.random.fixed_unigram_candidate_sampler`: classes as often as `unigrams` say, to the power of `distortion`."""
    if vocab_file or num_shards != 1 or shard:
        raise TypeError("fixed_unigram_candidate_sampler: vocab_file and shards are not supported; give unigrams.")
    weights = [0.0] * num_reserved_ids + [float(weight) ** distortion for weight in unigrams]
    if len(weights) != range_max or sum(weights) <= 0:
        raise ValueError(f"fixed_unigram_candidate_sampler: there are {len(weights)} unigrams for {range_max} classes; give a weight for each.")
    key = "unigram", *weights
    return _sampled("fixed_unigram_candidate_sampler", key, true_classes, num_true, num_sampled, unique, int(range_max), seed)


def _sampled_logits(call, weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, seed):
    """The logits of the true classes and of drawn ones, `[batch, num_true + num_sampled]`, and their labels."""
    weights = _F["concat"](list(weights), 0) if isinstance(weights, (list, tuple)) else convert_to_tensor(weights)
    biases = _F["concat"](list(biases), 0) if isinstance(biases, (list, tuple)) else convert_to_tensor(biases)
    inputs, labels = convert_to_tensor(inputs), cast(labels, "int32")
    labels = _F["expand_dims"](labels, 1) if len(labels._shape) == 1 else labels
    if list(labels._shape) != [inputs._shape[0], num_true]:
        raise ValueError(f"{call}: the labels are {list(labels._shape)}; they must be [{inputs._shape[0]}, {num_true}].")
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    drawn, of_true, of_drawn = (_F["stop_gradient"](convert_to_tensor(value)) for value in sampled_values)
    drawn = cast(drawn, "int32")
    true = _F["math.reduce_sum"](_F["expand_dims"](inputs, 1) * _F["gather"](weights, labels), axis=-1) + _F["gather"](biases, labels)
    others = _F["linalg.matmul"](inputs, _F["gather"](weights, drawn), transpose_b=True) + _F["gather"](biases, drawn)
    if remove_accidental_hits:
        hits = _F["math.reduce_any"](_F["math.equal"](_F["expand_dims"](labels, 2), drawn), axis=1)
        others = _where(hits, np.float32(-3.4e38), others)
    # Classes that are drawn often count less.
    true, others = true - _F["math.log"](of_true), others - _F["math.log"](of_drawn)
    made = _F["concat"]([ones_like(true) / float(num_true), _F["math.multiply"](ones_like(others), 0.0)], 1)
    return _F["concat"]([true, others], 1), made


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
                         remove_accidental_hits=True, seed=None, name=None):
    """TensorFlow's `tf.nn.sampled_softmax_loss`: the cross-entropy of the true classes among some drawn ones."""
    logits, made = _sampled_logits("sampled_softmax_loss", weights, biases, labels, inputs, num_sampled, num_classes, num_true,
                                   sampled_values, remove_accidental_hits, seed)
    return _F["nn.softmax_cross_entropy_with_logits"](labels=made, logits=logits)


def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
             remove_accidental_hits=False, name=None):
    """TensorFlow's `tf.nn.nce_loss`: whether a class is true or drawn, by noise-contrastive estimation."""
    logits, made = _sampled_logits("nce_loss", weights, biases, labels, inputs, num_sampled, num_classes, num_true,
                                   sampled_values, remove_accidental_hits, None)
    return _F["math.reduce_sum"](_F["nn.sigmoid_cross_entropy_with_logits"](labels=made, logits=logits), axis=1)


def install(random, nn):
    """Puts the functions into `tf.random` and `tf.nn`."""
    for function in (log_uniform_candidate_sampler, uniform_candidate_sampler, fixed_unigram_candidate_sampler):
        setattr(random, function.__name__, function)
    nn.update({function.__name__: function for function in (sampled_softmax_loss, nce_loss)})
