"""The input of a model, as one of its layers."""

import weakref

from .layer import Layer
from .symbols import Input


class InputLayer(Layer):
    """The input of a model. A call makes a symbol, as `Input` does: `Sequential([InputLayer(shape=(4,)), ..])`."""

    def __new__(cls, input_shape=None, shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, sparse=None, ragged=None,
                optional=False, **options):
        return Input(shape if shape is not None else input_shape, batch_size, dtype, name, batch_shape, sparse=sparse or ragged)

    @classmethod
    def _of(cls, symbol, name):
        """The layer of a symbol, among those of its model."""
        layer = Layer.__new__(cls)
        Layer.__init__(layer, name=name)
        layer._symbol = weakref.ref(symbol)
        layer.built = True
        return layer

    @property
    def output(self):
        """The symbol."""
        return self._symbol()

    input = output

    @property
    def batch_shape(self):
        """The shape of the symbol."""
        return tuple(self._symbol().shape)

    @property
    def dtype(self):
        """The dtype of the symbol."""
        return getattr(self._symbol(), "_dtype", "string")

    def get_config(self):
        """The options."""
        return {
            "batch_shape": self.batch_shape, "dtype": self.dtype, "sparse": False, "ragged": False, "name": self.name, "optional": False,
        }

    def _wgrad_parts(self):
        return []


InputLayer.__module__ = "wgrad.keras.layers"
