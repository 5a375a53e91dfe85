"""Checkpoints in TensorFlow's format."""

import os
import pathlib
import re

from . import _wgrad


class _Restored:
    """What a checkpoint restored."""

    def __init__(self, unused, missing):
        self._unused, self._missing = unused, missing

    def assert_consumed(self):
        if self._unused or self._missing:
            raise AssertionError(
                f"restore: the file has {self._unused[:10]} that the program lacks, and the program has {self._missing[:10]} "
                "that the file lacks."
            )
        return self

    def assert_existing_objects_matched(self):
        if self._missing:
            raise AssertionError(f"restore: the file lacks {self._missing[:10]}.")
        return self

    def expect_partial(self):
        return self


class Checkpoint:
    """Saves and restores models, optimizers and variables by their names."""

    def __init__(self, **objects):
        self._objects = objects
        self._native = _wgrad.NativeCheckpoint(list(objects.items()))

    def __getattr__(self, name):
        if name != "_objects" and name in self._objects:
            return self._objects[name]
        raise AttributeError(name)

    @property
    def save_counter(self):
        return self._native.save_counter

    def save(self, file_prefix):
        return self._native.save(str(file_prefix))

    def write(self, file_prefix):
        return self._native.write(str(file_prefix))

    def restore(self, save_path):
        if save_path is None:
            return _Restored([], [])
        return _Restored(*self._native.restore(str(save_path), True))

    def read(self, save_path):
        return _Restored(*self._native.restore(str(save_path), False))


def _state(directory):
    path = pathlib.Path(directory) / "checkpoint"
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    paths = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, re.MULTILINE)
    newest = re.findall(r'^model_checkpoint_path: "(.*)"$', text, re.MULTILINE)
    return [p for p in paths if p not in newest[:1]] + newest[:1]


def latest_checkpoint(checkpoint_dir):
    """The path of the newest checkpoint in a folder; `None` if there is none."""
    for name in reversed(_state(checkpoint_dir)):
        path = pathlib.Path(name)
        path = path if path.is_absolute() else pathlib.Path(checkpoint_dir) / path
        if path.with_name(path.name + ".index").exists():
            return str(path)
    return None


class CheckpointManager:
    """Keeps the newest checkpoints in a folder."""

    def __init__(self, checkpoint, directory, max_to_keep, checkpoint_name="ckpt"):
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"CheckpointManager: max_to_keep is {max_to_keep}; it must be at least 1, or None.")
        self._checkpoint, self._directory = checkpoint, pathlib.Path(directory)
        self._max_to_keep, self._name = max_to_keep, checkpoint_name
        self._kept = [name for name in _state(directory) if (self._directory / f"{name}.index").exists()]

    @property
    def checkpoints(self):
        return [str(self._directory / name) for name in self._kept]

    @property
    def latest_checkpoint(self):
        return str(self._directory / self._kept[-1]) if self._kept else None

    def save(self, checkpoint_number=None):
        self._directory.mkdir(parents=True, exist_ok=True)
        number = checkpoint_number
        if number is None:
            numbers = [int(n) for n in re.findall(r"-(\d+)(?: |$)", " ".join(self._kept))]
            number = max(numbers, default=0) + 1
        name = f"{self._name}-{int(number)}"
        path = self._checkpoint.write(self._directory / name)
        self._kept = [kept for kept in self._kept if kept != name] + [name]
        gone = self._kept[: -self._max_to_keep] if self._max_to_keep else []
        self._kept = self._kept[len(gone) :]
        lines = [f'model_checkpoint_path: "{name}"'] + [f'all_model_checkpoint_paths: "{kept}"' for kept in self._kept]
        state = self._directory / "checkpoint"
        temporary = state.with_name("checkpoint.tmp")
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(temporary, state)
        for old in gone:
            for file in self._directory.glob(f"{old}.*"):
                file.unlink(missing_ok=True)
        return str(path)

    def restore_or_initialize(self):
        if self.latest_checkpoint is None:
            return None
        self._checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint
