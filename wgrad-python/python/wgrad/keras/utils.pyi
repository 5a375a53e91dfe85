from .feature_space import FeatureSpace as FeatureSpace
from collections.abc import Sequence as _Listed
from typing import Any

import numpy.typing as npt

from ..data import Dataset
from .config import clear_session as clear_session, is_keras_tensor as is_keras_tensor, standardize_dtype as standardize_dtype
from .directories import (
    array_to_img as array_to_img,
    get_file as get_file,
    image_dataset_from_directory as image_dataset_from_directory,
    img_to_array as img_to_array,
    load_img as load_img,
    save_img as save_img,
    text_dataset_from_directory as text_dataset_from_directory,
)
from .plans import PyDataset as PyDataset
from .serialization import (
    deserialize_keras_object as deserialize_keras_object,
    get_custom_objects as get_custom_objects,
    get_registered_name as get_registered_name,
    get_registered_object as get_registered_object,
    serialize_keras_object as serialize_keras_object,
)
from .structure import custom_object_scope as CustomObjectScope, custom_object_scope as custom_object_scope, register_keras_serializable as register_keras_serializable

Sequence = PyDataset

def to_categorical(x: Any, num_classes: int | None = None) -> npt.NDArray[Any]: ...
def pad_sequences(
    sequences: _Listed[Any], maxlen: int | None = None, dtype: str = "int32", padding: str = "pre", truncating: str = "pre",
    value: float = 0.0,
) -> npt.NDArray[Any]: ...
def normalize(x: Any, axis: int = -1, order: int = 2) -> npt.NDArray[Any]: ...
def split_dataset(
    dataset: Any, left_size: int | float | None = None, right_size: int | float | None = None, shuffle: bool = False,
    seed: int | None = None,
) -> tuple[Dataset, Dataset]: ...
def set_random_seed(seed: int) -> None: ...
def timeseries_dataset_from_array(
    data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1, sampling_rate: int = 1, batch_size: int | None = 128,
    shuffle: bool = False, seed: int | None = None, start_index: int | None = None, end_index: int | None = None,
) -> Dataset: ...
def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any: ...

class Progbar:
    target: int | None
    width: int
    verbose: int
    interval: float
    unit_name: str
    stateful_metrics: set[str]
    def __init__(
        self, target: int | None, width: int = 20, verbose: int = 1, interval: float = 0.05,
        stateful_metrics: _Listed[str] | None = None, unit_name: str = "step",
    ) -> None: ...
    def update(self, current: int, values: _Listed[tuple[str, Any]] | None = None, finalize: bool | None = None) -> None: ...
    def add(self, n: int, values: _Listed[tuple[str, Any]] | None = None) -> None: ...

def plot_model(model: Any, to_file: str = "model.svg", **options: Any) -> None: ...
def get_source_inputs(tensor: Any) -> list[Any]: ...
