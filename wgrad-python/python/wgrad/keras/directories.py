"""Datasets of files in folders, and files that are fetched: `image_dataset_from_directory`, `text_dataset_from_directory`, `get_file`."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile

import numpy as np

from .. import _wgrad
from ..data import Dataset


def _datasets(call, read, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, subset, follow_links):
    if labels is not None and labels != "inferred":
        raise TypeError(f"{call}: labels is a list; 'inferred' takes them from the folders, and None leaves them out.")
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError(f"{call}: label_mode is {label_mode!r}; it must be 'int', 'categorical', 'binary' or None.")
    if subset not in ("training", "validation", "both", None):
        raise ValueError(f"{call}: subset is {subset!r}; it must be 'training', 'validation' or 'both'.")
    if subset == "both" and shuffle and seed is None and validation_split is not None:
        raise ValueError(f"{call}: give a seed, so that the two parts have no file in common.")

    def made(part):
        elements, names, paths, _ = read({
            "labels": labels is not None, "class_names": None if class_names is None else list(class_names),
            "batch_size": batch_size, "shuffle": bool(shuffle), "seed": seed, "validation_split": validation_split, "subset": part,
            "follow_links": bool(follow_links), "label_mode": label_mode if labels is not None else None,
        })
        dataset = Dataset(lambda: iter(elements), -(-len(paths) // (batch_size or 1)))
        dataset = dataset if batch_size is not None else dataset.unbatch()
        dataset.class_names, dataset.file_paths = names, paths
        return dataset

    return (made("training"), made("validation")) if subset == "both" else made(subset)


def image_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, color_mode="rgb", batch_size=32,
                                 image_size=(256, 256), shuffle=True, seed=None, validation_split=None, subset=None,
                                 interpolation="bilinear", follow_links=False, crop_to_aspect_ratio=False, **options):
    """Batches of images `float32[N, H, W, C]` from 0 to 255, and of labels, from a folder with a folder for each class."""
    for name in options:
        if name not in ("verbose", "data_format", "pad_to_aspect_ratio", "format") or name == "pad_to_aspect_ratio" and options[name]:
            raise TypeError(f"image_dataset_from_directory: the option '{name}' is not supported.")
    size = [image_size] * 2 if isinstance(image_size, int) else [int(side) for side in image_size]
    read = lambda rules: _wgrad.image_directory(
        os.fspath(directory), rules, color_mode, size, interpolation, bool(crop_to_aspect_ratio)
    )
    return _datasets("image_dataset_from_directory", read, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split,
                     subset, follow_links)


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32, max_length=None,
                                shuffle=True, seed=None, validation_split=None, subset=None, follow_links=False, **options):
    """Batches of texts, arrays of `bytes`, and of labels, from a folder with a folder of `.txt` files for each class."""
    for name in options:
        if name not in ("verbose", "format"):
            raise TypeError(f"text_dataset_from_directory: the option '{name}' is not supported.")
    read = lambda rules: _wgrad.text_directory(os.fspath(directory), rules, max_length)
    return _datasets("text_dataset_from_directory", read, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split,
                     subset, follow_links)


def load_img(path, color_mode="rgb", target_size=None, interpolation="nearest"):
    """The pixels of an image file as an array `uint8[H, W, C]`, or `float32` ones of `target_size`."""
    from .. import io
    from ..ops import FUNCTIONS

    channels = {"grayscale": 1, "rgb": 3, "rgba": 4}
    if color_mode not in channels:
        raise ValueError(f"load_img: color_mode is {color_mode!r}; it must be 'grayscale', 'rgb' or 'rgba'.")
    pixels = io.decode_image(io.read_file(path), channels[color_mode], expand_animations=False)
    if target_size is None:
        return pixels.numpy()
    return FUNCTIONS["image.resize"](pixels, list(target_size), method=interpolation).numpy()


def img_to_array(img, data_format=None, dtype="float32"):
    """An image as an array of `float32`, with an axis of channels."""
    array = np.asarray(img, dtype=dtype or "float32")
    if array.ndim not in (2, 3):
        raise ValueError(f"img_to_array: the image is {list(array.shape)}; it must have two or three axes.")
    return array[..., None] if array.ndim == 2 else array


def _pixels(call, x, scale):
    """An image as bytes `[H, W, C]`; `scale` brings its smallest value to 0 and its largest to 255."""
    x = np.array(x, dtype="float32")
    if x.ndim != 3 or x.shape[2] not in (1, 3, 4):
        raise ValueError(f"{call}: the image is {list(x.shape)}; it must be [height, width, channels] with 1, 3 or 4 channels.")
    if scale:
        x = x - x.min()
        x = x / (x.max() or 1) * 255
    return x.astype("uint8")


def _last_channels(x, data_format):
    return np.asarray(x).transpose(1, 2, 0) if data_format == "channels_first" else x


def array_to_img(x, data_format=None, scale=True, dtype=None):
    """An image of Pillow, which must be installed. `scale` brings the smallest value to 0 and the largest to 255."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("array_to_img: Pillow is not installed; save_img writes files without it.") from error
    pixels = _pixels("array_to_img", _last_channels(x, data_format), scale)
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def save_img(path, x, data_format=None, file_format=None, scale=True, **options):
    """Writes an image as a PNG or JPEG file, by the end of its name."""
    from .. import io

    if options:
        raise TypeError(f"save_img: there is no option '{next(iter(options))}'.")
    pixels = _pixels("save_img", _last_channels(x, data_format), scale)
    kind = (file_format or os.path.splitext(str(path))[1].lstrip(".")).lower()
    encode = getattr(io, f"encode_{ {'jpg': 'jpeg'}.get(kind, kind)}", None)
    if encode is None:
        raise ValueError(f"save_img: the file {path} is of the kind {kind!r}; it must be png or jpeg.")
    io.write_file(str(path), encode(pixels))


