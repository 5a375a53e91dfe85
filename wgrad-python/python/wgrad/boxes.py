"""Boxes in images, `[y1, x1, y2, x2]`: the best ones of those that overlap, and drawings of them. It computes on the host."""

import collections
import heapq

import numpy as np

from . import ops as _ops
from .tensor import convert_to_tensor

CombinedNonMaxSuppression = collections.namedtuple(
    "CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections"
)
_NO_SCORE = float("-inf")


def _read(x):
    return convert_to_tensor(x, "float32").numpy()


def _checked(call, boxes, scores, iou_threshold):
    boxes, scores = _read(boxes), _read(scores)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"{call}: boxes are {list(boxes.shape)} and scores {list(scores.shape)}; they must be [N, 4] and [N].")
    _check_threshold(call, iou_threshold)
    return boxes, scores


def _check_threshold(call, iou_threshold):
    if not 0 <= iou_threshold <= 1:
        raise ValueError(f"{call}: iou_threshold is {iou_threshold}; it must be from 0 to 1.")


def _overlap_of(boxes):
    """The function of a box and a list of boxes: the area that both share, divided by the area of both."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, axis=1)

    def overlap(at, others):
        shared = np.prod(np.maximum(np.minimum(high[others], high[at]) - np.maximum(low[others], low[at]), 0), axis=1)
        united = areas[others] + areas[at] - shared
        return np.divide(shared, united, out=np.zeros_like(shared), where=(areas[others] > 0) & (areas[at] > 0))

    return overlap


def _best(overlap, scores, most, iou_threshold, score_threshold, sigma=0.0):
    """The indices and the scores of the best boxes. With `sigma`, overlaps lower the scores of the others."""
    waiting = [(-score, at, 0) for at, score in enumerate(scores.tolist()) if score > score_threshold]
    heapq.heapify(waiting)
    chosen, kept = [], []
    while waiting and len(chosen) < most:
        negative, at, seen = heapq.heappop(waiting)
        score = np.float32(-negative)
        shared = overlap(at, chosen[seen:]) if len(chosen) > seen else np.zeros(0, "float32")
        if sigma > 0:
            lowered = score
            for one in shared[::-1]:
                lowered = np.float32(lowered * np.exp(np.float32(-0.5 / sigma) * one * one)) if one <= iou_threshold else np.float32(0)
                if lowered <= score_threshold:
                    break
            if lowered != score:
                if lowered > score_threshold:
                    heapq.heappush(waiting, (-float(lowered), at, len(chosen)))
                continue
        elif (shared > iou_threshold).any():
            continue
        chosen.append(at)
        kept.append(score)
    return np.array(chosen, dtype="int32"), np.array(kept, dtype="float32")


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=_NO_SCORE, name=None):
    """TensorFlow's `tf.image.non_max_suppression`: the indices of boxes `[y1, x1, y2, x2]` with the highest scores, without those that
    overlap a better one by more than `iou_threshold`. It computes on the host."""
    boxes, scores = _checked("non_max_suppression", boxes, scores, iou_threshold)
    return convert_to_tensor(_best(_overlap_of(boxes), scores, int(max_output_size), iou_threshold, score_threshold)[0])


def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=_NO_SCORE, soft_nms_sigma=0.0,
                                    name=None):
    """TensorFlow's `tf.image.non_max_suppression_with_scores`: as `non_max_suppression`, with the scores of the chosen boxes. With
    `soft_nms_sigma`, overlaps lower scores."""
    boxes, scores = _checked("non_max_suppression_with_scores", boxes, scores, iou_threshold)
    chosen, kept = _best(_overlap_of(boxes), scores, int(max_output_size), iou_threshold, score_threshold, float(soft_nms_sigma))
    return convert_to_tensor(chosen), convert_to_tensor(kept)


def non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold=0.5, score_threshold=_NO_SCORE, name=None):
    """TensorFlow's `tf.image.non_max_suppression_overlaps`: as `non_max_suppression`, with the overlap of each pair, `[N, N]`."""
    overlaps, scores = _read(overlaps), _read(scores)
    if scores.ndim != 1 or overlaps.shape != scores.shape * 2:
        raise ValueError(
            f"non_max_suppression_overlaps: overlaps are {list(overlaps.shape)} and scores {list(scores.shape)}; they must be [N, N] and [N]."
        )
    chosen, _ = _best(lambda at, others: overlaps[at, others], scores, int(max_output_size), overlap_threshold, score_threshold)
    return convert_to_tensor(chosen)


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=_NO_SCORE,
                               pad_to_max_output_size=False, name=None, sorted_input=False, canonicalized_coordinates=False,
                               tile_size=512):
    """TensorFlow's `tf.image.non_max_suppression_padded`: as `non_max_suppression`, also of batches, followed by zeros up to
    `max_output_size`; and how many indices there are."""
    boxes, scores, most = _read(boxes), _read(scores), int(max_output_size)
    batch = scores.shape[:-1]
    if batch and not pad_to_max_output_size:
        raise ValueError("non_max_suppression_padded: a batch of boxes needs pad_to_max_output_size=True.")
    rows = [
        non_max_suppression(part, score, most, iou_threshold, score_threshold).numpy()
        for part, score in zip(boxes.reshape(-1, *boxes.shape[-2:]), scores.reshape(-1, scores.shape[-1]))
    ]
    counts = np.array([len(row) for row in rows], dtype="int32").reshape(batch)
    if not pad_to_max_output_size:
        return convert_to_tensor(rows[0]), convert_to_tensor(counts)
    padded = np.stack([np.pad(row, (0, most - len(row))) for row in rows]).reshape(*batch, most)
    return convert_to_tensor(padded), convert_to_tensor(counts)


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold=0.5, score_threshold=_NO_SCORE,
                                 pad_per_class=False, clip_boxes=True, name=None):
    """TensorFlow's `tf.image.combined_non_max_suppression`: for each image the best boxes of all classes. `boxes` are
    `[images, N, classes, 4]`, or `[images, N, 1, 4]` if all classes have the same ones, and `scores` `[images, N, classes]`."""
    boxes, scores = _read(boxes), _read(scores)
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[3] != 4 or boxes.shape[:2] != scores.shape[:2] or boxes.shape[2] not in (1, scores.shape[2]):
        raise ValueError(
            f"combined_non_max_suppression: boxes are {list(boxes.shape)} and scores {list(scores.shape)}; they must be [B, N, 1 or C, 4] and "
            "[B, N, C]."
        )
    _check_threshold("combined_non_max_suppression", iou_threshold)
    images, _, classes = scores.shape
    each, most = int(max_output_size_per_class), int(max_total_size)
    if each < 1 or most < 1:
        raise ValueError(f"combined_non_max_suppression: the largest numbers of boxes are {each} and {most}; both must be at least 1.")
    size = min(most, each * classes) if pad_per_class else most
    made_boxes, made_scores = np.zeros((images, size, 4), "float32"), np.zeros((images, size), "float32")
    made_classes, counts = np.zeros((images, size), "float32"), np.zeros(images, "int32")
    for image in range(images):
        found = []
        for kind in range(classes):
            own = boxes[image, :, kind if boxes.shape[2] > 1 else 0]
            chosen, kept = _best(_overlap_of(own), scores[image, :, kind], each, iou_threshold, score_threshold)
            found += [(score, kind, own[at]) for at, score in zip(chosen, kept)]
        found = sorted(found, key=lambda one: -one[0])[:size]
        counts[image] = len(found)
        for at, (score, kind, box) in enumerate(found):
            made_scores[image, at], made_classes[image, at], made_boxes[image, at] = score, kind, np.clip(box, 0, 1) if clip_boxes else box
    return CombinedNonMaxSuppression(*map(convert_to_tensor, (made_boxes, made_scores, made_classes, counts)))


