"""Event files for TensorBoard, `tf.summary`. In a traced function, each run writes."""

import contextlib
import os
import threading

from . import _wgrad, strings
from .control_flow import host_function, waits
from .tape import _TRACES

# The writer and the step that calls on this thread take, and whether a call writes.
_of_thread = threading.local()


class SummaryWriter:
    """What `create_file_writer` makes."""

    def __init__(self, logdir):
        self._native = _wgrad.SummaryWriter(logdir)

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A `with` block whose calls write to this file; without a step of their own, they take `step`."""
        before = getattr(_of_thread, "writer", None), _step()
        with self._native:
            _of_thread.writer, _of_thread.step = self, before[1] if step is None else step
            try:
                yield self
            finally:
                _of_thread.writer, _of_thread.step = before

    def flush(self):
        """Writes what waits."""
        self._native.flush()

    def close(self):
        """Writes what waits; the file stays open for other calls."""
        self._native.flush()


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None):
    """A writer of event files in a folder."""
    return SummaryWriter(os.fspath(logdir))


def _step():
    return getattr(_of_thread, "step", None)


def _written(call, write, data, step):
    """Writes data for a step, in each run if one of them is not known yet."""
    step = _step() if step is None else step
    if step is None:
        raise ValueError(f"summary.{call}: there is no step; give step, or set it by as_default(step) or tf.summary.experimental.set_step.")
    writer = getattr(_of_thread, "writer", None)
    if not (getattr(_TRACES, "depth", 0) or waits(data) or waits(step)):
        return write(data, int(step))
    if writer is None:
        return False

    def run(data, step):
        with writer._native:
            write(data, int(step))

    host_function(run, [data, step], [])
    return True


def scalar(name, data, step=None, description=None):
    """A number."""
    return _written("scalar", lambda data, step: _wgrad.summary_scalar(name, data, step), data, step)


def histogram(name, data, step=None, buckets=30, description=None):
    """The distribution of values."""
    return _written("histogram", lambda data, step: _wgrad.summary_histogram(name, data, step, int(buckets)), data, step)


def image(name, data, step=None, max_outputs=3, description=None):
    """Images `[N, H, W, C]`."""
    return _written("image", lambda data, step: _wgrad.summary_image(name, data, step, int(max_outputs)), data, step)


def audio(name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None):
    """Sounds `[N, frames, channels]`."""
    return _written("audio", lambda data, step: _wgrad.summary_audio(name, data, int(sample_rate), step, int(max_outputs)), data, step)


def text(name, data, step=None, description=None):
    """A text, which may be Markdown."""
    texts = strings.of(data)
    if texts.ndim:
        raise TypeError("summary.text: give one string; join a list of them.")
    step = _step() if step is None else step
    if step is None:
        raise ValueError("summary.text: there is no step; give step, or set it by as_default(step) or tf.summary.experimental.set_step.")
    return _wgrad.summary_text(name, texts.item().decode(), int(step))


class experimental:
    """The step that calls without one take."""

    @staticmethod
    def set_step(step):
        _of_thread.step = step

    @staticmethod
    def get_step():
        return _step()
