# Written by stubs.py from the tables of the package.
from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

from typing import NamedTuple

class CombinedNonMaxSuppression(NamedTuple):
    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor

FUNCTIONS: tuple[Any, ...]

def non_max_suppression(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = ..., name: str | None = None) -> Tensor: ...
def non_max_suppression_with_scores(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = ..., soft_nms_sigma: Any = 0.0, name: str | None = None) -> tuple[Tensor, Tensor]: ...
def non_max_suppression_overlaps(overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5, score_threshold: Any = ..., name: str | None = None) -> Tensor: ...
def non_max_suppression_padded(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = ..., pad_to_max_output_size: Any = False, name: str | None = None, sorted_input: Any = False, canonicalized_coordinates: Any = False, tile_size: Any = 512) -> tuple[Tensor, Tensor]: ...
def combined_non_max_suppression(boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = ..., pad_per_class: Any = False, clip_boxes: Any = True, name: str | None = None) -> CombinedNonMaxSuppression: ...
def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor: ...
def install(image: Any) -> None: ...