def _hash(path, algorithm):
    digest = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def get_file(fname=None, origin=None, untar=False, md5_hash=None, file_hash=None, cache_subdir="datasets", hash_algorithm="auto",
             extract=False, archive_format="auto", cache_dir=None, force_download=False):
    """The path of a file that is fetched unless it is in the cache; of the folder of its contents if it is extracted."""
    if origin is None:
        raise ValueError("get_file: give the origin, an address.")
    # Few programs need it, and its import takes tens of milliseconds.
    import urllib.request

    fname = os.path.basename(urllib.request.url2pathname(origin.split("?")[0])) if fname is None else os.fspath(fname)
    folder = os.path.join(os.path.expanduser(cache_dir or os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")), cache_subdir)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, fname)
    wanted = file_hash or md5_hash
    algorithm = "md5" if hash_algorithm == "md5" or wanted and len(wanted) == 32 else "sha256"
    known = os.path.exists(path) and not force_download and (wanted is None or _hash(path, algorithm) == wanted)
    if not known:
        handle, beside = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(handle, "wb") as file, urllib.request.urlopen(origin) as source:
                shutil.copyfileobj(source, file)
            if wanted is not None and _hash(beside, algorithm) != wanted:
                raise ValueError(f"get_file: {origin} has the {algorithm} {_hash(beside, algorithm)}; {wanted} was given.")
            os.replace(beside, path)
        finally:
            if os.path.exists(beside):
                os.remove(beside)
    return _extracted(path) if extract or untar else path


def _extracted(path):
    """The folder with the contents of an archive."""
    name = path
    for ending in (".gz", ".bz2", ".xz", ".tar", ".tgz", ".zip"):
        name = name.removesuffix(ending)
    folder = f"{name}_extracted" if name == path else name
    if not os.path.isdir(folder):
        beside = tempfile.mkdtemp(dir=os.path.dirname(path))
        try:
            if tarfile.is_tarfile(path):
                with tarfile.open(path) as archive:
                    if hasattr(tarfile, "data_filter"):
                        archive.extractall(beside, filter="data")
                    else:
                        _inside(beside, [member.name for member in archive.getmembers()])
                        archive.extractall(beside)
            elif zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(beside)
            else:
                raise ValueError(f"get_file: {path} is neither a tar nor a zip file.")
            os.replace(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return folder


def _inside(folder, names):
    for name in names:
        if not os.path.realpath(os.path.join(folder, name)).startswith(os.path.realpath(folder) + os.sep):
            raise ValueError(f"get_file: the archive has the path {name}, which is outside of its folder.")
