"""TensorFlow's `tf.audio`: sounds in WAV files of 16 bits."""

import io as _io
import wave as _wave

import numpy as _np

from .errors import InvalidArgumentError as _InvalidArgumentError
from .io import _bytes
from .strings import noted as _noted
from .tensor import convert_to_tensor as _convert


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """TensorFlow's `tf.audio.decode_wav`: the samples from -1 to 1, `[samples, channels]`, and the sample rate. Sounds are cut, or followed
    by zeros, to `desired_samples`; with more `desired_channels` than the file has, they repeat."""
    try:
        with _wave.open(_io.BytesIO(_bytes(contents))) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (_wave.Error, EOFError) as error:
        raise _InvalidArgumentError(f"decode_wav: the contents are no WAV file: {error}.") from None
    if width != 2:
        raise _InvalidArgumentError(f"decode_wav: samples have {8 * width} bits; they must have 16.")
    samples = _np.frombuffer(data, "<i2").reshape(-1, channels).astype("float32") / _np.float32(32768)
    if desired_channels > 0:
        samples = samples[:, _np.arange(desired_channels) % channels]
    if desired_samples >= 0:
        samples = samples[:desired_samples]
        samples = _np.pad(samples, [[0, desired_samples - len(samples)], [0, 0]])
    return _convert(samples), _convert(rate)


def encode_wav(audio, sample_rate, name=None):
    """TensorFlow's `tf.audio.encode_wav`: samples from -1 to 1, `[samples, channels]`, as the contents of a WAV file."""
    samples = _convert(audio, "float32").numpy()
    if samples.ndim != 2 or not samples.size:
        raise _InvalidArgumentError(f"encode_wav: the audio is {list(samples.shape)}; it must be [samples, channels], with one at least.")
    made = _io.BytesIO()
    with _wave.open(made, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        # As in TensorFlow, halves are rounded away from 0.
        scaled = samples * _np.float32(32768)
        rounded = _np.sign(scaled) * _np.floor(_np.abs(scaled) + _np.float32(0.5))
        file.writeframes(_np.clip(rounded, -32768, 32767).astype("<i2").tobytes())
    return _noted(made.getvalue())
