"""TensorFlow's `tf.signal`. Complex results are `wgrad.complex_numbers.ComplexTensor`s."""

from . import _wgrad
from .complex_numbers import ComplexTensor as _ComplexTensor, of as _of
from .ops import FUNCTIONS as _F
from .tensor import convert_to_tensor as _convert

dct, idct = _F["signal.dct"], _F["signal.idct"]
frame, overlap_and_add = _F["signal.frame"], _F["signal.overlap_and_add"]
hann_window, hamming_window = _F["signal.hann_window"], _F["signal.hamming_window"]
kaiser_window, vorbis_window = _F["signal.kaiser_window"], _F["signal.vorbis_window"]
linear_to_mel_weight_matrix = _F["signal.linear_to_mel_weight_matrix"]
mfccs_from_log_mel_spectrograms = _F["signal.mfccs_from_log_mel_spectrograms"]
_OPS = {name: _wgrad.NativeOp(f"tf.signal.{name}", ["input"]) for name in "fft ifft fft2d ifft2d rfft irfft rfft2d irfft2d".split()}


def _run(name, pairs, length=None):
    if length is None:
        return _OPS[name](pairs)
    sizes = [int(size) for size in (length if hasattr(length, "__len__") else [length])]
    return _OPS[name].call({"input": pairs}, {"fft_length": sizes if len(sizes) > 1 else sizes[0]})[0]


def fft(input, name=None):
    """TensorFlow's `tf.signal.fft`."""
    return _ComplexTensor(_run("fft", _of(input)._pairs))


def ifft(input, name=None):
    """TensorFlow's `tf.signal.ifft`."""
    return _ComplexTensor(_run("ifft", _of(input)._pairs))


def fft2d(input, name=None):
    """TensorFlow's `tf.signal.fft2d`."""
    return _ComplexTensor(_run("fft2d", _of(input)._pairs))


def ifft2d(input, name=None):
    """TensorFlow's `tf.signal.ifft2d`."""
    return _ComplexTensor(_run("ifft2d", _of(input)._pairs))


def rfft(input_tensor, fft_length=None, name=None):
    """TensorFlow's `tf.signal.rfft`."""
    return _ComplexTensor(_run("rfft", _convert(input_tensor), fft_length))


def irfft(input_tensor, fft_length=None, name=None):
    """TensorFlow's `tf.signal.irfft`."""
    return _run("irfft", _of(input_tensor)._pairs, fft_length)


def rfft2d(input_tensor, fft_length=None, name=None):
    """TensorFlow's `tf.signal.rfft2d`."""
    return _ComplexTensor(_run("rfft2d", _convert(input_tensor), fft_length))


def irfft2d(input_tensor, fft_length=None, name=None):
    """TensorFlow's `tf.signal.irfft2d`."""
    return _run("irfft2d", _of(input_tensor)._pairs, fft_length)


def _enclosing(length):
    """The smallest power of two that is at least `length`."""
    return 1 << max(int(length) - 1, 0).bit_length()


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    """TensorFlow's `tf.signal.stft`."""
    frames = frame(signals, frame_length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(frame_length)
    return rfft(frames, _enclosing(frame_length) if fft_length is None else fft_length)


def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    """TensorFlow's `tf.signal.inverse_stft_window_fn`: the window with which `inverse_stft` undoes `stft`."""

    def inverse(frame_length, dtype="float32"):
        window = forward_window_fn(frame_length)
        squares = window * window
        overlaps = -(-int(frame_length) // int(frame_step))
        padded = _F["pad"](squares, [[0, overlaps * int(frame_step) - int(frame_length)]])
        sums = _F["math.reduce_sum"](_F["reshape"](padded, [overlaps, int(frame_step)]), 0)
        return window / _F["tile"](sums, [overlaps])[: int(frame_length)]

    return inverse


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    """TensorFlow's `tf.signal.inverse_stft`."""
    frames = irfft(stfts, _enclosing(frame_length) if fft_length is None else fft_length)
    length = frames._shape[-1]
    if length > frame_length:
        frames = frames[..., :frame_length]
    elif length < frame_length:
        frames = _F["pad"](frames, [[0, 0]] * (len(frames._shape) - 1) + [[0, frame_length - length]])
    if window_fn is not None:
        frames = frames * window_fn(frame_length)
    return overlap_and_add(frames, frame_step)
