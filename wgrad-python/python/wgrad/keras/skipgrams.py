"""Pairs of words that are near each other in texts, for embeddings of words: `keras.preprocessing.sequence.skipgrams`."""

import random

import numpy as np


def make_sampling_table(size, sampling_factor=1e-5):
    """The probability with which a word is kept, for words by how often they occur, as Zipf's law has it: the first ones less often."""
    if size < 1:
        raise ValueError(f"make_sampling_table: the size is {size}; it must be at least 1.")
    rank = np.arange(size, dtype="float64")
    rank[0] = 1
    # The harmonic numbers, by which the law divides.
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    return np.minimum(1.0, np.sqrt(sampling_factor * inverse))


def skipgrams(sequence, vocabulary_size, window_size=4, negative_samples=1.0, shuffle=True, categorical=False, sampling_table=None,
              seed=None):
    """Pairs of a word and one within `window_size` places of it, with the label 1, and `negative_samples` times as many pairs of a word and
    any other, with the label 0. The number 0 is no word."""
    if vocabulary_size < 2 and negative_samples > 0:
        raise ValueError(f"skipgrams: vocabulary_size is {vocabulary_size}; there must be a word besides 0 to draw.")
    draw = random.Random(seed) if seed is not None else random
    words, pairs = [int(word) for word in sequence], []
    for at, word in enumerate(words):
        if not word or sampling_table is not None and sampling_table[word] < draw.random():
            continue
        around = range(max(0, at - window_size), min(len(words), at + window_size + 1))
        pairs.extend([word, words[other]] for other in around if other != at and words[other])
    labels = [1] * len(pairs)
    count = int(len(pairs) * negative_samples)
    if count:
        first = [pair[0] for pair in pairs]
        draw.shuffle(first)
        pairs += [[first[at % len(first)], draw.randint(1, vocabulary_size - 1)] for at in range(count)]
        labels += [0] * count
    labels = [[0, 1] if label else [1, 0] for label in labels] if categorical else labels
    if shuffle:
        order = list(range(len(pairs)))
        draw.shuffle(order)
        pairs, labels = [pairs[at] for at in order], [labels[at] for at in order]
    return pairs, labels
