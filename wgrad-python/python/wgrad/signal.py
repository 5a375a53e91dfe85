"""TensorFlow's `tf.signal`. Complex results are `wgrad.complex_numbers.ComplexTensor`s."""

from . import _wgrad
from .complex_numbers import ComplexTensor as _ComplexTensor, of as _of
from .ops import FUNCTIONS as _F, cast as _cast
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


# ---- order of frequencies ----


def _shifted(call, x, axes, sign):
    """The numbers moved by half of the length of each axis."""
    shape = list(x.shape) if isinstance(x, _ComplexTensor) else list(_convert(x)._shape)
    axes = list(range(len(shape))) if axes is None else [axes] if isinstance(axes, int) else [int(at) for at in axes]
    if any(not -len(shape) <= at < len(shape) for at in axes):
        raise ValueError(f"{call}: axes are {axes}, and the tensor is {shape}.")
    axes = [at % len(shape) for at in axes]
    shifts = [shape[at] // 2 if sign > 0 else -(shape[at] // 2) for at in axes]
    if not axes:
        return x if isinstance(x, _ComplexTensor) else _convert(x)
    return _ComplexTensor(_F["roll"](x._pairs, shifts, axes)) if isinstance(x, _ComplexTensor) else _F["roll"](x, shifts, axes)


def fftshift(x, axes=None, name=None):
    """TensorFlow's `tf.signal.fftshift`: the frequency 0 in the middle of the axes."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x, axes=None, name=None):
    """TensorFlow's `tf.signal.ifftshift`: what undoes `fftshift`."""
    return _shifted("ifftshift", x, axes, -1)


# ---- modified cosine transforms ----


def kaiser_bessel_derived_window(window_length, beta=12.0, dtype="float32", name=None):
    """TensorFlow's `tf.signal.kaiser_bessel_derived_window`, of an even length."""
    half = int(window_length) // 2
    sums = _F["math.cumsum"](kaiser_window(half + 1, beta))
    part = _F["math.sqrt"](sums[:-1] / sums[-1])
    return _cast(_F["concat"]([part, _F["reverse"](part, [0])], 0), dtype)


def mdct(signals, frame_length, window_fn=vorbis_window, pad_end=False, norm=None, name=None):
    """TensorFlow's `tf.signal.mdct`: the modified discrete cosine transform of frames that overlap by half."""
    length = int(frame_length)
    if length < 4 or length % 4:
        raise ValueError(f"mdct: frame_length is {length}; it must be a multiple of 4.")
    if norm not in (None, "ortho"):
        raise ValueError(f"mdct: norm is {norm!r}; it must be None or 'ortho'.")
    half = length // 2
    frames = frame(signals, length, half, pad_end=pad_end)
    frames = frames * (2.0**-0.5 if window_fn is None else window_fn(length))
    a, b, c, d = _F["split"](frames, 4, -1)
    backwards = lambda x: _F["reverse"](x, [len(x._shape) - 1])
    folded = _F["concat"]([-backwards(c) - d, a - backwards(b)], -1)
    return dct(folded, type=4, norm=norm)


def inverse_mdct(mdcts, window_fn=vorbis_window, norm=None, name=None):
    """TensorFlow's `tf.signal.inverse_mdct`: the signal of the frames of `mdct`."""
    if norm not in (None, "ortho"):
        raise ValueError(f"inverse_mdct: norm is {norm!r}; it must be None or 'ortho'.")
    mdcts = _convert(mdcts)
    half = mdcts._shape[-1]
    if half < 2 or half % 2:
        raise ValueError(f"inverse_mdct: frames have {half} numbers; it must be an even number.")
    unfolded = dct(mdcts, type=4, norm="ortho") if norm == "ortho" else dct(mdcts, type=4) * (0.5 / half)
    first, second = _F["split"](unfolded, 2, -1)
    backwards = lambda x: _F["reverse"](x, [len(x._shape) - 1])
    real = _F["concat"]([second, -backwards(second), -backwards(first), -first], -1)
    real = real * (2.0**-0.5 if window_fn is None else window_fn(2 * half))
    return overlap_and_add(real, half)
