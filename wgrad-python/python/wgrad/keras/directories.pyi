import os
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

def image_dataset_from_directory(
    directory: str | os.PathLike[str], labels: str | None = "inferred", label_mode: str | None = "int",
    class_names: Sequence[str] | None = None, color_mode: str = "rgb", batch_size: int | None = 32,
    image_size: int | Sequence[int] = (256, 256), shuffle: bool = True, seed: int | None = None,
    validation_split: float | None = None, subset: str | None = None, interpolation: str = "bilinear", follow_links: bool = False,
    crop_to_aspect_ratio: bool = False, **options: Any,
) -> Any: ...
def text_dataset_from_directory(
    directory: str | os.PathLike[str], labels: str | None = "inferred", label_mode: str | None = "int",
    class_names: Sequence[str] | None = None, batch_size: int | None = 32, max_length: int | None = None, shuffle: bool = True,
    seed: int | None = None, validation_split: float | None = None, subset: str | None = None, follow_links: bool = False,
    **options: Any,
) -> Any: ...
def load_img(
    path: str | os.PathLike[str], color_mode: str = "rgb", target_size: Sequence[int] | None = None, interpolation: str = "nearest"
) -> npt.NDArray[Any]: ...
def img_to_array(img: Any, data_format: str | None = None, dtype: str | None = "float32") -> npt.NDArray[Any]: ...
def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: str | None = None) -> Any: ...
def save_img(
    path: str | os.PathLike[str], x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True,
    **options: Any,
) -> None: ...
def get_file(
    fname: str | os.PathLike[str] | None = None, origin: str | None = None, untar: bool = False, md5_hash: str | None = None,
    file_hash: str | None = None, cache_subdir: str = "datasets", hash_algorithm: str = "auto", extract: bool = False,
    archive_format: str | None = "auto", cache_dir: str | None = None, force_download: bool = False,
) -> str: ...