# TensorFlow's own colours, if a call gives none.
_COLORS = np.array([
    [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1],
    [0, 1, 1, 1], [1, 0, 1, 1],
], dtype="float32")


def draw_bounding_boxes(images, boxes, colors, name=None):
    """TensorFlow's `tf.image.draw_bounding_boxes`: float images `[B, H, W, C]` with the edges of boxes `[B, N, 4]`, whose numbers are
    shares of the height and the width. Colours are rows of `colors`, or TensorFlow's own if it is empty."""
    images, boxes = convert_to_tensor(images), _read(boxes)
    shape = list(images._shape)
    if len(shape) != 4 or boxes.ndim != 3 or boxes.shape[0] != shape[0] or boxes.shape[2] != 4:
        raise ValueError(f"draw_bounding_boxes: images are {shape} and boxes {list(boxes.shape)}; they must be [B, H, W, C] and [B, N, 4].")
    if not images._dtype.startswith("float"):
        raise TypeError(f"draw_bounding_boxes: images are {images._dtype}; they must be floats, such as of tf.image.convert_image_dtype.")
    _, height, width, channels = shape
    table = np.zeros((0, channels), "float32") if colors is None else _read(colors)
    if not table.size:
        if not 1 <= channels <= 4:
            raise ValueError(f"draw_bounding_boxes: images have {channels} channels; give colors.")
        table = np.ones((1, 1), "float32") if channels == 1 else _COLORS
    if table.ndim != 2 or table.shape[1] < channels:
        raise ValueError(f"draw_bounding_boxes: colors are {list(table.shape)}; they must be [N, {channels}].")
    drawn, paint = np.zeros(shape[:3], bool), np.zeros(shape, "float32")
    scale = np.array([height - 1, width - 1] * 2, "float32")
    for image, at in np.ndindex(boxes.shape[:2]):
        # As in TensorFlow, numbers are cut to integers.
        top, left, bottom, right = np.trunc(boxes[image, at] * scale).astype("int64").tolist()
        if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
            continue
        rows, columns = slice(max(top, 0), min(bottom, height - 1) + 1), slice(max(left, 0), min(right, width - 1) + 1)
        edges = [(row, columns) for row in (top, bottom) if 0 <= row < height] + [(rows, c) for c in (left, right) if 0 <= c < width]
        for edge in edges:
            drawn[(image, *edge)] = True
            paint[(image, *edge)] = table[at % len(table), :channels]
    return _ops.where(drawn[..., None], _ops.cast(paint, images._dtype), images)


FUNCTIONS = (
    combined_non_max_suppression, draw_bounding_boxes, non_max_suppression, non_max_suppression_overlaps, non_max_suppression_padded,
    non_max_suppression_with_scores,
)


def install(image):
    """Puts the functions into `tf.image`."""
    for function in FUNCTIONS:
        image[function.__name__] = function
